"""Logs of sums of exponentials, which overflow or vanish where the log is ordinary."""

from __future__ import annotations

import numpy as np

from symc.ir.ops.arithmetic import add, maximum, sub
from symc.ir.ops.assume import promised
from symc.ir.ops.compare import eq, isfinite
from symc.ir.ops.elementwise import like
from symc.ir.ops.grad_control import stop_gradient
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.ops.logic import and_, where
from symc.ir.ops.math import exp, log, log1mexp, log1p, sigmoid, softplus
from symc.ir.ops.reduce import logsumexp, max_, min_, spread, sum_, sup
from symc.ir.ops.shape import broadcast
from symc.ir.record import replace
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves, matrix
from symc.opt.engine.terms import flatten, is_number, join, parts, without
from symc.opt.facts.log_forms import (
    exponent_of,
    is_shifted,
    log_of,
    log_of_factor,
    log_of_shifted,
    log_of_sum,
    weighted,
)

Axes = tuple[int, ...]


def rows(x: Value) -> Value:
    """One number a row, in all of it."""
    return spread(x, matrix(), (1,))


def without_shift(x: Value, axes: Axes) -> tuple[Value, Value | None]:
    """``x`` as ``y - m`` where m does not vary along ``axes``: (y, m reduced), else (x, None)."""
    if x.op is sub and x.operands[1].op is broadcast:
        y, b = x.operands
        if b.attrs["axes"] == tuple(a for a in range(x.ndim) if a not in axes):
            return y, b.operands[0]
    return x, None


def may_go(m: Value, y: Value, axes: Axes, context) -> bool:
    """True if ``m`` is nan only where y is along the axes, so that no nan is lost without it: it is the greatest y."""
    m = m.operands[0] if m.op is stop_gradient else m
    return not context.facts(m).nan or m.op in (max_, min_, sup) and m.operands[0] is y and m.attrs["axes"] == axes


# --- sums of a few ----------------------------------------------------------------------------------------------------


@rewrite(
    "log",
    "log1p",
    kinds="f",
    needs=["add"],
    weight=4,
    tags=["conditioned"],
    equation="log(exp(x) + 3 * exp(y) + 2) -> logaddexp(logaddexp(x, y + log(3)), log(2))",
    examples=lambda: [
        example(lambda x, y: log(exp(x) + exp(y)), leaves(2)),
        example(lambda x, y: log(exp(x) + exp(y) * 3.0 + exp(x * y) + 2.0), leaves(2)),
        example(lambda x, y: log1p(exp(x) + exp(y)), leaves(2)),
        log(sum_(exp(matrix()), axes=(1,)) + exp(leaves(1, {}, (3,))[0])),
    ],
    misses=lambda: [
        example(lambda x, y: log(exp(x) + y), leaves(2)),
        example(lambda x, y: log(exp(x) + exp(y) + -2.0), leaves(2)),
    ],
)
def log_add_exp(v: Value, context) -> Value | None:
    """The exponentials overflow or underflow where the log is ordinary."""
    (a,) = v.operands
    if a.op is not add or v.op is log and sum_of_one_and_exp(a):
        return None
    found, exponentials = log_of_sum(a, context.facts)
    if found is None or not exponentials:
        return None
    return softplus(found) if v.op is log1p else found


def sum_of_one_and_exp(a: Value) -> bool:
    """True if ``a`` is 1 + x, which is for log1p."""
    return len(flatten(a, "sum")) == 2 and any(is_number(x, 1) for x in a.operands)


@rewrite(
    "log1p",
    kinds="f",
    weight=3,
    tags=["conditioned"],
    equation="log1p(3 * exp(x)) -> softplus(x + log(3)); log1p(sum(exp(x), axes)) -> softplus(logsumexp(x, axes))",
    examples=lambda: [
        example(lambda x, y: log1p(exp(x) * 3.0), leaves(2)),
        example(lambda x, y: log1p(exp(x) * exp(y) / 2.0), leaves(2)),
        example(lambda x, y: log1p((exp(x) + exp(y)) * exp(y)), leaves(2)),
        log1p(sum_(exp(matrix()), axes=(1,))),
    ],
    misses=lambda: [example(lambda x, y: log1p(x * y), leaves(2))],
)
def log1p_of_product_with_exp(v: Value, context) -> Value | None:
    """exp(x) overflows where the log is ordinary."""
    (x,) = v.operands
    if x.op.name in ("exp", "add", "sub"):
        return None
    found, exponentials = log_of(x, context.facts)
    return softplus(found) if found is not None and exponentials else None


