"""Gradients of draws: along the quantile function, whatever the sampler does."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st

import symc as sc
from symc.ir.ops import draw_reference as draws
from symc.ir.ops.random import gamma_slope
from tests.random.test_random import run
from tests.random.test_random_numbers import ids

#: parameters, SciPy's quantile function of (u, parameters): the gradient follows the quantile.
QUANTILES = [
    ("normal", dict(loc=0.3, scale=2.0), lambda u, p: st.norm.ppf(u, p["loc"], p["scale"])),
    ("uniform", dict(low=-1.0, high=2.0), lambda u, p: p["low"] + u * (p["high"] - p["low"])),
    ("exponential", dict(scale=2.0), lambda u, p: st.expon.ppf(u, scale=p["scale"])),
    ("weibull", dict(a=1.5, scale=2.0), lambda u, p: st.weibull_min.ppf(u, p["a"], scale=p["scale"])),
    ("pareto", dict(b=2.5), lambda u, p: st.pareto.ppf(u, p["b"])),
    ("triangular", dict(left=-1.0, mode=0.5, right=2.0),
     lambda u, p: st.triang.ppf(u, (p["mode"] - p["left"]) / (p["right"] - p["left"]), p["left"],
                                p["right"] - p["left"])),
    ("truncated_normal", dict(lower=-0.5, upper=1.5), lambda u, p: st.truncnorm.ppf(u, p["lower"], p["upper"])),
    ("gamma", dict(a=0.3), lambda u, p: sp.gammaincinv(p["a"], u)),
    ("gamma", dict(a=4.0, scale=2.0), lambda u, p: sp.gammaincinv(p["a"], u) * p["scale"]),
    ("gamma", dict(a=300.0), lambda u, p: sp.gammaincinv(p["a"], u)),
    ("loggamma", dict(a=0.6), lambda u, p: np.log(sp.gammaincinv(p["a"], u))),
    ("chisquare", dict(df=3.0), lambda u, p: 2 * sp.gammaincinv(p["df"] / 2, u)),
    ("wald", dict(mean=1.3, scale=0.8), lambda u, p: st.invgauss.ppf(u, p["mean"] / p["scale"], scale=p["scale"])),
]  # fmt: skip
CDFS = {
    "normal": lambda x, p: st.norm.cdf(x, p["loc"], p["scale"]),
    "uniform": lambda x, p: (x - p["low"]) / (p["high"] - p["low"]),
    "exponential": lambda x, p: st.expon.cdf(x, scale=p["scale"]),
    "weibull": lambda x, p: st.weibull_min.cdf(x, p["a"], scale=p["scale"]),
    "pareto": lambda x, p: st.pareto.cdf(x, p["b"]),
    "triangular": lambda x, p: st.triang.cdf(x, (p["mode"] - p["left"]) / (p["right"] - p["left"]), p["left"],
                                             p["right"] - p["left"]),
    "truncated_normal": lambda x, p: st.truncnorm.cdf(x, p["lower"], p["upper"]),
    "gamma": lambda x, p: sp.gammainc(p["a"], x / p.get("scale", 1)),
    "loggamma": lambda x, p: sp.gammainc(p["a"], np.exp(x)),
    "chisquare": lambda x, p: sp.gammainc(p["df"] / 2, x / 2),
    "wald": lambda x, p: st.invgauss.cdf(x, p["mean"] / p["scale"], scale=p["scale"]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "parameters", "quantile"), QUANTILES, ids=ids(QUANTILES))
def test_gradients_follow_the_quantile(name, parameters, quantile):
    leaves = {p: sc.scalar(p) for p in parameters}
    x = getattr(sc.random, name)(sc.random.key(3), shape=(60,), **leaves)
    tangents = [sc.jvp(x, leaf, sc.asarray(1.0)) for leaf in leaves.values()]
    f = run((x, tangents), *leaves.values())
    got, slopes = f(*parameters.values())
    u = CDFS[name](got, parameters)
    inside = (u > 1e-3) & (u < 1 - 1e-3)
    for p, slope in zip(parameters, slopes, strict=True):
        h = 1e-4 * max(1, abs(parameters[p]))
        moved = [quantile(u, {**parameters, p: parameters[p] + s}) for s in (-h, h)]
        np.testing.assert_allclose(slope[inside], ((moved[1] - moved[0]) / (2 * h))[inside], rtol=2e-5, atol=1e-6)


def test_slopes_of_every_shape():
    a = np.repeat(10.0 ** np.linspace(-3, 6, 28), 25)
    u = np.tile(np.concatenate([[1e-4], np.linspace(0.02, 0.98, 23), [0.9999]]), 28)
    h = 1e-4 * a
    with np.errstate(all="ignore"):
        low, x, high = (np.log(sp.gammaincinv(a + s, u)) for s in (-h, 0, h))
    usable = low > -600
    assert usable.mean() > 0.8
    got = draws.gamma_slope(a, np.where(usable, x, 0))
    want = (high[usable] - low[usable]) / (2 * h[usable])
    np.testing.assert_allclose(got[usable], want, rtol=1e-5)


def test_second_derivative_of_a_gamma_number():
    a = sc.scalar("a")
    x = sc.random.gamma(sc.random.key(3), a, (20,))
    first = sc.jvp(x, a, sc.asarray(1.0))
    f = run((x, first, sc.jvp(first, a, sc.asarray(1.0))), a)
    for number in (0.4, 3.0, 50.0):
        got, _, second = f(number)
        u, h = sp.gammainc(number, got), 1e-3 * number
        q = [sp.gammaincinv(number + s * h, u) for s in (-1, 0, 1)]
        np.testing.assert_allclose(second, (q[0] - 2 * q[1] + q[2]) / h**2, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(("name", "parameters", "mean"), [
    ("beta", dict(a=2.0, b=0.7), lambda a, b: a / (a + b)),
    ("t", dict(df=6.0, loc=0.5, scale=1.0), None),
    ("f", dict(dfnum=3.0, dfden=9.0), lambda m, n: n / (n - 2)),
    ("generalized_normal", dict(p=1.4), None),
])  # fmt: skip
def test_gradients_of_means(name, parameters, mean):
    """The gradient of a mean square (or mean) over many draws is that of the expected one."""
    n = 200_000
    leaves = [sc.scalar(p) for p in parameters]
    x = getattr(sc.random, name)(sc.random.key(8), shape=(n,), **dict(zip(parameters, leaves, strict=True)))
    value = x if mean is not None else x * x
    rows = run([sc.jvp(value, leaf, sc.asarray(1.0)) for leaf in leaves], *leaves)(*parameters.values())
    squares = {"t": lambda df, loc, scale: loc**2 + scale**2 * df / (df - 2),
               "generalized_normal": lambda p: sp.gamma(3 / p) / sp.gamma(1 / p)}  # fmt: skip
    expected = mean or squares[name]
    for k, row in enumerate(rows):
        h = 1e-5
        numbers = list(parameters.values())
        moved = [expected(*numbers[:k], numbers[k] + s, *numbers[k + 1 :]) for s in (-h, h)]
        error = 5 * row.std() / n**0.5
        assert abs(row.mean() - (moved[1] - moved[0]) / (2 * h)) < error + 1e-9, (k, row.mean())


def test_gradient_of_dirichlet_draws():
    """They stay on the simplex, and their mean moves as alpha / sum(alpha) does."""
    alpha = sc.input("alpha", "float64", (3,))
    x = sc.random.dirichlet(sc.random.key(2), alpha, (100_000,))
    j = sc.jvp(x, alpha, sc.asarray([1.0, 0.0, 0.0]))
    a = np.array([0.8, 2.0, 1.2])
    rows = run(j, alpha)(a)
    np.testing.assert_allclose(rows.sum(1), 0, atol=1e-9)
    want = (np.array([1.0, 0, 0]) - a / a.sum()) / a.sum()
    np.testing.assert_allclose(rows.mean(0), want, atol=4e-3)


def test_slope_in_single_precision():
    a, y = (sc.input(s, "float32", ("n",)) for s in "ay")
    x = np.array([0.1, 1, 30, 1e4], "f4")
    f = run(sc.Tensor(gamma_slope(a.value, y.value)), a, y)
    got = f(x, np.log(x))
    want = draws.gamma_slope(x.astype("f8"), np.log(x).astype("f8"))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_counts_have_no_gradient():
    lam = sc.scalar("lam")
    with pytest.raises(sc.GradientError):
        sc.grad(sc.sum(sc.random.poisson(sc.random.key(0), lam, (3,)).astype("float64")), lam)
