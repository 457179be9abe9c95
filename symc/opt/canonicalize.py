"""Canonical forms: one spelling for one idea, so that no other rule misses because of how something was written.

Order of commutative operands: numbers last, else by fingerprint. ``x - 2`` is ``x + -2``; ``x + -y`` is ``x - y``;
signs move out of products; division by a power of two is multiplication; small powers are products and roots; negation
of a negation, and movements that move nothing, are gone. Numbers computed from numbers are numbers. Everything here
makes a graph smaller or leaves its cost as it was; what trades one cost for another is in the families under ``rules``.
"""

from __future__ import annotations

import numpy as np

from symc.ir.attrs import Array
from symc.ir.op import lookup, splat
from symc.ir.ops.arithmetic import abs_, div, mul, neg
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq
from symc.ir.ops.logic import where
from symc.ir.ops.math import sqrt
from symc.ir.record import replace
from symc.ir.text import splat_of
from symc.ir.types import TensorType
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite, rule
from symc.opt.engine.examples import example, leaves
from symc.opt.engine.rule import Context
from symc.opt.engine.terms import is_number
from symc.opt.facts.fact import Fact

SIGNED = "ifc"
NUMBERS = "iufc"


def _two(dtype: str = "f64", shape: tuple = (3,)) -> list[Value]:
    return leaves(2, {0: dtype, 1: dtype}, shape)


# --- numbers ----------------------------------------------------------------------------------------------------------


@rewrite(
    exact=True,
    weight=9,
    trait="elementwise",
    needs=["#"],
    equation="op(number, number) -> number",
    examples=lambda: [splat(2.0, TensorType("f64", (3,))) * splat(3.0, TensorType("f64", (3,)))],
)
def number_of_numbers(v: Value) -> Value | None:
    """An elementwise op on splats is a splat: numbers never become arrays."""
    if "elementwise" not in v.op.traits or not v.operands or v.regions or not isinstance(v.type, TensorType):
        return None
    numbers = [splat_of(o) for o in v.operands]
    if any(n is None for n in numbers):
        return None
    return splat(Array(v.op.reference(*numbers, **v.attrs.concrete({}))), v.type)


# --- order of operands ------------------------------------------------------------------------------------------------


@rewrite(
    exact=True,
    weight=8,
    trait="commutative",
    equation="op(2, x) -> op(x, 2)",
    examples=lambda: [example(lambda x, y: 2 + x, _two())],
)
def commutative_order(v: Value) -> Value | None:
    """Numbers last, else by fingerprint: equal sums are one value however they were written."""
    if "commutative" not in v.op.traits or len(v.operands) != 2:
        return None
    x, y = v.operands
    first, second = splat_of(x) is not None, splat_of(y) is not None
    if first > second or (first == second and x.fingerprint > y.fingerprint):
        return make(v.op, (y, x), v.attrs)
    return None


def _numbers_last(v: Value, context: Context) -> Value | None:
    x, y = v.operands if len(v.operands) == 2 else (v, v)
    return make(v.op, (y, x), v.attrs) if splat_of(x) is not None and splat_of(y) is None else None


#: The same for graphs under construction: fingerprints of their leaves tell when these were made, and a program must
#: not depend on what was made before it.
NUMBERS_LAST = replace(commutative_order, apply=_numbers_last)


# --- signs ------------------------------------------------------------------------------------------------------------


@rewrite(
    "sub",
    exact=True,
    kinds=SIGNED,
    needs=["#"],
    equation="x - 2 -> x + -2",
    examples=lambda: [example(lambda x, y: x - 2, _two())],
)
def subtract_number(v: Value) -> Value | None:
    """A sum with a number has one form."""
    number = splat_of(v.operands[1])
    if number is None or splat_of(v.operands[0]) is not None:
        return None
    with np.errstate(all="ignore"):
        return v.operands[0] + splat(Array(np.negative(number)), v.type)


@rule(exact=True, kinds=NUMBERS, check=False)
def add_negated(x, y):
    """One form of a difference."""
    return x + -y, x - y


@rule(exact=True, kinds=NUMBERS, check=False)
def subtract_negated(x, y):
    """One form of a sum."""
    return x - -y, x + y


