"""Keys: made from a seed, split into more, or combined with a number. Keys are data: u64[2]."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError
from symc.ir.ops.leaf import array
from symc.ir.ops.random import derive_key, split_key
from symc.ir.types import DTYPE_NAMES
from symc.ir.value import Value
from symc.random.core import U64, as_key, sizes
from symc.tensors.convert import as_tensor, convert
from symc.tensors.public import located
from symc.tensors.sizes import SymbolicSize
from symc.tensors.tensor import Tensor

#: The key that seeds are combined with: the fraction of pi.
ROOT = np.array([0x243F6A8885A308D3, 0x13198A2E03707344], U64)


@located
def key(seed: Any) -> Tensor:
    """The key that belongs to a seed: an int of any size that is not negative, or a symbolic integer."""
    if isinstance(seed, Tensor | SymbolicSize):
        return Tensor(derive_key(array(ROOT), _words(seed, "key: the seed"), purpose="seed"))
    return as_tensor(key_data(seed))


def key_data(seed: Any) -> np.ndarray:
    """The key of a number, as an array."""
    if isinstance(seed, bool | np.bool_ | float | np.floating):
        raise InputError(f"key: the seed must be an integer, not {seed!r}")
    try:
        number = operator.index(seed)
    except TypeError:
        raise InputError(f"key: the seed must be an integer, not {seed!r:.40}",
                         help="sc.random.Generator(None) takes a seed from the operating system") from None  # fmt: skip
    if number < 0:
        raise InputError(f"key: the seed must not be negative, and {number} is given")
    found = derive_key.reference(ROOT, np.array(number % 2**64, U64), purpose="seed")
    while number := number >> 64:
        found = derive_key.reference(found, np.array(number % 2**64, U64), purpose="seed")
    return found


@located
def split(key: Any, num: Any = 2) -> Tensor:
    """``num`` independent keys as rows (an array of them, if ``num`` is a shape). Do not use ``key`` again."""
    shape = sizes(num, "split")
    return Tensor(split_key(as_key(key, "split"), shape=shape))


@located
def fold_in(key: Any, data: Any) -> Tensor:
    """The key that belongs to ``key`` and an integer, for example the number of a step. Arrays give arrays of keys."""
    return Tensor(derive_key(as_key(key, "fold_in"), _words(data, "fold_in: the data"), purpose="fold_in"))


def _words(item: Any, what: str) -> Value:
    t = as_tensor(item % 2**64 if isinstance(item, int) and not isinstance(item, bool) else item)
    if t.dtype.kind not in "iu":
        raise DTypeError(f"{what} must be integers, not {DTYPE_NAMES[t.dtype]}", values=[t.describe()])
    return convert(t.value, U64)


def derived(key: Value, number: int, purpose: str) -> Value:
    """The key for one number."""
    return derive_key(key, array(np.array(number, U64)), purpose=purpose)
