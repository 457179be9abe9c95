"""Scripts: what runs for each batch of a block, as words for the runner.

A script of a block gathers arguments, calls the compiled function of the job, and copies or scatters what came out.
Every operand has a *place*: a base, the word of the batch's record that says where it begins, and the bytes of a row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from symc.driver.compile import compile as compile_function
from symc.errors import InputError
from symc.fold import kernels
from symc.fold.block import Block, M, N, Tag
from symc.fold.memory import Memory
from symc.fold.native import ARGUMENT, FRAME, OPERAND, STOP, Kernel, Rec, address
from symc.fold.split import Job
from symc.ir.value import Value
from symc.runtime.cpu.executable import Executable
from symc.runtime.cpu.executor import Code
from symc.runtime.cpu.frames import Frames
from symc.tensors.tensor import Tensor

#: Words of a header, which is read in place of an array: type, data, number of axes and where sizes are.
_HEADER, _DIMS = 16, 6


class Place(NamedTuple):
    """Place of the rows of a batch: ``base + start * row_bytes``, as many as ``rows`` says (words of ``Rec``)."""

    base: int
    start: int
    row_bytes: int
    rows: int
    dtype: Any
    shape: tuple[int, ...]


class Call(NamedTuple):
    """A call of a compiled function in a script, for when it does not run natively. ``arrays``: places, or bases of
    the table that hold array objects; inputs first."""

    function: Any
    inputs: Sequence[Place | int]
    outputs: Sequence[Place | int]
    frame: Any


@functools.cache
def row_kernel(name: str, dtype: str) -> Kernel:
    """A kernel that moves rows: of a dtype if it adds, of integers of that size if it copies."""
    kinds = {"gather": (6, "i8 {0} {0} i8"), "scatter_add": (2, "i8 {0} {0}"), "copy_rows": (2, "{0} {0}")}
    numbers, arrays = kinds[name]
    return Kernel(getattr(kernels, name), numbers, arrays.format(dtype))


def _bits(p: Place) -> tuple[str, int]:
    """The widest integers that a row is made of, and how many."""
    size = next(k for k in (8, 4, 2, 1) if p.row_bytes % k == 0) if p.row_bytes else 1
    return f"u{size}", p.row_bytes // size


class Script:
    """The words of a script while it is written, and then for as long as it may run."""

    def __init__(self, memory: Memory, threads: int | None):
        self.memory, self.threads = memory, threads
        self.words: list[int] = []
        self.calls: dict[int, Call] = {}
        self._kept: list[Any] = []

    def finish(self) -> int:
        """The address of the words."""
        self.array = np.array([*self.words, STOP, 0, 0, 0], np.int64)
        return address(self.array)

    def keep(self, size: int) -> np.ndarray:
        self._kept.append(np.zeros(size, np.int64))
        return self._kept[-1]

    # --- kernels ------------------------------------------------------------------------------------------------------

    def kernel(self, k: Kernel, *operands: tuple[int, int, int, int]) -> None:
        """A call of a kernel on operands ``(number, base, start, stride)``."""
        self.words += [k.address, 3 + OPERAND * len(operands), len(operands), *[w for o in operands for w in o]]

    def _row(self, p: Place) -> tuple[int, int, int, int]:
        return (0, p.base, p.start, p.row_bytes)

    def copy(self, source: Place, target: Place) -> None:
        dtype, w = _bits(source)
        self.kernel(row_kernel("copy_rows", dtype), (0, 0, source.rows, 1), (w, 0, Rec.ZERO, 0), self._row(source),
                    self._row(target))

    def gather(self, index: Place, source: Place, target: Place, near: bool) -> Place:
        """Rows of an arena; where they are then. ``near``: they may stay where they are."""
        dtype, w = _bits(source)
        word = self.memory.word()
        whole = (0, source.base, Rec.ZERO, 0)
        self.kernel(row_kernel("gather", dtype), (0, 0, index.rows, 1), (w, 0, Rec.ZERO, 0),
                    (int(near), 0, Rec.ZERO, 0), (source.row_bytes, 0, Rec.ZERO, 0), whole, self._row(target),
                    self._row(index), whole, self._row(target), (self.memory.address + 8 * word, 0, Rec.ZERO, 0))
        return target._replace(base=word, start=int(Rec.ZERO))

    def scatter_add(self, index: Place, source: Place, target: Place) -> None:
        real = np.empty(0, source.dtype).real.dtype
        w = source.row_bytes // real.itemsize
        self.kernel(row_kernel("scatter_add", real.str[1:]), (0, 0, index.rows, 1), (w, 0, Rec.ZERO, 0),
                    self._row(index), self._row(source), (0, target.base, Rec.ZERO, 0))

    # --- functions ----------------------------------------------------------------------------------------------------

    def call(self, name: str, job: Job, place: Callable[[Tag, Value], Place | int],
             results: Mapping[Value, Place | int]) -> Any:
        """A call of the function of a job. ``results``: where each result goes, as a place or as the base of an array
        object."""
        leaves, made = job.closed()
        outputs = [results[v] for v in dict.fromkeys(job.outputs.values()) if v in results]
        function = compile_function(tuple(map(Tensor, made)), list(map(Tensor, leaves)), name=name,
                                    threads=self.threads)
        inputs: list[Place | int] = [place(t, v) for t, v in job.inputs.items()]
        frames = function._call_path._frames
        found = frames.code.made() if isinstance(frames, Frames) else None
        if found is None:
            frame: Any = _refusing()
            first, order = len(frame.words) - 1, []
        else:
            frame, lowered = frames.lend(), frames.code
            slots = {k: o for (k, _, _), o in zip(found[0], outputs, strict=True)}
            order = [*inputs, *[self.memory.object(c) for c in function._call_path._cells]]
            order += [self.hidden(function, k) for k in range(lowered.given - len(order))]
            order += [slots[k] for k in range(lowered.given, lowered.given + len(outputs))]
            first = lowered.first
        self.calls[len(self.words)] = Call(function, inputs, outputs, frame)
        self._kept.append(frame)
        self.words += [FRAME, 5 + ARGUMENT * len(order), len(order), frame.address, first]
        for p in order:
            self.words += [0, p, Rec.ZERO, 0, Rec.ZERO] if isinstance(p, int) else [self._header(p), *p[:4]]
        return function

    def hidden(self, function: Any, k: int) -> int:
        """The base of the k-th array that a function keeps between calls."""
        bases = self.memory.hidden.setdefault(function, [])
        bases.append(self.memory.word())
        return bases[k]

    def _header(self, p: Place) -> int:
        header = self.keep(_HEADER)
        dims = header[_DIMS:]
        header[:5] = 1, id(np.ndarray), 0, 1 + len(p.shape), address(dims)
        dims[1 : 1 + len(p.shape)] = p.shape
        return address(header)


@functools.cache
def _refusing() -> Executable:
    """Code that never runs: Python computes in its place."""
    code = Code()
    code.slot()
    code.refuse(1)
    return code.finish()


def leading(v: Value, block: Block) -> int:
    """The word that counts the rows of a value."""
    first = v.type.shape[0] if v.type.shape else None  # type: ignore[union-attr]
    if first == M:
        return Rec.ELEMENTS
    if first != N:
        raise InputError(f"block {block.name}: a value of type {v.type} cannot be kept for the gradient")
    return Rec.COUNT
