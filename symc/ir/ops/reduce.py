"""Reductions: over the axes in attribute `axes`, which the result does not have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symc.errors import ShapeError
from symc.ir.op import Derivative, Fold, Linear, Op, register
from symc.ir.ops.elementwise import check_kind
from symc.ir.ops.shape import broadcast
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value


def check_axes(name: str, t: TensorType, axes: tuple[int, ...]) -> None:
    """Axes must be sorted, distinct and in range."""
    if list(axes) != sorted(set(axes)) or any(not 0 <= a < t.ndim for a in axes):
        raise ShapeError(f"{name}: axes {axes} are not distinct axes of {t}")


def without_axes(t: TensorType, axes: tuple[int, ...]) -> TensorType:
    return t.with_shape([s for a, s in enumerate(t.shape) if a not in axes])


def other_axes(v: Value, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a for a in range(v.ndim) if a not in axes)


def spread(x: Value, over: Value, axes: tuple[int, ...]) -> Value:
    """Broadcast a reduction of `over` back over the reduced axes."""
    return broadcast(x, axes=other_axes(over, axes), shape=over.shape)


def reduction(name: str, kinds: str, reference: Callable, kind: str, derivative: Derivative | None = None, *,
              result: str = "same", nonempty: bool = False, doc: str = "") -> Op:
    """Register a reduction. ``kind``: the binary op that combines elements. ``nonempty``: has no value for no elements."""

    def infer(t: TensorType, axes: tuple[int, ...]) -> TensorType:
        check_axes(name, t, axes)
        check_kind(name, t, kinds)
        if nonempty and any(t.shape[a] == 0 for a in axes):
            raise ShapeError(f"{name} of no elements has no value: {t} over axes {axes}")
        t = without_axes(t, axes)
        return t.with_dtype(DTYPES["bool"]) if result == "bool" else t

    def run(x, axes):
        return np.asarray(reference(x, axis=tuple(axes))).astype(DTYPES["bool"] if result == "bool" else x.dtype, copy=False)

    return register(Op(name, infer, run, derivative, Fold(kind), frozenset({"reduction"}), lambda: samples(kinds), doc,
                       dict(kinds=kinds, nonempty=nonempty)))


def samples(kinds: str):
    """Small arrays of every dtype, over one axis, all, and none."""
    for dtype in DTYPES.values():
        if dtype.kind in kinds:
            x = (np.arange(12).reshape(3, 4) % 5 - (0 if dtype.kind in "bu" else 2)).astype(dtype)
            for axes in ((0,), (1,), (0, 1), ()):
                yield (x,), dict(axes=axes)


def _sum_reference(x, axis):
    return np.sum(x, axis=axis, dtype=x.dtype)


sum_ = reduction("sum", "iufc", _sum_reference, "add", Linear(lambda g, v: (spread(g, v.operands[0], v.attrs["axes"]),)),
                 doc="The sum over `axes`, in the operand's dtype.")
