"""Loops and branches in plans: what they compute, where carries live, and what the checker refuses."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from symc.codegen.plan import check_plan, make_plan
from symc.ir.reference import evaluate_function
from symc.opt.fuse import fuse
from tests.loop_cases import LoopMachine, loop_functions
from tests.plan_cases import SIZES, donations, failing, some_arrays


@settings(max_examples=200, deadline=None)
@given(loop_functions, donations, failing, st.booleans(), st.booleans())
def test_plans_with_loops_compute_what_the_reference_computes(f, donated, fails, fusing, reuse):
    plan = make_plan(fuse(f) if fusing else f, donated, reuse, fails=fails)
    check_plan(plan, fails=fails)
    arrays = some_arrays(f, SIZES)
    machine = LoopMachine(plan, arrays, SIZES)
    for a, b in zip(machine.run(), evaluate_function(f, arrays), strict=True):
        assert np.array_equal(a, b, equal_nan=True)
    for k, name in enumerate(plan.given):
        if plan.buffers[name].kind == "input" and k not in donated:
            assert machine.bytes[name].tobytes() == arrays[k].tobytes()
