"""Bytes that a plan holds, before anything runs: in symbols for the plan's text, in numbers for ``f.memory``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symc.codegen.plan.cells import NOMINAL
from symc.ir.dim import Size
from symc.ir.plan import Plan
from symc.ir.record import dataclass
from symc.ir.size_values import estimate, evaluate, names
from symc.ir.types import TensorType
from symc.notebook import Shown, table

PERSISTENT = ("input", "state", "constant")


@dataclass(frozen=True)
class Held:
    """Something that ``buffer`` holds from step ``first`` to step ``last`` (both included)."""

    buffer: str
    type: TensorType
    first: int
    last: int


def held(plan: Plan) -> list[Held]:
    """Everything steps write, with its lifetime. What is returned is held to the end."""
    out: list[Held] = []
    now: dict[str, list] = {}
    for at, step in enumerate(plan.steps):
        for name in step.reads:
            if name in now:
                now[name][2] = at
        for name, t in zip(step.writes, step.value.types, strict=True):
            if name in now:
                out.append(Held(name, *now[name]))
            now[name] = [t, at, at]
        if step.scratch is not None:
            out.append(Held(step.scratch, plan.types[step.scratch], at, at))
    for name in plan.results:
        if name in now:
            now[name][2] = max(len(plan.steps) - 1, 0)
    return sorted([*out, *[Held(n, *h) for n, h in now.items()]], key=lambda h: (h.first, h.last))


def persistent(plan: Plan) -> Size:
    """Bytes of inputs, states and constants."""
    return _total(b.nbytes for b in plan.buffers.values() if b.kind in PERSISTENT)


def peak(plan: Plan) -> Size:
    """Bytes of everything the plan has: inputs, states, constants, results and the arena."""
    return _total([*[b.nbytes for b in plan.buffers.values() if b.kind != "temp"], plan.arena])


def count_buffers(plan: Plan) -> int:
    """The number of separate stretches of memory of the plan."""
    apart = {plan.offsets.get(n, 0) for n, b in plan.buffers.items() if b.kind == "temp"}
    return sum(b.kind != "temp" for b in plan.buffers.values()) + len(apart)


def lower_bound(plan: Plan) -> Size:
    """Bytes alive at the step where most are (at nominal sizes): no packing of this sequence can do with less."""
    every: set[str] = set().union(*[names(h.type.nbytes) for h in _distinct(plan)])
    at, _ = _fullest(plan, dict.fromkeys(every, NOMINAL))
    return persistent(plan) + _total(h.type.nbytes for h in _alive(plan, at))


def _distinct(plan: Plan) -> list[Held]:
    return list({h.type: h for h in held(plan)}.values())


def _alive(plan: Plan, at: int) -> list[Held]:
    """Buffers that are held at a step outside of inputs and states; what overwrites in place counts once."""
    now = [h for h in held(plan) if h.first <= at <= h.last and plan.buffers[h.buffer].kind not in PERSISTENT]
    return list({h.buffer: h for h in now}.values())


def _fullest(plan: Plan, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The step at which most bytes are held outside of inputs and states, and how many."""
    change = [0] * (len(plan.steps) + 1)
    ends: dict[str, tuple[int, int]] = {}
    known: dict[TensorType, int] = {}
    for h in held(plan):
        if plan.buffers[h.buffer].kind in PERSISTENT:
            continue
        n = known[h.type] if h.type in known else known.setdefault(h.type, estimate(h.type.nbytes, sizes))
        last, bytes_ = ends.get(h.buffer, (-1, 0))
        if last == h.first:  # written over in place: not twice at this step
            change[h.first] -= bytes_
            change[h.first + 1] += bytes_
        change[h.first] += n
        change[h.last + 1] -= n
        ends[h.buffer] = (h.last, n)
    best, most, now = 0, 0, 0
    for at, d in enumerate(change[:-1]):
        now += d
        if now > most:
            best, most = at, now
    return best, most


