"""Movement hoisting: what moves finished values moves them before the work, as a kernel reads in any order at no cost.

Everywhere else movements sink below the work, so that they meet their inverses. What has met none by the end is written
out by a kernel of its own, if it stands behind the work; before it, it is an index. So this runs once, after all that
compares canonical forms. Only work that nothing else reads moves, and none is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.dim import Size, size_name
from symc.ir.op import lookup
from symc.ir.ops.ensure import ensure_shape, ensured
from symc.ir.ops.index import gather
from symc.ir.ops.leaf import iota
from symc.ir.ops.linalg import matmul
from symc.ir.ops.shape import (
    broadcast,
    in_order,
    in_shape,
    inverse_permutation,
    reshape,
    slice_,
    transpose,
)
from symc.ir.size_extremes import minimum
from symc.ir.text import splat_of
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, index, leaf
from symc.opt.engine.rule import Context, works_once
from symc.opt.facts.forms import unit_axes
from symc.opt.rules.linalg import transpose_of_dot


@rewrite(
    "transpose",
    equation="transpose(f(x, y)) -> f(transpose(x), transpose(y))",
    examples=lambda: [
        transpose(lookup("exp")(leaf(20, 30)), perm=(1, 0)),
        transpose(matmul(leaf(200, 100), leaf(100, 300)) + 1, perm=(1, 0)),
    ],
    written=lambda sc: example(
        lambda x, y: (x @ y).T + 1,
        [sc.input("x", "float64", shape=(200, 90)), sc.input("y", "float64", shape=(90, 99))],
    ),
)
def transposed_before_work(v: Value, context) -> Value | None:
    """A kernel that reads across the rows is one kernel; one that transposes what another has written is a second."""
    (x,), perm = v.operands, v.attrs["perm"]
    if not works_once(x, context):
        return None
    return make(x.op, [_transposed(o, perm, context) for o in x.operands], x.attrs)


def _transposed(x: Value, perm: tuple[int, ...], context: Context) -> Value:
    """The transpose in the form in which it is free: of repeated values, transposes and products."""
    if splat_of(x) is not None:
        return broadcast(x.operands[0], axes=(), shape=tuple(x.shape[p] for p in perm))
    if x.op is transpose:
        return in_order(x.operands[0], [x.attrs["perm"][p] for p in perm])
    if x.op is broadcast:
        inverse = inverse_permutation(perm)
        places = [inverse[a] for a in x.attrs["axes"]]
        part = in_order(x.operands[0], sorted(range(len(places)), key=places.__getitem__))
        return broadcast(part, axes=tuple(sorted(places)), shape=tuple(x.shape[p] for p in perm))
    out = transpose(x, perm=perm)
    swapped = transpose_of_dot.apply(out, context)
    return swapped if isinstance(swapped, Value) else out


@rewrite(
    "transpose",
    exact=True,
    needs=["gather"],
    equation="transpose(x[i]) -> x[arange(n)[:, None], i[None, :]], in the order of the result",
    examples=lambda: [
        transpose(gather(leaf(20, 30), index(40), axes=(1,)), perm=(1, 0)),
        transpose(gather(leaf(20, 30, 4), index(40), axes=(1,)), perm=(1, 0, 2)),
        transpose(gather(leaf(9, 20, 3), index(5, 40), axes=(1,)), perm=(2, 0, 1, 3)),
    ],
    misses=lambda: [transpose(gather(leaf(20, 30), index(40), axes=(0,)), perm=(1, 0))],
    written=lambda sc: sc.input("x", "float64", shape=(20, 30))[:, sc.input("i", "int64", shape=(40,))] * 2,
)
def transposed_before_lookup(v: Value, context) -> Value | str | None:
    """A look-up reads in any order and writes in its own. Axes that it took whole and that now stand before an index
    are counted by an index of their own."""
    (g,), perm = v.operands, v.attrs["perm"]
    if g.op is not gather or not context.single_use(g):
        return None
    (x, *indices), axes, depth = g.operands, g.attrs["axes"], g.operands[1].ndim
    whole = [a for a in range(x.ndim) if a not in axes]
    kept = 0  # the last axes, which are read whole as before
    while kept < len(whole) and perm[v.ndim - 1 - kept] == v.ndim - 1 - kept:
        kept += 1
    lead = v.ndim - kept
    shape, order = v.shape[:lead], inverse_permutation(perm)
    found = {a: _placed(i, order[:depth], shape) for a, i in zip(axes, indices, strict=True)}
    places = {a: i.attrs["axes"] if i.op is broadcast else (0,) for a, i in found.items()}
    for k, a in enumerate(whole[: len(whole) - kept]):
        places[a] = (order[depth + k],)
        found[a] = iota(shape=shape, axis=order[depth + k], dtype=indices[0].dtype)
    inner = sorted(found)
    if [places[a] for a in inner] != sorted(places.values()):
        return "it would read down columns"
    return gather(x, *[found[a] for a in inner], axes=tuple(inner))


def _placed(i: Value, places: Sequence[int], shape: Sequence[Size]) -> Value:
    """``i`` with its axes at these places of a shape, repeated over the others."""
    if i.op is broadcast:
        return _placed(i.operands[0], [places[a] for a in i.attrs["axes"]], shape)
    part = in_order(i, sorted(range(i.ndim), key=places.__getitem__))
    return broadcast(part, axes=tuple(sorted(places)), shape=tuple(shape)) if len(places) < len(shape) else part


@rewrite(
    "reshape",
    exact=True,
    equation="reshape(f(x, y)) -> f(reshape(x), reshape(y)) where axes of size 1 come and go; so for gather(x, i) of x",
    examples=lambda: [
        reshape(lookup("exp")(leaf(20, 30)), shape=(20, 1, 30)),
        reshape(gather(leaf(1, 9), index(30), axes=(1,)), shape=(30,)),
    ],
    written=lambda sc: example(
        lambda x, y: sc.exp(x)[:, None] * y,
        [sc.input("x", "float64", shape=(20,)), sc.input("y", "float64", shape=(20, 1))],
    ),
)
def reshaped_before_work(v: Value, context) -> Value | None:
    """The kernel that reads it does the work as well."""
    (x,) = v.operands
    if x.op is gather and context.single_use(x) and v.shape == x.operands[1].shape and len(x.attrs["axes"]) == 1:
        source, size = x.operands[0], x.operands[0].shape[x.attrs["axes"][0]]
        return gather(reshape(source, shape=(size,)), x.operands[1], axes=(0,)) if source.ndim > 1 else None
    if not works_once(x, context):
        return None
    units = unit_axes(v)
    if units is None or v.shape == x.shape:
        return None
    return make(x.op, [_reshaped(o, v, units) for o in x.operands], x.attrs)


def _reshaped(x: Value, v: Value, units: dict[int, int]) -> Value:
    """``x`` in the shape of ``v``; what is repeated stays repeated."""
    if splat_of(x) is not None:
        number = x.operands[0] if x.operands else x
        return broadcast(number, axes=(), shape=v.shape) if v.shape else number
    if x.op is broadcast:
        inner = x.operands[0]
        axes = tuple(units[a] for a in x.attrs["axes"] if a in units)
        part = in_shape(inner, [n for n in inner.shape if n != 1])
        return broadcast(part, axes=axes, shape=v.shape) if part.shape != v.shape else part
    if x.op is reshape:
        return in_shape(x.operands[0], v.shape)
    return reshape(x, shape=v.shape)


@rewrite(
    "ensure_shape",
    exact=True,
    equation="ensure_shape(f(x, y)) -> f(ensure_shape(x), ensure_shape(y)); so for gather(x, i) of i",
    examples=lambda: [ensure_shape(  # of sizes that are equal, in a form that tells them apart
        lookup("exp")(slice_(leaf(size_name("n")), start=(0,), size=(minimum(size_name("n"), 9),), step=(1,))),
        shape=(minimum(size_name("n") + 1, 10) - 1,))],
    misses=lambda: [ensure_shape(reshape(leaf(), shape=(1,)), shape=(minimum(size_name("n"), 1),))],
    written=lambda sc: example(
        lambda x: sum(x[k : k + 32] * float(k + 1) for k in range(3)), [sc.input("x", "float64", shape=("n",))]
    ),
)
def ensured_before_work(v: Value, context) -> Value | None:
    """Work over sizes that are told apart and are equal is work over one space: of one kernel."""
    (x,) = v.operands
    if x.op is reshape and (units := unit_axes(x)) is not None:
        inner = x.operands[0]
        shape = tuple(v.shape[units[a]] if a in units else 1 for a in range(inner.ndim))
        if any(v.shape[a] != 1 for a in range(x.ndim) if a not in units.values()):
            return None  # the operand has no axis that could have this size
        return reshape(ensured(inner, shape), shape=v.shape)
    if x.op is gather and context.single_use(x):
        depth = x.operands[1].ndim
        return gather(x.operands[0], *[ensured(i, v.shape[:depth]) for i in x.operands[1:]], axes=x.attrs["axes"]) if (
            v.shape[depth:] == x.shape[depth:]) else None
    if not works_once(x, context):
        return None
    return make(x.op, [_ensured(o, v.shape) for o in x.operands], x.attrs)


def _ensured(x: Value, shape: tuple[Size, ...]) -> Value:
    """``x`` with these sizes; what is repeated is repeated as often as they say."""
    if splat_of(x) is not None:
        return broadcast(x.operands[0] if x.operands else x, axes=(), shape=shape)
    if x.op is broadcast:
        axes = x.attrs["axes"]
        return broadcast(ensured(x.operands[0], [shape[a] for a in axes]), axes=axes, shape=shape)
    return ensured(x.operands[0] if x.op is ensure_shape else x, shape)
