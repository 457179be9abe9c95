"""NumPy's functions on arrays of unknown sizes: what is stretched, cut, left out, and written out of bounds."""

import itertools
import pickle

import numpy as np
import pytest

import symc as sc
from tests.ir.op_cases import results

RNG = np.random.default_rng(0)
M, X = RNG.normal(size=(5, 6)), RNG.normal(size=12)
S = M @ M.T
SAME = {
    "a row and a column": (lambda d: np.minimum(d, d[:, 1:2] + d[1]), S),
    "the last but one": (lambda x: x - x[:, -2:-1], M),
    "the first row": (lambda x: np.where(x > 0, x, x[:1]), M),
    "array_split": (lambda a: tuple(np.array_split(a, 5)), X),
    "split": (lambda a: tuple(np.split(a, 3)), X), "hsplit": (lambda a: tuple(np.hsplit(a, 2)), M),
    "delete": (lambda a: np.delete(a, [1, -1]), X), "delete a slice": (lambda a: np.delete(a, slice(1, 7, 2)), X),
    "delete by a mask": (lambda a: np.delete(a, a > 0), X), "delete a column": (lambda a: np.delete(a, 2, axis=1), M),
    "delete nothing": (lambda a: np.delete(a, []), X), "tril": (lambda a: a[np.tril_indices_from(a, -1)], S),
    "triu": (lambda a: a[np.triu_indices_from(a)], M), "reduceat": (lambda a: np.add.reduceat(a, [0, 4, 8]), X),
    "maxima": (lambda a: np.maximum.reduceat(a, [0, 4, 2], axis=1), M),
    "windows": (lambda a: np.lib.stride_tricks.sliding_window_view(a, 4), X),
    "blocks": (lambda a: np.lib.stride_tricks.sliding_window_view(a, (2, 3)), M),
    "windows of rows": (lambda a: np.lib.stride_tricks.sliding_window_view(a, 3, axis=0), M),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_same_as_numpy(name):
    f, a = SAME[name]
    x = sc.input("x", a.dtype, (None,) * a.ndim)
    for got, want in zip(results(sc.compile(f(x), [x], backend="numpy")(a)), results(f(a)), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want)


V = sc.input("v", "float64", ("n",))
WRITES = {
    "set": lambda v: v.at[12].set(0.0), "from the end": lambda v: v.at[-13].set(0.0),
    "add": lambda v: v.at[12].add(1.0),
    "multiply": lambda v: v.at[12].multiply(2.0), "max": lambda v: v.at[-13].max(9.0),
    "delete": lambda v: np.delete(v, 12),
    "split": lambda v: np.split(v, 5)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_out_of_bounds(name):
    """Places that an array turns out not to have are an error in the call; a longer one has them."""
    f = sc.compile(WRITES[name](V), [V], backend="numpy")
    with pytest.raises((sc.ShapeError, sc.IndexingError), match="12"):
        f(X)
    assert f(np.ones(15)).size


def test_out_of_bounds_in_a_trace():
    def rows(a):
        a = a.copy()
        row = a[0]
        row[6], a[-2, 1] = 0, 3
        return a

    f = sc.jit(rows)
    np.testing.assert_array_equal(f(np.ones((3, 7))), rows(np.ones((3, 7))))
    with pytest.raises(sc.ShapeError, match="6"):
        f(M)


def test_places_that_are_true():
    x, b = sc.matrix("x"), sc.scalar("b", "bool")
    f = sc.compile([x.at[True].set(1.0), x.at[False].set(1.0), x.at[b, 0].add(2.0)], [x, b], backend="numpy")
    for found in (True, False):
        all_ones, same, row = f(M, found)
        np.testing.assert_array_equal(all_ones, np.ones_like(M))
        np.testing.assert_array_equal(same, M)
        np.testing.assert_array_equal(row, np.vstack([M[:1] + 2.0 * found, M[1:]]))


def test_derivatives():
    sc.verify_grad(lambda a: sc.sliding_window_view(a, 3) ** 2, [X[:5]])
    sc.verify_grad(lambda x: x * x[:, :1], [M[:2, :3]])


def test_labels_of_states():
    w = sc.shared(np.zeros((3, 2)), "w", dims=("row", "column"))
    assert w.dims == (w * 2).dims == pickle.loads(pickle.dumps(w)).dims == ("row", "column")
    with pytest.raises(sc.InputError, match="labels 1"):
        sc.shared(np.zeros((3, 2)), dims="row")


@pytest.mark.parametrize("make", [lambda: sc.sliding_window_view(np.ones(3), 4),
                                  lambda: sc.sliding_window_view(np.ones((3, 3)), 2), lambda: np.split(V[:4], 3)])
def test_mistakes(make):
    with pytest.raises(sc.ShapeError, match="test_unknown_sizes"):
        sc.compile(make(), [V])(np.ones(2))


BOUNDS = ["-m", "1-m", "-(m//2)", "-(-m//2)", "-(-m//3)+1", "-(-m//2)-1", "m-n", "1-(m//2)", "1-n", "(m-3)//2",
          "-((m-3)//2)", "-m*m", "5-m", "-(m%3)", "-(-m%3)"]  # fmt: skip
SLICES = ["x[B:]", "x[:B]", "x[B::-1]", "x[:B:-1]", "x[::-1][B:]", "x[:B:2]", "x[B:n-1]", "x[1:B]", "z[:B]", "z[B::-1]"]


@pytest.mark.parametrize("bound", BOUNDS)
def test_bounds_that_are_sizes_are_cut_off_as_numpy_does(bound):
    """Whether they count from the front or from the end, which ``-(-m // 2)`` does not show; of constants as well,
    which nobody reads and no call checks."""
    x, y = sc.vector("x"), sc.vector("y")
    texts = [s.replace("B", bound) for s in SLICES]

    def computed(np_, x, n, m):
        return [eval(t, {"x": x, "z": np_.zeros(3), "n": n, "m": m}) * 1.0 for t in texts]

    f = sc.compile(computed(sc, x, x.shape[0], y.shape[0]), [x, y], mode="fast_compile")
    for n, m in itertools.product((0, 1, 2, 3, 7), repeat=2):
        given = np.arange(n) + 1.0
        for text, a, b in zip(texts, f(given, np.ones(m)), computed(np, given, n, m), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{text}, n={n}, m={m}")
