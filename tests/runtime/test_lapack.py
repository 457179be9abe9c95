"""Linear algebra in the native interpreter: without Python, in batches and loops; and what happens when it fails."""

import contextlib

import numpy as np
import pytest

import symc as sc
from symc.driver.backend import Settings
from symc.driver.backends import CPU
from symc.driver.compilation import Compilation
from symc.errors import LinAlgError
from symc.ir.function import Function, Input
from symc.ir.op import lookup
from symc.ir.ops.kernel import results_of
from symc.ir.reference import apply
from symc.ir.traverse import close_over
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.runtime.cpu import calls, lapack
from symc.runtime.cpu.native import small_ir

pytestmark = pytest.mark.usefixtures("each_library")
RNG = np.random.default_rng(0)
SYMMETRIC = ("cholesky", "eigh", "eigvalsh")


@pytest.mark.parametrize("shape", [(4, 4), (7, 3), (3, 7), (2, 6, 4)])
def test_the_factor_that_nobody_reads_is_not_made(shape, monkeypatch):
    called = []
    lapack_call = lapack.Emitter.lapack
    monkeypatch.setattr(lapack.Emitter, "lapack", lambda e, name, *x: (called.append(name), lapack_call(e, name, *x)))
    a, x = RNG.normal(size=shape), sc.input("a", "f64", shape)
    for mode, made in (("r", False), ("reduced", True)):
        called.clear()
        f = sc.compile(sc.linalg.qr(x, mode=mode))
        np.testing.assert_allclose(f(a) if mode == "r" else f(a)[1], np.linalg.qr(a, "r"), atol=1e-12)
        assert ("orgqr" in called) is (made or shape[-2] < shape[-1])


@pytest.fixture
def python_steps(monkeypatch):
    """The ops that ran by their reference."""
    ran = []
    run = calls.ReferenceStep.__call__
    monkeypatch.setattr(calls.ReferenceStep, "__call__", lambda self, c: (ran.append(self.value.op.name), run(self, c)))
    return ran


def program(v, leaves):
    roots = [v] if isinstance(v.type, TensorType) else results_of(v)
    interface = tuple(Input(f"x{k}", x.type, declared=x.type) for k, x in enumerate(leaves))
    return Compilation(Function("f", interface, close_over(leaves, roots)), Settings(CPU, pipeline="")).program


@pytest.mark.parametrize("small", [small_ir.MOST, 0])
@pytest.mark.parametrize("name", sorted(lapack.RECIPES))
def test_every_sample_is_computed_natively_and_agrees(name, small, python_steps, monkeypatch):
    """By code of the size of a matrix, and by the library."""
    monkeypatch.setattr(small_ir, "MOST", small)
    op = lookup(name)
    seen = set()
    for arrays, attrs in op.samples():
        leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in arrays]
        v = op(*leaves, **attrs)
        python_steps.clear()
        got = program(v, leaves).run([np.ascontiguousarray(a) for a in arrays], {}, None)
        want = apply(v, list(arrays), {}, False, None)
        if all(a.size for a in arrays):
            assert not python_steps
            seen.add(arrays[0].dtype.char)
        for g, w in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
            assert g.shape == w.shape and g.dtype == w.dtype
            tolerance = 2e-4 if g.dtype.char in "fF" else 1e-9
            if name == "eigh":  # vectors have signs and phases of their own
                g, w = np.abs(g), np.abs(w)
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)
    assert {"f", "d"} <= seen


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (3, 7), (40, 40), (2, 65, 33)])
def test_factors_give_the_matrix_back(shape):
    a = RNG.normal(size=shape) + 1j * RNG.normal(size=shape)
    for dtype in "dD":
        x = a.astype(dtype) if dtype == "D" else a.real.copy()
        t = sc.input("t", dtype, shape=shape)
        for mode in ("reduced", "complete"):
            q, r = sc.compile(tuple(sc.linalg.qr(t, mode=mode)))(x)
            np.testing.assert_allclose(q @ r, x, atol=1e-12)
            np.testing.assert_allclose(np.tril(r, -1), 0)
        for full in (False, True):
            u, s, v = sc.compile(tuple(sc.linalg.svd(t, full_matrices=full)))(x)
            k = s.shape[-1]
            np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ v[..., :k, :], x, atol=1e-12)
            inner = u.conj().swapaxes(-1, -2) @ u
            assert np.allclose(inner, np.eye(inner.shape[-1]), atol=1e-12)


def test_one_program_serves_every_size(python_steps):
    a, b = sc.matrix("a"), sc.matrix("b")
    f = sc.compile(sc.linalg.solve(a, b))
    for n, k in ((1, 1), (2, 5), (30, 1), (65, 3)):
        x, y = RNG.normal(size=(n, n)) + n * np.eye(n), RNG.normal(size=(n, k))
        np.testing.assert_allclose(f(x, y), np.linalg.solve(x, y), rtol=1e-9)
    assert not python_steps


