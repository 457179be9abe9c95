"""Arrays made from sizes and numbers alone. Sizes may be symbolic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Dim, Size, ceildiv
from symc.ir.op import lookup, splat
from symc.ir.size_extremes import maximum, minimum
from symc.ir.size_values import FAR, LARGEST
from symc.ir.types import DTYPES, TensorType, as_dtype, real_dtype
from symc.ir.value import Value
from symc.numpy_api.manipulation import normal_axes, normal_axis, with_axes
from symc.numpy_api.promotion import common_dtype, rows, stretch
from symc.numpy_api.ufuncs import choose
from symc.tensors.convert import as_operand, as_tensor, convert, default_float, placed
from symc.tensors.public import API, called, public
from symc.tensors.sizes import as_size, entries, integer, size_of, user_size
from symc.tensors.tensor import Tensor


def _sizes(shape: Any) -> tuple[Size, ...]:
    out = tuple(as_size(s, "a size") for s in entries(shape))
    for s in out:
        if isinstance(s, int) and s < 0:
            raise ShapeError(f"the size {s} is negative")
    return out


def iota(shape: tuple[Size, ...], axis: int, dtype: Any = "i64") -> Value:
    """The index along ``axis``."""
    return lookup("iota")(shape=shape, axis=axis, dtype=as_dtype(dtype))


def _float_or(dtype: Any) -> np.dtype:
    """The dtype that is asked for, or the default float."""
    return default_float() if dtype is None else as_dtype(dtype)


@public(memory="new")
def full(shape: Any, fill_value: Any, dtype: Any = None, *, order: str = "C", device: Any = None) -> Tensor:
    """``fill_value`` everywhere."""
    v = as_tensor(fill_value).value if dtype is None else placed(fill_value, as_dtype(dtype), "full")
    return Tensor(stretch(v, _sizes(shape)))


@public(memory="new")
def zeros(shape: Any, dtype: Any = None, *, order: str = "C", device: Any = None) -> Tensor:
    """Zeros, by default of the default float."""
    return Tensor(splat(0, TensorType(_float_or(dtype), _sizes(shape))))


@public(memory="new")
def ones(shape: Any, dtype: Any = None, *, order: str = "C", device: Any = None) -> Tensor:
    """Ones, by default of the default float."""
    return Tensor(splat(1, TensorType(_float_or(dtype), _sizes(shape))))


@public(memory="new")
def empty(shape: Any, dtype: Any = None, *, order: str = "C", device: Any = None) -> Tensor:
    """Zeros: values without content do not exist."""
    return zeros(shape, dtype)


def _like(name: str, function: Callable, number: Any) -> Callable[..., Tensor]:
    def call(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Tensor:
        t = as_tensor(a)
        sizes = t.value.shape if shape is None else _sizes(shape)
        return Tensor(splat(number, TensorType(t.dtype if dtype is None else as_dtype(dtype), sizes)))
    return public(function)(called(call, name, f"{number} everywhere, in the shape and dtype of another value."))


zeros_like = _like("zeros_like", np.zeros_like, 0)
ones_like = _like("ones_like", np.ones_like, 1)
empty_like = _like("empty_like", np.empty_like, 0)


@public(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
              device: Any = None) -> Tensor:
    """``fill_value`` everywhere, in the shape and dtype of another value."""
    t = as_tensor(a)
    v = placed(fill_value, t.dtype if dtype is None else as_dtype(dtype), "full_like")
    return Tensor(stretch(v, t.value.shape if shape is None else _sizes(shape)))


# --- ranges -----------------------------------------------------------------------------------------------------------


@public(memory="new")
def arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Evenly spaced numbers from ``start`` up to, not including, ``stop``. Ends may be sizes; floats are numbers."""
    if stop is None:
        start, stop = 0, start
    sizes = [_plain_size(i) for i in (start, stop, step)]
    if any(s is None for s in sizes):
        return _float_range(start, stop, step, dtype)
    first, last, by = sizes
    if not isinstance(by, int) or by == 0:
        raise ShapeError(f"arange: the step must be a number other than 0, not {step!r}")
    wide = [n for n in (first, last, by) if isinstance(n, int) and not -LARGEST <= n <= LARGEST]
    if wide and dtype is None:
        raise DTypeError(f"arange: {wide[0]} does not fit in int64", help="give a dtype that has room for it")
    count = ceildiv(last - first, by) if by > 0 else ceildiv(first - last, -by)  # type: ignore[operator]
    if isinstance(count, int) or first != 0:
        count = maximum(count, 0)
    d = DTYPES["i64"] if dtype is None else as_dtype(dtype)
    v = iota((count,), 0, d)
    if by != 1:
        v = v * by
    if first != 0:
        v = v + (first if isinstance(first, int) else stretch(convert(lookup("size")(value=first), d), (count,)))
    return Tensor(v)


