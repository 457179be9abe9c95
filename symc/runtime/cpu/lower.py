"""From a plan to code of the native interpreter, once for all sizes: what depends on them is computed by the code, when
a call comes with others than the last. (Code for devices is made at given sizes, by the same functions.)

Every buffer is a slot of the code that holds its address, so an address that changes (an argument, a row of a loop, two
carries that are swapped) changes in one place. Loops and branches are in ``symc.runtime.cpu.lower_control``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symc.ir.dim import Size
from symc.ir.phases import phase
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass
from symc.ir.types import TensorType
from symc.runtime.cpu.accept import accept
from symc.runtime.cpu.arithmetic import largest, less
from symc.runtime.cpu.executable import ALIGN, NDARRAY
from symc.runtime.cpu.executor import ARENA, Code
from symc.runtime.cpu.large_results import LARGE
from symc.runtime.cpu.lower_control import control
from symc.runtime.cpu.lowered import Fresh, Lowered
from symc.runtime.cpu.lowering import Launches, Lowering, Required, Slots
from symc.runtime.cpu.native.instructions import Op, Word
from symc.runtime.cpu.timing import Laps
from symc.runtime.cpu.work import is_work


class PlanLowering(Lowering):
    """Emits all steps of plans of the CPU."""

    def control(self, step: Step, slots: Slots) -> None:
        """A loop or a branch."""
        control(self, step, slots)

    def sections(self, plan: Plan, group: Sequence[int], slots: Slots) -> None:
        """Steps that may run at the same time."""
        from symc.runtime.cpu.lower_sections import sections

        sections(self, plan, group, slots)

    def routine(self, plan: Plan, step: Step, reads: Sequence[int], writes: Sequence[int]) -> None:
        """A routine of a library, or the reference. (Many a plan has none: they are imported here.)"""
        from symc.runtime.cpu import concat, fourier, lapack, places, products, sorts, sparse

        v = step.value

        def failed() -> None:
            self.reference(plan, v, reads, writes, rare=True)

        if not (products.lower(self, step, reads, writes) or concat.lower(self, v, reads, writes)
                or sorts.lower(self, v, reads, writes, failed) or places.lower(self, v, reads, writes, failed)
                or fourier.lower(self, v, reads, writes, failed) or sparse.lower(self, v, reads, writes, failed)
                or lapack.lower(self, v, reads, writes, failed, _unread(plan, step))):
            self.reference(plan, v, reads, writes)


def _unread(plan: Plan, step: Step) -> list[int]:
    """The results of a step that no other reads."""
    if len(step.writes) < 2:
        return []
    read = {name for s in plan.steps if s is not step for name in s.reads}.union(plan.results)
    return [k for k, name in enumerate(step.writes) if name not in read]


@dataclass(frozen=True)
class Interface:
    """The arrays of a call in a row: inputs in order, then those that are made. ``places``: which of them a buffer is;
    ``made``: type, and which output it is (None: a state's new array); ``returned``: for each result which of them it
    is, and in which shape."""

    given: int
    places: Mapping[str, int]
    made: tuple[tuple[TensorType, int | None], ...]
    returned: tuple[tuple[int, tuple[Size, ...]], ...]

    @property
    def count(self) -> int:
        return self.given + len(self.made)


def interface_of(plan: Plan) -> Interface:
    """The arrays that a call gives and takes."""
    places: dict[str, int] = {}
    made: list[tuple[TensorType, int | None]] = []
    outputs, given = plan.results[: len(plan.function.outputs)], len(plan.function.inputs)
    for name, b in plan.buffers.items():
        if b.kind in ("input", "state"):
            assert b.value is not None
            places[name] = b.value.attrs["index"]
        elif b.kind == "result":
            places[name] = given + len(made)
            made.append((plan.types[name], outputs.index(name) if name in outputs else None))
    results = zip(plan.results, plan.function.body.results, strict=True)
    returned = tuple((places[name], v.shape) for name, v in results)
    return Interface(given, places, tuple(made), returned)


@phase("lower", lambda plan, *_, timed=False: "")
def lower(plan: Plan, launches: Launches, required: Required, timed: bool = False) -> tuple[Lowered, Laps | None]:
    """A whole plan. ``timed``: with a lap of the clock after every step."""
    code, interface = Code(), interface_of(plan)
    first = code.slots([0] * interface.count)
    _arguments(code, plan, first)
    dims = [code.slots(t.shape) for t, _ in interface.made]
    seen = [code.slots(shape) for _, shape in interface.returned]
    slots = {name: first + k for name, k in interface.places.items()}
    laps = Laps(code, len(plan.steps)) if timed else None
    lowering = PlanLowering(launches, required, None, code, laps=laps, behind=-(-plan.arena // ALIGN) * ALIGN)
    for name, buffer in plan.buffers.items():
        if buffer.kind == "constant":
            assert buffer.value is not None
            slots[name] = lowering.constant(buffer.value)
    code.emit(Op.OPEN, first + interface.given, len(interface.made), NDARRAY)
    lowering.temps(plan, slots, code.at(ARENA))
    if laps is not None:
        laps.start()
    lowering.whole(plan, slots)
    code.let(Word.NEED, largest([lowering.behind, *[lowering.behind + n for n in lowering.workspaces]]))
    code.let(Word.LONG, is_work(plan, frozenset(code.sizes.names)))
    code.let(Word.LARGE, less(LARGE - 1, largest([t.nbytes for t, _ in interface.made])))
    found = Lowered(
        code.template(), first, interface.given,
        tuple(Fresh(d, t.ndim, t.dtype, output) for d, (t, output) in zip(dims, interface.made)),
        tuple((k, d, len(shape)) for d, (k, shape) in zip(seen, interface.returned)),
        tuple(plan.function.updates), dict(code.sizes.names), lowering.steps, lowering.refusals,
        any(s.kind == "control" for s in plan.steps), lowering.torn, lowering.polls)
    return found, laps


def _arguments(code: Code, plan: Plan, first: int) -> None:
    """Look at the arguments, and find the sizes."""
    inputs = plan.function.inputs
    dims = [code.slots([-1] * i.type.ndim) for i in inputs]
    for k, (i, d) in enumerate(zip(inputs, dims)):
        code.arguments += [int(Op.ARGUMENT), first + k, i.type.ndim, d, NDARRAY]
    accept(code, inputs, plan.function.guards, dims)
