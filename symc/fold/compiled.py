"""Compiled blocks: the memory that they use, and the scripts that run for a batch, or for all instances, of each.

Memory is an arena for each type (an array a field, a row an instance, in the order of the schedule, so that a batch
writes one slice), the gradient of each arena, and for each block what its instances keep, in the order in which they
run, so that what is computed ahead or last reads and writes all of it in one piece.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.fold.block import Block, Tag
from symc.fold.memory import Memory
from symc.fold.native import Rec
from symc.fold.schedule import Blocks, Schedule, Workspace, check_schedule
from symc.fold.script import Place, Script, leading
from symc.fold.split import Job, Split, inference, is_state, lookups_of, recursive_types, split, varying_types
from symc.ir.traverse import postorder
from symc.ir.value import Value
from symc.runtime.cpu.executable import aligned

#: The scripts of a block: what runs for a batch, forward and back, and for all instances, after that and before it.
INFER, TRAIN, BACK, LAST, PRE_INFER, PRE_TRAIN = range(6)
#: What runs for all instances of a block, beside those for batches: forward before the first, back after it.
ALL = {INFER: PRE_INFER, TRAIN: PRE_TRAIN, BACK: LAST}


class Compiled:
    """Blocks, compiled to run together. ``params``: the states that are trained, by value."""

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
        self.hoists = how in ("auto", "strata")
        self._scripts: dict[tuple[int, int], Script] = {}
        self._addresses = np.zeros((4, 2, len(self.blocks)), np.int64)
        self.functions: list[Any] = []
        self.dense: dict[Value, list[np.ndarray]] = {}  # gradients, an array a block
        self._made: dict[int, list[np.ndarray]] = {}  # those of each block
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
        """Tables of which blocks look up rows, and nothing else."""
        found = [lookups_of(b) for b in self.blocks]
        dense = set().union(*[d for _, d in found]) if found else set()
        return [p for p in self.params if p not in dense and any(x.table is p for xs, _ in found for x in xs)]

    @functools.cached_property
    def splits(self) -> list[Split]:
        varying = varying_types(self.blocks, self.params)
        return [split(b, self.params, self.sparse, varying, late) for b, late in zip(self.blocks, self.late)]

    @functools.cached_property
    def late(self) -> list[set[str]]:
        """The recursive ports of each block, in which there may be what depends on the block itself; none where nothing
        is computed ahead, as the schedule has batches in an order in which it may be too early."""
        into = recursive_types(self.blocks) if self.hoists else {}
        return [{p.name for p in b.values if p.type in into.get(b.out, ())} for b in self.blocks]

    @functools.cached_property
    def inferences(self) -> list[tuple[Job, Job]]:
        return [inference(b, late) for b, late in zip(self.blocks, self.late)]

    @functools.cached_property
    def hoisted(self) -> list[int]:
        """The blocks of which something is computed ahead for all instances."""
        return [k for k, (pre, _) in enumerate(self.inferences) if pre.outputs]

    def script(self, k: int, kind: int) -> Script:
        """A script of a block, made when it is first needed."""
        found = self._scripts.get((k, kind))
        if found is None:
            found = Script(self.memory, self.threads)
            write = (self._forward, self._forward, self._backward, self._last, self._ahead, self._ahead)[kind]
            write(k, found, kind in (TRAIN, PRE_TRAIN))
            at = found.finish()
            self._scripts[k, kind] = found  # now that it is whole: what fails to be written is written again
            if kind < PRE_INFER:
                self._addresses[kind, 0, k] = at
            for batches, whole in ALL.items():
                if kind == whole:
                    self._addresses[batches, 1, k] = at
        return found

    def _call(self, k: int, script: Script, kind: str, job: Job, place: Callable[[Tag, Value], Any],
              results: Mapping[Value, Any]) -> None:
        if results:
            name = f"{self.blocks[k].name}_{kind}"
            self.functions.append(script.call(name, job, place, results))

    def _jobs(self, k: int, train: bool) -> tuple[Job, Job, set[Tag]]:
        """Jobs of what is computed ahead, and for a batch, and the tags that are read after that."""
        if not train:
            return *self.inferences[k], set()
        found = self.splits[k]
        return found.pre, found.fwd_save, {*found.bwd.inputs, *found.pgrad.inputs}

    def _gathered(self, k: int, script: Script, jobs: Sequence[Job], read: set[Tag], late: bool) -> dict[Tag, Place]:
        """Rows of what ports are given, where it is used: of recursive ports, or of the others. Of all ports by batches
        where nothing is computed ahead."""
        block, here = self.blocks[k], {}
        for p in block.values:
            if k in self.hoisted and (p.name in self.late[k]) is not late:
                continue
            for f, a in p.type.fields.items():
                tag = ("port", p.name, f)
                if tag in read or any(tag in j.inputs for j in jobs):
                    target = self._kept(k, tag, block.batched.leaves[tag])
                    index = self._place(("index", k, p.name), np.int64, (), target.start, target.rows)
                    source = self._place(("out", self.of_type[p.type], f), a.dtype, a.shape, Rec.ZERO, target.rows)
                    here[tag] = script.gather(index, source, target, near=late and tag not in read)
        return here

    def _ahead(self, k: int, script: Script, train: bool) -> None:
        pre, job, read = self._jobs(k, train)
        self._gathered(k, script, [pre, job], read, False)
        results = {v: self.place(k, t, v, True) for t, v in pre.outputs.items()}
        self._call(k, script, "pre", pre, lambda t, v: self.place(k, t, v, True), results)

    def _forward(self, k: int, script: Script, train: bool) -> None:
        _, job, read = self._jobs(k, train)
        here = self._gathered(k, script, [job], read, True)
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
                self._scattered(k, script, tag, place(given[v], v) if v in given else results[v])

    def _scattered(self, k: int, script: Script, tag: Tag, source: Place) -> None:
        """Cotangents of a port, added to those of the arena of its type."""
        p = next(p for p in self.blocks[k].values if p.name == tag[1])
        start = Rec.ELEMENT if p.kind == "many" else Rec.PLACE
        index = self._place(("index", k, p.name), np.int64, (), start, source.rows)
        target = ("seed", self.of_type[p.type], tag[2])
        script.scatter_add(index, source, self._place(target, source.dtype, source.shape, 0, 0))

    def _seeds(self) -> None:
        """The gradients of arenas."""
        for t, type_ in enumerate(self.types):
            for f, a in type_.fields.items():
                if a.dtype.kind in "fc":
                    self.memory.buffer(("seed", t, f), a.dtype, a.shape, lambda s, t=t: int(s.sizes[t]))  # type: ignore

    def _backward(self, k: int, script: Script, train: bool) -> None:
        self._seeds()
        self._finish(k, script, "bwd", self.splits[k].bwd, {})

    def _last(self, k: int, script: Script, train: bool) -> None:
        self._seeds()
        job = self.splits[k].pgrad
        results: dict[Value, Any] = {}
        arrays: dict[Value, np.ndarray] = {}
        dense: list[tuple[Value, np.ndarray]] = []
        copies: list[tuple[Value, Place]] = []
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
                dense.append((tag[1], arrays[v]))
            elif tag[0] == "gin" and v in given:
                continue
            elif v in given or v in results:
                copies.append((v, self.place(k, tag, v, True)))
            else:
                results[v] = self.place(k, tag, v, True)
        self._call(k, script, "pgrad", job, lambda t, v: self.place(k, t, v, True), results)
        self._made[k] = list(arrays.values())
        for param, array in dense:
            self.dense.setdefault(param, []).append(array)
        for v, target in copies:
            script.copy(self.place(k, given[v], v, True) if v in given else results[v], target)
        for tag, v in job.outputs.items():
            if tag[0] == "gin":
                self._scattered(k, script, tag, self.place(k, given[v], v, True) if v in given else results[v])

    def compiled(self, train: bool, blocks: Sequence[int] | None = None) -> None:
        """Have scripts of blocks, of all by default."""
        for k in range(len(self.blocks)) if blocks is None else blocks:
            more = (PRE_TRAIN if train else PRE_INFER,) if k in self.hoisted else ()
            for kind in (*((TRAIN, BACK, LAST) if train else (INFER,)), *more):
                self.script(k, kind)


def check_types(blocks: Sequence[Block]) -> None:
    """Raise InputError for a port of a type that no block makes."""
    made = {b.out for b in blocks}
    for b in blocks:
        for p in b.values:
            if p.type not in made:
                raise InputError(f"block {b.name}: no block makes what port {p.name} takes, {p.type}", where=[b.loc])


def _first(at: int) -> Callable[[Schedule], int]:
    return lambda s: int(s.ibase[at])


def _states(block: Block) -> list[Value]:
    return [v for v in postorder(block.batched.outputs) if is_state(v)]
