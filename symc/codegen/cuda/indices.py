"""Numbers that are computed from indices, and how large they can be: which of them 32 bits hold.

On a GPU a quotient of 64-bit integers takes about a hundred instructions. Indices are i64 in the IR; here the absolute
value of what is computed from indices, sizes and constants is bounded by a size, and where all those sizes are small,
which is seen before a launch, the kernel computes with i32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from symc.ir.dim import Size
from symc.ir.record import dataclass
from symc.ir.size_extremes import maximum
from symc.ir.value import Value

#: Sizes below which indices of 32 bits do: what a thread past the end computes fits, too.
NARROW = 2**31 - 2**24

_OF_INDICES = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "0 - {0}", "maximum": "max({0}, {1})",
               "floordiv": "index_floordiv({0}, {1})", "mod": "index_mod({0}, {1})", "minimum": "min({0}, {1})"}


@dataclass(frozen=True)
class Bound:
    """``size``: what the absolute value does not exceed; ``natural``: whether it is never negative."""

    size: Size
    natural: bool


def bound_in(v: Value, env: Mapping[Value, str], bounds: Mapping[str, Bound]) -> Bound | None:
    """The bound of a value that has been written (``bounds``: of names), of a constant or a size."""
    if v.dtype != np.int64 or v.ndim:
        return None
    if v.data is not None and v not in env:
        x = int(v.data)
        return Bound(abs(x), x >= 0)
    if v.op.name == "size" and v not in env:
        return Bound(v.attrs["value"], True)
    return bounds.get(env.get(v, ""))


def of_indices(v: Value, operands: Sequence[str]) -> str:
    """The text of an op on indices, which cannot overflow."""
    return _OF_INDICES[v.op.name].format(*operands)


def bound_of(v: Value, operands: Sequence[Bound | None]) -> Bound | None:
    """The bound of what an op makes of indices; None if that is an ordinary number."""
    known = [b for b in operands if b is not None]
    if v.dtype != np.int64 or v.ndim or len(known) != len(operands) or not known:
        return None
    a, b = known[0], known[-1]
    natural = a.natural and b.natural
    op = v.op.name
    if op in ("add", "sub") and len(known) == 2:
        return Bound(a.size + b.size, natural and op == "add")
    if op == "mul":
        return Bound(a.size * b.size, natural)
    if op == "neg":
        return Bound(a.size, False)
    if op == "floordiv":
        return Bound(a.size, natural)
    if op == "mod":
        return Bound(b.size, b.natural)
    if op in ("maximum", "minimum"):
        return Bound(maximum(a.size, b.size), natural)
    return None
