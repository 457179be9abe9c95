"""Choices: `where` with one answer, nested choices on one condition, products with a choice of zero, known conditions.
"""

from __future__ import annotations

from symc.ir.op import lookup, splat
from symc.ir.ops.arithmetic import mul
from symc.ir.ops.logic import and_, not_, or_, where
from symc.ir.text import splat_of
from symc.ir.types import TensorType
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.terms import is_number

ANY_KIND = "biufc"
C = {"c": "bool"}


def _choice() -> list[Value]:
    return leaves(4, {0: "bool"}, (3,))


@rule(exact=True, kinds=ANY_KIND, dtypes=C)
def where_same(c, x):
    """Both answers are the same."""
    return where(c, x, x), x


@rule(exact=True, kinds=ANY_KIND, dtypes=C)
def where_not(c, x, y):
    """The answers change places."""
    return where(not_(c), x, y), where(c, y, x)


@rule(exact=True, kinds=ANY_KIND, dtypes=C)
def where_of_where_first(c, x, y, z):
    """The inner condition is known to hold."""
    return where(c, where(c, x, y), z), where(c, x, z)


@rule(exact=True, kinds=ANY_KIND, dtypes=C)
def where_of_where_second(c, x, y, z):
    """The inner condition is known not to hold."""
    return where(c, x, where(c, y, z)), where(c, x, z)


@rewrite(
    "where",
    exact=True,
    needs=["where"],
    equation="where(c, where(d, x, y), y) -> where(c & d, x, y); where(c, x, where(d, x, y)) -> where(c | d, x, y)",
    examples=lambda: [
        example(f, leaves(4, {0: "bool", 1: "bool"}, (3,)))
        for f in (
            lambda c, d, x, y: where(c, where(d, x, y), y),
            lambda c, d, x, y: where(c, where(d, y, x), y),
            lambda c, d, x, y: where(c, x, where(d, x, y)),
            lambda c, d, x, y: where(c, x, where(d, y, x)),
        )
    ],
)
def choice_of_choice(v: Value, context) -> Value | None:
    """One choice by both conditions."""
    c, x, y = v.operands
    if x.op is where and context.single_use(x):
        d, a, b = x.operands
        return where(and_(c, d), a, b) if b is y else where(and_(c, not_(d)), b, a) if a is y else None
    if y.op is where and context.single_use(y):
        d, a, b = y.operands
        return where(or_(c, d), a, b) if a is x else where(or_(c, not_(d)), b, a) if b is x else None
    return None


def _is_plain(v: Value) -> bool:
    """True for elementwise functions that choose nothing, and raise nothing."""
    return "elementwise" in v.op.traits and "checks" not in v.op.traits and v.op is not where


@rewrite(
    exact=True,
    trait="elementwise",
    needs=["where"],
    equation="f(where(c, 1, 2), 3) -> where(c, f(1, 3), f(2, 3))",
    examples=lambda: [
        example(lambda c, x, y, z: lookup("exp")(where(c, splat(1.0, x.type), splat(2.0, x.type))), _choice()),
        example(lambda c, x, y, z: where(c, splat(1.0, x.type), splat(2.0, x.type)) * 3, _choice()),
    ],
)
def choice_of_numbers(v: Value) -> Value | None:
    """A choice of numbers stays one. A check is not moved to where the other side was chosen."""
    if not _is_plain(v) or v.regions:
        return None
    chosen = [o for o in v.operands if splat_of(o) is None]
    if not chosen or any(o.op is not where or o.operands[0] is not chosen[0].operands[0] for o in chosen):
        return None
    if any(splat_of(b) is None for o in chosen for b in o.operands[1:]):
        return None
    sides = [make(v.op, [o if splat_of(o) is not None else o.operands[k] for o in v.operands], v.attrs) for k in (1, 2)]
    return where(chosen[0].operands[0], *sides)


@rewrite(
    exact=True,
    trait="elementwise",
    needs=["where"],
    equation="f(where(c, a, b), where(c, x, y)) -> where(c, f(a, x), f(b, y))",
    examples=lambda: [example(lambda c, x, y, z: where(c, x, y) + where(c, z, x), _choice())],
)
def merge_choices(v: Value, context) -> Value | None:
    """Two choices on one condition are one, where an answer is a number on either side."""
    if not _is_plain(v) or len(v.operands) != 2:
        return None
    x, y = v.operands
    if not (
        x.op is y.op is where
        and x.operands[0] is y.operands[0]
        and context.single_use(x)
        and context.single_use(y)
    ):
        return None
    made = [make(v.op, (x.operands[k], y.operands[k]), v.attrs) for k in (1, 2)]
    return where(x.operands[0], *made)


@rewrite(
    "mul",
    "div",
    kinds="fc",
    needs=["where"],
    equation="where(c, 0, x) * y -> where(c, 0, x * y); where(c, 0, x) / y -> where(c, 0, x / y)",
    examples=lambda: [
        example(lambda c, x, y, z: where(c, splat(0.0, x.type), x) * y, _choice()),
        example(lambda c, x, y, z: where(c, x, splat(0.0, x.type)) * y, _choice()),
        example(lambda c, x, y, z: where(c, splat(0.0, x.type), x) / y, _choice()),
    ],
)
def product_with_choice_of_zero(v: Value, context) -> Value | None:
    """A zero that was chosen stays zero, even if the other factor is infinite there (gradients of guarded
    functions), or over zero."""
    for k in (0, 1) if v.op is mul else (0,):
        w, y = v.operands[k], v.operands[1 - k]
        if w.op is where and context.single_use(w):
            c, a, b = w.operands
            if is_number(a, 0) and not is_number(b, 0):
                return where(c, a, v.op(b, y))
            if is_number(b, 0) and not is_number(a, 0):
                return where(c, v.op(a, y), b)
    return None


@rewrite("eq", "le", "ge", exact=True, kinds="biu", equation="x == x -> true", examples=lambda: [_compare("eq")])
def same_integers(v: Value) -> Value | None:
    """An integer equals itself."""
    return splat(True, TensorType("bool", v.shape)) if v.operands[0] is v.operands[1] else None


@rewrite("ne", "lt", "gt", exact=True, kinds="biuf", equation="x < x -> false", examples=lambda: [_compare("lt")])
def never_below_itself(v: Value) -> Value | None:
    """Nothing is below itself (but a float may differ from itself: nan)."""
    if v.operands[0] is not v.operands[1] or (v.op.name == "ne" and v.operands[0].dtype.kind == "f"):
        return None
    return splat(False, TensorType("bool", v.shape))


def _compare(name: str) -> Value:
    x = leaves(1, {0: "i64"}, (3,))[0]
    return lookup(name)(x, x)


@rewrite(
    "and",
    "or",
    exact=True,
    kinds="b",
    needs=["#"],
    equation="c & true -> c; c & false -> false; c | true -> true; c | false -> c",
    examples=lambda: [op(c := _choice()[0], splat(k, c.type)) for op in (and_, or_) for k in (True, False)],
    written=lambda sc: (lambda c: [c & sc.ones(3, bool), c | sc.zeros(3, bool)])(sc.input("c", "bool", shape=(3,))),
)
def condition_and_number(v: Value) -> Value | None:
    """A condition that is known."""
    for c, other in (v.operands, v.operands[::-1]):
        number = splat_of(other)
        if number is not None:
            return c if bool(number) == (v.op is and_) else other
    return None
