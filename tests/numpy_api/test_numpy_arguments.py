"""Every public function that NumPy has, called with NumPy's arguments at random: equal to NumPy, or an error."""

import warnings
import zlib

import numpy as np
import pytest
import scipy.special

import symc as sc
from symc.ir.ops.special import SEVERAL, TABLE
from symc.numpy_api.dispatch import run_function
from symc.testing.fuzz.arguments import draw, functions, symbolic
from tests.numpy_api.numpy_compare import evaluate, outcome

CALLS = 12
#: Where symc has its own answer, by the kind of difference, and why.
KNOWN = {
    "argpartition": "value: the order of what is not asked for is free", "partition": "value: as argpartition",
    "quantile": "value: between infinities of one sign is that infinity, NumPy's is nan",
    "percentile": "value: as quantile", "imag": "dtype: of a Python bool", "real": "dtype: of a Python bool",
    "interp": "value: where a point is nan", "nanstd": "value: NumPy's differences have the dtype of the operand",
    "linalg.eig": "dtype: always complex", "unique_values": "value: NumPy's are in any order",
    "linalg.eigvals": "dtype: always complex",
    "roots": "dtype: always complex; shape: no zeros are looked for", "poly": "dtype: complex where roots are",
    "polydiv": "shape: as polymul",
    "linalg.lstsq": "dtype, shape: the rank is int64; residuals have a shape that does not depend on data",
    "linalg.tensorsolve": "shape: of no axes",
    "polymul": "shape, value: zeros in front stay, as they are data",
    "polyadd": "shape: as polymul", "polysub": "shape: as polymul", "linalg.matrix_rank": "value: of singular matrices",
    "linalg.cond": "value: of singular matrices", "linalg.pinv": "value: of singular matrices",
    "linalg.inv": "value: of singular matrices", "linalg.det": "value: of singular matrices",
    "linalg.svd": "value: vectors have signs", "linalg.qr": "value: vectors have signs", "linalg.eigh": "value: as svd",
    **dict.fromkeys(("fft.irfft", "fft.hfft", "fft.irfft2", "fft.irfftn"),
                    "value: of no elements NumPy reads what lies behind them"),
}  # fmt: skip
#: Calls that NumPy refuses for their form, and that mean something here: lists, defaults, booleans, more axes.
MORE = (AttributeError, TypeError)


@pytest.mark.parametrize("name", functions())
def test_arguments(name):
    function = functions()[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for _ in range(CALLS):
        call = draw(rng, function)
        if call is None:
            continue
        want = error = None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                want = function(*call.args, **call.kwargs)
            except Exception as e:
                error = e
        leaves, arrays = [], []
        made = symbolic(call, rng, leaves, arrays)
        kind, text = outcome(lambda m=made: run_function(m.function, m.args, m.kwargs), leaves, arrays, want, error)
        if kind in ("equal", "refused") or kind in KNOWN.get(name, ""):
            continue
        assert kind == "accepted" and (isinstance(error, MORE) or name in ACCEPTS), f"{kind}: {text}\n  {call}"


#: What NumPy refuses by value and symc takes: more axes, and what depends on data.
ACCEPTS = frozenset(
    "linalg.outer linalg.cross linalg.norm quantile percentile median nanargmin nanargmax linspace "
    "polyadd polysub polymul unravel_index "
    "linalg.eigvals linalg.eig linalg.svdvals linalg.inv linalg.det linalg.cholesky linalg.eigh linalg.eigvalsh "
    "fft.fftshift fft.ifftshift fft.fftfreq fft.rfftfreq "
    "linalg.svd linalg.cond linalg.lstsq linalg.pinv linalg.solve linalg.tensorsolve linalg.tensorinv".split()
)


# --- arguments that are data ------------------------------------------------------------------------------------------


def run(out, *pairs, mode="reference"):
    leaves, arrays = zip(*pairs, strict=True)
    f = sc.compile(out, list(leaves), mode=mode)
    return f(*arrays)


@pytest.mark.parametrize("mode", ["reference", "fast_compile"])
@pytest.mark.parametrize(
    "make, axis, size",
    [
        (lambda x, i: x[i], 0, 3),
        (lambda x, i: x[:, i], 1, 4),
        (lambda x, i: x[sc.abs(i) % 3, i], 1, 4),
        (lambda x, i: x.at[i].add(1.0), 0, 3),
        (lambda x, i: sc.take(x, i, axis=1), 1, 4),
        (lambda x, i: sc.scan(lambda c, k: (c + x[k].sum(), None), sc.asarray(0.0), i)[0], 0, 3),
        (lambda x, i: sc.grad(sc.sum(x[i] ** 2), x), 0, 3),
    ],
)
@pytest.mark.parametrize("bad", [-9, 7])
def test_an_index_out_of_bounds_is_named_as_given(make, axis, size, bad, mode):
    x, i = sc.input("x", "float64", shape=("n", 4)), sc.input("i", "int64", shape=("m",))
    f = sc.compile(make(x, i), [x, i], mode=mode)
    said = rf"^index {bad} is out of bounds for axis {axis} of size {size}, of an array f64"
    with pytest.raises(IndexError, match=said):
        f(np.ones((3, 4)), np.array([0, bad, 1]))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda i: sc.unravel_index(i, (2, 3))[1], "index 6 is out of bounds .* of size 6"),
        (lambda i: sc.unravel_index(-i, (2, 3))[1], "index -6 is out of bounds .* of size 6"),
        (lambda i: sc.ravel_multi_index((i, i), (9, 3)), "index 6 is out of bounds .* of size 3"),
        (lambda i: sc.choose(i, [1, 2, 3]), "index 6 is out of bounds .* of size 3"),
        (lambda i: sc.bincount(-i, length=9), "index -6 is out of bounds .* of size 9"),
    ],
)
@pytest.mark.parametrize("mode", ["reference", "fast_compile"])
def test_what_numpy_refuses_by_value_is_refused_in_a_call(make, message, mode):
    i = sc.input("i", "int64", shape=("m",))
    with pytest.raises(IndexError, match=message):
        sc.compile(make(i), [i], mode=mode)(np.array([0, 6]))


