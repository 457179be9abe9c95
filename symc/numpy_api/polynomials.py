"""Polynomials by their coefficients, highest power first; convolution and correlation of vectors."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.ir.dim import floordiv, maximum, minimum
from symc.ir.op import lookup
from symc.numpy_api.linear import conjugated
from symc.numpy_api.promotion import check_times, rows, same_dtype
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, public
from symc.tensors.sizes import as_size, user_size
from symc.tensors.tensor import Tensor

#: Up to how many terms a convolution is written out.
FEW = 8


@public(np.polyval)
def polyval(p: Any, x: Any) -> Tensor:
    """A polynomial at x; the number of coefficients is known."""
    coefficients = list(p) if isinstance(p, list | tuple) else list(as_tensor(p))
    out = API["zeros_like"](x)
    for c in coefficients:
        out = API["add"](API["multiply"](out, x), c)
    return out


def _aligned(a1: Any, a2: Any) -> tuple[Tensor, Tensor]:
    """Two vectors of coefficients in one length: zeros in front."""
    x, y = API["atleast_1d"](a1, a2)
    n, m = x.shape[0], y.shape[0]
    if not (isinstance(n, int) and isinstance(m, int)):
        raise ShapeError("the numbers of coefficients must be known", values=rows([x, y]))
    return tuple(API["pad"](t, ((max(n, m) - k, 0),)) for t, k in ((x, n), (y, m)))  # type: ignore[return-value]


@public(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Tensor:
    """The sum of two polynomials."""
    return API["add"](*_aligned(a1, a2))


@public(np.polysub)
def polysub(a1: Any, a2: Any) -> Tensor:
    """The difference of two polynomials."""
    return API["subtract"](*_aligned(a1, a2))


@public(np.polymul)
def polymul(a1: Any, a2: Any) -> Tensor:
    """The product of two polynomials."""
    return convolve(*API["atleast_1d"](a1, a2))


@public(np.polyder)
def polyder(p: Any, m: int = 1) -> Tensor:
    """The m-th derivative of a polynomial."""
    t = as_tensor(p)
    if t.ndim != 1 or m < 0:
        raise ShapeError(f"polyder: derivative {m} of {t.ndim} axes; a vector and a number from 0 up are needed",
                         values=rows([t]))
    check_times(m, "polyder: m")
    for _ in range(m):
        n = t.shape[0]
        t = API["multiply"](API["getitem"](t, slice(None, -1)), API["subtract"](n - 1, API["arange"](n - 1)))
    return t


@public(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = 0) -> Tensor:
    """The m-th antiderivative of a polynomial, with the constant k."""
    t = as_tensor(p)
    if t.ndim != 1 or m < 0:
        raise ShapeError(f"polyint: integral {m} of {t.ndim} axes; a vector and a number from 0 up are needed",
                         values=rows([t]))
    check_times(m, "polyint: m")
    for _ in range(m):
        n = t.shape[0]
        t = API["concatenate"](
            [API["divide"](t, API["subtract"](n, API["arange"](n))), API["reshape"](as_tensor(k), (1,))]
        )
    return t


@public(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The convolution of two vectors, one of known size; mode full, same or valid."""
    x, y = as_tensor(a), as_tensor(v)
    if x.ndim != 1 or y.ndim != 1 or mode not in ("full", "same", "valid"):
        raise ShapeError("convolve: two vectors and a mode full, same or valid are needed", values=rows([x, y]))
    if not isinstance(y.shape[0], int) or (isinstance(x.shape[0], int) and x.shape[0] < y.shape[0]):
        x, y = y, x
    k, n = y.shape[0], x.shape[0]
    if not isinstance(k, int) or k == 0:
        raise ShapeError("convolve: the size of one vector must be known and not 0", values=rows([x, y]))
    if k > FEW:
        return _middle(_by_windows(x, y, n, k), n, k, mode)
    # Products are padded, not what is multiplied: an infinity times the zeros around would be nan.
    terms = [API["pad"](API["multiply"](x, API["getitem"](y, i)), (i, k - 1 - i)) for i in range(k)]
    return _middle(functools.reduce(API["add"], terms), n, k, mode)


def _by_windows(x: Tensor, y: Tensor, n: Any, k: int) -> Tensor:
    """The full convolution as sums of products with windows of x, in one loop nest. Where windows leave x, products
    that are none are left out one by one."""
    x, y = same_dtype([x, y], "convolve")
    taps = API["expand_dims"](API["flip"](y), 1)
    fold = "any" if x.dtype.kind == "b" else "sum"

    def part(first: Any, count: Any) -> Tensor:
        inside = isinstance(first, int) and first == k - 1 and isinstance(n, int)
        given = x if inside else API["getitem"](API["pad"](x, k - 1), slice(first, first + count + k - 1))
        windows = Tensor(lookup("windows")(given.value, window=(k,), stride=(1,), dilation=(1,)))
        products = API["multiply"](windows, taps)
        if not inside:
            place = API["add"](API["expand_dims"](API["arange"](k), 1), API["arange"](first, first + count))
            known = API["logical_and"](API["greater_equal"](place, k - 1), API["less"](place, n + k - 1))
            products = API["where"](known, products, API["zeros"]((), x.dtype))
        return Tensor(lookup(fold)(products.value, axes=(0,)))

    if not isinstance(n, int) or n < 2 * k:
        return part(0, n + k - 1)
    return API["concatenate"]([part(0, k - 1), part(k - 1, n - k + 1), part(n, k - 1)])


def _middle(full: Tensor, n: Any, k: Any, mode: str) -> Tensor:
    """The part of a full convolution of n and k elements that a mode keeps."""
    if mode == "full":
        return full
    short, long = minimum(as_size(n), as_size(k)), maximum(as_size(n), as_size(k))
    first = floordiv(short - 1, 2) if mode == "same" else short - 1
    return API["getitem"](full, slice(user_size(first), user_size(first + long if mode == "same" else long)))


@public(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """The correlation of two vectors: the convolution of a with v conjugated and reversed."""
    x, y = as_tensor(a), as_tensor(v)
    if mode not in ("valid", "same", "full"):
        raise InputError(f"correlate: mode is 'valid' or 'full', not {mode!r}", values=rows([x, y]))
    if mode == "same":
        raise ShapeError(
            "correlate: the mode 'same' is not available", values=rows([x, y]), help="take a slice of mode 'full'"
        )
    full = convolve(x, API["flip"](conjugated(y)), "full")
    return _middle(full, x.shape[0], y.shape[0], mode)


@public(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Tensor:
    """Angles along ``axis`` with jumps of more than half a period taken out."""
    t = as_tensor(p)
    d = API["diff"](t, axis=axis)
    whole = d.dtype.kind in "iu" and isinstance(period, int | np.integer)
    half: Any = period // 2 if whole else period / 2
    wrapped = API["subtract"](API["remainder"](API["add"](d, half), period), half)
    if not whole or period % 2 == 0:
        wrapped = API["where"](API["logical_and"](API["equal"](wrapped, -half), API["greater"](d, 0)), half, wrapped)
    limit = period / 2 if discont is None else max(discont, period / 2)
    correction = API["where"](API["less"](API["absolute"](d), limit), 0, API["subtract"](wrapped, d))
    steps = API["cumulative_sum"](correction, axis=axis, include_initial=True)
    return API["add"](t, steps)
