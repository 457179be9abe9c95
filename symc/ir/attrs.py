"""Attributes of values: a sorted, hashable mapping whose entries are compared bit for bit, with their types.

``0.0`` and ``-0.0`` differ, ``1`` and ``True`` and ``1.0`` differ, a nan equals a nan of the same bits. Allowed are
None, bool, int, float, str, Dim, dtype, TensorType, Array (constant data) and tuples of these.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any

import numpy as np

from symc.ir.digest import blake2b
from symc.ir.dim import Dim
from symc.ir.dtypes import dtype_code, is_dtype
from symc.ir.locks import new_lock
from symc.ir.size_values import evaluate
from symc.ir.types import TensorType, as_dtype

#: Bytes of a digest.
DIGEST = 16

_arrays: weakref.WeakValueDictionary[bytes, Array] = weakref.WeakValueDictionary()
_lock = new_lock()


class Array:
    """Constant data: a read-only contiguous array, interned by dtype, shape and bytes. Compare with ``is``."""

    __slots__ = ("__weakref__", "data", "digest")
    data: np.ndarray
    digest: bytes

    def __new__(cls, data: Any) -> Array:
        array = np.asarray(data)
        array = array.astype(as_dtype(array.dtype), order="C", copy=True)
        # array.shape, not the copy's data pointer: a 0-d array keeps its rank
        head = f"{dtype_code(array.dtype)}{array.shape}".encode()
        digest = blake2b(head + array.tobytes(), digest_size=DIGEST).digest()
        with _lock:
            found = _arrays.get(digest)
            if found is None:
                found = object.__new__(cls)
                array.flags.writeable = False
                found.data, found.digest = array, digest
                _arrays[digest] = found
        return found

    @classmethod
    def by_digest(cls, digest: bytes) -> Array | None:
        """The array with this digest, if it is still alive in this process."""
        return _arrays.get(digest)

    @property
    def type(self) -> TensorType:
        return TensorType(self.data.dtype, self.data.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self.data,)

    def __repr__(self) -> str:
        return f"Array({self.type}, {self.digest.hex()[:8]})"


#: Of these classes exactly, values are kept and compared as they are.
_PLAIN = {int, str, bool, type(None)}
_KEPT = {*_PLAIN, float, Dim, TensorType, Array}


def _identity(value: Any) -> Any:
    """Key that the value is compared and hashed by."""
    kind = value.__class__
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value), value
    if isinstance(value, int):
        return int, value
    if isinstance(value, float):
        return float, struct.pack("<d", value)
    if isinstance(value, tuple):
        return tuple, tuple([_identity(v) for v in value])
    if is_dtype(value):
        return np.dtype, value.str
    return value  # Dim, TensorType, Array: they compare as they should


def same_attr(a: Any, b: Any) -> bool:
    """True if two attributes are equal, bit for bit and in type."""
    return bool(_identity(a) == _identity(b))


def _normalize(value: Any) -> Any:
    """Lists become tuples, NumPy scalars Python's; what is not allowed is a TypeError."""
    if value.__class__ in _KEPT:
        return value
    if value is None or isinstance(value, bool | int | float | str | Dim | TensorType | Array):
        return value
    if isinstance(value, list | tuple):
        return tuple([_normalize(v) for v in value])
    if isinstance(value, np.generic):
        return _normalize(value.item())
    if is_dtype(value):
        return as_dtype(value)
    raise TypeError(f"an attribute cannot hold a {type(value).__name__}: {value!r}")


class Attrs(Mapping[str, Any]):
    """An immutable mapping from names to values, sorted by name."""

    __slots__ = ("_concrete", "_entries", "_hash", "_key")
    _concrete: dict[str, Any] | None

    def __init__(self, entries: Mapping[str, Any] | None = None):
        self._entries: dict[str, Any] = {k: _normalize(v) for k, v in sorted((entries or {}).items())}
        self._key = tuple([(k, _identity(v)) for k, v in self._entries.items()])
        self._hash = hash(self._key)
        self._concrete = None

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> ValuesView[Any]:
        return self._entries.values()

    def items(self) -> ItemsView[str, Any]:
        return self._entries.items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attrs) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Attrs({self._entries})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Attrs, (self._entries,)

    def map(self, fn: Any) -> dict[str, Any]:
        """A plain dict with ``fn`` applied to every entry, inside tuples too."""
        return {k: _map(v, fn) for k, v in self._entries.items()}

    def concrete(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Entries as a reference implementation wants them: sizes are numbers, constant data are arrays. Found once
        where no size is among them."""
        if self._concrete is not None:
            return dict(self._concrete)
        sized = False

        def number(v: Any) -> Any:
            nonlocal sized
            if isinstance(v, Dim):
                sized = True
                return evaluate(v, sizes)
            return v.data if isinstance(v, Array) else v

        found = self.map(number)
        if not sized:
            self._concrete = dict(found)
        return found

    def replaced(self, fn: Any) -> Attrs:
        """With ``fn`` applied to every entry, inside tuples too; itself if that changes none."""
        new = self.map(fn)
        return self if all([new[k] is v for k, v in self._entries.items()]) else Attrs(new)


def _map(value: Any, fn: Any) -> Any:
    if not isinstance(value, tuple):
        return fn(value)
    new = tuple([_map(v, fn) for v in value])
    return value if all([a is b for a, b in zip(new, value)]) else new


EMPTY = Attrs()
