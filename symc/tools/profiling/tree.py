"""A profile as a tree: time by scopes, functions and lines, as a table and for viewers of flame graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symc.ir.location import Loc, short
from symc.notebook import Shown
from symc.tools.profiling.tables import Column, duration, table


@dataclass
class Node(Shown):
    """A scope, or a line in a function: the time spent in it, and (``seconds``) not in what it calls."""

    name: str
    file: str = ""
    line: int = 0
    seconds: float = 0.0
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return self.seconds + sum(c.total for c in self.children.values())

    def __getitem__(self, path: str) -> Node:
        """The node below: ``tree["encoder/layer2"]``, parts between left out or not; of functions the name alone."""
        node = self
        for part in path.split("/"):
            found = [n for _, n in node.walk() if n is not node and part in (n.name, n.name.split(" ")[0])]
            if not found:
                raise KeyError(path)
            node = found[0]
        return node

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """Lines of this and all below with their depths, the slowest first."""
        yield depth, self
        for c in sorted(self.children.values(), key=lambda c: -c.total):
            yield from c.walk(depth + 1)

    def __str__(self) -> str:
        rows, whole = list(self.walk()), self.total or 1.0
        return table([
            Column("total", [duration(n.total) for _, n in rows]),
            Column("share", [f"{100 * n.total / whole:.1f}%" for _, n in rows]),
            Column("self", [duration(n.seconds) if n.seconds else "" for _, n in rows]),
            Column("where", ["  " * depth + n.name for depth, n in rows], left=True),
        ])

    def stacks(self, above: tuple[Node, ...] = ()) -> Iterator[tuple[tuple[Node, ...], float]]:
        """Every way from here down to where time is spent, with that time."""
        here = (*above, self)
        if self.seconds:
            yield here, self.seconds
        for c in self.children.values():
            yield from c.stacks(here)

    def to_folded(self, path: Any) -> None:
        """Write folded stacks (``a;b;c nanoseconds``), as flamegraph.pl, inferno and speedscope read them."""
        rows = [f"{';'.join(n.name.replace(';', ',') for n in s)} {max(1, round(t * 1e9))}" for s, t in self.stacks()]
        Path(path).write_text("\n".join([*rows, ""]), "utf-8")

    def to_speedscope(self, path: Any) -> None:
        """Write a file that https://www.speedscope.app shows as a flame graph."""
        stacks = list(self.stacks())
        frames = {id(n): k for k, n in enumerate(n for _, n in self.walk())}
        shown = [{"name": n.name, **({"file": n.file, "line": n.line} if n.file else {})} for _, n in self.walk()]
        weights = [t * 1e9 for _, t in stacks]
        profile = {"type": "sampled", "name": self.name, "unit": "nanoseconds", "startValue": 0,
                   "endValue": sum(weights), "samples": [[frames[id(n)] for n in s] for s, _ in stacks],
                   "weights": weights}
        whole = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": shown},
                 "profiles": [profile], "name": self.name, "exporter": "symc"}
        Path(path).write_text(json.dumps(whole), "utf-8")


def tree(name: str, rows: Any) -> Node:
    """The tree of a profile's rows."""
    root = Node(name)
    for r in rows:
        shares: Mapping[Loc | None, float] = r.measured.shares or {None: 1.0}
        for loc, part in shares.items():
            node = root
            for label, file, line in _frames(loc):
                node = node.children.setdefault(label, Node(label, file, line))
            node.seconds += r.seconds * part
    return root


def _frames(loc: Loc | None) -> list[tuple[str, str, int]]:
    if loc is None:
        return [("(no line)", "", 0)]
    found = [(name, "", 0) if at is None else (f"{name} {short(at.file, at.line)}".strip(), at.file, at.line)
             for name, at in loc.frames]
    *outer, (label, file, line) = found
    return [*outer, (f"{label} ({loc.role.split()[0]})" if loc.role else label, file, line)]
