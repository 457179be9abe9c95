"""Primitives of kernel texts, which are no helpers in Python: conversions, LLVM's intrinsics, functions of the C
library.

``numba_primitives`` says the same to Numba. A primitive is a function of the writer of a function and of scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.codegen.kernel.c_functions import CFunction
from symc.codegen.kernel.user_functions import c_function, c_symbol
from symc.codegen.language.expressions import Primitive
from symc.codegen.language.typed import FLOATS, PARTS, Pointer, Scalar, Value, width
from symc.ir.facts import Routine
from symc.runtime.compilers.llvm_scalars import CONTRACT, LLVM, REASSOCIATE, Instructions
from symc.runtime.cpu.scipy_functions import IN_TEXT, symbol


def _cast_to(t: str) -> Primitive:
    return lambda f, xs: f.cast(xs[0], t)


def _like(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    x, number = xs
    return f.cast(number, x.type)


def _fold(instruction: str) -> Primitive:
    def combine(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        a, b = xs[0], f.cast(xs[1], xs[0].type)
        if a.type in PARTS:
            return f.by_parts(a.type, lambda *parts: combine(f, parts), a, b)
        return Scalar(a.type, f.emit(f"{instruction} {REASSOCIATE} {LLVM[a.type]} {a.ref}, {b.ref}"))

    return combine


def _times(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    """A product that is rounded, as it may not be contracted with a sum."""
    x, y = xs
    return Scalar(x.type, f.emit(f"fmul {LLVM[x.type]} {x.ref}, {f.cast(y, x.type).ref}"))


def _wrapping(sign: str) -> Primitive:
    def combine(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        return f.wrapping(sign, xs[0], xs[1])

    return combine


def _intrinsic(name: str, arity: int, flags: str = CONTRACT) -> Primitive:
    """An LLVM intrinsic on floats of either width, with operands of the type of the first."""

    def apply(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        x = xs[0] if xs[0].type in FLOATS else f.cast(xs[0], "f64")
        t = LLVM[x.type]
        symbol = f"llvm.{name}.{x.type}"
        f.module.declare(symbol, t, [t] * arity)
        operands = ", ".join(f"{t} {f.cast(y, x.type).ref}" for y in (x, *xs[1:]))
        return Scalar(x.type, f.emit(f"call {flags} {t} @{symbol}({operands})"))

    return apply


def _library(name: str, arity: int = 1) -> Primitive:
    """A function of the C library, which has one for each width."""

    def apply(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        t = "f32" if all(x.type == "f32" for x in xs) else "f64"
        symbol = name + "f" * (t == "f32")
        f.module.declare(symbol, LLVM[t], [LLVM[t]] * arity)
        operands = ", ".join(f"{LLVM[t]} {f.cast(x, t).ref}" for x in xs)
        return Scalar(t, f.emit(f"call {LLVM[t]} @{symbol}({operands})"))

    return apply


def _bits(source: str, target: str) -> Primitive:
    return lambda f, xs: Scalar(
        target, f.emit(f"bitcast {LLVM[source]} {f.cast(xs[0], source).ref} to {LLVM[target]}"))


def _absolute(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    (x,) = xs
    if x.type in FLOATS:
        return _intrinsic("fabs", 1)(f, xs)
    if x.type[0] == "u":
        return x
    x = f.cast(x, "i64")
    return f.select(f.compare("<", x, f.constant("i64", 0)), f.binary("-", f.constant("i64", 0), x, True), x)


def _extreme(sign: str) -> Primitive:
    def choose(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        x, y = xs
        return f.select(f.compare(sign, x, y), x, y)

    return choose


def _fold_extreme(name: str) -> Primitive:
    """The step of a search for the greatest or least float. What is searched is frozen: of a choice that may be -inf
    LLVM makes one between results, in which it sees no search that it could vectorize."""

    def combine(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        a, b = xs
        t = LLVM[a.type]
        frozen = Scalar(a.type, f.emit(f"freeze {t} {f.cast(b, a.type).ref}"))
        return _intrinsic(name, 2, "nsz")(f, [a, frozen])

    return combine


def _ordered(name: str, sign: str) -> Primitive:
    """The greater or lesser of two floats, nan if either is; which of two zeros is left open. x86 has one instruction
    that gives its second operand where one is nan, so the first is asked for nans: a number needs none, and what is
    no extreme itself does not wait for others."""
    usual = _intrinsic(name, 2, "nsz")

    def choose(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        t = xs[0].type if xs[0].type in FLOATS else "f64"
        x, y = (f.cast(z, t) for z in xs)
        if x.number is not None or x.ref in f.extremes:
            x, y = y, x
        if y.number == 0:
            above = f.emit(f"fcmp u{sign} {LLVM[t]} {x.ref}, {y.ref}")
            return f.select(Scalar("bool", above), x, y)
        found = usual(f, [x, y])
        f.extremes.add(found.ref)
        return found

    return choose


def _to_int(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    """Toward zero; the least i64 outside its range."""
    x = f.cast(xs[0], "f64")
    low, high = f.constant("f64", -(2.0**63)).ref, f.constant("f64", 2.0**63).ref
    inside = f.emit(f"and i1 {f.emit(f'fcmp oge double {x.ref}, {low}')}, {f.emit(f'fcmp olt double {x.ref}, {high}')}")
    safe = f.emit(f"select i1 {inside}, double {x.ref}, double 0.0")
    found = f.emit(f"fptosi double {safe} to i64")
    return Scalar("i64", f.emit(f"select i1 {inside}, i64 {found}, i64 {-(2**63)}"))


def _from_half(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    half = f.emit(f"bitcast i16 {f.cast(xs[0], 'u16').ref} to half")
    return Scalar("f32", f.emit(f"fpext half {half} to float"))


def _to_half(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    (x,) = xs
    single = _to_odd(f, x) if x.type == "f64" and x.number is None else f.cast(x, "f32").ref
    half = f.emit(f"fptrunc float {single} to half")
    return Scalar("u16", f.emit(f"bitcast half {half} to i16"))


def _to_odd(f: Instructions, x: Scalar) -> str:
    """A double as a float, toward zero and with the last bit set where it is inexact: rounded once more, to half
    precision, it is what rounding once gives. Nor does LLVM make one conversion of the two: that is a call of a
    function which no library of the process needs to have.
    """
    near = f.emit(f"fptrunc double {x.ref} to float")
    there, back = f.emit(f"bitcast double {x.ref} to i64"), f.emit(f"fpext float {near} to double")
    back = f.emit(f"bitcast double {back} to i64")
    above = f.emit(f"zext i1 {f.emit(f'icmp ugt i64 {back}, {there}')} to i32")
    inexact = f.emit(f"zext i1 {f.emit(f'icmp ne i64 {back}, {there}')} to i32")
    below = f.emit(f"sub i32 {f.emit(f'bitcast float {near} to i32')}, {above}")
    return f.emit(f"bitcast i32 {f.emit(f'or i32 {below}, {inexact}')} to float")


def _remainder(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    x, y = xs
    return Scalar(x.type, f.emit(f"frem {LLVM[x.type]} {x.ref}, {f.cast(y, x.type).ref}"))


def _width(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    return f.constant("i64", width(xs[0].type))


def _of_scipy(key: str) -> Primitive:
    """A special function of SciPy's. Its flag says not to look for an override, its null not to look for options."""
    routine = Routine.of(key)

    def apply(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        given = [_to_int(f, [x]) if t == "l" else f.cast(x, "f64") for t, x in zip(routine.takes, xs)]
        types = [LLVM[x.type] for x in given]
        operands = ", ".join(f"{t} {x.ref}" for t, x in zip(types, given, strict=True))
        name = symbol(key)
        if not routine.gives:
            null = routine.takes.endswith("o")
            f.module.declare(name, "double", [*types, "i32", *["ptr"] * null])
            return Scalar("f64", f.emit(f"call double @{name}({operands}, i32 0{', ptr null' * null})"))
        f.module.declare(name, "void", [*types, *["ptr"] * routine.gives])
        places = [f"%o{k}" for k in range(routine.gives)]
        passed = ", ".join([*(f"{t} %{k}" for k, t in enumerate(types)), *(f"ptr {p}" for p in places)])
        body = [*(f"{p} = alloca double" for p in places), f"call void @{name}({passed})",
                f"%found = load double, ptr {places[routine.which]}", "ret double %found"]
        f.module.declare(f"symc_result_of_{key}", "double", types, body)
        return Scalar("f64", f.emit(f"call double @symc_result_of_{key}({operands})"))

    return apply


def _memory(f: Instructions, xs: Sequence[Value]) -> Pointer:
    t = xs[0].element if isinstance(xs[0], Pointer) else xs[0]
    f.count += 1
    f.head.append(f"  %v{f.count} = alloca [{xs[1].ref} x {LLVM[t]}]\n")
    return Pointer(t, f"%v{f.count}")


def _pointer(f: Instructions, xs: Sequence[Value]) -> Pointer:
    return Pointer(xs[0], f.emit(f"inttoptr i64 {xs[1].ref} to ptr"))


def _address(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    return Scalar("i64", f.emit(f"ptrtoint ptr {xs[0].ref} to i64"))


def _word(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    return Scalar("i64", f.emit(f"load i64, ptr {xs[0].ref}, align 1"))


def _atomic(name: str) -> Primitive:
    def apply(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        place, *given = xs
        words = [f"i64 {f.cast(x, 'u64').ref}" for x in given]
        if name == "store":
            f.lines.append(f"  store atomic {words[0]}, ptr {place.ref} seq_cst, align 8\n")
            return given[0]
        if name == "exchange":
            pair = f.emit(f"cmpxchg ptr {place.ref}, {words[0]}, {words[1]} seq_cst seq_cst")
            return Scalar("bool", f.emit(f"extractvalue {{ i64, i1 }} {pair}, 1"))
        text = (f"load atomic i64, ptr {place.ref} seq_cst, align 8" if name == "load"
                else f"atomicrmw add ptr {place.ref}, {words[0]} seq_cst")
        return Scalar("u64", f.emit(text))

    return apply


def _complex(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
    return f.pair("c64" if all(x.type == "f32" for x in xs) else "c128", xs[0], xs[1])


def _of_c(symbol: str, arity: int = 1) -> Primitive:
    """A function of the C library of ``double complex``: parts in registers. The result has the type of the first."""

    def apply(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        f.module.declare(symbol, LLVM["c128"], ["double"] * (2 * arity))
        given = [f.cast(f.part(x, k), "f64").ref for x in xs for k in (0, 1)]
        found = f.emit(f"call {LLVM['c128']} @{symbol}({', '.join(f'double {x}' for x in given)})")
        return f.cast(Scalar("c128", found), xs[0].type)

    return apply


_MATH = ("log", "exp", "log1p", "expm1", "sin", "cos", "tan", "lgamma")
#: Those of complex numbers that are dear without vectors, too; of others loops vectorize (``library.complex_parts``).
_OF_COMPLEX = ("tan", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh")

#: By the name that a text calls it.
PRIMITIVES: dict[str, Primitive] = {
    **{t: _cast_to(t) for t in LLVM if t != "bool"},
    "int": _cast_to("i64"),
    "like": _like,
    "abs": _absolute,
    "min": _extreme("<"),
    "max": _extreme(">"),
    "bits": _width,
    "times": _times,
    "fold_add": _fold("fadd"),
    "fold_mul": _fold("fmul"),
    "fold_maximum": _fold_extreme("maximum"),
    "fold_minimum": _fold_extreme("minimum"),
    "wrap_add": _wrapping("+"),
    "wrap_sub": _wrapping("-"),
    "wrap_mul": _wrapping("*"),
    "maximum": _ordered("maximum", "gt"),
    "minimum": _ordered("minimum", "lt"),
    "copysign": _intrinsic("copysign", 2),
    "fma": _intrinsic("fma", 3),
    **{name: _intrinsic(name, 1) for name in ("rint", "floor", "ceil", "trunc")},
    "fmod": _remainder,
    "from_half": _from_half,
    "to_half": _to_half,
    "to_int": _to_int,
    "memory": _memory,
    "pointer": _pointer,
    "address": _address,
    **{f"atomic_{name}": _atomic(name) for name in ("load", "store", "add", "exchange")},
    "unlikely": lambda f, xs: f.truth(xs[0]),
    "word": _word,
    "polled": lambda f, xs: Scalar("bool", f.emit(f.module.polled(xs[0]))),
    "bits64": _bits("f64", "i64"),
    "float64_of": _bits("i64", "f64"),
    "bits32": _bits("f32", "i32"),
    "float32_of": _bits("i32", "f32"),
    "math.sqrt": _intrinsic("sqrt", 1),
    "math.copysign": _intrinsic("copysign", 2),
    **{f"math.{name}": _library(name) for name in _MATH},
    "math.gamma": _library("tgamma"),
    "math.pow": _library("pow", 2),
    "math.hypot": _library("hypot", 2),
    "math.atan2": _library("atan2", 2),
    "complex": _complex,
    **{f"c_{name}": _of_c(f"c{name}") for name in _OF_COMPLEX},
    "_cpow": _of_c("cpow", 2),
}


def _of_user(name: str, c: CFunction) -> Primitive:
    """A user's function of C, whose numbers are cast to what it takes."""

    def apply(f: Instructions, xs: Sequence[Scalar]) -> Scalar:
        given = [_for_c(f, t, x) for t, x in zip(c.takes, xs, strict=True)]
        result = {"d": "f64", "f": "f32"}[c.gives]
        f.module.declare(c_symbol(name), LLVM[result], [t for t, _ in given])
        operands = ", ".join(f"{t} {x}" for t, x in given)
        return Scalar(result, f.emit(f"call {LLVM[result]} @{c_symbol(name)}({operands})"))

    return apply


def _for_c(f: Instructions, letter: str, x: Scalar) -> tuple[str, str]:
    """A number as a parameter of a type in C."""
    if letter in "df":
        found = f.cast(x, "f64" if letter == "d" else "f32")
        return LLVM[found.type], found.ref
    whole, bits = _to_int(f, [x]).ref, 8 * np.dtype(letter).itemsize
    extended = ("" if bits >= 32 else " zeroext" if letter.isupper() else " signext")
    return f"i{bits}{extended}", whole if bits == 64 else f.emit(f"trunc i64 {whole} to i{bits}")


def primitive(name: str) -> Primitive | None:
    """The primitive of this name; None for a helper."""
    c = c_function(name)
    if c is not None:
        return _of_user(name, c)
    return _of_scipy(name.removeprefix(IN_TEXT)) if name.startswith(IN_TEXT) else PRIMITIVES.get(name)
