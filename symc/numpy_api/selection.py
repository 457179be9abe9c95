"""Selecting and assembling: choose, piecewise, insert, delete, membership, blocks, conversions between indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, IndexingError, InputError, OutOfRangeError, ShapeError, SymbolicValueError
from symc.ir.dim import Size, known_equal, product
from symc.ir.op import lookup
from symc.ir.ops.ensure import at_least
from symc.numpy_api.manipulation import along, normal_axes
from symc.numpy_api.parsed_index import wrapped_size
from symc.numpy_api.promotion import broadcast_shape, of_shape, rows, same_dtype
from symc.tensors.convert import as_tensor, placed
from symc.tensors.public import API, called, public
from symc.tensors.sizes import as_size, entries, integer, known_number, size_of, user_size
from symc.tensors.tensor import Tensor

#: Among how many elements a search is no faster than comparing all.
FEW = 16


def in_range(index: Any, n: Any, name: str, mode: Any = "raise") -> Tensor:
    """Integers from 0 up to a size n: those outside are an error (in a call, if they are data), wrap or are clipped."""
    t, size = as_tensor(index), as_size(n)
    if t.dtype.kind not in "iu" and t.value.shape != (0,):
        raise DTypeError(f"{name}: indices are integers, not {t.dtype}", values=rows([t]))
    t = API["astype"](t, "int64")
    if mode == "wrap":
        return API["remainder"](t, user_size(size))
    if mode == "clip":
        return API["clip"](t, 0, user_size(size - 1))
    if mode != "raise":
        raise ShapeError(f"{name}: mode is 'raise', 'wrap' or 'clip', not {mode!r}", values=rows([t]))
    data = t.value.data
    if data is not None and isinstance(size, int):
        wrong = data[(data < 0) | (data >= size)]
        if wrong.size:
            raise OutOfRangeError(f"{name}: index {int(wrong.flat[0])} is out of bounds for size {size}",
                                  values=rows([t]))
        return t
    return Tensor(lookup("check_index")(t.value, size=size))


def must_hold(condition: Tensor, law: str) -> Tensor:
    """0 where a condition holds; elsewhere InputError in the call, which names the law and the place."""
    number = API["subtract"](API["astype"](condition, np.int64), 1)
    return Tensor(lookup("check_index")(number.value, size=1, law=law))


@public(np.choose)
def choose(a: Any, choices: Any, mode: str = "raise") -> Tensor:
    """For each element the choice that a names. Numbers outside are an error, wrap, or take the nearest ("clip")."""
    parts = [as_tensor(c) for c in (choices if isinstance(choices, list | tuple) else list(as_tensor(choices)))]
    if not parts:
        raise ShapeError("choose: there are no choices")
    index, *parts = API["broadcast_arrays"](in_range(a, len(parts), "choose", mode), *parts)
    return API["squeeze"](API["take_along_axis"](API["stack"](parts), API["expand_dims"](index, 0), 0), 0)


@public(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """For each element the function that goes with the last condition that holds; one more function is the default."""
    t = as_tensor(x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ShapeError(f"piecewise: {len(functions)} functions for {len(conditions)} conditions", values=rows([t]))

    def value(f: Any) -> Tensor:
        return API["astype"](as_tensor(f(t, *args, **kw) if callable(f) else f), t.dtype)

    out = value(functions[-1]) if len(functions) > len(conditions) else API["zeros_like"](t)
    for c, f in zip(map(as_tensor, conditions), functions, strict=False):
        c = of_shape(c, t.value.shape[: c.ndim], "piecewise: a condition")  # it may be one for each row
        out = API["where"](API["reshape"](c, c.shape + (1,) * (t.ndim - c.ndim)), value(f), out)
    return API["broadcast_to"](out, t.shape)


@public(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """The value without the elements at places along an axis: integers, a slice or a mask."""
    t, axis = along(arr, axis, "delete")
    if (one := size_of(obj)) is not None:
        before, after = _cut(t, one, axis, "delete", 1)
        return API["concatenate"]([before, after], axis)
    if not isinstance(obj, slice) and not (places := as_tensor(obj)).ndim and places.dtype.kind == "b":
        raise IndexingError("delete: one truth is no mask of an axis", values=rows([t, places]))
    n = known_number(t.value.shape[axis])
    if n is None or isinstance(obj, Tensor):
        obj = obj if isinstance(obj, slice | Tensor) else np.asarray(obj)
        obj = obj.astype(np.int64) if isinstance(obj, np.ndarray) and not obj.size else obj
        kept = API["ones"](t.shape[axis], dtype=bool).at[obj].set(False)
        return API["compress"](kept, t, axis)
    constant = _constant(obj, t, "delete", "sc.where(mask, x, other) keeps the shape; so does sc.roll of the rest")
    try:
        kept = np.delete(np.arange(n), constant)
    except (IndexError, ValueError, TypeError) as e:
        raise IndexingError(f"delete: {e}", values=rows([t])) from None
    return API["take"](t, kept, axis)


@public(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """The value with ``values`` put in before constant places along an axis."""
    t, axis = along(arr, axis, "insert")
    n = t.shape[axis]
    v = Tensor(placed(values, t.dtype, "insert"))
    one = size_of(obj)
    if one is not None:  # one place, before which all of ``values`` go
        v = API["moveaxis"](API["reshape"](v, (1,) * (t.ndim - v.ndim) + v.shape), 0, axis)
        v = API["broadcast_to"](v, tuple(v.shape[i] if i == axis else s for i, s in enumerate(t.shape)))
        before, after = _cut(t, one, axis, "insert", 0)
        return API["concatenate"]([before, v, after], axis)
    n = known_number(t.value.shape[axis])
    if n is None:
        raise ShapeError("insert: the size of the axis must be known", values=rows([t]),
                         help="one place may be a size; join slices with sc.concatenate")
    places = _constant(obj, t, "insert", "x.at[i].set(v) replaces elements; sc.where selects")
    try:
        source = np.insert(np.arange(n), places, -1 - np.arange(_inserted(places, n, v, t.ndim - axis)))
    except (AttributeError, IndexError, ValueError, TypeError) as e:  # NumPy's of a list of bools is the first
        raise IndexingError(f"insert: {e}", values=rows([t, v])) from None
    v = API["broadcast_to"](v, tuple(len(source) - n if i == axis else s for i, s in enumerate(t.shape)))
    return API["take"](API["concatenate"]([t, v], axis), np.where(source < 0, n - 1 - source, source), axis)


def _inserted(places: Any, n: int, v: Tensor, depth: int) -> int:
    """The number of elements that are put in: at one place all that there are, else one a place."""
    count = len(range(n)[places]) if isinstance(places, slice) else int(np.size(places))
    if np.asarray(places).dtype == bool:
        count = int(np.count_nonzero(places))
    return int(v.shape[-depth]) if count == 1 and v.ndim >= depth else count


def _cut(t: Tensor, place: Size, axis: int, name: str, width: int) -> tuple[Tensor, Tensor]:
    """The parts before a place along an axis, and from so many elements after it on."""
    n, place = t.value.shape[axis], as_size(place, f"{name}: a place")
    if isinstance(n, int) and isinstance(place, int) and not -n <= place <= n - width:
        raise IndexingError(f"{name}: place {place} is out of bounds for axis {axis} of size {n}", values=rows([t]))
    t = Tensor(at_least(at_least(t.value, axis, place + width), axis, -place))
    head, at = (slice(None),) * axis, wrapped_size(place, t.value.shape[axis])
    return (API["getitem"](t, (*head, slice(None, user_size(at)))),
            API["getitem"](t, (*head, slice(user_size(at + width), None))))


def _constant(obj: Any, t: Tensor, name: str, help: str) -> Any:
    """Places that are known while the graph is built, as NumPy takes them."""
    if isinstance(obj, Tensor) and obj.value.data is not None:
        return obj.value.data
    if isinstance(obj, Tensor) or isinstance(obj, list | tuple) and any(isinstance(i, Tensor) for i in obj):
        raise SymbolicValueError(f"{name}: the size of the result depends on data where places are symbolic",
                                 values=rows([t, as_tensor(obj)]), help=help)
    return obj


@public(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         kind: str | None = None) -> Tensor:
    """True where an element is among others: all are compared where these are few, else they are sorted and searched.

    ``kind`` is NumPy's name for how it searches, which changes no result.
    """
    x, others = as_tensor(element), API["ravel"](test_elements)
    whole = x.dtype.kind in "biu" and others.dtype.kind in "biu"
    if kind not in (None, "sort", "table") or kind == "table" and not whole:
        raise InputError(f"isin: kind is None, 'sort' or (for bools and integers) 'table', not {kind!r}",
                         values=rows([x, others]))
    n, dtype = others.value.shape[0], np.result_type(x.dtype, others.dtype, *[np.uint8] * (others.dtype.kind == "b"))
    exact = dtype.kind in "iuc" or dtype.kind == "f" and "f" in x.dtype.kind + others.dtype.kind  # not i64 and u64
    if not exact or isinstance(n, int) and n <= FEW:
        found = API["any"](API["equal"](API["expand_dims"](x, -1), others), -1)
    elif dtype.itemsize == 1:
        x, others = (API["astype"](t, "int64") for t in (x, others))
        least = np.iinfo(dtype).min
        table = API["zeros"](256, "bool").at[others - least].set(True)
        found = API["take"](table, x - least)
    else:
        x, others = same_dtype([x, others], "isin")
        order = API["sort"](others)
        place = API["searchsorted"](order, x)
        there = API["take"](API["pad"](order, (0, 1)), place)
        found = API["logical_and"](API["less"](place, order.shape[0]), API["equal"](there, x))
    return API["logical_not"](found) if invert else found


def _infinity(name: str, sign: float) -> None:
    def call(x: Any) -> Tensor:
        t = as_tensor(x)
        if t.dtype.kind == "c":
            raise DTypeError(f"{name} is not defined for complex numbers", values=rows([t]))
        return API["equal"](t, sign * np.inf)
    public(getattr(np, name))(called(call, name, f"True where x is {'+' if sign > 0 else '-'}inf."))


_infinity("isposinf", 1)
_infinity("isneginf", -1)


@public(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Tensor:
    """True if all elements are equal after broadcasting, as a symbolic bool."""
    a, b = as_tensor(a1), as_tensor(a2)
    try:
        broadcast_shape([a, b], "array_equiv")
    except ShapeError:
        return as_tensor(np.bool_(False))
    return API["all"](API["equal"](a, b))


@public(np.block)
def block(arrays: Any) -> Tensor:
    """Nested lists of blocks joined: the innermost along the last axis, the next along the one before it, and so on."""
    def depth(item: Any) -> int:
        if not isinstance(item, list | tuple):
            return 0
        found = set(map(depth, item))
        if isinstance(item, tuple) or len(found) != 1:
            raise InputError(f"block: blocks are arranged in lists that are nested equally deep, not in {item!r:.60}",
                             help="sc.block([[A, B], [C, D]]); sc.concatenate and sc.stack take tuples, too")
        return 1 + found.pop()

    def dims(item: Any) -> int:
        return max(map(dims, item)) if isinstance(item, list) else as_tensor(item).ndim

    levels = depth(arrays)
    ndim = max(levels, dims(arrays))

    def join(item: Any, level: int) -> Tensor:
        if isinstance(item, list):
            return API["concatenate"]([join(i, level + 1) for i in item], ndim - levels + level)
        t = as_tensor(item)
        return API["reshape"](t, (1,) * (ndim - t.ndim) + t.shape)

    return join(arrays, 0)


@public(np.ix_)
def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Index arrays that together select a grid; of a mask the places where it is true."""
    out, n = [], len(args)
    for i, a in enumerate(args):
        t = as_tensor(np.zeros(0, np.int64) if isinstance(a, list | tuple) and not len(a) else a)
        if t.ndim != 1:
            raise ShapeError(f"ix_: argument {i} has {t.ndim} axes, not 1", values=rows([t]))
        t = API["nonzero"](t)[0] if t.dtype.kind == "b" else t
        out.append(API["reshape"](t, (1,) * i + t.shape + (1,) * (n - 1 - i)))
    return tuple(out)


