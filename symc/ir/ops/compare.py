"""Comparisons and tests of numbers: bool results, and no derivative. A nan is unequal to everything."""

from __future__ import annotations

import numpy as np

from symc.ir.facts import Exact, Facts
from symc.ir.ops.elementwise import elementwise

ANY = "biufc"
ORDERED = "biuf"

eq = elementwise("eq", 2, ANY, np.equal, result="bool", traits=["commutative"], doc="x == y.",
                 facts=Facts(exact=Exact(lambda mp, x, y: x == y, far=True), symbol="==", mirror="eq"))
ne = elementwise("ne", 2, ANY, np.not_equal, result="bool", traits=["commutative"], doc="x != y.",
                 facts=Facts(exact=Exact(lambda mp, x, y: x != y, far=True), symbol="!=", mirror="ne"))
lt = elementwise("lt", 2, ORDERED, np.less, result="bool", doc="x < y.",
                 facts=Facts(exact=Exact(lambda mp, x, y: x < y, far=True), symbol="<", mirror="gt"))
le = elementwise("le", 2, ORDERED, np.less_equal, result="bool", doc="x <= y.",
                 facts=Facts(exact=Exact(lambda mp, x, y: x <= y, far=True), symbol="<=", mirror="ge"))
gt = elementwise("gt", 2, ORDERED, np.greater, result="bool", doc="x > y.",
                 facts=Facts(exact=Exact(lambda mp, x, y: x > y, far=True), symbol=">", mirror="lt"))
ge = elementwise("ge", 2, ORDERED, np.greater_equal, result="bool", doc="x >= y.",
                 facts=Facts(exact=Exact(lambda mp, x, y: x >= y, far=True), symbol=">=", mirror="le"))
isnan = elementwise("isnan", 1, "fc", np.isnan, result="bool", doc="x is nan (for complex: either part).",
                    facts=Facts(exact=Exact(lambda mp, x: bool(mp.isnan(x)))))
isinf = elementwise("isinf", 1, "fc", np.isinf, result="bool", doc="x is infinite (for complex: either part).",
                    facts=Facts(exact=Exact(lambda mp, x: bool(mp.isinf(x)))))
isfinite = elementwise("isfinite", 1, "fc", np.isfinite, result="bool", doc="x is neither infinite nor nan.",
                       facts=Facts(exact=Exact(lambda mp, x: bool(mp.isfinite(x)))))
signbit = elementwise("signbit", 1, "f", np.signbit, result="bool", doc="The sign bit: true for -0.0 too.",
                      facts=Facts(exact=Exact(lambda mp, x: x < 0)))

#: Comparisons of two numbers.
COMPARISONS = (lt, gt, le, ge, eq, ne)
