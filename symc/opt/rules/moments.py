"""Variances and covariances: a mean of products minus a product of means loses what is small against the mean."""

from __future__ import annotations

import numpy as np

from symc.ir.dim import Size, product
from symc.ir.ops.arithmetic import div, mul
from symc.ir.ops.leaf import size
from symc.ir.ops.reduce import spread, sum_
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import matrix
from symc.opt.engine.terms import flatten, join, opposites, scale_apart, size_like


def _is_count(n: Value, count: Size, inverse: bool = False) -> bool:
    """True if ``n`` is this number of elements, or 1 divided by it."""
    number = splat_of(n)
    if number is not None:
        if not isinstance(count, int) or count <= 0:
            return False
        return bool(number == (number.dtype.type(1) / number.dtype.type(count) if inverse else count))
    while n.op.name in ("cast", "broadcast"):
        n = n.operands[0]
    return not inverse and n.op is size and n.attrs["value"] == count


def count_of(s: Value) -> Size:
    """The number of elements that a sum is over."""
    return product(s.operands[0].shape[a] for a in s.attrs["axes"])


def _mean_of(v: Value) -> Value | None:
    """The sum that ``v`` is, divided by how many elements there are."""
    if v.op not in (div, mul):
        return None
    s, n = v.operands
    if s.op is sum_ and _is_count(n, count_of(s), inverse=v.op is mul):
        return s
    return None


def _weighted_mean_of(v: Value) -> tuple[Value, Value] | None:
    """The sums of ``sum(w * x) / sum(w)``."""
    if v.op is not div:
        return None
    s, t = v.operands
    return (s, t) if s.op is t.op is sum_ and s.attrs == t.attrs and s.operands[0].op is mul else None


def _about_mean(s: Value) -> Value:
    """The sum ``s`` of products with the mean taken off each factor."""
    axes = s.attrs["axes"]
    means = [sum_(x, axes=axes) / size_like(count_of(s), s.type) for x in s.operands[0].operands]
    x, y = (x - spread(m, x, axes) for x, m in zip(s.operands[0].operands, means, strict=True))
    return sum_(x * y, axes=axes)


def _examples() -> list[Value]:
    def mean(x: Value) -> Value:
        return sum_(x, axes=(1,)) / 4

    def mean3(x: Value) -> Value:
        return sum_(x, axes=(0,)) / 3

    x, y = matrix(), matrix()
    return [
        mean(x * x) - mean(x) * mean(x),
        mean3(x * x) - mean3(x) * mean3(x),
        mean3(x * y) - mean3(x) * mean3(y),
        mean(x) + mean(x * y) - mean(x) * mean(y),
    ]


@rewrite(
    "sub",
    "add",
    kinds="f",
    needs=["mul"],
    equation="mean(x * y) - mean(x) * mean(y) -> mean((x - mean(x)) * (y - mean(y)))",
    examples=_examples,
    misses=lambda: [
        (lambda x: sum_(x * x, axes=(1,)) / 4 - (sum_(x, axes=(1,)) / 3) * (sum_(x, axes=(1,)) / 3))(matrix()),
        (lambda x, y: sum_(x * x, axes=(1,)) / 4 - (sum_(x, axes=(1,)) / 4) * (sum_(y, axes=(1,)) / 4))(
            matrix(), matrix()
        ),
    ],
)
def variance(v: Value) -> Value | None:
    """The difference cancels where the mean is large against the spread: of 1e8 + {0, 1, 2} nothing right is left."""
    for squares, square, rest in opposites(flatten(v, "sum")):
        whole = _mean_of(squares)
        if whole is not None and whole.operands[0].op is square.op is mul and _are_means(square.operands, whole):
            total = _about_mean(whole)
            return join([(1, total / size_like(count_of(whole), total.type)), *rest], "sum")
    return None


def _are_means(means: tuple[Value, ...], whole: Value) -> bool:
    """True if these are the means of the two factors in ``whole``, over the same axes, in either order."""
    sums = [_mean_of(m) for m in means]
    if any(s is None or s.attrs != whole.attrs for s in sums):
        return False
    found, wanted = [s.operands[0] for s in sums if s is not None], list(whole.operands[0].operands)
    return found[0] is wanted[0] and found[1] is wanted[1] or found[0] is wanted[1] and found[1] is wanted[0]


