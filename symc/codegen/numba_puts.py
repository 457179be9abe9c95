"""The text of updates and running sums: what `put` and `put_running` write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symc.codegen.numba_text import combine, loaded, number, stored
from symc.ir.dim import product
from symc.ir.ops.put import put
from symc.ir.value import Value

if TYPE_CHECKING:
    from symc.codegen.numba_cpu import Renderer


def emit_put(out: Renderer, v: Value, k: int, env: dict[Value, str], depth: int) -> None:
    """Write, or combine with, the element of result ``k`` that the put names."""
    kind, shape, dtype = v.attrs["kind"], v.attrs["shape"], v.dtype
    operands = [out.expression(o, env) for o in v.operands]
    place = out.offset(operands[len(operands) - len(shape) :], shape)
    if v.op is put:
        x = operands[0]
        if kind != "set":
            x = combine(kind, loaded(f"o{k}[{place}]", dtype), x, dtype, exact=True)
        out.line(depth, f"o{k}[{place}] = {stored(x, dtype)}")
        return
    axis, values, done = v.attrs["axis"], operands[: 1 + (kind == "linear")], operands[-len(shape) - 1]
    p, x = out.fresh("t"), out.fresh("t")
    out.line(depth, f"{p} = {place}")
    out.line(depth, f"{x} = {values[-1]}")
    if axis == len(shape) - 1:  # the innermost loop runs along it
        before = f"r{k}"
        out.running[before] = number(np.zeros((), dtype))
    else:
        step = "+" if v.attrs["reverse"] else "-"
        before = loaded(f"o{k}[{p} {step} {out.size(product(shape[axis + 1 :]))}]", dtype)
    y = before if axis == len(shape) - 1 else out.fresh("t")
    if kind == "linear":
        then = combine("add", combine("mul", before, values[0], dtype, exact=True), x, dtype, exact=True)
    else:
        then = combine(kind, before, x, dtype, exact=True)
    out.line(depth, f"{y} = {x} if {done} == 0 else {then}")
    out.line(depth, f"o{k}[{p}] = {stored(y, dtype)}")
