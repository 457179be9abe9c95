"""Order in which a chain of matrices takes the fewest multiplications, where sizes need not be numbers.

Dynamic programming over the parts of a chain, as for numbers, but a part may have several best orders: costs are
polynomials, and of two orders one is dropped if it is dearer for all sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import lru_cache

from symc.ir.dim import Size, known_nonnegative, size_name
from symc.ir.record import dataclass
from symc.ir.size_values import names, number, substitute
from symc.opt.by_sizes import worth_having
from symc.opt.matmul.chain_factors import Factor, Tree

#: An order is dropped if another is cheaper at the nominal sizes, and never more than so many times as dear.
SLACK = 2
#: Orders kept of each part of a chain, and in the end.
MOST_ORDERS = 4
#: In longer chains all sizes are taken to be their nominal numbers.
MOST_FACTORS = 10
#: What unknown sizes may be, for comparing orders; and how many combinations of that are tried.
TRIED = (1, 16, 256, 4096)
MOST_TRIED = 64


@dataclass(frozen=True)
class Order:
    """An order, and how many multiplications it takes."""

    cost: Size
    tree: Tree


def best_orders(factors: Sequence[Factor]) -> list[Order]:
    """The orders of which each is the best for some sizes, the best at nominal sizes first."""
    dims: list[Size] = [factors[0].height, *[f.width for f in factors]]
    if len(factors) > MOST_FACTORS:
        dims = [number(d) for d in dims]
    best: dict[tuple[int, int], list[Order]] = {(k, k + 1): [Order(0, k)] for k in range(len(factors))}
    for span in range(2, len(factors) + 1):
        for i in range(len(factors) - span + 1):
            j = i + span
            found = [Order(a.cost + b.cost + dims[i] * dims[k] * dims[j], (a.tree, b.tree))
                     for k in range(i + 1, j) for a in best[i, k] for b in best[k, j]]
            best[i, j] = _undominated(found)
    return worth_having(best[0, len(factors)], lambda o: o.cost, _tried)


def order_of(tree: Tree, factors: Sequence[Factor]) -> Order:
    """An order with its cost."""
    spans: list[tuple[int, int]] = []
    cost: Size = 0
    stack: list[Tree | None] = [tree]
    while stack:
        t = stack.pop()
        if isinstance(t, int):
            spans.append((t, t))
        elif t is None:
            (_, j), (i, m) = spans.pop(), spans.pop()
            cost = cost + factors[i].height * factors[m].width * factors[j].width
            spans.append((i, j))
        else:
            stack += [None, t[1], t[0]]
    return Order(cost, tree)


def _undominated(orders: Iterable[Order]) -> list[Order]:
    kept: list[Order] = []
    for o in sorted(orders, key=lambda o: number(o.cost)):
        if len(kept) < MOST_ORDERS and not any(never_much_dearer(k.cost, o.cost) for k in kept):
            kept.append(o)
    return kept


def never_much_dearer(a: Size, b: Size, slack: int = SLACK) -> bool:
    """True if ``a`` is known to be at most ``slack`` times ``b``, for all sizes from 1 on."""
    spare = slack * b - a
    return known_nonnegative(substitute(spare, {n: size_name(n) + 1 for n in names(spare)}))


@lru_cache(maxsize=64)
def _tried(unknown: tuple[str, ...]) -> list[dict[str, int]]:
    """Sizes to compare orders at."""
    if len(TRIED) ** len(unknown) <= MOST_TRIED:
        return [dict(zip(unknown, sizes, strict=True)) for sizes in itertools.product(TRIED, repeat=len(unknown))]
    middle = dict.fromkeys(unknown, TRIED[len(TRIED) // 2])  # one size large or small at a time
    return [{**middle, n: s} for n in unknown for s in TRIED]
