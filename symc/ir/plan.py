"""Plans: buffers, steps and their order. The only place with memory, aliasing, order and lanes.

This file is data; ``symc.codegen`` decides what goes in, ``print_plan`` writes it and ``check_plan`` proves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from symc.ir.dim import Size
from symc.ir.function import Function
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
    bytes of the one buffer in ``reads``, which hold ``value`` already).
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


@dataclass(frozen=True, eq=False)
class Plan:
    """``results``: buffer name of every body result (outputs, then updates). The new value of a state lies in the
    state's own buffer, or in a "result" buffer that replaces it after the whole call has succeeded.

    ``types``: what each buffer is allocated as. ``offsets``: where each temp lies in the arena, in bytes, multiples of
    64; ``arena`` is its size. ``donated``: indices of the inputs whose buffers may be overwritten.
    """

    function: Function
    buffers: dict[str, Buffer]
    steps: tuple[Step, ...]
    results: tuple[str, ...]
    types: dict[str, TensorType] = field(default_factory=dict)
    offsets: dict[str, Size] = field(default_factory=dict)
    arena: Size = 0
    donated: frozenset[int] = frozenset()
