"""Products with a sparse matrix, whose rows lie one after another: row r has the entries from ``indptr[r]`` up to
``indptr[r + 1]``, which stand in the columns that ``indices`` name.

Entries need no order within a row, and those at one place are added. Stored by columns, a matrix is the transpose of
one stored by rows. The derivatives of each of the three products are the other two. A pattern that is none raises an
error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, ExecutionError, ShapeError
from symc.ir.dim import Size
from symc.ir.facts import Facts
from symc.ir.op import Extern, Multilinear, Op, register, splat
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.cumulative import cumsum
from symc.ir.ops.elementwise import spread
from symc.ir.ops.index import gather, out_of_bounds, scatter
from symc.ir.ops.kernel import check_index
from symc.ir.ops.leaf import iota
from symc.ir.ops.leaf import size as length_of
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, concat, reshape, slice_, transpose
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value


def _check(name: str, indptr: TensorType, indices: TensorType, vectors: Sequence[TensorType],
           matrices: Sequence[TensorType]) -> None:
    if indptr.dtype != indices.dtype or indptr.dtype not in (DTYPES["i32"], DTYPES["i64"]):
        raise DTypeError(f"{name}: indptr and indices are {indptr} and {indices}, not both i32 or i64")
    if len({t.dtype for t in (*vectors, *matrices)}) != 1 or (*vectors, *matrices)[0].dtype.kind == "b":
        raise DTypeError(f"{name}: one dtype of numbers is needed, not {', '.join(map(str, (*vectors, *matrices)))}")
    if indptr.ndim != 1 or any(t.shape != indices.shape or t.ndim != 1 for t in (indices, *vectors)):
        raise ShapeError(f"{name}: indices and data must be vectors of one length: {indices}, {vectors}")
    if any(t.ndim != 2 for t in matrices):
        raise ShapeError(f"{name}: matrices are needed, not {', '.join(map(str, matrices))}")


def _spmm_infer(indptr: TensorType, indices: TensorType, data: TensorType, x: TensorType) -> TensorType:
    _check("spmm", indptr, indices, [data], [x])
    return x.with_shape((indptr.shape[0] - 1, x.shape[1]))


def _across_infer(indptr: TensorType, indices: TensorType, data: TensorType, x: TensorType, size: Size) -> TensorType:
    _check("spmm_across", indptr, indices, [data], [x])
    if x.shape[0] != indptr.shape[0] - 1:
        raise ShapeError(f"spmm_across: {x} has not one row for each of {indptr.shape[0] - 1}")
    return x.with_shape((size, x.shape[1]))


def _sddmm_infer(indptr: TensorType, indices: TensorType, x: TensorType, y: TensorType) -> TensorType:
    _check("sddmm", indptr, indices, [], [x, y])
    if x.shape[0] != indptr.shape[0] - 1 or x.shape[1] != y.shape[1]:
        raise ShapeError(f"sddmm: {x} and {y} for {indptr.shape[0] - 1} rows")
    return x.with_shape(indices.shape)


# --- meaning ----------------------------------------------------------------------------------------------------------


def check_pattern(indptr: np.ndarray, indices: np.ndarray, columns: int) -> np.ndarray:
    """The row of each entry. Raises ExecutionError for an indptr that is none, IndexingError for a wrong column."""
    steps = np.diff(indptr)
    if indptr.size == 0 or indptr[0] != 0 or np.any(steps < 0) or indptr[-1] != indices.size:
        raise ExecutionError(f"a sparse matrix has {indices.size} entries: indptr must start with 0, end with that, "
                             "and not decrease", help="indptr[r] and indptr[r + 1] bound the entries of row r")
    out_of_bounds(indices, columns, along=1)
    return np.repeat(np.arange(steps.size), steps)


def _added(shape: tuple[int, int], places: np.ndarray, rows: np.ndarray) -> np.ndarray:
    out = np.zeros(shape, rows.dtype)
    np.add.at(out, places, rows)
    return out


def _spmm_reference(indptr, indices, data, x):
    rows = check_pattern(indptr, indices, len(x))
    with np.errstate(all="ignore"):
        return _added((indptr.size - 1, x.shape[1]), rows, data[:, None] * x[indices])


def _across_reference(indptr, indices, data, x, size):
    rows = check_pattern(indptr, indices, size)
    with np.errstate(all="ignore"):
        return _added((size, x.shape[1]), indices, data[:, None] * x[rows])


def _sddmm_reference(indptr, indices, x, y):
    rows = check_pattern(indptr, indices, len(y))
    with np.errstate(all="ignore"):
        return np.sum(x[rows] * y[indices], 1, dtype=x.dtype)


# --- by other ops -----------------------------------------------------------------------------------------------------


def rows_of(indptr: Value, indices: Value) -> Value:
    """The row of each entry: as many rows as end before it."""
    (rows,), (n,) = indptr.shape, indices.shape
    ends = check_index(slice_(indptr, start=(1,), size=(rows - 1,), step=(1,)), size=n + 1)
    ones = splat(1, TensorType(indptr.dtype, (rows - 1,)))
    ended = scatter(splat(0, TensorType(indptr.dtype, (n + 1,))), ones, ends, axes=(0,), mode="add")
    found = slice_(cumsum(ended, axis=0, reverse=False), start=(0,), size=(n,), step=(1,))
    return check_index(found, size=rows - 1)


def _times(data: Value, rows: Value) -> Value:
    return broadcast(data, axes=(0,), shape=rows.shape) * rows


def _spmm_batched(v: Value) -> Value:
    indptr, indices, data, x = v.operands
    read = gather(x, check_index(indices, size=x.shape[0], along=1), axes=(0,))
    return scatter(splat(0, v.type), _times(data, read), rows_of(indptr, indices), axes=(0,), mode="add")


def _across_batched(v: Value) -> Value:
    indptr, indices, data, x = v.operands
    read = gather(x, rows_of(indptr, indices), axes=(0,))
    places = check_index(indices, size=v.shape[0], along=1)
    return scatter(splat(0, v.type), _times(data, read), places, axes=(0,), mode="add")


def _sddmm_batched(v: Value) -> Value:
    indptr, indices, x, y = v.operands
    left = gather(x, rows_of(indptr, indices), axes=(0,))
    return sum_(left * gather(y, check_index(indices, size=y.shape[0], along=1), axes=(0,)), axes=(1,))


def _blocks(indptr: Value, indices: Value, flags: Sequence[bool], n: Size, columns: Size) -> tuple[Value, Value]:
    """The pattern with ``n`` matrices as blocks on its diagonal."""
    indptr, indices = spread(indptr, flags[0], n), spread(indices, flags[1], n)
    (_, rows), (_, entries) = indptr.shape, indices.shape

    def moved(x: Value, by: Size) -> Value:
        each = iota(shape=x.shape, axis=0, dtype=x.dtype)
        return x + each * broadcast(length_of(value=by), axes=(), shape=x.shape) if x.dtype == DTYPES["i64"] else (
            x + each * splat(by, x.type))

    ends = moved(slice_(indptr, start=(0, 1), size=(n, rows - 1), step=(1, 1)), entries)
    first = splat(0, TensorType(indptr.dtype, (1,)))
    return (concat(first, reshape(ends, shape=(n * (rows - 1),)), axis=0),
            reshape(moved(indices, columns), shape=(n * entries,)))


def _batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    """A matrix for each: as blocks on the diagonal of one. The same matrix for all: side by side."""
    *_, k = v.operands[3].shape
    if not any(flags[:3]) and v.op is not sddmm:
        indptr, indices, data, x = operands
        beside = reshape(transpose(x, perm=(1, 0, 2)), shape=(x.shape[1], n * k))
        out = v.op(indptr, indices, data, beside, **v.attrs)
        return transpose(reshape(out, shape=(out.shape[0], n, k)), perm=(1, 0, 2))
    columns = v.attrs["size"] if v.op is spmm_across else v.operands[3].shape[0]
    given = [spread(o, f, n) for o, f in zip(operands[2:], flags[2:], strict=True)]
    below = [reshape(o, shape=(n * o.shape[1], *o.shape[2:])) for o in given]
    attrs: dict[str, Any] = {"size": n * columns} if v.op is spmm_across else {}
    out = v.op(*_blocks(operands[0], operands[1], flags, n, columns), *below, **attrs)
    return reshape(out, shape=(n, *v.shape))


# --- records ----------------------------------------------------------------------------------------------------------


def _none(g: Value, v: Value) -> Value:
    raise AssertionError("a pattern has no derivative")


def _matrices() -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    yield np.array([0, 2, 2, 5]), np.array([3, 0, 1, 1, 2]), 4
    yield np.array([0, 0, 0], np.int32), np.array([], np.int32), 3
    yield np.array([0, 9]), np.array([0, 1, 2, 3, 4, 4, 3, 2, 1]), 5
    yield np.array([0]), np.array([], np.int64), 0


def _samples(kind: str) -> Iterator[tuple[tuple, dict]]:
    rng = np.random.default_rng(0)
    for dtype in ("f8", "f4", "c16", "c8", "i8", "i4"):
        for indptr, indices, columns in _matrices():
            for k in ((0, 1, 3, 47) if dtype == "f8" else (5,)):
                data, x, y = (rng.normal(size=s) * 3 + (1j if dtype[0] == "c" else 0) for s in (
                    indices.size, (indptr.size - 1, k), (columns, k)))
                data, x, y = data.astype(dtype), x.astype(dtype), y.astype(dtype)
                rest = {"spmm": (data, y), "spmm_across": (data, x), "sddmm": (x, y)}[kind]
                yield (indptr, indices, *rest), {"size": columns} if kind == "spmm_across" else {}


def _record(name: str, infer: Any, reference: Any, first: Any, second: Any, lower_batched: Any, doc: str) -> Op:
    return register(Op(
        name, infer, reference, Multilinear((_none, _none, first, second)), Extern(name), frozenset({"contraction"}),
        lambda: _samples(name), doc,
        Facts(kinds="iufc", rounding="short", indeterminate=True, lower_batched=lower_batched, batch=_batch)))


spmm: Op = _record(
    "spmm", _spmm_infer, _spmm_reference,
    lambda g, v: sddmm(*v.operands[:2], g, conjugate(v.operands[3])),
    lambda g, v: spmm_across(*v.operands[:2], conjugate(v.operands[2]), g, size=v.operands[3].shape[0]),
    _spmm_batched, "The sparse matrix (indptr, indices, data) times a matrix.")
spmm_across: Op = _record(
    "spmm_across", _across_infer, _across_reference,
    lambda g, v: sddmm(*v.operands[:2], conjugate(v.operands[3]), g),
    lambda g, v: spmm(*v.operands[:2], conjugate(v.operands[2]), g),
    _across_batched, "The transpose, of `size` rows, of the sparse matrix (indptr, indices, data) times a matrix.")
sddmm: Op = _record(
    "sddmm", _sddmm_infer, _sddmm_reference,
    lambda g, v: spmm(*v.operands[:2], g, conjugate(v.operands[3])),
    lambda g, v: spmm_across(*v.operands[:2], g, conjugate(v.operands[2]), size=v.operands[3].shape[0]),
    _sddmm_batched, "For each entry of a pattern (indptr, indices) the product of a row of the first matrix, that of "
    "its row, and a row of the second, that of its column.")
