"""Shadow arrays: with ``sc.config.shadow`` every value is computed while it is built, on samples of the inputs.

Errors that numbers make (a singular matrix, an index out of bounds, a failed assertion) are then raised at the line
that builds them. A sample is what ``sc.debug.sample`` says, the default of an input, the array of a state, or random
numbers from 0 to 1. Sizes that no sample tells are all the same number.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from symc.errors import SymcError
from symc.ir.location import here, in_order
from symc.ir.ops.effect import quiet
from symc.ir.order import postorder
from symc.ir.reference import apply, bind_sizes
from symc.ir.types import concrete_shape
from symc.ir.value import Value
from symc.tensors.leaves import leaf_of

#: The number that every size has of which no sample tells more.
SIZE = 3
_arrays: weakref.WeakKeyDictionary[Value, Any] = weakref.WeakKeyDictionary()


class _Sizes(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return SIZE


_sizes = _Sizes()
_given: weakref.WeakKeyDictionary[Value, np.ndarray] = weakref.WeakKeyDictionary()


def compute(results: Any) -> None:
    """Compute the tensors in what a public function gave. Raises what their references raise."""
    for v in _values(results):
        shadow(v)


def set_sample(v: Value, array: np.ndarray) -> None:
    """An array to stand for an input, with the numbers of its sizes."""
    _sizes.update(bind_sizes([v.type], [array.shape]))
    _arrays.clear()
    _given[v] = array


def shadow(v: Value) -> Any:
    """The array of a value; None where it cannot be known while the graph is built."""
    with quiet(), np.errstate(all="ignore"):
        for u in postorder([v], stop=lambda u: u in _arrays):
            if u not in _arrays:
                _arrays[u] = _computed(u)
    return _arrays[v]


def _computed(v: Value) -> Any:
    if v.op.name == "input":
        return _sample(v)
    operands = [_arrays[o] for o in v.operands]
    if v.op.name == "param" or any(a is None for a in operands):
        return None
    try:
        return apply(v, operands, _sizes, False, {v: here()} if here() else None)
    except SymcError as e:
        e.attach((), in_order(here()))
        raise
    except (KeyError, NotImplementedError):
        return None  # a size that is data


def _sample(v: Value) -> Any:
    leaf = leaf_of(v)
    if v in _given:
        return _given[v]
    if leaf.shared is not None:
        return leaf.shared.host()
    if leaf.default is not None:
        return leaf.default
    rng, shape = np.random.default_rng(v.attrs["serial"]), concrete_shape(v.shape, _sizes)
    return rng.random(shape).astype(v.dtype) if v.dtype.kind in "fc" else rng.integers(0, 2, shape).astype(v.dtype)


def _values(item: Any) -> Iterator[Value]:
    if isinstance(item, tuple | list):
        for x in item:
            yield from _values(x)
    elif isinstance(getattr(item, "value", None), Value):
        yield item.value
