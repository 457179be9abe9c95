"""Functions of rows, as methods: reductions, sums along rows, order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import ShapeError
from symc.ir.dim import known_different
from symc.ir.ops.ensure import ensured
from symc.ir.record import replace
from symc.numpy_api.promotion import rows as described
from symc.numpy_api.selection import must_hold
from symc.segments import rows
from symc.tensors.convert import as_tensor
from symc.tensors.deferred import Recorded
from symc.tensors.public import API, located
from symc.tensors.tensor import Tensor


class RowFunctions(Recorded):
    """Functions of the rows of a ragged value."""

    values: Any
    offsets: Any

    # --- what is known of it ------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple:
        return (self.offsets.shape[0] - 1, None, *self.values.shape[1:])

    @property
    def ndim(self) -> int:
        return self.values.ndim + 1

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def starts(self) -> Tensor:
        """The place at which each row begins, checked."""
        return rows.starts_and_ends(self.offsets, self.values.shape[0])[0]

    @property
    def ends(self) -> Tensor:
        """The place at which each row ends, checked."""
        return rows.starts_and_ends(self.offsets, self.values.shape[0])[1]

    @property
    @located
    def lengths(self) -> Tensor:
        """The number of values of each row."""
        return self.ends - self.starts

    @property
    @located
    def row_ids(self) -> Tensor:
        """The row of each value."""
        return rows.row_of(self.ends, self.values.shape[0])

    @property
    @located
    def positions(self) -> Tensor:
        """The place of each value in its row."""
        return API["arange"](self.values.shape[0]) - API["take"](self.starts, self.row_ids)

    @located
    def with_values(self, values: Any) -> Any:
        """The same rows with other values, as many."""
        v = as_tensor(values)
        n = self.values.value.shape[:1]
        if not v.ndim or known_different(v.value.shape[:1], n):
            raise ShapeError(f"{self!r} has {n[0]} values", values=described([v]))
        return replace(self, values=Tensor(ensured(v.value, (*n, *v.value.shape[1:]))))  # type: ignore[type-var]

    # --- functions ----------------------------------------------------------------------------------------------------

    def _reduced(self, name: str, axis: Any, keepdims: bool, of_rows: Callable[[], Tensor], **how: Any) -> Any:
        """A reduction of all values, of each row (``of_rows``), or within values."""
        if axis is None:
            return API[name](self.values, keepdims=keepdims, **how)
        at = axis + self.ndim if isinstance(axis, int | np.integer) and axis < 0 else axis
        if at == 1:
            out = of_rows()
            return API["expand_dims"](out, 1) if keepdims else out
        if not isinstance(at, int | np.integer) or not 2 <= at < self.ndim:
            raise ShapeError(f"{name} of {self!r} along axis {axis!r} is not defined",
                             help="axis=1 is each row, None all values; r.to_padded(fill) is an array")
        return self.with_values(API[name](self.values, axis=at - 1, keepdims=keepdims, **how))

    @property
    def _rows(self) -> tuple[Tensor, Any]:
        return self.row_ids, self.shape[0]

    @located
    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """The sum of all values, or of each row (``axis=1``)."""
        return self._reduced("sum", axis, keepdims, lambda: rows.added(self.values, *self._rows, dtype), dtype=dtype)

    @located
    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """The mean of all values, or of each row, which is nan of none."""
        def of_rows() -> Tensor:
            x = self.values.astype(API["mean"](self.values, 0, dtype=dtype).dtype)
            count = API["reshape"](self.lengths.astype(API["real"](x).dtype), (-1, *[1] * (x.ndim - 1)))
            return rows.added(x, *self._rows) / count

        return self._reduced("mean", axis, keepdims, of_rows, dtype=dtype)

    def _extreme(self, name: str, axis: Any, keepdims: bool, initial: Any) -> Any:
        def of_rows() -> Tensor:
            start = rows.least(self.dtype, name == "min") if initial is None else initial
            found = rows.extreme(name, self.values, *self._rows, start)
            if initial is not None:
                return found
            some = must_hold(API["greater"](self.lengths, 0), f"{name} without initial is of rows with values")
            return API["take"](found, API["arange"](self.shape[0]) + some, 0)

        return self._reduced(name, axis, keepdims, of_rows, **({} if initial is None else {"initial": initial}))

    @located
    def max(self, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
        """The greatest of all values, or of each row, and of ``initial``, which a row without values needs."""
        return self._extreme("max", axis, keepdims, initial)

    @located
    def min(self, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
        """The least of all values, or of each row, and of ``initial``, which a row without values needs."""
        return self._extreme("min", axis, keepdims, initial)

    amax, amin = max, min

    def _place_of(self, name: str, axis: Any, keepdims: bool) -> Any:
        def of_rows() -> Tensor:
            best = API["take"](getattr(self, name)(axis=1), self.row_ids, 0)
            here = API["equal"](self.values, best) | API["not_equal"](self.values, self.values)  # or nan
            at = API["reshape"](self.positions, (-1, *[1] * (self.values.ndim - 1)))
            most = rows.least(at.dtype, True)
            return rows.extreme("min", API["where"](here, at, most), *self._rows, most)

        return self._reduced(f"arg{name}", axis, keepdims, of_rows)

    @located
    def argmax(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The first place of the greatest of all values, or in each row (``axis=1``), which must have values."""
        return self._place_of("max", axis, keepdims)

    @located
    def argmin(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The first place of the least of all values, or in each row (``axis=1``), which must have values."""
        return self._place_of("min", axis, keepdims)

    @located
    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        """True if one of all values, or of each row, is not 0."""
        true = API["not_equal"](self.values, 0)
        return self._reduced("any", axis, keepdims, lambda: rows.added(true, *self._rows) > 0)

    @located
    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        """True if none of all values, or of each row, is 0."""
        false = API["equal"](self.values, 0)
        return self._reduced("all", axis, keepdims, lambda: API["equal"](rows.added(false, *self._rows), 0))

    @located
    def logsumexp(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The logarithm of the sum of exponentials of all values, or of each row."""
        def of_rows() -> Tensor:
            above, top = rows.shifted(self.values, *self._rows, True)
            return API["log"](rows.added(above, *self._rows)) + top

        return self._reduced("logsumexp", axis, keepdims, of_rows)

    def _along_rows(self, name: str, axis: Any) -> None:
        if axis not in (1, 1 - self.ndim):
            raise ShapeError(f"{name} of {self!r} along axis {axis!r} is not defined", help="axis=1 is each row")

    @located
    def softmax(self, axis: Any = 1) -> Any:
        """The softmax of each row."""
        self._along_rows("softmax", axis)
        above, _ = rows.shifted(self.values, *self._rows, False)
        return self.with_values(above / API["take"](rows.added(above, *self._rows), self.row_ids, 0))

    @located
    def log_softmax(self, axis: Any = 1) -> Any:
        """The logarithm of the softmax of each row."""
        self._along_rows("log_softmax", axis)
        above, top = rows.shifted(self.values, *self._rows, True)
        less = API["log"](rows.added(above, *self._rows))  # not its sum with what may be larger, which would round it
        return self.with_values(self.values - API["take"](top, self.row_ids, 0) - API["take"](less, self.row_ids, 0))

    @located
    def cumsum(self, axis: Any = 1, dtype: Any = None) -> Any:
        """The sums from the beginning of each row."""
        self._along_rows("cumsum", axis)
        return self.with_values(rows.running(self.values, self.row_ids, self.starts, dtype))

    @located
    def argsort(self, axis: Any = 1) -> Any:
        """The places in its row of the values of each row, sorted; equal ones as they come."""
        self._along_rows("argsort", axis)
        return self.with_values(API["take"](self.positions, rows.order(self.values, self.row_ids)))

    @located
    def sort(self, axis: Any = 1) -> Any:
        """The values of each row, sorted."""
        self._along_rows("sort", axis)
        return self.with_values(API["take"](self.values, rows.order(self.values, self.row_ids)))
