"""Bodies of loops and branches: from values built by a user's function to a closed region and what it captures.

A loop's body keeps what depends on its params (the carries and rows of a step). Everything else is the same in every
step and is captured: invariant code never enters a loop. Constants, sizes and splats stay inside, where they cost
nothing and can be seen by rules; so do ops with an effect, which take place once a step.

A branch keeps what was *built* while its function ran (``Built``), because work outside a branch is not lazy; what was
there before is captured. Values are interned, so "built" means that it was asked for, not that it is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from symc.ir import location
from symc.ir.dim import Size
from symc.ir.location import Inside, Locs
from symc.ir.op import Control, Regional
from symc.ir.ops.control import cond, scan, while_
from symc.ir.ops.effect import has_effect
from symc.ir.record import dataclass
from symc.ir.traverse import free_inputs, is_free_leaf, postorder, region_params, replace
from symc.ir.value import Region, Value, built_values, param


@dataclass(frozen=True)
class Body:
    """A closed region, with the user lines of the values inside (and inside the regions inside)."""

    region: Region
    notes: Inside


def is_loop_or_branch(v: Value) -> bool:
    """A scan, a while or a cond."""
    return isinstance(v.op.lowering, Control)


def is_control(v: Value) -> bool:
    """A value with regions that hold ordinary values, which passes look into."""
    return isinstance(v.op.lowering, Control) or isinstance(v.op.derivative, Regional)


@contextmanager
def built() -> Iterator[set[Value]]:
    """The set of all values asked for meanwhile (filled at the end)."""
    with built_values() as found:
        yield found


# --- closing ----------------------------------------------------------------------------------------------------------


def loop_captures(params: Sequence[Value], results: Sequence[Value]) -> list[Value]:
    """Values that a loop's body captures from outside, in a stable order: the frontier of what depends on
    ``params``."""
    known = set(params)
    order = postorder(results, stop=known.__contains__)
    inside: set[Value] = set(known)
    for v in order:
        if any(o in inside for o in v.operands) or has_effect(v):
            inside.add(v)
    return _frontier(order, results, inside)


def branch_captures(results: Sequence[Value], made: set[Value]) -> list[Value]:
    """The values outside of a branch that it uses: those that were not built by its function, and free leaves."""
    order = postorder(results, stop=lambda v: v not in made)
    own = {v for v in order if v in made and v.op.name != "input"}
    # of an op outside with several results, the result is captured, not all of them together
    return _frontier(order, results, {v for v in own if v.op.name != "get" or v.operands[0] in own})


def _frontier(order: Sequence[Value], results: Sequence[Value], inside: set[Value]) -> list[Value]:
    used = dict.fromkeys(o for v in order if v in inside for o in v.operands)
    used.update(dict.fromkeys(results))
    wanted = {v for v in used if v not in inside and not is_free(v)}
    return [v for v in order if v in wanted]


def is_free(v: Value) -> bool:
    """A constant, size or iota, or one repeated: it costs nothing and depends on nothing."""
    while v.op.name == "broadcast":
        (v,) = v.operands
    return not v.operands and not is_free_leaf(v)


def close(params: Sequence[Value], captured: Sequence[Value], results: Sequence[Value]) -> Body:
    """The region of ``results`` over params, then captured values."""
    leaves = [*params, *captured]
    mapping = {v: param(i, v.type) for i, v in enumerate(leaves)}
    lines: dict[Value, Locs] = {}
    notes: Inside = {}

    def carry(old: Value, new: Value) -> None:
        location.add_lines(lines, new, location.noted(old))
        location.merge_inside(notes, location.inside(old))

    with location.at(()):  # values of a region are shared by all programs; their lines are kept beside the loop
        new = replace(results, mapping, carry)
    region = Region([v.type for v in leaves], new)
    location.merge_inside(notes, {region: lines})
    return Body(region, notes)


def open_body(v: Value, k: int, leaves: Sequence[Value]) -> list[Value]:
    """The results of region ``k`` of ``v`` on other leaves. Values note their lines in ``v``."""
    region = v.regions[k]
    notes = location.inside(v)
    lines = notes.get(region, {})

    def carry(old: Value, new: Value) -> None:
        if old in lines:
            location.note(new, lines[old])
        if old.regions:
            location.note_inside(new, {r: dict(own) for r, own in notes.items()})

    with location.at(()):
        return replace(region.results, dict(zip(region_params(region), leaves, strict=True)), carry)


# --- making -----------------------------------------------------------------------------------------------------------


def make_scan(init: Sequence[Value], xs: Sequence[Value], length: Size, reverse: bool, params: Sequence[Value],
              results: Sequence[Value]) -> Value:
    """A scan whose body was built on the leaves ``params`` (carries, then rows) and gives ``results``."""
    captured = loop_captures(params, results)
    body = close(params, captured, results)
    v = scan(*init, *xs, *captured, carry=len(init), xs=len(xs), length=length, reverse=reverse, regions=(body.region,))
    location.note_inside(v, body.notes)
    return v


def make_while(init: Sequence[Value], max_steps: Size | None, params: Sequence[Value], condition: Value,
               results: Sequence[Value]) -> Value:
    """A while loop whose condition and body were built on the leaves ``params``."""
    captured = loop_captures(params, [condition, *results])
    test, body = close(params, captured, [condition]), close(params, captured, results)
    v = while_(*init, *captured, carry=len(init), max_steps=max_steps, regions=(test.region, body.region))
    location.note_inside(v, test.notes)
    location.note_inside(v, body.notes)
    return v


def make_cond(which: Value, branches: Sequence[tuple[Sequence[Value], set[Value]]]) -> Value:
    """A choice among branches, each given by its results and the values that its function built."""
    captured: dict[Value, None] = {}
    for results, made in branches:
        captured.update(dict.fromkeys(branch_captures(results, made)))
    return cond_over(which, list(captured), [results for results, _ in branches])


def cond_over(which: Value, captured: Sequence[Value], branches: Sequence[Sequence[Value]]) -> Value:
    """A choice among branches that are made of captured values."""
    bodies = [close((), captured, results) for results in branches]
    v = cond(which, *captured, regions=[b.region for b in bodies])
    for b in bodies:
        location.note_inside(v, b.notes)
    return v


def cond_of_leaves(which: Value, branches: Sequence[Sequence[Value]]) -> Value:
    """A choice among branches that are made of free leaves."""
    return cond_over(which, free_inputs([r for results in branches for r in results]), branches)
