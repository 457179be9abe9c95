"""The first place of an extreme in a row, part by part: the extreme of each part is a fold that vectorizes, and only
the first part that has the extreme of all is read again.

A vector has half as many places of 64 bits as numbers of 32, and AVX2 no instruction for the lesser of two: places are
counted from the start of the part, in 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.codegen.cpu.text import combine, identity
from symc.codegen.cpu.writer import Target, Writer
from symc.ir.ops.reduce import FEW, gives_place
from symc.ir.value import Region, Value

#: How many elements a part has: more than short rows, and few enough that to read one again is little.
PART = 256
_NOWHERE = np.iinfo(np.int32).max
_EXTREMES = {"argmax": ("maximum", ">", "|"), "argmin": ("minimum", "<", "&")}


def is_first_place(v: Value) -> bool:
    """True if a fold gives a place and nothing else, of rows that may be long."""
    if v.op.name != "fold" or len(v.attrs["kinds"]) != 1 or not gives_place(v.attrs["kinds"][0]):
        return False
    (n,) = v.attrs["shape"]
    return not (isinstance(n, int) and n <= FEW)


def emit_first_place(out: Writer, v: Value, kept: Sequence[Target], env: dict[Value, str], depth: int) -> str:
    """Write such a fold: the name of the place. Of numbers that are nan the first is the extreme: no part after it is
    better. ``kept``: the rows in which it keeps what it compares."""
    region, n = v.regions[0], out.size(v.attrs["shape"][0])
    dtype, (kind, sign, bits) = region.results[0].dtype, _EXTREMES[v.attrs["kinds"][0]]
    part, best, first, here, i, j, place, found, result = (out.fresh(name) for name in "cbphijtqs")

    def element(rows: Sequence[Target], depth: int) -> str:
        results = region.results[: 1 + len(rows)]
        return out.emit_block(Region(region.params, results), out.enter(v, [i], env), [None, *rows], depth)[0]

    out.line(depth, f"{best} = {identity(kind, dtype)}")
    out.line(depth, f"{first} = 0")
    out.line(depth, f"for {part} in range(0, {n}, {PART}):")
    out.line(depth + 1, f"{here} = {identity(kind, dtype)}")
    out.line(depth + 1, f"for {i} in range({part}, min({part} + {PART}, {n})):")
    x = element([(k, (*before, i), shape) for k, before, shape in kept], depth + 2)
    out.line(depth + 2, f"{here} = {combine(kind, here, x, dtype) if dtype.kind != 'b' else f'{here} {bits} {x}'}")
    is_nan = f" or ({here} != {here} and {best} == {best})" if dtype.kind == "f" else ""
    better = f"{here} {sign} {best}{is_nan}" if dtype.kind != "b" else f"{here} != {best}"
    out.line(depth + 1, f"if {better}:")
    out.line(depth + 2, f"{best} = {here}")
    out.line(depth + 2, f"{first} = {part}")
    if dtype.kind == "b":
        out.line(depth + 2, "break")
    out.line(depth, f"{found} = i32({_NOWHERE})")
    out.line(depth, f"for {j} in range(min({PART}, {n} - {first})):")
    out.line(depth + 1, f"{i} = {first} + {j}")
    x = element([], depth + 1)
    here = f"({x} == {best})" + (f" or ({x} != {x})" if dtype.kind == "f" else "")
    out.line(depth + 1, f"{place} = (i32({j}) if {here} else i32({_NOWHERE}))")
    out.line(depth + 1, f"{found} = ({found} if {found} < {place} else {place})")
    out.line(depth, f"{result} = {first} + {found}")
    return result
