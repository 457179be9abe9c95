"""Comparisons and tests of numbers: bool results, and no derivative. A nan is unequal to everything."""

from __future__ import annotations

import numpy as np

from symc.ir.ops.elementwise import elementwise

ANY = "biufc"
ORDERED = "biuf"

eq = elementwise("eq", 2, ANY, np.equal, result="bool", traits=["commutative"], doc="x == y.")
ne = elementwise("ne", 2, ANY, np.not_equal, result="bool", traits=["commutative"], doc="x != y.")
lt = elementwise("lt", 2, ORDERED, np.less, result="bool", doc="x < y.")
le = elementwise("le", 2, ORDERED, np.less_equal, result="bool", doc="x <= y.")
gt = elementwise("gt", 2, ORDERED, np.greater, result="bool", doc="x > y.")
ge = elementwise("ge", 2, ORDERED, np.greater_equal, result="bool", doc="x >= y.")
isnan = elementwise("isnan", 1, "fc", np.isnan, result="bool", doc="x is nan (for complex: either part).")
isinf = elementwise("isinf", 1, "fc", np.isinf, result="bool", doc="x is infinite (for complex: either part).")
isfinite = elementwise("isfinite", 1, "fc", np.isfinite, result="bool", doc="x is neither infinite nor nan.")
signbit = elementwise("signbit", 1, "f", np.signbit, result="bool", doc="The sign bit: true for -0.0 too.")

__all__ = ["eq", "ge", "gt", "isfinite", "isinf", "isnan", "le", "lt", "ne", "signbit"]
