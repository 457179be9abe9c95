"""Functions whose results have sizes that are data: what masks choose, distinct elements, repetitions by data.

A size is computed before what has it (``symc.driver.measured``); with it, everything here is made of ordinary ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symc.errors import ShapeError
from symc.numpy_api.manipulation import along, normal_axis
from symc.numpy_api.parsed_index import coordinates, places
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
    c = _truth(condition)
    if c.ndim != 1:
        raise ShapeError("compress: the condition must be a vector", values=rows([c]))
    t, axis = along(a, axis, "compress")
    return API["take"](t, places(c), axis)


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
    if not isinstance(trim, str) or not set(trim.lower()) <= set("fb"):
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
    """The distinct elements, or slices, among sorted ones. ``order``: where each was, if anybody asks; ``differs``:
    which are not equal to those before them; ``shape``: that of the numbers that say which one each is."""

    def __init__(self, ordered: Tensor, order: Tensor | None, differs: Tensor, shape: Any):
        self._sorted, self.order, self._shape, self.n = ordered, order, shape, ordered.shape[0]
        self._new = API["logical_or"](differs, API["equal"](API["arange"](self.n), 0))
        self._places = places(self._new)

    @property
    def values(self) -> Tensor:
        return API["take"](self._sorted, self._places, 0)

    @property
    def indices(self) -> Tensor:
        """The first place of each."""
        return API["take"](self.order, self._places)

    @property
    def inverse(self) -> Tensor:
        """The number of each element among them."""
        group = API["cumsum"](API["astype"](self._new, "int64")) - 1
        flat = API["zeros"](self.n, "int64").at[self.order].set(group)
        return API["reshape"](flat, self._shape)

    @property
    def counts(self) -> Tensor:
        """The count of each."""
        ends = API["concatenate"]([API["getitem"](self._places, slice(1, None)), API["reshape"](self.n, 1)])
        return API["subtract"](API["getitem"](ends, slice(None, self._places.shape[0])), self._places)


def _before(ordered: Tensor) -> Tensor:
    """Each element's (or slice's) neighbour, and zeros for the first, which has none."""
    first = API["zeros"]((1, *ordered.shape[1:]), ordered.dtype)
    return API["getitem"](API["concatenate"]([first, ordered]), slice(None, -1))


def _elements(ar: Any, equal_nan: bool, places_too: bool) -> _Distinct:
    """The distinct elements of a value. ``equal_nan``: whether nans are one."""
    x = as_tensor(ar)
    flat = API["ravel"](x)
    order = API["argsort"](flat, stable=True) if places_too else None
    ordered = API["sort"](flat) if order is None else API["take"](flat, order)
    before, nan = _before(ordered), API["isnan"]
    differs = API["not_equal"](ordered, before)
    if equal_nan and flat.dtype.kind in "fc":
        differs = API["logical_and"](differs, API["logical_not"](API["logical_and"](nan(ordered), nan(before))))
    return _Distinct(ordered, order, differs, x.shape)


def _slices(t: Tensor, axis: int) -> _Distinct:
    """The distinct slices along an axis, in the order of their first elements, then their second, and so on."""
    front = API["moveaxis"](t, axis, 0)
    table = API["reshape"](front, (t.shape[axis], _known_product(front.shape[1:], t)))
    order = API["arange"](t.shape[axis])
    for k in reversed(range(int(table.shape[1]))):
        column = API["take"](API["getitem"](table, (slice(None), k)), order)
        order = API["take"](order, API["argsort"](column, stable=True))
    ordered = API["take"](table, order, 0)
    differs = API["any"](API["not_equal"](ordered, _before(ordered)), 1)
    return _Distinct(API["take"](front, order, 0), order, differs, (t.shape[axis],))


def _known_product(sizes: Sequence[Any], t: Tensor) -> int:
    """The number of elements of slices. Raises ShapeError where a call decides."""
    if not all(isinstance(n, int) for n in sizes):
        raise ShapeError("unique: how many elements a slice has must be a number", values=rows([t]),
                         help='declare the other axes so: shape=("n", 3)')
    return math.prod(sizes)


@public(np.unique)
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, sorted: bool = True) -> Any:
    """The distinct elements in order; with them where each is first, which one each element is, how often each is.

    With ``axis`` the distinct slices along it, of which two with a nan are never equal.
    """
    t = as_tensor(ar)
    if axis is not None:
        axis = normal_axis(axis, t.ndim, "unique", t)
    if axis is None or t.ndim == 1:
        found = _elements(t, equal_nan, return_index or return_inverse)
    else:
        found = _slices(t, axis)
    asked = (("indices", return_index), ("inverse", return_inverse), ("counts", return_counts))
    more = [getattr(found, name) for name, wanted in asked if wanted]
    values = found.values if axis is None else API["moveaxis"](found.values, 0, axis)
    return (values, *more) if more else values


@public(np.unique_all)
def unique_all(x: Any) -> UniqueAllResult:
    """The distinct elements (every nan is one), where each is first, which one each element is, and how often."""
    d = _elements(x, False, True)
    return UniqueAllResult(d.values, d.indices, d.inverse, d.counts)


@public(np.unique_counts)
def unique_counts(x: Any) -> UniqueCountsResult:
    """The distinct elements (every nan is one), and how often each is there."""
    d = _elements(x, False, False)
    return UniqueCountsResult(d.values, d.counts)


@public(np.unique_inverse)
def unique_inverse(x: Any) -> UniqueInverseResult:
    """The distinct elements (every nan is one), and which of them each element is."""
    d = _elements(x, False, True)
    return UniqueInverseResult(d.values, d.inverse)


@public(np.unique_values)
def unique_values(x: Any) -> Tensor:
    """The distinct elements; every nan is one."""
    return _elements(x, False, False).values


@public(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Tensor:
    """The distinct elements of two values together."""
    return unique(API["concatenate"]([ar1, ar2], axis=None))


@public(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that both values have, and with ``return_indices`` where each is first in both."""
    a, b = same_dtype([API["ravel"](ar1), API["ravel"](ar2)], "intersect1d")
    if not return_indices:
        both = API["sort"](API["concatenate"]([a, b] if assume_unique else [unique(a), unique(b)]))
        rest, after = API["getitem"](both, slice(None, -1)), API["getitem"](both, slice(1, None))
        return _chosen(rest, API["equal"](rest, after))
    first, second = _elements(a, True, True), _elements(b, True, True)
    common, mirrored = API["isin"](first.values, second.values), API["isin"](second.values, first.values)
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
