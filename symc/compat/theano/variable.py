"""``TensorVariable``: a symbolic value as programs for Theano know it, around a tensor of symc.

Two variables are equal if they are the same one, ``dtype`` is a string, ``shape`` is a vector, names can be assigned.
What a variable computes is in its ``tensor``; all functions take that out, call symc, and wrap what comes back.
"""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import symc as sc
from symc.compat.theano.settings import float_dtype
from symc.errors import InputError
from symc.ir.traverse import postorder
from symc.ir.value import Value
from symc.tensors.convert import as_tensor
from symc.tensors.leaves import leaf_of
from symc.tensors.sizes import SymbolicSize
from symc.tensors.state import variable_of

#: Variables of leaves: a leaf is one object, whichever way it is reached.
_leaves: weakref.WeakValueDictionary[Value, TensorVariable] = weakref.WeakValueDictionary()
_RANKS = ("scalar", "vector", "matrix")


class TensorType:
    """A dtype and which axes have length 1; called, it makes an input. There is one of each."""

    _made: dict[tuple[str, tuple[bool, ...]], TensorType] = {}
    dtype: str
    broadcastable: tuple[bool, ...]

    def __new__(cls, dtype: Any, broadcastable: Sequence[Any] = (), name: str | None = None) -> TensorType:
        key = np.dtype(float_dtype(dtype)).name, tuple(bool(b) for b in broadcastable)
        if key not in cls._made:
            cls._made[key] = made = object.__new__(cls)
            made.dtype, made.broadcastable = key
        return cls._made[key]

    @property
    def ndim(self) -> int:
        return len(self.broadcastable)

    def __call__(self, name: str | None = None, dtype: Any = None) -> TensorVariable:
        if dtype is not None:
            return TensorType(dtype, self.broadcastable)(name)
        shape = [1 if b else None for b in self.broadcastable]
        return wrap(sc.input(name if name and name.isidentifier() else "input", self.dtype, shape=shape), name)

    def make_variable(self, name: str | None = None) -> TensorVariable:
        return self(name)

    def clone(self, dtype: Any = None, broadcastable: Any = None) -> TensorType:
        return TensorType(dtype or self.dtype, self.broadcastable if broadcastable is None else broadcastable)

    def __repr__(self) -> str:
        plain = not any(self.broadcastable)
        known = {"(True, False)": "row", "(False, True)": "col"}.get(str(self.broadcastable))
        rank = _RANKS[self.ndim] if plain and self.ndim < len(_RANKS) else f"{self.ndim}D" if plain else \
            str(self.broadcastable)
        return f"TensorType({self.dtype}, {known or rank})"

    def __reduce__(self) -> Any:
        return TensorType, (self.dtype, self.broadcastable)


class Apply:
    """The computation of a variable: ``op`` (with its name), ``inputs`` and ``outputs``."""

    def __init__(self, op: Any, inputs: list[Any], outputs: list[Any]):
        self.op, self.inputs, self.outputs = op, inputs, outputs

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.inputs))})"


class AppliedOp:
    """An op of symc in an ``Apply``: its class is called like it, as programs ask for ``op.__class__.__name__``."""

    def __new__(cls, name: str) -> Any:
        return object.__new__(type(name.capitalize(), (_NamedOp,), {"name": name}))


class _NamedOp:
    name = ""

    def __repr__(self) -> str:
        return self.name


