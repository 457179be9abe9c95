"""Edges: where a derivative would be 0 * inf although nothing changes. Values are what they were without it."""

from __future__ import annotations

from symc.ir.ops.arithmetic import abs_, pow_
from symc.ir.ops.compare import eq, ge
from symc.ir.ops.elementwise import like
from symc.ir.ops.linalg import adds_squares
from symc.ir.ops.logic import where
from symc.ir.ops.math import cbrt, exp, expm1, sqrt
from symc.ir.ops.reduce import sum_
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, leaves, matrix
from symc.opt.engine.terms import flatten

#: Sums and products are looked into so far.
DEPTH = 6


def order_of(x: Value, facts, depth: int = DEPTH) -> float:
    """The greatest p for which x is a sum of terms like c * |y|**p, c not negative; 0 if it is none."""
    if x.op is pow_:
        number = splat_of(x.operands[1])
        known = number is not None and number > 0 and (number % 2 == 0 or facts(x.operands[0]).nonnegative)
        return float(number) if known and number is not None else 0.0  # (|y| of |y|**p is not negative)
    if x.op is abs_:
        return 1.0
    if adds_squares(x):
        return 2.0
    if not depth:
        return 0.0
    if x.op is sum_ or "movement" in x.op.traits and len(x.operands) == 1:
        return order_of(x.operands[0], facts, depth - 1)
    if x.op.name in ("add", "sub"):
        terms = flatten(x, "sum")
        return min(order_of(y, facts, depth - 1) if s > 0 else 0.0 for s, y in terms)
    return _order_of_product(x, facts, depth) if x.op.name in ("mul", "div") else 0.0


def _order_of_product(x: Value, facts, depth: int) -> float:
    terms = flatten(x, "product")
    above = [y for s, y in terms if s > 0]
    order = 0.0
    for s, y in terms:
        if s > 0 and above.count(y) == 2:
            order += 1
        elif s > 0 and (own := order_of(y, facts, depth - 1)):
            order += own
        elif not facts(y).nonnegative:
            return 0.0
    return order


@rewrite(
    "sqrt",
    "cbrt",
    "pow",
    kinds="f",
    weight=0,
    equation="sqrt(mean(x*x)) -> 0 where that is 0; so for roots of sums of powers of degree 1 and more",
    examples=lambda: [
        (lambda x: sqrt(sum_(x * x, axes=(1,)) / 4))(matrix()),
        example(lambda x, y, z: sqrt(x * x + y * y + z * z), leaves(3)),
        (lambda x: cbrt(sum_(pow_(abs_(x), like(x, 3)), axes=(1,))))(matrix()),
    ],
    misses=lambda: [
        (lambda x, y: sqrt(sum_(x * y, axes=(1,)) / 4))(matrix(), matrix()),
        (lambda x: sqrt(sum_(abs_(x), axes=(1,)) / 4))(matrix()),
    ],
)
def root_of_sum_of_powers(v: Value, context) -> Value | None:
    """A length is 0 where all of it is: as for ``norm``, the derivative there is 0, not inf * 0."""
    x, power = v.operands[0], 0.5
    if v.op is pow_:
        number = splat_of(v.operands[1])
        if number is None or not 0 < number < 1:
            return None
        power = float(number)
    elif v.op is cbrt:
        power = 1 / 3
    if order_of(x, context.facts) * power < 1 - 1e-6:
        return None
    zero = eq(x, like(x, 0))
    return where(zero, like(v, 0), v.op(where(zero, like(x, 1), x), *v.operands[1:]))


@rewrite(
    "div",
    kinds="f",
    needs=["expm1"],
    tags=["signed-zero"],
    equation="y / expm1(x) -> where(x >= 0, y * exp(-abs(x)), -y) / -expm1(-abs(x))",
    examples=lambda: [
        example(lambda x: 1 / expm1(x), leaves(1)),
        example(lambda x, y: y / expm1(x), leaves(2)),
    ],
    misses=lambda: [example(lambda x: 1 / expm1(-abs_(x)), leaves(1))],
)
def quotient_by_expm1(v: Value, context) -> Value | None:
    """The gradient is 0 * inf where exp(x) overflows: the distributions of Bose and Planck."""
    y, d = v.operands
    if d.op is not expm1 or y.op is exp or context.facts(d.operands[0]).nonpositive:
        return None
    (x,) = d.operands
    size = -abs_(x)
    return where(ge(x, 0), y * exp(size), -y) / -expm1(size)
