"""Writes: what is overwritten is not written, and what was just written is not looked up.

Where an index array may name a place twice, ``set`` keeps the last value, so that reading back does not give what was
written; one index, or indices that count, name no place twice.
"""

from __future__ import annotations

from typing import Any

from symc.ir.dim import known_nonnegative
from symc.ir.op import splat
from symc.ir.ops.dynamic_slice import dynamic_slice, dynamic_update_slice
from symc.ir.ops.index import SCATTER_MODES, combining, gather, scatter
from symc.ir.ops.leaf import iota, scalar
from symc.ir.ops.shape import flip, pad, slice_, transpose
from symc.ir.text import splat_of
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, index, leaf
from symc.opt.engine.terms import is_number, size_like
from symc.opt.facts.forms import steps_of
from symc.opt.rules.reads import window_starts

I64 = DTYPES["i64"]


def _put(x: Value, u: Value, i: Value, mode: str = "set") -> Value:
    return scatter(x, u, i, axes=(0,), mode=mode)


def _zeros(like: Value) -> Value:
    return splat(0, like.type)


def _three():
    """x, updates, an index."""
    return leaf(9, 2), leaf(4, 2), index(4)


def _user(sc: Any, names: str) -> list[Any]:
    """x of 9 elements, y of 3, 3 indices i."""
    shapes = {"x": ("float64", (9,)), "y": ("float64", (3,)), "i": ("int64", (3,))}
    return [sc.input(n, shapes[n][0], shape=shapes[n][1]) for n in names]


def same_places(a: Value, b: Value) -> bool:
    """True if two gathers or scatters name the same places, one after another."""
    first, second = (v.op.facts.indices for v in (a, b))
    return a.operands[first:] == b.operands[second:] and a.attrs["axes"] == b.attrs["axes"]


def names_no_place_twice(v: Value) -> bool:
    """True if the places of a gather or scatter are known to be distinct: one alone, or an index that counts."""
    indices = v.operands[v.op.facts.indices :]
    shape = indices[0].shape
    if all(s == 1 for s in shape):
        return True
    wide = {a for a, s in enumerate(shape) if s != 1}
    steps = [steps_of(i) for i in indices]
    return wide <= {s.axis for s in steps if s is not None and s.step}


# --- writes over writes -----------------------------------------------------------------------------------------------


@rewrite(
    "scatter",
    exact=True,
    needs=["scatter"],
    equation="x.at[i].set(y).at[i].set(z) -> x.at[i].set(z)",
    examples=lambda: [
        _put(_put(x, u, i, mode), leaf(4, 2), i) for x, u, i in [_three()] for mode in ("set", "add", "mul")
    ],
    written=lambda sc: example(lambda x, i: x.at[i].set(1.0).at[i].set(2.0), _user(sc, "xi")),
)
def dead_store(v: Value) -> Value | None:
    """A store that is overwritten before anybody reads it is dead."""
    x, u, *indices = v.operands
    if v.attrs["mode"] != "set" or x.op is not scatter or not same_places(v, x):
        return None
    return scatter(x.operands[0], u, *indices, **v.attrs)


@rewrite(
    "scatter",
    needs=["scatter"],
    equation="x.at[i].add(y).at[i].add(z) -> x.at[i].add(y + z)",
    examples=lambda: [
        _put(_put(x, u, i, mode), leaf(4, 2), i, mode) for x, u, i in [_three()] for mode in SCATTER_MODES
    ],
    written=lambda sc: example(lambda x, i: x.at[i].add(x[:3]).at[i].add(2.0), _user(sc, "xi")),
)
def merged_updates(v: Value, context) -> Value | None:
    """One update for two."""
    x, u, *indices = v.operands
    mode = v.attrs["mode"]
    combine = combining(mode)
    if combine is None or x.op is not scatter or x.attrs != v.attrs or not context.single_use(x):
        return None
    if not same_places(v, x):
        return None
    return scatter(x.operands[0], combine(x.operands[1], u), *indices, **v.attrs)


