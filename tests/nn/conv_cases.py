"""Cases of convolution and pooling, and what PyTorch computes for them (``conv_torch.npz``).

``python -m tests.nn.conv_cases`` in an environment with PyTorch writes the file again. Numbers are multiples of 1/8,
following from shapes: sums are exact, and maxima have ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parent / "conv_torch.npz"


def numbers(shape: Sequence[int], seed: int) -> np.ndarray:
    """An array of small numbers."""
    n = int(np.prod(shape))
    return ((np.arange(n, dtype=np.int64) * 7919 + 31 * seed) % 23 - 11).reshape(shape) / 8.0


#: name: shapes of x, w and bias (or None), keywords
CONV: dict[str, tuple[tuple, tuple, tuple | None, dict[str, Any]]] = {
    "plain": ((2, 3, 6, 7), (4, 3, 3, 2), (4,), {}),
    "padded": ((2, 2, 5, 5), (3, 2, 3, 3), (3,), dict(padding=1)),
    "strided": ((2, 2, 7, 8), (3, 2, 3, 3), None, dict(stride=2, padding=(1, 2))),
    "strides": ((1, 2, 9, 8), (2, 2, 2, 3), None, dict(stride=(3, 2))),
    "dilated": ((2, 2, 8, 7), (2, 2, 3, 2), (2,), dict(dilation=(2, 3), padding=1)),
    "grouped": ((2, 4, 5, 6), (6, 2, 2, 3), (6,), dict(groups=2)),
    "depthwise": ((2, 3, 6, 6), (6, 1, 3, 3), (6,), dict(groups=3, padding=1, stride=2)),
    "pointwise": ((2, 5, 3, 4), (3, 5, 1, 1), (3,), {}),
    "same": ((1, 2, 5, 6), (2, 2, 3, 4), None, dict(padding="same")),
    "line": ((3, 2, 9), (4, 2, 3), (4,), dict(stride=2, padding=2)),
    "volume": ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), (3,), dict(padding=(1, 0, 1), stride=(1, 2, 1))),
    "whole": ((2, 2, 3, 4), (3, 2, 3, 4), None, {}),
}
TRANSPOSE: dict[str, tuple[tuple, tuple, tuple | None, dict[str, Any]]] = {
    "plain": ((2, 3, 4, 3), (3, 2, 3, 2), (2,), {}),
    "strided": ((2, 2, 3, 4), (2, 3, 3, 3), (3,), dict(stride=2, padding=1, output_padding=1)),
    "longer": ((1, 2, 3, 3), (2, 1, 2, 2), None, dict(stride=3, output_padding=(2, 1))),
    "grouped": ((2, 4, 3, 3), (4, 2, 2, 3), (4,), dict(groups=2, dilation=2, stride=(1, 2))),
    "line": ((2, 2, 5), (2, 3, 4), (3,), dict(stride=2, padding=1)),
}
#: name: function, shape of x, window, keywords
POOL: dict[str, tuple[str, tuple, Any, dict[str, Any]]] = {
    "max": ("max_pool", (2, 3, 6, 8), 2, {}),
    "max_rest": ("max_pool", (2, 2, 7, 9), (2, 3), {}),
    "max_over": ("max_pool", (2, 2, 7, 8), 3, dict(stride=2, padding=1)),
    "max_dilated": ("max_pool", (1, 2, 7, 8), (2, 3), dict(stride=1, dilation=2)),
    "max_line": ("max_pool", (2, 3, 9), 3, dict(stride=2)),
    "max_volume": ("max_pool", (1, 2, 4, 5, 4), 2, dict(stride=(2, 1, 2))),
    "max_large": ("max_pool", (1, 2, 9, 8), (6, 7), dict(stride=1)),
    "avg": ("avg_pool", (2, 3, 6, 8), 2, {}),
    "avg_rest": ("avg_pool", (2, 2, 7, 9), (2, 4), {}),
    "avg_over": ("avg_pool", (2, 2, 7, 8), 3, dict(stride=2, padding=1)),
    "avg_inside": ("avg_pool", (2, 2, 5, 6), 3, dict(stride=1, padding=1, count_include_pad=False)),
    "avg_line": ("avg_pool", (2, 3, 9), 4, dict(stride=3)),
    "avg_volume": ("avg_pool", (1, 2, 4, 5, 4), (2, 3, 2), dict(stride=1)),
    "avg_large": ("avg_pool", (1, 2, 9, 8), (6, 7), dict(stride=1)),
}


def operands(case: tuple) -> list[np.ndarray]:
    """x, w and the bias of a case of CONV or TRANSPOSE."""
    return [numbers(shape, k) for k, shape in enumerate(case[:3]) if shape is not None]


def golden() -> dict[str, np.ndarray]:
    """By "conv/plain/0" and so on: the result, then the gradients of its sum times ``numbers(its shape, 9)``."""
    with np.load(FILE) as found:
        return dict(found)


def _record() -> None:
    import torch
    import torch.nn.functional as F

    out: dict[str, np.ndarray] = {}

    def note(name: str, fn: Any, arrays: list[np.ndarray], **kwargs: Any) -> None:
        leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
        y = fn(*leaves, **kwargs)
        g = torch.autograd.grad((y * torch.tensor(numbers(y.shape, 9))).sum(), leaves)
        for k, a in enumerate([y, *g]):
            out[f"{name}/{k}"] = a.detach().numpy()

    for family, cases in (("conv", CONV), ("conv_transpose", TRANSPOSE)):
        for name, case in cases.items():
            fn = getattr(F, f"{family}{len(case[0]) - 2}d")
            note(f"{family}/{name}", fn, operands(case), **case[3])
    for name, (family, shape, window, kwargs) in POOL.items():
        fn = getattr(F, f"{family}{len(shape) - 2}d")
        note(f"{family}/{name}", fn, [numbers(shape, 0)], kernel_size=window, **kwargs)
    np.savez_compressed(FILE, **out)


if __name__ == "__main__":
    _record()
