"""Dependence of values: which operands a value has a derivative by, through the regions of loops and branches too."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator

from symc.ir.op import Linear, Regional
from symc.ir.traverse import postorder
from symc.ir.types import TupleType, Type, is_inexact
from symc.ir.value import Region, Value


def varies(t: Type) -> bool:
    """Values of this type have tangents: floats and complex numbers do, integers and bools do not."""
    return any(map(varies, t.items)) if isinstance(t, TupleType) else is_inexact(t.dtype)


def differentiable_operands(v: Value) -> list[Value]:
    """The operands whose tangents reach ``v``, if only as zeros.

    Of a result of a loop or branch: the operands of that loop or branch, so that its other results do not matter.
    """
    fact = v.op.derivative
    if v.op.name == "get":
        (source,) = v.operands
        if isinstance(source.op.derivative, Regional):
            return [source.operands[i] for i in bits(reach(source)[v.attrs["index"]])]
        return [source] if varies(v.type) else []
    if fact is None or not varies(v.type):
        return []
    if isinstance(fact, Regional):
        every = 0
        for mask in reach(v):
            every |= mask
        return [v.operands[i] for i in bits(every)]
    operands = v.operands
    if isinstance(fact, Linear) and fact.args is not None:
        operands = tuple(operands[k] for k in fact.args)
    return [o for o in operands if varies(o.type)]


# --- regions ----------------------------------------------------------------------------------------------------------


def bits(mask: int) -> Iterator[int]:
    """The places of the ones in a number."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


_connections: weakref.WeakKeyDictionary[Region, tuple[int, ...]] = weakref.WeakKeyDictionary()


def connections(region: Region) -> tuple[int, ...]:
    """For every result the set of params that it has a derivative by, as the ones of a number."""
    found = _connections.get(region)
    if found is None:
        reached: dict[Value, int] = {}
        for v in postorder(region.results):
            mask = 1 << v.attrs["index"] if v.op.name == "param" and varies(v.type) else 0
            for o in differentiable_operands(v):
                mask |= reached[o]
            reached[v] = mask
        found = _connections[region] = tuple(reached[r] for r in region.results)
    return found


def reach(v: Value) -> list[int]:
    """For every result of a loop or branch the set of operands that it has a derivative by."""
    if v.op.name == "checkpoint":
        return list(connections(v.regions[0]))
    if v.op.name == "root":  # every answer depends on what the equation does
        answers = len(v.regions[0].results)
        return [_union(connections(v.regions[1])) >> answers] * answers
    if v.op.name == "cond":
        tables = [connections(r) for r in v.regions]
        return [_union(masks) << 1 for masks in zip(*tables, strict=True)]
    if v.op.name not in ("scan", "while"):  # a region that is called once
        return list(connections(v.regions[0]))
    carry, body = v.attrs["carry"], connections(v.regions[-1])
    every = carried(v.regions[-1], carry)
    if v.op.name == "while":
        return [*every, 0]
    after = [_through(mask, every) for mask in body]  # when there is a step at least
    length = v.attrs["length"]
    return after if isinstance(length, int) and length > 0 else [*every, *after[carry:]]


def carried(region: Region, carry: int) -> list[int]:
    """For every carry of a body the params (of the first step) that it depends on after some steps or none."""
    body = connections(region)
    every = [1 << k if varies(region.params[k]) else 0 for k in range(carry)]
    changed = True
    while changed:
        changed = False
        for k in range(carry):
            mask = every[k] | _through(body[k], every)
            if mask != every[k]:
                every[k], changed = mask, True
    return every


def _through(mask: int, every: list[int]) -> int:
    return _union(every[p] if p < len(every) else 1 << p for p in bits(mask))


def _union(masks: Iterable[int]) -> int:
    out = 0
    for mask in masks:
        out |= mask
    return out

