"""Lanes of a plan: what runs side by side, what waits for what, and where memory is taken again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symc.codegen.plan import lanes as laning
from symc.codegen.plan.cells import may_fail
from symc.codegen.plan.check_lanes import check_lanes
from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.hazards import predecessors, sequences
from symc.codegen.plan.lanes import with_lanes
from symc.codegen.plan.overlap import overlaps
from symc.codegen.plan.planner import make_plan
from symc.codegen.plan.text import print_plan
from symc.errors import PlanError
from symc.ir.function import Function, Input, function
from symc.ir.op import lookup
from symc.ir.parse import parse
from symc.ir.plan import Buffer, Plan, Step
from symc.ir.reference import evaluate_function
from symc.ir.size_values import evaluate
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.opt.fusion.fuse import fuse
from tests.codegen.plan.plan_cases import (
    CALLS_FAIL_NOT,
    SIZES,
    Machine,
    donations,
    failing,
    functions,
    make_function,
    planned,
    some_arrays,
)

#: Choices of functions that make one value of two, and a few others.
JOINING = (0, 0, 0, 6, 6, 7, 5, 2)
joined = st.builds(make_function, st.lists(st.tuples(st.sampled_from(JOINING), st.integers(0, 40), st.integers(0, 40)),
                                           min_size=6, max_size=30),
                   st.lists(st.integers(0, 9), max_size=3), st.tuples(st.integers(0, 3), st.integers(0, 3)),
                   st.just((3, 4)), st.booleans())


@contextmanager
def eager() -> Iterator[None]:
    """Every step that could start earlier elsewhere does, however small it is."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FULL", "FULL_PRODUCT"):
            patch.setattr(laning, name, 1 << 60)
        for name, number in dict(WAIT=0.0, EARLIER=1.0, WORTH=1.0, GAIN=0.0).items():
            patch.setattr(laning, name, number)
        yield


def laned(f: Function, lanes: int, packed: bool, donated=frozenset(), fails=may_fail) -> Plan:
    """The plan of a function: ``packed`` for lanes, or for one and then divided."""
    with eager():
        if packed:
            return make_plan(f, donated, fails=fails, lanes=lanes)
        return with_lanes(make_plan(f, donated, fails=fails), lanes, fails=fails)


def lanes_of(plan: Plan) -> int:
    return len({s.lane for s in plan.steps})


def waits(plan: Plan) -> list[tuple[int, int]]:
    return [(w, at) for at, s in enumerate(plan.steps) for w in s.waits]


def without(plan: Plan, wait: tuple[int, int]) -> Plan:
    """The plan without one wait."""
    before, at = wait
    steps = list(plan.steps)
    steps[at] = replace(steps[at], waits=tuple(w for w in steps[at].waits if w != before))
    return replace(plan, steps=tuple(steps))


def run_anyhow(plan: Plan, arrays: list[np.ndarray], choose: random.Random) -> list[np.ndarray]:
    """Run the lanes in any order that the waits allow."""
    machine = Machine(plan, arrays, SIZES)
    queues: dict[int, list[int]] = {}
    for at, step in enumerate(plan.steps):
        queues.setdefault(step.lane, []).append(at)
    done: set[int] = set()
    while any(queues.values()):
        ready = [q for q in queues.values() if q and done.issuperset(plan.steps[q[0]].waits)]
        at = choose.choice(ready).pop(0)
        machine.step(plan, plan.steps[at], machine.bytes)
        done.add(at)
    results = plan.function.body.results
    return [machine.view(machine.bytes[n], v.type) for n, v in zip(plan.results, results, strict=True)]


# --- any function -----------------------------------------------------------------------------------------------------


@pytest.mark.long
@planned
@given(functions | joined, donations, failing, st.integers(2, 4), st.booleans(), st.booleans(), st.randoms())
def test_any_order_that_the_waits_allow_gives_the_values_of_the_reference(f, donated, fails, lanes, packed, fusing,
                                                                          choose):
    plan = laned(fuse(f) if fusing else f, lanes, packed, donated, fails)
    check_plan(plan, fails=fails)
    assert {s.lane for s in plan.steps} <= set(range(lanes))
    arrays = some_arrays(f, SIZES)
    wanted = evaluate_function(f, arrays)
    for _ in range(3):
        for a, b in zip(run_anyhow(plan, arrays, choose), wanted, strict=True):
            assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.long
