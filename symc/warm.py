"""Functions that another process compiled: found on disk by what they compute, and run without optimizer or planner.

An entry holds recordings of the code that was run, at the sizes it was run with (``symc.runtime.recording``). A
function that is found so runs at these sizes at once; everything else that may be asked of it (other sizes, dumps,
plans, profiles) compiles it as usual, at that moment. Nothing is kept of functions that hold a user's own ops, of
processes with rules or passes of their own, and of modes that check.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symc.ir import extensions
from symc.ir.function import Function
from symc.ir.op import is_builtin
from symc.ir.phases import current, phase, recording
from symc.ir.traverse import every_value
from symc.runtime import machine_code, object_cache, version
from symc.runtime.frames import Frames, Sizes
from symc.runtime.lowered import Lowered
from symc.runtime.threads import threads_of

if TYPE_CHECKING:
    from symc.codegen.budget import Budget
    from symc.prepared import Prepared

#: Modes whose programs are what the plan says and no more.
KEPT = ("default", "fast_compile")
#: The most combinations of sizes that are recorded of a function.
MOST = 8


def key_of(f: Function, mode: str, pipeline: str | None, donated: frozenset[int]) -> str | None:
    """What tells this program from all others; None for one that is not kept."""
    if mode not in KEPT or not machine_code.LINKED or object_cache.folder() is None or extensions.changed():
        return None
    if not all(is_builtin(v.op) for v in every_value(f.body)):
        return None
    settings = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("SYMC_") and k != object_cache.FOLDER]
    parts = ["function", version.of_everything(), f.body.fingerprint.hex(), str(f.updates), str(sorted(donated)), mode,
             str(pipeline), *settings]
    return object_cache.key(parts)


class Recordings:
    """What is on disk of one function."""

    def __init__(self, key: str):
        self.key = key
        self._lock = threading.Lock()

    @phase("look for function on disk")
    def read(self) -> list[Any]:
        """All of them, none if the file is not there or not as it was written."""
        from symc.runtime.recording import decoded

        data = object_cache.read_data(self.key)
        return [] if data is None else decoded(data)

    def add(self, lowered: Lowered) -> None:
        """Keep what was run, unless there are enough, or it is bound to this process."""
        from symc.runtime.recording import encoded, recorded, sizes_of

        with self._lock:
            found = recorded(lowered)
            if found is None:
                return
            others = [r for r in self.read() if sizes_of(r) != dict(lowered.sizes)]
            if len(others) < MOST:
                object_cache.write_data(self.key, encoded([*others, found]))


class WarmProgram(Frames):
    """Runs recordings; what they do not serve is served by the program itself, once it is compiled."""

    def __init__(self, found: list[Any], whole: Callable[[], Any], threads: int):
        super().__init__(threads)
        self._found, self._whole = found, whole

    def lower(self, sizes: Sizes) -> Lowered:
        from symc.runtime.recording import restored, sizes_of

        for r in self._found:
            if sizes_of(r) == dict(sizes):
                try:
                    return restored(r, lambda: self._whole().lower(sizes).steps)
                except LookupError:  # the machine code was removed
                    break
        return self._whole().lower(sizes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._whole(), name)


class WarmPrepared:
    """A function at every stage, as ``symc.prepared.Prepared``: what was on disk, and the rest when it is asked for."""

    compiled = 0

    def __init__(self, source: Function, found: list[Any], make: Callable[[], Prepared], threads: int):
        self.source, self._make = source, make
        self._lock = threading.RLock()
        self.program = WarmProgram(found, lambda: self._whole.program, threads)

    @cached_property
    def _whole(self) -> Prepared:
        with self._lock:
            return self.__dict__.get("_whole") or self._make()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._whole, name)


def prepare(
    f: Function, mode: str, pipeline: str | None, donated: frozenset[int], threads: int | None = None,
    budget: Budget | None = None,
) -> Prepared:
    """As ``symc.prepared.prepare``, by what is on disk if it is there."""
    key = None if budget is not None else key_of(f, mode, pipeline, donated)

    def make() -> Prepared:
        from symc import prepared

        with recording(record):
            made = prepared.prepare(f, mode, pipeline, donated, threads, budget)
        if recordings is not None and isinstance(made.program, Frames):
            made.program.on_lowered = recordings.add  # type: ignore[attr-defined]
        return made

    record, recordings = current(), None if key is None else Recordings(key)
    found = [] if recordings is None else recordings.read()
    if recordings is None or not found:
        return make()
    return WarmPrepared(f, found, make, threads_of(threads))  # type: ignore[return-value]
