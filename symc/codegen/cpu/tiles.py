"""Tiles of loops over a result of which an operand lies the other way: a transpose, and what is computed with one.

Elements of a row of the result are a row of the operand apart: each is on a line of the cache of its own, and on a page
of its own where rows are long. The other elements of these lines are those of the next rows of the result. So some rows
are written together, a piece at a time, whose lines and pages are at hand then:

         operand            result
        ┌─┬─┬─┬─┐          ┌───────┬───────┐
        │↓│ │ │ │          │→→→→→→→│       │
        │↓│ │ │ │   PIECE  │→→→→→→→│       │  ROWS
        │↓│ │ │ │          │→→→→→→→│       │
        └─┴─┴─┴─┘          └───────┴───────┘

Of a few rows (the colours of pixels, which become planes) all are written together, an element of each: vectors of the
operand are read once, and taken apart in registers.
"""

from __future__ import annotations

from symc.codegen.cpu.turned import few_along, lies_along
from symc.codegen.cpu.writer import Writer
from symc.ir.dim import Size
from symc.ir.value import Value

#: Rows of a tile, and elements of each: a line of the operand, and maybe a page, for every element of a row. Measured:
#: 8 to 128 rows of 64 to 256.
ROWS, PIECE = 64, 128


def turned(v: Value) -> int | None:
    """The axis of a `generate`, not the last, along which elements of an operand lie side by side; None if there is no
    such operand, or rows are certainly short."""
    shape = v.attrs["shape"]
    if isinstance(shape[-1], int) and shape[-1] <= PIECE or few_along(v) is not None:
        return None
    return lies_along(v)


def open_few(out: Writer, shape: tuple[Size, ...], axis: int, depth: int) -> tuple[tuple[str, ...], int]:
    """Write the heads of loops of which that over ``axis`` is inside of the others; returns index names and the depth
    inside."""
    index = [out.fresh("i") for _ in shape]
    for k in [*(k for k in range(len(shape)) if k != axis), axis]:
        out.line(depth, f"for {index[k]} in range({out.extent(shape, k, depth)}):")
        depth += 1
    return tuple(index), depth


def open_tiles(out: Writer, shape: tuple[Size, ...], axis: int, depth: int) -> tuple[tuple[str, ...], int]:
    """Write the heads of loops over tiles and inside of them; returns index names and the depth inside."""
    index = [out.fresh("i") for _ in shape]
    starts = {axis: (out.fresh("c"), ROWS), len(shape) - 1: (out.fresh("c"), PIECE)}
    ends = {}
    for k, i in enumerate(index):
        extent = out.extent(shape, k, depth)
        if k in starts:
            first, ends[k] = extent.split(", ") if ", " in extent else ("0", extent)
            start, step = starts[k]
            out.line(depth, f"for {start} in range({first}, {ends[k]}, {step}):")
        else:
            out.line(depth, f"for {i} in range({extent}):")
        depth += 1
    for k, (start, step) in starts.items():
        out.line(depth, f"for {index[k]} in range({start}, min({start} + {step}, {ends[k]})):")
        depth += 1
    return tuple(index), depth
