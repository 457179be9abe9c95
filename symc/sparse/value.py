"""Sparse values: records of ordinary tensors, which are the pattern and the numbers at it.

``extent`` is an array without elements of shape (n, m, 0): with it a record alone says its shape, as an argument and as
a result. ``single`` is () where no place is there twice, None where that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from symc.errors import DTypeError, IndexingError, InputError, ShapeError
from symc.ir.dim import Size
from symc.ir.op import all_ops, lookup
from symc.ir.record import replace
from symc.ir.value import Value
from symc.numpy_api.promotion import of_shape, rows, same_dtype
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, located
from symc.tensors.sizes import as_size, user_shape
from symc.tensors.tensor import Tensor

FORMATS = ("csr", "csc", "coo")
#: What `formats` and `convert` give to the methods here, by name.
CONVERSIONS: dict[str, Callable[..., Any]] = {}


def extent_of(shape: Sequence[Any]) -> Tensor:
    """The array that says a shape."""
    if len(shape) != 2:
        raise ShapeError(f"a sparse value has two axes, not {len(shape)}")
    return API["zeros"]((*[as_size(n) for n in shape], 0), bool)


def checked(index: Tensor, size: Size) -> Tensor:
    """Indices that raise IndexingError in a call where they are not in [0, size)."""
    return Tensor(lookup("check_index")(index.value, size=size))


def host(x: Any) -> np.ndarray:
    """An array, from a device where it is there."""
    found: np.ndarray = x if isinstance(x, np.ndarray) else x.numpy()
    return found


def is_scipy(item: Any) -> bool:
    """True if something is a sparse matrix or array of SciPy's."""
    return type(item).__module__.startswith("scipy.sparse") and hasattr(item, "tocoo")


def sparse_or_dense(item: Any) -> Any:
    """SciPy's matrices as sparse values."""
    return CONVERSIONS["constant"](item) if is_scipy(item) else item


def _compared(name: str) -> Callable[[Any, Any], Any]:
    """Comparison of a sparse value with anything: dense, as places without an entry are compared too."""
    @located
    def compare(self: Any, other: Any) -> Tensor:
        other = sparse_or_dense(other)
        found: Tensor = API[name](self.toarray(), other.toarray() if isinstance(other, SparseValue) else other)
        return found
    return compare


