"""Code for the native interpreter: data words, instructions and labels, put together into one array that runs.

What they do is in ``symc.runtime.cpu.native.executor_ir``; which ones a plan needs, in ``symc.runtime.cpu.lower``.

Code is written once and may run in many places: what it points to is memory of its own (``Code.keep``), its arena, or
something with a name (``Symbol``), and a ``Template`` knows which words are such addresses. An ``Executable`` is a copy
of the words with the addresses of one arena and of its own memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symc.ir.dim import Size
from symc.ir.size_values import FAR
from symc.runtime import routines
from symc.runtime.cache.machine_code import Symbol
from symc.runtime.cpu.arithmetic import All, Arithmetic, Formula, Less, largest
from symc.runtime.cpu.executable import ALIGN, Executable, Template
from symc.runtime.cpu.native.instructions import ARITIES, GROW, NEVER, REFUSED, STRAIGHT, Op, Word
from symc.runtime.cpu.native.pool_words import MOST_WORDS, ROUTINE, Pool

#: From how many multiplications on BLAS may use threads of its own.
ALONE = 4096


class Label:
    """A place in the code that jumps name before it is known."""

    def __init__(self) -> None:
        self.at = -1


class _At(int):
    """A word of the code, by its position there; as an operand it is the word's slot."""


class Address(NamedTuple):
    """Address of something: in the arena (-1) or in block ``space`` of what the code keeps, how many bytes from its
    start (in the arena it may depend on sizes)."""

    space: int
    offset: Size = 0


ARENA = Address(-1)


