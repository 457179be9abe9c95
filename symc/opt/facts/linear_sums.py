"""Sums of multiples: what a nest of sums, differences, negations, multiples and fractions adds up, each with a
coefficient. A coefficient is a number times values of rank 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from symc.ir.ops.arithmetic import add, div, mul, neg, sub
from symc.ir.record import dataclass, field
from symc.ir.text import splat_of
from symc.ir.traverse import rebuild
from symc.ir.value import Value
from symc.opt.engine.terms import everywhere


@dataclass(frozen=True)
class Coefficient:
    """``number``, times values of rank 0, divided by others."""

    number: float = 1.0
    times: tuple[Value, ...] = ()
    over: tuple[Value, ...] = ()

    @property
    def is_one(self) -> bool:
        return self == ONE

    def fits(self, dtype: np.dtype) -> bool:
        """True if the number is one in ``dtype`` that loses nothing, and not 0."""
        info = np.finfo(dtype)
        return float(info.tiny) <= abs(self.number) <= float(info.max)


ONE = Coefficient()


@dataclass
class Sum:
    """A sum and its summands. ``nodes``: the sums and multiples that it is made of, users first. ``leaves``: all else,
    with coefficients (None: it is no product of a number and values of rank 0)."""

    root: Value
    nodes: list[Value] = field(default_factory=list)
    leaves: list[tuple[Value, Coefficient | None]] = field(default_factory=list)

    def of(self, leaf: Callable[[Value], Value | None], other: Callable[[Value], Value]) -> Value | None:
        """The sum of what ``leaf`` gives for leaves (None: nothing), as it is nested. ``other``: factors and divisors.
        """
        done: dict[Value, Value | None] = {v: leaf(v) for v, _ in self.leaves}
        for v in reversed(self.nodes):
            at = summands(v)
            assert at is not None
            left = [done[v.operands[k]] for k in at]
            if v.op in (add, sub) and None in left:
                x, y = left
                done[v] = x if y is None else neg(y) if v.op is sub else y
            elif None in left:
                done[v] = None
            else:
                done[v] = rebuild(v, [done[o] if k in at else other(o) for k, o in enumerate(v.operands)])  # type: ignore
        return done[self.root]


def collect(root: Value, opens: Callable[[Value], bool]) -> Sum:
    """The sum behind a value, down to what is no sum or what ``opens`` says no to."""
    out = Sum(root)
    stack: list[tuple[Value, Coefficient | None]] = [(root, ONE)]
    while stack:
        v, c = stack.pop()
        at = summands(v) if v is root or opens(v) else None
        if at is None:
            out.leaves.append((v, c))
        else:
            out.nodes.append(v)
            stack += [(v.operands[k], _inside(c, v, k)) for k in reversed(at)]
    return out


def summands(v: Value) -> tuple[int, ...] | None:
    """Numbers of the operands that ``v`` adds up; None if it is no sum and no multiple."""
    if v.op is add or v.op is sub:
        return (0, 1)
    if v.op is neg:
        return (0,)
    if v.op is div:
        return (0,) if everywhere(v.operands[1]) is not None else None
    if v.op is mul:
        scalars = [k for k in (0, 1) if everywhere(v.operands[k]) is not None]
        return (1 - scalars[0],) if len(scalars) == 1 else None
    return None


def _inside(c: Coefficient | None, v: Value, k: int) -> Coefficient | None:
    """The coefficient of operand k of ``v``, if that of ``v`` is ``c``."""
    if c is None or v.op is add:
        return c
    if v.op is neg or v.op is sub:
        return Coefficient(-c.number if v.op is neg or k else c.number, c.times, c.over)
    s = everywhere(v.operands[1 - k])
    assert s is not None
    return _times(c, s, v.op is div)


def _times(c: Coefficient, s: Value, over: bool) -> Coefficient | None:
    """A coefficient times, or over, one more value of rank 0.

    Sizes are harmless. Of other values one may multiply and none divide: a product of two may overflow where the sum
    does not, and so may a reciprocal.
    """
    number = splat_of(s)
    if number is not None and (number.dtype.kind != "c" or number.imag == 0):
        x = float(number.real)
        if over and (x == 0 or math.isinf(x)):
            return None
        return Coefficient(c.number / x if over else c.number * x, c.times, c.over)
    if is_size(s):
        return Coefficient(c.number, c.times, (*c.over, s)) if over else Coefficient(c.number, (*c.times, s), c.over)
    if over or not all(map(is_size, c.times)):
        return None
    return Coefficient(c.number, (*c.times, s), c.over)


def together(coefficients: Sequence[Coefficient | None]) -> Coefficient | None:
    """The coefficient of one value that occurs with all these, if they differ in their numbers alone."""
    first = coefficients[0]
    if first is None or any(c is None or (c.times, c.over) != (first.times, first.over) for c in coefficients):
        return None
    return Coefficient(sum(c.number for c in coefficients if c is not None), first.times, first.over)


def is_size(s: Value) -> bool:
    """True if it is a size, as a number of some dtype."""
    return s.op.name == "size" or (s.op.name == "cast" and s.operands[0].op.name == "size")
