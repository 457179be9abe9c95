"""Reductions and products of arrays: what is the same for all elements leaves them, sums of products are products."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from symc.ir.attrs import Array
from symc.ir.dim import product
from symc.ir.op import lookup, splat
from symc.ir.ops.arithmetic import abs_, maximum, minimum, mul, neg
from symc.ir.ops.cumulative import cumsum
from symc.ir.ops.linalg import dot
from symc.ir.ops.reduce import COMBINING, max_, min_, sum_
from symc.ir.ops.shape import broadcast, concat, inverse_permutation, reshape, slice_, transpose
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.empty import factor_of_sum, soon_infinite, where_any
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, leaf, leaves
from symc.opt.engine.terms import everywhere, flatten, join

#: Parts of a concatenation that are reduced one by one.
MOST_PARTS = 4


# --- signs and numbers ------------------------------------------------------------------------------------------------


@rewrite(
    "max",
    "min",
    kinds="f",
    needs=["neg"],
    tags=["signed-zero"],
    equation="max(-x, axes) -> -min(x, axes); min(-x, axes) -> -max(x, axes)",
    examples=lambda: [max_(-leaf(3, 4), axes=(1,)), min_(-leaf(3, 4), axes=(0, 1))],
)
def extreme_of_negated(v: Value) -> Value | None:
    """One sign for many."""
    (x,) = v.operands
    return -(min_ if v.op is max_ else max_)(x.operands[0], axes=v.attrs["axes"]) if x.op is neg else None


@rewrite(
    "maximum",
    "minimum",
    exact=True,
    kinds="iuf",
    needs=["#"],
    equation="maximum(maximum(x, 2), 3) -> maximum(x, 3)",
    examples=lambda: [
        example(lambda x, y: maximum(maximum(x, 2), 3), leaves(2)),
        example(lambda x, y: minimum(minimum(x, 3), 2), leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: maximum(minimum(x, 2), 3), leaves(2))],
)
def extreme_of_numbers(v: Value) -> Value | None:
    """Bounds on one side are one bound."""
    x, outer = v.operands[0], splat_of(v.operands[1])
    if outer is None or x.op is not v.op or (inner := splat_of(x.operands[1])) is None:
        return None
    bound = np.maximum(inner, outer) if v.op is maximum else np.minimum(inner, outer)
    if v.dtype.kind == "f" and (np.isnan(bound) or bound == 0):
        return None
    return v.op(x.operands[0], splat(Array(np.asarray(bound, v.dtype)), v.type))


def _scale_of(x: Value) -> tuple[Value, Value, str] | None:
    """``x`` as y * c or y / c, with c one number for all elements: (y, c of rank 0, op name)."""
    if x.op.name not in ("mul", "div"):
        return None
    for k in (1, 0) if x.op is mul else (1,):
        c = everywhere(x.operands[k])
        if c is not None:
            return x.operands[1 - k], c, x.op.name
    return None


def _scaled(x: Value, c: Value, op_name: str) -> Value:
    return lookup(op_name)(x, broadcast(c, axes=(), shape=x.shape) if x.ndim else c)


@rewrite(
    "dot",
    kinds="fc",
    tags=["reassociate"],
    equation="dot(x * c, y) -> dot(x, y) * c for a scalar c; so for x / c",
    examples=lambda: [
        _matmul(leaf(3, 4) * 3, leaf(4, 2)),
        _matmul(leaf(3, 4), leaf(4, 2) / broadcast(leaf(), axes=(), shape=(4, 2))),
    ],
    misses=lambda: [_matmul(leaf(3, 4) * broadcast(leaf(4), axes=(1,), shape=(3, 4)), leaf(4, 2))],
)
def dot_of_scaled(v: Value, context) -> Value | None:
    """A scalar leaves a product of arrays: it is a factor of the call."""
    for k in () if soon_infinite(v.type) else (0, 1):
        found = _scale_of(v.operands[k]) if context.single_use(v.operands[k]) else None
        if found is not None:
            y, c, name = found
            operands = [y if i == k else o for i, o in enumerate(v.operands)]
            count = product(y.shape[a] for a in v.attrs["contract"][k])
            c = factor_of_sum(c, count, context.facts, divides=name == "div")
            return _scaled(dot(*operands, **v.attrs), c, name)
    return None


@rewrite(
    "dot",
    kinds="fc",
    needs=["neg"],
    tags=["signed-zero"],
    equation="dot(-x, y) -> -dot(x, y)",
    examples=lambda: [_matmul(-leaf(3, 4), leaf(4, 2)), _matmul(leaf(3, 4), -leaf(4, 2))],
)
def dot_of_negated(v: Value, context) -> Value | None:
    """A sign leaves a product of arrays."""
    for k in (0, 1):
        x = v.operands[k]
        if x.op is neg and context.single_use(x):
            return -dot(*[x.operands[0] if i == k else o for i, o in enumerate(v.operands)], **v.attrs)
    return None


def _matmul(x: Value, y: Value) -> Value:
    return dot(x, y, contract=((x.ndim - 1,), (0,)), batch=((), ()))


# --- running sums -----------------------------------------------------------------------------------------------------


@rewrite(
    "slice",
    kinds="fiu",
    needs=["cumsum"],
    tags=["reassociate"],
    equation="cumsum(x)[-1] -> sum(x)",
    examples=lambda: [
        slice_(cumsum(leaf(3, 4), axis=1, reverse=False), start=(0, 3), size=(3, 1), step=(1, 1)),
        slice_(cumsum(leaf(4), axis=0, reverse=True), start=(0,), size=(1,), step=(1,)),
    ],
    misses=lambda: [slice_(cumsum(leaf(4), axis=0, reverse=False), start=(2,), size=(1,), step=(1,))],
    written=lambda sc: [sc.cumsum(sc.matrix("x"), 1)[:, -1], sc.cumsum(sc.matrix("x", shape=(3, 4)), 0)[-1:]],
)
def end_of_cumsum(v: Value) -> Value | None:
    """Only the end of the running sum is read."""
    (s,) = v.operands
    if s.op is not cumsum:
        return None
    axis, reverse, (x,) = s.attrs["axis"], s.attrs["reverse"], s.operands
    start, n, step = v.attrs["start"], v.attrs["size"], v.attrs["step"]
    end = 0 if reverse else x.shape[axis] - 1
    if n[axis] != 1 or start[axis] != end:
        return None
    kept = [a for a in range(x.ndim) if a != axis]
    total = sum_(x, axes=(axis,))
    if kept:
        total = slice_(total, **{k: tuple(w[a] for a in kept) for k, w in
                                 (("start", start), ("size", n), ("step", step))})  # fmt: skip
    return reshape(total, shape=v.shape)


# --- concatenations ---------------------------------------------------------------------------------------------------


@rewrite(
    *COMBINING,
    kinds="biuf",
    needs=["concat"],
    tags=["reassociate"],
    equation="sum(concat(x, y)) -> sum(x) + sum(y); so for max, min, prod, any, all",
    examples=lambda: [
        sum_(concat(leaf(3, 4), leaf(3, 2), axis=1), axes=(1,)),
        max_(concat(leaf(3, 4), leaf(2, 4), axis=0), axes=(0, 1)),
    ],
    misses=lambda: [sum_(concat(leaf(3, 4), leaf(3, 2), axis=1), axes=(0,))],
)
def reduce_of_concat(v: Value, context) -> Value | None:
    """The parts need not lie side by side."""
    (c,), axes = v.operands, v.attrs["axes"]
    if c.op is not concat or c.attrs["axis"] not in axes or len(c.operands) > MOST_PARTS or not context.single_use(c):
        return None
    if v.op.name in ("max", "min") and not all(_has_elements(x, axes) for x in c.operands):
        return None
    return functools.reduce(COMBINING[v.op.name], [v.op(x, axes=axes) for x in c.operands])


def _has_elements(x: Value, axes: Sequence[int]) -> bool:
    count = product(x.shape[a] for a in axes)
    return isinstance(count, int) and count > 0


# --- sums of products -------------------------------------------------------------------------------------------------


def _axes_of(x: Value) -> tuple[tuple[int, ...], Value]:
    """The axes along which a factor varies, and the factor without the others."""
    return (x.attrs["axes"], x.operands[0]) if x.op is broadcast else (tuple(range(x.ndim)), x)


def _grouped(v: Value) -> dict[tuple[int, ...], list[Value]] | None:
    """The factors of what is summed, by the axes along which they vary."""
    groups: dict[tuple[int, ...], list[Value]] = {}
    for s, x in flatten(v.operands[0], "product"):
        if s < 0 or splat_of(x) is not None:
            return None
        axes, part = _axes_of(x)
        groups.setdefault(axes, []).append(part)
    return groups if len(groups) == 2 else None


def _spread_product() -> Value:
    """A @ B spelled with a broadcast product."""
    a = broadcast(leaf(3, 4), axes=(0, 1), shape=(3, 4, 5))
    return sum_(a * broadcast(leaf(4, 5), axes=(1, 2), shape=(3, 4, 5)), axes=(1,))


def _squares_of_products() -> Value:
    w = broadcast(leaf(4, 5), axes=(1, 2), shape=(3, 4, 5))
    m = w * broadcast(leaf(3, 5), axes=(0, 2), shape=(3, 4, 5))
    return sum_(m * m, axes=(1, 2))


@rewrite(
    "sum",
    kinds="f",
    needs=["mul"],
    tags=["reassociate"],
    equation="sum(x[:, :, None] * y[None], 1) -> x @ y; so for squares of such products, and for sum(A * v, 1)",
    examples=lambda: [
        _spread_product(),
        _squares_of_products(),
        sum_(leaf(3, 4) * broadcast(leaf(4), axes=(1,), shape=(3, 4)), axes=(1,)),
    ],
    misses=lambda: [
        sum_(leaf(3, 4) * leaf(3, 4), axes=(1,)),
        sum_(abs_(leaf(3, 4)) * broadcast(leaf(4), axes=(1,), shape=(3, 4)), axes=(1,)),
    ],
)
def sum_of_products(v: Value, context) -> Value | str | None:
    """A product of arrays: one call of a library, and nothing of the size of all pairs.

    Where an axis of one factor alone has no elements, the sum is 0, also if the other factor is infinite.
    """
    groups = _grouped(v)
    if groups is None:
        return None
    (left, xs), (right, ys) = groups.items()
    summed = set(v.attrs["axes"])
    shared = summed & set(left) & set(right)
    free = [set(a) - set(b) - summed for a, b in ((left, right), (right, left))]
    if not shared or not (free[0] or free[1]):
        return "the factors have no axis to contract, or no axis of their own"
    if not (free[0] and free[1]) and not all(map(_in_memory, (*xs, *ys))):
        return "a kernel computes it on the way"
    x, y = (join([(1, p) for p in parts], "product") for parts in (xs, ys))
    safe = context.facts(x).finite and context.facts(y).finite
    x, left = _summed(x, left, summed - shared)
    y, right = _summed(y, right, summed - shared)
    both = [a for a in left if a in right]
    batch = [a for a in both if a not in shared]
    out = dot(
        x,
        y,
        contract=tuple(tuple(axes.index(a) for a in sorted(shared)) for axes in (left, right)),
        batch=tuple(tuple(axes.index(a) for a in batch) for axes in (left, right)),
    )
    if not safe:
        out = where_any(out, product(v.operands[0].shape[a] for a in summed - shared), 0)
    order = [*batch, *[a for a in left if a not in both], *[a for a in right if a not in both]]
    if order == sorted(order):
        return out
    perm = inverse_permutation(tuple(sorted(order).index(a) for a in order))
    return transpose(out, perm=perm)


def _in_memory(x: Value) -> bool:
    """True if a factor is there anyway: an input, or what no kernel computes."""
    return x.op.name in ("input", "param", "constant", "get", "dot")


def _summed(x: Value, axes: tuple[int, ...], gone: set[int]) -> tuple[Value, tuple[int, ...]]:
    """A factor summed over the axes that only it has."""
    mine = tuple(k for k, a in enumerate(axes) if a in gone)
    return (sum_(x, axes=mine) if mine else x), tuple(a for a in axes if a not in gone)
