"""Linear algebra under NumPy's names, against NumPy and SciPy: batches, complex numbers, no elements, mistakes.

Most programs run by their references: what compiled code does is in test_lapack.py and at the end.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import symc as sc
from symc.errors import DTypeError, InputError, LinAlgError, ShapeError
from symc.ir.attrs import Attrs
from symc.ir.batch import batch_graph
from symc.ir.op import Op
from symc.ir.ops import determinant, factor, matrix_functions, solve, spectral
from symc.ir.ops.kernel import results_of
from symc.ir.reference import run_values
from symc.ir.types import TensorType
from symc.ir.value import fresh_input, make

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_numbers_in_any_order_of_tests():
    global rng
    rng = np.random.default_rng(0)


def run(fn, *arrays, mode="reference", symbolic=False):
    """``fn`` of inputs like the arrays, at the arrays."""
    shapes = [tuple(f"{'abc'[k]}{n}" for n in range(x.ndim)) if symbolic else x.shape for k, x in enumerate(arrays)]
    inputs = [sc.input(f"x{k}", x.dtype, s) for k, (x, s) in enumerate(zip(arrays, shapes, strict=True))]
    return sc.compile(fn(*inputs), inputs, mode=mode)(*arrays)


def flat(out):
    return list(out) if isinstance(out, tuple | list) else [out]


def compare(fn, *arrays, want=None, **how):
    """The same from symbolic values as from arrays: numbers, shapes and dtypes."""
    got = flat(run(fn, *arrays, **how))
    expected = flat(fn(*arrays) if want is None else want)
    assert len(got) == len(expected)
    for g, w in zip(got, expected, strict=True):
        w = np.asarray(w)
        assert (np.shape(g), np.asarray(g).dtype) == (w.shape, w.dtype)
        wide = w.dtype.itemsize >= (16 if w.dtype.kind == "c" else 8)
        np.testing.assert_allclose(g, w, rtol=1e-9 if wide else 1e-4, atol=1e-10 if wide else 1e-4)


def normal(*shape, dtype="f8"):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def definite(*shape, dtype="f8"):
    x = normal(*shape, dtype=dtype)
    return x @ x.conj().mT + np.eye(shape[-1], dtype=dtype)


DTYPES = ["f4", "f8", "c8", "c16"]
SQUARE = [(3, 3), (2, 3, 3), (2, 1, 2, 2), (1, 1), (0, 0), (0, 3, 3), (2, 0, 0)]
ANY = [*SQUARE, (4, 2), (2, 4), (2, 3, 2), (0, 3), (3, 0), (0, 2, 3)]

SQUARE_FUNCTIONS = {
    "inv": np.linalg.inv, "det": np.linalg.det, "slogdet": np.linalg.slogdet,
    "power": lambda a: np.linalg.matrix_power(a, -3), "trace": np.linalg.trace, "diagonal": np.linalg.diagonal,
}
ANY_FUNCTIONS = {
    "svdvals": np.linalg.svdvals, "pinv": np.linalg.pinv, "rank": np.linalg.matrix_rank,
    "svd": np.linalg.svd, "thin svd": lambda a: np.linalg.svd(a, full_matrices=False), "qr": np.linalg.qr,
    "complete qr": lambda a: np.linalg.qr(a, "complete"), "r": lambda a: np.linalg.qr(a, "r"),
    "fro": lambda a: np.linalg.matrix_norm(a),
}
HERMITIAN_FUNCTIONS = {
    "cholesky": np.linalg.cholesky, "upper cholesky": lambda a: np.linalg.cholesky(a, upper=True),
    "eigh": np.linalg.eigh, "eigh U": lambda a: np.linalg.eigh(a, "U"), "eigvalsh": np.linalg.eigvalsh,
    "rank": lambda a: np.linalg.matrix_rank(a, hermitian=True),
    "svdvals": lambda a: np.linalg.svd(a, compute_uv=False, hermitian=True),
    "svd": lambda a: np.linalg.svd(a, hermitian=True), "pinv": lambda a: np.linalg.pinv(a, hermitian=True),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SQUARE_FUNCTIONS)
def test_square(name, dtype):
    for shape in SQUARE:
        compare(SQUARE_FUNCTIONS[name], normal(*shape, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ANY_FUNCTIONS)
def test_any_shape(name, dtype):
    for shape in ANY:
        if name == "pinv" and 0 in shape[-2:]:
            continue  # NumPy gives an empty matrix of another dtype
        compare(ANY_FUNCTIONS[name], normal(*shape, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", HERMITIAN_FUNCTIONS)
def test_hermitian(name, dtype):
    for shape in SQUARE:
        if name != "pinv" or shape[-1]:
            compare(HERMITIAN_FUNCTIONS[name], definite(*shape, dtype=dtype))


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh", "pinv"])
def test_one_triangle_is_read(name):
    fn, a = HERMITIAN_FUNCTIONS[name], definite(3, 3, dtype="c16")
    garbage = a + 100 * np.triu(normal(3, 3), 1)
    compare(fn, garbage, want=fn(a))
    upper = HERMITIAN_FUNCTIONS["eigh U"]
    compare(upper, a + 100 * np.tril(normal(3, 3), -1), want=upper(a))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_are_complex(dtype):
    for shape in SQUARE:
        a = normal(*shape, dtype=dtype)
        wide = np.result_type(dtype, "c8")
        w, v = np.linalg.eig(a)
        compare(np.linalg.eig, a, want=[w.astype(wide), v.astype(wide)])
        compare(np.linalg.eigvals, a, want=np.linalg.eigvals(a).astype(wide))


@pytest.mark.parametrize(("a", "b"), [
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 3)),
    ((3, 3), (4, 2, 3, 1)), ((2, 1, 3, 3), (4, 3, 2)),
    ((1, 1), (1,)), ((0, 0), (0,)), ((0, 0), (0, 2)), ((2, 2), (2, 0)), ((0, 2, 2), (2,)),
    ((2, 2), (0, 2, 1)),
])  # fmt: skip
def test_solve_as_numpy(a, b):
    for dtype in ("f8", "c16"):
        x, y = normal(*a, dtype=dtype), normal(*b, dtype=dtype)
        compare(np.linalg.solve, x, y)
        if 1 not in a:  # a symbolic size does not stretch
            compare(np.linalg.solve, x, y, symbolic=True)
        compare(lambda a, b: sc.linalg.lu_solve(sc.linalg.lu_factor(a), b), x, y, want=np.linalg.solve(x, y))
        compare(lambda a, b: sc.linalg.lu_solve(sc.linalg.lu_factor(a), b, trans=2), x, y,
                want=np.linalg.solve(x.conj().mT, y))
        x = np.tril(x) + 3 * np.eye(a[-1])
        compare(lambda a, b: sc.linalg.solve_triangular(a, b, lower=True), x, y, want=np.linalg.solve(x, y))
        compare(lambda a, b: sc.linalg.solve_triangular(a, b, "T"), x.mT, y, want=np.linalg.solve(x, y))
        want = np.linalg.solve(x @ x.conj().mT, y)
        for lower in (True, False):
            compare(lambda a, b, lower=lower: sc.linalg.cho_solve(sc.linalg.cho_factor(a, lower), b),
                    x @ x.conj().mT, y, want=want)


def test_what_is_assumed_of_a_matrix_is_read_of_it():
    b = normal(3, 2)
    for a, how, read in ((normal(3, 3), "lower triangular", np.tril), (normal(3, 3), "upper triangular", np.triu),
                         (definite(3, 3), "pos", np.tril), (normal(3, 3), "gen", lambda x: x)):  # fmt: skip
        want = np.linalg.solve(read(a) if how != "pos" else a, b)
        garbage = a + 100 * (np.ones((3, 3)) - np.abs(np.sign(read(np.ones((3, 3))))))
        compare(lambda a, b, how=how: sc.linalg.solve(a, b, assume_a=how), garbage, b, want=want)
    with pytest.raises(InputError, match="did you mean 'lower triangular'"):
        sc.linalg.solve(normal(2, 2), normal(2), assume_a="lower trianglar")


def test_unit_diagonals_are_not_read():
    a, b = normal(3, 3), normal(3)
    want = scipy.linalg.solve_triangular(a, b, unit_diagonal=True)
    compare(lambda a, b: sc.linalg.solve_triangular(a, b, unit_diagonal=True), a, b, want=want)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 0)])
def test_lu(shape):
    for dtype in ("f8", "c8"):
        a = normal(*shape, dtype=dtype)
        p, low, upper = run(sc.linalg.lu, a)
        np.testing.assert_allclose(p @ low @ upper, a, rtol=1e-4, atol=1e-5)
        assert np.all(np.triu(low, 1) == 0) and np.all(np.tril(upper, -1) == 0)
        assert np.all(np.diagonal(low, axis1=-2, axis2=-1) == 1)
        if len(shape) == 2 and shape[0]:
            compare(sc.linalg.lu, a, want=[x.astype(dtype) for x in scipy.linalg.lu(a)])
            compare(lambda a: sc.linalg.lu(a, permute_l=True), a, want=scipy.linalg.lu(a, permute_l=True))
            p, low, upper = run(lambda a: sc.linalg.lu(a, p_indices=True), a)
            np.testing.assert_allclose(low[p] @ upper, a, rtol=1e-4, atol=1e-5)


# --- equations without a solution -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [
    ((4, 2), (4,)), ((4, 2), (4, 3)), ((2, 4), (2, 3)), ((3, 3), (3,)), ((4, 2), (4, 0)),
])  # fmt: skip
def test_least_squares(a, b):
    for dtype in ("f8", "c16"):
        x, y = normal(*a, dtype=dtype), normal(*b, dtype=dtype)
        *want, rank, s = np.linalg.lstsq(x, y)
        compare(np.linalg.lstsq, x, y, want=[*want, np.int64(rank), s])


def test_least_squares_of_low_rank():
    a, b = np.outer(np.arange(1.0, 5), [1.0, 2.0]), normal(4)
    x, _, rank, s = run(np.linalg.lstsq, a, b)
    want = np.linalg.lstsq(a, b)
    np.testing.assert_allclose(x, want[0])
    assert rank == want[2] == 1
    np.testing.assert_allclose(s, want[3], atol=1e-14)
    x, _, rank, _ = run(lambda a, b: np.linalg.lstsq(a, b, rcond=-1), a + 1e-9 * normal(4, 2), b)
    assert rank == 2


def test_tolerances():
    a = np.diag([1.0, 1e-3, 1e-9])
    stack = np.stack([a, a])
    for fn in (np.linalg.pinv, lambda a: np.linalg.pinv(a, 1e-2), lambda a: np.linalg.pinv(a, rtol=None)):
        compare(fn, a)
    compare(lambda a: np.linalg.pinv(a, np.array([1e-2, 1e-12])), stack)
    for fn in (lambda a: np.linalg.matrix_rank(a, 1e-2), lambda a: np.linalg.matrix_rank(a, rtol=1e-6)):
        compare(fn, a)
    compare(lambda a: np.linalg.matrix_rank(a, np.array([1e-2, 1e-12])), stack)
    compare(lambda a: np.linalg.matrix_rank(a, rtol=np.array([1e-2, 1e-12])), stack)
    compare(np.linalg.matrix_rank, np.zeros(3))
    compare(np.linalg.matrix_rank, np.ones(3))


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_and_conditions(order):
    for dtype in ("f8", "c16"):
        compare(lambda a: np.linalg.norm(a, order), normal(4, 3, dtype=dtype))
        compare(lambda a: np.linalg.norm(a, order, axis=(0, 2), keepdims=True), normal(4, 2, 3, dtype=dtype))
        compare(lambda a: np.linalg.matrix_norm(a, ord="fro" if order is None else order), normal(2, 3, 3, dtype=dtype))
        compare(lambda a: np.linalg.cond(a, order), normal(2, 3, 3, dtype=dtype))
    if order in (None, 2, -2):
        compare(lambda a: np.linalg.cond(a, order), np.zeros((2, 2)))


# --- others -----------------------------------------------------------------------------------------------------------


def test_tensor_equations():
    a, b = normal(2, 3, 6), normal(2, 3)
    compare(np.linalg.tensorsolve, a, b)
    compare(lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)), normal(6, 2, 3), normal(2, 3))
    compare(np.linalg.tensorinv, normal(4, 6, 8, 3))
    compare(lambda a: np.linalg.tensorinv(a, 1), normal(6, 2, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_scipy_functions(dtype):
    a, b, c = normal(2, 2, dtype=dtype), normal(3, 2, dtype=dtype), normal(3, dtype=dtype)
    compare(sc.linalg.expm, a, want=scipy.linalg.expm(a))
    compare(sc.linalg.expm, np.stack([a, 2 * a]), want=scipy.linalg.expm(np.stack([a, 2 * a])))
    compare(sc.linalg.block_diag, a, b, c, want=scipy.linalg.block_diag(a, b, c))
    compare(sc.linalg.toeplitz, c, want=scipy.linalg.toeplitz(c))
    compare(sc.linalg.toeplitz, c, a[0], want=scipy.linalg.toeplitz(c, a[0]))
    compare(sc.linalg.khatri_rao, a, b, want=scipy.linalg.khatri_rao(a, b))
    compare(sc.linalg.kron, a, b, want=np.kron(a, b))


def test_names_are_those_of_numpy():
    missing = [n for n in np.linalg.__all__ if n not in sc.linalg.__all__ and n not in ("LinAlgError", "test")]
    assert missing == []
    out = sc.linalg.slogdet(sc.matrix("a"))
    assert out._fields == ("sign", "logabsdet") and type(out).__name__ == "SlogdetResult"
    assert sc.linalg.svd(sc.matrix("a"))._fields == ("U", "S", "Vh")
    assert sc.linalg.eigh(sc.matrix("a"))._fields == ("eigenvalues", "eigenvectors")
    assert sc.linalg.qr(sc.matrix("a"))._fields == ("Q", "R")


def test_integers_become_floats():
    a = np.array([[2, 1], [1, 3]])
    for fn in (np.linalg.inv, np.linalg.cholesky, np.linalg.eigh, np.linalg.det):
        compare(fn, a)
    compare(np.linalg.solve, a, np.array([1, 2], "i4"))
    compare(np.linalg.solve, a.astype("f4"), np.array([1, 2], "i4"))
    compare(np.linalg.solve, normal(2, 2, dtype="f4"), normal(2, dtype="c8"))
    compare(np.linalg.solve, normal(2, 2, dtype="c8"), normal(2))


def test_symbolic_sizes():
    a = normal(3, 3)
    for fn in (np.linalg.inv, np.linalg.det, np.linalg.svd, np.linalg.qr, np.linalg.pinv, np.linalg.matrix_rank):
        compare(fn, a, symbolic=True)
    for fn in (np.linalg.svdvals, np.linalg.pinv, np.linalg.qr, lambda a: np.linalg.pinv(a, rtol=None)):
        compare(fn, normal(2, 4), symbolic=True)
        compare(fn, normal(4, 2), symbolic=True)
    x, y = normal(4, 2), normal(4)
    np.testing.assert_allclose(run(np.linalg.lstsq, x, y, symbolic=True)[0], np.linalg.lstsq(x, y)[0])


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_mistakes_name_what_is_wrong():
    a, v, half = sc.input("a", "float64", (3, 4)), sc.vector("v"), sc.input("h", "float16", (2, 2))
    square = sc.input("s", "float64", (3, 3))
    for fn in (np.linalg.inv, np.linalg.cholesky, np.linalg.eigh, np.linalg.det, sc.linalg.lu_factor, sc.linalg.expm):
        with pytest.raises(ShapeError, match="the matrix must be square, not 3 by 4"):
            fn(a)
        with pytest.raises(ShapeError, match="a matrix has two axes, this has 1"):
            fn(v)
        with pytest.raises(DTypeError, match="not defined for float16"):
            fn(half)
    with pytest.raises(ShapeError, match="the matrix has 3 rows, the right side 4"):
        np.linalg.solve(square, sc.input("b", "float64", (4,)))
    with pytest.raises(ShapeError, match="the matrix has 3 rows, the right side 2") as e:
        np.linalg.solve(square, sc.input("b", "float64", (2, 3)))
    assert "b[..., None]" in str(e.value)
    with pytest.raises(ShapeError, match="leading axes differ"):
        np.linalg.solve(sc.input("a", "float64", (2, 3, 3)), sc.input("b", "float64", (4, 3, 1)))
    for wrong in (lambda: np.linalg.qr(a, "raw"), lambda: np.linalg.eigh(square, "X"),
                  lambda: np.linalg.pinv(a, 1, rtol=1), lambda: np.linalg.matrix_rank(a, 1, rtol=1),
                  lambda: sc.linalg.solve_triangular(square, v, trans="X")):
        with pytest.raises(InputError):
            wrong()


def test_sizes_that_differ_at_a_call():
    f = sc.compile(sc.linalg.inv(x := sc.matrix("x")), [x], mode="reference")
    with pytest.raises(ShapeError):
        f(np.ones((2, 3)))


FAILING = {
    "cholesky": (np.linalg.cholesky, -np.eye(2)), "inv": (np.linalg.inv, np.ones((2, 2))),
    "solve": (lambda a: np.linalg.solve(a, a), np.zeros((3, 3))),
    "triangular": (lambda a: sc.linalg.solve_triangular(a, a), np.diag([1.0, 0.0])),
    "svd": (np.linalg.svd, np.full((2, 2), np.nan)), "eig": (np.linalg.eig, np.full((2, 2), np.inf)),
    "batch": (np.linalg.cholesky, np.stack([np.eye(2), -np.eye(2)])),
}


@pytest.mark.parametrize("mode", ["reference", None])
@pytest.mark.parametrize("name", FAILING)
def test_what_has_no_result_names_the_line(name, mode):
    fn, a = FAILING[name]
    x = sc.input("x", "float64", a.shape)
    out = fn(x)
    f = sc.compile(out[0] if isinstance(out, tuple) else out, [x], **({"mode": mode} if mode else {}))
    for error in (np.linalg.LinAlgError, LinAlgError, sc.linalg.LinAlgError, sc.SymcError):
        with pytest.raises(error) as e:
            f(a)
    text = str(e.value)
    assert "test_linalg.py" in text and ("out = fn(x)" in text or "lambda" in text)


def test_a_determinant_of_a_singular_matrix_is_zero():
    compare(np.linalg.det, np.zeros((2, 2)))
    compare(np.linalg.slogdet, np.zeros((2, 2)))
    compare(np.linalg.det, np.array([[0.0, 1], [0, 2]]))


# --- compiled ---------------------------------------------------------------------------------------------------------


def calls_of(f, name):
    return str(f.plan).count(f"call {name}")


def test_a_matrix_is_factorized_once():
    a, b = sc.matrix("a"), sc.vector("b")
    x = np.linalg.solve(a, b)
    sign, logdet = np.linalg.slogdet(a)
    cost = (x**2).sum() + logdet
    f = sc.compile([x, sign, logdet, np.linalg.inv(a), np.linalg.det(a), sc.grad(cost, a)], [a, b])
    assert calls_of(f, "lu_factor") == 1
    n, m = normal(4, 4), normal(4)
    want = [np.linalg.solve(n, m), *np.linalg.slogdet(n), np.linalg.inv(n), np.linalg.det(n)]
    for g, w in zip(f(n, m), want, strict=False):
        np.testing.assert_allclose(g, w, rtol=1e-10)


@pytest.mark.parametrize(("values", "vectors"), [("eigvalsh", "eigh"), ("eigvals", "eig"), ("svdvals", "svd")])
def test_eigenvalues_come_with_their_vectors(values, vectors):
    """The gradient needs vectors; alone, the values are computed without."""
    a = sc.input("a", "float64", (3, 3))
    out = getattr(sc.linalg, values)(a)
    cost = (sc.abs(out) ** 3).sum()
    assert calls_of(sc.compile(cost, [a]), values) == 1
    f = sc.compile([cost, sc.grad(cost, a)], [a])
    assert calls_of(f, values + " ") == 0 and calls_of(f, vectors + " ") == 1
    n = normal(3, 3)
    for got, want in zip(f(n), sc.compile([cost, sc.grad(cost, a)], [a], mode="reference")(n), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)])
def test_singular_values_have_a_derivative_beside_all_vectors(shape):
    """NumPy's default asks for vectors that belong to no value; S does not depend on them, and costs nothing more."""
    a, n = sc.input("a", "float64", (None, None)), normal(*shape)
    s = np.linalg.svd(a)[1]
    u, _, vh = np.linalg.svd(n, full_matrices=False)
    np.testing.assert_allclose(sc.compile(sc.grad(s.sum(), a), [a])(n), u @ vh, rtol=1e-9, atol=1e-12)
    assert calls_of(sc.compile(list(np.linalg.svd(a)), [a]), "svdvals") == 0
    with pytest.raises(sc.GradientError, match="full_matrices=False"):
        sc.grad(np.linalg.svd(a)[0].sum(), a)


