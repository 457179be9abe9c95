"""``vmap`` of a graph: the same computation over one more leading axis of some leaves, without a loop.

Ops are batched by the rules in ``symc.ir.ops.batching``, loops and branches by those in ``symc.ir.batch_control``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symc.errors import InternalError
from symc.ir import location
from symc.ir.batch_control import CONTROL, Part
from symc.ir.dim import Size
from symc.ir.ops.batching import batch_value
from symc.ir.ops.elementwise import spread
from symc.ir.traverse import postorder, rebuild
from symc.ir.value import Value


def vmap(outputs: Sequence[Value], inputs: Sequence[Value], batches: Sequence[Value], size: Size) -> list[Value]:
    """The outputs for every entry of ``batches``, which stand for ``inputs`` and have a leading axis of ``size``.

    Every output has the leading axis, also one that does not depend on the inputs. Raises SymcError for an op without
    a batching rule.
    """
    for i, b in zip(inputs, batches, strict=True):
        if b.dtype != i.dtype or b.shape != (size, *i.shape):
            raise InternalError(f"vmap: a batch of {size} values of type {i.type} cannot be {b.type}")
    found = batch_graph(outputs, {i: (b, True) for i, b in zip(inputs, batches, strict=True)}, size)
    return [spread(v, batched, size) for v, batched in found]


def batch_graph(outputs: Sequence[Value], leaves: Mapping[Value, Part], size: Size) -> list[Part]:
    """The outputs over the batch axis, if they depend on a leaf that has it. ``leaves``: what leaves become."""
    done: dict[Value, Part] = dict(leaves)
    several: dict[Value, list[Part]] = {}  # the results of loops and branches
    for v in postorder(outputs, stop=done.__contains__):
        if v in done:
            continue
        if v.op.name == "get" and v.operands[0] in several:
            done[v] = several[v.operands[0]][v.attrs["index"]]
            continue
        flags = [done[o][1] for o in v.operands]
        if not any(flags):
            done[v] = v if all(done[o][0] is o for o in v.operands) else _rebuilt(v, done), False
            continue
        operands = [done[o][0] for o in v.operands]
        with location.at(location.noted(v) or location.here()):
            rule = CONTROL.get(v.op)
            if rule is None:
                done[v] = batch_value(v, operands, flags, size), True
            else:
                several[v] = rule(v, operands, flags, size, batch_graph)
                done[v] = several[v][0]
    return [done[o] for o in outputs]


def _rebuilt(v: Value, done: Mapping[Value, Part]) -> Value:
    new = rebuild(v, [done[o][0] for o in v.operands])
    location.move(v, new)
    return new
