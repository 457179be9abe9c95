"""Ops in terms of simpler ones, for targets that have few: what records say (decompositions), and what stands here.

What is here is written for systems with graphs of array ops: factorizations are loops over columns, running sums are
loops, sorts of floats put nan last by a second sort. A processor has better ways, so these are no facts of the ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from symc.errors import DTypeError
from symc.ir.dim import product as elements
from symc.ir.op import Decompose, Op, splat
from symc.ir.ops.arithmetic import abs_, fmod, maximum, minimum
from symc.ir.ops.assume import assume
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq, ge, gt, isinf, isnan, le, lt, ne
from symc.ir.ops.control import scan
from symc.ir.ops.cumulative import linrec
from symc.ir.ops.elementwise import like
from symc.ir.ops.index import gather, scatter
from symc.ir.ops.leaf import iota, scalar, size
from symc.ir.ops.linalg import dot
from symc.ir.ops.logic import and_, not_, or_, shl, shr, where, xor
from symc.ir.ops.math import LN2, LN10, atan, exp, floor, log, logaddexp, sqrt
from symc.ir.ops.matrix import by_column, by_row, part, permuted, permuted_back, swapped
from symc.ir.ops.random_reference import MULTIPLIERS, WEYL
from symc.ir.ops.reduce import any_, argmax, max_, min_, norm, spread, sum_
from symc.ir.ops.shape import broadcast, concat, pad, reshape, slice_, transpose
from symc.ir.ops.solve import solve_triangular
from symc.ir.ops.sort import argsort
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Region, Value, param

I64, U64 = DTYPES["i64"], DTYPES["u64"]


def parts_of(v: Value) -> Value | list[Value] | None:
    """What a value is made of; None for one that is not known to be made of anything."""
    own, facts = PARTS.get(v.op.name), v.op.facts
    found = own(v) if own is not None else None
    if found is None and isinstance(v.op.lowering, Decompose):
        found = v.op.lowering.f(v)
    for f in (facts.parts, facts.lower_batched):
        found = f(v) if found is None and f is not None else found
    return found


def widened(v: Value, wide: Mapping[np.dtype, np.dtype]) -> Value | None:
    """The value by the same op in wider dtypes, of which all bits that count are the same; None if it has no narrow
    operand."""
    if v.op is cast or v.regions or all(o.dtype not in wide for o in v.operands):
        return None
    try:
        out = v.op(*[cast(o, dtype=wide[o.dtype]) if o.dtype in wide else o for o in v.operands], **v.attrs)
    except DTypeError:  # it is defined for these alone
        return None
    return out if out.dtype == v.dtype else cast(out, dtype=v.dtype)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def safe_divisor(y: Value) -> tuple[Value, Value]:
    """A divisor of integers, 1 where a quotient may trap (by 0, and the least number by -1); and where that is."""
    odd = eq(y, 0) if y.dtype.kind == "u" else or_(eq(y, 0), eq(y, -1))
    return where(odd, like(y, 1), y), odd


def _below(r: Value, y: Value) -> Value:
    """True where a remainder has not the sign of its divisor."""
    return and_(ne(r, 0), ne(lt(r, 0), lt(y, 0)))


def _floordiv(v: Value) -> Value:
    """As NumPy: of x less the remainder, so that no quotient rounds up to the next integer."""
    x, y = v.operands
    r = fmod(x, y)
    q = (x - r) / y
    q = where(_below(r, y), q - 1, q)
    down = floor(q)
    return where(eq(y, 0), x / y, where(gt(q - down, 0.5), down + 1, down))


def _mod(v: Value) -> Value:
    r = fmod(*v.operands)
    return where(_below(r, v.operands[1]), r + v.operands[1], r)


def _copysign(v: Value) -> Value:
    size_ = abs_(v.operands[0])
    return where(_negative(v.operands[1]), -size_, size_)


def _negative(x: Value) -> Value:
    return or_(lt(x, 0), and_(eq(x, 0), lt(1 / x, 0)))


def _extreme(nearer: Op) -> Callable[[Value], Value]:
    """``fmax`` and ``fmin``: a nan counts as missing."""
    def parts(v: Value) -> Value:
        x, y = v.operands
        return where(isnan(x), y, where(isnan(y), x, nearer(x, y)))

    return parts


def _hypot(v: Value) -> Value:
    both = [reshape(abs_(x), shape=(1, *x.shape)) for x in v.operands]
    infinite = or_(*map(isinf, v.operands))
    return where(infinite, like(v, np.inf), norm(concat(*both, axis=0), axes=(0,)))


def _shift(v: Value) -> Value | None:
    """Shifts of signed integers by those of unsigned ones, whose number of places is in range."""
    x, y = v.operands
    bits, signed = 8 * x.dtype.itemsize, x.dtype.kind == "i"
    if y.op is assume:
        return None
    far = or_(lt(y, 0), ge(y, bits)) if signed else ge(y, bits)
    u = DTYPES[f"u{bits}"]
    near = assume(cast(where(far, like(y, 0), y), dtype=u), low=0)
    if v.op is shl or not signed:
        moved = v.op(cast(x, dtype=u), near)
        return where(far, like(x, 0), cast(moved, dtype=x.dtype) if signed else moved)
    mask = where(lt(x, 0), like(x, -1), like(x, 0))
    moved = cast(shr(cast(xor(x, mask), dtype=u), near), dtype=x.dtype)
    return xor(where(far, like(x, 0), moved), mask)


# --- functions --------------------------------------------------------------------------------------------------------


def _expm1(v: Value) -> Value:
    """By what rounding made of exp(x), whose error cancels (W. Kahan)."""
    (x,) = v.operands
    e = exp(x)
    near = and_(gt(abs_(x), 0), lt(abs_(x), 1))
    safe = where(near, e, like(e, 2))
    return where(near, where(eq(e, 1), x, (safe - 1) * x / log(where(eq(safe, 1), like(e, 2), safe))),
                 where(eq(x, 0), x, e - 1))


def _log1p(v: Value) -> Value:
    (x,) = v.operands
    u = x + 1
    near = and_(lt(abs_(x), 1), ne(u, 1))
    return where(near, log(u) * x / where(near, u - 1, like(u, 1)), where(eq(u, 1), x, log(u)))


def _cbrt(v: Value) -> Value:
    """A root of the size, with one step of Newton's."""
    (x,) = v.operands
    size_ = abs_(x)
    usual = and_(gt(size_, 0), lt(size_, np.inf))
    a = where(usual, size_, like(x, 1))
    r = exp(log(a) / 3)
    r = r - (r - a / (r * r)) / 3
    return where(usual, where(lt(x, 0), -r, r), x)


