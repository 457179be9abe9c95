"""Facts inside loops and branches, and of their results.

What is captured, and what runs over rows, has in a body the facts it has outside. Of a carry a fact is tried: what
holds at the start and after one step, then only its sign; what the body keeps is an invariant, and what it does not
keep is not known.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.bodies import is_loop_or_branch
from symc.ir.traverse import region_params
from symc.ir.types import TupleType
from symc.ir.value import Region, Value
from symc.opt.facts.fact import UNKNOWN, Fact, Facts, at_least, at_most, implies, join
from symc.opt.facts.transfer.structures import MATRIX, ROW

#: In loops nested deeper than this nothing is tried.
DEEPEST = 3


def params_of(v: Value, facts: Facts) -> list[tuple[Fact, ...]]:
    """Facts of the params of every region of ``v``."""
    if not is_loop_or_branch(v):
        return [(UNKNOWN,) * len(r.params) for r in v.regions]
    if v.op.name == "cond":
        return [tuple(facts(o) for o in v.operands[1:])] * len(v.regions)
    given = _inside(v, facts)
    carries = v.attrs["carry"]
    found = _invariant(v, given[:carries], given[carries:], facts)
    return [(*found, *given[carries:])] * len(v.regions)


def _inside(v: Value, facts: Facts) -> tuple[Fact, ...]:
    """Facts of the operands as the body gets them in the first step."""
    carries, rows = v.attrs["carry"], v.attrs.get("xs", 0)
    return tuple(
        _row_of(facts(o), o.ndim) if carries <= k < carries + rows else facts(o) for k, o in enumerate(v.operands)
    )


def _row_of(f: Fact, ndim: int) -> Fact:
    """The fact of ``x[t]``."""
    return f.with_props(f.props & ((MATRIX if ndim > 2 else frozenset()) | (ROW if ndim > 1 else frozenset())))


def _invariant(v: Value, first: Sequence[Fact], rest: Sequence[Fact], facts: Facts) -> tuple[Fact, ...]:
    """Facts of the carries that hold in every step."""
    unknown = (UNKNOWN,) * len(first)
    if not first or facts.depth >= DEEPEST or all(f == UNKNOWN for f in first):
        return unknown
    body = v.regions[-1]

    def after(carries: Sequence[Fact]) -> tuple[Fact, ...]:
        return results_of_body(body, (*carries, *rest), facts)[: len(first)]

    tried = tuple(map(join, first, after(first)))
    for _ in range(2):
        if all(map(implies, after(tried), tried)):
            return tried
        tried = tuple(map(_sign_of, tried))
    return unknown


def _sign_of(f: Fact) -> Fact:
    """The part of a fact that is coarse enough to last: the sign, and whether there is nan or an infinity."""
    return Fact(0 if at_least(f.low, 0) else None, 0 if at_most(f.high, 0) else None, f.nan, f.inf, f.zero, f.integer,
                f.props)


def results_of_body(body: Region, given: tuple[Fact, ...], facts: Facts) -> tuple[Fact, ...]:
    """The facts of the results of a body, given those of its params."""
    found = facts.bodies.get((body, given))
    if found is None:
        inner = facts.inside(dict(zip(region_params(body), given, strict=True)))
        found = facts.bodies[body, given] = tuple(inner(r) for r in body.results)
    return found


def facts_of_control(v: Value, facts: Facts) -> Fact | tuple[Fact, ...]:
    """Facts of the results of a loop or branch."""
    given = params_of(v, facts)
    results = [results_of_body(r, g, facts) for r, g in zip(v.regions, given, strict=True)]
    if v.op.name == "cond":
        out = tuple(_joined(facts_) for facts_ in zip(*results, strict=True))
    elif v.op.name == "while":
        carries = v.attrs["carry"]
        out = (*map(join, _first(v, facts), results[-1][:carries]), Fact(0, v.attrs["max_steps"]))
    else:
        carries = v.attrs["carry"]
        out = (*map(join, _first(v, facts), results[0][:carries]), *results[0][carries:])
    return out if isinstance(v.type, TupleType) else out[0]


def _first(v: Value, facts: Facts) -> list[Fact]:
    return [facts(o) for o in v.operands[: v.attrs["carry"]]]


def _joined(alternatives: tuple[Fact, ...]) -> Fact:
    first, *others = alternatives
    for f in others:
        first = join(first, f)
    return first
