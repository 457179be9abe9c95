"""Powers: products and roots for pow, where that is no less accurate (two units in the last place at most)."""

from __future__ import annotations

import numpy as np

from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, div, pow_
from symc.ir.ops.compare import ge
from symc.ir.ops.logic import where
from symc.ir.ops.math import cbrt, exp2, sqrt
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.canonicalize import base_of_root
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.rule import OPT_IN
from symc.opt.engine.terms import is_number

#: Whole powers up to this, or minus one less, are right to two units in the last place as products.
MAX_POWER = 5
#: Whole powers up to this are products where speed is asked for.
FAST_POWER = 16


def power_of(x: Value, n: int) -> Value:
    """x**n for n > 0, by squaring."""
    out, square = None, x
    while n:
        if n & 1:
            out = square if out is None else out * square
        n >>= 1
        square = square * square if n else square
    assert out is not None
    return out


def _whole(v: Value) -> int | None:
    """The number that the exponent is, if it is a whole one."""
    number = splat_of(v.operands[1])
    if number is None or splat_of(v.operands[0]) is not None or not np.isfinite(number) or number != int(number):
        return None
    return int(number)


def _by_products(v: Value, most: int) -> Value | None:
    n, x = _whole(v), v.operands[0]
    if n is None or not (2 <= n <= most or x.dtype.kind == "f" and 2 <= -n <= most - 1):
        return None
    return power_of(x, n) if n > 0 else div(splat(1, x.type), power_of(x, -n))


@rewrite(
    "pow",
    kinds="fi",
    needs=["#"],
    tags=["powers"],
    equation="x**5 -> x * (x*x) * (x*x)",
    examples=lambda: [example(lambda x, y: x**5, leaves(2)), example(lambda x, y: x**-3, leaves(2))],
    misses=lambda: [example(lambda x, y: x**9, leaves(2))],
)
def whole_power(v: Value) -> Value | None:
    """A few multiplications for pow. (Of integers, any number of them: they are exact.)"""
    return _by_products(v, MAX_POWER if v.dtype.kind == "f" else FAST_POWER)


@rewrite(
    "pow",
    kinds="f",
    needs=["#"],
    tags=["powers", "fast", OPT_IN],
    equation="x**8 -> ((x*x)*(x*x)) * ((x*x)*(x*x))",
    examples=lambda: [example(lambda x, y: x**8, leaves(2))],
)
def fast_whole_power(v: Value) -> Value | None:
    """A few multiplications for pow, with a few units in the last place of error."""
    return _by_products(v, FAST_POWER)


@rewrite(
    "pow",
    kinds="f",
    needs=["#"],
    tags=["powers"],
    equation="x**1.5 -> x * sqrt(x); x**-1.5 -> 1 / (x * sqrt(x)); x**2.5 -> x * x * sqrt(x)",
    examples=lambda: [
        example(lambda x, y: x**1.5, leaves(2)),
        example(lambda x, y: x**-1.5, leaves(2)),
        example(lambda x, y: x**2.5, leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: x**1.25, leaves(2))],
)
def half_power(v: Value, context) -> Value | None:
    """A root and a product for pow. (Roots of -0.0 and -inf are -0.0 and nan; of their powers both are positive.)"""
    x, number = v.operands[0], splat_of(v.operands[1])
    if number is None or splat_of(x) is not None or abs(number) not in (1.5, 2.5):
        return None
    fact = context.facts(x)
    x = base_of_root(x, fact)
    out = x * sqrt(x)  # 0.0 of -0.0
    if abs(number) == 2.5:
        out = x * x * sqrt(x) if fact.positive else abs_(x) * x * sqrt(x)
    return out if number > 0 else div(splat(1, x.type), out)


@rewrite(
    "pow",
    kinds="f",
    needs=["#"],
    tags=["powers"],
    equation="x**(1/3) -> cbrt(x), and nan where x is negative and finite",
    examples=lambda: [example(lambda x, y: x ** (1 / 3), leaves(2))],
    misses=lambda: [example(lambda x, y: x**0.3333, leaves(2))],
)
def third_power(v: Value, context) -> Value | None:
    """1/3 is no float: the cube root is what is meant, and is right to the last place."""
    x, y = v.operands
    if not is_number(y, 1 / 3) or splat_of(x) is not None:
        return None
    base = base_of_root(x, context.facts(x))
    return cbrt(where(ge(base, 0), abs_(base), splat(np.nan, x.type)))


@rewrite(
    "pow",
    kinds="f",
    needs=["#"],
    tags=["powers"],
    equation="2**x -> exp2(x)",
    examples=lambda: [example(lambda x, y: pow_(splat(2.0, x.type), x), leaves(2))],
    misses=lambda: [example(lambda x, y: pow_(splat(3.0, x.type), x), leaves(2))],
)
def power_of_two(v: Value) -> Value | None:
    """A function of one argument for one of two."""
    x, y = v.operands
    return exp2(y) if is_number(x, 2) else None
