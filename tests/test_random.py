"""sc.random as a program: keys, the same numbers everywhere, vmap, gradients, generators, mistakes."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st

import symc as sc
from symc import testing
from symc.ir.ops import draw_reference as draws
from symc.ir.ops import random_reference as reference
from symc.ir.ops.random import below, gamma_slope, philox32
from tests.test_random_numbers import CONTINUOUS, DISCRETE, ids

U64 = np.uint64


def run(value, *inputs, mode="default"):
    return sc.compile(value, list(inputs), mode=mode)


def key_input():
    return sc.input("key", "uint64", (2,))


K = np.array([0x0123456789ABCDEF, 42], U64)


# --- bits -------------------------------------------------------------------------------------------------------------

#: Known answers of Random123 for philox4x32-10: counter, key, block.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]  # fmt: skip


@pytest.mark.parametrize(("counter", "key", "block"), KNOWN)
def test_known_answers(counter, key, block):
    words = [np.array(low | high << 32, U64) for low, high in (key, counter[2:], counter[:2])]
    assert tuple(int(w) for w in reference.philox(*words)) == block


def test_known_answers_in_a_kernel():
    k, s, i = (sc.input(n, "uint64", (4,)) for n in "ksi")
    f = run(sc.Tensor(philox32(k.value, s.value, i.value)), k, s, i)
    testing.assert_kernels(f, 1)
    block = KNOWN[0][2]
    assert tuple(f(np.zeros(4, U64), np.zeros(4, U64), np.arange(4, dtype=U64))) == block
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**64, (3, 4), U64)
    np.testing.assert_array_equal(f(*words), reference.philox32(*words))


def test_element_i_is_a_function_of_the_key_and_i():
    key, x = key_input(), sc.input("x", "float64", ("n",))
    f = run(sc.random.uniform(key, x.shape), key, x)
    long = f(K, np.zeros(1001))
    for n in (0, 1, 2, 3, 500):
        np.testing.assert_array_equal(f(K, np.zeros(n)), long[:n])
    assert f.compile_count == 1
    grid = run(sc.random.uniform(key, (7, 11, 13)), key)
    np.testing.assert_array_equal(grid(K).ravel(), long)
    assert "for i" not in grid.source.split("for i", 1)[1], "three axes are one loop"


def test_narrow_and_wide_bits_are_the_same_blocks():
    wide = run(sc.random.bits(sc.random.key(5), (1 << 16,), "uint64"))()
    assert len(np.unique(wide)) == wide.size
    narrow = run(sc.random.bits(sc.random.key(5), (1 << 17,), "uint32"))()
    np.testing.assert_array_equal(wide.view("<u4"), narrow)


# --- the same numbers everywhere --------------------------------------------------------------------------------------


def equal_numbers(a: np.ndarray, b: np.ndarray, ulps: float = 256) -> None:
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.kind == "f":
        eps = float(np.finfo(a.dtype).eps)
        np.testing.assert_allclose(a, b, rtol=ulps * eps, atol=ulps * eps)
    else:
        np.testing.assert_array_equal(a, b)


ALL = [(n, a) for n, a, _ in CONTINUOUS + DISCRETE] + [
    ("dirichlet", dict(alpha=np.array([0.5, 2.0, 1.0]))), ("sphere", dict(d=3)), ("ball", dict(d=3)),
    ("categorical", dict(logits=np.array([0.1, 0.5, 0.3]))), ("choice", dict(a=5)), ("bits", {}), ("rademacher", {}),
    ("choice", dict(a=5, p=[0.1, 0.2, 0.3, 0.2, 0.2])), ("multinomial", dict(n=9, pvals=np.array([0.2, 0.5, 0.3]))),
    ("multivariate_normal", dict(mean=np.ones(2), cov=np.array([[2.0, 1.0], [1.0, 1.0]]))),
    ("integers", dict(low=0, high=2**40)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), ALL, ids=ids(ALL))
def test_reference_and_kernels_agree(name, arguments):
    """Whole numbers exactly, floats up to the last places of logarithms; and so under vmap, draw by draw."""
    fn = getattr(sc.random, name)
    keys = sc.input("keys", "uint64", ("n", 2))
    one = lambda k: fn(k, shape=(40,), **arguments)
    batch = run(sc.vmap(one)(keys), keys)
    data = sc.compile(sc.random.split(sc.random.key(77), 3), [])()
    got = batch(data)
    single = key_input()
    f = run(one(single), single, mode="reference")
    for row, k in zip(got, data, strict=True):
        equal_numbers(row, f(k))
    assert got.shape[:2] == (3, 40)


def test_half_precision_agrees():
    key = key_input()
    x = sc.random.uniform(key, (500,), "float16"), sc.random.normal(key, (500,), "float16")
    for a, b in zip(run(x, key)(K), run(x, key, mode="reference")(K), strict=True):
        equal_numbers(a, b, 2)


def test_integers_agree_when_drawn_again():
    """Ranges for which a first product is refused half of the time."""
    n = 1000
    bits = reference.philox64(np.full(n, 1, U64), np.full(n, 2, U64), np.arange(n, dtype=U64))
    span = np.full(n, 2**63 + 1, U64)
    x, y = (sc.input(s, "uint64", ("n",)) for s in "xy")
    f = run(sc.Tensor(below(x.value, y.value)), x, y)
    got, want = f(bits, span), reference.below(bits, span)
    np.testing.assert_array_equal(got, want)
    first = (bits.astype(object) * (2**63 + 1)) >> 64
    assert (got.max() < span).all() and 0.3 < (got.astype(object) != first).mean() < 0.7


def test_processes_agree():
    code = "import symc as sc; print(sc.compile(sc.random.gamma(sc.random.key(3), 0.7, (3,)), [])().tolist())"
    own = run(sc.random.gamma(sc.random.key(3), 0.7, (3,)))().tolist()
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(own)


FIRST: dict[str, list] = {
    "key": [4914184233359978118, 4574323405419420040],
    "large": [1278812555330306425, 13079742273755214811],
    "bits": [2312142491, 2277051328, 596887632],
    "normal": [0.07569048381974038, 0.19306029288759377, 0.4347331383637418],
    "poisson": [101, 102, 105, 110],
    "permutation": [5, 0, 1, 2, 4, 3],
}


def test_these_numbers_stay():
    """Numbers that a release must not change: results that people publish depend on them."""
    key = sc.random.key(0)
    assert run(key)().tolist() == FIRST["key"]
    assert run(sc.random.key(2**200 + 7))().tolist() == FIRST["large"]
    assert run(sc.random.bits(key, (3,)))().tolist() == FIRST["bits"]
    np.testing.assert_allclose(run(sc.random.normal(key, (3,)))(), FIRST["normal"], rtol=1e-14)
    assert run(sc.random.poisson(key, 100.0, (4,)))().tolist() == FIRST["poisson"]
    assert run(sc.random.permutation(key, 6))().tolist() == FIRST["permutation"]



def test_text_and_pickle_keep_the_numbers(tmp_path):
    key = key_input()
    f = run(sc.random.gamma(sc.random.fold_in(key, 3), 2.0, (5,)), key)
    f.save(tmp_path / "f")
    np.testing.assert_array_equal(sc.load(tmp_path / "f")(K), f(K))


# --- keys -------------------------------------------------------------------------------------------------------------


def test_the_same_draw_is_one_value():
    key = key_input()
    assert sc.random.normal(key, (3,)).value is sc.random.normal(key, (3,)).value
    assert sc.random.normal(key, (3,)).value is not sc.random.normal(sc.random.fold_in(key, 0), (3,)).value


def test_keys_are_distinct():
    key = sc.random.key(0)
    keys = [run(sc.random.split(key, 1000))(), run(sc.random.fold_in(key, np.arange(1000)))(),
            np.stack([sc.compile(sc.random.key(s), [])() for s in range(50)]), run(sc.random.split(key, (10, 10)))()[0]]
    rows = np.concatenate(keys)
    assert len(np.unique(rows[:, 0])) == len(np.unique(rows[:, 1])) == len(rows) - 10  # 10 keys were split off twice
    assert run(sc.random.split(key, (2, 3)))().shape == (2, 3, 2)


def test_streams_are_independent():
    """Correlations of the numbers of 300 keys, made in each way, with those of every other key and place."""
    n, m = 300, 4000
    for keys in (sc.random.split(sc.random.key(0), n), sc.random.fold_in(sc.random.key(0), np.arange(n)),
                 sc.stack([sc.random.key(s) for s in range(n)])):
        x = run(sc.vmap(lambda k: sc.random.normal(k, (m,), "float32"))(keys))().astype("f8")
        c = np.corrcoef(x)[np.triu_indices(n, 1)]
        assert abs(c).max() < 5.5 / m**0.5 and abs(c.mean()) < 5 / m**0.5 / len(c) ** 0.5
        assert st.kstest(c * m**0.5, st.norm.cdf).pvalue > 1e-4
        y = x.ravel()
        lags = [np.mean(y[lag:] * y[:-lag]) for lag in (1, 2, 3, 4, 5, 8, 64, m)]
        assert abs(np.array(lags)).max() < 5 / y.size**0.5


def test_folding_in_a_symbolic_number():
    step = sc.scalar("step", "int64")
    f = run(sc.random.fold_in(sc.random.key(1), step), step)
    for k in (0, 5, -1, 2**62):
        np.testing.assert_array_equal(f(k), run(sc.random.fold_in(sc.random.key(1), k))())
    seed = sc.scalar("seed", "int64")
    g = run(sc.random.key(seed), seed)
    np.testing.assert_array_equal(g(12), run(sc.random.key(12))())
    keys = run(sc.random.fold_in(sc.random.key(1), np.arange(4)))()
    np.testing.assert_array_equal(keys[2], f(2))


def test_keys_in_a_loop():
    """One key, the number of the step folded in: the numbers of every step are those drawn outside."""
    key = key_input()
    step = lambda total, t: (total, sc.random.normal(sc.random.fold_in(key, t), (3,)))
    ys = run(sc.scan(step, sc.asarray(0.0), sc.arange(4))[1], key)(K)
    single = run(sc.random.normal(sc.random.fold_in(key, 2), (3,)), key)(K)
    np.testing.assert_allclose(ys[2], single, rtol=1e-14)

    def carried(k, _):
        first, second = sc.random.split(k)
        return first, sc.random.uniform(second, (2,))

    out = run(sc.scan(carried, key, length=5)[1], key)(K)
    assert len(np.unique(out)) == 10


def test_a_markov_chain_is_one_kernel():
    """Metropolis with a carried key: the loop, its keys and its draws are native code."""
    key = key_input()

    def step(carry, _):
        k, x = carry
        k, a, b = sc.random.split(k, 3)
        y = x + sc.random.normal(a, (2,))
        accept = sc.log(sc.random.uniform(b)) < (sc.sum(x * x) - sc.sum(y * y)) / 2
        return (k, sc.where(accept, y, x)), x

    f = run(sc.scan(step, (key, sc.zeros(2)), length=50_000)[1], key)
    testing.assert_kernels(f, 1)
    x = f(K)
    np.testing.assert_allclose(np.cov(x.T), np.eye(2), atol=0.1)
    few = run(sc.scan(step, (key, sc.zeros(2)), length=50)[1], key, mode="reference")
    np.testing.assert_allclose(x[:50], few(K), rtol=1e-9, atol=1e-12)


def test_draws_are_not_repeated_in_the_loops_of_a_kernel():
    """Softmax reads its operand three times: numbers that cost more than memory are computed before it, alone."""
    alpha, key = sc.input("alpha", "float64", ("n", 5)), key_input()
    f = run(sc.random.dirichlet(key, alpha), key, alpha)
    testing.assert_kernels(f, 3)
    assert f.source.count("log_gamma_draw(") == 1
    testing.assert_kernels(run(sc.sum(sc.random.normal(key, alpha.shape) ** 2, 1), key, alpha), 1)


def test_only_what_is_read_is_drawn():
    key = key_input()
    x = sc.random.normal(key, (1000, 2000))
    f = run(x[3, 5:8], key)
    assert f.memory() < 1000
    np.testing.assert_array_equal(f(K), run(x, key)(K)[3, 5:8])


# --- compiled code ----------------------------------------------------------------------------------------------------


def test_bits_take_no_memory():
    key, x = key_input(), sc.input("x", "float32", ("n", 64))
    keep = sc.random.bernoulli(key, 0.8, x.shape)
    f = run(sc.where(keep, x / 0.8, 0), key, x)
    testing.assert_kernels(f, 1)
    testing.assert_no_alloc(f)
    out = f(K, np.ones((1000, 64), "f4"))
    assert set(np.unique(out)) == {0, np.float32(1.25)} and abs(out.mean() - 1) < 0.01


def test_large_constants_are_not_folded():
    f = run(sc.random.normal(sc.random.key(0), (1000, 1000)))
    assert "unit_normal" in f.dump() and len(f.dump()) < 3000


def test_monte_carlo():
    key, n = key_input(), sc.input("n", "float64", ("n",))
    x, y = (sc.random.uniform(k, n.shape) for k in sc.random.split(key))
    f = run(4 * sc.mean(sc.where(x * x + y * y < 1, 1.0, 0.0)), key, n)
    assert f(K, np.empty(1_000_000)) == pytest.approx(np.pi, abs=5e-3)
    assert f.memory(n=1_000_000) - 8_000_000 < 100_000, "a million numbers are never in memory"


# --- gradients --------------------------------------------------------------------------------------------------------

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


# --- generators -------------------------------------------------------------------------------------------------------


def test_a_generator_advances_at_each_call():
    rng = sc.random.Generator(7)
    f = sc.compile((rng.normal((3,)), rng.normal((3,))), updates=rng.updates())
    first = [np.concatenate(f()) for _ in range(5)]
    assert len(np.unique(np.stack(first))) == 30
    rng.reset()
    np.testing.assert_array_equal(np.stack([np.concatenate(f()) for _ in range(5)]), np.stack(first))
    rng.reset(8)
    assert not np.isin(np.concatenate(f()), np.stack(first)).any() and rng.seed == 8


def test_without_updates_nothing_changes():
    rng = sc.random.Generator(7)
    f = sc.compile(rng.uniform((3,)))
    np.testing.assert_array_equal(f(), f())


def test_functions_that_share_a_generator_do_not_repeat():
    rng = sc.random.Generator(7)
    x = rng.uniform((4,))
    f = sc.compile(x, updates=rng.updates())
    g = sc.compile((rng.uniform((4,)), rng.uniform((4,))), updates=rng.updates())
    seen = [f(), *g(), f(), f(), *g()]
    assert len(np.unique(np.stack(seen))) == 28


def test_generators_of_one_seed_agree():
    seen = []
    for _ in range(2):
        rng = sc.random.default_rng(3)
        seen.append(sc.compile(rng.gamma(2.0, (3,)), updates=rng.updates())())
    np.testing.assert_array_equal(*seen)
    assert sc.random.Generator().seed != sc.random.Generator().seed


def test_a_generator_is_data():
    rng = sc.random.Generator(11)
    sc.compile(rng.normal((2,)), updates=rng.updates())()
    again = pickle.loads(pickle.dumps(rng))
    one, other = (sc.compile(r.normal((2,)), updates=r.updates()) for r in (rng, again))
    np.testing.assert_array_equal(one(), other())
    one()
    assert (rng.state.get_value() != again.state.get_value()).any()


def test_a_generator_has_every_distribution():
    rng = sc.random.Generator(0)
    for name, fn in sc.random.DISTRIBUTIONS.items():
        assert getattr(sc.random, name) is fn
        own = list(inspect.signature(getattr(rng, name)).parameters)
        assert own == list(inspect.signature(fn).parameters)[1:]
    f = sc.compile([rng.normal(size=(2,)), rng.uniform((2,), minval=1, maxval=2)], updates=rng.updates())
    assert [x.shape for x in f()] == [(2,), (2,)]


def test_other_names():
    key = sc.random.PRNGKey(0)
    assert sc.random.standard_normal(key, (2,)).value is sc.random.normal(key, (2,)).value
    assert sc.random.Generator(0).standard_gamma(2.0, (3,)).shape == (3,)
    with pytest.raises(AttributeError, match="did you mean 'normal'"):
        sc.random.noraml(key)
    with pytest.raises(AttributeError, match="permutation gives a shuffled array"):
        sc.random.shuffle(key, np.arange(3))
    assert set(sc.random.DISTRIBUTIONS) < set(sc.random.__all__) and set(dir(sc.random)) > set(sc.random.__all__)


def test_a_training_step_with_dropout():
    rng = sc.random.Generator(0)
    x = sc.input("x", "float32", ("n", 8))
    w = sc.shared(np.ones(8, "f4"), "w")
    loss = sc.mean((sc.where(rng.bernoulli(0.5, x.shape), 2 * x, 0) @ w) ** 2)
    step = sc.compile(loss, [x], updates={**rng.updates(), w: w - 0.01 * sc.grad(loss, w)})
    data = np.ones((64, 8), "f4")
    losses = [float(step(data)) for _ in range(30)]
    assert losses[-1] < 0.3 * losses[0] and len(set(losses)) == 30


# --- defaults ---------------------------------------------------------------------------------------------------------


def test_dtypes_follow_parameters():
    key, a = sc.random.key(0), sc.vector("a", "float32")
    assert sc.random.gamma(key, a).dtype == np.float32
    assert sc.random.gamma(key, 2).dtype == sc.random.normal(key, (2,)).dtype == np.float64
    assert sc.random.normal(key, (3,), loc=a[0]).dtype == np.float32
    assert sc.random.poisson(key, a).dtype == np.int64 and sc.random.bernoulli(key, a).dtype == np.bool_
    assert sc.random.poisson(key, a, dtype="int32").dtype == np.int32
    sc.set_default_float("float32")
    try:
        assert sc.random.uniform(key, (2,)).dtype == sc.random.gamma(key, 2.0).dtype == np.float32
    finally:
        sc.set_default_float("float64")


def test_shapes_follow_parameters():
    key, m = sc.random.key(0), sc.matrix("m")
    assert sc.random.normal(key, loc=m).shape == m.shape
    assert sc.random.beta(key, m, np.ones(3)).shape[1] == 3
    assert sc.random.normal(key).shape == ()
    assert sc.random.gamma(key, np.ones(3), (2, 3)).shape == (2, 3)
    assert sc.random.uniform(key, m.shape[0]).shape == (m.shape[0],)


# --- mistakes ---------------------------------------------------------------------------------------------------------

R = sc.random
MISTAKES = [
    (lambda k: R.normal(0, (3,)), sc.InputError, "first argument is a key, not 0"),
    (lambda k: R.normal((3,)), sc.InputError, r"first argument is a key, not \(3,\)"),
    (lambda k: R.normal(sc.vector("v"), (3,)), sc.InputError, "this is no key"),
    (lambda k: R.normal(R.split(k, 3), (3,)), sc.InputError, "several keys were given"),
    (lambda k: R.normal(k, 0.0, 1.0), sc.ShapeError, "the shape is an int, a size or a tuple of them, not 0.0"),
    (lambda k: R.normal(k, (2, -1)), sc.ShapeError, "the size -1 is negative"),
    (lambda k: R.normal(k, (3,), "int32"), sc.DTypeError, "normal gives floats, not i32"),
    (lambda k: R.normal(k, (3,), scale=-1.0), sc.InputError, "scale must not be negative, and -1.0 is given"),
    (lambda k: R.normal(k, (3,), loc=np.zeros(4)), sc.ShapeError, r"parameters of shape \(4\) do not fit"),
    (lambda k: R.normal(k, (3,), size=(3,)), sc.InputError, "size and shape are the same argument"),
    (lambda k: R.normal(k, (3,), mean=1.0), sc.InputError, "normal: got an unexpected keyword argument 'mean'"),
    (lambda k: R.normal(k, 0.0, 1.0, (3,)), sc.InputError, "too many positional arguments"),
    (lambda k: R.uniform(k, 3, 0, 1), sc.DTypeError, "uniform: 0 is given where the dtype belongs"),
    (lambda k: R.poisson(), sc.InputError, "missing a required argument: 'key'"),
    (lambda k: R.Generator("a"), sc.InputError, "the seed must be an integer, not 'a'"),
    (lambda k: sc.scan(lambda c, _: (c, R.Generator(0).normal((2,))), 0.0, length=3), sc.InputError,
     "scan: step: a Generator would give the same numbers in each step"),
    (lambda k: R.gamma(k, [1.0, -2.0]), sc.InputError, "a must not be negative, and -2.0 is given"),
    (lambda k: R.gamma(k, "two"), sc.DTypeError, "gamma: a is 'two'"),
    (lambda k: R.gamma(k, 1j), sc.DTypeError, "not a real number"),
    (lambda k: R.beta(k, np.ones(2), np.ones(3)), sc.ShapeError, "operand shapes differ"),
    (lambda k: R.bernoulli(k, 1.5), sc.InputError, "p must be between 0 and 1, and 1.5 is given"),
    (lambda k: R.bernoulli(k, float("nan")), sc.InputError, "p must be between 0 and 1"),
    (lambda k: R.binomial(k, 2.5, 0.5), sc.InputError, "n must be a whole number"),
    (lambda k: R.poisson(k, 3.0, dtype="float32"), sc.DTypeError, "poisson gives integers"),
    (lambda k: R.geometric(k, 0.0), sc.InputError, "p must be above 0"),
    (lambda k: R.truncated_normal(k, 2.0, 1.0), sc.InputError, "lower must be below upper"),
    (lambda k: R.triangular(k, 0.0, 2.0, 1.0), sc.InputError, "mode must be at most right"),
    (lambda k: R.integers(k, 3, 3), sc.InputError, "no integer from low to high"),
    (lambda k: R.integers(k, 0.5), sc.DTypeError, "high is f64, not an integer"),
    (lambda k: R.integers(k, 0, 300, dtype="uint8"), sc.DTypeError, "does not fit u8"),
    (lambda k: R.choice(k, 3, (4,), replace=False), sc.InputError, "4 elements cannot be chosen from 3"),
    (lambda k: R.choice(k, 3, (2,), p=[0.5, 0.5]), sc.ShapeError, "3 elements and 2 probabilities"),
    (lambda k: R.choice(k, 2, (2,), p=[0.5, 0.6]), sc.InputError, "must sum to 1"),
    (lambda k: R.choice(k, 0), sc.InputError, "nothing to choose from"),
    (lambda k: R.permutation(k, sc.scalar("s")), sc.DTypeError, "a value without axes"),
    (lambda k: R.categorical(k, 0.5), sc.ShapeError, "need an axis of categories"),
    (lambda k: R.dirichlet(k, 1.0), sc.ShapeError, "alpha needs an axis"),
    (lambda k: R.multinomial(k, 3, sc.vector("p")), sc.InputError, "length that is known"),
    (lambda k: R.multinomial(k, 3, [0.7, 0.7]), sc.InputError, "must be at most 1"),
    (lambda k: R.multinomial(k, 3, [0.7, -0.1]), sc.InputError, "must not be negative"),
    (lambda k: R.multivariate_normal(k, np.zeros(2)), sc.InputError, "either cov or cholesky"),
    (lambda k: R.multivariate_normal(k, np.zeros(2), -np.eye(2)), sc.InputError, "not positive definite"),
    (lambda k: R.bits(k, (3,), "int32"), sc.DTypeError, "bits gives unsigned integers"),
    (lambda k: R.key(-1), sc.InputError, "the seed must not be negative"),
    (lambda k: R.key(1.5), sc.InputError, "the seed must be an integer, not 1.5"),
    (lambda k: R.key(None), sc.InputError, "the seed must be an integer, not None"),
    (lambda k: R.fold_in(k, 0.5), sc.DTypeError, "must be integers, not f64"),
    (lambda k: R.split(k, -1), sc.ShapeError, "the size -1 is negative"),
    (lambda k: R.split(7), sc.InputError, "first argument is a key, not 7"),
]


@pytest.mark.parametrize(("mistake", "error", "words"), MISTAKES, ids=[str(k) for k in range(len(MISTAKES))])
def test_mistakes(mistake, error, words):
    with pytest.raises(error, match=words) as caught:
        mistake(sc.random.key(0))
    shown = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert "test_random.py" in shown, "the user's line"


def test_parameters_that_are_not_known_before_the_call():
    a = sc.vector("a")
    key = sc.random.key(0)
    f = run((sc.random.gamma(key, a), sc.random.poisson(key, a), sc.random.geometric(key, a)), a)
    x, k, g = f(np.array([-1.0, np.nan, 0.5]))
    assert np.isnan(x[:2]).all() and np.isfinite(x[2])
    assert k[:2].tolist() == [-1, -1] and k[2] >= 0
    assert g[:2].tolist() == [-1, -1] and g[2] >= 1
