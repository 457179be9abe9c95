"""Programs: the compiled blocks of a model, and the run of a schedule over them, natively from first batch to last.

Memory is an arena for each type (an array a field, a row an instance, in the order of the schedule, so that a batch
writes one slice), the gradient of each arena, and for each block what its instances keep, in the order in which they
run, so that what is computed last reads all of it in one piece.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError, SymcError
from symc.fold import kernels
from symc.fold.block import Block, Tag
from symc.fold.memory import Memory
from symc.fold.native import Ctx, Kernel, Rec, address, runner
from symc.fold.schedule import Blocks, Graph, Schedule, Workspace, check_schedule, every_record, schedule
from symc.fold.script import Call, Place, Script, leading
from symc.fold.split import Job, Split, is_state, lookups_of, split, varying_types
from symc.fold.split import job as new_job
from symc.ir.record import dataclass
from symc.ir.traverse import postorder
from symc.ir.value import Value
from symc.runtime.cpu.executor import aligned
from symc.runtime.cpu.native.instructions import GROW

#: What the second word of a key begins with where parameters are trained.
TRAINED = np.uint64(1 << 63)
#: The scripts of a block.
INFER, TRAIN, BACK, LAST = range(4)


@dataclass(frozen=True, eq=False)
class Attrs:
    """The attributes of nodes: for each block an array a port, in which ``Graph.apos`` counts."""

    arrays: Mapping[tuple[int, str], np.ndarray]


class Program:
    """Blocks compiled to run together. ``params``: the states that are trained, by value."""

    def __init__(self, blocks: Sequence[Block], params: Sequence[Value] | None, how: str, threads: int | None,
                 limit: int | None = None):
        self.blocks, self.how, self.threads = tuple(blocks), check_schedule(how), threads
        self.number = {b: k for k, b in enumerate(self.blocks)}
        self.memory, self.space = Memory(limit), Workspace()
        self.types = list(dict.fromkeys(t for b in self.blocks for t in (b.out, *[p.type for p in b.values])))
        self.of_type = {t: k for k, t in enumerate(self.types)}
        self.table = Blocks(np.array([self.of_type[b.out] for b in self.blocks], np.int64), len(self.types),
                            np.array([len(b.ones) for b in self.blocks], np.int64))
        self._given = params
        self._scripts: dict[tuple[int, int], Script] = {}
        self._addresses = np.zeros(4 * len(self.blocks), np.int64)
        self._ctx = np.zeros(len(Ctx), np.int64)
        self._at = address(self._ctx), address(self._addresses)
        self.functions: list[Any] = []
        self.draw = 0  # what tells the keys of a run from those of others
        self.name_of: Callable[[int], str] = "node {}".format  # of a node of the graph that runs
        self.dense: dict[Value, list[np.ndarray]] = {}  # gradients, an array a block
        self._made: dict[int, list[np.ndarray]] = {}  # those of each block
        self._tables: dict[Value, Rows] = {}
        for t, type_ in enumerate(self.types):
            for f, a in type_.fields.items():
                self.memory.buffer(("out", t, f), a.dtype, a.shape, lambda s, t=t: int(s.sizes[t]))  # type: ignore
        for k in range(len(self.blocks)):
            self._buffers(k)

    # --- memory -------------------------------------------------------------------------------------------------------

    def _buffers(self, k: int) -> None:
        """Attributes of the instances of a block, and the rows of their arguments."""
        block = self.blocks[k]
        for p in (*block.attrs, *block.keys):
            self.memory.buffer(("attr", k, p.name), p.type.dtype, p.type.shape, lambda s: int(s.counts[k]))
        for j, p in enumerate(block.ones):
            at = k * self.table.ports + j
            self.memory.word_for(("index", k, p.name), lambda s: s.index, _first(at))
        if block.many:
            self.memory.word_for(("index", k, block.many.name), lambda s: s.index, lambda s: int(s.mbase[k]))
            self.memory.word_for(("local", k), lambda s: s.local, lambda s: int(s.mbase[k]))
            self.memory.word_for(("whole", k), lambda s: s.whole, lambda s: int(s.mbase[k]))

    def _place(self, key: Any, dtype: Any, shape: tuple[int, ...], start: int, count: int) -> Place:
        b: Any = self.memory[key]
        base = b if isinstance(b, int) else b.base
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return Place(base, int(start), size, int(count), np.dtype(dtype), tuple(shape))

    def _rows_of(self, k: int, count: int) -> Callable[[Schedule], int]:
        return (lambda s: int(s.many[k])) if count == Rec.ELEMENTS else (lambda s: int(s.counts[k]))

    def _kept(self, k: int, key: Tag, v: Value, zero: bool = False) -> Place:
        """The place of what instances of a block keep; of a value for one batch with ``zero``."""
        count = leading(v, self.blocks[k])
        start = Rec.ZERO if zero else Rec.ELEMENT if count == Rec.ELEMENTS else Rec.PLACE
        shape: Any = v.type.shape[1:]  # type: ignore[union-attr]
        self.memory.buffer((*key[:1], k, *key[1:]), v.dtype, shape, self._rows_of(k, count))
        return self._place((*key[:1], k, *key[1:]), v.dtype, shape, start, count)

    def place(self, k: int, tag: Tag, v: Value, whole: bool = False) -> Place:
        """Place of a leaf of a job of block ``k``. ``whole``: of a batch of all instances."""
        t = self.of_type[self.blocks[k].out]
        shape: Any = v.type.shape[1:]  # type: ignore[union-attr]
        match tag[0]:
            case "out" | "seed":
                return self._place((tag[0], t, tag[1]), v.dtype, shape, Rec.ROW, Rec.COUNT)
            case "attr":
                return self._place(("attr", k, tag[1]), v.dtype, shape, Rec.PLACE, Rec.COUNT)
            case "segment":
                return self._place(("whole" if whole else "local", k), v.dtype, (), Rec.ELEMENT, Rec.ELEMENTS)
            case _:
                return self._kept(k, tag, v)

    # --- compiling ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def params(self) -> list[Value]:
        """The states that are trained: those of the blocks among the ones that were given, or all."""
        read = dict.fromkeys(v for b in self.blocks for v in _states(b) if v.dtype.kind == "f")
        return [v for v in read if self._given is None or v in set(self._given)]

    @functools.cached_property
    def sparse(self) -> list[Value]:
        """Those of which blocks look up rows, and nothing else."""
        found = [lookups_of(b) for b in self.blocks]
        dense = set().union(*[d for _, d in found]) if found else set()
        return [p for p in self.params if p not in dense and any(x.table is p for xs, _ in found for x in xs)]

    @functools.cached_property
    def splits(self) -> list[Split]:
        varying = varying_types(self.blocks, self.params)
        return [split(b, self.params, self.sparse, varying) for b in self.blocks]

    def script(self, k: int, kind: int) -> Script:
        """A script of a block, made when it is first needed."""
        found = self._scripts.get((k, kind))
        if found is None:
            found = self._scripts[k, kind] = Script(self.memory, self.threads)
            (self._forward, self._forward, self._backward, self._last)[kind](k, found, *([kind] if kind < 2 else []))
            self._addresses[kind * len(self.blocks) + k] = found.finish()
        return found

    def _call(self, k: int, script: Script, kind: str, job: Job, place: Callable[[Tag, Value], Any],
              results: Mapping[Value, Any]) -> None:
        if results:
            name = f"{self.blocks[k].name}_{kind}"
            self.functions.append(script.call(name, job, place, results))

    def _forward(self, k: int, script: Script, kind: int) -> None:
        block, leaves = self.blocks[k], self.blocks[k].batched.leaves
        train = kind == TRAIN
        if train:
            job = self.splits[k].fwd_save
            read = {*self.splits[k].bwd.inputs, *self.splits[k].pgrad.inputs}
        else:
            outputs = {("out", f): v for f, v in zip(block.out.fields, block.batched.outputs, strict=True)}
            job, read = new_job(leaves, outputs), set()
        here: dict[Tag, Place] = {}
        for p in block.values:
            for f, a in p.type.fields.items():
                tag = ("port", p.name, f)
                if tag in job.inputs or tag in read:
                    target = self._kept(k, tag, leaves[tag])
                    index = self._place(("index", k, p.name), np.int64, (), target.start, target.rows)
                    source = self._place(("out", self.of_type[p.type], f), a.dtype, a.shape, Rec.ZERO, target.rows)
                    here[tag] = script.gather(index, source, target, near=tag not in read)
        self._finish(k, script, "fwd_save" if train else "fwd", job, here)

    def _finish(self, k: int, script: Script, kind: str, job: Job, here: Mapping[Tag, Place]) -> None:
        """The call of a job, each value computed into the place of its first tag, and copies to those of others."""

        def place(tag: Tag, v: Value) -> Place:
            return here.get(tag) or self.place(k, tag, v)

        results: dict[Value, Place] = {}
        copies: list[tuple[Value, Place]] = []
        given = {v: t for t, v in job.inputs.items()}
        for tag, v in job.outputs.items():
            if tag[0] == "gin":
                continue
            if v in given or v in results:
                copies.append((v, place(tag, v)))
            else:
                results[v] = place(tag, v)
        for tag, v in job.outputs.items():
            if tag[0] == "gin" and v not in given and v not in results:
                results[v] = self._kept(k, tag, v, zero=True)
        self._call(k, script, kind, job, place, results)
        for v, target in copies:
            script.copy(place(given[v], v) if v in given else results[v], target)
        for tag, v in job.outputs.items():
            if tag[0] == "gin":
                source = place(given[v], v) if v in given else results[v]
                p = next(p for p in self.blocks[k].values if p.name == tag[1])
                start = Rec.ELEMENT if p.kind == "many" else Rec.PLACE
                index = self._place(("index", k, p.name), np.int64, (), start, source.rows)
                t = self.of_type[p.type]
                script.scatter_add(index, source, self._place(("seed", t, tag[2]), v.dtype, source.shape, 0, 0))

    def _seeds(self) -> None:
        """The gradients of arenas."""
        for t, type_ in enumerate(self.types):
            for f, a in type_.fields.items():
                if a.dtype.kind == "f":
                    self.memory.buffer(("seed", t, f), a.dtype, a.shape, lambda s, t=t: int(s.sizes[t]))  # type: ignore

    def _backward(self, k: int, script: Script) -> None:
        self._seeds()
        self._finish(k, script, "bwd", self.splits[k].bwd, {})

    def _last(self, k: int, script: Script) -> None:
        job = self.splits[k].pgrad
        results: dict[Value, Any] = {}
        arrays: dict[Value, np.ndarray] = {}
        given = {v: t for t, v in job.inputs.items()}
        for tag, v in job.outputs.items():
            if tag[0] == "gparam":
                if v not in arrays:
                    shape: Any = v.type.shape  # type: ignore[union-attr]
                    size = int(np.prod(shape, dtype=np.int64)) * v.dtype.itemsize
                    arrays[v] = aligned(size).view(v.dtype).reshape(shape)
                    arrays[v][...] = 0
                    results[v] = self.memory.word()
                    self.memory.set(results[v], id(arrays[v]))
                self.dense.setdefault(tag[1], []).append(arrays[v])
            elif v in given or v in results:
                script.copy(self.place(k, given[v], v, True) if v in given else results[v], self.place(k, tag, v, True))
            else:
                results[v] = self.place(k, tag, v, True)
        self._made[k] = list(arrays.values())
        self._call(k, script, "pgrad", job, lambda t, v: self.place(k, t, v, True), results)

    # --- running ------------------------------------------------------------------------------------------------------

    def scheduled(self, g: Graph, before: np.ndarray | None = None) -> Schedule:
        return schedule(g, self.table, self.how, self.space, before)

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
        self._run(s, s.records, TRAIN if train else INFER, 0, len(s.records), 1)
        return s

    def _compiled(self, s: Schedule, train: bool) -> list[int]:
        """The blocks of a schedule, with the scripts that run it; a step of training compiles all blocks."""
        used = [k for k in range(len(self.blocks)) if s.counts[k]]
        self.compiled(train, None if train else used)
        return used

    def compiled(self, train: bool, blocks: Sequence[int] | None = None) -> None:
        """Have scripts of blocks, of all by default."""
        for k in range(len(self.blocks)) if blocks is None else blocks:
            for kind in (TRAIN, BACK, LAST) if train else (INFER,):
                self.script(k, kind)

    def fits(self, g: Graph, train: bool) -> bool:
        """True if a graph may run in the memory that there may be."""
        s = self.scheduled(g)
        self._compiled(s, train)
        return self.memory.limit is None or self.memory.needed(s) <= self.memory.limit

    def backward(self, s: Schedule, seed: float = 1.0) -> None:
        """Cotangents of all nodes from those of losses, and of parameters, of the last forward run."""
        for t, type_ in enumerate(self.types):
            for f, a in type_.fields.items():
                if a.dtype.kind == "f":
                    self.memory["seed", t, f].array[: s.sizes[t]] = 0
        for k, rows in self.losses(s):
            t = self.of_type[self.blocks[k].out]
            self.memory["seed", t, ""].array[rows] = seed
        self._run(s, s.records, BACK, len(s.records) - 1, -1, -1)
        used = np.flatnonzero(s.counts)
        every = np.ascontiguousarray(every_record(s.counts, s.many)[used])
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
        ctx[:] = (first, end, step, address(records), scripts + 8 * kind * len(self.blocks), self.memory.address, 0,
                  executor_run, prepare)
        while status := run(at):
            k, pc = int(records[ctx[Ctx.BATCH], Rec.BLOCK]), int(ctx[Ctx.AT])
            script = self._scripts[k, kind]
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


def check_types(blocks: Sequence[Block]) -> None:
    """Raise InputError for a port of a type that no block makes."""
    made = {b.out for b in blocks}
    for b in blocks:
        for p in b.values:
            if p.type not in made:
                raise InputError(f"block {b.name}: no block makes what port {p.name} takes, {p.type}", where=[b.loc])


def _first(at: int) -> Callable[[Schedule], int]:
    return lambda s: int(s.ibase[at])


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


def _states(block: Block) -> list[Value]:
    return [v for v in postorder(block.batched.outputs) if is_state(v)]
