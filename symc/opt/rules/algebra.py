"""Algebra: fewer or cheaper ops for the same numbers.

Rules that make a nan or an infinity disappear (``x * 0 -> 0``) are tagged ``nan-unsafe`` and run only when asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from symc.ir.attrs import Array
from symc.ir.dim import Size
from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, add, maximum, minimum, mulz
from symc.ir.ops.elementwise import like
from symc.ir.ops.math import exp
from symc.ir.ops.shape import concat, pad, slice_
from symc.ir.text import splat_of
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.rule import OPT_IN

#: So many terms of a sum are looked at together.
MAX_TERMS = 32
UNSAFE = ("nan-unsafe", OPT_IN)

# --- sums -------------------------------------------------------------------------------------------------------------


def _padded(x: Value) -> tuple[int, Size, Size] | None:
    """The place of x in zeros, if it is padded with them along one axis: the axis, its start and its end."""
    if x.op is not pad or any(x.attrs["interior"]) or splat_of(x.operands[1]) != 0:
        return None
    low, high, inner = x.attrs["low"], x.attrs["high"], x.operands[0].shape
    axes = [a for a in range(x.ndim) if (low[a], high[a]) != (0, 0)]
    return (axes[0], low[axes[0]], low[axes[0]] + inner[axes[0]]) if len(axes) == 1 else None


def _terms(v: Value) -> list[Value]:
    out: list[Value] = []
    pending = [v]
    while pending:
        x = pending.pop()
        if x.op is add and len(pending) + len(out) < MAX_TERMS:
            pending.extend(reversed(x.operands))
        else:
            out.append(x)
    return out


def _pads(x: Value, *starts: int) -> Value:
    """Elements 0 and 1, 2 and 3 ... of x, each pair in its place among zeros, added up."""
    zero, parts = splat(0, x.type.with_shape(())), []
    for s in starts:
        part = slice_(x, start=(s,), size=(2,), step=(1,))
        parts.append(pad(part * (s + 2), zero, low=(s,), high=(4 - s,), interior=(0,)))
    return functools.reduce(lambda a, b: a + b, parts)


@rewrite(
    "add",
    kinds="iufc",
    needs=["pad"],
    equation="pad(x, after) + pad(y, before) -> concat(x, y)",
    examples=lambda: [_pads(leaves(1, {}, (6,))[0], *starts) for starts in ((0, 2, 4), (4, 0, 2), (2, 4))],
)
def pads_side_by_side(v: Value, context) -> Value | None:
    """Arrays side by side are put there, not added to zeros: the gradient of slices is one array, written once."""
    terms = _terms(v)
    if len(terms) < MAX_TERMS and not context.ends_chain(v):
        return None  # what is joined is copied, part by part
    starts: dict[tuple[int, Size], Value] = {}
    for t in terms:
        place = _padded(t)
        if place is not None and place[1] != place[2]:  # what has no elements would follow itself
            starts.setdefault(place[:2], t)
    follower = {t: starts.get((place[0], place[2])) for t in starts.values() if (place := _padded(t)) is not None}
    first = [t for t, after in follower.items() if after is not None and t not in follower.values()]
    if not first:
        return None
    used: list[Value] = []
    out: list[Value] = []
    for t in first:
        run: list[Value] = []
        now: Value | None = t
        while now is not None:
            run.append(now)
            now = follower[now]
        used += run
        out.append(_joined(run))
    rest = list(terms)
    for t in used:
        rest.remove(t)
    return functools.reduce(add, [*out, *rest])


def _joined(run: Sequence[Value]) -> Value:
    axis = _padded(run[0])[0]  # type: ignore[index]
    parts: list[Value] = []
    for t in run:
        x = t.operands[0]
        parts += x.operands if x.op is concat and x.attrs["axis"] == axis else [x]
    whole = concat(*parts, axis=axis)
    low, high = run[0].attrs["low"], run[-1].attrs["high"]
    if (low[axis], high[axis]) == (0, 0):
        return whole
    return pad(whole, run[0].operands[1], low=low, high=high, interior=run[0].attrs["interior"])


@rule(exact=True)
def add_self(x):
    """One factor for two terms; multiplying by 2 is exact. (Complex infinities times 2 + 0j are nan.)"""
    return x + x, 2 * x


@rule(exact=True, kinds="iu")
def subtract_self_integer(x):
    """Nothing is left."""
    return x - x, 0


@rule(tags=UNSAFE)
def subtract_self(x):
    """Nothing is left, unless x is infinite or nan."""
    return x - x, 0.0


@rewrite(
    "mul",
    "div",
    kinds="iuf",
    needs=["#"],
    tags=["reassociate"],
    equation="(x * 2) * 3 -> x * 6; (x / 2) / 3 -> x / 6",
    examples=lambda: [example(lambda x, y: (x * 2) * 3, leaves(2)), example(lambda x, y: (x / 3) / 5, leaves(2))],
)
def multiply_numbers(v: Value) -> Value | None:
    """Numbers in a chain of products or quotients meet (not where they would overflow or vanish)."""
    x, outer = v.operands[0], splat_of(v.operands[1])
    inner = splat_of(x.operands[1]) if x.op is v.op else None
    if inner is None or outer is None:
        return None
    with np.errstate(all="ignore"):
        number = np.multiply(inner, outer)
    if number.dtype.kind == "f" and not np.finfo(number.dtype).tiny <= abs(number) < np.inf or number == 0:
        return None
    return v.op(x.operands[0], splat(Array(number), v.type))


# --- products ---------------------------------------------------------------------------------------------------------


@rule(exact=True, kinds="iu")
def times_zero_integer(x):
    """Nothing is left."""
    return x * 0, 0


@rule(tags=UNSAFE)
def times_zero(x):
    """Nothing is left, unless x is infinite or nan."""
    return x * 0.0, 0.0


@rule(tags=UNSAFE)
def divide_self(x):
    """1, unless x is 0, infinite or nan."""
    return x / x, 1.0


@rewrite(
    "mulz",
    exact=True,
    kinds="f",
    equation="mulz(2, x) -> 2 * x",
    examples=lambda: [example(lambda x: mulz(like(x, 2), x), leaves(1))],
    arises="gradients",
)
def mulz_of_number(v: Value) -> Value | None:
    """Only a factor of 0 needs care: any other number just multiplies."""
    number = splat_of(v.operands[0])
    return None if number is None or number == 0 else v.operands[1] * v.operands[0]


@rule(exact=True)
def signs_cancel(x):
    """Two signs are none."""
    return abs_(-x), abs_(x)


@rule(exact=True)
def square_of_abs(x):
    """A square has no sign."""
    return abs_(x) * abs_(x), x * x


@rule(tags=["signed-zero"])
def max_of_negated(x, y):
    """One sign for two."""
    return maximum(-x, -y), -minimum(x, y)


@rule(tags=["signed-zero"])
def min_of_negated(x, y):
    """One sign for two."""
    return minimum(-x, -y), -maximum(x, y)


# --- pieces -----------------------------------------------------------------------------------------------------------


def _halves(x: Value) -> Value:
    """The sum of the first and the last three elements of exp(x)."""
    first, last = (slice_(exp(x), start=(k,), size=(3,), step=(1,)) for k in (0, 3))
    return first + last


@rewrite(
    "slice",
    exact=True,
    equation="slice(f(x, y)), slice(f(x, y)) -> f(slice(x), slice(y)), f(slice(x), slice(y))",
    examples=lambda: [example(_halves, leaves(1, shape=(6,)))],
)
def pieces_of_elementwise(v: Value, context) -> Value | None:
    """A value that is only read in pieces is computed in pieces, by the kernels that read them: gates of a cell."""
    (x,), a = v.operands, v.attrs
    if "elementwise" not in x.op.traits or not x.operands or x.regions or not context.sliced_apart(x):
        return None
    return make(x.op, [slice_(o, **a) for o in x.operands], x.attrs)
