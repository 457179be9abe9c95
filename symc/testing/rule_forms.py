"""Left sides in other forms: other dtypes, sizes and ranks; numbers that hide; and what comes near and is another.

Nothing here decides what is right. A form that cannot be built (an op is not for that dtype, an attribute does not fit
a size) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from symc.errors import SymcError
from symc.ir.attrs import Array, Attrs
from symc.ir.batch import vmap
from symc.ir.dim import Size, size_name
from symc.ir.op import lookup, splat
from symc.ir.ops.shape import broadcast, reshape, transpose
from symc.ir.text import splat_of
from symc.ir.traverse import free_inputs, oldest_first, postorder
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input, make
from symc.opt.engine.rule import Rule

#: The dtypes of each kind that a rule which claims the kind is tested with.
DTYPES = {"f": ("f16", "f32", "f64"), "c": ("c64", "c128"), "i": ("i8", "i64"), "u": ("u8", "u64"), "b": ("bool",)}
#: The name of the form in which an example is given.
AS_IT_IS = "as it is"
#: What cannot be built.
CANNOT = (SymcError, TypeError, ValueError, IndexError, OverflowError, KeyError, NotImplementedError)
#: Ops that take the place of others in forms that come near.
OTHERS = {
    "add": "sub", "sub": "add", "mul": "div", "div": "mul", "sum": "max", "max": "sum", "lt": "le", "eq": "lt",
    "maximum": "minimum", "minimum": "maximum", "and": "or", "or": "and", "logsumexp": "sum", "norm": "sum",
}  # fmt: skip


def free_leaves(v: Value) -> list[Value]:
    """The inputs of a left side, in order."""
    return oldest_first(free_inputs([v]))


def _same(x: Value, operands: list[Value]) -> Value:
    return make(x.op, operands, x.attrs, x.regions)


def rebuilt(v: Value, done: dict[Value, Value], new: Callable[[Value, list[Value]], Value] = _same) -> Value | None:
    """``v`` where some values are replaced, and ``new`` makes the others of their operands; None if that cannot be."""
    try:
        for x in postorder([v], stop=done.__contains__):
            if x not in done:
                done[x] = new(x, [done[o] for o in x.operands])
    except CANNOT:
        return None
    return done[v]


# --- dtypes and sizes -------------------------------------------------------------------------------------------------


def retyped(v: Value, dtype: str) -> Value | None:
    """The graph with ``dtype`` for float64, if it converts nothing and its constants are numbers."""
    target = TensorType(dtype).dtype

    def new(x: Value, operands: list[Value]) -> Value:
        number = splat_of(x)
        if number is not None:
            return splat(number[()], x.type.with_dtype(dtype)) if x.dtype == "f8" else x
        if x.op.name in ("constant", "cast") and (x.dtype == "f8" or x.operands and x.operands[0].dtype == "f8"):
            raise TypeError("a conversion")
        attrs = x.attrs.map(lambda a: target if isinstance(a, np.dtype) and a == "f8" else a)
        return make(x.op, operands, Attrs(attrs), x.regions)

    leaves = {x: fresh_input(x.type.with_dtype(dtype)) if x.dtype == "f8" else x for x in free_leaves(v)}
    return rebuilt(v, leaves, new)


def resized(v: Value, old: int, size: Size) -> Value | None:
    """The graph with ``size`` in the place of every length ``old``."""

    def length(s: Any) -> Any:
        return size if isinstance(s, int) and not isinstance(s, bool) and s == old else s

    def new(x: Value, operands: list[Value]) -> Value:
        if x.op.name == "constant":
            if old in x.shape:
                raise ValueError("data have their size")
            return x
        attrs = {k: tuple(map(length, a)) if k in ("shape", "size") and isinstance(a, tuple) else a
                 for k, a in x.attrs.items()}  # fmt: skip
        if x.op.name == "size":
            attrs = {"value": length(x.attrs["value"])}
        return make(x.op, operands, Attrs(attrs), x.regions)

    leaves = {x: fresh_input(TensorType(x.dtype, tuple(map(length, x.shape)))) for x in free_leaves(v)}
    return rebuilt(v, leaves, new)


def lengths(v: Value) -> list[int]:
    """The numbers of which the shapes consist."""
    found = [x for x in postorder([v]) if isinstance(x.type, TensorType)]
    return sorted({s for x in found for s in x.shape if isinstance(s, int)})


def batched(v: Value) -> Value | None:
    """The graph over one more leading axis of symbolic length, as ``vmap`` makes it."""
    leaves = free_leaves(v)
    b = size_name("batch")
    try:
        return vmap([v], leaves, [fresh_input(TensorType(x.dtype, (b, *x.shape))) for x in leaves], b)[0]
    except CANNOT:
        return None


def variants(r: Rule, v: Value) -> Iterator[tuple[str, Value]]:
    """Named forms of a left side: as it is, narrower dtypes, every length 0, 1 and symbolic, one more axis."""
    yield AS_IT_IS, v
    for dtype in ("f32", "f16"):
        found = retyped(v, dtype)
        if found is not None and found is not v:
            yield dtype, found
    for old in lengths(v):
        for size in (0, 1, size_name("n")):
            found = resized(v, old, size) if size != old else None
            if found is not None:
                yield f"{size} for {old}", found
    found = batched(v)
    if found is not None and found is not v:
        yield "batched", found


def in_claimed_dtypes(r: Rule) -> Iterator[tuple[str, str, Value | None]]:
    """Kind, dtype and left side of a rule stated as an equation; None where the ops are not for the dtype."""
    from symc.opt.engine.examples import leaves

    if r.build is None:
        return
    for kind in r.kinds:
        for dtype in DTYPES[kind]:
            try:
                types = {k: r.dtypes.get(n, dtype) for k, n in enumerate(r.variables)}
                left = r.build(*leaves(len(r.variables), types, (3,)))[0]
                yield kind, dtype, left
            except CANNOT:
                yield kind, dtype, None


# --- numbers that hide ------------------------------------------------------------------------------------------------


def hidden_numbers(v: Value) -> Value | None:
    """The graph where every number of rank 1 or more comes by way of axes of size 1, a repetition, a transpose."""
    changed = False

    def new(x: Value, operands: list[Value]) -> Value:
        nonlocal changed
        number = splat_of(x)
        if number is None or not x.ndim or x.op is not broadcast:
            return _same(x, operands)
        changed = True
        unit = reshape(splat(Array(number), TensorType(x.dtype)), shape=(1,) * x.ndim)
        row = transpose(unit, perm=tuple(reversed(range(x.ndim)))) if x.ndim > 1 else unit
        return broadcast(reshape(row, shape=()), axes=(), shape=x.shape)

    out = rebuilt(v, {x: x for x in free_leaves(v)}, new)
    return out if changed else None


# --- forms that come near ---------------------------------------------------------------------------------------------


def near_misses(v: Value) -> Iterator[tuple[str, Value]]:
    """The left side with one thing changed: a number, an op, an attribute, which of two equal operands it is; or with
    a leaf or a detour in the place of a part."""
    leaves = {x: x for x in free_leaves(v)}
    for x in postorder([v]):
        for what, other in [*_others(x), *([] if x is v else _instead(x))]:
            found = rebuilt(v, {**leaves, **({} if other.op.name == "input" else {other: other}), x: other})
            if found is not None:
                yield what, found
    yield from _separated(v)


def _instead(x: Value) -> list[tuple[str, Value]]:
    """A leaf, and a function of it, in the place of a part."""
    if x.op.name == "input" or not isinstance(x.type, TensorType) or not x.operands and x.ndim:
        return []
    detour = {"f": "atan", "b": "not", "i": "neg", "u": "not", "c": "exp"}[x.dtype.kind]
    return [("another value", fresh_input(x.type)), (f"{detour} of it", make(lookup(detour), (x,)))]


def _others(x: Value) -> list[tuple[str, Value]]:
    """Values of the type of ``x`` that differ from it in one thing."""
    number = splat_of(x)
    if number is not None:
        if x.operands and x.operands[0].op.name != "constant" or x.dtype.kind not in "iuf":
            return []
        return [(f"{number} + 1", splat(number[()] + 1, x.type))] if np.isfinite(number) else []
    out = []
    for name in _other_ops(x):
        try:
            out.append((f"{name} for {x.op.name}", make(lookup(name), x.operands, x.attrs, x.regions)))
        except CANNOT:
            continue
    for key, value in x.attrs.items() if x.op.name not in ("input", "constant") else ():
        if isinstance(value, tuple) and all(isinstance(s, int) for s in value):
            more, less = tuple(s + 1 for s in value), tuple(s - 1 for s in value)
            for changed in (value[::-1], more, less, (*value, 1), value[1:]):
                try:
                    if changed != value:
                        attrs = Attrs({**x.attrs, key: changed})
                        out.append((f"{key} = {changed}", make(x.op, x.operands, attrs, x.regions)))
                except CANNOT:
                    continue
    return out


def _other_ops(x: Value) -> list[str]:
    if x.op.name in OTHERS:
        return [OTHERS[x.op.name]]
    if "elementwise" in x.op.traits and len(x.operands) == 1 and not x.attrs and x.dtype.kind == "f":
        return ["atan" if x.op.name != "atan" else "tanh"]
    return []


def _separated(v: Value) -> Iterator[tuple[str, Value]]:
    """Every leaf that is used more than once, with another leaf in its last place."""
    for leaf in free_leaves(v):
        users = [x for x in postorder([v]) if leaf in x.operands]
        places = [(x, k) for x in users for k, o in enumerate(x.operands) if o is leaf]
        if len(places) < 2:
            continue
        at, place = places[-1]
        other = fresh_input(leaf.type)

        def new(x: Value, operands: list[Value], at: Value = at, place: int = place, other: Value = other) -> Value:
            if x is at:
                operands[place] = other
            return _same(x, operands)

        found = rebuilt(v, {x: x for x in free_leaves(v)}, new)
        if found is not None:
            yield "two values for one", found


def unclaimed(r: Rule) -> Iterator[tuple[str, Value]]:
    """The left side of an equation in dtypes that the rule is not for.

    NumPy's functions convert what they are not for: their left side is then one of the dtype that they convert to.
    """
    from symc.opt.engine.examples import leaves

    if r.build is None or r.pattern is None:
        return
    for kind, dtypes in DTYPES.items():
        if kind in r.kinds:
            continue
        try:
            types = {k: r.dtypes.get(n, dtypes[-1]) for k, n in enumerate(r.variables)}
            left = r.build(*leaves(len(r.variables), types, (3,)))[0]
            if not any(v.op is lookup("cast") for v in postorder([left])):
                yield dtypes[-1], left
        except CANNOT:
            continue
