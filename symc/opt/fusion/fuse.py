"""Fusion: which ops run in one kernel. The decision is recorded in the IR as `fused` values.

A group works over one space: values of its full shape, folds of them over one set of axes, and, where those axes are
the last ones, row values computed from the folds and used again at full shape (softmax, layernorm, variance: one
kernel). Folds over the first axes may be computed beside that, and nothing in the group reads them. Movements
(broadcast, slice, transpose, pad, ...) of finished values cost nothing but an index and are repeated in every group
that reads them. Updates, running sums and sorting end a kernel: they take in what makes their elements,
and nothing in the group reads them. What an update is written into is read by nothing else there, so that it can be in
place.

Groups have levels: a group's operands come from strictly lower levels. A value may join a group only at the highest
level among its operands, so that no cycle between kernels can arise, without any search. Afterwards a group read by one
other group alone moves into it. Both steps are linear in the size of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from symc.ir.function import Function
from symc.ir.location import NOWHERE, add_lines
from symc.ir.op import Update, View
from symc.ir.ops.kernel import bounded, fused, results_of
from symc.ir.ops.store import is_epilogue
from symc.ir.traverse import postorder, rebuild
from symc.ir.value import Value
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.engine.regions import in_bodies
from symc.opt.fusion.column_folds import axes_together, can_be_column_fold, trailing
from symc.opt.fusion.cuts import STREAMS, cut
from symc.opt.fusion.groups import Finished, Group, Shape, is_costly, is_full, space, written_by_part
from symc.opt.fusion.kernel_form import Forms
from symc.opt.fusion.kernel_ops import (
    is_fold,
    is_kernel_op,
    needs_memory,
    read_in_step,
    reads_anywhere,
    reads_element,
    reads_in_place,
)

#: The most values of a group with folds or ends, and of what is joined without need. Others are cut by cost (``cuts``).
MAX_VALUES = 64

#: Groups up to this size join others of their space and level even if they share no operand: fewer launches.
SMALL = 8

#: A kernel that waits for operands reads at most about this many: they are all in memory when it runs.
MAX_HELD = 8

#: Arrays of so many elements are not counted there.
TINY = 1024


class Fusion:
    """One run of the pass over one function."""

    def __init__(self, f: Function, provenance: Provenance | None = None):
        self.f = f
        self.provenance = provenance
        self.values = f.values()
        self.given = set(f.params)
        self.position = {v: k for k, v in enumerate(self.values)}
        self.group: dict[Value, Group] = {}
        self.level: dict[Value, int] = {}
        self.forms = Forms()
        self.returned = set(f.body.results)
        self.kept = set(f.update_values)
        self.finished = Finished(f)
        self.inlined, self.sources = self.finished.inlined, self.finished.sources

    # -- forming groups

    def run(self) -> Function:
        leaves = set(self.f.params)
        for v in self._by_height():
            if v in self.inlined:
                self.sources(v)  # is known before it is asked for: however long a chain is, nothing recurs
            elif v in leaves or v.op.name == "constant":
                self.level[v] = 0
            elif v.op.name == "get":
                self.level[v] = self.level[v.operands[0]]
            elif is_kernel_op(v) and not isinstance(v.op.lowering, View):
                self._place(v)
            else:  # a view, too, that must lie in memory: it lies where its operand does
                self.level[v] = 1 + max((self._level(s) for s in self.sources(v)), default=0)
        self._cut()
        self._sink()
        self._join_siblings()
        return self._emit()

    def _by_height(self) -> list[Value]:
        """Operands first, layer by layer: equal steps of a long chain fill groups alike, and become equal kernels."""
        height: dict[Value, int] = {}
        for v in self.values:
            height[v] = 1 + max((height[o] for o in v.operands), default=0)
        return sorted(self.values, key=lambda v: (height[v], v.op.name, str(v.type), self.position[v]))

    def _level(self, v: Value) -> int:
        return self.group[v].find().level if v in self.group else self.level[v]

    def _rank(self, v: Value) -> tuple[int, int]:
        return self.group[v].find().rank if v in self.group else (self.level[v], 0)

    def _place(self, v: Value) -> None:
        """Put ``v`` into the group of its operands where that is possible, else into a new one."""
        sources = self.sources(v)
        top = max((self._level(s) for s in sources), default=0)
        near = list(dict.fromkeys(self.group[s].find() for s in sources if s in self.group and self._level(s) == top))
        blocked = any(s not in self.group and self._level(s) == top for s in sources)
        target = max(near, key=lambda g: (len(g.shape), len(g.values))) if near and not blocked else None
        axes = v.attrs["axes"] if is_fold(v) else None
        if target is None or not self._fits([v], target, near, axes):
            target = Group(top + 1, space(v))
            near = []
        for g in near:
            target.take(g)
        target.take_axes(axes)
        target.values[v] = None
        target.epilogues += [v] if is_epilogue(v) else []
        target.costly = is_costly(v)
        target.marks |= self._marks(v)
        self.group[v] = target

    def _marks(self, v: Value) -> set[str]:
        """Checks, look-ups and new states in a kernel. All three are not together: a kernel that may fail cannot
        write over a state, and the places that were checked elsewhere cost less than an array for the state."""
        marks = {"checks" for o in (v, *v.operands) if "checks" in o.op.traits and (o is v or o in self.inlined)}
        return {*marks, *(["look-ups"] if reads_anywhere(v) else []), *(["states"] if v in self.kept else [])}

    def _fits(
        self,
        joining: Sequence[Value],
        target: Group,
        merged: Sequence[Group],
        axes: tuple[int, ...] | None,
        limit: int | None = None,
    ) -> bool:
        """True if ``merged`` can become one with ``target`` and ``joining`` be computed there. ``limit``: of the number
        of values, if not only that of groups that cannot be cut."""
        together, one = self._axes(joining, target, merged, axes)
        if not together:
            return False
        whole = one is not None or any(g.column_folds or g.epilogues for g in merged) or any(map(is_epilogue, joining))
        limit = MAX_VALUES if limit is None and whole else limit
        if limit is not None and sum(len(g.values) for g in merged) >= limit:
            return False
        if len({g.costly for g in merged} | set(map(is_costly, joining))) > 1:
            return False
        if self.kept and len(target.marks.union(*[g.marks for g in merged], *map(self._marks, joining))) == 3:
            return False
        rows = target.shape[: len(target.shape) - len(one)] if one is not None and trailing(target.shape, one) else None
        for g in merged:
            if g.shape != target.shape and (g.shape != rows or g.axes is not None):
                return False
        inside = set(merged)
        ends = dict.fromkeys([*[v for g in (*merged, target) for v in g.epilogues], *filter(is_epilogue, joining)])
        if ends:
            others = [*joining, *[v for g in merged for v in g.values]]
            if one is not None or not self._updates_alone(ends, others):
                return False
            if any("checks" in v.op.traits for v in others) and any(_updates_one_of(v, self.given) for v in ends):
                return False  # a kernel that may fail cannot write over a state
        return all(self._can_compute(v, target.shape, one, rows, inside) for v in joining)

    def _axes(self, joining: Sequence[Value], target: Group, merged: Sequence[Group], axes: tuple[int, ...] | None,
              ) -> tuple[bool, tuple[int, ...] | None]:
        """Axes of the one fold kernel of these groups, if they can be in one."""
        groups = dict.fromkeys([target, *merged])
        found = [a for a in [axes, *[g.axes for g in groups]] if a is not None]
        mixed = any(g.column_folds for g in groups)
        if len(set(found)) <= 1 and not mixed:
            return True, next(iter(found), None)
        values = dict.fromkeys([*joining, *[v for g in groups for v in g.values]])
        folds = [v for v in values if is_fold(v) and space(v) == target.shape]
        return axes_together(target.shape, found, folds, mixed)

    def _can_compute(
        self, v: Value, shape: Shape, axes: tuple[int, ...] | None, rows: Shape | None, inside: set[Group]
    ) -> bool:
        full = space(v) == shape
        if is_epilogue(v) or reads_anywhere(v):
            own, whole = read_in_step(v), needs_memory(v)
            return full and all(self._can_read(o, full, shape, axes, rows, inside) if o in own and o not in whole else
                                not self._near(o, inside) for o in v.operands)
        if not full and (is_fold(v) or space(v) != rows):
            return False
        if not reads_in_place(v) and any(self._near(o, inside) for o in v.operands):
            return False  # a movement that is a result reads what it moves elsewhere: that must be finished
        return all(self._can_read(o, full, shape, axes, rows, inside) for o in v.operands)

    def _can_read(self, o: Value, full: bool, shape: Shape, axes: tuple[int, ...] | None, rows: Shape | None,
                  inside: set[Group]) -> bool:
        """A value of the group must be read at the index at which the group computes it."""
        while o.op is bounded and o in self.inlined:
            o = o.operands[0]
        near = self._near(o, inside)
        if not near:
            return True
        if any(is_epilogue(s) or is_fold(s) and s.attrs["axes"] != axes for s in near):
            return False
        if o not in self.inlined:
            return is_full(o, shape) == full and (full or rows is not None)
        return (
            full
            and rows is not None
            and o.op.name == "broadcast"
            and o.shape == shape
            and o.operands[0] in near
            and not is_full(o.operands[0], shape)
            and o.attrs["axes"] == tuple(range(len(rows)))
        )

    def _near(self, o: Value, inside: set[Group]) -> list[Value]:
        """The values of the groups that ``o`` is, or is made of."""
        return [s for s in self.finished.behind(o) if s in self.group and self.group[s].find() in inside]

    def _updates_alone(self, ends: Iterable[Value], others: Iterable[Value]) -> bool:
        """True if nothing reads what is updated, so that it can be updated in place; or elements of it alone, where all
        of them are read before the only one is written."""
        ends = list(ends)
        for end in ends:
            if isinstance(end.op.lowering, Update) and end.operands[0] not in self.inlined:
                for v in others:
                    early = len(ends) == 1 and reads_element(v, end)
                    read = v.operands[1:] if v is end or early else v.operands
                    if any(end.operands[0] in self.finished.behind(o) for o in read):
                        return False
        return True

    # -- cutting large groups

    def _cut(self) -> None:
        """Large groups of elementwise values become several of the same level, which are written in sequence."""
        groups = dict.fromkeys(self.group[v].find() for v in self.values if v in self.group)
        large = [g for g in groups
                 if len(g.values) > MAX_VALUES and g.axes is None and not (g.epilogues or g.column_folds)]
        needed = self._needed() if large else set()
        for g in large:
            members = sorted(g.values, key=self.position.__getitem__)
            for k, piece in enumerate(cut(members, self.sources, needed)):
                own = Group(g.level, g.shape, values=dict.fromkeys(piece), costly=g.costly, piece=k,
                            marks=set().union(*map(self._marks, piece)))
                self.group.update(dict.fromkeys(piece, own))

    def _needed(self) -> set[Value]:
        """Values that are results, or read outside of their group."""
        needed = set(self.f.body.results)
        for u in self.values:
            if u not in self.inlined:
                own = self.group[u].find() if u in self.group else None
                needed.update(s for s in self.sources(u) if s not in self.group or self.group[s].find() is not own)
        return needed

    # -- moving groups to their only reader

    def _sink(self) -> None:
        """A group whose results one other group alone reads becomes part of it, also if they are returned besides."""
        readers: dict[Group, dict[Group | None, list[Value]]] = {}
        returned = {self.group[v].find() for v in self.f.body.results if v in self.group}
        for u in self.values:
            if u in self.inlined:
                continue
            own = self.group[u].find() if u in self.group else None
            for s in self.sources(u):
                g = self.group[s].find() if s in self.group else None
                if g is not None and g is not own:
                    readers.setdefault(g, {}).setdefault(own, []).append(u)
        for g in sorted(readers, key=lambda g: g.rank, reverse=True):
            by: dict[Group | None, list[Value]] = {}
            for h, users in readers[g].items():
                by.setdefault(None if h is None else h.find(), []).extend(users)
            if len(by) == 1 and None not in by:
                target = next(iter(by))
                assert target is not None
                if g in returned and not self._may_wait(g, target):
                    continue
                if (target is not g and self._fits(by[target], target, [g, target], None, 2 * MAX_VALUES)
                        and not self._holds_much(g, target)):
                    target.take(g)

    def _may_wait(self, g: Group, target: Group) -> bool:
        """True if its results may be computed later, in ``target``: not where they then could not be in place."""
        return g.checks == target.checks and not _updates(g, self.given) and not _updates(target, self.given)

    def _holds_much(self, g: Group, target: Group) -> bool:
        """Would ``g``, computed later, hold many arrays until then? A long sum of what comes one after another is taken
        a few terms at a time."""
        both = {v for h in (g, target) for v in h.values}
        if g.axes is None and target.axes is None:
            reads = {s for v in both for s in self.sources(v) if s.shape} - both
            if len(reads) + sum(v in self.returned for v in both) > 3 * STREAMS:
                return True
        if g.level + 1 >= target.level:
            return False
        held = {s for v in both for s in self.sources(v) if s.shape and s.operands} - both
        return sum(not isinstance(s.type.size, int) or s.type.size > TINY for s in held) > MAX_HELD

    # -- joining groups side by side

    def _join_siblings(self) -> None:
        """Groups of one level over one space that read a common array, or are small, become one kernel."""
        open_groups: dict[tuple[tuple[int, int], Shape], list[tuple[Group, set[Value]]]] = {}
        checks = [v for v in self.values if "checks" in v.op.traits]
        last_check = max((len(self.values) if v in self.inlined else self._level(v) for v in checks), default=-1)
        for g in dict.fromkeys(self.group[v].find() for v in self.values if v in self.group):
            reads = {s for v in g.values for s in self.sources(v) if s.shape}
            near = open_groups.setdefault((g.rank, g.shape), [])
            for other, others in near[-4:]:
                if g.checks != other.checks:
                    continue  # a kernel that may fail cannot write over a state
                if g.level < last_check and _updates(g, self.given) != _updates(other, self.given):
                    continue  # nor can one whose other results are needed by a kernel that may fail
                small = len(g.values) <= SMALL and len(other.values) <= MAX_VALUES // 4
                if (small or not reads.isdisjoint(others)) and self._fits([], other, [g, other], None, MAX_VALUES):
                    other.take(g)
                    others |= reads
                    break
            else:
                near.append((g, reads))

    # -- writing the result

    def _emit(self) -> Function:
        needed = self._needed()
        done: dict[Value, Value] = {p: p for p in self.f.params}
        hints = dict(self.f.hints)
        units = [v for v in self.values if v not in self.inlined]
        written: set[Group] = set()
        for v in sorted(units, key=lambda v: (self._rank(v), self.position[v])):
            g = self.group[v].find() if v in self.group else None
            if g is None:
                new = done[v] = rebuild(v, [done[o] for o in v.operands])
                add_lines(hints, new, self.f.hints.get(v, NOWHERE))
            elif g not in written:
                written.add(g)
                self._emit_group(g, needed, done, hints)
        return self.f.with_results([done[r] for r in self.f.body.results], hints)

    def _emit_group(self, g: Group, needed: set[Value], done: dict[Value, Value], hints: dict) -> None:
        members = sorted(g.values, key=self.position.__getitem__)
        results = [v for v in members if v in needed]
        full = [v for v in results if is_full(v, g.shape)]
        down = [v for v in members if is_fold(v)] if g.axes is not None and not trailing(g.shape, g.axes) else []
        if full and not all(can_be_column_fold(v, False) for v in down):
            # a kernel that runs down columns has no place for full results: they get a kernel of their own
            self._emit_kernel(members, full, done, hints)
            results = [v for v in results if v not in full]
            if not results:
                return
        self._emit_kernel(members, results, done, hints)

    def _emit_kernel(
        self, members: Sequence[Value], results: Sequence[Value], done: dict[Value, Value], hints: dict
    ) -> None:
        inside = {v for v in members if v not in done}
        reads: dict[Value, None] = {}
        for v in postorder(results, stop=lambda v: v not in inside and v not in self.inlined):
            if v in inside:
                reads.update(dict.fromkeys(s for s in self.sources(v) if s not in inside))
        first, results, region = self.forms.of(reads, results)
        new = fused(*[done[s] for s in first], regions=[region])
        lines = NOWHERE.union(*[self.f.hints.get(v, NOWHERE) for v in members])
        for old, projection in zip(results, results_of(new), strict=True):
            done[old] = projection
            add_lines(hints, projection, lines)
        hints[new] = lines
        if self.provenance is not None:
            self.provenance.kernels.update((v, new) for v in inside if v not in self.provenance.kernels)


def _updates(g: Group, given: set[Value]) -> bool:
    return any(_updates_one_of(v, given) for v in g.values)


def _updates_one_of(v: Value, given: set[Value]) -> bool:
    return isinstance(v.op.lowering, Update) and v.operands[0] in given


def fuse(f: Function, provenance: Provenance | None = None) -> Function:
    """The function with everything that kernels can compute gathered in `fused` values."""
    return Fusion(written_by_part(f), provenance).run()


@standard_pass(
    name="fuse", reasons="of_fuse", makes=("fused",), for_kernels=True,
    undone_by=("check_indices", "small_loops", "fuse_matvec", "blas", "pack", "chains", "decompose", "simplify",
               "stabilize"),
)
def fuse_all(provenance: Provenance, f: Function) -> Function:
    """Values that kernels can compute together become `fused` ones."""
    return in_bodies(partial(fuse, provenance=provenance), f)
