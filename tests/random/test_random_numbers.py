"""Distributions of sc.random against scipy.stats: fixed keys, so that every run sees the same numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.stats as st

import symc as sc

N = 40_000
#: A distribution with these parameters in fact gives a smaller p-value once in so many tests; the keys are fixed.
RARE = 1e-4

#: name, arguments, SciPy's distribution function
CONTINUOUS = [
    ("uniform", {}, st.uniform.cdf),
    ("uniform", dict(low=-2.0, high=3.0), st.uniform(-2, 5).cdf),
    ("random", {}, st.uniform.cdf),
    ("normal", {}, st.norm.cdf),
    ("normal", dict(loc=1.5, scale=3.0), st.norm(1.5, 3).cdf),
    ("lognormal", dict(sigma=0.5, mean=0.3), st.lognorm(0.5, scale=np.exp(0.3)).cdf),
    ("truncated_normal", dict(lower=-1.0, upper=2.0), st.truncnorm(-1, 2).cdf),
    ("truncated_normal", dict(lower=-np.inf, upper=np.inf), st.norm.cdf),
    ("truncated_normal", dict(lower=-np.inf, upper=-3.0), st.truncnorm(-np.inf, -3).cdf),
    ("truncated_normal", dict(lower=4.0, upper=np.inf), st.truncnorm(4, np.inf).cdf),
    ("truncated_normal", dict(lower=0.5, upper=0.6, loc=2.0, scale=3.0), st.truncnorm(0.5, 0.6, 2, 3).cdf),
    ("exponential", dict(scale=2.0), st.expon(scale=2).cdf),
    ("laplace", dict(loc=0.5, scale=2.0), st.laplace(0.5, 2).cdf),
    ("logistic", dict(loc=0.5, scale=2.0), st.logistic(0.5, 2).cdf),
    ("gumbel", dict(loc=0.5, scale=2.0), st.gumbel_r(0.5, 2).cdf),
    ("cauchy", dict(loc=0.5, scale=2.0), st.cauchy(0.5, 2).cdf),
    ("rayleigh", dict(scale=2.0), st.rayleigh(scale=2).cdf),
    ("weibull", dict(a=0.7, scale=2.0), st.weibull_min(0.7, scale=2).cdf),
    ("pareto", dict(b=2.5), st.pareto(2.5).cdf),
    ("power", dict(a=0.4), st.powerlaw(0.4).cdf),
    ("triangular", dict(left=-1.0, mode=0.0, right=3.0), st.triang(0.25, -1, 4).cdf),
    ("gamma", dict(a=0.1), st.gamma(0.1).cdf),
    ("gamma", dict(a=0.9, scale=3.0), st.gamma(0.9, scale=3).cdf),
    ("gamma", dict(a=1.0), st.gamma(1).cdf),
    ("gamma", dict(a=7.5), st.gamma(7.5).cdf),
    ("gamma", dict(a=3e4), st.gamma(3e4).cdf),
    ("loggamma", dict(a=1e-3), st.loggamma(1e-3).cdf),
    ("loggamma", dict(a=2.0), st.loggamma(2).cdf),
    ("chisquare", dict(df=3.0), st.chi2(3).cdf),
    ("beta", dict(a=2.0, b=0.5), st.beta(2, 0.5).cdf),
    ("beta", dict(a=30.0, b=60.0), st.beta(30, 60).cdf),
    ("f", dict(dfnum=5.0, dfden=7.0), st.f(5, 7).cdf),
    ("t", dict(df=2.5), st.t(2.5).cdf),
    ("t", dict(df=50.0, loc=1.0, scale=2.0), st.t(50, 1, 2).cdf),
    ("generalized_normal", dict(p=1.5), st.gennorm(1.5).cdf),
    ("maxwell", dict(scale=2.0), st.maxwell(scale=2).cdf),
    ("wald", dict(mean=1.0), st.invgauss(1.0).cdf),
    ("wald", dict(mean=3.0, scale=0.5), st.invgauss(6.0, scale=0.5).cdf),
]
DISCRETE = [
    ("bernoulli", dict(p=0.3), st.bernoulli(0.3)),
    ("poisson", dict(lam=0.05), st.poisson(0.05)),
    ("poisson", dict(lam=9.9), st.poisson(9.9)),
    ("poisson", dict(lam=10.0), st.poisson(10)),
    ("poisson", dict(lam=350.0), st.poisson(350)),
    ("poisson", dict(lam=1e6), st.poisson(1e6)),
    ("binomial", dict(n=1, p=0.25), st.binom(1, 0.25)),
    ("binomial", dict(n=12, p=0.9), st.binom(12, 0.9)),
    ("binomial", dict(n=100, p=0.5), st.binom(100, 0.5)),
    ("binomial", dict(n=1000, p=0.985), st.binom(1000, 0.985)),
    ("binomial", dict(n=10**6, p=0.2), st.binom(10**6, 0.2)),
    ("negative_binomial", dict(n=2.5, p=0.3), st.nbinom(2.5, 0.3)),
    ("geometric", dict(p=0.2), st.geom(0.2)),
    ("geometric", dict(p=0.99), st.geom(0.99)),
    ("integers", dict(low=-3, high=9), st.randint(-3, 9)),
    ("integers", dict(low=0, high=5, endpoint=True), st.randint(0, 6)),
]


def ids(table):
    return [f"{name}-{k}" for k, (name, *_) in enumerate(table)]


def draw(name: str, seed: int, **arguments) -> np.ndarray:
    return sc.compile(getattr(sc.random, name)(sc.random.key(seed), **arguments), [])()


def in_dtypes():
    """Every distribution in both dtypes: where it has several cases, these take turns."""
    seen, often = Counter(), Counter(name for name, *_ in CONTINUOUS)
    for k, (name, *case) in enumerate(CONTINUOUS):
        seen[name] += 1
        for turn, dtype in enumerate(("float64", "float32")):
            if often[name] == 1 or seen[name] % 2 == turn:
                yield pytest.param(name, *case, dtype, id=f"{name}-{k}-{dtype}")


@pytest.mark.parametrize(("name", "arguments", "cdf", "dtype"), in_dtypes())
def test_continuous_distributions(name, arguments, cdf, dtype):
    x = draw(name, 17, shape=(N,), dtype=dtype, **arguments)
    assert x.dtype == dtype and x.shape == (N,)
    assert st.kstest(x.astype("f8"), cdf).pvalue > RARE


@pytest.mark.parametrize(("name", "arguments", "law"), DISCRETE, ids=ids(DISCRETE))
def test_discrete_distributions(name, arguments, law):
    x = draw(name, 23, shape=(N,), **arguments).astype("i8")
    low, high = (int(law.ppf(q)) for q in (1e-3, 1 - 1e-3))
    edges = np.unique(np.linspace(low, high, 30).astype(int))
    expected = np.diff(np.concatenate([[0], law.cdf(edges), [1]])) * N
    found = np.bincount(np.searchsorted(edges, x), minlength=len(expected))
    assert found[expected == 0].sum() == 0
    common = expected > 5
    rest = expected[~common].sum()
    assert found[~common].sum() <= st.poisson(rest).ppf(1 - RARE)
    expected, found = expected[common], found[common]
    assert st.chisquare(found, expected * found.sum() / expected.sum()).pvalue > RARE
    assert abs(x.mean() - law.mean()) < 4.5 * law.std() / N**0.5


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_moments(dtype):
    """Mean and variance, also of half precision, where a Kolmogorov-Smirnov test would see the spacing of floats."""
    for name, arguments, mean, deviation in [
        ("uniform", {}, 0.5, 12**-0.5), ("normal", {}, 0, 1), ("exponential", {}, 1, 1), ("gamma", dict(a=4.0), 4, 2),
        ("laplace", {}, 0, 2**0.5), ("logistic", {}, 0, np.pi / 3**0.5), ("beta", dict(a=2.0, b=2.0), 0.5, 0.05**0.5),
        ("maxwell", {}, 2 * (2 / np.pi)**0.5, (3 - 8 / np.pi)**0.5),
    ]:  # fmt: skip
        x = draw(name, 5, shape=(N,), dtype=dtype, **arguments).astype("f8")
        assert abs(x.mean() - mean) < 4.5 * deviation / N**0.5 + 1e-3, name
        assert x.std() == pytest.approx(deviation, rel=0.04), name


def test_uniform_numbers_stay_below_one():
    for dtype in ("float16", "float32", "float64"):
        x = draw("uniform", 3, shape=(500_000,), dtype=dtype)
        assert x.min() >= 0 and x.max() < 1 and x.dtype == dtype
    assert len(np.unique(draw("uniform", 3, shape=(500_000,), dtype="float16"))) == 2048


def test_tails_are_right():
    """P(|z| > 4.5) in four million float32: a uniform number of 24 bits would be too coarse far out."""
    x = draw("normal", 8, shape=(4_000_000,), dtype="float32")
    for bound in (3.5, 4.0, 4.5):
        expected = 2 * st.norm.sf(bound) * x.size
        assert abs((abs(x) > bound).sum() - expected) < 4.5 * expected**0.5
    assert len(np.unique(x[abs(x) > 4.5])) == (abs(x) > 4.5).sum()
    e = draw("exponential", 8, shape=(4_000_000,), dtype="float32")
    assert abs((e > 12).sum() - np.exp(-12) * e.size) < 4.5 * (np.exp(-12) * e.size) ** 0.5
    assert abs((e < 1e-5).sum() - 1e-5 * e.size) < 4.5 * (1e-5 * e.size) ** 0.5


def test_far_truncation():
    for lower, upper in ((8.0, 9.0), (29.0, np.inf), (31.0, 33.0), (50.0, np.inf), (-np.inf, -200.0)):
        x = draw("truncated_normal", 4, lower=lower, upper=upper, shape=(20_000,))
        assert lower <= x.min() and x.max() <= upper
        cdf = st.truncnorm(lower, upper).cdf if abs(lower) < 40 else None
        if cdf is None:  # as the exponential distribution that the tail becomes
            edge = min(abs(lower), abs(upper))
            assert st.kstest((abs(x) ** 2 - edge**2) / 2, st.expon.cdf).pvalue > RARE
        else:
            assert st.kstest(x, cdf).pvalue > RARE


# --- vectors and choices ----------------------------------------------------------------------------------------------


def test_dirichlet():
    alpha = np.array([0.5, 1.0, 3.0])
    x = draw("dirichlet", 2, alpha=alpha, shape=(N,))
    np.testing.assert_allclose(x.sum(1), 1, rtol=1e-12)
    for k in range(3):
        assert st.kstest(x[:, k], st.beta(alpha[k], alpha.sum() - alpha[k]).cdf).pvalue > RARE
    small = draw("dirichlet", 2, alpha=np.full(3, 1e-3, "f4"), shape=(2000,))
    assert np.isfinite(small).all() and small.dtype == np.float32
    np.testing.assert_allclose(small.sum(1), 1, rtol=1e-4)  # logarithms of about -1000 in single precision


def test_multinomial():
    p = np.array([0.1, 0.2, 0.0, 0.7])
    x = draw("multinomial", 2, n=20, pvals=p, shape=(N,))
    assert x.shape == (N, 4) and (x.sum(1) == 20).all() and (x[:, 2] == 0).all()
    for k in (0, 1, 3):
        assert abs(x[:, k].mean() - 20 * p[k]) < 4.5 * (20 * p[k] * (1 - p[k]) / N) ** 0.5
    assert np.corrcoef(x[:, 0], x[:, 1])[0, 1] == pytest.approx(-((0.1 * 0.2 / 0.9 / 0.8) ** 0.5), abs=0.03)


def test_multivariate_normal():
    cov = np.array([[2.0, 0.6], [0.6, 1.0]])
    mean = np.array([1.0, -1.0])
    x = draw("multivariate_normal", 2, mean=mean, cov=cov, shape=(N,))
    np.testing.assert_allclose(x.mean(0), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.06)
    same = draw("multivariate_normal", 2, mean=mean, cholesky=np.linalg.cholesky(cov), shape=(N,))
    np.testing.assert_array_equal(x, same)
    one = draw("multivariate_normal", 2, mean=mean, cov=cov)
    assert one.shape == (2,)
    many = draw("multivariate_normal", 2, mean=np.zeros((5, 2)), cholesky=np.stack([np.eye(2)] * 5))
    assert many.shape == (5, 2)


def test_spheres_and_balls():
    x = draw("sphere", 6, d=3, shape=(N,))
    np.testing.assert_allclose((x**2).sum(1), 1, rtol=1e-12)
    assert st.kstest(x[:, 1], st.uniform(-1, 2).cdf).pvalue > RARE  # Archimedes
    for p in (1, 2, 4):
        y = draw("ball", 6, d=2, p=p, shape=(N,))
        radius = (abs(y) ** p).sum(1) ** (1 / p)
        assert st.kstest(radius**2, st.uniform.cdf).pvalue > RARE


def test_categorical():
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4]))
    x = draw("categorical", 4, logits=logits, shape=(N,))
    assert st.chisquare(np.bincount(x, minlength=4), N * np.exp(logits)).pvalue > RARE
    rows = draw("categorical", 4, logits=np.log(np.eye(3) + 1e-300))
    assert rows.tolist() == [0, 1, 2]
    columns = draw("categorical", 4, logits=np.log(np.eye(3)[[2, 0, 1]] + 1e-300), axis=0)
    assert columns.tolist() == [1, 2, 0]


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("p", [None, [0.1, 0.2, 0.3, 0.4]])
def test_choice(replace, p):
    x = sc.compile(sc.vmap(lambda k: sc.random.choice(k, 4, (2,), replace, p))(
        sc.random.split(sc.random.key(9), N)), [])()
    q = np.full(4, 0.25) if p is None else np.array(p)
    pairs = np.outer(q, q)
    if not replace:
        pairs = pairs / (1 - q)[:, None] * (1 - np.eye(4))
    found = np.bincount(x[:, 0] * 4 + x[:, 1], minlength=16)
    assert (found[pairs.ravel() == 0] == 0).all()
    used = pairs.ravel() > 0
    assert st.chisquare(found[used], N * pairs.ravel()[used]).pvalue > RARE


def test_choice_of_elements():
    a = np.arange(12.0).reshape(3, 4)
    rows = draw("choice", 1, a=a, shape=(5,))
    assert rows.shape == (5, 4) and all(r in a.tolist() for r in rows.tolist())
    columns = draw("choice", 1, a=a, shape=(2, 2), axis=1)
    assert columns.shape == (3, 2, 2)
    n = sc.vector("n")
    f = sc.compile(sc.random.choice(sc.random.key(0), n, (1000,)), [n])
    for size in (1, 7, 50):
        assert set(f(np.arange(float(size)))) == set(np.arange(size)), "each of few elements occurs in many draws"


def test_permutations():
    keys = sc.random.split(sc.random.key(1), 24_000)
    x = sc.compile(sc.vmap(lambda k: sc.random.permutation(k, 4))(keys), [])()
    codes = x @ 4 ** np.arange(4)
    counts = np.unique(codes, return_counts=True)[1]
    assert len(counts) == 24 and st.chisquare(counts).pvalue > RARE
    a = np.arange(12).reshape(3, 4)
    rows = draw("permutation", 3, x=a)
    assert sorted(rows.tolist()) == a.tolist()
    lines = draw("permutation", 3, x=a, axis=1, independent=True)
    assert np.sort(lines, 1).tolist() == a.tolist()


def test_permutations_of_sizes_that_are_not_known():
    """The same as of numbers, around powers of two and for none at all."""
    k, x = sc.input("k", "u64", (2,)), sc.vector("x")
    f = sc.compile(sc.random.permutation(k, x), [k, x])
    key = np.array([3, 9], np.uint64)
    for n in (0, 1, 2, 3, 4, 63, 64, 65):
        known = sc.compile(sc.random.permutation(k, n), [k])(key)
        assert sorted(known.tolist()) == list(range(n))
        assert f(key, np.arange(float(n))).tolist() == known.tolist()


def test_integers_of_any_dtype_and_range():
    for dtype in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"):
        info = np.iinfo(dtype)
        x = draw("integers", 2, low=info.min, high=int(info.max) + 1, shape=(N,), dtype=dtype)
        assert x.dtype == dtype
        part = (x.astype(object) - info.min) / (int(info.max) - info.min + 1)
        step = 1 / (int(info.max) - info.min + 1)
        assert st.kstest(part.astype("f8") + step * np.random.default_rng(0).random(N), st.uniform.cdf).pvalue > RARE
    wide = draw("integers", 2, low=0, high=3 * 2**61, shape=(N,))
    assert st.kstest(wide / (3 * 2**61), st.uniform.cdf).pvalue > RARE
    assert set(draw("integers", 2, low=5, shape=(200,))) == {0, 1, 2, 3, 4}
    assert draw("integers", 2, low=4, high=4, endpoint=True, shape=(3,)).tolist() == [4, 4, 4]


def test_integers_between_symbolic_bounds():
    low, high = sc.vector("low", "int64"), sc.vector("high", "int64")
    f = sc.compile(sc.random.integers(sc.random.key(0), low, high, (1000, low.shape[0])), [low, high])
    a, b = np.array([-5, 0, 3, -(2**63)]), np.array([-4, 6, 3, 2**63 - 1])
    x = f(a, b)
    assert (x[:, 0] == -5).all() and set(x[:, 1]) == set(range(6))
    assert (x[:, 2] == 3).all(), "an empty range gives its lower end"
    assert abs(x[:, 3].astype("f8").mean() / 2**63) < 0.1


def test_bits():
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        x = draw("bits", 11, shape=(N,), dtype=dtype)
        width = 8 * x.dtype.itemsize
        ones = ((x[:, None] >> np.arange(width).astype(dtype)) & np.array(1, dtype)).mean(0)
        assert x.dtype == dtype and (abs(ones - 0.5) < 4.5 * 0.5 / N**0.5).all()


def test_signs():
    x = draw("rademacher", 11, shape=(N,))
    assert set(x) == {-1, 1} and abs(x.mean()) < 4.5 / N**0.5
    assert draw("rademacher", 11, shape=(4,), dtype="float32").dtype == np.float32
