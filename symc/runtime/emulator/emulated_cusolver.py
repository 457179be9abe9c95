"""Eigenvalues and singular values as cuSOLVER has them, by NumPy's LAPACK: matrices by columns, one after another."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.runtime.cuda.device import Factorization, Span
from symc.runtime.emulator import native
from symc.runtime.emulator.errors import EmulationError
from symc.runtime.emulator.memory import Heap


class FactorizationCall:
    """One factorization: checked when it is asked for, done later."""

    def __init__(self, f: Factorization, addresses: Sequence[int]):
        if f.kind == "svd" and f.m < f.n or f.kind == "eig" and f.dtype.kind != "c":
            raise EmulationError("LAUNCH", f"cuSOLVER has no {f.kind} of {f.m} x {f.n} matrices of {f.dtype}")
        self.f, self.places = f, tuple(addresses)
        spans: list[Span] = [(a, f.batch * n) for a, n in zip(addresses, f.nbytes, strict=True)]
        for k, (start, nbytes) in enumerate(spans):
            if start % 4 or any(start < s + n and s < start + nbytes for s, n in spans[:k]):
                raise EmulationError("LAUNCH", f"array {k} of a factorization overlaps another or is not aligned")
        self.reads, self.writes = (spans[0],), tuple(spans)

    def run(self, heap: Heap) -> None:
        """Factorize now. What is left in the matrices is nobody's business, but for vectors."""
        f = self.f
        heap.require_written(*self.reads[0], "a factorization")
        shapes = [(f.m, f.n), *f.shapes]
        dtypes = [f.dtype, f.dtype if f.kind == "eig" else np.dtype(f.dtype.char.lower()), f.dtype, f.dtype]
        for b in range(f.batch):
            a, *made = (_view(p + b * n, s, d) for p, n, s, d in zip(self.places, f.nbytes, shapes, dtypes))
            info = _view(self.places[-1] + 4 * b, (1,), np.dtype("i4"))
            try:
                found = self._factorized(a.copy())
                info[0] = 0
            except np.linalg.LinAlgError:
                found, info[0] = [np.full(x.shape, np.nan, x.dtype) for x in (*made, a)], 1
            for to, x in zip([*made, *([a] if f.kind == "eigh" and f.vectors else [])], found):
                to[...] = x
        for start, nbytes in self.writes:
            heap.mark(start, nbytes, native.WRITTEN)

    def _factorized(self, a: np.ndarray) -> list[np.ndarray]:
        f = self.f
        if not np.isfinite(a).all():
            raise np.linalg.LinAlgError
        if f.kind == "eigh":
            triangle: Any = "L" if f.lower else "U"
            return [*np.linalg.eigh(a, triangle)] if f.vectors else [np.linalg.eigvalsh(a, triangle)]
        if f.kind == "eig":
            return [*np.linalg.eig(a)] if f.vectors else [np.linalg.eigvals(a)]
        if not f.vectors:
            return [np.linalg.svd(a, compute_uv=False)]
        u, s, vt = np.linalg.svd(a, full_matrices=f.full)
        return [s, u, vt]


def _view(address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A matrix that is stored by columns."""
    count = int(np.prod(shape))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, memoryview(memory), order="F")
