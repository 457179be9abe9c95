"""Cutting a function where it folds an axis: functions of blocks, whose partial results are combined in between.

A fold over an axis that is in blocks is computed of each block and combined; what is made of the combined value comes a
stage later, and may read the blocks again: a variance has two stages, a softmax along the axis three. So results are
those of the function, to the rounding of sums in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symc.dist.axes import Mixes, begin_of, does_along, expanded, is_plain
from symc.driver.compile import compile
from symc.driver.function import CompiledFunction
from symc.driver.modes import BY_NUMPY
from symc.errors import InputError
from symc.ir import location
from symc.ir.at_sizes import at_sizes
from symc.ir.dim import Dim, Size, size_name
from symc.ir.function import Function
from symc.ir.op import lookup
from symc.ir.ops.cast import cast
from symc.ir.ops.leaf import iota, size
from symc.ir.ops.shape import broadcast
from symc.ir.order import postorder
from symc.ir.record import dataclass
from symc.ir.size_values import evaluate, names
from symc.ir.traverse import replace
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.opt import optimize
from symc.tensors.leaves import Leaf, register_leaf
from symc.tensors.tensor import Tensor

#: What is done before a function is cut: formulas become their stable forms, which are then cut.
BEFORE = "canonicalize,fold,stabilize"
#: The options of a function that its stages have too.
OPTIONS = ("mode", "threads", "denormals", "backend")
Blocks = tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class Piece:
    """An array that stages read or make: an argument, a result, or a partial one that is combined by the op ``kind``.

    ``blocks``: the size by which each axis is in blocks, None for one that is whole.
    """

    value: Value
    blocks: Blocks
    kind: str | None = None


@dataclass(frozen=True, eq=False)
class Stage:
    """A function of blocks. ``reads``: for each argument the number of one of the function's own, a piece that an
    earlier stage made, or what is known of the whole (a size, where a block begins, a block's size). ``over``: the
    sizes whose blocks it is called for, in this order."""

    call: CompiledFunction
    reads: tuple[Any, ...]
    makes: tuple[Piece, ...]
    over: tuple[str, ...]


@dataclass(frozen=True)
class Known:
    """A number that depends on the whole alone: a ``size``; or on the block: ``where`` the blocks of a size begin. Of
    ``ruler``: an array without elements that tells the size of the block."""

    what: str
    of: Size

    def number(self, sizes: Mapping[str, int], begin: Mapping[str, int]) -> int:
        return evaluate(self.of, sizes if self.what == "size" else begin)


@dataclass(frozen=True, eq=False)
class Cuttable:
    """A function ready to be cut, the sizes that can be in blocks, and those along which it mixes, by op."""

    function: Function
    names: tuple[str, ...]
    mixing: dict[str, Mixes]


def cuttable(f: CompiledFunction, sizes: Mapping[str, int]) -> Cuttable:
    """Looks at what a function does along its sizes. Raises InputError for one that updates states.

    Where it mixes along the first one, the others become the numbers that they are: then a reshape may turn out to
    keep the rows.
    """
    if f._built.function.updates:
        raise InputError(f"dist.map: {f.name} updates states, and blocks have no order",
                         help="sc.dist.DataParallel trains on several processes")
    source = f._compilation.source
    as_written = f._options["mode"] in BY_NUMPY
    found = _cuttable(source, as_written)
    first = next((n for i in source.inputs for n in map(str, i.type.shape) if n.isidentifier()), "")
    if first in found.mixing:
        fixed = _cuttable(at_sizes(source, {n: k for n, k in sizes.items() if n != first}), as_written)
        return fixed if first in fixed.names else found
    return found


def _cuttable(source: Function, as_written: bool) -> Cuttable:
    of_states = {n for i in source.inputs if i.role == "state" for s in i.type.shape for n in names(s)}
    found = dict.fromkeys(str(s) for i in source.inputs for s in i.type.shape if isinstance(s, Dim))
    named = [n for n in found if n.isidentifier() and n not in of_states]
    ready = expanded(source if as_written else optimize(source, BEFORE).function, set(named))
    mixing: dict[str, Mixes] = {}
    pieces = {*ready.params, *ready.body.results}
    for name in named:
        try:
            for v in (*ready.body.values, *ready.params):
                if does_along(v, name) is not None:
                    pieces.add(v)
        except Mixes as e:
            mixing[name] = e
    for name in named:
        mixing.update((name, Mixes(v)) for v in pieces if not is_plain(v, name) and name not in mixing)
    return Cuttable(ready, tuple(n for n in named if n not in mixing), mixing)


class Cutter:
    """Cuts a function by the sizes that are in blocks."""

    def __init__(self, f: Function, compiled: CompiledFunction, wanted: Sequence[str]):
        self.f, self.compiled, self.wanted = f, compiled, list(wanted)
        self.kinds: dict[Value, str] = {}
        self.levels: dict[Value, int] = {}
        for v in f.body.values:
            found = {kind for n in wanted if (kind := does_along(v, n)) is not None}
            self.levels[v] = max((self.levels[o] + (o in self.kinds) for o in v.operands), default=0)
            if found:
                (self.kinds[v],) = found
        self.pieces = {v: Piece(v, self.blocks(v), self.kinds.get(v)) for v in [*self.kinds, *f.body.results]}
        self._leaves: dict[Value, Any] = {}
        self._open_inputs()

    def blocks(self, v: Value) -> Blocks:
        """Size of the blocks of each axis of a value."""
        return tuple(n if (n := str(s)) in self.wanted else None for s in v.shape)

    def stages(self) -> list[Stage]:
        """The stages, in order."""
        groups: dict[tuple[int, tuple[str, ...]], list[Value]] = {}
        for v in [*self.kinds, *[r for r in self.f.body.results if r not in self.kinds]]:
            read = v.operands if v in self.kinds else (v,)
            used = {n for o in read for s in o.shape for n in names(s)}
            over = tuple(n for n in self.wanted if n in used)
            group = groups.setdefault((self.levels[v], over), [])
            if v not in group:
                group.append(v)
        return [self._stage(level, over, groups[level, over]) for level, over in sorted(groups)]

    def _stage(self, level: int, over: tuple[str, ...], values: list[Value]) -> Stage:
        reads = {leaf: read for leaf, read in self._leaves.values() if read is not None}
        mapping = {v: leaf for v, (leaf, _) in self._leaves.items()}
        for v in self.kinds:
            if self.levels[v] < level:
                mapping[v] = leaf = self._leaf(f"p{len(mapping)}", v.type)
                reads[leaf] = self.pieces[v]
        self._tell_places(mapping, reads, over)

        def carry(old: Value, new: Value) -> None:
            location.note(new, self.f.hints.get(old, location.NOWHERE))

        outputs = replace(values, mapping, carry)
        used = [v for v in postorder(outputs) if v in reads]
        told = {n for v in used if not isinstance(reads[v], Known) for n in map(str, v.shape)}
        for n in over:
            if n not in told:  # only broadcasts have the size
                ruler = self._leaf(f"r_{n}", TensorType("bool", (size_name(n), 0)))
                reads[ruler] = Known("ruler", size_name(n))
                used.append(ruler)
        options = {k: self.compiled._options[k] for k in OPTIONS}
        name = f"{self.compiled.name}_{level}" if level or over else self.compiled.name
        call = compile([Tensor(v) for v in outputs], [Tensor(v) for v in used], name=name, **options)
        return Stage(call, tuple(reads[v] for v in used), tuple(self.pieces[v] for v in values), over)

    def _open_inputs(self) -> None:
        """Free leaves for the function's params, and for the sizes that are in blocks."""
        cells = iter(self.compiled._cells)
        for k, (p, i) in enumerate(zip(self.f.params, self.f.inputs, strict=True)):
            if i.role == "state":
                leaf = register_leaf(fresh_input(i.type), Leaf(i.name, i.loc, "state", next(cells)))
                self._leaves[p] = leaf, None
            else:
                self._leaves[p] = self._leaf(i.name, i.type, i.loc), k
        for v in self.f.body.values:
            if v.op is size and names(v.attrs["value"]) & set(self.wanted):
                self._leaves[v] = self._leaf("size", v.type), Known("size", v.attrs["value"])
        for n in self.wanted:
            self._leaves[begin_of(n)] = self._leaf(f"begin_{n}", TensorType("i64", ())), Known("begin", size_name(n))

    def _tell_places(self, mapping: dict[Value, Value], reads: dict[Value, Any], over: Sequence[str]) -> None:
        """Positions along an axis count from where the block begins."""
        begin: dict[str, Value] = {}
        for v in self.f.body.values:
            n = str(v.attrs["shape"][v.attrs["axis"]]) if v.op is iota else ""
            if n in over:
                if n not in begin:
                    begin[n] = self._leaf(f"begin_{n}", TensorType("i64", ()))
                    reads[begin[n]] = Known("begin", size_name(n))
                mapping[v] = lookup("add")(v, broadcast(cast(begin[n], dtype=v.dtype), axes=(), shape=v.shape))

    def _leaf(self, name: str, t: TensorType, loc: Any = None) -> Value:
        with location.at((loc,) if loc else ()):
            return register_leaf(fresh_input(t), Leaf(name, loc))


__all__ = ["Cuttable", "Cutter", "Known", "Piece", "Stage", "cuttable"]
