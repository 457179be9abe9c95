"""Evaluations of a function with numbers moved a little: they say what its results are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.ir.function import Function
from symc.ir.op import Element, Op, is_lossless
from symc.ir.ops.arithmetic import add, div, mul, sub
from symc.ir.ops.compare import eq, ne
from symc.ir.ops.linalg import dot, dot_reference
from symc.ir.ops.reduce import sum_
from symc.ir.types import TupleType
from symc.ir.value import Value
from symc.tools.debugging.decisions import Decisions, all_finite
from symc.tools.debugging.observe import by_reference, evaluate

#: By how many units in the last place numbers are moved.
MOVED = 4.0


def _short(a: np.ndarray) -> np.ndarray:
    """Numbers of few bits, and those that are not finite."""
    with np.errstate(all="ignore"):
        part = np.abs(a.real) + np.abs(a.imag) if a.dtype.kind == "c" else np.abs(a)
        scaled = part.astype(np.float64) * 16
        return ~np.isfinite(scaled) | ((scaled == np.rint(scaled)) & (scaled < 2**14))


#: What run k does besides moving numbers, by k % 3: nothing; overflow and underflow become large and small numbers;
#: a nan that comes of 0 * inf, inf - inf, 0 / 0 or inf / inf becomes a number, and zeros become 0.0, or -0.0.
KIND_SATURATED, KIND_NAN = 1, 2

def moved(f: Function, arrays: Sequence[np.ndarray], seed: int, decisions: Decisions | None = None) -> list[Any]:
    """The results with every number moved by a few units in the last place, each value in its own way.

    What else a run does, see ``KIND_SATURATED``: what depends on that is not promised. A nan of an indeterminate form
    is not promised either: ``x * log(x)`` may be 0 at 0. A nan of a log, a root, or an input is.
    """
    run = _Run(seed, decisions)
    start = [run.move(a, (), None) for a in map(np.asarray, arrays)]
    return evaluate(f, start, run.compute)


class _Run:
    """One run: how its numbers are moved. ``unrounded``: sums of products, and what the products may be off by: each
    user may have a sum of its own."""

    def __init__(self, seed: int, decisions: Decisions | None):
        self.rng, self.seed, self.kind = np.random.default_rng([20_011, seed]), seed, seed % 3
        self.unrounded: dict[Value, Any] = {}
        self.undecided = decisions.follow(seed // 3, self.rng) if decisions is not None and seed % 3 else None

    def move(self, a: Any, operands: Sequence[np.ndarray], op: Op | None) -> Any:
        """A result of ``op``, by a few units in the last place and in the way of this run."""
        a = np.asarray(a)
        if a.dtype.kind not in "fc" or not a.size:
            return a
        out = stepped(a, self.rng)
        keep = _short(a)
        if op and op.facts.rounding != "short" or not all(_short(o).all() for o in operands if o.dtype.kind in "fc"):
            keep = ~np.isfinite(a) | (a == 0)
        out = np.where(keep, a, out).astype(a.dtype)
        if op and a.dtype.kind == "f" and self.kind == KIND_SATURATED:
            return unsaturated(out, operands, op, self.rng)
        if self.kind == KIND_NAN:
            nan = op is not None and op.facts.indeterminate
            return _signed(_determined(out, operands, op, self.rng) if op and nan else out, self.seed, self.rng)
        return out

    def compute(self, v: Value, operands: list[Any], attrs: dict[str, Any]) -> Any:
        """The result of an op on operands as they may be, moved."""
        rng = self.rng
        solves = v.op is dot and any(o.op.name == "inv" for o in v.operands)  # of that a solution is made
        normwise = v.op.facts.rounding == "norm"
        refused = (normwise or solves) and not all_finite(operands)
        if normwise or refused:
            operands = [_moved_in_norm(o, rng) for o in operands]
        if self.undecided is not None:
            operands = self.undecided(v, operands)
        operands = self._rounded_once(v, operands, attrs)
        out = by_reference(v, operands, attrs)
        if refused and rng.random() < 0.5:
            return _no_number(out)
        if v.op is dot and self.kind == KIND_NAN:
            out = _beside_zeros(out, operands, attrs, rng)
        if v.op in (dot, sum_) and self.kind == KIND_SATURATED:
            out = _beside_overflow(v, out, operands, attrs, rng)
        return self._moved(v, out, operands, attrs)

    def _rounded_once(self, v: Value, operands: list[Any], attrs: dict[str, Any]) -> list[Any]:
        """Operands of which sums of products were rounded only once, each for this user; notes what ``v`` is off by."""
        unrounded, rng = self.unrounded, self.rng
        if not unrounded.keys().isdisjoint(v.operands):
            exact = operands
            operands, other = [[_within(a, unrounded[o], rng) if o in unrounded else a
                                for o, a in zip(v.operands, exact, strict=True)] for _ in range(2)]
            if isinstance(v.op.lowering, Element):  # a kernel computes it again for each user, too
                unrounded[v] = _apart(by_reference(v, operands, attrs), by_reference(v, other, attrs))
        if v.op in (add, sub) and any(o.op is mul for o in v.operands):
            unrounded[v] = sum(_rounding(a) for o, a in zip(v.operands, operands, strict=True) if o.op is mul)
        return operands

    def _moved(self, v: Value, out: Any, operands: list[Any], attrs: dict[str, Any]) -> Any:
        """The result of an op as it may be, by what its record says of rounding."""
        rng = self.rng
        if is_lossless(v.op):
            return _signed(out, self.seed, rng) if v.op.facts.rounding == "zeros" and self.kind == KIND_NAN else out
        if v.op in (eq, ne):
            return _undecided(out, operands[0], operands[1], rng)
        if v.op.facts.rounding == "norm":
            several = isinstance(v.type, TupleType)
            out = tuple(_moved_in_norm(a, rng) for a in out) if several else _moved_in_norm(out, rng)
        if "contraction" in v.op.traits:
            out = _in_any_order(v, out, operands, attrs, rng)
        if v.op.facts.shifted and _is_product(v.operands[0]):
            out = _apart_from_greatest(v, out, np.asarray(operands[0]), attrs["axes"], rng)
        if v.op.facts.absolute:
            out = _within(out, MOVED * np.finfo(np.asarray(out).dtype).eps, rng)
        known = [np.asarray(o) for o in operands if not isinstance(o, tuple | list)]
        if isinstance(v.type, TupleType):
            parts = [self.move(a, known, v.op) for a in out]
            return tuple(_turned(v.op, parts, rng) if v.op.facts.vectors and self.kind else parts)
        if v.op.name == "eigvals" and self.kind:
            out = rng.permutation(out, axis=-1)
        return self.move(out, known, v.op)


def stepped(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers moved by a few units in the last place."""
    size = MOVED * np.finfo(a.dtype).eps
    with np.errstate(all="ignore"):
        step = (rng.random(a.shape) * 2 - 1) * size
        return (a + a * step.astype(a.real.dtype)).astype(a.dtype)


