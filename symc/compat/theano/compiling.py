"""``theano.function``, on ``sc.compile``."""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

import symc as sc
from symc.compat.theano.settings import config
from symc.compat.theano.variable import (
    SharedVariable,
    TensorVariable,
    next_value,
    plain,
    states_in,
    tensor_of,
    wrap,
)
from symc.errors import InputError, SymcError
from symc.ir.function import measured_names
from symc.ir.traverse import postorder
from symc.transforms.substitution import pairs


class UnusedInputError(SymcError):
    """An input that nothing is computed from."""


class In:
    """An input with a default: ``value``, an array or a state, whose value it is in calls that leave it out.
    ``mutable``: a call may overwrite the array. ``update``: what the default is replaced by after each call."""

    def __init__(self, variable: Any, name: str | None = None, value: Any = None, update: Any = None,
                 mutable: bool | None = None, strict: bool = False, allow_downcast: bool | None = None,
                 autoname: bool = True, implicit: Any = None, borrow: bool | None = None, shared: bool = False,
                 default: Any = None):
        self.variable, self.update, self.mutable = variable, update, bool(mutable)
        self.value = value if value is not None else default
        self.name = name or variable.name
        self.allow_downcast = allow_downcast


class Out:
    """An output. ``borrow`` makes no difference: results are arrays of their own."""

    def __init__(self, variable: Any, borrow: bool = False):
        self.variable = variable


class Mode:
    """A mode of compilation, of which only its name means something here."""

    #: Names of modes, in lower case and without signs, that are not the default one.
    KNOWN = {"fastcompile": "fast_compile", "debugmode": "debug", "nanguardmode": "nan_guard", "py": "reference"}

    def __init__(self, linker: Any = None, optimizer: Any = None, **options: Any):
        quick = str(optimizer) in ("None", "fast_compile") and optimizer is not None
        self.name = "FAST_COMPILE" if quick else "FAST_RUN"

    def including(self, *tags: str) -> Mode:
        return self

    excluding = including


class NanGuardMode(Mode):
    def __init__(self, nan_is_error: bool = True, inf_is_error: bool = True, big_is_error: bool = True,
                 optimizer: Any = "default", linker: Any = None):
        self.name = "NanGuardMode"


class DebugMode(Mode):
    def __init__(self, *args: Any, **options: Any):
        self.name = "DebugMode"


class MonitorMode(Mode):
    """Absent mode: there are no thunks to look at. ``f.trace`` and mode "nan_guard" see what it saw."""

    def __init__(self, *args: Any, **options: Any):
        raise NotImplementedError("MonitorMode: f.trace(*args) gives every named intermediate, mode='NanGuardMode' "
                                  "stops at the first nan, theano.printing.Print prints one value")


def get_default_mode() -> Any:
    return config.mode


def mode_name(mode: Any) -> str:
    """The mode of symc that comes nearest."""
    name = str(getattr(mode, "name", mode) or config.mode)
    return Mode.KNOWN.get(name.lower().replace("_", ""), "default")


