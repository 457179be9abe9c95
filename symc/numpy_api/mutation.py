"""Functions that write into arrays: ``x[i] = v``, ``x += v``, ``out=``, ``x.sort()``, ``np.copyto`` and the like.

In a traced function these are written to the arrays that it made (``symc.numpy_api.aliasing``): each is the functional
update (``x.at[i].set(v)``), and every handle of the array has it. Elsewhere values never change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from symc.errors import DTypeError, IndexingError, ShapeError, SymbolicValueError
from symc.ir.dim import known_different
from symc.ir.types import DTYPE_NAMES
from symc.ir.value import Value
from symc.numpy_api.aliasing import Alias, check_writable, link, write
from symc.numpy_api.indexing import getitem
from symc.numpy_api.promotion import broadcast_shape, rows, stretch
from symc.tensors.callsite import caller
from symc.tensors.constants import known_array
from symc.tensors.convert import as_operand, as_tensor, convert
from symc.tensors.public import API, DISPATCH, located
from symc.tensors.tensor import Tensor

_writing = partial(located, memory="same")


def _fitted(t: Tensor, result: Any, what: str) -> Value:
    """The result of a ufunc as NumPy puts it into an array: casts within a kind, and repeats."""
    new = as_operand(result)
    if not (np.can_cast(new.dtype, t.dtype, "same_kind") or new.weak and new.dtype.kind == "i" and t.dtype.kind == "u"):
        raise DTypeError(f"{what}: {DTYPE_NAMES[new.dtype]} is not written into an array of {DTYPE_NAMES[t.dtype]}",
                         values=rows([t, new]), help="x = x.astype('float64') first, or x = x + y, which makes another")
    shape = t.value.shape
    if new.ndim > t.ndim or known_different(broadcast_shape([t, new], what), shape):
        raise ShapeError(f"{what}: the result does not fit the array it is written into", values=rows([t, new]))
    return stretch(convert(new.value, t.dtype), shape)


@_writing
def assign(t: Tensor, index: Any, value: Any) -> None:
    """``t[index] = value``."""
    check_writable(t)
    mask = _mask_of(index)
    if mask is not None and as_operand(value).ndim <= t.ndim - mask.ndim:  # the same for all elements that are chosen
        new = convert(as_operand(value).value, t.dtype)
        write(t, convert(API["where"](_over(t, mask), Tensor(new), t).value, t.dtype))
        return
    if isinstance(value, Tensor) and isinstance(value.held, Alias) and isinstance(t.held, Alias):
        place = getitem(t, index)  # x[1:] += 1 has written to its view of x, and assigns that now
        if value.held.storage is t.held.storage and link(t, place, "view") and place.held.steps == value.held.steps:
            return
    write(t, t.at[index].set(value).value)


def _mask_of(index: Any) -> Tensor | None:
    """A mask whose elements are not known, if that is the index."""
    if not isinstance(index, Tensor) or index.dtype.kind != "b" or not index.ndim:
        return None
    return index if known_array(index.value) is None else None


def _over(t: Tensor, mask: Tensor) -> Tensor:
    if mask.ndim > t.ndim or known_different(mask.value.shape, t.value.shape[: mask.ndim]):
        raise IndexingError("the mask does not have the shape of the array", values=rows([t, mask]), where=[caller()])
    return API["reshape"](mask, mask.shape + (1,) * (t.ndim - mask.ndim))


@_writing
def in_place(t: Tensor, function: str, other: Any) -> Tensor:
    """``t += other`` and the like."""
    check_writable(t)
    result = API[function](t, other)
    write(t, _fitted(t, result, function))
    return t


def into(out: Tensor, result: Any, where: Any, what: str) -> Tensor:
    """A result written into ``out=``, where ``where`` is true."""
    check_writable(out)
    new = as_tensor(result)
    write(out, _fitted(out, new if where is True else API["where"](where, new, out), what))
    return out


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """``np.copyto``."""
    _only_tensor(dst, "copyto")
    into(dst, src, where, "copyto")


def _putmask(a: Any, mask: Any, values: Any) -> None:
    """``np.putmask`` with a number, or values in the shape of the array."""
    _only_tensor(a, "putmask")
    new = as_tensor(values)
    if new.ndim and known_different(new.value.shape, a.value.shape):
        raise ShapeError("putmask takes a number, or an array of the same shape, with symbolic values",
                         values=rows([a, new]))
    into(a, API["astype"](new, a.dtype), mask, "putmask")


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """``np.fill_diagonal`` of a matrix with a number."""
    _only_tensor(a, "fill_diagonal")
    check_writable(a)
    if a.ndim != 2 or wrap or np.ndim(val):
        raise ShapeError("fill_diagonal takes a matrix and a number with symbolic values", values=rows([a]))
    rows_, columns = (API["arange"](s) for s in a.shape)
    write(a, API["where"](API["equal"](rows_[:, None], columns), API["astype"](val, a.dtype), a).value)


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """``np.put`` with as many values as indices, or one."""
    _only_tensor(a, "put")
    check_writable(a)
    flat = API["reshape"](a, (-1,)).at[ind].set(v)
    write(a, API["reshape"](flat, a.shape).value)


def _place(arr: Any, mask: Any, vals: Any) -> None:
    """``np.place``: one value after the other, and again from the first, where the mask holds."""
    _only_tensor(arr, "place")
    check_writable(arr)
    new = API["ravel"](as_tensor(vals))
    flat = API["ravel"](API["astype"](mask, np.bool_))
    which = API["remainder"](API["cumsum"](API["astype"](flat, np.int64)) - 1, new.shape[0])
    chosen = API["reshape"](API["take"](API["astype"](new, arr.dtype), which), arr.shape)
    write(arr, API["where"](API["reshape"](flat, arr.shape), chosen, arr).value)


def _only_tensor(t: Any, name: str) -> None:
    if not isinstance(t, Tensor):
        raise SymbolicValueError(
            f"np.{name}: symbolic values are not written into an array of NumPy's", where=[caller()],
            help="make the array by np.zeros_like(x) or sc.zeros(shape)")


_FUNCTIONS: dict[Any, Callable[..., None]] = {
    np.copyto: _copyto, np.putmask: _putmask, np.fill_diagonal: _fill_diagonal, np.put: _put,
    np.place: _place,
}  # fmt: skip
DISPATCH.update({function: _writing(call) for function, call in _FUNCTIONS.items()})

#: ``ufunc.at``, by the method of ``x.at[i]``.
_AT = {np.add: "add", np.subtract: "subtract", np.multiply: "multiply", np.divide: "divide", np.maximum: "max",
       np.minimum: "min"}  # fmt: skip


def ufunc_at(ufunc: np.ufunc, inputs: Sequence[Any]) -> None:
    """``np.add.at(x, i, v)``."""
    t, index, value = inputs
    _only_tensor(t, f"{ufunc.__name__}.at")
    check_writable(t)
    if ufunc not in _AT:
        raise SymbolicValueError(f"np.{ufunc.__name__}.at is not available on symbolic values", values=rows([t]),
                                 help="use x.at[i].add(v), .multiply, .max, .min or .set")
    write(t, _fitted(t, getattr(t.at[index], _AT[ufunc])(value), f"{ufunc.__name__}.at"))


def _method(name: str, change: Callable[..., Any]) -> Callable[..., Any]:
    def call(t: Tensor, *args: Any, **kwargs: Any) -> None:
        check_writable(t)
        write(t, convert(as_operand(change(t, *args, **kwargs)).value, t.dtype))
    return _writing(call)


#: Methods of arrays that write to them and give None.
WRITERS: dict[str, Callable[..., Any]] = {
    "fill": _method("fill", lambda t, value: Tensor(stretch(convert(as_operand(value).value, t.dtype), t.value.shape))),
    "sort": _method("sort", lambda t, axis=-1, kind=None, **options: API["sort"](t, axis, kind)),
    "partition": _method("partition", lambda t, kth, axis=-1, **options: API["partition"](t, kth, axis)),
    "put": _writing(_put),
}


def write_by(name: str, t: Tensor, args: tuple, kwargs: dict[str, Any]) -> None:
    """The method of that name, which writes to ``t``."""
    WRITERS[name](t, *args, **kwargs)
