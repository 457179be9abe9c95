"""More probes: formulas of statistics, numerics and learning as users write them, where they are in trouble.

``EACH`` and ``ROWS`` as in ``probe_cases``: a form, the function it means, and points. ``EDGE``: a form, a point, and
value and gradient there, where the gradient is a convention (a kink, a constant row) or a limit.
"""

from __future__ import annotations

import itertools
from typing import Any

import mpmath as mp
import numpy as np

import symc as sc
from tests.opt.probe_cases import Probe

INF = np.inf
FAR = (1000.0, -1000.0, 100.0, -100.0, 0.5)
BIG = (1e200, -1e200, 1e30, -1e25, 0.5)
TINY = (1e-200, -1e-30, 1e-12, 1e-5, -0.3)
SMALL = (1e-12, -1e-9, 1e-6, 1e-3, 0.3)
UNIT = (1e-30, 1e-12, 1e-3, 0.3, 0.75)
PAIRS = ((1000.0, 999.0), (-1000.0, -1002.0), (0.5, 2.0), (-800.0, 800.0), (100.0, -100.0))


def each(form: Any, true: Any, points: Any, orders: int = 1, ulps: float = 16, floor: float = 0) -> Probe:
    return Probe(form, true, points, orders, ulps, floor)


def _expit(x):
    return 1 / (1 + mp.exp(-x))


def _softplus(x):
    return mp.log(1 + mp.exp(x))


def _lse(xs):
    return mp.log(mp.fsum(mp.exp(x) for x in xs))


SIG = sc.special.expit

