"""Work that is to be planned: steps that read and write cells. Integers only, so that planning 100,000 values stays
cheap.

A cell is one array that exists at some time: an input, a constant, one result of an op, or a copy that an interface
needs. Views and projections are not cells of their own. Nothing here says where a cell lies or when a step runs.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable

from symc.codegen.kernel.names import is_kernel
from symc.codegen.plan.gemm import as_gemm, is_product
from symc.codegen.plan.inplace import Pairs
from symc.ir.dim import Size
from symc.ir.function import Function
from symc.ir.op import Control, View
from symc.ir.ops.control import cond
from symc.ir.ops.effect import has_effect, program_order
from symc.ir.ops.kernel import projection
from symc.ir.ops.loop import is_long
from symc.ir.plan import Layout, Plan, Step
from symc.ir.record import dataclass, field
from symc.ir.size_values import number
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Region, Value

#: Symbolic sizes are weighed against each other as if every size name were this number.
NOMINAL = 1024


Source = tuple[Value, int]  # result k of an op that is neither a view nor a projection


@dataclass(frozen=True, eq=False)
class Nest:
    """Plans of a loop or branch: plans of its regions, and ``nbytes`` bytes of scratch laid out as ``layout`` says."""

    bodies: tuple[Plan, ...]
    layout: Layout
    nbytes: Size
    pairs: Pairs


@dataclass(eq=False)
class Work:
    """``reads[s]``: the cell of every operand of step s; ``writes[s]``: the cell of every result.

    ``leaves``: params and constants by cell. ``inputs``/``results``: the cell of every function input / body result.
    ``copies``: steps that copy a cell, because two things that are returned must not share memory.
    ``targets``: cell of a state's new value -> cell of the state it replaces.
    ``effects``: steps that must run one after another, in this order.
    ``after``: by step, the cells that must have been written before it starts, besides those that it reads.
    ``owned``: inputs (cells) that may be overwritten. ``pairs[s]``: what step s may do in place.
    ``nests``: the plans inside of the steps that are loops and branches; ``depth``: how many of them are around.
    """

    function: Function
    values: list[Value] = field(default_factory=list)
    reads: list[tuple[int, ...]] = field(default_factory=list)
    writes: list[tuple[int, ...]] = field(default_factory=list)
    pairs: list[Pairs] = field(default_factory=list)
    types: list[TensorType] = field(default_factory=list)
    leaves: dict[int, Value] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    copies: set[int] = field(default_factory=set)
    fallible: set[int] = field(default_factory=set)
    effects: list[int] = field(default_factory=list)
    after: dict[int, tuple[int, ...]] = field(default_factory=dict)
    targets: dict[int, int] = field(default_factory=dict)
    owned: set[int] = field(default_factory=set)
    nests: dict[int, Nest] = field(default_factory=dict)
    depth: int = 0
    readers: list[list[int]] = field(default_factory=list)
    maker: list[int] = field(default_factory=list)

    def cell(self, type_: TensorType) -> int:
        self.types.append(type_)
        return len(self.types) - 1

    def step(self, value: Value, reads: tuple[int, ...], pairs: Pairs = ()) -> tuple[int, ...]:
        types = value.types
        written = tuple(self.cell(t) for t in types)
        self.values.append(value)
        self.reads.append(reads)
        self.writes.append(written)
        self.pairs.append(pairs)
        return written

    def sizes(self) -> list[Size]:
        """Bytes of every cell."""
        known: dict[TensorType, Size] = {}
        return [known[t] if t in known else known.setdefault(t, t.nbytes) for t in self.types]

    def numbers(self) -> list[int]:
        """Bytes of every cell at nominal sizes."""
        known = {t: nominal(t.nbytes) for t in dict.fromkeys(self.types)}
        return [known[t] for t in self.types]

    def scratch(self) -> list[int]:
        """Bytes that every step needs for itself alone, at nominal sizes."""
        return [nominal(self.nests[s].nbytes) if s in self.nests else 0 for s in range(len(self.values))]


@functools.lru_cache(maxsize=4096)
def nominal(size: Size) -> int:
    """A number that stands for a symbolic size in comparisons."""
    return max(0, number(size, NOMINAL))


def is_view(v: Value) -> bool:
    """True if ``v`` is the same bytes as its operand."""
    return isinstance(v.op.lowering, View)


def source(v: Value) -> Source:
    """The op and result whose bytes ``v`` is."""
    while isinstance(v.op.lowering, View):
        v = v.operands[0]
    return projection(v)


def may_fail(v: Value) -> bool:
    """True if computing ``v`` can raise.

    Kernels without index checks and matrix products cannot; loops, and kernels that are long loops, may be interrupted;
    any other call may fail, if only for want of memory. A branch may if a step of it may."""
    if is_product(v):
        return as_gemm(v) is None
    if isinstance(v.op.lowering, Control):
        return v.op is not cond
    return not is_kernel(v) or stops(v.regions[0])


_stopping: weakref.WeakKeyDictionary[Region, bool] = weakref.WeakKeyDictionary()


def stops(region: Region) -> bool:
    """True if a kernel checks indices or anything else, or looks for signals."""
    found = _stopping.get(region)
    if found is None:
        found = _stopping[region] = any(
            "checks" in v.op.traits or is_long(v) or any(map(stops, v.regions)) for v in postorder(region.results))
    return found


def plan_fails(plan: Plan, fails: Callable[[Value], bool]) -> bool:
    """True if a step of the plan can raise."""
    return any(step_fails(s, fails) for s in plan.steps)


def step_fails(step: Step, fails: Callable[[Value], bool]) -> bool:
    """True if a step can raise. A loop or branch can if a step inside can."""
    if step.kind == "control":
        return fails(step.value) or any(plan_fails(b, fails) for b in step.bodies)
    return step.kind != "copy" and fails(step.value)


def work_of(f: Function, inplace: Callable[[Value], Pairs], fails: Callable[[Value], bool] = may_fail,
            donated: frozenset[int] = frozenset(), nest: Callable[[Value], Nest] | None = None,
            depth: int = 0) -> Work:
    """The steps of ``f`` in postorder, then the copies that its results need.

    ``nest``: how loops and branches run. ``depth``: of how many loops and branches ``f`` is the body; the states of
    a body take each other's memory after a step.
    """
    w = Work(f, depth=depth)
    where: dict[Value, tuple[int, ...]] = {}
    ties: dict[Value, tuple[int, ...]] = {}  # views: the cells that what is made of them waits for
    for v in f.params:
        w.inputs.append(w.cell(v.type))
        w.leaves[w.inputs[-1]] = v
        where[v] = (w.inputs[-1],)
    w.owned = {w.inputs[k] for k in donated if f.inputs[k].role != "state"}
    for v in program_order(f.body.results):
        if v in where:
            continue
        if v.op.name == "get":
            where[v] = (where[v.operands[0]][v.attrs["index"]],)
        elif is_view(v):
            where[v] = where[v.operands[0]]
            ties[v] = (*ties.get(v.operands[0], ()), *[where[o][0] for o in v.operands[1:]])
        elif v.op.name == "constant":
            where[v] = (w.cell(v.type),)
            w.leaves[where[v][0]] = v
        else:
            inner = nest(v) if nest is not None and isinstance(v.op.lowering, Control) else None
            if inner is not None:
                w.nests[len(w.values)] = inner
            if fails(v) or inner is not None and any(plan_fails(b, fails) for b in inner.bodies):
                w.fallible.add(len(w.values))
            if has_effect(v):
                w.effects.append(len(w.values))
            if any(ties.get(o) for o in v.operands):
                w.after[len(w.values)] = tuple(dict.fromkeys(c for o in v.operands for c in ties.get(o, ())))
            where[v] = w.step(v, tuple(where[o][0] for o in v.operands), inner.pairs if inner else inplace(v))
    _claim_results(w, [where[r][0] for r in f.body.results], depth > 0)
    link(w)
    return w


def _claim_results(w: Work, cells: list[int], rotating: bool) -> None:
    """Give every result a cell of its own. Who comes first has it; leaves belong to nobody but the state they are.

    ``rotating``: the old value of a state may be the new value of another; the state whose memory that leaves without
    an owner is written over by who lost its own.
    """
    f = w.function
    outputs = len(f.outputs)
    states = [w.inputs[k] for k in f.updates]
    taken: set[int] = set()
    for k, (value, cell) in enumerate(zip(f.body.results, cells, strict=True)):
        keeps = k >= outputs and (cell in states if rotating else cell == states[k - outputs])
        resized = rotating and k >= outputs and w.types[cell].nbytes != w.types[states[k - outputs]].nbytes
        if cell in taken or (cell in w.leaves and not keeps) or resized:
            w.copies.add(len(w.values))
            cell = w.step(value, (cell,))[0]
        taken.add(cell)
        w.results.append(cell)
    new = w.results[outputs:]
    w.targets = {c: s for c, s in zip(new, states, strict=True) if c not in states and s not in taken}
    left = [s for s in states if s not in taken and s not in w.targets.values()]
    sizes = {s: w.types[s].nbytes for s in left}
    for c in new if left else ():
        if c not in states and c not in w.targets:
            over = next((s for s in left if sizes[s] == w.types[c].nbytes), None)
            if over is not None:
                w.targets[c] = over
                left.remove(over)


def link(w: Work) -> None:
    """Find the readers and the maker of every cell."""
    w.readers = [[] for _ in w.types]
    w.maker = [-1] * len(w.types)
    for s, (reads, writes) in enumerate(zip(w.reads, w.writes, strict=True)):
        for c in dict.fromkeys(reads):
            w.readers[c].append(s)
        for c in writes:
            w.maker[c] = s


def waits(w: Work) -> list[tuple[int, int]]:
    """Pairs of steps of which the second waits for the first, without reading what it wrote."""
    return [(w.maker[c], s) for s, cells in w.after.items() for c in cells if w.maker[c] >= 0]
