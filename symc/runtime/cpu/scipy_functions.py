"""Functions of SciPy's compiled modules by address: BLAS, LAPACK, and special functions of one number.

Cython modules export the addresses of their functions. A module is loaded alone, without the package around it, whose
import takes ten times as long (0.3 s for ``scipy.linalg``); a later import of the package finds the same module.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec

from symc.errors import PackageError
from symc.ir.facts import Routine

#: Of special functions: what native code calls them, and what the text of a kernel does.
PREFIX, IN_TEXT = "symc_scipy_", "scipy_"
#: Types in C, by the letters of a routine; an "i" is Cython's flag.
_LETTERS = {"double": "d", "long": "l", "Py_ssize_t": "l", "int __pyx_skip_dispatch": "i", "double *": "*"}
_SPECIAL = "scipy.special.cython_special"
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]


def address(module: str, export: str) -> int:
    """The address of a function that a Cython module exports."""
    capsule = _exports(module)[export]
    return _pointer(capsule, _name(capsule))


@functools.cache
def _exports(module: str) -> Mapping[str, object]:
    if module in sys.modules:
        return sys.modules[module].__pyx_capi__
    spec = _spec(module)
    if spec is not None and spec.loader is not None:
        try:
            alone = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(alone)
            return alone.__pyx_capi__
        except (ImportError, AttributeError):  # it needs the rest of its package
            pass
        finally:
            sys.modules.pop(module, None)  # so that the package, when it is imported, takes it in
    return importlib.import_module(module).__pyx_capi__


def path_of(module: str) -> str | None:
    """The file of a compiled module."""
    spec = _spec(module)
    return None if spec is None else spec.origin


def _spec(module: str) -> ModuleSpec | None:
    """Spec of the file of a module, found without importing its package."""
    top, *inner = module.split(".")
    found = importlib.util.find_spec(top)
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        for suffix in EXTENSION_SUFFIXES:
            path = os.path.join(place, *inner[:-1], inner[-1] + suffix)
            if os.path.exists(path):
                return importlib.util.spec_from_file_location(module, path)
    return None


# --- special functions, as external functions of native code; a key is that of a ``symc.ir.facts.Routine`` ------------


def symbol(key: str) -> str:
    """The symbol of a special function in native code, once it has an address."""
    return PREFIX + key


def add_symbol(key: str) -> str:
    """Let native code call a special function; returns its symbol."""
    from llvmlite import binding

    binding.add_symbol(symbol(key), special(key))
    return symbol(key)


def special(key: str) -> int:
    """The address of a special function: of the exports that are called so, that which takes these numbers."""
    routine, exports = Routine.of(key), _exports(_SPECIAL)
    for export in filter(re.compile(rf"(__pyx_fuse_(\d+_)?\d+)?{routine.name}$").match, exports):
        if _is_of(routine, _name(exports[export]).decode()):
            return address(_SPECIAL, export)
    raise PackageError(f"this version of SciPy has no function scipy.special.{routine.name} for kernels",
                       help="install a newer one")


def _is_of(routine: Routine, declared: str) -> bool:
    """True if an export that is declared so in C is a routine."""
    result, _, operands = declared.rstrip(")").partition(" (")
    found = ["o" if t.strip().startswith("struct") else _LETTERS.get(t.strip(), "?") for t in operands.split(",")]
    numbers, options = routine.takes.rstrip("o").replace("f", "d"), "o" * routine.takes.count("o")
    wanted = [*numbers, *("*" * routine.gives or "i"), *options]
    return found == wanted and result == ("void" if routine.gives else "double")


def called_in(text: str) -> tuple[str, ...]:
    """The keys of the special functions that an LLVM text calls."""
    return tuple(sorted(set(re.findall(rf"@{PREFIX}(\w+)", text))))
