"""Exponentials, logarithms of 1 + x, and sigmoids: what cancels near 0 or 1 and overflows far away.

Each left side is what a textbook or a gradient spells; each right side is the same function with an accurate reference.
"""

from __future__ import annotations

import numpy as np

from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.compare import ge, le, lt
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import and_, where
from symc.ir.ops.math import exp, expm1, log, log1mexp, log1p, logaddexp, sigmoid, softplus, sqrt, tanh
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.terms import cancels_first, flatten, join, number_apart, without

NEGATIVE = {"x": (-700.0, -1e-8)}
ORDINARY = {"x": (-80.0, 80.0), "y": (-80.0, 80.0)}

# --- roots -----------------------------------------------------------------------------------------------------------


@rule(domain={"x": (-1400.0, 700.0)})
def sqrt_of_exp(x):
    """A deviation from the log of a variance: exp(x) leaves the range of numbers first, where the root has no slope."""
    return sqrt(exp(x)), exp(x * 0.5)


# --- log1p and expm1 --------------------------------------------------------------------------------------------------


@rule
def log_one_plus(x):
    """1 + x loses the digits of a small x."""
    return log(1 + x), log1p(x)


@rule
def log_one_minus(x):
    """1 - x loses the digits of a small x."""
    return log(1 - x), log1p(-x)


@rewrite(
    "log",
    kinds="f",
    needs=["+"],
    tags=["conditioned"],
    equation="log((1 + x) + y) -> log1p(x + y) where x + y is small",
    examples=lambda: [example(lambda x, y: log((1 + x) + y), leaves(2))],
    misses=lambda: [example(lambda x, y: log((2 + x) + y), leaves(2))],
)
def log_of_one_in_parentheses(v: Value, context) -> Value | None:
    """1 + x loses the digits of a small x, and x + y those of what 1 + x leaves of an x near -1."""
    (x,) = v.operands
    one, rest = number_apart(x)
    if one != 1 or rest is None or not cancels_first(x, context.facts):
        return None
    near = lt(abs_(rest), 0.5)
    return where(near, log1p(where(near, rest, like(rest, 0))), log(where(near, like(x, 1), x)))


@rule
def exp_minus_one(x):
    """exp(x) - 1 cancels near 0."""
    return exp(x) - 1, expm1(x)


@rule
def one_minus_exp(x):
    """1 - exp(x) cancels near 0."""
    return 1 - exp(x), -expm1(x)


@rule
def log1p_of_expm1(x):
    """Each undoes the other."""
    return log1p(expm1(x)), x


@rule(domain={"x": (-0.999, 1e8)})
def expm1_of_log1p(x):
    """Each undoes the other where the log exists."""
    return expm1(log1p(x)), where(ge(x, -1), x, splat(np.nan, x.type))


# --- products of exponentials -----------------------------------------------------------------------------------------


@rewrite(
    "mul",
    "div",
    kinds="f",
    needs=["exp"],
    tags=["conditioned"],
    equation="exp(x) * exp(y) -> exp(x + y); exp(x) / exp(y) -> exp(x - y)",
    examples=lambda: [
        example(lambda x, y: exp(x) * exp(y), leaves(2)),
        example(lambda x, y: exp(x) / exp(y), leaves(2)),
        example(lambda x, y: exp(x) * 3 * y * exp(y), leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: 1 / (exp(x) * y), leaves(2))],
)
def product_of_exp(v: Value, context) -> Value | None:
    """One exponential for two, and no overflow between them."""
    terms = flatten(v, "product")
    found = [k for k, (_, x) in enumerate(terms) if x.op is exp and context.single_use(x)]
    if len(found) < 2 or all(terms[k][0] < 0 for k in found):
        return None
    made = exp(join([(terms[k][0], terms[k][1].operands[0]) for k in found], "sum"))
    return join([(1, made), *without(terms, *found)], "product")


@rewrite(
    "div",
    kinds="f",
    needs=["exp"],
    equation="x / exp(y) -> x * exp(-y)",
    examples=lambda: [
        example(lambda x, y: x / exp(y), leaves(2)),
        example(lambda x, y: 1 / exp(y), leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: exp(x) / y, leaves(2))],
)
def quotient_by_exp(v: Value, context) -> Value | None:
    """The derivative of a quotient is inf / inf where exp(y) overflows, and a product is cheaper."""
    x, e = v.operands
    return x * exp(-e.operands[0]) if e.op is exp and context.single_use(e) else None


