"""Formulas are right where they are in trouble, and so are their gradients: the probes of ``stability_cases``.

What no rule repairs yet is listed there, too, and is wrong indeed: a rule that mends it takes it from the list.
"""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from tests.opt.stability_cases import BEYOND, EACH, EDGE, ROWS
from tests.opt.stability_check import check_each, check_edge, check_row, held, results

pytestmark = pytest.mark.long

DTYPES = ("float64", "float32")
CASES = [
    pytest.param(check, table[name], name not in BEYOND, id=name)
    for check, table in ((check_each, EACH), (check_row, ROWS), (check_edge, EDGE))
    for name in table
]


@pytest.mark.parametrize(("check", "case", "holds"), CASES)
def test_value_and_gradient(check, case, holds):
    wrong = [w for dtype in DTYPES for w in check(case, dtype)]
    assert not wrong if holds else wrong, wrong or "it holds now: take it from BEYOND"


def test_what_is_beyond_is_there():
    assert set(BEYOND) <= {*EACH, *ROWS, *EDGE} and len(BEYOND) <= 0.08 * len(CASES)


def of_several():
    return [n for n, p in EACH.items() if np.size(p.points[0]) > 1 and n not in BEYOND]


@pytest.mark.parametrize("name", of_several())
def test_inputs_of_unnamed_sizes_are_no_obstacle(name):
    """That sizes are equal is known in a call alone; a gradient must be made of the stable form all the same."""
    p = EACH[name]
    points = held(p.points, "float64")
    arrays = [np.array(c) for c in zip(*points, strict=True)]
    same = [sc.input(f"x{k}", "float64", (len(points),)) for k in range(len(arrays))]
    unnamed = [sc.vector(f"x{k}") for k in range(len(arrays))]
    found = []
    for xs in (same, unnamed):
        y = p.form(*xs)
        found.append(results([y, *sc.grad(y.sum(), xs)], xs, arrays))
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-300)


def test_a_guard_stays():
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile(sc.grad(sc.log(sc.sum(x * sc.exp(y))), [x, y]), [x, y])
    with pytest.raises(sc.SymcError):
        f(np.ones(3), np.ones(2))


@pytest.mark.parametrize("name", [n for n in ROWS if n not in BEYOND])
def test_sizes_that_are_not_known_are_no_obstacle(name):
    """A rule asks how many elements there are in the same words for 3 and for n."""
    points = held(ROWS[name].points, "float64")
    found = []
    for x in (sc.input("x", "float64", (points[0].size,)), sc.vector("x")):
        y = ROWS[name].form(x)
        total = y.sum()
        found.append([results([y, sc.grad(total, x)], [x], [p]) for p in points])
    for want, got in zip(*found, strict=True):
        for w, g in zip(want, got, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9 * np.max(np.abs(w)))


@pytest.mark.parametrize("b", [[1.0, -0.5, 2.0], [-1.0, -1.0, 3.0], [1.0, 0.0, 2.0], 2.0])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_takes_weights_of_any_sign(b, keepdims):
    x = np.array([[1000.0, 999.0, 999.5], [1.0, 2.0, 3.0], [-1000.0, -1001.0, -999.0]])
    t = sc.input("x", "float64", ("n", 3))
    (found,) = results([sc.special.logsumexp(t, axis=1, b=np.array(b), keepdims=keepdims)], [t], [x])
    top = x.max(axis=1, keepdims=True)
    want = np.log(np.sum(b * np.exp(x - top), axis=1, keepdims=True)) + top
    np.testing.assert_allclose(found, want if keepdims else want[:, 0], rtol=1e-12)


def test_the_log_of_running_sums_of_exponentials():
    x = sc.input("x", shape=("n", "m"))
    a = np.array([[1000.0, -5.0, -np.inf], [2.0, 3.0, 4.0]])
    for axis in (None, 0, 1, -1):
        y = sc.logcumsumexp(x, axis=axis)
        (found,) = results([y], [x], [a])
        want = np.logaddexp.accumulate(a.ravel() if axis is None else a, axis=axis or 0)
        np.testing.assert_allclose(found, want, rtol=1e-15)
    assert results([sc.logcumsumexp(x, axis=1)], [x], [np.ones((2, 0))])[0].shape == (2, 0)
