"""Classes of named fields, as by ``dataclasses.dataclass`` and cheaper to define: what a process pays for each class
when it imports its module, used or not.

Of what the standard decorator does this has what symc uses: fields in order with defaults, ``__post_init__``,
equality, hash and text by fields, ``frozen``. The standard one compiles up to nine methods a class, 0.15 to 0.3 ms;
here the methods are closures over the names of the fields, and ``__init__`` is compiled when many objects are made.
``dataclasses.fields`` and ``replace`` work on these classes, and type checkers see data classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
_ABSENT: Any = object()
_set = object.__setattr__


class Field:
    """Options of ``field`` for one field."""

    __slots__ = ("default", "factory")

    def __init__(self, default: Any = _ABSENT, factory: Any = _ABSENT):
        self.default, self.factory = default, factory


def field(*, default: Any = _ABSENT, default_factory: Any = _ABSENT) -> Any:
    """A field with a default value, or with one that is made for each object."""
    return Field(default, default_factory)


@dataclass_transform(field_specifiers=(field,))
def dataclass(cls: Any = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
    """The decorator. ``frozen``: fields are not assigned after ``__init__``. ``eq=False``: an object equals itself."""
    return (lambda c: _record(c, frozen, eq)) if cls is None else _record(cls, frozen, eq)


def replace(record: T, /, **changes: Any) -> T:
    """A copy in which some fields differ."""
    for name in type(record).__record__:  # type: ignore[attr-defined]
        if name not in changes:
            changes[name] = getattr(record, name)
    return type(record)(**changes)


def fields(cls: Any) -> tuple[str, ...]:
    """The names of the fields of such a class."""
    return tuple(cls.__record__)


def _record(cls: type, frozen: bool, eq: bool) -> type:
    fields: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:]):
        fields.update(base.__dict__.get("__record__", ()))
    own = cls.__dict__
    for name, annotation in own.get("__annotations__", {}).items():
        if not str(annotation).startswith("ClassVar"):
            given = own.get(name, _ABSENT)
            fields[name] = given if isinstance(given, Field) else Field(given)
            if isinstance(given, Field):  # a default is an attribute of the class, a factory is not
                delattr(cls, name) if given.default is _ABSENT else setattr(cls, name, given.default)
    given_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    methods: dict[str, Any] = {"__record__": fields, "__dataclass_fields__": _Fields(), "__match_args__": tuple(fields),
                               "__init__": _first_init(cls, fields, frozen), "__repr__": _repr}
    if eq:
        values = _values(tuple(fields))
        methods |= {"__eq__": _eq(values), "__hash__": _hash(values) if frozen else None}
    for name, method in methods.items():
        if name in ("__record__", "__dataclass_fields__") or not (given_hash if name == "__hash__" else name in own):
            setattr(cls, name, method)
    if frozen:
        cls.__setattr__ = _no_setattr  # type: ignore[method-assign,assignment]
        cls.__delattr__ = _no_delattr  # type: ignore[method-assign,assignment]
    return cls


#: How many objects of a class are made before its ``__init__`` is compiled, which takes as long as these do otherwise.
FEW = 12


def _first_init(cls: Any, fields: dict[str, Field], frozen: bool) -> Callable[..., None]:
    """An ``__init__`` that sets one field after another. After a ``FEW`` objects, and for arguments that do not fit, it
    compiles the real one, puts it in its place and calls it."""
    made, names, post = 0, tuple(fields), hasattr(cls, "__post_init__")

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        nonlocal made
        made += 1
        given = dict(zip(names, args), **keywords) if keywords.keys().isdisjoint(names[: len(args)]) else {"": None}
        for name, f in fields.items():
            if name not in given:
                if f.default is not _ABSENT:
                    given[name] = f.default
                elif f.factory is not _ABSENT:
                    given[name] = f.factory()
        if made > FEW or len(args) > len(names) or given.keys() != fields.keys():
            cls.__init__ = _init(cls, fields, frozen)
            return cls.__init__(self, *args, **keywords)
        for name in names:
            _set(self, name, given[name])
        if post:
            self.__post_init__()

    return __init__


def _init(cls: type, fields: dict[str, Field], frozen: bool) -> Callable[..., None]:
    scope: dict[str, Any] = {"_set": _set, "_absent": _ABSENT}
    head, body = [], []
    for name, f in fields.items():
        value, default = name, ""
        if f.default is not _ABSENT:
            scope[f"_default_{name}"], default = f.default, f"=_default_{name}"
        elif f.factory is not _ABSENT:
            scope[f"_make_{name}"], default = f.factory, "=_absent"
            value = f"_make_{name}() if {name} is _absent else {name}"
        head.append(name + default)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__(self, {', '.join(head)}):\n " + ("\n ".join(body) or "pass"), scope)
    scope["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return scope["__init__"]


def _values(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """The fields of an object, as something to compare."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _eq(values: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__record__)
    return f"{type(self).__qualname__}({shown})"


def _no_setattr(self: Any, name: str, value: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_delattr(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


class Numbers(type):
    """Class of classes of named numbers: plain ints, iterated and counted as those of an ``IntEnum`` are, whose
    definition takes 10 us a name and more."""

    def names(cls) -> dict[str, int]:
        """The numbers by name, in order."""
        return {name: k for name, k in vars(cls).items() if not name.startswith("_")}

    def __iter__(cls) -> Iterator[int]:
        return iter(cls.names().values())

    def __len__(cls) -> int:
        return len(cls.names())


class _Fields:
    """Table that ``dataclasses`` asks of a class; made when it does."""

    def __get__(self, record: Any, cls: type) -> dict[str, Any]:
        import dataclasses

        own: dict[str, Any] = {"__annotations__": dict.fromkeys(cls.__record__, Any)}  # type: ignore[attr-defined]
        for name, f in cls.__record__.items():  # type: ignore[attr-defined]
            if f.default is not _ABSENT:
                own[name] = dataclasses.field(default=f.default)
            elif f.factory is not _ABSENT:
                own[name] = dataclasses.field(default_factory=f.factory)
        found = dataclasses.dataclass(type(cls.__name__, (), own)).__dataclass_fields__  # type: ignore[attr-defined]
        cls.__dataclass_fields__ = found  # type: ignore[attr-defined]
        return found
