"""Graphs of examples as integers: recorded by hand or by combinators, kept by the data set, merged by the minibatch."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError, did_you_mean
from symc.fold.block import Block
from symc.fold.program import Attrs
from symc.fold.schedule import Graph, merged
from symc.fold.types import Array, Type
from symc.tensors.callsite import caller

_none = object()  # stands for an argument that is not given
#: A node of a graph that is being recorded.
Node = int


class Recorder:
    """A graph that is being recorded: ``g.node(left, right)`` adds an instance of the block ``node``, and gives the
    number that stands for its value. Arguments are nodes, lists of nodes at ragged ports, and attributes."""

    def __init__(self, blocks: Sequence[Block], first: int = 0):
        self._blocks, self._first = tuple(blocks), first  # the number of the first example
        self._op: list[int] = []
        self._aptr: list[int] = [0]
        self._args: list[Node] = []
        self._starts: list[int] = []  # the first node of each example
        self._attrs: dict[tuple[int, str], list[Any]] = {
            (k, p.name): [] for k, b in enumerate(blocks) for p in (*b.attrs, *b.keys)}
        types = dict.fromkeys(t for b in blocks for t in (b.out, *[p.type for p in b.values]))
        self._types = {t: k for k, t in enumerate(types)}
        self._of = [self._types[b.out] for b in blocks]  # the type of what each block makes
        self._metrics: dict[str, list[Node]] = {}
        self._selves: list[Any] = []  # the values that ``also`` is said of
        self._adders = {b: self._adder(k, b) for k, b in enumerate(self._blocks)}
        for b, add in self._adders.items():
            self.__dict__.setdefault(b.name, add)

    def __getattr__(self, name: str) -> Any:
        raise InputError(f"no block is called {name!r}", where=[caller()],
                         help=did_you_mean(name, [b.name for b in self.__dict__.get('_blocks', ())]))

    def __len__(self) -> int:
        return len(self._op)

    def _added(self, block: Block) -> Callable[..., Node]:
        """Function that records a block; one that is new here comes after the others."""
        if block not in self._adders:
            self._types.setdefault(block.out, len(self._types))
            self._of.append(self._types[block.out])
            self._adders[block] = self._adder(len(self._blocks), block)
            self._blocks += (block,)
        return self._adders[block]

    def _types_of(self, nodes: Sequence[Node]) -> tuple[Type, ...]:
        """The types of values. Raises InputError for what is none."""
        for v in nodes:
            if isinstance(v, bool) or not isinstance(v, int | np.integer) or not 0 <= v < len(self._op):
                raise InputError(f"{v!r:.40} is no node{self._where()}", where=[caller()],
                                 help="what a block records is a number that stands for its value")
        return tuple([self._blocks[self._op[v]].out for v in nodes])

    def example(self) -> None:
        """From here on nodes belong to another example."""
        self._starts.append(len(self._op))

    def _adder(self, k: int, block: Block) -> Callable[..., Node]:
        """Recorder of an instance of a block: a function of its ports, written for it, as it runs for every node."""
        names = [p.name for p in block.asked]
        scope: dict[str, Any] = {"_op": self._op, "_of": self._of, "_args": self._args, "_aptr": self._aptr,
                                 "_none": _none, "_bound": self._bound, "_block": block, "_refuse": self._refused}
        scope |= {f"_keep_{p.name}": self._attrs[k, p.name].append for p in (*block.attrs, *block.keys)}
        scope["_key"] = self._key
        right = [f"_of[_op[{p.name}]] == {self._types.get(p.type)} and {p.name} >= 0" for p in block.ones]
        if block.many:
            name, t = block.many.name, self._types.get(block.many.type)
            right += [f"type({name}) in (list, tuple)", f"all([_of[_op[_v]] == {t} and _v >= 0 for _v in {name}])"]
        lines = [f"def add({''.join(f'{n}=_none, ' for n in names)}*_more, **_named):",
                 f"    if _more or _named{''.join(f' or {p.name} is _none' for p in block.attrs)}:",
                 f"        return add(*_bound(_block, ({''.join(f'{n}, ' for n in names)}), _more, _named))",
                 "    try:",
                 f"        _right = {' and '.join(right) or True}",
                 "    except (IndexError, TypeError):",
                 "        _right = False",
                 "    if not _right:",
                 f"        _refuse(_block, ({''.join(f'{n}, ' for n in names)}))",
                 *[f"    _args.append({p.name})" for p in block.ones],
                 *[f"    _args.extend({p.name})" for p in block.values if p.kind == "many"],
                 *[f"    _keep_{p.name}({p.name})" for p in block.attrs],
                 *[f"    _keep_{p.name}(_key())" for p in block.keys],
                 f"    _op.append({k})",
                 "    _aptr.append(len(_args))",
                 "    return len(_op) - 1"]
        exec(compile("\n".join(lines), __file__, "exec"), scope)  # a line of ours, where lines of users are looked for
        return scope["add"]

    def _key(self) -> int:
        """Key that tells the next node from all others, of its example and of others, whatever runs beside it."""
        first = self._starts[-1] if self._starts else 0
        return (self._first + len(self._starts) << 32) + len(self._op) - first

    @property
    def _made(self) -> list[Block]:
        """The block of each node."""
        return [self._blocks[k] for k in self._op]

    def _refused(self, block: Block, given: Sequence[Any]) -> None:
        """Raise what is wrong with arguments."""
        self._bound(block, given, (), {})
        for p, x in zip(block.asked, given, strict=True):
            if p.kind == "many" and not isinstance(x, list | tuple):
                raise InputError(f"block {block.name}, port {p.name}{self._where()}: expected a list of nodes of type "
                                 f"{p.type}, not {'one' if isinstance(x, int) else type(x).__name__}", where=[caller()])
            for v in () if p.kind == "attr" else x if p.kind == "many" else (x,):
                whole = isinstance(v, int | np.integer) and 0 <= v < len(self._op)
                if not whole or self._of[self._op[v]] != self._types.get(p.type):
                    self._refuse(block, p, v)

    def _bound(self, block: Block, given: Sequence[Any], more: Sequence[Any],
               named: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments, if there is one for each port."""
        missing = [p.name for p, x in zip(block.asked, given, strict=True) if x is _none]
        if missing or more or named:
            what = f"nothing at port {missing[0]}" if missing else f"{len(given) + len(more)} arguments"
            if named:
                what = f"no port {next(iter(named))!r}"
            raise InputError(f"block {block.name} takes {len(given)} arguments, but got {what}{self._where()}",
                             where=[caller()], help=f"it is {block!r}")
        return given

    def _where(self) -> str:
        return f", in example {self._first + len(self._starts) - 1}" if self._starts else ""

    def _refuse(self, block: Block, p: Any, v: Any) -> None:
        what = f"block {block.name}, port {p.name}{self._where()}"
        if not isinstance(v, int | np.integer):
            raise InputError(f"{what}: expected a node of type {p.type}, not {type(v).__name__} {v!r:.40}",
                             where=[caller()], help="what a block records is a number that stands for its value")
        if not 0 <= v < len(self._op):
            raise InputError(f"{what}: there is no node {v} yet, of {len(self._op)}", where=[caller()],
                             help="arguments are recorded before what takes them: a graph has no cycles")
        made = self._blocks[self._op[v]]
        raise InputError(f"{what}: expected {p.type}, but node {v} ({made.name}) is {made.out}",
                         where=[caller()], help=f"it is {block!r}")

    def _graph(self, first: int = 0) -> tuple[Graph, Attrs]:
        """The graph that was recorded, from a node on; arguments before it are below 0, by how much before."""
        op, aptr = np.array(self._op[first:], np.int64), np.array(self._aptr[first:], np.int64)
        args = np.array(self._args[aptr[0] :], np.int64) - first
        apos, columns = np.empty_like(op), {}
        for k, b in enumerate(self._blocks):
            nodes = np.flatnonzero(op == k)
            apos[nodes] = np.arange(len(nodes))
            for p in b.attrs:
                values = self._attrs[k, p.name]
                columns[k, p.name] = self._column((k, p.name), values[len(values) - len(nodes) :], nodes + first)
            for p in b.keys:
                values = self._attrs[k, p.name]
                columns[k, p.name] = np.array(values[len(values) - len(nodes) :], np.uint64)
        return Graph(op, aptr - aptr[0], args, apos), Attrs(columns)

    def _example_of(self, node: int) -> tuple[Any, int]:
        """The example of a node, and its number there."""
        k = int(np.searchsorted(self._starts, node, side="right")) - 1
        return (self._first + k, node - self._starts[k]) if k >= 0 else (None, node)

    def _column(self, key: tuple[int, str], values: list[Any], nodes: np.ndarray) -> np.ndarray:
        block = self._blocks[key[0]]
        a = next(p.type for p in block.attrs if p.name == key[1])
        try:
            given = np.array(values) if values else np.empty(0, a.dtype)
            found = given.reshape(len(values), *a.shape).astype(a.dtype, copy=False)
            if not _holds(a, given, found.reshape(given.shape)):
                raise ValueError
        except (ValueError, TypeError):
            k, odd = _odd(values, a)
            raise InputError(f"block {block.name}: attribute {key[1]} is {a}, but was given {odd}"
                             + ("" if k is None else f", at {named(self, int(nodes[k]))}"),
                             where=[caller(), block.loc]) from None
        return found


