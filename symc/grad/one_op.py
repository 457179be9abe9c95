"""One op's derivative fact, read in both directions: cotangents of operands from that of the result, and tangents.

This is the only place that takes a ``Derivative`` apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import InternalError
from symc.grad.varying import varies
from symc.grad.zeros import zeros_stay
from symc.ir.op import Custom, Elementwise, Linear, Multilinear, Regional, splat
from symc.ir.ops.arithmetic import conjugate, mul, mulz, neg
from symc.ir.ops.cast import in_dtype
from symc.ir.ops.effect import after, has_effect
from symc.ir.ops.kernel import results_of
from symc.ir.ops.logic import where
from symc.ir.traverse import dependent, postorder
from symc.ir.types import TensorType, TupleType, complex_dtype
from symc.ir.value import Value, fresh_input

#: Of ops made of regions, by name: ``jvp(v, tangents)`` gives a tangent for every result, ``vjp(v, cotangents, needed,
#: masked)`` a cotangent for every operand; None is zero. Their modules put them here: they differentiate graphs.
REGIONAL: dict[str, tuple[Callable[..., Sequence[Value | None]], Callable[..., Sequence[Value | None]]]] = {}


def cotangents_of(v: Value, g: Any, needed: Sequence[bool], masked: bool) -> list[Value | None]:
    """The cotangents that ``v``, with cotangent ``g``, sends to its operands; None where zero or not needed.

    ``g`` is a list for an op with several results. ``masked``: g may be zero because something after ``v`` picked other
    elements; what ``v`` computed there may be infinite or nan, and 0 times that must be 0.
    """
    fact = v.op.derivative
    out: list[Value | None] = [None] * len(v.operands)
    if isinstance(fact, Elementwise):
        for k, (partial, operand) in enumerate(zip(fact.partials, v.operands, strict=True)):
            if needed[k] and partial is not None:
                p = partial(v, *v.operands) if callable(partial) else partial
                if p is not None:
                    p = conjugate(p) if isinstance(p, Value) else p
                    out[k] = scale(g, p, operand.dtype, fact.singular or masked)
    elif isinstance(fact, Multilinear):
        for k, transpose in enumerate(fact.transposes):
            if needed[k]:
                out[k] = transpose(g, v)
    elif isinstance(fact, Linear):
        out = list(fact.transpose(g, v))
    elif isinstance(fact, Custom):
        out = list(fact.vjp(g, v)) if fact.vjp is not None else _transposed(v, g, needed)
        if masked and isinstance(g, Value):
            out = zeros_stay(out, g, v)
    elif isinstance(fact, Regional):
        out = _with_effects(v, list(REGIONAL[v.op.name][1](v, g if isinstance(g, list) else [g], needed, masked)))
    else:
        raise InternalError(f"{v.op.name} has no derivative")
    if len(out) != len(v.operands):
        raise InternalError(f"{v.op.name}: the derivative gives {len(out)} cotangents for {len(v.operands)} operands")
    return [c if n else None for c, n in zip(out, needed, strict=True)]


def _transposed(v: Value, g: Any, needed: Sequence[bool]) -> list[Value | None]:
    """Cotangents by way of the tangent: a graph that is linear in the leaves that move."""
    leaves = [fresh_input(o.type) if n else None for o, n in zip(v.operands, needed, strict=True)]
    made, several = tangent_of(v, leaves), isinstance(g, list)
    arrived: dict[Value, Value] = {}

    def send(xs: Sequence[Value | None], cotangents: Sequence[Value | None]) -> None:
        for x, c in zip(xs, cotangents, strict=True):
            if x is not None and c is not None:
                arrived[x] = arrived[x] + c if x in arrived else c

    send(made if several else [made], g if several else [g])
    order = postorder(list(arrived))
    moving = dependent(order, [leaf for leaf in leaves if leaf is not None])
    for x in reversed(order):
        if x in arrived and x in moving and x.operands:
            send(x.operands, cotangents_of(x, arrived[x], [o in moving for o in x.operands], False))
    return [None if leaf is None else arrived.get(leaf) for leaf in leaves]


def tangent_of(v: Value, tangents: Sequence[Value | None]) -> Any:
    """The tangent of ``v`` from those of its operands; None for zero. A list for an op with several results."""
    fact = v.op.derivative
    if all(t is None for t in tangents):
        return None
    if isinstance(fact, Elementwise):
        return _elementwise_tangent(fact, v, tangents)
    if isinstance(fact, Linear):
        args = range(len(v.operands)) if fact.args is None else fact.args
        operands = list(v.operands)
        for k in args:
            t = tangents[k]
            operands[k] = splat(0, operands[k].type) if t is None else t
        return v.op(*operands, regions=v.regions, **v.attrs)
    if isinstance(fact, Multilinear):
        terms = [v.op(*v.operands[:k], t, *v.operands[k + 1:], **v.attrs)
                 for k, t in enumerate(tangents) if t is not None]
        return total(terms)
    if isinstance(fact, Custom):
        return fact.jvp(tangents, v)
    if isinstance(fact, Regional):
        parts = _with_effects(v, list(REGIONAL[v.op.name][0](v, tangents)))
        return parts if isinstance(v.type, TupleType) else parts[0]
    raise InternalError(f"{v.op.name} has no derivative")


def _with_effects(v: Value, derivatives: list[Value | None]) -> list[Value | None]:
    """The effects inside ``v`` take place for its derivative too, which computes what it needs without them."""
    first = next((k for k, d in enumerate(derivatives) if d is not None), None)
    if first is None or not has_effect(v):
        return derivatives
    derivatives[first] = after(derivatives[first], results_of(v)[0])
    return derivatives


def _elementwise_tangent(fact: Elementwise, v: Value, tangents: Sequence[Value | None]) -> Value | None:
    terms = []
    for partial, t in zip(fact.partials, tangents, strict=True):
        if t is None:  # nor is its partial asked for, which may not be known
            continue
        p = partial(v, *v.operands) if callable(partial) else partial
        if p is not None:
            chosen = "selects" in v.op.traits and isinstance(p, Value) and p.dtype == t.dtype
            terms.append(mulz(p, t) if chosen else scale(t, p, v.dtype, fact.singular))  # what was not chosen: 0 * inf
    return total(terms)


def total(terms: Sequence[Value]) -> Value | None:
    """The sum of values of one type; None for no values."""
    out: Value | None = None
    for t in terms:
        out = t if out is None else out + t
    return out


def scale(g: Value, partial: Value | float, dtype: np.dtype, zero_stays: bool) -> Value:
    """``g * partial`` in ``dtype``: real and complex factors meet in complex, a real result takes the real part.

    ``zero_stays``: 0 times anything is 0, even times infinity or nan.
    """
    if not isinstance(partial, Value):
        if partial in (1, -1):
            return in_dtype(g if partial == 1 else neg(g), dtype)
        partial = splat(partial, g.type)
    if g.dtype != partial.dtype:
        meet = complex_dtype(g.dtype)
        g, partial = in_dtype(g, meet), in_dtype(partial, meet)
    if one_constant(g) or one_constant(partial):
        return in_dtype(partial if one_constant(g) else g, dtype)
    product = mulz if zero_stays and not nonzero_constant(g) and not surely_finite(partial) else mul
    return in_dtype(product(g, partial), dtype)


def constant_number(v: Value) -> np.ndarray | None:
    """The one number in every element of a splat or a scalar constant."""
    while v.op.name in ("broadcast", "reshape"):
        v = v.operands[0]
    return v.data.reshape(()) if v.data is not None and v.data.size == 1 else None


def nonzero_constant(v: Value) -> bool:
    """A number other than zero in every element."""
    number = constant_number(v)
    return number is not None and bool(number != 0)


def one_constant(v: Value) -> bool:
    """The number one in every element."""
    number = constant_number(v)
    return number is not None and bool(number == 1)


def surely_finite(v: Value) -> bool:
    """A finite number in every element, or a choice between such (the partials of maximum and its like)."""
    if v.op is where:
        return all(map(surely_finite, v.operands[1:]))
    number = constant_number(v)
    return number is not None and bool(np.isfinite(number))


def zeros(t: TensorType) -> Value:
    """The zero tangent or cotangent of a value of type ``t``."""
    return splat(0, t)


def filled(found: Sequence[Value | None], like: Sequence[Value]) -> list[Value]:
    """Zeros, of the type of the value in the same place, for what is None."""
    return [zeros(v.type) if f is None else f for f, v in zip(found, like, strict=True)]


__all__ = ["cotangents_of", "filled", "tangent_of", "varies", "zeros"]
