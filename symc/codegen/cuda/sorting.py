"""Sorting of any length: tiles in shared memory, then runs merged in pairs, a launch for each doubling.

Every element finds its own place: how far it is in its run, and how many of the run beside it come before it, by
bisection; of equals those of the left run come first, so sorts are stable. Lines along other axes than the last are
read with a stride once and written with it once; between, every line lies together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symc.codegen.cuda import cxx
from symc.codegen.cuda.indices import NARROW
from symc.codegen.cuda.source import Argument, CudaSource, Entry
from symc.codegen.kernel.scalarize import Loops
from symc.codegen.kernel.source import Form
from symc.ir.dim import Size, ceildiv, product
from symc.ir.dtypes import RECORDS, is_narrow
from symc.ir.op import Sorting
from symc.ir.traverse import close_over
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input, make

#: Elements that a block sorts in shared memory; threads of a block.
TILE, THREADS = 1024, 256

_TEXT = """
typedef {key} {name}_key;
SYMC_FUNCTION bool {name}_before({name}_key x, {name}_key y) {{
  const auto a = {a}, b = {b};
  return a < b || (b != b && a == a);
}}
// How many of a run come before x: those equal to it do if it is from the run on the right.
template <class I> SYMC_FUNCTION I {name}_rank(const {name}_key *run, I count, {name}_key x, bool right) {{
  I low = 0, high = count;
  while (low < high) {{
    const I middle = low + (high - low) / 2;
    const bool further = right ? !{name}_before(x, run[middle]) : {name}_before(run[middle], x);
    low = further ? middle + 1 : low;
    high = further ? high : middle;
  }}
  return low;
}}
// Where element i goes when runs of a length are merged in pairs.
template <class I> SYMC_FUNCTION I {name}_place(const {name}_key *line, I i, I run, I n) {{
  const I start = i & ~(run - 1);
  if (start & run) return i - run + {name}_rank(line + (start - run), run, line[i], true);
  const I beside = start + run;
  const I count = beside >= n ? 0 : n - beside < run ? n - beside : run;
  return i + {name}_rank(line + beside, count, line[i], false);
}}
// Sort a tile of a line: to where the next launch finds it, or as the result.
extern "C" __global__ void __launch_bounds__({threads}) {name}_tiles({parameters}) {{
  __shared__ {name}_key keys[2][{tile}];
  __shared__ i32 places[2][{places}];
  const {index} tiles = (n + {tile} - 1) / {tile}, block = blockIdx.x;
  const {index} number = block / tiles, first = (block - number * tiles) * {tile};
  const {index} from = (number / inner) * n * inner + number % inner;
  const i32 count = n - first < {tile} ? i32(n - first) : {tile};
  for (i32 i = threadIdx.x; i < count; i += {threads}) {{
    keys[0][i] = a0[from + (first + i) * inner];
    if ({argsort}) places[0][i] = i;
  }}
  __syncthreads();
  i32 now = 0;
  for (i32 run = 1; run < count; run *= 2) {{
    for (i32 i = threadIdx.x; i < count; i += {threads}) {{
      const i32 to = {name}_place(keys[now], i, run, count);
      keys[1 - now][to] = keys[now][i];
      if ({argsort}) places[1 - now][to] = places[now][i];
    }}
    __syncthreads();
    now = 1 - now;
  }}
  for (i32 i = threadIdx.x; i < count; i += {threads}) {{
    const {index} p = first + i;
    {tile_out}
  }}
}}
"""
_MERGE = """
extern "C" __global__ void __launch_bounds__({threads}) {name}_merge{k}({parameters}) {{
  const {index} p = {index}(blockIdx.x) * {threads} + threadIdx.x;
  if (p >= n * lines) return;
  const {index} number = p / n, i = p - number * n, line = number * n;
  const {index} from = (number / inner) * n * inner + number % inner;
  const {index} to = {name}_place(keys{now} + line, i, {index}({run}), n);
  {out}
}}
"""


class Sort:
    """The variants of a sort: how many doublings it takes, and indices of 32 or 64 bits."""

    def __init__(self, v: Value):
        (x,) = v.operands
        assert isinstance(x.type, TensorType) and isinstance(v.op.lowering, Sorting)
        self.operand, self.places = x.type, v.op.lowering.places
        self.axis: int = v.attrs["axis"]
        shape = x.type.shape
        self.n, self.inner = shape[self.axis], product(shape[self.axis + 1 :])
        self.lines = product(shape[: self.axis]) * self.inner
        self.sources: dict[tuple[str, str], CudaSource] = {}

    def choose(self, number: Callable[[Size], int]) -> str:
        tiles = -(-number(self.n) // TILE)
        wide = number(product(self.operand.shape)) >= NARROW
        return f"{max(0, tiles - 1).bit_length()}_doublings{'_wide' * wide}"

    def source(self, choice: str, name: str) -> CudaSource:
        key = choice, name
        if key not in self.sources:
            doublings, *words = choice.split("_")
            self.sources[key] = self._source(int(doublings), "i64" if "wide" in words else "i32", name)
        return self.sources[key]

    def _source(self, doublings: int, index: str, name: str) -> CudaSource:
        dtype = self.operand.dtype
        stored = RECORDS[dtype].memory
        arguments, parameters = self._arguments(doublings, index, stored)
        decoded = RECORDS[dtype].loaded if is_narrow(dtype) else "{}"
        helpers: dict[str, None] = {}
        cxx.expression(decoded.format("x"), helpers)  # adds what it calls
        words = dict(name=name, key=stored, index=index, threads=THREADS, tile=TILE, parameters=parameters,
                     a=decoded.format("x"), b=decoded.format("y"), places=TILE if self.places else 1,
                     argsort=str(self.places).lower())
        texts = [_TEXT.format(**words, tile_out=self._out("first + ", "keys[now][i]", "places[now][i]", "p", 0,
                                                          doublings))]
        total = product(self.operand.shape)
        entries = [Entry(f"{name}_tiles", arguments, (ceildiv(self.n, TILE) * self.lines, 1, 1), THREADS)]
        for k in range(doublings):
            out = self._out("", f"keys{k % 2}[line + i]", f"places{k % 2}[line + i]", "to", k + 1, doublings)
            texts.append(_MERGE.format(**words, k=k, run=TILE << k, now=k % 2, out=out))
            entries.append(Entry(f"{name}_merge{k}", arguments, (ceildiv(total, THREADS), 1, 1), THREADS))
        result = np.dtype(np.int64) if self.places else dtype
        scratch = [total * dtype.itemsize] * min(doublings, 2)
        scratch += [total * (8 if index == "i64" else 4)] * min(doublings, 2) * self.places
        return CudaSource("".join(texts), tuple(helpers), tuple(entries), (dtype,), (result,), tuple(scratch),
                          wide=index == "i64")

    def _out(self, offset: str, key: str, place: str, to: str, launch: int, doublings: int) -> str:
        """Code of what a launch writes: the result, if it is the last."""
        if launch == doublings:
            value = f"{offset}{place}" if self.places else key
            return f"o0[from + {to} * inner] = {value};"
        line = "number * n" if launch == 0 else "line"
        texts = [f"keys{launch % 2}[{line} + {to}] = {key};"]
        if self.places:
            texts.append(f"places{launch % 2}[{line} + {to}] = {offset}{place};")
        return " ".join(texts)

    def _arguments(self, doublings: int, index: str, stored: str) -> tuple[tuple[Argument, ...], str]:
        result = "i64" if self.places else stored
        kept = range(min(doublings, 2))
        found = [(Argument("size", size=s), f"const {index} {n}")
                 for n, s in (("n", self.n), ("inner", self.inner), ("lines", self.lines))]
        found.append((Argument("operand", 0), f"const {stored} *a0"))  # the result may lie in its memory
        found.append((Argument("result", 0), f"{result} *o0"))
        found += [(Argument("scratch", k), f"{stored} *keys{k}") for k in kept]
        found += [(Argument("scratch", len(kept) + k), f"{index} *places{k}") for k in kept if self.places]
        return tuple(a for a, _ in found), ", ".join(text for _, text in found)


def sort_form(v: Value) -> Form:
    """The kernel of a sort that a plan calls."""
    given = [fresh_input(o.type) for o in v.operands]
    return close_over(given, [make(v.op, given, v.attrs)]), ()


def is_sort(v: Value) -> bool:
    """True if an op sorts."""
    return isinstance(v.op.lowering, Sorting)


def sorting(form: Form, loops: Loops) -> Sort | None:
    """The variants of a sort of an operand; None for another kernel."""
    region, _ = form
    (v, *others) = region.results
    if others or not is_sort(v) or v.operands[0].op.name != "param":
        return None
    return Sort(v)