def test_degrees_of_freedom_beyond_a_size_that_is_not_known():
    x = sc.input("x", "float64", shape=("n", "m"))
    a = np.arange(6.0).reshape(2, 3) ** 2
    for fn in (np.var, np.std, lambda v, ddof: np.cov(v, ddof=ddof)):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(run(fn(x, ddof=9), (x, a)), fn(a, ddof=9))


# --- the ufuncs of SciPy ----------------------------------------------------------------------------------------------

EDGES = np.array([-np.inf, -3.0, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 30.0, 1e300, np.inf, np.nan])
#: Those of the tables of ``symc.ir.ops.special`` are in ``test_special``.
UFUNCS = sorted(n for n in dir(scipy.special) if isinstance(getattr(scipy.special, n), np.ufunc)
                and not {n, getattr(scipy.special, n).__name__} & {*TABLE, *SEVERAL})


def test_the_ufuncs_of_scipy_are_those_of_special():
    found = 0
    for name in UFUNCS:
        f = getattr(scipy.special, name)
        grids = [np.ravel(g) for g in np.meshgrid(*[EDGES] * f.nin)] if f.nin < 3 else [EDGES] * f.nin
        leaves = [sc.input(f"x{k}", "float64", shape=g.shape) for k, g in enumerate(grids)]
        try:
            out = f(*leaves)
        except sc.SymcError as e:
            assert f"scipy.special.{f.__name__} " in str(e) and f.__name__ not in sc.special.__all__
            continue
        found += 1
        found_here = evaluate(list(out) if f.nout > 1 else [out], leaves, grids)
        with np.errstate(all="ignore"):
            wants = f(*grids) if f.nout > 1 else [f(*grids)]
        usual = grids[0] > -np.inf if name == "gammaln" else slice(None)  # where SciPy's is -inf, C's inf
        for got, want in zip(found_here, wants, strict=True):
            np.testing.assert_allclose(got[usual], want[usual], rtol=1e-12, err_msg=name)
    assert found > 15


@pytest.mark.parametrize("mode", ["reference", "fast_compile"])
def test_softmax_of_infinities_is_scipys(mode):
    rows = np.array(
        [[np.inf, 1, 2], [1, 2, 3], [np.inf, np.inf, 0], [-np.inf, 0, 1], [np.nan, 1, 2], [1e4, -1e4, 0], [-np.inf] * 3]
    )
    x = sc.input("x", "float64", shape=("n", 3))
    for name in ("softmax", "log_softmax", "logsumexp"):
        with np.errstate(all="ignore"):
            want = getattr(scipy.special, name)(rows, axis=1)
        got = run(getattr(sc, name)(x, axis=1), (x, rows), mode=mode)
        np.testing.assert_allclose(got, want, rtol=1e-13, err_msg=name)
