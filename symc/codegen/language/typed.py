"""Typed meaning of texts of the language: scalars, and the types of what is made of them.

The types are those that Numba gives the same text, so that all compilers mean the same: integers of fewer than 64 bits
become 64 bits wide in arithmetic, a number without a dtype is i64 or f64, f32 with an integer is f64. What LLVM and C
say for one operation on operands of one type is theirs (``Spelled``); all else is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from symc.codegen.language.syntax import Unsupported
from symc.ir.record import dataclass


@dataclass(frozen=True)
class Scalar:
    """A scalar in a function being written. ``ref``: what it is called there; ``number``: its value, if it is a
    literal."""

    type: str
    ref: str
    number: int | float | None = None


class Pointer:
    """An operand in memory, of elements of a type. ``note``: what is said of stores there."""

    note = ""

    def __init__(self, element: str, ref: str):
        self.element, self.ref = element, ref
        self.type = f"{element}*"


def of_type(t: str, ref: str) -> Scalar | Pointer:
    """A value of a type that is called ``ref``."""
    return Pointer(t[:-1], ref) if t.endswith("*") else Scalar(t, ref)


#: A value while a function is read: a scalar, several of them, a pointer, or Python numbers.
Value = Any
FLOATS = ("f32", "f64")
#: Of complex numbers the type of their parts.
PARTS = {"c64": "f32", "c128": "f64"}
TYPES = ("bool", *(f"{sign}{width}" for sign in "iu" for width in (8, 16, 32, 64)), *FLOATS, *PARTS)


@cache
def width(t: str) -> int:
    """The bits of a type."""
    return 1 if t == "bool" else int(t[1:])


def common(x: Scalar, y: Scalar) -> str:
    """The type in which two numbers are combined."""
    a, b = x.type, y.type
    if a == b and (a in FLOATS or a in PARTS or a == "bool"):
        return a
    if a in PARTS or b in PARTS:
        return "c64" if {a, b} == {"c64", "f32"} else "c128"
    if a in FLOATS or b in FLOATS:
        floats = {t for t in (a, b) if t in FLOATS}
        small = all(t in FLOATS or t == "bool" or width(t) <= 16 for t in (a, b))
        return "f32" if floats == {"f32"} and small else "f64"
    if a == b == "u64" or "u64" in (a, b) and all(t == "u64" or v.number is not None and v.number >= 0
                                                 for t, v in ((a, x), (b, y))):
        return "u64"
    if a[0] == b[0] == "u":
        return "u64"
    if "u64" in (a, b) and "i" in (a[0], b[0]):
        raise Unsupported("u64 with a signed integer")
    return "i64"


class Spelled(ABC):
    """Scalars and what is made of them; what subclasses spell is of one type, and no operand of it is complex."""

    # -- what a target says

    @abstractmethod
    def spelled(self, t: str, x: Any) -> str:
        """A number of a type, which holds it."""

    @abstractmethod
    def converted(self, x: Scalar, t: str) -> str:
        """x, which is of another type, as a t."""

    @abstractmethod
    def operation(self, sign: str, t: str, x: str, y: str, wraps: bool) -> str:
        """Two numbers of a type by ``+ - * / // % & | ^ << >>``. ``wraps``: integers may overflow; elsewhere what
        happens then is left open."""

    @abstractmethod
    def comparison(self, sign: str, t: str, x: str, y: str) -> str:
        """A truth by ``== != < <= > >=``."""

    @abstractmethod
    def selected(self, condition: str, t: str, x: str, y: str) -> str:
        """x where the condition holds, else y."""

    @abstractmethod
    def unary(self, sign: str, t: str, x: str) -> str:
        """``-`` of a float, ``~`` of an integer or a truth."""

    @abstractmethod
    def joined(self, how: str, x: str, y: str) -> str:
        """Two truths by "and" or "or"."""

    @abstractmethod
    def pair(self, t: str, real: Scalar, imag: Scalar) -> Scalar:
        """A complex number of its parts."""

    @abstractmethod
    def part_of(self, x: Scalar, k: int) -> str:
        """The real (0) or imaginary part (1) of a complex number."""

    # -- rules

    def constant(self, t: str, x: Any) -> Scalar:
        """A number of a type."""
        if t in FLOATS:
            x = float(np.float32(x)) if t == "f32" else float(x)
        elif t == "bool":
            x = int(bool(x))
        else:
            x = int(x) % 2 ** width(t)
            x -= 2 ** width(t) * (t[0] == "i" and x >= 2 ** (width(t) - 1))
        return Scalar(t, self.spelled(t, x), x)

    def literal(self, x: Any) -> Scalar:
        """A Python or NumPy number, typed as Numba types it."""
        if isinstance(x, bool | np.bool_):
            return self.constant("bool", x)
        if isinstance(x, np.generic):
            if x.dtype.kind not in "iuf":
                raise Unsupported(f"a constant of {x.dtype}")
            return self.constant(f"{x.dtype.kind}{x.dtype.itemsize * 8}", x)
        if isinstance(x, int):
            return self.constant("i64" if x < 2**63 else "u64", x)
        if isinstance(x, float):
            return self.constant("f64", x)
        raise Unsupported(f"a constant {type(x).__name__}")

    def part(self, x: Scalar, k: int) -> Scalar:
        """The real (0) or imaginary part (1) of a number."""
        if x.type not in PARTS:
            return self.constant("f64", 0.0) if k else x
        return Scalar(PARTS[x.type], self.part_of(x, k))

    def by_parts(self, t: str, of: Callable[..., Scalar], *xs: Scalar) -> Scalar:
        """The complex number whose parts are what ``of`` gives for the parts of others."""
        return self.pair(t, *[of(*[self.part(x, k) for x in xs]) for k in (0, 1)])

    def cast(self, x: Scalar, t: str) -> Scalar:
        """x as a number of type ``t``."""
        s = x.type
        if s == t:
            return x
        if t in PARTS:
            return self.by_parts(t, lambda y: self.cast(y, PARTS[t]), x)
        if s in PARTS:
            if t != "bool":
                raise Unsupported(f"{t} of a complex number")
            return self.compare("!=", x, self.constant("f64", 0.0))
        if x.number is not None and not (s in FLOATS and t not in FLOATS):
            return self.constant(t, x.number)
        return Scalar(t, self.converted(x, t))

    def binary(self, sign: str, x: Scalar, y: Scalar, wraps: bool = False) -> Scalar:
        """``x sign y``."""
        if sign in ("<<", ">>"):
            t = x.type if x.type == "u64" else "u64" if x.type[0] == "u" else "i64"
            return Scalar(t, self.operation(sign, t, self.cast(x, t).ref, self.cast(y, t).ref, False))
        t = common(x, y)
        if t == "bool" and sign not in "&|^":
            t = "i64"
        if sign == "/" and t not in FLOATS and t not in PARTS:
            t = "f64"
        a, b = self.cast(x, t), self.cast(y, t)
        if t in PARTS:
            return self._complex(sign, a, b)
        if t in FLOATS and sign not in "+-*/":
            raise Unsupported(f"{sign} of floats")
        if a.number is not None and b.number is not None and sign in "+-*" and t == "i64":
            known = {"+": a.number + b.number, "-": a.number - b.number, "*": a.number * b.number}
            return self.constant(t, known[sign])
        return Scalar(t, self.operation(sign, t, a.ref, b.ref, wraps))

    def _complex(self, sign: str, x: Scalar, y: Scalar) -> Scalar:
        if sign in "+-":
            return self.by_parts(x.type, lambda a, b: self.binary(sign, a, b), x, y)
        if sign != "*":
            raise Unsupported(f"{sign} of complex numbers")
        (a, b), (c, d) = ([self.part(z, k) for k in (0, 1)] for z in (x, y))
        rows = (("-", (a, c), (b, d)), ("+", (a, d), (b, c)))
        return self.pair(x.type, *[self.binary(how, self.binary("*", *p), self.binary("*", *q)) for how, p, q in rows])

    def compare(self, sign: str, x: Scalar, y: Scalar) -> Scalar:
        """A truth. A float is compared with a literal in its own dtype where that is the same number there."""
        for a, b in ((x, y), (y, x)):
            if a.type == "f32" and b.number is not None and float(np.float32(b.number)) == b.number:
                x, y = self.cast(x, "f32"), self.cast(y, "f32")
        if {x.type[0], y.type[0]} == {"u", "i"} and "u64" in (x.type, y.type) and x.number is None and y.number is None:
            return self._compare_mixed(sign, x, y)
        t = common(x, y)
        a, b = self.cast(x, t), self.cast(y, t)
        if t in PARTS:
            how = {"==": "and", "!=": "or"}.get(sign)
            if how is None:
                raise Unsupported(f"{sign} of complex numbers")
            real, imag = (self.compare(sign, self.part(a, k), self.part(b, k)).ref for k in (0, 1))
            return Scalar("bool", self.joined(how, real, imag))
        return Scalar("bool", self.comparison(sign, t, a.ref, b.ref))

    def _compare_mixed(self, sign: str, x: Scalar, y: Scalar) -> Scalar:
        """An unsigned with a signed integer: a negative one is less than all."""
        signed = x if x.type[0] == "i" else y
        negative = self.comparison("<", "i64", self.cast(signed, "i64").ref, self.constant("i64", 0).ref)
        plain = self.compare(sign, self.cast(x, "u64"), self.cast(y, "u64"))
        truth = {"==": False, "!=": True}.get(sign, (sign in ("<", "<=")) == (signed is x))
        return Scalar("bool", self.selected(negative, "bool", self.constant("bool", truth).ref, plain.ref))

    def select(self, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
        """x where the condition holds, else y."""
        t = x.type if x.type == y.type else common(x, y)
        a, b = self.cast(x, t), self.cast(y, t)
        if t in PARTS:
            return self.by_parts(t, lambda p, q: self.select(condition, p, q), a, b)
        return Scalar(t, self.selected(condition.ref, t, a.ref, b.ref))

    def negative(self, x: Scalar) -> Scalar:
        if x.number is not None and x.type != "bool":
            return self.constant(x.type, -x.number)
        if x.type in PARTS:
            return self.by_parts(x.type, self.negative, x)
        if x.type in FLOATS:
            return Scalar(x.type, self.unary("-", x.type, x.ref))
        return self.binary("-", self.constant("u64" if x.type[0] == "u" else "i64", 0), x)
