"""Schedules: learning rates as functions of the number of steps that were made before.

A schedule is a function from that number (a symbolic float64 scalar, or several) to the rate. Optimizers take one in
place of a number: ``sc.optim.adam(sc.optim.cosine(1e-3, 10_000))``; so does any function that you write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from symc import numpy_api as xp
from symc.errors import InputError
from symc.tensors.tensor import Tensor

Schedule = Callable[[Tensor], Any]


def _check(what: str, **positive: float) -> None:
    for name, n in positive.items():
        if not n > 0:
            raise InputError(f"sc.optim.{what}: {name} is {n}", help="a positive number")


def constant(rate: float) -> Schedule:
    """One rate for ever."""
    return lambda step: rate + 0 * step


def step_decay(rate: float, factor: float, every: int) -> Schedule:
    """The rate times ``factor`` after every ``every`` steps."""
    _check("step_decay", every=every)
    return lambda step: rate * factor ** xp.floor(step / every)


def piecewise(boundaries: Sequence[int], rates: Sequence[float]) -> Schedule:
    """The k-th rate until the k-th boundary, and the last one after all of them."""
    if len(rates) != len(boundaries) + 1 or list(boundaries) != sorted(boundaries):
        raise InputError(f"sc.optim.piecewise: {len(boundaries)} boundaries and {len(rates)} rates",
                         help="boundaries in order, and one rate more")

    def at(step: Tensor) -> Any:
        found = rates[-1] + 0 * step
        for boundary, rate in zip(boundaries[::-1], rates[-2::-1], strict=True):
            found = xp.where(step < boundary, rate, found)
        return found

    return at


def exponential(rate: float, factor: float, every: float = 1) -> Schedule:
    """The rate times ``factor`` per ``every`` steps, smoothly."""
    _check("exponential", every=every, factor=factor)
    return lambda step: rate * factor ** (step / every)


def inverse_time(rate: float, decay: float, power: float = 1.0) -> Schedule:
    """rate / (1 + decay * step)^power."""
    return lambda step: rate / (1 + decay * step) ** power


def linear(rate: float, steps: int, final: float = 0.0) -> Schedule:
    """Line from ``rate`` to ``final`` in ``steps`` steps."""
    _check("linear", steps=steps)
    return lambda step: rate + (final - rate) * xp.minimum(step / steps, 1)


def cosine(rate: float, steps: int, final: float = 0.0) -> Schedule:
    """Half a cosine from ``rate`` to ``final`` in ``steps`` steps (Loshchilov and Hutter 2017)."""
    _check("cosine", steps=steps)
    return lambda step: final + (rate - final) * 0.5 * (1 + xp.cos(math.pi * xp.minimum(step / steps, 1)))


def cosine_restarts(rate: float, period: int, final: float = 0.0) -> Schedule:
    """Half a cosine from ``rate`` to ``final``, again and again."""
    _check("cosine_restarts", period=period)
    return lambda step: final + (rate - final) * 0.5 * (1 + xp.cos(math.pi * ((step % period) / period)))


def warmup(rate: float | Schedule, steps: int) -> Schedule:
    """Line from near 0 up to the rate in ``steps`` steps; a schedule begins after them."""
    _check("warmup", steps=steps)
    later = rate if callable(rate) else constant(rate)
    return lambda step: xp.minimum((step + 1) / steps, 1) * later(xp.maximum(step - steps, 0))


def cyclical(low: float, high: float, period: int, factor: float = 1.0) -> Schedule:
    """Up and down on lines between two rates, twice ``period`` steps a cycle (Smith 2017); the height of the lines is
    multiplied by ``factor`` every step."""
    _check("cyclical", period=period)

    def at(step: Tensor) -> Any:
        place = xp.abs(step / period - 2 * xp.floor(1 + step / (2 * period)) + 1)
        return low + (high - low) * xp.maximum(1 - place, 0) * factor**step

    return at


__all__ = ["constant", "cosine", "cosine_restarts", "cyclical", "exponential", "inverse_time", "linear", "piecewise",
           "step_decay", "warmup"]
