"""Kernels that work on rows: folds along a row, and what is made of them for every element.

Rows of up to 128 elements share a warp, those of up to 1024 have one, longer ones a block of up to 1024 threads; up to
32 768 elements or so lie in registers meanwhile, longer rows are read again in every pass. A few rows that are longer
still (a sum of everything) are worked on by many blocks each, in several launches (``sums.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.codegen.cuda.nests import Rows, is_heavy, rows_of
from symc.codegen.cuda.row_text import Layout, RowText, lines_of, widest
from symc.codegen.cuda.source import MOST_THREADS, WARP
from symc.codegen.cuda.sums import split
from symc.codegen.cuda.writer import VECTOR, Kernel, Text, Variants, Writer
from symc.ir.dim import Size, ceildiv
from symc.ir.traverse import every_value, postorder, region_params

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
            return split(self.rows, int(words[1][1:]), "wide" in words, name)
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
