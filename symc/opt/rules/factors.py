"""Cheaper factorizations for matrices of which something is known.

What is factorized twice is not a matter of rules: equal factorizations are one value, solves, inverses and determinants
are made of the same `lu_factor`, and the pass ``share_factors`` looks for the rest.
"""

from __future__ import annotations

from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.assume import promised
from symc.ir.ops.cast import cast
from symc.ir.ops.matrix import diagonal_matrix
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import slice_
from symc.ir.ops.sort import sort
from symc.ir.ops.spectral import eig, eigh, eigvals, eigvalsh, svdvals
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves
from symc.opt.rules.structure import line_of


def _square(*names: str) -> Value:
    x = leaves(1, {}, (3, 3))[0]
    return promised(x, *names) if names else x


@rewrite(
    "get",
    kinds="fc",
    needs=["eig"],
    tags=["unordered"],
    equation="eig(A) -> eigh(A) for A hermitian; its eigenvalues alone -> eigvalsh(A)",
    examples=lambda: [sum_(eig(_square("symmetric"))[0], axes=(0,))],
    misses=lambda: [eig(_square())[0]],
)
def eig_of_hermitian(v: Value, context) -> Value | None:
    """Faster and more accurate; and the eigenvectors are orthogonal, also of equal eigenvalues."""
    e = v.operands[0]
    if e.op is not eig or not context.facts(e.operands[0]).has("hermitian"):
        return None
    (a,) = e.operands
    return cast(eigh(a, lower=True)[1] if v.attrs["index"] else eigvalsh(a, lower=True), dtype=v.dtype)


@rewrite(
    "eigvals",
    kinds="fc",
    tags=["unordered"],
    equation="eigvals(A) -> eigvalsh(A) for A hermitian",
    examples=lambda: [sum_(eigvals(_square("symmetric")), axes=(0,))],
    misses=lambda: [eigvals(_square())],
)
def eigvals_of_hermitian(v: Value, context) -> Value | None:
    """Faster and more accurate, and real."""
    (a,) = v.operands
    return cast(eigvalsh(a, lower=True), dtype=v.dtype) if context.facts(a).has("hermitian") else None


@rewrite(
    "eigvalsh",
    kinds="f",
    equation="eigvalsh(diag(d)) -> sort(d)",
    examples=lambda: [eigvalsh(diagonal_matrix(leaves(1, {}, (3,))[0]), lower=True)],
    written=lambda sc: sc.linalg.eigvalsh(sc.diag(sc.vector("d"))),
    misses=lambda: [eigvalsh(_square("lower"), lower=True)],
)
def eigenvalues_of_diagonal(v: Value, context) -> Value | None:
    """They are there."""
    (a,) = v.operands
    return sort(line_of(a), axis=v.ndim - 1) if context.facts(a).has("diagonal") else None


@rewrite(
    "svdvals",
    kinds="f",
    equation="svdvals(diag(d)) -> abs(d), from the greatest on",
    examples=lambda: [svdvals(diagonal_matrix(leaves(1, {}, (3,))[0]))],
    written=lambda sc: sc.linalg.svd(sc.diag(sc.vector("d")), compute_uv=False),
    misses=lambda: [svdvals(_square("lower"))],
)
def singular_values_of_diagonal(v: Value, context) -> Value | None:
    """They are there."""
    (a,) = v.operands
    if not context.facts(a).has("diagonal"):
        return None
    d = sort(abs_(line_of(a)), axis=v.ndim - 1)
    n, last = v.ndim, v.shape[-1]
    return slice_(d, start=(*(0,) * (n - 1), last - 1), size=v.shape, step=(*(1,) * (n - 1), -1))