@planned
@given(functions | joined, donations, failing, st.integers(2, 4), st.booleans())
def test_no_wait_can_be_spared(f, donated, fails, lanes, packed):
    plan = laned(f, lanes, packed, donated, fails)
    for wait in waits(plan):
        with pytest.raises(PlanError, match="without waiting for"):
            check_lanes(without(plan, wait), fails)


def some_functions() -> list[Function]:
    choose = random.Random(5)
    numbers = lambda: (choose.choice(JOINING), choose.randint(0, 40), choose.randint(0, 40))
    return [make_function([numbers() for _ in range(choose.randint(10, 40))], [0, 3], (0, k % 3), (3, 4), k % 2 == 0)
            for k in range(60)]


@pytest.mark.long
def test_the_functions_of_these_tests_have_something_to_run_side_by_side():
    plans = [laned(f, 3, packed) for f in some_functions() for packed in (True, False)]
    several = [p for p in plans if lanes_of(p) > 1]
    assert len(several) > 80 and sum(len(waits(p)) for p in several) > 100
    assert any({2} <= {s.lane for s in p.steps} for p in several)


@pytest.mark.long
def test_a_missing_wait_is_seen_in_the_values():
    """What is proved and what is run agree: without waits, many plans give something else in some order."""
    wrong = 0
    for f in some_functions():
        plan = laned(f, 3, True)
        if waits(plan):
            free = replace(plan, steps=tuple(replace(s, waits=()) for s in plan.steps))
            wanted = evaluate_function(f, some_arrays(f, SIZES))
            found = [run_anyhow(free, some_arrays(f, SIZES), random.Random(k)) for k in range(5)]
            wrong += any(not np.array_equal(a, b, equal_nan=True) for r in found
                         for a, b in zip(r, wanted, strict=True))
    assert wrong > 10


def test_plans_are_made_again_alike():
    for f in some_functions()[:10]:
        assert print_plan(laned(f, 3, True)) == print_plan(laned(f, 3, True))


# --- what may overlap -------------------------------------------------------------------------------------------------


def placed(places: list[tuple[int, int]], steps: tuple[Step, ...] = ()) -> Plan:
    buffers = {f"b{k}": Buffer(f"b{k}", "temp", size) for k, (_, size) in enumerate(places)}
    return Plan(function("f", [], []), buffers, steps, (), offsets={f"b{k}": at for k, (at, _) in enumerate(places)})


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=12))
def test_numbers_overlap_exactly_where_they_share_bytes(places):
    found = overlaps(placed(places))
    for i, (a, n) in enumerate(places):
        share = {f"b{j}" for j, (b, m) in enumerate(places) if max(a, b) < min(a + n, b + m)}
        assert found[f"b{i}"] == share | {f"b{i}"}


@pytest.mark.long
@planned
@given(functions)
def test_what_shares_bytes_for_some_sizes_overlaps(f):
    plan = make_plan(f)
    found = overlaps(plan)
    places = {n: (evaluate(at, SIZES), evaluate(plan.buffers[n].nbytes, SIZES)) for n, at in plan.offsets.items()}
    for n, (a, size) in places.items():
        for m, (b, other) in places.items():
            assert (m in found[n]) or max(a, b) >= min(a + size, b + other)
            assert (m in found[n]) == (n in found[m])


copies = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14)
places = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), min_size=8, max_size=8)


def conflicts(plan: Plan) -> set[tuple[int, int]]:
    """Pairs of steps that touch a byte that one of them writes; byte by byte."""
    def touched(names: tuple[str, ...]) -> set[int]:
        return {at for n in names for at in range(plan.offsets[n], plan.offsets[n] + plan.buffers[n].nbytes)}

    used = [(touched(s.reads), touched(s.writes)) for s in plan.steps]
    return {(a, b) for b, (r, w) in enumerate(used) for a, (q, v) in enumerate(used[:b]) if w & (q | v) or r & v}


def closed(pairs: set[tuple[int, int]], n: int) -> set[tuple[int, int]]:
    """With everything that follows from them."""
    for k in range(n):
        pairs = pairs | {(a, c) for a, b in pairs if b == k for d, c in pairs if d == k}
    return pairs


