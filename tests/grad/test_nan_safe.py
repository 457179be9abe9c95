"""Gradients are finite where what is infinite or nan does not matter: one table, in both modes, once and twice.

A row: the function, a point, and its gradient there. The conventions are those of docs/derivatives.md.
"""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.ir.reference import run_values

INF = np.inf
MASK = np.array([[True, True, False], [False, False, False]])


def _masked_softmax(x):
    p = sc.softmax(sc.where(MASK, x, -INF), axis=1)
    return sc.where(MASK, p, 0.0) * np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])


def _masked_log_softmax(x):
    p = sc.log(sc.softmax(sc.where(MASK, x, -INF), axis=1))
    return sc.where(MASK, p, 0.0)


def _masked_norm(x):
    """Distances of which that of a point to itself is 0."""
    d = x[:, None] - x[None, :]
    return sc.sqrt(sc.maximum((d * d).sum(axis=2), 0.0))


def _pairwise(x):
    """The same by the square of a difference, with its rounding errors."""
    s = (x * x).sum(axis=1)
    return sc.sqrt(sc.maximum(s[:, None] + s[None, :] - 2 * x @ x.T, 0.0))


def _log_above(x):
    return sc.where(x > 0, sc.log(x), 0.0)


A = np.array([[1.0, 2.0], [3.0, 4.0]])
SYMMETRIC = np.array([[2.0, 1.0], [1.0, 3.0]])
I = np.array([0, 0, 1])

