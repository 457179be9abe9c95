"""Running a plan on the CPU: kernels and BLAS by pointer, everything else by its reference.

A plan is lowered once, to code for the native interpreter, which frames run.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from symc.codegen.kernel.names import kernel_name
from symc.codegen.kernel.source import Form, kernel_form_of, kernel_source
from symc.codegen.language.syntax import Unsupported
from symc.errors import ShapeError
from symc.ir.function import mentioned_sizes
from symc.ir.location import Loc
from symc.ir.op import in_python, is_builtin
from symc.ir.phases import current, phase, recording
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass, replace
from symc.ir.requires import Requirement, requirements
from symc.ir.size_values import evaluate, names
from symc.ir.traverse import every_value
from symc.ir.value import Region, Value
from symc.runtime.cpu.calls import ReferenceStep
from symc.runtime.cpu.frame import TimedFrame
from symc.runtime.cpu.frames import Frames, Sizes
from symc.runtime.cpu.kernels import compile_kernel
from symc.runtime.cpu.lower import lower
from symc.runtime.cpu.lowered import Lowered
from symc.runtime.cpu.lowering import Launch


@dataclass(frozen=True)
class KernelRecord:
    """Record of one kernel for users: its name, source, how many steps launch it, the lines it computes, and which
    compiler made it ("llvm", "numba", "cuda")."""

    name: str
    source: str
    launches: int
    lines: tuple[str, ...]
    backend: str


class Program(Frames):
    """A loaded plan. ``run`` may be called from several threads."""

    def __init__(self, plan: Plan, threads: int = 1, backend: str = "llvm", flush: bool = False):
        super().__init__(threads, flush)
        self.plan, self._record = plan, current()
        self.launches: dict[Form, Launch] = {}  # for the launch steps that the backend can express
        tried: set[Form] = set()
        self.required: dict[Region, list[Requirement]] = {}
        names: dict[tuple, str] = {}
        for _, step in _launch_steps(plan):
            form = kernel_form_of(step)
            if form not in tried:
                tried.add(form)
                self.required[form[0]] = requirements(form[0])
                launch = _build(step, form, names, backend)
                if launch is not None:
                    self.launches[form] = launch
        _warn(plan)

    # -- what it holds

    @property
    def source(self) -> str:
        """The text of every distinct kernel."""
        distinct = {launch.kernel.name: launch.kernel.source.text for launch in self.launches.values()}
        return "\n".join(distinct.values())

    @property
    def kernels(self) -> list[KernelRecord]:
        """One record a distinct kernel."""
        found: dict[str, list] = {}
        for plan, step in _launch_steps(self.plan):
            launch = self.launches.get(kernel_form_of(step))
            if launch is not None:
                row = found.setdefault(launch.kernel.name, [launch.kernel, 0, {}])
                row[1] += 1
                row[2].update(dict.fromkeys(map(str, plan.function.locations(step.value))))
        return [KernelRecord(n, k.source.text, count, tuple(lines), k.backend)
                for n, (k, count, lines) in found.items()]

    @property
    def python_steps(self) -> list[ReferenceStep]:
        """The steps that call Python, in loops and branches too; not those that run where native code has failed."""
        return [s for s in self.code.steps if isinstance(s, ReferenceStep) and not s.rare]

    # -- running

    def lower(self) -> Lowered:
        with recording(self._record):  # of the function that was compiled
            return lower(self.plan, self.launches, self.required)[0]

    def refuse(self, sizes: Sizes) -> None:
        for refusal in self.code.refusals:
            refusal.raise_unless(sizes)
        for plan, _ in every_step(self.plan):
            for t in plan.types.values():
                evaluate(t.nbytes, sizes)
            evaluate(plan.arena, sizes)
        for s in sorted(mentioned_sizes(every_value(self.plan.function.body)), key=str):
            if names(s) <= sizes.keys():
                evaluate(s, sizes)
        raise ShapeError(f"{self.plan.function.name}: 64 bits do not hold what is computed of these sizes",
                         values=[(f"{name} = {n}", None, None) for name, n in sizes.items()])

    def timer(self, sizes: Sizes) -> TimedFrame:
        """Frame that runs the plan and times each step of it, and of the bodies in it."""
        lowered, laps = lower(self.plan, self.launches, self.required, timed=True)
        assert laps is not None
        return TimedFrame(lowered, laps, self.threads, self.state)


def load(plan: Plan, threads: int = 1, backend: str = "llvm", flush: bool = False) -> Program:
    """Compile what the plan launches and make it callable. ``threads``: how many a call may use; ``backend``: which
    compiler makes its kernels; ``flush``: whether denormal numbers are zeros during a call."""
    return Program(plan, threads, backend, flush)


def every_step(plan: Plan) -> Iterator[tuple[Plan, Step]]:
    """All steps, those of loops and branches too, with the plan they are of."""
    pending = [plan]
    while pending:
        plan = pending.pop()
        for step in plan.steps:
            yield plan, step
            pending.extend(step.bodies)


def in_loops(step: Step) -> Iterator[tuple[Value, tuple[Loc, ...]]]:
    """Values that run in Python in the bodies of a loop or branch, and the lines of each."""
    for body in step.bodies:
        for plan, inner in every_step(body):
            if in_python(inner.value):
                yield inner.value, tuple(plan.function.locations(inner.value))


_warned: set[str] = set()


def _warn(plan: Plan) -> None:
    """Warn of an op of ours that no native code computes, once, where it runs in a loop or branch."""
    for v, lines in (x for s in plan.steps for x in in_loops(s)):
        name = v.op.name
        if name not in _warned and is_builtin(v.op) and "effect" not in v.op.traits:
            _warned.add(name)
            where = f" ({', '.join(map(str, lines))})" if lines else ""
            warnings.warn(f"{plan.function.name}: {name} runs in Python, in every step of a loop{where}", stacklevel=2)


def _launch_steps(plan: Plan) -> Iterator[tuple[Plan, Step]]:
    return ((p, s) for p, s in every_step(plan) if s.kind == "launch")


@phase("kernel", lambda step, *_: kernel_name(step.value))
def _build(step: Step, form: Form, names: dict[tuple, str], backend: str) -> Launch | None:
    """Launch of a step, or None where the backend has no rendering for it. ``names``: kernels by what they do."""
    try:
        source = kernel_source(form)
    except Unsupported:
        return None
    readable = kernel_name(step.value) + "_in_place" * bool(form[1])
    name = names.setdefault((source.text, source.arrays), readable)
    source = replace(source, text=source.text.replace("def kernel(", f"def {name}(", 1))
    return Launch(compile_kernel(source, name, backend), source)
