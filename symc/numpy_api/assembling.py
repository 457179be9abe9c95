"""Arrays from functions and from what repeats: resize, fromfunction, reductions over axes in turn, bits in bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import known_equal
from symc.ir.op import splat
from symc.ir.types import TensorType
from symc.numpy_api.manipulation import along, normal_axis
from symc.numpy_api.promotion import broadcast_shape, rows
from symc.numpy_api.selection import must_hold
from symc.tensors.convert import as_tensor, asarray
from symc.tensors.others import dlpack_array
from symc.tensors.public import API, called, public
from symc.tensors.sizes import as_size, entries, integer, known_number, user_shape, whole
from symc.tensors.tensor import Tensor


@public()
def require(a: Any, dtype: Any = None, requirements: Any = None) -> Tensor:
    """``a`` as a tensor of ``dtype``. How it lies in memory is decided when it is compiled."""
    return asarray(a, dtype)


@public()
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """The numbers of another library's array, as a constant."""
    return x if isinstance(x, Tensor) else as_tensor(dlpack_array(x))


@public(np.resize)
def resize(a: Any, new_shape: Any) -> Tensor:
    """The elements in another shape, over again where there are too few."""
    t, shape = API["ravel"](a), entries(new_shape)
    out = API["zeros"](shape, t.dtype)
    if known_equal(t.value.shape[0], 0) is True:
        return out
    places = API["remainder"](API["arange"](out.size), t.shape[0])
    return API["reshape"](API["take"](t, places), shape)


@public()
def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """``function`` of the indices along each axis of a shape."""
    return function(*API["indices"](shape, dtype), **kwargs)


@public(np.apply_over_axes)
def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Tensor:
    """``func(a, axis)`` for one axis after another; axes that it takes away stay, with size 1."""
    t = as_tensor(a)
    for axis in entries(axes):
        k = normal_axis(axis, t.ndim, "apply_over_axes", t)
        out = as_tensor(func(t, k))
        out = API["expand_dims"](out, k) if out.ndim == t.ndim - 1 else out
        if out.ndim != t.ndim:
            raise ShapeError(f"apply_over_axes: the function gives {out.ndim} axes for {t.ndim}", values=rows([t, out]))
        t = out
    return t


@public(np.sort_complex)
def sort_complex(a: Any) -> Tensor:
    """The elements along the last axis from least to greatest, by real and then imaginary part, as complex numbers."""
    t = API["sort"](a)
    small = t.dtype.kind in "iu" and t.dtype.itemsize <= 2
    return t if t.dtype.kind == "c" else API["astype"](t, np.complex64 if small else np.complex128)


