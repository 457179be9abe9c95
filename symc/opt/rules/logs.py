"""Logarithms of exponentials, powers and products, and exponentials of logarithms.

The argument of a log overflows or vanishes long before the log does.
"""

from __future__ import annotations

import numpy as np

from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, maximum, mulz, pow_, sign
from symc.ir.ops.compare import eq, ge, gt, lt
from symc.ir.ops.index import gather
from symc.ir.ops.logic import where
from symc.ir.ops.math import exp, log, log1p, sqrt
from symc.ir.ops.reduce import logsumexp, prod, sum_
from symc.ir.ops.shape import broadcast
from symc.ir.ops.softmax import log_softmax, softmax
from symc.ir.text import splat_of
from symc.ir.traverse import rebuild
from symc.ir.value import Value
from symc.opt.pattern import Term, example, flatten, join, leaves
from symc.opt.rule import rewrite, rule

POSITIVE = {"x": (1e-8, 1e8)}


def _matrix() -> Value:
    return leaves(1, {}, (3, 4))[0]


def where_nonnegative(x: Value) -> Value:
    """x, and nan where it is negative."""
    return where(ge(x, 0), x, splat(np.nan, x.type))


# --- logs of exponentials ---------------------------------------------------------------------------------------------


@rule
def log_of_exp(x):
    """exp(x) overflows where its log is x."""
    return log(exp(x)), x


def exponent_of(x: Value) -> Value | None:
    """The log of x, where x is obviously an exponential or a sum of them."""
    if x.op is exp:
        return x.operands[0]
    if x.op is softmax:
        return log_softmax(x.operands[0], axes=x.attrs["axes"])
    if x.op is sum_ and x.operands[0].op is exp:
        return logsumexp(x.operands[0].operands[0], axes=x.attrs["axes"])
    if x.op is broadcast and (e := exponent_of(x.operands[0])) is not None:
        return broadcast(e, axes=x.attrs["axes"], shape=x.shape)
    return None


@rewrite(
    "log",
    kinds="f",
    needs=["mul"],
    weight=3,
    tags=["conditioned"],
    equation="log(exp(x) * y) -> x + log(y)",
    examples=lambda: [
        example(lambda x, y: log(exp(x) * y), leaves(2)),
        example(lambda x, y: log(exp(x) * 3.0), leaves(2)),
        log(softmax(_matrix(), axes=(1,)) * _matrix()),
    ],
    misses=lambda: [example(lambda x, y: log(x * y), leaves(2))],
)
def log_of_product_with_exp(v: Value) -> Value | None:
    """exp(x) overflows or vanishes where the log of the product is ordinary."""
    return _log_of_product(v)


@rewrite(
    "log",
    kinds="f",
    needs=["div"],
    weight=3,
    tags=["conditioned"],
    equation="log(exp(x) / y) -> x - log(y)",
    examples=lambda: [example(lambda x, y: log(exp(x) / y), leaves(2))],
    misses=lambda: [example(lambda x, y: log(x / y), leaves(2))],
)
def log_of_quotient_with_exp(v: Value) -> Value | None:
    """exp(x) overflows or vanishes where the log of the quotient is ordinary: densities. (At y of -inf and -0.0 as in
    ``log_of_reciprocal``.)"""
    return _log_of_product(v)


def _log_of_product(v: Value) -> Value | None:
    sum_of: list[Term] = []
    rest: list[Term] = []
    for s, x in flatten(v.operands[0], "product"):
        e = exponent_of(x)
        if e is None:
            rest.append((s, x))
        else:
            sum_of.append((s, e))
    if not sum_of:
        return None
    if rest:
        sum_of.append((1, log(join(rest, "product"))) if any(s > 0 for s, _ in rest) else
                      (-1, log(join([(1, x) for _, x in rest], "product"))))  # fmt: skip
    return join(sum_of, "sum")


@rewrite(
    "log",
    kinds="f",
    equation="log(gather(exp(x), i)) -> gather(x, i); so for softmax, and for slice, reshape, transpose, broadcast",
    examples=lambda: [
        log(gather(exp(_matrix()), leaves(1, {0: "i64"}, (2,))[0], axes=(0,))),
        log(gather(softmax(_matrix(), axes=(1,)), leaves(1, {0: "i64"}, (2,))[0], axes=(0,))),
    ],
)
def log_of_moved_exp(v: Value) -> Value | None:
    """The log of a chosen softmax, however it is chosen: exp(x) underflows where x is ordinary."""
    chain = []
    x = v.operands[0]
    while x.op is gather or "movement" in x.op.traits and len(x.operands) == 1:
        chain.append(x)
        x = x.operands[0]
    e = exponent_of(x) if chain else None
    if e is None:
        return None
    for moved in reversed(chain):
        e = rebuild(moved, [e, *moved.operands[1:]])
    return e


