"""Folds inside a kernel: what they keep while they run, and in which parts long sums are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from symc.codegen.cpu.chunks import PARTIAL_SUM
from symc.codegen.cpu.text import combine, identity, loaded, number, rounded, stored
from symc.codegen.cpu.writer import Row, Target, Writer
from symc.ir.dim import Size
from symc.ir.dtypes import computed, is_narrow
from symc.ir.ops.kernel import fold_result, projection
from symc.ir.ops.reduce import gives_place
from symc.ir.traverse import postorder
from symc.ir.types import DTYPE_NAMES, TensorType
from symc.ir.value import Value


def fold_parts(v: Value) -> list[tuple[str, TensorType]]:
    """The kind and element type of everything that a fold folds."""
    return [(k, fold_result(k, r.type)) if not gives_place(k) else (k, r.type)
            for k, r in zip(v.attrs["kinds"], v.regions[0].results)]


def kept_rows(v: Value, targets: Mapping[Value, Sequence[tuple[int, Target]]]) -> list[Target]:
    """The rows of results in which a fold keeps what it folds: result number, index of the row, whole shape."""
    results = {k: (k, before, (*shape, *u.attrs["shape"])) for u, found in targets.items()
               for _, (k, before, shape) in found}
    return [results[k] for k in v.attrs.get("keeps", ())]


def rows_of(out: Writer, kept: Sequence[Target]) -> list[Row]:
    """Names of such rows."""
    return [Row(f"o{k}", out.offset(before, shape)) for k, before, shape in kept]


def written_last(values: list[Value]) -> list[Value]:
    """Values in an order in which rows that are kept are read before results are written into them."""
    if not any(v.attrs.get("keeps") for v in values):
        return values
    return sorted(values, key=lambda v: projection(v)[0].op.name == "generate")


def is_long(shape: tuple[Size, ...]) -> bool:
    """True if the last axis may be longer than a chunk."""
    return bool(shape) and not (isinstance(shape[-1], int) and shape[-1] <= PARTIAL_SUM)


def short_sum(kind: str, x: Value) -> str:
    """The dtype that a partial sum of x fits into, if x is an integer of few bits, or a bool, as one of 64, and made of
    what has not as many: a vector has two or four times as many of them. Else an empty string."""
    if kind != "add" or x.op.name != "cast" or x.dtype.kind not in "iu" or x.dtype.itemsize < 8:
        return ""
    source = x.operands[0].dtype
    if any(v.dtype.itemsize > 4 for v in postorder([x]) if v.op.name == "load"):
        return ""
    few = source.kind in "iu" and source.itemsize <= 2
    return "u16" if source.kind == "b" else f"{source.kind}32" if few else ""


class Accumulator:
    """The running value of one fold. ``short``: the dtype of partial sums, if not its own."""

    def __init__(self, owner: Writer, kind: str, t: TensorType, short: str = ""):
        self.owner, self.kind, self.dtype, self.short = owner, kind, t.dtype, short
        self.name = owner.fresh("s")
        self.partial = kind == "add" and t.dtype.kind in "fc" or bool(short)
        self.chunk = owner.fresh("p") if self.partial else ""
        self.kept = "", t.dtype  # the array of what blocks have found, and its dtype

    @property
    def is_arg(self) -> bool:
        return gives_place(self.kind)

    def start(self, depth: int) -> None:
        if self.is_arg:
            self.owner.line(depth, f"{self.name} = 0")
            self.owner.line(depth, f"{self.name}_best = {number(np.zeros((), self.dtype))}")
        else:
            self.owner.line(depth, f"{self.name} = {identity(self.kind, self.dtype)}")

    def start_chunk(self, depth: int) -> None:
        if self.partial:
            zero = f"{self.short}(0)" if self.short else identity(self.kind, self.dtype)
            self.owner.line(depth, f"{self.chunk} = {zero}")

    def finish_chunk(self, depth: int) -> None:
        if self.short:
            found = f"{DTYPE_NAMES[self.dtype]}({self.chunk})"
            self.owner.line(depth, f"{self.name} = {combine(self.kind, self.name, found, self.dtype)}")
        elif self.partial:
            self.owner.line(depth, f"{self.name} = {self.name} + {self.chunk}")

    def update(self, x: str, depth: int, chunked: bool, position: str) -> None:
        if self.is_arg:
            sign = ">" if self.kind == "argmax" else "<"
            best = f"{self.name}_best"
            better = f"{x} {sign} {best}" + (f" or ({x} != {x} and {best} == {best})" if self.dtype.kind == "f" else "")
            self.owner.line(depth, f"if {position} == 0 or {better}:")
            self.owner.line(depth + 1, f"{self.name} = {position}")
            self.owner.line(depth + 1, f"{best} = {x}")
            return
        if chunked and self.short:
            self.owner.line(depth, f"{self.chunk} = {self.short}({self.chunk} + {self.short}({x}))")
            return
        target = self.chunk if chunked and self.partial else self.name
        self.owner.line(depth, f"{target} = {combine(self.kind, target, x, self.dtype)}")

    # -- in blocks, what each has found is kept in an array

    def keep(self, depth: int, block: str) -> None:
        """Keep the running value of a block."""
        dtype = computed(self.dtype)
        self.kept = f"q{len(self.owner.partial)}", dtype
        self.owner.partial.append(dtype)
        self.owner.line(depth, f"{self.kept[0]}[{block}] = {stored(self.name, dtype)}")

    def restart(self, depth: int) -> None:
        """Begin again, to put together what was kept."""
        self.name = self.owner.fresh("s")
        self.start(depth)

    def add_kept(self, depth: int, block: str) -> None:
        """Put what a block has found to that of those before."""
        array, dtype = self.kept
        found = loaded(f"{array}[{block}]", dtype)
        self.owner.line(depth, f"{self.name} = {combine(self.kind, self.name, found, self.dtype, exact=True)}")

    def result(self, depth: int) -> str:
        if is_narrow(self.dtype) and not self.is_arg:
            self.owner.line(depth, f"{self.name} = {rounded(self.name, self.dtype)}")
        return self.name
