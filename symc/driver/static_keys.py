"""Keys of what a traced function reads beside its data: with equal keys it is traced alike, so it is traced once.

A key is by value wherever a value can be had: numbers bit for bit and with their types, containers and objects by what
they hold now, arrays by content, functions by code, defaults and closure. What has no value that Python can see (locks,
compiled functions, symbolic values) is told by identity and held weakly: no key keeps an object alive that has an
identity only.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import operator
import struct
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.ir.digest import blake2b
from symc.ir.value import Value
from symc.tensors.deferred import Deferred
from symc.tensors.pytree import Nest
from symc.tensors.state import Cell
from symc.tensors.tensor import Tensor

#: Types whose values compare as they should among themselves.
_ATOMS = frozenset({int, bool, str, bytes, type(None), type(...), type(NotImplemented), CodeType})
_PACKED = {float: "<d", complex: "<dd"}
_CONSTANT = _ATOMS | _PACKED.keys()
#: Classes whose instances hold items beside what is in their ``__dict__``, or are numbers.
_WITH_ITEMS = (list, dict, tuple, set, frozenset, int, float, complex, str, bytes, bytearray, np.ndarray)
#: Classes that were made by a ``class`` statement, which may go again.
_HEAP = 1 << 9
#: Contents of arrays up to so many bytes are keys themselves; of larger ones a digest is.
_SHORT = 256


class Same:
    """The identity of an object, which is held weakly where that is possible."""

    __slots__ = ("_hash", "_held")

    def __init__(self, item: Any):
        self._hash = id(item)
        try:
            self._held: Any = weakref.ref(item)
        except TypeError:
            self._held = lambda: item

    @property
    def item(self) -> Any:
        """The object; None if it is no more."""
        return self._held()

    def watch(self, gone: Callable[[Any], None]) -> Any:
        """A reference that calls ``gone`` when the object goes, as long as it is kept itself."""
        return weakref.ref(self.item, gone) if isinstance(self._held, weakref.ref) and self.item is not None else None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Same) and self.item is not None and self.item is other.item


def key_of(item: Any, what: str = "a value") -> Any:
    """The key of an object. Raises InputError for iterators, which tracing would use up, and for what is too deep."""
    try:
        return _Keys(what).of(item)
    except RecursionError:
        raise InputError(f"{what} of type {type(item).__name__} holds objects in objects too deep to be compared",
                         help="pass what the function needs of it") from None


def key_of_nest(nest: Nest) -> Any:
    """The key of a structure: of its dict keys with their types, and of what its classes say."""
    if not nest.children and not nest.keys:
        return nest.kind, nest.cls
    keys = nest.keys if nest.kind != "dict" or all([type(k) is str for k in nest.keys]) else key_of(nest.keys)
    own = None if nest.cls is None else key_of(nest.cls)
    return nest.kind, keys, own, tuple([key_of_nest(c) for c in nest.children])


def identities(key: Any) -> Iterator[Same]:
    """The identities in a key."""
    pending = [key]
    while pending:
        part = pending.pop()
        if isinstance(part, Same):
            yield part
        elif isinstance(part, tuple):
            pending.extend(part)


class _Keys:
    """The keys of one walk: objects met before, cycles among them, are told by when they were met."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._met: dict[int, tuple[int, Any]] = {}  # with the object, so that its id stays its own

    def of(self, item: Any) -> Any:
        kind = type(item)
        if kind in _ATOMS:
            return kind, item
        if kind in _PACKED:
            parts = (item,) if kind is float else (item.real, item.imag)
            return kind, struct.pack(_PACKED[kind], *parts)
        met = self._met.get(id(item))
        if met is not None:
            return "met", met[0]
        self._met[id(item)] = len(self._met), item
        return (Same(kind) if kind.__flags__ & _HEAP else kind), *self._of(item, kind)

    def all(self, items: Any) -> tuple:
        return tuple([self.of(i) for i in items])

    def _of(self, item: Any, kind: type) -> tuple:
        if kind in (tuple, list):
            return self.all(item)
        if kind is dict:
            return self.all(item), self.all(item.values())
        if kind is set or kind is frozenset:
            return (frozenset(self.all(item)),)
        if kind is np.ndarray and item.dtype.kind not in "OV":
            return item.dtype.str, item.shape, _content(item)
        if isinstance(item, np.generic) and item.dtype.kind not in "OV":
            return item.dtype.str, item.tobytes()
        if isinstance(item, type):
            return Same(item), self.of_class(item)
        if kind is FunctionType:
            return self._function(item)
        if isinstance(item, ModuleType | BuiltinFunctionType | np.ufunc | enum.Enum) or _is_symbolic(item):
            return (Same(item),)
        return self._object(item, kind)

    def _function(self, fn: FunctionType) -> tuple:
        cells = [c.cell_contents if _is_filled(c) else None for c in fn.__closure__ or ()]
        around = [(n, _bound(x)) for n, x in globals_of(fn.__globals__, names_in(fn.__code__))]
        return (fn.__code__, fn.__module__, tuple(around), self.of(fn.__defaults__), self.of(fn.__kwdefaults__),
                self.all(cells), self.of(fn.__dict__))

    def _object(self, item: Any, kind: type) -> tuple:
        """Key by how it says that it is made again, as for a pickle: its class, and what it holds."""
        if _is_plain(kind):
            held = item.__dict__
            return tuple(held), self.all(held.values()), self.of_class(kind)
        if hasattr(item, "__next__"):
            raise InputError(f"{self._what} is or holds a {kind.__name__}, which tracing would use up",
                             help="pass a list or a tuple of its items")
        try:
            made = item.__reduce_ex__(4)
        except Exception:  # it has no state that can be seen, whatever it says of that
            return (Same(item),)
        if isinstance(made, str):
            return (Same(item),)
        maker, arguments, *rest = made
        parts = [list(r) if hasattr(r, "__next__") else r for r in rest]  # the items of subclasses of list and dict
        return self.of(maker), self.of(arguments), self.all(parts), self.of_class(kind)

    def of_class(self, cls: type) -> tuple:
        """The numbers and strings that a class gives to all of its instances: ``class Model: scale = 2.0``."""
        found = []
        for base in cls.__mro__:
            if base.__flags__ & _HEAP:
                found += [(n, self.of(x)) for n, x in vars(base).items() if is_constant(x) and n[:2] != "__"]
        return tuple(found)


