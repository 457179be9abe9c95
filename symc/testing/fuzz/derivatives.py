"""Checks of derivatives and batches of random programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.errors import DTypeError, GradientError, SymcError
from symc.grad import jvp, vjp, vmap
from symc.ir.function import Function, Input, function
from symc.ir.op import lookup
from symc.ir.traverse import every_value, inline
from symc.ir.types import TensorType, concrete_shape
from symc.ir.value import Value, fresh_input
from symc.opt import DEFAULT, optimize
from symc.testing.fuzz.checks import REFUSED, Trial, blame_pass, check, first_wrong
from symc.tools.debugging.blame import Blame, wrong_stage
from symc.tools.debugging.observe import evaluate, sizes_of
from symc.tools.debugging.sample import Sample
from symc.tools.debugging.tolerance import Oracle, allowed_between

#: How many rows a batch has.
ROWS = 3
#: Ops whose two modes are different on purpose.
ONE_MODE = frozenset({"grad_clip", "grad_scale"})
#: Ops whose derivative is not that of what they compute: finite differences say nothing of it.
DECLARED = frozenset({"stop_gradient"})
#: What programs cannot be differentiated by or batched with.
NOT_POSSIBLE = (GradientError, DTypeError, NotImplementedError)


def _inexact(v: Value) -> bool:
    return v.dtype.kind == "f" and v.dtype.itemsize >= 4


def _dot(xs: Sequence[Value], ys: Sequence[Value | None]) -> Value | None:
    """The sum of the products, in float64."""
    total: Value | None = None
    for x, y in zip(xs, ys, strict=True):
        if y is not None:
            term = lookup("sum")(_wide(x) * _wide(y), axes=tuple(range(x.ndim)))
            total = term if total is None else total + term
    return total


def _wide(x: Value) -> Value:
    return x if x.dtype == np.dtype("f8") else lookup("cast")(x, dtype=np.dtype("f8"))


def gradient_function(f: Function) -> Function | None:
    """Inputs, cotangents and tangents to: <cotangents, tangents of results>, <gradients, tangents>, the gradients."""
    if any(v.op.name in ONE_MODE for v in f.values()):
        return None
    leaves = [fresh_input(t) for t in f.body.params]  # type: ignore[arg-type]
    roots = [r for r in inline(f.body, leaves) if _inexact(r)]
    wrt = [x for x in leaves if _inexact(x)]
    if not roots or not wrt:
        return None
    cots, moves = [fresh_input(r.type) for r in roots], [fresh_input(x.type) for x in wrt]
    forward, back = jvp(roots, wrt, moves), vjp(roots, wrt, cots)
    left, right = _dot(cots, forward), _dot(moves, back)
    if left is None or right is None:
        return None
    names = [*[i.name for i in f.inputs], *[f"cot{k}" for k in range(len(cots))],
    *[f"move{k}" for k in range(len(moves))]]
    interface = [(v, Input(n, v.type)) for v, n in zip([*leaves, *cots, *moves], names, strict=True)]
    return function("gradient", interface, [left, right, *[g for g in back if g is not None]])


def gradient_arrays(f: Function, g: Function, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Arrays for ``gradient_function``."""
    sizes, rng = sizes_of(f, arrays), np.random.default_rng(7)
    more = [rng.normal(size=concrete_shape(i.type.shape, sizes)).astype(i.type.dtype) for i in g.inputs[len(f.inputs):]]
    return [*arrays, *more]


@check("gradients")
def gradients(t: Trial) -> Blame | None:
    """Reverse and forward mode agree; every pass keeps the meaning of what they make."""
    found = first_wrong("gradients", t, gradients_disagree, 2)
    if found is not None:
        return found
    g = _differentiated(t.function)
    if g is None:
        return None
    stages = optimize(g, DEFAULT, strict=True, verify=True).stages
    for oracle in t.oracles[:2]:
        own = _oracle(g, gradient_arrays(t.function, g, oracle.arrays))
        wrong = None if own is None else wrong_stage(stages, own)
        if own is not None and wrong is not None:
            return blame_pass(*wrong, own, DEFAULT, t.seconds)
    return None


def _oracle(g: Function, arrays: Sequence[np.ndarray]) -> Oracle | None:
    """None where the gradient does not exist, and says so (that of a determinant of a singular matrix)."""
    try:
        return Oracle(g, arrays)
    except REFUSED:
        return None


def _differentiated(f: Function) -> Function | None:
    try:
        return gradient_function(f)
    except NOT_POSSIBLE:
        return None


def gradients_disagree(s: Sample) -> str:
    """Difference between reverse and forward mode on a sample, beyond rounding; "" if nothing is."""
    g = _differentiated(s.function)
    if g is None:
        return ""
    oracle = _oracle(g, gradient_arrays(s.function, g, s.arrays))
    if oracle is None:
        return ""
    left, right = (float(a) for a in oracle.reference[:2])
    if not np.isfinite([left, right]).all():
        return ""
    allowed = allowed_between(oracle, 0, 1)
    return "" if abs(left - right) <= allowed else (
        f"forward mode gives {left}, reverse mode {right} (rounding explains {allowed:.2g})")


