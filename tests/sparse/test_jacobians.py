"""Sparse Jacobians and Hessians: no entry is missing from a pattern, colours are few, numbers are those of the dense
matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

import symc as sc
from symc.errors import GradientError, ShapeError
from symc.ir.attrs import Attrs
from symc.ir.op import Op
from symc.ir.traverse import postorder
from symc.ir.types import DTYPES
from symc.ir.value import make
from symc.sparse.coloring import column_colors, entries, star_colors, two_way_colors
from symc.tensors.convert import as_tensor
from symc.testing.fuzz import random_arrays, random_function
from symc.testing.fuzz.patterns import entries_lost, lost
from symc.tools.debugging.sample import Sample
from tests.grad.test_every_derivative import DIFFERENTIABLE, unknown
from tests.ir.op_cases import apply, observed, smooth_points

RNG = np.random.default_rng(0)
REAL = [op for op in DIFFERENTIABLE if smooth_points(op, DTYPES["f64"], np.random.default_rng(0))]


def small(op: Op):
    """A few operands of at most 16 elements an elementwise op, and samples of others."""
    for arrays, attrs in smooth_points(op, DTYPES["f64"], np.random.default_rng(3))[:12]:
        few = "elementwise" in op.traits and op.facts.kinds
        yield [a[:8] if few and a.ndim else a for a in arrays], attrs


def pattern_of(op: Op, arrays, attrs, known: bool):
    """The op on leaves; ``known``: integers are constants of the graph."""
    whole, leaves = apply(op, arrays, attrs)
    if known:
        operands = [as_tensor(a).value if a.dtype.kind in "iub" else x for a, x in zip(arrays, leaves, strict=True)]
        whole = make(op, operands, Attrs(attrs))
    return whole, leaves


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in REAL])
def test_no_entry_of_an_op_is_missing(op):
    for arrays, attrs in small(op):
        for known in (False, True) if any(a.dtype.kind in "iub" for a in arrays) else (False,):
            whole, leaves = pattern_of(op, arrays, attrs, known)
            wrt = [x for k, (x, a) in enumerate(zip(leaves, arrays, strict=True))
                   if a.dtype.kind == "f" and not unknown(op, k)]
            for y in observed(whole):
                for w in wrt if y.dtype.kind == "f" else []:
                    assert not lost(y, w, wrt, leaves, arrays), (attrs, known)


@pytest.mark.parametrize("batch", range(4))
def test_no_entry_of_a_random_program_is_missing(batch):
    for seed in range(50_000 + batch * 40, 50_000 + (batch + 1) * 40):
        f = random_function(seed, 14)
        assert not entries_lost(Sample(f, tuple(random_arrays(f, seed)))), f"seed {seed}\n{f}"


# --- what patterns are exactly ----------------------------------------------------------------------------------------

N = 6
X = sc.input("x", "float64", shape=(N,))
M = sc.input("m", "float64", shape=(2, 3))
K = sc.input("k", "int64", shape=())
GRID = np.arange(N)
BAND = np.tri(N, k=1) - np.tri(N, k=-2)
SPARSE = sp.random_array((N, N), density=0.3, format="csr", rng=np.random.default_rng(1))
EXACT = {
    "elementwise": (lambda: sc.sin(X) * X + 1, X, np.eye(N)),
    "integers of it": (lambda: X * sc.floor(X), X, np.eye(N)),
    "constant factors": (lambda: X * (GRID % 2), X, np.diag(GRID % 2)),
    "a constant mask": (lambda: sc.where(GRID < 2, X, X[::-1]), X,
                        np.where((GRID < 2)[:, None], np.eye(N), np.eye(N)[::-1])),
    "slices": (lambda: X[1::2] * X[0], X, np.eye(N)[1::2] + np.eye(N)[[0] * 3]),
    "gather": (lambda: X[np.array([3, 3, 0])], X, np.eye(N)[[3, 3, 0]]),
    "gather of data": (lambda: X[K], X, np.ones((1, N))),
    "a place that is data": (lambda: X.at[2].set(0.0) * K, X, np.diag(GRID != 2)),
    "set": (lambda: X.at[np.array([1, 1])].set(X[4:]), X, np.eye(N)[[0, 5, 2, 3, 4, 5]]),
    "add at": (lambda: X.at[np.array([1, 1])].add(X[4:]), X, np.eye(N) + np.eye(N)[[4]] * (GRID == 1)[:, None]
               + np.eye(N)[[5]] * (GRID == 1)[:, None]),
    "pad": (lambda: sc.pad(X, 1), X, np.eye(N + 2, N, -1)),
    "concatenate": (lambda: sc.concatenate([X[:2], sc.zeros(2), X[5:]]), X, np.eye(N)[[0, 1, 0, 0, 5]] * [
        [1], [1], [0], [0], [1]]),
    "transpose": (lambda: M.T.ravel(), M, np.eye(6)[[0, 3, 1, 4, 2, 5]]),
    "sum": (lambda: M.sum(0), M, np.kron(np.ones((1, 2)), np.eye(3))),
    "max": (lambda: M.max(1), M, np.kron(np.eye(2), np.ones((1, 3)))),
    "softmax": (lambda: sc.special.softmax(M, 1), M, np.kron(np.eye(2), np.ones((3, 3)))),
    "cumsum": (lambda: sc.cumsum(M, 1), M, np.kron(np.eye(2), np.tri(3))),
    "fft": (lambda: sc.fft.rfft(M, axis=1).real, M, np.kron(np.eye(2), np.ones((2, 3)))),
    "a dense matrix": (lambda: np.where(BAND, 2.0, 0) @ X, X, BAND),
    "from the right": (lambda: X @ np.tri(N), X, np.tri(N).T),
    "products in between": (lambda: sc.einsum("ij,kj->ki", M, np.array([[1.0, 0, 0], [0, 1, 1]])).ravel(), M,
                            [[1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1]]),
    "an unknown matrix": (lambda: sc.einsum("ij,jk->ki", M, sc.exp(X).reshape(3, 2)).ravel(), M,
                          np.kron(np.ones((2, 1)), np.kron(np.eye(2), np.ones((1, 3))))),
    "a sparse matrix": (lambda: sc.sparse.asarray(SPARSE) @ X, X, SPARSE.toarray()),
    "sparse numbers": (lambda: sc.sparse.csr([0, 2, 2, 6], GRID % 3, X, (3, 3)) @ np.ones(3), X,
                       np.repeat(np.eye(3), [2, 0, 4], 0).T),
    "a loop": (lambda: sc.scan(lambda c, t: (c * t, c + t), X[0], X)[1], X, np.tri(N)),
    "backwards": (lambda: sc.scan(lambda c, t: (c * t, c + t), X[0], X, reverse=True)[1], X,
                  np.maximum(np.tri(N).T, np.eye(N)[[0] * N])),
    "rows of a loop": (lambda: sc.map(lambda r: r.sum(), M), M, np.kron(np.eye(2), np.ones((1, 3)))),
    "places that count": (lambda: sc.scan(lambda i, _: (i + 2, X[i]), sc.asarray(0), length=3)[1], X, np.eye(N)[::2]),
    "branches": (lambda: sc.cond(K > 0, lambda: X[::-1], lambda: X * 2.0), X, np.eye(N) + np.eye(N)[::-1]),
    "a checkpoint": (lambda: sc.checkpoint(lambda v: v[1:] * v[:-1])(X), X, np.eye(N)[1:] + np.eye(N)[:-1]),
    "systems in a batch": (lambda: sc.linalg.solve(sc.exp(M)[:, :2, None] * np.eye(2) + 1, M[:, 1:, None]), M,
                           np.kron(np.eye(2), np.ones((2, 3)))),
    "an arrow": (lambda: sc.concatenate([sc.reshape(sc.sum(X**2), 1), X[1:] * X[0] + X[1:] ** 3]), X,
                 np.eye(N) + np.eye(N)[0] + np.eye(N)[:, :1]),
    "a convolution": (lambda: sc.convolve(X, np.array([1.0, 2.0]), "valid"), X, np.eye(N)[1:] + np.eye(N)[:-1]),
}


@pytest.mark.parametrize("case", EXACT)
def test_patterns(case):
    make_, w, want = EXACT[case]
    np.testing.assert_array_equal(sc.sparse.jacobian_pattern(make_(), w).toarray(), np.asarray(want) != 0)


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("case", EXACT)
def test_numbers_are_those_of_the_dense_matrix(case, mode):
    y, w, _ = EXACT[case][0](), *EXACT[case][1:]
    f = sc.compile([sc.sparse.jacobian(y, w, mode), sc.jacobian(y, w), X, M, K], backend="numpy")
    sparse, dense, *_ = f(RNG.uniform(0.5, 2, N), RNG.uniform(0.5, 2, (2, 3)), 1)
    np.testing.assert_allclose(sparse.toarray(), dense.reshape(sparse.shape), rtol=1e-12)


# --- colours ----------------------------------------------------------------------------------------------------------


def bands(n: int, k: int):
    near = range(-k, k + 1)
    return sp.diags_array([np.ones(n - abs(o)) for o in near], offsets=near).tocsr().astype(bool)


def grid(m: int):
    """Neighbours in a square of m x m points."""
    eye, line = sp.eye_array(m), bands(m, 1)
    return (sp.kron(line, eye) + sp.kron(eye, line)).tocsr().astype(bool)


def arrow(n: int, tip: int):
    out = np.eye(n, dtype=bool)
    out[tip] = out[:, tip] = True
    return sp.csr_array(out)


#: Patterns, and the colours of columns and of stars. CasADi 3.8 takes as many, but 5 for the star of a grid of 10.
COLORS = {"diagonal": (bands(20, 0), 1, 1), "tridiagonal": (bands(20, 1), 3, 3), "band of 5": (bands(40, 2), 5, 5),
          "band of 11": (bands(60, 5), 11, 11), "grid of 5": (grid(5), 6, 5), "grid of 10": (grid(10), 7, 6),
          "arrow": (arrow(30, 0), 30, 2), "arrow up": (arrow(30, 29), 30, 2),
          "dense": (sp.csr_array(np.ones((7, 7), bool)), 7, 7)}


@pytest.mark.parametrize("name", COLORS)
def test_number_of_colors(name):
    pattern, columns, stars = COLORS[name]
    assert (column_colors(pattern).max() + 1, star_colors(pattern).max() + 1) == (columns, stars)


@pytest.mark.parametrize("seed", range(30))
def test_colors_tell_entries_apart(seed):
    rng = np.random.default_rng(seed)
    p = sp.random_array((rng.integers(1, 30), rng.integers(1, 30)), density=rng.uniform(0, 0.3), rng=rng).tocsr()
    p = p.astype(bool)
    colors = column_colors(p)
    for i in range(p.shape[0]):
        mine = colors[p.indices[p.indptr[i]:p.indptr[i + 1]]]
        assert np.unique(mine).size == mine.size
    s = sp.random_array((30, 30), density=rng.uniform(0, 0.2), rng=rng).tocsr().astype(bool)
    s = (s + s.T).tocsr()
    colors = star_colors(s)
    dense = s.toarray()
    for i, j in zip(*np.nonzero(dense), strict=True):
        low, high = (i, j) if colors[i] < colors[j] else (j, i)
        assert np.sum(dense[high] & (colors == colors[low])) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_arrows_take_a_few_colors_of_both_ways(turned):
    p = np.eye(30, dtype=bool)
    p[:2] = p[:, 0] = True
    p = sp.csr_array(p.T if turned else p)
    assert two_way_colors(p, 30).number == 4
    assert two_way_colors(p, 4) is None
    assert two_way_colors(bands(20, 1), 3) is None


@pytest.mark.parametrize("seed", range(30))
def test_colors_of_both_ways_tell_entries_apart(seed):
    rng = np.random.default_rng(seed)
    p = rng.random((rng.integers(2, 30), rng.integers(2, 30))) < 0.1
    p[rng.integers(len(p))], p[:, rng.integers(p.shape[1])] = True, True
    p = sp.csr_array(p)
    ways = two_way_colors(p, 99)
    dense = p.toarray()
    for i, j, across in zip(*entries(p), ways.across, strict=True):
        line, colors, at = (dense[:, j], ways.rows, i) if across else (dense[i], ways.columns, j)
        assert colors[at] >= 0 and np.sum(line & (colors == colors[at])) == 1


def test_direction_is_that_of_fewer_colors():
    wide = sc.sparse.jacobian(sc.stack([X.sum(), X[0]]), X)  # of two rows
    assert 2 in [v.shape[0] for v in batches_of(wide)] and N not in [v.shape[0] for v in batches_of(wide)]


def batches_of(a):
    """What the numbers of a sparse Jacobian are picked from, one row a colour."""
    return [v for v in postorder([a.data.value]) if v.ndim == 2]


def test_size_of_a_large_hessian():
    n = 100_000
    x = sc.input("x", "float64", shape=(n,))
    cost = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    h = sc.sparse.hessian(cost, x)
    assert h.nnz == 3 * n - 2 and max(v.type.size for v in postorder([h.data.value])) == 3 * n


# --- Hessians ---------------------------------------------------------------------------------------------------------

Y = sc.input("y", "float64", shape=(2, 3))
COSTS = {
    "chain": lambda: (X[1:] * X[:-1] ** 2).sum() + sc.sin(X).sum(),
    "hub": lambda: (X * X[0]).sum(),
    "grid": lambda: ((Y[1:] - Y[:-1]) ** 4).sum() + sc.exp(Y[:, 1:] * Y[:, :-1]).sum(),
    "two": lambda: (X.reshape(2, 3) * Y**2).sum() + X[0] ** 3,
    "loop": lambda: sc.scan(lambda c, t: (c * sc.cos(t), c), X[0], X)[0],
    "dense": lambda: sc.linalg.norm(X),
    "linear": lambda: X.sum() + Y[0, 0] ** 2,
}


@pytest.mark.parametrize("name", COSTS)
def test_hessians(name):
    cost, wrt = COSTS[name](), {"x": X, "y": Y}
    both = [h(cost, wrt, disconnected="zero") for h in (sc.sparse.hessian, sc.hessian)]
    f = sc.compile([*both, X, Y], backend="numpy")
    sparse, dense, *_ = f(RNG.uniform(0.5, 2, N), RNG.uniform(0.5, 2, (2, 3)))
    for a in wrt:
        for b in wrt:
            got = sparse[a][b]
            np.testing.assert_allclose(got.toarray(), dense[a][b].reshape(got.shape), rtol=1e-12, atol=1e-14)
            assert a != b or not (got != got.T).nnz  # both triangles are one number
    assert name != "linear" or sparse["x"]["x"].nnz == 0


def test_sizes_of_a_call_in_jit():
    @sc.jit
    def f(v):
        return sc.sparse.jacobian(v[1:] * v[:-1], v)

    for n in (3, 5):
        v = np.arange(1.0, n + 1)
        want = np.diag(v[1:]) @ np.eye(n - 1, n) + np.diag(v[:-1]) @ np.eye(n - 1, n, 1)
        np.testing.assert_array_equal(f(v).toarray(), want)


# --- errors -----------------------------------------------------------------------------------------------------------

V, Z = sc.input("v", "float64", shape=("n",)), sc.input("z", "complex128", shape=(3,))
LONG = sc.input("long", "float64", shape=(10**5,))


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: sc.sparse.jacobian(V * 2, V), ShapeError, r"axis 0 of %v : f64\[n\] is n"),
    (lambda: sc.sparse.jacobian_pattern(X[:K], X), ShapeError, "sizes that are numbers"),
    (lambda: sc.sparse.jacobian(Z * 2, Z), GradientError, "complex"),
    (lambda: sc.sparse.jacobian(X, X, mode="sideways"), GradientError, "'sideways' is no mode"),
    (lambda: sc.sparse.jacobian(X, Y), GradientError, "not made of %y"),
    (lambda: sc.sparse.hessian(X, X), GradientError, "not a scalar"),
    (lambda: sc.sparse.hessian(LONG.sum() ** 2, LONG), GradientError, r"1e\+10 entries at broadcast: it is not sparse"),
    (lambda: sc.sparse.jacobian(sc.cumsum(LONG), LONG), GradientError, "at cumsum: it is not sparse"),
    (lambda: sc.sparse.jacobian(sc.scan(lambda c, t: (c * t, c), LONG[0], LONG)[1], LONG), GradientError, "at scan"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_jacobians.py" in str(caught.value)
