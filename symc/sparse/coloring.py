"""Colours for the columns of a pattern: those of one colour are told apart in one sum.

Greedy colourings, which take the first colour that is free: with the columns as they are, and with those of most
entries first. The colours in use around a row are the bits of an integer, so that the work is linear in the entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Pattern = Any  # scipy.sparse.csr_array of bool


def column_colors(pattern: Pattern) -> np.ndarray:
    """A colour for each column: no row has entries in two columns of one colour (Curtis, Powell and Reid 1974)."""
    least = int(np.diff(pattern.tocsr().indptr).max(initial=0))
    by_column = pattern.tocsc()
    return _best(_columns, by_column, by_column.shape[0], least)


def star_colors(pattern: Pattern) -> np.ndarray:
    """A colour for each column of a symmetric pattern: of two that share an entry, one has a colour that nothing else
    in the other's row has (Powell and Toint 1979, Coleman and Moré 1984).

    Neighbours differ in colour, and two neighbours of a column that have one colour have a greater one than it. So the
    entry of i and j is alone among the columns of the smaller of their colours, in the row of the greater.
    """
    return _best(_star, pattern.tocsc(), pattern.shape[0], 1)


def _best(color: Any, pattern: Any, rows: int, least: int) -> np.ndarray:
    """The better one of two orders; the second is not tried where the first is as good as it gets."""
    indptr, indices = pattern.indptr.tolist(), pattern.indices.tolist()
    n = len(indptr) - 1
    first: np.ndarray = color(indptr, indices, rows, range(n))
    degrees = np.diff(pattern.indptr)
    if first.max(initial=-1) + 1 <= least or not np.any(degrees[1:] > degrees[:-1]):
        return first
    second: np.ndarray = color(indptr, indices, rows, np.argsort(-degrees, kind="stable").tolist())
    return second if second.max(initial=-1) < first.max(initial=-1) else first


def _columns(indptr: list[int], indices: list[int], rows: int, order: Iterable[int]) -> np.ndarray:
    used, colors = [0] * rows, [0] * (len(indptr) - 1)
    for j in order:
        mine, taken = indices[indptr[j]:indptr[j + 1]], 0
        for i in mine:
            taken |= used[i]
        bit = ~taken & taken + 1
        colors[j] = bit.bit_length() - 1
        for i in mine:
            used[i] |= bit
    return np.array(colors, np.int64)


def _star(indptr: list[int], indices: list[int], rows: int, order: Iterable[int]) -> np.ndarray:
    used, bits = [0] * rows, [0] * rows  # the colours of the neighbours of a column, and its own
    for j in order:
        near, taken = indices[indptr[j]:indptr[j + 1]], 0
        for w in near:
            own = bits[w]
            taken |= own | used[w] & own - 1  # all of them, where w has no colour yet
        bit = ~taken & taken + 1
        bits[j] = bit
        for w in near:
            if w != j:
                used[w] |= bit
    return np.array([b.bit_length() - 1 for b in bits], np.int64)
