"""Actions that a plan gives a device to do, on slots that hold addresses, which a frame binds to its memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.codegen.cuda.source import CudaSource
from symc.errors import IndexingError, SymcError
from symc.ir.record import dataclass
from symc.runtime.cuda.device import Factorization, Kernel, Product

#: Memory that an action touches: the slot of its address, and bytes.
Touched = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Origin:
    """The kernel of a plan that launches are of: its variants, the text of one, and the user's lines."""

    loaded: Any
    source: CudaSource
    lines: tuple[str, ...]


@dataclass(frozen=True)
class LaunchAction:
    """``cells``: the slots of the parameters, which hold addresses and numbers. ``of``: the kernel of which it is entry
    number ``entry``; None for what is launched beside kernels."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: int
    shared: int
    cells: tuple[int, ...]
    reads: tuple[Touched, ...]
    writes: tuple[Touched, ...]
    lane: int = 0
    of: Origin | None = None
    entry: int = 0


@dataclass(frozen=True)
class ProductAction:
    """A product of the matrices at the addresses in three slots."""

    product: Product
    a: int
    b: int
    c: int
    lane: int = 0


@dataclass(frozen=True)
class FactorizationAction:
    """A factorization of what is at the addresses in some slots."""

    factorization: Factorization
    slots: tuple[int, ...]
    lane: int = 0


@dataclass(frozen=True)
class CopyAction:
    """As the instruction COPY, on a lane."""

    to: int
    source: int
    nbytes: int
    lane: int = 0


@dataclass(frozen=True)
class CollectiveAction:
    """A reduction over all ranks, of ``count`` elements. A copy, where there is one rank."""

    to: int
    source: int
    count: int
    dtype: np.dtype
    kind: str
    lane: int = 0


@dataclass(frozen=True)
class FillAction:
    """Zero bytes, on a lane."""

    to: int
    nbytes: int
    lane: int = 0


@dataclass(frozen=True)
class RecordAction:
    """From here on, event ``event`` is what a lane has done so far."""

    event: int
    lane: int


@dataclass(frozen=True)
class WaitAction:
    """Makes a lane wait: what it does from here on comes after an event."""

    event: int
    lane: int


Action = (LaunchAction | ProductAction | FactorizationAction | CopyAction | CollectiveAction | FillAction | RecordAction
          | WaitAction)


@dataclass(frozen=True)
class Failure:
    """Error that is raised when a launch has set its flag; ``lines``: where the user asked for what it computes."""

    lines: tuple
    kind: type[SymcError] = IndexingError
    what: str = "an index that was computed on the device is out of bounds"
    help: str | None = "the same function compiled for the CPU says which"

    def error(self) -> SymcError:
        return self.kind(self.what, where=self.lines, help=self.help)