class SparseValue:
    """Sparse matrix: what the formats have in common."""

    format: ClassVar[str]
    data: Any
    extent: Any
    single: Any
    __array_ufunc__ = None  # NumPy's arrays leave operators to this side
    __array_priority__ = 2000

    # --- as a nest ----------------------------------------------------------------------------------------------------

    @classmethod
    def __symc_filled__(cls, fields: dict[str, Any]) -> Any:
        """Sparse value of tensors; of arrays what SciPy has."""
        if isinstance(fields["data"], Tensor | Value):
            return cls._made({k: Tensor(v) if isinstance(v, Value) else v for k, v in fields.items()})
        import scipy.sparse

        *places, data, extent = (fields[k] for k in (*cls._index_names[::-1], "data", "extent"))
        places, data = [host(x) for x in places], host(data)
        arrays = (data, tuple(places[::-1])) if cls.format == "coo" else (data, *places)
        return getattr(scipy.sparse, f"{cls.format}_array")(arrays, shape=extent.shape[:2])

    @classmethod
    def __symc_given__(cls, item: Any, what: str) -> list[Any]:
        """The arrays of a matrix of SciPy's. Raises InputError for anything else."""
        if not is_scipy(item) or item.format != cls.format or item.ndim != 2:
            known = getattr(item, "format", None)
            given = f"one in format {known!r}" if isinstance(known, str) else type(item).__name__
            raise InputError(f"{what} must be a SciPy sparse matrix in format {cls.format!r}, not {given}",
                             help=f"A.to{cls.format}(), or scipy.sparse.{cls.format}_array(A) of a dense array")
        own = CONVERSIONS["adopted"](item)
        return [getattr(own, k) for k in (*cls._index_names, "data", "extent")]

    @classmethod
    def _made(cls, fields: dict[str, Any]) -> Any:
        out = cls(**fields)
        n = out.data.value.shape
        for k in out._index_names:
            if k != "indptr":
                fields[k] = of_shape(fields[k], n, k)
        return cls(**fields)

    def __symc_varying__(self) -> Any:
        return self.data

    def __symc_with__(self, data: Any) -> Any:
        return replace(self, data=data)  # type: ignore[type-var]

    def __symc_matched__(self, tree: Any, what: str) -> Any:
        """The data of a value of this pattern."""
        if not isinstance(tree, SparseValue) or not self.same_pattern(tree):
            raise InputError(f"{what} must be a sparse value of the same pattern", help="A.with_data(numbers)")
        return tree.data

    _index_names: ClassVar[tuple[str, ...]]

    def same_pattern(self, other: Any) -> bool:
        """True if two values are known to have one pattern."""
        return type(self) is type(other) and all(
            getattr(self, k).value is getattr(other, k).value for k in (*self._index_names, "extent"))

    # --- what is known of it ------------------------------------------------------------------------------------------

    @property
    def sizes(self) -> tuple[Size, Size]:
        """The shape as the IR has it."""
        return self.extent.value.shape[:2]

    @property
    def shape(self) -> tuple:
        return user_shape(self.sizes)

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def nnz(self) -> Any:
        """The number of entries stored: a size."""
        return self.data.shape[0]

    def __repr__(self) -> str:
        if not isinstance(self.data, Tensor):
            return f"<{self.format} of arrays>"
        n, m = self.sizes
        return f"<sparse {self.format} {self.data.type.dtype}[{n}, {m}] with {self.data.value.shape[0]} entries>"

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise InputError("a sparse value is not made dense by itself", values=[self.data.describe("its data")],
                         help="A.toarray() is dense; A @ x, A * x, A.multiply(x) and A.sin() take it as it is")

    def __bool__(self) -> bool:
        raise InputError("the truth of a sparse value is not known while the graph is built")

    def __getitem__(self, index: Any) -> Any:
        raise IndexingError("elements of a sparse value are not picked out", help="A.toarray()[index] is dense; "
                            "A @ x with ones in x sums columns, A.T @ x rows")

    def __iter__(self) -> Any:
        raise TypeError("a sparse value is not iterated: A.toarray() is dense")

    def coordinates(self) -> tuple[Tensor, Tensor]:
        """The row and the column of each entry, checked."""
        raise NotImplementedError

    # --- products -----------------------------------------------------------------------------------------------------

    def _times(self, data: Tensor, x: Tensor, transposed: bool) -> Tensor:
        """Product of this value, or its transpose, with ``data``, times a matrix."""
        raise NotImplementedError

    def _product(self, x: Any, transposed: bool) -> Tensor:
        t = as_tensor(x)
        if t.ndim not in (1, 2):
            raise ShapeError("a sparse value is multiplied by vectors and matrices", values=rows([t]))
        data, t = same_dtype([self.data, t], "matmul")
        if data.dtype.kind == "b":
            raise DTypeError("matmul of a sparse value is not defined for bool", help="A.astype(int)")
        t = of_shape(t, (self.sizes[0 if transposed else 1], *t.value.shape[1:]),
                     f"what {self!r} is multiplied by")
        out = self._times(data, t if t.ndim == 2 else API["reshape"](t, (-1, 1)), transposed)
        return out if t.ndim == 2 else API["reshape"](out, (out.shape[0],))

    @located
    def __matmul__(self, other: Any) -> Any:
        other = sparse_or_dense(other)
        if isinstance(other, SparseValue):
            return CONVERSIONS["product"](self, other)
        return self._product(other, False)

    @located
    def __rmatmul__(self, other: Any) -> Tensor:
        other = sparse_or_dense(other)
        if isinstance(other, SparseValue):
            return other @ self
        t = as_tensor(other)
        return self._product(t, True) if t.ndim == 1 else API["transpose"](self._product(API["transpose"](t), True))

    def dot(self, other: Any) -> Any:
        return self @ other

    # --- elementwise --------------------------------------------------------------------------------------------------

    def with_data(self, data: Any) -> Any:
        """The same pattern with other numbers."""
        return replace(self, data=of_shape(as_tensor(data), self.data.value.shape, "data"))  # type: ignore[type-var]

    def at_pattern(self, x: Any) -> Tensor:
        """The elements of something dense, broadcast to this shape, at the pattern."""
        t = as_tensor(x)
        if not t.ndim:
            return t
        if t.ndim > 2:
            raise ShapeError("a sparse value has two axes", values=rows([t]))
        sizes = self.sizes[2 - t.ndim:]
        t = of_shape(t, [n if n == 1 else s for n, s in zip(t.value.shape, sizes)], f"what {self!r} meets")
        places = self.coordinates()[2 - t.ndim:]
        return API["getitem"](t, tuple([0 if n == 1 and s != 1 else p for n, s, p in zip(t.value.shape, sizes, places)]
                                       )) if t.value.shape != (1,) * t.ndim else API["reshape"](t, ())

    @located
    def multiply(self, other: Any) -> Any:
        """Elementwise, with the pattern of this value."""
        other = sparse_or_dense(other)
        if isinstance(other, SparseValue):
            return self.with_data(self.data * (other.data if self.same_pattern(other) and self.single == ()
                                               else CONVERSIONS["found_in"](other, self)))
        return self.with_data(API["multiply"](self.data, self.at_pattern(other)))

    __mul__ = __rmul__ = multiply

    @located
    def __truediv__(self, other: Any) -> Any:
        return self.with_data(API["true_divide"](self.data, self.at_pattern(other)))

    @located
    def __add__(self, other: Any) -> Any:
        other = sparse_or_dense(other)
        if isinstance(other, SparseValue):
            if self.same_pattern(other):
                return self.with_data(self.data + other.data)
            return CONVERSIONS["added"](self, other)
        if isinstance(other, int | float | complex):
            if other == 0:
                return self
            raise InputError(f"{self!r} + {other!r} is dense", help="A.toarray() + number")
        return self.toarray() + other

    __radd__ = __add__

    __eq__ = _compared("equal")  # type: ignore[assignment]
    __ne__ = _compared("not_equal")  # type: ignore[assignment]
    __lt__, __le__ = _compared("less"), _compared("less_equal")
    __gt__, __ge__ = _compared("greater"), _compared("greater_equal")
    __hash__ = object.__hash__

    def __neg__(self) -> Any:
        return self.with_data(-self.data)

    def __sub__(self, other: Any) -> Any:
        return self + -sparse_or_dense(other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __abs__(self) -> Any:
        return self.each("abs")

    @located
    def each(self, name: str, *args: Any) -> Any:
        """The function called ``name``, which is 0 at 0, of each element."""
        whole = self.sum_duplicates()
        return whole.with_data(API[name](whole.data, *args))

    def __pow__(self, n: Any) -> Any:
        if not isinstance(n, int | float | np.number) or n <= 0:
            raise InputError(f"a sparse value to the power {n!r} is dense, or not known to be sparse",
                             help="A ** n with a number above 0; A.toarray() ** n")
        return self.each("power", n)

    def power(self, n: Any, dtype: Any = None) -> Any:
        return (self if dtype is None else self.astype(dtype)) ** n

    def astype(self, dtype: Any) -> Any:
        return self.with_data(self.data.astype(dtype))

    def conj(self) -> Any:
        return self.with_data(self.data.conj())

    conjugate = conj

    # --- reductions ---------------------------------------------------------------------------------------------------

    @located
    def sum(self, axis: int | None = None, dtype: Any = None) -> Tensor:
        """The sum of all elements, or along an axis."""
        if axis not in (None, 0, 1, -1, -2):
            raise ShapeError(f"a sparse value has no axis {axis!r}")
        if axis is None:
            return API["sum"](self.data, dtype=dtype)
        wide = self.astype(API["sum"](self.data, dtype=dtype).dtype)
        n, m = self.shape
        return wide._product(API["ones"](m if axis in (1, -1) else n, wide.dtype), axis in (0, -2))

    def mean(self, axis: int | None = None) -> Tensor:
        n, m = self.shape
        return self.sum(axis) / (n * m if axis is None else m if axis in (1, -1) else n)

    @located
    def diagonal(self, k: int = 0) -> Tensor:
        """The elements on the main diagonal, or on the k-th above it."""
        (row, col), (n, m) = self.coordinates(), self.shape
        n, m = n + min(k, 0), m - max(k, 0)
        known = isinstance(n, int) and isinstance(m, int)
        length = max(min(n, m), 0) if known else API["maximum"](API["minimum"](n, m), 0)
        on = API["equal"](col - row, k)
        first = API["zeros"](length + 1, self.dtype)  # with a place for what is not there
        return first.at[API["where"](on, row + min(k, 0), length)].add(API["where"](on, self.data, 0))[:length]

    def trace(self) -> Tensor:
        row, col = self.coordinates()
        return API["sum"](API["where"](API["equal"](row, col), self.data, 0))

    # --- other forms --------------------------------------------------------------------------------------------------

    @located
    def toarray(self) -> Tensor:
        """The dense array."""
        return API["zeros"](self.shape, self.dtype).at[self.coordinates()].add(self.data)

    todense = toarray

    @property
    def T(self) -> Any:
        return self.transpose()

    def transpose(self) -> Any:
        raise NotImplementedError

    @property
    def H(self) -> Any:
        return self.T.conj()

    def asformat(self, format: str) -> Any:
        """The same value in another format: "csr", "csc" or "coo"."""
        if format == self.format:
            return self
        if format not in FORMATS:
            raise InputError(f"there is no sparse format {format!r}", help=f"formats: {', '.join(FORMATS)}")
        return CONVERSIONS["converted"](self, format)

    def tocsr(self) -> Any:
        return self.asformat("csr")

    def tocsc(self) -> Any:
        return self.asformat("csc")

    def tocoo(self) -> Any:
        return self.asformat("coo")

    @located
    def sum_duplicates(self) -> Any:
        """Each place once: a value with as many entries as there are distinct places."""
        if self.single == ():
            return self
        return CONVERSIONS["distinct"](self)

    @located
    def eliminate_zeros(self) -> Any:
        """Without the entries that are 0: a value with as many entries as are not."""
        return CONVERSIONS["nonzeros"](self)

    def __getattr__(self, name: str) -> Any:
        """A function of each element that is 0 at 0 (``A.sin()``), by the name that NumPy gives it."""
        if name.startswith("_") or name not in functions_of_elements():
            raise AttributeError(f"a sparse value has no {name!r}")
        return partial(self.each, name)


@cache
def functions_of_elements() -> frozenset[str]:
    """The names of NumPy's functions of one number that are 0 at 0."""
    return frozenset(op.facts.numpy.__name__ for op in all_ops()
                     if op.facts.keeps_zero and op.facts.arity == 1 and op.facts.numpy is not None)
