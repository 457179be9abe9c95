"""Helpers for tests of the front end: run a NumPy-style function on tensors and on arrays, and compare.

Tensors are evaluated by the reference evaluator, so these tests need no compiler.
"""

from __future__ import annotations

import warnings

import numpy as np

from symc.errors import InternalError, SymcError
from symc.ir.function import Input, function, measured_names
from symc.ir.reference import evaluate_function, run_free
from symc.tensors.inputs import input as sc_input
from symc.tensors.tensor import Tensor


def evaluate(outputs, leaves, arrays):
    """Arrays of the tensors ``outputs``, given arrays for the input tensors ``leaves``."""
    roots = [t.value for t in outputs]
    if measured_names(roots):
        with np.errstate(all="ignore"):
            return run_free(roots, dict(zip([t.value for t in leaves], arrays, strict=True)), check=True)
    pairs = [(t.value, Input(f"x{i}", t.type)) for i, t in enumerate(leaves)]
    return evaluate_function(function("f", pairs, roots), arrays, check=True)


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


# --- one call ---------------------------------------------------------------------------------------------------------

#: What differs from NumPy. ``refused`` (by a SymcError that says so) and ``equal`` are no difference.
DIFFERENCES = ("value", "shape", "dtype", "count", "foreign", "accepted")


def flat(nest):
    return [x for item in nest for x in flat(item)] if isinstance(nest, list | tuple) else [nest]


def outcome(run, leaves, arrays, want, error):
    """What came of ``run``, which gives tensors, beside NumPy's results or its error: a kind, and words."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = flat(run())
            tensors = [t for t in made if isinstance(t, Tensor)]
            results = iter(evaluate(tensors, leaves, arrays))
    except SymcError as e:
        return ("foreign" if isinstance(e, InternalError) else "refused"), f"{type(e).__name__}: {e.what}"
    except Exception as e:
        known = isinstance(e, TypeError) and any(w in str(e) for w in ("argument", "takes", "iteration over", "select"))
        return ("refused" if known else "foreign"), f"{type(e).__name__}: {e}"
    if error is not None:
        return "accepted", f"NumPy raises {type(error).__name__}: {error}"
    wants = flat(want)
    if isinstance(want, list) and len(made) == 1 and not any(isinstance(w, np.ndarray) for w in wants):
        wants = [want]  # a list of numbers
    if len(made) != len(wants):
        return "count", f"{len(made)} results, not {len(wants)}"
    for t, w in zip(made, wants, strict=True):
        kind, text = unequal(np.asarray(next(results) if isinstance(t, Tensor) else t), np.asarray(w))
        if kind:
            return kind, text
    return "equal", ""


def unequal(g, w):
    """How one array differs from NumPy's."""
    if g.shape != w.shape:
        return "shape", f"{g.shape}, not {w.shape}"
    if w.dtype.kind in "fc":
        size = w.dtype.itemsize if w.dtype.kind == "f" else w.dtype.itemsize // 2
        tolerance = {2: 5e-3, 4: 1e-5}.get(min(size, g.dtype.itemsize), 1e-10)
        largest = np.max(np.abs(w), initial=0, where=np.isfinite(w))
        same = np.allclose(g, w, rtol=tolerance, atol=tolerance * largest, equal_nan=True)
    else:
        same = np.array_equal(g, w)
    if not same:
        return "value", f"{g.ravel()[:8]}, not {w.ravel()[:8]}"
    return ("dtype", f"{g.dtype}, not {w.dtype}") if g.dtype != w.dtype else ("", "")
