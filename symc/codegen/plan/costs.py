"""Costs of steps, roughly and for numbers instead of sizes: what choices between plans are weighed with.

Nanoseconds of one core with vector units. Only ratios matter; they must be right in order of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from symc.codegen.plan.gemm import is_product
from symc.ir.op import Op
from symc.ir.size_values import evaluate
from symc.ir.traverse import postorder
from symc.ir.value import Value

Sizes = Mapping[str, int]

#: An element of an arithmetic op, of a function that vectorizes, of one that loops or calls a library.
CHEAP, FUNCTION, LIBRARY = 0.1, 0.7, 8.0
#: A multiplication and addition of a matrix product, a byte that is read or written, a step that is called.
MULTIPLY, BYTE, CALL = 0.06, 0.1, 100.0


def cost(v: Value, sizes: Sizes) -> float:
    """Nanoseconds that a step takes."""
    return CALL + BYTE * sum(_bytes(x, sizes) for x in (*v.operands, v)) + work(v, sizes)


def work(v: Value, sizes: Sizes) -> float:
    """Nanoseconds of computing alone, without memory and without being called."""
    if is_product(v):
        return MULTIPLY * multiplications(v, sizes)
    if v.regions:
        inside = sum(work(x, sizes) for r in v.regions for x in postorder(r.results))
        return inside * (evaluate(v.attrs["length"], sizes) if v.op.name == "scan" else 1)
    if not v.operands or "movement" in v.op.traits or v.op.name == "get":
        return 0.0
    return of_element(v.op) * max(elements(x, sizes) for x in (*v.operands, v))


def multiplications(v: Value, sizes: Sizes) -> int:
    """Multiplications of a product of matrices."""
    return elements(v, sizes) * math.prod(evaluate(v.operands[0].shape[a], sizes) for a in v.attrs["contract"][0])


def elements(v: Value, sizes: Sizes) -> int:
    """Elements of the largest result."""
    return max(evaluate(t.size, sizes) for t in v.types)


def _bytes(v: Value, sizes: Sizes) -> int:
    return sum(evaluate(t.nbytes, sizes) for t in v.types)


def of_element(op: Op) -> float:
    """Nanoseconds that a scalar op takes, in a loop."""
    return {"vectorized": FUNCTION, "scalar": LIBRARY}.get(op.facts.kernel, CHEAP)
