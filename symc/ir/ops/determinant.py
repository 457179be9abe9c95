"""Determinants, by LU factors that equations with the same matrix share."""

from __future__ import annotations

from functools import reduce

import numpy as np

from symc.ir.facts import Facts
from symc.ir.op import Custom, Decompose, Op, lookup, register, splat
from symc.ir.ops.arithmetic import abs_, mul
from symc.ir.ops.cast import in_dtype
from symc.ir.ops.compare import eq, gt
from symc.ir.ops.elementwise import batch_leading, like
from symc.ir.ops.factor import lu_factor
from symc.ir.ops.logic import and_, where
from symc.ir.ops.math import log
from symc.ir.ops.matrix import (
    by_column,
    by_row,
    check_square,
    diagonal_of,
    eye,
    imaginary,
    rows_and_columns,
    side,
    swapped,
)
from symc.ir.ops.reduce import prod, sum_
from symc.ir.ops.shape import reshape, slice_
from symc.ir.ops.solve import inv, lu_solve, square_samples
from symc.ir.types import TensorType, TupleType, real_dtype
from symc.ir.value import Value


def _sign_of(perm: Value, dtype: np.dtype) -> Value:
    """1 for an even, -1 for an odd permutation: whether pairs out of order are even or odd in number."""
    square = perm.type.with_shape((*perm.shape, perm.shape[-1]))
    rows, columns = rows_and_columns(square)
    wrong = and_(gt(columns, rows), gt(by_row(perm, square.shape), by_column(perm, square.shape)))
    count = sum_(where(wrong, splat(1, square), splat(0, square)), axes=(perm.ndim - 1, perm.ndim))
    return in_dtype(1 - 2 * lookup("mod")(count, like(count, 2)), dtype)


#: Up to this size pivots are taken as part of a kernel; with more rows a factorization by the library is faster.
IN_KERNELS = 3


def _pivots(a: Value) -> list[Value] | None:
    """The pivots of small real matrices, taken by selects; their product is the determinant: an exchange negates a row.
    """
    n = a.shape[-1]
    if not isinstance(n, int) or not 1 <= n <= IN_KERNELS or a.dtype.kind != "f":
        return None
    rows = [[_element(a, i, j) for j in range(n)] for i in range(n)]
    pivots = []
    while rows:
        first, *others = rows
        for k, row in enumerate(others):
            larger = gt(abs_(row[0]), abs_(first[0]))
            others[k] = [where(larger, -x, y) for x, y in zip(first, row, strict=True)]
            first = [where(larger, y, x) for x, y in zip(first, row, strict=True)]
        none = eq(first[0], like(first[0], 0))  # then all below are zero, too
        rows = []
        for row in others:
            factor = where(none, row[0], row[0] / first[0])
            rows.append([x - factor * y for x, y in zip(row[1:], first[1:], strict=True)])
        pivots.append(first[0])
    return pivots


def _element(a: Value, i: int, j: int) -> Value:
    """Element (i, j) of every matrix."""
    batch = a.shape[:-2]
    at, rest = (*(0,) * len(batch), i, j), (1,) * a.ndim
    return reshape(slice_(a, start=at, size=(*batch, 1, 1), step=rest), shape=batch)


def _last(x: Value) -> tuple[int]:
    return (x.ndim - 1,)


def _det_parts(v: Value) -> Value:
    pivots = _pivots(v.operands[0])
    if pivots is not None:
        return reduce(mul, pivots)
    f = lu_factor(v.operands[0])
    d = diagonal_of(f[0])
    return prod(d, axes=_last(d)) * _sign_of(f[1], v.dtype)


def _cofactors(a: Value) -> Value:
    """det(a) times the transposed inverse. Pivots that are zero are made tiny: so it is right for any matrix."""
    f = lu_factor(a)
    lu, d = f[0], diagonal_of(f[0])
    size = lookup("sup")(abs_(d), axes=_last(d))
    size = where(eq(size, like(size, 0)), like(size, 1), size) * float(np.finfo(a.dtype).eps)
    tiny = in_dtype(by_row(size, d.shape), a.dtype)
    d = where(eq(d, like(d, 0)), tiny, d)
    lu = where(side(lu.type, "diagonal"), by_row(d, lu.shape), lu)
    determinant = prod(d, axes=_last(d)) * _sign_of(f[1], a.dtype)
    inverse = lu_solve(lu, f[1], eye(a.type), trans="t")
    return inverse * _everywhere(determinant, a)


def _everywhere(x: Value, like_: Value) -> Value:
    """A number for each matrix, in all its elements."""
    return lookup("broadcast")(x, axes=tuple(range(x.ndim)), shape=like_.shape)


def _traced(a: Value, b: Value) -> Value:
    """The sum of the products of elements: the trace of ``a^T @ b``."""
    return sum_(a * b, axes=(a.ndim - 2, a.ndim - 1))


def _det_jvp(tangents, v):
    return _traced(_cofactors(v.operands[0]), tangents[0])


det = register(Op(
    "det",
    lambda t: (check_square("det", t), t.with_shape(t.shape[:-2]))[1],
    lambda a: np.asarray(np.linalg.det(a), a.dtype),
    Custom(_det_jvp),
    Decompose(_det_parts), samples=square_samples,
    doc="The determinant; 1 for a matrix without elements. Its derivative is right for singular matrices too.",
    facts=Facts(kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip


def _slogdet_infer(t: TensorType) -> TupleType:
    check_square("slogdet", t)
    return TupleType([t.with_shape(t.shape[:-2]), TensorType(real_dtype(t.dtype), t.shape[:-2])])


def _slogdet_reference(a):
    sign, size = np.linalg.slogdet(a)
    return np.asarray(sign, a.dtype), np.asarray(size, real_dtype(a.dtype))


def _slogdet_parts(v: Value) -> list[Value]:
    f = lu_factor(v.operands[0])
    d = diagonal_of(f[0])
    sign = prod(lookup("sign")(d), axes=_last(d)) * _sign_of(f[1], d.dtype)
    return [sign, sum_(log(abs_(d)), axes=_last(d))]


def _slogdet_jvp(tangents, v):
    change = _traced(swapped(inv(v.operands[0])), tangents[0])
    if v[0].dtype.kind != "c":
        return [None, change]
    return [imaginary(change) * v[0], lookup("real")(change)]


slogdet = register(Op(
    "slogdet", _slogdet_infer, _slogdet_reference, Custom(_slogdet_jvp), Decompose(_slogdet_parts),
    samples=square_samples,
    doc="(sign, logabs): the determinant is sign * exp(logabs). For a singular matrix (0, -inf), and its derivative "
    "raises.",
    facts=Facts(kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip
