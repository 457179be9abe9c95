"""Arithmetic on numbers: add, sub, mul, div, neg, and their relatives."""

from __future__ import annotations

import numpy as np

from symc.ir.op import Linear, Multilinear, lookup
from symc.ir.ops.elementwise import elementwise, like

NUMBERS = "iufc"


def conjugate(x):
    """The complex conjugate; x itself for real dtypes."""
    return lookup("conj")(x) if x.dtype.kind == "c" else x


add = elementwise("add", 2, "b" + NUMBERS, np.add, Linear(lambda g, v: (g, g)),
                  traits=["commutative", "associative"], doc="x + y (for bool: or).")
sub = elementwise("sub", 2, NUMBERS, np.subtract, Linear(lambda g, v: (g, -g)), doc="x - y.")
mul = elementwise("mul", 2, "b" + NUMBERS, np.multiply, Multilinear((
    lambda g, v: g * conjugate(v.operands[1]), lambda g, v: g * conjugate(v.operands[0]))),
    traits=["commutative", "associative"], doc="x * y (for bool: and).")
neg = elementwise("neg", 1, NUMBERS, np.negative, Linear(lambda g, v: (-g,)), traits=["involution"], doc="-x.")


def _mulz(x, y):
    return np.where(x == 0, np.zeros_like(x), x * y)


mulz = elementwise("mulz", 2, "fc", _mulz, Multilinear((
    lambda g, v: mulz(g, conjugate(v.operands[1])), lambda g, v: mulz(g, conjugate(v.operands[0])))),
    doc="x * y, and 0 where x is 0 even if y is infinite or nan: how a zero cotangent stays zero.")
div = elementwise("div", 2, "fc", np.divide, (lambda out, x, y: 1 / y, lambda out, x, y: -out / y),
                  singular=True, doc="x / y, for floats and complex.")

__all__ = ["add", "conjugate", "div", "like", "mul", "mulz", "neg", "sub"]
