"""Deferred expressions: what is written over variables of unknown dtype or rank, recorded and typed later.

A ``Deferred`` is a function with arguments, some of them deferred. Nothing is known about its type, so nothing is
checked; ``instantiate`` replays the expression on typed tensors, once per signature that a function is called with,
and errors then carry the line on which the expression was written. This is not the IR: values of the IR are typed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError, SymbolicValueError, SymcError
from symc.ir import location
from symc.ir.location import Loc
from symc.ir.value import next_serial
from symc.notebook import Shown
from symc.tensors.callsite import caller


def _call(fn: Any, *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)


def _reflected(fn: Callable) -> Callable[..., Any]:
    def call(self: Any, other: Any) -> Any:
        return Deferred(fn, (other, self))
    return call


def _direct(fn: Callable) -> Callable[..., Any]:
    def call(self: Any, *others: Any) -> Any:
        return Deferred(fn, (self, *others))
    return call


class Recorded(Shown):
    """Base of what records calls of public functions instead of having them run: see
    ``symc.tensors.public.located``."""

    __slots__ = ()

    def record(self, fn: Callable[..., Any], args: tuple, kwargs: Mapping[str, Any]) -> Any:
        """The recorded call."""
        raise NotImplementedError

    @property
    def not_an_operand(self) -> tuple[str, str]:
        """The message, with help, where this meets an operation on values."""
        return "a recorded value is used in a graph", "take its array: .data, which is a constant there"


class Deferred(Recorded):
    """``fn(*args, **kwargs)``, to be evaluated when the types of the variables are known. Compare with ``is``.

    A variable is a Deferred without ``fn``; it has a ``name``, what is known of its ``dtype`` and rank,
    and perhaps a ``default`` value.
    """

    __slots__ = ("__weakref__", "args", "default", "fn", "known_dtype", "kwargs", "loc", "name", "serial")
    __array_priority__ = 2000
    becomes: type  #: the class of what it is when it is typed; ``tensor`` says it

    def __init__(self, fn: Callable[..., Any] | None, args: tuple = (), kwargs: Mapping[str, Any] | None = None, *,
                 name: str = "", dtype: Any = None, loc: Loc | None = None, default: Any = None):
        self.fn, self.args, self.kwargs = fn, _as_now(args), _as_now(dict(kwargs or {}))
        self.name, self.known_dtype, self.default = name, dtype, default
        self.loc = loc or caller()
        self.serial = next_serial()

    def record(self, fn: Callable[..., Any], args: tuple, kwargs: Mapping[str, Any]) -> Deferred:
        return Deferred(fn, args, kwargs, loc=caller())

    @property
    def is_variable(self) -> bool:
        return self.fn is None

    def __repr__(self) -> str:
        if self.is_variable:
            return f"Variable({self.name!r})"
        return f"<deferred {getattr(self.fn, '__name__', self.fn)} : type unknown>"

    # --- what Python does with values ---------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in _attributes():
            raise AttributeError(f"a deferred value has no attribute {name!r}")
        return Deferred(getattr, (self, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Deferred:
        return Deferred(_call, (self, *args), kwargs)

    def __getitem__(self, index: Any) -> Deferred:
        return Deferred(operator.getitem, (self, index))

    def __bool__(self) -> bool:
        raise self._unknown("the truth", "use sc.where(condition, x, y), sc.cond or sc.while_loop")

    def __float__(self) -> float:
        raise self._unknown("the number", "compile the expression and call the function")

    __int__ = __index__ = __complex__ = __float__  # type: ignore[assignment]

    def __len__(self) -> int:
        raise self._unknown(
            "the length", "use x.shape[0]; or declare the rank: sc.Variable(name, dtype=..., shape=...)"
        )

    def __iter__(self) -> Iterator:
        raise self._unknown(
            "the length", "index it, or use sc.scan; or declare the shape: sc.Variable(name, dtype=..., shape=...)"
        )

    def __contains__(self, item: object) -> bool:
        raise self._unknown("the content", "use sc.any(x == item)")

    def _unknown(self, what: str, help: str) -> SymcError:
        return SymbolicValueError(
            f"{what} of a deferred value is not known while the graph is built",
            values=[(self.name or "value", "type unknown", self.loc)],
            where=[caller()],
            help=help,
        )

    # --- what NumPy does with values ----------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Deferred:
        fn = ufunc if method == "__call__" else getattr(ufunc, method)
        return Deferred(fn, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple, kwargs: dict) -> Deferred:
        return Deferred(func, args, kwargs)

    # --- operators ----------------------------------------------------------------------------------------------------

    __add__, __radd__ = _direct(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _direct(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _direct(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _direct(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _direct(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _direct(operator.mod), _reflected(operator.mod)
    __pow__, __rpow__ = _direct(operator.pow), _reflected(operator.pow)
    __matmul__, __rmatmul__ = _direct(operator.matmul), _reflected(operator.matmul)
    __and__, __rand__ = _direct(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _direct(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _direct(operator.xor), _reflected(operator.xor)
    __lshift__, __rlshift__ = _direct(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _direct(operator.rshift), _reflected(operator.rshift)
    __divmod__, __rdivmod__ = _direct(divmod), _reflected(divmod)
    __eq__ = _direct(operator.eq)  # type: ignore[assignment]
    __ne__ = _direct(operator.ne)  # type: ignore[assignment]
    __lt__ = _direct(operator.lt)
    __le__ = _direct(operator.le)
    __gt__ = _direct(operator.gt)
    __ge__ = _direct(operator.ge)
    __neg__ = _direct(operator.neg)
    __pos__ = _direct(operator.pos)
    __invert__ = _direct(operator.invert)
    __abs__ = _direct(operator.abs)
    __round__ = _direct(round)
    __hash__ = object.__hash__


def _attributes() -> frozenset[str]:
    """Attributes of a tensor, which may be asked of a value that will be one."""
    return frozenset(n for n in dir(Deferred.becomes) if not n.startswith("_")) | {
        "set",
        "add",
        "multiply",
        "divide",
        "power",
        "max",
        "min",
    }


# --- finding and replaying --------------------------------------------------------------------------------------------


def recorder_in(item: Any) -> Recorded | None:
    """The recorder that an argument is, or holds in lists, tuples, dicts or slices."""
    if isinstance(item, Recorded):
        return item
    if isinstance(item, list | tuple):
        for i in item:
            found = recorder_in(i)
            if found is not None:
                return found
    elif isinstance(item, dict):
        return recorder_in(tuple(item.values()))
    elif isinstance(item, slice):
        return recorder_in((item.start, item.stop, item.step))
    return None


def contains_deferred(item: Any) -> bool:
    """True if an argument is, or holds in lists, tuples, dicts or slices, a deferred value."""
    return isinstance(recorder_in(item), Deferred)


def _as_now(item: Any) -> Any:
    """An argument as it is now: arrays, and lists and dicts, may be written to before the expression is typed."""
    if isinstance(item, np.ndarray):
        return item.copy()
    if type(item) in (list, tuple):
        return type(item)(map(_as_now, item))
    if type(item) is dict:
        return {k: _as_now(v) for k, v in item.items()}
    return item


def _children(item: Any) -> Iterable[Deferred]:
    """The deferred values directly inside an argument."""
    if isinstance(item, Deferred):
        yield item
    elif isinstance(item, list | tuple):
        for i in item:
            yield from _children(i)
    elif isinstance(item, dict):
        yield from _children(tuple(item.values()))
    elif isinstance(item, slice):
        yield from _children((item.start, item.stop, item.step))


def _fill(item: Any, done: Mapping[Deferred, Any]) -> Any:
    """An argument with its deferred values replaced."""
    return mapped(lambda i: done[i] if isinstance(i, Deferred) else i, item)


def mapped(f: Callable[[Any], Any], item: Any) -> Any:
    """An argument with ``f`` of everything that is in its lists, tuples, dicts and slices, in order."""
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*[mapped(f, i) for i in item])
    if isinstance(item, list | tuple):
        return type(item)([mapped(f, i) for i in item])
    if isinstance(item, dict):
        return {k: mapped(f, v) for k, v in item.items()}
    if isinstance(item, slice):
        return slice(mapped(f, item.start), mapped(f, item.stop), mapped(f, item.step))
    return f(item)


def _postorder(roots: Any) -> list[Deferred]:
    out: list[Deferred] = []
    seen: set[int] = set()
    stack: list[tuple[Deferred, bool]] = [(d, False) for d in list(_children(roots))[::-1]]
    while stack:
        d, ready = stack.pop()
        if ready:
            out.append(d)
        elif id(d) not in seen:
            seen.add(id(d))
            stack.append((d, True))
            stack.extend((c, False) for c in list(_children((d.args, d.kwargs)))[::-1])
    return out


def free_variables(outputs: Any) -> list[Deferred]:
    """The variables of a nest of values, in order of creation."""
    return sorted((d for d in _postorder(outputs) if d.is_variable), key=lambda d: d.serial)


def _replay(d: Deferred, done: Mapping[Deferred, Any]) -> Any:
    """The expression on the values of its arguments, as if it were written with them on its own line."""
    assert d.fn is not None
    with location.at([d.loc]):
        try:
            return d.fn(*_fill(d.args, done), **_fill(d.kwargs, done))
        except SymcError as e:
            e.attach((), [d.loc])
            raise


def instantiate(outputs: Sequence[Any], mapping: Mapping[Deferred, Any]) -> list[Any]:
    """The outputs with every deferred value replaced by what its expression gives on the variables' values.

    ``mapping`` gives a tensor for every variable. Values may be shared between expressions: each is evaluated once.
    Runs with an explicit stack. Raises InputError for a variable without a value.
    """
    done: dict[Deferred, Any] = {}
    for d in _postorder(outputs):
        if d in mapping:
            done[d] = mapping[d]
        elif d.is_variable:
            raise InputError(f"variable {d.name!r} has no value", values=[(d.name, "type unknown", d.loc)])
        else:
            done[d] = _replay(d, done)
    return [_fill(o, done) for o in outputs]


def held_tensors(outputs: Any) -> list[Any]:
    """The tensors that a nest of values holds, directly or in what its deferred values were made from."""
    out: dict[int, Any] = {}
    stack = [outputs, *[(d.args, d.kwargs) for d in _postorder(outputs)]]
    while stack:
        item = stack.pop()
        if isinstance(item, Deferred.becomes):
            out[id(item)] = item
        elif isinstance(item, list | tuple):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, slice):
            stack.extend((item.start, item.stop, item.step))
    return list(out.values())
