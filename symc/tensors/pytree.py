"""Nests: tuples, lists, dicts, named tuples and dataclasses of leaves, taken apart and put together again.

``None`` is an empty place, not a leaf; anything that is no container is a leaf. A ``Nest`` is the structure alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from symc.errors import InputError
from symc.ir.record import dataclass, replace

#: What tells a dataclass, without importing ``dataclasses``.
DATACLASS = "__dataclass_fields__"
#: By the name of an attribute that tells objects of another library: makes a dataclass of them.
FOREIGN: dict[str, Callable[[Any], Any]] = {}


@dataclass(frozen=True)
class Nest:
    """``kind``: leaf, none, tuple, list, dict, namedtuple or dataclass; ``keys``: dict keys or field names. Of kind
    "around" is an object (its only key) of which one part, its child, varies.

    A dataclass may say with ``__symc_filled__(fields)`` what is made of it, and with ``__symc_given__(object, name)``
    what its leaves are in an argument that is of another class.
    """

    kind: str
    children: tuple[Nest, ...] = ()
    keys: tuple[Any, ...] = ()
    cls: type | None = None

    @property
    def count(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == "leaf" else sum(c.count for c in self.children)

    def paths(self, prefix: str = "") -> list[str]:
        """Path of each leaf: ``['w'][0].bias``; empty for a lone leaf."""
        if self.kind == "leaf":
            return [prefix]
        out: list[str] = []
        for k, child in enumerate(self.children):
            out += child.paths(prefix + self._step(k))
        return out

    def _step(self, k: int) -> str:
        if self.kind == "dict":
            return f"[{self.keys[k]!r}]"
        if self.kind == "around":
            return ".data"
        return f".{self.keys[k]}" if self.kind in ("namedtuple", "dataclass") else f"[{k}]"

    def __str__(self) -> str:
        if self.kind in ("leaf", "none"):
            return "*" if self.kind == "leaf" else "None"
        inner = [str(c) for c in self.children]
        if self.kind == "dict":
            return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(self.keys, inner, strict=True)) + "}"
        if self.kind in ("tuple", "list"):
            open_, close = ("(", ")") if self.kind == "tuple" else ("[", "]")
            return open_ + ", ".join(inner) + ("," if self.kind == "tuple" and len(inner) == 1 else "") + close
        fields = ", ".join(f"{k}={c}" for k, c in zip(self.keys, inner, strict=True))
        return f"{self.cls.__name__ if self.cls else self.kind}({fields})"


LEAF = Nest("leaf")
NONE = Nest("none")


def _open(tree: Any) -> tuple[Nest, list[Any]] | None:
    """The kind of a container with its items (children still empty), or None for a leaf."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return Nest("namedtuple", keys=tuple(tree._fields), cls=type(tree)), list(tree)
    if isinstance(tree, tuple | list):
        return Nest("tuple" if isinstance(tree, tuple) else "list"), list(tree)
    if isinstance(tree, dict):
        return Nest("dict", keys=tuple(tree)), list(tree.values())
    if hasattr(type(tree), DATACLASS):
        import dataclasses

        keys = tuple(f.name for f in dataclasses.fields(tree))
        return Nest("dataclass", keys=keys, cls=type(tree)), [getattr(tree, k) for k in keys]
    for mark, adopt in FOREIGN.items():
        if hasattr(type(tree), mark):
            return _open(adopt(tree))
    return None


def flatten(tree: Any) -> tuple[list[Any], Nest]:
    """The leaves, in order, and the structure they stood in."""
    if tree is None:
        return [], NONE
    opened = _open(tree)
    if opened is None:
        return [tree], LEAF
    nest, items = opened
    leaves: list[Any] = []
    children = []
    for item in items:
        own, child = flatten(item)
        leaves += own
        children.append(child)
    return leaves, replace(nest, children=tuple(children))


def flatten_varying(tree: Any) -> tuple[list[Any], Nest]:
    """As ``flatten``, but of objects that name a part which varies (``__symc_varying__``) only that part."""
    if hasattr(tree, "__symc_varying__"):
        return [tree.__symc_varying__()], Nest("around", (LEAF,), (tree,))
    opened = None if tree is None else _open(tree)
    if opened is None:
        return flatten(tree)
    parts = [flatten_varying(item) for item in opened[1]]
    return [x for leaves, _ in parts for x in leaves], replace(opened[0], children=tuple(n for _, n in parts))


def unflatten(nest: Nest, leaves: Sequence[Any]) -> Any:
    """The structure filled with leaves."""
    return _fill(nest, iter(leaves))


def _fill(nest: Nest, leaves: Iterator[Any]) -> Any:
    if nest.kind == "leaf":
        return next(leaves)
    if nest.kind == "none":
        return None
    items = [_fill(c, leaves) for c in nest.children]
    if nest.kind == "around":
        return nest.keys[0].__symc_with__(items[0])
    if nest.kind == "tuple":
        return tuple(items)
    if nest.kind == "list":
        return items
    if nest.kind == "dict":
        return dict(zip(nest.keys, items, strict=True))
    assert nest.cls is not None
    if nest.kind == "namedtuple":
        return nest.cls(*items)
    return _fill_dataclass(nest.cls, dict(zip(nest.keys, items, strict=True)))


