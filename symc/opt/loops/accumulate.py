"""accumulate: a carry to which every step only adds is taken out of the loop, where that makes one product of many.

``acc + x[t].T @ g[t]`` in every step is one product over all steps and needs no carry; so does a sum of what is stacked
anyway. How sums over steps are formed is in ``symc.grad.accumulate``, which gradients use as well.
"""

from __future__ import annotations

from symc.grad.accumulate import Sums, add_to, sum_over_steps
from symc.ir.location import NOWHERE
from symc.ir.op import splat
from symc.ir.ops.arithmetic import add, neg, sub
from symc.ir.ops.control import scan
from symc.ir.traverse import dependent, postorder, use_counts, users
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.loops.batch import pure
from symc.opt.loops.dead import tidy
from symc.opt.loops.edit import Results, moved
from symc.opt.loops.form import Carry, Loop, on_loops


@standard_pass(
    after=("pull_out",),
    why="of what is stacked anyway sums cost nothing",
    bodies="inner", on=("control",),
)
@on_loops("accumulate", scan)
def accumulate(loop: Loop) -> Results | None:
    """Sums over steps of products are one product outside of the loop."""
    wanted = set() if loop.fixed else set(loop.finals.values())
    values = postorder(loop.roots()) if wanted else []
    uses, count = users(values), use_counts(values, loop.roots() if wanted else ())
    found = {c.leaf: x for c in loop.carries if c.leaf in wanted and (x := _added(c, uses, count)) is not None}
    return _take_out(loop, found) if found else None


def _added(c: Carry, uses: dict[Value, list[Value]], count: dict[Value, int]) -> Value | None:
    """The value that every step adds to a carry that is used for nothing else."""
    v, total = c.leaf, None
    while v is not c.new:
        if count.get(v) != 1 or not uses[v]:
            return None
        (user,) = uses[v]
        first, second = user.operands[0], user.operands[-1]
        if user.op not in (add, sub) or first is second or user.op is sub and second is v:
            return None
        term = second if first is v else first
        term = neg(term) if user.op is sub else term
        total = term if total is None else add(total, term)
        v = user
    return total if count.get(v) == 1 else None


def _take_out(loop: Loop, found: dict[Value, Value]) -> Results | None:
    varying = dependent(postorder([*found.values(), *loop.roots()]), loop.varying)
    kept: dict[Value, Value] = {}  # stand-ins for stacks that there are
    standing: dict[Value, Value] = {}
    for y in [*[r.leaf for r in loop.rows], *loop.stacks.values()]:
        if y in varying and y not in standing:
            standing[y] = leaf = fresh_input(TensorType(y.dtype, (loop.length, *y.shape)))
            kept[leaf] = y
    plan = sum_over_steps(list(found.values()), varying, loop.length, standing)
    of_stacks = dependent(postorder(plan.results), [*kept, *plan.stacks.values()])
    chosen = {leaf: x for (leaf, x), r in zip(found.items(), plan.results, strict=True) if r in of_stacks}
    if not chosen or not pure(loop, list(chosen.values())):
        return None
    plan = sum_over_steps(list(chosen.values()), varying, loop.length, standing)
    return _build(loop, chosen, plan, kept)


def _build(loop: Loop, chosen: dict[Value, Value], plan: Sums, kept: dict[Value, Value]) -> Results:
    """The loop without the chosen carries, and the sums in their place."""
    init = {c.leaf: c.init for c in loop.carries if c.leaf in chosen}
    gone = {k: leaf for k, leaf in loop.finals.items() if leaf in chosen}
    constants = loop.constants
    loop.carries = [c for c in loop.carries if c.leaf not in chosen]
    loop.finals = {k: leaf for k, leaf in loop.finals.items() if leaf not in chosen}
    reached = set(postorder(plan.results))
    keys = {leaf: loop.stack(v) for v, leaf in plan.stacks.items()}
    keys.update({leaf: loop.stack(v) for leaf, v in kept.items() if leaf in reached})
    for v, leaf in plan.added.items():
        key = keys[leaf] = loop.carry(splat(0, v.type), v)
        carry = loop.carries[-1]
        carry.new = add_to(loop.finals[key], v)
    lines = dict(loop.lines)
    tidy(loop)
    out = dict(loop.build()[1])
    given = {**constants, **{leaf: out[k] for leaf, k in keys.items()}}
    sums = dict(zip(chosen, moved(plan.results, given, lines, loop.edit.hints), strict=True))
    for k, leaf in gone.items():
        out[k] = add(init[leaf], sums[leaf])
        loop.edit.record(chosen[leaf], sums[leaf], [lines.get(chosen[leaf], NOWHERE)])
    return out
