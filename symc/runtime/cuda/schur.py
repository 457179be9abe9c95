"""Eigenvalues and eigenvectors of any square matrices on a device."""

from __future__ import annotations

import numpy as np

from symc.ir.types import complex_dtype
from symc.runtime.cuda.matrices import Emitter, Matrices, Recipe, state_of, threads_for


def _eig(e: Emitter) -> None:
    vectors = e.value.op.name == "eig"
    n = e.shapes[0][-1]
    if not n:
        return
    dtype = np.dtype(complex_dtype(e.dtype))
    h, work = e.scratch(e.count * n * n, dtype.itemsize), e.scratch(e.count * n, dtype.itemsize)
    q, x = (e.scratch(e.count * n * n, dtype.itemsize) for _ in range(2)) if vectors else (h, h)
    w, v = (*e.results, h)[:2]
    state, one, threads = state_of(e), (e.count, 1), threads_for(2 * n)
    e.launch("schur_start", one, [e.operands[0], h, q, state, n, vectors], [h, q, state], threads)
    e.launch("schur_hessenberg", one, [h, q, work, state, n, vectors], [h, q, work], threads)
    e.launch("schur_sweeps", one, [h, q, state, n, vectors], [h, q, state], threads)
    if vectors:
        e.launch("schur_vectors", (e.count, -(-n // 4)), [h, x, n], [x])
        to, basis, rows = (Matrices(a, n, n * n) for a in (v, q, x))
        e.multiply(to, basis, rows, n, n, n, trans_b=1, dtype=dtype)
    e.launch("schur_end", one, [h, v, w, state, n, vectors], [v, w] if vectors else [w], threads)


RECIPES: dict[str, Recipe] = {"eig": _eig, "eigvals": _eig}