def _is_plain(cls: type) -> bool:
    """True if instances hold what their ``__dict__`` holds, and no more."""
    return (cls.__reduce_ex__ is object.__reduce_ex__ and cls.__reduce__ is object.__reduce__
            and cls.__getstate__ is object.__getstate__  # type: ignore[attr-defined]
            and cls.__dictoffset__ != 0 and not copyreg._slotnames(cls)  # type: ignore[attr-defined]
            and not issubclass(cls, _WITH_ITEMS) and not hasattr(cls, "__next__"))


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _is_symbolic(item: Any) -> bool:
    """True for what symc compares by identity, and for compiled functions, whose data are large."""
    if isinstance(item, Tensor | Value | Cell | Deferred):
        return True
    module = sys.modules.get("symc.driver.function")
    return module is not None and isinstance(item, module.CompiledFunction)


def _content(array: np.ndarray) -> bytes:
    data = array.tobytes()
    return data if len(data) <= _SHORT else blake2b(data, digest_size=32).digest()


def is_constant(item: Any) -> bool:
    """A number, a string or the like: what can change only by putting another in its place."""
    return type(item) in _CONSTANT or isinstance(item, np.generic)


class Around:
    """The variables around a function, closure or global, that its own code names: what they are bound to now.

    Modules and built-in functions are left out. What a list or an object holds is not looked into, nor what the
    functions read that are called.
    """

    def __init__(self, fn: Any):
        self._globals: dict[str, Any] = getattr(fn, "__globals__", {})
        self._cells = getattr(fn, "__closure__", None) or ()
        code = getattr(fn, "__code__", None)
        self._names = names_in(code) if code is not None else ()
        self._seen: tuple[list[tuple[str, Any]], list[Any]] | None = None
        self.key: Any = None

    def changed(self) -> bool:
        """True if something else is there than when this was asked before; looks again if so."""
        if self._seen is not None:
            named, held = self._seen
            if not (named or held):
                return False
            if all([self._globals.get(n, self) is x for n, x in named]) and all(map(operator.is_, self._held(), held)):
                return False
        self._look()
        return True

    def _held(self) -> list[Any]:
        out = []
        for cell in self._cells:
            try:
                out.append(cell.cell_contents)
            except ValueError:  # not bound yet
                out.append(self)
        return out

    def _look(self) -> None:
        named, held = globals_of(self._globals, self._names), self._held()
        self._seen = named, held
        self.key = tuple([(n, _bound(x)) for n, x in [*named, *[("", x) for x in held]]])


#: What variables are bound to once.
_FIXED = (ModuleType, BuiltinFunctionType)


@functools.cache
def names_in(code: CodeType) -> tuple[str, ...]:
    """The names of the globals, among others, that the code of a function and of those in it reads."""
    found = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, CodeType):
            found.update(names_in(c))
    return tuple(sorted(found))


def globals_of(own: dict[str, Any], names: Iterable[str]) -> list[tuple[str, Any]]:
    """Bindings of these names among the globals, without modules and built-in functions."""
    return [(n, own[n]) for n in names if n in own and not isinstance(own[n], _FIXED)]


def _bound(item: Any) -> Any:
    """The key of what a variable is bound to: a constant, or an object whatever it holds."""
    return key_of(item) if is_constant(item) else Same(item)
