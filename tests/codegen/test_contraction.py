"""Products that a difference is made of, or that are read twice, are rounded as NumPy rounds them: no kernel makes one
operation of such a product and a sum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc

#: Products of two vectors, and what may be between a product and its readers.
PRODUCTS = {"x*x": lambda x, y: x * x, "x*y": lambda x, y: x * y,
            "matrices": lambda x, y: x.reshape(4, 3) * y.reshape(4, 3)}
MOVES = {"": lambda p: p, "[::-1]": lambda p: p[::-1], ".T": lambda p: p.T, "reshape": lambda p: p.reshape(-1)}
#: Sums and differences that NumPy computes exactly, or in one way only.
READS = {
    "p - max(p)": lambda p, x: p - np.max(p), "max(p) - p": lambda p, x: np.max(p) - p,
    "p - min(p)": lambda p, x: p - np.min(p, axis=0), "diff": lambda p, x: np.diff(p, axis=0),
    "p - x": lambda p, x: p - x[0], "p + x and p": lambda p, x: np.stack([p + x[1], p]),
    "where": lambda p, x: np.where(p > 0.2, p - x[0], p + x[1]), "-p + x": lambda p, x: -p + x[2],
    "p - q": lambda p, x: p - p[::-1], "p + x == p": lambda p, x: (p + x[0]) * (p > 0.5),
}  # fmt: skip


@pytest.mark.parametrize("dtype, mode", [("float32", "fast_compile"), ("float64", "default")])
def test_sums_of_products_are_numpys(dtype, mode):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=12).astype(dtype) for _ in range(2))
    cases = list(itertools.product(PRODUCTS, MOVES, READS))
    inputs = [sc.input(f"{name}{k}", dtype, ("n",)) for k in range(len(cases)) for name in "xy"]  # nothing is shared

    def all_of(xs):
        return [READS[r](MOVES[m](PRODUCTS[p](x, y)), x)
                for (p, m, r), x, y in zip(cases, xs[::2], xs[1::2], strict=True)]

    arrays = [a, b] * len(cases)
    got, want = sc.compile(all_of(inputs), inputs, mode=mode)(*arrays), all_of(arrays)
    wrong = [case for case, have, w in zip(cases, got, want, strict=True) if not np.array_equal(have, w)]
    assert not wrong


def test_squares_of_equal_numbers_have_a_variance_of_zero():
    x = sc.vector("x")
    f = sc.compile(sc.sqrt(sc.mean(x * x) - sc.mean(x) ** 2), [x])
    for number in np.random.default_rng(1).normal(size=50):
        assert f(np.array([number])) == 0.0


def test_in_a_loop_that_is_a_kernel():
    def step(c, _):
        u, v = c
        return (u * v - v * u + 0.3 * u * u - 0.3 * v * v, v), None

    x = sc.scalar("x")
    f = sc.compile(sc.scan(step, (x, x), None, length=1)[0][0], [x])
    for number in np.random.default_rng(2).normal(size=50):
        assert f(number) == 0.0


def rounded(e, *inputs):
    """How many products are rounded in the texts of a program's kernels."""
    return sc.compile(e, list(inputs)).source.count("times(")


def test_products_that_are_added_alone_keep_their_fused_operation():
    x, y = sc.vector("x"), sc.vector("y")
    p = x * 0
    for k in range(5):
        p = p * x + (0.3 * k + 1)
    assert rounded(p, x) == rounded(x * y + y, x, y) == rounded(sc.sum(x * y), x, y) == rounded(x * y * y, x, y) == 0
    assert rounded(x * y - (x + y), x, y) == rounded(x + y - x * y, x, y) == 0
    assert rounded([x * y + y, x * y], x, y) == rounded(x * y - y, x, y) == rounded(y - x * y, x, y) == 1
