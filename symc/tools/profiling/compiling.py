"""Table of what compiling a function took: a row a phase, and what took longest."""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.phases import Phase, totals
from symc.notebook import Shown
from symc.tools.profiling.tables import Column, duration, table

#: How many passes and kernels a printed table names.
SLOWEST = 12


class CompileProfile(Shown, list[tuple[str, str, float, int]]):
    """Rows ``(phase, what, seconds, count)``: a pass, a plan, a step of compiling one kernel. The seconds are without
    those of phases inside. It prints as a table of phases and one of what took longest; ``phases`` is every one of them
    with its begin and end."""

    def __init__(self, phases: Sequence[Phase]):
        super().__init__((name, what, seconds, count) for (name, what), (seconds, count) in totals(phases).items())
        self.phases = tuple(phases)

    def __reduce__(self) -> tuple:
        return CompileProfile, (self.phases,)

    @property
    def seconds(self) -> float:
        """All in all."""
        return sum(p.own for p in self.phases)

    def __str__(self) -> str:
        whole: dict[str, tuple[float, int]] = {}
        for name, _, seconds, count in self:
            known = whole.get(name, (0.0, 0))
            whole[name] = known[0] + seconds, known[1] + count
        parts = [(name, "", s, n) for name, (s, n) in sorted(whole.items(), key=lambda i: -i[1][0])]
        single = sorted((r for r in self if r[1]), key=lambda r: -r[2])
        text = f"compiled in {duration(self.seconds)}\n{self._table(parts)}"
        if not single:
            return text
        return f"{text}\nlongest:\n{self._table(single[:SLOWEST])}"

    def _table(self, rows: Sequence[tuple[str, str, float, int]]) -> str:
        total = self.seconds or 1.0
        columns = [
            Column("time", [duration(r[2]) for r in rows]),
            Column("share", [f"{100 * r[2] / total:.1f}%" for r in rows]),
            Column("times", [str(r[3]) for r in rows]),
            Column("phase", [r[0] for r in rows], left=True),
        ]
        what = [Column("of", [r[1] for r in rows], left=True)] if any(r[1] for r in rows) else []
        return table([*columns, *what])
