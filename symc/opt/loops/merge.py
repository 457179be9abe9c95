"""merge_scans: loops that go over the same steps become one loop.

Scans of equal length and direction that read something in common, none of which depends on another, are one scan;
carries, rows and captured values that are equal are there once, so that what both compute is computed once. This is
what joins a loop with the same loop that a gradient asks for more results. While loops are merged where one condition
ends both; choices by one value become one choice.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from symc.ir.bodies import is_control, is_free
from symc.ir.function import Function
from symc.ir.location import NOWHERE, merge_lines
from symc.ir.ops.control import cond, scan
from symc.ir.ops.effect import has_effect
from symc.ir.ops.kernel import results_of
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.loops.branches import Branches
from symc.opt.loops.dead import equal_carries, tidy, tidy_branches
from symc.opt.loops.edit import Edit, ordered
from symc.opt.loops.form import Carry, Given, Loop


@standard_pass(
    after=("reverse_loops",),
    why="the loop of a gradient was stabilized before it was differentiated: only then it says the same as the "
        "user's; simplify, which is later, looks at who else uses a value",
    bodies="outer", on=("control",), reasons="of_merge_scans",
)
def merge_scans(provenance: Provenance, f: Function) -> Function:
    """Loops over the same steps become one loop, choices by one value one choice."""
    tried: set[Hashable] = set()
    while True:
        found = {}
        for key, groups in _independent(f.values()).items():
            if key not in tried and (worth := [g for group in groups for g in _mergeable(group) if len(g) > 1]):
                found[key] = worth
        if not found:
            return f
        every = [g for worth in found.values() for g in worth]
        order = _in_one_place(f.body.results, every)
        if order is None:  # those of one key alone never do
            first = next(iter(found))
            found = {first: found[first]}
            every = found[first]
            order = _in_one_place(f.body.results, every)
            assert order is not None
        tried |= found.keys()
        f = _merge(f, order, every, provenance)


def _key(v: Value) -> Hashable:
    """Loops with different keys are never merged."""
    if v.op is cond:
        return v.operands[0], len(v.regions)
    if v.op is scan:
        return "scan", v.attrs["length"], v.attrs["reverse"]
    return "while", v.attrs["max_steps"]


def _independent(values: Sequence[Value]) -> dict[Hashable, list[list[Value]]]:
    """The loops of each key that has several, in groups in which none depends on another.

    What depends on a loop of the key has a higher depth: loops of one depth are independent.
    """
    members: dict[Hashable, list[Value]] = {}
    for v in values:
        if v.regions and is_control(v) and not has_effect(v):
            members.setdefault(_key(v), []).append(v)
    several = {key: vs for key, vs in members.items() if len(vs) > 1}
    few = {key: vs for key, vs in several.items() if len(vs) ** 2 <= len(values)}
    below = _below(values, [v for vs in few.values() for v in vs])
    return {key: _by_bits(vs, below) if key in few else _by_depth(values, vs) for key, vs in several.items()}


def _by_depth(values: Sequence[Value], members: Sequence[Value]) -> list[list[Value]]:
    """One sweep over all values, for keys that many have."""
    depth: dict[Value, int] = {}
    groups: dict[int, list[Value]] = {}
    own = set(members)
    for v in values:
        depth[v] = max((depth[o] for o in v.operands), default=0) + (v in own)
        if v in own:
            groups.setdefault(depth[v], []).append(v)
    return [groups[d] for d in sorted(groups)]


def _below(values: Sequence[Value], marked: Sequence[Value]) -> dict[Value, tuple[int, int]]:
    """For each of the marked values a bit of its own, and the bits of those that it depends on."""
    bit = {v: 1 << k for k, v in enumerate(marked)}
    met: dict[Value, int] = {}
    for v in values if marked else ():
        bits = 0
        for o in v.operands:
            one = met[o] | bit.get(o, 0)
            bits = one if bits | one == one else bits | one  # many values have one and the same
        met[v] = bits
    return {v: (bit[v], met[v]) for v in marked}


def _by_bits(members: Sequence[Value], below: Mapping[Value, tuple[int, int]]) -> list[list[Value]]:
    """The same for keys that few have, of which there may be many."""
    groups: list[list[Value]] = []
    own = sum(below[v][0] for v in members)
    for v in members:
        met = below[v][1] & own
        deeper = range(len(groups), 0, -1) if met else ()
        depth = next((d for d in deeper if any(met & below[u][0] for u in groups[d - 1])), 0)
        if depth == len(groups):
            groups.append([])
        groups[depth].append(v)
    return groups


def _mergeable(group: Sequence[Value]) -> list[list[Value]]:
    """Classes of a group that are worth merging: they read something in common, and while loops end together."""
    if group[0].op is cond:
        return [list(group)]
    joined = {v: [v] for v in group}
    first: dict[Value, Value] = {}  # by what is read: its first reader
    for v in group:
        apart: set[Value] = set()
        for o in v.operands:
            one = joined[first.setdefault(o, v)]
            if is_free(o) or one is joined[v] or one[0] in apart:
                continue
            if v.op is scan or _end_together(one[0], v):
                own = joined[v]
                one += own
                joined.update((x, one) for x in own)
            else:
                apart.add(one[0])
    return [one for v, one in joined.items() if one[0] is v]


# --- merging ----------------------------------------------------------------------------------------------------------


def _merge(f: Function, order: Sequence[Value | int], groups: Sequence[list[Value]],
           provenance: Provenance) -> Function:
    edit = Edit(f, provenance, "merge_scans")
    for item in order:
        if isinstance(item, Value):
            edit.step(item)
        else:
            _merge_here(edit, groups[item])
    return edit.finish()


def _in_one_place(roots: Sequence[Value], groups: Sequence[list[Value]]) -> list[Value | int] | None:
    """``postorder`` with every group in one place, as its number, after the operands of all of it. None if one would be
    after itself: groups depend on each other, each on some of another."""
    number = {v: k for k, group in enumerate(groups) for v in group}
    open_: dict[Value | int, bool] = {}  # whether its operands are on their way
    out: list[Value | int] = []
    stack: list[Any] = list(roots)[::-1]  # a value, or a 1-tuple of one (or of a number) whose operands are done
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            open_[item[0]] = False
            out.append(item[0])
            continue
        what = number.get(item, item)
        if what not in open_:
            open_[what] = True
            stack.append((what,))
            operands = item.operands if what is item else [o for v in groups[what] for o in v.operands]
            stack.extend(operands[::-1])
        elif open_[what]:
            return None
    return out


def _merge_here(edit: Edit, group: Sequence[Value]) -> None:
    """One loop or choice in the place of a group."""
    news = [edit.again(v) for v in group]
    used = [edit.used.get(v, set()) for v in group]
    form: Branches | Loop
    if group[0].op is cond:
        form = _join_branches([Branches(edit, v, u) for v, u in zip(news, used, strict=True)])
        tidy_branches(form)
    else:
        form, _ = join([Loop(edit, v, u) for v, u in zip(news, used, strict=True)])
        tidy(form)
    made, out = form.build()
    start = 0
    for v, new in zip(group, news, strict=True):
        width = len(results_of(v))
        edit.done[v] = new
        edit.replace(v, {k - start: r for k, r in out.items() if start <= k < start + width})
        start += width
        if made is not None:
            edit.note(made, edit.hints.get(v, NOWHERE))
            edit.record(new, made)


def join(loops: Sequence[Loop]) -> tuple[Loop, dict[Value, Value]]:
    """One loop that does what all of them do, and what became of leaves; their results are numbered through.

    The condition of while loops is that of the first.
    """
    one = loops[0]
    start = len(results_of(one.value))
    one.reserve(sum(len(results_of(loop.value)) for loop in loops))
    for other in loops[1:]:
        mapping: dict[Value, Value] = {}
        for leaf in (*other.varying, *other.constants):
            mapping[leaf] = one.leaf(leaf.type)
        other.substitute(mapping)
        one.carries += [Carry(mapping[c.leaf], c.init, c.new) for c in other.carries]
        one.rows += [Given(mapping[g.leaf], g.operand) for g in other.rows]
        one.captured += [Given(mapping[g.leaf], g.operand) for g in other.captured]
        one.finals.update({start + k: mapping[leaf] for k, leaf in other.finals.items()})
        one.stacks.update({start + k: y for k, y in other.stacks.items()})
        one.counts += [start + k for k in other.counts]
        one.outside.update({start + k: v for k, v in other.outside.items()})
        merge_lines(one.lines, other.lines)
        start += len(results_of(other.value))
    return one, _share_operands(one)


def _share_operands(loop: Loop) -> dict[Value, Value]:
    """Equal rows and captured values are there once; what is then computed alike is one value."""
    found: dict[Value, Value] = {}
    for given in (loop.rows, loop.captured):
        first: dict[Value, Value] = {}
        for g in given:
            if first.setdefault(g.operand, g.leaf) is not g.leaf:
                found[g.leaf] = first[g.operand]
        given[:] = [g for g in given if g.leaf not in found]
    loop.substitute(found, joining=True)
    return found


def _end_together(v: Value, w: Value) -> bool:
    """True if two while loops take the same number of steps: their conditions are made of equal carries."""
    edit = Edit(Function("f", (), v.regions[0]), Provenance(), "")  # nothing is done to it
    a, b = Loop(edit, v, ()), Loop(edit, w, ())
    one, found = join([a, b])
    assert one.condition is not None and b.condition is not None
    first, second = ordered([one.condition, b.condition], {**found, **equal_carries(one)})
    return first is second


def _join_branches(choices: Sequence[Branches]) -> Branches:
    """One choice that gives all results, numbered through."""
    one = choices[0]
    start = len(results_of(one.value))
    for other in choices[1:]:
        mapping = {g.leaf: one.leaf(g.leaf.type) for g in other.operands}
        for k in range(other.count):
            other.substitute(k, mapping)
            merge_lines(one.lines[k], other.lines[k])
        one.operands += [Given(mapping[g.leaf], g.operand) for g in other.operands]
        one.wanted.update({start + k: row for k, row in other.wanted.items()})
        start += len(results_of(other.value))
    return one