EACH: dict[str, Probe] = {
    # --- logs of sums of exponentials
    "log(1 + 3*exp(x))": each(lambda x: sc.log(1 + 3 * sc.exp(x)), lambda x: mp.log(1 + 3 * mp.exp(x)), FAR),
    "log(2 + exp(x))": each(lambda x: sc.log(2 + sc.exp(x)), lambda x: mp.log(2 + mp.exp(x)), FAR),
    "log(0.3 + 0.6*exp(x))": each(
        lambda x: sc.log(0.3 + 0.6 * sc.exp(x)), lambda x: mp.log(mp.mpf("0.3") + mp.mpf("0.6") * mp.exp(x)), FAR[:4]
    ),
    "log(1 + exp(x) + exp(2x))": each(
        lambda x: sc.log(1 + sc.exp(x) + sc.exp(2 * x)), lambda x: mp.log(1 + mp.exp(x) + mp.exp(2 * x)), FAR
    ),
    "log(exp(x) * exp(x) + 1)": each(
        lambda x: sc.log(sc.exp(x) * sc.exp(x) + 1), lambda x: mp.log(mp.exp(2 * x) + 1), FAR
    ),
    "log(exp(x)**2 + exp(y)**2)": each(
        lambda x, y: sc.log(sc.exp(x) ** 2 + sc.exp(y) ** 2), lambda x, y: mp.log(mp.exp(2 * x) + mp.exp(2 * y)), PAIRS
    ),
    "log(sqrt(exp(x) + exp(y)))": each(
        lambda x, y: sc.log(sc.sqrt(sc.exp(x) + sc.exp(y))), lambda x, y: _lse([x, y]) / 2, PAIRS
    ),
    "log(1 + 1/exp(x))": each(lambda x: sc.log(1 + 1 / sc.exp(x)), lambda x: _softplus(-x), FAR),
    "log((exp(x) + exp(y)) / 2)": each(
        lambda x, y: sc.log((sc.exp(x) + sc.exp(y)) / 2), lambda x, y: _lse([x, y]) - mp.log(2), PAIRS
    ),
    "log((1 + exp(x)) / (1 + exp(y)))": each(
        lambda x, y: sc.log((1 + sc.exp(x)) / (1 + sc.exp(y))),
        lambda x, y: _softplus(x) - _softplus(y),
        [p for p in PAIRS if p[0] != -1000.0],
    ),
    "log(exp(x) / (1 + exp(x)))": each(lambda x: sc.log(sc.exp(x) / (1 + sc.exp(x))), lambda x: -_softplus(-x), FAR),
    "log(1 / (1 + exp(x)))": each(lambda x: sc.log(1 / (1 + sc.exp(x))), lambda x: -_softplus(x), FAR),
    "log(1 - 1/(1 + exp(-x)))": each(lambda x: sc.log(1 - 1 / (1 + sc.exp(-x))), lambda x: -_softplus(x), FAR),
    "log(sigmoid(x) * sigmoid(y))": each(
        lambda x, y: sc.log(SIG(x) * SIG(y)), lambda x, y: -_softplus(-x) - _softplus(-y), PAIRS
    ),
    "log(sigmoid(x) * (1 - sigmoid(x)))": each(
        lambda x: (lambda s: sc.log(s * (1 - s)))(SIG(x)), lambda x: -_softplus(-x) - _softplus(x), FAR
    ),
    "log(exp(-x) / (1 + exp(-x))**2)": each(
        lambda x: sc.log(sc.exp(-x) / (1 + sc.exp(-x)) ** 2), lambda x: -x - 2 * _softplus(-x), FAR
    ),
    "log(1 - exp(-exp(x)))": each(
        lambda x: sc.log(1 - sc.exp(-sc.exp(x))), lambda x: mp.log(1 - mp.exp(-mp.exp(x))), (-40.0, -5.0, 0.5, -80.0)
    ),
    "log(exp(2x) - 1)": each(
        lambda x: sc.log(sc.exp(2 * x) - 1), lambda x: mp.log(mp.exp(2 * x) - 1), (1000.0, 50.0, 1.0, 1e-10)
    ),
    "log(exp(x) - 1/2)": each(
        lambda x: sc.log(sc.exp(x) - 0.5), lambda x: mp.log(mp.exp(x) - 0.5), (1000.0, 100.0, 2.0)
    ),
    "log1p(exp(x)) * y": each(
        lambda x, y: sc.log1p(sc.exp(x)) * y, lambda x, y: _softplus(x) * y, [(1000.0, 2.0), (-1000.0, 2.0)]
    ),
    "softplus with a slope": each(
        lambda x: sc.log(1 + sc.exp(20 * x)) / 20, lambda x: _softplus(20 * x) / 20, (100.0, -3.0, 0.1, -100.0)
    ),
    "log(sigmoid(x) - sigmoid(y))": each(
        lambda x, y: sc.log(SIG(x) - SIG(y)),
        lambda x, y: mp.log(_expit(x) - _expit(y)),
        [(0.5, -0.5), (50.0, 49.0), (-50.0, -51.0), (-500.0, -501.0)],
    ),
    # --- quotients of exponentials
    "exp(-x) / (1 + exp(-x))**2": each(
        lambda x: sc.exp(-x) / (1 + sc.exp(-x)) ** 2, lambda x: _expit(x) * _expit(-x), FAR, floor=1e-30
    ),
    "exp(x) / (1 + exp(x))**2": each(
        lambda x: sc.exp(x) / (1 + sc.exp(x)) ** 2, lambda x: _expit(x) * _expit(-x), FAR, floor=1e-30
    ),
    "1 / (2 + exp(x))": each(lambda x: 1 / (2 + sc.exp(x)), lambda x: 1 / (2 + mp.exp(x)), FAR),
    "x / (1 + exp(x))": each(lambda x: x / (1 + sc.exp(x)), lambda x: x / (1 + mp.exp(x)), FAR),
    "x / (3 + 2*exp(-x))": each(lambda x: x / (3 + 2 * sc.exp(-x)), lambda x: x / (3 + 2 * mp.exp(-x)), FAR, ulps=64),
    "exp(x) / (2 + exp(x))": each(lambda x: sc.exp(x) / (2 + sc.exp(x)), lambda x: 1 / (2 * mp.exp(-x) + 1), FAR),
    "exp(x) / (exp(x) - 1)": each(
        lambda x: sc.exp(x) / (sc.exp(x) - 1), lambda x: 1 / (1 - mp.exp(-x)), (1000.0, 100.0, 0.5, -100.0, 1e-9)
    ),
    "1 / (exp(x) - 1)": each(
        lambda x: 1 / (sc.exp(x) - 1), lambda x: 1 / (mp.exp(x) - 1), (1000.0, 100.0, 0.5, -100.0, 1e-9)
    ),
    "x / (exp(x) - 1)": each(
        lambda x: x / (sc.exp(x) - 1), lambda x: x / (mp.exp(x) - 1), (1000.0, 100.0, 2.5, -100.0, -1000.0)
    ),
    "1 / (1 + exp(x) + exp(y))": each(
        lambda x, y: 1 / (1 + sc.exp(x) + sc.exp(y)),
        lambda x, y: 1 / (1 + mp.exp(x) + mp.exp(y)),
        [(1000.0, 0.5), (1.0, 2.0), (-1000.0, -1000.0), (100.0, 100.0)],
        ulps=128,
    ),
    "exp(x) / (1 + exp(x) + exp(y))": each(
        lambda x, y: sc.exp(x) / (1 + sc.exp(x) + sc.exp(y)),
        lambda x, y: mp.exp(x) / (1 + mp.exp(x) + mp.exp(y)),
        [(1000.0, 999.0), (1.0, 2.0), (-100.0, -100.0), (100.0, 99.0)],
        ulps=512,
    ),
    "(exp(x) - exp(y)) / (exp(x) + exp(y))": each(
        lambda x, y: (sc.exp(x) - sc.exp(y)) / (sc.exp(x) + sc.exp(y)),
        lambda x, y: mp.tanh((x - y) / 2),
        [(1000.0, 999.0), (-1000.0, -1002.0), (0.5, 2.0), (100.0, 99.0)],
    ),
    "exp(x - y) / (1 + exp(x - y))": each(
        lambda x, y: sc.exp(x - y) / (1 + sc.exp(x - y)), lambda x, y: _expit(x - y), PAIRS
    ),
    "sigmoid(x) - sigmoid(y)": each(
        lambda x, y: SIG(x) - SIG(y),
        lambda x, y: _expit(x) - _expit(y),
        [(0.5, -0.5), (50.0, 49.0), (30.0, 20.0), (3.0, 3.0000001)],
    ),
    "tanh(x) - 1": each(lambda x: sc.tanh(x) - 1, lambda x: mp.tanh(x) - 1, (0.5, 15.0, 40.0, -3.0), floor=1),
    "1 - tanh(x)": each(lambda x: 1 - sc.tanh(x), lambda x: 1 - mp.tanh(x), (0.5, 15.0, 40.0, -3.0), floor=1),
    "log(1 - tanh(x)**2)": each(
        lambda x: sc.log(1 - sc.tanh(x) ** 2), lambda x: -2 * mp.log(mp.cosh(x)), (0.5, 20.0, 100.0, -1000.0, 1e-4)
    ),
    "log(1 - tanh(x))": each(
        lambda x: sc.log(1 - sc.tanh(x)), lambda x: mp.log(1 - mp.tanh(x)), (0.5, 20.0, 100.0, -1000.0)
    ),
    "x * sigmoid(x)": each(lambda x: x * SIG(x), lambda x: x * _expit(x), (700.0, -80.0, 100.0, 0.5)),
    "x / (1 + exp(-x))": each(lambda x: x / (1 + sc.exp(-x)), lambda x: x * _expit(x), FAR),
    "x * tanh(log(1 + exp(x)))": each(
        lambda x: x * sc.tanh(sc.log(1 + sc.exp(x))), lambda x: x * mp.tanh(_softplus(x)), (100.0, 1000.0, -30.0, 0.5)
    ),
    "gelu": each(
        lambda x: 0.5 * x * (1 + sc.erf(x / sc.sqrt(2.0))),
        lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
        (-8.0, 8.0, 0.5, 100.0, 1e-9),
        ulps=64,
    ),
    "elu by where": each(
        lambda x: sc.where(x > 0, x, sc.exp(x) - 1),
        lambda x: x if x > 0 else mp.exp(x) - 1,
        (1000.0, -1e-9, -3.0, 100.0),
    ),
    "coth by exponentials": each(
        lambda x: (sc.exp(x) + sc.exp(-x)) / (sc.exp(x) - sc.exp(-x)), mp.coth, (1000.0, 100.0, 0.5, -100.0), floor=1
    ),
    "sech by exponentials": each(
        lambda x: 2 / (sc.exp(x) + sc.exp(-x)), mp.sech, (1000.0, 100.0, 0.5, -100.0), floor=1e-30
    ),
    "1 / cosh(x)": each(lambda x: 1 / sc.cosh(x), mp.sech, (1000.0, 0.5, -1000.0)),
    "sinh(x) / exp(x)": each(
        lambda x: sc.sinh(x) / sc.exp(x), lambda x: (1 - mp.exp(-2 * x)) / 2, (1000.0, 100.0, 0.5)
    ),
    "cosh(x)**2 - sinh(x)**2": each(
        lambda x: sc.cosh(x) ** 2 - sc.sinh(x) ** 2, lambda x: mp.mpf(1), (0.5, 3.0, 20.0), 0
    ),
    # --- logs
    "log(1 + x*x)": each(lambda x: sc.log(1 + x * x), lambda x: mp.log(1 + x * x), (*BIG, 1e-8, 1e9)),
    "log(1 + x**2 / 3)": each(lambda x: sc.log(1 + x**2 / 3), lambda x: mp.log(1 + x * x / 3), (*BIG, 1e-8, 1e9)),
    "log(2 + x*x)": each(lambda x: sc.log(2 + x * x), lambda x: mp.log(2 + x * x), BIG),
    "log(x*x + y*y)": each(
        lambda x, y: sc.log(x * x + y * y),
        lambda x, y: mp.log(x * x + y * y),
        [(1e200, 1e200), (1e-200, 1e-201), (3.0, 4.0), (1e25, 1e20), (1e-25, 1e-25)],
    ),
    "log(sqrt(x*x + y*y))": each(
        lambda x, y: sc.log(sc.sqrt(x * x + y * y)),
        lambda x, y: mp.log(x * x + y * y) / 2,
        [(1e200, 1e200), (1e-200, 1e-201), (3.0, 4.0), (1e25, 1e20), (1e-25, 1e-25)],
    ),
    "log(x * y)": each(
        lambda x, y: sc.log(x * y), lambda x, y: mp.log(x * y), [(1e200, 1e200), (1e-200, 1e-150), (3.0, 5.0)]
    ),
    "log(x / y)": each(
        lambda x, y: sc.log(x / y), lambda x, y: mp.log(x / y), [(1e200, 1e-200), (1e-200, 1e150), (3.0, 5.0)]
    ),
    "log(x + 1) - log(x)": each(
        lambda x: sc.log(x + 1) - sc.log(x), lambda x: mp.log(1 + 1 / x), (1e12, 1e6, 0.5, 1e-5)
    ),
    "log(x) - log(y)": each(
        lambda x, y: sc.log(x) - sc.log(y), lambda x, y: mp.log(x / y), [(1.0000001, 1.0), (1e10, 1.0), (1e-30, 3.0)]
    ),
    "log(1 + x) - x": each(lambda x: sc.log(1 + x) - x, lambda x: mp.log(1 + x) - x, (1e-6, 1e-3, 0.3, 5.0)),
    "log(abs(x))": each(lambda x: sc.log(abs(x)), lambda x: mp.log(abs(x)), (-3.0, 1e-30, 1e30), 2),
    "log(x**2 / y**2)": each(
        lambda x, y: sc.log(x**2 / y**2), lambda x, y: 2 * mp.log(x / y), [(1e200, 2.0), (3.0, 1e-200), (3.0, 2.0)]
    ),
    "log(1 / x**2)": each(lambda x: sc.log(1 / x**2), lambda x: -2 * mp.log(x), (1e200, 1e-200, 3.0, 1e25)),
    "log(exp(x) * x)": each(lambda x: sc.log(sc.exp(x) * x), lambda x: x + mp.log(x), (1000.0, 100.0, 0.7)),
    "x*log(x) - x*log(y)": each(
        lambda x, y: x * sc.log(x) - x * sc.log(y), lambda x, y: x * mp.log(x / y), [(0.3, 0.2), (0.5, 1e-30)]
    ),
    "-p*log(p) - (1-p)*log(1-p)": each(
        lambda p: -p * sc.log(p) - (1 - p) * sc.log(1 - p),
        lambda p: -p * mp.log(p) - (1 - p) * mp.log(1 - p),
        (1e-30, 1e-12, 1e-3, 0.3),
    ),
    "log10(exp(x))": each(lambda x: sc.log10(sc.exp(x)), lambda x: x / mp.log(10), (1000.0, -1000.0, 2.0)),
    "log2(1 + exp(x))": each(lambda x: sc.log2(1 + sc.exp(x)), lambda x: _softplus(x) / mp.log(2), FAR),
    "exp(x) * log(1 + exp(-x))": each(
        lambda x: sc.exp(x) * sc.log(1 + sc.exp(-x)), lambda x: mp.exp(x) * _softplus(-x), (30.0, 3.0, -30.0)
    ),
    # --- expm1, log1p and their kin
    "(exp(x) - 1) / x": each(lambda x: (sc.exp(x) - 1) / x, lambda x: mp.expm1(x) / x, (1e-10, -1e-5, 0.5, 1e-2)),
    "log(1 + x) / x": each(lambda x: sc.log(1 + x) / x, lambda x: mp.log1p(x) / x, (1e-10, -1e-5, 0.5, 1e-2)),
    "sin(x) / x": each(lambda x: sc.sin(x) / x, lambda x: mp.sin(x) / x, (1e-10, 1e-5, 0.5, 3.0)),
    "tanh(x) / x": each(lambda x: sc.tanh(x) / x, lambda x: mp.tanh(x) / x, (1e-10, 1e-3, 0.5, 30.0), 0),
    "(1 - cos(x)) / x**2": each(
        lambda x: (1 - sc.cos(x)) / x**2, lambda x: (1 - mp.cos(x)) / x**2, (1e-10, 1e-5, 0.5, 1e-3), 0
    ),
    "(1 - exp(-x)) / x": each(
        lambda x: (1 - sc.exp(-x)) / x, lambda x: -mp.expm1(-x) / x, (1e-10, 1e-5, 0.5, 100.0), 0
    ),
    "exp(x) - 1 - x": each(lambda x: sc.exp(x) - 1 - x, lambda x: mp.exp(x) - 1 - x, (1e-6, 1e-3, 0.3, 5.0)),
    "exp(x) - exp(y)": each(
        lambda x, y: sc.exp(x) - sc.exp(y), lambda x, y: mp.exp(x) - mp.exp(y), [(1.0000001, 1.0), (1e-12, 2e-12)]
    ),
    "exp(x*x) - 1": each(lambda x: sc.exp(x * x) - 1, lambda x: mp.expm1(x * x), (1e-6, 1e-10, 0.5, 3.0)),
    "1 - exp(-exp(x))": each(lambda x: 1 - sc.exp(-sc.exp(x)), lambda x: -mp.expm1(-mp.exp(x)), (-40.0, -5.0, 0.5)),
    "2**x - 1": each(lambda x: 2**x - 1, lambda x: mp.expm1(x * mp.log(2)), SMALL),
    "10**x - 1": each(lambda x: 10**x - 1, lambda x: mp.expm1(x * mp.log(10)), SMALL),
    "(1 + x)**10 - 1": each(lambda x: (1 + x) ** 10 - 1, lambda x: (1 + x) ** 10 - 1, SMALL),
    "(1 + x)**y - 1": each(
        lambda x, y: (1 + x) ** y - 1, lambda x, y: (1 + x) ** y - 1, [(1e-12, 3.0), (1e-6, 12.0), (0.3, 2.5)]
    ),
    "1 - (1 - x)**20": each(lambda x: 1 - (1 - x) ** 20, lambda x: 1 - (1 - x) ** 20, (1e-12, 1e-6, 1e-3)),
    "(x**y - 1) / y": each(
        lambda x, y: (x**y - 1) / y, lambda x, y: (x**y - 1) / y, [(3.0, 1e-6), (0.5, 1e-3), (7.0, 0.5)], 0
    ),
    "(1 + x/n)**n": each(
        lambda x: (1 + x / 1e8) ** 1e8, lambda x: (1 + x / mp.mpf(10) ** 8) ** (10**8), (0.5, 1.0, -2.0), ulps=64
    ),
    "x**x": each(lambda x: x**x, lambda x: x**x, (0.5, 1e-5, 3.0, 20.0), ulps=64),
    "2**x / 3**x": each(
        lambda x: 2.0**x / 3.0**x, lambda x: (mp.mpf(2) / 3) ** x, (1000.0, 3.0, -1000.0, 50.0), ulps=2000
    ),
    "exp(x)**y / exp(y)**x": each(
        lambda x, y: sc.exp(x) ** y / sc.exp(y) ** x, lambda x, y: mp.mpf(1), [(30.0, 40.0), (2.0, 3.0)], 0, 4000
    ),
    "exp(-x*x) * exp(x*x)": each(lambda x: sc.exp(-x * x) * sc.exp(x * x), lambda x: mp.mpf(1), (30.0, 3.0, 100.0)),
    "exp(x) * exp(-y)": each(
        lambda x, y: sc.exp(x) * sc.exp(-y), lambda x, y: mp.exp(x - y), [(1000.0, 999.0), (-1000.0, -1001.0)]
    ),
    # --- roots
    "sqrt(1 + x*x) - 1": each(
        lambda x: sc.sqrt(1 + x * x) - 1, lambda x: mp.sqrt(1 + x * x) - 1, (1e-8, 1e-3, 0.5, 1e200)
    ),
    "1 - sqrt(1 - x*x)": each(lambda x: 1 - sc.sqrt(1 - x * x), lambda x: 1 - mp.sqrt(1 - x * x), (1e-8, 1e-3, 0.5)),
    "1 - sqrt(1 - x)": each(lambda x: 1 - sc.sqrt(1 - x), lambda x: 1 - mp.sqrt(1 - x), SMALL),
    "sqrt(1 + x) - sqrt(1 - x)": each(
        lambda x: sc.sqrt(1 + x) - sc.sqrt(1 - x), lambda x: mp.sqrt(1 + x) - mp.sqrt(1 - x), SMALL
    ),
    "sqrt(x*x + 1) - x": each(
        lambda x: sc.sqrt(x * x + 1) - x, lambda x: mp.sqrt(x * x + 1) - x, (1e10, 1e3, 0.5, -3.0)
    ),
    "x - sqrt(x*x - 1)": each(lambda x: x - sc.sqrt(x * x - 1), lambda x: x - mp.sqrt(x * x - 1), (1e10, 1e3, 1.5)),
    "sqrt(x*x + 4) - 2": each(lambda x: sc.sqrt(x * x + 4) - 2, lambda x: mp.sqrt(x * x + 4) - 2, (1e-7, 1e-3, 0.5)),
    "sqrt(x) - sqrt(y)": each(
        lambda x, y: sc.sqrt(x) - sc.sqrt(y),
        lambda x, y: mp.sqrt(x) - mp.sqrt(y),
        [(2.0000001, 2.0), (1e10, 1e10 + 1e4), (3.0, 0.5)],
    ),
    "1/sqrt(x) - 1/sqrt(x + 1)": each(
        lambda x: 1 / sc.sqrt(x) - 1 / sc.sqrt(x + 1), lambda x: 1 / mp.sqrt(x) - 1 / mp.sqrt(x + 1), (1e10, 1e5, 0.5)
    ),
    "1/x - 1/(x + 1)": each(lambda x: 1 / x - 1 / (x + 1), lambda x: 1 / (x * (x + 1)), (1e10, 1e5, 0.5)),
    "1/(x - 1) - 1/(x + 1)": each(lambda x: 1 / (x - 1) - 1 / (x + 1), lambda x: 2 / (x * x - 1), (1e10, 1e5, 3.0)),
    "(x + 1)**2 - x**2": each(lambda x: (x + 1) ** 2 - x**2, lambda x: 2 * x + 1, (1e10, 1e5, 0.5, 1e-10)),
    "x / sqrt(1 + x*x)": each(lambda x: x / sc.sqrt(1 + x * x), lambda x: x / mp.sqrt(1 + x * x), (*BIG, 1e-9)),
    "1 / sqrt(1 + x*x)": each(lambda x: 1 / sc.sqrt(1 + x * x), lambda x: 1 / mp.sqrt(1 + x * x), (*BIG, 1e-9)),
    "x*x / (1 + x*x)": each(lambda x: x * x / (1 + x * x), lambda x: x * x / (1 + x * x), (1e200, 1e30, 0.5, 1e-9)),
    "x / (1 + x*x)": each(lambda x: x / (1 + x * x), lambda x: x / (1 + x * x), (1e160, 1e20, 0.5, 1e-9)),
    "1 / (1 + x*x)": each(lambda x: 1 / (1 + x * x), lambda x: 1 / (1 + x * x), (1e200, 1e25, 0.5, 1e-9)),
    "x / (1 + |x|)": each(lambda x: x / (1 + abs(x)), lambda x: x / (1 + abs(x)), (1e300, -1e30, 0.5, 1e-9)),
    "sqrt(x*x + y*y + z*z)": each(
        lambda x, y, z: sc.sqrt(x * x + y * y + z * z),
        lambda x, y, z: mp.sqrt(x * x + y * y + z * z),
        [(1e200, 1e200, 1.0), (1e-200, 1e-200, 1e-201), (1.0, 2.0, 3.0), (1e25, 1e24, 1.0), (1e-25, 1e-25, 1e-26)],
    ),
    "sqrt((x - y)**2 + 1)": each(
        lambda x, y: sc.sqrt((x - y) ** 2 + 1),
        lambda x, y: mp.sqrt((x - y) ** 2 + 1),
        [(1e200, 1.0), (3.0, 3.0), (-1e30, 1e25)],
    ),
    "abs(x + iy)": each(
        lambda x, y: abs(x + 1j * y), mp.hypot, [(1e200, 1e200), (1e-200, 1e-200), (3.0, 4.0), (1e25, 1e25)]
    ),
    "cbrt as x**(1/3)": each(lambda x: x ** (1 / 3), mp.cbrt, (1e-30, 8.0, 1e30), ulps=32),
    "x**2.5": each(lambda x: x**2.5, lambda x: x ** mp.mpf("2.5"), (1e-10, 0.5, 1e10)),
    "sqrt(x)*sqrt(x)": each(lambda x: sc.sqrt(x) * sc.sqrt(x), lambda x: x, (1e-300, 1e-30, 2.0, 1e30)),
    "x / sqrt(x)": each(lambda x: x / sc.sqrt(x), mp.sqrt, (1e-300, 1e-30, 2.0, 1e30)),
    "smaller root of a quadratic": each(
        lambda b: (-b + sc.sqrt(b * b - 4)) / 2, lambda b: (-b + mp.sqrt(b * b - 4)) / 2, (1e8, 1e4, 3.0)
    ),
    # --- trigonometric and inverse functions
    "1 - cos(x)": each(lambda x: 1 - sc.cos(x), lambda x: 1 - mp.cos(x), (1e-8, 1e-4, 0.5)),
    "sqrt(1 - cos(x))": each(lambda x: sc.sqrt(1 - sc.cos(x)), lambda x: mp.sqrt(1 - mp.cos(x)), (1e-8, 1e-4, 0.5)),
    "sqrt((1 - cos(x)) / 2)": each(
        lambda x: sc.sqrt((1 - sc.cos(x)) / 2), lambda x: mp.sqrt((1 - mp.cos(x)) / 2), (1e-8, 1e-4, 0.5)
    ),
    "1 - sin(x)**2": each(lambda x: 1 - sc.sin(x) ** 2, lambda x: mp.cos(x) ** 2, (0.5, 1.5707, 1e-9)),
    "sin(x) / cos(x)": each(lambda x: sc.sin(x) / sc.cos(x), mp.tan, (0.5, 1.5707, 1e-9)),
    "sin(x + y) - sin(x)": each(
        lambda x, y: sc.sin(x + y) - sc.sin(x), lambda x, y: mp.sin(x + y) - mp.sin(x), [(1.0, 1e-9), (0.5, 0.25)]
    ),
    "x - sin(x)": each(lambda x: x - sc.sin(x), lambda x: x - mp.sin(x), (1e-4, 1e-2, 0.5)),
    "asinh by a log": each(lambda x: sc.log(x + sc.sqrt(1 + x**2)), mp.asinh, (1e200, -1e200, -1e5, 1e-9, 1e25, -1e25)),
    "acosh by a log": each(lambda x: sc.log(x + sc.sqrt(x**2 - 1)), mp.acosh, (1e200, 1.5, 1e25, 1e5)),
    "atanh by logs": each(lambda x: (sc.log(1 + x) - sc.log(1 - x)) / 2, mp.atanh, (1e-12, 1e-5, 0.5, -0.9)),
    "logit by logs": each(lambda p: sc.log(p) - sc.log(1 - p), lambda p: mp.log(p / (1 - p)), UNIT),
    "sigmoid(logit(p) + b)": each(
        lambda p, b: SIG(sc.log(p / (1 - p)) + b),
        lambda p, b: _expit(mp.log(p / (1 - p)) + b),
        [(0.3, 2.0), (0.9, -5.0), (0.01, 3.0)],
    ),
    # --- densities and their logs
    "Cauchy": each(lambda x: sc.log(1 / (np.pi * (1 + x * x))), lambda x: -mp.log(mp.pi * (1 + x * x)), BIG),
    "Student t": each(lambda x: -2.5 * sc.log(1 + x**2 / 4), lambda x: -2.5 * mp.log(1 + x * x / 4), (*BIG, 1e-8)),
    "normal": each(
        lambda x: sc.log(sc.exp(-0.5 * x**2) / sc.sqrt(2 * np.pi)),
        lambda x: -x * x / 2 - mp.log(2 * mp.pi) / 2,
        (50.0, -1000.0, 0.5, 1e-9),
    ),
    "normal with a scale": each(
        lambda x, s: sc.log(sc.exp(-0.5 * (x / s) ** 2) / (s * sc.sqrt(2 * np.pi))),
        lambda x, s: -((x / s) ** 2) / 2 - mp.log(s) - mp.log(2 * mp.pi) / 2,
        [(50.0, 1.0), (1e-5, 1e-8), (3.0, 2.0), (1e5, 10.0)],
    ),
    "normal mixture": each(
        lambda x: sc.log(0.3 * sc.exp(-((x - 1) ** 2) / 2) + 0.7 * sc.exp(-((x + 1) ** 2) / 2)),
        lambda x: mp.log(mp.mpf("0.3") * mp.exp(-((x - 1) ** 2) / 2) + mp.mpf("0.7") * mp.exp(-((x + 1) ** 2) / 2)),
        (0.5, 50.0, -50.0, 1000.0),
    ),
    "mixture with a weight": each(
        lambda w, x: sc.log(w * sc.exp(-(x**2) / 2) + (1 - w) * sc.exp(-((x - 3) ** 2) / 2)),
        lambda w, x: mp.log(w * mp.exp(-(x**2) / 2) + (1 - w) * mp.exp(-((x - 3) ** 2) / 2)),
        [(0.3, 0.5), (0.25, 60.0), (0.75, -1000.0), (0.5, 14.0)],
    ),
    "Laplace": each(lambda x: sc.log(sc.exp(-abs(x)) / 2), lambda x: -abs(x) - mp.log(2), FAR),
    "Gumbel": each(
        lambda x: sc.log(sc.exp(-(x + sc.exp(-x)))), lambda x: -(x + mp.exp(-x)), (1000.0, -6.0, 0.5, -50.0)
    ),
    "Gumbel distribution function": each(
        lambda x: sc.log(sc.exp(-sc.exp(-x))), lambda x: -mp.exp(-x), (30.0, -5.0, 0.5, -50.0)
    ),
    "Gamma": each(
        lambda x: sc.log(x**3.5 * sc.exp(-2 * x)),
        lambda x: mp.mpf("3.5") * mp.log(x) - 2 * x,
        (1000.0, 1e-200, 2.5, 1e-25),
    ),
    "Beta": each(
        lambda x: sc.log(x**2.5 * (1 - x) ** 1.5),
        lambda x: mp.mpf("2.5") * mp.log(x) + mp.mpf("1.5") * mp.log(1 - x),
        (1e-200, 1e-25, 0.3, 0.99),
    ),
    "Poisson": each(lambda m: sc.log(sc.exp(-m) * m**30), lambda m: -m + 30 * mp.log(m), (1000.0, 1e-20, 3.0, 1e-8)),
    "binomial": each(
        lambda p: sc.log(p**40 * (1 - p) ** 60),
        lambda p: 40 * mp.log(p) + 60 * mp.log(1 - p),
        (1e-20, 1e-8, 0.3, 0.999),
    ),
    "Weibull survival": each(lambda x: sc.log(sc.exp(-(x**1.5))), lambda x: -(x ** mp.mpf("1.5")), (200.0, 1e-5, 3.0)),
    "log of an exponential's distribution": each(
        lambda x: sc.log(1 - sc.exp(-x / 2)), lambda x: mp.log(1 - mp.exp(-x / 2)), (1e-20, 1e-5, 3.0, 100.0, 1400.0)
    ),
    "log logistic": each(lambda x: sc.log(x / (1 + x)), lambda x: mp.log(x / (1 + x)), (1e-20, 0.5, 1e5, 1e12)),
    "normal hazard": each(
        lambda x: sc.exp(-x * x / 2) / (0.5 * sc.erfc(x / np.sqrt(2))),
        lambda x: mp.exp(-x * x / 2) / (mp.erfc(x / mp.sqrt(2)) / 2),
        (50.0, 8.0, 0.5, -3.0),
        ulps=128,
    ),
    "normal hazard far below 0": each(
        lambda x: sc.exp(-x * x / 2) / (0.5 * sc.erfc(x / np.sqrt(2))),
        lambda x: mp.exp(-x * x / 2) / (mp.erfc(x / mp.sqrt(2)) / 2),
        (-6.0, -12.0, -14.0, -38.5, -60.0, -1000.0),
        orders=2,
        ulps=1024,
    ),
    "logistic function by tanh": each(
        lambda x: (np.tanh(x / 2) + 1) / 2, lambda x: 1 / (1 + mp.exp(-x)), (-80.0, -20.0, -1e-5, 0.5, 20.0), ulps=64
    ),
    "cross entropy of a logistic function by tanh": each(
        lambda x: -0.3 * sc.log((1 + np.tanh(x / 2)) / 2) - 0.7 * sc.log(1 - (1 + np.tanh(x / 2)) / 2),
        lambda x: mp.mpf("0.3") * _softplus(-x) + mp.mpf("0.7") * _softplus(x),
        (-1000.0, -80.0, -38.0, 0.5, 20.0, 1000.0),
        ulps=64,
    ),
    "Langevin function": each(
        lambda x: sc.cosh(x) / sc.sinh(x) - 1 / x, lambda x: mp.coth(x) - 1 / x, (-1000.0, 5.0, 800.0), ulps=64
    ),
    "deviation from the log of a variance": each(
        lambda x: sc.sqrt(sc.exp(x)), lambda x: mp.exp(x / 2), (-1000.0, -110.0, -3.0, 1.0, 120.0), ulps=256
    ),
    "log of a normal hazard": each(
        lambda x: sc.log(sc.exp(-x * x / 2) / sc.erfc(x / np.sqrt(2))),
        lambda x: -x * x / 2 - mp.log(mp.erfc(x / mp.sqrt(2))),
        (3.0, -6.0, -12.0, -14.0, -38.5, -60.0, -1000.0),
        orders=2,
        ulps=1024,
    ),
    "log of a normal tail": each(
        lambda x: sc.log(1 - 0.5 * (1 + sc.erf(x / np.sqrt(2)))),
        lambda x: mp.log(mp.erfc(x / mp.sqrt(2)) / 2),
        (50.0, 8.0, 0.5, 1000.0),
        ulps=64,
    ),
    "erf(x) - erf(y)": each(
        lambda x, y: sc.erf(x) - sc.erf(y),
        lambda x, y: mp.erf(x) - mp.erf(y),
        [(8.0, 7.0), (-7.0, -8.0), (0.5, -0.5)],
        ulps=512,
    ),
    "erfc(x) * exp(x*x)": each(
        lambda x: sc.erfc(x) * sc.exp(x * x), lambda x: mp.erfc(x) * mp.exp(x * x), (50.0, 8.0, 0.5, -2.0), ulps=256
    ),
    # --- losses
    "focal loss": each(
        lambda x: (lambda p: -((1 - p) ** 2) * sc.log(p))(SIG(x)),
        lambda x: _expit(-x) ** 2 * _softplus(-x),
        (1000.0, -1000.0, 0.5, 30.0),
    ),
    "cross-entropy of two by probabilities": each(
        lambda x, y: (lambda p: -(y * sc.log(p) + (1 - y) * sc.log(1 - p)))(SIG(x)),
        lambda x, y: y * _softplus(-x) + (1 - y) * _softplus(x),
        [(1000.0, 0.25), (-1000.0, 0.25), (0.5, 1.0), (100.0, 0.0)],
    ),
    "soft margin": each(
        lambda x, y: sc.log(1 + sc.exp(-y * x)),
        lambda x, y: _softplus(-y * x),
        [(1000.0, 1.0), (1000.0, -1.0), (0.5, 1.0)],
    ),
    "pseudo-Huber": each(
        lambda x: 4 * (sc.sqrt(1 + (x / 2) ** 2) - 1),
        lambda x: 4 * (mp.sqrt(1 + (x / 2) ** 2) - 1),
        (1e-7, 1e200, 1.5, 1e25),
    ),
    "log cosh loss": each(
        lambda x: sc.log((sc.exp(x) + sc.exp(-x)) / 2), lambda x: mp.log(mp.cosh(x)), (1000.0, -100.0, 0.5)
    ),
    "Geman-McClure": each(lambda x: x**2 / (2 + x**2), lambda x: x * x / (2 + x * x), (1e200, 0.5, 1e-9, 1e25)),
    "Bernoulli entropy of a logit": each(
        lambda x: (lambda p: -p * sc.log(p) - (1 - p) * sc.log(1 - p))(SIG(x)),
        lambda x: _expit(x) * _softplus(-x) + _expit(-x) * _softplus(x),
        (1000.0, -1000.0, 0.5, 30.0),
    ),
    "Bradley-Terry": each(
        lambda x, y: sc.log(sc.exp(x) / (sc.exp(x) + sc.exp(y))), lambda x, y: -_softplus(y - x), PAIRS
    ),
    "logistic growth": each(lambda t: 10 / (1 + 9 * sc.exp(-t)), lambda t: 10 / (1 + 9 * mp.exp(-t)), FAR, ulps=64),
    "Gompertz": each(
        lambda t: sc.exp(-3 * sc.exp(-t)), lambda t: mp.exp(-3 * mp.exp(-t)), (1000.0, 0.5, -1000.0, -3.0), ulps=128
    ),
    "Planck": each(lambda x: x**3 / (sc.exp(x) - 1), lambda x: x**3 / mp.expm1(x), (1000.0, 3.0, 1e-5, 100.0), ulps=32),
    "Fermi": each(
        lambda e, t: 1 / (sc.exp((e - 1) / t) + 1),
        lambda e, t: 1 / (mp.exp((e - 1) / t) + 1),
        [(2.0, 1e-3), (0.5, 1e-3), (1.5, 1.0)],
        ulps=128,
    ),
    "Lennard-Jones": each(
        lambda r: 4 * ((1 / r) ** 12 - (1 / r) ** 6), lambda r: 4 * (r**-12 - r**-6), (0.9, 1.5, 10.0), ulps=64
    ),
    "Morse": each(lambda r: (1 - sc.exp(-(r - 1))) ** 2, lambda r: (1 - mp.exp(-(r - 1))) ** 2, (1.0000001, 0.5, 10.0)),
    "compound interest": each(
        lambda r: (1 + r / 365) ** 3650, lambda r: (1 + r / 365) ** 3650, (0.01, 0.05, 0.5), ulps=8000
    ),
    "annuity": each(lambda r: (1 - (1 + r) ** -30) / r, lambda r: (1 - (1 + r) ** -30) / r, (1e-6, 1e-3, 0.05), 0),
    "Box-Cox near 0": each(
        lambda x: (x**1e-5 - 1) / 1e-5, lambda x: (x ** mp.mpf(1e-5) - 1) / mp.mpf(1e-5), (3.0, 0.5, 100.0), 1, 64
    ),
}