class Function:
    """A compiled function. ``compiled`` is that of symc."""

    def __init__(self, inputs: list[In], outputs: Any, options: dict[str, Any], downcast: Any, nothing: bool,
                 compiled: Any = None):
        self.inputs, self.outputs, self.options, self.nothing = inputs, outputs, options, nothing
        self.name, self.downcast = options["name"], downcast
        self.compiled = compiled or sc.compile(outputs, [tensor_of(i.variable) for i in inputs], **options)
        self.defaults = any(i.value is not None for i in inputs)
        self.input_storage = self.trust_input = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or self.defaults:
            args = self._all(args, kwargs)
        if self.downcast or any(i.allow_downcast for i in self.inputs):
            args = tuple(np.asarray(a).astype(i.variable.dtype) if self.downcast or i.allow_downcast else a
                         for a, i in zip(args, self.inputs, strict=False)) + args[len(self.inputs):]
        found = self.compiled(*args)
        for i in self.inputs:
            if i.update is not None:
                *found, i.value = found if isinstance(found, list) else [found]
        return None if self.nothing else found

    def _all(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Arguments by position, by name, and by default."""
        left, out = dict(kwargs), list(args)
        for i in self.inputs[len(args):]:
            if i.name in left:
                out.append(left.pop(i.name))
            elif i.value is None:
                raise TypeError(f"{self.name or 'the function'}: missing required input {i.name or i.variable!r}")
            else:
                out.append(i.value.get_value() if isinstance(i.value, SharedVariable) else i.value)
        if left:
            known = ", ".join(str(i.name) for i in self.inputs)
            raise TypeError(f"{self.name or 'the function'}: no input is called {', '.join(left)}; inputs: {known}")
        return tuple(out)

    def __getitem__(self, item: Any) -> Any:
        """The value of an input with a default, or of a state, by name or variable."""
        for i in self.inputs:
            if i.variable is item or i.name == item:
                return i.value
        return self.compiled.shared[item].get_value() if isinstance(item, str) else item.get_value()

    value = container = property(lambda self: self)

    def copy(self, share_memory: bool = False, swap: Any = None, delete_updates: bool = False, name: str | None = None,
             profile: Any = None) -> Function:
        """The function on other states (``swap``), or without its updates."""
        changes = [(k.tensor, v.tensor) for k, v in (swap or {}).items()]
        options, outputs = dict(self.options, name=name or self.name), self.outputs
        options["updates"] = [] if delete_updates else [
            (dict(changes).get(k, k), sc.substitute(v, changes)) for k, v in options["updates"]]
        if changes:
            outputs = sc.substitute(outputs, changes)
        return Function(self.inputs, outputs, options, self.downcast, self.nothing)

    def free(self) -> None:
        """Nothing: memory of a call is given back after it."""

    def get_shared(self) -> list[Any]:
        return [wrap(s) for s in self.compiled.shared.values()]

    @property
    def maker(self) -> Any:
        """``maker.fgraph``: what is computed, after the optimizer: ``outputs``, ``inputs`` and ``toposort()``."""
        f = sc.parse(self.compiled.dump())
        outs = [wrap(sc.Tensor(v)) for v in f.outputs]
        order = [wrap(sc.Tensor(v)).owner for v in postorder(f.body.results) if v.operands and hasattr(v.type, "dtype")]
        graph = SimpleNamespace(outputs=outs, inputs=[i.variable for i in self.inputs], toposort=lambda: order)
        return SimpleNamespace(fgraph=graph, mode=self.options["mode"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("compiled", "maker"):
            raise AttributeError(name)
        return getattr(self.compiled, name)

    def __str__(self) -> str:
        return str(self.compiled)

    def __reduce__(self) -> Any:
        return Function, (self.inputs, self.outputs, self.options, self.downcast, self.nothing, self.compiled)


def function(inputs: Any, outputs: Any = None, mode: Any = None, updates: Any = None, givens: Any = None,
             no_default_updates: Any = False, accept_inplace: bool = False, name: str | None = None,
             rebuild_strict: bool = True, allow_input_downcast: bool | None = None, profile: Any = None,
             on_unused_input: str | None = None) -> Function:
    """A callable of ``inputs`` that computes ``outputs`` (a variable, a list or a dict) and replaces states."""
    given_inputs = [i if isinstance(i, In) else In(i) for i in _list(inputs, "inputs")]
    named, listed = isinstance(outputs, Mapping), isinstance(outputs, list | tuple)
    many: Any = {k: _tensor(v) for k, v in outputs.items()} if named else \
        [_tensor(v) for v in outputs or []] if listed or outputs is None else _tensor(outputs)
    changes = [(_state(k), tensor_of(v)) for k, v in pairs(_tuples(updates), "updates")]
    replaced = [(tensor_of(k), tensor_of(v)) for k, v in pairs(_tuples(givens), "givens")]
    fed_back = [tensor_of(i.update) for i in given_inputs if i.update is not None]
    if fed_back:
        many = [*(many if isinstance(many, list) else [many]), *fed_back]
    found = list(many.values()) if isinstance(many, dict) else many if isinstance(many, list) else [many]
    values = [*found, *[v for _, v in changes], *[v for _, v in replaced]]
    if no_default_updates is not True:
        kept = {_state(s).value for s in (no_default_updates or [])} | {s.value for s, _ in changes}
        changes += [(s, new) for s in states_in(values) if s.value not in kept and (new := next_value(s)) is not None]
    _check_used(given_inputs, [*values, *[v for _, v in changes], *[k for k, _ in replaced]],
                on_unused_input or config.on_unused_input)
    options: dict[str, Any] = dict(
        updates=changes, givens=replaced, mode=mode_name(mode), name=name,
        donate=tuple(tensor_of(i.variable) for i in given_inputs if i.mutable))
    return Function(given_inputs, many, options, allow_input_downcast, outputs is None)


def _list(items: Any, what: str) -> list[Any]:
    if not isinstance(items, list | tuple):
        raise TypeError(f"{what} of a function are a list, not {type(items).__name__}")
    return list(items)


def _tuples(items: Any) -> Any:
    return items if items is None or isinstance(items, Mapping) else [tuple(p) for p in items]


def _tensor(item: Any) -> sc.Tensor:
    return sc.asarray(tensor_of(item.variable if isinstance(item, Out) else item))


def _state(item: Any) -> Any:
    if not isinstance(item, SharedVariable):
        raise TypeError(f"updates replace shared variables, not {item!r}")
    return item.tensor


def _check_used(inputs: list[In], values: list[Any], policy: str) -> None:
    if policy == "ignore":
        return
    roots = [tensor_of(v).value for v in values]
    used = set(postorder([*roots, *[n.value for n in measured_names(roots)]])) | {
        i.variable.tensor.value for i in inputs if i.update}
    for i in inputs:
        if not isinstance(i.variable, TensorVariable):
            raise TypeError(f"an input of a function is a variable, not {type(i.variable).__name__}")
        if i.variable.tensor.value not in used:
            message = f"theano.function was asked to create a function computing outputs given certain inputs, but " \
                f"the provided input {i.name or i.variable!r} is not part of the graph"
            if policy == "raise":
                raise UnusedInputError(message, values=[i.variable.tensor.describe()],
                                       help="on_unused_input='ignore' or 'warn'")
            warnings.warn(message, stacklevel=3)


__all__ = ["InputError", "plain"]
