"""Examples of rules, arrays for them, and what is near enough: what all checks of rules use."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from symc.ir.ops.effect import quiet
from symc.ir.reference import run_values
from symc.ir.types import concrete_shape
from symc.ir.value import Value
from symc.opt.engine.pipelines import FORM
from symc.opt.engine.rewrite import Rewriter, applied
from symc.opt.engine.rule import OPT_IN, Rule, all_rules

#: Numbers at which equations that are true on paper stop being true.
GRID = (
    0.0, -0.0, 5e-324, -5e-324, 1e-300, -1e-300, 1e-8, 0.5, -0.5, 1.0, -1.0, 1.5, 3.0, -7.0, 1e8, 1e300, -1e300,
    np.inf, -np.inf, np.nan,
)  # fmt: skip
#: How near both sides are on ordinary numbers, by the size of a real number in bytes.
NEAR = {2: 3e-2, 4: 2e-4, 8: 1e-9}
#: The size n, and the length of an added axis.
SIZES = {"n": 4, "batch": 2}
#: What makes forms canonical.
CANONICAL = FORM
#: Families whose rules do not run beside all others: they take apart what others put together.
APART = ("decompose", "debug", "movement_hoisting")


def sides(r: Rule, v: Value) -> tuple[Value, Value]:
    """A left side and what the rule alone makes of it."""
    after = applied(r, v)
    return v, v if after is None else after


def canonical(v: Value) -> Value:
    """A value as rules see it."""
    return Rewriter([q for q in all_rules(*CANONICAL) if OPT_IN not in q.tags], strict=True).run([v])[0]


def seen_by(r: Rule, v: Value) -> Value:
    """A left side as the rule meets it: canonical, but for the rules that make it so."""
    return v if r.family in (*CANONICAL, *APART) else canonical(v)


@functools.lru_cache(maxsize=1)  # every check of a rule asks
def examples(r: Rule) -> list[Value]:
    """Left sides in the form in which the rule meets them."""
    written = list(r.examples())
    assert written, f"{r.name}: has no example"
    return [v if sides(r, v)[1] is not v else canonical(v) for v in written]


def evaluate(v: Value, leaves: Sequence[Value], arrays: Sequence[np.ndarray],
             sizes: Mapping[str, int] = SIZES) -> np.ndarray:
    """A value on arrays (sizes named n are 4)."""
    with np.errstate(all="ignore"), quiet():
        return np.asarray(run_values([v], dict(zip(leaves, arrays, strict=True)), sizes)[0])


def shape_of(x: Value, sizes: Mapping[str, int] = SIZES) -> tuple[int, ...]:
    """The shape of a leaf in the tests."""
    return concrete_shape(x.shape, sizes)


def adversarial(leaves: Sequence[Value], seed: int = 0, sizes: Mapping[str, int] = SIZES) -> list[np.ndarray]:
    """Arrays of grid values for leaves, with ties between them; of complex numbers, ordinary ones."""
    rng = np.random.default_rng(seed)
    out = []
    for x in leaves:
        shape = shape_of(x, sizes)
        if x.dtype.kind == "b":
            out.append(rng.random(shape) < 0.5)
        elif x.dtype.kind in "iu":
            out.append(rng.integers(-3 if x.dtype.kind == "i" else 0, 4, shape).astype(x.dtype))
        elif x.dtype.kind == "c":
            out.append(np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(x.dtype))
        else:
            with np.errstate(all="ignore"):
                out.append(rng.choice(np.array(GRID), shape).astype(x.dtype))
    return out


def ordinary(r: Rule, leaves: Sequence[Value], seed: int = 0) -> list[np.ndarray]:
    """Arrays of ordinary numbers, in the domain of the rule; integers that are indices, too."""
    rng = np.random.default_rng(seed)
    out = []
    for k, x in enumerate(leaves):
        shape = shape_of(x)
        low, high = r.domain.get(r.variables[k], (-np.inf, np.inf)) if k < len(r.variables) else (-np.inf, np.inf)
        if x.dtype.kind == "b":
            out.append(np.asarray(rng.random(shape) < 0.5))
        elif x.dtype.kind in "iu":
            out.append(np.asarray(rng.integers(0, 2, shape)).astype(x.dtype))
        elif x.dtype.kind == "c":
            out.append(np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(x.dtype))
        else:
            out.append(np.asarray(rng.uniform(max(low, -1.7), min(high, 1.9), shape)).astype(x.dtype))
    return out


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit for bit, but any nan is any other; complex zeros may differ in their signs."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return bool(np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))))


def near(a: np.ndarray, b: np.ndarray, size: float = 0.0) -> bool:
    """Equal up to rounding wherever ``a`` is finite, next to numbers of this size."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    width = a.dtype.itemsize // (2 if a.dtype.kind == "c" else 1)
    known = np.isfinite(a)
    scale = max(float(np.abs(a[known]).max(initial=0)), size)
    with np.errstate(all="ignore"):
        return bool(np.allclose(a[known], b[known], NEAR[width], NEAR[width] * scale, equal_nan=False))
