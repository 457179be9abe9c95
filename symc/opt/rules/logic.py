"""Logic: truth values that are known, conditions that say less than they seem to, comparisons of differences.

All exact: there is nothing to round. What a nan is compared to is false, so an order of floats has no opposite.
"""

from __future__ import annotations

from symc.ir.op import lookup, splat
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import COMPARISONS, eq, gt, lt
from symc.ir.ops.logic import and_, not_, or_
from symc.ir.text import splat_of
from symc.ir.types import DTYPES
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.terms import is_number


def _masks(count: int) -> list[Value]:
    return leaves(count, dict.fromkeys(range(count), "bool"), (3,))


# --- and, or, not -----------------------------------------------------------------------------------------------------


@rewrite(
    "and",
    "or",
    exact=True,
    kinds="b",
    needs=["#"],
    equation="c & true -> c; c & false -> false; c | true -> true; c | false -> c",
    examples=lambda: [op(c := _masks(1)[0], splat(k, c.type)) for op in (and_, or_) for k in (True, False)],
    written=lambda sc: (lambda c: [c & sc.ones(3, bool), c | sc.zeros(3, bool)])(sc.input("c", "bool", shape=(3,))),
)
def condition_and_number(v: Value) -> Value | None:
    """A condition that is known."""
    for c, other in (v.operands, v.operands[::-1]):
        number = splat_of(other)
        if number is not None:
            return c if bool(number) == (v.op is and_) else other
    return None


@rule(exact=True, kinds="biu")
def and_again(c, d):
    """Once is enough."""
    return and_(c, and_(c, d)), and_(c, d)


@rewrite(
    "and",
    "or",
    exact=True,
    kinds="biu",
    needs=["not"],
    equation="not c & not d -> not (c | d); not c | not d -> not (c & d)",
    examples=lambda: [op(*map(not_, _masks(2))) for op in (and_, or_)],
)
def both_negated(v: Value, context) -> Value | None:
    """One negation for two."""
    x, y = v.operands
    if x.op is not not_ or y.op is not not_ or not (context.single_use(x) and context.single_use(y)):
        return None
    return not_((or_ if v.op is and_ else and_)(x.operands[0], y.operands[0]))


# --- comparisons ------------------------------------------------------------------------------------------------------


@rewrite(
    "lt",
    "gt",
    exact=True,
    kinds="f",
    needs=["#", "sub"],
    equation="x - y < 0 -> x < y; x - y > 0 -> x > y",
    examples=lambda: [make(op, ((d := x - y), splat(0, d.type))) for op in (lt, gt) for x, y in [leaves(2, {}, (3,))]],
)
def compared_difference(v: Value) -> Value | None:
    """The sign of a difference is exact, also where it overflows or is denormal; equal infinities are in no order."""
    d, zero = v.operands
    if not is_number(zero, 0):
        return None
    if d.op.name == "sub":
        return make(v.op, d.operands)
    number = splat_of(d.operands[1]) if d.op.name == "add" else None
    return None if number is None else make(v.op, (d.operands[0], splat((-number)[()], d.type)))


@rewrite(
    *[op.name for op in COMPARISONS],
    exact=True,
    kinds="f",
    needs=["neg"],
    equation="-x < -y -> x > y; -x < 2 -> x > -2",
    examples=lambda: [
        example(lambda x, y: lt(-x, -y), leaves(2, {}, (3,))),
        (lambda x: eq(-x, splat(2.0, x.type)))(leaves(1, {}, (3,))[0]),
    ],
)
def compared_signs(v: Value) -> Value | None:
    """Signs turn an order round."""
    x, y = v.operands
    if x.op.name != "neg":
        return None
    number = splat_of(y)
    if number is not None:
        other = splat((-number)[()], y.type)
    elif y.op.name == "neg":
        other = y.operands[0]
    else:
        return None
    return make(lookup(v.op.facts.mirror), (x.operands[0], other))


@rewrite(
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    exact=True,
    needs=["cast", "#"],
    equation="cast(c) != 0 -> c; cast(c) == 0 -> not c",
    examples=lambda: [
        make(lookup(name), ((x := cast(_masks(1)[0], dtype=DTYPES["f64"])), splat(k, x.type)))
        for name, k in (("ne", 0), ("eq", 0), ("gt", 0.5), ("lt", 2))
    ],
)
def condition_as_number_compared(v: Value) -> Value | None:
    """A condition that became a number becomes one again."""
    x, number = v.operands[0], splat_of(v.operands[1])
    if x.op is not cast or number is None or x.operands[0].dtype.kind != "b":
        return None
    c = x.operands[0]
    no, yes = (bool(v.op.reference(x.dtype.type(k), number)) for k in (0, 1))
    return splat(yes, v.type) if no == yes else c if yes else not_(c)


# --- conditions made of choices ---------------------------------------------------------------------------------------
