"""Colours for the columns of a pattern: those of one colour are told apart in one sum.

Greedy colourings, which take the first colour that is free: with the columns as they are, and with those of most
entries first. The colours in use around a row are the bits of an integer, so that the work is linear in the entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

Pattern = Any  # scipy.sparse.csr_array of bool


def column_colors(pattern: Pattern) -> np.ndarray:
    """A colour for each column: no row has entries in two columns of one colour (Curtis, Powell and Reid 1974)."""
    least = int(np.diff(pattern.tocsr().indptr).max(initial=0))
    by_column = pattern.tocsc()
    return _best(_columns, by_column, by_column.shape[0], least)


class TwoWays(NamedTuple):
    """Colours of columns and of rows, -1 for those of neither use, and which entries (in the order of rows) are told
    apart among those of their row's colour; the others among those of their column's."""

    columns: np.ndarray
    rows: np.ndarray
    across: np.ndarray

    @property
    def number(self) -> int:
        return int(self.columns.max(initial=-1) + self.rows.max(initial=-1)) + 2


def two_way_colors(pattern: Pattern, fewest: int) -> TwoWays | None:
    """Colours for both directions, fewer than ``fewest`` in all: those of few dense rows, and of the columns of the
    rest; or of few dense columns, and of the rows of the rest (as of arrows; Coleman and Verma 1998)."""
    found = None
    for turned in (False, True):
        p = pattern.T.tocsr() if turned else pattern.tocsr()
        degrees = np.diff(p.indptr)
        order = np.argsort(-degrees, kind="stable")
        bound = np.arange(len(order) + 1) + np.append(degrees[order], 0)  # so many dense ones, and one row of the rest
        k = int(np.argmin(bound))
        if not k or bound[k] >= fewest:
            continue
        dense = np.isin(np.arange(len(order)), order[:k])
        own = np.full(len(order), -1)
        own[dense] = column_colors(p[dense].T)
        rest = column_colors(p[~dense])
        i, j = entries(pattern)
        ways = TwoWays(own, rest, ~dense[j]) if turned else TwoWays(rest, own, dense[i])
        if ways.number < fewest:
            found, fewest = ways, ways.number
    return found


def star_colors(pattern: Pattern) -> np.ndarray:
    """A colour for each column of a symmetric pattern: of two that share an entry, one has a colour that nothing else
    in the other's row has (Powell and Toint 1979, Coleman and Moré 1984).

    Neighbours differ in colour, and two neighbours of a column that have one colour have a greater one than it. So the
    entry of i and j is alone among the columns of the smaller of their colours, in the row of the greater.
    """
    return _best(_star, pattern.tocsc(), pattern.shape[0], 1)


def entries(pattern: Pattern) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each entry, in the order of rows."""
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr)), pattern.indices


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
