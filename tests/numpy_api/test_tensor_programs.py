"""Unmodified NumPy code on symbolic values, the page that lists the functions, and functions of smaller families."""

from pathlib import Path

import numpy as np
import pytest
import scipy.special

import symc as sc
from symc.numpy_api.__main__ import page
from symc.tensors.inputs import input as sc_input
from tests.numpy_api.numpy_compare import check, evaluate


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def zscore(x):
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


def pairwise_distances(x):
    return np.sqrt(np.maximum(np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1), 0))


def black_scholes(s):
    k, t, r, v = 1.5, 2.0, 0.05, 0.3
    s = np.abs(s) + 0.5
    d1 = (np.log(s / k) + (r + v * v / 2) * t) / (v * np.sqrt(t))
    tail = lambda d: 1 / (1 + np.exp(-1.702 * d))
    return s * tail(d1) - k * np.exp(-r * t) * tail(d1 - v * np.sqrt(t))


def moving_average(x):
    total = np.cumsum(np.concatenate([np.zeros_like(x[:1]), x]), axis=0)
    return (total[2:] - total[:-2]) / 2


def huber(x, delta=1.0):
    a = np.abs(x)
    return np.where(a <= delta, 0.5 * x * x, delta * (a - 0.5 * delta))


def normalized_cross_correlation(x):
    a, b = x[0], x[-1]
    a, b = a - np.mean(a), b - np.mean(b)
    return np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))


def rotation(x):
    angle = x[0, 0]
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, -s]), np.stack([s, c])]) @ x[:2]


def polynomial_features(x):
    columns = [np.ones(x.shape[0])]
    for i in range(x.shape[1]):
        for j in range(i, x.shape[1]):
            columns.append(x[:, i] * x[:, j])
    return np.column_stack(columns)


def hartley_entropy(x):
    p = softmax(x)
    return -np.einsum("ij,ij->i", p, np.log(p))


def laplacian(x):
    p = np.pad(x, 1, mode="edge")
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * x


