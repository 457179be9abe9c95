"""Programs on graphs: ranks, paths, triangles, as matrices and as lists of edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import counts, program, repeat


def adjacency(r: np.random.Generator, n: int) -> list[np.ndarray]:
    upper = np.triu(r.uniform(size=(n, n)) < 0.05, 1)
    return [(upper | upper.T) * 1.0]


@program(400, 12, adjacency)
def page_rank(xp: Any, a: Any) -> Any:
    n = a.shape[0]
    share = a / xp.maximum(xp.sum(a, axis=0), 1.0)
    return repeat(xp, 30, lambda i, p: 0.15 / n + 0.85 * (share @ p), xp.ones_like(a[0]) / n)


@program(40_000, 60, lambda r, n: [r.integers(0, 1000, n), r.integers(0, 1000, n)])
def page_rank_of_edges(xp: Any, source: Any, target: Any) -> Any:
    degree = xp.maximum(counts(xp, source, 1000), 1)

    def step(i: Any, p: Any) -> Any:
        return 0.15 / 1000 + 0.85 * counts(xp, target, 1000, (p / degree)[source])

    return repeat(xp, 20, step, xp.full(1000, 1 / 1000))


@program(400, 12, adjacency)
def triangles(xp: Any, a: Any) -> Any:
    return xp.sum(a @ a * a) / 6


@program(400, 12, adjacency)
def clustering(xp: Any, a: Any) -> Any:
    degree = xp.sum(a, axis=1)
    return xp.sum(a @ a * a, axis=1) / xp.maximum(degree * (degree - 1), 1.0)


@program(120, 7, lambda r, n: [r.uniform(1, 10, (n, n)) * (1 - np.eye(n))])
def shortest_paths(xp: Any, d: Any) -> Any:
    return repeat(xp, d.shape[0], lambda k, d: xp.minimum(d, d[:, k][:, None] + d[k][None, :]), d)


@program(300, 10, lambda r, n: [np.where(r.uniform(size=(n, n)) < 0.1, r.uniform(1, 5, (n, n)), np.inf)])
def bellman_ford(xp: Any, w: Any) -> Any:
    start = xp.where(xp.arange(w.shape[0]) == 0, 0.0, np.inf)
    return repeat(xp, 10, lambda i, d: xp.minimum(d, xp.min(d[:, None] + w, axis=0)), start)


@program(400, 12, adjacency)
def breadth_first(xp: Any, a: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        level, front = state
        new = ((a @ front) > 0) & (level < 0)
        return xp.where(new, i + 1, level), new.astype("float64")

    start = xp.arange(a.shape[0]) == 0
    return repeat(xp, 8, step, (xp.where(start, 0, -1), start.astype("float64")))[0]


@program(50_000, 60, lambda r, n: [r.integers(0, 2000, (n, 2)), r.normal(size=(2000, 8))])
def neighbour_smoothness(xp: Any, edges: Any, x: Any) -> Any:
    d = x[edges[:, 0]] - x[edges[:, 1]]
    return xp.sum(d * d)


@program(300, 12, adjacency)
def label_propagation(xp: Any, a: Any) -> Any:
    labels = xp.arange(a.shape[0]) % 5

    def step(i: Any, labels: Any) -> Any:
        votes = a @ (labels[:, None] == xp.arange(5)[None, :]).astype("float64")
        return xp.argmax(votes, axis=1)

    return repeat(xp, 10, step, labels)


@program(200, 10, adjacency)
def spectral_gap(xp: Any, a: Any) -> Any:
    values = xp.linalg.eigvalsh(xp.diag(xp.sum(a, axis=1)) - a)
    return values[-1] - values[1]
