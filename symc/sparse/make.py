"""Sparse values from what users give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.op import lookup
from symc.ir.ops.sparse import check_pattern
from symc.ir.types import DTYPES, as_dtype
from symc.numpy_api.promotion import rows, same_dtype
from symc.sparse.convert import of_dense
from symc.sparse.formats import CLASSES, COO, constant, held
from symc.sparse.value import FORMATS, SparseValue, extent_of, is_scipy, of_shape
from symc.tensors.constants import known_array
from symc.tensors.convert import as_tensor
from symc.tensors.inputs import input as dense_input
from symc.tensors.leaves import given_whole
from symc.tensors.public import API, located
from symc.tensors.tensor import Tensor

INDICES = (DTYPES["i32"], DTYPES["i64"])


def _index(x: Any, what: str) -> Tensor:
    t = as_tensor(x)
    if t.dtype.kind not in "iu":
        raise DTypeError(f"{what} must be integers, not {t.dtype}", values=[t.describe(what)])
    if t.ndim != 1:
        raise ShapeError(f"{what} must be a vector", values=[t.describe(what)])
    return t if t.dtype in INDICES else API["astype"](t, "int64")


def _numbers(x: Any) -> Tensor:
    t = as_tensor(x)
    if t.ndim != 1:
        raise ShapeError("data must be a vector", values=[t.describe("data")])
    held(t.dtype)
    return Tensor(t.value)


def _compressed(cls: Any, indptr: Any, indices: Any, data: Any, shape: Sequence[Any]) -> Any:
    first, index, numbers = _index(indptr, "indptr"), _index(indices, "indices"), _numbers(data)
    if first.dtype != index.dtype:
        first, index = [API["astype"](t, "int64") for t in (first, index)]
    fields = dict(indptr=first, indices=index, data=numbers, extent=extent_of(shape))
    out = cls._made(fields)
    ends, inner, columns = known_array(first.value), known_array(index.value), out.sizes[0 if cls.across else 1]
    if ends is not None and inner is not None and isinstance(columns, int):
        places = check_pattern(ends, inner, columns) * columns + inner
        if np.unique(places).size == places.size:
            return cls._made({**fields, "single": ()})
    return out


@located
def csr(indptr: Any, indices: Any, data: Any, shape: Sequence[Any]) -> Any:
    """A sparse value stored by rows: row r has the entries from ``indptr[r]`` up to ``indptr[r + 1]`` of ``data``, in
    the columns ``indices``. Entries at one place are added."""
    return _compressed(CLASSES["csr"], indptr, indices, data, shape)


@located
def csc(indptr: Any, indices: Any, data: Any, shape: Sequence[Any]) -> Any:
    """A sparse value stored by columns: as ``csr``, with ``indices`` the rows."""
    return _compressed(CLASSES["csc"], indptr, indices, data, shape)


@located
def coo(row: Any, col: Any, data: Any, shape: Sequence[Any]) -> Any:
    """A sparse value of ``data`` at the places ``row``, ``col``. Entries at one place are added."""
    fields = dict(row=_index(row, "row"), col=_index(col, "col"), data=_numbers(data), extent=extent_of(shape))
    return COO._made(fields)


@located
def input(name: str, format: str = "csr", dtype: Any = "float64", shape: Sequence[Any] = ("n", "m"), nnz: Any = None,
          index_dtype: Any = "int64") -> Any:
    """A sparse value that is given, as a SciPy sparse matrix of this format, when the compiled function is called.

    ``shape`` and ``nnz`` are sizes as in ``sc.input``. Indices of another dtype than ``index_dtype`` (SciPy mostly
    makes int32) are converted in each call.
    """
    if format not in FORMATS:
        raise InputError(f"there is no sparse format {format!r}", help=f"formats: {', '.join(FORMATS)}")
    held(as_dtype(dtype))
    if as_dtype(index_dtype) not in INDICES:
        raise DTypeError(f"index_dtype is int32 or int64, not {index_dtype}")
    if len(shape) != 2:
        raise ShapeError(f"a sparse value has two axes, not {len(shape)}")
    extent = dense_input(f"{name}.extent", bool, (*shape, 0))
    data = dense_input(f"{name}.data", dtype, (nnz,))
    count = data.shape[0]
    if format == "coo":
        row, col = (dense_input(f"{name}.{k}", index_dtype, (count,)) for k in ("row", "col"))
        return given_whole(name, COO(row, col, data, extent, ()))
    cls = CLASSES[format]
    lines = extent.shape[1 if cls.across else 0]
    return given_whole(name, cls(dense_input(f"{name}.indptr", index_dtype, (lines + 1,)),
                                 dense_input(f"{name}.indices", index_dtype, (count,)), data, extent, ()))


@located
def asarray(a: Any) -> Any:
    """A sparse value of a SciPy sparse matrix, whose arrays are constants of the graph; a sparse value as it is."""
    if isinstance(a, SparseValue):
        return a
    if not is_scipy(a):
        raise InputError(f"a SciPy sparse matrix is needed, not {type(a).__name__}",
                         help="sc.sparse.fromdense(x) takes what is dense")
    return constant(a)


@located
def fromdense(x: Any, format: str = "csr") -> Any:
    """The elements of a matrix that are not 0, as a sparse value: how many they are is data."""
    t = as_tensor(x)
    if t.ndim != 2:
        raise ShapeError("a sparse value has two axes", values=[t.describe()])
    return of_dense(t, format)


@located
def diags(diagonal: Any, format: str = "csr") -> Any:
    """A square sparse value with this vector on its main diagonal."""
    t = _numbers(diagonal)
    i = API["arange"](t.shape[0])
    out = COO(i, i, t, extent_of((t.shape[0], t.shape[0])), ())
    if format == "coo":
        return out
    return CLASSES[format](API["arange"](t.shape[0] + 1), i, t, out.extent, ())


@located
def sampled(a: Any, x: Any, y: Any) -> Any:
    """The elements of ``x @ y`` at the pattern of ``a``, and nothing else of that product."""
    left, right = same_dtype([x, y], "sampled")
    if left.ndim != 2 or right.ndim != 2:
        raise ShapeError("sampled: two matrices are needed", values=rows([left, right]))
    n, m = a.sizes
    left = of_shape(left, (n, left.value.shape[1]), "sampled: the first matrix")
    right = API["transpose"](of_shape(right, (left.value.shape[1], m), "sampled: the second matrix"))
    if a.format == "coo":
        row, col = a.coordinates()
        return a.with_data(API["sum"](API["take"](left, row, 0) * API["take"](right, col, 0), -1))
    pair = (right, left) if a.across else (left, right)
    return a.with_data(Tensor(lookup("sddmm")(a.indptr.value, a.indices.value, pair[0].value, pair[1].value)))
