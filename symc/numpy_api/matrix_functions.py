"""Functions of square matrices, and subspaces of matrices, under SciPy's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import ShapeError
from symc.ir.dim import known_equal
from symc.ir.op import lookup
from symc.numpy_api.decompositions import eig, expm, svd
from symc.numpy_api.equations import solve
from symc.numpy_api.fourier import fft, ifft
from symc.numpy_api.linear import conjugated
from symc.numpy_api.matrices import alike, eps, floats, leading, linalg, longest, matrix, square, with_leading
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


def _of(op: str, a: Any) -> Tensor:
    return Tensor(lookup(op)(square(a, op).value))


@linalg()
def sqrtm(A: Any) -> Tensor:
    """The principal root of a square matrix. A real one with eigenvalues below 0 has a complex root: cast it first."""
    return _of("sqrtm", A)


@linalg()
def logm(A: Any) -> Tensor:
    """The principal logarithm of a square matrix, whose ``expm`` it is. A real one with eigenvalues below 0: cast."""
    return _of("logm", A)


@linalg()
def fractional_matrix_power(A: Any, t: float) -> Tensor:
    """A square matrix to the power of any number: expm(t * logm(A)). Whole powers are products."""
    return (API["matrix_power"](floats(A, "fractional_matrix_power"), int(t)) if float(t).is_integer() and t >= 0
            else expm(t * logm(A)))


@linalg()
def funm(A: Any, func: Callable[[Any], Any]) -> Tensor:
    """A function of numbers, which takes and gives arrays, of a square matrix; always complex, other than SciPy's.

    By eigenvalues and eigenvectors: values and derivatives hold where eigenvalues differ.
    """
    w, v = eig(square(A, "funm"))
    return _mapped(v, as_tensor(func(w)))


def _mapped(v: Tensor, w: Tensor) -> Tensor:
    """``v @ diag(w) @ inv(v)``."""
    return solve(v.mT, (v * API["expand_dims"](w, -2)).mT).mT


@linalg()
def signm(A: Any) -> Tensor:
    """The sign of a square matrix: 1 and -1 for eigenvalues with a real part above and below 0."""
    t = square(A, "signm")
    w, v = eig(t)
    found = _mapped(v, API["astype"](API["sign"](API["real"](w)), v.dtype))
    return found if t.dtype.kind == "c" else API["real"](found)


@linalg()
def solve_sylvester(a: Any, b: Any, q: Any) -> Tensor:
    """The x of a @ x + x @ b = q. Leading axes broadcast."""
    x, y, z = alike([square(a, "solve_sylvester"), square(b, "solve_sylvester"), matrix(q, "solve_sylvester")],
                    "solve_sylvester")
    for k, s in ((-2, x), (-1, y)):
        if known_equal(z.value.shape[k], s.value.shape[-1]) is False:
            raise ShapeError("solve_sylvester: q needs the rows of a and the columns of b", values=rows([x, y, z]))
    lead, sizes = leading([x, y, z], [2, 2, 2], "solve_sylvester"), (x.value.shape[-1], y.value.shape[-1])
    right = lookup("ensure_shape")(z.value, shape=(*z.value.shape[:-2], *sizes))
    return Tensor(lookup("solve_sylvester")(*[with_leading(t, 2, lead) for t in (x, y, Tensor(right))]))


@linalg()
def solve_continuous_lyapunov(a: Any, q: Any) -> Tensor:
    """The x of a @ x + x @ a^H = q."""
    return solve_sylvester(a, conjugated(square(a, "solve_continuous_lyapunov")).mT, q)


@linalg()
def solve_discrete_lyapunov(a: Any, q: Any) -> Tensor:
    """The x of a @ x @ a^H - x + q = 0, by the equation that the bilinear map makes of it (Hitz and Anderson 1972)."""
    name = "solve_discrete_lyapunov"
    t, c = alike([square(a, name), square(q, name)], name)
    back, one = conjugated(t).mT, API["eye"](t.shape[-1], dtype=t.dtype)
    right = solve((back + one).mT, (API["matmul"](solve(t + one, c), one * 2)).mT).mT
    return solve_continuous_lyapunov(solve((back + one).mT, (back - one).mT).conj(), -right)


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
