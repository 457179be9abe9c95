"""Factorizations of matrices: Cholesky, LU, QR.

Matrices lie in the last two axes; other axes are batch axes. What a factorization does not read has derivative zero:
`cholesky` reads the lower triangle, so its gradient is a lower triangle too. Derivatives: Murray (2016) for Cholesky,
Walter and Lehmann (2010) for LU and QR. They are products and triangular solves with the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from symc.errors import GradientError
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, lookup, register
from symc.ir.ops.elementwise import batch_leading, like
from symc.ir.ops.logic import where
from symc.ir.ops.matrix import (
    Sample,
    adjoint,
    check_choice,
    check_matrix,
    check_square,
    checked,
    each_dtype,
    eye,
    hermitian,
    imaginary,
    normal,
    one_by_one,
    part,
    permuted,
    permuted_back,
    positive_definite,
    product,
    side,
    squares,
    swapped,
    to_triangle,
    well_conditioned,
)
from symc.ir.ops.shape import slice_along
from symc.ir.size_extremes import minimum
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value

INDEFINITE = "the matrix is not positive definite"
MORE = "where it should be, and rounding says otherwise, add a small number to its diagonal"


def triangular(t: Value, b: Value, *, lower: bool, trans: str = "n", unit: bool = False) -> Value:
    """The solution x of ``op(t) x = b``."""
    return lookup("solve_triangular")(t, b, lower=lower, trans=trans, unit=unit)


def divided(b: Value, t: Value, *, lower: bool, trans: str = "n", unit: bool = False) -> Value:
    """The solution x of ``x op(t) = b``."""
    if trans == "c":
        return adjoint(triangular(t, adjoint(b), lower=lower, unit=unit))
    return swapped(triangular(t, swapped(b), lower=lower, trans="t" if trans == "n" else "n", unit=unit))


# --- Cholesky ---------------------------------------------------------------------------------------------------------


def square(name: str) -> Callable[[TensorType], TensorType]:
    """Type of a result like the operand: square matrices."""
    def infer(t: TensorType) -> TensorType:
        check_square(name, t)
        return t

    return infer


def _cholesky_reference(a):
    return checked(INDEFINITE, np.linalg.cholesky, a, help=MORE)


def _halved(x: Value) -> Value:
    """The lower triangle with half the diagonal: the phi of Murray's paper."""
    return where(side(x.type, "strictly lower"), x, where(side(x.type, "diagonal"), x * 0.5, like(x, 0)))


def _cholesky_jvp(tangents, v):
    da = hermitian(tangents[0], lower=True)
    inner = divided(triangular(v, da, lower=True), v, lower=True, trans="c")
    return product(v, _halved(inner))


def _cholesky_vjp(g, v):
    p = _halved(product(v, part(g, "lower"), left="c"))
    return (to_triangle(divided(triangular(v, p, lower=True, trans="c"), v, lower=True), lower=True),)


cholesky = register(Op(
    "cholesky", square("cholesky"), _cholesky_reference, Custom(_cholesky_jvp, _cholesky_vjp), Extern("cholesky"),
    frozenset({"factorization"}), lambda: squares(positive_definite),
    "The lower triangular L, with a positive diagonal, of the hermitian matrix L @ L^H whose lower triangle is read.",
    Facts(kinds="fc", batch=batch_leading, rounding="norm", cubes=1 / 3),
))  # fmt: skip

# --- LU ---------------------------------------------------------------------------------------------------------------


def _lu_infer(t: TensorType) -> TupleType:
    check_square("lu_factor", t)
    return TupleType([t, TensorType("i64", t.shape[:-1])])


def _lu_reference(a):
    from scipy.linalg import get_lapack_funcs

    lu, perm = np.empty_like(a, order="C"), np.empty(a.shape[:-1], np.int64)
    (getrf,) = get_lapack_funcs(("getrf",), (a,))

    def one(x):
        order = np.arange(x.shape[0])
        if not x.size:
            return x, order
        found, pivots, _ = getrf(np.array(x, order="F"))
        for i, p in enumerate(pivots):
            order[[i, p]] = order[[p, i]]
        return found, order

    one_by_one(one, [a], [lu, perm])
    return lu, perm


def unit_lower(lu: Value) -> Value:
    """The factor L."""
    return where(side(lu.type, "strictly lower"), lu, eye(lu.type))


def _lu_jvp(tangents, v):
    lu, perm = v[0], v[1]
    m = divided(triangular(lu, permuted(tangents[0], perm), lower=True, unit=True), lu, lower=False)
    return [product(unit_lower(lu), part(m, "strictly lower")) + product(part(m, "upper"), part(lu, "upper")), None]


