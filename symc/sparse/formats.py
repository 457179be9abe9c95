"""The formats: rows (csr) or columns (csc) one after another, and lists of places (coo); SciPy's matrices as these."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.op import lookup
from symc.ir.ops.sparse import check_pattern, rows_of
from symc.ir.record import dataclass
from symc.sparse.value import CONVERSIONS, FORMATS, SparseValue, checked, extent_of, is_scipy, of_shape
from symc.tensors.convert import as_tensor
from symc.tensors.public import API
from symc.tensors.pytree import FOREIGN
from symc.tensors.tensor import Tensor


@dataclass(frozen=True, eq=False)
class _Compressed(SparseValue):
    """Rows (csr) or columns (csc) one after another."""

    indptr: Any
    indices: Any
    data: Any
    extent: Any
    single: Any = None
    across: ClassVar[bool]  # what is stored as rows are columns
    _index_names = ("indptr", "indices")
    __repr__ = SparseValue.__repr__

    @classmethod
    def _made(cls, fields: dict[str, Any]) -> Any:
        n, m = fields["extent"].value.shape[:2]
        fields["indptr"] = of_shape(fields["indptr"], ((m if cls.across else n) + 1,), "indptr")
        return super()._made(fields)

    def coordinates(self) -> tuple[Tensor, Tensor]:
        major = Tensor(rows_of(self.indptr.value, self.indices.value))
        minor = checked(self.indices, self.sizes[0 if self.across else 1])
        return (minor, major) if self.across else (major, minor)

    def _times(self, data: Tensor, x: Tensor, transposed: bool) -> Tensor:
        operands = (self.indptr.value, self.indices.value, data.value, x.value)
        if self.across != transposed:
            return Tensor(lookup("spmm_across")(*operands, size=self.sizes[1 if transposed else 0]))
        return Tensor(lookup("spmm")(*operands))

    def transpose(self) -> Any:
        return _TRANSPOSED[self.format](self.indptr, self.indices, self.data, extent_of(self.sizes[::-1]), self.single)


class CSR(_Compressed):
    """Row r has the entries from ``indptr[r]`` up to ``indptr[r + 1]``."""

    format = "csr"
    across = False


class CSC(_Compressed):
    """Column c has the entries from ``indptr[c]`` up to ``indptr[c + 1]``."""

    format = "csc"
    across = True


_TRANSPOSED = {"csr": CSC, "csc": CSR}


@dataclass(frozen=True, eq=False)
class COO(SparseValue):
    """Entry k is at ``row[k]``, ``col[k]``."""

    row: Any
    col: Any
    data: Any
    extent: Any
    single: Any = None
    format = "coo"
    _index_names = ("row", "col")
    __repr__ = SparseValue.__repr__

    def coordinates(self) -> tuple[Tensor, Tensor]:
        n, m = self.sizes
        return checked(self.row, n), checked(self.col, m)

    def _times(self, data: Tensor, x: Tensor, transposed: bool) -> Tensor:
        row, col = self.coordinates()[::-1 if transposed else 1]
        out = API["zeros"]((self.shape[1 if transposed else 0], x.shape[1]), data.dtype)
        return out.at[row].add(API["getitem"](data, (slice(None), None)) * API["take"](x, col, 0))

    def transpose(self) -> Any:
        return COO(self.col, self.row, self.data, extent_of(self.sizes[::-1]), self.single)


CLASSES: dict[str, Any] = {"csr": CSR, "csc": CSC, "coo": COO}


def adopted(item: Any) -> Any:
    """A record of the arrays of a matrix of SciPy's, each place once; other things as they are."""
    if not is_scipy(item):
        return item
    if item.ndim != 2:
        raise ShapeError(f"a sparse value has two axes, not {item.ndim}")
    if item.format not in FORMATS:
        raise InputError(f"the sparse format {item.format!r} is not taken", help="A.tocsr()")
    if not item.has_canonical_format:
        item = item.copy()
        item.sum_duplicates()
    extent = np.empty((*item.shape, 0), np.bool_)
    if item.format == "coo":
        return COO(item.row, item.col, item.data, extent, ())
    n = int(item.indptr[-1])
    return CLASSES[item.format](item.indptr, item.indices[:n], item.data[:n], extent, ())


def constant(item: Any) -> Any:
    """A sparse value of a matrix of SciPy's, whose arrays are constants of the graph."""
    given = adopted(item if item.format in FORMATS else item.tocsr())
    fields = {k: as_tensor(np.array(getattr(given, k))) for k in (*given._index_names, "data", "extent")}
    held(given.data.dtype)
    if given.format != "coo":
        check_pattern(given.indptr, given.indices, item.shape[0 if given.across else 1])
    return type(given)(**fields, single=())


def held(dtype: np.dtype) -> None:
    """Raise DTypeError for numbers that SciPy's matrices do not hold."""
    if dtype == np.float16:
        raise DTypeError("float16 is not taken in sparse values, as SciPy's take none", help="use float32")


FOREIGN["tocoo"] = adopted
CONVERSIONS.update(adopted=adopted, constant=constant)
