"""Running sums: every element combined with all before it along an axis.

Down columns a thread goes through a column, as loops do, or where there are few through a part of it. Along rows a
warp takes 32 elements at a time, or a block 256 where there are few rows: pairs, then fours, and so on, and what came
before. Rows that are long and few are cut in parts: one launch sums each, one adds up what comes before each, one
makes the results. ``linear`` recurrences (a x + b) are combined as functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.codegen.cuda.source import WARP
from symc.codegen.cuda.store_places import levels_of, step
from symc.codegen.cuda.vectors import SHUFFLE
from symc.codegen.cuda.writer import BLOCK, Env, Kernel, Text, Variants, Writer, scalar_type
from symc.ir.dim import Size, ceildiv, floordiv, product
from symc.ir.dtypes import computed
from symc.ir.size_extremes import maximum, minimum
from symc.ir.value import Value

#: From so many rows on, a warp does a row; below, rows of more than so many elements are cut.
MANY, LONG = 512, 16384
#: Parts of all rows together, at most, and the fewest elements of one.
PARTS, LEAST = 1024, 2048
#: Threads that go down columns, below which the columns are cut; parts of one at most, and the fewest rows of a part.
DOWN, MOST_DOWN, LEAST_DOWN = 65536, 64, 16


def running(kernel: Kernel) -> RunningSums | None:
    """The variants of a kernel of running sums along one axis; None for another."""
    found = levels_of(kernel)
    if found is None or kernel.loops.starts or kernel.is_complex:
        return None
    levels, space, finals, _ = found
    sums = {k: r for k, r in enumerate(finals) if r.op.name == "store_running"}
    rest = {k: r for k, r in enumerate(finals) if r.op.name != "store_running"}
    axes = {(r.attrs["axis"], r.attrs["shape"] == space) for r in sums.values()}
    if len(axes) != 1 or any(r.op.name.startswith(("store", "insert")) for r in rest.values()):
        return None
    ((axis, whole),) = axes
    return RunningSums(kernel, levels, space, axis, sums, rest) if whole else None


class RunningSums(Variants):
    """``sums``: the results that are running sums, along ``axis`` of ``space``; ``rest``: those of single elements."""

    def __init__(self, kernel: Kernel, levels: Sequence[Value], space: tuple[Size, ...], axis: int,
                 sums: dict[int, Value], rest: dict[int, Value]):
        self.kernel, self.levels, self.space, self.axis, self.sums, self.rest = kernel, levels, space, axis, sums, rest
        self.lines = product(n for a, n in enumerate(space) if a != axis)

    def choose(self, number: Callable[[Size], int]) -> str:
        lines, length = number(self.lines), number(self.space[self.axis])
        if self.axis < len(self.space) - 1 and lines >= BLOCK:
            word = "downparts" if lines < DOWN and length > 2 * LEAST_DOWN else "down"
        elif lines >= MANY:
            word = "warps"
        else:
            word = "parts" if length > LONG else "blocks"
        return self.chosen(word, number)

    def write(self, words: Sequence[str], name: str) -> Text:
        return _Text(self, words[0], "wide" in words).source(name)


State = list[tuple[str, str]]  # for each sum, the names of its running value and, of a linear one, of the factor


class _Text:
    """Writes one variant."""

    def __init__(self, of: RunningSums, word: str, wide: bool):
        self.of, self.word = of, word
        self.w = Writer(of.kernel, "i64" if wide else "i32")
        self.length = of.space[of.axis]
        self.threads = WARP if word == "warps" else BLOCK
        wanted = minimum(floordiv(PARTS, maximum(1, of.lines)), ceildiv(self.length, LEAST))
        if word == "downparts":
            wanted = minimum(MOST_DOWN, minimum(floordiv(2 * DOWN, maximum(1, of.lines)),
                                                ceildiv(self.length, LEAST_DOWN)))
        self.parts: Size = maximum(1, wanted) if word.endswith("parts") else 1

    def source(self, name: str) -> Text:
        w, of = self.w, self.of
        w.parts[SHUFFLE] = None
        w.is_index("line", of.lines)
        w.is_index("step", self.length)
        w.is_index("part", self.parts)
        entries: list[tuple[str, tuple[Size, Size, Size], list[str]]]
        if self.word == "down":
            entries = [(name, (ceildiv(of.lines, BLOCK), 1, 1), self._down())]
        elif self.word == "downparts":
            grid = ceildiv(of.lines, BLOCK), self.parts, 1
            entries = [(f"{name}_sums", grid, self._down(store=False)),
                       (f"{name}_before", (ceildiv(of.lines, BLOCK), 1, 1), self._down_before()),
                       (name, grid, self._down())]
        elif self.word == "parts":
            grid = self.parts, of.lines, 1
            entries = [(f"{name}_sums", grid, self._sums()), (f"{name}_before", (1, of.lines, 1), self._before()),
                       (name, grid, self._along())]
        else:
            blocks = ceildiv(of.lines, BLOCK // WARP) if self.word == "warps" else of.lines
            entries = [(name, (blocks, 1, 1), self._along())]
        scratch = [s for pair in self._bytes() for s in pair] if self.word.endswith("parts") else []
        return w.launches([(entry, grid, BLOCK, lines) for entry, grid, lines in entries], scratch)

    def _bytes(self) -> list[list[Size]]:
        sizes = [computed(v.dtype).itemsize for v in self.of.sums.values()]
        return [[n * self.parts * self.of.lines] * (1 + self._is_linear(v))
                for n, v in zip(sizes, self.of.sums.values(), strict=True)]

    # -- values

    @staticmethod
    def _is_linear(v: Value) -> bool:
        return v.attrs["kind"] == "linear"

    def _index(self, depth: int) -> list[str]:
        """The index of a step of a line."""
        of = self.of
        others = list(self.w.unravel("line", [n for a, n in enumerate(of.space) if a != of.axis], depth))
        others[of.axis : of.axis] = ["step"]
        return others

    def _value(self, v: Value, env: Env) -> tuple[str, str]:
        """The value that is summed, and the factor of a linear recurrence."""
        own = v.operands[: len(v.operands) - len(self.of.space) - 1]
        texts = [self.w.expression(o, env) for o in own]
        return texts[-1], texts[0] if self._is_linear(v) else ""

    def _state(self, depth: int) -> State:
        """New variables: of nothing."""
        w, made = self.w, []
        for v in self.of.sums.values():
            t = scalar_type(v.dtype)
            kind = "add" if self._is_linear(v) else v.attrs["kind"]
            made.append((w.fresh("s"), w.fresh("f") if self._is_linear(v) else ""))
            w.line(depth, f"{t} {made[-1][0]} = {w.identity(kind, v.dtype)};")
            if made[-1][1]:
                w.line(depth, f"{t} {made[-1][1]} = {w.identity('mul', v.dtype)};")
        return made

    def _then(self, v: Value, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, str]:
        """Two values, the one that comes first first."""
        w, dtype = self.w, v.dtype
        if not self._is_linear(v):
            return w.combined(v.attrs["kind"], first[0], second[0], dtype), ""
        whole = w.combined("add", w.combined("mul", second[1], first[0], dtype), second[0], dtype)
        return whole, w.combined("mul", second[1], first[1], dtype) if first[1] else ""

    def _append(self, state: State, more: Sequence[tuple[str, ...]], depth: int, head: str = "",
                before: bool = False) -> None:
        """Let values come after a state, or ``before`` it."""
        for v, now, new in zip(self.of.sums.values(), state, more, strict=True):
            text, factor = self._then(v, new, now) if before else self._then(v, now, new)
            update = f"{now[0]} = {text};" + (f" {now[1]} = {factor};" if factor else "")
            self.w.line(depth, f"{head}{{ {update} }}" if head else update)

    def _types(self) -> list[str]:
        return [scalar_type(v.dtype) for v in self.of.sums.values()]

    def _store(self, env: Env, texts: Sequence[str], index: Sequence[str], depth: int) -> None:
        w, of = self.w, self.of
        for (k, v), text in zip(of.sums.items(), texts, strict=True):
            place = [w.index_text(i, env) for i in v.operands[len(v.operands) - len(of.space) :]]
            w.line(depth, f"o{k}[{w.offset(place, of.space)}] = {w.stored(text, v.dtype)};")
        for k, v in of.rest.items():
            w.line(depth, f"o{k}[{w.offset(index, of.space)}] = {w.stored(w.expression(v, env), v.dtype)};")

    # -- down columns

    def _down(self, store: bool = True) -> list[str]:
        """Go down a column, or a part of it: to make results, or to ``store`` nothing but the total of the part."""
        w, of = self.w, self.of
        w.lines = []
        w.thread("line", of.lines)
        state, begin, last, at = self._state(1), "0", w.size(self.length), f"line + part * {w.size(of.lines)}"
        if self.word == "downparts":
            each = ceildiv(self.length, self.parts)
            w.fits[(self.parts + 1) * each] = None
            w.line(1, f"const {w.index} part = blockIdx.y, begin = part * {w.size(each)};")
            w.line(1, f"const {w.index} last = min({last}, begin + {w.size(each)});")
            begin, last = "begin", "last"
            if store:
                self._fetch(state, f"{at} - {w.size(of.lines)}", 1, "if (part > 0) ")
        w.line(1, "#pragma unroll 4")
        with w.block(1, f"for ({w.index} step = {begin}; step < {last}; ++step)"):
            index = self._index(2)
            env = step(w, of.levels, index, 2)
            first = "step == 0" if store else "step == begin"
            for v, (name, factor) in zip(of.sums.values(), state, strict=True):
                x = self._value(v, env)
                then, factors = self._then(v, (name, "" if store else factor), x)
                w.line(2, f"{name} = {first} ? {x[0]} : {then};")
                if factors:
                    w.line(2, f"{factor} = {first} ? {x[1]} : {factors};")
            if store:
                self._store(env, [name for name, _ in state], index, 2)
        if not store:
            self._keep(state, at, 1)
        return w.lines

    def _down_before(self) -> list[str]:
        """Code of the totals of each part of a column and all before it."""
        w, lines = self.w, self.w.size(self.of.lines)
        w.lines = []
        w.thread("line", self.of.lines)
        state = self._state(1)
        self._fetch(state, "line", 1)
        w.line(1, "#pragma unroll 4")
        with w.block(1, f"for ({w.index} part = 1; part < {w.size(self.parts)}; ++part)"):
            more = self._state(2)
            self._fetch(more, f"line + part * {lines}", 2)
            self._append(state, more, 2)
            self._keep(state, f"line + part * {lines}", 2)
        return w.lines

    def _fetch(self, state: State, at: str, depth: int, head: str = "") -> None:
        """Read what ``_keep`` has left."""
        for arrays, names in zip(self._arrays(), state, strict=True):
            texts = [f"{name} = {array}[{at}];" for array, name in zip(arrays, names, strict=True) if array]
            self.w.line(depth, f"{head}{{ {' '.join(texts)} }}")

    # -- along rows

    def _threads(self, line: str) -> None:
        """Declarations of what every thread knows."""
        w = self.w
        w.lines = []
        w.line(1, f"const {w.index} line = {line}, thread = threadIdx.x % {self.threads};")
        if self.word == "warps":
            w.line(1, f"if (line >= {w.size(self.of.lines)}) return;  // a whole warp")
        w.line(1, f"const int lane = threadIdx.x % {WARP}, warp = threadIdx.x / {WARP};")

    def _along(self) -> list[str]:
        """Make the results of a row, or of a part of it."""
        w, of, parts = self.w, self.of, self.word == "parts"
        warps = f" * {BLOCK // WARP} + threadIdx.x / {WARP}" * (self.word == "warps")
        self._threads(f"{w.index}(blockIdx.{'y' if parts else 'x'}){warps}")
        carry = self._state(1)
        first, last = self._part()
        if parts:
            self._fetch(carry, f"line * {w.size(self.parts)} + part - 1", 1, "if (part > 0) ")
        with w.block(1, f"for ({w.index} base = {first}; base < {last}; base += {self.threads})"):
            state = self._read(last)
            self._scan(state, carry, "part > 0 || base > 0" if parts else "base > 0")
            with w.block(2, "if (live)"):
                index = self._index(3)
                self._store(step(w, of.levels, index, 3), [name for name, _ in state], index, 3)
        return w.lines

    def _part(self) -> tuple[str, str]:
        """Range of a part of a row."""
        w = self.w
        if self.word != "parts":
            return "0", w.size(self.length)
        each = ceildiv(ceildiv(self.length, self.parts), BLOCK) * BLOCK
        w.line(1, f"const {w.index} part = blockIdx.x;")
        w.line(1, f"const {w.index} last = min({w.size(self.length)}, (part + 1) * {w.size(each)});")
        w.fits[(self.parts + 1) * each] = None
        return f"part * {w.size(each)}", "last"

    def _read(self, last: str) -> State:
        """Read the element of a thread."""
        w, of = self.w, self.of
        w.line(2, f"const {w.index} step = base + thread;")
        w.line(2, f"const bool live = step < {last};")
        state = self._state(2)
        with w.block(2, "if (live)"):
            env = step(w, of.levels, self._index(3), 3)
            for v, (name, factor) in zip(of.sums.values(), state, strict=True):
                x, a = self._value(v, env)
                w.line(3, f"{name} = {x};" + (f" {factor} = {a};" if factor else ""))
        return state

    def _scan(self, state: State, carry: State, later: str) -> None:
        """Combine what the threads have with all before; ``carry``: with what came before them (``later``: if there is
        such), which grows."""
        w, warps = self.w, self.threads // WARP
        named = [(t, name) for t, names in zip(self._types(), state, strict=True) for name in names if name]
        w.line(2, "#pragma unroll")
        with w.block(2, f"for (int d = 1; d < {WARP}; d *= 2)"):
            other = {name: w.fresh("u") for _, name in named}
            for t, name in named:
                w.line(3, f"const {t} {other[name]} = below({name}, d);")
            self._append(state, [(other[a], other.get(b, "")) for a, b in state], 3, "if (lane >= d) ", before=True)
        if warps > 1:
            for t, name in named:
                w.line(2, f"__shared__ {t} {name}part[{warps}];")
                w.line(2, f"if (lane == {WARP - 1}) {name}part[warp] = {name};")
            w.line(2, "__syncthreads();")
        total = self._state(2)
        if warps > 1:
            ahead = self._state(2)
            with w.loop(2, "k", warps):
                parts = [tuple(f"{name}part[k]" if name else "" for name in names) for names in state]
                self._append(ahead, parts, 3, "if (k < warp) ")
                self._append(total, parts, 3)
            self._append(state, ahead, 2, "if (warp > 0) ", before=True)
            w.line(2, "__syncthreads();")
        else:
            for (_, name), target in zip(named, [x for names in total for x in names if x], strict=True):
                w.line(2, f"{target} = of_lane({name}, {WARP - 1});")
        for values in (state, total):
            self._append(values, carry, 2, f"if ({later}) ", before=True)
        for now, new in zip(carry, total, strict=True):
            w.line(2, " ".join(f"{a} = {b};" for a, b in zip(now, new, strict=True) if a))

    # -- parts of rows

    def _arrays(self) -> list[tuple[str, str]]:
        """Scratch memory for what each part is: of every sum, the value and the factor."""
        found, number = [], 0
        for v, t in zip(self.of.sums.values(), self._types(), strict=True):
            pair = [f"reinterpret_cast<{t} *>(scratch{number + k})" for k in range(1 + self._is_linear(v))]
            number += len(pair)
            found.append((pair[0], pair[1] if len(pair) > 1 else ""))
        return found

    def _sums(self) -> list[str]:
        """Code of the total of each part."""
        w = self.w
        self._threads(f"{w.index}(blockIdx.y)")
        carry = self._state(1)
        first, last = self._part()
        w.line(1, f"const {w.index} begin = {first};")
        with w.block(1, f"for ({w.index} base = begin; base < {last}; base += {self.threads})"):
            self._scan(self._read(last), carry, "base > begin")
        w.line(1, "if (thread > 0) return;")
        self._keep(carry, f"line * {w.size(self.parts)} + part", 1)
        return w.lines

    def _keep(self, state: State, at: str, depth: int) -> None:
        for arrays, names in zip(self._arrays(), state, strict=True):
            for array, name in zip(arrays, names, strict=True):
                if array:
                    self.w.line(depth, f"{array}[{at}] = {name};")

    def _before(self) -> list[str]:
        """Code of the totals of each part and all before it."""
        w, there = self.w, f"if (part < {self.w.size(self.parts)}) "
        self._threads(f"{w.index}(blockIdx.y)")
        carry = self._state(1)
        with w.block(1, f"for ({w.index} base = 0; base < {w.size(self.parts)}; base += {self.threads})"):
            w.line(2, f"const {w.index} part = base + thread;")
            w.line(2, f"const {w.index} at = line * {w.size(self.parts)} + part;")
            state = self._state(2)
            self._fetch(state, "at", 2, there)
            self._scan(state, carry, "base > 0")
            with w.block(2, there.rstrip()):
                self._keep(state, "at", 3)
        return w.lines
