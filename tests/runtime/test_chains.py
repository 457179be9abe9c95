"""Kernels that are long chains take several vectors side by side; others are left to LLVM."""

import ast

import numpy as np
import pytest

import symc as sc
from symc.runtime.compilers.chains import LONG, MANY, beside


def _newton(a):
    x = a / 3 + 1
    for _ in range(12):
        x = x - (x * x * x - a) / (3 * x * x)
    return x


def _horner(x):
    p = 0.3 * x
    for k in range(30):
        p = p * x + 0.1 * k
    return p


def _wide(x):
    return sum((x + k) * (x - 0.1 * k) ** 3 for k in range(12))


@pytest.mark.parametrize("make, vectors", [(_newton, 4), (_horner, 4), (_wide, 1), (lambda x: x * 2 + 1, 1)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_side_by_side(make, vectors, dtype):
    x = sc.input("x", dtype, shape=("n",))
    f = sc.compile(make(x), [x])
    (record,) = f.kernels
    (loop,) = [s for s in ast.walk(ast.parse(record.source)) if isinstance(s, ast.For)]
    assert beside(loop.body, 4) == vectors
    for n in (0, 1, 7, 33, 100):
        array = np.random.default_rng(0).uniform(1, 2, n).astype(dtype)
        np.testing.assert_allclose(f(array), make(array), rtol=1e-12 if dtype == "float64" else 1e-5)


def _chain(length, kept):
    lines = [f"k{j} = a[i + {j}]" for j in range(kept)] + ["t0 = a[i]"]
    lines += [f"t{k + 1} = t{k} * c + k{k % kept}" if kept else f"t{k + 1} = t{k} * c" for k in range(length)]
    return ast.parse("\n".join([*lines, f"o[i] = t{length}"])).body


def test_the_more_is_kept_the_fewer_vectors():
    assert [beside(_chain(2 * LONG, kept), 4) for kept in (0, 8, 15, 21, 40)] == [4, 4, 2, 1, 1]
    assert beside(_chain(LONG // 2, 0), 4) == 1 and beside(_chain(LONG, 0), 4) == 4
    assert beside([*_chain(LONG, 0), *ast.parse("if t0 > 0:\n    pass").body], 4) == 1


def test_many_functions_that_do_not_wait_are_taken_one_vector_after_the_other():
    """They are as many as vectors side by side would be, and a quarter of the code."""
    def body(calls, chain):
        lines = [f"t{k} = exp({f't{k - 1}' if k and chain else f'a0[i] * {k}.5'})" for k in range(calls)]
        return ast.parse("\n".join([*lines, "o0[i] = " + " + ".join(f"t{k}" for k in range(calls))])).body

    for calls, chain, vectors in ((MANY, False, 1), (MANY, True, 4), (MANY - 1, False, 4), (4 * MANY, False, 1)):
        assert beside(body(calls, chain), 4, ["exp"] * calls) == vectors
