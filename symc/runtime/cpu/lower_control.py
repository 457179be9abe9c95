"""Loops and branches as code of the native interpreter: the steps of nested plans, run in place, with no allocation.

Where the buffers of a body lie is said by the step's ``Layout``. Those that stay where they are (captured values) are
slots of the outer plan; those that move from step to step (rows, carries in two buffers) have slots of their own. The
start of a loop sets them, so that a loop inside a loop starts again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from symc.ir.dim import Size, mod
from symc.ir.plan import Layout, Plan, Step
from symc.ir.types import Type
from symc.runtime.cpu.executor import Label
from symc.runtime.cpu.lowering import Lowering, Slots
from symc.runtime.cpu.native.instructions import Op


def control(lowering: Lowering, step: Step, slots: Slots) -> None:
    """The code of a control step."""
    emitters: dict[str, Callable[..., _Control]] = {"scan": _Scan, "while": _While, "cond": _Cond}
    emitters[step.value.op.name](lowering, step, slots).emit()


class _Control(ABC):
    """Common parts of the three: a step, the slots of its operands and results, its scratch memory."""

    def __init__(self, lowering: Lowering, step: Step, slots: Slots):
        assert step.layout is not None
        self.lowering, self.code, self.step, self.value = lowering, lowering.code, step, step.value
        self.layout: Layout = step.layout
        self.reads, self.writes = [slots[n] for n in step.reads], [slots[n] for n in step.writes]
        self.scratch = slots[step.scratch] if step.scratch is not None else None

    @abstractmethod
    def emit(self) -> None:
        """Write the code of the step."""

    def place(self, name: str) -> int:
        """A slot for the place that a buffer has in the scratch memory."""
        assert self.scratch is not None
        return self.lowering.offset(self.scratch, self.lowering.number(self.layout.places[name]))

    def buffers(self, k: int, given: Sequence[int], known: Slots) -> Slots:
        """The slots of the buffers of body ``k``. ``given``: those of its inputs; ``known``: others that are known."""
        body, slots = self.step.bodies[k], dict(known)
        slots.update(zip(body.given, given, strict=True))
        for name, b in body.buffers.items():
            if b.kind == "constant":
                assert b.value is not None
                slots[name] = self.lowering.constant(b.value)
            elif b.kind == "result" and name not in slots:
                slots[name] = self.place(name)
        if body.offsets:
            assert self.scratch is not None
            base = self.lowering.offset(self.scratch, self.lowering.number(self.layout.arenas[k]))
            self.lowering.temps(body, slots, base)
        return slots

    @contextmanager
    def uncertain(self) -> Iterator[None]:
        """Marks what is emitted inside as code that may not run."""
        before, self.lowering.certain = self.lowering.certain, False
        yield
        self.lowering.certain = before


class _Loop(_Control):
    """A loop with carries. ``now[k]``: the slot that holds where carry k is."""

    def __init__(self, lowering: Lowering, step: Step, slots: Slots):
        super().__init__(lowering, step, slots)
        carry = self.value.attrs["carry"]
        self.inits, self.others = self.reads[:carry], self.reads[carry:]
        self.finals, self.rest = self.writes[:carry], self.writes[carry:]
        self.nbytes = [lowering.number(o.type.nbytes) for o in self.value.operands[:carry]]  # type: ignore[union-attr]
        self.now: list[int] = []

    @property
    def body(self) -> Plan:
        return self.step.bodies[-1]

    def start(self, odd: Size = 0) -> Slots:
        """Put the carries where they start; the slots of their second buffers. ``odd``: 1 where the number of steps is
        odd, and a carry that is exchanged with a second buffer starts there, to end in the result."""
        moved, seconds = {a for a, _ in self.layout.moves}, dict[str, int]()
        for k, (name, home) in enumerate(zip(self.body.given, self.layout.homes)):
            at = {"operand": self.inits, "result": self.finals}[home][k] if home != "scratch" else self.place(name)
            if name in moved:
                other, now = self._exchanged(name), self._own(at)
                if other is not None and odd != 0 and home == "result":
                    seconds[other] = second = self._own(self.place(other))
                    self.lowering.if_any(odd, partial(self.code.emit, Op.SWAP, now, second))
                self.now.append(now)
            else:
                self.now.append(at)
            if home != "operand":
                self.lowering.copy(self.now[k], self.inits[k], self.nbytes[k])
        for a, b in self.layout.moves:
            for name in (a, b):
                if name in self.layout.places and name not in seconds and name not in self.body.given:
                    seconds[name] = self._own(self.place(name))
        return seconds

    def _own(self, at: int) -> int:
        """A slot of its own that starts with the address in another."""
        slot = self.code.slot()
        self.code.emit(Op.MOVE, slot, at, 0)
        return slot

    def _exchanged(self, name: str) -> str | None:
        """The second buffer that a carry is exchanged with after each step."""
        (other,) = [b for a, b in self.layout.moves if a == name]
        return other if other in self.layout.places and (other, name) in self.layout.moves else None

    def moves(self, slots: Slots) -> None:
        """Give buffers their next addresses, all at once."""
        waiting = {slots[a]: slots[b] for a, b in self.layout.moves if slots[a] != slots[b]}
        while waiting:
            sources = set(waiting.values())
            free = next((a for a in waiting if a not in sources), None)
            if free is not None:
                self.code.emit(Op.MOVE, free, waiting.pop(free), 0)
                continue
            a, b = next(iter(waiting.items()))  # a cycle: after the exchange a is right, and what a had is in b
            self.code.emit(Op.SWAP, a, b)
            del waiting[a]
            waiting = {x: b if y == a else y for x, y in waiting.items()}
            if waiting.get(b) == b:
                del waiting[b]

    def finish(self) -> None:
        for final, now, nbytes in zip(self.finals, self.now, self.nbytes, strict=True):
            if final != now:
                self.lowering.copy(final, now, nbytes)


class _Scan(_Loop):
    def emit(self) -> None:
        length = self.lowering.number(self.value.attrs["length"])
        self.lowering.choose(length, 1, self._none, lambda: self._steps(length))

    def _none(self) -> None:
        """No step."""
        for final, init, nbytes in zip(self.finals, self.inits, self.nbytes, strict=True):
            self.lowering.copy(final, init, nbytes)

    def _steps(self, length: Size) -> None:
        code, before = self.code, self.lowering.times
        self.lowering.times = before * length
        known = self.start(odd=mod(length, 2))
        region, carry, xs = self.value.regions[0], len(self.inits), self.value.attrs["xs"]
        rows = [self.row(x, t, length) for x, t in zip(self.others[:xs], region.params[carry : carry + xs])]
        ys = [self.row(y, r.type, length) for y, r in zip(self.rest, region.results[carry:], strict=True)]
        known.update(zip(self.body.results, [slot for slot, _ in ys]))
        slots = self.buffers(0, [*self.now, *[slot for slot, _ in rows], *self.others[xs:]], known)
        with self.lowering.repeat(length):
            self.lowering.plan(self.body, slots)
            self.moves(slots)
            for slot, nbytes in (*rows, *ys):
                code.emit(Op.MOVE, slot, slot, nbytes)
        self.finish()
        self.lowering.times = before

    def row(self, outer: int, t: Type, length: Size) -> tuple[int, Size]:
        """A slot for the rows of an array, one after another, and how far they are apart."""
        slot, nbytes, reverse = self.code.slot(), self.lowering.number(t.nbytes), self.value.attrs["reverse"]  # type: ignore[union-attr]
        self.code.emit(Op.MOVE, slot, outer, nbytes * (length - 1) if reverse else 0)
        return slot, -nbytes if reverse else nbytes


class _While(_Loop):
    def emit(self) -> None:
        code, limit, layout = self.code, self.value.attrs["max_steps"], self.layout
        assert self.scratch is not None and layout.flag is not None
        known, count = self.start(), code.slot()
        flag = self.lowering.offset(self.scratch, self.lowering.number(layout.flag))
        given = [*self.now, *self.others]
        test = self.buffers(0, given, {self.step.bodies[0].results[0]: flag})
        slots = self.buffers(1, given, known)
        code.emit(Op.SET, count, 0)
        again, go, done = code.label(), Label(), Label()
        if limit is not None:
            code.emit(Op.JUMP_IF_LESS, count, self.lowering.number(limit), go)
            code.emit(Op.JUMP, done)
            code.place(go)
        with self.uncertain():
            self.lowering.plan(self.step.bodies[0], test)
            code.emit(Op.JUMP_IF_ZERO, flag, done)
            self.lowering.plan(self.body, slots)
        self.moves(slots)
        code.emit(Op.MOVE, count, count, 1)
        code.emit(Op.AGAIN, again)
        code.place(done)
        self.finish()
        code.emit(Op.STORE, self.rest[0], count)


class _Cond(_Control):
    def emit(self) -> None:
        code, which, given = self.code, self.reads[0], self.reads[1:]
        labels, done = [Label() for _ in self.step.bodies], Label()
        if self.value.operands[0].dtype == np.dtype(bool):
            code.emit(Op.JUMP_IF_ZERO, which, labels[1])
        else:
            code.emit(Op.SWITCH, which, len(labels), *labels)
        for k, (label, body) in enumerate(zip(labels, self.step.bodies, strict=True)):
            code.place(label)
            with self.uncertain():
                self.lowering.plan(body, self.buffers(k, given, dict(zip(body.results, self.writes, strict=True))))
            if k < len(labels) - 1:
                code.emit(Op.JUMP, done)
        code.place(done)
