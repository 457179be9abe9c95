"""Running a plan on the CPU: kernels and BLAS by pointer, everything else by its reference.

A program prepares, for each combination of sizes it meets, frames: an arena and code for the native interpreter. A call
takes a frame and runs it; frames are pooled, so that concurrent calls never share memory and repeated calls allocate
only results.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from symc.codegen.cpu.render import Unsupported
from symc.codegen.kernel_source import Form, kernel_form_of, kernel_source
from symc.codegen.names import kernel_name
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass, replace
from symc.ir.requires import Requirement, requirements
from symc.ir.value import Region
from symc.runtime.frame import Frame, TimedFrame
from symc.runtime.kernels import compile_kernel
from symc.runtime.lower import Launch, lower
from symc.runtime.lowered import Lowered

#: For how many combinations of sizes a program keeps prepared frames.
MOST_SIZES = 64
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class KernelRecord:
    """What a user sees of one kernel: its name, source, how many steps launch it, and the lines it computes."""

    name: str
    source: str
    launches: int
    lines: tuple[str, ...]


class Program:
    """A loaded plan. ``run`` may be called from several threads."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.launches: dict[Form, Launch] = {}  # for the launch steps that the backend can express
        tried: set[Form] = set()
        self.required: dict[Region, list[Requirement]] = {}
        names: dict[tuple, str] = {}
        for _, step in _launch_steps(plan):
            form = kernel_form_of(step)
            if form not in tried:
                tried.add(form)
                self.required[form[0]] = requirements(form[0])
                launch = _build(step, form, names)
                if launch is not None:
                    self.launches[form] = launch
        self._lowered: dict[tuple, Lowered] = {}
        self._frames: dict[tuple, list[Frame]] = {}
        self._lock = threading.Lock()

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
        return [KernelRecord(n, k.source.text, count, tuple(lines)) for n, (k, count, lines) in found.items()]

    # -- running

    def run(
        self, arrays: Sequence[np.ndarray], sizes: Sizes, out: Sequence[np.ndarray | None] | None = None
    ) -> list[np.ndarray]:
        """Results (outputs, then the arrays that hold updated states) for contiguous aligned arrays of the input types.

        ``out[k]``: an array to write output k into. States are written in place where the plan says so.
        """
        pool, frame = self._taken(sizes)
        try:
            return frame.run(arrays, out)
        except KeyboardInterrupt:
            pool = []  # where it was is not known: the frame is not used again
            raise
        finally:
            pool.append(frame)

    def lend(self, sizes: Sizes) -> Frame:
        """A frame that no run will use: whoever has it may."""
        return self._taken(sizes)[1]

    def _taken(self, sizes: Sizes) -> tuple[list[Frame], Frame]:
        """A frame, and the pool to put it back into."""
        key = tuple(sizes.values())
        pool = self._frames.get(key)
        if pool is None:
            pool = self._new_pool(key, sizes)
        try:
            return pool, pool.pop()
        except IndexError:  # the first call, or every frame is in use by other threads
            return pool, Frame(self._lowered[key])

    def _new_pool(self, key: tuple, sizes: Sizes) -> list[Frame]:
        with self._lock:
            if key in self._frames:
                return self._frames[key]
            if len(self._frames) >= MOST_SIZES:  # each holds an arena
                self._frames.clear()
                self._lowered.clear()
            self._lowered[key], _ = lower(self.plan, self.launches, self.required, sizes)
            self._frames[key] = []
            return self._frames[key]

    def timer(self, sizes: Sizes) -> TimedFrame:
        """What runs the plan and times each step of it, and of the bodies in it."""
        lowered, laps = lower(self.plan, self.launches, self.required, sizes, timed=True)
        assert laps is not None
        return TimedFrame(lowered, laps)


def load(plan: Plan) -> Program:
    """Compile what the plan launches and make it callable."""
    return Program(plan)


def _launch_steps(plan: Plan) -> Iterator[tuple[Plan, Step]]:
    """All launch steps, those of loops and branches too, with the plan they are of."""
    pending = [plan]
    while pending:
        plan = pending.pop()
        for step in plan.steps:
            if step.kind == "launch":
                yield plan, step
            pending.extend(step.bodies)


def _build(step: Step, form: Form, names: dict[tuple, str]) -> Launch | None:
    """How to launch a step, or None where the backend has no rendering for it. ``names``: kernels by what they do."""
    try:
        source = kernel_source(form)
    except Unsupported:
        return None
    readable = kernel_name(step.value) + "_in_place" * bool(form[1])
    name = names.setdefault((source.text, source.operands, source.results), readable)
    source = replace(source, text=source.text.replace("def kernel(", f"def {name}(", 1))
    return Launch(compile_kernel(source, name), source.sizes)
