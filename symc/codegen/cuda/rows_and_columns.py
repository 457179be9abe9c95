"""Rows beside folds down the columns: the gradients of a bias, or of the scale of a layer norm, on the way.

A group of threads does every so many of the rows, one after another, and collects what goes down the columns: in
registers, since a thread has the same columns in every row. Each group leaves a row of partial results; a second launch
puts these together. Without folds along the rows, other groups may have other columns; and where there are few rows, a
block does all of them for some columns, and no second launch is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.codegen.cpu.text import identity, number
from symc.codegen.cuda.nests import Rows, is_heavy, rows_of
from symc.codegen.cuda.partials import ACROSS, BLOCKS, TOGETHER, Partial, together
from symc.codegen.cuda.row_text import Layout, RowText, widest
from symc.codegen.cuda.rows import layout, power
from symc.codegen.cuda.source import WARP
from symc.codegen.cuda.vectors import VECTORS, vector_type
from symc.codegen.cuda.writer import BLOCK, VECTOR, Kernel, Text, Variants, Writer
from symc.ir.dim import Size, ceildiv, floordiv
from symc.ir.dtypes import computed
from symc.ir.size_extremes import maximum, minimum
from symc.ir.value import Region

#: Rows of partial results at least and at most, where there are rows enough, how many elements they should have, and
#: how many rows a group should have.
GROUPS, MOST_GROUPS, PARTIAL, ROWS = 256, 1024, 2**20, 4
#: Up to so many rows, a block of so many groups does all of them; and the shared memory it may need.
FEW_ROWS, HIGH, SHARED = 256, 16, 40960


def rows_and_columns(kernel: Kernel) -> RowsAndColumns | None:
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
    return RowsAndColumns(kernel, found)


def _is_identity(start: int | Region, kind: str) -> bool:
    """True if what a result holds before is what a fold starts from."""
    if isinstance(start, int):
        return False
    (v,) = start.results
    filled = v.regions[0].results[0] if v.op.name == "generate" else v
    return filled.data is not None and number(filled.data) == identity(kind, filled.dtype)


class RowsAndColumns(Variants):
    def __init__(self, kernel: Kernel, rows: Rows):
        self.kernel, self.rows = kernel, rows
        self.folds = any(m.op.name == "fold" for m in rows.members)

    def choose(self, number: Callable[[Size], int]) -> str:
        if self.folds:
            how = layout(self.rows, number, sum(bool(o.put) for o in self.rows.outs))
            return self.chosen(how.word, number)
        length = number(self.rows.length)
        vector = 1 if is_heavy(self.kernel.loops.region) else max(1, VECTOR // widest(self.rows))
        vector = vector if number(self.rows.inner[-1]) % vector == 0 else 1
        if number(self.rows.count) <= FEW_ROWS:
            enough = length >= BLOCKS // 2 * WARP * vector
            vector = max((v for v in (vector if enough else 1, 1) if self._shared(v) <= SHARED), default=0)
            if vector:
                return self.chosen(f"{Layout(WARP, 1, vector).word}_whole", number)
        return self.chosen(Layout(min(BLOCK, power(-(-length // vector))), 1, vector).word, number)

    def _shared(self, vector: int) -> int:
        """Bytes of shared memory in which a block combines what its groups have."""
        dtypes = [o.value.regions[0].results[o.number].dtype for o in self.rows.outs if o.put]
        return sum(HIGH * WARP * vector * d.itemsize for d in dtypes)

    def write(self, words: Sequence[str], name: str) -> Text:
        return _Text(self, Layout.of(words[0]), words).source(name)


class _Text:
    """Writes one variant."""

    def __init__(self, of: RowsAndColumns, how: Layout, words: Sequence[str]):
        self.of, self.rows, self.how, self.whole = of, of.rows, how, "whole" in words
        self.w = Writer(of.kernel, "i64" if "wide" in words else "i32")
        self.several = max(1, BLOCK // how.threads) if how.threads <= WARP or not of.folds else 1
        dtypes = [o.value.regions[0].results[o.number].dtype for o in self.rows.outs if o.put]
        shared = self.several * how.threads * how.steps * how.vector * sum(computed(d).itemsize for d in dtypes)
        self.joined = not self.whole and self.several > 1 and 0 < shared <= SHARED
        each = self.several if self.joined else 1  # groups that leave one row of partial results
        most = minimum(MOST_GROUPS, maximum(GROUPS, floordiv(PARTIAL, maximum(1, self.rows.length))))
        wanted: Size = minimum(most, ceildiv(self.rows.count, ROWS * each))
        self.blocks: Size = maximum(1, wanted if self.joined else ceildiv(wanted, self.several))
        self.groups: Size = self.blocks * self.several
        self.left: Size = self.blocks if self.joined else self.groups
        if self.whole:
            self.several = self.groups = HIGH
        self.partials: dict[int, Partial] = {}
        for k, out in enumerate(self.rows.outs):
            if out.put:
                dtype = out.value.regions[0].results[out.number].dtype
                self.partials[k] = Partial(out.put, dtype, len(self.partials))

    def source(self, name: str) -> Text:
        w, rows, how = self.w, self.rows, self.how
        w.parts[VECTORS] = None
        first = self._rows()
        if self.whole:
            return self._one(name)
        w.lines = []
        names = together(w, list(self.partials.values()), rows.length, self.left)
        for (k, p), found in zip(self.partials.items(), names, strict=True):
            w.line(1, f"o{k}[column] = {w.stored(found, p.dtype)};")
        block = how.threads * self.several
        tiles: Size = 1 if self.of.folds else ceildiv(rows.length, how.threads * how.vector)
        return w.launches([(f"{name}_rows", (self.blocks, tiles, 1), block, first),
                           (f"{name}_parts", (ceildiv(rows.length, ACROSS), 1, 1), TOGETHER, w.lines)],
                          [p.nbytes * self.left * rows.length for p in self.partials.values()])

    def _rows(self) -> list[str]:
        """The launch that goes through the rows."""
        w, rows, how, index = self.w, self.rows, self.how, self.w.index
        w.is_index("row", rows.count)
        w.is_index("lane", how.threads)
        w.line(1, f"const {index} lane = threadIdx.x % {how.threads};")
        group = f"{index}(blockIdx.x) * {self.several} + " if not self.whole else ""
        w.line(1, f"const {index} group = {group}threadIdx.x / {how.threads};")
        text = RowText(w, rows, how, "lane", "live")
        if not self.of.folds:
            text.first = f"{index}(blockIdx.{'x' if self.whole else 'y'}) * {how.threads * how.vector}"
        self._start(text)
        several_rows = "#pragma unroll 1" if self.of.folds else "#pragma unroll 4"
        w.line(1, several_rows)
        with w.block(1, f"for ({index} base = 0; base < {w.size(rows.count)}; base += {w.size(self.groups)})"):
            w.line(2, f"const bool live = group < {w.size(rows.count)} - base;")
            w.line(2, f"const {index} row = live ? base + group : {w.size(rows.count)} - 1;")
            text.write(rows.open(w, "row", 2), "row", 2)
            if how.threads > WARP and sum(m[0].op.name == "fold" for m in rows.passes) == 1:
                w.line(2, "__syncthreads();  // what is shared is written again")
        (self._combine if self.whole else self._join if self.joined else self._finish)(text)
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
            w.each(1, "c", how.steps, "")
            w.each(2, "e", how.vector, f"{text.columns[k]}[c].at[e] = {zero};")

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
        w.each(1, "c", how.steps)
        start = f"{text.first} + " * bool(text.first)
        w.line(2, f"const {w.index} j = {start}(c * {how.threads} + lane) * {how.vector};")
        for k, p in self.partials.items():
            w.line(2, f"if (j < {n}) store_array<{how.vector}>({p.array} + group * {n} + j, {text.columns[k]}[c].at);")
        w.line(1, "}")

    def _join(self, text: RowText) -> None:
        """Leave what all groups of a block have collected, as one row."""
        w, how, n = self.w, self.how, self.w.size(self.rows.length)
        columns = how.threads * how.steps * how.vector
        for k, p in self.partials.items():
            w.line(1, f"__shared__ {p.type} part{k}[{self.several}][{columns}];")
            w.each(1, "c", how.steps, "")
            at = f"[threadIdx.x / {how.threads}][(c * {how.threads} + lane) * {how.vector} + e]"
            w.line(2, f"for (int e = 0; e < {how.vector}; ++e) part{k}{at} = {text.columns[k]}[c].at[e];")
        w.line(1, "__syncthreads();")
        with w.block(1, f"for (int c = threadIdx.x; c < {columns}; c += {how.threads * self.several})"):
            start = f"{text.first} + " * bool(text.first)
            w.line(2, f"const {w.index} j = {start}c;")
            w.line(2, f"if (j >= {n}) break;")
            for k, p in self.partials.items():
                w.line(2, f"{p.type} s{k} = part{k}[0][c];")
                other = w.combined(p.kind, f"s{k}", f"part{k}[h][c]", p.dtype)
                w.line(2, "#pragma unroll 4")
                w.line(2, f"for (int h = 1; h < {self.several}; ++h) s{k} = {other};")
                w.line(2, f"{p.array}[{w.index}(blockIdx.x) * {n} + j] = s{k};")

    # -- all rows by one block

    def _one(self, name: str) -> Text:
        """The only launch."""
        w, how, block = self.w, self.how, HIGH * WARP
        blocks = ceildiv(self.rows.length, WARP * how.vector)
        return w.launches([(name, (blocks, 1, 1), block, w.lines)])

    def _combine(self, text: RowText) -> None:
        """Combine what the groups of a block have collected, and write the results."""
        w, how, n = self.w, self.how, self.w.size(self.rows.length)
        for k, p in self.partials.items():
            w.line(1, f"__shared__ {p.type} part{k}[{HIGH}][{WARP * how.vector}];")
            w.each(1, "e", how.vector, f"part{k}[group][e * {WARP} + lane] = {text.columns[k]}[0].at[e];")
        w.line(1, "__syncthreads();")
        w.line(1, f"const {w.index} j = {text.first} + lane * {how.vector};")
        w.line(1, f"if (group > 0 || j >= {n}) return;")
        for k, p in self.partials.items():
            with w.loop(1, "e", how.vector):
                w.line(2, f"{p.type} s = part{k}[0][e * {WARP} + lane];")
                other = w.combined(p.kind, "s", f"part{k}[h][e * {WARP} + lane]", p.dtype)
                w.each(2, "h", HIGH, f"s = {other};", first=1)
                w.line(2, f"o{k}[j + e] = {w.stored('s', p.dtype)};")
