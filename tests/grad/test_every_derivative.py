"""Every derivative fact: jvp against differences of the reference, vjp as its transpose, and both once more.

Generated from the registry. The conventions at points without a derivative are a table at the end.
"""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from symc.errors import GradientError
from symc.grad import jvp, vjp
from symc.ir.dim import size_name
from symc.ir.op import Custom, Elementwise, Op, Unknown, lookup
from symc.ir.ops.elementwise import like
from symc.ir.reference import run_values
from symc.ir.types import DTYPES, TensorType, concrete_shape, is_inexact
from symc.ir.value import fresh_input
from tests.ir.op_cases import SAMPLED, apply, cases, evaluate, inner, observed, smooth_points, tangents_for

#: "implicit": the derivative along which the distribution function stays the same (see test_random_gradients.py).
DIFFERENTIABLE = [op for op in SAMPLED if op.derivative is not None and not op.traits & {"grad_control", "implicit"}]
CONSTANT = [
    "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "signbit", "and", "or", "xor", "not",
    "shl", "shr", "argmax", "argmin", "any", "all", "argsort", "top_places", "searchsorted", "iota", "size", "places",
    "check_index", "bounded", "exp_nonpositive", "stop_gradient", "converged",
    "position", "random_bits", "derive_key", "split_key", "philox64", "philox32", "unit_uniform", "unit_normal",
    "unit_exponential", "unit_gumbel", "below", "poisson_draw", "binomial_draw", "pool_index",
]
each = pytest.mark.parametrize(("op", "dtype"), [
    pytest.param(op, DTYPES[d], id=f"{op.name}-{d}") for op in DIFFERENTIABLE for d in ("f64", "c128")
    if smooth_points(op, DTYPES[d], np.random.default_rng(0))])


def test_what_has_no_derivative():
    assert sorted(CONSTANT) == sorted(op.name for op in SAMPLED if op.derivative is None)


def unknown(op: Op, k: int) -> bool:
    """Whether there is no formula for the derivative by operand k."""
    return isinstance(op.derivative, Elementwise) and isinstance(op.derivative.partials[k], Unknown)


class Point:
    """An op at numbers: values, free leaves for tangents and cotangents, and their derivatives."""

    def __init__(self, op: Op, arrays, attrs, rng):
        self.whole, self.leaves = apply(op, arrays, attrs)
        self.outs = [o for o in observed(self.whole) if is_inexact(o.dtype)]
        self.arrays, self.attrs = arrays, attrs
        self.moves = [is_inexact(a.dtype) and not unknown(op, k) for k, a in enumerate(arrays)]
        self.wrt = [x for x, m in zip(self.leaves, self.moves, strict=True) if m]
        self.numbers = [a for a, m in zip(arrays, self.moves, strict=True) if m]
        self.tangents = tangents_for(self.numbers, rng)
        self.values = evaluate(self.outs, self.leaves, arrays)
        self.t_leaves = [fresh_input(x.type) for x in self.wrt]
        self.moved = jvp(self.outs, self.wrt, self.t_leaves)
        self.g_leaves = [fresh_input(o.type) for o in self.outs]
        self.cotangents = vjp(self.outs, self.wrt, self.g_leaves) if self.outs else [None] * len(self.wrt)
        self.g = tangents_for(self.values, rng)
        self.precise = all(o.dtype.itemsize >= 8 and o.dtype != DTYPES["c64"] for o in self.outs)

    def at(self, roots, step=0.0):
        """Roots at the numbers, moved by ``step`` times the tangents."""
        moved = iter([np.asarray(x + step * t, x.dtype) for x, t in zip(self.numbers, self.tangents, strict=True)])
        arrays = [next(moved) if m else a for a, m in zip(self.arrays, self.moves, strict=True)]
        return evaluate(roots, [*self.leaves, *self.t_leaves, *self.g_leaves], [*arrays, *self.tangents, *self.g])

    def difference(self, roots):
        """Central differences of roots along the tangents, and which elements of them are smooth: two steps agree."""
        pairs = []
        with np.errstate(all="ignore"):
            for h in (1e-4, 2e-4):
                pairs.append([(a - b) / (2 * h) for a, b in zip(self.at(roots, h), self.at(roots, -h), strict=True)])
            fine = [(4 * a - b) / 3 for a, b in zip(*pairs, strict=True)]
            smooth = [np.abs(a - b) <= 1e-4 * (1 + np.abs(b)) for a, b in zip(*pairs, strict=True)]
        return fine, smooth


