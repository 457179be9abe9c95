"""Structure of matrices: what users write ends in the cheapest factorization, forward and in gradients."""

from collections import Counter

import numpy as np
import pytest

import symc as sc
from symc.ir.traverse import every_value
from symc.opt.engine.pipelines import UNFUSED

N = 48
RNG = np.random.default_rng(0)
DATA = {
    "A": RNG.normal(size=(N, N)) + 9 * np.eye(N),
    "B": RNG.normal(size=(N, 2)),
    "C": RNG.normal(size=(N, N)) + 2 * np.eye(N),
    "b": RNG.normal(size=N),
    "d": RNG.uniform(1, 2, N),
    "X": RNG.normal(size=(70, N)),
    "y": RNG.normal(size=70),
    "S": (lambda x: x @ x.T + np.eye(N))(RNG.normal(size=(N, N))),
    "Q": np.linalg.qr(RNG.normal(size=(N, N)))[0],
    "L": np.tril(RNG.normal(size=(N, N))) / 9 + 3 * np.eye(N),
    "T": np.stack([(lambda x: x @ x.T + np.eye(3))(RNG.normal(size=(3, 3))) for _ in range(2)]),
    "t": RNG.normal(size=(2, 3)),
}
LIBRARY = ("lu_factor", "lu_solve", "cholesky", "solve_triangular", "qr", "eigh", "eigvalsh", "eig", "eigvals", "svd",
           "svdvals", "dot", "expm", "inv", "solve", "det", "slogdet")  # fmt: skip


def library(f):
    """How often each routine is called at the end."""
    names = [v.op.name for v in every_value(f._compilation.final.body)]
    return Counter(n for n in names if n in LIBRARY)


def run(make):
    """The numbers of a program with and without optimization, and the routines at the end."""
    variables = {name: sc.input(name, "float64", shape=a.shape) for name, a in DATA.items()}
    given = dict(variables)
    given["S"], given["T"] = sc.assume(given["S"], pd=True), sc.assume(given["T"], positive_definite=True)
    given["Q"] = sc.assume(given["Q"], orthogonal=True)
    names = [n for n in make.__code__.co_varnames[: make.__code__.co_argcount]]
    out = make(*[given[n] for n in names])
    inputs = [variables[n] for n in names]
    arrays = [DATA[n] for n in names]
    f = sc.compile(out, inputs, mode="reference", pipeline=UNFUSED)
    plain = sc.compile(out, inputs, mode="reference", pipeline="")
    return f(*arrays), plain(*arrays), library(f)


