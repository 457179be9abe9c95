"""Ways to compute the same, of which sizes say which costs least: those worth having, and the choice that a call makes.

Nothing is compiled again for other sizes: the ways are branches of one program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from symc.ir.dim import Size
from symc.ir.ops.compare import le, lt
from symc.ir.ops.leaf import size
from symc.ir.ops.logic import where
from symc.ir.size_values import estimate, names
from symc.ir.value import Value

#: A further way is kept if it is so many times cheaper than the others at some sizes.
WORTH = 1.5

Way = TypeVar("Way")


def worth_having(ways: Sequence[Way], cost: Callable[[Way], Size],
                 tried: Callable[[tuple[str, ...]], Sequence[Mapping[str, int]]]) -> list[Way]:
    """The ways that are much cheaper than those before at some sizes, of those that ``tried`` gives for some names."""
    unknown = tuple(sorted({n for w in ways for n in names(cost(w))}))
    kept = list(ways[:1])
    for w in ways[1:]:
        if any(min(estimate(cost(k), at) for k in kept) >= WORTH * estimate(cost(w), at) for at in tried(unknown)):
            kept = [*kept, w] if unknown else [w]
    return kept


def cheapest(costs: Sequence[Size]) -> Value:
    """The place of the least cost, for a `cond`: of two a bool, else a number."""
    first, *others = [size(value=c) for c in costs]
    if len(others) == 1:
        return le(first, others[0])
    which, least = size(value=0), first
    for k, c in enumerate(others, 1):
        less = lt(c, least)
        which, least = where(less, size(value=k), which), where(less, c, least)
    return which
