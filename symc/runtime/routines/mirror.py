# mypy: ignore-errors
"""The other side of a symmetric matrix."""

from __future__ import annotations

from symc.codegen.language.helpers import native
from symc.codegen.language.names import i64
from symc.codegen.language.native import BLAS, Open, T, Texts, array, memory
from symc.codegen.language.typed import width

#: Bits of a line of the cache.
LINE = 512
SIDE = Open


def texts(letter: str) -> Texts:
    return {f"mirror_{letter}": (mirror, {"T": BLAS[letter], "SIDE": LINE // width(BLAS[letter])})}


@native
def mirror(a: array[T], n: i64):
    """Copy what is below the diagonal. Block by block, of as many rows as fit in a line of the cache, through memory of
    its own: rows of matrices often lie a power of two apart, where few of them fit into the cache together."""
    own = memory(a, SIDE * SIDE)
    for first in range(0, n, SIDE):
        for start in range(0, first + 1, SIDE):
            height, width = min(n - first, SIDE), min(n - start, SIDE)
            for i in range(height):
                row = a[(first + i) * n + start :]
                for j in range(width):
                    own[j * SIDE + i] = row[j]
            for j in range(width):
                to, column = a[(start + j) * n + first :], own[j * SIDE :]
                for i in range(j if first == start else 0, height):
                    to[i] = column[i]
