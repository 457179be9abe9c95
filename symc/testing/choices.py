"""Random choices that programs are made by: of forms, and of values made before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def one_of(rng: np.random.Generator, items: Sequence[T]) -> T:
    """One of the items."""
    return items[int(rng.integers(len(items)))]


def recent(rng: np.random.Generator, pool: Sequence[T], fits: Callable[[T], bool] | None = None) -> T:
    """A value that fits, mostly one of the last few. Raises ValueError where there is none."""
    found = [x for x in pool if fits is None or fits(x)]
    if not found:
        raise ValueError("nothing fits")
    return one_of(rng, found[-4:] if rng.random() < 0.6 else found)
