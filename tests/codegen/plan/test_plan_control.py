"""Loops and branches in plans: what they compute, where carries live, and what the checker refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.memory import memory
from symc.codegen.plan.planner import make_plan
from symc.codegen.plan.text import print_plan
from symc.errors import PlanError
from symc.ir.parse import parse
from symc.ir.plan import Layout, Plan, Step
from symc.ir.reference import evaluate_function
from symc.opt.fusion.fuse import fuse
from tests.codegen.plan.loop_cases import LoopMachine, loop_functions
from tests.codegen.plan.plan_cases import CALLS_FAIL_NOT, SIZES, donations, failing, some_arrays
from tests.codegen.plan.test_check_plan import mutate


def runs_right(plan: Plan, f) -> LoopMachine:
    """Its results are the reference's, and it leaves what it is given as it is."""
    arrays = some_arrays(f, SIZES)
    machine = LoopMachine(plan, arrays, SIZES)
    for a, b in zip(machine.run(), evaluate_function(f, arrays), strict=True):
        assert np.array_equal(a, b, equal_nan=True)
    for k, name in enumerate(plan.given):
        if plan.buffers[name].kind == "input" and k not in plan.donated:
            assert machine.bytes[name].tobytes() == arrays[k].tobytes()
    return machine


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(loop_functions, donations, failing, st.booleans(), st.booleans())
def test_plans_with_loops_compute_what_the_reference_computes(f, donated, fails, fusing, reuse):
    plan = make_plan(fuse(f) if fusing else f, donated, reuse, fails=fails)
    check_plan(plan, fails=fails)
    runs_right(plan, f)
    print_plan(plan)
    report = memory(plan, SIZES)
    assert report.lower_bound <= report


# --- changed plans ----------------------------------------------------------------------------------------------------


def change_layout(step: Step, kind: int, i: int, j: int) -> Step:
    """A control step with one thing changed that the plan around it does not see."""
    layout, body = step.layout, step.bodies[-1]
    assert layout is not None
    moves, names = list(layout.moves), list(body.buffers)
    if kind == 0 and moves:
        del moves[i % len(moves)]
    elif kind == 1 and moves:
        moves[i % len(moves)] = (moves[i % len(moves)][0], names[j % len(names)])
    elif kind == 2:
        moves.append((names[i % len(names)], names[j % len(names)]))
    elif kind == 3 and layout.homes:
        k = i % len(layout.homes)
        new = ("operand", "result", "scratch")[j % 3]
        return replace(step, layout=replace(layout, homes=(*layout.homes[:k], new, *layout.homes[k + 1 :])))
    elif kind == 4 and layout.places:
        places = dict(layout.places)
        places[list(places)[i % len(places)]] = (*places.values(), *layout.arenas, 0, 32)[j % (len(places) + 3)]
        return replace(step, layout=replace(layout, places=places))
    elif kind == 5:
        return replace(step, layout=replace(layout, arenas=(64 * (i % 3),) * (len(step.bodies) - (j % 4 == 3))))
    elif kind == 6:
        return replace(step, layout=replace(layout, flag=None if j % 3 == 2 else 64 * (j % 3)))
    else:
        k = i % len(step.bodies)
        return replace(step, bodies=(*step.bodies[:k], change(step.bodies[k], j % 9, i, j), *step.bodies[k + 1 :]))
    return replace(step, layout=replace(layout, moves=tuple(moves)))


def change(plan: Plan, kind: int, i: int, j: int) -> Plan:
    """A plan in which one thing is changed, inside of a loop or branch if there is one."""
    inside = [k for k, s in enumerate(plan.steps) if s.kind == "control"]
    if kind == 8 and inside:  # the scratch: another buffer, or none
        k, names = inside[i % len(inside)], [*plan.buffers, None]
        return replace(plan, steps=(*plan.steps[:k], replace(plan.steps[k], scratch=names[j % len(names)]),
                                    *plan.steps[k + 1 :]))
    if not inside or kind > 8:
        return mutate(plan, kind % 7, i, j)
    k = inside[i % len(inside)]
    return replace(plan, steps=(*plan.steps[:k], change_layout(plan.steps[k], kind, i, j), *plan.steps[k + 1 :]))


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(loop_functions, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=10, max_size=10),
       st.booleans())
def test_a_changed_loop_is_refused_or_still_right(f, places, fusing):
    """Every kind of change to one plan."""
    whole = make_plan(fuse(f) if fusing else f, fails=CALLS_FAIL_NOT)
    for kind, (i, j) in enumerate(places):
        plan = change(whole, kind, i, j)
        try:
            check_plan(plan, fails=CALLS_FAIL_NOT)
        except PlanError:
            continue
        runs_right(plan, f)


# --- planted mistakes -------------------------------------------------------------------------------------------------

