"""Facts of one value from those of its operands: by the tables of ``transfer``, its dtype, and its structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symc.ir.bodies import is_loop_or_branch
from symc.ir.dim import Dim
from symc.ir.dtypes import finfo
from symc.ir.op import picks
from symc.ir.record import replace
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value
from symc.ir.value_ranges import in_dtype
from symc.opt.facts import transfer as _transfer  # noqa: F401  (its modules fill TRANSFER)
from symc.opt.facts.fact import NONE, TRANSFER, UNKNOWN, End, Fact, Facts, Transfer, at_least, at_most
from symc.opt.facts.transfer.control import facts_of_control, params_of
from symc.opt.facts.transfer.products import of_dot
from symc.opt.facts.transfer.structures import closure, structure_of

__all__ = ["TRANSFER", "facts_of", "params_of", "settle"]


def facts_of(v: Value, known: Mapping[Value, Any], analysis: Facts) -> Any:
    """The fact of a value, one for each result of several. ``known``: those of its operands."""
    if v.op.name == "get":
        return known[v.operands[0]][v.attrs["index"]]
    if is_loop_or_branch(v):
        return facts_of_control(v, analysis)
    f, given = _transfer_of(v), [known[o] for o in v.operands]
    out = UNKNOWN if f is None else f(v, given)
    props = of_dot(v, given, known) if v.op.name == "dot" else structure_of(v, given)
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
        if kind in "iu" and t.dtype.itemsize < 8 and (f.low is None or f.high is None):
            least, most = in_dtype(t.dtype, (None, None))
            f = replace(f, low=least if f.low is None else f.low, high=most if f.high is None else f.high)
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
