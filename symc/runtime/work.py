"""How much a run of a plan does, about: whether it is worth its while to let other threads of Python run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from symc.ir.dim import evaluate
from symc.ir.op import Abreast, Control, Element, Fold, Update, View
from symc.ir.ops.loop import is_long
from symc.ir.plan import Plan
from symc.ir.traverse import every_value
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value


def work(plan: Plan, sizes: Mapping[str, int]) -> float:
    """About how many operations on an element a run takes, rather too many."""
    return sum(
        _operations(v, sizes)
        for step in plan.steps
        for v in [step.value, *[v for r in step.value.regions for v in every_value(r)]]
    )


def _operations(v: Value, sizes: Mapping[str, int]) -> float:
    how = v.op.lowering
    if isinstance(how, Control) or is_long(v):
        return math.inf
    try:
        elements = max((_elements(x.type, sizes) for x in (v, *v.operands)), default=0)
    except KeyError:  # a size that is known inside a region alone
        return math.inf
    if how is None:  # of fused ops the region is counted
        return 0.0 if v.regions else elements
    return elements if isinstance(how, Element | View | Fold | Update | Abreast) else elements**1.5


def _elements(t: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(t, TupleType):
        return sum(_elements(i, sizes) for i in t.items)
    return math.prod(evaluate(s, sizes) for s in t.shape) if isinstance(t, TensorType) else 0
