"""Functions that are not elementwise, against NumPy: reductions, shapes, joining, creation, sorting, statistics."""

import warnings

import numpy as np
import pytest

import symc as sc
from symc.tensors.inputs import input as sc_input
from tests.numpy_api.numpy_compare import check, evaluate

A1 = np.array([3.0, -1.0, 2.5, 0.5, -2.0])
A2 = np.array([[1.0, -2.0, 3.0, 0.5], [0.0, 4.0, -1.5, 2.0], [2.5, 1.0, -3.0, 1.5]])
A3 = np.arange(24.0).reshape(2, 3, 4) * 0.5 - 5
C2 = A2 + 1j * A2[::-1]
I2 = np.array([[3, -1, 2], [5, 0, -4]])
NAN = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [4.0, 5.0, -6.0]])
EMPTY = np.zeros((2, 0, 3))


# --- reductions -------------------------------------------------------------------------------------------------------

REDUCTIONS = [np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.ptp, np.any, np.all, np.count_nonzero]


@pytest.mark.parametrize("fn", REDUCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1,), ()], ids=str)
def test_reduction(fn, axis):
    for x in (A3, A3.astype("f4"), A3.astype("i2"), A3 > 0):
        if x.dtype == bool and fn is np.ptp:
            continue
        for keep in (False, True):
            if fn is np.ptp and axis == ():
                continue
            check(lambda a, keep=keep: fn(a, axis=axis, keepdims=keep), x, rtol=1e-5 if x.dtype == "f4" else None)
    if not isinstance(axis, tuple):
        check(lambda a: fn(a, axis=axis), A3, symbolic=True)


@pytest.mark.parametrize(
    "fn", [np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.count_nonzero], ids=lambda f: f.__name__
)
def test_complex_reduction(fn):
    check(fn, C2)
    check(lambda a: fn(a, axis=1, keepdims=True), C2)
    check(fn, np.array(2 - 1j))


def test_reduction_details():
    for dtype in ("b1", "i1", "i4", "i8", "u1", "u8", "f2", "f4", "c8"):
        check(np.sum, A2.astype(dtype), rtol=2e-3)
        check(lambda a: np.mean(a, axis=0), A2.astype(dtype), rtol=2e-3)
        check(lambda a: np.cumsum(a, axis=1), A2.astype(dtype), rtol=2e-3)
    for fn in (
        lambda a: np.sum(a, dtype="f4"),
        lambda a: np.var(a, ddof=1),
        lambda a: np.std(a, axis=0, ddof=2),
        lambda a: np.sum(a, initial=5.0),
        lambda a: np.max(a, initial=9.0),
        lambda a: np.argmax(a),
        lambda a: np.argmin(a, axis=1),
        lambda a: np.argmax(a, axis=0, keepdims=True),
        lambda a: np.argmax(a, keepdims=True),
        np.cumsum,
        np.cumprod,
        lambda a: np.cumprod(a, axis=-1),
        lambda a: a.sum(0),
        lambda a: a.mean(),
        lambda a: a.max(axis=1),
        lambda a: a.std(),
        lambda a: a.argmax(),
        lambda a: a.cumsum(0),
        lambda a: a.any(),
        lambda a: a.prod(1),
    ):
        check(fn, A2, rtol=1e-6)
        check(fn, A2, symbolic=True, rtol=1e-6)
    check(lambda a: np.sum(a, axis=1), EMPTY)
    check(lambda a: np.max(a, axis=1, initial=1.0), EMPTY)
    with pytest.warns(RuntimeWarning):  # NumPy's, of its own mean of nothing
        check(lambda a: np.mean(a, axis=1), EMPTY)
    with pytest.raises(sc.ShapeError, match="no elements"):
        np.max(sc_input("x", "f64", (0, 2)))
    for fn in (np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanmax, np.nanmin):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            check(lambda a, fn=fn: fn(a, axis=1), NAN)
            check(fn, NAN[[0, 2]])


