"""A loop taken apart: its carries, rows and captured values, each with the leaf that stands for it in the body.

A ``Loop`` is changed freely and put together again with ``build``, which keeps only the results that are wanted. A leaf
is a ``param`` of any number; numbers are given out anew when the loop is built.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from symc.ir.function import Function, Hints
from symc.ir.location import NOWHERE, carrying, merge_lines
from symc.ir.op import Op
from symc.ir.ops.control import scan, while_
from symc.ir.ops.effect import has_effect
from symc.ir.ops.kernel import results_of
from symc.ir.record import dataclass
from symc.ir.traverse import region_params, replace
from symc.ir.types import TensorType
from symc.ir.value import Value, param
from symc.opt.engine.provenance import Provenance
from symc.opt.loops.edit import Edit, Results, moved, ordered


@dataclass
class Carry:
    """A carry: ``leaf`` in the body starts as ``init`` and becomes ``new``."""

    leaf: Value
    init: Value
    new: Value


@dataclass
class Given:
    """A row or a captured value: ``leaf`` in the body is a row of ``operand``, or ``operand``."""

    leaf: Value
    operand: Value


class Loop:
    """A ``scan`` or ``while``. By number of the old result: ``finals`` are leaves of carries, ``stacks`` values of
    the body of which all steps are wanted, ``outside`` values that need no loop any more."""

    def __init__(self, edit: Edit, value: Value, used: Iterable[int]):
        self.edit, self.value = edit, value
        self.is_scan = value.op is scan
        region = value.regions[-1]
        params, results = region_params(region), region.results
        nc, nx = value.attrs["carry"], value.attrs["xs"] if self.is_scan else 0
        ends = value.operands
        self.carries = [Carry(*c) for c in zip(params[:nc], ends[:nc], results[:nc], strict=True)]
        self.rows = [Given(*g) for g in zip(params[nc : nc + nx], ends[nc : nc + nx], strict=True)]
        self.captured = [Given(*g) for g in zip(params[nc + nx :], ends[nc + nx :], strict=True)]
        self.reverse = self.is_scan and value.attrs["reverse"]
        self.condition: Value | None = None if self.is_scan else value.regions[0].results[0]
        self.fixed = has_effect(value)  # what its results are made of must all be computed
        wanted = range(len(results_of(value))) if self.fixed else sorted(used)
        self.finals = {k: params[k] for k in wanted if k < nc}
        self.stacks = {k: results[k] for k in wanted if k >= nc} if self.is_scan else {}
        self.counts = [k for k in wanted if k >= nc] if not self.is_scan else []
        self.outside: dict[int, Value] = {}
        self.lines: Hints = {}
        for r in value.regions:
            merge_lines(self.lines, edit.inside.get(r, {}))
        self._next = len(params)
        self._key = len(results_of(value))

    # -- what there is

    @property
    def length(self):
        return self.value.attrs["length"]

    @property
    def varying(self) -> list[Value]:
        """The leaves that change from step to step."""
        return [*[c.leaf for c in self.carries], *[r.leaf for r in self.rows]]

    @property
    def constants(self) -> dict[Value, Value]:
        """The captured values, by leaf."""
        return {g.leaf: g.operand for g in self.captured}

    def roots(self) -> list[Value]:
        """The values of the body that are wanted."""
        out = [*[c.new for c in self.carries], *self.stacks.values()]
        return out if self.condition is None else [*out, self.condition]

    # -- changing it

    def leaf(self, t: TensorType) -> Value:
        """A leaf of the body that nothing else is."""
        self._next += 1
        return param(self._next - 1, t)

    def capture(self, v: Value) -> Value:
        """The leaf of a value from outside."""
        for g in self.captured:
            if g.operand is v:
                return g.leaf
        self.captured.append(Given(self.leaf(v.type), v))
        return self.captured[-1].leaf

    def reserve(self, count: int) -> None:
        """Numbers of results below ``count`` are taken."""
        self._key = max(self._key, count)

    def stack(self, v: Value) -> int:
        """Want a value of the body of every step; gives its number among the results."""
        self._key += 1
        self.stacks[self._key - 1] = v
        return self._key - 1

    def carry(self, init: Value, new: Value) -> int:
        """One more carry, whose last value is wanted; gives its number among the results."""
        self.carries.append(Carry(self.leaf(init.type), init, new))
        self._key += 1
        self.finals[self._key - 1] = self.carries[-1].leaf
        return self._key - 1

    def substitute(self, mapping: Mapping[Value, Value], joining: bool = False) -> None:
        """Replace values of the body. ``joining``: values that become equal but for the order of operands are one."""
        carry = carrying(self.lines, self.lines)
        made = iter((ordered if joining else replace)(self.roots(), mapping, carry))
        for c in self.carries:
            c.new = next(made)
        self.stacks = {k: next(made) for k in self.stacks}
        if self.condition is not None:
            self.condition = next(made)

    def move_out(self, values: Sequence[Value]) -> list[Value]:
        """Values of the body that depend on captured values alone, outside."""
        return moved(values, self.constants, self.lines, self.edit.hints)

    # -- putting it together

    def build(self) -> tuple[Value | None, Results]:
        """The new loop, if any is left, and its results by old number."""
        out = dict(self.outside)
        ys = list(dict.fromkeys(self.stacks.values()))
        if not self.carries and not ys and not self.counts:
            return None, out
        leaves = [*self.varying, *[g.leaf for g in self.captured]]
        operands = [*[c.init for c in self.carries], *[g.operand for g in (*self.rows, *self.captured)]]
        new = [c.new for c in self.carries]
        body = self.edit.region(leaves, [*new, *ys], self.lines)
        if self.is_scan:
            attrs = dict(carry=len(new), xs=len(self.rows), length=self.length, reverse=self.reverse)
            v = scan(*operands, regions=(body,), **attrs)
        else:
            assert self.condition is not None
            test = self.edit.region(leaves, [self.condition], self.lines)
            v = while_(*operands, regions=(test, body), carry=len(new), max_steps=self.value.attrs["max_steps"])
        results = results_of(v)
        last = {c.leaf: results[k] for k, c in enumerate(self.carries)}
        every = {y: results[len(new) + k] for k, y in enumerate(ys)}
        out.update({k: last[leaf] for k, leaf in self.finals.items()})
        out.update({k: every[y] for k, y in self.stacks.items()})
        out.update({k: results[-1] for k in self.counts})
        self.edit.note(v, self.edit.hints.get(self.value, NOWHERE))
        return v, out


def on_loops(name: str, *ops: Op) -> Callable[[Callable[[Loop], Results | None]], Callable[..., Function]]:
    """Makes a pass called ``name`` of what gives other results for a loop of one of these ops; None: it stays."""

    def declare(change: Callable[[Loop], Results | None]) -> Callable[..., Function]:
        @functools.wraps(change)
        def run(provenance: Provenance, f: Function) -> Function:
            edit = Edit(f, provenance, name)

            def visit(old: Value, new: Value) -> Results | None:
                return change(Loop(edit, new, edit.used.get(old, set()))) if new.op in ops else None

            return edit.run(visit)

        return run

    return declare
