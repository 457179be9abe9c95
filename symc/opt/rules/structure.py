"""Rules that use the structure of a matrix: triangles are solved as they are, definite matrices by Cholesky.

Structure is worked out or promised (``sc.assume(A, pd=True)``). Which triangle of a matrix is read, and so how it
varies, depends on the method: so these rules run after differentiation, never before. A gradient is stated with the LU
factors of the matrix; where its structure is known these are replaced, too, so one factorization serves both.
"""

from __future__ import annotations

from symc.ir.dim import size_name
from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, conjugate, sign
from symc.ir.ops.assume import assume, promised
from symc.ir.ops.determinant import det, slogdet
from symc.ir.ops.factor import cholesky, lu_factor, triangular
from symc.ir.ops.math import exp, log, sqrt
from symc.ir.ops.matrix import adjoint, by_row, diagonal_matrix, diagonal_of, eye, product, swapped, swapped_of
from symc.ir.ops.matrix_functions import expm
from symc.ir.ops.reduce import prod, sum_
from symc.ir.ops.shape import broadcast, in_order, reshape
from symc.ir.ops.solve import cho_solve, factored, inv, solve
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves
from symc.opt.engine.terms import bare
from symc.opt.facts import forms
from symc.opt.facts.analysis import Analysis
from symc.opt.facts.transfer.products import factors_of


def _square(*names: str, shape: tuple = (3, 3)) -> Value:
    x = leaves(1, {}, shape)[0]
    return promised(x, *names) if names else x


def _right() -> Value:
    return leaves(1, {}, (3, 2))[0]


def _positive_line() -> Value:
    return promised(leaves(1, {}, (3,))[0], "positive", "finite")


def line_of(a: Value) -> Value:
    """The diagonal of a matrix: what it was made of, if it was made of that."""
    found = forms.diagonal_of(bare(a))
    return diagonal_of(a) if found is None else found


def definite(a: Value, facts: Analysis) -> bool:
    """True if the matrices are positive definite. Of a matrix that is to be solved for, psd is enough said: if it has a
    solution at all, it is definite. (x @ x.T is psd, but may be singular up to rounding: nobody said that it is not.)
    """
    return facts(a).has("pd") or (a.op is assume and "psd" in a.attrs["structure"])


def solution(a: Value, b: Value, trans: str, facts: Analysis) -> Value | None:
    """The x of ``op(a) @ x = b`` by the structure of ``a``; None if none is known."""
    f = facts(a)
    if a.dtype.kind != "c" and trans == "c":
        trans = "t"
    if f.has("identity"):
        return b
    if a.shape[-1] == 1:
        d = a if a.shape == b.shape else _repeated(a, b)
        return b / (conjugate(d) if trans == "c" else d)
    if f.has("diagonal"):
        d = line_of(a)
        return b / by_row(conjugate(d) if trans == "c" else d, b.shape)
    if f.has("orthogonal"):
        if trans == "n":
            return product(a, b, left="c" if a.dtype.kind == "c" else "t")
        return product(conjugate(a) if trans == "t" and a.dtype.kind == "c" else a, b)
    for side in ("lower", "upper"):
        if f.has(side):
            return triangular(a, b, lower=side == "lower", trans=trans, unit=f.has("unit"))
    if definite(a, facts) and (trans != "t" or a.dtype.kind != "c"):
        return cho_solve(cholesky(a), b)
    return None


def _repeated(a: Value, b: Value) -> Value:
    """The one element of every matrix of ``a``, in the shape of ``b``."""
    once = reshape(a, shape=a.shape[:-2])
    return broadcast(once, axes=tuple(range(once.ndim)), shape=b.shape)


