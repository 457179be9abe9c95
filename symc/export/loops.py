"""Loops and branches of plans as those of C, in the memory that their ``Layout`` says; nothing is allocated.

Buffers that stay where they are have constant pointers; carries that move from step to step have variables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.export.steps import Pointers, Statements
from symc.ir.dim import Size
from symc.ir.plan import Layout, Step
from symc.ir.types import Type


def control(out: Statements, step: Step, pointers: Pointers) -> None:
    """Write a loop or a branch."""
    writers = {"scan": _Scan, "while": _While, "cond": _Cond}
    writers[step.value.op.name](out, step, pointers).write()


class _Control:
    """Common parts of the three: pointers of operands and results, and the scratch memory."""

    def __init__(self, out: Statements, step: Step, pointers: Pointers):
        assert step.layout is not None
        self.out, self.step, self.value = out, step, step.value
        self.layout: Layout = step.layout
        self.reads, self.writes = [pointers[n] for n in step.reads], [pointers[n] for n in step.writes]
        self.scratch = pointers[step.scratch] if step.scratch is not None else ""

    def write(self) -> None:
        """Write the statements of the step."""
        raise NotImplementedError

    def place(self, name: str) -> str:
        """The place that a buffer has in the scratch memory."""
        return self.out.at(self.scratch, self.layout.places[name])

    def body(self, k: int, given: Sequence[str], known: Pointers) -> Pointers:
        """The steps of body ``k``; its pointers. ``given``: those of its inputs; ``known``: others that are known."""
        body = self.step.bodies[k]
        pointers = dict(known)
        pointers.update(zip(body.given, given, strict=True))
        for name, b in body.buffers.items():
            if b.kind == "result" and name not in pointers:
                pointers[name] = self.out.pointer(name, self.place(name))
        base = self.out.pointer("memory", self.out.at(self.scratch, self.layout.arenas[k])) if body.offsets else ""
        self.out.plan(body, pointers, base)
        return pointers


class _Loop(_Control):
    """A loop with carries. ``now[k]``: the pointer to carry k."""

    def start(self, length: Size = 0) -> Pointers:
        """Put the carries where they start; the pointers to their second buffers. A carry that is exchanged with a
        second buffer starts there where ``length`` is odd, to end in the result."""
        out, carry = self.out, self.value.attrs["carry"]
        body = self.step.bodies[-1]
        self.inits, self.others = self.reads[:carry], self.reads[carry:]
        self.finals, self.rest = self.writes[:carry], self.writes[carry:]
        self.nbytes: list[Size] = [o.type.nbytes for o in self.value.operands[:carry]]  # type: ignore[union-attr]
        self.now: list[str] = []
        moves = dict(self.layout.moves)
        seconds: Pointers = {}
        for k, (name, home) in enumerate(zip(body.given, self.layout.homes)):
            at = {"operand": self.inits, "result": self.finals}[home][k] if home != "scratch" else self.place(name)
            now = self.variable(name, at) if name in moves else out.pointer(name, at) if home == "scratch" else at
            other = moves.get(name)
            if home == "result" and other in self.layout.places and moves.get(other) == name and length != 0:
                seconds[other] = self.variable(other, self.place(other))
                with out.block(f"if ({out.size(length)} % 2)"):
                    self.exchange([(now, seconds[other]), (seconds[other], now)])
            self.now.append(now)
            if home != "operand":
                out.copy(now, self.inits[k], self.nbytes[k])
        for name in (n for pair in self.layout.moves for n in pair):
            if name in self.layout.places and name not in seconds and name not in body.given:
                seconds[name] = self.variable(name, self.place(name))
        return seconds

    def variable(self, name: str, at: str) -> str:
        """A pointer that changes."""
        found = self.out.fresh(name)
        self.out.line(f"void *{found} = {at};")
        return found

    def exchange(self, moves: Sequence[tuple[str, str]]) -> None:
        """Give variables the values of others, all at once."""
        moves = [(a, b) for a, b in moves if a != b]
        if len(moves) == 1:
            self.out.line(f"{moves[0][0]} = {moves[0][1]};")
            return
        new = [self.out.pointer("next", b) for _, b in moves]
        for (a, _), b in zip(moves, new, strict=True):
            self.out.line(f"{a} = {b};")

    def move(self, known: Pointers) -> None:
        """The pointers of the next step."""
        self.exchange([(known[a], known[b]) for a, b in self.layout.moves])

    def finish(self) -> None:
        for final, now, nbytes in zip(self.finals, self.now, self.nbytes, strict=True):
            self.out.copy(final, now, nbytes)


class _Scan(_Loop):
    def write(self) -> None:
        out, length = self.out, self.value.attrs["length"]
        with out.block(""):
            known, before = self.start(length), out.times
            out.times = before * length
            i = out.fresh("t")
            with out.block(f"for (int64_t {i} = 0; {i} < {out.size(length)}; {i}++)"):
                self._step_of(i, length, known)
            out.times = before
            self.finish()

    def _step_of(self, i: str, length: Size, known: Pointers) -> None:
        carry, xs, region = len(self.inits), self.value.attrs["xs"], self.value.regions[0]
        body = self.step.bodies[0]
        t = f"({self.out.size(length)} - 1 - {i})" if self.value.attrs["reverse"] else i
        rows = [self._row(n, x, p, t) for n, x, p in zip(
            body.given[carry:], self.others[:xs], region.params[carry : carry + xs])]
        ys = {n: self._row(n, y, r.type, t) for n, y, r in zip(body.results, self.rest, region.results[carry:])}
        given = [*self.now, *rows, *self.others[xs:]]
        self.move(self.body(0, given, {**known, **ys}))

    def _row(self, name: str, array: str, t: Type, i: str) -> str:
        return self.out.pointer(name, f"(char *){array} + {i} * {self.out.size(t.nbytes)}")  # type: ignore[union-attr]


class _While(_Loop):
    def write(self) -> None:
        out, limit, layout = self.out, self.value.attrs["max_steps"], self.layout
        with out.block(""):
            assert layout.flag is not None
            known = self.start()
            flag = out.pointer("goes_on", out.at(self.scratch, layout.flag))
            count, given = out.fresh("count"), [*self.now, *self.others]
            out.line(f"int64_t {count} = 0;")
            with out.block(f"while ({'true' if limit is None else f'{count} < {out.size(limit)}'})"), out.uncertain():
                self.body(0, given, {self.step.bodies[0].results[0]: flag})
                out.line(f"if (!*(const unsigned char *){flag}) break;")
                self.move(self.body(1, given, known))
                out.line(f"{count}++;")
            self.finish()
            out.line(f"*(int64_t *){self.rest[0]} = {count};")


class _Cond(_Control):
    def write(self) -> None:
        which, given, last = self.reads[0], self.reads[1:], len(self.step.bodies) - 1
        logical = self.value.operands[0].dtype == np.dtype(bool)
        for k, body in enumerate(self.step.bodies):
            test = f"*(const unsigned char *){which}" if logical else f"*(const int64_t *){which} <= {k}"
            head = f"{'else ' * (k > 0)}if ({test})" if k < last else "else" if k else ""
            with self.out.block(head), self.out.uncertain():
                self.body(k, given, dict(zip(body.results, self.writes, strict=True)))
