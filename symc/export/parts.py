"""Ops in terms of simpler ones, for targets that have few: what records say (decompositions), and what stands here.

What is here is written for systems with graphs of array ops: factorizations are loops over columns, running sums are
loops, sorts of floats put nan last by a second sort. A processor has better ways, so these are no facts of the ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from symc.errors import SymcError
from symc.export.bit_parts import philox32, philox64, shift, unit_uniform
from symc.export.function_parts import (
    atan2_parts,
    cbrt_parts,
    digamma_parts,
    erfc_parts,
    expm1_parts,
    is_negative,
    lgamma_parts,
    log1p_parts,
)
from symc.export.loop_parts import cholesky, lu_factor, lu_solve, moved_axis, running, solve_triangular_parts
from symc.ir.dim import product as elements
from symc.ir.op import Decompose, Op, splat
from symc.ir.ops.arithmetic import abs_, fmod, maximum, minimum, neg
from symc.ir.ops.assume import assume
from symc.ir.ops.cast import cast, in_dtype
from symc.ir.ops.compare import eq, gt, isinf, isnan, le, lt, ne
from symc.ir.ops.elementwise import like
from symc.ir.ops.index import gather, scatter
from symc.ir.ops.leaf import iota, size
from symc.ir.ops.logic import and_, not_, or_, where
from symc.ir.ops.math import LN2, LN10, ceil, exp, floor, log, logaddexp
from symc.ir.ops.reduce import any_, argmax, max_, min_, norm, spread, sum_
from symc.ir.ops.shape import broadcast, concat, pad, reshape, slice_, transpose
from symc.ir.ops.sort import argsort
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value

I64, U64 = DTYPES["i64"], DTYPES["u64"]
#: Ops that change no number: what they say is for symc.
IDENTITIES = ("all_reduce", "assume", "ensure_shape", "grad_clip", "grad_scale", "stop_gradient")


def parts_of(v: Value) -> Value | list[Value] | None:
    """The values that a value is made of; None for one that is not known to be made of any."""
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
    except SymcError:  # it is defined for these alone
        return None
    return in_dtype(out, v.dtype)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def safe_divisor(y: Value) -> tuple[Value, Value]:
    """A divisor of integers, promised not to trap: 1 where it may (by 0, and the least number by -1); and where."""
    odd = eq(y, 0) if y.dtype.kind == "u" else or_(eq(y, 0), eq(y, -1))
    return assume(where(odd, like(y, 1), y), low=int(np.iinfo(y.dtype).min)), odd


def is_promised(x: Value) -> bool:
    """True for what is made here, and fits: a divisor, a number of places of a shift, numbers that hold no nan."""
    return x.op is assume


def _below(r: Value, y: Value) -> Value:
    """True where a remainder has not the sign of its divisor."""
    return and_(ne(r, 0), ne(lt(r, 0), lt(y, 0)))


def _fmod(v: Value) -> Value | None:
    """Remainder of integers, 0 for a divisor of 0."""
    x, y = v.operands
    return fmod(x, safe_divisor(y)[0]) if v.dtype.kind != "f" else None


def _integer_quotient(v: Value) -> Value | None:
    """The quotient of x less its remainder, which is exact, less 1 where signs differ; 0 for a divisor of 0."""
    x, y = v.operands
    if is_promised(y):
        return None
    d, odd = safe_divisor(y)
    r = fmod(x, d)
    q = v.op(x - r, d)
    if v.dtype.kind == "i":
        q = where(odd, neg(x), where(_below(r, d), q - 1, q))
    return where(eq(y, 0), like(v, 0), q)


def _floordiv(v: Value) -> Value | None:
    """As NumPy: of x less the remainder, so that no quotient rounds up to the next integer."""
    x, y = v.operands
    if v.dtype.kind != "f":
        return _integer_quotient(v)
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
    return where(is_negative(v.operands[1]), -size_, size_)


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
        x = x if n == x.shape[a] else moved_axis(gather(x, place, axes=(a,)), 0, a)
    return x


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
    """The order of elements; a nan of floats sorts as infinite, then by a second, stable sort behind the infinities."""
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
    return is_promised(x) or x.dtype.kind != "f"


def _sort(v: Value) -> Value:
    return _with_places(v.operands[0], argsort(v.operands[0], axis=v.attrs["axis"]), v.attrs["axis"])


def _argmax(v: Value) -> Value | None:
    """The place of the extremum; of floats that of the first nan, if there is one."""
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
    """Updates at equal places, of which the last one stays: all of them write that."""
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
    return is_promised(i) or i.op.name == "iota" or (
        i.op.name == "add" and i.operands[0].op.name == "iota" and i.operands[1].op.name == "broadcast")


running_sum = running(lambda before, x: before + x, 0)
#: By the names of ops; None from one of these: the op stays, or its record says more.
PARTS: dict[str, Callable[[Value], Value | list[Value] | None]] = {
    "add_windows": _add_windows,
    "again": lambda v: v.operands[0],
    "argmax": _argmax,
    "argmin": _argmax,
    "argsort": _argsort,
    "atan2": atan2_parts,
    "bounded": lambda v: v.operands[0],
    "cached": lambda v: v.operands[0],
    "cbrt": cbrt_parts,
    "check_index": lambda v: v.operands[0],
    "cholesky": cholesky,
    "copysign": _copysign,
    "cumprod": running(lambda before, x: before * x, 1),
    "digamma": digamma_parts,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "erfc": erfc_parts,
    "exp2": lambda v: exp(v.operands[0] * LN2),
    "expm1": expm1_parts,
    "floordiv": _floordiv,
    "fmax": _extreme(maximum),
    "fmin": _extreme(minimum),
    "fmod": _fmod,
    "hypot": _hypot,
    "isfinite": lambda v: lt(abs_(v.operands[0]), np.inf),
    "isinf": lambda v: eq(abs_(v.operands[0]), np.inf),
    "isnan": lambda v: ne(*v.operands * 2),
    "lgamma": lgamma_parts,
    "linrec": running(lambda before, a, b: before * a + b, 0),
    "log10": lambda v: log(v.operands[0]) * (1 / LN10),
    "log1p": log1p_parts,
    "log2": lambda v: log(v.operands[0]) * (1 / LN2),
    "logcumsumexp": running(lambda before, x: logaddexp(before, x), -math.inf),
    "lu_factor": lu_factor,
    "lu_solve": lu_solve,
    "mod": _mod,
    "mulz": lambda v: where(eq(v.operands[0], 0), like(v, 0), v.operands[0] * v.operands[1]),
    "ne": lambda v: not_(eq(*v.operands)),
    "pad": _pad,
    "philox32": philox32,
    "philox64": philox64,
    "position": _position,
    "rounded_mul": lambda v: v.operands[0] * v.operands[1],
    "scatter": _scatter,
    "searchsorted": _searchsorted,
    "shl": shift,
    "shr": shift,
    "signbit": lambda v: is_negative(v.operands[0]),
    "solve_triangular": solve_triangular_parts,
    "sort": _sort,
    "trunc": lambda v: where(lt(v.operands[0], 0), ceil(v.operands[0]), floor(v.operands[0])),
    "unit_uniform": unit_uniform,
    "windows": _windows,
}
