"""Ordinary NumPy functions, written for NumPy alone: loops over sizes, arrays that are made and filled, views.

``CASES`` has for each how to make its arguments for a size, and whether it is smooth in the first.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Case(NamedTuple):
    function: Callable
    arguments: Callable
    smooth: bool
    sizes: tuple[int, ...] = (2, 3, 5)


CASES: dict[str, Case] = {}


def case(arguments, smooth=True, sizes=(2, 3, 5)):
    def wrap(fn):
        CASES[fn.__name__] = Case(fn, arguments, smooth, sizes)
        return fn
    return wrap


def vector(r, n):
    return (r.normal(size=n),)


def matrix(r, n):
    return (r.normal(size=(n, n)),)


def system(r, n):
    return r.normal(size=(n, n)) + n * np.eye(n), r.normal(size=n)


def positive(r, n):
    a = r.normal(size=(n, n))
    return (a @ a.T + n * np.eye(n),)


@case(matrix)
def gram_schmidt(a):
    q = np.array(a, dtype=float)
    for j in range(q.shape[1]):
        for i in range(j):
            q[:, j] -= (q[:, i] @ q[:, j]) * q[:, i]
        q[:, j] /= np.sqrt(np.sum(q[:, j] ** 2))
    return q


@case(system)
def jacobi(a, b):
    x = np.zeros_like(b)
    d = np.diag(a)
    r = a - np.diag(d)
    for _ in range(6):
        x = (b - r @ x) / d
    return x


@case(system)
def gauss_seidel(a, b):
    n = len(b)
    x = np.zeros(n)
    for _ in range(4):
        for i in range(n):
            x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1:] @ x[i + 1:]) / a[i, i]
    return x


@case(lambda r, n: (r.normal(size=n - 1), 4 + r.uniform(size=n), r.normal(size=n - 1), r.normal(size=n)))
def thomas(a, b, c, d):
    n = len(d)
    b, d = b.copy(), d.copy()
    for i in range(1, n):
        w = a[i - 1] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    x = np.empty(n)
    x[-1] = d[-1] / b[-1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return x


@case(system)
def forward_substitution(l, b):
    x = np.zeros(b.shape)
    for i in range(b.shape[0]):
        s = b[i]
        for j in range(i):
            s -= l[i, j] * x[j]
        x[i] = s / l[i, i]
    return x


@case(system)
def back_substitution(u, b):
    x = np.zeros_like(b)
    for i in reversed(range(len(b))):
        x[i] = (b[i] - np.dot(u[i, i + 1:], x[i + 1:])) / u[i, i]
    return x


@case(positive)
def power_iteration(a):
    v = np.ones(a.shape[0]) / np.sqrt(a.shape[0])
    for _ in range(10):
        v = a @ v
        v /= np.linalg.norm(v)
    return v @ a @ v


@case(lambda r, n: (r.normal(size=10), np.zeros(n)), sizes=(2, 3, 4))
def moving_average(x, window):
    k = len(window)
    half = k // 2
    out = np.zeros(len(x) - k + 1)
    for i in range(len(out)):
        out[i] = x[i:i + k].sum() / k
    if k % 2 == 0:
        out = (out[1:] + out[:-1]) / 2
    else:
        out[0] = x[half]
    return out


@case(vector, smooth=False, sizes=(2, 4, 5))
def bubble_sort(x):
    x = x.copy()
    n = len(x)
    for i in range(n):
        for j in range(n - i - 1):
            low, high = np.minimum(x[j], x[j + 1]), np.maximum(x[j], x[j + 1])
            x[j], x[j + 1] = low, high
    return x


@case(lambda r, n: (r.normal(size=n), r.normal(size=4)))
def horner(coefficients, x):
    y = np.zeros(x.shape)
    for c in coefficients:
        y *= x
        y += c
    return y


@case(lambda r, n: (system(r, n)[0],))
def lu_in_place(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])
    return np.tril(a, -1) + np.eye(n), np.triu(a)


@case(lambda r, n: (r.uniform(1, 9, size=(n, n)),), smooth=False)
def floyd_warshall(w):
    d = w.copy()
    np.fill_diagonal(d, 0)
    for k in range(len(d)):
        d[:] = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d


@case(lambda r, n: (r.integers(0, 2, size=(n + 2, n + 3)),), smooth=False)
def game_of_life(board):
    neighbours = np.zeros(board.shape, dtype=int)
    neighbours[1:] += board[:-1]
    neighbours[:-1] += board[1:]
    neighbours[:, 1:] += board[:, :-1]
    neighbours[:, :-1] += board[:, 1:]
    neighbours[1:, 1:] += board[:-1, :-1]
    neighbours[1:, :-1] += board[:-1, 1:]
    neighbours[:-1, 1:] += board[1:, :-1]
    neighbours[:-1, :-1] += board[1:, 1:]
    new = np.zeros_like(board)
    new[(board == 1) & ((neighbours == 2) | (neighbours == 3))] = 1
    new[(board == 0) & (neighbours == 3)] = 1
    board = board.copy()
    board[...] = new
    return board


@case(vector, smooth=False)
def running_maximum(x):
    out = np.empty_like(x)
    best = x[0]
    for i in range(len(x)):
        best = np.maximum(best, x[i])
        out[i] = best
    return out


@case(lambda r, n: (r.uniform(1, 2, size=(n, 3)),))
def normalized_rows(m):
    m = m.copy()
    for row in m:
        row /= row.sum()
    return m


@case(lambda r, n: (r.integers(0, 4, size=n + 3),), smooth=False)
def histogram(x):
    counts = np.zeros(4, dtype=int)
    for i in range(len(x)):
        counts[x[i]] += 1
    return counts


@case(lambda r, n: (r.normal(size=n + 2),))
def derivative(f):
    h = 0.1
    d = np.zeros(f.shape)
    d[1:-1] = (f[2:] - f[:-2]) / (2 * h)
    d[0] = (f[1] - f[0]) / h
    d[-1] = (f[-1] - f[-2]) / h
    return d


@case(lambda r, n: (r.normal(size=2), np.linspace(0, 1, n + 2)))
def runge_kutta(y0, t):
    def slope(y):
        return np.array([y[1], -np.sin(y[0])])

    out = np.zeros((len(t), len(y0)))
    out[0] = y0
    for i in range(len(t) - 1):
        h = t[i + 1] - t[i]
        k1 = slope(out[i])
        k2 = slope(out[i] + h / 2 * k1)
        k3 = slope(out[i] + h / 2 * k2)
        k4 = slope(out[i] + h * k3)
        out[i + 1] = out[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return out


@case(positive)
def cholesky(a):
    n = a.shape[0]
    l = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = np.dot(l[i, :j], l[j, :j])
            if i == j:
                l[i, j] = np.sqrt(a[i, i] - s)
            else:
                l[i, j] = (a[i, j] - s) / l[j, j]
    return l


@case(lambda r, n: (r.normal(size=n + 4), r.normal(size=n + 4)), smooth=False)
def ransac(x, y):
    best_count, best = -1, np.zeros(2)
    for i, j in [(0, 1), (1, 3), (2, 4)]:
        slope = (y[j] - y[i]) / (x[j] - x[i])
        offset = y[i] - slope * x[i]
        count = np.sum(np.abs(y - slope * x - offset) < 0.5)
        best = np.where(count > best_count, np.array([slope, offset]), best)
        best_count = np.maximum(count, best_count)
    return best


@case(matrix)
def padded(m):
    out = np.full((m.shape[0] + 2, m.shape[1] + 2), 0.5)
    out[1:-1, 1:-1] = m
    out[0, 1:-1] = m[0]
    return out


@case(lambda r, n: (r.integers(0, 3, size=n),), smooth=False)
def one_hot(labels):
    out = np.zeros((labels.size, 3))
    out[np.arange(labels.size), labels] = 1
    return out


@case(lambda r, n: (r.normal(size=n + 3),))
def upwind(u):
    u = u.copy()
    for _ in range(5):
        old = u.copy()
        u[1:] = old[1:] - 0.4 * (old[1:] - old[:-1])
        u[0] = old[0] - 0.4 * (old[0] - old[-1])
    return u


@case(lambda r, n: (r.normal(size=n),), sizes=(1, 2, 4, 8), smooth=False)
def fft(x):
    n = len(x)
    if n <= 1:
        return x + 0j
    even, odd = fft(x[::2]), fft(x[1::2])
    t = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + t, even - t])


@case(lambda r, n: (r.normal(size=n + 3),))
def heat(u):
    u = np.array(u)
    for _ in range(4):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


@case(lambda r, n: (0.1 * r.normal(size=(3, 3)), np.zeros(n)), sizes=(1, 2, 5, 8))
def matrix_power(a, exponent):
    k = int(exponent.shape[0])
    out = np.eye(a.shape[0])
    while k > 0:
        if k % 2:
            out = out @ a
        a = a @ a
        k //= 2
    return out


@case(lambda r, n: (r.normal(size=(n, 2)),))
def distances(points):
    n = len(points)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = d[j, i] = np.sum((points[i] - points[j]) ** 2)
    return d


@case(lambda r, n: (r.normal(size=n), r.normal(size=3)))
def convolved(x, k):
    out = np.zeros(len(x) + len(k) - 1)
    for i in range(len(k)):
        out[i:i + len(x)] += k[i] * x
    return out


@case(lambda r, n: (r.normal(size=(n + 2, n + 2)),))
def box_blur(image):
    out = image.copy()
    rows, columns = image.shape
    for i in range(1, rows - 1):
        for j in range(1, columns - 1):
            out[i, j] = image[i - 1:i + 2, j - 1:j + 2].mean()
    return out


@case(lambda r, n: (r.normal(size=n + 1),), smooth=False)
def clipped(x):
    y = x.copy()
    y[y < -0.5] = -0.5
    y[y > 0.5] = 0.5
    y[y > 0] *= 2
    return y


@case(lambda r, n: (r.normal(size=(n, 4)), r.normal(size=(4, n))))
def product_by_loops(a, b):
    assert a.shape[1] == b.shape[0]
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


@case(lambda r, n: (r.uniform(1, 2, size=(n, n)),))
def softmax_rows(m):
    m = m - m.max(axis=1, keepdims=True)
    np.exp(m, out=m)
    m /= m.sum(axis=1, keepdims=True)
    return m


@case(system)
def eliminated(a, b):
    m = np.hstack([a, b[:, None]])
    for i in range(len(m)):
        m[i] /= m[i, i]
        for j in range(len(m)):
            if j != i:
                m[j] -= m[j, i] * m[i]
    return m[:, -1]


@case(lambda r, n: (r.normal(size=n),))
def median_or_mean(x):
    n = len(x)
    s = x.copy()
    s.sort()
    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2


@case(lambda r, n: (r.normal(size=n + 2), r.normal(size=n + 2)))
def trapezoid(y, x):
    if x.shape != y.shape:
        raise ValueError("shapes differ")
    total = 0.0
    for k in range(1, x.shape[0]):
        total += (x[k] - x[k - 1]) * (y[k] + y[k - 1]) / 2
    return total


@case(lambda r, n: (r.normal(size=(n, 3)),))
def reflected(a):
    """Householder's triangularization."""
    r = a.copy()
    q = np.eye(len(r))
    for k in range(min(r.shape[0] - 1, r.shape[1])):
        v = r[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        r[k:] -= 2 * np.outer(v, v @ r[k:])
        q[k:] -= 2 * np.outer(v, v @ q[k:])
    return q, r


@case(vector, smooth=False, sizes=(5, 8))
def peaks(x):
    i = np.arange(1, len(x) - 1)
    return i[(x[i] > x[i - 1]) & (x[i] > x[i + 1])], np.array([5.0, 6.0, 7.0])[np.argsort(x[:3])]


@case(matrix)
def blurred_by_frequencies(image):
    h, w = image.shape
    fy, fx = np.fft.fftfreq(h)[:, None], np.fft.rfftfreq(w)[None]
    return np.fft.irfft2(np.fft.rfft2(image) * np.exp(-20 * (fx**2 + fy**2)), s=image.shape)


@case(matrix)
def joined_by_indices(m):
    i, j = np.mgrid[0 : m.shape[0], 0 : m.shape[1]]
    a, b = np.ogrid[0 : m.shape[0], 0 : 1 : 3j]
    return np.r_[m[:, 0], 2.5, m[0]], np.c_[m[:, 0], m, m[:, 1]], i - j * m, a + b


@case(matrix, smooth=False)
def placed(m):
    z = m.copy()
    np.place(z, z > 0, [1.0, 2.0, 3.0])
    return z
