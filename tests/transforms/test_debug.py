"""``sc.debug``: what is printed, checked and stopped at takes place once, in order, whatever the optimizer does."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import symc as sc
from symc.ir.function import Input, function
from symc.ir.op import lookup, unregister
from symc.ir.traverse import postorder, replace
from symc.opt import all_rules, optimize

MODES = ["reference", "default", "fast_compile", "debug"]


def printed(call) -> list[str]:
    """What is printed, without the lines."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call()
    return [re.sub(r"^test_debug\.py:\d+", "@", line) for line in out.getvalue().splitlines()]


@pytest.fixture
def hooks():
    before = sc.debug.hooks.print, sc.debug.hooks.breakpoint
    yield sc.debug.hooks
    sc.debug.hooks.print, sc.debug.hooks.breakpoint = before


@pytest.mark.parametrize("mode", MODES)
def test_print_gives_its_argument_and_names_the_line(mode):
    x = sc.vector("x")
    y = sc.debug.print(x * 2, "y {} s {s:.2f} {}", x.sum(), s=x.sum())
    f = sc.compile(sc.exp(y) + 1, [x], mode=mode)
    assert printed(lambda: np.testing.assert_allclose(f([0.0, 1.0]), np.exp([0.0, 2.0]) + 1)) == [
        "@: y [0. 2.] s 1.00 1.0"
    ]


@pytest.mark.parametrize("mode", MODES)
def test_effects_keep_the_order_of_the_program(mode):
    a = sc.scalar("a")
    first, second = sc.debug.print(a, "first"), sc.debug.print(a, "second")
    third, fourth = sc.debug.print(second * a, "third"), sc.debug.print(sc.exp(a), "fourth")
    for outputs in ([fourth, third, second, first], [second + third, first * fourth]):
        f = sc.compile(outputs, [a], mode=mode)
        assert printed(lambda f=f: f(1.0)) == ["@: first", "@: second", "@: third", "@: fourth"]


def test_the_order_is_kept_in_plans_with_many_steps():
    x = sc.matrix("x")
    marks, y = [], x
    for k in range(20):
        y = sc.cumsum(y, axis=k % 2)
        marks.append(sc.debug.print(sc.sum(y * 0), str(k)))
    f = sc.compile(marks[::-1], [x])
    assert printed(lambda: f(np.ones((2, 2)))) == [f"@: {k}" for k in range(20)]


@pytest.mark.parametrize("mode", MODES)
def test_what_rules_drop_still_takes_place(mode):
    k = sc.vector("k", "int64")
    f = sc.compile([sc.debug.print(k, "k {}") * 0, sc.debug.assert_(k, k > 0) - k], [k], mode=mode)
    assert printed(lambda: f([1, 2])) == ["@: k [1 2]"]
    with pytest.raises(sc.AssertError), contextlib.redirect_stdout(io.StringIO()):
        f([1, -2])


def test_no_rule_removes_an_effect():
    """Every rule of the default pipeline, on its own examples with a print around each leaf."""
    out = [(r.name, v) for r in all_rules() if r.family != "debug" for v in r.examples()]
    assert len(out) > 100
    for start in range(0, len(out), 20):
        some = out[start : start + 20]  # as the results of one function: they have no leaf in common
        if _prints_dropped([v for _, v in some]):
            assert not [name for name, v in some if _prints_dropped([v])]
            raise AssertionError(f"a print of {some} is dropped where they are together")


def _prints_dropped(roots):
    """How many of the prints around all leaves the default pipeline drops."""
    leaves = [x for x in _leaves(roots) if x.type.dtype.kind in "biufc"]
    attrs = dict(format="{}", names=(), line="", batch=0)
    marked = {x: lookup("print")(x, serial=k, **attrs) for k, x in enumerate(leaves)}
    f = function("f", [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)], replace(roots, marked))
    before, after = (sum(u.op.name == "print" for u in g.values()) for g in (f, optimize(f, strict=True).function))
    return before - after


def _leaves(roots):
    return [x for x in postorder(roots) if x.op.name == "input"]


def test_equal_prints_are_two_and_unused_ones_are_none():
    x = sc.scalar("x")
    sc.debug.print(x, "unused")
    f = sc.compile([sc.debug.print(x, "same"), sc.debug.print(x, "same")], [x])
    assert printed(lambda: f(1.0)) == ["@: same", "@: same"]


def test_a_print_splits_a_kernel_and_nothing_else():
    x = sc.vector("x")
    assert len(sc.compile(sc.exp(sc.sin(x) * 2) + 1).kernels) == 1
    assert len(sc.compile(sc.exp(sc.debug.print(sc.sin(x)) * 2) + 1).kernels) == 2


@pytest.mark.parametrize("mode", ["reference", "default"])
def test_once_a_step_in_loops(mode):
    x, w = sc.vector("x"), sc.scalar("w")

    def step(c, r):
        c = sc.debug.print(c * w + r, "c {:.2f}")
        constant = sc.debug.print(w, "w {}")  # does not depend on the step, and is printed in each
        return c * constant, c

    f = sc.compile(sc.scan(step, 0.0, x), [x, w], mode=mode)
    assert printed(lambda: f([1.0, 2.0], 0.5)) == ["@: c 1.00", "@: w 0.5", "@: c 2.25", "@: w 0.5"]