def _holds(a: Array, given: np.ndarray, found: np.ndarray) -> bool:
    """True if nothing is lost but digits of floats."""
    return given.dtype.kind in "biuf" and (a.dtype.kind not in "iu" or bool((found == given).all()))


def named(source: Any, node: int) -> str:
    """Name of a node in messages: by its example, if it is of one."""
    example, number = source._example_of(node)
    return f"node {number}" + ("" if example is None else f" of example {example}")


def _odd(values: Sequence[Any], a: Any) -> tuple[int | None, str]:
    """The first value that is not of a type, and its place."""
    for k, v in enumerate(values):
        try:
            x = np.asarray(v)
            if x.shape != a.shape or not _holds(a, x, x.astype(a.dtype)):
                return k, f"{v!r:.40}"
        except (ValueError, TypeError):
            return k, f"{v!r:.40}"
    return None, "values of different kinds"


class Dataset:
    """Examples, encoded once. ``data[3]``, ``data[10:20]`` and ``data.shuffled(50)`` are minibatches for a step."""

    def __init__(self, recorder: Recorder):
        self.blocks = recorder._blocks
        self.graph, self.attrs = recorder._graph()
        starts = [*recorder._starts, len(recorder)]
        self.nptr = np.array(starts, np.int64)
        self.mptr = self.graph.aptr[self.nptr]
        self.metrics = {name: np.array(nodes, np.int64) for name, nodes in recorder._metrics.items()}

    def add(self, other: Dataset) -> None:
        """The examples of another data set, of the same blocks or the first of them, after those here."""
        g, h, n = self.graph, other.graph, len(self.graph.op)
        apos = h.apos + np.bincount(g.op, minlength=len(other.blocks))[h.op]
        both = np.concatenate
        self.graph = Graph(both([g.op, h.op]), both([g.aptr, h.aptr[1:] + len(g.args)]), both([g.args, h.args + n]),
                           both([g.apos, apos]))
        mine, theirs = self.attrs.arrays, other.attrs.arrays
        self.attrs = Attrs({**mine} | {key: both([mine[key], a]) if key in mine else a for key, a in theirs.items()})
        self.nptr = both([self.nptr, other.nptr[1:] + n])
        self.mptr, none = self.graph.aptr[self.nptr], np.zeros(0, np.int64)
        self.metrics = {name: both([self.metrics.get(name, none), other.metrics.get(name, none) + n])
                        for name in {**self.metrics, **other.metrics}}
        self.blocks = max(self.blocks, other.blocks, key=len)

    def __len__(self) -> int:
        return len(self.nptr) - 1

    def __getitem__(self, k: Any) -> Batch:
        """An example, a slice of them, those with some numbers, or those of a mask."""
        if isinstance(k, slice):
            k = np.arange(*k.indices(len(self)))
        given = np.asarray(k)
        if given.dtype == bool and given.shape == (len(self),):
            given = np.flatnonzero(given)
        if given.size and given.dtype.kind not in "iu":
            raise InputError(f"examples are taken by number, by a slice, or by a mask of {len(self)}, not {k!r:.40}",
                             where=[caller()])
        picked = np.atleast_1d(given.astype(np.int64))
        wrong = picked[(picked < -len(self)) | (picked >= len(self))]
        if wrong.size:
            raise InputError(f"there are {len(self)} examples, not one with number {wrong[0]}", where=[caller()])
        return Batch(self, picked % max(len(self), 1))

    def shuffled(self, size: int, seed: Any = None) -> Iterator[Batch]:
        """Minibatches of examples in random order."""
        if not isinstance(size, int | np.integer) or size < 1:
            raise InputError(f"a minibatch has some examples, not {size!r:.40}", where=[caller()])
        order = np.random.default_rng(seed).permutation(len(self))
        for k in range(0, len(self), size):
            yield self[order[k : k + size]]


