"""The text of checks of indices, and of what clamps an index that was checked: nothing."""

from __future__ import annotations

import numpy as np

from symc.codegen.cpu.text import failing
from symc.codegen.cpu.writer import Writer
from symc.codegen.kernel.index_splitting import size_of
from symc.ir.value import Value


def emit_check(out: Writer, v: Value, env: dict[Value, str], depth: int) -> None:
    """Write a check. An index that fails is 0 from there on, as the results are void: one comparison of unsigned
    numbers says both, and what clamps it is left out. One that is clipped is in bounds: where there is nothing to
    index, no kernel runs."""
    x = env[v] = out.expression(v.operands[0], env)
    if "size" in v.attrs and _is_clipped(v):
        out.within[v] = v.attrs["size"]
        return
    out.fails = True
    if "size" not in v.attrs:
        out.line(depth, f"bad = bad | {failing(v, x, out.size)[0]}")
        return
    fits, env[v] = out.fresh("t"), out.fresh("t")
    out.line(depth, f"{fits} = (u64({x}) < u64({out.size(v.attrs['size'])}))")
    out.line(depth, f"bad = bad | (not {fits})")
    out.line(depth, f"{env[v]} = ({x} if {fits} else 0)")
    out.within[v] = v.attrs["size"]


def _is_clipped(v: Value) -> bool:
    """True for the check of what is between 0 and the last place, if there is one."""
    x, ends = v.operands[0], {"minimum": v.attrs["size"] - 1, "maximum": 0}
    first = ends.pop(x.op.name, None)
    for inner, limit in (x.operands, x.operands[::-1]) if first is not None else ():
        if size_of(limit) == first and inner.op.name in ends:
            return any(size_of(o) == ends[inner.op.name] for o in inner.operands)
    return False


def clamped(out: Writer, v: Value) -> Value | None:
    """The index that a clamp leaves as it is, as it was checked."""
    if v.op.name not in ("minimum", "maximum") or v.dtype != np.int64:
        return None
    for x, limit in (v.operands, v.operands[::-1]):
        if x in out.within and size_of(limit) == (0 if v.op.name == "maximum" else out.within[x] - 1):
            return x
    return None
