# mypy: ignore-errors
"""Counts of a line's elements below, and up to, each of two numbers: one loop, which is vectorized."""

from __future__ import annotations

from symc.codegen.language.helpers import plain
from symc.codegen.language.names import i64
from symc.codegen.language.native import T, Texts, array
from symc.ir.dtypes import DTYPES, RECORDS


def texts(dtype: str) -> Texts:
    """The function for a dtype."""
    return {f"count_{dtype}": (count, {"T": RECORDS[DTYPES[dtype]].memory})}


@plain
def count(found: array[i64], line: array[T], n: i64, low: array[T], high: array[T]):
    """``low``, ``high``: where the numbers lie."""
    a, b = low[0], high[0]
    below, to_low, below_high, to_high = 0, 0, 0, 0
    for k in range(n):
        v = line[k]
        below += i64(v < a)
        to_low += i64(v <= a)
        below_high += i64(v < b)
        to_high += i64(v <= b)
    found[0], found[1], found[2], found[3] = below, to_low, below_high, to_high