class Batch:
    """Some examples of a data set: their graphs as one."""

    def __init__(self, data: Dataset, picked: np.ndarray):
        self.data, self.picked = data, picked

    def __len__(self) -> int:
        return len(self.picked)

    def graph(self) -> Graph:
        d = self.data
        return merged(self.picked, d.nptr, d.mptr, d.graph)

    def metric(self, name: str) -> np.ndarray:
        """The nodes of the merged graph that are of a metric."""
        d, nodes = self.data, self.data.metrics[name]
        first = np.cumsum([0, *(d.nptr[self.picked + 1] - d.nptr[self.picked])])
        parts = [nodes[slice(*np.searchsorted(nodes, d.nptr[[x, x + 1]]))] - d.nptr[x] + first[k]
                 for k, x in enumerate(self.picked)]
        return np.concatenate(parts) if parts else nodes[:0]

    def _example_of(self, node: int) -> tuple[int, int]:
        """The example of a node of the merged graph, and its number there."""
        ends = np.cumsum(self.data.nptr[self.picked + 1] - self.data.nptr[self.picked])
        k = int(np.searchsorted(ends, node, side="right"))
        return int(self.picked[k]), node - (int(ends[k - 1]) if k else 0)


#: Function that encodes examples, from a number on, for blocks and what comes after these.
Encoder = Callable[[Sequence[Block], int, Sequence[Any]], Dataset]


