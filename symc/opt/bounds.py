"""Index checks: generated kernels read where an index says, so an index that may be out of bounds is checked before.

What is in bounds by construction (counting up to the size, positions of sorting, constants) is not checked.
"""

from __future__ import annotations

import numpy as np

from symc.ir.dim import Size, known_nonnegative
from symc.ir.function import Function
from symc.ir.location import NOWHERE
from symc.ir.ops.kernel import check_index
from symc.ir.traverse import rebuild
from symc.ir.types import DTYPES
from symc.ir.value import Value


def in_bounds(index: Value, size: Size) -> bool:
    """Whether every element of ``index`` is known to be in [0, size)."""
    while "movement" in index.op.traits and len(index.operands) == 1 or _keeps_numbers(index):
        index = index.operands[0]
    if index.op is check_index:
        return known_nonnegative(size - index.attrs["size"])
    if index.op.name == "iota" and index.dtype == DTYPES["i64"]:
        return known_nonnegative(size - index.shape[index.attrs["axis"]])
    if index.op.name == "constant":
        data = index.attrs["value"].data
        return not data.size or bool(data.min() >= 0) and known_nonnegative(size - 1 - int(data.max()))
    if "positions" in index.op.traits:  # argsort, argmax, ...: where along an axis of the operand
        axis = index.attrs["axis"] if "axis" in index.attrs else index.attrs["axes"][0]
        return known_nonnegative(size - index.operands[0].shape[axis])
    return False


def indices_checked(v: Value) -> bool:
    """Are all indices of a gather or scatter known to be in bounds? (True of ops that have none.)"""
    return all(in_bounds(v.operands[k], size) for k, size in _index_operands(v))


def _index_operands(v: Value) -> list[tuple[int, Size]]:
    """The operands that are indices, and the size of the axis that each counts along."""
    first = v.op.facts.get("indices")
    if first is None:
        return []
    return [(first + k, v.operands[0].shape[a]) for k, a in enumerate(v.attrs["axes"])]


def _keeps_numbers(v: Value) -> bool:
    """A cast to a dtype that holds every number of the operand's: a narrower one would wrap around."""
    return v.op.name == "cast" and np.can_cast(v.operands[0].dtype, v.dtype, "safe")


def check_indices(f: Function) -> Function:
    """The function with a check before every gather and scatter that a kernel could do out of bounds."""
    done: dict[Value, Value] = {}
    hints = dict(f.hints)
    for v in f.values():
        operands = [done[o] for o in v.operands]
        for k, size in _index_operands(v):
            if not in_bounds(operands[k], size):
                i = operands[k] = check_index(operands[k], size=size)
                hints[i] = hints.get(i, NOWHERE) | f.hints.get(v, NOWHERE)
        new = done[v] = rebuild(v, operands)
        if new is not v:
            hints[new] = hints.get(new, NOWHERE) | f.hints.get(v, NOWHERE)
    return f.with_results([done[r] for r in f.body.results], hints)
