"""Tolerances: how far apart two right ways to compute a function may be.

A bound that is one number is wrong twice: it blames programs that cancel, and it hides errors where nothing does. Here
the program itself says what it can promise: the reference is run again with every intermediate number moved by a few
units in the last place (the same move wherever a value is used). What the results then spread over is what any other
order of operations may change. Results that jump (an index, a comparison near its border, an overflow) are not
promised at all. Besides, an answer may always be nearer to the truth than the reference: the program is run in wider
numbers too (float32 in float64, float64 in the platform's long double), and what agrees with that is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from symc.errors import AssertError, ExecutionError
from symc.ir.function import Function
from symc.ir.location import NOWHERE, in_order
from symc.ir.op import lookup
from symc.ir.record import dataclass
from symc.ir.value import Value
from symc.tools.debugging.decisions import Decisions
from symc.tools.debugging.observe import evaluate
from symc.tools.debugging.perturb import KIND_SATURATED, moved
from symc.tools.debugging.wide import wide

#: How many times what results spread over they may be off.
ALLOWED = 48.0
#: How far a result may be from wide numbers where the reference overflows, by bytes: nothing else is known there.
ASTRAY = {2: np.inf, 4: 1e-2, 8: 5e-3}
#: Units in the last place of a result that are never looked at.
FREE = 256.0
RUNS, MORE_RUNS = 6, 40
#: How many wider evaluations, moved as well, have to agree with the first.
WIDE_RUNS = 3


@dataclass(frozen=True)
class Difference:
    """Result ``result`` is wrong at ``index``: ``got`` instead of ``want``, where ``allowed`` would be rounding."""

    result: int
    index: tuple[int, ...]
    got: Any
    want: Any
    allowed: float
    what: str = ""

    def __str__(self) -> str:
        if self.what:
            return f"result {self.result} {self.what}"
        where = f" at {list(self.index)}" if self.index else ""
        bound = f" (rounding explains {self.allowed:.2g})" if np.isfinite(self.allowed) and self.allowed else ""
        return f"result {self.result}{where} is {self.got}, not {self.want}{bound}"


def _as_promised(f: Function, decisions: Decisions, v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
    """The result of an op of ``f``; what is assumed is checked, and what decides something is noted."""
    decisions.note(v, operands)
    if v.op.name != "assume":
        return v.op.reference(*operands, **attrs)
    try:
        return lookup("check_assumption").reference(*operands, **attrs)
    except AssertError as e:
        lines = f.locations(v) or in_order(NOWHERE.union(*(own.get(v, NOWHERE) for own in f.inside.values())))
        e.attach([("x", v.type, lines[0] if lines else None)], lines)
        raise


#: What a reference says of operands for which an op has no meaning.
REFUSED = (ExecutionError, ValueError, IndexError, np.linalg.LinAlgError, ArithmeticError)


class Oracle:
    """The results of a function on arrays, and which others are as good. Raises AssertError where an assumption does
    not hold.

    ``expected``: what the results should be instead of the reference's. ``tolerance``: a relative error of each number
    that is allowed, instead of what the program itself promises.
    """

    def __init__(self, f: Function, arrays: Sequence[np.ndarray], *, expected: Sequence[Any] | None = None,
                 tolerance: float | None = None):
        self.function, self.arrays, self.tolerance = f, [np.asarray(a) for a in arrays], tolerance
        self._decisions = Decisions()
        self.reference = [np.asarray(a) for a in evaluate(f, arrays, partial(_as_promised, f, self._decisions))]
        self.want = self.reference if expected is None else [np.asarray(a) for a in expected]
        self._given = expected is not None
        self._runs: list[list[np.ndarray]] = []
        self._refused = False  # by a factorization, in one of those runs
        self._wide: list[list[np.ndarray]] | None = None

    def difference(self, got: Sequence[Any]) -> Difference | None:
        """The first wrong result, or None."""
        for k, want in enumerate(self.want):
            g = np.asarray(got[k])
            if g.dtype != want.dtype or g.shape != want.shape:
                have, wish = (f"{a.dtype.name}{list(a.shape)}" for a in (g, want))
                return Difference(k, (), g, want, 0.0, f"is {have}, not {wish}")
            found = self._compare(k, g, want)
            if found is not None:
                return found
        return None

    @property
    def may_refuse(self) -> bool:
        """True if a library may find a matrix singular, or indefinite, or not converge: one that may not be finite, or
        that rounding makes so."""
        if not self._decisions.factorized:
            self._move(MORE_RUNS)
        return self._decisions.factorized or self._refused

    def promised(self, k: int) -> np.ndarray:
        """True where result ``k`` is a number that rounding does not decide."""
        return self._bounds(k, self.want[k], RUNS)[1]

    def _compare(self, k: int, got: np.ndarray, want: np.ndarray) -> Difference | None:
        wrong = ~_near(got, want, np.abs(_float(want)) * (self.tolerance or FREE * _eps(want.dtype)))
        if not wrong.any():
            return None
        if self.tolerance is not None:
            return _first(k, wrong, got, want, np.abs(_float(want)) * self.tolerance)
        allowed = np.zeros(want.shape)
        for runs in (RUNS, MORE_RUNS):
            allowed, promised = self._bounds(k, want, runs)
            wrong &= ~(_near(got, want, allowed) | _may_overflow(got, want, allowed))
            if wrong.any() and not self._given:
                wide, sure = self._in_wide(k)
                wrong &= ~_near(got, wide, allowed + FREE * _eps(want.dtype) * np.abs(_float(wide)))
                astray = np.zeros(want.shape, bool)
                if want.dtype.kind == "f":
                    far = ASTRAY[want.dtype.itemsize] * np.abs(_float(wide))
                    astray = np.isinf(want) & sure & ~_near(got, wide, far)
                wrong &= promised | astray
            else:
                wrong &= promised
            if not wrong.any():
                return None
        return _first(k, wrong, got, want, allowed)

    def _bounds(self, k: int, want: np.ndarray, runs: int) -> tuple[np.ndarray, np.ndarray]:
        """Bound of what rounding may change of each number, and where there is a promise."""
        self._move(runs)
        have, all_runs = self.reference[k], [np.asarray(r[k]) for r in self._runs if r]
        if len(all_runs) < len(self._runs):
            return np.zeros(want.shape), np.zeros(want.shape, bool)  # nothing is promised
        if want.dtype.kind not in "fc":
            same = np.ones(want.shape, bool)
            for r in all_runs:
                same &= r == have
            return np.zeros(want.shape), same
        promised, spread = np.ones(want.shape, bool), np.zeros(want.shape)
        with np.errstate(all="ignore"):
            finite = np.isfinite(have)
            apart = [np.where(finite, np.abs(_float(r) - _float(have)), 0.0) for r in all_runs]
            for r in all_runs:
                promised &= np.where(finite, np.isfinite(r), _same_kind(r, have))
            for number, distance in enumerate(apart):
                if number % 3 != KIND_SATURATED:
                    spread = np.fmax(spread, distance)
            allowed = ALLOWED * spread + FREE * _eps(want.dtype) * np.abs(_float(have)) + _floor(want.dtype)
            for distance in apart[KIND_SATURATED::3]:  # what overflow or underflow decides
                promised &= ~(distance > allowed)
        return np.where(np.isfinite(allowed), allowed, 0.0), promised

    def _move(self, runs: int) -> None:
        """Runs with moved numbers; no results where an op refuses those."""
        while len(self._runs) < runs:
            try:
                self._runs.append(moved(self.function, self.arrays, len(self._runs), self._decisions))
            except REFUSED as e:  # on the edge of what an op accepts
                self._refused |= isinstance(e, np.linalg.LinAlgError)
                self._runs.append([])

    def _wide_run(self, seed: int | None) -> list[Any]:
        """Results in wider numbers; nan where an op refuses those."""
        try:
            return wide(self.function, self.arrays, seed)
        except REFUSED:
            return [np.full(a.shape, np.nan) if a.dtype.kind in "fc" else a for a in self.reference]

    def _in_wide(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Result ``k`` in wider numbers, and where it is no great number, and none that cancellation decides."""
        if self._wide is None:
            runs = [self._wide_run(seed) for seed in (None, *range(WIDE_RUNS))]
            self._wide = [[np.asarray(a) for a in results] for results in zip(*runs, strict=True)]
        a, *others = self._wide[k]
        if a.shape != self.want[k].shape:
            return self.reference[k], np.zeros(self.want[k].shape, bool)
        if a.dtype.kind != "f":
            return a, np.zeros(a.shape, bool)
        with np.errstate(all="ignore"):
            sure = np.isfinite(a) & (np.abs(a) < 1e-3 * np.finfo(self.want[k].dtype).max)
            for b in others:
                sure &= np.abs(a - b) <= 1e-6 * np.abs(a)
            return a, sure


