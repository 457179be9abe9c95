"""Logarithms of exponentials, powers and products, and exponentials of logarithms.

The argument of a log overflows or vanishes long before the log does.
"""

from __future__ import annotations

import numpy as np

from symc.ir.op import splat
from symc.ir.ops.arithmetic import abs_, add, div, maximum, mod, mul, mulz, pow_, sign
from symc.ir.ops.compare import eq, ge, gt, lt
from symc.ir.ops.cumulative import cumprod, cumsum, logcumsumexp
from symc.ir.ops.elementwise import like
from symc.ir.ops.index import gather
from symc.ir.ops.logic import where
from symc.ir.ops.math import exp, log, log1p, log2, log10, sqrt
from symc.ir.ops.reduce import prod, sum_
from symc.ir.ops.softmax import softmax
from symc.ir.text import splat_of
from symc.ir.traverse import rebuild
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves, matrix
from symc.opt.engine.terms import Term, cancels_first, flatten, join, number_apart, scale_apart
from symc.opt.facts.log_forms import exponent_of, log_of, log_of_factor, log_of_sum

POSITIVE = {"x": (1e-8, 1e8)}


def where_nonnegative(x: Value) -> Value:
    """x, and nan where it is negative."""
    return where(ge(x, 0), x, splat(np.nan, x.type))


# --- logs of exponentials ---------------------------------------------------------------------------------------------


@rule
def log_of_exp(x):
    """exp(x) overflows where its log is x."""
    return log(exp(x)), x


@rewrite(
    "log",
    kinds="f",
    needs=["*"],
    weight=3,
    tags=["conditioned"],
    equation="log(exp(x) * y) -> x + log(y); log(exp(x) / y) -> x - log(y)",
    examples=lambda: [
        example(lambda x, y: log(exp(x) * y), leaves(2)),
        example(lambda x, y: log(exp(x) / y), leaves(2)),
        example(lambda x, y: log(exp(x) * 3.0), leaves(2)),
        log(softmax(matrix(), axes=(1,)) * matrix()),
    ],
    misses=lambda: [example(lambda x, y: log(x * y), leaves(2)), example(lambda x, y: log(x / y), leaves(2))],
)
def log_of_product_with_exp(v: Value, context) -> Value | None:
    """exp(x) overflows or vanishes where the log of the product, or quotient, is ordinary: densities. (At y of -inf and
    -0.0 as in ``log_of_reciprocal``.)"""
    if v.operands[0].op not in (mul, div):
        return None
    sum_of: list[Term] = []
    rest: list[Term] = []
    for s, x in flatten(v.operands[0], "product"):
        e, inside = log_of_factor(x, context.facts)
        if e is None or not inside:
            rest.append((s, x))
        else:
            sum_of.append((s, e))
    if not sum_of:
        return None
    if rest:
        sum_of.append((1, log(join(rest, "product"))) if any(s > 0 for s, _ in rest) else
                      (-1, log(join([(1, x) for _, x in rest], "product"))))  # fmt: skip
    return join(sum_of, "sum")


@rewrite(
    "log",
    kinds="f",
    weight=2,
    equation="log(cumsum(exp(x))) -> logcumsumexp(x), also with positive weights; so for roots, powers and products",
    examples=lambda: [
        log(cumsum(exp(matrix()) * 2.0, axis=1, reverse=False)),
        log(cumsum(exp(matrix()), axis=1, reverse=False)),
        log(cumprod(exp(matrix()), axis=0, reverse=True)),
        example(lambda x: log(pow_(exp(x), like(x, 0.3))), leaves(1)),
    ],
    misses=lambda: [log(cumsum(matrix(), axis=1, reverse=False))],
)
def log_of_exponential(v: Value, context) -> Value | None:
    """The exponentials overflow or vanish where the log is ordinary."""
    (x,) = v.operands
    found = exponent_of(x) if x.op in (cumsum, cumprod, sqrt, pow_) else None
    if found is None and x.op is cumsum:
        e, inside = log_of(x.operands[0], context.facts)
        return logcumsumexp(e, **x.attrs) if e is not None and inside else None
    return found


