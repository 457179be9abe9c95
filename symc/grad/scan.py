"""Derivatives of ``scan``.

Forward mode: one scan that carries tangents beside the carries. Reverse mode: the scan again, which also gives what
the backward pass reads (``residuals``), then a scan in the other direction that carries cotangents. Gradients by
captured values are sums over steps, taken outside of the loop where possible (``accumulate``).

The operands of the forward scan are those of the scan itself, and its first results the same, so that the optimizer
makes one loop of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symc.grad.accumulate import Sums, add_to, sum_over_steps
from symc.grad.forward import jvp
from symc.grad.masks import selects
from symc.grad.one_op import zeros
from symc.grad.residuals import read_again
from symc.grad.reverse import arrivals
from symc.grad.varying import bits, connections
from symc.ir import location
from symc.ir.bodies import close, loop_captures, make_scan
from symc.ir.closure_scope import ClosureScope, open_quietly, repeated, row_of, substitute
from symc.ir.dim import Size
from symc.ir.ops.control import scan
from symc.ir.ops.kernel import results_of
from symc.ir.record import dataclass
from symc.ir.traverse import dependent, free_inputs, postorder, region_params
from symc.ir.value import Value, fresh_input

Maybe = Value | None


class Opened:
    """A scan taken apart, in a scope of its own: its operands and the leaves of its body."""

    def __init__(self, v: Value, scope: ClosureScope):
        self.v, self.scope = v, scope
        self.carry: int = v.attrs["carry"]
        self.xs: int = v.attrs["xs"]
        self.length: Size = v.attrs["length"]
        self.reverse: bool = v.attrs["reverse"]
        self.operands = scope.leaves(v.operands)
        first = self.carry + self.xs
        self.captured = self.operands[first:]
        self.leaves = [*(fresh_input(p.type) for p in region_params(v.regions[0])[:first]), *self.captured]
        self.carries, self.rows = self.leaves[: self.carry], self.leaves[self.carry : first]
        self.results = open_quietly(v, 0, self.leaves)

    @property
    def steps(self) -> list[Value]:
        """The leaves that differ between steps."""
        return [*self.carries, *self.rows]


# --- forward mode -----------------------------------------------------------------------------------------------------


def scan_jvp(v: Value, tangents: Sequence[Maybe]) -> list[Maybe]:
    """The tangents of all results: of one scan, in which carries move along."""
    scope = ClosureScope()
    s = Opened(v, scope)
    nc, first = s.carry, s.carry + s.xs
    given = [None if t is None else scope.enter(t) for t in tangents]
    moved = {k for k, t in enumerate(given) if t is not None}
    leaves = {k: fresh_input(s.leaves[k].type) for k in sorted(moving(v, moved))}
    rows, stacks = _tangent_rows(s, given[nc:first])
    found = jvp(s.results, s.leaves, [*[leaves.get(k) for k in range(nc)], *rows, *given[first:]])
    ys = {k: t for k, t in enumerate(found) if k >= nc and t is not None}
    wanted = [*[or_zeros(found[k], s.leaves[k]) for k in leaves], *ys.values()]
    if not wanted:
        return [None] * len(s.results)
    carried = carries_needed(s.carries, s.results, wanted)
    kept = [s.results[k] for k in carried]
    made_of = set(postorder([*kept, *wanted]))
    xs = {row: x for row, x in zip(s.rows, s.operands[nc:first], strict=True) if row in made_of} | stacks
    starts = [*[s.operands[k] for k in carried], *[or_zeros(given[k], s.leaves[k]) for k in leaves]]
    params = [*[s.carries[k] for k in carried], *leaves.values(), *xs]
    out = make_scan(starts, list(xs.values()), s.length, s.reverse, params, [*kept, *wanted])
    made = dict(zip([*leaves, *ys], results_of(out)[len(carried):], strict=True))
    return scope.leave([made.get(k) for k in range(len(s.results))])


def _tangent_rows(s: Opened, given: Sequence[Maybe]) -> tuple[list[Maybe], dict[Value, Value]]:
    """The tangents of the rows of a step: leaves with their stacks, or what is the same in every step."""
    rows: list[Maybe] = []
    stacks: dict[Value, Value] = {}
    for leaf, t in zip(s.rows, given, strict=True):
        row = None if t is None else row_of(t)
        if t is not None and row is None:
            row = fresh_input(leaf.type)
            stacks[row] = t
        rows.append(row)
    return rows, stacks


def or_zeros(v: Maybe, like: Value) -> Value:
    """``v``, or zeros where there is none."""
    return zeros(like.type) if v is None else v


def moving(v: Value, moved: set[int]) -> set[int]:
    """The carries that move when these operands do."""
    nc, body = v.attrs["carry"], connections(v.regions[-1])
    out = {k for k in moved if k < nc}
    changed = True
    while changed:
        changed = False
        for k in range(nc):
            if k not in out and any(p in out if p < nc else p in moved for p in bits(body[k])):
                out.add(k)
                changed = True
    return out


def carries_needed(carries: Sequence[Value], new: Sequence[Value], results: Iterable[Value]) -> list[int]:
    """The carries that results of the body are made of, directly or in later steps."""
    place = {c: k for k, c in enumerate(carries)}
    needed: set[int] = set()
    pending = list(results)
    while pending:
        found = {place[v] for v in postorder(pending) if v in place} - needed
        needed |= found
        pending = [new[k] for k in sorted(found)]
    return sorted(needed)


# --- reverse mode -----------------------------------------------------------------------------------------------------


@dataclass
class Body:
    """The backward body, on the leaves of the forward one and of cotangents.

    ``carried``: carry -> (leaf of its cotangent, cotangent a step before); ``seeds``: leaves for rows of cotangents of
    ys, with the stacks; ``rows``: x -> its cotangent in a step; ``captured``: captured value -> what a step adds to its
    cotangent.
    """

    carried: dict[int, tuple[Value, Maybe]]
    seeds: dict[Value, Value]
    rows: dict[int, Value]
    captured: dict[int, Value]

    @property
    def results(self) -> list[Value]:
        return [*[c for _, c in self.carried.values() if c is not None], *self.rows.values(), *self.captured.values()]


def scan_vjp(v: Value, cotangents: Sequence[Maybe], needed: Sequence[bool], masked: bool) -> list[Maybe]:
    """The cotangents of the operands, given those of the results."""
    scope = ClosureScope()
    s = Opened(v, scope)
    given = [None if g is None else scope.enter(g) for g in cotangents]
    body = _backward_body(s, given, needed, masked or selects(v))
    if not body.results and not body.carried:
        return [None] * len(v.operands)
    return scope.leave(_Backward(s, body, given).build())


def _backward_body(s: Opened, given: Sequence[Maybe], needed: Sequence[bool], masked: bool) -> Body:
    nc, first = s.carry, s.carry + s.xs
    active = active_carries(s.v, given, needed)
    carried = {k: fresh_input(s.leaves[k].type) for k in active}
    seeds: dict[Value, Value] = {}
    outputs, gs = [s.results[k] for k in active], list(carried.values())
    for k in range(nc, len(s.results)):
        g = given[k]
        if g is None:
            continue
        row = row_of(g)
        if row is None:
            row = fresh_input(s.results[k].type)
            seeds[row] = g
        outputs.append(s.results[k])
        gs.append(row)
    wrt = [*active, *[k for k in range(nc, len(needed)) if needed[k]]]
    found = dict(zip(wrt, arrivals(outputs, [s.leaves[k] for k in wrt], gs, masked=masked), strict=True))
    others = {k: c for k, c in found.items() if k >= nc and c is not None}
    return Body({k: (leaf, found[k]) for k, leaf in carried.items()}, seeds,
                {k - nc: c for k, c in others.items() if k < first},
                {k - first: c for k, c in others.items() if k >= first})


def active_carries(v: Value, given: Sequence[Maybe], needed: Sequence[bool]) -> list[int]:
    """The carries that depend on what is needed, and that results with a cotangent depend on."""
    nc, body = v.attrs["carry"], connections(v.regions[-1])
    down = moving(v, {k for k, n in enumerate(needed) if n})
    up: set[int] = set()
    pending = [k for k, g in enumerate(given) if g is not None]
    while pending:
        k = pending.pop()
        if k < nc:
            up.add(k)
        pending += [p for p in bits(body[k]) if p < nc and p not in up and p not in pending]
    return sorted(down & up)


class _Backward:
    """The loops of the reverse mode, made of a backward body."""

    def __init__(self, s: Opened, body: Body, given: Sequence[Maybe]):
        self.s, self.body, self.given = s, body, given
        order = postorder(body.results)
        cotangents = [*[leaf for leaf, _ in body.carried.values()], *body.seeds]
        rows = free_inputs([g for g in given if g is not None])
        self.later = dependent(order, [*cotangents, *rows])  # known in the backward pass only
        self.varying = dependent(order, [*s.steps, *cotangents])
        self.stacks: dict[Value, Value] = dict(zip(s.rows, s.operands[s.carry : s.carry + s.xs], strict=True))
        self.stacks |= body.seeds

    def build(self) -> list[Maybe]:
        """The cotangents of all operands."""
        s, body = self.s, self.body
        sums = self._plan_sums()
        self._save(sums)
        stacked = {row: leaf for row, leaf in sums.stacks.items() if row not in self.stacks}
        out: list[Maybe] = [None] * len(s.operands)
        news = {k: or_zeros(c, leaf) for k, (leaf, c) in body.carried.items()}
        totals = {leaf: v for v, leaf in sums.added.items()}
        rows = {k: c for k, c in body.rows.items() if c in self.varying}
        for k, c in body.rows.items():
            if k not in rows:
                out[s.carry + k] = repeated(c, s.length)
        results = [*news.values(), *[add_to(leaf, v) for leaf, v in totals.items()], *rows.values(), *stacked]
        made = iter(self._loop(news, list(totals), results)) if results else iter(())
        ran = isinstance(s.length, int) and s.length > 0
        for k in news:
            final = next(made)
            out[k] = None if ran and body.carried[k][1] is None else final
        known = {leaf: next(made) for leaf in totals}
        for k in rows:
            out[s.carry + k] = next(made)
        known |= {leaf: next(made) for leaf in stacked.values()}
        known |= {leaf: self.stacks[row] for row, leaf in sums.stacks.items() if row in self.stacks}
        for k, c in zip(body.captured, sums.finish(known), strict=True):
            out[s.carry + s.xs + k] = c
        return out

    def _plan_sums(self) -> Sums:
        return sum_over_steps(list(self.body.captured.values()), self.varying, self.s.length, self.stacks)

    def _save(self, sums: Sums) -> None:
        """Decide what is saved, and let the forward scan give it: stacks of it are known then."""
        s = self.s
        ends = [*[c for _, c in self.body.carried.values() if c is not None], *self.body.rows.values(),
                *sums.stacks, *sums.added]  # fmt: skip
        ys = {y: k for k, y in enumerate(s.results) if k >= s.carry}
        free = {*s.rows, *[y for y in ys if y in self.varying]}
        read = read_again(ends, self.varying, self.later, s.carries, free)
        self.stacks |= self._forward([v for v in read if v not in s.rows], ys)

    def _forward(self, kept: Sequence[Value], ys: dict[Value, int]) -> dict[Value, Value]:
        """The stacks of values of the forward body."""
        s = self.s
        more = [v for v in kept if v not in ys]
        if not more:
            parts = results_of(s.v) if kept else []
            return {v: s.scope.leaf(parts[ys[v]]) for v in kept}
        known = set(s.captured)
        extra = [v for v in loop_captures(s.steps, more) if v not in known]
        body = close(s.leaves, extra, [*s.results, *more])
        again = scan(*s.operands, *extra, regions=(body.region,), **s.v.attrs)
        location.note_inside(again, body.notes)
        parts = results_of(again)
        stacks = {v: parts[ys[v]] for v in kept if v in ys}
        return stacks | dict(zip(more, parts[len(s.results):], strict=True))

    def _loop(self, news: dict[int, Value], totals: Sequence[Value], results: Sequence[Value]) -> list[Value]:
        """The backward scan."""
        s = self.s
        known = {v: fresh_input(v.type) for v in self.stacks}
        results = substitute(results, known)
        reached = set(postorder(results))
        rows = [v for v, leaf in known.items() if leaf in reached]
        leaves = [self.body.carried[k][0] for k in news]
        starts = [or_zeros(self.given[k], leaf) for k, leaf in zip(news, leaves, strict=True)]
        starts += [zeros(leaf.type) for leaf in totals]
        params = [*leaves, *totals, *[known[v] for v in rows]]
        return results_of(make_scan(starts, [self.stacks[v] for v in rows], s.length, not s.reverse, params, results))

