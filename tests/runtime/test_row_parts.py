"""Rows of every length: whole steps of several vectors, single vectors, and a last one that is not full."""

import numpy as np
import pytest

import symc as sc
from symc.runtime.compilers import llvm_function
from symc.runtime.compilers.llvm import lock, target_machine
from symc.runtime.compilers.llvm_compile import kernel_ir, optimized
from tests.runtime.test_llvm_kernels import F4, source

#: Around one vector, four, a chunk of a sum, and nothing.
LENGTHS = [*range(19), 23, 24, 31, 32, 33, 40, 47, 63, 64, 65, 95, 96, 127, 128, 129, 1023, 1024, 1025, 1061, 2049]


def softmax(xp, x):
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_every_length(dtype: str) -> None:
    """One function for all; also rows of a larger array, and of every other element."""
    x = sc.matrix("x", dtype=dtype)
    f = sc.compile(softmax(sc, x), [x])
    data = np.random.default_rng(0).normal(size=(5, 4200)).astype(dtype)
    for n in LENGTHS[1:]:
        for given in (data[:, :n].copy(), data[:, :n], data[:, : 2 * n : 2], data[::2, n : 2 * n]):
            np.testing.assert_allclose(f(given), softmax(np, given), rtol=1e-5 if dtype == "float32" else 1e-13)
    assert f(data[:0, :5].copy()).shape == (0, 5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_in_every_part(dtype: str) -> None:
    """A row's sum beside its elements: what is beyond the row is neither read into the sum nor written."""
    x = sc.matrix("x", dtype=dtype)
    e = sc.exp(x)
    f = sc.compile([e, sc.sum(e, axis=1), sc.max(x, axis=1, initial=-np.inf)], [x])
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 800.0, -800.0], dtype)
    for n in LENGTHS:
        for k in {0, n // 2, n - 1} - {-1}:
            for s in special if n else special[:1]:
                row = np.linspace(-1, 1, 2 * n, dtype=dtype).reshape(2, n)
                if n:
                    row[1, k] = s
                with np.errstate(over="ignore", invalid="ignore"):
                    want = np.exp(row)
                    total = want.sum(axis=1)
                got, summed, most = f(row)
                np.testing.assert_allclose(got, want, rtol=3e-7 if dtype == "float32" else 1e-15)
                np.testing.assert_allclose(summed, total, rtol=1e-5 if dtype == "float32" else 1e-13)
                np.testing.assert_array_equal(most, row.max(axis=1, initial=-np.inf))


def test_no_part_of_a_row_is_done_one_by_one() -> None:
    """LLVM sees that lengths are multiples, and writes no loop for a rest."""
    text = source("""
for i in range(n0):
    for c in range(0, n0, 1024):
        for j in range(c, min(c + 1024, n0)):
            o0[i * n0 + j] = exp(a0[i * n0 + j])
""", (F4,), (F4,))
    with lock:
        found = str(optimized(kernel_ir(text), target_machine()))
    assert "load <" in found and " = load float," not in found


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16", "uint16", "float16"])
def test_rows_of_short_elements(monkeypatch, dtype: str) -> None:
    """A last vector that is masked, where neighbours are read and rows are summed; nothing beyond the row counts."""
    monkeypatch.setattr(llvm_function, "masks_bytes", lambda: True)
    monkeypatch.setenv("SYMC_CACHE_DIR", "off")

    def formulas(xp, x):
        rise = x[:, 1:] > x[:, :-1]
        return rise, xp.where(rise, x[:, 1:], x[:, :-1]), xp.sum(rise, axis=1), xp.any(x, axis=1)

    x = sc.matrix("x", dtype=dtype)
    f = sc.compile(list(formulas(sc, x)), [x])
    data = np.random.default_rng(0).integers(0, 9, (3, 4200)).astype(dtype)
    for n in LENGTHS[1:]:
        for given in (data[:, :n].copy(), data[:, n : 2 * n]):
            for found, wanted in zip(f(given), formulas(np, given), strict=True):
                np.testing.assert_array_equal(found, wanted)