ROWS_AT = ([1000.0, 999.0, 990.0], [-1000.0, -1001.0, -1004.0], [0.5, -1.0, 2.0], [100.0, 99.0, 0.0])
LENGTHS = ([3.0, 4.0, 12.0], [1e200, 1e200, 1e190], [1e-160, 1e-160, 1e-170], [1e25, -1e25, 1.0], [1e-25, 2e-25, 0.0])
NEAR = ([1e6, 1e6 + 1, 1e6 + 2], [1.0, 2.0, 4.0], [1e-5, 2e-5, 4e-5])
POSITIVE = ([0.5, 2.0, 0.125], [1e-200, 1e-150, 3.0], [1e200, 1e150, 2.0], [1e-25, 1e-30, 1.0], [1e25, 1e30, 1.0])
W = [0.1, 2.0, 3.0]
SIGNED = [-0.5, 2.0, 3.0]
FAINT = [1e-20, 0.0, 3e-21]


def row(form: Any, true: Any, points: Any = ROWS_AT, orders: int = 1, ulps: float = 16) -> Probe:
    return Probe(form, true, points, orders, ulps)


def _sum(xs):
    return mp.fsum(xs)


def _mean(xs):
    return mp.fsum(xs) / len(xs)


def _length(xs):
    return mp.sqrt(mp.fsum(x * x for x in xs))