def _lu_vjp(g, v):
    lu, perm = v[0], v[1]
    if g[0] is None:
        return (None,)
    lower = product(unit_lower(lu), part(g[0], "strictly lower"), left="c")
    upper = product(part(g[0], "upper"), part(lu, "upper"), right="c")
    p = where(side(lu.type, "strictly lower"), lower, upper)
    moved = divided(triangular(lu, p, lower=True, trans="c", unit=True), lu, lower=False, trans="c")
    return (permuted_back(moved, perm),)


def _lu_samples() -> Iterator[Sample]:
    yield from each_dtype([(3, 3), (2, 2, 3, 3)], lambda *how: (well_conditioned(*how),))
    yield (np.array([[3.0]]),), {}
    yield (np.ones((0, 0)),), {}
    yield (np.ones((2, 0, 3, 3)),), {}


lu_factor = register(Op(
    "lu_factor", _lu_infer, _lu_reference, Custom(_lu_jvp, _lu_vjp), Extern("lu_factor"),
    frozenset({"factorization"}), _lu_samples,
    "(lu, perm): a[perm] = L @ U, with the L of unit diagonal below the diagonal of lu, U on and above it, and perm "
    "(i64) by partial pivoting. A singular matrix has a zero on the diagonal of U.",
    Facts(kinds="fc", batch=batch_leading, rounding="norm", cubes=2 / 3),
))  # fmt: skip

# --- QR ---------------------------------------------------------------------------------------------------------------


def _qr_infer(t: TensorType, mode: str) -> TupleType:
    m, n = check_matrix("qr", t)
    check_choice("qr", "mode", mode, ("reduced", "complete"))
    k = minimum(m, n) if mode == "reduced" else m
    return TupleType([t.with_shape((*t.shape[:-2], m, k)), t.with_shape((*t.shape[:-2], k, n))])


def _qr_reference(a, mode):
    q, r = np.linalg.qr(a, mode)
    return np.ascontiguousarray(q, a.dtype), np.ascontiguousarray(r, a.dtype)


def _first_columns(x: Value, k) -> Value:
    return slice_along(x, x.ndim - 1, 0, k)


def _qr_parts(v: Value) -> tuple[Value, Value, Value]:
    """q, r, and the square part of r. The columns of A to its left determine q."""
    q, r = v[0], v[1]
    if q.shape[-1] != minimum(q.shape[-2], r.shape[-1]):
        raise GradientError("qr: mode 'complete' of a matrix with more rows than columns has no derivative: the last "
                            "columns of q are not determined by the matrix", help="use mode='reduced'")
    return q, r, _first_columns(r, q.shape[-1])


def _turn(c: Value) -> Value:
    """The skew-hermitian part of ``q^H dq`` of which ``c`` is what comes without it."""
    lower = part(c, "strictly lower")
    out = lower - adjoint(lower)
    return out + part(imaginary(c), "diagonal") if c.dtype.kind == "c" else out


def _qr_jvp(tangents, v):
    (a,), (da,), (q, _, r1) = v.operands, tangents, _qr_parts(v)
    x = divided(_first_columns(da, q.shape[-1]), r1, lower=False)
    c = product(q, x, left="c")
    dq = x - product(q, c - _turn(c))
    return [dq, part(product(dq, a, left="c") + product(q, da, left="c"), "upper")]


def _qr_samples() -> Iterator[Sample]:
    for mode in ("reduced", "complete"):
        shapes = [(3, 3), (2, 4), (2, 2, 3), (2, 3, 3)] + ([(4, 3), (2, 4, 2)] if mode == "reduced" else [])
        yield from each_dtype(shapes, lambda rng, shape, c: (normal(rng, shape, c) + 2 * np.eye(shape[-2], shape[-1]),),
                              [dict(mode=mode)])
        for shape in ((0, 0), (3, 0), (0, 3), (0, 2, 3), (2, 0, 3)):
            yield (np.ones(shape, "f8" if mode == "reduced" else "f4"),), dict(mode=mode)
    yield (np.array([[2.0], [1.0]], "f4"),), dict(mode="complete")


qr = register(Op(
    "qr", _qr_infer, _qr_reference, Custom(_qr_jvp), Extern("qr"),
    frozenset({"factorization"}), _qr_samples,
    "(q, r): a = q @ r with orthonormal columns in q and an upper triangular r, real on its diagonal. `mode`: "
    "'reduced' (q has min(m, n) columns) or 'complete' (q is square).",
    Facts(kinds="fc", batch=batch_leading, rounding="norm", vectors=((0,), (1,)), cubes=4 / 3),
))  # fmt: skip
