"""Derivatives of linear algebra: forward, reverse and second ones against differences, and what they are at edges.

Each op alone is tried in test_every_derivative.py; here are the functions that users call, and what they make of them.
"""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.errors import GradientError, LinAlgError

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_numbers_in_any_order_of_tests():
    global rng
    rng = np.random.default_rng(0)


def normal(*shape, is_complex=False):
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if is_complex else x


def spread(*shape, is_complex=False):
    """Matrices whose eigenvalues and singular values are far apart."""
    return 0.5 * normal(*shape, is_complex=is_complex) + np.diag(np.arange(9) * 2.0 + 1)[: shape[-2], : shape[-1]]


def hermitian(x):
    return (x + sc.conj(x).mT) / 2


def definite(x):
    return x @ sc.conj(x).mT + sc.eye(x.shape[-1])


def projector(v, k):
    """Onto the space of the first k columns: it does not depend on their phases."""
    return v[..., :k] @ sc.conj(v[..., :k]).mT


#: Derivatives that are compared where second ones have been, at other shapes.
FIRST = ("rev", "fwd")

SQUARE = {
    "inv": np.linalg.inv, "det": np.linalg.det, "slogdet": lambda a: np.linalg.slogdet(a),
    "power": lambda a: np.linalg.matrix_power(a, -2), "expm": lambda a: sc.linalg.expm(0.2 * a),
    "cholesky": lambda a: np.linalg.cholesky(definite(a)),
    "upper cholesky": lambda a: np.linalg.cholesky(definite(a), upper=True),
    "eigvalsh": lambda a: np.linalg.eigvalsh(hermitian(a)), "eigvals": np.linalg.eigvals,
    "eigh": lambda a: projector(np.linalg.eigh(hermitian(a))[1], 2),
    "eig": lambda a: sc.abs(np.linalg.eig(a)[1]), "lu": lambda a: sc.linalg.lu(a)[1:],
    "cond": lambda a: np.linalg.cond(a, 1), "tensorinv": lambda a: np.linalg.tensorinv(a, a.ndim - 1),
}
ANY = {
    "svdvals": np.linalg.svdvals, "svd": lambda a: projector(np.linalg.svd(a, full_matrices=False)[0], 1),
    "vh": lambda a: projector(sc.conj(np.linalg.svd(a, full_matrices=False)[2]).mT, 2),
    "qr": np.linalg.qr, "r": lambda a: np.linalg.qr(a, "r"), "pinv": np.linalg.pinv,
    "2-norm": lambda a: np.linalg.norm(a, 2, axis=(-2, -1)), "-2-norm": lambda a: np.linalg.norm(a, -2, (-2, -1)),
    "cond": np.linalg.cond,
    "nuclear norm": lambda a: np.linalg.norm(a, "nuc", (-2, -1)),
}


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", SQUARE)
def test_square(name, is_complex):
    sc.verify_grad(SQUARE[name], [spread(2, 2, is_complex=is_complex)])
    for shape in ((3, 3), (1, 2, 2), (1, 1)):
        if name != "tensorinv" or len(shape) == 2:
            sc.verify_grad(SQUARE[name], [spread(*shape, is_complex=is_complex)], FIRST)


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", ANY)
def test_any_shape(name, is_complex):
    sc.verify_grad(ANY[name], [spread(3, 2, is_complex=is_complex)])
    for shape in ((2, 2), (2, 3), (1, 3, 2)):
        sc.verify_grad(ANY[name], [spread(*shape, is_complex=is_complex)], FIRST)


SOLVERS = {
    "solve": np.linalg.solve,
    "lower": lambda a, b: sc.linalg.solve_triangular(a, b, lower=True),
    "transposed upper": lambda a, b: sc.linalg.solve_triangular(a, b, 1),
    "adjoint unit": lambda a, b: sc.linalg.solve_triangular(0.3 * a, b, "C", lower=True, unit_diagonal=True),
    "lu": lambda a, b: sc.linalg.lu_solve(sc.linalg.lu_factor(a), b),
    "lu transposed": lambda a, b: sc.linalg.lu_solve(sc.linalg.lu_factor(a), b, 1),
    "lu adjoint": lambda a, b: sc.linalg.lu_solve(sc.linalg.lu_factor(a), b, 2),
    "cholesky": lambda a, b: sc.linalg.cho_solve(sc.linalg.cho_factor(definite(a)), b),
    "lower cholesky": lambda a, b: sc.linalg.cho_solve(sc.linalg.cho_factor(definite(a), True), b),
    "tensorsolve": lambda a, b: np.linalg.tensorsolve(a, b[..., 0] if b.ndim > 1 else b),
    "quadratic form": lambda a, b: b.T @ np.linalg.inv(a) @ b,
}


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(name, is_complex):
    for shape, modes in (((3,), (*FIRST, "hvp")), ((3, 2), FIRST)):
        a, b = spread(3, 3, is_complex=is_complex), normal(*shape, is_complex=is_complex)
        sc.verify_grad(SOLVERS[name], [a, b], modes)


