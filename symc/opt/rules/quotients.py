"""Quotients of exponentials and of sums of them: inf / inf, where the quotient is ordinary.

A gradient is in trouble first: of 1 / (2 + exp(x)) it is 0 * inf where exp(x) overflows.
"""

from __future__ import annotations

import numpy as np

from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, add
from symc.ir.ops.compare import ge, isfinite
from symc.ir.ops.cumulative import cumsum
from symc.ir.ops.elementwise import like
from symc.ir.ops.grad_control import stop_gradient
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.ops.logic import where
from symc.ir.ops.math import exp, expm1, sigmoid, tanh
from symc.ir.ops.reduce import other_axes, spread, sum_
from symc.ir.ops.shape import broadcast
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves, matrix
from symc.opt.engine.terms import Term, flatten, join, number_and, scale_apart, without
from symc.opt.facts.log_forms import Weighted, exponent_of, is_shifted, log_of_sum, weighted, weighted_sum

# --- sums of a few ----------------------------------------------------------------------------------------------------


def _scaled_exp(x: Value) -> tuple[float, Value] | None:
    """``x`` as k * exp(e) for a positive number k: (k, e)."""
    number, rest = scale_apart(x)
    if len(rest) != 1 or rest[0][1].op is not exp:
        return None
    ((s, y),) = rest
    return number, y.operands[0] if s > 0 else -y.operands[0]


@rewrite(
    "div",
    "mul",
    kinds="f",
    weight=3,
    needs=["+"],
    met=["exp"],
    tags=["conditioned"],
    equation="x / (2 + 3 * exp(y)) -> x * sigmoid(-(y + log(3/2))) / 2; exp(y) / (2 + 3 * exp(y)) likewise",
    examples=lambda: [
        example(lambda x, y: x / (exp(y) + 2), leaves(2)),
        example(lambda x, y: x / (exp(y) * 3 + 1), leaves(2)),
        example(lambda x, y: x * exp(y) / (exp(y) * 3 + 2), leaves(2)),
    ],
    misses=lambda: [
        example(lambda x, y: x / (exp(y) + -2), leaves(2)),
        example(lambda x, y: x / (exp(y) + x), leaves(2)),
    ],
)
def quotient_by_number_and_exp(v: Value) -> Value | None:
    """The gradient is 0 * inf where exp(y) overflows, and the quotient with exp(y) above inf / inf."""
    terms = flatten(v, "product")
    for j, (t, d) in enumerate(terms):
        found = number_and(d, _scaled_exp) if t < 0 else None
        if found is None:
            continue
        c, k, e = found
        ratio = float(np.log(k / c)) if k != c else 0.0
        shifted = e + ratio if ratio else e
        i = next((n for n, (s, x) in enumerate(terms) if s > 0 and x.op is exp and x.operands[0] is e), None)
        made = sigmoid(-shifted) if i is None else sigmoid(shifted)
        number = c if i is None else k
        if number != 1:
            made = made * (1 / number)
        return join([(1, made), *without(terms, j, j if i is None else i)], "product")
    return None


@rewrite(
    "div",
    "mul",
    kinds="f",
    weight=2,
    needs=["exp"],
    tags=["conditioned"],
    equation="exp(x) / (1 + exp(x) + exp(y)) -> exp(x - log(1 + exp(x) + exp(y))); so for 1 + sum(exp(x)), and for "
    "cumsum(exp(x))",
    examples=lambda: [
        (lambda e: e / cumsum(e, axis=1, reverse=False))(exp(matrix())),
        example(lambda x, y: exp(x) / (exp(x) + exp(y) + 1), leaves(2)),
        (lambda e: e / spread(sum_(e, axes=(1,)) + 0.5, e, (1,)))(exp(matrix())),
    ],
    misses=lambda: [example(lambda x, y: exp(x) / (exp(x) + y), leaves(2))],
)
def exp_over_sum(v: Value, context) -> Value | None:
    """inf / inf for large x: a softmax with one more logit."""
    terms = flatten(v, "product")
    i = next((n for n, (s, x) in enumerate(terms) if s > 0 and x.op is exp), None)
    for j, (t, d) in enumerate(terms):
        below = d.operands[0] if d.op is broadcast else d
        if i is None or t > 0 or below.op not in (add, cumsum):
            continue
        found, inside = log_of_sum(below, context.facts) if below.op is add else (exponent_of(below), True)
        if found is None or not inside:
            continue
        low = broadcast(found, **d.attrs) if d.op is broadcast else found
        return join([(1, exp(terms[i][1].operands[0] - low)), *without(terms, i, j)], "product")
    return None


