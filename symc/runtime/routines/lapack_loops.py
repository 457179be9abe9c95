# mypy: ignore-errors
"""Routines that LAPACK does not have. Matrices are square and contiguous."""

from __future__ import annotations

from symc.codegen.language.helpers import native
from symc.codegen.language.names import i64, u8, u64
from symc.codegen.language.native import BLAS, I, Outside, T, Texts, array

memcpy = Outside("memcpy", "vppl")


def texts(letter: str) -> Texts:
    """All functions; pivots are as wide as the library's integers."""
    found = {f.name: (f, {"T": BLAS[letter]}) for f in (transpose, singular, outside, take, put)}
    found |= {f"order{bits}": (order, {"I": f"i{bits}"}) for bits in (32, 64)}
    return {f"{name}_{letter}": f for name, f in found.items()}


@native
def transpose(to: array[T], source: array[T], m: i64, n: i64):
    """The transpose of m rows."""
    for i in range(m):
        for j in range(n):
            to[j * m + i] = source[i * n + j]


@native
def singular(info: array[i64], a: array[T], n: i64):
    """1 + the first place where the diagonal is 0; else 0."""
    info[0] = 0
    for i in range(n):
        if a[i * (n + 1)] == 0:
            info[0] = i + 1
            break


@native
def order(perm: array[i64], pivots: array[I], n: i64):
    """The order of the rows that LAPACK's exchanges (1-based) lead to."""
    for i in range(n):
        perm[i] = i
    for i in range(n):
        other = pivots[i] - 1
        perm[i], perm[other] = perm[other], perm[i]


@native
def outside(info: array[i64], perm: array[u64], n: u64):
    """1 if an index is no row; else 0."""
    info[0] = 0
    for i in range(n):
        if perm[i] >= n:
            info[0] = 1


@native
def take(to: array[u8], source: array[u8], perm: array[i64], n: i64, nbytes: i64):
    """Row i is row perm[i] of the other array."""
    for i in range(n):
        memcpy(to[i * nbytes :], source[perm[i] * nbytes :], nbytes)


@native
def put(to: array[u8], source: array[u8], perm: array[i64], n: i64, nbytes: i64):
    """Row perm[i] is row i of the other array."""
    for i in range(n):
        memcpy(to[perm[i] * nbytes :], source[i * nbytes :], nbytes)
