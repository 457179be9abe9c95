"""SciPy's scalar functions as external functions of native code, by the addresses that ``cython_special`` exports."""

from __future__ import annotations

import ctypes
import re

PREFIX = "symc_scipy_"


def symbol(export: str) -> str:
    """What native code calls an export, once it has an address."""
    return PREFIX + export.strip("_")


def add_symbol(export: str) -> str:
    """Let native code call an export; returns its symbol."""
    from llvmlite import binding
    from scipy.special import cython_special

    capsule = cython_special.__pyx_capi__[export]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    binding.add_symbol(symbol(export), api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))
    return symbol(export)


def called_in(text: str) -> tuple[str, ...]:
    """The exports that an LLVM text calls."""
    return tuple(sorted({f"__{name}" for name in re.findall(rf"@{PREFIX}(\w+)", text)}))
