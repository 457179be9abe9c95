"""Values of all steps at once: what is computed in every step is computed for all steps, outside of the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symc.ir.location import NOWHERE, add_lines
from symc.ir.op import Extern
from symc.ir.ops.batching import batch_value, has_rule
from symc.ir.ops.effect import has_effect
from symc.ir.ops.elementwise import spread
from symc.ir.traverse import dependent, postorder, rebuild
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.loops.edit import may_fail, runs
from symc.opt.loops.form import Loop


def is_expensive(v: Value) -> bool:
    """A library routine, which takes all steps at once with less work than each alone: above all, a product."""
    if not isinstance(v.op.lowering, Extern) or not can_batch(v) or "barrier" in v.op.traits:
        return False
    if "contraction" in v.op.traits:
        left, _ = v.attrs["contract"]
        return any(v.operands[0].shape[a] != 1 for a in left)
    return True


def can_batch(v: Value) -> bool:
    """True if ``v`` can be computed for all steps at once."""
    plain = isinstance(v.type, TensorType) and not v.regions and not has_effect(v) and v.op.facts.custom is None
    return plain and has_rule(v.op, v.attrs)


def pure(loop: Loop, values: Sequence[Value]) -> bool:
    """True if what ``values`` are made of may be computed outside: nothing that could fail where no step is taken."""
    return runs(loop.value) or not any(map(may_fail, _same_every_step(loop, values)))


def _same_every_step(loop: Loop, values: Sequence[Value]) -> list[Value]:
    varying = dependent(postorder(values), loop.varying)
    return [v for v in postorder(values) if v not in varying]


def all_steps(loop: Loop, values: Sequence[Value], stacks: Mapping[Value, Value],
              constants: Mapping[Value, Value]) -> list[Value]:
    """Values of the body for all steps, stacked. ``stacks`` are those of values that are known, rows among them;
    ``constants`` are the captured values, by leaf."""
    n = loop.length
    done: dict[Value, Value] = {**constants, **stacks}
    varying = set(stacks)
    hints = loop.edit.hints
    for v in postorder(values, stop=done.__contains__):
        if v not in done:
            operands = [done[o] for o in v.operands]
            flags = [o in varying for o in v.operands]
            if any(flags):
                varying.add(v)
                done[v] = batch_value(v, operands, flags, n)
            else:
                done[v] = rebuild(v, operands)
            add_lines(hints, done[v], loop.lines.get(v, NOWHERE))
    return [spread(done[v], v in varying, n) for v in values]
