"""Logic on truth values and on bits, and the choice between two values."""

from __future__ import annotations

import itertools

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir import ranges
from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Exact, Facts
from symc.ir.op import Element, Linear, Op, register
from symc.ir.ops.elementwise import check_arity, check_same, edge_values, elementwise, like
from symc.ir.types import TensorType

BITS = "biu"


def _all_ones(dtype: np.dtype):
    return ~dtype.type(0) if dtype.kind != "b" else np.True_


_LAWS = ["commutative", "associative"]
and_ = elementwise("and", 2, BITS, np.bitwise_and, identity=_all_ones, traits=[*_LAWS, "idempotent"], doc="x & y.",
                   facts=Facts(exact=Exact(lambda mp, x, y: x & y), range=ranges.masked))
or_ = elementwise("or", 2, BITS, np.bitwise_or, identity=0, traits=[*_LAWS, "idempotent"], doc="x | y.",
                  facts=Facts(exact=Exact(lambda mp, x, y: x | y), range=ranges.joined))
xor = elementwise("xor", 2, BITS, np.bitwise_xor, identity=0, traits=_LAWS, doc="x ^ y.",
                  facts=Facts(exact=Exact(lambda mp, x, y: x ^ y), range=ranges.joined))
not_ = elementwise("not", 1, BITS, np.invert, traits=["involution"], doc="~x; for bool its opposite.",
                   facts=Facts(exact=Exact(lambda mp, x: not x)))
shl = elementwise("shl", 2, "iu", np.left_shift, doc="x << y; 0 when y is negative or not below the number of bits.",
                  facts=Facts(wild=True, range=ranges.shifted_up))
shr = elementwise("shr", 2, "iu", np.right_shift,
                  doc="x >> y, keeping the sign; only the sign is left when y is negative or not below the bits.",
                  facts=Facts(wild=True, range=ranges.shifted_down))


def _where_infer(condition: TensorType, *branches: TensorType) -> TensorType:
    check_arity("where", (condition, *branches), 3)
    if condition.dtype.kind != "b":
        raise DTypeError(f"where: the condition is {condition}, not bool", help="compare it, for example c != 0")
    check_same("where", branches)
    if condition.shape != branches[0].shape:
        raise ShapeError(f"where: condition {condition} and branches {branches[0]} differ in shape")
    return branches[0]


def _where_transpose(g, v):
    zero = like(g, 0)
    return None, where(v.operands[0], g, zero), where(v.operands[0], zero, g)


def _where_samples():
    for dtype in ARITHMETIC:
        c, x, y = zip(*itertools.product([True, False], edge_values(dtype), edge_values(dtype)[::3]), strict=True)
        yield (np.array(c), np.array(x, dtype), np.array(y, dtype)), {}
    yield (np.array([True, False, True, False]), np.arange(4.0), -np.ones(4)), {}
    yield (np.ones((0, 2), bool), np.ones((0, 2)), np.ones((0, 2))), {}
    yield (np.array(False), np.array(1.0), np.array(np.nan)), {}


where = register(Op(
    "where", _where_infer, lambda c, x, y: np.asarray(np.where(c, x, y)), Linear(_where_transpose, (1, 2)), Element(),
    frozenset({"elementwise", "selects", "complex_kernel"}), _where_samples,
    "y where the bool x holds, else z. Nothing of the branch not taken arrives, neither nan nor gradient.",
    Facts(kinds="biufc", result="same", numpy=np.where, exact=Exact(lambda mp, c, x, y: x if c else y, far=True),
          rounding="zeros", range=ranges.chosen),
))  # fmt: skip
