"""Formulas are right where they are in trouble, and so are their gradients: the probes of ``stability_cases``.

What no rule repairs yet is listed there, too, and is wrong indeed: a rule that mends it takes it from the list.
"""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from tests.stability_cases import BEYOND, EACH, EDGE, ROWS
from tests.stability_check import check_each, check_edge, check_row, held, results

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
