"""A plan lowered at given sizes: code for the interpreter, and how calls put arrays in and take results out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from symc.ir.record import dataclass
from symc.runtime.calls import CallStep, only_where_native_code_fails
from symc.runtime.executor import Template


@dataclass(frozen=True)
class Fresh:
    """An array that a call makes. ``output``: which output it is, None for one that becomes a state's."""

    shape: tuple[int, ...]
    dtype: np.dtype
    output: int | None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Lowered:
    """Many frames may run it.

    A call puts array objects into the slots from ``first`` on: the arguments and states in ``given``, by index, then
    those in ``fresh``. ``returned``: for each result (outputs, then states) which of these arrays it is, and the shape
    that it is seen in. ``updates``: which arguments are states that are updated. ``arena``: bytes. ``steps``: the
    Python steps, by number. ``loops``: whether there are loops, which look for signals. ``work``: about how many
    operations on an element it takes. ``torn``: Python may be called after a state was written over, where the plan did
    not expect it. ``polls``: a kernel is a loop that looks for signals.
    """

    template: Template
    sizes: Mapping[str, int]
    arena: int
    first: int
    given: tuple[int, ...]
    fresh: tuple[Fresh, ...]
    returned: tuple[tuple[int, tuple[int, ...]], ...]
    updates: tuple[int, ...]
    steps: Sequence[CallStep]
    loops: bool
    work: float
    torn: bool = False
    polls: bool = False

    @property
    def python(self) -> bool:
        """Whether a run may need Python."""
        return self.loops or self.polls or len(self.steps) > 1  # a loop has pulses

    @property
    def copied(self) -> Sequence[int]:
        """Which of the arrays put in a call copies, as states that it writes over must be there when it fails."""
        return [k for k, index in enumerate(self.given) if index in self.updates] if self.torn else ()

    def made(self) -> tuple[tuple[tuple[int, tuple[int, ...]], ...], tuple[int, ...]] | None:
        """For each array that is made (outputs, then new arrays of states) which of those put in it is, and its shape;
        for each state that is updated the index of its new array, -1 where it is written in place.

        None where a run needs Python: for steps (but those that are for native code that fails: there a run stops that
        writes no state), for signals in loops that are no kernels, for results that are not all fresh arrays of their
        own.
        """
        steps, given = self.steps[1:], len(self.given)
        if self.loops or not all(map(only_where_native_code_fails, steps)) or (steps and self.updates):
            return None
        outputs = len(self.returned) - len(self.updates)
        made, updated = list(self.returned[:outputs]), []
        for (k, shape), state in zip(self.returned[outputs:], self.updates, strict=True):
            in_place = k < given and self.given[k] == state
            updated.append(-1 if in_place else len(made))
            if not in_place:
                made.append((k, shape))
        if sorted(k for k, _ in made) != list(range(given, given + len(self.fresh))):
            return None
        return tuple(made), tuple(updated)