@rewrite(
    "log",
    kinds="f",
    equation="log(gather(exp(x), i)) -> gather(x, i); so for softmax, and for slice, reshape, transpose, broadcast",
    examples=lambda: [
        log(gather(exp(matrix()), leaves(1, {0: "i64"}, (2,))[0], axes=(0,))),
        log(gather(softmax(matrix(), axes=(1,)), leaves(1, {0: "i64"}, (2,))[0], axes=(0,))),
    ],
)
def log_of_moved_exp(v: Value) -> Value | None:
    """The log of a chosen softmax, however it is chosen: exp(x) underflows where x is ordinary."""
    chain = []
    x = v.operands[0]
    while x.op is gather or "movement" in x.op.traits and len(x.operands) == 1:
        chain.append(x)
        x = x.operands[0]
    e = exponent_of(x) if chain else None
    if e is None:
        return None
    for moved in reversed(chain):
        e = rebuild(moved, [e, *moved.operands[1:]])
    return e


@rewrite(
    "prod",
    kinds="f",
    needs=["exp"],
    tags=["conditioned"],
    equation="prod(exp(x)) -> exp(sum(x))",
    examples=lambda: [prod(exp(matrix()), axes=(1,))],
)
def product_over_exp(v: Value) -> Value | None:
    """One exponential for many, and no overflow between them."""
    (x,) = v.operands
    return exp(sum_(x.operands[0], axes=v.attrs["axes"])) if x.op is exp else None


@rewrite(
    "log",
    kinds="f",
    tags=["conditioned"],
    equation="log(prod(x)) -> sum(log(abs(x))), and nan where the product is negative; so for cumprod",
    examples=lambda: [log(prod(matrix(), axes=(1,))), log(cumprod(matrix(), axis=1, reverse=False))],
)
def log_of_prod(v: Value, context) -> Value | None:
    """A product of many numbers overflows or vanishes: a likelihood."""
    (p,) = v.operands
    total = sum_ if p.op is prod else cumsum
    if p.op not in (prod, cumprod) or p.op is cumprod and exponent_of(p) is not None:
        return None
    (x,) = p.operands
    if context.facts(x).nonnegative:
        return total(log(x), **p.attrs)
    negative = lt(p.op(sign(x), **p.attrs), 0)
    return where(negative, splat(np.nan, v.type), total(log(abs_(x)), **p.attrs))


# --- logs of powers ---------------------------------------------------------------------------------------------------


@rule(domain=POSITIVE)
def log_of_sqrt(x):
    """A product for a root."""
    return log(sqrt(x)), 0.5 * log(x)


@rule(domain=POSITIVE)
def log_of_reciprocal(x):
    """A sign for a division, and no overflow for a small x. (At -inf it is nan as for all negative x, and zeros of both
    signs are alike: 1 / x says otherwise, as its zeros and infinities have the sign of x.)"""
    return log(1 / x), -log(x)


@rewrite(
    "log",
    kinds="f",
    weight=2,
    equation="log(x**2.5 * y) -> 2.5 * log(x) + log(y); log(x**3) -> 3 * log(x); of an even power, of |x|",
    examples=lambda: [
        example(lambda x, y: log(pow_(x, splat(2.5, x.type)) * y), leaves(2)),
        example(lambda x, y: log(y / pow_(x, splat(40.0, x.type))), leaves(2)),
        *[example(lambda x, n=n: log(pow_(x, splat(n, x.type))), leaves(1)) for n in (3, -4, 0.3)],
    ],
    misses=lambda: [
        example(lambda x, y: log(pow_(x, splat(7.0, x.type)) * y), leaves(2)),
        example(lambda x, y: log(pow_(x, y)), leaves(2)),
    ],
)
def log_of_product_with_power(v: Value, context) -> Value | None:
    """A power overflows or vanishes where the log of the product is ordinary: a likelihood. (Of a power that is not
    even, at -inf and -0.0 as in ``log_of_reciprocal``.)"""
    (x,) = v.operands
    terms = flatten(x, "product") if x.op in (mul, div) else [(1, x)]
    logs = [_log_of_power(y, len(terms) == 1, context.facts) for _, y in terms]
    apart = [(s, e) for (s, _), e in zip(terms, logs, strict=True) if e is not None]
    rest = [t for t, e in zip(terms, logs, strict=True) if e is None]
    if not apart:
        return None
    return join([*apart, *([(1, log(join(rest, "product")))] if rest else [])], "sum")


