"""From a closed function to something that runs, by mode: which passes, which backend, which checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.codegen.plan import make_plan
from symc.codegen.prologue import split
from symc.errors import InputError, InternalError, NonFiniteError, SymcError, missing_package, of_handler
from symc.ir import location
from symc.ir.function import Function, Hints
from symc.ir.plan import Plan
from symc.ir.record import dataclass
from symc.ir.text import print_function
from symc.ir.value import Value, was_made
from symc.modes import BY_NUMPY
from symc.opt import DEFAULT, FAST_COMPILE, Optimized, optimize
from symc.opt.pipelines import FOR_KERNELS, ON_CUDA
from symc.runtime.kept_program import KeptProgram
from symc.runtime.kernels import compile_count
from symc.runtime.program import load
from symc.runtime.reference_program import ReferenceProgram
from symc.runtime.threads import threads_of
from symc.target import HOST, Target

if TYPE_CHECKING:
    from symc.codegen.budget import Budget

#: What each mode runs through, unless ``pipeline=`` says otherwise.
PIPELINES = {"default": DEFAULT, "fast_compile": FAST_COMPILE, "debug": DEFAULT, "reference": "", "nan_guard": ""}

#: How many streams a plan for a device may use. (In a graph they are branches, which cost the host nothing.)
LANES = 4

#: Modes that look at what is assumed by a pass (debug does so by itself, before the real program runs).
CHECKED = ("nan_guard",)


@dataclass
class Prepared:
    """A function at every stage, its plan where there is one, and the program that runs it."""

    source: Function
    final: Function
    stages: dict[str, Function]
    program: Any
    plan: Plan | None = None
    first: Plan | None = None  # the plan of what is kept between calls
    optimized: Optimized | None = None
    compiled: int = 0  # kernels that had to be compiled for it
    whole: Function | None = None  # ``final`` before values were computed again for a budget
    threads: int | None = None  # as asked for
    target: Target = HOST

    @property
    def saved(self) -> Function:
        """What the rest can be made of again."""
        return self.whole or self.final


def pipeline_of(mode: str, target: Target) -> str:
    """The pipeline of a mode, on a device."""
    return ON_CUDA if mode == "default" and not target.on_host else PIPELINES[mode]


def prepare(
    f: Function, mode: str, pipeline: str | None, donated: frozenset[int], threads: int | None = None,
    budget: Budget | None = None, target: Target = HOST,
) -> Prepared:
    """Optimize, plan and load ``f``. ``donated``: arguments that a call may overwrite."""
    wanted = pipeline_of(mode, target) if pipeline is None else pipeline
    if mode in CHECKED:
        wanted = f"check_assumptions,{wanted}"
    if pipeline is None and wanted and target.backend == "numpy":
        wanted += "".join(f",-{p}" for p in FOR_KERNELS)
    if not wanted:
        return _loaded(Prepared(f, f, {"input": f}, None, threads=threads, target=target), mode, donated, budget)
    if budget is not None and "keep" in wanted.split(","):
        wanted += ",-keep"  # what is kept takes memory between calls
    optimized = optimize(_for_ranks(f, target), wanted, verify=mode == "debug")
    prepared = Prepared(f, optimized.function, optimized.stages, None, optimized=optimized, threads=threads,
                        target=target)
    return _loaded(prepared, mode, donated, budget, wanted)


def _for_ranks(f: Function, target: Target) -> Function:
    """What each device of the target runs."""
    if not was_made(("all_reduce",)):
        return f
    from symc.opt.ranks import for_ranks
    from symc.splitting import split_of

    return for_ranks(f, target.ranks, split_of(f, target).inputs)


def restore(
    f: Function, final: Function, mode: str, pipeline: str | None, donated: frozenset[int], threads: int | None = None,
    budget: Budget | None = None, target: Target = HOST,
) -> Prepared:
    """What ``prepare`` gave, from a function that was optimized before."""
    stages = {"input": f} if f.body is final.body else {"input": f, "saved": final}
    return _loaded(Prepared(f, final, stages, None, threads=threads, target=target), mode, donated, budget, pipeline)


def _loaded(
    p: Prepared, mode: str, donated: frozenset[int], budget: Budget | None, pipeline: str | None = None
) -> Prepared:
    """With its plan and program."""
    by_numpy = mode in BY_NUMPY or p.target.backend == "numpy"
    if budget is not None and by_numpy:
        what = f"mode={mode!r}" if mode in BY_NUMPY else "backend='numpy'"
        raise InputError(f"max_bytes: {what} runs without a memory plan", help="kernels have one: backend='llvm' in "
                         "mode='default', 'fast_compile' or 'debug'")
    if mode == "nan_guard":
        p.program = NanGuardProgram(p.final)
    elif by_numpy:
        p.program = ReferenceProgram(p.final)
    else:
        _load(p, donated, budget)
    if mode == "debug":
        from symc.codegen.check_plan import check_plan
        from symc.debugging.debug_mode import DebugProgram

        if p.plan is not None:
            check_plan(p.plan)
        p.program = DebugProgram(p.source, p.final, p.stages, p.program, donated | frozenset(p.final.updates),
                                 pipeline or DEFAULT, p.target.compiler)
    return p


def _load(p: Prepared, donated: frozenset[int], budget: Budget | None) -> None:
    """Plan and compile. What goes wrong here is a bug of symc, whatever it is called; its text makes it a test."""
    try:
        written = donated | frozenset(p.final.updates)
        before = compile_count()
        parts = split(p.final) if budget is None else None
        if parts is None:
            plan = p.plan = _plan(p, written, budget)
            p.program = _program(p, plan)
        else:
            p.first = make_plan(parts.first, frozenset(), lanes=_lanes(p))
            plan = make_plan(parts.rest, written, lanes=_lanes(p))
            p.plan, p.program = plan, KeptProgram(parts, _program(p, p.first), _program(p, plan))
        p.compiled = compile_count() - before
    except (SymcError, MemoryError):
        raise
    except ModuleNotFoundError as e:
        raise missing_package(e) from e
    except Exception as e:
        if of_handler(e):
            raise
        what = str(e).strip().partition("\n")[0]
        raise InternalError(
            f"compiling {p.final.name} failed: {type(e).__name__}: {what}", text=print_function(p.final)
        ) from e


def _program(p: Prepared, plan: Plan) -> Any:
    """What runs a plan."""
    if p.target.on_host:
        return load(plan, threads_of(p.threads), p.target.compiler)
    if p.target.devices:
        from symc.runtime.cuda.ranks import RanksProgram, group
        from symc.splitting import split_of

        return RanksProgram(plan, group(p.target.devices), p.target.precision, split_of(p.source, p.target).dims)
    from symc.runtime.cuda.devices import context
    from symc.runtime.cuda.program import CudaProgram

    return CudaProgram(plan, context(p.target.device), p.target.precision)


def _lanes(p: Prepared) -> int:
    """How many streams a plan may use."""
    return 1 if p.target.on_host else LANES


def _plan(p: Prepared, donated: frozenset[int], budget: Budget | None) -> Plan:
    if budget is None:
        return make_plan(p.final, donated, lanes=_lanes(p))
    from symc.codegen.budget import fit

    smaller, plan = fit(p.final, donated, budget)
    if smaller is not p.final:
        p.whole, p.final = p.final, smaller
        p.stages = {**p.stages, "max_bytes": smaller}
    return plan


class NanGuardProgram(ReferenceProgram):
    """Runs op by op and stops at the first one that makes a nan or an infinity out of finite numbers, in loops too."""

    def run(
        self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], out: Any = None, cells: Sequence[Any] = (), *,
        observe: Any = None, within: Any = None,
    ) -> list[np.ndarray]:
        for i, a in zip(self.function.inputs, arrays, strict=True):
            if not _finite(a):
                raise NonFiniteError(
                    f"nan_guard: the input {i.name} holds {_what(a)}", values=[(f"%{i.name}", i.type, i.loc)]
                )

        def look(v: Value, result: Any, operands: list[Any]) -> None:
            self._look(v, result, operands, self.function.hints)

        return super().run(arrays, sizes, out, cells, observe=look, within=self._look)

    def _look(self, v: Value, result: Any, operands: list[Any], hints: Hints | None) -> None:
        results = result if isinstance(result, tuple | list) else (result,)
        for r in results:
            if _finite(r) or (v.op.name in ("constant", "broadcast") and not any(map(_finite, operands))):
                continue
            if not all(_finite(a) for a in operands):
                continue  # it was said to be so on purpose: a constant, or a choice that `where` undoes
            rows = [
                (f"operand {k}, in {_range(a)}", o.type, None)
                for k, (o, a) in enumerate(zip(v.operands, operands, strict=True))
            ]
            if v.op.name == "constant":
                continue
            raise NonFiniteError(
                f"nan_guard: {v.op.name} gives {_what(r)}", values=rows,
                where=location.in_order((hints or {}).get(v, ()))
            )


def _finite(a: Any) -> bool:
    a = np.asarray(a) if not isinstance(a, tuple | list) else np.zeros(())
    return a.dtype.kind not in "fc" or bool(np.isfinite(a).all())


def _what(a: Any) -> str:
    a = np.asarray(a)
    bad = np.argwhere(~np.isfinite(a))[0]
    number = a[tuple(bad)]
    return f"{number}" + (f" at index {tuple(map(int, bad))}" if a.ndim else "")


def _range(a: Any) -> str:
    a = np.asarray(a)
    if not a.size or a.dtype.kind in "bc":
        return "no numbers" if not a.size else "..."
    return f"[{a.min():.6g}, {a.max():.6g}]"