class Code:
    """A program being written. Slots are indices of data words; what is not a word of its own is put in blocks."""

    def __init__(self) -> None:
        self.data: list[int] = [0] * len(Word)
        self.data[Word.LEFT], self.data[Word.CHANGED] = NEVER, 1
        self.words: list[int | Label] = []
        self.arguments: list[int | Label] = []  # what looks at the arguments of a call
        self.prepared: list[int | Label | _At] = []  # what computes what depends on sizes
        self._used: set[int] = set()  # instructions
        self.sizes = Arithmetic(self.slot, self.prepare)
        self._sized: list[tuple[int, Formula, bool]] = []  # words of data, or else of the code, that are formulas
        self._blocks: list[tuple[np.ndarray, bool]] = []
        self._addresses: dict[int, Address] = {}  # by slot
        self._holders: dict[Address, int] = {}
        self._kept: dict[int, int] = {}  # slots of what is kept, by identity
        self._of_numbers: dict[int, int] = {}  # slots of addresses of words, by these
        self._multiplied: list[Size] = []  # by products
        self._worth: list[Formula] = []  # 1 where threads are

    def slot(self, value: int = 0) -> int:
        """A new word of data."""
        self.data.append(value)
        return len(self.data) - 1

    def slots(self, values: Sequence[Formula]) -> int:
        """The first of several words in a row."""
        first = len(self.data)
        self._sized += [(first + k, x, True) for k, x in enumerate(values) if not isinstance(x, int)]
        self.data.extend(x if isinstance(x, int) else 0 for x in values)
        return first

    def let(self, word: int, x: Formula) -> None:
        """Let a word of the head be a formula."""
        if isinstance(x, int):
            self.data[word] = x
        else:
            self._sized.append((word, x, True))

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
            if not isinstance(address.offset, int):
                assert address.space == ARENA.space
                self.prepare(Op.ADD, slot, Word.ARENA, self.sizes(address.offset))
        return self._holders[address]

    def address_of(self, slot: int) -> Address | None:
        """The address that a slot always holds, if it is such a slot."""
        return self._addresses.get(slot)

    def emit(self, op: int, *operands: Formula | Label) -> None:
        """Add an instruction."""
        self.words.append(int(op))
        self._used.add(int(op))
        for x in operands:
            if not isinstance(x, int | Label):
                self._sized.append((len(self.words), x, False))
                x = 0
            self.words.append(x)

    def prepare(self, op: int, *operands: int | _At) -> None:
        """Add an instruction that runs when sizes are others than before."""
        self.prepared += [int(op), *operands]
        self._used.add(int(op))

    def refuse(self, bad: Formula) -> None:
        """No call is accepted where this is 1."""
        if bad != 0:
            self.prepare(Op.STOP_IF_LESS, self.sizes(0), self.sizes(bad), REFUSED)

    def number(self, x: Formula) -> int:
        """The slot that holds a number."""
        return self.sizes(x)

    def address_of_number(self, x: Size) -> int:
        """The slot that holds the address of a number."""
        number = self.sizes(x)
        if number not in self._of_numbers:
            self._of_numbers[number] = self.slot()
            self.prepare(Op.MOVE, self._of_numbers[number], Word.SELF, 8 * number)
        return self._of_numbers[number]

    def call(self, entry: int, slots: Sequence[int]) -> None:
        """Call a routine that takes the addresses in these slots."""
        width = next(n for n in ARITIES if n >= len(slots))
        self.emit(Op.CALL + width, entry, *slots, *[slots[-1]] * (width - len(slots)))

    def launch(self, entry: int, numbers: Sequence[Formula], slots: Sequence[int]) -> None:
        """Call a kernel on numbers, then the addresses in these slots."""
        first = self.slots([*numbers, *[0] * len(slots)])
        self.emit(Op.LAUNCH, entry, first, first + len(numbers), len(slots), *slots)

    def launch_in_chunks(
        self, entry: int, numbers: Sequence[Formula], slots: Sequence[int], grain: Size, most: int = 4,
        ends: bool = False, worth: Formula = 1,
    ) -> None:
        """As ``launch``, by several threads: the first two numbers are a range, 0 and its end, and may be any part of
        it that begins at a multiple of ``grain``. ``most``: how many parts there are for each thread, several, as
        threads do not run equally fast. ``ends``: the third number is 1; it is 0 for parts, and when all are done there
        is a call with 1 and no range. ``worth``: 0 where one thread is enough."""
        count = len(numbers) + len(slots)
        if count > MOST_WORDS:
            return self.launch(entry, numbers, slots)
        self._worth.append(worth)
        first = self.slots([*numbers, *[0] * len(slots)])
        self.emit(Op.PIECES, entry, first, first + len(numbers), len(slots), count, numbers[1], grain, most, ends,
                  worth, *slots)

    def sections(self, targets: Sequence[Label], after: Label) -> int:
        """Run what is at the targets at the same time, if ``pay`` says that it pays; else all that follows."""
        places = self.slots([0] * len(targets))
        routine = routines.entry("sections", "sections")
        self.emit(Op.SECTIONS, places, len(targets), 0, after, routine, *targets)
        return len(self.words) - len(targets) - 3

    def pay(self, sections: int, worth: Formula) -> None:
        """Let sections run at the same time where ``worth`` is 1."""
        if isinstance(worth, int):
            self.words[sections] = worth
        else:
            self._sized.append((sections, worth, False))
        self._worth.append(worth)

    def product(
        self, entry: int, steps: Sequence[Size], slots: Sequence[int], units: Size, grain: Size, rows: bool,
        worth: Formula,
    ) -> None:
        """Call BLAS: for all at once, or, by several threads, for the rows of one product, or the products of a batch.
        ``steps``: how many bytes the next row, or matrix, is away in a, b and c. Runs only where ``worth`` is 1."""
        numbers = [0, units, 0, *steps]
        routine = len(self.data) + ROUTINE
        self.emit(Op.SET, routine, entry)
        entry = Pool.OF_ROWS if rows else Pool.OF_MATRICES
        self.launch_in_chunks(entry, numbers, slots, grain, 1, worth=worth)  # BLAS packs all of b for each chunk

    def limit_blas(self, multiplications: Size = FAR) -> None:
        """Limits threads of BLAS while this code runs: a large call would start its own."""
        if isinstance(multiplications, int) and multiplications < ALONE:
            return
        self.data[Word.MAY_LIMIT] = 1
        self._multiplied.append(multiplications)

    def label(self) -> Label:
        """A label for this place."""
        return self.place(Label())

    def place(self, label: Label) -> Label:
        """Let a label be this place."""
        label.at = len(self.words)
        return label

    def template(self) -> Template:
        """The code that was written, to be run anywhere."""
        self.emit(Op.HALT)
        end = Label()
        lenient = [x for x in self._sized if isinstance(x[1], Less | All)]
        for where, x, in_data in self._sized:
            if not isinstance(x, Less | All):
                self._put(where, x, in_data)
        self._limit()
        if self.prepared:
            self.prepare(Op.STOP_IF_LESS, self.sizes(0), Word.BAD, REFUSED)
        for where, x, in_data in lenient:
            self._put(where, x, in_data)
        self._want_pool()
        self.prepare(Op.STOP_IF_LESS, Word.HAVE, Word.NEED, GROW)
        self.prepare(Op.SET, Word.CHANGED, 0)
        start = len(self.data)
        self.data[Word.CODE], self.data[Word.PREPARE] = start, len(self.words)
        again = [int(Op.SET), int(Word.BAD), 0]  # whatever sizes the last call was refused for
        every = [*self.words, *again, *self.arguments, int(Op.JUMP_IF_LESS), int(Word.CHANGED), 1, end, *self.prepared]
        end.at = len(every)
        every.append(int(Op.HALT))
        code = [w.at if isinstance(w, Label) else start + w if isinstance(w, _At) else w for w in every]
        words = np.array([*self.data, *code], np.int64)
        symbols = [(start + k, w) for k, w in enumerate(code) if isinstance(w, Symbol)]
        starts, pool = _pooled([a for a, shared in self._blocks if not shared])
        firsts = iter(starts)
        own = {k: next(firsts) for k, (_, shared) in enumerate(self._blocks) if not shared}
        arena, kept, constants = [], [], []
        for slot, (space, offset) in self._addresses.items():
            if not isinstance(offset, int):  # of the arena: computed
                continue
            if space == ARENA.space:
                arena.append((slot, offset))
            elif space in own:
                kept.append((slot, own[space] + offset))
            else:
                constants.append((slot, self._blocks[space][0], offset))
        straight = self._used <= STRAIGHT
        return Template(words, straight, tuple(symbols), _pairs(arena), _pairs(kept), pool, tuple(constants))

    def _put(self, where: int, x: Formula, in_data: bool) -> None:
        self.prepare(Op.MOVE, where if in_data else _At(where), self.sizes(x), 0)

    def _limit(self) -> None:
        """Limit BLAS if one of the products is large."""
        if self._multiplied:
            self.prepare(Op.LESS, Word.LIMIT, self.sizes(ALONE - 1), self.sizes(largest(self._multiplied)))
            self.prepare(Op.MUL, Word.LIMIT, Word.LIMIT, Word.MAY_LIMIT)

    def _want_pool(self) -> None:
        if self._multiplied or self._worth:
            self.prepare(Op.MOVE, Word.WANTS, Word.LIMIT, 0)
            for worth in dict.fromkeys(self._worth):
                self.prepare(Op.MAX, Word.WANTS, Word.WANTS, self.sizes(worth))
            self.prepare(Op.STOP_IF_LESS, Word.POOLED, Word.WANTS, GROW)

    def finish(self) -> Executable:
        """The executable of code that has no arena."""
        return Executable(self.template())


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
