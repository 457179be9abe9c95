"""Functions near 0 that are x there but for a square or a cube: what is left of them without x, as series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial

from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.compare import lt
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import where
from symc.ir.ops.math import exp, expm1, log1p, sin
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.terms import flatten, is_number, join, without


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of the coefficients times powers of x, by Horner's rule."""
    out = like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        out = out * x + c
    return out


def _of_expm1(x: Value) -> Value:
    return _polynomial(x, [1 / factorial(k) for k in range(2, 15)])


def _of_log1p(x: Value) -> Value:
    """Logarithm by the series of atanh(x / (2 + x)), which has fewer terms."""
    r = 1 / (x + 2)
    s = x * r
    return (_polynomial(s * s, [2 / (2 * k + 3) for k in range(12)]) * (s * r) - 1) * r


def _of_sin(x: Value) -> Value:
    return _polynomial(x * x, [(-1) ** k / factorial(2 * k + 1) for k in range(1, 10)]) * x


#: By op f: p(x) with f(x) = x + x*x * p(x), and below which x that is used: beyond f(x) - x has its digits.
SERIES: dict[str, tuple[Callable[[Value], Value], float]] = {
    "expm1": (_of_expm1, 0.5),
    "log1p": (_of_log1p, 0.3),
    "sin": (_of_sin, 1.0),
}


def _near(x: Value, limit: float) -> tuple[Value, Value]:
    """The mask of small x, and x there."""
    near = lt(abs_(x), limit)
    return near, where(near, x, like(x, 0))


@rewrite(
    "sub",
    "add",
    kinds="f",
    tags=["conditioned"],
    equation="expm1(x) - x -> x*x * (1/2 + x * (1/6 + ...)) where x is small; so for exp(x) - (1 + x), log1p, sin",
    examples=lambda: [
        example(lambda x: expm1(x) - x, leaves(1)),
        example(lambda x: exp(x) - (1 + x), leaves(1)),
        example(lambda x: x - log1p(x), leaves(1)),
        example(lambda x: x - sin(x), leaves(1)),
    ],
    misses=lambda: [example(lambda x, y: sin(x) - y, leaves(2)), example(lambda x: sin(x) + x, leaves(1))],
)
def series_without_argument(v: Value) -> Value | None:
    """Cancels near 0."""
    terms = flatten(v, "sum")
    for i, (s, y) in enumerate(terms):
        op = expm1 if y.op is exp else y.op
        if op.name not in SERIES or (-s, y.operands[0]) not in terms:
            continue
        (x,) = y.operands
        gone = [i, terms.index((-s, x))]
        if y.op is exp:
            one = next((k for k, (t, n) in enumerate(terms) if is_number(n, -s * t)), None)
            if one is None:
                continue
            gone.append(one)
        series, limit = SERIES[op.name]
        near, z = _near(x, limit)
        made = where(near, z * z * series(z), op(x) - where(near, like(x, 0), x))
        return join([(s, made), *without(terms, *gone)], "sum")
    return None


@rewrite(
    "div",
    kinds="f",
    equation="expm1(x) / x -> 1 + x * (1/2 + x * (1/6 + ...)) where x is small; so for log1p",
    examples=lambda: [
        example(lambda x: expm1(x) / x, leaves(1)),
        example(lambda x: log1p(x) / x, leaves(1)),
    ],
    misses=lambda: [example(lambda x, y: expm1(x) / y, leaves(2))],
)
def series_over_argument(v: Value) -> Value | None:
    """0 / 0 at 0, and the derivative, a difference of quotients, cancels near 0."""
    y, x = v.operands
    if y.op not in (expm1, log1p) or y.operands[0] is not x:
        return None
    series, limit = SERIES[y.op.name]
    near, z = _near(x, limit)
    return where(near, z * series(z) + 1, y / where(near, like(x, 1), x))
