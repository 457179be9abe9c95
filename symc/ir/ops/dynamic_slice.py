"""Windows whose place is a value, read and written. The place is moved so that the window fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size, known_equal, known_nonnegative
from symc.ir.facts import Facts
from symc.ir.op import Element, Linear, Op, Update, register
from symc.ir.ops.arithmetic import maximum, minimum
from symc.ir.ops.elementwise import like
from symc.ir.ops.leaf import size
from symc.ir.types import TensorType
from symc.ir.value import Value


def _check_starts(name: str, t: TensorType, starts: Sequence[TensorType], window: Sequence[Size]) -> None:
    if len(starts) != t.ndim or len(window) != t.ndim:
        raise ShapeError(f"{name}: {len(starts)} starts and a window of {len(window)} axes for {t}")
    for s in starts:
        if s is not TensorType("i64", ()):
            raise DTypeError(f"{name}: a start is {s}, not an i64 scalar")
    for a, (n, k) in enumerate(zip(t.shape, window, strict=True)):
        if known_equal(n, k) is False and known_nonnegative(k - n - 1):
            raise ShapeError(f"{name}: a window of {k} does not fit axis {a} of {t}")


def _clamped(starts: Sequence, shape: Sequence[int], window: Sequence[int]) -> tuple[slice, ...]:
    firsts = [max(0, min(int(s), n - k)) for s, n, k in zip(starts, shape, window, strict=True)]
    return tuple(slice(a, a + k) for a, k in zip(firsts, window, strict=True))


def _starts(v: Value, first: int, window: Sequence[Size], at) -> list[Value]:
    """The scalar starts of a window, moved so that it fits."""
    spare = [n - k for n, k in zip(v.operands[0].shape, window, strict=True)]
    return [maximum(minimum(at(first + a, ()), size(value=s)), 0) for a, s in enumerate(spare)]


def _slice_infer(t: TensorType, *starts: TensorType, size: tuple[Size, ...]) -> TensorType:
    _check_starts("dynamic_slice", t, starts, size)
    return t.with_shape(size)


def _slice_reference(x, *starts, size):
    return np.array(x[_clamped(starts, x.shape, size)], order="C")


def _slice_element(v: Value, index: Sequence[Value], at) -> Value:
    firsts = _starts(v, 1, v.shape, at)
    return at(0, [a + i for a, i in zip(firsts, index, strict=True)])


def _slice_transpose(g, v):
    x, *starts = v.operands
    return [dynamic_update_slice(like(x, 0), g, *starts), *[None] * len(starts)]


def _slice_samples() -> Iterator[tuple[tuple, dict]]:
    x = np.arange(12.0).reshape(3, 4)
    for a, b in ((0, 0), (1, 2), (-5, 9)):
        yield (x, np.int64(a), np.int64(b)), dict(size=(2, 3))
    yield (np.arange(5), np.int64(3)), dict(size=(0,))
    yield (np.array(2.5),), dict(size=())


dynamic_slice = register(Op(
    "dynamic_slice", _slice_infer, _slice_reference, Linear(_slice_transpose, (0,)), Element(_slice_element),
    frozenset({"indexing", "selects"}), _slice_samples,
    "A window of `size` that starts at the i64 scalars after the first operand, moved so that it fits.",
    facts=Facts(rounding="none", picks=1),
))  # fmt: skip


def _update_infer(t: TensorType, update: TensorType, *starts: TensorType) -> TensorType:
    if update.dtype != t.dtype:
        raise DTypeError(f"dynamic_update_slice: {update} into {t}", help="cast them to one dtype")
    _check_starts("dynamic_update_slice", t, starts, update.shape)
    return t


def _update_reference(x, update, *starts):
    out = np.array(x)
    out[_clamped(starts, x.shape, update.shape)] = update
    return out


def _update_place(v: Value, index: Sequence[Value], at) -> list[Value]:
    return [a + i for a, i in zip(_starts(v, 2, v.operands[1].shape, at), index, strict=True)]


def _update_transpose(g, v):
    _, update, *starts = v.operands
    return [dynamic_update_slice(g, like(update, 0), *starts), dynamic_slice(g, *starts, size=update.shape),
            *[None] * len(starts)]


def _update_samples() -> Iterator[tuple[tuple, dict]]:
    x = np.arange(12.0).reshape(3, 4)
    for a, b in ((0, 0), (1, 2), (-5, 9)):
        yield (x, -np.ones((2, 2)), np.int64(a), np.int64(b)), {}
    yield (np.arange(5), np.array([7, 8]), np.int64(2)), {}
    yield (np.array(2.5), np.array(1.5)), {}


dynamic_update_slice = register(Op(
    "dynamic_update_slice", _update_infer, _update_reference, Linear(_update_transpose, (0, 1)),
    Update(_update_place, lambda v: "set"),
    frozenset({"indexing", "selects"}), _update_samples,
    "The first operand with the window in the second put in at the i64 scalars that follow, moved so that it fits.",
    facts=Facts(rounding="none", picks=2),
))  # fmt: skip

#: A window is moved so that it fits, but it is never larger than the array.
dynamic_slice.facts.requires = lambda v: _larger(v, v.shape)
dynamic_update_slice.facts.requires = lambda v: _larger(v, v.operands[1].shape)


def _larger(v: Value, window: Sequence[Size]) -> list[tuple[Size, Size]]:
    return [(n - w, 1) for n, w in zip(v.operands[0].shape, window, strict=True)]
