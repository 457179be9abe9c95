"""Numbers that decide something, and in which runs they may be others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.ir.types import TupleType
from symc.ir.value import Value

#: What remains of a sum may be 0 if a run moves it by more than one part of so many.
CANCELLED = 48.0


class Decisions:
    """Places where numbers that decide something (a comparison, an order, a cast to whole numbers) are 0 or not finite.

    In a run in which overflow, underflow or an indeterminate nan is a number, it may be any other: nobody knows the
    size of what overflowed, and a comparison with it decides nothing. So it is with divisors: one of which cancellation
    left nothing may be 0, and 0 divided by it 0 or nan.
    """

    def __init__(self) -> None:
        self._found: list[tuple[Value, list[Any]]] = []
        self.factorized = False  # a matrix, after a number that is not finite
        self._finite = True

    def note(self, v: Value, operands: Sequence[Any]) -> None:
        """The operands of a value in the run that the others are compared with."""
        self._finite = self._finite and all_finite(operands)
        self.factorized |= v.op.facts.rounding == "norm" and not self._finite
        divisor = v.op.facts.divisor
        if _decides(v) or divisor is not None:
            self._found.append((v, [np.array(a) if np.asarray(a).dtype.kind == "f" and divisor in (None, k) else None
                                    for k, a in enumerate(operands)]))

    def follow(self, turn: int, rng: np.random.Generator) -> Callable[[Value, list[Any]], list[Any]]:
        """Operands as another run may have them; for its values in turn, as long as it goes the same way."""
        steps = iter(self._found)

        def undecided(v: Value, operands: list[Any]) -> list[Any]:
            divides = v.op.facts.divisor is not None
            before, first = next(steps, (None, [])) if divides or _decides(v) else (None, [])
            if before is not v or all(x is None for x in first):
                return operands
            if divides:
                return [a if x is None or turn % 4 != 2 else _perhaps_zero(a, x)
                        for a, x in zip(operands, first, strict=True)]
            most = _greatest(v)
            found = [a if x is None or x.shape != np.shape(a) else
                     _of_any_size(np.asarray(a), x, turn, (-1) ** k, rng, most)
                     for k, (a, x) in enumerate(zip(operands, first, strict=True))]
            return _perhaps_equal(operands, first, found, rng) if v.op.name in ("eq", "ne") else found

        return undecided


def _decides(v: Value) -> bool:
    """True if a value says something about real numbers, but is none (or is -1, 0 or 1)."""
    if v.op.name == "sign":
        return v.dtype.kind == "f"
    kinds = [t.dtype.kind for t in v.types]
    return not v.regions and not set(kinds) & set("fc") and any(
        not isinstance(o.type, TupleType) and o.type.dtype.kind == "f" for o in v.operands)


def _greatest(v: Value) -> float:
    """The greatest number that a value may be asked about: as an integer, one that there is in its dtype."""
    return float(np.iinfo(v.dtype).max) if v.op.name == "cast" and v.dtype.kind in "iu" else np.inf


def _of_any_size(a: np.ndarray, first: np.ndarray, turn: int, side: int, rng: np.random.Generator,
                 most: float) -> np.ndarray:
    """Numbers of any size and sign, or 0, where they were lost in the ``first`` run, and are finite and not 0 in this.

    What is left of a sum that cancels may be 0. In turn all are great, all negative and great (on the other ``side`` of
    a comparison the other way round), all 0, and all of any size: two turns decide a comparison both ways.
    """
    with np.errstate(all="ignore"):
        exponents = rng.random(a.shape) if turn % 4 < 2 else rng.random(a.shape) * 2 - 1
        size = np.exp(exponents * float(np.log(min(most, np.finfo(a.dtype).max))))
        size *= (side, -side, 0, rng.choice([-1, 0, 1], a.shape))[turn % 4]
        lost = (~np.isfinite(first) | (first == 0)) & np.isfinite(a) & (a != 0)
        if turn % 4 == 2:
            lost |= _cancelled(a, first)
        return np.where(lost, size, a).astype(a.dtype)


def _cancelled(a: np.ndarray, first: np.ndarray) -> np.ndarray:
    """True where a number is so far from what it was in the ``first`` run that it may be 0."""
    return np.asarray(CANCELLED * np.abs(a - first) > np.abs(first))


def _perhaps_zero(a: Any, first: np.ndarray) -> Any:
    """A divisor that is 0 where cancellation left nothing of it."""
    with np.errstate(all="ignore"):
        return a if np.shape(a) != first.shape else np.where(_cancelled(np.asarray(a), first), 0, a).astype(first.dtype)


def _perhaps_equal(operands: list[Any], first: list[Any], found: list[Any], rng: np.random.Generator) -> list[Any]:
    """Operands of a test for equality. What may be of any size may be what it is compared with, and so may what is as
    far from it as it is from what it was in the ``first`` run."""
    a, b = map(np.asarray, operands)
    with np.errstate(all="ignore"):
        lost = np.logical_or(a != np.asarray(found[0]), b != np.asarray(found[1]))
        moved_by = sum((np.abs(x - y) for x, y in zip((a, b), first, strict=True) if y is not None), np.zeros(a.shape))
        lost = lost | (np.abs(a - b) <= CANCELLED * moved_by) & (a != b)
    return [np.where(lost & (rng.random(lost.shape) < 0.5), found[1], found[0]), found[1]]


def all_finite(operands: Sequence[Any]) -> bool:
    """True if all numbers are; of several results, of each."""
    return all(all_finite(a) if isinstance(a, tuple | list) else bool(np.isfinite(a).all()) for a in operands)
