"""Probes: what users write, the function they mean, and where it must be right to a few units in the last place.

A row: the user's form, the same function in mpmath, and the points. ``EACH`` are functions of elements (a point is a
number or a tuple of numbers); ``ROWS`` are functions of a vector (a point is a list). Points are given in decimal and
rounded to the dtype; those that it cannot hold are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp

import symc as sc


@dataclass(frozen=True)
class Probe:
    """``form`` in symc, ``true`` in mpmath. ``orders``: how many derivatives are right as well.

    ``floor``: derivatives smaller than this are compared in units in its last place. That of tanh is read from its
    result, 1 - tanh(x)**2, so that nothing else must be kept for it: it is right to the digits of 1.
    """

    form: Callable[..., Any]
    true: Callable[..., Any]
    points: Sequence[Any]
    orders: int = 1
    ulps: float = 8
    floor: float = 0


BOTH = (1e-150, 1e-30, 1e-10, 1e-5, 0.01, 0.3, 1.0, 2.5, 10.0, 30.0)
SMALL = tuple(s * x for x in (*BOTH[:6], 1e-3, 0.1, 0.9) for s in (1, -1))
WIDE = tuple(s * x for x in (*BOTH, 17.0, 40.0, 86.0, 89.0, 104.0, 300.0, 709.0, 711.0, 750.0, 1e4) for s in (1, -1))
POSITIVE = (1e-150, 1e-40, 1e-30, 1e-10, 1e-5, 0.01, 0.3, 0.9, 1.5, 2.5, 10.0, 1e5, 1e18, 1e30, 1e150, 1e300)
SIGNED = tuple(s * x for x in POSITIVE for s in (1, -1))
UNIT = (1e-150, 1e-30, 1e-10, 1e-3, 0.1, 0.25, 0.4, 0.75, 0.9, 0.999)


def _sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def _logsumexp(xs):
    return mp.log(mp.fsum(mp.exp(x) for x in xs))


EACH: dict[str, Probe] = {
    "log(1 + x)": Probe(lambda x: sc.log(1 + x), lambda x: mp.log(1 + x), (*SMALL, 1e5, 1e30), 2),
    "log(1 - x)": Probe(lambda x: sc.log(1 - x), lambda x: mp.log(1 - x), [x for x in SMALL if x < 0.9], 2),
    "log(x + 1 + y)": Probe(lambda x, y: sc.log(x + 1 + y), lambda x, y: mp.log(x + y + 1), [(1e-20, 1e-21)], 1),
    "exp(x) - 1": Probe(lambda x: sc.exp(x) - 1, lambda x: mp.exp(x) - 1, [x for x in WIDE if x < 86], 2),
    "1 - exp(x)": Probe(lambda x: 1 - sc.exp(x), lambda x: 1 - mp.exp(x), [x for x in WIDE if x < 86], 2),
    "1 - exp(-x)": Probe(lambda x: 1 - sc.exp(-x), lambda x: 1 - mp.exp(-x), [x for x in WIDE if x > -86], 2),
    "log(1 + exp(x))": Probe(lambda x: sc.log(1 + sc.exp(x)), lambda x: mp.log(1 + mp.exp(x)), WIDE, 2),
    "log(1 + exp(-x))": Probe(lambda x: sc.log(1 + sc.exp(-x)), lambda x: mp.log(1 + mp.exp(-x)), WIDE, 2),
    "log(1 - exp(-x))": Probe(
        lambda x: sc.log(1 - sc.exp(-x)), lambda x: mp.log(1 - mp.exp(-x)), [x for x in WIDE if x > 0], 2
    ),
    "log(exp(x) - 1)": Probe(
        lambda x: sc.log(sc.exp(x) - 1), lambda x: mp.log(mp.exp(x) - 1), [x for x in WIDE if x > 0 and x != 0.3], 1
    ),
    "log(sigmoid(x))": Probe(lambda x: sc.log(1 / (1 + sc.exp(-x))), lambda x: -mp.log(1 + mp.exp(-x)), WIDE, 2),
    "log(1 - sigmoid(x))": Probe(lambda x: sc.log(1 - sc.special.expit(x)), lambda x: -mp.log(1 + mp.exp(x)), WIDE, 2),
    "exp(x) / (1 + exp(x))": Probe(lambda x: sc.exp(x) / (1 + sc.exp(x)), _sigmoid, WIDE, 1),
    "1 / (1 + exp(-x))": Probe(lambda x: 1 / (1 + sc.exp(-x)), _sigmoid, WIDE, 1),
    "1 - sigmoid(x)": Probe(lambda x: 1 - 1 / (1 + sc.exp(-x)), lambda x: _sigmoid(-x), WIDE, 1),
    "exp(-x) * sigmoid(x)": Probe(lambda x: sc.exp(-x) * sc.special.expit(x), lambda x: _sigmoid(-x), WIDE, 1),
    "sigmoid(x) * (1 - sigmoid(x))": Probe(
        lambda x: (lambda s: s * (1 - s))(sc.special.expit(x)), lambda x: _sigmoid(x) * _sigmoid(-x), WIDE, 0
    ),
    "sigmoid(log(x / (1 - x)))": Probe(lambda x: sc.special.expit(sc.log(x / (1 - x))), lambda x: x, UNIT, 1),
    "s / (1 - s), s = sigmoid(x)": Probe(
        lambda x: (lambda s: s / (1 - s))(sc.special.expit(x)), mp.exp, [x for x in WIDE if x < 86], 2
    ),
    "log(x / (1 - x))": Probe(lambda x: sc.log(x / (1 - x)), lambda x: mp.log(x / (1 - x)), UNIT, 1),
    "log(sigmoid(x) / (1 - sigmoid(x)))": Probe(
        lambda x: (lambda s: sc.log(s / (1 - s)))(sc.special.expit(x)), lambda x: x, WIDE, 1
    ),
    "log(exp(x) + exp(y))": Probe(
        lambda x, y: sc.log(sc.exp(x) + sc.exp(y)),
        lambda x, y: _logsumexp([x, y]),
        [(0.5, 1.5), (1e4, 1e4), (-1e4, -1e4 - 3), (800.0, -800.0), (-3.0, 700.0)],
        1,
    ),
    "log(exp(x) - exp(y))": Probe(
        lambda x, y: sc.log(sc.exp(x) - sc.exp(y)),
        lambda x, y: mp.log(mp.exp(x) - mp.exp(y)),
        [(1.5, 0.5), (1e4, 9998.0), (-1e3, -1003.0), (800.0, -800.0)],
        1,
    ),
    "log(3 exp(x) + 2 exp(y))": Probe(
        lambda x, y: sc.log(3 * sc.exp(x) + 2 * sc.exp(y)),
        lambda x, y: mp.log(3 * mp.exp(x) + 2 * mp.exp(y)),
        [(0.5, 1.5), (1e4, 1e4), (-1e4, -1e4 - 3), (800.0, -800.0)],
        1,
    ),
    "log(exp(x) * y)": Probe(
        lambda x, y: sc.log(sc.exp(x) * y), lambda x, y: x + mp.log(y), [(1000.0, 3.0), (-1000.0, 0.1)], 1
    ),
    "log(exp(x) / y)": Probe(
        lambda x, y: sc.log(sc.exp(x) / y), lambda x, y: x - mp.log(y), [(1000.0, 3.0), (-1000.0, 0.1)], 1
    ),
    "1 - erf(x)": Probe(lambda x: 1 - sc.erf(x), mp.erfc, [x for x in WIDE if x < 26], 1),
    "1 + erf(x)": Probe(lambda x: 1 + sc.erf(x), lambda x: mp.erfc(-x), [x for x in WIDE if x > -26], 1),
    "log(erfc(x))": Probe(
        lambda x: sc.log(sc.erfc(x)), lambda x: mp.log(mp.erfc(x)), [x for x in WIDE if abs(x) > 1e-4], 1
    ),
    "log(1 - erf(x))": Probe(
        lambda x: sc.log(1 - sc.erf(x)), lambda x: mp.log(mp.erfc(x)), [x for x in WIDE if abs(x) > 1e-4], 1
    ),
    "exp(-x * x) / erfc(x)": Probe(
        lambda x: sc.exp(-x * x) / sc.erfc(x),
        lambda x: mp.exp(-x * x) / mp.erfc(x),
        [x for x in WIDE if x > -6],
        1,
        128,
    ),
    "log(ndtr(x))": Probe(
        lambda x: sc.log(0.5 * sc.erfc(-x / sc.sqrt(2.0))),
        lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
        [x for x in WIDE if x < 3],
        1,
    ),
    "log((1 + erf(x)) / 2)": Probe(
        lambda x: sc.log((1 + sc.erf(x)) / 2), lambda x: mp.log(mp.erfc(-x) / 2), [x for x in WIDE if x < 3], 1
    ),
    "log of a density": Probe(
        lambda x: sc.log(sc.exp(-x * x / 2) / 2.5), lambda x: -x * x / 2 - mp.log(mp.mpf("2.5")), WIDE, 2
    ),
    "log of a ratio of densities": Probe(
        lambda x, y: sc.log(sc.exp(-x * x) / sc.exp(-y * y)),
        lambda x, y: y * y - x * x,
        [(30.0, 31.5), (1000.0, 999.0), (3.0, 0.0)],
        1,
    ),
    "log(1 / x)": Probe(lambda x: sc.log(1 / x), lambda x: -mp.log(x), POSITIVE, 1),
    "log(sqrt(x))": Probe(lambda x: sc.log(sc.sqrt(x)), lambda x: mp.log(x) / 2, POSITIVE, 1),
    "log(x * x)": Probe(lambda x: sc.log(x * x), lambda x: 2 * mp.log(abs(x)), SIGNED, 1),
    "log(x ** 3)": Probe(lambda x: sc.log(x**3), lambda x: 3 * mp.log(x), POSITIVE, 1),
    "exp(log(x))": Probe(lambda x: sc.exp(sc.log(x)), lambda x: x, POSITIVE, 1),
    "exp(-log(x))": Probe(lambda x: sc.exp(-sc.log(x)), lambda x: 1 / x, POSITIVE[3:], 1),
    "exp(2 log(x))": Probe(lambda x: sc.exp(2 * sc.log(x)), lambda x: x * x, (1e-5, 0.3, 2.5, 1e15), 1),
    "log(exp(x))": Probe(lambda x: sc.log(sc.exp(x)), lambda x: x, WIDE, 1),
    "exp(x) * exp(y)": Probe(
        lambda x, y: sc.exp(x) * sc.exp(y), lambda x, y: mp.exp(x + y), [(1000.0, -999.0), (1.0, 2.0)]
    ),
    "x / exp(y)": Probe(
        lambda x, y: x / sc.exp(y), lambda x, y: x * mp.exp(-y), [(2.0, 3.0), (2.0, 1000.0), (-1.0, -5.0)]
    ),
    "exp(x) / exp(y)": Probe(
        lambda x, y: sc.exp(x) / sc.exp(y), lambda x, y: mp.exp(x - y), [(1000.0, 999.0), (-1000.0, -999.0), (3.0, 2.0)]
    ),
    "exp(x) ** 2": Probe(lambda x: sc.exp(x) ** 2, lambda x: mp.exp(2 * x), [x for x in WIDE if x < 40], 1),
    "tanh by exponentials": Probe(
        lambda x: (sc.exp(x) - sc.exp(-x)) / (sc.exp(x) + sc.exp(-x)), mp.tanh, WIDE, 1, floor=1
    ),
    "tanh by one exponential": Probe(lambda x: (1 - sc.exp(-2 * x)) / (1 + sc.exp(-2 * x)), mp.tanh, WIDE, 1, floor=1),
    "tanh by exp(2x)": Probe(lambda x: (sc.exp(2 * x) - 1) / (sc.exp(2 * x) + 1), mp.tanh, WIDE, 1, floor=1),
    "tanh by a reciprocal": Probe(lambda x: 1 - 2 / (sc.exp(2 * x) + 1), mp.tanh, WIDE, 1, floor=1),
    "2 sigmoid(2x) - 1": Probe(lambda x: 2 * sc.special.expit(2 * x) - 1, mp.tanh, WIDE, 1, floor=1),
    "1 - tanh(x)**2": Probe(lambda x: 1 - sc.tanh(x) ** 2, lambda x: mp.sech(x) ** 2, WIDE, 1, floor=1),
    "sinh by exponentials": Probe(lambda x: (sc.exp(x) - sc.exp(-x)) / 2, mp.sinh, [x for x in WIDE if abs(x) < 86], 1),
    "cosh by exponentials": Probe(lambda x: (sc.exp(x) + sc.exp(-x)) / 2, mp.cosh, [x for x in WIDE if abs(x) < 86], 1),
    "log(cosh(x))": Probe(lambda x: sc.log(sc.cosh(x)), lambda x: mp.log(mp.cosh(x)), WIDE, 1),
    "log(exp(x) + exp(-x))": Probe(lambda x: sc.log(sc.exp(x) + sc.exp(-x)), lambda x: mp.log(2 * mp.cosh(x)), WIDE, 0),
    "log(sinh(x))": Probe(lambda x: sc.log(sc.sinh(x)), lambda x: mp.log(mp.sinh(x)), [x for x in WIDE if x > 0], 1),
    "atanh by logs": Probe(lambda x: 0.5 * sc.log((1 + x) / (1 - x)), mp.atanh, SMALL, 1),
    "log((1 + x) / (1 - x))": Probe(lambda x: sc.log((1 + x) / (1 - x)), lambda x: 2 * mp.atanh(x), SMALL, 1),
    "asinh by a log": Probe(lambda x: sc.log(x + sc.sqrt(x * x + 1)), mp.asinh, SIGNED, 1),
    "acosh by a log": Probe(
        lambda x: sc.log(x + sc.sqrt(x * x - 1)), mp.acosh, [1.0001, 1.5, 10.0, 1e5, 1e30, 1e300], 1
    ),
    "sqrt(x + 1) - sqrt(x)": Probe(
        lambda x: sc.sqrt(x + 1) - sc.sqrt(x), lambda x: mp.sqrt(x + 1) - mp.sqrt(x), POSITIVE[2:], 1
    ),
    "sqrt(1 + x) - 1": Probe(lambda x: sc.sqrt(1 + x) - 1, lambda x: mp.sqrt(1 + x) - 1, SMALL, 1),
    "1 / (sqrt(x + 1) - sqrt(x))": Probe(
        lambda x: 1 / (sc.sqrt(x + 1) - sc.sqrt(x)), lambda x: mp.sqrt(x + 1) + mp.sqrt(x), POSITIVE[2:], 1
    ),
    "1 - cos(x)": Probe(lambda x: 1 - sc.cos(x), lambda x: 1 - mp.cos(x), [x for x in SMALL if abs(x) > 1e-20], 1),
    "(1 - cos(x)) / sin(x)": Probe(
        lambda x: (1 - sc.cos(x)) / sc.sin(x), lambda x: mp.tan(x / 2), [x for x in SMALL if abs(x) > 1e-20], 0
    ),
    "sin(x) / x": Probe(lambda x: sc.sin(x) / x, lambda x: mp.sin(x) / x, [x for x in SMALL if abs(x) > 1e-20], 0),
    "(exp(x) - 1) / x": Probe(lambda x: (sc.exp(x) - 1) / x, lambda x: (mp.exp(x) - 1) / x, SMALL, 0),
    "log(1 + x) / x": Probe(lambda x: sc.log(1 + x) / x, lambda x: mp.log(1 + x) / x, [x for x in SMALL], 0),
    "x*x - y*y": Probe(
        lambda x, y: x * x - y * y,
        lambda x, y: x * x - y * y,
        [(1.0000001, 1.0), (1e8, 1e8 + 8), (3.0, 2.0), (1e-5, 1.0)],
        1,
    ),
    "sqrt(x*x + y*y)": Probe(
        lambda x, y: sc.sqrt(x * x + y * y),
        mp.hypot,
        [(3.0, 4.0), (1e200, 1e200), (1e30, 1e30), (1e-160, 1e-160), (1e-30, 2e-30)],
        1,
    ),
    "sqrt(x*x + 1)": Probe(lambda x: sc.sqrt(x * x + 1), lambda x: mp.sqrt(x * x + 1), SIGNED, 1),
    "sqrt(x*x)": Probe(lambda x: sc.sqrt(x * x), abs, SIGNED, 1),
    "(x*x)**0.5": Probe(lambda x: (x * x) ** 0.5, abs, SIGNED, 1),
    "x**7": Probe(lambda x: x**7, lambda x: x**7, (1e-5, 0.3, -1.7, 13.0), 2),
    "x**-3": Probe(lambda x: x**-3, lambda x: x**-3, (1e-5, 0.3, -1.7, 13.0), 2),
    "x**1.5": Probe(lambda x: x**1.5, lambda x: x ** mp.mpf("1.5"), (1e-20, 1e-5, 0.3, 13.0, 1e20), 2),
    "x**(1/3)": Probe(lambda x: x ** (1 / 3), mp.cbrt, (1e-20, 1e-5, 0.3, 13.0, 1e20), 0, 12),
    "x log x": Probe(lambda x: x * sc.log(x), lambda x: x * mp.log(x), POSITIVE[:9], 0),
    "binary cross-entropy": Probe(
        lambda x, y: (lambda p: -(y * sc.log(p) + (1 - y) * sc.log(1 - p)))(1 / (1 + sc.exp(-x))),
        lambda x, y: y * mp.log(1 + mp.exp(-x)) + (1 - y) * mp.log(1 + mp.exp(x)),
        [(x, y) for x in (-1e4, -800.0, -20.0, 0.5, 30.0, 800.0) for y in (0.0, 0.25, 1.0)],
        1,
    ),
    "exp(x) / (exp(x) + exp(y))": Probe(
        lambda x, y: sc.exp(x) / (sc.exp(x) + sc.exp(y)),
        lambda x, y: _sigmoid(x - y),
        [(1000.0, 998.0), (-1000.0, -1001.0), (2.0, 3.0), (800.0, -800.0)],
    ),
    "exp(x) - exp(-x)": Probe(lambda x: sc.exp(x) - sc.exp(-x), lambda x: 2 * mp.sinh(x), SMALL, 0),
}

LOGITS = (
    [0.5, -1.0, 2.0],
    [1e3, 999.0, 990.0],
    [-1e3, -1000.5, -1004.0],
    [1e4, 0.0, -1e4],
    [0.0, 0.0, 0.0],
    [88.0, 89.0, 88.5],
)


def _softmax(xs):
    top = _logsumexp(xs)
    return [mp.exp(x - top) for x in xs]


def _mean(xs):
    return mp.fsum(xs) / len(xs)


def _variance(xs):
    m = _mean(xs)
    return _mean([(x - m) ** 2 for x in xs])


SPREAD = ([1e6, 1e6 + 1, 1e6 + 2], [1.0, 2.0, 4.0], [1e-5, 2e-5, 4e-5], [-1000.0, -1001.0, -1003.0])

ROWS: dict[str, Probe] = {
    "log(sum(exp(x)))": Probe(lambda x: sc.log(sc.exp(x).sum()), _logsumexp, LOGITS, 1),
    "log(mean(exp(x)))": Probe(
        lambda x: sc.log(sc.exp(x).mean()), lambda xs: _logsumexp(xs) - mp.log(len(xs)), LOGITS[:-2], 1
    ),
    "log of a weighted sum": Probe(
        lambda x: sc.log((sc.exp(x) * sc.array([0.1, 2.0, 3.0], x.dtype)).sum()),
        lambda xs: mp.log(mp.fsum(mp.exp(x) * w for x, w in zip(xs, (0.1, 2, 3), strict=True))),
        LOGITS,
        1,
    ),
    "log(w @ exp(x))": Probe(
        lambda x: sc.log(sc.exp(x) @ sc.array([0.1, 2.0, 3.0], x.dtype)),
        lambda xs: mp.log(mp.fsum(mp.exp(x) * w for x, w in zip(xs, (0.1, 2, 3), strict=True))),
        LOGITS,
        1,
    ),
    "shifted by hand": Probe(lambda x: x.max() + sc.log(sc.exp(x - x.max()).sum()), _logsumexp, LOGITS, 1),
    "softmax": Probe(lambda x: sc.exp(x) / sc.exp(x).sum(), _softmax, LOGITS, 1),
    "softmax, shifted": Probe(lambda x: (lambda e: e / e.sum())(sc.exp(x - x.max())), _softmax, LOGITS, 1),
    "log(softmax)": Probe(
        lambda x: sc.log(sc.exp(x) / sc.exp(x).sum()), lambda xs: [x - _logsumexp(xs) for x in xs], LOGITS, 1
    ),
    "log(softmax)[1]": Probe(lambda x: sc.log(sc.special.softmax(x)[1]), lambda xs: xs[1] - _logsumexp(xs), LOGITS, 1),
    "cross-entropy": Probe(
        lambda x: -sc.log((sc.exp(x) / sc.exp(x).sum())[sc.array([2])]).mean(),
        lambda xs: _logsumexp(xs) - xs[2],
        LOGITS,
        1,
    ),
    "entropy of a softmax": Probe(
        lambda x: (lambda p: -(p * sc.log(p)).sum())(sc.special.softmax(x)),
        lambda xs: -mp.fsum(p * (x - _logsumexp(xs)) for p, x in zip(_softmax(xs), xs, strict=True)),
        LOGITS[:3],
        1,
    ),
    "sqrt(sum(x*x))": Probe(
        lambda x: sc.sqrt((x * x).sum()),
        lambda xs: mp.sqrt(mp.fsum(x * x for x in xs)),
        ([3.0, 4.0, 12.0], [1e200, 1e200, 1e190], [1e-160, 1e-160, 1e-170], [1e30, -1e30, 1.0]),
        1,
    ),
    "sqrt(x @ x)": Probe(
        lambda x: sc.sqrt(x @ x),
        lambda xs: mp.sqrt(mp.fsum(x * x for x in xs)),
        ([3.0, 4.0, 12.0], [1e200, 1e200, 1e190], [1e-160, 1e-160, 1e-170], [1e30, -1e30, 1.0]),
        1,
    ),
    "x / sqrt(sum(x*x))": Probe(
        lambda x: x / sc.sqrt((x * x).sum()),
        lambda xs: [x / mp.sqrt(mp.fsum(x * x for x in xs)) for x in xs],
        ([3.0, 4.0, 12.0], [1e200, 1e200, 1e190], [1e-160, 1e-160, 1e-170], [1e30, -1e30, 1.0]),
        0,
    ),
    "mean(x*x) - mean(x)**2": Probe(lambda x: (x * x).mean() - x.mean() ** 2, _variance, SPREAD, 1),
    "sum(x*x)/n - (sum(x)/n)**2": Probe(lambda x: (x * x).sum() / 3 - (x.sum() / 3) ** 2, _variance, SPREAD, 1),
    "(x**2).mean() - x.mean()**2, keepdims": Probe(
        lambda x: ((x**2).mean(keepdims=True) - x.mean(keepdims=True) ** 2).sum(), _variance, SPREAD, 1
    ),
    "sum(x*x) - sum(x)**2/n": Probe(
        lambda x: (x * x).sum() - x.sum() ** 2 / 3, lambda xs: 3 * _variance(xs), SPREAD, 1
    ),
    "sum(x*x) - n*mean(x)**2": Probe(
        lambda x: (x * x).sum() - 3 * x.mean() ** 2, lambda xs: 3 * _variance(xs), SPREAD, 1
    ),
    "mean((x - mean(x))**2)": Probe(lambda x: ((x - x.mean()) ** 2).mean(), _variance, SPREAD, 1),
    "covariance": Probe(
        lambda x: (x * (x * x)).mean() - x.mean() * (x * x).mean(),
        lambda xs: _mean([(x - _mean(xs)) * (x * x - _mean([y * y for y in xs])) for x in xs]),
        ([1e3, 1001.0, 1003.0], [1.0, 2.0, 4.0]),
        0,
        64,
    ),
    "log(prod(x))": Probe(
        lambda x: sc.log(sc.exp(x).prod()), lambda xs: mp.fsum(xs), ([500.0, 400.0, 3.0], [-1e3, -2.0, 3.0]), 1
    ),
}
