"""A function through plan and kernels, with what must hold of every call checked."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.codegen.kernel.names import is_kernel, kernel_name
from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.planner import make_plan
from symc.driver.backend import Settings
from symc.driver.backends import CPU
from symc.errors import PlanError
from symc.ir.function import Function
from symc.ir.ops.effect import quiet
from symc.opt import optimize
from symc.tools.debugging.observe import sizes_of

#: Makes any function ready for the backend, with as few changes as possible.
LOWERING = "inline,open_blocks,decompose,check_indices,fuse"

#: The kernels of the CPU, by one thread.
ON_CPU = Settings(CPU, threads=1)


def lowered(f: Function) -> Function:
    """``f`` with what the backend needs done, and nothing else."""
    return optimize(f, LOWERING).function


class Native:
    """A lowered function, planned, proved and loaded."""

    #: What makes the arrays of a run from those that are given.
    copied = staticmethod(functools.partial(np.array, order="C"))

    def __init__(self, f: Function, donated: frozenset[int] = frozenset(), reuse: bool = True,
                 settings: Settings = ON_CPU):
        self.function, self.donated = f, donated | frozenset(f.updates)
        self.plan = make_plan(f, self.donated, reuse=reuse)
        check_plan(self.plan)
        self.program: Any = settings.backend.load(self.plan, f, settings)
        for step in getattr(self.program, "python_steps", ()):
            if is_kernel(step.value):
                raise PlanError(f"Python runs what {kernel_name(step.value)} is for: it could not be written")

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Results on copies of the arrays. Raises PlanError when a call breaks what it promises about memory."""
        given = [self.copied(a) for a in arrays]
        with quiet():
            results = self.program.run(given, sizes_of(self.function, arrays))
        for k, (a, old) in enumerate(zip(given, arrays, strict=True)):
            if k not in self.donated and a.tobytes() != np.asarray(old).tobytes():
                raise PlanError(f"the call writes into input {self.function.inputs[k].name}")
        for k, r in enumerate(results):
            others = [*results[:k], *[a for j, a in enumerate(given) if j not in self.donated]]
            if any(np.may_share_memory(r, a) for a in others if a.size and r.size):
                raise PlanError(f"result {k} lies in the memory of another result or of an input")
        return [np.array(r) for r in results]


@functools.cache
def _emulated() -> Any:
    """A checked emulated device for all functions."""
    from symc.runtime.cuda.devices import Context
    from symc.runtime.emulator import EmulatedDevice

    return Context(EmulatedDevice(0, True))


class OnDevice:
    """A function through a device's plan and kernels, on an emulated device that looks at every access. Raises
    DeviceError for what no device runs."""

    def __init__(self, f: Function, lanes: int = 4):
        from symc.runtime.cuda.program import CudaProgram

        self.function = f
        plan = make_plan(f, frozenset(f.updates), lanes=lanes)
        check_plan(plan)
        self.program = CudaProgram(plan, _emulated())

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Results on the host."""
        given = [np.array(a, order="C") for a in arrays]
        return [r.numpy() for r in self.program.run(given, sizes_of(self.function, arrays))]


def run_native(f: Function, arrays: Sequence[np.ndarray], donated: frozenset[int] = frozenset(),
               reuse: bool = True, settings: Settings = ON_CPU) -> list[np.ndarray]:
    """The results of a lowered function by the backend."""
    return Native(f, donated, reuse, settings).run(arrays)
