"""Softmax, its logarithm and cross-entropy: one kernel, shared parts, gradients without a scatter."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.driver.build import build
from symc.errors import IndexingError
from symc.ir.reference import evaluate_function
from symc.ir.traverse import postorder
from symc.opt import DEFAULT, UNFUSED, optimize
from symc.tensors.callsite import caller

pytestmark = pytest.mark.long

X = sc.matrix("x", dtype="float32")
Y = sc.vector("y", dtype="int64")
LABELS = np.array([2, 0, 1])


def optimized(outputs, inputs, pipeline=UNFUSED):
    return optimize(build(outputs, inputs, None, None, (), "f", caller()).function, pipeline, strict=True).function


def names(f):
    return [v.op.name for v in f.values()]


@pytest.mark.parametrize("form", [
    lambda x: sc.softmax(x, axis=1),
    lambda x: sc.exp(x) / sc.exp(x).sum(axis=1, keepdims=True),
    lambda x: (lambda e: e / e.sum(axis=1)[:, None])(sc.exp(x - x.max(axis=1, keepdims=True))),
    lambda x: sc.exp(x - sc.logsumexp(x, axis=1, keepdims=True)),
    lambda x: sc.exp(sc.log_softmax(x, axis=1)),
])  # fmt: skip
def test_every_form_is_one_kernel(form):
    f = optimized([form(X)], [X], DEFAULT)
    assert names(f) == ["param", "fused"]
    kernel = [v.op.name for v in postorder(f.values()[1].regions[0].results)]
    assert kernel.count("exp") == 1 and "log" not in kernel


def test_maximum_and_sum_are_shared():
    f = optimized([sc.softmax(X, 1), sc.logsumexp(X, 1), sc.log_softmax(X, 1)], [X])
    assert [names(f).count(n) for n in ("sup", "exp", "sum", "log")] == [1, 1, 1, 1]


FORMS = [
    lambda x: -sc.log(sc.softmax(x, 1))[sc.arange(x.shape[0]), Y].mean(),
    lambda x: -sc.log(sc.softmax(x, 1)[sc.arange(x.shape[0]), Y]).mean(),
    lambda x: -sc.log_softmax(x, 1)[sc.arange(x.shape[0]), Y].mean(),
    lambda x: -(x - sc.logsumexp(x, 1)[:, None])[sc.arange(x.shape[0]), Y].mean(),
]


@pytest.mark.parametrize("form", FORMS)
def test_cross_entropy_has_no_scatter(form):
    loss = form(X)
    f = optimized([loss, sc.grad(loss, X)], [X, Y])
    assert "scatter" not in names(f) and [names(f).count(n) for n in ("exp", "log")] == [1, 1]
    x = np.array([[1000.0, 998.0, 997.0], [-3.0, 0.0, 1.0], [0.5, 0.25, 0.0]], "f4")
    value, slope = evaluate_function(f, [x, LABELS])
    p = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    np.testing.assert_allclose(value, -np.log(p[np.arange(3), LABELS]).mean(), rtol=1e-6)
    np.testing.assert_allclose(slope, (p - np.eye(3)[LABELS]) / 3, rtol=1e-5, atol=1e-7)


def test_labels_out_of_range_are_errors_in_the_gradient_alone():
    f = sc.compile(sc.grad(FORMS[0](X), X), [X, Y])
    with pytest.raises(IndexingError):
        f(np.zeros((2, 3), "f4"), np.array([0, 3]))


def test_rows_of_nothing_but_minus_infinity():
    x = np.array([[-np.inf, -np.inf], [0.0, -np.inf]], "f4")
    with np.errstate(all="ignore"):
        p, lse = evaluate_function(optimized([sc.softmax(X, 1), sc.logsumexp(X, 1)], [X]), [x])
    assert np.isnan(p[0]).all() and p[1].tolist() == [1, 0] and lse.tolist() == [-np.inf, 0]


def test_the_log_of_nothing_minus_nothing():
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile(sc.log(sc.exp(x) - sc.exp(y)), [x, y])
    got = f(np.array([-np.inf, 800.0, 1.0, -np.inf, np.nan]), np.array([-np.inf, 700.0, -np.inf, 1.0, -np.inf]))
    np.testing.assert_array_equal(got, [-np.inf, 800.0, 1.0, np.nan, np.nan])
