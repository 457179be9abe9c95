"""Rules that need a fact: a sign, a range, whole numbers, no nan. Facts are worked out (``symc.opt.facts.analysis``) or
promised by ``sc.assume``.

A sign is that of numbers: nonnegative is also -0.0, and nan if it is not excluded. So a rule may give 0.0 for -0.0
(tag ``signed-zero``), and no rule gives a number where nan came in.
"""

from __future__ import annotations

import numpy as np

from symc.ir.attrs import Array
from symc.ir.dtypes import finfo
from symc.ir.op import lookup, splat
from symc.ir.ops.arithmetic import abs_, fmax, fmin, fmod, maximum, minimum, mod, mul, pow_, sign
from symc.ir.ops.assume import promised
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import ge, isnan, lt
from symc.ir.ops.elementwise import like
from symc.ir.ops.leaf import array
from symc.ir.ops.logic import where
from symc.ir.ops.math import floor, log, sigmoid, sqrt
from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import leaves
from symc.opt.engine.terms import flatten, join
from symc.opt.facts.fact import Fact, above, at_least, at_most

NEGATIVE, POSITIVE = {"x": (-1e8, -1e-8)}, {"x": (1e-8, 1e8)}


def _line(*names: str, dtype: str = "f64", **attrs) -> Value:
    """A leaf of which something is promised."""
    return promised(leaves(1, {0: dtype}, (3,))[0], *names, **attrs)


# --- signs ------------------------------------------------------------------------------------------------------------


@rule(assumes={"x": "nonnegative"}, kinds="if", tags=["signed-zero"], domain=POSITIVE)
def abs_of_nonnegative(x):
    """It is its own distance from 0."""
    return abs_(x), x


@rule(assumes={"x": "nonpositive"}, kinds="if", tags=["signed-zero"], domain=NEGATIVE)
def abs_of_nonpositive(x):
    """A sign for a distance."""
    return abs_(x), -x


@rewrite(
    "sign",
    exact=True,
    kinds="if",
    equation="sign(x) -> 1 for x positive; -1 for x negative",
    examples=lambda: [sign(_line("positive")), sign(_line("negative", dtype="i64"))],
    misses=lambda: [sign(_line("nonnegative"))],
)
def sign_known(v: Value, context) -> Value | str | None:
    """The sign is known, and nan is excluded."""
    f: Fact = context.facts(v.operands[0])
    if f.nan or not (f.positive or f.negative):
        return f"the operand is {_said(f)}"
    return splat(1 if f.positive else -1, v.type)


def _said(f: Fact) -> str:
    """Words for what is known of a sign."""
    words = next((n for n in ("positive", "negative", "nonnegative", "nonpositive") if getattr(f, n)), "of any sign")
    return f"{words}, and may be nan" if f.nan else words


@rewrite(
    "sign",
    kinds="f",
    needs=["mul"],
    equation="sign(x * y) -> sign(y) for x positive",
    examples=lambda: [sign(_line("positive", "finite") * leaves(1, {}, (3,))[0])],
)
def sign_of_product(v: Value, context) -> Value | None:
    """A factor that is positive has no part in the sign; and the product may underflow."""
    (p,) = v.operands
    if p.op is mul:
        for k in (0, 1):
            f = context.facts(p.operands[k])
            if f.positive and f.finite:
                return sign(p.operands[1 - k])
    return None


# --- conditions and numbers that ranges decide ------------------------------------------------------------------------


@rewrite(
    "lt", "le", "gt", "ge", "eq", "ne", "isnan", "isinf", "isfinite", "signbit", "and", "or", "not", "any", "all",
    exact=True,
    weight=0,
    equation="x < y -> true, or false, where the ranges of x and y decide it; isnan(x) -> false where it is excluded",
    examples=lambda: [
        lt(_line("positive"), -1),
        ge(_line(low=1.0, high=2.0), _line(low=-3.0, high=0.5)),
        isnan(_line("finite")),
        lookup("ne")(_line("nonzero"), 0),
        lookup("isfinite")(sigmoid(_line("finite"))),
    ],
    misses=lambda: [lt(_line("positive"), 1.0), ge(abs_(leaves(1, {}, (3,))[0]), 0), isnan(_line("nonzero"))],
)  # fmt: skip
def condition_decided(v: Value, context) -> Value | None:
    """The answer is the same for all numbers in the ranges of the operands."""
    if v.dtype.kind != "b" or splat_of(v) is not None or _is_check(v):
        return None
    f = context.facts(v)
    return splat(bool(f.low), v.type) if f.low is not None and f.low == f.high else None


