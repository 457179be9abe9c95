"""The user's lines that a step computes, and how much of it is whose.

A kernel computes values of several lines in one loop, so the time of a line in it cannot be measured: the time of the
kernel is divided among the values that fusion put into it, in proportion to what each costs by the table of ``costs``
(movements cost nothing). Where it is not known what is in a step, its lines get equal parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symc.codegen.plan.costs import work
from symc.ir.function import Function
from symc.ir.location import NOWHERE, Loc, Locs, in_order, merge_lines
from symc.ir.plan import Step
from symc.ir.value import Value

FUSE = "fuse"


class Shares:
    """For the steps of one function. ``optimized``: what the optimizer did, if it did anything."""

    def __init__(self, optimized: Any = None):
        self._members: dict[Value, list[Value]] = {}
        self._lines: dict[Value, Locs] = {}
        if optimized is None or FUSE not in optimized.stages:
            return
        names = list(optimized.stages)
        before: Function = optimized.stages[names[names.index(FUSE) - 1]]
        for hints in (before.hints, *before.inside.values()):
            merge_lines(self._lines, hints)
        for v, kernel in optimized.provenance.kernels.items():
            self._members.setdefault(kernel, []).append(v)

    def of(self, f: Function, step: Step, sizes: Mapping[str, int]) -> dict[Loc, float]:
        """Part of a step that each line is; the parts are 1 all in all, unless no line is known."""
        own = in_order(f.hints.get(step.value, ()))
        weights = dict.fromkeys(own, 0.0)
        for v in self._members.get(step.value, ()):
            locs = [loc for loc in self._lines.get(v, NOWHERE) if loc in weights]
            for loc in locs:
                weights[loc] += work(v, sizes) / len(locs)
        total = sum(weights.values())
        return {loc: w / total for loc, w in weights.items()} if total else _equal(own)


def _equal(locs: Sequence[Loc]) -> dict[Loc, float]:
    return {loc: 1 / len(locs) for loc in in_order(locs)}
