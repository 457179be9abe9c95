"""Prove that a plan computes its function: an abstract run over *which value each buffer holds*, exact for all sizes.

Proved are: every step reads the values it is about; nothing is written over what is still to be read, in the arena
neither; inputs keep their bytes unless donated, states until nothing can fail; every result is there at the end, in
memory that it shares with nothing else that is returned; lanes wait for each other where they must, and sections that
run at the same time have nothing to wait for.
What is wrong here is a bug of symc.
"""

from __future__ import annotations

from collections.abc import Callable

from symc.codegen.plan.cells import Source, may_fail, source, step_fails
from symc.codegen.plan.check_arena import bug, check_arena, describe
from symc.codegen.plan.check_lanes import check_lanes
from symc.codegen.plan.check_nested import check_nested
from symc.codegen.plan.check_sections import check_sections
from symc.codegen.plan.compare_sizes import at_least
from symc.codegen.plan.inplace import Pairs, inplace_pairs
from symc.codegen.plan.nested import carry_pairs
from symc.errors import PlanError
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass
from symc.ir.value import Value


def check_plan(plan: Plan, inplace: Callable[[Value], Pairs] = inplace_pairs,
               fails: Callable[[Value], bool] = may_fail) -> None:
    """Raise PlanError if the plan is wrong, naming the step; else return."""
    _prove(plan, inplace, fails, False)


def _prove(plan: Plan, inplace: Callable[[Value], Pairs], fails: Callable[[Value], bool],
           rotating: bool) -> dict[str, Source]:
    """Contents of every buffer at the end."""
    check = _Check(plan, inplace, fails, rotating)
    check.run()
    check.outcome()
    check_arena(plan)
    check_lanes(plan, fails)
    check_sections(plan, fails)
    return check.content


@dataclass
class _Check:
    plan: Plan
    inplace: Callable[[Value], Pairs]
    fails: Callable[[Value], bool]
    rotating: bool  # is it the body of a loop, whose states take each other's memory after a step?

    def __post_init__(self) -> None:
        f = self.plan.function
        self.content: dict[str, Source] = {}
        for n, b in self.plan.buffers.items():
            if b.value is not None:
                self.content[n] = (b.value, 0)
        self.holder = {b.value: n for n, b in self.plan.buffers.items() if b.kind in ("input", "state")}
        self.updates = {self.holder[f.params[k]]: source(v) for k, v in zip(f.updates, f.update_values, strict=True)}
        if self.rotating:
            new = self.plan.results[len(f.outputs):]
            self.updates = {n: source(v) for n, v in zip(new, f.update_values, strict=False)}
        self.donated = {self.holder[f.params[k]] for k in self.plan.donated}
        self.dirty: int | None = None  # the first step that wrote into a state

    def run(self) -> None:
        for at, step in enumerate(self.plan.steps):
            self._shape(at, step)
            wanted = [source(step.value)] if step.kind == "copy" else [source(o) for o in step.value.operands]
            for k, (name, want) in enumerate(zip(step.reads, wanted, strict=True)):
                if self.content.get(name) != want:
                    raise self._wrong(at, step, k, name, want)
            if self.dirty is not None and step_fails(step, self.fails):
                raise bug(self.plan, f"{describe(at, step)} may fail after step {self.dirty} wrote over a state", step)
            self._in_place(at, step)
            for r, name in enumerate(step.writes):
                new = wanted[0] if step.kind == "copy" else (step.value, r)
                self._may_write(at, step, name, new)
                self.content[name] = new
            if step.kind == "control":
                self._nested(at, step)

    def _nested(self, at: int, step: Step) -> None:
        """A loop that fails leaves nothing that anyone sees: nothing in it waits for what may fail."""
        ends = [_prove(b, self.inplace, lambda v: False, True) for b in step.bodies]
        check_nested(self.plan, at, step, ends)
        if step.scratch is not None:
            self.content.pop(step.scratch, None)

    def _wrong(self, at: int, step: Step, k: int, name: str, want: Source) -> PlanError:
        have = self.content.get(name)
        holds = "nothing" if have is None else f"{have[0].op.name} : {have[0].type}"
        return bug(self.plan, f"{describe(at, step)} reads operand {k}, {want[0].op.name} : {want[0].type}, "
                              f"from %{name}, which holds {holds}", step)

    def _shape(self, at: int, step: Step) -> None:
        """The right number of buffers, all known, large enough and of a kind that can be written."""
        types = step.value.types
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
            if step_fails(step, self.fails):
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
                    pairs = self._pairs(step) if pairs is None else pairs
                    if (k, r) not in pairs:
                        raise bug(self.plan, f"{describe(at, step)} writes result {r} over operand {k} (%{name}), "
                                             "which this operation does not admit in place", step)

    def _pairs(self, step: Step) -> Pairs:
        if step.kind != "control":
            return self.inplace(step.value)
        return carry_pairs(step.layout, step.bodies[-1].given) if step.layout and step.bodies else ()

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
            taken = self.rotating and k >= n and self.plan.buffers[name].kind == "state"
            if self.plan.buffers[name].kind != "result" and name != own and not taken:
                raise bug(self.plan, f"result {k} is returned in %{name}, a {self.plan.buffers[name].kind} buffer")
        if len(set(self.plan.results)) != len(self.plan.results):
            raise bug(self.plan, "two results share a buffer")
        updated = dict(zip(self.updates, self.plan.results[n:], strict=True))
        for name, b in self.plan.buffers.items():
            if b.kind == "state" and self.content[name] != (b.value, 0) and updated.get(name) != name:
                raise bug(self.plan, f"the state %{name} was written over, but its new value is elsewhere")
