"""Folds down columns: a thread has a vector of neighbouring columns and goes down the rows.

A block is 32 threads wide and 8 high: each of its rows of threads takes every eighth row, and what they have found is
combined in shared memory. Where there are few columns, the rows are cut in parts, one for each block along y, whose
partial results are put together by a second launch. What else is computed of each element (the gradient beside the
gradient of a bias) is written on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.codegen.cpu.folds import fold_parts
from symc.codegen.cpu.text import rounded
from symc.codegen.cuda.nests import Rows, depending, emit_ready, enter, is_heavy, params_of, rows_of
from symc.codegen.cuda.partials import ACROSS, TOGETHER, Partial, parts, together
from symc.codegen.cuda.row_text import Line
from symc.codegen.cuda.source import WARP
from symc.codegen.cuda.vectors import VECTORS, vector_type
from symc.codegen.cuda.writer import BLOCK, VECTOR, Env, Kernel, Text, Variants, Writer, scalar_type, storage
from symc.ir.dim import Size, ceildiv
from symc.ir.dtypes import is_narrow
from symc.ir.ops.reduce import gives_place
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Value

#: Up to so many rows, a block does all of them.
FEW_ROWS = 128
#: Rows of threads in a block.
HIGH = BLOCK // WARP


def columns(kernel: Kernel) -> Columns | None:
    """The variants of a kernel that folds columns; None for another."""
    if not kernel.loops.columns or kernel.loops.starts or kernel.is_complex:
        return None
    found = rows_of(kernel)
    if found is None or len(found.levels) != 1 or not found.outer or not all(o.is_row for o in found.outs):
        return None
    kinds = {k for m in found.members for k, _ in fold_parts(m)}
    if any(map(gives_place, kinds)) or any(m.attrs.get("keeps") for m in found.members):
        return None
    return Columns(kernel, found)


class Columns(Variants):
    """``rows``: the columns as the outer loop, the rows as the inner one."""

    def __init__(self, kernel: Kernel, rows: Rows):
        self.kernel, self.rows = kernel, rows
        self.last = depending(rows.region, region_params(rows.region)[len(rows.outer) - 1 : len(rows.outer)])
        lines = [v for m in rows.members for v in self.lines(m)]
        widest = max([v.dtype.itemsize for v in lines], default=VECTOR)
        self.vector = 1 if is_heavy(kernel.loops.region) else VECTOR // widest

    def lines(self, m: Value) -> dict[Value, Line]:
        """The loads of a fold that read along the columns."""
        (region,) = m.regions
        params, rank = region_params(region), len(self.rows.inner)
        outside = dict(zip(params[rank:], m.operands, strict=True))
        column = region_params(self.rows.region)[len(self.rows.outer) - 1]
        found = {}
        for v in postorder(region.results):
            if v.op.name != "load" or v.operands[0] not in outside or len(v.operands) == 1:
                continue
            *before, last = v.operands[1:]
            apart = all(i in params[:rank] or i in outside and outside[i] not in self.last
                        or i.op.name in ("constant", "size") for i in before)
            if outside.get(last) is column and apart and v.operands[0].shape[-1] == self.rows.outer[-1]:
                found[v] = Line(outside[v.operands[0]], tuple(before))
        return found

    def choose(self, number: Callable[[Size], int]) -> str:
        vector = self.vector if number(self.rows.outer[-1]) % self.vector == 0 else 1
        split = number(self.parts(vector)) > 1
        if split and number(self.rows.length) <= FEW_ROWS:  # one launch of narrow blocks takes less time than two
            split, vector = False, 1
        return self.chosen(f"v{vector}" + "_split" * split, number)

    def parts(self, vector: int) -> Size:
        return parts(self.rows.length, ceildiv(self.rows.count, WARP * vector))

    def write(self, words: Sequence[str], name: str) -> Text:
        return _Text(self, int(words[0][1:]), "split" in words, "wide" in words).source(name)


class _Text:
    """Writes one variant."""

    def __init__(self, of: Columns, vector: int, split: bool, wide: bool):
        self.of, self.rows, self.vector, self.split = of, of.rows, vector, split
        self.w = Writer(of.kernel, "i64" if wide else "i32")
        self.parts = of.parts(vector) if split else 1
        self.partials: dict[Value, list[Partial]] = {}
        for m in of.rows.members:
            first = sum(map(len, self.partials.values()))
            self.partials[m] = [Partial(k, t.dtype, first + n) for n, (k, t) in enumerate(fold_parts(m))]

    def source(self, name: str) -> Text:
        w, rows = self.w, self.rows
        w.parts[VECTORS] = None
        grid = (ceildiv(rows.count, WARP * self.vector), self.parts, 1)
        entries: list[tuple[str, tuple[Size, Size, Size], int, list[str]]] = []
        if not self.split:
            entries.append((name, grid, BLOCK, self._whole()))
        else:
            for n, members in enumerate(rows.passes):
                last = n == len(rows.passes) - 1
                entries.append((f"{name}_rows{n}", grid, BLOCK, self._partial(members)))
                end = (ceildiv(rows.count, ACROSS), 1, 1)
                entries.append((f"{name}_parts{n}", end, TOGETHER, self._together(members, last)))
        scratch = [p.nbytes * self.parts * rows.count for m in rows.members for p in self.partials[m]]
        return w.launches(entries, *((scratch,) if self.split else ((), ((-1, len(rows.passes)),))))

    # -- entries

    def _start(self) -> Env:
        """Declarations of what every thread knows: its columns, and numbers that are the same everywhere."""
        w, rows = self.w, self.rows
        w.lines = []
        w.is_index("column", rows.count)
        w.line(1, f"const {w.index} high = threadIdx.x / {WARP};")
        w.line(1, f"const {w.index} column = ({w.index}(blockIdx.x) * {WARP} + threadIdx.x % {WARP}) * {self.vector};")
        w.line(1, f"const bool live = column < {w.size(rows.count)};")
        env = params_of(self.of.kernel.loops.region)
        emit_ready(w, self.of.kernel.loops.region, env, 1)
        return env

    def _whole(self) -> list[str]:
        """All passes, by the threads of a block that have the same columns."""
        w = self.w
        env = self._start()
        done: dict[Value, list[str]] = {}
        for members in self.rows.passes:
            self._fold(members, env, done, "0", "1")
            self._down(members, done)
        with w.block(1, "if (high == 0 && live)"):
            self._store(env, done, self.vector, 2)
        return w.lines

    def _partial(self, members: Sequence[Value]) -> list[str]:
        """The folds of one pass over a part of the rows."""
        w = self.w
        env = self._start()
        done = self._known(members)
        self._fold(members, env, done, f"{w.index}(blockIdx.y)", f"{w.index}(gridDim.y)")
        self._down(members, done)
        with w.block(1, "if (high == 0 && live)"):
            for m in members:
                for p, name in zip(self.partials[m], done[m], strict=True):
                    at = f"{w.index}(blockIdx.y) * {w.size(self.rows.count)} + column"
                    w.line(2, f"store_array<{self.vector}>({p.array} + {at}, {name});")
        return w.lines

    def _known(self, members: Sequence[Value]) -> dict[Value, list[str]]:
        """Results of earlier passes: these is where the first part's partial results were."""
        w, found = self.w, {}
        for before in self.rows.passes[: self.rows.passes.index(tuple(members))]:
            for m in before:
                found[m] = [w.fresh("s") for _ in self.partials[m]]
                for p, name in zip(self.partials[m], found[m], strict=True):
                    w.line(1, f"{p.type} {name}[{self.vector}];")
                    w.each(1, "e", self.vector, f"{name}[e] = live ? {p.array}[column + e] : {p.type}(0);")
        return found

    def _together(self, members: Sequence[Value], last: bool) -> list[str]:
        """Put the partial results of a column together; after the last pass, make the results of it."""
        w, rows = self.w, self.rows
        w.lines = []
        found = [p for m in members for p in self.partials[m]]
        names = together(w, found, rows.count, self.parts)
        if not last:
            for p, name in zip(found, names, strict=True):
                w.line(1, f"{p.array}[column] = {name};")
            return w.lines
        env = params_of(self.of.kernel.loops.region)
        emit_ready(w, self.of.kernel.loops.region, env, 1)
        done: dict[Value, list[str]] = {}
        for m in rows.members:
            own = [f"{p.array}[column]" for p in self.partials[m]]
            done[m] = [names[found.index(p)] if p in found else text for p, text in
                       zip(self.partials[m], own, strict=True)]
        self._store(env, done, 0, 1)
        return w.lines

    # -- columns

    def _column(self, env: Env, done: dict[Value, list[str]], element: str, depth: int) -> Env:
        """The scope of one column. ``element``: its number among those of the thread, "" for the first."""
        w, rows = self.w, self.rows
        position = "column"
        if element:
            position = w.new_index(rows.count, "k")
            w.line(depth, f"const {w.index} {position} = column + {element};")
        (level,) = rows.levels
        scope = enter(w, level, w.unravel(position, rows.outer, depth), env)
        for m, names in done.items():
            texts = []
            for name, p in zip(names, self.partials[m], strict=True):
                text = f"{name}[{element or 0}]" if name in self.arrays else name
                texts.append(w.cxx(rounded(self._named(text, p, depth), p.dtype)) if is_narrow(p.dtype) else text)
            if len(texts) == 1:
                scope[m] = texts[0]
            else:
                scope.update({m[k]: text for k, text in enumerate(texts)})
        emit_ready(w, rows.region, scope, depth)
        return scope

    def _named(self, text: str, p: Partial, depth: int) -> str:
        name = self.w.fresh("t")
        self.w.line(depth, f"const {p.type} {name} = {text};")
        return name

    @property
    def arrays(self) -> set[str]:
        """The names of accumulators of several columns."""
        return self.__dict__.setdefault("_arrays", set())

    def _fold(self, members: Sequence[Value], env: Env, done: dict[Value, list[str]], first: str, of: str) -> None:
        """Write the loop down the rows, or every ``of``-th group of them from the ``first`` on."""
        w, rows, vector = self.w, self.rows, self.vector
        self.arrays.update(name for names in done.values() for name in names)
        names = {m: [w.fresh("s") for _ in self.partials[m]] for m in members}
        for m in members:
            for p, name in zip(self.partials[m], names[m], strict=True):
                w.line(1, f"{p.type} {name}[{vector}];")
                w.each(1, "e", vector, f"{name}[e] = {w.identity(p.kind, p.dtype)};")
        w.line(1, "if (live) {")
        whole = self._column(env, done, "", 2)
        r = w.new_index(rows.length, "r")
        w.line(2, "#pragma unroll 4")
        start = f"{first} * {HIGH} + high" if first != "0" else "high"
        w.line(2, f"for ({w.index} {r} = {start}; {r} < {w.size(rows.length)}; {r} += {of} * {HIGH}) {{")
        index = w.unravel(r, rows.inner, 3)
        local: dict[Line, str] = {}
        for m in members:
            scope = self._inside(m, index, whole)
            for v, line in self.of.lines(m).items():
                if line not in local:
                    local[line] = w.fresh("z")
                    at = w.offset([w.index_text(i, scope) for i in v.operands[1:]], v.operands[0].shape)
                    w.line(3, f"{vector_type(storage(v.dtype), vector)} {local[line]}; "
                              f"load_vector({local[line]}, {scope[v.operands[0]]} + {at});")
        with w.loop(3, "e", vector):
            own = self._column(env, done, "e", 4)
            for m in members:
                scope = self._inside(m, index, own)
                for v, line in self.of.lines(m).items():
                    scope[v] = w.fresh("t")
                    w.line(4, f"const {scalar_type(v.dtype)} {scope[v]} = {w.read(f'{local[line]}.at[e]', v.dtype)};")
                w.emit(postorder(m.regions[0].results), scope, 4)
                for p, name, x in zip(self.partials[m], names[m], m.regions[0].results, strict=True):
                    w.line(4, f"{name}[e] = {w.combined(p.kind, f'{name}[e]', w.expression(x, scope), p.dtype)};")
        w.line(2, "}")
        w.line(1, "}")
        done.update(names)
        self.arrays.update(name for n in names.values() for name in n)

    def _inside(self, m: Value, index: Sequence[str], scope: Env) -> Env:
        w = self.w
        seen = [scope[o] if o in scope else w.expression(o, scope) for o in m.operands]
        return dict(zip(region_params(m.regions[0]), [*index, *seen], strict=True))

    def _down(self, members: Sequence[Value], done: dict[Value, list[str]]) -> None:
        """Combine what the rows of threads have; all of them have the outcome."""
        w, vector = self.w, self.vector
        found = [(p, name) for m in members for p, name in zip(self.partials[m], done[m], strict=True)]
        at = f"[threadIdx.x % {WARP} + e * {WARP}]"
        for p, name in found:
            w.line(1, f"__shared__ {p.type} {name}part[{HIGH}][{WARP * vector}];")
            w.each(1, "e", vector, f"{name}part[high]{at} = {name}[e];")
        w.line(1, "__syncthreads();")
        for p, name in found:
            with w.loop(1, "e", vector):
                w.line(2, f"{name}[e] = {name}part[0]{at};")
                other = w.combined(p.kind, f"{name}[e]", f"{name}part[h]{at}", p.dtype)
                w.each(2, "h", HIGH, f"{name}[e] = {other};", first=1)

    def _store(self, env: Env, done: dict[Value, list[str]], vector: int, depth: int) -> None:
        """Write the results of the columns of a thread."""
        w, outs = self.w, self.rows.outs
        if not vector:
            scope = self._column(env, done, "", depth)
            for k, out in enumerate(outs):
                w.line(depth, f"o{k}[column] = {w.stored(w.expression(out.value, scope), out.value.dtype)};")
            return
        for k, out in enumerate(outs):
            w.line(depth, f"{storage(out.value.dtype)} y{k}[{vector}];")
        with w.loop(depth, "e", vector):
            scope = self._column(env, done, "e", depth + 1)
            for k, out in enumerate(outs):
                w.line(depth + 1, f"y{k}[e] = {w.stored(w.expression(out.value, scope), out.value.dtype)};")
        for k in range(len(outs)):
            w.line(depth, f"store_array<{vector}>(o{k} + column, y{k});")
