"""Random functions with loops and branches, nested two deep, run by the native interpreter."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from symc.codegen.plan import check_plan, make_plan
from symc.ir.reference import evaluate_function
from symc.opt import DEFAULT, optimize
from symc.runtime.program import load
from tests.loop_cases import loop_functions
from tests.plan_cases import SIZES, donations, failing, some_arrays


@settings(max_examples=200, deadline=None)
@given(loop_functions, donations, failing, st.booleans())
def test_the_interpreter_computes_what_the_reference_computes(f, donated, fails, reuse):
    """Every op inside runs by its reference, so the bits must be equal."""
    plan = make_plan(f, donated, reuse, fails=fails)
    program = load(plan)
    wanted = evaluate_function(f, some_arrays(f, SIZES))
    for _ in range(2):  # the second call finds the memory of the first
        arrays = some_arrays(f, SIZES)
        before = [a.copy() for a in arrays]
        for a, b in zip(program.run(arrays, SIZES), wanted, strict=True):
            assert np.array_equal(a, b, equal_nan=True)
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
