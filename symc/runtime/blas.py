"""BLAS by pointer: SciPy's `cython_blas` exports the addresses of its library's routines; nothing is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from symc.runtime.scipy_functions import address

INT_MAX = 2**31 - 1
#: The letter in the names of routines for a dtype.
LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}

@cache
def routine(name: str) -> int:
    """The address of a BLAS subroutine; all its arguments are pointers."""
    return address("scipy.linalg.cython_blas", name)


class _Integers:
    """Arguments that BLAS takes by address, kept alive together."""

    def __init__(self, *numbers: int):
        self.ints = np.array(numbers, np.int32)

    def __getitem__(self, k: int) -> int:
        return self.ints.ctypes.data + 4 * k


_letters = np.frombuffer(b"NTUL", np.uint8).copy()
_N, _T, _U, _L = (_letters.ctypes.data + k for k in range(4))


@dataclass(frozen=True, eq=False)
class Routine:
    """A call of a BLAS routine. ``arguments``: addresses, or a name for what is known later: "a", "b", "c" (operands
    and the result), "alpha" and "beta" (addresses of numbers)."""

    entry: int
    arguments: tuple[int | str, ...]
    kept: _Integers  # what the addresses point to


@lru_cache(maxsize=1024)
def product(dtype: np.dtype, m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> Routine | None:
    """C = alpha * op(A) @ op(B) + beta * C, row-major, none of the sizes 0; None for sizes beyond BLAS's integers.

    op(A) is m x k, stored k x m where ``trans_a``; op(B) likewise.
    """
    if max(m, n, k) > INT_MAX:
        return None
    if n == 1:
        return gemv(dtype, m, k, trans_a, "a", "b")
    if m == 1:
        return gemv(dtype, n, k, not trans_b, "b", "a")
    # row-major C is column-major C^T = op(B)^T op(A)^T: swap the operands, keep their flags
    i = _Integers(n, m, k, n if not trans_b else k, k if not trans_a else m)
    flags = (_T if trans_b else _N), (_T if trans_a else _N)
    arguments = (*flags, i[0], i[1], i[2], "alpha", "b", i[3], "a", i[4], "beta", "c", i[0])
    return Routine(routine(f"{LETTERS[dtype.char]}gemm"), arguments, i)


def gemv(dtype: np.dtype, m: int, k: int, trans: bool, matrix: str, vector: str, step: int = 1) -> Routine:
    """y = alpha * op(A) @ x + beta * y, op(A) is m x k, stored k x m where ``trans``; elements of x lie ``step`` apart.
    """
    rows, columns = (m, k) if trans else (k, m)  # of the column-major matrix in memory
    i = _Integers(rows, columns, step, 1)
    arguments = (_N if trans else _T, i[0], i[1], "alpha", matrix, i[0], vector, i[2], "beta", "c", i[3])
    return Routine(routine(f"{LETTERS[dtype.char]}gemv"), arguments, i)


@lru_cache(maxsize=1024)
def gram(dtype: np.dtype, n: int, k: int, trans: bool) -> Routine | None:
    """The part of C = alpha * op(A) @ op(A)^T on and below the diagonal; op(A) is n x k, stored k x n where ``trans``.
    """
    if max(n, k) > INT_MAX:
        return None
    i = _Integers(n, k, n if trans else k)
    arguments = (_U, _N if trans else _T, i[0], i[1], "alpha", "a", i[2], "beta", "c", i[0])
    return Routine(routine(f"{LETTERS[dtype.char]}syrk"), arguments, i)


@lru_cache(maxsize=1024)
def add(dtype: np.dtype, n: int, step: int = 1) -> Routine:
    """y = alpha * x + y of n elements; those of x lie ``step`` apart."""
    i = _Integers(n, step, 1)
    return Routine(routine(f"{LETTERS[dtype.char]}axpy"), (i[0], "alpha", "a", i[1], "c", i[2]), i)