@functools.cache
def points(op: Op, dtype):
    """The points that all tests of an op share, with their derivatives."""
    rng = np.random.default_rng(1)
    return [Point(op, arrays, attrs, rng) for arrays, attrs in smooth_points(op, dtype, rng)]


def zeros_if_none(value, like_: np.ndarray):
    return np.zeros_like(like_) if value is None else value


@each
def test_jvp_is_the_difference(op: Op, dtype):
    compared = 0
    for p in points(op, dtype):
        for fine, smooth, tangent, value in zip(*p.difference(p.outs), p.moved, p.values, strict=True):
            got = np.zeros_like(value) if tangent is None else p.at([tangent])[0]
            assert got.dtype == value.dtype and got.shape == value.shape
            if p.precise:
                near = 1e-5 if op.name.startswith("itairy") else 1e-6  # so far is SciPy's from the integral
                np.testing.assert_allclose(got[smooth], fine[smooth], rtol=1e-6, atol=near)
                compared += int(np.sum(smooth))
    assert compared >= 4 or op.name == "ensure_shape" or all(unknown(op, k) for k in range(op.facts.arity))


@each
def test_vjp_is_the_transpose_of_jvp(op: Op, dtype):
    for p in points(op, dtype):
        if not p.outs:
            continue
        tangents = [np.zeros_like(x) if t is None else p.at([t])[0] for t, x in zip(p.moved, p.values, strict=True)]
        back = [np.zeros_like(x) if c is None else p.at([c])[0] for c, x in zip(p.cotangents, p.numbers, strict=True)]
        for c, x in zip(back, p.numbers, strict=True):
            assert c.dtype == x.dtype and c.shape == x.shape
        if "elementwise" in op.traits:  # outside its domain a function gives nan; leave that out on both sides
            (tangent,), (g,) = tangents, p.g
            ok = np.isfinite(tangent) & np.all([np.isfinite(c) for c in back], axis=0)
            left = inner(np.where(ok, g, 0), np.where(ok, tangent, 0))
            right = sum(inner(np.where(ok, c, 0), np.where(ok, t, 0)) for c, t in zip(back, p.tangents, strict=True))
        else:
            left = sum(inner(np.where(np.isfinite(t), g, 0), t) for g, t in zip(p.g, tangents, strict=True))
            right = sum(inner(c, t) for c, t in zip(back, p.tangents, strict=True))
        precise = 1e-12 if p.precise else 1e-2
        size = 1 + sum(np.sum(np.abs(np.where(np.isfinite(t), t, 0))) for t in tangents)
        assert abs(left - right) <= precise * size * 10


@each
def test_second_derivatives(op: Op, dtype):
    """The derivative of a gradient, forward over reverse and reverse over reverse, against differences of it."""
    rng = np.random.default_rng(3)
    for p in points(op, dtype)[:6]:
        grads = [c for c in p.cotangents if c is not None]
        if not grads or (p.outs[0].dtype != dtype and op.name == "cast"):
            continue
        try:
            forward = jvp(grads, p.wrt, p.t_leaves)
        except GradientError as e:
            assert re.match(r"the derivative of \w+ with respect to \w+ is not known", str(e))
            continue
        fine, smooth = p.difference(grads)
        values = p.at([f if f is not None else like(c, 0) for f, c in zip(forward, grads, strict=True)])
        for got, want, ok in zip(values, fine, smooth, strict=True):
            np.testing.assert_allclose(got[ok], want[ok], rtol=2e-5, atol=2e-5)
        seeds = [fresh_input(c.type) for c in grads]
        numbers = tangents_for([np.empty(c.shape, c.dtype) for c in grads], rng)
        back = vjp(grads, p.wrt, seeds)
        again = [b if b is not None else like(x, 0) for b, x in zip(back, p.wrt, strict=True)]
        leaves, arrays = [*p.leaves, *p.g_leaves, *seeds], [*p.arrays, *p.g, *numbers]
        got = evaluate(again, leaves, arrays)
        ok = np.all([np.isfinite(v).all() for v in [*values, *got]])
        if ok:
            left = sum(inner(s, v) for s, v in zip(numbers, values, strict=True))
            right = sum(inner(b, t) for b, t in zip(got, p.tangents, strict=True))
            assert left == pytest.approx(right, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if isinstance(op.derivative, Custom)],
                         ids=lambda op: op.name)
