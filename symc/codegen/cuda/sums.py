"""Few and long rows, a sum of everything above all: many blocks for each row, and a launch for each pass.

Every block leaves what it has found in scratch memory. Each block of the next launch puts that together for itself, in
the same order, before it goes on: there is no counter, nothing waits, and the outcome depends on sizes alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.codegen.cpu.folds import fold_parts
from symc.codegen.cuda.nests import Rows, emit_ready
from symc.codegen.cuda.row_text import Accumulator, Layout, RowText
from symc.codegen.cuda.vectors import VECTORS
from symc.codegen.cuda.writer import BLOCK, Env, Text, Writer, scalar_type
from symc.ir.dim import Size, ceildiv, floordiv, maximum, minimum
from symc.ir.ops.reduce import gives_place
from symc.ir.value import Value

#: Blocks of a launch, and the fewest vectors that a thread should have.
BLOCKS, STEPS = 1024, 2


def split(rows: Rows, vector: int, wide: bool, name: str) -> Text:
    """The source of such a kernel."""
    return _Split(rows, vector, wide).source(name)


class _Split:
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
        w.line(1, f"for ({w.index} {g} = lane; {g} < {w.size(self.blocks)}; {g} += {BLOCK}) {{")
        for a in accumulators:
            at = f"row * {w.size(self.blocks)} + {g}"
            found = [f"{next(arrays)[0]}[{at}]" for _ in text.variables(a)]
            text.update(a, found[0], found[-1] if a.at else "", 2)
        w.line(1, "}")
        text.bind(m, accumulators, [f"o{k}" for k in m.attrs.get("keeps", ())], scope, 1)
