"""Inverses and determinants of any matrix: what is solved for, what is never multiplied out, what never overflows.

What structure is good for is in ``structure``. Gradients are made of inverses, too: of inv(A) it is -A^-T g A^-T, which
ends as two solves with the factors that are there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from symc.ir.attrs import Array
from symc.ir.dim import product as product_of
from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, mul, neg, sign
from symc.ir.ops.compare import lt
from symc.ir.ops.determinant import det, slogdet
from symc.ir.ops.factor import triangular
from symc.ir.ops.leaf import get
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.ops.logic import where
from symc.ir.ops.math import log
from symc.ir.ops.matrix import product, swapped, swapped_of
from symc.ir.ops.shape import broadcast, in_order, in_shape, reshape
from symc.ir.ops.solve import cho_solve, inv, lu_solve, solve, solve_triangular
from symc.ir.text import splat_of
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import dot_of, leaves
from symc.opt.engine.terms import bare
from symc.opt.facts.transfer.products import factors_of

Axes = tuple[int, ...]


def _square(*shape: int) -> Value:
    return leaves(1, {}, shape or (3, 3))[0]


# --- products with inverses -------------------------------------------------------------------------------------------


@rewrite(
    "dot",
    kinds="fc",
    equation="inv(A) @ b -> solve(A, b); b @ inv(A) -> solve(A.T, b.T).T",
    examples=lambda: [
        dot_of(inv(_square()), _square()),
        dot_of(_square(), inv(_square())),
        dot_of(inv(_square()), leaves(1, {}, (3,))[0]),
        dot_of(dot_of(inv(_square()), _square(), 0, 0), inv(_square()), 1, 1),
        product(inv(_square(2, 3, 3)), _square(2, 3, 4), left="t"),
    ],
    misses=lambda: [dot_of(_square(), _square())],
)
def inverse_times(v: Value) -> Value | None:
    """Solving is more accurate than multiplying with an inverse, and costs less.

    If b is not finite, other elements may become nan: a solution is made of differences.
    """
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    for k in (0, 1):
        m, b = bare(v.operands[k]), v.operands[1 - k]
        n = m.ndim - 2
        if m.op is not inv or len(contract[k]) != 1 or batch[k] != tuple(range(n)) or batch[1 - k] != batch[k]:
            continue
        trans = "n" if contract[k][0] == n + 1 else "t"
        return _solved(m.operands[0], b, contract[1 - k][0], batch[1 - k], trans, left=k == 0)
    return None


def _solved(a: Value, b: Value, axis: int, batch: Axes, trans: str, left: bool) -> Value:
    """``op(a)^-1 @ b`` over ``axis`` of b, in the order of axes that the product had."""
    free = free_axes(b, (axis,), batch)
    columns = in_order(b, (*batch, axis, *free))
    wide = [b.shape[i] for i in free]
    lead = [b.shape[i] for i in batch]
    x = with_matrix(a, in_shape(columns, (*lead, b.shape[axis], product_of(wide))), trans)
    x = in_shape(x, (*lead, b.shape[axis], *wide))
    if left or not free:
        return x
    n = len(batch)
    return in_order(x, (*range(n), *range(n + 1, x.ndim), n))


def with_matrix(a: Value, b: Value, trans: str) -> Value:
    """The x of ``op(a) @ x = b``, in a form whose derivative is short (share_factors finds the factors of a)."""
    return solve(a if trans == "n" else swapped(a), b)


@rewrite(
    "solve",
    kinds="fc",
    equation="solve(inv(A), b) -> A @ b",
    examples=lambda: [solve(inv(_square()), _square())],
    misses=lambda: [solve(_square(), _square())],
)
def solve_with_inverse(v: Value) -> Value | None:
    """A product for a solve."""
    a, b = v.operands
    return product(bare(a).operands[0], b) if bare(a).op is inv else None


#: Solutions for right sides.
SOLVES = tuple(op.name for op in (solve, lu_solve, cho_solve, solve_triangular))


def number_and_rest(b: Value) -> tuple[Value, Value] | None:
    """A right side as (c, y): c * y, where the rows of each matrix of c are all the same: a number for every column."""
    if b.op is reshape:
        inner = number_and_rest(b.operands[0]) if b.operands[0].op.name in ("neg", "mul") else None
        number = None if inner is None else splat_of(inner[0])
        return None if inner is None or number is None else (
            splat(Array(number), b.type), reshape(inner[1], shape=b.shape))
    if b.op is neg:
        return splat(-1, b.type), b.operands[0]
    if b.op is mul:
        for k in (1, 0):
            c = b.operands[k]
            if c.op is broadcast and b.ndim - 2 not in c.attrs["axes"]:
                return c, b.operands[1 - k]
    return None


@rewrite(
    *SOLVES,
    kinds="fci",
    equation="solve(A, c * b) -> c * solve(A, b) for a number c, or one for every column; so for every solve",
    examples=lambda: [
        solve(_square(), 2.0 * _square()),
        triangular(_square(), -_square(), lower=True),
        solve(_square(), _square() * broadcast(leaves(1, {}, (3,))[0], axes=(1,), shape=(3, 3))),
    ],
    misses=lambda: [solve(_square(), _square() * _square())],
)
def number_out_of_solve(v: Value) -> Value | None:
    """A right side and its multiple are solved for once; and what comes after may take the number."""
    found = number_and_rest(v.operands[-1])
    if found is None:
        return None
    c, rest = found
    return make(v.op, (*v.operands[:-1], rest), v.attrs) * c


@rewrite(
    *SOLVES,
    kinds="fci",
    needs=["dot"],
    equation="solve(A, outer(x, y)) -> outer(solve(A, x), y); so for every solve",
    examples=lambda: [solve(_square(), dot(*leaves(2, {}, (3,)), contract=((), ()), batch=((), ())))],
    misses=lambda: [solve(_square(), dot_of(_square(3, 5), _square(5, 3)))],
    arises="the gradient of a solve by its matrix",
)
def outer_out_of_solve(v: Value) -> Value | None:
    """One column for many (the gradient of a solve is such a product)."""
    b = bare(v.operands[-1])
    if b.op is not dot or b.attrs["contract"][0] or b.ndim != len(b.attrs["batch"][0]) + 2:
        return None
    (x, y), batch = b.operands, b.attrs["batch"]
    if batch[0] != tuple(range(len(batch[0]))) or x.ndim != len(batch[0]) + 1:
        return None
    column = make(v.op, (*v.operands[:-1], reshape(x, shape=(*x.shape, 1))), v.attrs)
    return dot(reshape(column, shape=x.shape), y, contract=((), ()), batch=batch)


@rewrite(
    *SOLVES,
    kinds="fci",
    needs=["broadcast"],
    equation="solve(A, x[:, None]) -> solve(A, x)[:, None] for many equal columns; so for every solve",
    examples=lambda: [solve(_square(), broadcast(leaves(1, {}, (3,))[0], axes=(0,), shape=(3, 5)))],
    misses=lambda: [solve(_square(), broadcast(leaves(1, {}, (5,))[0], axes=(1,), shape=(3, 5)))],
)
def equal_columns_once(v: Value) -> Value | None:
    """One column for many (the gradient of a sum)."""
    b = v.operands[-1]
    if b.op is not broadcast or b.shape[-1] == 1 or b.attrs["axes"] != tuple(range(b.ndim - 1)):
        return None
    x = b.operands[0]
    column = make(v.op, (*v.operands[:-1], reshape(x, shape=(*x.shape, 1))), v.attrs)
    return broadcast(reshape(column, shape=x.shape), axes=b.attrs["axes"], shape=b.shape)


@rewrite(
    "inv",
    kinds="fc",
    equation="inv(inv(A)) -> A; inv(A.T) -> inv(A).T",
    examples=lambda: [inv(inv(_square())), inv(swapped(_square(2, 3, 3)))],
    misses=lambda: [inv(_square())],
)
def inverse_of_inverse(v: Value) -> Value | None:
    """Two inverses are none; and one factorization serves a matrix and its transpose."""
    (a,) = v.operands
    if bare(a).op is inv:
        return bare(a).operands[0]
    y = swapped_of(bare(a))
    return swapped(inv(y)) if y is not None else None


# --- determinants -----------------------------------------------------------------------------------------------------


def determinant(v: Value, parts: Sequence[tuple[Value, Value | None]], inverse: bool = False) -> Value:
    """``v``, the determinant of a matrix or what `slogdet` gives of it, which is that of the parts multiplied, each to
    a power; or that of the inverse."""
    index = None if v.op is det else v.attrs["index"]
    found = []
    for a, n in parts:
        x = det(a) if index is None else slogdet(a)[index]
        found.append(x if n is None else x * n if index else x**n)
    out = functools.reduce((lambda x, y: x + y) if index else (lambda x, y: x * y), found)
    if not inverse:
        return out
    return -out if index else out if index == 0 and v.dtype.kind != "c" else 1 / out


def determinant_of(v: Value) -> Value | None:
    """The matrix whose determinant, or result of `slogdet`, ``v`` is."""
    of = v.operands[0] if v.op is get else v
    return of.operands[0] if of.op in (det, slogdet) else None


@rewrite(
    "det",
    "get",
    kinds="fc",
    equation="det(A.T) -> det(A); det(inv(A)) -> 1 / det(A); det(A @ B) -> det(A) * det(B) for square A and B; so for "
    "slogdet",
    examples=lambda: [
        det(swapped(_square())),
        det(inv(_square())),
        det(dot_of(_square(), _square())),
        *[slogdet(a)[k] for k in (0, 1) for a in (swapped(_square()), inv(_square()), dot_of(_square(), _square()))],
    ],
    misses=lambda: [det(_square()), *[f(dot_of(_square(3, 2), _square(2, 3))) for f in (det, lambda a: slogdet(a)[1])]],
)
def determinant_of_made(v: Value, context) -> Value | None:
    """One factorization serves a matrix, its transpose and its inverse; a product need not be multiplied out: two
    factorizations cost less than a product and one, and of a product with itself there is only one."""
    a = determinant_of(v)
    if a is None:
        return None
    if bare(a).op is inv:
        return determinant(v, [(bare(a).operands[0], None)], inverse=True)
    y = swapped_of(bare(a))
    if y is not None:
        return determinant(v, [(y, None)])
    found = square_factors(a)
    return None if found is None or not context.single_use(a) else determinant(v, [(x, None) for x in found])


def square_factors(a: Value) -> tuple[Value, Value] | None:
    """The square matrices whose product ``a`` is."""
    found = factors_of(bare(a))
    if found is None:
        return None
    x, tx, y, ty = found
    if x.shape[-1] != x.shape[-2] or y.shape[-1] != y.shape[-2]:
        return None
    return (swapped(x) if tx else x), (swapped(y) if ty else y)


@rewrite(
    "log",
    kinds="f",
    needs=["abs"],
    equation="log(abs(det(A))) -> slogdet(A)[1]",
    examples=lambda: [log(abs_(det(_square()))), log(abs_(det(_square(2, 3, 3))))],
)
def log_of_abs_det(v: Value) -> Value | None:
    """A determinant overflows where its log is ordinary: a density of hundreds of dimensions."""
    x = bare(v.operands[0])
    d = bare(x.operands[0]) if x.op is abs_ else None
    return slogdet(d.operands[0])[1] if d is not None and d.op is det else None


@rewrite(
    "log",
    kinds="f",
    needs=["det"],
    equation="log(det(A)) -> slogdet(A)[1], and nan where the determinant is negative",
    examples=lambda: [log(det(_square()))],
)
def log_of_det(v: Value, context) -> Value | None:
    """A determinant overflows where its log is ordinary."""
    d = v.operands[0]
    if bare(d).op is not det:
        return None
    s = slogdet(bare(d).operands[0])
    if context.facts(d).nonnegative:
        return s[1]
    return where(lt(s[0], 0), splat(np.nan, v.type), s[1])


@rewrite(
    "sign",
    kinds="fc",
    needs=["det"],
    equation="sign(det(A)) -> slogdet(A)[0]",
    examples=lambda: [sign(det(_square()))],
)
def sign_of_det(v: Value) -> Value | None:
    """A determinant overflows, or vanishes, where its sign is plain."""
    d = bare(v.operands[0])
    return slogdet(d.operands[0])[0] if d.op is det else None
