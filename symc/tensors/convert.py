"""From what users write to tensors: Python numbers, NumPy arrays, sizes, nested lists; and between dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError
from symc.ir.dim import Dim
from symc.ir.dtypes import foreign
from symc.ir.op import lookup
from symc.ir.ops.cast import cast
from symc.ir.ops.leaf import array as constant
from symc.ir.types import DTYPE_NAMES, DTYPES, as_dtype
from symc.ir.value import Value
from symc.tensors.callsite import MASKED, PANDAS, asking, caller
from symc.tensors.deferred import Recorded
from symc.tensors.others import array_of, held
from symc.tensors.public import API, PROTOCOLS, public
from symc.tensors.sizes import SymbolicSize, user_size
from symc.tensors.tensor import Tensor

_DOUBLE = DTYPES["f64"]
_default_float = _DOUBLE


def set_default_float(dtype: Any) -> None:
    """The dtype that Python floats, and integers where a float is needed, become: float64 (at first) or float32.

    Other than float64, it is also what lists of Python floats and NumPy's float64 scalars (``np.sqrt(2)``) become, and
    they promote like Python floats: float64 comes from arrays and dtypes that say so, and from nothing else.
    """
    global _default_float
    d = as_dtype(dtype)
    if d.kind != "f":
        raise DTypeError(f"the default float cannot be {d}", help="use 'float64' or 'float32'")
    _default_float = d


def default_float() -> np.dtype:
    """The dtype that Python floats, and integers where a float is needed, become."""
    return _default_float


def default_complex() -> np.dtype:
    """The complex dtype whose parts are the default float."""
    return DTYPES["c64" if _default_float.itemsize <= 4 else "c128"]


def inexact_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which functions of real and complex numbers compute: integers and bools in the default float.

    (NumPy's ufuncs alone take smaller floats for small integers; see ``promotion.loop_dtypes``.)
    """
    return dtype if dtype.kind in "fc" else _default_float


def settle(dtype: np.dtype, strong: bool) -> np.dtype:
    """``dtype`` as a result of promotion; the default float where float64 came from no operand (``strong``: it did)."""
    if strong or dtype.char not in "dD":
        return dtype
    return _default_float if dtype.kind == "f" else default_complex()


def as_tensor(item: Any) -> Tensor:
    """Anything that can be an operand as a tensor. Raises DTypeError for what has no dtype of symc."""
    if isinstance(item, Tensor):
        return item
    t = as_operand(item)
    if t.weak and _default_float is not _DOUBLE and t.dtype.char in "dD":
        return Tensor(convert(t.value, settle(t.dtype, False)), weak=True)
    return t


def as_operand(item: Any) -> Tensor:
    """``as_tensor`` for a function that promotes: Python floats keep all their digits until they meet other dtypes."""
    if isinstance(item, Tensor):
        return item
    if isinstance(item, Value):  # in a rule
        return Tensor(item)
    if isinstance(item, bool) or promotes_weakly(item):
        return _number(item)
    if isinstance(item, SymbolicSize):
        return Tensor(lookup("size")(value=item.dim), weak=True)
    if isinstance(item, Dim):
        return as_tensor(user_size(item))
    if isinstance(item, list | tuple):
        return _nested(item)
    if item is None or isinstance(item, str | bytes | dict | set):
        raise DTypeError(f"{item!r} is not a number or an array")
    if isinstance(item, Recorded):
        message, help = item.not_an_operand
        raise InputError(message, help=help)
    inner = held(item)
    return inner if isinstance(inner, Tensor) else Tensor(constant(_as_array(item)))


def _number(item: Any) -> Tensor:
    if isinstance(item, bool):
        return Tensor(constant(np.bool_(item)))
    if isinstance(item, int):
        try:
            return Tensor(constant(np.int64(item)), weak=True)
        except OverflowError:
            if 0 <= item < 2**64:
                return Tensor(constant(np.uint64(item)), weak=True)
            raise DTypeError(f"the integer {item} does not fit in 64 bits", help="use a float") from None
    return Tensor(constant(np.asarray(item)), weak=True)


def promotes_weakly(item: Any) -> bool:
    """True for a Python number, which promotes by its kind alone. (NumPy's float64 is a Python float.)"""
    return isinstance(item, int | float | complex) and not (
        isinstance(item, bool) or (_default_float is _DOUBLE and isinstance(item, np.generic))
    )


def typeless(item: Any) -> bool:
    """Python numbers alone, in lists too: what has no dtype of its own if the default float is not float64."""
    if isinstance(item, list | tuple):
        return all(map(typeless, item))
    return isinstance(item, bool | int | float | complex)


def own_dtype(item: Any, dtype: np.dtype) -> np.dtype:
    """The dtype of what a user wrote, of which NumPy makes an array of ``dtype``."""
    return dtype if _default_float is _DOUBLE or dtype.char not in "dD" else settle(dtype, not typeless(item))


