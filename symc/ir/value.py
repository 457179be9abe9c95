"""SSA values and closed regions: immutable, interned, compared with ``is``.

``make`` is the only constructor of values. It interns and infers the type; it never simplifies. Equal computations are
therefore one object, and a graph is nothing but the values reachable from its results. Regions are closed: their values
reach only the region's own params (``param`` values, told apart by index and type), so regions equal up to the names of
their params are one object as well.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from symc.errors import InternalError, SymcError
from symc.ir import location
from symc.ir.attrs import DIGEST, EMPTY, Array, Attrs
from symc.ir.digest import blake2b
from symc.ir.dim import Size
from symc.ir.locks import new_lock
from symc.ir.order import postorder
from symc.ir.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from symc.ir.op import Op

_lock = new_lock()
_made: set[str] = set()  # names of ops of which there has been a value
_values: weakref.WeakValueDictionary[tuple, Value] = weakref.WeakValueDictionary()
_regions: weakref.WeakValueDictionary[tuple, Region] = weakref.WeakValueDictionary()
#: Serials below are for the variables of rules, the same of each: how a rule is written down must not depend on which
#: others there are, nor on when it was read.
RESERVED = 64
_serials = itertools.count(RESERVED)
_scopes: ContextVar[tuple[set[Value], ...]] = ContextVar("symc_built", default=())


class Value:
    """An op applied to values. Made by ``make`` alone; never mutated."""

    __slots__ = ("__weakref__", "_fingerprint", "attrs", "op", "operands", "regions", "type")
    op: Op
    operands: tuple[Value, ...]
    attrs: Attrs
    regions: tuple[Region, ...]
    tensor: ClassVar[Any]  # the value as users hold it: installed with ``symc.tensors.tensor``
    type: Any  # a Type; Any because nearly every use knows that it is a TensorType
    _fingerprint: bytes | None

    @property
    def fingerprint(self) -> bytes:
        """A digest of the structure: the same in every process, the only source of order."""
        if self._fingerprint is None:
            for v in postorder([self], stop=lambda v: v._fingerprint is not None):
                if v._fingerprint is None:
                    v._fingerprint = _digest(v)
        assert self._fingerprint is not None
        return self._fingerprint

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of the op's results, one or several."""
        return self.type.items if isinstance(self.type, TupleType) else (self.type,)

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @property
    def shape(self) -> tuple[Size, ...]:
        return self.type.shape

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def data(self) -> np.ndarray | None:
        """The elements of a constant; None for every other value."""
        return self.attrs["value"].data if self.op.name == "constant" else None

    def __getitem__(self, index: int) -> Value:
        """Result ``index`` of an op with several results."""
        return _op("get")(self, index=index)

    def __reduce__(self) -> tuple[Any, ...]:
        from symc.ir.text import pickle_value

        return pickle_value(self)

    def __repr__(self) -> str:
        return f"<{self.op.name} : {self.type}>"

    # Arithmetic, for derivatives and rules. Python numbers take the dtype and shape of the value.
    def __add__(self, other: Any) -> Value:
        return _arithmetic("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return _op("add")(other, self)

    def __sub__(self, other: Any) -> Value:
        return _arithmetic("sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return _op("sub")(other, self)

    def __mul__(self, other: Any) -> Value:
        return _arithmetic("mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return _op("mul")(other, self)

    def __truediv__(self, other: Any) -> Value:
        return _arithmetic("div", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return _op("div")(other, self)

    def __pow__(self, other: Any) -> Value:
        return _arithmetic("pow", self, other)

    def __rpow__(self, other: Any) -> Value:
        return _op("pow")(other, self)

    def __neg__(self) -> Value:
        return _op("neg")(self)

    def __bool__(self) -> bool:
        raise TypeError("an IR value has no truth; compare identities with `is`")


def held(x: Any) -> Any:
    """The value that ``x``, a tensor, holds; anything else as it is."""
    v = x if isinstance(x, Value) else getattr(x, "value", x)
    return v if isinstance(v, Value) else x


def _arithmetic(name: str, x: Value, other: Any) -> Any:
    """The op on a value and what is on its right; a tensor there does it itself, as it knows how to broadcast."""
    return _op(name)(x, other) if held(other) is other else NotImplemented


class Region:
    """A closed body: ``results`` reach only ``param`` values 0..n-1 of the types in ``params``."""

    __slots__ = ("__weakref__", "_fingerprint", "_leaves", "_values", "params", "results")
    params: tuple[Type, ...]
    results: tuple[Value, ...]
    _fingerprint: bytes | None
    _values: tuple[Value, ...] | None
    _leaves: tuple[Value, ...] | None

    def __new__(cls, params: Iterable[Type], results: Iterable[Value]) -> Region:
        key = (tuple(params), tuple(results))
        with _lock:
            found = _regions.get(key)
            if found is None:
                found = object.__new__(cls)
                found.params, found.results = key
                found._fingerprint = found._values = found._leaves = None
                _regions[key] = found
        return found

    @property
    def values(self) -> tuple[Value, ...]:
        """Every value of the body, operands first; found once."""
        if self._values is None:
            self._values = tuple(postorder(self.results))
        return self._values

    @property
    def leaves(self) -> tuple[Value, ...]:
        """The param values; made once."""
        if self._leaves is None:
            self._leaves = tuple(param(k, t) for k, t in enumerate(self.params))
        return self._leaves

    @property
    def fingerprint(self) -> bytes:
        """A digest of params and results."""
        if self._fingerprint is None:
            h = blake2b(" ".join(map(str, self.params)).encode(), digest_size=DIGEST)
            for r in self.results:
                h.update(r.fingerprint)
            self._fingerprint = h.digest()
        return self._fingerprint

    def __reduce__(self) -> tuple[Any, ...]:
        from symc.ir.text import pickle_region

        return pickle_region(self)

    def __repr__(self) -> str:
        return f"<region ({', '.join(map(str, self.params))}) -> ({', '.join(str(r.type) for r in self.results)})>"


#: Ops by name; ``symc.ir.op.register`` puts them here.
OPS: dict[str, Op] = {}


def _op(name: str) -> Op:
    return OPS[name]


def make(op: Op, operands: Sequence[Value] = (), attrs: Attrs = EMPTY, regions: Sequence[Region] = ()) -> Value:
    """The value of ``op`` on ``operands``: an existing object if there is one, else a new one with an inferred type.

    Raises what ``op.infer`` raises (ShapeError, DTypeError, ...), with the operands and the user's line attached.
    """
    key = (op, tuple(operands), attrs, tuple(regions))
    value = _values.get(key)
    if value is None:
        value = _intern(key)
    locs = location.here()
    if locs and not _is_shared(value):
        location.note(value, locs)
    scopes = _scopes.get()
    for scope in scopes:
        scope.add(value)
    return value


@contextmanager
def built_values() -> Iterator[set[Value]]:
    """The set of the values that are asked for meanwhile, new or known: how a branch knows what is its own."""
    found: set[Value] = set()
    token = _scopes.set((*_scopes.get(), found))
    try:
        yield found
    finally:
        _scopes.reset(token)


def _is_shared(value: Value) -> bool:
    """A constant, count or size, or one repeated: the same object in every program, so it belongs to no line."""
    while value.op.name == "broadcast":
        (value,) = value.operands
    return not value.operands and value.op.name != "input"


def _intern(key: tuple) -> Value:
    op, operands, attrs, regions = key
    try:
        type_ = (
            op.infer(*[v.type for v in operands], regions=regions, **attrs)
            if regions
            else op.infer(*[v.type for v in operands], **attrs)
        )
    except SymcError as e:
        e.attach(
            [(f"operand {i}", v.type, first_line(v)) for i, v in enumerate(operands)],
            location.in_order(location.here()),
        )
        raise
    if not isinstance(type_, (TensorType, TupleType)):
        raise InternalError(f"{op.name}: infer gave {type_!r}, not a type")
    with _lock:
        value = _values.get(key)
        if value is None:
            value = object.__new__(Value)
            value.op, value.operands, value.attrs, value.regions = key
            value.type, value._fingerprint = type_, None
            _values[key] = value
            _made.add(op.name)
    return value


def was_made(ops: Iterable[str]) -> bool:
    """True if this process has made values of all these ops."""
    return _made.issuperset(ops)


def first_line(value: Value) -> location.Loc | None:
    """One user line of a value, for error rows; of a constant, the line that is being built."""
    locs = location.in_order(location.noted(value) or (location.here() if _is_shared(value) else ()))
    return locs[0] if locs else None


def next_serial() -> int:
    """A number that no free leaf has yet: the order in which leaves are created."""
    return next(_serials)


def fresh_input(type_: TensorType, serial: int | None = None) -> Value:
    """A new free leaf: unlike every other value, even of the same type. ``serial``: its place, from ``next_serial``."""
    return make(_op("input"), (), Attrs({"serial": next(_serials) if serial is None else serial, "type": type_}))


def param(index: int, type_: Type) -> Value:
    """Param ``index`` of the region it is used in."""
    if isinstance(type_, TupleType):
        raise InternalError("region params are arrays, not tuples")
    return make(_op("param"), (), Attrs({"index": index, "type": type_}))


def _digest(v: Value) -> bytes:
    h = blake2b(f"{v.op.name} {v.type}".encode(), digest_size=DIGEST)
    for name, entry in v.attrs.items():
        h.update(name.encode() + attr_bytes(entry))
    for o in v.operands:
        h.update(o._fingerprint or o.fingerprint)
    for r in v.regions:
        h.update(r.fingerprint)
    return h.digest()


def attr_bytes(entry: Any) -> bytes:
    """Bytes that tell attributes apart, the same in every process."""
    if isinstance(entry, Array):
        return entry.digest
    if isinstance(entry, tuple):
        return b"(" + b",".join(attr_bytes(e) for e in entry) + b")"
    if isinstance(entry, float):
        return entry.hex().encode()
    return f"{type(entry).__name__}:{entry}".encode()
