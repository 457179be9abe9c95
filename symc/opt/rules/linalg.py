"""Products of arrays: transposes become part of the product, broadcasts leave it."""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.dim import product
from symc.ir.op import splat
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, transpose
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.empty import factor_of_sum
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import dot_of, example, leaves

Axes = tuple[int, ...]


def _matrices() -> list[Value]:
    return leaves(2, {}, (3, 3))


@rewrite(
    "dot",
    equation="dot(transpose(x), y) -> dot(x, y) over other axes",
    examples=lambda: [
        example(lambda a, b: dot_of(transpose(a, perm=(1, 0)), b), _matrices()),
        example(lambda a, b: dot_of(a, transpose(b, perm=(1, 0))), _matrices()),
    ],
)
def dot_of_transpose(v: Value) -> Value | None:
    """A product reads its operands in any order of axes: nothing is moved."""
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    for k in (0, 1):
        t = v.operands[k]
        if t.op is not transpose:
            continue
        perm = t.attrs["perm"]
        free = [perm[a] for a in free_axes(t, contract[k], batch[k])]
        if free != sorted(free):
            continue
        moved = [tuple(perm[a] for a in axes[k]) for axes in (contract, batch)]
        operands = [t.operands[0] if i == k else o for i, o in enumerate(v.operands)]
        contract = (moved[0], contract[1]) if k == 0 else (contract[0], moved[0])
        batch = (moved[1], batch[1]) if k == 0 else (batch[0], moved[1])
        return dot(*operands, contract=contract, batch=batch)
    return None


@rewrite(
    "transpose",
    equation="transpose(dot(x, y)) -> dot(y, x)",
    examples=lambda: [transpose(example(dot_of, _matrices()), perm=(1, 0))],
)
def transpose_of_dot(v: Value, context) -> Value | None:
    """The transpose of a product is the product the other way round."""
    (p,) = v.operands
    if p.op is not dot or not context.single_use(p):
        return None
    x, y = p.operands
    contract, batch = p.attrs["contract"], p.attrs["batch"]
    n, left, right = len(batch[0]), len(free_axes(x, contract[0], batch[0])), len(free_axes(y, contract[1], batch[1]))
    swapped = (*range(n), *range(n + left, n + left + right), *range(n, n + left))
    if v.attrs["perm"] != swapped or not left or not right:
        return None
    return dot(y, x, contract=contract[::-1], batch=batch[::-1])


@rewrite(
    "dot",
    equation="dot(broadcast(x), y) -> broadcast(dot(x, y)) where free axes are inserted",
    examples=lambda: [
        (lambda a, b: dot_of(broadcast(a, axes=(1,), shape=(3, 3)), b))(leaves(1, {}, (3,))[0], _matrices()[0])
    ],
)
def dot_of_broadcast(v: Value) -> Value | None:
    """Rows that repeat are multiplied once."""
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    for k in (0, 1):
        b = v.operands[k]
        if b.op is not broadcast or not b.operands[0].ndim:
            continue
        placed = b.attrs["axes"]
        free = free_axes(b, contract[k], batch[k])
        inserted = [a for a in free if a not in placed]
        if not inserted or any(a not in placed for a in (*contract[k], *batch[k])):
            continue
        moved = [tuple(placed.index(a) for a in axes[k]) for axes in (contract, batch)]
        operands = [b.operands[0] if i == k else o for i, o in enumerate(v.operands)]
        small = dot(
            *operands,
            contract=(moved[0], contract[1]) if k == 0 else (contract[0], moved[0]),
            batch=(moved[1], batch[1]) if k == 0 else (batch[0], moved[1]),
        )
        first = len(batch[0]) + (0 if k == 0 else len(free_axes(v.operands[0], contract[0], batch[0])))
        dropped = {first + free.index(a) for a in inserted}
        return broadcast(small, axes=tuple(a for a in range(v.ndim) if a not in dropped), shape=v.shape)
    return None


@rewrite(
    "dot",
    needs=["broadcast"],
    weight=2,
    equation="dot(x, broadcast(y)) -> dot(sum(x), y) where contracted axes are inserted",
    examples=lambda: [
        dot_of(leaves(1, {}, (300, 40))[0], splat(2.0, TensorType("f64", (40, 50)))),
        dot_of(broadcast(leaves(1, {}, (30,))[0], axes=(0,), shape=(30, 400)), leaves(1, {}, (400, 50))[0]),
    ],
)
def product_with_repeated(v: Value, context) -> Value | None:
    """Elements multiplied with the same number are added up first. (No numbers add up to 0, also if it is infinite.)"""
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    for k in (1, 0):
        b = v.operands[k]
        if b.op is not broadcast:
            continue
        gone = [n for n, a in enumerate(contract[k]) if a not in b.attrs["axes"]]
        if gone:
            small = [_without(o, [c[n] for n in gone]) for o, c in zip(v.operands, contract, strict=True)]
            count = product(b.shape[contract[k][n]] for n in gone)
            number = factor_of_sum(b.operands[0], count, context.facts)
            parts = [_repeated(number, b, small[k]) if j == k else _summed(o, small[j])
                     for j, o in enumerate(v.operands)]
            left = [[a for n, a in enumerate(c) if n not in gone] for c in contract]
            places = [[tuple(small[j].index(a) for a in axes) for j, axes in enumerate(pair)] for pair in (left, batch)]
            return _product(v, parts, places[0], places[1])
    return None


@rewrite(
    "dot",
    tags=["signed-zero"],
    equation="dot(x, number) -> x * number; with a number for each entry of a batch, too",
    examples=lambda: [
        dot(leaves(1, {}, (3,))[0], leaves(1)[0], contract=((), ()), batch=((), ())),
        dot(leaves(1, {}, (2,))[0], leaves(1, {}, (2, 4))[0], contract=((), ()), batch=((0,), (0,))),
    ],
    misses=lambda: [dot(*leaves(2, {}, (3,)), contract=((), ()), batch=((), ()))],
    arises="the gradient of a product of vectors",
)
def product_with_number(v: Value) -> Value | None:
    """Nothing is added up, and no two axes meet: a kernel computes it."""
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    if contract[0] or not any(o.ndim == len(b) for o, b in zip(v.operands, batch, strict=True)):
        return None
    return _product(v, v.operands, contract, batch)


def _without(x: Value, axes: list[int]) -> list[int]:
    """The axes that stay."""
    return [a for a in range(x.ndim) if a not in axes]


def _repeated(x: Value, b: Value, kept: list[int]) -> Value:
    """``x`` as the broadcast ``b`` of it, over some of the axes of b: all that x has are among them."""
    axes = tuple(kept.index(a) for a in b.attrs["axes"])
    return broadcast(x, axes=axes, shape=tuple(b.shape[a] for a in kept))


def _summed(x: Value, kept: list[int]) -> Value:
    return sum_(x, axes=tuple(a for a in range(x.ndim) if a not in kept))


def _product(v: Value, parts: Sequence[Value], contract: Sequence[Axes], batch: Sequence[Axes]) -> Value:
    """The product, elementwise if nothing is contracted."""
    if contract[0]:
        return dot(*parts, contract=tuple(contract), batch=tuple(batch))
    n, out = len(batch[0]), []
    for k, o in enumerate(parts):
        free = free_axes(o, (), batch[k])
        first = n if k == 0 else v.ndim - len(free)
        moved = transpose(o, perm=(*batch[k], *free))
        out.append(broadcast(moved, axes=(*range(n), *range(first, first + len(free))), shape=v.shape))
    return out[0] * out[1]
