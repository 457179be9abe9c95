"""Programs without what is there for debugging: the rules of the pass ``strip_debug``."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.ir.ops.effect import assert_op, breakpoint_op, print_op
from symc.ir.ops.leaf import array
from symc.ir.value import Value
from symc.opt.pattern import leaves
from symc.opt.rule import rewrite


def _example() -> list[Value]:
    (x,) = leaves(1, {}, (3,))
    common: dict[str, Any] = dict(names=(), line="", batch=0, serial=-1)
    return [print_op(x, format="{}", **common), assert_op(x, array(np.array([True])), message="", **common)]


@rewrite(
    *(op.name for op in (print_op, assert_op, breakpoint_op)),
    exact=True,
    kinds="biufc",
    equation="print(x) -> x; assert(x, c) -> x; breakpoint(x) -> x",
    examples=_example,
)
def without_debugging(v: Value) -> Value | None:
    """Nothing is printed, checked or stopped at."""
    return v.operands[0]
