"""Sparse values against SciPy: formats, dtypes, empty rows, no entries, sizes that come with calls, derivatives."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import symc as sc
from symc.errors import DTypeError, ExecutionError, IndexingError, InputError, ShapeError
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler

FORMATS = ["csr", "csc", "coo"]
DTYPES = ["float32", "float64", "complex128", "complex64", "int64", "int32"]
SHAPES = [(6, 9, 0.3), (9, 6, 0.5), (5, 5, 0.0), (1, 7, 0.9), (7, 1, 0.4), (0, 4, 0.0), (4, 0, 0.0), (40, 30, 0.05)]


def matrix(n, m, density, format, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n, m)) < density, numbers((n, m), dtype, seed), 0).astype(dtype)
    return sp.coo_array(dense).asformat(format)


def numbers(shape, dtype="float64", seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 4
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def dense_of(x):
    return x.toarray() if sp.issparse(x) else np.asarray(x)


def close(got, want, dtype="float64"):
    got, want = dense_of(got), dense_of(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4 if np.dtype(dtype).char in "fF" else 1e-10, atol=1e-5)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_products_of_all_sizes_by_one_function(format, dtype, index_dtype):
    a = sc.sparse.input("a", format, dtype, index_dtype=index_dtype)
    x, y = sc.input("x", dtype, ("m",)), sc.input("y", dtype, ("n",))
    xs, ys = sc.input("xs", dtype, ("m", "k")), sc.input("ys", dtype, ("k", "n"))
    f = sc.compile([a @ x, a @ xs, a.T @ y, y @ a, ys @ a, a.toarray()], [a, x, xs, y, ys])
    counts = set()
    for k, (n, m, density) in enumerate([(n, m, d) for n, m, d in SHAPES for _ in range(2)]):
        s = matrix(n, m, density, format, dtype, seed=k)
        width = (1, 3, 47, 0)[k % 4]
        given = numbers(m, dtype), numbers((m, width), dtype), numbers(n, dtype), numbers((width, n), dtype)
        got = f(s, given[0], given[1], given[2], given[3])
        d = s.toarray()
        want = [d @ given[0], d @ given[1], d.T @ given[2], given[2] @ d, given[3] @ d, d]
        for g, w in zip(got, want, strict=True):
            close(g, w, dtype)
        counts.add(f.compile_count)
    assert len(counts) == 1, "compiled again"


@pytest.mark.parametrize("format", FORMATS)
def test_comparisons_and_diagonals(format):
    """Comparisons are of every place, as SciPy's: not of the objects."""
    a, b, x = sc.sparse.input("a", format), sc.sparse.input("b", "csr"), sc.input("x", "float64", ("n", "m"))
    offsets = range(-7, 10)
    f = sc.compile([[a != 0, a == 0, a > 0.5, a >= 0, a < b, a == x], [a.diagonal(k) for k in offsets]],
                   [a, b, x], backend="numpy")
    for n, m, density in [(6, 9, 0.5), (9, 6, 0.5), (1, 1, 1.0), (0, 4, 0.0), (4, 0, 0.0)]:
        s, t = matrix(n, m, density, format), matrix(n, m, density, "csr", seed=1)
        d, e = s.toarray(), t.toarray()
        compared, diagonals = f(s, t, d)
        for got, want in zip(compared, [d != 0, d == 0, d > 0.5, d >= 0, d < e, np.ones_like(d)], strict=True):
            assert np.array_equal(got, want)
        for k, got in zip(offsets, diagonals, strict=True):
            assert np.array_equal(got, np.diagonal(d, k) if -n <= k <= m else [])
    assert {a: 1}[a] == 1


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
def test_elementwise_and_reductions(format, dtype):
    a, row, col = sc.sparse.input("a", format, dtype), sc.input("row", dtype, ("m",)), sc.input("col", dtype, ("n", 1))
    b = sc.input("b", dtype, ("n", "m"))
    made = [-a, a * 3, 2 * a, a / 4, abs(a), a.power(2), a ** 3, a.astype("complex128"), a.conj(), a.T, a.H, a * row,
            a * col, a.multiply(b), b * a, a + a, a - a * 0.5, a.sum(), a.sum(0), a.sum(1), a.mean(), a.mean(1),
            a.diagonal(), a.trace(), a + b, a.tocsr(), a.tocsc(), a.tocoo(), a.T.tocsr()]
    if dtype != "int64":
        made += [a.sin(), a.tanh()]
    f = sc.compile(made, [a, row, col, b])
    for n, m, density in SHAPES[:-2]:
        if n and m:
            s, r, c, e = matrix(n, m, density, format, dtype), numbers(m, dtype), numbers((n, 1), dtype), numbers(
                (n, m), dtype)
            d = s.toarray()
            want = [-d, d * 3, 2 * d, d / 4, abs(d), d ** 2, d ** 3, d.astype("complex128"), d.conj(), d.T, d.conj().T,
                    d * r, d * c, d * e, e * d, d + d, d - d * 0.5, d.sum(), d.sum(0), d.sum(1), d.mean(), d.mean(1),
                    np.diagonal(d), np.trace(d), d + e, d, d, d, d.T]
            want += [np.sin(d), np.tanh(d)] if dtype != "int64" else []
            for g, w in zip(f(s, r, c, e), want, strict=True):
                close(g, w, dtype)


