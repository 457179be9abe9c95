"""Forward mode over a graph: tangents from any values on to the outputs, in one sweep and linear time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.errors import InternalError
from symc.grad.connect import between, connected
from symc.grad.lines import DerivedLines
from symc.grad.one_op import tangent_of, zeros
from symc.grad.varying import differentiable_operands
from symc.ir.op import Custom, Elementwise, Linear, Multilinear, splat
from symc.ir.types import TupleType
from symc.ir.value import Value


def jvp(outputs: Sequence[Value], wrt: Sequence[Value], tangents: Sequence[Value | None]) -> list[Value | None]:
    """The tangent of every output when ``wrt`` move along ``tangents`` (None: not at all); None where it does not move.

    ``wrt`` may be any values; they are independent variables, whatever they are made of.
    """
    given: dict[Value, Any] = {}
    for w, t in zip(wrt, tangents, strict=True):
        if t is not None:
            if t.type is not w.type:
                raise InternalError(f"jvp: the tangent of a value of type {w.type} is {t.type}")
            given[w] = t if w not in given else given[w] + t
    order, active = between(outputs, list(wrt))
    done: dict[Value, Any] = {w: given.get(w) for w in wrt}
    lines = DerivedLines()
    for v in order:
        if v in active and v not in done:
            with lines.of(v):
                done[v] = _tangent(v, done)
    return [_result(o, done, list(given)) for o in outputs]


def slope(output: Value, wrt: Value) -> Value | None:
    """The derivative of a number by a number, where only numbers lie between, or None where there is more.

    Going forwards, the tangent of a value is the same value whatever it is used for: derivatives of derivatives share
    theirs, and the n-th one is polynomial in n. Cotangents depend on what comes after a value: each derivative that is
    taken backwards is about three times as large as the one before.
    """
    order, active = between([output], [wrt])
    if output not in active or any(not _is_number(v, wrt) for v in order if v in active):
        return None
    return jvp([output], [wrt], [splat(1, wrt.type)])[0]


def _is_number(v: Value, wrt: Value) -> bool:
    """Is ``v`` a number of the type of ``wrt``, and computed from numbers?"""
    if v.type is not wrt.type or v.dtype.kind != "f" or v.ndim:
        return False
    fact, own = v.op.derivative, v.op.facts.custom is None and "grad_control" not in v.op.traits
    same = isinstance(fact, Elementwise | Linear | Multilinear) or (  # the derivative is the same both ways
        isinstance(fact, Custom) and own and "elementwise" in v.op.traits)
    return v is wrt or same and not any(o.ndim for o in v.operands)


def _tangent(v: Value, done: dict[Value, Any]) -> Any:
    if v.op.name == "get":
        parts = done.get(v.operands[0])
        return None if parts is None else parts[v.attrs["index"]]
    sources = set(differentiable_operands(v))
    out = tangent_of(v, [done.get(o) if o in sources else None for o in v.operands])
    if out is not None and not isinstance(v.type, TupleType) and out.type is not v.type:
        raise InternalError(f"{v.op.name}: the tangent of a value of type {v.type} is {out.type}")
    return out


def _result(o: Value, done: dict[Value, Any], moved: list[Value]) -> Value | None:
    t = done.get(o)
    if t is None and o in done and o not in moved and any(connected([o], moved)):
        return zeros(o.type)  # connected, and the derivative is zero everywhere
    return t