def _atan2(v: Value) -> Value:
    y, x = v.operands
    both = and_(isinf(x), isinf(y))
    one = lambda z: where(both, where(lt(z, 0), like(z, -1), like(z, 1)), z)
    a, b = abs_(one(y)), abs_(one(x))
    steep = gt(a, b)
    low, high = where(steep, b, a), where(steep, a, b)
    angle = atan(low / where(eq(high, 0), like(high, 1), high))
    angle = where(steep, math.pi / 2 - angle, angle)
    angle = where(_negative(x), math.pi - angle, angle)
    return where(or_(isnan(x), isnan(y)), x + y, where(_negative(y), -angle, angle))




# --- reductions and movements -----------------------------------------------------------------------------------------


def _pad(v: Value) -> Value | None:
    """Fillers between elements are an axis of their own, which is then part of the one before."""
    gaps, (x, fill) = v.attrs["interior"], v.operands
    if not any(gaps):
        return None
    none = (0,) * x.ndim
    for a, k in enumerate(gaps):
        if k:
            wide = reshape(x, shape=(*x.shape[: a + 1], 1, *x.shape[a + 1 :]))
            high = tuple(k if i == a + 1 else 0 for i in range(wide.ndim))
            wide = pad(wide, fill, low=(*none, 0), high=high, interior=(*none, 0))
            n = x.shape[a] * (k + 1)
            gap = tuple(k if i == a else 0 for i in range(x.ndim))
            want = pad(x, fill, low=none, high=none, interior=gap).shape
            flat = reshape(wide, shape=(*x.shape[:a], n, *x.shape[a + 1 :]))
            x = slice_(flat, start=none, size=want, step=(1,) * x.ndim)
    return pad(x, fill, low=v.attrs["low"], high=v.attrs["high"], interior=none)