def test_results_are_arrays_of_scipy_in_their_format():
    for format in FORMATS:
        a = sc.sparse.input("a", format)
        same, other = sc.compile([a * 2, a.T], [a])(matrix(3, 4, 0.5, format))
        assert type(same) is getattr(sp, f"{format}_array") and same.shape == (3, 4)
        assert other.format == {"csr": "csc", "csc": "csr", "coo": "coo"}[format] and other.shape == (4, 3)


@pytest.mark.parametrize("first", FORMATS)
@pytest.mark.parametrize("second", FORMATS)
def test_entries_that_are_data(first, second):
    a, b = sc.sparse.input("a", first), sc.sparse.input("b", second, nnz="p")
    c = sc.sparse.input("c", second, shape=("m", "k"), nnz="q")
    f = sc.compile([a + b, a - b, a.multiply(b), a @ c, (a * b).eliminate_zeros()], [a, b, c])
    for n, m, density in SHAPES:
        s, t = matrix(n, m, density, first), matrix(n, m, density, second, seed=7)
        u = matrix(m, 3, 0.4, second, seed=3)
        d, e = s.toarray(), t.toarray()
        got = f(s, t, u)
        for g, w in zip(got, [d + e, d - e, d * e, d @ u.toarray(), d * e], strict=True):
            close(g, w)
        assert got[4].nnz == np.count_nonzero(d * e)


@pytest.mark.parametrize("format", FORMATS)
def test_dense_to_sparse_and_back(format):
    x = sc.matrix("x")
    f = sc.compile([sc.sparse.fromdense(x, format), sc.sparse.fromdense(x, format) @ x.T], [x])
    for seed in range(3):
        d = matrix(4 + seed, 5, 0.4, "csr", seed=seed).toarray()
        made, product = f(d)
        assert made.nnz == np.count_nonzero(d)
        close(made, d)
        close(product, d @ d.T)


