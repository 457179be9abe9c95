"""Logs without their arguments: the log of an exponential however it is spelled, and sums of exponentials, shifted.

What is asked for here has overflowed or vanished before its log is taken, where the log itself is ordinary.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, add, maximum, mulz, pow_
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq, gt, isfinite
from symc.ir.ops.elementwise import like
from symc.ir.ops.grad_control import stop_gradient
from symc.ir.ops.linalg import dot
from symc.ir.ops.logic import and_, where
from symc.ir.ops.math import exp, exp2, log, log1p, logaddexp, sigmoid, softplus, sqrt
from symc.ir.ops.reduce import logsumexp, spread, sum_, sup
from symc.ir.ops.shape import broadcast
from symc.ir.ops.softmax import log_softmax, softmax
from symc.ir.record import dataclass
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.engine.terms import Term, bare, flatten, join

#: Products and powers of exponentials are looked into so far.
DEPTH = 3


# --- exponents --------------------------------------------------------------------------------------------------------


def exponent_of(x: Value, depth: int = DEPTH) -> Value | None:
    """The log of x, where x is obviously an exponential, or a product, power or sum of them."""
    x = bare(x)
    if x.op is exp:
        return x.operands[0]
    if x.op is softmax:
        return log_softmax(x.operands[0], axes=x.attrs["axes"])
    if x.op is exp2:
        return x.operands[0] * float(np.log(2))
    if not depth:
        return None
    if x.op.facts.in_logs:
        e = exponent_of(x.operands[0], depth - 1)
        return None if e is None else x.op.facts.in_logs(e, **x.attrs)
    if x.op is cast and x.dtype.kind == x.operands[0].dtype.kind == "f":
        e = exponent_of(x.operands[0], depth - 1)
        return None if e is None else cast(e, dtype=x.dtype)
    if x.op is pow_:
        return _exponent_of_power(x, depth)
    return _exponent_of_product(x, depth) if x.op.name in ("mul", "div") else None


def _exponent_of_power(x: Value, depth: int) -> Value | None:
    base, power = x.operands
    number = splat_of(power)
    if number is not None and np.isfinite(number):
        e = exponent_of(base, depth - 1)
        return None if e is None else e * power
    number = splat_of(base)
    return power * splat(np.log(number), x.type) if number is not None and 0 < number < np.inf else None


def _exponent_of_product(x: Value, depth: int) -> Value | None:
    found: list[Term] = []
    for s, y in flatten(x, "product"):
        e = exponent_of(y, depth - 1)
        if e is None:
            return None
        found.append((s, e))
    return join(found, "sum")


def log_of(x: Value, facts: Callable, depth: int = DEPTH) -> tuple[Value | None, bool]:
    """The log of x, if x is a positive product of exponentials, sums of such, and what is known to be positive; and
    whether an exponential is there."""
    number = splat_of(x)
    if number is not None:
        return (splat(np.log(number), x.type), False) if 0 < number < np.inf else (None, False)
    parts: list[Term] = []
    several = False
    for s, y in flatten(x, "product"):
        e, inside = log_of_factor(y, facts, depth)
        if e is None:
            return None, False
        several = several or inside
        parts.append((s, e))
    return join(parts, "sum"), several


def log_of_factor(y: Value, facts: Callable, depth: int = DEPTH) -> tuple[Value | None, bool]:
    """``log_of`` what is no product."""
    e = exponent_of(y, depth)
    if e is not None:
        return e, True
    if y.op is sigmoid:
        return -softplus(-y.operands[0]), True
    if y.op is sum_ and y.operands[0].op is sigmoid:
        return logsumexp(-softplus(-y.operands[0].operands[0]), **y.attrs), True
    if y.op is add and depth:
        return log_of_sum(y, facts, depth - 1)
    if y.op in (sqrt, broadcast) and depth and y.op.facts.in_logs:
        e, inside = log_of(y.operands[0], facts, depth - 1)
        if e is not None and inside:
            return y.op.facts.in_logs(e, **y.attrs), True
    if not facts(y).positive:
        return None, False
    number = splat_of(y)
    return (log(y) if number is None else splat(np.log(number), y.type)), False


def log_of_sum(x: Value, facts: Callable, depth: int = DEPTH) -> tuple[Value | None, bool]:
    """``log_of`` a sum of a few."""
    found: list[Value] = []
    exponentials = False
    for s, y in flatten(x, "sum"):
        e, inside = log_of(y, facts, depth) if s > 0 else (None, False)
        if e is None:
            return None, False
        exponentials = exponentials or inside
        found.append(e)
    return functools.reduce(logaddexp, found), exponentials


# --- shifted sums -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Weighted:
    """A term ``outer * sum(w * exp(e), axes)``; without axes, ``w * exp(e)``; without an exponent, ``w``."""

    w: Value | None
    e: Value | None
    axes: tuple[int, ...] | None = None
    outer: Value | None = None

    def top(self, like_: Value, facts: Callable) -> Value:
        """The greatest exponent that counts: not where the weight is 0; where it is infinite nothing is shifted, as
        inf * exp(x) is inf, but exp(x - m) may be 0."""
        e = self.e if self.e is not None else like(like_, 0)
        if self.w is not None:
            e = _where_weighted(self.w, e, facts)
        if self.axes is not None:
            e = sup(e, axes=self.axes)
        return e if self.outer is None else _where_weighted(self.outer, e, facts)

    def shifted(self, m: Value, facts: Callable) -> Value:
        """The term times exp(-m). What has no weight may overflow, and is not counted."""
        e = -m if self.e is None else self.e - (m if self.axes is None else spread(m, self.e, self.axes))
        x = exp(e)
        if self.w is not None:
            x = _times(self.w, x, facts)
        x = x if self.axes is None else sum_(x, axes=self.axes)
        return x if self.outer is None else _times(self.outer, x, facts)


def _where_weighted(w: Value, e: Value, facts: Callable) -> Value:
    if not facts(w).nonzero:
        e = where(eq(w, 0), like(e, -np.inf), e)
    return e if facts(w).finite else where(isfinite(w), e, like(e, np.inf))


def _times(w: Value, x: Value, facts: Callable) -> Value:
    return w * x if facts(w).nonzero else mulz(w, x)


def weighted(x: Value, depth: int = DEPTH) -> Weighted:
    """``x`` as a term: of its factors one may be a sum of weighted exponentials."""
    exponents: list[Term] = []
    weights: list[Term] = []
    inner: Weighted | None = None
    for s, y in flatten(x, "product"):
        e = exponent_of(y, depth)
        found = weighted_sum(y) if e is None and s > 0 and inner is None else None
        if e is not None:
            exponents.append((s, e))
        elif found is not None:
            inner = found
        else:
            weights.append((s, y))
    e = join(exponents, "sum") if exponents else None
    w = join(weights, "product") if weights else None
    if inner is None:
        return Weighted(x if e is None else w, e)
    assert inner.e is not None and inner.axes is not None
    return Weighted(inner.w, inner.e if e is None else inner.e + spread(e, inner.e, inner.axes), inner.axes, w)


def weighted_sum(y: Value) -> Weighted | None:
    """A sum over axes of weighted exponentials, or a product of an array with a vector that is one."""
    if y.op is dot:
        return _weighted_dot(y)
    if y.op is not sum_:
        return None
    term = weighted(y.operands[0], 1)
    return None if term.e is None or term.axes is not None or is_shifted(term.e) else \
        Weighted(term.w, term.e, y.attrs["axes"])


def _weighted_dot(y: Value) -> Weighted | None:
    for k in (0, 1):
        e, w = exponent_of(y.operands[k]), y.operands[1 - k]
        if e is None or is_shifted(e) or w.ndim != 1 or y.attrs["batch"] != ((), ()) or e.ndim < 1:
            continue
        axes = y.attrs["contract"][k]
        return Weighted(broadcast(w, axes=axes, shape=e.shape) if e.ndim > 1 else w, e, axes)
    return None


def is_shifted(e: Value) -> bool:
    """True if the greatest exponent has been subtracted already."""
    for _, y in flatten(e, "sum"):
        while y.op is where or "movement" in y.op.traits:  # along an axis of length 1 it is reshaped, not repeated
            y = y.operands[y.op is where]
        if y.op in (stop_gradient, sup):
            return True
    return False


def log_of_shifted(terms: Sequence[tuple[int, Weighted]], like_: Value, facts: Callable, plus_one: bool) -> Value:
    """The log of a sum of terms (and 1), by the greatest of their exponents.

    No derivative comes through the shift: what is made of it does not depend on it.
    """
    tops = [t.top(like_, facts) for _, t in terms]
    top = functools.reduce(maximum, tops)
    size = top if plus_one else abs_(top)  # beside 1 an exponential may vanish
    known = and_(isfinite(top), gt(size, float(np.log(np.finfo(like_.dtype).max)) / 2))  # elsewhere it is itself
    top = stop_gradient(where(known, top, like(top, 0)))
    total = join([(s, t.shifted(top, facts)) for s, t in terms], "sum")
    # Shifted, the 1 is exp(-top); added as expm1(-top) to log1p's, it would hide a sum that is small beside 1.
    return (where(known, log(total + exp(-top)), log1p(total)) if plus_one else log(total)) + top