@check("differences")
def differences(t: Trial) -> Blame | None:
    """Forward mode agrees with finite differences where the function is smooth."""
    return first_wrong("differences", t, differences_disagree)


def differences_disagree(s: Sample) -> str:
    """Difference between a tangent and finite differences; "" if nothing is, or if there is a kink near."""
    g = _differentiated(s.function)
    if g is None or any(i.type.dtype.kind == "f" and i.type.dtype.itemsize < 8 for i in s.function.inputs):
        return ""
    if any(v.op.name in DECLARED for v in every_value(s.function.body)):
        return ""
    if any(v.dtype.kind == "f" and v.dtype.itemsize < 8 for v in s.function.values() if isinstance(v.type, TensorType)):
        return ""
    arrays = gradient_arrays(s.function, g, s.arrays)
    n = len(s.arrays)
    wrt = [k for k, p in enumerate(s.function.params) if _inexact(p)]
    results = [k for k, r in enumerate(s.function.body.results) if _inexact(r)]
    cots, moves = arrays[n : n + len(results)], arrays[n + len(results) :]

    def at(step: float) -> float:
        moved = list(s.arrays)
        for k, m in zip(wrt, moves, strict=True):
            moved[k] = moved[k] + step * m
        out = evaluate(s.function, moved)
        return float(sum(np.sum(np.asarray(out[k]) * c) for k, c in zip(results, cots, strict=True)))

    try:
        with np.errstate(all="ignore"):
            slopes = [(at(e) - at(-e)) / (2 * e) for e in (1e-4, 1e-5, 1e-6)]
            below, above = [(at(e) - at(0.0)) / e for e in (-1e-6, 1e-6)]
            tangent = float(evaluate(g, arrays)[0])
    except REFUSED:
        return ""
    if not np.isfinite([*slopes, below, above, tangent]).all():
        return ""
    spread = max(slopes) - min(slopes)
    scale = max(1.0, abs(tangent), *map(abs, slopes))
    if abs(above - below) > 1e-3 * scale:
        return ""  # a tie: both sides have slopes, which finite differences take the mean of
    if spread > 1e-3 * scale or abs(tangent - slopes[1]) <= 20 * spread + 1e-3 * scale:
        return ""
    return f"finite differences give {slopes}, forward mode {tangent}"


# --- batches ----------------------------------------------------------------------------------------------------------


@check("batches")
def batches(t: Trial) -> Blame | None:
    """A batch of programs is the programs one by one."""
    return first_wrong("batches", t, batches_disagree, 2)


def batches_disagree(s: Sample) -> str:
    """Difference between a batch of a function and the function on every entry; "" if nothing is."""
    f = s.function
    if any("effect" in v.op.traits for v in f.values()):
        return ""
    flags = [k % 3 != 2 for k in range(len(f.inputs))]
    if not any(flags):
        return ""
    leaves = [fresh_input(t) for t in f.body.params]  # type: ignore[arg-type]
    roots = inline(f.body, leaves)
    wide = [fresh_input(TensorType(x.dtype, (ROWS, *x.shape))) if b else x for x, b in zip(leaves, flags, strict=True)]
    picked = [k for k, b in enumerate(flags) if b]
    try:
        made = vmap(roots, [leaves[k] for k in picked], [wide[k] for k in picked], ROWS)
    except NOT_POSSIBLE:
        return ""
    g = function("batch", [(v, Input(i.name, v.type)) for v, i in zip(wide, f.inputs, strict=True)], made)
    rows = [[_varied(a, k) if b else a for a, b in zip(s.arrays, flags, strict=True)] for k in range(ROWS)]
    try:
        singles = [Oracle(f, row) for row in rows]
    except (SymcError, ValueError, IndexError):
        return ""
    arrays = [np.stack([r[k] for r in rows]) if b else s.arrays[k] for k, b in enumerate(flags)]
    got = evaluate(g, arrays)
    for k in range(ROWS):
        found = singles[k].difference([np.asarray(a)[k] for a in got])
        if found is not None:
            return f"entry {k}: {found}"
    return ""


def _varied(a: np.ndarray, k: int) -> np.ndarray:
    """Entry ``k`` of a batch made of one array."""
    if k == 0 or a.dtype.kind == "b":
        return a if k != 1 else ~a
    if a.dtype.kind in "iu":
        return a if not a.ndim or k == 1 else np.ascontiguousarray(a[::-1])
    with np.errstate(all="ignore"):
        return np.asarray(a * (1.25 if k == 1 else 0.5)).astype(a.dtype)