@pytest.mark.parametrize("format", FORMATS)
def test_entries_at_one_place_are_added(format):
    data = np.array([1.0, 2.0, -5.0, 4.0])
    row, col = np.array([0, 0, 2, 0]), np.array([1, 1, 0, 2])
    want = sp.coo_array((data, (row, col)), shape=(3, 3)).toarray()
    numbers_ = sc.vector("d", shape=(4,))
    i, j = sc.vector("i", "int64", (4,)), sc.vector("j", "int64", (4,))
    ends = np.searchsorted(np.sort(row), np.arange(4))
    order = np.argsort(row, kind="stable")
    a = {"coo": sc.sparse.coo(i, j, numbers_, (3, 3)),
         "csr": sc.sparse.csr(ends, j[order], numbers_[order], (3, 3)),
         "csc": sc.sparse.csr(ends, j[order], numbers_[order], (3, 3)).T}[format]
    want = want.T if format == "csc" else want
    x = np.arange(3.0)
    got = sc.compile([a.toarray(), a @ x, abs(a), a.power(2), a.multiply(a), a.tocsr(), a.sum_duplicates(), i.sum()],
                     [numbers_, i, j])
    for g, w in zip(got(data, row, col), [want, want @ x, abs(want), want ** 2, want * want, want, want], strict=False):
        close(g, w)
    assert got(data, row, col)[6].nnz == 3
    twice = sp.csr_array((data, [1, 1, 2, 0], [0, 3, 3, 4]), shape=(3, 3))  # given so by SciPy
    b = sc.sparse.input("b")
    close(sc.compile(abs(b), [b])(twice), abs(twice.toarray()))
    assert twice.nnz == 4, "the caller's matrix stays as it is"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients(format, dtype):
    s = matrix(5, 4, 0.6, format, dtype)
    x0 = numbers((4, 3), dtype)
    a, x = sc.sparse.input("a", format, dtype), sc.input("x", dtype, ("m", 3))
    dense = sc.input("dense", dtype, ("n", "m"))

    def cost(m):
        return sc.sum(sc.abs(m @ x) ** 2) + sc.sum(sc.real(m.T @ (m @ x[:, 0])))

    by_pattern, by_x, plain, plain_x = sc.compile(
        [sc.grad(cost(a), a), sc.grad(cost(a), x), sc.grad(cost(dense), dense), sc.grad(cost(dense), x)],
        [a, x, dense])(s, x0, s.toarray())
    assert by_pattern.format == format
    close(by_pattern, np.where(s.toarray() != 0, plain, 0))
    close(by_x, plain_x)


def test_derivatives_of_all_orders():
    s = matrix(5, 4, 0.6, "csr")
    a, x, data = sc.sparse.asarray(s), sc.vector("x", shape=(4,)), sc.vector("data", shape=(s.nnz,))
    sc.verify_grad(lambda d, v: sc.sum(sc.tanh(a.with_data(d) @ v)), [s.data, np.arange(4.0)])
    sc.verify_grad(lambda d, v: sc.sum(sc.sin(a.with_data(d).T @ v)), [s.data, np.arange(5.0)])
    sc.verify_grad(lambda u, v: sc.sum(sc.sparse.sampled(a, u, v).power(2).data), [numbers((5, 2)), numbers((2, 4))])
    y = a.with_data(data)
    cost = sc.sum(sc.sin(y @ x) ** 2)
    dense = sc.zeros((5, 4)).at[y.coordinates()].add(data)
    other = sc.sum(sc.sin(dense @ x) ** 2)
    got, want = sc.compile([[sc.hessian(c, data), sc.hessian(c, x), sc.hvp(c, data, data)] for c in (cost, other)],
                           [data, x])(s.data, np.arange(4.0))
    for g, w in zip(got, want, strict=True):
        close(g, w)


def test_tangents_have_the_pattern():
    s = matrix(5, 4, 0.6, "csr")
    a, x = sc.sparse.input("a"), sc.vector("x", shape=("m",))
    f = sc.compile(sc.jvp(sc.sin(a @ x), a, a * 2), [a, x])
    v = np.arange(4.0)
    close(f(s, v), np.cos(s @ v) * (2 * (s @ v)))
    with pytest.raises(InputError, match="same pattern"):
        sc.jvp(a @ x, a, sc.sparse.input("b"))


def test_sampled_products():
    x, y = sc.input("x", shape=("n", "k")), sc.input("y", shape=("k", "m"))
    for format in FORMATS:
        a = sc.sparse.input("a", format)
        f = sc.compile(sc.sparse.sampled(a, x, y), [a, x, y])
        for n, m, density in SHAPES:
            s, u, v = matrix(n, m, density, format), numbers((n, 11)), numbers((11, m))
            close(f(s, u, v), np.where(s.toarray() != 0, u @ v, 0))


def test_batches():
    s = matrix(4, 5, 0.5, "csr")
    a = sc.sparse.asarray(s)
    xs, datas = numbers((3, 5)), numbers((3, s.nnz))
    close(sc.compile(sc.vmap(lambda v: a @ v)(sc.asarray(xs)), [])(), xs @ s.toarray().T)
    close(sc.compile(sc.vmap(lambda d, v: a.with_data(d) @ v)(sc.asarray(datas), sc.asarray(xs)), [])(),
          np.stack([sp.csr_array((d, s.indices, s.indptr), s.shape) @ v for d, v in zip(datas, xs)]))


