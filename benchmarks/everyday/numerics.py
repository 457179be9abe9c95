"""Programs of numerical analysis: quadrature, roots, linear systems, series, interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import program, repeat


@program(200_000, 300, lambda r, n: [np.sort(r.uniform(0, 9, n)), r.normal(size=n)])
def trapezoid(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum((x[1:] - x[:-1]) * (y[1:] + y[:-1])) / 2


@program(100_001, 101, lambda r, n: [np.linspace(0, 3, n)])
def simpson(xp: Any, x: Any) -> Any:
    y = xp.exp(-x * x) * xp.cos(5 * x)
    return (x[1] - x[0]) / 3 * (y[0] + 4 * xp.sum(y[1:-1:2]) + 2 * xp.sum(y[2:-1:2]) + y[-1])


@program(100_000, 50, lambda r, n: [r.uniform(0.1, 100, n)])
def newton_cube_roots(xp: Any, a: Any) -> Any:
    x = a / 3 + 1
    for _ in range(12):
        x = x - (x * x * x - a) / (3 * x * x)
    return x


@program(50_000, 40, lambda r, n: [r.uniform(-1, 1, n), r.normal(size=16)])
def chebyshev_series(xp: Any, x: Any, c: Any) -> Any:
    b1 = b2 = xp.zeros_like(x)
    for k in range(15, 0, -1):
        b1, b2 = 2 * x * b1 - b2 + c[k], b1
    return x * b1 - b2 + c[0]


@program(300, 8, lambda r, n: [r.normal(size=(n, n)) / n + 4 * np.eye(n), r.normal(size=n)])
def jacobi(xp: Any, a: Any, b: Any) -> Any:
    d = xp.diag(a)
    rest = a - xp.diag(d)
    return repeat(xp, 60, lambda i, x: (b - rest @ x) / d, xp.zeros_like(b))


@program(300, 8, lambda r, n: [np.cov(r.normal(size=(n, 3 * n)))])
def power_iteration(xp: Any, a: Any) -> Any:
    def step(i: Any, v: Any) -> Any:
        w = a @ v
        return w / xp.sqrt(xp.sum(w * w))

    v = repeat(xp, 50, step, xp.ones_like(a[0]))
    return v @ a @ v


@program(400, 9, lambda r, n: [np.cov(r.normal(size=(n, 4 * n))) + np.eye(n), r.normal(size=n)])
def conjugate_gradient(xp: Any, a: Any, b: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        x, r, p, rr = state
        q = a @ p
        alpha = rr / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        new = r @ r
        return x, r, r + new / rr * p, new

    return repeat(xp, 8, step, (xp.zeros_like(b), b, b, b @ b))[0]


@program(5_000, 30, lambda r, n: [r.normal(size=(n, 3, 3))])
def small_determinants(xp: Any, a: Any) -> Any:
    return xp.linalg.det(a)


@program(5_000, 30, lambda r, n: [r.normal(size=(n, 4, 4)) + 4 * np.eye(4), r.normal(size=(n, 4, 1))])
def small_solves(xp: Any, a: Any, b: Any) -> Any:
    return xp.linalg.solve(a, b)


@program(2_000, 20, lambda r, n: [np.full(n, 4.0), r.uniform(0, 1, n), r.normal(size=n)])
def tridiagonal_sweeps(xp: Any, d: Any, e: Any, b: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        left = xp.concatenate([x[:1] * 0, x[:-1]])
        right = xp.concatenate([x[1:], x[:1] * 0])
        return (b - e * left - e * right) / d

    return repeat(xp, 40, step, b / d)


@program(600, 20, lambda r, n: [r.normal(size=(n, 8)), r.normal(size=(n, 8))])
def pairwise_distances(xp: Any, a: Any, b: Any) -> Any:
    return xp.sqrt(xp.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1))


@program(100_000, 50, lambda r, n: [r.uniform(-1, 11, n), np.linspace(0, 10, 200), r.normal(size=200)])
def table_lookup(xp: Any, x: Any, at: Any, values: Any) -> Any:
    return xp.interp(x, at, values)


@program(100_000, 60, lambda r, n: [r.uniform(0, 10, n), np.sort(r.uniform(0, 10, 400)), r.normal(size=401)])
def piecewise_constant(xp: Any, x: Any, edges: Any, values: Any) -> Any:
    return values[xp.searchsorted(edges, x)]


@program(60, 6, lambda r, n: [r.normal(size=(n, n)) / n])
def matrix_exponential(xp: Any, a: Any) -> Any:
    a = a / 16
    term = total = xp.eye(a.shape[0])
    for k in range(1, 11):
        term = term @ a / k
        total = total + term
    for _ in range(4):
        total = total @ total
    return total


@program(300_000, 100, lambda r, n: [r.uniform(0, 1, n)])
def continued_fraction(xp: Any, x: Any) -> Any:
    f = xp.ones_like(x)
    for k in range(10, 0, -1):
        f = 1 + k * k * x / (2 * k + 1 + f)
    return f


@program(200_000, 100, lambda r, n: [r.normal(size=n)])
def second_differences(xp: Any, f: Any) -> Any:
    return xp.max(xp.abs(f[2:] - 2 * f[1:-1] + f[:-2]))


@program(100_000, 120, lambda r, n: [np.arange(2, n)])
def divisor_count(xp: Any, n: Any) -> Any:
    total = xp.zeros_like(n)
    for k in range(2, 30):
        total = total + (n % k == 0)
    return total


@program(2_000, 40, lambda r, n: [r.normal(size=(n, 12)), r.normal(size=n)])
def least_squares_qr(xp: Any, a: Any, b: Any) -> Any:
    q, r = xp.linalg.qr(a)
    return xp.linalg.solve(r, q.T @ b)


@program(300_000, 40, lambda r, n: [r.integers(0, 10**9, n)])
def digit_sums(xp: Any, n: Any) -> Any:
    total = 0
    for _ in range(9):
        total, n = total + n % 10, n // 10
    return total


@program(50_000, 30, lambda r, n: [r.integers(0, 3_000_000, n)])
def calendar_dates(xp: Any, day: Any) -> Any:
    era, day = (day + 719_468) // 146_097, (day + 719_468) % 146_097
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day = day - (365 * year + year // 4 - year // 100)
    month = (5 * day + 2) // 153
    day = day - (153 * month + 2) // 5 + 1
    return year + era * 400 + (month >= 10), xp.where(month < 10, month + 3, month - 9), day


@program(50_000, 30, lambda r, n: [r.integers(0, 10**6, n), r.integers(1, 1000, n)])
def ratios_in_lowest_terms(xp: Any, a: Any, b: Any) -> Any:
    """Greatest common divisors by Euclid's steps, as many as numbers below a thousand need."""
    g, rest = a, b
    for _ in range(16):
        g, rest = xp.where(rest == 0, g, rest), xp.where(rest == 0, 0, g % xp.where(rest == 0, 1, rest))
    return a // g, b // g


