"""Products that a difference is made of, or that are read twice, are rounded as NumPy rounds them: no kernel makes one
operation of such a product and a sum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc
from symc.runtime.compilers.llvm_contraction import contracted

#: Products of two vectors, and what may be between a product and its readers.
PRODUCTS = {"x*x": lambda x, y: x * x, "x*y": lambda x, y: x * y,
            "matrices": lambda x, y: x.reshape(4, 3) * y.reshape(4, 3)}
MOVES = {"": lambda p: p, "[::-1]": lambda p: p[::-1], ".T": lambda p: p.T, "reshape": lambda p: p.reshape(-1)}
#: Sums and differences that NumPy computes exactly, or in one way only.
READS = {
    "p - max(p)": lambda p, x: p - np.max(p), "max(p) - p": lambda p, x: np.max(p) - p,
    "p - min(p)": lambda p, x: p - np.min(p, axis=0), "diff": lambda p, x: np.diff(p, axis=0),
    "p - x": lambda p, x: p - x[0], "p + x and p": lambda p, x: np.stack([p + x[1], p]),
    "where": lambda p, x: np.where(p > 0.2, p - x[0], p + x[1]), "-p + x": lambda p, x: -p + x[2],
    "p - q": lambda p, x: p - p[::-1], "p + x == p": lambda p, x: (p + x[0]) * (p > 0.5),
}  # fmt: skip


@pytest.mark.parametrize("dtype, mode", [("float32", "fast_compile"), ("float64", "default")])
def test_sums_of_products_are_numpys(dtype, mode):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=12).astype(dtype) for _ in range(2))
    cases = list(itertools.product(PRODUCTS, MOVES, READS))
    inputs = [sc.input(f"{name}{k}", dtype, ("n",)) for k in range(len(cases)) for name in "xy"]  # nothing is shared

    def all_of(xs):
        return [READS[r](MOVES[m](PRODUCTS[p](x, y)), x)
                for (p, m, r), x, y in zip(cases, xs[::2], xs[1::2], strict=True)]

    arrays = [a, b] * len(cases)
    got, want = sc.compile(all_of(inputs), inputs, mode=mode)(*arrays), all_of(arrays)
    wrong = [case for case, have, w in zip(cases, got, want, strict=True) if not np.array_equal(have, w)]
    assert not wrong


def test_squares_of_equal_numbers_have_a_variance_of_zero():
    x = sc.vector("x")
    f = sc.compile(sc.sqrt(sc.mean(x * x) - sc.mean(x) ** 2), [x])
    for number in np.random.default_rng(1).normal(size=50):
        assert f(np.array([number])) == 0.0


def test_in_a_loop_that_is_a_kernel():
    def step(c, _):
        u, v = c
        return (u * v - v * u + 0.3 * u * u - 0.3 * v * v, v), None

    x = sc.scalar("x")
    f = sc.compile(sc.scan(step, (x, x), None, length=1)[0][0], [x])
    for number in np.random.default_rng(2).normal(size=50):
        assert f(number) == 0.0


def rounded(e, *inputs):
    """How many products are rounded in the texts of a program's kernels."""
    return sc.compile(e, list(inputs)).source.count("times(")


def test_products_that_are_added_alone_keep_their_fused_operation():
    x, y = sc.vector("x"), sc.vector("y")
    p = x * 0
    for k in range(5):
        p = p * x + (0.3 * k + 1)
    assert rounded(p, x) == rounded(x * y + y, x, y) == rounded(sc.sum(x * y), x, y) == rounded(x * y * y, x, y) == 0
    assert rounded(x * y - (x + y), x, y) == rounded(x + y - x * y, x, y) == 0
    assert rounded([x * y + y, x * y], x, y) == rounded(x * y - y, x, y) == rounded(y - x * y, x, y) == 1


#: Numbers of two matrices: sums of two products, in functions of the library, beside branches and quotients too.
MADE_TWICE = {
    "hypot": lambda x, y: np.minimum(np.hypot(y - x, y / 10.0), y / (1.0 + np.abs(x))),
    "squares": lambda x, y: x * x + y * y, "crossed": lambda x, y: np.minimum(x * y + y * 0.3, x * x - y / 7),
    "branch": lambda x, y: np.where(x > 0, x * y + x, np.hypot(x, y) * y + x * 3.0),
    "library": lambda x, y: np.exp(x) * y + np.log1p(x * x) * x, "power": lambda x, y: np.abs(x) ** 1.7 * y + x * y,
    "powers": lambda x, y: (x - y) ** 3 + y ** 2 * x, "sine": lambda x, y: np.sin(x) * y + x * np.arctan2(y, x),
    "constant of a row": lambda x, y: x[:, :1] * y[:, 1:2] + x * y, "of a column": lambda x, y: x[:1] * y[:1] + x / 3.0,
}  # fmt: skip


