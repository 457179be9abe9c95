"""The binding of cuBLAS, against a library with the same functions, written in C and compiled here: what arrives there
is what was meant, by type, order and width."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from symc.errors import InputError, InternalError
from symc.runtime.cuda import cublas, libraries
from symc.runtime.cuda.device import Product

STAND_IN = r"""
#include <complex>
#include <cstdint>
#include <cstdlib>
typedef std::complex<double> number;
struct Handle { void *stream; void *workspace; size_t bytes; int math; };

static number get(const void *p, int type, int64_t k) {
  switch (type) {
    case 0: return ((const float *)p)[k];
    case 1: return ((const double *)p)[k];
    case 4: return ((const std::complex<float> *)p)[k];
    case 5: return ((const number *)p)[k];
  }
  abort();
}

static number turned(number x, int operation) { return operation == 2 ? std::conj(x) : x; }

static void put(void *p, int type, int64_t k, number x) {
  switch (type) {
    case 0: ((float *)p)[k] = x.real(); return;
    case 1: ((double *)p)[k] = x.real(); return;
    case 4: ((std::complex<float> *)p)[k] = x; return;
    case 5: ((number *)p)[k] = x; return;
  }
  abort();
}

extern "C" {
int last_compute, last_algorithm, alive;
const char *cublasGetStatusString(int status) { return status == 7 ? "an unsupported value" : "?"; }
int cublasCreate_v2(Handle **h) { *h = new Handle(); alive++; return 0; }
int cublasDestroy_v2(Handle *h) { delete h; alive--; return 0; }
int cublasSetStream_v2(Handle *h, void *s) { h->stream = s; h->workspace = nullptr; return 0; }
int cublasSetWorkspace_v2(Handle *h, void *w, size_t n) { h->workspace = w; h->bytes = n; return 0; }
int cublasSetMathMode(Handle *h, int m) { h->math = m; return 0; }
int cublasGemmStridedBatchedEx_64(
    Handle *h, int transa, int transb, int64_t m, int64_t n, int64_t k, const void *alpha,
    const void *A, int Atype, int64_t lda, long long strideA, const void *B, int Btype, int64_t ldb, long long strideB,
    const void *beta, void *C, int Ctype, int64_t ldc, long long strideC, int64_t batchCount,
    int computeType, int algo) {
  if (h->stream != (void *)16 || h->workspace != (void *)32 || h->bytes != 32u << 20 || h->math != 16) return 7;
  last_compute = computeType, last_algorithm = algo;
  number x = get(alpha, Ctype, 0), y = get(beta, Ctype, 0);
  for (int64_t i = 0; i < batchCount; i++)
    for (int64_t r = 0; r < m; r++)
      for (int64_t s = 0; s < n; s++) {
        number sum = 0;
        for (int64_t t = 0; t < k; t++)
          sum += turned(get(A, Atype, i * strideA + (transa ? t + r * lda : r + t * lda)), transa) *
                 turned(get(B, Btype, i * strideB + (transb ? s + t * ldb : t + s * ldb)), transb);
        int64_t at = i * strideC + r + s * ldc;
        put(C, Ctype, at, x * sum + (y == 0.0 ? 0.0 : y * get(C, Ctype, at)));
      }
  return 0;
}
int cublasGemmStridedBatchedEx() { return 7; }
}
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """The stand-in, loaded as cuBLAS would be."""
    if shutil.which("g++") is None:
        pytest.skip("the stand-in for cuBLAS is compiled with g++")
    folder = tmp_path_factory.mktemp("nvidia")
    (folder / "stand_in.cpp").write_text(STAND_IN)
    command = ["g++", "-O1", "-shared", "-fPIC", "-o", "libcublas.so.13", "stand_in.cpp"]
    subprocess.run(command, check=True, cwd=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libraries, "folders", lambda *_: iter([str(folder)]))
        cublas.library.cache_clear()
        yield cublas.library(13)
    cublas.library.cache_clear()


