"""Fourier transforms on a device: lengths of every kind, all axes, derivatives, and what has no points."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Iterator

import numpy as np
import pytest

import symc as sc
from symc.runtime.cuda.fourier import LARGEST, factors
from symc.testing import emulated_cuda
from tests.numpy_api.test_fft import assert_close, numbers

#: One, powers, products of small primes, a prime that is a pass, one that is not, a product with one, and their like.
LENGTHS = (1, 2, 3, 4, 8, 15, 64, 61, 67, 134)


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[None]:
    if os.environ.get("SYMC_DEVICE"):
        yield
        return
    if shutil.which("g++") is None:
        pytest.skip("the emulated device needs g++")
    with emulated_cuda(checked=False):
        yield


def test_factors() -> None:
    for n in range(1, 500):
        found = factors(n)
        assert math.prod(found) == n and all(r == 4 or all(r % k for k in range(2, r)) for r in found)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_every_length(dtype: str) -> None:
    assert {max(factors(n)) > LARGEST for n in LENGTHS} == {True, False}
    compare(dtype, 1, LENGTHS)


@pytest.mark.parametrize("axis", [0, 2])
def test_accesses_and_axes(axis: int) -> None:
    with emulated_cuda() if not os.environ.get("SYMC_DEVICE") else contextlib.nullcontext():
        compare("complex64", axis, (6, 67))


def compare(dtype: str, axis: int, lengths: tuple[int, ...]) -> None:
    x = sc.input("x", dtype, shape=("a", "b", "c"))
    n = x.shape[axis]
    calls = [lambda m, a, n: m.fft.fft(a, axis=axis), lambda m, a, n: m.fft.ifft(a, axis=axis),
             lambda m, a, n: m.fft.rfft(a.real, axis=axis), lambda m, a, n: m.fft.irfft(a, n, axis=axis),
             lambda m, a, n: m.fft.irfft(a, 2 * n - 1, axis=axis)]
    f = sc.compile([call(sc, x, n) for call in calls], [x], device="cuda")
    for size in lengths:
        a = numbers(tuple(size if k == axis else 2 for k in range(3)), dtype)
        for got, call in zip(f(a), calls, strict=True):
            assert_close(got.numpy() / 4, call(np, a, size) / 4, dtype, size)


def test_of_several_axes_with_derivatives() -> None:
    x = sc.matrix("x")
    loss = sc.sum(abs(sc.fft.rfft2(x, norm="ortho")) ** 3) + sc.sum(sc.fft.irfftn(sc.fft.fftn(x, (5, 4), (0, 1))) ** 2)
    here, there = (sc.compile(sc.grad(loss, x), [x], device=d) for d in ("cpu", "cuda"))
    for shape in ((3, 4), (6, 5)):
        a = numbers(shape, "float64")
        np.testing.assert_allclose(there(a).numpy(), here(a), rtol=1e-10)


def test_no_points_and_no_lines() -> None:
    z = sc.matrix("z", "complex64")
    f = sc.compile(sc.fft.fft(z), [z], device="cuda")
    assert f(np.ones((0, 3), "complex64")).shape == (0, 3)
    with pytest.raises(ValueError, match="at least one"):
        f(np.ones((3, 0), "complex64"))
