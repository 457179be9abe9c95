"""Logic: truth values that are known, conditions that say less than they seem to, comparisons of differences.

All exact: there is nothing to round. What a nan is compared to is false, so an order of floats has no opposite.
"""

from __future__ import annotations

from symc.ir.op import lookup, splat
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import COMPARISONS, eq, gt, lt, ne
from symc.ir.ops.logic import and_, not_, or_, where, xor
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


@rewrite(
    "and",
    "or",
    exact=True,
    kinds="b",
    needs=["not"],
    equation="c & not c -> false; c | not c -> true",
    examples=lambda: [op(c := _masks(1)[0], not_(c)) for op in (and_, or_)],
)
def condition_and_opposite(v: Value) -> Value | None:
    """One of them holds, not both."""
    x, y = v.operands
    if (x.op is not_ and x.operands[0] is y) or (y.op is not_ and y.operands[0] is x):
        return splat(v.op is or_, v.type)
    return None


@rule(exact=True, kinds="biu", dtypes={})
def absorbed_by_and(c, d):
    """The weaker condition holds anyway."""
    return and_(c, or_(c, d)), c


@rule(exact=True, kinds="biu", dtypes={})
def absorbed_by_or(c, d):
    """The stronger condition adds nothing."""
    return or_(c, and_(c, d)), c


@rule(exact=True, kinds="biu")
def and_again(c, d):
    """Once is enough."""
    return and_(c, and_(c, d)), and_(c, d)


@rule(exact=True, kinds="biu")
def or_again(c, d):
    """Once is enough."""
    return or_(c, or_(c, d)), or_(c, d)


@rule(exact=True, kinds="biu")
def or_of_opposite_part(c, d):
    """The part that is excluded adds nothing to what is left."""
    return or_(c, and_(not_(c), d)), or_(c, d)


@rule(exact=True, kinds="biu")
def and_of_opposite_part(c, d):
    """The part that is included anyway."""
    return and_(c, or_(not_(c), d)), and_(c, d)


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


@rewrite(
    "xor",
    exact=True,
    kinds="biu",
    equation="x ^ x -> 0",
    examples=lambda: [(lambda c: xor(c, c))(_masks(1)[0])],
)
def xor_with_itself(v: Value) -> Value | None:
    """Nothing differs."""
    return splat(0, v.type) if v.operands[0] is v.operands[1] else None


@rewrite(
    "xor",
    exact=True,
    kinds="b",
    needs=["#"],
    equation="c ^ true -> not c; c ^ false -> c",
    examples=lambda: [xor(c := _masks(1)[0], splat(k, c.type)) for k in (True, False)],
)
def xor_with_number(v: Value) -> Value | None:
    """A negation, or nothing."""
    for c, other in (v.operands, v.operands[::-1]):
        number = splat_of(other)
        if number is not None:
            return not_(c) if number else c
    return None


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
    exact=True,
    needs=["#"],
    equation="c == true -> c; c != true -> not c",
    kinds="b",
    examples=lambda: [op(c := _masks(1)[0], splat(k, c.type)) for op in (eq, ne) for k in (True, False)],
)
def condition_compared(v: Value) -> Value | None:
    """A condition, or its opposite."""
    c, other = v.operands
    number = splat_of(other)
    if number is None or c.dtype.kind != "b":
        return None
    return c if bool(number) == (v.op is eq) else not_(c)


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


@rewrite(
    "where",
    exact=True,
    needs=["#"],
    equation="where(c, true, false) -> c; where(c, x, false) -> c & x; where(c, true, x) -> c | x",
    examples=lambda: [
        *[where(c := _masks(1)[0], splat(k, c.type), splat(not k, c.type)) for k in (True, False)],
        *[where(*[m[0], *args(m[1], splat(k, m[1].type))]) for m in [_masks(2)] for k in (True, False)
          for args in (lambda x, n: (x, n), lambda x, n: (n, x))],
    ],
)  # fmt: skip
def choice_of_conditions(v: Value) -> Value | None:
    """Truth values are combined, not chosen."""
    c, x, y = v.operands
    if v.dtype.kind != "b":
        return None
    first, second = splat_of(x), splat_of(y)
    if first is not None and second is not None:
        return x if first == second else c if first else not_(c)
    if second is not None:
        return or_(not_(c), x) if second else and_(c, x)
    if first is not None:
        return or_(c, y) if first else and_(not_(c), y)
    return None