def random(rng, dtype: str, *shape: int) -> np.ndarray:
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x, dtype)


def address(x: np.ndarray) -> int:
    return x.ctypes.data


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_a_product(functions, dtype, beta):
    handle = cublas.Handle(functions, 16, 32)
    rng = np.random.default_rng(0)
    arrays = [random(rng, dtype, *s) for s in ((2, 4, 3), (5, 4), (2, 5, 3))]
    a, b, c = arrays  # stored by columns: three rows of four, four of five, three of five
    want = 2 * np.einsum("bki,jk->bji", a, b) + (beta * c if beta else 0)
    if not beta:
        c[:] = np.nan
    p = Product(False, False, 3, 5, 4, 2.0, beta, 3, 4, 3, 12, 0, 15, 2, np.dtype(dtype))
    handle.product(p, address(a), address(b), address(c))
    np.testing.assert_allclose(c, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("conj", [(True, False), (False, True)])
def test_what_is_conjugated(functions, conj):
    handle, rng = cublas.Handle(functions, 16, 32), np.random.default_rng(0)
    a, b, c = (random(rng, "complex128", 3, 3) for _ in range(3))
    x, y = (m.conj() if on else m for m, on in zip((a, b), conj, strict=True))
    want = (x @ y).T  # stored by columns: transposed, then multiplied
    p = Product(True, True, 3, 3, 3, 1.0, 0.0, 3, 3, 3, 0, 0, 0, 1, np.dtype("complex128"), "highest", *conj)
    handle.product(p, address(a), address(b), address(c))
    np.testing.assert_allclose(c, want, atol=1e-12)


def test_sizes_are_64_bits_wide(functions):
    handle = cublas.Handle(functions, 16, 32)
    x, y, z = np.full((3, 1), 2, np.float32)
    p = Product(False, False, 1, 1, 1, 3.0, 0.0, 2**33, 2**33, 2**33, 2**40, 2**40, 2**40, 1, np.dtype(np.float32))
    handle.product(p, address(x), address(y), address(z))
    assert z[0] == 12


@pytest.mark.parametrize(("dtype", "compute", "number"), [
    ("float32", "highest", 68), ("float32", "tf32", 77), ("float32", "bf16", 75), ("complex64", "tf32", 77),
    ("float64", "tf32", 70), ("complex128", "highest", 70), ("float16", "highest", 68), ("float16", "bf16", 68)])
def test_how_numbers_are_multiplied(dtype, compute, number):
    assert cublas.compute_type(np.dtype(dtype), compute) == number


def test_factors_of_halves_are_singles():
    p = Product(False, False, 1, 1, 1, 3.0, 0.5, 1, 1, 1, 0, 0, 0, 1, np.dtype(np.float16))
    _, alpha, a, _, beta, *_ = cublas.call_of(p)
    assert (alpha.dtype, beta.dtype) == (np.float32, np.float32) and a[0] == 2


def test_what_cublas_refuses_is_raised(functions):
    handle = cublas.Handle(functions, 17, 32)
    x = np.ones(1)
    p = Product(False, False, 1, 1, 1, 3.0, 0.0, 1, 1, 1, 0, 0, 0, 1, np.dtype(np.float64))
    with pytest.raises(InternalError, match="cublasGemmStridedBatchedEx: an unsupported value"):
        handle.product(p, address(x), address(x), address(x))


def test_handles_are_closed(functions):
    alive = ctypes.c_int.in_dll(functions, "alive")
    before = alive.value
    handle = cublas.Handle(functions, 16, 32)
    assert alive.value == before + 1
    del handle
    assert alive.value == before


def test_without_cublas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(libraries, "folders", lambda *_: iter(()))
    monkeypatch.setattr(libraries.ctypes, "CDLL", _refuse)
    with pytest.raises(InputError, match="cuBLAS, which multiplies matrices, is not found") as caught:
        libraries.load(libraries.CUBLAS)
    assert "nvidia-cublas>=13,<14" in str(caught.value)


def _refuse(name):
    raise OSError(name)
