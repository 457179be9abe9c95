"""Records of free leaves beside their type: the name, the user's line, and the state they stand for.

The registry is weak in the leaves: it keeps no graph alive. A leaf of a shared variable refers to the variable's
*cell* (``symc.tensors.state.Cell``, the array and its lock), which does not refer back to the leaf.
"""

from __future__ import annotations

import weakref
from typing import Any

from symc.ir.function import bound_names
from symc.ir.location import Loc
from symc.ir.record import dataclass
from symc.ir.traverse import postorder
from symc.ir.value import Value


@dataclass(frozen=True, eq=False)
class Leaf:
    """``role`` is "arg" (given in a call), "state" (kept between calls, in ``shared``), or "body" (exists only while a
    loop's body is built). ``name`` may be empty. ``dims``: labels of its axes. ``default``: the array of calls that do
    not give it, if any."""

    name: str
    loc: Loc | None = None
    role: str = "arg"
    shared: Any = None
    dims: tuple[str | None, ...] | None = None
    default: Any = None


_leaves: weakref.WeakKeyDictionary[Value, Leaf] = weakref.WeakKeyDictionary()
_UNNAMED = Leaf("")


def register_leaf(value: Value, leaf: Leaf) -> Value:
    """Remember what a new ``input`` value stands for; returns the value."""
    _leaves[value] = leaf
    return value


def leaf_of(value: Value) -> Leaf:
    """Record of a leaf; an empty record for one made without the front end."""
    return _leaves.get(value, _UNNAMED)


def leaves_of_size(name: str) -> list[Value]:
    """The leaves alive whose shapes mention a size, in order of creation."""
    found = [v for v in list(_leaves) if name in bound_names([v.type])]  # type: ignore[list-item]
    return sorted(found, key=lambda v: v.attrs["serial"])


def records(value: Value) -> list[tuple[Value, Leaf]]:
    """The free leaves that a value is made of, with what is known of them: what a pickle carries beside the value."""
    return [(v, _leaves[v]) for v in postorder([value]) if v in _leaves]