def encoded(encode: Encoder, blocks: Sequence[Block], parts: Sequence[tuple[int, Sequence[Any]]]) -> Dataset:
    """Parts of a data set as one, encoded side by side in processes where these can be forked. What fails there, or
    needs other blocks, is encoded here."""
    forks = "fork" in multiprocessing.get_all_start_methods()
    others = [_forked(encode, blocks, *part) if forks else lambda: None for part in parts[1:]]
    whole = encode(blocks, *parts[0])
    for part, other in zip(parts[1:], others, strict=True):
        whole.add(other() or encode(whole.blocks, *part))
    return whole


def _forked(encode: Encoder, blocks: Sequence[Block], *part: Any) -> Callable[[], Dataset | None]:
    """A process that encodes examples: a function that waits for what it has made, or for None."""
    receive, send = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        try:
            data = encode(blocks, *part)
            right = len(data.blocks) == len(blocks)
            data.blocks = ()
            send.send(data if right else None)
        except Exception:
            send.send(None)

    def result() -> Dataset | None:
        try:
            data = receive.recv()
        except EOFError:  # the process was killed
            data = None
        if data is not None:
            data.blocks = tuple(blocks)
        process.join()
        return data

    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: what a child runs takes no lock of ours
        process.start()
    send.close()
    return result
