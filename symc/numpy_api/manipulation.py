"""Shapes: reshaping, moving, inserting and removing axes. Nothing here computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.ir.dim import Size, floordiv, known_equal, product
from symc.ir.op import lookup
from symc.ir.ops.ensure import ensured
from symc.ir.ops.shape import in_order, in_shape
from symc.ir.value import Value
from symc.numpy_api.promotion import at_most_one, broadcast_shape, rows, stretch
from symc.tensors.callsite import active
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, called, public
from symc.tensors.sizes import as_size, entries, integer, user_size
from symc.tensors.tensor import Tensor

# --- axes -------------------------------------------------------------------------------------------------------------


def normal_axis(axis: Any, ndim: int, name: str, t: Tensor | None = None) -> int:
    """An axis counted from the front. Raises ShapeError for one that does not exist."""
    a = integer(axis, f"{name}: an axis", ShapeError)
    if not -ndim <= a < ndim:
        raise ShapeError(f"{name}: there is no axis {a}, the array is {ndim}-dimensional",
                         values=rows([t]) if t is not None else ())
    return a % ndim


def normal_axes(axis: Any, ndim: int, name: str, t: Tensor | None = None) -> tuple[int, ...]:
    """Axes counted from the front, in the order given; None means all. Raises ShapeError for a repeated one."""
    if axis is None:
        return tuple(range(ndim))
    axes = entries(axis)
    out = tuple(normal_axis(a, ndim, name, t) for a in axes)
    if len(set(out)) < len(out):
        raise ShapeError(f"{name}: an axis is given twice in {axes}", values=rows([t]) if t is not None else ())
    return out


def along(a: Any, axis: Any, name: str) -> tuple[Tensor, int]:
    """A value and an axis of it; for None the raveled value, whose only axis it is."""
    t = as_tensor(a)
    return (API["ravel"](t), 0) if axis is None else (t, normal_axis(axis, t.ndim, name, t))


def with_axes(a: Any, least: int, name: str) -> Tensor:
    """A value of at least so many axes. Raises ShapeError for another."""
    t = as_tensor(a)
    if t.ndim < least:
        raise ShapeError(f"{name}: {('no', 'one', 'two', 'three')[least]} axes are needed, there are {t.ndim}",
                         values=rows([t]))
    return t


# --- values -----------------------------------------------------------------------------------------------------------


def expanded(v: Value, axes: Sequence[int]) -> Value:
    """Size-1 axes inserted so that they are ``axes`` of the result."""
    shape, rest = [], iter(v.shape)
    for i in range(v.ndim + len(axes)):
        shape.append(1 if i in axes else next(rest))
    return in_shape(v, shape)


# --- functions --------------------------------------------------------------------------------------------------------


@public(np.reshape, memory="view")
def reshape(
    a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: bool | None = None
) -> Tensor:
    """The same elements in another shape; one size may be -1. Raises ShapeError when the numbers of elements differ."""
    t = as_tensor(a)
    shape = newshape if shape is None else shape
    if order == "F":
        return transpose(reshape(transpose(t), entries(shape)[::-1]))
    if order not in ("C", "A"):
        raise ShapeError(f"reshape: order is 'C' or 'F', not {order!r}")
    sizes = [as_size(e, "reshape: a size") for e in entries(shape)]
    return Tensor(in_shape(_sized(t, sizes), _fill_in(t, sizes)), t.weak and not sizes)


def _fill_in(t: Tensor, sizes: list[Size]) -> list[Size]:
    """The sizes with -1 replaced by what is left."""
    free = [i for i, s in enumerate(sizes) if isinstance(s, int) and s == -1]
    if len(free) > 1 or any(isinstance(s, int) and s < -1 for s in sizes):
        raise ShapeError(
            f"reshape: sizes {_text(sizes)} are not possible", values=rows([t]), help="at most one size may be -1"
        )
    if not free:
        return sizes
    rest = product(s for i, s in enumerate(sizes) if i != free[0])
    total = product(t.value.shape)
    whole = 0 if rest == 0 else floordiv(total, rest)
    out = [whole if i == free[0] else s for i, s in enumerate(sizes)]
    if rest == 0 or known_equal(product(out), total) is False:
        raise ShapeError(f"reshape: {total} elements do not divide into {_text(sizes)}", values=rows([t]))
    return out


def _text(sizes: Sequence[Size]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def _sized(t: Tensor, sizes: list[Size]) -> Value:
    """The value to reshape; when the numbers of elements are not known to agree, made flat with the size asserted."""
    target = product(_fill_in(t, sizes))
    total = product(t.value.shape)
    known = known_equal(total, target)
    if known is False:
        raise ShapeError(
            f"reshape: {total} elements do not fit shape {_text(sizes)}, which has {target}", values=rows([t])
        )
    if known is True:
        return t.value
    return lookup("ensure_shape")(in_shape(t.value, (total,)), shape=(target,))


@public(np.ravel, memory="ravel")
def ravel(a: Any, order: str = "C") -> Tensor:
    """The elements along one axis."""
    return reshape(a, (-1,), order) if as_tensor(a).value.shape and 0 not in as_tensor(a).value.shape else \
        reshape(a, (product(as_tensor(a).value.shape),), order)


@public()
def flatten(a: Any, order: str = "C") -> Tensor:
    """The elements along one axis, in an array of their own."""
    return ravel(a, order)


@public(np.transpose, aliases=("permute_dims",), memory="view")
def transpose(a: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order, reversed by default."""
    t = as_tensor(a)
    perm = tuple(range(t.ndim))[::-1] if axes is None else normal_axes(axes, t.ndim, "transpose", t)
    if len(perm) != t.ndim:
        raise ShapeError(f"transpose: axes {axes} do not name the {t.ndim} axes", values=rows([t]))
    return Tensor(in_order(t.value, perm))


