"""sink: what only one branch of a choice needs is computed in that branch, and not at all if another one runs."""

from __future__ import annotations

from symc.ir.bodies import is_free
from symc.ir.function import Function, Hints
from symc.ir.location import NOWHERE, add_lines
from symc.ir.ops.collective import has_collective
from symc.ir.ops.control import cond
from symc.ir.ops.effect import has_effect
from symc.ir.traverse import postorder, rebuild, region_params
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.loops.branches import Branches
from symc.opt.loops.dead import tidy_branches
from symc.opt.loops.edit import Edit, Results
from symc.opt.loops.form import Given

#: A choice and the number of one of its branches.
Place = tuple[Value, int]


@standard_pass(
    after=("accumulate",),
    why="what is the same in every step is computed once, not in a branch of every step",
    bodies="inner", on=("control",),
)
def sink(provenance: Provenance, f: Function) -> Function:
    """Values that one branch alone needs are computed in it."""
    edit = Edit(f, provenance, "sink")
    places = places_of(f)

    def visit(old: Value, new: Value) -> Results | None:
        if new.op is not cond or all(places.get(o) != (old, k) for o in old.operands for k in range(len(old.regions))):
            return None
        b = Branches(edit, new, edit.used.get(old, set()))
        operands = {g.leaf: o for g, o in zip(b.operands, old.operands[1:], strict=True)}
        outside: dict[Value, Value] = {}  # leaves of what stays outside
        for k in range(b.count):
            _into(b, k, (old, k), operands, places, outside)
        tidy_branches(b)
        made, out = b.build()
        edit.record(new, new if made is None else made)
        return out

    return edit.run(visit)


def places_of(f: Function) -> dict[Value, Place]:
    """The values that one branch alone needs, and which."""
    out: dict[Value, Place | None] = dict.fromkeys(f.body.results)
    for v in reversed(f.values()):
        place = out.get(v)
        if place is not None and (not v.operands or has_effect(v) or has_collective(v)):
            place = out[v] = None
        uses = _readers(v) if place is None and v.op is cond else [place] * len(v.operands)
        for o, use in zip(v.operands, uses, strict=True):
            if out.setdefault(o, use) != use:
                out[o] = None
    # results of an op with several move with it, or not at all
    return {v: p for v, p in out.items() if p is not None and (v.op.name != "get" or out[v.operands[0]] == p)}


def _readers(choice: Value) -> list[Place | None]:
    """For every operand of a choice the only branch that reads it."""
    read = [set(postorder(r.results)) for r in choice.regions]
    out: list[Place | None] = [None]
    for leaf in region_params(choice.regions[0]):
        own = [k for k, values in enumerate(read) if leaf in values]
        out.append((choice, own[0]) if len(own) == 1 else None)
    return out


def _into(b: Branches, branch: int, place: Place, operands: dict[Value, Value], places: dict[Value, Place],
          outside: dict[Value, Value]) -> None:
    """Compute in one branch what belongs there. ``operands`` are the values that leaves stood for."""
    edit = b.edit
    mapping: dict[Value, Value] = {}
    lines: Hints = {}
    done: dict[Value, Value] = {}
    wanted = {leaf: o for leaf, o in operands.items() if places.get(o) == place}
    for v in postorder(wanted.values(), stop=lambda v: places.get(v) != place):
        if places.get(v) == place:
            new = done[v] = rebuild(v, [done[o] for o in v.operands])
            add_lines(lines, new, edit.hints.get(v, NOWHERE))
        else:
            done[v] = _leaf(b, edit.done[v], outside)
    mapping = {leaf: done[o] for leaf, o in wanted.items()}
    if mapping:
        b.substitute(branch, mapping, lines)


def _leaf(b: Branches, v: Value, outside: dict[Value, Value]) -> Value:
    """The leaf of a value that stays outside."""
    if is_free(v):
        return v
    if v not in outside:
        outside[v] = b.leaf(v.type)
        b.operands.append(Given(outside[v], v))
    return outside[v]
