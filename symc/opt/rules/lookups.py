"""Look-ups: what is computed and then looked up in part is computed for that part, and selections are look-ups;
searches of what counts.

What a gather reads must lie in memory. So a look-up goes below a computation where no more is computed than before, as
far as sizes tell: ``exp(x)[i]`` for one index, or for as many as there are rows, is ``exp(x[i])``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.ir.dim import known_nonnegative, product, size_name
from symc.ir.op import Decompose, lookup, splat
from symc.ir.ops.arithmetic import maximum, minimum, mod
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq, isnan
from symc.ir.ops.dynamic_slice import dynamic_slice
from symc.ir.ops.index import gather
from symc.ir.ops.kernel import check_index, checked_index
from symc.ir.ops.leaf import array, iota
from symc.ir.ops.linalg import dot, free_axes, matmul
from symc.ir.ops.logic import where
from symc.ir.ops.math import ceil, floor
from symc.ir.ops.reduce import sum_
from symc.ir.ops.search import searchsorted
from symc.ir.ops.shape import broadcast, flip, rolled, transpose
from symc.ir.text import splat_of
from symc.ir.types import DTYPES
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import index, leaf, leaves
from symc.opt.engine.rule import works_once
from symc.opt.engine.terms import size_like
from symc.opt.facts.forms import Steps, is_eye, steps_of, turned_steps
from symc.opt.rules.indexing import count, depth_of, other_axes, reads_no_more
from symc.opt.rules.reads import lines_of

I64 = DTYPES["i64"]


def _ring(n: int, start: int, step: int = 1) -> Value:
    """Places on a ring of n."""
    return mod(places := count(n, start, step), splat(n, places.type))


# --- gathers of computations ------------------------------------------------------------------------------------------


@rewrite(
    "gather",
    "dynamic_slice",
    exact=True,
    equation="f(x, y)[i] -> f(x[i], y[i]); so for dynamic_slice",
    examples=lambda: [
        gather(lookup("exp")(leaf(9, 2)), index(3), axes=(0,)),
        gather(leaf(9) + leaf(9), index(), axes=(0,)),
        dynamic_slice(lookup("exp")(leaf(9)), index(), size=(3,)),
    ],
    misses=lambda: [gather(lookup("exp")(leaf(9, 2)), index(12), axes=(0,))],
    written=lambda sc: (lambda x, i: [sc.exp(x)[i], sc.dynamic_slice(sc.exp(x), [i], [3])])(
        sc.input("x", "float64", shape=(9,)), sc.input("i", "int64", shape=())),
)  # fmt: skip
def gather_of_elementwise(v: Value, context) -> Value | str | None:
    """Only what is read is computed."""
    x, *places = v.operands
    if not works_once(x, context):
        return None
    if v.op is gather and not reads_no_more(v) and not _counts(x):
        return "more may be read than there is: it would be computed again"
    operands = [
        broadcast(o.operands[0], axes=(), shape=v.shape) if splat_of(o) is not None and v.shape
        else v.op(o, *places, **v.attrs)
        for o in x.operands
    ]  # fmt: skip
    return make(x.op, operands, x.attrs)


def _counts(x: Value, depth: int = 3) -> bool:
    """True if ``x`` is made of counts and numbers alone, as unit matrices and masks are."""
    if splat_of(x) is not None or x.op is iota:
        return True
    made = x.op.name in ("broadcast", "reshape", "transpose") or "elementwise" in x.op.traits
    return made and depth > 0 and bool(x.operands) and all(_counts(o, depth - 1) for o in x.operands)


@rewrite(
    "gather",
    equation="sum(x, a)[i] -> sum(x[i], a); softmax, cumsum, sort along other axes as well",
    examples=lambda: [
        gather(sum_(leaf(9, 2), axes=(1,)), index(3), axes=(0,)),
        gather(lookup("sort")(leaf(9, 2), axis=1), index(3), axes=(0,)),
        gather(sum_(leaf(2, 9, 3), axes=(0,)), index(3), axes=(0,)),
    ],
    misses=lambda: [gather(lookup("sort")(leaf(9, 2), axis=0), index(3), axes=(0,))],
)
def gather_of_lines(v: Value, context) -> Value | None:
    """Only the lines that are read are worked on."""
    x, *indices = v.operands
    along = lines_of(x)
    if along is None or not context.single_use(x) or not reads_no_more(v):
        return None
    source, reduced = x.operands[0], "reduction" in x.op.traits
    kept = [a for a in range(source.ndim) if a not in along] if reduced else list(range(source.ndim))
    axes = tuple(kept[a] for a in v.attrs["axes"])
    if set(axes) & set(along):
        return None
    part = gather(source, *indices, axes=axes)
    left = [a for a in range(source.ndim) if a not in axes]
    moved = tuple(depth_of(v) + left.index(a) for a in along)
    key = "axis" if "axis" in x.attrs else "axes"
    return make(x.op, (part,), type(x.attrs)({**x.attrs, key: moved[0] if key == "axis" else moved}))


@rewrite(
    "gather",
    needs=["dot"],
    equation="(x @ y)[i] -> x[i] @ y; diag(x @ y) -> sum(x * y.T, 1)",
    examples=lambda: [
        gather(matmul(leaf(9, 4), leaf(4, 5)), index(3), axes=(0,)),
        gather(matmul(leaf(4, 5), leaf(5, 9)), index(3), axes=(1,)),
        gather(matmul(leaf(6, 4), leaf(4, 6)), count(6), count(6), axes=(0, 1)),
        gather(matmul(leaf(6, 4), leaf(4, 7)), index(), index(), axes=(0, 1)),
    ],
    misses=lambda: [gather(matmul(leaf(9, 4), leaf(4, 5)), index(12), axes=(0,))],
    written=lambda sc: sc.trace(sc.input("x", "float64", shape=(6, 4)) @ sc.input("y", "float64", shape=(4, 6))),
)
def gather_of_dot(v: Value, context) -> Value | str | None:
    """Rows, columns and elements that nobody reads are not multiplied."""
    p, *indices = v.operands
    if p.op is not dot or not context.single_use(p) or p.attrs["batch"] != ((), ()):
        return None
    count = product(indices[0].shape)
    if count != 1 and not any(known_nonnegative(p.shape[a] - count) for a in v.attrs["axes"]):
        return "more may be read than there is: it would be multiplied again"
    contract, axes, depth = p.attrs["contract"], v.attrs["axes"], depth_of(v)
    free = [free_axes(o, c, ()) for o, c in zip(p.operands, contract, strict=True)]
    chosen: list[list[tuple[int, Value]]] = [[], []]
    for a, i in zip(axes, indices, strict=True):
        side = int(a >= len(free[0]))
        chosen[side].append((free[side][a - side * len(free[0])], i))
    parts, moved = [], []
    for o, c, picks in zip(p.operands, contract, chosen, strict=True):
        if not picks:
            parts.append(o)
            moved.append(tuple(c))
            continue
        taken = [a for a, _ in picks]
        left = [a for a in range(o.ndim) if a not in taken]
        parts.append(gather(o, *[i for _, i in picks], axes=tuple(taken)))
        moved.append(tuple(depth + left.index(a) for a in c))
    if chosen[0] and chosen[1]:
        return _by_element(parts, moved, depth)
    out = dot(*parts, contract=tuple(moved), batch=((), ()))
    if chosen[0]:
        return out
    first = len(free[0])
    order = (*range(first, first + depth), *range(first), *range(first + depth, out.ndim))
    return transpose(out, perm=order)


def _by_element(parts: Sequence[Value], contract: Sequence[tuple[int, ...]], depth: int) -> Value:
    """The product of lines that belong together: a sum of products, or a batched product where axes are left."""
    x, y = parts
    left, right = (o.ndim - depth - len(c) for o, c in zip(parts, contract, strict=True))
    batch = tuple(range(depth))
    if left or right or not depth:
        return dot(x, y, contract=tuple(contract), batch=(batch, batch))
    x, y = (transpose(o, perm=(*batch, *c)) for o, c in zip(parts, contract, strict=True))
    return sum_(x * y, axes=tuple(range(depth, x.ndim)))


@rewrite(
    "dot",
    kinds="f",
    weight=3,
    equation="eye(n)[i] @ x -> x[i]",
    examples=lambda: [
        matmul(_one_hot(check_index(index(30), size=50)), leaf(50, 20)),
        matmul(leaf(20, 50), transpose(_one_hot(index(30)), perm=(1, 0))),
        matmul(gather(array(np.eye(9)), index(30), axes=(0,)), leaf(9, 50)),
    ],
    written=lambda sc: [
        sc.eye(50)[sc.input("i", "int64", shape=(30,))] @ sc.input("x", "float64", shape=(50, 20)),
        sc.input("x", "float64", shape=(20, 50)) @ sc.eye(50)[:, sc.input("i", "int64", shape=(30,))],
    ],
)
def product_with_selection(v: Value) -> Value | None:
    """Rows are picked by looking them up, not by adding up zeros times all others (which is nan where one is infinite).

    An index that is not checked, and that no row has, picks zeros.
    """
    if v.attrs["batch"] != ((), ()) or any(len(c) != 1 for c in v.attrs["contract"]):
        return None
    for k in (1, 0):
        m, x = v.operands[k], v.operands[1 - k]
        (along,), (axis,) = v.attrs["contract"][k], v.attrs["contract"][1 - k]
        i = _selected(m, along)
        if i is None or not known_nonnegative(m.shape[along] - 1):
            continue
        picked = _rows(x, i, axis, m.op is gather)
        return picked if k == 0 else transpose(picked, perm=(*range(1, picked.ndim), 0))
    return None


def _rows(x: Value, i: Value, axis: int, checked: bool) -> Value:
    """The rows of ``x`` along ``axis``, zeros where the index is out of bounds and not checked."""
    n = x.shape[axis]
    if checked or i.op.name in ("check_index", "bounded") and i.attrs["size"] == n:
        return gather(x, i, axes=(axis,))
    inside = lookup("and")(lookup("ge")(i, splat(0, i.type)), lookup("lt")(i, size_like(n, i.type)))
    clipped = lookup("maximum")(lookup("minimum")(i, size_like(n - 1, i.type)), splat(0, i.type))
    picked = gather(x, clipped, axes=(axis,))
    return lookup("where")(broadcast(inside, axes=(0,), shape=picked.shape), picked, splat(0, picked.type))


def _one_hot(i: Value) -> Value:
    shape = (*i.shape, 50)
    rows = broadcast(i, axes=(0,), shape=shape)
    return cast(lookup("eq")(rows, iota(shape=shape, axis=1, dtype=I64)), dtype=DTYPES["f64"])


def _selected(m: Value, along: int) -> Value | None:
    """The index i where a matrix has ones at (k, i[k]) and zeros elsewhere, ``along`` the axis that i counts along."""
    if m.op is transpose:
        m, along = m.operands[0], m.attrs["perm"][along]
    if m.op is gather and len(m.operands) == 2 and m.operands[1].ndim == 1 and is_eye(m.operands[0]):
        eye, i = m.operands
        return i if along == 1 and eye.shape == (m.shape[1],) * 2 else None
    if m.op is not cast or m.ndim != 2 or m.operands[0].op is not eq:
        return None
    for counted, line in (m.operands[0].operands, m.operands[0].operands[::-1]):
        if steps_of(counted) != Steps(along, 0, 1) or line.op is not broadcast or line.dtype != I64:
            continue
        if line.attrs["axes"] == (1 - along,):
            return line.operands[0]
    return None


# --- neighbours on a ring -------------------------------------------------------------------------------------------


@rewrite(
    "gather",
    exact=True,
    equation="x[(arange(n) + k) % n] -> roll(x, -k); x[(k - arange(n)) % n] as well",
    examples=lambda: [
        gather(leaf(9, 2), _ring(9, 1), axes=(0,)),
        gather(leaf(3, 9), _ring(9, 0, -1), axes=(1,)),
        gather(leaf(4, 9), broadcast(count(4), axes=(0,), shape=(4, 9)),
               broadcast(_ring(9, -2), axes=(1,), shape=(4, 9)), axes=(0, 1)),
    ],
    misses=lambda: [gather(leaf(9), _ring(8, 1), axes=(0,)), gather(leaf(9), _ring(9, 1, 2), axes=(0,))],
    written=lambda sc: (lambda x: x[(sc.arange(x.shape[0]) + 1) % x.shape[0]])(sc.input("x", "float64", shape=("n",))),
)
def gather_on_ring(v: Value) -> Value | None:
    """Neighbours on a ring are two slices, where all that is read by are counts."""
    x, *indices = v.operands
    sizes = [x.shape[a] for a in v.attrs["axes"]]
    turned = [turned_steps(i, n) for i, n in zip(indices, sizes, strict=True)]
    steps = [t or steps_of(i) for t, i in zip(turned, indices, strict=True)]
    along = [s.axis for s in steps if s is not None and s.axis is not None]
    if not any(turned) or None in steps or len(set(along)) < len(along):
        return None
    shape = indices[0].shape
    for k, (a, t, s, n) in enumerate(zip(v.attrs["axes"], turned, steps, sizes, strict=True)):
        if t is None and not (s and s.within(1 if s.axis is None else shape[s.axis], n)):
            return None
        if t is not None and t.axis is not None:
            x = rolled(x, a, -1 * t.start) if t.step > 0 else rolled(flip(x, (a,)), a, t.start + 1)
            indices[k] = iota(shape=shape, axis=t.axis, dtype=I64)
    return gather(x, *indices, **v.attrs)


# --- random numbers ---------------------------------------------------------------------------------------------------


@rewrite(
    "gather",
    exact=True,
    kinds="iu",
    needs=["random_bits"],
    equation="random_bits(key, n)[i] -> bits of element i",
    examples=lambda: [gather(lookup("random_bits")(leaves(1, {0: "u64"}, (2,))[0], shape=(9,), dtype=DTYPES["u64"]),
                             index(3), axes=(0,))],
    written=lambda sc: sc.random.normal(sc.random.key(3), (1000,))[sc.input("i", "int64", shape=(3,))],
)  # fmt: skip
def gather_of_bits(v: Value, context) -> Value | None:
    """An element of a draw is a function of the key and its number: no others are drawn, and the bits are the same."""
    b = v.operands[0]
    if b.op.name != "random_bits" or not context.single_use(b) or not reads_no_more(v):
        return None
    assert isinstance(b.op.lowering, Decompose)
    return gather(b.op.lowering.f(b), *v.operands[1:], **v.attrs)


@rewrite(
    "gather",
    exact=True,
    needs=["position"],
    equation="position(shape)[i] -> i * stride + the rest",
    examples=lambda: [gather(lookup("position")(shape=(5, 4)), index(3), axes=(k,)) for k in (0, 1)],
    misses=lambda: [gather(leaves(1, {0: "u64"}, (5, 4))[0], index(3), axes=(0,))],
    arises="of random numbers that are looked up",
)
def gather_of_position(v: Value) -> Value | None:
    """The number of an element, by arithmetic."""
    p, *indices = v.operands
    if p.op.name != "position":
        return None
    depth = depth_of(v)
    parts = []
    for a in range(p.ndim):
        if a in v.attrs["axes"]:
            i = checked_index(indices[v.attrs["axes"].index(a)], p, a)
            term = broadcast(cast(i, dtype=v.dtype), axes=tuple(range(i.ndim)), shape=v.shape)
        else:
            term = iota(shape=v.shape, axis=depth + other_axes(v).index(a), dtype=v.dtype)
        stride = product(p.shape[a + 1 :])
        parts.append(term if stride == 1 else term * size_like(stride, v.type))
    total = parts[0]
    for x in parts[1:]:
        total = total + x
    return total


# --- searches ---------------------------------------------------------------------------------------------------------


@rewrite(
    "searchsorted",
    exact=True,
    equation="searchsorted(arange(n), x) -> ceil(clip(x, 0, n))",
    examples=lambda: [searchsorted(a, x, side=side) for side in ("left", "right") for x, a in (
        (leaf(9), cast(iota(shape=(size_name("n"),), axis=0, dtype=I64), dtype=DTYPES["f64"])),
        (index(3, 2), iota(shape=(size_name("n"),), axis=0, dtype=I64)), (leaf(9), array(np.arange(4.0))))],
    misses=lambda: [searchsorted(leaf(9), leaf(3), side="left"),
                    searchsorted(array(np.array([0.0, 2.0])), leaf(3), side="left")],
    arises="of interpolation between samples that are one apart",
)
def search_of_iota(v: Value) -> Value | None:
    """Places among a count are the numbers, rounded. What is searched for is cut first, so that nothing overflows."""
    a, x = v.operands
    right, n = v.attrs["side"] == "right", a.shape[-1]
    if a.ndim != 1 or a.dtype not in (I64, DTYPES["f64"]) or not _is_count(a):
        return None
    most = size_like(n - right, x.type.with_dtype("i64"))
    found = minimum(maximum(x, splat(-right, x.type)), most if x.dtype == I64 else cast(most, dtype=x.dtype))
    if x.dtype.kind == "f":
        found = where(isnan(x), most, cast((floor if right else ceil)(found), dtype=I64))
    return found + 1 if right else found


def _is_count(v: Value) -> bool:
    """True of 0, 1, 2, ... as a vector."""
    if v.data is not None:
        return np.array_equal(v.data, np.arange(v.data.size))
    base = v.operands[0] if v.op is cast else v
    return base.op is iota and base.dtype in (I64, v.dtype)
