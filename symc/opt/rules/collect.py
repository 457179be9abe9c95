"""Collecting: numbers, like terms and common factors of sums and products meet; what cancels is gone.

Only what nobody else reads is opened, so nothing is computed twice, and a bounded number of terms is looked at. What
cancels could have been infinite or nan: it goes where that is known not to be so, or on request.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from symc.ir.op import splat
from symc.ir.ops.arithmetic import add, div, mul, mulz, neg
from symc.ir.ops.assume import promised
from symc.ir.ops.linalg import dot, matmul
from symc.ir.ops.math import cosh, exp, sinh, tanh
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.rule import OPT_IN
from symc.opt.engine.terms import Term, cancels_first, join, opposites, splat_like, table, without

#: So many terms are looked at together.
MOST = 8
#: So many, for numbers of sums and of products to meet: those of the layers of a network stay apart, so that equal
#: layers stay equal kernels.
FEW, FEWER = 4, 3
UNSAFE = ("nan-unsafe", OPT_IN)


def opened(v: Value, kind: str, context, most: int = MOST) -> list[Term]:
    """The signed terms of a nest, through what has no other user; in the order in which they are written."""
    ops = table(kind)
    out: list[Term] = []
    stack: list[Term] = [(1, v)]
    while stack:
        sign, x = stack.pop()
        own = x is v or context.single_use(x)
        if x.op.name in ops and own and len(stack) + len(out) + 2 <= most:
            first, second = ops[x.op.name]
            stack += [(sign * second, x.operands[1]), (sign * first, x.operands[0])]
        elif kind == "sum" and x.op is neg and own:
            stack.append((-sign, x.operands[0]))
        else:
            out.append((sign, x))
    return out


def _below(v: Value, *names: str) -> bool:
    """True if an operand is one of these ops: without, there is nothing to open or to collect."""
    return any(o.op.name in names for o in v.operands)


def _ordinary(number: np.ndarray) -> bool:
    """True if a number neither overflowed nor vanished."""
    if number.dtype.kind != "f":
        return True
    return bool(np.isfinite(number) and (number == 0 or abs(number) >= np.finfo(number.dtype).tiny))


# --- numbers and like terms -------------------------------------------------------------------------------------------


@rewrite(
    "add",
    "sub",
    kinds="iuf",
    tags=["reassociate"],
    equation="(x + 2) + (y + 3) -> x + y + 5; x * 3 - y + x * 2 -> x * 5 - y",
    examples=lambda: [
        example(lambda x, y: (x + 2) + (y + 3), leaves(2)),
        example(lambda x, y: x * 3 - y + x * 2, leaves(2)),
        example(lambda x, y: x + y + x, leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: x * 3 - y * 2, leaves(2)), example(lambda x, y: x + y - x, leaves(2))],
)
def collect_terms(v: Value, context) -> Value | None:
    """Numbers meet, and multiples of one thing are one multiple (not where they would cancel or overflow)."""
    if not _below(v, "add", "sub", "neg", "mul"):
        return None
    terms = opened(v, "sum", context)
    groups: dict[Value | None, list[np.ndarray]] = {}
    plain: dict[Value | None, Value] = {}
    one = np.ones((), v.dtype)
    for s, x in terms:
        base, number = _multiple(x, context)
        coefficient = one if number is None else number
        with np.errstate(all="ignore"):
            groups.setdefault(base, []).append(coefficient if s > 0 else np.asarray(-coefficient, v.dtype))
        plain[base] = x
    if all(len(g) == 1 for base, g in groups.items() if base is not None or len(terms) <= FEW):
        return None
    out: list[Term] = []
    for base, numbers in groups.items():
        with np.errstate(all="ignore"):
            total = functools.reduce(np.add, numbers).astype(v.dtype)
        if len(numbers) > 1 and (not _ordinary(total) or (total == 0 and base is not None and v.dtype.kind == "f")):
            return None
        out += _term(base, total, plain[base] if len(numbers) == 1 else None, numbers[0], v)
    return join(out, "sum") if out else splat_like(np.zeros(()), v)


def _multiple(x: Value, context) -> tuple[Value | None, np.ndarray | None]:
    """``x`` as base * number; a number alone has no base."""
    number = splat_of(x)
    if number is not None:
        return None, number
    if x.op is mul and context.single_use(x) and (number := splat_of(x.operands[1])) is not None:
        return x.operands[0], number
    return x, None


def _term(base: Value | None, total: np.ndarray, whole: Value | None, first: np.ndarray, v: Value) -> list[Term]:
    """One term of the new sum; a term that met no other stays as it was written."""
    if base is None:
        return [] if total == 0 else [(1, splat_like(total, v))]
    if whole is not None:
        number = splat_of(whole.operands[1]) if whole is not base else None
        return [(1 if first == (1 if number is None else number) else -1, whole)]
    if total == 0:
        return []
    sign = -1 if v.dtype.kind != "u" and total < 0 else 1
    return [(sign, base if abs(total) == 1 else base * splat_like(abs(total), v))]


@rewrite(
    "mul",
    "div",
    kinds="f",
    tags=["reassociate"],
    equation="3 / x * 7 -> 21 / x; 6 / (x * 3) -> 2 / x",
    examples=lambda: [
        example(lambda x, y: 3 / x * 7, leaves(2)),
        example(lambda x, y: 6 / (x * 3), leaves(2)),
    ],
    misses=lambda: [example(lambda x, y: x * 2 / y, leaves(2)), example(lambda x, y: 3 / (x * y), leaves(2))],
)
def collect_factors(v: Value, context) -> Value | None:
    """Numbers in a product meet (not where they would overflow or vanish)."""
    if not _below(v, "mul", "div"):
        return None
    terms = opened(v, "product", context, FEWER)
    numbers = [(s, n) for s, x in terms if (n := splat_of(x)) is not None]
    rest = [(s, x) for s, x in terms if splat_of(x) is None]
    if len(numbers) < 2 or not rest:
        return None
    with np.errstate(all="ignore"):
        up, down = (functools.reduce(np.multiply, [n for s, n in numbers if s == sign], np.ones((), v.dtype))
                    for sign in (1, -1))  # fmt: skip
        total = np.asarray(up / down, v.dtype)
    if not all(_ordinary(n) and n != 0 for n in (up, down, total)):
        return None
    if all(s < 0 for s, _ in rest):
        return div(splat_like(total, v), join([(1, x) for _, x in rest], "product"))
    out = join(rest, "product")
    return out if total == 1 else out * splat_like(total, v)


@rewrite(
    "sub",
    kinds="f",
    needs=["add"],
    weight=2,
    tags=["reassociate"],
    equation="(x + 2) - (y + 3) -> x - y + -1",
    examples=lambda: [example(lambda x, y: (tanh(x) + 2) - (tanh(y) + 3), leaves(2))],
    misses=lambda: [example(lambda x, y: (tanh(x) + 2) - y, leaves(2))],
)
def difference_of_shifted(v: Value) -> Value | None:
    """Large x and y cancel before a number is rounded to their digits, whoever else reads the sums."""
    x, y = v.operands
    if not (x.op is y.op is add):
        return None
    c, d = splat_of(x.operands[1]), splat_of(y.operands[1])
    if c is None or d is None or not _ordinary(c - d):
        return None
    out = x.operands[0] - y.operands[0]
    return out if c == d else out + splat_like(c - d, v)


# --- common factors ---------------------------------------------------------------------------------------------------


#: Ops of two operands of which sums have a factor.
FACTORED = (mul, div, mulz, dot)


def _factored(x: Value, y: Value, s: int, t: int, context) -> Value | None:
    """The sum of two products with a common factor, with their signs, as one product."""
    if x is y or x.op is not y.op or x.op not in FACTORED or not (context.single_use(x) and context.single_use(y)):
        return None
    (a, b), (c, d) = x.operands, y.operands
    if x.op is mul:
        pairs = [(a, b, d)] * (a is c) + [(a, b, c)] * (a is d) + [(b, a, d)] * (b is c) + [(b, a, c)] * (b is d)
        for shared, p, q in pairs:
            if dot not in (p.op, q.op, shared.op) and splat_of(p) is None and splat_of(q) is None:
                return join([(s, p), (t, q)], "sum") * shared
    if x.op is div and b is d:
        return join([(s, a), (t, c)], "sum") / b
    if x.op is mulz and a is c:
        return mulz(a, join([(s, b), (t, d)], "sum"))
    if x.op is dot and x.attrs == y.attrs:
        if a is c and b.type is d.type:
            return dot(a, join([(s, b), (t, d)], "sum"), **x.attrs)
        if b is d and a.type is c.type:
            return dot(join([(s, a), (t, c)], "sum"), b, **x.attrs)
    return None


@rewrite(
    "add",
    "sub",
    kinds="fc",
    tags=["reassociate", "conditioned"],
    equation="a * x + a * y -> a * (x + y); so for x / a, and for products of arrays",
    examples=lambda: [
        example(lambda a, x, y: a * x + a * y, leaves(3)),
        example(lambda a, x, y: x / a - y / a, leaves(3)),
        example(lambda a, x, y: mulz(a, x) - mulz(a, y), leaves(3)),
        example(lambda a, x, y: x + a * exp(x) + y + a * exp(y), leaves(3)),
        example(lambda a, x, y: matmul(a, x) + matmul(a, y), leaves(3, {}, (3, 3))),
    ],
    misses=lambda: [
        example(lambda a, x, y: a * x + y * exp(x), leaves(3)),
        example(lambda a, x, y: a / x + a / y, leaves(3)),
        example(lambda a, x, y: a * matmul(x, y) + a * x, leaves(3, {}, (3, 3))),
    ],
)
def common_factor(v: Value, context) -> Value | None:
    """One product for two: cheaper, and what cancels does so before it is rounded."""
    if not _below(v, "add", "sub", "neg", *(op.name for op in FACTORED)) or cancels_first(v, context.facts):
        return None
    terms = opened(v, "sum", context)
    if sum(x.op in FACTORED for _, x in terms) < 2:
        return None
    for j, (t, y) in enumerate(terms):
        for i, (s, x) in enumerate(terms[:j]):
            sign = 1 if s > 0 or t > 0 else -1
            made = _factored(x, y, s * sign, t * sign, context)
            if made is not None:
                return join([(sign, made), *without(terms, i, j)], "sum")
    return None


# --- what cancels -----------------------------------------------------------------------------------------------------


def _without_pair(terms: list[Term], may: Callable[[Value], bool]) -> list[Term] | None:
    """The terms without one that is there with both signs."""
    return next((rest for x, y, rest in opposites(terms) if x is y and splat_of(x) is None and may(x)), None)


def _cancelled(v: Value, kind: str, context, may: Callable[[Value], bool]) -> Value | None:
    inverse, *nested = ("sub", "add", "neg") if kind == "sum" else ("div", "mul")
    if not _below(v, inverse, *nested) or v.op.name != inverse and not _below(v, inverse):
        return None
    rest = _without_pair(opened(v, kind, context), may)
    if rest is None:
        return None
    return join(rest, kind) if rest else splat(0 if kind == "sum" else 1, v.type)


def _bounded() -> list[Value]:
    """x and y, of which it is known that they are finite, x not 0."""
    x, y = leaves(2)
    return [promised(x, "finite", "nonzero"), y]


@rewrite(
    "add",
    "sub",
    kinds="f",
    tags=["reassociate"],
    equation="x + y - x -> y for finite x",
    examples=lambda: [example(lambda x, y: x + y - x, _bounded())],
    written=lambda sc: (lambda x, y: x + y - x)(sc.assume(sc.vector("x"), finite=True), sc.vector("y")),
    misses=lambda: [example(lambda x, y: x + y - x, leaves(2))],
)
def cancel_finite_terms(v: Value, context) -> Value | None:
    """Nothing is left of x, which is known to be finite."""
    return _cancelled(v, "sum", context, lambda x: context.facts(x).finite)


@rewrite(
    "add",
    "sub",
    kinds="f",
    tags=UNSAFE,
    equation="x + y - x -> y",
    examples=lambda: [example(lambda x, y: x + y - x, leaves(2))],
)
def cancel_terms(v: Value, context) -> Value | None:
    """Nothing is left of x, unless it is infinite or nan."""
    return _cancelled(v, "sum", context, lambda x: True)


@rewrite(
    "mul",
    "div",
    kinds="f",
    tags=["reassociate"],
    equation="x * y / x -> y; x / (x * y) -> 1 / y for finite x that is not 0",
    examples=lambda: [
        example(lambda x, y: x * y / x, _bounded()),
        example(lambda x, y: x / (x * y), _bounded()),
        example(lambda x, y: x * (y / x), _bounded()),
    ],
    misses=lambda: [example(lambda x, y: x * y / x, leaves(2))],
    written=lambda sc: (lambda x, y: x * y / x)(sc.assume(sc.vector("x"), finite=True, nonzero=True), sc.vector("y")),
)
def cancel_finite_factors(v: Value, context) -> Value | None:
    """Nothing is left of x, which is known to be finite and not 0."""
    return _cancelled(v, "product", context, lambda x: context.facts(x).finite and context.facts(x).nonzero)


@rewrite(
    "mul",
    "div",
    kinds="f",
    tags=UNSAFE,
    equation="x * y / x -> y; x / (x * y) -> 1 / y",
    examples=lambda: [
        example(lambda x, y: x * y / x, leaves(2)),
        example(lambda x, y: x / (x * y), leaves(2)),
        example(lambda x, y: x * (y / x), leaves(2)),
    ],
)
def cancel_factors(v: Value, context) -> Value | None:
    """Nothing is left of x, unless it is 0, infinite or nan."""
    return _cancelled(v, "product", context, lambda x: True)


@rewrite(
    "mul",
    kinds="f",
    needs=["add"],
    tags=UNSAFE,
    equation="a * (b / a + c) -> b + a * c",
    examples=lambda: [example(lambda a, b, c: a * (b / a + c), leaves(3))],
)
def distribute_to_cancel(v: Value, context) -> Value | None:
    """A division less, unless a is 0, infinite or nan."""
    for k in (0, 1):
        a, s = v.operands[k], v.operands[1 - k]
        if s.op is not add or not context.single_use(s):
            continue
        for i in (0, 1):
            q, c = s.operands[i], s.operands[1 - i]
            if q.op is div and q.operands[1] is a and context.single_use(q):
                return q.operands[0] + a * c
    return None


# --- differences of squares -------------------------------------------------------------------------------------------


@rule(domain={"x": (-100.0, 100.0)})
def one_minus_tanh_squared(x):
    """1 - tanh(x)**2 is 0 from x = 20 on (10 in f32), where 1 / cosh(x)**2 has all its digits."""
    return 1 - tanh(x) * tanh(x), (1 / cosh(x)) * (1 / cosh(x))


@rule
def difference_of_squares(x, y):
    """The squares are rounded before they cancel. (Their derivatives do not cancel: this comes after them.)"""
    return x * x - y * y, (x - y) * (x + y)


@rule
def one_minus_square(x):
    """The square is rounded before it cancels."""
    return 1 - x * x, (1 - x) * (1 + x)


@rule
def square_minus_one(x):
    """The square is rounded before it cancels."""
    return x * x - 1, (x - 1) * (x + 1)


@rule
def twice_sinh(x):
    """exp(x) - exp(-x) cancels near 0."""
    return exp(x) - exp(-x), 2 * sinh(x)


@rule
def twice_cosh(x):
    """One function for two exponentials."""
    return exp(x) + exp(-x), 2 * cosh(x)


