"""Indexing by data: gather and scatter.

Indices are integers in [0, n), as the front end has wrapped negative ones. For others the reference raises
IndexingError; a kernel is given indices that `check_index` has checked, and even so never reads outside of an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symc.errors import DTypeError, IndexingError, InputError, ShapeError
from symc.ir.dim import Size, known_nonnegative, product
from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Facts
from symc.ir.op import Custom, Element, Linear, Op, Update, lookup, register
from symc.ir.ops.arithmetic import conjugate, maximum, minimum
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq
from symc.ir.ops.elementwise import like
from symc.ir.ops.leaf import iota, scalar, size
from symc.ir.ops.logic import where
from symc.ir.ops.shape import broadcast, reshape
from symc.ir.ranges import wrapped_index
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value

Axes = tuple[int, ...]


# --- gather -----------------------------------------------------------------------------------------------------------


def _check_indices(name: str, t: TensorType, indices: Sequence[TensorType], axes: Axes) -> tuple[Size, ...]:
    """The shape of all index arrays."""
    if list(axes) != sorted(set(axes)) or any(not 0 <= a < t.ndim for a in axes):
        raise ShapeError(f"{name}: axes {axes} are not distinct axes of {t}")
    if not axes or len(indices) != len(axes):
        raise ShapeError(f"{name}: {len(indices)} index arrays for axes {axes}")
    for i in indices:
        if i.dtype.kind not in "iu":
            raise DTypeError(f"{name}: indices are {i}, not integers")
        if i is not indices[0]:
            raise ShapeError(f"{name}: indices differ in type: {indices[0]} and {i}")
    return indices[0].shape


def _gathered_shape(t: TensorType, index_shape: tuple[Size, ...], axes: Axes) -> list[Size]:
    return [*index_shape, *[s for a, s in enumerate(t.shape) if a not in axes]]


def out_of_bounds(index: np.ndarray, size: int, wrapped: bool = False, along: int | None = None, of: str = "",
                  law: str = "") -> None:
    """Raises IndexingError, with the first index as the user gave it, if one is not in [0, size).

    ``wrapped``: the size was added to negative ones. ``along`` which axis of which array ``of``. With a ``law``, what
    is wrong is not an index: it raises InputError, with the first place where the law does not hold.
    """
    bad = (index < 0) | (index >= size)
    if not np.any(bad):
        return
    if law:
        raise InputError(law + (f", but not at {np.argwhere(bad)[0].tolist()}" if bad.ndim else ""))
    wrong = int(index[bad].flat[0])
    where = "an axis" if along is None else f"axis {along}"
    raise IndexingError(
        f"index {wrong - size if wrapped and wrong < 0 else wrong} is out of bounds for {where} of size {size}"
        + (f", of an array {of}" if of else ""),
        help="indices count from 0; negative ones from the end, down to minus the size",
    )


def _check_bounds(name: str, shape: Sequence[int], indices: Sequence[np.ndarray], axes: Axes) -> None:
    for i, a in zip(indices, axes, strict=True):
        out_of_bounds(np.asarray(i), shape[a], along=a)


def index_operands(v: Value) -> list[tuple[int, int]]:
    """The operands of a gather or scatter that are indices, and the axis that each counts along; of others none."""
    first = v.op.facts.indices
    return [] if first is None else [(first + k, a) for k, a in enumerate(v.attrs["axes"])]


def explain_bounds(v: Value, arrays: Sequence[np.ndarray]) -> None:
    """Raises IndexingError for the first index of a gather or scatter that is out of bounds, as the user gave it."""
    for k, a in index_operands(v):
        out_of_bounds(arrays[k], np.shape(arrays[0])[a], counts_from_end(v.operands[k]), a, str(v.operands[0].type))


def counts_from_end(v: Value) -> bool:
    """True if ``v`` is an index to which the size was added where it was negative."""
    while "movement" in v.op.traits and len(v.operands) == 1:
        v = v.operands[0]
    return wrapped_index(v) is not None


def _gather_infer(t: TensorType, *indices: TensorType, axes: Axes) -> TensorType:
    return t.with_shape(_gathered_shape(t, _check_indices("gather", t, indices, axes), axes))


def _gather_reference(x, *indices, axes):
    _check_bounds("gather", x.shape, indices, axes)
    return np.array(np.moveaxis(x, axes, range(len(axes)))[tuple(np.asarray(i) for i in indices)], x.dtype, order="C")


def _place(i: Value, n: Size, of: Value) -> Value:
    """An i64 index kept inside an axis of size n, so that no memory outside is touched; as it is, if ``of``, of which
    it is an element, is known to be inside."""
    while "movement" in of.op.traits and len(of.operands) == 1:
        if of.op.name == "bounded" and known_nonnegative(n - of.attrs["size"]):
            return i if i.dtype == DTYPES["i64"] else cast(i, dtype=DTYPES["i64"])
        of = of.operands[0]
    if i.dtype != DTYPES["i64"]:
        i = cast(i, dtype=DTYPES["i64"])
    if of.op is iota and known_nonnegative(n - of.shape[of.attrs["axis"]]):
        return i
    return maximum(minimum(i, size(value=n - 1)), 0)


def _gather_element(v: Value, index: Sequence[Value], at) -> Value:
    x, axes = v.operands[0], v.attrs["axes"]
    depth = v.operands[1].ndim
    rest = iter(index[depth:])
    chosen = {a: _place(at(1 + k, index[:depth]), x.shape[a], v.operands[1 + k]) for k, a in enumerate(axes)}
    return at(0, [chosen[a] if a in chosen else next(rest) for a in range(x.ndim)])


def _gather_transpose(g, v):
    x, *indices = v.operands
    return [scatter(like(x, 0), g, *indices, axes=v.attrs["axes"], mode="add"), *[None] * len(indices)]


def _gather_samples() -> Iterator[tuple[tuple, dict]]:
    x = np.arange(24.0).reshape(2, 3, 4) * 0.5 - 3
    i = np.array([1, 0, 1, 1])
    for dtype in ARITHMETIC:
        yield (np.arange(5).astype(dtype), np.array([[4, 0], [2, 2]])), dict(axes=(0,))
    for name in ("i1", "u8", "i4"):
        yield (x, i.astype(name)), dict(axes=(0,))
    yield (x, i), dict(axes=(1,))
    yield (x, np.array(2)), dict(axes=(2,))
    yield (x, i, i + 2), dict(axes=(0, 2))
    yield (x, i, i, i), dict(axes=(0, 1, 2))
    yield (x, np.empty((0, 2), "i8")), dict(axes=(1,))
    yield (x[:, :0], i), dict(axes=(0,))
    yield (x + 1j, i), dict(axes=(1,))


gather = register(Op(
    "gather", _gather_infer, _gather_reference, Linear(_gather_transpose, (0,)), Element(_gather_element),
    frozenset({"indexing", "selects"}), _gather_samples,
    "The elements of the first operand at the places that the index arrays (one for each axis in `axes`) name; their "
    "axes come first, the axes not indexed follow.",
    facts=Facts(indices=1, rounding="none", picks=1),
))  # fmt: skip


# --- scatter ----------------------------------------------------------------------------------------------------------

#: The names of the ops that a scatter combines what is there with what comes by, by its mode (besides "set").
SCATTER_MODES = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


def _scatter_infer(t: TensorType, updates: TensorType, *indices: TensorType, axes: Axes, mode: str) -> TensorType:
    want = t.with_shape(_gathered_shape(t, _check_indices("scatter", t, indices, axes), axes))
    if updates.dtype != t.dtype:
        raise DTypeError(f"scatter: updates {updates} into {t}", help="cast them to one dtype")
    if updates.shape != want.shape:
        raise ShapeError(f"scatter: updates are {updates}, the places are {want}")
    if mode != "set" and mode not in SCATTER_MODES:
        raise ShapeError(f"scatter: no mode {mode!r}", help="modes: set, " + ", ".join(SCATTER_MODES))
    if mode in ("max", "min") and t.dtype.kind == "c":
        raise DTypeError(f"scatter: {mode} is not defined for complex numbers")
    return t


def _scatter_reference(x, updates, *indices, axes, mode):
    _check_bounds("scatter", x.shape, indices, axes)
    out = np.array(x)
    view = np.moveaxis(out, axes, range(len(axes)))
    places = tuple(np.asarray(i) for i in indices)
    with np.errstate(all="ignore"):
        if mode != "set":
            ufunc = lookup(SCATTER_MODES[mode]).facts.numpy
            assert isinstance(ufunc, np.ufunc)
            ufunc.at(view, places, updates)
        else:
            flat = np.ravel_multi_index(places, view.shape[: len(axes)]).ravel()
            last = flat.size - 1 - np.unique(flat[::-1], return_index=True)[1]
            view[tuple(p.ravel()[last] for p in places)] = updates.reshape(flat.size, *view.shape[len(axes):])[last]
    return out


def spread_over_rest(mask: Value, like_: Value) -> Value:
    """An array over the index axes, repeated over the axes that follow."""
    return broadcast(mask, axes=tuple(range(mask.ndim)), shape=like_.shape)


def _winners(v: Value) -> Value:
    """Mask of the updates of a scatter "set" that stay: the last at each place. A bool over the index axes."""
    x, _, *indices = v.operands
    axes, shape = v.attrs["axes"], indices[0].shape
    order = reshape(iota(shape=(product(shape),), axis=0, dtype=DTYPES["i64"]), shape=shape)
    board = zeros_of(order, [x.shape[a] for a in axes])
    every = tuple(range(len(axes)))
    last = scatter(board, order, *indices, axes=every, mode="set")
    return eq(gather(last, *indices, axes=every), order)


def zeros_of(x: Value, shape: Sequence[Size]) -> Value:
    """An array of zeros, of x's dtype and another shape."""
    return broadcast(scalar(0, x.dtype), axes=(), shape=tuple(shape))


