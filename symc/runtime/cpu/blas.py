"""Products as calls of BLAS: which routine, and with which arguments."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from symc.ir.dtypes import RECORDS
from symc.ir.record import dataclass


@dataclass(frozen=True, eq=False)
class Routine:
    """A call of a BLAS routine. ``arguments``: integers, letters (in capitals), and names for what is known later: "a",
    "b", "c" (operands and the result), "alpha" and "beta"."""

    name: str
    arguments: tuple[int | str, ...]


@lru_cache(maxsize=1024)
def product(dtype: np.dtype, m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> Routine:
    """C = alpha * op(A) @ op(B) + beta * C, row-major, none of the sizes 0.

    op(A) is m x k, stored k x m where ``trans_a``; op(B) likewise.
    """
    if n == 1:
        return gemv(dtype, m, k, trans_a, "a", "b")
    if m == 1:
        return gemv(dtype, n, k, not trans_b, "b", "a")
    # row-major C is column-major C^T = op(B)^T op(A)^T: swap the operands, keep their flags
    of_b, of_a = (k if trans_b else n), (m if trans_a else k)
    flags = ("T" if trans_b else "N"), ("T" if trans_a else "N")
    arguments = (*flags, n, m, k, "alpha", "b", of_b, "a", of_a, "beta", "c", n)
    return Routine(f"{RECORDS[dtype].blas}gemm", arguments)


def gemv(dtype: np.dtype, m: int, k: int, trans: bool, matrix: str, vector: str, step: int = 1) -> Routine:
    """y = alpha * op(A) @ x + beta * y, op(A) is m x k, stored k x m where ``trans``; elements of x lie ``step`` apart.
    """
    rows, columns = (m, k) if trans else (k, m)  # of the column-major matrix in memory
    arguments = ("N" if trans else "T", rows, columns, "alpha", matrix, rows, vector, step, "beta", "c", 1)
    return Routine(f"{RECORDS[dtype].blas}gemv", arguments)


@lru_cache(maxsize=1024)
def gram(dtype: np.dtype, n: int, k: int, trans: bool) -> Routine:
    """The part of C = alpha * op(A) @ op(A)^T on and below the diagonal; op(A) is n x k, stored k x n where ``trans``.
    """
    arguments = ("U", "N" if trans else "T", n, k, "alpha", "a", n if trans else k, "beta", "c", n)
    return Routine(f"{RECORDS[dtype].blas}syrk", arguments)


@lru_cache(maxsize=1024)
def add(dtype: np.dtype, n: int, step: int = 1) -> Routine:
    """y = alpha * x + y of n elements; those of x lie ``step`` apart."""
    return Routine(f"{RECORDS[dtype].blas}axpy", (n, "alpha", "a", step, "c", 1))
