"""Emits the steps of plans as device operations: launches, copies, waits of streams, and the memory that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from symc.codegen.cuda.source import CudaSource, Entry
from symc.codegen.cuda.user import user_launch
from symc.errors import ConvergenceError
from symc.ir.dim import Size
from symc.ir.ops.implicit import converged
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass, field, replace
from symc.ir.traverse import every_value
from symc.ir.value import Value
from symc.runtime.cpu.executor import ARENA, Address
from symc.runtime.cpu.lower import PlanLowering
from symc.runtime.cpu.lowering import Slots
from symc.runtime.cuda import actions, products
from symc.runtime.cuda.actions import Action, Failure, Origin, Touched
from symc.runtime.cuda.device import Kernel

#: The instruction that runs an action: one operand, its number.
DO = 1000
#: What every array that a kernel is given starts at a multiple of.
VECTOR = 16
#: How many launches of a plan have a flag of their own that says whether they failed.
FLAGS = 1024
#: Scratch memory starts at multiples of so many bytes.
_PART = 256


class Loaded(Protocol):
    """The variants of a kernel on a device."""

    def at(self, number: Any) -> tuple[CudaSource, Mapping[str, Kernel | None]]:
        """The variant for concrete sizes. None for its entries: they will be loaded, and it will be asked for again."""


@dataclass
class DeviceLowering(PlanLowering):
    """Emits actions. ``interface``: the slots of arguments and results, which start where vectors do. ``top``: how much
    of the arena is taken, ``most``: at most; ``several_lanes``: whether steps may run at once; ``own``: then the lane
    of what takes all ranks."""

    launches: Mapping[Any, Any]
    shared = False
    interface: range = range(0)
    precision: str = "highest"
    actions: list[Action] = field(default_factory=list)
    lane: int = 0
    several_lanes: bool = False
    top: int = 0
    most: int = 0
    events: int = 0
    own: int | None = None
    failures: list[Failure] = field(default_factory=list)
    flags: np.ndarray = field(default_factory=lambda: np.zeros(FLAGS, np.int32))
    fixed: bool = True
    _nothing: int = -1

    # -- pieces

    def do(self, action: Action) -> None:
        """Emit an action."""
        self.actions.append(action)
        self.code.emit(DO, len(self.actions) - 1)

    def memory(self, nbytes: int) -> int:
        """The slot of scratch memory of a step. Steps share it where they run one after the other."""
        found = self.top
        self.top += -(-nbytes // _PART) * _PART
        return self.code.at(Address(ARENA.space, found))

    def call(self, step: Any) -> None:
        super().call(step)
        self.fixed = False

    def event(self, lane: int) -> int:
        """An event that happens when a lane is done with what it has been given."""
        self.do(actions.RecordAction(self.events, lane))
        self.events += 1
        return self.events - 1

    # -- steps

    def whole(self, plan: Plan, slots: Slots) -> None:
        """All steps of a program, on their lanes."""
        lanes = _Lanes(self, plan)
        lanes.fork()
        for at, step in enumerate(plan.steps):
            lanes.enter(at, step)
            self.timed(plan, step, slots)
            lanes.leave(at)
        lanes.join()

    def step(self, plan: Plan, step: Step, slots: Slots) -> None:
        start = self.top
        self.fixed = self.fixed and not (step.kind == "control" and step.value.op.name in ("while", "cond"))
        super().step(plan, step, slots)
        if not self.several_lanes:
            self.most, self.top = max(self.most, self.top), start

    def copy(self, to: int, source: int, nbytes: Size) -> None:
        assert isinstance(nbytes, int)
        self.do(actions.CopyAction(to, source, nbytes, self.lane))

    def _launch(self, plan: Plan, v: Value, launch: Any, reads: Sequence[int], writes: Sequence[int]) -> None:
        types = v.types
        operands = zip(reads, self._nbytes([o.type for o in v.operands]), strict=True)
        self.kernel(plan, v, launch, [*operands], [*zip(writes, self._nbytes(types), strict=True)])

    def kernel(self, plan: Plan, v: Value, launch: Loaded, operands: Sequence[Touched], results: Sequence[Touched],
               failure: Failure | None = None) -> None:
        """The launches of a kernel. ``v``: whose lines are named where it fails; ``failure``: what is said then."""
        source, kernels = launch.at(self.number)
        operands = [(s, n) if n else self.nothing() for s, n in operands]
        aligned = self._aligned(operands, results)
        scratch = [(self.memory(n), n) for n in map(self.number, source.scratch)]
        failed = self.flag(failure or failure_of(v, tuple(plan.function.locations(v)))) if source.fails else None
        of = Origin(launch, source, tuple(map(str, plan.function.locations(v))))
        for k, entry in enumerate(source.entries):
            self._entry(of, k, entry, kernels[entry.name], [aligned.get(s, s) for s, _ in operands],
                        [aligned.get(s, s) for s, _ in results], scratch, failed, operands, results)
        self._back(aligned, results)

    def _entry(self, of: Origin, position: int, entry: Entry, kernel: Kernel | None, reads: Sequence[int],
               writes: Sequence[int], scratch: Sequence[Touched], failed: int | None, operands: Sequence[Touched],
               results: Sequence[Touched]) -> None:
        grid = tuple(map(self.number, entry.grid))
        if not all(grid):
            return
        cells = []
        for a in entry.arguments:
            if a.kind == "size":
                cells.append(self.code.slot(self.number(a.size)))
            elif a.kind == "failed":
                assert failed is not None
                cells.append(failed)
            else:
                cells.append({"operand": reads, "result": writes, "scratch": [s for s, _ in scratch]}[a.kind][a.index])
        flag = [(failed, 4)] if failed is not None else []
        read = [(s, n) for s, (_, n) in zip(reads, operands)]
        written = [(s, n) for s, (_, n) in zip(writes, results)]
        own = (*scratch, *written) if position else ()  # the first entry does not know what is there
        self.do(actions.LaunchAction(kernel, grid, entry.block, self.number(entry.shared), tuple(cells),  # type: ignore[arg-type]
                             (*read, *own, *flag), (*written, *scratch, *flag), self.lane, of, position))

    def nothing(self) -> Touched:
        """Stand-in for an array without elements: kernels may read its first one, of which nothing comes."""
        if self._nothing < 0:
            self._nothing = self.code.keep(np.zeros(VECTOR, np.uint8))
        return self._nothing, VECTOR

    def _aligned(self, operands: Sequence[Touched], results: Sequence[Touched]) -> dict[int, int]:
        """Rows of loops may start anywhere, unless all of them are whole vectors: kernels are given copies of those."""
        moving = {s: n for s, n in (*operands, *results)
                  if n % VECTOR and self.code.address_of(s) is None and s not in self.interface}
        found = {s: self.memory(n) for s, n in moving.items()}
        for s, n in operands:
            if s in found:
                self.do(actions.CopyAction(found[s], s, n, self.lane))
        return found

    def flag(self, failure: Failure) -> int:
        """The slot of the flag of a launch with checks."""
        k = min(len(self.failures), FLAGS - 1)
        if len(self.failures) < FLAGS:
            self.failures.append(failure)
        return self.offset(self.code.keep(self.flags), 4 * k)

    def reduce(self, v: Value, source: int, to: int) -> None:
        """Emits a reduction over all ranks: in one stream, so that all ranks come to it in the same order, whatever
        else there is to do beside it."""
        lane = self.lane if self.own is None else self.own
        if lane != self.lane:
            self.do(actions.WaitAction(self.event(self.lane), lane))
        self.do(actions.CollectiveAction(to, source, self.number(v.type.size), v.dtype, v.attrs["kind"], lane))
        if lane != self.lane:
            self.do(actions.WaitAction(self.event(lane), self.lane))

    def user(self, v: Value, load: Any, reads: Sequence[int], writes: Sequence[int]) -> None:
        """A kernel that the user wrote. ``load``: gives its entry, loaded."""
        types = v.types
        operands = [*zip(reads, self._nbytes([o.type for o in v.operands]), strict=True)]
        results = [*zip(writes, self._nbytes(types), strict=True)]
        launch = user_launch(v, self.number)
        aligned = self._aligned(operands, results)
        read, written = ([(aligned.get(s, s), n) for s, n in part] for part in (operands, results))
        if all(launch.grid):
            cells = [*(s for s, _ in (*read, *written)), *map(self.code.slot, launch.numbers)]
            kernel = load(launch, len(read) + len(written))
            self.do(actions.LaunchAction(kernel, launch.grid, launch.block, launch.shared, tuple(cells), tuple(read),
                                         tuple(written), self.lane))
        self._back(aligned, results)

    def _back(self, aligned: Mapping[int, int], results: Sequence[Touched]) -> None:
        """Copy results that were written where vectors start to where they belong."""
        for s, n in results:
            if s in aligned:
                self.do(actions.CopyAction(s, aligned[s], n, self.lane))

    def operation(self, plan: Plan, v: Value, x: products.Operation, places: Mapping[int, int]) -> None:
        if isinstance(x, actions.ProductAction):
            self.do(replace(x, a=places[x.a], b=places[x.b], c=places[x.c], lane=self.lane))
        elif isinstance(x, actions.CopyAction):
            self.do(replace(x, to=places[x.to], source=places[x.source], lane=self.lane))
        elif isinstance(x, actions.FillAction):
            self.do(replace(x, to=places[x.to], lane=self.lane))
        else:
            region = x.form[0]
            operands = zip([places[k] for k in x.operands], self._nbytes(region.params), strict=True)
            self.kernel(plan, v, self.launches[x.form], [*operands],
                         [(places[x.result], self.number(region.results[0].type.nbytes))])  # type: ignore[union-attr]

    def _nbytes(self, types: Sequence[Any]) -> list[int]:
        return [self.number(t.nbytes) for t in types]


class _Lanes:
    """Tracks where the lanes of a plan leave the first one, wait for each other, and come back."""

    def __init__(self, lowering: DeviceLowering, plan: Plan):
        self.lowering, self.steps = lowering, plan.steps
        self.awaited = {w for s in plan.steps for w in s.waits}
        self.others = sorted({s.lane for s in plan.steps} - {0})
        self.events: dict[int, int] = {}

    def fork(self) -> None:
        if self.others:
            start = self.lowering.event(0)
            for lane in self.others:
                self.lowering.do(actions.WaitAction(start, lane))

    def enter(self, at: int, step: Step) -> None:
        self.lowering.lane = step.lane
        for w in step.waits:
            self.lowering.do(actions.WaitAction(self.events[w], step.lane))

    def leave(self, at: int) -> None:
        if at in self.awaited:
            self.events[at] = self.lowering.event(self.steps[at].lane)

    def join(self) -> None:
        for lane in self.others:
            self.lowering.do(actions.WaitAction(self.lowering.event(lane), 0))
        self.lowering.lane = 0


def failure_of(v: Value, lines: tuple) -> Failure:
    """The error of a kernel whose check has failed."""
    what = next((x.attrs["what"] for r in v.regions for x in every_value(r) if x.op is converged), None)
    if what is None:
        return Failure(lines)
    return Failure(lines, ConvergenceError, f"{what}: no answer was found", "the CPU says after how many steps")
