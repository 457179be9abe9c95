"""Durations of steps, for all sizes: what running them at the same time would save.

Picoseconds of one core, right to a factor of two or three where numbers lie in the cache; what is not known is taken to
be short.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from symc.codegen.plan.cells import nominal
from symc.codegen.plan.costs import FUNCTION, LIBRARY
from symc.codegen.plan.gemm import as_gemm
from symc.ir.dim import Size, floordiv
from symc.ir.op import Element, Extern, Running, Update, is_builtin
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass
from symc.ir.size_extremes import maximum, minimum
from symc.ir.traverse import every_value, postorder
from symc.ir.value import Value

#: Picoseconds: of a call, of a byte in the cache; of an element by arithmetic, where it is looked up or put; of a
#: multiplication of f64; of an operation of a factorization.
CALL, BYTE, CHEAP, PLACED, MULTIPLY, FACTOR = 100_000, 8, 10, 800, 50, 80
#: Picoseconds that a launch of several threads takes, and up to which a product is not divided among them.
LAUNCH, PRODUCT = 30_000_000, 200_000_000
#: How often a while loop is taken to run.
TURNS = 16


@dataclass(frozen=True)
class Durations:
    """Durations of a group of sections: one step after the other, by two threads where a step is divided; and at the
    same time."""

    alone: Size
    together: Size
    least_gain: int = LAUNCH


def durations(plan: Plan, group: Sequence[int]) -> Durations:
    """Durations of the sections of a group."""
    alone: Size = 0
    total: Size = 0
    longest: Size = 0
    for begin, end in itertools.pairwise(group):
        steps = [(s, duration(s)) for s in plan.steps[begin:end]]
        alone = alone + _sum(divided(s, t) for s, t in steps)
        section = _sum(t for _, t in steps)
        total, longest = total + section, maximum(longest, section)
    return Durations(alone, maximum(longest, floordiv(total, 2)) + LAUNCH)


def divided(step: Step, time: Size) -> Size:
    """Picoseconds of a step that may be divided between two threads."""
    if not divisible(step):
        return time
    half = floordiv(time, 2) + LAUNCH
    if as_gemm(step.value) is not None:
        half = maximum(half, PRODUCT)
    return minimum(time, half)


def divisible(step: Step) -> bool:
    """True for a step whose parts several threads compute, if it takes long enough; rather too often."""
    form = as_gemm(step.value) if step.kind == "call" else None
    if form is not None:
        return not (form.gram or 1 in (form.m, form.n) or (form.batch == 1 and isinstance(form.m, int) and form.m < 48))
    return step.kind == "launch" and not any(
        isinstance(v.op.lowering, Update | Running) or not is_builtin(v.op) for v in every_value(step.value.regions[0]))


def duration(step: Step) -> Size:
    """Picoseconds of a step."""
    v = step.value
    if step.kind == "control":
        inner = [_sum(map(duration, b.steps)) for b in step.bodies]
        if v.op.name == "cond":
            return CALL + min(inner, key=nominal)
        return CALL + _sum(inner) * v.attrs.get("length", TURNS)
    moved = BYTE * _sum(t.nbytes for x in (v, *v.operands) for t in x.types)
    if step.kind == "copy":
        return CALL + BYTE * 2 * _sum(t.nbytes for t in v.types)
    if step.kind == "launch":
        return CALL + moved + _sum(_inside(x) for x in postorder(v.regions[0].results))
    return CALL + moved + _routine(v)


def _inside(v: Value) -> Size:
    """Picoseconds of an op in a kernel."""
    if not v.operands or v.op.name == "get":
        return 0
    if v.regions:
        inner = _sum(_inside(x) for r in v.regions for x in postorder(r.results))
        length = v.attrs.get("length")
        return inner * (TURNS if length is None else length)
    how, kernel = v.op.lowering, v.op.facts.kernel
    if isinstance(how, Update):
        return PLACED * v.operands[1].types[0].size
    if isinstance(how, Running) or "indexing" in v.op.traits:
        return PLACED * _largest(v)
    if isinstance(how, Element) and how.f is not None:  # movement
        return 0
    each = {"vectorized": round(1000 * FUNCTION), "scalar": round(1000 * LIBRARY)}.get(kernel, CHEAP)
    return each * max(4, v.types[0].dtype.itemsize) * _largest(v) // 8


def _routine(v: Value) -> Size:
    """Picoseconds of a routine of a library."""
    form = as_gemm(v)
    if form is not None:
        return max(1, MULTIPLY * v.dtype.itemsize // 8) * form.batch * form.m * form.n * form.k
    if v.op.facts.rounding == "norm" and isinstance(v.op.lowering, Extern) and v.operands[-1].types[0].ndim > 1:
        operand = v.operands[-1]
        return round(FACTOR * (v.op.facts.cubes or 1.0)) * operand.types[0].size * v.operands[0].shape[-1]
    return round(1000 * LIBRARY) * _largest(v)


def _largest(v: Value) -> Size:
    """Elements of the largest of what an op reads and writes."""
    return max((t.size for x in (v, *v.operands) for t in x.types), key=nominal)


def _sum(terms: Iterable[Size]) -> Size:
    total: Size = 0
    for t in terms:
        total = total + t
    return total


