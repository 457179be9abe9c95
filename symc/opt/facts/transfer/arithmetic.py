"""Facts of sums, products, quotients, powers, magnitude and order."""

from __future__ import annotations

import math

import numpy as np

from symc.ir.facts import Between
from symc.ir.op import Fold
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.facts.fact import Fact, above, both, transfer
from symc.opt.facts.transfer.ends import INF, Ends, distance, ends, may_be, negated, of_floats, rounded


@transfer("add")
@of_floats
def _add(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    return _sum(v, x, y)


@transfer("sub")
@of_floats
def _sub(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    if v.operands[0] is v.operands[1]:
        return Fact(0.0, 0.0, x.nan or x.inf, False, integer=True)
    out = _sum(v, x, negated(y))
    if _is_greatest(v.operands[1], v.operands[0]):
        return both(out, Fact(high=0.0))
    return both(out, Fact(low=0.0)) if _is_greatest(*v.operands) else out


def _is_greatest(m: Value, x: Value) -> bool:
    """True if elements of ``m`` are the greatest of those of ``x`` beside them, or 0 where these are all -inf."""
    if m.op.name != "broadcast":
        return False
    (top,), kept = m.operands, m.attrs["axes"]
    if top.op.name == "where":
        test, zero, least = top.operands[0], splat_of(top.operands[1]), splat_of(top.operands[0].operands[-1])
        top = top.operands[2]
        if test.op.name != "eq" or test.operands[0] is not top or zero != 0 or least is None or least != -INF:
            return False
    found = isinstance(top.op.lowering, Fold) and top.op.lowering.kind == "maximum" and top.operands[0] is x
    return found and kept == tuple(a for a in range(x.ndim) if a not in top.attrs["axes"])


def _sum(v: Value, x: Fact, y: Fact) -> Fact:
    (a, b), (c, d) = ends(x), ends(y)
    low, high = rounded(v.dtype, np.add, a, c), rounded(v.dtype, np.add, b, d)
    nan = x.nan or y.nan or (may_be(x, INF) and may_be(y, -INF)) or (may_be(x, -INF) and may_be(y, INF))
    same = (x.nonnegative and y.nonnegative) or (x.nonpositive and y.nonpositive)
    zero = not (same and (x.nonzero or y.nonzero))
    return Fact(low, high, nan, True, zero, x.integer and y.integer)


@transfer("neg")
@of_floats
def _neg(v: Value, given: list[Fact]) -> Fact:
    out = negated(given[0])
    return Fact(out.low, out.high, out.nan, out.inf, out.zero, out.integer)


def product_ends(dtype: np.dtype, x: Ends, y: Ends) -> Ends:
    """The range of products, rounded outwards."""
    corners = [_outwards(dtype, a, b) for a in x for b in y]
    return min(low for low, _ in corners), max(high for _, high in corners)


def _outwards(dtype: np.dtype, a: float, b: float) -> Ends:
    if a == 0 or b == 0:
        return 0.0, 0.0
    out = rounded(dtype, np.multiply, a, b)
    assert out is not None
    if math.isinf(a) or math.isinf(b):
        return out, out
    if math.isinf(out):
        top = float(np.finfo(dtype).max)
        return (top, INF) if out > 0 else (-INF, -top)
    from fractions import Fraction

    exact, near = Fraction(a) * Fraction(b), Fraction(out)
    one = dtype.type(out)
    low = out if near <= exact else float(np.nextafter(one, dtype.type(-INF)))
    high = out if near >= exact else float(np.nextafter(one, dtype.type(INF)))
    return low, high


@transfer("mul")
@of_floats
def _mul(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    if v.operands[0] is v.operands[1]:
        near, far = distance(x)
        low = _outwards(v.dtype, near, near)[0] if near else 0.0
        high = _outwards(v.dtype, far, far)[1] if far else 0.0
        return Fact(low, high, x.nan, True, True, x.integer)
    low, high = product_ends(v.dtype, ends(x), ends(y))
    nan = x.nan or y.nan or (x.zero and y.inf) or (x.inf and y.zero)
    whole = x.integer and y.integer
    return Fact(low, high, nan, True, not (whole and x.nonzero and y.nonzero), whole)


@transfer("mulz")
@of_floats
def _mulz(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    low, high = product_ends(v.dtype, ends(x), ends(y))
    nan = x.nan or y.nan or (x.inf and y.zero)
    return Fact(min(low, 0.0) if x.zero else low, max(high, 0.0) if x.zero else high, nan)


@transfer("div")
@of_floats
def _div(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    nan = x.nan or y.nan or (x.zero and y.zero) or (x.inf and y.inf)
    if y.zero and y.nonnegative and never_minus_zero(v.operands[1]):
        return Fact(0.0 if x.nonnegative else None, 0.0 if x.nonpositive else None, nan)
    if y.zero:  # x / -0.0 has the other sign
        return Fact(nan=nan)
    (a, b), (c, d) = ends(x), ends(y)
    if c < 0 < d:
        return Fact(nan=nan, inf=True)
    c, d = (max(c, 0.0), d) if d > 0 else (c, min(d, -0.0))
    corners = [_quotient(v.dtype, p, q, d > 0) for p in (a, b) for q in (c, d)]
    return Fact(min(corners), max(corners), nan, True, x.zero or not _no_underflow(v.dtype, x, y))


def never_minus_zero(v: Value) -> bool:
    """True if a zero among the elements has surely no sign: counts, distances, exponentials, squares."""
    while v.op.name in ("broadcast", "reshape", "transpose"):
        (v,) = v.operands
    if v.op.name == "cast":
        return v.operands[0].dtype.kind in "iub"
    values = v.op.facts.values
    low = values.low if isinstance(values, Between) else values.image[0] if values is not None else -INF
    return low >= 0 or v.op.name in ("abs", "norm") or v.op.name == "mul" and v.operands[0] is v.operands[1]


def _quotient(dtype: np.dtype, p: float, q: float, positive: bool) -> float:
    if p == 0:
        return 0.0
    if q == 0:
        return INF if (p > 0) == positive else -INF
    if math.isinf(q):
        return 0.0 if not math.isinf(p) else (INF if (p > 0) == positive else -INF)
    out = rounded(dtype, np.divide, p, q)
    assert out is not None
    return out


def _no_underflow(dtype: np.dtype, x: Fact, y: Fact) -> bool:
    near, far = distance(x)[0], distance(y)[1]
    return near > 0 and far < INF and (rounded(dtype, np.divide, near, far) or 0) > 0


@transfer("floordiv", "fmod")
@of_floats
def _floordiv(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    if v.op.name == "fmod":
        sign = Fact(0.0 if x.nonnegative else None, 0.0 if x.nonpositive else None)
        return Fact(sign.low, sign.high, x.nan or y.nan or y.zero or x.inf, False, True, x.integer and y.integer)
    positive = x.nonnegative and y.positive
    nan = x.nan or y.nan or y.zero or x.inf
    return Fact(0.0 if positive else None, None, nan, y.zero or x.inf or not x.integer or not y.integer, True, True)


@transfer("mod")
@of_floats
def _mod(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    low, high = ends(y)
    nan = x.nan or y.nan or y.zero or x.inf
    whole = x.integer and y.integer
    if y.positive:  # a tiny negative x gives y itself
        return Fact(0.0, high, nan, y.inf, True, whole)
    return Fact(low, 0.0, nan, y.inf, True, whole) if y.negative else Fact(nan=nan, inf=y.inf, integer=whole)


@transfer("pow")
@of_floats
def _pow(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    number = splat_of(v.operands[1])
    nan = x.nan or y.nan or not (x.nonnegative or y.integer)
    even = number is not None and np.isfinite(number) and float(number) % 2 == 0
    if even or x.positive or (x.nonnegative and y.nonnegative):
        small = x.nonnegative and ends(x)[1] <= 1 and y.nonnegative
        return Fact(0.0, 1.0 if small else None, nan, not small, True, x.integer and y.integer and y.nonnegative)
    return Fact(nan=nan, integer=x.integer and y.integer and y.nonnegative)


# --- magnitude, sign, order -------------------------------------------------------------------------------------------


@transfer("abs")
def _abs(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.operands[0].dtype.kind == "f":
        near, far = distance(x)
        return Fact(near, far, x.nan, x.inf, x.zero, x.integer)
    if v.dtype.kind == "f":  # of a complex number: a length
        return Fact(0.0, None, x.nan, True, x.zero)
    if x.nonnegative or v.dtype.kind == "u":
        return x
    info = np.iinfo(v.dtype)
    if isinstance(x.low, int) and isinstance(x.high, int) and x.low > info.min:
        return Fact(0, max(-x.low, x.high), zero=x.zero)
    return Fact(0 if above(x.low, int(info.min)) else None, None, zero=x.zero)


@transfer("sign")
def _sign(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.dtype.kind == "c":
        return Fact(nan=x.nan or x.inf, zero=x.zero)
    low = 1 if x.positive else 0 if x.nonnegative else -1
    high = -1 if x.negative else 0 if x.nonpositive else 1
    return Fact(low, high, x.nan, False, x.zero, True)


@transfer("copysign")
def _copysign(v: Value, given: list[Fact]) -> Fact:
    x, _ = given
    far = distance(x)[1]
    return Fact(-far, far, x.nan, x.inf, x.zero, x.integer)


@transfer("maximum", "fmax")
@of_floats
def _maximum(v: Value, given: list[Fact]) -> Fact:
    return _extreme(given, v.op.name == "fmax")


def _extreme(given: list[Fact], ignores: bool) -> Fact:
    """The fact of the greater of two numbers; ``ignores``: nan does not count."""
    x, y = given
    (a, b), (c, d) = ends(x), ends(y)
    nan = x.nan and y.nan if ignores else x.nan or y.nan
    low = max(a, c) if not ignores or not (x.nan or y.nan) else (c if not y.nan else a if not x.nan else min(a, c))
    zero = not (x.nonzero and y.nonzero) and not (not ignores and (x.positive or y.positive))
    inf = (x.inf or y.inf) and not (max(b, d) < INF and low > -INF)
    return Fact(low, max(b, d), nan, inf, zero, x.integer and y.integer)


@transfer("minimum", "fmin")
@of_floats
def _minimum(v: Value, given: list[Fact]) -> Fact:
    return negated(_extreme([negated(x) for x in given], v.op.name == "fmin"))


@transfer("hypot")
def _hypot(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    return Fact(0.0, None, x.nan or y.nan, True, x.zero and y.zero)
