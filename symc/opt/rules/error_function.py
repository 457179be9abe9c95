"""The error function and what is made of it: the normal distribution, its tails, and their logarithms."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from symc.ir.ops.arithmetic import maximum
from symc.ir.ops.compare import gt
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import where
from symc.ir.ops.math import erf, erfc, erfcx, exp, log, log1p
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.terms import flatten, join, without


@rule
def one_minus_erf(x):
    """1 - erf(x) is 0 from x = 6 on, where erfc(x) has all its digits."""
    return 1 - erf(x), erfc(x)


@rule
def one_plus_erf(x):
    """1 + erf(x) cancels for negative x."""
    return 1 + erf(x), erfc(-x)


@rule
def erf_minus_one(x):
    """erf(x) - 1 cancels for positive x."""
    return erf(x) - 1, -erfc(x)


@rule
def one_minus_erfc(x):
    """1 - erfc(x) cancels near 0."""
    return 1 - erfc(x), erf(x)


@rule
def half_plus_half_erf(x):
    """The normal distribution function, spelled out: cancels for negative x."""
    return 0.5 + erf(x) * 0.5, erfc(-x) * 0.5


@rule
def half_minus_half_erf(x):
    """The normal survival function, spelled out: cancels for positive x."""
    return 0.5 - erf(x) * 0.5, erfc(x) * 0.5


@rule
def one_minus_half_erfc(x):
    """The other tail of the normal distribution: cancels for very negative x."""
    return 1 - erfc(x) * 0.5, erfc(-x) * 0.5


# --- logarithms of tails ----------------------------------------------------------------------------------------------


@rule
def log_of_erfc(x):
    """erfc(x) underflows from x = 27 on (10 in f32), where its log is about -x*x; near 0 its log loses digits."""
    return log(erfc(x)), where(gt(x, 0.5), log(erfcx(x)) - x * x, log1p(-erf(x)))


@rule
def log_of_half_erfc(x):
    """The log of the normal distribution function, accurate at both ends."""
    return log(erfc(x) * 0.5), where(gt(x, 0.5), log(erfcx(x) * 0.5) - x * x, log1p(erfc(-x) * -0.5))


@rule(dtypes={"c": "bool"}, arises="scaled_erfc makes it")
def log_of_density_over_tail(c, x, u):
    """The log of what `scaled_erfc` makes, which underflows far below 0."""
    return log(where(c, 1 / erfcx(x), exp(u) * 0.5)), where(c, -log(erfcx(x)), u - math.log(2))


# --- the scaled function ----------------------------------------------------------------------------------------------


def _scaled(x: Value) -> tuple[float, list[Value]]:
    """A product as a number and the other factors."""
    number = 1.0
    rest: list[Value] = []
    sign = -1.0 if x.op.name == "neg" else 1.0
    for s, y in flatten(x.operands[0] if sign < 0 else x, "product"):
        n = splat_of(y)
        if n is not None and n != 0:
            number *= float(n) ** s
        elif y.op.name == "neg":
            sign, rest = -sign, [*rest, y.operands[0]]
        else:
            rest.append(y if s > 0 else 1 / y)
    return sign * number, rest


def _is_minus_square(e: Value, z: Value) -> bool:
    """True if e is -z*z, numbers multiplied together."""
    scale, factors = _scaled(z)
    number, rest = _scaled(e)
    if Counter(rest) != Counter(2 * factors):
        return False
    return abs(number + scale * scale) <= 4 * float(np.finfo(z.dtype).eps) * scale * scale


@rewrite(
    "div",
    "mul",
    kinds="f",
    weight=4,
    needs=["exp", "erfc"],
    equation="exp(-x*x) / erfc(x) -> 1 / erfcx(x), and exp(-x*x) / 2 where x < -6; exp(x*x) * erfc(x) -> erfcx(x)",
    examples=lambda: [
        example(lambda x, y: exp(-(x * x)) / erfc(x), leaves(2)),
        example(lambda x, y: exp(x * x) * erfc(x), leaves(2)),
        example(lambda x, y: y * exp(x * x * -0.5) / erfc(x * 0.5**0.5), leaves(2)),
        example(lambda x, y: exp(-(x * x)) / erfc(-x), leaves(2)),
    ],
    misses=lambda: [
        example(lambda x, y: exp(x * x) / erfc(x), leaves(2)),
        example(lambda x, y: exp(-(x * x)) / erfc(x * 2), leaves(2)),
        example(lambda x, y: exp(-(x * x)) / erfc(y), leaves(2)),
    ],
)
def scaled_erfc(v: Value) -> Value | None:
    """0 / 0 for large x: the hazard of the normal distribution, and the gradient of a log of its tail."""
    terms = flatten(v, "product")
    for i, (s, c) in enumerate(terms):
        if c.op is not erfc:
            continue
        z = c.operands[0]
        for j, (t, e) in enumerate(terms):
            if e.op is exp and t == 1 and _is_minus_square(e.operands[0] if s < 0 else -e.operands[0], z):
                scaled = (1, _density_over_tail(z, e)) if s < 0 else (1, erfcx(z))
                return join([scaled, *without(terms, i, j)], "product")
    return None


def _density_over_tail(z: Value, density: Value) -> Value:
    """exp(-z*z) / erfc(z). Far below 0 erfc(z) is 2, and erfcx(z) overflows, with derivatives that would be nan."""
    low = like(z, -6 if z.dtype.itemsize > 4 else -4)
    return where(gt(z, low), 1 / erfcx(maximum(z, low)), density * 0.5)
