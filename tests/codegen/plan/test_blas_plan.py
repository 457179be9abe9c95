"""Plans with products that add: the checker sees planted mistakes; what kernels may write over what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import symc as sc
from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.inplace import inplace_pairs
from symc.codegen.plan.planner import make_plan
from symc.errors import PlanError
from symc.ir.parse import parse
from symc.ir.plan import Plan
from symc.opt import optimize

STEP = """func @f(%x: f64[k, n], state %w: f64[n, n]) -> (f64[k, n]) {
  %0 = dot %x, %w : f64[k, n]
  %1 = gemm %x, %x, %w {alpha = -0.1, contract = ((0,), (0,))} : f64[n, n]
  return %0 update (%w = %1)
}"""


def good(text: str = STEP) -> Plan:
    plan = make_plan(parse(text))
    check_plan(plan)
    return plan


def refused(plan: Plan, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        check_plan(plan)


def changed(plan: Plan, k: int, **changes) -> Plan:
    return replace(plan, steps=(*plan.steps[:k], replace(plan.steps[k], **changes), *plan.steps[k + 1:]))


def test_a_product_that_adds_over_a_state_comes_after_every_reading():
    plan = good()
    assert [s.value.op.name for s in plan.steps] == ["dot", "gemm"] and plan.steps[1].writes == ("w",)
    refused(replace(plan, steps=plan.steps[::-1]), "reads operand 1, param .* from %w, which holds gemm")


def test_a_product_is_written_over_what_it_adds_to_and_nothing_else():
    plan = good("""func @f(%x: f64[n, n], %y: f64[n, n]) -> (f64[n, n]) {
  %0 = sort %x {axis = 0} : f64[n, n]
  %1 = sort %y {axis = 0} : f64[n, n]
  %2 = gemm %0, %1, %y : f64[n, n]
  %3 = sort %2 {axis = 1} : f64[n, n]
  return %3
}""")
    k = next(k for k, s in enumerate(plan.steps) if s.value.op.name == "gemm")
    a, b, _ = plan.steps[k].reads
    refused(changed(plan, k, writes=(a,)), "writes result 0 over operand 0")
    refused(changed(plan, k, writes=(b,)), "writes result 0 over operand 1")
    refused(changed(plan, k, writes=("y",)), "writes over the input %y")
    refused(changed(plan, k, reads=(a, b, "x")), "reads operand 2, param .* from %x")


def test_a_product_of_what_it_adds_to_has_memory_of_its_own():
    plan = good("""func @f(state %w: f64[n, n]) -> () {
  %0 = gemm %w, %w, %w : f64[n, n]
  return update (%w = %0)
}""")
    assert plan.steps[0].writes != ("w",)
    refused(replace(changed(plan, 0, writes=("w",)), results=("w",)), "writes result 0 over operand 0")


def test_a_plan_with_gemms_in_loops():
    """What a body writes over its carry, it adds to nothing else."""
    f = parse("""func @f(%h: f64[n, n], %w: f64[n, n], %v: f64[n, n]) -> (f64[n, n]) {
  %0 = scan %h, %w, %v {carry = 1, xs = 0, length = 5} : f64[n, n] {
  ^(%h: f64[n, n], %w: f64[n, n], %v: f64[n, n]):
    %0 = gemm %w, %v, %h {alpha = 2.0, beta = 0.5} : f64[n, n]
    yield %0
  }
  return %0
}""")
    plan = make_plan(f)
    check_plan(plan)
    (k,) = [k for k, s in enumerate(plan.steps) if s.kind == "control"]
    (body,) = plan.steps[k].bodies
    (step,) = body.steps
    assert step.reads[2] == step.writes[0]
    wrong = changed(body, 0, reads=(step.reads[2], *step.reads[1:]))
    refused(changed(plan, k, bodies=(wrong,)), "reads operand 0")


# --- kernels: what is read at one index only may be written over ------------------------------------------------------


def pairs(text: str) -> tuple:
    f = optimize(parse(text), "fuse").function
    (v,) = [v for v in f.values() if v.op.name == "fused"]
    return tuple((v.operands[k].attrs["index"], r) for k, r in inplace_pairs(v))


def test_other_operands_may_be_repeated():
    assert pairs("""func @f(%x: f64[m, n], %b: f64[n], %c: f64[m]) -> (f64[m, n]) {
  %0 = broadcast %b {axes = (1,), shape = (m, n)} : f64[m, n]
  %1 = broadcast %c {axes = (0,), shape = (m, n)} : f64[m, n]
  %2 = mul %0, %1 : f64[m, n]
  %3 = sub %x, %2 : f64[m, n]
  return %3
}""") == ((0, 0),)


def test_what_is_read_at_other_indices_may_not():
    assert pairs("""func @f(%x: f64[n, n], %y: f64[n, n]) -> (f64[n, n]) {
  %0 = transpose %x {perm = (1, 0)} : f64[n, n]
  %1 = add %x, %0 : f64[n, n]
  %2 = add %1, %y : f64[n, n]
  return %2
}""") == ((1, 0),)
    assert pairs("""func @f(%x: f64[m, n], %y: f64[m, n]) -> (f64[m, n]) {
  %0 = sum %x {axes = (1,)} : f64[m]
  %1 = broadcast %0 {axes = (0,), shape = (m, n)} : f64[m, n]
  %2 = div %x, %1 : f64[m, n]
  %3 = add %2, %y : f64[m, n]
  return %3
}""") == ((1, 0),)


def test_what_two_results_read_may_not():
    assert pairs("""func @f(%x: f64[m, n], %y: f64[m, n]) -> (f64[m, n], f64[m]) {
  %0 = exp %x : f64[m, n]
  %1 = add %0, %y : f64[m, n]
  %2 = sum %0 {axes = (1,)} : f64[m]
  return %1, %2
}""") == ((1, 0),)


def test_kernels_with_statistics_of_rows_are_right_in_place():
    """A state is written over while other operands are folded and repeated in the same kernel."""
    rng = np.random.default_rng(0)
    x, b = sc.input("x", "float64", shape=("m", 7)), sc.input("b", "float64", shape=(7,))
    s, t = (sc.shared(rng.normal(size=(5, 7)), n) for n in "st")
    mean = sc.mean(x, axis=1)[:, None]
    f = sc.compile(sc.sum(x, axis=1), [x, b], updates={s: s * b - mean * x, t: sc.where(t > 0, t, mean)})
    assert len(f.kernels) <= 2 and f.plan.count("donated") >= 1
    a, c = rng.normal(size=(5, 7)), rng.normal(size=7)
    want = s.get_value() * c - a.mean(1)[:, None] * a, np.where(t.get_value() > 0, t.get_value(), a.mean(1)[:, None])
    f(a, c)
    np.testing.assert_allclose(s.get_value(), want[0], atol=1e-15)
    np.testing.assert_allclose(t.get_value(), want[1], atol=1e-15)
