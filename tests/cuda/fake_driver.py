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
from symc.ir.dtypes import RECORDS, computed
from symc.runtime.cuda import cublas, cusolver, nvrtc
from symc.runtime.cuda.device import Factorization, Product
from symc.runtime.emulator import EmulatedDevice
from tests.cuda import fake_cupy

COMPUTE = {cublas.COMPUTE_32F: "highest", cublas.COMPUTE_64F: "highest", cublas.COMPUTE_32F_FAST_TF32: "tf32",
           cublas.COMPUTE_32F_FAST_16BF: "bf16"}
DTYPES = {cublas.DATA[d.char]: d for d in RECORDS if d.char in cublas.DATA}
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
        scalar = computed(dtype)
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


class FakeCusolver:
    """Factorizations by the emulated device, of the arguments that cuSOLVER gets."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments: self.call(name.removeprefix("cusolverDn"), arguments)

    def call(self, name, given):
        self.asked.append(name)
        if name in ("Create", "CreateParams"):
            given[0]._obj.value = 77
        if not name.startswith("X"):
            return 0
        (handle, params), given = given[:2], [getattr(a, "value", a) for a in given[2:]]
        assert handle.value == params.value == 77
        if name.endswith("_bufferSize"):
            for size in given[-2 - ("Batched" in name) :][:2]:
                size._obj.value = 400
            return 0
        f, places, info = {"Xsyevd": self.eigh, "XsyevBatched": self.eigh, "Xgesvd": self.svd, "Xgeev": self.eig}[name](
            *given)
        assert given[-5 - ("Batched" in name) :][1] == 400
        emulated = fake_cupy.state.emulated
        stream = emulated.stream()
        emulated.factorize(f, (*places, info), stream)
        emulated.synchronize(stream)
        return 0

    def eigh(self, job, uplo, n, kind, a, lda, real, w, compute, *rest):
        *_, info, batch = rest if len(rest) == 6 else (*rest, 1)
        assert n == lda and compute == kind and DTYPES[real].char == DTYPES[kind].char.lower()
        return Factorization("eigh", n, n, batch, DTYPES[kind], bool(job), uplo == cusolver.LOWER), (a, w), info

    def svd(self, job, job_v, m, n, kind, a, lda, real, s, kind_u, u, ldu, kind_v, vt, ldvt, compute, *rest):
        assert job == job_v and (lda, ldu, ldvt) == (m, m, n) and compute == kind == kind_u == kind_v
        vectors = chr(job) != "N"
        f = Factorization("svd", m, n, 1, DTYPES[kind], vectors, full=chr(job) == "A")
        return f, (a, s, *[u, vt] * vectors), rest[-1]

    def eig(self, left, right, n, kind, a, lda, kind_w, w, kind_l, vl, ldl, kind_r, vr, ldr, compute, *rest):
        assert (left, vl) == (0, None) and n == lda == ldl == ldr and kind == kind_w == kind_l == kind_r == compute
        return Factorization("eig", n, n, 1, DTYPES[kind], bool(right)), (a, w, *[vr] * right), rest[-1]


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
    solver = FakeCusolver()
    state.emulated = EmulatedDevice(0, False)

    def compiled(text, arch, major):
        found = compile_cubin(text, arch, major)
        state.texts[found.data] = text, found
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake_cupy, "state", state)
        patch.setitem(sys.modules, "cupy", fake_cupy)
        patch.setattr(cublas, "library", lambda major: library)
        patch.setattr(cusolver, "library", lambda major: solver)
        patch.setattr(nvrtc, "compile_cubin", compiled)
        yield
