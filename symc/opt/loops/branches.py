"""A ``cond`` taken apart: what chooses, its operands with their leaves, and the results of every branch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from symc.ir.function import Hints
from symc.ir.location import NOWHERE, merge_lines
from symc.ir.ops.control import cond
from symc.ir.ops.effect import has_effect
from symc.ir.ops.kernel import results_of
from symc.ir.traverse import region_params
from symc.ir.types import TensorType
from symc.ir.value import Value, param
from symc.opt.loops.edit import Edit, Results, moved
from symc.opt.loops.form import Given


class Branches:
    """``wanted``: by number of the old result, what each branch gives; ``outside`` are results that need no branch."""

    def __init__(self, edit: Edit, value: Value, used: Iterable[int]):
        self.edit, self.value = edit, value
        self.which = value.operands[0]
        self.operands = [Given(*g) for g in zip(region_params(value.regions[0]), value.operands[1:], strict=True)]
        self.fixed = has_effect(value)
        keys = range(len(results_of(value))) if self.fixed else sorted(used)
        self.wanted = {k: [r.results[k] for r in value.regions] for k in keys}
        self.lines: list[Hints] = [dict(edit.inside.get(r, {})) for r in value.regions]
        self.outside: dict[int, Value] = {}
        self._next = len(self.operands)

    @property
    def count(self) -> int:
        """The number of branches."""
        return len(self.lines)

    def leaf(self, t: TensorType) -> Value:
        """A leaf that nothing else is."""
        self._next += 1
        return param(self._next - 1, t)

    def roots(self, branch: int) -> list[Value]:
        """The results of one branch."""
        return [row[branch] for row in self.wanted.values()]

    def substitute(self, branch: int, mapping: Mapping[Value, Value], source: Hints | None = None) -> None:
        """Replace leaves in one branch. ``source``: the lines of what is put in."""
        lines: Hints = {}
        if source:
            merge_lines(lines, source)
        made = moved(self.roots(branch), mapping, self.lines[branch], lines)
        self.lines[branch] = lines
        for row, v in zip(self.wanted.values(), made, strict=True):
            row[branch] = v

    def inline(self, branch: int) -> Results:
        """The results of one branch, outside."""
        mapping = {g.leaf: g.operand for g in self.operands}
        made = moved(self.roots(branch), mapping, self.lines[branch], self.edit.hints)
        return {**self.outside, **dict(zip(self.wanted, made, strict=True))}

    def build(self) -> tuple[Value | None, Results]:
        """The new ``cond``, if any is left, and its results by old number."""
        rows = list(dict.fromkeys(map(tuple, self.wanted.values())))
        if not rows:
            return None, self.outside
        leaves = [g.leaf for g in self.operands]
        regions = [self.edit.region(leaves, [row[k] for row in rows], lines) for k, lines in enumerate(self.lines)]
        v = cond(self.which, *[g.operand for g in self.operands], regions=regions)
        self.edit.note(v, self.edit.hints.get(self.value, NOWHERE))
        results = dict(zip(rows, results_of(v), strict=True))
        return v, {**self.outside, **{k: results[tuple(row)] for k, row in self.wanted.items()}}
