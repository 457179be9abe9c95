"""Which random numbers are the same to the last bit wherever they are drawn, and how close the others are.

Bits, uniform numbers, whole numbers, choices and the numbers that all others are made of (normal, exponential, Gumbel)
are the same in every mode, in kernels of any length, alone and in loops, on one thread and several. What is computed
from them by sums, powers and logarithms agrees up to rounding, as all arithmetic does.
"""

from __future__ import annotations

import inspect
from fractions import Fraction

import numpy as np
import pytest

import symc as sc
from symc.ir.ops import random_reference as reference

K = np.array([0x0123456789ABCDEF, 42], np.uint64)
P = np.array([0.2, 0.5, 0.3])
#: The same to the last bit.
SAME = [
    ("bits", {}), ("bits", dict(dtype="uint64")), ("uniform", {}), ("random", {}), ("normal", {}), ("exponential", {}),
    ("laplace", {}), ("gumbel", {}), ("rayleigh", {}), ("cauchy", {}), ("rademacher", {}), ("bernoulli", dict(p=0.3)),
    ("integers", dict(low=-3, high=9)), ("integers", dict(low=0, high=2**40)), ("randint", dict(low=0, high=7)),
    ("poisson", dict(lam=0.3)), ("poisson", dict(lam=40.0)), ("binomial", dict(n=12, p=0.4)),
    ("binomial", dict(n=1000, p=0.3)), ("negative_binomial", dict(n=2.5, p=0.3)), ("geometric", dict(p=0.2)),
    ("multinomial", dict(n=9, pvals=P)), ("categorical", dict(logits=np.array([0.1, 0.5, 0.3]))),
    ("categorical", dict(logits=np.array([0.1, 0.5, 0.3], "f4"))), ("choice", dict(a=5)), ("choice", dict(a=3, p=P)),
    ("permutation", dict(x=50)),
]  # fmt: skip
#: Up to so many times the precision of their dtype.
CLOSE = [
    ("uniform", dict(low=-1.0, high=0.7), 1), ("normal", dict(loc=0.3, scale=1.7), 2), ("lognormal", {}, 16),
    ("truncated_normal", dict(lower=0.5, upper=3.0), 16), ("logistic", {}, 16), ("weibull", dict(a=0.7), 64),
    ("pareto", dict(b=2.5), 64), ("power", dict(a=0.4), 64), ("triangular", dict(left=-1.0, mode=0.0, right=3.0), 4),
    ("gamma", dict(a=0.3), 64), ("gamma", dict(a=7.5), 64), ("loggamma", dict(a=0.3), 64),
    ("chisquare", dict(df=3.0), 64), ("beta", dict(a=2.0, b=0.5), 64), ("dirichlet", dict(alpha=P), 64),
    ("f", dict(dfnum=5.0, dfden=7.0), 64), ("t", dict(df=2.5), 64), ("generalized_normal", dict(p=1.5), 64),
    ("maxwell", {}, 4), ("wald", dict(mean=1.0), 16), ("sphere", dict(d=3), 8), ("ball", dict(d=3), 64),
    ("multivariate_normal", dict(mean=np.ones(2), cov=np.array([[2.0, 1.0], [1.0, 1.0]])), 16),
]  # fmt: skip
DTYPES = ("float64", "float32", "float16")


def test_every_distribution_is_in_one_of_the_tables():
    assert {name for name, *_ in [*SAME, *CLOSE]} == set(sc.random.DISTRIBUTIONS)


def drawn(name, arguments, n):
    """The numbers in every dtype that they can have, as a function of the key."""
    fn = getattr(sc.random, name)
    parameters = inspect.signature(fn).parameters
    shaped = {} if name == "permutation" else dict(shape=(n,))
    floats = "dtype" in parameters and name not in ("bits", "integers", "randint", "poisson", "binomial", "geometric",
                                                    "negative_binomial", "multinomial")  # fmt: skip
    kinds = [dict(dtype=d) for d in DTYPES] if floats else [{}]
    return lambda key: [fn(key, **arguments, **shaped, **kind) for kind in kinds]