def _as_array(item: Any) -> np.ndarray:
    a = item if type(item) is np.ndarray else array_of(item)
    if a.dtype.kind not in "biufc" and foreign(a.dtype) is None:
        raise DTypeError(
            f"an array of dtype {a.dtype} is not supported",
            help="sc.sparse.asarray(A), or A.toarray()" if hasattr(item, "tocoo") else
            "use bool, integers, floats or complex numbers",
        )
    return a


def check_not_scipy(item: Any, operand: Tensor, called: bool = False) -> None:
    """Raise InputError for what asks a symbolic value for its array, or would: a sparse matrix of SciPy's, a masked
    array, ``@`` of pandas."""
    what, help = "a sparse matrix of SciPy's", "make it one of symc: sc.sparse.asarray(A) @ x; or a dense one: " \
        "x + A.toarray()"
    if called and asking(MASKED):
        what, help = "a masked array", "masks are not supported: fill it first, a.filled(value)"
    elif called and asking(PANDAS):
        what, help = "an array of pandas", "say sc.matmul(a, x) for a @ x, or take its numbers: a.to_numpy()"
    elif not called:
        if not (type(item).__module__.startswith("scipy.sparse") and hasattr(item, "tocoo")):
            return
        what = f"{type(item).__name__}{list(item.shape)}"
    raise InputError(f"{what} meets a symbolic value", values=[operand.describe()], where=[caller()], help=help)


PROTOCOLS["not_scipy"] = check_not_scipy


def _symbolic(item: Any) -> bool:
    if isinstance(item, list | tuple):
        return any(map(_symbolic, item))
    return isinstance(item, Tensor | SymbolicSize | Dim)


def _nested(item: list | tuple) -> Tensor:
    if not _symbolic(item):
        try:
            a = _as_array(item)
            return Tensor(constant(a), weak=_default_float is not _DOUBLE and a.dtype.char in "dD" and typeless(item))
        except ValueError as e:
            raise DTypeError("a nested list must have rows of equal length", help=str(e)) from None
    return API["stack"]([_nested(i) if isinstance(i, list | tuple) else as_tensor(i) for i in item])


def convert(v: Value, dtype: np.dtype) -> Value:
    """The value in another dtype. A constant is converted here and now, as NumPy does, so no cast is left behind."""
    if v.dtype == dtype:
        return v
    data = v.data
    if data is not None:
        with np.errstate(all="ignore"):
            return constant((data.real if data.dtype.kind == "c" and dtype.kind not in "cb" else data).astype(dtype))
    return cast(v, dtype=dtype)


def placed(item: Any, dtype: np.dtype, name: str) -> Value:
    """An operand in the dtype of where it goes. Raises DTypeError for Python numbers that do not fit there."""
    if dtype.kind in "biuf" and not isinstance(item, Tensor) and typeless(item):
        try:
            if np.iscomplexobj(item):
                raise ValueError("its real part alone: x.real")
            if dtype.kind in "iu":
                return constant(np.asarray(item, dtype))
        except (OverflowError, ValueError) as e:
            raise DTypeError(f"{name}: {item!r:.40} does not fit {DTYPE_NAMES[dtype]}", help=str(e)) from None
    return convert(as_operand(item).value, dtype)


#: Of an array of NumPy's.
MOST_AXES = 64


@public(aliases=("asanyarray",), memory="view")
def asarray(
    obj: Any,
    dtype: Any = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    ndmin: int = 0,
    order: str = "K",
    like: Any = None,
) -> Tensor:
    """``obj`` (a number, array, tensor, or nested lists of these) as a tensor, of ``dtype`` if given."""
    t = Tensor(as_tensor(obj).value if dtype is None else placed(obj, as_dtype(dtype), "asarray"))
    if ndmin > MOST_AXES:
        raise InputError(f"asarray: ndmin, {ndmin}, is more than the {MOST_AXES} axes of an array")
    if t.ndim < ndmin:
        t = API["reshape"](t, (1,) * (ndmin - t.ndim) + t.shape)
    return t


@public(aliases=("asfortranarray",), memory="maybe")
def ascontiguousarray(a: Any, dtype: Any = None) -> Tensor:
    """``asarray``: how a value lies in memory is decided when it is compiled."""
    return API["atleast_1d"](asarray(a, dtype, copy=True))


@public(memory="new")
def array(obj: Any, dtype: Any = None, *, copy: bool | None = True, device: Any = None, ndmin: int = 0,
          order: str = "K", like: Any = None) -> Tensor:
    """``asarray`` in an array of its own, which matters where arrays are written to."""
    return asarray(obj, dtype, copy=copy, ndmin=ndmin)


@public(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x converted to ``dtype``; complex to real drops the imaginary part."""
    return Tensor(convert(as_operand(x).value, as_dtype(dtype)))
