"""The generic CUDA template: every kind of loop nest that the CPU has, checked access by access; indices of 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.codegen.cuda.generic import Generic
from symc.codegen.cuda.indices import NARROW
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import scalarize
from symc.driver.build import build
from symc.ir.reference import bind_sizes
from symc.ir.size_values import evaluate
from symc.opt.engine.passes import optimize
from symc.tensors.callsite import caller
from tests.cuda.emulated import needs_compiler
from tests.cuda.generic_cases import cases_of
from tests.cuda.template_cases import compare, run

pytestmark = needs_compiler
RNG = np.random.default_rng(7)


def final(outputs, inputs):
    """A program after the optimizer."""
    return optimize(build(outputs, inputs, None, None, None, "program", caller()).function).function


def kernels(outputs, inputs, arrays, choice=""):
    """The kernels of a program, with what reaches them."""
    f = final(outputs, inputs)
    sizes = bind_sizes([i.type for i in f.inputs], [a.shape for a in arrays])
    return cases_of(f, arrays, sizes, choice)


def checked(cases, ulps=16):
    run(cases)
    for case in cases:  # as pairs of floats
        for arrays in (case.got, case.want):
            arrays[:] = [np.atleast_1d(a).view(a.real.dtype) if a.dtype.kind == "c" else a for a in arrays]
    compare(cases, ulps)


@pytest.fixture
def x():
    return sc.input("x", "float32", ("n", "m"))


def test_loop_nests_of_every_kind(x):
    a = RNG.normal(size=(37, 29)).astype("f4")
    i = sc.input("i", "int64", ("k",))
    h = sc.input("h", "float16", ("n", "m"))
    z = sc.input("z", "complex64", ("n",))
    programs = [
        ([sc.exp(x) * 2 + x.T.T], [x], [a]),
        ([sc.softmax(x, axis=1), sc.sum(x, axis=1)], [x], [a]),
        ([sc.sum(x, axis=0), sc.max(x * x, axis=0)], [x], [a]),
        ([sc.sum(x * x), sc.max(x), sc.mean(sc.tanh(x)) + 1], [x], [RNG.normal(size=(211, 97)).astype("f4")]),
        ([x / sc.sum(x)], [x], [abs(a)]),
        ([sc.argmax(x, axis=1), sc.argmin(x, axis=0)], [x], [a]),
        ([sc.cumsum(x, axis=0), sc.cumsum(x, axis=1), sc.cumprod(x, axis=1)], [x], [a]),
        ([sc.sort(x[:, :20], axis=1), sc.argsort(x[:7], axis=0)], [x], [a]),
        ([x[i], sc.zeros(x.shape, "float32").at[i].add(x[i])], [x, i], [a, RNG.integers(0, 37, 50)]),
        ([sc.concatenate([x, 2 * x], axis=1), x[::-1, 3:17:2]], [x], [a]),
        ([sc.sum(h * h, axis=1), h.T + 1], [h], [a.astype("f2")]),
        ([z * z.conj() + abs(z), sc.exp(z), sc.sum(z)], [z], [(a[:, 0] + 1j * a[:, 1]).astype("c8")]),
    ]
    found = [c for p in programs for c in kernels(*p)]
    assert len(found) >= 12
    checked(found)


def test_what_columns_do_apart_threads_do(x):
    i = sc.input("i", "int64", ("k",))
    u = sc.input("u", "float32", ("k", "m"))
    a, b, at = RNG.normal(size=(11, 70)), RNG.normal(size=(50, 70)), RNG.integers(0, 11, 50)
    programs = [([sc.cumsum(x, axis=0)], [x], [a]), ([sc.sort(x[:9], axis=0)], [x], [a]),
                ([x.at[i].add(u)], [x, i, u], [a, at, b]), ([x.at[:, i].multiply(2.0)], [x, i], [a, at])]
    y = sc.input("y", "float32", (5, 2, 40))
    (deep,) = kernels([sc.cumsum(y, axis=0)], [y], [RNG.normal(size=(5, 2, 40)).astype("f4")])
    assert deep.family.text("i32")[0].chunks.units == 40, "the longest axis"
    found = [deep] + [c for f, v, arrays in programs
             for c in kernels(f, v, [n.astype("f4") if n.dtype == float else n for n in arrays])]
    ends = {e.name.removeprefix("kernel"): e.grid for c in found for e in c.family.source("wide", "kernel").entries}
    checked(found)
    grids = [c.source.entries[-1].grid for c in found if c.region.results[0].ndim == 2]
    assert len(grids) == 4 and all(g[0] != 1 for g in grids), "each thread has a column"
    assert "_start0" in ends, "what is updated is copied by as many threads as it has elements"


def test_loops_over_time_are_one_thread():
    v = sc.input("v", "float64", ("n",))
    w = sc.input("w", "float64", (3,))
    programs = [
        ([sc.scan(lambda s, r: (s * 0.5 + r, s), 0.0, v)[1]], [v],
         [RNG.normal(size=9)]),
        ([sc.while_loop(lambda u: sc.sum(u) > 1e-3, lambda u: u / 2, w)], [w], [np.ones(3)]),
    ]
    found = [c for p in programs for c in kernels(*p)]
    assert [c.source.entries[0].grid for c in found] == [(1, 1, 1)] * 2 and all(c.source.wide for c in found)
    checked(found)


def test_random_bits_are_those_of_the_cpu():
    key = sc.random.key(3)
    draws = [sc.random.normal(key, (500,)), sc.random.uniform(key, (500,), "float32"),
             sc.random.poisson(key, 20.0, (200,)), sc.random.integers(key, 0, 1000, (300,)),
             sc.random.gamma(key, 2.5, (200,)), sc.random.binomial(key, 40, 0.3, (200,))]
    found = [c for d in draws for c in kernels([d], [], [])]
    run(found)
    for case in found:
        for got, want in zip(case.got, case.want, strict=True):
            if got.dtype.kind in "iu":
                np.testing.assert_array_equal(got, want)
            else:
                np.testing.assert_allclose(got, want, rtol=8 * np.finfo(got.dtype).eps)


def test_indices_have_32_bits_where_sizes_allow(x):
    f = final([sc.exp(x[::-1]).reshape(-1)], [x])
    (v,) = [v for v in f.values() if v.op.name == "fused"]
    of = Generic((v.regions[0], ()), scalarize(collapse(v.regions[0])))
    few, many = ({"n": n, "m": 1000} for n in (1000, NARROW // 1000 + 1))
    assert of.choose(lambda s: evaluate(s, few)) == "" and of.choose(lambda s: evaluate(s, many)) == "wide"
    text = of.source("", "kernel").text
    assert "i64" not in text, "a place that is computed from indices has 32 bits"
    assert "i32" not in of.source("wide", "kernel").text


def test_what_is_no_index_keeps_64_bits():
    n = sc.input("n", "int64", ("k",))
    (case,) = kernels([sc.arange(1000) ** 7 + n * 3], [n], [RNG.integers(-9, 9, 1000)])
    run([case])
    np.testing.assert_array_equal(case.got[0], case.want[0])

