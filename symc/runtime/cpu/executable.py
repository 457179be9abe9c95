"""Code of the native interpreter that runs: a ``Template``, which ``executor.Code`` writes or a file on disk has, and
``Executable``, a copy of its words with the addresses of one arena and of its own memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.ir.record import dataclass
from symc.ir.size_values import FAR
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu import blas_threads
from symc.runtime.cpu.commit import run_and_replace
from symc.runtime.cpu.native.instructions import Word
from symc.runtime.cpu.native.interpreter import executor
from symc.runtime.cpu.native.pool import address as pool_address

ALIGN = 64
NDARRAY = Symbol(id(np.ndarray), "ndarray")


@dataclass(frozen=True, eq=False)
class Template:
    """Words (data, then instructions) and what the addresses among them are: ``symbols`` (in the words already);
    ``arena`` and ``kept``, rows of (index of the word, bytes from the start) of the arena and of ``pool``, what the
    memory of the code holds before it runs; ``constants``, arrays that are only read. ``straight``: all instructions
    are in ``STRAIGHT``."""

    words: np.ndarray
    straight: bool
    symbols: tuple[tuple[int, Symbol], ...]
    arena: np.ndarray
    kept: np.ndarray
    pool: np.ndarray
    constants: tuple[tuple[int, np.ndarray, int], ...]


class Executable:
    """Code in memory. ``words[slot]`` may be read and written between runs; one run at a time. ``state``: of the
    floating-point unit during a run, if it is not the caller's (``native/float_state.py``)."""

    __slots__ = ("_kept", "_memory", "_pool", "_prepare", "_rows", "_run", "_threads", "address", "arena", "words")

    def __init__(self, template: Template, threads: int = 1, state: int = 0):
        memory, pool = template.words.copy(), aligned(template.pool.nbytes)
        pool[:] = template.pool
        memory[template.kept[:, 0]] = template.kept[:, 1] + pool.ctypes.data
        for slot, array, offset in template.constants:
            memory[slot] = array.ctypes.data + offset
        limited = memory[Word.MAY_LIMIT] and blas_threads.to_be_limited()
        memory[Word.MAY_LIMIT], memory[Word.THREADS] = limited, 1
        memory[Word.POOLED] = not limited and threads == 1
        memory[Word.SELF] = memory[Word.PULSE] = memory.ctypes.data
        memory[Word.STATE] = state
        self._memory, self._pool, self._rows = memory, pool, template.arena
        self._kept = template.constants, template.symbols  # which the words are addresses of
        self._run, self._prepare, memory[Word.CALLBACK] = executor(template.straight)
        self._threads, self.address = threads, memory.ctypes.data
        self.words: Any = memory.data  # a memoryview: single words are read and written faster than through the array
        self.place(aligned(0))

    @property
    def functions(self) -> list[int]:
        """The addresses of the interpreter: what runs the code, and what prepares it."""
        functions: tuple[Any, Any] = self._run, self._prepare
        return [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions]

    def place(self, arena: np.ndarray) -> None:
        """Let this be the arena."""
        self.arena, address = arena, arena.ctypes.data
        self._memory[self._rows[:, 0]] = self._rows[:, 1] + address
        self.words[Word.ARENA], self.words[Word.HAVE], self.words[Word.CHANGED] = address, arena.nbytes, 1

    def prepare(self) -> int:
        """Look at the arguments, and compute what depends on their sizes. 0, or a number that says why not: ``GROW``
        for the pool, then for the arena. Addresses of data are then in the words of the arguments."""
        return self._prepare(self.address)

    def grow(self) -> None:
        """Make an arena that is as large as is needed, and the pool if that is."""
        words, need = self.words, self.words[Word.NEED]
        if words[Word.WANTS] > words[Word.POOLED]:
            words[Word.POOL], words[Word.THREADS], words[Word.POOLED] = pool_address(), self._threads, 1
        if need > FAR:
            raise MemoryError(f"{need} bytes for what is computed on the way")
        if need > words[Word.HAVE]:
            self.place(aligned(0))  # the old one goes before the new one is made
            self.place(aligned(need))

    def run(self, cells: Sequence[Any] = (), arrays: Sequence[Any] = ()) -> int:
        """0, or the number with which an instruction stopped it. With 0 come new arrays for cells (``commit``)."""
        return run_and_replace(self._run, self.address, cells, arrays) if cells else self._run(self.address)


def aligned(nbytes: int) -> np.ndarray:
    """Memory that starts at a multiple of a cache line."""
    raw = np.empty(nbytes + ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + nbytes]
