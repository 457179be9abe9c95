"""Arrays of other libraries: pandas, polars, xarray, JAX, PyTorch and masked arrays, as arrays of numbers.

Values count by position: labels of rows do not align, and are not kept. What would be lost without a word is an error:
masks and missing values (a nan is a number), derivatives that PyTorch records, copies from devices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import InputError, SymcError, of_handler
from symc.ir.dtypes import foreign

#: Libraries whose arrays are operands of symbolic values on both sides. Others decide for themselves, as those with
#: units, which would be lost.
LIBRARIES = frozenset({"pandas", "polars", "xarray", "jax", "jaxlib", "torch"})


def library_of(item: Any) -> str:
    """The library of an array, among ``LIBRARIES``; "" for anything else."""
    root = type(item).__module__.partition(".")[0]
    return root if root in LIBRARIES and (hasattr(item, "__array__") or hasattr(item, "__dlpack__")) else ""


def array_of(item: Any, name: str = "") -> np.ndarray:
    """Anything array-like as an array of NumPy's, of any dtype. Raises InputError for what has no numbers, or more than
    numbers."""
    what = name or f"a {type(item).__module__.partition('.')[0]} {type(item).__name__}"
    if isinstance(item, np.ma.MaskedArray):
        raise InputError(f"{name or 'an operand'} is a masked array", help="masks are not supported: fill it first, "
                                                                           "a.filled(value)")
    library = library_of(item)
    if library and _missing(item, library):
        raise InputError(f"{what} has missing values",
                         help="give them a number: a.fill_null(value)" if library == "polars" else
                         "give them a number: a.fillna(value); or a.astype('float64'), where they are nan")
    try:
        if hasattr(item, "__array__") and not (library == "torch" and _is_foreign(item)):
            return np.asarray(item)
        return dlpack_array(item) if hasattr(item, "__dlpack__") else np.asarray(item)
    except SymcError:
        raise
    except Exception as e:  # whatever an array-like does when asked for its array
        if of_handler(e) or not (library or name):
            raise
        raise InputError(f"{what} is not an array: {type(item).__name__} cannot be converted",
                         help=f"{library or 'NumPy'} says: {e}") from None


def dlpack_array(item: Any) -> np.ndarray:
    """The array of another library on the host, where it lies, by DLPack."""
    if not _is_foreign(item):
        return np.from_dlpack(item)
    from symc.runtime.cuda.dlpack import on_host

    return on_host(item)


def _is_foreign(item: Any) -> bool:
    """True for an array of a dtype that NumPy does not have itself (torch.bfloat16)."""
    return foreign(str(getattr(item, "dtype", "")).rpartition(".")[2]) is not None


def _missing(item: Any, library: str) -> bool:
    """True if values are missing, in a column that says so beside its numbers."""
    if library == "polars":
        count = getattr(item, "null_count", int)()
        return bool(count if isinstance(count, int) else sum(count.row(0)))
    if library != "pandas":
        return False
    dtypes = item.dtypes if item.ndim == 2 else [item.dtype]
    return any(not isinstance(d, np.dtype) for d in dtypes) and bool(np.any(item.isna()))


def held(item: Any) -> Any:
    """The symbolic value that an array of xarray's holds (``array * x`` keeps its labels around it); else ``item``."""
    data = getattr(item, "data", None) if library_of(item) == "xarray" else None
    return data if hasattr(data, "value") and hasattr(data, "describe") else item
