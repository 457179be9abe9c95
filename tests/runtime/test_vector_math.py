"""The functions that vectorize inside kernels: their stated accuracy against mpmath, and special values as NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.tools.precise import exact_function

#: Ulp that the modules of symc.runtime.library state: f64, f32.
STATED = {"erf": (2.4, 3.0), "erfc": (3.1, 3.8), "erfcx": (5.5, 0.6), "exp2": (1.0, 1.0),
          "log2": (1.7, 1.7), "log10": (1.6, 2.2),
          "cbrt": (1.1, 1.2), "sinh": (1.8, 1.8), "cosh": (1.8, 1.8), "arcsinh": (2.6, 2.7), "arccosh": (2.6, 2.6),
          "arctanh": (1.7, 1.8), "arctan": (1.5, 2.0), "arcsin": (2.0, 2.0), "arccos": (1.5, 1.5),
          "sin": (1.5, 1.6), "cos": (1.5, 1.6), "tan": (3.1, 3.1),
          "gammaln": (2.2, 2.6), "digamma": (2.3, 2.3), "erfinv": (2.6, 2.9),
          "power": (1.4, 1.7), "hypot": (1.1, 1.1), "arctan2": (2.0, 2.0)}
#: Where the accuracy is stated, if not everywhere.
WHERE = {"log2": lambda x: x > 0, "log10": lambda x: x > 0, "gammaln": lambda x: x > 0, "digamma": lambda x: x > 0,
         "erfinv": lambda x: abs(x) < 1}
OF_TWO = ("power", "hypot", "arctan2")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, -1e30, 1e-40, -1e-40, np.inf, -np.inf, np.nan]


def applied(name, *leaves):
    return (getattr(sc, name, None) or getattr(sc.special, name))(*leaves)


def run(names, *arrays):
    leaves = [sc.input(n, a.dtype.name, shape=("n",)) for n, a in zip("xy", arrays, strict=False)]
    f = sc.compile(tuple(applied(n, *leaves) for n in names), leaves)
    return dict(zip(names, f(*arrays), strict=True))


def check_accuracy(names, dtype, arrays):
    import mpmath

    got = run(names, *arrays)
    with mpmath.workprec(160):
        for name in names:
            op = applied(name, *[sc.input("x", dtype, ("n",)) for _ in arrays]).value.op
            function, stated, seen = exact_function(op), STATED[name][dtype == "f4"], 0
            for k, xs in enumerate(zip(*arrays, strict=True)):
                if name in WHERE and not WHERE[name](xs[0]):
                    continue
                want = function(*(mpmath.mpf(float(x)) for x in xs))
                near = np.dtype(dtype).type(float(want))
                if not np.isfinite(near):
                    continue
                seen += 1
                error = abs(mpmath.mpf(float(got[name][k])) - want) / float(np.spacing(abs(near)))
                assert error <= stated, (name, xs, got[name][k], near, float(error))
            assert seen > 200, name


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_one_number_keep_their_stated_accuracy(dtype):
    rng = np.random.default_rng(0)
    top = 88 if dtype == "f4" else 709
    x = np.concatenate([rng.uniform(-top, top, 200), rng.normal(size=300) * 2, rng.uniform(-1, 1, 300),
                        1 + rng.normal(size=100) * 1e-2, np.exp2(rng.uniform(-120, 120, 100)),
                        1 - np.exp2(-np.arange(1.0, 25 if dtype == "f4" else 54))]).astype(dtype)
    with np.errstate(all="ignore"):
        check_accuracy([n for n in STATED if n not in OF_TWO], dtype, [x])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_two_numbers_keep_their_stated_accuracy(dtype):
    rng = np.random.default_rng(1)
    n, top = 600, 80 if dtype == "f4" else 700
    x = np.exp2(np.concatenate([rng.uniform(-100, 100, n), rng.normal(size=n)])).astype(dtype)
    y = (rng.uniform(-top, top, 2 * n) / np.maximum(abs(np.log(x.astype("f8"))), 0.1)).astype(dtype)
    check_accuracy(OF_TWO, dtype, [x, y])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_special_values_are_those_of_numpy(dtype):
    from scipy import special

    x = np.array(SPECIAL, dtype)
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(x, x))
    got = run([n for n in STATED if n not in OF_TWO], x) | run(OF_TWO, a, b)
    with np.errstate(all="ignore"):
        for name, y in got.items():
            want = getattr(np, name, None) or getattr(special, name)
            want = (want(a, b) if name in OF_TWO else want(x.astype("f8"))).astype(dtype)
            if name == "gammaln":
                want[x == -np.inf] = np.inf  # the limit, and what C says; SciPy has -inf
            if name == "erfinv":
                want = np.where(x == 0, x, want)  # it is odd; SciPy loses the sign
            np.testing.assert_allclose(y, want, rtol=8 * np.finfo(dtype).eps, atol=0, err_msg=name)
            known = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(y[known]), np.signbit(want[known]), err_msg=name)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 17])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_exponentials_that_vanish_are_zero(dtype, n):
    """LLVM takes a factor that all have out of a sum: what is left of each must be 0 too, or the sum is its rest."""
    x = sc.input("x", dtype, shape=("k", n))
    f = sc.compile([sc.sum(sc.exp(-abs(x)), axis=1), sc.logsumexp(x, axis=1), sc.sum(sc.exp(x), axis=1),
                    sc.sum(sc.exp(-x * x), axis=1), sc.sum(sc.special.erfc(abs(x)), axis=1)], [x])
    for away in (-np.inf, -1e4, -800.0):
        gone, whole, *others = f(np.full((3, n), away, dtype))
        assert not gone.any() and not any(a.any() for a in others)
        np.testing.assert_allclose(whole, away + np.log(n) if np.isfinite(away) else away, rtol=1e-6)


COMPLEX = ["exp", "log", "sqrt", "sin", "cos", "sinh", "cosh"]


@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_complex_numbers_keep_their_stated_accuracy(name):
    """Each part by itself, also of logarithms next to the unit circle; special values as NumPy's."""
    import mpmath

    rng, n = np.random.default_rng(2), 500
    z = (rng.normal(size=(2, n)) * 10 ** rng.uniform(-3, 1, (2, n))).T.copy().view("c16")[:, 0]
    z[: n // 4] = np.exp(1j * rng.uniform(0, 7, n // 4)) * (1 + 1e-9 * rng.normal(size=n // 4))
    x = np.array([*SPECIAL, 709.5, -710.2, 800, 1e308, 1e-310, 1e10])
    edges = np.add.outer(x, np.zeros_like(x)).astype("c16")
    edges.imag = x
    edges = edges.ravel()
    (got,) = run([name], np.concatenate([z, edges])).values()
    with mpmath.workprec(160):
        for a, b in zip(z, got, strict=False):
            want = getattr(mpmath, name)(mpmath.mpc(a.real, a.imag))
            for part, exactly in ((b.real, want.real), (b.imag, want.imag)):
                assert abs(part - exactly) <= 3.0 * float(np.spacing(abs(float(exactly)))), (a, b, want)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(edges)
    for part, exactly in ((got[n:].real, want.real), (got[n:].imag, want.imag)):
        np.testing.assert_allclose(abs(part), abs(exactly), rtol=1e-14, atol=1e-322)
        finite = np.isfinite(edges) & ~np.isnan(exactly)
        np.testing.assert_array_equal(np.signbit(part[finite]), np.signbit(exactly[finite]))
