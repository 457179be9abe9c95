"""The library that multiplies and factorizes, the names of its routines, and the width of its integers.

NumPy's wheels bring an OpenBLAS that a process has loaded once it has imported NumPy. It serves where it has all that
is called here; elsewhere (NumPy linked with another library) SciPy's modules `cython_blas` and `cython_lapack` do,
which export the routines of the library SciPy was built with. Nothing is compiled for either, and SciPy is loaded only
if it serves. One library does it all: each has threads of its own, which are limited while our code runs
(``blas_threads``).
"""

from __future__ import annotations

import ctypes
import importlib
from abc import ABC, abstractmethod
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from symc.errors import InputError
from symc.settings import config, variable

VARIABLE = variable("blas")
#: The routines that are called, without the letter of the dtype.
BLAS = ("axpy", "gemm", "gemv", "syrk", "trsm", "trsv")
LAPACK = ("gbsv", "geqrf", "gesdd", "getrf", "gtsv", "lacpy", "laset", "potrf")
#: LAPACK has other names for matrices of real and of complex numbers.
OF_REAL, OF_COMPLEX = ("orgqr", "syevd"), ("heevd", "ungqr")
ROUTINES = tuple(
    c + name for letters, own in (("sd", OF_REAL), ("cz", OF_COMPLEX)) for c in letters
    for name in (*BLAS, *LAPACK, *own))
#: What libraries call the functions that tell and set the number of threads.
THREADS = tuple((f"{p}get_num_threads{s}", f"{p}set_num_threads{s}") for p in ("scipy_openblas_", "openblas_")
                for s in ("", "64_", "_64")) + (("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),)


class Library(ABC):
    """Routines of BLAS and LAPACK, all of whose arguments are addresses."""

    name: ClassVar[str]
    integer: ClassVar[np.dtype]  # of the sizes that it reads and the pivots that it writes

    @property
    def most(self) -> int:
        """The greatest size."""
        return int(np.iinfo(self.integer).max)

    @abstractmethod
    def address(self, routine: str) -> int:
        """The address of one of ``ROUTINES``."""

    @property
    @abstractmethod
    def linked(self) -> Any:
        """Something that is linked with the library; None if it is not found."""

    @cached_property
    def threads(self) -> tuple[Any, Any] | None:
        """``get()`` and ``set(n)``; None where it has no threads, or no way to tell it."""
        for get, put in THREADS if self.linked is not None else ():
            found = _function(self.linked, get), _function(self.linked, put)
            if None not in found:
                return found
        return None


class OfNumpy(Library):
    """The OpenBLAS of NumPy's wheels, whose names and integers show that nobody else links it by chance."""

    name, integer = "numpy", np.dtype("i8")

    def __init__(self, linked: Any):
        self._linked = linked

    @property
    def linked(self) -> Any:
        return self._linked

    def address(self, routine: str) -> int:
        return ctypes.cast(self._linked[self._symbol(routine)], ctypes.c_void_p).value or 0

    @staticmethod
    def _symbol(routine: str) -> str:
        return f"scipy_{routine}_64_"

    @property
    def complete(self) -> bool:
        """True if it has all that is called, and can be told to use one thread."""
        return all(_function(self._linked, self._symbol(r)) for r in ROUTINES) and self.threads is not None


class OfScipy(Library):
    """The library that SciPy calls."""

    name, integer = "scipy", np.dtype("i4")

    def address(self, routine: str) -> int:
        from symc.runtime.cpu import scipy_functions

        module = "cython_blas" if routine[1:] in BLAS else "cython_lapack"
        return scipy_functions.address(f"scipy.linalg.{module}", routine)

    @cached_property
    def linked(self) -> Any:
        from symc.runtime.cpu import scipy_functions

        path = scipy_functions.path_of("scipy.linalg.cython_blas")
        return None if path is None else ctypes.CDLL(path)


@cache
def library() -> Library:
    """The library of this process: what the variable asks for, else NumPy's, if it serves."""
    wanted = config.blas
    found = None if wanted == OfScipy.name else of_numpy()
    if found is None and wanted == OfNumpy.name:
        raise InputError(f"{VARIABLE}: NumPy has no BLAS and LAPACK here that can be called",
                         help=f"{VARIABLE}=scipy, or leave {VARIABLE} away")
    return found or OfScipy()


def of_numpy() -> OfNumpy | None:
    """NumPy's library, if it has all that is called."""
    try:
        module = importlib.import_module("numpy._core._multiarray_umath")
        found = OfNumpy(ctypes.CDLL(module.__file__))  # what it is linked with is found in it
    except (ImportError, AttributeError, TypeError, OSError):
        return None
    return found if found.complete else None


def _function(linked: Any, name: str) -> Any:
    """A function of a library, if it is there. (``hasattr`` keeps what it finds, which takes four times as long.)"""
    try:
        return linked[name]
    except AttributeError:
        return None
