"""BLAS by pointer: SciPy's `cython_blas` exports the addresses of its library's routines; nothing is compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

INT_MAX = 2**31 - 1
_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]


@cache
def routine(name: str) -> int:
    """The address of a BLAS subroutine; all its arguments are pointers."""
    from scipy.linalg import cython_blas

    return address_in(cython_blas.__pyx_capi__, name)


def address_in(exported: Mapping[str, object], name: str) -> int:
    """The address of a function that a Cython module exports."""
    capsule = exported[name]
    return _capsule_pointer(capsule, _capsule_name(capsule))


class _Constants:
    """Arguments that BLAS takes by address, kept alive together."""

    def __init__(self, dtype: np.dtype, *numbers: int):
        self.ints = np.array(numbers, np.int32)
        self.scalars = np.array([1, 0], dtype)
        self.one, self.zero = (self.scalars.ctypes.data + k * dtype.itemsize for k in (0, 1))

    def int(self, k: int) -> int:
        return self.ints.ctypes.data + 4 * k


_letters = np.frombuffer(b"NT", np.uint8).copy()
_N, _T = _letters.ctypes.data, _letters.ctypes.data + 1


@dataclass(frozen=True, eq=False)
class Product:
    """A call of a BLAS routine. ``arguments``: addresses, or "a", "b", "c" for an operand or the result."""

    entry: int
    arguments: tuple[int | str, ...]
    constants: _Constants  # what the addresses point to


@lru_cache(maxsize=1024)
def product(dtype: np.dtype, m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> Product | None:
    """C = op(A) @ op(B), row-major, none of the sizes 0; None for sizes beyond BLAS's integers.

    op(A) is m x k, stored k x m where ``trans_a``; op(B) likewise.
    """
    if max(m, n, k) > INT_MAX:
        return None
    if n == 1:
        return _gemv(dtype, m, k, trans_a, "a", "b")
    if m == 1:
        return _gemv(dtype, n, k, not trans_b, "b", "a")
    return _gemm(dtype, m, n, k, trans_a, trans_b)


def _gemm(dtype: np.dtype, m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> Product:
    # row-major C is column-major C^T = op(B)^T op(A)^T: swap the operands, keep their flags
    lda, ldb = (m if trans_a else k), (k if trans_b else n)
    c = _Constants(dtype, n, m, k, ldb, lda, n)
    n_, m_, k_, ldb_, lda_, ldc_ = (c.int(i) for i in range(6))
    flags = (_T if trans_b else _N), (_T if trans_a else _N)
    arguments = (*flags, n_, m_, k_, c.one, "b", ldb_, "a", lda_, c.zero, "c", ldc_)
    return Product(routine(f"{_PREFIX[dtype.char]}gemm"), arguments, c)


def _gemv(dtype: np.dtype, m: int, k: int, trans: bool, matrix: str, vector: str) -> Product:
    """y = op(A) @ x, op(A) is m x k; A is stored k x m where ``trans``."""
    rows, columns = (m, k) if trans else (k, m)  # of the column-major matrix in memory
    c = _Constants(dtype, rows, columns, rows, 1)
    rows_, columns_, lda_, inc = (c.int(i) for i in range(4))
    arguments = (_N if trans else _T, rows_, columns_, c.one, matrix, lda_, vector, inc, c.zero, "c", inc)
    return Product(routine(f"{_PREFIX[dtype.char]}gemv"), arguments, c)
