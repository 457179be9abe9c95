"""Probes: forms that users write are right where they overflow, vanish or cancel, and so are their gradients.

The cases are data, in ``probe_cases``. Each runs through the default pipeline in f32 and f64 and is compared with
mpmath in units in the last place.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import symc as sc
from symc.driver.build import build
from symc.ir.reference import evaluate_function
from symc.opt import UNFUSED, optimize
from symc.tensors.callsite import caller
from tests.opt.probe_cases import EACH, ROWS, Probe

pytestmark = pytest.mark.long

#: Digits in which exp(700) + exp(-700) and second differences of its logarithm are exact, and the step of the
#: differences: a part of the number, and of 1 beyond it.
BITS, STEP = 2400, mp.mpf(2) ** -100
WEIGHTS = (1.0, 0.5, 2.0)


def results(outputs, inputs, arrays):
    """The values of tensors by the default pipeline and the reference."""
    f = build(outputs, inputs, None, None, (), "f", caller()).function
    with np.errstate(all="ignore"):
        return evaluate_function(optimize(f, UNFUSED, strict=True).function, arrays)


def held(points, dtype):
    """The points that a dtype can hold, rounded to it."""
    out = []
    for p in points:
        numbers = np.atleast_1d(np.asarray(p, "f8"))
        with np.errstate(all="ignore"):
            rounded = numbers.astype(dtype)
        if np.isfinite(rounded).all() and ((rounded != 0) == (numbers != 0)).all():
            out.append(rounded)
    assert len(out) >= len(points) / 3, "too few points are left"
    return out


def errors(got, true, dtype, scale=0, floor=0):
    """The distance in units in the last place; of what is beyond the range, whether it is infinite too."""
    info = np.finfo(dtype)
    if abs(true) >= mp.mpf(float(info.max)):
        return 0.0 if np.isinf(got) and np.sign(got) == mp.sign(true) else np.inf
    if not np.isfinite(got):
        return np.inf
    size = max(abs(true), scale, floor)
    unit = max(size * mp.mpf(float(info.eps)), mp.mpf(float(info.smallest_subnormal)))
    return float(abs(mp.mpf(float(got)) - true) / unit)


def derivatives(f, at, orders):
    """The value at a number and up to two derivatives: central differences, which share what they evaluate. (Those of
    mpmath take two or three times the digits, and evaluate for each order again.)"""
    value, h = f(at), STEP * (min(abs(at), 1) or 1)
    if not orders:
        return [value]
    below, above = f(at - h), f(at + h)
    return [value, (above - below) / (2 * h), (above - 2 * value + below) / (h * h)][: 1 + orders]


def check_each(p: Probe, dtype: str) -> None:
    points = held(p.points, dtype)
    xs = [sc.input(f"x{k}", dtype, (len(points),)) for k in range(points[0].size)]
    y = p.form(*xs)
    outputs = [y]
    for x in xs:
        g = y
        for _ in range(p.orders):
            g = sc.grad(g.sum(), x)
            outputs.append(g)
    value, *found = results(outputs, xs, [np.array(c, dtype) for c in zip(*points, strict=True)])
    for i, q in enumerate(points):
        at = [mp.mpf(float(c)) for c in q]
        for k, c in enumerate(at):
            of_one = lambda t, at=at, k=k: p.true(*at[:k], t, *at[k + 1 :])
            rows = [value, *found[k * p.orders : (k + 1) * p.orders]]
            for n, (row, true) in enumerate(zip(rows, derivatives(of_one, c, p.orders), strict=True)):
                wrong = errors(row[i], mp.re(true), dtype, floor=p.floor if n else 0)
                assert wrong <= p.ulps, \
                    f"derivative {n} by operand {k} at {q}: {row[i]} is {wrong:.3g} ulps from {mp.nstr(true, 17)}"


def weighted(p, weights, at, k):
    """The weighted sum of the results, as a function of number k."""

    def total(t):
        return mp.fsum(w * v for w, v in zip(weights, listed(p, [*at[:k], t, *at[k + 1 :]]), strict=True))

    return total


def listed(p, xs):
    out = p.true(xs)
    return out if isinstance(out, list) else [out]


def check_row(p: Probe, dtype: str) -> None:
    for row in held(p.points, dtype):
        x = sc.input("x", dtype, (row.size,))
        y = p.form(x)
        weights = WEIGHTS if y.ndim else (1.0,)
        outputs = [y]
        if p.orders:
            outputs.append(sc.grad((y * sc.array(weights, dtype)).sum(), x))
        found = results(outputs, [x], [row])
        at = [mp.mpf(float(c)) for c in row]
        for got, true in zip(np.atleast_1d(found[0]), listed(p, at), strict=True):
            wrong = errors(got, true, dtype)
            assert wrong <= p.ulps, f"at {row}: {got} is {wrong:.3g} ulps from {mp.nstr(true, 17)}"
        for r in found[1:]:
            slopes = [derivatives(weighted(p, weights, at, k), at[k], 1)[1] for k in range(len(at))]
            scale = max(abs(s) for s in slopes)
            for got, true in zip(r, slopes, strict=True):
                wrong = errors(got, true, dtype, scale=scale)
                assert wrong <= p.ulps, f"gradient at {row}: {got} is {wrong:.3g} ulps from {mp.nstr(true, 17)}"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", EACH)
def test_each_element(name, dtype):
    with mp.workprec(BITS):
        check_each(EACH[name], dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ROWS)
def test_rows(name, dtype):
    with mp.workprec(BITS):
        check_row(ROWS[name], dtype)


COMPILED = ["log(1 + exp(x))", "log(erfc(x))", "tanh by exponentials", "log(cosh(x))", "sin(x) / x", "log(exp(x) - 1)"]


@pytest.mark.parametrize("name", COMPILED)
def test_kernels_are_as_right_as_the_reference(name):
    p = EACH[name]
    points = np.array(held(p.points, "float64"))[:, 0]
    x = sc.vector("x")
    f = sc.compile([p.form(x), sc.grad(p.form(x).sum(), x)], [x])
    value, slope = f(points)
    with mp.workprec(BITS):
        for k, at in enumerate(points):
            true = derivatives(p.true, mp.mpf(at), 1)
            for got, wanted, floor in zip((value[k], slope[k]), true, (0, p.floor), strict=True):
                wrong = errors(got, mp.re(wanted), "float64", floor=floor)
                assert wrong <= 2 * p.ulps, f"at {at}: {got} is {wrong:.3g} ulps from {mp.nstr(wanted, 17)}"


@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 4)])
def test_probes_fire_at_any_rank_and_in_loops(shape):
    at = np.full(shape, 800.0)
    x = sc.input("x", "float64", shape)
    rows = sc.input("rows", "float64", (2, *shape))
    softplus = lambda x: sc.log(1 + sc.exp(x))
    _, stacked = sc.scan(lambda c, row: (c, softplus(row)), sc.zeros(()), rows)
    found = results([softplus(x), sc.grad(softplus(x).sum(), x), stacked, sc.grad(stacked.sum(), rows)], [x, rows],
                    [at, np.stack([at, at])])  # fmt: skip
    for got, want in zip(found, (800.0, 1.0, 800.0, 1.0), strict=True):
        assert np.array_equal(got, np.full(got.shape, want))