# --- sums of squares about the mean -----------------------------------------------------------------------------------


def _total_examples() -> list[Value]:
    x = matrix()
    s = sum_(x, axes=(1,))
    return [
        sum_(x * x, axes=(1,)) - s * s / 4,
        sum_(x * x, axes=(1,)) - (s / 4) * (s / 4) * 4,
        sum_(x * x, axes=(1,)) - s * (s / 4),
    ]


@rewrite(
    "sub",
    "add",
    kinds="f",
    needs=["sum"],
    equation="sum(x * x) - sum(x)**2 / n -> sum((x - mean(x))**2); so for sum(x * x) - n * mean(x)**2",
    examples=_total_examples,
    misses=lambda: [
        (lambda x: sum_(x * x, axes=(1,)) - sum_(x, axes=(1,)) * sum_(x, axes=(1,)) / 3)(matrix()),
        (lambda x: sum_(x * x, axes=(1,)) - sum_(x, axes=(1,)) * sum_(x, axes=(1,)))(matrix()),
    ],
)
def squares_about_mean(v: Value) -> Value | None:
    """The difference cancels where the mean is large against the spread."""
    for whole, square, rest in opposites(flatten(v, "sum")):
        if whole.op is sum_ and whole.operands[0].op is mul and _is_product_over_count(square, whole):
            return join([(1, _about_mean(whole)), *rest], "sum")
    return None


def _is_product_over_count(v: Value, whole: Value) -> bool:
    """True if ``v`` is sum(x) * sum(y) / n, x and y the factors in ``whole``, however n is spread over them."""
    wanted = [sum_(x, axes=whole.attrs["axes"]) for x in whole.operands[0].operands]
    count = count_of(whole)
    left, (number, rest) = 0, scale_apart(v)
    for s, x in rest:
        if x in wanted and s > 0:
            wanted.remove(x)
        elif _is_count(x, count):
            left += s
        else:
            return False
    if wanted:
        return False
    if isinstance(count, int):
        return abs(number * count - 1) <= 8 * float(np.finfo(v.dtype).eps) and left == 0
    return number == 1.0 and left == -1


# --- weighted ---------------------------------------------------------------------------------------------------------


def _weighted_examples() -> list[Value]:
    x, w = matrix(), matrix()
    total = sum_(w, axes=(1,))
    mean = sum_(w * x, axes=(1,)) / total
    return [sum_(w * (x * x), axes=(1,)) / total - mean * mean]


@rewrite(
    "sub",
    "add",
    kinds="f",
    needs=["div", "mul"],
    equation="sum(w * x * x) / sum(w) - (sum(w * x) / sum(w))**2 -> sum(w * (x - mean)**2) / sum(w)",
    examples=_weighted_examples,
    misses=lambda: [
        (lambda x, w: sum_(w * (x * x), axes=(1,)) / sum_(w, axes=(1,)) - sum_(w * x, axes=(1,)))(matrix(), matrix())
    ],
)
def weighted_variance(v: Value) -> Value | None:
    """The difference cancels where the mean is large against the spread."""
    for squares, square, rest in opposites(flatten(v, "sum")):
        whole = _weighted_mean_of(squares)
        if whole is None or square.op is not mul or square.operands[0] is not square.operands[1]:
            continue
        mean = _weighted_mean_of(square.operands[0])
        x = None if mean is None or mean[1] is not whole[1] else _weighted(mean[0], whole)
        if x is not None:
            axes, w = whole[0].attrs["axes"], whole[1].operands[0]
            d = x - spread(square.operands[0], x, axes)
            return join([(1, sum_(w * (d * d), axes=axes) / whole[1]), *rest], "sum")
    return None


def _weighted(first: Value, whole: tuple[Value, Value]) -> Value | None:
    """The x of ``first`` = sum(w * x), when ``whole`` is (sum(w * x * x), sum(w))."""
    w = whole[1].operands[0]
    factors = list(first.operands[0].operands)
    if w not in factors:
        return None
    factors.remove(w)
    (x,) = factors
    squares = [f for s, f in flatten(whole[0].operands[0], "product") if s > 0]
    for f in (w, x, x):
        if f not in squares:
            return None
        squares.remove(f)
    return None if squares else x
