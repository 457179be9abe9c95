"""The text of a kernel while it is written, which all that writes parts of it shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.cpu.chunks import chunks
from symc.codegen.kernel.scalarize import Loops
from symc.ir.dim import Size, product
from symc.ir.types import DTYPES
from symc.ir.value import Region, Value


class Row(str):
    """The name of a result that holds a row which was kept, and where the row starts."""

    start: str

    def __new__(cls, name: str, start: str) -> Row:
        self = super().__new__(cls, name)
        self.start = start
        return self


Target = tuple[int, tuple[str, ...], tuple[Size, ...]]  # result number, index so far, shape so far


class Writer(ABC):
    """The text of one kernel while it is written: its lines, its names, the sizes that it asks for."""

    def __init__(self, name: str, loops: Loops, over: Collection[int], shared: Mapping[int, int] = {}):
        self.name, self.loops, self.over, self.shared = name, loops, over, shared
        self.fails = self.polls = False
        self.lines: list[str] = []
        self.sizes: dict[Size, str] = {}
        self.count = 0
        self.names: dict[Value, str] = {}
        self.running: dict[str, str] = {}  # variables that hold the running value of a result: name -> first value
        self.arrays: dict[str, str] = {}  # arrays of the kernel's own: name -> its memory
        self.chunks = chunks(loops)
        self.partial: list[np.dtype] = []
        self.within: dict[Value, Size] = {}  # indices that were checked, and of what size
        self.block = ""  # the name of the loop over blocks of sums, inside of it
        self.after: int | None = None  # from which line on all chunks must be done

    # -- text

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def fresh(self, prefix: str) -> str:
        name = f"{prefix}{self.count}"
        self.count += 1
        return self.fresh(prefix) if name in DTYPES else name  # i8 is a dtype

    def array(self, t: str, n: int) -> str:
        """An array of the kernel's own, of n elements of a dtype in memory."""
        name = self.fresh("m")
        self.arrays[name] = f"memory({t}, {n})"
        return name

    def size(self, s: Size) -> str:
        """A size as an expression: a number, an argument, or arithmetic on arguments' names."""
        if isinstance(s, int):
            return str(s)
        return self.sizes.setdefault(s, f"n{len(self.sizes)}")

    def offset(self, index: Sequence[str], shape: Sequence[Size]) -> str:
        """The row-major position of an index."""
        terms = []
        for k, i in enumerate(index):
            stride = product(shape[k + 1 :])
            if i != "0" and stride != 0:
                terms.append(i if stride == 1 else f"{i} * {self.size(stride)}")
        return " + ".join(terms) or "0"

    # -- what ``Renderer`` does

    @abstractmethod
    def emit_block(self, region: Region, env: dict[Value, str], targets: list[Target | None], depth: int) -> list[str]:
        """Writes the results of a region: to targets, or into variables, which it names."""

    @abstractmethod
    def expression(self, v: Value, env: dict[Value, str]) -> str:
        """Text of a scalar that has been written."""

    @abstractmethod
    def open_loops(self, shape: tuple[Size, ...], depth: int,
                   chunked: list[Any]) -> tuple[tuple[str, ...], int]:
        """Writes the heads of loops: names of their indices, and the depth inside."""

    @abstractmethod
    def enter(self, v: Value, index: Sequence[str], env: dict[Value, str]) -> dict[Value, str]:
        """The names of a region at an index."""

    @abstractmethod
    def emit_scalar(self, v: Value, env: dict[Value, str], depth: int) -> None:
        """Writes a scalar into a variable."""

    @abstractmethod
    def emit_results(self, region: Region, env: dict[Value, str], targets: list[Target | None],
                     depth: int) -> list[str]:
        """Writes the results of a region whose scalars have been written."""

    @abstractmethod
    def extent(self, shape: tuple[Size, ...], k: int, depth: int) -> str:
        """The arguments of a range over an axis."""
