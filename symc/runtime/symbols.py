"""What code of plans calls, by name: routines of BLAS and LAPACK, native functions of our own, kernels.

An address holds in one process; the name is the same in all that run this version of symc on this machine.
"""

from __future__ import annotations

import importlib

from symc.runtime.executor import NDARRAY
from symc.runtime.image import Symbol
from symc.runtime.scipy_functions import address

MODULES = {"blas": "scipy.linalg.cython_blas", "lapack": "scipy.linalg.cython_lapack"}


def symbol(kind: str, name: str) -> Symbol:
    """A routine of BLAS or LAPACK; all its arguments are pointers."""
    return Symbol(address(MODULES[kind], name), f"{kind} {name}")


def find(name: str) -> int:
    """The address of a symbol. Raises LookupError for a kernel whose machine code is not on disk any more."""
    kind, _, rest = name.partition(" ")
    if kind in MODULES:
        return symbol(kind, rest)
    if kind == "kernel":
        from symc.runtime.machine_code import kept_kernel

        return kept_kernel(rest)
    if kind == "own":
        module, _, function = rest.partition(" ")
        return importlib.import_module(module).entry(function)
    assert name == NDARRAY.name, name
    return NDARRAY
