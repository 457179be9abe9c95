"""Selecting and assembling: choose, piecewise, insert, delete, membership, blocks, conversions between indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import ShapeError
from symc.numpy_api.convert import as_tensor
from symc.numpy_api.manipulation import normal_axis
from symc.numpy_api.promotion import rows
from symc.public import API, public
from symc.sizes import as_size, user_size
from symc.tensor import Tensor


@public(np.choose)
def choose(a: Any, choices: Any, mode: str = "clip") -> Tensor:
    """For each element the choice that a names; numbers outside take the nearest choice (or ``mode="wrap"``)."""
    index, *parts = API["broadcast_arrays"](as_tensor(a), *[as_tensor(c) for c in choices])
    index = API["remainder"](index, len(parts)) if mode == "wrap" else API["clip"](index, 0, len(parts) - 1)
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
    for c, f in zip(conditions, functions, strict=False):
        out = API["where"](c, value(f), out)
    return API["broadcast_to"](out, t.shape)


@public(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """The value without the elements at constant places along an axis whose size is known."""
    t, axis = _along(arr, axis, "delete")
    n = t.shape[axis]
    if not isinstance(n, int):
        raise ShapeError(
            "delete: the size of the axis must be known", values=rows([t]), help="join slices with sc.concatenate"
        )
    return API["take"](t, np.delete(np.arange(n), obj), axis)


@public(np.insert)
def insert(arr: Any, obj: int, values: Any, axis: int | None = None) -> Tensor:
    """The value with ``values`` put in before a constant place along an axis."""
    t, axis = _along(arr, axis, "insert")
    n = t.shape[axis]
    place = obj + n if isinstance(obj, int) and obj < 0 else obj
    head = (slice(None),) * axis
    v = API["astype"](values, t.dtype)
    if v.ndim < t.ndim:
        v = API["expand_dims"](v, axis) if v.ndim == t.ndim - 1 else API["broadcast_to"](v, (1,) * t.ndim)
    v = API["broadcast_to"](v, tuple(v.shape[i] if i == axis else s for i, s in enumerate(t.shape)))
    before, after = API["getitem"](t, (*head, slice(None, place))), API["getitem"](t, (*head, slice(place, None)))
    return API["concatenate"]([before, v, after], axis)


def _along(a: Any, axis: int | None, name: str) -> tuple[Tensor, int]:
    t = as_tensor(a)
    return (API["ravel"](t), 0) if axis is None else (t, normal_axis(axis, t.ndim, name, t))


@public(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among others."""
    found = API["any"](API["equal"](API["expand_dims"](as_tensor(element), -1), API["ravel"](test_elements)), -1)
    return API["logical_not"](found) if invert else found


@public(np.isposinf)
def isposinf(x: Any) -> Tensor:
    """Where x is +inf."""
    return API["equal"](x, np.inf)


@public(np.isneginf)
def isneginf(x: Any) -> Tensor:
    """Where x is -inf."""
    return API["equal"](x, -np.inf)


@public(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Tensor:
    """Whether all elements are equal after broadcasting, as a symbolic bool."""
    return API["all"](API["equal"](a1, a2))


@public(np.block)
def block(arrays: Any) -> Tensor:
    """Nested lists of blocks joined: the innermost along the last axis, the next along the one before it, and so on."""
    def depth(item: Any) -> int:
        return 1 + max(map(depth, item)) if isinstance(item, list) else 0

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
    """Index arrays that together select a grid."""
    n = len(args)
    return tuple(API["reshape"](as_tensor(a), (1,) * i + (-1,) + (1,) * (n - 1 - i)) for i, a in enumerate(args))


@public(np.unravel_index)
def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """The index in every axis of a shape, given row-major places."""
    place: Any = as_tensor(indices)
    out: list[Tensor] = []
    for s in list(shape if isinstance(shape, list | tuple) else (shape,))[::-1]:
        n = user_size(as_size(s))
        out.append(API["remainder"](place, n))
        place = API["floor_divide"](place, n)
    return tuple(out[::-1])


@public(np.ravel_multi_index)
def ravel_multi_index(multi_index: Sequence[Any], dims: Any) -> Tensor:
    """Row-major places, given the index in every axis of a shape."""
    place: Any = 0
    for i, s in zip(multi_index, dims, strict=True):
        place = API["add"](API["multiply"](place, user_size(as_size(s))), i)
    return place


def _indices_of(name: str, build: Callable[..., Any]) -> None:
    def call(arr: Any, k: int = 0) -> tuple[Tensor, ...]:
        t = as_tensor(arr)
        if t.ndim != 2 or not all(isinstance(s, int) for s in t.shape):
            raise ShapeError(f"{name}: a matrix of known sizes is needed", values=rows([t]))
        return tuple(map(as_tensor, build(t.shape, k)))
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"NumPy's ``{name}``, for a matrix whose sizes are known."
    public(getattr(np, name))(call)


_indices_of("tril_indices_from", lambda s, k: np.tril_indices(s[0], k, s[1]))
_indices_of("triu_indices_from", lambda s, k: np.triu_indices(s[0], k, s[1]))


@public(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a value whose axes have one size."""
    t = as_tensor(arr)
    return (API["arange"](t.shape[0]),) * t.ndim
