"""Factorizations that serve twice, and cheaper ones for matrices of which something is known.

Solves, inverses and determinants share the factors of a matrix without rules: they are made of `lu_factor` of it.
"""

from __future__ import annotations

from symc.ir.ops.arithmetic import abs_
from symc.ir.ops.assume import promised
from symc.ir.ops.cast import cast
from symc.ir.ops.matrix import diagonal_matrix, product
from symc.ir.ops.shape import slice_
from symc.ir.ops.sort import sort
from symc.ir.ops.spectral import eig, eigh, eigvals, eigvalsh, svd, svdvals
from symc.ir.value import Value
from symc.opt.pattern import leaves
from symc.opt.rule import rewrite
from symc.opt.rules.structure import line_of


def _square(*names: str) -> Value:
    x = leaves(1, {}, (3, 3))[0]
    return promised(x, *names) if names else x


@rewrite(
    "eigvalsh",
    kinds="fc",
    equation="eigvalsh(A) -> eigh(A)[0] where eigh(A) is computed anyway",
    examples=lambda: [(lambda a: product(eigh(a, lower=True)[1], diagonal_matrix(eigvalsh(a, lower=True))))(_square())],
    misses=lambda: [eigvalsh(_square(), lower=True)],
)
def eigenvalues_are_there(v: Value, context) -> Value | None:
    """One factorization for two."""
    whole = eigh(v.operands[0], **v.attrs)
    return whole[0] if context.present(whole) else None


@rewrite(
    "svdvals",
    kinds="fc",
    equation="svdvals(A) -> svd(A)[1] where svd(A) is computed anyway",
    examples=lambda: [(lambda a: product(svd(a, full=False)[0], diagonal_matrix(svdvals(a))))(_square())],
    misses=lambda: [svdvals(_square())],
)
def singular_values_are_there(v: Value, context) -> Value | None:
    """One factorization for two."""
    for full in (False, True):
        whole = svd(v.operands[0], full=full)
        if context.present(whole):
            return whole[1]
    return None


@rewrite(
    "eigvals",
    kinds="fc",
    equation="eigvals(A) -> eig(A)[0] where eig(A) is computed anyway",
    examples=lambda: [(lambda a: product(eig(a)[1], diagonal_matrix(eigvals(a))))(_square())],
    misses=lambda: [eigvals(_square())],
)
def all_eigenvalues_are_there(v: Value, context) -> Value | None:
    """One factorization for two."""
    whole = eig(v.operands[0])
    return whole[0] if context.present(whole) else None


@rewrite(
    "get",
    kinds="fc",
    needs=["eig"],
    equation="eig(A) -> eigh(A) for A hermitian",
    examples=lambda: [eig(_square("symmetric"))[0], eig(_square("symmetric"))[1]],
    misses=lambda: [eig(_square())[0]],
)
def eig_of_hermitian(v: Value, context) -> Value | None:
    """Faster and more accurate; and the eigenvectors are orthogonal, also of equal eigenvalues."""
    e = v.operands[0]
    if e.op is not eig or not context.facts(e.operands[0]).has("hermitian"):
        return None
    return cast(eigh(e.operands[0], lower=True)[v.attrs["index"]], dtype=v.dtype)


@rewrite(
    "eigvals",
    kinds="fc",
    equation="eigvals(A) -> eigvalsh(A) for A hermitian",
    examples=lambda: [eigvals(_square("symmetric"))],
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
