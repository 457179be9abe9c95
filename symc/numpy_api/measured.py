"""Functions whose results have sizes that are data: what masks choose, distinct elements, repetitions by data.

A size is computed before what has it (``symc.driver.measured``); with it, everything here is made of ordinary ops.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from symc.errors import ShapeError
from symc.numpy_api.indexing import coordinates, places
from symc.numpy_api.manipulation import normal_axis
from symc.numpy_api.promotion import rows, same_dtype
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, public
from symc.tensors.tensor import Tensor


def _chosen(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of a vector where a mask of its length holds."""
    return API["take"](x, places(mask), 0)


def _truth(a: Any) -> Tensor:
    t = as_tensor(a)
    return t if t.dtype.kind == "b" else API["not_equal"](t, 0)


@public(np.nonzero)
def nonzero(a: Any) -> tuple[Tensor, ...]:
    """The places of the elements that are not zero, one vector an axis: as many as there are."""
    t = _truth(a)
    if not t.ndim:
        raise ShapeError("nonzero of a scalar is not defined", values=rows([t]), help="sc.atleast_1d(x)")
    return tuple(coordinates(t))


@public(np.flatnonzero)
def flatnonzero(a: Any) -> Tensor:
    """The places of the elements of the raveled value that are not zero."""
    return places(API["ravel"](_truth(a)))


@public(np.argwhere)
def argwhere(a: Any) -> Tensor:
    """The places of the elements that are not zero, one row an element."""
    found = API["stack"](list(nonzero(API["atleast_1d"](a))), -1)
    return found if as_tensor(a).ndim else API["getitem"](found, (slice(None), slice(0)))


