"""Ragged ports: what the body of a block says of each of its values, and the segments that this becomes.

In the body, ``kids.h`` is the field of one child, whichever. Ordinary code over it is computed for each child, with
what it uses of the instance spread to the children, and ``kids.sum(x)`` makes one array an instance of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.fold.types import Record, Type
from symc.grad import vmap as vmap_values
from symc.ir.dim import Size
from symc.ir.op import splat
from symc.ir.ops.arithmetic import maximum
from symc.ir.ops.index import gather, scatter
from symc.ir.ops.math import exp
from symc.ir.ops.shape import broadcast
from symc.ir.traverse import dependent, postorder, replace
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.tensors.convert import as_tensor
from symc.tensors.tensor import Tensor

Pair = tuple[Value, Value]


class Kids(Record):
    """The values at a ragged port. ``count`` is how many there are; reductions of none are 0, a maximum
    or minimum ``initial``."""

    def __init__(self, what: str, type: Type, fields: Mapping[str, Tensor]):
        super().__init__(what, type, fields)
        self.__dict__["_reductions"] = []
        if "" in fields:
            self.__dict__["value"] = fields[""]

    def _reduce(self, kind: str, x: Any, initial: float = 0.0) -> Tensor:
        v = as_tensor(x).value
        result = fresh_input(v.type)
        self._reductions.append((kind, v, result, initial))
        return Tensor(result)

    def sum(self, x: Any) -> Tensor:
        """The sum of ``x`` over the children."""
        return self._reduce("sum", x)

    def mean(self, x: Any) -> Tensor:
        """The mean of ``x`` over the children."""
        return self._reduce("mean", x)

    def max(self, x: Any, initial: float = -np.inf) -> Tensor:
        """The greatest of ``x`` over the children, and ``initial``."""
        return self._reduce("max", x, initial)

    def min(self, x: Any, initial: float = np.inf) -> Tensor:
        """The least of ``x`` over the children, and ``initial``."""
        return self._reduce("min", x, initial)

    def softmax(self, x: Any) -> Tensor:
        """The softmax of ``x`` among the children: again something of each child."""
        return self._reduce("softmax", x)

    @property
    def count(self) -> Tensor:
        """The number of children, in the dtype of their first field."""
        first = next(iter(self._type.fields.values())).dtype
        return self._reduce("sum", Tensor(splat(1, TensorType(first if first.kind == "f" else np.float32, ()))))


class Ragged:
    """Batches the body of a block with a ragged port. ``single`` and ``element``: leaves of one instance or child, and
    of all; ``segment``: to which instance each child belongs."""

    def __init__(self, name: str, single: Sequence[Pair], element: Sequence[Pair], n: Size, segment: Value):
        self.name, self.n, self.m, self.segment = name, n, segment.shape[0], segment
        self.single, self.element = dict(single), dict(element)
        self.reductions: list[tuple[str, Value, Value, float]] = []

    def batch(self, results: Sequence[Value]) -> list[Value]:
        """The results of a body over all instances."""
        for kind, v, result, initial in self.reductions:
            x = self.of_children(v)
            if kind == "softmax":
                self.element[result] = self.softmax(x)
            else:
                self.single[result] = self.reduced(kind, x, initial)
        if not dependent(postorder(results), self.element).isdisjoint(results):
            raise InputError(f"block {self.name}: the result is another for each child",
                             help="reduce what is computed of children: kids.sum(x), mean, max")
        return vmap_values(results, list(self.single), list(self.single.values()), self.n)

    def of_children(self, v: Value) -> Value:
        """A value over all children; what it uses of the instance is computed once an instance, and spread."""
        inner, outer = (dependent(postorder([v]), leaves) for leaves in (self.element, self.single))
        used = [o for x in postorder([v]) if x in inner and x not in self.element for o in x.operands]
        frontier = [o for o in dict.fromkeys([*used, v]) if o in outer and o not in inner]
        batched = vmap_values(frontier, list(self.single), list(self.single.values()), self.n)
        leaves = {f: fresh_input(f.type) for f in frontier}
        every = dict(self.element) | {leaves[f]: self.spread(b) for f, b in zip(frontier, batched, strict=True)}
        return vmap_values(replace([v], leaves), list(every), list(every.values()), self.m)[0]

    def spread(self, x: Value) -> Value:
        return gather(x, self.segment, axes=(0,))

    def into(self, x: Value, mode: str, initial: float) -> Value:
        start = splat(initial, TensorType(x.dtype, (self.n, *x.shape[1:])))
        return scatter(start, x, self.segment, axes=(0,), mode=mode)

    def reduced(self, kind: str, x: Value, initial: float) -> Value:
        if kind in ("max", "min"):
            return self.into(x, kind, initial)
        total = self.into(x, "add", 0)
        if kind == "sum":
            return total
        ones = splat(1, TensorType(x.dtype, (self.m,)))
        count = maximum(self.into(ones, "add", 0), splat(1, TensorType(x.dtype, (self.n,))))
        return total / broadcast(count, axes=(0,), shape=total.shape)

    def softmax(self, x: Value) -> Value:
        above = exp(x - self.spread(self.into(x, "max", -np.inf)))
        return above / self.spread(self.into(above, "add", 0))
