"""The pass machinery: pipelines, stages, verification, provenance, linear cost, the command line, the FileCheck
runner."""

import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from symc.__main__ import main
from symc.errors import PipelineError
from symc.grad.reverse import vjp
from symc.ir import location
from symc.ir.function import Function, Input, function
from symc.ir.location import Loc
from symc.ir.op import splat
from symc.ir.ops.linalg import matmul
from symc.ir.ops.math import exp, log, sin, softplus, tanh
from symc.ir.ops.reduce import sum_
from symc.ir.parse import parse
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import Region, fresh_input
from symc.opt import (
    DEFAULT,
    UNFUSED,
    Pass,
    all_passes,
    graph_pass,
    optimize,
    register_pass,
    rewrite,
    stabilize_values,
    temporary_rules,
    unregister_pass,
    why_not,
)
from symc.opt.engine.pass_registry import placed
from symc.opt.engine.pipelines import ON_CUDA, SPINE
from symc.opt.engine.rewrite import Rewriter
from symc.opt.engine.rule import all_rules
from symc.opt.why.catalogue import markdown
from symc.testing.filecheck import CheckError, cases, check_case, check_text

ROOT = Path(__file__).parents[2]
X = TensorType("f64", (10,))


def build(make):
    x = fresh_input(X)
    return function("f", [(x, Input("x", X))], [make(x)])


def test_every_pass_has_a_test_in_text():
    runs = {word.partition("(")[0] for path in ROOT.glob("tests/**/*.ir") for c in cases(path.read_text("utf-8"))
            for word in c.run.split(",")}
    assert not {p.name for p in all_passes()} - runs, "a file in tests/opt: what the pass does, and what it leaves"


# --- pipelines --------------------------------------------------------------------------------------------------------


def test_stages_are_named_in_order_and_hold_functions():
    out = optimize(build(lambda x: log(1 + exp(x))), "canonicalize,stabilize,canonicalize")
    assert list(out.stages) == ["input", "canonicalize", "stabilize", "canonicalize.2"]
    assert out.stages["canonicalize.2"] is out.function
    assert [s.name for s in out.report] == ["canonicalize", "stabilize", "canonicalize"]
    assert out.function.body.results[0].op is softplus and out.stages["input"].body.results[0].op is log


def test_the_empty_pipeline_changes_nothing():
    f = build(lambda x: x + 0.0)
    assert optimize(f, "").function is f


@pytest.mark.parametrize("pipeline,hint", [
    ("canonicalise", "did you mean 'canonicalize'?"),
    ("canonicalize,-log_one_pluss", "did you mean 'log_one_plus'?"),
    ("canonicalize,+nan_unsafe", "did you mean 'nan-unsafe'?"),
    ("exponentials", "-exponentials"),
])  # fmt: skip
def test_unknown_names_are_errors_with_a_suggestion(pipeline, hint):
    with pytest.raises(PipelineError, match=r"no .* is called") as e:
        optimize(build(exp), pipeline)
    assert hint in str(e.value)


def test_a_pass_a_family_a_tag_and_a_rule_can_be_left_out():
    f = build(lambda x: log(1 + exp(x)))
    for without in ("stabilize", "exponentials,-logs,-logsumexp"):
        assert optimize(f, f"canonicalize,stabilize,-{without}").function.body.results[0].op is log
    without = "-log_one_plus_exp,-log_sum_weighted_exp"
    assert optimize(f, f"canonicalize,stabilize,{without}").function.body.results[0].op.name == "log1p"


def test_a_users_pass_runs_by_name_and_its_mistakes_are_named():
    @graph_pass("negate_results")
    def negate(f):
        """Every result, negated."""
        return f.with_results([-v for v in f.body.results])

    @graph_pass("broken_pass")
    def broken(f):
        return Function(f.name, f.inputs, Region([TensorType("f32")], f.body.results))

    @graph_pass("not_a_pass")
    def nothing(f):
        return None

    try:
        f = build(exp)
        assert optimize(f, "negate_results,canonicalize").function.body.results[0].op.name == "neg"
        with pytest.raises(PipelineError, match="pass 'broken_pass' changed the inputs"):
            optimize(f, "broken_pass")
        with pytest.raises(PipelineError, match="gave a NoneType"):
            optimize(f, "not_a_pass")
        with pytest.raises(PipelineError, match="already called"):
            graph_pass("negate_results")(negate)
    finally:
        for name in ("negate_results", "broken_pass", "not_a_pass"):
            unregister_pass(name)
    assert "negate_results" not in {p.name for p in all_passes()}