def test_solvers_in_batches():
    sc.verify_grad(np.linalg.solve, [spread(3, 3), normal(2, 3, 2)])
    sc.verify_grad(np.linalg.solve, [spread(2, 1, 2, 2), normal(3, 2, 1)])
    sc.verify_grad(sc.vmap(np.linalg.solve, (None, 0)), [spread(3, 3), normal(2, 3)])


def test_least_squares():
    for shape in ((4, 2), (2, 4), (3, 3)):
        sc.verify_grad(lambda a, b: np.linalg.lstsq(a, b)[0], [spread(*shape), normal(shape[0], 2)])
    sc.verify_grad(lambda a, b: np.linalg.lstsq(a, b)[1], [spread(4, 2, is_complex=True), normal(4, 2)])


def test_pseudoinverses_hold_the_rank():
    """Along directions that keep it; equal singular values do no harm."""
    a, b = normal(4, 2), normal(2, 3)
    sc.verify_grad(lambda a, b: np.linalg.pinv(a @ b, rtol=1e-9), [a, b])
    sc.verify_grad(np.linalg.pinv, [np.eye(3, 2)])
    sc.verify_grad(lambda a: np.linalg.pinv(hermitian(a), hermitian=True), [spread(3, 3)])


# --- edges ------------------------------------------------------------------------------------------------------------


def gradient(fn, a):
    x = sc.input("x", a.dtype, a.shape)
    return sc.compile(sc.grad(fn(x), x), [x], mode="reference")(a)


