"""Between formats, and results whose number of entries is data."""

from __future__ import annotations

from typing import Any

from symc.errors import ShapeError
from symc.ir.dim import known_different
from symc.ir.record import replace
from symc.numpy_api.parsed_index import places
from symc.sparse.formats import CLASSES, COO
from symc.sparse.value import CONVERSIONS, SparseValue, of_shape
from symc.tensors.public import API
from symc.tensors.tensor import Tensor


def _taken(a: Any, order: Tensor, data: Any = None) -> COO:
    """Some of the entries, in an order."""
    row, col = a.coordinates()
    data = API["take"](a.data, order) if data is None else data
    return COO(API["take"](row, order), API["take"](col, order), data, a.extent, a.single)


def _keys(a: Any, by_rows: bool = True) -> Tensor:
    """One number for each entry, in the order of rows (or columns) and then of columns (or rows)."""
    row, col = [API["astype"](i, "int64") for i in a.coordinates()]
    n, m = a.shape
    return row * m + col if by_rows else col * n + row


def _sorted(a: Any, by_rows: bool) -> tuple[Tensor, COO]:
    """The entries in order, with their keys."""
    keys = _keys(a, by_rows)
    order = API["argsort"](keys, stable=True)
    return API["take"](keys, order), _taken(a, order)


def _packed(a: COO, format: str) -> Any:
    """Entries in the order of a compressed format, in that format."""
    across = CLASSES[format].across
    major, minor = (a.col, a.row) if across else (a.row, a.col)
    size = a.shape[1 if across else 0]
    counts = API["zeros"](size + 1, "int64").at[major + 1].add(1)
    return CLASSES[format](API["cumsum"](counts), API["astype"](minor, "int64"), a.data, a.extent, a.single)


def converted(a: Any, format: str) -> Any:
    """Matrix in another format: as COO in the same order, as CSR or CSC with sorted entries."""
    if format == "coo":
        row, col = a.coordinates()
        return COO(row, col, a.data, a.extent, a.single)
    return _packed(_sorted(a, not CLASSES[format].across)[1], format)


def distinct(a: Any) -> Any:
    """Each place once, in order."""
    by_rows = a.format != "csc"
    keys, whole = _sorted(a, by_rows)
    before = API["concatenate"]([API["full"](1, -1, "int64"), keys])[:-1]
    new = API["not_equal"](keys, before)
    group = API["cumsum"](API["astype"](new, "int64")) - 1
    first = places(new)
    data = API["zeros"](first.shape[0], a.dtype).at[group].add(whole.data)
    out = replace(_taken(whole, first, data), single=())
    return out if a.format == "coo" else _packed(out, a.format)


def _chosen(a: Any, mask: Tensor) -> Any:
    whole = _taken(a, places(mask))
    return whole if a.format == "coo" else _packed(whole, a.format)


def nonzeros(a: Any) -> Any:
    """The entries that are not 0."""
    whole = a.sum_duplicates()
    return _chosen(whole, API["not_equal"](whole.data, 0))


def _same_shape(a: Any, b: Any) -> Any:
    """``b`` of the shape of ``a``."""
    if known_different(a.sizes, b.sizes):
        raise ShapeError(f"{a!r} and {b!r} differ in shape", values=[a.data.describe(), b.data.describe()])
    row, col = b.coordinates()
    return COO(row, col, b.data, of_shape(b.extent, (*a.sizes, 0), "the second"), b.single)


def added(a: Any, b: Any) -> Any:
    """The sum of two values of any patterns, in the format of the first."""
    b = _same_shape(a, b)
    row, col, data = [API["concatenate"]([x, y]) for x, y in
                      zip((*a.coordinates(), a.data), (b.row, b.col, b.data), strict=True)]
    whole = distinct(COO(row, col, data, a.extent))
    return whole if a.format == "coo" else _packed(_sorted(whole, False)[1] if a.format == "csc" else whole, a.format)


def found_in(b: Any, a: Any) -> Tensor:
    """The elements of ``b`` at the places of ``a``."""
    keys, whole = _sorted(distinct(_same_shape(a, b)), True)
    mine, end = _keys(a), API["full"](1, -1, "int64")
    at = API["searchsorted"](keys, mine)
    hit = API["equal"](API["take"](API["concatenate"]([keys, end]), at), mine)
    data = API["concatenate"]([whole.data, API["zeros"](1, b.dtype)])
    return API["where"](hit, API["take"](data, at), 0)


def product(a: Any, b: Any) -> Any:
    """The product of two sparse values, as CSR: each entry of the first meets a row of the second."""
    b = b.tocsr()
    if known_different(a.sizes[1:], b.sizes[:1]):
        raise ShapeError(f"{a!r} @ {b!r}: the inner sizes differ", values=[a.data.describe(), b.data.describe()])
    row, col = a.coordinates()
    first = API["take"](b.indptr, col)
    counts = API["take"](b.indptr, col + 1) - first
    entry = API["repeat"](API["arange"](a.nnz), counts)
    within = API["arange"](entry.shape[0]) - API["take"](API["cumsum"](counts) - counts, entry)
    other = API["take"](first, entry) + within
    data = API["multiply"](API["take"](a.data, entry), API["take"](b.data, other))
    extent = API["zeros"]((a.shape[0], b.shape[1], 0), bool)
    cols = API["astype"](API["take"](b.coordinates()[1], other), "int64")
    return _packed(distinct(COO(API["astype"](API["take"](row, entry), "int64"), cols, data, extent)), "csr")


def of_dense(x: Tensor, format: str) -> SparseValue:
    """The elements of a matrix that are not 0."""
    row, col = API["nonzero"](x)
    data = API["getitem"](x, (row, col))
    return COO(row, col, data, API["zeros"]((*x.shape, 0), bool), ()).asformat(format)


CONVERSIONS.update(product=product, found_in=found_in, added=added, converted=converted, distinct=distinct,
                   nonzeros=nonzeros)