@rule(exact=True, kinds="fc", check=False)
def times_minus_one(x):
    """A sign is a neg."""
    return x * -1.0, -x


@rule(exact=True, kinds=SIGNED, check=False)
def negated_twice(x):
    """Two signs are none."""
    return neg(neg(x)), x


def _neg_operand(v: Value) -> int | None:
    return next((k for k, o in enumerate(v.operands) if o.op is neg), None)


@rewrite(
    "mul",
    "div",
    exact=True,
    kinds="fc",
    needs=["neg"],
    equation="(-x) * y -> -(x * y)",
    examples=lambda: [example(lambda x, y: -x * y, _two())],
)
def sign_out_of_product(v: Value) -> Value | None:
    """Signs move out of products and quotients (into a number if there is one), where they meet and cancel."""
    k = _neg_operand(v)
    if k is None:
        return None
    operands = list(v.operands)
    operands[k] = operands[k].operands[0]
    other = splat_of(operands[1 - k])
    if other is not None:
        operands[1 - k] = splat(Array(np.negative(other)), v.type)
        return make(v.op, operands)
    return -make(v.op, operands)


@rewrite(
    "neg",
    exact=True,
    kinds="fc",
    equation="-(x * 2) -> x * -2",
    examples=lambda: [example(lambda x, y: -(x * 2), _two())],
)
def sign_into_number(v: Value, context) -> Value | None:
    """A negated product with a number is a product with the negated number."""
    (x,) = v.operands
    if x.op.name not in ("mul", "div") or not context.single_use(x):
        return None
    for k in (1, 0):
        number = splat_of(x.operands[k])
        if number is not None:
            operands = list(x.operands)
            operands[k] = splat(Array(np.negative(number)), x.type)
            return make(x.op, operands)
    return None


# --- identities -------------------------------------------------------------------------------------------------------


@rule(exact=True, kinds="fc", check=False)
def times_one(x):
    """1 changes nothing."""
    return x * 1.0, x


@rule(exact=True, kinds="iu", check=False)
def times_one_integer(x):
    """1 changes nothing."""
    return x * 1, x


@rule(exact=True, kinds="fc", check=False)
def over_one(x):
    """1 changes nothing."""
    return x / 1.0, x


@rule(exact=True, kinds="fc", check=False)
def plus_minus_zero(x):
    """-0.0 is the number that changes nothing in a sum (0.0 turns -0.0 into 0.0)."""
    return x + -0.0, x


@rule(exact=True, kinds="iu", check=False)
def plus_zero_integer(x):
    """0 changes no integer."""
    return x + 0, x


@rule(kinds="fc", check=False, tags=["signed-zero"])
def plus_zero(x):
    """0 changes nothing but the sign of -0.0."""
    return x + 0.0, x


@rule(kinds="fc", check=False, tags=["signed-zero"])
def zero_minus(x):
    """A difference from 0 is a sign (but 0 - 0 is 0, and -0 is -0.0)."""
    return 0.0 - x, -x


@rewrite(
    "div",
    exact=True,
    kinds="fc",
    needs=["#"],
    equation="x / 4 -> x * 0.25",
    examples=lambda: [example(lambda x, y: x / 4, _two())],
)
def over_power_of_two(v: Value) -> Value | None:
    """Multiplying by the reciprocal of a power of two rounds the same, and is faster."""
    number = splat_of(v.operands[1])
    if (
        number is None
        or number.dtype.kind != "f"
        or splat_of(v.operands[0]) is not None
        or not np.isfinite(number)
        or number == 0
    ):
        return None
    mantissa, _ = np.frexp(number)
    with np.errstate(all="ignore"):
        reciprocal = np.asarray(1 / number, number.dtype)
    if abs(mantissa) != 0.5 or not np.isfinite(reciprocal) or abs(reciprocal) < np.finfo(number.dtype).tiny:
        return None
    return mul(v.operands[0], splat(Array(reciprocal), v.type))


# --- involutions and idempotents --------------------------------------------------------------------------------------


