"""Factorizations and spectra of matrices, as in ``numpy.linalg`` and ``scipy.linalg``.

A factorization that is asked for twice is computed once. Which derivatives there are: docs/derivatives.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symc.errors import InputError, ShapeError
from symc.ir.op import lookup
from symc.ir.ops.matrix import adjoint, part
from symc.numpy_api.linear import conjugated
from symc.numpy_api.matrices import linalg, matrix, square
from symc.numpy_api.promotion import rows
from symc.tensors.convert import as_tensor, convert
from symc.tensors.public import API
from symc.tensors.tensor import Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


# --- triangles --------------------------------------------------------------------------------------------------------


@linalg(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Tensor:
    """The triangular factor L with a = L @ L^H; with ``upper`` U with a = U^H @ U. Only that triangle of a is read."""
    v = square(a, "cholesky").value
    return Tensor(adjoint(lookup("cholesky")(adjoint(v))) if upper else lookup("cholesky")(v))


@linalg()
def cho_factor(a: Any, lower: bool = False) -> tuple[Tensor, bool]:
    """The Cholesky factor and whether it is the lower one, for ``cho_solve``. The other triangle is zeros."""
    return cholesky(a, upper=not lower), bool(lower)


@linalg()
def lu_factor(a: Any) -> tuple[Tensor, Tensor]:
    """(lu, perm) for ``lu_solve``: a[perm] = L @ U, both in one matrix; the ones on the diagonal of L are left out.

    ``perm`` holds the rows in their new order, where SciPy has the exchanges that lead to it.
    """
    f = lookup("lu_factor")(square(a, "lu_factor").value)
    return Tensor(f[0]), Tensor(f[1])


@linalg()
def lu(a: Any, permute_l: bool = False, *, p_indices: bool = False) -> tuple[Tensor, ...]:
    """(P, L, U) with a = P @ L @ U of a square matrix; with ``permute_l`` (P @ L, U); with ``p_indices`` rows for P."""
    f = lookup("lu_factor")(square(a, "lu").value)
    packed, back = f[0], Tensor(lookup("argsort")(f[1], axis=f[1].ndim - 1))
    low = Tensor(part(packed, "strictly lower")) + API["eye"](back.shape[-1], dtype=packed.dtype)
    upper = Tensor(part(packed, "upper"))
    if permute_l:
        return API["take_along_axis"](low, API["expand_dims"](back, -1), -2), upper
    if p_indices:
        return back, low, upper
    columns = API["arange"](back.shape[-1])
    hit = API["equal"](API["expand_dims"](back, -1), columns)
    return API["astype"](hit, packed.dtype), low, upper


@linalg(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """(Q, R) with a = Q @ R. Modes: "reduced" (Q has min(m, n) columns), "complete" (Q is square), "r" (R alone)."""
    if mode not in ("reduced", "complete", "r"):
        raise InputError(f"qr: mode {mode!r} is not available", help="modes: 'reduced', 'complete', 'r'")
    f = lookup("qr")(matrix(a, "qr").value, mode="complete" if mode == "complete" else "reduced")
    return Tensor(f[1]) if mode == "r" else QRResult(Tensor(f[0]), Tensor(f[1]))


# --- eigenvalues ------------------------------------------------------------------------------------------------------


def _lower(UPLO: Any, name: str) -> bool:
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise InputError(f"{name}: UPLO is 'L' or 'U', not {UPLO!r}")
    return UPLO.upper() == "L"


@linalg(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Ascending eigenvalues and eigenvectors (columns) of a hermitian matrix, of which one triangle is read."""
    f = lookup("eigh")(square(a, "eigh").value, lower=_lower(UPLO, "eigh"))
    return EighResult(Tensor(f[0]), Tensor(f[1]))