@rewrite(
    "div",
    kinds="f",
    weight=2,
    needs=["+"],
    met=["exp"],
    tags=["conditioned"],
    equation="2 / (1 + exp(x) + exp(y)) -> 2 * exp(-log(1 + exp(x) + exp(y)))",
    examples=lambda: [
        example(lambda x, y: 1 / (exp(x) + exp(y) + 1), leaves(2)),
        example(lambda x, y: 2 / (exp(x) + exp(y)), leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: x / (exp(x) + exp(y) + 1), leaves(2))],
)
def number_over_sum_of_exp(v: Value, context) -> Value | None:
    """The gradient is 0 * inf where an exponential overflows."""
    n, d = v.operands
    if splat_of(n) is None or d.op is not add:
        return None
    found, inside = log_of_sum(d, context.facts)
    return n * exp(-found) if found is not None and inside else None


@rule(tags=["conditioned"])
def difference_over_sum_of_exp(x, y):
    """inf / inf for large x or y, 0 / 0 for very negative ones."""
    return (exp(x) - exp(y)) / (exp(x) + exp(y)), tanh((x - y) * 0.5)


@rule
def coth_of_exponentials(x):
    """inf / inf for large x."""
    return (exp(x) + exp(-x)) / (exp(x) - exp(-x)), 1 / tanh(x)


@rule(tags=["signed-zero"], when=lambda x, *, facts: not facts(x).nonpositive)
def exp_over_expm1(x):
    """inf / inf for large x."""
    size = -abs_(x)
    return exp(x) / expm1(x), where(ge(x, 0), splat(-1.0, x.type), exp(size)) / expm1(size)


# --- sums over axes ---------------------------------------------------------------------------------------------------


def _sum_of_exp(d: Value) -> Weighted | None:
    """A sum over axes of weighted exponentials, which may have been repeated."""
    return weighted_sum(d.operands[0] if d.op is broadcast else d)


def _attention() -> Value:
    e = exp(matrix())
    x = dot(e, leaves(1, {}, (4, 2))[0], contract=((1,), (0,)), batch=((), ()))
    return x / broadcast(sum_(e, axes=(1,)), axes=(0,), shape=(3, 2))


@rewrite(
    "div",
    "mul",
    kinds="f",
    weight=3,
    met=["exp", "sum"],
    tags=["conditioned"],
    equation="sum(u * exp(x)) / sum(w * exp(x)) -> sum(u * exp(x - m)) / sum(w * exp(x - m)), m the greatest x where w "
    "is not 0; so for exp(x) @ u, and for u * exp(x)",
    examples=lambda: [
        (lambda e, y: sum_(e * y, axes=(1,)) / sum_(e, axes=(1,)))(exp(matrix()), matrix()),
        (lambda e, y: (lambda p: p / spread(sum_(p, axes=(1,)), e, (1,)))(e * y))(exp(matrix()), matrix()),
        _attention(),
    ],
    misses=lambda: [
        (lambda e, y: sum_(e * y, axes=(0,)) / sum_(e, axes=(0,)))(exp(matrix()), exp(matrix())),
    ],
)
def quotient_of_sums_of_exp(v: Value, context) -> Value | None:
    """inf / inf for large x, 0 / 0 for very negative ones: a mean under a softmax, a softmax with weights or a mask."""
    terms = flatten(v, "product")
    for j, (t, d) in enumerate(terms):
        low = _sum_of_exp(d) if t < 0 else None
        if low is None:
            continue
        assert low.e is not None and low.axes is not None
        top = low.top(v, context.facts)
        top = stop_gradient(where(isfinite(top), top, like(top, 0)))
        for i, (s, n) in enumerate(terms):
            rest = without(terms, i, j)
            made = _shifted_numerator(n, d, low, top, rest, context.facts) if s > 0 else None
            if made is not None:
                below = low.shifted(top, context.facts)
                below = broadcast(below, **d.attrs) if d.op is broadcast else below
                return join([(1, made), (-1, below), *rest], "product")
    return None


