"""Operands that lie the other way in a loop nest: the axis along which elements lie side by side is not the last."""

from __future__ import annotations

from symc.ir.ops.kernel import load
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Value

#: Rows of which there are never more are a few.
FEW = 4


def lies_along(v: Value) -> int | None:
    """The axis of a `generate`, not the last, along which elements of an operand lie side by side; None if there is no
    such operand."""
    shape, (region,) = v.attrs["shape"], v.regions
    places = {p: k for k, p in enumerate(region_params(region)[: len(shape)])}
    last = len(shape) - 1
    needs: dict[Value, frozenset[int]] = {}
    found = None
    for u in postorder(region.results):
        if u.regions:
            return None
        needs[u] = frozenset({places[u]} if u in places else ()).union(*(needs[o] for o in u.operands))
        if u.op is load and found is None and len(u.operands) > 2:
            *others, side = (needs[i] for i in u.operands[1:])
            if len(side) == 1 and last not in side and any(last in n for n in others):
                (found,) = side
    return found


def few_along(v: Value) -> int | None:
    """Such an axis of a few elements, whose loop so goes inside of the others; not if rows are as short."""
    axis, shape = lies_along(v), v.attrs["shape"]
    if axis is None or isinstance(shape[-1], int) and shape[-1] <= FEW:
        return None
    return axis if isinstance(n := shape[axis], int) and n <= FEW else None