def test_exponential_reductions():
    x = sc_input("x", "f64", ("n", "m"))
    out = [sc.logsumexp(x, 1), sc.logsumexp(x), sc.softmax(x, axis=1), sc.log_softmax(x, axis=0)]
    e = np.exp(A2)
    want = [np.log(e.sum(1)), np.log(e.sum()), e / e.sum(1, keepdims=True), A2 - np.log(e.sum(0))]
    for g, w in zip(evaluate(out, [x], [A2]), want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-13)
    (huge,) = evaluate([sc.softmax(x * 1e4, 1)], [x], [A2])
    assert np.isfinite(huge).all()


# --- shapes -----------------------------------------------------------------------------------------------------------

SHAPES = [
    lambda a: np.reshape(a, (4, 6)),
    lambda a: np.reshape(a, (-1, 8)),
    lambda a: a.reshape(24),
    lambda a: a.reshape(3, -1),
    lambda a: a.reshape((2, 12), order="F"),
    np.transpose,
    lambda a: np.transpose(a, (1, 0, 2)),
    lambda a: a.T,
    lambda a: a.mT,
    lambda a: a.transpose(2, 0, 1),
    lambda a: a.transpose((2, 0, 1)),
    lambda a: np.swapaxes(a, axis1=0, axis2=-1),
    lambda a: np.moveaxis(a, source=[0, 1], destination=[-1, 0]),
    lambda a: np.moveaxis(a, 2, 0),
    lambda a: np.rollaxis(a, axis=2),
    lambda a: np.rollaxis(a, axis=0, start=3),
    lambda a: np.expand_dims(a, 2),
    lambda a: np.expand_dims(a, (0, -1)),
    lambda a: np.squeeze(a[:1, :, :1]),
    lambda a: np.squeeze(a[:1], axis=0),
    lambda a: np.ravel(a),
    lambda a: a.flatten(),
    lambda a: a.ravel("F"),
    lambda a: np.broadcast_to(a[:, :1], (5, 2, 3, 4)),
    lambda a: np.atleast_1d(a),
    lambda a: np.flip(a),
    lambda a: np.flip(a, (0, 2)),
    np.flipud,
    np.fliplr,
    np.rot90,
    lambda a: np.rot90(a, 2),
    lambda a: np.rot90(a, -1, (1, 2)),
    lambda a: np.roll(a, 2, axis=1),
    lambda a: np.roll(a, 5),
    lambda a: np.roll(a, (1, -1), (0, 2)),
    lambda a: np.repeat(a, 2),
    lambda a: np.repeat(a, 3, axis=1),
    lambda a: np.repeat(a, repeats=0, axis=2),
    lambda a: np.repeat(a, [1, 0, 2], axis=1),
    lambda a: np.tile(a, 2),
    lambda a: np.tile(a, (2, 1, 3)),
    lambda a: np.tile(a, (2, 1, 1, 2)),
    lambda a: np.diagonal(a),
    lambda a: np.diagonal(a, 1, axis1=-1, axis2=-2),
    lambda a: np.trace(a),
    lambda a: np.trace(a, offset=-1),
    lambda a: np.trace(a, offset=7),
    np.tril,
    lambda a: np.triu(a, k=1),
    lambda a: np.tril(a, k=-2),
    lambda a: np.array_split(a, 3, axis=2),
    lambda a: np.split(a, [1, 3], axis=2),
    lambda a: np.split(a, 2),
    lambda a: np.dsplit(a, 2),
    lambda a: np.hsplit(a, 3),
    lambda a: np.vsplit(a, [1]),
    lambda a: np.diff(a),
    lambda a: np.diff(a, n=2, axis=1),
    lambda a: np.diff(a, n=5),
    lambda a: np.gradient(a),
    lambda a: np.gradient(a, axis=2),
    lambda a: np.gradient(a, 2.0, axis=(0, 1)),
    lambda a: np.gradient(a, axis=1, edge_order=2),
    lambda a: np.pad(a, 1),
    lambda a: np.pad(a, (3, 2), "constant"),
    lambda a: np.pad(a, ((1, 2), (0, 0), (3, 4)), constant_values=7),
    lambda a: np.pad(a, (3,), "constant"),
    lambda a: np.pad(a, ((0, 2), (1, 1), (0, 0)), "edge"),
    lambda a: np.pad(a, ((0, 1), (2, 1), (3, 0)), "reflect"),
    lambda a: np.pad(a, ((2, 1), (0, 3), (1, 1)), "symmetric"),
    lambda a: np.pad(a, ((1, 1), (0, 2), (4, 1)), mode="wrap"),
    lambda a: np.pad(a, ((3, 2),), "constant"),
    lambda a: np.take(a, [1, 0, -1], axis=2),
    lambda a: np.take(a, 3),
    lambda a: a.take([[1, 7]], mode="wrap"),
    lambda a: np.take(a, [9], axis=1, mode="clip"),
    lambda a: np.take_along_axis(a, np.argsort(np.asarray(A3), axis=1), axis=1),
    lambda a: np.sort(a, axis=0),
    lambda a: np.argsort(a, axis=1),
    lambda a: np.cumulative_sum(a, axis=1, include_initial=True),
    lambda a: np.unstack(a, axis=1),
    lambda a: [*a],
]