@rewrite(
    "div",
    "mul",
    kinds="f",
    met=["exp", "sum"],
    tags=["conditioned"],
    equation="sum(exp(x))**2 / sum(exp(y)) -> exp(2 * logsumexp(x) - logsumexp(y))",
    examples=lambda: [
        (lambda s, t: s * s / t)(sum_(exp(matrix()), axes=(1,)), sum_(exp(matrix() * 2), axes=(1,))),
    ],
    misses=lambda: [(lambda s, t: s / t)(sum_(exp(matrix()), axes=(1,)), sum_(matrix(), axes=(1,)))],
)
def quotient_of_different_sums_of_exp(v: Value) -> Value | None:
    """inf / inf for large x, 0 / 0 for very negative ones: the effective size of a sample."""
    terms = flatten(v, "product")
    sums = [k for k, (_, x) in enumerate(terms) if x.op is sum_ and not _is_shifted_sum(x)]
    found = [(k, terms[k][0], e) for k in sums if (e := exponent_of(terms[k][1])) is not None]
    if len({s for _, s, _ in found}) < 2:
        return None
    made = exp(join([(s, e) for _, s, e in found], "sum"))
    return join([(1, made), *without(terms, *[k for k, _, _ in found])], "product")


def _is_shifted_sum(x: Value) -> bool:
    return x.operands[0].op is exp and is_shifted(x.operands[0].operands[0])


def _shifted_numerator(n: Value, d: Value, low: Weighted, top: Value, rest: list[Term], facts) -> Value | None:
    """The numerator times exp(-m), if it has the exponentials that are below, and their weights, which are
    taken from the rest."""
    assert low.e is not None and low.axes is not None
    if n.op is exp:
        same = n.operands[0] is low.e and d.op is broadcast and d.attrs["axes"] == other_axes(n, low.axes)
        if not same:
            return None
        weights = flatten(low.w, "product") if low.w is not None else []
        counted = bool(weights) and all(w in rest for w in weights)
        for w in weights if counted else ():
            rest.remove(w)
        return Weighted(low.w if counted else None, low.e).shifted(spread(top, n, low.axes), facts)
    if n.op is dot:
        return _shifted_product(n, d, low, top, facts)
    t = weighted_sum(n)
    return None if t is None or t.e is not low.e or t.axes != low.axes or d.op is broadcast else t.shifted(top, facts)


def _shifted_product(n: Value, d: Value, low: Weighted, top: Value, facts) -> Value | None:
    for k, x in enumerate(n.operands):
        t, other = weighted(x), n.operands[1 - k]
        if t.e is not low.e or t.axes is not None or n.attrs["batch"] != ((), ()):
            continue
        free = len(free_axes(other, n.attrs["contract"][1 - k], ()))
        place = tuple(range(top.ndim)) if k == 0 else tuple(range(free, n.ndim))
        along = d.attrs["axes"] if d.op is broadcast else tuple(range(d.ndim))
        if tuple(sorted(n.attrs["contract"][k])) == low.axes and along == place:
            operands = list(n.operands)
            operands[k] = t.shifted(spread(top, x, low.axes), facts)
            return dot(*operands, **n.attrs)
    return None