def test_a_pass_states_where_it_stands_and_why():
    for p in all_passes():
        assert bool(p.after) == bool(p.why) and p.target in ("", "cpu", "cuda"), p.name
    assert {p.name for p in placed(SPINE)} == {*DEFAULT.split(","), *[n for n in ON_CUDA.split(",") if n[0] != "-"]}
    order = DEFAULT.split(",")
    for first, then in pairwise(["small_loops", "fuse_matvec", "blas", "cache_from_state", "fuse"]):
        assert order.index(first) < order.index(then)
    register_pass(Pass("lost", "Comes after none.", function=lambda f: f, after=("nowhere",)))
    try:
        with pytest.raises(PipelineError, match="pass 'lost' comes after 'nowhere', which no pipeline has"):
            placed(SPINE)
    finally:
        unregister_pass("lost")


def test_every_pass_of_the_default_pipeline_exists_and_has_a_docstring():
    passes = {p.name: p for p in all_passes()}
    assert all(passes[n].doc for n in DEFAULT.split(","))


# --- locations and provenance -----------------------------------------------------------------------------------------


def test_lines_of_what_is_replaced_go_to_what_replaces_it():
    one, two = Loc("model.py", 1), Loc("model.py", 2)
    x = fresh_input(X)
    with location.at([one]):
        e = exp(x)
    with location.at([two]):
        v = log(1 + e)
    f = function("f", [(x, Input("x", X))], [v])
    out = optimize(f, UNFUSED)
    assert out.function.locations(out.function.body.results[0]) == [one, two]
    assert set(out.function.hints) <= set(out.function.values())
    assert "model.py:2" in out.provenance.explain(out.function.body.results[0])


def test_stabilize_values_keeps_what_it_is_told_to():
    x = fresh_input(X)
    e = exp(x)
    line = Loc("model.py", 7)
    with location.at([line]):
        v = log(1 + e)
    (free,) = stabilize_values([v])
    assert free.op is softplus and line in location.noted(free)
    (kept,) = stabilize_values([v], keep=[e])
    assert e in postorder([kept]) and kept.op.name == "log1p"


def test_regions_inside_values_are_optimized():
    f = parse("""func @f(%x: f64[n]) -> (f64[n]) {
      %0 = fused %x : f64[n] {
      ^(%a: f64[n]):
        %0 = exp %a : f64[n]
        %1 = add %0, 1.0:f64[n] : f64[n]
        %2 = log %1 : f64[n]
        yield %2
      }
      return %0
    }""")
    out = optimize(f, "stabilize", verify=True).function
    assert out.body.results[0].regions[0].results[0].op is softplus


def test_why_not_says_what_a_rewrite_says():
    with temporary_rules():

        @rewrite("sin", family="algebra")
        def picky(v):
            """Says why."""
            return "the weather is bad"

        out = optimize(build(sin), "simplify")
        assert out.provenance.count("picky") == 0 and "the weather is bad" in why_not(out, "picky")


# --- cost -------------------------------------------------------------------------------------------------------------


def chain(steps):
    x = fresh_input(X)
    h = x
    for _ in range(steps):
        h = tanh(h * 1.01 + 0.5)
    cost = sum_(h, axes=(0,))
    (cost,) = stabilize_values([cost], [x])
    (g,) = vjp([cost], [x], [splat(1, cost.type)])
    return function("f", [(x, Input("x", X))], [cost, g])


def attempts(f):
    out = optimize(f, UNFUSED)
    return sum(s.attempts for s in out.report) / len(f.values())


@pytest.mark.long
def test_rule_attempts_per_value_do_not_grow_with_the_graph():
    small, large = attempts(chain(20)), attempts(chain(400))
    assert large < 40 and large < 1.1 * small


@pytest.mark.long
def test_a_chain_of_400_steps_with_its_gradient_optimizes_in_a_second():
    f = chain(400)
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        optimize(f, UNFUSED)
        best = min(best, time.process_time() - start)
    assert best < 1.0


