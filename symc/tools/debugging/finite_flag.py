"""A function with one more result: whether inputs are finite, and every op gave finite numbers for finite ones.

The flag is computed by ordinary ops, in the bodies of loops and branches too, so that kernels look at what they make
while they make it. Params of bodies are taken to be finite: a flag that is false is a reason to look closely, and no
proof.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.ir.attrs import Attrs
from symc.ir.bodies import is_loop_or_branch
from symc.ir.function import Function
from symc.ir.op import is_lossless, splat
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import isfinite
from symc.ir.ops.control import BOOL, cond, while_
from symc.ir.ops.kernel import results_of
from symc.ir.ops.logic import and_, not_, or_
from symc.ir.ops.reduce import all_
from symc.ir.record import replace
from symc.ir.traverse import rebuild
from symc.ir.traverse import replace as replaced
from symc.ir.types import TensorType, is_inexact
from symc.ir.value import Region, Value, make, param


def with_flag(f: Function) -> Function:
    """``f`` with the flag as its last output, and new states as outputs."""
    flagged = _Flagged()
    results, flag = flagged.body(f.body.values, f.body.results)
    given = [param(k, t) for k, t in enumerate(f.body.params) if isinstance(t, TensorType) and is_inexact(t.dtype)]
    flag = _every([*map(_finite, given), flag])
    return replace(f, body=Region(f.body.params, [*results, flag]), updates=(), hints={}, inside={})


class _Flagged:
    """Regions that were given a flag."""

    def __init__(self) -> None:
        self._regions: dict[tuple[Region, int | None], Region] = {}

    def body(self, values: Sequence[Value], results: Sequence[Value]) -> tuple[list[Value], Value]:
        """The results of a body, and its flag."""
        done: dict[Value, Value] = {}
        doubtful: dict[Value, Value] = {}  # values that may be infinite without harm, and whether they are finite
        flags: list[Value] = []
        for v in values:
            if v in done:
                continue
            operands = [done[o] for o in v.operands]
            if is_loop_or_branch(v):
                new, flag = self._control(v, operands)
                flags.append(flag)
                done.update(zip(results_of(v), new, strict=True))
                done[v] = new[0]  # a tuple is met through its projections alone
                continue
            new_v = done[v] = rebuild(v, operands)
            self._look(v, new_v, [doubtful[o] for o in v.operands if o in doubtful], doubtful, flags)
        return [done[r] for r in results], _every(flags)

    def _look(self, v: Value, new: Value, given: Sequence[Value], doubtful: dict[Value, Value],
              flags: list[Value]) -> None:
        if v.data is not None:
            if is_inexact(v.dtype) and not np.isfinite(v.data).all():
                doubtful[v] = splat(False, BOOL)
            return
        if not isinstance(v.type, TensorType) or not is_inexact(v.dtype) or v.op.name == "param":
            if given and not isinstance(v.type, TensorType):
                doubtful[v] = _every(given)
            return
        if not given and is_lossless(v.op) and v.op is not cast:
            return
        fine = _finite(new)
        if given:
            doubtful[v] = fine
        if not (given and v.op.name == "broadcast"):
            flags.append(or_(fine, not_(_every(given))) if given else fine)

    def _control(self, v: Value, operands: Sequence[Value]) -> tuple[list[Value], Value]:
        """The results of a loop or branch, and whether all its steps were fine."""
        if v.op is cond:
            new = make(cond, operands, v.attrs, [self._region(r, None) for r in v.regions])
            *results, flag = results_of(new)
            return results, flag
        carries = v.attrs["carry"]
        regions = [self._region(v.regions[-1], carries)]
        if v.op is while_:
            regions.insert(0, _with_param(v.regions[0], carries))
        attrs = Attrs({**dict(v.attrs.items()), "carry": carries + 1})
        new = make(v.op, [*operands[:carries], splat(True, BOOL), *operands[carries:]], attrs, regions)
        results = results_of(new)
        return [*results[:carries], *results[carries + 1 :]], results[carries]

    def _region(self, r: Region, carries: int | None) -> Region:
        """A body with a flag: as a carry after the others, or as the last result."""
        key = r, carries
        if key not in self._regions:
            results, flag = self.body(r.values, r.results)
            if carries is None:
                self._regions[key] = Region(r.params, [*results, flag])
            else:
                flag = and_(param(len(r.params), BOOL), flag)
                self._regions[key] = _moved(r, [*results[:carries], flag, *results[carries:]], carries)
        return self._regions[key]


def _moved(r: Region, results: Sequence[Value], at: int) -> Region:
    """A region with one more param at a place, which the results call the last one."""
    n = len(r.params)
    types = [*r.params[:at], BOOL, *r.params[at:]]
    places = {param(k, t): param(k + (k >= at), t) for k, t in enumerate(r.params)}
    places[param(n, BOOL)] = param(at, BOOL)
    return Region(types, replaced(results, places))


def _with_param(r: Region, at: int) -> Region:
    return _moved(r, r.results, at)


def _finite(v: Value) -> Value:
    fine = isfinite(v)
    return all_(fine, axes=tuple(range(fine.ndim))) if fine.ndim else fine


def _every(flags: Sequence[Value]) -> Value:
    found = splat(True, BOOL)
    for k, flag in enumerate(flags):
        found = and_(found, flag) if k else flag
    return found
