"""Checks of a rule's claims, for symc's own rules and for users': types, exactness, accuracy, termination.

``check_rule(r)`` raises AssertionError with the smallest case that shows what is wrong. Accuracy is judged by mpmath
with 60 digits, which evaluates the *left* side: a rule must not only be accurate, it must compute the same function.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.ir.op import splat
from symc.ir.reference import run_values
from symc.ir.traverse import postorder, replace
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.opt.provenance import expression
from symc.opt.rewrite import Rewriter
from symc.opt.rule import ANY, OPT_IN, Rule, all_rules

#: Numbers at which equations that are true on paper stop being true.
GRID = (
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1e-300,
    -1e-300,
    1e-8,
    0.5,
    -0.5,
    1.0,
    -1.0,
    1.5,
    3.0,
    -7.0,
    1e8,
    1e300,
    -1e300,
    np.inf,
    -np.inf,
    np.nan,
)
#: The error of the left side that a right side is never blamed for, in units in the last place.
ALLOWED_ULP = 8.0


def check_rule(r: Rule) -> None:
    """Every check that applies to a rule."""
    check_types(r)
    check_fires(r)
    check_terminates(r)
    if r.exact:
        check_exact(r)
    elif r.pattern is not None and not r.dtypes and "f" in r.kinds:
        for dtype in ("f32", "f64"):
            check_accuracy(r, dtype)


def sides(r: Rule, v: Value) -> tuple[Value, Value]:
    """A left side and what the rule alone makes of it."""
    context = Rewriter([])
    context.look([v])
    for x in reversed(postorder([v])):
        new = r.apply(x, context) if x.op.name in r.roots or ANY in r.roots else None
        if isinstance(new, Value) and new is not x:
            return v, replace([v], {x: new})[0]
    return v, v


def canonical(v: Value) -> Value:
    """A value as rules see it."""
    rules = [r for r in all_rules("canonicalize", "shapes", "sinking") if OPT_IN not in r.tags]
    return Rewriter(rules, strict=True).run([v])[0]


def examples(r: Rule) -> list[Value]:
    """Left sides in the form in which the rule meets them."""
    written = list(r.examples())
    assert written, f"{r.name}: has no example"
    return [v if sides(r, v)[1] is not v else canonical(v) for v in written]


def check_types(r: Rule) -> None:
    """Both sides have one type, at every rank."""
    for v in examples(r):
        left, right = sides(r, v)
        assert right is not left, f"{r.name} does not fire on its own left side {expression(left)}"
        assert right.type is left.type, f"{r.name}: {left.type} becomes {right.type}"


def check_fires(r: Rule) -> None:
    """The rule fires on its own left side among all rules of its pass, unless others already do what it would."""
    for v in examples(r):
        assert _count(r, v), f"{r.name} does not fire on {expression(v)}"


def _count(r: Rule, v: Value) -> int:
    rewriter = Rewriter([r], strict=True)
    rewriter.run([v])
    return rewriter.provenance.count(r.name)


def check_terminates(r: Rule) -> None:
    """With the rules that run beside it, the rule reaches an end, and is not undone."""
    beside = [
        q
        for q in all_rules(
            "canonicalize", "shapes", "sinking", "stability", "softmax", "algebra", "select", "linalg", "fold"
        )
        if OPT_IN not in q.tags and q is not r
    ]
    if r.family == "decompose":
        beside = []
    for v in examples(r):
        rewriter = Rewriter([*beside, r], strict=True)
        (out,) = rewriter.run([v])
        again = Rewriter([*beside, r], strict=True)
        assert again.run([out])[0] is out, f"{r.name}: {expression(out)} changes when it is simplified again"
        assert rewriter.fired < 200, f"{r.name}: {rewriter.fired} firings for one left side"


# --- exactness --------------------------------------------------------------------------------------------------------


def free_leaves(v: Value) -> list[Value]:
    """The inputs of a left side, in order."""
    return sorted((x for x in postorder([v]) if x.op.name == "input"), key=lambda x: x.attrs["serial"])


def evaluate(v: Value, leaves: Sequence[Value], arrays: Sequence[np.ndarray]) -> np.ndarray:
    """A value on arrays (sizes named n are 4)."""
    with np.errstate(all="ignore"):
        return np.asarray(run_values([v], dict(zip(leaves, arrays, strict=True)), {"n": 4})[0])


def adversarial(leaves: Sequence[Value], seed: int = 0) -> list[np.ndarray]:
    """Arrays of grid values for leaves, with ties between them."""
    rng = np.random.default_rng(seed)
    out = []
    for x in leaves:
        shape = tuple(s if isinstance(s, int) else 4 for s in x.shape)
        if x.dtype.kind == "b":
            out.append(rng.random(shape) < 0.5)
        elif x.dtype.kind in "iu":
            out.append(rng.integers(-3, 4, shape).astype(x.dtype))
        else:
            with np.errstate(all="ignore"):
                out.append(rng.choice(np.array(GRID), shape).astype(x.dtype))
    return out


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit for bit, but any nan is any other."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
    return all(
        bool(np.all((np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y))))) for x, y in parts
    )


def check_exact(r: Rule) -> None:
    """Both sides give the same bits on the adversarial grid, in every float dtype the left side can have."""
    for v in examples(r):
        for left, leaves in _in_dtypes(v):
            new_left, right = sides(r, left)
            for seed in range(24):
                arrays = adversarial(leaves, seed)
                a, b = evaluate(new_left, leaves, arrays), evaluate(right, leaves, arrays)
                assert same_bits(a, b), (
                    f"{r.name} claims to be exact, but {expression(left)} is {a}, {expression(right)} {b} at {arrays}"
                )


def _in_dtypes(v: Value) -> list[tuple[Value, list[Value]]]:
    """A left side with float64 leaves, and (where the graph allows) the same with float32 ones."""
    leaves = free_leaves(v)
    return [(v, leaves), *(_retyped(v, leaves, "f32") if all(x.dtype.kind in "fb" for x in leaves) else [])]


def _retyped(v: Value, leaves: Sequence[Value], dtype: str) -> list[tuple[Value, list[Value]]]:
    """The graph over leaves of another dtype, if its constants are all splats."""
    from symc.ir.text import splat_of
    from symc.ir.value import make

    done: dict[Value, Value] = {x: x if x.dtype.kind == "b" else fresh_input(x.type.with_dtype(dtype)) for x in leaves}
    for x in postorder([v]):
        if x in done:
            continue
        number = splat_of(x)
        if number is not None and x.dtype.kind == "f":
            done[x] = splat(number[()], x.type.with_dtype(dtype))
        elif x.op.name in ("constant", "cast"):
            return []
        else:
            done[x] = make(x.op, [done[o] for o in x.operands], x.attrs, x.regions)
    return [(done[v], [done[x] for x in leaves])]


# --- accuracy ---------------------------------------------------------------------------------------------------------


def _mp(name: str, *xs: Any) -> Any:
    """An elementwise op in mpmath."""
    import mpmath as mp

    special: dict[str, Any] = {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
        "neg": lambda x: -x,
        "pow": lambda x, y: x**y, "abs": abs, "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "softplus": lambda x: mp.log(1 + mp.exp(x)),
        "log1mexp": lambda x: mp.log(1 - mp.exp(x)), "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        "log1p": lambda x: mp.log(1 + x), "expm1": lambda x: mp.exp(x) - 1, "maximum": max, "minimum": min,
    }  # fmt: skip
    return special[name](*xs) if name in special else getattr(mp, name)(*xs)


def exact_value(v: Value, leaves: Sequence[Value], numbers: Sequence[float]) -> Any:
    """A scalar graph by mpmath, or None where it has no real value."""
    import mpmath as mp

    from symc.ir.text import splat_of

    env: dict[Value, Any] = {x: mp.mpf(float(n)) for x, n in zip(leaves, numbers, strict=True)}
    try:
        for x in postorder([v]):
            if x not in env:
                number = splat_of(x)
                env[x] = mp.mpf(float(number)) if number is not None else _mp(x.op.name, *[env[o] for o in x.operands])
                if isinstance(env[x], mp.mpc) or mp.isnan(env[x]):
                    return None
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    return env[v]


def magnitudes(r: Rule, name: str) -> list[float]:
    """Sample points over ten magnitudes, both signs, within the rule's domain."""
    base = [10.0**k * m for k in range(-7, 3) for m in (1.0, 3.7)]
    low, high = r.domain.get(name, (-np.inf, np.inf))
    return [x for s in (1, -1) for x in (s * b for b in base) if low <= x <= high]


