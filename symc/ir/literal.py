"""Literals of IR text: how numbers, constant data and attributes are spelled, so that they read back bit for bit."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from symc.ir.attrs import Array
from symc.ir.dim import Dim
from symc.ir.dtypes import foreign, is_dtype
from symc.ir.types import DTYPE_NAMES, TensorType

#: Constant arrays up to this many elements are written out; larger ones by digest.
INLINE_ELEMENTS = 16
_NAN_BITS = {2: ("<e", "<H", 0x7E00), 4: ("<f", "<I", 0x7FC00000), 8: ("<d", "<Q", 0x7FF8000000000000)}


def print_float(x: Any, itemsize: int = 8) -> str:
    """Shortest text that reads back as the same bits of a float of ``itemsize`` bytes."""
    if math.isnan(x):
        fmt, bits_fmt, quiet = _NAN_BITS[itemsize]
        raw = x.tobytes() if isinstance(x, np.generic) else struct.pack(fmt, x)
        bits = struct.unpack(bits_fmt, raw)[0]
        return "nan" if bits == quiet else f"nan({bits:#x})"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return repr(float(str(x))) if itemsize < 8 else repr(float(x))


def print_number(x: np.ndarray | np.generic) -> str:
    """A 0-d array or NumPy scalar, given its dtype elsewhere."""
    x = np.asarray(x)[()]
    if foreign(x.dtype):
        return print_float(np.float32(x), 4) if x == x else f"nan({int(x.view(f'u{x.dtype.itemsize}')):#x})"
    kind = x.dtype.kind
    if kind == "b":
        return "true" if x else "false"
    if kind == "f":
        return print_float(x, x.dtype.itemsize)
    if kind == "c":
        half = x.dtype.itemsize // 2
        return f"complex({print_float(x.real, half)}, {print_float(x.imag, half)})"
    return str(int(x))


def print_attr(value: Any) -> str:
    """An attribute's value."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return print_float(value)
    if isinstance(value, str):
        import json

        return json.dumps(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(map(print_attr, value)) + (",)" if len(value) == 1 else ")")
    if is_dtype(value):
        return DTYPE_NAMES[value]
    if isinstance(value, Array):
        return print_array(value)
    assert isinstance(value, int | Dim | TensorType), value
    return str(value)


def print_array(a: Array) -> str:
    """``dense(type, numbers...)``, or ``dense(type, #digest)`` for a large one."""
    if a.data.size > INLINE_ELEMENTS:
        return f"dense({a.type}, #{a.digest.hex()})"
    return f"dense({', '.join([str(a.type), *[print_number(x) for x in a.data.ravel()]])})"


def nan_from_bits(bits: int, dtype: np.dtype) -> np.ndarray:
    """The 0-d nan with exactly these bits."""
    return np.array(bits, f"u{dtype.itemsize}").view(dtype)
