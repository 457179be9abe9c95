"""The text of scatters whose places or values are computed: those of a block of elements by a loop that vectorizes,
into memory of the kernel, and from there they are put one by one. A loop that does both computes one at a time.

A small result of integers has several tables, each for every so many elements, put together at the end: who adds to a
place that was just written need not wait for it. (A histogram of 100 bins, half of whose numbers lie in one of them,
takes 133 us for 100,000 with one table, 70 with four; AVX2: 132, 87.)
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.codegen.cpu.chunks import scalar_time
from symc.codegen.cpu.stores import put
from symc.codegen.cpu.text import combine, identity
from symc.codegen.cpu.writer import Target, Writer
from symc.ir.dim import product
from symc.ir.dtypes import RECORDS
from symc.ir.ops.store import store
from symc.ir.traverse import dependent, postorder, region_params
from symc.ir.value import Region, Value

#: So many elements are a block: their places and values stay in the first cache.
BLOCK = 256
#: Loops of so many steps at most stay as they are.
FEW = 64
#: Picoseconds from which on an element is worth it: two ops on words (AVX2 gains nothing by two, a quarter by four;
#: AVX-512 a tenth by one, half by ten). To write and read its value as well is worth ten (with two, 1.25 of the time).
WORTH, WORTH_VALUE = 20, 100
#: Results of so many elements at most have tables, and so many.
SMALL, TABLES = 128, 4


def scatters(out: Writer, v: Value, env: dict[Value, str], depth: int) -> bool:
    """True if a `generate` puts elements in places that are read or made of what is, and gains by blocks."""
    shape, region = v.attrs["shape"], v.regions[0]
    if not out.loops.starts or len(shape) != 1 or isinstance(shape[0], int) and shape[0] <= FEW:
        return False
    values = postorder(region.results)
    puts = [r for r in region.results if r.op is store]
    reads = [u for u in values if u.op.name == "load"]
    if not puts or any(u.regions or u.op.name == "get" for u in values):
        return False
    if any(RECORDS[r.dtype].loaded != "{}" or r.dtype.kind == "c" for r in puts):
        return False  # a scalar would not come back from memory as it went
    scope = out.enter(v, "i", env)
    if any(scope[u.operands[0]].startswith("o") for u in reads):
        return False  # what is put might be read
    made = dependent(values, reads)
    if not all(any(i in made for i in r.operands[1:]) for r in puts):
        return False  # places of the loop's index: it vectorizes
    if all(_tables(r, depth) > 1 for r in puts):
        return True
    return _time(values, made) >= (WORTH_VALUE if any(_varies(r, region) for r in puts) else WORTH)


def emit_scatters(out: Writer, v: Value, env: dict[Value, str], targets: list[tuple[int, Target]], depth: int) -> None:
    """Write such a loop: over blocks, and in each one that computes it and one that puts it."""
    size, region = out.size(v.attrs["shape"][0]), v.regions[0]
    puts = [_Put(out, region.results[k], number, depth)
            for k, (number, _, _) in targets if region.results[k].op is store]
    for p in puts:
        p.start(depth)
    first, count, j, i = (out.fresh(letter) for letter in "bcji")
    out.line(depth, f"for {first} in range(0, {size}, {BLOCK}):")
    out.line(depth + 1, f"{count} = min({BLOCK}, {size} - {first})")
    out.line(depth + 1, f"for {j} in range({count}):")
    out.line(depth + 2, f"{i} = {first} + {j}")
    rest = [(region.results[k], (number, (*before, i), (*around, *v.attrs["shape"])))
            for k, (number, before, around) in targets if region.results[k].op is not store]
    scalars = [x for p in puts for x in p.result.operands]
    block = Region(region.params, [*scalars, *[r for r, _ in rest]])
    own = [*[None] * len(scalars), *[target for _, target in rest]]
    found = iter(out.emit_block(block, out.enter(v, (i,), env), own, depth + 2))
    for p in puts:
        p.keep(depth + 2, j, [next(found) for _ in p.result.operands], _varies(p.result, region))
    _put_block(out, puts, count, depth + 1)
    for p in puts:
        p.finish(depth)


def _put_block(out: Writer, puts: list[_Put], count: str, depth: int) -> None:
    """Write the loop that puts a block: into tables as many elements as there are at once, the rest one by one."""
    tables, j = max(p.tables for p in puts), out.fresh("j")
    if tables > 1:
        whole = out.fresh("c")
        out.line(depth, f"{whole} = {count} & -{tables}")
        out.line(depth, f"for {j} in range(0, {whole}, {tables}):")
        for k in range(tables):
            for p in puts:
                p.write(depth + 1, f"{j} + {k}" if k else j, k)
        count, j = f"{whole}, {count}", out.fresh("j")
    out.line(depth, f"for {j} in range({count}):")
    for p in puts:
        p.write(depth + 1, j, 0)


class _Put:
    """A result into which elements are put: memory for places and values of a block, and tables."""

    def __init__(self, out: Writer, result: Value, number: int, depth: int):
        self.out, self.result, self.tables = out, result, _tables(result, depth)
        self.memory = RECORDS[result.dtype].memory
        self.size = product(result.attrs["shape"])
        more = [out.array(self.memory, self.size) for _ in range(1, self.tables) if isinstance(self.size, int)]
        self.arrays = [f"o{number}", *more]
        self.places, self.value = out.array("i64", BLOCK), ""

    def start(self, depth: int) -> None:
        """Write what the tables hold before."""
        i, (_, *more) = self.out.fresh("i"), self.arrays
        if more:
            self.out.line(depth, f"for {i} in range({self.size}):")
        for name in more:
            self.out.line(depth + 1, f"{name}[{i}] = {identity(self.result.attrs['kind'], self.result.dtype)}")

    def keep(self, depth: int, j: str, scalars: list[str], varies: bool) -> None:
        """Keep the place of element j of a block, and its value if that varies."""
        value, *place = scalars
        self.out.line(depth, f"{self.places}[{j}] = {self.out.offset(place, self.result.attrs['shape'])}")
        if not varies:
            self.value = value
            return
        kept = self.out.array(self.memory, BLOCK)
        self.out.line(depth, f"{kept}[{j}] = {value}")
        self.value = f"{kept}[{{}}]"

    def write(self, depth: int, j: str, table: int) -> None:
        """Put element j of a block."""
        place = self.out.fresh("t")
        self.out.line(depth, f"{place} = {self.places}[{j}]")
        name = self.arrays[table % self.tables]
        put(self.out, self.result, f"{name}[{place}]", self.value.format(j), depth)

    def finish(self, depth: int) -> None:
        """Put the tables together."""
        i, kind = self.out.fresh("i"), self.result.attrs["kind"]
        whole, *more = (f"{name}[{i}]" for name in self.arrays)
        if more:
            self.out.line(depth, f"for {i} in range({self.size}):")
        for x in more:
            self.out.line(depth + 1, f"{whole} = {combine(kind, whole, x, self.result.dtype, exact=True)}")


def _varies(r: Value, region: Region) -> bool:
    """True if the value that is put is not the same for all elements."""
    x = r.operands[0]
    return x.data is None and x not in region_params(region)[1:]


def _tables(r: Value, depth: int) -> int:
    """The number of tables of a result: whichever order integers are combined in, they give the same."""
    size = product(r.attrs["shape"])
    exact = r.attrs["kind"] != "set" and r.dtype.kind in "iu"
    return TABLES if exact and depth == 1 and isinstance(size, int) and size <= SMALL else 1


def _time(values: Sequence[Value], made: set[Value]) -> int:
    """Picoseconds of what is computed of what is read, up to checks: what is after them is left out, or cheap."""
    checked = dependent(values, [u for u in values if "checks" in u.op.traits])
    return sum(scalar_time(u) for u in made - checked if u.op is not store and u.op.name != "load")