@pytest.mark.parametrize("k", range(len(SHAPES)))
def test_shapes(k):
    check(SHAPES[k], A3)


SYMBOLIC = [
    lambda a: np.reshape(a, (-1,)),
    lambda a: a.reshape(a.shape[0], -1),
    lambda a: a.reshape(a.shape[0] * a.shape[1], a.shape[2]),
    np.transpose,
    lambda a: np.flip(a, 1),
    lambda a: np.roll(a, 2, axis=1),
    lambda a: np.repeat(a, 2, axis=0),
    lambda a: np.tile(a, (1, 2, 1)),
    lambda a: np.diagonal(a),
    lambda a: np.trace(a),
    np.tril,
    lambda a: np.diff(a),
    lambda a: np.pad(a, 1),
    lambda a: np.concatenate([a, a[:, :1]], axis=1),
    lambda a: np.stack([a, a + 1], axis=1),
    lambda a: np.pad(a, 1, "edge"),
    lambda a: np.split(a, [1], axis=1),
    lambda a: np.broadcast_to(a, (5, *a.shape)),
    lambda a: np.expand_dims(a, 0),
    lambda a: np.gradient(a, axis=2),
    np.zeros_like,
    np.ones_like,
    lambda a: np.sort(a),
    lambda a: np.atleast_3d(a),
    lambda a: np.cumsum(a, axis=1),
    lambda a: np.take(a, [0, -1], axis=1),
    lambda a: a @ np.swapaxes(a, 1, 2),
    lambda a: np.einsum("ijk,ilk->ijl", a, a),
    lambda a: np.tensordot(a, a, axes=((1, 2), (1, 2))),
    lambda a: np.kron(a[0], np.eye(2)),
    lambda a: np.average(a, axis=0),
]


@pytest.mark.parametrize("k", range(len(SYMBOLIC)))
def test_symbolic_sizes(k):
    check(SYMBOLIC[k], A3, symbolic=True)


def test_axes_of_values_without_axes():
    for fn in (
        np.sum,
        np.mean,
        np.ravel,
        np.squeeze,
        np.transpose,
        np.atleast_1d,
        np.atleast_2d,
        np.atleast_3d,
        np.max,
        np.repeat,
        np.cumsum,
        np.copy,
    ):
        check((lambda a: np.repeat(a, 2)) if fn is np.repeat else fn, np.array(2.5))
    check(np.atleast_2d, A1)
    check(np.atleast_3d, A1)
    check(np.atleast_3d, A2)
    assert (
        np.shape(sc_input("x", "f64", (2, 3))) == (2, 3)
        and np.ndim(sc_input("x", "f64", (2, 3))) == 2
        and np.size(sc_input("x", "f64", (2, 3))) == 6
    )


