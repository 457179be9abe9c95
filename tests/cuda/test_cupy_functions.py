"""Whole functions on CuPy's device: all of it but CuPy, the driver and cuBLAS, for which fakes stand. NVRTC compiles
kernels, and the emulated device runs them."""

from __future__ import annotations

import ctypes
import shutil
import sys

import numpy as np
import pytest

import symc as sc
from symc.errors import InputError
from symc.runtime.cuda import cublas, cupy_device, nvrtc
from symc.runtime.cuda.device import Product
from symc.runtime.cuda.devices import context, devices_from
from symc.runtime.emulator import EmulatedDevice

COMPUTE = {cublas.COMPUTE_32F: "highest", cublas.COMPUTE_64F: "highest", cublas.COMPUTE_32F_FAST_TF32: "tf32"}
DTYPES = {number: np.dtype(char) for char, number in cublas.DATA.items()}
OPERATIONS = {number: flags for flags, number in cublas.OPERATIONS.items()}


class FakeCublas:
    """Products by the emulated device, of the arguments that cuBLAS gets."""

    def __init__(self, fake):
        self.fake, self.streams = fake, []

    def cublasCreate_v2(self, handle):
        handle._obj.value = 77
        return 0

    def cublasSetStream_v2(self, handle, stream):
        self.streams.append(stream)
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
        factor = np.frombuffer((ctypes.c_ubyte * dtype.itemsize).from_address(alpha), dtype)[0]
        added = np.frombuffer((ctypes.c_ubyte * dtype.itemsize).from_address(beta), dtype)[0]
        (trans_a, conj_a), (trans_b, conj_b) = OPERATIONS[op_a], OPERATIONS[op_b]
        p = Product(trans_a, trans_b, m, n, k, factor, added, lda, ldb, ldc, stride_a, stride_b, stride_c, batch, dtype,
                    COMPUTE[compute], conj_a, conj_b)

        def run():
            emulated = self.fake.state.emulated
            stream = emulated.stream()
            emulated.product(p, a, b, c, stream)
            emulated.synchronize(stream)

        self.fake.do(run)
        return 0


@pytest.fixture
def fake(monkeypatch):
    from tests.cuda import fake_cupy

    if shutil.which("g++") is None:
        pytest.skip("the emulated device needs g++")
    try:
        nvrtc.library(13)
    except InputError as e:
        pytest.skip(str(e))
    state = fake_cupy.State()
    state.emulated = EmulatedDevice(0, False)
    monkeypatch.setattr(fake_cupy, "state", state)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    library = FakeCublas(fake_cupy)
    monkeypatch.setattr(cublas, "library", lambda major: library)
    compile_cubin = nvrtc.compile_cubin

    def compiled(text, arch, major):
        found = compile_cubin(text, arch, major)
        state.texts[found.data] = text, found
        return found

    monkeypatch.setattr(nvrtc, "compile_cubin", compiled)
    with devices_from(cupy_device.CupyDevice):
        yield fake_cupy


def test_a_function(fake):
    x, y = sc.input("x", "float32", ("n", 33)), sc.input("y", "float32", (33, 8))
    f = sc.compile([sc.softmax(sc.tanh(x) @ y, axis=1), sc.sum(x, axis=0)], [x, y], device="cuda")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(50, 33)).astype("float32"), rng.normal(size=(33, 8)).astype("float32")
    got, sums = f(a, b)
    z = np.exp(np.tanh(a) @ b)
    np.testing.assert_allclose(got.numpy(), z / z.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(sums.numpy(), a.sum(0), rtol=1e-4, atol=1e-5)
    assert all(r is not None and r.registers for k in f.kernels for r in k.resources.values())


def test_training_is_a_graph(fake):
    x, w = sc.input("x", "float32", (20, 10)), sc.shared(np.full((10, 5), 0.1, "float32"), "w")
    b = sc.shared(np.zeros(5, "float32"), "b")
    loss = sc.mean((sc.tanh(x @ w + b) - 0.5) ** 2)
    updates = {p: p - 0.5 * g for p, g in zip((w, b), sc.grad(loss, [w, b]), strict=True)}
    step = sc.compile(loss, [x], updates=updates, device="cuda", precision="tf32")
    data = np.random.default_rng(1).normal(size=(20, 10)).astype("float32")
    batch = sc.device_array(data)
    losses = [float(step(batch)) for _ in range(20)]
    assert losses[-1] < 0.9 * losses[0] and sorted(losses, reverse=True) == losses
    counters = context("cuda").device.counters
    assert counters.graph_launches >= 10 and counters.launches > counters.graph_launches
    assert abs(losses[0] - np.mean((np.tanh(data @ np.full((10, 5), 0.1)) - 0.5) ** 2)) < 1e-3


def test_indices_are_checked_and_arrays_shared(fake):
    x, i = sc.input("x", "float64", (5, 3)), sc.input("i", "int64", ("k",))
    f = sc.compile(x[i] * 2, [x, i], device="cuda")
    data = np.arange(15.0).reshape(5, 3)
    np.testing.assert_array_equal(f(data, np.array([4, 0])).numpy(), 2 * data[[4, 0]])
    with pytest.raises(IndexError):
        f(data, np.array([7])).numpy()
    assert f(data, np.array([1])).__cuda_array_interface__["shape"] == (1, 3)