@pytest.mark.parametrize("name", MADE_TWICE)
def test_numbers_made_twice_are_the_same(name):
    """The greatest of a row, and of all, is one of them, whether a loop or another kernel makes it again, in whole
    vectors or at the end of a row."""
    x, y = (sc.input(n, "float64", ("n", "m")) for n in "xy")
    made = MADE_TWICE[name](x, y)
    place, count = (sc.compile(v, [x, y]) for v in (sc.argmax(made, 1), sc.sum(made == sc.max(made))))
    rng = np.random.default_rng(3)
    for n, m in ((64, 16), (65, 7), (33, 31), (1000, 3), (3, 1000)):
        a, b = rng.normal(size=(2, n, m))
        assert (place(a, b) < m).all() and count(a, b) >= 1, (n, m)


def test_texts_of_contracted_sums():
    declared = []
    body = "\n".join([
        "  %1 = fmul contract double %a, %b", "  %2 = fmul contract double %c, %d",
        "  %3 = fadd contract double %1, %2",
        "  %4 = fmul contract double %3, %a", "  %5 = fsub contract double %4, %3",
        "  %6 = fmul contract float %x, %x", "  %7 = fsub contract float %y, %6",
        "  %8 = fmul contract double %5, %5", "  %9 = fadd contract double %8, %8",
        "  %10 = fmul contract double %9, %a", "  %11 = fadd reassoc nsz contract double %s, %10"])
    text = contracted(body, lambda name, *types: declared.append(name))
    done = [line.strip() for line in text.split("\n") if line]
    assert done == [
        "%2 = fmul contract double %c, %d",
        "%3 = call double @llvm.fmuladd.f64(double %a, double %b, double %2)", "%5.n = fneg double %3",
        "%5 = call double @llvm.fmuladd.f64(double %3, double %a, double %5.n)", "%7.n = fneg float %x",
        "%7 = call float @llvm.fmuladd.f32(float %7.n, float %x, float %y)",
        "%8 = fmul contract double %5, %5", "%9 = fadd double %8, %8",
        "%10 = fmul contract double %9, %a", "%11 = fadd reassoc nsz contract double %s, %10"]
    assert declared == ["llvm.fmuladd.f64", "llvm.fmuladd.f64", "llvm.fmuladd.f32"]


#: Steps of a product and a sum, which round to a whole often where the product is not rounded.
STEPS = {
    "floor": lambda p: np.floor(p - 1), "ceil": lambda p: np.ceil(p - 1), "round": lambda p: np.round(p + 0.5),
    "cast": lambda p: (p + 0.5).astype("int64"), "floordiv": lambda p: (p - 1) // 0.1, "mod": lambda p: (p + 1) % 1.0,
    "sign": lambda p: np.sign(p - 1), "greater": lambda p: p - 1 > 0, "equal": lambda p: p + 0.3 == 0.6,
    "where": lambda p: np.where(p - 1 >= 0, 1.0, p), "behind others": lambda p: np.ceil(abs(np.maximum(1 - p, -2)) / 1),
    "argmax": lambda p: np.argmax(p + 0.1), "sum": lambda p: np.floor(np.sum(p - 1)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_of_sums_of_products_are_numpys(dtype):
    x, y = (g.ravel().astype(dtype) for g in np.meshgrid(np.arange(1, 40) / 10, np.arange(1, 40) * 0.1))
    inputs = [sc.input(f"{name}{k}", dtype, ("n",)) for k in range(len(STEPS)) for name in "xy"]  # nothing is shared
    f = sc.compile([step(p * q) for step, p, q in zip(STEPS.values(), inputs[::2], inputs[1::2], strict=True)], inputs)
    got = f(*[x, y] * len(STEPS))
    wrong = [name for have, (name, step) in zip(got, STEPS.items(), strict=True)
             if not np.array_equal(have, step(x * y))]
    assert not wrong


def test_quantiles_of_lengths_that_are_not_known_are_at_numpys_places():
    points, methods = np.linspace(0, 1, 21), ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")
    inputs = [sc.vector(f"{name}{k}") for k in range(len(methods)) for name in "xq"]  # nothing is shared
    f = sc.compile([np.quantile(x, q, method=m) for x, q, m in zip(inputs[::2], inputs[1::2], methods, strict=True)],
                   inputs)
    for n in (5, 7, 10):
        x = np.arange(n) * 1.0
        for have, m in zip(f(*[x, points] * len(methods)), methods, strict=True):
            assert np.array_equal(have, np.quantile(x, points, method=m))


def test_in_loops_inside_of_a_kernel():
    """A loop has several results, and no dtype of its own; what its steps compare is rounded too."""
    def step(c, t):
        x, k = c
        inner, _ = sc.scan(lambda d, _: (d + 1, None), k, None, length=2)
        return (x, inner + np.where(x * t - 1 > 0, 1.0, 0.0)), k

    x, ts = sc.scalar("x"), sc.vector("ts")
    f = sc.compile(sc.scan(step, (x, 0.0), ts)[0][1], [x, ts])
    points = np.arange(1, 40) / 10
    for number in np.arange(1, 40) * 0.1:
        assert f(number, points) == 2 * len(points) + np.sum(number * points - 1 > 0)
