"""Programs of statistics: moments, ranks, regressions, resampling, densities, clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import counts, program, repeat


@program(2_000, 20, lambda r, n: [r.normal(size=(n, 50))])
def z_scores(xp: Any, x: Any) -> Any:
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


@program(5_000, 30, lambda r, n: [r.normal(size=(n, 30))])
def correlations(xp: Any, x: Any) -> Any:
    centred = x - xp.mean(x, axis=0)
    c = centred.T @ centred
    d = xp.sqrt(xp.diag(c))
    return c / d[:, None] / d[None, :]


@program(200_000, 50, lambda r, n: [r.normal(size=n)])
def skew_and_kurtosis(xp: Any, x: Any) -> Any:
    d = x - xp.mean(x)
    v = xp.mean(d**2)
    return xp.mean(d**3) / v**1.5, xp.mean(d**4) / v**2 - 3


@program(5_000, 40, lambda r, n: [r.normal(size=(n, 10)), r.normal(size=n)])
def regression(xp: Any, x: Any, y: Any) -> Any:
    inverse = xp.linalg.inv(x.T @ x)
    beta = inverse @ (x.T @ y)
    rest = y - x @ beta
    error = xp.sqrt(xp.diag(inverse) * xp.sum(rest * rest) / (x.shape[0] - 10))
    return beta, beta / error


@program(5_000, 40, lambda r, n: [r.normal(size=(n, 8)), (r.normal(size=n) > 0) * 1.0])
def logistic_newton(xp: Any, x: Any, y: Any) -> Any:
    def step(i: Any, w: Any) -> Any:
        p = 1 / (1 + xp.exp(-(x @ w)))
        hessian = (x * (p * (1 - p))[:, None]).T @ x
        return w - xp.linalg.solve(hessian, x.T @ (p - y))

    return repeat(xp, 4, step, xp.zeros_like(x[0]))


@program(100_000, 51, lambda r, n: [r.normal(size=n)])
def median_deviation(xp: Any, x: Any) -> Any:
    return xp.median(xp.abs(x - xp.median(x)))


@program(100_000, 51, lambda r, n: [r.normal(size=n)])
def quartiles(xp: Any, x: Any) -> Any:
    return xp.quantile(x, np.array([0.05, 0.25, 0.5, 0.75, 0.95]))


@program(50_000, 30, lambda r, n: [r.normal(size=n)])
def ranks(xp: Any, x: Any) -> Any:
    return xp.argsort(xp.argsort(x))


@program(1_000, 9, lambda r, n: [r.normal(size=(n, 300))])
def five_least(xp: Any, distances: Any) -> Any:
    """Neighbours, as those without a tree find them."""
    return xp.argsort(distances, axis=1)[:, :5]


@program(1_000, 9, lambda r, n: [r.normal(size=(n, 300))])
def three_greatest(xp: Any, scores: Any) -> Any:
    return xp.sort(scores, axis=1)[:, -3:]


@program(50_000, 30, lambda r, n: [r.normal(size=n), r.normal(size=n)])
def spearman(xp: Any, x: Any, y: Any) -> Any:
    d = xp.argsort(xp.argsort(x)) - xp.argsort(xp.argsort(y))
    n = x.shape[0]
    return 1 - 6 * xp.sum(d * d) / (n * (n * n - 1))


@program(2_000, 20, lambda r, n: [r.normal(size=n), r.integers(0, n, (200, n))])
def bootstrap_means(xp: Any, x: Any, draws: Any) -> Any:
    means = xp.sort(xp.mean(x[draws], axis=1))
    return means[5], means[194]


@program(1_000, 20, lambda r, n: [r.normal(size=n), np.linspace(-3, 3, 400)])
def kernel_density(xp: Any, x: Any, at: Any) -> Any:
    u = (at[:, None] - x[None, :]) / 0.3
    return xp.mean(xp.exp(-0.5 * u * u), axis=1) / (0.3 * np.sqrt(2 * np.pi))


@program(200_000, 100, lambda r, n: [r.uniform(0, 10, n)])
def histogram(xp: Any, x: Any) -> Any:
    return counts(xp, xp.clip((x * 10).astype("int64"), 0, 99), 100) / x.shape[0]


@program(100_000, 60, lambda r, n: [r.integers(0, 50, n), r.normal(size=n)])
def group_means(xp: Any, group: Any, x: Any) -> Any:
    return counts(xp, group, 50, x) / xp.maximum(counts(xp, group, 50), 1)


@program(5_000, 30, lambda r, n: [r.normal(size=(n, 6)), np.cov(r.normal(size=(6, 99)))])
def mahalanobis(xp: Any, x: Any, cov: Any) -> Any:
    d = x - xp.mean(x, axis=0)
    return xp.sqrt(xp.sum(d @ xp.linalg.inv(cov) * d, axis=1))


@program(5_000, 40, lambda r, n: [r.normal(size=(n, 4)), r.normal(size=(8, 4))])
def k_means(xp: Any, x: Any, centres: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        near = xp.argmin(xp.sum((x[:, None, :] - c[None, :, :]) ** 2, axis=2), axis=1)
        member = (near[:, None] == xp.arange(8)[None, :]).astype("float64")
        return (member.T @ x) / xp.maximum(xp.sum(member, axis=0), 1.0)[:, None]

    return repeat(xp, 5, step, centres)


@program(10_000, 30, lambda r, n: [r.normal(size=n), r.normal(size=n)])
def kolmogorov_smirnov(xp: Any, x: Any, y: Any) -> Any:
    a, b = xp.sort(x), xp.sort(y)
    every = xp.concatenate([a, b])
    below_a = xp.searchsorted(a, every, side="right") / a.shape[0]
    below_b = xp.searchsorted(b, every, side="right") / b.shape[0]
    return xp.max(xp.abs(below_a - below_b))


@program(20_000, 30, lambda r, n: [r.normal(size=(n, 5)), r.normal(size=(3, 5)), r.uniform(1, 2, (3, 5))])
def mixture_likelihood(xp: Any, x: Any, mean: Any, std: Any) -> Any:
    z = (x[:, None, :] - mean) / std
    log_p = xp.sum(-0.5 * z * z - xp.log(std), axis=2) - np.log(3)
    top = xp.max(log_p, axis=1, keepdims=True)
    return xp.mean(xp.log(xp.sum(xp.exp(log_p - top), axis=1)) + top[:, 0])


@program(100_000, 30, lambda r, n: [np.cumsum(r.normal(size=n))])
def place_in_range(xp: Any, x: Any) -> Any:
    """Place of a number between the least and the greatest of the sixteen before it."""
    high = low = x[15:]
    for k in range(15):
        near = x[k : x.shape[0] - 15 + k]
        high, low = xp.maximum(high, near), xp.minimum(low, near)
    return (x[15:] - low) / (high - low + 1e-9)


@program(500, 20, lambda r, n: [r.normal(size=n), r.integers(0, n, (400, n))])
def bootstrap_medians(xp: Any, x: Any, draws: Any) -> Any:
    return xp.percentile(xp.median(x[draws], axis=1), xp.asarray([2.5, 97.5]))


@program(300, 9, lambda r, n: [r.normal(size=(n, 10))])
def distance_variance(xp: Any, x: Any) -> Any:
    d = xp.sqrt(xp.sum((x[:, None] - x[None]) ** 2, axis=-1))
    c = d - xp.mean(d, axis=0) - xp.mean(d, axis=1)[:, None] + xp.mean(d)
    return xp.sqrt(xp.mean(c * c))


@program(300, 6, lambda r, n: [r.normal(size=(n, 400)), r.integers(0, 400, n)], "float32")
def reciprocal_ranks(xp: Any, scores: Any, wanted: Any) -> Any:
    """The mean of one over the place of what was wanted in each list."""
    places = xp.argsort(xp.argsort(-scores, axis=1), axis=1)
    return xp.mean(1 / (1 + xp.take_along_axis(places, wanted[:, None], 1)))
