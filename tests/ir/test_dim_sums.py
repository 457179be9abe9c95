"""Sums of sizes with calls: what was taken off an axis and what is left of it are the axis."""

import random
from cProfile import Profile

import numpy as np
import pytest

import symc as sc
from symc.ir.dim import Measured, polynomial, size_name, terms_of
from symc.ir.size_extremes import maximum, minimum
from symc.ir.size_values import evaluate

N, M = size_name("n"), size_name("m")
PLACES = [{"n": a, "m": b} for a in range(5) for b in range(5)]


@pytest.mark.parametrize("size, want", [
    (maximum(0, N - 1) + minimum(1, N), N), (maximum(0, N - M) + minimum(N, M), N),
    (2 * maximum(0, N - 3) + 2 * minimum(3, N) + M, 2 * N + M), (M * maximum(0, N - 1) + M * minimum(1, N), M * N),
    (maximum(N - maximum(0, N - 1), 0) + maximum(0, N - 1), N),
])
def test_what_is_left_and_what_was_taken(size, want):
    assert size == want


@pytest.mark.parametrize("size, want", [
    (maximum(0, maximum(0, N - 1) - 1), maximum(0, N - 2)), (maximum(maximum(0, N - M) - M, 0), maximum(0, N - 2 * M)),
    (maximum(0, maximum(0, maximum(0, N - 1) - 2) - M), maximum(0, N - 3 - M)),
])
def test_slices_of_slices_have_one_length(size, want):
    assert size == want
    assert maximum(0, maximum(0, N - 2) + 1 - M) != maximum(0, N - 1 - M)  # of nothing, one more is left


def test_differences_of_differences_have_no_guard():
    """Middles of an array, however they are sliced: one kernel, with nothing to check."""
    v = sc.input("v", shape=("n",))
    middle = v[1:][:-1] + v[1:-1] * v[2:]
    f = sc.compile(middle + v[:-1][:-1], [v])
    assert len(f.kernels) == 1 and "ensure" not in f.dump()
    for n in (0, 1, 2, 3, 9):
        x = np.arange(float(n))
        assert np.array_equal(f(x), x[1:][:-1] + x[1:-1] * x[2:] + x[:-1][:-1])


def test_formulas_have_their_numbers():
    rng = random.Random(0)
    ops = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "min": minimum, "max": maximum}
    for _ in range(300):
        made = [(N, [p["n"] for p in PLACES]), (M, [p["m"] for p in PLACES]), *[(k, [k] * 25) for k in range(3)]]
        for _ in range(rng.randint(2, 7)):
            name, (a, x), (b, y) = rng.choice(list(ops)), rng.choice(made), rng.choice(made)
            numbers = {"min": min, "max": max}.get(name, ops[name])
            made.append((ops[name](a, b), [numbers(i, j) for i, j in zip(x, y)]))
        size, want = made[-1]
        assert [evaluate(size, p) for p in PLACES] == want


@pytest.mark.parametrize("shifted", [
    lambda v: sc.concatenate([v[1:], v[-1:]]), lambda v: sc.concatenate([v[:1], v[:-1]]),
    lambda v: sc.concatenate([v[-3:], v[:-3]]), lambda v: sc.concatenate([v[2:], v[:2]]),
])
def test_shifts_share_the_kernel_of_what_they_meet(shifted):
    """An axis of unknown size that is put together again has its own size: no guard, and one kernel."""
    v, w = sc.input("v", shape=("n",)), sc.input("w", shape=("n",))
    e = sc.maximum(0.3 * shifted(v) + 0.7 * v, sc.exp(w))
    f = sc.compile(e, [v, w])
    assert e.shape == v.shape and len(f.kernels) == 1
    for n in (0, 1, 2, 3, 9):
        x, y = np.random.default_rng(n).normal(size=(2, n))
        np.testing.assert_allclose(f(x, y), sc.compile(e, [v, w], mode="reference")(x, y), rtol=1e-12)


def test_sums_of_many_lengths_take_linear_time():
    """What is left of an axis after each of n slices: calls of Python are counted."""

    def calls(n):
        terms = [t for k in range(n) for t in terms_of(maximum(0, N - k - 1))]
        with Profile() as p:
            polynomial(terms)
        return sum(e.callcount for e in p.getstats())

    calls(2)
    assert calls(200) < 5 * calls(50)


def test_a_sum_grows_term_by_term_in_linear_time(monkeypatch):
    """The length of what n arrays are joined to, as Python's ``sum`` makes it, is what all terms at once are."""

    def calls(n):
        sizes = [size_name(f"{'nmk'[k % 3]}{k * 7 % n}") * (k % 5 - 2) for k in range(n)]
        with Profile() as p:
            total = sum(sizes)
        assert total == polynomial([t for s in sizes for t in terms_of(s)])
        return sum(e.callcount for e in p.getstats())

    calls(2)
    assert calls(803) < 6 * calls(201)
    monkeypatch.setattr(Measured, "made", 1)  # as after a size that is data
    assert calls(809) < 6 * calls(203)