def _windowed(v: Value) -> list[Value]:
    """Index arrays of the elements of windows, over the axes of a window and those of which one."""
    a, whole = v.attrs, v.operands[-1] if len(v.operands) > 1 else v
    m = len(a["window"])
    shape = whole.shape[whole.ndim - 2 * m :]
    return [iota(shape=shape, axis=k, dtype=I64) * d + iota(shape=shape, axis=m + k, dtype=I64) * s
            for k, (d, s) in enumerate(zip(a["dilation"], a["stride"], strict=True))]


def _windows(v: Value) -> Value:
    x, m = v.operands[0], len(v.attrs["window"])
    lead = x.ndim - m
    found = gather(x, *_windowed(v), axes=tuple(range(lead, x.ndim)))
    return transpose(found, perm=(*range(2 * m, found.ndim), *range(2 * m)))


def _add_windows(v: Value) -> Value:
    (x, y), m = v.operands, len(v.attrs["window"])
    lead = x.ndim - m
    turned = transpose(y, perm=(*range(lead, y.ndim), *range(lead)))
    return scatter(x, turned, *_windowed(v), axes=tuple(range(lead, x.ndim)), mode="add")


def _position(v: Value) -> Value:
    n = elements(v.shape)
    return cast(reshape(iota(shape=(n,), axis=0, dtype=I64), shape=v.shape), dtype=U64)


def starts_of(v: Value, first: int, window: tuple) -> list[Value]:
    """The scalar starts of a window, moved so that it fits."""
    return [maximum(minimum(s, size(value=n - k)), 0)
            for s, n, k in zip(v.operands[first:], v.operands[0].shape, window, strict=True)]


def _dynamic_slice(v: Value) -> Value:
    x = v.operands[0]
    for a, s in enumerate(starts_of(v, 1, v.shape)):
        n = v.shape[a]
        place = iota(shape=(n,), axis=0, dtype=I64) + broadcast(s, axes=(), shape=(n,))
        x = x if n == x.shape[a] else _moved(gather(x, place, axes=(a,)), 0, a)
    return x


def _moved(x: Value, source: int, to: int) -> Value:
    order = [a for a in range(x.ndim) if a != source]
    order.insert(to, source)
    return transpose(x, perm=tuple(order))


def _dynamic_update_slice(v: Value) -> Value:
    """Only elements inside are written, none twice."""
    x, y = v.operands[:2]
    if not x.ndim:
        return y
    places = [iota(shape=y.shape, axis=a, dtype=I64) + broadcast(s, axes=(), shape=y.shape)
              for a, s in enumerate(starts_of(v, 2, y.shape))]
    return scatter(x, y, *places, axes=tuple(range(x.ndim)), mode="set")


def _searchsorted(v: Value) -> Value:
    """Counts, of all pairs."""
    (line, x), b = v.operands, v.attrs["batch"]
    n = line.shape[-1]
    shape = (*x.shape, n)
    a = broadcast(line, axes=(*range(b), len(shape) - 1), shape=shape)
    y = broadcast(x, axes=tuple(range(x.ndim)), shape=shape)
    before = lt(a, y) if v.attrs["side"] == "left" else le(a, y)
    if x.dtype.kind == "f":
        last = isnan(y)
        before = or_(before, and_(last, not_(isnan(a))) if v.attrs["side"] == "left" else last)
    return sum_(cast(before, dtype=I64), axes=(x.ndim,))


