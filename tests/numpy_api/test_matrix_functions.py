"""Functions of matrices, and subspaces, under SciPy's names, against SciPy."""

import numpy as np
import pytest
import scipy.linalg as sl

import symc as sc

RNG = np.random.default_rng(0)
A, C = RNG.normal(size=(4, 4)) * 0.5, RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
FUNCTIONS = ["sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm"]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("a", [A, C * 0.4, np.zeros((2, 2)), A.astype("float32"), np.stack([A, A.T])])
def test_functions_of_matrices(name, a):
    x = sc.input("x", a.dtype, (None,) * a.ndim)
    got, want = sc.compile(getattr(sc.linalg, name)(x), [x])(a), getattr(sl, name)(a.astype(np.result_type(a, "f8")))
    assert got.dtype == a.dtype and got.shape == a.shape
    relative, absolute = (1e-4, 1e-5) if a.dtype == "f4" else (1e-10, 1e-11)
    np.testing.assert_allclose(got, want, rtol=relative, atol=absolute)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    sc.verify_grad(lambda x: sc.sum(getattr(sc.linalg, name)(x) * np.arange(4.0).reshape(2, 2)), [A[:2, :2]])


def test_expm_frechet():
    x, e = sc.matrix("x"), sc.matrix("e")
    both = sc.compile(sc.linalg.expm_frechet(x, e), [x, e])(A, A.T)
    for got, want in zip(both, sl.expm_frechet(A, A.T), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    alone = sc.compile(sc.linalg.expm_frechet(x, e, compute_expm=False), [x, e])(A, A.T)
    np.testing.assert_allclose(alone, sl.expm_frechet(A, A.T, compute_expm=False), rtol=1e-12)


@pytest.mark.parametrize("a", [np.outer(np.arange(1.0, 5), np.ones(3)), np.ones((2, 5)), np.zeros((2, 3)), np.eye(3),
                               A[:, :2] @ A[:2, :3], C[:, :1] @ C[:1]])  # fmt: skip
def test_subspaces(a):
    x = sc.input("x", a.dtype, (None, None))
    null, orth = sc.compile([sc.linalg.null_space(x), sc.linalg.orth(x)], [x])(a)
    for got, want in ((null, sl.null_space(a)), (orth, sl.orth(a))):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got @ got.conj().T, want @ want.conj().T, atol=1e-12)  # the same subspace
        np.testing.assert_allclose(got.conj().T @ got, np.eye(got.shape[1]), atol=1e-12)
    np.testing.assert_allclose(a @ null, 0, atol=1e-12)
    loose = sc.compile(sc.linalg.null_space(x, rcond=10.0), [x])(a)
    assert loose.shape == (a.shape[1], a.shape[1])


def test_matrices_of_vectors():
    f, s, b = sc.vector("f"), sc.vector("s"), sc.matrix("b")
    v, B = np.array([3.0, 1.0, 2.0]), RNG.normal(size=(3, 2))
    np.testing.assert_array_equal(sc.compile(sc.linalg.leslie(f, s))(v, v[:2]), sl.leslie(v, v[:2]))
    np.testing.assert_array_equal(sc.compile(sc.linalg.fiedler(f))(v), sl.fiedler(v))
    np.testing.assert_allclose(sc.compile(sc.linalg.solve_circulant(f, s))(v, v[::-1]), sl.solve_circulant(v, v[::-1]))
    np.testing.assert_allclose(sc.compile(sc.linalg.solve_circulant(f, b))(v, B), sl.solve_circulant(v, B))
    sc.verify_grad(lambda c, b: sc.sum(sc.linalg.solve_circulant(c, b) ** 2), [v, v[::-1].copy()])


@pytest.mark.parametrize("make, said", [
    (lambda: sc.linalg.sinm(sc.vector("x")), "sinm"), (lambda: sc.linalg.null_space(sc.vector("x")), "one matrix"),
    (lambda: sc.linalg.leslie(np.ones(3), np.ones(3)), "one element less"),
    (lambda: sc.linalg.solve_circulant(np.ones((2, 2)), np.ones(2)), "a vector"),
])  # fmt: skip
def test_mistakes(make, said):
    with pytest.raises(sc.ShapeError, match=said) as e:
        make()
    assert "test_matrix_functions.py" in str(e.value)


