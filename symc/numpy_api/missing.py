"""Reductions in which a nan counts as missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import DTypeError
from symc.ir.op import lookup, splat
from symc.ir.types import as_dtype
from symc.numpy_api.promotion import rows
from symc.numpy_api.reductions import Axis, all, cumprod, cumsum, one_ddof, prod, sum
from symc.numpy_api.ufuncs import choose
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, called, public
from symc.tensors.tensor import Tensor


def _without_nan(t: Tensor, fill: Any) -> Tensor:
    if t.dtype.kind not in "fc":
        return t
    return Tensor(choose(lookup("isnan")(t.value), splat(fill, t.type), t.value))


@public(np.nansum)
def nansum(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, initial: Any = None,
           where: Any = True) -> Tensor:
    """The sum of the elements that are not nan."""
    return sum(_without_nan(as_tensor(a), 0), axis, dtype, keepdims, initial, where)


@public(np.nanprod)
def nanprod(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, initial: Any = None,
            where: Any = True) -> Tensor:
    """The product of the elements that are not nan."""
    return prod(_without_nan(as_tensor(a), 1), axis, dtype, keepdims, initial, where)


def _present(t: Tensor, axis: Axis, keepdims: bool, where: Any) -> Tensor:
    return sum(API["logical_not"](API["isnan"](t)), axis, keepdims=keepdims, where=where)


@public(np.nanmean)
def nanmean(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """The mean of the elements that are not nan; nan if there are none."""
    t = as_tensor(a)
    if t.dtype.kind not in "fc":
        return API["mean"](t, axis, dtype, keepdims, where=where)
    total = nansum(t, axis, dtype, keepdims, where=where)
    return API["divide"](total, API["astype"](_present(t, axis, keepdims, where), total.dtype))


@public(np.nanvar)
def nanvar(a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *, mean: Any = None,
           correction: float | None = None, where: Any = True) -> Tensor:
    """The variance of the elements that are not nan; nan where there are no more of them than ``ddof``."""
    t = as_tensor(a)
    ddof = one_ddof(ddof, correction, "nanvar")
    if dtype is not None:
        if t.dtype.kind == "c" and as_dtype(dtype).kind != "c":
            raise DTypeError(f"nanvar of complex numbers in {as_dtype(dtype)}", values=rows([t]))
        t = API["astype"](t, dtype)
    if t.dtype.kind not in "fc":
        return API["var"](t, axis, dtype, ddof, keepdims, mean=mean, where=where)
    d = API["subtract"](t, nanmean(t, axis, dtype, True, where=where) if mean is None else mean)
    d = API["where"](API["isnan"](t), 0, d)  # d of an infinity is nan, and no missing element
    square = API["square"](d) if d.dtype.kind == "f" else API["real"](API["multiply"](d, API["conjugate"](d)))
    total = sum(square, axis, keepdims=keepdims, where=where)
    left = API["subtract"](_present(t, axis, keepdims, where), ddof)
    out = API["divide"](total, API["astype"](left, total.dtype))
    out = API["where"](API["greater"](left, 0), out, np.nan)
    return out if dtype is None else API["astype"](out, dtype)


@public(np.nanstd)
def nanstd(a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *, mean: Any = None,
           correction: float | None = None, where: Any = True) -> Tensor:
    """The standard deviation of the elements that are not nan."""
    return API["sqrt"](nanvar(a, axis, dtype, ddof, keepdims, mean=mean, correction=correction, where=where))


def _nan_extreme(name: str, function: Callable) -> Callable[..., Tensor]:
    def call(a: Any, axis: Axis = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Tensor:
        t = as_tensor(a)
        if t.dtype.kind not in "fc":
            return API[name](t, axis, keepdims, initial, where)
        last = -np.inf if name == "max" else np.inf
        fill = complex(last, last) if t.dtype.kind == "c" else last
        out = API[name](_without_nan(t, fill), axis, keepdims, initial, where)
        return out if initial is not None else API["where"](all(API["isnan"](t), axis, keepdims), np.nan, out)
    return public(function)(called(
        call, f"nan{name}", f"The {name} of the elements that are not nan; nan if there are none."))


nanmax = _nan_extreme("max", np.nanmax)
nanmin = _nan_extreme("min", np.nanmin)


def _nan_place(name: str, function: Callable) -> Callable[..., Tensor]:
    def call(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        t = as_tensor(a)
        return API[name](_without_nan(t, -np.inf if name == "argmax" else np.inf), axis, keepdims=keepdims)
    return public(function)(called(
        call, f"nan{name}", f"As {name}, but a nan counts as missing; 0 if there are only nans."))


nanargmax = _nan_place("argmax", np.nanargmax)
nanargmin = _nan_place("argmin", np.nanargmin)


@public(np.nancumsum)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The running sum; nans count as 0."""
    return cumsum(_without_nan(as_tensor(a), 0), axis, dtype)


@public(np.nancumprod)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The running product; nans count as 1."""
    return cumprod(_without_nan(as_tensor(a), 1), axis, dtype)