CASES = {
    # guards
    "log": (_log_above, [0.0, -1.0, 2.0], [0.0, 0.0, 0.5]),
    "log2, log10, log1p": (
        lambda x: sc.where(x > 0, sc.log2(x) + sc.log10(x) + sc.log1p(-1 / x), 0.0),
        [0.0, -1.0, 2.0],
        [0.0, 0.0, 0.5 / np.log(2) + 0.5 / np.log(10) + 0.5],
    ),
    "sqrt": (lambda x: sc.where(x > 0, sc.sqrt(x), 0.0), [0.0, -1.0, 4.0], [0.0, 0.0, 0.25]),
    "cbrt": (lambda x: sc.where(x != 0, sc.cbrt(x), 0.0), [0.0, 8.0], [0.0, 1 / 12]),
    "quotient": (lambda x: sc.where(x != 0, 1 / x, 0.0), [0.0, 2.0], [0.0, -0.25]),
    "quotient of zeros": (lambda x: sc.where(x != 0, x / x, 1.0), [0.0, 2.0], [0.0, 0.0]),
    "power": (lambda x: sc.where(x > 0, x**-1.5, 0.0), [0.0, -1.0, 1.0], [0.0, 0.0, -1.5]),
    "power of a power": (lambda x: sc.where(x > 0, x**x, 0.0), [0.0, -1.0, 1.0], [0.0, 0.0, 1.0]),
    "norm": (lambda x: sc.where(x.sum() > 0, sc.linalg.norm(x), 0.0) * 1.0, [0.0, 0.0], [0.0, 0.0]),
    "acos, asin": (lambda x: sc.where(abs(x) < 1, sc.arccos(x) + 2 * sc.arcsin(x), 0.0), [1.0, -1.0, 0.0], [0, 0, 1.0]),
    "acosh, atanh": (
        lambda x: sc.where(x > 1, sc.arccosh(x), 0.0) + sc.where(x < 1, sc.arctanh(x - 1), 0.0),
        [1.0, 2.0],
        [0.0, 1 / np.sqrt(3)],
    ),
    "arctan2": (lambda x: sc.where(x > 0, sc.arctan2(x, x), sc.arctan2(0 * x, x)), [0.0, 1.0], [0.0, 0.0]),
    "two guards": (lambda x: sc.where(x > 1, sc.sqrt(_log_above(x)), 0.0), [0.0, 1.0, np.e], [0.0, 0.0, 0.5 / np.e]),
    "exp": (lambda x: sc.where(x < 10, sc.exp(x) * sc.exp(x), 0.0), [1000.0, 0.0], [0.0, 2.0]),
    "lgamma": (lambda x: sc.where(x > 0, sc.gammaln(x), 0.0), [0.0, -1.0], [0.0, 0.0]),
    # what is chosen by other ops
    "minimum of exp": (lambda x: sc.minimum(sc.exp(x), 5.0), [1000.0, 0.0], [0.0, 1.0]),
    "maximum of log": (lambda x: sc.maximum(sc.log(x), -1.0), [0.0, 1.0], [0.0, 1.0]),
    "max of log": (lambda x: sc.log(x).max(), [0.0, 2.0], [0.0, 0.5]),
    "clip of exp": (lambda x: sc.clip(sc.exp(x), 0.0, 5.0), [1000.0, 0.0], [0.0, 1.0]),
    "slice": (lambda x: (x * sc.log(x))[1:], [0.0, 1.0], [0.0, 1.0]),
    "gather": (lambda x: sc.log(x)[np.array([1, 1])], [0.0, 2.0], [0.0, 1.0]),
    "set": (lambda x: sc.log(x).at[0].set(0.0), [0.0, 1.0], [0.0, 1.0]),
    "sort": (lambda x: sc.sort(sc.log(x))[1:], [0.0, 2.0, 1.0], [0.0, 0.5, 1.0]),
    # 0 * infinity through products of arrays and functions with a derivative of their own
    "dot of what is masked": (
        lambda x: sc.where(np.array([True, False]), A @ sc.exp(x * np.array([1.0, 0.0])), 0.0),
        [0.0, 1000.0],
        [1.0, 0.0],
    ),
    "masked rows of a product": (
        lambda x: sc.where(np.array([[True], [False]]), sc.log(x) @ A, 0.0),
        [[1.0, 2.0], [0.0, 0.0]],
        [[3.0, 3.5], [0.0, 0.0]],
    ),
    "prod behind a guard": (lambda x: sc.where(x > 0, sc.prod(1 / x), 0.0), [0.0, 0.0], [0.0, 0.0]),
    "cumprod behind a guard": (lambda x: sc.where(x > 0, sc.cumprod(1 / x), 0.0), [2.0, 0.0], [-0.25, 0.0]),
    "norm behind a guard": (lambda x: sc.where(x > 0, sc.linalg.norm(1 / x), 0.0), [0.0, 0.0], [0.0, 0.0]),
    "logsumexp behind a guard": (lambda x: sc.where(x > 0, sc.logsumexp(1 / x), 0.0), [0.0, 0.0], [0.0, 0.0]),
    "abs behind a guard": (lambda x: sc.where(x > 0, abs(sc.log(x)), 0.0), [0.0, 2.0], [0.0, 0.5]),
    "grad_scale behind a guard": (
        lambda x: sc.where(x > 0, sc.grad_scale(sc.log(x), 2.0), 0.0),
        [0.0, 2.0],
        [0.0, 1.0],
    ),
    "solve behind a guard": (
        lambda x: sc.where(x[0] > 0, sc.linalg.solve(SYMMETRIC * x[0], sc.ones(2)), 0.0),
        [1.0, 5.0],
        [-0.6, 0.0],
    ),
    # roots at 0
    "root of a clipped sum": (lambda x: sc.sqrt(sc.maximum(x.sum(), 0.0)), [0.0, 0.0], [0.0, 0.0]),
    "root of a clipped sum below 0": (lambda x: sc.sqrt(sc.maximum(x.sum(), 0.0)), [-1.0, 0.5], [0.0, 0.0]),
    "distances": (_masked_norm, [[0.0, 0.0], [3.0, 4.0]], [[-1.2, -1.6], [1.2, 1.6]]),
    "distances by squares": (_pairwise, [[0.0, 0.0], [3.0, 4.0]], [[-1.2, -1.6], [1.2, 1.6]]),
    "norm at 0": (lambda x: sc.sqrt((x * x).sum()), [0.0, 0.0], [0.0, 0.0]),
    "norms of rows": (lambda x: sc.sqrt((x**2).sum(axis=1)), [[0.0, 0.0], [3.0, 4.0]], [[0.0, 0.0], [0.6, 0.8]]),
    "norm of a product with itself": (lambda x: sc.sqrt(x @ x), [0.0, 0.0], [0.0, 0.0]),
    "hypot at 0": (lambda x: sc.hypot(x, 0 * x), [0.0, 2.0], [0.0, 1.0]),
    "root of a square": (lambda x: sc.sqrt(x * x), [0.0, -2.0], [0.0, -1.0]),
    "std of constants": (lambda x: sc.std(x), [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
    # softmax and sums of exponentials
    "masked softmax": (_masked_softmax, [[0.0, 0.0, 5.0], [1.0, 2.0, 3.0]], [[-0.25, 0.25, 0.0], [0.0, 0.0, 0.0]]),
    "masked log softmax": (_masked_log_softmax, [[0.0, 0.0, 5.0], [1.0, 2.0, 3.0]], np.zeros((2, 3))),
    "logsumexp of -inf": (lambda x: sc.logsumexp(x), [-INF, -INF], [0.0, 0.0]),
    "logsumexp with -inf": (lambda x: sc.logsumexp(x), [-INF, 1.0], [0.0, 1.0]),
    "logaddexp of -inf": (lambda x: sc.logaddexp(x, 0.0), [-INF, 0.0], [0.0, 0.5]),
    "softplus": (lambda x: sc.log(1 + sc.exp(x)), [1000.0, -1000.0], [1.0, 0.0]),
    "sigmoid": (lambda x: 1 / (1 + sc.exp(-x)), [1000.0, -1000.0], [0.0, 0.0]),
    "tanh": (lambda x: (sc.exp(x) - sc.exp(-x)) / (sc.exp(x) + sc.exp(-x)), [1000.0, -1000.0], [0.0, 0.0]),
    "cross-entropy": (
        lambda x: -sc.log(sc.softmax(x, axis=1))[np.arange(2), np.array([0, 1])],
        [[1000.0, -1000.0], [0.0, 0.0]],
        [[0.0, 0.0], [0.5, -0.5]],
    ),
    # kinks, ties and zeros
    "abs": (lambda x: abs(x), [0.0, -2.0], [0.0, -1.0]),
    "power 0": (lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
    "power 1 and 2": (lambda x: x**1.0 + x**2.0, [0.0, 3.0], [1.0, 7.0]),
    "prod": (lambda x: x.prod(), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    "prod with two zeros": (lambda x: x.prod(), [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
    "cumprod": (lambda x: sc.cumprod(x), [2.0, 0.0, 3.0], [1.0, 8.0, 0.0]),
    "cumsum": (lambda x: sc.cumsum(x) * sc.cumsum(x), [0.0, 0.0], [0.0, 0.0]),
    "max ties": (lambda x: x.max(), [3.0, 1.0, 3.0], [0.5, 0.0, 0.5]),
    "clip ends": (lambda x: sc.clip(x, 0.0, 1.0), [0.0, 1.0, 0.5, 2.0], [0.5, 0.5, 1.0, 0.0]),
    "sinc": (lambda x: sc.sinc(x), [0.0], [0.0]),
    "sin(x) / x": (lambda x: sc.sin(x) / x, [0.0], [0.0]),
    # segments
    "segment sum": (lambda x: sc.zeros(2).at[I].add(_log_above(x)), [0.0, 2.0, 4.0], [0.0, 0.5, 0.25]),
    "segment max": (
        lambda x: sc.zeros(2).at[I].max(sc.where(x > 0, sc.log(x), -1.0)),
        [0.0, np.e, np.e**2],
        [0.0, 1 / np.e, 1 / np.e**2],
    ),
}


def number(t, x, at):
    return run_values([t.value], {x.value: at}, {})[0]


def once(name):
    fn, at, want = CASES[name]
    at = np.asarray(at, "f8")
    x = sc.input("x", "float64", at.shape)
    return x, sc.sum(fn(x)), at, np.asarray(want, "f8")


@pytest.mark.parametrize("name", CASES)
def test_reverse(name):
    x, cost, at, want = once(name)
    np.testing.assert_allclose(number(sc.grad(cost, x), x, at), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_forward_says_the_same(name):
    x, cost, at, want = once(name)
    for k in np.ndindex(at.shape):
        direction = np.zeros(at.shape)
        direction[k] = 1
        got = number(sc.jvp(cost, x, sc.array(direction)), x, at)
        np.testing.assert_allclose(got, want[k], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_are_finite(name):
    x, cost, at, _ = once(name)
    second = number(sc.grad(sc.grad(cost, x).sum(), x, disconnected="zero"), x, at)
    assert np.isfinite(second).all(), second


def test_compiled_gradients_say_the_same():
    names = [
        "masked softmax",
        "distances by squares",
        "dot of what is masked",
        "masked log softmax",
        "std of constants",
    ]
    rows = [once(n) for n in names]
    f = sc.compile([sc.grad(cost, x) for x, cost, _, _ in rows], [x for x, _, _, _ in rows])
    for got, (_, _, _, want) in zip(f(*[at for _, _, at, _ in rows]), rows, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