def test_one_program_factors_tall_and_wide_matrices(python_steps):
    f = sc.compile(tuple(sc.linalg.qr(sc.input("t", "f8", shape=("b", "m", "n")))))
    for shape in ((2, 7, 3), (3, 2, 9), (1, 4, 4), (2, 1, 5), (2, 5, 1), (1, 40, 90)):
        x = RNG.normal(size=shape)
        for got, want in zip(f(x), np.linalg.qr(x), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-12)
    assert not python_steps


def test_loops_and_branches_call_no_python(python_steps):
    a, b = sc.matrix("a"), sc.vector("b")

    def step(x, t):
        return sc.cond(t > 2, lambda: sc.linalg.solve(a, x), lambda: x * 2.0), None

    last, _ = sc.scan(step, b, sc.arange(6))
    x, y = RNG.normal(size=(4, 4)) + 4 * np.eye(4), RNG.normal(size=4)
    want = y * 8
    for _ in range(3):
        want = np.linalg.solve(x, want)
    np.testing.assert_allclose(sc.compile(last, [a, b])(x, y), want, rtol=1e-12)
    assert not python_steps


def test_failures_name_the_op_and_the_next_call_works():
    a = sc.matrix("a")
    f = sc.compile(sc.linalg.cholesky(a))
    good = np.array([[4.0, 0.0], [2.0, 5.0]])
    for _ in range(2):
        with pytest.raises(LinAlgError, match="not positive definite") as e:
            f(-good)
        assert "test_lapack.py" in str(e.value) and isinstance(e.value, np.linalg.LinAlgError)
        np.testing.assert_allclose(f(good), [[2, 0], [1, 2]])


def test_a_failure_inside_a_batch_stops_it():
    a = sc.tensor3("a")
    f = sc.compile(sc.linalg.inv(a))
    x = np.stack([np.eye(2), np.zeros((2, 2)), np.eye(2)])
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        f(x)
    np.testing.assert_allclose(f(x[[0, 2]]), x[[0, 2]])


def test_an_order_that_is_none_is_not_followed():
    """A permutation may come from the user: rows out of bounds are an error, not memory of somebody else."""
    lu, p, b = (sc.input(name, dtype, shape=shape) for name, dtype, shape in
                (("lu", "float64", ("n", "n")), ("p", "int64", ("n",)), ("b", "float64", ("n", "k"))))
    f = sc.compile(sc.linalg.lu_solve((lu, p), b))
    np.testing.assert_allclose(f(np.eye(2), [1, 0], [[1.0], [2.0]]), [[2], [1]])
    for wrong in ([0, 2], [-7, 0]):
        with pytest.raises(sc.SymcError):
            f(np.eye(2), wrong, [[1.0], [2.0]])


def test_what_a_routine_refuses_is_left_to_the_reference(python_steps):
    """Routines tell by a negative number, as wide as the library's integers."""
    a = sc.matrix("a")
    f = sc.compile(sc.linalg.svdvals(a))
    with contextlib.suppress(np.linalg.LinAlgError):
        f(np.full((3, 3), np.nan))
    assert python_steps == ["svdvals"]


def test_nan_does_not_hang():
    a = sc.matrix("a")
    x = np.full((3, 3), np.nan)
    for value in (sc.linalg.svdvals(a), sc.linalg.eigvalsh(a), sc.linalg.svd(a)[0]):
        f = sc.compile(value)
        with contextlib.suppress(np.linalg.LinAlgError):
            assert np.isnan(f(x)).all()


@pytest.mark.parametrize("low, up", [(1, 1), (2, 0), (1, 3)])
def test_diagonals_take_memory_and_steps_of_their_number(low, up, python_steps):
    """Solutions and derivatives: nothing is as large as the matrix, and nothing runs in Python."""
    ab, b = sc.input("ab", "f64", (low + up + 1, "n")), sc.input("b", "f64", ("n",))
    x = sc.linalg.solve_banded((low, up), ab, b)
    f = sc.compile([x, *sc.grad(sc.sum(x**2), [ab, b])], [ab, b])
    n = 2000
    assert f.memory(n=n) < 200 * n * 8
    diagonals, right = RNG.normal(size=(low + up + 1, n)), RNG.normal(size=n)
    diagonals[up] += 5
    outside = np.add.outer(np.arange(low + up + 1) - up, np.arange(n))
    diagonals[(outside < 0) | (outside >= n)] = np.nan  # no element of the matrix
    found, of_band, of_right = f(diagonals, right)
    i, j = np.indices((n, n))
    row = up + i - j
    inside = (row >= 0) & (row < low + up + 1)
    a = np.where(inside, diagonals[row.clip(0, low + up), j], 0)
    y = np.linalg.solve(a.T, 2 * found)
    np.testing.assert_allclose(a @ found, right, atol=1e-12)
    np.testing.assert_allclose(of_right, y, rtol=1e-9)
    whole = -np.outer(y, found)
    np.testing.assert_allclose(of_band[row[inside], j[inside]], whole[inside], rtol=1e-8, atol=1e-14)
    assert not of_band[(outside < 0) | (outside >= n)].any() and not python_steps
