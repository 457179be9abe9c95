"""``sc.bisect`` and debug mode name what is guilty: planted rules, passes, kernels and plans."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu import intrinsics
from symc.ir.op import lookup
from symc.ir.traverse import replace as replace_values
from symc.opt import DEFAULT
from symc.opt.engine.declare import rule
from symc.opt.engine.pass_registry import graph_pass, unregister_pass
from symc.opt.engine.rule import temporary_rules
from symc.runtime.cpu.program import load
from symc.testing.fuzz.checks import compiled
from symc.tools.debugging.blame import attempt
from symc.tools.debugging.tolerance import Oracle

A = np.linspace(-1, 1.5, 12).reshape(4, 3)
W = np.linspace(0.5, 2, 6).reshape(3, 2)


@pytest.fixture
def wrong_rule() -> Iterator[None]:
    with temporary_rules():

        @rule(family="algebra", check=False)
        def sine_is_its_tanh(x):
            """Wrong."""
            return lookup("tanh")(lookup("sin")(x)), lookup("sin")(x)

        yield


@pytest.fixture
def wrong_pass() -> Iterator[str]:
    @graph_pass("sines_are_cosines", bodies=True)
    def wrong(f):
        return f.with_results(replace_values(f.body.results, {v: lookup("cos")(*v.operands) for v in f.values()
                                                              if v.op.name == "sin"}))

    yield "canonicalize,sines_are_cosines,simplify,fuse"
    unregister_pass("sines_are_cosines")


@pytest.fixture
def wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(intrinsics.TABLE, "atan", "math.tan({0})")


def network(**options):
    x, w = sc.input("x", shape=("n", 3)), sc.matrix("w")
    h = sc.tanh(sc.exp(x) @ w)
    y = sc.tanh(sc.sin(h)) + sc.log1p(sc.exp(h))
    return sc.compile([sc.sum(y, axis=0) * 2 - sc.tanh(h).sum(), h], [x, w], **options)


# --- rules ------------------------------------------------------------------------------------------------------------


def test_a_wrong_rule(wrong_rule, tmp_path):
    found = sc.bisect(network(), A, W)
    assert found and (found.kind, found.name, found.rule, found.firing) == ("pass", "simplify", "sine_is_its_tanh", 1)
    assert [loc.text for loc in found.lines] == ["y = sc.tanh(sc.sin(h)) + sc.log1p(sc.exp(h))"]
    assert found.value.startswith("tanh(sin(tanh(") and "exp(x)" in found.value
    small = sc.parse(found.text)
    assert [v.op.name for v in small.values()] == ["param", "sin", "tanh"] and small.inputs[0].type.shape == (1, 1)
    assert "rule sine_is_its_tanh (its firing 1" in str(found) and "in test_bisect.py:" in str(found)
    script = runpy.run_path(str(found.write(tmp_path / "test_wrong.py")))
    with pytest.raises(AssertionError, match="result 0 at"):
        script["test_results_are_the_references"]()


def test_the_script_passes_when_the_rule_is_gone(tmp_path):
    with temporary_rules():

        @rule(family="algebra", check=False)
        def sine_is_its_tanh(x):
            return lookup("tanh")(lookup("sin")(x)), lookup("sin")(x)

        path = sc.bisect(network(), A, W).write(tmp_path / "gone.py")
    runpy.run_path(str(path))["test_results_are_the_references"]()
    assert "pickle" not in path.read_text() and not path.with_suffix(".npz").exists()


def test_the_firing_is_counted():
    """A rule that is right for some operands fires several times; where it makes no difference, nothing is wrong."""
    with temporary_rules():

        @rule(family="algebra", check=False, when=lambda x: x.shape == (2,))
        def only_of_two(x):
            return lookup("erf")(x), lookup("erfc")(x) - 1 + x * x

        a, b = sc.input("a", shape=(2,)), sc.input("b", shape=(3,))
        found = sc.bisect(sc.compile([sc.special.erf(b), sc.special.erf(a), sc.special.erf(a * 2)], [a, b]),
                          np.zeros(2), np.ones(3))
        assert not found  # at 0 both sides are 0
        found = sc.bisect(sc.compile([sc.special.erf(b), sc.special.erf(a), sc.special.erf(a * 2)], [a, b]),
                          np.ones(2), np.ones(3))
    assert found.rule == "only_of_two" and found.firing == 1


def test_a_wrong_rule_in_a_loop(wrong_rule):
    x = sc.input("x", shape=("n", 3))
    final, ys = sc.scan(lambda c, row: (sc.tanh(sc.sin(c + row)), c * 0.5), sc.zeros(3), x)
    found = sc.bisect(sc.compile([final, ys], [x]), A)
    assert found.rule == "sine_is_its_tanh"
    names = [v.op.name for v in sc.parse(found.text).values()]
    assert names == ["param", "sin", "tanh"]  # the body on its own, and no more of it than it takes


def test_a_wrong_pass(wrong_pass, tmp_path):
    found = sc.bisect(network(pipeline=wrong_pass), A, W)
    assert (found.kind, found.name, found.rule) == ("pass", "sines_are_cosines", "")
    assert found.value.startswith("sin(tanh(") and found.lines[0].text.startswith("y = sc.tanh(sc.sin(h))")
    assert [v.op.name for v in sc.parse(found.text).values() if v.op.name in ("sin", "cos", "tanh", "exp")] == ["sin"]
    script = runpy.run_path(str(found.write(tmp_path / "test_wrong.py")))
    with pytest.raises(AssertionError):
        script["test_results_are_the_references"]()


# --- the backend ------------------------------------------------------------------------------------------------------


def test_a_wrong_kernel(wrong_kernel, tmp_path):
    x, w = sc.input("x", shape=("n", 3)), sc.matrix("w")
    f = sc.compile(sc.arctan(sc.exp(x) @ w) + sc.tanh(x @ w), [x, w])
    found = sc.bisect(f, A, W)
    assert found.kind == "kernel" and "atan" in found.name and not found.rule
    assert found.lines[0].text.startswith("f = sc.compile(sc.arctan(")
    assert "every pass is right" in str(found)
    script = runpy.run_path(str(found.write(tmp_path / "test_wrong.py")))
    with pytest.raises(AssertionError):
        script["test_results_are_the_references"]()


def test_a_wrong_plan():
    x = sc.input("x", shape=("n", 3))
    w = np.linspace(0, 1, 9).reshape(3, 3)
    f = sc.compile((sc.sort(sc.sin(x), axis=0) @ w) @ sc.tanh(sc.cumsum(x, 0).T @ x), [x])
    plan = f._compilation.plan
    temps = [n for n, b in plan.buffers.items() if b.kind == "temp"]
    assert len(temps) > 1
    wrong = replace(plan, offsets=dict.fromkeys(plan.offsets, 0))
    f._compilation.made["program"] = load(wrong)
    found = sc.bisect(f, A)
    assert found.kind == "plan" and "overwrite" in str(found)


# --- what is expected, and what is right ------------------------------------------------------------------------------


def test_nothing_is_wrong():
    found = sc.bisect(network(), A, W)
    assert not found and str(found) == "nothing is wrong" and found.text == ""
    with pytest.raises(sc.InputError, match="there is nothing to write: nothing is wrong"):
        found.write("nowhere.py")


def test_another_result_was_expected():
    f = network()
    right = f(A, W)
    assert not sc.bisect(f, A, W, expected=right)
    found = sc.bisect(f, A, W, expected=[right[0] * 1.01, right[1]])
    assert found.kind == "program" and "does not give what was expected" in str(found)
    assert found.lines and found.difference.result == 0
    assert not sc.bisect(f, A, W, expected=[right[0] * 1.01, right[1]], tolerance=0.1)
    with pytest.raises(sc.InputError, match="expected"):
        sc.bisect(f, A, W, expected=[right[0]])


def test_a_tolerance_is_a_relative_error(wrong_rule):
    f = network()
    assert sc.bisect(f, A, W, tolerance=1e-6).rule == "sine_is_its_tanh"
    assert not sc.bisect(f, A, W, tolerance=10.0)


@pytest.mark.parametrize("x", [sc.input("x", shape=("n", 3)), sc.Variable("x")], ids=["compiled", "by_its_call"])
def test_states_stay_as_they_are(wrong_rule, x):
    w = sc.shared(W, "w")
    f = sc.compile(sc.sum(x @ w), [x], updates={w: sc.tanh(sc.sin(w))}, donate=[x])
    a = A.copy()
    assert sc.bisect(f, a).rule == "sine_is_its_tanh"
    assert np.array_equal(w.get_value(), W) and np.array_equal(a, A)


def test_functions_that_are_compiled_when_they_are_called(wrong_rule):
    @sc.jit
    def g(x, scale):
        return sc.tanh(sc.sin(x["a"])) * scale

    assert sc.bisect(g, {"a": A}, 2.0).rule == "sine_is_its_tanh"
    v = sc.Variable("v")
    assert sc.bisect(sc.compile(sc.tanh(sc.sin(v))), A).rule == "sine_is_its_tanh"
    with pytest.raises(sc.InputError, match="bisect takes a compiled function, not function"):
        sc.bisect(lambda x: x, 1)


def test_long_arrays_go_into_a_file(wrong_kernel, tmp_path):
    x = sc.input("x", shape=(400,))
    table = np.linspace(0, 3, 400)
    found = sc.bisect(sc.compile(sc.arctan(x + table), [x]), np.ones(400), tolerance=1e-9)
    found._blame.sample = replace(found._blame.sample)  # as large as it is
    path = found.write(tmp_path / "test_long.py")
    with pytest.raises(AssertionError):
        runpy.run_path(str(path))["test_results_are_the_references"]()


# --- what rounding may change -----------------------------------------------------------------------------------------


def oracle(fn, *arrays):
    leaves = [sc.input(f"x{k}", str(a.dtype), a.shape) for k, a in enumerate(arrays)]
    return Oracle(sc.compile(fn(*leaves), leaves, mode="reference")._compilation.source, arrays)


def test_what_cancels_may_differ_and_what_does_not_may_not():
    a, b = np.array([1e16, 3.0]), np.array([1.0, 1.0])
    t = oracle(lambda x, y: (x * 1.1 + y) - x * 1.1, a, b)
    assert t.difference([np.array([0.0, 1.0])]) is None and t.difference([np.array([2.0, 1.0])]) is None
    assert t.difference([np.array([0.0, 1.0 + 1e-9])]) is not None
    assert t.difference([np.array([1e6, 1.0])]) is not None


def test_an_answer_may_be_better_than_the_reference():
    t = oracle(lambda x: sc.log(1 + sc.exp(x)), np.array([800.0, -50.0, 1e10, 1.0]))
    good = np.logaddexp(0, t.arrays[0])
    assert np.isinf(t.want[0][0]) and t.want[0][1] == 0 and t.difference([good]) is None
    assert t.difference([good * (1, 1, 1, 1 + 1e-9)]) is not None
    assert t.difference([good * (1.01, 1, 1, 1)]) is not None


def test_a_nan_must_stay():
    t = oracle(lambda x: sc.log(x) + sc.sqrt(x), np.array([-1.0, 1.0]))
    assert t.difference([np.array([0.0, 1.0])]) is not None and t.difference([np.array([np.nan, 1.0])]) is None


def test_what_jumps_is_not_promised():
    x = np.array([0.1, 0.2, 0.3])
    t = oracle(lambda x: sc.argmax(x * 3 - sc.flip(x, 0) * 3 + sc.flip(x, 0) * 3 - x * 3), x)  # all are rounding
    assert t.difference([np.array(1)]) is None
    t = oracle(lambda x: sc.argmax(x), x)
    assert t.difference([np.array(1)]) is not None


def test_the_sign_of_a_zero_is_not_promised():
    t = oracle(lambda x: 1 / abs(x * 0.0), np.array([-2.5]))
    assert t.difference([np.array([-np.inf])]) is None
    t = oracle(lambda x: sc.atan2(x * 0.0, sc.minimum(x, 0.0)), np.array([2.5]))
    assert t.difference([np.array([-np.pi])]) is None
    t = oracle(lambda x: 1 / abs(x), np.array([-2.5]))
    assert t.difference([np.array([-0.4])]) is not None


def test_what_cancels_in_wide_numbers_too_is_not_sure():
    t = oracle(lambda x: sc.log(sc.sqrt(x * x + 1) - x), np.array([3.5e9, 1.0]))
    good = -np.arcsinh(t.arrays[0])
    assert np.isinf(t.want[0][0]) and t.difference([good]) is None
    assert t.difference([good * (1, 1 + 1e-9)]) is not None


def test_a_comparison_that_underflow_decides_is_not_promised():
    t = oracle(lambda x, y: sc.log(sc.exp(x)) > y, np.array([-1e5, -1e5, 1.0]), np.array([-1e6, -1e4, 2.0]))
    assert list(t.want[0]) == [False, False, False]
    assert t.difference([np.array([True, False, False])]) is None
    assert t.difference([np.array([False, False, True])]) is not None
    t = oracle(lambda x: sc.log(x) > -1e6, np.array([0.0, 1.0]))
    assert t.difference([np.array([True, True])]) is not None  # this zero is what was given


def test_an_order_that_overflow_decides_is_not_promised():
    t = oracle(lambda x: sc.argsort(sc.exp(x) / sc.exp(x).sum()), np.array([1.8e5, 1.9e7, 97.0]))
    assert list(t.want[0]) == [2, 0, 1] and t.difference([np.array([0, 2, 1])]) is None
    t = oracle(lambda x: sc.argsort(sc.exp(x) / sc.exp(x).sum()), np.array([1.8, 19.0, 97.0]))
    assert t.difference([np.array([1, 0, 2])]) is not None


def test_the_sign_of_a_nan_is_not_promised():
    t = oracle(lambda x: sc.signbit(sc.exp(sc.log(x))), np.array([np.nan, 1.0]))
    assert t.difference([~t.want[0] & [True, False]]) is None
    assert t.difference([~t.want[0]]) is not None


def test_zeros_of_a_factorization_may_be_exact():
    t = oracle(lambda x: x / sc.linalg.inv(x), np.array([[0.2, 0.0], [1.1, 0.3]]))
    got = t.want[0].copy()
    got[0, 1] = np.nan
    assert t.difference([got]) is None
    got[1, 0] = np.nan
    assert t.difference([got]) is not None


def test_what_wide_numbers_refuse_is_no_error():
    t = oracle(lambda x: sc.linalg.svd(sc.diag(sc.exp(x)), compute_uv=False), np.array([0.0, 0.0, 1.5e11]))
    t.difference([np.array([np.inf, 1.0, 1.0])])


def test_a_truth_value_that_underflow_decides_is_not_promised():
    t = oracle(lambda x: sc.exp(x).prod().astype("bool"), np.array([1.5e5, -4.5e9]))
    assert t.want[0] and t.difference([np.array(False)]) is None


def test_a_log_of_a_sum_is_right_up_to_rounding_of_the_sum():
    t = oracle(lambda x: sc.special.log_softmax(x), np.array([-9.5e-04, 1.96487165e+01, 2.3e-10]))
    off = np.array([0, 4e-16, 0])
    assert t.difference([t.want[0] + off]) is None and t.difference([t.want[0] * (1, 1 + 1e-4, 1)]) is not None


def test_infinite_right_sides_are_not_promised():
    t = oracle(lambda x, y: sc.linalg.inv(x) @ y, np.array([[5.0, 1.0], [1.0, 3.0]]), np.array([np.inf, 1.0]))
    assert t.difference([np.full(2, np.nan)]) is None


def test_a_sum_of_products_may_be_fused_for_one_user_only():
    x = np.array([493240.05, 3.0])
    t = oracle(lambda x: sc.log(sc.exp(x * x - sc.stop_gradient(x * x).max())) - (x * x - (x * x).max()), x)
    assert t.want[0][0] == 0 and t.difference([t.want[0] - (1.4e-5, 0)]) is None
    assert t.difference([t.want[0] - (1.4e-1, 0)]) is not None


def test_a_divisor_that_cancels_may_be_zero_and_one_that_does_not_may_not():
    t = oracle(lambda x, y: y / (x * 3).sum(), np.array([0.1, 0.2, -0.3]), np.array(2.5))
    assert t.want[0] > 1e15 and t.difference([np.array(np.inf)]) is None
    t = oracle(lambda x, y: y / (x * 3).sum(), np.array([0.1, 0.2, -0.2]), np.array(2.5))
    assert t.difference([np.array(np.inf)]) is not None
    t = oracle(lambda x: x * 0.0, np.array([1.0]))
    assert t.difference([np.array([np.inf])]) is not None


def test_a_comparison_that_an_indeterminate_form_decides_is_not_promised():
    t = oracle(lambda x: x <= (x - x) / (sc.sqrt(x) - sc.sqrt(x)), np.array([2.0, 0.0, 1e10]))
    assert not t.want[0].any() and t.difference([np.array([True, False, True])]) is None
    t = oracle(lambda x: sc.sqrt(x) <= x, np.array([-2.0, 0.0, 1e10]))
    assert t.difference([np.array([True, True, True])]) is not None


def test_a_truth_value_of_what_cancels_is_not_promised():
    a, b = np.array([0.1, 0.2, -0.3]), np.array([0.1, 0.2, 0.3])
    t = oracle(lambda x: (x * 3).sum().astype("bool"), a)
    assert t.want[0] and t.difference([np.array(False)]) is None
    assert oracle(lambda x: (x * 3).sum().astype("bool"), b).difference([np.array(False)]) is not None


def test_a_nan_beside_an_infinity_is_not_promised_and_one_alone_is():
    t = oracle(lambda x, y: sc.sqrt(x * x + y * y), np.array([np.nan, np.nan, 1.0]), np.array([np.inf, 1.0, 2.0]))
    assert t.difference([np.array([np.inf, np.nan, np.sqrt(5.0)])]) is None
    assert t.difference([np.array([np.inf, 1.0, np.sqrt(5.0)])]) is not None


def test_what_zeros_of_a_product_meet_is_not_promised_and_what_others_meet_is():
    t = oracle(lambda x, y: x @ y, np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([np.nan, 3.0]))
    assert t.difference([np.array([3.0, np.nan])]) is None and t.difference([np.array([3.0, 3.0])]) is not None


def test_a_sum_may_overflow_on_its_way_in_another_order():
    a = np.array([0.6, 1.4, -1.4]) * np.finfo("f8").max / 2
    t = oracle(lambda x: (x * 2).sum(), a)
    assert t.difference([np.array(np.nan)]) is None
    t = oracle(lambda x: sc.log(sc.exp(x).sum()), np.array([800.0, 1.0]))
    assert t.difference([np.array(np.nan)]) is not None


def test_a_library_may_refuse_what_is_not_finite():
    def refuse():
        raise sc.LinAlgError("singular")

    a = np.array([[np.inf, 1.0], [1.0, 2.0]])
    assert attempt(refuse, oracle(lambda x: sc.linalg.inv(x), a)) is None
    assert "singular" in str(attempt(refuse, oracle(lambda x: sc.linalg.inv(x), np.eye(2))))
    t = oracle(lambda x: sc.linalg.inv(x), a)
    assert t.difference([np.full((2, 2), 0.5)]) is None and t.difference([np.full((2, 2), np.nan)]) is None


def test_a_solution_is_right_up_to_rounding_of_its_greatest_number():
    a = np.array([[1.8, 0.0], [-1.7, 1.8]])
    t = oracle(lambda x, y: sc.linalg.solve(x.T, y), a, np.array([1e300, 2.0]))
    assert t.difference([t.want[0] * (1, 0) + (0, 1e284)]) is None
    assert t.difference([t.want[0] * (1, 0) + (0, 1e290)]) is not None


def test_a_type_is_a_difference():
    t = oracle(lambda x: x + 1, np.ones(2))
    assert "float32[2], not float64[2]" in str(t.difference([np.full(2, 2.0, "float32")]))


def test_assumptions_that_do_not_hold_are_errors():
    with pytest.raises(sc.AssertError, match="assume: x is not positive"):
        oracle(lambda x: sc.assume(x, positive=True) * 2, -np.ones(2))


# --- debug mode -------------------------------------------------------------------------------------------------------


def test_debug_mode_names_the_rule(wrong_rule):
    f = network(mode="debug")
    with pytest.raises(sc.InternalError, match=r"pass 'simplify' makes it wrong, by rule sine_is_its_tanh") as e:
        f(A, W)
    assert [v.op.name for v in sc.parse(e.value.text).values()] == ["param", "sin", "tanh"]
    assert "y = sc.tanh(sc.sin(h))" in str(e.value) and "it turned tanh(sin(" in e.value.help


def test_debug_mode_names_the_kernel_and_leaves_states(wrong_kernel):
    w = sc.shared(W, "w")
    x = sc.input("x", shape=("n", 3))
    f = sc.compile(sc.arctan(sc.exp(x) @ w), [x], updates={w: w + 1}, donate=[x], mode="debug")
    a = A.copy()
    with pytest.raises(sc.InternalError, match=r"kernel \w*atan\w* computes it wrongly"):
        f(a)
    assert np.array_equal(w.get_value(), W) and np.array_equal(a, A)


def test_debug_mode_sees_a_pass_that_a_later_one_hides():
    """The result is right in the end; the prefix of the pipeline is not."""

    @graph_pass("sine_to_cosine")
    def there(f):
        return f.with_results(replace_values(f.body.results, {v: lookup("cos")(*v.operands) for v in f.values()
                                                              if v.op.name == "sin"}))

    @graph_pass("cosine_to_sine")
    def back(f):
        return f.with_results(replace_values(f.body.results, {v: lookup("sin")(*v.operands) for v in f.values()
                                                              if v.op.name == "cos"}))

    try:
        x = sc.vector("x")
        f = sc.compile(sc.sin(x), mode="debug", pipeline="sine_to_cosine,cosine_to_sine,fuse")
        with pytest.raises(sc.InternalError, match="pass 'sine_to_cosine' makes it wrong"):
            f([1.0])
    finally:
        unregister_pass("sine_to_cosine")
        unregister_pass("cosine_to_sine")


def test_debug_mode_sees_a_program_that_writes_into_its_input():
    x = sc.vector("x")
    f = sc.compile(sc.sort(x) * 2, mode="debug")
    f([3.0, 1.0])
    program = f._compilation.program
    native = program._native(program._final)

    class Writes:
        def run(self, arrays, sizes, out=None):
            results = honest.run(arrays, sizes, out)
            arrays[0][...] = 0
            return results

    honest, native.program = native.program, Writes()
    with pytest.raises(sc.InternalError, match="the call writes into input x"):
        f([3.0, 1.0])


def test_modifiers_of_the_pipeline_are_kept(wrong_rule):
    f = network(pipeline=DEFAULT + ",-sine_is_its_tanh")
    assert not sc.bisect(f, A, W)


def test_compiled_ir_functions_can_be_bisected(wrong_rule):
    f = sc.parse("func @f(%x: f64[2]) -> (f64[2]) {\n  %0 = sin %x : f64[2]\n  %1 = tanh %0 : f64[2]\n  return %1\n}\n")
    assert sc.bisect(compiled(f, "default"), np.ones(2)).rule == "sine_is_its_tanh"
