"""Systems of linear equations, and inverses.

Matrices lie in the last two axes; other axes are batch axes. `solve`, `inv` and `cho_solve` (and the determinants) are
named for rules to find and are then taken apart into factorizations and solves with factors. Values are interned, so a
matrix is factorized once, whatever is asked of it, derivatives included: those are stated with its LU factors. A matrix
that has no inverse raises LinAlgError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import LinAlgError
from symc.ir.facts import Facts
from symc.ir.op import Custom, Decompose, Extern, Op, register
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.elementwise import batch_leading
from symc.ir.ops.factor import lu_factor, square, triangular, unit_lower
from symc.ir.ops.logic import where
from symc.ir.ops.matrix import (
    Sample,
    Shape,
    batch_columns,
    check_choice,
    check_right_side,
    checked,
    each_dtype,
    eye,
    normal,
    one_by_one,
    part,
    permuted,
    permuted_back,
    positive_definite,
    product,
    side,
    squares,
    total,
    well_conditioned,
)
from symc.ir.types import TensorType
from symc.ir.value import Value

SINGULAR = "the matrix is singular: equations with it have no solution, or many"
ANY = "sc.linalg.lstsq and pinv take any matrix"
#: What ``trans`` means: the matrix as it is, transposed, or conjugated too.
TRANS = ("n", "t", "c")


def _right_sides(matrices: Callable, attrs: Sequence[dict[str, Any]] = ({},)) -> Iterator[Sample]:
    """Samples of a matrix and right sides: batches, one column, none, no rows. ``matrices``: see ``each_dtype``."""

    def both(rng: np.random.Generator, shape: Shape, is_complex: bool) -> tuple[np.ndarray, ...]:
        *batch, n, _ = shape
        k = 1 if batch else 2 if n == 3 else 0
        return *matrices(rng, shape, is_complex), normal(rng, (*batch, n, k), is_complex)

    yield from each_dtype([(3, 3)], both, attrs)
    yield from each_dtype([(2, 2, 3, 3), (2, 2)], both, attrs[-1:])
    for given in attrs[-1:]:
        for shape in ((0, 0), (0, 2, 2), (1, 1)):
            yield (np.ones(shape), np.ones((*shape[:-1], 2))), dict(given)


def _as_right_side(name: str) -> Callable[[TensorType, TensorType], TensorType]:
    """Type of a result like the right side of a matrix."""
    def infer(a: TensorType, b: TensorType) -> TensorType:
        check_right_side(name, a, b)
        return b

    return infer


# --- triangular -------------------------------------------------------------------------------------------------------


def _triangular_infer(a: TensorType, b: TensorType, lower: bool, trans: str, unit: bool) -> TensorType:
    check_right_side("solve_triangular", a, b)
    check_choice("solve_triangular", "trans", trans, TRANS)
    return b


def _solved(a: np.ndarray, b: np.ndarray, *, lower: bool, trans: str = "n", unit: bool = False) -> np.ndarray:
    """Solution by BLAS, which uses no threads for small matrices; LAPACK's trtrs does, and waits for them."""
    from scipy.linalg import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), (a, b))
    return trsm(1.0, a, b, lower=lower, trans_a="ntc".index(trans), diag=unit) if b.size else b


def _refuse_zeros(a: np.ndarray) -> None:
    """Raise LinAlgError for a zero on a diagonal that is divided by."""
    if a.size and not np.all(np.diagonal(a, axis1=-2, axis2=-1)):
        raise LinAlgError(SINGULAR, help=ANY)


def _triangular_reference(a, b, lower, trans, unit):
    out = np.empty_like(b, order="C")
    if not unit:
        _refuse_zeros(a)
    one_by_one(lambda x, y: _solved(x, y, lower=lower, trans=trans, unit=unit), [a, b], [out])
    return out


def _read(x: Value, attrs) -> Value:
    """Part that is read of a matrix or its tangent; of a unit diagonal nothing."""
    where_ = "lower" if attrs["lower"] else "upper"
    return part(x, f"strictly {where_}" if attrs["unit"] else where_)


def _with(t: Value, b: Value, attrs, trans: str) -> Value:
    return triangular(t, b, lower=attrs["lower"], trans=trans, unit=attrs["unit"])


def _backwards(solve_with, g: Value, trans: str) -> Value:
    """``solve_with(g, trans)`` for the adjoint of the matrix that ``trans`` names."""
    if trans == "n":
        return solve_with(g, "c" if g.dtype.kind == "c" else "t")
    if trans == "c" or g.dtype.kind != "c":
        return solve_with(g, "n")
    return conjugate(solve_with(conjugate(g), "n"))


