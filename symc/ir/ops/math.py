"""Mathematical functions: exponentials and logarithms, trigonometric and hyperbolic functions and their inverses, the
error and gamma functions, rounding, and named forms that stay accurate where the obvious expression does not.

Outside its real domain a function of a float gives nan. Where a function has no derivative one number is chosen: floor,
ceil, trunc and rint have derivative 0 everywhere, d atan2 at (0, 0) is (0, 0). Derivatives that are infinite
at the end of a domain (log and sqrt at 0, asin at 1, ...) stay infinite there, but a zero cotangent gives zero.
"""

from __future__ import annotations

import math

import numpy as np

from symc.ir.dtypes import finfo
from symc.ir.facts import Between, Exact, Facts, Monotone
from symc.ir.op import Op
from symc.ir.ops.arithmetic import abs_, hypot, maximum, mulz, neg
from symc.ir.ops.compare import eq, ge, gt, isfinite, isinf, lt, ne
from symc.ir.ops.elementwise import elementwise, like
from symc.ir.ops.logic import and_, where
from symc.ir.value import Value

INF = math.inf
LN2, LN10 = math.log(2), math.log(10)
TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)


def special(name: str, *first):
    """The function ``name`` of scipy.special, with ``first`` as its first arguments; SciPy is imported when it runs."""

    def reference(*arrays):
        import scipy.special

        return getattr(scipy.special, name)(*first, *arrays)

    return reference


def _exact_exp(mp, x):
    """A power of e, and its limit where that is beyond the range of every dtype."""
    return mp.exp(x) if mp.isnan(x) or abs(x) < 2.0**1000 else mp.inf if x > 0 else mp.mpf(0)


# --- exponentials and logarithms --------------------------------------------------------------------------------------

exp = elementwise("exp", 1, "fc", np.exp, (lambda out, x: out,), doc="e**x.",
                  facts=Facts(exact=Exact(_exact_exp, far=True),
                              underflow="always", kernel="vectorized", values=Monotone(np.exp, image=(0.0, INF))))
exp2 = elementwise("exp2", 1, "fc", np.exp2, (lambda out, x: out * LN2,), doc="2**x.",
                   facts=Facts(exact=Exact(lambda mp, x: mp.mpf(2) ** x), underflow="always", kernel="vectorized",
                               values=Monotone(np.exp2, image=(0.0, INF))))
expm1 = elementwise("expm1", 1, "fc", np.expm1, (lambda out, x: exp(x),), doc="exp(x) - 1, accurate near 0.",
                    facts=Facts(exact=Exact("expm1"), keeps_zero=True, kernel="vectorized",
                                values=Monotone(np.expm1, image=(-1.0, INF), zero=True)))
log = elementwise("log", 1, "fc", np.log, (lambda out, x: 1 / x,), singular=True, doc="The natural logarithm.",
                  facts=Facts(exact=Exact("log", far=True), poles=True, divisor=0, kernel="vectorized",
                              values=Monotone(np.log, domain=(0.0, INF))))
log2 = elementwise("log2", 1, "fc", np.log2, (lambda out, x: (1 / LN2) / x,), singular=True,
                   doc="The logarithm to base 2.",
                   facts=Facts(exact=Exact(lambda mp, x: mp.log(x) / mp.log(2), far=True), poles=True, divisor=0,
                               kernel="vectorized", values=Monotone(np.log2, domain=(0.0, INF))))
log10 = elementwise("log10", 1, "fc", np.log10, (lambda out, x: (1 / LN10) / x,), singular=True,
                    doc="The logarithm to base 10.",
                    facts=Facts(exact=Exact(lambda mp, x: mp.log(x) / mp.log(10), far=True), poles=True, divisor=0,
                                kernel="vectorized", values=Monotone(np.log10, domain=(0.0, INF))))
log1p = elementwise("log1p", 1, "fc", np.log1p, (lambda out, x: 1 / (x + 1),), singular=True,
                    doc="log(1 + x), accurate near 0.",
                    facts=Facts(exact=Exact("log1p", far=True), poles=True, keeps_zero=True,
                                kernel="vectorized", values=Monotone(np.log1p, domain=(-1.0, INF), zero=True)))
sqrt = elementwise("sqrt", 1, "fc", np.sqrt, (lambda out, x: 0.5 / out,), singular=True, doc="The square root.",
                   facts=Facts(exact=Exact("sqrt", far=True), rounding="short", keeps_zero=True, keeps_one=True,
                               kernel="vectorized",
                               in_logs=lambda e: e * 0.5))
