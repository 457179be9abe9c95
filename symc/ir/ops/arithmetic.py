"""Arithmetic on numbers: sums, products, quotients and remainders, powers, magnitude and sign, minimum and maximum.

Overflow of integers wraps, and integer division by zero gives 0, as in NumPy. Where a function has no derivative, or
has many subgradients, one number is chosen:

* d abs(x) at 0 is 0, d sign(x) is 0 everywhere, d copysign(x, y) / dx at x = 0 is 0;
* maximum, minimum, fmax, fmin split the derivative evenly between operands that are equal;
* d x**0 / dx is 0 also at x = 0, and d 0**y / dy is 0 for y >= 0;
* d hypot at (0, 0) is (0, 0);
* d mod(x, y) / dx and d fmod(x, y) / dx are 1 also at the jumps; d floordiv is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.ir import ranges
from symc.ir.facts import Exact, Facts
from symc.ir.op import Custom, Elementwise, Linear, Multilinear, Op, lookup
from symc.ir.ops.compare import eq, ge, isfinite
from symc.ir.ops.elementwise import elementwise, like
from symc.ir.ops.logic import and_, not_, where
from symc.ir.value import Value

NUMBERS = "iufc"
REAL = "iuf"


def _ordered(f: Callable[..., Any]) -> Exact:
    """The greater or lesser of two numbers, and nan if either is."""
    return Exact(lambda mp, x, y: mp.nan if mp.isnan(x) or mp.isnan(y) else f(x, y), far=True)


def conjugate(x: Value) -> Value:
    """The complex conjugate; x itself for real dtypes."""
    return lookup("conj")(x) if x.dtype.kind == "c" else x


# --- sums and products ------------------------------------------------------------------------------------------------

add = elementwise("add", 2, "b" + NUMBERS, np.add, (1, 1), identity=0,
                  traits=["commutative", "associative"], doc="x + y (for bool: or).",
                  facts=Facts(exact=Exact(lambda mp, x, y: x + y, far=True), keeps_zero=True, rounding="short",
                              indeterminate=True,
                              symbol="+", range=ranges.sums))
sub = elementwise("sub", 2, NUMBERS, np.subtract, (1, -1), doc="x - y.",
                  facts=Facts(exact=Exact(lambda mp, x, y: x - y, far=True), keeps_zero=True, rounding="short",
                              indeterminate=True,
                              symbol="-", range=ranges.differences))
mul = elementwise("mul", 2, "b" + NUMBERS, np.multiply, (lambda out, x, y: y, lambda out, x, y: x), identity=1,
                  traits=["commutative", "associative"], doc="x * y (for bool: and).",
                  facts=Facts(exact=Exact(lambda mp, x, y: x * y, far=True), rounding="short", underflow="nonzero",
                              indeterminate=True, symbol="*", range=ranges.products))
times: Op = elementwise("rounded_mul", 2, "f", np.multiply, (lambda out, x, y: y, lambda out, x, y: x),
                        traits=["commutative"],
                        doc="x * y, rounded as NumPy rounds it: no one operation with a sum. Kernels are made of it.")
neg = elementwise("neg", 1, NUMBERS, np.negative, (-1,), traits=["involution"], doc="-x.",
                  facts=Facts(exact=Exact(lambda mp, x: -x, far=True), rounding="zeros", keeps_zero=True,
                              range=ranges.negatives))


def _mulz(x, y):
    return np.where(x == 0, np.zeros_like(x), x * y)


def _mulz_second(g: Value, v: Value) -> Value:
    """The second operand does not matter where the first is 0, even if g is infinite or nan there. (Where g is finite
    nothing is chosen: the derivative of this by x is g, also where x is 0.)"""
    x = v.operands[0]
    lost = and_(eq(x, 0), not_(isfinite(g)))
    return mulz(where(lost, like(g, 0), g), conjugate(x))


mulz: Op = elementwise("mulz", 2, "fc", _mulz,
                       Multilinear((lambda g, v: mulz(g, conjugate(v.operands[1])), _mulz_second)), traits=["selects"],
                       doc="x * y, and 0 where x is 0 even if y is infinite or nan: how a zero cotangent stays zero.",
                       facts=Facts(exact=Exact(lambda mp, x, y: x * y if x else mp.mpf(0), far=True),
                                   rounding="short", underflow="nonzero", indeterminate=True, wild=True))

# --- quotients, remainders, powers ------------------------------------------------------------------------------------

div = elementwise("div", 2, "fc", np.divide, (lambda out, x, y: 1 / y, lambda out, x, y: -out / y),
                  singular=True, doc="x / y, for floats and complex.",
                  facts=Facts(exact=Exact(lambda mp, x, y: mp.mpf(x) / y, far=True), divisor=1, underflow="nonzero",
                              indeterminate=True, symbol="/"))
floordiv = elementwise("floordiv", 2, REAL, np.floor_divide, (None, None), traits=["jumps"],
                       doc="The floor of x / y; for integers 0 where y is 0.",
                       facts=Facts(exact=Exact(lambda mp, x, y: x // y), divisor=1, wild=True, range=ranges.quotients))
mod = elementwise("mod", 2, REAL, np.remainder, (1, lambda out, x, y: -floordiv(x, y)), singular=True,
                  traits=["jumps"],
                  doc="x - y * floordiv(x, y): the sign of y, as Python's %; for integers 0 where y is 0.",
                  facts=Facts(exact=Exact(lambda mp, x, y: x - y * mp.floor(x / y)), divisor=1, indeterminate=True,
                              wild=True, range=ranges.remainders))
fmod = elementwise("fmod", 2, REAL, np.fmod, (1, lambda out, x, y: -lookup("trunc")(x / y)), singular=True,
                   traits=["jumps"],
                   doc="x - y * trunc(x / y): the sign of x, as C's fmod; for integers 0 where y is 0.",
                   facts=Facts(divisor=1, indeterminate=True, wild=True))


def _pow(x, y):
    if x.dtype.kind != "i":
        return np.power(x, y)
    inverse = y < 0
    whole = np.power(x, np.where(inverse, np.zeros_like(y), y))
    reciprocal = np.where(abs(x) == 1, np.where(y % 2 == 0, np.ones_like(x), x), np.zeros_like(x))
    return np.where(inverse, reciprocal, whole)


def _pow_base(out: Value, x: Value, y: Value) -> Value:
    return mulz(y, pow_(x, y - 1))


def _pow_exponent(out: Value, x: Value, y: Value) -> Value:
    zero = eq(x, 0) if x.dtype.kind == "c" else and_(eq(x, 0), ge(y, 0))
    return mulz(out, lookup("log")(where(zero, like(x, 1), x)))


pow_ = elementwise("pow", 2, NUMBERS, _pow, (_pow_base, _pow_exponent), singular=True, numpy=np.power,
                   doc="x ** y. A negative power of an integer is 0, except of 1 and -1.",
                   facts=Facts(exact=Exact(lambda mp, x, y: x ** (int(y) if y == mp.floor(y) and abs(y) < 1e9 else y)),
                               divisor=0, underflow="nonzero", indeterminate=True,
                               kernel="vectorized", symbol="**"))

gcd = elementwise("gcd", 2, "iu", np.gcd, (None, None), traits=["commutative", "associative"],
                  doc="The greatest common divisor, not negative.", facts=Facts(kernel="scalar"))

# --- magnitude and sign -----------------------------------------------------------------------------------------------


def _abs_jvp(tangents, v):
    (x,), (t,) = v.operands, tangents
    return real(conj(sign(x)) * t) if x.dtype.kind == "c" else t * sign(x)


def _abs_vjp(g, v):
    (x,) = v.operands
    return (sign(x) * complex_(g, like(g, 0)) if x.dtype.kind == "c" else g * sign(x),)


def _sign_change(t: Any, v: Value) -> Value | None:
    """Tangent of z / |z|; the map is its own adjoint."""
    (x,) = v.operands
    if x.dtype.kind != "c":
        return None
    size = abs_(x)
    size = where(eq(size, 0), like(size, 1), size)
    across = t - v * _real_part(conj(v) * t)
    return where(eq(x, 0), like(x, 0), across / complex_(size, like(size, 0)))


def _real_part(x: Value) -> Value:
    part = real(x)
    return complex_(part, like(part, 0))


abs_ = elementwise("abs", 1, NUMBERS, np.abs, Custom(_abs_jvp, _abs_vjp), result="real",
                   doc="|x|; for complex x the real length, without overflow.",
                   facts=Facts(exact=Exact(lambda mp, x: abs(x), far=True), rounding="zeros", keeps_zero=True,
                               keeps_one=True))
sign = elementwise("sign", 1, NUMBERS, np.sign,
                   Custom(lambda t, v: _sign_change(t[0], v), lambda g, v: (_sign_change(g, v),)),
                   traits=["jumps"], doc="-1, 0 or 1; x / |x| for complex x; nan for nan.",
                   facts=Facts(exact=Exact(lambda mp, x: x if mp.isnan(x) else mp.mpf((x > 0) - (x < 0)), far=True),
                               rounding="zeros", keeps_zero=True, keeps_one=True))
copysign: Op = elementwise("copysign", 2, "f", np.copysign, (lambda out, x, y: sign(x) * copysign(like(y, 1), y), None),
                           doc="|x| with the sign of y, of zeros too.",
                           facts=Facts(kernel="cheap", exact=Exact(lambda mp, x, y: abs(x) * (-1 if y < 0 else 1)),
                                       rounding="zeros", wild=True))
nextafter = elementwise("nextafter", 2, "f", np.nextafter, (1, None),
                        doc="The next number after x on the way to y.",
                        facts=Facts(wild=True, bits=True))


def _hypot_partial(out: Value, x: Value) -> Value:
    return x / where(eq(out, 0), like(out, 1), out)


hypot = elementwise("hypot", 2, "f", np.hypot,
                    (lambda out, x, y: _hypot_partial(out, x), lambda out, x, y: _hypot_partial(out, y)),
                    traits=["commutative"], doc="The square root of x*x + y*y, without overflow on the way.",
                    facts=Facts(exact=Exact(lambda mp, x, y: mp.sqrt(x * x + y * y), far=True), kernel="vectorized"))

# --- minimum and maximum ----------------------------------------------------------------------------------------------


def _chosen(out: Value, x: Value, y: Value) -> Value:
    """1 where x is the result, 1/2 where both are."""
    return where(eq(x, y), like(x, 0.5), where(eq(out, x), like(x, 1), like(x, 0)))


_CHOICE = Elementwise((_chosen, lambda out, x, y: _chosen(out, y, x)))


def lowest(dtype: np.dtype):
    """The least number of a dtype: -inf for floats."""
    return dtype.type({"b": False, "f": -np.inf}[dtype.kind] if dtype.kind in "bf" else np.iinfo(dtype).min)


def highest(dtype: np.dtype):
    """The greatest number of a dtype: inf for floats."""
    return dtype.type({"b": True, "f": np.inf}[dtype.kind] if dtype.kind in "bf" else np.iinfo(dtype).max)


_ORDER = ["commutative", "associative", "idempotent", "selects"]
maximum = elementwise("maximum", 2, "b" + REAL, np.maximum, _CHOICE, traits=_ORDER, identity=lowest,
                      doc="The greater of x and y; nan if either is nan.",
                      facts=Facts(exact=_ordered(max), keeps_zero=True, rounding="zeros", range=ranges.greatest))
minimum = elementwise("minimum", 2, "b" + REAL, np.minimum, _CHOICE, traits=_ORDER, identity=highest,
                      doc="The lesser of x and y; nan if either is nan.",
                      facts=Facts(exact=_ordered(min), keeps_zero=True, rounding="zeros", range=ranges.least))
fmax = elementwise("fmax", 2, "f", np.fmax, _CHOICE, traits=_ORDER,
                   doc="The greater of x and y; a nan counts as missing.",
                   facts=Facts(exact=Exact(lambda mp, x, y: max(x, y), far=True), keeps_zero=True, rounding="zeros"))
fmin = elementwise("fmin", 2, "f", np.fmin, _CHOICE, traits=_ORDER,
                   doc="The lesser of x and y; a nan counts as missing.",
                   facts=Facts(exact=Exact(lambda mp, x, y: min(x, y), far=True), keeps_zero=True, rounding="zeros"))

# --- complex numbers --------------------------------------------------------------------------------------------------


def _complex(x, y):
    out = np.empty(x.shape, np.complex64 if x.dtype == np.float32 else np.complex128)
    out.real, out.imag = x, y
    return out


conj: Op = elementwise("conj", 1, "c", np.conjugate, Linear(lambda g, v: (conj(g),)), traits=["involution"],
                       doc="The complex conjugate.",
                       facts=Facts(exact=Exact(lambda mp, x: x), rounding="none", keeps_zero=True, keeps_one=True))
real = elementwise("real", 1, "c", np.real, Linear(lambda g, v: (complex_(g, like(g, 0)),)), result="real",
                   doc="The real part.",
                   facts=Facts(exact=Exact(lambda mp, x: x), rounding="none", keeps_zero=True, keeps_one=True))
imag = elementwise("imag", 1, "c", np.imag, Linear(lambda g, v: (complex_(like(g, 0), g),)), result="real",
                   doc="The imaginary part.",
                   facts=Facts(rounding="none", keeps_zero=True))
complex_: Op = elementwise("complex", 2, "f", _complex, Linear(lambda g, v: (real(g), imag(g))), result="complex",
                           doc="x + y*i of two float32 or two float64.",
                           facts=Facts(rounding="none"))

__all__ = ["abs_", "add", "complex_", "conj", "conjugate", "copysign", "div", "floordiv", "fmax", "fmin", "fmod",
           "gcd", "highest", "hypot", "imag", "like", "lowest", "maximum", "minimum", "mod", "mul", "mulz", "neg",
           "nextafter", "pow_", "real", "sign", "sub", "times"]
