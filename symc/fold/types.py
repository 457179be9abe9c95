"""Types of what flows between blocks: arrays of one dtype and fixed shape, and structs of such arrays.

All instances of a type lie in one arena, an array a field with a row an instance, so a type is what decides which
blocks can be wired together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symc.errors import InputError, did_you_mean
from symc.ir.types import DTYPE_NAMES, as_dtype


class Array:
    """One array: ``f32`` is a number, ``f32[150]`` a vector, ``f32[3, 4]`` a matrix. Equal arrays are one type."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: Any, shape: tuple[int, ...] = ()):
        self.dtype, self.shape = as_dtype(dtype), tuple(int(n) for n in shape)
        if any(n < 0 for n in self.shape):
            raise InputError(f"a type has sizes that are numbers from 0 on, not {self.shape}")

    def __getitem__(self, shape: int | tuple[int, ...]) -> Array:
        return Array(self.dtype, (*self.shape, *(shape if isinstance(shape, tuple) else (shape,))))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Array) and (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    @property
    def fields(self) -> Mapping[str, Array]:
        """Itself, without a name."""
        return {"": self}

    @property
    def words(self) -> int:
        """The number of numbers in a row."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __repr__(self) -> str:
        return DTYPE_NAMES[self.dtype] + (str(list(self.shape)) if self.shape else "")


f32, f64, i32, i64 = (Array(d) for d in ("float32", "float64", "int32", "int64"))


class Struct:
    """Several arrays by name: ``Struct("State", h=f32[150], c=f32[150])``. Two structs are two types."""

    def __init__(self, name: str = "Struct", /, **fields: Array):
        for key, a in fields.items():
            if not isinstance(a, Array):
                raise InputError(f"{name}.{key} must be an array type such as fd.f32[150], not {a!r:.40}")
        if not fields:
            raise InputError(f"{name} has no fields", help='fd.Struct("State", h=fd.f32[150])')
        self.name, self.fields = name, dict(fields)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}: {a}' for k, a in self.fields.items())})"


Type = Array | Struct


class Attr:
    """A port that takes a number of the example: a word's id, a label. Integers and floats; never differentiated."""

    def __init__(self, type: Array):
        if not isinstance(type, Array):
            raise InputError(f"an attribute is an array type such as fd.i32, not {type!r:.40}")
        self.type = type


class Key:
    """A port that is given nothing: each instance has a key of its own there, for ``sc.random``, ``fd.lib.dropout``.

    It is another in each step of training, the same however nodes are batched, and 0 where nothing is trained.
    """


class Many:
    """A port that takes any number of values of one type, none included."""

    def __init__(self, type: Type):
        if not isinstance(type, Array | Struct):
            raise InputError(f"fd.Many takes a type, not {type!r:.40}")
        self.type = type


class Record:
    """The fields of a struct in the body of a block. A field that is not there is an error that says which are."""

    def __init__(self, what: str, type: Type, fields: Mapping[str, Any]):
        self.__dict__.update(fields)
        self.__dict__["_what"], self.__dict__["_type"] = what, type

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InputError(f"{self._what} has no field {name!r}: it is {self._type}",
                         help=did_you_mean(name, list(self._type.fields)))
