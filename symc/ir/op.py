"""Ops: one record that states everything about it, and the registry of all records.

A record is also the builder of its values: ``add(x, y)`` makes a value, ``sum_(x, axes=(0,))`` passes attributes, and
Python numbers become constants of the dtype and shape of the first operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from symc.errors import GradientError, InternalError, SymcError, did_you_mean
from symc.ir.attrs import EMPTY, Array, Attrs
from symc.ir.facts import Facts
from symc.ir.record import dataclass, field
from symc.ir.types import Type
from symc.ir.value import OPS, Region, Value, held, make

Cotangents = Sequence["Value | None"]


# --- how an op varies: one fact, from which both jvp and vjp follow (see symc.grad) -----------------------------------


@dataclass(frozen=True)
class Elementwise:
    """Element i of the result depends on element i of the operands.

    ``partials[k](out, *operands)`` is d out / d operand k, elementwise; a number says that it is constant, None that it
    is zero everywhere. With a complex operand and a real result the differential is the real part of partial * tangent.
    ``singular``: a partial can be infinite or nan at points where the op itself is finite, so a zero cotangent
    must stay zero (vjp multiplies with ``mulz``).
    """

    partials: tuple[Callable[..., Value | None] | float | None, ...]
    singular: bool = False


@dataclass(frozen=True)
class Unknown:
    """A partial for which there is no formula: whoever asks for it is told. ``operand``: what SciPy calls it."""

    operand: str

    def __call__(self, out: Value, *operands: Value) -> Value:
        raise GradientError(f"the derivative of {out.op.name} with respect to {self.operand} is not known",
                            help=f"where {self.operand} is to be a constant, sc.stop_gradient says so")


@dataclass(frozen=True)
class Linear:
    """Linear in the operands ``args`` together (all by default; the others are parameters).

    ``transpose(g, v)`` gives the cotangents of all operands of value ``v`` (None for parameters). The jvp applies the
    op itself to the tangents.
    """

    transpose: Callable[[Value, Value], Cotangents]
    args: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Multilinear:
    """Linear in each operand when the others are held. ``transposes[k](g, v)`` is the cotangent of operand k."""

    transposes: tuple[Callable[[Value, Value], Value], ...]


@dataclass(frozen=True)
class Custom:
    """Neither of the above. ``jvp(tangents, v)`` (None for a zero tangent) and ``vjp(g, v)``; without it, the
    transpose of the tangent, in which the op itself must not stand."""

    jvp: Callable[[Cotangents, Value], Value | None]
    vjp: Callable[[Value, Value], Cotangents] | None = None


@dataclass(frozen=True)
class Regional:
    """An op whose derivative is made of those of its regions; ``symc.grad`` knows how (it differentiates graphs)."""


Derivative = Elementwise | Linear | Multilinear | Custom | Regional


# --- how an op is laid out: what a code generator may do with it (see symc.codegen) -----------------------------------


@dataclass(frozen=True)
class Element:
    """Element ``index`` of the result is a scalar expression.

    ``f(v, index, at)``: ``index`` are i64 scalars, one an axis; ``at(k, index)`` is the scalar at ``index`` of operand
    k. None: the op itself, applied to the scalars at the same index (every elementwise op).
    """

    f: Callable[..., Value] | None = None


@dataclass(frozen=True)
class Fold:
    """A reduction over the axes in attribute ``axes``: combine elements with ``kind`` starting from its identity.

    ``kind`` is the name of a binary op ("add") whose record has an ``identity``, e with op(x, e) == x for every
    x, infinities too. Elements are combined in any order; an op that a backend does not spell, as its ``parts`` say.
    """

    kind: str


@dataclass(frozen=True)
class View:
    """The same elements in the same order: the result may be the operand's buffer."""


@dataclass(frozen=True)
class Extern:
    """A library routine (``name`` in a backend's extern table) or, without one, the reference implementation."""

    name: str


@dataclass(frozen=True)
class Decompose:
    """Other ops: ``f(v)`` gives the value (a list of values, for several results) that replaces ``v`` before fusion."""

    f: Callable[[Value], Value | list[Value]]


@dataclass(frozen=True)
class Update:
    """The first operand with elements of the second put in, one after another in row-major order.

    ``place(v, index, at)``: where element ``index`` of the second operand goes: i64 scalars, in bounds.
    ``kind(v)``: "set", or the name of the binary op that combines what is there with what comes.
    """

    place: Callable[..., list[Value]]
    kind: Callable[[Value], str]


@dataclass(frozen=True)
class PackedConcat:
    """Operands of one type side by side along attribute ``axis``: element i of each goes to a place of its own."""


@dataclass(frozen=True)
class Running:
    """Element i along attribute ``axis`` is made of the one before and of element i of the operands.

    ``kind``: "add" or "mul" of the one before and the operand, or "linear": the one before times the first operand
    plus the second. Attribute ``reverse`` runs from the end. The first element is the last operand's.
    """

    kind: str


@dataclass(frozen=True)
class Sorting:
    """The elements of the operand in order along attribute ``axis``, or (``places``) where along it they come from.

    Kernels insert one element after another, which is good for few: for at most ``MOST`` along the axis.
    """

    places: bool
    MOST: ClassVar[int] = 8


@dataclass(frozen=True)
class Control:
    """Control flow: one step of a plan that has a plan of its own for every region."""


Lowering = Element | Fold | View | Extern | Decompose | Update | PackedConcat | Running | Sorting | Control


