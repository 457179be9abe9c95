"""Record of an optimization: every firing of a rule, with the values and the user's lines. Explanations are read off
it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from symc.errors import SymcError
from symc.ir import extensions, location
from symc.ir.literal import print_attr, print_number
from symc.ir.location import Locs
from symc.ir.record import dataclass, field
from symc.ir.text import splat_of
from symc.ir.traverse import postorder
from symc.ir.value import Value
from symc.tracebacks import of_user


class Firing(NamedTuple):
    """Rule ``rule`` replaced ``old`` by ``new`` during a pass; ``lines`` are the user's lines of what was replaced."""

    rule: str
    pass_name: str
    old: Value
    new: Value
    lines: Locs

    def __str__(self) -> str:
        lines = location.brief(self.lines)
        text = f"{self.rule}: {expression(self.old, 3)} -> {expression(self.new, 3)}"
        return f"{text}    {lines}" if lines else text


@dataclass
class Provenance:
    """The record of one optimization."""

    firings: list[Firing] = field(default_factory=list)
    disabled: dict[str, Exception] = field(default_factory=dict)
    kernels: dict[Value, Value] = field(default_factory=dict)  # the kernel that computes a value, last of all
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
        """Record that a rule failed and is not tried again. Users are told of theirs: nothing else shows it."""
        if rule not in self.disabled:
            self.disabled[rule] = error
            if rule in extensions.noted("rule"):
                warnings.warn(f"rule {rule} was switched off: {failure(error)}", stacklevel=2)

    def later(self) -> dict[Value, list[Value]]:
        """The values that every value became when it was rebuilt on other operands."""
        out: dict[Value, list[Value]] = {}
        for new, olds in self._source.items():
            for old in olds:
                out.setdefault(old, []).append(new)
        return out

    def replaced_by(self, value: Value) -> str:
        """The rule that replaced ``value`` last."""
        return next((f.rule for f in reversed(self.firings) if f.old is value), "a rule")

    def count(self, rule: str) -> int:
        """The number of times a rule fired."""
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
        lines += [f"  disabled: {name}: {failure(e)}" for name, e in self.disabled.items()]
        return "\n".join(lines)


def failure(e: Exception) -> str:
    """An error of a rule as text, with the line of the rule that raised it."""
    trace = of_user(e.__traceback__)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    told = "" if isinstance(e, SymcError) or trace is None else \
        f"    {location.short(trace.tb_frame.f_code.co_filename, trace.tb_lineno)}"
    return f"{type(e).__name__}: {e}{told}"


#: How tightly an operator binds its operands: (all of them), (a second one).
BINDS = {"+": (4, 5), "-": (4, 5), "*": (6, 7), "/": (6, 7), "**": (9, 8)}
COMPARED, NEGATED, ATOM = 2, 8, 10


def expression(v: Value, depth: int = 5, names: Mapping[Value, str] | None = None) -> str:
    """A value as mathematics, to a depth: ``log(1.0 + exp(x0))``. ``names`` are those of params and free leaves."""
    return _expression(v, depth, names or {})[0]


def _expression(v: Value, depth: int, names: Mapping[Value, str]) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    number = splat_of(v)
    if number is not None:
        return print_number(number), ATOM
    if v in names:
        return names[v], ATOM
    if v.op.name in ("param", "input"):
        return (f"x{v.attrs['index']}" if v.op.name == "param" else f"v{v.attrs['serial']}"), ATOM
    if depth == 0:
        return "...", ATOM
    parts = [_expression(o, depth - 1, names) for o in v.operands]
    if sign := v.op.facts.symbol:
        first, second = BINDS.get(sign, (COMPARED + 1, COMPARED + 1))
        text = f"{_within(parts[0], first)} {sign} {_within(parts[1], second)}"
        return text, min(first, second)
    if v.op.name == "neg":
        return f"-{_within(parts[0], NEGATED)}", NEGATED
    if _is_matmul(v):
        return f"{_within(parts[0], 6)} @ {_within(parts[1], 7)}", 6
    texts = [t for t, _ in parts]
    if v.op.name == "slice":
        return f"{_within(parts[0], ATOM)}[{_window(v)}]", ATOM
    if v.op.name == "get":
        return f"{texts[0]}[{v.attrs['index']}]", ATOM
    if v.regions:
        inside = sum(w.op.name not in ("param", "constant") for r in v.regions for w in postorder(r.results))
        return f"{v.op.name}({', '.join(texts)}) {{{inside} values}}", ATOM
    said = {} if v.op.name == "constant" else v.attrs
    shown = [f"{k}={print_attr(a)}" for k, a in said.items()
             if a is not False and a is not None and a != ((), ()) and not (a == () and v.ndim)]  # fmt: skip
    return f"{v.op.name}({', '.join(texts + shown)})", ATOM


def _window(v: Value) -> str:
    """A slice as Python writes it."""
    out = []
    for start, size, step, whole in zip(
        v.attrs["start"], v.attrs["size"], v.attrs["step"], v.operands[0].shape, strict=True
    ):
        if start == 0 and size == whole and step == 1:
            out.append(":")
        elif isinstance(start, int) and isinstance(size, int):
            stop = start + size * step
            out.append(f"{start}:{stop if stop >= 0 else ''}" + (f":{step}" if step != 1 else ""))
        else:
            out.append(f"{start}:{start + size * step}" + (f":{step}" if step != 1 else ""))
    return ", ".join(out)


def _is_matmul(v: Value) -> bool:
    """True if a product is what users write as ``x @ y``."""
    if v.op.name != "dot" or v.attrs["batch"] != ((), ()):
        return False
    x, y = v.operands
    return v.attrs["contract"] == ((x.ndim - 1,), (max(y.ndim - 2, 0),)) and y.ndim <= 2 and x.ndim > 0


def _within(part: tuple[str, int], least: int) -> str:
    text, binds = part
    return text if binds >= least else f"({text})"