def copying(places: list[tuple[int, int]], pairs: list[tuple[int, int]], lanes: list[int]) -> Plan:
    value = fresh_input(TensorType("f64", ()))
    steps = [Step("copy", value, (f"b{a}",), (f"b{b}",), lane) for (a, b), lane in zip(pairs, lanes, strict=False)]
    return placed(places, tuple(steps))


@pytest.mark.long
@given(places, copies)
def test_what_comes_before_a_step_is_what_shares_bytes_with_it(places, pairs):
    plan = copying(places, pairs, [0] * len(pairs))
    found = {(b, at) for at, before in enumerate(predecessors(plan, may_fail)) for b in before}
    assert found <= conflicts(plan)
    assert closed(found, len(pairs)) == closed(conflicts(plan), len(pairs))


@pytest.mark.long
@given(places, copies, st.lists(st.integers(0, 2), min_size=14, max_size=14))
def test_lanes_are_refused_exactly_where_bytes_are_used_in_no_order(places, pairs, lanes):
    plan = copying(places, pairs, lanes)
    before = [sorted(a for a, b in conflicts(plan) if b == at) for at in range(len(pairs))]
    plan = replace(plan, steps=laning._waiting(plan.steps, before, lanes[: len(pairs)]))
    check_lanes(plan)
    for wait in waits(plan):
        less = without(plan, wait)
        ordered = {*waits(less), *((a, b) for b in range(len(pairs)) for a in range(b) if lanes[a] == lanes[b])}
        assert not conflicts(less) <= closed(ordered, len(pairs))
        with pytest.raises(PlanError, match="without waiting for"):
            check_lanes(less)


@pytest.mark.long
@planned
@given(functions | joined, st.integers(2, 4))
def test_memory_is_taken_again_only_where_steps_are_in_order_anyway(f, lanes):
    plan = laned(f, lanes, True)
    if lanes_of(plan) > 1:
        apart = predecessors(replace(plan, offsets={}), may_fail)
        assert laning._waiting(plan.steps, apart, [s.lane for s in plan.steps]) == plan.steps


# --- order for other reasons ------------------------------------------------------------------------------------------


FAILING_BESIDE_A_STATE = """
func @f(%x: f64[8], state %w: f64[8]) -> (f64[8]) {
  %0 = sort %x {axis = 0} : f64[8]
  %1 = sort %0 {axis = 0} : f64[8]
  %2 = fused %w : f64[8] {
  ^(%p0: f64[8]):
    %0 = mul %p0, %p0 : f64[8]
    yield %0
  }
  return %1 update (%w = %2)
}
"""


def test_no_state_is_written_over_before_what_may_fail():
    f = parse(FAILING_BESIDE_A_STATE)
    plan = make_plan(f)
    (last,) = [at for at, s in enumerate(plan.steps) if "w" in s.writes]
    with eager():
        careful, bold = with_lanes(plan, 2), with_lanes(plan, 2, fails=CALLS_FAIL_NOT)
    assert waits(bold) == [] and len({s.lane for s in bold.steps}) == 2
    assert [after for _, after in sequences(plan, may_fail)] == [last, last]
    check_plan(careful)
    check_plan(bold, fails=CALLS_FAIL_NOT)
    with pytest.raises(PlanError, match=rf"step {last} .* runs without waiting for step \d .*, which must come first"):
        check_plan(bold)


def test_effects_keep_their_order():
    f = parse("""
func @f(%x: f64[4], %y: f64[4]) -> (f64[4], f64[4]) {
  %0 = sort %x {axis = 0} : f64[4]
  %1 = print %0 {batch = 0, format = "{}", line = "", names = (), serial = 1} : f64[4]
  %2 = sort %y {axis = 0} : f64[4]
  %3 = print %2 {batch = 0, format = "{}", line = "", names = (), serial = 2} : f64[4]
  return %1, %3
}
""")
    plan = make_plan(f, reuse=False)
    assert [s.value.op.name for s in plan.steps] == ["sort", "print", "sort", "print"]
    assert predecessors(plan, may_fail)[-1] == [1, 2]
    apart = replace(plan, steps=(*plan.steps[:2], *(replace(s, lane=1) for s in plan.steps[2:])))
    with pytest.raises(PlanError, match=r"step 3 \(lane 1\) runs without waiting for step 1 \(lane 0\), which must"):
        check_lanes(apart)
    check_lanes(replace(apart, steps=(*apart.steps[:3], replace(apart.steps[3], waits=(1,)))))


