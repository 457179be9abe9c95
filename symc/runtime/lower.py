"""From a plan to code of the native interpreter, at given sizes.

Every buffer is a slot of the code that holds its address, so an address that changes (an argument, a row of a loop, two
carries that are swapped) changes in one place. Loops and branches are in ``symc.runtime.lower_control``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from symc.codegen.cpu.pieces import WORTH
from symc.codegen.cpu.render import Source
from symc.codegen.kernel_source import Form, kernel_form_of
from symc.ir.dim import Size, evaluate
from symc.ir.phases import phase
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass, field
from symc.ir.reference import apply
from symc.ir.requires import Requirement
from symc.ir.types import TupleType, concrete_shape
from symc.ir.value import Region, Value
from symc.runtime.calls import Calls, CallStep, Place, ReferenceStep, Refusal
from symc.runtime.executor import ARENA, NDARRAY, Address, Code, Label, Op, Word
from symc.runtime.kernels import Kernel
from symc.runtime.lower_control import control
from symc.runtime.lowered import Fresh, Lowered
from symc.runtime.timing import Laps
from symc.runtime.work import work

Slots = dict[str, int]  # of the buffers of a plan


@dataclass(frozen=True)
class Launch:
    """How a region is launched: a kernel, and the region's own source, equal to the kernel's but for names of sizes."""

    kernel: Kernel
    source: Source


Launches = Mapping[Form, Launch]
#: Reductions in a region that have no value for no elements, each with the size that must not be 0.
Required = Mapping[Region, Sequence[Requirement]]


@dataclass
class Lowering:
    """Emits the steps of plans.

    ``laps``: where to note each step, if their times are wanted; ``depth``: in how many loops and branches we are.
    ``certain``: what is emitted now will run, so that what must fail can fail before anything has run.
    ``written``: a state has been written over, or is now; ``torn``: Python is called then, which may fail.
    ``polls``: a kernel looks for signals.
    ``constants``, ``literals``: the slots that hold the addresses of constants, and of single numbers.
    """

    launches: Launches
    required: Required
    sizes: Mapping[str, int]
    code: Code
    steps: list[CallStep] = field(default_factory=lambda: [Calls.pulse])
    certain: bool = True
    written: bool = False
    torn: bool = False
    polls: bool = False
    laps: Laps | None = None
    depth: int = 0
    constants: dict[Value, int] = field(default_factory=dict)
    literals: dict[tuple[str, bytes], int] = field(default_factory=dict)

    def number(self, size: Size) -> int:
        return evaluate(size, self.sizes)

    def literal(self, number: Any, dtype: Any) -> int:
        """The slot that holds the address of a number that nobody writes."""
        data = np.array([number], dtype)
        key = data.dtype.str, data.tobytes()
        if key not in self.literals:
            self.literals[key] = self.code.keep(data)
        return self.literals[key]

    def constant(self, value: Value) -> int:
        """The slot of a constant."""
        if value not in self.constants:
            data = (
                value.attrs["value"].data
                if value.op.name == "constant"
                else apply(value, [], self.sizes, False, None)
            )
            self.constants[value] = self.code.keep(np.ascontiguousarray(data), shared=True)
        return self.constants[value]

    def temps(self, plan: Plan, slots: Slots, base: int) -> None:
        """Slots for the temps of a plan whose arena starts at the address in the slot ``base``."""
        for name, offset in plan.offsets.items():
            slots[name] = self.offset(base, self.number(offset))

    def offset(self, base: int, k: int) -> int:
        """A slot that holds the address ``k`` bytes after that of another, now and as long as that does not change."""
        address = self.code.address_of(base)
        if address is not None:
            return self.code.at(Address(address.space, address.offset + k))
        slot = self.code.slot()
        self.code.emit(Op.MOVE, slot, base, k)
        return slot

    @contextmanager
    def repeat(self, n: int) -> Iterator[None]:
        """What is emitted inside runs ``n`` times, at least once."""
        counter = self.code.slot()
        self.code.emit(Op.SET, counter, n)
        start = self.code.label()
        yield
        self.code.emit(Op.LOOP, counter, start)

    # -- steps

    def whole(self, plan: Plan, slots: Slots) -> None:
        """All steps of a program."""
        for step in plan.steps:
            self.written = self.written or any(plan.buffers[n].kind == "state" for n in step.writes)
            self.timed(plan, step, slots)

    def plan(self, plan: Plan, slots: Slots) -> None:
        """All steps of a body."""
        for step in plan.steps:
            self.timed(plan, step, slots)

    def timed(self, plan: Plan, step: Step, slots: Slots) -> None:
        """A step, and its time if that is wanted."""
        if self.laps is None:
            return self.step(plan, step, slots)
        number = self.laps.note(plan, step, self.depth)
        self.depth += 1
        self.step(plan, step, slots)
        self.depth -= 1
        self.laps.lap(number)

    def step(self, plan: Plan, step: Step, slots: Slots) -> None:
        v = step.value
        reads, writes = [slots[n] for n in step.reads], [slots[n] for n in step.writes]
        if step.kind == "launch" and self._fails(plan, v):
            return
        if step.kind == "control":
            control(self, step, slots)
        elif step.kind == "copy":
            self.copy(writes[0], reads[0], self.number(v.type.nbytes))  # type: ignore[union-attr]
        elif step.kind == "launch" and kernel_form_of(step) in self.launches:
            self._launch(plan, v, self.launches[kernel_form_of(step)], reads, writes)
        else:
            self._call(plan, step, reads, writes)

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy from the address in one slot to that in another."""
        self.code.emit(Op.COPY, to, source, nbytes)

    def _call(self, plan: Plan, step: Step, reads: Sequence[int], writes: Sequence[int]) -> None:
        """A routine of a library, or the reference. (Many a plan has none: they are imported here.)"""
        from symc.runtime import lapack, products

        v = step.value
        if products.lower(self, step, reads, writes):
            return
        if not lapack.lower(self, v, reads, writes, lambda: self._reference(plan, v, reads, writes, rare=True)):
            self._reference(plan, v, reads, writes)

    def _fails(self, plan: Plan, v: Value) -> bool:
        """Whether a kernel has no value at these sizes, which is said when it would run."""
        for requirement in self.required.get(v.regions[0], ()):
            if not requirement.holds(self.number):
                error = Refusal(requirement, self.number, plan.function.locations(v))
                if self.certain:
                    error()
                self.call(error)
                return True
        return False

    def _launch(self, plan: Plan, v: Value, launch: Launch, reads: Sequence[int], writes: Sequence[int]) -> None:
        if not launch.kernel.source.fails:
            self._run(launch, [*reads, *writes])
            return
        failed = np.zeros(1, np.uint8)
        slot, good = self.code.keep(failed), Label()
        self._run(launch, [*reads, *writes], [slot])
        self.code.emit(Op.JUMP_IF_ZERO, slot, good)
        self.code.emit(Op.CLEAR, slot, 1)
        self._reference(plan, v, reads, writes, rare=True)  # which raises the error
        self.code.place(good)

    def _run(self, launch: Launch, slots: Sequence[int], more: Sequence[int] = ()) -> None:
        """Run a kernel, in pieces if it takes long enough. ``more``: slots after those of what blocks have summed."""
        numbers, pieces, entry = launch.source.whole(self.number), launch.source.pieces, launch.kernel.address
        slots = [*slots, *[self.code.keep(np.zeros(numbers[1], d)) for d in launch.source.partial], *more]
        if launch.source.polls:
            self.polls = True
            self.code.emit(Op.SET, Word.FAILED, 0)
            self.code.launch(entry, numbers, [*slots, Word.SELF])
            self.code.emit(Op.STOP_IF_FAILED)
            return
        if pieces is None or numbers[1] < 2 * pieces.grain or self.number(pieces.picoseconds) < 1000 * WORTH:
            self.code.launch(entry, numbers, slots)
        else:
            self.code.launch_in_pieces(entry, numbers, slots, pieces.grain, ends=pieces.block is not None)

    def call(self, step: CallStep) -> None:
        """Run a Python step."""
        self.torn = self.torn or self.written
        self.steps.append(step)
        self.code.emit(Op.CALLBACK, len(self.steps) - 1)

    def _reference(self, plan: Plan, v: Value, reads: Sequence[int], writes: Sequence[int], rare: bool = False) -> None:
        def place(slot: int, t: Any) -> Place:
            return Place(slot, concrete_shape(t.shape, self.sizes), t.dtype)

        types = v.type.items if isinstance(v.type, TupleType) else (v.type,)
        places = [place(s, o.type) for s, o in zip(reads, v.operands, strict=True)]
        results = [place(s, t) for s, t in zip(writes, types, strict=True)]
        self.call(ReferenceStep(v, places, results, plan.function.hints, rare))


