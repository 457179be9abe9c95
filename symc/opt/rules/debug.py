"""Rules about what is there for debugging: the pass ``strip_debug`` takes it out; nothing waits for it twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.ir.ops.effect import IDENTITY, after, assert_op, breakpoint_op, has_effect, print_op
from symc.ir.ops.leaf import array
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves


def _example() -> list[Value]:
    (x,) = leaves(1, {}, (3,))
    common: dict[str, Any] = dict(names=(), line="", batch=0, serial=-1)
    return [print_op(x, format="{}", **common), assert_op(x, array(np.array([True])), message="", **common)]


@rewrite(
    *(op.name for op in (print_op, assert_op, breakpoint_op)),
    exact=True,
    equation="print(x) -> x; assert(x, c) -> x; breakpoint(x) -> x",
    examples=_example,
    misses=lambda: [after(*leaves(2, {}, (3,)))],
    written=lambda sc: [sc.debug.print(sc.vector("x")), sc.debug.assert_(sc.vector("y"), sc.scalar("z") > 0)],
)
def without_debugging(v: Value) -> Value | None:
    """Nothing is printed, checked or stopped at."""
    return v.operands[0]


@rewrite(
    "after",
    exact=True,
    family="canonicalize",
    equation="after(x, print(x)) -> print(x)",
    examples=lambda: [after(v.operands[0], v) for v in _example()],
    arises="values that wait for a print or a check of themselves",
)
def after_itself(v: Value) -> Value | None:
    """The value that an effect gives back is there after it."""
    x, *others = v.operands
    shown = [o for o in others if has_effect(o) and o.op.derivative is IDENTITY and o.operands[0] is x]
    return shown[0] if shown and len(others) == 1 else None