# --- functions by SciPy -----------------------------------------------------------------------------------------------

P = A @ A.T + np.eye(4)
SAME = {
    "sqrtm": (sc.linalg.sqrtm, sl.sqrtm, [P]), "logm": (sc.linalg.logm, sl.logm, [P]),
    "signm": (sc.linalg.signm, sl.signm, [A]), "complex root": (sc.linalg.sqrtm, sl.sqrtm, [A + 0j]),
    "funm": (lambda x: sc.real(sc.linalg.funm(x, np.exp)), sl.expm, [A]),
    "power": (lambda x: sc.linalg.fractional_matrix_power(x, -1.5), lambda x: sl.fractional_matrix_power(x, -1.5), [P]),
    "whole power": (lambda x: sc.linalg.fractional_matrix_power(x, 3), lambda x: x @ x @ x, [A]),
    "sylvester": (sc.linalg.solve_sylvester, sl.solve_sylvester, [P, P[:3, :3], A[:, :3]]),
    "lyapunov": (sc.linalg.solve_continuous_lyapunov, sl.solve_continuous_lyapunov, [A, P]),
    "discrete": (sc.linalg.solve_discrete_lyapunov, sl.solve_discrete_lyapunov, [A * 0.3, P]),
    "discrete, complex": (sc.linalg.solve_discrete_lyapunov, sl.solve_discrete_lyapunov, [C * 0.3, C]),
    "schur": (sc.linalg.schur, sl.schur, [A]), "ldl": (sc.linalg.ldl, sl.ldl, [A + A.T]),
    "complex form": (lambda x: sc.linalg.schur(x, "complex"), lambda x: sl.schur(x, "complex"), [A]),
    "upper ldl": (lambda x: sc.linalg.ldl(x, False), lambda x: sl.ldl(x, False), [C + C.conj().T]),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_what_scipy_computes(name):
    ours, theirs, arrays = SAME[name]
    inputs = [sc.input(f"x{k}", a.dtype, (None, None)) for k, a in enumerate(arrays)]
    got, want = sc.compile(ours(*inputs), inputs)(*arrays), theirs(*arrays)
    for g, w in zip(*[x if isinstance(x, tuple) else (x,) for x in (got, want)], strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-10)


def test_batches_of_matrices():
    x, q = sc.input("x", "float64", (2, 4, 4)), sc.input("q", "float64", (4, 3))
    stack = np.stack([P, 2 * P])
    found = [sc.linalg.sqrtm(x), sc.vmap(sc.linalg.sqrtm)(x), sc.linalg.solve_sylvester(x, P[:3, :3], q)]
    root, mapped, solved = sc.compile(found, [x, q])(stack, P[:, :3])
    np.testing.assert_allclose(root, [sl.sqrtm(m) for m in stack])
    np.testing.assert_array_equal(root, mapped)
    np.testing.assert_allclose(solved, [sl.solve_sylvester(m, P[:3, :3], P[:, :3]) for m in stack])


def test_derivatives_of_what_is_made_of_others():
    of = sc.linalg
    for fn in (of.signm, lambda x: sc.real(of.funm(x, np.exp)), lambda x: of.fractional_matrix_power(x, 0.3)):
        sc.verify_grad(fn, [P[:2, :2]])
    sc.verify_grad(of.solve_discrete_lyapunov, [A * 0.3, P])


@pytest.mark.parametrize("make, error, said", [
    (lambda x: sc.linalg.sqrtm(-x), sc.linalg.LinAlgError, "no real result"),
    (lambda x: sc.linalg.solve_sylvester(x, -x, x), sc.linalg.LinAlgError, "an eigenvalue in common"),
    (lambda x: sc.grad(sc.linalg.schur(x)[0].sum(), x), sc.GradientError, "output='complex'"),
    (lambda x: sc.linalg.schur(x, "wide"), sc.InputError, "'real' or 'complex'"),
    (lambda x: sc.linalg.solve_sylvester(x, x, np.ones((2, 3))), sc.ShapeError, "the rows of a"),
])  # fmt: skip
def test_mistakes_of_what_scipy_computes(make, error, said):
    x = sc.input("x", "float64", (4, 4))
    with pytest.raises(error, match=said) as e:
        sc.compile(make(x), [x])(P)
    assert "test_matrix_functions.py" in str(e.value)
