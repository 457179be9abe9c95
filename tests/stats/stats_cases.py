"""Parameters of distributions for the tests, and what SciPy calls them."""

from __future__ import annotations

import numpy as np
import scipy.stats

import symc as sc

#: Shape parameters by distribution: several tuples each, from small to large.
SHAPES: dict[str, list[tuple[float, ...]]] = {
    "norm": [()], "halfnorm": [()], "maxwell": [()], "cauchy": [()], "halfcauchy": [()], "laplace": [()],
    "logistic": [()], "gumbel_r": [()], "gumbel_l": [()],
    "expon": [()], "rayleigh": [()], "uniform": [()], "wald": [()],
    "lognorm": [(0.3,), (1.0,), (2.5,)],
    "truncnorm": [(-1.0, 2.0), (-np.inf, 0.5), (3.0, np.inf), (-8.0, -6.0), (6.0, 7.0)],
    "exponnorm": [(0.3,), (1.5,), (20.0,)],
    "skewnorm": [(-4.0,), (0.0,), (1.5,)],
    "invgauss": [(0.2,), (1.0,), (5.0,)],
    "gamma": [(0.3,), (1.0,), (2.5,), (300.0,)],
    "invgamma": [(0.7,), (2.5,), (40.0,)],
    "chi2": [(0.5,), (2.0,), (3.0,), (120.0,)],
    "beta": [(0.5, 0.5), (1.0, 1.0), (2.0, 5.0), (30.0, 0.8)],
    "f": [(1.0, 1.0), (2.0, 7.0), (10.0, 30.0)],
    "t": [(0.5,), (1.0,), (4.0,), (1e6,)],
    "pareto": [(0.5,), (1.5,), (8.0,)],
    "weibull_min": [(0.5,), (1.0,), (1.7,), (9.0,)],
    "loguniform": [(0.1, 3.0), (1e-8, 1e8)],
    "triang": [(0.0,), (0.3,), (1.0,)],
    "genextreme": [(-0.7,), (-1e-9,), (0.0,), (0.02,), (0.4,), (1.3,)],
    "genpareto": [(-0.6,), (0.0,), (1e-9,), (0.02,), (0.3,), (2.0,)],
    "vonmises": [(0.01,), (1.0,), (40.0,), (1000.0,)],
    "bernoulli": [(0.0,), (0.3,), (1.0,)],
    "binom": [(0.0, 0.5), (1.0, 0.2), (12.0, 0.0), (12.0, 1.0), (30.0, 0.4), (100000.0, 1e-3)],
    "nbinom": [(0.5, 0.3), (5.0, 0.7), (40.0, 1.0), (40.0, 0.05)],
    "poisson": [(0.0,), (0.1,), (3.5,), (1000.0,)],
    "geom": [(0.02,), (0.5,), (1.0,)],
    "betabinom": [(0.0, 1.0, 2.0), (10.0, 0.6, 3.0), (60.0, 20.0, 11.0)],
    "hypergeom": [(20.0, 7.0, 12.0), (20.0, 0.0, 3.0), (90.0, 60.0, 50.0)],
    "randint": [(0.0, 1.0), (-4.0, 9.0)],
    "zipf": [(2.0,), (3.5,), (9.0,)],
    "dlaplace": [(0.1,), (1.0,), (6.0,)],
}
#: Shape parameters that have no meaning.
ILLEGAL: dict[str, list[tuple[float, ...]]] = {
    "truncnorm": [(2.0, 1.0), (np.nan, 1.0)], "loguniform": [(2.0, 1.0), (-1.0, 1.0)], "triang": [(-0.1,), (1.1,)],
    "bernoulli": [(-0.1,), (1.1,)], "binom": [(2.5, 0.5), (-1.0, 0.5), (3.0, 1.5)], "nbinom": [(0.0, 0.5), (1.0, 0.0)],
    "poisson": [(-1.0,)], "geom": [(0.0,), (1.5,)], "betabinom": [(1.5, 1.0, 1.0), (3.0, 0.0, 1.0)],
    "hypergeom": [(5.0, 6.0, 2.0), (5.0, 2.0, 6.0), (5.5, 2.0, 1.0)], "randint": [(3.0, 3.0)], "zipf": [(1.0,), (0.5,)],
    "skewnorm": [(np.nan,)], "genextreme": [(np.nan,)], "genpareto": [(np.nan,)],
}
_QS = np.array([1e-12, 1e-5, 0.03, 0.25, 0.5, 0.77, 0.999, 1 - 1e-9])
CONTINUOUS = [n for n, d in sc.stats.DISTRIBUTIONS.items() if isinstance(d, sc.stats.Continuous)]
DISCRETE = [n for n, d in sc.stats.DISTRIBUTIONS.items() if isinstance(d, sc.stats.Discrete)]
NUMBERS = [*CONTINUOUS, *DISCRETE]


def quantiles(name: str) -> np.ndarray:
    """Probabilities, down to what SciPy can find the quantile of."""
    return _QS[1:7] if name == "zipf" else _QS


def illegal(name: str) -> list[tuple[float, ...]]:
    """Shapes without meaning: those listed, or each parameter in turn 0, negative or nan."""
    good = SHAPES[name][-1]
    each = [(*good[:k], bad, *good[k + 1 :]) for k in range(len(good)) for bad in (0.0, -1.0, np.nan)]
    return ILLEGAL.get(name, each)


def points(name: str, shapes: tuple[float, ...]) -> np.ndarray:
    """Points of a distribution in standard form: quantiles, both tails, the ends, and beyond them."""
    d = getattr(scipy.stats, name)(*shapes)
    a, b = d.support()
    if name == "vonmises":
        return np.array([-3.1, -1.0, -1e-3, 0.0, 0.5, 3.0, np.nan])
    inner = [*d.ppf(quantiles(name)), *d.isf(quantiles(name)[:2])]
    if name in DISCRETE:
        outer = [a, a + 1, a - 1, a + 0.5, b, b + 1, np.inf, -np.inf, np.nan]
    else:
        outer = [a, b, a - 1, b + 1, np.inf, -np.inf, np.nan]
    return np.unique(np.array([*inner, *outer], "float64"))
