"""merge_scans: loops that go over the same steps become one loop.

Scans of equal length and direction that read something in common, none of which depends on another, are one scan;
carries, rows and captured values that are equal are there once, so that what both compute is computed once. This is
what joins a loop with the same loop that a gradient asks for more results. While loops are merged where one condition
ends both; choices by one value become one choice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
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
        values = f.values()
        keys = {v: _key(v) for v in values if v.regions and is_control(v) and not has_effect(v)}
        key = next((k for k in keys.values() if k not in tried), None)
        if key is None:
            return f
        tried.add(key)
        groups = [g for group in _independent(values, keys, key) for g in _mergeable(group) if len(g) > 1]
        if groups:
            f = _merge(f, groups, provenance)


def _key(v: Value) -> Hashable:
    """Loops with different keys are never merged."""
    if v.op is cond:
        return v.operands[0], len(v.regions)
    if v.op is scan:
        return "scan", v.attrs["length"], v.attrs["reverse"]
    return "while", v.attrs["max_steps"]


def _independent(values: Sequence[Value], keys: dict[Value, Hashable], key: Hashable) -> Iterator[list[Value]]:
    """The loops with one key, in groups in which none depends on another.

    What depends on a loop of the key has a higher depth: loops of one depth are independent.
    """
    depth: dict[Value, int] = {}
    groups: dict[int, list[Value]] = {}
    for v in values:
        own = keys.get(v) == key and v in keys
        depth[v] = max((depth[o] for o in v.operands), default=0) + own
        if own:
            groups.setdefault(depth[v], []).append(v)
    yield from (groups[d] for d in sorted(groups))


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


def _merge(f: Function, groups: Sequence[list[Value]], provenance: Provenance) -> Function:
    edit = Edit(f, provenance, "merge_scans")
    for item in _in_one_place(f.body.results, groups):
        if isinstance(item, Value):
            edit.step(item)
        else:
            _merge_here(edit, groups[item])
    return edit.finish()


def _in_one_place(roots: Sequence[Value], groups: Sequence[list[Value]]) -> Iterator[Value | int]:
    """``postorder`` with every group in one place, as its number, after the operands of all of it."""
    number = {v: k for k, group in enumerate(groups) for v in group}
    seen: set[Value | int] = set()
    stack: list[Any] = list(roots)[::-1]  # a value, or a 1-tuple of one (or of a number) whose operands are done
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            yield item[0]
            continue
        what = number.get(item, item)
        if what not in seen:
            seen.add(what)
            stack.append((what,))
            operands = item.operands if what is item else [o for v in groups[what] for o in v.operands]
            stack.extend(operands[::-1])


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
