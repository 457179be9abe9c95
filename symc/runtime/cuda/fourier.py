"""Fourier transforms on a device: passes of kernels of our own, so that any length runs on every device alike.

Roots of 1 are computed by the host, once for each combination of sizes. A length with a large prime factor is a
convolution with a chirp (Bluestein 1970), by transforms of a power of 2.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from symc.ir.ops.fourier import check_points
from symc.ir.record import dataclass
from symc.ir.types import complex_dtype
from symc.runtime.cuda.matrices import Array, Emitter, Recipe

#: The largest prime factor that is a pass: a thread adds up so many numbers.
LARGEST = 64
#: How the kernels read points and write results.
COMPLEX, REAL, HALF = 0, 1, 2


@lru_cache(maxsize=256)
def factors(n: int) -> tuple[int, ...]:
    """Fours, then primes: each is a pass. At least one."""
    found, r = [], 4
    while n > 1:
        if n % r == 0:
            found.append(r)
            n //= r
        elif r * r > n and r != 4:
            r = n
        else:
            r = {4: 2, 2: 3}.get(r, r + 2)
    return tuple(found) or (1,)


@lru_cache(maxsize=64)
def roots(n: int, inverse: bool, dtype: np.dtype) -> np.ndarray:
    """The n-th roots of 1 in the order in which a transform takes them."""
    return np.exp((2j if inverse else -2j) * np.pi * np.arange(n) / n).astype(dtype)


@lru_cache(maxsize=64)
def chirps(n: int, m: int, inverse: bool, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Factors of points and results, and the transform of what they are convolved with, divided by m."""
    chirp = np.exp((1j if inverse else -1j) * np.pi * (np.arange(n) ** 2 % (2 * n)) / n)
    around = np.zeros(m, complex)
    around[:n] = chirp.conj()
    around[m - n + 1 :] = chirp[:0:-1].conj()
    return chirp.astype(dtype), (np.fft.fft(around) / m).astype(dtype)


@dataclass(frozen=True)
class _Lines:
    """Lines of arrays of one value: how many there are, and how many of one row lie side by side."""

    e: Emitter
    lines: int
    inner: int
    dtype: np.dtype

    def table(self, numbers: np.ndarray) -> Array:
        """Numbers that the frame holds."""
        return Array(self.e.lowering.code.keep(numbers), numbers.nbytes)

    def memory(self, length: int) -> Array:
        return self.e.scratch(self.lines * length, self.dtype.itemsize)

    def passes(self, source: Array, to: Array, n: int, inverse: bool, reading: int, writing: int) -> None:
        """Transforms of n points."""
        every, w, s = factors(n), self.table(roots(n, inverse, self.dtype)), 1
        between = [self.memory(n) for _ in every[1:3]]
        for k, r in enumerate(every):
            last = k + 1 == len(every)
            target = to if last else between[k % 2]
            numbers = [n, s, r, self.inner, self.lines * n, 0 if k else reading, writing if last else 0]
            self.e.each("fourier_pass", self.lines * n, [source, w, target, *numbers], [target])
            source, s = target, s * r

    def times(self, source: Array, by: Array, to: Array, n: int, m: int, reading: int = 0, writing: int = 0) -> None:
        """Lines of n numbers times others, as lines of m."""
        numbers = [n, m, self.inner, self.lines * m, reading, writing]
        self.e.each("fourier_times", self.lines * m, [source, by, to, *numbers], [to])


def _transform(kind: tuple[int, int], e: Emitter) -> None:
    """A transform. ``kind``: how points are read and results written."""
    attrs, shape, x, y = e.value.attrs, e.shapes[0], e.operands[0], e.results[0]
    axis, inverse = attrs["axis"], attrs.get("inverse", e.value.op.name == "irfft")
    n = e.lowering.number(attrs["size"]) if kind[0] == HALF else shape[axis]
    check_points(e.value.op.name, n)
    inner, dtype = math.prod(shape[axis + 1 :]), complex_dtype(e.dtype)
    f = _Lines(e, math.prod(shape[:axis]) * inner, inner, dtype)
    if not f.lines:
        return
    if max(factors(n)) <= LARGEST:
        return f.passes(x, y, n, inverse, *kind)
    m = 1 << (2 * n - 2).bit_length()
    chirp, other = map(f.table, chirps(n, m, inverse, dtype))
    a, b = f.memory(m), f.memory(m)
    f.times(x, chirp, a, n, m, reading=kind[0])
    f.passes(a, b, m, False, COMPLEX, COMPLEX)
    f.times(b, other, a, m, m)
    f.passes(a, b, m, True, COMPLEX, COMPLEX)
    f.times(b, chirp, y, m, n, writing=kind[1])


RECIPES: dict[str, Recipe] = {"fft": partial(_transform, (COMPLEX, COMPLEX)), "irfft": partial(_transform, (HALF, 2)),
                              "rfft": partial(_transform, (REAL, 1))}
