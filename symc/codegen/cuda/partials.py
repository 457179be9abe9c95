"""Partial results of columns: where blocks leave what they have folded, and the launch that puts it together.

Each part of the rows has a row of partial results in scratch memory. They are combined in order, so the outcome does
not depend on which block was done first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.codegen.cuda.writer import Writer, scalar_type
from symc.ir.dim import Size, ceildiv, floordiv
from symc.ir.dtypes import computed
from symc.ir.record import dataclass
from symc.ir.size_extremes import maximum, minimum

#: Blocks that a launch should have, and the fewest rows that are a part.
BLOCKS, ROWS = 1024, 64
#: Parts at most; threads of a block that puts them together, and how many columns it does.
MOST_PARTS, TOGETHER, ACROSS = 256, 512, 16


@dataclass(frozen=True)
class Partial:
    """One fold of columns: its kind, the dtype of what is folded, and the number of its scratch memory."""

    kind: str
    dtype: np.dtype
    scratch: int

    @property
    def type(self) -> str:
        return scalar_type(self.dtype)

    @property
    def nbytes(self) -> int:
        return computed(self.dtype).itemsize

    @property
    def array(self) -> str:
        """The scratch memory as an array."""
        return f"reinterpret_cast<{self.type} *>(scratch{self.scratch})"


def parts(rows: Size, blocks: Size) -> Size:
    """Number of parts in which rows are cut, where there are so many blocks of columns."""
    wanted = minimum(MOST_PARTS, floordiv(BLOCKS, maximum(1, blocks)))
    return maximum(1, minimum(wanted, ceildiv(rows, ROWS)))


def together(w: Writer, found: Sequence[Partial], columns: Size, count: Size) -> list[str]:
    """Write the head of a launch that puts partial results together, a block for ``ACROSS`` columns: what comes next is
    done once for each ``column``. The names of the outcomes."""
    high = TOGETHER // ACROSS
    w.is_index("column", columns)
    w.line(1, f"const {w.index} high = threadIdx.x / {ACROSS};")
    w.line(1, f"const {w.index} column = {w.index}(blockIdx.x) * {ACROSS} + threadIdx.x % {ACROSS};")
    names = []
    for p in found:
        names.append(w.fresh("s"))
        w.line(1, f"{p.type} {names[-1]} = {w.identity(p.kind, p.dtype)};")
    i = w.new_index(count, "g")
    with w.block(1, f"if (column < {w.size(columns)})"):
        w.line(2, "#pragma unroll 4")
        with w.block(2, f"for ({w.index} {i} = high; {i} < {w.size(count)}; {i} += {high})"):
            for name, p in zip(names, found, strict=True):
                part = f"{p.array}[{i} * {w.size(columns)} + column]"
                w.line(3, f"{name} = {w.combined(p.kind, name, part, p.dtype)};")
    for name, p in zip(names, found, strict=True):
        w.line(1, f"__shared__ {p.type} {name}part[{high}][{ACROSS}];")
        w.line(1, f"{name}part[high][threadIdx.x % {ACROSS}] = {name};")
    w.line(1, "__syncthreads();")
    w.line(1, f"if (high > 0 || column >= {w.size(columns)}) return;")
    for name, p in zip(names, found, strict=True):
        other = f"{name}part[h][threadIdx.x]"
        w.line(1, f"for (int h = 1; h < {high}; ++h) {name} = {w.combined(p.kind, name, other, p.dtype)};")
    return names
