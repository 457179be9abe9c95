"""Tables of text, and numbers short enough for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column: its title and the cells below it."""

    title: str
    cells: Sequence[str]
    left: bool = False


def table(columns: Sequence[Column]) -> str:
    """Columns side by side, two spaces apart."""
    texts = []
    for c in columns:
        wide = max(map(len, (c.title, *c.cells)))
        texts.append([t.ljust(wide) if c.left else t.rjust(wide) for t in (c.title, *c.cells)])
    return "\n".join("  ".join(row).rstrip() for row in zip(*texts))


def duration(seconds: float) -> str:
    """Such as "12.3us"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.1f}{unit}"
    return f"{seconds * 1e9:.0f}ns"


def number(n: float) -> str:
    """Such as "12.3M", decimal."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= scale:
            return f"{n / scale:.1f}{unit}"
    return str(n)
