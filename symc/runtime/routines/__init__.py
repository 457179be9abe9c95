"""Routines that plans call beside kernels and libraries, in the language of kernels: every argument is an address, as
BLAS and LAPACK have it.

A function's parameters say what lies at their addresses (``llvm_natives``). A module here is one of machine code for
each kind of numbers, which is compiled when it is first needed: its text is not even imported where the code is on
disk.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from symc.ir.locks import new_lock
from symc.runtime.cache.machine_code import Symbol, load_module

#: How much LLVM does for modules (1 for others): those whose loops go over many numbers are vectorized, which takes
#: longer to compile; of what runs once in a while the least code is made.
_LEVELS = {"blas_loops": 3, "substitution": 3, "line_counts": 3, "line_keys": 3, "mask_places": 3, "sections": 0}
#: Modules of which few programs need more than one routine: each is machine code of its own.
_ALONE = ("line_sorts",)
_lock = new_lock()
_addresses: dict[tuple[str, str], Callable[[str], int]] = {}


def entry(module: str, name: str) -> Symbol:
    """A routine of a module: one that it has for a letter of BLAS or a dtype, such as scale_d."""
    part = name if module in _ALONE else name.rpartition("_")[2]
    with _lock:
        if (module, part) not in _addresses:
            level = _LEVELS.get(module, 1)
            _addresses[module, part] = load_module(f"{module} {part}", lambda: text(module, part), level)
    return Symbol(_addresses[module, part](f"symc_{name}"), f"own {__name__} {module} {name}")


def text(module: str, part: str) -> str:
    """LLVM's text of the part of a module that is for a kind of numbers."""
    from symc.runtime.compilers import llvm_natives

    return llvm_natives.text(importlib.import_module(f"{__name__}.{module}").texts(part))
