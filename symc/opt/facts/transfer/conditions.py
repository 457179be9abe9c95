"""Comparisons that ranges decide, and what follows from conditions that are decided."""

from __future__ import annotations

from symc.ir.text import splat_of
from symc.ir.value import Value
from symc.opt.facts.fact import UNKNOWN, Fact, above, at_least, at_most, transfer
from symc.opt.facts.transfer.ends import ranged

TRUE, FALSE = Fact(1, 1), Fact(0, 0)
ANY = Fact(0, 1)


@transfer("lt", "le", "gt", "ge")
def _compare(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    name = v.op.name
    if name in ("gt", "ge"):
        x, y = y, x
    strict = name in ("lt", "gt")
    nan = v.operands[0].dtype.kind == "f" and (x.nan or y.nan)
    if _below(x, y, strict):
        return ANY if nan else TRUE
    return FALSE if _below(y, x, not strict) else ANY


def _below(x: Fact, y: Fact, strict: bool) -> bool:
    """x < y (or <=) for all elements that are not nan."""
    if not strict:
        return at_most(x.high, y.low)
    if above(y.low, x.high):
        return True
    return at_most(x.high, 0) and at_least(y.low, 0) and (x.nonzero or y.nonzero)


@transfer("eq", "ne")
def _equal(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    if v.operands[0].dtype.kind == "c":
        apart = False
    else:
        apart = _below(x, y, True) or _below(y, x, True)
    number = splat_of(v.operands[1])
    apart = apart or (number is not None and number == 0 and x.nonzero)
    if apart:
        return FALSE if v.op.name == "eq" else TRUE
    exactly = x.low is not None and x.low == x.high and y.low is not None and y.low == y.high and x.low == y.low
    if exactly and not x.nan and not y.nan and v.operands[0].dtype.kind != "c":
        return TRUE if v.op.name == "eq" else FALSE
    return ANY


@transfer("isnan")
def _isnan(v: Value, given: list[Fact]) -> Fact:
    return ANY if given[0].nan else FALSE


@transfer("isinf")
def _isinf(v: Value, given: list[Fact]) -> Fact:
    return ANY if given[0].inf else FALSE


@transfer("isfinite")
def _isfinite(v: Value, given: list[Fact]) -> Fact:
    return TRUE if given[0].finite else ANY


@transfer("signbit")
def _signbit(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if x.nan or x.zero:
        return ANY
    return FALSE if x.positive else TRUE if x.negative else ANY


@transfer("not")
def _not(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.dtype.kind != "b":
        return UNKNOWN
    return FALSE if at_least(x.low, 1) else TRUE if at_most(x.high, 0) else ANY


@transfer("and", "or")
def _logic(v: Value, given: list[Fact]) -> Fact:
    if v.dtype.kind != "b":
        return Fact(*ranged(v, given))
    wins = 0 if v.op.name == "and" else 1
    if any(f.low == f.high == wins for f in given):
        return FALSE if wins == 0 else TRUE
    return (TRUE if wins == 0 else FALSE) if all(f.low == f.high == 1 - wins for f in given) else ANY


@transfer("any", "all")
def _quantified(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.op.name == "all" and at_least(x.low, 1):
        return TRUE
    return FALSE if v.op.name == "any" and at_most(x.high, 0) else ANY
