"""Averages, covariances and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.ir.dim import known_equal
from symc.ir.op import lookup
from symc.numpy_api.manipulation import normal_axes
from symc.numpy_api.promotion import common_dtype, rows
from symc.numpy_api.reductions import count_along, degrees
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, public
from symc.tensors.tensor import Tensor


@public(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The mean, or with weights (of a's shape, or one for each place along ``axis``) the weighted mean."""
    t = as_tensor(a)
    if weights is None:
        out = API["mean"](t, axis, keepdims=keepdims)
        total: Any = API["full_like"](out, count_along(t, axis, "average"))
    else:
        w = _weights(weights, t, axis)
        dtype = common_dtype([t, w, API["zeros"](())] if t.dtype.kind in "biu" else [t, w])
        total = API["sum"](API["astype"](w, dtype), axis, keepdims=keepdims)
        product = API["multiply"](API["astype"](t, dtype), API["astype"](w, dtype))
        out = API["divide"](API["sum"](product, axis, keepdims=keepdims), total)
    return (out, API["broadcast_to"](total, out.shape)) if returned else out


def _weights(weights: Any, t: Tensor, axis: Any) -> Tensor:
    """The weights in an order and a shape that broadcasts to that of ``t``."""
    w = as_tensor(weights)
    have, want = w.value.shape, t.value.shape
    if w.ndim == t.ndim and not any(known_equal(n, m) is False for n, m in zip(have, want, strict=True)):
        return w if have == want else Tensor(lookup("ensure_shape")(w.value, shape=want))
    if axis is None:
        raise InputError("average: give the axis where weights have another shape than the value", values=rows([t, w]))
    axes = normal_axes(axis, t.ndim, "average", t)
    along = tuple(want[i] for i in axes)
    if w.ndim != len(axes) or any(known_equal(n, m) is False for n, m in zip(have, along, strict=True)):
        raise ShapeError("average: the weights have neither the shape of the value nor that of the axes averaged over",
                         values=rows([t, w]), help=f"axis={axis} of the value has the sizes {along}")
    w = API["transpose"](w, tuple(int(i) for i in np.argsort(axes)))
    return API["reshape"](w, tuple(n if i in axes else 1 for i, n in enumerate(t.shape)))


@public(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Tensor:
    """The covariance matrix of variables in rows (columns, if not ``rowvar``)."""
    for t in map(as_tensor, (m,) if y is None else (m, y)):
        if t.ndim > 2:
            raise ShapeError(f"cov: a value has {t.ndim} axes, more than 2", values=rows([t]))
    x = API["atleast_2d"](m)
    x = x if rowvar or as_tensor(m).ndim < 2 else API["transpose"](x)
    if y is not None:
        other = API["atleast_2d"](y)
        x = API["concatenate"]([x, other if rowvar or as_tensor(y).ndim < 2 else API["transpose"](other)])
    x = API["astype"](x, common_dtype([x, API["zeros"](())]))  # in the default float at least
    d = API["subtract"](x, API["mean"](x, 1, keepdims=True))
    n = degrees(x.shape[1], (0 if bias else 1) if ddof is None else ddof)
    return API["squeeze"](API["divide"](API["matmul"](d, API["conjugate"](API["transpose"](d))), n))


@public(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    """The correlation matrix of variables in rows."""
    c = cov(x, y, rowvar)
    if not c.ndim:
        return API["divide"](c, c)
    spread = API["sqrt"](API["real"](API["diagonal"](c)))
    return API["divide"](API["divide"](c, API["expand_dims"](spread, 1)), spread)
