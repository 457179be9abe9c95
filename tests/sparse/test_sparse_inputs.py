"""Sparse and ragged inputs of functions that are compiled without a list of inputs: one argument each."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import symc as sc

A = sp.random(5, 6, 0.4, format="csr", random_state=0)
V = np.arange(6.0)


def outputs(S, x):
    return {"product": S @ x, "scaled": S * 2, "sum": (S @ x).sum(), "elements": (S @ x)[x[:5] > 1],
            "gradient": sc.grad(((S @ x) ** 2).sum(), x)}


def close(got, want):
    got, want = (a.toarray() if sp.issparse(a) else a for a in (got, want))
    np.testing.assert_allclose(got, want)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("which", ["product", "scaled", "sum", "elements", "gradient"])
def test_a_sparse_input_that_is_found_is_one_argument(format, which):
    S, x, a = sc.sparse.input("S", format), sc.vector("x"), A.asformat(format)
    y = outputs(S, x)[which]
    want = sc.compile(y, [S, x])(a, V)
    f = sc.compile(y)
    del S, y
    given = {"S": a} if which == "scaled" else {"S": a, "x": V}
    close(f(**given), want)
    close(f(*given.values()), want)
    close(pickle.loads(pickle.dumps(f))(**given), want)
    with pytest.raises(sc.InputError, match=f"S must be a SciPy sparse matrix in format '{format}'"):
        f(**{**given, "S": A.toarray()})


def test_a_ragged_input_that_is_found_is_one_argument():
    R, b = sc.ragged.input("R", "float64"), sc.scalar("b")
    f = sc.compile([R.sum(), R * b])
    del R
    total, rows = f(R=[np.ones(3), np.ones(2)], b=3.0)
    assert total == 5 and [r.tolist() for r in rows] == [[3, 3, 3], [3, 3]]
    with pytest.raises(sc.InputError, match="missing input 'R'"):
        f(b=1.0)
