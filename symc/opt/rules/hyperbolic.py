"""Hyperbolic and trigonometric functions spelled with exponentials, roots and logs, and their inverses."""

from __future__ import annotations

from symc.ir.ops.arithmetic import hypot
from symc.ir.ops.math import (
    acosh,
    asinh,
    atanh,
    cos,
    cosh,
    exp,
    expm1,
    log,
    log1mexp,
    log1p,
    log_cosh,
    logaddexp,
    sin,
    sinh,
    spherical_j0,
    sqrt,
    tan,
    tanh,
)  # fmt: skip
from symc.opt.rule import rule

LN2 = 0.6931471805599453

# --- forms of exponentials --------------------------------------------------------------------------------------------


@rule
def sinh_of_exponentials(x):
    """exp(x) - exp(-x) cancels near 0."""
    return (exp(x) - exp(-x)) / 2, sinh(x)


@rule
def cosh_of_exponentials(x):
    """One function for two exponentials; it overflows later."""
    return (exp(x) + exp(-x)) / 2, cosh(x)


@rule
def tanh_of_exponentials(x):
    """inf / inf for large x, cancellation near 0."""
    return (exp(x) - exp(-x)) / (exp(x) + exp(-x)), tanh(x)


@rule
def tanh_of_expm1(x):
    """The same with one exponential, inf / inf for large x."""
    return expm1(x) / (exp(x) + 1), tanh(x / 2)


@rule
def sinh_over_cosh(x):
    """inf / inf for large x."""
    return sinh(x) / cosh(x), tanh(x)


# --- logarithms -------------------------------------------------------------------------------------------------------


@rule
def log_of_cosh(x):
    """cosh(x) overflows where its log is |x| - log(2); near 0, 1 + x*x/2 loses the digits of x."""
    return log(cosh(x)), log_cosh(x)


@rule
def log_of_two_cosh(x):
    """The same, as a sum of two exponentials."""
    return logaddexp(x, -x), log_cosh(x) + LN2


@rule(domain={"x": (1e-8, 1e30)})
def log_of_sinh(x):
    """sinh(x) overflows where its log is x - log(2)."""
    return log(sinh(x)), x + (log1mexp(-2 * x) - LN2)


# --- inverses ---------------------------------------------------------------------------------------------------------


@rule(domain={"x": (-0.9999, 0.9999)})
def atanh_of_logs(x):
    """(1 + x) / (1 - x) loses the digits of a small x."""
    return log((1 + x) / (1 - x)), 2 * atanh(x)


@rule(domain={"x": (-0.9999, 0.9999)})
def atanh_of_log1p(x):
    """One function for two logs."""
    return log1p(x) - log1p(-x), 2 * atanh(x)


@rule
def asinh_of_log(x):
    """Cancels for negative x, overflows in the square, and loses the digits of a small x."""
    return log(x + hypot(x, 1.0)), asinh(x)


@rule
def minus_asinh_of_log(x):
    """The same for the other sign."""
    return log(hypot(x, 1.0) - x), -asinh(x)


@rule(domain={"x": (1.0, 1e30)})
def acosh_of_log(x):
    """The square overflows; near 1 the root loses digits."""
    return log(x + sqrt(x * x - 1)), acosh(x)


@rule(domain={"x": (1.0, 1e30)})
def acosh_of_log_of_roots(x):
    """The same with two roots."""
    return log(x + sqrt(x - 1) * sqrt(x + 1)), acosh(x)


# --- trigonometric ----------------------------------------------------------------------------------------------------


@rule
def sin_over_cos(x):
    """One function for two and a division."""
    return sin(x) / cos(x), tan(x)


@rule(domain={"x": (-30, 30)})
def one_minus_cos(x):
    """1 - cos(x) cancels near 0."""
    return 1 - cos(x), 2 * (sin(x / 2) * sin(x / 2))


@rule
def cosh_minus_one(x):
    """cosh(x) - 1 cancels near 0."""
    return cosh(x) - 1, 2 * (sinh(x / 2) * sinh(x / 2))


@rule(domain={"x": (-30, 30)})
def one_minus_cos_squared(x):
    """Cancels near 0."""
    return 1 - cos(x) * cos(x), sin(x) * sin(x)


@rule(domain={"x": (-30, 30)})
def one_minus_sin_squared(x):
    """Cancels where the sine is 1."""
    return 1 - sin(x) * sin(x), cos(x) * cos(x)


@rule
def sinc(x):
    """0 / 0 at 0; and its derivative, a difference of quotients, cancels near 0."""
    return sin(x) / x, spherical_j0(x)