STEP = """func @f(%h: f64[4], %x: f64[t, 4], %w: f64[4, 4]) -> (f64[4], f64[t, 4]) {
  %0, %1 = scan %h, %x, %w {carry = 1, length = t, xs = 1} : f64[4], f64[t, 4] {
  ^(%p0: f64[4], %p1: f64[4], %p2: f64[4, 4]):
    %0 = dot %p2, %p0 : f64[4]
    %1 = add %0, %p1 : f64[4]
    %2 = dot %p2, %1 : f64[4]
    %3 = add %p1, %p0 : f64[4]
    %4 = dot %p2, %3 : f64[4]
    %5 = mul %4, %2 : f64[4]
    %6 = mul %0, %p0 : f64[4]
    %7 = dot %p2, %6 : f64[4]
    %8 = sub %7, %5 : f64[4]
    %9 = dot %p2, %p0 {contract = ((0,), (0,))} : f64[4]
    yield %9, %8
  }
  return %0, %1
}"""
TWO = """func @f(%a: f64[4], %b: f64[4], %w: f64[4, 4]) -> (f64[4], f64[4], i64[]) {
  %0, %1, %2 = while %a, %b, %w {carry = 2, max_steps = 9} : f64[4], f64[4], i64[] {
  ^(%p0: f64[4], %p1: f64[4], %p2: f64[4, 4]):
    %0 = sum %p0 {axes = (0,)} : f64[]
    %1 = lt %0, 10.0:f64[] : bool[]
    yield %1
  } {
  ^(%p0: f64[4], %p1: f64[4], %p2: f64[4, 4]):
    %0 = dot %p2, %p0 : f64[4]
    %1 = sort %p1 {axis = 0} : f64[4]
    %2 = dot %p2, %1 : f64[4]
    yield %0, %2
  }
  return %0, %1, %2
}"""
LAG = """func @f(%a: f64[4], %x: f64[3, 4]) -> (f64[4], f64[4], f64[3, 4]) {
  %0, %1, %2 = scan %a, %a, %x {carry = 2, length = 3, xs = 1} : f64[4], f64[4], f64[3, 4] {
  ^(%p0: f64[4], %p1: f64[4], %p2: f64[4]):
    %0 = add %p1, %p0 : f64[4]
    yield %p2, %p0, %0
  }
  return %0, %1, %2
}"""


def planned(text: str, op: str) -> tuple[Plan, Step]:
    plan = make_plan(parse(text), fails=CALLS_FAIL_NOT)
    check_plan(plan, fails=CALLS_FAIL_NOT)
    (step,) = [s for s in plan.steps if s.kind == "control"]
    assert step.value.op.name == op
    return plan, step


def refused(plan: Plan, old: Step, message: str, **changes) -> None:
    """The plan with a control step changed is refused."""
    steps = tuple(replace(old, **changes) if s is old else s for s in plan.steps)
    with pytest.raises(PlanError, match=message):
        check_plan(replace(plan, steps=steps), fails=CALLS_FAIL_NOT)


def test_the_memory_of_a_loop_is_laid_out_as_it_must_be():
    plan, step = planned(STEP, "scan")
    layout = step.layout
    (second,) = layout.places
    assert layout == Layout((64,), None, {second: 0}, ("result",), (("h0", second), (second, "h0")))
    refused(plan, step, "not known to be aligned", layout=replace(layout, places={second: 32}))
    refused(plan, step, "not known to be aligned", layout=replace(layout, arenas=(0,)))
    refused(plan, step, "not known to be aligned", layout=replace(layout, arenas=(6400,)))
    refused(plan, step, "no place, or one too many", layout=replace(layout, places={}))
    refused(plan, step, "no place, or one too many", layout=replace(layout, places={**layout.places, "h0": 64}))
    refused(plan, step, "no place, or one too many", layout=replace(layout, flag=0))
    refused(plan, step, "0 arenas for 1 bodies", layout=replace(layout, arenas=()))
    refused(plan, step, "does not hold its new value", layout=replace(layout, moves=()))
    refused(plan, step, "the same memory", layout=replace(layout, moves=layout.moves[:1]))
    refused(plan, step, "two places", layout=replace(layout, moves=(*layout.moves, ("h0", second))))
    refused(plan, step, "may write over what it is given", layout=replace(layout, homes=("operand",)))
    refused(plan, step, "no place, or one too many", layout=replace(layout, homes=("scratch",)))
    refused(plan, step, "for 1 carries", layout=replace(layout, homes=("somewhere",)))
    refused(plan, step, "not its own", scratch=step.writes[0])
    refused(plan, step, "not its own", scratch="w")
    refused(plan, step, "has no scratch", scratch=None)
    refused(plan, step, "does not admit in place", writes=("w", step.writes[1]))
    refused(plan, step, "0 bodies for 1 regions", bodies=())
    body = step.bodies[0]
    refused(plan, step, "reads operand", bodies=(replace(body, steps=body.steps[1:]),))
    refused(plan, step, "not known to lie apart|not known to end", bodies=(replace(body, arena=0),))
    other = planned(STEP.replace("add", "sub"), "scan")[1].bodies[0]
    refused(plan, step, "not that of its region|does not hold its new value", bodies=(other,))
    small = replace(plan, buffers={**plan.buffers, step.scratch: replace(plan.buffers[step.scratch], nbytes=64)})
    with pytest.raises(PlanError, match="to end before 64"):
        check_plan(small, fails=CALLS_FAIL_NOT)