@rewrite(
    exact=True,
    equation="f(f(x)) -> x",
    trait="involution",
    examples=lambda: [example(lambda c: make(lookup("not"), (make(lookup("not"), (c,)),)),
                              leaves(1, {0: "bool"}, (3,)))],
)
def involution(v: Value) -> Value | None:
    """An op that undoes itself, twice, is nothing."""
    if "involution" in v.op.traits and v.operands[0].op is v.op:
        return v.operands[0].operands[0]
    return None


@rewrite(
    exact=True,
    equation="f(x, x) -> x",
    trait="idempotent",
    examples=lambda: [example(lambda x, y: make(lookup("maximum"), (x, x)), _two())],
)
def idempotent(v: Value) -> Value | None:
    """maximum(x, x), x & x and the like are x."""
    if "idempotent" in v.op.traits and len(v.operands) == 2 and v.operands[0] is v.operands[1]:
        return v.operands[0]
    return None


# --- powers -----------------------------------------------------------------------------------------------------------


@rewrite(
    "pow",
    needs=["#"],
    kinds="iufc",
    equation="x**2 -> x * x; x**0.5 -> sqrt(x); x**-1 -> 1 / x",
    tags=["powers"],
    examples=lambda: [
        example(lambda x, y: x**2, _two()),
        example(lambda x, y: x**0.5, _two()),
        example(lambda x, y: x**-1.0, _two()),
        example(lambda x, y: x**-0.5, _two()),
    ],
)
def small_power(v: Value, context) -> Value | None:
    """Powers that are a product, a quotient or a root, with fewer roundings than pow.

    At -inf and -0.0, sqrt is what NumPy takes for a power of 0.5, and not for one of -0.5.
    """
    x, y = v.operands
    if splat_of(x) is not None:
        return None
    if is_number(y, 1):
        return x
    if is_number(y, 2):
        return x * x
    if x.dtype.kind != "f":
        return None
    if is_number(y, 0.5):
        return sqrt(x)
    if is_number(y, -1):
        return div(splat(1, x.type), x)
    if is_number(y, -0.5):
        return _inverse_of_root(x, context.facts(x))
    return None


def base_of_root(x: Value, fact: Fact) -> Value:
    """x, of whose root a power is made: inf for -inf, of which the root is nan. ``fact``: what is known of x."""
    if fact.nonnegative or not fact.inf:
        return x
    return where(eq(x, splat(-np.inf, x.type)), splat(np.inf, x.type), x)


def _inverse_of_root(x: Value, fact: Fact) -> Value:
    """``x**-0.5``, which is inf where x is -0.0."""
    out = div(splat(1, x.type), sqrt(base_of_root(x, fact)))
    return out if fact.nonzero else abs_(out)


# --- casts ------------------------------------------------------------------------------------------------------------


@rewrite(
    "cast",
    exact=True,
    equation="cast(x: t, t) -> x",
    examples=lambda: [cast(_two()[0], dtype=np.dtype("f8"))],
    misses=lambda: [cast(_two()[0], dtype=np.dtype("f4"))],
    arises="other rules and derivatives; the front end makes none",
)
def cast_to_same(v: Value) -> Value | None:
    """A conversion to the dtype a value has."""
    return v.operands[0] if v.operands[0].dtype == v.dtype else None


@rewrite(
    "cast",
    exact=True,
    equation="cast(cast(x, wide), t) -> cast(x, t)",
    examples=lambda: [cast(cast(_two("f32")[0], dtype=np.dtype("f8")), dtype=np.dtype("i8"))],
)
def cast_of_cast(v: Value) -> Value | None:
    """A conversion by way of a wider dtype that loses nothing is the direct one."""
    (x,) = v.operands
    if x.op is not cast:
        return None
    source, middle, target = x.operands[0].dtype, x.dtype, v.dtype
    if source.kind + middle.kind + target.kind not in ("fff", "iii", "uuu", "iff", "uff", "bii", "buu", "bff", "ffi"):
        return None
    if not np.can_cast(source, middle, "safe") or (
        source.kind in "iu" and middle.kind == "f" and 2 * source.itemsize > middle.itemsize
    ):
        return None
    return cast(x.operands[0], dtype=target)