cbrt = elementwise("cbrt", 1, "f", np.cbrt, (lambda out, x: (1 / 3) / (out * out),), singular=True,
                   doc="The real cube root, of negative numbers too.",
                   facts=Facts(exact=Exact(lambda mp, x: mp.sign(x) * mp.root(abs(x), 3), far=True), keeps_zero=True,
                               keeps_one=True,
                               kernel="vectorized", values=Monotone(np.cbrt, zero=True)))

# --- trigonometric and hyperbolic -------------------------------------------------------------------------------------


def _one_minus_square(x: Value) -> Value:
    return (1 - x) * (1 + x)


def _asin_partial(x: Value) -> Value:
    return 1 / (sqrt(1 - x) * sqrt(1 + x))  # two roots: right on both sides of the branch cuts


def _asinh_partial(out: Value, x: Value) -> Value:
    return 1 / (sqrt(x * x + 1) if x.dtype.kind == "c" else hypot(x, like(x, 1)))


def _atan2_partials():
    def over(out: Value, y: Value, x: Value, leg: Value) -> Value:
        radius = hypot(y, x)
        radius = where(eq(radius, 0), like(radius, 1), radius)
        return leg / radius / radius  # twice: the square would overflow

    return lambda out, y, x: over(out, y, x, x), lambda out, y, x: over(out, y, x, neg(y))


sin = elementwise("sin", 1, "fc", np.sin, (lambda out, x: cos(x),), doc="The sine of x radians.",
                  facts=Facts(exact=Exact("sin"), keeps_zero=True, kernel="vectorized",
                              values=Between(-1.0, 1.0, of_inf=True)))
cos: Op = elementwise("cos", 1, "fc", np.cos, (lambda out, x: -sin(x),), doc="The cosine of x radians.",
                      facts=Facts(exact=Exact("cos"), kernel="vectorized", values=Between(-1.0, 1.0, of_inf=True)))
tan = elementwise("tan", 1, "fc", np.tan, (lambda out, x: out * out + 1,), doc="The tangent of x radians.",
                  facts=Facts(exact=Exact("tan"), keeps_zero=True, kernel="vectorized"))
asin = elementwise("asin", 1, "fc", np.arcsin, (lambda out, x: _asin_partial(x),), singular=True,
                   doc="The inverse of sin.",
                   facts=Facts(exact=Exact("asin"), keeps_zero=True, kernel="vectorized",
                               values=Monotone(np.arcsin, domain=(-1.0, 1.0), image=(-2.0, 2.0))))
acos = elementwise("acos", 1, "fc", np.arccos, (lambda out, x: -_asin_partial(x),), singular=True,
                   doc="The inverse of cos.",
                   facts=Facts(exact=Exact("acos"), kernel="vectorized"))
atan = elementwise("atan", 1, "fc", np.arctan, (lambda out, x: 1 / (x * x + 1),), doc="The inverse of tan.",
                   facts=Facts(exact=Exact("atan"), keeps_zero=True, kernel="vectorized",
                               values=Monotone(np.arctan, image=(-2.0, 2.0))))
atan2 = elementwise("atan2", 2, "f", np.arctan2, _atan2_partials(),
                    doc="The angle of the point at height x and width y, in [-pi, pi]: atan(x / y) in its quadrant.",
                    facts=Facts(exact=Exact("atan2"), kernel="vectorized", values=Between(-3.15, 3.15)))
sinh = elementwise("sinh", 1, "fc", np.sinh, (lambda out, x: cosh(x),), doc="The hyperbolic sine.",
                   facts=Facts(exact=Exact("sinh"), keeps_zero=True, kernel="vectorized", values=Monotone(np.sinh)))
cosh: Op = elementwise("cosh", 1, "fc", np.cosh, (lambda out, x: sinh(x),), doc="The hyperbolic cosine.",
                       facts=Facts(exact=Exact("cosh"), kernel="vectorized", values=Between(1.0, INF, zero=False)))
tanh = elementwise("tanh", 1, "fc", np.tanh, (lambda out, x: _one_minus_square(out),), doc="The hyperbolic tangent.",
                   facts=Facts(exact=Exact("tanh"), keeps_zero=True, kernel="vectorized",
                               values=Monotone(np.tanh, image=(-1.0, 1.0))))
asinh = elementwise("asinh", 1, "fc", np.arcsinh, (_asinh_partial,), singular=True, doc="The inverse of sinh.",
                    facts=Facts(exact=Exact("asinh"), keeps_zero=True, kernel="vectorized",
                                values=Monotone(np.arcsinh)))
