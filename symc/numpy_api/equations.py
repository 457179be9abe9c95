"""Systems of linear equations, inverses, determinants, ranks and conditions, as in ``numpy.linalg``.

A right side of one axis is a vector, any other a matrix (as in NumPy 2). A singular matrix raises LinAlgError in the
call, with the line that asked for a solution.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from symc.errors import InputError, ShapeError, did_you_mean
from symc.ir.dim import known_equal
from symc.ir.op import lookup
from symc.ir.ops.matrix import adjoint
from symc.numpy_api.decompositions import eigvalsh, svdvals
from symc.numpy_api.manipulation import normal_axes
from symc.numpy_api.matrices import alike, eps, floats, linalg, longest, matrix, number_of_each, solved, square
from symc.numpy_api.promotion import rows
from symc.tensors.convert import as_tensor
from symc.tensors.public import API
from symc.tensors.sizes import whole
from symc.tensors.tensor import Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


# --- solutions --------------------------------------------------------------------------------------------------------


#: What ``assume_a`` may say, in SciPy's words, and the op that solves such equations with its attributes.
ASSUMED: dict[str, tuple[str, dict[str, Any]]] = {
    "gen": ("solve", {}),
    "pos": ("cho_solve", {}),
    "lower triangular": ("solve_triangular", {"lower": True, "trans": "n", "unit": False}),
    "upper triangular": ("solve_triangular", {"lower": False, "trans": "n", "unit": False}),
}


@linalg(np.linalg.solve)
def solve(a: Any, b: Any, *, assume_a: str = "gen") -> Tensor:
    """The x of a @ x = b.

    ``assume_a``, as in SciPy: "gen", "pos" (hermitian and positive definite: its lower triangle is read),
    "lower triangular" or "upper triangular" (that triangle is read).
    """
    a, b = alike([square(a, "solve"), floats(b, "solve")], "solve")
    if assume_a not in ASSUMED:
        raise InputError(f"solve: assume_a={assume_a!r} is not known", help=did_you_mean(assume_a, ASSUMED))
    op, attrs = ASSUMED[assume_a]
    a = Tensor(lookup("cholesky")(a.value)) if op == "cho_solve" else a
    return solved("solve", op, [a], b, **attrs)


_TRANS = {0: "n", 1: "t", 2: "c", "N": "n", "T": "t", "C": "c"}


def _trans(trans: Any, name: str) -> str:
    if trans not in _TRANS:
        raise InputError(f"{name}: trans is one of 0, 1, 2, 'N', 'T', 'C', not {trans!r}")
    return _TRANS[trans]


@linalg()
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Tensor:
    """The x of op(a) @ x = b, where one triangle of a is read; ``trans``: op is nothing (0), .T (1), .conj().T (2)."""
    a, b = alike([square(a, "solve_triangular"), floats(b, "solve_triangular")], "solve_triangular")
    how = _trans(trans, "solve_triangular")
    return solved("solve_triangular", "solve_triangular", [a], b, lower=bool(lower), trans=how,
                  unit=bool(unit_diagonal))


@linalg()
def lu_solve(lu_and_perm: tuple[Any, Any], b: Any, trans: Any = 0) -> Tensor:
    """The x of op(a) @ x = b by what ``lu_factor`` gives for a; ``trans``: op is nothing (0), .T (1), .conj().T (2)."""
    lu, perm = lu_and_perm
    a, b = alike([square(lu, "lu_solve"), floats(b, "lu_solve")], "lu_solve")
    rows_of = API["astype"](perm, np.int64)
    return solved("lu_solve", "lu_solve", [a, rows_of], b, trans=_trans(trans, "lu_solve"))


@linalg()
def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Tensor:
    """The x of a @ x = b by what ``cho_factor`` gives for a."""
    c, lower = c_and_lower
    a, b = alike([square(c, "cho_solve"), floats(b, "cho_solve")], "cho_solve")
    return solved("cho_solve", "cho_solve", [a if lower else Tensor(adjoint(a.value))], b)


@linalg(np.linalg.inv)
def inv(a: Any) -> Tensor:
    """The inverse. To solve equations, ``solve`` is faster and more accurate."""
    return Tensor(lookup("inv")(square(a, "inv").value))


def _moved(a: Tensor, axes: Any) -> Tensor:
    if axes is None:
        return a
    order = [k for k in range(a.ndim) if k not in normal_axes(axes, a.ndim, "tensorsolve", a)]
    return API["transpose"](a, (*order, *normal_axes(axes, a.ndim, "tensorsolve", a)))


@linalg(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """The x of tensordot(a, x, x.ndim) = b; ``axes`` of a are moved to its end first."""
    t, y = _moved(as_tensor(a), axes), as_tensor(b)
    shape = t.shape[y.ndim:]
    n = math.prod(shape)
    if known_equal(t.value.type.size, y.value.type.size * y.value.type.size) is False:
        raise ShapeError("tensorsolve: the first axes of a must have as many elements as the others, and as b",
                         values=rows([t, y]))
    return API["reshape"](solve(API["reshape"](t, (math.prod(y.shape), n)), API["ravel"](y)), shape)


@linalg(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Tensor:
    """The inverse for ``tensordot(a, b, ind)``: the first ``ind`` axes are rows, the others columns."""
    t = as_tensor(a)
    if (k := whole(ind) or 0) <= 0:
        raise InputError(f"tensorinv: ind is a positive number of axes, not {ind!r}")
    shape = (*t.shape[k:], *t.shape[:k])
    return API["reshape"](inv(API["reshape"](t, (math.prod(t.shape[:k]), math.prod(t.shape[k:])))), shape)


# --- determinants -----------------------------------------------------------------------------------------------------


@linalg(np.linalg.det)
def det(a: Any) -> Tensor:
    """The determinant."""
    return Tensor(lookup("det")(square(a, "det").value))


@linalg(np.linalg.slogdet)
def slogdet(a: Any) -> SlogdetResult:
    """(sign, logabsdet): the determinant is sign * exp(logabsdet), which neither over- nor underflows."""
    f = lookup("slogdet")(square(a, "slogdet").value)
    return SlogdetResult(Tensor(f[0]), Tensor(f[1]))


# --- any rank ---------------------------------------------------------------------------------------------------------

_DEFAULT: Any = type("_Default", (), {"__repr__": lambda self: "<default>"})()


@linalg(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _DEFAULT) -> Tensor:
    """The pseudoinverse. Singular values up to rcond (rtol) times the largest count as zero; by default 1e-15.

    ``rtol=None``: the larger of rows and columns times the precision. The derivative holds the rank.
    """
    t = square(a, "pinv") if hermitian else matrix(a, "pinv")
    if rcond is not None and rtol is not _DEFAULT:
        raise InputError("pinv: rcond and rtol are two names of one thing")
    if rcond is None:
        rcond = 1e-15 if rtol is _DEFAULT else longest(t) * eps(t) if rtol is None else rtol
    return Tensor(lookup("pinv")(t.value, number_of_each(rcond, t, "pinv"), hermitian=bool(hermitian)))


@linalg(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(x, residuals, rank, s): the shortest x for which |a @ x - b| is least.

    ``residuals`` are sums of squares for each column of b, if a has more rows than columns (NumPy has none where the
    rank is smaller, too); ``s`` are singular values, of which those up to rcond times the largest count as zero.
    """
    t, y = alike([matrix(a, "lstsq"), floats(b, "lstsq")], "lstsq")
    if t.ndim != 2 or y.ndim not in (1, 2):
        raise ShapeError("lstsq: a is a matrix, b a vector or a matrix", values=rows([t, y]), help="sc.vmap batches")
    m, n = t.value.shape
    if known_equal(m, y.value.shape[0]) is False:
        raise ShapeError(f"lstsq: the matrix has {m} rows, the right side {y.value.shape[0]}", values=rows([t, y]))
    if rcond is None:
        rcond = longest(t) * eps(t)
    elif not isinstance(rcond, Tensor) and rcond < 0:
        rcond = eps(t)
    s = Tensor(lookup("svd")(t.value, full=False)[1])
    x = API["matmul"](pinv(t, rcond), y)
    rank = API["sum"](API["greater"](s, rcond * API["max"](s, -1, initial=0)), -1)
    if isinstance(m, int) and isinstance(n, int) and m <= n:
        return x, API["zeros"](0, s.dtype), rank, s
    left = API["subtract"](API["matmul"](t, x), y)
    return x, API["atleast_1d"](API["sum"](API["square"](API["abs"](left)), 0)), rank, s