@rewrite(
    "dynamic_update_slice",
    exact=True,
    needs=["dynamic_update_slice"],
    equation="x.at[2:5].set(y).at[2:5].set(z) -> x.at[2:5].set(z)",
    examples=lambda: [
        dynamic_update_slice(dynamic_update_slice(leaf(9), leaf(n), scalar(k, "i64")), leaf(3), scalar(2, "i64"))
        for n, k in ((3, 2), (1, 3))
    ],
    written=lambda sc: sc.input("x", "float64", shape=(9,)).at[2:5].set(1.0).at[2:5].set(2.0),
)
def dead_window(v: Value) -> Value | None:
    """A window that is overwritten before anybody reads it, or overwritten in part, and is gone."""
    w = v.operands[0]
    if w.op is not dynamic_update_slice:
        return None
    outer, inner = v.operands[1].shape, w.operands[1].shape
    same = v.operands[2:] == w.operands[2:] and outer == inner
    if not same:
        a, b = window_starts(v), window_starts(w)
        if a is None or b is None:
            return None
        for s, n, t, m in zip(a, outer, b, inner, strict=True):
            if not known_nonnegative(t - s) or not known_nonnegative(s + n - t - m):
                return None
    return dynamic_update_slice(w.operands[0], *v.operands[1:])


@rewrite(
    "dynamic_update_slice",
    exact=True,
    equation="x.at[:].set(y) -> y",
    examples=lambda: [dynamic_update_slice(leaf(9), leaf(9), scalar(0, "i64"))],
    misses=lambda: [dynamic_update_slice(leaf(9), leaf(8), scalar(0, "i64"))],
    written=lambda sc: example(lambda x, y, i: sc.exp(x).at[:].set(x * 2), _user(sc, "xyi")),
)
def whole_update(v: Value) -> Value | None:
    """Everything is overwritten."""
    return v.operands[1] if v.operands[1].type is v.type else None


@rewrite(
    "dynamic_update_slice",
    exact=True,
    needs=["#"],
    equation="zeros(n).at[2:5].set(y) -> pad(y)",
    examples=lambda: [(lambda x: dynamic_update_slice(_zeros(x), leaf(3), scalar(2, "i64")))(leaf(9))],
    written=lambda sc: sc.zeros(9).at[2:5].set(sc.input("y", "float64", shape=(3,))),
)
def update_of_number(v: Value) -> Value | None:
    """A padded array is no array in memory: kernels read the number and the window."""
    x, u, *_ = v.operands
    if splat_of(x) is None or not v.ndim or (starts := window_starts(v)) is None:
        return None
    high = tuple(n - s - k for n, s, k in zip(v.shape, starts, u.shape, strict=True))
    return pad(u, x.operands[0], low=tuple(starts), high=high, interior=(0,) * v.ndim)


# --- writes of what is there ------------------------------------------------------------------------------------------


@rewrite(
    "scatter",
    exact=True,
    needs=["gather"],
    equation="x.at[i].set(x[i]) -> x",
    examples=lambda: [example(lambda x, u, i: _put(x, gather(x, i, axes=(0,)), i), _three())],
    written=lambda sc: example(lambda x, i: x.at[i].set(x[i]), _user(sc, "xi")),
)
def set_to_itself(v: Value) -> Value | None:
    """Nothing changes."""
    x, u, *_ = v.operands
    if v.attrs["mode"] == "set" and u.op is gather and u.operands[0] is x and same_places(v, u):
        return x
    return None


@rewrite(
    "dynamic_update_slice",
    exact=True,
    equation="x.at[2:5].set(x[2:5]) -> x",
    examples=lambda: [
        (lambda x: dynamic_update_slice(x, slice_(x, start=(2,), size=(3,), step=(1,)), scalar(2, "i64")))(leaf(9)),
        (lambda x, i: dynamic_update_slice(x, dynamic_slice(x, i, size=(3,)), i))(leaf(9), index()),
    ],
    written=lambda sc: (lambda x: x.at[2:5].set(x[2:5]))(sc.input("x", "float64", shape=(9,))),
)
def window_set_to_itself(v: Value) -> Value | None:
    """Nothing changes."""
    x, u, *starts = v.operands
    if u.op is dynamic_slice and u.operands == (x, *starts):
        return x
    if u.op is not slice_ or u.operands[0] is not x or any(k != 1 for k in u.attrs["step"]):
        return None
    places = window_starts(v)
    return x if places is not None and tuple(places) == u.attrs["start"] else None


@rewrite(
    "scatter",
    needs=["#"],
    tags=["signed-zero"],
    equation="x.at[i].add(0) -> x",
    examples=lambda: [
        _put(x, splat(k, u.type), i, mode) for x, u, i in [_three()] for mode, k in (("add", 0), ("mul", 1))
    ],
    written=lambda sc: example(lambda x, i: x.at[i].add(0.0), _user(sc, "xi")),
)
def update_by_nothing(v: Value) -> Value | None:
    """Zeros are added, or everything is multiplied by 1 (0 turns -0.0 into 0.0)."""
    neutral = {"add": 0, "mul": 1}.get(v.attrs["mode"])
    return v.operands[0] if neutral is not None and is_number(v.operands[1], neutral) else None


