"""Ops as loops: running values along an axis, and factorizations of matrices by column or row."""

from __future__ import annotations

from collections.abc import Callable

from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.compare import eq, gt
from symc.ir.ops.control import scan
from symc.ir.ops.cumulative import linrec
from symc.ir.ops.elementwise import like
from symc.ir.ops.index import gather, spread_over_rest
from symc.ir.ops.leaf import iota, scalar, size
from symc.ir.ops.linalg import dot
from symc.ir.ops.logic import and_, or_, where
from symc.ir.ops.math import sqrt
from symc.ir.ops.matrix import by_column, by_row, part, permuted, permuted_back, swapped
from symc.ir.ops.reduce import argmax
from symc.ir.ops.shape import broadcast, transpose
from symc.ir.ops.solve import solve_triangular
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Region, Value, param

I64 = DTYPES["i64"]


def moved_axis(x: Value, source: int, to: int) -> Value:
    """An array with an axis moved to another place."""
    order = [a for a in range(x.ndim) if a != source]
    order.insert(to, source)
    return transpose(x, perm=tuple(order))


# --- running values ---------------------------------------------------------------------------------------------------


def running(combine: Callable[..., Value], first: float) -> Callable[[Value], Value]:
    """A loop along the axis: what came before is combined with each element."""
    def parts(v: Value) -> Value:
        axis, reverse = v.attrs["axis"], v.attrs["reverse"]
        rows = [moved_axis(o, axis, 0) for o in v.operands]
        n = rows[0].shape[0]
        if v.op is linrec:  # what comes before the first is nothing, whatever the factor
            start = eq(iota(shape=rows[0].shape, axis=0, dtype=I64), _last_place(n, rows[0]) if reverse else 0)
            rows[0] = where(start, like(rows[0], 0), rows[0])
        row = TensorType(v.dtype, rows[0].shape[1:])
        before, *own = (param(k, row) for k in range(1 + len(rows)))
        new = combine(before, *own)
        body = Region((row,) * (1 + len(rows)), [new, new])
        made = scan(splat(first, row), *rows, carry=1, xs=len(rows), length=n, reverse=reverse, regions=(body,))
        return moved_axis(made[1], 0, axis)

    return parts


def _last_place(n, like_: Value) -> Value:
    return broadcast(size(value=n - 1), axes=(), shape=like_.shape)


# --- matrices ---------------------------------------------------------------------------------------------------------


def _row(x: Value, k: Value, axis: int) -> Value:
    return gather(x, k, axes=(axis % x.ndim,))


def _at(v: Value, k: Value, axis: int) -> Value:
    """True at the index k along an axis."""
    return eq(iota(shape=v.shape, axis=axis % v.ndim, dtype=I64), broadcast(k, axes=(), shape=v.shape))


def _below_row(v: Value, k: Value, axis: int) -> Value:
    return gt(iota(shape=v.shape, axis=axis % v.ndim, dtype=I64), broadcast(k, axes=(), shape=v.shape))


def _times(a: Value, x: Value) -> Value:
    """Products of matrices with one vector each."""
    batch = tuple(range(x.ndim - 1))
    return dot(a, x, contract=((a.ndim - 1,), (x.ndim - 1,)), batch=(batch, batch))


def _loop(n, carries: list[Value], captured: list[Value], body: Callable[..., list[Value]], reverse=False) -> Value:
    """A scan over 0, ..., n - 1. ``body(k, carries, captured)`` gives new carries."""
    count = TensorType("i64", ())
    types = [*[c.type for c in carries], count, *[c.type for c in captured]]
    leaves = [param(k, t) for k, t in enumerate(types)]
    m = len(carries)
    region = Region(types, body(leaves[m], leaves[:m], leaves[m + 1 :]))
    return scan(*carries, iota(shape=(n,), axis=0, dtype=I64), *captured, carry=m, xs=1, length=n, reverse=reverse,
                regions=(region,))


def cholesky(v: Value) -> Value:
    """Column by column."""
    (a,) = v.operands

    def column(k, carries, captured):
        (l,), (a,) = carries, captured
        c = _row(a, k, -1) - _times(l, _row(l, k, -2))
        d = spread_over_rest(sqrt(_row(c, k, -1)), c)
        c = where(_at(c, k, -1), d, where(_below_row(c, k, -1), c / d, like(c, 0)))
        return [where(_at(l, k, -1), by_row(c, l.shape), l)]

    return _loop(a.shape[-1], [like(a, 0)], [a], column)


def lu_factor(v: Value) -> list[Value]:
    """Rows are exchanged and reduced, column by column."""
    (a,) = v.operands
    if a.shape[-1] == 0:
        return [a, broadcast(scalar(0, I64), axes=(), shape=a.shape[:-1])]
    perm = iota(shape=a.shape[:-1], axis=a.ndim - 2, dtype=I64)

    def column(k, carries, captured):
        lu, perm = carries
        c = _row(lu, k, -1)
        late = or_(_below_row(c, k, -1), _at(c, k, -1))
        pivot = argmax(where(late, abs_(c), like(c, -1)), axes=(c.ndim - 1,))
        here, there = _at(c, k, -1), eq(iota(shape=c.shape, axis=c.ndim - 1, dtype=I64), spread_over_rest(pivot, c))
        own = iota(shape=c.shape, axis=c.ndim - 1, dtype=I64)
        order = where(here, spread_over_rest(pivot, c), where(there, broadcast(k, axes=(), shape=c.shape), own))
        lu, perm = permuted(lu, order), permuted(perm, order)
        row, c = _row(lu, k, -2), _row(lu, k, -1)
        d = _row(row, k, -1)
        below = _below_row(c, k, -1)
        factor = where(below, c / spread_over_rest(where(eq(d, 0), like(d, 1), d), c), like(c, 0))
        right = where(_below_row(row, k, -1), row, like(row, 0))
        lu = lu - by_row(factor, lu.shape) * by_column(right, lu.shape)
        return [where(and_(_at(lu, k, -1), _below_row(lu, k, -2)), by_row(factor, lu.shape), lu), perm]

    made = _loop(a.shape[-1], [a, perm], [], column)
    return [made[0], made[1]]


def solve_triangular_parts(v: Value) -> Value:
    """Row by row."""
    a, b = v.operands
    lower, unit = v.attrs["lower"], v.attrs["unit"]
    a = part(a, "lower" if lower else "upper")
    if v.attrs["trans"] != "n":
        a, lower = swapped(a), not lower

    def row(k, carries, captured):
        (x,), (a, b) = carries, captured
        r = _row(a, k, -2)
        batch = tuple(range(r.ndim - 1))
        new = _row(b, k, -2) - dot(r, x, contract=((r.ndim - 1,), (r.ndim - 1,)), batch=(batch, batch))
        if not unit:
            new = new / spread_over_rest(_row(r, k, -1), new)
        return [where(_at(x, k, -2), by_column(new, x.shape), x)]

    return _loop(a.shape[-1], [like(b, 0)], [a, b], row, reverse=not lower)


def lu_solve(v: Value) -> Value:
    lu, perm, b = v.operands
    if v.attrs["trans"] == "n":
        y = solve_triangular(lu, permuted(b, perm), lower=True, unit=True, trans="n")
        return solve_triangular(lu, y, lower=False, unit=False, trans="n")
    y = solve_triangular(lu, b, lower=False, unit=False, trans="t")
    return permuted_back(solve_triangular(lu, y, lower=True, unit=True, trans="t"), perm)