@dataclass(frozen=True, eq=False)
class Op:
    """One operation.

    * ``infer(*operand_types, **attrs) -> Type`` (``regions=`` too where there are any) raises ShapeError or DTypeError.
    * ``reference(*arrays, **attrs) -> array`` is NumPy and the definition of meaning; sizes in attrs are numbers,
      ``regions`` are callables on arrays. It returns exactly the inferred dtype and shape, and never a view of a
      written operand.
    * ``traits``: "selects" says that some elements of an operand may not matter at all to the result, so that their
      cotangent is zero whatever was computed there. "unchecked" says that code made of it reads or writes where its
      operands and attributes say, which only code generation knows to be in bounds. "python" says that a CPU has no
      native code for it: its reference runs, in loops too. "asserts": it states sizes, which a call has checked.
      "jumps": a rounding of an operand may change the result by a whole.
    * ``samples() -> iterable of (operand arrays, attrs)``: legal operands that drive every generated test.
    * ``defaults``: attributes that a call and text may leave out, and that text does leave out: a value, or a function
      of the operand types, of which there may be too few (it raises IndexError).
    """

    name: str
    infer: Callable[..., Type]
    reference: Callable[..., Any]
    derivative: Derivative | None = None
    lowering: Lowering | None = None
    traits: frozenset[str] = frozenset()
    samples: Callable[[], Iterator[tuple[tuple, dict]]] | None = None
    doc: str = ""
    facts: Facts = field(default_factory=Facts)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, *operands: Any, regions: Sequence[Region] = (), **attrs: Any) -> Value:
        if operands and not all(isinstance(v, Value) for v in operands):
            operands = _coerce(self, operands)
        if self.defaults:
            attrs = self.with_defaults(operands, attrs)
        return make(self, operands, Attrs(attrs) if attrs else EMPTY, regions)

    def default(self, name: str, operands: Sequence[Value]) -> Any:
        """The default of an attribute that has one."""
        found = self.defaults[name]
        return found(*[v.type for v in operands]) if callable(found) else found

    def with_defaults(self, operands: Sequence[Value], attrs: dict[str, Any]) -> dict[str, Any]:
        """``attrs`` with those that are left out."""
        return {**{k: self.default(k, operands) for k in self.defaults if k not in attrs}, **attrs}

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        custom = self.facts.custom
        return (lookup, (self.name,)) if custom is None else custom.reduce(self)


def _coerce(op: Op, operands: tuple) -> tuple[Value, ...]:
    operands = tuple(map(held, operands))
    like = next((v for v in operands if isinstance(v, Value)), None)
    if like is None:
        raise InternalError(f"{op.name}: no operand is a value")
    return tuple(v if isinstance(v, Value) else splat(v, like.type) for v in operands)


def splat(number: Any, type_: Type) -> Value:
    """A constant with the same number in every element of ``type_``."""
    array = number if isinstance(number, Array) else _number_array(number, type_.dtype)  # type: ignore[union-attr]
    value = make(lookup("constant"), (), Attrs({"value": array}))
    shape = type_.shape  # type: ignore[union-attr]
    if shape:
        value = make(lookup("broadcast"), (value,), Attrs({"axes": (), "shape": shape}))
    return value


_numbers: dict[tuple, Array] = {}


def _number_array(number: Any, dtype: np.dtype) -> Array:
    """A number as constant data; the same few numbers come again and again."""
    key = (type(number), repr(number), dtype) if type(number) in (int, float, bool) else None
    found = _numbers.get(key) if key else None  # by text: 0.0 and -0.0 are equal, but two numbers
    if found is None:
        with np.errstate(all="ignore"):
            found = Array(np.asarray(number).astype(dtype))
        if key:
            if len(_numbers) >= 4096:
                _numbers.clear()
            _numbers[key] = found
    return found


_registry = OPS


def register(op: Op) -> Op:
    """Add a record to the registry. A name is registered once."""
    if op.name in _registry:
        raise InternalError(f"op {op.name} is registered twice")
    _registry[op.name] = op
    return op


_builtin: frozenset[Op] = frozenset()


def seal() -> None:
    """Makes what is registered now symc's own."""
    global _builtin
    _builtin = frozenset(_registry.values())


def is_builtin(op: Op) -> bool:
    """True if a record is symc's own."""
    return op in _builtin


def is_safe(op: Op) -> bool:
    """True if code that is made of it stays within its operands whatever these are."""
    return "unchecked" not in op.traits


def is_lossless(op: Op) -> bool:
    """True if results are exact: the op moves or selects elements, or makes no number that needs rounding."""
    return op.facts.rounding in ("none", "zeros") or "movement" in op.traits or isinstance(op.lowering, View | Control)


def keeps_storage(v: Value) -> bool:
    """True for what moves elements as they are stored, or converts them: all else is arithmetic, of dtypes that have
    it."""
    op = v.op
    if op.name == "cast" or v.regions or not is_builtin(op):
        return True
    if op.traits & {"elementwise", "reduction"} or isinstance(op.lowering, Sorting):
        return False
    return is_lossless(op) or op.lowering is None


def picks(op: Op) -> int:
    """The number of first operands that have all elements of the result; 0 if other elements are made."""
    return op.facts.picks or int(op.facts.same or "movement" in op.traits)


def in_python(v: Value) -> bool:
    """True if a CPU computes ``v`` by Python."""
    return "python" in v.op.traits


def unregister(name: str) -> None:
    """Take a user's op out again (tests do)."""
    _registry.pop(name, None)


def lookup(name: str) -> Op:
    """The record called ``name``. Raises SymcError with a suggestion for an unknown one."""
    try:
        return _registry[name]
    except KeyError:
        raise SymcError(f"no op is called {name!r}", help=did_you_mean(name, _registry)) from None


def all_ops() -> list[Op]:
    """Every record, by name."""
    return [_registry[n] for n in sorted(_registry)]
