"""Leaves of a graph: inputs that are given in a call, constants, and variables whose type comes with the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError
from symc.ir.dim import Size, fresh_size
from symc.ir.types import TensorType, as_dtype
from symc.ir.value import fresh_input
from symc.tensors.callsite import caller
from symc.tensors.convert import as_tensor, asarray, default_float
from symc.tensors.deferred import Deferred
from symc.tensors.labels import checked
from symc.tensors.leaves import Leaf, register_leaf
from symc.tensors.public import located
from symc.tensors.sizes import named_size
from symc.tensors.state import concrete, converted
from symc.tensors.tensor import Tensor


@located
def input(name: str, dtype: Any = None, shape: Sequence[Any] | int | str | None = (),
          dims: Sequence[str | None] | str | None = None, *, default: Any = None) -> Tensor:
    """A value that is given when the compiled function is called.

    ``dtype``: a NumPy dtype or its name; the default float if not given. ``shape``: one entry an axis: an int, the
    name of a size (equal names are equal sizes), a size taken from another shape, or None for a size of its own.
    ``dims``: labels of the axes, ``("batch", "feature")``, which results carry on (``x.dims``).
    ``default``: what it is in calls that leave it out, a number or an array.
    Raises DTypeError and InputError for what is none of these.

    >>> x = sc.input("x", "float32", shape=("n", 3))
    >>> sc.compile(sc.sum(x, axis=1))(np.ones((2, 3)))
    array([3., 3.], dtype=float32)
    """
    if not isinstance(name, str):
        raise InputError(f"the name of an input must be a string, not {name!r}", where=[caller()])
    if shape is None:
        raise InputError(
            f"input {name!r} needs a shape",
            where=[caller()],
            help="shape=() is a scalar, ('n', 3) has a size called n; sc.Variable(name) leaves the rank open",
        )
    entries = [shape] if isinstance(shape, int | str) else list(shape)
    loc = caller()
    type_ = TensorType(default_float() if dtype is None else as_dtype(dtype), [_entry(e, name) for e in entries])
    labels = None if dims is None else checked(dims, entries, f"input {name!r}")
    leaf = Leaf(name, loc, dims=labels, default=_default(name, type_, default))
    return Tensor(register_leaf(fresh_input(type_), leaf))


def _default(name: str, type_: TensorType, given: Any) -> np.ndarray | None:
    """The default value of an input, as an array that nobody writes into."""
    if given is None:
        return None
    label = f"the default of input {name!r}"
    array = converted(concrete(given, label), type_.dtype, label, listed=isinstance(given, list | tuple))
    fits = array.ndim == type_.ndim and all(
        n == have for n, have in zip(type_.shape, array.shape, strict=True) if isinstance(n, int))
    if not fits:
        raise ShapeError(f"{label} has the shape {array.shape}", values=[(f"%{name}", type_, None)], where=[caller()])
    array = np.array(array, order="C", copy=True)
    array.flags.writeable = False
    return array


def _entry(entry: Any, name: str) -> Size:
    if entry is None:
        return fresh_size()
    size = named_size(entry, f"an axis of input {name!r}")
    if isinstance(size, int) and size < 0:
        raise InputError(
            f"input {name!r}: the size {size} is negative", where=[caller()], help="None is a size of its own"
        )
    return size


def scalar(name: str, dtype: Any = None, *, default: Any = None) -> Tensor:
    """An input without axes."""
    return input(name, dtype, (), default=default)


def vector(name: str, dtype: Any = None, shape: Sequence[Any] = (None,), *,
           default: Any = None) -> Tensor:
    """An input with one axis."""
    return input(name, dtype, _of_rank(shape, 1, name), default=default)


def matrix(name: str, dtype: Any = None, shape: Sequence[Any] = (None, None), *,
           default: Any = None) -> Tensor:
    """An input with two axes."""
    return input(name, dtype, _of_rank(shape, 2, name), default=default)


def tensor3(name: str, dtype: Any = None, shape: Sequence[Any] = (None, None, None), *,
            default: Any = None) -> Tensor:
    """An input with three axes."""
    return input(name, dtype, _of_rank(shape, 3, name), default=default)


def tensor4(name: str, dtype: Any = None, shape: Sequence[Any] = (None, None, None, None), *,
            default: Any = None) -> Tensor:
    """An input with four axes."""
    return input(name, dtype, _of_rank(shape, 4, name), default=default)


def _of_rank(shape: Sequence[Any], rank: int, name: str) -> Sequence[Any]:
    if len(shape) != rank:
        raise InputError(
            f"input {name!r} has {rank} axes here, the shape {tuple(shape)} has {len(shape)}",
            where=[caller()],
            help="sc.input(name, dtype, shape) takes any shape",
        )
    return shape


@located
def Variable(name: str, dtype: Any = None, shape: Sequence[Any] | None = None, *, default: Any = None) -> Any:
    """A variable. With a shape it is an input; without one its rank, and dtype if not given, come with the call.

    Expressions over such a variable are recorded and typed once per signature; see ``symc.tensors.deferred``.
    """
    if shape is not None:
        return input(name, dtype, shape, default=default)
    if not isinstance(name, str):
        raise InputError(f"the name of a variable must be a string, not {name!r}", where=[caller()])
    known = None if dtype is None else as_dtype(dtype)
    if default is not None and known is not None:
        default = converted(concrete(default, name), known, f"the default of variable {name!r}")
    return Deferred(None, name=name, dtype=known, loc=caller(), default=default)


@located
def Constant(value: Any, dtype: Any = None) -> Tensor:
    """A constant: a number (which promotes like a Python number), an array, or nested lists of these."""
    return as_tensor(value) if dtype is None else asarray(value, dtype)