def _set_vjp(g: Value, v: Value):
    _, updates, *indices = v.operands
    axes = v.attrs["axes"]
    taken = gather(g, *indices, axes=axes)
    if indices[0].ndim:
        taken = where(spread_over_rest(_winners(v), updates), taken, like(taken, 0))
    return scatter(g, like(updates, 0), *indices, axes=axes, mode="set"), taken


def _add_vjp(g: Value, v: Value):
    return g, gather(g, *v.operands[2:], axes=v.attrs["axes"])


def _mul_parts(v: Value) -> tuple[Value, Value]:
    """d result / d x, at every place of x, and d result / d update, for every update: products of the others.

    Only numbers other than 0 are divided by: zeros are counted apart.
    """
    x, u, *indices = v.operands
    axes = v.attrs["axes"]
    zero, one = like(u, 0), like(u, 1)
    is_zero = eq(u, 0)
    nonzero = where(is_zero, one, u)
    zeros = gather(scatter(like(x, 0), where(is_zero, one, zero), *indices, axes=axes, mode="add"), *indices, axes=axes)
    rest = gather(scatter(x, nonzero, *indices, axes=axes, mode="mul"), *indices, axes=axes)
    alone = eq(zeros, where(is_zero, one, zero))  # no zero besides this one
    return scatter(like(x, 1), u, *indices, axes=axes, mode="mul"), where(alone, rest / nonzero, zero)