@public(np.matrix_transpose, np.linalg.matrix_transpose, memory="view")
def matrix_transpose(x: Any) -> Tensor:
    """The last two axes exchanged."""
    return swapaxes(with_axes(x, 2, "matrix_transpose"), -1, -2)


@public(np.swapaxes, memory="view")
def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    t = as_tensor(a)
    i, j = normal_axis(axis1, t.ndim, "swapaxes", t), normal_axis(axis2, t.ndim, "swapaxes", t)
    perm = list(range(t.ndim))
    perm[i], perm[j] = j, i
    return Tensor(in_order(t.value, perm))


@public(np.moveaxis, memory="view")
def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places; the others keep their order."""
    t = as_tensor(a)
    src, dst = normal_axes(source, t.ndim, "moveaxis", t), normal_axes(destination, t.ndim, "moveaxis", t)
    if len(src) != len(dst):
        raise ShapeError(f"moveaxis: {len(src)} axes cannot move to {len(dst)} places")
    perm = [i for i in range(t.ndim) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        perm.insert(d, s)
    return Tensor(in_order(t.value, perm))


@public(np.rollaxis, memory="view")
def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    """One axis moved in front of the axis ``start``."""
    t = as_tensor(a)
    axis = normal_axis(axis, t.ndim, "rollaxis", t)
    start = integer(start, "rollaxis: start")
    start = start + t.ndim if start < 0 else start
    if not 0 <= start <= t.ndim:
        raise ShapeError(f"rollaxis: there is no place {start} among {t.ndim} axes", values=rows([t]))
    return moveaxis(t, axis, start - 1 if axis < start else start)


@public(np.expand_dims, memory="view")
def expand_dims(a: Any, axis: Any = 0) -> Tensor:
    """New axes of size 1, which are ``axis`` of the result."""
    t = as_tensor(a)
    if axis is None:
        raise InputError("expand_dims: the axis is an int or a tuple of ints, not None", values=rows([t]))
    return Tensor(expanded(t.value, normal_axes(axis, t.ndim + len(entries(axis)), "expand_dims", t)))


@public(np.squeeze, memory="view")
def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Axes of size 1 removed: all known ones, or those given."""
    t = as_tensor(a)
    shape = t.value.shape
    if axis is None:
        found = shape if active() is None else tuple(1 if user_size(s) == 1 else s for s in shape)
        if found != shape:  # sizes that are 1 in the call that is traced
            t = Tensor(lookup("ensure_shape")(t.value, shape=found))
        return Tensor(in_shape(t.value, [s for s in found if s != 1]), t.weak)
    axes = normal_axes(axis, t.ndim, "squeeze", t)
    for i in axes:
        if known_equal(shape[i], 1) is False:
            raise ShapeError(f"squeeze: axis {i} has size {shape[i]}, not 1", values=rows([t]))
    v = ensured(t.value, [1 if i in axes else s for i, s in enumerate(shape)])
    return Tensor(in_shape(v, [s for i, s in enumerate(shape) if i not in axes]))


