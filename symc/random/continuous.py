"""Continuous distributions that are a function of one uniform number, so their gradients follow from the formula."""

from __future__ import annotations

from typing import Any

from symc.errors import DTypeError
from symc.ir.dtypes import finfo, is_narrow
from symc.ir.op import lookup
from symc.ir.ops.arithmetic import maximum, minimum, neg
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import ge, gt, le, lt
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import shl, shr, where
from symc.ir.ops.math import erfc, exp, expm1, log, log1p, sqrt
from symc.ir.ops.random import normal_inverse, random_bits, unit_normal
from symc.ir.types import DTYPE_NAMES, as_dtype
from symc.ir.value import Value
from symc.random.core import F64, U32, U64, Draw, as_key, distribution, location_scale, more, ordered, prepare, sizes
from symc.tensors.convert import convert
from symc.tensors.tensor import Tensor


@distribution
def bits(key: Any, shape: Any = (), dtype: Any = "uint32") -> Tensor:
    """Independent random bits: uint8, uint16, uint32 or uint64."""
    d = as_dtype(dtype)
    if d.kind != "u":
        raise DTypeError(f"bits gives unsigned integers, not {DTYPE_NAMES[d]}")
    v = random_bits(as_key(key, "bits"), shape=sizes(shape, "bits"), dtype=U64 if d == U64 else U32)
    return Tensor(v if d.itemsize >= 4 else cast(shr(v, 32 - 8 * d.itemsize), dtype=d))


def unit(draw: Draw) -> Value:
    """Numbers in [0, 1) in the dtype of the result."""
    if is_narrow(draw.dtype):  # rounding 24 bits to 11 could give 1
        digits = finfo(draw.dtype).nmant + 1
        return cast(shr(draw.bits(U32), 32 - digits), dtype=draw.dtype) * 2.0**-digits
    return draw.unit("unit_uniform")


@distribution
def uniform(key: Any, shape: Any = None, dtype: Any = None, low: Any = 0.0, high: Any = 1.0) -> Tensor:
    """Numbers in [low, high), each equally likely: 53 random bits in float64, 24 in float32, 11 in float16, 8 in
    bfloat16."""
    d = prepare("uniform", key, shape, dtype, low=(low, "any"), high=(high, "any"))
    a, b = d.parameters
    span = b - a if not (isinstance(low, int | float) and low == 0) else b
    return location_scale(unit(d), a, span)


@distribution
def random(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Numbers in [0, 1), each equally likely."""
    return Tensor(unit(prepare("random", key, shape, dtype)))


@distribution
def normal(key: Any, shape: Any = None, dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Normal numbers with mean ``loc`` and standard deviation ``scale``.

    The inverse distribution function at a random number with all its bits: float32 reaches 6.3 standard deviations,
    float64 9.1.
    """
    d = prepare("normal", key, shape, dtype, loc=(loc, "any"), scale=(scale, "nonnegative"))
    return location_scale(d.unit("unit_normal"), *d.parameters)


@distribution
def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, *, mean: Any = 0.0) -> Tensor:
    """exp of normal numbers with this mean and standard deviation ``sigma``."""
    d = prepare("lognormal", key, shape, dtype, mean=(mean, "any"), sigma=(sigma, "nonnegative"))
    return Tensor(exp(location_scale(d.unit("unit_normal"), *d.parameters).value))


@distribution
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, loc: Any = 0.0,
                     scale: Any = 1.0) -> Tensor:
    """loc + scale * z, where z is a standard normal number between ``lower`` and ``upper``, which may be infinite."""
    d = prepare("truncated_normal", key, shape, dtype, F64, lower=(lower, "any"), upper=(upper, "any"),
                loc=(loc, "any"), scale=(scale, "nonnegative"))  # fmt: skip
    ordered("truncated_normal", strict=True, lower=lower, upper=upper)
    a, b, centre, width = d.parameters
    right = gt(a, 0)  # the left tail is the accurate one
    a, b = where(right, neg(b), a), where(right, neg(a), b)
    u = d.unit("unit_uniform", F64) + 2.0**-54
    z = maximum(minimum(where(lt(b, -_FAR), _far_tail(a, b, u), _middle(a, b, u)), b), a)
    return Tensor(convert(location_scale(where(right, neg(z), z), centre, width).value, d.dtype))


_FAR = 30.0


def _middle(a: Value, b: Value, u: Value) -> Value:
    """Numbers by the distribution function, for b that are not far in the left tail."""
    far = lt(b, -_FAR)
    a, b = where(far, like(a, -1), a), where(far, like(b, 1), b)
    low, high = 0.5 * erfc(a * -(0.5**0.5)), 0.5 * erfc(b * -(0.5**0.5))
    return normal_inverse(low + u * (high - low))