acosh = elementwise("acosh", 1, "fc", np.arccosh, (lambda out, x: 1 / (sqrt(x - 1) * sqrt(x + 1)),), singular=True,
                    doc="The inverse of cosh.",
                    facts=Facts(exact=Exact("acosh"), kernel="vectorized", wild=True,
                                values=Monotone(np.arccosh, domain=(1.0, INF), image=(0.0, INF))))
atanh = elementwise("atanh", 1, "fc", np.arctanh, (lambda out, x: 1 / _one_minus_square(x),), singular=True,
                    doc="The inverse of tanh.",
                    facts=Facts(exact=Exact("atanh"), poles=True, keeps_zero=True, kernel="vectorized", wild=True,
                                values=Monotone(np.arctanh, domain=(-1.0, 1.0))))

# --- error and gamma functions ----------------------------------------------------------------------------------------

erf = elementwise("erf", 1, "f", special("erf"), (lambda out, x: TWO_OVER_SQRT_PI * exp(-x * x),),
                  doc="The error function.",
                  facts=Facts(exact=Exact("erf"), keeps_zero=True, kernel="vectorized", values=Between(-1.0, 1.0)))
erfc = elementwise("erfc", 1, "f", special("erfc"), (lambda out, x: -TWO_OVER_SQRT_PI * exp(-x * x),),
                   doc="1 - erf(x), accurate for large x.",
                   facts=Facts(exact=Exact("erfc"), underflow="always", kernel="vectorized", values=Between(0.0, 2.0)))


def _erfcx_partial(out: Value, x: Value) -> Value:
    """2*x*erfcx(x) - 2/sqrt(pi), which cancels for large x; there, by the asymptotic series."""
    large = gt(x, 20.0 if x.dtype.itemsize > 4 else 5.0)
    t = 0.5 / (where(large, x, like(x, 20)) * where(large, x, like(x, 20)))
    series = like(x, 1)
    for k in range(15, 1, -2):
        series = 1 - k * t * series
    return where(large, -TWO_OVER_SQRT_PI * t * series, 2 * mulz(out, x) - TWO_OVER_SQRT_PI)


erfcx = elementwise("erfcx", 1, "f", special("erfcx"), (_erfcx_partial,),
                    doc="exp(x*x) * erfc(x), without overflow for large x.",
                    facts=Facts(exact=Exact(lambda mp, x: mp.exp(x * x) * mp.erfc(x)), underflow="always",
                                kernel="scalar", values=Between(0.0, INF)))
erfinv = elementwise("erfinv", 1, "f", special("erfinv"), (lambda out, x: exp(out * out) / TWO_OVER_SQRT_PI,),
                     singular=True, doc="The inverse of erf.",
                     facts=Facts(exact=Exact("erfinv"), poles=True, keeps_zero=True, kernel="vectorized", wild=True))


def _lgamma(x):
    tiny = np.abs(x) < 1e-300  # SciPy says inf for denormal numbers, and -inf at -inf; C and the limits do not
    return np.where(np.isneginf(x), np.inf, np.where(tiny, -np.log(np.abs(x)), special("gammaln")(x)))


lgamma = elementwise("lgamma", 1, "f", _lgamma, (lambda out, x: digamma(x),), singular=True,
                     doc="The logarithm of |gamma(x)|.",
                     facts=Facts(exact=Exact(lambda mp, x: mp.log(abs(mp.gamma(x)))), poles=True, divisor=0,
                                 kernel="vectorized", wild=True))
digamma: Op = elementwise("digamma", 1, "f", special("digamma"), (lambda out, x: trigamma(x),), singular=True,
                          doc="The derivative of lgamma.",
                          facts=Facts(exact=Exact("digamma"), poles=True, divisor=0, kernel="vectorized", wild=True))
trigamma: Op = elementwise("trigamma", 1, "f", special("polygamma", 1), (lambda out, x: polygamma(x, order=2),),
                           singular=True, doc="The derivative of digamma.",
                           facts=Facts(exact=Exact(lambda mp, x: mp.psi(1, x)), poles=True, divisor=0,
                                       kernel="scalar", wild=True, values=Between(0.0, INF)))


def _polygamma(x, order):
    import scipy.special

    return scipy.special.polygamma(order, x)


polygamma: Op = elementwise("polygamma", 1, "f", _polygamma,
                            (lambda out, x: polygamma(x, order=out.attrs["order"] + 1),),
                            singular=True, attrs=({"order": 2}, {"order": 3}),
                            doc="The derivative of digamma of order `order`, at least 1.",
                            facts=Facts(exact=Exact(lambda mp, x, order: mp.psi(order, x)),
                                        poles=True, divisor=0, kernel="scalar", wild=True))