def test_missing_tangents_are_zeros(op: Op):
    """A tangent given for one operand only is the same as zeros for the others."""
    for p in points(op, DTYPES["f64"])[:4]:
        for k, x in enumerate(p.wrt):
            zeros = [t if i == k else np.zeros_like(t) for i, t in enumerate(p.tangents)]
            for alone, both in zip(jvp(p.outs, [x], [p.t_leaves[k]]), p.moved, strict=True):
                if alone is None:
                    continue
                p_zero = evaluate([both], [*p.leaves, *p.t_leaves], [*p.arrays, *zeros])[0]
                np.testing.assert_allclose(p.at([alone])[0], p_zero, rtol=1e-12, atol=1e-12)


# --- sizes that are names ---------------------------------------------------------------------------------------------


def named(t: TensorType) -> TensorType:
    """The type with every size above 1 replaced by a name, the same name for the same size."""
    return t.with_shape([size_name(f"n{s}") if s > 1 else s for s in t.shape])


#: The operand that has the bounds of rows: one more than there are rows.
BOUNDS = {"sddmm": 0}

SIZED = [op for op in DIFFERENTIABLE if smooth_points(op, DTYPES["f64"], np.random.default_rng(0))
         and not {"shape", "size", "low", "stride"} & set(cases(op)[0][1])]


