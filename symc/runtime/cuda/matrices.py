"""Emits the actions of linear algebra on a device: arrays, matrices in them, and launches and products on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from symc.codegen.cuda.matrices import entries_of
from symc.codegen.cuda.matrix_text import WIDTH
from symc.codegen.cuda.source import MOST_THREADS, WARP
from symc.errors import LinAlgError
from symc.ir.ops.factor import INDEFINITE, MORE
from symc.ir.ops.solve import ANY, SINGULAR
from symc.ir.ops.spectral import NO_END
from symc.ir.plan import Plan
from symc.ir.record import dataclass
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.runtime.cuda.actions import CopyAction, Failure, LaunchAction, ProductAction
from symc.runtime.cuda.device import Kernel, Product
from symc.runtime.cuda.lowering import DeviceLowering

_SINGULAR = SINGULAR, ANY
_NO_END = NO_END, None
#: What it means that a kernel of an op raises its flag, and what helps.
WHY: Mapping[str, tuple[str, str | None]] = {
    "cholesky": (INDEFINITE, MORE), "solve_triangular": _SINGULAR, "lu_factor": _SINGULAR, "lu_solve": _SINGULAR,
    "eigh": _NO_END, "eigvalsh": _NO_END, "svd": _NO_END, "svdvals": _NO_END,
    "eig": _NO_END, "eigvals": _NO_END,
}  # fmt: skip


def failure(plan: Plan, v: Value) -> Failure:
    """Error that is raised where a matrix has no such factorization."""
    what, help_ = WHY[v.op.name]
    return Failure(tuple(plan.function.locations(v)), LinAlgError, what, help_)


@dataclass(frozen=True)
class Array:
    """Memory: the slot of its address, and how many bytes there are."""

    slot: int
    nbytes: int


@dataclass(frozen=True)
class Matrices:
    """Matrices in an array. ``at``: the element where the first one starts; ``ld``: elements from one row to the next;
    ``stride``: from one matrix to the next."""

    array: Array
    ld: int
    stride: int
    at: int = 0

    def part(self, row: int, column: int) -> Matrices:
        """From a row and a column on."""
        return Matrices(self.array, self.ld, self.stride, self.at + row * self.ld + column)


Argument = Array | Matrices | int


class Emitter:
    """Writes the actions of one value. ``shapes``: of the operands, then of the results; ``failed``: the slot of the
    flag that kernels raise; ``count``: how many matrices there are."""

    def __init__(self, lowering: DeviceLowering, plan: Plan, v: Value, reads: Sequence[int], writes: Sequence[int],
                 kernels: Mapping[str, Kernel]):
        self.lowering, self.value, self.kernels = lowering, v, kernels
        results = v.types
        types: list[TensorType] = [*[o.type for o in v.operands], *results]  # type: ignore[list-item]
        self.shapes = [tuple(map(lowering.number, t.shape)) for t in types]
        self.dtype = v.operands[0].dtype
        self.real = np.dtype(self.dtype.char.lower())
        sizes = (math.prod(s) * t.dtype.itemsize for s, t in zip(self.shapes, types, strict=True))
        arrays = [Array(s, n) for s, n in zip((*reads, *writes), sizes, strict=True)]
        self.operands, self.results = arrays[: len(reads)], arrays[len(reads):]
        self.count = math.prod(self.shapes[0][:-2])
        self.threads = entries_of(v.op.name)
        self.failed = Array(lowering.flag(failure(plan, v)), 4) if v.op.name in WHY else None

    def scratch(self, elements: int, itemsize: int = 0) -> Array:
        """Memory for this value alone."""
        nbytes = max(elements, 1) * (itemsize or self.dtype.itemsize)
        return Array(self.lowering.memory(nbytes), nbytes)

    def launch(self, name: str, blocks: tuple[int, int], arguments: Sequence[Argument],
               writes: Sequence[Array], threads: int = 0) -> None:
        """Launch a kernel. ``writes``: those of its arguments that it writes."""
        given = self._arguments(name, arguments)
        if not all(blocks):
            return
        flag = [self.failed] if self.failed in given else []
        read = [x.array if isinstance(x, Matrices) else x for x in given if isinstance(x, Array | Matrices)]
        touched, written = (tuple(dict.fromkeys((a.slot, a.nbytes) for a in part)) for part in (read, [*writes, *flag]))
        lowering, most = self.lowering, self.threads[name][1]
        lowering.do(LaunchAction(self.kernels[name], (*blocks, 1), min(threads or most, most), 0,
                                 tuple(map(self._cell, given)), touched, written, lowering.lane))

    def each(self, name: str, elements: int, arguments: Sequence[Argument], to: Sequence[Array]) -> None:
        """Launch a kernel of a thread for each element."""
        self.launch(name, (-(-elements // 256), 1), arguments, to)

    def _cell(self, x: Argument) -> int:
        if isinstance(x, Matrices):
            return self.address(x)
        return x.slot if isinstance(x, Array) else self.lowering.code.slot(int(x))

    def _arguments(self, name: str, arguments: Sequence[Argument]) -> list[Argument]:
        """Arguments that are passed: the flag comes last where there is one."""
        given: list[Argument] = [*arguments]
        if len(given) + 1 == self.threads[name][0]:
            assert self.failed is not None
            given.append(self.failed)
        assert len(given) == self.threads[name][0], name
        return given

    def multiply(self, c: Matrices, a: Matrices, b: Matrices, m: int, n: int, k: int, alpha: float = 1.0,
                 beta: float = 0.0, trans_a: int = 0, trans_b: int = 0,
                 dtype: np.dtype | None = None) -> None:
        """``c = alpha * op(a) @ op(b) + beta * c``, of m rows and n columns, as exact as the dtype allows. ``trans_a``,
        ``trans_b``: 0, 1 (transposed) or 2 (conjugated too). What is stored by rows is the transpose of what is stored
        by columns, as cuBLAS has it, so operands are exchanged."""
        if min(m, n, k, self.count) < 1:
            return
        product = Product(trans_b > 0, trans_a > 0, n, m, k, alpha, beta, b.ld, a.ld, c.ld, b.stride, a.stride,
                          c.stride, self.count, dtype or self.dtype, conj_a=trans_b == 2, conj_b=trans_a == 2)
        self.lowering.do(ProductAction(product, self.address(b), self.address(a), self.address(c), self.lowering.lane))

    def address(self, x: Matrices) -> int:
        """The slot of the address where matrices start."""
        return self.lowering.offset(x.array.slot, x.at * self.dtype.itemsize) if x.at else x.array.slot

    def copy(self, to: Array, source: Array) -> None:
        self.lowering.do(CopyAction(to.slot, source.slot, source.nbytes, self.lowering.lane))

    def part(self, to: Array, source: Array, rows: int, columns: int, stride: int, lower: bool) -> None:
        """Write a triangle of the first rows of matrices ``stride`` apart."""
        total = self.count * rows * columns
        self.each("matrix_part", total, [source, to, rows, columns, stride, total, lower], [to])

    def unit(self, to: Array, rows: int, columns: int) -> None:
        """Write matrices with ones on the diagonal."""
        total = self.count * rows * columns
        self.each("matrix_unit", total, [to, rows, columns, total], [to])


def strips(n: int) -> list[tuple[int, int]]:
    """Starts of strips of ``WIDTH``, and the width of each."""
    return [(k, min(WIDTH, n - k)) for k in range(0, n, WIDTH)]


def threads_for(work: int) -> int:
    """Threads of a block that does so many things at a time."""
    return min(MOST_THREADS, max(WARP, -(-work // WARP) * WARP))


Recipe = Callable[[Emitter], None]