def _far_tail(a: Value, b: Value, u: Value) -> Value:
    """Beyond 30 standard deviations the density is b exp(-b**2/2) up to 1 / b**2 of itself."""
    far = lt(b, -_FAR)
    a, b = where(far, a, like(a, -32)), where(far, b, like(b, -31))
    share = expm1(0.5 * (b - a) * (b + a))
    return neg(sqrt(b * b - 2 * log1p(u * share)))


@distribution
def exponential(key: Any, shape: Any = None, dtype: Any = None, *, scale: Any = 1.0) -> Tensor:
    """Exponential numbers with mean ``scale``."""
    d = prepare("exponential", key, shape, dtype, scale=(scale, "nonnegative"))
    return location_scale(d.unit("unit_exponential"), None, d.parameters[0])


def _signed(d: Draw, f: Any) -> Value:
    """f of the exponential number that all bits but the first give, with the sign that the first gives."""
    wide = d.dtype == F64
    v = d.bits(U64 if wide else U32)
    x = f(convert(lookup("unit_exponential")(shl(v, 1)), d.dtype))
    return where(ge(v, 2 ** (63 if wide else 31)), x, neg(x))


@distribution
def laplace(key: Any, shape: Any = None, dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Numbers with density exp(-abs(x - loc) / scale) / (2 scale)."""
    d = prepare("laplace", key, shape, dtype, loc=(loc, "any"), scale=(scale, "nonnegative"))
    return location_scale(_signed(d, lambda x: x), *d.parameters)


@distribution
def logistic(key: Any, shape: Any = None, dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """loc + scale * log(u / (1 - u)) for uniform u, accurate in both tails."""
    d = prepare("logistic", key, shape, dtype, loc=(loc, "any"), scale=(scale, "nonnegative"))
    e = d.unit("unit_exponential")
    return location_scale(log(expm1(e)), *d.parameters)  # e is at most 45


@distribution
def gumbel(key: Any, shape: Any = None, dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """loc - scale * log(-log(u)) for uniform u, accurate in both tails."""
    d = prepare("gumbel", key, shape, dtype, loc=(loc, "any"), scale=(scale, "nonnegative"))
    return location_scale(d.unit("unit_gumbel"), *d.parameters)


@distribution
def cauchy(key: Any, shape: Any = None, dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Numbers with density 1 / (pi scale (1 + ((x - loc) / scale)**2))."""
    d = prepare("cauchy", key, shape, dtype, loc=(loc, "any"), scale=(scale, "nonnegative"))
    v = d.bits()
    halves = (v, more(v, 0)) if d.dtype == F64 else (cast(v, dtype=U32), cast(shr(v, 32), dtype=U32))
    x, y = (unit_normal(b) for b in halves)
    return location_scale(convert(x / y, d.dtype), *d.parameters)


@distribution
def rayleigh(key: Any, scale: Any = 1.0, shape: Any = None, dtype: Any = None) -> Tensor:
    """scale * sqrt(2 e) for exponential e."""
    d = prepare("rayleigh", key, shape, dtype, scale=(scale, "nonnegative"))
    return location_scale(sqrt(2 * d.unit("unit_exponential")), None, d.parameters[0])


@distribution
def weibull(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, scale: Any = 1.0) -> Tensor:
    """scale * e**(1 / a) for exponential e."""
    d = prepare("weibull", key, shape, dtype, a=(a, "positive"), scale=(scale, "nonnegative"))
    return location_scale(exp(log(d.unit("unit_exponential")) / d.parameters[0]), None, d.parameters[1])


@distribution
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None, *, scale: Any = 1.0) -> Tensor:
    """Numbers above ``scale`` with P(X > x) = (scale / x)**b, as in jax.random. (NumPy's is this less one.)"""
    d = prepare("pareto", key, shape, dtype, b=(b, "positive"), scale=(scale, "nonnegative"))
    return location_scale(exp(d.unit("unit_exponential") / d.parameters[0]), None, d.parameters[1])


@distribution
def power(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers in [0, 1] with density a x**(a - 1)."""
    d = prepare("power", key, shape, dtype, a=(a, "positive"))
    return Tensor(exp(neg(d.unit("unit_exponential") / d.parameters[0])))


@distribution
def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers from ``left`` to ``right`` whose density rises in a line up to ``mode`` and falls in a line after it."""
    d = prepare("triangular", key, shape, dtype, left=(left, "any"), mode=(mode, "any"), right=(right, "any"))
    ordered("triangular", left=left, mode=mode, right=right)
    a, m, b = d.parameters
    u, span = unit(d), b - a
    rising = le(u * span, m - a)
    up, down = u * span * (m - a), (1 - u) * span * (b - m)
    one = like(u, 1)
    up, down = where(rising, up, one), where(rising, one, down)  # no derivative of a root at 0 from the other side
    return Tensor(where(rising, a + sqrt(up), b - sqrt(down)))


