"""Scalars of kernel texts as LLVM: their types, constants, conversions, arithmetic and comparisons.

The types are those that Numba gives the same text, so that both compilers mean the same: integers of fewer than 64 bits
become 64 bits wide in arithmetic, a number without a dtype is i64 or f64, f32 with an integer is f64.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.codegen.cpu.text import Unsupported
from symc.ir.record import dataclass


@dataclass(frozen=True)
class Scalar:
    """A scalar in a function being written. ``ref``: what LLVM calls it; ``number``: its value, if it is a literal."""

    type: str
    ref: str
    number: int | float | None = None


FLOATS = ("f32", "f64")
#: Of complex numbers the type of their parts.
PARTS = {"c64": "f32", "c128": "f64"}
LLVM = {"bool": "i1", "f32": "float", "f64": "double", "c64": "{ float, float }", "c128": "{ double, double }"} | {
    f"{sign}{width}": f"i{width}" for sign in "iu" for width in (8, 16, 32, 64)}
#: What a kernel may assume of every floating point instruction, and of those that a fold combines with.
CONTRACT, REASSOCIATE = "contract", "reassoc nsz contract"
#: Writes an instruction and returns the name of its result.
Emit = Callable[[str], str]


def width(t: str) -> int:
    return 1 if t == "bool" else int(t[1:])


def constant(t: str, x: Any) -> Scalar:
    """A number of a type."""
    if t in FLOATS:
        x = float(np.float32(x)) if t == "f32" else float(x)
        return Scalar(t, _bits(x), x)
    if t == "bool":
        return Scalar(t, "true" if x else "false", int(bool(x)))
    x = int(x) % 2 ** width(t)
    x -= 2 ** width(t) * (t[0] == "i" and x >= 2 ** (width(t) - 1))
    return Scalar(t, str(x), x)


def _bits(x: float) -> str:
    if x == 0.0 and math.copysign(1.0, x) > 0:
        return "0.0"
    return f"0x{struct.unpack('>Q', struct.pack('>d', x))[0]:016X}"


def literal(x: Any) -> Scalar:
    """A Python or NumPy number, typed as Numba types it."""
    if isinstance(x, bool | np.bool_):
        return constant("bool", x)
    if isinstance(x, np.generic):
        kind = {"i": "i", "u": "u", "f": "f"}.get(x.dtype.kind)
        if kind is None:
            raise Unsupported(f"a constant of {x.dtype}")
        return constant(f"{kind}{x.dtype.itemsize * 8}", x)
    if isinstance(x, int):
        return constant("i64" if x < 2**63 else "u64", x)
    if isinstance(x, float):
        return constant("f64", x)
    raise Unsupported(f"a constant {type(x).__name__}")


def pair(emit: Emit, t: str, real: Scalar, imag: Scalar) -> Scalar:
    """A complex number of its parts."""
    part = PARTS[t]
    first = emit(f"insertvalue {LLVM[t]} undef, {LLVM[part]} {cast(emit, real, part).ref}, 0")
    return Scalar(t, emit(f"insertvalue {LLVM[t]} {first}, {LLVM[part]} {cast(emit, imag, part).ref}, 1"))


def part(emit: Emit, x: Scalar, k: int) -> Scalar:
    """The real (0) or imaginary part (1) of a number."""
    if x.type not in PARTS:
        return constant("f64", 0.0) if k else x
    return Scalar(PARTS[x.type], emit(f"extractvalue {LLVM[x.type]} {x.ref}, {k}"))


def by_parts(emit: Emit, t: str, of: Callable[..., Scalar], *xs: Scalar) -> Scalar:
    """The complex number whose parts are what ``of`` gives for the parts of others."""
    return pair(emit, t, *[of(emit, *[part(emit, x, k) for x in xs]) for k in (0, 1)])


def cast(emit: Emit, x: Scalar, t: str) -> Scalar:
    """x as a number of type ``t``."""
    s = x.type
    if s == t:
        return x
    if t in PARTS:
        return by_parts(emit, t, lambda emit, y: cast(emit, y, PARTS[t]), x)
    if s in PARTS:
        if t != "bool":
            raise Unsupported(f"{t} of a complex number")
        return compare(emit, "!=", x, constant("f64", 0.0))
    if x.number is not None and not (s in FLOATS and t not in FLOATS):
        return constant(t, x.number)
    a, b = LLVM[s], LLVM[t]
    if t == "bool":
        return Scalar(t, emit(f"fcmp une {a} {x.ref}, 0.0" if s in FLOATS else f"icmp ne {a} {x.ref}, 0"))
    if s in FLOATS and t in FLOATS:
        return Scalar(t, emit(f"{'fpext' if t == 'f64' else 'fptrunc'} {a} {x.ref} to {b}"))
    if s in FLOATS:
        return Scalar(t, emit(f"{'fptosi' if t[0] == 'i' else 'fptoui'} {a} {x.ref} to {b}"))
    if t in FLOATS:
        return Scalar(t, emit(f"{'sitofp' if s[0] == 'i' else 'uitofp'} {a} {x.ref} to {b}"))
    if width(s) == width(t):
        return Scalar(t, x.ref)
    how = "trunc" if width(s) > width(t) else "sext" if s[0] == "i" else "zext"
    return Scalar(t, emit(f"{how} {a} {x.ref} to {b}"))


def common(x: Scalar, y: Scalar) -> str:
    """The type in which two numbers are combined."""
    a, b = x.type, y.type
    if a == b and (a in FLOATS or a in PARTS or a == "bool"):
        return a
    if a in PARTS or b in PARTS:
        return "c64" if {a, b} == {"c64", "f32"} else "c128"
    if a in FLOATS or b in FLOATS:
        floats = {t for t in (a, b) if t in FLOATS}
        small = all(t in FLOATS or t != "bool" and width(t) <= 16 or t == "bool" for t in (a, b))
        return "f32" if floats == {"f32"} and small else "f64"
    if a == b == "u64" or "u64" in (a, b) and all(t == "u64" or v.number is not None and v.number >= 0
                                                 for t, v in ((a, x), (b, y))):
        return "u64"
    if a[0] == b[0] == "u":
        return "u64"
    if "u64" in (a, b) and "i" in (a[0], b[0]):
        raise Unsupported("u64 with a signed integer")
    return "i64"


_INT = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}


def binary(emit: Emit, sign: str, x: Scalar, y: Scalar, wraps: bool = False) -> Scalar:
    """``x sign y``. ``wraps``: integers may overflow; elsewhere what happens then is left open, as by Numba."""
    if sign in ("<<", ">>"):
        t = x.type if x.type == "u64" else "u64" if x.type[0] == "u" else "i64"
        how = "shl" if sign == "<<" else "lshr" if t == "u64" else "ashr"
        return Scalar(t, emit(f"{how} i64 {cast(emit, x, t).ref}, {cast(emit, y, t).ref}"))
    t = common(x, y)
    if t == "bool" and sign not in "&|^":
        t = "i64"
    if sign == "/" and t not in FLOATS:
        t = "f64"
    a, b = cast(emit, x, t), cast(emit, y, t)
    if t in PARTS:
        return _complex(emit, sign, a, b)
    if t in FLOATS:
        if sign not in _FLOAT:
            raise Unsupported(f"{sign} of floats")
        return Scalar(t, emit(f"{_FLOAT[sign]} {CONTRACT} {LLVM[t]} {a.ref}, {b.ref}"))
    if sign in ("//", "%"):
        return _divide(emit, sign, a, b)
    if a.number is not None and b.number is not None and sign in "+-*" and t == "i64":
        return constant(t, {"+": a.number + b.number, "-": a.number - b.number, "*": a.number * b.number}[sign])
    open_ = " nsw" if t == "i64" and sign in "+-*" and not wraps else ""
    return Scalar(t, emit(f"{_INT[sign]}{open_} {LLVM[t]} {a.ref}, {b.ref}"))


def _complex(emit: Emit, sign: str, x: Scalar, y: Scalar) -> Scalar:
    if sign in "+-":
        return by_parts(emit, x.type, lambda emit, a, b: binary(emit, sign, a, b), x, y)
    if sign != "*":
        raise Unsupported(f"{sign} of complex numbers")
    (a, b), (c, d) = ([part(emit, z, k) for k in (0, 1)] for z in (x, y))
    rows = (("-", (a, c), (b, d)), ("+", (a, d), (b, c)))
    return pair(emit, x.type, *[binary(emit, how, binary(emit, "*", *p), binary(emit, "*", *q)) for how, p, q in rows])


def _divide(emit: Emit, sign: str, a: Scalar, b: Scalar) -> Scalar:
    """Integers divided downwards. The divisor is not 0."""
    if a.type == "u64":
        return Scalar("u64", emit(f"{'udiv' if sign == '//' else 'urem'} i64 {a.ref}, {b.ref}"))
    q, r = emit(f"sdiv i64 {a.ref}, {b.ref}"), emit(f"srem i64 {a.ref}, {b.ref}")
    off = emit(f"icmp ne i64 {r}, 0")
    other = emit(f"icmp slt i64 {emit(f'xor i64 {r}, {b.ref}')}, 0")
    wrong = emit(f"and i1 {off}, {other}")
    if sign == "//":
        return Scalar("i64", emit(f"sub i64 {q}, {emit(f'zext i1 {wrong} to i64')}"))
    more = emit(f"select i1 {wrong}, i64 {b.ref}, i64 0")
    return Scalar("i64", emit(f"add i64 {r}, {more}"))


_FCMP = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
_ICMP = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def compare(emit: Emit, sign: str, x: Scalar, y: Scalar) -> Scalar:
    """A truth. A float is compared with a literal in its own dtype where that is the same number there."""
    for a, b in ((x, y), (y, x)):
        if a.type == "f32" and b.number is not None and float(np.float32(b.number)) == b.number:
            x, y = cast(emit, x, "f32"), cast(emit, y, "f32")
    if {x.type[0], y.type[0]} == {"u", "i"} and "u64" in (x.type, y.type) and x.number is None and y.number is None:
        return _compare_mixed(emit, sign, x, y)
    t = common(x, y)
    a, b = cast(emit, x, t), cast(emit, y, t)
    if t in PARTS:
        how = {"==": "and", "!=": "or"}.get(sign)
        if how is None:
            raise Unsupported(f"{sign} of complex numbers")
        real, imag = (compare(emit, sign, part(emit, a, k), part(emit, b, k)).ref for k in (0, 1))
        return Scalar("bool", emit(f"{how} i1 {real}, {imag}"))
    if t in FLOATS:
        return Scalar("bool", emit(f"fcmp {_FCMP[sign]} {LLVM[t]} {a.ref}, {b.ref}"))
    how = _ICMP[sign]
    prefix = "" if how in ("eq", "ne") else "s" if t[0] == "i" else "u"
    return Scalar("bool", emit(f"icmp {prefix}{how} {LLVM[t]} {a.ref}, {b.ref}"))


def _compare_mixed(emit: Emit, sign: str, x: Scalar, y: Scalar) -> Scalar:
    """An unsigned with a signed integer: a negative one is less than all."""
    signed = x if x.type[0] == "i" else y
    negative = emit(f"icmp slt i64 {cast(emit, signed, 'i64').ref}, 0")
    plain = compare(emit, sign, cast(emit, x, "u64"), cast(emit, y, "u64"))
    truth = {"==": False, "!=": True}.get(sign, (sign in ("<", "<=")) == (signed is x))
    return Scalar("bool", emit(f"select i1 {negative}, i1 {str(truth).lower()}, i1 {plain.ref}"))


def select(emit: Emit, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """x where the condition holds, else y."""
    t = x.type if x.type == y.type else common(x, y)
    a, b = cast(emit, x, t), cast(emit, y, t)
    if t in PARTS:
        return by_parts(emit, t, lambda emit, p, q: select(emit, condition, p, q), a, b)
    return Scalar(t, emit(f"select i1 {condition.ref}, {LLVM[t]} {a.ref}, {LLVM[t]} {b.ref}"))


def negative(emit: Emit, x: Scalar) -> Scalar:
    if x.number is not None and x.type != "bool":
        return constant(x.type, -x.number)
    if x.type in PARTS:
        return by_parts(emit, x.type, negative, x)
    if x.type in FLOATS:
        return Scalar(x.type, emit(f"fneg {CONTRACT} {LLVM[x.type]} {x.ref}"))
    return binary(emit, "-", constant("u64" if x.type[0] == "u" else "i64", 0), x)
