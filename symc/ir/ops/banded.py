"""Systems of linear equations whose matrix has few diagonals that are not 0.

Row ``up + i - j`` of the operand holds element (i, j) of the matrix, column by column (LAPACK's general band storage,
which SciPy has too): n * (low + up + 1) numbers for n * n, and as many steps. The corners that no element lies in may
hold anything.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from symc.errors import DTypeError, LinAlgError, ShapeError
from symc.ir.dim import Size
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, register, splat
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.matrix import (
    Sample,
    batch_columns,
    check_matrix,
    each_dtype,
    normal,
    one_by_one,
    swapped,
    total,
)
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, flip, pad, reshape, slice_along
from symc.ir.ops.solve import ANY, SINGULAR, factored
from symc.ir.types import TensorType
from symc.ir.value import Value


def _infer(ab: TensorType, b: TensorType, low: int, up: int) -> TensorType:
    rows, n = check_matrix("solve_banded", ab)
    if ab.dtype != b.dtype:
        raise DTypeError(f"solve_banded: operand dtypes differ: {ab} and {b}")
    if min(low, up) < 0 or rows != low + up + 1:
        raise ShapeError(f"solve_banded: {low} diagonals below and {up} above are {low + up + 1} rows: {ab}")
    if b.ndim != ab.ndim or b.shape[:-1] != (*ab.shape[:-2], n):
        raise ShapeError(f"solve_banded: the right side {b} does not fit the diagonals {ab}")
    return b


def _reference(ab, b, low, up):
    out = np.empty_like(b, order="C")

    def one(ab: np.ndarray, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import get_lapack_funcs

        if not b.size:
            return b
        (gbsv,) = get_lapack_funcs(("gbsv",), (ab, b))
        work = np.concatenate([np.zeros((low, ab.shape[1]), ab.dtype), ab])
        _, _, x, info = gbsv(low, up, work, b)
        if info:
            raise LinAlgError(SINGULAR, help=ANY)
        return x

    one_by_one(one, [ab, b], [out])
    return out


# --- diagonals that are moved -----------------------------------------------------------------------------------------


def _skewed(x: Value, axis: int, before: int) -> Value:
    """``[..., r, j, ...]`` is element ``[..., r, j + r - before, ...]``, or 0 where there is none: row r lies r places
    further left. Views do it: what lies in rows that are one longer begins one later in each."""
    *lead, rows, n = x.shape[: axis + 1]
    rest = x.shape[axis + 1 :]
    x = _padded(x, axis, before, rows - 1 - before)
    width = x.shape[axis] + 1
    flat = reshape(x, shape=(*lead, rows * (width - 1), *rest))
    return slice_along(reshape(_padded(flat, axis - 1, 0, rows), shape=(*lead, rows, width, *rest)), axis, 0, n)


def _padded(x: Value, axis: int, low: Size, high: Size) -> Value:
    """Zeros before and after along an axis."""
    low_, high_ = (tuple(n if a == axis else 0 for a in range(x.ndim)) for n in (low, high))
    return pad(x, splat(0, TensorType(x.dtype, ())), low=low_, high=high_)


def adjoint_band(ab: Value, low: int) -> Value:
    """The diagonals of the conjugated transposed matrix, of which there are as many above as were below."""
    return conjugate(_skewed(flip(ab, (ab.ndim - 2,)), ab.ndim - 1, low))


def _times(ab: Value, x: Value, low: int) -> Value:
    """The product of the matrix with columns."""
    n = ab.ndim
    terms = _each_column(ab, x, n) * _each_row(ab, x, n - 2)
    return sum_(_skewed(flip(terms, (n - 2,)), n - 1, low), axes=(n - 2,))


def _each_column(ab: Value, x: Value, ndim: int) -> Value:
    return broadcast(ab, axes=tuple(range(ndim)), shape=(*ab.shape, x.shape[-1]))


def _each_row(ab: Value, x: Value, axis: int) -> Value:
    """Columns, repeated for each diagonal."""
    axes = tuple(a + (a >= axis) for a in range(x.ndim))
    return broadcast(x, axes=axes, shape=(*ab.shape, x.shape[-1]))


def _dense(v: Value) -> Value:
    """With the matrix whole, for what has no routine for diagonals: row j of its transpose is column j of them, moved
    by j to the right."""
    ab, b = v.operands
    *lead, rows, n = ab.shape
    columns = _padded(swapped(ab), ab.ndim - 1, 0, n)
    flat = slice_along(reshape(columns, shape=(*lead, n * (rows + n))), ab.ndim - 2, 0, n * (rows + n - 1))
    whole = reshape(flat, shape=(*lead, n, rows + n - 1))
    return factored(swapped(slice_along(whole, ab.ndim - 1, v.attrs["up"], n)), b)


# --- derivatives ------------------------------------------------------------------------------------------------------


def _jvp(tangents, v):
    (ab, _), (dab, db), attrs = v.operands, tangents, v.attrs
    return solve_banded(ab, total(db, None if dab is None else -_times(dab, v, attrs["low"])), **attrs)


def _vjp(g, v):
    ab, (low, up) = v.operands[0], (v.attrs["low"], v.attrs["up"])
    gb = solve_banded(adjoint_band(ab, low), g, low=up, up=low)
    n = ab.ndim
    rows = _skewed(_each_row(ab, gb, n - 2), n - 1, up)
    return -sum_(rows * conjugate(_each_row(ab, v, n - 2)), axes=(n,)), gb


def _samples() -> Iterator[Sample]:
    def both(rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool) -> tuple[np.ndarray, np.ndarray]:
        *batch, _, n = shape
        return normal(rng, shape, is_complex), normal(rng, (*batch, n, 1 if batch else 2), is_complex)

    for low, up in ((1, 1), (0, 2), (2, 1), (1, 0), (0, 0)):
        yield from each_dtype([(low + up + 1, 4)], both, [dict(low=low, up=up)])
    yield from each_dtype([(2, 3, 5), (3, 1)], both, [dict(low=1, up=1)])
    for shape in ((3, 0), (0, 3, 2)):
        yield (np.ones(shape), np.ones((*shape[:-2], shape[-1], 2))), dict(low=1, up=1)


solve_banded = register(Op(
    "solve_banded", _infer, _reference, Custom(_jvp, _vjp), Extern("solve_banded"), frozenset({"linear_solve"}),
    _samples, "The x of a @ x = b, where row up + i - j of the first operand has a[i, j] in column j: `low` diagonals "
    "below the main one, and `up` above.",
    Facts(kinds="fc", batch=batch_columns, rounding="norm", lower_batched=_dense),
))  # fmt: skip