# --- softplus, log1mexp -----------------------------------------------------------------------------------------------


@rule
def log_one_plus_exp(x):
    """exp(x) overflows where log(1 + exp(x)) is x."""
    return log1p(exp(x)), softplus(x)


@rule(domain=NEGATIVE)
def log_one_minus_exp(x):
    """1 - exp(x) cancels at one end, and loses exp(x) at the other."""
    return log1p(-exp(x)), log1mexp(x)


@rule(domain=NEGATIVE)
def log_minus_expm1(x):
    """The same function, as it is spelled after expm1."""
    return log(-expm1(x)), log1mexp(x)


@rule(domain={"x": (1e-8, 1e30)})
def log_of_expm1(x):
    """exp(x) - 1 overflows where its log is x."""
    return log(expm1(x)), x + log1mexp(-x)


@rule
def softplus_minus_argument(x):
    """softplus(x) - x cancels for large x."""
    return softplus(x) - x, softplus(-x)


@rule
def argument_minus_softplus(x):
    """The same for the other sign."""
    return x - softplus(x), -softplus(-x)


@rule
def logaddexp_of_zero(x):
    """log(exp(x) + exp(0))."""
    return logaddexp(x, 0.0), softplus(x)


@rule
def exp_of_minus_softplus(x):
    """1 / (1 + exp(x)), without the log."""
    return exp(-softplus(x)), sigmoid(-x)


# --- sigmoid ----------------------------------------------------------------------------------------------------------


@rule
def log_sigmoid(x):
    """sigmoid(x) underflows where its log is x."""
    return log(sigmoid(x)), -softplus(-x)


@rule
def log1p_minus_sigmoid(x):
    """1 - sigmoid(x) rounds to 0 where its log is -x."""
    return log1p(-sigmoid(x)), -softplus(x)


@rule
def exp_over_one_plus_exp(x):
    """inf / inf for large x."""
    return exp(x) / (1 + exp(x)), sigmoid(x)


@rule(domain=ORDINARY, tags=["conditioned"])
def exp_over_sum_of_exp(x, y):
    """A softmax of two: inf / inf for large x or y, 0 / 0 for very negative ones."""
    return exp(x) / (exp(x) + exp(y)), sigmoid(x - y)


@rule
def reciprocal_one_plus_exp(x):
    """exp(x) overflows; its derivative is then inf * 0."""
    return 1 / (1 + exp(x)), sigmoid(-x)


@rule
def one_minus_sigmoid(x):
    """1 - sigmoid(x) cancels for large x."""
    return 1 - sigmoid(x), sigmoid(-x)


@rule
def exp_times_sigmoid(x):
    """exp(x) * sigmoid(-x): inf * 0 for large x."""
    return exp(x) * sigmoid(-x), sigmoid(x)


@rule
def sigmoid_odds(x):
    """The odds of a probability given by its logit."""
    return sigmoid(x) / sigmoid(-x), exp(x)


@rule
def expm1_times_sigmoid(x):
    """(exp(x) - 1) / (exp(x) + 1): inf * 0 for large x."""
    return expm1(x) * sigmoid(-x), tanh(x * 0.5)


@rule
def two_sigmoids_minus_one(x):
    """Cancels near 0."""
    return 2 * sigmoid(x) - 1, tanh(x * 0.5)


@rule
def one_minus_two_sigmoids(x):
    """Cancels near 0."""
    return 1 - 2 * sigmoid(x), -tanh(x * 0.5)


def _probability(x: Value) -> Value:
    """x, and nan where it is no probability."""
    return where(and_(ge(x, 0), le(x, 1)), x, splat(float("nan"), x.type))


@rule(domain={"x": (1e-7, 0.999)})
def sigmoid_of_logit(x):
    """Each undoes the other."""
    return sigmoid(log(x / (1 - x))), _probability(x)


@rule(domain={"x": (1e-7, 0.999)})
def sigmoid_of_logit_difference(x):
    """The same for the logit as a difference of logs."""
    return sigmoid(log(x) - log1p(-x)), _probability(x)
