"""Updates: elements that are put at places, or combined with what is there, in the order of the loops.

Where places of different steps differ by an index of the loops (a row of a batch, a column), each thread has such
steps to itself and does what may meet one after another. Where rows are picked by numbers (the gradient of an
embedding), a block owns some rows of the result: it goes through all numbers, a thousand at a time, lists those that
name its rows, in order, and adds their rows. Where the result is small, the numbers are divided among blocks instead,
each of which has a result of its own; a last launch puts these together. Only integers are combined by atomics, for
which no order matters: equal inputs give equal bits. The result first gets what it holds before, unless it lies there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from symc.codegen.cuda.partials import ACROSS, TOGETHER, Partial, together
from symc.codegen.cuda.rows import power
from symc.codegen.cuda.source import WARP
from symc.codegen.cuda.store_places import Nest, Store, filled, held, nest_of, step
from symc.codegen.cuda.writer import BLOCK, Env, Kernel, Text, Variants, Writer, needed
from symc.ir.dim import Size, ceildiv, floordiv, product
from symc.ir.dtypes import is_narrow
from symc.ir.size_extremes import maximum, minimum
from symc.ir.value import Region

#: Steps that one thread may do one after another whatever there is beside, and threads that are enough for any number.
FEW, ENOUGH = 16, 2**15
#: What atomics do on integers of 4 and 8 bytes.
_ATOMIC = {"add": "atomicAdd", "maximum": "atomicMax", "minimum": "atomicMin", "and": "atomicAnd", "or": "atomicOr"}
#: Blocks that are worth it, at most; numbers that a thread looks at before what was found is used.
BLOCKS, LOOKS = 1024, 4
#: Elements of a result of which blocks have copies, at most (64 of them, so that there are threads); of all copies; and
#: numbers that are worth a copy.
SMALL, COPIES, PART = 2**18, 2**24, 1024


def scatter(kernel: Kernel) -> Scatter | None:
    """The variants of a kernel that updates results; None for another."""
    nest = nest_of(kernel) if kernel.loops.starts and not kernel.is_complex else None
    found = None if nest is None else Scatter(kernel, nest)
    return None if found is None or found.is_joint else found


class Scatter(Variants):
    def __init__(self, kernel: Kernel, nest: Nest):
        self.kernel, self.nest = kernel, nest
        self.atomic = not nest.elements and all(
            p.kind in _ATOMIC and p.value.dtype.kind in "iu" and p.value.dtype.itemsize >= 4 for p in nest.stores)

    @property
    def is_joint(self) -> bool:
        """True if it has several results of which each alone would have blocks that own its rows."""
        threads = product(n for a, n in enumerate(self.nest.space) if a in self.nest.apart)
        many = isinstance(threads, int) and threads >= ENOUGH
        return len(self.nest.stores) > 1 and self.nest.owned and not self.atomic and not many

    def choose(self, number: Callable[[Size], int]) -> str:
        nest = self.nest
        steps = number(product(n for a, n in enumerate(nest.space) if a not in nest.apart))
        threads = number(product(n for a, n in enumerate(nest.space) if a in nest.apart))
        if self.atomic and steps > 1:
            return self.chosen("atomic", number)
        if not nest.owned or len(nest.stores) > 1 or steps <= FEW or threads >= ENOUGH:
            return self.chosen("apart", number)
        width = min(BLOCK, power(max(1, number(product(nest.space[nest.rows :])))))
        (store,) = nest.stores
        elements, numbers = number(product(store.shape)), number(product(nest.space[: nest.rows]))
        looked = numbers * min(owners(width), number(product(store.shape[: nest.picked])))
        folds = store.kind != "set" and 0 < elements <= SMALL and numbers >= 4 * PART
        split = folds and min(BLOCKS, COPIES // elements, numbers // PART) * elements < looked
        return self.chosen(f"{'split' if split else 'owned'}_{width}", number)

    def write(self, words: Sequence[str], name: str) -> Text:
        return _Text(self, words).source(name)


class _Text:
    """Writes one variant."""

    def __init__(self, of: Scatter, words: Sequence[str]):
        self.of, self.nest, self.words = of, of.nest, words
        self.w = Writer(of.kernel, "i64" if "wide" in words else "i32")
        self.copy = ""  # where a block has a result of its own
        self.looked: list[int] = []  # the operands by which rows are picked

    def source(self, name: str) -> Text:
        w, kernel = self.w, self.of.kernel
        if self.words[0] == "split":
            return self._split(name, int(self.words[1]))
        entries: list[tuple[str, Size, list[str]]] = []
        again: tuple[tuple[int, Size], ...] = ()
        for k, start in kernel.loops.starts.items():
            if isinstance(start, Region) or k not in kernel.over:
                n = product(kernel.results[k].shape)
                entries.append((f"{name}_start{k}", ceildiv(n, BLOCK), self._start(k, start, n)))
        if self.words[0] in ("apart", "atomic"):
            every = self.words[0] == "atomic"
            own = [a for a in range(len(self.nest.space)) if every or a in self.nest.apart]
            threads = product(self.nest.space[a] for a in own)
            entries.append((name, ceildiv(threads, BLOCK), self._apart(own, threads)))
        else:
            rows = product(self.nest.stores[0].shape[: self.nest.picked])
            most = owners(int(self.words[1]))
            blocks = minimum(most, rows)
            entries.append((name, blocks, self._owned(rows, maximum(1, ceildiv(rows, most)), int(self.words[1]))))
            again = tuple((k, blocks) for k in self.looked)
        return w.launches([(entry, (blocks, 1, 1), BLOCK, lines) for entry, blocks, lines in entries], again=again)

    def _start(self, k: int, start: int | Region, n: Size) -> list[str]:
        """Kernel that writes the start of a result."""
        w = self.w
        w.lines = []
        w.thread("p", n)
        if isinstance(start, int):
            w.line(1, f"o{k}[p] = a{start}[p];")
            return w.lines
        w.line(1, f"o{k}[p] = {w.stored(filled(w, start, 'p'), self.of.kernel.results[k].dtype)};")
        return w.lines

    # -- one element

    def _elements(self, env: Env, index: Sequence[str], depth: int) -> None:
        """Write what one step stores, and its elements of other results."""
        w = self.w
        for p in self.nest.stores:
            x, array = w.expression(p.value.operands[0], env), self.copy or f"o{p.result}"
            at = w.fresh("w")
            w.line(depth, f"const {w.index} {at} = {self._place(p, env)};")
            if self.words[0] == "atomic":
                t = _atomic_type(p)
                w.line(depth, f"{_ATOMIC[p.kind]}(reinterpret_cast<{t} *>({array} + {at}), {t}({x}));")
                continue
            if self.copy:
                w.line(depth, f"{array}[{at}] = {w.combined(p.kind, f'{array}[{at}]', x, p.value.dtype)};")
                continue
            if p.kind != "set":
                now = w.fresh("t")
                w.line(depth, f"const auto {now} = {w.read(f'{array}[{at}]', p.value.dtype)};")
                x = w.combined(p.kind, now, x, p.value.dtype)
            if p.kind != "set" and is_narrow(p.value.dtype):
                rounded = w.fresh("t")
                w.line(depth, f"const f32 {rounded} = {x};")
                x = rounded
            w.line(depth, f"{array}[{at}] = {w.stored(x, p.value.dtype)};")
        for k, v in self.nest.elements.items():
            w.line(depth, f"o{k}[{w.offset(index, self.nest.space)}] = {w.stored(w.expression(v, env), v.dtype)};")

    def _place(self, p: Store, env: Env) -> str:
        return self.w.offset([self.w.index_text(i, env) for i in p.value.operands[1:]], p.shape)

    # -- steps that never meet

    def _apart(self, own: Sequence[int], threads: Size) -> list[str]:
        w, nest = self.w, self.nest
        w.lines = []
        depth = 1
        index = {}
        if own:
            w.thread("p", threads)
            index = dict(zip(own, w.unravel("p", [nest.space[a] for a in own], 1), strict=True))
        else:
            w.line(1, "if (threadIdx.x > 0) return;")
        for a, n in enumerate(nest.space):
            if a not in index:
                index[a] = w.new_index(n)
                w.line(depth, f"for ({w.index} {index[a]} = 0; {index[a]} < {w.size(n)}; ++{index[a]}) {{")
                depth += 1
        names = [index[a] for a in range(len(nest.space))]
        self._elements(step(w, nest.levels, names, depth), names, depth)
        for d in reversed(range(1, depth)):
            w.line(d, "}")
        return w.lines

    # -- blocks that have copies of the result

    def _split(self, name: str, width: int) -> Text:
        """Every block does a part of the steps, for a result of its own; then these are put together."""
        w, nest, index = self.w, self.nest, self.w.index
        (store,) = nest.stores
        n, count = product(store.shape), product(nest.space[: nest.rows])
        rows = product(store.shape[: nest.picked])
        parts = maximum(1, minimum(minimum(BLOCKS, floordiv(COPIES, maximum(1, n))), ceildiv(count, PART)))
        partial = Partial(store.kind, store.value.dtype, 0)
        w.fits[parts * n] = w.fits[(parts + 1) * ceildiv(count, parts)] = None
        w.lines = [f"  {partial.type} *copy = {partial.array} + {index}(blockIdx.x) * {w.size(n)};",
                   f"  for ({index} k = threadIdx.x; k < {w.size(n)}; k += {BLOCK})",
                   f"    copy[k] = {w.identity(partial.kind, partial.dtype)};"]
        self.copy = "copy"
        first = self._owned(rows, rows, width, ceildiv(count, parts))
        self.copy, w.lines = "", []
        (found,) = together(w, [partial], n, parts)
        before, made = held(w, store, "column"), w.fresh("t")
        w.line(1, f"const {partial.type} {made} = {w.combined(store.kind, before, found, store.value.dtype)};")
        w.line(1, f"o{store.result}[column] = {w.stored(made, store.value.dtype)};")
        return w.launches([(f"{name}_copies", (parts, 1, 1), BLOCK, first),
                           (name, (ceildiv(n, ACROSS), 1, 1), TOGETHER, w.lines)], [parts * n * partial.nbytes])

    # -- blocks that own rows

    def _owned(self, rows: Size, each: Size, width: int, part: Size | None = None) -> list[str]:
        """Loop of a block over all steps, or over a ``part`` of them, for the rows that it owns."""
        w, nest, index = self.w, self.nest, self.w.index
        if part is None:
            w.lines = []
        items, inner = nest.space[: nest.rows], nest.space[nest.rows :]
        count, long, warps = product(items), BLOCK * LOOKS, BLOCK // WARP
        start = "0" if part is None else f"{index}(blockIdx.x) * {w.size(part)}"
        end = w.size(count) if part is None else f"min({w.size(count)}, from + {w.size(part)})"
        for name, limit in (("item", count), ("row", rows), ("column", product(inner)), ("own", rows)):
            w.is_index(name, limit)
        w.lines += [
            f"  __shared__ int counts[{LOOKS * warps}];",
            f"  __shared__ {index} items[{long}], places[{long}];",
            f"  const {index} begin = {f'{index}(blockIdx.x) * {w.size(each)}' if part is None else '0'};",
            f"  const {index} end = min({w.size(rows)}, begin + {w.size(each)});",
            f"  const {index} from = {start};",
            f"  const {index} last = {end};",
            f"  const int warp = threadIdx.x / {WARP}, lane = threadIdx.x % {WARP};",
            f"  for ({index} base = from; base < last; base += {long}) {{"]
        self._look(items, inner)
        w.lines += [
            "    for (int n = 0; n < total; ++n) {",
            f"      const {index} item = items[n], row = places[n];",
            f"      if ((row - begin) % {BLOCK // width} != threadIdx.x / {width}) continue;"]
        at = w.unravel("item", items, 3)
        columns = w.size(product(inner))
        w.line(3, f"for ({index} column = threadIdx.x % {width}; column < {columns}; column += {width}) {{")
        whole = [*at, *w.unravel("column", inner, 4)]
        self._elements(step(w, nest.levels, whole, 4), whole, 4)
        w.lines += ["      }", "    }", "    __syncthreads();", "  }"]
        return w.lines

    def _look(self, items: Sequence[Size], inner: Sequence[Size]) -> None:
        """Write the list of the next steps that name rows of the block, in order."""
        w, nest, index, warps = self.w, self.nest, self.w.index, BLOCK // WARP
        w.lines += [
            f"    {index} place[{LOOKS}];",
            f"    unsigned found[{LOOKS}];",
            "    #pragma unroll",
            f"    for (int k = 0; k < {LOOKS}; ++k) {{",
            f"      const {index} item = base + k * {BLOCK} + threadIdx.x;",
            "      place[k] = -1;",
            "      if (item < last) {"]
        (store,) = nest.stores
        at = w.unravel("item", items, 4)
        env = step(w, nest.levels, [*at, *["0"] * len(inner)], 4)
        head = [w.index_text(i, env) for i in store.value.operands[1 : 1 + nest.picked]]
        w.lines += [
            f"        place[k] = {w.offset(head, store.shape[: nest.picked])};",
            "      }",
            "      found[k] = __ballot_sync(0xffffffffu, place[k] >= begin && place[k] < end);",
            f"      if (lane == 0) counts[k * {warps} + warp] = __popc(found[k]);",
            "    }",
            "    __syncthreads();",
            "    int total = 0;",
            "    #pragma unroll",
            f"    for (int k = 0; k < {LOOKS * warps}; ++k) {{",
            f"      const int mine = k / {warps};",
            f"      if (k % {warps} == warp && (found[mine] >> lane & 1)) {{",
            "        const int n = total + __popc(found[mine] & ((1u << lane) - 1));",
            f"        items[n] = base + mine * {BLOCK} + threadIdx.x;",
            "        places[n] = place[mine];",
            "      }",
            "      total += counts[k];",
            "    }",
            "    __syncthreads();"]
        self.looked = sorted({int(k) for line in needed(w.lines) for k in re.findall(r"\ba(\d+)\[", line)})


def owners(width: int) -> int:
    """The number of blocks that own rows of so many columns: each more reads all numbers once more (8 bytes at 4.3
    TB/s), and takes its part of the updates, which wait for memory (0.8 us) one after another."""
    return max(64, min(BLOCKS, math.isqrt(1680 * width)))


def _atomic_type(p: Store) -> str:
    """The type in which CUDA has atomics for these integers. Sums are the same in an unsigned one."""
    long = p.value.dtype.itemsize == 8
    if p.kind == "add" or p.value.dtype.kind == "u":
        return "u64" if long else "u32"
    return "i64" if long else "i32"