def numbers(draw, **options):
    key = sc.input("key", "uint64", (2,))
    return sc.compile(draw(key), [key], **options)(K)


def the_same(a, b):
    for x, y in zip(a, b, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("case", SAME, ids=lambda c: c[0])
def test_the_same_to_the_last_bit(case):
    draw, keys = drawn(*case, 1003), sc.input("keys", "uint64", ("n", 2))  # no multiple of what a kernel takes at once
    wanted = numbers(draw, mode="reference")
    _, steps = sc.scan(lambda c, k: (c, draw(k)), 0.0, keys)
    alone, in_loop = sc.compile([draw(keys[1]), steps], [keys])(np.stack([K + np.uint64(1), K]))
    the_same(alone, wanted)
    the_same([m[1] for m in in_loop], wanted)


@pytest.mark.parametrize("name", ["normal", "exponential", "gumbel", "uniform"])
def test_lengths_and_threads_do_not_matter(name):
    long = numbers(drawn(name, {}, 150_001), threads=2)
    for n in (1, 3, 31):
        the_same(numbers(drawn(name, {}, n)), [x[:n] for x in long])
    the_same([x[-2000:] for x in numbers(drawn(name, {}, 150_001), mode="fast_compile")], [x[-2000:] for x in long])
    key = sc.input("key", "uint64", (2,))
    one = [getattr(sc.random, name)(key, (1003,), d)[1002] for d in DTYPES]  # no vector, and computed alone
    the_same(sc.compile(one, [key])(K), [x[1002] for x in long])


def test_what_is_computed_with_them_does_not_change_them():
    """Products and sums around a draw are contracted, none of its own is."""
    x, key = sc.input("x", "float64", ("n",)), sc.input("key", "uint64", (2,))
    z = sc.random.normal(key, (1003,))
    y = sc.random.exponential(key, (1003,))
    f = sc.compile([z, z * x + 1.0, y, (y * x + z) * z], [x, key])
    wanted = [numbers(drawn(name, {}, 1003), mode="reference")[0] for name in ("normal", "exponential")]
    found = f(np.linspace(0, 1, 1003), K)
    the_same([found[0], found[2]], wanted)


@pytest.mark.parametrize("case", CLOSE, ids=lambda c: c[0])
def test_the_others_agree_up_to_rounding(case):
    name, arguments, ulps = case
    draw = drawn(name, arguments, 1003)
    for x, y in zip(numbers(draw), numbers(draw, mode="reference"), strict=True):
        eps = float(np.finfo(x.dtype).eps)
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x.astype("f8"), y.astype("f8"), rtol=ulps * eps, atol=ulps * eps)


# --- the operation that NumPy has not ---------------------------------------------------------------------------------


def hard_cases(dtype):
    rng, n = np.random.default_rng(0), 4000
    x, y, z = rng.normal(size=(3, n))
    z[: n // 4] = -(x * y)[: n // 4]
    z[n // 4 : n // 2] *= 10.0 ** rng.integers(-12, 12, n // 4)
    half = slice(n // 2, 3 * n // 4)  # between two numbers, but for a little
    bits = 12 if dtype == "f4" else 26
    x[half], y[half] = rng.integers(2**bits, 2 ** (bits + 1), (2, n // 4))
    z[half] = rng.choice([-1, 1], n // 4) * 2.0 ** -rng.integers(1, 30, n // 4)
    return [a.astype(dtype) for a in (x, y, z)]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_fma_rounds_once(dtype):
    x, y, z = hard_cases(dtype)
    exact = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c in zip(x, y, z, strict=True)]
    found = reference.fma(x, y, z)
    assert found.dtype == dtype
    for r, e in zip(found, exact, strict=True):
        error = abs(Fraction(float(r)) - e)
        near = [np.nextafter(r, np.array(s, dtype)) for s in (np.inf, -np.inf)]
        assert all(error < d or error == d and r.view(f"i{r.itemsize}") % 2 == 0
                   for d in (abs(Fraction(float(x)) - e) for x in near))
    assert np.mean(x * y + z != found) > 0.1
