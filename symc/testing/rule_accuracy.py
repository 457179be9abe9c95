"""No right side is less accurate than its left side: both against mpmath, over many magnitudes, in f32 and f64."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import SymcError
from symc.ir.traverse import postorder
from symc.ir.value import Value
from symc.opt.engine.examples import leaves as new_leaves
from symc.opt.engine.provenance import expression
from symc.opt.engine.rule import Rule
from symc.testing.rule_examples import SIZES, evaluate, examples, ordinary, seen_by, shape_of, sides
from symc.testing.rule_forms import CANNOT, free_leaves, retyped
from symc.tools.precise import NotPrecise, precise_values, to_precise
from symc.tools.promises import kept

#: The error in units in the last place that a right side is never blamed for.
ALLOWED_ULP = 8.0
#: How much more than the left side's error is rounding that fell out differently.
MORE = 2.0
#: The same for sums and products of many numbers in another order.
REORDERED = 8.0
#: Bits that are enough where 1 + exp(-600) is not 1, and at which results that need more give themselves away.
BITS, FEWER_BITS = 900, 600


def check_accuracy(r: Rule) -> None:
    """Checks that, where the left side is defined, the right side is no less accurate (to a few units in the last
    place)."""
    if r.exact or "f" not in r.kinds or "random" in r.tags:
        return
    for dtype in ("f32", "f64"):
        if r.pattern is not None and not r.dtypes:
            _check_equation(r, dtype)
        else:
            _check_structure(r, dtype)


def magnitudes(r: Rule, name: str) -> list[float]:
    """Sample points over ten magnitudes and a few large ones, both signs, within the rule's domain."""
    base = [10.0**k * m for k in range(-7, 3) for m in (1.0, 3.7)] + [1e5, 1e18]
    low, high = r.domain.get(name, (-np.inf, np.inf))
    return [x for s in (1, -1) for x in (s * b for b in base) if low <= x <= high]


def _check_equation(r: Rule, dtype: str) -> None:
    """Every combination of the magnitudes of the variables, each by itself."""
    assert r.build is not None
    grids = [magnitudes(r, n) for n in r.variables]
    points = list(itertools.product(*[g if len(grids) == 1 else g[::5] for g in grids]))
    try:
        left = r.build(*new_leaves(len(grids), dict.fromkeys(range(len(grids)), dtype), (len(points),)))[0]
    except CANNOT:
        return
    left, right = sides(r, seen_by(r, left))
    leaves = free_leaves(left)
    columns = [np.array(c, dtype.replace("f32", "f4").replace("f64", "f8")) for c in zip(*points, strict=True)]
    got = [evaluate(s, leaves, columns) for s in (left, right)]
    true = true_value(left, leaves, columns)
    if true is None and any(v.op.facts.custom is not None for v in postorder([left])):
        return  # only its NumPy function knows what it means
    assert true is not None, f"{r.name}: mpmath does not know an op of {expression(left)}"
    allowed = conditions(r, left, leaves, columns, true)
    compared = 0
    for k in range(len(points)):
        if not fits(true[k], left.dtype):
            continue
        compared += 1
        errors = [ulps(g[k : k + 1], true[k : k + 1], left.dtype) for g in got]
        assert errors[1] <= max(MORE * errors[0], ALLOWED_ULP + allowed[k]), (
            f"{r.name} ({dtype}) at {[c[k] for c in columns]}: {expression(right)} is {errors[1]:.3g} ulp off, "
            f"{expression(left)} {errors[0]:.3g}"
        )
    assert compared, f"{r.name} ({dtype}): its left side has a value nowhere; give a domain="


