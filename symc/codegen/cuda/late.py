"""Rows beside folds down the columns: the gradients of a bias, or of the scale of a layer norm, on the way.

A group of threads does every so many of the rows, one after another, and collects what goes down the columns: in
registers, since a thread has the same columns in every row. Each group leaves a row of partial results; a second launch
puts these together. Without folds along the rows, other groups may have other columns.
"""

from __future__ import annotations

from collections.abc import Callable

from symc.codegen.cpu.text import identity, number
from symc.codegen.cuda.nests import Rows, rows_of
from symc.codegen.cuda.partials import TOGETHER, Partial, together
from symc.codegen.cuda.row_text import Layout, RowText, widest
from symc.codegen.cuda.rows import layout, power
from symc.codegen.cuda.source import WARP, CudaSource, Entry
from symc.codegen.cuda.vectors import VECTORS, vector_type
from symc.codegen.cuda.writer import BLOCK, VECTOR, Kernel, Text, Writer, chosen, is_heavy
from symc.ir.dim import Size, ceildiv, maximum, minimum
from symc.ir.value import Region

#: Groups at most, and how many rows one should have.
GROUPS, ROWS = 512, 4


def late(kernel: Kernel) -> Late | None:
    """The variants of a kernel with folds that are complete when it ends; None for another."""
    if kernel.loops.columns or kernel.is_complex or not kernel.loops.starts:
        return None
    found = rows_of(kernel)
    if found is None or not found.outer:
        return None
    downs = {k: o for k, o in enumerate(found.outs) if o.put}
    if set(downs) != set(kernel.loops.starts) or not all(
            _is_identity(kernel.loops.starts[k], o.put) for k, o in downs.items()):
        return None
    return Late(kernel, found)


def _is_identity(start: int | Region, kind: str) -> bool:
    """Whether what a result holds before is what a fold starts from."""
    if isinstance(start, int):
        return False
    (v,) = start.results
    filled = v.regions[0].results[0] if v.op.name == "generate" else v
    return filled.op.name == "constant" and number(filled.attrs["value"].data) == identity(kind, filled.dtype)


