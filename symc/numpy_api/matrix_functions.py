"""Functions of square matrices, and subspaces of matrices, under SciPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import ShapeError
from symc.numpy_api.decompositions import expm, svd
from symc.numpy_api.equations import solve
from symc.numpy_api.fourier import fft, ifft
from symc.numpy_api.matrices import eps, linalg, longest, square
from symc.numpy_api.promotion import rows, same_dtype
from symc.tensors.convert import as_tensor
from symc.tensors.public import API
from symc.tensors.tensor import Tensor


def _halves(a: Any, name: str, turn: Any = 1) -> tuple[Tensor, Tensor, bool]:
    """The exponentials of turn * a and of -turn * a; whether the matrix is real."""
    t = square(a, name)
    return expm(turn * t), expm(-turn * t), t.dtype.kind != "c"


@linalg()
def coshm(A: Any) -> Tensor:
    """The hyperbolic cosine of a square matrix."""
    plus, minus, _ = _halves(A, "coshm")
    return (plus + minus) / 2


@linalg()
def sinhm(A: Any) -> Tensor:
    """The hyperbolic sine of a square matrix."""
    plus, minus, _ = _halves(A, "sinhm")
    return (plus - minus) / 2


@linalg()
def tanhm(A: Any) -> Tensor:
    """The hyperbolic tangent of a square matrix."""
    plus, minus, _ = _halves(A, "tanhm")
    return solve(plus + minus, plus - minus)


@linalg()
def cosm(A: Any) -> Tensor:
    """The cosine of a square matrix."""
    plus, minus, real = _halves(A, "cosm", 1j)
    return API["real"](plus) if real else (plus + minus) / 2


@linalg()
def sinm(A: Any) -> Tensor:
    """The sine of a square matrix."""
    plus, minus, real = _halves(A, "sinm", 1j)
    return API["imag"](plus) if real else (plus - minus) / 2j


@linalg()
def tanm(A: Any) -> Tensor:
    """The tangent of a square matrix."""
    return solve(cosm(A), sinm(A))


@linalg()
def expm_frechet(A: Any, E: Any, *, compute_expm: bool = True) -> Any:
    """The exponential of a square matrix, and its derivative along E; the derivative alone if not ``compute_expm``."""
    a, e = same_dtype([square(A, "expm_frechet"), square(E, "expm_frechet")], "expm_frechet")
    n = a.shape[-1]
    zero = API["zeros_like"](a)
    both = expm(API["concatenate"]([API["concatenate"]([a, e], -1), API["concatenate"]([zero, a], -1)], -2))
    slope = API["getitem"](both, (..., slice(None, n), slice(n, None)))
    return (API["getitem"](both, (..., slice(None, n), slice(None, n))), slope) if compute_expm else slope


@linalg()
def null_space(A: Any, rcond: Any = None) -> Tensor:
    """Orthonormal columns that a matrix takes to zero: as many as there are."""
    t = _matrix(A, "null_space")
    _, s, right = svd(t, full_matrices=True)
    return API["conjugate"](API["getitem"](right, slice(_rank(t, s, rcond), None)).T)


@linalg()
def orth(A: Any, rcond: Any = None) -> Tensor:
    """Orthonormal columns that span those of a matrix: as many as its rank."""
    t = _matrix(A, "orth")
    left, s, _ = svd(t, full_matrices=False)
    return API["getitem"](left, (slice(None), slice(None, _rank(t, s, rcond))))


def _matrix(a: Any, name: str) -> Tensor:
    t = as_tensor(a)
    if t.ndim != 2:
        raise ShapeError(f"{name}: one matrix is needed", values=rows([t]))
    return t


def _rank(t: Tensor, s: Tensor, rcond: Any) -> Tensor:
    least = API["max"](s, initial=0.0) * (eps(s) * longest(t) if rcond is None else rcond)
    return API["sum"](API["greater"](s, least), dtype=np.int64)


# --- matrices of vectors ----------------------------------------------------------------------------------------------


@linalg()
def leslie(f: Any, s: Any) -> Tensor:
    """The matrix with f in the first row and s below the diagonal."""
    first, below = same_dtype([API["atleast_1d"](f), API["atleast_1d"](s)], "leslie")
    i, j = API["expand_dims"](API["arange"](first.shape[-1]), 1), API["arange"](first.shape[-1])
    filled = API["concatenate"]([below, API["zeros_like"](API["getitem"](first, (..., slice(None, 1))))], -1)
    if isinstance(first.shape[-1], int) and filled.shape[-1] != first.shape[-1]:
        raise ShapeError("leslie: s must have one element less than f", values=rows([first, below]))
    column = API["expand_dims"](filled, -2)
    top = API["expand_dims"](first, -2)
    return API["where"](API["equal"](i, 0), top, API["where"](API["equal"](i, j + 1), column, API["zeros_like"](top)))


@linalg()
def fiedler(a: Any) -> Tensor:
    """The matrix of |a[i] - a[j]|."""
    t = API["atleast_1d"](a)
    return API["abs"](API["expand_dims"](t, -1) - API["expand_dims"](t, -2))


@linalg()
def solve_circulant(c: Any, b: Any) -> Tensor:
    """The x of circulant(c) @ x = b, a vector or columns, by Fourier transforms. A singular matrix gives infinities."""
    line, right = same_dtype([API["atleast_1d"](c), API["atleast_1d"](b)], "solve_circulant")
    if line.ndim != 1 or right.ndim > 2:
        raise ShapeError("solve_circulant: a vector, and a vector or columns, are needed", values=rows([line, right]))
    over = fft(line) if right.ndim == 1 else API["expand_dims"](fft(line), 1)
    x = ifft(fft(right, axis=0) / over, axis=0)
    return x if "c" in (line.dtype.kind, right.dtype.kind) else API["real"](x)