# --- stable forms -----------------------------------------------------------------------------------------------------


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, np.ones_like(e)) / (1 + e)


def _log1mexp(x):
    return np.where(x > -LN2, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _logaddexp_share(x: Value, y: Value) -> Value:
    """exp(x - logaddexp(x, y)); equal infinities share evenly."""
    return where(and_(eq(x, y), isinf(x)), like(x, 0.5), sigmoid(x - y))


def _logaddexp_parts(v: Value) -> Value:
    x, y = v.operands
    top = maximum(x, y)
    return where(eq(x, y), x + LN2, top + log1p(exp(-abs_(x - y))))


def _log1mexp_parts(v: Value) -> Value:
    (x,) = v.operands
    return where(gt(x, -LN2), log(-expm1(x)), log1p(-exp(x)))


def _sigmoid_parts(v: Value) -> Value:
    return 1 / (1 + exp(-v.operands[0]))


def _softplus_parts(v: Value) -> Value:
    (x,) = v.operands
    return maximum(x, like(x, 0)) + log1p(exp(-abs_(x)))


softplus = elementwise("softplus", 1, "f", _softplus, (lambda out, x: sigmoid(x),), parts=_softplus_parts,
                       doc="log(1 + exp(x)), without overflow.",
                       facts=Facts(exact=Exact(lambda mp, x: mp.log1p(mp.exp(x))), underflow="always",
                                   kernel="vectorized", public=True, values=Monotone(_softplus, image=(0.0, INF))))
sigmoid: Op = elementwise("sigmoid", 1, "f", _sigmoid, (lambda out, x: out * (1 - out),),
                          parts=_sigmoid_parts, doc="1 / (1 + exp(-x)), without overflow.",
                          facts=Facts(exact=Exact(lambda mp, x: 1 / (1 + mp.exp(-x))), underflow="always",
                                      kernel="vectorized", public=True,
                                      values=Monotone(_sigmoid, image=(0.0, 1.0))))
log1mexp = elementwise("log1mexp", 1, "f", _log1mexp, (lambda out, x: exp(x) / expm1(x),), singular=True,
                       parts=_log1mexp_parts, doc="log(1 - exp(x)) for x <= 0, accurate at both ends.",
                       facts=Facts(exact=Exact(
                           lambda mp, x: mp.log1p(-mp.exp(x)) if x < -1 else mp.log(-mp.expm1(x))),
                           poles=True, kernel="vectorized", public=True))
logaddexp = elementwise("logaddexp", 2, "f", np.logaddexp,
                        (lambda out, x, y: _logaddexp_share(x, y), lambda out, x, y: _logaddexp_share(y, x)),
                        singular=True, traits=["commutative"], identity=-math.inf, parts=_logaddexp_parts,
                        doc="log(exp(x) + exp(y)), without overflow.",
                        facts=Facts(exact=Exact(lambda mp, x, y: mp.log(mp.exp(x) + mp.exp(y))), indeterminate=True,
                                    kernel="vectorized"))


def _log_cosh(x):
    size, t = np.abs(x), np.tanh(x)
    return np.where(size < 1, np.log1p(-(t * t)) * -0.5, size + np.log1p(np.exp(-2 * size)) - LN2)


def _log_cosh_parts(v: Value) -> Value:
    (x,) = v.operands
    size, t = abs_(x), tanh(x)
    return where(lt(size, 1), log1p(-(t * t)) * -0.5, size + log1p(exp(size * -2)) - LN2)


log_cosh = elementwise("log_cosh", 1, "f", _log_cosh, (lambda out, x: tanh(x),), parts=_log_cosh_parts,
                       doc="log(cosh(x)), without overflow, and accurate near 0.")


def _spherical_j0(x):
    safe = np.where(x == 0, np.ones_like(x), x)
    return np.where(x == 0, np.ones_like(x), np.sin(safe) / safe)


def _nonzero(x: Value) -> Value:
    return where(eq(x, 0), like(x, 1), x)


def _spherical_j0_parts(v: Value) -> Value:
    (x,) = v.operands
    return where(eq(x, 0), like(x, 1), sin(x) / _nonzero(x))


#: The series of the spherical Bessel function j1 is x/3 (1 - x²/10 (1 - x²/28 (1 - ...))).
_J1_SERIES = tuple(2 * k * (2 * k + 3) for k in range(1, 10))


def _j1_series(x, one):
    total = one
    for k in reversed(_J1_SERIES):
        total = one - x * x / k * total
    return x / 3 * total


def _spherical_j1(x):
    small, safe = np.abs(x) < 1, np.where(x == 0, np.ones_like(x), x)
    return np.where(small, _j1_series(np.where(small, x, np.zeros_like(x)), np.ones_like(x)),
                    (np.sin(safe) / safe - np.cos(safe)) / safe)


def _spherical_j1_parts(v: Value) -> Value:
    (x,) = v.operands
    small, safe = lt(abs_(x), 1), _nonzero(x)
    return where(small, _j1_series(where(small, x, like(x, 0)), like(x, 1)), (sin(safe) / safe - cos(safe)) / safe)


def _spherical_j1_partial(out: Value, x: Value) -> Value:
    return where(eq(x, 0), like(x, 1 / 3), spherical_j0(x) - 2 * out / _nonzero(x))


spherical_j0 = elementwise("spherical_j0", 1, "f", _spherical_j0, (lambda out, x: -spherical_j1(x),),
                           parts=_spherical_j0_parts, doc="sin(x) / x, and 1 at 0.")
spherical_j1: Op = elementwise("spherical_j1", 1, "f", _spherical_j1, (_spherical_j1_partial,),
                               parts=_spherical_j1_parts,
                               doc="(sin(x) / x - cos(x)) / x, minus the derivative of sin(x) / x, accurate near 0.")

# --- rounding ---------------------------------------------------------------------------------------------------------

floor = elementwise("floor", 1, "f", np.floor, (None,), traits=["jumps"], doc="The greatest integer not above x.",
                    facts=Facts(kernel="cheap", exact=Exact("floor"), rounding="zeros", keeps_zero=True,
                                keeps_one=True))
ceil = elementwise("ceil", 1, "f", np.ceil, (None,), traits=["jumps"], doc="The least integer not below x.",
                   facts=Facts(kernel="cheap", exact=Exact("ceil"), rounding="zeros", keeps_zero=True, keeps_one=True))
trunc = elementwise("trunc", 1, "f", np.trunc, (None,), traits=["jumps"], doc="x without its fraction.",
                    facts=Facts(kernel="cheap", exact=Exact(lambda mp, x: mp.floor(x) if x > 0 else mp.ceil(x)),
                                rounding="zeros", keeps_zero=True, keeps_one=True))
rint = elementwise("rint", 1, "f", np.rint, (None,), traits=["jumps"],
                   doc="The nearest integer; halves go to the even one.",
                   facts=Facts(kernel="cheap", exact=Exact("nint"), rounding="zeros", keeps_zero=True, keeps_one=True))

# --- mantissa and exponent --------------------------------------------------------------------------------------------


def _parted(k: int):
    def reference(x):
        finite = np.isfinite(x)
        parts = np.frexp(np.where(finite, x, x.dtype.type(0)))
        return parts[1].astype(x.dtype) if k else np.where(finite, parts[0], x).astype(x.dtype)

    return reference


def _exponent_parts(v: Value) -> Value:
    """Parts of the exponent: the logarithm rounded down, which may be off by one either way."""
    (x,) = v.operands
    size, known = abs_(x), finfo(x.dtype)
    tiny = lt(size, like(x, float(known.tiny)))
    size = where(tiny, size * 2.0 ** (known.nmant + 1), size)
    plain = and_(isfinite(x), ne(x, 0))
    e = floor(log2(where(plain, size, like(x, 1)))) + 1
    m = _divided(size, e)
    e = where(lt(m, 0.5), e - 1, where(ge(m, 1), e + 1, e)) - where(tiny, like(x, known.nmant + 1), like(x, 0))
    return where(plain, e, like(x, 0))


def _divided(x: Value, e: Value) -> Value:
    """x / 2**e, by two powers, of which one alone might be infinite or 0."""
    half = floor(e * 0.5)
    return x * exp2(-half) * exp2(half - e)


exponent = elementwise("exponent", 1, "f", _parted(1), (None,), traits=["jumps"],
                       parts=_exponent_parts, doc="e of x = m * 2**e with |m| in [0.5, 1); 0 of 0, infinities and nan.",
                       facts=Facts(kernel="cheap", keeps_zero=True, bits=True))
significand: Op = elementwise("significand", 1, "f", _parted(0), (lambda out, x: exp2(-exponent(x)),), traits=["jumps"],
                           parts=lambda v: _divided(v.operands[0], exponent(v.operands[0])),
                           doc="m of x = m * 2**e with |m| in [0.5, 1); 0, infinities and nan as they are.",
                           facts=Facts(kernel="cheap", keeps_zero=True, bits=True))
