"""``sc.diff`` compares functions by structure, whatever values are called and in which order they stand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import symc as sc
from symc.__main__ import main
from symc.opt import UNFUSED
from symc.testing.fuzz.straight import random_function
from symc.tools.debugging.diff import compare

ONE = """
func @f(%x: f64[n, 3], %w: f64[3, 2]) -> (f64[n, 2]) {
  %0 = exp %x : f64[n, 3]
  %1 = dot %0, %w : f64[n, 2]
  %2 = tanh %1 : f64[n, 2]
  %3 = add %1, %2 : f64[n, 2]
  return %3
}
"""
#: The same in another order, with other names of values and sizes, and operands the other way round.
OTHER = """
func @g(%w: f64[3, 2], %x: f64[m, 3]) -> (f64[m, 2]) {
  %9 = exp %x : f64[m, 3]
  %7 = dot %9, %w : f64[m, 2]
  %5 = tanh %7 : f64[m, 2]
  %1 = add %5, %7 : f64[m, 2]
  return %1
}
"""


def test_names_and_order_do_not_count():
    d = sc.diff(ONE, OTHER)
    assert d.same and not d and str(d) == "the same, but for names and order"


def test_operands_that_do_not_commute_count():
    d = sc.diff(ONE.replace("add %1, %2", "sub %1, %2"), OTHER.replace("add %5, %7", "sub %5, %7"))
    assert len(d.changed) == 1 and not d.only_left and not d.only_right and not d.moved


def test_what_is_different_is_told_where_it_is():
    d = sc.diff(ONE, OTHER.replace("exp", "exp2"))
    assert [(a.text, b.text) for a, b in d.changed] == [("exp(x) : f64[n, 3]", "exp2(x) : f64[n, 3]")]
    assert d.moved == 3 and not d.only_left and not d.only_right
    assert "ops: exp 1 -> 0, exp2 0 -> 1" in str(d)


def test_one_more_op():
    more = ONE.replace("return %3", "%4 = sum %3 {axes = (0,)} : f64[2]\n  return %4")
    more = more.replace("(f64[n, 2])", "(f64[2])")
    d = sc.diff(ONE, more)
    assert not d.changed and not d.only_left and [r.text[:4] for r in d.only_right] == ["sum("]
    back = sc.diff(more, ONE)
    assert [r.text[:4] for r in back.only_left] == ["sum("] and not back.only_right


def test_one_more_op_in_the_middle():
    more = ONE.replace("%2 = tanh %1", "%9 = neg %1 : f64[n, 2]\n  %2 = tanh %9")
    d = sc.diff(ONE, more)
    assert [r.text[:1] for r in d.only_right] == ["-"] and not d.only_left and not d.changed


def test_inputs_and_results():
    fewer = ONE.replace("return %3", "return %3, %2").replace("-> (f64[n, 2])", "-> (f64[n, 2], f64[n, 2])")
    assert sc.diff(ONE, fewer).interface == ["1 results become 2"]
    other = ONE.replace("%w: f64[3, 2]", "state %w: f64[3, 2]")
    assert sc.diff(ONE, other).interface == ["input w: f64[3, 2] is state w: f64[3, 2]"]
    assert sc.diff(ONE, ONE.replace("%w", "%u")).interface == ["input w: f64[3, 2] is u: f64[3, 2]"]


def test_the_lines_of_the_user():
    x = sc.vector("x")
    f = sc.compile(sc.exp(x) + 1, pipeline=UNFUSED)
    g = sc.compile(sc.sin(x) + 1, pipeline=UNFUSED)
    ((a, b),) = sc.diff(f, g).changed
    assert a.lines[0].text.startswith("f = sc.compile(sc.exp") and b.lines[0].text.startswith("g = sc.compile(sc.sin")
    assert str(a).endswith(f"test_diff.py:{a.lines[0].line}")


def test_loops():
    x = sc.input("x", shape=("n", 3))

    def loop(op):
        return sc.compile(sc.scan(lambda c, row: (op(c + row), c * 2), sc.zeros(3), x), [x], pipeline="canonicalize")

    d = sc.diff(loop(sc.tanh), loop(sc.sinh))
    ((a, b),) = d.changed
    assert a.where == b.where == "scan" and a.text.startswith("tanh(") and b.text.startswith("sinh(")
    assert sc.diff(loop(sc.tanh), loop(sc.tanh)).same


def test_counts_of_plans():
    x, w = sc.input("x", shape=("n", 9)), sc.input("w", shape=(9, 9))
    f = sc.compile(sc.tanh(x @ w) @ w, [x, w])
    g = sc.compile(sc.tanh(sc.sort(x, axis=0) @ w), [x, w])
    d = sc.diff(f, g)
    products = [sum(n for op, n in c.calls.items() if op in ("dot", "gemm")) for c in (d.left, d.right)]
    assert products == [2, 1] and d.right.calls["sort"] == 1 and d.left.kernels == d.right.kernels == 1
    assert "sort 0 -> 1" in str(d) and "kernels: " not in str(d) and "*n" in d.left.peak


def test_stages():
    x = sc.vector("x")
    f = sc.compile(sc.log(1 + sc.exp(x)))
    d = f.diff("input", "stabilize")
    assert [b.text for _, b in d.changed] == ["softplus(x) : f64[_0]"]
    assert f.diff("simplify", "simplify").same and f.diff("input").left.values["exp"] == 1
    assert sc.diff(f.dump("input"), f.dump("stabilize")).changed
    with pytest.raises(sc.PipelineError, match="f has no stage 'stabilise'"):
        f.diff("input", "stabilise")


def test_numpys_diff_is_still_there():
    x = sc.vector("x")
    assert sc.compile(sc.diff(x))([1.0, 4.0, 6.0]).tolist() == [3, 2]
    assert sc.compile(sc.diff(x, 2))([1.0, 4.0, 6.0]).tolist() == [-1]
    with pytest.raises(sc.InputError, match="diff compares a function with another one, not with int"):
        sc.diff(sc.compile(x + 1))
    with pytest.raises(sc.InputError, match="not with ndarray"):
        sc.diff(ONE, np.ones(2))
    with pytest.raises(sc.ParseError):
        sc.diff(ONE, "nonsense")


def test_from_the_command_line(tmp_path, capsys):
    (tmp_path / "a.ir").write_text(ONE)
    (tmp_path / "b.ir").write_text(OTHER)
    assert main(["diff", str(tmp_path / "a.ir"), str(tmp_path / "b.ir")]) == 0
    assert capsys.readouterr().out == "the same, but for names and order\n"
    (tmp_path / "b.ir").write_text(OTHER.replace("exp", "exp2"))
    assert main(["diff", str(tmp_path / "a.ir"), str(tmp_path / "b.ir")]) == 1
    assert capsys.readouterr().out.startswith("- exp(x) : f64[n, 3]\n+ exp2(x) : f64[n, 3]\n")


def test_functions_are_the_same_as_themselves_and_differ_from_others():
    functions = [random_function(seed, 12) for seed in range(40)]
    for f, g in pairwise(functions):
        assert compare(f, f).same
        assert compare(f, g).same == (f.body is g.body)


def test_it_is_linear_in_the_size():
    x = sc.vector("x")
    y = z = x
    for k in range(3000):
        y, z = sc.sin(y) * 0.5, sc.sin(z) * (0.5 if k != 1500 else 0.25)
    f, g = (sc.compile(v, mode="reference")._compilation.source for v in (y, z))
    d = compare(f, g)
    assert len(d.changed) + len(d.only_left) + len(d.only_right) <= 3 and d.moved > 2000
