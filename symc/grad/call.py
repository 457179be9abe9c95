"""Derivatives of ``call``: through the region, or by the rule that the block has of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symc.grad.batch import vmap
from symc.grad.forward import jvp
from symc.grad.one_op import varies
from symc.grad.reverse import vjp
from symc.ir import location
from symc.ir.batch_control import batched
from symc.ir.bodies import close, open_body
from symc.ir.dim import Size
from symc.ir.ops.call import Site, call, rule_of
from symc.ir.ops.kernel import results_of
from symc.ir.ops.reduce import sum_
from symc.ir.traverse import postorder, replace
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value, fresh_input

Maybe = Value | None


def call_vjp(g: Any, v: Value) -> list[Maybe]:
    """The cotangents of the operands, given one a result (a list for several)."""
    given = list(g) if isinstance(v.type, TupleType) else [g]
    rule = rule_of(v)
    if rule is not None:
        return _by_rule(v, rule.vjp, given, True)
    xs = [fresh_input(o.type) for o in v.operands]
    gs = [None if c is None else fresh_input(c.type) for c in given]
    wrt = [x for x in xs if varies(x.type)]
    found = dict(zip(wrt, vjp(open_body(v, 0, xs), wrt, gs), strict=True))
    outside = dict(zip(xs, v.operands, strict=True)) | _pairs(gs, given)
    return _placed(v, "gradient of", outside, [found.get(x) for x in xs])


def call_jvp(tangents: Sequence[Maybe], v: Value) -> Any:
    """The tangent of the result (a list for several), given those of the operands."""
    rule = rule_of(v)
    if rule is not None:
        out = _by_rule(v, rule.jvp, tangents, False)
    else:
        xs = [fresh_input(o.type) for o in v.operands]
        ts = [None if t is None else fresh_input(t.type) for t in tangents]
        outside = dict(zip(xs, v.operands, strict=True)) | _pairs(ts, tangents)
        out = _placed(v, "tangent of", outside, jvp(open_body(v, 0, xs), xs, ts))
    return out if isinstance(v.type, TupleType) else out[0]


def _pairs(leaves: Sequence[Maybe], values: Sequence[Maybe]) -> dict[Value, Value]:
    return {a: b for a, b in zip(leaves, values, strict=True) if a is not None and b is not None}


def _placed(v: Value, role: str, outside: Mapping[Value, Value], results: Sequence[Maybe]) -> list[Maybe]:
    """``results``, built on leaves, on what the leaves are outside: a block again, if ``v`` is opaque."""
    wanted = [r for r in results if r is not None]
    made = _block(v, f"{role} {v.attrs['name']}", outside, wanted) if v.attrs["opaque"] and wanted else \
        replace(wanted, outside, location.move)  # fmt: skip
    found = iter(made)
    return [None if r is None else next(found) for r in results]


def _block(v: Value, name: str, outside: Mapping[Value, Value], results: Sequence[Value]) -> list[Value]:
    leaves = [x for x in postorder(results) if x in outside]
    body = close(leaves, [], results)
    new = call(*[outside[x] for x in leaves], name=name, rule="", opaque=v.attrs["opaque"], batch=(),
               regions=[body.region])  # fmt: skip
    location.note_inside(new, body.notes)
    return results_of(new)


# --- rules of single entries, on batches ------------------------------------------------------------------------------


def _by_rule(v: Value, rule: Callable[..., list[Maybe]], given: Sequence[Maybe], back: bool) -> list[Maybe]:
    """Derivatives of ``v`` by its own rule. ``given`` are cotangents (``back``) or tangents."""
    levels = v.attrs["batch"]
    types = v.types
    if not levels:
        return rule(given, Site(v.operands, types))
    operands = [_stripped(o.type, levels, k) for k, o in enumerate(v.operands)]
    xs = [fresh_input(t) for t in operands]
    own = [_stripped(t, levels, None) for t in types]
    seeds = own if back else operands
    gs = [None if g is None else fresh_input(t) for g, t in zip(given, seeds, strict=True)]
    found = rule(gs, Site(tuple(xs), tuple(own)))
    real = [k for k, c in enumerate(found) if c is not None]
    outputs = [c for c in found if c is not None]
    for level, n in zip(levels, _sizes(v), strict=True):
        marks = [*level, *([True] * len(gs) if back else level)]
        leaves = [*xs, *gs]
        wide = [None if x is None else fresh_input(batched(x.type, n)) if m else x
                for x, m in zip(leaves, marks, strict=True)]  # fmt: skip
        moved = [(x, w) for x, w in zip(leaves, wide, strict=True) if x is not None and w is not None and w is not x]
        outputs = vmap(outputs, [x for x, _ in moved], [w for _, w in moved], n)
        if back:  # an operand that all entries share gets the sum of what they send
            outputs = [o if level[k] else sum_(o, axes=(0,)) for k, o in zip(real, outputs, strict=True)]
        xs, gs = [w for w in wide[: len(xs)] if w is not None], wide[len(xs) :]
    outside = dict(zip(xs, v.operands, strict=True)) | _pairs(gs, given)
    done = dict(zip(real, replace(outputs, outside, location.move), strict=True))
    return [done.get(k) for k in range(len(found))]


def _stripped(t: TensorType, levels: Sequence[Sequence[bool]], k: int | None) -> TensorType:
    """The type of a single entry of operand ``k``, or of a result."""
    count = sum(1 for level in levels if k is None or level[k])
    return TensorType(t.dtype, t.shape[count:])


def _sizes(v: Value) -> list[Size]:
    """The number of entries of every level, innermost first: every result has all these axes in front."""
    first = v.type.items[0] if isinstance(v.type, TupleType) else v.type
    return list(first.shape[: len(v.attrs["batch"])][::-1])
