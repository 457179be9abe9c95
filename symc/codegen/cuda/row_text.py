"""The text of one row: its folds and its elements, by a group of threads that works on nothing else meanwhile.

A thread has some vectors of the row, one every so many elements. Where they fit into registers, what more than one
pass reads is read once, and so is what one pass keeps for a later one; else every pass reads it again. Partial results
of the threads are combined in pairs, by shuffles and, in groups of more than a warp, through shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symc.codegen.cpu.folds import fold_parts
from symc.codegen.cpu.text import rounded
from symc.codegen.cuda.nests import Rows, emit_ready
from symc.codegen.cuda.source import WARP
from symc.codegen.cuda.vectors import BETTER, SHUFFLE, VECTORS, vector_type
from symc.codegen.cuda.writer import VECTOR, Env, Writer, scalar_type, storage
from symc.ir.dtypes import is_narrow
from symc.ir.ops.kernel import projection
from symc.ir.ops.reduce import gives_place
from symc.ir.record import dataclass, field
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Value


@dataclass(frozen=True)
class Layout:
    """``threads`` work on a row, each on ``steps`` vectors of ``vector`` elements (0: on as many as there are).
    ``exact``: they are the whole row."""

    threads: int
    steps: int
    vector: int
    exact: bool = False

    @property
    def word(self) -> str:
        return f"{self.threads}x{self.steps}x{self.vector}{'e' if self.exact else ''}"

    @staticmethod
    def of(word: str) -> Layout:
        threads, steps, vector = map(int, word.rstrip("e").split("x"))
        return Layout(threads, steps, vector, word.endswith("e"))


@dataclass(frozen=True)
class Line:
    """Array that is read along a row, or what a fold has kept, at the indices ``before``. One that is a number is
    the index along that axis of the row: the row lies in pieces, which the last axis runs along."""

    array: Value
    before: tuple[Value | int, ...]


def lines_of(rows: Rows, member: Value) -> dict[Value, Line]:
    """The loads of a loop that read along the row, element by element."""
    (region,) = member.regions
    params, rank = region_params(region), len(rows.inner)
    index, outside = params[:rank], dict(zip(params[rank:], member.operands, strict=True))
    found = {}
    for v in postorder(region.results):
        if v.op.name != "load" or v.operands[0] not in outside or v.dtype.itemsize > VECTOR:
            continue
        array, places = outside[v.operands[0]], list(v.operands[1:])
        whole = places[len(places) - rank :] == index and array.shape[len(places) - rank :] == rows.inner
        if not whole and (places[-1:] != index[-1:] or array.shape[-1] != rows.inner[-1]):
            continue
        before = places[: len(places) - rank] if whole else places[:-1]
        if all(i in outside or i.op.name in ("constant", "size") or i in index[:-1] for i in before):
            found[v] = Line(array, tuple(index.index(i) if i in index else outside.get(i, i) for i in before))
    return found


@dataclass
class Accumulator:
    """The running value of one fold. ``at``: the place of what argmax or argmin has found, else ""."""

    kind: str
    dtype: np.dtype
    name: str
    at: str = ""


@dataclass
class RowText:
    """Writes rows. ``lane``: the number of a thread in its group; ``live``: whether its row is one, "" if it must be;
    ``columns``: what each result that is combined down the columns is collected in, by its number: registers, or
    memory where rows do not fit into registers; ``first``, ``step``: the first vector of a thread (where rows are in
    registers: of the group) and how far it is to the next, where other groups work on the row, too."""

    w: Writer
    rows: Rows
    layout: Layout
    lane: str
    live: str = ""
    columns: dict[int, str] = field(default_factory=dict)
    first: str = ""
    step: str = ""
    kept: dict[Line, str] = field(default_factory=dict)  # lines in registers
    hosts: dict[Value, tuple[str, str]] = field(default_factory=dict)  # lines that were kept in the row of a result

    def write(self, scope: Env, row: str, depth: int) -> None:
        """Write all of a row. ``scope``: what its region sees."""
        w = self.w
        w.parts[VECTORS] = None
        again = self._read_again()
        for n, members in enumerate(self.rows.passes):
            emit_ready(w, self.rows.region, scope, depth)
            for line in again:
                if line not in self.kept and (n == 0 or any(line in self._lines(m).values() for m in members)):
                    self._keep(line, scope, depth)
            for m, (accumulators, kept) in self.pass_over(members, scope, row, depth).items():
                self.bind(m, accumulators, kept, scope, depth)
        emit_ready(w, self.rows.region, scope, depth)
        if w.kernel.aliased and (self.live or self.layout.threads > 1) and any(out.is_row for out in self.rows.outs):
            # One thread writes where all may have read, also those that have no row of their own.
            w.line(depth, "__syncthreads();" if self.live or self.layout.threads > WARP else "__syncwarp();")
        self.store_rows(scope, row, depth)

    def store_rows(self, scope: Env, row: str, depth: int) -> None:
        """Write the results that are one number for a row."""
        w = self.w
        emit_ready(w, self.rows.region, scope, depth)
        for k, out in enumerate(self.rows.outs):
            if out.is_row:
                first = f"{self.lane} == 0" + (f" && {self.live}" if self.live else "")
                text = w.stored(w.expression(out.value, scope), out.value.dtype)
                w.line(depth, f"if ({first}) o{k}[{w.place(row)}] = {text};")

    def _lines(self, member: Value) -> dict[Value, Line]:
        return lines_of(self.rows, member)

    def _read_again(self) -> list[Line]:
        """The lines that more than one pass reads."""
        if not self.layout.steps:
            return []
        counts: dict[Line, int] = {}
        for members in self.rows.passes:
            for line in dict.fromkeys(line for m in members for line in self._lines(m).values()):
                counts[line] = counts.get(line, 0) + 1
        return [line for line, n in counts.items() if n > 1 and not _is_kept(line.array)]

    def _at(self, line: Line, scope: Env, j: str, depth: int) -> str:
        """Offset of element ``j`` of a row in a line."""
        w, rank = self.w, len(self.rows.inner)
        whole = len(line.before) + rank == len(line.array.shape)  # its last axes are those of the row
        if whole and not any(isinstance(i, int) for i in line.before):
            before = [w.index_text(i, scope) for i in line.before if not isinstance(i, int)]
            return f"{w.offset([*before, *['0'] * rank], line.array.shape)} + {j}"
        index = w.unravel(j, self.rows.inner, depth)
        texts = [index[i] if isinstance(i, int) else w.index_text(i, scope) for i in line.before]
        return w.offset([*texts, *(index if whole else index[-1:])], line.array.shape)

    def _keep(self, line: Line, scope: Env, depth: int) -> None:
        """Read a line into registers, if what it is read by is known."""
        if line.array not in scope or any(
                not isinstance(i, int) and i not in scope and i.op.name not in ("constant", "size")
                for i in line.before):
            return
        w, name = self.w, self.w.fresh("x")
        self.kept[line] = name
        w.line(depth, f"{vector_type(storage(line.array.dtype), self.layout.vector)} {name}[{self.layout.steps}];")
        with_index = self._open(depth)
        j, inner = next(with_index)
        w.line(inner, f"load_vector({name}[c], {scope[line.array]} + {self._at(line, scope, j, inner)});")
        next(with_index, None)

    # -- loops along the row

    def _open(self, depth: int) -> Iterator[tuple[str, int]]:
        """Write the head of a loop over the vectors of a thread, and then its end."""
        w, (threads, steps, vector) = self.w, (self.layout.threads, self.layout.steps, self.layout.vector)
        n, j = w.size(self.rows.length), w.new_index(self.rows.length, "j")
        if steps:
            w.each(depth, "c", steps)
            start = f"{self.first} + " * bool(self.first)
            w.line(depth + 1, f"const {w.index} {j} = {start}(c * {threads} + {self.lane}) * {vector};")
            tests = [t for t in (self.live, "" if self.layout.exact else f"{j} < {n}") if t]
            w.line(depth + 1, f"if ({' && '.join(tests)}) {{" if tests else "{")
            yield j, depth + 2
            w.line(depth + 1, "}")
        else:
            if self.live:
                n = f"({self.live} ? {n} : 0)"
            first, step = self.first or f"{self.lane} * {vector}", self.step or threads * vector
            w.line(depth, "#pragma unroll 4")
            w.line(depth, f"for ({w.index} {j} = {first}; {j} < {n}; {j} += {step}) {{")
            yield j, depth + 1
        w.line(depth, "}")

    def pass_over(self, members: Sequence[Value], scope: Env, row: str,
                  depth: int) -> dict[Value, tuple[list[Accumulator], list[str]]]:
        """Write the folds that come together, or the elements of all results. For each fold, what the thread has found
        and the names of what is kept."""
        w, steps, vector = self.w, self.layout.steps, self.layout.vector
        parts = {m: self.accumulators(m, depth) for m in members if m.op.name == "fold"}
        keeps = {m: self._kept_results(m, depth) for m in parts}
        loop = self._open(depth)
        j, inner = next(loop)
        local: dict[Line, str] = {}
        for line in dict.fromkeys(line for m in members for line in self._lines(m).values()):
            self._local(line, local, scope, row, j, inner)
        made = {m: self._results(m, inner) for m in members if m.op.name == "generate"}
        held = {m: [self._held(name, inner) for name in names] for m, names in keeps.items()} if not steps else {}
        with w.loop(inner, "e", vector):
            element = w.new_index(self.rows.length, "k")
            w.line(inner + 1, f"const {w.index} {element} = {j} + e;")
            index = w.unravel(element, self.rows.inner, inner + 1)
            for m in members:
                env = self._elements(m, index, scope, local, inner + 1)
                found = [r.operands[0] if r.op.name == "store" else r for r in m.regions[0].results]
                w.emit([v for v in postorder(m.regions[0].results) if v.op.name != "store"], env, inner + 1)
                texts = [w.expression(r, env) for r in found]
                if m in parts:
                    for a, text in zip(parts[m], texts, strict=False):
                        self.update(a, text, element, inner + 1)
                    for name, text in zip(held.get(m) or keeps[m], texts[len(parts[m]) :], strict=True):
                        w.line(inner + 1, f"{name}{'[c]' if steps else ''}.at[e] = {text};")
                else:
                    self._put(m, made[m], texts, found, element, inner + 1)
        for m, names in held.items():
            for k, name in zip(m.attrs.get("keeps", ()), names, strict=True):
                w.line(inner, f"store_vector(o{k} + {self._row_start(row)} + {j}, {name});")
        self._store(members, made, row, j, inner)
        next(loop, None)
        return {m: (parts[m], keeps[m]) for m in parts}

    def _row_start(self, row: str) -> str:
        return f"{self.w.place(row)} * {self.w.size(self.rows.length)}"

    def _local(self, line: Line, local: dict[Line, str], scope: Env, row: str, j: str, depth: int) -> None:
        """Read a vector of a line that is not in registers."""
        w, t = self.w, vector_type(storage(line.array.dtype), self.layout.vector)
        if line in self.kept:
            local[line] = f"{self.kept[line]}[c].at[e]"
        elif _is_kept(line.array) and self.layout.steps:
            local[line] = f"{scope[line.array]}[c].at[e]"
        else:
            kept = _is_kept(line.array)
            at = f"{self._row_start(row)} + {j}" if kept else self._at(line, scope, j, depth)
            name = w.fresh("z")
            w.line(depth, f"{t} {name}; load_vector({name}, {scope[line.array]} + {at});")
            local[line] = f"{name}.at[e]"

    def _elements(self, m: Value, index: Sequence[str], scope: Env, local: dict[Line, str], depth: int) -> Env:
        """Values of the params of a loop's region for one element."""
        w = self.w
        seen = [scope[o] if o in scope else w.expression(o, scope) for o in m.operands]
        env: Env = dict(zip(region_params(m.regions[0]), [*index, *seen], strict=True))
        for v, line in self._lines(m).items():
            env[v] = w.fresh("t")
            w.line(depth, f"const {scalar_type(v.dtype)} {env[v]} = {w.read(local[line], v.dtype)};")
        return env

    # -- results

    def _results(self, m: Value, depth: int) -> dict[int, str]:
        """Vectors for the results of a loop over elements, by their number in the kernel."""
        names = {}
        for k, out in enumerate(self.rows.outs):
            if out.value is m and not out.put:
                names[k] = self.w.fresh("y")
                t = storage(m.regions[0].results[out.number].dtype)
                self.w.line(depth, f"{vector_type(t, self.layout.vector)} {names[k]};")
        return names

    def _put(self, m: Value, made: dict[int, str], texts: Sequence[str], found: Sequence[Value],
             element: str, depth: int) -> None:
        w = self.w
        for k, out in enumerate(self.rows.outs):
            if out.value is m and out.put:
                now = f"{self.columns[k]}[c].at[e]" if self.layout.steps else f"{self.columns[k]}[{element}]"
                text = w.combined(out.put, now, texts[out.number], found[out.number].dtype)
                w.line(depth, f"{now} = {text};")
            elif k in made:
                text = w.stored(texts[out.number], found[out.number].dtype)
                w.line(depth, f"{made[k]}.at[e] = {text};")

    def _store(self, members: Sequence[Value], made: dict[Value, dict[int, str]], row: str, j: str,
               depth: int) -> None:
        for m in members:
            for k, name in made.get(m, {}).items():
                self.w.line(depth, f"store_vector(o{k} + {self._row_start(row)} + {j}, {name});")

    # -- folds

    def accumulators(self, m: Value, depth: int) -> list[Accumulator]:
        return [self._accumulator(k, t.dtype, depth) for k, t in fold_parts(m)]

    def _accumulator(self, kind: str, dtype: np.dtype, depth: int) -> Accumulator:
        w, name = self.w, self.w.fresh("s")
        if gives_place(kind):
            w.parts[BETTER] = None
            at = w.fresh("q")
            w.line(depth, f"{scalar_type(dtype)} {name} = {scalar_type(dtype)}(0); {w.index} {at} = -1;")
            return Accumulator(kind, dtype, name, at)
        w.line(depth, f"{scalar_type(dtype)} {name} = {w.identity(kind, dtype)};")
        return Accumulator(kind, dtype, name)

    def update(self, a: Accumulator, x: str, at: str, depth: int) -> None:
        w = self.w
        if a.at:
            better = f"finds_{a.kind[3:]}({a.name}, {a.at}, {x}, {at})"
            w.line(depth, f"if ({better}) {{ {a.name} = {x}; {a.at} = {at}; }}")
        else:
            w.line(depth, f"{a.name} = {w.combined(a.kind, a.name, x, a.dtype)};")

    def _kept_results(self, m: Value, depth: int) -> list[str]:
        """Registers for what a fold keeps, or the names of the results that hold it."""
        w, names = self.w, []
        for k, r in zip(m.attrs.get("keeps", ()), m.regions[0].results[len(m.attrs["kinds"]) :], strict=True):
            if self.layout.steps:
                names.append(w.fresh("x"))
                w.line(depth, f"{vector_type(storage(r.dtype), self.layout.vector)} {names[-1]}[{self.layout.steps}];")
            else:
                names.append(f"o{k}")
        return names

    def _held(self, name: str, depth: int) -> str:
        """A vector of what is kept in the memory of a result."""
        w = self.w
        t = storage(self.w.kernel.results[int(name[1:])].dtype)
        found = w.fresh("h")
        w.line(depth, f"{vector_type(t, self.layout.vector)} {found};")
        return found

    def bind(self, m: Value, accumulators: Sequence[Accumulator], kept: Sequence[str], scope: Env,
             depth: int) -> None:
        """Put together what the threads have found; from here on, the row's region sees it."""
        self.combine(accumulators, depth)
        names = [f"i64({a.at})" if a.at else a.name for a in accumulators]
        for k, a in enumerate(accumulators):
            if is_narrow(a.dtype) and not a.at:
                names[k] = self.w.fresh("t")
                self.w.line(depth, f"const {scalar_type(a.dtype)} {names[k]} = {self.w.cxx(rounded(a.name, a.dtype))};")
        names += kept
        if len(names) == 1:
            scope[m] = names[0]
        else:
            scope.update({m[k]: name for k, name in enumerate(names)})

    def combine(self, accumulators: Sequence[Accumulator], depth: int) -> None:
        """Put together what the threads of a group have; all of them have the outcome."""
        w, threads = self.w, self.layout.threads
        if threads > 1:
            w.parts[SHUFFLE] = None
        for a in accumulators:
            self._across(a, min(threads, WARP), depth)
        if threads <= WARP:
            return
        warps = threads // WARP
        for a in accumulators:
            for name, t in self.variables(a):
                w.line(depth, f"__shared__ {t} {name}part[{warps}];")
                w.line(depth, f"if (threadIdx.x % {WARP} == 0) {name}part[threadIdx.x / {WARP}] = {name};")
        w.line(depth, "__syncthreads();")
        for a in accumulators:
            for name, _ in self.variables(a):
                w.line(depth, f"{name} = {name}part[threadIdx.x % {warps}];")
            self._across(a, warps, depth)

    def variables(self, a: Accumulator) -> list[tuple[str, str]]:
        """The names and types of what a running value is."""
        own = [(a.name, scalar_type(a.dtype))]
        return [*own, (a.at, self.w.index)] if a.at else own

    def _across(self, a: Accumulator, lanes: int, depth: int) -> None:
        w = self.w
        if lanes == 1:
            return
        w.line(depth, "#pragma unroll")
        with w.block(depth, f"for (int bits = {lanes // 2}; bits > 0; bits /= 2)"):
            other = w.fresh("u")
            w.line(depth + 1, f"const {scalar_type(a.dtype)} {other} = across({a.name}, bits);")
            if a.at:
                at = w.fresh("u")
                w.line(depth + 1, f"const {w.index} {at} = across({a.at}, bits);")
                self.update(a, other, at, depth + 1)
            else:
                self.update(a, other, "", depth + 1)


def _is_kept(array: Value) -> bool:
    """True if a line is what a fold has kept."""
    return projection(array)[0].op.name == "fold"


def widest(rows: Rows) -> int:
    """Bytes of the greatest element that is read or written in vectors."""
    sizes = [v.dtype.itemsize for m in rows.members for v in lines_of(rows, m)]
    sizes += [r.dtype.itemsize for m in rows.members if m.op.name == "generate" for r in m.regions[0].results]
    return max(sizes, default=VECTOR)
