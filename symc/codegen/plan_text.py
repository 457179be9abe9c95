"""Plans as text: when memory appears and goes, what runs, what is written over what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symc.codegen.bufferize import spans
from symc.codegen.memory import count_buffers, lower_bound, peak
from symc.codegen.names import kernel_name
from symc.ir.literal import print_attr
from symc.ir.plan import Buffer, Plan, Step
from symc.ir.text import input_names

#: Longer attributes (index lists, constant data) are left out of the text of a step.
SHOWN = 60


def print_plan(plan: Plan) -> str:
    """The text of a plan; it is for readers, there is no way back."""
    f = plan.function
    params = ", ".join(
        f"{'state ' if i.role == 'state' else 'donated ' if k in plan.donated else ''}%{n}: {i.type}"
        for k, (n, i) in enumerate(zip(input_names(f), f.inputs, strict=True)))
    lines = [f"plan @{f.name}({params}) {{",
             f"  // peak {peak(plan)} bytes in {count_buffers(plan)} buffers; lower bound {lower_bound(plan)}"]
    if plan.offsets:
        lines.append(f"  arena {plan.arena} bytes")
    lines += [f"  constant %{b.name} : {b.nbytes} bytes   ({plan.types[b.name]})"
              for b in plan.buffers.values() if b.kind == "constant"]
    lines += _steps(plan)
    lines.append(_return(plan))
    return "\n".join([*lines, "}"]) + "\n"


def _steps(plan: Plan) -> Iterator[str]:
    lanes = any(s.lane for s in plan.steps)
    span = spans(plan.steps)
    for at, step in enumerate(plan.steps):
        names = list(dict.fromkeys((*step.writes, *step.reads)))
        for n in names:
            buffer = plan.buffers[n]
            if buffer.kind in ("result", "temp") and span[n][0] == at:
                yield _alloc(plan, buffer)
        for w in step.waits:
            yield f"  [{step.lane}] wait step {w}"
        yield _step(plan, at, step, lanes)
        for n in names:
            if plan.buffers[n].kind == "temp" and span[n][1] == at:
                yield f"  free %{n}"


def _alloc(plan: Plan, buffer: Buffer) -> str:
    where = "(result)" if buffer.kind == "result" else f"(arena + {plan.offsets.get(buffer.name, 0)})"
    return f"  alloc %{buffer.name} : {buffer.nbytes} bytes   {where}"


def _step(plan: Plan, at: int, step: Step, lanes: bool) -> str:
    if step.kind == "launch":
        what = f"launch @{kernel_name(step.value)}"
    else:
        what = "copy" if step.kind == "copy" else f"call {step.value.op.name}"
    text = f"  [{step.lane}] {_names(step.writes)} <- {what}" + (" " + _names(step.reads) if step.reads else "")
    if step.kind == "call" and step.value.attrs:
        attrs = "{" + ", ".join(f"{k} = {print_attr(a)}" for k, a in step.value.attrs.items()) + "}"
        text += " " + attrs if len(attrs) <= SHOWN else " {...}"
    notes = [*(["in place"] if set(step.reads) & set(step.writes) else []),
             *(["donated"] if any(plan.buffers[n].kind in ("state", "input") for n in step.writes) else []),
             *([f"step {at}"] if lanes else [])]
    locs = ", ".join(map(str, plan.function.locations(step.value)))
    comment = " | ".join([t for t in (", ".join(notes), locs) if t])
    return text + (f"      // {comment}" if comment else "")


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"%{n}" for n in names)


def _return(plan: Plan) -> str:
    f = plan.function
    n = len(f.outputs)
    text = "  return" + (" " + _names(plan.results[:n]) if n else "")
    if f.updates:
        names = input_names(f)
        new = [f"%{names[k]} = %{r}" for k, r in zip(f.updates, plan.results[n:], strict=True)]
        text += f" update ({', '.join(new)})"
    return text