PROGRAMS = [
    rosenbrock,
    softmax,
    zscore,
    pairwise_distances,
    black_scholes,
    moving_average,
    huber,
    normalized_cross_correlation,
    rotation,
    polynomial_features,
    hartley_entropy,
    laplacian,
]
X = np.random.default_rng(1).normal(size=(4, 3))


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_numpy_code_runs_as_written(fn):
    check(fn, X[:, 0] if fn is rosenbrock else X, rtol=1e-11, atol=1e-14)
    if fn is not polynomial_features:  # counts the columns in Python
        check(fn, X[:, 0] if fn is rosenbrock else X, symbolic=True, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("fn", [f for f in PROGRAMS if f is not polynomial_features], ids=lambda f: f.__name__)
def test_one_compiled_program_serves_every_size(fn):
    x = sc_input("x", "f64", ("n",) if fn is rosenbrock else ("n", "m"))
    f = sc.compile(fn(x), [x])
    for n, m in ((4, 3), (7, 5)):
        data = np.random.default_rng(n).normal(size=(n,) if fn is rosenbrock else (n, 2 if fn is rotation else m))
        np.testing.assert_allclose(f(data), fn(data), rtol=1e-11, atol=1e-13)


def test_indices_of_axes_and_shrinking_buffers_compile():
    x = sc_input("x", "f64", ("a", "b", "c"))
    data = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(sc.compile(np.tril(x), [x])(data), np.tril(data))
    y = sc_input("y", "f64", (4, 3))
    np.testing.assert_allclose(sc.compile(np.unwrap(y * 7), [y])(X), np.unwrap(X * 7))


def test_the_page_of_functions_is_current():
    text = (Path(__file__).parents[2] / "docs" / "numpy.md").read_text()
    assert text == page(), "run: python -m symc.numpy_api > docs/numpy.md"


def test_dtype_questions():
    x = sc_input("x", "f32", (2,))
    assert (
        sc.result_type(x, 1.5) == np.float32
        and sc.result_type(x, "int64") == np.float64
        and np.result_type(x, np.int16) == np.float32
    )
    assert (
        np.can_cast(x, "float64")
        and not sc.can_cast("float64", "float32")
        and sc.finfo(x).bits == 32
        and sc.iinfo("int16").max == 32767
    )
    assert (
        sc.isdtype(x.dtype, "real floating")
        and np.common_type(x, x) is np.float32
        and np.iscomplexobj(x) is False
        and np.isrealobj(x)
    )


INDEX = np.array([[0, 2, 1], [1, 0, 2]])
SELECTION = [
    lambda a: np.choose(INDEX, [a[0], a[1], a[2]]),
    lambda a: np.piecewise(a, [a < 0, a > 1], [lambda t: -t, 2.0, lambda t: t * t]),
    lambda a: np.piecewise(a, [a < 0], [-1.0]),
    lambda a: np.delete(a, 1, axis=0),
    lambda a: np.delete(a, [0, 3]),
    lambda a: np.insert(a, 1, 5.0, axis=1),
    lambda a: np.insert(a, -1, a[0], axis=0),
    lambda a: np.insert(a, 2, 7.0),
    lambda a: np.isin(a, a[1]),
    lambda a: np.isin(a, [0.5], invert=True),
    np.isposinf,
    np.isneginf,
    lambda a: np.array_equiv(a, X),
    lambda a: np.block([[a, a], [a[:1], a[1:2]]]),
    lambda a: np.block([a[0], 1.0]),
    lambda a: a[np.ix_([0, 2], [1, 0])],
    lambda a: a[np.diag_indices_from(a[:3])],
    lambda a: a[np.tril_indices_from(a)],
    lambda a: a[np.triu_indices_from(a, 1)],
    lambda a: np.nanargmax(a, axis=1),
    lambda a: np.nanargmin(a),
    lambda a: np.nancumsum(a, axis=0),
    lambda a: np.nancumprod(a),
    lambda a: np.amax(a),
    lambda a: np.amin(a, axis=0),
    lambda a: np.polyadd(a[0], a[1, :2]),
    lambda a: np.polysub(a[0, :1], a[1]),
    lambda a: np.polymul(a[0], a[1, :2]),
    lambda a: np.polyder(a[0]),
    lambda a: np.polyint(a[0], k=2.0),
    lambda a: np.correlate(a[0], a[1, :2]),
    lambda a: np.correlate(a[0, :2], a[1]),
    lambda a: np.correlate(a[0], a[1], "full"),
    lambda a: np.unwrap(a * 7),
    lambda a: np.unwrap(a * 7, axis=0),
    lambda a: np.lexsort((a[0], np.floor(a[1]))),
]


@pytest.mark.parametrize("k", range(len(SELECTION)))
def test_selection_and_polynomials(k):
    check(SELECTION[k], X, rtol=1e-12, atol=1e-14)


def test_indices_of_places():
    i = np.array([0, 5, 11])
    check(lambda a: np.unravel_index(a, (4, 3)), i)
    check(lambda a: np.ravel_multi_index((a, a % 3), (12, 3)), i)


SPECIAL = [
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "gammaln",
    "digamma",
    "expit",
    "logit",
    "log_expit",
    "entr",
    "ndtr",
    "ndtri",
    "psi",
]


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    from symc import special

    x = np.array([0.05, 0.3, 0.5, 0.9, -0.4, 2.5, 0.0])
    for data, tolerance in ((x, 1e-12), (x.astype("f4"), 2e-5)):
        t = sc_input("x", data.dtype, data.shape)
        (got,) = evaluate([getattr(special, name)(t)], [t], [data])
        assert got.dtype == data.dtype
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(got, getattr(scipy.special, name)(data), rtol=tolerance, atol=tolerance / 10)


def test_special_functions_of_two_and_stable_forms():
    from symc import special

    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 3.0])
    a, b = sc_input("x", "f64", (3,)), sc_input("y", "f64", (3,))
    got = evaluate(
        [
            special.xlogy(a, b),
            special.xlog1py(a, b),
            special.polygamma(2, b + 1),
            special.softplus(a * 500),
            special.relu(a - 1),
            special.gelu(a),
            special.silu(a),
            special.log1mexp(-b - 1),
            special.trigamma(a + 1),
            special.erf(sc.asarray([1, 2])),
        ],
        [a, b],
        [x, y],
    )
    ss = scipy.special
    want = [
        ss.xlogy(x, y),
        ss.xlog1py(x, y),
        ss.polygamma(2, y + 1),
        np.array([np.log(2), 500, 1000]),
        [0, 0, 1],
        x * ss.ndtr(x),
        x * ss.expit(x),
        np.log(-np.expm1(-y - 1)),
        ss.polygamma(1, x + 1),
        ss.erf([1, 2]),
    ]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12)
    with pytest.raises(sc.DTypeError, match="gammaln is not defined for complex"):
        special.gammaln(a * 1j)


def test_arguments_that_are_not_available_are_named():
    x = sc_input("x", "f64", (3,))
    with pytest.raises(sc.SymbolicValueError, match=r"np\.einsum_path on symbolic values.*einsum_call"):
        np.einsum_path("i->", x, einsum_call=True)
    with pytest.raises(sc.SymbolicValueError, match="out="):
        np.sum(x, out=np.zeros(()))
