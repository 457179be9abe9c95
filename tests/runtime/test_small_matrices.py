"""Batches of small matrices, computed several at once by code of their size: accuracy, places of a vector, failures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg

import symc as sc
from symc.errors import LinAlgError
from symc.runtime.cpu.native import small_ir, small_products_ir

SIZES = [1, 2, 3, 4, 5, 8]
DTYPES = ["float32", "float64"]


def compiled(run, *arrays):
    leaves = [sc.input(f"x{i}", str(a.dtype), ("n", *a.shape[1:])) for i, a in enumerate(arrays)]
    return sc.compile(run(*leaves), leaves)


def matrices(dtype: str, n: int, count: int = 200) -> np.ndarray:
    """Random ones, some nearly of rank one, some with rows of different size, some with zeros to exchange."""
    random = np.random.default_rng(n)
    a = random.normal(size=(count, n, n))
    a[::4] = random.normal(size=a[::4, :, :1].shape) * random.normal(size=a[::4, :1].shape) + 1e-4 * a[::4]
    a[1::4] *= 10.0 ** random.integers(-6, 6, size=(*a[1::4].shape[:2], 1))
    a[2::4] *= random.random(a[2::4].shape) < 0.8
    return (a + 1e-3 * np.eye(n)).astype(dtype)


def residual(a, x, b) -> float:
    """The greatest backward error, in units of eps: |a x - b| / (|a| |x| + |b|)."""
    wide = [y.astype("longdouble") for y in (a, x, b)]
    size = np.abs(wide[0]) @ np.abs(wide[1]) + np.abs(wide[2])
    norms = np.max(size, axis=-2, keepdims=True)
    return float(np.max(np.abs(wide[0] @ wide[1] - wide[2]) / np.where(norms == 0, 1, norms)) / np.finfo(a.dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_as_accurate_as_lapack(dtype, n):
    a = matrices(dtype, n)
    b = np.random.default_rng(1).normal(size=(len(a), n, 2)).astype(dtype)
    given = residual(a, np.linalg.solve(a, b), b)
    assert residual(a, compiled(sc.linalg.solve, a, b)(a, b), b) <= max(3 * given, 3)
    unit = np.broadcast_to(np.eye(n, dtype=dtype), a.shape)
    known = np.linalg.inv(a)
    assert residual(a, compiled(sc.linalg.inv, a)(a), unit) <= max(3 * residual(a, known, unit), 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_determinants(dtype, n):
    """The error is that of a change of the matrix by a few units of its largest row and column: LAPACK's bound."""
    a = matrices(dtype, n)
    value, (sign, size) = compiled(lambda x: [sc.linalg.det(x), *sc.linalg.slogdet(x)], a)(a)[0], compiled(
        lambda x: list(sc.linalg.slogdet(x)), a)(a)
    p, l, u = zip(*[scipy.linalg.lu(x.astype("float64")) for x in a], strict=True)
    exact = np.array([np.linalg.det(x) for x in a.astype("float64")])
    eps = np.finfo(dtype).eps
    adjugate = np.abs(np.array([np.linalg.inv(x) * d for x, d in zip(a.astype("float64"), exact, strict=True)]))
    moved = np.einsum("bij,bji->b", adjugate, np.array(p) @ np.abs(l) @ np.abs(u))
    bound = 8 * n * (eps * moved + eps * np.abs(exact))
    assert np.all(np.abs(value - exact) <= bound)
    assert np.all(np.abs(sign * np.exp(size) - exact) <= 4 * bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_definite_matrices_and_triangles(dtype, n):
    x = matrices(dtype, n)
    a = x @ x.swapaxes(1, 2) + np.eye(n, dtype=dtype)
    root = compiled(sc.linalg.cholesky, a)(a)
    assert np.all(np.triu(root, 1) == 0)
    wide, eps = root.astype("longdouble"), np.finfo(dtype).eps
    scale = np.sqrt(np.einsum("bi,bj->bij", *[np.diagonal(a, axis1=1, axis2=2)] * 2))
    assert np.all(np.abs(wide @ wide.swapaxes(1, 2) - a) <= (n + 2) * eps * scale)
    b = np.random.default_rng(1).normal(size=(len(a), n, 3)).astype(dtype)
    full = (root + np.triu(x, 1)).astype(dtype)
    ways = list(itertools.product((True, False), (0, 1), (False, True)))
    solved = compiled(lambda t, r: [sc.linalg.solve_triangular(t, r, lower=lower, trans=trans, unit_diagonal=unit)
                                    for lower, trans, unit in ways], full, b)(full, b)
    for (lower, trans, unit), y in zip(ways, solved, strict=True):
        part = np.tril(full) if lower else np.triu(full)
        part = part * (1 - np.eye(n, dtype=dtype)) + np.eye(n, dtype=dtype) if unit else part
        assert residual(part.swapaxes(1, 2) if trans else part, y, b) <= n + 2, (lower, trans, unit)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 16, 17, 33])
