"""The text of sums of everything: a loop over blocks, each of which keeps what it has summed, and what comes after.

Which kernels have them, and how long blocks are, is said in ``chunks.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.codegen.cpu.chunks import ARGUMENTS, LAST
from symc.codegen.cpu.folds import Accumulator
from symc.codegen.cpu.writer import Writer
from symc.ir.dim import Size

INSIDE = 2  # the depth inside the loop over blocks


def open_block(out: Writer) -> None:
    """A loop over blocks: what is written next is one of them."""
    out.block = out.fresh("b")
    out.line(1, f"for {out.block} in range({', '.join(ARGUMENTS)}):")


def limits_in_block(out: Writer, s: Size) -> tuple[str, str]:
    """Range of the outermost axis of the sums in a block."""
    assert out.chunks is not None and out.chunks.block is not None
    step = out.size(out.chunks.block)
    return f"{out.block} * {step}", f"min({out.block} * {step} + {step}, {out.size(s)})"


def close_block(out: Writer, every: Sequence[Accumulator]) -> None:
    """Keep what a block has summed. What is written next is done after all: first, that is put together, in order."""
    assert out.chunks is not None
    for a in every:
        a.keep(INSIDE, out.block)
    out.block = ""
    out.line(1, f"if {LAST} > 0:")
    out.after = len(out.lines)
    for a in every:
        a.restart(1)
    b = out.fresh("b")
    out.line(1, f"for {b} in range({out.size(out.chunks.units)}):")
    for a in every:
        a.add_kept(2, b)
