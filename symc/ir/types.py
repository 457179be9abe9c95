"""Types of values: a dtype with a shape, or a tuple of types. Types are interned: compare them with ``is``."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError, nearest
from symc.ir.dim import Dim, Measured, Size, is_fresh, product
from symc.ir.dtypes import DTYPE_NAMES, DTYPES, foreign, is_foreign
from symc.ir.locks import new_lock
from symc.ir.size_values import LARGEST, evaluate, names, substitute

#: Of these, NumPy has a name that counts bytes: int64, uint64, and a float of 16 bytes on some machines.
_BYTES = frozenset({"i8", "u8", "f16"})
#: NumPy's limit.
MAX_AXES = 64

_KNOWN = {d: d for d in DTYPE_NAMES}
_lock = new_lock()
_tensor_types: dict[tuple, TensorType] = {}
_tuple_types: dict[tuple, TupleType] = {}
_stored: set[np.dtype] = set()
#: Those of sizes that are data, which keep graphs alive, and of sizes without a name, of which every input has its own.
_passing_types: weakref.WeakValueDictionary[tuple, TensorType] = weakref.WeakValueDictionary()
_passing: Mapping[tuple, weakref.ref[TensorType]] = vars(_passing_types)["data"]  # its own `get` takes twice as long
_passing_tuples: weakref.WeakValueDictionary[tuple, TupleType] = weakref.WeakValueDictionary()


def as_dtype(dtype: Any) -> np.dtype:
    """The native-endian dtype that NumPy takes ``dtype`` for: a dtype, a scalar type, or a name ("float32", "f4").

    Names of the IR that NumPy does not know ("f32", "u16") are taken too. Where both know one ("i8", "u8", "f16") it
    is NumPy's, which counts bytes. Raises DTypeError for anything symc has no type for (object, strings, ...).
    """
    if isinstance(dtype, np.dtype) and dtype in _KNOWN:
        return _KNOWN[dtype]
    if (found := foreign(dtype)) is not None:
        return found
    try:
        if hasattr(dtype, "shape") and not isinstance(dtype, type | np.dtype | str):  # np.str_ is a name
            raise TypeError("an array is given where a dtype belongs")
        d = np.dtype(dtype).newbyteorder("=")
    except TypeError as e:
        if isinstance(dtype, str) and dtype in DTYPES and dtype not in _BYTES:
            return DTYPES[dtype]
        near = nearest(dtype, map(str, DTYPE_NAMES), 0.75) if isinstance(dtype, str) else None
        help = f"did you mean {near!r}?" if near else "use a NumPy dtype such as 'float32' or np.int64"
        if isinstance(dtype, tuple | list):
            help = f"a shape is given by name: shape={dtype!r}"
        raise DTypeError(f"not a dtype: {dtype!r}", help=help) from e
    for known in DTYPE_NAMES:  # numpy has several equal integer dtypes (longlong); keep one object of each
        if known == d:
            return known
    help = "supported: " + ", ".join(str(k) for k in DTYPE_NAMES)
    if isinstance(dtype, str) and dtype in _BYTES:
        help = f"short names count bytes, as NumPy's do: {str(DTYPES[dtype])!r} is {DTYPES[dtype].str[1:]!r}"
    raise DTypeError(f"dtype {d} is not supported", help=help)


def ir_dtype(dtype: Any) -> np.dtype:
    """The dtype of a name of the IR, which counts bits ("i8" is int8), or as ``as_dtype`` says."""
    return DTYPES[dtype] if isinstance(dtype, str) and dtype in DTYPES else as_dtype(dtype)


def _check_sizes(shape: tuple[Size, ...]) -> None:
    """Raise ShapeError for a size that no array has."""
    for s in shape:
        if isinstance(s, int) and s < 0:
            raise ShapeError(f"the size {s} is negative")
        if max([abs(c) for _, c in s.terms] if isinstance(s, Dim) else [s]) > LARGEST:
            raise ShapeError(f"the size {s} does not fit in 64 bits", help=f"the largest size is {LARGEST}")


def is_passing(shape: Iterable[Size]) -> bool:
    """Test of a shape for sizes that are data, or have no name."""
    return any(isinstance(n, Measured) or is_fresh(n) for s in shape for n in names(s))


class TensorType:
    """dtype (a name is that of the IR) and shape of one array. ``shape`` holds ints and Dims."""

    __slots__ = ("__weakref__", "_text", "dtype", "shape")
    dtype: np.dtype
    shape: tuple[Size, ...]
    _text: str

    def __new__(cls, dtype: Any, shape: Iterable[Size] = ()) -> TensorType:
        dtype, shape = ir_dtype(dtype), tuple(shape)
        found = _tensor_types.get((dtype, shape))
        if found is not None:
            return found
        passing = _passing.get((dtype, shape))
        if passing is not None and (found := passing()) is not None:
            return found
        shape = tuple(s if isinstance(s, Dim) else int(s) for s in shape)
        key = (dtype, shape)
        known: MutableMapping[tuple, TensorType] = _tensor_types
        found = known.get(key)
        if found is None:
            _check_sizes(shape)
            if is_passing(shape):
                known = _passing_types
            with _lock:
                found = known.get(key)
                if found is None:
                    found = object.__new__(cls)
                    found.dtype, found.shape = dtype, shape
                    found._text = f"{DTYPE_NAMES[dtype]}[{', '.join(map(str, shape))}]"
                    if is_foreign(dtype):
                        _stored.add(dtype)
                    known[key] = found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.dtype, self.shape)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements."""
        return product(self.shape)

    @property
    def nbytes(self) -> Size:
        """The size of the data in bytes."""
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: Iterable[Size]) -> TensorType:
        return TensorType(self.dtype, shape)

    def with_dtype(self, dtype: Any) -> TensorType:
        return TensorType(dtype, self.shape)


