"""NumPy's functions that sort one line, which use the processor's vectors: functions of C that need no Python.

They stand in a table of each dtype that NumPy's C API tells the address of (``PyArray_ArrFuncs``), laid out alike in
all versions of one ABI. With another ABI, sorts run by their NumPy reference.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from symc.ir.dtypes import ARITHMETIC
from symc.ir.types import DTYPES
from symc.runtime.cache.machine_code import Symbol

#: What ``PyArray_GetNDArrayCVersion`` (the first function of the API) says, and which number tells the tables.
ABI, TABLES = 0x02000000, 365
#: Where a table has its functions, by what they do: the fast one, and two places further the stable one.
PLACES = {"sort": 33, "long": 33, "argsort": 36}
STABLE = 2


@cache
def _api() -> ctypes.Array:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    return ctypes.cast(get(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))  # type: ignore


@cache
def known() -> bool:
    """True if NumPy's tables are those that are known here, and have all functions."""
    try:
        if ctypes.CFUNCTYPE(ctypes.c_uint)(_api()[0])() != ABI or not _api()[TABLES]:
            return False
    except (AttributeError, ImportError):
        return False
    return all(_table(d)[at + more] for d in ARITHMETIC for at in PLACES.values() for more in (0, STABLE))


def _table(dtype: np.dtype) -> Any:
    """The functions of a dtype."""
    table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(_api()[TABLES])(dtype)
    return ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))


@cache
def entry(name: str) -> Symbol:
    """``sort <dtype>``, and ``long <dtype>`` for long lines: int f(line, n, nothing); ``argsort <dtype>``: int f(line,
    places, n, nothing). They give less than 0 where memory ends. Places of equals may be in any order, unless the dtype
    has few bytes (``keeps_order``)."""
    what, dtype = name.split()
    stable = what != "sort" and keeps_order(DTYPES[dtype])
    return Symbol(_table(DTYPES[dtype])[PLACES[what] + STABLE * stable], f"line {name}")


def keeps_order(dtype: np.dtype) -> bool:
    """True if places of equals are found in order, by counting."""
    return dtype.itemsize < 4
