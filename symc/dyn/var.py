"""Variables of define-by-run: arrays that remember how they were made."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from sys import _getframe, getrefcount
from typing import Any

import numpy as np

from symc.dyn import programs
from symc.dyn.recording import (
    RETAINED,
    USUAL,
    AnyCall,
    Call,
    Leaf,
    Node,
    any_call,
    array_leaf,
    mode,
    next_serial,
    retained,
    uses,
)
from symc.dyn.running import backward, force, one
from symc.errors import GradientError, InputError
from symc.tensors.deferred import Recorded
from symc.tensors.tensor import Tensor
from symc.transforms.autodiff import grad as symbolic_grad


class Var(Recorded):
    """An array on which calls are recorded. ``Var(a)`` holds a copy of ``a``.

    ``data``: the array; what a call gave is read-only, what was given by the user may be written to, which does not
    change what has been recorded. ``grad``: what ``backward`` has added up, or None. ``requires_grad``: False for what
    needs no gradient. Operators, ``sc.*`` and NumPy's functions take variables beside arrays and numbers.

    >>> x = dy.Var(np.array([5.0]))
    >>> y = x**2 + x
    >>> y.backward()
    >>> y.data, x.grad
    (array([30.]), array([11.]))
    """

    __slots__ = ("__weakref__", "_hooks", "_name", "_node", "grad")
    grad: np.ndarray | None
    _node: Node
    _hooks: tuple[Callable[[np.ndarray], np.ndarray | None], ...]
    __array_priority__ = 3000

    def __init__(self, data: Any, requires_grad: bool = True, name: str = ""):
        a = np.array(data._value() if isinstance(data, Var) else data)
        kind = a.dtype.kind
        if kind not in "fciub":
            raise InputError(f"a variable of dtype {a.dtype}", help="give numbers")
        self._node = node = Leaf(a, requires_grad and kind in "fc")
        node.var = weakref.ref(self)
        self._name, self.grad, self._hooks = name, None, ()

    @property
    def name(self) -> str:
        """The name that it was given, or ""."""
        return self._name

    def _recorded(self) -> Node:
        """The node that calls are recorded on. An array that somebody outside may write to is copied for it."""
        node = self._node
        if type(node) is Leaf and node.exposed:
            if getrefcount(node.value) > 2:
                copy = array_leaf(node.value.copy(), node.needs)
                copy.var = node.var
                return copy
            node.exposed = False
        return node

    # --- the array ----------------------------------------------------------------------------------------------------

    @property
    def data(self) -> Any:
        """The array. Reading it runs what has been recorded."""
        node = self._node
        if node.value is None:
            force(node)
            return node.value
        if type(node) is Leaf and node.value.flags.writeable:
            if getrefcount(self._node) > 3:  # (self, here, the call) a recording uses it, and keeps what it was
                node.value, mine = node.value.copy(), node.value
                self._node = new = array_leaf(mine, node.needs)
                new.var, node.exposed = node.var, False
                node = new
            node.exposed = True
        return node.value

    @data.setter
    def data(self, value: Any) -> None:
        node = self._node
        if node.value is value and node.fn is None:
            return
        new = array_leaf(np.array(value), bool(node.needs))
        new.var = weakref.ref(self)
        self._node = new

    @property
    def requires_grad(self) -> bool:
        """True if a gradient may be asked of it."""
        return bool(self._node.needs)

    def _value(self) -> Any:
        """The array, for reading it at once."""
        node = self._node
        if node.value is None:
            force(node)
        return node.value

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value().shape

    @property
    def dtype(self) -> np.dtype:
        return self._value().dtype

    @property
    def ndim(self) -> int:
        return self._value().ndim

    @property
    def size(self) -> int:
        return self._value().size

    def item(self) -> Any:
        """The number of an array of one element."""
        return self._value().item()

    def tolist(self) -> Any:
        """The numbers, in nested lists."""
        return self._value().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._value(), dtype=dtype)

    def __repr__(self) -> str:
        return f"Var({np.array2string(np.asarray(self._value()), separator=', ', prefix='Var(')})"

    def __len__(self) -> int:
        return len(self._value())

    def __iter__(self) -> Iterator[Var]:
        return iter([self[k] for k in range(len(self._value()))])

    def __bool__(self) -> bool:
        return bool(self._value())

    def __float__(self) -> float:
        return float(self._value())

    def __int__(self) -> int:
        return int(self._value())

    def __index__(self) -> int:
        return operator.index(self._value())

    def __complex__(self) -> complex:
        return complex(self._value())

    def __reduce__(self) -> tuple:
        return _restored, (np.asarray(self._value()), self.requires_grad, self.name, self.grad)

    __hash__ = object.__hash__

    # --- gradients ----------------------------------------------------------------------------------------------------

    def backward(self, grad: Any = None, retain_graph: bool | None = None) -> None:
        """Add the gradient of this variable to ``grad`` of all leaves that it was made of, and of variables for which
        ``retain_grad`` was called. ``grad``: that of this variable, needed unless it is one number. ``retain_graph``
        changes nothing: what was recorded stays as long as a variable needs it.

        Raises GradientError where nothing here needs a gradient.
        """
        root = self._node
        if not root.needs:
            raise GradientError("backward: the variable was made of nothing that needs a gradient",
                                help="Var(a, requires_grad=True), outside of no_backprop_mode(), of floats")
        backward(root, None if grad is None else np.asarray(grad.data if isinstance(grad, Var) else grad))

    def cleargrad(self) -> None:
        """Forget the gradient."""
        self.grad = None

    def retain_grad(self) -> None:
        """Have ``backward`` give this variable a gradient too, though it is no leaf."""
        node = self._node
        if node.needs and node.fn is not None:
            node.needs, retained[node] = RETAINED, weakref.ref(self)

    def add_hook(self, hook: Callable[[np.ndarray], np.ndarray | None]) -> None:
        """Have ``backward`` call ``hook(g)`` before it adds a gradient here, and add what that returns, unless None."""
        self._hooks = (*self._hooks, hook)

    def unchain_backward(self) -> None:
        """Make this variable and all that it was made of leaves: nothing goes back beyond them (truncated BPTT)."""
        force(self._node)
        for node in uses(self._node, True):
            if node.fn is not None and type(node.value) is np.ndarray:
                node.forget()
                node.needs = False

    def detach(self) -> Var:
        """The same array, without what it was made of."""
        return Var(self._value(), requires_grad=False)

    # --- calls --------------------------------------------------------------------------------------------------------

    def record(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Var:
        """A call that one of whose arguments is this variable."""
        return _shown(any_call(fn, args, kwargs))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Var:
        return self.record(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple, kwargs: dict) -> Var:
        return self.record(func, args, kwargs)

    def __getitem__(self, index: Any) -> Var:
        return self.record(operator.getitem, (self, index), {})

    def __getattr__(self, name: str) -> Any:
        if name in _UNSET:
            return _UNSET[name]
        found = None if name.startswith("_") else getattr(Tensor, name, None)
        if found is None:
            raise AttributeError(f"a variable has no attribute {name!r}")
        if name == "at":
            return _At(self)
        if callable(found):
            return functools.partial(_called, _method(name), self)
        return self.record(_attribute(name), (self,), {})


_new = object.__new__
#: What the variable of a call has until it is given something else.
_UNSET: dict[str, Any] = {"grad": None, "_hooks": (), "_name": ""}


class _At:
    """``x.at[index]``, whose methods give ``x`` with some elements replaced."""

    def __init__(self, var: Var, index: Any = None):
        self.var, self.index = var, index

    def __getitem__(self, index: Any) -> _At:
        return _At(self.var, index)

    def __getattr__(self, name: str) -> Any:
        if name not in ("set", "add", "multiply", "divide", "power", "min", "max"):
            raise AttributeError(name)
        return functools.partial(_called, _update(name), self.var, self.index)


def _called(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
    return args[0].record(fn, args, kwargs)


@functools.cache
def _method(name: str) -> Callable[..., Any]:
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


@functools.cache
def _attribute(name: str) -> Callable[[Any], Any]:
    return operator.attrgetter(name)


@functools.cache
def _update(name: str) -> Callable[..., Any]:
    return lambda x, index, value: getattr(x.at[index], name)(value)


def _restored(array: np.ndarray, needs: bool, name: str, grad: Any) -> Var:
    out = Var(array, needs, name)
    out.grad = grad
    return out


def _shown(node: Node) -> Var:
    """The variable of a call that is recorded now, or of an array."""
    differentiable, eagerly = mode.get()
    if type(node) is not Leaf:
        node.needs = differentiable and any(p.needs for p in node.parents)
    out = _new(Var)
    out._node = node
    if eagerly:
        force(node)
    return out


def _operator(fn: Callable[..., Any], swapped: bool = False) -> Callable[..., Any]:
    """A method for an operator with two operands."""
    whole, real, both, args = (fn, int, swapped), (fn, float, swapped), (fn, Node, Node), (Node, Node)

    def call(self: Var, other: Any) -> Var:
        node: Call
        a = self._node if not self._node.exposed else self._recorded()
        kind = type(other)
        if kind is int:
            node = _new(Call)
            node.args, node.parents, node.token = (other, Node) if swapped else (Node, other), (a,), (whole, other)
            needs = a.needs
        elif kind is Var:
            b = other._node if not other._node.exposed else other._recorded()
            node = _new(Call)
            node.args, node.parents, node.token = args, (b, a) if swapped else (a, b), both
            needs = a.needs or b.needs
        elif kind is float:
            node = _new(AnyCall)
            node.args, node.parents, node.token = (other, Node) if swapped else (Node, other), (a,), real
            node.floats, node.kwargs, needs = (other,), None, a.needs
        else:
            return self.record(fn, (other, self) if swapped else (self, other), {})
        frame = _getframe(1)
        node.fn, node.value, node.serial, node.code, node.at = fn, None, next_serial(), frame.f_code, frame.f_lasti
        out = _new(Var)
        out._node = node
        if (now := mode.get()) is USUAL:
            node.needs = needs and True
            return out
        node.needs = needs and now[0]
        if now[1]:
            force(node)
        return out

    return call


def _unary(fn: Callable[..., Any]) -> Callable[[Var], Var]:
    return lambda self: self.record(fn, (self,), {})


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift",
              "rshift"):
    _plain = _name.rstrip("_")
    setattr(Var, f"__{_plain}__", _operator(getattr(operator, _name)))
    setattr(Var, f"__r{_plain}__", _operator(getattr(operator, _name), swapped=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Var, f"__{_name}__", _operator(getattr(operator, _name)))
for _name in ("neg", "pos", "invert", "abs"):
    setattr(Var, f"__{_name}__", _unary(getattr(operator, _name)))


# --- gradients as variables -------------------------------------------------------------------------------------------


def _gradients(outputs: Any, inputs: Any, seeds: Any) -> Any:
    """The call that ``grad`` records."""
    tops = [programs.as_tensor(y) for y in outputs]
    total: list[Any] | None = None
    for y, s in zip(tops, seeds, strict=True):
        found = symbolic_grad(y, list(inputs), cotangent=one(y) if s is None else s, disconnected="zero")
        total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
    return tuple(total or ())


def grad(outputs: Var | Sequence[Var], inputs: Var | Sequence[Var], grad_outputs: Sequence[Any] | None = None,
         create_graph: bool = False) -> list[Var]:
    """Gradients of ``outputs`` by ``inputs``, as a list of variables; ``grad`` of nothing changes.

    ``grad_outputs``: gradients of the outputs, needed unless these are numbers. ``create_graph``: the gradients can be
    differentiated again.
    """
    tops, inputs = [[x] if isinstance(x, Var) else list(x) for x in (outputs, inputs)]
    seeds = [None] * len(tops) if grad_outputs is None else list(grad_outputs)
    for y in tops:
        if not y.requires_grad:
            raise GradientError("grad: an output was made of nothing that needs a gradient")
    every = tops[0].record(_gradients, (tops, list(inputs), seeds), {})
    found = [every[k] for k in range(len(inputs))]
    return found if create_graph else [g.detach() for g in found]
