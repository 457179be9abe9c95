"""Kernels over rows that keep what is costly: it is computed once, and results are as if it were computed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.ir.reference import evaluate_function


def matrix(name: str, dtype: str = "float64") -> Any:
    return sc.input(name, dtype, shape=("n", "m"))


def softmax(x: Any) -> Any:
    e = sc.exp(x - sc.max(x, axis=1, keepdims=True))
    return e / sc.sum(e, axis=1, keepdims=True)


def normalized_twice(x: Any) -> Any:
    e = sc.tanh(x) * x
    d = sc.log1p(e * e) - sc.mean(e, axis=1, keepdims=True)
    return e + d / sc.sum(d, axis=1, keepdims=True), d


def and_its_greatest(x: Any) -> Any:
    s = softmax(x)
    return s, sc.max(s, axis=1)  # one loop reads the row that is kept, and writes the result there


def and_a_sum_of_it(x: Any) -> Any:
    s = softmax(x)
    d = s - sc.max(s, axis=1, keepdims=True)  # what comes after reads the row once more
    return s, sc.sum(d * d, axis=1)


PROGRAMS = {
    "read again": (and_a_sum_of_it, {"exp": 1}),
    "read and written": (and_its_greatest, {"exp": 1}),
    "softmax": (softmax, {"exp": 1}),
    "two results": (lambda x: (softmax(x), sc.exp(x) + 1), {"exp": 2}),
    "two levels": (normalized_twice, {"tanh": 1, "log1p": 1}),
    "cheap": (lambda x: x - sc.mean(x, axis=1, keepdims=True), {}),
}


#: Numba, which takes long, compiles each program in one dtype, in turn.
EACH = [(name, dtype, backend) for k, name in enumerate(PROGRAMS) for j, dtype in enumerate(("float64", "float32"))
        for backend in ("llvm", *["numba"] * ((j + k) % 2))]


@pytest.mark.parametrize("name, dtype, backend", EACH)
def test_functions_are_computed_once(name: str, dtype: str, backend: str) -> None:
    build, counts = PROGRAMS[name]
    x = matrix("x", dtype)
    f = sc.compile(build(x), [x], backend=backend)
    source = f.source.replace("exp_nonpositive(", "exp(")
    assert len(f.kernels) == 1 and {g: source.count(f"{g}(") for g in counts} == counts
    for shape in ((3, 37), (1, 1), (4, 2000), (0, 5)):
        a = np.random.default_rng(0).normal(size=shape).astype(dtype)
        want = evaluate_function(f._built.function, [a])
        got: Sequence[Any] = f(a) if isinstance(f(a), tuple) else [f(a)]
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=3e-5 if dtype == "float32" else 1e-12, atol=1e-6)


def test_a_result_that_may_lie_over_an_operand_keeps_nothing() -> None:
    x, y = matrix("x"), matrix("y")
    f = sc.compile(softmax(x) * y, [x, y], donate=[y])  # y is read when the result is written, perhaps over it
    assert f.source.count("exp_nonpositive(") == 2
    a, b = (np.random.default_rng(k).normal(size=(3, 7)) for k in range(2))
    want = evaluate_function(f._built.function, [a, b])[0]
    np.testing.assert_allclose(f(a, b.copy()), want, rtol=1e-12)


def test_integers_and_one_long_row_compute_again() -> None:
    x = sc.vector("x")
    f = sc.compile(sc.exp(x) / sc.sum(sc.exp(x)), [x])
    assert f.source.count("exp_nonpositive(") == 2  # a row may be larger than the cache
    np.testing.assert_allclose(f(np.arange(4.0)).sum(), 1)
