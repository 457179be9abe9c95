"""References of convolutions, one element of the window after another, and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.ir.dtypes import computed
from symc.ir.ops.windows import (
    Steps,
    counts,
)


def _taps(size: Sequence[int], channels: int, filters: int, window: Any, stride: Steps, dilation: Steps,
          groups: int) -> Iterator[tuple[tuple, tuple, tuple]]:
    """For each group and element of the window, where it is in x, in w and in y."""
    out = counts("conv", size, window, stride, dilation)
    c, o = channels // groups, filters // groups
    for p in range(groups):
        for at in np.ndindex(*window):
            seen = tuple(slice(i * d, i * d + (n - 1) * s + 1, s)  # type: ignore[operator]
                         for i, d, n, s in zip(at, dilation, out, stride, strict=True))
            own = slice(p * o, p * o + o)
            yield (slice(None), slice(p * c, p * c + c), *seen), (own, slice(None), *at), (slice(None), own)


def _wide(*arrays: np.ndarray) -> list[np.ndarray]:
    return [a.astype(computed(a.dtype), copy=False) for a in arrays]


def conv_reference(x, w, stride, dilation, groups):
    a, b = _wide(x, w)
    shape: Any = (len(x), len(w), *counts("conv", x.shape[2:], w.shape[2:], stride, dilation))
    out = np.zeros(shape, a.dtype)
    for i, k, o in _taps(x.shape[2:], x.shape[1], len(w), w.shape[2:], stride, dilation, groups):
        out[o] += np.moveaxis(np.tensordot(b[k], a[i], (1, 1)), 0, 1)
    return out.astype(x.dtype)


def input_reference(g, w, size, stride, dilation, groups):
    a, b = _wide(g, w)
    out = np.zeros((len(g), w.shape[1] * groups, *size), a.dtype)
    for i, k, o in _taps(size, out.shape[1], len(w), w.shape[2:], stride, dilation, groups):
        out[i] += np.moveaxis(np.tensordot(b[k], a[o], (0, 1)), 0, 1)
    return out.astype(g.dtype)


def filter_reference(x, g, window, stride, dilation, groups):
    a, b = _wide(x, g)
    out = np.zeros((g.shape[1], x.shape[1] // groups, *window), a.dtype)
    for i, k, o in _taps(x.shape[2:], x.shape[1], g.shape[1], window, stride, dilation, groups):
        summed = (0, *range(2, x.ndim))
        out[k] = np.tensordot(b[o], a[i], (summed, summed))
    return out.astype(x.dtype)


# --- samples ----------------------------------------------------------------------------------------------------------

#: samples, channels, sizes; filters, window, stride, dilation, groups
_CASES: tuple[tuple, ...] = (
    (2, 3, (5, 6), 4, (3, 2), (1, 1), (1, 1), 1),
    (2, 4, (7, 5), 6, (2, 2), (2, 1), (1, 2), 2),
    (1, 3, (4, 4), 3, (3, 3), (1, 1), (1, 1), 3),
    (2, 3, (5,), 2, (1,), (2,), (1,), 1),
    (2, 2, (3, 2), 3, (1, 1), (1, 1), (1, 1), 1),
    (1, 2, (4, 3, 3), 2, (2, 2, 3), (1, 1, 1), (2, 1, 1), 1),
    (0, 2, (3, 3), 2, (2, 2), (1, 1), (1, 1), 1),
)


def samples_of(pick: Callable[..., tuple]) -> Callable[[], Iterator[tuple[tuple, dict]]]:
    def samples() -> Iterator[tuple[tuple, dict]]:
        rng = np.random.default_rng(5)
        for dtype in ("f8", "f4", "f2", "c16", "i4"):
            for n, c, size, o, window, stride, dilation, groups in _CASES if dtype == "f8" else _CASES[:2]:
                out = counts("conv", size, window, stride, dilation)
                half = 1 if dtype == "i4" else 0.5
                x, w, g = ((rng.integers(-4, 5, shape) * half).astype(dtype)  # whose sums of products are exact
                           for shape in ((n, c, *size), (o, c // groups, *window), (n, o, *out)))
                operands, own = pick(x, w, g)
                yield operands, dict(own, stride=stride, dilation=dilation, groups=groups)

    return samples
