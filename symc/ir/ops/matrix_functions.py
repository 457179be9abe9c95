"""Functions of matrices: pseudoinverse, exponential, logarithm and root, and Sylvester's equation.

Matrices lie in the last two axes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from symc.errors import DTypeError, LinAlgError, ShapeError
from symc.ir.facts import Facts
from symc.ir.op import Custom, Decompose, Extern, Op, lookup, register
from symc.ir.ops.arithmetic import abs_, maximum, neg
from symc.ir.ops.cast import in_dtype
from symc.ir.ops.compare import gt
from symc.ir.ops.elementwise import batch_leading, like
from symc.ir.ops.factor import square
from symc.ir.ops.index import spread_over_rest
from symc.ir.ops.logic import where
from symc.ir.ops.math import ceil, exp2, log2
from symc.ir.ops.matrix import (
    Sample,
    adjoint,
    by_column,
    check_matrix,
    check_square,
    checked,
    each_dtype,
    eye,
    hermitian,
    inverse_or_zero,
    normal,
    one_by_one,
    positive_definite,
    product,
    squares,
    to_triangle,
    total,
)
from symc.ir.ops.reduce import max_, sum_
from symc.ir.ops.shape import concat, slice_
from symc.ir.ops.spectral import NO_END, eigh, svd
from symc.ir.types import TensorType, real_dtype
from symc.ir.value import Value

# --- pseudoinverse ----------------------------------------------------------------------------------------------------


def _pinv_infer(t: TensorType, rtol: TensorType, hermitian: bool) -> TensorType:
    m, n = check_matrix("pinv", t)
    if hermitian:
        check_square("pinv", t)
    if rtol is not TensorType(real_dtype(t.dtype), t.shape[:-2]):
        raise ShapeError(f"pinv: the tolerance is {rtol}, the matrix {t}")
    return t.with_shape((*t.shape[:-2], n, m))


def _pinv_reference(a, rtol, hermitian):
    if not a.size:
        return np.empty((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    return np.ascontiguousarray(checked(NO_END, lambda x: np.linalg.pinv(x, rtol, hermitian), a), a.dtype)


def _inverses(s: Value, rtol: Value) -> Value:
    """1 / s, and 0 where s is at most rtol times the largest in size."""
    size = lookup("abs")(s)
    top = lookup("sup")(size, axes=(s.ndim - 1,)) * rtol
    kept = gt(size, lookup("broadcast")(top, axes=tuple(range(top.ndim)), shape=s.shape))
    return where(kept, inverse_or_zero(s), like(s, 0))


def _pinv_parts(v: Value) -> Value:
    a, rtol = v.operands
    if v.attrs["hermitian"]:
        w, q = eigh(a, lower=True)[0], eigh(a, lower=True)[1]
        return product(q * by_column(in_dtype(_inverses(w, rtol), a.dtype), q.shape), q, right="c")
    f = svd(a, full=False)
    back = adjoint(f[2])
    return product(back * by_column(in_dtype(_inverses(f[1], rtol), a.dtype), back.shape), f[0], right="c")


def _read(v: Value, x: Value) -> Value:
    """The matrix, or its tangent, that is inverted."""
    return hermitian(x, lower=True) if v.attrs["hermitian"] else x


def _pinv_jvp(tangents, v):
    """-X dA X + X X^H dA^H (1 - A X) + (1 - X A) dA^H X^H X (Golub and Pereyra 1973)."""
    if tangents[0] is None:
        return None
    a, da = _read(v, v.operands[0]), _read(v, tangents[0])
    back = adjoint(da)
    right = product(back, v, right="c")  # dA^H X^H
    first = product(v, product(v, back - product(product(back, a), v), left="c"))
    last = product(right, v)
    return first - product(product(v, da), v) + (last - product(v, product(a, last)))


def _pinv_vjp(g, v):
    a = _read(v, v.operands[0])
    inner = product(product(v, g, left="c"), v, right="c")  # X^H G X^H
    first = product(product(adjoint(g), v), v, right="c")  # G^H X X^H
    last = product(product(v, v, left="c"), adjoint(g))  # X^H X G^H
    ga = first - product(a, product(v, first)) - inner + (last - product(product(last, v), a))
    return (to_triangle(ga, lower=True) if v.attrs["hermitian"] else ga, None)


def _pinv_samples() -> Iterator[Sample]:
    yield from each_dtype([(3, 3), (4, 2), (2, 3), (2, 2, 3, 2), (1, 1)],
                          lambda rng, shape, c: (normal(rng, shape, c), np.full(shape[:-2], 1e-5)),
                          [dict(hermitian=False)])
    low = np.outer([1.0, 2.0, 3.0], [1.0, -1.0])
    yield (low, np.array(1e-10)), dict(hermitian=False)
    yield (np.diag([2.0, 0.0, -1.0]), np.array(1e-10)), dict(hermitian=True)
    for shape in ((0, 0), (0, 3), (2, 0), (0, 2, 3)):
        yield (np.ones(shape), np.full(shape[:-2], 1e-5)), dict(hermitian=False)


pinv = register(Op(
    "pinv", _pinv_infer, _pinv_reference, Custom(_pinv_jvp, _pinv_vjp), Decompose(_pinv_parts),
    samples=_pinv_samples,
    doc="The pseudoinverse. Singular values of at most the second operand (a number for each matrix) times the largest "
    "count as zero. `hermitian`: the matrix is; its lower triangle is read. The derivative holds the rank.",
    facts=Facts(kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip

# --- exponential ------------------------------------------------------------------------------------------------------


def _expm_reference(a):
    from scipy.linalg import expm as run

    if not a.size:
        return np.empty_like(a)
    return np.ascontiguousarray(run(a), a.dtype)


#: The coefficients of Pade's approximant of degree 13, the norm up to which it is exact to 2**-53, and how often what
#: a device computes is squared: matrices of a norm beyond ``NEAR * 2**SQUARINGS`` become nan there.
_PADE = (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
         10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0)
NEAR, SQUARINGS = 5.371920351148152, 16


def _by_products(v: Value) -> Value:
    """Scaling and squaring (N. Higham, 2005) with as many products for every matrix, so that nothing is waited for."""
    (a,) = v.operands
    last = a.ndim - 1
    if a.shape[last] == 0:
        return a
    size = max_(sum_(abs_(a), axes=(last - 1,)), axes=(last - 1,))
    halvings = maximum(ceil(log2(size / NEAR)), like(size, 0))
    x = a * in_dtype(spread_over_rest(exp2(neg(halvings)), a), a.dtype)
    x2 = product(x, x)
    x4 = product(x2, x2)
    x6 = product(x4, x2)
    c, one = [like(a, p / _PADE[0]) for p in _PADE], eye(a.type)
    odd = product(x6, c[13] * x6 + c[11] * x4 + c[9] * x2) + c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * one
    even = product(x6, c[12] * x6 + c[10] * x4 + c[8] * x2) + c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * one
    odd = product(x, odd)
    y = lookup("solve")(even - odd, even + odd)
    for k in range(SQUARINGS):
        y = where(spread_over_rest(gt(halvings, like(halvings, k)), a), product(y, y), y)
    return where(spread_over_rest(gt(halvings, like(halvings, SQUARINGS)), a), like(a, np.nan), y)


def _along(f: Op, a: Value, direction: Value) -> Value:
    """The derivative of f at ``a``: the upper right block of f of [[a, direction], [0, a]] (Mathias 1996)."""
    n, last = a.shape[-1], a.ndim - 1
    wide = concat(concat(a, direction, axis=last), concat(like(a, 0), a, axis=last), axis=last - 1)
    start = (*(0,) * (last - 1), 0, n)
    return slice_(f(wide), start=start, size=a.shape, step=(1,) * a.ndim)


def _blocks_jvp(tangents, v):
    return _along(v.op, v.operands[0], tangents[0])


def _blocks_vjp(g, v):
    return (_along(v.op, adjoint(v.operands[0]), g),)


#: Of functions of matrices; the adjoint matrix has the adjoint of the derivative.
_OF_BLOCKS = Custom(_blocks_jvp, _blocks_vjp)


expm = register(Op(
    "expm", square("expm"), _expm_reference,
    _OF_BLOCKS,
    Extern("expm"), frozenset({"python"}),
    lambda: squares(lambda *how: 0.7 * normal(*how), np.array([[0.0, 5.0], [-5.0, 0.0]])),
    "The exponential of a square matrix: sum of a^k / k!.",
    facts=Facts(kinds="fc", batch=batch_leading, lower_batched=_by_products, rounding="norm"),
))  # fmt: skip

# --- logarithm and root -----------------------------------------------------------------------------------------------


def _of_scipy(name: str, derivative: Custom, doc: str) -> Op:
    """A function that SciPy computes by Schur's form (Al-Mohy and Higham 2012; Deadman, Higham and Ralha 2013)."""

    def reference(a: np.ndarray) -> np.ndarray:
        import scipy.linalg

        out = np.empty_like(a, order="C")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run = getattr(scipy.linalg, name)
            one_by_one(lambda x: _of_kind(run(x) if x.size else x, a.dtype, name), [a], [out])
        return out

    return register(Op(
        name, square(name), reference, derivative, Extern(name), frozenset({"python"}),
        lambda: squares(positive_definite), doc, Facts(kinds="fc", batch=batch_leading, rounding="norm")))