JOINS = [
    lambda a: np.concatenate((a, A2), 0),
    lambda a: np.concatenate([a, a[:, :2]], axis=-1),
    lambda a: np.concatenate([a, A2], axis=None),
    lambda a: np.stack([a, A2]),
    lambda a: np.stack([a, a, a], axis=-1),
    lambda a: np.vstack([a, A2[0]]),
    lambda a: np.hstack([a, A2]),
    lambda a: np.dstack([a, A2]),
    lambda a: np.column_stack([a, a[:, 0]]),
    lambda a: np.vstack(a),
    lambda a: np.hstack(a),
    lambda a: np.column_stack(a),
    lambda a: np.concatenate(a),
    lambda a: np.append(a, 1.0),
    lambda a: np.append(a, A2[:1], axis=0),
    lambda a: np.hstack([a[0], a[1]]),
    lambda a: np.concatenate([a, I2[:, :1].astype("i4").repeat(2, 1)[:1].repeat(3, 0)], axis=1),
    lambda a: np.stack([a[0, 0], a[1, 1]]),
]


@pytest.mark.parametrize("k", range(len(JOINS)))
def test_joining(k):
    check(JOINS[k], A2)


def test_nested_lists_of_values():
    x = sc_input("x", "f64", ())
    got = evaluate(
        [
            sc.asarray([[x, x * 1.0, x + 2.5], [x**2, x, x / 2.0]]),
            sc.asarray([x, 3, 1.5]),
            sc.asarray([[1, 2], [3, 4]]),
        ],
        [x],
        [np.array(3.0)],
    )
    np.testing.assert_array_equal(got[0], [[3, 3, 5.5], [9, 3, 1.5]])
    np.testing.assert_array_equal(got[1], [3, 3, 1.5])
    np.testing.assert_array_equal(got[2], [[1, 2], [3, 4]])


def test_creation():
    x = sc_input("x", "f32", ("n", 2))
    n = x.shape[0]
    pairs = [
        (sc.arange(5), np.arange(5)),
        (sc.arange(2, 9, 3), np.arange(2, 9, 3)),
        (sc.arange(5, 0, -2), np.arange(5, 0, -2)),
        (sc.arange(0.0, 1.0, 0.3), np.arange(0, 1, 0.3)),
        (sc.arange(n), np.arange(4)),
        (sc.arange(1, n, 2), np.arange(1, 4, 2)),
        (sc.arange(n, dtype="f4"), np.arange(4, dtype="f4")),
        (sc.zeros((n, 3)), np.zeros((4, 3))),
        (sc.ones(3, "i4"), np.ones(3, "i4")),
        (sc.full((2, 2), 7), np.full((2, 2), 7)),
        (sc.full((2, n), [1.0, 2, 3, 4]), np.full((2, 4), [1.0, 2, 3, 4])),
        (sc.eye(3), np.eye(3)),
        (sc.eye(3, 4, 1, dtype="int32"), np.eye(3, 4, 1, dtype="int32")),
        (sc.eye(n), np.eye(4)),
        (sc.identity(2), np.identity(2)),
        (sc.tri(3, 4), np.tri(3, 4)),
        (sc.linspace(0, 1, 5), np.linspace(0, 1, 5)),
        (sc.linspace(2, 3, 4, endpoint=False), np.linspace(2, 3, 4, endpoint=False)),
        (sc.linspace(0, 1, 1), np.linspace(0, 1, 1)),
        (sc.linspace(0, 1, 0), np.linspace(0, 1, 0)),
        (sc.zeros_like(x), np.zeros((4, 2), "f4")),
        (sc.full_like(x, 3), np.full((4, 2), 3, "f4")),
        (sc.ones_like(x, dtype=int), np.ones((4, 2), int)),
        (sc.indices((2, 3)), np.indices((2, 3))),
        (sc.one_hot(sc.asarray([1, 0, 5]), 3), np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])),
        (sc.logspace(0, 2, 3), np.logspace(0, 2, 3)),
        *zip(sc.meshgrid([1, 2, 3], [4, 5]), np.meshgrid([1, 2, 3], [4, 5]), strict=True),
        *zip(
            sc.meshgrid([1, 2], [4, 5], indexing="ij", sparse=True),
            np.meshgrid([1, 2], [4, 5], indexing="ij", sparse=True),
            strict=True,
        ),
    ]
    for (t, want), got in zip(pairs, evaluate([t for t, _ in pairs], [x], [np.ones((4, 2), "f4")]), strict=True):
        assert t.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-15)
    for fn in (
        np.diag,
        lambda a: np.diag(a, 1),
        lambda a: np.diag(a, k=-2),
        np.diagflat,
        lambda a: np.vander(a, 3),
        lambda a: np.linspace(a, a + 1, 5),
        lambda a: np.linspace(a, 2 * a, num=1),
        lambda a: np.linspace(a[0], 3.0, 5, axis=-1),
    ):
        check(fn, A1, rtol=1e-14)
    check(lambda a: np.diag(a, k=1), A2)
    check(np.diag, A1, symbolic=True)


