"""How ranges, signs, nan and infinities of floats follow from op to op; comparisons that ranges decide.

Ends are numbers of the value's dtype, and every claim is about rounded results: sums and quotients round their ends as
the elements are rounded (rounding keeps order), products round them outwards (a kernel may add to a product that was
not rounded), and functions of a library are trusted to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from symc.ir.dim import Dim, known_nonnegative
from symc.ir.text import splat_of
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.opt.facts import UNKNOWN, End, Fact, above, at_least, at_most, either, transfer
from symc.opt.ranges import range_of

INF = math.inf
#: Units in the last place that a library function may be off.
SLACK = 8

Ends = tuple[float, float]


def ends(f: Fact) -> Ends:
    """A range of floats as two numbers, -inf and inf where nothing is known."""
    return (
        -INF if f.low is None or isinstance(f.low, Dim) else float(f.low),
        INF if f.high is None or isinstance(f.high, Dim) else float(f.high),
    )


def may_be(f: Fact, infinity: float) -> bool:
    """Whether an element may be this infinity."""
    low, high = ends(f)
    return f.inf and (high == INF if infinity > 0 else low == -INF)


def is_float(v: Value) -> bool:
    return v.dtype.kind == "f"


def integers(f: Callable[[Value, list[Fact]], Fact]) -> Callable[[Value, list[Fact]], Fact]:
    """``f`` for floats; of integers and conditions, what ``ranges`` says."""

    def of_both(v: Value, given: list[Fact]) -> Fact:
        if v.dtype.kind == "f":
            return f(v, given)
        if v.dtype.kind in "iu":
            known = dict(zip(v.operands, given, strict=True))
            low, high = range_of(v, lambda o: (known[o].low, known[o].high))
            return Fact(low, high)
        return UNKNOWN

    return of_both


def rounded(dtype: np.dtype, f: Callable[[Any, Any], Any], a: float, b: float) -> float | None:
    """f(a, b) as the dtype rounds it; None for nan."""
    with np.errstate(all="ignore"):
        out = float(f(dtype.type(a), dtype.type(b)))
    return None if out != out else out


# --- leaves and movements ---------------------------------------------------------------------------------------------


@transfer("constant")
def _constant(v: Value, _: list[Fact]) -> Fact:
    data = v.attrs["value"].data
    kind = data.dtype.kind
    from symc.opt.structures import of_constant

    props = of_constant(data)
    if not data.size:
        return Fact(0, 0, False, False, False, True, props)
    if kind == "c":
        return Fact(None, None, bool(np.isnan(data).any()), bool(np.isinf(data).any()), bool((data == 0).any()),
                    props=props)
    if kind in "iub":
        return Fact(int(data.min()), int(data.max()), False, False, bool((data == 0).any()), True, props)
    numbers = data[~np.isnan(data)]
    if not numbers.size:
        return Fact(None, None, True, False, False, True, props)
    finite = numbers[np.isfinite(numbers)]
    return Fact(
        float(numbers.min()),
        float(numbers.max()),
        numbers.size < data.size,
        finite.size < numbers.size,
        bool((data == 0).any()),
        bool((finite == np.trunc(finite)).all()),
        props,
    )


@transfer("size", "check_index", "bounded")
def _size(v: Value, given: list[Fact]) -> Fact:
    known = dict(zip(v.operands, given, strict=True))
    low, high = range_of(v, lambda o: (known[o].low, known[o].high))
    return Fact(low, high, props=given[0].props if given else frozenset())


@transfer("iota")
def _iota(v: Value, _: list[Fact]) -> Fact:
    props = frozenset({"unique", "sorted"}) if v.attrs["axis"] == v.ndim - 1 else frozenset()
    n = v.shape[v.attrs["axis"]]
    if v.dtype.kind != "f":
        low, high = range_of(v, lambda o: (None, None))
        exact = v.dtype == DTYPES["i64"] or (isinstance(n, int) and v.dtype.kind in "iu" and n <= np.iinfo(v.dtype).max)
        return Fact(0 if exact else low, n - 1 if exact and isinstance(n, int) else high,
                    props=props if exact else frozenset())
    exact = isinstance(n, int) and n < 1 / np.finfo(v.dtype).eps
    return Fact(0.0, float(n) if exact else None, False, not exact, integer=True,  # type: ignore[arg-type]
                props=props if exact else frozenset())


@transfer("argsort", "argmax", "argmin")
def _places(v: Value, given: list[Fact]) -> Fact:
    known = dict(zip(v.operands, given, strict=True))
    low, high = range_of(v, lambda o: (known[o].low, known[o].high))
    last = v.op.name == "argsort" and v.attrs["axis"] == v.ndim - 1
    return Fact(low, high, props=frozenset({"unique"}) if last else frozenset())


def without_structure(f: Fact) -> Fact:
    """The same of an element."""
    return Fact(f.low, f.high, f.nan, f.inf, f.zero, f.integer) if f.props else f


@transfer("movement", "sort", "gather", "dynamic_slice", "max", "min", "stop_gradient", "grad_scale", "grad_clip",
          "again", "concat", "dynamic_update_slice", "pad", "print", "assert", "breakpoint", "after", "cummax", "cummin")
def _movement(v: Value, given: list[Fact]) -> Fact:
    """Elements of operands of this dtype (indices and starts are others, or come after the first)."""
    name = v.op.name
    several = {"concat": len(given), "pad": 2, "dynamic_update_slice": 2}.get(name, 1)
    out = either(given[:several]) if several > 1 else without_structure(given[0])
    from symc.opt.structures import of_movement

    props = of_movement(v, given)
    return Fact(out.low, out.high, out.nan, out.inf, out.zero, out.integer, props) if props else out


@transfer("where")
def _where(v: Value, given: list[Fact]) -> Fact:
    test, x, y = given
    if at_least(test.low, 1):
        return x
    if at_most(test.high, 0):
        return y
    x, y = _refined(v, x, 1, True), _refined(v, y, 2, False)
    out = either([x, y])
    if v.dtype.kind in "iu":
        known = dict(zip(v.operands, given, strict=True))
        low, high = range_of(v, lambda o: (known[o].low, known[o].high))
        out = Fact(out.low if low is None else low, out.high if high is None else high, zero=out.zero)
    return out


def _refined(v: Value, f: Fact, k: int, holds: bool) -> Fact:
    """What is known of answer ``k`` of a `where` besides, if the condition compares it with a number."""
    test, x = v.operands[0], v.operands[k]
    name = test.op.name
    if name == "not":
        test, holds = test.operands[0], not holds
        name = test.op.name
    if name not in ("lt", "le", "gt", "ge", "isnan", "isfinite", "ne", "eq") or test.operands[0] is not x:
        return f
    if name == "isnan":
        return f if holds else Fact(f.low, f.high, False, f.inf, f.zero, f.integer)
    if name == "isfinite":
        return Fact(f.low, f.high, False, False, f.zero, f.integer) if holds else f
    number = splat_of(test.operands[1])
    if number is None or number.dtype.kind not in "iuf" or number != number:
        return f
    n = number.item()
    if name in ("ne", "eq"):
        apart = (name == "ne") == holds
        return Fact(f.low, f.high, f.nan, f.inf, f.zero and not (apart and n == 0), f.integer)
    upper = (name in ("lt", "le")) == holds
    strict = name in ("lt", "gt") if holds else name in ("le", "ge")
    zero = f.zero and not (strict and n == 0)
    nan = f.nan and not holds
    low = f.low if upper or at_least(f.low, n) else n
    high = f.high if not upper or at_most(f.high, n) else n
    return Fact(low, high, nan, f.inf, zero, f.integer)


@transfer("cast")
def _cast(v: Value, given: list[Fact]) -> Fact:
    (f,) = given
    source, target = v.operands[0].dtype, v.dtype
    if target.kind == "b":
        return Fact(0 if f.zero else 1, 1)
    if target.kind in "iu":
        if source.kind == "f":
            low, high = ends(f)
            info = np.iinfo(target)
            if f.nan or low < info.min or high > 2.0**52 or high > info.max:
                return UNKNOWN
            return Fact(math.trunc(low), math.trunc(high))
        low_, high_ = range_of(v, lambda o: (f.low, f.high))
        if low_ is None and isinstance(f.low, int) and isinstance(f.high, int) and source.kind in "iu":
            info = np.iinfo(target)
            if info.min <= f.low and f.high <= info.max:
                low_, high_ = f.low, f.high
        keeps = source.kind in "iu" and (low_ is not None and high_ is not None or np.can_cast(source, target, "safe"))
        return Fact(low_, high_, zero=f.zero, props=f.props if keeps else frozenset())
    if target.kind == "f":
        if source.kind == "c":
            return UNKNOWN
        low, high = _as_float(f.low, -INF), _as_float(f.high, INF)
        if source.kind == "f":
            top = float(np.finfo(target).max)
            widened = np.can_cast(source, target, "safe")
            inf = f.inf or not (widened or -top <= low and high <= top)
            zero = f.zero or not widened  # a small number may vanish
            keeps = f.props if widened else f.props - {"unique"}
            return Fact(_down(low, target), _up(high, target), f.nan, inf, zero, f.integer, keeps)
        inf = target.itemsize == 2 and not (abs(low) < 65504 and abs(high) < 65504)
        exact = abs(low) <= 2.0**52 and abs(high) <= 2.0**52
        keeps = f.props if exact and target.itemsize == 8 else f.props - {"unique"}
        return Fact(_down(low, target), _up(high, target), False, inf, f.zero, True, keeps)
    return Fact(nan=f.nan, inf=f.inf, props=f.props) if source.kind == "c" and target.itemsize >= source.itemsize else (
        UNKNOWN)


def _as_float(end: End, otherwise: float) -> float:
    """An end as a float; of a formula of sizes, only whether it is negative is known (and that none is 2**52)."""
    if end is None:
        return otherwise
    if isinstance(end, Dim):
        return 0.0 if otherwise < 0 and known_nonnegative(end) else 2.0**52 if otherwise > 0 else otherwise
    return float(end)


def _down(x: float, dtype: np.dtype) -> float:
    """x rounded to the dtype, as a conversion of an element does."""
    with np.errstate(all="ignore"):
        return float(dtype.type(x))


_up = _down


# --- sums and products ------------------------------------------------------------------------------------------------


@transfer("add")
@integers
def _add(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    return _sum(v, x, y, _structure(v, given))


@transfer("sub")
@integers
def _sub(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    if v.operands[0] is v.operands[1]:
        return Fact(0.0, 0.0, x.nan or x.inf, False, integer=True)
    return _sum(v, x, negated(y), _structure(v, given))


def _structure(v: Value, given: list[Fact]) -> frozenset[str]:
    from symc.opt.structures import of_elementwise

    return of_elementwise(v, given)


def _sum(v: Value, x: Fact, y: Fact, props: frozenset[str]) -> Fact:
    (a, b), (c, d) = ends(x), ends(y)
    low, high = rounded(v.dtype, np.add, a, c), rounded(v.dtype, np.add, b, d)
    nan = x.nan or y.nan or (may_be(x, INF) and may_be(y, -INF)) or (may_be(x, -INF) and may_be(y, INF))
    same = (x.nonnegative and y.nonnegative) or (x.nonpositive and y.nonpositive)
    zero = not (same and (x.nonzero or y.nonzero))
    return Fact(low, high, nan, True, zero, x.integer and y.integer, props)


def negated(f: Fact) -> Fact:
    """The fact of -x for a float x."""
    low, high = ends(f)
    return Fact(-high, -low, f.nan, f.inf, f.zero, f.integer)


@transfer("neg")
@integers
def _neg(v: Value, given: list[Fact]) -> Fact:
    out = negated(given[0])
    return Fact(out.low, out.high, out.nan, out.inf, out.zero, out.integer, _structure(v, given))


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
    exact, near = Fraction(a) * Fraction(b), Fraction(out)
    one = dtype.type(out)
    low = out if near <= exact else float(np.nextafter(one, dtype.type(-INF)))
    high = out if near >= exact else float(np.nextafter(one, dtype.type(INF)))
    return low, high


@transfer("mul")
@integers
def _mul(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    props = _structure(v, given)
    if v.operands[0] is v.operands[1]:
        near, far = _distance(x)
        low = _outwards(v.dtype, near, near)[0] if near else 0.0
        high = _outwards(v.dtype, far, far)[1] if far else 0.0
        return Fact(low, high, x.nan, True, True, x.integer, props)
    low, high = product_ends(v.dtype, ends(x), ends(y))
    nan = x.nan or y.nan or (x.zero and y.inf) or (x.inf and y.zero)
    whole = x.integer and y.integer
    return Fact(low, high, nan, True, not (whole and x.nonzero and y.nonzero), whole, props)


def _distance(f: Fact) -> Ends:
    """The least and the greatest |x|."""
    low, high = ends(f)
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


@transfer("mulz")
@integers
def _mulz(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    low, high = product_ends(v.dtype, ends(x), ends(y))
    nan = x.nan or y.nan or (x.inf and y.zero)
    return Fact(min(low, 0.0) if x.zero else low, max(high, 0.0) if x.zero else high, nan)


@transfer("div")
@integers
def _div(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    nan = x.nan or y.nan or (x.zero and y.zero) or (x.inf and y.inf)
    if y.zero:  # x / -0.0 has the other sign
        return Fact(nan=nan, props=_structure(v, given))
    (a, b), (c, d) = ends(x), ends(y)
    if c < 0 < d:
        return Fact(nan=nan, inf=True, props=_structure(v, given))
    c, d = (max(c, 0.0), d) if d > 0 else (c, min(d, -0.0))
    corners = [_quotient(v.dtype, p, q, d > 0) for p in (a, b) for q in (c, d)]
    return Fact(min(corners), max(corners), nan, True, x.zero or not _no_underflow(v.dtype, x, y), False,
                _structure(v, given))


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
    near, far = _distance(x)[0], _distance(y)[1]
    return near > 0 and far < INF and (rounded(dtype, np.divide, near, far) or 0) > 0


@transfer("floordiv", "fmod")
@integers
def _floordiv(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    if v.op.name == "fmod":
        sign = Fact(0.0 if x.nonnegative else None, 0.0 if x.nonpositive else None)
        return Fact(sign.low, sign.high, x.nan or y.nan or y.zero or x.inf, False, True, x.integer and y.integer)
    positive = x.nonnegative and y.positive
    nan = x.nan or y.nan or y.zero or x.inf
    return Fact(0.0 if positive else None, None, nan, y.zero or x.inf or not x.integer or not y.integer, True, True)


@transfer("mod")
@integers
def _mod(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    low, high = ends(y)
    nan = x.nan or y.nan or y.zero or x.inf
    whole = x.integer and y.integer
    if y.positive:  # a tiny negative x gives y itself
        return Fact(0.0, high, nan, y.inf, True, whole)
    return Fact(low, 0.0, nan, y.inf, True, whole) if y.negative else Fact(nan=nan, inf=y.inf, integer=whole)


@transfer("pow")
@integers
def _pow(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    number = splat_of(v.operands[1])
    nan = x.nan or y.nan or not (x.nonnegative or y.integer)
    even = number is not None and np.isfinite(number) and float(number) % 2 == 0
    if even or x.positive or (x.nonnegative and y.nonnegative):
        low, high = ends(x)
        small = x.nonnegative and high <= 1 and y.nonnegative
        return Fact(0.0, 1.0 if small else None, nan, not small, True, x.integer and y.integer and y.nonnegative)
    return Fact(nan=nan, integer=x.integer and y.integer and y.nonnegative)


# --- magnitude, sign, order -------------------------------------------------------------------------------------------


@transfer("abs")
def _abs(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.operands[0].dtype.kind == "f":
        near, far = _distance(x)
        return Fact(near, far, x.nan, x.inf, x.zero, x.integer, _structure(v, given))
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
    far = _distance(x)[1]
    return Fact(-far, far, x.nan, x.inf, x.zero, x.integer)


@transfer("maximum", "fmax")
@integers
def _maximum(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    (a, b), (c, d) = ends(x), ends(y)
    ignores = v.op.name == "fmax"
    nan = x.nan and y.nan if ignores else x.nan or y.nan
    low = max(a, c) if not ignores or not (x.nan or y.nan) else (c if not y.nan else a if not x.nan else min(a, c))
    out = either([x, y])
    zero = not (x.nonzero and y.nonzero) and not (not ignores and (x.positive or y.positive))
    inf = (x.inf or y.inf) and not (max(b, d) < INF and low > -INF)
    return Fact(low, max(b, d), nan, inf, zero, out.integer, _structure(v, given))


@transfer("minimum", "fmin")
@integers
def _minimum(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    (a, b), (c, d) = ends(x), ends(y)
    ignores = v.op.name == "fmin"
    nan = x.nan and y.nan if ignores else x.nan or y.nan
    high = min(b, d) if not ignores or not (x.nan or y.nan) else (d if not y.nan else b if not x.nan else max(b, d))
    out = either([x, y])
    zero = not (x.nonzero and y.nonzero) and not (not ignores and (x.negative or y.negative))
    inf = (x.inf or y.inf) and not (high < INF and min(a, c) > -INF)
    return Fact(min(a, c), high, nan, inf, zero, out.integer, _structure(v, given))


@transfer("hypot")
def _hypot(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    return Fact(0.0, None, x.nan or y.nan, True, x.zero and y.zero)


# --- functions --------------------------------------------------------------------------------------------------------


def _monotone(name: str, f: Callable[[Any], Any], domain: Ends = (-INF, INF), image: Ends = (-INF, INF),
              zero: bool = False) -> None:
    """Declare a function that grows: its range is that of the ends, and within ``image``. nan outside of ``domain``.

    ``zero``: it is zero only at zero.
    """

    def fact(v: Value, given: list[Fact]) -> Fact:
        (x,) = given
        if v.dtype.kind != "f":
            return UNKNOWN
        a, b = ends(x)
        low = _near(v.dtype, f, max(a, domain[0]), -INF) if b >= domain[0] else None
        high = _near(v.dtype, f, min(b, domain[1]), INF) if a <= domain[1] else None
        low = image[0] if low is None else max(low, image[0])
        high = image[1] if high is None else min(high, image[1])
        nan = x.nan or a < domain[0] or b > domain[1]
        return Fact(low, high, nan, True, x.zero if zero else True)

    transfer(name)(fact)


def _near(dtype: np.dtype, f: Callable[[Any], Any], x: float, towards: float) -> float | None:
    """f(x), moved a few units outwards where a library may be off: everywhere but at 0, 1 and infinity."""
    with np.errstate(all="ignore"):
        out = float(f(x))
        if out != out:
            return None
        if x == 0 or (x == 1 and out == 0) or math.isinf(x) or math.isinf(out):
            return out
        unit = float(np.spacing(dtype.type(abs(out))))
    return out + math.copysign(SLACK * max(unit, float(np.finfo(dtype).tiny)), towards)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _softplus(x: float) -> float:
    return float(np.logaddexp(x, 0.0))


_monotone("exp", np.exp, image=(0.0, INF))
_monotone("exp2", np.exp2, image=(0.0, INF))
_monotone("expm1", np.expm1, image=(-1.0, INF), zero=True)
_monotone("log", np.log, domain=(0.0, INF))
_monotone("log2", np.log2, domain=(0.0, INF))
_monotone("log10", np.log10, domain=(0.0, INF))
_monotone("log1p", np.log1p, domain=(-1.0, INF), zero=True)
_monotone("cbrt", np.cbrt, zero=True)
_monotone("sigmoid", _sigmoid, image=(0.0, 1.0))
_monotone("softplus", _softplus, image=(0.0, INF))
_monotone("tanh", np.tanh, image=(-1.0, 1.0))
_monotone("sinh", np.sinh)
_monotone("asinh", np.arcsinh)
_monotone("atan", np.arctan, image=(-2.0, 2.0))
_monotone("asin", np.arcsin, domain=(-1.0, 1.0), image=(-2.0, 2.0))
_monotone("acosh", np.arccosh, domain=(1.0, INF), image=(0.0, INF))
_monotone("atanh", np.arctanh, domain=(-1.0, 1.0))
_monotone("log1mexp", lambda x: -INF, domain=(-INF, 0.0), image=(-INF, 0.0))


@transfer("sqrt")
def _sqrt(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.dtype.kind != "f":
        return UNKNOWN
    a, b = ends(x)
    low = rounded(v.dtype, lambda p, _: np.sqrt(p), max(a, 0.0), 0)
    high = rounded(v.dtype, lambda p, _: np.sqrt(p), max(b, 0.0), 0)
    return Fact(low, high, x.nan or a < 0, x.inf, x.zero, False)


def _between(low: float, high: float, nan_of_inf: bool = False, zero: bool = True) -> Callable[..., Fact]:
    def fact(v: Value, given: list[Fact]) -> Fact:
        if v.dtype.kind != "f":
            return UNKNOWN
        nan = any(f.nan or (nan_of_inf and f.inf) for f in given)
        return Fact(low, high, nan, math.isinf(low) or math.isinf(high), zero)

    return fact


transfer("sin", "cos")(_between(-1.0, 1.0, True))
transfer("cosh")(_between(1.0, INF, zero=False))
transfer("erf")(_between(-1.0, 1.0))
transfer("erfc")(_between(0.0, 2.0))
transfer("erfcx")(_between(0.0, INF))
transfer("atan2")(_between(-3.15, 3.15))
transfer("trigamma")(_between(0.0, INF))


@transfer("acos")
def _acos(v: Value, given: list[Fact]) -> Fact:
    if v.dtype.kind != "f":
        return UNKNOWN
    low, high = ends(given[0])
    return Fact(0.0, 3.15, given[0].nan or low < -1 or high > 1, False)


@transfer("logaddexp")
def _logaddexp(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    low = max(ends(x)[0], ends(y)[0])
    low = low - SLACK * float(np.spacing(v.dtype.type(abs(low)))) if math.isfinite(low) else low
    return Fact(low, None, x.nan or y.nan)


@transfer("floor", "ceil", "trunc", "rint")
def _round(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    f = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint}[v.op.name]
    low, high = ends(x)
    return Fact(float(f(low)), float(f(high)), x.nan, x.inf, x.zero if x.integer else True, True)


# --- reductions -------------------------------------------------------------------------------------------------------


def _some(v: Value) -> bool:
    """Whether a reduction surely has elements."""
    shape = v.operands[0].shape
    return all(known_nonnegative(shape[a] - 1) for a in v.attrs["axes"])


@transfer("sum", "cumsum")
@integers
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
@integers
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


@transfer("logsoftmax")
def _logsoftmax(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    return Fact(None, None, x.nan or x.inf)


@transfer("unit_uniform")
def _unit_uniform(v: Value, _: list[Fact]) -> Fact:
    return Fact(0.0, 1.0, False, False)


@transfer("unit_exponential", "gamma_draw")
def _draw(v: Value, _: list[Fact]) -> Fact:
    return Fact(0.0, None)


@transfer("unit_normal")
def _normal(v: Value, _: list[Fact]) -> Fact:
    return Fact(None, None, False, False)


# --- products of arrays -----------------------------------------------------------------------------------------------


@transfer("dot")
@integers
def _dot(v: Value, given: list[Fact]) -> Fact:
    from symc.opt.structures import of_dot

    x, y = given
    props = of_dot(v, given)
    square = v.operands[0] is v.operands[1] and v.attrs["contract"][0] == v.attrs["contract"][1] and (
        len(v.attrs["contract"][0]) + len(v.attrs["batch"][0]) == v.operands[0].ndim)
    if square:  # a vector with itself: a sum of squares
        return Fact(0.0, None, x.nan, True, True, x.integer, props)
    calm = not (x.inf or y.inf or x.nan or y.nan)
    whole = x.integer and y.integer
    if (x.nonnegative and y.nonnegative) or (x.nonpositive and y.nonpositive):
        return Fact(0.0, None, not calm, True, True, whole, props)
    if (x.nonnegative and y.nonpositive) or (x.nonpositive and y.nonnegative):
        return Fact(None, 0.0, not calm, True, True, whole, props)
    return Fact(nan=True, integer=whole, props=props)


# --- conditions -------------------------------------------------------------------------------------------------------

TRUE, FALSE = Fact(1, 1), Fact(0, 0)
ANY = Fact(0, 1)


@transfer("lt", "le", "gt", "ge")
def _compare(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    name = v.op.name
    if name in ("gt", "ge"):
        x, y = y, x
    strict = name in ("lt", "gt")
    nan = v.operands[0].dtype.kind == "f" and (x.nan or y.nan)
    if _below(x, y, strict):
        return ANY if nan else TRUE
    return FALSE if _below(y, x, not strict) else ANY


def _below(x: Fact, y: Fact, strict: bool) -> bool:
    """x < y (or <=) for all elements that are not nan."""
    if not strict:
        return at_most(x.high, y.low)
    if above(y.low, x.high):
        return True
    return at_most(x.high, 0) and at_least(y.low, 0) and (x.nonzero or y.nonzero)


@transfer("eq", "ne")
def _equal(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    if v.operands[0].dtype.kind == "c":
        apart = False
    else:
        apart = _below(x, y, True) or _below(y, x, True)
    number = splat_of(v.operands[1])
    apart = apart or (number is not None and number == 0 and x.nonzero)
    if apart:
        return FALSE if v.op.name == "eq" else TRUE
    exactly = x.low is not None and x.low == x.high and y.low is not None and y.low == y.high and x.low == y.low
    if exactly and not x.nan and not y.nan and v.operands[0].dtype.kind != "c":
        return TRUE if v.op.name == "eq" else FALSE
    return ANY


@transfer("isnan")
def _isnan(v: Value, given: list[Fact]) -> Fact:
    return ANY if given[0].nan else FALSE


@transfer("isinf")
def _isinf(v: Value, given: list[Fact]) -> Fact:
    return ANY if given[0].inf else FALSE


@transfer("isfinite")
def _isfinite(v: Value, given: list[Fact]) -> Fact:
    return TRUE if given[0].finite else ANY


@transfer("signbit")
def _signbit(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if x.nan or x.zero:
        return ANY
    return FALSE if x.positive else TRUE if x.negative else ANY


@transfer("not")
def _not(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.dtype.kind != "b":
        return UNKNOWN
    return FALSE if at_least(x.low, 1) else TRUE if at_most(x.high, 0) else ANY


@transfer("and")
@integers
def _unused_and(v: Value, given: list[Fact]) -> Fact:
    return UNKNOWN


def _logic(v: Value, given: list[Fact]) -> Fact:
    if v.dtype.kind != "b":
        return _unused_and(v, given)
    wins = 0 if v.op.name == "and" else 1
    if any(f.low == f.high == wins for f in given):
        return FALSE if wins == 0 else TRUE
    return (TRUE if wins == 0 else FALSE) if all(f.low == f.high == 1 - wins for f in given) else ANY


transfer("and", "or")(_logic)


@transfer("any", "all")
def _quantified(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.op.name == "all" and at_least(x.low, 1):
        return TRUE
    return FALSE if v.op.name == "any" and at_most(x.high, 0) else ANY