@program(256, 12, lambda r, n: [r.normal(size=(n, n))])
def poisson_by_fourier(xp: Any, f: Any) -> Any:
    k = 2 * np.pi * xp.fft.fftfreq(f.shape[0])
    k2 = k[:, None] ** 2 + k[None, :] ** 2
    return xp.real(xp.fft.ifft2(xp.where(k2 > 0, -xp.fft.fft2(f) / xp.where(k2 > 0, k2, 1), 0)))


@program(2_000, 7, lambda r, n: [r.normal(size=(n, 6, 6)), r.normal(size=(n, 6))])
def largest_eigenvectors(xp: Any, a: Any, x: Any) -> Any:
    s = a @ xp.matrix_transpose(a)

    def step(i: Any, v: Any) -> Any:
        w = (s @ v[:, :, None])[:, :, 0]
        return w / xp.sqrt(xp.sum(w * w, axis=1, keepdims=True))

    return repeat(xp, 10, step, x)


@program(256, 16, lambda r, n: [r.normal(size=(n, n))])
def multigrid_cycle(xp: Any, f: Any) -> Any:
    def around(u: Any) -> Any:
        q = xp.pad(u, 1)
        return q[2:, 1:-1] + q[:-2, 1:-1] + q[1:-1, 2:] + q[1:-1, :-2]

    def smooth(u: Any, f: Any, h: float) -> Any:
        return u + 0.8 * (0.25 * (around(u) - h * h * f) - u)

    def cycle(u: Any, f: Any, h: float, level: int) -> Any:
        u = smooth(u, f, h)
        if level == 0:
            return u
        rest = f - (around(u) - 4 * u) / (h * h)
        coarse = 0.25 * (rest[::2, ::2] + rest[1::2, ::2] + rest[::2, 1::2] + rest[1::2, 1::2])
        error = cycle(xp.zeros_like(coarse), coarse, 2 * h, level - 1)
        return smooth(u + xp.repeat(xp.repeat(error, 2, axis=0), 2, axis=1), f, h)

    return cycle(xp.zeros_like(f), f, 1 / 256, 2)


@program(20_000, 30, lambda r, n: [r.uniform(0, 9.99, n), r.normal(size=(10, 4))])
def cubic_spline(xp: Any, x: Any, pieces: Any) -> Any:
    k = xp.floor(x).astype("int64")
    c, t = pieces[k], x - k
    return ((c[:, 3] * t + c[:, 2]) * t + c[:, 1]) * t + c[:, 0]