class Late:
    def __init__(self, kernel: Kernel, rows: Rows):
        self.kernel, self.rows = kernel, rows
        self.folds = any(m.op.name == "fold" for m in rows.members)
        self.texts: dict[tuple[str, str], Text] = {}

    def choose(self, number: Callable[[Size], int]) -> str:
        if self.folds:
            how = layout(self.rows, number, sum(bool(o.put) for o in self.rows.outs))
            return chosen(how.word, self.text, number)
        length = number(self.rows.length)
        vector = 1 if is_heavy(self.kernel.loops.region) else max(1, VECTOR // widest(self.rows))
        vector = vector if number(self.rows.inner[-1]) % vector == 0 else 1
        return chosen(Layout(min(BLOCK, power(-(-length // vector))), 1, vector).word, self.text, number)

    def source(self, choice: str, name: str) -> CudaSource:
        return self.text(choice, name)[0]

    def text(self, choice: str, name: str) -> Text:
        key = choice, name
        if key not in self.texts:
            words = choice.split("_")
            self.texts[key] = _Text(self, Layout.of(words[0]), "wide" in words).source(name)
        return self.texts[key]


class _Text:
    """Writes one variant."""

    def __init__(self, of: Late, how: Layout, wide: bool):
        self.of, self.rows, self.how = of, of.rows, how
        self.w = Writer(of.kernel, "i64" if wide else "i32")
        self.several = max(1, BLOCK // how.threads) if how.threads <= WARP or not of.folds else 1
        wanted: Size = minimum(GROUPS, ceildiv(self.rows.count, ROWS))
        self.blocks: Size = maximum(1, ceildiv(wanted, self.several))
        self.groups: Size = self.blocks * self.several
        self.partials: dict[int, Partial] = {}
        for k, out in enumerate(self.rows.outs):
            if out.put:
                dtype = out.value.regions[0].results[out.number].dtype
                self.partials[k] = Partial(out.put, dtype, len(self.partials))

    def source(self, name: str) -> Text:
        w, rows, how = self.w, self.rows, self.how
        w.parts[VECTORS] = None
        first = self._rows()
        w.lines = []
        names = together(w, list(self.partials.values()), rows.length, self.groups)
        for (k, p), found in zip(self.partials.items(), names, strict=True):
            w.line(1, f"o{k}[column] = {w.stored(found, p.dtype)};")
        second = w.lines
        arguments = w.arguments(scratch=len(self.partials))
        block = how.threads * self.several
        tiles: Size = 1 if self.of.folds else ceildiv(rows.length, how.threads * how.vector)
        w.lines = [w.head(f"{name}_rows", arguments, block), *first, "}",
                   w.head(f"{name}_parts", arguments, TOGETHER), *second, "}"]
        return w.finish([Entry(f"{name}_rows", arguments, (self.blocks, tiles, 1), block),
                         Entry(f"{name}_parts", arguments, (ceildiv(rows.length, WARP), 1, 1), TOGETHER)],
                        [p.nbytes * self.groups * rows.length for p in self.partials.values()]), w

    def _rows(self) -> list[str]:
        """The launch that goes through the rows."""
        w, rows, how, index = self.w, self.rows, self.how, self.w.index
        w.is_index("row", rows.count)
        w.is_index("lane", how.threads)
        w.line(1, f"const {index} lane = threadIdx.x % {how.threads};")
        w.line(1, f"const {index} group = {index}(blockIdx.x) * {self.several} + threadIdx.x / {how.threads};")
        text = RowText(w, rows, how, "lane", "live")
        if not self.of.folds:
            text.first = f"{index}(blockIdx.y) * {how.threads * how.vector}"
        self._start(text)
        several_rows = "#pragma unroll 1" if self.of.folds else "#pragma unroll 4"
        w.line(1, several_rows)
        w.line(1, f"for ({index} base = 0; base < {w.size(rows.count)}; base += {w.size(self.groups)}) {{")
        w.line(2, f"const bool live = group < {w.size(rows.count)} - base;")
        w.line(2, f"const {index} row = live ? base + group : {w.size(rows.count)} - 1;")
        text.write(rows.open(w, "row", 2), "row", 2)
        if how.threads > WARP and sum(m[0].op.name == "fold" for m in rows.passes) == 1:
            w.line(2, "__syncthreads();  // what is shared is written again")
        w.line(1, "}")
        self._finish(text)
        return w.lines

    def _start(self, text: RowText) -> None:
        """Nothing is collected yet."""
        w, how = self.w, self.how
        for k, p in self.partials.items():
            zero = w.identity(p.kind, p.dtype)
            if not how.steps:
                text.columns[k] = f"({p.array} + group * {w.size(self.rows.length)})"
                self._clear(text.columns[k], zero)
                continue
            text.columns[k] = w.fresh("d")
            w.line(1, f"{vector_type(p.type, how.vector)} {text.columns[k]}[{how.steps}];")
            w.line(1, "#pragma unroll")
            w.line(1, f"for (int c = 0; c < {how.steps}; ++c)")
            w.line(2, "#pragma unroll")
            w.line(2, f"for (int e = 0; e < {how.vector}; ++e) {text.columns[k]}[c].at[e] = {zero};")

    def _clear(self, array: str, zero: str) -> None:
        """Nothing is collected in memory yet. A thread clears what it writes."""
        w, how, n = self.w, self.how, self.w.size(self.rows.length)
        w.line(1, f"for ({w.index} j = lane * {how.vector}; j < {n}; j += {how.threads * how.vector})")
        w.line(2, f"for (int e = 0; e < {how.vector}; ++e) {array}[j + e] = {zero};")

    def _finish(self, text: RowText) -> None:
        """Leave what was collected in registers."""
        w, how = self.w, self.how
        if not how.steps:
            return
        n = w.size(self.rows.length)
        w.line(1, "#pragma unroll")
        w.line(1, f"for (int c = 0; c < {how.steps}; ++c) {{")
        start = f"{text.first} + " * bool(text.first)
        w.line(2, f"const {w.index} j = {start}(c * {how.threads} + lane) * {how.vector};")
        for k, p in self.partials.items():
            w.line(2, f"if (j < {n}) store_array<{how.vector}>({p.array} + group * {n} + j, {text.columns[k]}[c].at);")
        w.line(1, "}")
