# mypy: ignore-errors
"""Forward and back substitution in triangles of few rows, for several right sides at a time.

A library sets up a solve for 100 ns and more, and takes 1 GFLOP/s where a triangle is smaller than its tiles: 5,000
right sides of 6 rows took 195 us, and take 9. Where the size is known, `small_ir` has it in its code.
"""

from __future__ import annotations

from symc.codegen.language.helpers import native
from symc.codegen.language.names import i64
from symc.codegen.language.native import BLAS, T, Texts, array

#: How many right sides stay in the cache meanwhile.
BESIDE = 128


def texts(letter: str) -> Texts:
    return {f"substitute_{letter}": (substitute, {"T": BLAS[letter]})}


@native
def substitute(x: array[T], a: array[T], n: i64, k: i64, row: i64, column: i64, forwards: i64, unit: i64):
    """x, n rows of k, becomes what the triangle gives for x, whose element (i, j) is a[i * row + j * column]; from its
    first row, or from its last."""
    for first in range(0, k, BESIDE):
        end = min(first + BESIDE, k)
        for s in range(n):
            i = s if forwards != 0 else n - 1 - s
            for t in range(s):
                j = t if forwards != 0 else n - 1 - t
                factor = a[i * row + j * column]
                for c in range(first, end):
                    x[i * k + c] -= factor * x[j * k + c]
            if unit == 0:
                diagonal = a[i * (row + column)]
                for c in range(first, end):
                    x[i * k + c] = x[i * k + c] / diagonal