def _with_places(x: Value, order: Value, axis: int) -> Value:
    rows = [order if a == axis else iota(shape=order.shape, axis=a, dtype=I64) for a in range(order.ndim)]
    return gather(x, *rows, axes=tuple(range(x.ndim)))


def _argsort(v: Value) -> Value | None:
    """Of floats: nan as if infinite, then by a second sort, that keeps the order, behind the infinities."""
    (x,), axis = v.operands, v.attrs["axis"]
    if x.dtype.kind != "f":
        return None
    none = isnan(x)
    first = argsort(_orderable(where(none, like(x, np.inf), x)), axis=axis)
    second = argsort(_with_places(cast(none, dtype=DTYPES["i32"]), first, axis), axis=axis)
    return _with_places(first, second, axis)


def _orderable(x: Value) -> Value:
    """Promised to hold no nan."""
    return assume(x, low=-math.inf)


def has_no_nan(x: Value) -> bool:
    """True for what ``_argsort`` has made."""
    return x.op is assume or x.dtype.kind != "f"


def _sort(v: Value) -> Value:
    return _with_places(v.operands[0], argsort(v.operands[0], axis=v.attrs["axis"]), v.attrs["axis"])


def _argmax(v: Value) -> Value | None:
    """Of floats: the first nan, if there is one."""
    (x,), axes = v.operands, v.attrs["axes"]
    if x.dtype.kind != "f" or has_no_nan(x):
        return None
    none = isnan(x)
    return where(any_(none, axes=axes), argmax(cast(none, dtype=DTYPES["i32"]), axes=axes),
                 v.op(_orderable(where(none, like(x, 0), x)), axes=axes))


def first_place(v: Value) -> Value:
    """The first place where an element is the extreme, of no nan."""
    (x,), (axis,) = v.operands, v.attrs["axes"]
    best = (max_ if v.op is argmax else min_)(x, axes=(axis,))
    place = iota(shape=x.shape, axis=axis, dtype=I64)
    return min_(where(eq(x, spread(best, x, (axis,))), place, like(place, np.iinfo(np.int64).max)), axes=(axis,))


def _scatter(v: Value) -> Value | None:
    """Of several updates at one place the last one stays: all of them write that."""
    x, u, *indices = v.operands
    axes, shape = v.attrs["axes"], indices[0].shape
    if v.attrs["mode"] != "set" or not shape or all(_is_own_place(i) for i in indices):
        return None
    order = reshape(iota(shape=(elements(shape),), axis=0, dtype=I64), shape=shape)
    every = tuple(range(len(axes)))
    board = splat(-1, TensorType(I64, [x.shape[a] for a in axes]))
    last = gather(scatter(board, order, *indices, axes=every, mode="max"), *indices, axes=every)
    flat = reshape(u, shape=(elements(shape), *u.shape[len(shape) :]))
    own = [_own_place(i) for i in indices]
    return scatter(x, gather(flat, last, axes=(0,)), *own, axes=axes, mode="set")


def _own_place(i: Value) -> Value:
    """Promised to name no place twice (or with the same update)."""
    return assume(i, low=0)


def _is_own_place(i: Value) -> bool:
    return i.op is assume or i.op.name == "iota" or (
        i.op.name == "add" and i.operands[0].op.name == "iota" and i.operands[1].op.name == "broadcast")


# --- running ----------------------------------------------------------------------------------------------------------


def _running(combine: Callable[..., Value], first: float) -> Callable[[Value], Value]:
    """A loop along the axis: what came before is combined with each element."""
    def parts(v: Value) -> Value:
        axis, reverse = v.attrs["axis"], v.attrs["reverse"]
        rows = [_moved(o, axis, 0) for o in v.operands]
        n = rows[0].shape[0]
        if v.op is linrec:  # what comes before the first is nothing, whatever the factor
            start = eq(iota(shape=rows[0].shape, axis=0, dtype=I64), _last_place(n, rows[0]) if reverse else 0)
            rows[0] = where(start, like(rows[0], 0), rows[0])
        row = TensorType(v.dtype, rows[0].shape[1:])
        before, *own = (param(k, row) for k in range(1 + len(rows)))
        new = combine(before, *own)
        body = Region((row,) * (1 + len(rows)), [new, new])
        made = scan(splat(first, row), *rows, carry=1, xs=len(rows), length=n, reverse=reverse, regions=(body,))
        return _moved(made[1], 0, axis)

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


