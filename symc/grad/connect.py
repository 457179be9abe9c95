"""Which values lie between inputs and outputs of a derivative, and where a connection is lost."""

from __future__ import annotations

from collections.abc import Sequence

from symc.grad.varying import differentiable_operands, varies
from symc.ir import location
from symc.ir.traverse import postorder, users
from symc.ir.value import Value


def between(outputs: Sequence[Value], wrt: Sequence[Value], cut: bool = True) -> tuple[list[Value], set[Value]]:
    """All values that ``outputs`` are made of, operands first, and the set of those that vary with ``wrt``.

    ``cut``: what ``wrt`` themselves are made of is left out.
    """
    starts = {w for w in wrt if varies(w.type)}
    order = postorder(outputs, stop=starts.__contains__ if cut else None)
    active: set[Value] = set()
    for v in order:
        if v in starts or any(o in active for o in differentiable_operands(v)):
            active.add(v)
    return order, active


def connected(outputs: Sequence[Value], wrt: Sequence[Value], cut: bool = True) -> list[bool]:
    """Which of ``wrt`` have a derivative, zero perhaps, to some output."""
    order, active = between(outputs, wrt, cut)
    reached = {o for o in outputs if o in active}
    ends = set(wrt) if cut else set()
    for v in reversed(order):
        if v in reached and v not in ends:
            reached.update(o for o in differentiable_operands(v) if o in active)
    return [w in reached for w in wrt]


def disconnection(outputs: Sequence[Value], wrt: Value) -> list[tuple[Value, list[location.Loc]]]:
    """The path from ``wrt`` towards ``outputs`` up to and including the value where derivatives stop, with user lines.

    Only ``wrt`` itself when the outputs are not made of it; empty when it is connected after all.
    """
    if connected(outputs, [wrt])[0]:
        return []
    order = postorder(outputs)
    if wrt not in set(order):
        return [_lines(wrt)]
    uses = users(order)
    parent: dict[Value, Value | None] = {wrt: None}
    for v in order:  # operands come first, so one sweep follows every path
        if v in parent:
            for user in uses.get(v, ()):
                if user not in parent and v in differentiable_operands(user):
                    parent[user] = v
    for v in order:
        for user in uses.get(v, ()):
            if v in parent and v not in differentiable_operands(user):
                path: list[Value] = [user]
                at: Value | None = v
                while at is not None:
                    path.append(at)
                    at = parent[at]
                return [_lines(p) for p in reversed(path)]
    return [_lines(wrt)]


def _lines(v: Value) -> tuple[Value, list[location.Loc]]:
    return v, location.in_order(location.noted(v))
