"""Lengths and roots: squares overflow, and differences of roots cancel."""

from __future__ import annotations

import numpy as np

from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, hypot, maximum, mul
from symc.ir.ops.compare import gt, le
from symc.ir.ops.elementwise import like
from symc.ir.ops.linalg import adds_squares, dot
from symc.ir.ops.logic import where
from symc.ir.ops.math import log, log1p, sqrt
from symc.ir.ops.reduce import norm, sum_
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves, matrix
from symc.opt.engine.terms import flatten, join, number_and, number_apart, opposites, scale_apart, splat_like
from symc.opt.facts.log_forms import exponent_of

# --- lengths ----------------------------------------------------------------------------------------------------------


@rule
def sqrt_of_square(x):
    """The square overflows or underflows where |x| is ordinary."""
    return sqrt(x * x), abs_(x)


@rule
def sqrt_of_two_squares(x, y):
    """The squares overflow or underflow where the length is ordinary."""
    return sqrt(x * x + y * y), hypot(x, y)


@rule
def sqrt_of_square_plus_one(x):
    """The square overflows where the length is ordinary."""
    return sqrt(x * x + 1), hypot(x, 1.0)


@rule(when=lambda x, y: exponent_of(x) is None and exponent_of(y) is None)
def log_of_two_squares(x, y):
    """The squares overflow or underflow where the log of the length is ordinary."""
    return log(x * x + y * y), 2 * log(hypot(x, y))


def _square_of(x: Value) -> Value | None:
    """The value whose absolute value ``x`` is the square of."""
    if x.op is not mul or x.operands[0] is not x.operands[1]:
        return None
    base = x.operands[0]
    return base.operands[0] if base.op is abs_ else base


@rewrite(
    "sqrt",
    kinds="f",
    equation="sqrt(sum(x * x, axes) / n) -> norm(x, axes) * sqrt(1 / n); so for dot(x, x), and for |x| of complex x",
    examples=lambda: [
        (lambda x: sqrt(sum_(x * x, axes=(1,))))(matrix()),
        (lambda z: sqrt(sum_(abs_(z) * abs_(z), axes=(0, 1))))(leaves(1, {0: "c128"}, (3, 4))[0]),
        (lambda x: sqrt(sum_(x * x, axes=(1,)) / 3))(matrix()),
        sqrt(_dot(leaves(1, {}, (3,))[0], (0,))),
        sqrt(_dot(matrix(), (1,), (0,)) * 2),
    ],
    misses=lambda: [
        (lambda x, y: sqrt(sum_(x * y, axes=(1,))))(matrix(), matrix()),
        (lambda x: sqrt(sum_(x * x, axes=(1,)) / -3))(matrix()),
        (lambda x, y: sqrt(sum_(x * x, axes=(1,)) * y))(matrix(), leaves(1, {}, (3,))[0]),
        (lambda x: sqrt(dot(x, x, contract=((1,), (1,)), batch=((), ()))))(matrix()),
        example(lambda x, y: sqrt(dot(x, y, contract=((0,), (0,)), batch=((), ()))), leaves(2, {}, (3,))),
    ],
)
def sqrt_of_sum_of_squares(v: Value, context) -> Value | None:
    """The squares overflow or underflow where the length is ordinary; norm has a gradient of 0 at 0."""
    return _length(v.operands[0], context.facts)


def _length(x: Value, facts) -> Value | None:
    """The root of a sum of squares, or of one times numbers."""
    return _root_of_sum(x) if x.op in (sum_, dot) else _root_of_scaled_sum(x, facts)


def _root_of_sum(s: Value) -> Value | None:
    """The norm of what ``s`` is the sum of squares of."""
    if adds_squares(s) and list(s.attrs["batch"][0]) == sorted(s.attrs["batch"][0]):
        return norm(s.operands[0], axes=tuple(sorted(s.attrs["contract"][0])))
    x = _square_of(s.operands[0]) if s.op is sum_ else None
    return None if x is None else norm(x, axes=s.attrs["axes"])


def _root_of_scaled_sum(x: Value, facts) -> Value | None:
    """The root of a sum of squares times numbers and sizes, one of them at least: of a mean."""
    length, scale = None, []
    for s, y in flatten(x, "product"):
        found = _root_of_sum(y) if s > 0 and length is None else None
        if found is not None:
            length = found
        elif y.op.name in ("constant", "broadcast", "cast", "size") and facts(y).nonnegative:
            scale.append((s, y))
        else:
            return None
    return length * sqrt(join(scale, "product")) if length is not None and scale else None


@rewrite(
    "log",
    kinds="f",
    equation="log(sum(x * x, axes)) -> 2 * log(norm(x, axes)); so for dot(x, x), and for means",
    examples=lambda: [
        (lambda x: log(sum_(x * x, axes=(1,))))(matrix()),
        (lambda x: log(sum_(x * x, axes=(1,)) / 3))(matrix()),
        log(_dot(leaves(1, {}, (3,))[0], (0,))),
    ],
    misses=lambda: [(lambda x, y: log(sum_(x * y, axes=(1,))))(matrix(), matrix())],
)
def log_of_sum_of_squares(v: Value, context) -> Value | None:
    """The squares overflow or underflow where the log of their sum is ordinary."""
    length = _length(v.operands[0], context.facts)
    return None if length is None else log(length) * 2


