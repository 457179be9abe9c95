"""Elementwise kernels that read an operand across its rows: square tiles of it go through shared memory.

A tile is 32 by 32 elements. It is read along its rows and used down its columns, so that the memory of the device is
read and written in whole sectors on both sides; a row of the tile has one element more, so that a column does not lie
in one bank. Everything else is read where it is used, as in ``flat.py``, which also does what is too narrow for tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from symc.codegen.cuda.flat import Flat, flat
from symc.codegen.cuda.nests import emit_ready, params_of
from symc.codegen.cuda.source import WARP
from symc.codegen.cuda.writer import BLOCK, Env, Kernel, Text, Variants, Writer, storage
from symc.ir.dim import Size, ceildiv, product
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Value

#: Below so many elements along one side, tiles are mostly empty.
NARROW_SIDE = 16
#: So many operands go through shared memory, at most.
MOST_TILES = 4


def transposed(kernel: Kernel) -> Transposed | None:
    """The variants of an elementwise kernel that reads across rows; None for another."""
    found = flat(kernel)
    if found is None or len(found.shape) < 2:
        return None
    across = [v for v in found.loads if _axis(found, v) is not None]
    if not across:
        return None
    axis = _axis(found, across[0])
    tiled = [v for v in across if _axis(found, v) == axis]
    return Transposed(found, axis, tiled) if axis is not None and len(tiled) <= MOST_TILES else None


def _axis(of: Flat, v: Value) -> int | None:
    """The axis of the space that runs along the rows of an operand whose columns the last axis runs down."""
    if len(v.operands) < 3:
        return None
    *before, last = v.operands[1:]
    if last not in of.index[:-1] or before.count(of.index[-1]) != 1:
        return None
    rest = [i for i in before if i is not of.index[-1]]
    steady = set(of.index) - {of.index[-1], last}
    known = all(i in steady or i.op.name in ("constant", "size") for i in rest)
    return of.index.index(last) if known else None


class Transposed(Variants):
    """``axis``: the axis along whose rows the operands of ``tiled`` are read."""

    def __init__(self, of: Flat, axis: int, tiled: list[Value]):
        self.flat, self.axis, self.tiled = of, axis, tiled

    def choose(self, number: Callable[[Size], int]) -> str:
        sides = number(self.flat.shape[-1]), number(self.flat.shape[self.axis])
        return self.flat.choose(number) if min(sides) < NARROW_SIDE else self.chosen("tiles", number)

    def write(self, words: Sequence[str], name: str) -> Text:
        return self._write("wide" in words, name) if words[0] == "tiles" else self.flat.text("_".join(words), name)

    def _write(self, wide: bool, name: str) -> Text:
        of = self.flat
        w = Writer(of.kernel, "i64" if wide else "i32")
        rest = [a for a in range(len(of.shape) - 1) if a != self.axis]
        counts = [*[of.shape[a] for a in rest], ceildiv(of.shape[self.axis], WARP), ceildiv(of.shape[-1], WARP)]
        w.is_index("block", product(counts))
        w.is_index("fast", of.shape[-1])
        w.is_index("slow", of.shape[self.axis])
        w.line(1, f"const {w.index} block = blockIdx.x;")
        *outer, slow, fast = w.unravel("block", counts, 1)
        index = {of.index[a]: name for a, name in zip(rest, outer, strict=True)}
        index |= {of.index[-1]: "fast", of.index[self.axis]: "slow"}
        env = params_of(of.kernel.loops.region)
        emit_ready(w, of.kernel.loops.region, env, 1)
        captured = region_params(of.region)[len(of.shape) :]
        scope: Env = dict(zip(captured, [env.get(o) or w.expression(o, env) for o in of.nest.operands], strict=True))
        scope |= index
        w.line(1, f"const int x = threadIdx.x % {WARP}, y = threadIdx.x / {WARP};")
        for k, v in enumerate(self.tiled):
            w.line(1, f"__shared__ {storage(v.dtype)} tile{k}[{WARP}][{WARP + 1}];")
        with self._each_row(w, fast, slow, "fast", "slow"):
            for k, v in enumerate(self.tiled):
                w.line(3, f"tile{k}[y + k][x] = {scope[v.operands[0]]}[{w.address(v, scope)}];")
        w.line(1, "__syncthreads();")
        with self._each_row(w, slow, fast, "slow", "fast"):
            for k, v in enumerate(self.tiled):
                w.line(3, f"const {storage(v.dtype)} x{k} = tile{k}[x][y + k];")
                scope[v] = w.read(f"x{k}", v.dtype)
            w.emit(postorder(of.region.results), scope, 3)
            at = w.offset([scope[i] for i in of.index], of.shape)
            w.line(3, f"const {w.index} at = {at};")
            for k, r in enumerate(of.region.results):
                w.line(3, f"*({of.place(w, k, 'at')}) = {w.stored(w.expression(r, scope), r.dtype)};")
        return w.launches([(name, (product(counts), 1, 1), BLOCK, w.lines)])

    @contextmanager
    def _each_row(self, w: Writer, down: str, along: str, down_name: str, along_name: str) -> Iterator[None]:
        """Write the loop over the rows of a tile, one for each row of threads."""
        sides = {"fast": self.flat.shape[-1], "slow": self.flat.shape[self.axis]}
        w.line(1, "#pragma unroll")
        with w.block(1, f"for (int k = 0; k < {WARP}; k += {BLOCK // WARP})"):
            w.line(2, f"const {w.index} {down_name} = {down} * {WARP} + y + k, {along_name} = {along} * {WARP} + x;")
            inside = [f"{name} < {w.size(sides[name])}" for name in (down_name, along_name)]
            with w.block(2, f"if ({' && '.join(inside)})"):
                yield
