"""Blocks: cells written once, for one instance, in ordinary symbolic code.

A block is traced when it is first used, on leaves of the types of its ports, and the trace is batched: what comes out
is one graph over all instances that run together, whatever their number.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError, SymcError, did_you_mean
from symc.fold.ragged import Kids, Ragged
from symc.fold.types import Array, Attr, Key, Many, Record, Struct, Type
from symc.grad import vmap as vmap_values
from symc.ir.dim import Size, size_name
from symc.ir.record import dataclass
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.tensors.callsite import caller, user_code
from symc.tensors.convert import as_tensor, convert
from symc.tensors.leaves import Leaf, register_leaf
from symc.tensors.tensor import Tensor

#: How many instances of a block there are, and values at its ragged port.
N, M = size_name("n"), size_name("m")
#: What a leaf or result of a block is: ("port", port, field), ("attr", port), ("segment",), and what ``split`` adds.
Tag = tuple


@dataclass(frozen=True)
class Port:
    """``kind``: "one" value, "many" values, an "attr", or a "key"."""

    name: str
    kind: str
    type: Any


@dataclass(frozen=True, eq=False)
class Batched:
    """A block over ``N`` instances, with ``M`` values at its ragged port all in all. ``leaves`` and ``outputs`` (one a
    field of the type) have a leading axis of one of these."""

    leaves: Mapping[Tag, Value]
    outputs: tuple[Value, ...]


class Block:
    """A cell with typed ports and one output. Record it, ``g.node(left, right)``, or use it as a combinator, which
    combinators.py makes of it: ``node(tree[0], tree[1])``, ``node >> scores``."""

    __call__: Any
    __rshift__: Any
    also: Any

    def __init__(self, fn: Callable[..., Any], out: Type | None, ports: tuple[Port, ...], loss: bool = False):
        self.fn, self.ports, self.loss = fn, ports, loss
        if out is not None:
            self.out = out
        self.name = fn.__name__.strip("<>")
        self.loc = caller()
        self.ones = tuple(p for p in ports if p.kind == "one")
        self.many = next((p for p in ports if p.kind == "many"), None)
        self.attrs = tuple(p for p in ports if p.kind == "attr")
        self.keys = tuple(p for p in ports if p.kind == "key")
        self.asked = tuple(p for p in ports if p.kind != "key")
        if len(self.keys) > 1:
            raise InputError(f"block {self.name} has several ports of fd.Key", where=[self.loc],
                             help="one is enough: a, b = sc.random.split(key)")
        if sum(p.kind == "many" for p in ports) > 1:
            raise InputError(f"block {self.name} has several ports of fd.Many", where=[self.loc],
                             help="one is possible; other values can be collected by a block of their own")

    def __repr__(self) -> str:
        inner = ", ".join(f"{p.name}: {'Many ' * (p.kind == 'many')}{p.type}" for p in self.ports)
        return f"{self.name}({inner}) -> {self.__dict__.get('out', 'a number')}"

    @cached_property
    def out(self) -> Type:
        """The type of the result. Of a loss it is a number of the dtype that the body gives."""
        self.batched  # noqa: B018 - which says
        return self.__dict__["out"]

    @property
    def values(self) -> tuple[Port, ...]:
        """The ports that take values, in the order in which arguments are encoded: the ragged one comes last."""
        return (*self.ones, *([self.many] if self.many else []))

    # --- tracing ------------------------------------------------------------------------------------------------------

    @cached_property
    def batched(self) -> Batched:
        """The graph over all instances."""
        leaves: dict[Tag, Value] = {}
        single: list[tuple[Value, Value]] = []  # leaf of one instance, and of all
        element: list[tuple[Value, Value]] = []
        given: dict[str, Any] = {}
        for p in self.ports:
            pairs = element if p.kind == "many" else single
            fields = {}
            for key, a in p.type.fields.items():
                title = f"{p.name}.{key}" if key else p.name
                one = register_leaf(fresh_input(TensorType(a.dtype, a.shape)), Leaf(title, self.loc, role="body"))
                every = self._leaf(title, a.dtype, (M if p.kind == "many" else N, *a.shape))
                leaves[("attr", p.name) if p.kind in ("attr", "key") else ("port", p.name, key)] = every
                pairs.append((one, every))
                fields[key] = Tensor(one)
            given[p.name] = self._argument(p, fields)
        if self.many:
            leaves["segment",] = self._leaf("segment", np.int64, (M,))
        results = self._results(given)
        if self.many is None:
            return Batched(leaves, tuple(vmap_values(results, [a for a, _ in single], [b for _, b in single], N)))
        ragged = Ragged(self.name, single, element, N, leaves["segment",])
        ragged.reductions = given[self.many.name]._reductions
        return Batched(leaves, tuple(ragged.batch(results)))

    def _leaf(self, name: str, dtype: Any, shape: tuple[Size, ...]) -> Value:
        return register_leaf(fresh_input(TensorType(np.dtype(dtype), shape)), Leaf(name.replace(".", "_"), self.loc))

    def _argument(self, p: Port, fields: Mapping[str, Tensor]) -> Any:
        what = f"block {self.name}: {p.name}"
        if p.kind == "many":
            return Kids(what, p.type, fields)
        return fields[""] if isinstance(p.type, Array) else Record(what, p.type, fields)

    def _results(self, given: Mapping[str, Any]) -> list[Value]:
        """The fields of what the body returns, checked against the type of the output."""
        try:
            with user_code():
                found = self.fn(**given)
        except SymcError as e:
            e.attach((), (self.loc,))
            e.add_note(f"in the body of block {self!r}")
            raise
        if "out" not in self.__dict__:
            known = isinstance(found, Tensor) and not found.weak and found.dtype.kind == "f"
            self.out = Array(found.dtype if known else "float32")
        fields = self.out.fields
        if isinstance(self.out, Array):
            found = {"": found}
        elif isinstance(found, tuple | list) and len(found) == len(fields):
            found = dict(zip(fields, found))
        if not isinstance(found, Mapping):
            raise InputError(f"block {self.name} returns {type(found).__name__}, its output is {self.out}",
                             where=[self.loc], help=f"return dict({', '.join(f'{k}=...' for k in fields)})")
        for key in found:
            if key not in fields:
                raise InputError(f"block {self.name} returns {key!r}, which {self.out} has not", where=[self.loc],
                                 help=did_you_mean(str(key), list(fields)))
        for key in fields:
            if key not in found:
                raise InputError(f"block {self.name} returns no {key!r}, its output is {self.out}", where=[self.loc])
        return [self._field(key, fields[key], found[key]) for key in fields]

    def _field(self, key: str, want: Array, found: Any) -> Value:
        title = f"block {self.name}: result{' ' + repr(key) if key else ''}"
        try:
            t = as_tensor(found)
        except SymcError:
            raise InputError(f"{title} is not an array but {type(found).__name__}", where=[self.loc]) from None
        if t.weak and t.dtype != want.dtype:
            t = Tensor(convert(t.value, want.dtype))
        if t.dtype != want.dtype or t.value.type.shape != want.shape:
            raise ShapeError(f"{title} is {t.value.type}, its type says {want}", values=[t.describe(title)],
                             where=[self.loc])
        return t.value


def block(fn: Callable[..., Any] | None = None, *, out: Type | None = None, **ports: Any) -> Any:
    """``@fd.block(out=State)``: a block of a function of one instance.

    Ports are the parameters of the function, typed by annotations (``left: State``, ``word: fd.Attr(fd.i32)``,
    ``kids: fd.Many(State)``) or by keywords of the same names. ``out``: the type of the result; of a struct the
    function returns a dict of its fields, or a tuple in their order.
    """
    if fn is None:
        return lambda fn: block(fn, out=out, **ports)
    return Block(fn, _type(out, f"block {fn.__name__}: out"), _ports(fn, ports))


def loss(fn: Callable[..., Any] | None = None, **ports: Any) -> Any:
    """``@fd.loss``: a block whose result, a number, is added to the loss of the minibatch."""
    if fn is None:
        return lambda fn: loss(fn, **ports)
    return Block(fn, None, _ports(fn, ports), loss=True)


def _type(t: Any, what: str) -> Type:
    if not isinstance(t, Array | Struct):
        raise InputError(f"{what} must be a type, not {t!r:.40}", where=[caller()],
                         help='fd.Struct("State", h=fd.f32[150], c=fd.f32[150]), or an array such as fd.f32[5]')
    return t


def _ports(fn: Callable[..., Any], given: Mapping[str, Any]) -> tuple[Port, ...]:
    try:
        parameters = inspect.signature(fn, eval_str=True).parameters
    except NameError as e:
        raise InputError(f"block {fn.__name__}: the annotations name {e.name!r}, which is not global", where=[caller()],
                         help="give the types of ports as keywords: fd.block(out=..., x=...)") from None
    for name in given:
        if name not in parameters:
            raise InputError(f"block {fn.__name__} has no port {name!r}", where=[caller()],
                             help=did_you_mean(name, list(parameters)))
    return tuple(_port(fn.__name__, name, given.get(name, p.annotation)) for name, p in parameters.items())


def _port(of: str, name: str, t: Any) -> Port:
    if t is inspect.Parameter.empty:
        raise InputError(f"block {of}: port {name} has no type", where=[caller()],
                         help=f"def {of}({name}: State), ({name}: fd.Attr(fd.i32)) or ({name}: fd.Many(State))")
    if t is Key or isinstance(t, Key):
        return Port(name, "key", Array("uint64", (2,)))
    if isinstance(t, Attr):
        return Port(name, "attr", t.type)
    return Port(name, "many", t.type) if isinstance(t, Many) else Port(name, "one",
                                                                       _type(t, f"block {of}: port {name}"))