def _outer(trans: str, gb: Value, x: Value) -> tuple[Value, Value]:
    """(l, r): the cotangent of A is ``-l @ r^H`` when x solves ``op(A) x = b``, and gb is the cotangent of b."""
    if trans == "n":
        return gb, x
    return (x, gb) if trans == "c" else (conjugate(x), conjugate(gb))


def _triangular_jvp(tangents, v):
    (t, _), (dt, db), attrs = v.operands, tangents, v.attrs
    change = None if dt is None else -product(_read(dt, attrs), v, left=attrs["trans"])
    return _with(t, total(db, change), attrs, attrs["trans"])


def _triangular_vjp(g, v):
    t, attrs = v.operands[0], v.attrs
    gb = _backwards(lambda b, trans: _with(t, b, attrs, trans), g, attrs["trans"])
    left, right = _outer(attrs["trans"], gb, v)
    return -_read(product(left, right, right="c"), attrs), gb


def _triangular_samples() -> Iterator[Sample]:
    settings = [dict(lower=lower, trans=trans, unit=unit) for lower in (True, False) for trans in TRANS
                for unit in (False, True)]
    yield from _right_sides(lambda rng, shape, c: (normal(rng, shape, c) + 3 * np.eye(shape[-1]),), settings)


solve_triangular = register(Op(
    "solve_triangular", _triangular_infer, _triangular_reference, Custom(_triangular_jvp, _triangular_vjp),
    Extern("solve_triangular"), frozenset({"linear_solve"}), _triangular_samples,
    "The x of op(a) @ x = b. Only the lower (or, without `lower`, the upper) triangle of a is read, and its diagonal "
    "is taken as ones with `unit`. `trans` says what op is: 'n' nothing, 't' the transpose, 'c' conjugated too.",
    Facts(kinds="fc", batch=batch_columns, rounding="norm"),
    defaults={"trans": "n", "unit": False},
))  # fmt: skip

# --- with the factors of LU -------------------------------------------------------------------------------------------


def _lu_solve_infer(lu: TensorType, perm: TensorType, b: TensorType, trans: str) -> TensorType:
    check_right_side("lu_solve", lu, b)
    check_choice("lu_solve", "trans", trans, TRANS)
    if perm is not TensorType("i64", lu.shape[:-1]):
        check_right_side("lu_solve", lu, perm)  # says what does not fit
    return b


def _lu_solve_reference(lu, perm, b, trans):
    _refuse_zeros(lu)
    out = np.empty_like(b, order="C")

    def one(lu, order, y):
        if trans == "n":
            return _solved(lu, _solved(lu, y[order], lower=True, unit=True), lower=False)
        x = np.empty_like(y)
        x[order] = _solved(lu, _solved(lu, y, lower=False, trans=trans), lower=True, trans=trans, unit=True)
        return x

    for k in np.ndindex(*lu.shape[: lu.ndim - 2]):
        out[k] = one(lu[k], perm[k], b[k])
    return out


def _lu_solve_jvp(tangents, v):
    (lu, perm, _), (dlu, _, db), trans = v.operands, tangents, v.attrs["trans"]
    change = None
    if dlu is not None:
        dl, du, lower, upper = part(dlu, "strictly lower"), part(dlu, "upper"), unit_lower(lu), part(lu, "upper")
        if trans == "n":
            moved = product(dl, product(upper, v)) + product(lower, product(du, v))
            change = -permuted_back(moved, perm)
        else:
            x = permuted(v, perm)
            change = -(product(du, product(lower, x, left=trans), left=trans)
                       + product(upper, product(dl, x, left=trans), left=trans))
    return lu_solve(lu, perm, total(db, change), trans=trans)


def _lu_solve_vjp(g, v):
    (lu, perm, _), trans = v.operands, v.attrs["trans"]
    gb = _backwards(lambda b, how: lu_solve(lu, perm, b, trans=how), g, trans)
    left, right = _outer(trans, gb, v)
    left = permuted(left, perm)
    gl = product(left, product(part(lu, "upper"), right), right="c")
    gu = product(product(unit_lower(lu), left, left="c"), right, right="c")
    return -where(side(lu.type, "strictly lower"), gl, gu), None, gb


