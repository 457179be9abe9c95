"""Plans with lanes on the emulated device, which runs streams in any order that events allow and compares all that
works touch: what the plan proves holds for what really runs, scratch memory and captured graphs too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import symc as sc
from symc.codegen.plan import lanes as laning
from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.lanes import with_lanes
from symc.codegen.plan.planner import make_plan
from symc.ir.function import Function
from symc.ir.plan import Plan
from symc.ir.record import replace
from symc.ir.reference import evaluate_function
from symc.runtime.cuda.devices import context
from symc.runtime.cuda.program import CudaProgram
from symc.runtime.emulator import EmulationError
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def eager(monkeypatch) -> Iterator[None]:
    """Every step goes where it can start first."""
    for name, number in dict(WAIT=0.0, EARLIER=1.0, WORTH=1.0, GAIN=0.0, FULL=1 << 60, FULL_PRODUCT=1 << 60).items():
        monkeypatch.setattr(laning, name, number)
    with emulated_cuda():
        yield


def towers() -> Function:
    """Three chains of products, sums and sorts that meet."""
    x = sc.input("x", "f32", (8, 8))
    ws = [sc.input(f"w{k}", "f32", (8, 8)) for k in range(3)]
    ends = []
    for w in ws:
        h = sc.tanh(x @ w)
        h = sc.sort(h, axis=1) - sc.max(h, axis=0)
        ends.append(sc.tanh(h @ w))
    total = ends[0] + ends[1] @ ends[2]
    return sc.compile([total, ends[1].sum()], [x, *ws])._compilation.final


def loops() -> Function:
    """Two loops that need nothing of each other."""
    x, v, w = sc.input("x", "f32", (8,)), sc.input("v", "f32", (8, 8)), sc.input("w", "f32", (8, 8))
    ends = [sc.fori_loop(0, n, lambda k, h, m=m: sc.tanh(m @ h / 4), x) for n, m in ((20, v), (30, w))]
    return sc.compile([ends[0] * ends[1]], [x, v, w])._compilation.final


def choices() -> Function:
    """What the host has to see to go on, beside what it need not see."""
    x, w = sc.input("x", "f32", (8,)), sc.input("w", "f32", (8, 8))
    steps = sc.fori_loop(0, 20, lambda k, h: sc.tanh(w @ h / 4), x)
    turns = sc.while_loop(lambda h: h.sum() < 9, lambda h: h + sc.abs(w @ h), sc.abs(x) + 0.1, max_steps=30)
    branch = sc.cond((w @ x).sum() > 0, lambda a: sc.tanh(a @ x), lambda a: a @ x * 2, w @ w)
    return sc.compile([steps, turns, branch], [x, w])._compilation.final


def plans(f: Function) -> list[Plan]:
    """Packed for lanes, and packed for one and then divided."""
    found = [make_plan(f, lanes=3), with_lanes(make_plan(f), 3)]
    for p in found:
        check_plan(p)
    assert len({s.lane for s in found[0].steps}) > 1
    return found


def arrays_of(f: Function) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=i.type.shape).astype(i.type.dtype) for i in f.inputs]


@pytest.mark.parametrize("make", [towers, loops, choices])
def test_lanes_compute_the_values_of_the_reference_call_by_call(make):
    f = make()
    arrays = arrays_of(f)
    for plan in plans(f):
        program = CudaProgram(plan, context("cuda"))
        for scale in np.float32([1, 1, -1, 2]):  # later calls run what an earlier one captured
            given = [scale * a for a in arrays]
            for a, b in zip(program.run(given, {}), evaluate_function(f, given), strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=2e-5, atol=1e-6)


def test_what_the_host_waits_for_is_on_the_first_lane():
    kinds = {s.value.op.name: s.lane for s in plans(choices())[0].steps if s.kind == "control"}
    assert kinds["while"] == kinds["cond"] == 0 != kinds["scan"]


@pytest.mark.parametrize("make", [towers, loops])
def test_the_device_sees_a_missing_wait(make):
    f = make()
    plan = plans(f)[0]
    assert any(s.waits for s in plan.steps)
    for at, step in enumerate(plan.steps):
        for w in step.waits:
            less = replace(step, waits=tuple(x for x in step.waits if x != w))
            program = CudaProgram(replace(plan, steps=(*plan.steps[:at], less, *plan.steps[at + 1:])), context("cuda"))
            with pytest.raises(EmulationError):
                for r in program.run(arrays_of(f), {}):
                    r.numpy()
