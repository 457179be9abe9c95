"""Costs of packing products: what it saves, and what it copies, in nanoseconds of one core.

The figures were measured (OpenBLAS, one thread of an AMD EPYC, float32, 1 to 2048 rows, 32 to 512 columns); only their
ratios matter. A product reads the operand that it shares once more: BLAS copies it into blocks of its own, 0.05 to
0.12 ns an element. Four products of 128 columns take 3 to 5 % longer than one of 512, four of 32 columns 10 to 100 %,
the more the fewer rows there are, because of the calls. Concatenating weights, or taking results apart where no kernel
does that on the way, costs 0.12 ns an element. Hence without free copies a shared operand needs several times as many
rows as a part has columns; what is concatenated once for many steps or calls always pays.
"""

from __future__ import annotations

from collections.abc import Iterable

from symc.ir.size_values import number
from symc.ir.value import Value

#: A call of a library, and the step of the plan around it.
CALL = 250.0
#: Reading an element of the shared operand in one product more.
SHARED = 0.07
#: Copying an element, a kernel's launch included in ``LAUNCH``.
COPIED = 0.12
LAUNCH = 150.0
#: What is saved must be so many times what is copied: copies take memory, too.
MARGIN = 2.0
#: Reading one more term of a sum, an element.
ADDED = 0.1


def elements(v: Value) -> int:
    """The number of elements of ``v``, with symbolic sizes at their nominal number."""
    count = 1
    for s in v.shape:
        count *= max(number(s), 0)
    return count


def copies(values: Iterable[Value]) -> float:
    """The time of copying values in one kernel."""
    each = [elements(v) for v in values]
    return LAUNCH + COPIED * sum(each) if each else 0.0


def saved_by_sharing(shared: Value, parts: int) -> float:
    """One product in place of ``parts`` that read ``shared``."""
    return (parts - 1) * (CALL + SHARED * elements(shared))


def saved_by_joining(result: Value, terms: int) -> float:
    """One product in place of ``terms`` whose results are added up."""
    return (terms - 1) * (CALL + ADDED * elements(result))