def test_the_determinant_has_a_gradient_where_it_is_zero():
    """The transposed cofactors, of any rank."""
    np.testing.assert_allclose(gradient(np.linalg.det, np.array([[0.0, 1], [0, 2]])), [[2, 0], [-1, 0]], atol=1e-12)
    np.testing.assert_allclose(gradient(np.linalg.det, np.array([[1.0, 2], [2, 4]])), [[4, -2], [-2, 1]], atol=1e-12)
    np.testing.assert_allclose(gradient(np.linalg.det, np.zeros((3, 3))), np.zeros((3, 3)), atol=1e-12)
    np.testing.assert_allclose(gradient(np.linalg.det, np.zeros((1, 1))), [[1]])
    a = np.outer([1.0, 2, 3], [1.0, -1, 2]) + np.outer([0.0, 1, 1], [2.0, 0, 1])
    want = [[np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) * (-1) ** (i + j) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(gradient(np.linalg.det, a), want, atol=1e-10)


def test_only_what_is_read_has_a_gradient():
    a = np.array([[2.0, 9.0], [0.5, 3.0]])
    assert gradient(lambda x: np.linalg.cholesky(x).sum(), a)[0, 1] == 0
    assert gradient(lambda x: np.linalg.eigvalsh(x)[0], a)[0, 1] == 0
    assert gradient(lambda x: np.linalg.eigvalsh(x, "U")[0], a)[1, 0] == 0
    assert gradient(lambda x: sc.linalg.solve_triangular(x, sc.ones(2)).sum(), a)[1, 0] == 0
    symmetric = gradient(lambda x: np.linalg.slogdet(np.linalg.cholesky(definite((x + x.T) / 2)))[1], a)
    np.testing.assert_allclose(symmetric, symmetric.T)


def test_equal_eigenvalues_and_singular_values():
    """What does not depend on the choice of their vectors is right, and nothing is nan."""
    a = np.diag([2.0, 2.0, 5.0])
    np.testing.assert_allclose(gradient(lambda x: np.linalg.eigvalsh(x).sum(), a), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(gradient(lambda x: (np.linalg.svdvals(x) ** 2).sum(), a), 2 * a, atol=1e-12)
    np.testing.assert_allclose(gradient(lambda x: np.linalg.norm(x, "nuc"), a), np.eye(3), atol=1e-12)
    space = normal(3, 3)
    got = gradient(lambda x: (projector(np.linalg.eigh(x)[1], 2) * space).sum(), a)
    step, e = np.zeros((3, 3)), 1e-6
    step[2, 0] = e
    one, two = (np.linalg.eigh(a + k * step)[1][:, :2] for k in (1, -1))
    assert got[2, 0] == pytest.approx(np.sum(space * (one @ one.T - two @ two.T)) / (2 * e), rel=1e-6)
    for fn in (lambda x: np.linalg.eigh(x)[1].sum(), lambda x: np.linalg.svd(x)[0].sum(),
               lambda x: sc.real(np.linalg.eig(x)[1]).sum()):  # fmt: skip
        assert np.isfinite(gradient(fn, np.eye(2))).all()
    zeros = np.zeros((3, 2))
    assert np.isfinite(gradient(lambda x: np.linalg.svd(x, full_matrices=False)[0].sum(), zeros)).all()


def test_what_has_no_derivative_says_so():
    a = sc.input("a", "float64", (4, 2))
    with pytest.raises(GradientError, match="full_matrices"):
        sc.grad(np.linalg.svd(a)[0].sum(), a)
    with pytest.raises(GradientError, match="complete"):
        sc.grad(np.linalg.qr(a, "complete")[0].sum(), a)
    sc.grad(np.linalg.svd(sc.input("s", "float64", (3, 3)))[0].sum(), sc.input("s", "float64", (3, 3)),
            disconnected="zero")


def test_gradients_of_singular_matrices_raise():
    with pytest.raises(LinAlgError):
        gradient(lambda x: np.linalg.slogdet(x)[1], np.zeros((2, 2)))


def test_no_elements():
    for fn in (np.linalg.det, lambda x: np.linalg.inv(x).sum(), lambda x: np.linalg.cholesky(x).sum(),
               lambda x: np.linalg.eigvalsh(x).sum(), lambda x: np.linalg.slogdet(x)[1]):  # fmt: skip
        assert gradient(fn, np.zeros((0, 0))).shape == (0, 0)
    assert gradient(lambda x: np.linalg.inv(x).sum(), np.zeros((0, 2, 2))).shape == (0, 2, 2)


# --- whole programs ---------------------------------------------------------------------------------------------------


def test_a_gaussian_process_compiled():
    """The likelihood of data by the length of correlations, its gradient and its second derivative."""
    x, y = np.linspace(0, 3, 12), np.sin(np.linspace(0, 3, 12))
    length = sc.scalar("length")
    k = sc.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + 1e-2 * np.eye(12)
    low = np.linalg.cholesky(k)
    cost = 0.5 * y @ sc.linalg.cho_solve((low, True), y) + sc.log(sc.linalg.diagonal(low)).sum()
    slope = sc.grad(cost, length)
    f = sc.compile([cost, slope], [length])
    second = sc.compile(sc.grad(slope, length), [length], mode="reference")

    def direct(s):
        k = np.exp(-0.5 * ((x[:, None] - x) / s) ** 2) + 1e-2 * np.eye(12)
        return 0.5 * y @ np.linalg.solve(k, y) + 0.5 * np.linalg.slogdet(k)[1]

    h = 1e-4
    got = f(0.8)
    assert got[0] == pytest.approx(direct(0.8), rel=1e-10)
    assert got[1] == pytest.approx((direct(0.8 + h) - direct(0.8 - h)) / (2 * h), rel=1e-5)
    assert second(0.8) == pytest.approx((direct(0.8 + h) - 2 * direct(0.8) + direct(0.8 - h)) / h**2, rel=1e-3)
    assert str(f.plan).count("call cholesky") == 1


@pytest.mark.parametrize("name", ["slogdet", "eigh", "svd", "qr", "pinv", "cholesky"])
def test_compiled_gradients_are_those_of_the_reference(name):
    fn = {**SQUARE, **ANY}[name]
    a = spread(2, 3, 3)
    x = sc.input("x", "float64", a.shape)
    out = fn(x)
    cost = sum((sc.real(o) ** 2).sum() * (k + 1) for k, o in enumerate(out if isinstance(out, tuple) else [out]))
    g = sc.grad(cost, x)
    np.testing.assert_allclose(sc.compile(g, [x])(a), sc.compile(g, [x], mode="reference")(a), rtol=1e-8, atol=1e-10)


def test_through_a_loop():
    """An iteration that solves an equation in every step."""
    a, b = spread(3, 3), normal(3)
    sc.verify_grad(lambda a, b: sc.scan(lambda x, _: (np.linalg.solve(a, x + b), x.sum()), b, length=3)[0], [a, b])