def test_batches_of_patterns():
    ends, rows = np.array([[0, 2, 3], [0, 0, 3]]), np.array([[0, 2, 1], [1, 1, 0]])
    data = numbers((2, 3))
    f = sc.vmap(lambda e, i, d: sc.sparse.csr(e, i, d, (2, 3)) @ sc.asarray([1.0, 2.0, 3.0]))
    close(sc.compile(f(sc.asarray(ends), sc.asarray(rows), sc.asarray(data)), [])(), np.stack(
        [sp.csr_array((d, i, e), (2, 3)) @ [1.0, 2.0, 3.0] for e, i, d in zip(ends, rows, data)]))


def test_functions_of_elements_are_those_that_keep_zero():
    from symc.sparse.value import functions_of_elements

    a = sc.sparse.asarray(sp.csr_array([[0.0, 0.5], [-0.25, 0.0]]))
    assert {"sin", "tan", "tanh", "arcsin", "arctan", "expm1", "log1p", "sqrt", "sign"} <= functions_of_elements()
    for name in functions_of_elements():
        assert getattr(np, name)(0.0) == 0
        with np.errstate(all="ignore"):
            if name not in ("invert", "bitwise_count"):
                close(sc.compile(getattr(a, name)(), [])().toarray().astype(float), getattr(np, name)(
                    np.array([[0.0, 0.5], [-0.25, 0.0]])).astype(float))
    with pytest.raises(AttributeError, match="cos"):
        a.cos()


@needs_compiler
def test_on_a_device():
    a, x = sc.sparse.input("a"), sc.vector("x", shape=("m",))
    s, v = matrix(6, 9, 0.4, "csr"), np.arange(9.0)
    results = [a @ x, a.T @ (a @ x), sc.grad(sc.sum((a @ x) ** 2), a), a.sum(0)]
    with emulated_cuda():
        found = sc.compile(results, [a, x], device="cuda")(s, v)
    for g, w in zip(found, sc.compile(results, [a, x])(s, v), strict=True):
        close(g if sp.issparse(g) else g.numpy(), w)


def test_constants_of_scipy():
    s = matrix(4, 5, 0.5, "csr")
    x = sc.vector("x", shape=(5,))
    close(sc.compile(sc.sparse.asarray(s) @ x, [x])(np.arange(5.0)), s @ np.arange(5.0))
    close(sc.compile(sc.sparse.asarray(s) + s, [])(), 2 * s.toarray())
    a = sc.sparse.input("a")
    for f in (lambda: s @ x, lambda: x * s, lambda: sc.sin(s), lambda: sc.asarray(s)):
        with pytest.raises(sc.SymcError, match=r"sc\.sparse\.asarray"):
            f()
    with pytest.raises(IndexingError, match="picked out"):
        sc.sparse.input("A")[0, 1]
    with pytest.raises(InputError, match=r"toarray"):
        np.asarray(a)


def test_jit():
    calls = []

    @sc.jit
    def f(m, v):
        calls.append(0)
        return m @ v, m * 2, abs(m).sum(0)

    for n, m in ((3, 4), (5, 6), (8, 3)):
        for format in FORMATS:
            s = matrix(n, m, 0.5, format)
            product, double, total = f(s, np.arange(float(m)))
            close(product, s @ np.arange(float(m)))
            close(double, 2 * s.toarray())
            close(total, abs(s.toarray()).sum(0))
    assert len(calls) == 3, "one trace a format"


