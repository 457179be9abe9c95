"""Loops and branches in StableHLO: while loops over values, whose bodies see what is around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symc.export.stablehlo_module import Module, is_static
from symc.ir.op import lookup, splat
from symc.ir.ops.control import BOOL, COUNT
from symc.ir.ops.leaf import scalar
from symc.ir.size_extremes import minimum
from symc.ir.types import DTYPES, TensorType, TupleType
from symc.ir.value import Value

I64 = DTYPES["i64"]


def array_attr(numbers: Sequence[Any]) -> str:
    """Text of an attribute of numbers."""
    return f"array<i64{': ' if numbers else ''}{', '.join(map(str, numbers))}>"


def axes_attr(numbers: Sequence[int]) -> str:
    """Text of an attribute of axes."""
    return f"[{', '.join(map(str, numbers))}]"


def _loop(m: Module, starts: Sequence[str], of: Sequence[Any], test: Callable[[list[str]], str],
          step: Callable[[list[str]], list[str]]) -> list[str]:
    """A while loop over values."""
    regions = []
    for make, result in ((lambda names: [test(names)], [BOOL]), (step, of)):
        names = [m.fresh() for _ in of]
        regions.append(m.body_lines(list(zip(names, of, strict=True)), lambda: (make(names), result)))  # noqa: B023
    return m.op("while", starts, of, TupleType(of), "", regions)


def scan(m: Module, v: Value) -> Any:
    """A while loop with a count; rows are read, and results written, at the place of the step."""
    (region,), a = v.regions, v.attrs
    c, k, n = a["carry"], a["xs"], a["length"]
    names, several = m.names(v), isinstance(v.type, TupleType)
    stacks = list(v.type.items if several else [v.type])[c:]
    if n == 0:
        found = [*names[:c], *[m.value(splat(0, t)) for t in stacks]]
        return found if several else found[0]
    of = [COUNT, *region.params[:c], *stacks]
    starts = [m.value(scalar(0, I64)), *names[:c], *[m.value(splat(0, t)) for t in stacks]]
    end = m.value(lookup("size")(value=n))

    def step(now: list[str]) -> list[str]:
        at = now[0]
        if a["reverse"]:
            last = m.simple("subtract", [end, m.constant(1, I64)], COUNT)
            at = m.simple("subtract", [last, at], COUNT)
        rows = [_row(m, names[c + j], v.operands[c + j].type, region.params[c + j], at) for j in range(k)]
        new = m.within(region, [*now[1 : c + 1], *rows, *names[c + k :]])
        ys = [_put_row(m, old, t, y, at) for old, t, y in zip(now[c + 1 :], stacks, new[c:], strict=True)]
        return [m.simple("add", [now[0], m.constant(1, I64)], COUNT), *new[:c], *ys]

    found = _loop(m, starts, of, lambda now: m.less(now[0], end, COUNT), step)[1:]
    return found if several else found[0]


def _row(m: Module, x: str, t: TensorType, row: Any, at: str) -> str:
    """Row ``at`` of an array."""
    one = TensorType("i64", (1,))
    return gathered(m, x, t, m.reshaped(at, COUNT, one), one, (0,), row)


def gathered(m: Module, x: str, t: TensorType, at: str, of: TensorType, axes: Sequence[int], result: Any) -> str:
    """Elements at places, which lie along the last axis of ``at``, of type ``of``."""
    depth = of.ndim - 1
    how = (f"dimension_numbers = #stablehlo.gather<offset_dims = {axes_attr(range(depth, result.ndim))}, "
           f"collapsed_slice_dims = {axes_attr(axes)}, start_index_map = {axes_attr(axes)}, "
           f"index_vector_dim = {depth}>, indices_are_sorted = false")
    sizes = [minimum(1, s) if a in axes else s for a, s in enumerate(t.shape)]  # none of what is empty
    if is_static(sizes):
        return m.op("gather", [x, at], [t, of], result, f"{how}, slice_sizes = {array_attr(sizes)}")
    return m.op("dynamic_gather", [x, at, m.shape(sizes)], [t, of, TensorType("i64", (t.ndim,))], result, how)


def _put_row(m: Module, x: str, t: TensorType, y: str, at: str) -> str:
    """An array with another row ``at``."""
    one, row = TensorType(t.dtype, (1, *t.shape[1:])), TensorType(t.dtype, t.shape[1:])
    zeros = [m.constant(0, I64)] * (t.ndim - 1)
    y = m.reshaped(y, row, one)
    if not is_static(t.shape[:1]):  # which may be empty; then there is no row, but types
        own = TensorType(t.dtype, (minimum(1, t.shape[0]), *t.shape[1:]))
        where = [m.shape(s) for s in ([0] * t.ndim, own.shape, [1] * t.ndim)]
        y, one = m.op("real_dynamic_slice", [y, *where], [one, *[TensorType("i64", (t.ndim,))] * 3], own), own
    return m.op("dynamic_update_slice", [x, y, at, *zeros], [t, one, *[COUNT] * t.ndim], t)


def while_(m: Module, v: Value) -> Any:
    test, region = v.regions
    c, limit = v.attrs["carry"], v.attrs["max_steps"]
    names = m.names(v)
    of = [*region.params[:c], COUNT]

    def going(now: list[str]) -> str:
        out = m.within(test, [*now[:c], *names[c:]])[0]
        if limit is None:
            return out
        return m.simple("and", [out, m.less(now[c], m.value(lookup("size")(value=limit)), COUNT)], BOOL)

    def step(now: list[str]) -> list[str]:
        count = m.simple("add", [now[c], m.constant(1, I64)], COUNT)
        return [*m.within(region, [*now[:c], *names[c:]]), count]

    found = _loop(m, [*names[:c], m.value(scalar(0, I64))], of, going, step)
    return found if c else found[0]


def cond(m: Module, v: Value) -> Any:
    which, *names = m.names(v)
    results = [r.type for r in v.regions[0].results]
    bodies = [m.body_lines([], lambda: (m.within(r, names), results)) for r in v.regions]  # noqa: B023
    if v.operands[0].type is BOOL:
        found = m.op("if", [which], [BOOL], TupleType(results), "", bodies)
    else:
        low, high = m.constant(0, I64), m.constant(len(bodies) - 1, I64)
        i = m.op("clamp", [low, which, high], [COUNT] * 3, COUNT)
        i32 = TensorType("i32", ())
        found = m.op("case", [m.op("convert", [i], [COUNT], i32)], [i32], TupleType(results), "", bodies)
    return found if isinstance(v.type, TupleType) else found[0]
