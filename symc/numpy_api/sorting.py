"""Sorting and searching. Sorts are stable, and nan comes last."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.dim import known_equal, known_nonnegative
from symc.ir.op import lookup
from symc.ir.ops.ensure import at_least
from symc.ir.ops.sort import FEW
from symc.ir.size_extremes import maximum
from symc.ir.value_ranges import range_by_records
from symc.numpy_api.manipulation import normal_axis, ravel
from symc.numpy_api.promotion import of_shape, rows, same_dtype
from symc.numpy_api.selection import in_range
from symc.tensors.convert import as_tensor, default_float
from symc.tensors.public import API, public
from symc.tensors.sizes import as_size, user_size
from symc.tensors.tensor import Tensor


def _prepared(a: Any, axis: int | None, name: str, order: Any = None) -> tuple[Tensor, int]:
    t = as_tensor(a)
    if order is not None:
        raise InputError(f"{name}: order={order!r} names fields, the value has none", values=rows([t]))
    if axis is None:
        t, axis = ravel(t), -1
    if t.dtype.kind == "c":
        raise DTypeError(
            f"{name} is not defined for complex numbers", values=rows([t]), help="sort by x.real, x.imag or abs(x)"
        )
    if not t.ndim:
        raise ShapeError(f"{name}: a value without axes cannot be sorted", values=rows([t]))
    return t, normal_axis(axis, t.ndim, name, t)


@public(np.sort)
def sort(a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None,
         descending: bool = False) -> Tensor:
    """The elements along ``axis`` from least to greatest; complex ones by real, then imaginary part."""
    if as_tensor(a).dtype.kind == "c":
        t = as_tensor(a) if axis is not None else ravel(as_tensor(a))
        return API["take_along_axis"](t, argsort(a, axis, order=order, descending=descending), -1
            if axis is None else axis)
    t, axis = _prepared(a, axis, "sort", order)
    out = Tensor(lookup("sort")(t.value, axis=axis))
    return API["flip"](out, axis) if descending else out


@public(np.argsort)
def argsort(a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None,
            descending: bool = False) -> Tensor:
    """The order of indices that sorts along ``axis``; equals keep their order."""
    if as_tensor(a).dtype.kind == "c":
        return _complex_order(as_tensor(a), axis, descending)
    t, axis = _prepared(a, axis, "argsort", order)
    if not descending:
        return Tensor(lookup("argsort")(t.value, axis=axis))
    # sorting what is reversed, and reversing the result, keeps equals in order
    turned = lookup("argsort")(API["flip"](t, axis).value, axis=axis)
    return API["subtract"](t.shape[axis] - 1, API["flip"](Tensor(turned), axis))


def _complex_order(t: Tensor, axis: int | None, descending: bool) -> Tensor:
    """As NumPy: numbers without nan first, then those with a nan in the imaginary part, in the real part, in both."""
    re, axis = _prepared(API["real"](t), axis, "argsort")
    im, _ = _prepared(API["imag"](t), None if t.ndim != re.ndim else axis, "argsort")
    kind = API["add"](API["multiply"](API["isnan"](re), 2), API["isnan"](im))
    if not descending:
        return lexsort((im, re, kind), axis)
    places = lexsort([API["flip"](x, axis) for x in (im, re, kind)], axis)
    return API["subtract"](t.size if t.ndim != re.ndim else t.shape[axis], 1) - API["flip"](places, axis)


@public(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Tensor:
    """The elements sorted along ``axis``, which puts element ``kth`` in its place."""
    return sort(*_with_place(a, kth, axis), order=order)


@public(np.argpartition)
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Tensor:
    """The order of indices that sorts along ``axis``, which puts element ``kth`` in its place."""
    return argsort(*_with_place(a, kth, axis), order=order)


def _with_place(a: Any, kth: Any, axis: int | None) -> tuple[Tensor, int]:
    """A value and an axis, which has the places ``kth`` if these are known."""
    t, k = as_tensor(a), as_tensor(kth)
    t = API["ravel"](t) if axis is None else t
    axis = normal_axis(-1 if axis is None else axis, t.ndim, "partition", t)
    if k.dtype.kind not in "iu":
        raise DTypeError(f"partition: kth is an integer, not {k.dtype}", values=rows([k]))
    asked = k.value.data
    if asked is not None and asked.size:
        n = t.value.shape[axis]
        least = max(int(asked.max()) + 1, -int(asked.min()))
        if isinstance(n, int) and n < least:
            raise ShapeError(f"partition: kth={kth} is no place of {n} elements", values=rows([t]))
        t = Tensor(at_least(t.value, axis, least))
    return t, axis


@public()
def topk(x: Any, k: Any, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The k greatest elements along ``axis``, greatest first, and their indices."""
    t, axis = _prepared(x, axis, "topk")
    n = as_size(k, "topk: k")
    if isinstance(n, int) and (n < 0 or known_nonnegative(n - 1 - t.value.shape[axis])):
        raise ShapeError(f"topk: there are no {n} greatest of {t.value.shape[axis]} elements", values=rows([t]))
    t = Tensor(at_least(t.value, axis, n))
    if isinstance(n, int) and 0 < n <= FEW and t.dtype != np.float16:
        few = Tensor(lookup("top_places")(t.value, axis=axis, k=n))
        return API["take_along_axis"](t, few, axis), few
    order = API["moveaxis"](argsort(t, axis, descending=True), axis, 0)
    places = API["moveaxis"](API["getitem"](order, slice(0, user_size(n))), 0, axis)
    return API["take_along_axis"](t, places, axis), places


