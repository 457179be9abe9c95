"""Intervals of the integers that a kernel computes: from the types of what it loads, through arithmetic.

What is known to be short is multiplied and divided in fewer instructions (``llvm_scalars``, ``llvm_literals``).
"""

from __future__ import annotations

from symc.codegen.language.typed import FLOATS, PARTS, width

#: The least and the greatest integer, both included.
Interval = tuple[int, int]
#: Unsigned numbers of which vectors have products.
WORD: Interval = (0, 2**32 - 1)
#: Numbers that are divided in f64, and all sizes and places of arrays.
NEAR: Interval = (1 - 2**50, 2**50 - 1)


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
