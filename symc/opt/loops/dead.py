"""dead_loop: what a loop or branch carries along for nothing.

Results that nobody uses and the carries that only they need; operands that no body reads or that are there twice;
carries that never change or always equal another; rows that are all the same. Constants and repeated values are made
inside, where rules see them and kernels read them for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from symc.ir.bodies import is_free
from symc.ir.function import Function
from symc.ir.ops.control import cond
from symc.ir.ops.index import index_operands
from symc.ir.ops.shape import broadcast
from symc.ir.traverse import dependent, postorder, users
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.facts.forms import turned_steps
from symc.opt.loops.branches import Branches
from symc.opt.loops.edit import Edit, Results, may_fail, ordered, runs
from symc.opt.loops.form import Given, Loop

#: Rounds in which carries are told apart; carries that need more are left alone.
MOST_ROUNDS = 16


@standard_pass(
    after=("last_state",),
    why="both leave carries that nobody needs; and hoist moves no dead code",
    bodies="inner", on=("control",),
)
def dead_loop(provenance: Provenance, f: Function) -> Function:
    """Loops and branches carry along nothing that is not used."""
    edit = Edit(f, provenance, "dead_loop")

    def visit(old: Value, new: Value) -> Results | None:
        used = edit.used.get(old, set())
        form = Branches(edit, new, used) if new.op is cond else Loop(edit, new, used)
        if isinstance(form, Branches):
            tidy_branches(form)
        else:
            tidy(form)
        made, out = form.build()
        if made is new:
            return None
        edit.record(new, made if made is not None else next(iter(out.values()), new))
        return out

    return edit.run(visit)


def tidy(loop: Loop) -> None:
    """Take out of a loop what it does for nothing."""
    before = -1
    while before != (before := _size(loop)):
        if not loop.fixed:
            _drop_carries(loop)
            _join_carries(loop)
            _free_stacks(loop)
        _simplify_operands(loop)
        _drop_operands(loop)


def _size(loop: Loop) -> int:
    return 3 * len(loop.carries) + 2 * len(loop.rows) + len(loop.captured) + 4 * len(loop.stacks)


# --- carries and results ----------------------------------------------------------------------------------------------


def _drop_carries(loop: Loop) -> None:
    """Only carries stay that are wanted, or that something wanted depends on."""
    carries = {c.leaf: c for c in loop.carries}
    seen: set[Value] = set()
    pending = [*loop.finals.values(), *loop.stacks.values()]
    pending += [loop.condition] if loop.condition is not None else []
    while pending:
        v = pending.pop()
        if v not in seen:
            seen.add(v)
            pending.extend(v.operands)
            if v in carries:
                pending.append(carries[v].new)
    loop.carries = [c for c in loop.carries if c.leaf in seen]


def _join_carries(loop: Loop) -> None:
    """Carries that never change are captured; of carries that are always equal one stays."""
    still = [c for c in loop.carries if c.new is c.leaf]
    if still:
        loop.carries = [c for c in loop.carries if c.new is not c.leaf]
        for c in still:
            loop.captured.append(Given(c.leaf, c.init))
            for k in [k for k, leaf in loop.finals.items() if leaf is c.leaf]:
                del loop.finals[k]
                loop.outside[k] = c.init
    first = equal_carries(loop)
    if first:
        loop.carries = [c for c in loop.carries if c.leaf not in first]
        loop.substitute(first, joining=True)
        loop.finals = {k: first.get(leaf, leaf) for k, leaf in loop.finals.items()}


def equal_carries(loop: Loop) -> dict[Value, Value]:
    """Carries that start equal and change alike: which other one each is the same as.

    All that start equal are taken to be equal until their new values tell them apart.
    """
    classes: dict[object, Value] = {}
    same = {c.leaf: classes.setdefault(c.init, c.leaf) for c in loop.carries}
    for _ in range(MOST_ROUNDS):
        if len(classes) == len(same):
            return {}
        moved = {leaf: first for leaf, first in same.items() if leaf is not first}
        news = ordered([c.new for c in loop.carries], moved)
        before, classes = len(classes), {}
        same = {c.leaf: classes.setdefault((same[c.leaf], new), c.leaf)
                for c, new in zip(loop.carries, news, strict=True)}  # fmt: skip
        if len(classes) == before:
            return {leaf: first for leaf, first in same.items() if leaf is not first}
    return {}


def _free_stacks(loop: Loop) -> None:
    """Stacked values that are the rows of an operand, or the same in every step."""
    rows = {r.leaf: r.operand for r in loop.rows}
    changing = dependent(postorder(list(loop.stacks.values())), loop.varying) if loop.stacks else set()
    for k, y in list(loop.stacks.items()):
        if y in rows:
            loop.outside[k] = rows[y]
        elif y not in changing and (runs(loop.value) or not any(map(may_fail, postorder([y])))):
            (same,) = loop.move_out([y])
            loop.outside[k] = broadcast(same, axes=tuple(range(1, same.ndim + 1)), shape=(loop.length, *same.shape))
        else:
            continue
        del loop.stacks[k]


# --- operands ---------------------------------------------------------------------------------------------------------


class _Leaves:
    """One leaf for every array from outside; constants and repeated values are made inside of leaves.

    ``uses``: who reads a leaf inside. What a library routine reads must lie in memory, so it is not made inside, where
    it would be made in every step.
    """

    def __init__(self, leaf: Callable[[TensorType], Value], uses: Mapping[Value, Sequence[Value]]):
        self.leaf, self.uses = leaf, uses
        self.given: dict[Value, Given] = {}

    def of(self, operand: Value, known: Value) -> Value:
        """The value that stands for ``operand``, which had the leaf ``known``, inside."""
        if turned_steps(operand) and all(index_operands(u) for u in self.uses.get(known, ())):
            return operand  # what is read by it is slices
        return self._inside(operand) if self.in_kernels(known) else self._leaf(operand, known)

    def in_kernels(self, leaf: Value) -> bool:
        """True if only kernels read a leaf, which compute its elements as they need them."""
        return all(map(reads_elements, self.uses.get(leaf, ())))

    def _inside(self, operand: Value) -> Value:
        if is_free(operand):
            return operand
        if operand.op is broadcast:
            return broadcast(self._inside(operand.operands[0]), **operand.attrs)
        return self._leaf(operand)

    def _leaf(self, operand: Value, known: Value | None = None) -> Value:
        if operand not in self.given:
            self.given[operand] = Given(self.leaf(operand.type) if known is None else known, operand)
        return self.given[operand].leaf

    def all(self, given: Sequence[Given]) -> dict[Value, Value]:
        """The values that the leaves of ``given`` become."""
        found = {g.leaf: self.of(g.operand, g.leaf) for g in given}
        return {leaf: v for leaf, v in found.items() if v is not leaf}


def reads_elements(v: Value) -> bool:
    """An op that kernels compute, element by element."""
    return not {"elementwise", "movement", "reduction"}.isdisjoint(v.op.traits)


def _same_in_every_row(x: Value) -> tuple[Value, tuple[int, ...]] | None:
    """The row that ``x`` repeats, as a value and the axes of a row that it fills; None if rows may differ."""
    if x.op is not broadcast or 0 in x.attrs["axes"]:
        return None
    return x.operands[0], tuple(a - 1 for a in x.attrs["axes"])


def _simplify_operands(loop: Loop) -> None:
    """One leaf for one operand; rows that are all the same are captured; what is free is made inside."""
    leaves = _Leaves(loop.leaf, users(postorder(loop.roots())))
    found = leaves.all(loop.captured)
    rows: dict[Value, Given] = {}
    for r in loop.rows:
        same = _same_in_every_row(r.operand)
        if same is not None:
            source, axes = same
            row = source if source.type is r.leaf.type else broadcast(source, axes=axes, shape=r.leaf.shape)
            found[r.leaf] = leaves.of(row, r.leaf)
        elif rows.setdefault(r.operand, r) is not r:
            found[r.leaf] = rows[r.operand].leaf
    loop.rows, loop.captured = list(rows.values()), list(leaves.given.values())
    if found:
        loop.substitute(found)


def _drop_operands(loop: Loop) -> None:
    """Operands that the body does not read."""
    read = set(postorder(loop.roots()))
    loop.rows = [r for r in loop.rows if r.leaf in read]
    loop.captured = [g for g in loop.captured if g.leaf in read]


def tidy_branches(b: Branches) -> None:
    """Take out of a choice what it does for nothing."""
    leaves = _Leaves(b.leaf, {})  # a branch runs once: what it reads is made there
    found = leaves.all(b.operands)
    b.operands = list(leaves.given.values())
    for k in range(b.count) if found else ():
        b.substitute(k, found)
    given = {g.leaf: g.operand for g in b.operands}
    for key, row in list(b.wanted.items()) if not b.fixed else ():
        if all(v is row[0] for v in row) and (row[0] in given or is_free(row[0])):
            b.outside[key] = given.get(row[0], row[0])
            del b.wanted[key]
    read = {v for k in range(b.count) for v in postorder(b.roots(k))}
    b.operands = [g for g in b.operands if g.leaf in read]
