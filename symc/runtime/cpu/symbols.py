"""Symbols that code of plans calls, by name: routines of BLAS and LAPACK, NumPy's sorts and transforms, our functions,
kernels.

An address holds in one process; the name is the same in all that run this version of symc on this machine. The name of
a routine tells whose it is: code that is written for one library is not run with another.
"""

from __future__ import annotations

import importlib
from functools import cache

from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.blas_library import Library, OfNumpy, OfScipy, library
from symc.runtime.cpu.executable import NDARRAY


def routine(name: str) -> Symbol:
    """A routine of BLAS or LAPACK; all its arguments are addresses."""
    return _routine(library(), name)


@cache
def _routine(chosen: Library, name: str) -> Symbol:
    return Symbol(chosen.address(name), f"{chosen.name} {name}")


def find(name: str) -> Symbol:
    """The symbol of a name. Raises LookupError for what this process does not have: a kernel whose machine code is
    not on disk any more, a routine of another library."""
    kind, _, rest = name.partition(" ")
    if kind in (OfNumpy.name, OfScipy.name):
        if kind != library().name:
            raise LookupError(name)
        return routine(rest)
    if kind == "kernel":
        from symc.runtime.cache.machine_code import kept_kernel

        return kept_kernel(rest)
    if kind == "own":
        module, *names = rest.split()
        own: Symbol = importlib.import_module(module).entry(*names)
        return own
    if kind == "line":
        from symc.runtime.cpu import numpy_sorts

        return numpy_sorts.entry(rest)
    if kind == "transform":
        from symc.runtime.cpu import numpy_ffts

        return numpy_ffts.entry(rest)
    assert name == NDARRAY.name, name
    return NDARRAY
