"""The stages of the road from a closed function to a program: ``optimize``, ``plan``, ``load``.

Importing this imports the optimizer and the planner, which a function that is found on disk does without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from symc import opt
from symc.codegen.plan.planner import make_plan
from symc.codegen.plan.prologue import split
from symc.driver.backend import Program, Settings
from symc.driver.target import Target
from symc.errors import InputError, InternalError, SymcError, missing_package, of_handler
from symc.ir.function import Function
from symc.ir.plan import Plan
from symc.ir.record import dataclass
from symc.ir.text import print_function
from symc.ir.value import was_made
from symc.opt.engine import pipelines
from symc.opt.widen import widen
from symc.runtime.with_prologue import WithPrologue

#: What each mode runs through, unless ``pipeline=`` or the backend says otherwise. What assumptions rely on is checked
#: in "nan_guard" before all else; debug does so by itself.
PIPELINES = {"default": "DEFAULT", "fast_compile": "FAST_COMPILE", "debug": "DEFAULT"}


@dataclass(frozen=True)
class Optimized:
    """A function after all passes, and after each that changed it. ``notes``: what the optimizer did, if it ran."""

    function: Function
    stages: dict[str, Function]
    notes: opt.Optimized | None = None


@dataclass(frozen=True)
class Planned:
    """The plan of a function, or of its two parts; none if it runs op by op. ``function``: the optimized one, with
    values that are computed again for a budget. ``reads``: which of its inputs the prologue has."""

    function: Function
    plan: Plan | None = None
    prologue: Plan | None = None
    reads: tuple[int, ...] = ()


def optimize(source: Function, settings: Settings, saved: Function | None = None) -> Optimized:
    """Run the pipeline; ``saved`` is what it gave when the function was compiled before."""
    source = widen(source)
    if saved is not None:
        same = saved.body is source.body
        return Optimized(saved, {"input": source} if same else {"input": source, "saved": saved})
    pipeline = pipeline_of(settings)
    if not pipeline:
        return Optimized(source, {"input": source})
    found = opt.optimize(_for_ranks(source, settings.target), pipeline, verify=settings.mode == "debug")
    served = settings.backend.serve(found.function)
    if served is found.function:
        return Optimized(served, found.stages, found)
    return Optimized(served, {**found.stages, "serve": served}, found)


def pipeline_of(settings: Settings) -> str:
    """The pipeline that a function with these settings runs through."""
    mode, pipeline, backend = settings.mode, settings.pipeline, settings.backend
    if pipeline is None and mode in PIPELINES:
        own = {"default": backend.pipeline, "fast_compile": backend.fast}
        pipeline = getattr(pipelines, own.get(mode, PIPELINES[mode]))
        if not backend.plans:
            pipeline += "".join(f",-{p}" for p in pipelines.FOR_KERNELS)
    if mode == "nan_guard":
        pipeline = f"check_assumptions,{pipeline or ''}"
    if settings.budget is not None and "cache_from_state" in (pipeline or "").split(","):
        pipeline = f"{pipeline},-cache_from_state"  # what is kept takes memory between calls
    return pipeline or ""


def _for_ranks(f: Function, target: Target) -> Function:
    """The function that each device of the target runs."""
    if not was_made(("all_reduce",)):
        return f
    from symc.driver.splitting import split_of
    from symc.opt.facts.ranks import for_ranks

    return for_ranks(f, target.ranks, split_of(f.inputs, target).inputs)


def plan(f: Function, settings: Settings) -> Planned:
    """Order and memory. Raises MemoryBudgetError for a budget that cannot be kept."""
    backend, budget = settings.backend, settings.budget
    if not backend.plans:
        if budget is not None:
            raise InputError(f"max_bytes: {settings.said} runs without a memory plan",
                             help="kernels have one: backend='llvm' in mode='default', 'fast_compile' or 'debug'")
        return Planned(f)
    written = settings.donated | frozenset(f.updates)
    with _as_internal(f):
        if budget is not None:
            from symc.codegen.plan.budget import fit

            return Planned(*fit(f, written, budget))
        parts, how = split(f), partial(make_plan, lanes=backend.streams, sections=settings.sections)
        if parts is None:
            return Planned(f, how(f, written))
        return Planned(f, how(parts.rest, written), how(parts.first), parts.reads)


def load(source: Function, planned: Planned, settings: Settings) -> Program:
    """Compile kernels, and what runs them; in a mode that checks, inside of what does."""
    backend = settings.backend
    with _as_internal(planned.function):
        program = backend.load(planned.plan or planned.function, source, settings)
        if planned.prologue is not None:
            program = WithPrologue(program, backend.load(planned.prologue, source, settings), planned.reads)
    return program


@contextmanager
def _as_internal(f: Function) -> Iterator[None]:
    """Raises errors from here as bugs of symc, whatever they are called; the text makes a test."""
    try:
        yield
    except (SymcError, MemoryError):
        raise
    except ModuleNotFoundError as e:
        raise missing_package(e) from e
    except Exception as e:
        if of_handler(e):
            raise
        what = str(e).strip().partition("\n")[0]
        raise InternalError(f"compiling {f.name} failed: {type(e).__name__}: {what}", text=print_function(f)) from e


def checked(program: Program, source: Function, optimized: Optimized, planned: Planned, settings: Settings) -> Program:
    """The program inside of what its mode checks."""
    if settings.mode == "nan_guard":
        from symc.tools.debugging.nan_guard import NanGuard

        return NanGuard(program)
    if settings.mode != "debug":
        return program
    from symc.codegen.plan.check_plan import check_plan
    from symc.tools.debugging.debug_mode import DebugProgram

    if planned.plan is not None:
        check_plan(planned.plan)
    f = planned.function
    return DebugProgram(source, f, optimized.stages, program, settings.donated | frozenset(f.updates),
                        pipeline_of(settings) or opt.DEFAULT, settings)