def test_every_number_of_matrices(count):
    """A vector whose last places have no matrix computes another one again, and writes nowhere else."""
    a, b = matrices("float32", 3, count), matrices("float32", 3, count)
    f = compiled(lambda x, y: [sc.linalg.solve(x, y), x @ y], a, b)
    solved, product = f(a, b)
    assert residual(a, solved, b) < 10 and np.allclose(product, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_one_matrix(dtype, n):
    """One without a batch is computed by numbers, not vectors, and the same to the last bit."""
    a = matrices(dtype, n, 5)
    root = a @ a.swapaxes(1, 2) + np.eye(n, dtype=dtype)
    x, y = (sc.input(name, dtype, (n, n)) for name in "xy")
    f = sc.compile([sc.linalg.solve(x, y), sc.linalg.cholesky(y), sc.linalg.inv(x)], [x, y])
    many = compiled(lambda x, y: [sc.linalg.solve(x, y), sc.linalg.cholesky(y), sc.linalg.inv(x)], a, root)(a, root)
    for k in range(len(a)):
        for one, known in zip(f(a[k], root[k]), many, strict=True):
            np.testing.assert_array_equal(one, known[k])


def test_rows_are_exchanged_as_lapack_does():
    """Ties and zeros too: the factors, and the order of rows, are the reference's."""
    random = np.random.default_rng(3)
    a = random.integers(-2, 3, size=(300, 4, 4)).astype("float64")
    lu, perm = compiled(lambda x: list(sc.linalg.lu_factor(x)), a)(a)
    known = [scipy.linalg.lu(x, p_indices=True) for x in a]
    assert np.allclose(np.triu(lu), [u for _, _, u in known])
    rebuilt = (np.tril(lu, -1) + np.eye(4)) @ np.triu(lu)
    assert np.allclose(rebuilt, np.take_along_axis(a, perm[:, :, None], 1))


@pytest.mark.parametrize("at", [0, 5, 16])
def test_what_has_no_answer_raises(at):
    a = matrices("float64", 3, 17)
    f, root = compiled(sc.linalg.inv, a), compiled(sc.linalg.cholesky, a)
    definite = a @ a.swapaxes(1, 2) + np.eye(3)
    assert np.all(np.isfinite(f(a))) and np.all(np.isfinite(root(definite)))
    a[at] = 0
    definite[at, 2, 2] = -1
    with pytest.raises(LinAlgError, match="singular"):
        f(a)
    with pytest.raises(LinAlgError, match="positive definite"):
        root(definite)
    definite[at, 1, 1] = np.nan
    assert np.array_equal(np.isnan(root(definite)), np.isnan(np.linalg.cholesky(definite)))
    value, (sign, size) = (compiled(g, a)(a) for g in (sc.linalg.det, lambda x: list(sc.linalg.slogdet(x))))
    assert value[at] == 0 and sign[at] == 0 and size[at] == -np.inf


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype):
    random = np.random.default_rng(0)
    for m, n, k in ((8, 8, 8), (5, 7, 3), (3, 5, 8), (1, 8, 8), (7, 2, 6), (8, 8, 1)):
        a, b, c = (random.normal(size=(9, *s)).astype(dtype) for s in ((m, k), (k, n), (m, n)))
        exact = a.astype("longdouble") @ b.astype("longdouble")
        bound = 2 * (k + 2) * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b) + np.abs(c))
        at, bt = a.swapaxes(1, 2).copy(), b.swapaxes(1, 2).copy()
        turned = [lambda x, y: x @ y, lambda x, y: sc.swapaxes(x, 1, 2) @ y, lambda x, y: x @ sc.swapaxes(y, 1, 2)]
        for run, x, y in zip(turned, (a, at, a), (b, b, bt), strict=True):
            assert np.all(np.abs(compiled(run, x, y)(x, y) - exact) <= bound), (m, n, k)
        added = compiled(lambda x, y, z: 2 * (x @ y) - 0.5 * z, a, b, c)(a, b, c)
        assert np.all(np.abs(added - (2 * exact - c / 2)) <= 3 * bound), (m, n, k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles_of_sizes_that_are_not_known(dtype):
    """Few rows and many right sides by code of our own, in blocks of which the last is short; others by the library."""
    random = np.random.default_rng(2)
    t, r = sc.input("t", dtype, ("n", "n")), sc.input("r", dtype, ("n", "k"))
    ways = [(lower, trans, unit) for lower in (True, False) for trans in (0, 1) for unit in (False, True)]
    f = sc.compile([*[sc.linalg.solve_triangular(t, r, lower=a, trans=b, unit_diagonal=c) for a, b, c in ways],
                    sc.linalg.solve(t, r), sc.linalg.solve(t.T, r)], [t, r])
    for n, k in ((1, 4), (2, 3), (5, 129), (7, 400), (32, 5), (33, 6), (3, 1)):
        a = (random.normal(size=(n, n)) + 3 * np.eye(n)).astype(dtype)
        b = random.normal(size=(n, k)).astype(dtype)
        *found, plain, turned = f(a, b)
        for (lower, trans, unit), y in zip(ways, found, strict=True):
            part = np.tril(a) if lower else np.triu(a)
            part = part - np.diag(np.diag(part)) + np.eye(n, dtype=dtype) if unit else part
            assert residual(part.T if trans else part, y, b) <= n + 2
        assert residual(a, plain, b) <= 4 * n + 8 and residual(a.T, turned, b) <= 4 * n + 8
    with pytest.raises(LinAlgError, match="singular"):
        f(np.zeros((3, 3), dtype), np.ones((3, 9), dtype))


def test_bounds():
    """Complex numbers, sizes that are not known, and large ones are the library's."""
    assert small_ir.serves("d", 8) and small_products_ir.serves("s", 8, 8, 8)
    for letter, n in (("z", 3), ("d", 9), ("d", sc.matrix("x").value.shape[0])):
        assert not small_ir.serves(letter, n) and not small_products_ir.serves(letter, n, 3, 3)


def test_a_determinant_of_three_rows_is_one_kernel():
    """What chooses pivots has axes of size 1 until movements come before the work, a step a visit."""
    a = sc.input("a", "float64", ("n", 3, 3))
    f = sc.compile(sc.linalg.det(a), [a])
    given = np.random.default_rng(5).normal(size=(50, 3, 3))
    assert len(f.kernels) == 1
    np.testing.assert_allclose(f(given), np.linalg.det(given), rtol=1e-12, atol=1e-14)
