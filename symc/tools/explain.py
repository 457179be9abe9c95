"""``f.explain(v)``: from what a user names (a value, an output, a state, a line) to what became of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from symc.codegen.kernel.names import kernel_name
from symc.driver.compilation import Compilation
from symc.errors import InputError, SymcError, did_you_mean
from symc.ir import location
from symc.ir.function import Function
from symc.ir.op import in_python
from symc.ir.plan import Plan
from symc.ir.traverse import Substitution, postorder
from symc.ir.value import Value
from symc.opt import Optimized
from symc.opt.why.history import history_of, overview
from symc.runtime.cpu.program import in_loops
from symc.tensors.tensor import Tensor


def explain(built: Any, compilation: Compilation, out: Optimized, v: Any) -> str:
    """The text; raises InputError for something that is not in the function."""
    if v is None:
        return "\n".join([overview(out), *_steps(compilation.plan)])
    f = compilation.source
    if isinstance(v, Tensor):
        values, title = _of_tensor(built, f, v)
    elif isinstance(v, int) and not isinstance(v, bool):
        if not -len(f.outputs) <= v < len(f.outputs):
            raise InputError(f"explain: {f.name} has {len(f.outputs)} outputs, so none of them is {v}")
        values, title = [f.outputs[v]], f"output {v % len(f.outputs)} of {f.name}"
    elif isinstance(v, str):
        values, title = _of_name(built, f, v)
    else:
        raise InputError(f"explain: {v!r} is no value, output, state or line of {f.name}",
                         help="a tensor, the index or name of an output, the name of a state, or 'file.py:12'")
    where = location.brief(_lines(f, values)[:3])
    return history_of(out, values, title + (f"    {where}" if where else ""), ends(compilation.plan))


def _lines(f: Function, values: Sequence[Value]) -> list[location.Loc]:
    return location.in_order(frozenset(loc for v in values for loc in f.locations(v)))


def _of_tensor(built: Any, f: Function, v: Tensor) -> tuple[list[Value], str]:
    """A value of the function, or where it was written, if it is made of other leaves (``givens``, a loaded one)."""
    title = v.value.op.name if v.value.operands else "an input"
    known = dict(zip(built.leaves, f.params, strict=False))
    if v.value in known:
        return [known[v.value]], f"the input {f.inputs[f.params.index(known[v.value])].name}"
    try:
        (found,) = (built.changed or Substitution({})).values([v.value], known)
    except SymcError:  # it is made of other leaves, too
        found = v.value
    if found in set(f.values()):
        return [found], title
    lines = {(loc.file, loc.line) for loc in location.noted(v.value)}
    values = _written_on(f, lambda loc: (loc.file, loc.line) in lines)
    if not values:
        raise InputError(f"explain: {f.name} does not compute this value", values=[v.describe("the value")],
                         help="give a value that its outputs are made of")
    return values, title


def _of_name(built: Any, f: Function, name: str) -> tuple[list[Value], str]:
    paths = {re.sub(r"^\W+|\W+$", "", p): k for k, p in enumerate(built.outputs.paths())}
    if name in paths:
        return [f.outputs[paths[name]]], f"the output {name}"
    new = {f.inputs[place].name: v for place, v in zip(f.updates, f.body.results[len(f.outputs):], strict=True)}
    if name in new:
        return [new[name]], f"the new value of {name}"
    found = re.fullmatch(r"(.*?):?(\d+)", name)
    if found:
        values = _written_on(f, lambda loc: loc.line == int(found[2]) and loc.file.endswith(found[1]))
        if values:
            return values, f"line {name}"
    raise InputError(
        f"explain: {f.name} has no output, state or line {name!r}", help=did_you_mean(name, [*paths, *new])
    )


def _written_on(f: Function, here: Any) -> list[Value]:
    """The values of a line that no other value of the line is made of."""
    own = [v for v in f.values() if v.operands and any(here(loc) for loc in f.locations(v) if not loc.role)]
    inner = {x for v in own for x in postorder(v.operands)}
    return [v for v in own if v not in inner]


def ends(plan: Plan | None) -> Mapping[Value, str]:
    """Words for where the values of a plan are computed."""
    out: dict[Value, str] = {}
    if plan is None:
        return out
    parts: dict[Value, list[Value]] = {}
    for v in plan.function.values():
        if v.op.name == "get":
            parts.setdefault(v.operands[0], []).append(v)
    for s in plan.steps:
        name = f"the kernel @{kernel_name(s.value)}" if s.kind == "launch" else f"a call of {s.value.op.name}"
        over = sorted(set(s.reads) & set(s.writes))
        text = f"computed by {name}" + (f", in place over {', '.join(over)}" if over else "")
        out.update(dict.fromkeys([s.value, *parts.get(s.value, ())], text))
    return out


def _steps(plan: Plan | None) -> list[str]:
    """Lines of what runs in the end, one a step."""
    if plan is None:
        return []
    lines = ["in the end:"]
    bounds = {at: group for group in plan.sections for at in group}
    for k, s in enumerate(plan.steps):
        if k in bounds and bounds[k][-1] != k:
            lines.append("  where it pays, at the same time:" if bounds[k][0] == k else "  and:")
        elif k in bounds:
            lines.append("  then:")
        if s.kind == "launch":
            count = sum(bool(x.operands) for x in postorder(s.value.regions[0].results))
            text = f"  kernel @{kernel_name(s.value)}, which computes {count} value{'s' * (count != 1)}"
        else:
            text = f"  {s.kind} {s.value.op.name}{', in Python' * in_python(s.value)}"
        over = sorted(set(s.reads) & set(s.writes))
        lines.append(text + (f", in place over {', '.join(over)}" if over else ""))
        lines += [f"    in Python: {v.op.name}    {', '.join(map(str, at))}" for v, at in in_loops(s)]
    return lines
