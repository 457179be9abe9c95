"""Softmax and its logarithm along the axes in attribute `axes`, which the result keeps.

Both are made of the greatest element and of the sum of exponentials of differences from it, as logsumexp is: where
several of the three are taken of one value, these parts are computed once. Where every element is -inf the result is
nan, as 0 / 0 is; a zero cotangent stays zero there. With an inf among them softmax is nan in every element, as SciPy's,
and its logarithm nan there and -inf elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from symc.errors import IndexingError, ShapeError
from symc.ir.dtypes import is_narrow
from symc.ir.facts import Facts
from symc.ir.op import Custom, Decompose, Op, register
from symc.ir.ops.arithmetic import mulz
from symc.ir.ops.compare import eq, isfinite
from symc.ir.ops.elementwise import check_kind, like
from symc.ir.ops.index import gather
from symc.ir.ops.leaf import iota
from symc.ir.ops.logic import where
from symc.ir.ops.math import exp, log
from symc.ir.ops.reduce import Axes, check_axes, samples, shifted_sum, spread, sum_
from symc.ir.ops.shape import broadcast
from symc.ir.types import TensorType
from symc.ir.value import Value


def _register(name: str, reference: Callable, parts: Callable, derivative: Custom, facts: Facts, doc: str) -> Op:
    def infer(t: TensorType, axes: Axes) -> TensorType:
        check_axes(name, t, axes)
        check_kind(name, t, "f")
        return t

    def run(x, axes):
        with np.errstate(all="ignore"):
            top = np.max(x, axis=tuple(axes), keepdims=True, initial=-np.inf)
            x = x - np.where(np.isfinite(top), top, np.zeros_like(top))
            return np.asarray(reference(x, tuple(axes)), x.dtype)

    def batch(v, operands, flags, n):
        return v.op(operands[0], axes=tuple(a + 1 for a in v.attrs["axes"]))

    facts.kinds, facts.batch = "f", batch
    return register(Op(name, infer, run, derivative, Decompose(parts), samples=lambda: samples("f"), doc=doc,
                       facts=facts))


def _total(g: Value, v: Value) -> Value:
    """The sum along the axes of ``v``, in every element again."""
    return spread(sum_(g, axes=v.attrs["axes"]), v, v.attrs["axes"])


# --- softmax ----------------------------------------------------------------------------------------------------------


def _softmax_parts(v: Value) -> Value:
    (x,), axes = v.operands, v.attrs["axes"]
    _, shifted, total = shifted_sum(x, axes)
    total = where(isfinite(total), total, like(total, np.nan))
    if is_narrow(v.dtype):  # the reciprocal of a large sum is no normal number
        return exp(shifted) / spread(total, x, axes)
    return exp(shifted) * spread(like(total, 1) / total, x, axes)  # one division a row, half an ulp more


def _softmax_change(g: Any, v: Value) -> Value:
    """The Jacobian is symmetric: this is its product with a tangent or a cotangent."""
    return mulz(g - _total(mulz(g, v), v), v)


def _softmax_reference(x, axis):
    total = np.sum(np.exp(x), axis=axis, keepdims=True)
    return np.exp(x) / np.where(np.isfinite(total), total, np.nan)


softmax = _register(
    "softmax", _softmax_reference, _softmax_parts,
    Custom(lambda t, v: _softmax_change(t[0], v), lambda g, v: (_softmax_change(g, v),)),
    Facts(underflow="always", indeterminate=True, shifted=True),
    "exp(x) / sum(exp(x)) along `axes`, without overflow.")

# --- its logarithm ----------------------------------------------------------------------------------------------------


def _log_softmax_parts(v: Value) -> Value:
    (x,), axes = v.operands, v.attrs["axes"]
    _, shifted, total = shifted_sum(x, axes)
    return shifted - spread(log(total), x, axes)


def _probabilities(v: Value) -> Value:
    return softmax(v.operands[0], axes=v.attrs["axes"])


log_softmax = _register(
    "log_softmax", lambda x, axis: x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True)), _log_softmax_parts,
    Custom(lambda t, v: t[0] - _total(mulz(t[0], _probabilities(v)), v),
           lambda g, v: (g - mulz(_total(g, v), _probabilities(v)),)),
    Facts(indeterminate=True, shifted=True, absolute=True),
    "x - logsumexp(x) along `axes`; exact digits are kept for large x, because x - max(x) comes first.")

# --- its logarithm at one place in each row ---------------------------------------------------------------------------


def _at_infer(t: TensorType, i: TensorType, axis: int) -> TensorType:
    check_axes("log_softmax_at", t, (axis,))
    check_kind("log_softmax_at", t, "f")
    out = t.with_shape([s for a, s in enumerate(t.shape) if a != axis])
    if i.dtype.kind not in "iu" or i.shape != out.shape:
        raise ShapeError(f"log_softmax_at: the places {i} are not one integer for each row of {t} along axis {axis}")
    return out


def _at_reference(x, i, axis):
    if i.size and not 0 <= int(i.min()) <= int(i.max()) < x.shape[axis]:
        raise IndexingError(f"log_softmax_at: an index is out of bounds for axis {axis} of size {x.shape[axis]}")
    logs = log_softmax.reference(x, axes=(axis,))
    places = np.expand_dims(i.astype(np.int64), axis)
    return np.array(np.squeeze(np.take_along_axis(logs, places, axis), axis), x.dtype)


def _picked(x: Value, i: Value, axis: int) -> Value:
    """The elements of ``x`` at the places ``i`` along an axis."""
    rows = [iota(shape=i.shape, axis=a, dtype=i.dtype) for a in range(i.ndim)]
    return gather(x, *rows[:axis], i, *rows[axis:], axes=tuple(range(x.ndim)))


def _at_parts(v: Value) -> Value:
    (x, i), axis = v.operands, v.attrs["axis"]
    top, _, total = shifted_sum(x, (axis,))
    return _picked(x, i, axis) - top - log(total)


def _at_jvp(tangents, v):
    (x, i), axis, t = v.operands, v.attrs["axis"], tangents[0]
    return _picked(t, i, axis) - sum_(mulz(t, softmax(x, axes=(axis,))), axes=(axis,))


def _at_vjp(g, v):
    """One-hot rows minus probabilities, in one go: nothing is scattered."""
    (x, i), axis = v.operands, v.attrs["axis"]
    there = eq(iota(shape=x.shape, axis=axis, dtype=i.dtype), spread(i, x, (axis,)))
    p = softmax(x, axes=(axis,))
    return mulz(spread(g, x, (axis,)), where(there, like(x, 1), like(x, 0)) - p), None


def _at_samples() -> Iterator[tuple[tuple, dict]]:
    rng = np.random.default_rng(0)
    for dtype in (np.float16, np.float32, np.float64):
        x = rng.standard_normal((3, 4)).astype(dtype)
        yield (x, np.array([3, 0, 1])), dict(axis=1)
        yield (x, np.array([2, 0, 1, 1], "i4")), dict(axis=0)
        yield (x[0], np.array(2)), dict(axis=0)
    yield (np.array([[1000.0, -1000.0], [-np.inf, 0.0]]), np.array([0, 1])), dict(axis=1)
    yield (np.empty((0, 2)), np.empty(0, "i8")), dict(axis=1)


def _at_batch(v: Value, operands, flags, n) -> Value:
    x, i = [o if f else broadcast(o, axes=tuple(range(1, o.ndim + 1)), shape=(n, *o.shape))
            for o, f in zip(operands, flags, strict=True)]
    return log_softmax_at(x, i, axis=v.attrs["axis"] + 1)


log_softmax_at = register(Op(
    "log_softmax_at", _at_infer, _at_reference, Custom(_at_jvp, _at_vjp), Decompose(_at_parts),
    frozenset({"selects"}), _at_samples,
    "The logarithm of softmax along `axis`, at one place in each row: minus the cross-entropy with one-hot labels.",
    facts=Facts(kinds="f", batch=_at_batch, absolute=True),
))  # fmt: skip
