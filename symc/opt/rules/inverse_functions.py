"""Inverse functions: a function of its inverse is its argument, where the inverse is defined everywhere on the way.

What overflows or rounds in between is gone with it. Where only one branch of the inverse is taken (``acos`` of a
cosine), the argument is another one, and nothing is rewritten. Logarithms and exponentials are in ``logs``.
"""

from __future__ import annotations

from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.compare import ge, le
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import where
from symc.ir.ops.math import acos, acosh, asin, asinh, atanh, cos, cosh, sin, sinh, tanh
from symc.opt.engine.declare import rule


@rule
def asinh_of_sinh(x):
    """The hyperbolic sine overflows at 710, and its inverse with it."""
    return asinh(sinh(x)), x


@rule
def acosh_of_cosh(x):
    """The hyperbolic cosine overflows at 710; near 0 it is 1, and small arguments are lost."""
    return acosh(cosh(x)), abs_(x)


@rule
def atanh_of_tanh(x):
    """The tangent is 1 from 20 on, where its inverse is infinite."""
    return atanh(tanh(x)), x


@rule
def sinh_of_asinh(x):
    """Two roundings for none."""
    return sinh(asinh(x)), x


@rule
def cosh_of_acosh(x):
    """Two roundings for none; below 1 there is no such number."""
    return cosh(acosh(x)), where(ge(x, 1), x, like(x, float("nan")))


@rule
def tanh_of_atanh(x):
    """Two roundings for none; beyond 1 there is no such number."""
    return tanh(atanh(x)), where(le(abs_(x), 1), x, like(x, float("nan")))


@rule
def sin_of_asin(x):
    """Two roundings for none; beyond 1 there is no such number."""
    return sin(asin(x)), where(le(abs_(x), 1), x, like(x, float("nan")))


@rule
def cos_of_acos(x):
    """Two roundings for none; beyond 1 there is no such number."""
    return cos(acos(x)), where(le(abs_(x), 1), x, like(x, float("nan")))
