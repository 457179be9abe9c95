"""Programs of several ranks: which values differ from rank to rank, and what reductions over the ranks become.

Every rank runs the same program, on its own part of some arguments and on the same numbers of all others. A value
*varies* if it may be another one on another rank. What is reduced is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symc.ir.function import Function
from symc.ir.location import NOWHERE, add_lines, carrying
from symc.ir.ops.arithmetic import div, mul
from symc.ir.ops.collective import all_reduce, has_collective
from symc.ir.ops.control import cond, scan, while_
from symc.ir.ops.elementwise import like
from symc.ir.ops.shape import concat, reshape, slice_
from symc.ir.traverse import every_value, rebuild, replace
from symc.ir.value import Region, Value
from symc.opt.engine.regions import in_bodies

#: Reductions of at most so many elements are made together.
SMALL = 1 << 14
#: Whether each of some values varies.
Flags = tuple[bool, ...]
#: Called with a loop or branch that takes all ranks, and that some might enter, and others not.
Report = Callable[[Value], None]


class Varying:
    """Finds the values that vary; what is asked for twice is looked at once. ``report``: see ``Report``."""

    def __init__(self, report: Report | None = None):
        self._report, self._results = report, dict[tuple[Region, Flags], Flags]()

    def results(self, region: Region, params: Flags) -> Flags:
        """Flags of a region whose params vary as ``params`` says."""
        key = region, params
        if key not in self._results:
            found = self.values(region, params)
            self._results[key] = tuple(any(found[r]) for r in region.results)
        return self._results[key]

    def values(self, region: Region, params: Flags) -> dict[Value, Flags]:
        """Flags of all values in a region: one each, or one for each of several results."""
        found: dict[Value, Flags] = {}
        for v in region.values:
            found[v] = self._value(v, params, [found[o] for o in v.operands])
        return found

    def _value(self, v: Value, params: Flags, operands: Sequence[Flags]) -> Flags:
        if v.op.name == "param":
            return (params[v.attrs["index"]],)
        if v.op.name == "get":
            return (operands[0][v.attrs["index"]],) if len(operands[0]) > 1 else operands[0]
        if v.op is all_reduce:
            return (False,)
        given = tuple(map(any, operands))
        if v.op is scan:
            carries, out = self._carried(v.regions[0], v.attrs["carry"], given)
            return (*carries, *out[len(carries):])
        if v.op is while_:
            return self._while(v, given)
        if v.op is cond:
            return self._cond(v, given)
        if v.regions and all(len(r.params) == len(given) for r in v.regions):  # such as a checkpoint
            return self._either([self.results(r, given) for r in v.regions])
        return (any(given),)

    def _carried(self, body: Region, carry: int, given: Flags) -> tuple[Flags, Flags]:
        """The carries after any number of steps, and the results of a step."""
        carries = given[:carry]
        while True:
            out = self.results(body, (*carries, *given[carry:]))
            more = tuple(a or b for a, b in zip(carries, out))
            if more == carries:
                return carries, out
            carries = more

    def _while(self, v: Value, given: Flags) -> Flags:
        condition, body = v.regions
        carries, _ = self._carried(body, v.attrs["carry"], given)
        if any(self.results(condition, (*carries, *given[len(carries):]))):
            self._diverges(v)
            return (True,) * (len(carries) + 1)
        return (*carries, False)

    def _cond(self, v: Value, given: Flags) -> Flags:
        if given[0]:
            self._diverges(v)
            return (True,) * len(v.regions[0].results)
        return self._either([self.results(r, given[1:]) for r in v.regions])

    def _diverges(self, v: Value) -> None:
        if self._report is not None and has_collective(v):
            self._report(v)

    def _either(self, flags: Sequence[Flags]) -> Flags:
        return tuple(map(any, zip(*flags, strict=True)))


def varying(f: Function, split: Sequence[int], report: Report | None = None) -> Flags:
    """Flags of the results of ``f`` that vary, if the inputs numbered ``split`` are parts."""
    return Varying(report).results(f.body, _params(f, split))


def for_ranks(f: Function, ranks: int, split: Sequence[int] = ()) -> Function:
    """``f`` as each of so many ranks runs it: reductions are sums, maxima and minima, or nothing where all ranks have
    the same. ``split``: inputs of which each rank has a part."""
    if not any(v.op is all_reduce for v in every_value(f.body)):
        return f

    def run(g: Function) -> Function:
        # of what a body is given nothing is known
        params = _params(g, split) if g.inputs is f.inputs else (True,) * len(g.inputs)
        flags = Varying().values(g.body, params)
        done: dict[Value, Value] = {}
        hints = dict(g.hints)
        for v in g.values():
            operands = [done[o] for o in v.operands]
            if v.op is all_reduce:
                new = _reduced(operands[0], v.attrs["kind"], ranks, any(flags[v.operands[0]]))
            else:
                new = rebuild(v, operands)
            done[v] = new
            for made in (new, *new.operands) if v.op is all_reduce else (new,):
                if made is not v and made not in operands:
                    add_lines(hints, made, g.hints.get(v, NOWHERE))
        return gathered(g.with_results([done[r] for r in g.body.results], hints))

    return in_bodies(run, f)


def _reduced(x: Value, kind: str, ranks: int, varies: bool) -> Value:
    if ranks == 1 or (not varies and kind != "add"):
        return x
    if not varies:
        return mul(x, like(x, ranks))
    return div(all_reduce(x, kind="add"), like(x, ranks)) if kind == "mean" else all_reduce(x, kind=kind)


def gathered(f: Function) -> Function:
    """``f`` with small reductions of one kind, none of which is made of another one, made into one: each takes about as
    long as one of ``SMALL`` elements."""
    depths: dict[Value, int] = {}  # how many reductions are on the way to a value
    buckets: dict[tuple[int, str, np.dtype], list[Value]] = {}
    for v in f.values():
        depth = depths[v] = max((depths[o] + (o.op is all_reduce) for o in v.operands), default=0)
        if v.op is all_reduce and isinstance(v.type.size, int) and v.type.size <= SMALL:
            buckets.setdefault((depth, v.attrs["kind"], v.dtype), []).append(v)
    mapping: dict[Value, Value] = {}
    hints = dict(f.hints)
    carry = carrying(f.hints, hints)
    for (_, kind, _), found in sorted(buckets.items(), key=lambda item: item[0][0]):
        if len(found) > 1:
            rows = [reshape(x, shape=(v.type.size,)) for v, x in
                    zip(found, replace([v.operands[0] for v in found], mapping, carry), strict=True)]
            joined, at = all_reduce(concat(*rows, axis=0), kind=kind), 0
            for v in found:
                part = slice_(joined, start=(at,), size=(v.type.size,), step=(1,))
                mapping[v] = reshape(part, shape=v.shape)
                at += v.type.size
                for new in (joined.operands[0], joined, part, mapping[v]):
                    carry(v, new)
    return f.with_results(replace(f.body.results, mapping, carry), hints) if mapping else f


def _params(f: Function, split: Sequence[int]) -> Flags:
    return tuple(k in set(split) for k in range(len(f.inputs)))