@rewrite(
    "prod",
    kinds="f",
    needs=["exp"],
    tags=["conditioned"],
    equation="prod(exp(x)) -> exp(sum(x))",
    examples=lambda: [prod(exp(_matrix()), axes=(1,))],
)
def product_over_exp(v: Value) -> Value | None:
    """One exponential for many, and no overflow between them."""
    (x,) = v.operands
    return exp(sum_(x.operands[0], axes=v.attrs["axes"])) if x.op is exp else None


@rewrite(
    "log",
    kinds="f",
    needs=["prod"],
    tags=["conditioned"],
    equation="log(prod(x)) -> sum(log(abs(x))), and nan where the product is negative",
    examples=lambda: [log(prod(_matrix(), axes=(1,)))],
)
def log_of_prod(v: Value, context) -> Value | None:
    """A product of many numbers overflows or vanishes: a likelihood."""
    (p,) = v.operands
    if p.op is not prod:
        return None
    (x,), axes = p.operands, p.attrs["axes"]
    if context.facts(x).nonnegative:
        return sum_(log(x), axes=axes)
    negative = lt(prod(sign(x), axes=axes), 0)
    return where(negative, splat(np.nan, v.type), sum_(log(abs_(x)), axes=axes))


# --- logs of powers ---------------------------------------------------------------------------------------------------


@rule(domain=POSITIVE)
def log_of_sqrt(x):
    """A product for a root."""
    return log(sqrt(x)), 0.5 * log(x)


@rule(domain=POSITIVE)
def log_of_reciprocal(x):
    """A sign for a division, and no overflow for a small x. (At -inf it is nan as for all negative x, and zeros of both
    signs are alike: 1 / x says otherwise, as its zeros and infinities have the sign of x.)"""
    return log(1 / x), -log(x)


@rule
def log_of_square(x):
    """The square overflows or underflows where its log is ordinary."""
    return log(x * x), 2 * log(abs_(x))


@rewrite(
    "log",
    kinds="f",
    needs=["pow"],
    equation="log(x**3) -> 3 * log(x); of an even power, of |x|",
    examples=lambda: [
        example(lambda x, y: log(pow_(x, splat(3, x.type))), leaves(2)),
        example(lambda x, y: log(pow_(x, splat(-4, x.type))), leaves(2)),
        example(lambda x, y: log(pow_(x, splat(0.3, x.type))), leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: log(pow_(x, y)), leaves(2))],
)
def log_of_power(v: Value) -> Value | str | None:
    """The power overflows or underflows where its log is ordinary. (Of a power that is not even, at -inf and -0.0 as in
    ``log_of_reciprocal``.)"""
    (p,) = v.operands
    if p.op is not pow_:
        return None
    x, number = p.operands[0], splat_of(p.operands[1])
    if number is None or number == 0 or not np.isfinite(number) or splat_of(x) is not None:
        return "the power is not a number"
    even = number % 2 == 0
    return log(abs_(x) if even else x) * p.operands[1]


# --- exponentials of logs ---------------------------------------------------------------------------------------------


@rule
def exp_of_log(x):
    """Each undoes the other where the log exists."""
    return exp(log(x)), where_nonnegative(x)


@rule(domain=POSITIVE)
def exp_of_minus_log(x):
    """A division for two transcendental functions (nan for negative x stays nan, and inf for -0.0 inf)."""
    return exp(-log(x)), where(gt(x, 0), 1 / x, where(eq(x, 0), splat(np.inf, x.type), splat(np.nan, x.type)))


@rule(domain={"x": (-0.999, 1e8)})
def exp_of_log1p(x):
    """Each undoes the other where the log exists."""
    return exp(log1p(x)), where(ge(x, -1), 1 + x, splat(np.nan, x.type))


@rewrite(
    "exp",
    kinds="f",
    needs=["mul"],
    equation="exp(log(x) * 3) -> x**3; exp(log(x) * y) -> x**y for positive x",
    tags=["powers"],
    examples=lambda: [
        example(lambda x, y: exp(log(x) * 3.0), leaves(2)),
        example(lambda x, y: exp(log(maximum(x, 0.5)) * y), leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: exp(log(x) * y), leaves(2))],
)
def exp_of_scaled_log(v: Value, context) -> Value | str | None:
    """Rounding the log of a large number changes its power; pow knows better."""
    (m,) = v.operands
    if m.op.name != "mul":
        return None
    for k in (0, 1):
        if m.operands[k].op is not log:
            continue
        x, y = m.operands[k].operands[0], m.operands[1 - k]
        if context.facts(x).positive:
            return pow_(x, y)
        number = splat_of(y)
        if number is not None and np.isfinite(number) and number > 0:
            return pow_(where_nonnegative(x), y)
        return "the base may be 0 or negative"
    return None


@rule(tags=["conditioned"])
def x_log_x(x):
    """0 * -inf where x is 0: the limit is 0, as entropies take it."""
    return x * log(x), mulz(x, log(x))