@phase("lower", lambda plan, launches, required, sizes, timed=False: _numbers(sizes))
def lower(plan: Plan, launches: Launches, required: Required, sizes: Mapping[str, int],
          timed: bool = False) -> tuple[Lowered, Laps | None]:
    """A whole plan. ``timed``: with a lap of the clock after every step."""
    code = Code()
    interface, slots = _interface(code, plan, sizes)
    laps = Laps(code, len(plan.steps)) if timed else None
    lowering = Lowering(launches, required, sizes, code, laps=laps)
    for name, buffer in plan.buffers.items():
        if buffer.kind == "constant":
            assert buffer.value is not None
            slots[name] = lowering.constant(buffer.value)
    lowering.temps(plan, slots, code.at(ARENA))
    if laps is not None:
        laps.start()
    lowering.whole(plan, slots)
    loops = any(s.kind == "control" for s in plan.steps)
    arena = evaluate(plan.arena, sizes)
    found = Lowered(code.template(), dict(sizes), arena, steps=lowering.steps, loops=loops, work=work(plan, sizes),
                    torn=lowering.torn, polls=lowering.polls, **interface)
    return found, laps


def _interface(code: Code, plan: Plan, sizes: Mapping[str, int]) -> tuple[dict[str, Any], Slots]:
    """Slots for arguments and results, in a row. A call puts the array objects there, the code finds their data."""
    given: list[tuple[str, int]] = []
    fresh: list[tuple[str, Fresh]] = []
    outputs = plan.results[: len(plan.function.outputs)]
    for name, b in plan.buffers.items():
        if b.kind in ("input", "state"):
            assert b.value is not None
            given.append((name, b.value.attrs["index"]))
        elif b.kind == "result":
            t = plan.types[name]
            output = outputs.index(name) if name in outputs else None
            fresh.append((name, Fresh(concrete_shape(t.shape, sizes), t.dtype, output)))
    names = [g[0] for g in given] + [f[0] for f in fresh]
    first = code.slots([0] * len(names))
    code.emit(Op.OPEN, first, len(names), NDARRAY)
    results = zip(plan.results, plan.function.body.results, strict=True)
    interface = dict(
        first=first,
        given=tuple(index for _, index in given),
        fresh=tuple(f for _, f in fresh),
        returned=tuple((names.index(name), concrete_shape(v.shape, sizes)) for name, v in results),
        updates=tuple(plan.function.updates),
    )
    return interface, {name: first + k for k, name in enumerate(names)}


def _numbers(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={n}" for name, n in sizes.items())
