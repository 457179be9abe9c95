"""Reverse mode over a graph: cotangents from outputs back to any values, in one sweep and linear time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.errors import InternalError
from symc.grad.connect import between, connected
from symc.grad.lines import DerivedLines
from symc.grad.masks import Masks, cover, is_part
from symc.grad.one_op import cotangents_of, zeros
from symc.grad.same_loop import through_one
from symc.grad.varying import differentiable_operands, varies
from symc.ir.garbage import no_collections
from symc.ir.ops.shape import concat
from symc.ir.value import Value


@no_collections()
def vjp(outputs: Sequence[Value], wrt: Sequence[Value], cotangents: Sequence[Value | None], *,
        cut: bool = True, masked: bool = False) -> list[Value | None]:
    """The cotangent of every value in ``wrt``, given those of ``outputs``: None where no output depends on it.

    ``wrt`` may be any values. With ``cut`` they are independent variables: nothing passes through them to one another.
    Without, a value in ``wrt`` that others in ``wrt`` are made of gets what comes through those as well.
    ``masked``: the cotangents given may be zero because elements were not picked; what they meet may be infinite there.
    """
    found = arrivals(outputs, wrt, cotangents, cut=cut, masked=masked)
    if any(g is None and varies(w.type) for g, w in zip(found, wrt, strict=True)):
        seeded = [o for o, g in zip(outputs, cotangents, strict=True) if g is not None]
        flat = connected(seeded, wrt, cut)  # connected, but the derivative is zero everywhere
        found = [zeros(w.type) if g is None and f else g for g, w, f in zip(found, wrt, flat, strict=True)]
    return found


def arrivals(outputs: Sequence[Value], wrt: Sequence[Value], cotangents: Sequence[Value | None], *,
             cut: bool = True, masked: bool = False) -> list[Value | None]:
    """``vjp`` with None also where there is a connection, but nothing comes through it."""
    for o, g in zip(outputs, cotangents, strict=True):
        if g is not None and g.type is not o.type:
            raise InternalError(f"vjp: the cotangent of an output of type {o.type} is {g.type}")
    order, active = between(outputs, wrt, cut)
    merged = through_one(outputs, wrt, order)
    if merged is not None:
        outputs, wrt = merged
        order, active = between(outputs, wrt, cut)
    sweep = _Sweep(active)
    ends = set(wrt)
    for o, g in zip(outputs, cotangents, strict=True):
        if g is not None and o in active:
            sweep.send(o, g)
            if masked:
                sweep.masks.add(o)
    for v in reversed(order):
        if sweep.has(v) and not (cut and v in ends):
            sweep.pass_on(v, keep=v in ends)
    return [sweep.total(w) for w in wrt]


class _Sweep:
    """Cotangents that have arrived so far. ``slices``: what slices have sent to the value that they are parts of."""

    def __init__(self, active: set[Value]):
        self.active = active
        self.arrived: dict[Value, Any] = {}
        self.slices: dict[Value, dict[Value, Value]] = {}
        self.masks = Masks()
        self.lines = DerivedLines()

    def has(self, v: Value) -> bool:
        """True if anything has arrived at ``v``."""
        return v in self.arrived or v in self.slices

    def send(self, v: Value, g: Value) -> None:
        before = self.arrived.get(v)
        self.arrived[v] = g if before is None else before + g

    def send_part(self, v: Value, index: int, g: Value) -> None:
        """Cotangent of result ``index`` of an op with several results."""
        parts = self.arrived.setdefault(v, [None] * len(v.type.items))
        parts[index] = g if parts[index] is None else parts[index] + g

    def total(self, v: Value) -> Any:
        """All that has arrived at ``v``. Slices that make up a whole are put side by side; others are padded."""
        parts = self.slices.pop(v, {})
        whole = cover(v, list(parts)) if parts else None
        if whole is not None and len(whole[1]) == len(parts):
            axis, chain = whole
            with self.lines.of(chain[0]):
                self.send(v, concat(*[parts[p] for p in chain], axis=axis) if len(chain) > 1 else parts[chain[0]])
        else:
            for p, g in parts.items():
                with self.lines.of(p):
                    for padded in cotangents_of(p, g, [True], False):
                        if padded is not None:
                            self.send(v, padded)
        return self.arrived.get(v)

    def pass_on(self, v: Value, keep: bool) -> None:
        """Send what has arrived at ``v`` to its operands."""
        g = self.total(v)
        if not keep:
            self.arrived.pop(v)
        masked = self.masks.is_masked(v)
        sources = {o for o in differentiable_operands(v) if o in self.active}
        if not sources:
            return
        with self.lines.of(v):
            if v.op.name == "get":
                self.send_part(v.operands[0], v.attrs["index"], g)
                self.masks.passed(v, v.operands[0], masked)
                return
            if is_part(v):
                self.slices.setdefault(v.operands[0], {})[v] = g
                self.masks.passed(v, v.operands[0], masked)
                return
            for o, c in zip(v.operands, cotangents_of(v, g, [o in sources for o in v.operands], masked), strict=True):
                if c is None:
                    continue
                if c.type is not o.type:
                    raise InternalError(f"{v.op.name}: the cotangent of an operand of type {o.type} is {c.type}")
                self.send(o, c)
                self.masks.passed(v, o, masked)