@pytest.mark.long
@pytest.mark.parametrize("make, n", [("sum_of", 600), ("nested", 600), ("products", 120)])
def test_long_nests_stay_linear(make, n):
    """Few attempts a value, and no more of them in a longer one."""
    each = []
    for length in (n // 4, n):
        f = build(lambda x, length=length: globals()[make](x, length))
        each.append(sum(s.attempts for s in optimize(f, UNFUSED).report) / len(f.values()))
    assert each[1] < 60 and each[1] < 1.25 * each[0]


def sum_of(x, n):
    total = x
    for k in range(n):
        total = total + exp(x * (k + 2))
    return total


def nested(x, n):
    for _ in range(n):
        x = log(1 + exp(x))
    return x


def products(x, n):
    t = TensorType("f64", (4, 4))
    a = splat(1.5, t) * fresh_square(x)
    for _ in range(n):
        a = matmul(a, a)
    return sum_(a, axes=(0, 1)) + sum_(x, axes=(0,))


def fresh_square(x):
    from symc.ir.ops.shape import broadcast, slice_

    return broadcast(slice_(x, start=(0,), size=(4,), step=(1,)), axes=(1,), shape=(4, 4))


@pytest.mark.long
def test_a_100000_value_chain_optimizes_under_the_default_recursion_limit():
    x = fresh_input(X)
    v = x
    for _ in range(50_000):
        v = -tanh(v)
    f = function("f", [(x, Input("x", X))], [v])
    rules = [r for r in all_rules("canonicalize", "exponentials", "logs") if "opt-in" not in r.tags]
    rewriter = Rewriter(rules, strict=True)
    assert rewriter.run(f.body.results)[0] is f.body.results[0]
    assert rewriter.visited <= len(f.values()) + 1


# --- determinism ------------------------------------------------------------------------------------------------------

SCRIPT = """
from symc.opt import optimize
from symc.testing.fuzz import random_function
for seed in range(40):
    print(optimize(random_function(seed, 20)).function)
"""


@pytest.mark.long
def test_two_processes_with_different_hash_seeds_print_the_same():
    outs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT,
            env={"PYTHONHASHSEED": s, "PATH": "", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        for s in ("1", "2")
    ]
    assert outs[0].returncode == 0, outs[0].stderr
    assert outs[0].stdout == outs[1].stdout and outs[0].stdout.count("func @") == 40


# --- the FileCheck runner
# -----------------------------------------------------------------------------------------------

TEXT = "alpha one\nbeta two\ngamma two three\n"


@pytest.mark.parametrize("checks", [
    "// CHECK: alpha\n// CHECK: gamma", "// CHECK: alpha\n// CHECK-NEXT: beta two",
    "// CHECK: beta [[W:\\w+]]\n// CHECK-NEXT: gamma [[W]] three",
    "// CHECK: alpha\n// CHECK-SAME: one", "// CHECK-NOT: delta\n// CHECK: beta",
    "// CHECK-DAG: gamma\n// CHECK-DAG: alpha",
    "// CHECK: {{[a-z]+}}   two",
])  # fmt: skip
def test_checks_that_hold(checks):
    check_text(TEXT, checks)


@pytest.mark.parametrize("checks,what", [
    ("// CHECK: delta", "CHECK: delta: not found"), ("// CHECK: gamma\n// CHECK: alpha", "not found"),
    ("// CHECK: alpha\n// CHECK-NEXT: gamma", "CHECK-NEXT"),
    ("// CHECK: alpha\n// CHECK-NOT: beta\n// CHECK: gamma", "CHECK-NOT: beta: found"),
    ("// CHECK: alpha\n// CHECK-NOT: three", "CHECK-NOT: three: found"),
    ("// CHECK: alpha\n// CHECK-SAME: two", "CHECK-SAME"),
    ("// CHECK: beta [[W:\\w+]]\n// CHECK-NEXT: gamma [[W]] [[W]]", "not found"),
    ("// CHECK: [[V]]", "not bound"), ("nothing", "no CHECK lines"),
])  # fmt: skip
def test_checks_that_do_not_hold(checks, what):
    with pytest.raises(CheckError, match=what):
        check_text(TEXT, checks)


def test_errors_that_are_expected_must_come():
    good = "func @f(%x: f64[]) -> (f64[]) {\n  return %x\n}\n"
    with pytest.raises(CheckError, match="expected an error"):
        check_case(cases(f"// RUN: print\n{good}// expected-error: something")[0])
    with pytest.raises(CheckError, match="failed with ParseError"):
        check_case(
            cases("// RUN: print\nfunc @f(%x: f64[]) -> (f64[]) {\n  return %y\n}\n// expected-error: something else")[
                0
            ]
        )


def test_a_case_without_a_run_line_takes_the_last_one():
    assert [c.run for c in cases("// RUN: a\nx\n// -----\ny\n// -----\n// RUN: b\nz\n")] == ["a", "a", "b"]


# --- the command line -------------------------------------------------------------------------------------------------

SOURCE = "func @f(%x: f64[n]) -> (f64[n]) {\n" \
    "  %0 = exp %x : f64[n]\n  %1 = add %0, 1.0:f64[n] : f64[n]\n  %2 = log %1 : f64[n]\n  return %2\n}\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "f.ir"
    path.write_text(SOURCE)
    return str(path)


def test_opt_prints_ir(source, capsys):
    assert main(["opt", source, "-p", "canonicalize,stabilize"]) == 0
    out = capsys.readouterr().out
    assert parse(out).body.results[0].op is softplus


def test_opt_prints_stages_explanations_and_reasons(source, capsys):
    assert main(["opt", source, "-p", "stabilize", "--stages", "--explain"]) == 0
    out = capsys.readouterr().out
    assert "// after input" in out and "// after stabilize" in out and "log_one_plus_exp" in out
    assert main(["opt", source, "-p", "stabilize", "--why-not", "one_minus_exp"]) == 0
    assert "did not fire" in capsys.readouterr().out


def test_show_passes_rules_and_errors(source, tmp_path, capsys):
    assert main(["show", source]) == 0 and capsys.readouterr().out.strip() == SOURCE.strip()
    assert main(["passes"]) == 0 and "canonicalize" in capsys.readouterr().out
    assert main(["doctor"]) == 0 and "exp(0) * 2 + 1 = 3.0" in capsys.readouterr().out
    assert main(["rules"]) == 0 and "`log_one_plus`" in capsys.readouterr().out
    assert main(["opt", source, "-p", "canonicalise"]) == 1 and "did you mean" in capsys.readouterr().err
    assert main(["show", str(tmp_path / "none.ir")]) == 1 and "No such file" in capsys.readouterr().err
    (tmp_path / "bad.ir").write_text("func @f(")
    assert main(["show", str(tmp_path / "bad.ir")]) == 1 and "ParseError" in capsys.readouterr().err


def test_the_rule_catalogue_in_the_docs_is_current():
    assert (ROOT / "docs" / "rules.md").read_text(encoding="utf-8") == markdown(), (
        "run: python -m symc rules > docs/rules.md"
    )


# --- order and modes --------------------------------------------------------------------------------------------------


def test_a_pipeline_that_undoes_itself_is_warned_of():
    import warnings

    f = build(lambda x: log(1 + exp(x)))
    with pytest.warns(UserWarning, match="stabilize comes after decompose, which it undoes"):
        optimize(f, "canonicalize,decompose,stabilize")
    with pytest.warns(UserWarning, match="put blas before fuse"):
        optimize(f, "fuse,blas")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for pipeline in (DEFAULT, UNFUSED, "decompose,canonicalize", "fuse"):
            optimize(f, pipeline)


def test_modes_have_the_names_of_other_packages_and_flags(monkeypatch):
    import symc as sc

    x = sc.vector("x")
    for name, mode in (("FAST_RUN", "default"), ("FAST_COMPILE", "fast_compile"), ("DebugMode", "debug")):
        assert f"mode '{mode}'" in repr(sc.compile(x + 1, mode=name))
    monkeypatch.setenv("SYMC_FLAGS", "mode=reference")
    assert "mode 'reference'" in repr(sc.compile(x + 1))
    assert "mode 'fast_compile'" in repr(sc.compile(x + 1, mode="fast_compile"))
    monkeypatch.setenv("SYMC_FLAGS", "pipeline=canonicalize,fuse")
    assert list(sc.compile(x + 1).stages) == ["input", "canonicalize", "fuse"]
    monkeypatch.setenv("SYMC_FLAGS", "mode=fast_compile; backend=numpy")
    assert sc.compile(x + 1).kernels == () and "mode 'fast_compile'" in repr(sc.compile(x + 1))
    assert [k.backend for k in sc.compile(x + 1, backend="llvm").kernels] == ["llvm"]
    monkeypatch.setenv("SYMC_FLAGS", "mod=debug")
    with pytest.raises(PipelineError, match="'mod=debug' is no flag"):
        sc.compile(x + 1)
    with pytest.raises(PipelineError, match="unknown mode 'fastrun'"):
        monkeypatch.setenv("SYMC_FLAGS", "")
        sc.compile(x + 1, mode="fastrun")


def test_the_command_lists_passes_in_order(capsys):
    assert main(["passes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[1] for line in lines if line[:4].strip().isdigit()]
    assert names == DEFAULT.split(",") and any("not after it: stabilize" in line for line in lines)
