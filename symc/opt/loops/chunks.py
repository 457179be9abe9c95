"""A loop and its backward loop, in chunks: what the steps hand to the backward pass exists for one chunk at a time.

A forward loop of n steps that stacks residuals, and a loop in the other direction that reads them, become two loops over
chunks. The first keeps the carries with which each chunk starts; the second, chunk by chunk, runs the forward steps once
more, now with residuals, then the backward steps, and adds up the sums over time that it was followed by (``x^T g``, one
product a chunk instead of one for all). With about sqrt(n) chunks, memory is that of sqrt(n) carries and residuals of
sqrt(n) steps; the forward steps run twice.

Nothing here says whether that is worth it; ``symc.codegen.budget`` does, where memory is short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from symc.ir.function import Function, Hints
from symc.ir.location import NOWHERE, Inside, merge_inside
from symc.ir.op import lookup, splat
from symc.ir.ops.control import scan
from symc.ir.ops.effect import has_effect
from symc.ir.ops.kernel import fused, results_of
from symc.ir.ops.shape import reshape
from symc.ir.traverse import postorder, users
from symc.ir.traverse import replace as replace_values
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, param
from symc.opt.remat import without_unused_results


@dataclass
class Pair:
    """``stacks``: results of the two loops that need not exist as a whole; ``sums``: what is made of them over time."""

    forward: Value
    backward: Value
    stacks: list[Value] = field(default_factory=list)
    sums: list[Value] = field(default_factory=list)

    @property
    def length(self) -> int:
        return self.forward.attrs["length"]


def stacks_of(v: Value) -> dict[int, Value]:
    """The stacked results of a scan, by number of result."""
    return {k: r for k, r in enumerate(results_of(v)) if k >= v.attrs["carry"]}


def pairs(f: Function) -> list[Pair]:
    """The loops of a function that can be done in chunks, first to last."""
    values = f.values()
    by = users(values)
    loops = [v for v in values if v.op is scan and isinstance(v.attrs["length"], int) and v.attrs["length"] > 3
             and not has_effect(v)]
    out = []
    for v in loops:
        stacks = set(stacks_of(v).values())
        readers = [b for b in loops if b is not v and any(o in stacks for o in _xs(b))]
        if len(readers) == 1 and _opposite(v, readers[0]):
            pair = _pair(f, v, readers[0], values, by)
            if any(s in stacks for s in pair.stacks):
                out.append(pair)
    return out


def _xs(v: Value) -> Sequence[Value]:
    carry, xs = v.attrs["carry"], v.attrs["xs"]
    return v.operands[carry : carry + xs]


def _opposite(v: Value, b: Value) -> bool:
    return v.attrs["length"] == b.attrs["length"] and v.attrs["reverse"] != b.attrs["reverse"]


def _pair(f: Function, v: Value, b: Value, values: Sequence[Value], by: dict[Value, list[Value]]) -> Pair:
    """What need not exist as a whole: read by the backward loop as rows, and summed over time, by nothing else."""
    own = [*stacks_of(v).values(), *stacks_of(b).values()]
    later: set[Value] = {b}
    for x in values:
        if any(o in later for o in x.operands):
            later.add(x)
    sums = [x for x in values if _over_time(x, v.attrs["length"])
            and any(o in own for o in x.operands) and all(o in own or o not in later for o in x.operands)]
    wanted, places = set(f.body.results), set(sums)
    carries = {*b.operands[: b.attrs["carry"]], *b.operands[b.attrs["carry"] + b.attrs["xs"] :]}
    stacks = [s for s in own if s not in wanted and s not in carries and by.get(s)
              and all(u in places or u is b and s in _xs(b) for u in by[s])]
    return Pair(v, b, stacks, [x for x in sums if any(o in stacks for o in x.operands)])


def _over_time(v: Value, length: int) -> bool:
    """A product that sums over the leading axis of both operands."""
    if v.op.name != "dot":
        return False
    left, right = v.attrs["contract"]
    return any(a == b == 0 for a, b in zip(left, right, strict=True)) and v.operands[0].shape[0] == length


# --- in chunks --------------------------------------------------------------------------------------------------------


def in_chunks(f: Function, pair: Pair, count: int) -> Function:
    """The function with a pair of loops in ``count`` chunks of equal length."""
    return _Chunks(f, pair, count).run()


class _Chunks:
    def __init__(self, f: Function, pair: Pair, count: int):
        self.f, self.pair, self.count = f, pair, count
        self.length = pair.length // count
        self.hints: Hints = dict(f.hints)
        self.inside: Inside = dict(f.inside)

    def run(self) -> Function:
        v, b = self.pair.forward, self.pair.backward
        known, starts = self._forward(v)
        made = self._backward(v, b, known, starts)
        results = replace_values(self.f.body.results, {**known, **made}, self._carry)
        return replace(self.f, body=Region(self.f.body.params, results), hints=self.hints, inside=self.inside)

    def _carry(self, old: Value, new: Value) -> None:
        self.hints[new] = self.hints.get(new, NOWHERE) | self.hints.get(old, NOWHERE)

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

    def _forward(self, v: Value) -> tuple[dict[Value, Value], list[Value]]:
        """The loop over chunks without residuals: its results for those of ``v``, and the carries at starts."""
        nc, nx = v.attrs["carry"], v.attrs["xs"]
        dropped = set(self.pair.stacks)
        kept = [k for k, s in stacks_of(v).items() if s not in dropped]
        operands = [*v.operands[:nc], *[self._split(x) for x in _xs(v)], *v.operands[nc + nx :]]
        params = _params(operands, nc, nx)
        inner = self._steps(v, params, kept)
        body = self._body(params, [*[inner[k] for k in range(nc)], *[inner[k] for k in kept], *params[:nc]], v)
        attrs = {**v.attrs, "length": self.count}
        out = scan(*operands, regions=[body], **attrs)
        self._carry(v, out)
        results = results_of(out)
        old = results_of(v)
        known = {old[k]: results[k] for k in range(nc)}
        known.update((old[k], self._joined(r)) for k, r in zip(kept, results[nc : nc + len(kept)], strict=True))
        for a, r in known.items():
            self._carry(a, r)
        return known, results[nc + len(kept) :]

    def _backward(self, v: Value, b: Value, known: dict[Value, Value], starts: Sequence[Value]) -> dict[Value, Value]:
        """The loop over chunks that runs both loops: what it gives for results of ``b`` and sums over time."""
        nc, nx = v.attrs["carry"], v.attrs["xs"]
        bc, bx = b.attrs["carry"], b.attrs["xs"]
        dropped = set(self.pair.stacks)
        own = set(stacks_of(b).values())
        rows = dict.fromkeys([*_xs(v), *[x for x in _xs(b) if x not in dropped]])
        rows.update(dict.fromkeys(o for s in self.pair.sums for o in s.operands if o not in dropped and o not in own))
        outside = dict.fromkeys([*v.operands[nc + nx :], *b.operands[bc + bx :]])
        zeros = [fused(regions=[Region((), [splat(0, s.type)])]) for s in self.pair.sums]
        first = replace_values([*b.operands[:bc], *rows, *outside], known, self._carry)
        carries, stacks, captured = first[:bc], first[bc : bc + len(rows)], first[bc + len(rows) :]
        operands = [*carries, *zeros, *starts, *[self._split(x) for x in stacks], *captured]
        params = _params(operands, bc + len(zeros), len(starts) + len(rows))
        at = iter(params)
        gs, sums = [next(at) for _ in range(bc)], [next(at) for _ in zeros]
        begin = [next(at) for _ in starts]
        here = {x: next(at) for x in rows} | {x: next(at) for x in outside}
        again = self._steps(v, [*begin, *[here[x] for x in _xs(v)], *[here[x] for x in v.operands[nc + nx :]]],
                            [k for k, s in stacks_of(v).items() if s in dropped])
        here.update((s, again[k]) for k, s in stacks_of(v).items() if s in dropped)
        back = self._steps(b, [*gs, *[here[x] for x in b.operands[bc:]]], stacks_of(b))
        here.update((s, back[k]) for k, s in stacks_of(b).items())
        added = [_sum(t, s.op(*[here[o] for o in s.operands], **s.attrs))
                 for t, s in zip(sums, self.pair.sums, strict=True)]
        kept = [k for k, s in stacks_of(b).items() if s not in dropped]
        body = self._body(params, [*[back[k] for k in range(bc)], *added, *[back[k] for k in kept]], b)
        out = scan(*operands, carry=len(gs) + len(sums), xs=len(begin) + len(rows), length=self.count,
                   reverse=b.attrs["reverse"], regions=[body])
        self._carry(b, out)
        return self._results(b, results_of(out), kept)

    def _results(self, b: Value, results: Sequence[Value], kept: Sequence[int]) -> dict[Value, Value]:
        old, bc = results_of(b), b.attrs["carry"]
        made = {old[k]: results[k] for k in range(bc)}
        made.update(zip(self.pair.sums, results[bc:], strict=False))
        last = results[bc + len(self.pair.sums) :]
        made.update((old[k], self._joined(r)) for k, r in zip(kept, last, strict=True))
        for a, r in made.items():
            self._carry(a, r)
        return made


def _params(operands: Sequence[Value], carry: int, xs: int) -> list[Value]:
    """The params of a scan over these operands."""
    types = [o.type.with_shape(o.shape[1:]) if carry <= k < carry + xs else o.type for k, o in enumerate(operands)]
    return [param(k, t) for k, t in enumerate(types)]


def _sum(a: Value, b: Value) -> Value:
    """A kernel that adds."""
    t: TensorType = a.type
    return fused(a, b, regions=[Region((t, t), [lookup("add")(param(0, t), param(1, t))])])


__all__ = ["Pair", "in_chunks", "pairs", "stacks_of"]
