"""Rows that a kernel keeps of one loop for a later one: softmax computes exp once, not for the sum and the result.

Loops along a row compute what they need of its elements, each for itself. What is costly to compute and is needed again
is written into the row of a result on the way (a result that is written last, and until then is memory in the cache)
and read back. A result that may lie in the memory of an operand is not used: the operand would be read too late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from symc.codegen.plan.costs import FUNCTION, of_element
from symc.codegen.plan.inplace import region_pairs
from symc.ir.value import Region, Value

#: Dtypes that are in memory what they are in a register.
DTYPES = "fdilqILQ"


def rows_to_cache(now: Sequence[Value], later: Sequence[Value], same_index: Callable[[Value], bool]) -> list[Value]:
    """Values that a loop for ``now`` computes and that loops for ``later`` need too: those nearest to the results, if
    it is worth it. ``same_index``: whether a value's element is made of its operands' elements at the same index."""
    here, after = _cone(now, same_index), _cone(later, same_index)
    found = []
    for v in here:
        if v in after and same_index(v) and v.dtype.char in DTYPES:
            wanted = v in later or any(v in u.operands for u in after if u not in here)
            if wanted and sum(of_element(u.op) for u in _cone([v], same_index) if same_index(u)) >= FUNCTION:
                found.append(v)
    return found


def hosts(region: Region, results: Iterable[int]) -> list[int]:
    """Those of the results whose rows may be used before they are made."""
    taken = {r for _, r in region_pairs(region)}
    return [r for r in results if r not in taken]


def _cone(roots: Iterable[Value], same_index: Callable[[Value], bool]) -> dict[Value, None]:
    """The values whose elements are needed at one index for those of ``roots``, users first."""
    found: dict[Value, None] = {}
    pending = list(roots)
    while pending:
        v = pending.pop()
        if v not in found:
            found[v] = None
            if same_index(v):
                pending.extend(v.operands)
    return found
