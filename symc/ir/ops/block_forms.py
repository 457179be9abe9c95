"""Triangular and block diagonal forms of matrices: Schur's, and Bunch and Kaufman's. Both are computed by SciPy.

Matrices lie in the last two axes. Columns of Schur's basis are determined up to factors of size 1; their derivatives
have no part along themselves, and hold where eigenvalues differ.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from symc.errors import GradientError
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, lookup, register
from symc.ir.ops.compare import ne
from symc.ir.ops.elementwise import batch_leading, like
from symc.ir.ops.logic import or_, where
from symc.ir.ops.matrix import (
    Sample,
    adjoint,
    as_complex,
    check_square,
    checked,
    diagonal_of,
    each_dtype,
    eye,
    hermitian,
    normal,
    one_by_one,
    part,
    permuted,
    permuted_back,
    product,
    side,
    to_triangle,
    total,
)
from symc.ir.ops.solve import factored
from symc.ir.ops.spectral import NO_END, eig, gaps
from symc.ir.types import DTYPES, TensorType, TupleType, complex_dtype
from symc.ir.value import Value

# --- Schur ------------------------------------------------------------------------------------------------------------


def _schur_infer(t: TensorType, real: bool) -> TupleType:
    check_square("schur", t)
    t = t if real else TensorType(complex_dtype(t.dtype), t.shape)
    return TupleType([t, t])


def _schur_reference(a, real):
    from scipy.linalg import schur as run

    found = np.empty((2, *a.shape), a.dtype if real else complex_dtype(a.dtype))
    how = "real" if real else "complex"
    one_by_one(lambda x: checked(NO_END, lambda y: run(y, how), x), [a], list(found))
    return found[0], found[1]


def _turned(v: Value) -> tuple[Value, Value, Value]:
    """1 / (w[j] - w[i]) of eigenvalues w, and the (triangular) eigenvectors of the form, with their inverse."""
    if v.attrs["real"]:
        raise GradientError("schur: the real form has no derivative: blocks of two rows are not determined",
                            help="schur(A, output='complex') has")
    x = eig(v[0])[1]
    return gaps(diagonal_of(v[0]), v[0].dtype), x, factored(x, eye(x.type))


def _schur_jvp(tangents, v):
    """dZ = Z (L - L^H), where L T - T L has the elements of Z^H dA Z below the diagonal."""
    t, z = v[0], v[1]
    g, x, back = _turned(v)
    s = product(product(z, as_complex(tangents[0]), left="c"), z)
    inner = g * part(product(product(back, part(s, "strictly lower")), x), "strictly lower")
    low = part(product(product(x, inner), back), "strictly lower")
    turn = low - adjoint(low)
    return [part(s - product(turn, t) + product(t, turn), "upper"), product(z, turn)]


def _schur_samples() -> Iterator[Sample]:
    shapes = [(3, 3), (2, 2, 3, 3), (1, 1)]

    def distinct(rng: np.random.Generator, shape: tuple[int, ...], c: bool) -> tuple[np.ndarray, ...]:
        return (normal(rng, shape, c) + np.diag(np.arange(shape[-1]) * 2.0),)

    yield from each_dtype(shapes, distinct, [dict(real=False)])
    yield (np.array([[0.1, 2.0], [-2.0, 0.3]], "f4"),), dict(real=True)  # a form without derivative
    for shape in ((0, 0), (0, 2, 2)):
        yield (np.ones(shape),), dict(real=False)


schur = register(Op(
    "schur", _schur_infer, _schur_reference, Custom(_schur_jvp), Extern("schur"),
    frozenset({"factorization", "python"}), _schur_samples,
    "(t, z): a = z @ t @ z^H, t upper triangular (or `real`, with blocks of two rows), z unitary. By SciPy.",
    Facts(kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip

# --- symmetric matrices -----------------------------------------------------------------------------------------------


def _ldl_infer(t: TensorType, lower: bool) -> TupleType:
    check_square("ldl", t)
    return TupleType([t, t, TensorType(DTYPES["i64"], t.shape[:-1])])


def _ldl_reference(a, lower):
    from scipy.linalg import ldl as run

    out = np.empty_like(a, order="C"), np.empty_like(a, order="C"), np.empty(a.shape[:-1], "i8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # of a diagonal only the real part counts
        one_by_one(lambda x: run(x, lower=lower), [a], out)
    return out


def _blocks(d: Value) -> Value:
    """True on the diagonal blocks."""
    return or_(ne(d, like(d, 0)), side(d.type, "diagonal"))


def _over(x: Value, d: Value) -> Value:
    """``x @ inv(d)`` of a hermitian d."""
    return adjoint(lookup("solve")(d, adjoint(x)))


def _outside(x: Value, d: Value, lower: bool) -> Value:
    return where(_blocks(d), like(x, 0), part(x, "lower" if lower else "upper"))


def _solved(v: Value, x: Value, trans: str) -> Value:
    """``inv(lu) @ x``, or of its adjoint."""
    tri = permuted(v[0], v[2])
    how = dict(lower=v.attrs["lower"], unit=True)
    if trans == "n":
        return lookup("solve_triangular")(tri, permuted(x, v[2]), trans="n", **how)
    return permuted_back(lookup("solve_triangular")(tri, x, trans="c", **how), v[2])


def _ldl_jvp(tangents, v):
    """The order is held: of inv(L) dA inv(L^H), the diagonal blocks are dD, and those on one side inv(L) dL D."""
    lower, d = v.attrs["lower"], v[1]
    da = hermitian(tangents[0], lower)
    s = _solved(v, adjoint(_solved(v, da, "n")), "n")
    return [product(v[0], _over(_outside(s, d, lower), d)), where(_blocks(d), s, like(s, 0)), None]


def _ldl_vjp(g, v):
    lower, d = v.attrs["lower"], v[1]
    s = total(None if g[0] is None else _outside(_over(product(v[0], g[0], left="c"), d), d, lower),
              None if g[1] is None else where(_blocks(d), g[1], like(d, 0)))
    s = adjoint(_solved(v, adjoint(_solved(v, s, "c")), "c"))
    return (to_triangle(s, lower),)


def _ldl_samples() -> Iterator[Sample]:
    def indefinite(rng: np.random.Generator, shape: tuple[int, ...], c: bool) -> tuple[np.ndarray, ...]:
        x = 0.3 * normal(rng, shape, c)
        n = shape[-1]
        return (x + x.conj().swapaxes(-1, -2) + 3 * np.eye(n)[::-1] + 2 * np.diag(np.arange(n) % 3 == 2),)

    yield from each_dtype([(3, 3), (2, 2, 2, 2), (1, 1)], indefinite, [dict(lower=True), dict(lower=False)])
    for shape in ((0, 0), (0, 2, 2)):
        yield (np.ones(shape),), dict(lower=True)


ldl = register(Op(
    "ldl", _ldl_infer, _ldl_reference, Custom(_ldl_jvp, _ldl_vjp), Extern("ldl"),
    frozenset({"factorization", "python"}), _ldl_samples,
    "(lu, d, perm): a = lu @ d @ lu^H of the hermitian matrix whose lower (or upper) triangle is read; d has blocks of "
    "one or two rows, and lu[perm] is triangular. By SciPy.",
    Facts(kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip
