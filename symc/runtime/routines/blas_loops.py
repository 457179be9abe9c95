# mypy: ignore-errors
"""Routines for sums of products that BLAS does not have. All numbers are multiplied: 0 times nan is nan."""

from __future__ import annotations

from symc.codegen.language.helpers import native
from symc.codegen.language.names import i64, u8
from symc.codegen.language.native import BLAS, T, Texts, array


def texts(letter: str) -> Texts:
    """All functions for a letter of BLAS."""
    return {f"{f.name}_{letter}": (f, {"T": BLAS[letter]}) for f in (scale, scaled, nonzero)}


@native
def scale(x: array[T], number: T, n: i64):
    for i in range(n):
        x[i] = x[i] * number


@native
def scaled(to: array[T], source: array[T], number: T, n: i64):
    for i in range(n):
        to[i] = source[i] * number


@native
def nonzero(flag: array[u8], number: T):
    flag[0] = number != 0