def _std(xs, less=0):
    m = _mean(xs)
    return mp.sqrt(mp.fsum((x - m) ** 2 for x in xs) / (len(xs) - less))


def _softmax(xs):
    top = _lse(xs)
    return [mp.exp(x - top) for x in xs]


def _weights(x, w=W):
    return sc.array(w, x.dtype)


def _running(xs):
    return [_lse(xs[: k + 1]) for k in range(len(xs))]


ROWS: dict[str, Probe] = {
    "log(sum(w*exp(x)))": row(
        lambda x: sc.log(sc.sum(_weights(x) * sc.exp(x))),
        lambda xs: mp.log(_sum(mp.mpf(float(w)) * mp.exp(x) for w, x in zip(W, xs))),
    ),
    "log(sum(w*exp(x))), signed": row(
        lambda x: sc.log(sc.sum(_weights(x, SIGNED) * sc.exp(x))),
        lambda xs: mp.log(_sum(w * mp.exp(x) for w, x in zip(SIGNED, xs))),
        ([1000.0, 999.5, 998.0], [0.5, 1.0, 2.0], [-1000.0, -999.0, -1000.0]),
    ),
    "log1p(sum(w*exp(x))), faint": row(
        lambda x: sc.log1p(sc.sum(_weights(x, FAINT) * sc.exp(x))),
        lambda xs: mp.log1p(_sum(mp.mpf(w) * mp.exp(x) for w, x in zip(FAINT, xs))), (*ROWS_AT, [800.0, 1.0, 0.0]),
    ),
    "log(sum(exp(x)*exp(x)))": row(
        lambda x: sc.log(sc.sum(sc.exp(x) * sc.exp(x))), lambda xs: _lse([2 * x for x in xs])
    ),
    "log(sum(exp(x)**2))": row(lambda x: sc.log(sc.sum(sc.exp(x) ** 2)), lambda xs: _lse([2 * x for x in xs])),
    "log(sum(exp(x)**3))": row(lambda x: sc.log(sc.sum(sc.exp(x) ** 3)), lambda xs: _lse([3 * x for x in xs])),
    "log(sum(sqrt(exp(x))))": row(lambda x: sc.log(sc.sum(sc.sqrt(sc.exp(x)))), lambda xs: _lse([x / 2 for x in xs])),
    "log(sum(1/exp(x)))": row(lambda x: sc.log(sc.sum(1 / sc.exp(x))), lambda xs: _lse([-x for x in xs]), ROWS_AT[:3]),
    "log(sum(exp(x)/2))": row(lambda x: sc.log(sc.sum(sc.exp(x) / 2)), lambda xs: _lse(xs) - mp.log(2)),
    "log(1 + sum(exp(x)))": row(lambda x: sc.log(1 + sc.sum(sc.exp(x))), lambda xs: _lse([0, *xs])),
    "log(1e-3 + sum(exp(x)))": row(
        lambda x: sc.log(0.5 + sc.sum(sc.exp(x))), lambda xs: mp.log(0.5 + mp.exp(_lse(xs)))
    ),
    "log(1 + mean(exp(x)))": row(
        lambda x: sc.log(1 + sc.mean(sc.exp(x))), lambda xs: mp.log(1 + _mean([mp.exp(x) for x in xs]))
    ),
    "log(1 + w@exp(x))": row(
        lambda x: sc.log(1 + _weights(x) @ sc.exp(x)),
        lambda xs: mp.log(1 + _sum(mp.mpf(float(w)) * mp.exp(x) for w, x in zip(W, xs))),
    ),
    "log(mean(exp(x))) - mean(x)": row(
        lambda x: sc.log(sc.mean(sc.exp(x))) - sc.mean(x), lambda xs: _lse(xs) - mp.log(3) - _mean(xs), ulps=512
    ),
    "log(mean(exp(-x)))": row(lambda x: sc.log(sc.mean(sc.exp(-x))), lambda xs: _lse([-x for x in xs]) - mp.log(3)),
    "-log(mean(exp(-5x)))/5": row(
        lambda x: -sc.log(sc.mean(sc.exp(-5 * x))) / 5, lambda xs: -(_lse([-5 * x for x in xs]) - mp.log(3)) / 5
    ),
    "log(sum(exp(x - 1)))": row(lambda x: sc.log(sc.sum(sc.exp(x - 1))), lambda xs: _lse(xs) - 1),
    "log(sum(2**x))": row(
        lambda x: sc.log(sc.sum(2.0**x)),
        lambda xs: _lse([x * mp.log(2) for x in xs]),
        (*ROWS_AT, [2000.0, 1999.0, 1.0]),
        ulps=512,
    ),
    "log(sum(exp(x))) - log(sum(exp(2x)))": row(
        lambda x: 2 * sc.log(sc.sum(sc.exp(x))) - sc.log(sc.sum(sc.exp(2 * x))),
        lambda xs: 2 * _lse(xs) - _lse([2 * x for x in xs]),
        ulps=16000,
    ),
    "sum(exp(x))**2 / sum(exp(x)**2)": row(
        lambda x: sc.sum(sc.exp(x)) ** 2 / sc.sum(sc.exp(x) ** 2),
        lambda xs: mp.exp(2 * _lse(xs) - _lse([2 * x for x in xs])),
        ulps=8000,
    ),
    "log(sum(exp(x)) / (1 + sum(exp(x))))": row(
        lambda x: (lambda s: sc.log(s / (1 + s)))(sc.sum(sc.exp(x))), lambda xs: -_softplus(-_lse(xs))
    ),
    "log(sum(sigmoid(x)))": row(lambda x: sc.log(sc.sum(SIG(x))), lambda xs: mp.log(_sum(map(_expit, xs)))),
    "log(cumsum(exp(x)))": row(
        lambda x: sc.log(sc.cumsum(sc.exp(x))),
        _running,
        (*ROWS_AT, [-1000.0, 0.0, 1000.0], [1000.0, 0.0, -1000.0]),
        ulps=1024,
    ),
    "log(cumprod(exp(x)))": row(
        lambda x: sc.log(sc.cumprod(sc.exp(x))), lambda xs: [_sum(xs[: k + 1]) for k in range(3)]
    ),
    "log(cumsum(w*exp(x)))": row(
        lambda x: sc.log(sc.cumsum(_weights(x) * sc.exp(x))),
        lambda xs: _running([x + mp.log(mp.mpf(float(w))) for w, x in zip(W, xs)]),
        ulps=1024,
    ),
    "exp(x)/cumsum(exp(x))": row(
        lambda x: sc.exp(x) / sc.cumsum(sc.exp(x)),
        lambda xs: [mp.exp(x - t) for x, t in zip(xs, _running(xs))],
        ulps=16000,
    ),
    "soft maximum of differences": row(
        lambda x: sc.log(sc.exp(x[1:] - x[:-1]).sum()),
        lambda xs: _lse([b - a for a, b in itertools.pairwise(xs)]),
        ([1000.0, -500.0, 900.0], [0.5, -1.0, 2.0]),
    ),
    # --- softmax and attention
    "softmax with a zero logit": row(
        lambda x: sc.exp(x) / (1 + sc.sum(sc.exp(x))), lambda xs: [mp.exp(x - _lse([0, *xs])) for x in xs], ulps=2048
    ),
    "softmax over eps": row(
        lambda x: sc.exp(x) / (sc.sum(sc.exp(x)) + 1e-3),
        lambda xs: [mp.exp(x - _lse([mp.log(mp.mpf(1e-3)), *xs])) for x in xs],
        ([1000.0, 999.0, 990.0], [0.5, -1.0, 2.0], [100.0, 99.0, 0.0]),
        ulps=8000,
    ),
    "weighted softmax": row(
        lambda x: (lambda e: e / sc.sum(e))(_weights(x) * sc.exp(x)),
        lambda xs: _softmax([x + mp.log(mp.mpf(float(w))) for w, x in zip(W, xs)]),
        ulps=64,
    ),
    "masked softmax": row(
        lambda x: (lambda e: e / sc.sum(e))(_weights(x, [1.0, 0.0, 1.0]) * sc.exp(x)),
        lambda xs: (lambda p: [p[0], mp.mpf(0), p[1]])(_softmax([xs[0], xs[2]])),
        ([1000.0, 5000.0, 999.0], [-1000.0, -1001.0, -1001.5], [0.5, -1.0, 2.0]),
        ulps=64,
    ),
    "mean under a softmax": row(
        lambda x: sc.sum(sc.exp(x) * _weights(x)) / sc.sum(sc.exp(x)),
        lambda xs: _sum(p * mp.mpf(float(w)) for p, w in zip(_softmax(xs), W)),
    ),
    "mean under a softmax, as a product": row(
        lambda x: sc.exp(x) @ _weights(x) / sc.exp(x).sum(),
        lambda xs: _sum(p * mp.mpf(float(w)) for p, w in zip(_softmax(xs), W)),
    ),
    "softmax of two temperatures": row(
        lambda x: sc.exp(x / 0.1) / sc.sum(sc.exp(x / 0.1)),
        lambda xs: _softmax([x / mp.mpf(0.1) for x in xs]),
        ROWS_AT[:2],
        ulps=16000,
    ),
    "soft sign of a softmax": row(
        lambda x: (lambda p: p / (1 - p))(sc.special.softmax(x)),
        lambda xs: [p / (1 - p) for p in _softmax(xs)],
        ([0.5, -1.0, 2.0], [5.0, 4.0, 3.0]),
        ulps=64,
    ),
    "log(1 - softmax)": row(
        lambda x: sc.log(1 - sc.special.softmax(x)),
        lambda xs: [mp.log(1 - p) for p in _softmax(xs)],
        ([0.5, -1.0, 2.0], [60.0, 1.0, 0.0], [5.0, 4.0, 3.0]),
        ulps=64,
    ),
    "log(softmax) by hand, shifted": row(
        lambda x: (lambda z: z - sc.log(sc.sum(sc.exp(z))))(x - sc.max(x)), lambda xs: [x - _lse(xs) for x in xs]
    ),
    "entropy": row(
        lambda x: (lambda p: -sc.sum(p * sc.log(p)))(sc.exp(x) / sc.sum(sc.exp(x))),
        lambda xs: -_sum(p * (x - _lse(xs)) for p, x in zip(_softmax(xs), xs)),
        ROWS_AT[:3],
    ),
    "KL divergence": row(
        lambda x: (lambda p, q: sc.sum(p * (sc.log(p) - sc.log(q))))(
            sc.special.softmax(x), sc.special.softmax(_weights(x))
        ),
        lambda xs: _sum(p * (mp.log(p) - q) for p, q in zip(_softmax(xs), _logsoft(W))),
        ROWS_AT[:3],
    ),
    "KL divergence by a quotient": row(
        lambda x: (lambda p, q: sc.sum(p * sc.log(p / q)))(sc.special.softmax(x), sc.special.softmax(_weights(x))),
        lambda xs: _sum(p * (mp.log(p) - q) for p, q in zip(_softmax(xs), _logsoft(W))),
        ROWS_AT[:3],
    ),
    "smoothed cross-entropy": row(
        lambda x: -sc.sum(_weights(x, [0.05, 0.9, 0.05]) * sc.log(sc.special.softmax(x))),
        lambda xs: -_sum(mp.mpf(w) * (x - _lse(xs)) for w, x in zip([0.05, 0.9, 0.05], xs)),
    ),
    "Boltzmann energy": row(
        lambda x: (lambda e: sc.sum(x * e) / sc.sum(e))(sc.exp(-x)),
        lambda xs: _sum(x * p for x, p in zip(xs, _softmax([-x for x in xs]))),
        ulps=2048,
    ),
    "entropy of a density by sums": row(
        lambda x: (lambda e: sc.log(sc.sum(e)) - sc.sum(x * e) / sc.sum(e))(sc.exp(x)),
        lambda xs: -_sum(p * (x - _lse(xs)) for p, x in zip(_softmax(xs), xs)),
        ([1000.0, 999.0, 998.0], [0.5, -1.0, 2.0]),
        ulps=16000,
    ),
    "noisy or": row(
        lambda x: 1 - sc.prod(1 - x),
        lambda xs: 1 - (1 - xs[0]) * (1 - xs[1]) * (1 - xs[2]),
        ([0.5, 0.25, 0.125], [1e-3, 0.5, 0.1]),
        ulps=64,
    ),
    # --- lengths, means and deviations
    "sqrt(mean(x*x))": row(
        lambda x: sc.sqrt(sc.mean(x * x)),
        lambda xs: _length(xs) / mp.sqrt(3),
        ([3.0, 4.0, 12.0], [1e25, -1e20, 1.0], [1e-12, 1e-15, 1.0]),
    ),
    "sqrt(mean(x*x)), far": row(lambda x: sc.sqrt(sc.mean(x * x)), lambda xs: _length(xs) / mp.sqrt(3), LENGTHS),
    "sqrt(mean(x**2))": row(lambda x: sc.sqrt(sc.mean(x**2)), lambda xs: _length(xs) / mp.sqrt(3), LENGTHS),
    "mean(x*x)**0.5": row(lambda x: sc.mean(x * x) ** 0.5, lambda xs: _length(xs) / mp.sqrt(3), LENGTHS),
    "sum(x*x)**0.5": row(lambda x: sc.sum(x * x) ** 0.5, _length, LENGTHS),
    "sqrt(sum(abs(x)**2))": row(lambda x: sc.sqrt(sc.sum(abs(x) ** 2)), _length, LENGTHS),
    "sqrt(sum(square(x)))": row(lambda x: sc.sqrt(sc.sum(sc.square(x))), _length, LENGTHS),
    "sqrt(2*sum(x*x))": row(lambda x: sc.sqrt(2 * sc.sum(x * x)), lambda xs: mp.sqrt(2) * _length(xs), LENGTHS),
    "sqrt(sum(x*x)/2)": row(lambda x: sc.sqrt(sc.sum(x * x) / 2), lambda xs: _length(xs) / mp.sqrt(2), LENGTHS),
    "sqrt(x@x/3)": row(lambda x: sc.sqrt(x @ x / 3), lambda xs: _length(xs) / mp.sqrt(3), LENGTHS),
    "sqrt(1 + sum(x*x))": row(lambda x: sc.sqrt(1 + sc.sum(x * x)), lambda xs: _length([1, *xs]), LENGTHS),
    "log(sum(x*x))": row(lambda x: sc.log(sc.sum(x * x)), lambda xs: 2 * mp.log(_length(xs)), LENGTHS),
    "log(mean(x*x))": row(lambda x: sc.log(sc.mean(x * x)), lambda xs: 2 * mp.log(_length(xs)) - mp.log(3), LENGTHS),
    "log(sqrt(sum(x*x)))": row(lambda x: sc.log(sc.sqrt(sc.sum(x * x))), lambda xs: mp.log(_length(xs)), LENGTHS),
    "1/sqrt(sum(x*x))": row(
        lambda x: 1 / sc.sqrt(sc.sum(x * x)), lambda xs: 1 / _length(xs), LENGTHS[:2] + LENGTHS[3:]
    ),
    "x / sqrt(mean(x*x))": row(
        lambda x: x / sc.sqrt(sc.mean(x * x)),
        lambda xs: [x * mp.sqrt(3) / _length(xs) for x in xs],
        LENGTHS[:1] + LENGTHS[3:],
        0,
    ),
    "x / sqrt(mean(x*x) + eps)": row(
        lambda x: x / sc.sqrt(sc.mean(x * x) + 1e-6),
        lambda xs: [x / mp.sqrt(_mean([y * y for y in xs]) + mp.mpf(1e-6)) for x in xs],
        ([3.0, 4.0, 12.0], [1e-3, 2e-3, 0.0], [0.0, 0.0, 0.0]),
    ),
    "(sum(abs(x)**3))**(1/3)": row(
        lambda x: sc.sum(abs(x) ** 3) ** (1 / 3),
        lambda xs: mp.cbrt(_sum(abs(x) ** 3 for x in xs)),
        LENGTHS[:2] + LENGTHS[3:4],
    ),
    "cosine similarity": row(
        lambda x: x @ _weights(x) / (sc.sqrt(x @ x) * sc.sqrt(_weights(x) @ _weights(x))),
        lambda xs: _sum(x * mp.mpf(float(w)) for x, w in zip(xs, W)) / (_length(xs) * _length(W)),
        LENGTHS,
    ),
    "distance": row(
        lambda x: sc.sqrt(sc.sum((x - _weights(x)) ** 2)),
        lambda xs: _length([x - mp.mpf(float(w)) for x, w in zip(xs, W)]),
        LENGTHS[:2] + LENGTHS[3:4],
    ),
    "sqrt(var(x))": row(lambda x: sc.sqrt(sc.var(x)), _std, NEAR),
    "sqrt(var(x, ddof=1))": row(lambda x: sc.sqrt(sc.var(x, ddof=1)), lambda xs: _std(xs, 1), NEAR),
    "sqrt(mean((x - mean(x))**2))": row(lambda x: sc.sqrt(sc.mean((x - sc.mean(x)) ** 2)), _std, NEAR),
    "sqrt(mean(x*x) - mean(x)**2)": row(lambda x: sc.sqrt(sc.mean(x * x) - sc.mean(x) ** 2), _std, NEAR),
    "log(var(x))": row(lambda x: sc.log(sc.var(x)), lambda xs: 2 * mp.log(_std(xs)), NEAR),
    "std(x) / mean(x)": row(lambda x: sc.std(x) / sc.mean(x), lambda xs: _std(xs) / _mean(xs), NEAR),
    "layer norm": row(
        lambda x: (x - sc.mean(x)) / sc.sqrt(sc.var(x) + 1e-5),
        lambda xs: [(x - _mean(xs)) / mp.sqrt(_std(xs) ** 2 + mp.mpf(1e-5)) for x in xs],
        ([1.0, 2.0, 4.0], [10.0, 20.0, 15.0], [2.0, 2.0, 2.0]),
        ulps=64,
    ),
    # --- products and determinants
    "log(prod(x))": row(lambda x: sc.log(sc.prod(x)), lambda xs: _sum(map(mp.log, xs)), POSITIVE),
    "prod(x)**(1/n)": row(
        lambda x: sc.prod(x) ** (1 / 3), lambda xs: mp.exp(_sum(map(mp.log, xs)) / 3), POSITIVE[:1], ulps=64
    ),
    "exp(mean(log(x)))": row(
        lambda x: sc.exp(sc.mean(sc.log(x))),
        lambda xs: mp.exp(_sum(map(mp.log, xs)) / 3),
        POSITIVE[:2] + POSITIVE[3:],
        ulps=1024,
    ),
    "log(cumprod(x))": row(
        lambda x: sc.log(sc.cumprod(x)), lambda xs: [_sum(map(mp.log, xs[: k + 1])) for k in range(3)], POSITIVE
    ),
    "harmonic mean": row(
        lambda x: 3 / sc.sum(1 / x), lambda xs: 3 / _sum(1 / x for x in xs), POSITIVE[:1] + POSITIVE[3:]
    ),
    "log(det(diag(x)))": row(lambda x: sc.log(sc.linalg.det(sc.diag(x))), lambda xs: _sum(map(mp.log, xs)), POSITIVE),
    "log(det(A))": row(
        lambda x: sc.log(sc.linalg.det(sc.diag(x) + 0.5 * sc.outer(x, x) / sc.sum(x))),
        lambda xs: _sum(map(mp.log, xs)) + mp.log(1.5),
        ([0.5, 2.0, 0.125], [1e-150, 2e-150, 3e-150], [1e150, 2e150, 3e150], [1e-20, 2e-20, 3e-20], [1e20, 2e20, 3e20]),
        ulps=256,
    ),
    "likelihood of a normal": row(
        lambda x: sc.log(sc.prod(sc.exp(-0.5 * x**2) / sc.sqrt(2 * np.pi))),
        lambda xs: _sum(-x * x / 2 - mp.log(2 * mp.pi) / 2 for x in xs),
        ([50.0, -40.0, 3.0], [0.5, -1.0, 2.0]),
    ),
    "likelihood of a coin": row(
        lambda x: sc.log(sc.prod(SIG(x))),
        lambda xs: -_sum(_softplus(-x) for x in xs),
        ([-500.0, -400.0, 3.0], [0.5, -1.0, 2.0]),
    ),
    "Dirichlet": row(
        lambda x: sc.log(sc.prod(x ** _weights(x))),
        lambda xs: _sum(mp.mpf(float(w)) * mp.log(x) for w, x in zip(W, xs)),
        POSITIVE,
    ),
}