def _signed(a: Any, seed: int, rng: np.random.Generator) -> np.ndarray:
    """Zeros are 0.0 in the first run of this kind, -0.0 in the second, and of any sign in the others; so are nans."""
    a = np.asarray(a)
    if a.dtype.kind not in "fc":
        return a
    out = a + a.dtype.type(0)
    if seed // 3 == 0:
        return out
    flipped = (out == 0) | (out != out)
    if seed // 3 > 1:
        flipped &= rng.random(a.shape) < 0.5
    return np.where(flipped, -out, out)


def _rounding(product: Any) -> np.ndarray:
    """Distance of a product that is added from the rounded one, at most: in a fused multiply-add it is not rounded.

    Which sums are fused is decided where they are computed, and a kernel may compute one several times.
    """
    product = np.asarray(product)
    if product.dtype.kind not in "fc":
        return np.zeros(product.shape, product.dtype)
    with np.errstate(all="ignore"):
        size = np.abs(product) * (np.finfo(product.dtype).eps / 2)
    return np.where(_short(product) | ~np.isfinite(size), 0, size)


def _is_product(v: Value) -> bool:
    """True if numbers are products, wherever they are moved to."""
    while v.op.name in ("broadcast", "reshape", "transpose", "slice", "neg"):
        v = v.operands[0]
    return v.op is mul