@rewrite(
    "solve",
    kinds="fc",
    equation="solve(A, b) -> solve_triangular(A, b) for a triangle, cho_solve(cholesky(A), b) for pd, A.T @ b for "
    "orthogonal, b / d for diag(d), b for the unit matrix",
    examples=lambda: [
        solve(_square("lower"), _right()),
        solve(_square("upper", "unit"), _right()),
        solve(_square("pd"), _right()),
        solve(_square("psd"), _right()),
        solve(_square("orthogonal"), _right()),
        solve(diagonal_matrix(_positive_line()), _right()),
        solve(eye(_square().type), _right()),
        solve(_square(shape=(2, 1, 1)), leaves(1, {}, (2, 1, 3))[0]),
        solve(_square("psd") + eye(_square().type), _right()),
    ],
    misses=lambda: [
        solve(_square(), _right()),
        solve(_square("symmetric"), _right()),
        solve((lambda x: product(x, x, right="t"))(_square()), _right()),
    ],
)
def structured_solve(v: Value, context) -> Value | str | None:
    """A triangle is n*n steps for n*n*n; Cholesky is half the work of LU, and needs no pivots."""
    a, b = v.operands
    out = solution(a, b, "n", context.facts)
    if out is None and context.facts(a).has("hermitian") and context.present(cholesky(a)):
        return cho_solve(cholesky(a), b)
    return out if out is not None else "nothing that helps is known of the matrix; sc.assume says what it is"


@rewrite(
    "lu_solve",
    kinds="fci",
    needs=["get"],
    equation="lu_solve(lu_factor(A), b) -> what solve(A, b) becomes by the structure of A",
    examples=lambda: [
        factored(_square("pd"), _right(), "t"),
        factored(_square("lower"), _right(), "t"),
        factored(_square("orthogonal"), _right(), "t"),
    ],
    misses=lambda: [factored(_square(), _right(), "t")],
    arises="the gradients of solve and inv are stated with the LU factors of the matrix",
)
def structured_lu_solve(v: Value, context) -> Value | None:
    """The matrix that a gradient is solved with has the structure of the matrix, too."""
    lu, perm, b = v.operands
    f = lu.operands[0] if lu.op.name == "get" and lu.attrs["index"] == 0 else None
    if f is None or f.op is not lu_factor or perm.op.name != "get" or perm.operands[0] is not f:
        return None
    (a,) = f.operands
    out = solution(a, b, v.attrs["trans"], context.facts)
    if out is None and v.dtype.kind == "f" and context.facts(a).has("hermitian") and context.present(cholesky(a)):
        return cho_solve(cholesky(a), b)
    return out


@rewrite(
    "solve_triangular",
    kinds="fc",
    needs=["transpose"],
    equation="solve_triangular(A.T, b, lower) -> solve_triangular(A, b, upper, trans='t')",
    examples=lambda: [triangular(swapped(_square()), _right(), lower=False)],
    misses=lambda: [triangular(_square(), _right(), lower=False)],
)
def triangular_of_transpose(v: Value) -> Value | None:
    """The matrix is read as it lies in memory."""
    a, trans = swapped_of(bare(v.operands[0])), v.attrs["trans"]
    if a is None or (trans == "c" and v.dtype.kind == "c"):
        return None
    return triangular(a, v.operands[1], lower=not v.attrs["lower"], trans="t" if trans == "n" else "n",
                      unit=v.attrs["unit"])


@rewrite(
    "solve_triangular",
    kinds="fc",
    equation="solve_triangular(diag(d), b) -> b / d; b for the unit matrix",
    examples=lambda: [
        triangular(diagonal_matrix(_positive_line()), _right(), lower=True),
        triangular(eye(_square().type), _right(), lower=True),
    ],
    written=lambda sc: sc.linalg.solve_triangular(sc.diag(sc.vector("d")), sc.matrix("b"), lower=True),
    misses=lambda: [triangular(_square(), _right(), lower=True)],
)
def triangular_of_diagonal(v: Value, context) -> Value | None:
    """A division is all there is to do."""
    a, b = v.operands
    if v.attrs["unit"] and context.facts(a).has("diagonal"):
        return b
    return solution(a, b, v.attrs["trans"], context.facts) if context.facts(a).has("diagonal") else None


@rewrite(
    "inv",
    kinds="fc",
    equation="inv(A) -> diag(1 / d) for diag(d), A.T for orthogonal, solve(A, eye) for a triangle or pd",
    examples=lambda: [
        inv(diagonal_matrix(_positive_line())),
        inv(_square("orthogonal")),
        inv(_square("lower")),
        inv(_square("pd")),
        inv(eye(_square(shape=(size_name("n"),) * 2).type)),
    ],
    misses=lambda: [inv(_square()), inv(_square("symmetric"))],
)
def structured_inverse(v: Value, context) -> Value | None:
    """Most of the work of an inverse is done for zeros that are known."""
    (a,) = v.operands
    f = context.facts(a)
    if f.has("identity"):
        return a
    if f.has("diagonal"):
        d = line_of(a)
        return diagonal_matrix(1 / d)
    if f.has("orthogonal"):
        return adjoint(a)
    return solution(a, eye(a.type), "n", context.facts) if a.shape[-1] != 1 else 1 / a