def raw():
    return sc.vector("indptr", "int64", ("p",)), sc.vector("indices", "int64", ("e",)), sc.vector("data", shape=("e",))


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("indptr, indices, error, said", [
    ([0, 2, 3], [0, 3, 1], IndexingError, "index 3 is out of bounds"),
    ([0, 2, 3], [0, -1, 1], IndexingError, "index -1 is out of bounds"),
    ([0, 4, 3], [0, 1, 1], ExecutionError, "not decrease"),
    ([1, 2, 3], [0, 1, 1], ExecutionError, "start with 0"),
    ([0, 2, 2], [0, 1, 1], ExecutionError, "end with that"),
    ([0, 2, 1 << 40], [0, 1, 1], ExecutionError, "end with that"),
    ([0, -5, 3], [0, 1, 1], ExecutionError, "not decrease"),
])
def test_patterns_that_are_none(format, indptr, indices, error, said):
    """Checked by native code, in every product, and as constants."""
    ends, inner, data = raw()
    n, m = ends.shape[0] - 1, 3
    make = getattr(sc.sparse, format)
    a = make(ends, inner, data, (n, m) if format == "csr" else (m, n))
    for result in (a @ sc.ones(a.shape[1]), a.T @ sc.ones(a.shape[0]), sc.sparse.sampled(
            a, sc.ones((a.shape[0], 2)), sc.ones((2, a.shape[1]))).data, a.toarray()):
        f = sc.compile(result, [ends, inner, data])
        if error is ExecutionError and result.ndim == 2:
            continue
        with pytest.raises(error, match=said) as e:
            f(np.array(indptr), np.array(indices), np.ones(3))
        assert "test_sparse.py" in str(e.value)
    with pytest.raises(error, match=said):
        make(np.array(indptr), np.array(indices), np.ones(3), (2, 3) if format == "csr" else (3, 2))


def test_coordinates_out_of_bounds():
    i, j, d = sc.vector("i", "int64", ("e",)), sc.vector("j", "int64", ("e",)), sc.vector("d", shape=("e",))
    a = sc.sparse.coo(i, j, d, (3, 2))
    for result in (a @ np.ones(2), a.toarray(), a.tocsr().data):
        f = sc.compile([result, i.sum() + j.sum()], [i, j, d])
        for k, l in (([3], [0]), ([-1], [0]), ([0], [2]), ([0], [-1])):
            with pytest.raises(IndexingError):
                f(np.array(k), np.array(l), np.ones(1))


def test_mistakes():
    a, x = sc.sparse.input("a"), sc.vector("x", shape=("m",))
    f = sc.compile(a @ x, [a, x])
    s = matrix(3, 4, 0.5, "csr")
    with pytest.raises(InputError, match=r"format 'csr', not one in format 'csc'"):
        f(s.tocsc(), np.ones(4))
    with pytest.raises(InputError, match=r"format 'csr', not ndarray"):
        f(s.toarray(), np.ones(4))
    with pytest.raises(ShapeError, match=r"must equal"):
        f(s, np.ones(5))
    close(f(a=s, x=np.ones(4)), s @ np.ones(4))
    with pytest.raises(ShapeError):
        sc.sparse.asarray(s) @ np.ones(5)
    with pytest.raises(ShapeError):
        sc.sparse.asarray(s) + sc.sparse.asarray(s.T.tocsr())
    with pytest.raises(ShapeError):
        sc.sparse.asarray(s) @ sc.ones((4, 2, 2))
    with pytest.raises(InputError, match="dense"):
        a + 1
    with pytest.raises(InputError, match="no sparse format"):
        sc.sparse.input("b", "bsr")
    with pytest.raises(DTypeError, match="float16"):
        sc.sparse.input("b", "csr", "float16")
    with pytest.raises(DTypeError, match="integers"):
        sc.sparse.csr(np.zeros(3), [0], [1.0], (2, 2))


def test_warm_process():
    code = ("import numpy as np, scipy.sparse as sp, symc as sc\n"
            "a, x = sc.sparse.input('a'), sc.vector('x', shape=('m',))\n"
            "f = sc.compile([a @ x, sc.grad(sc.sum((a @ x) ** 2), a)], [a, x])\n"
            "print(f(sp.eye_array(3, format='csr'), np.arange(3.0))[1].data)")
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
        assert done.stdout == "[0. 2. 8.]\n"


@pytest.mark.parametrize("write", [lambda x, A: x @ A, lambda x, A: A @ x, lambda x, A: x + A, lambda x, A: A - x,
                                   lambda x, A: A.dot(x), lambda x, A: A * x, lambda x, A: sc.exp(A) * x,
                                   lambda x, A: np.matmul(x, A)])  # fmt: skip
@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array"])
def test_scipys_matrices_beside_symbolic_values(write, kind):
    x, A = sc.matrix("x"), getattr(sp, kind)(np.eye(3))
    with pytest.raises(sc.SymcError) as e:
        write(x, A)
    assert "sc.sparse.asarray(A)" in str(e.value) and "test_sparse.py" in str(e.value)
    assert "_base.py" not in str(e.value)
