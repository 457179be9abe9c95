"""What became of a value, and why something did not happen: by every kind of name, in words that say what to change."""

import numpy as np
import pytest

import symc as sc
from symc.errors import InputError, PipelineError

pytestmark = pytest.mark.long


def inputs():
    return sc.matrix("A"), sc.matrix("B"), sc.matrix("C")


# --- explain ----------------------------------------------------------------------------------------------------------


def test_a_value_has_its_rules_with_laws_and_its_end():
    x = sc.vector("x")
    y = sc.log(1 + sc.exp(x))
    f = sc.compile(y)
    text = f.explain(y)
    assert text.splitlines()[0].startswith("log    test_explain.py:")
    assert "as written: log(1.0 + exp(x)) : f64[" in text
    assert "stabilize: " in text and "(rounds differently)" in text
    assert "in the end: softplus(x)" in text and "computed by the kernel @softplus" in text


def test_what_is_a_part_of_something_else_is_followed_there():
    x = sc.vector("x")
    p = sc.exp(x)
    f = sc.compile(sc.log(1 + p))
    text = f.explain(p)
    assert "no rule changed it" in text and "it became a part of something else" in text and "softplus(x)" in text


def test_outputs_states_and_lines_have_names():
    A, B, C = inputs()
    w = sc.shared(np.ones(3), "w")
    f = sc.compile({"fit": 0.5 * C + 2 * A @ B, "w2": w * 1.0}, updates={w: w - 0.0})
    assert "blas" in f.explain("fit") and "a call of gemm" in f.explain("fit")
    assert f.explain(0).splitlines()[1:] == f.explain("fit").splitlines()[1:]
    assert "the new value of w" in f.explain("w")
    line = f._compilation.source.locations(f._compilation.source.outputs[0])[0]
    assert f"line {line.file.rsplit('/', 1)[-1]}:{line.line}" in f.explain(f"test_explain.py:{line.line}")
    assert "the input A" in f.explain(A)


def test_everything_is_told_once_with_what_runs_in_the_end():
    A, B, C = inputs()
    f = sc.compile(0.5 * C + 2 * A @ B)
    lines = f.explain().splitlines()
    assert lines[-1].strip().startswith("call gemm") and len(set(lines)) == len(lines)


def test_mistakes_are_said():
    x = sc.vector("x")
    f = sc.compile({"loss": sc.sum(x)})
    for v, message in ((3, "has 1 outputs"), ("los", "no output, state or line"), (sc.vector("y") * 2, "does not comp"),
                       (1.5, "is no value")):
        with pytest.raises(InputError, match=message) as e:
            f.explain(v)
        assert "test_explain.py" in str(e.value)
    with pytest.raises(InputError, match="did you mean 'loss'"):
        f.explain("los")


# --- why not ----------------------------------------------------------------------------------------------------------


def test_a_product_with_two_consumers_is_no_gemm():
    A, B, C = inputs()
    y = A @ B
    f = sc.compile([0.5 * C + 2 * y, y])
    for name in ("gemm", "blas"):
        text = f.why_not(name)
        assert "A @ B" in text and "has 2 consumers" in text and "test_explain.py" in text
    assert "1 gemm in the program" in sc.compile(0.5 * C + 2 * A @ B).why_not("gemm")
    assert "no product of arrays" in sc.compile(C + 1).why_not("gemm")
    assert "what reads the product is tanh" in sc.compile(sc.tanh(A @ B)).why_not("gemm")


def test_an_op_names_the_rules_that_would_make_it():
    x = sc.vector("x")
    text = sc.compile(sc.log(sc.sum(sc.tanh(x)))).why_not("logsumexp")
    assert "nothing made a logsumexp" in text and "log_sum_exp" in text and "tanh" in text
    assert "logsumexp was there" in sc.compile(sc.log(sc.sum(sc.exp(x)))).why_not("logsumexp")
    assert "it must be written" in sc.compile(x + 1).why_not("poisson_draw")


def test_a_rule_says_what_differs():
    x = sc.vector("x")
    text = sc.compile(sc.log(2 + sc.tanh(x))).why_not("log_one_plus")
    assert "the rule wants 1.0 where there is 2.0" in text and "log(2.0 + tanh(x))" in text
    assert "fired 1 time" in sc.compile(sc.log(1 + x)).why_not("log_one_plus")


def test_a_side_condition_is_said_in_words():
    from symc.opt import rule, temporary_rules

    with temporary_rules():

        @rule(when=lambda x, *, facts: facts(x).positive)
        def picky(x):
            """For this test."""
            return sc.ir.ops.math.atan(sc.ir.ops.math.sin(x)), sc.ir.ops.math.atan2(sc.ir.ops.math.sin(x), 1.0)

        f = sc.compile(sc.arctan(sc.sin(sc.vector("x"))))
        text = f.why_not("picky")
        assert "x is not known to be positive" in text and "sc.assume" in text


def test_work_that_would_be_done_twice_is_named():
    x, y = sc.vector("x"), sc.vector("y")
    e = sc.tanh(x)
    f = sc.compile([sc.exp(e) * sc.exp(y), sc.exp(e), sc.exp(y)])
    assert "other consumers" in f.why_not("product_of_exp") or "fired" in f.why_not("product_of_exp")


def test_kernels_that_are_two_say_why():
    A, B, _ = inputs()
    f = sc.compile(sc.tanh(A @ B) + sc.sum(sc.exp(A @ B), axis=0))
    text = f.why_not("fuse")
    assert "made 2 kernels" in text and "must be complete before" in text
    assert "everything that a kernel can compute is in this one" in sc.compile(sc.exp(A) + 1).why_not("fuse")
    x = sc.vector("x")
    assert "made" in sc.compile([sc.exp(x), x[::2] * 2]).why_not("fuse")


def test_loops_say_what_keeps_them():
    x = sc.input("x", "float64", shape=("n", 3))
    w = sc.matrix("w")
    final, _ = sc.scan(lambda h, row: (sc.tanh(h @ w + row), h), sc.zeros(3), x)
    f = sc.compile(final, [x, w])
    assert "the loop's length n is not known" in f.why_not("unroll")
    assert "made of a carry" in f.why_not("push_out")
    assert "there is one loop only" in f.why_not("merge_scans")
    assert "there is no loop" in sc.compile(sc.exp(w)).why_not("push_out")


def test_families_tags_and_unknown_names():
    x = sc.vector("x")
    f = sc.compile(sc.log(2 + sc.tanh(x)))
    assert "none fired; these came nearest" in f.why_not("logs")
    assert "rules fired in it" in f.why_not("stabilize")
    assert "pass pull_out ran" in f.why_not("pull_out")
    with pytest.raises(PipelineError, match="did you mean 'logsumexp'"):
        f.why_not("logsumexpp")
    small = sc.compile(sc.log(x), pipeline="canonicalize,fuse")
    assert "no pass that applies it" in small.why_not("log_one_plus")
