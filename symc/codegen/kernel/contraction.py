"""Contraction of the products of a kernel: which are rounded, and which may be one operation with the sum that they are
added to.

A product that is added and not rounded before (fast math's `contract`) is a little nearer to the truth, and costs less.
But it is another number than the same product beside it, and than an equal one: `x*x - max(x*x)` would not be 0 at the
maximum, and the root of `mean(x*x) - mean(x)**2` would be nan for equal numbers. So products are rounded (`times`)
where a difference is made of them, and where they are read elsewhere too; not beside a sum (`2*x*b1 - (c + b2)`, the
step of a recurrence), which has a rounding of its own.

What is read by a step (`floor`, a comparison, a conversion to integers) is rounded throughout: 0.1 * 10 - 1 is 0 for
NumPy, and a little more if it is one operation, so the `ceil` of it would be 1.
"""

from __future__ import annotations

from symc.ir.op import Element, View
from symc.ir.ops.arithmetic import add, mul, neg, sub, times
from symc.ir.ops.grad_control import stop_gradient
from symc.ir.traverse import postorder, rebuild
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, make


def with_rounded_products(region: Region) -> Region:
    """A region of a kernel, loops inside it and all, in which `times` makes the products that must be rounded."""
    rounded = _rounded(region)
    done: dict[Value, Value] = {}
    for v in postorder(region.results):
        operands = [done[o] for o in v.operands]
        if v in rounded:
            done[v] = times(*operands)
        elif v.regions:
            done[v] = make(v.op, operands, v.attrs, [with_rounded_products(r) for r in v.regions])
        else:
            done[v] = rebuild(v, operands)
    return Region(region.params, [done[r] for r in region.results])


def _rounded(region: Region) -> set[Value]:
    behind: dict[Value, frozenset[Value]] = {}  # the products of which a value is elements
    readers: dict[Value, list[Value | None]] = {}  # None: a result
    for v in postorder(region.results):
        found = frozenset[Value]().union(*(behind[o] for o in v.operands))
        if _moves(v):
            behind[v] = found
            continue
        for p in found:
            readers[p].append(v)
        behind[v] = frozenset()
        if v.op is mul and v.dtype.kind == "f":
            behind[v], readers[v] = frozenset({v}), []
    for r in region.results:
        for p in behind[r]:
            readers[p].append(None)
    return {p for p, found in readers.items() if _must_be_rounded(found)} | (_before_jumps(region) & readers.keys())


def _must_be_rounded(readers: list[Value | None]) -> bool:
    """A product that is read once, beside a sum, is no equal of it in NumPy either."""
    ops = [None if v is None else v.op for v in readers]
    if len(readers) == 1 and readers[0] is not None and readers[0].op is sub:
        return not any(o.op in (add, sub) for o in readers[0].operands)
    return sub in ops or neg in ops or len(ops) > 1 and add in ops


def _before_jumps(region: Region) -> set[Value]:
    """Values of which sums and the like are made that a step reads."""
    work = [o for v in postorder(region.results) if _jumps(v) for o in v.operands]
    found: set[Value] = set()
    while work:
        v = work.pop()
        if v not in found and _kind(v) == "f":
            found.add(v)
            if _is_arithmetic(v) or _moves(v):
                work += v.operands
    return found


def _jumps(v: Value) -> bool:
    """A step of numbers that are no integers: by its record, or as its results are integers or truth values."""
    return "jumps" in v.op.traits or _kind(v) in ("b", "i", "u")


def _is_arithmetic(v: Value) -> bool:
    """True of sums, quotients, choices and the like: what rounds to a whole before it still does behind it."""
    return "elementwise" in v.op.traits and not v.op.facts.kernel


def _kind(v: Value) -> str:
    """The kind of a value's numbers; "" of loops, which have several results."""
    return v.dtype.kind if isinstance(v.type, TensorType) else ""


def _moves(v: Value) -> bool:
    form = v.op.lowering
    return isinstance(form, View) or isinstance(form, Element) and form.f is not None or v.op is stop_gradient
