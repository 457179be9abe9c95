"""The dtypes that symc knows, one record each: what it is called, computed in, held as, and spelled like.

A dtype that memory holds in other bits than scalars are computed in (float16) differs from the others here alone; what
a library has no routines for, and where sums need more digits, follows from the record. One that NumPy does not have
itself (bfloat16) is a dtype of storage: memory, movements and casts know it, everything else is computed in float32
(``symc.opt.widen``).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from symc.errors import missing_package
from symc.ir.record import dataclass


class ForeignDtype:
    """A float dtype of another package, which is imported when there are arrays of it: NumPy takes it for its
    ``dtype``, whose kind is no float's."""

    kind, isnative, isbuiltin = "f", True, 2

    def __init__(self, name: str, package: str, char: str, itemsize: int):
        self.name = self.str = name
        self.package, self.char, self.itemsize, self.alignment = package, char, itemsize, itemsize
        self._found: np.dtype | None = None

    @property
    def dtype(self) -> np.dtype:
        """NumPy's own. Raises InputError where the package is missing."""
        if self._found is None:
            try:
                self._found = np.dtype(getattr(__import__(self.package), self.name))
            except ModuleNotFoundError as e:
                raise missing_package(e) from e
        return self._found

    @property
    def type(self) -> Any:
        return self.dtype.type

    def newbyteorder(self, order: str = "=") -> ForeignDtype:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, np.dtype) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"dtype({self.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        return foreign, (self.name,)


#: The upper half of a float32.
bfloat16 = cast(np.dtype, ForeignDtype("bfloat16", "ml_dtypes", "E", 2))


@dataclass(frozen=True)
class DType:
    """One dtype.

    ``name``: in the text of the IR and, as a type and a conversion, in that of kernels. ``computed``: the name of the
    dtype of scalars; ``memory``: that of elements in the memory of a kernel. ``loaded``, ``stored``: an element as a
    scalar, a scalar as an element. ``rounded``: a scalar that is exact in the dtype. ``blas``: the letter of routines.
    ``dlpack``: DLPack's code of a foreign dtype; ``safetensors``: the name in such files. Without one there is none.
    """

    name: str
    numpy: np.dtype
    computed: str
    memory: str
    loaded: str = "{}"
    stored: str = "{}"
    rounded: str = "{}"
    blas: str = ""
    dlpack: int | None = None
    safetensors: str = ""


def _integer(letter: str, size: int) -> DType:
    name = f"{letter}{8 * size}"
    return DType(name, np.dtype(f"{letter}{size}"), name, name, rounded="{}" if name == "i64" else name + "({})",
                 safetensors=name.upper())


RECORDS: dict[np.dtype, DType] = {r.numpy: r for r in (
    DType("bool", np.dtype("bool"), "bool", "u8", "({} != 0)", "u8({})", safetensors="BOOL"),
    *[_integer(letter, size) for letter in "iu" for size in (1, 2, 4, 8)],
    DType("f16", np.dtype("float16"), "f32", "u16", "from_half({})", "to_half({})", "round_half({})",
          safetensors="F16"),
    DType("bf16", bfloat16, "f32", "u16", "from_bfloat({})", "to_bfloat({})", "round_bfloat({})",
          dlpack=4, safetensors="BF16"),
    DType("f32", np.dtype("float32"), "f32", "f32", blas="s", safetensors="F32"),
    DType("f64", np.dtype("float64"), "f64", "f64", blas="d", safetensors="F64"),
    DType("c64", np.dtype("complex64"), "c64", "c64", blas="c", safetensors="C64"),
    DType("c128", np.dtype("complex128"), "c128", "c128", blas="z"),
)}  # fmt: skip
#: By the names that the text of the IR uses.
DTYPES: dict[str, np.dtype] = {r.name: r.numpy for r in RECORDS.values()}
DTYPE_NAMES: dict[np.dtype, str] = {d: n for n, d in DTYPES.items()}
#: Those that NumPy has, which ops are defined in.
ARITHMETIC = tuple(d for d in RECORDS if isinstance(d, np.dtype))


def computed(dtype: np.dtype) -> np.dtype:
    """The dtype of scalars of a dtype while they are computed with; itself of one that symc does not know."""
    dtype = foreign(dtype) or dtype
    return DTYPES[RECORDS[dtype].computed] if dtype in RECORDS else dtype


def is_narrow(dtype: np.dtype) -> bool:
    """True if scalars of a dtype are computed in a wider one, and only rounded to it."""
    return computed(dtype) != dtype


def is_half(dtype: np.dtype) -> bool:
    """True for floats of 16 bits, of which libraries of devices have products."""
    return is_narrow(dtype) and dtype.itemsize == 2


def is_foreign(dtype: Any) -> bool:
    """True for a dtype of storage that NumPy does not have itself."""
    return type(dtype) is ForeignDtype


def is_dtype(x: Any) -> bool:
    """True for a dtype, NumPy's own or one of storage."""
    return isinstance(x, np.dtype) or is_foreign(x)


#: By the names that they have in NumPy, too.
_FOREIGN = {name: d for d in DTYPE_NAMES if is_foreign(d) for name in (d.name, DTYPE_NAMES[d])}


def foreign(dtype: Any) -> np.dtype | None:
    """The foreign dtype that a dtype, scalar type or name stands for; None for anything else."""
    if is_foreign(dtype):
        return cast(np.dtype, dtype)
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", getattr(dtype, "__name__", None))
    return _FOREIGN.get(name) if isinstance(name, str) and isinstance(dtype, str | np.dtype | type) else None


def finfo(dtype: Any) -> Any:
    """The limits of a float dtype, as ``np.finfo`` says them."""
    found = foreign(dtype)
    return np.finfo(dtype) if found is None else __import__(cast(Any, found).package).finfo(np.dtype(found))


def dtype_code(dtype: np.dtype) -> str:
    """NumPy's short name of a dtype; of a foreign one, where it says no more than the size, its own."""
    return dtype.str if dtype.isbuiltin == 1 else (foreign(dtype) or dtype).str


def typestr(dtype: np.dtype) -> str:
    """The dtype in NumPy's array interface; of one that it does not have, the integer of as many bits."""
    return f"<u{dtype.itemsize}" if is_foreign(dtype) else dtype.str


def described(array: np.ndarray) -> np.ndarray:
    """An array for NumPy's file format, which has no names of foreign dtypes: their bits, in a field of that name."""
    d = foreign(array.dtype)
    return array if d is None else array.view([(d.name, typestr(d))])


def undescribed(array: np.ndarray) -> np.ndarray:
    """An array out of NumPy's file format. What other programs write says no more than the size of a bfloat16."""
    names = array.dtype.names or ("bfloat16",) * (array.dtype == "V2")
    d = foreign(names[0]) if len(names) == 1 else None
    return array if d is None else array.view(d)


def lent(owner: Any, dtype: np.dtype) -> np.ndarray:
    """The array of an owner's array interface, whose elements are called by ``typestr``."""
    found = np.asarray(owner)
    return found.view(dtype) if is_foreign(dtype) else found
