"""Work of a run of a plan, about: whether it is worth its while to let other threads of Python run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from symc.codegen.plan.gemm import as_gemm
from symc.ir.dim import Size, polynomial, product, terms_of
from symc.ir.op import Control, Element, Fold, PackedConcat, Update, View
from symc.ir.ops.loop import is_long
from symc.ir.plan import Plan
from symc.ir.size_values import names
from symc.ir.traverse import every_value
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value
from symc.runtime.cpu.arithmetic import Less, less

#: Up to how many operations on an element other threads are kept waiting: 0.1 ms at most, where 5 ms are usual.
SHORT = 20_000
#: The most sizes whose sum is worth to compute before a run.
MOST_SIZES = 16
#: Operations of a library's routine for each element, about.
LIBRARY = 64


def is_work(plan: Plan, known: frozenset[str]) -> Less | int:
    """1 where a run takes more than ``SHORT`` operations on an element, rather too often. ``known``: the sizes that are
    known of a call."""
    counts: dict[Size, int] = {}
    for step in plan.steps:
        for v in [step.value, *[v for r in step.value.regions for v in every_value(r)]]:
            if isinstance(v.op.lowering, Control) or is_long(v):
                return 1
            for n in _operations(v):
                if not names(n) <= known:  # a size that is known inside a region alone
                    return 1
                counts[n] = counts.get(n, 0) + 1
    if len(counts) > MOST_SIZES:
        return 1
    return less(SHORT, polynomial(term for n, count in counts.items() for term in terms_of(n * count)))


def _operations(v: Value) -> Iterator[Size]:
    how = v.op.lowering
    if isinstance(how, Element):
        yield _elements(v.type)
        return
    form = as_gemm(v)
    if form is not None:
        yield product((form.batch, form.m, form.n, form.k))
    if how is None and v.regions:  # of fused ops the region is counted
        return
    factor = 1 if how is None or form is not None or isinstance(how, View | Fold | Update | PackedConcat) else LIBRARY
    for x in (v, *v.operands):
        yield _elements(x.type) * factor


def _elements(t: Any) -> Size:
    if isinstance(t, TupleType):
        return sum((_elements(i) for i in t.items), start=0)
    return t.size if isinstance(t, TensorType) else 0