class TensorVariable:
    """A symbolic value. ``a == b`` is identity, and ``T.eq`` compares elements."""

    __array_priority__ = 2000

    def __init__(self, tensor: sc.Tensor, name: str | None = None):
        self.tensor, self.name = tensor, name
        self.tag = SimpleNamespace()
        self.subtensor: tuple[TensorVariable, Any] | None = None  #: what it is a part of, and the index
        self.compared = False

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self.broadcastable)

    @property
    def dtype(self) -> str:
        return str(self.tensor.dtype)

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        return tuple(isinstance(n, int) and n == 1 for n in self.tensor.shape)

    @property
    def shape(self) -> Shape:
        return Shape(self.tensor.shape)

    @property
    def size(self) -> TensorVariable:
        return wrap(as_tensor(self.tensor.size))

    @property
    def owner(self) -> Apply | None:
        v = self.tensor.value
        return None if not v.operands and v.op.name in ("input", "constant") else \
            Apply(AppliedOp(v.op.name), [wrap(sc.Tensor(o)) for o in v.operands], [self])

    @property
    def data(self) -> np.ndarray:
        return np.asarray(self.tensor)

    def get_scalar_constant_value(self) -> Any:
        return np.asarray(self.tensor)[()]

    def eval(self, inputs_to_values: Any = None) -> Any:
        """The value for values of its inputs, compiled at the first time."""
        given = inputs_to_values or {}
        compiled = self.__dict__.setdefault("_compiled", {})
        if tuple(given) not in compiled:
            compiled[tuple(given)] = sc.compile(tensor_of(self), [plain(k) for k in given])
        return compiled[tuple(given)](*given.values())

    def __getitem__(self, index: Any) -> TensorVariable:
        out = TensorVariable(self.tensor[plain(index)])
        out.subtensor = (self, index)
        return out

    def __iter__(self) -> Iterator[TensorVariable]:
        return map(wrap, iter(self.tensor))

    def __len__(self) -> int:
        return len(self.tensor)

    def __bool__(self) -> bool:
        if self.compared:
            raise TypeError("Variables do not support boolean operations: T.switch chooses by elements, ifelse by one")
        return True

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return self.tensor.__array__(*args, **kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return wrapped(self.tensor.__array_ufunc__(ufunc, method, *plain(inputs), **kwargs))

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return wrapped(func(*plain(args), **plain(kwargs)))

    def __reduce__(self) -> Any:
        return _unpickled, (self.tensor, self.name)

    def __repr__(self) -> str:
        v = self.tensor.value
        return self.name or (v.op.name if v.operands else f"<{self.type}>") + ("" if not v.operands else ".0")

    def __hash__(self) -> int:
        return id(self)


class Shape(TensorVariable):
    """The shape of a value, a vector of int64. Its elements are sizes, which compute no data."""

    def __init__(self, sizes: Sequence[Any]):
        self.sizes, self.name, self.tag, self.subtensor, self.compared = tuple(sizes), None, SimpleNamespace(), None, \
            False

    @property
    def tensor(self) -> sc.Tensor:  # type: ignore[override]
        return sc.asarray([sc.asarray(n) for n in self.sizes]) if self.sizes else sc.zeros(0, "int64")

    def __getitem__(self, index: Any) -> TensorVariable:
        if isinstance(index, slice) and all(i is None or isinstance(i, int) for i in
                                            (index.start, index.stop, index.step)):
            return Shape(self.sizes[index])
        return wrap(as_tensor(self.sizes[index])) if isinstance(index, int) else super().__getitem__(index)

    def __iter__(self) -> Iterator[TensorVariable]:
        return (self[i] for i in range(len(self.sizes)))

    def __len__(self) -> int:
        return len(self.sizes)

    def __add__(self, other: Any) -> Any:
        return Shape(self.sizes + other.sizes) if isinstance(other, Shape) and len(other) != len(self) else \
            TensorVariable.__add__(self, other)  # type: ignore[operator]

    def __reduce__(self) -> Any:
        return wrap, (self.tensor,)


class SharedVariable(TensorVariable):
    """State. Its sizes are open, as in Theano: ``set_value`` may change them, and 1 is not broadcast unless declared.
    ``default_update``: its new value in every function that uses it and does not say another."""

    tensor: sc.SharedVariable

    @property
    def default_update(self) -> Any:
        return wrap(next_value(self.tensor))

    @default_update.setter
    def default_update(self, value: Any) -> None:
        _updating[self.tensor.value] = lambda state: tensor_of(value)

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        return self.tensor.get_value(borrow)

    def set_value(self, new_value: Any, borrow: bool = False) -> None:
        self.tensor.set_value(new_value, borrow)

    @property
    def container(self) -> SimpleNamespace:
        return SimpleNamespace(value=self.get_value(), data=self.get_value())

    def zero(self) -> None:
        self.set_value(np.zeros_like(self.get_value()))

    def __reduce__(self) -> Any:
        return _unpickled, (self.tensor, self.name, type(self), _updating.get(self.tensor.value))


#: What becomes of states by default, for functions that find them in a graph: as long as the state is anywhere.
_updating: weakref.WeakKeyDictionary[Value, Callable[[sc.Tensor], sc.Tensor]] = weakref.WeakKeyDictionary()


def next_value(state: sc.Tensor) -> sc.Tensor | None:
    """The value that replaces a state in a function that says nothing else; None for itself."""
    update = _updating.get(state.value)
    return None if update is None else update(state)


def updating(variable: SharedVariable, update: Callable[[sc.Tensor], sc.Tensor]) -> SharedVariable:
    """A state that is replaced by a function of it in every function that uses it."""
    _updating[variable.tensor.value] = update
    return variable


def _unpickled(tensor: sc.Tensor, name: str | None, cls: type = TensorVariable, update: Any = None) -> TensorVariable:
    found = _leaves.get(tensor.value)
    if found is None:
        found = cls(tensor, name)
        if tensor.value.op.name == "input":
            remembered(found)
    if update is not None:
        _updating[tensor.value] = update
    return found


def shared(value: Any, name: str | None = None, strict: bool = False, allow_downcast: Any = None,
           borrow: bool = False, broadcastable: Sequence[bool] | None = None, target: Any = None) -> SharedVariable:
    """A state that holds ``value``; of any later size, but for the axes that ``broadcastable`` declares to be 1."""
    if isinstance(value, TensorVariable | sc.Tensor):
        raise TypeError("Shared variables are made of arrays, not of symbolic values")
    array = sc.asarray(value) if not isinstance(value, np.ndarray | np.generic) else value
    ones = broadcastable or (False,) * array.ndim
    state = sc.shared(value, name, borrow=borrow, shape=[1 if one else None for one in ones])
    return remembered(SharedVariable(state, name))


def remembered(variable: Any) -> Any:
    """A variable of a leaf, which is found again by its value."""
    _leaves[variable.tensor.value] = variable
    return variable


def wrap(tensor: Any, name: str | None = None) -> Any:
    """The variable around a tensor; of a leaf always the same. What is no tensor is returned."""
    if isinstance(tensor, SymbolicSize):
        return TensorVariable(as_tensor(tensor))
    if not isinstance(tensor, sc.Tensor):
        return tensor
    if tensor.value.op.name != "input":
        return TensorVariable(tensor, name)
    found = _leaves.get(tensor.value)
    if found is None and isinstance(tensor, sc.SharedVariable):
        return remembered(SharedVariable(tensor, tensor.name or None))
    return remembered(TensorVariable(tensor, name)) if found is None else found


def wrapped(tree: Any) -> Any:
    """A nest of tensors as one of variables; tuples become lists."""
    if isinstance(tree, tuple | list):
        return [wrapped(t) for t in tree]
    return wrap(tree)


def plain(item: Any) -> Any:
    """An argument as symc takes it: tensors for variables, sizes for shapes. A float promotes like Python's."""
    if isinstance(item, Shape):
        return item.sizes
    if isinstance(item, TensorVariable):
        return item.tensor
    if isinstance(item, float):
        return float(item)
    if isinstance(item, tuple | list):
        return type(item)(plain(i) for i in item) if type(item) in (tuple, list) else tuple(plain(i) for i in item)
    if isinstance(item, slice):
        return slice(plain(item.start), plain(item.stop), plain(item.step))
    return {k: plain(v) for k, v in item.items()} if type(item) is dict else item


def lifted(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of symc on variables."""
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapped(fn(*plain(args), **plain(kwargs)))
    call.__name__ = call.__qualname__ = getattr(fn, "__name__", "call")
    call.__doc__ = fn.__doc__
    return call


def tensor_of(item: Any, ndim: int | None = None) -> sc.Tensor:
    """Anything that can be a value as a tensor. Raises for a value of another rank."""
    t = as_tensor(item.tensor if isinstance(item, TensorVariable) else plain(item))
    if ndim is not None and t.ndim != ndim:
        raise InputError(f"a value with {ndim} axes is asked for", values=[t.describe()])
    return t


def states_in(values: Sequence[Any]) -> list[sc.SharedVariable]:
    """The states that values are made of."""
    return [variable_of(leaf_of(v).shared) for v in postorder([tensor_of(v).value for v in values])
            if v.op.name == "input" and leaf_of(v).role == "state"]


def _operator(name: str, compares: bool = False) -> Callable[..., Any]:
    method = getattr(sc.Tensor, name)

    def call(self: TensorVariable, *others: Any) -> Any:
        found = method(self.tensor, *[o.tensor if isinstance(o, TensorVariable) else plain(o) for o in others])
        out = wrapped(found)
        if compares and isinstance(out, TensorVariable):
            out.compared = True
        return out
    call.__name__ = name
    return call


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split():
    for _whole in (f"__{_name}__", f"__r{_name}__"):
        setattr(TensorVariable, _whole, _operator(_whole))
for _whole in "__neg__ __pos__ __invert__ __abs__ __round__".split():
    setattr(TensorVariable, _whole, _operator(_whole))
for _whole in "__lt__ __le__ __gt__ __ge__".split():
    setattr(TensorVariable, _whole, _operator(_whole, compares=True))
