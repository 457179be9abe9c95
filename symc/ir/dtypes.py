"""The dtypes that symc knows, one record each: what it is called, computed in, held as, and spelled like.

A dtype that memory holds in other bits than scalars are computed in (float16) differs from the others here alone; what
a library has no routines for, and where sums need more digits, follows from the record.
"""

from __future__ import annotations

import numpy as np

from symc.ir.record import dataclass


@dataclass(frozen=True)
class DType:
    """One dtype.

    ``name``: in the text of the IR and, as a type and a conversion, in that of kernels. ``computed``: the name of the
    dtype of scalars; ``memory``: that of elements in the memory of a kernel. ``loaded``, ``stored``: an element as a
    scalar, a scalar as an element. ``rounded``: a scalar that is exact in the dtype. ``blas``: the letter of routines.
    """

    name: str
    numpy: np.dtype
    computed: str
    memory: str
    loaded: str = "{}"
    stored: str = "{}"
    rounded: str = "{}"
    blas: str = ""


def _integer(letter: str, size: int) -> DType:
    name = f"{letter}{8 * size}"
    return DType(name, np.dtype(f"{letter}{size}"), name, name, rounded="{}" if name == "i64" else name + "({})")


RECORDS: dict[np.dtype, DType] = {r.numpy: r for r in (
    DType("bool", np.dtype("bool"), "bool", "u8", "({} != 0)", "u8({})"),
    *[_integer(letter, size) for letter in "iu" for size in (1, 2, 4, 8)],
    DType("f16", np.dtype("float16"), "f32", "u16", "from_half({})", "to_half({})", "round_half({})"),
    DType("f32", np.dtype("float32"), "f32", "f32", blas="s"),
    DType("f64", np.dtype("float64"), "f64", "f64", blas="d"),
    DType("c64", np.dtype("complex64"), "c64", "c64", blas="c"),
    DType("c128", np.dtype("complex128"), "c128", "c128", blas="z"),
)}  # fmt: skip
#: By the names that the text of the IR uses.
DTYPES: dict[str, np.dtype] = {r.name: r.numpy for r in RECORDS.values()}
DTYPE_NAMES: dict[np.dtype, str] = {d: n for n, d in DTYPES.items()}


def computed(dtype: np.dtype) -> np.dtype:
    """The dtype of scalars of a dtype while they are computed with; itself of one that symc does not know."""
    return DTYPES[RECORDS[dtype].computed] if dtype in RECORDS else dtype


def is_narrow(dtype: np.dtype) -> bool:
    """True if scalars of a dtype are computed in a wider one, and only rounded to it."""
    return computed(dtype) != dtype


__all__ = ["DTYPES", "DTYPE_NAMES", "RECORDS", "DType", "computed", "is_narrow"]