@pytest.mark.parametrize("op", SIZED, ids=lambda op: op.name)
def test_derivatives_with_named_sizes(op: Op):
    """Types, values and derivatives do not need to know the sizes."""
    for p in points(op, DTYPES["f64"])[:6]:
        if not p.outs:
            continue
        sizes = {f"n{s}": s for t in [*p.leaves, *p.outs] for s in t.shape}
        types = [named(x.type) for x in p.leaves]
        if op.name in BOUNDS:
            k = BOUNDS[op.name]
            types[k] = types[k].with_shape([size_name(f"n{s - 1}") + 1 if s > 2 else s for s in p.leaves[k].shape])
        leaves = [fresh_input(t) for t in types]
        outs = [o for o in observed(op(*leaves, **p.attrs)) if is_inexact(o.dtype)]
        assert [concrete_shape(o.shape, sizes) for o in outs] == [o.shape for o in p.outs]
        wrt = [x for x, m in zip(leaves, p.moves, strict=True) if m]
        ts, gs = [fresh_input(x.type) for x in wrt], [fresh_input(o.type) for o in outs]
        roots = [*outs, *jvp(outs, wrt, ts), *vjp(outs, wrt, gs)]
        concrete = [*p.outs, *p.moved, *p.cotangents]
        env = dict(zip([*leaves, *ts, *gs], [*p.arrays, *p.tangents, *p.g], strict=True))
        kept = [k for k, r in enumerate(roots) if r is not None]
        got = run_values([roots[k] for k in kept], env, sizes, check=True)
        for a, b in zip(got, p.at([concrete[k] for k in kept]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


# --- conventions ------------------------------------------------------------------------------------------------------

inf, nan = np.inf, np.nan
KINKS = [
    # op, operands, attrs, gradient of the sum of the results with respect to each operand
    ("abs", [[0.0, -0.0, -2.0]], {}, [[0, 0, -1]]),
    ("abs", [[0j, 3 + 4j]], {}, [[0, 0.6 + 0.8j]]),
    ("sign", [[0.0, 5.0]], {}, [[0, 0]]),
    ("sign", [[0j]], {}, [[0]]),
    ("copysign", [[0.0, 2.0, 2.0], [-1.0, -1.0, 0.0]], {}, [[0, -1, 1], [0, 0, 0]]),
    ("maximum", [[1.0, 2.0, 0.0], [1.0, 1.0, -0.0]], {}, [[0.5, 1, 0.5], [0.5, 0, 0.5]]),
    ("minimum", [[1.0, 2.0], [1.0, 1.0]], {}, [[0.5, 0], [0.5, 1]]),
    ("maximum", [[inf, nan], [inf, 1.0]], {}, [[0.5, 0], [0.5, 0]]),
    ("fmax", [[nan, 2.0, 1.0], [1.0, nan, 1.0]], {}, [[0, 1, 0.5], [1, 0, 0.5]]),
    ("fmin", [[nan, 2.0], [1.0, nan]], {}, [[0, 1], [1, 0]]),
    ("hypot", [[0.0, 3.0], [0.0, 4.0]], {}, [[0, 0.6], [0, 0.8]]),
    ("hypot", [[1e200], [1e200]], {}, [[0.5**0.5], [0.5**0.5]]),
    ("atan2", [[0.0, 1e200], [0.0, 1e200]], {}, [[0, 5e-201], [0, -5e-201]]),
    ("pow", [[0.0, -2.0, inf], [0.0, 0.0, 0.0]], {}, [[0, 0, 0], [0, nan, inf]]),
    ("pow", [[0.0, 0.0], [3.0, 1.0]], {}, [[0, 1], [0, 0]]),
    ("pow", [[0.0], [0.5]], {}, [[inf], [0]]),
    ("pow", [[-2.0], [3.0]], {}, [[12], [nan]]),
    ("floor", [[0.5, 1.0]], {}, [[0, 0]]),
    ("rint", [[0.5]], {}, [[0]]),
    ("mod", [[4.0, 5.0], [2.0, 3.0]], {}, [[1, 1], [-2, -1]]),
    ("logaddexp", [[-inf, inf, inf], [-inf, inf, 0.0]], {}, [[0.5, 0.5, 1], [0.5, 0.5, 0]]),
    ("softplus", [[-1000.0, 0.0, 1000.0]], {}, [[0, 0.5, 1]]),
    ("log1mexp", [[-inf, -1000.0]], {}, [[0, 0]]),
    ("sum", [[1.0, 2.0]], dict(axes=(0,)), [[1, 1]]),
    ("max", [[3.0, 1.0, 3.0]], dict(axes=(0,)), [[0.5, 0, 0.5]]),
    ("min", [[[0.0, -0.0], [2.0, 1.0]]], dict(axes=(1,)), [[[0.5, 0.5], [0, 1]]]),
    ("max", [[nan, 1.0]], dict(axes=(0,)), [[0, 0]]),
    ("prod", [[2.0, 0.0, 3.0]], dict(axes=(0,)), [[0, 6, 0]]),
    ("prod", [[0.0, 0.0, 3.0]], dict(axes=(0,)), [[0, 0, 0]]),
    ("cumprod", [[2.0, 0.0, 3.0, 4.0]], dict(axis=0, reverse=False), [[1, 2 + 6 + 24, 0, 0]]),
    ("cumprod", [[2.0, 0.0, 3.0, 0.0]], dict(axis=0, reverse=True), [[0, 0, 0, 1 + 3]]),
    ("norm", [[0.0, 0.0]], dict(axes=(0,)), [[0, 0]]),
    ("norm", [[3e200, 4e200]], dict(axes=(0,)), [[0.6, 0.8]]),
    ("norm", [[0j, 0j]], dict(axes=(0,)), [[0, 0]]),
    ("logsumexp", [[-inf, -inf]], dict(axes=(0,)), [[0, 0]]),
    ("logsumexp", [[1000.0, 1000.0, -inf]], dict(axes=(0,)), [[0.5, 0.5, 0]]),
    ("sqrt", [[0.0]], {}, [[inf]]),
    ("mulz", [[0.0, 2.0], [inf, 3.0]], {}, [[inf, 3], [0, 2]]),
]


@pytest.mark.parametrize(("name", "operands", "attrs", "want"), KINKS,
                         ids=[f"{k}-{row[0]}" for k, row in enumerate(KINKS)])
def test_conventions_at_kinks(name, operands, attrs, want):
    arrays = [np.asarray(x) for x in operands]
    v, leaves = apply(lookup(name), arrays, attrs)
    grads = vjp([v], leaves, [like(v, 1)])
    for g, x, leaf, expected in zip(grads, arrays, leaves, want, strict=True):
        got = evaluate([g if g is not None else like(leaf, 0)], leaves, arrays)[0]
        np.testing.assert_allclose(got, np.asarray(expected, x.dtype), rtol=1e-12)


@pytest.mark.parametrize(("name", "bad"), [
    ("log", 0.0), ("log", -1.0), ("sqrt", 0.0), ("sqrt", -1.0), ("cbrt", 0.0), ("exp", 1000.0), ("expm1", 1000.0),
    ("cosh", 1000.0),
    ("sinh", -1000.0), ("exp2", 5000.0), ("log1p", -1.0), ("asin", 1.0), ("asin", 2.0), ("acosh", 1.0), ("atanh", 1.0),
    ("erfinv", 1.0),
    ("lgamma", 0.0), ("digamma", 0.0), ("log1mexp", 0.0), ("erfcx", -100.0), ("acos", -1.0), ("log2", 0.0),
    ("log10", 0.0),
])
def test_no_nan_from_a_branch_not_taken(name, bad):
    x = fresh_input(TensorType("f64", (2,)))
    v = lookup("where")(lookup("eq")(x, bad), like(x, 3), lookup(name)(x))
    good = {"acosh": 2.0, "log1mexp": -0.5}.get(name, 0.5)
    arrays = [np.array([bad, good])]
    (g,) = evaluate(vjp([v], [x], [like(v, 1)]), [x], arrays)
    (t,) = evaluate(jvp([v], [x], [like(x, 1)]), [x], arrays)
    assert g[0] == 0 and t[0] == 0 and np.isfinite(g[1]) and g[1] == t[1] != 0


def test_products_with_what_was_not_taken():
    """x*log(x) where x > 0: the derivative of the product has log(0) as its factor."""
    x = fresh_input(TensorType("f64", (3,)))
    v = lookup("where")(lookup("gt")(x, 0), x * lookup("log")(x), like(x, 0))
    (g,) = evaluate(vjp([v], [x], [like(v, 1)]), [x], [np.array([0.0, 1.0, -2.0])])
    assert g.tolist() == [0, 1, 0]


def test_division_and_powers_not_taken():
    x, y = fresh_input(TensorType("f64", (1,))), fresh_input(TensorType("f64", (1,)))
    for name in ("div", "pow", "mod", "fmod"):
        v = lookup("where")(lookup("eq")(y, y), x, lookup(name)(x, y))
        numbers = [np.array([0.0]), np.array([-1.0 if name == "pow" else 0.0])]
        assert [g.tolist() for g in evaluate(vjp([v], [x, y], [like(v, 1)]), [x, y], numbers)] == [[1], [0]], name


# --- gradient control -------------------------------------------------------------------------------------------------


def test_gradient_control():
    x = fresh_input(TensorType("f64", (3,)))
    arrays = [np.array([1.0, 2.0, 3.0])]
    g = np.array([5.0, -3.0, 0.25])
    leaf = fresh_input(x.type)

    def back(v):
        (c,) = vjp([v], [x], [leaf])
        return None if c is None else evaluate([c], [x, leaf], [*arrays, g])[0].tolist()

    assert back(lookup("stop_gradient")(x)) is None
    assert back(lookup("grad_scale")(x, scale=-1.0)) == [-5, 3, -0.25]
    assert back(lookup("grad_scale")(x, scale=0.0)) == [0, 0, 0]
    assert back(lookup("grad_clip")(x, low=-1.0, high=2.0)) == [2, -1, 0.25]
    (t,) = jvp([lookup("grad_scale")(x, scale=0.5)], [x], [leaf])
    assert evaluate([t], [x, leaf], [*arrays, g])[0].tolist() == [2.5, -1.5, 0.125]


def test_scale_zero_stops_nan():
    x, leaf = fresh_input(TensorType("f64", (2,))), fresh_input(TensorType("f64", (2,)))
    (c,) = vjp([lookup("grad_scale")(x, scale=0.0)], [x], [leaf])
    assert evaluate([c], [x, leaf], [np.ones(2), np.array([np.nan, np.inf])])[0].tolist() == [0, 0]


def test_scatter_gradients_at_zeros_and_repeated_places():
    x, u = fresh_input(TensorType("f64", (2,))), fresh_input(TensorType("f64", (3,)))
    i = fresh_input(TensorType("i64", (3,)))
    numbers = [np.array([2.0, 5.0]), np.array([0.0, 3.0, 4.0]), np.array([0, 0, 1])]
    wants = dict(mul=([0, 4], [6, 0, 5]), add=([1, 1], [1, 1, 1]), set=([0, 0], [0, 1, 1]), max=([0, 1], [0, 1, 0]))
    for mode, want in wants.items():
        v = lookup("scatter")(x, u, i, axes=(0,), mode=mode)
        got = evaluate(vjp([v], [x, u], [like(v, 1)]), [x, u, i], numbers)
        assert ([*got[0]], [*got[1]]) == want, mode
