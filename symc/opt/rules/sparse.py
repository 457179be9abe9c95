"""Sparse arrays: sums of arrays that are zero but for a few elements are updates of one buffer.

The gradient of a gather is an array of zeros with updates added in, that of a slice a padded array. Where they meet
something, the elements that are named are changed, and no zeros are added to anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.dim import Size
from symc.ir.op import splat
from symc.ir.ops.dynamic_slice import dynamic_slice, dynamic_update_slice
from symc.ir.ops.index import gather, scatter
from symc.ir.ops.leaf import scalar
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, pad
from symc.ir.text import splat_of
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, index, leaf
from symc.opt.engine.terms import is_number
from symc.opt.rules.writes import _put, _three, _user, _zeros, names_no_place_twice

# --- sums of sparse arrays --------------------------------------------------------------------------------------------


def is_sparse(v: Value, modes: Sequence[str] = ("add",)) -> bool:
    """Zeros, but for what a scatter puts in."""
    return v.op is scatter and v.attrs["mode"] in modes and is_number(v.operands[0], 0)


@rewrite(
    "add",
    "sub",
    exact=False,
    needs=["scatter"],
    equation="x + zeros.at[i].add(y) -> x.at[i].add(y); x - zeros.at[i].add(y) -> x.at[i].add(-y)",
    examples=lambda: [
        example(lambda x, u, i: x + _put(_zeros(x), u, i, "add"), _three()),
        example(lambda x, u, i: x - _put(_zeros(x), u, i, "add"), _three()),
        example(lambda x, u, i: _put(_zeros(x), u, i, "add") - x, _three()),
        example(lambda x, u, i: _put(_zeros(x), u, i, "add") + _put(_zeros(x), u, index(4), "add"), _three()),
    ],
    written=lambda sc: example(lambda x, y, i: x + sc.zeros(9).at[i].add(y), _user(sc, "xyi")),
)
def add_of_sparse(v: Value, context) -> Value | None:
    """The elements that are named are added in place; no array of zeros is made, nor added."""
    for k in (1, 0):
        s, x = v.operands[k], v.operands[1 - k]
        if not is_sparse(s) or not context.single_use(s) or is_number(x, 0):
            continue
        u, *indices = s.operands[1:]
        if v.op.name == "sub":
            u, x = (-u, x) if k else (u, -x)
        return scatter(x, u, *indices, **s.attrs)
    return None


@rewrite(
    "add",
    exact=False,
    needs=["scatter"],
    equation="x + zeros.at[i].set(y) -> x.at[i].set(x[i] + y)",
    examples=lambda: [example(lambda x, u, i: x + _put(_zeros(x), u, i), _three())],
    written=lambda sc: example(lambda x, y, i: x + sc.zeros(9).at[i].set(y), _user(sc, "xyi")),
)
def add_of_sparse_set(v: Value, context) -> Value | None:
    """The elements that are named are changed; where one is named twice, by the last."""
    for k in (1, 0):
        s, x = v.operands[k], v.operands[1 - k]
        if not is_sparse(s, ("set",)) or not context.single_use(s) or is_number(x, 0) or is_sparse(x):
            continue
        u, *indices = s.operands[1:]
        if names_no_place_twice(s):
            return scatter(x, u, *indices, axes=s.attrs["axes"], mode="add")
        old = gather(x, *indices, axes=s.attrs["axes"])
        return scatter(x, old + u, *indices, **s.attrs)
    return None


@rewrite(
    "add",
    exact=False,
    needs=["dynamic_update_slice"],
    equation="x + dynamic_update_slice(zeros, y, i) -> dynamic_update_slice(x, dynamic_slice(x, i) + y, i)",
    examples=lambda: [(lambda x, i: x + dynamic_update_slice(_zeros(x), leaf(3), i))(leaf(9), index())],
    written=lambda sc: (lambda x, i: sc.grad(sc.sum(sc.exp(sc.dynamic_slice(x, [i], [3]))) + sc.sum(x**3), x))(
        sc.input("x", "float64", shape=(9,)), sc.input("i", "int64", shape=())
    ),
)
def add_of_window(v: Value, context) -> Value | None:
    """Only the window is touched."""
    for k in (1, 0):
        s, x = v.operands[k], v.operands[1 - k]
        if s.op is not dynamic_update_slice or not is_number(s.operands[0], 0) or not context.single_use(s):
            continue
        u, *starts = s.operands[1:]
        if not is_number(x, 0):
            return dynamic_update_slice(x, dynamic_slice(x, *starts, size=u.shape) + u, *starts)
    return None


@rewrite(
    "mul",
    "div",
    "neg",
    exact=False,
    kinds="fc",
    needs=["scatter"],
    equation="zeros.at[i].add(y) * 3 -> zeros.at[i].add(y * 3)",
    examples=lambda: [
        *[_put(_zeros(x), u, i, mode) * 3 for x, u, i in [_three()] for mode in ("add", "set")],
        example(lambda x, u, i: -_put(_zeros(x), u, i, "add"), _three()),
    ],
    written=lambda sc: example(lambda x, i: x - 0.1 * sc.grad(sc.sum(x[i] ** 3), x), _user(sc, "xi")),
)
def scaled_sparse(v: Value, context) -> Value | None:
    """A step of gradient descent on rows that were looked up touches those rows alone."""
    s = v.operands[0]
    if not is_sparse(s, ("add", "set")) or not context.single_use(s):
        return None
    u, *indices = s.operands[1:]
    if v.op.name == "neg":
        return scatter(s.operands[0], -u, *indices, **s.attrs)
    number = splat_of(v.operands[1])
    if number is None or abs(number) == float("inf") or number != number or (number == 0 and v.op.name == "div"):
        return None
    return scatter(s.operands[0], make(v.op, (u, splat(number[()], u.type))), *indices, **s.attrs)


@rewrite(
    "sum",
    exact=False,
    needs=["scatter"],
    equation="sum(zeros.at[i].add(y), 0) -> sum(y, 0)",
    examples=lambda: [sum_(_put(_zeros(x), u, i, "add"), axes=a) for x, u, i in [_three()] for a in ((0,), (0, 1))],
    written=lambda sc: example(lambda x, i: sc.sum(sc.grad(sc.sum(x[i] ** 3), x)), _user(sc, "xi")),
)
def sum_of_sparse(v: Value) -> Value | None:
    """The places where they were put do not matter."""
    (s,), axes = v.operands, v.attrs["axes"]
    if not is_sparse(s) or not set(s.attrs["axes"]) <= set(axes):
        return None
    u, depth = s.operands[1], s.operands[2].ndim
    rest = [a for a in range(s.ndim) if a not in s.attrs["axes"]]
    return sum_(u, axes=(*range(depth), *[depth + rest.index(a) for a in axes if a in rest]))


# --- padded arrays ----------------------------------------------------------------------------------------------------


def _pad(x: Value, low: Sequence[Size], high: Sequence[Size]) -> Value:
    return pad(x, scalar(0, x.dtype), low=tuple(low), high=tuple(high), interior=(0,) * x.ndim)


@rewrite(
    "pad",
    exact=True,
    needs=["#"],
    equation="pad(number) -> number where it is the filler",
    examples=lambda: [_pad(_zeros(leaf(300)), (1,), (2,))],
    written=lambda sc: sc.pad(sc.zeros(300), 1),
)
def pad_of_filler(v: Value) -> Value | None:
    """More of the same."""
    x, fill = v.operands
    if x.op is not broadcast or x.attrs["axes"] or x.operands[0] is not fill:
        return None
    return broadcast(fill, axes=(), shape=v.shape)


@rewrite(
    "sum",
    exact=False,
    needs=["pad"],
    equation="sum(pad(x, 0)) -> sum(x)",
    examples=lambda: [sum_(_pad(leaf(3, 2), (1, 0), (2, 0)), axes=a) for a in ((0,), (0, 1))],
)
def sum_of_padded(v: Value) -> Value | None:
    """Zeros are not added up."""
    (p,), axes = v.operands, v.attrs["axes"]
    if p.op is not pad or not is_number(p.operands[1], 0):
        return None
    low, high, gaps = (
        tuple(0 if a in axes else n for a, n in enumerate(p.attrs[k])) for k in ("low", "high", "interior")
    )
    if (low, high, gaps) == (p.attrs["low"], p.attrs["high"], p.attrs["interior"]):
        return None
    return sum_(pad(*p.operands, low=low, high=high, interior=gaps), axes=axes)
