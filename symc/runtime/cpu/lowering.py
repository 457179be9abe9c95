"""Emits the steps of plans as code of the native interpreter: kernels, copies, calls of Python, and what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from symc.codegen.cpu.chunks import WORTH
from symc.codegen.cpu.render import Source
from symc.codegen.kernel.source import Form, kernel_form_of
from symc.ir.dim import Size
from symc.ir.ops.effect import after
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass, field
from symc.ir.requires import Requirement
from symc.ir.size_values import evaluate
from symc.ir.value import Region, Value
from symc.runtime.cpu.arithmetic import Formula, Test, at_least, both, less
from symc.runtime.cpu.calls import Calls, CallStep, Place, ReferenceStep, Refusal
from symc.runtime.cpu.executable import ALIGN
from symc.runtime.cpu.executor import ARENA, Address, Code, Label
from symc.runtime.cpu.kernels import Kernel
from symc.runtime.cpu.native.instructions import Op, Word
from symc.runtime.cpu.timing import Laps

Slots = dict[str, int]  # of the buffers of a plan


@dataclass(frozen=True)
class Launch:
    """Launch of a region: a kernel, and the region's own source, equal to the kernel's but for names of sizes."""

    kernel: Kernel
    source: Source


Launches = Mapping[Form, Launch]
#: Reductions in a region that have no value for no elements, each with the size that must not be 0.
Required = Mapping[Region, Sequence[Requirement]]


@dataclass
class Lowering(ABC):
    """Emits the steps of plans.

    ``sizes``: those to lower at, if they are given.
    ``laps``: where to note each step, if their times are wanted; ``depth``: in how many loops and branches we are.
    ``certain``: what is emitted now will run, as often as ``times`` says, so that what must fail can fail before
    anything has run: sizes for which it does are refused (``refusals``).
    ``written``: a state has been written over, or is now; ``torn``: Python is called then, which may fail.
    ``polls``: a kernel looks for signals.
    ``constants``, ``literals``: the slots that hold the addresses of constants, and of single numbers; ``numbers``:
    these, by their bits.
    ``behind``: where the arena of the plan ends; ``workspaces``: how much steps use from there on; ``reserved``: what
    sections that run at the same time use of it.
    """

    launches: Launches
    #: Kernels know of results that lie in memory which other results depend on.
    shared: ClassVar[bool] = True
    required: Required
    sizes: Mapping[str, int] | None
    code: Code
    steps: list[CallStep] = field(default_factory=lambda: [Calls.pulse])
    certain: bool = True
    times: Size = 1
    written: bool = False
    torn: bool = False
    polls: bool = False
    laps: Laps | None = None
    depth: int = 0
    constants: dict[Value, int] = field(default_factory=dict)
    literals: dict[tuple[type, Any, Any], int] = field(default_factory=dict)
    numbers: dict[tuple[str, bytes], np.ndarray] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    workspaces: list[Size] = field(default_factory=list)
    behind: Size = 0
    reserved: Size = 0
    _taken: Size = 0

    def number(self, size: Size) -> Any:
        """A size as code may hold it: a number, or what is computed."""
        return size if self.sizes is None else evaluate(size, self.sizes)

    def choose(self, a: Size, b: Size, less_: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """Emit what runs where ``a < b``, and what runs elsewhere."""
        known = less(a, b)
        if isinstance(known, int):
            return less_() if known else otherwise()
        return self._branch(self.code.number(a), b, less_, otherwise)

    def unless_zero(self, status: int, failed: Callable[[], None]) -> None:
        """Emit what runs where a routine has left another word than 0 in ``status``."""
        bad, end = Label(), Label()
        self.code.emit(Op.JUMP_UNLESS_ZERO, status, bad)
        self.code.emit(Op.JUMP, end)
        self.code.place(bad)
        failed()
        self.code.place(end)

    def where(self, test: Test, true: Callable[[], None], false: Callable[[], None]) -> None:
        """Emit what runs where a test is 1, and what runs elsewhere."""
        if isinstance(test, int):
            return true() if test else false()
        return self._branch(self.code.number(test), 1, false, true)

    def _branch(self, a: int, b: Size, less_: Callable[[], None], otherwise: Callable[[], None]) -> None:
        other, end = Label(), Label()
        self.code.emit(Op.JUMP_IF_LESS, a, b, other)
        otherwise()
        self.code.emit(Op.JUMP, end)
        self.code.place(other)
        less_()
        self.code.place(end)

    def if_any(self, n: Size, emit: Callable[[], None]) -> None:
        """Emit what runs where ``n`` is not 0."""
        self.choose(n, 1, lambda: None, emit)

    def workspace(self, nbytes: Size) -> int:
        """The slot of memory that a step may use while it runs, behind the arena of the plan."""
        at = self._taken
        self._taken = at + -(-nbytes // ALIGN) * ALIGN
        self.workspaces.append(self._taken)
        return self.code.at(Address(ARENA.space, self.behind + at))

    def literal(self, number: Any, dtype: Any) -> int:
        """The slot that holds the address of a number that nobody writes."""
        key = type(number), number, dtype
        found = self.literals.get(key)
        if found is None or number == 0:  # of which there are two
            data = np.array([number], dtype)
            kept = self.numbers.setdefault((data.dtype.str, data.tobytes()), data)
            found = self.literals[key] = self.code.keep(kept)
        return found

    def integer(self, n: Size, dtype: Any = np.int64) -> int:
        """The slot that holds the address of an integer that nobody writes."""
        return self.literal(n, dtype) if isinstance(n, int) else self.code.address_of_number(n)

    def constant(self, value: Value) -> int:
        """The slot of a constant."""
        if value not in self.constants:
            self.constants[value] = self.code.keep(np.ascontiguousarray(value.attrs["value"].data), shared=True)
        return self.constants[value]

    def temps(self, plan: Plan, slots: Slots, base: int) -> None:
        """Slots for the temps of a plan whose arena starts at the address in the slot ``base``."""
        for name, offset in plan.offsets.items():
            slots[name] = self.offset(base, self.number(offset))

    def offset(self, base: int, k: Size) -> int:
        """A slot that holds the address ``k`` bytes after that of another, now and as long as that does not change."""
        address = self.code.address_of(base)
        if address is not None and (address.space == ARENA.space or isinstance(k, int)):
            return self.code.at(Address(address.space, address.offset + k))
        slot = self.code.slot()
        self.code.emit(Op.MOVE, slot, base, k)
        return slot

    @contextmanager
    def repeat(self, n: Size) -> Iterator[None]:
        """Loop: what is emitted inside runs ``n`` times, at least once."""
        counter = self.code.slot()
        self.code.emit(Op.SET, counter, n)
        start = self.code.label()
        yield
        self.code.emit(Op.LOOP, counter, start)

    # -- steps

    def whole(self, plan: Plan, slots: Slots) -> None:
        """All steps of a program. What is timed runs one after the other."""
        groups = {s[0]: s for s in plan.sections} if self.laps is None else {}
        at = 0
        while at < len(plan.steps):
            if at in groups:
                self.sections(plan, groups[at], slots)
                at = groups[at][-1]
            else:
                self.one(plan, at, slots)
                at += 1

    def one(self, plan: Plan, at: int, slots: Slots) -> None:
        """A step of a program."""
        step = plan.steps[at]
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
        self._taken = self.reserved
        if step.kind == "launch" and self._fails(plan, v):
            return
        if step.kind == "control":
            self.control(step, slots)
        elif step.kind == "copy" or step.value.op is after:  # the effects have come before
            self.copy(writes[0], reads[0], self.number(v.type.nbytes))  # type: ignore[union-attr]
        elif step.kind == "launch" and (form := kernel_form_of(step, self.shared)) in self.launches:
            self._launch(plan, v, self.launches[form], reads, writes)
        else:
            self.routine(plan, step, reads, writes)

    def copy(self, to: int, source: int, nbytes: Size) -> None:
        """Copy from the address in one slot to that in another."""
        self.code.emit(Op.COPY, to, source, nbytes)

    @abstractmethod
    def control(self, step: Step, slots: Slots) -> None:
        """A loop or a branch."""

    @abstractmethod
    def sections(self, plan: Plan, group: Sequence[int], slots: Slots) -> None:
        """Steps that may run at the same time."""

    @abstractmethod
    def routine(self, plan: Plan, step: Step, reads: Sequence[int], writes: Sequence[int]) -> None:
        """A routine of a library, or the reference."""

    def _fails(self, plan: Plan, v: Value) -> bool:
        """Look whether a kernel has a value at these sizes, before anything runs if the kernel runs in any case. True
        if it never has."""
        for requirement in self.required.get(v.regions[0], ()):
            margin, count = self.number(requirement.margin), self.number(requirement.count)
            bad = both(less(margin, 0), less(0, count))
            if bad == 0:
                continue
            error = Refusal(requirement, plan.function.locations(v), self.sizes)
            if self.certain:
                self.refusals.append(error)
                self.refuse(both(bad, less(0, self.times)), error)
                continue
            good = Label()
            if bad != 1:
                self.code.emit(Op.JUMP_IF_LESS, self.code.number(bad), 1, good)
            self.call(error)
            self.code.place(good)
            if bad == 1:
                return True
        return False

    def refuse(self, bad: Formula, error: Refusal) -> None:
        """Sizes for which this is 1 are not accepted."""
        if self.sizes is None:
            self.code.refuse(bad)
        elif bad:
            error.raise_at(self.sizes)

    def _launch(self, plan: Plan, v: Value, launch: Launch, reads: Sequence[int], writes: Sequence[int]) -> None:
        if not launch.kernel.source.fails:
            self._run(launch, [*reads, *writes])
            return
        failed = np.zeros(1, np.uint8)
        slot, good = self.code.keep(failed), Label()
        self._run(launch, [*reads, *writes], [slot])
        self.code.emit(Op.JUMP_IF_ZERO, slot, good)
        self.code.emit(Op.CLEAR, slot, 1)
        self.reference(plan, v, reads, writes, rare=True)  # which raises the error
        self.code.place(good)

    def _run(self, launch: Launch, slots: Sequence[int], more: Sequence[int] = ()) -> None:
        """Run a kernel, in chunks if it takes long enough. ``more``: slots after those of what blocks have summed."""
        numbers, chunks, entry = launch.source.whole(self.number), launch.source.chunks, launch.kernel.address
        slots = [*slots, *[self.workspace(numbers[1] * d.itemsize) for d in launch.source.partial], *more]
        if launch.source.polls:
            self.polls = True
            self.code.emit(Op.SET, Word.FAILED, 0)
            self.code.launch(entry, numbers, [*slots, Word.SELF])
            self.code.emit(Op.STOP_IF_FAILED)
            return
        worth: Formula = 0
        if chunks is not None:
            time = self.number(chunks.picoseconds)
            worth = both(at_least(numbers[1], 2 * chunks.grain), at_least(time, 1000 * WORTH))
        if worth == 0 or chunks is None:
            self.code.launch(entry, numbers, slots)
        else:
            ends = chunks.block is not None
            self.code.launch_in_chunks(entry, numbers, slots, chunks.grain, ends=ends, worth=worth)

    def call(self, step: CallStep) -> None:
        """Run a Python step."""
        self.torn = self.torn or self.written
        self.steps.append(step)
        self.code.emit(Op.CALLBACK, len(self.steps) - 1)

    def reference(self, plan: Plan, v: Value, reads: Sequence[int], writes: Sequence[int], rare: bool = False) -> None:
        def place(slot: int, t: Any) -> Place:
            return Place(slot, t.shape, t.dtype)

        types = v.types
        places = [place(s, o.type) for s, o in zip(reads, v.operands, strict=True)]
        results = [place(s, t) for s, t in zip(writes, types, strict=True)]
        self.call(ReferenceStep(v, places, results, plan.function.hints, rare))