class TupleType:
    """The type of an op with several results. Projections (``get``) have the types in ``items``."""

    __slots__ = ("__weakref__", "items")
    items: tuple[TensorType, ...]

    def __new__(cls, items: Iterable[TensorType]) -> TupleType:
        key = tuple(items)
        known: MutableMapping[tuple, TupleType] = _tuple_types
        found = known.get(key)
        if found is None:
            if any(is_passing(t.shape) for t in key if isinstance(t, TensorType)):
                known = _passing_tuples
            with _lock:
                found = known.get(key)
                if found is None:
                    found = object.__new__(cls)
                    found.items = key
                    known[key] = found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return TupleType, (self.items,)

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ")"

    __repr__ = __str__


Type = TensorType | TupleType


def substitute_type(t: Type, sizes: Mapping[str, Size]) -> Type:
    """The type with size names replaced."""
    if isinstance(t, TupleType):
        return TupleType([substitute_type(i, sizes) for i in t.items])  # type: ignore[misc]
    return t.with_shape([substitute(s, sizes) for s in t.shape])


def concrete_shape(shape: Iterable[Size], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape as numbers."""
    return tuple(evaluate(s, sizes) for s in shape)


def any_stored() -> bool:
    """True if this process has met a type of a dtype of storage: most never do, and need not look for them."""
    return bool(_stored)


def is_inexact(d: np.dtype) -> bool:
    """Floating or complex: what has derivatives."""
    return d.kind in "fc"


def real_dtype(d: np.dtype) -> np.dtype:
    """The dtype of ``abs`` and ``real``: float32 for complex64, float64 for complex128, else itself."""
    if d.kind != "c":
        return d
    return DTYPES["f32"] if d.itemsize == 8 else DTYPES["f64"]


def complex_dtype(d: np.dtype) -> np.dtype:
    """The complex dtype with parts of dtype ``d``: complex64 for float32, complex128 for float64.

    Raises DTypeError for what no complex dtype has as parts (float16, integers).
    """
    if d.kind == "c":
        return d
    if d.kind != "f" or d.itemsize < 4:
        raise DTypeError(
            f"there is no complex dtype with parts of {DTYPE_NAMES[d]}", help="cast to float32 or float64 first"
        )
    return DTYPES["c64"] if d.itemsize == 4 else DTYPES["c128"]
