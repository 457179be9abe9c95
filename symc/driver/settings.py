"""What a function is compiled with: the options of ``compile``, as far as they concern a closed function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from symc.driver.backends import Backend, backend_of
from symc.driver.build import Built
from symc.driver.max_bytes import budget_of
from symc.driver.target import HOST, Target, target_of
from symc.ir.record import dataclass

if TYPE_CHECKING:
    from symc.codegen.plan.budget import Budget


@dataclass(frozen=True)
class Settings:
    """What a function is compiled with. ``donated``: the arguments that a call may overwrite."""

    mode: str = "default"
    pipeline: str | None = None
    donated: frozenset[int] = frozenset()
    threads: int | None = None
    budget: Budget | None = None
    target: Target = HOST

    @property
    def backend(self) -> Backend:
        """Where it runs."""
        return backend_of(self.target, self.mode)


def settings_of(built: Built, options: Mapping[str, Any]) -> Settings:
    """The settings that the options of ``compile`` are for a function."""
    return Settings(options["mode"], options["pipeline"], built.donated, options["threads"],
                    budget_of(options["max_bytes"], built.function), target_of(dict(options)))
