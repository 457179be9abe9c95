"""Functions of rows: what ``symc.segments.value`` says of values that lie one after the other, by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.op import lookup
from symc.numpy_api.promotion import rows as described
from symc.numpy_api.selection import must_hold
from symc.tensors.constants import known_array
from symc.tensors.public import API
from symc.tensors.tensor import Tensor
from symc.transforms.autodiff import stop_gradient
from symc.transforms.control import scan


def least(dtype: np.dtype, most: bool = False) -> Any:
    """The maximum (the minimum with ``most``) of nothing."""
    if dtype.kind == "f":
        return np.inf if most else -np.inf
    if dtype.kind == "b":
        return most
    limits = np.iinfo(dtype)
    return limits.max if most else limits.min


def starts_and_ends(offsets: Tensor, count: Any) -> tuple[Tensor, Tensor]:
    """The places at which each row begins and ends, after a check of the offsets."""
    law = "the offsets of a ragged value start with 0, do not decrease, and end with the number of its values"
    n = offsets.shape[0]
    k = API["arange"](n)
    before = API["concatenate"]([API["zeros"](1, "int64"), offsets[:-1]])
    good = API["greater_equal"](offsets, before)
    good &= API["logical_or"](API["not_equal"](k, 0), API["equal"](offsets, 0))
    good &= API["logical_or"](API["not_equal"](k, n - 1), API["equal"](offsets, count))
    checked = offsets + must_hold(good, law) if known_array(offsets.value) is None else offsets
    return checked[:-1], checked[1:]


def row_of(ends: Tensor, count: Any) -> Tensor:
    """The row of each of ``count`` values: as many as end before it."""
    ended = API["zeros"](count + 1, "int64").at[ends].add(1)
    found = API["cumsum"](ended)[:count]
    return Tensor(lookup("check_index")(found.value, size=ends.value.shape[0]))


def added(x: Tensor, row: Tensor, n: Any, dtype: Any = None) -> Tensor:
    """The sum of each row."""
    dtype = API["sum"](x, 0, dtype=dtype).dtype
    return API["zeros"]((n, *x.shape[1:]), dtype).at[row].add(API["astype"](x, dtype))


def extreme(name: str, x: Tensor, row: Tensor, n: Any, initial: Any) -> Tensor:
    """The "max" or "min" of each row and ``initial``."""
    if x.dtype.kind not in "biuf":
        raise DTypeError(f"{name} of rows is not defined for {x.dtype}", values=described([x]))
    start = API["full"]((n, *x.shape[1:]), initial, dtype=x.dtype)
    return getattr(start.at[row], name)(x)


def shifted(x: Tensor, row: Tensor, n: Any, finite: bool) -> tuple[Tensor, Tensor]:
    """The exponentials of values less the maximum of their row, and these maxima; with ``finite`` 0 for others."""
    x = x if x.dtype.kind == "f" else API["astype"](x, API["exp"](x).dtype)
    top = stop_gradient(extreme("max", x, row, n, -np.inf))
    top = API["where"](API["isfinite"](top), top, 0) if finite else top
    return API["exp"](x - API["take"](top, row, 0)), top


def running(x: Tensor, row: Tensor, starts: Tensor, dtype: Any = None) -> Tensor:
    """Sums from the beginning of each row. Integers: differences of sums from the beginning of all; numbers that round:
    a loop, as nothing of one row may come into the next."""
    dtype = API["cumsum"](x, 0, dtype=dtype).dtype
    x = API["astype"](x, dtype)
    if dtype.kind in "iu":
        total = API["cumsum"](x, 0)
        before = API["concatenate"]([API["zeros"]((1, *x.shape[1:]), dtype), total])
        return total - API["take"](API["take"](before, starts, 0), row, 0)
    before = API["concatenate"]([API["full"](1, -1, "int64"), row])[:-1]
    same = API["equal"](row, before)
    step: Any = lambda sum_, at: (API["where"](at[1], sum_, 0) + at[0],) * 2
    return scan(step, API["zeros"](x.shape[1:], dtype), (x, same))[1]


def order(x: Tensor, row: Tensor) -> Tensor:
    """The places of values in the order of rows, and sorted in each."""
    if x.ndim != 1:
        raise ShapeError("rows of numbers are sorted, not of arrays", values=described([x]))
    by_value = API["argsort"](x, stable=True)
    return API["take"](by_value, API["argsort"](API["take"](row, by_value), stable=True))
