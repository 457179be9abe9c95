"""Games of life and their kin: cellular automata and reactions on grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import WRITES, program, repeat


def grid(r: np.random.Generator, n: int) -> list[np.ndarray]:
    return [(r.uniform(size=(n, n)) < 0.3).astype("int8")]


def around(xp: Any, a: Any) -> Any:
    rows = xp.roll(a, 1, 0) + a + xp.roll(a, -1, 0)
    return xp.roll(rows, 1, 1) + rows + xp.roll(rows, -1, 1) - a


@program(512, 12, grid)
def life(xp: Any, a: Any) -> Any:
    n = around(xp, a)
    return ((n == 3) | ((a == 1) & (n == 2))).astype("int8")


@program(256, 12, grid)
def life_generations(xp: Any, a: Any) -> Any:
    def step(i: Any, a: Any) -> Any:
        n = around(xp, a)
        return ((n == 3) | ((a == 1) & (n == 2))).astype("int8")

    return repeat(xp, 40, step, a)


@program(512, 12, grid)
def life_by_slices(xp: Any, a: Any) -> Any:
    p = xp.pad(a, 1)
    n = (p[:-2, :-2] + p[:-2, 1:-1] + p[:-2, 2:] + p[1:-1, :-2] + p[1:-1, 2:]
         + p[2:, :-2] + p[2:, 1:-1] + p[2:, 2:])  # fmt: skip
    return xp.where(a > 0, (n == 2) | (n == 3), n == 3)


@program(4_000, 50, lambda r, n: [r.integers(0, 2, n)])
def rule_110(xp: Any, cells: Any) -> Any:
    table = np.array([0, 1, 1, 1, 0, 1, 1, 0])
    return repeat(xp, 100, lambda i, c: xp.asarray(table)[4 * xp.roll(c, 1) + 2 * c + xp.roll(c, -1)], cells)


@program(200, 12, lambda r, n: [r.uniform(0.5, 1, (n, n)), r.uniform(0, 0.3, (n, n))])
def gray_scott(xp: Any, u: Any, v: Any) -> Any:
    def spread(a: Any) -> Any:
        return xp.roll(a, 1, 0) + xp.roll(a, -1, 0) + xp.roll(a, 1, 1) + xp.roll(a, -1, 1) - 4 * a

    def step(i: Any, state: Any) -> Any:
        u, v = state
        r = u * v * v
        return u + 0.16 * spread(u) - r + 0.035 * (1 - u), v + 0.08 * spread(v) + r - 0.095 * v

    return repeat(xp, 20, step, (u, v))


@program(200, 12, lambda r, n: [r.integers(0, 8, (n, n))])
def sandpile(xp: Any, sand: Any) -> Any:
    def topple(i: Any, s: Any) -> Any:
        over = s // 4
        p = xp.pad(over, 1)
        return s - 4 * over + p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]

    return repeat(xp, 20, topple, sand)


@program(300, 12, lambda r, n: [r.integers(0, 3, (n, n)), r.uniform(size=(n, n))])
def forest_fire(xp: Any, trees: Any, u: Any) -> Any:
    p = xp.pad(trees == 2, 1)
    burning = p[:-2, 1:-1] | p[2:, 1:-1] | p[1:-1, :-2] | p[1:-1, 2:]
    grown = xp.where((trees == 0) & (u < 0.05), 1, trees)
    return xp.where(trees == 2, 0, xp.where((trees == 1) & (burning | (u < 1e-3)), 2, grown))


@program(300, 10, lambda r, n: [r.uniform(0, 1, (n, n))], peers=WRITES)
def heat_in_place(xp: Any, given: Any) -> Any:
    t = xp.array(given)
    for _ in range(4):
        t[1:-1, 1:-1] = t[1:-1, 1:-1] + 0.2 * (
            t[2:, 1:-1] + t[:-2, 1:-1] + t[1:-1, 2:] + t[1:-1, :-2] - 4 * t[1:-1, 1:-1])
    return t


@program(64, 9, lambda r, n: [r.uniform(0, 1, (n, n)) > 0.45])
def connected_labels(xp: Any, inside: Any) -> Any:
    n, m = inside.shape

    def spread(i: Any, label: Any) -> Any:
        p = xp.pad(label, 1)
        rows, columns = xp.maximum(p[:-2, 1:-1], p[2:, 1:-1]), xp.maximum(p[1:-1, :-2], p[1:-1, 2:])
        return xp.where(inside, xp.maximum(xp.maximum(rows, columns), label), 0)

    return repeat(xp, 60, spread, xp.where(inside, xp.arange(1, n * m + 1).reshape(n, m), 0))


@program(1_000, 7, lambda r, n: [r.integers(1, 10, (n, 9, 9))])
def sudoku(xp: Any, grid: Any) -> Any:
    seen = grid[..., None] == xp.arange(1, 10)
    rows, columns = (xp.all(xp.any(seen, axis=a), axis=(1, 2)) for a in (1, 2))
    boxes = xp.any(seen.reshape(grid.shape[0], 3, 3, 3, 3, 9), axis=(2, 4))
    return rows & columns & xp.all(boxes, axis=(1, 2, 3))
