"""A program in two: what is kept between calls is computed by the first, and given to the second."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.codegen.prologue import Split
from symc.ir.dim import names
from symc.ir.plan import Plan
from symc.runtime.program import KernelRecord, Program, Sizes
from symc.runtime.timing import StepTime, Timer


class KeptProgram:
    """``rest``, with what ``first`` computes. Whoever calls it may keep what ``known`` gives (``symc.keeping``)."""

    def __init__(self, parts: Split, first: Plan, rest: Plan, threads: int = 1):
        self.reads = parts.reads
        self.first, self.rest = Program(first, threads), Program(rest, threads)
        self.plan = rest
        self._names = sorted({n for i in parts.first.inputs for s in i.type.shape for n in names(s)})

    @property
    def source(self) -> str:
        return "\n".join([self.first.source, self.rest.source])

    @property
    def kernels(self) -> list[KernelRecord]:
        return [*self.first.kernels, *self.rest.kernels]

    def known(self, arrays: Sequence[np.ndarray], sizes: Sizes) -> list[np.ndarray]:
        """What is kept, for the states among the arrays of a call."""
        return self.first.run([arrays[k] for k in self.reads], {n: sizes[n] for n in self._names})

    def run(self, arrays: Sequence[np.ndarray], sizes: Sizes, out: Sequence[np.ndarray | None] | None = None,
            known: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """As ``Program.run``; ``known``: what is kept, if it is."""
        return self.rest.run([*arrays, *(self.known(arrays, sizes) if known is None else known)], sizes, out)

    def timer(self, sizes: Sizes) -> Timer:
        """What times a call that finds what is kept."""
        frame = self.rest.timer(sizes)

        def times(*calls: Sequence[np.ndarray], log: bool = False) -> list[StepTime]:
            return frame.times(*[[*arrays, *self.known(arrays, sizes)] for arrays in calls], log=log)

        return Timer(times, frame.events)
