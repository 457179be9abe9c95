"""Partial results of columns: where blocks leave what they have folded, and the launch that puts it together.

Each part of the rows has a row of partial results in scratch memory. They are combined in order, so the outcome does
not depend on which block was done first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.codegen.cuda.writer import Writer, scalar_type
from symc.ir.dim import Size, ceildiv, floordiv, maximum, minimum
from symc.ir.record import dataclass

#: Blocks that a launch should have, and the fewest rows that are a part.
BLOCKS, ROWS = 1024, 64
#: Parts at most: as many partial results are combined by one thread.
MOST_PARTS = 256


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
        return 4 if self.dtype == np.float16 else self.dtype.itemsize

    @property
    def array(self) -> str:
        """The scratch memory as an array."""
        return f"reinterpret_cast<{self.type} *>(scratch{self.scratch})"


def parts(rows: Size, blocks: Size) -> Size:
    """In how many parts rows are cut, where there are so many blocks of columns."""
    wanted = minimum(MOST_PARTS, floordiv(BLOCKS, maximum(1, blocks)))
    return maximum(1, minimum(wanted, ceildiv(rows, ROWS)))


def put_together(w: Writer, found: Sequence[Partial], column: str, columns: Size, count: Size,
                 depth: int) -> list[str]:
    """Write the loop over the partial results of a column; the names of the outcomes."""
    names = []
    for p in found:
        names.append(w.fresh("s"))
        w.line(depth, f"{p.type} {names[-1]} = {p.array}[{column}];")
    i = w.new_index(count, "g")
    w.line(depth, "#pragma unroll 8")
    w.line(depth, f"for ({w.index} {i} = 1; {i} < {w.size(count)}; ++{i}) {{")
    for name, p in zip(names, found, strict=True):
        part = f"{p.array}[{i} * {w.size(columns)} + {column}]"
        w.line(depth + 1, f"{name} = {w.combined(p.kind, name, part, p.dtype)};")
    w.line(depth, "}")
    return names
