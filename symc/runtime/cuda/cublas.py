"""Products of matrices by cuBLAS, called through ctypes: CuPy refuses to call it while work is captured.

A handle belongs to one stream and has memory of its own to work in: what cuBLAS would allocate meanwhile cannot be
captured, and products on two streams may run at the same time.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from symc.errors import InternalError
from symc.ir.dtypes import computed, is_narrow
from symc.runtime.cuda import libraries
from symc.runtime.cuda.device import Product

#: Bytes that a handle works in: what NVIDIA recommends for the newest GPUs.
WORKSPACE = 32 * 2**20

#: What cuBLAS calls things: enum values of cublas_api.h and library_types.h.
OPERATIONS = {(False, False): 0, (True, False): 1, (True, True): 2}  # CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C
#: CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F
DATA = {"e": 2, "E": 14, "f": 0, "d": 1, "F": 4, "D": 5}
COMPUTE_32F, COMPUTE_32F_FAST_16BF, COMPUTE_32F_FAST_TF32, COMPUTE_64F = 68, 75, 77, 70
#: CUBLAS_DEFAULT_MATH with CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: halves are added up as f32 throughout.
MATH_MODE = 16
DEFAULT_ALGORITHM = -1  # CUBLAS_GEMM_DEFAULT

#: The types of the parameters of cublasGemmStridedBatchedEx: sizes have the type ``None`` here.
_PARAMETERS: tuple[Any, ...] = (
    ctypes.c_void_p, ctypes.c_int, ctypes.c_int, None, None, None, ctypes.c_void_p,
    ctypes.c_void_p, ctypes.c_int, None, ctypes.c_longlong, ctypes.c_void_p, ctypes.c_int, None, ctypes.c_longlong,
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, None, ctypes.c_longlong, None, ctypes.c_int, ctypes.c_int,
)  # fmt: skip


#: Of a product: what comes up to alpha; alpha; dtype, leading dimension and stride of a and of b; beta; those of c;
#: batch, compute type and algorithm. Numbers are in memory of the host.
Ints = tuple[int, ...]
Call = tuple[Ints, np.ndarray, Ints, Ints, np.ndarray, Ints, Ints]


@functools.lru_cache(maxsize=4096)
def call_of(p: Product) -> Call:
    """The arguments of cublasGemmStridedBatchedEx for a product, but for the handle and the three addresses."""
    data, compute = DATA[p.dtype.char], compute_type(p.dtype, p.compute)
    # Scalars have the type that is computed in, complex where matrices are.
    scalar = computed(p.dtype)
    alpha, beta = (np.array([x if scalar.kind == "c" else x.real], scalar) for x in (p.alpha, p.beta))
    operations = OPERATIONS[p.trans_a, p.conj_a], OPERATIONS[p.trans_b, p.conj_b]
    return ((*operations, p.m, p.n, p.k), alpha, (data, p.lda, p.stride_a), (data, p.ldb, p.stride_b), beta,
            (data, p.ldc, p.stride_c), (p.batch, compute, DEFAULT_ALGORITHM))


def compute_type(dtype: np.dtype, compute: str) -> int:
    """Type in which numbers are multiplied and added. Only products of singles can be made faster and less exact."""
    if dtype.char in "dD":
        return COMPUTE_64F
    if is_narrow(dtype):
        return COMPUTE_32F
    return {"highest": COMPUTE_32F, "tf32": COMPUTE_32F_FAST_TF32, "bf16": COMPUTE_32F_FAST_16BF}[compute]


@functools.cache
def library(major: int | None = None) -> Any:
    """cuBLAS, of a certain major version of CUDA or of the newest there is. Raises InputError where it is missing."""
    functions, _ = libraries.load(libraries.CUBLAS, major, ["libcublasLt.so.*"])
    functions.cublasGetStatusString.restype = ctypes.c_char_p
    for name in ("cublasSetStream_v2", "cublasDestroy_v2", "cublasSetMathMode", "cublasSetWorkspace_v2"):
        getattr(functions, name).argtypes = _HANDLE[name]
    for name, size in (("cublasGemmStridedBatchedEx", ctypes.c_int), ("cublasGemmStridedBatchedEx_64", ctypes.c_int64)):
        getattr(functions, name).argtypes = [size if p is None else p for p in _PARAMETERS]
    return functions


_HANDLE = {
    "cublasSetStream_v2": [ctypes.c_void_p, ctypes.c_void_p],
    "cublasDestroy_v2": [ctypes.c_void_p],
    "cublasSetMathMode": [ctypes.c_void_p, ctypes.c_int],
    "cublasSetWorkspace_v2": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t],
}


class Handle:
    """cuBLAS on one stream. ``workspace``: the address of ``WORKSPACE`` bytes, which belong to it alone, and which
    ``owner`` keeps."""

    handle = 0

    def __init__(self, functions: Any, stream: int, workspace: int, owner: object = None):
        self.functions, self.owner = functions, owner
        found = ctypes.c_void_p()
        self._check("cublasCreate_v2", functions.cublasCreate_v2(ctypes.byref(found)))
        self.handle = found.value or 0
        self._call("cublasSetStream_v2", stream)
        self._call("cublasSetWorkspace_v2", workspace, WORKSPACE)  # after the stream, which takes it away
        self._call("cublasSetMathMode", MATH_MODE)

    def product(self, p: Product, a: int, b: int, c: int) -> None:
        """Give the stream a product of the matrices at these addresses."""
        before, alpha, of_a, of_b, beta, of_c, after = call_of(p)
        self._check("cublasGemmStridedBatchedEx", self.functions.cublasGemmStridedBatchedEx_64(
            self.handle, *before, alpha.ctypes.data, a, *of_a, b, *of_b, beta.ctypes.data, c, *of_c, *after))

    def __del__(self) -> None:
        if self.handle:
            self.functions.cublasDestroy_v2(self.handle)

    def _call(self, name: str, *arguments: Any) -> None:
        self._check(name, getattr(self.functions, name)(self.handle, *arguments))

    def _check(self, name: str, status: int) -> None:
        if status:
            raise InternalError(f"{name}: {self.functions.cublasGetStatusString(status).decode()}")