def _apart_from_greatest(v: Value, out: Any, x: np.ndarray, axes: Sequence[int], rng: np.random.Generator) -> Any:
    """A softmax of products, or its log: the greatest is subtracted from each, perhaps by a fused multiply-add, once
    where exponentials are summed and once for the result."""
    if not x.size:
        return out
    size = _rounding(x) + _rounding(x.max(axis=tuple(axes), keepdims=True))
    with np.errstate(all="ignore"):
        if v.op.name == "log_softmax":
            return _within(out, size, rng)
        return out * np.exp(_within(np.zeros_like(x), size, rng))


def _in_any_order(v: Value, out: Any, operands: list[Any], attrs: dict[str, Any], rng: np.random.Generator) -> Any:
    """A sum of products, rounded or not, that are added in another order: what is left of it may have been lost."""
    out, known = np.asarray(out), [np.asarray(a) for a in operands]
    if out.dtype.kind not in "fc" or all(_short(a).all() for a in known):
        return out
    with np.errstate(all="ignore"):
        most = by_reference(v, [np.abs(a).astype(a.dtype) for a in known], attrs)
        size = np.abs(most) * np.finfo(out.dtype).eps
    return _within(out, np.where(np.isfinite(size), size, 0), rng)


def _apart(x: Any, y: Any) -> np.ndarray:
    """Distance of numbers; 0 where they are none."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind not in "fc":
        return np.zeros(x.shape)
    with np.errstate(all="ignore"):
        size = np.abs(x - y)
    return np.where(np.isfinite(size), size, 0)


def _within(total: Any, size: Any, rng: np.random.Generator) -> np.ndarray:
    """Numbers that are off by at most ``size``."""
    total = np.asarray(total)
    if total.dtype.kind not in "fc":
        return total
    with np.errstate(all="ignore"):
        return (total + (rng.random(total.shape) * 2 - 1) * size).astype(total.dtype)


def _undecided(answer: Any, x: Any, y: Any, rng: np.random.Generator) -> np.ndarray:
    """Answer to whether numbers are equal: any answer where they are not, but only rounding says so."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind not in "fc":
        return np.asarray(answer)
    with np.errstate(all="ignore"):
        near = (x != y) & (np.abs(x - y) <= 64 * MOVED * np.finfo(x.dtype).eps * np.maximum(np.abs(x), np.abs(y)))
    return np.where(near, rng.random(x.shape) < 0.5, answer)


def _no_number(out: Any) -> Any:
    """Nan everywhere: what a library makes of matrices that are not finite, nobody promises."""
    if isinstance(out, tuple | list):
        return tuple(_no_number(a) for a in out)
    a = np.asarray(out)
    return np.full_like(a, np.nan) if a.dtype.kind in "fc" else a


def _moved_in_norm(a: Any, rng: np.random.Generator) -> Any:
    """A matrix whose elements are moved by a few units in the last place of the largest.

    What is no larger than that may be 0 as well, or any smaller number, an ordinary one most of all: it is in a library
    that knows of zeros (the other triangle of an inverse). What is not finite is any number: which elements of a
    solution become nan, no library says.
    """
    a = np.asarray(a)
    if a.dtype.kind not in "fc" or not a.ndim or not a.size:
        return a
    if not np.isfinite(a).all():
        return rng.uniform(0.5, 1.5, a.shape).astype(a.dtype)
    if a.ndim < 2:
        return a
    with np.errstate(all="ignore"):
        size = MOVED * float(np.finfo(a.dtype).eps) * np.abs(a).max(axis=(-2, -1), keepdims=True)
        out = (a + (rng.random(a.shape) * 2 - 1) * size).astype(a.dtype)
        any_size = np.where(rng.random(a.shape) < 0.5, size ** rng.random(a.shape), rng.uniform(0.2, 2.0, a.shape))
        less = np.minimum(any_size, size) * rng.choice([-1, 0, 1], a.shape)
    return np.where((np.abs(out) <= size) & (rng.random(a.shape) < 0.7), less, out).astype(a.dtype)