@rewrite(
    "where",
    exact=True,
    weight=0,
    equation="where(c, x, y) -> x where c is known to hold everywhere, y where it holds nowhere",
    examples=lambda: [where(array(np.array([True, True, True])), *leaves(2, {}, (3,)))],
    misses=lambda: [where(array(np.array([True, False, True])), *leaves(2, {}, (3,)))],
    arises="comparisons of constants",
)
def choice_decided(v: Value, context) -> Value | None:
    """The answer is the same everywhere."""
    if _is_check(v.operands[0]):
        return None
    f = context.facts(v.operands[0])
    return v.operands[1 if f.low else 2] if f.low is not None and f.low == f.high else None


def _is_check(v: Value) -> bool:
    """A check of an index that is compared, and moved then, is there to fail."""
    while "movement" in v.op.traits and len(v.operands) == 1:
        v = v.operands[0]
    return any(o.op.name == "check_index" for o in v.operands)


@rewrite(
    "maximum", "minimum", "fmax", "fmin",
    kinds="iuf",
    tags=["signed-zero"],
    equation="maximum(x, y) -> x where x is nowhere below y",
    examples=lambda: [
        maximum(_line("nonnegative"), like(_line(), 0)),
        minimum(_line(low=0.0, high=1.0), like(_line(), 2)),
        maximum(_line(low=3, dtype="i64"), _line(high=2, dtype="i64")),
        fmax(_line("positive"), like(_line(), -1)),
        fmin(_line("negative"), like(_line(), 0)),
    ],
    misses=lambda: [maximum(_line("nonnegative"), like(_line(), 1))],
)  # fmt: skip
def extreme_decided(v: Value, context) -> Value | None:
    """relu of what is nonnegative, a clip that clips nothing: the ranges decide."""
    facts = [context.facts(o) for o in v.operands]
    upper, numbers = v.op in (maximum, fmax), v.op in (fmax, fmin)
    for k in (0, 1):
        x, y = facts[k], facts[1 - k]
        wins = at_least(x.low, y.high) if upper else at_most(x.high, y.low)
        if wins and not (x.nan if numbers else y.nan):
            return v.operands[k]
    return None


# --- what does not change a number ------------------------------------------------------------------------------------


@rewrite(
    "floor", "ceil", "trunc", "rint",
    exact=True,
    tags=["after-gradients"],
    kinds="f",
    equation="floor(x) -> x for whole numbers x; so for ceil, trunc, rint",
    examples=lambda: [floor(_line("integer")), lookup("rint")(floor(leaves(1, {}, (3,))[0]) * 3.0)],
    misses=lambda: [floor(_line("finite"))],
)  # fmt: skip
def rounded_integer(v: Value, context) -> Value | None:
    """There is nothing to round (but that the derivative of a rounded number is 0)."""
    return v.operands[0] if context.facts(v.operands[0]).integer else None


@rewrite(
    "mod", "fmod",
    kinds="iuf",
    tags=["signed-zero"],
    equation="mod(x, y) -> x for 0 <= x < y",
    examples=lambda: [
        mod(_line(low=0, high=4, dtype="i64"), like(_line(dtype="i64"), 5)),
        fmod(_line(low=0.0, high=0.5), like(_line(), 1)),
    ],
    misses=lambda: [mod(_line(low=0, high=5, dtype="i64"), like(_line(dtype="i64"), 5))],
)  # fmt: skip
def remainder_of_smaller(v: Value, context) -> Value | None:
    """A number that is smaller is its own remainder."""
    x, y = (context.facts(o) for o in v.operands)
    return v.operands[0] if x.nonnegative and above(y.low, x.high) and not y.nan and not y.inf else None


