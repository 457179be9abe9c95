"""Long convolutions: the same numbers whichever way a call's sizes choose, in values and derivatives."""

import numpy as np
import pytest

import symc as sc
from symc.ir.op import lookup
from symc.tensors.tensor import Tensor


def _compiled(of, *inputs, without=False):
    return sc.compile(of, inputs=inputs, **({"pipeline": f"{sc.opt.DEFAULT},-convolutions"} if without else {}))


def _both(dtype):
    x, y = sc.input("x", dtype, ("n",)), sc.input("y", dtype, ("m",))
    full = sc.convolve(x, y)
    return _compiled([full, *sc.grad((full * full).sum(), [x, y])], x, y)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_way_gives_the_same(dtype):
    f, rng = _both(dtype), np.random.default_rng(0)
    for n, k in ((30, 5), (5, 30), (4000, 900), (900, 4000), (2500, 2500)):
        x, y = rng.normal(size=n).astype(dtype), rng.normal(size=k).astype(dtype)
        full = np.convolve(x, y)
        want = [full, 2 * np.correlate(full, y, "valid"), 2 * np.correlate(full, x, "valid")]
        for a, b in zip(f(x, y), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=(1e-12 if dtype == "float64" else 1e-5) * np.abs(b).max())


@pytest.mark.parametrize("sizes", [("n", "m"), ("n", "n")], ids=["any", "equal"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_valid_is_made_of_what_lies_within_alone(name, sizes):
    """Whichever vector is longer: as many products as NumPy, or transforms; not those of the full convolution."""
    x, y = (sc.input(v, "float64", (n,)) for v, n in zip("xy", sizes, strict=True))
    f = _compiled(getattr(sc, name)(x, y, mode="valid"), x, y)
    assert "conv_input" not in f.dump() and ("rfft" in str(f.plan)) == (sizes == ("n", "m"))
    rng = np.random.default_rng(3)
    for n, k in ((5, 5), (30, 29), (30, 3), (3, 30), (3000, 1200), (1200, 3000), (1, 1)):
        if sizes == ("n", "m") or n == k:
            a, b = rng.normal(size=n), rng.normal(size=k)
            np.testing.assert_allclose(f(a, b), getattr(np, name)(a, b, "valid"), rtol=1e-11, atol=1e-10)


def test_what_is_not_finite_is_computed_directly():
    x, y = np.random.default_rng(1).normal(size=(2, 3000))
    x[5], x[700] = np.inf, np.nan
    got, want = _both("float64")(x, y)[0], np.convolve(x, y)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
    assert np.isfinite(got[:5]).all()


@pytest.mark.long
@pytest.mark.parametrize("of", ["conv", "conv_input", "conv_filter"])
def test_transforms_along_several_axes(of):
    rng = np.random.default_rng(2)
    sizes, window = (120, 110), (60, 61)
    left = tuple(n - k + 1 for n, k in zip(sizes, window, strict=True))
    shapes = {"conv": ((2, 3, *sizes), (3, 1, *window), {}),
              "conv_input": ((2, 3, *left), (3, 1, *window), {"size": sizes}),
              "conv_filter": ((2, 3, *sizes), (2, 3, *left), {"window": window})}
    first, second, attrs = shapes[of]
    a, b = sc.input("a", "float64", first), sc.input("b", "float64", second)
    out = Tensor(lookup(of)(a.value, b.value, groups=3, **attrs))
    f = _compiled(out, a, b)
    assert "rfft" in str(f.plan)
    x, y = rng.normal(size=first), rng.normal(size=second)
    np.testing.assert_allclose(f(x, y), _compiled(out, a, b, without=True)(x, y), rtol=0, atol=1e-11)


#: Masks of a matrix by its row i and column j that are, for each row, a range of columns.
MASKS = {
    "below": lambda i, j, n, m: i >= j, "above": lambda i, j, n, m: i < j,
    "band": lambda i, j, n, m: (i - j <= 2) & (j - i < 3), "turned": lambda i, j, n, m: (i + j >= 3) & (i + j < n),
    "columns": lambda i, j, n, m: (j >= 2) & (j < m - 1), "rows": lambda i, j, n, m: (i >= 1) & (i < n - 2),
    "nothing": lambda i, j, n, m: (i - j < -n) & (i - j > -n - 1),
    "steps": lambda i, j, n, m: (2 * j >= i) & (2 * j < n),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("fold, none", [(sc.sum, 0.0), (sc.max, -np.inf), (sc.prod, 1.0), (sc.max, 0.0)])
def test_folds_down_columns_of_what_a_mask_chooses(name, fold, none):
    x = sc.input("x", "float64", ("n", "m"))

    def of(t, like, xp):
        n, m = t.shape
        i, j = like(n)[:, None], like(m)[None, :]
        return xp.where(MASKS[name](i, j, n, m), t * t - 2 * t, none)

    f = _compiled(fold(of(x, sc.arange, sc), axis=0), x)
    for shape in ((1, 1), (5, 7), (9, 4), (20, 2100), (33, 1)):
        a = np.random.default_rng(3).normal(size=shape)
        want = getattr(np, fold.__name__)(of(a, np.arange, np), axis=0)
        np.testing.assert_allclose(f(a), want, rtol=1e-11, atol=1e-13)


def test_a_masked_fold_has_no_test_inside():
    x, y = sc.input("x", "float64", ("n",)), sc.input("y", "float64", ("m",))
    source = _compiled(sc.convolve(x, y), x, y, without=True).source
    assert " if " not in source.split("for i", 3)[-1]
