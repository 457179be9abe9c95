"""What the optimizer did: every firing of a rule, with the values and the user's lines. Explanations are read off
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from symc.ir import location
from symc.ir.literal import print_attr, print_number
from symc.ir.location import Locs
from symc.ir.text import splat_of
from symc.ir.traverse import postorder
from symc.ir.value import Value

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "pow": "**",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
}


class Firing(NamedTuple):
    """Rule ``rule`` replaced ``old`` by ``new`` during a pass; ``lines`` are the user's lines of what was replaced."""

    rule: str
    pass_name: str
    old: Value
    new: Value
    lines: Locs

    def __str__(self) -> str:
        lines = ", ".join(map(str, location.in_order(self.lines)))
        text = f"{self.rule}: {expression(self.old, 3)} -> {expression(self.new, 3)}"
        return f"{text}    {lines}" if lines else text


@dataclass
class Provenance:
    """The record of one optimization."""

    firings: list[Firing] = field(default_factory=list)
    disabled: dict[str, Exception] = field(default_factory=dict)
    _source: dict[Value, list[Value]] = field(default_factory=dict)  # what a value was before it was rebuilt
    _made_by: dict[Value, list[Firing]] = field(default_factory=dict)

    def fired(self, rule: str, pass_name: str, old: Value, new: Value, lines: Locs) -> None:
        """Record a firing."""
        firing = Firing(rule, pass_name, old, new, lines)
        self.firings.append(firing)
        self._made_by.setdefault(new, []).append(firing)

    def rebuilt(self, old: Value, new: Value) -> None:
        """Record that ``new`` is ``old`` on other operands."""
        self._source.setdefault(new, []).append(old)

    def disable(self, rule: str, error: Exception) -> None:
        """Record that a rule failed and is not tried again."""
        self.disabled.setdefault(rule, error)

    def count(self, rule: str) -> int:
        """How often a rule fired."""
        return sum(f.rule == rule for f in self.firings)

    def chain(self, value: Value) -> list[Firing]:
        """The firings that led to ``value``, first to last: those that made it, and what it was before."""
        found: dict[int, Firing] = {}
        order = {id(f): k for k, f in enumerate(self.firings)}
        seen: set[Value] = set()
        stack = [value]
        while stack:
            v = stack.pop()
            if v in seen:
                continue
            seen.add(v)
            for f in self._made_by.get(v, ()):
                found[order[id(f)]] = f
                stack.append(f.old)
            stack += self._source.get(v, ())
        return [found[k] for k in sorted(found)]

    def explain(self, value: Value | None = None) -> str:
        """Text: the chain of rules behind one value, or every firing."""
        firings: Sequence[Firing] = self.firings if value is None else self.chain(value)
        lines = [] if value is None else [f"{expression(value)} : {value.type}"]
        lines += [f"  [{f.pass_name}] {f}" if f.pass_name else f"  {f}" for f in firings]
        if not firings:
            lines.append("  no rule fired" + ("" if value is None else "; it is as it was written"))
        lines += [f"  disabled: {name}: {type(e).__name__}: {e}" for name, e in self.disabled.items()]
        return "\n".join(lines)


def expression(v: Value, depth: int = 5) -> str:
    """A value as mathematics, to a depth: ``log(1 + exp(x0))``."""
    number = splat_of(v)
    if number is not None:
        return print_number(number)
    if v.op.name in ("param", "input"):
        return f"x{v.attrs['index']}" if v.op.name == "param" else f"v{v.attrs['serial']}"
    if depth == 0:
        return "..."
    parts = [expression(o, depth - 1) for o in v.operands]
    if v.op.name in INFIX:
        return f"({parts[0]} {INFIX[v.op.name]} {parts[1]})"
    if v.op.name == "neg":
        return f"-{parts[0]}"
    if v.regions:
        inside = sum(w.op.name not in ("param", "constant") for r in v.regions for w in postorder(r.results))
        return f"{v.op.name}({', '.join(parts)}) {{{inside} values}}"
    shown = [f"{k}={print_attr(a)}" for k, a in v.attrs.items() if v.op.name != "constant"]
    return f"{v.op.name}({', '.join(parts + shown)})"
