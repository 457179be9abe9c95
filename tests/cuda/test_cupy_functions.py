"""Whole functions on CuPy's device: all of it but CuPy, the driver and cuBLAS, for which fakes stand. NVRTC compiles
kernels, and the emulated device runs them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import symc as sc
from symc.runtime.cuda import cupy_device, cusolver
from symc.runtime.cuda.devices import context, devices_from
from tests.cuda.fake_driver import faked, reason


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    if reason():
        pytest.skip(reason())
    with faked(), devices_from(cupy_device.CupyDevice):
        yield


def test_a_function():
    x, y = sc.input("x", "float32", ("n", 33)), sc.input("y", "float32", (33, 8))
    f = sc.compile([sc.softmax(sc.tanh(x) @ y, axis=1), sc.sum(x, axis=0)], [x, y], device="cuda")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(50, 33)).astype("float32"), rng.normal(size=(33, 8)).astype("float32")
    got, sums = f(a, b)
    z = np.exp(np.tanh(a) @ b)
    np.testing.assert_allclose(got.numpy(), z / z.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(sums.numpy(), a.sum(0), rtol=1e-4, atol=1e-5)
    assert all(r is not None and r.registers for k in f.kernels for r in k.resources.values())
    raw = [k.raw(entry) for k in f.kernels for entry in k.resources]
    assert [type(r).__name__ for r in raw] == ["RawKernel"] * len(raw) and raw[0].name in f.source
    assert f.launches(n=50)[0].registers


def test_training_is_a_graph():
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


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_eigenvalues_and_singular_values_by_cusolver(dtype):
    rng = np.random.default_rng(0)
    a = (rng.normal(size=(2, 5, 5)) + (1j * rng.normal(size=(2, 5, 5)) if dtype[0] == "c" else 0)).astype(dtype)
    x = sc.input("x", dtype, (2, 5, 5))
    h = x + np.conj(x.swapaxes(1, 2))
    f = sc.compile([*np.linalg.eigh(h), *np.linalg.svd(x[:, :, :3]), *np.linalg.eig(x), np.linalg.eigvalsh(h)], [x],
                   device="cuda")
    w, v, u, s, vt, e, r, alone = (y.numpy() for y in f(a))
    eps = 200 * np.finfo(a.dtype).eps
    np.testing.assert_allclose(v * w[:, None] @ np.conj(v.swapaxes(1, 2)), a + np.conj(a.swapaxes(1, 2)), atol=eps)
    np.testing.assert_allclose(u[:, :, :3] * s[:, None] @ vt, a[:, :, :3], atol=eps)
    np.testing.assert_allclose(a @ r, r * e[:, None], atol=eps)
    np.testing.assert_allclose(alone, w, atol=eps)
    asked = cusolver.library(13).asked
    assert [asked.count(n) for n in ("XsyevBatched", "Xgesvd", "Xgeev")] == [1, 2, 2], "eigvalsh is part of eigh"


def test_indices_are_checked_and_arrays_shared():
    x, i = sc.input("x", "float64", (5, 3)), sc.input("i", "int64", ("k",))
    f = sc.compile(x[i] * 2, [x, i], device="cuda")
    data = np.arange(15.0).reshape(5, 3)
    np.testing.assert_array_equal(f(data, np.array([4, 0])).numpy(), 2 * data[[4, 0]])
    with pytest.raises(IndexError):
        f(data, np.array([7])).numpy()
    assert f(data, np.array([1])).__cuda_array_interface__["shape"] == (1, 3)
