"""The text of updates, running sums and sorting: what `store` and its kin write."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symc.codegen.cpu.text import combine, loaded, number, stored
from symc.codegen.cpu.writer import Writer
from symc.ir.dim import product
from symc.ir.op import Op
from symc.ir.ops.store import insert, insert_place, store, store_packed, store_running
from symc.ir.value import Value

Env = dict[Value, str]


def _store(out: Writer, v: Value, k: int, env: Env, depth: int) -> None:
    """Write, or combine with, the element of result ``k`` that the store names."""
    x, *place = (out.expression(o, env) for o in v.operands)
    put(out, v, f"o{k}[{out.offset(place, v.attrs['shape'])}]", x, depth)


def put(out: Writer, v: Value, at: str, x: str, depth: int) -> None:
    """Write an element as a store says, or combine it with what is there."""
    kind, dtype = v.attrs["kind"], v.dtype
    if kind != "set":
        x = combine(kind, loaded(at, dtype), x, dtype, exact=True)
    out.line(depth, f"{at} = {stored(x, dtype)}")


def _store_running(out: Writer, v: Value, k: int, env: Env, depth: int) -> None:
    """Combine with the element before: in a variable, if the innermost loop runs along the axis, else in memory."""
    kind, shape, dtype, axis = v.attrs["kind"], v.attrs["shape"], v.dtype, v.attrs["axis"]
    operands = [out.expression(o, env) for o in v.operands]
    values, done = operands[: 1 + (kind == "linear")], operands[-len(shape) - 1]
    p, x = out.fresh("t"), out.fresh("t")
    out.line(depth, f"{p} = {out.offset(operands[-len(shape) :], shape)}")
    out.line(depth, f"{x} = {values[-1]}")
    innermost = axis == len(shape) - 1
    if innermost:
        before = f"r{k}"
        out.running[before] = number(np.zeros((), dtype))
    else:
        step = "+" if v.attrs["reverse"] else "-"
        before = loaded(f"o{k}[{p} {step} {out.size(product(shape[axis + 1 :]))}]", dtype)
    y = before if innermost else out.fresh("t")
    if kind == "linear":
        then = combine("add", combine("mul", before, values[0], dtype, exact=True), x, dtype, exact=True)
    else:
        then = combine(kind, before, x, dtype, exact=True)
    out.line(depth, f"{y} = {x} if {done} == 0 else {then}")
    out.line(depth, f"o{k}[{p}] = {stored(y, dtype)}")


def _insert(out: Writer, v: Value, k: int, env: Env, depth: int) -> None:
    """Move what is greater one place up, from the end on; equals stay in front."""
    shape, axis = v.attrs["shape"], v.attrs["axis"]
    value, done, *place = (out.expression(o, env) for o in v.operands)
    p, x, j, stride = out.fresh("t"), out.fresh("t"), out.fresh("t"), out.size(product(shape[axis + 1 :]))
    out.line(depth, f"{p} = {out.offset(place, shape)}")
    last = f"o{k}[{p} - {stride}]"
    if v.op is insert_place:
        start, dtype = out.fresh("t"), v.operands[0].dtype
        out.line(depth, f"{start} = {p} - {done} * {stride}")
        out.line(depth, f"{x} = {loaded(f'{value}[{p}]', dtype)}")
        greatest, new = loaded(f"{value}[{start} + {last} * {stride}]", dtype), done
    else:
        out.line(depth, f"{x} = {value}")
        greatest, new = loaded(last, v.dtype), stored(x, v.dtype)
    out.line(depth, f"{j} = {done}")
    out.line(depth, f"while {j} > 0 and sorts_before({x}, {greatest}):")
    out.line(depth + 1, f"o{k}[{p}] = {last}")
    out.line(depth + 1, f"{p} -= {stride}")
    out.line(depth + 1, f"{j} -= 1")
    out.line(depth, f"o{k}[{p}] = {new}")


def _store_packed(out: Writer, v: Value, k: int, env: Env, depth: int) -> None:
    """One element in each of several blocks of result ``k``."""
    shape, axis = v.attrs["shape"], v.attrs["axis"]
    n = len(v.operands) - len(shape)
    place = [out.expression(o, env) for o in v.operands[n:]]
    whole = (*shape[:axis], shape[axis] * n, *shape[axis + 1 :])
    block = product(shape[axis:])
    at = out.fresh("t")
    out.line(depth, f"{at} = {out.offset(place, whole)}")
    for j, x in enumerate(v.operands[:n]):
        more = "" if j == 0 else f" + {out.size(block * j)}"
        out.line(depth, f"o{k}[{at}{more}] = {stored(out.expression(x, env), v.dtype)}")


#: How each op that ends a kernel is written: into result ``k``.
PUTS: dict[Op, Callable[[Writer, Value, int, Env, int], None]] = {
    store: _store, store_packed: _store_packed, store_running: _store_running, insert: _insert, insert_place: _insert}
