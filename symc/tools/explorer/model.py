"""The data of the explorer's page: stages, the plan with its kernels, memory and times, the user's lines."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symc.codegen.kernel.names import kernel_name
from symc.codegen.plan.cells import NOMINAL
from symc.codegen.plan.memory import memory
from symc.ir.function import Function
from symc.ir.plan import Plan, Step
from symc.ir.text import input_names
from symc.tools.explorer.graph import Tables
from symc.tools.profiling.measure import step_label

#: Lines of the user's file that are shown around one that made something.
AROUND = 2


def model(f: Any, notes: Any = None, profile: Any = None, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Everything about a compiled function. ``notes``: record of the optimizer; ``profile``: of a call, with ``sizes``.
    """
    c = f._compilation
    stages = dict(c.stages)
    if not stages:
        stages["input"] = c.source
    if c.plan is not None and c.plan.function.body is not c.final.body:
        stages["plan"] = c.plan.function
    if c.final.body not in {g.body for g in stages.values()}:
        stages["final"] = c.final
    kernels = [{"name": k.name, "source": k.source, "launches": k.launches} for k in _kernels(c.program)]
    found = of_stages(f.name, stages, notes)
    found["about"] = repr(f)
    tables = found.pop("tables")
    found |= {"kernels": kernels, "steps": [], "memory": None, "source": c.program.source if not kernels else ""}
    if c.plan is not None:
        found["steps"] = _steps(c.plan, tables, [k["name"] for k in kernels], profile)
        found["memory"] = _memory(c.plan, dict(sizes or {}))
        found["plan"] = f.plan
    return found | _finished(tables, profile)


def model_of_ir(name: str, stages: Mapping[str, Function], notes: Any = None) -> dict[str, Any]:
    """The same of functions that were not compiled: those of IR text."""
    found = of_stages(name, stages, notes)
    tables = found.pop("tables")
    return found | {"about": name, "kernels": [], "steps": [], "memory": None, "source": ""} | _finished(tables, None)


def of_stages(name: str, stages: Mapping[str, Function], notes: Any) -> dict[str, Any]:
    """``stages``, each with its region, its interface, what changed in it and the rules that fired."""
    from symc.opt import all_passes

    docs = {p.name: p.doc.partition("\n")[0] for p in all_passes()}
    fired = Counter((x.pass_name, x.rule) for x in notes.provenance.firings) if notes is not None else Counter()
    tables, rows = Tables(), list[dict[str, Any]]()
    for stage, f in stages.items():
        region = tables.stage(f)
        if rows and rows[-1]["region"] == region and stage not in ("input", "final"):
            continue
        base = stage.partition(".")[0]
        params = tables.regions[region]["params"]
        rows.append({
            "name": stage, "doc": docs.get(base, ""), "region": region,
            "rules": [[r, n] for (p, r), n in fired.items() if p == base],
            "inputs": [{"name": n, "role": i.role, "type": str(i.type), "value": params[k]}
                       for k, (n, i) in enumerate(zip(input_names(f), f.inputs, strict=True))],
            "outputs": len(f.outputs), "updates": [input_names(f)[k] for k in f.updates],
            "change": tables.difference(rows[-1]["region"], region) if rows else {"new": [], "gone": []}})
    return {"name": name, "stages": rows, "tables": tables}


def _finished(tables: Tables, profile: Any) -> dict[str, Any]:
    seconds = {} if profile is None else {row.line: row.seconds for row in profile.by_line()}
    return {**tables.finished(), "files": _files(tables), "lineSeconds": seconds}


def _kernels(program: Any) -> Sequence[Any]:
    """Records of kernels; programs without any have none."""
    return [k for k in program.kernels if hasattr(k, "source")]


def flat_steps(plan: Plan, depth: int = 0) -> Iterator[tuple[Plan, Step, int]]:
    """The steps of a plan, those of loops and branches after these: in the sequence of a profile's rows."""
    for step in plan.steps:
        yield plan, step, depth
        for body in step.bodies:
            yield from flat_steps(body, depth + 1)


def _steps(plan: Plan, tables: Tables, kernels: Sequence[str], profile: Any) -> list[dict[str, Any]]:
    every = list(flat_steps(plan))
    timed = list(profile) if profile is not None and len(profile) == len(every) else [None] * len(every)
    top = -1
    rows = []
    for (_, step, depth), row in zip(every, timed, strict=True):
        top += depth == 0
        name = kernel_name(step.value) if step.kind == "launch" else ""
        rows.append({
            "kind": step.kind, "label": step_label(step), "depth": depth, "at": top, "lane": step.lane,
            "value": tables.find(step.value), "reads": list(step.reads), "writes": list(step.writes),
            "inPlace": bool(set(step.reads) & set(step.writes)), "kernel": _kernel_of(name, kernels),
            "seconds": row.seconds if row is not None else None, "runs": row.runs if row is not None else None})
    return rows


def _kernel_of(name: str, kernels: Sequence[str]) -> int | None:
    """The kernel that a launch runs: of its name, or one that is the same but for a mark such as ``_in_place``."""
    if not name:
        return None
    return next((k for k, n in enumerate(kernels) if n == name),
                next((k for k, n in enumerate(kernels) if n.startswith(name)), None))


def _memory(plan: Plan, sizes: dict[str, int]) -> dict[str, Any] | None:
    """Times at which each buffer is in use, and where it lies; for sizes that nobody gave, with nominal ones."""
    given = dict(sizes)
    for _ in range(100):  # sizes that are data are told by nobody else
        try:
            report = memory(plan, sizes)
            break
        except KeyError as e:
            sizes[e.args[0]] = NOMINAL
    else:
        return None
    return {"sizes": sizes, "assumed": [n for n in sizes if n not in given], "peak": int(report), "arena": report.arena,
            "naive": report.naive, "lower": report.lower_bound, "steps": len(plan.steps),
            "rows": [[r.buffer, r.kind, r.nbytes, r.offset, r.first, r.last] for r in report.rows]}


def _files(tables: Tables) -> dict[str, list[tuple[int, str]]]:
    """The lines of each file that something was made on, and those around them."""
    found: dict[str, set[int]] = {}
    for loc in tables.locs:
        found.setdefault(loc.file, set()).update(range(loc.line - AROUND, loc.line + AROUND + 1))
    return {file: [(n, text.rstrip("\n")) for n in sorted(lines) if (text := linecache.getline(file, n))]
            for file, lines in found.items()}


