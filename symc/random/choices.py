"""Choosing: categories, elements with and without replacement, permutations."""

from __future__ import annotations

from typing import Any

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.dim import Size, known_nonnegative, product
from symc.ir.op import lookup, splat
from symc.ir.ops.assume import NOTHING, assume
from symc.ir.ops.cast import cast
from symc.ir.ops.ensure import at_least, ensured
from symc.ir.ops.kernel import bounded
from symc.ir.ops.leaf import iota
from symc.ir.ops.logic import shl, shr
from symc.ir.ops.random import random_bits
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value
from symc.numpy_api.manipulation import normal_axis
from symc.numpy_api.promotion import stretch
from symc.random.continuous import gumbel, uniform
from symc.random.core import F64, U64, as_key, distribution, known_data, sizes
from symc.tensors.convert import as_tensor, convert
from symc.tensors.public import API
from symc.tensors.sizes import as_size, size_of, user_shape, user_size
from symc.tensors.tensor import Tensor


@distribution
def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Tensor:
    """The number of a category along ``axis``, with probability proportional to exp(logits).

    ``shape`` is that of the result; without it, that of ``logits`` without ``axis``.
    """
    t = as_tensor(logits)
    if not t.ndim:
        raise ShapeError("categorical: logits need an axis of categories", values=[t.describe("logits")])
    t = API["moveaxis"](t, normal_axis(axis, t.ndim, "categorical", t), -1)
    full = None if shape is None else (*user_shape(sizes(shape, "categorical")), t.shape[-1])
    dtype = t.dtype if t.dtype.kind == "f" else None
    noise = gumbel(key, t.shape if full is None else full, dtype)
    return API["argmax"](API["add"](t, noise), -1)


@distribution
def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Tensor:
    """Elements of ``a`` along ``axis`` (or integers below ``a``), with probabilities ``p``, or else all alike.

    Without ``replace`` no element is chosen twice.
    """
    source, n = _source(a, axis, "choice")
    asked = sizes(shape, "choice")
    weights = None if p is None else _weights(p, n)
    if replace:
        places = _with_replacement(key, n, user_shape(asked), weights)
    else:
        places = _without_replacement(key, n, asked, weights)
    return places if source is None else API["take"](source, places, axis)


def _source(a: Any, axis: int, name: str) -> tuple[Tensor | None, Any]:
    """The array to choose from, and the number of its elements; no array for an integer."""
    if size_of(a) is not None and not isinstance(a, Tensor):
        n = user_size(size_of(a))  # type: ignore[arg-type]
        if isinstance(n, int) and n < 1:
            raise InputError(f"{name}: there is nothing to choose from: a is {n}")
        return None, n
    t = as_tensor(a)
    if not t.ndim:
        raise ShapeError(f"{name}: a value without axes: give an array, an int or a size", values=[t.describe("a")])
    n = t.shape[normal_axis(axis, t.ndim, name, t)]
    if isinstance(n, int) and n < 1:
        raise InputError(f"{name}: there is nothing to choose from", values=[t.describe("a")])
    return Tensor(at_least(t.value, normal_axis(axis, t.ndim, name, t), 1)), n


def _weights(p: Any, n: Any) -> Tensor:
    t = as_tensor(p)
    if t.ndim != 1 or t.dtype.kind not in "iuf":
        raise ShapeError("choice: p has one axis, with a probability for each element", values=[t.describe("p")])
    if isinstance(n, int) and isinstance(t.shape[0], int) and n != t.shape[0]:
        raise ShapeError(f"choice: there are {n} elements and {t.shape[0]} probabilities", values=[t.describe("p")])
    data = known_data(t)
    if data is not None and not ((data >= 0).all() and abs(data.sum() - 1) < 1e-6):
        raise InputError("choice: p must not be negative and must sum to 1")
    return API["astype"](Tensor(ensured(t.value, (as_size(n),))), F64)


def _with_replacement(key: Any, n: Any, shape: tuple, weights: Tensor | None) -> Tensor:
    if weights is None:
        return API["floor"](API["multiply"](uniform(key, shape, F64), n)).astype("int64") if not isinstance(n, int) \
            else _integers(key, n, shape)
    u = uniform(key, shape, F64)
    steps = API["cumsum"](weights)
    inner = API["getitem"](steps, slice(0, user_size(as_tensor(weights).value.shape[0] - 1)))
    return API["searchsorted"](inner, API["multiply"](u, API["getitem"](steps, -1)), "right")


def _integers(key: Any, n: int, shape: tuple) -> Tensor:
    from symc.random.discrete import integers

    return integers(key, 0, n, shape)


def _without_replacement(key: Any, n: Any, shape: tuple, weights: Tensor | None) -> Tensor:
    count = product(shape)
    spare = size_of(n) - count  # type: ignore[operator]
    if known_nonnegative(-spare - 1):
        raise InputError(f"choice: {count} elements cannot be chosen from {n} without replacement")
    if weights is None:
        order = permutation(key, n)
    else:  # the greatest of log p + noise are a choice in turn, each in proportion to what is left
        order = API["argsort"](API["negative"](API["add"](API["log"](weights), gumbel(key, (n,), F64))))
    return API["reshape"](API["getitem"](order, slice(0, user_size(count))), user_shape(shape))


@distribution
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Tensor:
    """x with its elements along ``axis`` in random order; for an integer or size n, of 0 to n - 1.

    Whole slices move together, or with ``independent`` each line along ``axis`` for itself.
    """
    owner = as_key(key, "permutation")
    if size_of(x) is not None and not isinstance(x, Tensor):
        return _shuffled(owner, sizes(x, "permutation"), 0)
    t = as_tensor(x)
    if not t.ndim:
        raise DTypeError("permutation: a value without axes: give an array, an int or a size", values=[t.describe("x")])
    at = normal_axis(axis, t.ndim, "permutation", t)
    if independent:
        return API["take_along_axis"](t, _shuffled(owner, t.value.shape, at), at)
    return API["take"](t, _shuffled(owner, (t.value.shape[at],), 0), at)


def _shuffled(key: Value, shape: tuple[Size, ...], axis: int) -> Tensor:
    """Places along an axis in random order: random bits with the place as their last ones, sorted. (Numbers are sorted
    in a fifth of the time that an order takes. Up to 2**20 places 44 bits decide.)"""
    n = shape[axis]
    if isinstance(n, int):
        width = splat(n.bit_length(), TensorType(U64, shape))
    else:
        exponent = API["frexp"](API["astype"](user_size(n), F64))[1]
        width = stretch(convert(exponent.value, U64), shape)
    place = cast(iota(dtype=DTYPES["i64"], shape=shape, axis=axis), dtype=U64)
    keys = lookup("or")(shl(shr(random_bits(key, shape=shape, dtype=U64), width), width), place)
    order = lookup("sort")(keys, axis=axis)
    order = cast(order - shl(shr(order, width), width), dtype=DTYPES["i64"])
    if axis == len(shape) - 1:
        order = assume(order, **{**NOTHING, "structure": ("unique",)})
    return Tensor(bounded(order, size=n))
