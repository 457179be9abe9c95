"""What stands for CuPy, the driver and cuBLAS while ``CupyDevice`` is tested: ``fake_cupy``, whose kernels an emulated
device runs, compiled by NVRTC as well, and products by the same device."""

from __future__ import annotations

import ctypes
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from symc.errors import InputError
from symc.runtime.cuda import cublas, nvrtc
from symc.runtime.cuda.device import Product
from symc.runtime.emulator import EmulatedDevice
from tests.cuda import fake_cupy

COMPUTE = {cublas.COMPUTE_32F: "highest", cublas.COMPUTE_64F: "highest", cublas.COMPUTE_32F_FAST_TF32: "tf32",
           cublas.COMPUTE_32F_FAST_16BF: "bf16"}
DTYPES = {number: np.dtype(char) for char, number in cublas.DATA.items()}
OPERATIONS = {number: flags for flags, number in cublas.OPERATIONS.items()}


class FakeCublas:
    """Products by the emulated device, of the arguments that cuBLAS gets."""

    def cublasCreate_v2(self, handle):
        handle._obj.value = 77
        return 0

    def cublasSetStream_v2(self, handle, stream):
        return 0

    def cublasSetWorkspace_v2(self, handle, address, nbytes):
        assert address % 256 == 0 and nbytes == cublas.WORKSPACE
        return 0

    def cublasSetMathMode(self, handle, mode):
        return 0

    def cublasDestroy_v2(self, handle):
        return 0

    def cublasGemmStridedBatchedEx_64(
        self, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b, ldb, stride_b,
        beta, c, type_c, ldc, stride_c, batch, compute, algorithm,
    ):  # fmt: skip
        dtype = DTYPES[type_c]
        scalar = np.dtype(np.float32) if dtype.char == "e" else dtype
        factor, added = (np.frombuffer((ctypes.c_ubyte * scalar.itemsize).from_address(x), scalar)[0]
                         for x in (alpha, beta))
        (trans_a, conj_a), (trans_b, conj_b) = OPERATIONS[op_a], OPERATIONS[op_b]
        p = Product(trans_a, trans_b, m, n, k, factor, added, lda, ldb, ldc, stride_a, stride_b, stride_c, batch, dtype,
                    COMPUTE[compute], conj_a, conj_b)

        def run():
            emulated = fake_cupy.state.emulated
            stream = emulated.stream()
            emulated.product(p, a, b, c, stream)
            emulated.synchronize(stream)

        fake_cupy.do(run)
        return 0


def reason() -> str:
    """Why this cannot be, "" if it can."""
    if shutil.which("g++") is None:
        return "the emulated device needs g++"
    try:
        nvrtc.library(13)
    except InputError as e:
        return str(e)
    return ""


@contextmanager
def faked() -> Iterator[None]:
    """Let CuPy be the fake one, with a device that emulates."""
    state, library, compile_cubin = fake_cupy.State(), FakeCublas(), nvrtc.compile_cubin
    state.emulated = EmulatedDevice(0, False)

    def compiled(text, arch, major):
        found = compile_cubin(text, arch, major)
        state.texts[found.data] = text, found
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake_cupy, "state", state)
        patch.setitem(sys.modules, "cupy", fake_cupy)
        patch.setattr(cublas, "library", lambda major: library)
        patch.setattr(nvrtc, "compile_cubin", compiled)
        yield
