"""Quotients by whole numbers as products, rounded as quotients are, where a loop waits for divisions.

q = x * r, with r = 1/d rounded, is off by less than two units, and fma says by how much: e = x - d * q is exact, as d
is whole. So q + e * r, rounded once, is the quotient, unless that is nearer to the middle of two numbers than 2**-50
units (f32: 2**-22); it is as near as 1 / (2 * d) at the least, as d times a middle is no number of x's precision. Where
e is 0 or no number (of zeros, infinities and nans), q is right as it is. Denormal quotients may lie in the middle, and
be one of their units off.

An x that was an integer makes no denormal numbers. With 1/d in two parts of one sign, x * r1 + x * r2 is off by less
than 2**-22 units (f64: 2**-51) before it is rounded: two operations, not five.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.codegen.language.syntax import every
from symc.runtime.compilers.chains import beside

#: The greatest divisors.
MOST = {"f32": 2**16, "f64": 2**40}
#: Cycles of a division of a vector, and of other operations, as they follow one another; how many of these are one.
DIVISION, OTHER, STEPS = 5.0, 0.5, 5


def is_whole(number: float | None, t: str) -> bool:
    """True for divisors that are known and whole, and not powers of two."""
    if number is None or t not in MOST or not 2 < abs(number) < MOST[t]:  # nor nan, nor an infinity
        return False
    return number == int(number) and int(abs(number)) & (int(abs(number)) - 1) != 0


def pays(body: Sequence[ast.stmt]) -> bool:
    """True if a loop is done sooner when what it divides by numbers it does not divide. A long chain is not: it waits
    as long for the products."""
    nodes = every(*body)
    divided = [n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)]
    known = sum(_number(n.right) is not None for n in divided)
    slow = len(divided) + sum(isinstance(n, ast.Attribute) and n.attr == "sqrt" for n in nodes)
    others = sum(isinstance(n, ast.BinOp | ast.Compare | ast.IfExp | ast.Call) for n in nodes) - slow
    before = max(DIVISION * slow, OTHER * others)
    after = max(DIVISION * (slow - known), OTHER * (others + STEPS * known))
    return known > 0 and after < before and beside(body, 2) == 1


def _number(e: ast.expr) -> Any:
    """The number that an expression is, a cast of it or not."""
    if isinstance(e, ast.Call) and len(e.args) == 1:
        e = e.args[0]
    return e.value if isinstance(e, ast.Constant) and isinstance(e.value, float) else None


@functools.cache
def reciprocal(t: str, number: float) -> float:
    """1 / number, rounded to a type."""
    real = np.float32 if t == "f32" else np.float64
    return float(real(1) / real(number))


@functools.cache
def two_parts(t: str, number: float) -> tuple[float, float]:
    """1 / number as the sum of two numbers of a type and of one sign."""
    real = np.float32 if t == "f32" else np.float64
    first = real(1) / real(number)
    if _rest(number, float(first)) * number < 0:
        first = np.nextafter(first, real(0))
    return float(first), float(real(_rest(number, float(first))))


def _rest(number: float, part: float) -> float:
    """1 / number - part, rounded once, as quotients of integers are. (``fractions`` takes 4 ms to import.)"""
    (a, b), (p, q) = number.as_integer_ratio(), part.as_integer_ratio()
    return (b * q - p * a) / (a * q)
