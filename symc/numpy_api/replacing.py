"""Functions that NumPy has for changing an array in place: here each gives the changed value, as ``x.at[i].set(v)``.

NumPy's own names raise for symbolic values: a program that drops their result would go on with the value unchanged.
"""

from __future__ import annotations

from typing import Any

from symc.errors import InputError, ShapeError
from symc.numpy_api.indexing import along_axis
from symc.numpy_api.joining import within
from symc.numpy_api.manipulation import normal_axis
from symc.numpy_api.promotion import rows
from symc.numpy_api.selection import in_range
from symc.tensors.convert import as_tensor, placed
from symc.tensors.public import API, public
from symc.tensors.tensor import Tensor


def _cycled(values: Any, t: Tensor, places: Any, name: str, casting: str = "unsafe") -> Tensor:
    """Element ``places`` of values that repeat, in the dtype of ``t``."""
    given = as_tensor(values)
    if casting != "unsafe" and not given.weak:
        within(given, t.dtype, casting, name)
    v = API["ravel"](Tensor(placed(values, t.dtype, name)))
    return v if v.value.shape == (1,) else API["take"](v, API["remainder"](places, v.shape[0]))


@public()
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None = -1) -> Tensor:
    """The value with ``values`` at the places that the same line of ``indices`` names along ``axis``."""
    t = as_tensor(arr)
    if axis is None:
        return API["reshape"](put_along_axis(API["ravel"](t), indices, values, 0), t.shape)
    places = along_axis(t, indices, normal_axis(axis, t.ndim, "put_along_axis", t), "put_along_axis")
    return t.at[tuple(map(Tensor, places))].set(values)


@public()
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Tensor:
    """The value with ``v``, repeated as needed, at places of the raveled value. ``mode``: raise, wrap or clip."""
    t = as_tensor(a)
    flat, places = API["ravel"](t), API["ravel"](ind)
    if mode != "raise":
        places = in_range(places, flat.shape[0], "put", mode)
    new = _cycled(v, t, API["arange"](places.shape[0]), "put")
    return API["reshape"](flat.at[places].set(new), t.shape)


@public()
def putmask(a: Any, mask: Any, values: Any) -> Tensor:
    """The value with ``values``, repeated as needed, where a mask holds: each element takes that of its own place."""
    t = as_tensor(a)
    new = _cycled(values, t, API["reshape"](API["arange"](t.size), t.shape), "putmask", "safe")
    return API["where"](API["reshape"](mask, t.shape), new, t)


@public()
def place(arr: Any, mask: Any, vals: Any) -> Tensor:
    """The value with ``vals``, repeated as needed, where a mask holds: one after another."""
    t = as_tensor(arr)
    hit = API["not_equal"](API["ravel"](mask), 0)
    order = API["reshape"](API["subtract"](API["cumsum"](hit), 1), t.shape)
    return API["where"](API["reshape"](hit, t.shape), _cycled(vals, t, order, "place", "safe"), t)


@public()
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Tensor:
    """``src`` in the shape and dtype of ``dst``, which stays where a mask does not hold."""
    t, s = as_tensor(dst), as_tensor(src)
    s = Tensor(placed(src, t.dtype, "copyto")) if s.weak else within(s, t.dtype, casting, "copyto")
    new = API["broadcast_to"](s, t.shape)
    return new if where is True else API["where"](API["broadcast_to"](where, t.shape), new, t)


@public()
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> Tensor:
    """The value with ``val``, repeated as needed, on its main diagonal; ``wrap``: on again below, in a tall matrix."""
    t = as_tensor(a)
    if t.ndim < 2:
        raise ShapeError(f"fill_diagonal: at least two axes are needed, there are {t.ndim}", values=rows([t]))
    if t.ndim > 2 and len({*t.value.shape}) > 1:
        raise InputError("fill_diagonal: more than two axes have one size", values=rows([t]))
    step: Any = 1
    for n in t.shape[:0:-1]:
        step = step * n + 1
    flat = API["reshape"](API["arange"](t.size), t.shape)
    on = API["equal"](API["remainder"](flat, step), 0)
    if t.ndim == 2 and not wrap:
        on = API["logical_and"](on, API["less"](flat, t.shape[1] * t.shape[1]))
    return API["where"](on, _cycled(val, t, API["floor_divide"](flat, step), "fill_diagonal"), t)
