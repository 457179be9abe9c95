"""Differences of what is nearly equal: they cancel, where another form of the same function does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, div, hypot, mul, pow_
from symc.ir.ops.compare import gt, isfinite, lt
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import where
from symc.ir.ops.math import cos, exp, expm1, log, log1mexp, log1p, log_cosh, sigmoid, sin, softplus, sqrt, tanh
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.terms import (
    cancels_first,
    flatten,
    is_number,
    join,
    number_apart,
    opposites,
    splat_like,
    without,
)
from symc.opt.rules.powers import MAX_POWER

LN2 = 0.6931471805599453
#: Where expm1 is more accurate than a power minus 1, and a log of 1 + u than one of its rounded argument.
SMALL = 0.5


# --- logs and exponentials --------------------------------------------------------------------------------------------


@rule(domain={"x": (1e-30, 1e30)}, when=lambda x: x.op is not where)
def log1p_minus_log(x):
    """log(1 + x) and log(x) agree in their digits for large x."""
    small = where(gt(x, 1), like(x, 1), x)
    return log1p(x) - log(x), where(gt(x, 1), log1p(1 / where(gt(x, 1), x, like(x, 1))), log1p(small) - log(small))


@rule(tags=["conditioned"], domain={"x": (-300, 300), "y": (-300, 300)})
def log_of_difference_of_sigmoids(x, y):
    """The sigmoids cancel, near 1 completely: the probability of an interval."""
    return log(sigmoid(x) - sigmoid(y)), log1mexp(y - x) - softplus(-x) - softplus(y)


@rule
def log1p_of_tanh(x):
    """1 + tanh(x) vanishes where its log is 2 * x."""
    return log1p(tanh(x)), where(gt(x, 1), LN2 - softplus(-2 * x), x - log_cosh(x))


@rule
def log1p_of_minus_tanh(x):
    """1 - tanh(x) vanishes where its log is -2 * x."""
    return log1p(-tanh(x)), where(lt(x, -1), LN2 - softplus(2 * x), -x - log_cosh(x))


@rule
def log1p_of_minus_squared_tanh(x):
    """1 - tanh(x)**2 vanishes where its log is -2 * |x|: the density of a squashed normal."""
    return log1p(-(tanh(x) * tanh(x))), log_cosh(x) * -2


# --- powers -----------------------------------------------------------------------------------------------------------


def _less_number(v: Value, found: Callable[[Value], tuple[float, Value] | None]) -> Value | None:
    """The sum ``v``, of which a term less a number is something else: ``found(term)`` gives the number, and what."""
    terms = flatten(v, "sum")
    for i, (s, x) in enumerate(terms):
        if any(splat_of(y) is not None for _, y in terms) and (known := found(x)) is not None:
            number, made = known
            j = next((k for k, (t, y) in enumerate(terms) if is_number(y, -s * t * number)), None)
            if j is not None:
                return join([(s, made), *without(terms, i, j)], "sum")
    return None


def _log_of_base(p: Value) -> tuple[Value, bool] | None:
    """The log of a power with its digits, and whether that is all: the base is a positive number."""
    base, power = p.operands
    b, n = splat_of(base), splat_of(power)
    if base.op is where:
        return None
    if b is not None:
        return (power * float(np.log(b)), True) if 0 < b < np.inf and b != 1 else None
    one, u = number_apart(base)
    if one == 1 and u is not None and not (n is not None and n == int(n) and abs(n) <= MAX_POWER):
        return power * log1p(u), False
    return (power * log(base), False) if n is None or abs(n) < 0.1 else None


@rewrite(
    "sub",
    "add",
    kinds="f",
    needs=["pow"],
    tags=["conditioned"],
    equation="2**x - 1 -> expm1(x * log(2)); (1 + x)**y - 1 -> expm1(y * log1p(x)) where that is small; x**y - 1",
    examples=lambda: [
        example(lambda x: pow_(splat(2.0, x.type), x) - 1, leaves(1)),
        example(lambda x: 1 - pow_(1 + x, splat(10.0, x.type)), leaves(1)),
        example(lambda x, y: pow_(x, y) - 1, leaves(2)),
    ],
    misses=lambda: [
        example(lambda x: pow_(x, splat(7.0, x.type)) - 1, leaves(1)),
        example(lambda x, y: pow_(x, y) - 2, leaves(2)),
    ],
)
def power_minus_one(v: Value, context) -> Value | None:
    """Cancels where the power is near 1: interest, and the transformation of Box and Cox."""
    if cancels_first(v, context.facts):
        return None
    return _less_number(v, _power_less_one)


def _power_less_one(p: Value) -> tuple[float, Value] | None:
    found = _log_of_base(p) if p.op is pow_ else None
    if found is None:
        return None
    z, always = found
    if always:
        return 1.0, expm1(z)
    near = lt(abs_(z), SMALL)
    far = where(near, like(z, 1), p)  # the power itself, which others may need; met once, as it is no power now
    return 1.0, where(near, expm1(z), far - 1)


@rewrite(
    "pow",
    kinds="f",
    needs=["#", "+"],
    tags=["conditioned"],
    equation="(1 + x)**1000 -> exp(1000 * log1p(x)) where x is small",
    examples=lambda: [example(lambda x: pow_(1 + x, splat(1000.0, x.type)), leaves(1))],
    misses=lambda: [example(lambda x: pow_(1 + x, splat(10.0, x.type)), leaves(1))],
)
def large_power_of_one_plus(v: Value) -> Value | None:
    """A large power multiplies the rounding error of 1 + x."""
    base, power = v.operands
    n = splat_of(power)
    one, u = number_apart(base)
    if n is None or not 256 <= abs(n) < np.inf or one != 1 or u is None:
        return None
    near = lt(abs_(u), SMALL / 2)
    return where(near, exp(power * log1p(where(near, u, like(u, 0)))), pow_(where(near, like(u, 1), base), power))


# --- roots ------------------------------------------------------------------------------------------------------------


@rewrite(
    "sub",
    "add",
    kinds="f",
    needs=["sqrt"],
    tags=["conditioned"],
    equation="sqrt(4 + x) - 2 -> x / (sqrt(4 + x) + 2); so for 1 - sqrt(1 - x)",
    examples=lambda: [
        example(lambda x: sqrt(x + 4) - 2, leaves(1)),
        example(lambda x: 1 - sqrt(1 - x), leaves(1)),
    ],
    misses=lambda: [example(lambda x: sqrt(x + 4) - 1, leaves(1))],
)
def root_minus_number(v: Value) -> Value | None:
    """Cancels near 0."""
    return _less_number(v, _root_less_number)


def _root_less_number(r: Value) -> tuple[float, Value] | None:
    n, u = number_apart(r.operands[0]) if r.op is sqrt else (0.0, None)
    if u is None or not 0 < n < np.inf:
        return None
    root = float(np.sqrt(n))
    return root, where(isfinite(r), u / (r + root), r)


@rewrite(
    "sub",
    "add",
    kinds="f",
    needs=["hypot"],
    tags=["conditioned"],
    equation="hypot(x, 1) - 1 -> x * (x / (hypot(x, 1) + 1))",
    examples=lambda: [example(lambda x: hypot(x, splat(1.0, x.type)) - 1, leaves(1))],
    misses=lambda: [example(lambda x: hypot(x, splat(2.0, x.type)) - 1, leaves(1))],
)
def length_minus_number(v: Value) -> Value | None:
    """Cancels near 0: the pseudo-Huber loss."""
    return _less_number(v, _length_less_number)


def _length_less_number(r: Value) -> tuple[float, Value] | None:
    n = splat_of(r.operands[1]) if r.op is hypot else None
    if n is None or not 0 < n < np.inf:
        return None
    (x, _), number = r.operands, float(n)
    return number, where(isfinite(r), x * (x / (r + number)), r)


@rule(domain={"x": (-1, 1)})
def difference_of_roots_about_one(x):
    """Cancels near 0."""
    return sqrt(1 + x) - sqrt(1 - x), 2 * x / (sqrt(1 + x) + sqrt(1 - x))


def _rest_of_square(r: Value, x: Value) -> Value | None:
    """The u of ``r`` = sqrt(x * x + u); of hypot(x, y) it is y, of which the square may overflow."""
    if r.op is hypot:
        rest = [o for o in r.operands if o is not x]
        return rest[0] if len(rest) == 1 else None
    (s,) = r.operands
    if s.op is mul:  # (x - y) * (x + y)
        (c, y), (d, z) = map(number_apart, s.operands)
        return splat_like(-c * c, x) if y is z is x and c == -d != 0 else None
    terms = flatten(s, "sum")
    k = next((k for k, t in enumerate(terms) if t[0] > 0 and t[1].op is mul and t[1].operands == (x, x)), None)
    return None if k is None or len(terms) < 2 else join(without(terms, k), "sum")


@rewrite(
    "sub",
    kinds="f",
    tags=["conditioned"],
    equation="sqrt(x * x + y) - x -> y / (sqrt(x * x + y) + x) for x > 0; so for hypot(x, 1) - x",
    examples=lambda: [
        example(lambda x, y: sqrt(x * x + y) - x, leaves(2)),
        example(lambda x: x - sqrt((x - 1) * (x + 1)), leaves(1)),
        example(lambda x: hypot(x, splat(1.0, x.type)) - x, leaves(1)),
    ],
    misses=lambda: [example(lambda x, y: sqrt(x * y + 1) - x, leaves(2))],
)
def root_minus_base(v: Value) -> Value | None:
    """Cancels for large x: the smaller root of a quadratic."""
    a, b = v.operands
    for r, x, sign in ((a, b, 1), (b, a, -1)):
        u = _rest_of_square(r, x) if r.op in (sqrt, hypot) else None
        if u is not None:
            large = gt(x, 0)
            rest = u / where(large, r + x, like(x, 1))
            made = where(large, u * rest if r.op is hypot else rest, r - where(large, like(x, 0), x))
            return made if sign > 0 else -made
    return None


# --- fractions and angles ---------------------------------------------------------------------------------------------


@rewrite(
    "sub",
    "add",
    kinds="f",
    needs=["div"],
    equation="1 / x - 1 / (x + 2) -> 2 / x / (x + 2); so for 1 / sqrt(x) - 1 / sqrt(x + 2)",
    examples=lambda: [
        example(lambda x: 1 / sqrt(x) - 1 / sqrt(x + 1), leaves(1)),
        example(lambda x: 1 / x - 1 / (x + 1), leaves(1)),
        example(lambda x: 3 / (x - 1) - 3 / (x + 1), leaves(1)),
    ],
    misses=lambda: [example(lambda x, y: 1 / x - 1 / (y + 1), leaves(2))],
)
def difference_of_reciprocals(v: Value) -> Value | None:
    """Cancels for large x."""
    for a, b, rest in opposites(flatten(v, "sum")):
        if a.op is b.op is div and a.operands[0] is b.operands[0]:
            n = splat_of(a.operands[0])
            roots = a.operands[1].op is b.operands[1].op is sqrt
            (c, x), (d, y) = (number_apart(z.operands[1].operands[0] if roots else z.operands[1]) for z in (a, b))
            if n is not None and x is y and c != d:
                made = splat_like(float(n) * (d - c), v) / a.operands[1] / b.operands[1]
                return join([(1, made / (a.operands[1] + b.operands[1]) if roots else made), *rest], "sum")
    return None


@rule(tags=["conditioned"], domain={"x": (-30, 30), "y": (-30, 30)})
def sine_of_sum_minus_sine(x, y):
    """Cancels for small y."""
    return sin(x + y) - sin(x), 2 * cos(x + y / 2) * sin(y / 2)


@rule(tags=["conditioned"], domain={"x": (-30, 30), "y": (-30, 30)})
def cosine_of_sum_minus_cosine(x, y):
    """Cancels for small y."""
    return cos(x + y) - cos(x), -2 * sin(x + y / 2) * sin(y / 2)
