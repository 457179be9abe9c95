"""BLAS by pointer: SciPy's `cython_blas` exports the addresses of its library's routines; nothing is compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

INT_MAX = 2**31 - 1
_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]


@cache
def routine(name: str, arity: int) -> Callable[..., None]:
    """A BLAS subroutine taking ``arity`` pointers."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__[name]
    address = _capsule_pointer(capsule, _capsule_name(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arity)(address)


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


def gemm(
    dtype: np.dtype, batch: int, m: int, n: int, k: int, trans_a: bool, trans_b: bool
) -> Callable[[int, int, int], None] | None:
    """``run(a, b, c)`` on addresses, C = op(A) @ op(B) row-major; None for sizes beyond BLAS's integers."""
    if max(m, n, k) > INT_MAX:
        return None
    if batch * m * n == 0:
        return lambda a, b, c: None
    one = _gemv(dtype, m, k, trans_a) if n == 1 else _gemv(dtype, n, k, not trans_b) if m == 1 else None
    if one is not None:
        single = one if n == 1 else (lambda a, b, c: one(b, a, c))
    else:
        single = _gemm(dtype, m, n, k, trans_a, trans_b)
    if batch == 1:
        return single
    size = dtype.itemsize
    steps = [(i * m * k * size, i * k * n * size, i * m * n * size) for i in range(batch)]

    def run(a: int, b: int, c: int) -> None:
        for da, db, dc in steps:
            single(a + da, b + db, c + dc)

    return run


def _gemm(dtype: np.dtype, m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> Callable[[int, int, int], None]:
    # row-major C is column-major C^T = op(B)^T op(A)^T: swap the operands, keep their flags
    call = routine(f"{_PREFIX[dtype.char]}gemm", 13)
    lda, ldb = (m if trans_a else k), (k if trans_b else n)
    c_ = _Constants(dtype, n, m, k, max(ldb, 1), max(lda, 1), n)
    ta, tb = (_T if trans_a else _N), (_T if trans_b else _N)
    n_, m_, k_, ldb_, lda_, ldc_ = (c_.int(i) for i in range(6))
    one, zero = c_.one, c_.zero

    def run(a: int, b: int, c: int, keep: _Constants = c_) -> None:
        call(tb, ta, n_, m_, k_, one, b, ldb_, a, lda_, zero, c, ldc_)

    return run


def _gemv(dtype: np.dtype, m: int, k: int, trans: bool) -> Callable[[int, int, int], None]:
    """``run(a, x, y)``: y = op(A) @ x, op(A) is m x k; A is stored k x m where ``trans``."""
    call = routine(f"{_PREFIX[dtype.char]}gemv", 11)
    rows, columns = (m, k) if trans else (k, m)  # of the column-major matrix in memory
    c_ = _Constants(dtype, rows, columns, max(rows, 1), 1)
    flag = _N if trans else _T
    rows_, columns_, lda_, inc = (c_.int(i) for i in range(4))
    one, zero = c_.one, c_.zero
    if k == 0:
        nbytes = m * dtype.itemsize

        def clear(a: int, x: int, y: int) -> None:
            ctypes.memset(y, 0, nbytes)  # gemv leaves y alone when there is nothing to add

        return clear

    def run(a: int, x: int, y: int, keep: _Constants = c_) -> None:
        call(flag, rows_, columns_, one, a, lda_, x, inc, zero, y, inc)

    return run
