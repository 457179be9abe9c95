"""A loop and its backward loop, in chunks: what the steps hand to the backward pass exists for one chunk at a time.

A forward loop of n steps that stacks residuals, and a loop in the other direction that reads them, become two loops
over chunks. The first keeps the carries with which each chunk starts; the second, chunk by chunk, runs the forward
steps once more, now with residuals, then the backward steps. What other passes took out of the loops, to be done for
all steps at once (``rows``), is done chunk by chunk too: products that make rows, products that are made of rows, sums
over steps. With about sqrt(n) chunks, memory is that of sqrt(n) carries and of sqrt(n) steps; the forward steps run
twice.

Nothing here says whether that is worth it; ``symc.codegen.plan.budget`` does, where memory is short.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from symc.ir.function import Function, Hints
from symc.ir.location import NOWHERE, Inside, carrying, merge_inside
from symc.ir.op import lookup, splat
from symc.ir.ops.control import scan
from symc.ir.ops.effect import has_effect
from symc.ir.ops.kernel import fused, results_of
from symc.ir.ops.shape import reshape
from symc.ir.record import dataclass, field, replace
from symc.ir.size_values import number
from symc.ir.traverse import dependent, postorder, users
from symc.ir.traverse import replace as replace_values
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, param
from symc.opt.fusion.kernel_results import without_unused_results
from symc.opt.loops.rows import RowOp, row_op

#: What a symbolic size is taken to be when arrays are compared.
NOMINAL = 256


@dataclass
class Pair:
    """``stacks``: arrays of all steps that need not exist as a whole. ``before``: row-wise ops that make rows of the
    loops, ``after``: those on what the backward loop gives; ``sums``: sums over steps."""

    forward: Value
    backward: Value
    stacks: list[Value] = field(default_factory=list)
    before: list[RowOp] = field(default_factory=list)
    after: list[RowOp] = field(default_factory=list)
    sums: list[RowOp] = field(default_factory=list)

    @property
    def length(self) -> int:
        return self.forward.attrs["length"]


def stacks_of(v: Value) -> dict[int, Value]:
    """The stacked results of a scan, by number of result."""
    return {k: r for k, r in enumerate(results_of(v)) if k >= v.attrs["carry"]}


def _xs(v: Value) -> Sequence[Value]:
    carry, xs = v.attrs["carry"], v.attrs["xs"]
    return v.operands[carry : carry + xs]


def _others(v: Value) -> Sequence[Value]:
    """The carries and captured values that a loop takes."""
    carry, xs = v.attrs["carry"], v.attrs["xs"]
    return [*v.operands[:carry], *v.operands[carry + xs :]]


# --- which loops ------------------------------------------------------------------------------------------------------


def pairs(f: Function) -> list[Pair]:
    """The loops of a function that can be done in chunks, first to last."""
    values = f.values()
    loops = [v for v in values if v.op is scan and isinstance(v.attrs["length"], int) and v.attrs["length"] > 3
             and not has_effect(v)]
    by = users(values) if loops else {}
    out = []
    for v in loops:
        stacks = set(stacks_of(v).values())
        readers = [b for b in loops if b is not v and any(o in stacks for o in _xs(b))]
        if len(readers) == 1 and _opposite(v, readers[0]):
            pair = _Finder(f, v, readers[0], values, by).pair()
            if any(s in stacks for s in pair.stacks):
                out.append(pair)
    return out


def _opposite(v: Value, b: Value) -> bool:
    return v.attrs["length"] == b.attrs["length"] and v.attrs["reverse"] != b.attrs["reverse"]


class _Finder:
    """Finds what belongs to a pair of loops."""

    def __init__(self, f: Function, v: Value, b: Value, values: Sequence[Value], by: dict[Value, list[Value]]):
        self.v, self.b, self.values, self.by = v, b, values, by
        self.wanted = set(f.body.results)
        self.own = [*stacks_of(v).values(), *stacks_of(b).values()]
        self.later = dependent(values, [b])
        self.rows: set[Value] = set(self.own)  # arrays of all steps that a chunk of the backward loop has rows of
        self.length: int = v.attrs["length"]

    def pair(self) -> Pair:
        after, sums = self._after()
        readers = {op.value for op in (*after, *sums)}
        before = self._before(readers)
        inner = readers | {op.value for op in before}
        made = [r for op in (*before, *after) for r in op.results]
        stacks = [s for s in (*self.own, *made) if self._only_rows(s, inner)]
        return Pair(self.v, self.b, stacks, before, after, sums)

    def _after(self) -> tuple[list[RowOp], list[RowOp]]:
        after: list[RowOp] = []
        sums: list[RowOp] = []
        for x in self.values:
            op = row_op(x, self.length) if x in self.later and x is not self.b else None
            if op and all(o in self.rows or o not in self.later for o in op.row_operands) and not any(
                o in self.later or o in self.own for o in op.other_operands
            ):
                (sums if op.total else after).append(op)
                if not op.total:
                    self.rows.update(op.results)
        return after, sums

    def _before(self, readers: Collection[Value]) -> list[RowOp]:
        """Row-wise ops of which nothing but rows is wanted; they must not be narrower than what they are made of."""
        inner = {*readers}
        found: list[RowOp] = []
        for x in reversed(self.values):
            op = row_op(x, self.length) if x not in self.later and x is not self.v else None
            if op and not op.total and not any(o in self.own for o in x.operands) and _widens(op) and all(
                self._only_rows(r, inner) for r in op.results
            ):
                found.append(op)
                inner.add(x)
        return found[::-1]

    def _only_rows(self, s: Value, inner: Collection[Value]) -> bool:
        """True if rows alone are read of ``s``, by the loops and by ops that are done in chunks."""
        if s in self.wanted or not self.by.get(s):
            return False
        for u in self.by[s]:
            if u in (self.v, self.b):
                if s in _others(u):
                    return False
            elif u not in inner or s in row_op(u, self.length).other_operands:  # type: ignore[union-attr]
                return False
        return True


def _widens(op: RowOp) -> bool:
    """True if results are as large as what they are made of, inputs aside, or larger: else those should exist."""
    made = [o for o in op.row_operands if o.operands]
    return sum(_nominal(o) for o in made) <= sum(_nominal(r) for r in op.results)


def _nominal(v: Value) -> int:
    return number(v.type.nbytes, NOMINAL)


# --- in chunks --------------------------------------------------------------------------------------------------------


def in_chunks(f: Function, pair: Pair, count: int) -> Function:
    """The function with a pair of loops in ``count`` chunks of equal length."""
    return _Chunks(f, pair, count).run()


class _Chunks:
    def __init__(self, f: Function, pair: Pair, count: int):
        self.f, self.pair, self.count = f, pair, count
        self.length = pair.length // count
        self.dropped = set(pair.stacks)
        self.hints: Hints = dict(f.hints)
        self._carry = carrying(self.hints, self.hints)
        self.inside: Inside = dict(f.inside)

    def run(self) -> Function:
        known, starts = self._forward()
        made = self._backward(known, starts)
        results = replace_values(self.f.body.results, {**known, **made}, self._carry)
        return replace(self.f, body=Region(self.f.body.params, results), hints=self.hints, inside=self.inside)

    def _split(self, x: Value) -> Value:
        return reshape(x, shape=(self.count, self.length, *x.shape[1:]))

    def _joined(self, y: Value) -> Value:
        return reshape(y, shape=(self.pair.length, *y.shape[2:]))

    def _body(self, params: Sequence[Value], results: Sequence[Value], like: Value) -> Region:
        """A body over chunks; what is in it has the lines of the loop that it replaces."""
        region = Region([p.type for p in params], results)
        lines = {v: self.f.hints.get(like, NOWHERE) for v in postorder(results) if v.operands}
        merge_inside(self.inside, {region: lines})
        return region

    def _steps(self, v: Value, operands: Sequence[Value], wanted: Iterable[int]) -> dict[int, Value]:
        """The steps of one chunk of loop ``v``: the wanted ones of its results, and all carries."""
        old, nc = v.regions[0], v.attrs["carry"]
        kept = [*range(nc), *[k for k in wanted if k >= nc]]
        region = without_unused_results(Region(old.params, [old.results[k] for k in kept]))
        if old in self.f.inside and region is not old:
            own = set(postorder(region.results))
            merge_inside(self.inside, {region: {x: locs for x, locs in self.f.inside[old].items() if x in own}})
        attrs = {**v.attrs, "length": self.length}
        return dict(zip(kept, results_of(scan(*operands, regions=[region], **attrs)), strict=True))

    def _needs(self, rows: Iterable[Value], others: Iterable[Value]) -> tuple[list[RowOp], list[Value], list[Value]]:
        """The ops before the loops that these rows need, and of what: arrays of all steps, and other values."""
        need, outside = dict.fromkeys(rows), dict.fromkeys(others)
        ops = []
        for op in reversed(self.pair.before):
            if any(r in need for r in op.results):
                ops.append(op)
                need.update(dict.fromkeys(op.row_operands))
                outside.update(dict.fromkeys(op.other_operands))
        made = {r for op in ops for r in op.results}
        return ops[::-1], [x for x in need if x not in made], list(outside)

    def _run(self, ops: Iterable[RowOp], here: dict[Value, Value]) -> None:
        for op in ops:
            here.update(zip(op.results, op.on([here[o] for o in op.value.operands], self.length), strict=True))

    def _forward(self) -> tuple[dict[Value, Value], list[Value]]:
        """The loop over chunks without residuals: what its results are now, and the carries at starts."""
        v = self.pair.forward
        nc, nx = v.attrs["carry"], v.attrs["xs"]
        kept = [k for k, s in stacks_of(v).items() if s not in self.dropped]
        ops, rows, outside = self._needs(_xs(v), v.operands[nc + nx :])
        operands = [*v.operands[:nc], *[self._split(x) for x in rows], *outside]
        params = _params(operands, nc, len(rows))
        here = dict(zip([*rows, *outside], params[nc:], strict=True))
        self._run(ops, here)
        inner = self._steps(v, [*params[:nc], *[here[o] for o in v.operands[nc:]]], kept)
        body = self._body(params, [*[inner[k] for k in range(nc)], *[inner[k] for k in kept], *params[:nc]], v)
        out = scan(*operands, carry=nc, xs=len(rows), length=self.count, reverse=v.attrs["reverse"], regions=[body])
        results, old = results_of(out), results_of(v)
        known = {old[k]: results[k] for k in range(nc)}
        known.update((old[k], self._joined(r)) for k, r in zip(kept, results[nc : nc + len(kept)], strict=True))
        for a, r in [(v, out), *known.items()]:
            self._carry(a, r)
        return known, results[nc + len(kept) :]

    def _backward(self, known: dict[Value, Value], starts: Sequence[Value]) -> dict[Value, Value]:
        """The loop over chunks that runs both loops: what results of the backward loop, and of the ops after it, are
        now."""
        b, p = self.pair.backward, self.pair
        bc = b.attrs["carry"]
        made_after = [r for op in p.after for r in op.results]
        ops, rows, outside = self._backward_needs(made_after)
        totals = [r for op in p.sums for r in op.results]
        zeros = [fused(regions=[Region((), [splat(0, r.type)])]) for r in totals]
        first = replace_values([*b.operands[:bc], *rows, *outside], known, self._carry)
        operands = [*first[:bc], *zeros, *starts, *[self._split(x) for x in first[bc : bc + len(rows)]],
                    *first[bc + len(rows) :]]
        params = _params(operands, bc + len(zeros), len(starts) + len(rows))
        gs, sums, begin = params[:bc], params[bc : bc + len(zeros)], params[bc + len(zeros) :][: len(starts)]
        here = dict(zip([*rows, *outside], params[bc + len(zeros) + len(starts) :], strict=True))
        self._run(ops, here)
        carries = self._both(begin, gs, here)
        kept = [x for x in (*stacks_of(b).values(), *made_after) if x not in self.dropped]
        added = [_sum(t, here[r]) for t, r in zip(sums, totals, strict=True)]
        body = self._body(params, [*carries, *added, *[here[x] for x in kept]], b)
        out = scan(*operands, carry=bc + len(zeros), xs=len(starts) + len(rows), length=self.count,
                   reverse=b.attrs["reverse"], regions=[body])
        results = results_of(out)
        made = dict(zip([*results_of(b)[:bc], *totals], results, strict=False))
        made.update((x, self._joined(r)) for x, r in zip(kept, results[bc + len(totals) :], strict=True))
        for a, r in [(b, out), *made.items()]:
            self._carry(a, r)
        return made


    def _backward_needs(self, made_after: Sequence[Value]) -> tuple[list[RowOp], list[Value], list[Value]]:
        v, b, p = self.pair.forward, self.pair.backward, self.pair
        after = [*p.after, *p.sums]
        own = {*[s for s in stacks_of(v).values() if s in self.dropped], *stacks_of(b).values(), *made_after}
        rows = [*_xs(v), *_xs(b), *[o for op in after for o in op.row_operands]]
        captured = [*v.operands[v.attrs["carry"] + v.attrs["xs"] :], *b.operands[b.attrs["carry"] + b.attrs["xs"] :]]
        return self._needs([x for x in rows if x not in own],
                           [*captured, *[o for op in after for o in op.other_operands]])

    def _both(self, begin: Sequence[Value], gs: Sequence[Value], here: dict[Value, Value]) -> list[Value]:
        """Both loops over the steps of a chunk, and the ops after them; the last carries of the backward one."""
        v, b = self.pair.forward, self.pair.backward
        stacks = {k: s for k, s in stacks_of(v).items() if s in self.dropped}
        again = self._steps(v, [*begin, *[here[o] for o in v.operands[len(begin) :]]], stacks)
        here.update((s, again[k]) for k, s in stacks.items())
        back = self._steps(b, [*gs, *[here[o] for o in b.operands[len(gs) :]]], stacks_of(b))
        here.update((s, back[k]) for k, s in stacks_of(b).items())
        self._run([*self.pair.after, *self.pair.sums], here)
        return [back[k] for k in range(len(gs))]


def _params(operands: Sequence[Value], carry: int, xs: int) -> list[Value]:
    """The params of a scan over these operands."""
    types = [o.type.with_shape(o.shape[1:]) if carry <= k < carry + xs else o.type for k, o in enumerate(operands)]
    return [param(k, t) for k, t in enumerate(types)]


def _sum(a: Value, b: Value) -> Value:
    """A kernel that adds."""
    t: TensorType = a.type
    return fused(a, b, regions=[Region((t, t), [lookup("add")(param(0, t), param(1, t))])])
