"""Code for the native interpreter: data words, instructions and labels, put together into one array that runs.

What the instructions do is in ``symc.runtime.native.executor_ir``; which ones a plan needs, in ``symc.runtime.lower``.

Code is written once and may run in many places: what it points to is memory of its own (``Code.keep``), its arena, or
something with a name (``Symbol``), and a ``Template`` knows which words are such addresses. An ``Executable`` is a copy
of the words with the addresses of one arena and of its own memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symc.ir.record import dataclass
from symc.runtime import blas_threads
from symc.runtime.commit import run_and_replace
from symc.runtime.machine_code import Symbol
from symc.runtime.native.executor_ir import ARITIES, FAILED, NEVER, Lap, Op, Word, executor
from symc.runtime.native.pool_ir import MOST_WORDS, Pool
from symc.runtime.native.pool_ir import address as pool_address
from symc.runtime.native.product_ir import ROUTINE

__all__ = [
    "ARENA", "FAILED", "NDARRAY", "NEVER", "Address", "Code", "Executable", "Label", "Lap", "Op", "Symbol", "Template",
    "Word", "aligned",
]

ALIGN = 64


class Label:
    """A place in the code that jumps name before it is known."""

    def __init__(self) -> None:
        self.at = -1


NDARRAY = Symbol(id(np.ndarray), "ndarray")


class Address(NamedTuple):
    """Where something will be: in the arena (-1) or in block ``space`` of what the code keeps, how many bytes from its
    start."""

    space: int
    offset: int = 0


ARENA = Address(-1)


class Code:
    """A program being written. Slots are indices of data words; what is not a word of its own is put in blocks."""

    def __init__(self) -> None:
        self.data: list[int] = [0] * len(Word)
        self.data[Word.LEFT] = NEVER
        self.operations: set[int] = set()
        self.words: list[int | Label] = []
        self._blocks: list[tuple[np.ndarray, bool]] = []
        self._addresses: dict[int, Address] = {}  # by slot
        self._holders: dict[Address, int] = {}
        self._kept: dict[int, int] = {}  # slots of what is kept, by identity

    def slot(self, value: int = 0) -> int:
        """A new word of data."""
        self.data.append(value)
        return len(self.data) - 1

    def slots(self, values: Sequence[int]) -> int:
        """The first of several words in a row."""
        first = len(self.data)
        self.data.extend(values)
        return first

    def keep(self, array: np.ndarray, shared: bool = False) -> int:
        """The slot that always holds the address of an array. Every executable has a copy of it, unless it is
        ``shared``: never written."""
        if id(array) not in self._kept:
            assert array.flags.c_contiguous
            self._blocks.append((array, shared))
            self._kept[id(array)] = self.at(Address(len(self._blocks) - 1))
        return self._kept[id(array)]

    def at(self, address: Address) -> int:
        """The slot that always holds an address."""
        if address not in self._holders:
            slot = self._holders[address] = self.slot()
            self._addresses[slot] = address
        return self._holders[address]

    def address_of(self, slot: int) -> Address | None:
        """The address that a slot always holds, if it is such a slot."""
        return self._addresses.get(slot)

    def emit(self, op: int, *operands: int | Label) -> None:
        """Add an instruction."""
        self.operations.add(int(op))
        self.words.append(int(op))
        self.words.extend(operands)

    def call(self, entry: int, slots: Sequence[int]) -> None:
        """Call a routine that takes the addresses in these slots."""
        assert len(slots) in ARITIES
        self.emit(Op.CALL + len(slots), entry, *slots)

    def launch(self, entry: int, numbers: Sequence[int], slots: Sequence[int]) -> None:
        """Call a kernel on numbers, then the addresses in these slots."""
        first = self.slots([*numbers, *[0] * len(slots)])
        self.emit(Op.LAUNCH, entry, first, first + len(numbers), len(slots), *slots)

    def launch_in_pieces(
        self, entry: int, numbers: Sequence[int], slots: Sequence[int], grain: int, most: int = 4, ends: bool = False
    ) -> None:
        """As ``launch``, by several threads: the first two numbers are a range, 0 and its end, and may be any part of
        it that begins at a multiple of ``grain``. ``most``: how many parts there are for each thread, several, as
        threads do not run equally fast. ``ends``: the third number is 1; it is 0 for parts, and when all are done there
        is a call with 1 and no range."""
        count = len(numbers) + len(slots)
        if count > MOST_WORDS:
            return self.launch(entry, numbers, slots)
        self.data[Word.POOL] = 1
        first = self.slots([*numbers, *[0] * len(slots)])
        self.emit(Op.PIECES, entry, first, first + len(numbers), len(slots), count, numbers[1], grain, most, ends,
                  *slots)

    def product(
        self, entry: int, steps: Sequence[int], slots: Sequence[int], units: int, grain: int, rows: bool
    ) -> None:
        """Call BLAS: for all at once, or, by several threads, for the rows of one product, or the products of a batch.
        ``steps``: how many bytes the next row, or matrix, is away in a, b and c."""
        numbers = [0, units, 0, *steps]
        routine = len(self.data) + ROUTINE
        self.emit(Op.SET, routine, entry)
        entry = Pool.OF_ROWS if rows else Pool.OF_MATRICES
        self.launch_in_pieces(entry, numbers, slots, grain, 1)  # BLAS packs all of b for each piece

    def limit_blas(self) -> None:
        """What is called here may use threads of its own: it is not to, while this code runs."""
        self.data[Word.LIMIT] = 1

    def label(self) -> Label:
        """A label for this place."""
        return self.place(Label())

    def place(self, label: Label) -> Label:
        """Let a label be this place."""
        label.at = len(self.words)
        return label

    def template(self) -> Template:
        """What was written, to be run anywhere."""
        self.emit(Op.HALT)
        start = len(self.data)
        code = [w.at if isinstance(w, Label) else w for w in self.words]
        words = np.array([*self.data, *code], np.int64)
        words[Word.CODE] = start
        symbols = [(start + k, w) for k, w in enumerate(code) if isinstance(w, Symbol)]
        starts, pool = _pooled([a for a, shared in self._blocks if not shared])
        firsts = iter(starts)
        own = {k: next(firsts) for k, (_, shared) in enumerate(self._blocks) if not shared}
        arena, kept, constants = [], [], []
        for slot, (space, offset) in self._addresses.items():
            if space == ARENA.space:
                arena.append((slot, offset))
            elif space in own:
                kept.append((slot, own[space] + offset))
            else:
                constants.append((slot, self._blocks[space][0], offset))
        return Template(words, tuple(symbols), _pairs(arena), _pairs(kept), pool, tuple(constants),
                        frozenset(self.operations))

    def finish(self) -> Executable:
        """What runs, of code that has no arena."""
        return Executable(self.template(), 0)


def _pooled(arrays: Sequence[np.ndarray]) -> tuple[list[int], np.ndarray]:
    """Arrays one after the other, and where each starts."""
    starts, end = [], 0
    for a in arrays:
        starts.append(end)
        end += -(-a.nbytes // ALIGN) * ALIGN
    pool = np.zeros(end, np.uint8)
    for start, a in zip(starts, arrays):
        pool[start : start + a.nbytes] = a.reshape(-1).view(np.uint8)
    return starts, pool


def _pairs(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Template:
    """Words (data, then instructions) and what the addresses among them are: ``symbols`` (in the words already);
    ``arena`` and ``kept``, rows of (index of the word, bytes from the start) of the arena and of ``pool``, what the
    memory of the code holds before it runs; ``constants``, arrays that are only read; ``operations``: the numbers of
    the instructions there are."""

    words: np.ndarray
    symbols: tuple[tuple[int, Symbol], ...]
    arena: np.ndarray
    kept: np.ndarray
    pool: np.ndarray
    constants: tuple[tuple[int, np.ndarray, int], ...]
    operations: frozenset[int]


class Executable:
    """Code in memory. ``words[slot]`` may be read and written between runs; one run at a time."""

    __slots__ = ("_constants", "_memory", "_once", "_pool", "_run", "address", "words")

    def __init__(self, template: Template, arena: int, threads: int = 1):
        memory, pool = template.words.copy(), aligned(template.pool.nbytes)
        pool[:] = template.pool
        for rows, start in ((template.arena, arena), (template.kept, pool.ctypes.data)):
            memory[rows[:, 0]] = rows[:, 1] + start
        for slot, array, offset in template.constants:
            memory[slot] = array.ctypes.data + offset
        memory[Word.LIMIT] = memory[Word.LIMIT] and blas_threads.to_be_limited()
        wanted = memory[Word.LIMIT] or (memory[Word.POOL] and threads > 1)
        memory[Word.POOL] = pool_address() if wanted else 0
        memory[Word.THREADS] = threads if memory[Word.POOL] else 1
        memory[Word.SELF] = memory.ctypes.data
        self._memory, self._pool, self._constants = memory, pool, template.constants
        self._once: Any = executor(template.operations)
        self._run: Any = None
        self.address = memory.ctypes.data
        self.words: Any = memory.data  # a memoryview: single words are read and written faster than through the array

    def run(self, cells: Sequence[Any] = (), arrays: Sequence[Any] = ()) -> int:
        """0, or the number with which an instruction stopped it. With 0 come new arrays for cells (``commit``)."""
        run = self._run
        if self._once is not None:
            run, self._once = self._once, None
        elif run is None:
            run = self._run = executor()
        return run_and_replace(run, self.address, cells, arrays) if cells else run(self.address)


def aligned(nbytes: int) -> np.ndarray:
    """Memory that starts at a multiple of a cache line."""
    raw = np.empty(nbytes + ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + nbytes]
