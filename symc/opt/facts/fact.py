"""Facts of the elements of a value: ranges, whether there may be nan, infinities or zeros, structure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from symc.ir.dim import Dim, Size, known_nonnegative
from symc.ir.record import dataclass, replace
from symc.ir.value import Region, Value

NONE: frozenset[str] = frozenset()
End = Size | float | None


@dataclass(frozen=True)
class Fact:
    """Facts of a value. ``nan``, ``inf``, ``zero``: whether such an element may occur.

    ``integer``: every finite element is a whole number. ``props``: structure, of the last two axes (``unique`` and
    ``sorted``: along the last).
    """

    low: End = None
    high: End = None
    nan: bool = True
    inf: bool = True
    zero: bool = True
    integer: bool = False
    props: frozenset[str] = NONE

    @property
    def nonnegative(self) -> bool:
        return at_least(self.low, 0)

    @property
    def positive(self) -> bool:
        return at_least(self.low, 0) and self.nonzero

    @property
    def nonpositive(self) -> bool:
        return at_most(self.high, 0)

    @property
    def negative(self) -> bool:
        return at_most(self.high, 0) and self.nonzero

    @property
    def nonzero(self) -> bool:
        return not self.zero

    @property
    def finite(self) -> bool:
        return not self.nan and not self.inf

    def has(self, name: str) -> bool:
        """True if the structure ``name`` is known."""
        return name in self.props

    def with_props(self, props: frozenset[str]) -> Fact:
        """The same with another structure."""
        return self if props == self.props else replace(self, props=props)


UNKNOWN = Fact()


def at_least(a: End, b: End) -> bool:
    """a >= b, as far as is known."""
    if a is None or b is None:
        return False
    if isinstance(a, Dim) or isinstance(b, Dim):
        return not isinstance(a, float) and not isinstance(b, float) and known_nonnegative(a - b)
    return a >= b


def at_most(a: End, b: End) -> bool:
    """a <= b, as far as is known."""
    return at_least(b, a)


def above(a: End, b: End) -> bool:
    """a > b, as far as is known."""
    if isinstance(a, Dim) or isinstance(b, Dim):
        return not isinstance(a, float) and not isinstance(b, float) and a is not None and b is not None and (
            known_nonnegative(a - b - 1))
    return a is not None and b is not None and a > b


def implies(a: Fact, b: Fact) -> bool:
    """True if everything that ``b`` says follows from ``a``."""
    return (
        (b.low is None or at_least(a.low, b.low))
        and (b.high is None or at_most(a.high, b.high))
        and (b.nan or not a.nan)
        and (b.inf or not a.inf)
        and (b.zero or not a.zero)
        and (a.integer or not b.integer)
        and b.props <= a.props
    )


def both(a: Fact, b: Fact) -> Fact:
    """The facts if both hold (of an element that is not nan: a range that says nothing is None)."""
    return Fact(
        b.low if a.low is None or at_least(b.low, a.low) else a.low,
        b.high if a.high is None or at_most(b.high, a.high) else a.high,
        a.nan and b.nan,
        a.inf and b.inf,
        a.zero and b.zero,
        a.integer or b.integer,
        a.props | b.props,
    )


def either(facts: Iterable[Fact]) -> Fact:
    """The facts of a value that is one of several, element by element. Structure does not survive that."""
    first, *others = facts
    low, high = first.low, first.high
    for f in others:
        low = low if at_most(low, f.low) else f.low if at_most(f.low, low) else None
        high = high if at_least(high, f.high) else f.high if at_least(f.high, high) else None
    every = [first, *others]
    return Fact(
        low,
        high,
        any(f.nan for f in every),
        any(f.inf for f in every),
        any(f.zero for f in every),
        all(f.integer for f in every),
    )


def join(a: Fact, b: Fact) -> Fact:
    """The facts of a value that is one of two as a whole."""
    return a if a is b else either([a, b]).with_props(a.props & b.props)


Transfer = Callable[[Value, list[Any]], "Fact | tuple[Fact, ...]"]
#: How the fact of a result follows from those of the operands, by op.
TRANSFER: dict[str, Transfer] = {}


def transfer(*names: str) -> Callable[[Transfer], Transfer]:
    """Declare what follows for ops: ``f(v, facts of its operands)``. Of a tuple, a fact for every result."""

    def declare(f: Transfer) -> Transfer:
        for name in names:
            TRANSFER[name] = f
        return f

    return declare


class Facts(Protocol):
    """Facts of values by asking (``symc.opt.facts.analysis``)."""

    bodies: dict[tuple[Region, tuple[Fact, ...]], tuple[Fact, ...]]
    depth: int

    def __call__(self, v: Value) -> Fact: ...
    def inside(self, given: Mapping[Value, Fact]) -> Facts: ...
