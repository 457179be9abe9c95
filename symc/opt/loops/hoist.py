"""hoist: what is the same in every step of a loop is computed once, before it.

Repeated values (broadcasts) stay inside where kernels read them, which costs nothing; their source is what moves. What
a product reads must lie in memory: it moves whole. Nothing leaves a branch: it might not run.
"""

from __future__ import annotations

from symc.ir.bodies import is_free
from symc.ir.ops.control import scan, while_
from symc.ir.ops.effect import has_effect
from symc.ir.traverse import dependent, postorder
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.loops.dead import reads_elements, tidy
from symc.opt.loops.edit import Results, may_fail, runs
from symc.opt.loops.form import Loop, on_loops


@standard_pass(
    after=("pretranspose",),
    why="what is the same in every step is not stacked by those that follow",
    bodies="inner", on=("control",), reasons="of_hoist",
)
@on_loops("hoist", scan, while_)
def hoist(loop: Loop) -> Results | None:
    """Values that are the same in every step of a loop are computed once."""
    values, edit = invariant(loop), loop.edit
    if not values:
        return None
    made = loop.move_out(values)
    loop.substitute({v: loop.capture(m) for v, m in zip(values, made, strict=True)})
    for v, m in zip(values, made, strict=True):
        edit.record(v, m, [edit.hints.get(m, frozenset())])
    tidy(loop)
    return loop.build()[1]


def invariant(loop: Loop) -> list[Value]:
    """The values of the body, computed there, that depend on nothing that changes and that something changing reads."""
    roots = loop.roots()
    order = postorder(roots)
    changing = dependent(postorder(roots), loop.varying)
    once = runs(loop.value)
    leaves = set(loop.constants)
    stays: set[Value] = set()  # invariant, and not to be computed outside
    for v in order:
        if v not in changing and v not in leaves and (
            has_effect(v) or not once and may_fail(v) or any(o in stays for o in v.operands)
        ):
            stays.add(v)
    inside = changing | stays
    read: dict[Value, None] = {}
    pending = [(o, reads_elements(v)) for v in order if v in inside for o in v.operands]
    pending += [(v, True) for v in roots]
    seen: set[tuple[Value, bool]] = set()
    while pending:
        v, element = pending.pop()
        if (v, element) in seen or v in inside or v in leaves or is_free(v) and (element or not v.operands):
            continue
        seen.add((v, element))
        if v.op.name == "broadcast" and element:
            pending += [(o, True) for o in v.operands]
        else:
            read[v] = None
    return [v for v in order if v in read]