@pytest.mark.parametrize("mode", ["reference", "default"])
def test_effects_in_what_is_computed_again_take_place_once(mode):
    seen = []
    log = sc.op(lambda v: seen.append(float(v)), name="log_to_list", effect=True)
    x, w = sc.vector("x"), sc.scalar("w")
    loss, _ = sc.scan(lambda c, r: (sc.tanh(log(c * w + r)), None), w, x)
    again = sc.checkpoint(lambda v: sc.exp(log(v)))(w)
    f = sc.compile([loss, sc.grad(loss, w), sc.grad(again, w)], [x, w], mode=mode)
    f([1.0, 2.0], 0.5)
    unregister("log_to_list")
    assert len(seen) == 3 and seen.count(0.5) == 1


def twice(v):
    return v, v


LOOPS = {
    "rows": lambda x, w: sc.scan(lambda c, r: (c + r, sc.debug.print(r * 2, "r {}")), 0.0, x),
    "rows that nobody reads": lambda x, w: sc.scan(lambda c, r: (c + r, sc.debug.print(r * 2, "r {}")), 0.0, x)[0],
    "the last of all": lambda x, w: sc.scan(lambda c, r: twice(sc.debug.print(c + r, "c {}")), 0.0, x)[1][-1],
    "a known number of steps": lambda x, w: sc.scan(lambda c, _: (sc.debug.print(c * 2), None), w, length=3)[0],
    "a constant": lambda x, w: sc.scan(lambda c, _: (c + sc.debug.print(w), None), w, length=3)[0],
    "two loops": lambda x, w: [sc.scan(lambda c, r: (c + sc.debug.print(r, "a {}"), None), 0.0, x)[0],
                               sc.scan(lambda c, r: (c * sc.debug.print(r, "b {}"), None), 1.0, x)[0]],
    "a condition": lambda x, w: sc.while_loop(lambda c: sc.debug.print(c, "t {}") < 3, lambda c: c + 1, w),
    "a map": lambda x, w: sc.map(lambda r: sc.debug.print(r, "m {}"), x),
    "a branch in a loop": lambda x, w: sc.scan(
        lambda c, r: (sc.cond(r > 1, lambda v: sc.debug.print(v), lambda v: v, c + r), None), 0.0, x)[0],
    "a loop in a loop": lambda x, w: sc.scan(
        lambda c, r: (sc.scan(lambda d, s: (sc.debug.print(d + s * r), None), c, x)[0], None), 0.0, x)[0],
    "a gradient": lambda x, w: sc.grad(
        sc.scan(lambda c, r: (sc.tanh(sc.debug.print(c * w + r)), None), w, x)[0], w),
    "a batch": lambda x, w: sc.vmap(
        lambda b: sc.scan(lambda c, r: (sc.debug.print(c + r, "{}"), None), b, x)[0])(x),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_print_the_same_however_they_are_optimized(name):
    x, w = sc.vector("x"), sc.scalar("w")
    lines = []
    for mode in MODES:
        f = sc.compile(LOOPS[name](x, w), [x, w], mode=mode)
        lines.append(printed(lambda f=f: f([1.0, 2.0], 0.5)))
    assert lines[0] and lines.count(lines[0]) == len(MODES), lines


@pytest.mark.parametrize("mode", ["reference", "default"])
def test_in_the_branch_that_runs(mode):
    w = sc.scalar("w")
    out = sc.cond(w > 0, lambda a: sc.debug.print(a, "+"), lambda a: sc.debug.assert_(a, False, "negative"), w)
    f = sc.compile(out, [w], mode=mode)
    assert printed(lambda: f(1.0)) == ["@: +"]
    with pytest.raises(sc.AssertError, match="negative"):
        f(-1.0)


@pytest.mark.parametrize("mode", ["reference", "default"])
def test_batches_print_every_entry(mode):
    x = sc.matrix("x")
    f = sc.compile(sc.vmap(lambda row: sc.debug.print(row.sum(), "sum {}"))(x), mode=mode)
    assert printed(lambda: f([[1, 2], [3, 4]])) == ["@ [0]: sum 3.0", "@ [1]: sum 7.0"]
    g = sc.compile(sc.vmap(lambda row: sc.debug.assert_(row, row > 0, "positive"))(x), mode=mode)
    with pytest.raises(sc.AssertError, match=r"assert_ \[1\]: positive\n *at \[1\] = -4.0"):
        g([[1, 2], [3, -4]])


def test_derivatives_pass_through():
    x = sc.vector("x")
    y = sc.sum(sc.exp(sc.debug.assert_(sc.debug.print(x, "x"), x < 9)))
    f = sc.compile([sc.grad(y, x), sc.hvp(y, x, sc.ones_like(x))], [x])
    assert printed(lambda: np.testing.assert_allclose(f([0.0, 1.0]), [np.exp([0.0, 1.0])] * 2)) == ["@: x"]


def test_what_is_only_shown_has_no_part_in_the_derivative():
    x, y = sc.scalar("x"), sc.scalar("y")
    f = sc.compile(sc.grad(sc.debug.print(x * x, "{} {y}", y=y), [x, y], disconnected="zero"), [x, y])
    with contextlib.redirect_stdout(io.StringIO()):
        assert f(3.0, 1.0) == [6.0, 0.0]


@pytest.mark.parametrize("mode", ["reference", "default"])
def test_assertions_show_where_and_what(mode):
    x = sc.vector("x")
    f = sc.compile(sc.sqrt(sc.debug.assert_(x, x >= 0, "roots of negative numbers", least=x.min())), [x], mode=mode)
    assert f([4.0]).tolist() == [2.0]
    with pytest.raises(sc.AssertError) as e:
        f([1.0, -1.0, 2.0, -3.0])
    text = str(e.value)
    assert text.startswith("assert_: roots of negative numbers\n    at [1] = -1.0, [3] = -3.0\n    least = -3.0")
    assert re.search(r"in test_debug\.py:\d+ +f = sc\.compile\(sc\.sqrt\(sc\.debug\.assert_", text)
    assert isinstance(e.value, AssertionError) and isinstance(e.value, sc.ExecutionError)


def test_long_failures_are_cut_short():
    x = sc.vector("x")
    f = sc.compile(sc.debug.assert_(x, x.sum() > 0), mode="reference")
    with pytest.raises(sc.AssertError, match=r"value = float64\[100\] between -1.0 and -1.0"):
        f(-np.ones(100))
    g = sc.compile(sc.debug.assert_(x, x > 0), mode="reference")
    with pytest.raises(sc.AssertError, match=r"at \[0\] = -1.0, .* \[4\] = -1.0, and 95 more"):
        g(-np.ones(100))


def test_a_failed_assertion_leaves_state_as_it_was():
    x, w = sc.scalar("x"), sc.shared(np.zeros(2), "w")
    f = sc.compile(sc.debug.assert_(x, x > 0), [x], updates={w: w + x})
    f(1.0)
    with pytest.raises(sc.AssertError):
        f(-1.0)
    assert w.get_value().tolist() == [1, 1]


def test_hooks(hooks):
    lines, stops = [], []
    hooks.print = lines.append
    hooks.breakpoint = lambda arrays, line: stops.append((arrays, line))
    x = sc.vector("x")
    f = sc.compile(sc.debug.breakpoint(sc.debug.print(x), half=x / 2) * 2, [x])
    assert f([2.0]).tolist() == [4.0]
    assert len(lines) == 1 and re.fullmatch(r"test_debug\.py:\d+: \[2\.\]", lines[0])
    ((arrays, line),) = stops
    assert arrays["x"].tolist() == [2.0] and arrays["half"].tolist() == [1.0] and line.startswith("test_debug.py:")
    assert not arrays["x"].flags.writeable


def test_the_breakpoint_opens_pdb_with_the_arrays():
    program = textwrap.dedent("""
        import symc as sc
        x = sc.vector("x")
        print(sc.compile(sc.debug.breakpoint(x * 2, base=x) + 1)([1.0, 2.0]))
    """)
    run = subprocess.run(
        [sys.executable, "-c", program], input="p x + base\nc\n", capture_output=True, text=True, check=True
    )
    assert "array([3., 6.])" in run.stdout and "[3. 5.]" in run.stdout


def test_strip_debug_takes_all_of_it_out():
    x = sc.vector("x")
    y = sc.debug.assert_(sc.debug.breakpoint(sc.debug.print(x * 2)), x > 0)
    _, z = sc.scan(lambda c, r: (c, sc.debug.print(r)), 0.0, y)
    f = sc.compile(z + 1, [x], pipeline="strip_debug," + sc.opt.DEFAULT)
    assert printed(lambda: np.testing.assert_array_equal(f([-1.0]), [-1.0])) == []
    assert not re.search("print|assert|breakpoint", f.dump())
    assert "print" in f.dump("input")


def test_dumps_are_programs():
    x = sc.vector("x")
    f = sc.compile(sc.debug.print(x, 'a "quoted" {}'), mode="reference")
    text = f.dump()
    assert sc.parse(text).body is sc.parse(str(sc.parse(text))).body
    assert 'format = "a \\"quoted\\" {}"' in text


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: sc.debug.print(x, "{} {}"), sc.InputError, "the format '{} {}' does not fit: IndexError"),
    (lambda x: sc.debug.print(x, "{y}"), sc.InputError, "the format '{y}' does not fit: KeyError: 'y'"),
    (lambda x: sc.debug.print(x, "{:.2f}"), sc.InputError, "unsupported format string"),
    (lambda x: sc.debug.assert_(x, x), sc.DTypeError, "the condition must be boolean, not float64"),
    (lambda x: sc.debug.breakpoint(x, **{"x": x}), sc.InputError, "x is the name of the first array"),
])  # fmt: skip
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text) as e:
        call(sc.vector("x"))
    assert "test_debug.py" in str(e.value)