def test_equations_with_the_transpose_share_the_factors():
    a, b = sc.input("a", "float64", (3, 3)), sc.input("b", "float64", (3, 2))
    f = sc.compile([np.linalg.solve(a, b), np.linalg.solve(a.T, b), np.linalg.det(a)], [a, b])
    assert calls_of(f, "lu_factor") == 1
    n, m = normal(3, 3), normal(3, 2)
    for got, want in zip(f(n, m), [np.linalg.solve(n, m), np.linalg.solve(n.T, m), np.linalg.det(n)], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)
    alone = sc.compile(np.linalg.solve(a.T, b), [a, b])
    np.testing.assert_allclose(alone(n, m), np.linalg.solve(n.T, m))


def test_right_sides_of_one_matrix_are_columns():
    a, b = sc.input("a", "float64", (3, 3)), sc.input("b", "float64", (5, 3, 2))
    f = sc.compile(np.linalg.solve(a, b), [a, b])
    assert calls_of(f, "lu_factor") == 1 and "f64[5, 3, 3]" not in str(f.plan)
    n, m = normal(3, 3), normal(5, 3, 2)
    np.testing.assert_allclose(f(n, m), np.linalg.solve(n, m))


def test_vmap_solves_all_right_sides_at_once():
    a, b = sc.input("a", "float64", (3, 3)), sc.input("b", "float64", (5, 3))
    n, m = normal(3, 3), normal(5, 3)
    for fn in (np.linalg.solve, lambda a, b: sc.linalg.cho_solve((a, True), b), sc.linalg.solve_triangular,
               lambda a, b: sc.linalg.lu_solve(sc.linalg.lu_factor(a), b)):
        got = run(sc.vmap(fn, (None, 0)), n, m)
        np.testing.assert_allclose(got, np.stack([run(fn, n, row) for row in m]), rtol=1e-10)
        got = run(sc.vmap(fn, (0, None)), np.stack([n, 2 * n]), m[0])
        np.testing.assert_allclose(got, np.stack([run(fn, k * n, m[0]) for k in (1, 2)]), rtol=1e-10)
    out = sc.vmap(np.linalg.solve, (None, 0))(a, b)
    assert all(v.shape != (5, 3, 3) for v in sc.ir.traverse.postorder([out.value]) if not isinstance(v.type, tuple)
               and hasattr(v.type, "shape"))


