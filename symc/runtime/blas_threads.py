"""BLAS uses threads of its own, with sums that depend on how many there are. While our code runs, it uses one.

Where BLAS offers no way to tell it (another library than OpenBLAS or MKL), it is left as it is.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from symc.runtime import scipy_functions
from symc.runtime.native.pool_ir import Pool, available, words

#: What libraries call the functions that tell and set the number of threads.
NAMES = tuple((f"{p}get_num_threads{s}", f"{p}set_num_threads{s}") for p in ("scipy_openblas_", "openblas_")
              for s in ("", "64_", "_64")) + (("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),)


def to_be_limited() -> bool:
    """Whether runs are to limit BLAS: it has several threads, or would have if no run limited it at present."""
    return _known() and (functions()[0]() > 1 or words()[Pool.BEFORE] > 0)  # type: ignore[index]


@functools.cache
def _known() -> bool:
    """Tell the pool how to limit BLAS, if that can be."""
    found = functions() if available() else None
    if found is not None:
        words()[Pool.GET], words()[Pool.SET] = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in found)
    return found is not None


@functools.cache
def functions() -> tuple[Any, Any] | None:
    """``get()`` and ``set(n)`` of the library that SciPy calls."""
    path = scipy_functions.path_of("scipy.linalg.cython_blas")
    library = ctypes.CDLL(path) if path is not None else None  # it is loaded already; what it is linked to is found too
    for get, put in NAMES:
        if hasattr(library, get) and hasattr(library, put):
            return getattr(library, get), getattr(library, put)
    return None
