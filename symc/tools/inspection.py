"""Answers to what is asked of a compiled function ``f``: its plan and memory, what the optimizer did, what it computed.

The docstrings stand where users find them, at the methods of ``CompiledFunction``. What an answer needs is imported
when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.driver.files import save as save
from symc.driver.modes import BY_NUMPY
from symc.driver.save import reduce as reduce
from symc.driver.save import token as token
from symc.errors import InputError, PipelineError, PlanError, SymcError, did_you_mean
from symc.ir.function import Function, bound_names
from symc.ir.plan import Plan
from symc.notebook import table, text
from symc.runtime.cpu.commit import snapshot
from symc.tensors.callsite import at_caller, caller

if TYPE_CHECKING:
    from symc.opt import Optimized
    from symc.tools.accuracy import AccuracyReport
    from symc.tools.launches import Launches
    from symc.tools.profiling.compiling import CompileProfile
    from symc.tools.profiling.report import Profile


# --- plans ------------------------------------------------------------------------------------------------------------


def planned(f: Any) -> Plan:
    """The plan. Raises PlanError where there is none."""
    if f._compilation.plan is None:
        raise PlanError(f"{f.name} was compiled with {f._compilation.settings.said}, which has no plan",
                        where=[caller()], help="kernels have one: mode='default' with backend='llvm' or 'numba'")
    return f._compilation.plan


def plan_text(f: Any) -> str:
    """Plan of the prologue, if there is one, and the rest."""
    from symc.codegen.plan.text import print_plan

    main, prologue = planned(f), f._compilation.planned.prologue
    return "\n".join(print_plan(p) for p in (prologue, main) if p is not None)


def library_calls(f: Any) -> dict[str, int]:
    from symc.codegen.plan.library_calls import library_calls

    return library_calls(planned(f))


def memory(f: Any, args: tuple, sizes: Mapping[str, int]) -> int:
    from symc.codegen.plan.memory import memory

    plan = planned(f)
    sizes = _sizes(f, plan, args, sizes)
    with _sizes_known(plan, "memory"):
        return memory(plan, sizes)


def launches(f: Any, args: tuple, sizes: Mapping[str, int]) -> Launches:
    from symc.tools.launches import launches

    plan, program = planned(f), f._compilation.program
    if f._target.on_host or f._target.devices:
        raise InputError(f"{f.name} was compiled for {f._target.device}, which launches nothing", where=[caller()],
                         help="compile it with device='cuda'; SYMC_CUDA=dry does without a GPU")
    sizes = _sizes(f, plan, args, sizes)
    with _sizes_known(plan, "launches"):
        return launches(program, sizes)


def _sizes(f: Any, plan: Plan, args: tuple, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """The sizes of a call with these arguments, and those given by name. Raises InputError for an unknown name."""
    if args:
        sizes = bound(f, args, {})[1] | dict(sizes)
    known = bound_names(i.declared or i.type for i in plan.function.inputs)
    unknown = [n for n in sizes if n not in known]
    if unknown:
        raise InputError(f"{f.name} has no size {unknown[0]!r}", where=[caller()],
                         help=did_you_mean(unknown[0], known))
    return sizes


@contextmanager
def _sizes_known(plan: Plan, method: str) -> Iterator[None]:
    """Say which size is missing."""
    try:
        yield
    except KeyError as e:
        known = bound_names(i.declared or i.type for i in plan.function.inputs)
        raise InputError(f"the size {e.args[0]} is needed", where=[caller()],
                         help=f"sizes: {', '.join(known)}; or give arguments of a call: f.{method}(x)") from None


# --- what was done ----------------------------------------------------------------------------------------------------


def stage(f: Any, name: str | None) -> Function:
    """The final function, or that after a pass. Raises PipelineError for one that is not there."""
    if name is None:
        return f._compilation.final
    stages = f._compilation.stages
    if name not in stages:
        raise PipelineError(f"{f.name} has no stage {name!r}", where=[caller()], help=did_you_mean(name, stages))
    return stages[name]


def notes(f: Any) -> Optimized:
    """Record of the optimizer; done again where it is not at hand (a loaded function, a mode without passes)."""
    from symc.opt import DEFAULT, optimize

    c = f._compilation
    if c.notes is not None:
        return c.notes
    if "notes" not in c.made:
        c.made["notes"] = optimize(c.source, f._options["pipeline"] or DEFAULT)
    return c.made["notes"]


def compile_profile(f: Any) -> CompileProfile:
    from symc.tools.profiling.compiling import CompileProfile

    record = f._compilation.record
    return CompileProfile([] if record is None else record.phases)


def explain(f: Any, v: Any) -> str:
    from symc.tools.explain import explain

    with at_caller():
        return explain(f._built, f._compilation, notes(f), v)


def diff(f: Any, first: str, second: str | None) -> Any:
    from symc.tools.debugging.diff import diff

    return diff(stage(f, first), stage(f, second))


def why_not(f: Any, name: str) -> str:
    from symc.opt import why_not

    with at_caller():
        return why_not(notes(f), name)


def accuracy(f: Any) -> AccuracyReport:
    from symc.tools.accuracy import accuracy_report

    _check_one_device(f, "accuracy")

    def run(*args: Any) -> list[np.ndarray]:
        found = f._compilation.program.run(*args)
        return [a if isinstance(a, np.ndarray) else a.numpy() for a in found]

    return accuracy_report(f._built.function, run, [f"out{path}" for path in f._built.outputs.paths()])


# --- what it computes -------------------------------------------------------------------------------------------------


def bound(f: Any, args: tuple, kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, int]]:
    """Copies of the arrays a call would read, and its sizes."""
    with at_caller():
        arrays = [*[a.copy() for a in f._signature.arrays(args, kwargs)], *snapshot(f._cells)]
        return arrays, f._signature.sizes(arrays)


def _check_one_device(f: Any, what: str) -> None:
    if f._target.devices:
        raise InputError(f"{what}: {f.name} runs on {', '.join(f._target.devices)}",
                         where=[caller()], help="compile it for one device, or the CPU")


def profile(f: Any, args: tuple, kwargs: Mapping[str, Any], repeat: int) -> Profile:
    from symc.tools.profiling.lines import Shares
    from symc.tools.profiling.measure import profile

    arrays, sizes = bound(f, args, kwargs)
    c = f._compilation
    shares = Shares(None if c.plan is None else notes(f))
    return profile(f.name, c.program, arrays, sizes, max(1, repeat), shares, compile_profile(f).phases)


def save_repro(f: Any, path: Any, args: tuple, kwargs: Mapping[str, Any]) -> Any:
    from symc.driver.stages import pipeline_of
    from symc.tools.debugging.native import LOWERING
    from symc.tools.debugging.repro import write_repro
    from symc.tools.debugging.sample import Sample
    from symc.tools.sampling import suitable

    _check_one_device(f, "save_repro")
    settings, source, arrays = f._compilation.settings, f._compilation.source, None
    if args or kwargs or not f.inputs:
        arrays, said = bound(f, args, kwargs)[0], "of a call"
    elif f._call_path.failed is not None:
        with suppress(SymcError):
            arrays, said = bound(f, *f._call_path.failed)[0], "of the last call that failed"
    if arrays is None:
        arrays, said = suitable(source), "of its types, drawn at random"
    pipeline = LOWERING if settings.mode in BY_NUMPY or not settings.backend.plans else pipeline_of(settings)
    sample = Sample(source, tuple(map(np.asarray, arrays)), settings.donated)
    options = ", ".join(f"{k}={v!r}" for k, v in f._options.items())
    return write_repro(path, sample, f"A call of {f.name}.", f"Compiled with {options}. The inputs are {said}.",
                       pipeline=pipeline, call=True)


def trace(f: Any, args: tuple, kwargs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    from symc.tools.named_values import trace

    _check_one_device(f, "trace")
    return trace(f._compilation.source, *bound(f, args, kwargs))


# --- notebooks and pictures -------------------------------------------------------------------------------------------


def shown(f: Any) -> str:
    """HTML of a function for notebooks: its interface, and its text folded."""
    g = f._built.function
    rows: list[tuple[Any, ...]] = [(i.role, i.name, i.type, i.loc or "") for i in g.inputs]
    rows += [("result", f"out{path}", v.type, ", ".join(map(str, g.locations(v))))
             for path, v in zip(f._built.outputs.paths(), g.outputs, strict=True)]
    return table(["", "name", "type", "line"], rows, caption=repr(f)) + text(f.dump(), "IR", fold=True)


def to_html(f: Any, path: Any, args: tuple, kwargs: Mapping[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(html(f, args, kwargs))


def html(f: Any, args: tuple = (), kwargs: Mapping[str, Any] | None = None) -> str:
    """The explorer's page; with the times and sizes of a call, if its arguments are given."""
    from symc.tools.explorer.model import model
    from symc.tools.explorer.page import page

    measured = (f.profile(*args, **kwargs or {}), bound(f, args, kwargs or {})[1]) if args or kwargs else (None, None)
    record = notes(f) if f._options["mode"] not in BY_NUMPY else f._compilation.notes
    return page(model(f, record, *measured))
