"""What can be seen of a compiled function: its plan, source and memory, what the optimizer did, what it computed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.callsite import caller
from symc.errors import InputError, PipelineError, PlanError, SymcError, did_you_mean
from symc.ir import location
from symc.ir.function import Function, Hints, bound_names
from symc.ir.phases import Record
from symc.ir.plan import Plan
from symc.ir.traverse import postorder
from symc.ir.value import Value
from symc.modes import BY_NUMPY
from symc.runtime.commit import snapshot

if TYPE_CHECKING:
    from symc.accuracy import AccuracyReport
    from symc.opt import Optimized
    from symc.prepared import Prepared
    from symc.profiling.compiling import CompileProfile
    from symc.profiling.report import Profile
    from symc.target import Target


class Views:
    """The methods of ``CompiledFunction`` that look and do not change anything."""

    _prepared: Prepared
    _built: Any
    _signature: Any
    _cells: tuple
    _options: dict[str, Any]
    _record: Record
    _target: Target

    # --- what will run ------------------------------------------------------------------------------------------------

    def _planned(self) -> Plan:
        if self._prepared.plan is None:
            mode = self._options["mode"]
            how = f"mode={mode!r}" if mode in BY_NUMPY else "backend='numpy'"
            raise PlanError(f"{self._signature.function} was compiled with {how}, which has no plan",
                            where=[caller()], help="kernels have one: mode='default' with backend='llvm' or 'numba'")
        return self._prepared.plan

    @property
    def plan(self) -> str:
        """The plan's text: buffers, steps and their order."""
        from symc.codegen.plan_text import print_plan

        plans = [self._prepared.first, self._planned()]  # what is kept between calls comes first
        return "\n".join(print_plan(p) for p in plans if p is not None)

    @property
    def source(self) -> str:
        """The generated source of every kernel; in reference mode the function, which runs op by op."""
        return self._prepared.program.source

    @property
    def kernels(self) -> Any:
        """One record per kernel."""
        return self._prepared.program.kernels

    @property
    def calls(self) -> dict[str, int]:
        """How often the plan calls each library routine: ``{"gemm": 1}``. What is in a loop counts once."""
        from symc.codegen.calls import library_calls

        return library_calls(self._planned())

    @property
    def compile_count(self) -> int:
        """How many kernels had to be compiled for this function: those that no other function had before."""
        return self._prepared.compiled

    @property
    def compile_profile(self) -> CompileProfile:
        """What compiling took, by phase, pass and kernel; prints as a table. What is compiled for the sizes of a call
        is in it after that call."""
        from symc.profiling.compiling import CompileProfile

        return CompileProfile(self._record.phases)

    def memory(self, /, *args: Any, **sizes: int) -> int:
        """Peak bytes of a call, before anything runs; ``.naive`` and ``.lower_bound`` beside it.

        By the names of the sizes, or for the arguments of a call: ``f.memory(n=1000)``, ``f.memory(x)``.
        """
        from symc.codegen.plan import memory

        plan = self._planned()
        if args:
            sizes = self._bound(args, {})[1] | sizes
        known = bound_names(i.declared or i.type for i in plan.function.inputs)
        unknown = [n for n in sizes if n not in known]
        if unknown:
            raise InputError(
                f"{self._signature.function} has no size {unknown[0]!r}",
                where=[caller()],
                help=did_you_mean(unknown[0], known),
            )
        try:
            return memory(plan, sizes)
        except KeyError as e:
            raise InputError(
                f"the size {e.args[0]} is needed",
                where=[caller()],
                help=f"sizes: {', '.join(known)}; or give arguments of a call: f.memory(x)",
            ) from None

    # --- what was done ------------------------------------------------------------------------------------------------

    def _optimized(self) -> Optimized:
        """What the optimizer did; done again where it is not at hand (a loaded function, a mode without passes)."""
        from symc.opt import DEFAULT, optimize

        if self._prepared.optimized is None:
            self._prepared.optimized = optimize(self._prepared.source, self._options["pipeline"] or DEFAULT)
        return self._prepared.optimized

    def explain(self, v: Any = None) -> str:
        """What the optimizer did: every rule and pass that changed something, with the user's lines.

        With ``v`` what became of one value, and why: a tensor, the index or name of an output, the name of a state, or
        a line such as "model.py:12". Each step shows the value before and after, and the law behind it.
        """
        from symc.explaining import explain

        try:
            return explain(self._built, self._prepared, self._optimized(), v)
        except SymcError as e:
            e.attach((), (caller(),))
            raise

    def diff(self, first: str, second: str | None = None) -> Any:
        """What is different between two stages, such as ``f.diff("stabilize", "simplify")``; by default the last one
        is the second. ``sc.diff(f, g)`` compares two functions.
        """
        from symc.debugging.diff import diff

        stages = self._prepared.stages
        for name in (first, second):
            if name is not None and name not in stages:
                raise PipelineError(f"{self._signature.function} has no stage {name!r}", where=[caller()],
                                    help=did_you_mean(name, stages))
        return diff(stages[first], self._prepared.final if second is None else stages[second])

    def why_not(self, name: str) -> str:
        """Why a rule, a family of rules, a pass, or an op such as "gemm" did not happen: what came nearest, and the
        condition that failed."""
        from symc.opt import why_not

        try:
            return why_not(self._optimized(), name)
        except SymcError as e:
            e.attach((), (caller(),))
            raise

    def accuracy(self) -> AccuracyReport:
        """How far the outputs are from the exact ones on sampled inputs, as written and as optimized, in ulps."""
        from symc.accuracy import accuracy_report

        self._check_one_device("accuracy")
        f = self._built.function
        outputs = [f"out{path}" for path in self._built.outputs.paths()]
        return accuracy_report(f, self._run_on_host, outputs)

    def _run_on_host(self, *args: Any) -> list[np.ndarray]:
        """As the program's ``run``, with results on the host."""
        found = self._prepared.program.run(*args)
        return [a if isinstance(a, np.ndarray) else a.numpy() for a in found]

    # --- what it computes ---------------------------------------------------------------------------------------------

    def trace(self, /, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        """Every named intermediate of one call, computed by the reference; state is read and not replaced.

        Keys are the names on the left of the assignments on the user's lines, or ``file:line`` where there is none;
        of several values made on a line the last one counts. What loops and branches compute is stacked, one entry for
        each time that the line ran (the last of them if their shapes differ).
        """
        from symc.runtime.reference_program import ReferenceProgram

        self._check_one_device("trace")
        arrays, sizes = self._bound(args, kwargs)
        f = self._prepared.source
        found: dict[Value, np.ndarray] = dict(zip(f.params, arrays, strict=True))

        def keep(v: Value, result: Any, operands: list[Any]) -> None:
            if not isinstance(result, tuple | list):
                found[v] = np.array(result)

        inner = {id(hints): _names(postorder(region.results), hints) for region, hints in f.inside.items()}
        runs: dict[tuple[str, location.Loc], list[np.ndarray]] = {
            name: [] for names in inner.values() for own in names.values() for name in own}

        def keep_within(v: Value, result: Any, operands: list[Any], hints: Hints | None) -> None:
            for name in inner.get(id(hints), {}).get(v, ()) if not isinstance(result, tuple | list) else ():
                runs[name].append(np.array(result))

        ReferenceProgram(f).run(arrays, sizes, observe=keep, within=keep_within)
        out = {i.name: found[p] for i, p in zip(f.inputs, f.params, strict=True)}
        kept = {name: found[v] for v, names in _names(f.values(), f.hints).items() if v in found
                for name in names if name not in runs}
        kept |= {n: np.stack(a) if len({x.shape for x in a}) == 1 else a[-1] for n, a in runs.items() if a}
        for (name, loc), array in kept.items():
            out[name if name not in out else f"{name} ({loc})"] = array
        return out

    def _check_one_device(self, what: str) -> None:
        if self._target.devices:
            raise InputError(f"{what}: {self._signature.function} runs on {', '.join(self._target.devices)}",
                             where=[caller()], help="compile it for one device, or the CPU")

    def _bound(self, args: tuple, kwargs: dict) -> tuple[list[np.ndarray], dict[str, int]]:
        """Copies of the arrays a call would read, and its sizes."""

        try:
            arrays = [*[a.copy() for a in self._signature.arrays(args, kwargs)], *snapshot(self._cells)]
            return arrays, self._signature.sizes(arrays)
        except SymcError as e:
            e.attach((), (caller(),))
            raise

    def profile(self, /, *args: Any, repeat: int = 5, **kwargs: Any) -> Profile:
        """Time, bytes and operations of every step (kernel, library call or op) of a call, with its user lines; of
        steps inside loops those of all their runs. It prints as a table that compares them with what this machine can
        do.

        The best of ``repeat`` runs on copies of the arguments; state stays as it is. ``.by_line()`` divides the time
        among the user's lines, ``.to_chrome(path)`` writes a trace for a browser, ``.to_json()`` is all of it.
        """
        from symc.profiling.lines import Shares
        from symc.profiling.measure import profile

        arrays, sizes = self._bound(args, kwargs)
        program = self._prepared.program
        shares = Shares(None if self._prepared.plan is None else self._optimized())
        return profile(self._signature.function, program, arrays, sizes, max(1, repeat), shares, self._record.phases)

    # --- files and pictures -------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the function as data: IR text, constants, state, options. ``sc.load(path)`` reads it."""
        from symc.save import save

        save(self, path)

    def __reduce__(self) -> Any:
        from symc.save import reduce

        return reduce(self)

    def to_networkx(self, stage: str | None = None) -> Any:
        """A ``networkx`` graph of the final function (or of a stage): one node a value, edges from operand to user."""
        from symc.draw import to_networkx

        return to_networkx(self._stage(stage))

    def to_dot(self, stage: str | None = None) -> str:
        """The graph in Graphviz's language; nothing needs to be installed to write it."""
        from symc.draw import to_dot

        return to_dot(self._stage(stage))

    def to_html(self, path: Any) -> None:
        """One HTML file that needs nothing else: every stage as text, with what changed, and its graph."""
        from symc.draw import to_html

        to_html(self, path)

    def _stage(self, stage: str | None) -> Function:
        return self._prepared.final if stage is None else self._prepared.stages[stage]


_ASSIGNED = re.compile(r"^([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)")


def _names(values: Sequence[Value], hints: Hints) -> dict[Value, list[tuple[str, location.Loc]]]:
    """Names for values, of the user's lines (those of which a value is the last), and where they are."""
    last: dict[location.Loc, Value] = {}
    for v in values:
        if v.op.name not in ("param", "constant", "get"):
            for loc in location.in_order(hints.get(v, ())):
                last[loc] = v
    out: dict[Value, list[tuple[str, location.Loc]]] = {}
    for loc, v in last.items():
        match = _ASSIGNED.match(loc.text)
        out.setdefault(v, []).append((match[1] if match and not loc.role else str(loc), loc))
    return out
