"""Sections of a plan: what runs at the same time, what it shares no memory with, and which mistakes are found."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symc.codegen.plan import sections as sectioning
from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.check_sections import check_sections
from symc.codegen.plan.durations import duration, durations
from symc.codegen.plan.planner import make_plan
from symc.codegen.plan.text import print_plan
from symc.errors import PlanError
from symc.ir.dim import size_name
from symc.ir.function import Function, Input, function
from symc.ir.op import all_ops, lookup
from symc.ir.parse import parse
from symc.ir.plan import Plan, Step
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
    planned,
    some_arrays,
)
from tests.codegen.plan.test_lanes import (
    FAILING_BESIDE_A_STATE,
    conflicts,
    copies,
    copying,
    joined,
    places,
    some_functions,
    towers,
)


@contextmanager
def eager(short: int = 1) -> Iterator[None]:
    """Whatever saves a picosecond is a group, whatever memory it takes. ``short``: which steps may come later."""
    with pytest.MonkeyPatch.context() as patch:
        for name, number in dict(LAUNCH=0, SAVED=1, PART=0.0, SHORT=short, MEMORY=1e9).items():
            patch.setattr(sectioning, name, number)
        yield


def sectioned(f: Function, donated=frozenset(), short: int = 1, **options) -> Plan:
    with eager(short):
        return make_plan(f, donated, sections=True, **options)


def ranges(group: tuple[int, ...]) -> list[range]:
    return [range(a, b) for a, b in itertools.pairwise(group)]


def run_at_the_same_time(plan: Plan, arrays: list[np.ndarray], choose: random.Random) -> list[np.ndarray]:
    """Run the steps of sections in turns, in any order."""
    machine = Machine(plan, arrays, SIZES)
    groups = {g[0]: g for g in plan.sections}
    at = 0
    while at < len(plan.steps):
        group = groups.get(at, (at, at + 1))
        queues = [list(r) for r in ranges(group)]
        while any(queues):
            machine.step(plan, plan.steps[choose.choice([q for q in queues if q]).pop(0)], machine.bytes)
        at = group[-1]
    results = plan.function.body.results
    return [machine.view(machine.bytes[n], v.type) for n, v in zip(plan.results, results, strict=True)]


# --- any function -----------------------------------------------------------------------------------------------------


@pytest.mark.long
@planned
@given(functions | joined, donations, failing, st.booleans(), st.sampled_from([1, 101_000, 150_000]), st.randoms())
def test_sections_in_any_order_give_the_values_of_the_reference(f, donated, fails, fusing, short, choose):
    plan = sectioned(fuse(f) if fusing else f, donated, short, fails=fails)
    check_plan(plan, fails=fails)
    arrays = some_arrays(f, SIZES)
    wanted = evaluate_function(f, arrays)
    for found in [Machine(plan, arrays, SIZES).run(), *[run_at_the_same_time(plan, arrays, choose) for _ in range(3)]]:
        for a, b in zip(found, wanted, strict=True):
            assert np.array_equal(a, b, equal_nan=True)


def test_the_functions_of_these_tests_have_something_to_run_at_the_same_time():
    plans = [sectioned(f) for f in some_functions()]
    assert sum(bool(p.sections) for p in plans) > 40
    assert any(len(g) > 3 for p in plans for g in p.sections) and any(len(p.sections) > 1 for p in plans)


def test_plans_with_sections_are_proved_at_the_first_attempt(monkeypatch):
    """None is given up for want of a proof."""
    def check(plan, fails):
        check_sections(plan, fails)
        proved.append(plan)

    proved: list[Plan] = []
    monkeypatch.setattr(sectioning, "check_sections", check)
    plans = [sectioned(f) for f in some_functions()]
    assert [p for p in plans if p.sections] == proved


def test_plans_are_made_again_alike():
    for f in some_functions()[:10]:
        assert print_plan(sectioned(f)) == print_plan(sectioned(f))


def test_one_thread_has_the_plan_that_it_had():
    for f in some_functions()[:20]:
        assert make_plan(f).sections == ()
        assert print_plan(make_plan(f)) == print_plan(make_plan(f, sections=True))  # too short to pay


# --- mistakes ---------------------------------------------------------------------------------------------------------


@given(places, copies, st.lists(st.integers(1, 4), min_size=2, max_size=4), st.integers(0, 3))
def test_sections_are_refused_exactly_where_they_share_bytes(places, pairs, lengths, begin):
    """Byte by byte, for numbers."""
    bounds = [begin]
    for n in lengths:
        bounds.append(bounds[-1] + n)
    if bounds[-1] > len(pairs):
        return
    plan = replace(copying(places, pairs, [0] * len(pairs)), sections=(tuple(bounds),))
    section = {at: k for k, r in enumerate(ranges(tuple(bounds))) for at in r}
    shared = any(a in section and b in section and section[a] != section[b] for a, b in conflicts(plan))
    if shared:
        with pytest.raises(PlanError, match="sections that run at the same time"):
            check_sections(plan, CALLS_FAIL_NOT)
    else:
        check_sections(plan, CALLS_FAIL_NOT)


def mutants(plan: Plan) -> Iterator[Plan]:
    """The plan with a section divided, one that goes on into what follows, or two temps in one place."""
    for k, group in enumerate(plan.sections):
        def changed(new: tuple[int, ...], k: int = k) -> Plan:
            return replace(plan, sections=(*plan.sections[:k], new, *plan.sections[k + 1 :]))

        for at in set(range(*group[:: len(group) - 1])) - set(group):
            yield changed(tuple(sorted([*group, at])))
        following = plan.sections[k + 1][0] if k + 1 < len(plan.sections) else len(plan.steps)
        if group[-1] < following:
            yield changed((*group, group[-1] + 1))
    names = list(plan.offsets)
    for a, b in itertools.pairwise(names):
        if plan.buffers[a].nbytes == plan.buffers[b].nbytes:
            yield replace(plan, offsets={**plan.offsets, a: plan.offsets[b]})


@pytest.mark.long
def test_mutants_that_give_other_values_are_refused():
    """Of thousands of plans with one mistake, each that gives other values in some order is refused."""
    wrong = refused = 0
    for f in some_functions():
        plan, arrays = sectioned(f, fails=CALLS_FAIL_NOT), some_arrays(f, SIZES)
        wanted = evaluate_function(f, arrays)
        for mutant in mutants(plan):
            found = [run_at_the_same_time(mutant, arrays, random.Random(k)) for k in range(3)]
            pairs = [pair for r in found for pair in zip(r, wanted, strict=True)]
            differs = any(not np.array_equal(a, b, equal_nan=True) for a, b in pairs)
            try:
                check_plan(mutant, fails=CALLS_FAIL_NOT)
            except PlanError:
                refused += 1
            else:
                assert not differs, print_plan(mutant)
            wrong += differs
    assert wrong > 100 and refused >= wrong


def test_no_state_is_written_over_beside_what_may_fail():
    f = parse(FAILING_BESIDE_A_STATE)
    plan = make_plan(f)
    (last,) = [at for at, s in enumerate(plan.steps) if "w" in s.writes]
    apart = replace(plan, sections=((0, last, last + 1),))
    check_sections(apart, CALLS_FAIL_NOT)
    with pytest.raises(PlanError, match=f"step 0 must come before step {last}"):
        check_plan(apart)
    assert not sectioned(f).sections and sectioned(f, fails=CALLS_FAIL_NOT).sections


EFFECTS = """
func @f(%x: f64[4], %y: f64[4]) -> (f64[4], f64[4]) {
  %0 = sort %x {axis = 0} : f64[4]
  %1 = print %0 {batch = 0, format = "{}", line = "", names = (), serial = 1} : f64[4]
  %2 = sort %y {axis = 0} : f64[4]
  %3 = print %2 {batch = 0, format = "{}", line = "", names = (), serial = 2} : f64[4]
  return %1, %3
}
"""


def test_effects_are_in_no_sections():
    f = parse(EFFECTS)
    plan = make_plan(f, reuse=False)
    assert [s.value.op.name for s in plan.steps] == ["sort", "print", "sort", "print"]
    with pytest.raises(PlanError, match="step 1 must come before step 3"):
        check_sections(replace(plan, sections=((0, 2, 4),)))
    plan = sectioned(f, reuse=False)
    inside = {plan.steps[at].value.op.name for g in plan.sections for at in range(g[0], g[-1])}
    assert "print" not in inside


@pytest.mark.parametrize(
    "sections", [((0,),), ((0, 2),), ((0, 0, 1),), ((2, 1, 0),), ((0, 1, 9),), ((0, 1, 2), (1, 2, 3))])
def test_sections_are_stretches_of_steps(sections):
    plan = make_plan(towers(3, 1, 8))
    with pytest.raises(PlanError, match="are no sections of its"):
        check_plan(replace(plan, sections=sections))


# --- which steps ------------------------------------------------------------------------------------------------------


ATTRIBUTES = {"qr": {"mode": "reduced"}, "eigh": {"lower": True}, "svd": {"full": False}}


def factorized(op: str, count: int, n) -> Function:
    leaves = [fresh_input(TensorType("f64", (n, n))) for _ in range(count)]
    found = [lookup(op)(v, **ATTRIBUTES.get(op, {})) for v in leaves]
    results = [lookup("get")(v, index=0) if len(v.types) > 1 else v for v in found]
    return function("f", [(v, Input(f"x{k}", v.type)) for k, v in enumerate(leaves)], results)


@pytest.mark.parametrize("op", ["qr", "eigh", "svd", "cholesky", "lu_factor"])
def test_factorizations_run_at_the_same_time(op):
    plan = make_plan(factorized(op, 3, 300), sections=True)
    (group,) = plan.sections
    assert [[plan.steps[at].value.op.name for at in r] for r in ranges(group)] == [[op], [op], [op]]
    check_plan(plan)
    assert not make_plan(factorized(op, 3, 20), sections=True).sections  # too short


def test_chains_are_sections():
    plan = make_plan(towers(2, 3, 96), sections=True)
    (group,) = plan.sections
    assert [len(r) for r in ranges(group)] == [3, 3]
    for r in ranges(group):
        written = {n for at in r for n in plan.steps[at].writes}
        assert all(not written & {*plan.steps[at].reads} for other in ranges(group) if other != r for at in other)
    check_plan(plan)


JOINED = """
func @f(%x: f32[96, 96], %u: f32[96, 96], %v: f32[96, 96], %w: f32[96, 96]) -> (f32[96, 96], f32[96, 96]) {
  %0 = dot %x, %u {contract = ((1,), (0,))} : f32[96, 96]
  %1 = dot %0, %u {contract = ((1,), (0,))} : f32[96, 96]
  %2 = dot %x, %v {contract = ((1,), (0,))} : f32[96, 96]
  %3 = dot %2, %v {contract = ((1,), (0,))} : f32[96, 96]
  %4 = fused %1, %3 : f32[96, 96] {
  ^(%p0: f32[96, 96], %p1: f32[96, 96]):
    %0 = mul %p0, %p1 : f32[96, 96]
    yield %0
  }
  %5 = dot %x, %w {contract = ((1,), (0,))} : f32[96, 96]
  %6 = dot %5, %w {contract = ((1,), (0,))} : f32[96, 96]
  return %4, %6
}
"""


def test_what_joins_chains_comes_after_them():
    f = parse(JOINED)
    names = [s.value.op.name for s in make_plan(f, sections=True).steps]
    assert names == ["dot"] * 6 + ["fused"] and make_plan(f, sections=True).sections == ((0, 2, 4, 6),)
    assert [s.value.op.name for s in make_plan(f).steps] != names  # as memory would have it


def test_large_products_are_divided_and_not_grouped():
    assert not make_plan(towers(2, 2, 2048), sections=True).sections


def test_more_memory_than_is_worth_it(monkeypatch):
    """Fewer sections take less; where two take too much, there are none."""
    f = fuse(towers(6, 2, 96))
    plans = []
    for times in (9.0, 1.25, 1.1, 1.0):
        monkeypatch.setattr(sectioning, "MEMORY", times)
        plans.append(make_plan(f, sections=True))
        check_plan(plans[-1])
    assert [len(g) - 1 for p in plans for g in p.sections] == [6, 4, 2]
    assert [p.arena for p in plans] == sorted({p.arena for p in plans}, reverse=True)
    assert print_plan(plans[-1]) == print_plan(make_plan(f))


def test_a_section_packs_its_temps_like_a_plan():
    """A chain of any length takes two temps, in each section."""
    arenas = {make_plan(towers(2, depth, 96), sections=True).arena for depth in (3, 5, 9)}
    assert len(arenas) == 1


def test_sizes_that_are_not_known_are_decided_by_the_call():
    plan = make_plan(factorized("qr", 2, size_name("n")), sections=True)
    (group,) = plan.sections
    found = durations(plan, group)
    for n, pays in ((10, False), (400, True)):
        assert (evaluate(found.together, {"n": n}) < evaluate(found.alone, {"n": n})) == pays


@pytest.mark.parametrize("op", [op for op in all_ops() if op.samples is not None], ids=str)
def test_every_op_has_a_duration(op):
    for arrays, attrs in itertools.islice(op.samples(), 3):
        v = op(*[fresh_input(TensorType(a.dtype, a.shape)) for a in map(np.asarray, arrays)], **attrs)
        assert duration(Step("call", v, (), ())) > 0


LOOP = """
func @f(%x: f64[n]) -> (f64[]) {
  %0 = fused %x : f64[] {
  ^(%p0: f64[n]):
    %0, %1 = loop 0.0:f64[], %p0 {carry = 1, length = n} : f64[], f64[n] {
    ^(%p0: i64[], %p1: f64[], %p2: f64[n]):
      %0 = load %p2, %p0 : f64[]
      %1 = sin %p1 : f64[]
      %2 = add %0, %1 : f64[]
      yield %2, %2
    }
    yield %0
  }
  return %0
}
"""


def test_a_loop_in_a_kernel_takes_as_long_as_it_has_steps():
    (step,) = make_plan(parse(LOOP), sections=True).steps
    short, long = (evaluate(duration(step), {"n": n}) for n in (10, 10_000))
    assert short < long and evaluate(duration(step), {"n": 20_000}) > 1.9 * long


def test_many_sections_are_put_together():
    plan = make_plan(factorized("qr", 40, 300), sections=True)
    (group,) = plan.sections
    assert len(group) - 1 == sectioning.MOST[0] and group[-1] - group[0] == 40
    check_plan(plan)


def test_the_text_says_what_runs_at_the_same_time():
    lines = print_plan(make_plan(factorized("qr", 2, 300), sections=True)).splitlines()
    text = [line.strip().partition(" {mode")[0] for line in lines]
    shown = [line for line in text if not line.startswith(("alloc", "free", "//", "arena", "plan", "return"))]
    assert shown == ["sections {", "[0] %b0, %b1 <- call qr %x0", "} and {", "[0] %b2, %b3 <- call qr %x1", "}", "}"]
