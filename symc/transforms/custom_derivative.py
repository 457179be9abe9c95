"""Derivatives that users state: either direction alone, from which the other follows, or both.

A rule works on values: ``forward(tangents, site)`` gives the tangent of every result of what is differentiated (a
value, or the ``Site`` of a block), ``reverse(cotangents, site)`` the cotangent of every operand; None is zero. Both are
linear in what goes in, so one is the transpose of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symc.errors import GradientError, ShapeError
from symc.grad import vjp as vjp_values
from symc.grad.one_op import varies, zeros
from symc.ir.dim import Dim
from symc.ir.op import Custom, splat
from symc.ir.traverse import replace
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value, fresh_input
from symc.numpy_api.promotion import stretch
from symc.tensors.convert import as_operand, convert
from symc.tensors.tensor import Tensor

Values = Sequence[Value | None]
Direction = Callable[[Values, Any], list[Value | None]]


def both_directions(forward: Direction | None, reverse: Direction | None) -> tuple[Direction, Direction]:
    """Forward and reverse, from one of them at least."""
    assert forward or reverse
    ahead = forward or _transposed_reverse(reverse)  # type: ignore[arg-type]
    return ahead, reverse or _transposed_forward(forward)  # type: ignore[arg-type]


def custom_rule(forward: Direction | None, reverse: Direction | None) -> Custom:
    """The derivative fact of a record, from one direction at least."""
    ahead, back = both_directions(forward, reverse)

    def jvp(tangents: Values, v: Value) -> Any:
        found = ahead(tangents, v)
        return found if isinstance(v.type, TupleType) else found[0]

    def vjp(g: Any, v: Value) -> Any:
        return back(g if isinstance(v.type, TupleType) else [g], v)

    return Custom(jvp, vjp)


def _transposed_reverse(reverse: Direction) -> Direction:
    def run(tangents: Values, v: Any) -> list[Value | None]:
        leaves = [fresh_input(t) if varies(t) else None for t in v.types]
        pairs = [(c, t) for c, t in zip(reverse(leaves, v), tangents, strict=True) if c is not None and t is not None]
        moved = [g for g in leaves if g is not None]
        found = iter(_linear_part([c for c, _ in pairs], moved, [t for _, t in pairs]))
        return [None if g is None else next(found) for g in leaves]

    return run


def _transposed_forward(forward: Direction) -> Direction:
    def run(cotangents: Values, v: Any) -> list[Value | None]:
        tangents = [fresh_input(o.type) if varies(o.type) else None for o in v.operands]
        moved = [t for t in tangents if t is not None]
        pairs = [(t, g) for t, g in zip(forward(tangents, v), cotangents, strict=True)
                 if t is not None and g is not None]  # fmt: skip
        found = iter(_linear_part([t for t, _ in pairs], moved, [g for _, g in pairs]))
        return [None if t is None else next(found) for t in tangents]

    return run


def _linear_part(outputs: list[Value], leaves: list[Value], seeds: list[Value]) -> Values:
    """The transpose of a linear map, which does not depend on the leaves: they may be any numbers, and become ones."""
    if not outputs:
        return [None] * len(leaves)
    found = vjp_values(outputs, leaves, seeds)
    ones = {leaf: splat(1, leaf.type) for leaf in leaves}
    return [None if c is None else replace([c], ones)[0] for c in found]


# --- between users' tensors and values --------------------------------------------------------------------------------


def tensors(values: Values) -> list[Any]:
    """Values as users see them; None stays."""
    return [None if v is None else Tensor(v) for v in values]


def dense(values: Values, types: Sequence[TensorType]) -> list[Any]:
    """As ``tensors``, with zeros in place of None; None where there is no derivative."""
    return [Tensor(zeros(t) if v is None else v) if varies(t) else None for v, t in zip(values, types, strict=True)]


def fitted(item: Any, t: TensorType, name: str) -> Value:
    """The result of a user's function, in the type ``t``. Raises ShapeError when it does not broadcast to it."""
    found = convert(as_operand(item).value, t.dtype)
    if found.ndim > t.ndim or any(not isinstance(a, Dim) and not isinstance(b, Dim) and a not in (1, b)
                                  for a, b in zip(found.shape[::-1], t.shape[::-1])):  # fmt: skip
        raise ShapeError(f"{name}: {found.type} was given where {t} belongs")
    return stretch(found, t.shape)


def all_fitted(found: Any, types: Sequence[TensorType], name: str, what: str) -> list[Value | None]:
    """One item for each type (None for zero), from what a user's function gave: one item, or a tuple or list."""
    items = list(found) if isinstance(found, tuple | list) else [found]
    if len(items) != len(types):
        raise GradientError(f"{name}: {what.format(given=len(items), wanted=len(types))}")
    return [None if c is None or not varies(t) else fitted(c, t, name) for c, t in zip(items, types, strict=True)]
