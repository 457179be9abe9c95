"""Give cells memory: buffers, and steps that name them.

A result is written over an operand that dies with the step where ``place`` allows it, a state's new value over the old
one, everything that is returned into a fresh buffer. Temps get names here and their places in the arena in ``reuse``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symc.codegen.kernel.names import is_kernel
from symc.codegen.plan.cells import Nest, Work, nominal
from symc.codegen.plan.compare_sizes import at_least
from symc.codegen.plan.overwrite import Placer, placements
from symc.ir.dim import Size
from symc.ir.plan import Buffer, Plan, Step
from symc.ir.record import replace
from symc.ir.text import input_names
from symc.ir.types import TensorType

#: Moving temps into result buffers compares every temp with every result; up to this many comparisons.
HOSTED = 100_000
#: What buffers are called inside of loops and branches.
INSIDE = {"b": "t", "c": "k"}


def bufferize(w: Work, sequence: Sequence[int], reuse: bool = True, hosted: bool = True) -> Plan:
    """A plan without an arena: every temp is a buffer, no temp has an offset yet. ``hosted``: results may serve as
    temps until they are written."""
    f = w.function
    placed = placements(w, sequence, Placer(w, reuse))
    maker = _Buffers(w)
    steps = []
    for s in sequence:
        writes = tuple(maker.write(c, over) for c, over in zip(w.writes[s], placed[s], strict=True))
        reads = tuple(maker.held[c] for c in w.reads[s])
        if s in w.nests:
            inner = w.nests[s]
            steps.append(Step("control", w.values[s], reads, writes, bodies=inner.bodies, layout=inner.layout,
                              scratch=maker.scratch(inner)))
        else:
            kind = "copy" if s in w.copies else "launch" if is_kernel(w.values[s]) else "call"
            steps.append(Step(kind, w.values[s], reads, writes))
    results = tuple(maker.held[c] for c in w.results)
    kinds = {r: "result" for r in results if maker.buffers[r].kind == "temp"}
    buffers = {n: Buffer(n, kinds.get(n, b.kind), b.nbytes, b.value) for n, b in maker.buffers.items()}
    donated = frozenset(k for k, c in enumerate(w.inputs) if c in w.owned)
    plan = Plan(f, buffers, tuple(steps), results, maker.types, donated=donated)
    return host_in_results(plan, spans(plan.steps)) if reuse and hosted else plan


class _Buffers:
    def __init__(self, w: Work):
        self.sizes: list[Size] = w.sizes()
        self.cell_types = w.types
        self.counts: dict[str, int] = {}
        self.buffers: dict[str, Buffer] = {}
        self.types: dict[str, TensorType] = {}
        self.held: dict[int, str] = {}
        self.taken = set(input_names(w.function))
        self.depth = w.depth
        for c, name, i in zip(w.inputs, input_names(w.function), w.function.inputs, strict=True):
            self._add(c, Buffer(name, "state" if i.role == "state" else "input", self.sizes[c], w.leaves[c]))
        for c, value in w.leaves.items():
            if c not in self.held:
                self._add(c, Buffer(self.fresh("c"), "constant", self.sizes[c], value))

    def _add(self, c: int, buffer: Buffer) -> str:
        self.buffers[buffer.name], self.types[buffer.name], self.held[c] = buffer, self.cell_types[c], buffer.name
        return buffer.name

    def fresh(self, prefix: str) -> str:
        """The next of ``b0, b1, ...`` that no input is called; in loops ``t0, ...``, deeper ones ``t0_2, ...``."""
        prefix = INSIDE[prefix] if self.depth else prefix
        suffix = f"_{self.depth}" if self.depth > 1 else ""
        while True:
            k = self.counts.get(prefix, 0)
            self.counts[prefix] = k + 1
            if f"{prefix}{k}{suffix}" not in self.taken:
                return f"{prefix}{k}{suffix}"

    def write(self, c: int, over: int | None) -> str:
        if over is None:
            return self._add(c, Buffer(self.fresh("b"), "temp", self.sizes[c]))
        name = self.held[c] = self.held[over]
        if self.buffers[name].kind == "temp":
            self.types[name] = self.cell_types[c]
        return name


    def scratch(self, inner: Nest) -> str | None:
        """A temp that a loop or branch alone uses, if anything lies in it (perhaps of no bytes)."""
        if not inner.layout.places and inner.layout.flag is None and not any(b.offsets for b in inner.bodies):
            return None
        name = self.fresh("b")
        self.buffers[name] = Buffer(name, "temp", inner.nbytes)
        self.types[name] = TensorType("u8", (inner.nbytes,))
        return name


def spans(steps: Sequence[Step]) -> dict[str, tuple[int, int]]:
    """First and last position at which each buffer is used."""
    out: dict[str, tuple[int, int]] = {}
    for at, step in enumerate(steps):
        for name in (*step.reads, *step.writes):
            out[name] = (out[name][0] if name in out else at, at)
        if step.scratch is not None:
            out[step.scratch] = (at, at)
    return out


def host_in_results(plan: Plan, span: Mapping[str, tuple[int, int]]) -> Plan:
    """Put temps that die before a result buffer is first written into that buffer: memory that waits anyway. ``span``:
    when each buffer is used first and last."""
    results = [n for n, b in plan.buffers.items() if b.kind == "result" and span[n][0] > 0]
    scratch = {s.scratch for s in plan.steps}
    temps = [n for n, b in plan.buffers.items() if b.kind == "temp" and n not in scratch]
    if not results or not temps or len(results) * len(temps) > HOSTED:
        return plan
    numbers = {n: nominal(plan.buffers[n].nbytes) for n in (*results, *temps)}
    # backwards in time, a result buffer is free from its first writing on: the temp that is needed there first takes it
    temps.sort(key=lambda n: (-numbers[n], -span[n][1], span[n][0]))
    moved: dict[str, str] = {}
    for host in sorted(results, key=lambda n: (numbers[n], -span[n][0])):
        guests: list[tuple[int, int]] = []
        for n in temps:
            first, last = span[n]
            if n in moved or last >= span[host][0] or any(first <= b and a <= last for a, b in guests):
                continue
            if at_least(plan.buffers[host].nbytes, plan.buffers[n].nbytes):
                moved[n] = host
                guests.append(span[n])
    if not moved:
        return plan
    return _renamed(plan, moved)


def _renamed(plan: Plan, moved: dict[str, str]) -> Plan:
    def new(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(moved.get(n, n) for n in names)

    buffers = {n: b for n, b in plan.buffers.items() if n not in moved}
    return replace(plan, buffers=buffers, types={n: plan.types[n] for n in buffers},
                   steps=tuple(replace(s, reads=new(s.reads), writes=new(s.writes)) for s in plan.steps))