@linalg(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """The number of singular values above ``tol``, by default rtol times the largest."""
    if tol is not None and rtol is not None:
        raise InputError("matrix_rank: give tol or rtol, not both")
    t = as_tensor(A)
    if t.ndim < 2:
        return API["astype"](API["any"](API["not_equal"](t, 0)), np.int64)
    t = matrix(t, "matrix_rank")
    s = API["abs"](eigvalsh(t)) if hermitian else svdvals(t)
    if tol is None:
        rtol = longest(t) * eps(t) if rtol is None else API["expand_dims"](rtol, -1)
        tol = API["multiply"](API["max"](s, -1, keepdims=True, initial=0), rtol)
    else:
        tol = API["expand_dims"](tol, -1)
    return API["sum"](API["greater"](s, tol), -1)


@linalg(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Tensor:
    """The condition number: of the 2-norm (p None, 2, -2) a quotient of singular values, else |x| |inv(x)|.

    For a singular matrix infinite by singular values, and an error by other norms.
    """
    t = matrix(x, "cond")
    if not isinstance(p, int | float | np.integer | str | None):
        raise InputError(f"cond: no norm is called {p!r}", values=rows([t]))
    if 0 in t.value.shape[-2:]:
        raise ShapeError("cond is not defined for a matrix without elements", values=rows([t]))
    if p is None or p in (2, -2):
        s = svdvals(t)
        first, last = API["getitem"](s, (..., 0)), API["getitem"](s, (..., -1))
        out = API["divide"](last, first) if p == -2 else API["divide"](first, last)
    else:
        t = square(t, "cond")
        out = API["multiply"](API["norm"](t, p, (-2, -1)), API["norm"](inv(t), p, (-2, -1)))
    known = API["logical_not"](API["any"](API["isnan"](t), (-2, -1)))
    return API["where"](API["logical_and"](API["isnan"](out), known), np.inf, out)


