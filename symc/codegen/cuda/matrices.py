r"""The translation units of linear algebra and transforms: which kernels an op needs, and how they are declared."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import numpy as np

from symc.codegen.cuda import matrix_text, vector_text
from symc.codegen.cuda.prelude import END, PRELUDE
from symc.codegen.cuda.source import WARP
from symc.ir.types import DTYPE_NAMES

#: Passes that each do one factor of the length of a transform, in order as Stockham has it, and products with numbers
#: from a table. A thread has one element of a result.
FOURIER = r"""
typedef Complex<R> C;
// Element i of a line of n. kind: 0 of complex numbers, 1 of real ones, 2 of half a spectrum, whose rest mirrors it.
SYMC_FUNCTION C line_read(const C *x, i64 row, i64 i, i64 column, i64 n, i64 inner, i64 kind) {
  if (kind == 1) return C(((const R *)x)[(row * n + i) * inner + column]);
  if (kind == 0) return x[(row * n + i) * inner + column];
  const i64 half = n / 2 + 1, k = i < half ? i : n - i;
  const C z = x[(row * half + k) * inner + column];
  if (k == 0 || 2 * k == n) return C(z.real);
  return i < half ? z : z.conjugate();
}
// kind: 0 all of it, 1 the half that says all, 2 the real part.
SYMC_FUNCTION void line_write(C *y, C z, i64 row, i64 i, i64 column, i64 n, i64 inner, i64 kind) {
  const i64 half = n / 2 + 1;
  if (kind == 2) ((R *)y)[(row * n + i) * inner + column] = z.real;
  else if (kind == 0) y[(row * n + i) * inner + column] = z;
  else if (i < half) y[(row * half + i) * inner + column] = z;
}
// The factor r of n, where s is the product of those before. w: the n-th roots of 1.
extern "C" __global__ void __launch_bounds__(256) fourier_pass(const C *x, const C *w, C *y, i64 n, i64 s, i64 r,
                                                               i64 inner, i64 total, i64 reading, i64 writing) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const i64 column = e % inner, i = e / inner % n, row = e / inner / n;
  const i64 q = i % s, j = i / s % r, p = i / s / r, m = n / s / r;
  C sum = line_read(x, row, q + s * p, column, n, inner, reading);
  for (i64 k = 1; k < r; k++) {
    const C z = line_read(x, row, q + s * (p + m * k), column, n, inner, reading);
    sum = sum + z * w[j * k % r * (n / r)];
  }
  const C found = sum * w[p * j * s];
  line_write(y, found, row, i, column, n, inner, writing);
}
// Lines of n numbers times those of a table, as lines of m: cropped, or with zeros at the end.
extern "C" __global__ void __launch_bounds__(256) fourier_times(const C *x, const C *w, C *y, i64 n, i64 m, i64 inner,
                                                                i64 total, i64 reading, i64 writing) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const i64 column = e % inner, i = e / inner % m, row = e / inner / m;
  C found = C(R(0));
  if (i < n) found = line_read(x, row, i, column, n, inner, reading) * w[i];
  line_write(y, found, row, i, column, m, inner, writing);
}
"""

_SOLVE = (matrix_text.SOLVE,)
_LU = (matrix_text.LU_PANEL, matrix_text.LU_EXCHANGE, *_SOLVE)
_QR = (vector_text.QR_PANEL, matrix_text.UNIT)
#: The parts of the text, by the name of the op.
PARTS: Mapping[str, tuple[str, ...]] = {
    "cholesky": (matrix_text.PART, matrix_text.CHOLESKY_BLOCK, matrix_text.CHOLESKY_ROWS),
    "solve_triangular": _SOLVE,
    "lu_factor": _LU,
    "lu_solve": (matrix_text.ROWS_IN_ORDER, *_SOLVE),
    "qr": (*_QR, matrix_text.PART),
    "svd": (vector_text.TURNED, matrix_text.UNIT),
    **dict.fromkeys(("eigh", "eigvalsh", "eig", "eigvals", "svdvals"), (vector_text.TURNED,)),
    **dict.fromkeys(("fft", "rfft", "irfft"), (FOURIER,)),
}
#: The real types of the dtypes that there are kernels for.
REALS = {"f": "f32", "d": "f64", "F": "f32", "D": "f64"}
_ENTRY = re.compile(r'extern "C" __global__ void __launch_bounds__\((\d+)\) (\w+)\(([^)]*)\)')


@functools.cache
def text_of(names: tuple[str, ...], dtype: np.dtype) -> str:
    """A translation unit with the kernels of some ops."""
    head = f"typedef {DTYPE_NAMES[dtype]} T;\ntypedef {REALS[dtype.char]} R;\n"
    parts = dict.fromkeys(part for name in names for part in PARTS[name])
    return "".join([PRELUDE, head, matrix_text.COMMON, *parts, END])


@functools.cache
def entries_of(name: str) -> dict[str, tuple[int, int]]:
    """The entries in it: how many parameters each has (all of 8 bytes), and threads at most."""
    found = {}
    for threads, entry, parameters in _ENTRY.findall("".join(PARTS[name])):
        assert int(threads) % WARP == 0
        found[entry] = parameters.count(",") + 1, int(threads)
    return found
