"""The generic CUDA template: every kind of loop nest that the CPU has, checked access by access; indices of 32 bits."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import symc as sc
from symc.build import build
from symc.codegen.collapse import collapse
from symc.codegen.cpu.text import Unsupported
from symc.codegen.cuda.generic import generic
from symc.codegen.cuda.indices import NARROW
from symc.codegen.cuda.render import family
from symc.codegen.scalarize import scalarize
from symc.ir.dim import evaluate
from symc.ir.reference import bind_sizes
from symc.opt.passes import optimize
from tests.cuda.generic_cases import cases_of
from tests.cuda.template_cases import compare, run

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulated device needs g++")
RNG = np.random.default_rng(7)


def final(outputs, inputs):
    """A program after the optimizer."""
    return optimize(build(outputs, inputs, None, None, None, "program", None).function).function


def kernels(outputs, inputs, arrays, choice=""):
    """The kernels of a program, with what reaches them."""
    f = final(outputs, inputs)
    sizes = bind_sizes([i.type for i in f.inputs], [a.shape for a in arrays])
    return cases_of(f, arrays, sizes, choice)


def checked(cases, ulps=16):
    run(cases)
    for case in cases:  # as pairs of floats
        for arrays in (case.got, case.want):
            arrays[:] = [a.view(a.real.dtype) if a.ndim and a.dtype.kind == "c" else a for a in arrays]
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
    of = generic((v.regions[0], ()), scalarize(collapse(v.regions[0])))
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


def test_a_function_of_numba_is_refused():
    op = sc.op(lambda a: a + 1.0, name="numba_alone_", numba=lambda a: a + 1.0)
    x = sc.input("x", "float64", ("n",))
    f = final([op(x) * 2], [x])
    regions = [v.regions[0] for v in f.values() if v.op.name == "fused"]
    assert regions
    with pytest.raises(Unsupported, match="Numba"):
        for region in regions:
            of = family((region, ()))
            of.source(of.choose(lambda s: 5), "kernel")