def _log_of_power(x: Value, alone: bool, facts) -> Value | None:
    """The log of a power that is not negative: a fraction (or it is nan), or even, or of what is not negative; also of
    one that is ``alone`` in a log, which is nan then."""
    number = splat_of(x.operands[1]) if x.op is pow_ else None
    if number is None or not np.isfinite(number) or number == 0 or splat_of(x.operands[0]) is not None:
        return None
    even, whole = number % 2 == 0, number % 1 == 0
    if whole and not even and not alone and not facts(x.operands[0]).nonnegative:
        return None
    return log(abs_(x.operands[0]) if even else x.operands[0]) * x.operands[1]


@rewrite(
    "log",
    kinds="f",
    needs=["*"],
    equation="log(x*x / (y*y)) -> 2 * log(abs(x / y)), also times a number",
    examples=lambda: [
        example(lambda x, y: log(x * x / (y * y)), leaves(2)),
        example(lambda x, y: log(x * x * 3), leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: log(x * x * y), leaves(2))],
)
def log_of_product_of_squares(v: Value) -> Value | None:
    """The squares overflow or vanish where the log is ordinary."""
    number, terms = scale_apart(v.operands[0])
    single, root = list[Term](), list[Term]()
    for t in terms:
        if t in single:
            single.remove(t)
            root.append(t)
        else:
            single.append(t)
    if single or not root:
        return None
    size = abs_(join(root, "product"))
    return log(size if number == 1 else size * float(np.sqrt(number))) * 2


@rewrite(
    "log",
    kinds="f",
    tags=["conditioned"],
    met=["pow"],
    equation="log(x**y * z) -> y * log(abs(x)) + log(z), and nan where the product is negative",
    examples=lambda: [
        example(lambda x, y: log(pow_(x, y)), leaves(2)),
        example(lambda x, y, z: log(pow_(x, y) * pow_(1 - x, z) * z), leaves(3)),
    ],
    misses=lambda: [example(lambda x, y: log(pow_(x, y) + 1), leaves(2))],
)
def log_of_product_with_variable_power(v: Value, context) -> Value | None:
    """A power overflows or vanishes where its log is ordinary: the densities of Beta and Dirichlet, and a binomial."""
    (whole,) = v.operands
    x = whole.operands[0] if whole.op is abs_ else whole
    terms = flatten(x, "product") if x.op in (mul, div) else [(1, x)]
    powers = [(s, p) for s, p in terms if _is_variable_power(p)]
    if not powers:
        return None
    logs: list[Term] = [(s, mulz(p.operands[1], log(abs_(p.operands[0])))) for s, p in powers]
    signs = [(1, _sign_of_power(*p.operands)) for _, p in powers if not context.facts(p.operands[0]).nonnegative]
    rest = [t for t in terms if t not in powers] + signs
    if not rest:
        return join(logs, "sum")
    other = join(rest, "product")
    return join([*logs, (1, log(abs_(other) if x is not whole else other))], "sum")


def _is_variable_power(p: Value) -> bool:
    return p.op is pow_ and all(splat_of(o) is None for o in p.operands) and exponent_of(p) is None


def _sign_of_power(x: Value, y: Value) -> Value:
    """1 or -1, and nan where a negative number has a fractional power."""
    odd = mod(y, like(y, 2))
    one = like(x, 1)
    return where(ge(x, 0), one, where(eq(odd, 0), one, where(eq(odd, 1), -one, like(x, np.nan))))


