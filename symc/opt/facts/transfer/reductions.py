"""Facts of reductions and of products of arrays."""

from __future__ import annotations

import math

import numpy as np

from symc.ir.dim import known_nonnegative
from symc.ir.ops.linalg import adds_squares
from symc.ir.value import Value
from symc.opt.facts.fact import Fact, transfer
from symc.opt.facts.transfer.ends import INF, ends, may_be, of_floats


def _some(v: Value) -> bool:
    """True if a reduction surely has elements."""
    shape = v.operands[0].shape
    return all(known_nonnegative(shape[a] - 1) for a in v.attrs["axes"])


@transfer("sum", "cumsum")
@of_floats
def _reduced_sum(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    some = v.op.name == "cumsum" or _some(v)
    low, high = ends(x)
    nan = x.nan or (may_be(x, INF) and may_be(x, -INF))
    if x.nonnegative:
        nan = x.nan
        return Fact(low if some else 0.0, _all_of(v, high), nan, True, x.zero or not some, x.integer)
    if x.nonpositive:
        return Fact(_all_of(v, low), high if some else 0.0, nan, True, x.zero or not some, x.integer)
    # partial sums that overflow to both sides make nan, even of finite numbers
    return Fact(_all_of(v, low), _all_of(v, high), nan or not _moderate(v, x), True, True, x.integer)


def _count(v: Value) -> int | None:
    shape = v.operands[0].shape
    axes = (v.attrs["axis"],) if v.op.name == "cumsum" else v.attrs["axes"]
    n = 1
    for a in axes:
        size = shape[a]
        if not isinstance(size, int):
            return None
        n *= size
    return n


def _all_of(v: Value, end: float) -> float | None:
    """A bound of a sum of elements up to ``end``, with room for as many roundings."""
    n = _count(v)
    if n is None or math.isinf(end):
        return 0.0 if end == 0 else None
    out = n * end
    room = 1 + 4 * n * float(np.finfo(v.dtype).eps)
    return out * room if math.isfinite(out * room) and abs(out * room) < float(np.finfo(v.dtype).max) else None


def _moderate(v: Value, x: Fact) -> bool:
    low, high = ends(x)
    return _all_of(v, low) is not None and _all_of(v, high) is not None


@transfer("prod", "cumprod")
@of_floats
def _reduced_prod(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    low, high = ends(x)
    inside = low >= 0 and high <= 1
    nan = x.nan or not inside  # a part may overflow and meet one that underflowed
    return Fact(0.0 if low >= 0 else None, 1.0 if inside else None, nan, not inside, True, x.integer)


@transfer("norm")
def _norm(v: Value, given: list[Fact]) -> Fact:
    return Fact(0.0, None, given[0].nan)


@transfer("sup")
def _sup(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    some = _some(v)
    return Fact(x.low if some else None, x.high, x.nan, x.inf or not some, x.zero if some else True, x.integer)


@transfer("logsumexp")
def _logsumexp(v: Value, given: list[Fact]) -> Fact:
    return Fact(nan=given[0].nan)


@transfer("softmax")
def _softmax(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    return Fact(0.0, 1.0 + 8 * float(np.finfo(v.dtype).eps), x.nan or x.inf, False)


@transfer("log_softmax")
def _log_softmax(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    return Fact(None, None, x.nan or x.inf)


@transfer("unit_uniform")
def _unit_uniform(v: Value, _: list[Fact]) -> Fact:
    return Fact(0.0, 1.0, False, False)


@transfer("unit_exponential", "gamma_draw")
def _draw(v: Value, _: list[Fact]) -> Fact:
    return Fact(0.0, None)


@transfer("unit_normal", "unit_gumbel")
def _normal(v: Value, _: list[Fact]) -> Fact:
    return Fact(None, None, False, False)


# --- products of arrays -----------------------------------------------------------------------------------------------


@transfer("dot")
@of_floats
def _dot(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    if adds_squares(v):
        return Fact(0.0, None, x.nan, True, True, x.integer)
    calm = not (x.inf or y.inf or x.nan or y.nan)
    whole = x.integer and y.integer
    if (x.nonnegative and y.nonnegative) or (x.nonpositive and y.nonpositive):
        return Fact(0.0, None, not calm, True, True, whole)
    if (x.nonnegative and y.nonpositive) or (x.nonpositive and y.nonnegative):
        return Fact(None, 0.0, not calm, True, True, whole)
    return Fact(nan=True, integer=whole)