def _lu_solve_samples() -> Iterator[Sample]:
    settings = [dict(trans=trans) for trans in TRANS]
    for arrays, attrs in _right_sides(lambda *how: lu_factor.reference(well_conditioned(*how)), settings):
        if len(arrays) == 2:
            arrays = (arrays[0], np.zeros(arrays[0].shape[:-1], np.int64) + np.arange(arrays[0].shape[-1]), arrays[1])
            if arrays[0].shape[-1] > 1:
                arrays[0][...] = np.eye(arrays[0].shape[-1])
        yield arrays, attrs


lu_solve = register(Op(
    "lu_solve", _lu_solve_infer, _lu_solve_reference, Custom(_lu_solve_jvp, _lu_solve_vjp),
    Extern("lu_solve"), frozenset({"linear_solve"}), _lu_solve_samples,
    "The x of op(a) @ x = b, given (lu, perm) of `lu_factor` of a. `trans` says what op is: 'n' nothing, 't' the "
    "transpose, 'c' conjugated too.",
    Facts(kinds="fc", batch=batch_columns, rounding="norm"),
    defaults={"trans": "n"},
))  # fmt: skip

# --- with the factor of Cholesky --------------------------------------------------------------------------------------


def _cho_solve_reference(l, b):
    y = _triangular_reference(l, b, lower=True, trans="n", unit=False)
    return _triangular_reference(l, y, lower=True, trans="c", unit=False)


def _cho_solve_parts(v: Value) -> Value:
    l, b = v.operands
    return triangular(l, triangular(l, b, lower=True), lower=True, trans="c")


def _cho_solve_jvp(tangents, v):
    (l, _), (dl, db) = v.operands, tangents
    change = None
    if dl is not None:
        dl, l0 = part(dl, "lower"), part(l, "lower")
        change = -(product(dl, product(l0, v, left="c")) + product(l0, product(dl, v, left="c")))
    return cho_solve(l, total(db, change))


def _cho_solve_vjp(g, v):
    (l, _), gb = v.operands, cho_solve(v.operands[0], g)
    l0 = part(l, "lower")
    gl = product(gb, product(l0, v, left="c"), right="c") + product(v, product(l0, gb, left="c"), right="c")
    return -part(gl, "lower"), gb


def _cho_solve_samples() -> Iterator[Sample]:
    return _right_sides(lambda *how: (np.linalg.cholesky(positive_definite(*how)),))


cho_solve = register(Op(
    "cho_solve", _as_right_side("cho_solve"), _cho_solve_reference, Custom(_cho_solve_jvp, _cho_solve_vjp),
    Decompose(_cho_solve_parts), frozenset({"linear_solve"}), _cho_solve_samples,
    "The x of l @ l^H @ x = b, given the lower triangle l.", Facts(kinds="fc", batch=batch_columns, rounding="norm"),
))  # fmt: skip

# --- solve and inverse ------------------------------------------------------------------------------------------------


def factored(a: Value, b: Value, trans: str = "n") -> Value:
    """The x of ``op(a) x = b`` by the LU factors of ``a``."""
    f = lu_factor(a)
    return lu_solve(f[0], f[1], b, trans=trans)


def _solve_jvp(tangents, v):
    (a, _), (da, db) = v.operands, tangents
    return factored(a, total(db, None if da is None else -product(da, v)))


def _solve_samples() -> Iterator[Sample]:
    return _right_sides(lambda *how: (well_conditioned(*how),))


def _solve_reference(a, b):
    return checked(SINGULAR, np.linalg.solve, a, b, help=ANY)


solve = register(Op(
    "solve", _as_right_side("solve"), _solve_reference, Custom(_solve_jvp),
    Decompose(lambda v: factored(v.operands[0], v.operands[1])), frozenset({"linear_solve"}), _solve_samples,
    "The x of a @ x = b.", Facts(kinds="fc", batch=batch_columns, rounding="norm", indeterminate=True),
))  # fmt: skip


def _inv_jvp(tangents, v):
    return -product(product(v, tangents[0]), v)


def square_samples() -> Iterator[Sample]:
    return squares(well_conditioned)


inv = register(Op(
    "inv", square("inv"), lambda a: checked(SINGULAR, np.linalg.inv, a, help=ANY),
    Custom(_inv_jvp),
    Decompose(lambda v: factored(v.operands[0], eye(v.type))), frozenset({"linear_solve"}), square_samples,
    "The inverse.", Facts(kinds="fc", batch=batch_leading, rounding="norm"),
))  # fmt: skip
