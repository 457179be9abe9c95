"""Plans as text: when memory appears and goes, what runs, what is written over what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symc.codegen.kernel.names import kernel_name
from symc.codegen.plan.bufferize import spans
from symc.codegen.plan.memory import count_buffers, lower_bound, peak
from symc.ir.plan import Buffer, Layout, Plan, Step
from symc.ir.text import input_names, print_attrs, told_attrs
from symc.ir.value import Value

#: Longer attributes (index lists, constant data) are left out of the text of a step.
SHOWN = 80


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
    lines += _steps(plan, "  ", True)
    lines.append(_return(plan))
    return "\n".join([*lines, "}"]) + "\n"


def _steps(plan: Plan, indent: str, own: bool) -> Iterator[str]:
    """``own``: the plan says when its memory appears and goes; in loops and branches it is there all the time."""
    lanes = any(s.lane for s in plan.steps)
    span = spans(plan.steps)
    outer, bounds = indent, {at: group for group in plan.sections for at in group[:-1]}
    for at, step in enumerate(plan.steps):
        if at in bounds:
            yield outer + ("sections {" if at == bounds[at][0] else "} and {")
            indent = outer + "  "
        names = [n for n in dict.fromkeys((*step.writes, *step.reads, step.scratch)) if n is not None]
        for n in names if own else ():
            buffer = plan.buffers[n]
            if buffer.kind in ("result", "temp") and span[n][0] == at:
                yield indent + _alloc(plan, buffer)
        for w in step.waits:
            yield f"{indent}[{step.lane}] wait step {w}"
        yield indent + _step(plan, at, step, lanes)
        for k in range(len(step.bodies)):
            yield from _body(plan, step, k, indent + "  ")
        for n in names if own else ():
            if plan.buffers[n].kind == "temp" and span[n][1] == at:
                yield f"{indent}free %{n}"
        if indent != outer and any(at + 1 == group[-1] for group in plan.sections):
            indent = outer
            yield outer + "}"


def _body(plan: Plan, step: Step, k: int, indent: str) -> Iterator[str]:
    """Text of the body of a loop or branch: where everything lies, the steps, and what changes before the next time."""
    body, layout = step.bodies[k], step.layout
    assert layout is not None
    name = body.function.name.rsplit(".", 1)[-1]
    yield f"{indent}{name}({', '.join(_given(step, k))}) {{"
    inner = indent + "  "
    scratch = f"%{step.scratch}"
    for n, b in body.buffers.items():
        text = f"{inner}%{n} : {b.nbytes} bytes   "
        if b.kind == "constant":
            yield f"{text}(constant {body.types[n]})"
        elif b.kind == "temp":
            yield f"{text}({scratch} + {layout.arenas[k] + body.offsets[n]})"
        elif b.kind == "result" and n in layout.places and k == len(step.bodies) - 1:
            yield f"{text}({scratch} + {layout.places[n]})"
        elif b.kind == "result":
            yield f"{text}({_output(step, k, body.results.index(n))})"
    yield from _steps(body, inner, False)
    if layout.moves and k == len(step.bodies) - 1:
        yield f"{inner}next {', '.join(f'%{a} = %{b}' for a, b in layout.moves)}"
    yield indent + "}"


def _given(step: Step, k: int) -> Iterator[str]:
    """Text of each input of a body."""
    attrs, layout = step.value.attrs, step.layout
    assert layout is not None
    loop = step.value.op.name != "cond"
    for i, n in enumerate(step.bodies[k].given):
        place = f"%{step.reads[i if loop else i + 1]}"
        if loop and i < attrs["carry"]:
            place += _home(step, layout, i, n)
        elif loop and i < attrs["carry"] + attrs.get("xs", 0):
            place = f"row of {place}"
        yield f"%{n} = {place}"


def _home(step: Step, layout: Layout, i: int, n: str) -> str:
    """Text of where a carry starts."""
    if layout.homes[i] == "operand":
        return " at first" if any(a == n for a, _ in layout.moves) else ""
    if layout.homes[i] == "scratch":
        return f" copied to %{step.scratch} + {layout.places[n]}"
    return "" if step.reads[i] == step.writes[i] else f" copied to %{step.writes[i]}"


def _output(step: Step, k: int, j: int) -> str:
    if step.value.op.name == "cond":
        return f"%{step.writes[j]}"
    if step.value.op.name == "scan":
        return f"row of %{step.writes[step.value.attrs['carry'] + j]}"
    assert step.layout is not None
    return f"%{step.scratch} + {step.layout.flag}"


def _alloc(plan: Plan, buffer: Buffer) -> str:
    where = "(result)" if buffer.kind == "result" else f"(arena + {plan.offsets.get(buffer.name, 0)})"
    return f"alloc %{buffer.name} : {buffer.nbytes} bytes   {where}"


def _step(plan: Plan, at: int, step: Step, lanes: bool) -> str:
    if step.kind == "launch":
        what = f"launch @{kernel_name(step.value)}"
    elif step.kind == "control":
        what = step.value.op.name
    else:
        what = "copy" if step.kind == "copy" else f"call {step.value.op.name}"
    text = f"[{step.lane}] {_names(step.writes)} <- {what}" + (" " + _names(step.reads) if step.reads else "")
    if step.kind in ("call", "control"):
        text += _attrs(step.value)
    text += f" scratch %{step.scratch}" if step.scratch is not None else ""
    notes = [*(["in place"] if set(step.reads) & set(step.writes) else []),
             *(["donated"] if any(plan.buffers[n].kind in ("state", "input") for n in step.writes) else []),
             *([f"step {at}"] if lanes else [])]
    locs = ", ".join(map(str, plan.function.locations(step.value)))
    comment = " | ".join([t for t in (", ".join(notes), locs) if t])
    return text + (f"      // {comment}" if comment else "")


def _attrs(v: Value) -> str:
    """The attributes that are no defaults, if there is room."""
    every = told_attrs(v)
    text = " " + print_attrs(every) if every else ""
    return text if len(text) <= SHOWN else " {...}"


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