def _strides(shape: Any, order: str, name: str) -> tuple[tuple[Size, ...], list[int]]:
    """The sizes, and their axes from the one whose index changes slowest."""
    sizes = tuple(as_size(s) for s in entries(shape))
    if order not in ("C", "F"):
        raise ShapeError(f"{name}: order is 'C' or 'F', not {order!r}")
    return sizes, list(range(len(sizes)))[:: 1 if order == "C" else -1]


@public(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """The index in every axis of a shape, given places. Places outside are an error, in a call if they are data."""
    sizes, axes = _strides(shape, order, "unravel_index")
    place = in_range(indices, user_size(product(sizes)), "unravel_index")
    out: dict[int, Tensor] = {}
    for a in axes[::-1]:
        out[a] = API["remainder"](place, user_size(sizes[a]))
        place = API["floor_divide"](place, user_size(sizes[a]))
    return tuple(out[a] for a in range(len(sizes)))


@public(np.ravel_multi_index)
def ravel_multi_index(multi_index: Sequence[Any], dims: Any, mode: Any = "raise", order: str = "C") -> Tensor:
    """Places, given the index in every axis of a shape. Those outside are an error, wrap or are clipped."""
    sizes, axes = _strides(dims, order, "ravel_multi_index")
    parts = list(multi_index)
    modes = mode if isinstance(mode, list | tuple) else (mode,) * len(sizes)
    if not len(parts) == len(sizes) == len(modes):
        raise ShapeError(f"ravel_multi_index: {len(parts)} indices and {len(modes)} modes for {len(sizes)} axes")
    place: Any = as_tensor(np.int64(0))
    for a in axes:
        index = in_range(parts[a], user_size(sizes[a]), "ravel_multi_index", modes[a])
        place = API["add"](API["multiply"](place, user_size(sizes[a])), index)
    return place


def _indices_of(name: str, build: Callable[..., Any]) -> None:
    def call(arr: Any, k: int = 0) -> tuple[Tensor, ...]:
        t, k = as_tensor(arr), integer(k, f"{name}: k")
        shape = [known_number(s) for s in t.value.shape]
        if t.ndim != 2:
            raise ShapeError(f"{name}: a matrix is needed", values=rows([t]))
        if None in shape:
            return API["nonzero"](API[name[:4]](API["ones"](t.shape, dtype=bool), k))
        return tuple(map(as_tensor, build(shape, k)))
    public(getattr(np, name))(called(call, name, f"NumPy's ``{name}``."))


_indices_of("tril_indices_from", lambda s, k: np.tril_indices(s[0], min(max(k, -s[0]), s[1]), s[1]))
_indices_of("triu_indices_from", lambda s, k: np.triu_indices(s[0], min(max(k, -s[0]), s[1]), s[1]))


@public(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a value whose axes have one size."""
    t = as_tensor(arr)
    if t.ndim < 2 or any(known_equal(n, t.value.shape[0]) is False for n in t.value.shape):
        raise ShapeError("diag_indices_from: at least two axes, all of one size, are needed", values=rows([t]))
    return (API["arange"](t.shape[0]),) * t.ndim


@public(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Tensor:
    """The windows of a value, one for each place where it fits; their axes are the last ones."""
    t = as_tensor(x)
    shape = entries(window_shape)
    axes = normal_axes(tuple(range(t.ndim)) if axis is None else axis, t.ndim, "sliding_window_view", t)
    if len(shape) != len(axes):
        raise ShapeError(f"sliding_window_view: {len(shape)} sizes of windows for {len(axes)} axes", values=rows([t]))
    for a, w in zip(axes, shape, strict=True):
        w = int(w) if isinstance(w, np.integer) else w
        if isinstance(w, int) and isinstance(n := t.value.shape[a], int) and not 0 <= w <= n:
            raise ShapeError(f"sliding_window_view: no window of {w} fits in an axis of size {n}", values=rows([t]))
        t = Tensor(at_least(t.value, a, as_size(w)))
        first = API["arange"](t.shape[a] - w + 1)
        t = API["moveaxis"](API["take"](t, API["expand_dims"](first, 1) + API["arange"](w), a), a + 1, -1)
    return t
