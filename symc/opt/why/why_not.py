"""Explanations of what did not happen: a rule, a family, a pass, or an op that one expected in the result.

Of a rule: the place in the graph that comes nearest to its left side, and what is different there. Of a pass: what it
left alone, and why (``reasons``). Of an op: both, for everything that makes it.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from symc.errors import PipelineError, did_you_mean
from symc.ir.bodies import is_loop_or_branch
from symc.ir.function import Function
from symc.ir.literal import print_number
from symc.ir.op import all_ops
from symc.ir.text import splat_of
from symc.ir.traverse import every_value, is_free_leaf, postorder
from symc.ir.value import Value
from symc.opt.engine.pass_registry import Pass, all_passes, find_pass
from symc.opt.engine.pattern import Node, Number, Pattern, Terms, Var, match, weight
from symc.opt.engine.provenance import expression, failure
from symc.opt.engine.rewrite import Rewriter
from symc.opt.engine.rule import ANY, OPT_IN, Rule, all_rules, asks_facts
from symc.opt.engine.terms import direct, flatten, ingredients, table
from symc.opt.facts.analysis import Analysis
from symc.opt.why.history import SPELLING, lines_of, names_of

if TYPE_CHECKING:
    from symc.opt.engine.passes import Optimized

#: How many near misses of several rules or of a pass are told.
MOST = 3


class Miss(NamedTuple):
    """A rule, how much of its left side was found, where, and what differed there."""

    rule: Rule
    score: int
    why: str
    value: Value | None = None
    function: Function | None = None


def why_not(out: Optimized, name: str) -> str:
    """Explains why the rule, pass, family, tag or op called ``name`` did not happen; or how often it did.

    Raises PipelineError with a suggestion for a name that is none of these.
    """
    rules = {r.name: r for r in all_rules()}
    if name in rules:
        return nearest_miss(rules[name], out)
    p = find_pass(name)
    if p is not None:
        return _of_pass(p, out)
    ops = {op.name for op in all_ops()}
    if name in ops:
        return _of_op(name, out)
    group = [r for r in rules.values() if r.named([name])]
    if group:
        return _of_rules(f"the rules {name!r}", group, out)
    families = {n for r in rules.values() for n in (r.family, *r.tags)}
    known = [*rules, *(q.name for q in all_passes()), *families, *ops]
    raise PipelineError(f"no rule, pass or op is called {name!r}", help=did_you_mean(name, known))


# --- rules ------------------------------------------------------------------------------------------------------------


def nearest_miss(r: Rule, out: Optimized) -> str:
    """One paragraph of text."""
    fired = out.provenance.count(r.name)
    if fired:
        return f"{r.name} fired {fired} time{'s' * (fired != 1)}"
    if r.name in out.provenance.disabled:
        return f"{r.name} was disabled: {failure(out.provenance.disabled[r.name])}"
    head = f"{r.name} ({r.equation}) did not fire"
    unasked = f"\n  the rule runs only when asked for: +{r.name}" if OPT_IN in r.tags else ""
    if not unasked and not any(s.name == p.name for s in out.report for p in all_passes() if _applies(p, r)):
        passes = ", ".join(p.name for p in all_passes() if _applies(p, r))
        return f"{head}: no pass that applies it ({passes}) is in the pipeline"
    best = _best(r, out)
    if best.value is None:
        wanted = "any op" if ANY in r.roots else " or ".join(r.roots)
        return f"{head}: there is no {wanted} in the graph{unasked}"
    return f"{head}.\n{_where(best)}\n  {best.why}{unasked}"


def _applies(p: Pass, r: Rule) -> bool:
    return r.family in p.families or (r.family == "user" and "algebra" in p.families)


def _where(m: Miss) -> str:
    assert m.value is not None and m.function is not None
    lines = ", ".join(map(str, lines_of(m.function, m.value)))
    text = f"  nearest: {expression(m.value, 4, names_of(m.function))} : {m.value.type}"
    return text + (f"    {lines}" if lines else "")


def _best(r: Rule, out: Optimized) -> Miss:
    """The place in any stage that comes nearest."""
    best = Miss(r, 0, "")
    for f in dict.fromkeys(out.stages.values()):
        context = Rewriter([])
        values = every_value(f.body)
        context.look(f.body.results)
        for v in values:
            score, why = _score(r, v, context)
            if score > best.score and why:
                best = Miss(r, score, why, v, f)
    return best._replace(why=_named(best.why, best.function)) if best.function is not None else best


def _named(text: str, f: Function) -> str:
    """Text about values of ``f``, with the names of its inputs."""
    names = {f"x{k}": i.name for k, i in enumerate(f.inputs)}
    return re.sub(r"\bx\d+\b", lambda m: names.get(m[0], m[0]), text)


def _of_rules(what: str, rules: Sequence[Rule], out: Optimized) -> str:
    """The firings of some rules, or their nearest misses."""
    counts = {r.name: n for r in rules if (n := out.provenance.count(r.name))}
    if counts:
        return f"of {what} fired: " + ", ".join(f"{n} ({k} time{'s' * (k != 1)})" for n, k in counts.items())
    misses = sorted((_best(r, out) for r in rules), key=lambda m: -_share(m))[:MOST]
    told = [m for m in misses if m.value is not None]
    if not told:
        return f"of {what} none fired: nothing in the graph comes near to one"
    lines = [f"of {what} none fired; these came nearest"]
    for m in told:
        lines += [f"  {m.rule.name} ({m.rule.equation})", "  " + _where(m), f"    {m.why}"]
    return "\n".join(lines)


def _share(m: Miss) -> float:
    """The share of its left side that a rule found."""
    return m.score / (weight(m.rule.pattern) + 1) if m.rule.pattern is not None else m.score / 4


def _score(r: Rule, v: Value, context: Rewriter) -> tuple[int, str]:
    """The weight of what ``v`` has of the left side, and the first thing that differs."""
    if v.op.name not in r.roots and (ANY not in r.roots or not r.traits <= v.op.traits):
        return 0, ""
    if r.pattern is None:
        return _score_rewrite(r, v, context)
    m = match(r.pattern, v, bitwise=r.exact)
    if m is None:
        return _compare(r.pattern, v)
    full = weight(r.pattern) + 1
    bound = [m.bound.get(k) for k in range(len(r.variables))]
    if any(b is not None and b.dtype.kind not in r.kinds + "b" for b in bound):
        kinds = sorted({str(b.dtype) for b in bound if b is not None})
        return full, f"it matches, but the values are {', '.join(kinds)}, and the rule is for {_kinds(r.kinds)}"
    if not r.holds(bound, context.facts):
        names = ", ".join(f"{n} = {expression(b, 3)}" for n, b in zip(r.variables, bound, strict=True) if b is not None)
        return full, f"it matches with {names}, but {condition(r, bound, context.facts)}"
    return full, "it matches, but another rule came first, or the pass with this rule did not see this form"


def _score_rewrite(r: Rule, v: Value, context: Rewriter) -> tuple[int, str]:
    kinds = {str(o.dtype): o.dtype.kind for o in v.operands if hasattr(o.type, "dtype")}
    wrong = [d for d, kind in kinds.items() if kind not in r.kinds + "b"]
    if wrong:
        return 1, f"its operands are {', '.join(wrong)}, and the rule is for {_kinds(r.kinds)}"
    below = ingredients(v) if v.operands else set()
    missing = sorted(r.needs - below)
    if missing:
        found = sorted(r.needs & below)
        names = [{"#": "a number"}.get(n, n) for n in missing]
        have = [o.op.name for o in v.operands if not is_free_leaf(o)] or ["inputs"]
        return 1 + len(found), f"the rule wants {' and '.join(names)} among the operands, which are {', '.join(have)}"
    result = r.apply(v, context)
    if isinstance(result, str):
        return 3, f"it says: {result}"
    if result is not None and result is not v:
        return 3, "it would apply there, but another rule came first, or the pass with this rule did not see this form"
    if isinstance(r.apply(v, Rewriter([])), Value):
        return 3, "what it would replace has other consumers, so the work would be done twice"
    return 2, f"the op is there, but it is not what the equation says: {_first_line(r.doc)}"


def _first_line(doc: str) -> str:
    return doc.partition("\n")[0]


def _kinds(kinds: str) -> str:
    words = {"b": "bool", "i": "integers", "u": "unsigned integers", "f": "floats", "c": "complex numbers"}
    return " and ".join(words[k] for k in kinds if k in words)


class _Asked:
    """Facts, with a record of what was asked and not known."""

    def __init__(self, facts: Analysis):
        self.facts = facts
        self.unknown: list[tuple[Value, str]] = []

    def __call__(self, v: Value) -> Any:
        asked = self

        class Fact:
            def __getattr__(self, name: str) -> Any:
                answer = getattr(asked.facts(v), name)
                if callable(answer):
                    return lambda *args: self._note(answer(*args), " and ".join(map(str, args)))
                return self._note(answer, name)

            def _note(self, answer: Any, what: str) -> Any:
                if answer is False or answer is None:
                    asked.unknown.append((v, what))
                return answer

        return Fact()


def condition(r: Rule, bound: Sequence[Value | None], facts: Analysis) -> str:
    """The part of the side condition that does not hold, in words."""
    assert r.when is not None
    if asks_facts(r.when):
        asked = _Asked(facts)
        r.when(*bound, facts=asked)
        names = {b: n for n, b in zip(r.variables, bound, strict=True) if b is not None}
        if asked.unknown:
            v, what = asked.unknown[-1]
            say = {"low": "bounded below", "high": "bounded above", "props": "of that structure"}.get(what, what)
            return f"{names.get(v) or expression(v, 2)} is not known to be {say} (sc.assume says so)"
    written = source_of(r.when)
    return "the side condition does not hold" + (f": {written}" if written else "")


def source_of(when: Callable[..., Any]) -> str:
    """A condition as it is written, where that can be found."""
    if when.__name__ != "<lambda>":
        return _first_line(when.__doc__) if when.__doc__ else when.__name__.strip("_").replace("_", " ")
    try:
        text = " ".join(inspect.getsource(when).split())
    except (OSError, TypeError):
        return ""
    _, _, after = text.partition("lambda")
    body = after.partition(":")[2].strip()
    depth = 0
    for k, c in enumerate(body):
        depth += (c in "([{") - (c in ")]}")
        if depth < 0 or depth == 0 and c == ",":
            return body[:k]
    return body


# --- passes and ops ---------------------------------------------------------------------------------------------------


def _of_pass(p: Pass, out: Optimized) -> str:
    """Report of what a pass did, and of what it left alone."""
    ran = [s for s in out.report if s.name == p.name]
    if not ran:
        return f"pass {p.name} is not in the pipeline"
    if p.families:
        return _of_rule_pass(p, out, sum(s.fired for s in ran))
    changes = sum(s.fired for s in ran)
    kernels = len(set(out.provenance.kernels.values()))
    made = f"made {kernels} kernel{'s' * (kernels != 1)}" if p.name == "fuse" else f"made {changes} changes"
    lines = [f"pass {p.name} ran, {made}"]
    done = Counter(expression(f.new, 2, names_of(out.function)) for f in out.provenance.firings if f.rule == p.name)
    lines += [f"  made {text}" + (f" ({n} times)" if n > 1 else "") for text, n in done.most_common(MOST)]
    lines += _reasons(p, out)
    return "\n".join(lines)


def _of_rule_pass(p: Pass, out: Optimized, fired: int) -> str:
    names = Counter(f.rule for f in out.provenance.firings if f.pass_name == p.name)
    text = f"pass {p.name} ran, {fired} rules fired in it"
    if names:
        return text + ": " + ", ".join(f"{n} ({k} times)" if k > 1 else n for n, k in names.items())
    own = [r for r in all_rules() if _applies(p, r) and r.family not in SPELLING]
    return text + "; " + _of_rules("its rules", own, out) if own else text


def _reasons(p: Pass, out: Optimized) -> list[str]:
    """Lines on what the last run of a pass left alone."""
    if p.reasons is None:
        return []
    stages = list(out.stages)
    at = max(k for k, n in enumerate(stages) if n.partition(".")[0] == p.name)
    before, after = out.stages[stages[at - 1]], out.stages[stages[at]]
    lines: list[str] = []
    told: set[str] = set()
    for v, why in p.reasons(before, after):
        if v is None:
            lines.append(f"  {why}")
            continue
        f = after if v in set(every_value(after.body)) else before
        where = ", ".join(map(str, lines_of(f, v)[:2]))
        what = expression(v, 3, names_of(f)) if v.op.name != "fused" and not is_loop_or_branch(v) else v.op.name
        text = f"  left alone: {what}{f'    {where}' if where else ''}\n    {why}"
        if text not in told and len(told) < MOST:
            told.add(text)
            lines.append(text)
    return lines


def _of_op(name: str, out: Optimized) -> str:
    """Report of where an op is in the result, or why nothing made it."""
    there = [v for f in dict.fromkeys(out.stages.values()) for v in every_value(f.body) if v.op.name == name]
    final = [v for v in every_value(out.function.body) if v.op.name == name]
    if final:
        return f"there {'is' if len(final) == 1 else 'are'} {len(final)} {name} in the program: " + ", ".join(
            expression(v, 2, names_of(out.function)) for v in final[:MOST])
    if there:
        last = [n for n, f in out.stages.items() if any(v.op.name == name for v in every_value(f.body))][-1]
        kernel = " it is computed in a kernel" if any(v in out.provenance.kernels for v in there) else ""
        after = f" the pass after {last!r} took it apart or replaced it"
        return f"{name} was there until {last!r}:{kernel or after}"
    lines = [f"nothing made a {name}"]
    for p in all_passes():
        if name in p.makes:
            lines += ["  " + line for line in _of_pass(p, out).splitlines()]
    makers = [r for r in all_rules() if name in made_by(r)]
    if makers:
        lines += ["  " + line for line in _of_rules(f"the rules that make {name}", makers, out).splitlines()]
    return "\n".join(lines) if len(lines) > 1 else f"{lines[0]}: no rule and no pass makes it; it must be written"


def made_by(r: Rule) -> set[str]:
    """The names of the ops on the right side of a rule, and not on its left side."""
    if r.pattern is None or r.build is None:
        left, _, right = r.equation.partition("->")
        words = {op.name for op in all_ops()}
        return {w for w in words if f"{w}(" in right and f"{w}(" not in left}
    from symc.opt.engine.examples import leaves

    default = "f64" if "f" in r.kinds else "bool" if r.kinds == "b" else "i64"
    variables = leaves(len(r.variables), {k: r.dtypes.get(n, default) for k, n in enumerate(r.variables)})
    left, right = r.build(*variables)
    if not isinstance(right, Value):
        return set()
    return {x.op.name for x in postorder([right])} - {x.op.name for x in postorder([left])}


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