@rewrite(
    "scatter",
    "dynamic_update_slice",
    exact=True,
    needs=["#"],
    equation="full(n, c).at[i].set(c) -> full(n, c)",
    examples=lambda: [
        example(lambda x, u, i: _put(splat(2, x.type), splat(2, u.type), i), _three()),
        (lambda x: dynamic_update_slice(splat(2, x.type), splat(2, leaf(3).type), index()))(leaf(9)),
    ],
    written=lambda sc: example(lambda x, i: sc.ones(9).at[i].set(1.0) + x, _user(sc, "xi")),
)
def number_set_to_itself(v: Value) -> Value | None:
    """The number that is there already."""
    x, u = v.operands[:2]
    a, b = splat_of(x), splat_of(u)
    if a is None or b is None or v.attrs.get("mode", "set") != "set":
        return None
    return x if a.tobytes() == b.tobytes() else None


# --- indices that count -----------------------------------------------------------------------------------------------


@rewrite(
    "scatter",
    equation="x.at[[2, 3, 4]].set(y) -> x.at[2:5].set(y)",
    examples=lambda: [
        _put(leaf(9, 2), leaf(4, 2), iota(shape=(4,), axis=0, dtype=I64) * step + 3, mode)
        for mode, step in (("set", 1), ("set", -1), ("add", 1), ("max", 1))
    ],
    written=lambda sc: example(
        lambda x, y: x.at[sc.arange(2, 6)].add(y), [sc.input("x", "float64", shape=(n,)) for n in (9, 4)]
    ),
)
def update_by_count(v: Value) -> Value | None:
    """Neighbours in order are a window: nothing is looked up."""
    x, u, *indices = v.operands
    if len(indices) != 1 or indices[0].ndim != 1 or (steps := steps_of(indices[0])) is None:
        return None
    (axis,), n = v.attrs["axes"], indices[0].shape[0]
    if steps.axis is None or abs(steps.step) != 1 or not steps.within(n, x.shape[axis]):
        return None
    u = flip(u, (0,)) if steps.step < 0 else u
    first, _ = steps.ends(n)
    u = transpose(u, perm=(*range(1, axis + 1), 0, *range(axis + 1, u.ndim)))
    start = tuple(first if a == axis else 0 for a in range(x.ndim))
    combine = combining(v.attrs["mode"])
    if combine is not None:
        u = combine(slice_(x, start=start, size=u.shape, step=(1,) * x.ndim), u)
    zero = scalar(0, I64)
    return dynamic_update_slice(x, u, *[size_like(first, zero.type) if a == axis else zero for a in range(x.ndim)])


# --- reads of writes --------------------------------------------------------------------------------------------------


@rewrite(
    "gather",
    needs=["scatter"],
    equation="x.at[i].set(y)[i] -> y; x.at[i].add(y)[i] -> x[i] + y, where i names no place twice",
    examples=lambda: [
        gather(_put(leaf(9, 2), leaf(2), i := index(), mode), i, axes=(0,)) for mode in ("set", "add", "max")
    ],
    misses=lambda: [example(lambda x, u, i: gather(_put(x, u, i), i, axes=(0,)), _three())],
    written=lambda sc: (lambda x, i: x.at[i].set(2.0)[i])(
        sc.input("x", "float64", shape=(9,)), sc.input("i", "int64", shape=())
    ),
)
def read_of_write(v: Value) -> Value | str | None:
    """The elements that are read were just written."""
    w = v.operands[0]
    if w.op is not scatter or not same_places(v, w):
        return None
    if not names_no_place_twice(w):
        return "the index may name a place twice"
    u, mode = w.operands[1], w.attrs["mode"]
    combine = combining(mode)
    return u if combine is None else combine(gather(w.operands[0], *v.operands[1:], **v.attrs), u)


@rewrite(
    "dynamic_slice",
    exact=True,
    needs=["dynamic_update_slice"],
    equation="dynamic_slice(dynamic_update_slice(x, y, i), i) -> y",
    examples=lambda: [dynamic_slice(dynamic_update_slice(leaf(9), leaf(3), i := index()), i, size=(3,))],
    arises="of loops that keep their rows in one array",
)
def read_of_window(v: Value) -> Value | None:
    """The window that is read was just written."""
    w = v.operands[0]
    if w.op is dynamic_update_slice and w.operands[2:] == v.operands[1:] and w.operands[1].type is v.type:
        return w.operands[1]
    return None
