"""Functions that join, given one array in place of a list of its rows: NumPy's results, and no list of rows."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc

SHAPES = [(5,), (4, 3), (1, 3), (3, 2, 4), (2, 3, 1, 2), (4, 0), (3, 0, 2)]
CALLS = [(np.vstack, {}), (np.hstack, {}), (np.dstack, {}), (np.column_stack, {}),
         *[(np.concatenate, {"axis": k}) for k in (None, 0, -1, 1, 2)],
         *[(np.stack, {"axis": k}) for k in (0, 1, -1, 2)],
         *[(f, {"dtype": "float32"}) for f in (np.vstack, np.hstack, np.stack)],
         (np.concatenate, {"dtype": "int64"}), (np.stack, {"dtype": "int64", "casting": "unsafe"})]


def outcome(f, *args):
    """The result, or that there is none."""
    try:
        return f(*args)
    except Exception:
        return None


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("f, keywords", CALLS)
def test_one_array_stands_for_its_rows(f, keywords, known):
    rng, given, wanted, made, called = np.random.default_rng(0), [], [], [], getattr(sc, f.__name__)
    for k, shape in enumerate(SHAPES):
        a = rng.normal(size=shape)
        x = sc.input(f"x{k}", a.dtype, shape if known else tuple(f"n{k}_{i}" for i in range(a.ndim)))
        want, found = outcome(lambda a: f(a, **keywords), a), outcome(lambda x: called(x, **keywords), x)
        assert (want is None) == (found is None)
        if found is not None:
            given.append((x, a)), wanted.append(want), made.append(found)
    if made:
        for a, b in zip(sc.compile(made, [x for x, _ in given])(*[a for _, a in given]), wanted, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["vstack", "hstack", "dstack", "column_stack", "concatenate", "stack"])
def test_no_rows_are_refused(name):
    f = getattr(sc, name)
    with pytest.raises(sc.ShapeError, match="at least 1"):
        f(sc.zeros((0, 3)))
    g = sc.compile(f(sc.input("x", "f8", ("n", 3))))
    with pytest.raises(sc.ShapeError, match=r"test_joined_rows\.py"):
        g(np.zeros((0, 3)))


def test_many_rows_take_no_pieces():
    x = sc.input("x", "f8", (3000, 2))
    for f in (sc.vstack, sc.hstack, sc.dstack, sc.column_stack, sc.concatenate, sc.stack):
        assert len(sc.compile(f(x) + 1).dump().splitlines()) < 16
