"""Kernels that may be run in chunks, by several threads: those that are one loop whose steps do not know each other.

A chunk is a range of the outermost loop; the kernel takes it as its first two arguments, and one call with the whole
range is the kernel. Whichever chunks there are, every number is made by the same steps in the same order: a step of the
outermost loop is never divided, and where its steps are single elements or columns, which the compiler takes several at
a time, chunks begin at multiples of a grain.

Sums of everything are made in blocks whose length depends on nothing but sizes. Then a step of the outermost loop is a
block, and leaves what it has summed in memory beside the results. A third argument says whether to put these numbers
together, in order, and do what comes after: by one thread, when all chunks are done.
"""

from __future__ import annotations

from collections.abc import Iterator

from symc.codegen.cpu.turned import few_along
from symc.codegen.kernel.scalarize import Loops
from symc.codegen.kernel.user_functions import is_users
from symc.codegen.plan.costs import FUNCTION, LIBRARY
from symc.ir.dim import Size, ceildiv, floordiv, product
from symc.ir.ops.reduce import gives_place
from symc.ir.ops.store import insert, insert_place, store, store_running
from symc.ir.record import dataclass
from symc.ir.size_extremes import maximum
from symc.ir.traverse import postorder
from symc.ir.value import Region, Value

PARTIAL_SUM = 1024  # elements summed before a partial sum is added: bounds the rounding error of long sums

#: The arguments that say what the chunk is, and whether to do what comes after all chunks.
ARGUMENTS, LAST = ("begin", "end"), "last"
#: How many elements a block has that is summed for itself: a multiple of a partial sum's.
SUMMED = 64 * PARTIAL_SUM
#: How many elements a chunk of a loop over elements has at least: a multiple of what the compiler takes at a time.
ELEMENTS = 1024
#: The same of a loop over columns.
COLUMNS = 512
#: How many nanoseconds a kernel must take for threads to be worth it: see "Threads" in the architecture.
WORTH = 70_000
#: Picoseconds to read or write a byte in the cache; of ops on one of many numbers of 8 bytes, half as many on 4 bytes.
_BYTE, _CHEAP, _DIVISION = 8, 10, 300
#: Of an element among which the place of an extreme is looked for.
_PLACE = 200
#: Picoseconds from which on an op is more than memory.
_DEAR = 100
_DIVISIONS = frozenset({"div", "floordiv", "mod", "fmod"})


@dataclass(frozen=True)
class Chunks:
    """``units``: the length of the outermost loop; chunks begin at multiples of ``grain``. ``picoseconds``: what all of
    it takes, if memory is no limit, roughly. ``block``: how many steps of a loop of sums are a unit, if it is one."""

    units: Size
    grain: int
    picoseconds: Size
    block: Size | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        return ARGUMENTS if self.block is None else (*ARGUMENTS, LAST)


def chunks(loops: Loops, worth: int = WORTH, summed: int = SUMMED) -> Chunks | None:
    """None for a kernel that cannot be run in chunks, or never takes long enough. ``worth``: how many nanoseconds are
    enough (0: chunks are never too small); ``summed``: how many elements are summed for themselves."""
    outermost, sums = _outermost(loops), _sums(loops)
    if outermost is None and sums is None:
        return None
    time = _picoseconds(loops.region)
    if isinstance(time, int) and time < 1000 * worth:
        return None
    if sums is not None:
        block = maximum(1, floordiv(summed, maximum(1, product(sums[1:]))))
        return Chunks(ceildiv(sums[0], block), 1, time, block)
    if outermost is None or not all(_apart(v) for v in _every(outermost.regions[0])):
        return None
    dear = worth == 0 or any(v.operands and not v.regions and scalar_time(v) > _DEAR for v in _every(loops.region))
    if loops.columns and not dear:
        return None  # memory decides, and half of each row is read slower than the whole
    shape = outermost.attrs["shape"]
    if outermost.op.name == "generate" and few_along(outermost) == 0:
        return Chunks(shape[1], 1 if len(shape) > 2 else ELEMENTS, time)
    if len(shape) > 1:
        grain = 1
    elif loops.columns:
        grain = COLUMNS
    else:
        grain = 1 if any(v.regions for v in postorder(outermost.regions[0].results)) else ELEMENTS
    return Chunks(shape[0], grain, time)


def _outermost(loops: Loops) -> Value | None:
    """The loop nest that is all of a kernel, but for numbers."""
    if loops.starts:
        return None
    nests = [v for v in postorder(loops.region.results) if v.regions]
    alone = len(nests) == 1 and nests[0].op.name == "generate"
    made = all(r is nests[0] or r.op.name == "get" for r in loops.region.results) if alone else False
    return nests[0] if made else None


def _sums(loops: Loops) -> tuple[Size, ...] | None:
    """The shape of the loop nest that is all of a kernel, but for numbers, where that has sums of everything."""
    if loops.starts or loops.columns:
        return None
    inside: set[Value] = set()  # loop nests, and what depends on them
    nests: list[Value] = []
    for v in postorder(loops.region.results):
        depends = any(o in inside for o in v.operands)
        if v.regions and depends:
            return None
        if v.regions:
            nests.append(v)
        if v.regions or depends:
            inside.add(v)
    if not any(v.op.name == "fold" for v in nests) or not all(v.op.name in ("fold", "generate") for v in nests):
        return None
    shapes = {v.attrs["shape"] for v in nests}
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    if any(v.op in (store, store_running, insert, insert_place) for n in nests for v in _every(n.regions[0])):
        return None
    places = any(gives_place(k) for v in nests for k in v.attrs.get("kinds", ()))
    return None if places or not shape else shape


def _apart(v: Value) -> bool:
    """True if what an op writes depends on nothing that another step of the outermost loop writes."""
    if v.op in (store_running, insert, insert_place):
        return v.attrs["axis"] != 0
    return v.op is not store and not is_users(v.op.name)  # a user's function may know no threads


def _every(region: Region) -> Iterator[Value]:
    for v in postorder(region.results):
        yield v
        for inner in v.regions:
            yield from _every(inner)


def _picoseconds(region: Region) -> Size:
    time: Size = 0
    for v in postorder(region.results):
        if v.regions:
            stored = sum(r.dtype.itemsize for r in v.regions[0].results) if v.op.name == "generate" else 0
            found = _PLACE if any(map(gives_place, v.attrs.get("kinds", ()))) else 0
            time += product(v.attrs["shape"]) * (_picoseconds(v.regions[0]) + _BYTE * stored + found)
        elif v.op.name == "load":
            time += _BYTE * v.dtype.itemsize
        elif v.operands and v.op.name != "get":
            time += scalar_time(v)
    return time


def scalar_time(v: Value) -> int:
    """Picoseconds of an op on one element, several of which are computed at a time."""
    name, kernel = v.op.name, v.op.facts.kernel
    if kernel == "scalar":
        return round(1000 * LIBRARY)
    time = 1000 * FUNCTION if kernel == "vectorized" else _DIVISION if name in _DIVISIONS else _CHEAP
    return round(time * max(4, v.dtype.itemsize) / 8)