def _everywhere(d: Value, x: Value) -> Value:
    """One number for each matrix or vector, in all of its elements."""
    return broadcast(d, axes=tuple(range(d.ndim)), shape=x.shape)


def _loop(n, carries: list[Value], captured: list[Value], body: Callable[..., list[Value]], reverse=False) -> Value:
    """A scan over 0, ..., n - 1. ``body(k, carries, captured)`` gives new carries."""
    count = TensorType("i64", ())
    types = [*[c.type for c in carries], count, *[c.type for c in captured]]
    leaves = [param(k, t) for k, t in enumerate(types)]
    m = len(carries)
    region = Region(types, body(leaves[m], leaves[:m], leaves[m + 1 :]))
    return scan(*carries, iota(shape=(n,), axis=0, dtype=I64), *captured, carry=m, xs=1, length=n, reverse=reverse,
                regions=(region,))


def _cholesky(v: Value) -> Value:
    """Column by column."""
    (a,) = v.operands

    def column(k, carries, captured):
        (l,), (a,) = carries, captured
        c = _row(a, k, -1) - _times(l, _row(l, k, -2))
        d = sqrt(_row(c, k, -1))
        c = where(_at(c, k, -1), _everywhere(d, c), where(_below_row(c, k, -1), c / _everywhere(d, c), like(c, 0)))
        return [where(_at(l, k, -1), by_row(c, l.shape), l)]

    return _loop(a.shape[-1], [like(a, 0)], [a], column)


def _lu_factor(v: Value) -> list[Value]:
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
        here, there = _at(c, k, -1), eq(iota(shape=c.shape, axis=c.ndim - 1, dtype=I64), _everywhere(pivot, c))
        own = iota(shape=c.shape, axis=c.ndim - 1, dtype=I64)
        order = where(here, _everywhere(pivot, c), where(there, broadcast(k, axes=(), shape=c.shape), own))
        lu, perm = permuted(lu, order), permuted(perm, order)
        row, c = _row(lu, k, -2), _row(lu, k, -1)
        d = _row(row, k, -1)
        below = _below_row(c, k, -1)
        factor = where(below, c / _everywhere(where(eq(d, 0), like(d, 1), d), c), like(c, 0))
        right = where(_below_row(row, k, -1), row, like(row, 0))
        lu = lu - by_row(factor, lu.shape) * by_column(right, lu.shape)
        return [where(and_(_at(lu, k, -1), _below_row(lu, k, -2)), by_row(factor, lu.shape), lu), perm]

    made = _loop(a.shape[-1], [a, perm], [], column)
    return [made[0], made[1]]


def _solve_triangular(v: Value) -> Value:
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
            new = new / _everywhere(_row(r, k, -1), new)
        return [where(_at(x, k, -2), by_column(new, x.shape), x)]

    return _loop(a.shape[-1], [like(b, 0)], [a, b], row, reverse=not lower)


def _lu_solve(v: Value) -> Value:
    lu, perm, b = v.operands
    if v.attrs["trans"] == "n":
        y = solve_triangular(lu, permuted(b, perm), lower=True, unit=True, trans="n")
        return solve_triangular(lu, y, lower=False, unit=False, trans="n")
    y = solve_triangular(lu, b, lower=False, unit=False, trans="t")
    return permuted_back(solve_triangular(lu, y, lower=True, unit=True, trans="t"), perm)


# --- random bits ------------------------------------------------------------------------------------------------------


