"""unroll: loops of few steps and choices that are made already become ordinary values.

No step leaves the first carries, one step is the body, a few short steps are written one after another. A `cond` whose
choice is known is that branch; one between cheap elementwise values on few numbers is a `where`, unless a branch needs
what is not cheap, and is all that needs it (`sink` moves it there).
"""

from __future__ import annotations

from symc.ir.function import Function
from symc.ir.op import Element, splat
from symc.ir.ops.control import BOOL, chosen, cond, scan
from symc.ir.ops.leaf import constant, scalar
from symc.ir.ops.logic import where
from symc.ir.ops.shape import broadcast, concat, reshape, slice_along
from symc.ir.reference import run_values
from symc.ir.traverse import postorder, region_params, replace
from symc.ir.types import TensorType
from symc.ir.value import Region, Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.loops.branches import Branches
from symc.opt.loops.edit import Edit, Results, may_fail, moved
from symc.opt.loops.form import Loop
from symc.opt.loops.sink import places_of

#: A loop of more steps, or of more values in all, stays a loop: compile time grows with values, not with steps.
MOST_STEPS, MOST_VALUES = 4, 64
#: A choice between so few values of so few elements costs more to make than to compute both.
MOST_CHOSEN, MOST_ELEMENTS = 8, 64


@standard_pass(
    after=("fold",),
    why="fold says which choices are made, and all that comes later simplifies what is written out",
    bodies="inner", on=("control",), reasons="of_unroll",
)
def unroll(provenance: Provenance, f: Function) -> Function:
    """Loops of few steps and choices that are made become ordinary values."""
    edit = Edit(f, provenance, "unroll")
    costly = {choice for v, (choice, _) in places_of(f).items() if not _is_small(v)}

    def visit(old: Value, new: Value) -> Results | None:
        used = edit.used.get(old, set())
        if new.op is cond:
            out = _choose(Branches(edit, new, used), old in costly)
        elif new.op is scan:
            out = _steps(Loop(edit, new, used))
        else:
            out = _never(Loop(edit, new, used))
        if out:
            edit.record(new, next(iter(out.values())))
        return out

    return edit.run(visit)


# --- loops ------------------------------------------------------------------------------------------------------------


def _steps(loop: Loop) -> Results | None:
    """The results of a scan of few steps."""
    n, roots = loop.length, loop.roots()
    if not isinstance(n, int):
        return None
    values = [v for v in postorder(roots) if v.operands]
    if n and loop.fixed or n > MOST_STEPS or n > 1 and (
        n * len(values) > MOST_VALUES or any(v.regions for v in values)
    ):
        return None
    state = {c.leaf: c.init for c in loop.carries}
    rows: dict[int, dict[int, Value]] = {k: {} for k in loop.stacks}
    for t in reversed(range(n)) if loop.value.attrs["reverse"] else range(n):
        leaves = {**loop.constants, **state, **{r.leaf: _row(r.operand, t) for r in loop.rows}}
        made = moved(roots, leaves, loop.lines, loop.edit.hints)
        state = dict(zip(state, made, strict=False))
        for k, y in zip(rows, made[len(state) :], strict=True):
            rows[k][t] = y
    out = {k: state[leaf] for k, leaf in loop.finals.items()}
    for k, own in rows.items():
        row = loop.stacks[k].type
        parts = [reshape(own[i], shape=(1, *row.shape)) for i in range(n)]
        none = TensorType(row.dtype, (0, *row.shape))
        out[k] = concat(*parts, axis=0) if n > 1 else parts[0] if n else splat(0, none)
    return out


def _row(x: Value, t: int) -> Value:
    return reshape(slice_along(x, 0, t, 1), shape=x.shape[1:])


def _never(loop: Loop) -> Results | None:
    """The results of a while loop that takes no step."""
    leaves = {**loop.constants, **{c.leaf: c.init for c in loop.carries}}
    (first,) = replace([loop.condition], leaves) if loop.condition is not None else [None]
    if loop.value.attrs["max_steps"] != 0 and (first is None or _known(first) is not False):
        return None
    init = {c.leaf: c.init for c in loop.carries}
    return {**{k: init[leaf] for k, leaf in loop.finals.items()}, **dict.fromkeys(loop.counts, scalar(0, "i64"))}


def _known(v: Value) -> object:
    """The number that a scalar made of constants alone is, or None."""
    values = postorder([v])
    if len(values) > MOST_VALUES or any(not x.operands and x.op is not constant or x.regions for x in values):
        return None
    if any(may_fail(x) or x.shape for x in values):
        return None
    return run_values([v], {}, {})[0].item()


# --- choices ----------------------------------------------------------------------------------------------------------


def _choose(b: Branches, costly: bool) -> Results | None:
    """The results of a choice that is known, or not worth making; ``costly``: it saves what one branch alone needs."""
    which = _known(b.which)
    if which is not None:
        return b.inline(chosen(which, b.count))
    if b.fixed:
        return None
    if all(r is b.value.regions[0] for r in b.value.regions):
        return b.inline(0)
    if b.which.type is BOOL and not costly and all(map(_is_cheap, b.value.regions)):
        first, second = b.inline(0), b.inline(1)
        return {k: where(_spread(b.which, v), v, second[k]) for k, v in first.items()}
    return None


def _is_cheap(r: Region) -> bool:
    """A branch of a few elementwise values with few elements, none of which can fail."""
    leaves = set(region_params(r))
    values = [v for v in postorder(r.results) if v not in leaves]
    return sum(bool(v.operands) for v in values) <= MOST_CHOSEN and all(_is_small(v) for v in (*values, *r.results))


def _is_small(v: Value) -> bool:
    plain = not v.operands or "elementwise" in v.op.traits and isinstance(v.op.lowering, Element) or v.op is broadcast
    if not plain or v.regions or may_fail(v) or not isinstance(v.type, TensorType):
        return False
    return isinstance(v.type.size, int) and v.type.size <= MOST_ELEMENTS


def _spread(which: Value, like: Value) -> Value:
    return broadcast(which, axes=(), shape=like.shape) if like.shape else which


