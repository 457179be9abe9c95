"""Functions of numbers in terms of simpler ones, accurate where the obvious expression is not."""

from __future__ import annotations

import math

import numpy as np

from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.compare import eq, gt, isinf, isnan, lt, ne
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import and_, or_, where
from symc.ir.ops.math import atan, erf, exp, floor, log, sin, tan
from symc.ir.value import Value

#: Coefficients of Stirling's series of the logarithm of the gamma function, in 1 / z, 1 / z**3, ...
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
#: From here on the series has all digits.
FAR = 8


def is_negative(x: Value) -> Value:
    """True for numbers below zero, and for -0.0."""
    return or_(lt(x, 0), and_(eq(x, 0), lt(1 / x, 0)))


def expm1_parts(v: Value) -> Value:
    """expm1 by what rounding made of exp(x), whose error cancels (W. Kahan)."""
    (x,) = v.operands
    e = exp(x)
    near = and_(gt(abs_(x), 0), lt(abs_(x), 1))
    safe = where(near, e, like(e, 2))
    return where(near, where(eq(e, 1), x, (safe - 1) * x / log(where(eq(safe, 1), like(e, 2), safe))),
                 where(eq(x, 0), x, e - 1))


def log1p_parts(v: Value) -> Value:
    (x,) = v.operands
    u = x + 1
    near = and_(lt(abs_(x), 1), ne(u, 1))
    return where(near, log(u) * x / where(near, u - 1, like(u, 1)), where(eq(u, 1), x, log(u)))


def cbrt_parts(v: Value) -> Value:
    """A root of the size, with one step of Newton's."""
    (x,) = v.operands
    size_ = abs_(x)
    usual = and_(gt(size_, 0), lt(size_, np.inf))
    a = where(usual, size_, like(x, 1))
    r = exp(log(a) / 3)
    r = r - (r - a / (r * r)) / 3
    return where(usual, where(lt(x, 0), -r, r), x)


def atan2_parts(v: Value) -> Value:
    y, x = v.operands
    both = and_(isinf(x), isinf(y))
    one = lambda z: where(both, where(lt(z, 0), like(z, -1), like(z, 1)), z)
    a, b = abs_(one(y)), abs_(one(x))
    steep = gt(a, b)
    low, high = where(steep, b, a), where(steep, a, b)
    angle = atan(low / where(eq(high, 0), like(high, 1), high))
    angle = where(steep, math.pi / 2 - angle, angle)
    angle = where(is_negative(x), math.pi - angle, angle)
    return where(or_(isnan(x), isnan(y)), x + y, where(is_negative(y), -angle, angle))


def _moved(x: Value) -> tuple[Value, Value, Value, list[Value], Value]:
    """True where x is below a half; x less the integer next to it; True where y, which is 1 - x there and else x, is
    below ``FAR``; the places that it passes to get there; and where it gets."""
    low = lt(x, 0.5)
    y = where(low, 1 - x, x)
    small = lt(y, FAR)
    return low, x - floor(x + 0.5), small, [y + k for k in range(FAR)], where(small, y + FAR, y)


def _series(z: Value, terms: tuple[float, ...]) -> Value:
    """The sum of ``terms`` times odd powers of 1 / z."""
    square, total = 1 / (z * z), like(z, terms[-1])
    for c in reversed(terms[:-1]):
        total = total * square + c
    return total / z


def lgamma_parts(v: Value) -> Value:
    """Stirling's series, of a number that is far enough; smaller ones are moved there."""
    (x,) = v.operands
    low, part, small, places, z = _moved(x)
    passed = math.prod(places, start=like(x, 1))
    found = (z - 0.5) * (log(z) - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + _series(z, STIRLING)
    found = found - where(small, log(where(small, passed, like(z, 1))), like(z, 0))
    turned = math.log(math.pi) - log(abs_(sin(part * math.pi))) - found
    return where(isinf(x), abs_(x), where(low, turned, found))


def erfc_parts(v: Value) -> Value:
    """1 - erf(x) where few digits cancel; behind, the continued fraction of exp(x * x) * erfc(x), from its end."""
    (x,) = v.operands
    far = like(x, 1 if x.dtype.itemsize < 8 else 2)
    z = where(gt(abs_(x), far), abs_(x), far)
    tail = z
    for k in range(25 if x.dtype.itemsize < 8 else 60, 0, -1):
        tail = z + k / 2 / tail
    tail = exp(-(z * z)) / (tail * math.pi**0.5)
    return where(gt(abs_(x), far), where(lt(x, 0), 2 - tail, tail), 1 - erf(x))


def digamma_parts(v: Value) -> Value:
    """The derivative of the same series."""
    (x,) = v.operands
    low, part, small, places, z = _moved(x)
    passed = sum((1 / p for p in places), start=like(x, 0))
    found = log(z) - 0.5 / z - _series(z, tuple((2 * k + 1) * c for k, c in enumerate(STIRLING))) / z
    found = where(eq(z, np.inf), z, found - where(small, passed, like(z, 0)))
    turned = found - math.pi / tan(where(eq(part, 0), like(x, 0.25), part) * math.pi)
    pole = where(eq(x, 0), -1 / x, like(x, np.nan))
    return where(low, where(eq(part, 0), pole, turned), found)
