"""``dist.map``: a function of arrays that do not fit into memory, as a Dask graph of functions of blocks."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.dist.axes import refusal
from symc.dist.sources import Lazy, Source, is_parquet, needed, source
from symc.dist.stages import Cutter, Known, Piece, Stage, cuttable
from symc.dist.tasks import Block, combined, of_list
from symc.driver.deferred_function import Specializing
from symc.driver.function import CompiledFunction
from symc.driver.jit import JitFunction, jit
from symc.driver.max_bytes import read_max_bytes
from symc.driver.measured import MeasuredFunction
from symc.errors import InputError, MemoryBudgetError, SymcError
from symc.ir.record import dataclass
from symc.ir.size_values import evaluate, names
from symc.tensors.callsite import caller
from symc.tensors.pytree import flatten, unflatten

#: The most bytes of a task where nothing says how many there are, and the share of a worker's memory that a task of it
#: takes at most.
BYTES, SHARE = 128 << 20, 4
#: How many partial results are combined in one task.
FAN = 8
Chunks = dict[str, tuple[int, ...]]


def map_(f: Any, /, *args: Any, max_bytes: Any = None, progress: bool | Callable[[int, int], Any] = False,
        **kwargs: Any) -> Any:
    """``f`` of arrays that may be larger than memory: Dask arrays in the nest of its results, computed when asked for.

    ``f``: a compiled function, or a function of symbolic values. Arguments, by position or name: Dask arrays, zarr
    arrays or paths of stores, paths of .npy files, NumPy arrays, and columns of Parquet files (``sc.dist.column(path,
    name)``, or a path, for the column that is called like the argument; one path alone gives all arguments).

    Axes along which ``f`` computes element by element are in blocks, as are those that it folds (sums, products,
    extremes, any, all, contractions, and what is made of them: means, variances, log-sum-exp, softmax). Raises
    InputError where a Dask array has several blocks along an axis that ``f`` mixes (sorts, running sums), with the op.

    ``max_bytes``: the most memory of a task, by the plan of the function; by default a share of a worker's memory.
    ``progress``: compute now, and show how many blocks are done; a function is called with (done, of).
    """
    loc = caller()
    try:
        compiled, sources = _function(f, args, kwargs)
        result = Mapped(compiled, sources, _bytes(max_bytes), max_bytes is not None).arrays()
    except SymcError as e:
        e.attach((), [loc])
        raise
    return _with_progress(result, progress) if progress else result


def _callable(f: Any) -> CompiledFunction | JitFunction:
    """A function whose types are known, or that finds them in a call."""
    if not callable(f):
        raise InputError(f"dist.map takes a function, not {type(f).__name__}", help="sc.compile(...) makes one")
    if isinstance(f, Specializing) and not isinstance(f, JitFunction):
        raise InputError(f"dist.map: the types of {f.name} are not known", help="sc.input(name, dtype, shape)")
    return f if isinstance(f, CompiledFunction | JitFunction) else jit(f)


def _function(f: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[CompiledFunction, list[Source]]:
    """The compiled function, and the sources of its arguments in its order."""
    f = _callable(f)
    slots = f._signature.arguments.slots if isinstance(f, CompiledFunction) else ()
    names = [s.name for s in slots] if isinstance(f, CompiledFunction) else list(inspect.signature(f).parameters)
    leaves = {s.name for s in slots if s.nest.kind == "leaf"}
    if len(args) == 1 and len(names) - len(kwargs) > 1 and is_parquet(args[0]):
        args = [args[0]] * (len(names) - len(kwargs))
    found: dict[int, tuple[np.ndarray, Source]] = {}
    static = f.static if isinstance(f, JitFunction) else ()

    def stand_in(item: Any, label: str) -> Any:
        if isinstance(item, tuple | list | dict):
            pairs = item.items() if isinstance(item, dict) else enumerate(item)
            made = {k: stand_in(x, f"{label}[{k!r}]") for k, x in pairs}
            return made if isinstance(item, dict) else type(item)(made.values())
        if label in static or item is None or isinstance(item, bool | int | float | complex | type | np.generic):
            return item
        s = source(item, label)
        array = s.stand_in()
        found[id(array)] = array, s
        return array

    def argument(item: Any, label: str) -> Any:
        """Lists of numbers are arrays, where the function takes one."""
        return stand_in(np.asarray(item) if label in leaves and isinstance(item, list | tuple) else item, label)

    given = [argument(a, names[k] if k < len(names) else f"argument {k}") for k, a in enumerate(args)]
    more = {k: argument(a, k) for k, a in kwargs.items()}
    if isinstance(f, CompiledFunction):
        arrays = flatten(f._signature.arguments.bind(tuple(given), more))[0]
    else:
        f, arrays = f.compiled_for(*given, **more)
    if isinstance(f, MeasuredFunction):
        raise InputError(f"dist.map: {f.name} has sizes that are data, which blocks cannot know of each other",
                         help="sc.where(condition, x, 0) keeps the size of what is not wanted")
    return f, [found[id(a)][1] if id(a) in found else source(a, f"argument {k}") for k, a in enumerate(arrays)]


def _bytes(given: Any) -> int:
    found = read_max_bytes(given)
    if found is not None:
        return int(found[0])
    client = client_now()
    if client is not None:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        shares = [w["memory_limit"] // (SHARE * max(1, w["nthreads"])) for w in workers if w.get("memory_limit")]
        return max(1 << 20, min([BYTES, *shares]))
    return BYTES


def client_now() -> Any:
    """The Dask client that computes now, if there is one."""
    if "distributed" not in sys.modules:
        return None
    try:
        return sys.modules["distributed"].get_client()
    except ValueError:
        return None


# --- blocks -----------------------------------------------------------------------------------------------------------


class Mapped:
    """A function on given arguments: how its axes are divided, and the graph of tasks."""

    def __init__(self, compiled: CompiledFunction, sources: list[Source], most: int, strict: bool):
        self.dask = needed("dask.array", "dask", "dist.map")
        self.compiled, self.sources = compiled, sources
        signature = compiled._signature
        stand_ins = signature.arrays(tuple(s.stand_in() for s in sources), {})
        self.sizes = signature.all_sizes([a.shape for a in (*stand_ins, *[c.host() for c in compiled._cells])])
        self.can = cuttable(compiled, self.sizes)
        arguments = [i for i in self.can.function.inputs if i.role == "arg"]
        self.axes = [tuple(map(str, i.type.shape)) for i in arguments]
        self.chunks, self.divided = self._given()
        self.cutter = Cutter(self.can.function, compiled, list(self.chunks))
        self.stages = self.cutter.stages()
        self._fit(most, strict)

    def _given(self) -> tuple[Chunks, set[str]]:
        """The blocks along each size that can be in blocks, and the sizes that Dask arrays divide."""
        edges: dict[str, set[int]] = {n: {self.sizes[n]} for axes in self.axes for n in axes if n in self.can.names}
        divided: set[str] = set()
        for s, axes in zip(self.sources, self.axes, strict=True):
            for a, n in enumerate(axes):
                if len(s.chunks[a]) > 1:
                    if n in self.can.mixing:
                        raise refusal(self.can.function, self.can.mixing[n], s.label, a)
                    if n in edges:
                        edges[n].update(itertools.accumulate(s.chunks[a]))
                        divided.add(n)
        return {n: tuple(b - a for a, b in itertools.pairwise(sorted({0, *e}))) or (0,)
                for n, e in edges.items()}, divided

    def _fit(self, most: int, strict: bool) -> None:
        """Divide axes until each task fits: the first ones first, and those that Dask arrays divide last."""
        grain = {n: max(s.grain[a] for s, axes in zip(self.sources, self.axes, strict=True)
                        for a, m in enumerate(axes) if m == n) for n in self.chunks}
        order = sorted(self.chunks, key=lambda n: (n in self.divided, min(axes.index(n) for axes in self.axes
                                                                          if n in axes)))
        while (need := max(map(self._memory, self.stages))) > most:
            name = next((n for n in order if max(self.chunks[n]) > 1), None)
            if name is None:
                if strict:
                    raise self._too_large(need, most)
                return
            size = -(-max(self.chunks[name]) // 2)
            size -= size % grain[name] if size > grain[name] else 0
            self.chunks[name] = tuple(k for n in self.chunks[name] for k in _pieces(n, size))

    def _memory(self, stage: Stage) -> int:
        call = stage.call
        wanted = {n for i in call.inputs for s in i.type.shape for n in names(s)}
        sizes = {n: max(self.chunks[n]) if n in self.chunks else self.sizes[n] for n in wanted}
        if call._compilation.plan is not None:
            return int(call.memory(**sizes))
        held = call._compilation.source.body  # by NumPy, op by op: there is no plan
        return sum(evaluate(v.type.size, sizes) * v.dtype.itemsize for v in (*held.leaves, *held.results))

    def _too_large(self, need: int, most: int) -> MemoryBudgetError:
        n, e = next(iter(self.can.mixing.items()), ("", None))
        lines = self.can.function.locations(e.value) if e else []
        return MemoryBudgetError(
            f"dist.map: a task of {self.compiled.name} takes {need:,} bytes at least, and max_bytes is {most:,}",
            where=lines, help=f"{e.value.op.name} mixes what is along the size {n}, which is whole in every task"
            if e else "a task has one element at least along " + ", ".join(self.chunks) if self.chunks else
            "sizes with a name are divided: sc.input(x, dtype, shape=('n', ...))")

    # --- the graph ----------------------------------------------------------------------------------------------------

    def arrays(self) -> Any:
        """The results, Dask arrays in their nest."""
        from dask.highlevelgraph import HighLevelGraph

        base = self.dask.core.tokenize
        token = base(*self.compiled.__dask_tokenize__(), [s.token for s in self.sources], sorted(self.chunks.items()))
        self.name = f"symc-{self.compiled.name}-{token}"
        self.graph: dict[Any, Any] = {}
        self.begin = {n: [0, *itertools.accumulate(c)] for n, c in self.chunks.items()}
        self.given = [s.dask.rechunk(self._chunks_of(s, axes)) if s.dask is not None else None
                      for s, axes in zip(self.sources, self.axes, strict=True)]
        numbers: dict[Piece, str] = {}
        for k, stage in enumerate(self.stages):
            self._stage(k, stage, numbers)
        base_graph = HighLevelGraph.from_collections(self.name, self.graph, [g for g in self.given if g is not None])
        found = [self._result(base_graph, self.cutter.pieces[v], numbers) for v in self.can.function.body.results]
        return unflatten(self.compiled._built.outputs, found)

    def _stage(self, k: int, stage: Stage, numbers: dict[Piece, str]) -> None:
        block = Block(stage.call, f"{self.name}-{k}")
        tasks = f"{self.name}-{k}"
        spots = [dict(zip(stage.over, spot, strict=True))
                 for spot in itertools.product(*[range(len(self.chunks[n])) for n in stage.over])]
        for spot in spots:
            key = (tasks, *spot.values())
            self.graph[key] = (block, *[self._read(r, spot, numbers) for r in stage.reads])
            for j in range(len(stage.makes)) if len(stage.makes) > 1 else ():
                self.graph[(f"{tasks}-{j}", *spot.values())] = (of_list, key, j)
        for j, piece in enumerate(stage.makes):
            made = f"{tasks}-{j}" if len(stage.makes) > 1 else tasks
            numbers[piece] = name = f"{self.name}-{k}.{j}"
            parts: dict[tuple[int, ...], list[Any]] = {}
            for spot in spots:
                parts.setdefault(_place(piece, spot), []).append((spot, (made, *spot.values())))
            for place, found in parts.items():
                full = [key for spot, key in found if all(self.chunks[n][i] for n, i in spot.items())]
                self._combine((name, *place), piece.kind, full or [found[0][1]])

    def _combine(self, key: tuple, kind: str | None, parts: list[Any]) -> None:
        """Partial results made one by a tree of tasks, whose form depends on their number alone."""
        for level in itertools.count():
            if kind is None or len(parts) == 1:
                self.graph[key] = parts[0]
                return
            out = []
            for at in range(0, len(parts), FAN):
                out.append((f"{key[0]}-t{level}", *key[1:], at // FAN))
                self.graph[out[-1]] = (combined, kind, parts[at : at + FAN])
            parts = out

    def _read(self, read: Any, spot: Mapping[str, int], numbers: Mapping[Piece, str]) -> Any:
        """Entry of a task for an argument of its function."""
        begin = {n: self.begin[n][i] for n, i in spot.items()}
        if isinstance(read, Piece):
            return (numbers[read], *_place(read, spot))
        if isinstance(read, Known):
            if read.what == "ruler":
                n = str(read.of)
                return Lazy(_Ruler(self.chunks[n][spot[n]]), ())
            return read.number(self.sizes, begin)
        s, axes, given = self.sources[read], self.axes[read], self.given[read]
        if given is not None:
            return (given.name, *[spot.get(n, 0) for n in axes])
        where = tuple(slice(begin[n], self.begin[n][spot[n] + 1]) if n in spot else slice(0, k)
                      for n, k in zip(axes, s.shape, strict=True))
        assert s.read is not None
        if not s.embedded:
            return Lazy(s.read, where)
        key = (f"{self.name}-arg{read}", *[spot.get(n, 0) for n in axes])
        if key not in self.graph:
            self.graph[key] = np.ascontiguousarray(s.read(where))
        return key

    def _chunks_of(self, s: Source, axes: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        return tuple(self.chunks.get(n, (k,)) for n, k in zip(axes, s.shape, strict=True))

    def _result(self, graph: Any, piece: Piece, numbers: Mapping[Piece, str]) -> Any:
        from dask.highlevelgraph import HighLevelGraph

        shape = [evaluate(n, self.sizes) for n in piece.value.shape]
        chunks = tuple(self.chunks[n] if n else (k,) for n, k in zip(piece.blocks, shape, strict=True))
        name = f"{numbers[piece]}-result"
        alias: Any = {(name, *at): (numbers[piece], *at) for at in itertools.product(*[range(len(c)) for c in chunks])}
        whole = HighLevelGraph({**graph.layers, name: alias}, {**graph.dependencies, name: {self.name}})
        return self.dask.Array(whole, name, chunks, dtype=piece.value.dtype)


@dataclass(frozen=True)
class _Ruler:
    """Reads an array without elements that has a size."""

    size: int

    def __call__(self, where: Any) -> np.ndarray:
        return np.empty((self.size, 0), bool)


def _place(piece: Piece, spot: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(spot[n] if n else 0 for n in piece.blocks)


def _pieces(n: int, size: int) -> list[int]:
    return [min(size, n - at) for at in range(0, n, size)] or [0]


# --- progress ---------------------------------------------------------------------------------------------------------


def _with_progress(result: Any, progress: Any) -> Any:
    """The results, computed and held where they were computed; ``progress`` is told of each block."""
    import dask

    leaves, nest = flatten(result)
    say = progress if callable(progress) else bar
    if client_now() is None:
        from dask.callbacks import Callback

        done: set[Any] = set()

        def finished(key: Any, value: Any, graph: Any, state: Any, worker: Any) -> None:
            done.add(key)
            say(len(done), sum(len(state[k]) for k in ("waiting", "ready", "running", "finished")))

        with Callback(posttask=finished):
            return unflatten(nest, dask.persist(*leaves))
    from distributed import as_completed, futures_of

    kept = dask.persist(*leaves)
    futures = futures_of(kept)
    for k, future in enumerate(as_completed(futures)):
        say(k + 1, len(futures))
        if future.status == "error":
            future.result()
    return unflatten(nest, kept)


def bar(done: int, of: int) -> None:
    """A line on the standard error that grows."""
    full = 40 * done // max(1, of)
    print(f"\r[{'#' * full}{' ' * (40 - full)}] {done}/{of}", end="\n" if done == of else "", file=sys.stderr,
          flush=True)
