"""Helpers for tests of the front end: run a NumPy-style function on tensors and on arrays, and compare.

Tensors are evaluated by the reference evaluator, so these tests need no compiler.
"""

from __future__ import annotations

import numpy as np

from symc.inputs import input as sc_input
from symc.ir.function import Input, function
from symc.ir.reference import evaluate_function
from symc.tensor import Tensor


def evaluate(outputs, leaves, arrays):
    """Arrays of the tensors ``outputs``, given arrays for the input tensors ``leaves``."""
    pairs = [(t.value, Input(f"x{i}", t.type)) for i, t in enumerate(leaves)]
    f = function("f", pairs, [t.value for t in outputs])
    return evaluate_function(f, arrays, check=True)


def as_list(out):
    return list(out) if isinstance(out, list | tuple) else [out]


def check(fn, *arrays, symbolic=False, rtol=None, atol=0.0, dtypes=True):
    """``fn`` gives the same values, dtypes and shapes on arrays as on tensors. ``symbolic``: sizes are not known."""
    arrays = [np.asarray(a) for a in arrays]
    leaves = [
        sc_input(f"x{i}", a.dtype, tuple(f"n{i}_{k}" for k in range(a.ndim)) if symbolic else a.shape)
        for i, a in enumerate(arrays)
    ]
    with np.errstate(all="ignore"):
        want = as_list(fn(*arrays))
    got = as_list(fn(*leaves))
    assert len(got) == len(want)
    assert all(isinstance(g, Tensor) for g in got), got
    results = evaluate(got, leaves, arrays)
    for g, w, t in zip(results, want, got, strict=True):
        w = np.asarray(w)
        assert g.shape == w.shape, (g.shape, w.shape)
        if dtypes:
            assert t.dtype == w.dtype, (t.dtype, w.dtype)
        if w.dtype.kind in "fc":
            size = w.dtype.itemsize if w.dtype.kind == "f" else w.dtype.itemsize // 2
            tolerance = {2: 2e-3, 4: 2e-6, 8: 1e-12}[size] if rtol is None else rtol
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=atol)
        else:
            np.testing.assert_array_equal(g, w)
