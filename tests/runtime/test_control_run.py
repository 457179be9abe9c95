"""Random functions with loops and branches, nested two deep, run by the native interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symc as sc
from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.planner import make_plan
from symc.ir.reference import evaluate_function
from symc.opt import DEFAULT, optimize
from symc.runtime.cpu.program import load
from tests.codegen.plan.loop_cases import loop_functions
from tests.codegen.plan.plan_cases import SIZES, donations, failing, some_arrays


@settings(max_examples=200, deadline=None)
@given(loop_functions, donations, failing, st.booleans())
def test_the_interpreter_computes_what_the_reference_computes(f, donated, fails, reuse):
    """Every op inside runs by its reference, but products, whose sums BLAS may make in another order."""
    plan = make_plan(f, donated, reuse, fails=fails)
    program = load(plan)
    wanted = evaluate_function(f, some_arrays(f, SIZES))
    for _ in range(2):  # the second call finds the memory of the first
        arrays = some_arrays(f, SIZES)
        before = [a.copy() for a in arrays]
        for a, b in zip(program.run(arrays, SIZES), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        for k, (a, b) in enumerate(zip(arrays, before, strict=True)):
            if f.inputs[k].role == "arg" and k not in donated:
                assert a.tobytes() == b.tobytes()


@settings(max_examples=25, deadline=None)
@given(loop_functions)
def test_optimized_and_compiled_loops_compute_what_the_reference_computes(f):
    plan = make_plan(optimize(f, DEFAULT, strict=True, verify=True).function)
    check_plan(plan)
    arrays = some_arrays(f, SIZES)
    with np.errstate(all="ignore"):
        wanted = evaluate_function(f, [a.copy() for a in arrays])
    for a, b in zip(load(plan).run(arrays, SIZES), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


# --- carries of every kind --------------------------------------------------------------------------------------------

N = 6
CARRIES = {
    "bool": (np.zeros((), bool), lambda c, x: (~c, c)),
    "bools": (np.arange(3) > 1, lambda c, x: (c ^ (x > 0), ~c)),
    "i8": (np.array(120, np.int8), lambda c, x: (c + np.int8(5), c)),
    "u64": (np.array(2**63, np.uint64), lambda c, x: (c // np.uint64(3), c)),
    "complex": (np.arange(3) * 1j, lambda c, x: (c * (0.5 + 1j) + x, sc.abs(c))),
    "f32": (np.ones((3, 3), np.float32), lambda c, x: (c @ c * np.float32(0.3), c.sum())),
    "no elements": (np.zeros((0, 2)), lambda c, x: (c.T.reshape(0, 2) + 1, c.sum() + x)),
}


def control_steps(f) -> int:
    return sum(s.kind == "control" for s in f._compilation.plan.steps)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", CARRIES)
def test_carries_of_every_type(kind: str, reverse: bool):
    start, step = CARRIES[kind]
    h, xs = sc.input("h", start.dtype, shape=start.shape), sc.input("xs", "float64", shape=("t", 3))
    outputs = [v for pair in (sc.scan(step, h, xs, reverse=reverse), sc.scan(step, start, xs, reverse=reverse))
               for v in pair]
    f = sc.compile(outputs, [h, xs], pipeline=DEFAULT.replace(",small_loops", ""))
    g = sc.compile(outputs, [h, xs], mode="reference")
    for t in (0, 1, N):
        arrays = start, np.linspace(-1, 1, 3 * t).reshape(t, 3)
        for a, b in zip(f(*arrays), g(*arrays), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6)
    assert control_steps(f) >= 1


def test_a_bool_that_is_the_condition_itself():
    x = sc.input("x", "float64", shape=(3,))
    again, y, steps = sc.while_loop(lambda s: s[0], lambda s: (sc.sum(s[1]) < 9.0, s[1] * 2 + 1, s[2] + 1),
                                    (np.array(True), x, 0))
    f = sc.compile([again, y, steps], [x], pipeline=DEFAULT.replace(",small_loops", ""))
    g = sc.compile([again, y, steps], [x], mode="reference")
    for a, b in zip(f(np.ones(3)), g(np.ones(3)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert control_steps(f) == 1


def test_one_array_in_every_place():
    """The same array is carried twice, walked through and captured; and the loop's results are as new."""
    x = sc.input("x", "float64", shape=("n", "n"))
    (a, b), (ys, zs) = sc.scan(lambda c, row: ((c[1], c[0] + row), (row, c[0] @ x)), (x[0] * 1.0, x[0] * 1.0), x)
    (c, d), es = sc.scan(lambda s, row: ((s[0] + row, s[1]), s[1]), (x, x), x)
    outputs = [a, b, ys, zs, c, d, es]
    f = sc.compile(outputs, [x], pipeline=DEFAULT.replace(",small_loops", ""))
    data = np.linspace(-1, 1, 16).reshape(4, 4)
    kept = data.copy()
    found = f(data)
    for one, two in zip(found, sc.compile(outputs, [x], mode="reference")(data), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-13)
    for one in found:
        one[...] = 7.0
    np.testing.assert_array_equal(data, kept)
    assert control_steps(f) >= 1