OPS = list(dict.fromkeys(op for family in (factor, solve, determinant, spectral, matrix_functions)
                         for op in vars(family).values() if isinstance(op, Op) and op.facts.rounding == "norm"))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_batch_is_every_entry(op):
    """One more leading axis for some operands or all of them."""
    for arrays, attrs in list(op.samples())[:40]:
        arrays = [np.asarray(a) for a in arrays]
        if arrays[0].dtype != "f8":
            continue
        stacks = [np.stack([a, (1.5 * a).astype(a.dtype) if a.dtype.kind == "f" else a]) for a in arrays]
        count = len(arrays)
        for some in {*[tuple(k == only for k in range(count)) for only in range(count)], (True,) * count}:
            given = [s if b else a for s, a, b in zip(stacks, arrays, some, strict=True)]
            leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in arrays]
            wide = [fresh_input(TensorType(a.dtype, a.shape)) for a in given]
            batched = {x: (w, b) for x, w, b in zip(leaves, wide, some, strict=True)}
            out = batch_graph(results_of(make(op, leaves, Attrs(attrs))), batched, 2)
            got = run_values([v for v, _ in out], dict(zip(wide, given, strict=True)), {}, check=True)
            for k in range(2):
                one = op.reference(*[g[k] if b else g for g, b in zip(given, some, strict=True)], **attrs)
                for g, (_, b), w in zip(got, out, one if isinstance(one, tuple) else (one,), strict=True):
                    np.testing.assert_allclose(g[k] if b else g, w, rtol=1e-10, atol=1e-12)


def test_draws_with_a_covariance_that_is_computed():
    c = sc.input("c", "float64", (2, 2))
    x = sc.random.multivariate_normal(sc.random.key(0), [1.0, -1.0], c, shape=4000)
    f = sc.compile(x, [c])
    cov = np.array([[2.0, 0.6], [0.6, 0.5]])
    np.testing.assert_allclose(np.cov(f(cov).T), cov, atol=0.15)
    with pytest.raises(LinAlgError):
        f(-cov)
