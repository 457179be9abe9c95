"""Sizes that must be equal: an op that asserts them, and is the source of guards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.errors import ShapeError
from symc.ir.dim import Size, known_equal, known_nonnegative
from symc.ir.facts import Facts
from symc.ir.op import Linear, Op, View, register
from symc.ir.size_extremes import maximum
from symc.ir.types import TensorType
from symc.ir.value import Value, first_line


def _ensure_infer(t: TensorType, shape: tuple[Size, ...]) -> TensorType:
    if len(shape) != t.ndim:
        raise ShapeError(f"ensure_shape: {t} has {t.ndim} axes, ({', '.join(map(str, shape))}) has {len(shape)}")
    for a, (have, want) in enumerate(zip(t.shape, shape, strict=True)):
        if known_equal(have, want) is False:
            raise ShapeError(f"ensure_shape: axis {a} has size {have}, not {want}")
    return t.with_shape(shape)


def _ensure_reference(x, shape):
    if x.shape != tuple(shape):
        raise ShapeError(f"sizes differ: an array of shape {x.shape} must have shape {tuple(shape)}")
    return x


ensure_shape: Op = register(Op(
    "ensure_shape", _ensure_infer, _ensure_reference,
    Linear(lambda g, v: (ensure_shape(g, shape=v.operands[0].shape),)),
    View(), frozenset({"movement", "asserts"}),
    lambda: iter([((np.ones((2, 3)),), dict(shape=(2, 3)))]),
    "The operand, whose sizes are asserted to be `shape`: the source of guards.",
    Facts(element=lambda v, index, at: at(0, index)),
))  # fmt: skip


def ensured(v: Value, shape: Sequence[Size]) -> Value:
    """Ensures sizes, where they are not these already."""
    return v if v.shape == tuple(shape) else ensure_shape(v, shape=tuple(shape))


def axis_ensured(v: Value, axis: int, size: Size) -> Value:
    """Ensures the size of one axis."""
    return ensured(v, [*v.shape[:axis], size, *v.shape[axis + 1:]])


def at_least(v: Value, axis: int, least: Size) -> Value:
    """Ensures that an axis is not shorter. Raises ShapeError where it is known to be."""
    n = v.shape[axis]
    if isinstance(n, int) and isinstance(least, int) and n < least:
        raise ShapeError(f"axis {axis} has size {n}; at least {least} are needed",
                         values=[("operand", v.type, first_line(v))])
    return v if known_nonnegative(n - least) else axis_ensured(axis_ensured(v, axis, maximum(n, least)), axis, n)
