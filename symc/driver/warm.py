"""Functions that another process compiled: found on disk by what they compute, and run without optimizer or planner.

An entry holds the code that was run (``symc.runtime.cache.recording``), which is for all sizes. A function that is
found so
runs at once; everything else that may be asked of it (dumps, plans, profiles) compiles it as usual, at that moment.
Nothing is kept of functions that hold a user's own ops, of processes with rules or passes of their own, and of modes
that check.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from symc.driver.backend import Runner
from symc.driver.compilation import Compilation
from symc.ir import extensions
from symc.ir.function import Function
from symc.ir.locks import new_lock
from symc.ir.op import is_builtin
from symc.ir.phases import phase
from symc.ir.traverse import every_value
from symc.runtime.cache import object_cache, version
from symc.runtime.cpu.frames import Frames, Sizes
from symc.runtime.cpu.lowered import Lowered
from symc.runtime.threads import threads_of
from symc.runtime.with_prologue import WithPrologue
from symc.settings import for_programs

if TYPE_CHECKING:
    from symc.runtime.cache.recording import Recordings

    Seen = tuple["File | None", Recordings | None]
#: Modes whose programs are what the plan says and no more.
KEPT = ("default", "fast_compile")


def look(c: Compilation) -> Seen:
    """The file of a function's program, if it is kept in one, and what is there."""
    file = file_of(c)
    return file, None if file is None else file.read()


def program_of(c: Compilation, seen: Seen) -> Runner:
    """The program of a function: by what is on disk, if it is there; else compiled now, and its code kept on disk."""
    file, found = seen
    if file is None:
        return c.program
    if found is None or not found.whole:
        return _followed(c, file)
    _late.add(c)
    s = c.settings
    threads, flush = threads_of(s.threads), s.target.flush

    def program() -> Any:
        return _followed(c, file)

    if found.reads is None:
        return Recorded(found.rest, program, threads, flush)
    return WithPrologue(Recorded(found.rest, lambda: program().main, threads, flush),
                        Recorded(found.first, lambda: program().prologue, threads, flush), found.reads)


def later(c: Compilation, seen: Seen) -> Runner:
    """The program of a function that no call may ever need: compiled by the first call, if it is not on disk."""
    file, found = seen
    if found is not None and found.whole:
        return program_of(c, seen)
    _late.add(c)
    return Later(lambda: c.program if file is None else _followed(c, file), threads_of(c.settings.threads),
                 c.settings.target.flush)


def _followed(c: Compilation, file: File) -> Any:
    """The program, whose code others will find: if symc alone has made it, and the user was not warned meanwhile."""
    program = c.program
    if not extensions.changed() and (c.notes is None or not c.notes.warned):
        file.follow(program, c.final.body.fingerprint.hex())
    return program


def file_of(c: Compilation) -> File | None:
    """File of a function's program, which may be there or not; None for one that is not kept. What another version has
    optimized has a file of its own."""
    s = c.settings
    if s.budget is not None or not s.backend.on_disk:
        return None
    key = key_of(c.source, s.mode, s.pipeline, s.donated, s.target.compiler, c.given, s.sections)
    return None if key is None else File(key)


def is_of(seen: Seen, final: str) -> bool:
    """True if a program is there that was made of the function by way of this one, by its fingerprint."""
    found = seen[1]
    return found is not None and found.whole and found.final == final


_late: weakref.WeakSet[Compilation] = weakref.WeakSet()


def _compile_late() -> None:
    """Functions that were found are what symc alone makes of them, also where that is asked for later."""
    for c in list(_late):
        assert c.program is not None


extensions.before_change.append(_compile_late)


def key_of(f: Function, mode: str, pipeline: str | None, donated: frozenset[int], backend: str = "llvm",
           given: Function | None = None, sections: bool = False) -> str | None:
    """Key that tells this program from all others; None for one that is not kept. ``given``: what was optimized
    elsewhere."""
    if mode not in KEPT or object_cache.folder() is None or extensions.changed():
        return None
    if not all(is_builtin(v.op) for g in (f, given) if g is not None for v in every_value(g.body)):
        return None
    interface = [f"{i.role} {i.declared or i.type}" for i in f.inputs] + [f"{g} {g.least}" for g in f.guards]
    parts = ["function", version.of_everything(), f.body.fingerprint.hex(), str(interface), str(f.updates),
             str(sorted(donated)), mode, str(pipeline), backend, *for_programs()]
    if sections:
        parts.append("sections")
    if given is not None:
        parts.append(f"given {given.body.fingerprint.hex()}")
    return object_cache.key(parts)


class File:
    """Files on disk of one function, by its key."""

    def __init__(self, key: str):
        self.key = key
        self._lock = new_lock()

    @phase("look for function on disk")
    def read(self) -> Recordings | None:
        """None if nothing is there, or not as it was written."""
        data = object_cache.read_data(self.key)
        if data is None:
            return None
        from symc.runtime.cache.recording import Recordings

        return Recordings.decoded(data)

    def follow(self, program: Any, final: str) -> None:
        """Keep what a program is lowered to from now on. ``final``: fingerprint of the function that it is of."""
        if isinstance(program, WithPrologue):
            reads = list(program.reads)
            program.prologue.on_lowered = lambda lowered: self._add(lowered, "first", reads, final)
            program.main.on_lowered = lambda lowered: self._add(lowered, "rest", reads, final)
        else:
            program.on_lowered = lambda lowered: self._add(lowered, "rest", None, final)

    def _add(self, lowered: Lowered, part: str, reads: list[int] | None, final: str) -> None:
        """Keep what will be run, unless it is bound to this process."""
        from symc.runtime.cache.recording import Recordings, recorded

        with self._lock:
            new = recorded(lowered)
            if new is not None:
                found = self.read() or Recordings(reads=reads, final=final)
                setattr(found, part, new)
                object_cache.write_data(self.key, found.encoded())


class Later(Frames):
    """Runs a program that is compiled by the first call."""

    def __init__(self, program: Callable[[], Any], threads: int, flush: bool):
        super().__init__(threads, flush)
        self._program = program

    def lower(self) -> Lowered:
        return self._program().code

    def refuse(self, sizes: Sizes) -> None:
        self._program().refuse(sizes)


class Recorded(Later):
    """Runs a recording; what is not in it is asked of the program, which is compiled then."""

    def __init__(self, found: Any, program: Callable[[], Frames], threads: int, flush: bool):
        super().__init__(program, threads, flush)
        self.found = found

    def lower(self) -> Lowered:
        from symc.runtime.cache.recording import restored

        try:
            return restored(self.found, lambda: self._program().code.steps)
        except LookupError:  # the machine code was removed
            return super().lower()
