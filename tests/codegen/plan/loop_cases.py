"""What the tests of loops and branches in plans share: random functions with control ops, and a machine that runs them.

The machine follows a step's ``Layout`` on real bytes, by its words alone; it knows nothing of the native interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import strategies as st

from symc.ir.bodies import built, make_cond, make_scan, make_while
from symc.ir.dim import size_name
from symc.ir.function import Function
from symc.ir.op import lookup
from symc.ir.ops.control import chosen, element_type
from symc.ir.ops.kernel import results_of
from symc.ir.plan import Plan, Step
from symc.ir.size_values import evaluate
from symc.ir.value import Value, fresh_input
from tests.codegen.plan.plan_cases import Choice, Machine, Maker

MOST_DEPTH = 2


class LoopMaker(Maker):
    """Grows functions of which some values are loops and branches, nested up to two deep."""

    depth = 0

    def grow_all(self, rest: Iterator[Choice], most: int = 100) -> None:
        for _, choice in zip(range(most), rest, strict=False):
            if choice[0] % 3 == 2 and self.depth < MOST_DEPTH:
                made = [self.scan, self.scan, self.loop, self.branch][choice[1] % 4](choice, rest)
                self.pool += [v if v.dtype == np.float64 else lookup("cast")(v, dtype=np.dtype("f8"))
                              for v in results_of(made)]
            else:
                self.grow(choice)

    def inner(self, params: Sequence[Value], rest: Iterator[Choice], most: int) -> LoopMaker:
        """A maker of a body: it knows the params and everything outside."""
        maker = LoopMaker.__new__(LoopMaker)
        maker.n, maker.m, maker.leaves = self.n, self.m, self.leaves
        maker.depth, maker.pool = self.depth + 1, [*self.pool, *params]
        maker.grow_all(rest, most)
        return maker

    def news(self, maker: LoopMaker, carries: Sequence[Value], rest: Iterator[Choice]) -> list[Value]:
        """New carries: anything of the type, of which the last made come first."""
        out = []
        for c in carries:
            k = next(rest, (0, 0, 0))[2]
            fits = [v for v in maker.pool if v.type is c.type]
            out.append(fits[-1 - k % min(len(fits), 5)])
        return out

    def inits(self, choice: Choice) -> list[Value]:
        _, i, j = choice
        return [self.pool[-1 - (i * 7 + j + k * (j % 3)) % len(self.pool)] for k in range((i + j) % 4)]

    def scan(self, choice: Choice, rest: Iterator[Choice]) -> Value:
        _, i, j = choice
        init = self.inits(choice)
        x = self.pool[-1 - j % len(self.pool)]
        xs = [v for v in self.pool if v.ndim and x.ndim and v.shape[0] == x.shape[0]][-1 - j % 3:]
        length = xs[0].shape[0] if xs else 2
        carries = [fresh_input(v.type) for v in init]
        rows = [fresh_input(element_type(v.type)) for v in xs]
        maker = self.inner([*carries, *rows], rest, 1 + i % 6)
        ys = [maker.pool[-1 - k * (1 + i % 3) % len(maker.pool)] for k in range(j % 3 + (not init))]
        results = [*self.news(maker, carries, rest), *ys]
        return make_scan(init, xs, length, j % 2 == 1, [*carries, *rows], results)

    def loop(self, choice: Choice, rest: Iterator[Choice]) -> Value:
        init = self.inits(choice)
        carries = [fresh_input(v.type) for v in init]
        maker = self.inner(carries, rest, 1 + choice[1] % 6)
        results = self.news(maker, carries, rest)
        return make_while(init, choice[2] % 4, carries, self.test(carries, choice[2]), results)

    def branch(self, choice: Choice, rest: Iterator[Choice]) -> Value:
        _, i, j = choice
        wanted = [self.pool[-1 - (j + k * i) % len(self.pool)] for k in range(1 + j % 3)]
        which = self.test(self.pool[-1:], j)
        made = []
        for _ in range(2 if i % 2 else 3):
            with built() as found:
                maker = self.inner([], rest, 1 + i % 3)
                results = self.news(maker, wanted, rest)
            made.append((results, found))
        if i % 2 == 0:
            which = lookup("cast")(which, dtype=np.dtype("i8")) * (j % 4)
        return make_cond(which, made)

    def test(self, of: Sequence[Value], k: int) -> Value:
        v = of[k % len(of)] if of else self.pool[0]
        total = lookup("sum")(v, axes=tuple(range(v.ndim))) if v.ndim else v
        return lookup("lt")(total, lookup("cos")(total)) if k % 3 else lookup("ne")(total, 0.0)


def make_loop_function(cs: list[Choice], outputs: list[int], updates: tuple[int, int], sizes: tuple[int, int],
                       symbolic: bool) -> Function:
    maker = LoopMaker(*(size_name(s) if symbolic else k for s, k in zip("nm", sizes, strict=True)))
    maker.grow_all(iter(cs[3:]), 4)
    for last in cs[:3]:
        maker.grow_all(iter([(2, *last[1:]), *cs[3:]]), 1)
    return maker.function(outputs, updates)


numbers = st.integers(0, 40)
loop_functions = st.builds(
    make_loop_function, st.lists(st.tuples(numbers, numbers, numbers), min_size=8, max_size=40),
    st.lists(st.integers(0, 9), min_size=1, max_size=4), st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.just((3, 4)) | st.just((0, 2)), st.booleans())


class LoopMachine(Machine):
    """A machine that runs loops and branches."""

    def step(self, plan: Plan, step: Step, memory: dict[str, np.ndarray]) -> None:
        if step.kind == "control":
            _Control(self, step, memory).run()
        else:
            super().step(plan, step, memory)


class _Control:
    def __init__(self, machine: LoopMachine, step: Step, memory: dict[str, np.ndarray]):
        self.machine, self.step, self.value, self.layout = machine, step, step.value, step.layout
        self.reads, self.writes = [memory[n] for n in step.reads], [memory[n] for n in step.writes]
        self.scratch = memory[step.scratch] if step.scratch else np.empty(0, np.uint8)
        self.scratch[...] = 0x5A

    def number(self, size) -> int:
        return evaluate(size, self.machine.sizes)

    def at(self, offset, nbytes) -> np.ndarray:
        start = self.number(offset)
        assert start % 64 == 0 and start + self.number(nbytes) <= len(self.scratch)
        return self.scratch[start : start + self.number(nbytes)]

    def body(self, k: int, memory: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run a body. ``memory``: of what is given and of results; temps are garbage every time."""
        plan = self.step.bodies[k]
        memory = dict(memory)
        for n, b in plan.buffers.items():
            if b.kind == "constant":
                memory[n] = np.frombuffer(b.value.attrs["value"].data.tobytes(), np.uint8)
            elif b.kind == "temp":
                memory[n] = self.at(self.layout.arenas[k] + plan.offsets[n], b.nbytes)
                memory[n][...] = 0xA5
        for step in plan.steps:
            self.machine.step(plan, step, memory)
        return memory

    def run(self) -> None:
        {"scan": self.scan, "while": self.loop, "cond": self.branch}[self.value.op.name]()

    def branch(self) -> None:
        which = self.value.operands[0]
        k = chosen(self.reads[0][: which.dtype.itemsize].view(which.dtype)[0], len(self.step.bodies))
        body = self.step.bodies[k]
        self.body(k, dict(zip([*body.given, *body.results], [*self.reads[1:], *self.writes], strict=True)))

    def start(self) -> dict[str, np.ndarray]:
        plan, carry = self.step.bodies[-1], self.value.attrs["carry"]
        now = {n: self.at(o, plan.buffers[n].nbytes) for n, o in self.layout.places.items()}
        for k, (n, home) in enumerate(zip(plan.given[:carry], self.layout.homes, strict=True)):
            nbytes = self.number(plan.buffers[n].nbytes)
            if home == "operand":
                now[n] = self.reads[k]
            else:
                now.setdefault(n, self.writes[k])
                now[n][:nbytes] = self.reads[k][:nbytes]
        now.update(zip(plan.given[carry:], self.reads[carry:], strict=True))
        return now

    def finish(self, now: dict[str, np.ndarray]) -> None:
        for k, n in enumerate(self.step.bodies[-1].given[: self.value.attrs["carry"]]):
            nbytes = self.number(self.step.bodies[-1].buffers[n].nbytes)
            self.writes[k][:nbytes] = now[n][:nbytes].copy()

    def rows(self, t: int) -> dict[str, np.ndarray]:
        plan, carry, xs = self.step.bodies[-1], self.value.attrs["carry"], self.value.attrs.get("xs", 0)
        out = {}
        for n, whole in [*zip(plan.given[carry : carry + xs], self.reads[carry : carry + xs], strict=True),
                         *zip(plan.results, self.writes[carry:], strict=False)]:
            nbytes = self.number(plan.buffers[n].nbytes)
            out[n] = whole[t * nbytes : (t + 1) * nbytes]
        return out

    def scan(self) -> None:
        length = self.number(self.value.attrs["length"])
        now = self.start()
        for t in reversed(range(length)) if self.value.attrs["reverse"] else range(length):
            now.update(self.rows(t))
            memory = self.body(0, now)
            now.update({a: memory[b] for a, b in self.layout.moves})
        self.finish(now)

    def loop(self) -> None:
        test, limit, steps = self.step.bodies[0], self.value.attrs["max_steps"], 0
        now = self.start()
        while limit is None or steps < self.number(limit):
            given = {a: now[b] for a, b in zip(test.given, self.step.bodies[1].given, strict=True)}
            flag = self.at(self.layout.flag, 1)
            self.body(0, {**given, test.results[0]: flag})
            if not flag[0]:
                break
            memory = self.body(1, now)
            now.update({a: memory[b] for a, b in self.layout.moves})
            steps += 1
        self.finish(now)
        self.writes[-1][:8].view(np.int64)[0] = steps