def _mul_vjp(g: Value, v: Value):
    over_x, over_u = _mul_parts(v)
    return g * conjugate(over_x), gather(g, *v.operands[2:], axes=v.attrs["axes"]) * conjugate(over_u)


def _extreme_parts(v: Value) -> tuple[Value, Value]:
    """The shares of x and of the updates in the result: equals share evenly."""
    x, u, *indices = v.operands
    axes = v.attrs["axes"]
    from_x = cast(eq(x, v), dtype=x.dtype)
    from_u = cast(eq(u, gather(v, *indices, axes=axes)), dtype=x.dtype)
    count = scatter(from_x, from_u, *indices, axes=axes, mode="add")
    count = maximum(count, like(count, 1))
    return from_x / count, from_u / gather(count, *indices, axes=axes)


def _extreme_vjp(g: Value, v: Value):
    over_x, over_u = _extreme_parts(v)
    return g * over_x, gather(g, *v.operands[2:], axes=v.attrs["axes"]) * over_u


_SCATTER_VJPS = {"set": _set_vjp, "add": _add_vjp, "mul": _mul_vjp, "max": _extreme_vjp, "min": _extreme_vjp}


def _scatter_vjp(g: Value, v: Value):
    return [*_SCATTER_VJPS[v.attrs["mode"]](g, v), *[None] * (len(v.operands) - 2)]


