"""Result of ``f.profile``: a row a step, a row a user line, as tables, as JSON and as a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symc.ir.location import Loc, short
from symc.notebook import Shown, of_columns, text
from symc.tools.profiling.chrome import trace_text
from symc.tools.profiling.limits import Limits, machine_limits
from symc.tools.profiling.tables import Column, duration, number, table
from symc.tools.profiling.tree import Node, tree


@dataclass(frozen=True)
class Measured:
    """Measures of a step beside time. All runs of it together, in a loop or not.

    ``read``, ``written``: bytes; ``flops``: operations on floating-point numbers; ``dtype``: of those numbers;
    ``depth``: in how many loops and branches; ``threads``: how many may compute it; ``shares``: which part of it each
    user line is.
    """

    kind: str = ""
    depth: int = 0
    runs: int = 1
    read: int = 0
    written: int = 0
    flops: int = 0
    dtype: Any = None
    threads: int = 1
    shares: Mapping[Loc, float] = field(default_factory=dict)

    @property
    def lines(self) -> dict[str, float]:
        """Parts by what is printed of a line."""
        found: dict[str, float] = {}
        for loc, share in self.shares.items():
            found[str(loc)] = found.get(str(loc), 0.0) + share
        return found


class ProfileRow(tuple[str, float, int, str]):
    """``(step, seconds, bytes written, lines)``, and as attributes what was measured beside."""

    measured: Measured

    def __new__(cls, step: str, seconds: float, lines: str, measured: Measured) -> ProfileRow:
        self = super().__new__(cls, (step, seconds, measured.written, lines))  # type: ignore[type-var]
        self.measured = measured
        return self

    def __reduce__(self) -> tuple:
        return ProfileRow, (self.step, self.seconds, self.lines, self.measured)

    step = property(lambda self: self[0])
    seconds = property(lambda self: self[1])
    written = property(lambda self: self[2])
    lines = property(lambda self: self[3])
    read = property(lambda self: self.measured.read)
    runs = property(lambda self: self.measured.runs)
    depth = property(lambda self: self.measured.depth)
    flops = property(lambda self: self.measured.flops)

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.measured.read + self.measured.written

    @property
    def gb_per_second(self) -> float:
        return self.moved / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def gflop_per_second(self) -> float:
        return self.flops / self.seconds / 1e9 if self.seconds else 0.0

    def of_limit(self, limits: Limits) -> tuple[float, str]:
        """The time that the step would take at a limit of the machine, in parts of the time it took, and which limit
        that is: "memory" or "arithmetic"; "" where there is nothing to say. It can be more than 1: reading alone is
        faster than copying."""
        m = self.measured
        if not self.seconds or not (self.moved or m.flops):
            return 0.0, ""
        memory = self.moved / limits.bandwidth(self.moved // max(m.runs, 1), m.threads)
        arithmetic = m.flops / limits.arithmetic(m.dtype, m.threads) if m.flops else 0.0
        return max(memory, arithmetic) / self.seconds, "memory" if memory >= arithmetic else "arithmetic"


@dataclass(frozen=True)
class LineRow:
    """A line of the user's: what is spent for it. ``gradient``: the seconds of it in derivatives; ``steps``: how many
    steps compute something of it."""

    line: str
    seconds: float
    gradient: float
    moved: int
    flops: int
    steps: int
    text: str


class LineProfile(Shown, list[LineRow]):
    """The rows of ``Profile.by_line``, slowest first; prints as a table."""

    def _columns(self) -> list[Column]:
        total = sum(r.seconds for r in self) or 1.0
        return [
            Column("time", [duration(r.seconds) for r in self]),
            Column("share", [f"{100 * r.seconds / total:.1f}%" for r in self]),
            Column("gradient", [f"{100 * r.gradient / r.seconds:.0f}%" if r.gradient else "" for r in self]),
            Column("moved", [number(r.moved) for r in self]),
            Column("flop", [number(r.flops) for r in self]),
            Column("steps", [str(r.steps) for r in self]),
            Column("line", [r.line for r in self], left=True),
            Column("", [r.text for r in self], left=True),
        ]

    def _html_(self) -> str:
        return of_columns(self._columns())

    def __str__(self) -> str:
        return table(self._columns())


class Profile(Shown, list[ProfileRow]):
    """Rows ``(step, seconds, bytes written, lines)`` in the sequence of the plan, with more as attributes; prints as a
    table, slowest first.

    ``by_line()`` is the same by user line, ``tree()`` by scopes and calls, ``limits`` what this machine can do,
    ``to_chrome(path)`` a trace; ``denormals``: whether operands were denormal numbers (on x86-64; looked for in the
    thread of the call).
    """

    def __init__(self, rows: Sequence[ProfileRow] = (), name: str = "", events: Sequence[tuple] = (),
                 phases: Sequence[Any] = (), limits: Limits | None = None, denormals: bool = False):
        super().__init__(rows)
        self.denormals = denormals
        self.name, self._events, self._phases, self._limits = name, list(events), list(phases), limits

    def __reduce__(self) -> tuple:
        return Profile, (list(self), self.name, self._events, self._phases, self._limits, self.denormals)

    def followed_by(self, others: Sequence[Profile]) -> Profile:
        """The profile of functions that run one after another."""
        rows, events, end = list(self), list(self._events), max((e[2] for e in self._events), default=0.0)
        for p in others:
            events += [(index + len(rows), begin + end, stop + end) for index, begin, stop in p._events]
            rows += p
            end = max((e[2] for e in events), default=0.0)
        return Profile(rows, self.name, events, [x for p in (self, *others) for x in p._phases], self._limits,
                       any(p.denormals for p in (self, *others)))

    @property
    def limits(self) -> Limits:
        """Limits of this machine (or the device); those of the machine is measured when it is first asked for."""
        return self._limits or machine_limits()

    @property
    def seconds(self) -> float:
        """Time of the steps of a call, all in all."""
        return sum(r.seconds for r in self)

    def by_line(self) -> LineProfile:
        """Time spent for each line of the user's. A kernel that computes several lines is divided among them, in
        proportion to estimates of what their operations cost."""
        found: dict[tuple, list] = {}
        for r in self:
            parts: list[tuple[Loc | None, float]] = [*r.measured.shares.items()]
            for loc, part in parts or [(None, 1.0)]:
                key = (loc.file, loc.line) if loc is not None else ()
                row = found.setdefault(key, [0.0, 0.0, 0.0, 0.0, set(), loc])
                row[0] += r.seconds * part
                row[1] += r.seconds * part if loc is not None and loc.role else 0.0
                row[2] += r.moved * part
                row[3] += r.flops * part
                row[4].add(id(r))
        rows = [LineRow("(no line)" if loc is None else short(loc.file, loc.line), seconds, gradient, round(moved),
                        round(flops), len(steps), loc.text if loc is not None else "")
                for seconds, gradient, moved, flops, steps, loc in found.values()]
        return LineProfile(sorted(rows, key=lambda r: -r.seconds))

    def tree(self) -> Node:
        """Time by scopes, functions and lines, with what they call: prints as a table, and ``to_folded(path)`` and
        ``to_speedscope(path)`` write it for a flame graph."""
        return tree(self.name, self)

    def _columns(self) -> list[Column]:
        rows, total, limits = sorted(self, key=lambda r: -r.seconds), self.seconds or 1.0, self.limits
        of = [r.of_limit(limits) for r in rows]
        return [
            Column("time", [duration(r.seconds) for r in rows]),
            Column("share", [f"{100 * r.seconds / total:.1f}%" for r in rows]),
            Column("runs", [str(r.runs) for r in rows]),
            Column("moved", [number(r.moved) for r in rows]),
            Column("GB/s", [f"{r.gb_per_second:.1f}" if r.moved else "" for r in rows]),
            Column("GFLOP/s", [f"{r.gflop_per_second:.1f}" if r.flops else "" for r in rows]),
            Column("of limit", [f"{100 * part:.0f}% {what}" if what else "" for part, what in of], left=True),
            Column("step", [r.step for r in rows], left=True),
            Column("lines", [r.lines for r in rows], left=True),
        ]

    def _summary(self) -> str:
        whole = f"{duration(self.seconds)} in {len(self)} steps; {number(sum(r.moved for r in self))} moved, " \
                f"{number(sum(r.flops for r in self))} operations"
        hint = "\nhint: denormal numbers were met, which take up to a hundred times as long: denormals='flush'"
        nested = len({(loc.outer, loc.scopes) for r in self for loc in r.measured.shares}) > 1
        calls = f"\n\n{self.tree()}" if nested else ""
        return f"{whole}\nlimits: {self.limits}{hint * self.denormals}{calls}"

    def _html_(self) -> str:
        return of_columns(self._columns()) + text(self._summary())

    def __str__(self) -> str:
        return f"{table(self._columns())}\n{self._summary()}"

    def to_json(self) -> str:
        """Everything in the tables, as JSON."""
        steps = []
        for r in self:
            part, what = r.of_limit(self.limits)
            steps.append({
                "step": r.step, "kind": r.measured.kind, "depth": r.depth, "runs": r.runs, "seconds": r.seconds,
                "read": r.read, "written": r.written, "flops": r.flops, "of_limit": part, "limit": what,
                "lines": r.measured.lines,
            })
        limits = {"copy": self.limits.copy, "float32": self.limits.float32, "float64": self.limits.float64}
        lines = [vars(r) for r in self.by_line()]
        return json.dumps({"name": self.name, "steps": steps, "lines": lines, "limits": limits}, indent=1)

    def to_chrome(self, path: Any) -> None:
        """Write a trace of compiling the function and of one run of it, steps in loops inside of them, that
        chrome://tracing and Perfetto open."""
        Path(path).write_text(trace_text(self.name, self, self._events, self._phases))
