"""Kernels that work on rows: folds along a row, and what is made of them for every element.

Rows of up to 128 elements share a warp, those of up to 1024 have one, longer ones a block of up to 1024 threads; up to
32 768 elements or so lie in registers meanwhile, longer rows are read again in every pass. A few rows that are longer
still (a sum of everything) are worked on by many blocks each, in several launches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symc.codegen.cpu.folds import fold_parts
from symc.codegen.cuda.nests import Rows, emit_ready, is_heavy, rows_of
from symc.codegen.cuda.row_text import Accumulator, Layout, RowText, lines_of, widest
from symc.codegen.cuda.source import MOST_THREADS, WARP
from symc.codegen.cuda.vectors import VECTORS
from symc.codegen.cuda.writer import BLOCK, VECTOR, Env, Kernel, Text, Variants, Writer, scalar_type
from symc.ir.dim import Size, ceildiv, floordiv
from symc.ir.ops.reduce import gives_place
from symc.ir.size_extremes import maximum, minimum
from symc.ir.traverse import every_value, postorder, region_params
from symc.ir.value import Value

#: Elements of a row that a thread has in registers at most; and what they may take, in numbers of 4 bytes.
ELEMENTS, REGISTERS = 32, 64
#: The same where elements are read one at a time.
SINGLE = 8
#: From so many rows on, a thread may do a row alone; and how long such rows are where elements lie apart anyway.
EACH, WINDOW = 1024, 64
#: How much text the elements of a thread may be, in scalar ops.
TEXT = 1500
#: Threads of a block of short rows.
SHORT = 128
#: Below so many rows, threads are for those that there are; from so many on, a block does a row, however long.
FEW, MANY = 64, 256


def rows(kernel: Kernel) -> RowKernel | None:
    """The variants of a kernel that works on rows alone; None for another."""
    if kernel.loops.columns or kernel.loops.starts or kernel.is_complex:
        return None
    found = rows_of(kernel)
    if found is None or not any(m.op.name == "fold" for m in found.members) or any(o.put for o in found.outs):
        return None
    return RowKernel(kernel, found)


def power(x: int) -> int:
    """The least power of two that is not less."""
    return 1 << max(0, x - 1).bit_length()


def runs_across(found: Rows, length: int) -> bool:
    """True if neighbouring rows are read side by side, rather than elements of a row: a thread does a row then."""
    along = sum(len(lines_of(found, m)) + (m.op.name == "generate") * len(m.regions[0].results) for m in found.members)
    if not found.levels:
        return False
    last = region_params(found.region)[len(found.levels[-1].attrs["shape"]) - 1]
    across = 0
    for m in found.members:
        captured = dict(zip(region_params(m.regions[0])[len(found.inner) :], m.operands, strict=True))
        loads = [v for v in postorder(m.regions[0].results) if v.op.name == "load" and len(v.operands) > 1]
        across += sum(captured.get(v.operands[-1]) is last for v in loads)
    return across >= max(1, along) or not along and length <= WINDOW


def layout(found: Rows, number: Callable[[Size], int], more: float = 0) -> Layout:
    """Division of rows among threads. ``more``: other numbers of 4 bytes for each element."""
    length, count = number(found.length), number(found.count)
    heavy = is_heavy(found.kernel.loops.region)
    vector = 1 if heavy else max(1, VECTOR // widest(found))
    if number(found.inner[-1]) % vector:
        vector = 1
    lines = dict.fromkeys((line, line.array.dtype.itemsize) for m in found.members
                          for line in lines_of(found, m).values())
    words = sum(size for _, size in lines) / 4 + more
    values = len(every_value(found.kernel.loops.region))
    most = min(ELEMENTS, max(1, int(REGISTERS / max(1, words))), max(1, TEXT // values))
    most = max(vector, 1 << most.bit_length() - 1) if vector > 1 else min(most, SINGLE)
    if count >= EACH and runs_across(found, length):
        steps = power(length) if length <= most else 0
        return Layout(1, min(steps, length) if isinstance(found.length, int) else steps, 1)
    wanted = min(most, 2 * vector) if length <= SHORT or count < FEW else most
    threads = min(power(-(-length // wanted)), MOST_THREADS)
    if threads > WARP and count >= FEW:  # a block: rather more threads than registers
        threads = min(MOST_THREADS, max(2 * WARP, power(-(-length // min(most, 16)))))
    steps = -(-length // (threads * vector))
    if steps * vector > most:
        return Layout(512, 0, vector)
    if not isinstance(found.length, int):
        steps = power(steps)
    return Layout(threads, steps, vector, steps * threads * vector == length == found.length)


class RowKernel(Variants):
    def __init__(self, kernel: Kernel, found: Rows):
        self.kernel, self.rows = kernel, found

    def choose(self, number: Callable[[Size], int]) -> str:
        length, count = number(self.rows.length), number(self.rows.count)
        how = layout(self.rows, number)
        word = f"split_v{how.vector}" if not how.steps and length and count < MANY else how.word
        return self.chosen(word, number)

    def write(self, words: Sequence[str], name: str) -> Text:
        if words[0] == "split":
            return _Split(self.rows, int(words[1][1:]), "wide" in words).source(name)
        return self._write(Layout.of(words[0]), "wide" in words, name)

    def _write(self, how: Layout, wide: bool, name: str) -> Text:
        w = Writer(self.kernel, "i64" if wide else "i32")
        w.is_index("row", self.rows.count)
        w.is_index("lane", how.threads)
        block = max(SHORT, how.threads) if how.threads <= WARP else how.threads
        several = block // how.threads
        count = self.rows.count
        w.line(1, f"const {w.index} lane = threadIdx.x % {how.threads};")
        if several > 1:
            w.line(1, f"const {w.index} own = {w.index}(blockIdx.x) * {several} + threadIdx.x / {how.threads};")
            w.line(1, f"const bool live = own < {w.size(count)};")
            w.line(1, f"const {w.index} row = live ? own : {w.size(count)} - 1;")
        else:
            w.line(1, f"const {w.index} row = blockIdx.x;")
        text = RowText(w, self.rows, how, "lane", "live" if several > 1 else "")
        text.write(self.rows.open(w, "row", 1), "row", 1)
        again = () if how.steps else ((-1, len(self.rows.passes)),)
        return w.launches([(name, (ceildiv(count, several), 1, 1), block, w.lines)], again=again)


#: Blocks of a launch, and the fewest vectors that a thread should have.
BLOCKS, STEPS = 1024, 2


class _Split:
    """Writes a kernel of a few long rows."""

    def __init__(self, rows: Rows, vector: int, wide: bool):
        self.rows, self.vector = rows, vector
        self.w = Writer(rows.kernel, "i64" if wide else "i32")
        wanted = minimum(floordiv(BLOCKS, maximum(1, rows.count)), ceildiv(rows.length, BLOCK * vector * STEPS))
        self.blocks: Size = maximum(1, wanted)
        self.scratch: dict[Value, list[tuple[int, str]]] = {}  # for each fold, number and type of its scratch memory
        self.nbytes: list[int] = []
        for m in rows.members:
            self.scratch[m] = [self._memory(t) for k, u in (fold_parts(m) if m.op.name == "fold" else ())
                               for t in self._types(k, u.dtype)]

    def _types(self, kind: str, dtype: np.dtype) -> list[str]:
        return [scalar_type(dtype), self.w.index] if gives_place(kind) else [scalar_type(dtype)]

    def _memory(self, type_: str) -> tuple[int, str]:
        self.nbytes.append(1 if type_ == "bool" else int(type_[1:]) // 8)
        return len(self.nbytes) - 1, type_

    def source(self, name: str) -> Text:
        w, rows = self.w, self.rows
        w.parts[VECTORS] = None
        count = len(rows.passes)
        last = rows.passes[-1]
        elements = any(m.op.name == "generate" for m in last)
        entries: list[tuple[str, Size, list[str]]] = []
        for n in range(count if elements else count + 1):
            end = n == count or elements and n == count - 1
            entries.append((f"{name}_pass{n}", self.blocks if n < count else 1, self._entry(n, end)))
        return w.launches([(entry, (blocks, rows.count, 1), BLOCK, lines) for entry, blocks, lines in entries],
                          [n * self.blocks * rows.count for n in self.nbytes])

    def _entry(self, n: int, end: bool) -> list[str]:
        """The ``n``-th launch: what is known by now, and the next pass."""
        w, rows, index = self.w, self.rows, self.w.index
        w.lines = []
        w.is_index("row", rows.count)
        w.is_index("lane", BLOCK)
        w.line(1, f"const {index} lane = threadIdx.x;")
        w.line(1, f"const {index} row = blockIdx.y;")
        text = RowText(w, rows, Layout(BLOCK, 0, self.vector), "lane")
        text.first = f"({index}(blockIdx.x) * {BLOCK} + lane) * {self.vector}"
        text.step = f"{index}(gridDim.x) * {BLOCK * self.vector}"
        scope = rows.open(w, "row", 1)
        for members in rows.passes[:n]:
            emit_ready(w, rows.region, scope, 1)
            for m in members:
                self._gather(text, m, scope)
        emit_ready(w, rows.region, scope, 1)
        if n < len(rows.passes):
            for m, (accumulators, _) in text.pass_over(rows.passes[n], scope, "row", 1).items():
                text.combine(accumulators, 1)
                for (array, _), name in zip(self._arrays(m), self._names(text, accumulators), strict=True):
                    w.line(1, f"if (lane == 0) {array}[row * {w.size(self.blocks)} + {index}(blockIdx.x)] = {name};")
        if end:
            text.lane = f"{index}(blockIdx.x) + lane"
            text.store_rows(scope, "row", 1)
        return w.lines

    def _arrays(self, m: Value) -> list[tuple[str, str]]:
        """The scratch memory of a fold as arrays, and their types."""
        return [(f"reinterpret_cast<{t} *>(scratch{k})", t) for k, t in self.scratch[m]]

    def _names(self, text: RowText, accumulators: Sequence[Accumulator]) -> list[str]:
        return [name for a in accumulators for name, _ in text.variables(a)]

    def _gather(self, text: RowText, m: Value, scope: Env) -> None:
        """Put together what the blocks of an earlier launch have left."""
        w = self.w
        accumulators = text.accumulators(m, 1)
        arrays = iter(self._arrays(m))
        g = w.new_index(self.blocks, "g")
        with w.block(1, f"for ({w.index} {g} = lane; {g} < {w.size(self.blocks)}; {g} += {BLOCK})"):
            for a in accumulators:
                at = f"row * {w.size(self.blocks)} + {g}"
                found = [f"{next(arrays)[0]}[{at}]" for _ in text.variables(a)]
                text.update(a, found[0], found[-1] if a.at else "", 2)
        text.bind(m, accumulators, [f"o{k}" for k in m.attrs.get("keeps", ())], scope, 1)
