"""Matrices with a pattern, and what is solved or approximated by a factorization, as in ``scipy.linalg``."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.ir.dim import known_equal
from symc.ir.ops.banded import adjoint_band
from symc.ir.ops.banded import solve_banded as banded
from symc.ir.ops.ensure import at_least, ensured
from symc.ir.ops.shape import concat, in_shape, slice_along
from symc.ir.value import Value
from symc.numpy_api.decompositions import svd
from symc.numpy_api.equations import pinv
from symc.numpy_api.matrices import eps, linalg, longest, square
from symc.numpy_api.promotion import common_dtype, rows
from symc.tensors.convert import as_tensor, inexact_dtype
from symc.tensors.public import API
from symc.tensors.tensor import Tensor


def _places(m: Any, n: Any) -> tuple[Tensor, Tensor]:
    """Rows and columns, as a grid."""
    return API["expand_dims"](API["arange"](m), 1), API["arange"](n)


@linalg()
def circulant(c: Any) -> Tensor:
    """The matrix whose columns are c, each one place further around than the one before."""
    t = API["atleast_1d"](c)
    i, j = _places(t.shape[-1], t.shape[-1])
    return API["take"](t, API["remainder"](i - j, t.shape[-1]), -1)


@linalg()
def hankel(c: Any, r: Any = None) -> Tensor:
    """The matrix whose elements depend on row plus column: first column c, last row r (zeros)."""
    down = API["ravel"](c)
    right = API["zeros_like"](down) if r is None else API["ravel"](r)
    line = API["concatenate"]([down, API["getitem"](right, slice(1, None))])
    i, j = _places(down.shape[0], right.shape[0])
    return API["getitem"](line, i + j)


@linalg()
def companion(a: Any) -> Tensor:
    """The matrix whose eigenvalues are the roots of a polynomial, whose first coefficient is not 0."""
    t = API["atleast_1d"](a)
    if t.ndim != 1 or isinstance(t.shape[0], int) and t.shape[0] < 2:
        raise ShapeError("companion: at least two coefficients are needed", values=rows([t]))
    t = API["astype"](Tensor(at_least(t.value, 0, 2)), inexact_dtype(t.dtype))
    first = API["divide"](API["negative"](API["getitem"](t, slice(1, None))), API["getitem"](t, 0))
    i, j = _places(t.shape[0] - 1, t.shape[0] - 1)
    below = API["astype"](API["equal"](i, j + 1), t.dtype)
    return API["where"](API["equal"](i, 0), first, below)


@linalg()
def hilbert(n: Any) -> Tensor:
    """The matrix of 1 / (i + j + 1)."""
    i, j = _places(n, n)
    return API["divide"](1.0, i + j + 1)


@linalg()
def solve_banded(l_and_u: tuple[int, int], ab: Any, b: Any) -> Tensor:
    """The x of a @ x = b, where row u + i - j of ``ab`` holds a[i, j].

    There are l diagonals below the main one and u above; rows of ``a`` are exchanged where that keeps it stable. n
    times the number of diagonals are the steps, of derivatives too. Raises LinAlgError for a singular matrix.
    """
    low, high = map(operator.index, l_and_u)
    t, y, n = _diagonals(ab, b, "solve_banded")
    if min(low, high) < 0 or known_equal(t.value.shape[0], low + high + 1) is False:
        raise ShapeError(f"solve_banded: {low} and {high} diagonals are rows of {low + high + 1}", values=rows([t]))
    return _solved(ensured(t.value, (low + high + 1, n)), y, low, high)


@linalg()
def solveh_banded(ab: Any, b: Any, *, lower: bool = False) -> Tensor:
    """The x of a @ x = b for a hermitian ``a``: row u + i - j of ``ab`` holds a[i, j] with j >= i, or with ``lower``
    row i - j with i >= j.

    Solved as ``solve_banded`` does: ``a`` need not be positive definite. The number of rows of ``ab`` must be known.
    Raises LinAlgError for a singular matrix.

    >>> ab, b = sc.input("ab", shape=(2, "n")), sc.vector("b")
    >>> sc.compile(sc.linalg.solveh_banded(ab, b))([[0.0, 1.0, 1.0], [4.0, 4.0, 4.0]], [5.0, 6.0, 5.0])
    array([1., 1., 1.])
    """
    t, y, n = _diagonals(ab, b, "solveh_banded")
    up = t.value.shape[0] - 1
    if not isinstance(up, int):
        raise ShapeError("solveh_banded: the number of diagonals must be known", values=rows([t]))
    half = ensured(t.value, (up + 1, n))
    upper = adjoint_band(half, up) if lower else half
    below = slice_along(adjoint_band(upper, 0), 0, 1, up)
    return _solved(concat(upper, below, axis=0), y, up, up)


def _solved(ab: Value, b: Tensor, low: int, up: int) -> Tensor:
    """The solution in the shape of the right side, one vector or columns."""
    v = ensured(b.value, (ab.shape[1], *b.value.shape[1:]))
    x = banded(ab, in_shape(v, (v.shape[0], 1 if b.ndim == 1 else v.shape[1])), low=low, up=up)
    return Tensor(in_shape(x, v.shape))


def _diagonals(ab: Any, b: Any, name: str) -> tuple[Tensor, Tensor, Any]:
    """Diagonals and right side in one dtype, and the number of rows of the matrix."""
    t, y = as_tensor(ab), as_tensor(b)
    if t.ndim != 2 or y.ndim not in (1, 2):
        raise ShapeError(f"{name}: the diagonals have two axes, the right side one or two", values=rows([t, y]))
    n = t.value.shape[1]
    if known_equal(y.value.shape[0], n) is False:
        raise ShapeError(f"{name}: the right side has {y.value.shape[0]} rows, the diagonals {n} columns",
                         values=rows([t, y]))
    dtype = inexact_dtype(common_dtype([t, y]))
    return API["astype"](t, dtype), API["astype"](y, dtype), n


@linalg()
def polar(a: Any, side: str = "right") -> tuple[Tensor, Tensor]:
    """(u, p) with a = u @ p, or p @ u for side "left": u with orthonormal rows or columns, p positive semidefinite."""
    if side not in ("left", "right"):
        raise InputError(f"polar: side is 'left' or 'right', not {side!r}")
    left, s, right = svd(a, full_matrices=False)
    factor = right if side == "right" else API["conjugate"](left.mT)
    return API["matmul"](left, right), API["matmul"](API["conjugate"](factor.mT) * API["expand_dims"](s, -2), factor)


@linalg()
def pinvh(a: Any, *, rtol: Any = None) -> Tensor:
    """The pseudoinverse of a hermitian matrix."""
    t = square(a, "pinvh")
    return pinv(t, hermitian=True, rtol=longest(t) * eps(t) if rtol is None else rtol)


@linalg()
def orthogonal_procrustes(A: Any, B: Any) -> tuple[Tensor, Tensor]:
    """(R, scale): the orthogonal R for which |A @ R - B| is least, and the sum of singular values of A^H @ B."""
    x, y = as_tensor(A), as_tensor(B)
    if x.ndim != 2 or y.ndim != 2:
        raise ShapeError("orthogonal_procrustes: two matrices are needed", values=rows([x, y]))
    dtype = common_dtype([x, y, as_tensor(np.float32(0))])
    x, y = API["astype"](x, dtype), API["astype"](y, dtype)
    u, s, vh = svd(API["matmul"](API["conjugate"](x.mT), y))
    return API["matmul"](u, vh), API["sum"](s, -1)
