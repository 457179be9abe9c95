"""Sums over the steps of a loop, taken outside of it as far as the mathematics allows.

The gradient by a weight that every step uses is a sum over steps. Of ``sum_t dot(a_t, b_t)`` only the rows a_t and b_t
are needed: the sum is one product that contracts over time too. A sum over axes becomes one over time and those axes,
a scatter of rows one scatter of all rows; what is linear (sums, products with values that are the same in every step,
movements) is done once, after the loop. What is left is added up in a carry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from symc.grad.one_op import constant_number
from symc.grad.residuals import size_in_bytes
from symc.ir.closure_scope import repeated
from symc.ir.dim import Size
from symc.ir.op import Elementwise, Linear, splat
from symc.ir.ops.arithmetic import div, mul
from symc.ir.ops.cast import cast
from symc.ir.ops.dynamic_slice import dynamic_slice, dynamic_update_slice
from symc.ir.ops.index import scatter
from symc.ir.ops.leaf import size as size_value
from symc.ir.ops.linalg import dot
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast
from symc.ir.record import dataclass, field
from symc.ir.size_values import names
from symc.ir.traverse import rebuild, replace
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input

#: A product of rows is left in the loop when keeping the rows takes this many times the bytes of the product.
WORTH = 64


@dataclass
class Sums:
    """Values that a loop must give so that the sums can be formed, and the sums in terms of them.

    ``stacks``: leaves for values of all steps, stacked; ``added``: leaves for values that are added up, step by step.
    ``results`` are made of these leaves and of what does not differ between steps.
    """

    results: list[Value] = field(default_factory=list)
    stacks: dict[Value, Value] = field(default_factory=dict)  # value of a step -> leaf
    added: dict[Value, Value] = field(default_factory=dict)

    def finish(self, given: Mapping[Value, Value]) -> list[Value]:
        """The sums, with values for the leaves."""
        return replace(self.results, given)


def sum_over_steps(values: Sequence[Value], varying: Collection[Value], length: Size,
                   rows: Mapping[Value, Value]) -> Sums:
    """Plan the sums of ``values`` over all steps.

    ``varying``: what differs between steps. ``rows``: values of a step whose stacks are known, with the stacks.
    """
    return _Planner(varying, length, rows).plan(values)


def add_to(total: Value, v: Value) -> Value:
    """``total + v``; where ``v`` is zeros but for a window, only the window is touched."""
    if v.op is dynamic_update_slice and is_zero(v.operands[0]):
        _, update, *starts = v.operands
        return dynamic_update_slice(total, dynamic_slice(total, *starts, size=update.shape) + update, *starts)
    if is_added_into_zeros(v):
        return scatter(total, *v.operands[1:], **v.attrs)
    return total + v


def is_zero(v: Value) -> bool:
    """Zero in every element, by construction."""
    number = constant_number(v)
    return number is not None and bool(number == 0)


def is_added_into_zeros(v: Value) -> bool:
    """A scatter that adds its updates up."""
    return v.op is scatter and v.attrs["mode"] == "add" and is_zero(v.operands[0])


class _Planner:
    def __init__(self, varying: Collection[Value], length: Size, rows: Mapping[Value, Value]):
        self._varying, self._length, self._rows = varying, length, rows
        self._sums = Sums()
        self._good: dict[Value, bool] = {}

    def plan(self, values: Sequence[Value]) -> Sums:
        through = list(self._order(values, self._parts))
        for v in through:  # products first: what they stack, sums over axes can use
            if self._is_product(v):
                for o in v.operands[-2:] if v.op is dot else v.operands[1:]:
                    self._stack(o)
        for v in through:
            self._good[v] = self._needs_no_carry(v)
        done: dict[Value, Value] = {}
        for v in self._order(values, self._needed):
            done[v] = self._sum(v, done)
        self._sums.results = [done[v] for v in values]
        return self._sums

    @staticmethod
    def _order(values: Sequence[Value], parts) -> Iterator[Value]:
        """Values and their parts, parts first."""
        seen: set[Value] = set()
        stack: list = list(values)[::-1]
        while stack:
            item = stack.pop()
            if isinstance(item, tuple):
                yield item[0]
            elif item not in seen:
                seen.add(item)
                stack.append((item,))
                stack.extend(parts(item)[::-1])

    # --- what a sum is made of ----------------------------------------------------------------------------------------

    def _parts(self, v: Value) -> list[Value]:
        """The operands whose sums give the sum of ``v``; none where ``v`` is summed as it is."""
        if v not in self._varying or self._known(v) or self._is_product(v):
            return []
        return [v.operands[k] for k in self._linear_in(v)]

    def _needed(self, v: Value) -> list[Value]:
        parts = self._parts(v)
        if v.op is sum_ and parts and self._known(parts[0]):
            return []
        if parts and not self._good[v] and v.op is not dot and self._shrinks(v, parts):
            return []  # what is added up in a carry should be small
        return parts

    @staticmethod
    def _shrinks(v: Value, parts: Sequence[Value]) -> bool:
        return size_in_bytes(v.type) < max(size_in_bytes(p.type) for p in parts)

    def _linear_in(self, v: Value) -> Sequence[int]:
        """Operands in which ``v`` is linear together, when all others are the same in every step."""
        fact = v.op.derivative
        same = [o not in self._varying for o in v.operands]
        if v.op is mul or v.op is dot:
            return [same.index(False)] if any(same) else []
        if v.op is div:
            return [0] if same[1] else []
        if is_added_into_zeros(v):
            return [1] if all(same[2:]) else []
        if v.op is cast and (v.dtype.kind != "c" or v.operands[0].dtype.kind == "c"):
            return []  # sums stay in the dtype of the result
        if isinstance(fact, Linear):
            args = range(len(v.operands)) if fact.args is None else fact.args
        elif isinstance(fact, Elementwise) and all(isinstance(p, int | float) for p in fact.partials):
            args = range(len(v.operands))
        else:
            return []
        return list(args) if all(s for k, s in enumerate(same) if k not in args) else []

    def _known(self, v: Value) -> bool:
        return v in self._rows or v in self._sums.stacks

    def _is_product(self, v: Value) -> bool:
        """A product or scatter of rows that is worth taking once, over all steps."""
        if is_added_into_zeros(v):
            return any(o in self._varying for o in v.operands[2:])
        if v.op is not dot or any(o not in self._varying for o in v.operands):
            return False
        return all(map(self._known, v.operands)) or self._worth(v)

    def _worth(self, v: Value) -> bool:
        types: list[TensorType] = [x.type for x in (v, *v.operands)]
        if any(names(s) for t in types for s in t.shape):
            return True
        kept = sum(size_in_bytes(o.type) for o in dict.fromkeys(v.operands) if o not in self._rows)
        return kept <= WORTH * size_in_bytes(v.type)

    def _needs_no_carry(self, v: Value) -> bool:
        if v not in self._varying or self._known(v) or self._is_product(v):
            return True
        parts = self._parts(v)
        return bool(parts) and all(self._good[p] for p in parts)

    # --- the sums -----------------------------------------------------------------------------------------------------

    def _sum(self, v: Value, done: Mapping[Value, Value]) -> Value:
        if v not in self._varying:
            return v if is_zero(v) else v * self._count(v.type)
        if self._known(v):
            return sum_(self._stack(v), axes=(0,))
        if self._is_product(v):
            return self._product(v)
        if v.op is sum_ and self._known(v.operands[0]):
            return sum_(self._stack(v.operands[0]), axes=(0, *[a + 1 for a in v.attrs["axes"]]))
        if self._needed(v):
            kept = set(self._linear_in(v))
            return rebuild(v, [done[o] if k in kept else o for k, o in enumerate(v.operands)])
        return self._sums.added.setdefault(v, fresh_input(v.type))

    def _count(self, t: TensorType) -> Value:
        number = size_value(value=self._length) if not isinstance(self._length, int) else None
        if number is None:
            return splat(np.asarray(self._length).astype(t.dtype)[()], t)
        return broadcast(cast(number, dtype=t.dtype), axes=(), shape=t.shape)

    def _stack(self, v: Value) -> Value:
        """The values of all steps."""
        if v not in self._varying:
            return repeated(v, self._length)
        if v in self._rows:
            return self._rows[v]
        return self._sums.stacks.setdefault(v, fresh_input(TensorType(v.dtype, (self._length, *v.shape))))

    def _product(self, v: Value) -> Value:
        if v.op is scatter:
            return scatter(v.operands[0], *[self._stack(o) for o in v.operands[1:]], **v.attrs)
        (left, right), (first, second) = v.attrs["contract"], v.attrs["batch"]
        up = [tuple(a + 1 for a in axes) for axes in (left, right, first, second)]
        return dot(*[self._stack(o) for o in v.operands], contract=((0, *up[0]), (0, *up[1])), batch=(up[2], up[3]))
