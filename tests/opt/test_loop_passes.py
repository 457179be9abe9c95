"""The passes on loops and branches: they keep what a program computes, do what they are for on whole models, carry user
lines and records, and take time in proportion to the graph. What each one does is in ``tests/opt/loops``."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symc as sc
from symc.errors import SymcError
from symc.ir import location
from symc.ir.bodies import make_scan
from symc.ir.function import Input, function
from symc.ir.location import Loc
from symc.ir.op import lookup
from symc.ir.ops.control import cond, element_type, scan
from symc.ir.ops.kernel import fused, results_of
from symc.ir.ops.linalg import dot
from symc.ir.ops.math import exp, log, sin, softplus
from symc.ir.reference import evaluate_function
from symc.ir.traverse import every_value, postorder
from symc.ir.types import TensorType
from symc.ir.value import Region, fresh_input
from symc.opt import DEFAULT, FAST_COMPILE, UNFUSED, graph_pass, optimize, stabilize_values, unregister_pass, why_not
from tests.codegen.plan.loop_cases import loop_functions
from tests.codegen.plan.plan_cases import SIZES, some_arrays
from tests.opt.loop_pass_cases import arrays_for, random_loops

ROOT = Path(__file__).parents[2]
LOOPS = (
    "unroll", "reverse_loops", "merge_scans", "last_state", "dead_loop", "pretranspose", "hoist", "push_out",
    "pull_out", "accumulate", "sink",
)  # fmt: skip

# --- results stay -----------------------------------------------------------------------------------------------------


def assert_same(f, arrays, pipeline, wanted=None):
    """``wanted``: what the function gives, with every type checked."""
    wanted = evaluate_function(f, arrays, check=True) if wanted is None else wanted
    out = optimize(f, pipeline, strict=True, verify=True)
    made = wanted if out.function.body is f.body else evaluate_function(out.function, arrays, check=True)
    for a, b in zip(made, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    return out


@pytest.mark.long
def test_every_pass_alone_and_all_together_keep_what_loops_compute():
    fired = dict.fromkeys(LOOPS, 0)
    for seed in range(60):
        f = random_loops(seed)
        arrays = arrays_for(f, seed)
        wanted = evaluate_function(f, arrays, check=True)
        for pipeline in (*LOOPS, (",".join(LOOPS[1:]), FAST_COMPILE, DEFAULT)[seed % 3]):
            for step in assert_same(f, arrays, pipeline, wanted).report:
                if step.name in fired:
                    fired[step.name] += step.fired
    del fired["pretranspose"]
    assert min(fired.values()) > 5, fired  # the random programs have work for every pass


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(loop_functions, st.sampled_from([*LOOPS, ",".join(LOOPS), DEFAULT]))
def test_passes_keep_what_other_random_loops_compute(f, pipeline):
    with np.errstate(all="ignore"):
        arrays = some_arrays(f, SIZES)
        wanted = evaluate_function(f, arrays)
        made = evaluate_function(optimize(f, pipeline, strict=True, verify=True).function, arrays)
    for a, b in zip(made, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def outcome(f, arrays):
    try:
        return evaluate_function(f, arrays)
    except SymcError:
        return None


@pytest.mark.long
def test_loops_of_no_steps_and_rows_that_are_not_there():
    seen = set()
    for seed in range(60):
        f = random_loops(seed)
        if isinstance(f.inputs[0].type.shape[0], int):
            continue
        made = optimize(f, DEFAULT, strict=True, verify=True).function
        arrays = arrays_for(f, seed, steps=0)
        wanted, got = outcome(f, arrays), outcome(made, arrays)
        seen.add(wanted is None)
        assert (wanted is None) == (got is None)
        for a, b in zip(got or (), wanted or (), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    assert seen == {True, False}


# --- whole models -----------------------------------------------------------------------------------------------------


def optimized(outputs, inputs):
    f = sc.compile(outputs, inputs, mode="reference")._compilation.stages["input"]
    rng = np.random.default_rng(0)
    arrays = [(rng.uniform(-1, 1, [s if isinstance(s, int) else 9 for s in i.type.shape]) * 0.6).astype(i.type.dtype)
              for i in f.inputs]
    wanted = evaluate_function(f, arrays)
    out = optimize(f, DEFAULT, strict=True, verify=True)
    for a, b in zip(evaluate_function(out.function, arrays), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    return out


def loops_of(f):
    return [v for v in f.values() if v.op is scan]


def in_step(loop, op):
    return sum(v.op is op for v in postorder(loop.regions[0].results))


def carries_of(loop):
    return [o.type for o in loop.operands[: loop.attrs["carry"]]]


def rnn():
    x, w = sc.input("x", "f32", shape=("t", 8, 5)), sc.input("w", "f32", shape=(16, 16))
    v, b = sc.input("v", "f32", shape=(5, 16)), sc.input("b", "f32", shape=(16,))
    y, h0 = sc.input("y", "f32", shape=("t", 8, 16)), sc.input("h0", "f32", shape=(8, 16))

    def step(h, row):
        h = sc.tanh(h @ w + row @ v + b)
        return h, h

    return sc.mean((sc.scan(step, h0, x)[1] - y) ** 2), [x, w, v, b, y, h0], [w, v, b]


def lstm():
    size, n = 16, 4
    x, y = sc.input("x", "f32", shape=("t", n, 5)), sc.input("y", "f32", shape=("t", n, 7))
    wx, wh = sc.input("wx", "f32", shape=(5, 4 * size)), sc.input("wh", "f32", shape=(size, 4 * size))
    b, wo = sc.input("b", "f32", shape=(4 * size,)), sc.input("wo", "f32", shape=(size, 7))

    def step(carry, row):
        h, s = carry
        z = row @ wx + h @ wh + b
        i, f, o = (sc.sigmoid(z[:, k * size : (k + 1) * size]) for k in range(3))
        s = f * s + i * sc.tanh(z[:, 3 * size :])
        h = o * sc.tanh(s)
        return (h, s), h @ wo

    zeros = sc.zeros((n, size), "float32")
    out = sc.scan(step, (zeros, zeros), x)[1]
    loss = sc.mean(sc.logsumexp(out, axis=-1) - sc.sum(out * y, axis=-1))
    return loss, [x, wx, wh, b, wo, y], [wx, wh, b, wo]


@pytest.mark.parametrize("model", [rnn, lstm])
def test_loss_and_gradient_of_a_recurrent_net_are_two_loops_with_one_product_a_step(model):
    loss, inputs, weights = model()
    out = optimized([loss, *sc.grad(loss, weights)], inputs)
    loops = loops_of(out.function)
    assert [loop.attrs["reverse"] for loop in loops] == [False, True]
    for loop in loops:
        assert in_step(loop, dot) == 1 and 1 <= in_step(loop, fused) <= 2
        assert all(t.shape[0] in (4, 8) for t in carries_of(loop))  # states, none of the shape of weights
    outside = sum(v.op is dot for v in out.function.values())
    assert outside == len(weights) - 1 + (1 if model is rnn else 3)  # their gradients, projections of x, h and g


def test_what_the_passes_did_can_be_explained():
    loss, inputs, weights = rnn()
    out = optimized([loss, *sc.grad(loss, weights)], inputs)
    text = out.provenance.explain()
    assert "[merge_scans] merge_scans: scan(" in text and "[push_out] push_out: " in text
    assert text.count("test_loop_passes.py") > 3
    assert why_not(out, "push_out").startswith("pass push_out ran, made 1 changes")
    (product,) = [v for v in out.stages["push_out"].values() if v.op is dot and v.operands[0].op.name == "param"
                  and v.ndim == 3]  # fmt: skip
    assert "push_out" in out.provenance.explain(product)


def test_a_second_derivative_has_no_loop_twice():
    x, h0 = sc.input("x", "f64", shape=("t", 4)), sc.input("h0", "f64", shape=(4,))
    w = sc.input("w", "f64", shape=(4, 4))
    loss = sc.sum(sc.scan(lambda h, row: (sc.tanh(w @ h + row), None), h0, x)[0])
    (g,) = sc.grad(loss, [w])
    (gg,) = sc.grad(sc.sum(g**2), [w])
    out = optimized([loss, g, gg], [x, h0, w])
    regions = [loop.regions[0] for loop in loops_of(out.function)]
    assert len(set(regions)) == len(regions) <= 4


# --- lines ------------------------------------------------------------------------------------------------------------


def test_lines_go_with_what_moves_out_of_a_loop():
    row = TensorType("f64", (4, 16))
    h, w, x = fresh_input(row), fresh_input(TensorType("f64", (16, 16))), fresh_input(TensorType("f64", (9, 4, 16)))
    c, r = fresh_input(row), fresh_input(element_type(x.type))
    one, two = Loc("model.py", 1), Loc("model.py", 2)
    with location.at([one]):
        projected = dot(r, w, contract=((1,), (0,)), batch=((), ()))
    with location.at([two]):
        new = lookup("tanh")(c + projected)
        loop = make_scan([h], [x], 9, False, [c, r], [new])
    f = function("f", [(v, Input(n, v.type)) for n, v in (("h", h), ("w", w), ("x", x))], results_of(loop))
    out = optimize(f, f"{DEFAULT},-small_loops", strict=True, verify=True).function
    (product,) = [v for v in out.values() if v.op is dot]
    (loop,) = loops_of(out)
    (kernel,) = [v for v in postorder(loop.regions[0].results) if v.op is fused]
    assert out.locations(product) == [one]
    assert out.inside[loop.regions[0]][kernel] == {two}
    assert set(out.inside) == {loop.regions[0]}  # nothing is kept of bodies that are gone
    assert "model.py:2" in str(out)


def test_equal_bodies_have_the_lines_of_their_own_loops():
    """One region of two loops, written on two lines: after a rule changed it both lines are there."""
    x = fresh_input(TensorType("f64", (9, 3)))
    c, r = fresh_input(TensorType("f64", (3,))), fresh_input(TensorType("f64", (3,)))
    loops = []
    for line, start in ((3, 1.0), (4, 2.0)):
        with location.at([Loc("model.py", line)]):
            h = lookup("broadcast")(lookup("constant")(value=_array(start)), axes=(), shape=(3,))
            loops.append(make_scan([h], [x], 9, False, [c, r], [log(1 + exp(c)) + r]))
    f = function("f", [(x, Input("x", x.type))], loops)
    out = optimize(f, "canonicalize,stabilize", verify=True).function
    a, b = loops_of(out)
    assert a.regions == b.regions
    lines = out.inside[a.regions[0]]
    (plus,) = [v for v in postorder(a.regions[0].results) if v.op is softplus]
    assert lines[plus] == {Loc("model.py", 3), Loc("model.py", 4)}


def _array(number):
    from symc.ir.attrs import Array

    return Array(np.asarray(number))


# --- the driver -------------------------------------------------------------------------------------------------------


def nested_scan(make, depth, leaf):
    """A loop in a loop in a loop, the innermost with ``make`` in its body."""
    c = fresh_input(leaf.type)
    inner = make(c) if depth == 1 else nested_scan(make, depth - 1, c)
    return make_scan([leaf], [], 9, False, [c], [inner])


def test_rules_and_function_passes_reach_bodies_at_any_depth():
    x = fresh_input(TensorType("f64", (3,)))
    f = function("f", [(x, Input("x", x.type))], [nested_scan(lambda c: log(1 + exp(c)), 5, x)])
    out = optimize(f, "canonicalize,stabilize,fuse", strict=True, verify=True).function
    ops = [v.op.name for v in every_value(out.body)]
    assert ops.count("scan") == 5 and ops.count("fused") == 1 and "softplus" in ops and "log" not in ops


def test_a_users_pass_runs_in_bodies_only_if_it_says_so():
    seen = []
    for bodies in (False, True):
        name = f"look_{bodies}"

        @graph_pass(name, bodies=bodies)
        def look(f):
            """Notes what it is run on."""
            seen.append(f.name)
            return f

        x = fresh_input(TensorType("f64", (3,)))
        f = function("f", [(x, Input("x", x.type))], [nested_scan(sin, 2, x)])
        try:
            optimize(f, name)
        finally:
            unregister_pass(name)
    assert seen == ["f", "body", "body", "f"]


def test_a_body_that_occurs_often_is_looked_into_once():
    x = fresh_input(TensorType("f64", (3,)))
    roots = []
    for k in range(40):
        roots.append(nested_scan(lambda c: log(1 + exp(c)), 1, x * (k + 2.5)))
    f = function("f", [(x, Input("x", x.type))], roots)
    once = function("f", [(x, Input("x", x.type))], roots[:1])
    fired = [optimize(g, "stabilize").report[0].fired for g in (once, f)]
    assert fired[0] >= 1 and fired[0] == fired[1]


def test_values_are_stabilized_in_bodies_before_they_are_differentiated():
    x = fresh_input(TensorType("f64", (3,)))
    with location.at([Loc("model.py", 5)]):
        loop = nested_scan(lambda c: log(1 + exp(c)), 1, x)
    (made,) = stabilize_values([loop])
    (inner,) = made.regions[0].results
    assert inner.op is softplus and location.inside(made)[made.regions[0]][inner] == {Loc("model.py", 5)}


def test_reasons_are_looked_for_in_bodies():
    x = fresh_input(TensorType("f64", (3,)))
    with location.at([Loc("model.py", 5)]):
        loop = nested_scan(lambda c: log(2 + exp(c)), 1, x)
    out = optimize(function("f", [(x, Input("x", x.type))], [loop]), UNFUSED)
    text = why_not(out, "log_one_plus")
    assert "model.py:5" in text and "the rule wants 1" in text


# --- cost and order ---------------------------------------------------------------------------------------------------


def chain_of_loops(count):
    """Every loop reads the rows and the last carry of the one before, twice."""
    x, h = fresh_input(TensorType("f64", (50, 3))), fresh_input(TensorType("f64", (3,)))
    rows, state = x, h
    for _ in range(count):
        c, r = fresh_input(h.type), fresh_input(h.type)
        first, ys = results_of(make_scan([state], [rows], 50, False, [c, r], [sin(c * r), c + r]))
        again = make_scan([state], [rows], 50, False, [c, r], [sin(c * r)])
        state, rows = first + again, ys
    return function("f", [(x, Input("x", x.type)), (h, Input("h", h.type))], [state])


@pytest.mark.long
def test_time_grows_with_the_number_of_loops_and_no_faster():
    times = []
    for count in (40, 160):
        f = chain_of_loops(count)
        best = float("inf")
        for _ in range(2):
            start = time.process_time()
            out = optimize(f, ",".join(LOOPS)).function
            best = min(best, time.process_time() - start)
        times.append(best)
        assert len(loops_of(out)) == count
    assert times[1] < 8 * times[0] and times[1] < 4


def test_functions_without_loops_are_passed_by():
    x = fresh_input(TensorType("f64", (3,)))
    f = function("f", [(x, Input("x", x.type))], [sin(x)])
    out = optimize(f, ",".join(("canonicalize", *LOOPS)))
    assert out.function.body is f.body and all(s.seconds == 0 for s in out.report[1:])


def test_merging_never_makes_a_circle():
    """Two pairs of loops over one length, each half of one pair made of half of the other."""
    t = TensorType("f64", (9, 3))
    x, y, h = fresh_input(t), fresh_input(t), fresh_input(TensorType("f64", (3,)))

    def loop(rows, reverse, op):
        c, r = fresh_input(h.type), fresh_input(h.type)
        return results_of(make_scan([h], [rows], 9, reverse, [c, r], [op(c) * r, op(c)]))[1]

    a1, b2 = loop(x, False, sin), loop(y, True, sin)
    b1, a2 = loop(a1, True, exp), loop(b2, False, exp)
    pairs = [(x, Input("x", t)), (y, Input("y", t)), (h, Input("h", h.type))]
    f = function("f", pairs, [b1, a2])
    assert_same(f, arrays_for(f, 0), "merge_scans,dead_loop")


def test_choices_are_found_by_what_chooses():
    x, p = fresh_input(TensorType("f64", (3,))), fresh_input(TensorType("bool", ()))
    a = Region((x.type,), [sin(_param(x.type))])
    b = Region((x.type,), [exp(_param(x.type))])
    first = cond(p, x, regions=(a, b))
    second = cond(p, first, regions=(b, a))  # depends on the first: it stays
    third = cond(p, x, regions=(b, a))
    f = function("f", [(x, Input("x", x.type)), (p, Input("p", p.type))], [first, second, third])
    out = optimize(f, "merge_scans", verify=True).function
    assert sum(v.op is cond for v in out.values()) == 2


@pytest.mark.parametrize(("circle", "left"), [(True, 3), (False, 2)])
def test_pairs_of_choices_become_one_each_unless_that_makes_a_circle(circle, left):
    """Each half of one pair is made of half of the other, or both of the same halves."""
    x = fresh_input(TensorType("f64", (3,)))
    p, q = (fresh_input(TensorType("bool", ())) for _ in range(2))
    a, b = (Region((x.type,), [op(_param(x.type))]) for op in (sin, exp))
    first, other = cond(p, x, regions=(a, b)), cond(q, x, regions=(b, a))
    last = [cond(q, first, regions=(a, b)), cond(p, other if circle else x, regions=(b, a))]
    f = function("f", [(v, Input(n, v.type)) for n, v in zip("xpq", (x, p, q))], [first, other, *last])
    out = optimize(f, "merge_scans", verify=True).function
    assert sum(v.op is cond for v in out.values()) == left
    for chosen in ((False, True), (True, False)):
        args = [np.arange(3.0), *map(np.array, chosen)]
        for found, want in zip(evaluate_function(out, args), evaluate_function(f, args), strict=True):
            np.testing.assert_array_equal(found, want)


def _param(t):
    from symc.ir.value import param

    return param(0, t)


SCRIPT = """
from symc.opt import DEFAULT, optimize
from tests.opt.loop_pass_cases import random_loops
for seed in range(12):
    print(optimize(random_loops(seed), DEFAULT).function)
"""


@pytest.mark.long
def test_two_processes_with_different_hash_seeds_make_the_same_loops():
    outs = [
        subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=300,
                       env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": str(ROOT)})
        for seed in ("1", "2")
    ]  # fmt: skip
    assert outs[0].returncode == 0, outs[0].stderr
    assert outs[0].stdout == outs[1].stdout and outs[0].stdout.count("func @") == 12