def _of_kind(x: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    if x.dtype.kind == "c" != dtype.kind and np.any(x.imag):
        raise LinAlgError(f"{name}: a real matrix with eigenvalues below 0 has no real result",
                          help=f"of complex numbers: sc.linalg.{name}(A.astype('complex128'))")
    return x.real if dtype.kind != "c" else x


def _root_jvp(tangents, v):
    return lookup("solve_sylvester")(v, v, tangents[0])


logm = _of_scipy("logm", _OF_BLOCKS, "The principal logarithm of a square matrix: what `expm` takes to it. By SciPy.")
sqrtm = _of_scipy("sqrtm", Custom(_root_jvp),
                  "The principal root of a square matrix: what is it times itself. By SciPy.")

# --- Sylvester's equation ---------------------------------------------------------------------------------------------


def _sylvester_infer(a: TensorType, b: TensorType, q: TensorType) -> TensorType:
    m, n = check_square("solve_sylvester", a), check_square("solve_sylvester", b)
    if not a.dtype == b.dtype == q.dtype:
        raise DTypeError(f"solve_sylvester: operand dtypes differ: {a}, {b} and {q}")
    if not a.shape[:-2] == b.shape[:-2] == q.shape[:-2] or q.shape[-2:] != (m, n):
        raise ShapeError(f"solve_sylvester: the right side {q} does not fit {a} and {b}")
    return q


def _sylvester(a, b, q):
    from scipy.linalg import get_lapack_funcs, schur

    how = "complex" if a.dtype.kind == "c" else "real"
    (r, u), (s, v) = schur(a, how), schur(b.conj().T, how)
    (trsyl,) = get_lapack_funcs(("trsyl",), (r, s))
    y, scale, info = trsyl(r, s, u.conj().T @ q @ v, tranb="C")
    if info:
        raise np.linalg.LinAlgError
    return scale * (u @ y @ v.conj().T)


def _sylvester_reference(a, b, q):
    out = np.empty_like(q, order="C")
    why = "solve_sylvester: A and -B have an eigenvalue in common: there is no solution, or many"
    one_by_one(lambda *x: checked(why, _sylvester, *x) if q.size else q, [a, b, q], [out])
    return out


def _sylvester_jvp(tangents, v):
    a, b, _ = v.operands
    da, db, dq = tangents
    return solve_sylvester(a, b, total(dq, None if da is None else -product(da, v),
                                       None if db is None else -product(v, db)))


def _sylvester_vjp(g, v):
    a, b, _ = v.operands
    gq = solve_sylvester(adjoint(a), adjoint(b), g)
    return -product(gq, v, right="c"), -product(v, gq, left="c"), gq


def _sylvester_samples() -> Iterator[Sample]:
    def all_three(rng: np.random.Generator, shape: tuple[int, ...], c: bool) -> tuple[np.ndarray, ...]:
        *batch, n, _ = shape
        other = (*batch, 2, 2)
        return positive_definite(rng, shape, c), positive_definite(rng, other, c), normal(rng, (*batch, n, 2), c)

    yield from each_dtype([(3, 3), (2, 2, 2, 2), (1, 1)], all_three)
    yield (np.ones((0, 3, 3)), np.ones((0, 2, 2)), np.ones((0, 3, 2))), {}


solve_sylvester = register(Op(
    "solve_sylvester", _sylvester_infer, _sylvester_reference, Custom(_sylvester_jvp, _sylvester_vjp),
    Extern("solve_sylvester"), frozenset({"python"}), _sylvester_samples,
    "The x of a x + x b = q (Bartels and Stewart 1972). By SciPy.",
    Facts(kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip
