"""``vmap`` of a graph: the same computation over one more leading axis of some leaves, without a loop."""

from __future__ import annotations

from collections.abc import Sequence

from symc.errors import InternalError
from symc.ir import location
from symc.ir.dim import Size
from symc.ir.ops.batching import batch_value, spread
from symc.ir.traverse import postorder
from symc.ir.value import Value


def vmap(outputs: Sequence[Value], inputs: Sequence[Value], batches: Sequence[Value], size: Size) -> list[Value]:
    """The outputs for every entry of ``batches``, which stand for ``inputs`` and have a leading axis of ``size``.

    Every output has the leading axis, also one that does not depend on the inputs. Raises SymcError for an op without
    a batching rule.
    """
    done: dict[Value, Value] = {}
    for i, b in zip(inputs, batches, strict=True):
        if b.dtype != i.dtype or b.shape != (size, *i.shape):
            raise InternalError(f"vmap: a batch of {size} values of type {i.type} cannot be {b.type}")
        done[i] = b
    batched = set(inputs)
    for v in postorder(outputs, stop=done.__contains__):
        if v in done:
            continue
        flags = [o in batched for o in v.operands]
        if any(flags):
            batched.add(v)
            with location.at(location.noted(v) or location.here()):
                done[v] = batch_value(v, [done[o] for o in v.operands], flags, size)
        else:
            done[v] = v
    return [spread(done[o], o in batched, size) for o in outputs]
