"""push_out and pull_out: products of a loop that need no carry are computed for all steps at once.

``push_out``: of what depends on rows and captured values alone, products (and other library routines) are computed
before the loop, and become rows: ``x[t] @ V`` for all t is one product. ``pull_out``: of what no carry needs, products
are computed after the loop, from stacked values: logits ``h[t] @ W`` for all t are one product. Cheap work stays in the
loop, where it needs no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symc.grad.residuals import size_in_bytes
from symc.ir.location import NOWHERE
from symc.ir.ops.control import scan
from symc.ir.size_values import number
from symc.ir.traverse import dependent, postorder
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.loops.batch import all_steps, can_batch, is_expensive, pure
from symc.opt.loops.dead import tidy
from symc.opt.loops.edit import Results
from symc.opt.loops.form import Given, Loop, on_loops

#: What is stacked in place of the results of a loop may take this many times their bytes,
MOST_TIMES = 16
#: or so many bytes in all.
FEW_BYTES = 1 << 20
#: So many stacks are looked at one by one.
MOST_STACKS = 64


@standard_pass(
    after=("hoist",),
    why="a product that needs no carry is made of rows, not of stacked rows",
    bodies="inner", on=("control",), reasons="of_push_out",
)
@on_loops("push_out", scan)
def push_out(loop: Loop) -> Results | None:
    """Products of rows are computed for all steps at once, before the loop."""
    if not loop.rows or loop.fixed or not _push(loop) | _free(loop):
        return None
    return loop.build()[1]


def _push(loop: Loop) -> bool:
    """Expensive values of rows become rows."""
    values = _before(loop)
    if not values or not pure(loop, values):
        return False
    made = all_steps(loop, values, {r.leaf: r.operand for r in loop.rows}, loop.constants)
    rows = [Given(loop.leaf(v.type), m) for v, m in zip(values, made, strict=True)]
    loop.rows += rows
    loop.substitute({v: r.leaf for v, r in zip(values, rows, strict=True)})
    _record(loop, values, made)
    tidy(loop)
    return True


def _free(loop: Loop) -> bool:
    """Stacks of cheap values, made of rows that nothing else in the loop reads, leave it."""
    moved = False
    for k, y in list(loop.stacks.items())[:MOST_STACKS]:
        if _reads_rows_alone(loop, y):
            (loop.outside[k],) = all_steps(loop, [y], {r.leaf: r.operand for r in loop.rows}, loop.constants)
            del loop.stacks[k]
            _record(loop, [y], [loop.outside[k]])
            moved = True
    if moved:
        tidy(loop)
    return moved


def _reads_rows_alone(loop: Loop, y: Value) -> bool:
    """True if a stacked value needs no carry, and takes no more memory for all steps than its stack and its rows."""
    rows = {r.leaf for r in loop.rows}
    varying = dependent(postorder([y]), loop.varying)
    own = [v for v in postorder([y]) if v in varying]
    read = rows.intersection(own)
    if not read or not set(loop.varying).intersection(own) <= rows or not loop.carries:
        return False  # (a loop without carries was written for its small memory: it stays)
    others = [c.new for c in loop.carries] + [x for x in loop.stacks.values() if x is not y]
    most = 2 * max(size_in_bytes(v.type) for v in (y, *read))
    cheap = all(v in rows or can_batch(v) and _is_cheap(v) and size_in_bytes(v.type) <= most for v in own)
    return cheap and read.isdisjoint(postorder(others)) and pure(loop, [y])


def _is_cheap(v: Value) -> bool:
    return not {"elementwise", "movement", "indexing"}.isdisjoint(v.op.traits) and not is_expensive(v)


def _before(loop: Loop) -> list[Value]:
    """The values that become rows: expensive, or made of such, and needed in the loop."""
    roots = loop.roots()
    order = postorder(roots)
    carried = dependent(postorder(roots), [c.leaf for c in loop.carries])
    by_row = dependent(postorder(roots), [r.leaf for r in loop.rows]) - carried
    rows = {r.leaf for r in loop.rows}
    movable: set[Value] = set()
    for v in order:
        if v in by_row and v not in rows and can_batch(v) and all(
            o in movable or o in rows for o in v.operands if o in by_row
        ):
            movable.add(v)
    expensive = [v for v in order if v in movable and is_expensive(v)]
    needed = set(postorder(expensive)) & movable
    made = dependent(postorder(expensive), expensive) & needed
    read = {o for v in order if v not in needed for o in v.operands}.union(roots)
    return [v for v in order if v in made and v in read]


# --- after the loop ---------------------------------------------------------------------------------------------------


@standard_pass(
    after=("push_out",),
    why="rows are taken before",
    bodies="inner", on=("control",),
)
@on_loops("pull_out", scan)
def pull_out(loop: Loop) -> Results | None:
    """Products that no carry needs are computed for all steps at once, after the loop."""
    after = set() if loop.fixed else _after(loop)
    gone = {k: y for k, y in loop.stacks.items() if y in after}
    borders = _borders(loop, after)
    if not gone or not pure(loop, list(gone.values())) or not _worth(loop, after, gone.values(), borders):
        return None
    constants = loop.constants
    for k in gone:
        del loop.stacks[k]
    keys = {v: loop.stack(v) for v in borders}
    tidy(loop)
    out = loop.build()[1]
    stacks = {v: out[k] for v, k in keys.items()}
    made = all_steps(loop, list(gone.values()), stacks, constants)
    _record(loop, list(gone.values()), made)
    return {**out, **dict(zip(gone, made, strict=True))}


def _after(loop: Loop) -> set[Value]:
    """The values that can be computed after the loop: expensive ones that no carry needs, and what is made of them."""
    in_step = set(postorder([c.new for c in loop.carries]))
    roots = list(loop.stacks.values())
    order = [v for v in postorder(roots) if v not in in_step]
    held: set[Value] = set()  # what something that must stay in the loop needs
    free: list[Value] = []
    for v in reversed(order):
        if v in held or not can_batch(v):
            held.update(v.operands)
        else:
            free.append(v)
    varying = dependent(postorder(roots), loop.varying)
    expensive = [v for v in free if v in varying and is_expensive(v)]
    return dependent(postorder(roots), expensive) & set(free)


def _borders(loop: Loop, after: set[Value]) -> list[Value]:
    """The values of a step from which those in ``after`` are computed."""
    varying = dependent(postorder(loop.roots()), loop.varying)
    read = dict.fromkeys(o for v in postorder(loop.stacks.values()) if v in after for o in v.operands)
    return [v for v in read if v not in after and v in varying]


def _worth(loop: Loop, after: set[Value], gone: Iterable[Value], borders: Sequence[Value]) -> bool:
    """Stacking takes not much more memory than what was stacked before."""
    gone = set(gone)
    known = {r.leaf for r in loop.rows}.union(y for y in loop.stacks.values() if y not in gone)
    more = sum(size_in_bytes(v.type) for v in borders if v not in known)
    more += sum(size_in_bytes(v.type) for v in after if is_expensive(v) and v not in gone)
    return more <= MOST_TIMES * sum(size_in_bytes(v.type) for v in gone) or more * number(loop.length) <= FEW_BYTES


def _record(loop: Loop, values: Sequence[Value], made: Sequence[Value]) -> None:
    for v, m in zip(values, made, strict=True):
        loop.edit.record(v, m, [loop.lines.get(v, NOWHERE)])
