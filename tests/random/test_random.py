"""sc.random as a program: keys, streams, the same numbers everywhere, and what compiled code looks like."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.stats as st

import symc as sc
from symc import testing
from symc.ir.ops import random_reference as reference
from symc.ir.ops.random import below, philox32
from tests.random.test_random_numbers import CONTINUOUS, DISCRETE, ids

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