def _plain_size(item: Any) -> Size | None:
    if isinstance(item, Tensor):
        return item.value.attrs["value"] if item.value.op.name == "size" else _constant_int(item)
    return size_of(item)


def _constant_int(t: Tensor) -> int | None:
    v = t.value
    return int(v.data) if v.data is not None and v.dtype.kind in "iu" and not v.shape else None


def _float_range(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    try:
        ends = [float(i) if hasattr(i, "__float__") else operator.index(i) for i in (start, stop, step)]
    except TypeError:
        return _measured_range(start, stop, step, dtype)
    return as_tensor(np.arange(*ends, dtype=_float_or(dtype)))


def _measured_range(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    """A range between ends that are data: a call finds out how many numbers it has."""
    first, last, by = (as_tensor(i) for i in (start, stop, step))
    for t in (first, last, by):
        if t.ndim or t.dtype.kind not in "biuf":
            raise ShapeError("arange: ends and step are real scalars", values=[t.describe()])
    d = as_dtype(np.result_type(np.int64, first.dtype, last.dtype, by.dtype) if dtype is None else dtype)
    if any(t.dtype.kind == "f" for t in (first, last, by)):
        count = API["astype"](API["ceil"](API["divide"](API["subtract"](last, first), by)), "int64")
    else:
        first, last, by = (API["astype"](t, "int64") for t in (first, last, by))
        count = API["negative"](API["floor_divide"](API["subtract"](first, last), by))
    size = as_size(API["maximum"](count, 0), "arange: the length")
    k, a = iota((size,), 0, d), stretch(convert(first.value, d), (size,))
    return Tensor(a + k * stretch(convert(by.value, d), (size,)))


@public(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, which may be symbolic arrays."""
    a, b = as_tensor(start), as_tensor(stop)
    real = common_dtype([a, b, as_tensor(1.0)])
    a, b = (Tensor(convert(t.value, real)) for t in (a, b))
    n = as_size(num, "linspace: the number")
    if isinstance(n, int) and n < 0:
        raise ShapeError(f"linspace: the number {n} is negative")
    parts = n - 1 if endpoint else n
    if isinstance(parts, int) and parts <= 0:
        step: Any = API["multiply"](API["subtract"](b, a), np.nan)
        out = API["stack"]([a]) if n == 1 else API["zeros"]((0, *API["subtract"](b, a).shape), real)
    else:
        step = API["divide"](API["subtract"](b, a), user_size(maximum(parts, 1)))
        k = Tensor(iota((n,), 0, real if real.kind == "f" else real_dtype(real)))
        k = API["reshape"](k, (user_size(n),) + (1,) * step.ndim)
        out = API["add"](API["multiply"](k, step), a)
        if endpoint:  # the last number is exactly the end; one number alone is the start
            place = API["reshape"](Tensor(iota((n,), 0)), (user_size(n),) + (1,) * step.ndim)
            last = API["equal"](place, user_size(n - 1))
            last = last if isinstance(n, int) else API["logical_and"](last, API["greater"](place, 0))
            out = API["where"](last, b, out)
    if dtype is not None:
        target = as_dtype(dtype)
        out = API["astype"](API["floor"](out) if target.kind in "iu" else out, target)
    out = API["moveaxis"](out, 0, normal_axis(axis, out.ndim, "linspace")) if axis else out
    if retstep and isinstance(parts, Dim):  # of one number there is no step, which is seen in a call
        step = API["where"](API["greater"](as_tensor(user_size(parts)), 0), step, np.nan)
    return (out, step) if retstep else out


@public(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """Numbers evenly spaced on a logarithmic scale from ``start`` to ``stop``, which have one sign."""
    a, b, num = as_operand(start), as_operand(stop), user_size(as_size(num, "geomspace: the number"))
    wide = common_dtype([a, b, zeros(())])
    a, b = (Tensor(convert(t.value, wide)) for t in (a, b))
    sign = API["sign"](a)
    low, high = (API["log"](API["divide"](t, sign)) for t in (a, b))
    logs = linspace(low, high, num, endpoint)
    out = API["multiply"](API["exp"](logs), sign)
    k = API["reshape"](API["arange"](out.shape[0]), (-1,) + (1,) * (out.ndim - 1))
    out = API["where"](API["equal"](k, 0), a, out)  # the ends are exact
    if endpoint and not (isinstance(num, int) and num == 1):
        last = API["logical_and"](API["equal"](k, as_tensor(num) - 1), API["greater"](k, 0))
        out = API["where"](last, b, out)
    out = out if dtype is None else API["astype"](out, dtype)
    return API["moveaxis"](out, 0, normal_axis(axis, out.ndim, "geomspace")) if axis != 0 else out


@public(np.logspace)
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None,
             axis: int = 0) -> Tensor:
    """Powers of ``base`` with evenly spaced exponents."""
    if API["ndim"](base):
        start, stop, base = API["broadcast_arrays"](start, stop, base)
        base = API["expand_dims"](base, axis)
    out = API["power"](base, linspace(start, stop, num, endpoint, axis=axis))
    return out if dtype is None else API["astype"](out, dtype)


# --- matrices ---------------------------------------------------------------------------------------------------------


def _diagonal(k: Any, name: str) -> int:
    """The number of a diagonal, also of one that is further away than any. Its sums with sizes fit in 64 bits."""
    return max(-FAR, min(integer(k, f"{name}: the number of a diagonal"), FAR))


def _beside_diagonal(relation: str, shape: tuple[Size, ...], k: int) -> Value:
    """Truth of a relation ("eq", "le", "ge") of columns to rows moved by ``k``."""
    return lookup(relation)(iota(shape, len(shape) - 1), iota(shape, len(shape) - 2) + k)


@public()
def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None, *, order: str = "C", device: Any = None) -> Tensor:
    """Ones on diagonal k, zeros elsewhere."""
    found = _beside_diagonal("eq", _sizes((N, N if M is None else M)), _diagonal(k, "eye"))
    return Tensor(convert(found, _float_or(dtype)))


@public()
def identity(n: Any, dtype: Any = None) -> Tensor:
    """The unit matrix."""
    return eye(n, dtype=dtype)


@public()
def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Ones at and below diagonal k."""
    found = _beside_diagonal("le", _sizes((N, N if M is None else M)), _diagonal(k, "tri"))
    return Tensor(convert(found, _float_or(dtype)))


def _triangle(name: str, function: Callable, relation: str) -> Callable[..., Tensor]:
    def call(m: Any, k: int = 0) -> Tensor:
        t = as_tensor(m)
        if t.ndim == 1:
            t = API["broadcast_to"](t, (t.shape[0], t.shape[0]))
        v = with_axes(t, 2, name).value
        return Tensor(choose(_beside_diagonal(relation, v.shape, _diagonal(k, name)), v, splat(0, v.type)))
    side = "below" if relation == "le" else "above"
    return public(function)(called(
        call, name, f"The elements at and {side} diagonal k of the last two axes, zeros elsewhere."))


tril = _triangle("tril", np.tril, "le")
triu = _triangle("triu", np.triu, "ge")


@public(np.diagonal, memory="always")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements on a diagonal of two axes, along a new last axis."""
    t = with_axes(a, 2, "diagonal")
    i, j = normal_axes((axis1, axis2), t.ndim, "diagonal", t)
    m, offset = API["moveaxis"](t, (i, j), (-2, -1)), _diagonal(offset, "diagonal")
    rows_, columns = m.value.shape[-2:]
    down, right = max(-offset, 0), max(offset, 0)
    count = maximum(minimum(rows_ - down, columns - right), 0)
    if isinstance(count, int) and count == 0:
        return Tensor(splat(0, m.type.with_shape((*m.value.shape[:-2], 0))))
    place = iota((count,), 0)
    last = (m.ndim - 2, m.ndim - 1)
    out = lookup("gather")(m.value, place + down if down else place, place + right if right else place, axes=last)
    return API["moveaxis"](Tensor(out), 0, -1)


@public(np.diag, memory="always")
def diag(v: Any, k: int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or the matrix with a vector on its k-th diagonal."""
    t = as_tensor(v)
    if t.ndim == 2:
        return diagonal(t, k)
    if t.ndim != 1:
        raise ShapeError(f"diag: one or two axes are needed, there are {t.ndim}", values=rows([t]))
    n, k = t.value.shape[0], _diagonal(k, "diag")
    side = n + abs(k)
    line = API["pad"](t, ((max(-k, 0), max(k, 0)),)) if k else t  # row i of the matrix holds element i of this
    shape = (side, side)
    wide = lookup("broadcast")(line.value, axes=(0,), shape=shape)
    return Tensor(choose(_beside_diagonal("eq", shape, k), wide, splat(0, wide.type)))


@public(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Tensor:
    """A matrix with the raveled value on its k-th diagonal."""
    return diag(API["ravel"](v), k)


@public(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Tensor:
    """Powers of x as columns."""
    t = as_tensor(x)
    if t.ndim != 1:
        raise ShapeError(f"vander: a vector is needed, there are {t.ndim} axes", values=rows([t]))
    n = as_size(t.shape[0] if N is None else N, "vander: the number of columns")
    powers = iota((n,), 0)
    powers = powers if increasing else lookup("sub")(stretch(lookup("size")(value=n - 1), (n,)), powers)
    d = common_dtype([t, as_tensor(np.int64(0))])
    return API["power"](API["reshape"](Tensor(convert(t.value, d)), (-1, 1)), Tensor(convert(powers, d)))


@public(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Tensor]:
    """Coordinate arrays from coordinate vectors."""
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    n = len(xi)
    out = [API["reshape"](as_tensor(x), (1,) * i + (-1,) + (1,) * (n - 1 - i)) for i, x in enumerate(xi)]
    if indexing == "xy" and n > 1:
        out = [API["swapaxes"](t, 0, 1) for t in out]
    return out if sparse else list(API["broadcast_arrays"](*out))


@public()
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The index along every axis of a shape, one after another along a new first axis; ``sparse``: a tuple of axes."""
    shape = _sizes(dimensions)
    if sparse:
        return tuple(Tensor(iota((1,) * a + (n,) + (1,) * (len(shape) - 1 - a), a, dtype)) for a, n in enumerate(shape))
    return API["stack"]([Tensor(iota(shape, a, dtype)) for a in range(len(shape))])


@public()
def one_hot(x: Any, num_classes: Any, dtype: Any = None, axis: int = -1) -> Tensor:
    """A new axis with 1 at the place that x names and 0 elsewhere; all 0 for places outside."""
    t = as_tensor(x)
    if t.dtype.kind not in "iu":
        raise DTypeError("one_hot: places are integers", values=rows([t]), help="x.astype('int64')")
    n = as_size(num_classes, "one_hot: the number of classes")
    shape = (*t.value.shape, n)
    v = lookup("eq")(lookup("broadcast")(t.value, axes=tuple(range(t.ndim)), shape=shape), iota(shape, t.ndim, t.dtype))
    out = Tensor(convert(v, _float_or(dtype)))
    return out if axis == -1 else API["moveaxis"](out, -1, axis)


