"""The record of a backend, what it loads plans to, and what a function is compiled with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from symc.driver.modes import BY_NUMPY
from symc.driver.target import HOST, Target
from symc.ir.function import Function
from symc.ir.record import dataclass
from symc.runtime.threads import threads_of

if TYPE_CHECKING:
    from symc.codegen.plan.budget import Budget
    from symc.driver.signature import Signature
    from symc.ir.plan import Plan


class Runner(Protocol):
    """Protocol of what runs the calls of a function."""

    def run(self, arrays: Sequence[Any], sizes: Any, out: Any = None, cells: Sequence[Any] = ()) -> list[Any]:
        """Outputs, then the arrays of updated states, which ``cells`` have from the same moment on."""


class Program(Runner, Protocol):
    """Protocol of what a plan, or a function, was loaded to."""

    @property
    def source(self) -> str:
        """The text of what runs."""

    @property
    def kernels(self) -> Any:
        """One ``KernelRecord`` a kernel."""

    def timer(self, sizes: Any) -> Any:
        """A ``symc.runtime.cpu.timing.Timer`` of its steps."""


@dataclass(frozen=True)
class Backend:
    """``load(planned, source, settings)``: the program of a plan of what was written as ``source``; without ``plans``
    of a function, which runs through no pass that is for kernels then: it has ops alone, none of them ``fused``.
    ``calls()``: the classes that accept arguments and make calls. ``modes``: those it has; ``pipeline``, ``fast``: of
    "default" and "fast_compile", by their names in ``symc.opt.engine.pipelines``. ``streams``: how many a plan may use
    (in a CUDA graph they are branches, which cost the host nothing). ``sections``: threads may run steps at the same
    time. ``on_disk``: code is kept for other processes. ``flushes``: denormal numbers are zeros where
    ``settings.target.flush`` says so. ``serve(f)``: the optimized function with kernels as the backend can run them
    well."""

    name: str
    load: Callable[[Plan | Function, Function, Settings], Program]
    calls: Callable[[], tuple[type[Signature], Callable[..., Any]]]
    modes: tuple[str, ...] = ("default", "fast_compile", "debug")
    plans: bool = True
    pipeline: str = "DEFAULT"
    fast: str = "FAST_COMPILE"
    streams: int = 1
    sections: bool = False
    on_disk: bool = False
    flushes: bool = False
    serve: Callable[[Function], Function] = lambda f: f


@dataclass(frozen=True)
class Settings:
    """Settings that a function is compiled with. ``backend``: where it runs. ``donated``: what a call may overwrite."""

    backend: Backend
    mode: str = "default"
    pipeline: str | None = None
    donated: frozenset[int] = frozenset()
    threads: int | None = None
    budget: Budget | None = None
    target: Target = HOST

    @property
    def said(self) -> str:
        """The option that chose the backend, as it is written."""
        return f"mode={self.mode!r}" if self.mode in BY_NUMPY else f"backend={self.target.compiler!r}"

    @property
    def sections(self) -> bool:
        """True if threads may run steps at the same time."""
        return self.backend.sections and threads_of(self.threads) > 1
