"""Places of rows: what says which rows a look-up takes is computed in the kernel that takes them, a row at a time.

Places that have the shape of what is looked up are values of the kernel like any other. Those of rows are fewer, and so
belong to no group of its shape: they are inlined, as movements are, where computing them costs no more than writing and
reading them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symc.ir.bodies import is_free
from symc.ir.dim import known_nonnegative, product
from symc.ir.op import Element
from symc.ir.ops.index import index_operands
from symc.ir.traverse import users
from symc.ir.value import Value
from symc.opt.fusion.kernel_ops import is_movement

#: The most ops that are computed for a row, and the most elements of a row that is too short for them: places of many
#: such rows are computed, and checked, several at a time. (Rows of 2: 1.3 times as long; of 64: 0.85.)
MOST_OPS, SHORT = 12, 4


def places_of_rows(values: Sequence[Value], keeps: bool) -> set[Value]:
    """Integers that nothing reads but look-ups of rows, each of which computes them. ``keeps``: states are written; no
    kernel that may fail can write over one."""
    readers: Mapping[Value, Sequence[Value]] = {}
    found: set[Value] = set()
    for v in values:
        if not _takes_rows(v):
            continue
        readers = readers or users(values)
        if any(map(is_movement, readers.get(v, ()))):
            continue  # rows that are moved may be taken in another order: their places would be computed anew
        for k, _ in index_operands(v):
            own = _computed(v.operands[k], readers)
            if not (keeps and any("checks" in o.op.traits for o in own)):
                found.update(own)
    return found


def _takes_rows(v: Value) -> bool:
    """True if a kernel looks up one row, or rows that are known not to be short."""
    if not isinstance(v.op.lowering, Element) or not index_operands(v):
        return False
    depth = v.operands[1].ndim
    return v.ndim > depth and (not depth or known_nonnegative(product(v.shape[depth:]) - SHORT - 1))


def _computed(index: Value, readers: Mapping[Value, Sequence[Value]]) -> list[Value]:
    """What computes an index for this alone, if it is little: users first."""
    inside: dict[Value, None] = {}
    arrays: set[Value] = set()
    pending = [index]
    while pending:
        v = pending.pop()
        if v in inside or is_free(v):
            continue
        if _is_cheap(v) and all(u in inside or _takes_rows(u) and u.operands[0] is not v for u in readers.get(v, ())):
            inside[v] = None
            pending.extend(v.operands)
        elif v.shape:
            arrays.add(v)
    return list(inside) if len(inside) <= MOST_OPS and len(arrays) <= 1 else []


def _is_cheap(v: Value) -> bool:
    """An op on numbers that are places, or say how places are moved."""
    return is_movement(v) or not {"elementwise", "checks"}.isdisjoint(v.op.traits) and (
        v.dtype.kind in "iub" and v.op.facts.kernel not in ("vectorized", "scalar"))
