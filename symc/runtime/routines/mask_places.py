# mypy: ignore-errors
"""The places where a mask holds."""

from __future__ import annotations

from symc.codegen.language.helpers import native
from symc.codegen.language.names import i64, u8
from symc.codegen.language.native import Texts, array, word

EIGHT = (0, 1, 2, 3, 4, 5, 6, 7)


def texts(part: str) -> Texts:
    return {"places": (places, {})}


@native
def places(to: array[i64], mask: array[u8], n: i64, size: i64, status: array[i64]):
    """Write ``size`` places, never more; ``status`` is 0 if the mask holds at so many. Without a branch on an element,
    which may be anything; nor is it asked for each whether there is room, where there is for eight."""
    found = 0
    for j in range(n >> 3):
        if word(mask[8 * j :]) == 0:
            continue
        if found + 8 <= size:
            for k in EIGHT:
                to[found] = 8 * j + k
                found += mask[8 * j + k] != 0
        else:
            for k in EIGHT:
                if found < size:
                    to[found] = 8 * j + k
                found += mask[8 * j + k] != 0
    for rest in range(n & -8, n):
        if found < size:
            to[found] = rest
        found += mask[rest] != 0
    status[0] = found - size