@rule(domain={"x": (-300, 300), "y": (-300, 300)})
def log_sub_exp(x, y):
    """exp(x) - exp(y) overflows, and cancels for equal arguments. (The log of nothing minus nothing is -inf.)"""
    return log(exp(x) - exp(y)), x + log1mexp(where(eq(maximum(x, y), -np.inf), like(x, 0), y - x))


# --- sums over axes ---------------------------------------------------------------------------------------------------


@rewrite(
    "log",
    kinds="f",
    weight=3,
    needs=["sum"],
    equation="log(sum(exp(x), axes)) -> logsumexp(x, axes); so for sigmoids",
    examples=lambda: [
        log(sum_(sigmoid(matrix()), axes=(1,))),
        log(sum_(exp(matrix()), axes=(1,))),
        log(sum_(exp(matrix()), axes=(0, 1))),
    ],
    misses=lambda: [log(sum_(matrix(), axes=(1,)))],
)
def log_sum_exp(v: Value, context) -> Value | None:
    """exp(x) overflows or vanishes where the log of its sum is ordinary."""
    (s,) = v.operands
    found, inside = log_of_factor(s, context.facts) if s.op is sum_ else (None, False)
    return found if inside else None


def _shift(top: Value, weight: Value | None, e: Value, axes: Axes) -> tuple[Value, Value]:
    """The shift by ``top`` where it is finite and the greatest ``weight`` of all is; the exponents minus that."""
    finite = isfinite(top)
    if weight is not None:
        finite = and_(finite, broadcast(isfinite(weight), axes=(), shape=top.shape) if top.ndim else isfinite(weight))
    top = stop_gradient(where(finite, top, like(top, 0)))
    return top, e - spread(top, e, axes)


@rewrite(
    "log",
    "log1p",
    kinds="f",
    weight=2,
    tags=["conditioned"],
    equation="log(sum(w * exp(x), axes)) -> m + log(sum(w * exp(x - m), axes)), m the greatest x where w is not 0; "
    "so for sums of a few, times what does not vary along the axes, and for log1p",
    examples=lambda: [
        log(sum_(exp(matrix()) * matrix(), axes=(1,))),
        log(sum_(exp(matrix()) / rows(leaves(1, {}, (3,))[0]) * matrix(), axes=(0,))),
        log1p(sum_(exp(matrix()) * matrix(), axes=(1,)) / 4),
        log(_product(exp(matrix()), leaves(1, {}, (4,))[0])),
        example(lambda x, y, z: log(z * exp(x) + (1 - z) * exp(y)), leaves(3)),
    ],
    misses=lambda: [log(sum_(matrix() * matrix(), axes=(1,)))],
)
def log_sum_weighted_exp(v: Value, context) -> Value | None:
    """exp(x) overflows or vanishes where the log of the sum is ordinary, whatever the weights, negative ones too."""
    (x,) = v.operands
    terms = [(s, weighted(y)) for s, y in parts(x, lambda y: weighted(y).e is not None)]
    exponents = [t.e for _, t in terms if t.e is not None]
    if not exponents or any(map(is_shifted, exponents)):
        return None
    given = None
    if len(terms) == 1 and v.op is log:
        ((s, t),) = terms
        if t.axes is None:
            return None  # for log_of_product_with_exp
        e, given = without_shift(exponents[0], t.axes)
        terms = [(s, replace(t, e=e))]
    made = log_of_shifted(terms, v, context.facts, v.op is log1p)
    return made if given is None else made - given


