"""Composed matrices: what is asked of a block diagonal matrix, or of a Kronecker product, is asked of its parts.

Blocks are found as rows of padded matrices, a Kronecker product as the product of two repeated matrices: what the front
end makes of ``block_diag`` and ``kron``. The whole matrix is then not made at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.dim import Size
from symc.ir.ops.assume import promised
from symc.ir.ops.determinant import det, slogdet
from symc.ir.ops.factor import cholesky
from symc.ir.ops.index import gather
from symc.ir.ops.leaf import iota, scalar
from symc.ir.ops.linalg import dot
from symc.ir.ops.matrix import product
from symc.ir.ops.shape import broadcast, concat, pad, reshape, slice_along, transpose
from symc.ir.ops.solve import inv, solve
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaf
from symc.opt.engine.terms import is_number, size_like
from symc.opt.facts.forms import Steps, steps_of
from symc.opt.rules.inverses import determinant, determinant_of

# --- the two forms ----------------------------------------------------------------------------------------------------


def block_diagonal(parts: Sequence[Value]) -> Value:
    """Matrices along the diagonal of a matrix of zeros."""
    width: Size = sum((p.shape[1] for p in parts[1:]), parts[0].shape[1])
    left: Size = 0
    rows = []
    for p in parts:
        high = (0, width - left - p.shape[1])
        rows.append(pad(p, scalar(0, p.dtype), low=(0, left), high=high, interior=(0, 0)))
        left = left + p.shape[1]
    return concat(*rows, axis=0)


def blocks_of(v: Value) -> list[Value] | None:
    """The blocks of a block diagonal matrix."""
    if v.op is not concat or v.attrs["axis"] != 0 or v.ndim != 2 or len(v.operands) < 2:
        return None
    left: Size = 0
    parts: list[Value] = []
    for row in v.operands:
        if row.op is not pad or not is_number(row.operands[1], 0) or any(row.attrs["interior"]):
            return None
        part = row.operands[0]
        if row.attrs["low"] != (0, left) or row.attrs["high"][0] != 0:
            return None
        left = left + part.shape[1]
        parts.append(part)
    return parts if left == v.shape[1] else None


def squares_of(v: Value) -> list[Value] | None:
    """The blocks, if every one is square."""
    parts = blocks_of(v)
    return parts if parts and all(p.shape[0] == p.shape[1] for p in parts) else None


def kronecker(a: Value, b: Value) -> Value:
    """The Kronecker product of two matrices."""
    (m, n), (p, q) = a.shape, b.shape
    shape = (m, p, n, q)
    both = broadcast(a, axes=(0, 2), shape=shape) * broadcast(b, axes=(1, 3), shape=shape)
    return reshape(both, shape=(m * p, n * q))


def factors_of_kronecker(v: Value) -> tuple[Value, Value] | None:
    """The factors of a Kronecker product."""
    if v.op is not reshape or v.ndim != 2 or v.operands[0].op.name != "mul" or v.operands[0].ndim != 4:
        return None
    m, p, n, q = v.operands[0].shape
    found = {o.attrs["axes"]: o.operands[0] for o in v.operands[0].operands if o.op is broadcast}
    if v.shape != (m * p, n * q) or set(found) != {(0, 2), (1, 3)}:
        return None
    return found[0, 2], found[1, 3]


def squares_of_kronecker(v: Value) -> tuple[Value, Value] | None:
    """The factors, if both are square."""
    found = factors_of_kronecker(v)
    return found if found and all(x.shape[0] == x.shape[1] for x in found) else None


def _split(x: Value, sizes: Sequence[Size], axis: int) -> list[Value]:
    at: Size = 0
    out = []
    for n in sizes:
        out.append(slice_along(x, axis, at, n))
        at = at + n
    return out


# --- products ---------------------------------------------------------------------------------------------------------


@rewrite(
    "dot",
    kinds="fc",
    weight=3,
    equation="block_diag(A, B) @ x -> concat(A @ x[:n], B @ x[n:]); x @ block_diag(A, B) likewise",
    examples=lambda: [
        product(block_diagonal([leaf(20, 30), leaf(40, 10)]), leaf(40, 50)),
        product(leaf(50, 60), block_diagonal([leaf(20, 30), leaf(40, 10)])),
        dot(block_diagonal([leaf(20, 30), leaf(40, 10)]), leaf(40), contract=((1,), (0,)), batch=((), ())),
    ],
    written=lambda sc: (
        sc.linalg.block_diag(*[sc.input(n, "float64", shape=(40, 40)) for n in "ab"])
        @ sc.input("x", "float64", shape=(80, 20))
    ),
)
def product_with_blocks(v: Value) -> Value | None:
    """The zeros beside the blocks are not multiplied."""
    if v.attrs["batch"] != ((), ()) or any(len(c) != 1 for c in v.attrs["contract"]):
        return None
    for k in (0, 1):
        parts = blocks_of(v.operands[k])
        if parts is None:
            continue
        (along,), (axis,) = v.attrs["contract"][k], v.attrs["contract"][1 - k]
        pieces = _split(v.operands[1 - k], [p.shape[along] for p in parts], axis)
        pairs = [(p, x) if k == 0 else (x, p) for p, x in zip(parts, pieces, strict=True)]
        return concat(*[dot(a, b, **v.attrs) for a, b in pairs], axis=0 if k == 0 else v.ndim - 1)
    return None


@rewrite(
    "dot",
    kinds="fc",
    weight=3,
    equation="kron(A, B) @ x -> A @ X @ B.T, X the rows of x as a matrix",
    examples=lambda: [
        product(kronecker(leaf(20, 30), leaf(4, 5)), leaf(150, 6)),
        dot(kronecker(leaf(20, 30), leaf(4, 5)), leaf(150), contract=((1,), (0,)), batch=((), ())),
    ],
    written=lambda sc: (
        sc.kron(*[sc.input(n, "float64", shape=(9, 9)) for n in "ab"]) @ sc.input("x", "float64", shape=(81, 20))
    ),
)
def product_with_kronecker(v: Value) -> Value | None:
    """Two small products for one with all pairs of elements, which need not be made."""
    a, x = v.operands
    found = factors_of_kronecker(a)
    if found is None or v.attrs["batch"] != ((), ()) or v.attrs["contract"] != ((1,), (0,)):
        return None
    left, right = found
    rest = x.shape[1:]
    cube = reshape(x, shape=(left.shape[1], right.shape[1], *rest))
    first = dot(left, cube, contract=((1,), (0,)), batch=((), ()))  # (m, q, ...)
    both = dot(right, first, contract=((1,), (1,)), batch=((), ()))  # (p, m, ...)
    return reshape(transpose(both, perm=(1, 0, *range(2, both.ndim))), shape=v.shape)


# --- equations --------------------------------------------------------------------------------------------------------


@rewrite(
    "solve",
    kinds="fc",
    weight=2,
    equation="solve(block_diag(A, B), b) -> concat(solve(A, b[:n]), solve(B, b[n:]))",
    examples=lambda: [solve(block_diagonal([leaf(2, 2), leaf(3, 3)]), leaf(5, 2))],
)
def solve_of_blocks(v: Value) -> Value | None:
    """Every block is an equation of its own."""
    parts = squares_of(v.operands[0])
    if parts is None:
        return None
    pieces = _split(v.operands[1], [p.shape[0] for p in parts], 0)
    return concat(*[solve(a, b) for a, b in zip(parts, pieces, strict=True)], axis=0)


@rewrite(
    "solve",
    kinds="fc",
    weight=2,
    equation="solve(kron(A, B), b) -> solve(A, solve(B, b))",
    examples=lambda: [solve(kronecker(leaf(2, 2), leaf(3, 3)), leaf(6, 4))],
)
def solve_of_kronecker(v: Value) -> Value | None:
    """Two small equations for one large one."""
    found = squares_of_kronecker(v.operands[0])
    if found is None:
        return None
    a, b = found
    (m, _), (p, _), k = a.shape, b.shape, v.shape[1]
    first = solve(a, reshape(v.operands[1], shape=(m, p * k)))
    turned = transpose(reshape(first, shape=(m, p, k)), perm=(1, 0, 2))
    second = solve(b, reshape(turned, shape=(p, m * k)))
    return reshape(transpose(reshape(second, shape=(p, m, k)), perm=(1, 0, 2)), shape=v.shape)


@rewrite(
    "inv",
    kinds="fc",
    weight=2,
    equation="inv(block_diag(A, B)) -> block_diag(inv(A), inv(B)); inv(kron(A, B)) -> kron(inv(A), inv(B))",
    examples=lambda: [
        inv(block_diagonal([leaf(2, 2), leaf(3, 3)])),
        inv(kronecker(leaf(2, 2), leaf(3, 3))),
    ],
)
def inverse_of_composed(v: Value) -> Value | None:
    """The parts are inverted, the zeros and the products of all pairs are not."""
    parts = squares_of(v.operands[0])
    if parts is not None:
        return block_diagonal([inv(p) for p in parts])
    found = squares_of_kronecker(v.operands[0])
    return kronecker(*map(inv, found)) if found else None


@rewrite(
    "cholesky",
    kinds="fc",
    weight=2,
    equation="cholesky(block_diag(A, B)) -> block_diag(cholesky(A), cholesky(B))",
    examples=lambda: [cholesky(block_diagonal([product(x, x, right="t") for x in (leaf(2, 2), leaf(3, 3))]))],
)
def cholesky_of_blocks(v: Value) -> Value | None:
    """Every block has its factor. (Of a Kronecker product both factors may be negative, and have none.)"""
    parts = squares_of(v.operands[0])
    return None if parts is None else block_diagonal([cholesky(p) for p in parts])


# --- determinants and diagonals ---------------------------------------------------------------------------------------


@rewrite(
    "det",
    "get",
    kinds="fc",
    weight=2,
    equation="det(block_diag(A, B)) -> det(A) * det(B); det(kron(A, B)) -> det(A)**m * det(B)**n; so for slogdet",
    examples=lambda: [
        f(m)
        for m in (block_diagonal([leaf(2, 2), leaf(3, 3)]), kronecker(leaf(2, 2), leaf(3, 3)))
        for f in (det, lambda m: slogdet(m)[0], lambda m: slogdet(m)[1])
    ],
)
def determinant_of_composed(v: Value) -> Value | None:
    """The parts are factorized, not the whole."""
    m = determinant_of(v)
    if m is None:
        return None
    parts = squares_of(m)
    if parts is not None:
        return determinant(v, [(p, None) for p in parts])
    found = squares_of_kronecker(m)
    if found is None:
        return None
    return determinant(v, [(x, size_like(y.shape[0], v.type)) for x, y in (found, found[::-1])])


@rewrite(
    "gather",
    exact=True,
    weight=2,
    equation="diag(block_diag(A, B)) -> concat(diag(A), diag(B)); diag(kron(A, B)) -> kron(diag(A), diag(B))",
    examples=lambda: [
        _diagonal(block_diagonal([leaf(2, 2), leaf(3, 3)])),
        _diagonal(kronecker(leaf(2, 2), leaf(3, 3))),
    ],
    written=lambda sc: sc.diag(sc.kron(*[sc.input(n, "float64", shape=(9, 9)) for n in "ab"])),
)
def diagonal_of_composed(v: Value) -> Value | None:
    """Of the parts the diagonals are read, and the rest is not made."""
    m, *indices = v.operands
    whole = m.ndim == 2 and m.shape[0] == m.shape[1] and v.shape == m.shape[:1]
    if not whole or len(indices) != 2 or any(steps_of(i) != Steps(0, 0, 1) for i in indices):
        return None
    parts = squares_of(m)
    if parts is not None:
        return concat(*map(_diagonal, parts), axis=0)
    found = squares_of_kronecker(m)
    if found is None:
        return None
    shape = tuple(x.shape[0] for x in found)
    a, b = (broadcast(_diagonal(x), axes=(k,), shape=shape) for k, x in enumerate(found))
    return reshape(a * b, shape=v.shape)


def _diagonal(m: Value) -> Value:
    i = iota(shape=(m.shape[0],), axis=0, dtype=DTYPES["i64"])
    return gather(m, i, i, axes=(0, 1))


@rewrite(
    "pad",
    exact=True,
    needs=["concat"],
    equation="block_diag(block_diag(A, B), C) -> block_diag(A, B, C)",
    examples=lambda: [block_diagonal([block_diagonal([leaf(2, 2), leaf(3, 3)]), leaf(2, 3)])],
)
def pad_of_blocks(v: Value, context) -> Value | None:
    """Rows of blocks are padded where they are: nested blocks are blocks."""
    m, fill = v.operands
    parts = blocks_of(m)
    if parts is None or not is_number(fill, 0) or v.attrs["low"][0] != 0 or v.attrs["high"][0] != 0:
        return None
    if any(v.attrs["interior"]) or not context.single_use(m):
        return None
    return concat(*[pad(row, fill, **v.attrs) for row in m.operands], axis=0)


@rewrite(
    "transpose",
    exact=True,
    equation="A.T -> A for A symmetric",
    examples=lambda: [transpose(promised(leaf(3, 3), "symmetric"), perm=(1, 0))],
    misses=lambda: [transpose(leaf(3, 3), perm=(1, 0))],
    written=lambda sc: sc.assume(sc.input("x", "float64", shape=(3, 3)), symmetric=True).T,
)
def transpose_of_symmetric(v: Value, context) -> Value | None:
    """It is its own transpose."""
    (x,), n = v.operands, v.ndim
    swapped = (*range(n - 2), n - 1, n - 2)
    if n < 2 or v.attrs["perm"] != swapped or v.type is not x.type:
        return None
    return x if context.facts(x).has("symmetric") else None
