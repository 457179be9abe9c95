"""What is known of a value's elements without running anything: one `Fact` per value, computed from its operands'.

A fact is a promise about the numbers that are computed, not about the mathematics: exp(x) underflows, so it is
nonnegative, not positive; a range is that of the rounded results. What is said of an element does not hold for nan:
``low`` and ``high`` bound every element that is not nan, and ``nan`` says whether there may be one. -0.0 is a zero like
any other, so it is nonnegative. What a user declares (`sc.assume`) is believed; that promise includes "not nan".

"Not known" is always a right answer, and no elements have every property. How an op's result follows from its operands
is in the modules of ``symc.opt.facts.transfer``, and for integers, as formulas of sizes, in ``symc.opt.facts.ranges``.
An op registered elsewhere says it in its record: ``facts={"fact": f}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from symc.ir.dim import Dim, Size, known_nonnegative
from symc.ir.record import dataclass, replace
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Region, Value

NONE: frozenset[str] = frozenset()
End = Size | float | None


@dataclass(frozen=True)
class Fact:
    """What is known. ``nan``, ``inf``, ``zero``: whether such an element may occur.

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
        """Whether the structure ``name`` is known."""
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
    """Whether everything that ``b`` says follows from ``a``."""
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
    """What is known if both hold (of an element that is not nan: a range that says nothing is None)."""
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
    """What is known of a value that is one of several, element by element. Structure does not survive that."""
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
    """What is known of a value that is one of two as a whole."""
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


class Analysis:
    """Facts of the values of one function or body. ``given``: what is known of its params.

    Computed when asked for, each value once: the work is linear in what is asked about.
    """

    def __init__(self, given: Mapping[Value, Fact] | None = None):
        self.known: dict[Value, Any] = dict(given or {})
        self.bodies: dict[tuple[Region, tuple[Fact, ...]], tuple[Fact, ...]] = {}  # of loops and branches
        self.depth = 0

    def __call__(self, v: Value) -> Fact:
        found = self.known.get(v)
        if found is None:
            with np.errstate(all="ignore"):  # ends of ranges overflow
                for x in postorder([v], stop=self.known.__contains__):
                    if x not in self.known:
                        self.known[x] = self._of(x)
            found = self.known[v]
        return UNKNOWN if isinstance(found, tuple) else found

    def inside(self, given: Mapping[Value, Fact]) -> Analysis:
        """The analysis of a body, given what is known of its params."""
        out = Analysis(given)
        out.bodies, out.depth = self.bodies, self.depth + 1
        return out

    def of_region(self, v: Value, k: int) -> Analysis:
        """The analysis of region ``k`` of ``v``."""
        from symc.opt.facts.transfer.control import params_of

        if not v.regions[k].params:
            return self.inside({})
        return self.inside(dict(zip(region_params(v.regions[k]), params_of(v, self)[k], strict=True)))

    def _of(self, v: Value) -> Any:
        from symc.opt.facts.transfer.structures import structure_of

        if v.op.name == "get":
            return self.known[v.operands[0]][v.attrs["index"]]
        if v.op.name in ("scan", "while", "cond"):
            from symc.opt.facts.transfer.control import facts_of_control

            return facts_of_control(v, self)
        f, given = _transfer_of(v), [self.known[o] for o in v.operands]
        out, props = UNKNOWN if f is None else f(v, given), structure_of(v, given, self.known)
        if not isinstance(v.type, TupleType):
            assert isinstance(out, Fact)
            return settle(v.type, out, props)
        count = len(v.type.items)
        found = out if isinstance(out, tuple) else (out,) * count
        more = props if isinstance(props, tuple) else (props,) * count
        return tuple(settle(t, x, p) for t, x, p in zip(v.type.items, found, more, strict=True))


def _transfer_of(v: Value) -> Transfer | None:
    found = TRANSFER.get(v.op.name)
    if found is None and "movement" in v.op.traits:
        found = TRANSFER["movement"]
    return v.op.facts.get("fact") if found is None else found


def settle(t: TensorType, f: Fact, props: frozenset[str] = NONE) -> Fact:
    """``f`` with the structure ``props``, what follows from the dtype, and what its parts imply for one another."""
    kind = t.dtype.kind
    f = f if f.props is props else replace(f, props=props)
    if kind == "f":
        low, high = _float_end(f.low, t.dtype, np.inf), _float_end(f.high, t.dtype, -np.inf)
        inf = f.inf and (low is None or high is None or low == np.inf or high == -np.inf)
        zero = f.zero and (low is None or low <= 0) and (high is None or high >= 0)
        if not inf and f.inf or zero is not f.zero or low is not f.low or high is not f.high:
            f = replace(f, low=low, high=high, inf=inf, zero=zero)
        if not inf and (low is None or high is None):
            top = float(np.finfo(t.dtype).max)
            f = replace(f, low=-top if low is None else low, high=top if high is None else high)
    elif kind == "c":
        f = replace(f, low=None, high=None)
    else:
        if kind in "bu" and not at_least(f.low, 0):
            f = replace(f, low=0)
        if kind == "b" and not at_most(f.high, 1):
            f = replace(f, high=1)
        zero = f.zero and not (at_least(f.low, 1) or at_most(f.high, -1))
        f = replace(f, nan=False, inf=False, integer=True, zero=zero)
    if f.props:
        from symc.opt.facts.transfer.structures import closure

        f = replace(f, props=closure(f.props, t))
    return f


def _float_end(end: End, dtype: np.dtype, towards: float) -> float | None:
    """An end as a number of the dtype: the least that is not below it, or (upper ends) the greatest not above."""
    if end is None or isinstance(end, Dim) or end != end:
        return None
    if end == -towards:
        return None
    if dtype.itemsize == 8:
        return float(end)
    with np.errstate(over="ignore"):
        near = dtype.type(end)
        if float(near) < end if towards > 0 else float(near) > end:
            near = np.nextafter(near, dtype.type(towards))
    return float(near)


def _register() -> None:
    import symc.opt.facts.transfer  # noqa: F401  (its modules fill TRANSFER)


_register()

__all__ = ["TRANSFER", "UNKNOWN", "Analysis", "Fact", "above", "at_least", "at_most", "both", "either", "implies",
           "join", "settle", "transfer"]  # fmt: skip

