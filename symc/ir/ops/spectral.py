"""Eigenvalues, singular values, and functions of matrices that are made of them.

Matrices lie in the last two axes; other axes are batch axes. Eigenvectors and singular vectors are determined up to a
factor of size 1, and their derivatives have no part along themselves. Derivatives by Giles (2008) and, for complex
singular vectors, Wan and Zhang (2019). They divide by differences of eigenvalues (singular values); where two are equal
their vectors are not functions of the matrix, and that quotient is taken as 0: right for what depends on the values, or
on the space that equal ones have together, nonsense for single vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import GradientError
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, lookup, register
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.cast import in_dtype
from symc.ir.ops.elementwise import batch_leading
from symc.ir.ops.matrix import (
    Sample,
    Shape,
    adjoint,
    as_complex,
    by_column,
    by_row,
    check_matrix,
    check_square,
    checked,
    diagonal_matrix,
    diagonal_of,
    each_dtype,
    hermitian,
    imaginary,
    inverse_or_zero,
    normal,
    part,
    product,
    to_triangle,
    total,
)
from symc.ir.ops.solve import factored
from symc.ir.size_extremes import minimum
from symc.ir.types import TensorType, TupleType, complex_dtype, real_dtype
from symc.ir.value import Value

NO_END = "the iteration does not converge: is there a nan or an infinity in the matrix?"


def gaps(w: Value, dtype: np.dtype) -> Value:
    """1 / (w[j] - w[i]) at i, j; 0 where they are equal."""
    shape = (*w.shape, w.shape[-1])
    return in_dtype(inverse_or_zero(by_column(w, shape) - by_row(w, shape)), dtype)


def _columns_scaled(x: Value, d: Value) -> Value:
    """``x @ diag(d)``."""
    return x * by_column(in_dtype(d, x.dtype), x.shape)


def _rows_scaled(d: Value, x: Value) -> Value:
    """``diag(d) @ x``."""
    return by_row(in_dtype(d, x.dtype), x.shape) * x


def _real(x: Value) -> Value:
    return lookup("real")(x) if x.dtype.kind == "c" else x


# --- hermitian --------------------------------------------------------------------------------------------------------


def _eigh_infer(t: TensorType, lower: bool) -> TupleType:
    check_square("eigh", t)
    return TupleType([TensorType(real_dtype(t.dtype), t.shape[:-1]), t])


def _eigh_reference(a, lower):
    w, v = checked(NO_END, lambda x: np.linalg.eigh(x, "L" if lower else "U"), a)
    return w, np.ascontiguousarray(v)


def _inner(v: Value, da: Value, lower: bool) -> Value:
    """The tangent of a hermitian matrix in the basis of its eigenvectors."""
    return product(product(v, hermitian(da, lower), left="c"), v)


def _eigh_jvp(tangents, v):
    w, vectors = v[0], v[1]
    inner = _inner(vectors, tangents[0], v.attrs["lower"])
    return [_real(diagonal_of(inner)), product(vectors, gaps(w, vectors.dtype) * inner)]


def _eigh_vjp(g, v):
    (gw, gv), (w, vectors) = g, (v[0], v[1])
    inner = total(None if gw is None else diagonal_matrix(in_dtype(gw, vectors.dtype)),
                  None if gv is None else gaps(w, vectors.dtype) * product(vectors, gv, left="c"))
    return (to_triangle(product(product(vectors, inner), vectors, right="c"), v.attrs["lower"]),)


def _hermitian_samples() -> Iterator[Sample]:
    settings = [dict(lower=lower) for lower in (True, False)]
    yield from each_dtype([(3, 3), (2, 2, 3, 3), (1, 1)],
                          lambda rng, shape, c: (0.5 * normal(rng, shape, c) + np.diag(np.arange(shape[-1]) * 2.0),),
                          settings)
    for given in settings:
        yield (np.ones((0, 0)),), dict(given)
        yield (np.ones((0, 2, 2)),), dict(given)


eigh = register(Op(
    "eigh", _eigh_infer, _eigh_reference, Custom(_eigh_jvp, _eigh_vjp), Extern("eigh"),
    frozenset({"factorization"}), _hermitian_samples,
    "(w, v): ascending eigenvalues and orthonormal eigenvectors (columns) of the hermitian matrix whose lower (or, "
    "without `lower`, upper) triangle is read.",
    Facts(kinds="fc", batch=batch_leading, rounding="norm", vectors=((1,), ())),
))  # fmt: skip


def _eigvalsh_infer(t: TensorType, lower: bool) -> TensorType:
    check_square("eigvalsh", t)
    return TensorType(real_dtype(t.dtype), t.shape[:-1])


def _eigvalsh_reference(a, lower):
    return checked(NO_END, lambda x: np.linalg.eigvalsh(x, "L" if lower else "U"), a)


def _eigvalsh_jvp(tangents, v):
    vectors = eigh(v.operands[0], **v.attrs)[1]
    return _real(diagonal_of(_inner(vectors, tangents[0], v.attrs["lower"])))


def _eigvalsh_vjp(g, v):
    vectors = eigh(v.operands[0], **v.attrs)[1]
    return (to_triangle(product(_columns_scaled(vectors, g), vectors, right="c"), v.attrs["lower"]),)


eigvalsh = register(Op(
    "eigvalsh", _eigvalsh_infer, _eigvalsh_reference, Custom(_eigvalsh_jvp, _eigvalsh_vjp), Extern("eigvalsh"),
    samples=_hermitian_samples,
    doc="The ascending eigenvalues of the hermitian matrix whose lower (or upper) triangle is read.",
    facts=Facts(part_of=("eigh", 0), kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip

# --- any square matrix ------------------------------------------------------------------------------------------------


def _eig_infer(t: TensorType) -> TupleType:
    check_square("eig", t)
    dtype = complex_dtype(t.dtype)
    return TupleType([TensorType(dtype, t.shape[:-1]), TensorType(dtype, t.shape)])


def _eig_reference(a):
    w, v = checked(NO_END, np.linalg.eig, a)
    return np.ascontiguousarray(w, complex_dtype(a.dtype)), np.ascontiguousarray(v, complex_dtype(a.dtype))


def _eig_inner(vectors: Value, da: Value) -> Value:
    return factored(vectors, product(as_complex(da), vectors))


def _eig_jvp(tangents, v):
    w, vectors = v[0], v[1]
    inner = _eig_inner(vectors, tangents[0])
    dv = product(vectors, gaps(w, w.dtype) * inner)
    along = diagonal_of(product(vectors, dv, left="c"))
    return [diagonal_of(inner), dv - _columns_scaled(vectors, along)]


def _eig_cotangent(vectors: Value, inner: Any, dtype: np.dtype) -> Value:
    return in_dtype(product(factored(vectors, inner, "c"), vectors, right="c"), dtype)


def _eig_vjp(g, v):
    (gw, gv), (w, vectors) = g, (v[0], v[1])
    inner = None if gw is None else diagonal_matrix(gw)
    if gv is not None:
        along = product(vectors, gv, left="c")
        along = along - _columns_scaled(product(vectors, vectors, left="c"), diagonal_of(along))
        inner = total(inner, conjugate(gaps(w, w.dtype)) * along)
    return (_eig_cotangent(vectors, inner, v.operands[0].dtype),)


def _general_samples() -> Iterator[Sample]:
    yield from each_dtype([(3, 3), (2, 2, 3, 3), (1, 1)],
                          lambda rng, shape, c: (normal(rng, shape, c) + np.diag(np.arange(shape[-1]) * 2.0),))
    yield (np.array([[0.1, 2.0], [-2.0, 0.3]]),), {}
    yield (np.ones((0, 0)),), {}
    yield (np.ones((0, 2, 2)),), {}


eig = register(Op(
    "eig", _eig_infer, _eig_reference, Custom(_eig_jvp, _eig_vjp), Extern("eig"),
    frozenset({"factorization", "python"}), _general_samples,
    "(w, v): eigenvalues, in no particular order, and eigenvectors (columns of length 1), always complex.",
    Facts(kinds="fc", batch=batch_leading, rounding="norm", vectors=((1,), ())),
))  # fmt: skip


def _eigvals_infer(t: TensorType) -> TensorType:
    check_square("eigvals", t)
    return TensorType(complex_dtype(t.dtype), t.shape[:-1])


def _eigvals_reference(a):
    return np.asarray(checked(NO_END, np.linalg.eigvals, a)).astype(complex_dtype(a.dtype))


def _eigvals_jvp(tangents, v):
    (a,) = v.operands
    return diagonal_of(_eig_inner(eig(a)[1], tangents[0]))


def _eigvals_vjp(g, v):
    (a,) = v.operands
    return (_eig_cotangent(eig(a)[1], diagonal_matrix(g), a.dtype),)


eigvals = register(Op(
    "eigvals", _eigvals_infer, _eigvals_reference, Custom(_eigvals_jvp, _eigvals_vjp), Extern("eigvals"),
    frozenset({"python"}), samples=_general_samples, doc="The eigenvalues, always complex, in the order of `eig`.",
    facts=Facts(part_of=("eig", 0), kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip

# --- singular values --------------------------------------------------------------------------------------------------


def _svd_infer(t: TensorType, full: bool) -> TupleType:
    m, n = check_matrix("svd", t)
    batch, k = t.shape[:-2], minimum(m, n)
    return TupleType([t.with_shape((*batch, m, m if full else k)), TensorType(real_dtype(t.dtype), (*batch, k)),
                      t.with_shape((*batch, n if full else k, n))])


def _svd_reference(a, full):
    u, s, vh = checked(NO_END, lambda x: np.linalg.svd(x, full_matrices=full), a)
    return np.ascontiguousarray(u), np.ascontiguousarray(s), np.ascontiguousarray(vh)


def _reduced(v: Value) -> tuple[Value, Value, Value]:
    u, s, vh = v[0], v[1], v[2]
    if u.shape[-1] != s.shape[-1] or vh.shape[-2] != s.shape[-1]:
        raise GradientError("svd: with full_matrices=True vectors that belong to no singular value are not determined "
                            "by the matrix, and have no derivative", help="use full_matrices=False")
    return u, s, vh


def _svd_gaps(s: Value, dtype: np.dtype) -> Value:
    """1 / (s[j]**2 - s[i]**2) at i, j; 0 where they are equal."""
    shape = (*s.shape, s.shape[-1])
    across, down = by_column(s, shape), by_row(s, shape)
    return in_dtype(inverse_or_zero((across - down) * (across + down)), dtype)


def _off(q: Value, x: Value) -> Value:
    """Part of the columns of ``x`` that is orthogonal to those of ``q``."""
    return x - product(q, product(q, x, left="c"))


def _svd_jvp(tangents, v):
    (da,), (u, s, vh) = tangents, _reduced(v)
    inner = product(product(u, da, left="c"), vh, right="c")
    back, gaps, r = adjoint(inner), _svd_gaps(s, u.dtype), inverse_or_zero(s)
    turn_u = gaps * (_columns_scaled(inner, s) + _rows_scaled(s, back))
    turn_v = gaps * (_rows_scaled(s, inner) + _columns_scaled(back, s))
    if u.dtype.kind == "c":
        phase = _columns_scaled(part(imaginary(inner), "diagonal"), r * 0.5)
        turn_u, turn_v = turn_u + phase, turn_v - phase
    du = product(u, turn_u)
    dvh = product(turn_v, vh, left="c")
    if u.shape[-2] != s.shape[-1]:
        du = du + _columns_scaled(_off(u, product(da, vh, right="c")), r)
    if vh.shape[-1] != s.shape[-1]:
        dvh = dvh + adjoint(_columns_scaled(_off(adjoint(vh), product(da, u, left="c")), r))
    return [du, _real(diagonal_of(inner)), dvh]


def _svd_vjp(g, v):
    (gu, gs, gvh), (u, s, vh) = g, _reduced(v)
    gaps, r = _svd_gaps(s, u.dtype), inverse_or_zero(s)
    inner: Any = None if gs is None else diagonal_matrix(in_dtype(gs, u.dtype))
    out: Any = None
    phases: Any = None
    if gu is not None:
        along = product(u, gu, left="c")
        w = gaps * along
        inner = total(inner, _columns_scaled(w + adjoint(w), s))
        phases = total(phases, along)
        if u.shape[-2] != s.shape[-1]:
            out = total(out, product(_columns_scaled(_off(u, gu), r), vh))
    if gvh is not None:
        along = product(vh, gvh, right="c")
        w = gaps * along
        inner = total(inner, _rows_scaled(s, w + adjoint(w)))
        phases = total(phases, -along)
        if vh.shape[-1] != s.shape[-1]:
            out = total(out, product(u, _rows_scaled(r, adjoint(_off(adjoint(vh), adjoint(gvh))))))
    if phases is not None and u.dtype.kind == "c":
        inner = total(inner, _columns_scaled(part(imaginary(phases), "diagonal"), r * 0.5))
    return (total(product(product(u, inner), vh), out),)


def _matrix_samples(attrs: Sequence[dict[str, Any]]) -> Iterator[Sample]:
    def distinct(rng: np.random.Generator, shape: Shape, is_complex: bool) -> tuple[np.ndarray, ...]:
        m, n = shape[-2:]
        return (0.5 * normal(rng, shape, is_complex) + np.diag(np.arange(5) * 2.0 + 1)[:m, :n],)

    yield from each_dtype([(3, 3), (4, 2), (2, 3), (2, 2, 3, 2), (1, 1)], distinct, attrs)
    for given in attrs:
        for shape in ((0, 0), (0, 3), (2, 0), (0, 2, 3)):
            yield (np.ones(shape),), dict(given)


def _svd_samples() -> Iterator[Sample]:
    yield from _matrix_samples([dict(full=False)])
    for arrays, attrs in _matrix_samples([dict(full=True)]):
        (a,) = arrays
        if a.shape[-1] == a.shape[-2] or a.dtype == np.float32:  # others have no derivative that tests could look at
            yield (a,), attrs


svd = register(Op(
    "svd", _svd_infer, _svd_reference, Custom(_svd_jvp, _svd_vjp), Extern("svd"),
    frozenset({"factorization"}), _svd_samples,
    "(u, s, vh): a = u @ diag(s) @ vh, with s descending and orthonormal columns in u and rows in vh: min(m, n) of "
    "them, or with `full` as many as make them square.",
    Facts(kinds="fc", batch=batch_leading, rounding="norm", vectors=((0,), (2,))),
))  # fmt: skip


def _svdvals_infer(t: TensorType) -> TensorType:
    m, n = check_matrix("svdvals", t)
    return TensorType(real_dtype(t.dtype), (*t.shape[:-2], minimum(m, n)))


def _svdvals_reference(a):
    return checked(NO_END, lambda x: np.linalg.svd(x, compute_uv=False), a)


def _svdvals_jvp(tangents, v):
    f = svd(v.operands[0], full=False)
    return _real(diagonal_of(product(product(f[0], tangents[0], left="c"), f[2], right="c")))


def _svdvals_vjp(g, v):
    f = svd(v.operands[0], full=False)
    return (product(_columns_scaled(f[0], g), f[2]),)


svdvals = register(Op(
    "svdvals", _svdvals_infer, _svdvals_reference, Custom(_svdvals_jvp, _svdvals_vjp), Extern("svdvals"),
    samples=lambda: _matrix_samples([{}]), doc="The singular values, descending.",
    facts=Facts(part_of=("svd", 1), kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip
