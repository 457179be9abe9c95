"""Sparse Jacobians and Hessians: symc and, where it is installed, CasADi, alternating, best of some.

    python benchmarks/sparse_jacobians.py
"""

import time

import numpy as np

import symc as sc
from benchmarks.sparse_products import best

try:
    import casadi as ca
except ImportError:
    ca = None


class Symc:
    """Problems below as they are written in symc."""

    kinds = ["symc"]

    def __init__(self, kind, n):
        self.x = sc.input("x", "float64", shape=(n,))

    def matrix(self, x, *shape):
        return x.reshape(shape)

    def border(self, u):
        return sc.pad(u, 1)

    def below(self, *parts):
        return sc.concatenate(parts)

    sin, cos, exp, total, flat = map(staticmethod, (sc.sin, sc.cos, sc.exp, sc.sum, sc.ravel))

    def functions(self, y, cost):
        """Calls without arguments that give the numbers of the Jacobian and of the Hessian."""
        point = np.random.default_rng(0).normal(size=self.x.shape)
        made = [sc.compile(a.data, [self.x]) for a in (sc.sparse.jacobian(y, self.x), sc.sparse.hessian(cost, self.x))]
        return [lambda f=f: f(point) for f in made]


class Casadi:
    """The same in CasADi, of scalars (SX) or matrices (MX), whose matrices lie column by column."""

    kinds = ["SX", "MX"]

    def __init__(self, kind, n):
        self.type = getattr(ca, kind)
        self.x = self.type.sym("x", n)

    def matrix(self, x, *shape):
        return ca.reshape(x, *shape[::-1]).T

    def border(self, u):
        out = self.type(u.shape[0] + 2, u.shape[1] + 2)
        out[1:-1, 1:-1] = u
        return out

    def below(self, *parts):
        return ca.vertcat(*parts)

    def __getattr__(self, name):
        return {"total": lambda a: ca.sum1(ca.vec(a)), "flat": ca.vec}.get(name) or getattr(ca, name)

    def functions(self, y, cost):
        point = np.random.default_rng(0).normal(size=self.x.shape[0])
        out = []
        for a in (ca.jacobian(y, self.x), ca.hessian(cost, self.x)[0]):
            f = ca.Function("f", [self.x], [a])
            (buffer, call), result = f.buffer(), np.zeros(f.nnz_out(0))
            buffer.set_arg(0, memoryview(point))
            buffer.set_res(0, memoryview(result))
            out.append(lambda call=call, kept=(buffer, point, result): (call(), kept[2])[1])
        return out


def chain(p):
    """Rosenbrock's function, and its residuals."""
    x = p.x
    return p.below(10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]), p.total(
        100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bratu(p, m=100):
    """Bratu's equation on a square of m x m points, and its energy."""
    u, h = p.matrix(p.x, m, m), (1 / (m + 1)) ** 2
    b = p.border(u)
    y = 4 * u - b[:-2, 1:-1] - b[2:, 1:-1] - b[1:-1, :-2] - b[1:-1, 2:] - h * p.exp(u)
    return p.flat(y), (p.total((b[1:, :] - b[:-1, :]) ** 2) + p.total((b[:, 1:] - b[:, :-1]) ** 2)
                       - h * p.total(p.exp(u)))


def collocation(p, steps=1000):
    """Hermite-Simpson defects of a cart with a pole, and the effort."""
    z, h = p.matrix(p.x, 5, steps), 2 / (steps - 1)

    def slopes(z):
        s, c, w, u = p.sin(z[1:2, :]), p.cos(z[1:2, :]), z[3:4, :], z[4:5, :]
        down = 1.3 - 0.3 * c**2
        return p.below(z[2:4, :], (0.15 * s * w**2 + u + 2.943 * c * s) / down,
                       -(0.15 * c * s * w**2 + u * c + 12.753 * s) / (0.5 * down))

    x, f = z[:4, :], slopes(z)
    middle = (x[:, :-1] + x[:, 1:]) / 2 + h / 8 * (f[:, :-1] - f[:, 1:])
    f_middle = slopes(p.below(middle, (z[4:5, :-1] + z[4:5, 1:]) / 2))
    return p.flat(x[:, 1:] - x[:, :-1] - h / 6 * (f[:, :-1] + 4 * f_middle + f[:, 1:])), p.total(z[4:5, :] ** 2)


def main():
    print(f"{'':22}{'':6}{'build s':>9}{'J ms':>9}{'H ms':>9}")
    problems = [*[(f"chain {n}", chain, n) for n in (1_000, 10_000, 100_000)], ("bratu 100 x 100", bratu, 10_000),
                ("collocation 1000", collocation, 5_000)]
    for name, problem, n in problems:
        calls, builds = [], []
        for front in [Symc, *[Casadi] * (ca is not None)]:
            for kind in front.kinds:
                start = time.perf_counter()
                p = front(kind, n)
                calls += p.functions(*problem(p))
                builds.append((kind, time.perf_counter() - start))
        sizes = [f().size for f in calls]
        assert sizes == sizes[:2] * len(builds), sizes
        times = best(calls, [()] * len(calls), 2.0)
        for k, (kind, build) in enumerate(builds):
            print(f"{name:22}{kind:6}{build:9.2f}{times[2 * k] / 1e3:9.3f}{times[2 * k + 1] / 1e3:9.3f}", flush=True)


if __name__ == "__main__":
    main()