def _total(sizes: Any) -> Size:
    """A sum; equal sizes are counted first, so that many terms stay cheap."""
    counts: dict[Size, int] = {}
    for s in sizes:
        counts[s] = counts.get(s, 0) + 1
    out: Size = 0
    for s, k in counts.items():
        out = out + s * k
    return out


@dataclass(frozen=True)
class Row:
    """One line of the report: bytes of a buffer, what it is, and when it is in use."""

    buffer: str
    kind: str
    nbytes: int
    offset: int | None
    first: int
    last: int


class MemoryReport(Shown, int):
    """Peak bytes, as an int; ``print`` shows the table.

    ``naive``: if every array that a step writes had memory of its own. ``lower_bound``: bytes alive at the fullest
    step; no packing of this sequence of steps can do with less. ``arena``: bytes of the shared scratch memory.
    """

    naive: int
    lower_bound: int
    arena: int
    rows: tuple[Row, ...]

    def __new__(cls, peak: int, naive: int, lower_bound: int, arena: int, rows: tuple[Row, ...]) -> MemoryReport:
        self = super().__new__(cls, peak)
        self.naive, self.lower_bound, self.arena, self.rows = naive, lower_bound, arena, rows
        return self

    def __getnewargs__(self) -> tuple:
        return int(self), self.naive, self.lower_bound, self.arena, self.rows

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __repr__(self) -> str:
        return f"MemoryReport({int(self)}, naive={self.naive}, lower_bound={self.lower_bound})"

    def _html_(self) -> str:
        rows = [(f"%{r.buffer}", r.kind, f"{r.nbytes:,}", "" if r.kind in PERSISTENT else f"{r.first}..{r.last}",
                 f"arena + {r.offset:,}" if r.offset is not None else "") for r in self.rows]
        return table(["buffer", "kind", "bytes", "steps", "place"], rows, [True, True, False, True, True],
                     f"peak {int(self):,} bytes, naive {self.naive:,}, lower bound {self.lower_bound:,}")

    def __str__(self) -> str:
        lines = [f"peak {int(self):,} bytes, naive {self.naive:,}, lower bound {self.lower_bound:,}"]
        wide = max([len(r.buffer) for r in self.rows], default=0)
        for r in self.rows:
            place = f"arena + {r.offset:,}" if r.offset is not None else ""
            steps = "" if r.kind in PERSISTENT else f"steps {r.first}..{r.last}"
            lines.append(f"  %{r.buffer:{wide}}  {r.kind:8}  {r.nbytes:>16,}  {steps:16}  {place}".rstrip())
        return "\n".join(lines)


def _written(plan: Plan, sizes: Mapping[str, int]) -> int:
    """Bytes of everything that steps write; of a loop, what one step of it writes."""
    return sum(sum(evaluate(t.nbytes, sizes) for t in s.value.types) + sum(_written(b, sizes) for b in s.bodies)
               for s in plan.steps)


def memory(plan: Plan, sizes: Mapping[str, int]) -> MemoryReport:
    """Bytes for these sizes. Raises KeyError for a size name that has no number."""
    used: dict[str, tuple[int, int]] = {}
    for h in held(plan):
        first, last = used.get(h.buffer, (h.first, h.last))
        used[h.buffer] = (min(first, h.first), max(last, h.last))
    rows = []
    for n, b in plan.buffers.items():
        offset = evaluate(plan.offsets[n], sizes) if n in plan.offsets else None
        first, last = used.get(n, (0, 0))
        if b.kind in PERSISTENT:
            first, last = 0, max(len(plan.steps) - 1, 0)
        rows.append(Row(n, b.kind, evaluate(b.nbytes, sizes), offset, first, last))
    fixed = evaluate(persistent(plan), sizes)
    arena = evaluate(plan.arena, sizes)
    results = sum(r.nbytes for r in rows if r.kind == "result")
    naive = fixed + _written(plan, sizes)
    return MemoryReport(fixed + results + arena, naive, fixed + _fullest(plan, sizes)[1], arena, tuple(rows))
