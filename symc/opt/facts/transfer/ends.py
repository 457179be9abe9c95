"""Parts that the transfer functions share: ranges of floats as pairs of numbers, and how a dtype rounds their ends.

Ends are numbers of the value's dtype, and every claim is about rounded results: sums and quotients round their ends as
the elements are rounded (rounding keeps order), products round them outwards (a kernel may add to a product that was
not rounded), and functions of a library are trusted to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.ir.dim import Dim
from symc.ir.ranges import Range
from symc.ir.value import Value
from symc.ir.value_ranges import range_of
from symc.opt.facts.fact import UNKNOWN, End, Fact

INF = math.inf
Ends = tuple[float, float]


def ends(f: Fact) -> Ends:
    """A range of floats as two numbers, -inf and inf where nothing is known."""
    return (
        -INF if f.low is None or isinstance(f.low, Dim) else float(f.low),
        INF if f.high is None or isinstance(f.high, Dim) else float(f.high),
    )


def whole(f: Fact) -> Range:
    """The range of an integer value."""
    return _size(f.low), _size(f.high)


def _size(end: End) -> Any:
    return None if isinstance(end, float) else end


def ranged(v: Value, given: list[Fact]) -> Range:
    """The range of an integer value, given what is known of its operands."""
    known = dict(zip(v.operands, given, strict=True))
    return range_of(v, lambda o: whole(known[o]))


def may_be(f: Fact, infinity: float) -> bool:
    """True if an element may be this infinity."""
    low, high = ends(f)
    return f.inf and (high == INF if infinity > 0 else low == -INF)


def rounded(dtype: np.dtype, f: Callable[[Any, Any], Any], a: float, b: float) -> float | None:
    """f(a, b) as the dtype rounds it; None for nan."""
    with np.errstate(all="ignore"):
        out = float(f(dtype.type(a), dtype.type(b)))
    return None if out != out else out


def negated(f: Fact) -> Fact:
    """The fact of -x for a float x."""
    low, high = ends(f)
    return Fact(-high, -low, f.nan, f.inf, f.zero, f.integer)


def distance(f: Fact) -> Ends:
    """The least and the greatest |x| of a float x."""
    low, high = ends(f)
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def of_floats(f: Callable[[Value, list[Fact]], Fact]) -> Callable[[Value, list[Fact]], Fact]:
    """``f`` for floats; of integers, what ``ranges`` says."""

    def of_all(v: Value, given: list[Fact]) -> Fact:
        if v.dtype.kind == "f":
            return f(v, given)
        return Fact(*ranged(v, given)) if v.dtype.kind in "iu" else UNKNOWN

    return of_all
