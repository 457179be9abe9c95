"""The assertions for users: each holds where it should, and fails with words where it should not."""

import numpy as np
import pytest

import symc as sc
from symc.errors import PipelineError
from symc.ir.op import splat
from symc.ir.traverse import replace
from symc.opt import graph_pass, rule
from symc.testing import (
    CheckError,
    assert_calls,
    assert_fires,
    assert_in_place,
    assert_kernels,
    assert_no_alloc,
    assert_not_fires,
    assert_rewrites,
    plugin,
)

# The fixtures, also where the plugin is not installed.
FIXTURES = ("check_pass", "check_rule", "assert_calls", "assert_kernels", "assert_rewrites")
globals().update({f"fixture_{name}": getattr(plugin, name) for name in FIXTURES})
own_rules = plugin.own_rules


def product():
    A, B, C = sc.matrix("A"), sc.matrix("B"), sc.matrix("C")
    return sc.compile(0.5 * C + 2 * A @ B)


def step():
    w = sc.shared(np.ones((4, 4)), "w")
    return sc.compile([], updates={w: w - 0.1 * sc.tanh(w)})


def test_what_holds_passes():
    f, g = product(), step()
    assert_calls(f, gemm=1)
    assert_calls(f, gemm=1, gemv=0)
    assert_calls(g)
    assert_kernels(f, 0)
    assert_kernels(g, 1)
    assert_no_alloc(g)
    assert_in_place(g, "w")
    assert_fires(f, "blas", 1)
    assert_not_fires(g, "blas")
    assert_not_fires(f, "log_one_plus")


@pytest.mark.parametrize("check,message", [
    (lambda: assert_calls(product(), gemm=2), "calls gemm 1 time, not gemm 2 times"),
    (lambda: assert_calls(product()), "calls gemm 1 time, not nothing"),
    (lambda: assert_kernels(product(), 1), r"has 0 kernels, not 1(.|\n)*pass fuse ran"),
    (lambda: assert_in_place(product(), "C"), "nothing is written over C in place"),
    (lambda: assert_fires(product(), "log_one_plus"), r"fired 0 times\n(.|\n)*did not fire"),
    (lambda: assert_fires(product(), "blas", 3), "fired 1 times, not 3 times"),
    (lambda: assert_not_fires(product(), "blas"), r"blas fired 1 times:\n  blas: "),
])  # fmt: skip
def test_what_does_not_fails_with_words(check, message):
    with pytest.raises(CheckError, match=message):
        check()


def test_unknown_names_are_errors():
    for check in (assert_fires, assert_not_fires):
        with pytest.raises(PipelineError, match="did you mean 'log_one_plus'"):
            check(product(), "log_one_pluss")
    with pytest.raises(PipelineError, match="no pass is called 'fuze'"):
        sc.testing.check_pass("fuze")


def test_rewrites():
    x = sc.vector("x")
    assert_rewrites(sc.log(1 + x), "->", sc.log1p(x))
    assert_rewrites(sc.log(2 + x), "!->", sc.log1p(x))
    assert_rewrites(sc.exp(x) / (1 + sc.exp(x)), "<->", 1 / (1 + sc.exp(-x)))
    with pytest.raises(CheckError, match=r"log\(.*\) ends as\n  (.|\n)*not as\n  log1p"):
        assert_rewrites(sc.log(2 + sc.tanh(x)), "->", sc.log1p(x))
    with pytest.raises(CheckError, match="must not end as"):
        assert_rewrites(sc.log(1 + x), "!->", sc.log1p(x))
    with pytest.raises(PipelineError, match="is no arrow"):
        assert_rewrites(x, "=>", x)


# --- passes of users --------------------------------------------------------------------------------------------------


def test_a_good_pass_passes(own_rules, check_pass):
    @graph_pass("no_double_negation")
    def no_double_negation(f):
        """-(-x) is x."""
        found = {v: v.operands[0].operands[0] for v in f.values()
                 if v.op.name == "neg" and v.operands[0].op.name == "neg"}  # fmt: skip
        hints = dict(f.hints)
        new = replace(f.body.results, found, lambda old, new: hints.update({new: f.hints.get(old, frozenset())}))
        return f.with_results(new, hints) if found else f

    check_pass("no_double_negation", programs=15)
    check_pass("canonicalize", programs=15, seed=30)


def zeros(f):
    new = [splat(0, v.type) for v in f.body.results]
    return f.with_results(new, dict.fromkeys(new, next(iter(f.hints.values()))))


def twice(f):
    return f.with_results([v + 0.0 if v.dtype.kind == "f" else v for v in f.body.results], f.hints)


def narrow(f):
    return f.with_results([*f.body.results, f.body.results[0]])


def forget(f):
    """The same computation, of which nobody knows the lines."""
    return optimized_without_lines(f)


def optimized_without_lines(f):
    from symc.opt import optimize

    g = optimize(f, "canonicalize").function
    return g.with_results(g.body.results, {}) if g.body is not f.body else f


@pytest.mark.parametrize("run,message", [
    (zeros, "zeros changes result"), (twice, "changes what it has changed already"),
    (narrow, "changes the interface"), (lambda f: None, "not a Function"), (forget, "loses the user's lines"),
], ids=["numbers", "idempotent", "interface", "type", "lines"])  # fmt: skip
def test_what_a_pass_does_wrong_is_found(run, message):
    with pytest.raises(CheckError, match=message):
        sc.testing.check_pass(run, programs=40)


# --- the plugin -------------------------------------------------------------------------------------------------------


def test_fixtures_are_the_assertions(assert_calls, assert_kernels, assert_rewrites, check_rule):
    assert assert_calls is sc.testing.assert_calls and assert_kernels is sc.testing.assert_kernels
    assert assert_rewrites is sc.testing.assert_rewrites and check_rule is sc.testing.check_rule


def test_own_rules_are_forgotten(own_rules):
    @rule
    def only_here(x):
        """For this test."""
        return sc.ir.ops.math.atan(sc.ir.ops.math.sin(x)), sc.ir.ops.math.atan2(sc.ir.ops.math.sin(x), 1.0)

    assert_fires(sc.compile(sc.arctan(sc.sin(sc.vector("x")))), "only_here")


def test_a_rule_of_numpys_functions_is_checked_where_they_do_not_convert(own_rules, check_rule):
    @rule
    def tangent_times_cosine(x):
        """Integers become floats before they come to this."""
        return sc.tanh(x) * np.cosh(x), sc.sinh(x)

    check_rule(tangent_times_cosine)


def test_so_it_is_not_known_here():
    with pytest.raises(PipelineError, match="no rule is called"):
        assert_fires(product(), "only_here")