@rewrite(
    "cast",
    tags=["signed-zero", "after-gradients"],
    needs=["cast"],
    equation="cast(cast(x, i64), f64) -> x for whole numbers x in range",
    examples=lambda: [
        cast(cast(_line("integer", low=0.0, high=1e6), dtype=np.dtype("i8")), dtype=np.dtype("f8")),
        cast(cast(_line(low=0, high=1000, dtype="i64"), dtype=np.dtype("f8")), dtype=np.dtype("i8")),
    ],
    misses=lambda: [cast(cast(_line("integer"), dtype=np.dtype("i8")), dtype=np.dtype("f8"))],
)
def cast_there_and_back(v: Value, context) -> Value | None:
    """A conversion that loses nothing, and its inverse."""
    (x,) = v.operands
    if x.op is not cast or x.operands[0].dtype != v.dtype:
        return None
    (y,) = x.operands
    f = context.facts(y)
    if y.dtype.kind + x.dtype.kind == "fi" and f.integer and not f.nan:
        info = np.iinfo(x.dtype)
        fits = at_least(f.low, float(info.min)) and at_most(f.high, min(float(info.max), 2.0**53))
        return y if fits else None
    if y.dtype.kind in "iu" and x.dtype.kind == "f":
        most = 2 ** (finfo(x.dtype).nmant + 1)
        return y if at_least(f.low, -most) and at_most(f.high, most) else None
    return None


# --- roots, powers, logs ----------------------------------------------------------------------------------------------


@rule(assumes={"x": "nonnegative"}, tags=["signed-zero"], domain=POSITIVE)
def root_squared(x):
    """Each undoes the other where the root exists, without a rounding."""
    return sqrt(x) * sqrt(x), x


@rewrite(
    "div",
    kinds="f",
    needs=["sqrt"],
    equation="x / sqrt(x) -> sqrt(x) for x positive and finite",
    examples=lambda: [(lambda x: x / sqrt(x))(_line("positive", "finite"))],
    misses=lambda: [(lambda x: x / sqrt(x))(_line("positive"))],
)
def over_its_root(v: Value, context) -> Value | None:
    """A root for a root and a division."""
    x, root = v.operands
    f = context.facts(x)
    return root if root.op is sqrt and root.operands[0] is x and f.positive and f.finite else None


@rewrite(
    "pow",
    kinds="f",
    needs=["pow"],
    tags=["powers"],
    equation="(x**a)**b -> x**(a*b) for x nonnegative and numbers whose product is exact",
    examples=lambda: [(lambda x: pow_(pow_(x, like(x, 1.125)), like(x, 24.0)))(_line("nonnegative"))],
    misses=lambda: [(lambda x: pow_(pow_(x, like(x, 1.125)), like(x, 24.0)))(leaves(1, {}, (3,))[0])],
)
def power_of_power(v: Value, context) -> Value | None:
    """One power for two; the first may overflow where both together do not."""
    p, outer = v.operands[0], splat_of(v.operands[1])
    inner = splat_of(p.operands[1]) if p.op is pow_ else None
    if outer is None or inner is None or not context.facts(p.operands[0]).nonnegative:
        return None
    number = np.multiply(inner, outer)
    exact = np.isfinite(number) and float(number) == float(np.multiply(np.longdouble(inner), np.longdouble(outer)))
    return pow_(p.operands[0], splat(Array(number), v.type)) if exact and number != 0 and inner != 0 else None


def _one_side(f: Fact) -> int:
    """Side of 1 on which nonnegative numbers are: -1 below, 1 above, 0 not known."""
    if not f.nonnegative:
        return 0
    return -1 if at_most(f.high, 1) else 1 if at_least(f.low, 1) else 0


@rewrite(
    "log",
    kinds="f",
    equation="log(x * y) -> log(x) + log(y) for x and y in [0, 1], or both at least 1; so for quotients",
    examples=lambda: [
        log(_line(low=0.0, high=1.0) * _line(low=0.0, high=1.0)),
        log(_line(low=1.0) * _line(low=1.0)),
        log(_line(low=0.0, high=1.0) / _line(low=1.0)),
    ],
    misses=lambda: [log(_line("positive") * _line("positive"))],
)
def log_of_probabilities(v: Value, context) -> Value | str | None:
    """The product underflows (or overflows) where its log does not; and nothing cancels: both logs have one sign."""
    (p,) = v.operands
    if p.op.name not in ("mul", "div") or not context.single_use(p):
        return None
    terms = flatten(p, "product")
    sides = {_one_side(context.facts(x)) * s for s, x in terms}
    if len(sides) != 1 or 0 in sides or len(terms) < 2:
        return "the factors are not known to be on one side of 1"
    return join([(s, log(x)) for s, x in terms], "sum")

