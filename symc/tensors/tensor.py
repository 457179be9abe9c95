"""``Tensor``: a value of the IR as users hold it, with NumPy's operators, methods and protocols.

A tensor is its value and nothing else (and whether it takes part in promotion like a Python number). All operators and
most methods call the function of the same name in ``public.API``; what a function means is written there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import index
from typing import Any, NoReturn

import numpy as np

from symc.errors import SymbolicValueError
from symc.ir.dim import product
from symc.ir.value import Value, first_line
from symc.notebook import Shown, table
from symc.tensors.callsite import MASKED, PANDAS, SPARSE, active, asking, caller
from symc.tensors.constants import Answer, array_at, known_array, shown_array
from symc.tensors.deferred import Deferred
from symc.tensors.leaves import Leaf, leaf_of, records, register_leaf
from symc.tensors.others import library_of
from symc.tensors.public import API, PROTOCOLS
from symc.tensors.sizes import SymbolicSize, known_number, user_shape, user_size


def _operand(item: Any) -> bool:
    """True if an operator takes ``item``; otherwise Python asks the other side."""
    return isinstance(item, Tensor | Value | SymbolicSize | Deferred | np.ndarray | np.generic | bool | int | float |
                      complex | list | tuple) or bool(library_of(item))  # fmt: skip


def _binary(function: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    def call(self: Any, other: Any) -> Any:
        if not _operand(other):
            PROTOCOLS["not_scipy"](other, self)
            return NotImplemented
        return API[function](other, self) if reflected else API[function](self, other)
    return call


def _changing(function: str) -> Callable[[Any, Any], Any]:
    """``x += y``: in place for the arrays of a trace, another value elsewhere and for numbers."""
    def call(self: Any, other: Any) -> Any:
        scope = active()
        if scope is None or not _operand(other) or not self.value.ndim and self.held in (None, scope):
            return NotImplemented
        return PROTOCOLS["in_place"](self, function, other)
    return call


def _unary(function: str) -> Callable[[Any], Any]:
    return lambda self: API[function](self)


def _part(name: str) -> Any:
    """``x.real`` and ``x.imag``, which are assigned to in traces."""
    return property(lambda self: API[name](self), lambda self, value: API[name](self).__setitem__(..., value))


class Tensor(Shown):
    """A symbolic array. Compare with ``is``; ``==`` is elementwise and symbolic.

    In a traced function it may come to hold another value, as arrays do (``symc.numpy_api.aliasing``).
    ``labels``: those of its axes (``symc.tensors.labels``). ``weak``: it came from Python numbers or sizes alone and
    promotes like one (``x * (n / 2)`` keeps float32).
    """

    __slots__ = ("__weakref__", "held", "labels", "value", "weak")
    __array_priority__ = 1000
    __pandas_priority__ = 5000  #: its arrays leave operators to values

    def __init__(self, value: Value, weak: bool = False):
        self.value, self.weak = value, weak
        self.labels: tuple[str | None, ...] | None = None
        self.held: Any = active()  #: where it was made in a trace, or the memory that it shares

    def __getattr__(self, name: str) -> Any:
        """The value again, after a write to an array that shares memory with this one has taken it away."""
        if name == "value":
            return PROTOCOLS["current"](self)
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        from symc.tensors.guidance import no_name  # mistakes alone need it

        raise no_name(f"{type(self).__name__!r} object", name, dir(type(self)))

    # --- what is known of it ------------------------------------------------------------------------------------------

    @property
    def type(self):
        """The IR type: dtype and shape."""
        return self.value.type

    @property
    def dtype(self) -> np.dtype:
        return self.value.type.dtype

    @property
    def shape(self) -> tuple:
        """Sizes of the axes: ints, or sizes that compute no data."""
        return user_shape(self.value.type.shape)

    @property
    def ndim(self) -> int:
        return len(self.value.type.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return user_size(product(self.value.type.shape))

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.dtype.itemsize

    @property
    def name(self) -> str:
        """The name of an input; empty for other values."""
        return leaf_of(self.value).name

    @property
    def device(self) -> str:
        """Device, which is decided when the value is compiled; the array API asks for something to compare."""
        return "symbolic"

    @property
    def T(self) -> Tensor:
        return API["transpose"](self)

    @property
    def mT(self) -> Tensor:
        return API["matrix_transpose"](self)

    real, imag = _part("real"), _part("imag")

    @property
    def at(self) -> Any:
        """``x.at[i].set(v)``, and ``add subtract multiply divide power min max get``: x with some elements changed."""
        return PROTOCOLS["at"](self)

    @property
    def flat(self) -> Tensor:
        return API["ravel"](self) if active() is None else PROTOCOLS["flat"](self)

    def describe(self, fallback: str = "value") -> tuple[str, Any, Any]:
        """A row for error messages: name (a number is its own name), type, the user's line."""
        leaf, v = leaf_of(self.value), self.value
        number = fallback if v.data is None or v.shape else str(v.data)
        return f"%{leaf.name}" if leaf.name else number, PROTOCOLS["typed"](self), leaf.loc or first_line(v)

    def _html_(self) -> str:
        rows = [("op", self.value.op.name), ("dtype", self.dtype), ("shape", self.shape)]
        loc = leaf_of(self.value).loc or first_line(self.value)
        rows += [("labels", self.labels)] * (self.labels is not None)
        if loc is not None:
            rows.append(("line", f"{loc}    {loc.text}"))
        return table(["", ""], rows, caption=repr(self))

    def __repr__(self) -> str:
        name = self.name
        if name:
            return f"Tensor({name}: {PROTOCOLS['typed'](self)})"
        numbers = shown_array(self.value)
        made = self.value.op.name if numbers is None else np.array2string(numbers, separator=", ", max_line_width=10**6)
        return f"Tensor({PROTOCOLS['typed'](self)} = {made.replace(chr(10), '')})"

    # --- what Python does with values ---------------------------------------------------------------------------------

    def _unknown(self, what: str, help: str) -> NoReturn:
        raise SymbolicValueError(f"{what} of a symbolic value is not known while the graph is built",
                                 values=[self.describe()], where=[caller()], help=help)

    def _numbers(self, what: str, help: str, read: Callable[[np.ndarray], Any] = np.array) -> Any:
        """Answer read from the numbers of a value that depends on nothing given later; in a trace the sizes of the call
        are given. Raises SymbolicValueError for others."""
        found, scope = known_array(self.value), active()
        if found is not None:
            return found if read is np.array else read(found)
        if scope is not None:
            v = self.value
            answer = scope.trace.ask(
                ("numbers", v, read.__name__), lambda sizes: Answer.of(array_at(v, sizes), read),
                f"{what} of a value that is made of sizes", caller())
            if answer is not None:
                return answer.item
        self._unknown(what, help)

    def _number(self, help: str, kind: Callable[[Any], Any] = complex) -> Any:
        def number(found: np.ndarray) -> Any:
            if found.ndim:
                raise TypeError(f"an array of shape {found.shape} is not a number")
            return kind(found.item())
        number.__name__ = kind.__name__
        return self._numbers("the number", help, number)

    def __bool__(self) -> bool:
        return self._numbers(
            "the truth", "use sc.where(condition, x, y) to select, sc.cond to branch, sc.while_loop to repeat", bool)

    def __float__(self) -> float:
        return self._number(
            "compile it and call the function; to choose by a value use sc.where, sc.cond or sc.while_loop", float)

    def __int__(self) -> int:
        return self._number("compile it and call the function; to convert use x.astype('int64'); "
                            "to choose by a value use sc.where, sc.cond or sc.while_loop", int)

    def __complex__(self) -> complex:
        return self._number("compile it and call the function; to convert use x.astype('complex128'); "
                            "to choose by a value use sc.where, sc.cond or sc.while_loop", complex)

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" and known_array(self.value) is not None:
            raise TypeError(f"{self.dtype} is not an integer dtype")
        return self._number(
            "index with it (x[i]), use sc.take(x, i), sc.where or sc.cond; a loop over it is sc.while_loop", index)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if asking(SPARSE, MASKED, PANDAS):
            PROTOCOLS["not_scipy"](None, self, called=True)
        found = self._numbers(
            "the array",
            "use the function of sc with that name, sc.asarray([...]) to collect values, or sc.where, sc.cond, "
            "sc.while_loop to choose by them; compile it to get numbers; an array that it is written into is made by "
            "np.zeros_like(x), sc.zeros(shape) or sc.array([...])",
        )
        if copy is False or active() is not None:  # in a trace no array of NumPy's is written to instead of this one
            return np.asarray(found, dtype) if copy is None else np.asarray(found, dtype, copy=copy)
        return np.array(found, dtype)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a value without axes")
        size = known_number(self.value.type.shape[0])
        if size is None:
            self._unknown("the length", "use x.shape[0]; sc.where or sc.cond choose, sc.scan and sc.while_loop repeat")
        return size

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a value without axes")
        size = known_number(self.value.type.shape[0])
        if size is None:
            self._unknown("the length", "use whole-array operations, sc.scan(step, init, x) or sc.while_loop")
        return iter([self[i] for i in range(size)])

    def __contains__(self, item: Any) -> bool:
        found = API["any"](API["equal"](self, item))
        return bool(found._numbers(
            "the content", "use sc.any(x == item), with sc.where or sc.cond to choose by it, or sc.while_loop"))

    def __setitem__(self, index: Any, value: Any) -> None:
        PROTOCOLS["assign"](self, index, value)

    def __getitem__(self, index: Any) -> Tensor:
        return API["getitem"](self, index)

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        found = self._numbers(
            "the text", "compile it, then format the result; to choose use sc.where, sc.cond or sc.while_loop")
        return format(found[()], spec)

    def __reduce__(self):
        return _restore, (self.value, self.weak, records(self.value), self.labels)

    def __copy__(self) -> Tensor:
        return self if active() is None else self.copy()  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.__copy__()

    def __round__(self, ndigits: int | None = None) -> Tensor:
        return API["round"](self, ndigits or 0)

    # --- what NumPy and the array API do with values ------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return PROTOCOLS["ufunc"](ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        return PROTOCOLS["function"](func, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return PROTOCOLS["namespace"]()

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """Values have no device until they are compiled: the value itself."""
        return self

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> Any:  # fmt: skip
        return self._shared().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._shared().__dlpack_device__()

    def _shared(self) -> np.ndarray:
        found = self._numbers("the array", "compile it: results of a function are arrays that other libraries read")
        return found.copy()  # older versions of DLPack cannot say that memory is read-only

    # --- operators ----------------------------------------------------------------------------------------------------

    __add__, __radd__ = _binary("add"), _binary("add", reflected=True)
    __sub__, __rsub__ = _binary("subtract"), _binary("subtract", reflected=True)
    __mul__, __rmul__ = _binary("multiply"), _binary("multiply", reflected=True)
    __truediv__, __rtruediv__ = _binary("true_divide"), _binary("true_divide", reflected=True)
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _binary("floor_divide", reflected=True)
    __mod__, __rmod__ = _binary("remainder"), _binary("remainder", reflected=True)
    __pow__, __rpow__ = _binary("operator_pow"), _binary("operator_pow", reflected=True)
    __matmul__, __rmatmul__ = _binary("matmul"), _binary("matmul", reflected=True)
    __divmod__, __rdivmod__ = _binary("divmod"), _binary("divmod", reflected=True)
    __and__, __rand__ = _binary("bitwise_and"), _binary("bitwise_and", reflected=True)
    __or__, __ror__ = _binary("bitwise_or"), _binary("bitwise_or", reflected=True)
    __xor__, __rxor__ = _binary("bitwise_xor"), _binary("bitwise_xor", reflected=True)
    __lshift__, __rlshift__ = _binary("left_shift"), _binary("left_shift", reflected=True)
    __rshift__, __rrshift__ = _binary("right_shift"), _binary("right_shift", reflected=True)
    __eq__ = _binary("equal")  # type: ignore[assignment]
    __ne__ = _binary("not_equal")  # type: ignore[assignment]
    __lt__ = _binary("less")
    __le__ = _binary("less_equal")
    __gt__ = _binary("greater")
    __ge__ = _binary("greater_equal")
    __iadd__, __isub__, __imul__ = _changing("add"), _changing("subtract"), _changing("multiply")
    __itruediv__, __ifloordiv__, __imod__ = _changing("true_divide"), _changing("floor_divide"), _changing("remainder")
    __ipow__, __imatmul__ = _changing("operator_pow"), _changing("matmul")
    __iand__, __ior__, __ixor__ = _changing("bitwise_and"), _changing("bitwise_or"), _changing("bitwise_xor")
    __ilshift__, __irshift__ = _changing("left_shift"), _changing("right_shift")
    __neg__ = _unary("negative")
    __pos__ = _unary("positive")
    __invert__ = _unary("invert")
    __abs__ = _unary("absolute")
    __trunc__ = _unary("trunc")
    __floor__ = _unary("floor")
    __ceil__ = _unary("ceil")
    __hash__ = object.__hash__


def _restore(value: Value, weak: bool, leaves: list[tuple[Value, Leaf]], labels: Any = None) -> Tensor:
    """For pickle: the names and lines of the leaves travel with a tensor."""
    for leaf, record in leaves:
        if not leaf_of(leaf).name:
            register_leaf(leaf, record)
    out = Tensor(value, weak)
    out.labels = labels
    return out


def _of_numbers(name: str) -> Callable:
    """A method that gives Python's numbers."""

    def call(self: Tensor, *args: Any) -> Any:
        return getattr(self._numbers(
            "the number", "compile it and call the function; to choose by a value use sc.where, sc.cond or "
            "sc.while_loop"), name)(*args)

    call.__name__ = name
    call.__doc__ = f"``{name}`` of the array, for values that are known; raises SymbolicValueError for others."
    return call


Tensor.item, Tensor.tolist = _of_numbers("item"), _of_numbers("tolist")  # type: ignore[attr-defined]
Value.tensor = property(Tensor)
Deferred.becomes = Tensor
