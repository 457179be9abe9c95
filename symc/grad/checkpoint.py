"""Derivatives of ``checkpoint``: of the region's values nothing is kept, the derivative computes them again.

Both directions give another ``checkpoint``, so a derivative of the derivative keeps nothing either. The reverse one
works on ``again`` of the operands: it is a second computation, and does not start before the cotangent is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symc.grad.batch import vmap
from symc.grad.forward import jvp
from symc.grad.reverse import vjp
from symc.grad.varying import varies
from symc.ir import location
from symc.ir.bodies import close, is_free, open_body
from symc.ir.dim import Size
from symc.ir.ops.kernel import results_of
from symc.ir.ops.remat import again, checkpoint
from symc.ir.traverse import postorder, rebuild, replace
from symc.ir.types import TupleType
from symc.ir.value import Value, fresh_input

Maybe = Value | None


def checkpoint_vjp(v: Value, cotangents: Sequence[Maybe], needed: Sequence[bool] = (),
                   masked: bool = False) -> list[Maybe]:
    """The cotangents of the operands of ``v``, given one a result."""
    given = {k: g for k, g in enumerate(cotangents) if g is not None}
    xs = [fresh_input(o.type) for o in v.operands]
    gs = {k: fresh_input(g.type) for k, g in given.items()}
    outputs, kept = _recomputed(v, xs)
    wrt = [x for x in xs if varies(x.type)]
    found = vjp([outputs[k] for k in given], wrt, list(gs.values()), masked=masked)
    outside: dict[Value, Value] = {}
    for x, o in zip(xs, _again(v, list(given.values())), strict=True):
        outside[x] = o
    outside.update((gs[k], g) for k, g in given.items())
    leaves = {inner: fresh_input(inner.type) for inner in kept}
    outside.update((leaves[inner], kept[inner]) for inner in kept)
    real = [k for k, c in enumerate(found) if c is not None]
    results = replace([c for c in found if c is not None], leaves, location.move)
    made = _close(v, outside, results)
    by = {wrt[k]: c for k, c in zip(real, made, strict=True)}
    return [by.get(x) for x in xs]


def checkpoint_jvp(v: Value, tangents: Sequence[Maybe]) -> list[Maybe]:
    """The tangent of every result, given those of the operands."""
    xs = [fresh_input(o.type) for o in v.operands]
    ts = [None if t is None else fresh_input(t.type) for t in tangents]
    found = jvp(open_body(v, 0, xs), xs, ts)
    outside = dict(zip(xs, v.operands, strict=True))
    outside.update((t, given) for t, given in zip(ts, tangents, strict=True) if t is not None and given is not None)
    made = iter(_close(v, outside, [t for t in found if t is not None]))
    return [None if t is None else next(made) for t in found]


def _again(v: Value, cotangents: Sequence[Value]) -> list[Value]:
    """The operands under other names, held back until the cotangents are there (numbers are there from the start)."""
    after = [g for g in cotangents if not is_free(g)] or results_of(v)
    return [o if is_free(o) else again(o, *after) for o in v.operands]


def _recomputed(v: Value, xs: Sequence[Value]) -> tuple[list[Value], dict[Value, Value]]:
    """The results of the region on ``xs`` without effects, which take place once, in the first computation.

    And which of the values below them are kept, with what they are outside.
    """
    outputs = open_body(v, 0, xs)
    done: dict[Value, Value] = {}
    kept: dict[Value, Value] = {}
    operands = dict(zip(xs, v.operands, strict=True))
    for x in postorder(outputs):
        if "effect" in x.op.traits:
            done[x] = done[x.operands[0]]
        else:
            done[x] = rebuild(x, [done[o] for o in x.operands])
            location.move(x, done[x])
            if x.op.name == "dot" and v.attrs["policy"] == "dots":
                (kept[done[x]],) = replace([x], operands, location.move)
    return [done[o] for o in outputs], kept


def _close(v: Value, outside: Mapping[Value, Value], results: Sequence[Value]) -> list[Value]:
    """``results``, built on leaves, as a checkpoint on what the leaves are outside."""
    if not results:
        return []
    leaves = [x for x in postorder(results) if x in outside]
    body = close(leaves, [], results)
    new = checkpoint(*[outside[x] for x in leaves], policy=v.attrs["policy"], regions=[body.region])
    location.note_inside(new, body.notes)
    return results_of(new)


def checkpoint_batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    """The batching rule: the region over one more axis."""
    xs = [fresh_input(o.type) for o in v.operands]
    batched = [x for x, f in zip(xs, flags, strict=True) if f]
    rows = [fresh_input(o.type) for o, f in zip(operands, flags, strict=True) if f]
    results = vmap(open_body(v, 0, xs), batched, rows, n)
    outside = dict(zip(xs, operands, strict=True))
    outside.update(zip(rows, [o for o, f in zip(operands, flags, strict=True) if f], strict=True))
    made = _close(v, outside, results)
    return made[0].operands[0] if isinstance(v.type, TupleType) else made[0]
