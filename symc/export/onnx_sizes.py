"""Meaning of ONNX's operators on sizes: what models compute shapes with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc.export.onnx_node import Node, Sizes
from symc.ir.dim import Size
from symc.ir.size_extremes import maximum, minimum
from symc.tensors.sizes import as_size, user_size


def _pairwise(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def run(node: Node, a: Sizes, b: Sizes) -> Sizes:
        n = max(len(a), len(b))
        one = lambda s: [s[0]] * n if len(s) == 1 else s
        return Sizes([f(x, y) for x, y in zip(one(a), one(b), strict=True)], a.scalar and b.scalar)

    return run


def _truncated(a: Any, b: Any) -> Any:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if isinstance(a, int) and isinstance(b, int) else a // b


def _extreme(f: Callable[[Size, Size], Size]) -> Callable[..., Any]:
    return _pairwise(lambda a, b: user_size(f(as_size(a), as_size(b))))


def _same(node: Node, *sizes: Sizes) -> Sizes:
    return sizes[0]


def _take_sizes(node: Node, data: Sizes, index: Sizes) -> Sizes | None:
    return Sizes([data[i] for i in index], index.scalar) if all(isinstance(i, int) for i in index) else None


def _slice_sizes(node: Node, data: Sizes, *rest: Sizes) -> Sizes | None:
    numbers = [r[0] for r in rest]
    if not all(isinstance(n, int) for n in numbers):
        return None
    start, end, step = numbers[0], numbers[1], numbers[3] if len(numbers) > 3 else 1
    return Sizes(data[start:end:step] if step > 0 or end > -(2**62) else data[start::step])


def filled(node: Node, shape: Sizes) -> Any:
    value = node.graph.array(node.attrs["value"].t) if "value" in node.attrs else np.zeros(1, np.float32)
    if len(shape) == 1 and isinstance(shape[0], int) and value.dtype.kind in "iu":
        return Sizes([int(value.ravel()[0])] * shape[0])
    return xp.full(tuple(shape), value.ravel()[0], value.dtype)


def _arange(node: Node, start: Sizes, limit: Sizes, step: Sizes) -> Any:
    if all(isinstance(s[0], int) for s in (start, limit, step)):
        return np.arange(start[0], limit[0], step[0])
    return xp.arange(start[0], limit[0], step[0], dtype="int64")


#: What is computed with sizes; None where it is not, as these are data.
OF_SIZES: dict[str, Callable[..., Any]] = {
    "Add": _pairwise(lambda a, b: a + b), "Sub": _pairwise(lambda a, b: a - b), "Mul": _pairwise(lambda a, b: a * b),
    "Div": _pairwise(_truncated), "Mod": _pairwise(lambda a, b: a % b),
    "Min": _extreme(minimum), "Max": _extreme(maximum),
    "Concat": lambda node, *xs: Sizes([s for x in xs for s in x]),
    "Squeeze": lambda node, x, *_: Sizes(x, True), "Unsqueeze": lambda node, x, *_: Sizes(x) if x.scalar else None,
    "Identity": _same, "Cast": lambda node, x: x if node.get("to") == 7 else None,
    "Reshape": lambda node, x, shape: Sizes(x, not shape) if len(x) == 1 and len(shape) < 2 else None,
    "Gather": _take_sizes, "Slice": _slice_sizes, "ConstantOfShape": filled, "Range": _arange,
}  # fmt: skip
