"""Functions of items: Python on the example, and blocks that are made for the types of the values that come in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.fold import lib
from symc.fold.block import Block
from symc.fold.combinators import AllOf, Apply, Combinator, InputTransform
from symc.fold.types import Array, Type


def GetItem(key: Any) -> InputTransform:
    """An item of a sequence or dict."""
    return InputTransform(lambda x: x[key])


Nth = GetItem


def Slice(*args: Any, start: Any = None, stop: Any = None, step: Any = None) -> InputTransform:
    """Some items of a sequence: ``Slice(stop)``, ``Slice(start, stop, step)``, ``Slice(start=1)``."""
    return InputTransform(lambda x: x[slice(*args) if args else slice(start, stop, step)])


def Length() -> InputTransform:
    """The number of items: an attribute."""
    return InputTransform(len)


def NGrams(n: int) -> InputTransform:
    """All runs of n items, as tuples."""
    return InputTransform(lambda x: [tuple(x[k : k + n]) for k in range(len(x) - n + 1)])


def OneHot(n: int, dtype: Any = "float32") -> InputTransform:
    """A row of n numbers that is 1 at the place that comes in: an attribute. Raises InputError for another place."""

    def row(k: Any) -> np.ndarray:
        if not 0 <= k < n:
            raise InputError(f"fd.OneHot({n}) of {k!r}")
        return np.eye(1, n, k, dtype)[0]

    return InputTransform(row)


class Typed(Combinator):
    """A block that is made for the types of a sequence of values, or of the first of ``many``, when they are met."""

    def __init__(self, name: str, make: Callable[..., Block], many: bool = False):
        self.name, self.make, self.many = name, make, many
        self.made: dict[tuple[Type, ...], Block] = {}

    def build(self, g: Any, x: Any) -> Any:
        nodes = list(x.values() if isinstance(x, dict) else x)
        types = g._types_of(nodes)
        key = types[:1] if self.many else types
        if key not in self.made:
            if not key or not all(isinstance(t, Array) for t in key):
                raise InputError(f"fd.{self.name} takes arrays, one or more, not {list(types)}")
            self.made[key] = self.make(*key)
        return g._added(self.made[key])(*[nodes] if self.many else nodes)


def Concat(*parts: Any) -> Combinator:
    """Vectors, one after the other: those of a sequence that comes in, or what each of ``parts`` gives."""
    joined = Typed("Concat", lib.concat)
    return AllOf(*parts) >> joined if parts else joined


def _total(kind: str, type: Array | None) -> Combinator:
    make = partial(lib.total, kind=kind)
    return Typed(kind.capitalize(), make, True) if type is None else Apply(make(type))


def Sum(type: Array | None = None) -> Combinator:
    """The sum of a sequence of values. ``type``: theirs, needed where there may be none, which give 0."""
    return _total("sum", type)


def Mean(type: Array | None = None) -> Combinator:
    """The mean of a sequence of values; of none 0, if their ``type`` is given."""
    return _total("mean", type)


def Max(type: Array | None = None) -> Combinator:
    """The greatest of a sequence of values, elementwise; of none -inf, if their ``type`` is given."""
    return _total("max", type)


def Min(type: Array | None = None) -> Combinator:
    """The least of a sequence of values, elementwise; of none inf, if their ``type`` is given."""
    return _total("min", type)
