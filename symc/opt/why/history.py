"""History of a value: the rules and passes that touched it, with the law behind each, and where it ended.

Read off the record of one optimization (``provenance``). A value is followed forwards: through what replaced it, what
it was rebuilt as on other operands, and, where it became a part of something else, through that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from symc.ir import location
from symc.ir.function import Function
from symc.ir.location import NOWHERE, Loc
from symc.ir.traverse import every_value, postorder
from symc.ir.value import Value
from symc.opt.engine.provenance import Firing, expression, failure
from symc.opt.engine.rule import Rule, all_rules

if TYPE_CHECKING:
    from symc.opt.engine.passes import Optimized

#: Families whose firings need no reason: they spell the same thing in one way.
SPELLING = ("canonicalize", "shapes", "sinking", "slices", "reads", "concats")
#: How far below what a rule replaced a value may lie that went into it.
DEPTH, MOST = 5, 32


def names_of(f: Function) -> dict[Value, str]:
    """The names of the inputs of a function, by param."""
    return {p: i.name for p, i in zip(f.params, f.inputs, strict=True)}


def named(f: Function, v: Value, depth: int = 5) -> str:
    """A value of a function as mathematics, with the names of the inputs."""
    return expression(v, depth, names_of(f))


def overview(out: Optimized) -> str:
    """Every firing, one a line; equal ones are counted."""
    names = names_of(out.function)
    rows: dict[str, int] = {}
    for f in out.provenance.firings:
        text = f"[{f.pass_name}] {f.rule}: {expression(f.old, 3, names)} -> {expression(f.new, 3, names)}"
        where = _places(f.lines)
        rows[text + (f"    {where}" if where else "")] = rows.get(text + (f"    {where}" if where else ""), 0) + 1
    lines = [row + (f"    ({count} times)" if count > 1 else "") for row, count in rows.items()]
    lines = lines or ["no rule fired"]
    lines += [f"disabled: {name}: {failure(e)}" for name, e in out.provenance.disabled.items()]
    return "\n".join(lines)


def history_of(out: Optimized, roots: Sequence[Value], title: str, ends: Mapping[Value, str]) -> str:
    """History of some values of the function as it was written, and of what they are made of.

    ``ends``: what to say of values of the final function (which kernel they are computed in, say).
    """
    source = out.stages["input"]
    names = names_of(source)
    lines = [title, *[f"  as written: {expression(v, 4, names)} : {v.type}" for v in roots]]
    followed = Followed(out, roots)
    made = _told(followed.made, names)
    part = _told(followed.part, names)
    lines += [*_numbered(made, 1)] if made else ["  no rule changed it"]
    if part:
        lines += ["  it became a part of something else:", *_numbered(part, len(made) + 1)]
    lines += _finally(out, followed, names, ends)
    return "\n".join(lines)


class Followed:
    """The firings that touched some values. ``made``: of the values, or of what they are made of; ``part``: of what
    took one of the values in. ``became``: what the values are in later stages."""

    def __init__(self, out: Optimized, roots: Sequence[Value]):
        self.later = out.provenance.later()
        self.made: list[Firing] = []
        self.part: list[Firing] = []
        self.became: dict[Value, None] = {}
        self.below: set[Value] = set()
        self._note(roots, self.became)
        below: dict[Value, None] = dict.fromkeys(v for v in _all_below(roots) if v.operands or v.regions)
        self._note(list(below), below)
        for f in out.provenance.firings:
            if f.old in self.became:
                self.made.append(f)
                self._note([f.new], self.became)
            elif f.old in below:
                self.made.append(f)
                self._note([f.new], below)
            elif self._took_in(f):
                self.part.append(f)
                self._note([f.new], self.became)

    def _note(self, values: Iterable[Value], known: dict[Value, None]) -> None:
        """Values, and what they were rebuilt as."""
        stack = list(values)
        while stack:
            v = stack.pop()
            if v not in known or v in values:
                known[v] = None
                stack += [x for x in self.later.get(v, ()) if x not in known]

    def _took_in(self, f: Firing) -> bool:
        """True if what was replaced was made of one of the values, and what replaced it is not."""
        held = [v for v in near(f.old) if v in self.became]
        if not held:
            return False
        still = set(near(f.new))
        return any(v not in still for v in held)


def near(v: Value) -> list[Value]:
    """Computed values a few steps below ``v``."""
    out: dict[Value, None] = {}
    layer: list[Value] = [v]
    for _ in range(DEPTH):
        layer = [x for y in layer for x in y.operands if x.operands and x not in out][: MOST - len(out)]
        out.update(dict.fromkeys(layer))
    return list(out)


def _all_below(roots: Sequence[Value]) -> list[Value]:
    """The values that some values are made of, in loops and branches too."""
    out: dict[Value, None] = {}
    for v in postorder(roots):
        out[v] = None
        for r in v.regions:
            out.update(dict.fromkeys(every_value(r)))
    return list(out)


# --- text -------------------------------------------------------------------------------------------------------------


def _told(firings: Sequence[Firing], names: Mapping[Value, str]) -> list[list[str]]:
    """Paragraphs: one for each firing, but those that only change the spelling are told together."""
    rules = {r.name: r for r in all_rules()}
    out: list[list[str]] = []
    seen: set[tuple[str, ...]] = set()
    reasons: set[str] = set()
    for f in firings:
        r = rules.get(f.rule)
        head = f"{f.pass_name}: {f.rule}" if f.pass_name != f.rule else f.rule
        change = f"{expression(f.old, 4, names)} -> {expression(f.new, 4, names)}"
        if (f.rule, change) in seen:
            continue
        seen.add((f.rule, change))
        where = _places(f.lines)
        paragraph = [f"{head}    {where}" if where else head, f"    {change}"]
        if (r is None or r.family not in SPELLING) and f.rule not in reasons:
            reasons.add(f.rule)
            paragraph.append(f"    {law(r, f)}")
        out.append(paragraph)
    return out


def law(r: Rule | None, f: Firing) -> str:
    """The reason of a rule or pass, and whether the numbers stay the same."""
    if r is None:
        from symc.opt.engine.pass_registry import find_pass

        p = find_pass(f.rule)
        return p.doc.splitlines()[0] if p is not None and p.doc else "a pass of the user's"
    reason = r.doc.split("\n\n")[0].replace("\n", " ")
    return f"{reason} ({'exact' if r.exact else 'rounds differently'})"


def _numbered(paragraphs: Sequence[Sequence[str]], first: int) -> list[str]:
    return [f"  {k}. {line}" if j == 0 else f"  {line}" for k, p in enumerate(paragraphs, first)
            for j, line in enumerate(p)]  # fmt: skip


def _places(lines: Iterable[Loc]) -> str:
    return location.brief(lines)


def _finally(
    out: Optimized, followed: Followed, names: Mapping[Value, str], ends: Mapping[Value, str]
) -> list[str]:
    """The values in the end: the last form before fusion, and where that is computed."""
    kernels = out.provenance.kernels
    last = _last_stage(out)
    there = set(last.values())
    found = [v for v in followed.became if v in there and (v.operands or v.regions)]
    if not found:
        alive = any(v in there for v in followed.became)
        return [] if alive else ["  in the end it is not computed by itself"]
    lines = []
    for v in found[-2:]:
        where = next((ends[w] for w in (v, kernels.get(v)) if w is not None and w in ends), "")
        lines.append(f"  in the end: {expression(v, 3, names)} : {v.type}" + (f", {where}" if where else ""))
    return lines


def _last_stage(out: Optimized) -> Function:
    """The function before its ops were gathered in kernels."""
    names = [n for n in out.stages if n.partition(".")[0] not in ("fuse", "small_loops")]
    return out.stages[names[-1]]


def lines_of(f: Function, v: Value) -> list[Loc]:
    """The user lines of a value of ``f``, or of a value in its loops."""
    return f.locations(v) or location.in_order(NOWHERE.union(*[own.get(v, NOWHERE) for own in f.inside.values()]))
