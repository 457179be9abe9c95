"""Primitives of kernel texts, which are no helpers in Python: conversions, LLVM's intrinsics, functions of the C
library.

``numba_primitives`` says the same to Numba. A primitive is a function of (emit, declare, scalars) that returns a
scalar; ``declare(name, result, operands)`` makes an external function known to the module, or one with a body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symc.codegen.kernel.c_functions import CFunction
from symc.codegen.kernel.user_functions import c_function, c_symbol
from symc.ir.facts import Routine
from symc.runtime.compilers.llvm_scalars import (
    CONTRACT,
    FLOATS,
    LLVM,
    REASSOCIATE,
    Emit,
    Scalar,
    binary,
    cast,
    compare,
    constant,
    pair,
    part,
    select,
    width,
)
from symc.runtime.cpu.scipy_functions import IN_TEXT, symbol

Declare = Callable[..., None]
Primitive = Callable[[Emit, Declare, Sequence[Scalar]], Scalar]


def _cast_to(t: str) -> Primitive:
    return lambda emit, declare, xs: cast(emit, xs[0], t)


def _like(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
    x, number = xs
    return cast(emit, number, x.type)


def _fold(instruction: str) -> Primitive:
    def combine(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
        a, b = xs
        b = cast(emit, b, a.type)
        return Scalar(a.type, emit(f"{instruction} {REASSOCIATE} {LLVM[a.type]} {a.ref}, {b.ref}"))

    return combine


def _times(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
    """A product that is rounded, as it may not be contracted with a sum."""
    x, y = xs
    return Scalar(x.type, emit(f"fmul {LLVM[x.type]} {x.ref}, {cast(emit, y, x.type).ref}"))


def _wrapping(sign: str) -> Primitive:
    def combine(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
        a, b = (cast(emit, x, "i64") for x in xs)
        return binary(emit, sign, a, b, wraps=True)

    return combine


def _intrinsic(name: str, arity: int, flags: str = CONTRACT) -> Primitive:
    """An LLVM intrinsic on floats of either width, with operands of the type of the first."""

    def apply(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
        x = xs[0] if xs[0].type in FLOATS else cast(emit, xs[0], "f64")
        t = LLVM[x.type]
        symbol = f"llvm.{name}.{x.type}"
        declare(symbol, t, [t] * arity)
        operands = ", ".join(f"{t} {cast(emit, y, x.type).ref}" for y in (x, *xs[1:]))
        return Scalar(x.type, emit(f"call {flags} {t} @{symbol}({operands})"))

    return apply


def _library(name: str, arity: int = 1) -> Primitive:
    """A function of the C library, which has one for each width."""

    def apply(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
        t = "f32" if all(x.type == "f32" for x in xs) else "f64"
        symbol = name + "f" * (t == "f32")
        declare(symbol, LLVM[t], [LLVM[t]] * arity)
        operands = ", ".join(f"{LLVM[t]} {cast(emit, x, t).ref}" for x in xs)
        return Scalar(t, emit(f"call {LLVM[t]} @{symbol}({operands})"))

    return apply


def _bits(source: str, target: str) -> Primitive:
    return lambda emit, declare, xs: Scalar(
        target, emit(f"bitcast {LLVM[source]} {cast(emit, xs[0], source).ref} to {LLVM[target]}"))


def _absolute(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
    (x,) = xs
    if x.type in FLOATS:
        return _intrinsic("fabs", 1)(emit, declare, xs)
    if x.type[0] == "u":
        return x
    x = cast(emit, x, "i64")
    return select(emit, compare(emit, "<", x, constant("i64", 0)), binary(emit, "-", constant("i64", 0), x, True), x)


def _extreme(sign: str) -> Primitive:
    def choose(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
        x, y = xs
        return select(emit, compare(emit, sign, x, y), x, y)

    return choose


def _to_int(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
    """Toward zero; the least i64 outside its range."""
    x = cast(emit, xs[0], "f64")
    low, high = constant("f64", -(2.0**63)).ref, constant("f64", 2.0**63).ref
    inside = emit(f"and i1 {emit(f'fcmp oge double {x.ref}, {low}')}, {emit(f'fcmp olt double {x.ref}, {high}')}")
    safe = emit(f"select i1 {inside}, double {x.ref}, double 0.0")
    found = emit(f"fptosi double {safe} to i64")
    return Scalar("i64", emit(f"select i1 {inside}, i64 {found}, i64 {-(2**63)}"))


def _from_half(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
    half = emit(f"bitcast i16 {cast(emit, xs[0], 'u16').ref} to half")
    return Scalar("f32", emit(f"fpext half {half} to float"))


def _to_half(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
    (x,) = xs
    single = _to_odd(emit, x) if x.type == "f64" and x.number is None else cast(emit, x, "f32").ref
    half = emit(f"fptrunc float {single} to half")
    return Scalar("u16", emit(f"bitcast half {half} to i16"))


def _to_odd(emit: Emit, x: Scalar) -> str:
    """A double as a float, toward zero and with the last bit set where it is inexact: rounded once more, to half
    precision, it is what rounding once gives. Nor does LLVM make one conversion of the two: that is a call of a
    function which no library of the process needs to have.
    """
    near = emit(f"fptrunc double {x.ref} to float")
    there, back = emit(f"bitcast double {x.ref} to i64"), emit(f"fpext float {near} to double")
    back = emit(f"bitcast double {back} to i64")
    above = emit(f"zext i1 {emit(f'icmp ugt i64 {back}, {there}')} to i32")
    inexact = emit(f"zext i1 {emit(f'icmp ne i64 {back}, {there}')} to i32")
    below = emit(f"sub i32 {emit(f'bitcast float {near} to i32')}, {above}")
    return emit(f"bitcast i32 {emit(f'or i32 {below}, {inexact}')} to float")


def _remainder(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
    x, y = xs
    return Scalar(x.type, emit(f"frem {LLVM[x.type]} {x.ref}, {cast(emit, y, x.type).ref}"))


def _width(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
    return constant("i64", width(xs[0].type))


def _of_scipy(key: str) -> Primitive:
    """A special function of SciPy's. Its flag says not to look for an override, its null not to look for options."""
    routine = Routine.of(key)

    def apply(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
        given = [_to_int(emit, declare, [x]) if t == "l" else cast(emit, x, "f64") for t, x in zip(routine.takes, xs)]
        types = [LLVM[x.type] for x in given]
        operands = ", ".join(f"{t} {x.ref}" for t, x in zip(types, given, strict=True))
        name = symbol(key)
        if not routine.gives:
            null = routine.takes.endswith("o")
            declare(name, "double", [*types, "i32", *["ptr"] * null])
            return Scalar("f64", emit(f"call double @{name}({operands}, i32 0{', ptr null' * null})"))
        declare(name, "void", [*types, *["ptr"] * routine.gives])
        places = [f"%o{k}" for k in range(routine.gives)]
        passed = ", ".join([*(f"{t} %{k}" for k, t in enumerate(types)), *(f"ptr {p}" for p in places)])
        body = [*(f"{p} = alloca double" for p in places), f"call void @{name}({passed})",
                f"%found = load double, ptr {places[routine.which]}", "ret double %found"]
        declare(f"symc_result_of_{key}", "double", types, body)
        return Scalar("f64", emit(f"call double @symc_result_of_{key}({operands})"))

    return apply


def _complex(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
    return pair(emit, "c64" if all(x.type == "f32" for x in xs) else "c128", xs[0], xs[1])


def _of_c(symbol: str, arity: int = 1) -> Primitive:
    """A function of the C library of ``double complex``: parts in registers. The result has the type of the first."""

    def apply(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
        declare(symbol, LLVM["c128"], ["double"] * (2 * arity))
        given = [cast(emit, part(emit, x, k), "f64").ref for x in xs for k in (0, 1)]
        found = emit(f"call {LLVM['c128']} @{symbol}({', '.join(f'double {x}' for x in given)})")
        return cast(emit, Scalar("c128", found), xs[0].type)

    return apply


_MATH = ("log", "exp", "log1p", "expm1", "sin", "cos", "tan", "lgamma")
_OF_COMPLEX = ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh",
               "acosh", "atanh")

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
    "fold_maximum": _intrinsic("maximum", 2, "nsz"),
    "fold_minimum": _intrinsic("minimum", 2, "nsz"),
    "wrap_add": _wrapping("+"),
    "wrap_sub": _wrapping("-"),
    "wrap_mul": _wrapping("*"),
    "maximum": _intrinsic("maximum", 2),
    "minimum": _intrinsic("minimum", 2),
    "copysign": _intrinsic("copysign", 2),
    "fma": _intrinsic("fma", 3),
    **{name: _intrinsic(name, 1) for name in ("rint", "floor", "ceil", "trunc")},
    "fmod": _remainder,
    "from_half": _from_half,
    "to_half": _to_half,
    "to_int": _to_int,
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

    def apply(emit: Emit, declare: Declare, xs: Sequence[Scalar]) -> Scalar:
        given = [_for_c(emit, declare, t, x) for t, x in zip(c.takes, xs, strict=True)]
        result = {"d": "f64", "f": "f32"}[c.gives]
        declare(c_symbol(name), LLVM[result], [t for t, _ in given])
        return Scalar(result, emit(f"call {LLVM[result]} @{c_symbol(name)}({', '.join(f'{t} {x}' for t, x in given)})"))

    return apply


def _for_c(emit: Emit, declare: Declare, letter: str, x: Scalar) -> tuple[str, str]:
    """A number as a parameter of a type in C."""
    if letter in "df":
        found = cast(emit, x, "f64" if letter == "d" else "f32")
        return LLVM[found.type], found.ref
    whole, bits = _to_int(emit, declare, [x]).ref, 8 * np.dtype(letter).itemsize
    extended = ("" if bits >= 32 else " zeroext" if letter.isupper() else " signext")
    return f"i{bits}{extended}", whole if bits == 64 else emit(f"trunc i64 {whole} to i{bits}")


def primitive(name: str) -> Primitive | None:
    """The primitive of this name; None for a helper."""
    c = c_function(name)
    if c is not None:
        return _of_user(name, c)
    return _of_scipy(name.removeprefix(IN_TEXT)) if name.startswith(IN_TEXT) else PRIMITIVES.get(name)
