"""Ragged values: rows of any lengths, as a record of their values, one after the other, and where each row begins.

A function of elements is that of the values. A function of rows is made of scatters, gathers and sums along them. What
is known of the offsets in a call alone is checked there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from inspect import signature
from typing import Any

import numpy as np

from symc import special
from symc.errors import DTypeError, IndexingError, InputError, ShapeError
from symc.ir.dim import fresh_size, known_equal
from symc.ir.dtypes import is_dtype
from symc.ir.ops.ensure import axis_ensured, ensured
from symc.ir.record import dataclass
from symc.ir.value import Value
from symc.numpy_api.promotion import rows as described
from symc.numpy_api.selection import must_hold
from symc.numpy_api.ufuncs import UFUNCS
from symc.segments import rows
from symc.segments.arrays import RaggedArray
from symc.segments.reductions import RowFunctions
from symc.tensors.callsite import caller
from symc.tensors.convert import as_tensor
from symc.tensors.inputs import input as dense_input
from symc.tensors.leaves import given_whole
from symc.tensors.public import API, located
from symc.tensors.pytree import FOREIGN
from symc.tensors.sizes import as_size, named_size, user_size
from symc.tensors.tensor import Tensor

#: Functions of elements that are no ufuncs.
ELEMENTWISE = ("where", "clip", "astype", "round", "nan_to_num", "isclose", "real", "imag", "angle", "sigmoid",
               "operator_pow")
#: Functions that are methods here.
METHODS = tuple(name for name, f in vars(RowFunctions).items()
                if callable(f) and name[0] != "_" and "axis" in signature(f).parameters)


def rows_and_one(n: Any, name: str) -> Any:
    """The number of offsets of so many rows, which are an entry of a shape."""
    if n is None:
        return user_size(fresh_size() + 1)
    return user_size(named_size(n, f"the rows of input {name!r}") + 1)


def _binary(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    return lambda self, other: API[name](other, self) if reflected else API[name](self, other)


def _unary(name: str) -> Callable[[Any], Any]:
    return lambda self: API[name](self)


@dataclass(frozen=True, eq=False)
class Ragged(RowFunctions):
    """Row k is ``values[offsets[k] : offsets[k + 1]]``. Its shape is (rows, None, ...): axis 1 is that of rows."""

    values: Any
    offsets: Any

    @located
    def __init__(self, values: Any, offsets: Any):
        v, o = as_tensor(values), as_tensor(offsets)
        if not v.ndim or o.ndim != 1:
            raise ShapeError("a ragged value has values with an axis and a vector of offsets", values=described([v, o]),
                             help="r.map(f) is f of all values; sc.vmap goes over axes that are not ragged")
        if o.dtype.kind not in "iu":
            raise DTypeError(f"offsets are integers, not {o.dtype}", values=described([o]))
        known = rows.known_array(o.value)
        if known is not None:
            count = v.value.shape[0] if isinstance(v.value.shape[0], int) else int(known[-1]) if len(known) else 0
            RaggedArray(np.empty((count, 0)), known)
        object.__setattr__(self, "values", Tensor(v.value))
        object.__setattr__(self, "offsets", API["astype"](o, "int64"))

    # --- making -------------------------------------------------------------------------------------------------------

    @staticmethod
    @located
    def input(name: str, dtype: Any = None, shape: Sequence[Any] = (None, None), total: Any = None) -> Ragged:
        """A ragged value that is given when the compiled function is called: as a list of arrays, or a RaggedArray.

        ``shape``: the number of rows, None for the ragged axis, and the sizes of the others, as in ``sc.input``.
        ``total``: how many values there are, a size as well.
        """
        if len(shape) < 2 or shape[1] is not None:
            raise ShapeError(f"the shape of a ragged input is (rows, None, ...), not {tuple(shape)}",
                             help="axis 1 is the ragged one: it has no size")
        offsets = dense_input(f"{name}.offsets", "int64", (rows_and_one(shape[0], name),))
        return given_whole(name, Ragged(dense_input(f"{name}.values", dtype, (total, *shape[2:])), offsets))

    @staticmethod
    @located
    def from_lengths(values: Any, lengths: Any) -> Ragged:
        """Values and how many each row has."""
        n = API["astype"](as_tensor(lengths), "int64")
        return Ragged(values, API["concatenate"]([API["zeros"](1, "int64"), API["cumsum"](n)]))

    @staticmethod
    @located
    def from_list(items: Sequence[Any]) -> Ragged:
        """Arrays, which differ in length alone."""
        if isinstance(items, RaggedArray) or not any(isinstance(x, Tensor) for x in items):
            found = items if isinstance(items, RaggedArray) else RaggedArray.from_list(items)
            return Ragged(found.values, found.offsets)
        given = [as_tensor(x) for x in items]
        return Ragged.from_lengths(API["concatenate"](given), API["stack"]([as_tensor(x.shape[0]) for x in given]))

    @staticmethod
    @located
    def from_padded(x: Any, lengths: Any) -> Ragged:
        """The first ``lengths[k]`` of each row of an array."""
        t, n = as_tensor(x), API["astype"](as_tensor(lengths), "int64")
        n = n + must_hold(API["less_equal"](n, t.shape[1]), "rows are no longer than the array that they are in")
        return Ragged.from_lengths(t[API["less"](API["arange"](t.shape[1]), n[:, None])], n)

    # --- as a nest ----------------------------------------------------------------------------------------------------

    @classmethod
    def __symc_filled__(cls, fields: dict[str, Any]) -> Any:
        """Ragged value of tensors, RaggedArray of arrays."""
        if isinstance(fields["values"], Tensor | Value):
            return cls(fields["values"], fields["offsets"])
        return RaggedArray(*[a if isinstance(a, np.ndarray) else a.numpy() for a in fields.values()])

    @classmethod
    def __symc_given__(cls, item: Any, what: str) -> list[Any]:
        """The arrays of an argument. Raises InputError for what is no list of arrays."""
        if not isinstance(item, RaggedArray):
            if not isinstance(item, list | tuple):
                raise InputError(f"{what} must be a list of arrays, or a RaggedArray, not {type(item).__name__}",
                                 help="sc.RaggedArray(values, offsets)")
            item = RaggedArray.from_list(item, what)
            if not item.values.size and item.values.ndim == 1:
                return [[], item.offsets]  # of any dtype
        return [item.values, item.offsets]

    def __symc_varying__(self) -> Any:
        return self.values

    def __symc_with__(self, values: Any) -> Any:
        return Ragged(values, self.offsets)

    def __symc_matched__(self, tree: Any, what: str) -> Any:
        if not isinstance(tree, Ragged) or tree.offsets.value is not self.offsets.value:
            raise InputError(f"{what} must be a ragged value of the same offsets", help="r.with_values(numbers)")
        return tree.values

    def record(self, fn: Callable[..., Any], args: tuple, kwargs: Mapping[str, Any]) -> Any:
        """A public function of ragged values, by what it is of each element or row; others take it as a nest."""
        how = functions().get(fn)
        whole: Any = fn.runs  # type: ignore[attr-defined]
        if how == "elements":
            return located(lambda _: self._each(whole, args, kwargs))(None)
        if how and args and isinstance(args[0], Ragged):
            return getattr(args[0], how)(*args[1:], **kwargs)
        return located(lambda _: whole(*args, **kwargs))(None)

    @property
    def not_an_operand(self) -> tuple[str, str]:
        return f"{self!r} is not an array", ("r.map(f) is f of all values, r.values these, r.to_padded(fill) an array; "
                                             "r.sum(axis=1) and the like are of each row")

    # --- what is known of it ------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not isinstance(self.values, Tensor):
            return "<ragged of arrays>"
        n, _, *more = self.shape
        return f"<ragged {self.values.type.dtype}[{', '.join(map(str, [n, '*', *more]))}]>"

    def __bool__(self) -> bool:
        raise InputError("the truth of a ragged value is not known while the graph is built", where=[caller()])

    def __len__(self) -> int:
        raise InputError("the number of rows is not known while the graph is built", where=[caller()],
                         help="r.shape[0]")

    def __iter__(self) -> Any:
        raise InputError("a ragged value is not iterated while the graph is built", where=[caller()],
                         help="r[i] is a row")

    # --- elements -----------------------------------------------------------------------------------------------------

    @located
    def map(self, fn: Callable[[Tensor], Any]) -> Ragged:
        """``fn`` of all values, one after the other: ``r.map(lambda v: v @ w)``. It keeps their number and order."""
        return self.with_values(fn(self.values))

    @located
    def at_rows(self, x: Any) -> Any:
        """Something of each row, of each element of rows, or the same for all, broadcast to the values as NumPy does to
        an array of shape (rows, length, ...)."""
        if isinstance(x, RaggedArray):
            x = Ragged(x.values, x.offsets)
        if isinstance(x, Ragged):
            return x._in_rows_of(self)
        if x is None or isinstance(x, str | type) or is_dtype(x):  # of other parameters
            return x
        t = as_tensor(x)
        if t.ndim < self.ndim - 1:
            return x
        n, length = (1, *t.value.shape)[-self.ndim :][:2] if t.ndim < self.ndim else t.value.shape[:2]
        if t.ndim > self.ndim or length != 1:
            at = max(t.ndim - self.ndim + 1, 0)
            raise ShapeError(f"{self!r} meets an array whose axis {at} would be that of rows",
                             values=described([t]), help="x[:, None] is a number for each row, x[r.positions] for "
                             "each place in rows")
        if n == 1:
            return API["reshape"](t, t.shape[t.ndim - self.ndim + 2 :] if t.ndim == self.ndim else t.shape[1:])
        want = self.offsets.value.shape[0] - 1
        if known_equal(n, want) is False:
            raise ShapeError(f"{self!r} meets an array of {n} rows", values=described([t]))
        whole = Tensor(axis_ensured(t.value, 0, want))
        return API["take"](whole[:, 0], self.row_ids, 0)

    def _in_rows_of(self, other: Ragged) -> Tensor:
        """The values, in rows that are, or are checked to be, as long as those of another value."""
        if self.offsets.value is other.offsets.value:
            return self.values
        a, b = rows.known_array(self.offsets.value), rows.known_array(other.offsets.value)
        n, m = self.offsets.value.shape[0] - 1, other.offsets.value.shape[0] - 1
        if known_equal(n, m) is False or a is not None and b is not None and not np.array_equal(a, b):
            raise ShapeError(f"{other!r} and {self!r} differ in the lengths of rows",
                             values=described([other.values, self.values]))
        starts = Tensor(ensured(self.starts.value, (m,)))
        lengths = Tensor(ensured(self.lengths.value, (m,)))
        law = "ragged values that meet have rows of equal lengths"
        starts = starts + must_hold(API["equal"](lengths, other.lengths), law)
        return API["take"](self.values, API["take"](starts, other.row_ids) + other.positions, 0)

    def _each(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A function of elements, of this value and others."""
        found = fn(*map(self.at_rows, args), **{k: self.at_rows(x) for k, x in kwargs.items()})
        return tuple(map(self.with_values, found)) if isinstance(found, tuple) else self.with_values(found)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or ufunc not in UFUNCS and ufunc is not np.matmul:
            name = ufunc.__name__ + ("" if method == "__call__" else f".{method}")
            raise InputError(f"{name} of {self!r} is not defined",
                             where=[caller()], help=self.not_an_operand[1])
        return self.__matmul__(inputs[1]) if ufunc is np.matmul else API[ufunc.__name__](*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        name = func.__name__
        if name not in (*ELEMENTWISE, *METHODS):
            raise InputError(f"{name} of {self!r} is not defined", where=[caller()], help=self.not_an_operand[1])
        return API[name](*args, **kwargs)

    @located
    def __matmul__(self, w: Any) -> Ragged:
        """Each value, a vector, times a matrix."""
        return self.map(lambda v: v @ as_tensor(w))

    def __getattr__(self, name: str) -> Any:
        """A function of elements, by its name: ``r.tanh()``."""
        if name.startswith("_") or name not in API or functions().get(API[name]) is None:
            raise AttributeError(f"a ragged value has no {name!r}")
        return partial(API[name], self)

    # --- places -------------------------------------------------------------------------------------------------------

    @located
    def __getitem__(self, index: Any) -> Any:
        """``r[i]``: a row; of a slice, numbers or a mask those rows; ``r[i, k]``: elements of rows."""
        if isinstance(index, tuple):
            if len(index) == 1:
                return self[index[0]]
            first, k, *more = index
            if isinstance(k, slice) or k is None or k is Ellipsis:
                raise IndexingError(f"{self!r} is not sliced along rows", help="r[:, 0] and r[:, -1] are their ends")
            return self._elements(API["arange"](self.shape[0])[first], as_tensor(k), more)
        i = API["arange"](self.shape[0])[index]
        starts, ends = API["take"](self.starts, i), API["take"](self.ends, i)
        if not i.ndim:
            return self.values[starts:ends]
        if i.ndim > 1:
            raise IndexingError("rows are taken by a number or a vector of numbers", values=described([i]))
        taken = Ragged.from_lengths(API["arange"](user_size(as_size(API["sum"](ends - starts)))), ends - starts)
        place = API["take"](starts, taken.row_ids) + taken.positions
        return taken.with_values(API["take"](self.values, place, 0))

    def _elements(self, i: Tensor, k: Tensor, more: Sequence[Any]) -> Tensor:
        length = API["take"](self.lengths, i)
        at = API["where"](API["less"](k, 0), k + length, k)
        inside = API["logical_and"](API["greater_equal"](at, 0), API["less"](at, length))
        at = at + must_hold(inside, "places in rows are within their rows")
        return API["take"](self.values, API["take"](self.starts, i) + at, 0)[(..., *more) if not more else
                                                                            (*[slice(None)] * at.ndim, *more)]

    @located
    def to_padded(self, fill: Any = 0, length: Any = None) -> Tensor:
        """An array of shape (rows, length, ...), by default as long as the longest row; the rest is ``fill``."""
        if length is None:
            length = user_size(as_size(API["max"](self.lengths, initial=0)))
            row = self.row_ids
        else:
            fits = must_hold(API["less_equal"](self.lengths, length), f"rows are no longer than length={length}")
            row = API["take"](API["arange"](self.shape[0]) + fits, self.row_ids)
        out = API["full"]((self.shape[0], length, *self.values.shape[1:]), fill, dtype=self.dtype)
        return out.at[row, self.positions].set(self.values)

    # --- operators ----------------------------------------------------------------------------------------------------
    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("subtract"), _binary("subtract", True)
    __mul__, __rmul__ = _binary("multiply"), _binary("multiply", True)
    __truediv__, __rtruediv__ = _binary("true_divide"), _binary("true_divide", True)
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _binary("floor_divide", True)
    __mod__, __rmod__ = _binary("remainder"), _binary("remainder", True)
    __pow__, __rpow__ = _binary("operator_pow"), _binary("operator_pow", True)
    __and__, __rand__ = _binary("bitwise_and"), _binary("bitwise_and", True)
    __or__, __ror__ = _binary("bitwise_or"), _binary("bitwise_or", True)
    __xor__, __rxor__ = _binary("bitwise_xor"), _binary("bitwise_xor", True)
    __eq__ = _binary("equal")  # type: ignore[assignment]
    __ne__ = _binary("not_equal")  # type: ignore[assignment]
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __neg__, __pos__, __invert__, __abs__ = _unary("negative"), _unary("positive"), _unary("invert"), _unary("absolute")
    __hash__ = object.__hash__


@cache
def functions() -> dict[Any, str]:
    """Kind of a public function for ragged values: "elements", or a method here."""
    each = [API[u.__name__] for u in UFUNCS] + [API[n] for n in ELEMENTWISE if n in API]
    each += [getattr(special, n) for n in special.__all__ if n not in METHODS]
    return dict.fromkeys(each, "elements") | {API[n]: n for n in METHODS if n in API} | {
        getattr(special, n): n for n in METHODS if n in special.__all__}


def _adopted(item: RaggedArray) -> Any:
    """A record of arrays, for calls of functions that are traced."""
    out: Any = object.__new__(Ragged)
    object.__setattr__(out, "values", item.values)
    object.__setattr__(out, "offsets", item.offsets)
    return out


FOREIGN["__symc_ragged__"] = _adopted
