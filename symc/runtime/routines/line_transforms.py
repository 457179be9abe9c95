# mypy: ignore-errors
"""Fourier transforms of lines of an array, along any axis, by a loop of NumPy's (``numpy_ffts``): a kernel, as it takes
numbers and addresses in one array, and does any part of a range of lines.
"""

from __future__ import annotations

from symc.codegen.language.helpers import native
from symc.codegen.language.names import i32, i64, u8
from symc.codegen.language.native import Outside, Texts, array, memory, pointer

#: What the first bits of a result are before a loop runs: still there if it had no memory.
UNWRITTEN = 0x7FE3A5C1
loop_of_numpy = Outside("", "vpppp")


def texts(part: str) -> Texts:
    return {"transform": (transform, {})}


@native
def transform(words: array[i64]):
    """Words: first line, end of lines, elements side by side (lines of one row), points, results, bytes of a point,
    bytes of a result; the addresses of the array, of the factor, of the results, of a byte that becomes 1 if memory has
    ended, of the loop and of its data."""
    line, stop, inner, points, results = words[0], words[1], words[2], words[3], words[4]
    width, width_of_result = words[5], words[6]
    across, across_results = inner * width, inner * width_of_result
    arrays, sizes, steps = memory(i64, 3), memory(i64, 3), memory(i64, 5)
    sizes[1], sizes[2] = points, results
    steps[0], steps[1] = points * width if inner == 1 else width, 0
    steps[2] = results * width_of_result if inner == 1 else width_of_result
    steps[3], steps[4] = across, across_results
    while line < stop:
        row, column = line // inner, line % inner
        count = stop - line if inner == 1 else min(stop - line, inner - column)
        to = words[9] + row * across_results * results + column * width_of_result
        arrays[0], arrays[1], arrays[2] = words[7] + row * across * points + column * width, words[8], to
        sizes[0] = count
        mark = pointer(i32, to)
        mark[0] = UNWRITTEN
        loop_of_numpy(words[11], arrays, sizes, steps, words[12])
        if mark[0] == UNWRITTEN:
            pointer(u8, words[10])[0] = 1
        line += count
