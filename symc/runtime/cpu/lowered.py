"""A plan lowered: code for the interpreter, and how calls put arrays in and take results out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from symc.ir.record import dataclass
from symc.runtime.cpu.calls import CallStep, Refusal, only_where_native_code_fails
from symc.runtime.cpu.executable import Template


@dataclass(frozen=True)
class Fresh:
    """An array that a call makes, whose shape is in the words from ``dims`` on. ``output``: which output it is, None
    for one that becomes a state's."""

    dims: int
    ndim: int
    dtype: np.dtype
    output: int | None


@dataclass(frozen=True, eq=False)
class Lowered:
    """Many frames may run it.

    A call puts array objects into the slots from ``first`` on: its ``given`` arguments and states, in order, then those
    in ``fresh``. ``returned``: for each result (outputs, then states) which of these arrays it is, and the slot of the
    shape that it is seen in, and how many axes that has. ``updates``: which arguments are states that are updated.
    ``names``: the slots of named sizes. ``steps``: the Python steps, by number; ``refusals``: what sizes are refused
    for, beside what the signature says. ``loops``: whether there are loops, which look for signals. ``torn``: Python
    may be called after a state was written over, where the plan did not expect it. ``polls``: a kernel is a loop that
    looks for signals.
    """

    template: Template
    first: int
    given: int
    fresh: tuple[Fresh, ...]
    returned: tuple[tuple[int, int, int], ...]
    updates: tuple[int, ...]
    names: Mapping[str, int]
    steps: Sequence[CallStep]
    refusals: Sequence[Refusal]
    loops: bool
    torn: bool = False
    polls: bool = False

    @property
    def python(self) -> bool:
        """True if a run may need Python."""
        return self.loops or self.polls or len(self.steps) > 1  # a loop has pulses

    @property
    def copied(self) -> Sequence[int]:
        """The arrays put in that a call copies, as states that it writes over must be there when it fails."""
        return self.updates if self.torn else ()

    def made(self) -> tuple[tuple[tuple[int, int, int], ...], tuple[int, ...]] | None:
        """For each array that is made (outputs, then new arrays of states) which of those put in it is, the slot of its
        shape, and how many axes it has; for each state that is updated the index of its new array, -1 where it is
        written in place.

        None where a run needs Python: for steps (but those that are for native code that fails: there a run stops that
        writes no state), for results that are not all fresh arrays of their own.
        """
        steps = self.steps[1:]
        if not all(map(only_where_native_code_fails, steps)) or (steps and self.updates):
            return None
        outputs = len(self.returned) - len(self.updates)
        made, updated = list(self.returned[:outputs]), []
        for (k, dims, ndim), state in zip(self.returned[outputs:], self.updates, strict=True):
            updated.append(-1 if k == state else len(made))
            if k != state:
                made.append((k, dims, ndim))
        if sorted(k for k, _, _ in made) != list(range(self.given, self.given + len(self.fresh))):
            return None
        return tuple(made), tuple(updated)
