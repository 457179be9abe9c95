"""Closure scopes, in which the derivative of a loop or branch is built: leaves that stand for the values around it.

The bodies of the derivative are closed over these leaves, so no walk ever leaves the body for the user's graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symc.ir import location
from symc.ir.bodies import is_free, open_body
from symc.ir.dim import Size
from symc.ir.ops.effect import IDENTITY, after, has_effect
from symc.ir.ops.kernel import projection
from symc.ir.ops.shape import broadcast
from symc.ir.traverse import postorder, rebuild, replace
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, fresh_input, make


class ClosureScope:
    """Leaves, and the values that they stand for."""

    def __init__(self) -> None:
        self._outside: dict[Value, Value] = {}

    def leaf(self, v: Value) -> Value:
        """A new leaf that stands for ``v``."""
        made = fresh_input(v.type)
        self._outside[made] = v
        return made

    def leaves(self, values: Iterable[Value]) -> list[Value]:
        """A new leaf for each value."""
        return [self.leaf(v) for v in values]

    def enter(self, v: Value) -> Value:
        """``v`` in here: numbers and repetitions stay what they are, so that rules see them; the rest is a leaf."""
        if is_free(v):
            return v
        if v.op is broadcast:
            return rebuild(v, [self.enter(v.operands[0])])
        return self.leaf(v)

    def leave(self, values: Sequence[Value | None]) -> list[Value | None]:
        """The values outside."""
        made = iter(replace([v for v in values if v is not None], self._outside, location.move))
        return [None if v is None else next(made) for v in values]


def substitute(values: Sequence[Value], mapping: dict[Value, Value]) -> list[Value]:
    """The values with others put in; what is built again keeps its lines."""
    with location.at(()):
        return replace(values, mapping, location.move)


def open_quietly(v: Value, k: int, leaves: Sequence[Value]) -> list[Value]:
    """The results of region ``k`` on other leaves, without effects: those take place once, in the loop itself."""
    results = open_body(v, k, leaves)
    return without_effects(results) if any(map(has_effect, postorder(results))) else results


def without_effects(results: Sequence[Value]) -> list[Value]:
    """The same values; prints and checks on the way are left out."""
    done: dict[Value, Value] = {}
    for v in postorder(results):
        if _is_identity(v):
            done[v] = done[v.operands[0]]
        elif v.regions and has_effect(v):
            done[v] = make(v.op, [done[o] for o in v.operands], v.attrs, [_quiet_region(r) for r in v.regions])
        else:
            done[v] = rebuild(v, [done[o] for o in v.operands])
        location.move(v, done[v])
    return [done[r] for r in results]


def takes_effect(v: Value) -> bool:
    """True if ``v`` is what an effect gives, or one result of a loop or branch with effects inside."""
    if _is_identity(v):
        return has_effect(v)
    return has_effect(projection(v)[0]) and isinstance(v.type, TensorType)


def instead_of(v: Value, new: Value) -> Value:
    """``new``, which is ``v`` computed in another way (or what is shown, in another way), where ``v`` takes effect.

    What is made of it, derivatives too, is computed after ``v``, and has no effect of its own.
    """
    if _is_identity(v):
        return v if new is v.operands[0] else after(new, v)
    if new is v:
        return v
    loop, index = projection(new)
    operands = [o if is_free(o) else after(o, v) for o in loop.operands]
    silent = make(loop.op, operands, loop.attrs, [_quiet_region(r) for r in loop.regions])
    location.move(loop, silent)
    return silent if loop is new else silent[index]


def _is_identity(v: Value) -> bool:
    """An effect that gives its first operand."""
    return v.op.derivative is IDENTITY


def _quiet_region(region: Region) -> Region:
    return Region(region.params, without_effects(region.results))


def row_of(stack: Value) -> Value | None:
    """The value of every row of a stack, if all are the same by construction."""
    if stack.op is not broadcast or 0 in stack.attrs["axes"]:
        return None
    return broadcast(stack.operands[0], axes=tuple(a - 1 for a in stack.attrs["axes"]), shape=stack.shape[1:])


def repeated(row: Value, length: Size) -> Value:
    """A stack whose rows are all the same."""
    return broadcast(row, axes=tuple(range(1, row.ndim + 1)), shape=(length, *row.shape))
