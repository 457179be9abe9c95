"""Polynomials by their coefficients, highest power first; convolution and correlation of vectors."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.ir.dim import floordiv, known_equal, known_nonnegative
from symc.ir.dtypes import finfo
from symc.ir.op import lookup
from symc.ir.ops.ensure import at_least
from symc.ir.size_extremes import maximum, minimum
from symc.ir.value import Value
from symc.numpy_api.linear import conjugated
from symc.numpy_api.promotion import check_times, rows, same_dtype
from symc.tensors.convert import as_tensor, default_complex, default_float, inexact_dtype
from symc.tensors.public import API, public
from symc.tensors.sizes import as_size, integer, known_number, user_size, whole
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
    n, m = (known_number(t.value.shape[0]) for t in (x, y))
    if n is None or m is None:
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


def _taken(p: Any, m: Any, what: str) -> tuple[Tensor, int]:
    """Coefficients of which a derivative or an integral is taken so often."""
    t, m = as_tensor(p), integer(m, f"{what.partition(':')[0]}: m")
    if t.ndim != 1 or m < 0:
        raise ShapeError(f"{what} {m} of {t.ndim} axes; a vector and a number from 0 up are needed", values=rows([t]))
    check_times(m, f"{what.partition(':')[0]}: m")
    return t, m


@public(np.polyder)
def polyder(p: Any, m: int = 1) -> Tensor:
    """The m-th derivative of a polynomial."""
    t, m = _taken(p, m, "polyder: derivative")
    for _ in range(m):
        n = t.shape[0]
        t = API["multiply"](API["getitem"](t, slice(None, -1)), API["subtract"](n - 1, API["arange"](n - 1)))
    return t


@public(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = 0) -> Tensor:
    """The m-th antiderivative of a polynomial, with the constant k."""
    t, m = _taken(p, m, "polyint: integral")
    for _ in range(m):
        n = t.shape[0]
        t = API["concatenate"](
            [API["divide"](t, API["subtract"](n, API["arange"](n))), API["reshape"](as_tensor(k), (1,))]
        )
    return t


@public(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The convolution of two vectors; mode full, same or valid. Long ones by Fourier transforms where that pays."""
    x, y = as_tensor(a), as_tensor(v)
    if x.ndim != 1 or y.ndim != 1 or mode not in ("full", "same", "valid"):
        raise ShapeError("convolve: two vectors and a mode full, same or valid are needed", values=rows([x, y]))
    n, k = (t.value.shape[0] for t in (x, y))
    if isinstance(n, int) and (not isinstance(k, int) or n < k):
        (x, n), (y, k) = (y, k), (x, n)
    if 0 in (n, k):
        raise ShapeError("convolve: a vector is empty", values=rows([x, y]))
    x, y = (Tensor(at_least(t.value, 0, 1)) for t in (x, y))
    if not isinstance(k, int) or k > FEW:
        return _valid(x, API["flip"](y)) if mode == "valid" else _middle(_full(x, y), n, k, mode)
    # Products are padded, not what is multiplied: an infinity times the zeros around would be nan.
    terms = [API["pad"](API["multiply"](x, API["getitem"](y, i)), (i, k - 1 - i)) for i in range(k)]
    return _middle(functools.reduce(API["add"], terms), n, k, mode)


def _full(x: Tensor, y: Tensor) -> Tensor:
    """The full convolution: what is transposed to reading windows of a signal with a filter."""
    x, y = same_dtype([x, y], "convolve")
    if x.dtype.kind == "b":
        return API["astype"](_full(API["astype"](x, np.int64), API["astype"](y, np.int64)), np.bool_)
    signal, taps = (lookup("reshape")(t.value, shape=(1, 1, *t.value.shape)) for t in (x, y))
    size = signal.shape[2] + taps.shape[2] - 1
    return Tensor(lookup("reshape")(lookup("conv_input")(signal, taps, size=(size,)), shape=(size,)))


