"""Averages, covariances and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.dim import known_equal
from symc.ir.ops.ensure import ensured
from symc.numpy_api.manipulation import normal_axes
from symc.numpy_api.promotion import common_dtype, rows
from symc.numpy_api.reductions import count_along, degrees
from symc.numpy_api.selection import must_hold
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, public
from symc.tensors.sizes import as_size, integer
from symc.tensors.tensor import Tensor


@public(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The mean, or with weights (of a's shape, or one for each place along ``axis``) the weighted mean."""
    t = as_tensor(a)
    if weights is None:
        out = API["mean"](t, axis, keepdims=keepdims)
        total: Any = API["full_like"](out, count_along(t, axis, "average"))
    else:
        w = aligned_weights("average", weights, t, axis)
        dtype = common_dtype([t, w, API["zeros"](())] if t.dtype.kind in "biu" else [t, w])
        total = API["sum"](API["astype"](w, dtype), axis, keepdims=keepdims)
        product = API["multiply"](API["astype"](t, dtype), API["astype"](w, dtype))
        out = API["divide"](API["sum"](product, axis, keepdims=keepdims), total)
    return (out, API["broadcast_to"](total, out.shape)) if returned else out


def aligned_weights(name: str, weights: Any, t: Tensor, axis: Any) -> Tensor:
    """The weights in an order and a shape that broadcasts to that of ``t``."""
    w = as_tensor(weights)
    have, want = w.value.shape, t.value.shape
    if w.ndim == t.ndim and not any(known_equal(n, m) is False for n, m in zip(have, want, strict=True)):
        return Tensor(ensured(w.value, want))
    if axis is None:
        raise InputError(f"{name}: give the axis where weights have another shape than the value", values=rows([t, w]))
    axes = normal_axes(axis, t.ndim, name, t)
    along = tuple(want[i] for i in axes)
    if w.ndim != len(axes) or any(known_equal(n, m) is False for n, m in zip(have, along, strict=True)):
        raise ShapeError(f"{name}: the weights have neither the shape of the value nor that of the axes averaged over",
                         values=rows([t, w]), help=f"axis={axis} of the value has the sizes {along}")
    w = API["transpose"](w, tuple(int(i) for i in np.argsort(axes)))
    return API["reshape"](w, tuple(n if i in axes else 1 for i, n in enumerate(t.shape)))


def _of_columns(weights: Any, columns: Any, name: str, whole: bool) -> Tensor:
    """One weight for each column of observations."""
    w = as_tensor(weights)
    if w.ndim != 1 or known_equal(w.value.shape[0], as_size(columns)) is False:
        raise ShapeError(f"cov: {name} is a vector of the {columns} observations", values=rows([w]))
    data = w.value.data
    if data is None and whole and w.dtype.kind not in "biu" or data is not None and whole and (data % 1 != 0).any():
        raise DTypeError(f"cov: {name} are whole numbers", values=rows([w]), help="aweights may be any")
    if data is not None and (data < 0).any():
        raise InputError(f"cov: {name} holds a negative number", values=rows([w]))
    out = API["astype"](w, np.float64)
    return out if data is not None else out + must_hold(API["greater_equal"](w, 0), f"cov: {name} are not negative")


@public(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: float | None = None, fweights: Any = None,
        aweights: Any = None, *, dtype: Any = None) -> Tensor:
    """The covariance matrix of variables in rows (columns, if not ``rowvar``).

    ``fweights`` say how often each observation counts, ``aweights`` how much.
    """
    for t in map(as_tensor, (m,) if y is None else (m, y)):
        if t.ndim > 2:
            raise ShapeError(f"cov: a value has {t.ndim} axes, more than 2", values=rows([t]))
    ddof = (0 if bias else 1) if ddof is None else ddof
    less = integer(int(ddof) if isinstance(ddof, float) and ddof.is_integer() else ddof, "cov: ddof")
    x = API["atleast_2d"](m)
    x = x if rowvar or as_tensor(m).ndim < 2 else API["transpose"](x)
    if known_equal(x.value.shape[0], 0) is True:  # no variables: NumPy does not look further
        return API["zeros"]((0, 0), dtype)
    if y is not None:
        other = API["atleast_2d"](y)
        x = API["concatenate"]([x, other if rowvar or as_tensor(y).ndim < 2 else API["transpose"](other)])
    x = API["astype"](x, common_dtype([x, API["zeros"](())]) if dtype is None else dtype)  # a float at least
    given = [_of_columns(w, x.shape[1], name, name == "fweights")
             for w, name in ((fweights, "fweights"), (aweights, "aweights")) if w is not None]
    w = None if not given else given[0] if len(given) == 1 else API["multiply"](*given)
    d = API["subtract"](x, API["astype"](API["average"](x, 1, w, keepdims=True), x.dtype))
    right = API["transpose"](d if w is None else API["multiply"](d, w))
    n = degrees(x.shape[1], less) if w is None else _degrees(w, given[-1] if aweights is not None else None, less)
    return API["squeeze"](API["divide"](API["matmul"](d, API["conjugate"](right)), n))


def _degrees(w: Tensor, aweights: Tensor | None, ddof: int) -> Any:
    """Degrees of freedom, by which weighted sums of squares are divided."""
    total = API["sum"](w)
    share: Any = 1 if aweights is None or not ddof else API["divide"](API["sum"](API["multiply"](w, aweights)), total)
    return degrees(total, API["multiply"](ddof, share))


@public(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    """The correlation matrix of variables in rows."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return API["divide"](c, c)
    spread = API["sqrt"](API["real"](API["diagonal"](c)))
    return API["divide"](API["divide"](c, API["expand_dims"](spread, 1)), spread)
