"""From a plan to device operations, at given sizes.

Loops, branches and the places of buffers are lowered as for the CPU (``symc.runtime.cpu.lower``); what is different is
what a step does: launches, products and copies are *actions*, which a frame binds to its memory and its streams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.cuda.sorting import is_sort, sort_form
from symc.codegen.cuda.user import has_user_kernel
from symc.ir.ops.collective import all_reduce, has_collective
from symc.ir.phases import phase
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass
from symc.ir.size_values import evaluate
from symc.ir.types import concrete_shape
from symc.runtime.cpu.executable import Template
from symc.runtime.cpu.executor import ARENA, Code
from symc.runtime.cpu.lower import interface_of
from symc.runtime.cpu.timing import Laps
from symc.runtime.cuda import checks, products, solver
from symc.runtime.cuda.actions import Action, Failure
from symc.runtime.cuda.lowering import _PART, DeviceLowering, Loaded


@dataclass(frozen=True)
class Fresh:
    """An array that a call makes. ``output``: which output it is, None for one that becomes a state's."""

    shape: tuple[int, ...]
    dtype: np.dtype
    output: int | None


@dataclass(frozen=True, eq=False)
class DeviceLowered:
    """A plan at given sizes. ``given``, ``inputs``: how many arguments there are, and with states. ``flags``: the slot
    of the ints that say which checks failed, and what to say of each.

    ``lanes``: how many streams it uses; ``events``: how many events. ``fixed``: what runs depends on no number that is
    computed, so that it can be captured.
    """

    template: Template
    sizes: Mapping[str, int]
    arena: int
    first: int
    given: int
    inputs: int
    fresh: tuple[Fresh, ...]
    returned: tuple[tuple[int, tuple[int, ...]], ...]
    updates: tuple[int, ...]
    steps: Sequence[Any]
    actions: Sequence[Action]
    flags: tuple[int, Sequence[Failure]]
    lanes: int
    events: int
    fixed: bool


class DevicePlanLowering(DeviceLowering):
    """Emits all steps of plans of a device."""

    def routine(self, plan: Plan, step: Step, reads: Sequence[int], writes: Sequence[int]) -> None:
        """A product, linear algebra, or a user's kernel. All else was refused when the program was loaded."""
        if has_user_kernel(step.value):
            return self.user(step.value, self.launches[step.value.op.name], reads, writes)
        if step.value.op is all_reduce:
            return self.reduce(step.value, reads[0], writes[0])
        if solver.is_solved(step.value):
            kernels = self.launches[solver.key(step.value)]
            return solver.lower_solver(self, plan, step.value, reads, writes, kernels)
        if is_sort(step.value):
            return self._launch(plan, step.value, self.launches[sort_form(step.value)], reads, writes)
        if checks.is_check(step.value):
            launch = self.launches.get(checks.form_of(step.value))
            return checks.lower_check(self, plan, step.value, reads, writes, launch)
        lowered = products.lower_product(step, self.number, self.precision)
        if lowered is None:
            return self._launch(plan, step.value, self.launches[products.summed_form(step.value)], reads, writes)
        scratch = self.memory(lowered.scratch) if lowered.scratch else -1
        places = {products.RESULT: writes[0], products.SCRATCH: scratch, **dict(enumerate(reads))}
        for x in lowered.operations:
            self.operation(plan, step.value, x, places)


@phase("lower", lambda plan, launches, required, sizes, precision="highest", timed=False: str(dict(sizes)))
def lower(plan: Plan, launches: Mapping[Any, Loaded], required: Mapping[Any, Any], sizes: Mapping[str, int],
          precision: str = "highest", timed: bool = False) -> tuple[DeviceLowered, Laps | None]:
    """A whole plan. ``timed``: with a lap of the clock after every step."""
    code, interface = Code(), interface_of(plan)
    first = code.slots([0] * interface.count)
    slots = {name: first + k for name, k in interface.places.items()}
    laps = Laps(code, len(plan.steps)) if timed else None
    given = range(first, first + interface.count)
    lowering = DevicePlanLowering(launches, required, sizes, code, interface=given,  # type: ignore[arg-type]
                              precision=precision, laps=laps)
    for name, buffer in plan.buffers.items():
        if buffer.kind == "constant":
            assert buffer.value is not None
            slots[name] = lowering.constant(buffer.value)
    lowering.temps(plan, slots, code.at(ARENA))
    lanes = 1 + max((s.lane for s in plan.steps), default=0)
    lowering.several_lanes = lanes > 1
    if lanes > 1 and any(map(has_collective, plan.function.values())):
        lowering.own, lanes = lanes, lanes + 1
    lowering.top = -(-evaluate(plan.arena, sizes) // _PART) * _PART
    if laps is not None:
        laps.start()
    lowering.whole(plan, slots)
    flags = (code.keep(lowering.flags), lowering.failures) if lowering.failures else (-1, [])
    fresh = tuple(Fresh(concrete_shape(t.shape, sizes), t.dtype, output) for t, output in interface.made)
    returned = tuple((k, concrete_shape(shape, sizes)) for k, shape in interface.returned)
    roles = [i.role for i in plan.function.inputs]
    found = DeviceLowered(code.template(), dict(sizes), max(lowering.top, lowering.most, 1), first, roles.count("arg"),
                          len(roles), fresh, returned, tuple(plan.function.updates), lowering.steps, lowering.actions,
                          flags, lanes, lowering.events, lowering.fixed)
    return found, laps


