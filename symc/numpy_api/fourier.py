"""Discrete Fourier transforms, as in ``numpy.fft``, and the frequencies that belong to them.

Results have the precision of the operand: complex64 of float32 and float16, complex128 of float64 and integers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from symc.errors import DTypeError, InputError, OutOfRangeError, ShapeError
from symc.ir.dim import Size, product
from symc.ir.op import lookup
from symc.ir.ops.arithmetic import conjugate
from symc.ir.ops.fourier import check_points
from symc.ir.ops.leaf import scalar
from symc.ir.ops.shape import flip, slice_along
from symc.ir.size_extremes import minimum
from symc.ir.types import DTYPES, complex_dtype, real_dtype
from symc.ir.value import Value
from symc.numpy_api.linear import conjugated
from symc.numpy_api.promotion import rows
from symc.tensors.convert import as_tensor, convert, inexact_dtype
from symc.tensors.public import API, called, public
from symc.tensors.sizes import as_size, entries, integer, size_of, user_size
from symc.tensors.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

_HALF = DTYPES["f16"]
#: What the names of these functions in the table of public functions start with.
PREFIX = "fft."
#: By which power of the number of points the result of a transform is divided, and that of an inverse one.
POWERS = {None: (0.0, 1.0), "backward": (0.0, 1.0), "ortho": (0.5, 0.5), "forward": (1.0, 0.0)}


def _fft(fn: F) -> F:
    """A function of ``sc.fft``. (What NumPy's functions run is found by name: see ``dispatch``.)"""
    return public(name=PREFIX + fn.__name__)(fn)


# --- operands ---------------------------------------------------------------------------------------------------------


def _floats(a: Any) -> Tensor:
    """An operand in single or double precision."""
    t = as_tensor(a)
    dtype = DTYPES["f32"] if t.dtype == _HALF else inexact_dtype(t.dtype)
    return Tensor(convert(t.value, dtype))


def _real(a: Any, name: str) -> Tensor:
    t = _floats(a)
    if t.dtype.kind == "c":
        raise DTypeError(f"{name} is not defined for complex numbers", values=rows([t]),
                         help="it transforms real ones; sc.fft.fft, or x.real")
    return t


def _axis(axis: Any, t: Tensor, name: str) -> int:
    k = integer(axis, f"{name}: an axis")
    if not -t.ndim <= k < t.ndim:
        raise OutOfRangeError(f"{name}: there is no axis {k} among {t.ndim}", values=rows([t]))
    return k % t.ndim


def _points(n: Any, name: str) -> Size:
    """The number of points asked for."""
    try:
        found = as_size(n, f"{name}: n")
    except ShapeError as e:
        raise InputError(f"{name}: {n!r} is no number of points", help=e.help) from None
    check_points(name, found)
    return found


def _sizes(t: Tensor, s: Any, axes: Any, name: str) -> tuple[list[Any], list[int]]:
    """The number of points along each axis (None: said so) and the axes, as NumPy reads them."""
    if axes is None:
        if s is not None:
            warnings.warn("`axes` should not be `None` if `s` is not `None` (deprecated in NumPy 2.0): give axes",
                          DeprecationWarning, stacklevel=4)
    try:
        s = s if s is None else list(s)
        axes = range(-(t.ndim if s is None else len(s)), 0) if axes is None else list(axes)
    except TypeError:
        raise InputError(f"{name}: s and axes are sequences of integers, not {s!r} and {axes!r}") from None
    places = [_axis(a, t, name) for a in axes]
    s = [t.shape[a] for a in places] if s is None else s
    if len(s) != len(places):
        raise ShapeError(f"{name}: {len(s)} sizes for {len(places)} axes", values=rows([t]))
    return [t.shape[a] if size_of(n) == -1 else n for n, a in zip(s, places, strict=True)], places


def _fitted(t: Tensor, n: Size, axis: int) -> Value:
    """The operand with n elements along an axis: the first ones, or with zeros at the end."""
    v = t.value
    kept, none = minimum(n, v.shape[axis]), (0,) * v.ndim
    if kept != v.shape[axis]:
        v = slice_along(v, axis, 0, kept)
    if kept != n:
        high = tuple(n - kept if k == axis else 0 for k in range(v.ndim))
        v = lookup("pad")(v, scalar(0, v.dtype), low=none, high=high, interior=none)
    return v


# --- transforms -------------------------------------------------------------------------------------------------------


def _scaled(t: Tensor, counts: Sequence[Size], norm: Any, inverse: bool) -> Tensor:
    """The result of transforms of so many points, times the factor that ``norm`` asks for."""
    if not isinstance(norm, str | None) or norm not in POWERS:
        raise InputError(f"invalid norm value {norm!r}", help="'backward', 'ortho' or 'forward'")
    power, n, real = POWERS[norm][inverse], product(counts), real_dtype(t.dtype)
    if not power or n == 1:
        return t
    count = as_tensor(float(n)) if isinstance(n, int) else Tensor(convert(as_tensor(user_size(n)).value, real))
    factor = API["reciprocal"](API["sqrt"](count) if power == 0.5 else count)
    if t.dtype.kind == "f":
        return API["multiply"](t, factor)
    parts = [API["multiply"](Tensor(lookup(part)(t.value)), factor).value for part in ("real", "imag")]
    return Tensor(lookup("complex")(*parts))  # a complex factor would make nan of infinities


def _lines(t: Tensor, s: Sequence[Any], axes: Sequence[int], inverse: bool, name: str) -> tuple[Tensor, list[Size]]:
    """Complex transforms along axes, the last first, and how many points each had. Of real numbers one half is
    transformed along the other axes, too."""
    counts: list[Size] = []
    halved = t.dtype.kind == "f" and len(set(axes)) == len(axes) > 0
    for given, axis in zip(reversed(s), reversed(axes), strict=True):
        counts.append(n := t.value.shape[axis] if given is None else _points(given, name))
        if t.dtype.kind == "f":
            half = lookup("rfft")(_fitted(t, n, axis), axis=axis)
            t = Tensor(conjugate(half) if inverse else half)
            t = t if halved else _whole(t.value, n, axis, ())
        else:
            t = Tensor(lookup("fft")(_fitted(t, n, axis), axis=axis, inverse=inverse))
    return (_whole(t.value, counts[0], axes[-1], axes[:-1]) if halved else t), counts


def _whole(half: Value, n: Size, axis: int, others: Sequence[int]) -> Tensor:
    """The whole spectrum of real numbers, n along an axis, transformed along others as well: elements behind the half
    are conjugates of those at the opposite place."""
    rest = flip(slice_along(half, axis, 1, n - n // 2 - 1), (axis,))
    for a in others:
        first, last = slice_along(rest, a, 0, 1), slice_along(rest, a, 1, rest.shape[a] - 1)
        rest = lookup("concat")(first, flip(last, (a,)), axis=a)
    return Tensor(lookup("concat")(half, conjugate(rest), axis=axis))


def _transform(a: Any, s: Any, axes: Any, norm: Any, name: str, inverse: bool) -> Tensor:
    """Transform of complex numbers."""
    t = _floats(a)
    s, axes = _sizes(t, s, axes, name)
    return _scaled(*_lines(t, s, axes, inverse, name), norm, inverse) if axes else as_tensor(a)


def _of_real(a: Any, s: Any, axes: Any, norm: Any, name: str, inverse: bool) -> Tensor:
    """The spectrum of real numbers, halved along the last of the axes. ``inverse``: which factor it has."""
    t = _real(a, name)
    s, axes = _sizes(t, s, axes, name)
    _check_axes(axes, name)
    n = t.value.shape[axes[-1]] if s[-1] is None else _points(s[-1], name)
    half = Tensor(lookup("rfft")(_fitted(t, n, axes[-1]), axis=axes[-1]))
    out, counts = _lines(half, s[:-1], axes[:-1], False, name)
    return _scaled(out, [n, *counts], norm, inverse)


def _to_real(a: Any, s: Any, axes: Any, norm: Any, name: str, inverse: bool) -> Tensor:
    """Real numbers of half a spectrum. ``inverse``: which factor they have."""
    t, unknown = _floats(a), s is None
    s, axes = _sizes(t, s, axes, name)
    _check_axes(axes, name)
    last = axes[-1]
    out, counts = _lines(t, s[-2::-1], axes[-2::-1], True, name)
    n = _points(2 * (t.shape[last] - 1) if unknown or s[-1] is None else s[-1], name)
    given = _fitted(Tensor(convert(out.value, complex_dtype(out.dtype))), n // 2 + 1, last)
    found = _scaled(Tensor(lookup("irfft")(given, axis=last, size=n)), [n, *counts], norm, inverse)
    return API["astype"](found, _HALF) if as_tensor(a).dtype == _HALF else found


def _check_axes(axes: Sequence[int], name: str) -> None:
    if not axes:
        raise OutOfRangeError(f"{name}: there must be an axis to transform")


def _one(n: Any, name: str) -> list[Size] | None:
    """The sizes of one axis. (-1 is none here, other than among sizes of several axes.)"""
    return None if n is None else [_points(n, name)]


def _along_axis(name: str, transform: Callable[..., Tensor], inverse: bool, doc: str) -> Callable[..., Tensor]:
    def call(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Tensor:
        return transform(a, _one(n, name), (axis,), norm, name, inverse)
    return _fft(called(call, name, doc))


def _along_axes(name: str, transform: Callable[..., Tensor], inverse: bool, doc: str,
                usual: Any = None) -> Callable[..., Tensor]:
    def call(a: Any, s: Any = None, axes: Any = usual, norm: str | None = None) -> Tensor:
        return transform(a, s, axes, norm, name, inverse)
    return _fft(called(call, name, doc))


fft = _along_axis("fft", _transform, False, "The discrete Fourier transform along an axis, of the first n elements or "
                  "with zeros at the end.")
ifft = _along_axis("ifft", _transform, True, "The inverse transform along an axis.")
rfft = _along_axis("rfft", _of_real, False, "The transform of real numbers along an axis: its first n // 2 + 1 "
                   "elements, which say all.")
irfft = _along_axis("irfft", _to_real, True, "The inverse of ``rfft``: n real numbers, or 2 * (m - 1) of m elements.")


@_fft
def hfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The transform, which is real, of numbers whose second half is the conjugate of the first, which is given."""
    return _to_real(conjugated(as_tensor(a)), _one(n, "hfft"), (axis,), norm, "hfft", False)


@_fft
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``hfft``."""
    return conjugated(_of_real(a, _one(n, "ihfft"), (axis,), norm, "ihfft", True))


fftn = _along_axes("fftn", _transform, False, "The transform along several axes, all by default.")
ifftn = _along_axes("ifftn", _transform, True, "The inverse transform along several axes.")
rfftn = _along_axes("rfftn", _of_real, False, "The transform of real numbers along several axes, halved along the last "
                    "of them.")
irfftn = _along_axes("irfftn", _to_real, True, "The inverse of ``rfftn``.")
fft2 = _along_axes("fft2", _transform, False, "The transform along two axes.", (-2, -1))
ifft2 = _along_axes("ifft2", _transform, True, "The inverse transform along two axes.", (-2, -1))
rfft2 = _along_axes("rfft2", _of_real, False, "The transform of real numbers along two axes, halved along the second.",
                    (-2, -1))
irfft2 = _along_axes("irfft2", _to_real, True, "The inverse of ``rfft2``.", (-2, -1))


# --- frequencies ------------------------------------------------------------------------------------------------------


def _count(n: Any, name: str) -> Size:
    if size_of(n) is None:
        raise InputError(f"{name}: n should be an integer, not {n!r}")
    return as_size(n, f"{name}: n")


@_fft
def fftfreq(n: Any, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Tensor:
    """The frequencies of the elements of a transform of n points a distance d apart: 0, 1, ..., -2, -1 by n * d."""
    count = user_size(_count(n, "fftfreq"))
    k = API["arange"](count)
    places = API["where"](API["less"](k, (count + 1) // 2), k, k - count)
    return _frequencies(places, count, d, dtype)


@_fft
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Tensor:
    """The frequencies of the elements of ``rfft``: 0, 1, ..., n // 2 by n * d."""
    count = user_size(_count(n, "rfftfreq"))
    return _frequencies(API["arange"](count // 2 + 1), count, d, dtype)


def _frequencies(places: Tensor, count: Any, d: Any, dtype: Any) -> Tensor:
    found = API["multiply"](places, API["true_divide"](1.0, API["multiply"](count, d)))
    return found if dtype is None else API["astype"](found, dtype)


@_fft
def fftshift(x: Any, axes: Any = None) -> Tensor:
    """The spectrum with frequency 0 in the middle."""
    return _shifted(x, axes, 1)


@_fft
def ifftshift(x: Any, axes: Any = None) -> Tensor:
    """The inverse of ``fftshift``."""
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Any, sign: int) -> Tensor:
    t = as_tensor(x)
    places = [_axis(a, t, "fftshift") for a in (range(t.ndim) if axes is None else entries(axes))]
    return API["roll"](t, [sign * (t.shape[a] // 2) for a in places], places)
