"""Scalars of the language as expressions of C: nested texts, each of the type that the rules say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from symc.codegen.c.prelude import TYPES
from symc.codegen.language.expressions import Primitive
from symc.codegen.language.helpers import Helper
from symc.codegen.language.statements import Statements
from symc.codegen.language.typed import FLOATS, PARTS, Scalar, width


def bare(text: str) -> str:
    """A text without parentheses around all of it."""
    if text[0] != "(":
        return text
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[1:-1] if k == len(text) - 1 else text
    return text


def literal(t: str, x: Any) -> str:
    """A number of a type."""
    if t == "bool":
        return "true" if x else "false"
    if t in PARTS:
        return f"CMPLX{'F' * (t == 'c64')}({literal(PARTS[t], x.real)}, {literal(PARTS[t], x.imag)})"
    if t in FLOATS:
        if not math.isfinite(x):
            text = "NAN" if x != x else "INFINITY"
        else:
            text = (str(np.float32(abs(x))) + "f") if t == "f32" else repr(abs(x))
        return f"(-{text})" if math.copysign(1.0, x) < 0 else text
    if t == "u64":
        return f"UINT64_C({x})"
    text = "INT64_MIN" if x == -(2**63) else str(x)
    return text if x >= 0 else f"({text})"


class Declarations(Protocol):
    """Needs of a function in the text that it is in."""

    def need(self, name: str) -> str: ...
    def table(self, numbers: Sequence[str], t: str) -> str: ...
    def helper(self, helper: Helper, types: tuple[str, ...]) -> tuple[str, Any]: ...
    def meaning(self, name: str) -> Any: ...


class Texts(Statements):
    """Spells scalars. ``wraps``: integers are data, of which any may be too large: overflow has no meaning in C, also
    where the result is not used. Elsewhere they count elements, and compilers know that these do not overflow."""

    unit: Declarations
    wraps = False

    def spelled(self, t: str, x: Any) -> str:
        return literal(t, x)

    def converted(self, x: Scalar, t: str) -> str:
        return f"({x.ref} != 0)" if t == "bool" else f"({TYPES[t]}){x.ref}"

    def operation(self, sign: str, t: str, x: str, y: str, wraps: bool) -> str:
        if t == "i64" and sign in ("//", "%"):
            return f"{self.unit.need('floor_divide' if sign == '//' else 'floor_modulo')}({bare(x)}, {bare(y)})"
        if t == "i64" and (sign == "<<" or (wraps or self.wraps) and sign in "+-*"):
            return f"(int64_t)((uint64_t){x} {sign} (uint64_t){y})"
        return f"({x} {sign[0] if sign == '//' else sign} {y})"

    def comparison(self, sign: str, t: str, x: str, y: str) -> str:
        return f"({x} {sign} {y})"

    def selected(self, condition: str, t: str, x: str, y: str) -> str:
        return f"({condition} ? {x} : {y})"

    def unary(self, sign: str, t: str, x: str) -> str:
        return f"(-{x})" if sign == "-" else f"!{x}" if t == "bool" else f"(~{x})"

    def joined(self, how: str, x: str, y: str) -> str:
        return f"({x} {'&&' if how == 'and' else '||'} {y})"

    def pair(self, t: str, real: Scalar, imag: Scalar) -> Scalar:
        parts = [bare(self.cast(x, PARTS[t]).ref) for x in (real, imag)]
        return Scalar(t, f"CMPLX{'F' * (t == 'c64')}({', '.join(parts)})")

    def part_of(self, x: Scalar, k: int) -> str:
        return f"{('creal', 'cimag')[k]}{'f' * (x.type == 'c64')}({bare(x.ref)})"

    def primitive(self, name: str) -> Primitive | None:
        return PRIMITIVES.get(name)


def _cast_to(t: str) -> Primitive:
    return lambda f, xs: f.cast(xs[0], t)


def _called(name: str, t: str, *xs: Scalar) -> Scalar:
    return Scalar(t, f"{name}({', '.join(bare(x.ref) for x in xs)})")


def _of_float(name: str) -> Primitive:
    """A function of math.h in the type of the first operand."""

    def apply(f: Texts, xs: Sequence[Scalar]) -> Scalar:
        t = xs[0].type if xs[0].type in FLOATS else "f64"
        return _called(name + "f" * (t == "f32"), t, *[f.cast(x, t) for x in xs])

    return apply


def _library(name: str) -> Primitive:
    """A function of math.h: of floats if all operands are."""

    def apply(f: Texts, xs: Sequence[Scalar]) -> Scalar:
        t = "f32" if all(x.type == "f32" for x in xs) else "f64"
        return _called(name + "f" * (t == "f32"), t, *[f.cast(x, t) for x in xs])

    return apply


def _folded(sign: str) -> Primitive:
    def combine(f: Texts, xs: Sequence[Scalar]) -> Scalar:
        return f.binary(sign, xs[0], f.cast(xs[1], xs[0].type))

    return combine


def _rounded(f: Texts, xs: Sequence[Scalar]) -> Scalar:
    """A product plus a zero that compilers do not know: where they contract, they contract these."""
    x, y = xs
    product = f.binary("*", x, y)
    t = product.type
    return _called(f.unit.need(f"times_{t}"), t, f.cast(x, t), f.cast(y, t)) if t in FLOATS else product


def _extreme(name: str) -> Primitive:
    """Nan if either is; -0.0 is less than 0.0, but in folds."""

    def choose(f: Texts, xs: Sequence[Scalar]) -> Scalar:
        t = xs[0].type if xs[0].type in FLOATS else "f64"
        return _called(f.unit.need(f"{name}_{t}"), t, *[f.cast(x, t) for x in xs])

    return choose


def _chosen(name: str) -> Primitive:
    """The first of two if it is less, or greater."""

    def choose(f: Texts, xs: Sequence[Scalar]) -> Scalar:
        t = f.select(f.constant("bool", True), *xs).type
        t = "i64" if t == "bool" else t
        return _called(f.unit.need(f"{name}_{t}"), t, *[f.cast(x, t) for x in xs])

    return choose


def _wrapping(sign: str) -> Primitive:
    return lambda f, xs: Scalar("i64", f.operation(sign, "i64", *[f.cast(x, "i64").ref for x in xs], True))


def _prelude(name: str, operand: str, result: str) -> Primitive:
    return lambda f, xs: _called(f.unit.need(name), result, f.cast(xs[0], operand))


def _absolute(f: Texts, xs: Sequence[Scalar]) -> Scalar:
    (x,) = xs
    if x.type in FLOATS:
        return _called("fabsf" if x.type == "f32" else "fabs", x.type, x)
    return x if x.type[0] == "u" else _called(f.unit.need("absolute"), "i64", f.cast(x, "i64"))


def _to_half(f: Texts, xs: Sequence[Scalar]) -> Scalar:
    x = xs[0] if xs[0].type == "f64" and xs[0].number is None else f.cast(xs[0], "f32")
    return _called(f.unit.need(f"to_half_{x.type}"), "u16", x)


#: By the name that a text calls it. Functions of complex numbers are the library's own.
PRIMITIVES: dict[str, Primitive] = {
    **{t: _cast_to(t) for t in TYPES if t != "bool"},
    "int": _cast_to("i64"),
    "like": lambda f, xs: f.cast(xs[1], xs[0].type),
    "abs": _absolute,
    "min": _chosen("min"),
    "max": _chosen("max"),
    "bits": lambda f, xs: f.constant("i64", width(xs[0].type)),
    "times": _rounded,
    "fold_add": _folded("+"),
    "fold_mul": _folded("*"),
    "fold_maximum": _extreme("fold_maximum"),
    "fold_minimum": _extreme("fold_minimum"),
    "maximum": _extreme("maximum"),
    "minimum": _extreme("minimum"),
    "wrap_add": _wrapping("+"),
    "wrap_sub": _wrapping("-"),
    "wrap_mul": _wrapping("*"),
    "copysign": _of_float("copysign"),
    "fma": _of_float("fma"),
    "fmod": _of_float("fmod"),
    "rint": _of_float("rint"),
    "floor": _of_float("floor"),
    "ceil": _of_float("ceil"),
    "trunc": _of_float("trunc"),
    "to_int": _prelude("to_int", "f64", "i64"),
    "from_half": _prelude("from_half", "u16", "f32"),
    "to_half": _to_half,
    "bits64": _prelude("bits64", "f64", "i64"),
    "float64_of": _prelude("float64_of", "i64", "f64"),
    "bits32": _prelude("bits32", "f32", "i32"),
    "float32_of": _prelude("float32_of", "i32", "f32"),
    "polled": lambda f, xs: f.constant("bool", False),
    "memory": lambda f, xs: f.memory(*xs),
    "complex": lambda f, xs: f.pair("c64" if all(x.type == "f32" for x in xs) else "c128", *xs),
    "math.sqrt": _of_float("sqrt"),
    "math.copysign": _of_float("copysign"),
    "math.log": _library("log"),
    "math.exp": _library("exp"),
    "math.log1p": _library("log1p"),
    "math.expm1": _library("expm1"),
    "math.sin": _library("sin"),
    "math.cos": _library("cos"),
    "math.tan": _library("tan"),
    "math.lgamma": _library("lgamma"),
    "math.gamma": _library("tgamma"),
    "math.pow": _library("pow"),
    "math.hypot": _library("hypot"),
    "math.atan2": _library("atan2"),
}
