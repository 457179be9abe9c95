"""The checker of plans sees planted mistakes, and what it lets pass is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.planner import make_plan
from symc.codegen.plan.text import print_plan
from symc.errors import PlanError
from symc.ir.dim import size_name
from symc.ir.function import Function
from symc.ir.parse import parse
from symc.ir.plan import Plan
from symc.ir.reference import evaluate_function
from symc.opt.fusion.fuse import fuse
from tests.codegen.plan.plan_cases import CALLS_FAIL_NOT, SIZES, SORTS_FAIL, Machine, functions, some_arrays


def mutate(plan: Plan, kind: int, i: int, j: int) -> Plan:
    """A plan with one thing changed."""
    steps, names = list(plan.steps), list(plan.buffers)
    if kind == 0 and len(steps) > 1:
        a, b = i % len(steps), j % len(steps)
        steps[a], steps[b] = steps[b], steps[a]
    elif kind == 1 and steps:
        del steps[i % len(steps)]
    elif kind in (2, 3) and steps:
        k = i % len(steps)
        field = "reads" if kind == 2 else "writes"
        old = getattr(steps[k], field)
        if old:
            at = j % len(old)
            new = (*old[:at], names[(i + j) % len(names)], *old[at + 1:])
            steps[k] = replace(steps[k], reads=new) if kind == 2 else replace(steps[k], writes=new)
    elif kind == 4 and plan.results:
        at = i % len(plan.results)
        return replace(plan, results=(*plan.results[:at], names[j % len(names)], *plan.results[at + 1:]))
    elif kind == 5 and plan.offsets:
        temps = list(plan.offsets)
        return replace(plan, offsets={**plan.offsets, temps[i % len(temps)]: plan.offsets[temps[j % len(temps)]]})
    elif kind == 6:
        return replace(plan, arena=plan.arena - 64)
    return replace(plan, steps=tuple(steps))


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(functions, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=7, max_size=7), st.booleans())
def test_a_changed_plan_is_refused_or_still_right(f, places, fusing):
    """Every kind of change to one plan."""
    whole = make_plan(fuse(f) if fusing else f, fails=CALLS_FAIL_NOT)
    for kind, (i, j) in enumerate(places):
        refused_or_right(mutate(whole, kind, i, j), f)


def refused_or_right(plan: Plan, f: Function) -> None:
    try:
        check_plan(plan, fails=CALLS_FAIL_NOT)
    except PlanError:
        return
    arrays = some_arrays(f, SIZES)
    machine = Machine(plan, arrays, SIZES)
    for a, b in zip(machine.run(), evaluate_function(f, arrays), strict=True):
        assert np.array_equal(a, b, equal_nan=True)
    for name, k in (("x", 0), ("y", 1), ("z", 4)):
        assert machine.bytes[name].tobytes() == arrays[k].tobytes()


# --- planted mistakes -------------------------------------------------------------------------------------------------

TWO_TEMPS = """func @f(%x: f64[n], %y: f64[n]) -> (f64[], f64[n]) {
  %0 = sort %x {axis = 0} : f64[n]
  %1 = sort %y {axis = 0} : f64[n]
  %2 = dot %0, %1 {contract = ((0,), (0,))} : f64[]
  return %2, %x
}"""


def good(text: str = TWO_TEMPS) -> Plan:
    plan = make_plan(parse(text), fails=CALLS_FAIL_NOT)
    check_plan(plan, fails=CALLS_FAIL_NOT)
    return plan


def step_of(plan: Plan, op: str) -> int:
    return next(k for k, s in enumerate(plan.steps) if s.value.op.name == op)


def refused(plan: Plan, message: str, **options) -> None:
    with pytest.raises(PlanError, match=message):
        check_plan(plan, **{"fails": CALLS_FAIL_NOT, **options})


def with_step(plan: Plan, k: int, **changes) -> Plan:
    return replace(plan, steps=(*plan.steps[:k], replace(plan.steps[k], **changes), *plan.steps[k + 1:]))


def test_swapped_steps():
    plan = distinct_temps()
    refused(replace(plan, steps=plan.steps[::-1]), "which holds nothing")


def test_wrong_operand():
    plan = good()
    k = step_of(plan, "dot")
    refused(with_step(plan, k, reads=plan.steps[k].reads[::-1]), "reads operand 0, sort : .* which holds sort")


def test_dropped_copy():
    plan = good()
    refused(replace(plan, steps=tuple(s for s in plan.steps if s.kind != "copy")), "result 1, param .* is not in %b")


def test_result_in_an_input():
    plan = good()
    refused(replace(plan, results=(plan.results[0], "x")), "returned in %x, a input buffer")


def test_shared_results():
    f = parse("func @f(%x: f64[n]) -> (f64[n], f64[n]) {\n  %0 = neg %x : f64[n]\n  return %0, %0\n}")
    plan = make_plan(f)
    refused(replace(plan, results=(plan.results[0],) * 2), "two results share a buffer")


def distinct_temps() -> Plan:
    plan = good("""func @f(%x: f64[n], %y: f64[n]) -> (f64[]) {
  %0 = sort %x {axis = 0} : f64[n]
  %1 = sort %y {axis = 0} : f64[n]
  %2 = dot %0, %1 {contract = ((0,), (0,))} : f64[]
  return %2
}""")
    assert len(plan.offsets) == 2
    return plan


def test_aliased_temps():
    plan = distinct_temps()
    refused(replace(plan, offsets=dict.fromkeys(plan.offsets, 0)), "not known to lie apart")
    apart = dict(zip(plan.offsets, [0, 64 * size_name("n") - 64], strict=True))
    refused(replace(plan, offsets=apart, arena=10**6 * size_name("n")), "not known to lie apart")


def test_misplaced_temps():
    plan = distinct_temps()
    refused(replace(plan, arena=plan.arena - 64), "not known to end inside the arena")
    refused(replace(plan, offsets={n: o + 8 for n, o in plan.offsets.items()}, arena=plan.arena * 2), "multiple of 64")
    refused(replace(plan, offsets={}), "has no offset")


def test_too_small_a_buffer():
    plan = distinct_temps()
    small = {n: replace(b, nbytes=8) if b.kind == "temp" else b for n, b in plan.buffers.items()}
    refused(replace(plan, buffers=small), "writes 8\\*n bytes into %b. of 8 bytes")


def test_overwritten_input_and_unknown_buffer():
    plan = distinct_temps()
    k = step_of(plan, "dot")
    refused(with_step(plan, 0, writes=("y",)), "writes over the input %y")
    refused(with_step(plan, k, writes=("nowhere",)), "is no buffer")
    refused(with_step(plan, k, reads=plan.steps[k].reads[:1]), "1 operands, 1 results")


def test_in_place_where_not_admitted():
    plan = good("""func @f(%x: f64[n]) -> (f64[n]) {
  %0 = sort %x {axis = 0} : f64[n]
  %1 = cumsum %0 {axis = 0} : f64[n]
  %2 = sort %1 {axis = 0} : f64[n]
  return %2
}""")
    refused(with_step(plan, 1, writes=plan.steps[1].reads), "writes result 0 over operand 0")


STATES = """func @f(%x: f64[n], state %v: f64[n], state %w: f64[n]) -> (f64[n]) {
  %0 = add %w, %x : f64[n]
  %1 = mul %w, %x : f64[n]
  return %1 update (%w = %0)
}"""


def test_states_written_wrongly():
    plan = good(STATES)
    assert plan.results[1] == "w"
    add, mul = step_of(plan, "add"), step_of(plan, "mul")
    refused(replace(plan, steps=(plan.steps[add], plan.steps[mul])), "which holds add")  # the old value is gone
    refused(with_step(plan, mul, writes=("w",)), "not its new value")
    refused(with_step(plan, add, writes=("v",)), "writes over the state %v, but not its new value")
    refused(plan, "may fail while it writes over the state %w", fails=lambda v: v.op.name == "add")
    late = good("""func @f(%x: f64[n], state %w: f64[n]) -> (f64[n]) {
  %0 = add %w, %x : f64[n]
  %1 = sort %x {axis = 0} : f64[n]
  return %1 update (%w = %0)
}""")
    early = replace(late, steps=tuple(sorted(late.steps, key=lambda s: s.value.op.name)))
    refused(early, "may fail after step 0 wrote over a state", fails=SORTS_FAIL)


def test_a_copy_onto_itself():
    plan = good()
    k = next(k for k, s in enumerate(plan.steps) if s.kind == "copy")
    refused(with_step(plan, k, writes=plan.steps[k].reads), "copies a buffer onto itself")


def test_lanes_must_wait_for_each_other():
    plan = distinct_temps()
    first, second, last = plan.steps
    apart = replace(plan, steps=(first, replace(second, lane=1), last))
    refused(apart, "uses %b. without waiting for step 1 \\(lane 1\\)")
    joined = replace(plan, steps=(first, replace(second, lane=1), replace(last, waits=(1,))))
    check_plan(joined)
    assert "  [0] wait step 1\n" in print_plan(joined) and "[1] %b1 <- call sort %y" in print_plan(joined)
    through = replace(plan, steps=(first, replace(second, lane=1, waits=(0,)), replace(last, lane=2, waits=(1,))))
    check_plan(through)  # step 0 happens before step 1, which lane 2 waits for
    refused(replace(plan, steps=(replace(first, waits=(2,)), second, last)), "not an earlier one")


def test_messages_name_the_step_and_say_whose_mistake_it_is():
    plan = good()
    with pytest.raises(PlanError) as e:
        check_plan(replace(plan, steps=plan.steps[::-1]))
    assert "plan @f: step" in str(e.value) and "bug in symc" in str(e.value)


