"""The first place in a row where something holds: the least of those places, or the greatest number (``lower_argmax``).

A vector has half as many places of 64 bits as numbers of 32, and AVX2 no instruction for the lesser of two. So they are
counted from the start of a part, in 32 bits, and parts after that where one is found are not looked at.
"""

from __future__ import annotations

import numpy as np

from symc.codegen.cpu.text import number
from symc.codegen.cpu.writer import Writer
from symc.ir.ops.cast import cast
from symc.ir.ops.logic import where
from symc.ir.traverse import region_params
from symc.ir.value import Region, Value

#: How many elements a part has: more than short rows, and few enough that half of the last one is little.
PART = 256
_NOWHERE = np.iinfo(np.int32).max


def is_first_place(v: Value) -> bool:
    """True if a fold over a row is the least place where a condition holds, and faster in parts: of long rows, or where
    numbers have 32 bits."""
    if v.op.name != "fold" or v.attrs["kinds"] != ("minimum",) or len(v.attrs["shape"]) != 1 or v.attrs.get("keeps"):
        return False
    (r,), (n,) = v.regions[0].results, v.attrs["shape"]
    if r.op is not where or r.dtype.kind != "i":
        return False
    _, place, nowhere = r.operands
    index = place.operands[0] if place.op is cast else place
    if index is not region_params(v.regions[0])[0] or nowhere.data is None:
        return False
    widths = [u.dtype.itemsize for u in v.regions[0].values if u.op.name == "load"]
    pays = n > PART if isinstance(n, int) else max(widths, default=8) <= 4
    return pays and nowhere.data == np.iinfo(r.dtype).max


def emit_first_place(out: Writer, v: Value, env: dict[Value, str], depth: int) -> None:
    """Write such a fold."""
    region, n = v.regions[0], out.size(v.attrs["shape"][0])
    (r,) = region.results
    env[v], part, here, j, i = (out.fresh(name) for name in "scpji")
    out.line(depth, f"{env[v]} = {number(r.operands[2].attrs['value'].data)}")
    out.line(depth, f"for {part} in range(0, {n}, {PART}):")
    out.line(depth + 1, f"{here} = i32({_NOWHERE})")
    out.line(depth + 1, f"for {j} in range(min({PART}, {n} - {part})):")
    out.line(depth + 2, f"{i} = {part} + {j}")
    (found,) = out.emit_block(Region(region.params, [r.operands[0]]), out.enter(v, [i], env), [None], depth + 2)
    place = out.fresh("t")
    out.line(depth + 2, f"{place} = (i32({j}) if {found} else i32({_NOWHERE}))")
    out.line(depth + 2, f"{here} = ({here} if {here} < {place} else {place})")
    out.line(depth + 1, f"if {here} < {_NOWHERE}:")
    out.line(depth + 2, f"{env[v]} = {'i32' if r.dtype == np.int32 else ''}({part} + {here})")
    out.line(depth + 2, "break")
