"""Batches of ops that stand for their regions: every region over one more axis of some of its params."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.grad.batch import vmap
from symc.ir import location
from symc.ir.bodies import Body, close, open_body
from symc.ir.dim import Size
from symc.ir.ops.call import call
from symc.ir.ops.implicit import root
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input


def batched_body(v: Value, k: int, flags: Sequence[bool], n: Size) -> Body:
    """Region ``k`` of ``v`` for ``n`` entries, when the params flagged have an axis of them in front: results have."""
    single = [fresh_input(t) for t in v.regions[k].params]  # type: ignore[arg-type]
    wide = [fresh_input(TensorType(x.dtype, (n, *x.shape))) if f else x for x, f in zip(single, flags, strict=True)]
    picked = [i for i, f in enumerate(flags) if f]
    results = vmap(open_body(v, k, single), [single[i] for i in picked], [wide[i] for i in picked], n)
    return close(wide, [], results)


def call_batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    """A block over a batch is the block of the batched region; what has a rule of its own remembers who is batched."""
    body = batched_body(v, 0, flags, n)
    levels = (*v.attrs["batch"], tuple(map(bool, flags))) if v.attrs["rule"] else ()
    attrs: dict[str, Any] = {**v.attrs, "batch": levels}
    new = call(*operands, regions=[body.region], **attrs)
    location.note_inside(new, body.notes)
    return new


def root_batch(v: Value, operands: Sequence[Value], flags: Sequence[bool], n: Size) -> Value:
    """Answers of ``n`` equations, which do not know of each other. Right sides and answers come before the operands."""
    bodies = [batched_body(v, k, [*[True] * (len(r.params) - len(operands)), *flags], n)
              for k, r in enumerate(v.regions)]  # fmt: skip
    new = root(*operands, regions=[b.region for b in bodies])
    for b in bodies:
        location.note_inside(new, b.notes)
    return new
