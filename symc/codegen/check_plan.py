"""Prove that a plan computes its function: an abstract run over *which value each buffer holds*, exact for all sizes.

Proved are: every step reads the values it is about; nothing is written over what is still to be read, in the arena
neither; inputs keep their bytes unless donated, states until nothing can fail; every result is there at the end, in
memory that it shares with nothing else that is returned; lanes wait for each other where they must.
What is wrong here is a bug of symc.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass

from symc.codegen.cells import Source, may_fail, nominal, source
from symc.codegen.check_lanes import check_lanes
from symc.codegen.compare import at_least
from symc.codegen.inplace import Pairs, inplace_pairs
from symc.codegen.memory import Held, held, result_types
from symc.codegen.names import kernel_name
from symc.errors import PlanError
from symc.ir.dim import Dim, Size
from symc.ir.plan import Plan, Step
from symc.ir.value import Value


def describe(at: int, step: Step) -> str:
    what = f"launch @{kernel_name(step.value)}" if step.kind == "launch" else f"{step.kind} {step.value.op.name}"
    return f"step {at} ({', '.join('%' + n for n in step.writes)} <- {what})"


def check_plan(plan: Plan, inplace: Callable[[Value], Pairs] = inplace_pairs,
               fails: Callable[[Value], bool] = may_fail) -> None:
    """Raise PlanError if the plan is wrong, naming the step; else return."""
    check = _Check(plan, inplace, fails)
    check.run()
    check.outcome()
    check_arena(plan)
    check_lanes(plan)


def bug(plan: Plan, what: str, step: Step | None = None) -> PlanError:
    where = plan.function.locations(step.value) if step else ()
    return PlanError(f"plan @{plan.function.name}: {what}", where=where,
                     help="this is a bug in symc, not in your program; please report it with the text of the plan")


@dataclass
class _Check:
    plan: Plan
    inplace: Callable[[Value], Pairs]
    fails: Callable[[Value], bool]

    def __post_init__(self) -> None:
        f = self.plan.function
        self.content: dict[str, Source] = {}
        for n, b in self.plan.buffers.items():
            if b.value is not None:
                self.content[n] = (b.value, 0)
        self.holder = {b.value: n for n, b in self.plan.buffers.items() if b.kind in ("input", "state")}
        self.updates = {self.holder[f.params[k]]: source(v) for k, v in zip(f.updates, f.update_values, strict=True)}
        self.donated = {self.holder[f.params[k]] for k in self.plan.donated}
        self.dirty: int | None = None  # the first step that wrote into a state

    def run(self) -> None:
        for at, step in enumerate(self.plan.steps):
            self._shape(at, step)
            wanted = [source(step.value)] if step.kind == "copy" else [source(o) for o in step.value.operands]
            for k, (name, want) in enumerate(zip(step.reads, wanted, strict=True)):
                if self.content.get(name) != want:
                    raise self._wrong(at, step, k, name, want)
            if self.dirty is not None and step.kind != "copy" and self.fails(step.value):
                raise bug(self.plan, f"{describe(at, step)} may fail after step {self.dirty} wrote over a state", step)
            self._in_place(at, step)
            for r, name in enumerate(step.writes):
                new = wanted[0] if step.kind == "copy" else (step.value, r)
                self._may_write(at, step, name, new)
                self.content[name] = new

    def _wrong(self, at: int, step: Step, k: int, name: str, want: Source) -> PlanError:
        have = self.content.get(name)
        holds = "nothing" if have is None else f"{have[0].op.name} : {have[0].type}"
        return bug(self.plan, f"{describe(at, step)} reads operand {k}, {want[0].op.name} : {want[0].type}, "
                              f"from %{name}, which holds {holds}", step)

    def _shape(self, at: int, step: Step) -> None:
        """The right number of buffers, all known, large enough and of a kind that can be written."""
        types = result_types(step.value)
        operands = 1 if step.kind == "copy" else len(step.value.operands)
        if len(step.reads) != operands or len(step.writes) != len(types):
            raise bug(self.plan, f"{describe(at, step)}: {len(step.reads)} operands, {len(step.writes)} results", step)
        for name in (*step.reads, *step.writes):
            if name not in self.plan.buffers:
                raise bug(self.plan, f"{describe(at, step)} uses %{name}, which is no buffer", step)
        if len(set(step.writes)) != len(step.writes):
            raise bug(self.plan, f"{describe(at, step)} writes two results into one buffer", step)
        for name, t in zip(step.writes, types, strict=True):
            if not at_least(self.plan.buffers[name].nbytes, t.nbytes):
                raise bug(self.plan, f"{describe(at, step)} writes {t.nbytes} bytes into %{name} of "
                                     f"{self.plan.buffers[name].nbytes} bytes", step)

    def _may_write(self, at: int, step: Step, name: str, new: Source) -> None:
        kind = self.plan.buffers[name].kind
        if kind == "constant" or (kind == "input" and name not in self.donated):
            raise bug(self.plan, f"{describe(at, step)} writes over the {kind} %{name}", step)
        if kind == "state":
            if self.updates.get(name) != new:
                raise bug(self.plan, f"{describe(at, step)} writes over the state %{name}, but not its new value", step)
            if step.kind != "copy" and self.fails(step.value):
                raise bug(self.plan, f"{describe(at, step)} may fail while it writes over the state %{name}", step)
            self.dirty = at if self.dirty is None else self.dirty

    def _in_place(self, at: int, step: Step) -> None:
        if step.kind == "copy":
            if step.reads == step.writes:
                raise bug(self.plan, f"{describe(at, step)} copies a buffer onto itself", step)
            return
        pairs: Pairs | None = None
        for r, name in enumerate(step.writes):
            for k, read in enumerate(step.reads):
                if read == name:
                    pairs = self.inplace(step.value) if pairs is None else pairs
                    if (k, r) not in pairs:
                        raise bug(self.plan, f"{describe(at, step)} writes result {r} over operand {k} (%{name}), "
                                             "which this operation does not admit in place", step)

    def outcome(self) -> None:
        """Every result is in its buffer, and no two share one."""
        f = self.plan.function
        n = len(f.outputs)
        if len(self.plan.results) != len(f.body.results):
            raise bug(self.plan, f"{len(self.plan.results)} results for {len(f.body.results)}")
        for k, (name, v) in enumerate(zip(self.plan.results, f.body.results, strict=True)):
            if name not in self.plan.buffers or self.content.get(name) != source(v):
                raise bug(self.plan, f"result {k}, {v.op.name} : {v.type}, is not in %{name} at the end")
            own = self.holder[f.params[f.updates[k - n]]] if k >= n else None
            if self.plan.buffers[name].kind != "result" and name != own:
                raise bug(self.plan, f"result {k} is returned in %{name}, a {self.plan.buffers[name].kind} buffer")
        if len(set(self.plan.results)) != len(self.plan.results):
            raise bug(self.plan, "two results share a buffer")
        updated = dict(zip(self.updates, self.plan.results[n:], strict=True))
        for name, b in self.plan.buffers.items():
            if b.kind == "state" and self.content[name] != (b.value, 0) and updated.get(name) != name:
                raise bug(self.plan, f"the state %{name} was written over, but its new value is elsewhere")


# --- the arena --------------------------------------------------------------------------------------------------------


def check_arena(plan: Plan) -> None:
    """Temps lie inside the arena, aligned, and those alive together lie apart."""
    for n, b in plan.buffers.items():
        if (b.kind == "temp") != (n in plan.offsets):
            raise bug(plan, f"%{n}, a {b.kind}, has {'an' if n in plan.offsets else 'no'} offset in the arena")
    if not plan.offsets and plan.arena != 0:
        raise bug(plan, f"an arena of {plan.arena} bytes for no temps")
    order = _Order(plan)
    for n, at in plan.offsets.items():
        if not _multiple(at, 64):
            raise bug(plan, f"%{n} starts at byte {at} of the arena, not known to be a multiple of 64")
        if not order.before(at, plan.buffers[n].nbytes, plan.arena):
            raise bug(plan, f"%{n} ({plan.buffers[n].nbytes} bytes at {at}) is not known to end "
                            f"inside the arena of {plan.arena} bytes")
    lives = [h for h in held(plan) if plan.buffers[h.buffer].kind == "temp" and plan.buffers[h.buffer].nbytes != 0]
    ending = sorted(lives, key=lambda h: h.last)
    alive = _Alive(plan, order)
    gone = 0
    for h in lives:  # sorted by first step
        while ending[gone].last < h.first:
            alive.remove(ending[gone])
            gone += 1
        alive.add(h)


def _multiple(size: Size, of: int) -> bool:
    return all(c % of == 0 for _, c in size.terms) if isinstance(size, Dim) else size % of == 0


class _Order:
    """Which of the places where temps start are known to come one after another, whatever the sizes."""

    def __init__(self, plan: Plan):
        self.nonnegative = {b.nbytes for b in plan.buffers.values()}
        self.starts = sorted(dict.fromkeys([*plan.offsets.values(), plan.arena]), key=nominal)
        self.rank = {o: k for k, o in enumerate(self.starts)}
        self.run = [0]  # starts with the same number are known to be in order
        for a, b in zip(self.starts, self.starts[1:], strict=False):
            self.run.append(self.run[-1] + (not self._at_least(b, a)))

    def _at_least(self, b: Size, a: Size) -> bool:
        return at_least(b, a) or b - a in self.nonnegative

    def before(self, start: Size, nbytes: Size, other: Size) -> bool:
        """Do ``nbytes`` bytes from ``start`` on end at or before ``other``?"""
        end = start + nbytes
        if self._at_least(other, end):
            return True
        k, j = self.rank[start] + 1, self.rank[other]
        return k <= j and self.run[k] == self.run[j] and self._at_least(self.starts[k], end)


class _Alive:
    """What is alive in the arena, sorted by place; each lies before the next, so only neighbours are compared."""

    def __init__(self, plan: Plan, order: _Order):
        self.plan, self.order = plan, order
        self.keys: list[tuple[int, str]] = []
        self.now: dict[tuple[int, str], Held] = {}

    def _key(self, h: Held) -> tuple[int, str]:
        return self.order.rank[self.plan.offsets[h.buffer]], h.buffer

    def remove(self, h: Held) -> None:
        key = self._key(h)
        if self.now.get(key) is h:
            del self.now[key]
            del self.keys[bisect.bisect_left(self.keys, key)]

    def add(self, h: Held) -> None:
        key = self._key(h)
        if key not in self.now:
            k = bisect.bisect_left(self.keys, key)
            for a, b in [(self.keys[k - 1], key)] if k else []:
                self._apart(h, a, b)
            for a, b in [(key, self.keys[k])] if k < len(self.keys) else []:
                self._apart(h, a, b)
            self.keys.insert(k, key)
        self.now[key] = h  # the same buffer, in place

    def _apart(self, h: Held, a: tuple[int, str], b: tuple[int, str]) -> None:
        first, second = self.plan.offsets[a[1]], self.plan.offsets[b[1]]
        if not self.order.before(first, self.plan.buffers[a[1]].nbytes, second):
            raise bug(self.plan, f"%{a[1]} (at {first}) and %{b[1]} (at {second}) are not known to lie apart in the "
                                 f"arena, but are alive together at step {h.first}", self.plan.steps[h.first])
