"""Plans within a number of bytes: ``fit`` computes values again until the plan is small enough, or says why it cannot.

What is computed again is chosen in ``recompute``. Here a choice becomes a function, in which second computations work
on ``again`` of what they read, and its plan is measured. After one round a chain of n values holds about 2 sqrt(n) of
them; when that is too much, the next round cuts the new sequence where it is fullest now, second computations included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symc.codegen.kernel.names import is_kernel
from symc.codegen.plan.cells import Work, is_view, source
from symc.codegen.plan.costs import cost
from symc.codegen.plan.memory import Held, MemoryReport, held, memory, persistent
from symc.codegen.plan.order import Edges, curve, greedy, order, topological, update_edges
from symc.codegen.plan.overwrite import Placer
from symc.codegen.plan.planner import Planner
from symc.codegen.plan.recompute import Cut, Draft, Emit, choose
from symc.errors import MemoryBudgetError
from symc.ir.function import Function, Hints
from symc.ir.location import NOWHERE, add_lines
from symc.ir.ops.kernel import fused, results_of
from symc.ir.ops.remat import again
from symc.ir.plan import Plan
from symc.ir.record import dataclass, field
from symc.ir.size_values import evaluate
from symc.ir.traverse import rebuild
from symc.ir.value import Region, Value
from symc.opt.fusion.kernel_results import derived_results, fewer_results, split_results
from symc.opt.loops.chunks import Pair, in_chunks, pairs

#: Rounds of cutting, and tries in a round to make up for gaps between buffers.
ROUNDS, TRIES = 8, 4
#: A round that gains less than this share is the last.
GAIN = 0.01
#: How many lifetimes an error names.
SHOWN = 5


@dataclass(frozen=True)
class Budget:
    """Limit of ``max_bytes``, for calls in which every size name is at most the number in ``sizes``."""

    max_bytes: int
    sizes: Mapping[str, int] = field(default_factory=dict)


def fit(f: Function, donated: frozenset[int], budget: Budget) -> tuple[Function, Plan]:
    """A function with the same results whose plan takes at most ``budget.max_bytes``, and that plan.

    Loops stay whole if that is enough; else a loop and its backward loop are done in chunks.
    Raises MemoryBudgetError when nothing is found.
    """
    planner = Planner()
    best = _rounds(planner, f, donated, budget, split=True)
    if best.took > budget.max_bytes:
        chunked = _in_chunks(planner, f, donated, budget)
        for g, split in ((f, False), *([(chunked, True)] if chunked is not f else [])):
            best = min(best, _rounds(planner, g, donated, budget, split), key=lambda b: b.took)
    if best.took > budget.max_bytes:
        raise _too_small(best.plan, best.took, budget)
    return best.function, best.plan


@dataclass(frozen=True)
class Fitted:
    """A function, its steps in a sequence, and the plan of that."""

    function: Function
    work: Work
    sequence: Sequence[int]
    plan: Plan
    took: MemoryReport


def _rounds(planner: Planner, f: Function, donated: frozenset[int], budget: Budget, split: bool) -> Fitted:
    """The first that fits, or the smallest that is found. ``split``: kernels are taken apart first."""
    w = planner.work(f, donated)
    at = best = _fitted(planner, f, w, order(w), budget)
    if at.took > budget.max_bytes:
        at = _fitted(planner, f, w, _eager(w, budget.sizes), budget)
        at = _split(planner, at, donated, budget) if split else at
    for _ in range(ROUNDS):
        best = min(best, at, key=lambda b: b.took)
        if best.took <= budget.max_bytes:
            break
        found = _round(planner, at, donated, budget)
        if found is None or budget.max_bytes < found.took > (1 - GAIN) * at.took:
            best = min(best, found or at, key=lambda b: b.took)
            break
        at = found
    return best


def _fitted(planner: Planner, f: Function, w: Work, sequence: Sequence[int], budget: Budget) -> Fitted:
    plan = planner.finish(w, sequence)
    return Fitted(f, w, sequence, plan, memory(plan, budget.sizes))


def _in_chunks(planner: Planner, f: Function, donated: frozenset[int], budget: Budget) -> Function:
    """The loops that hand most to their backward loops, in chunks, as long as that helps and is needed."""

    def took(g: Function) -> int:
        w = planner.work(g, donated)
        return memory(planner.finish(w, _eager(w, budget.sizes)), budget.sizes)

    now, refused = took(f), 0
    while now > budget.max_bytes:
        found = sorted(pairs(f), key=lambda p: -_handed_on(p, budget.sizes))
        counts = [(p, _chunks(p, budget.sizes)) for p in found][refused:]
        pair, count = next(((p, k) for p, k in counts if k > 1), (None, 0))
        if pair is None:
            break
        g = in_chunks(f, pair, count)
        less = took(g)
        if less < (1 - GAIN) * now:
            f, now = g, less
        else:
            refused += 1
    return f


def _handed_on(p: Pair, sizes: Mapping[str, int]) -> int:
    return sum(evaluate(s.type.nbytes, sizes) for s in p.stacks)


def _chunks(p: Pair, sizes: Mapping[str, int]) -> int:
    """The number of chunks that hold least: the carries with which they start, and what one of them hands on."""
    starts = sum(evaluate(o.type.nbytes, sizes) for o in p.forward.operands[: p.forward.attrs["carry"]])
    counts = [k for k in range(2, p.length // 2 + 1) if p.length % k == 0]
    return min(counts, key=lambda k: k * starts + _handed_on(p, sizes) // k, default=1)


def _eager(w: Work, sizes: Mapping[str, int]) -> Sequence[int]:
    """The sequence that holds least over time. Where peaks are equal, the usual order may put off what could be done
    at once (gradients of weights); what it holds meanwhile could not be given up."""
    placer, numbers = Placer(w), _numbers(w, sizes)
    late = update_edges(w, placer)
    found = [order(w)]
    for edges in [late, Edges(w)] if late.any else [late]:
        found += [greedy(w, edges, numbers), topological(edges, _by_level(w))]
    areas = [sum(curve(w, sequence, placer, numbers, _scratch(w, sizes))) for sequence in found]
    return found[areas.index(min(areas))]


def _by_level(w: Work) -> list[int]:
    """The steps, each as soon as what it reads is there."""
    level = [0] * len(w.values)
    for s in range(len(w.values)):
        level[s] = 1 + max((level[w.maker[c]] for c in w.reads[s] if w.maker[c] >= 0), default=0)
    return sorted(range(len(level)), key=lambda s: (level[s], s))


def _scratch(w: Work, sizes: Mapping[str, int]) -> list[int]:
    return [evaluate(w.nests[s].nbytes, sizes) if s in w.nests else 0 for s in range(len(w.values))]


def _round(planner: Planner, at: Fitted, donated: frozenset[int], budget: Budget) -> Fitted | None:
    """Compute again what is cheapest so that the plan fits; else, so that it takes least."""
    cut = _cut(at, budget)
    if not cut.held:
        return None
    target = budget.max_bytes - sum(cut.numbers[c] for c in at.work.leaves)
    best: Fitted | None = None
    for _ in range(TRIES):
        draft = choose(cut, target)
        f, values = Rebuilt(cut, draft).function(at.function)
        found = _planned(planner, f, donated, values, budget)
        best = found if best is None or found.took < best.took else best
        if best.took <= budget.max_bytes or draft.most > target:
            break
        target -= found.took - budget.max_bytes  # it would fit without gaps between buffers
    return best


def _split(planner: Planner, at: Fitted, donated: frozenset[int], budget: Budget) -> Fitted:
    """Results of kernels that are held over the fullest step, and that other results give cheaply, apart from them."""
    cut = _cut(at, budget)
    chosen = {}
    for s, cells in cut.held.items():
        v = at.work.values[s]
        if s in cut.partial:
            unread = {k for k, c in enumerate(at.work.writes[s]) if c in cells
                      and not any(r in cut.early for r in at.work.readers[c])}
            derived = derived_results(v, unread)
            if derived:
                chosen[v] = derived
    if not chosen:
        return at
    f = split_results(at.function, chosen)
    w = planner.work(f, donated)
    return _fitted(planner, f, w, _eager(w, budget.sizes), budget)


def _cut(at: Fitted, budget: Budget) -> Cut:
    w = at.work
    partial = {s for s, v in enumerate(w.values) if is_kernel(v) and len(v.regions[0].results) > 1
               and len(set(v.regions[0].results)) == len(v.regions[0].results)}
    costs = [cost(v, budget.sizes) for v in w.values]
    return Cut(w, at.sequence, _numbers(w, budget.sizes), _scratch(w, budget.sizes), costs, partial)


def _numbers(w: Work, sizes: Mapping[str, int]) -> list[int]:
    known = {t: evaluate(t.nbytes, sizes) for t in dict.fromkeys(w.types)}
    return [known[t] for t in w.types]


def _planned(planner: Planner, f: Function, donated: frozenset[int], values: Sequence[Value],
             budget: Budget) -> Fitted:
    """The plan that computes the values in this sequence."""
    w = planner.work(f, donated)
    at = {v: s for s, v in enumerate(w.values) if s not in w.copies}
    sequence = [at[v] for v in dict.fromkeys(values) if v in at]
    given = set(sequence)
    sequence += [s for s in range(len(w.values)) if s not in given]
    return _fitted(planner, f, w, topological(Edges(w), sequence), budget)


class Rebuilt:
    """A draft as values."""

    def __init__(self, cut: Cut, draft: Draft):
        self.w, self.draft, self.cut = cut.w, draft, cut
        self.cells: dict[int, Value] = dict(cut.w.leaves)  # cell of the draft -> the value in it
        self.memo: dict[tuple[Value, int], Value] = {}
        self.pruned: dict[tuple[Region, tuple[int, ...]], tuple[list[int], list[int], Region]] = {}
        self.home: dict[Value, tuple[int, ...]] = {v: (c,) for c, v in cut.w.leaves.items()}  # old op -> its cells
        for s, v in enumerate(cut.w.values):
            if s not in cut.w.copies:
                self.home[v] = cut.w.writes[s]

    def function(self, f: Function) -> tuple[Function, list[Value]]:
        """The function, and its values in the sequence of the draft."""
        hints: Hints = {p: f.hints[p] for p in f.params if p in f.hints}
        sequence: list[Value] = []
        last: Value | None = None  # a result of what ran before: second computations wait for it
        for e in self.draft.emits:
            if e.step in self.w.copies:
                continue
            old = self.w.values[e.step]
            new = self._emitted(e, old, last)
            for v in (new, *[self.cells[c] for c in e.writes]):
                add_lines(hints, v, f.hints.get(old, NOWHERE))
            sequence.append(new)
            if e.writes and not e.again:
                last = self.cells[e.writes[0]]
        now = {self.draft.origin[c]: c for c in range(len(self.w.types))}
        results = [self._view(r, now[self._home(r)]) for r in f.body.results]
        return f.with_results(results, hints), sequence

    def _home(self, v: Value) -> int:
        """The old cell that ``v`` lies in."""
        op, k = source(v)
        return self.home[op][k]

    def _view(self, v: Value, cell: int) -> Value:
        """The view ``v`` of its cell as a view of another cell."""
        found = self.memo.get((v, cell))
        if found is None:
            if is_view(v):
                others = [self._view(o, self._home(o)) for o in v.operands[1:]]
                found = rebuild(v, [self._view(v.operands[0], cell), *others])
            else:
                found = self.cells[cell]
            self.memo[v, cell] = found
        return found

    def _emitted(self, e: Emit, old: Value, last: Value | None) -> Value:
        operands = [self._view(o, c) for o, c in zip(old.operands, e.reads, strict=True)]
        if e.again and all(c < len(self.w.types) for c in e.reads):
            operands[0] = again(operands[0], *([] if last is None else [last]))
        if len(e.results) == len(self.w.writes[e.step]):
            new = rebuild(old, operands)
            results = results_of(new)
        else:
            region = old.regions[0]
            key = region, e.results
            if key not in self.pruned:
                self.pruned[key] = fewer_results(region, e.results)
            takes, gives, smaller = self.pruned[key]
            new = fused(*[operands[k] for k in takes], regions=[smaller])
            by = dict(zip(gives, results_of(new), strict=True))
            results = [by[r] for r in e.results]
        self.cells.update(zip(e.writes, results, strict=True))
        return new


# --- the error --------------------------------------------------------------------------------------------------------


def _too_small(plan: Plan, report: MemoryReport, budget: Budget) -> MemoryBudgetError:
    fixed = evaluate(persistent(plan), budget.sizes)
    results = sum(r.nbytes for r in report.rows if r.kind == "result")
    rows = largest_rows(plan, budget.sizes)
    if fixed + results > budget.max_bytes:
        what = f"inputs, states, constants and results alone take {fixed + results:,}"
    else:
        what = f"the lowest peak that was found is {int(report):,} ({fixed:,} of it inputs, states and constants)"
    return MemoryBudgetError(
        f"{plan.function.name}: {budget.max_bytes:,} bytes are not enough: {what}", values=rows,
        help=f"max_bytes={int(report)} is enough; of what is held at the fullest step the largest is listed, "
        "computed again already where that helps",
    )


def largest_rows(plan: Plan, sizes: Mapping[str, int]) -> list[tuple[str, Any, Any]]:
    """Rows of an error: the largest buffers of the fullest step, with the user's lines."""
    rows = []
    for h in _largest(plan, sizes):
        lines = plan.function.locations(plan.steps[h.first].value)
        size = evaluate(h.type.nbytes, sizes)
        rows.append((f"%{h.buffer}, {size:,} bytes, steps {h.first} to {h.last}", h.type, lines[0] if lines else None))
    return rows


def _largest(plan: Plan, sizes: Mapping[str, int]) -> list[Held]:
    """Buffers that are held at the fullest step: bytes times steps, the most first."""
    every = [h for h in held(plan) if plan.buffers[h.buffer].kind in ("temp", "result")]
    if not every:
        return []
    size = {h: evaluate(h.type.nbytes, sizes) for h in every}
    change = [0] * (len(plan.steps) + 1)
    for h in every:
        change[h.first] += size[h]
        change[h.last + 1] -= size[h]
    now, levels = 0, []
    for d in change[:-1]:
        now += d
        levels.append(now)
    at = levels.index(max(levels))
    alive = [h for h in every if h.first <= at <= h.last]
    return sorted(alive, key=lambda h: (-size[h] * (1 + h.last - h.first), h.first))[:SHOWN]
