"""A function on the road from ``build`` to a program, with what each stage made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from symc.driver.backend import Program, Settings
from symc.ir import location
from symc.ir.function import Function
from symc.ir.garbage import no_collections
from symc.ir.locks import new_lock
from symc.ir.phases import current, recording
from symc.ir.record import dataclass

if TYPE_CHECKING:
    from symc import opt
    from symc.driver.stages import Optimized, Planned
    from symc.ir.plan import Plan

T = TypeVar("T")


def stage(make: Callable[[Any], T]) -> T:
    """A property that is made once, whoever asks for it first."""

    def get(self: Compilation) -> T:
        with self.lock:
            if make.__name__ not in self.made:
                with no_collections(lasting=True), recording(self.record), location.at(self.lines):
                    self.made[make.__name__] = make(self)
            return self.made[make.__name__]

    return property(get, doc=make.__doc__)  # type: ignore[return-value]


@dataclass(frozen=True)
class Saved:
    """Result of the optimizer in another process: the fingerprint of its body, and how to read it. ``read``
    gives None for one that is to be optimized again."""

    fingerprint: str
    read: Callable[[], Function | None]


class Compilation:
    """A function on the road. Every stage is made when it is first asked for."""

    def __init__(self, source: Function, settings: Settings, saved: Function | None = None):
        self.source, self.settings, self._saved = source, settings, saved
        self.made: dict[str, Any] = {}
        self.lock, self.record, self.lines = new_lock(), current(), location.here()
        self.compiled = 0  # kernels that had to be compiled for it

    @stage
    def optimized(self) -> Optimized:
        from symc.driver import stages  # a third of what a process imports

        return stages.optimize(self.source, self.settings, self._saved)

    @stage
    def planned(self) -> Planned:
        from symc.driver import stages

        return stages.plan(self.optimized.function, self.settings)

    @stage
    def program(self) -> Program:
        from symc.driver import stages
        from symc.runtime.cpu.kernels import compile_count

        before = compile_count()
        program = stages.load(self.source, self.planned, self.settings)
        self.compiled = compile_count() - before
        return stages.checked(program, self.source, self.optimized, self.planned, self.settings)

    # -- what has become of the function

    @property
    def final(self) -> Function:
        """The function that runs."""
        return self.planned.function if self.settings.budget else self.optimized.function

    @property
    def stages(self) -> dict[str, Function]:
        """The function after every pass that changed something."""
        found, final = self.optimized.stages, self.final
        return found if final is self.optimized.function else {**found, "max_bytes": final}

    @property
    def given(self) -> Function | None:
        """The function after all passes, where another process had it from the optimizer."""
        return self._saved

    @property
    def saved(self) -> Function:
        """The function that the stages after the optimizer can be made of again."""
        return self.optimized.function

    @property
    def plan(self) -> Plan | None:
        """Plan of the function, or of what the prologue leaves of it."""
        return self.planned.plan

    @property
    def notes(self) -> opt.Optimized | None:
        """Record of the optimizer, if it ran."""
        return self.optimized.notes