def check_accuracy(r: Rule, dtype: str) -> None:
    """Where the left side is defined, the right side is no less accurate (to a few units in the last place)."""
    import mpmath as mp

    v = r.examples()[0]
    found = _retyped(v, free_leaves(v), dtype)
    if not found:
        return
    left, leaves = found[0]
    left = left if sides(r, left)[1] is not left else canonical(left)
    left, right = sides(r, left)
    np_dtype = leaves[0].dtype
    grids = [magnitudes(r, n) for n in r.variables]
    points = list(itertools.product(*[g if len(grids) == 1 else g[::5] for g in grids]))
    columns = [np.array(c, np_dtype) for c in zip(*points, strict=True)]
    with mp.workprec(900):
        for k in range(len(points)):
            numbers = [c[k] for c in columns]
            true = exact_value(left, leaves, [float(x) for x in numbers])
            if true is None or not (abs(true) < float(np.finfo(np_dtype).max)):
                continue
            errors = [
                _ulps(evaluate(s, leaves, [np.asarray(x) for x in numbers]), true, np_dtype) for s in (left, right)
            ]
            assert errors[1] <= max(2 * errors[0], ALLOWED_ULP), (
                f"{r.name} ({dtype}) at {numbers}: {expression(right)} is {errors[1]:.3g} ulp off, "
                f"{expression(left)} {errors[0]:.3g}"
            )


def _ulps(got: np.ndarray, true: Any, dtype: np.dtype) -> float:
    """The distance to the true value in units in the last place of the dtype."""
    import mpmath as mp

    if not np.isfinite(got):
        return float("inf")
    info = np.finfo(dtype)
    unit = max(float(abs(true)) * float(info.eps), float(info.tiny) * float(info.eps), float(info.smallest_subnormal))
    return float(abs(mp.mpf(float(got)) - true) / unit)


def grad_pairs(r: Rule) -> list[tuple[Value, Value, list[Value]]]:
    """Scalar left and right sides with their leaves, for comparisons of gradients."""
    v = r.examples()[0]
    left, right = sides(r, v if sides(r, v)[1] is not v else canonical(v))
    leaves = free_leaves(left)
    return (
        [(left, right, leaves)]
        if left.type is TensorType("f64") and all(x.type is TensorType("f64") for x in leaves)
        else []
    )