la = sc.linalg
CASES = {
    # products with inverses
    "inv(A) @ b": (lambda A, b: la.inv(A) @ b, dict(lu_factor=1, lu_solve=1)),
    "inv(A) @ B": (lambda A, B: la.inv(A) @ B, dict(lu_factor=1, lu_solve=1)),
    "b @ inv(A)": (lambda A, b: b @ la.inv(A), dict(lu_factor=1, lu_solve=1)),
    "B.T @ inv(A)": (lambda A, B: B.T @ la.inv(A), dict(lu_factor=1, lu_solve=1)),
    "inv(A).T @ b": (lambda A, b: la.inv(A).T @ b, dict(lu_factor=1, lu_solve=1)),
    "batched inv @": (lambda T, t: (la.inv(T) @ t[:, :, None])[..., 0], dict(cholesky=1, solve_triangular=2)),
    "inv(inv(A))": (lambda A: la.inv(la.inv(A)), {}),
    "inv(A.T).T": (lambda A: la.inv(A.T).T, dict(lu_factor=1, lu_solve=1)),
    "solve(inv(A), b)": (lambda A, b: la.solve(la.inv(A), b), dict(dot=1)),
    "solve(A.T, b), solve(A, b)": (lambda A, b: (la.solve(A.T, b), la.solve(A, b)), dict(lu_factor=1, lu_solve=2)),
    "solve, det, inv, slogdet": (lambda A, b: (la.solve(A, b), la.det(A), la.inv(A), la.slogdet(A)[1]),
                                 dict(lu_factor=1, lu_solve=2)),
    "solve(A, 2 * b), solve(A, b)": (lambda A, b: (la.solve(A, 2 * b), la.solve(A, b)), dict(lu_factor=1, lu_solve=1)),
    # by structure
    "solve(S, b)": (lambda S, b: la.solve(S, b), dict(cholesky=1, solve_triangular=2)),
    "inv(S) @ b": (lambda S, b: la.inv(S) @ b, dict(cholesky=1, solve_triangular=2)),
    "inv(S)": (lambda S: la.inv(S), dict(cholesky=1, solve_triangular=2)),
    "solve(S, b), det(S)": (lambda S, b: (la.solve(S, b), la.det(S)), dict(cholesky=1, solve_triangular=2)),
    "ridge": (lambda X, y: la.solve(X.T @ X + 0.1 * sc.eye(N), X.T @ y), dict(cholesky=1, solve_triangular=2, dot=2)),
    "solve(tril(A), b)": (lambda A, b: la.solve(sc.tril(A), b), dict(solve_triangular=1)),
    "solve(triu(A).T, b)": (lambda A, b: la.solve(sc.triu(A).T, b), dict(solve_triangular=1)),
    "inv(tril(A))": (lambda A: la.inv(sc.tril(A)), dict(solve_triangular=1)),
    "solve(diag(d), b)": (lambda d, b: la.solve(sc.diag(d), b), {}),
    "inv(diag(d)) @ b": (lambda d, b: la.inv(sc.diag(d)) @ b, {}),
    "solve(eye * d, b)": (lambda d, b: la.solve(sc.eye(N) * d, b), {}),
    "solve(eye, b)": (lambda b: la.solve(sc.eye(N), b), {}),
    "solve(Q, b)": (lambda Q, b: la.solve(Q, b), dict(dot=1)),
    "inv(Q)": (lambda Q: la.inv(Q), {}),
    "Q.T @ Q": (lambda Q: Q.T @ Q, {}),
    "Q.T @ Q @ b": (lambda Q, b: Q.T @ Q @ b, {}),
    "solve of a product of triangles": (lambda A, C, b: la.solve(sc.tril(A) @ sc.tril(C), b),
                                        dict(dot=1, solve_triangular=1)),
    "solve_triangular(L.T, b)": (lambda L, b: la.solve_triangular(L.T, b, lower=False), dict(solve_triangular=1)),
    "solve(S) beside cholesky(S)": (lambda A, b: (lambda s: (la.cholesky(s), la.solve(s, b)))(A + A.T + 60 * sc.eye(N)),
                                    dict(cholesky=1, solve_triangular=2)),
    # determinants
    "det(tril(A))": (lambda A: la.det(sc.tril(A)), {}),
    "det(diag(d))": (lambda d: la.det(sc.diag(d)), {}),
    "det(A.T), det(A)": (lambda A: (la.det(A.T), la.det(A)), dict(lu_factor=1)),
    "det(inv(A))": (lambda A: la.det(la.inv(A)), dict(lu_factor=1)),
    "det(A @ A)": (lambda A: la.det(A @ A), dict(lu_factor=1)),
    "det(S)": (lambda S: la.det(S), dict(cholesky=1)),
    "log(det(S))": (lambda S: sc.log(la.det(S)), dict(cholesky=1)),
    "slogdet(S)": (lambda S: la.slogdet(S), dict(cholesky=1)),
    "log(abs(det(A)))": (lambda A: sc.log(abs(la.det(A))), dict(lu_factor=1)),
    "log(det(A))": (lambda A: sc.log(la.det(A)), dict(lu_factor=1)),
    "sign(det(A))": (lambda A: sc.sign(la.det(A)), dict(lu_factor=1)),
    "slogdet(tril(A))": (lambda A: la.slogdet(sc.tril(A)), {}),
    "slogdet(inv(A))": (lambda A: la.slogdet(la.inv(A)), dict(lu_factor=1)),
    "slogdet(A @ C)": (lambda A, C: la.slogdet(A @ C)[1], dict(lu_factor=2)),
    # factors
    "cholesky(L @ L.T)": (lambda S: (lambda l: la.cholesky(l @ l.T))(la.cholesky(S)), dict(cholesky=1)),
    "cholesky(S) @ cholesky(S).T": (lambda S: (lambda l: l @ l.T)(la.cholesky(S)), {}),
    "cholesky(diag(exp(d)))": (lambda d: la.cholesky(sc.diag(1 + sc.exp(d))), {}),
    "eigvals(A + A.T)": (lambda A: sc.sort(sc.real(la.eigvals(A + A.T))), dict(eigvalsh=1)),
    "eig(A @ A.T)": (lambda A: sc.sort(sc.real(la.eig(A @ A.T)[0])), dict(eigvalsh=1, dot=1)),
    "svd, svdvals": (lambda X: (la.svdvals(X), la.svd(X, full_matrices=False)[2] ** 2), dict(svd=1)),
    "eigvalsh(diag(d))": (lambda d: la.eigvalsh(sc.diag(d)), {}),
    "svdvals(diag(d))": (lambda d: la.svdvals(sc.diag(-d)), {}),
    "expm(diag(d))": (lambda d: la.expm(sc.diag(d)), {}),
    "diag(d) @ A": (lambda d, A: sc.diag(d) @ A, {}),
    "A @ diag(d)": (lambda d, A: A @ sc.diag(d), {}),
    "eye @ A": (lambda A: sc.eye(N) @ A, {}),
    # densities, as users write them
    "a normal density": (lambda S, b: -0.5 * b @ la.inv(S) @ b - 0.5 * sc.log(la.det(S)),
                         dict(cholesky=1, solve_triangular=2)),
    # gradients
    "grad of inv": (lambda A, B: sc.grad(sc.sum(la.inv(A) @ B), A), dict(lu_factor=1, lu_solve=2, dot=1)),
    "grad of solve": (lambda A, b: sc.grad(sc.sum(la.solve(A, b)), A), dict(lu_factor=1, lu_solve=2)),
    "grad of a quadratic form": (lambda A, b: sc.grad(b @ la.inv(A) @ b, A), dict(lu_factor=1, lu_solve=2)),
    "grad of log det": (lambda A: sc.grad(sc.log(abs(la.det(A))), A), dict(lu_factor=1, lu_solve=1)),
    "grad of solve(S)": (lambda S, b: sc.grad(sc.sum(la.solve(S, b) ** 2), b), dict(cholesky=1, solve_triangular=4)),
    "density and gradient": (lambda S, b: (lambda e: (e, sc.grad(e, b), sc.grad(e, S)))(
        -0.5 * b @ la.inv(S) @ b - 0.5 * sc.log(la.det(S))), dict(cholesky=1, solve_triangular=4)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_forms(name):
    make, expected = CASES[name]
    got, plain, routines = run(make)
    for a, b in zip(leaves_of(got), leaves_of(plain), strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9), f"{name}: {a} is not {b}"
    dots = routines.pop("dot", 0)
    assert routines == {k: n for k, n in expected.items() if k != "dot"}
    assert dots == expected.get("dot", 0)


def leaves_of(x):
    return [np.asarray(x)] if not isinstance(x, tuple | list) else [a for item in x for a in leaves_of(item)]


def test_a_gram_matrix_alone_is_not_taken_to_be_definite():
    """x.T @ x is positive semidefinite, but may have lost rank: Cholesky would fail where LU goes on."""
    _, _, routines = run(lambda X, y: la.solve(X.T @ X, X.T @ y))
    assert routines["lu_factor"] == 1 and not routines["cholesky"]


def test_symmetric_alone_is_not_definite():
    _, _, routines = run(lambda A, b: la.solve(A + A.T, b))
    assert routines["lu_factor"] == 1 and not routines["cholesky"]


def test_log_det_does_not_overflow():
    n = 300
    A = sc.input("A", "float64", shape=(n, n))
    a = RNG.normal(size=(n, n)) * 50
    sign, logabs = np.linalg.slogdet(a)
    out = [sc.log(abs(la.det(A))), sc.log(la.det(A)), sc.sign(la.det(A))]
    f = sc.compile(out, [A], mode="reference", pipeline=UNFUSED)
    got = f(a)
    assert np.isclose(got[0], logabs) and got[2] == sign
    assert np.isclose(got[1], logabs) if sign > 0 else np.isnan(got[1])
    assert not np.isfinite(np.linalg.det(a))


def test_eigenvectors_of_a_symmetric_matrix_are_orthogonal():
    A = sc.input("A", "float64", shape=(N, N))
    f = sc.compile(la.eig(A + A.T), [A], mode="reference", pipeline=UNFUSED)
    w, v = f(DATA["A"])
    m = DATA["A"] + DATA["A"].T
    assert library(f) == {"eigh": 1}
    assert np.allclose(m @ v, v * w) and np.allclose(v.conj().T @ v, np.eye(N))
    assert w.dtype == v.dtype == np.complex128


def test_complex_structure():
    """Hermitian is not symmetric, and the inverse of a unitary matrix is conjugated."""
    A = sc.input("A", "complex128", shape=(3, 3))
    b = sc.input("b", "complex128", shape=(3, 2))
    a = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
    y = RNG.normal(size=(3, 2)) + 1j * RNG.normal(size=(3, 2))
    h, q, low = a @ a.conj().T + np.eye(3), np.linalg.qr(a)[0], np.tril(a) + 3 * np.eye(3)
    cases = (("pd", h, "cholesky"), ("unitary", q, ""), ("lower_triangular", low, "solve_triangular"))
    for promise, m, routine in cases:
        S = sc.assume(A, **{promise: True})
        out = [la.solve(S, b), la.solve(S.T, b), la.solve(sc.conj(S.T), b), la.inv(S), la.slogdet(S)[1]]
        f = sc.compile(out, [A, b], mode="reference", pipeline=UNFUSED)
        want = [np.linalg.solve(m, y), np.linalg.solve(m.T, y), np.linalg.solve(m.conj().T, y), np.linalg.inv(m),
                np.linalg.slogdet(m)[1]]  # fmt: skip
        for g, w in zip(f(m, y), want, strict=True):
            assert np.allclose(g, w)
        assert not routine or library(f)[routine]


def test_inside_a_loop_and_of_what_runs_over_rows():
    """Facts of captured values and of rows hold in the body."""
    S, T = sc.input("S", "float64", shape=(3, 3)), sc.input("T", "float64", shape=(2, 3, 3))
    s, t = sc.assume(S, pd=True), sc.assume(T, lower_triangular=True)

    def step(x, row):
        return la.solve(s, x) + la.solve(row, x), None

    f = sc.compile(sc.scan(step, np.ones(3), t)[0], [S, T], mode="reference", pipeline=UNFUSED + ",-unroll")
    assert library(f)["cholesky"] == 1 and not library(f)["lu_factor"]
    m, rows = DATA["T"][0], np.tril(DATA["T"]) + np.eye(3)
    x = np.ones(3)
    for row in rows:
        x = np.linalg.solve(m, x) + np.linalg.solve(row, x)
    assert np.allclose(f(m, rows), x)


def test_a_singular_triangle_raises():
    A, b = sc.input("A", "float64", shape=(2, 2)), sc.vector("b")
    f = sc.compile(la.solve(sc.tril(A), b), [A, b], mode="reference", pipeline=UNFUSED)
    with pytest.raises(np.linalg.LinAlgError):
        f(np.array([[1.0, 2.0], [3.0, 0.0]]), np.ones(2))


def test_why_not_says_what_to_do():
    A, b = sc.matrix("A"), sc.vector("b")
    f = sc.compile(la.solve(A, b), [A, b], mode="reference", pipeline=UNFUSED)
    assert "sc.assume" in f.why_not("structured_solve")
