"""Ragged arrays: rows of any lengths, as a call takes and gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.tensors.callsite import caller


class RaggedArray(Sequence):
    """Rows of any lengths: row k is ``values[offsets[k] : offsets[k + 1]]``. A sequence of arrays."""

    __slots__ = ("offsets", "values")
    __symc_ragged__ = True

    def __init__(self, values: Any, offsets: Any):
        self.values, given = np.asarray(values), np.asarray(offsets)
        self.offsets = given.astype(np.int64)
        if self.values.ndim < 1 or given.ndim != 1 or given.dtype.kind not in "iu":
            raise InputError(f"a ragged array has values with an axis and a vector of integer offsets, not "
                             f"{values!r:.40} and {offsets!r:.40}", where=[caller()])
        if not len(given) or given[0] != 0 or (np.diff(self.offsets) < 0).any() or given[-1] != len(self.values):
            raise InputError(f"offsets start with 0, do not decrease, and end with the number of values, which is "
                             f"{len(self.values)}; not {given.tolist()!r:.60}", where=[caller()])

    @classmethod
    def from_list(cls, rows: Sequence[Any], what: str = "rows") -> RaggedArray:
        """Ragged array of arrays that differ in length alone. Raises InputError for others."""
        found = [np.asarray(r) for r in rows]
        for k, r in enumerate(found):
            if r.dtype.kind not in "biufc" or not r.ndim:
                raise InputError(f"{what}: row {k} is no array of numbers: {rows[k]!r:.40}", where=[caller()])
        full = [r for r in found if r.size] or found
        for k, r in enumerate(found):
            if r.shape[1:] != full[0].shape[1:] and (r.size or r.ndim > 1):
                raise ShapeError(f"{what}: row {k} is of shape {r.shape}, others are {('*', *full[0].shape[1:])}",
                                 where=[caller()])
        values = np.concatenate(full) if full else np.empty(0)
        return cls(values, np.cumsum([0, *map(len, found)], dtype=np.int64))

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, k: Any) -> Any:
        """A row; of a slice or some numbers those rows."""
        if isinstance(k, slice) or np.ndim(k):
            return RaggedArray.from_list([self[i] for i in np.arange(len(self))[k]])
        if not -len(self) <= k < len(self):
            raise IndexError(f"there are {len(self)} rows, not one with number {k}")
        k %= len(self)
        return self.values[self.offsets[k] : self.offsets[k + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[k] for k in range(len(self)))

    def tolist(self) -> list:
        return [row.tolist() for row in self]

    def __repr__(self) -> str:
        return f"RaggedArray({self.tolist()!r:.70}, {self.dtype})"

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise InputError("a ragged array has no shape of its own", where=[caller()],
                         help="its .values are an array; sc.ragged.input takes it in a call, and r.to_padded() pads")
