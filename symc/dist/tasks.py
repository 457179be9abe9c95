"""Tasks of ``dist.map``, as workers run them: a compiled function on a block, and combining partial results."""

from __future__ import annotations

import functools
import pickle
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.dist.sources import Lazy
from symc.ir.op import lookup

#: How many functions a worker holds.
HELD = 64
_held: OrderedDict[str, Block] = OrderedDict()


class Block:
    """A compiled function on blocks, some of which are read here. A process loads it once, however many tasks it has.

    Gives an array, or a list where the function has several results.
    """

    def __init__(self, call: Any, token: str):
        self.call, self.token = call, token
        self._data: bytes | None = None

    def __call__(self, *args: Any) -> Any:
        found = self.call(*[a.array() if isinstance(a, Lazy) else np.asarray(a) for a in args])
        return found[0] if len(found) == 1 else found

    def __dask_tokenize__(self) -> str:
        return self.token

    def __reduce__(self) -> Any:
        if self._data is None:
            self._data = pickle.dumps(self.call)
        return _arrived, (self.token, self._data)


def _arrived(token: str, data: bytes) -> Block:
    """The function of a task: the one that is here, or a new one."""
    found = _held.get(token)
    if found is None:
        found = Block(pickle.loads(data), token)
        found._data = data
        _held[token] = found
        while len(_held) > HELD:
            _held.popitem(last=False)
    return found


def combined(kind: str, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Partial results made one by the binary op ``kind``, in order."""
    return functools.reduce(lookup(kind).reference, parts)


def of_list(results: Sequence[Any], k: int) -> Any:
    """One of several results."""
    return results[k]
