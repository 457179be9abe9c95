"""Analysis of a value's elements without running anything: one `Fact` per value, computed from its operands'.

A fact is a promise about the numbers that are computed, not about the mathematics: exp(x) underflows, so it is
nonnegative, not positive; a range is that of the rounded results. What is said of an element does not hold for nan:
``low`` and ``high`` bound every element that is not nan, and ``nan`` says whether there may be one. -0.0 is a zero like
any other, so it is nonnegative. What a user declares (`sc.assume`) is believed; that promise includes "not nan".

"Not known" is always a right answer, and no elements have every property. How an op's result follows from its operands
is in the modules of ``symc.opt.facts.transfer``, and for integers, as formulas of sizes, on the records of ops.
An op registered elsewhere says it in its record: ``facts=Facts(fact=f)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symc.ir.bodies import is_loop_or_branch
from symc.ir.dim import Dim
from symc.ir.dtypes import finfo
from symc.ir.op import picks
from symc.ir.record import replace
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Region, Value
from symc.opt.facts import transfer as _transfer  # noqa: F401  (its modules fill TRANSFER)
from symc.opt.facts.fact import NONE, TRANSFER, UNKNOWN, End, Fact, Transfer, at_least, at_most
from symc.opt.facts.transfer.control import facts_of_control, params_of
from symc.opt.facts.transfer.products import of_dot
from symc.opt.facts.transfer.structures import closure, structure_of


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
        if not v.regions[k].params:
            return self.inside({})
        return self.inside(dict(zip(region_params(v.regions[k]), params_of(v, self)[k], strict=True)))

    def _of(self, v: Value) -> Any:
        if v.op.name == "get":
            return self.known[v.operands[0]][v.attrs["index"]]
        if is_loop_or_branch(v):
            return facts_of_control(v, self)
        f, given = _transfer_of(v), [self.known[o] for o in v.operands]
        out = UNKNOWN if f is None else f(v, given)
        props = of_dot(v, given, self.known) if v.op.name == "dot" else structure_of(v, given)
        if not isinstance(v.type, TupleType):
            assert isinstance(out, Fact)
            return settle(v.type, out, props)
        count = len(v.type.items)
        found = out if isinstance(out, tuple) else (out,) * count
        more = props if isinstance(props, tuple) else (props,) * count
        return tuple(settle(t, x, p) for t, x, p in zip(v.type.items, found, more, strict=True))


def _transfer_of(v: Value) -> Transfer | None:
    found = TRANSFER.get(v.op.name)
    if found is None and v.op.facts.values is not None:
        found = TRANSFER["values"]
    if found is None and picks(v.op):
        found = TRANSFER["picks"]
    return v.op.facts.fact if found is None else found


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
            top = float(finfo(t.dtype).max)
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
