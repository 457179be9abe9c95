"""Plans: what is written over what, in which order; running them gives the reference's values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symc.codegen.plan.cells import work_of
from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.inplace import inplace_pairs, shared_pairs
from symc.codegen.plan.memory import memory
from symc.codegen.plan.order import TOLERATED, order, peak
from symc.codegen.plan.planner import make_plan
from symc.codegen.plan.text import print_plan
from symc.errors import PlanError
from symc.ir.dim import size_name
from symc.ir.function import Function, Input, function
from symc.ir.op import lookup
from symc.ir.ops.kernel import fused
from symc.ir.parse import parse
from symc.ir.reference import evaluate_function
from symc.ir.types import TensorType
from symc.ir.value import Region, Value, fresh_input, param
from symc.opt.fusion.fuse import fuse
from tests.codegen.plan.plan_cases import (
    CALLS_FAIL_NOT,
    SIZES,
    SORTS_FAIL,
    Machine,
    donations,
    failing,
    functions,
    planned,
    some_arrays,
)

F64 = TensorType("f64", (10,))


# --- what may be written over what ------------------------------------------------------------------------------------


def kernel(params: list[TensorType], build, *operands: Value) -> Value:
    results = build(*[param(k, t) for k, t in enumerate(params)])
    return fused(*operands, regions=[Region(params, results if isinstance(results, list) else [results])])


def pairs_of(params: list[TensorType], build) -> set[tuple[int, int]]:
    v = kernel(params, build, *[fresh_input(t) for t in params])
    return set(inplace_pairs(v)) - set(shared_pairs(v.regions[0]))


def shared_of(params: list[TensorType], build) -> set[tuple[int, int]]:
    return set(shared_pairs(kernel(params, build, *[fresh_input(t) for t in params]).regions[0]))


def test_flat_kernels_write_over_operands_they_read_at_the_same_index():
    scalar = TensorType("f64")
    row = TensorType("f64", (4,))
    grid = TensorType("f64", (10, 4))
    assert pairs_of([F64, F64], lambda a, b: a * b + 1) == {(0, 0), (1, 0)}
    assert pairs_of([F64, scalar], lambda a, s: a * lookup("broadcast")(s, axes=(), shape=(10,))) == {(0, 0)}
    assert pairs_of([F64, F64], lambda a, b: [a + b, -b]) == {(0, 0)}  # -b may be computed after a + b is written
    assert pairs_of([F64], lambda a: lookup("cast")(a, dtype=np.dtype("f4"))) == set()
    # operands read elsewhere than at the element written, or in another loop, stay whole
    assert pairs_of([row], lambda a: lookup("slice")(a, start=(3,), size=(4,), step=(-1,)) + a) == set()
    assert pairs_of([grid], lambda a: [a + 1, lookup("sum")(a, axes=(0,))]) == set()
    assert pairs_of([F64], lambda a: [a + 1, a]) == set()


def test_kernels_of_one_loop_write_over_what_several_results_depend_on():
    scalar, row, grid = TensorType("f64"), TensorType("f64", (4,)), TensorType("f64", (10, 4))
    assert shared_of([F64, F64], lambda a, b: [a + b, -b]) == {(0, 1), (1, 0), (1, 1)}
    assert shared_of([F64, scalar], lambda a, s: [a * lookup("broadcast")(s, axes=(), shape=(10,)), a]) == {
        (0, 0), (0, 1)}
    assert shared_of([F64, F64], lambda a, b: a * b) == set()  # one result: it need not know
    assert shared_of([grid], lambda a: [a + 1, lookup("sum")(a, axes=(0,))]) == set()
    assert shared_of([row], lambda a: [lookup("slice")(a, start=(3,), size=(4,), step=(-1,)), a + 1]) == set()
    assert shared_of([F64, row], lambda a, b: [a + 1, b + 1]) == set()  # two loops


def test_what_dies_is_written_over_only_where_every_reading_allows_it():
    x = fresh_input(F64)
    a = lookup("sort")(x, axis=0)
    flip = lookup("reshape")(lookup("reshape")(a, shape=(2, 5)), shape=(10,))
    swap = kernel([F64, F64], lambda p, q: p * lookup("slice")(q, start=(9,), size=(10,), step=(-1,)), a, flip)
    f = function("f", [(x, Input("x", F64))], [lookup("sort")(swap, axis=0)])
    loose = lambda v: [(0, 0)] if v.op.name == "fused" else []
    plan = make_plan(f, inplace=loose)
    launch = next(s for s in plan.steps if s.kind == "launch")
    assert launch.reads[0] == launch.reads[1] and launch.writes[0] not in launch.reads
    check_plan(plan, inplace=loose)


def state_function(body: str, outs: str = "", ret: str = "") -> Function:
    return parse(f"func @f(%x: f64[n], state %w: f64[n]) -> ({outs}) {{\n{body}\n  return {ret} update (%w = %u)\n}}")


def test_a_state_is_written_over_when_its_readers_are_done():
    f = state_function("""  %u = add %w, %x : f64[n]
  %1 = mul %w, %x : f64[n]
  %2 = sum %1 {axes = (0,)} : f64[]""", "f64[]", "%2")
    plan = make_plan(f, fails=CALLS_FAIL_NOT)
    assert plan.results[1] == "w" and plan.steps[-1].writes == ("w",)
    check_plan(plan, fails=CALLS_FAIL_NOT)
    assert "// in place, donated" in print_plan(plan)


def test_a_state_is_not_written_before_the_last_step_that_may_fail():
    failing = """  %u = add %w, %x : f64[n]
  %1 = sort %u {axis = 0} : f64[n]"""
    plan = make_plan(state_function(failing, "f64[n]", "%1"), fails=SORTS_FAIL)
    assert plan.results[1] != "w"  # the sort needs the new value and may raise
    check_plan(plan, fails=SORTS_FAIL)
    late = """  %u = add %w, %x : f64[n]
  %1 = sort %x {axis = 0} : f64[n]"""
    plan = make_plan(state_function(late, "f64[n]", "%1"), fails=SORTS_FAIL)
    assert [s.value.op.name for s in plan.steps] == ["sort", "add"] and plan.results[1] == "w"


def test_an_old_state_that_is_returned_is_copied_first():
    f = state_function("  %u = add %w, %x : f64[n]", "f64[n], f64[n]", "%w, %u")
    plan = make_plan(f, fails=CALLS_FAIL_NOT)
    check_plan(plan, fails=CALLS_FAIL_NOT)
    assert plan.results[2] == "w"  # the output and the update share a value; the state is copied into
    assert len(set(plan.results)) == 3 and [s.kind for s in plan.steps].count("copy") == 2


def test_states_that_change_places_get_copies():
    f = parse("""func @f(state %a: f64[n], state %b: f64[n]) -> () {
  return update (%a = %b, %b = %a)
}""")
    plan = make_plan(f)
    check_plan(plan)
    assert len(plan.steps) == 2 and len(set(plan.results)) == 2
    machine = Machine(plan, [np.zeros(3), np.ones(3)], {"n": 3})
    new = machine.run()
    assert new[0].tolist() == [1] * 3 and new[1].tolist() == [0] * 3


def test_nothing_returned_aliases_an_input_a_constant_or_another_output():
    f = parse("""func @f(%x: f64[6]) -> (f64[6], f64[2, 3], f64[6], f64[], f64[6]) {
  %0 = reshape %x {shape = (2, 3)} : f64[2, 3]
  %1 = neg %x : f64[6]
  return %x, %0, %1, 2.5:f64[], %1
}""")
    plan = make_plan(f)
    check_plan(plan)
    assert all(plan.buffers[r].kind == "result" for r in plan.results) and len(set(plan.results)) == 5
    for a, want in zip(Machine(plan, [np.arange(6.0)], {}).run(), evaluate_function(f, [np.arange(6.0)]), strict=True):
        assert np.array_equal(a, want) and a.shape == want.shape


def test_donated_inputs_are_scratch_but_never_returned():
    f = parse("""func @f(%x: f64[n], %y: f64[n]) -> (f64[n]) {
  %0 = neg %x : f64[n]
  %1 = sort %0 {axis = 0} : f64[n]
  return %1
}""")
    plan = make_plan(f, donated=frozenset({0}))
    check_plan(plan)
    assert plan.steps[0].writes == ("x",) and plan.buffers[plan.results[0]].kind == "result"
    assert "donated %x: f64[n]" in print_plan(plan) and "// in place, donated" in print_plan(plan)
    assert make_plan(f).steps[0].writes != ("x",)
    with pytest.raises(PlanError, match="writes over the input %x"):
        check_plan(replace(plan, donated=frozenset()))


def test_a_temp_uses_the_memory_of_a_result_that_is_not_written_yet():
    f = parse("""func @f(%x: f64[n]) -> (f64[n]) {
  %0 = sort %x {axis = 0} : f64[n]
  %1 = cumsum %0 {axis = 0} : f64[n]
  %2 = sort %1 {axis = 0} : f64[n]
  return %2
}""")
    plan = make_plan(f)
    check_plan(plan)
    report = memory(plan, {"n": 100})
    assert report.lower_bound == 2400 and report.arena == 832 and plan.steps[0].writes == plan.results


def test_of_several_temps_the_one_that_leaves_least_idle_is_in_the_result():
    f = parse("""func @f(%x: f64[n]) -> (f64[n]) {
  %0 = cumsum %x {axis = 0} : f64[n]
  %1 = cumprod %x {axis = 0} : f64[n]
  %2 = sort %1 {axis = 0} : f64[n]
  %3 = sort %2 {axis = 0} : f64[n]
  %4 = concat %0, %3 {axis = 0} : f64[2*n]
  %5 = slice %4 {size = (n,), start = (n,)} : f64[n]
  return %5
}""")
    plan = make_plan(f)
    check_plan(plan)
    report = memory(plan, {"n": 64})
    assert report == report.lower_bound == 8 * 64 * 5


def test_buffer_names_do_not_collide_with_inputs():
    plan = make_plan(parse("""func @f(%b0: f64[n], %c0: f64[n]) -> (f64[n]) {
  %0 = sub %b0, %c0 : f64[n]
  return %0
}"""))
    assert list(plan.buffers) == ["b0", "c0", "b1"]


# --- order ------------------------------------------------------------------------------------------------------------

BIG_THEN_SMALL = """func @f(%x: f64[n]) -> (f64[], f64[], f64[]) {
  %0 = sort %x {axis = 0} : f64[n]
  %1 = cumsum %x {axis = 0} : f64[n]
  %2 = cumprod %x {axis = 0} : f64[n]
  %3 = sum %0 {axes = (0,)} : f64[]
  %4 = sum %1 {axes = (0,)} : f64[]
  %5 = sum %2 {axes = (0,)} : f64[]
  return %3, %4, %5
}"""


def test_order_frees_before_it_allocates():
    assert memory(make_plan(parse(BIG_THEN_SMALL)), {"n": 1000}).arena == 8000


def interleaved(width: int) -> Function:
    """Half of the operands of a sum are large and become small; program order makes every large one first."""
    x = fresh_input(TensorType("f64", (size_name("n"),)))
    large = [lookup("sort")(x + k, axis=0) for k in range(width)]
    joined = lookup("concat")(*large[:1], x, axis=0)
    total = lookup("sum")(joined, axes=(0,))
    for v in large:
        total = total + lookup("sum")(v, axes=(0,)) * lookup("max")(large[-1], axes=(0,))
    return function("f", [(x, Input("x", x.type))], [total])


@pytest.mark.parametrize("width", [2, 30])
def test_order_is_no_worse_than_the_program(width):
    w = work_of(interleaved(width), inplace_pairs)
    assert peak(w, order(w)) <= peak(w, range(len(w.values)))


def all_orders(w, done: list[int]):
    if len(done) == len(w.values):
        yield list(done)
    for s in range(len(w.values)):
        if s not in done and all(w.maker[c] < 0 or w.maker[c] in done for c in w.reads[s]):
            yield from all_orders(w, [*done, s])


# --- random functions -------------------------------------------------------------------------------------------------


@pytest.mark.long
@planned
@given(functions, donations, failing, st.booleans(), st.booleans())
def test_plans_compute_the_reference(f, donated, fails, reuse, fusing):
    arrays = some_arrays(f, SIZES)
    before = [a.tobytes() for a in arrays]
    want = evaluate_function(f, arrays)
    g = fuse(f) if fusing else f
    plan = make_plan(g, donated, reuse, fails=fails)
    check_plan(plan, fails=fails)
    machine = Machine(plan, arrays, SIZES)
    for a, b in zip(machine.run(), want, strict=True):
        assert np.array_equal(a, b, equal_nan=True)
    for k, (name, i) in enumerate(zip("x y b0 w z".split(), f.inputs, strict=True)):
        kept = k not in donated if i.role == "arg" else name not in plan.results
        assert not kept or machine.bytes[name].tobytes() == before[k]


@pytest.mark.long
@planned
@given(functions, failing, donations)
def test_order_of_random_functions(f, fails, donated):
    w = work_of(f, inplace_pairs, fails, donated)
    for found in (order(w), order(w, exact=0)):
        assert sorted(found) == list(range(len(w.values)))
        at = {s: k for k, s in enumerate(found)}
        assert all(at[w.maker[c]] < at[s] for s, reads in enumerate(w.reads) for c in reads if w.maker[c] >= 0)
        assert peak(w, found) <= peak(w, range(len(w.values)))
    if len(w.values) <= 6:
        least = min((peak(w, s) for s in all_orders(w, [])), default=0)
        most = least + least // TOLERATED if w.targets else least  # states are written in place where that costs little
        assert least <= peak(w, order(w)) <= most


