"""Values that are computed once and cached between calls, while no state that they are made of changes.

``cached`` says where: its operand depends on constants and on states that the program does not update. As a value it is
its operand. A program that caches nothing (the reference, for example) computes it in every call, to the same result.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from symc.errors import InternalError
from symc.ir.facts import Facts
from symc.ir.op import Linear, Op, View, register
from symc.ir.ops.elementwise import spread
from symc.ir.types import TensorType, TupleType, Type


def _infer(x: Type) -> TensorType:
    if isinstance(x, TupleType):
        raise InternalError("cached takes an array")
    return x  # type: ignore[return-value]


def _samples() -> Iterator[tuple[tuple, dict]]:
    for dtype in ("f8", "f4", "c16", "i8", "?"):
        yield (np.array([[1, 0, 3], [2, 5, 4]], dtype),), {}
    yield (np.array(0.5),), {}


cached = register(Op(
    "cached",
    _infer,
    lambda x: np.array(x),
    Linear(lambda g, v: (g,)),
    View(),
    frozenset({"barrier"}),
    _samples,
    "The operand, which states alone decide that the program does not change: computed once and cached between calls.",
    Facts(batch=lambda v, operands, flags, n: v.op(spread(operands[0], flags[0], n))),
))  # fmt: skip
