"""``x[...]`` with NumPy's meaning, ``take`` and their kin: reading by what ``parsed_index`` has made of an index;
``updates`` writes by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import IndexingError, OutOfRangeError
from symc.ir.dim import Size, known_equal
from symc.ir.op import lookup
from symc.ir.ops.ensure import at_least
from symc.ir.ops.shape import in_order, in_shape
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.numpy_api.manipulation import along, normal_axis, ravel
from symc.numpy_api.parsed_index import Parsed, parse, places, wrapped_index
from symc.numpy_api.promotion import at_most_one, rows, stretch
from symc.tensors.convert import as_tensor, convert
from symc.tensors.public import API, public
from symc.tensors.sizes import as_size
from symc.tensors.tensor import Tensor


def sliced(v: Value, p: Parsed) -> Value:
    """The slices and integers of an index, every axis kept."""
    if all(a == 0 and s == 1 for a, s in zip(p.start, p.step, strict=True)) and tuple(p.size) == v.shape:
        return v
    return lookup("slice")(v, start=tuple(p.start), size=tuple(p.size), step=tuple(p.step))


def result_axes(p: Parsed) -> tuple[list[int], list[int]]:
    """Axes of x that stay, and the order of (array axes, axes that stay) in the result without its new axes."""
    kept = [a for a in range(len(p.size)) if a not in p.dropped and a not in p.axes]
    depth = p.arrays[0][1].ndim if p.arrays else 0
    order: list[int] = []
    for entry in p.layout:
        if entry == "arrays":
            order += range(depth)
        elif entry is not None:
            order.append(depth + kept.index(entry))
    return kept, order


def with_new_axes(p: Parsed, shape: Sequence[Size]) -> list[Size]:
    """The shape of the result, new axes included, given its shape without them."""
    rest = iter(shape)
    out: list[Size] = []
    for entry in p.layout:
        if entry is None:
            out.append(1)
        elif entry == "arrays":
            out += [next(rest) for _ in range(p.arrays[0][1].ndim)]
        else:
            out.append(next(rest))
    return out


def read(v: Value, p: Parsed) -> Value:
    """``v[index]`` for an index that was parsed for a value of this shape."""
    v = sliced(v, p)
    kept, order = result_axes(p)
    depth = 0
    if p.arrays:
        v = lookup("gather")(v, *[i for _, i in p.arrays], axes=p.axes)
        depth = p.arrays[0][1].ndim
    v = in_order(in_shape(v, [*v.shape[:depth], *[p.size[a] for a in kept]]), order)
    return in_shape(v, with_new_axes(p, v.shape))


@public(memory="item")
def getitem(x: Any, index: Any) -> Tensor:
    """``x[index]``."""
    t, index = truths(as_tensor(x), index)
    return Tensor(read(t.value, parse(t, index)))


def truths(t: Tensor, index: Any) -> tuple[Tensor, Any]:
    """True, False and masks without axes as NumPy means them: index arrays with the one element 0, or none, of an axis
    of size 1 that is added for them."""
    items = list(index) if isinstance(index, tuple) else [index]
    if not any(map(_is_truth, items)):
        return t, index
    used = [_axes_used(item) for item in items]
    dots = next((k for k, item in enumerate(items) if item is Ellipsis), len(items))
    for k in reversed([k for k, item in enumerate(items) if _is_truth(item)]):
        axis = sum(used[:k]) if k < dots else t.ndim - sum(used[k:])
        t = API["expand_dims"](t, axis)
        items[k], used[k] = places(API["reshape"](as_tensor(items[k]), (1,))), 1
    return t, tuple(items)


def _is_truth(item: Any) -> bool:
    if isinstance(item, bool | np.bool_):
        return True
    return isinstance(item, np.ndarray | Tensor) and not item.ndim and item.dtype.kind == "b"


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis or _is_truth(item):
        return 0
    dtype = getattr(item, "dtype", None) if not isinstance(item, list | tuple) else np.asarray(item).dtype
    return np.ndim(item) if dtype is not None and dtype.kind == "b" else 1


@public(np.take)
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    """The elements at ``indices`` along ``axis`` (of the raveled value for None). ``mode``: raise, wrap or clip."""
    t, axis = along(a, axis, "take")
    i = _index_array(indices, t, "take")
    n = t.value.shape[axis]
    if mode != "raise":
        end = stretch(lookup("size")(value=n), i.value.shape)
        v = lookup("mod")(i.value, end) if mode == "wrap" else lookup("maximum")(lookup("minimum")(i.value, end - 1), 0)
    else:
        v = wrapped_index(i, t, axis)
    out = lookup("gather")(t.value, v, axes=(axis,))
    order = [*range(v.ndim, v.ndim + axis), *range(v.ndim), *range(v.ndim + axis, out.ndim)]
    return Tensor(in_order(out, order))


def _index_array(indices: Any, t: Tensor, name: str) -> Tensor:
    i = as_tensor(np.zeros(0, np.int64) if isinstance(indices, list | tuple) and not len(indices) else indices)
    if i.dtype.kind not in "iu":
        raise IndexingError(
            f"{name}: indices must be integers, not {i.dtype}", values=rows([t, i]), help="i.astype('int64')"
        )
    return Tensor(convert(i.value, DTYPES["i64"]))


@public(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    """For each line along ``axis`` the elements that the same line of ``indices`` names."""
    t = as_tensor(arr)
    i = _index_array(indices, t, "take_along_axis")
    if axis is None:
        if i.ndim != 1:
            raise OutOfRangeError(f"take_along_axis: without an axis indices are a vector, not of {i.ndim} axes",
                                  values=rows([t, i]))
        return getitem(ravel(t), i)
    places = along_axis(t, i, normal_axis(axis, t.ndim, "take_along_axis", t), "take_along_axis")
    return Tensor(lookup("gather")(t.value, *places, axes=tuple(range(t.ndim))))


def along_axis(t: Tensor, indices: Any, axis: int, name: str) -> list[Value]:
    """The place in every axis of what indices name along one, each in its own line."""
    i = _index_array(indices, t, name)
    if i.ndim != t.ndim:
        raise OutOfRangeError(f"{name}: indices have {i.ndim} axes, the value {t.ndim}", values=rows([t, i]))
    pairs = list(enumerate(zip(i.value.shape, t.value.shape, strict=True)))
    for a, (k, n) in pairs:
        if a != axis and 1 not in (k, n) and known_equal(k, n) is False:
            what = f"axis {a} has size {k} in indices, {n} in the value"
            raise IndexingError(f"{name}: {what}", values=rows([t, i]))
    single = [n == 1 or at_most_one(n) and not at_most_one(k) for _, (k, n) in pairs]  # its one line serves all
    shape = tuple(k if a == axis or single[a] else n for a, (k, n) in pairs)
    along = stretch(wrapped_index(i, t, axis), shape)
    zero = lookup("iota")
    return [along if a == axis else zero(shape=shape, axis=a, dtype=DTYPES["i64"]) * (0 if one else 1)
            for a, one in enumerate(single)]


@public()
def dynamic_slice(x: Any, starts: Sequence[Any], sizes: Sequence[Any]) -> Tensor:
    """A window of ``sizes`` elements whose place is data, moved so that it fits."""
    t = as_tensor(x)
    if len(starts) != t.ndim or len(sizes) != t.ndim:
        raise IndexingError(
            f"dynamic_slice: {len(starts)} starts and {len(sizes)} sizes for {t.ndim} axes", values=rows([t])
        )
    scalars = [convert(as_tensor(s).value, DTYPES["i64"]) for s in starts]
    v, window = t.value, tuple(as_size(s) for s in sizes)
    for axis, n in enumerate(window):
        v = at_least(v, axis, n)
    return Tensor(lookup("dynamic_slice")(v, *scalars, size=window))

