"""Decomposition: named ops that no kernel computes whole become the ops their record says (`Decompose`).

The record is the only place that knows the parts; this file only applies it. It runs after every pass that looks for
named ops, because what it leaves (a maximum, a shifted sum of exponentials) no longer shows what it means.
"""

from __future__ import annotations

from collections.abc import Iterator

from symc.ir.op import Decompose, Sorting, lookup
from symc.ir.ops.arithmetic import complex_, div, imag, mul, real
from symc.ir.ops.cast import cast
from symc.ir.ops.leaf import get
from symc.ir.ops.shape import broadcast, concat, slice_along, transpose
from symc.ir.types import DTYPES, TupleType
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves


@rewrite(
    equation="named op -> its parts",
    examples=lambda: [
        lookup("logsumexp")(leaves(1, {}, (2, 3))[0], axes=(1,)),
        lookup("norm")(leaves(1, {}, (3,))[0], axes=(0,)),
        lookup("slogdet")(leaves(1, {}, (3, 3))[0])[1],
    ],
)
def decompose_named(v: Value) -> Value | None:
    """Parts can be fused with their neighbours."""
    whole = v.operands[0] if v.op is get else v
    lowering = whole.op.lowering
    if not isinstance(lowering, Decompose) or isinstance(v.type, TupleType):
        return None
    found = lowering.f(whole)
    return found[v.attrs["index"]] if isinstance(found, list) else found


@rewrite(
    "mul",
    "div",
    kinds="c",
    tags=["signed-zero"],
    equation="z * cast(r) -> complex(real(z) * r, imag(z) * r) for real r; so z / cast(r)",
    examples=lambda: [
        op(leaves(1, {0: "c128"}, (3,))[0], cast(leaves(1, {}, (3,))[0], dtype=DTYPES["c128"])) for op in (mul, div)],
)
def by_real_number(v: Value) -> Value | None:
    """Two products for four and two sums; two quotients for a division of complex numbers."""
    z, r = v.operands
    factor = _real_of(r)
    if factor is None and v.op is mul:
        z, factor = r, _real_of(z)
    return None if factor is None else complex_(v.op(real(z), factor), v.op(imag(z), factor))


def _real_of(v: Value) -> Value | None:
    """The floats that complex numbers are made of by a cast."""
    if v.op is broadcast:
        inner = _real_of(v.operands[0])
        return None if inner is None else broadcast(inner, axes=v.attrs["axes"], shape=v.shape)
    if v.op is not cast or v.operands[0].dtype.kind == "c":
        return None
    dtype = v.dtype.type(0).real.dtype
    return v.operands[0] if v.operands[0].dtype == dtype else cast(v.operands[0], dtype=dtype)


#: The longest lines that are sorted by exchanges of whole slices.
MOST_EXCHANGED = 16


@rewrite(
    "sort",
    exact=True,
    equation="sort(x) -> exchanges of slices, where the elements of a line lie apart",
    examples=lambda: [
        lookup("sort")(leaves(1, {}, (5, 3))[0], axis=0),
        lookup("sort")(transpose(leaves(1, {0: "u8"}, (4, 3))[0], perm=(1, 0)), axis=1),
    ],
)
def exchange_slices(v: Value) -> Value | None:
    """Medians of a few images or neighbours: exchanges are vectors over all other axes, and what is not read goes."""
    (x,), axis = v.operands, v.attrs["axis"]
    n = v.shape[axis]
    if not isinstance(v.op.lowering, Sorting) or not isinstance(n, int) or not 2 <= n <= MOST_EXCHANGED:
        return None
    if axis == x.ndim - 1 and not _lies_apart(x, axis):
        return None
    lines = [slice_along(x, axis, k, 1) for k in range(n)]
    for i, j in _of_neighbours(n) if v.dtype.kind == "f" else _exchanges(n):
        lines[i], lines[j] = _ordered(lines[i], lines[j])
    return concat(*lines, axis=axis)


def _lies_apart(x: Value, axis: int) -> bool:
    """True if what is side by side along an axis comes from elsewhere."""
    while x.op is transpose:
        axis, (x,) = x.attrs["perm"][axis], x.operands
    return axis != x.ndim - 1 or x.op is concat and x.attrs["axis"] == axis


def _of_neighbours(n: int) -> Iterator[tuple[int, int]]:
    """Pairs side by side, n times: zeros of both signs, which are equal, stay in order."""
    return ((i, i + 1) for k in range(n) for i in range(k % 2, n - 1, 2))


def _exchanges(n: int) -> Iterator[tuple[int, int]]:
    """Pairs of Batcher's merge exchange (Knuth, volume 3, 5.2.2, algorithm M)."""
    top = 1 << (n - 1).bit_length() - 1
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            yield from ((i, i + d) for i in range(n - d) if i & p == r)
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2


def _ordered(a: Value, b: Value) -> tuple[Value, Value]:
    """The lesser and the greater; nan is the greatest."""
    swap = lookup("lt")(b, a)
    if a.dtype.kind == "f":
        isnan, both = lookup("isnan"), lookup("and")
        swap = lookup("or")(swap, both(isnan(a), lookup("not")(isnan(b))))
    where = lookup("where")
    return where(swap, b, a), where(swap, a, b)