def test_what_waits_without_reading_comes_after():
    f = parse("""
func @f(%x: f64[4], %y: f64[4]) -> (f64[4]) {
  %0 = sort %x {axis = 0} : f64[4]
  %1 = sort %0 {axis = 0} : f64[4]
  %2 = again %y, %1 : f64[4]
  %3 = sort %2 {axis = 0} : f64[4]
  return %3
}
""")
    plan = make_plan(f, reuse=False)
    assert plan.steps[-1].reads == ("y",) and predecessors(plan, may_fail)[-1] == [1]
    apart = replace(plan, steps=(*plan.steps[:2], replace(plan.steps[2], lane=1)))
    with pytest.raises(PlanError, match=r"step 2 \(lane 1\) runs without waiting for step 1 \(lane 0\), which must"):
        check_lanes(apart)


# --- when lanes are worth it ------------------------------------------------------------------------------------------


def towers(count: int, depth: int, n) -> Function:
    """Chains of products that meet at the end."""
    leaves = [fresh_input(TensorType("f32", (n, n))) for _ in range(count + 1)]
    ends = []
    for w in leaves[1:]:
        h = leaves[0]
        for _ in range(depth):
            h = lookup("dot")(h, w, contract=((1,), (0,)), batch=((), ()))
        ends.append(h)
    total = ends[0]
    for e in ends[1:]:
        total = total + e
    return function("towers", [(v, Input(f"x{k}", v.type)) for k, v in enumerate(leaves)], [total])


def test_chains_go_on_in_their_lanes_and_wait_where_they_meet():
    plan = make_plan(towers(3, 5, 256), lanes=4)
    check_plan(plan)
    dots = [s for s in plan.steps if s.value.op.name == "dot"]
    assert lanes_of(plan) == 3 and len(waits(plan)) == 2
    for k in range(3):
        assert len({s.lane for s in dots if s.value.operands[1] is plan.function.params[k + 1]}) == 1


def test_what_is_packed_for_one_lane_has_to_wait_more():
    f = towers(4, 6, 256)
    one, divided, packed = make_plan(f), with_lanes(make_plan(f), 4), make_plan(f, lanes=4)
    check_plan(divided)
    assert len(waits(divided)) > len(waits(packed)) == 3 or lanes_of(divided) < lanes_of(packed) == 4
    assert divided.arena == one.arena < packed.arena < make_plan(f, reuse=False).arena


def test_lanes_are_used_where_they_gain_something():
    assert lanes_of(make_plan(towers(4, 1, 8), lanes=4)) == 1  # too little to wait for
    assert lanes_of(make_plan(towers(1, 9, 256), lanes=4)) == 1  # each step needs the one before
    assert lanes_of(make_plan(towers(4, 6, 4096), lanes=4)) == 1  # each step fills the device
    assert lanes_of(make_plan(towers(4, 6, 256), lanes=2)) == 2
    plan = make_plan(towers(4, 6, 4096), lanes=4)
    assert plan.arena == make_plan(towers(4, 6, 4096)).arena  # and costs no memory where it does not


def test_sizes_decide_where_they_are_given():
    from symc.ir.dim import size_name

    plan = make_plan(towers(4, 6, size_name("n")), frozenset(), False)
    assert lanes_of(with_lanes(plan, 4, {"n": 256})) == 4
    assert lanes_of(with_lanes(plan, 4, {"n": 4096})) == 1
    assert with_lanes(plan, 1).steps == plan.steps


def test_symbolic_sizes_are_packed_for_lanes_too():
    from symc.ir.dim import size_name

    with eager():
        plan = make_plan(towers(4, 6, size_name("n")), lanes=4)
    check_plan(plan)
    assert lanes_of(plan) == 4 and len(waits(plan)) == 3


@pytest.mark.long
def test_many_steps_have_few_waits_each():
    plan = make_plan(towers(5, 200, 64), lanes=4)
    before = predecessors(plan, may_fail)
    assert len(plan.steps) > 1000 and sum(map(len, before)) < 3 * len(plan.steps)
    assert lanes_of(plan) == 4 and len(waits(plan)) < 20
    check_lanes(plan)