# --- sorting and statistics -------------------------------------------------------------------------------------------


def test_sorting():
    x = np.array([3.0, np.nan, 1.0, 3.0, -np.inf, 2.0])
    for fn in (
        np.sort,
        np.argsort,
        lambda a: np.sort(a, axis=None),
        lambda a: np.partition(a, kth=2)[2],
        lambda a: np.searchsorted([0.0, 1, 2, 3], a),
        lambda a: np.searchsorted(np.sort(x), a, side="right"),
        lambda a: np.searchsorted(np.sort(x), a, side="left"),
        lambda a: np.digitize(a, [0.0, 2.0]),
    ):
        check(fn, x)
    t = sc_input("x", "f64", (2, 4))
    data = np.array([[4.0, 1.0, 4.0, 2.0], [0.0, 7.0, -1.0, 7.0]])
    values, places = sc.topk(t, 2)
    got = evaluate([values, places, sc.argsort(t, descending=True), sc.sort(t, descending=True)], [t], [data])
    np.testing.assert_array_equal(got[0], [[4, 4], [7, 7]])
    np.testing.assert_array_equal(got[1], [[0, 2], [1, 3]])
    np.testing.assert_array_equal(got[2], [[0, 2, 3, 1], [1, 3, 0, 2]])
    np.testing.assert_array_equal(got[3], -np.sort(-data))
    i = sc_input("i", "i64", (5,))
    (counts,) = evaluate([sc.bincount(i, length=4)], [i], [np.array([1, 3, 1, 0, 1])])
    np.testing.assert_array_equal(counts, [1, 3, 0, 1])


def test_statistics():
    for fn in (
        np.median,
        lambda a: np.median(a, axis=0),
        lambda a: np.median(a, axis=(0, 1), keepdims=True),
        lambda a: np.percentile(a, 30),
        lambda a: np.quantile(a, [0.1, 0.5, 1.0], axis=1),
        lambda a: np.quantile(a, 0.4, method="lower"),
        lambda a: np.quantile(a, 0.4, method="midpoint"),
        np.average,
        lambda a: np.average(a, axis=1, weights=[1, 2, 3, 4]),
        lambda a: np.average(a, weights=np.abs(A2)),
        np.cov,
        np.corrcoef,
        lambda a: np.cov(a, rowvar=False),
        np.ediff1d,
        lambda a: np.diff(a, prepend=0.0),
        np.trapezoid,
        lambda a: np.trapezoid(a, x=[0.0, 1, 3, 4]),
        lambda a: np.trapezoid(a, dx=0.5, axis=0),
        lambda a: np.interp(a, [0.0, 1, 2], [5.0, -1, 3]),
        lambda a: np.polyval([2.0, -1, 0.5], a),
        lambda a: np.allclose(a, A2),
        lambda a: np.array_equal(a, A2),
    ):
        check(fn, A2, rtol=1e-12, atol=1e-15)