@public(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    """The slices of ``a`` along ``axis`` (None: raveled) where the condition, a vector, holds."""
    t, c = as_tensor(a), _truth(condition)
    if c.ndim != 1:
        raise ShapeError("compress: the condition must be a vector", values=rows([c]))
    if axis is None:
        t, axis = API["ravel"](t), 0
    return API["take"](t, places(c), normal_axis(axis, t.ndim, "compress", t))


@public(np.extract)
def extract(condition: Any, arr: Any) -> Tensor:
    """The elements of the raveled value where the raveled condition is not zero."""
    return API["take"](API["ravel"](arr), places(API["ravel"](_truth(condition))))


@public(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb") -> Tensor:
    """A vector without the zeros at its front ("f") and back ("b")."""
    t = as_tensor(filt)
    if t.ndim != 1:
        raise ShapeError("trim_zeros: a vector is needed", values=rows([t]))
    if not set(trim.lower()) <= set("fb"):
        raise ShapeError(f"trim_zeros: trim is made of 'f' and 'b', not {trim!r}")
    place = API["arange"](t.shape[0])
    there, n = _truth(t), as_tensor(t.shape[0])
    first = API["min"](API["where"](there, place, n), initial=n) if "f" in trim.lower() else None
    last = API["max"](API["where"](there, place + 1, 0), initial=0) if "b" in trim.lower() else None
    return API["getitem"](t, slice(first, last))


# --- sets -------------------------------------------------------------------------------------------------------------


class UniqueAllResult(NamedTuple):
    """The results of ``unique_all``."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The results of ``unique_counts``."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The results of ``unique_inverse``."""

    values: Tensor
    inverse_indices: Tensor


class _Distinct:
    """The distinct elements of a value, in order. ``equal_nan``: whether nans are one."""

    def __init__(self, ar: Any, equal_nan: bool, places_too: bool):
        self.x = as_tensor(ar)
        flat = API["ravel"](self.x)
        self.order = API["argsort"](flat, stable=True) if places_too else None
        self._sorted = API["sort"](flat) if self.order is None else API["take"](flat, self.order)
        self.n = flat.shape[0]
        before = API["getitem"](API["concatenate"]([API["zeros"](1, flat.dtype), self._sorted]), slice(None, -1))
        new = API["not_equal"](self._sorted, before)
        if equal_nan and flat.dtype.kind in "fc":
            nan = API["isnan"]
            new = API["logical_and"](new, API["logical_not"](API["logical_and"](nan(self._sorted), nan(before))))
        self._new = API["logical_or"](new, API["equal"](API["arange"](self.n), 0))
        self._places = places(self._new)

    @property
    def values(self) -> Tensor:
        return API["take"](self._sorted, self._places)

    @property
    def indices(self) -> Tensor:
        """The first place of each."""
        return API["take"](self.order, self._places)

    @property
    def inverse(self) -> Tensor:
        """The number of each element among them."""
        group = API["cumsum"](API["astype"](self._new, "int64")) - 1
        flat = API["zeros"](self.n, "int64").at[self.order].set(group)
        return API["reshape"](flat, self.x.shape)

    @property
    def counts(self) -> Tensor:
        """The count of each."""
        ends = API["concatenate"]([API["getitem"](self._places, slice(1, None)), API["reshape"](self.n, 1)])
        return API["subtract"](API["getitem"](ends, slice(None, self._places.shape[0])), self._places)


@public(np.unique)
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, sorted: bool = True) -> Any:
    """The distinct elements in order; with them where each is first, which one each element is, how often each is."""
    t = as_tensor(ar)
    if axis is not None and t.ndim != 1:
        raise ShapeError("unique: distinct slices along an axis are not built; elements are", values=rows([t]),
                         help="sc.unique(x) compares elements")
    if axis is not None:
        normal_axis(axis, t.ndim, "unique", t)
    found = _Distinct(t, equal_nan, return_index or return_inverse)
    asked = (("indices", return_index), ("inverse", return_inverse), ("counts", return_counts))
    more = [getattr(found, name) for name, wanted in asked if wanted]
    return (found.values, *more) if more else found.values


@public(np.unique_all)
def unique_all(x: Any) -> UniqueAllResult:
    """The distinct elements (every nan is one), where each is first, which one each element is, and how often."""
    d = _Distinct(x, False, True)
    return UniqueAllResult(d.values, d.indices, d.inverse, d.counts)


@public(np.unique_counts)
def unique_counts(x: Any) -> UniqueCountsResult:
    """The distinct elements (every nan is one), and how often each is there."""
    d = _Distinct(x, False, False)
    return UniqueCountsResult(d.values, d.counts)


@public(np.unique_inverse)
def unique_inverse(x: Any) -> UniqueInverseResult:
    """The distinct elements (every nan is one), and which of them each element is."""
    d = _Distinct(x, False, True)
    return UniqueInverseResult(d.values, d.inverse)


@public(np.unique_values)
def unique_values(x: Any) -> Tensor:
    """The distinct elements; every nan is one."""
    return _Distinct(x, False, False).values


@public(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Tensor:
    """The distinct elements of two values together."""
    return unique(API["concatenate"]([ar1, ar2], axis=None))


@public(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that both values have, and with ``return_indices`` where each is first in both."""
    a, b = same_dtype([API["ravel"](ar1), API["ravel"](ar2)], "intersect1d")
    first, second = _Distinct(a, True, True), _Distinct(b, True, True)
    common = API["isin"](first.values, second.values)
    if not return_indices:
        return _chosen(first.values, common)
    mirrored = API["isin"](second.values, first.values)
    return (_chosen(first.values, common), _chosen(first.indices, common), _chosen(second.indices, mirrored))


@public(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The distinct elements of the first value that the second has not; as they stand with ``assume_unique``."""
    a = API["ravel"](ar1) if assume_unique else unique(ar1)
    return _chosen(a, API["isin"](a, ar2, invert=True))


@public(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The distinct elements that one of two values has and the other has not."""
    return API["sort"](API["concatenate"]([setdiff1d(ar1, ar2), setdiff1d(ar2, ar1)]))
