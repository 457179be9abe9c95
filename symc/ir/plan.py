"""Plans: buffers, steps and their order. The only place with memory, aliasing, order and lanes.

This file is data; ``symc.codegen`` decides what goes in, ``print_plan`` writes it and ``check_plan`` proves it.
"""

from __future__ import annotations

from symc.ir.dim import Size
from symc.ir.function import Function
from symc.ir.record import dataclass, field
from symc.ir.types import TensorType
from symc.ir.value import Value


@dataclass(frozen=True)
class Buffer:
    """Memory of ``nbytes`` bytes. ``kind``:

    "input" (the caller's array), "state" (a shared variable's array), "constant", "result" (a fresh array that is
    returned or that becomes a state's array), "temp" (part of the arena).
    """

    name: str
    kind: str
    nbytes: Size
    value: Value | None = None  # the param or constant that the buffer holds from the start

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Step:
    """Compute ``value`` (an op whose operands lie in buffers) into buffers.

    ``kind``: "launch" (a generated kernel), "call" (a library routine or the reference implementation), "copy" (all
    bytes of the one buffer in ``reads``, which hold ``value`` already), "control" (a loop or branch: ``bodies`` has a
    plan for each region, ``layout`` says with which memory they run, and ``scratch`` names a temp that the step alone
    uses, None if it needs none).
    ``reads``/``writes``: buffer names, one an operand / one a result. A buffer may hold an operand in another shape
    (``reshape`` takes no step); the shape is that of the operand. A write into a buffer that is also read is in place.
    ``waits``: positions of steps in other lanes that must have finished before.
    """

    kind: str
    value: Value
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    lane: int = 0
    waits: tuple[int, ...] = ()
    bodies: tuple[Plan, ...] = ()
    layout: Layout | None = None
    scratch: str | None = None


@dataclass(frozen=True)
class Layout:
    """Places of the memory that the bodies of a control step use; offsets are bytes from the start of the step's
    scratch, multiples of 64.

    A body has an input for every operand (of a `cond`: but the first; of a loop: carries, one row of each x, captured
    values) and is run with the addresses of its buffers:

    * an "input" or "state" is given: a captured value lies where the operand lies, the row of an x at the operand's
      address plus t * (bytes of a row); a carry, see below;
    * a temp lies in the body's arena, which starts at ``arenas[k]`` for body k;
    * output j of the body of a `scan` is row t of the step's result ``carry + j``, written there directly; output j of
      a branch is the step's result j; the output of a `while`'s condition is the byte at ``flag``;
    * every other "result" is a second buffer of a carry and has a place in ``places``, by its name.

    Carry k of a loop (input k of the condition and of the body, which always agree) starts, as ``homes[k]`` says,
    "operand": where operand k lies; nothing writes there. "result": in the step's result k, to which operand k is
    copied first, unless it lies there already. "scratch": at ``places[name]``, to which operand k is copied first.

    After each step of the loop ``moves`` are done, all at once: ``(a, b)`` gives buffer a of the body the address that
    buffer b had in this step (so buffers are exchanged, or a carry is read where it was written, in a row of a y).
    After the last step carry k is copied from where it is then to the step's result k, unless it lies there already.
    """

    arenas: tuple[Size, ...]
    flag: Size | None = None
    places: dict[str, Size] = field(default_factory=dict)
    homes: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """``results``: buffer name of every body result (outputs, then updates). The new value of a state lies in the
    state's own buffer, or in a "result" buffer that replaces it after the whole call has succeeded.

    ``types``: what each buffer is allocated as. ``offsets``: where each temp lies in the arena, in bytes, multiples of
    64; ``arena`` is its size. ``donated``: indices of the inputs whose buffers may be overwritten.

    ``sections``: groups of steps that may run at the same time. A group is the positions at which its sections begin,
    then the one after its last step; a section is the steps from one position to the next, which stay in sequence.
    """

    function: Function
    buffers: dict[str, Buffer]
    steps: tuple[Step, ...]
    results: tuple[str, ...]
    types: dict[str, TensorType] = field(default_factory=dict)
    offsets: dict[str, Size] = field(default_factory=dict)
    arena: Size = 0
    donated: frozenset[int] = frozenset()
    sections: tuple[tuple[int, ...], ...] = ()

    @property
    def given(self) -> tuple[str, ...]:
        """The buffer of every input, in order."""
        found = {b.value: n for n, b in self.buffers.items() if b.kind in ("input", "state")}
        return tuple(found[p] for p in self.function.params)
