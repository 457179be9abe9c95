"""Calls of every public function with operands of every dtype, found by trying: a new function needs no entry.

A *form* is one way of calling a function: shapes of its array operands, and other arguments. A function is called in
the forms that NumPy (or SciPy) accepts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

import symc as sc
from symc import numpy_api
from symc.ir.types import DTYPES
from symc.numpy_api.__main__ import numpy_names
from symc.public import API

ALL = tuple(DTYPES.values())
#: Small numbers, all different modulo nothing, so that small integers neither wrap at once nor divide by zero ...
NUMBERS = np.array([3, 1, 2, 5, 4, 7, 6, 9, 8, 11, 10, 12])


@dataclass(frozen=True)
class Form:
    """One way of calling: ``build(fn, arrays)`` with one array a shape."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    build: Callable[..., Any]


def _forms() -> list[list[Form]]:
    """Groups of forms, by number of operands; of a group the first that works counts."""
    one: list[tuple[str, Callable[..., Any]]] = [
        ("a", lambda f, a: f(a)),
        ("a, 1", lambda f, a: f(a, 1)),
        ("a, 0.5", lambda f, a: f(a, 0.5)),
        ("a, 0, 1", lambda f, a: f(a, 0, 1)),
        ("a, (0,)", lambda f, a: f(a, (0,))),
        ("a, axis=0", lambda f, a: f(a, axis=0)),
        ("1, a", lambda f, a: f(1, a)),
        ("mask, a", lambda f, a: f(a > 1, a)),
        ("[a]", lambda f, a: f([a])),
        ("'ij->j', a", lambda f, a: f("ij->j", a)),
    ]
    two: list[tuple[str, Callable[..., Any]]] = [
        ("a, b", lambda f, a, b: f(a, b)),
        ("[a, b]", lambda f, a, b: f([a, b])),
        ("'ij,jk', a, b", lambda f, a, b: f("ij,jk->ik", a, b)),
        ("mask, a, b", lambda f, a, b: f(np.array([True, False, True, False]), a, b)),
        ("[mask], [a], b", lambda f, a, b: f([np.array([True, False, True, False])], [a], b)),
        ("a, 1, b", lambda f, a, b: f(a, 1, b)),
        ("a, b, b", lambda f, a, b: f(a, b, b)),
        ("ones, a, b", lambda f, a, b: f(np.arange(4), a, b)),
        ("[0, 1], [a, b]", lambda f, a, b: f(np.array([0, 1, 1, 0]), [a, b])),
        ("a, weights=b", lambda f, a, b: f(a, weights=b)),
        ("a, constant_values=b", lambda f, a, b: f(a, 1, constant_values=b)),
        ("a, prepend=b", lambda f, a, b: f(a, prepend=b)),
    ]
    shapes1: list[tuple[tuple[int, ...], ...]] = [((4,),), ((2, 3),), ((3, 3),), ((2, 2, 3),), ((),)]
    shapes2: list[tuple[tuple[int, ...], ...]] = [((4,), (4,)), ((2, 3), (3, 2)), ((3,), (3,)), ((3, 3), (3, 3)),
                                                  ((4,), ())]
    return [
        [Form(f"{n} {s}", s, b) for s in shapes] for table, shapes in ((one, shapes1), (two, shapes2)) for n, b in table
    ]


FORMS = _forms()


def functions() -> dict[str, tuple[Callable, Callable | None]]:
    """Public functions and the function of NumPy or SciPy that each is; None: symc's own."""
    names = numpy_names()
    out: dict[str, tuple[Callable, Callable | None]] = {}

    def add(name: str, fn: Callable, other: Callable | None) -> None:
        if fn not in [f for f, _ in out.values()]:
            out[name] = (fn, other)

    def numpy_function(path: str) -> Callable:
        found: Any = np
        for part in path.split(".")[1:]:
            found = getattr(found, part)
        return found

    for name in numpy_api.FUNCTIONS:
        fn = API[name]
        own = [n for n in names.get(fn, ())]
        other = numpy_function(own[0]) if own else getattr(np, name, None) or getattr(scipy.special, name, None)
        add(name, fn, other)
    for name, fn in numpy_api.LINALG.items():
        add(f"linalg.{name}", fn, getattr(np.linalg, name, None))
    for name in sc.special.__all__:
        add(f"special.{name}", getattr(sc.special, name), getattr(scipy.special, name, None))
    return out
