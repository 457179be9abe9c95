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
from symc.ir.ops.reduce import sum_
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
    """The derivative of a number by a number where only numbers lie between, or of a sum of all elements where only
    arrays of the shape of ``wrt`` do and each element is made of the one at its place; None where there is more.

    Going forwards, the tangent of a value is the same value whatever it is used for: derivatives of derivatives share
    theirs, and the n-th one is polynomial in n. Cotangents depend on what comes after a value: each derivative that is
    taken backwards is about three times as large as the one before.
    """
    if output.op is sum_ and output.operands[0].type is wrt.type and not output.ndim:
        output = output.operands[0]
    order, active = between([output], [wrt])
    if output not in active or any(not _is_by_element(v, wrt) for v in order if v in active):
        return None
    return jvp([output], [wrt], [splat(1, wrt.type)])[0]


def _is_by_element(v: Value, wrt: Value) -> bool:
    """Has ``v`` the type of ``wrt``, and is each element computed from elements at its place?"""
    if v.type is not wrt.type or v.dtype.kind != "f":
        return False
    fact, own = v.op.derivative, v.op.facts.custom is None and "grad_control" not in v.op.traits
    by_element = "elementwise" in v.op.traits
    same = isinstance(fact, Elementwise | Linear | Multilinear) and (by_element or not v.ndim) or (
        isinstance(fact, Custom) and own and by_element)  # the derivative is the same both ways
    return v is wrt or same and all(o.shape == v.shape for o in v.operands)


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