def _scatter_jvp(tangents, v: Value) -> Value:
    x, u, *indices = v.operands
    axes, mode = v.attrs["axes"], v.attrs["mode"]
    tx = like(x, 0) if tangents[0] is None else tangents[0]
    tu = like(u, 0) if tangents[1] is None else tangents[1]
    if mode in ("set", "add"):
        return scatter(tx, tu, *indices, axes=axes, mode=mode)
    over_x, over_u = _mul_parts(v) if mode == "mul" else _extreme_parts(v)
    return scatter(tx * over_x, tu * over_u, *indices, axes=axes, mode="add")


def _scatter_place(v: Value, index: Sequence[Value], at) -> list[Value]:
    x, axes = v.operands[0], v.attrs["axes"]
    depth = v.operands[2].ndim
    rest = iter(index[depth:])
    chosen = {a: _place(at(2 + k, index[:depth]), x.shape[a], v.operands[2 + k]) for k, a in enumerate(axes)}
    return [chosen[a] if a in chosen else next(rest) for a in range(x.ndim)]


def combining(mode: str) -> Op | None:
    """The op that a scatter of ``mode`` combines what is there with what comes by; None for "set"."""
    return None if mode == "set" else lookup(SCATTER_MODES[mode])


def _scatter_kind(v: Value) -> str:
    op = combining(v.attrs["mode"])
    return "set" if op is None else op.name


def _scatter_samples() -> Iterator[tuple[tuple, dict]]:
    x = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 3.0]])
    i = np.array([2, 0, 2])
    for mode in ("set", *SCATTER_MODES):
        for dtype in ARITHMETIC:
            if dtype.kind != "c" or mode not in ("max", "min"):
                yield (np.arange(1, 5).astype(dtype), np.array([3, 1, 3]).astype(dtype), i), dict(axes=(0,), mode=mode)
        yield (x, np.array([[3.0, 4.0], [-1.0, 2.0], [5.0, 3.0]]), i), dict(axes=(1,), mode=mode)
        yield (x, np.array([1.5, 2.5, 0.0]), i % 2, i), dict(axes=(0, 1), mode=mode)
        yield (x, np.array([7.0, -2.0, 3.0]), np.array(1, "u1")), dict(axes=(0,), mode=mode)
        yield (x, np.empty((0, 2)), np.empty(0, "i4")), dict(axes=(1,), mode=mode)
        yield (x, np.array([0.0, 0.0, 4.0]), i * 0, i * 0), dict(axes=(0, 1), mode=mode)


scatter = register(Op(
    "scatter", _scatter_infer, _scatter_reference, Custom(_scatter_jvp, _scatter_vjp),
    Update(_scatter_place, _scatter_kind),
    frozenset({"indexing", "selects"}), _scatter_samples,
    "The first operand with the updates in the second put in (`mode` set: the last one stays), or added, multiplied, "
    "taken the max or min of, at the places that the index arrays name, as in gather. A max or min splits its "
    "derivative evenly between equals.",
    facts=Facts(indices=2, rounding="short"),
))  # fmt: skip