@public(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy") -> tuple[list[Any], str]:
    """NumPy's plan for ``einsum``, for operands of known sizes. (``einsum`` here finds its own.)"""
    def shaped(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        shape = [known_number(n) for n in x.value.shape]
        if None in shape:
            raise ShapeError("einsum_path: sizes must be known", values=rows([x]))
        return np.broadcast_to(np.zeros((), x.dtype), shape)
    try:
        return np.einsum_path(*map(shaped, operands), optimize=optimize)
    except ValueError as e:
        raise ShapeError(f"einsum_path: {e}") from None


@public()
def broadcast_shapes(*args: Any) -> tuple[Any, ...]:
    """The shape that shapes broadcast to, whose sizes may be symbolic."""
    shapes = [tuple(map(as_size, entries(s))) for s in args]
    of = [Tensor(splat(0, TensorType("f64", s))) for s in shapes]
    return user_shape(broadcast_shape(of, "broadcast_shapes")) if of else ()


# --- bits -------------------------------------------------------------------------------------------------------------


def _bit_places(bitorder: str, name: str) -> list[np.uint8]:
    if bitorder not in ("big", "little"):
        raise ShapeError(f"{name}: bitorder is 'big' or 'little', not {bitorder!r}")
    return list(map(np.uint8, reversed(range(8)) if bitorder == "big" else range(8)))


@public(np.packbits)
def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """Eight bits (elements other than 0) along ``axis`` in each byte; zeros fill the last."""
    t, places = as_tensor(a), _bit_places(bitorder, "packbits")
    if t.dtype.kind not in "biu":
        raise DTypeError(f"packbits: bits are bools or integers, not {t.dtype}", values=rows([t]))
    t, axis = along(t, axis, "packbits")
    t = API["moveaxis"](t, axis, -1)
    if t.dtype.itemsize > 1:
        t = API["not_equal"](t, 0)  # less to fill up
    n = t.shape[-1]
    count = (n + 7) // 8
    t = API["pad"](t, (*((0, 0),) * (t.ndim - 1), (0, count * 8 - n)))
    t = API["reshape"](t, (*t.shape[:-1], count, 8))
    bits = [API["where"](API["astype"](API["getitem"](t, (Ellipsis, k)), bool), np.uint8(1) << p, np.uint8(0))
            for k, p in enumerate(places)]
    return API["moveaxis"](functools.reduce(API["bitwise_or"], bits), -1, axis)


@public(np.unpackbits)
def unpackbits(a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Tensor:
    """The eight bits of each byte along ``axis``, the first ``count`` of them (all but so many, if negative)."""
    t, places = as_tensor(a), _bit_places(bitorder, "unpackbits")
    if t.dtype != np.uint8:
        raise DTypeError(f"unpackbits: bytes are uint8, not {t.dtype}", values=rows([t]))
    t, axis = along(t, axis, "unpackbits")
    t = API["moveaxis"](t, axis, -1)
    t = API["stack"]([API["bitwise_and"](API["right_shift"](t, p), np.uint8(1)) for p in places], -1)
    t = API["reshape"](t, (*t.shape[:-2], t.shape[-2] * 8))
    if count is not None:
        n, count = t.shape[-1], integer(count, "unpackbits: count")
        more = count - n if isinstance(n, int) else 0
        t = API["getitem"](t, (Ellipsis, slice(None, count)))
        t = API["pad"](t, (*((0, 0),) * (t.ndim - 1), (0, more))) if more > 0 else t
    return API["moveaxis"](t, -1, axis)


# --- indices ----------------------------------------------------------------------------------------------------------


def _indices(name: str, function: Callable[..., Sequence[np.ndarray]], doc: str) -> None:
    def call(n: int, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        if (size := whole(n)) is None:
            raise ShapeError(f"{name}: the size must be a number, not {n!r}", help=f"sc.{name[:4]} keeps the shape")
        return tuple(map(as_tensor, function(size, *args, **kwargs)))
    public()(called(call, name, doc))


_indices("tril_indices", np.tril_indices, "The indices of the lower triangle of a matrix of known size.")
_indices("triu_indices", np.triu_indices, "The indices of the upper triangle of a matrix of known size.")
_indices("mask_indices", np.mask_indices, "The indices where a function of NumPy's leaves a matrix of ones.")


@public()
def diag_indices(n: Any, ndim: int = 2) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of ``ndim`` axes of size n."""
    return (API["arange"](n),) * ndim


def _reads(read: Callable[..., Any]) -> None:
    def call(*args: Any, **kwargs: Any) -> Tensor:
        return as_tensor(read(*args, **kwargs))
    public()(called(call, read.__name__, f"Numbers that NumPy's ``{read.__name__}`` reads, as a constant."))


for _read in (np.fromiter, np.fromstring, np.frombuffer, np.loadtxt, np.genfromtxt):
    _reads(_read)


@public()
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Tensor:
    """``a`` as a tensor; infinities and nan are an error, in a call if they are data."""
    t = asarray(a, dtype)
    return t if t.dtype.kind not in "fc" else t - API["astype"](
        must_hold(API["all"](API["isfinite"](t)), "asarray_chkfinite: all numbers are finite"), t.dtype)