def _turned(op: Op, parts: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Vectors in other directions, and the eigenvalues of ``eig`` in another order: nobody may rely on those."""
    columns, rows = op.facts.vectors or ((), ())
    n = max(max(parts[k].shape[-2:]) for k in (*columns, *rows))
    signs = rng.choice([-1.0, 1.0], n)
    out = list(parts)
    for k in columns:
        out[k] = (out[k] * signs[: out[k].shape[-1]]).astype(out[k].dtype)
    for k in rows:
        out[k] = (out[k] * signs[: out[k].shape[-2], None]).astype(out[k].dtype)
    if op.name == "eig" and n:
        order = rng.permutation(parts[0].shape[-1])
        out = [out[0][..., order], out[1][..., order]]
    return out


def _determined(a: np.ndarray, operands: Sequence[np.ndarray], op: Op, rng: np.random.Generator) -> np.ndarray:
    """A nan that no operand has becomes a number; so does one beside an infinity (a length with both is infinite), and
    one beside a zero that it is multiplied with or divides (a zero that was chosen stays one)."""
    given, infinite = np.zeros((2, *a.shape), bool)
    each = "elementwise" in op.traits
    for o in operands:
        if o.dtype.kind in "fc":
            given |= np.isnan(o) if each else np.isnan(o).any()
            infinite |= np.isinf(o) if each else np.isinf(o).any()
            infinite |= o == 0 if op in (mul, div) else False
    return np.where(np.isnan(a) & ~(given & ~infinite), rng.uniform(0.5, 1.5, a.shape), a).astype(a.dtype)


def _beside_zeros(out: Any, operands: Sequence[Any], attrs: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """A product of arrays, with numbers where a zero met what is not finite: it may not have been multiplied at all."""
    out, pair = np.asarray(out), [np.asarray(a) for a in operands[:2]]
    if out.dtype.kind not in "fc" or all(np.isfinite(a).all() for a in pair):
        return out
    masks = ((pair[0] == 0, ~np.isfinite(pair[1])), (~np.isfinite(pair[0]), pair[1] == 0))
    met = sum(dot_reference(x.astype(float), y.astype(float), attrs["contract"], attrs["batch"]) for x, y in masks)
    return np.where(met > 0, rng.uniform(0.5, 1.5, out.shape), out).astype(out.dtype)


def _beside_overflow(v: Value, out: Any, operands: list[Any], attrs: dict[str, Any], rng: np.random.Generator) -> Any:
    """A sum with numbers where it is not finite, and would not be if all terms that are not were 0: in another order an
    infinity may meet another one."""
    if v.dtype.kind not in "fc" or all_finite(operands):
        return out
    most = by_reference(v, [np.where(np.isfinite(a), np.abs(a), 0).astype(a.dtype) for a in operands], attrs)
    lost = np.isinf(most) & ~np.isfinite(out)
    return np.where(lost, rng.uniform(0.5, 1.5, np.shape(out)), out).astype(np.asarray(out).dtype)


def unsaturated(a: np.ndarray, operands: Sequence[np.ndarray], op: Op, rng: np.random.Generator) -> np.ndarray:
    """Overflow becomes a large number, underflow a small one; each a random one."""
    inexact = [o for o in operands if o.dtype.kind in "fc"]
    alike = all(o.shape == a.shape for o in inexact)
    finite, nonzero = np.ones(a.shape, bool), np.ones(a.shape, bool)
    for o in inexact:
        finite &= np.isfinite(o) if alike else np.isfinite(o).all()
        nonzero &= (o != 0) if alike else bool((o != 0).all())
    if op.facts.divisor is not None and alike and inexact:
        finite &= inexact[op.facts.divisor] != 0
    if not op.facts.poles:
        large = float(np.finfo(a.dtype).max) * rng.uniform(0.01, 0.5, a.shape) * 10.0 ** -rng.choice([0, 1, 3, 9])
        a = np.where(np.isinf(a) & finite, np.copysign(large, a), a).astype(a.dtype)
    if op.facts.underflow:
        always = op.facts.underflow == "always"
        small = float(np.finfo(a.dtype).tiny) * rng.uniform(0.01, 0.9, a.shape)
        a = np.where((a == 0) & finite & (nonzero | always), np.copysign(small, a), a).astype(a.dtype)
    return a