def _valid(x: Tensor, y: Tensor) -> Tensor:
    """Sums of products of the longer of two vectors with the other, at every place within it; from the back if that is
    ``y``. Which it is may be known in a call alone."""
    x, y = same_dtype([x, y], "convolve")
    if x.dtype.kind == "b":
        return API["astype"](_valid(API["astype"](x, np.int64), API["astype"](y, np.int64)), np.bool_)
    n, k = x.value.shape[0], y.value.shape[0]
    if known_nonnegative(n - k):
        return Tensor(_windows(x.value, y.value))
    if known_nonnegative(k - n):
        return Tensor(_windows(y.value, x.value, turned=True))
    both, long = API["concatenate"]([x, y]), user_size(maximum(n, k))
    both = API["where"](API["greater_equal"](user_size(n), user_size(k)), both, API["flip"](both))
    return Tensor(_windows(both[:long].value, both[long:].value))


def _windows(signal: Value, taps: Value, turned: bool = False) -> Value:
    a, b = (lookup("reshape")(v, shape=(1, 1, *v.shape)) for v in (signal, taps))
    out = lookup("conv")(a, b, stride=(1,), dilation=(1,), groups=1)
    out = lookup("reshape")(out, shape=(out.shape[2],))
    return API["flip"](Tensor(out)).value if turned else out


def _middle(full: Tensor, n: Any, k: Any, mode: str, turned: bool = False) -> Tensor:
    """The part of a full convolution of n and k elements that a mode keeps. ``turned``: from the back if n < k."""
    if mode == "full":
        return full
    short, long = minimum(as_size(n), as_size(k)), maximum(as_size(n), as_size(k))
    less = minimum(maximum(as_size(k) - as_size(n), 0), 1) if turned else 0
    first = floordiv(short - 1 + less, 2) if mode == "same" else short - 1
    return API["getitem"](full, slice(user_size(first), user_size(first + long if mode == "same" else long)))