def _first(k: int, wrong: np.ndarray, got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> Difference:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(k, index, got[index], want[index], float(allowed[index]) if allowed.shape else float(allowed))


def _float(a: np.ndarray) -> np.ndarray:
    """Numbers as they are subtracted: wide, so that unsigned integers and float16 do not overflow."""
    if a.dtype.kind == "c":
        return a.astype(np.clongdouble)
    return a.astype(np.longdouble)


def _eps(d: np.dtype) -> float:
    return float(np.finfo(d).eps) if d.kind in "fc" else 0.0


def _floor(d: np.dtype) -> float:
    """Bound of what gradual underflow may lose."""
    return 1024 * float(np.finfo(d).smallest_normal) if d.itemsize > 2 and d.kind in "fc" else 1e-6


def _same_kind(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Both nan, or the same infinity."""
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        return ~np.isfinite(a) & ~np.isfinite(b)  # which part of a complex number is infinite, NumPy does not promise
    return (np.isnan(a) & np.isnan(b)) | (a == b)


def _may_overflow(got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """True where a number became infinite of which rounding leaves nothing: what it was divided by may cancel to 0."""
    if want.dtype.kind not in "fc":
        return np.zeros(want.shape, bool)
    return np.isinf(got) & (allowed > np.abs(_float(want)) + 2 * _floor(want.dtype))


def _near(got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """True where numbers are equal, or finite and as near as allowed."""
    if want.dtype.kind not in "fc":
        return np.asarray(got == want)
    with np.errstate(all="ignore"):
        if want.dtype != got.dtype:  # wide: what overflows in the dtype of the result is infinite there
            narrow = want.astype(got.dtype)
            close = np.isfinite(want) & (np.abs(_float(got) - want) <= allowed)
            return close | (~np.isfinite(narrow) & _same_kind(got, narrow))
        close = np.isfinite(want) & np.isfinite(got) & (np.abs(_float(got) - _float(want)) <= allowed)
        return np.where(np.isfinite(want), close | (got == want), _same_kind(got, want))


def allowed_between(oracle: Oracle, j: int, k: int) -> float:
    """Tolerance between two results (numbers) that should be one number, each computed in its own way."""
    total = 0.0
    for r in (j, k):
        allowed, promised = oracle._bounds(r, oracle.reference[r], MORE_RUNS)
        total += float(allowed) if promised.all() else float("inf")
    return total
