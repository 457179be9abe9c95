"""Prove that a loop or branch does with its memory what its layout says, and that this computes its value.

The plans of the bodies are proved on their own before (what each buffer holds at the end of a step). Proved here is
what holds between steps: every body is that of its region; a carry finds its new value where it will look; memory that
a later step still reads is not written by then; what lies in the scratch lies apart, inside, aligned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symc.codegen.plan.cells import Source, source
from symc.codegen.plan.check_arena import Order, bug, describe
from symc.codegen.plan.compare_sizes import multiple
from symc.errors import PlanError
from symc.ir.dim import Size
from symc.ir.plan import Layout, Plan, Step


def check_nested(plan: Plan, at: int, step: Step, ends: Sequence[Mapping[str, Source]]) -> None:
    """Raise PlanError for a control step that is wrong. ``ends[k]``: what the buffers of body k hold at its end."""
    check = _Nested(plan, at, step)
    check.interfaces()
    if step.value.op.name != "cond":
        check.carries(ends[-1])
        check.moves()
    check.scratch()


class _Nested:
    def __init__(self, plan: Plan, at: int, step: Step):
        self.plan, self.at, self.step, self.value = plan, at, step, step.value
        if step.layout is None or len(step.bodies) != len(self.value.regions):
            raise self.wrong(f"has {len(step.bodies)} bodies for {len(self.value.regions)} regions")
        self.layout: Layout = step.layout
        self.body = step.bodies[-1]
        self.carry = self.value.attrs.get("carry", 0)
        self.given = self.body.given
        self.outputs = self.body.results[: len(self.body.function.outputs)]
        self.second = [n for n, b in self.body.buffers.items() if b.kind == "result" and n not in self.outputs]

    def wrong(self, what: str) -> PlanError:
        return bug(self.plan, f"{describe(self.at, self.step)} {what}", self.step)

    def interfaces(self) -> None:
        """Every body has the params and results of its region, and writes only what is its own."""
        loop = self.value.op.name != "cond"
        for k, (body, region) in enumerate(zip(self.step.bodies, self.value.regions, strict=True)):
            carries = loop and body is self.body
            results = region.results[self.carry:] if carries else region.results
            if body.function.body.params != region.params or body.function.outputs != tuple(results):
                raise self.wrong(f"has a body {k} that is not that of its region")
            wanted = ["input"] * len(region.params)
            if carries:
                wanted[: self.carry] = ["input" if h == "operand" else "state" for h in self.layout.homes]
            if body.donated or [body.buffers[n].kind for n in body.given] != wanted:
                raise self.wrong(f"has a body {k} that may write over what it is given")

    def carries(self, end: Mapping[str, Source]) -> None:
        """The buffer that a carry is read from in the next step holds its new value."""
        if len(self.layout.homes) != self.carry or set(self.layout.homes) - {"operand", "result", "scratch"}:
            raise self.wrong(f"has homes {self.layout.homes} for {self.carry} carries")
        nexts = dict(self.layout.moves)
        for k, new in enumerate(self.value.regions[-1].results[: self.carry]):
            name = nexts.get(self.given[k], self.given[k])
            if end.get(name) != source(new):
                raise self.wrong(f"reads carry {k} from %{name}, which does not hold its new value")

    def moves(self) -> None:
        """Memory that a body writes changes owners one to one; memory that only carries read stays as it is."""
        moves = self.layout.moves
        if len(dict(moves)) != len(moves):
            raise self.wrong("moves a buffer to two places")
        states = [n for n in self.given[: self.carry] if self.body.buffers[n].kind == "state"]
        written = {*states, *self.second}
        stays = {*self.outputs, *[n for n, b in self.body.buffers.items() if b.kind in ("input", "constant")]}
        for a, b in moves:
            if a in written and b in written and self.body.buffers[a].nbytes == self.body.buffers[b].nbytes:
                continue
            if a in written or a not in self.given[: self.carry] or b not in stays:
                raise self.wrong(f"moves %{a} to %{b}, whose memory it must not have")
        own = [(a, b) for a, b in moves if a in written]
        if sorted(a for a, _ in own) != sorted(b for _, b in own):
            raise self.wrong("gives two buffers the same memory after a step")

    def scratch(self) -> None:
        """Places, flag and each arena lie apart and inside the scratch, which is nothing else meanwhile."""
        layout, name = self.layout, self.step.scratch
        scratch_homes = [n for n, h in zip(self.given, layout.homes, strict=False) if h == "scratch"]
        wanted = {*self.second, *scratch_homes} if self.carry else set()
        if set(layout.places) != wanted or (layout.flag is not None) != (self.value.op.name == "while"):
            raise self.wrong("has no place, or one too many, for what a body writes")
        if len(layout.arenas) != len(self.step.bodies):
            raise self.wrong(f"has {len(layout.arenas)} arenas for {len(self.step.bodies)} bodies")
        if name is not None and (name in (*self.step.reads, *self.step.writes) or name not in self.plan.offsets):
            raise self.wrong(f"uses %{name} as scratch, which is not its own")
        if name is None and (wanted or layout.flag is not None or any(b.offsets for b in self.step.bodies)):
            raise self.wrong("has no scratch")
        total = self.plan.buffers[name].nbytes if name is not None else 0
        places = [(o, self.body.buffers[n].nbytes) for n, o in layout.places.items()]
        places += [(layout.flag, 1)] if layout.flag is not None else []
        for start, body in zip(layout.arenas, self.step.bodies, strict=True):
            self._apart([*places, *([(start, body.arena)] if body.offsets else [])], total)

    def _apart(self, stretches: Sequence[tuple[Size, Size]], total: Size) -> None:
        order = Order([n for _, n in stretches], [*[o for o, _ in stretches], total])
        placed = sorted(stretches, key=lambda s: order.rank[s[0]])
        for k, (start, nbytes) in enumerate(placed):
            after = placed[k + 1][0] if k + 1 < len(placed) else total
            if not multiple(start, 64) or not order.before(start, nbytes, after):
                raise self.wrong(f"has {nbytes} bytes at {start} of its scratch, not known to be aligned and to end "
                                 f"before {after}")
