"""Passes inside loops and branches: every body is a function of its own, with its own user lines.

A body is looked into once, however often it occurs. What is fused is no body: nothing looks into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from symc.ir.bodies import is_control
from symc.ir.function import Function, Input
from symc.ir.location import NOWHERE, Inside, add_lines, merge_inside
from symc.ir.record import replace
from symc.ir.traverse import every_value, postorder, rebuild
from symc.ir.value import Region, Value, make

FunctionPass = Callable[[Function], Function]


def in_bodies(run: FunctionPass, f: Function, outer_first: bool = False) -> Function:
    """``run`` on ``f`` and on every body inside it; inner bodies come first, or last."""
    return _Bodies(run, f, outer_first).of(f)


class _Bodies:
    def __init__(self, run: FunctionPass, f: Function, outer_first: bool):
        self.run, self.outer_first = run, outer_first
        self.inside: Inside = {region: dict(lines) for region, lines in f.inside.items()}
        self.done: dict[Region, Region] = {}

    def of(self, f: Function) -> Function:
        if self.outer_first:
            return self.enter(self._apply(f))
        return self._apply(self.enter(f))

    def _apply(self, f: Function) -> Function:
        out = self.run(f)
        if out.inside is not self.inside:
            merge_inside(self.inside, out.inside)
        return out

    def enter(self, f: Function) -> Function:
        """``f`` with every body of it after the pass."""
        return with_lines(with_bodies(f, lambda v: map(self._region, v.regions)), self.inside)

    def _region(self, region: Region) -> Region:
        found = self.done.get(region)
        if found is None:
            out = self.of(as_function(region, self.inside))
            merge_inside(self.inside, {out.body: {v: locs for v, locs in out.hints.items() if locs}})
            found = self.done[region] = out.body
        return found


def with_bodies(f: Function, bodies: Callable[[Value], Iterable[Region]]) -> Function:
    """``f`` with other bodies of its loops and branches, each of which is asked for once."""
    if not any(v.regions and is_control(v) for v in f.values()):
        return f

    def form(v: Value, operands: list[Value]) -> Value:
        regions = tuple(bodies(v)) if v.regions and is_control(v) else v.regions
        return rebuild(v, operands) if regions == v.regions else make(v.op, operands, v.attrs, regions)

    return remade(f, form)


def remade(f: Function, form: Callable[[Value, list[Value]], Value]) -> Function:
    """``f`` with what ``form`` makes of each value on operands that are made; it has the value's lines as well."""
    done: dict[Value, Value] = {}
    hints = dict(f.hints)
    for v in f.values():
        new = done[v] = form(v, [done[o] for o in v.operands])
        if new is not v:
            add_lines(hints, new, f.hints.get(v, NOWHERE))
    return f.with_results([done[r] for r in f.body.results], hints)


def as_function(region: Region, inside: Inside) -> Function:
    """A body as a function of its params, with its user lines."""
    inputs = tuple(Input(f"p{k}", t) for k, t in enumerate(region.params))  # type: ignore[arg-type]
    return Function("body", inputs, region, (), inside.get(region, {}), (), inside)


def every_function(f: Function) -> Iterator[Function]:
    """The function, and each of the bodies of loops and branches in it as one."""
    yield f
    for region in dict.fromkeys(r for v in every_value(f.body) if is_control(v) for r in v.regions):
        yield as_function(region, f.inside)


def with_lines(new: Function, inside: Inside) -> Function:
    """``new``, where ``inside`` are the lines of the bodies in it."""
    return new if inside is new.inside or not (inside or new.inside) else replace(new, inside=inside)


def live_lines(f: Function) -> Function:
    """``f`` without lines of what is not in it any more."""
    hints = {v: f.hints[v] for v in f.values() if v in f.hints}
    inside: Inside = {}
    pending, seen = [f.body], {f.body}
    while pending:
        for v in postorder(pending.pop().results):
            for r in v.regions:
                if r not in seen:
                    seen.add(r)
                    pending.append(r)
                    lines = f.inside.get(r)
                    if lines:
                        inside[r] = {x: lines[x] for x in postorder(r.results) if x in lines}
    return replace(f, hints=hints, inside=inside)
