"""Compiled functions that are several: a chain of functions, or a function and its variants.

What is asked of one is answered by ``main``; texts, kernels and counts are those of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.driver.function import CompiledFunction
from symc.notebook import Listing, Records
from symc.tensors.state import Cell


class SeveralFunctions(CompiledFunction):
    """``parts``: the functions, each with a line that says which one it is."""

    main: CompiledFunction

    def __init__(self, main: CompiledFunction):
        self.__dict__.update(main.__dict__)
        self.main = main

    @property
    def parts(self) -> Sequence[tuple[str, CompiledFunction]]:
        raise NotImplementedError

    def _uses(self) -> Sequence[Cell]:
        return [*dict.fromkeys(c for _, f in self.parts for c in f._cells)]

    def joined(self, text: Any, parts: Sequence[tuple[str, CompiledFunction]] | None = None) -> str:
        return "\n".join(f"// {title}\n{text(f)}" for title, f in parts or self.parts)

    def explain(self, v: Any = None) -> str:
        return self.joined(lambda f: f.explain()) if v is None else self.main.explain(v)

    def dump(self, stage: str | None = None) -> str:
        parts = [(title, f) for title, f in self.parts if stage is None or stage in f.stages]
        if not parts:
            return self.main.dump(stage)
        return Listing.of(self.joined(lambda f: f.dump(stage), parts), self.name)

    @property
    def plan(self) -> str:
        return Listing.of(self.joined(lambda f: f.plan), f"plans of {self.name}")

    @property
    def source(self) -> str:
        return Listing.of("\n".join(f.source for _, f in self.parts), f"sources of {self.name}")

    @property
    def kernels(self) -> Any:
        return Records(k for _, f in self.parts for k in f.kernels)

    @property
    def calls(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for _, f in self.parts:
            for name, count in f.calls.items():
                found[name] = found.get(name, 0) + count
        return found

    @property
    def compile_count(self) -> int:
        return sum(f.compile_count for _, f in self.parts)
