"""Distributions of vectors and matrices, transforms, and how distributions are called."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

import symc as sc
from symc.stats import transforms
from symc.stats.__main__ import page
from tests.stats.stats_cases import CONTINUOUS, SHAPES

RNG = np.random.default_rng(5)
A = RNG.normal(size=(3, 3))
COV, MEAN = A @ A.T + np.eye(3), np.array([0.5, -1.0, 2.0])
X = RNG.normal(size=(7, 3)) * 2
ALPHA = np.array([0.7, 2.0, 5.0])
P = np.array([0.2, 0.5, 0.3])
ROWS = RNG.dirichlet(ALPHA, 6)
COUNTS = RNG.multinomial(9, P, 5)
SPD = np.stack([b @ b.T for b in RNG.normal(size=(4, 3, 5))])


def each(f, rows):
    return np.array([f(r) for r in rows])


#: Name, the point, parameters, and SciPy's result.
CASES = {
    "normal": ("multivariate_normal", X, (MEAN, COV), scipy.stats.multivariate_normal.logpdf(X, MEAN, COV)),
    "normal of one vector": ("multivariate_normal", X[0], (MEAN, COV),
                             scipy.stats.multivariate_normal.logpdf(X[0], MEAN, COV)),
    "normal with variances": ("multivariate_normal", X, (MEAN, np.array([0.5, 2.0, 3.0])),
                              scipy.stats.multivariate_normal.logpdf(X, MEAN, [0.5, 2.0, 3.0])),
    "standard normal": ("multivariate_normal", X, (), scipy.stats.multivariate_normal.logpdf(X, np.zeros(3))),
    "normal with a mean each": ("multivariate_normal", X, (X[::-1] * 0.5, COV),
                                scipy.stats.multivariate_normal.logpdf(X - X[::-1] * 0.5, np.zeros(3), COV)),
    "normal with a covariance each": ("multivariate_normal", X[:4], (MEAN, SPD),
                                      np.array([scipy.stats.multivariate_normal.logpdf(x, MEAN, c)
                                                for x, c in zip(X[:4], SPD, strict=True)])),
    "t": ("multivariate_t", X, (MEAN, COV, 3.5), scipy.stats.multivariate_t.logpdf(X, MEAN, COV, 3.5)),
    "dirichlet": ("dirichlet", ROWS, (ALPHA,), scipy.stats.dirichlet.logpdf(ROWS.T, ALPHA)),
    "multinomial": ("multinomial", COUNTS, (9, P), scipy.stats.multinomial.logpmf(COUNTS, 9, P)),
    "wishart": ("wishart", SPD, (6.5, COV), each(lambda m: scipy.stats.wishart.logpdf(m, 6.5, COV), SPD)),
    "invwishart": ("invwishart", SPD, (6.5, COV), each(lambda m: scipy.stats.invwishart.logpdf(m, 6.5, COV), SPD)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_against_scipy(case: str, dtype: str):
    name, x, params, wanted = CASES[case]
    d = sc.stats.DISTRIBUTIONS[name]
    what = "logpmf" if name == "multinomial" else "logpdf"
    arrays = [np.asarray(v, dtype) for v in (x, *params)]
    leaves = [sc.input(f"p{k}", dtype, v.shape) for k, v in enumerate(arrays)]
    out = getattr(d, what)(*leaves)
    assert out.dtype == dtype and out.shape == np.shape(wanted)
    f = sc.compile([out, getattr(d(*leaves[1:]), what[3:])(leaves[0]), *sc.grad(sc.sum(out), leaves)], leaves)
    found, plain, *grads = f(*arrays)
    np.testing.assert_allclose(found, wanted, rtol=1e-10 if dtype == "float64" else 1e-4)
    np.testing.assert_allclose(plain, np.exp(wanted), rtol=1e-9 if dtype == "float64" else 2e-3)
    assert all(np.isfinite(g).all() for g in grads)


@pytest.mark.parametrize("case", ["normal", "t", "dirichlet", "wishart", "invwishart"])
def test_gradients(case: str):
    name, x, params, _ = CASES[case]
    d = sc.stats.DISTRIBUTIONS[name]
    symmetric = lambda v: (v + sc.swapaxes(v, -1, -2)) / 2
    fix = lambda vs: [symmetric(v) if v.ndim >= 2 and v.shape[-1] == v.shape[-2] else v for v in vs]
    if name == "dirichlet":  # on the simplex alone
        params, x = (params[0],), x[0]
        sc.verify_grad(lambda a: d.logpdf(x, a), [params[0]])
        return
    sc.verify_grad(lambda *v: sc.sum(d.logpdf(*fix(v))), [np.asarray(v, "float64") for v in (x[:1], *params)])


def test_a_cholesky_factor_instead_of_a_matrix():
    chol = np.linalg.cholesky(COV)
    for name, rest in (("multivariate_normal", {}), ("multivariate_t", {"df": 4.0})):
        d = sc.stats.DISTRIBUTIONS[name]
        np.testing.assert_allclose(np.asarray(d.logpdf(X, MEAN, chol=chol, **rest)),
                                   np.asarray(d.logpdf(X, MEAN, COV, **rest)), rtol=1e-12)
        first, second = (d.sample(sc.random.key(1), MEAN, **how, **rest, size=(4000,))
                         for how in ({"chol": chol}, {"shape" if rest else "cov": COV}))
        frozen = d(MEAN, COV, **rest).rvs(size=(4000,), random_state=sc.random.key(1))
        np.testing.assert_array_equal(np.asarray(frozen), np.asarray(second))
        np.testing.assert_allclose(np.asarray(first), np.asarray(second), rtol=1e-9)
        scale = 2.0 if rest else 1.0  # df / (df - 2)
        np.testing.assert_allclose(np.cov(np.asarray(first).T) / scale, COV, atol=0.4 * scale)


def test_outside_of_the_support():
    d, m = sc.stats.dirichlet, sc.stats.multinomial
    assert float(d.logpdf([0.5, 0.6, 0.1], ALPHA)) == -np.inf
    assert float(d.logpdf([-0.1, 1.0, 0.1], ALPHA)) == -np.inf
    assert np.isnan(float(d.logpdf(P, [1.0, 0.0, 1.0])))
    assert float(m.pmf([1, 2, 3], 7, P)) == 0 and float(m.logpmf([-1, 5, 3], 7, P)) == -np.inf
    assert np.isnan(float(m.logpmf([1, 2, 4], 7, [0.5, 0.6, 0.1])))
    assert np.isnan(float(sc.stats.wishart.logpdf(COV, 1.5, COV)))
    assert np.isnan(float(sc.stats.lkj_cholesky.logpdf(np.eye(3), 0.0)))


@pytest.mark.parametrize("eta", [0.6, 1.0, 3.0])
def test_correlations_sum_to_one(eta: float):
    """Over factors of 2 rows, which are an angle; for 3 rows against the density of the matrix."""
    x = sc.scalar("x")
    factor = sc.stack([sc.stack([1.0 + 0 * x, 0 * x]), sc.stack([x, sc.sqrt(1 - x * x)])])
    f = sc.compile(sc.stats.lkj_cholesky.pdf(factor, eta), [x], mode="reference")
    total = scipy.integrate.quad(lambda t: float(f(math.sin(t))) * math.cos(t), -math.pi / 2, math.pi / 2)[0]
    assert abs(total - 1) < 1e-6
    low = np.linalg.cholesky(np.array([[1, 0.3, 0.1], [0.3, 1, -0.4], [0.1, -0.4, 1]]))
    if eta == 1:  # uniform over matrices of 3 rows, whose volume is pi² / 2; the derivative of these by L is L[1, 1]
        wanted = math.log(low[1, 1]) - math.log(math.pi**2 / 2)
        np.testing.assert_allclose(float(sc.stats.lkj_cholesky.logpdf(low, eta)), wanted, rtol=1e-12)


# --- transforms

TRANSFORMS = {
    "positive": (transforms.positive, (4,), lambda x: x > 0),
    "above": (transforms.above(2.0), (4,), lambda x: x > 2),
    "below": (transforms.below(2.0), (4,), lambda x: x < 2),
    "unit_interval": (transforms.unit_interval, (4,), lambda x: (x > 0) & (x < 1)),
    "interval": (transforms.interval(-1.0, 3.0), (4,), lambda x: (x > -1) & (x < 3)),
    "ordered": (transforms.ordered, (4,), lambda x: np.diff(x) > 0),
    "simplex": (transforms.simplex, (4,), lambda x: (x > 0) & (abs(x.sum() - 1) < 1e-12)),
    "cholesky_correlation": (transforms.cholesky_correlation, (6,),
                             lambda x: (np.diag(x) > 0) & (abs((x * x).sum(1) - 1) < 1e-12) & (np.triu(x, 1) == 0)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name: str):
    """Into the constraint, back, and the determinant is that of the Jacobian: of as many coordinates as are free."""
    t, shape, holds = TRANSFORMS[name]
    y = sc.input("y", "float64", shape)
    x = t.forward(y)
    free = x
    if name == "simplex":
        free = x[:-1]
    elif name == "cholesky_correlation":
        free = sc.concatenate([x[i, :i] for i in range(1, x.shape[0])])
    f = sc.compile([x, t.inverse(x), sc.sum(t.log_det(y)), sc.jacobian(free, y)], [y])
    for scale in (0.3, 1.0, 3.0):
        at = RNG.normal(size=shape) * scale
        found, back, log_det, jac = f(at)
        assert holds(found).all()
        np.testing.assert_allclose(back, at, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(log_det, np.linalg.slogdet(jac)[1], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform_of_batches_and_far_away(name: str):
    t, shape, _ = TRANSFORMS[name]
    y = RNG.normal(size=(2, 3, *shape))
    batch = np.asarray(t.forward(y))
    np.testing.assert_array_equal(batch[1, 2], np.asarray(t.forward(y[1, 2])))
    det = np.asarray(t.log_det(y))
    np.testing.assert_allclose(det[1, 2], np.asarray(t.log_det(y[1, 2])), rtol=1e-12)
    v = sc.input("v", "float64", shape)
    g = sc.compile([sc.sum(t.log_det(v)), sc.grad(sc.sum(t.log_det(v)), v)], [v], mode="reference")
    assert all(np.isfinite(part).all() for part in g(np.full(shape, -80.0))), "far away"


def test_a_triangle_needs_the_right_number():
    with pytest.raises(sc.ShapeError, match="free numbers"):
        transforms.cholesky_correlation.forward(np.zeros(4))


# --- how distributions are called


def test_arguments_as_scipys():
    d = sc.stats.gamma
    wanted = scipy.stats.gamma.logpdf(1.5, 2.0, 0.5, 3.0)
    for found in (d.logpdf(1.5, 2.0, 0.5, 3.0), d.logpdf(1.5, a=2.0, loc=0.5, scale=3.0), d(2.0, 0.5, 3.0).logpdf(1.5),
                  d(2.0, scale=3.0, loc=0.5).logpdf(1.5)):
        np.testing.assert_allclose(float(found), wanted, rtol=1e-13)
    np.testing.assert_allclose(float(d(2.0).mean()), 2.0)
    np.testing.assert_allclose(np.asarray(d(2.0).interval(0.9)), scipy.stats.gamma(2.0).interval(0.9))
    np.testing.assert_allclose(float(d.median(2.0)), scipy.stats.gamma.median(2.0))


def test_parameters_broadcast_and_promote():
    mu, s = np.array([[0.0], [1.0]]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.asarray(sc.stats.norm.logpdf(0.5, mu, s)), scipy.stats.norm.logpdf(0.5, mu, s))
    assert sc.stats.norm.mean(mu, s).shape == sc.stats.norm.entropy(mu, s).shape == (2, 3)
    assert sc.stats.poisson.logpmf(np.arange(3), 2.0).dtype == "float64"
    assert sc.stats.poisson.logpmf(np.arange(3, dtype="int32"), 2.0).dtype == "float64"
    assert sc.stats.norm.logpdf(np.float32(1.0), 0, 2).dtype == "float32"
    assert sc.stats.norm.sample(sc.random.key(0), mu, s).shape == (2, 3)
    with pytest.raises(sc.DTypeError, match="complex"):
        sc.stats.norm.logpdf(1j)
    with pytest.raises(sc.ShapeError):
        sc.stats.norm.logpdf(np.zeros(2), np.zeros(3))


def test_mistakes_are_named():
    for call, words in (
        (lambda: sc.stats.gamma.logpdf(1.0), "gamma: a is missing"),
        (lambda: sc.stats.gamma(1.0, a=2.0), "a is given twice"),
        (lambda: sc.stats.gamma.logpdf(1.0, 2.0, shape=1), "no parameter 'shape'"),
        (lambda: sc.stats.norm.logpdf(1.0, 0, 1, 2), "3 parameters"),
        (lambda: sc.stats.exponnorm.entropy(1.0), "exponnorm has no entropy"),
        (lambda: sc.stats.vonmises.cdf(1.0, 1.0), "vonmises has no cdf"),
        (lambda: sc.stats.norm(0.0).logpdf(1.0, 2.0), "fixed"),
        (lambda: sc.stats.norm.sample(1.0), "key"),
        (lambda: sc.stats.gamma.sample(sc.random.key(0), -1.0), "a must be positive"),
        (lambda: sc.stats.multinomial.logpdf([1], 1, [1.0]), "multinomial has no logpdf"),
        (lambda: sc.stats.wishart.sample(sc.random.key(0)), "wishart has no sample"),
        (lambda: sc.stats.dirichlet.logpdf(ROWS), "alpha"),
    ):
        with pytest.raises(sc.InputError, match=words):
            call()
    with pytest.raises(AttributeError, match="lognorm"):
        sc.stats.lognormal
    with pytest.raises(AttributeError, match="pmf"):
        sc.stats.norm().pmf


def test_samples_have_gradients_or_say_so():
    key, k = sc.random.key(0), sc.scalar("k")
    for name in ("genpareto", "exponnorm", "skewnorm"):
        x, h = sc.stats.DISTRIBUTIONS[name].sample(key, k, 0.5, 2.0, shape=(6,)), 1e-5
        f = sc.compile([sc.sum(x), sc.grad(sc.sum(x), k)], [k], mode="reference")
        np.testing.assert_allclose(f(0.7)[1], (f(0.7 + h)[0] - f(0.7 - h)[0]) / (2 * h), rtol=1e-5)
    angles = sc.sum(sc.stats.vonmises.sample(key, k, shape=(3,)))
    with pytest.raises(sc.GradientError, match="rejection"):
        sc.grad(angles, k)
    still = sc.sum(sc.stats.vonmises.sample(key, sc.stop_gradient(k), shape=(3,)))
    assert np.isfinite(sc.compile(sc.grad(still * k, k), [k])(2.0))


def test_under_vmap_jit_and_grad():
    mu = np.array([0.5, 1.5])
    one = lambda m: sc.stats.t.logpdf(X[:, 0], 3.0, m, 2.0).sum() + sc.stats.gamma.cdf(m, 2.0)
    wanted = [scipy.stats.t.logpdf(X[:, 0], 3.0, m, 2.0).sum() + scipy.stats.gamma.cdf(m, 2.0) for m in mu]
    np.testing.assert_allclose(np.asarray(sc.vmap(one)(mu)), wanted)
    np.testing.assert_allclose(sc.jit(lambda m: sc.vmap(one)(m))(mu), wanted)
    q = np.array([0.2, 0.9])
    np.testing.assert_allclose(np.asarray(sc.vmap(lambda q, k: sc.stats.poisson.ppf(q, k))(q, mu * 9)),
                               scipy.stats.poisson.ppf(q, mu * 9))
    np.testing.assert_allclose(np.asarray(sc.vmap(lambda q, k: sc.stats.skewnorm.ppf(q, k))(q, mu)),
                               scipy.stats.skewnorm.ppf(q, mu), rtol=1e-9)


@pytest.mark.parametrize("name, shapes", [("exponnorm", (1.5,)), ("gamma", (2.0,)), ("cauchy", ())])
def test_quantiles_have_gradients(name: str, shapes: tuple):
    """Those found by search too: by the implicit function."""
    d = sc.stats.DISTRIBUTIONS[name]
    leaves = [sc.input(n, "float64", ()) for n in ("q", *d.shapes, "loc", "scale")]
    f = sc.compile([d.ppf(*leaves), *sc.grad(d.ppf(*leaves), leaves)], leaves, mode="reference")
    args = np.array([0.7, *shapes, 0.3, 2.0])
    for k, slope in enumerate(f(*args)[1:]):
        h = np.eye(len(args))[k] * 1e-4
        np.testing.assert_allclose(slope, (f(*(args + h))[0] - f(*(args - h))[0]) / 2e-4, rtol=1e-6)


@pytest.mark.parametrize("name, far", [("norm", 40.0), ("logistic", 800.0), ("laplace", 800.0), ("cauchy", 1e200),
                                       ("gumbel_r", 800.0), ("t", 1e200), ("skewnorm", 40.0), ("expon", 800.0)])
def test_tails_stay_finite(name: str, far: float):
    """Logarithms and their gradients where the probability itself is 0 or the square of x is beyond all floats."""
    d = sc.stats.DISTRIBUTIONS[name]
    shapes = {"t": (3.0,), "skewnorm": (2.0,)}.get(name, ())
    x = sc.scalar("x")
    whats = [w for w in ("logpdf", "logsf", "logcdf") if w == "logpdf" or name != "t"]
    outs = [getattr(d, w)(x, *shapes) for w in whats]
    f = sc.compile([*outs, *(sc.grad(o, x) for o in outs)], [x])
    assert all(np.isfinite(v) for v in f(far)), f(far)


def test_the_page_of_distributions_is_current():
    found = (Path(__file__).resolve().parents[2] / "docs" / "distributions.md").read_text("utf-8")
    assert found == page(), "python -m symc.stats > docs/distributions.md"
    assert set(CASES[c][0] for c in CASES) | {"lkj_cholesky"} == {
        n for n, d in sc.stats.DISTRIBUTIONS.items() if isinstance(d, sc.stats.Multivariate)}


def test_entropies_are_scipys():
    cov, mean = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([1.0, 2.0])
    normal, scipys = sc.stats.multivariate_normal, scipy.stats.multivariate_normal
    for args in ((mean, cov), (mean, np.array([1.0, 2.0])), (mean, 3.0), (mean,), ()):
        np.testing.assert_allclose(float(normal.entropy(*args)), scipys.entropy(*args), rtol=1e-12)
    np.testing.assert_allclose(float(normal.entropy(chol=np.linalg.cholesky(cov))), scipys.entropy(mean, cov))
    alpha = np.array([0.4, 5.0, 1.0])
    np.testing.assert_allclose(float(sc.stats.dirichlet.entropy(alpha)), scipy.stats.dirichlet.entropy(alpha))
    with pytest.raises(sc.InputError, match="wishart has no entropy"):
        sc.stats.wishart.entropy(3, cov)


def test_singular_covariances():
    b = RNG.normal(size=(4, 2))
    cov, mean = b @ b.T, np.arange(4.0)
    x, points = sc.matrix("x"), mean + np.stack([b @ [0.3, -0.2], b @ [0.3, -0.2] + 1, np.zeros(4)])
    normal, theirs = sc.stats.multivariate_normal, scipy.stats.multivariate_normal
    got = sc.compile(normal.logpdf(x, mean, cov, allow_singular=True), [x])(points)
    np.testing.assert_allclose(got, theirs.logpdf(points, mean, cov, allow_singular=True), rtol=1e-12)
    same = sc.compile(normal.logpdf(x, mean, cov + np.eye(4), allow_singular=True), [x])(points)
    np.testing.assert_allclose(same, theirs.logpdf(points, mean, cov + np.eye(4)), rtol=1e-12)


@pytest.mark.parametrize("c", [0.0, 2.0**-30, 0.25, 1.0])
def test_both_ends_of_a_triangle_keep_their_digits(c: float):
    """Also where it has no other side: a probability is not what is left of 1."""
    x = 2.0 ** -np.arange(1, 300, 7)
    t = sc.stats.triang
    f = sc.compile([t.cdf(X := sc.vector("x"), c), t.logcdf(X, c), t.sf(1 - X, 1 - c), t.logsf(1 - X, 1 - c)], [X])
    rest = (x * (2 - x) - c) / (1 - c) if c < 1 else x
    wanted = np.where((x < c) | (c == 1), x * x / (c or 1), rest)
    kept = 1 - (1 - x) == x  # by 1 - x
    for got, want, which in zip(f(x), (wanted, np.log(wanted)) * 2, (x == x, x == x, kept, kept), strict=True):
        np.testing.assert_allclose(got[which], want[which], rtol=1e-11)


#: Distributions whose quantiles are found in all tails, and shapes at which they are compared.
IN_TAILS = {**{n: SHAPES[n] for n in CONTINUOUS if n != "vonmises"},
            "skewnorm": [(-4.0,), (0.0,), (0.2,), (20.0,)],
            "t": [(0.5,), (1.0,), (3.5,), (30.0,)],
            "beta": [(0.1, 0.2), (0.5, 0.5), (2.0, 5.0), (20.0, 0.1)], "f": [(0.3, 0.4), (2.0, 5.0), (10.0, 30.0)],
            "truncnorm": [(-1.0, np.inf), (-np.inf, 0.5), (-1.0, 2.0), (3.0, np.inf), (-8.0, -6.0), (-1e-3, 40.0)]}


@pytest.mark.parametrize("name", IN_TAILS)
def test_quantiles_of_the_least_probabilities(name: str):
    """Their probability is the one that was asked for, as far as floats next to each other can tell."""
    d, q, v = sc.stats.DISTRIBUTIONS[name], sc.vector("q"), sc.vector("v")
    probabilities = np.logspace(-290, -2, 25)
    for shapes, (quantile, what) in itertools.product(IN_TAILS[name], (("ppf", "logcdf"), ("isf", "logsf"))):
        x = sc.compile(getattr(d, quantile)(q, *shapes), [q], backend="numpy")(probabilities)
        f = sc.compile(getattr(d, what)(v, *shapes), [v], backend="numpy")
        before, here, after = (f(x + k * np.spacing(x)) for k in (-8, 0, 8))
        wanted = np.log(probabilities)
        between = (np.minimum(before, after) - 1e-9 <= wanted) & (wanted <= np.maximum(before, after) + 1e-9)
        told = np.isfinite(x) & (np.abs(x) > 1e-300)  # others are beyond all floats
        least, most = getattr(scipy.stats, name).support(*shapes)
        for end in (e for e in (least, most) if np.isfinite(e)):
            told &= np.abs(x - end) > 1e-9 * abs(end)  # no floats lie between it and the end
        assert not np.isnan(x).any()
        assert (between | (np.abs(here - wanted) <= 1e-8 * np.abs(wanted)) | ~told).all(), (shapes, quantile)


def test_what_is_left_out_of_a_truncated_normal_number():
    """Probabilities near 1 are known by the rest: their logarithms are mirrored."""
    x = np.linspace(-0.9, 30, 40)
    for a, b in ((-1.0, np.inf), (-1.0, 35.0)):
        d, mirrored = sc.stats.truncnorm(a, b), sc.stats.truncnorm(-b, -a)
        np.testing.assert_allclose(np.asarray(d.logcdf(x)), np.asarray(mirrored.logsf(-x)), rtol=1e-12)
        np.testing.assert_allclose(np.asarray(d.logcdf(x))[20:], -np.asarray(d.sf(x))[20:], rtol=1e-12)
        assert (np.asarray(d.logcdf(x)) < 0).all()


def test_the_thin_tail_of_skewed_normal_numbers():
    """A difference of two numbers that are nearly equal, unless it is integrated."""
    x, a = sc.vector("x"), sc.vector("a")
    d = sc.stats.skewnorm
    f = sc.compile([d.logcdf(x, a), sc.grad(sc.sum(d.logcdf(x, a)), x), d.logsf(-x, -a)], [x, a], backend="numpy")
    points = [*itertools.product((-40.0, -10.0, -5.0, -2.0, -0.5, -1e-3), (-3.0, -0.1, 0.0, 0.1, 0.4, 1.0, 3.0, 50.0))]
    found, slope, mirrored = f(*np.array(points).T)
    np.testing.assert_array_equal(found, mirrored)
    for (at, skew), log, by_x in zip(points, found, slope, strict=True):
        width = 1 / (abs(at) * (1 + max(skew, 0) ** 2) + math.hypot(1, max(skew, 0)))
        here = float(scipy.stats.norm.logpdf(at) + scipy.special.log_ndtr(at * skew))

        def shape(u, at=at, skew=skew, width=width, here=here):
            t = at - width * u
            return np.exp(scipy.stats.norm.logpdf(t) + scipy.special.log_ndtr(t * skew) - here)

        whole = scipy.integrate.quad(shape, 0, 40, epsrel=1e-12, limit=200)[0] * 2 * width
        assert abs(log - here - math.log(whole)) <= 1e-10 * max(1, abs(log)), (at, skew)
        assert abs(by_x * whole - 2) <= 1e-9, (at, skew)
