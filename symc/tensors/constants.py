"""Values that are known while the graph is built, as they depend on nothing that is given later.

Such a value is computed by the references of its ops when it is asked for, once: for ``float(x)``, ``np.asarray(x)``,
``if x > 0`` and the like. Nothing else in symc asks: the graph keeps the ops, and what is compiled computes them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symc.ir.dim import Dim
from symc.ir.ops.collective import has_collective
from symc.ir.ops.effect import has_effect
from symc.ir.reference import run_values
from symc.ir.traverse import every_value
from symc.ir.types import TensorType
from symc.ir.value import Value

_known: weakref.WeakKeyDictionary[Value, np.ndarray] = weakref.WeakKeyDictionary()
#: Up to how many elements are shown, and how many values of up to how many elements are computed for that.
SHOWN, STEPS, ELEMENTS = 20, 50, 1000


class Answer:
    """Answer read from numbers, which compares by all its bits."""

    def __init__(self, item: Any):
        self.item, self._key = item, (type(item), item.shape, item.tobytes()) if isinstance(item, np.ndarray) else item

    @classmethod
    def of(cls, found: np.ndarray | None, read: Callable[[np.ndarray], Any]) -> Answer:
        """Raises KeyError where there are no numbers."""
        if found is None:
            raise KeyError
        return cls(read(found))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self._key == other._key

    def __str__(self) -> str:
        return str(self.item)


def array_at(v: Value, sizes: Mapping[str, int]) -> np.ndarray | None:
    """The numbers of a value that depends on sizes alone. Raises KeyError for sizes that are not given."""
    if not is_closed(v, sizes=True):
        return None
    with np.errstate(all="ignore"):
        return np.array(run_values([v], {}, sizes)[0], v.dtype)


def known_array(v: Value) -> np.ndarray | None:
    """The numbers of a value, read-only; None if they depend on inputs, states or sizes, or on anything beside the
    graph: effects, ops of the user's own, other ranks."""
    if v.data is not None:
        return v.data
    if v not in _known:
        if not is_closed(v):
            return None
        with np.errstate(all="ignore"):
            (found,) = run_values([v], dict(_known.items()), {})
        found = np.array(found, v.dtype)
        found.flags.writeable = False
        _known[v] = found
    return _known[v]


def shown_array(v: Value) -> np.ndarray | None:
    """The same, for who looks at a value in passing: None where it is long, or takes long."""
    small = not any(isinstance(s, Dim) for s in v.shape) and v.type.size <= SHOWN  # type: ignore[union-attr]
    if not small or v.data is None and v not in _known and not is_closed(v, STEPS, ELEMENTS):
        return None
    return known_array(v)


def is_closed(v: Value, steps: int | None = None, elements: int | None = None, sizes: bool = False) -> bool:
    """True if a value depends on nothing that is given later, or on ``sizes`` alone. With limits: is made in so many
    ``steps``, without loops, of values of so many ``elements``."""
    seen: set[Value] = {v}
    waiting = [v]
    while waiting:
        u = waiting.pop()
        if not _alone(u, sizes=sizes):
            return False
        if steps is not None and (u.regions or len(seen) > steps or not _is_small(u, elements or 0)):
            return False
        if not _inside_alone(u, sizes):
            return False
        waiting += [o for o in u.operands if o not in seen]
        seen.update(u.operands)
    return True


def _is_small(v: Value, elements: int) -> bool:
    return isinstance(v.type, TensorType) and v.type.size <= elements  # type: ignore[operator]


def stands_alone(v: Value) -> bool:
    """True if a value depends on its operands alone."""
    return _alone(v) and _inside_alone(v)


def _inside_alone(v: Value, sizes: bool = False) -> bool:
    return all(_alone(x, inside=True, sizes=sizes) for r in v.regions for x in every_value(r))


def _alone(v: Value, inside: bool = False, sizes: bool = False) -> bool:
    """True if one op depends on its operands alone, or on ``sizes`` too. ``inside``: it belongs to a region, whose
    params do."""
    if v.op.name == "param":
        return inside
    types = v.types
    found = [s for t in types for s in t.shape]
    v.attrs.map(found.append)
    outside = v.op.name == "input" or v.op.facts.custom is not None or has_effect(v) or has_collective(v)
    return not outside and (sizes or not any(isinstance(s, Dim) for s in found))


