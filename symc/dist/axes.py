"""Behaviour of graphs along axes of one size: each op computes along them element by element, folds them, or mixes.

A size is known by its name, so an axis is found in the type of every value: as an axis of its own, or as the slow part
of one (n rows of k elements, one after another). What an op does there follows from its record: what its element
function reads, which axes it folds or contracts, and of loops and branches what their bodies do. Whatever is not known
to be element by element mixes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.errors import InputError
from symc.ir.dim import Dim, product, size_name
from symc.ir.function import Function
from symc.ir.op import Decompose, Element, Fold, Running, Sorting, Update, View, lookup, splat
from symc.ir.ops.arithmetic import add, maximum, minimum, mul, sub
from symc.ir.ops.cast import cast
from symc.ir.ops.control import scan
from symc.ir.ops.effect import IDENTITY
from symc.ir.ops.elementwise import batch_leading
from symc.ir.ops.index import index_operands
from symc.ir.ops.leaf import get, iota, size
from symc.ir.ops.matrix import batch_columns
from symc.ir.ops.reduce import gives_place, identity
from symc.ir.ops.shape import broadcast, reshape
from symc.ir.order import postorder
from symc.ir.ranges import wrapped_index
from symc.ir.size_values import names, substitute
from symc.ir.types import TensorType, TupleType, Type
from symc.ir.value import Region, Value, fresh_input, make

INDEX = TensorType("i64", ())
#: How ops on the matrices in the last two axes are batched, and those on windows along the last ones.
MATRICES = (batch_leading, batch_columns)


class Mixes(Exception):
    """An op whose result at one place of an axis depends on other places."""

    def __init__(self, v: Value, inside: Value | None = None):
        super().__init__()
        self.value, self.inside = v, inside


# --- preparing --------------------------------------------------------------------------------------------------------


def expanded(f: Function, wanted: set[str]) -> Function:
    """The function with ops that mention the sizes made of others: those that decompose, places of extremes, and
    updates of what does not have such an axis, which are a fold."""
    hints = dict(f.hints)
    while True:
        done: dict[Value, Value] = {}
        for v in f.body.values:
            new = make(v.op, [done[o] for o in v.operands], v.attrs, v.regions) if v.operands else v
            found = new
            if any(_mentions(o.type, n) for o in (v, *v.operands) for n in wanted):
                found = _others(with_own_rows(new, wanted), wanted)
            done[v] = found
            if v in hints:
                for u in postorder([found], stop=set(new.operands).__contains__):
                    hints.setdefault(u, hints[v])
        results = [done[r] for r in f.body.results]
        if all(r is old for r, old in zip(results, f.body.results, strict=True)):
            return f
        f = f.with_results(results, hints)


def _others(v: Value, wanted: set[str]) -> Value:
    """The value by other ops, or as it is."""
    lowering, facts = v.op.lowering, v.op.facts
    if isinstance(lowering, Decompose) and not ("elementwise" in v.op.traits or facts.batch in MATRICES):
        made = lowering.f(v)
        return made if isinstance(made, Value) else v
    if facts.lower_argmax is not None:
        found = facts.lower_argmax(v)
        return v if found is None else found
    if isinstance(lowering, Update) and lowering.kind(v) != "set" and v.dtype.kind in "iuf":
        target, kind = v.operands[0], lowering.kind(v)
        start = splat(identity(kind, v.dtype), target.type)
        if start is not target and not any(_mentions(target.type, n) for n in wanted):
            return lookup(kind)(target, make(v.op, [start, *v.operands[1:]], v.attrs))
    return v


# --- rows by their own places -----------------------------------------------------------------------------------------


def begin_of(name: str) -> Value:
    """The place where a block of an axis begins."""
    return size(value=size_name(f"begin {name}"))


def with_own_rows(v: Value, wanted: set[str]) -> Value:
    """A gather or scatter that names each row by its own place, which then counts from where the block begins: its
    rows are those of the block."""
    operands = list(v.operands)
    for k, a in index_operands(v):
        name, at = str(v.operands[0].shape[a]), _place_axis(v.operands[k])
        if name in wanted and at is not None and str(v.operands[k].shape[at]) == name:
            i = v.operands[k]
            operands[k] = sub(i, broadcast(cast(begin_of(name), dtype=i.dtype), axes=(), shape=i.shape))
    return v if operands == list(v.operands) else make(v.op, operands, v.attrs)


def _place_axis(v: Value) -> int | None:
    """The axis along which a value counts 0, 1, ...; None if there is none."""
    v = wrapped if (wrapped := wrapped_index(v)) is not None else v
    v = v.operands[0] if v.op is mul and v.operands[1] is splat(1, v.type) else v  # as ``arange`` is written
    if v.op is iota:
        return int(v.attrs["axis"])
    if v.op is cast and v.dtype.itemsize >= 4:
        return _place_axis(v.operands[0])
    if v.op is not reshape and v.op is not broadcast or (at := _place_axis(v.operands[0])) is None:
        return None
    if v.op is reshape:  # the same axis among others of size 1
        n, lead = v.operands[0].shape[at], product(v.operands[0].shape[:at])
        return next((b for b, s in enumerate(v.shape) if s == n and product(v.shape[:b]) == lead), None)
    return int(v.attrs["axes"][at])


def _reads_own_rows(v: Value, name: str, at: Sequence[int | None], out: int | None) -> bool:
    """True for a gather or scatter of the rows of ``with_own_rows``, whose other indices are those of the rows."""
    pairs = dict(index_operands(v))
    own = next((k for k, a in pairs.items() if at[0] is not None and a == at[0]), None)
    if own is None or at[own] is None or v.operands[own].op is not sub or _place_axis(v.operands[own].operands[0]) != (
            at[own]) or begin_of(name) not in postorder(v.operands[own].operands[1:]):
        return False
    scatters = len(v.operands) > len(pairs) + 1
    return all(a == at[own] for a in at[1:]) and out == (at[0] if scatters else at[own])


# --- what an op does --------------------------------------------------------------------------------------------------


def does_along(v: Value, name: str) -> str | None:
    """The kind of binary op by which the results of blocks become one, of an op that folds the axis; None for one that
    computes along it. Raises Mixes for any other."""
    if v.op is size or not any(_mentions(o.type, name) for o in (v, *v.operands)):
        return None
    at = [_axis(v, o.type, name) for o in v.operands]
    out = _axis(v, v.type, name)
    if v.op is get or not v.operands and not _has_element(v):
        return None
    if v.regions:
        _regions(v, name)
        return None
    return _simple(v, name, at, out)


def _simple(v: Value, name: str, at: Sequence[int | None], out: int | None) -> str | None:
    op, lowering = v.op, v.op.lowering
    aligned = all(a is None or a == out for a in at)
    if op.facts.meets is not None and (contract := v.attrs.get("contract")) is not None:
        folds = [a is not None and a in axes for a, axes in zip(at, contract, strict=False)]
        return "add" if all(folds) else _unless(v, not any(folds))
    if "elementwise" in op.traits or op.derivative is IDENTITY:
        return _unless(v, aligned)
    if isinstance(lowering, Fold):
        if at[0] in v.attrs["axes"]:
            return _unless(v, not gives_place(lowering.kind)) or lowering.kind
        return None
    if op is iota:  # the blocks are told where they begin
        return _unless(v, out is None or out != v.attrs["axis"] or v.shape[out] == size_name(name))
    if isinstance(lowering, View):  # the same elements in the same order
        return _unless(v, at[0] is not None and out is not None and (
            product(v.operands[0].shape[: at[0]]) == product(v.shape[:out]) if op is reshape else aligned))
    if op.facts.indices is not None and _reads_own_rows(v, name, at, out):
        return None
    if isinstance(lowering, Update):
        return _update(v, name, at, out)
    if op.facts.batch in MATRICES:
        return _unless(v, aligned and out is not None and out < v.operands[0].ndim - len(v.attrs.get("window", "ij")))
    if "searches" in op.traits:  # sorted numbers, and those that are looked for
        return _unless(v, at[0] is None and at[1] == out)
    if isinstance(lowering, Sorting | Running) or isinstance(v.attrs.get("axis"), int) and not _has_element(v):
        same = all(o.ndim == v.operands[0].ndim for o in v.operands)
        return _unless(v, aligned and same and out is not None and out != v.attrs.get("axis"))
    return _unless(v, _has_element(v) and _reads_along(v, lowering.f, at, out))  # type: ignore[union-attr]


def _unless(v: Value, fine: bool) -> str | None:
    if not fine:
        raise Mixes(v)
    return None


def _has_element(v: Value) -> bool:
    return isinstance(v.op.lowering, Element) and v.op.lowering.f is not None


def _reads_along(v: Value, f: Any, at: Sequence[int | None], out: int | None) -> bool:
    """True if an element reads the operands at its own place of the axis, and depends on the place in no other way."""
    index = [fresh_input(INDEX) for _ in range(v.ndim)]
    reads: list[tuple[int, Sequence[Value]]] = []

    def read(k: int, where: Sequence[Value]) -> Value:
        reads.append((k, tuple(where)))
        return fresh_input(TensorType(v.operands[k].dtype, ()))

    found = [f(v, index, read)]
    for k, where in reads:
        a = at[k]
        if a is not None and (out is None or where[a] is not index[out]):
            return False
        found += [w for j, w in enumerate(where) if j != a]
    return out is None or index[out] not in postorder(found)


def _update(v: Value, name: str, at: Sequence[int | None], out: int | None) -> str | None:
    lowering: Any = v.op.lowering
    kind: str = lowering.kind(v)
    if out is None:
        target = v.operands[0]
        start = kind != "set" and v.dtype.kind in "iuf" and splat(identity(kind, v.dtype), target.type) is target
        return _unless(v, start and all(a is not None for a in at[1:2])) or kind
    index = [fresh_input(INDEX) for _ in range(v.operands[1].ndim)]
    read = lambda k, where: fresh_input(TensorType(v.operands[k].dtype, ()))
    places = lowering.place(v, index, read)
    along = at[0] == out and at[1] is not None and _is_at(places[out], index[at[1]]) and not any(
        a is not None for a in at[2:])
    return _unless(v, along)


def _is_at(place: Value, index: Value) -> bool:
    """True for an index, to which a start may be added that is moved to 0, as what begins there is as long as the
    axis."""
    if place.op is add and place.operands[1] is index and place.operands[0].op is maximum:
        low, zero = place.operands[0].operands
        return low.op is minimum and low.operands[1] is size(value=0) and zero.data is not None and not zero.data
    return place is index


def _regions(v: Value, name: str) -> None:
    """Loops, branches and blocks: what is in them computes along the axis; a loop over it has no carry."""
    if v.op is scan:
        carry, many = v.attrs["carry"], v.attrs["carry"] + v.attrs["xs"]
        over = v.attrs["length"] == size_name(name)
        if over and (carry or any(_mentions(t, name) for t in v.regions[0].params)):
            raise Mixes(v)
        if not over and any(_axis(v, o.type, name) == 0 for o in v.operands[carry:many]):
            raise Mixes(v)
    elif any(name in names(s) for key, s in v.attrs.items() if isinstance(s, Dim)):
        raise Mixes(v)
    for region in v.regions:
        _body(v, region, name)


def _body(v: Value, region: Region, name: str) -> None:
    for u in region.values:
        if u.op is size and name in names(u.attrs["value"]) or u.op is iota and name in names(
                u.attrs["shape"][u.attrs["axis"]]):
            raise Mixes(v, u)
        try:
            if does_along(u, name) is not None:
                raise Mixes(v, u)
        except Mixes as e:
            raise Mixes(v, e.inside or e.value) from None


def _mentions(t: Type, name: str) -> bool:
    items = t.items if isinstance(t, TupleType) else (t,)
    return any(name in names(s) for i in items if isinstance(i, TensorType) for s in i.shape)


def _axis(v: Value, t: Type, name: str) -> int | None:
    """The axis of the size, or of which it is the slow part, if there is one. Raises Mixes where there are two, or
    sizes that are made of it otherwise."""
    found: int | None = None
    for item in t.items if isinstance(t, TupleType) else (t,):
        found = None
        for a, s in enumerate(item.shape):  # type: ignore[union-attr]
            if name in names(s):
                if found is not None or not _is_slow(s, name):
                    raise Mixes(v)
                found = a
    return found


def _is_slow(s: Any, name: str) -> bool:
    """True for a size, and for products of it with what does not depend on it."""
    each = substitute(s, {name: 1})
    return name not in names(each) and s == product((size_name(name), each))


def is_plain(v: Value, name: str) -> bool:
    """True for a value whose blocks along a size are those of an axis."""
    return all(s == size_name(name) for s in v.shape if name in names(s))


def refusal(f: Function, e: Mixes, label: str, axis: int) -> InputError:
    """The error for a function that mixes along an axis which is in several blocks."""
    op = e.value.op.name
    what = f"{e.inside.op.name} inside {op}" if e.inside is not None else op
    return InputError(
        f"dist.map: {f.name} cannot be computed in blocks of axis {axis} of {label}: {what} mixes what is along it",
        values=[(op, e.value.type, None)], where=f.locations(e.value),
        help=f"give the axis in one block ({label}.rechunk({{{axis}: -1}})); element by element functions and "
             "reductions of it take blocks")
