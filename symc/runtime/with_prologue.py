"""A program with a prologue, which computes what depends on states alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.runtime.cpu.frames import Sizes

if TYPE_CHECKING:
    from symc.runtime.cpu.timing import StepTime, Timer


class WithPrologue:
    """``main``, given after its own arrays what ``prologue`` makes of those numbered ``reads``: computed in every run.
    Calls keep it as long as the states stay (``symc.driver.prologue``)."""

    def __init__(self, main: Any, prologue: Any, reads: Sequence[int]):
        self.main, self.prologue, self.reads = main, prologue, tuple(reads)

    @property
    def source(self) -> str:
        return "\n".join([self.prologue.source, self.main.source])

    @property
    def kernels(self) -> list[Any]:
        return [*self.prologue.kernels, *self.main.kernels]

    def made(self, arrays: Sequence[Any], sizes: Sizes | None) -> list[Any]:
        """Arrays that the prologue makes of those of a call."""
        return self.prologue.run([arrays[k] for k in self.reads], sizes)

    def run(self, arrays: Sequence[Any], sizes: Sizes | None = None, out: Any = None,
            cells: Sequence[Any] = ()) -> list[Any]:
        return self.main.run([*arrays, *self.made(arrays, sizes)], sizes, out, cells)

    def refuse(self, sizes: Sizes) -> None:
        """As ``Frames.refuse``."""
        self.prologue.refuse(sizes)
        self.main.refuse(sizes)

    def timer(self, sizes: Sizes) -> Timer:
        """Timer of a call that finds what the prologue made."""
        from symc.runtime.cpu.timing import Timer

        frame = self.main.timer(sizes)

        def times(*calls: Sequence[np.ndarray], log: bool = False) -> list[StepTime]:
            return frame.times(*[[*arrays, *self.made(arrays, sizes)] for arrays in calls], log=log)

        return Timer(times, frame.events, frame.met_denormals)
