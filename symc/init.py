"""``sc.init``: initialisers, the numbers that parameters begin with.

``P.weight("w", (784, 128), sc.init.he_normal())``. An initialiser is a function of a NumPy generator, a
shape and a dtype. Numbers are drawn in float64 and rounded to the dtype, so they are the same in every dtype.

Fans: a matrix is (in, out); filters of a convolution are (out, in, *window), as ``sc.conv`` takes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import InputError, ShapeError

Shape = tuple[int, ...]


class Initializer:
    """A named way to fill an array: ``init(rng, shape, dtype)``."""

    def __init__(self, text: str, fill: Callable[[np.random.Generator, Shape], Any]):
        self.text, self.fill = text, fill

    def __call__(self, rng: np.random.Generator, shape: Shape, dtype: Any = "float64") -> np.ndarray:
        """An array of this shape and dtype. Raises ShapeError where the initialiser gives another shape."""
        array = np.asarray(self.fill(rng, tuple(shape)))
        if array.shape != tuple(shape):
            raise ShapeError(f"the initialiser {self.text} gives an array of shape {array.shape}, not {tuple(shape)}")
        return array.astype(dtype)

    def __repr__(self) -> str:
        return f"sc.init.{self.text}"


def fans(shape: Shape) -> tuple[float, float]:
    """Fan-in and fan-out: how many numbers an output is made of, and how many outputs a number goes into."""
    if len(shape) < 2:
        n = math.prod(shape)
        return n, n
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _uniform(text: str, bound: Callable[[Shape], float]) -> Initializer:
    return Initializer(text, lambda rng, shape: rng.uniform(-1, 1, shape) * bound(shape))


def _normal(text: str, deviation: Callable[[Shape], float]) -> Initializer:
    return Initializer(text, lambda rng, shape: rng.standard_normal(shape) * deviation(shape))


def _glorot(gain: float) -> Callable[[Shape], float]:
    return lambda shape: gain * math.sqrt(2 / max(1, sum(fans(shape))))


def _he(gain: float) -> Callable[[Shape], float]:
    return lambda shape: gain / math.sqrt(max(1, fans(shape)[0]))


def glorot_uniform(gain: float = 1.0) -> Initializer:
    """Uniform, of variance gain² · 2 / (in + out) (Glorot and Bengio 2010; "Xavier")."""
    return _uniform(f"glorot_uniform({gain})", lambda shape: math.sqrt(3) * _glorot(gain)(shape))


def glorot_normal(gain: float = 1.0) -> Initializer:
    """Normal, of variance gain² · 2 / (in + out)."""
    return _normal(f"glorot_normal({gain})", _glorot(gain))


def he_uniform(gain: float = math.sqrt(2)) -> Initializer:
    """Uniform, of variance gain² / in (He et al. 2015); the gain by default is that of ReLU."""
    return _uniform(f"he_uniform({gain:.4g})", lambda shape: math.sqrt(3) * _he(gain)(shape))


def he_normal(gain: float = math.sqrt(2)) -> Initializer:
    """Normal, of variance gain² / in; the gain by default is that of ReLU."""
    return _normal(f"he_normal({gain:.4g})", _he(gain))


def uniform(low: float = -0.1, high: float = 0.1) -> Initializer:
    """Uniform between two numbers."""
    if not low <= high:
        raise InputError(f"sc.init.uniform: low is {low}, high is {high}")
    return Initializer(f"uniform({low}, {high})", lambda rng, shape: rng.uniform(low, high, shape))


def normal(scale: float = 0.01, mean: float = 0.0) -> Initializer:
    """Normal, with this standard deviation."""
    if scale < 0:
        raise InputError(f"sc.init.normal: the standard deviation is {scale}")
    return Initializer(f"normal({scale}, {mean})", lambda rng, shape: mean + scale * rng.standard_normal(shape))


def orthogonal(gain: float = 1.0) -> Initializer:
    """Orthonormal rows or columns, whichever are fewer, times ``gain`` (Saxe et al. 2014).

    Any such matrix is as likely as any other. Of an array with more axes, the first one counts as rows.
    """

    def fill(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        if len(shape) < 2:
            raise ShapeError(f"sc.init.orthogonal: an array of shape {shape} is not a matrix")
        rows, columns = shape[0], math.prod(shape[1:])
        q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
        q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)  # a QR with signs of its own would favour some
        return gain * (q if rows >= columns else q.T).reshape(shape)

    return Initializer(f"orthogonal({gain})", fill)


saxe = orthogonal


def identity(scale: float = 1.0) -> Initializer:
    """Ones on the diagonal of a matrix, times ``scale``; of filters, those that give back what they get."""

    def fill(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        if len(shape) < 2:
            raise ShapeError(f"sc.init.identity: an array of shape {shape} is not a matrix")
        out = np.zeros(shape)
        for k in range(min(shape[:2])):
            out[(k, k, *(n // 2 for n in shape[2:]))] = scale
        return out

    return Initializer(f"identity({scale})", fill)


def constant(value: float) -> Initializer:
    """One number everywhere."""
    return Initializer(f"constant({value})", lambda rng, shape: np.full(shape, value))


def zeros() -> Initializer:
    """Zeros."""
    return Initializer("zeros()", lambda rng, shape: np.zeros(shape))


def ones() -> Initializer:
    """Ones."""
    return Initializer("ones()", lambda rng, shape: np.ones(shape))


def from_array(array: Any) -> Initializer:
    """The numbers of an array, whose shape must be that of the parameter."""
    kept = np.array(array)
    return Initializer(f"from_array({kept.dtype}{list(kept.shape)})", lambda rng, shape: kept)


def blocks(inner: Any, count: int) -> Initializer:
    """``inner`` for each of ``count`` equal parts of the last axis: weights of several gates that lie side by side."""
    each = as_initializer(inner)

    def fill(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        if shape[-1] % count:
            raise ShapeError(f"sc.init.blocks: the last of {shape} cannot be taken in {count} parts")
        part = (*shape[:-1], shape[-1] // count)
        return np.concatenate([each(rng, part) for _ in range(count)], axis=-1)

    return Initializer(f"blocks({each.text}, {count})", fill)


_FACTORIES: dict[Any, Callable[[], Initializer]] = {f: f for f in (
    glorot_uniform, glorot_normal, he_uniform, he_normal, uniform, normal, orthogonal, identity, zeros, ones)}


def as_initializer(item: Any) -> Initializer:
    """Converts what users give: an initialiser, one of the functions above, a number, an array, or a function of
    (rng, shape). Raises InputError for anything else."""
    if isinstance(item, Initializer):
        return item
    if callable(item):
        return _FACTORIES[item]() if item in _FACTORIES else Initializer(getattr(item, "__name__", "function"), item)
    if isinstance(item, int | float | np.number):
        return constant(float(item))
    if isinstance(item, np.ndarray | list | tuple):
        return from_array(item)
    raise InputError(f"{item!r:.60} is no initialiser",
                     help="sc.init.he_normal(), a number, an array, or a function of (rng, shape)")


__all__ = ["Initializer", "as_initializer", "blocks", "constant", "fans", "from_array", "glorot_normal",
           "glorot_uniform", "he_normal", "he_uniform", "identity", "normal", "ones", "orthogonal", "saxe", "uniform",
           "zeros"]
