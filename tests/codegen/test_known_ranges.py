"""Exponentials of what is known to be never positive: where they are, how accurate they are, and what becomes of rows
with infinities and nans, whose greatest element is subtracted."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc

#: What kernels know to be never positive, and what they do not.
KNOWN = {
    "softmax": lambda x: sc.softmax(x, axis=1), "logsumexp": lambda x: sc.logsumexp(x, axis=1),
    "all axes": lambda x: sc.softmax(x, axis=(0, 1)), "by hand": lambda x: sc.exp(x - x.max(axis=1, keepdims=True)),
    "the other way": lambda x: sc.exp(-(x.max(axis=1)[:, None] - x)),
    "normal": lambda x: sc.exp(-0.5 * ((x - 1.5) / 2) ** 2), "laplace": lambda x: sc.exp(-abs(x - 1)),
    "less": lambda x: sc.exp(-3 - x * x),
}
NOT_KNOWN = {
    "any": sc.exp, "other axis": lambda x: sc.exp(x - x.max(axis=1)[:3, None].sum()),
    "of another": lambda x: sc.exp(2 * x - x.max(axis=1, keepdims=True)),
    "the least": lambda x: sc.exp(x - x.min(axis=1, keepdims=True)), "square": lambda x: sc.exp(x * x),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_where_they_are(dtype):
    x = sc.input("x", dtype, ("n", "m"))
    a = np.random.default_rng(0).normal(size=(5, 40)).astype(dtype)
    for known, programs in ((True, KNOWN), (False, NOT_KNOWN)):
        for name, build in programs.items():
            f = sc.compile(build(x), [x])
            assert ("exp_nonpositive(" in f.source) == known, name
            want = sc.compile(build(x), [x], backend="numpy")(a)
            np.testing.assert_allclose(f(a), want, rtol=40 * np.finfo(dtype).eps, err_msg=name)


@pytest.mark.parametrize("dtype, stated", [("float32", 0.9), ("float64", 1.0)])
def test_accuracy_from_denormals_to_the_ends(dtype, stated):
    """``exp`` too, which has the same polynomial and another last factor."""
    import mpmath

    rng, info, low = np.random.default_rng(0), np.finfo(dtype), -104 if dtype == "float32" else -746
    negative = -np.concatenate([rng.uniform(0, -low, 1500), abs(rng.normal(size=1500)),
                                np.exp2(rng.uniform(-70, 0, 300))])
    positive = rng.uniform(0, np.log(float(info.max)) - 1e-3, 500)
    x = sc.input("x", dtype, ("n",))
    for f, numbers in ((sc.compile(sc.exp(-abs(x)), [x]), negative),
                       (sc.compile(sc.exp(x), [x]), np.concatenate([negative, positive]))):
        a = numbers.astype(dtype)
        with mpmath.workprec(160):
            want = [mpmath.exp(mpmath.mpf(float(v))) for v in a]
            unit = np.spacing(np.array([float(w) for w in want], dtype)).astype("f8")
            error = [abs(float(mpmath.mpf(float(y)) - w)) / u for y, w, u in zip(f(a), want, unit, strict=True)]
        assert max(error) <= stated, a[int(np.argmax(error))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ends(dtype):
    x = sc.input("x", dtype, ("n",))
    a = np.array([0.0, -0.0, -np.inf, np.nan, -1e30, -1e-40, -88, -700, -np.finfo(dtype).max], dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(sc.compile(sc.exp(-abs(x)), [x])(a), np.exp(-abs(a)), rtol=4 * np.finfo(dtype).eps)
        b = np.concatenate([a, -a])
        np.testing.assert_allclose(sc.compile(sc.exp(x), [x])(b), np.exp(b), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("backend", ["llvm", "numba", "numpy"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_with_infinities_and_nans(dtype, backend):
    inf, nan = np.inf, np.nan
    rows = np.array([[1, 2, 3], [inf, 2, 3], [-inf, 2, 3], [-inf, -inf, -inf], [inf, -inf, 0], [nan, 1, 2],
                     [inf, nan, 1], [1e38, -1e38, 0], [inf, 1e38, 1e38]], dtype)
    x = sc.input("x", dtype, ("n", 3))
    f = sc.compile([sc.softmax(x, axis=1), sc.logsumexp(x, axis=1), sc.log_softmax(x, axis=1)], [x], backend=backend)
    soft, total, logs = f(rows)
    every = np.full(3, nan)
    want = {0: np.exp(rows[0]) / np.exp(rows[0]).sum(), 1: every, 3: every, 4: every, 5: every, 6: every, 7: [1, 0, 0],
            8: every}
    for k, row in want.items():
        np.testing.assert_allclose(soft[k], row, rtol=1e-6)
    np.testing.assert_allclose(total, [3.4076059, inf, 3.3132617, -inf, inf, nan, nan, 1e38, inf], rtol=1e-6)
    np.testing.assert_array_equal(logs[1], [nan, -inf, -inf])
    assert np.isnan(logs[3]).all() and np.isnan(logs[5]).all() and logs[2][0] == -inf
