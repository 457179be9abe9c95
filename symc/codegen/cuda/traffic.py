"""Traffic of a kernel: what must cross memory, what its launches move, and how many operations it does.

Read off the loops: a load moves one element for each step of the loops that its place depends on, but no more than its
array; caches are believed to keep what neighbouring steps share. What is counted beside that is what makes launches
slow: arrays that several launches or passes read, scratch memory, and threads of a warp that read far apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from symc.codegen.cpu.loops import is_loop_kernel
from symc.codegen.cuda.source import CudaSource
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import Loops, scalarize
from symc.ir.dim import Size, product
from symc.ir.record import dataclass, field
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value

#: Bytes of memory that are read together.
SECTOR = 32
#: Arrays by what an entry is given: operands, results, scratch memory.
_LETTERS = {"operand": "a", "result": "o", "scratch": "q"}
#: Instructions of an op of a number, by how kernels compute it.
_WORK = {"vectorized": 20, "scalar": 100}


@dataclass
class Traffic:
    """Traffic of one kernel: bytes ``read`` of each operand and ``written`` of each result, ``updated``: results that
    are read, too; ``work``: operations; ``far``: operands that neighbouring steps of a thread's loop read apart, and
    how many times too much."""

    read: dict[int, list[Size]] = field(default_factory=dict)
    written: dict[int, Size] = field(default_factory=dict)
    updated: set[int] = field(default_factory=set)
    work: list[Size] = field(default_factory=list)
    whole: tuple[Size, ...] = ()
    results: tuple[Size, ...] = ()
    starts: dict[int, Size] = field(default_factory=dict)
    far: dict[int, int] = field(default_factory=dict)

    def operand(self, k: int, number: Callable[[Size], int]) -> int:
        return min(sum(map(number, self.read.get(k, ()))), number(self.whole[k]))

    def result(self, k: int, number: Callable[[Size], int]) -> int:
        return min(number(self.written.get(k, 0)), number(self.results[k])) * (1 + (k in self.updated))

    def minimal(self, number: Callable[[Size], int]) -> int:
        """Bytes that any kernel with these operands and results must move."""
        return (sum(self.operand(k, number) for k in self.read) + sum(self.result(k, number) for k in self.written)
                + sum(number(n) for n in self.starts.values()))

    def moved(self, source: CudaSource, entry: int, generic: bool, number: Callable[[Size], int]) -> tuple[int, bool]:
        """Bytes that an entry moves, of the arrays that its text names; and whether it reads operands."""
        touched, total = _touched(source, entry, generic), 0
        start, again = "_start" in source.entries[entry].name, dict(source.entries[entry].again)
        for kind, k in touched:
            if kind == "a":
                times = number(again.get(k, again.get(-1, 1))) * (self.far.get(k, 1) if generic else 1)
                total += self.operand(k, number) * times
            elif kind == "o":
                total += number(self.starts.get(k, 0)) if start else self.result(k, number)
            else:
                total += number(source.scratch[k])
        return total, any(kind == "a" for kind, _ in touched)

    def operations(self, number: Callable[[Size], int]) -> int:
        return sum(map(number, self.work))


def traffic_of(region: Region, unit: int | None = None) -> Traffic:
    """The traffic of a kernel's region. ``unit``: which of the loops, from outside in, neighbouring threads share."""
    found = Traffic(whole=tuple(map(_nbytes, region.params)), results=tuple(_nbytes(r.type) for r in region.results))
    if is_loop_kernel(region):
        found.read = {k: [n] for k, n in enumerate(found.whole)}
        found.written = {k: _nbytes(r.type) for k, r in enumerate(region.results)}
        return found
    loops = scalarize(collapse(region))
    _Walk(loops, found, unit).run()
    for k, start in loops.starts.items():
        found.updated.add(k)
        if isinstance(start, Region):
            found.starts[k] = _nbytes(region.results[k].type)
    return found


