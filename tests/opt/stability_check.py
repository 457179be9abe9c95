"""The comparison of a probe with mpmath: its value and its gradient at every point, in units in the last place."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np

import symc as sc
from symc.driver.build import build
from symc.ir.reference import evaluate_function
from symc.opt import UNFUSED, optimize
from symc.tensors.callsite import caller
from tests.opt.probe_cases import Probe

#: Digits in which differences of neighbours are exact, and how near the neighbours are.
BITS, NEAR = 1400, mp.mpf(10) ** -100
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
    assert out, "no points are left"
    return out


def error(got, true, dtype, least=0) -> float:
    """The distance in units in the last place; of what is beyond the range, whether it is infinite too."""
    info = np.finfo(dtype)
    true = mp.re(true)
    if abs(true) >= mp.mpf(float(info.max)):
        return 0.0 if np.isinf(got) and np.sign(got) == mp.sign(true) else np.inf
    if not np.isfinite(got):
        return np.inf
    unit = max(max(abs(true), least) * mp.mpf(float(info.eps)), mp.mpf(float(info.tiny)))
    return float(abs(mp.mpf(float(got)) - true) / unit)


def slope(f, at, k):
    """The derivative by number k."""
    h = abs(at[k]) * NEAR if at[k] else NEAR
    low, high = ([*at[:k], at[k] + s * h, *at[k + 1 :]] for s in (-1, 1))
    return (f(high) - f(low)) / (2 * h)


def check_each(p: Probe, dtype: str) -> list[str]:
    with mp.workprec(BITS):
        points = held(p.points, dtype)
        xs = [sc.input(f"x{k}", dtype, (len(points),)) for k in range(points[0].size)]
        y = p.form(*xs)
        outputs = [y, *(sc.grad(y.sum(), xs) if p.orders else [])]
        found = results(outputs, xs, [np.array(c, dtype) for c in zip(*points, strict=True)])
        wrong = []
        for n, q in enumerate(points):
            at = [mp.mpf(float(c)) for c in q]
            slopes = [slope(lambda a: p.true(*a), at, k) for k in range(len(at))] if p.orders else []
            for what, r, true in zip(["value", *["slope"] * len(xs)], found, [p.true(*at), *slopes], strict=False):
                e = error(r[n], true, dtype, p.floor)
                if not e <= p.ulps:
                    wrong.append(f"{what} at {q}: {r[n]} is {e:.3g} ulps from {mp.nstr(mp.re(true), 17)}")
    return wrong


def _listed(p, xs):
    out = p.true(xs)
    return out if isinstance(out, list) else [out]


def check_row(p: Probe, dtype: str) -> list[str]:
    with mp.workprec(BITS):
        rows = held(p.points, dtype)
        x = sc.input("x", dtype, (rows[0].size,))
        y = p.form(x)
        weights = WEIGHTS if y.ndim else (1.0,)
        outputs = [y, *([sc.grad((y * sc.array(weights, dtype)).sum(), x)] if p.orders else [])]
        f = build(outputs, [x], None, None, (), "f", caller()).function
        ready = optimize(f, UNFUSED, strict=True).function
        wrong = []
        for r in rows:
            with np.errstate(all="ignore"):
                found = evaluate_function(ready, [r])
            at = [mp.mpf(float(c)) for c in r]
            pairs = [("value", g, t, 0) for g, t in zip(np.atleast_1d(found[0]), _listed(p, at), strict=True)]
            if p.orders:
                total = lambda a: mp.fsum(w * v for w, v in zip(weights, _listed(p, a), strict=True))
                slopes = [slope(total, at, k) for k in range(len(at))]
                pairs += [("slope", g, t, max(map(abs, slopes))) for g, t in zip(found[1], slopes, strict=True)]
            for what, got, true, least in pairs:
                e = error(got, true, dtype, least)
                if not e <= p.ulps:
                    wrong.append(f"{what} at {r}: {got} is {e:.3g} ulps from {mp.nstr(mp.re(true), 17)}")
    return wrong


def check_edge(case: Any, dtype: str) -> list[str]:
    form, point, value, gradient = case
    at = np.array(point, dtype)
    if not np.isfinite(at).all() and np.isfinite(np.array(point)).all():
        return []
    x = sc.input("x", dtype, at.shape)
    y = form(x)
    outputs = [y, *([] if gradient is None else [sc.grad(y.sum(), x)])]
    found = results(outputs, [x], [at])
    wrong = []
    for what, got, true in zip(("value", "gradient"), found, (value, gradient), strict=False):
        with np.errstate(all="ignore"):
            good = np.allclose(got, np.array(true).astype(dtype), rtol=1e-5, atol=0, equal_nan=True)
        if not good:
            wrong.append(f"{what} at {point}: {got}, not {true}")
    return wrong
