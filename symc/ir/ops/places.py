"""The places where a mask holds: as many as a size says that was counted before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symc.errors import DTypeError, ExecutionError, ShapeError
from symc.ir.dim import Size
from symc.ir.facts import Facts
from symc.ir.op import Extern, Op, register, splat
from symc.ir.ops.arithmetic import mod
from symc.ir.ops.cast import cast
from symc.ir.ops.cumulative import cumsum
from symc.ir.ops.index import scatter
from symc.ir.ops.leaf import iota
from symc.ir.ops.leaf import size as length_of
from symc.ir.ops.shape import broadcast, reshape, slice_
from symc.ir.size_extremes import if_any
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value


def _infer(t: TensorType, size: Size) -> TensorType:
    if t.dtype != DTYPES["bool"]:
        raise DTypeError(f"places: the mask is {t}, not bool")
    if t.ndim != 1:
        raise ShapeError(f"places: a mask of one axis is needed, not {t}")
    return TensorType("i64", (size,))


def _reference(mask: np.ndarray, size: int) -> np.ndarray:
    found = np.flatnonzero(mask).astype(np.int64)
    if found.size != size:
        raise ExecutionError(f"places: the mask holds at {found.size} places, {size} were counted",
                             help="an array that a call reads must not change meanwhile")
    return found


def _by_scatter(v: Value) -> Value:
    """Each place is written over the next entry, from which the next true one moves on: the last place written to an
    entry is a true one."""
    (mask,), (size,) = v.operands, v.shape
    ones = cast(mask, dtype=DTYPES["i64"])
    before = cumsum(ones, axis=0, reverse=False) - ones
    every = iota(shape=mask.shape, axis=0, dtype=DTYPES["i64"])
    found = scatter(splat(0, TensorType("i64", (size + 1,))), every, before, axes=(0,), mode="set")
    return slice_(found, start=(0,), size=(size,), step=(1,))


def _batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    """Places of all masks in a row: each holds at equally many places."""
    (mask,), (count,), (length,) = operands, v.shape, v.operands[0].shape
    every = reshape(places(reshape(mask, shape=(n * length,)), size=n * count), shape=(n, count))
    return mod(every, broadcast(length_of(value=length), axes=(), shape=(n, count)))


def _samples() -> Iterator[tuple[tuple, dict]]:
    for mask in ([True, False, True, True, False], [False] * 9, [True] * 17, []):
        yield (np.array(mask, bool),), dict(size=sum(mask))


places = register(Op(
    "places", _infer, _reference, None, Extern("places"), frozenset({"positions"}), _samples,
    "The places, as i64, where a mask of one axis holds, in order; there are `size` of them.",
    Facts(kinds="b", lower_batched=_by_scatter, batch=_batch,
          range=lambda v, _: (0, if_any(v.operands[0].shape[0]) - 1)),
))  # fmt: skip
