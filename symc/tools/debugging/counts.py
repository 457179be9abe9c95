"""Sizes of a function: values by op, and what its plan runs and holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from symc.ir.function import Function
from symc.ir.ops.leaf import UNCOMPUTED
from symc.ir.record import dataclass, field
from symc.ir.text import splat_of
from symc.ir.traverse import every_value


@dataclass
class Counts:
    """``values``: how many, by op. ``kernels``, ``calls``, ``peak``: of the plan, if there is one; ``peak`` is the
    bytes it holds at most, in symbols."""

    values: Counter[str] = field(default_factory=Counter)
    kernels: int | None = None
    calls: Counter[str] = field(default_factory=Counter)
    peak: str = ""

    def against(self, other: Counts) -> list[str]:
        """Lines that say what is different in the counts; nothing where nothing is."""
        out = []
        ops = [n for n in sorted(self.values | other.values) if self.values[n] != other.values[n]]
        if ops:
            out.append("ops: " + ", ".join(f"{n} {self.values[n]} -> {other.values[n]}" for n in ops))
        if self.kernels is None or other.kernels is None:
            return out
        if self.kernels != other.kernels:
            out.append(f"kernels: {self.kernels} -> {other.kernels}")
        calls = [n for n in sorted(self.calls | other.calls) if self.calls[n] != other.calls[n]]
        if calls:
            out.append("calls: " + ", ".join(f"{n} {self.calls[n]} -> {other.calls[n]}" for n in calls))
        if self.peak != other.peak:
            out.append(f"bytes: {self.peak} -> {other.peak}")
        return out


def counts_of(given: Any, f: Function) -> Counts:
    """The counts of a function; ``given`` is what a user gave, which may have a plan."""
    values = Counter(v.op.name for v in every_value(f.body)
                     if v.op not in UNCOMPUTED and splat_of(v) is None)
    out = Counts(values)
    c = getattr(given, "_compilation", None)
    if c is not None and c.plan is not None:
        from symc.codegen.plan.memory import peak
        from symc.runtime.cpu.program import every_step

        steps = [s for _, s in every_step(c.plan)]
        out.kernels = sum(s.kind == "launch" for s in steps)
        out.calls = Counter(s.value.op.name for s in steps if s.kind == "call")
        out.peak = str(peak(c.plan))
    return out
