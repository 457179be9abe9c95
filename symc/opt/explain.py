"""Why a rule did not fire: the place in the graph that comes nearest to its left side, and what is different there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symc.ir import location
from symc.ir.function import Function
from symc.ir.literal import print_number
from symc.ir.location import NOWHERE
from symc.ir.text import splat_of
from symc.ir.traverse import every_value
from symc.ir.value import Value
from symc.opt.facts import Analysis
from symc.opt.pattern import Node, Number, Pattern, Terms, Var, direct, flatten, match, table, weight
from symc.opt.provenance import expression
from symc.opt.rewrite import Rewriter
from symc.opt.rule import ANY, OPT_IN, Rule

if TYPE_CHECKING:
    from symc.opt.passes import Optimized


def nearest_miss(r: Rule, optimized: Optimized) -> str:
    """One paragraph of text."""
    fired = optimized.provenance.count(r.name)
    if fired:
        return f"{r.name} fired {fired} time{'s' * (fired != 1)}"
    if r.name in optimized.provenance.disabled:
        e = optimized.provenance.disabled[r.name]
        return f"{r.name} was disabled: {type(e).__name__}: {e}"
    best: tuple[int, str, Value | None, Function | None] = (0, "", None, None)
    for f in dict.fromkeys(optimized.stages.values()):
        for v in every_value(f.body):
            score, why = _score(r, v)
            if score > best[0] and why:
                best = (score, why, v, f)
    if best[2] is None or best[3] is None:
        wanted = "any op" if ANY in r.roots else " or ".join(r.roots)
        return f"{r.name} ({r.equation}) did not fire: there is no {wanted} in the graph"
    lines = ", ".join(map(str, _lines(best[3], best[2])))
    out = f"{r.name} ({r.equation}) did not fire.\n  nearest: {expression(best[2])} : {best[2].type}" + (
        f"    {lines}" if lines else ""
    )
    out += f"\n  {best[1]}"
    return out + (f"\n  the rule runs only when asked for: +{r.name}" if OPT_IN in r.tags else "")


def _lines(f: Function, v: Value) -> list[location.Loc]:
    """The user lines of a value of ``f``, or of a value in its loops."""
    return f.locations(v) or location.in_order(NOWHERE.union(*[own.get(v, NOWHERE) for own in f.inside.values()]))


def _score(r: Rule, v: Value) -> tuple[int, str]:
    """How much of the left side ``v`` has, and the first thing that differs."""
    if v.op.name not in r.roots and ANY not in r.roots:
        return 0, ""
    if r.pattern is None:
        result = r.apply(v, Rewriter([]))
        return (
            (2, f"it says: {result}")
            if isinstance(result, str)
            else (1, "the condition of the rewrite does not hold there")
        )
    m = match(r.pattern, v, bitwise=r.exact)
    if m is None:
        return _compare(r.pattern, v)
    full = weight(r.pattern) + 1
    bound = [m.bound.get(k) for k in range(len(r.variables))]
    if any(b is not None and b.dtype.kind not in r.kinds + "b" for b in bound):
        return full, f"the rule is for dtype kinds {r.kinds!r} only"
    if not r.holds(bound, Analysis()):
        names = ", ".join(f"{n} = {expression(b, 3)}" for n, b in zip(r.variables, bound, strict=True) if b is not None)
        return full, f"it matches with {names}, but the side condition does not hold"
    return full, "it matches, but the pass with this rule did not see this form"


def _compare(p: Pattern, v: Value) -> tuple[int, str]:
    if isinstance(p, Var):
        return 0, ""
    if isinstance(p, Number):
        number = splat_of(v)
        if number is not None and bool(number == p.value):
            return 1, ""
        return 0, f"the rule wants {print_number(p.value)} where there is {expression(v, 2)}"
    if isinstance(p, Node):
        if v.op is not p.op or v.attrs != p.attrs:
            return 0, f"the rule wants {p.op.name} where there is {expression(v, 2)}"
        pairs = [_compare(q, o) for q, o in zip(p.operands, v.operands, strict=True)]
    elif v.op.name not in table(p.kind):
        return 0, f"the rule wants a {p.kind} where there is {expression(v, 2)}"
    else:
        pairs = _compare_terms(p, v)
    return 1 + sum(s for s, _ in pairs), next((w for _, w in pairs if w), "")


def _compare_terms(p: Terms, v: Value) -> list[tuple[int, str]]:
    """The best value for each term of the pattern."""
    terms = max(direct(v, p.kind), flatten(v, p.kind), key=len)
    out = []
    for sign, q in p.terms:
        scored = [_compare(q, x) for s, x in terms if s == sign]
        out.append(max(scored, key=lambda t: t[0]) if scored else (0, "a term of the rule has no counterpart"))
    return out
