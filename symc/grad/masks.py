"""Masks of cotangents that may be zero because elements were not chosen, so that 0 times infinity must be 0 there.

An op that selects (``where``, ``gather``, ``maximum``, a slice) masks the cotangents of what it selects from, and
everything those are made of. Slices that together take a whole array choose nothing, and mask nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence

from symc.grad.varying import differentiable_operands
from symc.ir.dim import Size
from symc.ir.traverse import postorder
from symc.ir.value import Region, Value

_masking: weakref.WeakKeyDictionary[Region, bool] = weakref.WeakKeyDictionary()


class Masks:
    """Findings of a sweep from results to operands so far."""

    def __init__(self, masked: Iterable[Value] = ()):
        self._masked = set(masked)
        self._slices: dict[Value, list[Value]] = {}

    def add(self, v: Value) -> None:
        """The cotangent of ``v`` may be zero."""
        self._masked.add(v)

    def is_masked(self, v: Value) -> bool:
        """True if the cotangent of ``v`` may be zero; known when all users of ``v`` have passed theirs on."""
        return v in self._masked or (v in self._slices and cover(v, self._slices[v]) is None)

    def passed(self, v: Value, operand: Value, masked: bool) -> None:
        """``v``, whose cotangent is masked or not, has sent one to an operand."""
        if masked or not is_part(v) and selects(v):
            self._masked.add(operand)
        elif is_part(v):
            self._slices.setdefault(operand, []).append(v)


def selects(v: Value) -> bool:
    """True if elements of an operand may not matter at all to ``v``, so that their cotangent is zero."""
    return "selects" in v.op.traits or any(map(_region_selects, v.regions))


def _region_selects(region: Region) -> bool:
    """True if the cotangent of some param may be zero, when those of the results are not."""
    found = _masking.get(region)
    if found is None:
        masks = Masks()
        order = postorder(region.results)
        for v in reversed(order):
            masked = masks.is_masked(v)
            for o in differentiable_operands(v):
                masks.passed(v, o, masked)
        found = _masking[region] = any(masks.is_masked(v) for v in order if v.op.name == "param")
    return found


def is_part(v: Value) -> bool:
    """A slice of neighbours."""
    return v.op.name == "slice" and all(s == 1 for s in v.attrs["step"])


def cover(x: Value, parts: Sequence[Value]) -> tuple[int, list[Value]] | None:
    """The axis along which slices of ``x`` lie side by side and make up all of it, and these slices in order."""
    for axis, size in enumerate(x.shape):
        first: dict[Size, Value] = {}
        for p in parts:
            start, extent = p.attrs["start"], p.attrs["size"]
            if all(a == axis or (start[a] == 0 and extent[a] == n) for a, n in enumerate(x.shape)):
                first[start[axis]] = p
        at: Size = 0
        chain: list[Value] = []
        while at != size and at in first:
            chain.append(first.pop(at))
            at = at + chain[-1].shape[axis]
        if at == size:
            return axis, chain
    return None