@public(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Indices at which the elements of v go into the sorted a so that it stays sorted: ``side`` says before or after
    equals."""
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    x, y = same_dtype([a, v], "searchsorted")
    if x.ndim != 1:
        raise ShapeError(f"searchsorted: the first operand has one axis, not {x.ndim}", values=rows([x]))
    if sorter is not None:
        x = API["take"](x, sorter)
    if x.dtype.kind == "c":
        return _searched_complex(x, y, side)
    if x.dtype == bool:  # two places are all there are
        found = Tensor(lookup("searchsorted")(x.value, as_tensor(np.array([False, True])).value, side=side, batch=0))
        return API["where"](y, API["getitem"](found, 1), API["getitem"](found, 0))
    return Tensor(lookup("searchsorted")(x.value, y.value, side=side, batch=0))


def _searched_complex(x: Tensor, y: Tensor, side: str) -> Tensor:
    """The number of elements of x before each of y, both sorted together, x behind its equals or before them."""
    flat, left = API["ravel"](y), side == "left"
    n, m = x.shape[0], flat.shape[0]
    order = API["argsort"](API["concatenate"]([flat, x] if left else [x, flat]), stable=True)
    of_x = API["greater_equal"](order, m) if left else API["less"](order, n)
    before = API["cumsum"](API["astype"](of_x, "int64"))
    places = API["zeros"](n + m, "int64").at[order].set(before)
    return API["reshape"](API["getitem"](places, slice(m) if left else slice(n, None)), y.shape)


@public(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The number of the bin that each element falls into; bins increase or decrease."""
    t, edges = as_tensor(x), as_tensor(bins)
    if "c" in t.dtype.kind + edges.dtype.kind:
        raise DTypeError("digitize is not defined for complex numbers", values=rows([t, edges]))
    side = "left" if right else "right"
    if known_equal(edges.value.shape[0], 0) is True:
        return searchsorted(edges, t, side)
    if edges.value.data is not None:
        steps = np.diff(edges.value.data.astype(object))
        if (steps < 0).any() and (steps > 0).any():
            raise ShapeError("digitize: bins must increase or decrease", values=rows([t, edges]))
        if not (steps < 0).any():
            return searchsorted(edges, t, side)
        return API["subtract"](edges.shape[0], searchsorted(API["flip"](edges), t, side))
    falling = API["greater"](API["getitem"](edges, 0), API["getitem"](edges, -1))
    below = searchsorted(API["where"](falling, API["flip"](edges), edges), t, side)
    return API["where"](falling, API["subtract"](edges.shape[0], below), below)


def _count_of_integers(x: Tensor, least: Any) -> Any:
    """The length of what ``bincount`` gives: one more than the greatest. It is no data where a length that is asked
    for is known to be enough, by the dtype (pixels) or by how the integers are made (``clip``, ``%``)."""
    if x.dtype.kind not in "iub":
        raise DTypeError("bincount counts integers", values=rows([x]), help="x.astype('int64')")
    high = range_by_records(x.value)[1]
    if isinstance(least, int) and high is not None and known_nonnegative(least - 1 - high):
        return 0
    return API["max"](API["astype"](x, "int64"), initial=-1) + 1



@public(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: Any = 0, *, length: Any = None) -> Tensor:
    """Number of times each integer occurs, or the sum of its weights. ``length``: how many integers there are, one more
    than the greatest if it is not given (which a call then finds first)."""
    t = as_tensor(x)
    t = API["astype"](t, "int64") if t.dtype.kind == "b" else t
    if length is None:
        length = _count_of_integers(t, minlength)
    if t.ndim != 1:
        raise ShapeError(f"bincount: one axis is needed, there are {t.ndim}", values=rows([t]))
    w = API["ones_like"](t, dtype="int64") if weights is None else API["astype"](weights, default_float())
    if known_equal(w.value.shape[0], t.value.shape[0]) is False or w.ndim != 1:
        raise ShapeError("bincount: there must be one weight for each number", values=rows([t, w]))
    least, n = as_size(minlength, "bincount: minlength"), as_size(length, "bincount: length")
    if isinstance(least, int) and least < 0:
        raise ShapeError(f"bincount: minlength={least} is negative")
    size = user_size(maximum(n, least))
    return API["zeros"](size, w.dtype).at[in_range(t, size, "bincount")].add(w)


@public(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """The order that sorts by the last key, equals by the one before it, and so on."""
    columns = list(map(as_tensor, keys)) if isinstance(keys, list | tuple) else list(as_tensor(keys))
    order = argsort(columns[0], axis)
    for t in columns[1:]:
        t = of_shape(t, columns[0].value.shape, "lexsort: a key")
        order = API["take_along_axis"](order, argsort(API["take_along_axis"](t, order, axis), axis), axis)
    return order
