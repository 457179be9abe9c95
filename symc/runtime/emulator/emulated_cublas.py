"""Products of matrices as cuBLAS has them, by NumPy: matrices by columns, with a distance between columns."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from symc.ir.dtypes import is_narrow
from symc.runtime.cuda.device import Product, Span
from symc.runtime.emulator import native
from symc.runtime.emulator.errors import EmulationError
from symc.runtime.emulator.memory import Heap

#: So many matrices of a batch are named one by one; more are one range from the first to the last.
MOST_RANGES = 64
#: Bits of the mantissa that a product of lower precision reads.
_BITS = {"tf32": 10, "bf16": 7}


class _Matrices:
    """Addresses of the matrices of one operand."""

    def __init__(self, name: str, address: int, rows: int, columns: int, ld: int, stride: int, batch: int,
                 dtype: np.dtype):
        self.name, self.address, self.rows, self.columns = name, address, rows, columns
        self.ld, self.stride, self.batch, self.dtype = ld, stride, batch, dtype

    def spans(self) -> tuple[Span, ...]:
        """All bytes, and some between columns."""
        size = self.dtype.itemsize
        one = (self.ld * (self.columns - 1) + self.rows) * size
        step = self.stride * size
        distinct = self.batch if step else 1
        if distinct <= MOST_RANGES:
            return tuple((self.address + i * step, one) for i in range(distinct))
        return ((self.address, (distinct - 1) * step + one),)

    def view(self) -> np.ndarray:
        """The numbers themselves, as (matrix, row, column)."""
        size = self.dtype.itemsize
        count = self.stride * (self.batch - 1) + self.ld * (self.columns - 1) + self.rows
        memory = (ctypes.c_char * (count * size)).from_address(self.address)
        flat = np.ndarray((count,), self.dtype, memoryview(memory))
        return np.lib.stride_tricks.as_strided(flat, (self.batch, self.rows, self.columns),
                                               (self.stride * size, size, self.ld * size))

    def columns_of_bytes(self) -> list[Span]:
        """The bytes of the numbers alone, in few ranges."""
        size, count = self.dtype.itemsize, self.batch if self.stride else 1
        if self.ld > self.rows and self.columns > 1:
            return [(self.address + (i * self.stride + j * self.ld) * size, self.rows * size)
                    for i in range(count) for j in range(self.columns)]
        one = self.rows * self.columns
        if self.stride == one or count == 1:
            return [(self.address, count * one * size)]
        return [(self.address + i * self.stride * size, one * size) for i in range(count)]

    def are_distinct(self) -> bool:
        """True if no element is in two matrices."""
        if self.batch == 1:
            return True
        after = self.stride >= self.ld * (self.columns - 1) + self.rows
        between = self.stride >= self.rows and (self.columns == 1
                                                or self.ld >= self.stride * (self.batch - 1) + self.rows)
        return after or between


class ProductCall:
    """One product: checked when it is asked for, done later."""

    def __init__(self, p: Product, a: int, b: int, c: int):
        rows_a, rows_b = (p.k if p.trans_a else p.m), (p.n if p.trans_b else p.k)
        _check_numbers(p, rows_a, rows_b)
        self.p = p
        dtype = np.dtype(p.dtype)
        self.a = _Matrices("a", a, rows_a, p.m + p.k - rows_a, p.lda, p.stride_a, p.batch, dtype)
        self.b = _Matrices("b", b, rows_b, p.k + p.n - rows_b, p.ldb, p.stride_b, p.batch, dtype)
        self.c = _Matrices("c", c, p.m, p.n, p.ldc, p.stride_c, p.batch, dtype)
        for x in (self.a, self.b, self.c):
            if x.address % dtype.itemsize:
                raise _wrong(p, f"{x.name} is not aligned")
        if not self.c.are_distinct():
            raise _wrong(p, "the matrices of c overlap")
        for x in (self.a, self.b):
            if _touch(x.spans(), self.c.spans()) and _touch(x.columns_of_bytes(), self.c.columns_of_bytes()):
                raise _wrong(p, f"c overlaps {x.name}")
        self.writes = self.c.spans()
        self.reads = (*self.a.spans(), *self.b.spans(), *(self.writes if p.beta else ()))

    def run(self, heap: Heap) -> None:
        """Multiply now."""
        p = self.p
        read = [self.a, self.b, *([self.c] if p.beta else [])]
        if heap.region is not None:
            for x in read:
                for start, nbytes in x.columns_of_bytes():
                    heap.require_written(start, nbytes, f"operand {x.name} of a product")
        a, b = (_rounded(x.view(), p.compute) for x in (self.a, self.b))
        a, b = a.conj() if p.conj_a else a, b.conj() if p.conj_b else b
        a = a.transpose(0, 2, 1) if p.trans_a else a
        b = b.transpose(0, 2, 1) if p.trans_b else b
        with np.errstate(all="ignore"):
            found = _number(p.alpha, a.dtype) * np.matmul(a, b)
            c = self.c.view()
            c[...] = found + _number(p.beta, a.dtype) * c if p.beta else found
        if heap.region is not None:
            for start, nbytes in self.c.columns_of_bytes():
                heap.mark(start, nbytes, native.WRITTEN)


def _touch(some: Sequence[Span], others: Sequence[Span]) -> bool:
    """True if one of the ranges of some overlaps one of others. (Parts of one matrix may lie between each other.)"""
    edges = sorted((start + at * size, at == 0, k) for k, spans in enumerate((some, others)) for start, size in spans
                   for at in (0, 1))
    inside = [0, 0]
    for _, opens, k in edges:  # where one ends and another starts, the end comes first
        inside[k] += 1 if opens else -1
        if min(inside) > 0:
            return True
    return False


def _check_numbers(p: Product, rows_a: int, rows_b: int) -> None:
    if min(p.m, p.n, p.k, p.batch) < 1:
        raise _wrong(p, "a size is not positive")
    for name, ld, rows in (("lda", p.lda, rows_a), ("ldb", p.ldb, rows_b), ("ldc", p.ldc, p.m)):
        if ld < rows:
            raise _wrong(p, f"{name} is {ld}, and a column has {rows} elements")
    if (p.conj_a and not p.trans_a) or (p.conj_b and not p.trans_b):
        raise _wrong(p, "what is not transposed is not conjugated")
    if p.compute not in ("highest", *_BITS):
        raise _wrong(p, f"{p.compute!r} is no way to multiply")


def _number(x: complex, dtype: np.dtype) -> np.generic:
    return dtype.type(x if dtype.kind == "c" else x.real)


def _rounded(x: np.ndarray, compute: str) -> np.ndarray:
    """The numbers as a product reads them: 16-bit ones as f32; f32 with fewer bits where that was asked for."""
    if is_narrow(x.dtype):
        return x.astype(np.float32)
    if compute not in _BITS or x.dtype not in (np.float32, np.complex64):
        return x
    drop = 23 - _BITS[compute]
    floats = np.ascontiguousarray(x).view(np.float32)
    bits = floats.view(np.uint32)
    half = np.uint32((1 << (drop - 1)) - 1)
    rounded = (bits + half + (bits >> np.uint32(drop) & np.uint32(1))) & np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)
    return np.where(np.isfinite(floats), rounded.view(np.float32), floats).view(x.dtype)


def _wrong(p: Product, what: str) -> EmulationError:
    return EmulationError("PRODUCT", f"{what}: {p}")