# --- determinants -----------------------------------------------------------------------------------------------------


def _last(d: Value) -> tuple[int]:
    return (d.ndim - 1,)


@rewrite(
    "det",
    kinds="fc",
    equation="det(A) -> prod(diag(A)) for triangles, prod(diag(cholesky(A)))**2 for pd, 1 for a unit diagonal",
    examples=lambda: [
        det(_square("lower")),
        det(_square("upper")),
        det(_square("lower", "unit")),
        det(diagonal_matrix(_positive_line())),
        det(_square("pd")),
    ],
    misses=lambda: [det(_square()), det(_square("symmetric"))],
)
def structured_det(v: Value, context) -> Value | None:
    """A triangle is factorized; of a definite matrix Cholesky serves what is solved with it, too."""
    (a,) = v.operands
    f = context.facts(a)
    if f.has("lower") or f.has("upper"):
        if f.has("unit"):
            return splat(1, v.type)
        d = line_of(a)
        return prod(d, axes=_last(d))
    if f.has("pd"):
        d = diagonal_of(cholesky(a))
        p = prod(d, axes=_last(d))
        return p * conjugate(p)
    return None


@rewrite(
    "get",
    kinds="fc",
    needs=["slogdet"],
    equation="slogdet(A) -> (prod(sign(diag(A))), sum(log(abs(diag(A))))) for triangles, (1, 2 * sum(log(diag("
    "cholesky(A))))) for pd, logabs 0 for orthogonal",
    examples=lambda: [slogdet(_square("lower"))[0], slogdet(_square("upper"))[1], slogdet(_square("pd"))[0],
                      slogdet(_square("pd"))[1], slogdet(_square("orthogonal"))[1]],
    misses=lambda: [slogdet(_square())[1], slogdet(_square("symmetric"))[1]],
)  # fmt: skip
def structured_slogdet(v: Value, context) -> Value | None:
    """A triangle is factorized; of a definite matrix Cholesky serves what is solved with it, too."""
    s, logabs = v.operands[0], v.attrs["index"] == 1
    if s.op is not slogdet:
        return None
    (a,) = s.operands
    f = context.facts(a)
    if f.has("lower") or f.has("upper"):
        d = line_of(a)
        return sum_(log(abs_(d)), axes=_last(d)) if logabs else prod(sign(d), axes=_last(d))
    if f.has("pd"):
        d = diagonal_of(cholesky(a))
        real = abs_(d) if d.dtype.kind == "c" else d
        return 2 * sum_(log(real), axes=_last(d)) if logabs else splat(1, v.type)
    return splat(0, v.type) if f.has("orthogonal") and logabs else None


# --- factors ----------------------------------------------------------------------------------------------------------


@rewrite(
    "cholesky",
    kinds="fc",
    equation="cholesky(L @ L.T) -> L for the L of a cholesky; cholesky(diag(d)) -> diag(sqrt(d)) for d positive",
    examples=lambda: [
        (lambda l: cholesky(product(l, l, right="t")))(cholesky(_square())),
        cholesky(diagonal_matrix(_positive_line())),
        cholesky(eye(_square(shape=(size_name("n"),) * 2).type)),
    ],
    misses=lambda: [cholesky(_square("pd")), cholesky(diagonal_matrix(leaves(1, {}, (3,))[0]))],
)
def cholesky_of_factors(v: Value, context) -> Value | None:
    """The factor is there."""
    (a,) = v.operands
    f = context.facts(a)
    if f.has("identity"):
        return a
    if f.has("diagonal"):
        d = line_of(a)
        return diagonal_matrix(sqrt(d)) if context.facts(d).positive and d.dtype.kind == "f" else None
    found = factors_of(bare(a))
    if found is None or a.dtype.kind == "c":
        return None
    x, tx, y, ty = found
    return x if x is y and x.op is cholesky and not tx and ty else None