@linalg(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """Ascending eigenvalues of a hermitian matrix, of which one triangle is read."""
    return Tensor(lookup("eigvalsh")(square(a, "eigvalsh").value, lower=_lower(UPLO, "eigvalsh")))


@linalg(np.linalg.eig)
def eig(a: Any) -> EigResult:
    """Eigenvalues and eigenvectors (columns of length 1) of a square matrix; always complex, other than NumPy's."""
    f = lookup("eig")(square(a, "eig").value)
    return EigResult(Tensor(f[0]), Tensor(f[1]))


@linalg(np.linalg.eigvals)
def eigvals(a: Any) -> Tensor:
    """Eigenvalues of a square matrix; always complex, other than NumPy's."""
    return Tensor(lookup("eigvals")(square(a, "eigvals").value))


# --- singular values --------------------------------------------------------------------------------------------------


@linalg(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """(U, S, Vh) with a = U @ diag(S) @ Vh and S descending; S alone without ``compute_uv``.

    Vectors of ``full_matrices`` that belong to no singular value have no derivative (S has one always).
    ``hermitian``: by ``eigh``.
    """
    if hermitian:
        return _by_eigh(a, compute_uv)
    if not compute_uv:
        return svdvals(a)
    f = lookup("svd")(matrix(a, "svd").value, full=bool(full_matrices))
    return SVDResult(Tensor(f[0]), svdvals(a) if full_matrices else Tensor(f[1]), Tensor(f[2]))


def _by_eigh(a: Any, compute_uv: bool) -> Any:
    if not compute_uv:
        return API["flip"](API["sort"](API["abs"](eigvalsh(a))), -1)
    w, u = eigh(a)
    size = API["abs"](w)
    order = API["flip"](API["argsort"](size), -1)
    size, w = (API["take_along_axis"](x, order, -1) for x in (size, w))
    u = API["take_along_axis"](u, API["expand_dims"](order, -2), -1)
    sign = API["astype"](API["copysign"](API["ones_like"](w), w), u.dtype)
    return SVDResult(u, size, API["conjugate"](API["multiply"](u, API["expand_dims"](sign, -2)).mT))


@linalg(np.linalg.svdvals)
def svdvals(x: Any, /) -> Tensor:
    """The singular values, descending."""
    return Tensor(lookup("svdvals")(matrix(x, "svdvals").value))


# --- block forms ------------------------------------------------------------------------------------------------------


@linalg()
def schur(a: Any, output: str = "real") -> tuple[Tensor, Tensor]:
    """(T, Z) with a = Z @ T @ Z^H, T upper triangular and Z unitary, both complex with ``output="complex"``.

    Of a real matrix T is real by default, with blocks of two rows for pairs of eigenvalues; this form has no
    derivative.
    """
    if output not in ("real", "complex"):
        raise InputError(f"schur: output is 'real' or 'complex', not {output!r}")
    t = square(a, "schur")
    f = lookup("schur")(t.value, real=output == "real" and t.dtype.kind != "c")
    return Tensor(f[0]), Tensor(f[1])


@linalg()
def ldl(A: Any, lower: bool = True, hermitian: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """(lu, d, perm) with A = lu @ d @ lu^H; d has blocks of one or two rows, lu[perm] is triangular.

    A is hermitian, of which one triangle is read.
    """
    t = square(A, "ldl")
    if not hermitian and t.dtype.kind == "c":
        raise InputError("ldl: complex matrices are hermitian here", values=rows([t]))
    f = lookup("ldl")(t.value, lower=bool(lower))
    return Tensor(f[0]), Tensor(f[1]), Tensor(f[2])


# --- functions --------------------------------------------------------------------------------------------------------


@linalg()
def expm(a: Any) -> Tensor:
    """The exponential of a square matrix: the sum of a^k / k!."""
    return Tensor(lookup("expm")(square(a, "expm").value))


# --- diagonals --------------------------------------------------------------------------------------------------------


@linalg(np.linalg.diagonal, memory="always")
def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The elements on a diagonal of the last two axes."""
    return API["diagonal"](x, offset, -2, -1)


@linalg(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of the last two axes."""
    return API["trace"](x, offset, -2, -1, dtype)


@linalg()
def block_diag(*arrays: Any) -> Tensor:
    """Matrices along the diagonal of a matrix of zeros. A vector is one row; leading axes broadcast."""
    parts = [API["atleast_2d"](as_tensor(x)) for x in (arrays or [np.ones((1, 0))])]
    dtype = np.result_type(*[t.dtype for t in parts])
    width: Any = sum(t.shape[-1] for t in parts)
    out, left = [], 0
    lead = API["broadcast_arrays"](*[API["zeros"](t.shape[:-2]) for t in parts])[0].shape
    for t in parts:
        t = API["broadcast_to"](Tensor(convert(t.value, dtype)), (*lead, *t.shape[-2:]))
        around = ((0, 0),) * (t.ndim - 1) + ((left, width - left - t.shape[-1]),)
        out.append(API["pad"](t, around))
        left = left + t.shape[-1]
    return API["concatenate"](out, -2)


@linalg()
def toeplitz(c: Any, r: Any = None) -> Tensor:
    """The matrix whose elements depend on column minus row: first column c, first row r (the conjugate of c)."""
    down = API["ravel"](c)
    right = conjugated(down) if r is None else API["ravel"](r)
    line = API["concatenate"]([API["flip"](down), API["getitem"](right, slice(1, None))])
    i, j = API["arange"](down.shape[0]), API["arange"](right.shape[0])
    return API["getitem"](line, API["expand_dims"](down.shape[0] - 1 - i, 1) + j)


@linalg()
def khatri_rao(a: Any, b: Any) -> Tensor:
    """The Kronecker products of columns with columns."""
    x, y = as_tensor(a), as_tensor(b)
    if x.ndim != 2 or y.ndim != 2:
        raise ShapeError("khatri_rao: two matrices are needed", values=rows([x, y]))
    out = API["multiply"](API["expand_dims"](x, 1), API["expand_dims"](y, 0))
    return API["reshape"](out, (x.shape[0] * y.shape[0], out.shape[-1]))