def _check_structure(r: Rule, dtype: str) -> None:
    """Arrays of numbers of one magnitude, once of one sign; the worst element counts. The first example meets every
    magnitude in both dtypes; the others take turns in one dtype each, and in half of the magnitudes."""
    for at, example in enumerate(examples(r)):
        if at and (at + (dtype == "f64")) % 2:
            continue
        form = retyped(example, dtype) if dtype != "f64" else example
        if form is None:
            continue
        left, right = sides(r, form)
        leaves = free_leaves(left)
        if right is left or getattr(left.type, "dtype", np.dtype("b1")).kind != "f":
            continue
        if max([int(np.prod(shape_of(x))) for x in leaves], default=0) > 64:
            continue
        for k in range(-5, 5):
            if at and (k // 2 + at // 2) % 2:
                continue
            arrays = [
                (np.abs(a) if k % 2 else a) * a.dtype.type(10.0**k) if a.dtype.kind == "f" else a
                for a in ordinary(r, leaves, k + 5)
            ]
            arrays = kept([left], leaves, arrays)
            try:
                true = true_value(left, leaves, arrays)
                got = [evaluate(s, leaves, arrays) for s in (left, right)]
            except (SymcError, ValueError, IndexError, AssertionError):
                continue
            if true is None or not true.size or not all(fits(t, left.dtype) for t in true.flat):
                continue
            errors = [ulps(g, true, left.dtype) for g in got]
            allowed = max(conditions(r, left, leaves, arrays, true))
            assert errors[1] <= max(REORDERED * errors[0], 2 * ALLOWED_ULP + allowed), (
                f"{r.name} ({dtype}, magnitude 1e{k}): {expression(right)} is {errors[1]:.3g} ulp off, "
                f"{expression(left)} {errors[0]:.3g} at {arrays}"
            )


def true_value(v: Value, leaves: Sequence[Value], arrays: Sequence[np.ndarray]) -> Any:
    """``v`` by mpmath, nan where it is no real number or more digits would be needed; None for ops it does not know."""
    import mpmath as mp

    try:
        true, fewer = (_precise(v, leaves, arrays, bits) for bits in (BITS, FEWER_BITS))
    except NotPrecise:
        return None
    out = np.empty(true.shape, object)
    with mp.workprec(BITS):
        for place in np.ndindex(true.shape):
            a, b = true[place], fewer[place]
            out[place] = a if abs(a - b) <= abs(a) * mp.mpf(2) ** -80 else mp.nan
    return out


def _precise(v: Value, leaves: Sequence[Value], arrays: Sequence[np.ndarray], bits: int) -> np.ndarray:
    import mpmath as mp

    with mp.workprec(bits):
        env = {x: to_precise(a) for x, a in zip(leaves, arrays, strict=True)}
        return precise_values([v], env, SIZES)[0]


def conditions(
    r: Rule, v: Value, leaves: Sequence[Value], arrays: Sequence[np.ndarray], true: np.ndarray
) -> list[float]:
    """Error that the rounding of the operands alone would make in each element, in units in the last place.

    It is forgiven to rules that say so by the tag ``conditioned``: exp(x) * exp(y) is more accurate than exp(x + y),
    but only for operands that are exact themselves.
    """
    if "conditioned" not in r.tags:
        return [0.0] * max(true.size, 1)
    out = np.zeros(true.size)
    eps = float(np.finfo(v.dtype).eps)
    for k, a in enumerate(arrays):
        if a.dtype.kind == "f":
            moved = [*arrays[:k], a.astype("f8") * (1 + eps), *arrays[k + 1 :]]
            near = true_value(v, leaves, moved)
            out += [ulps(np.asarray(m, "f8"), np.asarray([t]), v.dtype) if fits(t, v.dtype) else 0.0
                    for m, t in zip(near.flat, true.flat, strict=True)]  # fmt: skip
    return list(out) or [0.0]


def fits(true: Any, dtype: np.dtype) -> bool:
    """True if a value is a finite number of the dtype."""
    import mpmath as mp

    return bool(mp.isfinite(true)) and abs(true) < float(np.finfo(dtype).max)


def ulps(got: np.ndarray, true: np.ndarray, dtype: np.dtype) -> float:
    """The greatest distance to the true values, in units in the last place of the greatest of them."""
    import mpmath as mp

    if not np.isfinite(got).all():
        return float("inf")
    info = np.finfo(dtype)
    scale = max([float(abs(t)) for t in true.flat], default=0.0)
    unit = max(scale * float(info.eps), float(info.tiny) * float(info.eps), float(info.smallest_subnormal))
    return max([float(abs(mp.mpf(float(g)) - t) / unit) for g, t in zip(got.flat, true.flat, strict=True)], default=0.0)