def test_two_carries_keep_apart_and_the_flag_too():
    plan, step = planned(TWO, "while")
    layout = step.layout
    a, b = layout.places if len(layout.places) == 2 else (*layout.places, None)
    assert b is None and layout.homes == ("result", "result") and layout.flag == 64
    refused(plan, step, "not known to be aligned", layout=replace(layout, flag=0))
    refused(plan, step, "no place, or one too many", layout=replace(layout, flag=None))
    crossed = replace(layout, moves=(("h0", "h1"), ("h1", a), (a, "h0")))
    refused(plan, step, "does not hold its new value", layout=crossed)
    refused(plan, step, "not that of its region", bodies=step.bodies[::-1])
    refused(plan, step, "2 bodies|not that of its region", bodies=(step.bodies[0], step.bodies[0]))


def test_a_carry_that_is_an_address_only_points_to_what_stays():
    plan, step = planned(LAG, "scan")
    layout = step.layout
    assert layout.homes == ("operand", "operand") and set(layout.moves) == {("h0", "x0"), ("h1", "h0")}
    refused(plan, step, "does not hold its new value", layout=replace(layout, moves=(("h0", "x0"),)))
    refused(plan, step, "must not have", layout=replace(layout, moves=(*layout.moves, ("x0", "h0"))))
    refused(plan, step, "may write over what it is given", layout=replace(layout, homes=("result", "operand")))
    assert step.reads[0] not in step.writes


def test_an_operand_that_another_carry_points_to_is_not_written_over():
    text = LAG.replace("-> (f64[4], f64[4],", "-> (f64[], f64[],").replace(") {\n  %0, %1, %2 = scan %a, %a", """) {
  %3 = sort %a {axis = 0} : f64[4]
  %4 = neg %3 : f64[4]
  %5 = sort %4 {axis = 0} : f64[4]
  %0, %1, %2 = scan %4, %5""").replace("return %0, %1", """%6 = sum %0 {axes = (0,)} : f64[]
  %7 = sum %1 {axes = (0,)} : f64[]
  return %6, %7""")
    plan, step = planned(text, "scan")
    # nobody else looks where carry 1 starts
    assert step.writes[0] not in step.reads and step.writes[1] == step.reads[1]
    runs_right(plan, plan.function)
    refused(plan, step, "does not admit in place", writes=(step.reads[0], *step.writes[1:]))


# --- memory -----------------------------------------------------------------------------------------------------------


def test_scratch_counts_as_memory():
    plan, step = planned(STEP, "scan")
    report = memory(plan, {"t": 5})
    inputs, results = 32 + 5 * 32 + 128, 32 + 5 * 32
    assert report == report.lower_bound == inputs + results + 192 and report.arena == 192
    assert next(r for r in report.rows if r.buffer == step.scratch).nbytes == 192
    assert "peak 64*t + 384 bytes in 6 buffers" in print_plan(plan)
    alone = memory(make_plan(parse(STEP), reuse=False, fails=CALLS_FAIL_NOT), {"t": 5})
    assert alone.naive == report.naive and alone.arena > report.arena


def test_a_loop_with_much_scratch_runs_when_little_else_is_alive():
    text = """func @f(%x: f64[1000], %h: f64[4], %w: f64[4, 2000]) -> (f64[1000]) {
  %0 = sort %x {axis = 0} : f64[1000]
  %1 = neg %0 : f64[1000]
  %2 = scan %h, %w {carry = 1, length = 9, xs = 0} : f64[4] {
  ^(%p0: f64[4], %p1: f64[4, 2000]):
    %0 = dot %p0, %p1 {contract = ((0,), (0,))} : f64[2000]
    %1 = dot %p1, %0 : f64[4]
    yield %1
  }
  %3 = fused %1, %0, %2 : f64[1000] {
  ^(%p0: f64[1000], %p1: f64[1000], %p2: f64[4]):
    %0 = sum %p2 {axes = (0,)} : f64[]
    %1 = broadcast %0 {axes = (), shape = (1000,)} : f64[1000]
    %2 = mul %p0, %1 : f64[1000]
    %3 = add %p1, %2 : f64[1000]
    yield %3
  }
  return %3
}"""
    plan = make_plan(parse(text), fails=CALLS_FAIL_NOT)
    check_plan(plan, fails=CALLS_FAIL_NOT)
    assert plan.steps[0].kind == "control"  # its 2000 numbers are gone before others are there
    assert memory(plan, {}).arena == 16000 + 64
