"""Functions that another process compiled: found on disk by what they compute, and run without optimizer or planner.

An entry holds the code that was run (``symc.runtime.recording``), which is for all sizes. A function that is found so
runs at once; everything else that may be asked of it (dumps, plans, profiles) compiles it as usual, at that moment.
Nothing is kept of functions that hold a user's own ops, of
processes with rules or passes of their own, and of modes that check.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from symc.ir import extensions
from symc.ir.function import Function
from symc.ir.garbage import no_collections
from symc.ir.locks import new_lock
from symc.ir.op import is_builtin
from symc.ir.phases import current, phase, recording
from symc.ir.traverse import every_value
from symc.runtime import object_cache, version
from symc.runtime.frames import Frames, Sizes
from symc.runtime.lowered import Lowered
from symc.runtime.threads import threads_of
from symc.runtime.two_programs import TwoPrograms
from symc.target import HOST, Target

if TYPE_CHECKING:
    from symc.codegen.budget import Budget
    from symc.prepared import Prepared
    from symc.runtime.recording import Recordings

#: Modes whose programs are what the plan says and no more.
KEPT = ("default", "fast_compile")


def key_of(f: Function, mode: str, pipeline: str | None, donated: frozenset[int], backend: str = "llvm") -> str | None:
    """What tells this program from all others; None for one that is not kept."""
    if mode not in KEPT or object_cache.folder() is None or extensions.changed():
        return None
    if not all(is_builtin(v.op) for v in every_value(f.body)):
        return None
    settings = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("SYMC_") and k != object_cache.FOLDER]
    parts = ["function", version.of_everything(), f.body.fingerprint.hex(), str(f.updates), str(sorted(donated)), mode,
             str(pipeline), backend, *settings]
    return object_cache.key(parts)


class File:
    """What is on disk of one function, by its key."""

    def __init__(self, key: str):
        self.key = key
        self._lock = new_lock()

    @phase("look for function on disk")
    def read(self) -> Recordings | None:
        """None if nothing is there, or not as it was written."""
        data = object_cache.read_data(self.key)
        if data is None:
            return None
        from symc.runtime.recording import Recordings

        return Recordings.decoded(data)

    def follow(self, program: Any) -> None:
        """Keep what a program is lowered to from now on."""
        if isinstance(program, TwoPrograms):
            reads = list(program.reads)
            program.first.on_lowered = lambda lowered: self._add(lowered, "first", reads)
            program.rest.on_lowered = lambda lowered: self._add(lowered, "rest", reads)
        elif isinstance(program, Frames):
            program.on_lowered = lambda lowered: self._add(lowered, "rest", None)

    def _add(self, lowered: Lowered, part: str, reads: list[int] | None) -> None:
        """Keep what will be run, unless it is bound to this process."""
        from symc.runtime.recording import Recordings, recorded

        with self._lock:
            new = recorded(lowered)
            if new is not None:
                found = self.read() or Recordings(reads=reads)
                setattr(found, part, new)
                object_cache.write_data(self.key, found.encoded())


class Late:
    """Whatever else is asked of it is asked of what ``_whole`` gives, which compiles it."""

    _whole: Callable[[], Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._whole(), name)


class WarmProgram(Late, Frames):
    """Runs a recording; all else is asked of the program itself, once it is compiled."""

    def __init__(self, found: Any, whole: Callable[[], Any], threads: int):
        super().__init__(threads)
        self._found, self._whole = found, whole

    def lower(self) -> Lowered:
        from symc.runtime.recording import restored

        try:
            return restored(self._found, lambda: self._whole().code.steps)
        except LookupError:  # the machine code was removed
            return self._whole().code

    def refuse(self, sizes: Sizes) -> None:
        self._whole().refuse(sizes)


class WarmTwo(Late, TwoPrograms):
    """Two programs, both warm."""

    def __init__(self, found: Recordings, whole: Callable[[], Any], threads: int):
        assert found.reads is not None
        self._whole = whole
        super().__init__(WarmProgram(found.first, lambda: whole().first, threads),
                         WarmProgram(found.rest, lambda: whole().rest, threads), found.reads)


class WarmPrepared:
    """A function at every stage, as ``symc.prepared.Prepared``: what was on disk, and the rest when it is asked for."""

    compiled = 0

    def __init__(self, source: Function, found: Recordings, make: Callable[[], Prepared], threads: int):
        self.source, self._make = source, make
        self._lock = new_lock()

        def whole() -> Any:
            return self._whole.program

        self.program: Any = (WarmProgram(found.rest, whole, threads) if found.reads is None
                             else WarmTwo(found, whole, threads))

    @property
    def _whole(self) -> Prepared:
        with self._lock:
            found = self.__dict__.get("_whole")
            if found is None:
                found = self.__dict__["_whole"] = self._make()
            return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._whole, name)


def prepare(
    f: Function, mode: str, pipeline: str | None, donated: frozenset[int], threads: int | None = None,
    budget: Budget | None = None, target: Target = HOST,
) -> Prepared:
    """As ``symc.prepared.prepare``, by what is on disk if it is there."""
    kept = budget is None and target.on_host and target.backend != "numpy"
    key = key_of(f, mode, pipeline, donated, target.compiler) if kept else None

    def make() -> Prepared:
        with no_collections(lasting=True), recording(record):
            from symc import prepared  # a third of what a process imports

            made = prepared.prepare(f, mode, pipeline, donated, threads, budget, target)
        if file is not None:
            file.follow(made.program)
        return made

    record, file = current(), None if key is None else File(key)
    found = None if file is None else file.read()
    if found is None or not found.whole:
        return make()
    return WarmPrepared(f, found, make, threads_of(threads))  # type: ignore[return-value]
