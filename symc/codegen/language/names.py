"""Names in texts of the language that are no functions of the library: dtypes, constants, primitives.

Functions of the library import these names, so that Python says what each of their names means. A primitive is spelled
by every compiler and printer for itself: instructions, bit casts, functions of other libraries.
"""

from __future__ import annotations

import math

import numpy as np

INF, NAN = math.inf, math.nan
u8, i8, u16, i16, u32, i32 = np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32
u64, i64, f32, f64 = np.uint64, np.int64, np.float32, np.float64
c64, c128 = np.complex64, np.complex128


class Primitive:
    """The name of a function that has no text in the language."""

    def __init__(self, name: str):
        self.name = name


class Scheme:
    """The name of an expression that is written out where a text is read (``helpers``)."""

    def __init__(self, name: str):
        self.name = name


#: Polynomials by Horner's scheme: ``horner(x, a, b, c)`` is (a * x + b) * x + c, ``fused_horner(x, T)`` that of a table
#: with the lowest power first, each step an ``fma``.
horner, fused_horner = Scheme("horner"), Scheme("fused_horner")
#: ``like(x, c)``: c in the dtype of x; ``bits(x)``: how many bits the dtype of x has.
like, bits = map(Primitive, ("like", "bits"))
#: Nan if either operand is, and -0.0 is less than 0.0.
maximum, minimum = map(Primitive, ("maximum", "minimum"))
#: Of floats, each in its own dtype; ``fmod``: the remainder with the sign of x; ``fma(x, y, z)``: x * y + z, rounded
#: once.
copysign, fmod, fma = Primitive("copysign"), Primitive("fmod"), Primitive("fma")
rint, floor, ceil, trunc = Primitive("rint"), Primitive("floor"), Primitive("ceil"), Primitive("trunc")
#: ``times(x, y)``: a product that is rounded, whatever it is added to.
times = Primitive("times")
#: Steps of folds: sums and products may be taken in any order, and any of two zeros is the greater one.
fold_add, fold_mul, fold_maximum, fold_minimum = map(
    Primitive, ("fold_add", "fold_mul", "fold_maximum", "fold_minimum"))
#: i64 that may overflow; elsewhere what happens then is left open.
wrap_add, wrap_sub, wrap_mul = map(Primitive, ("wrap_add", "wrap_sub", "wrap_mul"))
#: The bits of a float as a signed integer, and back.
bits64, float64_of, bits32, float32_of = map(Primitive, ("bits64", "float64_of", "bits32", "float32_of"))
#: Half precision, which is stored as a u16 and computed as an f32; a float toward zero as an i64, the least one outside
#: its range.
from_half, to_half, to_int = map(Primitive, ("from_half", "to_half", "to_int"))
#: Whether a loop is to stop: looks for signals now and then.
polled = Primitive("polled")