def _philox(key: Value, stream: Value, counter: Value) -> list[Value]:
    """The four words of a block, as u64: ``symc.ir.ops.random_reference.philox`` in ops."""
    mask, half = like(key, 0xFFFFFFFF), like(key, 32)
    c0, c1, c2, c3 = and_(counter, mask), shr(counter, half), and_(stream, mask), shr(stream, half)
    k0, k1 = and_(key, mask), shr(key, half)
    for _ in range(10):
        p0, p1 = like(c0, MULTIPLIERS[0]) * c0, like(c2, MULTIPLIERS[1]) * c2
        c0, c1 = xor(xor(shr(p1, half), c1), k0), and_(p1, mask)
        c2, c3 = xor(xor(shr(p0, half), c3), k1), and_(p0, mask)
        k0, k1 = and_(k0 + like(k0, WEYL[0]), mask), and_(k1 + like(k1, WEYL[1]), mask)
    return [c0, c1, c2, c3]


def _philox64(v: Value) -> Value:
    key, stream, index = v.operands
    a, b, c, d = _philox(key, stream, shr(index, like(index, 1)))
    odd = eq(and_(index, like(index, 1)), 1)
    high, low = where(odd, d, b), where(odd, c, a)
    return or_(shl(high, like(high, 32)), low)


def _philox32(v: Value) -> Value:
    key, stream, index = v.operands
    words = _philox(key, stream, shr(index, like(index, 2)))
    k = and_(index, like(index, 3))
    out = words[3]
    for j in (2, 1, 0):
        out = where(eq(k, j), words[j], out)
    return cast(out, dtype=DTYPES["u32"])


def _unit_uniform(v: Value) -> Value:
    (bits,), digits = v.operands, 53 if v.dtype.itemsize == 8 else 24
    return cast(shr(bits, like(bits, 8 * bits.dtype.itemsize - digits)), dtype=v.dtype) * 2.0**-digits


running_sum = _running(lambda before, x: before + x, 0)
#: By the names of ops; None from one of these: the op stays, or its record says more.
PARTS: dict[str, Callable[[Value], Value | list[Value] | None]] = {
    "add_windows": _add_windows,
    "again": lambda v: v.operands[0],
    "argmax": _argmax,
    "argmin": _argmax,
    "argsort": _argsort,
    "atan2": _atan2,
    "bounded": lambda v: v.operands[0],
    "cached": lambda v: v.operands[0],
    "cbrt": _cbrt,
    "check_index": lambda v: v.operands[0],
    "cholesky": _cholesky,
    "copysign": _copysign,
    "cumprod": _running(lambda before, x: before * x, 1),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "exp2": lambda v: exp(v.operands[0] * LN2),
    "expm1": _expm1,
    "floordiv": lambda v: _floordiv(v) if v.dtype.kind == "f" else None,
    "fmax": _extreme(maximum),
    "fmin": _extreme(minimum),
    "hypot": _hypot,
    "linrec": _running(lambda before, a, b: before * a + b, 0),
    "log10": lambda v: log(v.operands[0]) * (1 / LN10),
    "log1p": _log1p,
    "log2": lambda v: log(v.operands[0]) * (1 / LN2),
    "logcumsumexp": _running(lambda before, x: logaddexp(before, x), -math.inf),
    "lu_factor": _lu_factor,
    "lu_solve": _lu_solve,
    "mod": lambda v: _mod(v) if v.dtype.kind == "f" else None,
    "mulz": lambda v: where(eq(v.operands[0], 0), like(v, 0), v.operands[0] * v.operands[1]),
    "pad": _pad,
    "philox32": _philox32,
    "philox64": _philox64,
    "position": _position,
    "rounded_mul": lambda v: v.operands[0] * v.operands[1],
    "scatter": _scatter,
    "searchsorted": _searchsorted,
    "shl": _shift,
    "shr": _shift,
    "signbit": lambda v: _negative(v.operands[0]),
    "solve_triangular": _solve_triangular,
    "sort": _sort,
    "unit_uniform": _unit_uniform,
    "windows": _windows,
}
