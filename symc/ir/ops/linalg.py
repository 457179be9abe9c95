"""Products of arrays: one op, `dot`, contracts any axes with any batch axes; einsum, matmul, tensordot become dots."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.facts import Facts
from symc.ir.op import Extern, Multilinear, Op, register
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.shape import in_order
from symc.ir.types import TensorType
from symc.ir.value import Value

Axes = tuple[int, ...]


#: The product of matrices: the last axis of the left operand with the first of the right one, no batch axes.
PRODUCT: dict[str, Any] = dict(contract=lambda *types: ((types[0].ndim - 1,), (0,)), batch=((), ()))


def dot_type(a: TensorType, b: TensorType, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]) -> TensorType:
    if a.dtype != b.dtype:
        raise DTypeError(f"dot: operand dtypes differ: {a} and {b}")
    if a.dtype.kind == "b":
        raise DTypeError("dot is not defined for bool", help="cast to an integer type first")
    for x, y, what in ((*contract, "contracted"), (*batch, "batch")):
        if len(x) != len(y):
            raise ShapeError(f"dot: {len(x)} {what} axes on the left, {len(y)} on the right")
        for i, j in zip(x, y, strict=True):
            if a.shape[i] != b.shape[j]:
                raise ShapeError(f"dot: {what} axes differ: axis {i} of {a} and axis {j} of {b}")
    return a.with_shape([a.shape[i] for i in batch[0]] + [a.shape[i] for i in free_axes(a, contract[0], batch[0])]
                        + [b.shape[j] for j in free_axes(b, contract[1], batch[1])])


def free_axes(t, contract: Axes, batch: Axes) -> Axes:
    """Axes of an operand that are neither contracted nor batch."""
    return tuple(i for i in range(len(t.shape)) if i not in contract and i not in batch)


def adds_squares(v: Value) -> bool:
    """True for a product of one array with itself in which every element meets itself: a sum of squares."""
    if v.op is not dot or v.operands[0] is not v.operands[1]:
        return False
    (axes, others), (batch, batched) = v.attrs["contract"], v.attrs["batch"]
    return axes == others and batch == batched and len(axes) + len(batch) == v.operands[0].ndim


def contract_first(x: Value, contract: tuple[int, ...], batch: tuple[int, ...]) -> bool | None:
    """True if the contracted axes come before the free ones, in order; None if they are mixed."""
    rest = [i for i in range(x.ndim) if i not in batch]
    free = list(free_axes(x, contract, batch))
    if rest == [*contract, *free]:
        return True
    return False if rest == [*free, *contract] else None


def dot_reference(a, b, contract, batch):
    if a.dtype.char in "fdFD" and not batch[0] and a.ndim and b.ndim and a.ndim + b.ndim > 2:
        # what einsum comes to in a hundred microseconds
        plain = contract == ((a.ndim - 1,), (0,)) and b.ndim <= 2
        return np.matmul(a, b) if plain else np.tensordot(a, b, contract)
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    left = [next(letters) for _ in a.shape]
    right = [next(letters) for _ in b.shape]
    for i, j in zip(contract[0] + batch[0], contract[1] + batch[1], strict=True):
        right[j] = left[i]
    out = [left[i] for i in batch[0] + free_axes(a, contract[0], batch[0])]
    out += [right[j] for j in free_axes(b, contract[1], batch[1])]
    formula = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    return np.asarray(np.einsum(formula, a, b, optimize=a.ndim + b.ndim > 2), dtype=a.dtype)


def transpose_left(g: Value, v: Value) -> Value:
    a, b = v.operands
    return _cotangent(g, a, conjugate(b), v.attrs["contract"], v.attrs["batch"], g_free_first=True)


def transpose_right(g: Value, v: Value) -> Value:
    a, b = v.operands
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    return _cotangent(g, b, conjugate(a), contract[::-1], batch[::-1], g_free_first=False)


def _cotangent(g: Value, x: Value, other: Value, contract, batch, g_free_first: bool) -> Value:
    """The cotangent of operand x: contract g's axes that came from `other` with `other`'s free axes, then reorder."""
    n_batch = len(batch[0])
    x_free, other_free = free_axes(x, contract[0], batch[0]), free_axes(other, contract[1], batch[1])
    first, second = (x_free, other_free) if g_free_first else (other_free, x_free)
    g_first = tuple(range(n_batch, n_batch + len(first)))
    g_second = tuple(range(n_batch + len(first), n_batch + len(first) + len(second)))
    g_other = g_second if g_free_first else g_first
    g_batch = tuple(range(n_batch))
    # axes of the result: batch, x's free axes (from g), x's contracted axes (left in `other`), or the last two swapped
    order = [i for i in range(other.ndim) if i in contract[1]]
    left = [contract[0][contract[1].index(i)] for i in order]
    if [*batch[0], *left, *x_free] == list(range(x.ndim)):
        return dot(other, g, contract=(other_free, g_other), batch=(batch[1], g_batch))
    out = dot(g, other, contract=(g_other, other_free), batch=(g_batch, batch[1]))
    sources = [*batch[0], *x_free, *left]
    return in_order(out, [sources.index(i) for i in range(x.ndim)])


def meets(v: Value, k: int, places: tuple[np.ndarray, ...] | None = None) -> tuple[Any, Any]:
    """The elements of the result that operand ``k`` has a part in (see ``Facts.meets``)."""
    x, other = v.operands[k], v.operands[1 - k]
    contract, batch = (v.attrs["contract"][i] for i in (k, 1 - k)), (v.attrs["batch"][i] for i in (k, 1 - k))
    (mine, its), (shared, its_shared) = contract, batch
    free, its_free = free_axes(x, mine, shared), free_axes(other, its, its_shared)
    first, second = (free, its_free) if k == 0 else (its_free, free)
    order = [(k == 0, a) for a in first] + [(k != 0, a) for a in second]  # of the result, after the batch axes
    at = {entry: len(shared) + i for i, entry in enumerate(order)}
    kept = [*range(len(shared)), *[at[True, a] for a in free]]
    if places is None:
        return (*shared, *free), kept
    inside = sum(places[j] * _stride(x.shape, i) for i, j in zip((*mine, *shared), (*its, *its_shared), strict=True))
    outside = sum([places[a] * _stride(v.shape, at[False, a]) for a in its_free]
                  + [places[a] * _stride(v.shape, i) for i, a in enumerate(its_shared)])
    count = (len(places[0]) if places else 1,)
    return tuple((np.broadcast_to(start, count)[:, None] + _span(shape, axes)).ravel()
                 for start, shape, axes in ((outside, v.shape, [at[True, a] for a in free]), (inside, x.shape, free)))


def _stride(shape: Sequence[Any], axis: int) -> int:
    return prod(shape[axis + 1:])


def _span(shape: Sequence[Any], axes: Sequence[int]) -> np.ndarray:
    """The positions of all indices along these axes, the others at 0."""
    out = np.zeros(1, np.int64)
    for a in axes:
        out = (out[:, None] + np.arange(shape[a]) * _stride(shape, a)).ravel()
    return out


def _samples():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    for dtype in ("f4", "f8", "c16", "i8", "f2"):
        yield (a.astype(dtype), b.astype(dtype)), dict(contract=((1,), (0,)), batch=((), ()))
    yield (a, rng.normal(size=(5, 4))), dict(contract=((1,), (1,)), batch=((), ()))
    yield (a[0], b[:, 0]), dict(contract=((0,), (0,)), batch=((), ()))
    yield (a[0], b[:, 0]), dict(contract=((), ()), batch=((), ()))
    yield (rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))), dict(contract=((2,), (1,)), batch=((0,), (0,)))
    yield ((rng.normal(size=(4, 2, 3)), rng.normal(size=(5, 3, 4, 2))),
           dict(contract=((0, 2), (2, 1)), batch=((1,), (3,))))
    yield (np.ones((2, 0)), np.ones((0, 3))), dict(contract=((1,), (0,)), batch=((), ()))


dot = register(Op(
    "dot", dot_type, dot_reference, Multilinear((transpose_left, transpose_right)), Extern("dot"),
    frozenset({"contraction"}), _samples,
    "Sum of products over the axes in `contract`; result axes are batch, left free, right free.",
    facts=Facts(rounding="short", indeterminate=True, meets=meets),
    defaults=PRODUCT,
))  # fmt: skip


def matmul(a: Value, b: Value) -> Value:
    """The product of two matrices."""
    return dot(a, b, contract=((1,), (0,)), batch=((), ()))
