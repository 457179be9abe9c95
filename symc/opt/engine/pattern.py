"""Patterns: the left sides of rules, and how they are found in a graph.

A pattern is a small graph over rank-0 variables. It is not text and not a tree language of its own: it is what the op
builders give when they are applied to pattern leaves, so a rule reads like the mathematics it states. Matching is
modulo spelling: sums and products are compared as collections of terms (``a - b + c`` is {a, c, -b}; ``a / b`` is {a,
1/b}), numbers match splats of any rank and dtype, and every other commutative op matches either way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from symc.ir.attrs import Array, Attrs
from symc.ir.op import Op, splat
from symc.ir.record import dataclass
from symc.ir.text import splat_of
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Value, make
from symc.opt.engine.terms import (
    NESTS,
    NUMBER,
    PRODUCT,
    Term,
    bare,
    direct,
    flatten,
    ingredients,
    is_number,
    join,
    kind_of,
    table,
)


@dataclass(frozen=True)
class Var:
    """Matches any value; twice the same Var matches twice the same value."""

    index: int
    boolean: bool = False  # a condition: matches bool values only


@dataclass(frozen=True)
class Number:
    """Matches a constant, or a splat of one, that is this number in the matched dtype."""

    value: np.ndarray


@dataclass(frozen=True)
class Node:
    """Matches one op with its attributes."""

    op: Op
    attrs: Attrs
    operands: tuple[Pattern, ...]

    @cached_property
    def numbers(self) -> Sequence[tuple[int, np.ndarray]]:
        """The operands that are numbers, by their places."""
        return [(k, q.value) for k, q in enumerate(self.operands) if isinstance(q, Number)]

    def lacks_number(self, v: Value, bitwise: bool) -> bool:
        """True for a value of the op that is none of this for certain: a number is not among its operands."""
        anywhere = "commutative" in self.op.traits
        return any(not any(is_number(bare(o), n, bitwise) for o in (v.operands if anywhere else v.operands[k : k + 1]))
                   for k, n in self.numbers)


@dataclass(frozen=True)
class Terms:
    """Matches a nest of sums or products as a collection of (sign, pattern)."""

    kind: str  # "sum" or "product"
    terms: tuple[tuple[int, Pattern], ...]

    @cached_property
    def needs(self) -> frozenset[str]:
        return needs(self)

    @cached_property
    def numbers(self) -> Sequence[tuple[int, np.ndarray]]:
        """The terms that are numbers, with their signs."""
        return [(sign, q.value) for sign, q in self.terms if isinstance(q, Number)]

    def lacks_number(self, terms: Sequence[Term], bitwise: bool) -> bool:
        """True if a number is not among these terms."""
        return any(not any(s == sign and is_number(bare(x), n, bitwise) for s, x in terms) for sign, n in self.numbers)


Pattern = Var | Number | Node | Terms


@dataclass
class Match:
    """The values of the variables, and what of a sum or product at the root was left over."""

    bound: dict[int, Value]
    rest: tuple[Term, ...] = ()
    kind: str = ""

    def complete(self, value: Value) -> Value:
        """``value`` for the matched terms, together with those left over."""
        return join([(1, value), *self.rest], self.kind) if self.rest else value


def keeps_kind(p: Pattern) -> bool:
    """True if what matches has the dtype kind of what its variables are."""
    if isinstance(p, Node):
        return p.op.facts.result == "same" and p.op.facts.arity > 0 and all(map(keeps_kind, p.operands))
    return not isinstance(p, Terms) or all(keeps_kind(q) for _, q in p.terms)


def compile_pattern(lhs: Value, variables: Sequence[Value], terms: bool) -> Pattern:
    """The pattern of a left side. ``terms``: compare sums and products as collections (not for exact rules)."""
    made: dict[Value, Pattern] = {v: Var(k, v.dtype.kind == "b") for k, v in enumerate(variables)}
    for v in postorder([lhs]):
        if v in made:
            continue
        number = splat_of(v)
        if number is not None:
            made[v] = Number(number)
        elif terms and kind_of(v.op.name):
            kind = kind_of(v.op.name)
            made[v] = Terms(
                kind, tuple(sorted(((s, made[x]) for s, x in flatten(v, kind)), key=lambda t: _freedom(t[1])))
            )
        else:
            made[v] = Node(v.op, v.attrs, tuple(made[o] for o in v.operands))
    return made[lhs]


def _freedom(p: Pattern) -> tuple[int, bool]:
    """Patterns that say most are tried first; -x after x, so that it is known what the sign is of."""
    return {Number: 1, Var: 2}.get(type(p), 0), _has_negated(p)


def _has_negated(p: Pattern) -> bool:
    if isinstance(p, Terms):
        return any(_has_negated(q) for _, q in p.terms)
    return isinstance(p, Node) and (
        p.op.name == "neg" and isinstance(p.operands[0], Var) or any(map(_has_negated, p.operands)))


def weight(p: Pattern) -> int:
    """The weight of a pattern: the number of its ops and numbers."""
    if isinstance(p, Node):
        return 1 + sum(weight(o) for o in p.operands)
    if isinstance(p, Terms):
        return len(p.terms) - 1 + sum(weight(t) for _, t in p.terms) + sum(s < 0 for s, _ in p.terms)
    return int(isinstance(p, Number))


def takes_number(p: Pattern) -> bool:
    """True if a number and something else of one sum are in a pattern, at its root or right below."""
    nests = p.operands if isinstance(p, Node) else (p,)
    sums = [q for q in nests if isinstance(q, Terms) and q.kind == "sum"]
    return any(isinstance(t, Number) for q in sums for _, t in q.terms)


def needs(p: Pattern) -> frozenset[str]:
    """Op names that must be right below a match (see ``rewrite.ingredients``): most candidates fail this, at little
    cost."""
    below = p.operands if isinstance(p, Node) else [t for _, t in p.terms] if isinstance(p, Terms) else ()
    return frozenset(_mark(q) for q in below if not isinstance(q, Var))


def ops_of(p: Pattern) -> frozenset[str]:
    """The names of all ops that a match has, but for sums and products."""
    if isinstance(p, Node):
        return frozenset([p.op.name]).union(*map(ops_of, p.operands))
    return frozenset().union(*[ops_of(q) for _, q in p.terms]) if isinstance(p, Terms) else frozenset()


def _mark(p: Pattern) -> str:
    if isinstance(p, Terms):
        return NESTS[p.kind]
    return p.op.name if isinstance(p, Node) else NUMBER


def roots(p: Pattern) -> tuple[str, ...]:
    """The op names a match can start at."""
    if isinstance(p, Node):
        return (p.op.name,)
    assert isinstance(p, Terms)
    signs = {s for s, _ in p.terms}
    if signs == {1}:
        return ("add", "sub") if p.kind == "sum" else ("mul", "div")
    return tuple(table(p.kind)) if 1 in signs else ("sub" if p.kind == "sum" else "div",)


def match(p: Pattern, v: Value, bitwise: bool = False) -> Match | None:
    """The first way in which the pattern is ``v``; at the root of a sum or product, is part of it."""
    if not isinstance(p, Terms):
        if isinstance(p, Node) and p.numbers and v.op is p.op and p.lacks_number(v, bitwise):
            return None
        for bound in _match(p, v, {}, bitwise):
            return Match(bound)
        return None
    if v.op.name not in table(p.kind):
        return None
    near = direct(v, p.kind)
    far = flatten(v, p.kind)
    for terms in [near] if len(far) == len(near) else [near, far]:
        if p.numbers and p.lacks_number(terms, bitwise):
            continue
        for bound, rest in _match_terms(p.terms, terms, {}, bitwise, p.kind):
            if len(rest) < len(terms):
                return Match(bound, tuple(rest), p.kind)
    return None


def _match(p: Pattern, v: Value, bound: dict[int, Value], bitwise: bool) -> Iterator[dict[int, Value]]:
    if isinstance(p, Var):
        seen = bound.get(p.index)
        if seen is None:
            if isinstance(v.type, TensorType) and (v.dtype.kind == "b" or not p.boolean):
                yield {**bound, p.index: v}
        elif seen is v:
            yield bound
        return
    v = bare(v)
    if isinstance(p, Number):
        if is_number(v, p.value, bitwise):
            yield bound
    elif isinstance(p, Node):
        if v.op is p.op and v.attrs == p.attrs and len(v.operands) == len(p.operands):
            yield from _match_operands(p, v, bound, bitwise)
        elif p.op.name == "neg" and isinstance(p.operands[0], Var):
            yield from _match_negated(p.operands[0], v, bound)
    elif v.op.name in table(p.kind) and p.needs <= ingredients(v):
        near, far = direct(v, p.kind), flatten(v, p.kind)
        for terms in [near] if len(far) == len(near) else [near, far]:
            for got, rest in _match_terms(p.terms, terms, bound, bitwise, p.kind):
                if not rest:
                    yield got


def _match_negated(p: Var, v: Value, bound: dict[int, Value]) -> Iterator[dict[int, Value]]:
    """-x is v: where x is known to be v with the other sign, or v has a sign that canonicalize put into a number."""
    seen = bound.get(p.index)
    if seen is not None:
        if seen.op.name == "neg" and seen.operands[0] is v or _opposite(seen) is v:
            yield bound
    elif not p.boolean and (other := _opposite(v)) is not None and np.all(splat_of(v.operands[1]) < 0):  # type: ignore
        yield {**bound, p.index: other}


def _opposite(v: Value) -> Value | None:
    """Minus v, if v is a product or a quotient with a number."""
    number = splat_of(v.operands[1]) if v.op.name in PRODUCT else None
    if number is None or number.dtype.kind not in "fi":
        return None
    return make(v.op, (v.operands[0], splat(Array(-number), v.operands[1].type)))


def _match_operands(p: Node, v: Value, bound: dict[int, Value], bitwise: bool) -> Iterator[dict[int, Value]]:
    orders = [v.operands]
    if "commutative" in p.op.traits and v.operands[0] is not v.operands[1]:
        orders.append(v.operands[::-1])
    for operands in orders:
        states = [bound]
        for q, o in zip(p.operands, operands, strict=True):
            states = [after for state in states for after in _match(q, o, state, bitwise)]
        yield from states


def _match_terms(
    pattern: Sequence[tuple[int, Pattern]], terms: Sequence[Term], bound: dict[int, Value], bitwise: bool, kind: str
) -> Iterator[tuple[dict[int, Value], list[Term]]]:
    """Every way to give each term of the pattern one of ``terms``; with what is left over."""
    if not pattern:
        yield bound, list(terms)
        return
    (sign, p), later = pattern[0], pattern[1:]
    for k, (s, x) in enumerate(terms):
        if s == sign:
            for after in _match(p, x, bound, bitwise):
                yield from _match_terms(later, [*terms[:k], *terms[k + 1 :]], after, bitwise, kind)
    signs = {s for s, _ in terms}
    fits = sign in signs if sign > 0 else signs == {-1}  # 1 - (a + b) is no 1 + x for x = -a - b, nor a / b a 1 / x
    if isinstance(p, Var) and p.index not in bound and not later and len(terms) > 1 and fits:
        yield (
            {**bound, p.index: join([(s * sign, x) for s, x in terms], kind)},
            [],
        )  # the last free variable takes the rest
