"""Scalars of the language as LLVM: how it spells their types, constants, conversions, arithmetic and comparisons."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from symc.codegen.language.helpers import Helper
from symc.codegen.language.statements import Statements
from symc.codegen.language.typed import FLOATS, PARTS, Pointer, Scalar, Value, common, width
from symc.runtime.compilers.loop_notes import UNPREDICTABLE
from symc.runtime.compilers.quotients import is_whole, reciprocal, two_parts

LLVM = {"bool": "i1", "f32": "float", "f64": "double", "c64": "{ float, float }", "c128": "{ double, double }"} | {
    f"{sign}{width}": f"i{width}" for sign in "iu" for width in (8, 16, 32, 64)}
#: What a kernel may assume of every floating point instruction, and of those that a fold combines with.
CONTRACT, REASSOCIATE = "contract", "reassoc nsz contract"
_INT = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "<<": "shl"}
_FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_FCMP = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
#: Operations whose lower bits are made of the lower bits of their operands; types of which vectors have more numbers.
_LOWER = ("+", "-", "*", "&", "|", "^")
_SHORT = ("i8", "u8", "i16", "u16", "i32", "u32")
_ICMP = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


#: The least and the greatest integer, both included.
Interval = tuple[int, int]
#: Unsigned numbers of which vectors have products.
WORD: Interval = (0, 2**32 - 1)
#: Numbers that are divided in f64, and all sizes and places of arrays.
NEAR: Interval = (1 - 2**50, 2**50 - 1)


@cache
def of_type(t: str) -> Interval | None:
    """All numbers of a type of integers."""
    if t in FLOATS or t in PARTS:
        return None
    if t == "bool":
        return 0, 1
    return (-(2 ** (width(t) - 1)), 2 ** (width(t) - 1) - 1) if t[0] == "i" else (0, 2 ** width(t) - 1)


def within(x: Interval | None, y: Interval | None) -> bool:
    """True if all of ``x`` is in ``y``."""
    return x is not None and y is not None and y[0] <= x[0] and x[1] <= y[1]


def combined(sign: str, x: Interval, y: Interval) -> Interval | None:
    """The results of an operation, as far as none wraps around: the caller asks whether the type holds them."""
    (a, b), (c, d) = x, y
    if sign == "+":
        return a + c, b + d
    if sign == "-":
        return a - d, b - c
    if sign == "*":
        corners = [p * q for p in x for q in y]
        return min(corners), max(corners)
    if sign == "&" and (a >= 0 or c >= 0):
        return 0, min(end for low, end in (x, y) if low >= 0)
    if sign in "|^" and a >= 0 and c >= 0:
        return 0, 2 ** max(b, d).bit_length() - 1
    if sign == ">>" and c >= 0 and d < 64:
        return (a >> c if a < 0 else a >> d), (b >> d if b < 0 else b >> c)
    if sign in ("//", "%") and c > 0:
        return divided(sign, x, c, d)
    return None


def divided(sign: str, x: Interval, least: int, most: int) -> Interval:
    """Quotients downwards, and remainders, by positive numbers."""
    a, b = x
    if sign == "%":
        return 0, min(most - 1, b) if a >= 0 else most - 1
    return a // (least if a < 0 else most), b // (most if b < 0 else least)


class Declarations(Protocol):
    """Needs of a function in the module that it is in: tables, helpers, and what is declared."""

    @property
    def afterwards(self) -> object:
        """None in what is linked in after vectorization."""

    def declare(self, name: str, result: str, operands: Sequence[str], body: Sequence[str] = ()) -> None: ...
    def table(self, numbers: Sequence[str], t: str) -> str: ...
    def helper(self, helper: Helper, types: tuple[str, ...]) -> tuple[str, Any]: ...
    def polled(self, words: Pointer) -> str: ...
    def rarely(self, condition: Scalar, helper: Helper, usual: Scalar, xs: Sequence[Scalar]) -> str: ...


class Instructions(Statements):
    """Writes instructions of one function, one after another; a scalar is the name of its instruction's result.
    ``multiplies``: quotients by whole numbers are made of products."""

    multiplies = False

    def __init__(self, module: Declarations, meaning: Callable[[str], Any], operands: Mapping[str, Value]):
        super().__init__(meaning, operands)
        self.module = module
        self.head: list[str] = []  # the memory of variables
        self.lines: list[str] = []
        self.count = 0
        self.intervals: dict[tuple[str, str], Interval] = {}  # of integers, by type and name
        self.made: dict[str, tuple[str, Scalar, Scalar]] = {}  # integers of 64 bits, of shorter ones: how, and of which
        self.extremes: set[str] = set()
        self.of_integers: set[str] = set()  # names of floats that were integers

    def interval(self, x: Scalar) -> Interval | None:
        """All that an integer can be; None for a float."""
        if x.number is not None and x.type not in FLOATS:
            return int(x.number), int(x.number)
        return self.intervals.get((x.type, x.ref)) or of_type(x.type)

    def bounded(self, x: Scalar, found: Interval | None) -> Scalar:
        """x, noting what it can be if that is something."""
        if x.number is None and within(found, of_type(x.type)):
            assert found is not None
            self.intervals[x.type, x.ref] = found
        return x

    def cast(self, x: Scalar, t: str) -> Scalar:
        if x.type == t:
            return x
        return self.bounded(self.narrow(x, t) or super().cast(x, t), self.interval(x))

    def narrow(self, x: Scalar, t: str) -> Scalar | None:
        """An operation that is wide only while it is computed, in its own type.

        Its lower bits are those of its operands'. LLVM would do so, but not where it knows what bits there are, and
        vectors of 64 bits have an eighth as many."""
        sign, *operands = self.made.get(x.ref, ("",))
        if not sign or t in FLOATS or t in PARTS or t == "bool" or width(t) == 64:
            return None
        if any(y.number is None and width(y.type) > width(t) for y in operands):
            return None
        a, b = (self.cast(y, t).ref for y in operands)
        return Scalar(t, self.operation(sign, t, a, b, True))

    def compare(self, sign: str, x: Scalar, y: Scalar) -> Scalar:
        """Numbers of one short type, or of one and a number that it holds, are compared in it."""
        short = [z.type for z in (x, y) if z.number is None]
        if short and len(set(short)) == 1 and short[0] in _SHORT and all(
                within(self.interval(z), of_type(short[0])) for z in (x, y)):
            a, b = (self.cast(z, short[0]).ref for z in (x, y))
            return Scalar("bool", self.comparison(sign, short[0], a, b))
        return super().compare(sign, x, y)

    def binary(self, sign: str, x: Scalar, y: Scalar, wraps: bool = False) -> Scalar:
        """Products of short numbers are of their lower words, which one instruction of vectors multiplies."""
        found = self._binary(sign, x, y, wraps)
        if sign in _LOWER and found.number is None and found.type in ("i64", "u64"):
            self.made[found.ref] = sign, x, y
        return found

    def wrapping(self, sign: str, x: Scalar, y: Scalar) -> Scalar:
        """A sum, difference or product of i64, which may overflow."""
        found = self.binary(sign, self.cast(x, "i64"), self.cast(y, "i64"), True)
        if found.number is None:
            self.made[found.ref] = sign, x, y
        return found

    def _binary(self, sign: str, x: Scalar, y: Scalar, wraps: bool) -> Scalar:
        a, b = self.interval(x), self.interval(y)
        if a is None or b is None:
            t = common(x, y)
            if sign == "/" and self.multiplies and x.number is None and is_whole(y.number, t):
                return Scalar(t, self.quotient(t, self.cast(x, t).ref, y.number))
            return super().binary(sign, x, y, wraps)
        if sign == "*" and within(a, WORD) and within(b, WORD):
            x, y = self.short(x), self.short(y)
        return self.bounded(super().binary(sign, x, y, wraps), combined(sign, a, b))

    def quotient(self, t: str, x: str, number: Any) -> str:
        """A float divided by a whole number, by products (``quotients``)."""
        kind, less, r = LLVM[t], self.spelled(t, -float(number)), self.spelled(t, reciprocal(t, float(number)))
        if x in self.of_integers:
            first, second = (self.spelled(t, part) for part in two_parts(t, float(number)))
            self.module.declare(f"llvm.fma.{t}", kind, [kind] * 3)
            rest = self.emit(f"fmul {kind} {x}, {second}")
            return self.emit(f"call {kind} @llvm.fma.{t}({kind} {x}, {kind} {first}, {kind} {rest})")
        q = self.emit(f"fmul {kind} {x}, {r}")
        intrinsic = f"llvm.fma.{t}"
        self.module.declare(intrinsic, kind, [kind] * 3)
        e = self.emit(f"call {kind} @{intrinsic}({kind} {less}, {kind} {q}, {kind} {x})")
        better = self.emit(f"call {kind} @{intrinsic}({kind} {e}, {kind} {r}, {kind} {q})")
        return self.emit(f"select i1 {self.emit(f'fcmp one {kind} {e}, 0.0')}, {kind} {better}, {kind} {q}")

    def short(self, x: Scalar) -> Scalar:
        """A number that is known to be one of 32 bits, so that LLVM knows it."""
        wide = self.cast(x, x.type if x.type == "u64" else "i64")
        return wide if x.number is not None or x.type[1:] != "64" else Scalar(
            wide.type, self.emit(f"and i64 {wide.ref}, {WORD[1]}"))

    def select(self, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
        a, b = self.interval(x), self.interval(y)
        hull = None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))
        return self.bounded(super().select(condition, x, y), hull)

    def emit(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}\n")
        return f"%v{self.count}"

    def spelled(self, t: str, x: Any) -> str:
        if t == "bool":
            return "true" if x else "false"
        if t not in FLOATS:
            return str(x)
        if x == 0.0 and math.copysign(1.0, x) > 0:
            return "0.0"
        return f"0x{struct.unpack('>Q', struct.pack('>d', x))[0]:016X}"

    def converted(self, x: Scalar, t: str) -> str:
        s, a, b = x.type, LLVM[x.type], LLVM[t]
        if t == "bool":
            return self.emit(f"fcmp une {a} {x.ref}, 0.0" if s in FLOATS else f"icmp ne {a} {x.ref}, 0")
        if s in FLOATS and t in FLOATS:
            return self.emit(f"{'fpext' if t == 'f64' else 'fptrunc'} {a} {x.ref} to {b}")
        if s in FLOATS:
            return self.emit(f"{'fptosi' if t[0] == 'i' else 'fptoui'} {a} {x.ref} to {b}")
        if t in FLOATS:
            found = self.emit(f"{'sitofp' if s[0] == 'i' else 'uitofp'} {a} {x.ref} to {b}")
            self.of_integers.add(found)
            return found
        if width(s) == width(t):
            return x.ref
        how = "trunc" if width(s) > width(t) else "sext" if s[0] == "i" else "zext"
        return self.emit(f"{how} {a} {x.ref} to {b}")

    def operation(self, sign: str, t: str, x: str, y: str, wraps: bool) -> str:
        if t in FLOATS:
            return self.emit(f"{_FLOAT[sign]} {CONTRACT} {LLVM[t]} {x}, {y}")
        if sign in ("//", "%"):
            return self._divided(sign, t, x, y)
        open_ = " nsw" if t == "i64" and sign in "+-*" and not wraps else ""
        how = ("lshr" if t == "u64" else "ashr") if sign == ">>" else _INT[sign]
        return self.emit(f"{how}{open_} {LLVM[t]} {x}, {y}")

    def _divided(self, sign: str, t: str, x: str, y: str) -> str:
        """Integers divided downwards. The divisor is not 0."""
        if t == "u64":
            return self.emit(f"{'udiv' if sign == '//' else 'urem'} i64 {x}, {y}")
        q, r = self.emit(f"sdiv i64 {x}, {y}"), self.emit(f"srem i64 {x}, {y}")
        off = self.emit(f"icmp ne i64 {r}, 0")
        other = self.emit(f"icmp slt i64 {self.emit(f'xor i64 {r}, {y}')}, 0")
        wrong = self.emit(f"and i1 {off}, {other}")
        if sign == "//":
            return self.emit(f"sub i64 {q}, {self.emit(f'zext i1 {wrong} to i64')}")
        more = self.emit(f"select i1 {wrong}, i64 {y}, i64 0")
        return self.emit(f"add i64 {r}, {more}")

    def comparison(self, sign: str, t: str, x: str, y: str) -> str:
        if t in FLOATS:
            return self.emit(f"fcmp {_FCMP[sign]} {LLVM[t]} {x}, {y}")
        how = _ICMP[sign]
        prefix = "" if how in ("eq", "ne") else "s" if t[0] == "i" else "u"
        return self.emit(f"icmp {prefix}{how} {LLVM[t]} {x}, {y}")

    def selected(self, condition: str, t: str, x: str, y: str) -> str:
        guess = f", {UNPREDICTABLE}" if t == "i64" else ""
        return self.emit(f"select i1 {condition}, {LLVM[t]} {x}, {LLVM[t]} {y}{guess}")

    def unary(self, sign: str, t: str, x: str) -> str:
        if sign == "-":
            return self.emit(f"fneg {CONTRACT} {LLVM[t]} {x}")
        return self.emit(f"xor {LLVM[t]} {x}, {'true' if t == 'bool' else -1}")

    def joined(self, how: str, x: str, y: str) -> str:
        return self.emit(f"{how} i1 {x}, {y}")

    def pair(self, t: str, real: Scalar, imag: Scalar) -> Scalar:
        kind = PARTS[t]
        first = self.emit(f"insertvalue {LLVM[t]} undef, {LLVM[kind]} {self.cast(real, kind).ref}, 0")
        return Scalar(t, self.emit(f"insertvalue {LLVM[t]} {first}, {LLVM[kind]} {self.cast(imag, kind).ref}, 1"))

    def part_of(self, x: Scalar, k: int) -> str:
        return self.emit(f"extractvalue {LLVM[x.type]} {x.ref}, {k}")