@rewrite(
    "log",
    kinds="f",
    weight=3,
    needs=["dot"],
    tags=["conditioned"],
    equation="log(exp(x) @ w) -> m + log(exp(x - m) @ w), m the greatest x; w positive",
    examples=lambda: [
        log(_product(exp(matrix()), exp(leaves(1, {}, (4, 2))[0]) + 1)),
        log(_product(exp(leaves(1, {}, (2, 4))[0]) + 1, exp(matrix()), 1, 1)),
    ],
    misses=lambda: [log(_product(exp(matrix()), leaves(1, {}, (4, 2))[0]))],
)
def log_dot_exp(v: Value, context) -> Value | str | None:
    """exp(x) overflows or vanishes where the log of the product is ordinary."""
    (d,) = v.operands
    if d.op is not dot or d.attrs["batch"] != ((), ()):
        return None
    for k in (0, 1):
        e, w, axes = exponent_of(d.operands[k]), d.operands[1 - k], d.attrs["contract"][k]
        if e is None:
            continue
        if w.ndim == 1:
            return None  # for log_sum_weighted_exp
        if not context.facts(w).positive or is_shifted(e):
            return "the weights may be 0 or negative"
        greatest = None if context.facts(w).finite else sup(w, axes=tuple(range(w.ndim)))
        top, shifted = _shift(sup(e, axes=tuple(sorted(axes))), greatest, e, tuple(sorted(axes)))
        operands = list(d.operands)
        operands[k] = exp(shifted)
        free = len(free_axes(w, d.attrs["contract"][1 - k], ()))
        place = tuple(range(top.ndim)) if k == 0 else tuple(range(free, v.ndim))
        return log(dot(*operands, **d.attrs)) + (broadcast(top, axes=place, shape=v.shape) if free else top)
    return None


def _product(x: Value, y: Value, i: int = -1, j: int = 0) -> Value:
    return dot(x, y, contract=((i % x.ndim,), (j,)), batch=((), ()))


# --- logsumexp --------------------------------------------------------------------------------------------------------


@rewrite(
    "logsumexp",
    kinds="f",
    needs=["logsumexp"],
    equation="logsumexp(logsumexp(x, a), b) -> logsumexp(x, a and b)",
    examples=lambda: [logsumexp(logsumexp(leaves(1, {}, (3, 4, 2))[0], axes=(1,)), axes=(1,))],
)
def logsumexp_of_logsumexp(v: Value, context) -> Value | None:
    """One reduction for two."""
    (x,) = v.operands
    if x.op is not logsumexp or not context.single_use(x):
        return None
    inner = x.attrs["axes"]
    kept = [a for a in range(x.operands[0].ndim) if a not in inner]
    return logsumexp(x.operands[0], axes=tuple(sorted((*inner, *[kept[a] for a in v.attrs["axes"]]))))


def _put_back(x: Value, m: Value) -> Value:
    return m + logsumexp(x - rows(m), axes=(1,))


def _greatest() -> tuple[Value, Value]:
    x = matrix()
    return x, max_(x, axes=(1,))


@rewrite(
    "add",
    "sub",
    kinds="f",
    needs=["logsumexp"],
    equation="m + logsumexp(x - m) -> logsumexp(x) for m = max(x), or any m that is not nan",
    examples=lambda: [_put_back(*_greatest()), _put_back(matrix(), promised(leaves(1, {}, (3,))[0], "finite"))],
    misses=lambda: [_put_back(matrix(), leaves(1, {}, (3,))[0])],
)
def shift_put_back(v: Value, context) -> Value | None:
    """A shift that was made by hand and is put back; logsumexp makes its own. (Alone, the shifted one is the more
    accurate: a large m is not in its result.)"""
    terms = flatten(v, "sum")
    for i, (s, x) in enumerate(terms):
        y, m = without_shift(x.operands[0], x.attrs["axes"]) if x.op is logsumexp and s > 0 else (x, None)
        for j, (t, other) in enumerate(terms):
            if m is not None and other is m and t > 0 and may_go(m, y, x.attrs["axes"], context):
                rest = without(terms, i, j)
                return join([*rest, (1, logsumexp(y, axes=x.attrs["axes"]))], "sum")
    return None