def _dot(x: Value, axes: tuple[int, ...], batch: tuple[int, ...] = ()) -> Value:
    return dot(x, x, contract=(axes, axes), batch=(batch, batch))


def _scaled_square(x: Value) -> tuple[float, Value] | None:
    """``x`` as k * y*y for a positive number k: (k, y)."""
    number, rest = scale_apart(x)
    return (number, rest[0][1]) if len(rest) == 2 and rest[0] == rest[1] and rest[0][0] > 0 else None


@rewrite(
    "log1p",
    kinds="f",
    needs=["*"],
    weight=2,
    tags=["conditioned"],
    equation="log1p(3 * x*x) -> 2 * log1p(sqrt(3) * abs(x)) where x is large",
    examples=lambda: [
        example(lambda x: log1p(x * x * 3), leaves(1)),
        example(lambda x: log1p(x * x), leaves(1)),
    ],
    misses=lambda: [example(lambda x, y: log1p(x * y), leaves(2))],
)
def log1p_of_square(v: Value) -> Value | None:
    """The square overflows where its log is ordinary: the densities of Cauchy and Student."""
    found = _scaled_square(v.operands[0])
    return None if found is None else _log_of_large(v, *found)


@rewrite(
    "log",
    kinds="f",
    weight=2,
    tags=["conditioned"],
    equation="log(2 + 3 * x*x) -> 2 * log(sqrt(3) * abs(x)) where x is large; log(5 * (1 + x*x)) likewise",
    examples=lambda: [
        example(lambda x: log(x * x * 3 + 2), leaves(1)),
        example(lambda x: log((x * x + 1) * 5), leaves(1)),
    ],
    misses=lambda: [
        example(lambda x, y: log(x * y + 2), leaves(2)),
        example(lambda x, y: log((x * x + 1) / y), leaves(2)),
    ],
)
def log_of_number_and_square(v: Value) -> Value | None:
    """The square overflows where its log is ordinary."""
    (x,) = v.operands
    number, rest = scale_apart(x)
    (sign, y), *more = rest or [(-1, x)]
    found = number_and(y, _scaled_square) if sign > 0 and not more else None
    if found is None or x is y and found[0] == 1:
        return None  # for log1p
    return _log_of_large(v, found[1] * number, found[2])


def _log_of_large(v: Value, k: float, x: Value) -> Value:
    """``v``, a log of about k * x*x, by its root where that is so large that all else is rounded away."""
    info = np.finfo(v.dtype)
    size = abs_(x) * float(np.sqrt(k))
    large = gt(size, min(1 / float(info.eps), float(np.sqrt(info.max)) / 2))
    made = v.op(where(large, size, v.operands[0]))
    return where(large, made * 2, made)


@rewrite(
    "div",
    kinds="f",
    needs=["mul", "+"],
    tags=["conditioned"],
    equation="x*x / (2 + x*x) -> 1 where x is so large that it is",
    examples=lambda: [example(lambda x: x * x / (x * x + 2), leaves(1))],
    misses=lambda: [example(lambda x, y: x * y / (x * x + 2), leaves(2))],
)
def square_over_number_and_square(v: Value) -> Value | None:
    """inf / inf for large x."""
    above, below = v.operands
    found = number_and(below, _scaled_square)
    if found is None or found[1] != 1 or found[2].op is where or above.op is not mul:
        return None
    c, _, x = found
    if above.operands[0] is not x or above.operands[1] is not x:
        return None
    info = np.finfo(v.dtype)
    large = gt(abs_(x), min(2 * float(np.sqrt(c / info.eps)), float(np.sqrt(info.max)) / 2))
    size = where(large, like(x, 1), x)
    return where(large, like(v, 1), size * size / (size * size + c))


@rule
def sqrt_of_clipped(x):
    """A rounding error below 0 is no root; and where it is cut off the gradient is 0, not 0 * inf."""
    return sqrt(maximum(x, 0.0)), where(le(x, 0), splat(0, x.type), sqrt(x))


# --- differences of roots ---------------------------------------------------------------------------------------------


@rewrite(
    "sub",
    "add",
    kinds="f",
    needs=["sqrt"],
    equation="sqrt(x + 1) - sqrt(x) -> 1 / (sqrt(x + 1) + sqrt(x))",
    tags=["conditioned"],
    examples=lambda: [
        example(lambda x, y: sqrt(x + 1) - sqrt(x), leaves(2)),
        example(lambda x, y: y + sqrt(x + 0.5) - sqrt(x - 2), leaves(2)),
    ],
    misses=lambda: [
        example(lambda x, y: sqrt(x + 1) - sqrt(y), leaves(2)),
        example(lambda x, y: sqrt(x + 1) + sqrt(x), leaves(2)),
    ],
)
def difference_of_roots(v: Value) -> Value | None:
    """Cancels for large x."""
    for a, b, rest in opposites(flatten(v, "sum")):
        if a.op is sqrt and b.op is sqrt:
            (c, x), (d, y) = number_apart(a.operands[0]), number_apart(b.operands[0])
            if x is y and c != d:
                return join([(1, splat_like(c - d, v) / (a + b)), *rest], "sum")
    return None


@rule(domain={"x": (1e-8, 1e30), "y": (1e-8, 1e30)})
def difference_over_roots(x, y):
    """Numerator and denominator cancel, and the quotient is a sum."""
    return (x - y) / (sqrt(x) - sqrt(y)), sqrt(x) + sqrt(y)
