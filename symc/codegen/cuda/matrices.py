"""The translation units of linear algebra and transforms: which kernels an op needs, and how they are declared."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import numpy as np

from symc.codegen.cuda import fourier_text, matrix_text, vector_text
from symc.codegen.cuda.prelude import END, PRELUDE
from symc.codegen.cuda.source import WARP
from symc.ir.types import DTYPE_NAMES

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
    **dict.fromkeys(("fft", "rfft", "irfft"), (fourier_text.FOURIER,)),
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
