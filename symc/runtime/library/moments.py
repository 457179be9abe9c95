# mypy: ignore-errors
"""Integrals of which derivatives of gamma draws are made: ``symc.ir.ops.draw_reference``.

By series for small draws, else by the formula of Gauss and Legendre, whose nodes are computed when this is imported.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import called, inlined
from symc.codegen.language.names import f64, fold_add, like
from symc.ir.ops import draw_reference as reference
from symc.runtime.library.gamma import digamma
from symc.runtime.library.math import exp, expm1

NODES, WEIGHTS = reference.legendre()
DEPTH, TERMS, COUNT = reference.DEPTH, reference.TERMS, reference.NODES


@inlined
def range_end(a, x):
    """The w at which the exponent a w - x (exp(w) - 1) is -DEPTH."""
    sign = -1.0 if x <= a else 1.0
    away = abs(a - x)
    w = sign * (2.0 * DEPTH / (away + math.sqrt(away * away + 2.0 * x * DEPTH)))
    for _ in range(6):
        w = w - (a * w - x * math.expm1(w) + DEPTH) / (a - x * math.exp(w))
    return w


@called
def moment(a, y, power):
    """See gamma_moment in the reference."""
    if not 1e-300 < a < math.inf:
        return math.nan
    x = math.exp(y)
    total = 0.0
    if x <= 1.0:
        term = math.exp(x)
        for j in range(TERMS):
            part = term / (a + j)
            for k in range(power):
                part *= -(k + 1.0) / (a + j)
            total += part
            term *= -x / (j + 1)
        return total
    w = range_end(a, x)
    for k in range(COUNT):
        v = w * NODES[k]
        part = WEIGHTS[k] * exp(a * v - x * expm1(v))
        for _ in range(power):
            part *= v
        total = fold_add(total, part)
    return -w * total


@inlined
def gamma_moment(alpha, y, power):
    return like(alpha, moment(f64(alpha), f64(y), power))


@called
def slope(a, y):
    """-(m_1 + (y - digamma(a)) m_0); see gamma_moment and gamma_slope in the reference."""
    if not 1e-300 < a < math.inf or not y < math.inf:
        return math.nan
    if y == -math.inf:
        return math.inf
    x = math.exp(y)
    gap = y - digamma(a)
    if x <= 1.0:
        total, term = 0.0, math.exp(x)
        for j in range(TERMS):
            part = term / (a + j)
            total += part * (gap - 1.0 / (a + j))
            term *= -x / (j + 1)
        return -total
    w = range_end(a, x)
    total = 0.0
    for k in range(COUNT):
        v = w * NODES[k]
        total = fold_add(total, WEIGHTS[k] * (v + gap) * exp(a * v - x * expm1(v)))
    return w * total


@inlined
def gamma_slope(alpha, y):
    return like(alpha, slope(f64(alpha), f64(y)))
