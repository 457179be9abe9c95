"""A compiler of texts of the language to LLVM's text: kernels, and the functions of the library that they call.

A kernel (``symc.codegen.cpu.render``) and the helpers it calls are straight lines, `for` over ranges, `while`, `if`,
conditional expressions, and calls. Every name has one type, that of its first assignment; operands say the types of
calls. What is outside of this raises Unsupported, and Numba compiles the kernel.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from symc.codegen.cpu.chunks import ARGUMENTS, LAST
from symc.codegen.language.helpers import Helper
from symc.codegen.language.native import unlikely
from symc.codegen.language.syntax import Unsupported, every
from symc.codegen.language.typed import Pointer, Scalar, Value, of_type
from symc.runtime.compilers import llvm_streams
from symc.runtime.compilers.called import has_extreme, helpers_in
from symc.runtime.compilers.chains import beside
from symc.runtime.compilers.llvm import few_registers, fuses, has_vectors, masks_bytes, wide_vectors
from symc.runtime.compilers.llvm_contraction import contracted
from symc.runtime.compilers.llvm_expressions import Blocks, llvm_type
from symc.runtime.compilers.llvm_rarely import MARK, Rarely
from symc.runtime.compilers.llvm_scalars import LLVM, NEAR, Interval
from symc.runtime.compilers.llvm_streams import size
from symc.runtime.compilers.loop_notes import ACCESS_GROUP, UNLIKELY, LoopNotes
from symc.runtime.compilers.next_rows import Row, ask, rows_ahead
from symc.runtime.compilers.quotients import pays
from symc.runtime.cpu.large_results import LINE
from symc.runtime.cpu.native.instructions import FAILED, Word
from symc.runtime.library import meaning

#: Vectors of 512 bits, four at a time: how many bytes the loop over a row takes in a step, at most.
STEP = 256
#: What LLVM is told of a kernel that gains from vectors of 512 bits, where the processor has them and is tuned for 256:
#: one that calls functions or looks for extremes. What only adds and multiplies waits for memory or the first cache
#: (whose lines vectors of 64 bytes straddle more often), or for divisions, of which twice as many take twice as long.
WIDE = ' "prefer-vector-width"="512"'
WIDE_ELEMENTS = ("f64", "i64", "u64", "c128")
#: Elements of so many bytes at most are short: a vector has 32 or 64 of them.
NARROW = 2
#: Loops of this many steps, or of a number that is not known, are not unrolled once they are vectorized.
LONG = 64
#: Shorter ones are unrolled, before they are vectorized, if that makes no more instructions than this; loops around
#: them if it makes no more than twice as many. LLVM itself goes to 1,200 where indices become constants, and searches
#: for vectors in what it has taken apart: the gates of 4 rows of 8 numbers took 200 ms to compile, not 25, and a tenth
#: more to run.
UNROLLED = 500
#: Vectors of a loop that calls functions, side by side: constants of polynomials are read once for all of them, and the
#: processor need not look far ahead for work that waits for nothing. erf takes two thirds of the time so, Black-Scholes
#: too, softplus little more than half (AVX2, f32); with AVX-512 Black-Scholes 1.74 -> 1.07 (f32) and 5.9 -> 3.9 ns.
BESIDE = 4
#: The rest of a row that is less than a vector of so many elements is done one by one: to store a part of a vector, and
#: to wait until it can be read again, takes as long as three of them (Zen 3).
FEW = 4
#: Mark of a kernel whose instructions stay as they are written: each step of a function for all vectors side by side,
#: one function after the other. LLVM's scheduler mixes them (Black-Scholes in f64: 18.0
#: against 12.2 ns an option, two erf in one loop 6.9 against 4.3; log in f32 0.74 against 0.60 ns). Softmax of f32,
#: whose functions have 12 constants, is faster with it (1.05 times).
IN_ORDER = ' "symc-in-order"'
#: Constants of a kernel's functions that are more than few.
MANY = 12
_REAL = re.compile("0x[0-9A-F]{16}")

#: A function of the interpreter's words: counts down, and calls Python now and then, which may say that all stops.
_POLLED = f"""define internal i1 @polled(ptr nocapture %words) noinline cold nounwind {{
  %left = getelementptr i64, ptr %words, i64 {Word.LEFT:d}
  %before = load i64, ptr %left
  %now = sub i64 %before, 1
  store i64 %now, ptr %left
  %due = icmp sle i64 %now, 0
  br i1 %due, label %call, label %on
call:
  %failed = getelementptr i64, ptr %words, i64 {Word.FAILED:d}
  store i64 {FAILED}, ptr %failed
  %callback = getelementptr i64, ptr %words, i64 {Word.CALLBACK:d}
  %python = load ptr, ptr %callback
  %pulse = getelementptr i64, ptr %words, i64 {Word.PULSE:d}
  %number = load i64, ptr %pulse
  call void %python(i64 %number)
  %status = load i64, ptr %failed
  %stop = icmp ne i64 %status, 0
  ret i1 %stop
on:
  ret i1 false
}}
"""


class Module:
    """The text of one LLVM module: functions, and what they declare."""

    def __init__(self) -> None:
        self.declared: dict[str, str] = {}
        self.tables: dict[str, str] = {}
        self.functions: list[str] = []
        self.compiled: dict[tuple, tuple[str, Any]] = {}  # (helper, types of operands) -> (symbol, type of result)
        self.notes = LoopNotes()
        self.rare = Rarely()
        self.step = 0  # how many bytes the loop over a row takes in a step, at most
        self.beside = False  # whether loops that call functions take several vectors side by side
        self.streams = False  # whether results may be written past the cache
        self.afterwards: Module | None = None  # what is linked in after vectorization; none in that module itself

    def declare(self, name: str, result: str, operands: Sequence[str], body: Sequence[str] = ()) -> None:
        """Make a function known that is elsewhere, or one whose body this is, of %0, %1, ..."""
        head = f"{result} @{name}({', '.join(operands)})"
        lines = "\n".join(["{", *body, "}"])
        self.declared[name] = f"define internal {head} nounwind {lines}" if body else f"declare {head}"

    def table(self, numbers: Sequence[str], t: str) -> str:
        """A constant array in memory."""
        text = ", ".join(f"{LLVM[t]} {x}" for x in numbers)
        return self.tables.setdefault(f"[{len(numbers)} x {LLVM[t]}] [{text}]", f"@table{len(self.tables)}")

    def helper(self, helper: Helper, types: tuple[str, ...]) -> tuple[str, Any]:
        key = (helper.module, helper.name, types)
        if key not in self.compiled:
            symbol = f"{helper.module}.{helper.name}.{'.'.join(types)}".replace("*", "$")
            operands = {n: of_type(t, f"%{n}") for n, t in zip(helper.operands, types, strict=True)}
            f = Function(self, helper.scope.get, operands)
            f.body(helper.tree.body)
            result = f.result
            head = ", ".join(f"{llvm_type(x.type)} {x.ref}" for x in operands.values())
            how = "noinline" if helper.called else "alwaysinline"
            head = f"define internal {llvm_type(result)} @{symbol}({head}) {how} nounwind"
            self.functions.append(f"{head} {{\n{contracted(f.text(), self.declare)}}}\n")
            self.compiled[key] = symbol, result
        return self.compiled[key]

    def polled(self, words: Pointer) -> str:
        """The call that looks for signals; whether to stop. What it does is ``Op.AGAIN`` of the interpreter."""
        if _POLLED not in self.functions:
            self.functions.append(_POLLED)
        return f"call i1 @polled(ptr {words.ref})"

    def rarely(self, condition: Scalar, helper: Helper, usual: Scalar, xs: Sequence[Scalar]) -> str:
        """The call that gives what a helper gives where the condition holds, and the usual result elsewhere."""
        assert self.afterwards is not None
        symbol, result = self.afterwards.helper(helper, tuple(x.type for x in xs))
        if result != usual.type:
            raise Unsupported(f"{helper.name} gives {result}, not {usual.type}")
        operands = (condition, usual, *xs)
        return self.rare.call(symbol, [x.type for x in operands], [x.ref for x in operands])

    def kernel(self, tree: ast.FunctionDef, operands: Mapping[str, Value], units: str = "") -> None:
        """A kernel, called ``kernel``, and its entry, which takes the address of its arguments as 64-bit words.
        ``units``: the argument that is the length of its outermost loop, if that is run in chunks."""
        self.afterwards = Module()
        self.beside = has_vectors()
        self.step = 0 if "words" in operands else BESIDE * 32 if few_registers() else STEP
        calls = bool(helpers_in(tree))
        stream = None if calls or not has_vectors() else llvm_streams.stream(tree, units, operands)
        f = Function(self, meaning, operands)
        f.of_places()
        f.blocks, f.ahead = units if LAST in operands else "", rows_ahead(tree)
        if stream is not None:
            self.streams = True
            operands[stream.name].note = f", {ACCESS_GROUP}"
            f.do(f"call void {llvm_streams.KEPT}({llvm_streams.STREAMS})")
        f.body(tree.body)
        head = ", ".join(f"ptr noalias nocapture {v.ref}" if isinstance(v, Pointer) else f"i64 {v.ref}"
                         for v in operands.values()) + f", {llvm_streams.STREAMS}" * self.streams
        how = WIDE if wide_vectors() and (calls or has_extreme(tree)) else ""
        if self.beside and len(set(_REAL.findall(" ".join(self.functions)))) > MANY:
            how += IN_ORDER
        body = contracted(f.text(), self.declare)
        self.functions.append(f"define internal void @kernel({head}) noinline nounwind{how} {{\n{body}}}\n")
        self.functions.append(llvm_streams.entry(operands, stream))

    def text(self) -> str:
        tables = [f"{name} = private unnamed_addr constant {data}" for data, name in self.tables.items()]
        declared = [*self.declared.values(), *llvm_streams.DECLARED * self.streams]
        text = "\n".join([*declared, *tables, *self.functions, *self.notes.text(), ""])
        if not self.rare.found:
            return text
        assert self.afterwards is not None
        return f"{self.rare.declarations()}\n{text}{MARK}{self.afterwards.text()}{self.rare.bodies()}"


class Function(Blocks):
    """Writes the body of one function. ``calls``: the outermost loop that is being written calls functions; ``copied``:
    instructions that unrolling adds to those that are written; ``blocks``: the argument that says how many blocks are
    summed for themselves, if there are; ``ahead``: rows that are read ahead, by the loop before which they are asked
    for."""

    module: Module
    calls = False
    copied = 0
    blocks = ""
    ahead: Mapping[ast.For, Sequence[Row]] = {}

    def of_places(self) -> None:
        """Note what begin and end of a chunk can be: nothing counts to 2**50. Sizes may be formulas, of any size."""
        for name in ARGUMENTS:
            if name in self.names:
                self.bounded(self.names[name], (0, NEAR[1]))

    # -- statements

    def give_back(self, xs: Sequence[Scalar]) -> None:
        if not xs:
            self.do("ret void")
            return
        if isinstance(self.result, str):
            self.do(f"ret {LLVM[self.result]} {xs[0].ref}")
            return
        whole = "undef"
        for k, x in enumerate(xs):
            whole = self.emit(f"insertvalue {llvm_type(self.result)} {whole}, {LLVM[x.type]} {x.ref}, {k}")
        self.do(f"ret {llvm_type(self.result)} {whole}")

    def on_If(self, s: ast.If) -> None:
        test = self.truth(self.scalar(s.test))
        if test.number is not None:
            return self.statements(s.body if test.number else s.orelse)
        yes, no, after = self.label(), self.label(), self.label()
        rare = isinstance(s.test, ast.Call) and getattr(s.test.func, "id", "") == unlikely.name
        self.branch(test, yes, no if s.orelse else after, f", {UNLIKELY}" if rare else "")
        self.place(yes)
        self.statements(s.body)
        self.go(after)
        if s.orelse:
            self.place(no)
            self.statements(s.orelse)
            self.go(after)
        self.place(after)

    def on_While(self, s: ast.While) -> None:
        test, inside, after = self.label(), self.label(), self.label()
        self.place(test)
        self.branch(self.scalar(s.test), inside, after)
        self.place(inside)
        self.inside(s.body, test, after)
        self.go(test)
        self.place(after)

    def inside(self, body: Sequence[ast.stmt], again: str, after: str) -> None:
        self.loops.append((again, after))
        self.statements(body)
        self.loops.pop()

    def on_Break(self, s: ast.Break) -> None:
        self.go(self.loops[-1][1])

    def on_Continue(self, s: ast.Continue) -> None:
        self.go(self.loops[-1][0])

    def range_loop(self, s: ast.For, start: Scalar, stop: Scalar, step: int) -> None:
        for row in self.ahead.get(s, ()):
            ask(self, row, self.module.notes.one_by_one())
        count = None if start.number is None or stop.number is None else stop.number - start.number
        if stop.ref == self.blocks and _is_leaf(s):  # puts together what they have summed: few steps
            return self.count_loop(s, start, stop, step, self.module.notes.one_by_one)
        called = helpers_in(*s.body) if self.module.beside else []
        vectors = beside(s.body, BESIDE, called) if called or not self.loops else 1
        if step != 1 or not self.module.step or not _is_leaf(s):
            self.count_loop(s, start, stop, step)
        elif count is not None:
            whole = called and not count % self.step_of(s)
            self.count_loop(s, start, stop, 1, self._note_beside(vectors) if whole else None)
        elif self.calls if self.loops else vectors > 1:
            self.split_loop(s, start, stop, vectors)
        elif self.loops and masks_bytes() and (width := max(map(size, self._arrays(s)), default=8)) <= NARROW:
            self.row_loop(s, start, stop, LINE // width)
        else:
            self.count_loop(s, start, stop, 1)

    def step_of(self, s: ast.For) -> int:
        """Number of elements that a loop over a row takes in a step, at most: by the widest array that it names."""
        return self.module.step // max((8 if a.element in WIDE_ELEMENTS else 4 for a in self._arrays(s)), default=8)

    def _arrays(self, s: ast.For) -> list[Pointer]:
        """The arrays whose elements a loop names."""
        found = [self.names.get(n.value.id) for n in every(*s.body)
                 if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]
        return [a for a in found if isinstance(a, Pointer)]

    def _note_beside(self, vectors: int) -> Callable[[], str] | None:
        return partial(self.module.notes.interleaved, vectors) if vectors > 1 else None

    def split_loop(self, s: ast.For, start: Scalar, stop: Scalar, vectors: int) -> None:
        """A loop in parts: whole steps of several vectors, single vectors, and a last one that is not full. LLVM does
        what is left one by one, which for a short row is most of it: softmax of rows of 24 f32 takes a third of the
        time so. A part of a row may be less than empty.

        The length goes through nothing, in a register: where LLVM knows how it came about, it does not see that a
        multiple of a step is one, and writes loops for a rest as well, half as much code again."""
        length = self._length(start, stop)
        step = self.step_of(s)
        vector = step // BESIDE
        whole = self.emit(f"and i64 {length}, {-step}")
        self.part_loop(s, start, whole, step, self._note_beside(vectors) or self.module.notes.not_unrolled)
        middle = Scalar("i64", self.emit(f"add nsw i64 {start.ref}, {whole}"))
        rest = self.emit(f"and i64 {length}, {step - 1}")
        whole = self.emit(f"and i64 {rest}, {-vector}")
        self.part_loop(s, middle, whole, vector, partial(self.module.notes.interleaved, 1))
        last = Scalar("i64", self.emit(f"add nsw i64 {middle.ref}, {whole}"))
        self.part_loop(s, last, self.emit(f"and i64 {rest}, {vector - 1}"), 1,
                       self.module.notes.masked if vector > FEW else self.module.notes.one_by_one, "i32")

    def row_loop(self, s: ast.For, start: Scalar, stop: Scalar, vector: int) -> None:
        """A loop over a row of short elements: whole vectors, and a last one that is masked. LLVM does up to 63 of them
        one by one."""
        length = self._length(start, stop)
        whole = self.emit(f"and i64 {length}, {-vector}")
        self.part_loop(s, start, whole, vector, self.module.notes.not_unrolled)
        last = Scalar("i64", self.emit(f"add nsw i64 {start.ref}, {whole}"))
        self.part_loop(s, last, self.emit(f"and i64 {length}, {vector - 1}"), 1, self.module.notes.masked, "i32")

    def _length(self, start: Scalar, stop: Scalar) -> str:
        """The number of steps of a loop, of which LLVM knows nothing."""
        length = self.emit(f"sub i64 {stop.ref}, {start.ref}")
        length = self.emit(f"select i1 {self.emit(f'icmp slt i64 {length}, 0')}, i64 0, i64 {length}")
        return self.emit(f'call i64 asm "", "=r,0"(i64 {length}) nounwind willreturn memory(none)')

    def part_loop(self, s: ast.For, start: Scalar, length: str, step: int, note: Callable[[], str], t: str = "i64",
                  ) -> None:  # fmt: skip
        """Part of a loop: a multiple of ``step`` steps from an index on, of which there is at least one, so that LLVM,
        which asks the same, finds it answered. A mask is made of a counter of 32 bits by three instructions, of one of
        64 by thirteen."""
        assert isinstance(s.target, ast.Name)
        if t != "i64":
            length = self.emit(f"trunc i64 {length} to {t}")
        none = self.emit(f"icmp ult {t} {length}, {step}")
        inside, again, after = (self.label() for _ in range(3))
        before = self.block
        self.branch(Scalar("bool", none), after, inside)
        self.place(inside)
        self.do(f"%k{inside} = phi {t} [ 0, %{before} ], [ %n{inside}, %{again} ]")
        wide = self.emit(f"zext {t} %k{inside} to i64") if t != "i64" else f"%k{inside}"
        i = self.emit(f"add nsw i64 {start.ref}, {wide}")
        self.names[s.target.id] = self.bounded(Scalar("i64", i), self._counted(start, 1))
        self.multiplies = fuses() and pays(s.body)
        self.inside(s.body, again, after)
        self.multiplies = False
        self.place(again)
        self.do(f"%n{inside} = add nuw nsw {t} %k{inside}, 1")
        more = self.emit(f"icmp ult {t} %n{inside}, {length}")
        self.do(f"br i1 {more}, label %{inside}, label %{after}{note()}")
        self.open = False
        self.place(after)

    def _counted(self, start: Scalar, step: int) -> Interval | None:
        """All that the counter of a loop upwards can be."""
        first = self.interval(start)
        return (first[0], NEAR[1]) if first is not None and step > 0 else None

    def count_loop(self, s: ast.For, start: Scalar, stop: Scalar, step: int,
                   note: Callable[[], str] | None = None) -> None:
        """``note``: what marks the branch back, if not what is usual."""
        if not self.loops:
            self.calls = bool(helpers_in(*s.body))
        assert isinstance(s.target, ast.Name)
        if s.target.id in self.variables:
            raise Unsupported(f"a loop over {s.target.id}, which is assigned elsewhere")
        before, test, inside, again, after = self.block, *(self.label() for _ in range(4))
        self.place(test)
        i, following = f"%i{test}", f"%n{test}"
        self.do(f"{i} = phi i64 [ {start.ref}, %{before} ], [ {following}, %{again} ]")
        more = self.emit(f"icmp {'slt' if step > 0 else 'sgt'} i64 {i}, {stop.ref}")
        self.branch(Scalar("bool", more), inside, after)
        self.place(inside)
        self.names[s.target.id] = self.bounded(Scalar("i64", i), self._counted(start, step))
        noted, first = self.module.notes.count, len(self.lines) + self.copied
        self.multiplies = _is_leaf(s) and fuses() and pays(s.body)
        self.inside(s.body, again, after)
        self.multiplies = False
        of_loops = self.module.notes.count > noted
        self.place(again)
        self.do(f"{following} = add nsw i64 {i}, {step}")
        count = None if start.number is None or stop.number is None else int(stop.number - start.number) // step
        if note is None:
            note = self._note_of(count, len(self.lines) + self.copied - first, _is_leaf(s), of_loops)
        self.do(f"br label %{test}{note()}")
        self.open = False
        self.place(after)

    def _note_of(self, count: int | None, size: int, leaf: bool, of_loops: bool) -> Callable[[], str]:
        """Metadata of the branch back in a loop of so many steps (None: not known) and instructions. ``leaf``: it has
        no other inside; ``of_loops``: one that is not unrolled."""
        if count is None or count >= (2 if of_loops else LONG):
            return lambda: self.module.notes.not_unrolled(of_loops)
        if count * size > (UNROLLED if leaf else 2 * UNROLLED):
            return lambda: self.module.notes.not_unrolled(True)
        self.copied += max(count - 1, 0) * size
        return str


def _is_leaf(s: ast.For) -> bool:
    """True if a loop has no other inside, and is not left early."""
    return not any(isinstance(n, ast.For | ast.While | ast.Break | ast.Continue) for n in every(*s.body))