def _touched(source: CudaSource, entry: int, generic: bool) -> set[tuple[str, int]]:
    """The arrays that an entry names: "a", operands, "o", results, and "q", scratch memory."""
    name = source.entries[entry].name
    if start := re.search(r"_start(\d+)$", name):
        return {("o", int(start[1]))}
    if generic and name.endswith("_last"):
        return set()
    if generic:
        return {*(("a", k) for k in range(len(source.operands))), *(("o", k) for k in range(len(source.results)))}
    parameters, body = source.text.split(f" {name}(", 1)[1].split('extern "C"', 1)[0].split("{", 1)
    named = set(re.findall(r"\w+", body))
    return {(_LETTERS[a.kind], a.index)
            for a, p in zip(source.entries[entry].arguments, parameters.split(","), strict=True)
            if a.kind in _LETTERS and re.findall(r"\w+", p)[-1] in named}


class _Walk:
    """Goes through the loops of a kernel. An axis is a number, in the order of ``extents``."""

    def __init__(self, loops: Loops, found: Traffic, unit: int | None):
        self.loops, self.found, self.unit = loops, found, unit
        self.extents: list[Size] = []

    def run(self) -> None:
        params = region_params(self.loops.region)
        arrays = {p: k for k, p in enumerate(params) if p.shape}
        made = self._region(self.loops.region, (), dict.fromkeys(params, frozenset()), arrays)
        for k, (r, axes) in enumerate(zip(self.loops.region.results, made, strict=True)):
            whole = _nbytes(r.type)
            self.found.written[k] = whole if k not in self.loops.starts else (
                product(self.extents[a] for a in axes) * r.dtype.itemsize)

    def _region(self, region: Region, around: Sequence[int], known: dict[Value, frozenset[int]],
                arrays: dict[Value, int]) -> list[frozenset[int]]:
        """The axes on which each result of a region depends."""
        seen = dict(known)
        inside: dict[Value, list[frozenset[int]]] = {}
        for v in postorder(region.results):
            if v in seen:
                continue
            axes = frozenset().union(*(seen[o] for o in v.operands))
            if v.regions:
                inside[v] = self._loop(v, around, seen, arrays)
                axes = frozenset().union(*inside[v])
            elif v.op.name == "get" and v.operands[0] in inside:
                axes = inside[v.operands[0]][v.attrs["index"]]
            elif v.op.name == "load" and v.operands[0] in arrays:
                self._load(v, arrays[v.operands[0]], axes, seen)
            elif v.op.name == "store":  # what is put at one place by many steps is put once
                axes = frozenset().union(*(seen[o] for o in v.operands[1:]))
            elif v.operands and v.op.name != "get":
                self.found.work.append(product(self.extents[a] for a in around) * _WORK.get(v.op.facts.kernel, 1))
            seen[v] = axes
        return [seen[r] for r in region.results]

    def _load(self, v: Value, k: int, axes: frozenset[int], seen: dict[Value, frozenset[int]]) -> None:
        self.found.read.setdefault(k, []).append(product(self.extents[a] for a in axes) * v.dtype.itemsize)
        if self.unit in axes and self.unit not in seen[v.operands[-1]]:
            self.found.far[k] = max(1, SECTOR // v.dtype.itemsize)

    def _loop(self, v: Value, around: Sequence[int], seen: dict[Value, frozenset[int]],
              arrays: dict[Value, int]) -> list[frozenset[int]]:
        (region,) = v.regions
        shape = v.attrs["shape"]
        own = range(len(self.extents), len(self.extents) + len(shape))
        self.extents += shape
        params = region_params(region)
        known = {p: frozenset([a]) for p, a in zip(params, own, strict=False)}
        captured = list(zip(params[len(shape):], v.operands, strict=True))
        known.update((p, seen[o]) for p, o in captured)
        made = self._region(region, [*around, *own], known, {p: arrays[o] for p, o in captured if o in arrays})
        return [axes - frozenset(own) for axes in made] if v.op.name == "fold" else made


def _nbytes(t: object) -> Size:
    assert isinstance(t, TensorType)
    return t.nbytes
