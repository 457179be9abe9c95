"""The two programs of a plan in two, from the plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.codegen.prologue import Split
from symc.ir.plan import Plan
from symc.runtime.frames import Sizes
from symc.runtime.program import KernelRecord
from symc.runtime.timing import StepTime, Timer
from symc.runtime.two_programs import TwoPrograms


class KeptProgram(TwoPrograms):
    """What ``first`` of ``parts`` computes is kept, and given to ``rest``."""

    first: Any
    rest: Any

    def __init__(self, parts: Split, first: Any, rest: Any):
        super().__init__(first, rest, parts.reads)
        self.plan: Plan = rest.plan

    @property
    def source(self) -> str:
        return "\n".join([self.first.source, self.rest.source])

    @property
    def kernels(self) -> list[KernelRecord]:
        return [*self.first.kernels, *self.rest.kernels]

    def timer(self, sizes: Sizes) -> Timer:
        """What times a call that finds what is kept."""
        frame = self.rest.timer(sizes)

        def times(*calls: Sequence[np.ndarray], log: bool = False) -> list[StepTime]:
            return frame.times(*[[*arrays, *self.known(arrays, sizes)] for arrays in calls], log=log)

        return Timer(times, frame.events)
