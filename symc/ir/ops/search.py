"""Searching: where numbers belong in a sorted line. A nan is greater than everything, as where arrays are sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symc.errors import DTypeError, InternalError, ShapeError
from symc.ir.dim import Size, known_equal
from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Facts
from symc.ir.op import Element, Op, register
from symc.ir.ops.elementwise import check_kind
from symc.ir.ops.kernel import bisect, load
from symc.ir.ops.leaf import scalar
from symc.ir.ops.shape import broadcast
from symc.ir.types import TensorType
from symc.ir.value import Value


def _infer(t: TensorType, x: TensorType, side: str, batch: int) -> TensorType:
    check_kind("searchsorted", t, "biuf")
    if x.dtype != t.dtype:
        raise DTypeError(f"searchsorted: {x} among {t}", help="cast them to one dtype")
    shared = zip(t.shape[:batch], x.shape[:batch], strict=False)
    if t.ndim != batch + 1 or x.ndim < batch or any(known_equal(a, b) is not True for a, b in shared):
        raise ShapeError(f"searchsorted: {x} among {t} with {batch} axes in common")
    return x.with_dtype("i64")


def _reference(a: np.ndarray, x: np.ndarray, side: str, batch: int) -> np.ndarray:
    out = np.empty(x.shape, np.int64)
    for row in np.ndindex(a.shape[:batch]):
        out[row] = np.searchsorted(a[row], x[row], side)  # type: ignore[call-overload]
    return out


def _element(v: Value, index: Sequence[Value], at) -> Value:
    row = index[: v.attrs["batch"]]
    first = at(0, [*row, scalar(0, "i64")])
    if first.op is not load:
        raise InternalError("searchsorted: what is searched does not lie in memory")
    return bisect(first.operands[0], at(1, index), *first.operands[1:-1], side=v.attrs["side"])


def _samples() -> Iterator[tuple[tuple, dict]]:
    for dtype in ARITHMETIC:
        if dtype.kind in "biuf":
            a = np.array([0, 1, 1, 3, 5] if dtype.kind != "b" else [0, 0, 1]).astype(dtype)
            yield (a, np.array([[0, 1, 4], [2, 3, 9]]).astype(dtype)), dict(side="left", batch=0)
    rows = np.array([[-np.inf, 0.0, 1, 1, np.nan, np.nan], [-2, -1, -0.0, 0.0, 5, np.inf]])
    for side in ("left", "right"):
        yield (rows[1], rows), dict(side=side, batch=0)
        yield (rows[0], rows), dict(side=side, batch=0)
        yield (rows, rows[:, ::2].copy()), dict(side=side, batch=1)
        yield (rows[:, :0], rows), dict(side=side, batch=1)
        yield (rows[0], rows[:, :0]), dict(side=side, batch=0)


def _batched(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    if not flags[0] and not v.attrs["batch"]:
        return v.op(*operands, **v.attrs)
    spread = [o if f else broadcast(o, axes=tuple(range(1, o.ndim + 1)), shape=(n, *o.shape))
              for o, f in zip(operands, flags, strict=True)]
    return v.op(*spread, side=v.attrs["side"], batch=v.attrs["batch"] + 1)


searchsorted = register(Op(
    "searchsorted", _infer, _reference, None, Element(_element), frozenset({"indexing", "searches"}), _samples,
    "The number of elements along the last axis of the first operand, which are sorted, before each of the second: "
    "those that are less, and with `side` right equals too. They have the first `batch` axes in common.",
    facts=Facts(kinds="biuf", batch=_batched, range=lambda v, given: (0, v.operands[0].shape[-1])),
    defaults={"batch": 0},
))  # fmt: skip
