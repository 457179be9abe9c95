"""Records of free leaves beside their type: the name, the user's line, and the state they stand for.

The registry is weak in the leaves: it keeps no graph alive. A leaf of a shared variable refers to the variable's
*cell* (``symc.tensors.state.Cell``, the array and its lock), which does not refer back to the leaf.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, TypeVar

from symc.ir.function import bound_names
from symc.ir.location import Loc
from symc.ir.record import dataclass, replace
from symc.ir.traverse import oldest_first, postorder
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.tensors.pytree import Nest, flatten

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Whole:
    """An input of several arrays, such as a sparse one: its name and nest, and what its arrays are."""

    name: str
    nest: Nest
    parts: tuple[tuple[str, TensorType], ...]


@dataclass(frozen=True, eq=False)
class Leaf:
    """``role`` is "arg" (given in a call), "state" (kept between calls, in ``shared``), or "body" (exists only while a
    loop's body is built). ``name`` may be empty. ``dims``: labels of its axes. ``default``: the array of calls that do
    not give it, if any. ``whole``: the input of several arrays of which it is the one with number ``part``."""

    name: str
    loc: Loc | None = None
    role: str = "arg"
    shared: Any = None
    dims: tuple[str | None, ...] | None = None
    default: Any = None
    whole: Whole | None = None
    part: int = 0


_leaves: weakref.WeakKeyDictionary[Value, Leaf] = weakref.WeakKeyDictionary()
_UNNAMED = Leaf("")


def register_leaf(value: Value, leaf: Leaf) -> Value:
    """Remember what a new ``input`` value stands for; returns the value."""
    _leaves[value] = leaf
    return value


def leaf_of(value: Value) -> Leaf:
    """Record of a leaf; an empty record for one made without the front end."""
    return _leaves.get(value, _UNNAMED)


def given_whole(name: str, value: T) -> T:
    """``value``, whose arrays are inputs: one argument of functions that are compiled without a list of inputs."""
    leaves, nest = flatten(value)
    whole = Whole(name, nest, tuple((leaf_of(t.value).name, t.value.type) for t in leaves))
    for k, t in enumerate(leaves):
        register_leaf(t.value, replace(leaf_of(t.value), whole=whole, part=k))
    return value


def parts_of(whole: Whole, found: Sequence[Value]) -> list[Value]:
    """The arrays of an input: those that were found, and new ones for those that nothing is made of."""
    there = {leaf_of(v).part: v for v in found if leaf_of(v).whole is whole}
    loc = leaf_of(next(iter(there.values()))).loc
    return [there[k] if k in there else register_leaf(fresh_input(t), Leaf(name, loc, whole=whole, part=k))
            for k, (name, t) in enumerate(whole.parts)]


def leaves_of_size(name: str) -> list[Value]:
    """The leaves alive whose shapes mention a size, in order of creation."""
    found = [v for v in list(_leaves) if name in bound_names([v.type])]  # type: ignore[list-item]
    return oldest_first(found)


def records(value: Value) -> list[tuple[Value, Leaf]]:
    """The free leaves that a value is made of, with what is known of them: what a pickle carries beside the value."""
    return [(v, _leaves[v]) for v in postorder([value]) if v in _leaves]