def _fill_dataclass(cls: type, fields: dict[str, Any]) -> Any:
    """Without ``__init__``: the object is a copy of one that was made properly, with other leaves."""
    if hasattr(cls, "__symc_filled__"):
        return cls.__symc_filled__(fields)
    out: Any = object.__new__(cls)
    for k, v in fields.items():
        object.__setattr__(out, k, v)
    return out


def filler(nest: Nest) -> Callable[[list[Any]], Any]:
    """``unflatten`` for one structure, quick for the common ones."""
    if nest.kind == "leaf":
        return lambda leaves: leaves[0]
    flat = all(c.kind == "leaf" for c in nest.children)
    if flat and nest.kind == "tuple":
        return tuple
    if flat and nest.kind == "list":
        return list
    return lambda leaves: _fill(nest, iter(leaves))


def match(nest: Nest, tree: Any, what: str) -> list[Any]:
    """The leaves of ``tree``, which must have this structure (dict keys in any order).

    Raises InputError that says where it differs.
    """
    if nest.kind == "leaf":
        return [tree]
    if nest.kind == "none":
        if tree is not None:
            raise InputError(f"{what} must be None")
        return []
    if nest.kind == "around":
        return [nest.keys[0].__symc_matched__(tree, what)]
    if hasattr(nest.cls, "__symc_given__") and not isinstance(tree, nest.cls or ()):
        given: list[Any] = nest.cls.__symc_given__(tree, what)  # type: ignore[union-attr]
        return given
    if nest.kind == "dict":
        items = _dict_items(nest, tree, what)
    else:
        opened = _open(tree)
        if opened is None or len(opened[1]) != len(nest.children) or not _alike(nest, opened[0]):
            raise InputError(f"{what} must have the structure {nest}", values=[(f"given: {_brief(tree)}", None, "")])
        items = opened[1]
    out: list[Any] = []
    for k, (child, item) in enumerate(zip(nest.children, items, strict=True)):
        out += match(child, item, what + nest._step(k))
    return out


def _alike(nest: Nest, given: Nest) -> bool:
    """Lists and tuples may stand for each other."""
    sequences = ("tuple", "list")
    return nest.kind == given.kind and nest.cls is given.cls or nest.kind in sequences and given.kind in sequences


def _dict_items(nest: Nest, tree: Any, what: str) -> list[Any]:
    if not isinstance(tree, Mapping):
        raise InputError(f"{what} must have the structure {nest}", values=[(f"given: {_brief(tree)}", None, "")])
    for key in nest.keys:
        if key not in tree:
            raise InputError(f"{what} has no key {key!r}", help=f"its structure is {nest}")
    for key in tree:
        if key not in nest.keys:
            raise InputError(f"{what} has a key {key!r} that is not expected", help=f"its structure is {nest}")
    return [tree[k] for k in nest.keys]


def _brief(tree: Any) -> str:
    if _open(tree) is None:
        return type(tree).__name__
    return str(flatten(tree)[1])


# --- as data ----------------------------------------------------------------------------------------------------------


def to_json(nest: Nest) -> Any:
    """Lists, strings and numbers only. Raises InputError for dict keys that JSON cannot hold."""
    if any(not isinstance(k, str | int) or isinstance(k, bool) for k in nest.keys):
        raise InputError(
            f"cannot save the structure {nest}", help="only strings and ints can be dict keys in a saved function"
        )
    cls = f"{nest.cls.__module__}:{nest.cls.__qualname__}" if nest.cls else None
    return [nest.kind, list(nest.keys), cls, [to_json(c) for c in nest.children]]


def from_json(data: Any) -> Nest:
    """The inverse. Classes are looked up among the modules that are already imported; nothing is imported or run.

    Raises InputError for what is no structure.
    """
    kind, keys, name, children = data
    cls = None if name is None else _find_class(name)
    nest = Nest(kind, tuple(map(from_json, children)), tuple(keys), cls)
    if not (_KEYS.get(kind, lambda nest: False)(nest) and (cls is None) == (kind not in ("namedtuple", "dataclass"))):
        raise InputError(f"{str(data)[:60]} is no structure of values")
    return nest


def _has_fields(nest: Nest) -> bool:
    if nest.kind == "namedtuple":
        fields = getattr(nest.cls, "_fields", ()) if issubclass(nest.cls or int, tuple) else ()
    else:
        fields = tuple(getattr(nest.cls, DATACLASS, ()))
    return bool(fields) and nest.keys == fields and len(nest.children) == len(fields)


def _has_keys(nest: Nest) -> bool:
    good = all(type(k) in (str, int) for k in nest.keys)
    return good and len(set(nest.keys)) == len(nest.keys) == len(nest.children)


#: By kind, whether keys and children are as they must be.
_KEYS: dict[str, Callable[[Nest], bool]] = {
    "leaf": lambda n: not n.children and not n.keys, "none": lambda n: not n.children and not n.keys,
    "tuple": lambda n: not n.keys, "list": lambda n: not n.keys, "dict": _has_keys, "namedtuple": _has_fields,
    "dataclass": _has_fields,
}  # fmt: skip


def _find_class(path: str) -> type:
    module, _, name = path.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):  # what is there, without asking a module to import it
        found = vars(found).get(part) if isinstance(found, type | type(sys)) else None
    if not isinstance(found, type) or not (hasattr(found, DATACLASS) or hasattr(found, "_fields")):
        raise InputError(
            f"the saved function returns or takes a {name}, which is not at hand", help=f"import {module} first"
        )
    return found