@public(np.broadcast_to, memory="view")
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tensor:
    """The value repeated along new axes and axes of size 1."""
    t = as_tensor(array)
    sizes = tuple(as_size(e, "broadcast_to: a size") for e in entries(shape))
    have = t.value.shape
    want = sizes[len(sizes) - len(have):] if len(sizes) >= len(have) else None
    if want is None or any(h != 1 and known_equal(h, w) is False for h, w in zip(have, want, strict=True)):
        raise ShapeError(f"broadcast_to: the value does not broadcast to {_text(sizes)}", values=rows([t]))
    return Tensor(stretch(t.value, sizes))


@public(np.broadcast_arrays, memory="view")
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Tensor, ...]:
    """The values in one common shape."""
    tensors = [as_tensor(a) for a in args]
    if not tensors:
        return ()
    shape = broadcast_shape(tensors, "broadcast_arrays")
    out = [stretch(t.value, shape) for t in tensors]
    for t in tensors:  # each result asks for the sizes of all, also where it alone is used
        sizes = shape[: len(shape) - t.ndim] + tuple(
            n if m == 1 or at_most_one(m) else m
            for n, m in zip(shape[len(shape) - t.ndim:], t.value.shape, strict=True))
        out = [ensured(ensured(v, sizes), shape) for v in out]
    return tuple(map(Tensor, out))


def _at_least(ndim: int, place: Any) -> Any:
    def call(*arys: Any) -> Any:
        out = []
        for a in arys:
            t = as_tensor(a)
            out.append(Tensor(in_shape(t.value, place(t.value.shape))) if t.ndim < ndim else t)
        return out[0] if len(out) == 1 else tuple(out)
    return public(getattr(np, f"atleast_{ndim}d"), memory="view")(called(
        call, f"atleast_{ndim}d", f"The values with at least {ndim} axes, as NumPy places them."))


atleast_1d = _at_least(1, lambda s: (1,))
atleast_2d = _at_least(2, lambda s: (1, *s) if s else (1, 1))
atleast_3d = _at_least(3, lambda s: {0: (1, 1, 1), 1: (1, *s, 1), 2: (*s, 1)}[len(s)])


@public(np.shape)
def shape(a: Any) -> tuple:
    """The sizes of the axes; nothing is computed."""
    return as_tensor(a).shape


@public(np.ndim)
def ndim(a: Any) -> int:
    """The number of axes."""
    return as_tensor(a).ndim


@public(np.size)
def size(a: Any, axis: int | None = None) -> Any:
    """The number of elements, or the size of one axis."""
    t = as_tensor(a)
    return t.size if axis is None else t.shape[normal_axis(axis, t.ndim, "size", t)]


@public(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    """The value in an array of its own, which matters where arrays are written to."""
    return Tensor(as_tensor(a).value, as_tensor(a).weak)