@rewrite(
    "log",
    kinds="f",
    needs=["div"],
    tags=["conditioned"],
    equation="log(x / (x + 1)) -> -log1p(1 / x) where x is large; so for (x + 1) / (x - 1)",
    examples=lambda: [
        example(lambda x: log(x / (x + 1)), leaves(1)),
        example(lambda x: log((x + 1) / (x - 1)), leaves(1)),
    ],
    misses=lambda: [example(lambda x, y: log(x / (y + 1)), leaves(2))],
)
def log_of_quotient_near_one(v: Value) -> Value | None:
    """The quotient loses the digits of what it differs from 1 by: the density of a log-logistic."""
    (q,) = v.operands
    if q.op is not div:
        return None
    (c, x), (d, y) = map(number_apart, q.operands)
    if x is None or x is not y or c == d or not np.isfinite(c - d):
        return None
    below = q.operands[1]
    far = gt(abs_(below), 2 * abs(c - d))
    return where(far, log1p(like(x, c - d) / where(far, below, like(x, 1))), log(where(far, like(x, 1), q)))


@rewrite(
    "log2",
    "log10",
    kinds="f",
    tags=["conditioned"],
    equation="log2(1 + x) -> log1p(x) / log(2); log10(exp(x)) -> x / log(10), so for sums of exponentials",
    examples=lambda: [
        example(lambda x: log2(1 + x), leaves(1)),
        example(lambda x: log10(exp(x)), leaves(1)),
        example(lambda x, y: log10(exp(x) + exp(y)), leaves(2)),
    ],
    misses=lambda: [example(lambda x: log2(2 + x), leaves(1))],
)
def log_to_another_base(v: Value, context) -> Value | None:
    """Rewrites of the natural logarithm for other bases."""
    (x,) = v.operands
    one, rest = number_apart(x)
    if one == 1 and rest is not None and not cancels_first(x, context.facts):
        made = log1p(rest)
    else:
        found, inside = log_of_sum(x, context.facts) if x.op is add else log_of(x, context.facts)
        if found is None or not inside:
            return None
        made = found
    return made * float(1 / np.log(2 if v.op is log2 else 10))


# --- exponentials of logs ---------------------------------------------------------------------------------------------


@rule
def exp_of_log(x):
    """Each undoes the other where the log exists."""
    return exp(log(x)), where_nonnegative(x)


@rule(domain=POSITIVE)
def exp_of_minus_log(x):
    """A division for two transcendental functions (nan for negative x stays nan, and inf for -0.0 inf)."""
    return exp(-log(x)), where(gt(x, 0), 1 / x, where(eq(x, 0), splat(np.inf, x.type), splat(np.nan, x.type)))


@rule(domain={"x": (-0.999, 1e8)})
def exp_of_log1p(x):
    """Each undoes the other where the log exists."""
    return exp(log1p(x)), where(ge(x, -1), 1 + x, splat(np.nan, x.type))


@rewrite(
    "exp",
    kinds="f",
    needs=["mul"],
    equation="exp(log(x) * 3) -> x**3; exp(log(x) * y) -> x**y for positive x",
    tags=["powers"],
    examples=lambda: [
        example(lambda x, y: exp(log(x) * 3.0), leaves(2)),
        example(lambda x, y: exp(log(maximum(x, 0.5)) * y), leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: exp(log(x) * y), leaves(2))],
)
def exp_of_scaled_log(v: Value, context) -> Value | str | None:
    """Rounding the log of a large number changes its power; pow knows better."""
    (m,) = v.operands
    if m.op is not mul:
        return None
    for k in (0, 1):
        if m.operands[k].op is not log:
            continue
        x, y = m.operands[k].operands[0], m.operands[1 - k]
        if context.facts(x).positive:
            return pow_(x, y)
        number = splat_of(y)
        if number is not None and np.isfinite(number) and number > 0:
            return pow_(where_nonnegative(x), y)
        return "the base may be 0 or negative"
    return None


@rule(tags=["conditioned"])
def x_log_x(x):
    """0 * -inf where x is 0: the limit is 0, as entropies take it."""
    return x * log(x), mulz(x, log(x))
