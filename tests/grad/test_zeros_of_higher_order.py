"""Derivatives up to the fourth of programs whose parts are zero at a point: a product that keeps zeros zero (``mulz``)
is differentiated as a product there. Against Taylor's coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import symc as sc

S, POINTS, ORDERS = sc.special, (0.0, 0.5, 1.0, -1.0), 4


def rows(x: Any) -> Any:
    return sc.stack([x * x, 1 + x, sc.cos(x)])


PROGRAMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "quotient": (lambda x: sc.sin(x) * sc.exp(x) / (1 + x * x), lambda x: mp.sin(x) * mp.exp(x) / (1 + x * x)),
    "product": (lambda x: x * sc.sin(x) * (1 + x), lambda x: x * mp.sin(x) * (1 + x)),
    "gauss": (lambda x: x * sc.exp(-x * x), lambda x: x * mp.exp(-x * x)),
    "root": (lambda x: sc.sqrt(1 + x * x), lambda x: mp.sqrt(1 + x * x)),
    "hypot": (lambda x: sc.hypot(x, 1.0), lambda x: mp.sqrt(1 + x * x)),
    "power": (lambda x: (1.75 + x * x) ** x, lambda x: (mp.mpf(1.75) + x * x) ** x),
    "sinc": (sc.sinc, lambda x: mp.sinc(mp.pi * x)),
    "xlogy": (lambda x: S.xlogy(x, x + 2.5), lambda x: x * mp.log(x + 2.5)),
    "xlog1py": (lambda x: S.xlog1py(x, x * x), lambda x: x * mp.log(1 + x * x)),
    "gelu": (lambda x: 0.5 * x * (1 + S.erf(x / 2**0.5)), lambda x: x * mp.ncdf(x)),
    "silu": (lambda x: x * S.expit(x), lambda x: x / (1 + mp.exp(-x))),
    "where": (lambda x: sc.where(x > -5, x * sc.cos(x) / (1 + x * x), 0.0), lambda x: x * mp.cos(x) / (1 + x * x)),
    "maximum": (lambda x: sc.maximum(x * sc.sin(x) + x, x - 9), lambda x: x * mp.sin(x) + x),
    "atan2": (lambda x: sc.arctan2(x, 1 + x * x), lambda x: mp.atan(x / (1 + x * x))),
    "logsumexp": (lambda x: S.logsumexp(rows(x), axis=0),
                  lambda x: mp.log(mp.exp(x * x) + mp.exp(1 + x) + mp.exp(mp.cos(x)))),
    "softmax": (lambda x: S.softmax(rows(x), axis=0)[1],
                lambda x: mp.exp(1 + x) / (mp.exp(x * x) + mp.exp(1 + x) + mp.exp(mp.cos(x)))),
    "prod": (lambda x: sc.prod(rows(x), axis=0), lambda x: x * x * (1 + x) * mp.cos(x)),
    "cumprod": (lambda x: sc.cumprod(rows(x), axis=0)[2], lambda x: x * x * (1 + x) * mp.cos(x)),
    "norm": (lambda x: sc.linalg.norm(rows(x), axis=0), lambda x: mp.sqrt(x**4 + (1 + x) ** 2 + mp.cos(x) ** 2)),
    "max": (lambda x: sc.max(rows(x) + sc.stack([x * 0 + 9, x, x]), axis=0), lambda x: x * x + 9),
    "sort": (lambda x: sc.sort(rows(x) * x + sc.stack([x * 0 + 9, x, x]), axis=0)[2], lambda x: x**3 + 9),
    "loop": (lambda x: sc.fori_loop(0, 3, lambda i, y: y * sc.cos(x) * x + x, x),
             lambda x: x + x * (x * mp.cos(x)) + x * (x * mp.cos(x)) ** 2 + x * (x * mp.cos(x)) ** 3),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("whole", [False, True])
def test_derivatives_at_zeros(name: str, whole: bool) -> None:
    """By a number, and by a vector, whose elements do not meet."""
    program, exact = PROGRAMS[name]
    x = sc.input("x", "float64", shape=("n",) if whole else ())
    orders = [program(x)]
    for _ in range(ORDERS):
        orders.append(sc.grad(sc.sum(orders[-1]) if whole else orders[-1], x, disconnected="zero"))
    f = sc.compile(orders[1:], [x], mode="reference")
    got = np.array(f(np.array(POINTS))).T if whole else np.array([f(p) for p in POINTS])
    with mp.workdps(40):
        series = [mp.taylor(exact, mp.mpf(p), ORDERS) for p in POINTS]
    want = [[float(c * math.factorial(n)) for n, c in enumerate(s)] for s in series]
    np.testing.assert_allclose(got, np.array(want)[:, 1:], rtol=1e-7, atol=1e-7, err_msg=name)