@public(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """The correlation of two vectors: the convolution of a with v conjugated and reversed."""
    x, y = as_tensor(a), as_tensor(v)
    if mode not in ("valid", "same", "full"):
        raise InputError(f"correlate: mode is 'valid', 'same' or 'full', not {mode!r}", values=rows([x, y]))
    if mode == "valid":
        return convolve(x, API["flip"](conjugated(y)), mode)
    full = convolve(x, API["flip"](conjugated(y)), "full")
    return _middle(full, x.shape[0], y.shape[0], mode, turned=True)


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


@public(np.poly)
def poly(seq_of_zeros: Any) -> Tensor:
    """The polynomial with these roots, or the characteristic polynomial of a matrix.

    Of complex roots its dtype is complex: whether they come in conjugate pairs is data.
    """
    t = API["atleast_1d"](seq_of_zeros)
    if t.ndim == 2 and known_equal(*t.value.shape) is not False and t.value.shape[0] != 0:
        out = poly(API["linalg.eigvals"](t))
        return out if t.dtype.kind == "c" else API["real"](out)
    number = known_number(t.value.shape[0]) if t.ndim == 1 else None
    if number is None:
        raise ShapeError("poly: roots are a vector of known size, or a square matrix", values=rows([t]))
    check_times(number, "poly: the number of roots")
    t = t if t.dtype.kind in "fc" and t.dtype.itemsize > 2 else API["astype"](t, default_float())
    out = API["ones"](1, t.dtype)
    for k in range(number):
        shifted = API["multiply"](out, API["getitem"](t, k))
        out = API["subtract"](API["pad"](out, (0, 1)), API["pad"](shifted, (1, 0)))
    return out


@public(np.roots)
def roots(p: Any) -> Tensor:
    """The roots of a polynomial, always complex, as eigenvalues of its companion matrix.

    The first coefficient is not 0. (NumPy looks for zeros at both ends, which is done here for constants alone.)
    """
    t = API["atleast_1d"](p)
    if t.ndim != 1:
        raise ShapeError(f"roots: coefficients are a vector, not of {t.ndim} axes", values=rows([t]))
    if t.value.data is not None:
        return API["astype"](as_tensor(np.roots(t.value.data)), default_complex())
    if isinstance(t.shape[0], int) and t.shape[0] < 2:
        return API["zeros"](0, default_complex())
    return API["linalg.eigvals"](API["linalg.companion"](t))


@public(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """(quotient, remainder) of two polynomials.

    The remainder has one coefficient fewer than v, at least one: zeros in front stay, as they are data.
    """
    given = [API["atleast_1d"](t) for t in (u, v)]
    x, y = same_dtype([API["astype"](t, inexact_dtype(t.dtype)) for t in given], "polydiv")
    n, m = (known_number(t.value.shape[0]) if t.ndim == 1 else None for t in (x, y))
    if n is None or m is None:
        raise ShapeError("polydiv: the numbers of coefficients must be known", values=rows([x, y]))
    if n < m:
        return API["zeros"](1, x.dtype), x
    check_times(n - m + 1, "polydiv: the number of coefficients")
    scale, quotient = API["divide"](1.0, API["getitem"](y, 0)), []
    for k in range(n - m + 1):
        quotient.append(API["multiply"](scale, API["getitem"](x, k)))
        x = API["subtract"](x, API["pad"](API["multiply"](quotient[-1], y), (k, n - m - k)))
    return API["stack"](quotient), API["getitem"](x, slice(n - max(m - 1, 1), None))


@public(np.polyfit)
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None,
            cov: Any = False) -> Any:
    """The polynomial of degree ``deg`` with the least sum of squares from y at x, each times its weight w.

    ``full``: also residuals, rank, singular values and rcond; ``cov``: also the covariances of the coefficients.
    """
    xs, ys = (API["astype"](t, inexact_dtype(t.dtype)) for t in map(as_tensor, (x, y)))
    if (degree := whole(deg)) is None or degree < 0:
        raise InputError(f"polyfit: the degree is a number from 0 up, not {deg!r}",
                         help="for some powers alone: sc.linalg.lstsq")
    order, n = degree + 1, xs.shape[0] if xs.ndim else 0
    if xs.ndim != 1 or ys.ndim not in (1, 2) or known_equal(xs.value.shape[0], ys.value.shape[0]) is False:
        raise ShapeError("polyfit: x is a vector, y a vector or matrix of as many rows", values=rows([xs, ys]))
    several = cov and cov != "unscaled" and not full and not isinstance(n, int)
    xs = Tensor(at_least(xs.value, 0, order + 1 if several else 1))
    rcond = n * float(finfo(xs.dtype).eps) if rcond is None else rcond
    left, right = API["vander"](xs, order), ys
    if w is not None:
        weights = as_tensor(w)
        if weights.ndim != 1 or known_equal(weights.value.shape[0], xs.value.shape[0]) is False:
            raise ShapeError("polyfit: w is a vector, of the length of x", values=rows([xs, weights]))
        left = API["multiply"](left, API["expand_dims"](weights, 1))
        right = API["multiply"](ys, weights if ys.ndim == 1 else API["expand_dims"](weights, 1))
    scale = API["sqrt"](API["sum"](API["square"](left), 0))
    left = API["divide"](left, scale)
    c, residuals, rank, s = API["linalg.lstsq"](left, right, rcond)
    c = API["divide"](c, scale if ys.ndim == 1 else API["expand_dims"](scale, 1))
    if full:
        return c, residuals, rank, s, rcond
    if not cov:
        return c
    spread = API["divide"](API["linalg.inv"](API["matmul"](API["transpose"](left), left)), API["outer"](scale, scale))
    if cov != "unscaled":
        if isinstance(n, int) and n <= order:
            raise InputError(f"polyfit: {n} points are too few for covariances of {order} coefficients",
                             values=rows([xs]), help="cov='unscaled'")
        factor = API["divide"](residuals, n - order)
    else:
        factor = as_tensor(1.0)
    spread = API["multiply"](spread if ys.ndim == 1 else API["expand_dims"](spread, 2), factor)
    return c, spread