@rewrite(
    "dot",
    kinds="f",
    needs=["cholesky"],
    equation="L @ L.T -> A for L = cholesky(A), A symmetric",
    examples=lambda: [(lambda l: product(l, l, right="t"))(cholesky(_square("pd")))],
    misses=lambda: [(lambda l: product(l, l, right="t"))(cholesky(_square()))],
)
def factors_multiplied(v: Value, context) -> Value | None:
    """The matrix that was taken apart is there (of a matrix that is not symmetric, only one triangle would be)."""
    found = factors_of(v)
    if found is None or found[0] is not found[2] or found[0].op is not cholesky:
        return None
    if (found[1], found[3]) != (False, True):
        return None
    a = found[0].operands[0]
    return a if context.facts(a).has("symmetric") else None


@rewrite(
    "dot",
    kinds="f",
    equation="Q @ Q.T -> eye for Q orthogonal and finite",
    examples=lambda: [
        (lambda q: product(q, q, right="t"))(_square("orthogonal")),
        (lambda q: product(q, q, left="t"))(_square("orthogonal", shape=(2, 3, 3))),
    ],
    misses=lambda: [(lambda q: product(q, q, right="t"))(_square())],
)
def orthogonal_times_transpose(v: Value, context) -> Value | None:
    """Nothing has to be multiplied, and nothing is rounded."""
    found = factors_of(v)
    if found is None or found[0] is not found[2] or found[1] == found[3]:
        return None
    f = context.facts(found[0])
    return eye(v.type) if f.has("orthogonal") and f.finite else None


@rewrite(
    "expm",
    kinds="f",
    equation="expm(diag(d)) -> diag(exp(d))",
    examples=lambda: [expm(diagonal_matrix(leaves(1, {}, (3,))[0]))],
    written=lambda sc: sc.linalg.expm(sc.diag(sc.vector("d"))),
    misses=lambda: [expm(_square("symmetric"))],
)
def expm_of_diagonal(v: Value, context) -> Value | None:
    """Every axis is on its own."""
    (a,) = v.operands
    return diagonal_matrix(exp(line_of(a))) if context.facts(a).has("diagonal") else None


# --- products ---------------------------------------------------------------------------------------------------------


@rewrite(
    "dot",
    kinds="fc",
    weight=3,
    equation="diag(d) @ x -> d[:, None] * x; x @ diag(d) -> x * d; eye @ x -> x",
    examples=lambda: [
        product(diagonal_matrix(leaves(1, {}, (3,))[0]), _right()),
        product(_right(), diagonal_matrix(leaves(1, {}, (2,))[0])),
        product(eye(_square(shape=(size_name("n"),) * 2).type), _square(shape=(size_name("n"), 2))),
        product(_square(shape=(4, 20, 30)), diagonal_matrix(leaves(1, {}, (4, 30))[0])),
    ],
    misses=lambda: [product(_square(), _right())],
    written=lambda sc: [
        sc.diag(sc.input("d", shape=(70,))) @ sc.input("x", shape=(70, 20)),
        sc.input("x", shape=(20, 70)) @ sc.diag(sc.input("d", shape=(70,))),
        sc.eye(70) @ sc.input("x", shape=(70, 20)),
        sc.input("x", shape=(20, 70)) @ (sc.eye(70) * sc.input("d", shape=(70,))),
    ],
)
def product_with_diagonal(v: Value) -> Value | None:
    """Zeros are not multiplied, nor is what an infinity beside them would make: nan."""
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    for k in (0, 1):
        d, x = bare(v.operands[k]), v.operands[1 - k]
        n, c = d.ndim - 2, contract[1 - k]
        if len(c) != 1 or batch[k] != tuple(range(n)) or batch[1 - k] != batch[k] or contract[k][0] < n:
            continue
        line = None if forms.is_eye(d) and d.shape[-1] == d.shape[-2] else forms.diagonal_of(d)
        if line is None and not (forms.is_eye(d) and d.shape[-1] == d.shape[-2]):
            continue
        out = x if line is None else x * broadcast(line, axes=(*batch[k], c[0]), shape=x.shape)
        rest = [a for a in range(n, x.ndim) if a != c[0]]
        return in_order(out, (*range(n), c[0], *rest) if k == 0 else (*range(n), *rest, c[0]))
    return None
