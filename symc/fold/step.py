"""Steps: a model over blocks, compiled; and what runs it on minibatches of examples of any shape."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.driver.compile import compile as compile_function
from symc.driver.push import PushedCall, Turns, push
from symc.errors import InputError, NonFiniteError
from symc.fold.block import Block
from symc.fold.combinators import Combinator, combinator, parts_of
from symc.fold.compiled import check_types
from symc.fold.items import Typed
from symc.fold.program import Attrs, Program
from symc.fold.record import Batch, Dataset, Recorder, encoded, named
from symc.fold.recording import Recording
from symc.fold.schedule import Graph, Schedule
from symc.fold.sparse import RowGradient
from symc.fold.types import Array
from symc.fold.types import Record as Fields
from symc.ir.dim import size_name
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.optim.sparse import SparseRows
from symc.tensors.callsite import caller
from symc.tensors.leaves import Leaf, leaf_of, register_leaf
from symc.tensors.pytree import flatten
from symc.tensors.state import SharedVariable, variable_of
from symc.tensors.tensor import Tensor

#: A graph that runs at once: its attributes, and whose it is.
Part = tuple[Graph, Attrs, Any]
#: How many nested calls building the graph of an example may take.
DEEPEST = 1_000_000


class Step:
    """A model compiled to blocks. ``step(batch)`` trains if there is an optimizer, and returns the loss."""

    def __init__(self, model: Any, params: Any, optimizer: Any, schedule: str, mean: bool, nan_guard: bool,
                 threads: int | None, seed: int, limit: int | None):
        self.model = combinator(model) if isinstance(model, Combinator | Block) else None
        blocks = model if self.model is None else [c for c in parts_of(self.model) if isinstance(c, Block)]
        if not isinstance(blocks, Sequence) or not all(isinstance(b, Block) for b in blocks) or not blocks:
            raise InputError(f"fd.compile takes a model of blocks, or a list of blocks, not {model!r:.40}",
                             where=[caller()])
        names = [b.name for b in blocks]
        for name in names if self.model is None else ():
            if names.count(name) > 1 or hasattr(Recording, name):
                other = "another block" if names.count(name) > 1 else "a method of recorded graphs"
                raise InputError(f"a block is called {name!r}, and so is {other}", where=[caller()])
        for what, number in (("seed", seed), ("max_arena_bytes", 1 if limit is None else limit)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
                raise InputError(f"{what} is a number from 0 on, not {number!r:.40}", where=[caller()])
        given = None if params is None else _states_in(params)
        self._variables = {v.value: v for v in given or ()}
        self._options: tuple[Any, ...] = (None if given is None else [v.value for v in given], schedule, threads, limit)
        self.optimizer, self.mean, self.nan_guard = optimizer, mean, nan_guard
        self.seed, self.count = int(seed), 0  # of keys of blocks; steps so far, with which a new run may go on
        self._lock = Turns()  # of the memory that runs use
        blocks = list(dict.fromkeys(blocks))
        if self.model is None or not any(isinstance(c, Typed) for c in parts_of(self.model)):
            check_types(blocks)
        self._begin(blocks)

    def _begin(self, blocks: Sequence[Block]) -> None:
        """A program of these blocks. Once more where the first examples have told what types some are for."""
        self.program = Program(blocks, *self._options)
        self._update: Any = None
        self._lock.cells = ()
        self._last: tuple[Schedule, Any] | None = None

    # --- examples -----------------------------------------------------------------------------------------------------

    def encode(self, examples: Sequence[Any], processes: int = 1) -> Dataset:
        """Examples as integers: once a data set. Raises what building the graph of one raises, with its number.

        ``processes``: how many build graphs side by side, where processes can be forked. The result is the same."""
        if self.model is None:
            raise InputError("there is no model that says what the graph of an example is", where=[caller()],
                             help="compile a combinator, or record graphs: with fd.record(step) as g: ...")
        if not hasattr(examples, "__iter__"):
            raise InputError(f"examples are a sequence, not {type(examples).__name__}", where=[caller()])
        if isinstance(processes, bool) or not isinstance(processes, int | np.integer) or processes < 1:
            raise InputError(f"processes is a number from 1 on, not {processes!r:.40}", where=[caller()])
        examples = list(examples)
        each = max(-(-len(examples) // processes), 1)
        parts = [(k, examples[k : k + each]) for k in range(0, max(len(examples), 1), each)]
        data = encoded(self._encoded, self.program.blocks, parts)
        if len(data.blocks) > len(self.program.blocks):
            with self._lock:
                self._begin(data.blocks)
        return data

    def _encoded(self, blocks: Sequence[Block], first: int, examples: Sequence[Any]) -> Dataset:
        """Examples from number ``first`` on."""
        assert self.model is not None
        g = Recorder(blocks, first)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, DEEPEST))
        try:
            for k, x in enumerate(examples, first):
                g.example()
                try:
                    self.model.build(g, x)
                except Exception as e:
                    e.add_note(f"in example {k}: {x!r:.80}")
                    raise
        finally:
            sys.setrecursionlimit(limit)
        return Dataset(g)

    def _batch(self, batch: Any) -> Batch:
        if isinstance(batch, Dataset):
            batch = batch[:]
        if not isinstance(batch, Batch):
            return self.encode(batch)[:]
        if batch.data.blocks != self.program.blocks[: len(batch.data.blocks)]:
            raise InputError("this data was encoded for a step of other blocks", where=[caller()],
                             help="data = step.encode(examples)")
        return batch

    # --- running ------------------------------------------------------------------------------------------------------

    def __call__(self, batch: Any) -> float:
        """The loss of a minibatch: of a data set, or of examples. With an optimizer, parameters are updated."""
        b = self._batch(batch)
        return self.run(self._parts(b, self.optimizer is not None), self.optimizer is not None, len(b))

    def push(self, batch: Any) -> PushedCall:
        """``self(batch)`` in the background: what has ``wait()`` and ``result()``. Calls that were pushed run in order;
        whoever uses a parameter waits for them. The examples are encoded now."""
        b, train = self._batch(batch), self.optimizer is not None
        if not self._lock.cells:
            with self._lock:
                self.program.compiled(train)
                cells = [*self.program.memory.cells, *(self._updating()._uses() if train else ())]
                self._lock.cells = list(dict.fromkeys(cells))
        with self._lock.gate:
            return push("step", self, self._lock.cells, (), (b,), {})

    def loss(self, batch: Any) -> float:
        """The loss of a minibatch; nothing is updated."""
        b = self._batch(batch)
        return self.run(self._parts(b, False), False, len(b))

    def metrics(self, batch: Any) -> dict[str, np.ndarray]:
        """Values that ``fd.Metric`` marks, by name: a row a value, in the order of the examples."""
        b = self._batch(batch)
        found: dict[str, list[Any]] = {name: [] for name in b.data.metrics}
        with self._lock:
            for part in self._parts(b, False):
                s = self._forward(*part, False)
                for name, rows in found.items():
                    rows.append(self._rows(self._type_of(b, name), s.row[part[2].metric(name)]))
        return {name: _joined(rows) for name, rows in found.items()}

    def _type_of(self, b: Batch, name: str) -> Any:
        return self.program.blocks[int(b.data.graph.op[b.data.metrics[name][0]])].out

    def gradients(self, batch: Any) -> tuple[float, dict[SharedVariable, Any]]:
        """The loss, and the gradient of each parameter: an array, or ``RowGradient`` of a lookup table."""
        b = self._batch(batch)
        return self._gradients(self._parts(b, True), len(b))

    def _parts(self, b: Batch, train: bool) -> list[Part]:
        """Minibatches that fit into the memory which there may be: this one, or its halves, and theirs."""
        part = b.graph(), b.data.attrs, b
        with self._lock:
            if self.program.memory.limit is None or len(b) < 2 or self.program.fits(part[0], train):
                return [part]
        half = len(b) // 2
        return [p for some in (b.picked[:half], b.picked[half:]) for p in self._parts(Batch(b.data, some), train)]

    def _gradients(self, parts: Sequence[Part], examples: int) -> tuple[float, dict[SharedVariable, Any]]:
        with self._lock:
            loss, arrays, rows = self._swept(parts, examples)
            given = iter(arrays)
            found: dict[SharedVariable, Any] = {
                self._variable(p): np.asarray(sum((next(given) for _ in own[1:]), next(given).copy()))
                for p, own in self.program.dense.items()}
            found |= {self._variable(p): RowGradient(*r) for p, r in zip(self.program.sparse, rows, strict=True)}
            return loss, found

    def _swept(self, parts: Sequence[Part], examples: int) -> tuple[float, list[np.ndarray], list[Any]]:
        """The loss of parts, and the sums of their gradients: those of dense parameters, an array a block, and rows."""
        p, loss, total = self.program, 0.0, None
        scale = 1 / max(examples, 1) if self.mean else 1.0
        for part in parts:
            s = self._forward(*part, True)
            p.backward(s, scale)
            loss += p.loss(s) * scale
            arrays, rows = [a for own in p.dense.values() for a in own], [p.rows_of(s, t) for t in p.sparse]
            if total is not None:
                arrays = [a + b for a, b in zip(total[0], arrays, strict=True)]
                rows = [p.added_rows(t, both) for t, *both in zip(p.sparse, total[1], rows, strict=True)]
            elif len(parts) > 1:
                arrays = [a.copy() for a in arrays]
            total = arrays, rows
        return (loss, *total) if total is not None else (0.0, [], [])

    def run(self, parts: Sequence[Part], train: bool, examples: int) -> float:
        """The loss of graphs; with ``train`` parameters are updated."""
        if train and self.optimizer is None:
            raise InputError("there is no optimizer to train with", where=[caller()],
                             help="fd.compile(model, params=P, optimizer=...)")
        with self._lock:
            if not train:
                scale = 1 / max(examples, 1) if self.mean else 1.0
                return sum(self.program.loss(self._forward(*part, False)) * scale for part in parts)
            loss, arrays, rows = self._swept(parts, examples)
            self._updating()(*arrays, *[a for both in rows for a in both])
            self.count += 1
            return loss

    def _forward(self, g: Graph, attrs: Attrs, source: Any, train: bool) -> Schedule:
        self.program.name_of = lambda node: named(source, node)
        self.program.draw = (self.seed << 32) + self.count & (1 << 64) - 1
        self._last = None  # what ran before is not in memory any more, whatever becomes of this run
        s = self.program.forward(g, attrs, train)
        self._last = s, source
        if self.nan_guard:
            self._check(s)
        return s

    def _forward_more(self, g: Graph, attrs: Attrs, before: np.ndarray, source: Any) -> Schedule:
        first = len(source._known)
        self.program.name_of = lambda node: named(source, node + first)
        s = self.program.forward(g, attrs, False, before)
        self._last = s, source
        if self.nan_guard:
            self._check(s)
        return s

    def _check(self, s: Schedule) -> None:
        """Raise NonFiniteError for the first node, in the order in which they ran, with a nan or an infinity."""
        p = self.program
        for block, count, row, place, *_ in s.records.tolist():
            b = p.blocks[block]
            for f, a in b.out.fields.items():
                values = p.memory["out", p.of_type[b.out], f].array[row : row + count]
                if a.dtype.kind not in "fc" or np.isfinite(values).all():
                    continue
                bad = int(np.flatnonzero(~np.isfinite(values.reshape(count, -1)).all(axis=1))[0])
                node = int(s.node_at[s.abase[block] + place + bad])
                raise NonFiniteError(f"block {b.name}, {p.name_of(node)}: its {f or 'result'} is not finite",
                                     values=[(f or b.name, a, b.loc)], where=[caller()])

    def _updating(self) -> Any:
        """One step of the optimizer, as a function of gradients."""
        if self._update is None:
            self._update = self._compiled_update()
        return self._update

    def _compiled_update(self) -> Any:
        p = self.program
        inputs: list[Tensor] = []
        grads: list[Any] = []
        params: list[SharedVariable] = []

        def leaf(name: str, dtype: Any, shape: tuple) -> Tensor:
            inputs.append(Tensor(register_leaf(fresh_input(TensorType(np.dtype(dtype), shape)), Leaf(name))))
            return inputs[-1]

        for k, (v, parts) in enumerate(p.dense.items()):
            given = [leaf(f"g{k}_{j}", a.dtype, a.shape) for j, a in enumerate(parts)]
            grads.append(sum(given[1:], given[0]))
            params.append(self._variable(v))
        for k, v in enumerate(p.sparse):
            rows = leaf(f"rows{k}", np.int64, (size_name(f"r{k}"),))
            grads.append(SparseRows(rows, leaf(f"values{k}", v.dtype, (size_name(f"r{k}"), *v.type.shape[1:]))))
            params.append(self._variable(v))
        updates = self.optimizer.apply(grads, params)
        return compile_function([], inputs, updates=updates, name="update", threads=p.threads)

    def _variable(self, v: Value) -> SharedVariable:
        """The state that a leaf stands for, always the same object."""
        if v not in self._variables:
            self._variables[v] = variable_of(leaf_of(v).shared)
        return self._variables[v]

    # --- looking ------------------------------------------------------------------------------------------------------

    def _rows(self, type: Any, at: Any) -> Any:
        """Rows of an arena: an array, or of a struct its fields."""
        t = self.program.of_type[type]
        fields = {f: self.program.memory["out", t, f].array[at].copy() for f in type.fields}
        return fields[""] if isinstance(type, Array) else Fields("the value", type, fields)

    @property
    def compile_count(self) -> int:
        """Number of kernels that had to be compiled for the functions of this step so far."""
        functions = [*self.program.functions, *([self._update] if self._update else [])]
        return sum(f.compile_count for f in functions)

    @property
    def functions(self) -> list[Any]:
        """The functions that blocks were compiled to so far."""
        return list(self.program.functions)

    def explain(self) -> str:
        """The batches of the last minibatch, and why there are so many."""
        if self._last is None:
            return "nothing has run yet"
        s, p = self._last[0], self.program
        lines = [f"{len(s.row)} nodes in {s.batches} batches, schedule {s.how!r}"
                 + (", which makes the fewest batches" if p.how == "auto" and not p.hoisted else "")]
        wide = max(len(b.name) for b in p.blocks)
        for k, b in enumerate(p.blocks):
            sizes = s.records[s.records[:, 0] == k, 1]
            if len(sizes):
                lines.append(f"  {b.name:{wide}}  {s.counts[k]:7} instances in {len(sizes):4} batches of "
                             f"{sizes.min()} to {sizes.max()}")
        if p.hoisted:
            ahead = ", ".join(p.blocks[k].name for k in p.hoisted)
            lines.append(f"  computed in part for all instances at once: {ahead}")
        lines.append(f"  memory {p.memory.nbytes / 1e6:.1f} MB")
        return "\n".join(lines)


def _joined(parts: Sequence[Any]) -> Any:
    """Rows of several parts, one after the other: arrays, or fields of a struct."""
    if len(parts) == 1 or isinstance(parts[0], np.ndarray):
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    first = parts[0]
    fields = {f: np.concatenate([getattr(x, f) for x in parts]) for f in first._type.fields}
    return Fields(first._what, first._type, fields)


def compile(model: Any, params: Any = None, optimizer: Any = None, schedule: str = "auto", *, mean: bool = False,
            nan_guard: bool = False, threads: int | None = None, seed: int = 0,
            max_arena_bytes: int | None = None) -> Step:
    """A step: a model over examples of any shape, run in batches.

    * ``model``: a combinator that builds the graph of an example, or a list of blocks for graphs recorded by hand.
    * ``params``: the states that are trained: a collection or any nest of them; by default all that blocks use.
    * ``optimizer``: has ``apply(grads, params)``, which gives updates; of a table that is only looked up, the gradient
      is ``fd.SparseRows``.
    * ``schedule``: "depth", "agenda", "strata", or "auto": strata where it lets something be computed ahead, else the
      one with the fewest batches.
    * ``mean``: the loss is that of an example on average; without, the sum of all.
    * ``nan_guard``: look for the first node with a nan or an infinity after each run.
    * ``threads``: as for ``sc.compile``.
    * ``seed``: of random numbers in blocks (``fd.Key``). ``step.count``, how many steps were trained, goes in as well.
    * ``max_arena_bytes``: for the arrays that grow with a minibatch. One that needs more runs in parts, of whole
      examples, whose gradients are added; where an example alone does, it raises MemoryBudgetError.
    """
    return Step(model, params, optimizer, schedule, mean, nan_guard, threads, seed, max_arena_bytes)


def _states_in(params: Any) -> list[SharedVariable]:
    """The states of a collection (those that it says are trained), or of a nest."""
    if callable(getattr(params, "trained", None)):
        params = params.trained()
    values = params.values() if hasattr(params, "values") else params
    found = flatten(list(values) if isinstance(params, Mapping) or hasattr(params, "values") else values)[0]
    for v in found:
        if not isinstance(v, SharedVariable):
            raise InputError(f"params holds {type(v).__name__} {v!r:.40}, not a state", where=[caller()])
    return found