def _logsoft(xs):
    top = _lse(xs)
    return [mp.mpf(x) - top for x in xs]


#: A form, a point, the value and the gradient (of the sum of the results) there.
EDGE: dict[str, tuple[Any, Any, Any, Any]] = {
    "sqrt(mean(x*x)) of zeros": (lambda x: sc.sqrt(sc.mean(x * x)), [0.0, 0.0], 0.0, [0.0, 0.0]),
    "sqrt(mean(x**2, axis)) of zeros": (
        lambda x: sc.sqrt(sc.mean(x**2, axis=1)),
        [[0.0, 0.0], [3.0, 3.0]],
        [0.0, 3.0],
        [[0.0, 0.0], [0.5, 0.5]],
    ),
    "mean(x*x)**0.5 of zeros": (lambda x: sc.mean(x * x) ** 0.5, [0.0, 0.0], 0.0, [0.0, 0.0]),
    "sqrt(2*sum(x*x)) of zeros": (lambda x: sc.sqrt(2 * sc.sum(x * x)), [0.0, 0.0], 0.0, [0.0, 0.0]),
    "sqrt(x@x/2) of zeros": (lambda x: sc.sqrt(x @ x / 2), [0.0, 0.0], 0.0, [0.0, 0.0]),
    "sqrt(sum(w*x*x)) of zeros": (
        lambda x: sc.sqrt(sc.sum(sc.array([1.0, 4.0], x.dtype) * x * x)),
        [0.0, 0.0],
        0.0,
        [0.0, 0.0],
    ),
    "sqrt(sum(x*x) + sum(y*y)) of zeros": (
        lambda x: sc.sqrt(sc.sum(x[:1] ** 2) + sc.sum(x[1:] ** 2)),
        [0.0, 0.0],
        0.0,
        [0.0, 0.0],
    ),
    "sqrt(x*x + y*y + z*z) of zeros": (
        lambda x: sc.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2),
        [0.0, 0.0, 0.0],
        0.0,
        [0.0, 0.0, 0.0],
    ),
    "sqrt(var(x)) of zeros": (lambda x: sc.sqrt(sc.var(x)), [0.0, 0.0], 0.0, [0.0, 0.0]),
    "sqrt(var(x)) of constants": (lambda x: sc.sqrt(sc.var(x)), [2.0, 2.0, 2.0], 0.0, [0.0, 0.0, 0.0]),
    "sqrt(var(x, ddof=1)) of constants": (lambda x: sc.sqrt(sc.var(x, ddof=1)), [2.0, 2.0], 0.0, [0.0, 0.0]),
    "sqrt(mean((x - mean(x))**2)) of constants": (
        lambda x: sc.sqrt(sc.mean((x - x.mean()) ** 2)),
        [2.0, 2.0],
        0.0,
        [0.0, 0.0],
    ),
    "sqrt(mean(x*x) - mean(x)**2) of constants": (
        lambda x: sc.sqrt(sc.mean(x * x) - sc.mean(x) ** 2),
        [2.0, 2.0],
        0.0,
        [0.0, 0.0],
    ),
    "std(x) of constants": (lambda x: sc.std(x), [2.0, 2.0], 0.0, [0.0, 0.0]),
    "distance of a point to itself": (
        lambda x: sc.sqrt(sc.sum((x - sc.array([1.0, 2.0], x.dtype)) ** 2)),
        [1.0, 2.0],
        0.0,
        [0.0, 0.0],
    ),
    "distances of all pairs": (
        lambda x: sc.sqrt(sc.sum((x[:, None] - x[None]) ** 2, axis=2)),
        [[0.0, 0.0], [3.0, 4.0]],
        [[0.0, 5.0], [5.0, 0.0]],
        [[-1.2, -1.6], [1.2, 1.6]],
    ),
    "mean distance": (
        lambda x: sc.mean(sc.sqrt(sc.mean((x[:, None] - x[None]) ** 2, axis=2))),
        [[0.0, 0.0], [1.0, 1.0]],
        0.5,
        [[-0.25, -0.25], [0.25, 0.25]],
    ),
    "(sum(abs(x)**3))**(1/3) of zeros": (lambda x: sc.sum(abs(x) ** 3) ** (1 / 3), [0.0, 0.0], 0.0, [0.0, 0.0]),
    "norm of zeros": (lambda x: sc.linalg.norm(x), [0.0, 0.0], 0.0, [0.0, 0.0]),
    "norm of order 3 of zeros": (lambda x: sc.linalg.norm(x, 3), [0.0, 0.0], 0.0, [0.0, 0.0]),
    "Frobenius norm of zeros": (lambda x: sc.linalg.norm(x), [[0.0, 0.0]], 0.0, [[0.0, 0.0]]),
    "group lasso": (
        lambda x: sc.sum(sc.sqrt(sc.sum(x**2, axis=0))),
        [[0.0, 3.0], [0.0, 4.0]],
        5.0,
        [[0.0, 0.6], [0.0, 0.8]],
    ),
    "x * sqrt(sum(x*x)) of zeros": (lambda x: x * sc.sqrt(sc.sum(x * x)), [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    "abs(x) at 0": (lambda x: abs(x), [0.0], [0.0], [0.0]),
    "sqrt(x**2) at 0": (lambda x: sc.sqrt(x**2), [0.0], [0.0], [0.0]),
    "sqrt(abs(x))**2 at 0": (lambda x: sc.sqrt(sc.sqrt(x * x) ** 2), [0.0], [0.0], [0.0]),
    "hypot(x, 0) at 0": (lambda x: sc.sqrt(x * x + (0 * x) ** 2), [0.0], [0.0], [0.0]),
    "sqrt(x*x + 0)": (lambda x: sc.sqrt(x * x + 0.0), [0.0], [0.0], [0.0]),
    "abs of a complex 0": (lambda x: abs(x + 1j * x), [0.0], [0.0], [0.0]),
    "x*sqrt(x) at 0": (lambda x: x * sc.sqrt(x), [0.0], [0.0], [0.0]),
    "x**1.5 at 0": (lambda x: x**1.5, [0.0], [0.0], [0.0]),
    "abs(x)**1.5 at 0": (lambda x: abs(x) ** 1.5, [0.0], [0.0], [0.0]),
    "sign(x)*sqrt(abs(x)) guarded": (
        lambda x: sc.where(x == 0, 0.0, sc.sign(x) * sc.sqrt(abs(x))),
        [0.0, 4.0],
        [0.0, 2.0],
        [0.0, 0.25],
    ),
    "x**2 * log(x) at 0": (lambda x: sc.where(x > 0, x**2 * sc.log(x), 0.0), [0.0], [0.0], [0.0]),
    "x*log(x) guarded": (lambda x: sc.where(x > 0, x * sc.log(x), 0.0), [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]),
    "entropy with zeros": (lambda p: -sc.sum(sc.where(p > 0, p * sc.log(p), 0.0)), [0.0, 1.0], 0.0, [0.0, -1.0]),
    "KL with zeros": (lambda p: sc.sum(sc.where(p > 0, p * sc.log(p / 0.5), 0.0)), [0.0, 0.5], 0.0, [0.0, 1.0]),
    "sin(x)/x guarded": (lambda x: sc.where(x == 0, 1.0, sc.sin(x) / x), [0.0], [1.0], [0.0]),
    "expm1(x)/x guarded": (lambda x: sc.where(x == 0, 1.0, sc.expm1(x) / x), [0.0], [1.0], [0.0]),
    "elu at 1000": (lambda x: sc.where(x > 0, x, sc.exp(x) - 1), [1000.0, 0.0], [1000.0, 0.0], [1.0, 1.0]),
    "softplus by where": (
        lambda x: sc.where(x > 20, x, sc.log(1 + sc.exp(x))),
        [1000.0, -1000.0],
        [1000.0, 0.0],
        [1.0, 0.0],
    ),
    "sigmoid by where": (
        lambda x: sc.where(x > 0, 1 / (1 + sc.exp(-x)), sc.exp(x) / (1 + sc.exp(x))),
        [1000.0, -1000.0],
        [1.0, 0.0],
        [0.0, 0.0],
    ),
    "huber by where": (
        lambda x: sc.where(abs(x) < 1, 0.5 * x**2, abs(x) - 0.5),
        [1e200, 0.5, -3.0],
        [1e200, 0.125, 2.5],
        [1.0, 0.5, -1.0],
    ),
    "soft threshold": (
        lambda x: sc.sign(x) * sc.maximum(abs(x) - 1, 0.0),
        [0.0, 3.0, -3.0],
        [0.0, 2.0, -2.0],
        [0.0, 1.0, 1.0],
    ),
    "hinge": (lambda x: sc.maximum(0.0, 1 - x), [0.0, 2.0], [1.0, 0.0], [-1.0, 0.0]),
    "safe division": (lambda x: sc.where(x == 0, 0.0, 1 / x), [0.0, 2.0], [0.0, 0.5], [0.0, -0.25]),
    "x / norm, guarded": (
        lambda x: (lambda n: sc.where(n > 0, x / n, 0.0))(sc.sqrt(sc.sum(x * x))),
        [0.0, 0.0],
        [0.0, 0.0],
        [0.0, 0.0],
    ),
    "x / (norm + eps)": (lambda x: x / (sc.sqrt(sc.sum(x * x)) + 1e-3), [0.0, 0.0], [0.0, 0.0], [1000.0, 1000.0]),
    "x / maximum(norm, eps)": (
        lambda x: x / sc.maximum(sc.sqrt(sc.sum(x * x)), 1e-3),
        [0.0, 0.0],
        [0.0, 0.0],
        [1000.0, 1000.0],
    ),
    "cosine similarity with eps": (
        lambda x: x @ sc.array([3.0, 4.0], x.dtype) / (sc.sqrt(x @ x) * 5 + 0.5),
        [0.0, 0.0],
        0.0,
        [6.0, 8.0],
    ),
    "layer norm of a constant row": (lambda x: ((x - x.mean()) / (x.std() + 0.5)).sum(), [2.0, 2.0], 0.0, [0.0, 0.0]),
    "batch norm with sqrt(var) of constants": (
        lambda x: (x - x.mean()) / (sc.sqrt(x.var()) + 0.5),
        [2.0, 2.0],
        [0.0, 0.0],
        [0.0, 0.0],
    ),
    "attention with a masked row": (
        lambda x: sc.where(
            np.array([True, False])[:, None],
            sc.softmax(sc.where(np.array([[True, False], [False, False]]), x, -INF), axis=1),
            0.0,
        ),
        [[1.0, 2.0], [3.0, 4.0]],
        [[1.0, 0.0], [0.0, 0.0]],
        [[0.0, 0.0], [0.0, 0.0]],
    ),
    "log of a masked sum": (
        lambda x: sc.log(sc.sum(sc.exp(sc.where(np.array([True, False]), x, -INF)))),
        [1000.0, 5000.0],
        1000.0,
        [1.0, 0.0],
    ),
    "log(sum(mask*exp(x)))": (
        lambda x: sc.log(sc.sum(np.array([1.0, 0.0]) * sc.exp(x))),
        [1000.0, 5000.0],
        1000.0,
        [1.0, 0.0],
    ),
    "log(sum(w*exp(x))), negative": (
        lambda x: sc.log(sc.sum(np.array([1.0, -2.0]) * sc.exp(x))),
        [1.0, 1.0],
        np.nan,
        None,
    ),
    "log(sum(w*exp(x))), infinite": (lambda x: sc.log(sc.sum(np.array([1.0, INF]) * sc.exp(x))), [1.0, 1.0], INF, None),
    "log(sum(w*exp(x))), nan": (
        lambda x: sc.log(sc.sum(np.array([1.0, np.nan]) * sc.exp(x))),
        [1.0, 1.0],
        np.nan,
        None,
    ),
    "log(sum(exp(x))) of -inf": (lambda x: sc.log(sc.sum(sc.exp(x))), [-INF, -INF], -INF, [0.0, 0.0]),
    "log(1 + sum(exp(x))) of -inf": (lambda x: sc.log(1 + sc.sum(sc.exp(x))), [-INF, -INF], 0.0, [0.0, 0.0]),
    "log(cumsum(exp(x))) with -inf": (lambda x: sc.log(sc.cumsum(sc.exp(x))), [-INF, 1.0], [-INF, 1.0], [0.0, 1.0]),
    "log(sum(w*exp(x))) with a weight of 0": (
        lambda x: sc.log(sc.sum(x[:2] * sc.exp(x[2:]))),
        [0.0, 2.0, 1000.0, 1000.0],
        1000 + np.log(2),
        [0.5, 0.5, 0.0, 1.0],
    ),
    "weighted softmax with a weight of 0": (
        lambda x: (lambda p: ((p / p.sum()) * np.array([0.0, 1.0], x.dtype)).sum())(x[:2] * sc.exp(x[2:])),
        [0.0, 2.0, 1000.0, 1000.0],
        1.0,
        [-0.5, 0.0, 0.0, 0.0],
    ),
    "mean under a softmax with a value of 0": (
        lambda x: (lambda e: (x[:2] * e).sum() / e.sum())(sc.exp(x[2:])),
        [0.0, 2.0, 1000.0, 1000.0],
        1.0,
        [0.5, 0.5, -0.5, 0.5],
    ),
    "max of equals": (lambda x: sc.max(x), [1.0, 1.0], 1.0, [0.5, 0.5]),
    "sqrt(maximum(x, 0)) at 0": (lambda x: sc.sqrt(sc.maximum(x, 0.0)), [0.0, -1.0], [0.0, 0.0], [0.0, 0.0]),
    "sqrt(relu(1 - x*x)) at 1": (lambda x: sc.sqrt(sc.maximum(1 - x * x, 0.0)), [1.0, 2.0], [0.0, 0.0], [0.0, 0.0]),
    "logsumexp of one": (lambda x: sc.log(sc.sum(sc.exp(x))), [1000.0], 1000.0, [1.0]),
    "prod with a zero": (lambda x: sc.prod(x), [0.0, 2.0, 3.0], 0.0, [6.0, 0.0, 0.0]),
    "x**0 at 0": (lambda x: x**0.0, [0.0], [1.0], [0.0]),
    "arctan2(y, x) at 0": (lambda x: sc.arctan2(x[:1], x[1:]), [0.0, 0.0], [0.0], [0.0, 0.0]),
}


def _because(reason: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


#: What no rule repairs, and why.
BEYOND: dict[str, str] = {
    **_because(
        "the squares of what is summed overflow or vanish; a scaled sum costs another pass over memory",
        "sqrt(1 + sum(x*x))",
        "(sum(abs(x)**3))**(1/3)",
        "sqrt(x*x + y*y + z*z)",
    ),
    **_because(
        "the product overflows; two logs for one would cost ordinary programs twice as much",
        "log(x * y)",
        "log(x / y)",
        "log(x**2 / y**2)",
    ),
    **_because(
        "a form that does not cancel costs ordinary programs more",
        "sigmoid(x) - sigmoid(y)",
        "exp(x) - exp(y)",
        "erf(x) - erf(y)",
        "sqrt(x) - sqrt(y)",
        "x / (1 + x*x)",
        "log(1 - softmax)",
    ),
    **_because(
        "no rule yet",
        "(x + 1)**2 - x**2",
        "2**x / 3**x",
        "exp(x)**y / exp(y)**x",
    ),
    **_because(
        "a derivative that is very small, or of what is, cancels or vanishes on the way",
        "exp(x) * log(1 + exp(-x))",
        "x / sqrt(1 + x*x)",
        "x*x / (1 + x*x)",
        "x / (1 + |x|)",
        "Geman-McClure",
        "Gompertz",
        "normal hazard",
        "1/sqrt(sum(x*x))",
        "harmonic mean",
        "log(det(A))",
    ),
}
