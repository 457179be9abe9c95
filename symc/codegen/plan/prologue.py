"""Prologue: values that a program caches between calls, as a function of its own."""

from __future__ import annotations

from collections.abc import Iterable

from symc.ir.function import Function, Hints, Input
from symc.ir.location import carrying
from symc.ir.ops.cached import cached
from symc.ir.record import dataclass, replace
from symc.ir.size_values import names
from symc.ir.traverse import postorder
from symc.ir.traverse import replace as replace_values
from symc.ir.value import Region, Value, param


@dataclass(frozen=True)
class Split:
    """``first`` computes what is cached, of the inputs numbered ``reads``; ``rest`` takes it after its own inputs."""

    first: Function
    reads: tuple[int, ...]
    rest: Function


def split(f: Function) -> Split | None:
    """The function in two, or None if it caches nothing."""
    values = [v for v in f.values() if v.op is cached]
    if not values:
        return None
    made = [v.operands[0] for v in values]
    used = set(postorder(made))
    missing = _named(used) - _named(used.intersection(f.params))  # sizes of states that are not looked into
    reads = tuple(k for k, p in enumerate(f.params) if p in used or (
        f.inputs[k].role == "state" and k not in f.updates and missing & _named([p])))
    leaves = [f.params[k] for k in reads]
    lines: Hints = {}
    results = replace_values(made, {p: param(k, p.type) for k, p in enumerate(leaves)}, carrying(f.hints, lines))
    lines.update({v: f.hints[v] for v in postorder(results) if v in f.hints})
    inputs = tuple(replace(f.inputs[k], declared=f.inputs[k].type) for k in reads)  # sizes by their names in the body
    first = Function(f"{f.name}_prologue", inputs, Region([p.type for p in leaves], results), hints=lines,
                     inside=f.inside)
    taken = {i.name for i in f.inputs}
    extra = []
    for v in values:
        name = next(n for n in (f"cached{k}" for k in range(len(taken) + 1)) if n not in taken)
        taken.add(name)
        extra.append(Input(name, v.type, declared=v.type))  # type: ignore[arg-type]
    return Split(first, reads, _taking(f, values, extra))


def _named(values: Iterable[Value]) -> set[str]:
    """The names of sizes in the types of values."""
    return {n for v in values for t in getattr(v.type, "items", (v.type,)) for s in t.shape for n in names(s)}


def _taking(f: Function, values: list[Value], extra: list[Input]) -> Function:
    """``f`` with what is cached as further inputs."""
    count = len(f.inputs)
    given = {v: param(count + k, v.type) for k, v in enumerate(values)}
    hints = dict(f.hints)
    results = replace_values(f.body.results, given, carrying(hints, hints))
    body = Region([*f.body.params, *[v.type for v in values]], results)
    return replace(f, inputs=(*f.inputs, *extra), body=body, hints=hints)
