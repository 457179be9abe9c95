"""Everyday programs: short functions of arrays as users write them with NumPy, one file a kind of user.

A function gets the array namespace first, then its arrays; the same text runs under NumPy, JAX and symc. What the
namespaces do not share is here: a counted loop, and counts of known length.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]
Maker = Callable[[np.random.Generator, int], Sequence[np.ndarray]]
TOLERANCES = {"float64": 1e-9, "float32": 2e-4}
ALL = ("numpy", "jax", "symc")
WRITES = ("numpy", "symc")
"""Peers of a program that writes into its arrays, which JAX's do not allow."""


@dataclass(frozen=True)
class Program:
    """A function, what makes its arguments for a size, the size to measure, and one at which tests run it."""

    name: str
    function: Function
    make: Maker
    size: int
    small: int
    dtype: str = "float64"
    peers: tuple[str, ...] = ALL

    def arguments(self, size: int | None = None) -> list[np.ndarray]:
        """The same arrays in every process; real ones in the program's dtype."""
        made = self.make(np.random.default_rng(0), size or self.size)
        return [a.astype(self.dtype) if a.dtype.kind == "f" else a for a in map(np.asarray, made)]


PROGRAMS: dict[str, Program] = {}


def program(size: int, small: int, make: Maker, dtype: str = "float64", peers: tuple[str, ...] = ALL,
            ) -> Callable[[Function], Function]:  # fmt: skip
    """Decorates a function as a program named by its file and itself."""

    def register(function: Function) -> Function:
        name = f"{function.__module__.rpartition('.')[2]}-{function.__name__}"
        PROGRAMS[name] = Program(name, function, make, size, small, dtype, peers)
        return function

    return register


def load_all() -> dict[str, Program]:
    """Every program by name. A module here is found by its file."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    return PROGRAMS


def repeat(xp: Any, count: int, step: Callable[[Any, Any], Any], state: Any) -> Any:
    """``state = step(i, state)`` for i in range(count), as each namespace says a loop that is not unrolled."""
    if xp.__name__ == "jax.numpy":
        import jax

        return jax.lax.fori_loop(0, count, step, state)
    if xp.__name__ == "symc":
        return xp.fori_loop(0, count, step, state)
    for i in range(count):
        state = step(i, state)
    return state


def counts(xp: Any, x: Any, length: int, weights: Any = None) -> Any:
    """Counts of each number below ``length`` is in x; JAX does not compile it without that length."""
    known = {"length" if xp.__name__ == "jax.numpy" else "minlength": length}
    return xp.bincount(x, weights=weights, **known)


def running(xp: Any, ufunc: str, x: Any) -> Any:
    """A ufunc's ``accumulate``: symc's are plain functions, and NumPy's ufuncs work on its values."""
    return getattr(np if xp.__name__ == "symc" else xp, ufunc).accumulate(x)
