"""Hyperbolic and trigonometric functions spelled with exponentials, roots and logs, and their inverses."""

from __future__ import annotations

from symc.ir.ops.arithmetic import hypot, sub
from symc.ir.ops.compare import gt
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import where
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
    log_cosh,
    sigmoid,
    sin,
    sinh,
    spherical_j0,
    sqrt,
    tan,
    tanh,
)  # fmt: skip
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.terms import is_number

LN2 = 0.6931471805599453

# --- forms of exponentials --------------------------------------------------------------------------------------------


@rule
def cosh_of_exponentials(x):
    """One function for two exponentials; it overflows later."""
    return (exp(x) + exp(-x)) / 2, cosh(x)


@rule
def sinh_over_cosh(x):
    """inf / inf for large x."""
    return sinh(x) / cosh(x), tanh(x)


@rule(domain={"x": (1e-8, 1e30)})
def cosh_over_sinh(x):
    """inf / inf for large x."""
    return cosh(x) / sinh(x), 1 / tanh(x)


@rule(domain={"x": (-300, 300)})
def half_plus_half_tanh(x):
    """The logistic function, spelled out: cancels for negative x."""
    return 0.5 + tanh(x) * 0.5, sigmoid(2 * x)


@rule(domain={"x": (-300, 300)})
def half_minus_half_tanh(x):
    """The same of -x: cancels for positive x."""
    return 0.5 - tanh(x) * 0.5, sigmoid(-2 * x)


@rule(domain={"x": (-300, 300)})
def half_of_one_plus_tanh(x):
    """The logistic function, spelled out otherwise."""
    return (1 + tanh(x)) * 0.5, sigmoid(2 * x)


@rule(domain={"x": (-300, 300)})
def half_of_one_minus_tanh(x):
    """The same of -x."""
    return (1 - tanh(x)) * 0.5, sigmoid(-2 * x)


@rule(domain={"x": (-30, 30)})
def cosh_minus_sinh(x):
    """Cancels for large x."""
    return cosh(x) - sinh(x), exp(-x)


@rule(domain={"x": (-30, 30)})
def cosh_plus_sinh(x):
    """Cancels for very negative x."""
    return cosh(x) + sinh(x), exp(x)


@rule
def sinh_times_exp(x):
    """inf * 0 for large x."""
    return sinh(x) * exp(-x), expm1(-2 * x) * -0.5


@rule
def cosh_times_exp(x):
    """inf * 0 for large x."""
    return cosh(x) * exp(-x), (1 + exp(-2 * x)) * 0.5


# --- logarithms -------------------------------------------------------------------------------------------------------


@rule
def log_of_cosh(x):
    """cosh(x) overflows where its log is |x| - log(2); near 0, 1 + x*x/2 loses the digits of x."""
    return log(cosh(x)), log_cosh(x)


@rule(domain={"x": (1e-8, 1e30)})
def log_of_sinh(x):
    """sinh(x) overflows where its log is x - log(2)."""
    return log(sinh(x)), x + (log1mexp(-2 * x) - LN2)


# --- inverses ---------------------------------------------------------------------------------------------------------


@rule(domain={"x": (-0.9999, 0.9999)})
def atanh_of_logs(x):
    """(1 + x) / (1 - x) loses the digits of a small x."""
    return log((1 + x) / (1 - x)), 2 * atanh(x)


@rule
def asinh_of_log(x):
    """Cancels for negative x, overflows in the square, and loses the digits of a small x."""
    return log(x + hypot(x, 1.0)), asinh(x)


def _forms(x: Value) -> list[Value]:
    """hypot(x, 1) - x, as it is after ``root_minus_base``."""
    r, large = hypot(x, 1.0), gt(x, 0)
    return [where(large, 1 / where(large, s, like(x, 1)), r - where(large, like(x, 0), x)) for s in (r + x, x + r)]


@rewrite(
    "log",
    kinds="f",
    needs=["where"],
    equation="log(hypot(x, 1) - x) -> -asinh(x)",
    examples=lambda: [example(lambda x: log(_forms(x)[0]), leaves(1))],
    misses=lambda: [example(lambda x: log(_forms(x)[0] + 1), leaves(1))],
)
def minus_asinh_of_log(v: Value) -> Value | None:
    """The same for the other sign."""
    (w,) = v.operands
    r = w.operands[2].operands[0] if w.op is where and w.operands[2].op is sub else w
    if r.op is not hypot or not is_number(r.operands[1], 1):
        return None
    (x, _) = r.operands
    return -asinh(x) if w in _forms(x) else None


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
