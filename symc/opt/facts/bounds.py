"""Index checks: generated kernels read where an index says, so an index that may be out of bounds is checked before.

What is in bounds by construction (counting up to the size, positions of sorting, constants, remainders) is not checked.
Where the reason lies outside of a loop or is a longer chain, `bounded` says so to who comes later.
"""

from __future__ import annotations

import numpy as np

from symc.ir.bodies import is_control
from symc.ir.dim import Size, known_nonnegative, product
from symc.ir.function import Function
from symc.ir.location import NOWHERE, Inside, add_lines, merge_inside
from symc.ir.op import splat
from symc.ir.ops.arithmetic import maximum, minimum
from symc.ir.ops.compare import eq
from symc.ir.ops.index import index_operands
from symc.ir.ops.kernel import bounded, check_index, checked_index
from symc.ir.ops.logic import where
from symc.ir.ops.shape import broadcast
from symc.ir.ranges import UNKNOWN, Range, wrapped_index
from symc.ir.traverse import rebuild, region_params
from symc.ir.value import Region, Value, make
from symc.ir.value_ranges import range_of
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.regions import as_function, with_lines
from symc.opt.engine.terms import size_like
from symc.opt.facts.analysis import Analysis
from symc.opt.facts.fact import Fact
from symc.opt.facts.transfer.ends import whole


def in_bounds(index: Value, size: Size) -> bool:
    """True if every element of ``index`` is known to be in [0, size), from itself and what it is a movement of."""
    while "movement" in index.op.traits and len(index.operands) == 1 or _keeps_numbers(index):
        if index.op is bounded and known_nonnegative(size - index.attrs["size"]):
            return True
        index = index.operands[0]
    return _inside(range_of(index, lambda o: UNKNOWN), size)


def indices_checked(v: Value) -> bool:
    """True if all indices of a gather or scatter are known to be in bounds, or there are none."""
    return all(in_bounds(v.operands[k], v.operands[0].shape[a]) for k, a in index_operands(v))


def _is_clipped(index: Value, size: Size) -> bool:
    """True if an index is between 0 and ``size - 1``, or -1 where there is nothing to index, which is out of bounds."""
    if index.op not in (minimum, maximum):
        return False
    ranges = [_range_near(o) for o in index.operands]
    for (low, high), (first, last) in (ranges, ranges[::-1]):
        if index.op is minimum and _inside((low, 0), size + 1) and first is not None and first == last == size - 1:
            return True
        if index.op is maximum and first == last == 0 and _inside((0, high), size + 1):
            return True
    return False


def _range_near(v: Value, far: int = 2) -> Range:
    """The range that follows from a value and a few below it."""
    return range_of(v, lambda o: _range_near(o, far - 1) if far else UNKNOWN)


def _keeps_numbers(v: Value) -> bool:
    """A cast to a dtype that holds every number of the operand's: a narrower one would wrap around."""
    return v.op.name == "cast" and np.can_cast(v.operands[0].dtype, v.dtype, "safe")


@standard_pass(
    after=("hoist_movements",),
    why="all that could prove an index in bounds or drop a gather is done",
    records=False, on=("indices",), for_kernels=True,
)
def check_indices(f: Function) -> Function:
    """Gathers read only where an index was checked."""
    return _Checker(f, Analysis()).run()


class _Checker:
    """The pass on one function. ``facts``: what is known of its values, from what is known of its params."""

    def __init__(self, f: Function, facts: Analysis):
        self.f, self.facts = f, facts
        self.done: dict[Value, Value] = {}
        self.hints = dict(f.hints)
        self.inside: Inside = {region: dict(lines) for region, lines in f.inside.items()}
        self.bodies: dict[tuple[Region, tuple[Fact, ...]], Region] = {}
        self.checks: dict[tuple[Value, Size], Value] = {}

    def run(self) -> Function:
        f = self.f
        for v in f.values():
            operands = [self.done[o] for o in v.operands]
            for k, axis in index_operands(v):
                operands[k] = self._index(v, v.operands[k], operands[k], axis)
            new = rebuild(v, operands)
            if v.regions and is_control(v):
                new = make(v.op, operands, v.attrs, [self._body(v, k) for k in range(len(v.regions))])
            self.done[v] = new
            if new is not v:
                add_lines(self.hints, new, f.hints.get(v, NOWHERE))
        return with_lines(f.with_results([self.done[r] for r in f.body.results], self.hints), self.inside)

    def _index(self, v: Value, old: Value, new: Value, axis: int) -> Value:
        """The index ``new`` (``old`` in the function as it was), checked if that is needed."""
        size = v.operands[0].shape[axis]
        x = wrapped_index(old)
        if x is not None and (self.facts(x).nonnegative or _is_clipped(x, size)):  # nothing wraps around
            old, new = x, self.done[x]
        if in_bounds(new, size):
            return new
        out = self.checks.get((new, size))
        if out is None:
            known = _inside(whole(self.facts(old)), size)
            out = bounded(new, size=size) if known else _checked(new, v.operands[0], axis)
            self.checks[new, size] = out
        add_lines(self.hints, out, self.f.hints.get(v, NOWHERE))
        return out

    def _body(self, v: Value, k: int) -> Region:
        """Region ``k`` of a loop or branch, with what is known in it."""
        region = v.regions[k]
        facts = self.facts.of_region(v, k)
        given = tuple(facts(p) for p in region_params(region))
        found = self.bodies.get((region, given))
        if found is None:
            out = _Checker(as_function(region, self.inside), facts).run()
            merge_inside(self.inside, out.inside)
            merge_inside(self.inside, {out.body: {x: lines for x, lines in out.hints.items() if lines}})
            found = self.bodies[region, given] = out.body
        return found


def _checked(index: Value, array: Value, axis: int) -> Value:
    """An index with a check, made before it is repeated. Nothing is wrong with one that is repeated no times."""
    if index.op is not broadcast or not index.operands[0].shape:
        return checked_index(index, array, axis)
    once, placed = index.operands[0], index.attrs["axes"]
    times = product(n for a, n in enumerate(index.shape) if a not in placed)
    if not known_nonnegative(times - 1):
        zero = splat(0, once.type)
        once = where(eq(size_like(times, once.type), zero), zero, once)
    return broadcast(check_index(once, **checked_index(index, array, axis).attrs), axes=placed, shape=index.shape)


def _inside(found: Range, size: Size) -> bool:
    """True if a range is in [0, size)."""
    low, high = found
    return low is not None and high is not None and known_nonnegative(low) and known_nonnegative(size - 1 - high)
