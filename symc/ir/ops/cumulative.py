"""Running sums and products along one axis, and the linear recurrence z[i] = x[i] * z[i-1] + y[i] behind them.

`reverse` runs from the end of the axis to its start. The derivative of a running product is a linear recurrence, so it
divides by nothing and is right where elements are zero. That of a running logsumexp is one too, of factors up to 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from symc.errors import ShapeError
from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Facts
from symc.ir.op import Custom, Linear, Op, Running, register
from symc.ir.ops.arithmetic import conjugate, mulz
from symc.ir.ops.compare import eq
from symc.ir.ops.elementwise import check_arity, check_kind, check_same, like
from symc.ir.ops.leaf import scalar
from symc.ir.ops.logic import where
from symc.ir.ops.math import exp
from symc.ir.ops.shape import pad, slice_
from symc.ir.types import TensorType
from symc.ir.value import Value

NUMBERS = "iufc"


def check_axis(name: str, t: TensorType, axis: int) -> None:
    """The axis must be one of t's."""
    if not 0 <= axis < t.ndim:
        raise ShapeError(f"{name}: {t} has no axis {axis}")


def shifted(x: Value, axis: int, fill: float, *, reverse: bool) -> Value:
    """Every element moved one place up ``axis`` (down, if ``reverse``); ``fill`` comes in, the last falls out.

    The fill goes in before the last falls out, so that this is right for no elements too.
    """
    one = tuple(int(a == axis) for a in range(x.ndim))
    none = (0,) * x.ndim
    longer = pad(x, scalar(fill, x.dtype), low=none if reverse else one, high=one if reverse else none, interior=none)
    return slice_(longer, start=one if reverse else none, size=x.shape, step=(1,) * x.ndim)


def _infer(name: str, arity: int, kinds: str = NUMBERS):
    def infer(*types: TensorType, axis: int, reverse: bool) -> TensorType:
        check_arity(name, types, arity)
        check_same(name, types)
        check_kind(name, types[0], kinds)
        check_axis(name, types[0], axis)
        return types[0]

    return infer


def _running(ufunc: np.ufunc):
    def reference(x, axis, reverse):
        with np.errstate(all="ignore"):
            way = np.flip(x, axis) if reverse else x
            out = ufunc.accumulate(way, axis, dtype=x.dtype)
            return np.ascontiguousarray(np.flip(out, axis) if reverse else out)

    return reference


def _samples(arity: int, kinds: str = NUMBERS):
    def samples() -> Iterator[tuple[tuple, dict]]:
        rng = np.random.default_rng(3)
        for dtype in ARITHMETIC:
            if dtype.kind in kinds:
                xs = [rng.integers(0, 3, (3, 4)).astype(dtype) for _ in range(arity)]
                for axis, reverse in ((0, False), (1, False), (1, True)):
                    yield tuple(xs), dict(axis=axis, reverse=reverse)
        edge = np.array([1, -0.0, np.inf, 2, np.nan, 1, -np.inf])
        yield (edge,) * arity, dict(axis=0, reverse=False)
        for shape in ((0,), (2, 0), (1, 1)):
            yield (np.ones(shape),) * arity, dict(axis=len(shape) - 1, reverse=True)

    return samples


def _cumsum_transpose(g, v):
    return (cumsum(g, axis=v.attrs["axis"], reverse=not v.attrs["reverse"]),)


cumsum = register(Op(
    "cumsum", _infer("cumsum", 1), _running(np.add), Linear(_cumsum_transpose), Running("add"),
    samples=_samples(1), doc="The running sum along `axis`, in the operand's dtype.",
    facts=Facts(kinds=NUMBERS, rounding="short", indeterminate=True),
    defaults={"reverse": False},
))  # fmt: skip


def _before(v: Value, first: float) -> Value:
    """The results one step earlier."""
    return shifted(v, v.attrs["axis"], first, reverse=v.attrs["reverse"])


def _back(factor: Value, g: Value, v: Value) -> Value:
    """The total cotangent of each result: its own, and what reaches it from the next one."""
    axis, reverse = v.attrs["axis"], v.attrs["reverse"]
    return linrec(conjugate(shifted(factor, axis, 0, reverse=not reverse)), g, axis=axis, reverse=not reverse)


def _cumprod_jvp(tangents, v):
    return linrec(v.operands[0], tangents[0] * _before(v, 1), **v.attrs)


cumprod = register(Op(
    "cumprod", _infer("cumprod", 1), _running(np.multiply),
    Custom(_cumprod_jvp, lambda g, v: (_back(v.operands[0], g, v) * conjugate(_before(v, 1)),)), Running("mul"),
    samples=_samples(1), doc="The running product along `axis`, in the operand's dtype.",
    facts=Facts(kinds=NUMBERS, underflow="nonzero", indeterminate=True),
    defaults={"reverse": False},
))  # fmt: skip


def _linrec_reference(a, b, axis, reverse):
    out = b.copy()
    factors, rows = np.moveaxis(a, axis, 0), np.moveaxis(out, axis, 0)
    steps = range(len(rows) - 2, -1, -1) if reverse else range(1, len(rows))
    with np.errstate(all="ignore"):
        for i in steps:
            rows[i] += factors[i] * rows[i + 1 if reverse else i - 1]
    return out


def _linrec_jvp(tangents, v):
    a, b = tangents
    drive = b if a is None else a * _before(v, 0) if b is None else b + a * _before(v, 0)
    return linrec(v.operands[0], drive, **v.attrs)


def _linrec_vjp(g, v):
    total = _back(v.operands[0], g, v)
    return total * conjugate(_before(v, 0)), total


linrec = register(Op(
    "linrec", _infer("linrec", 2), _linrec_reference, Custom(_linrec_jvp, _linrec_vjp), Running("linear"),
    samples=_samples(2),
    doc="The linear recurrence z[i] = x[i] * z[i-1] + y[i] along `axis`, which starts with z[0] = y[0].",
    facts=Facts(kinds=NUMBERS, indeterminate=True),
    defaults={"reverse": False},
))  # fmt: skip

def _changes(v: Value) -> tuple[Value, Value]:
    """Factors of one step for the change of the result before it, and for the operand's: both at most 1."""
    (x,) = v.operands
    none = eq(v, -np.inf)
    y = where(none, like(v, 0), v)
    return exp(_before(v, -np.inf) - y), where(none, like(v, 0), exp(x - y))


def _logcumsumexp_jvp(tangents, v):
    before, now = _changes(v)
    return linrec(before, mulz(tangents[0], now), **v.attrs)


def _logcumsumexp_vjp(g, v):
    before, now = _changes(v)
    return (mulz(_back(before, g, v), now),)


logcumsumexp = register(Op(
    "logcumsumexp", _infer("logcumsumexp", 1, "f"), _running(np.logaddexp),
    Custom(_logcumsumexp_jvp, _logcumsumexp_vjp), Running("logaddexp"), samples=_samples(1, "f"),
    doc="log(cumsum(exp(x))) along `axis`, without overflow.",
    facts=Facts(kinds="f"),
    defaults={"reverse": False},
))  # fmt: skip

cumsum.facts.in_logs, cumprod.facts.in_logs = logcumsumexp, cumsum
