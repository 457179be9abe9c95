"""Programs: the run of a schedule over compiled blocks, natively from first batch to last."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import SymcError
from symc.fold import kernels
from symc.fold.compiled import ALL, BACK, INFER, LAST, TRAIN, Compiled
from symc.fold.native import Ctx, Kernel, Rec, address, runner
from symc.fold.schedule import Graph, Schedule, every_record, schedule
from symc.fold.script import Call, Place, leading
from symc.ir.record import dataclass
from symc.ir.value import Value
from symc.runtime.cpu.native.instructions import GROW

#: What the second word of a key begins with where parameters are trained.
TRAINED = np.uint64(1 << 63)


@dataclass(frozen=True, eq=False)
class Attrs:
    """The attributes of nodes: for each block an array a port, in which ``Graph.apos`` counts."""

    arrays: Mapping[tuple[int, str], np.ndarray]


class Program(Compiled):
    """Blocks compiled to run together, and what runs them."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._ctx = np.zeros(len(Ctx), np.int64)
        self._at = address(self._ctx), address(self._addresses)
        self.draw = 0  # what tells the keys of a run from those of others
        self.name_of: Callable[[int], str] = "node {}".format  # of a node of the graph that runs
        self._tables: dict[Value, Rows] = {}

    def scheduled(self, g: Graph, before: np.ndarray | None = None) -> Schedule:
        how = "strata" if self.how == "auto" and self.hoisted else self.how
        return schedule(g, self.table, how, self.space, before)

    def forward(self, g: Graph, attrs: Attrs, train: bool, before: np.ndarray | None = None) -> Schedule:
        """Compute all nodes of a graph. What it gives lies in the workspace, until the next one. ``before``: how many
        rows of each type there are already, and stay."""
        s = self.scheduled(g, before)
        used = self._compiled(s, train)
        self.memory.fit(s, before is not None)
        for k in used:
            n, first = int(s.counts[k]), int(s.abase[k])
            for p in self.blocks[k].attrs:
                at = s.attr_at[first : first + n]
                attrs.arrays[k, p.name].take(at, axis=0, out=self.memory["attr", k, p.name].array[:n], mode="clip")
            for p in self.blocks[k].keys:
                found = self.memory["attr", k, p.name].array[:n]
                found[:, 0], found[:, 1] = self.draw, TRAINED if train else 0
                if train:
                    found[:, 1] += attrs.arrays[k, p.name][s.attr_at[first : first + n]]
        self.memory.hold()
        records = self._records(s)
        self._run(s, records, TRAIN if train else INFER, 0, len(records), 1)
        return s

    def _records(self, s: Schedule) -> np.ndarray:
        """Batches, with one of all instances before the first of each block of which something is computed ahead."""
        used = [k for k in self.hoisted if s.counts[k]]
        if not used:
            return s.records
        first = [int(np.argmax(s.records[:, Rec.BLOCK] == k)) for k in used]
        whole = every_record(s.counts, s.many)[used]
        whole[:, Rec.BLOCK] += len(self.blocks)
        return np.insert(s.records, first, whole, axis=0)

    def _compiled(self, s: Schedule, train: bool) -> list[int]:
        """The blocks of a schedule, with the scripts that run it; a step of training compiles all blocks."""
        used = [k for k in range(len(self.blocks)) if s.counts[k]]
        self.compiled(train, None if train else used)
        return used

    def fits(self, g: Graph, train: bool) -> bool:
        """True if a graph may run in the memory that there may be."""
        s = self.scheduled(g)
        self._compiled(s, train)
        return self.memory.limit is None or self.memory.needed(s) <= self.memory.limit

    def backward(self, s: Schedule, seed: float = 1.0) -> None:
        """Cotangents of all nodes from those of losses, and of parameters, of the last forward run."""
        for t, type_ in enumerate(self.types):
            for f, a in type_.fields.items():
                if a.dtype.kind in "fc":
                    self.memory["seed", t, f].array[: s.sizes[t]] = 0
        for k, rows in self.losses(s):
            t = self.of_type[self.blocks[k].out]
            self.memory["seed", t, ""].array[rows] = seed
        records = self._records(s)
        self._run(s, records, BACK, len(records) - 1, -1, -1)
        used = np.flatnonzero(s.counts)
        every = np.ascontiguousarray(every_record(s.counts, s.many)[[k for k in used if k not in self.hoisted]])
        for k in set(self._made).difference(used.tolist()):
            for array in self._made[k]:
                array[...] = 0
        self._run(s, every, LAST, 0, len(every), 1)

    def added_rows(self, table: Value, parts: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """The sum of gradients of a lookup table."""
        return self._tables[table].sums(parts)

    def rows_of(self, s: Schedule, table: Value) -> tuple[np.ndarray, np.ndarray]:
        """The gradient of a lookup table: rows, each once, and their values."""
        found = self._tables.get(table)
        if found is None:
            found = self._tables[table] = Rows(table)
        parts = []
        for k, x in enumerate(self.splits):
            for j, lookup in enumerate(x.lookups):
                if lookup.table is table and s.counts[k] and ("rows", j) in x.pgrad.outputs:
                    n = int(s.many[k] if leading(lookup.rows, self.blocks[k]) == Rec.ELEMENTS else s.counts[k])
                    parts.append([self.memory[what, k, j].array[:n] for what in ("index", "rows")])
        return found.sums(parts)

    def losses(self, s: Schedule) -> list[tuple[int, np.ndarray]]:
        """The rows of the instances of each block that is a loss."""
        return [(k, s.row_at[s.abase[k] : s.abase[k] + s.counts[k]]) for k, b in enumerate(self.blocks)
                if b.loss and s.counts[k]]

    def loss(self, s: Schedule) -> float:
        """The sum of all losses."""
        return float(sum(self.memory["out", self.of_type[self.blocks[k].out], ""].array[rows].sum(dtype=np.float64)
                         for k, rows in self.losses(s)))

    def _run(self, s: Schedule, records: np.ndarray, kind: int, first: int, end: int, step: int) -> None:
        run, executor_run, prepare = runner()
        ctx, (at, scripts) = self._ctx, self._at
        ctx[:] = (first, end, step, address(records), scripts + 16 * kind * len(self.blocks), self.memory.address, 0,
                  executor_run, prepare)
        while status := run(at):
            whole, k = divmod(int(records[ctx[Ctx.BATCH], Rec.BLOCK]), len(self.blocks))
            pc, script = int(ctx[Ctx.AT]), self._scripts[k, ALL[kind] if whole else kind]
            call = script.calls[pc]
            if status == GROW:
                call.frame.grow()
            else:
                self._slowly(s, k, call, records[ctx[Ctx.BATCH]])
                ctx[Ctx.AT] = pc + script.words[pc + 1]

    def _slowly(self, s: Schedule, k: int, call: Call, record: np.ndarray) -> None:
        """A call that native code does not serve, or where it failed: it succeeds, or says why not, and of which
        node."""
        arrays = [self._array(p, record) for p in (*call.inputs, *call.outputs)]
        inputs, outputs = arrays[: len(call.inputs)], arrays[len(call.inputs) :]
        try:
            found = call.function(*inputs)
        except SymcError as e:
            e.add_note(f"in block {self.blocks[k]!r}{self._failing(s, k, call, record, inputs)}")
            raise
        for a, b in zip(outputs, found, strict=True):
            a[...] = b

    def _failing(self, s: Schedule, k: int, call: Call, record: np.ndarray, inputs: Sequence[np.ndarray]) -> str:
        """The first node of a batch that fails alone, as its owner calls it."""
        if any(isinstance(p, Place) and p.rows != Rec.COUNT for p in call.inputs):
            return f", one of {int(record[Rec.COUNT])} instances"
        for i in range(int(record[Rec.COUNT])):
            try:
                call.function(*[a[i : i + 1] if isinstance(p, Place) else a for p, a in zip(call.inputs, inputs)])
            except SymcError:
                return ", " + self.name_of(int(s.node_at[s.abase[k] + record[Rec.PLACE] + i]))
        return ""

    def _array(self, p: Place | int, record: np.ndarray) -> np.ndarray:
        if isinstance(p, int):
            return ctypes.cast(self.memory.get(p), ctypes.py_object).value
        shape = (int(record[p.rows]), *p.shape)
        start = self.memory.get(p.base) + int(record[p.start]) * p.row_bytes
        memory: Any = (ctypes.c_char * (shape[0] * p.row_bytes)).from_address(start)
        return np.frombuffer(memory, p.dtype).reshape(shape)


class Rows:
    """Sums of rows of one table, by index."""

    def __init__(self, table: Value):
        size, *shape = table.type.shape  # type: ignore[union-attr]
        self.dtype, self.shape = table.dtype, tuple(shape)
        self.words = int(np.prod(shape, dtype=np.int64))
        self.board = np.full(size, -1, np.int64)
        self._sum = Kernel(kernels.sum_rows, 2, f"i8 {self.dtype.str[1:]} i8 i8 {self.dtype.str[1:]} i8")
        self._clear = Kernel(kernels.clear_board, 1, "i8 i8")

    def sums(self, parts: Sequence[Sequence[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        n = sum(len(index) for index, _ in parts)
        rows, values, found = np.empty(n, np.int64), np.empty((n, *self.shape), self.dtype), np.zeros(1, np.int64)
        for index, part in parts:
            self._sum(len(index), self.words, index, part, self.board, rows, values, found)
        count = int(found[0])
        self._clear(count, rows, self.board)
        return rows[:count], values[:count]
