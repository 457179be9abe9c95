"""Amount of work of a step, for numbers instead of sizes: bytes that it must move, operations on floating-point
numbers.

What a profile divides by time. Both are what the step asks for, not what a processor happens to do:

* An operand counts once, however often its elements are read (in a `broadcast`, in a product); of one that is only
  sliced or looked up in, what is taken. A result counts once; of one that is written over its operand in place, what is
  put in, which is read and written.
* An arithmetic operation on an element is one; a function counts as many as take the time that it takes, by the
  table of ``costs``; a product of matrices 2*m*n*k; what is known of the factorizations. A complex number counts four
  times, what else there is (sorting, eigenvalues) not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symc.codegen.plan.costs import CHEAP, elements, multiplications, of_element
from symc.codegen.plan.gemm import is_product
from symc.ir.op import Op, Update
from symc.ir.plan import Step
from symc.ir.record import dataclass
from symc.ir.size_values import evaluate
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value

Sizes = Mapping[str, int]

@dataclass(frozen=True)
class Amount:
    """Bytes read and written and operations in one run of a step."""

    read: int = 0
    written: int = 0
    flops: int = 0


def amount(step: Step, sizes: Sizes) -> Amount:
    """Amount of work of a step; of a loop or branch nothing, as the steps in it do it."""
    if step.kind == "control":
        return Amount()
    v = step.value
    if step.kind == "copy":
        return Amount(_bytes(v.type, sizes), _bytes(v.type, sizes))
    results = v.regions[0].results if step.kind == "launch" else (v,)
    put = [_put(r, sizes) if w in step.reads else None for r, w in zip(results, step.writes)]
    over = {w for p, w in zip(put, step.writes) if p is not None}
    taken: dict[str, int] = {}
    for name, nbytes in zip(step.reads, _read(v, step.kind == "launch", sizes), strict=True):
        if name not in over:
            taken[name] = max(taken.get(name, 0), nbytes)
    parts = sum(p for p in put if p is not None)
    whole = sum(_bytes(t, sizes) for t, p in zip(v.types, [*put, *[None] * len(v.types)]) if p is None)
    return Amount(sum(taken.values()) + parts, whole + parts, flops(v, sizes))


def _put(v: Value, sizes: Sizes) -> int | None:
    """The bytes that an op puts into its first operand, if that is what it does."""
    return _bytes(v.operands[1].type, sizes) if isinstance(v.op.lowering, Update) else None


def _read(v: Value, kernel: bool, sizes: Sizes) -> list[int]:
    """The bytes that are read of each operand."""
    if not kernel:
        return [_touched(o, [v], sizes) for o in v.operands]
    region = v.regions[0]
    params = region_params(region)
    users: dict[Value, list[Value]] = {p: [] for p in params}
    for u in postorder(region.results):
        for o in u.operands:
            if o in users:
                users[o].append(u)
    return [_touched(p, users[p], sizes) for p in params]


def _touched(o: Value, users: Sequence[Value], sizes: Sizes) -> int:
    """All of it, or what is taken where every user takes some."""
    whole = _bytes(o.type, sizes)
    some = ["movement" in u.op.traits or ("indexing" in u.op.traits and u.operands[0] is o) for u in users]
    if not users or not all(some):
        return whole
    return min(whole, sum(_bytes(u.type, sizes) for u in users))


def flops(v: Value, sizes: Sizes) -> int:
    """Operations on floating-point numbers."""
    if is_product(v):
        return (8 if v.dtype.kind == "c" else 2) * multiplications(v, sizes)
    if v.regions:
        return sum(flops(x, sizes) for r in v.regions for x in postorder(r.results))
    if not v.operands or "movement" in v.op.traits or v.op.name == "get":
        return 0
    kinds = {t.dtype.kind for x in (v, *v.operands) for t in x.types}
    if kinds.isdisjoint("fc"):
        return 0
    each = 4 if "c" in kinds else 1
    if v.op.facts.cubes:
        n = evaluate(v.operands[0].shape[-1], sizes)
        return each * int(v.op.facts.cubes * n * n * elements(v.operands[0], sizes) / max(n, 1))
    if "elementwise" in v.op.traits:
        return each * _weight(v.op) * elements(v, sizes)
    return each * elements(v.operands[0], sizes) if "reduction" in v.op.traits else 0


def _weight(op: Op) -> int:
    """The number of operations that take the time of a function."""
    return round(of_element(op) / CHEAP)


def _bytes(t: TensorType | TupleType, sizes: Sizes) -> int:
    return sum(evaluate(x.nbytes, sizes) for x in (t.items if isinstance(t, TupleType) else (t,)))
