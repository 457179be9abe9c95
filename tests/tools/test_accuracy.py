"""Exact values by mpmath, the report of what optimization does to errors, and the linter for what no rule repairs."""

import contextlib

import mpmath as mp
import numpy as np
import pytest

import symc as sc
from symc.ir.op import all_ops
from symc.ir.reference import apply
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.tools.precise import PRECISION, NotPrecise, exact_function, precise_step, to_precise, ulps


def x_():
    return sc.vector("x")


# --- exact values -----------------------------------------------------------------------------------------------------

COVERED = [op for op in all_ops() if op.samples is not None]
#: Elementwise functions of reals, by their attributes.
FUNCTIONS = [(op, dict(attrs)) for op in COVERED if "elementwise" in op.traits and op.facts.exact is not None
             and "f" in op.facts.kinds and op.facts.result == "same"
             for attrs in {str(a): a for _, a in op.samples()}.values()]


def moved(function, xs, eps):
    """How far the value of a function goes when its operands are rounded: what no one who computes it can know."""
    with contextlib.suppress(TypeError):
        at = function(*xs)
        changes = [function(*xs[:k], x * (1 + mp.mpf(eps)), *xs[k + 1 :]) - at for k, x in enumerate(xs)]
        return sum(abs(c) for c in changes if mp.isfinite(c))
    return mp.mpf(0)


def test_exact_values_agree_with_the_references():
    """Every op that claims to be covered, on its own samples, where the reference is finite."""
    checked = set()
    for op in COVERED:
        for arrays, attrs in op.samples():
            if not arrays or any(np.asarray(a).dtype.kind == "c" or np.asarray(a).dtype == "f2" for a in arrays):
                continue
            leaves = [fresh_input(TensorType(np.asarray(a).dtype, np.shape(a))) for a in arrays]
            v = op(*leaves, **attrs)
            if not isinstance(v.type, TensorType) or v.dtype.kind != "f":
                continue
            try:
                with mp.workprec(PRECISION):
                    exact = precise_step(v, [to_precise(a) for a in arrays], {})
            except NotPrecise:
                continue
            got = apply(v, [np.asarray(a) for a in arrays], {}, False, None)
            assert exact.shape == got.shape, op.name
            ordinary = np.isfinite(got) & (np.abs(got) > 1e-290)
            for a in map(np.asarray, arrays):  # exact numbers have no signed zeros
                if a.shape == got.shape and a.dtype.kind == "f":
                    ordinary &= np.isfinite(a) & ~((a == 0) & np.signbit(a))
            eps = float(np.finfo(got.dtype).eps)
            for at in zip(*np.nonzero(ordinary), strict=True) if got.ndim else [()] * bool(ordinary):
                g, e = got[at], exact[at]
                if mp.isnan(e) or abs(mp.mpf(float(g)) - e) <= 16 * eps * abs(e) + mp.mpf(1e-30):
                    continue
                assert (op, attrs) in FUNCTIONS, (op.name, g, e)
                xs = [mp.mpf(float(a[at])) for a in arrays]
                assert abs(mp.mpf(float(g)) - e) <= 16 * moved(exact_function(op, attrs), xs, eps), (op.name, xs, g, e)
            checked.add(op.name)
    assert {"exp", "softplus", "logsumexp", "dot", "pad", "norm", "erfcx", "cbrt", "sum", "gather"} <= checked


def numbers(dtype, rng):
    """Of both signs and every magnitude, some where exponentials are numbers, some about 0 and 1."""
    top, n = (100, 40) if dtype == "f4" else (700, 40)
    return rng.permutation(np.concatenate([
        rng.choice([-1, 1], 2 * n) * np.exp2(rng.uniform(-30, 10, 2 * n)), rng.uniform(-top, top, n),
        rng.uniform(-30, 30, n), rng.uniform(-1, 1, n), 1 + rng.normal(size=n // 2) / 100,
        np.exp2(rng.uniform(-120, 120, n // 2))])).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("some", [[f for f in FUNCTIONS if f[0].facts.arity == n] for n in (1, 2)], ids=["1", "2"])
def test_functions_are_exact_to_some_units_in_the_last_place(some, dtype):
    """References and kernels, at numbers of every magnitude: 8 units, and 8 of what a rounded operand changes."""
    rng, arity = np.random.default_rng(0), some[0][0].facts.arity
    arrays = [numbers(dtype, rng) for _ in range(arity)]
    leaves = [sc.input(f"x{k}", dtype, ("n",)) for k in range(arity)]
    made = sc.compile([sc.Tensor(op(*[x.value for x in leaves], **attrs)) for op, attrs in some], leaves)(*arrays)
    info, wrong = np.finfo(dtype), {}
    for (op, attrs), kernel in zip(some, made, strict=True):
        with np.errstate(all="ignore"):
            reference = op.reference(*arrays, **attrs)
        with mp.workprec(PRECISION):
            function = exact_function(op, attrs)
            for k, row in enumerate(zip(*arrays, strict=True)):
                xs = [mp.mpf(float(x)) for x in row]
                want = function(*xs)
                if mp.isnan(want) or not float(info.smallest_normal) < abs(want) < float(info.max):
                    continue
                near = np.dtype(dtype).type(float(want))
                for by, got in (("the reference", reference[k]), ("the kernel", kernel[k])):
                    error = abs(mp.mpf(float(got)) - want)
                    if error > 8 * float(np.spacing(abs(near))) and error > 8 * (
                            float(np.spacing(abs(near))) + moved(function, xs, float(info.eps))):
                        wrong.setdefault((op.name, by), (row, got, near))
    assert not wrong


def test_ulps_count_units_of_the_dtype():
    one = to_precise(np.array([1.0, 1.0, 0.0, 2.0, np.nan, 800.0, -np.inf]))
    got = np.array([1.0, 1 + 3 * 2.0**-52, 5e-324, np.inf, np.nan, 800.0, -np.inf])
    assert ulps(got, one, np.dtype("f8")).tolist() == [0, 3, 1, np.inf, 0, 0, 0]
    beyond = np.array([mp.mpf(10) ** 400], object)
    assert ulps(np.array([np.inf]), beyond, np.dtype("f8")).tolist() == [0]
    assert ulps(np.array([1.0]), beyond, np.dtype("f8")).tolist() == [np.inf]


# --- the report -------------------------------------------------------------------------------------------------------


def test_the_report_shows_what_a_rule_repairs(capsys):
    x = x_()
    f = sc.compile({"loss": sc.log(1 + sc.exp(x)), "sign": x > 0}, accuracy_report=True)
    report = f.accuracy()
    loss, sign = report.outputs
    assert loss.written.lost > 0 and loss.optimized.lost == 0 and loss.optimized.worst < 4
    assert sign.why == "it is not of real numbers"
    text = capsys.readouterr().out
    assert "out['loss'] float64" in text and "optimized" in text and str(report) in text


def test_the_report_does_not_touch_states():
    x, w = x_(), sc.shared(np.ones(3), "w")
    f = sc.compile(sc.sum(w) * x, updates={w: w * 0.5}, mode="reference")
    f.accuracy()
    assert w.get_value().tolist() == [1, 1, 1]


def test_the_report_says_why_it_has_no_numbers():
    last, _ = sc.scan(lambda c, t: (c * t, None), sc.scalar("s"), x_())
    assert "scan has no exact counterpart" in str(sc.compile(last, mode="reference").accuracy())


# --- the linter -------------------------------------------------------------------------------------------------------


def test_lint_is_silent_about_what_is_stable_or_made_stable():
    x, m = x_(), sc.matrix("m")
    good = [sc.log(1 + sc.exp(x)), sc.mean(x * x) - sc.mean(x) ** 2, x * 2 + 1, sc.tanh(x), m @ m, x - x[::-1],
            sc.log(sc.sum(sc.exp(m), axis=1)), sc.sum(x)]  # fmt: skip
    for e in good:
        assert not sc.lint(e), str(sc.lint(e))
    assert str(sc.lint(good[0])) == "nothing found that loses digits"


CASES = {
    "cancels": (lambda x: sc.exp(sc.tanh(x)) - sc.exp(sc.sin(x)), "its terms cancel"),
    "overflows": (lambda x: sc.exp(x) / (3 + sc.exp(x) * x * x), "overflows although the result need not"),
    "underflows": (lambda x: sc.sqrt(sc.exp(x) * 3.0), "flows although the result need not"),
    "magnifies": (lambda x: sc.sin(x * 1e6 + 1), "magnifies the rounding of its operands"),
}


@pytest.mark.parametrize("name", CASES)
def test_lint_names_what_loses_digits_and_the_line(name):
    build, what = CASES[name]
    (finding, *_) = sc.lint(build(x_()))
    assert what in finding.what and finding.digits > 2
    assert any(loc.file.endswith("test_accuracy.py") for loc in finding.lines)
    assert "x" in finding.expression and "x0" not in finding.expression


def test_lint_looks_into_loops():
    c, _ = sc.scan(lambda c, t: (sc.exp(sc.tanh(c)) - sc.exp(sc.sin(c)) + t, None), sc.scalar("s"), x_())
    assert any("cancel" in f.what for f in sc.lint(c))


def test_lint_believes_what_is_assumed():
    x = x_()
    risky = lambda x: sc.exp(sc.tanh(x) + 20.0) - sc.exp(20.0 * sc.cos(x))
    assert sc.lint(risky(x))
    assert not sc.lint(risky(sc.assume(x, between=(2.0, 3.0))))


DOUBLES = {
    "list": lambda v: v * [1.0, 2.0],
    "numpy scalar": lambda v: v / np.sqrt(2),
    "state": lambda v: v * sc.shared(np.float64(0.1), "w"),
    "mean of integers": lambda v: sc.mean(sc.input("i", "int64", ("n",))) + v,
    "loop": lambda v: sc.scan(lambda c, t: (c * np.float64(2.5) + t, None), np.float64(0), v)[0],
    "constant alone": lambda v: [v, sc.asarray([1.0, 2.0])],
    "cast": lambda v: v.astype("float64").sum().astype("float32"),
}


@pytest.mark.parametrize("name", DOUBLES)
def test_lint_says_where_float64_arises(name):
    v = sc.input("v", "float32", ("n",))
    findings = [f for f in sc.lint(DOUBLES[name](v)) if "float64 arises here" in f.what]
    assert findings
    if name != "constant alone":
        assert any(loc.file.endswith("test_accuracy.py") for f in findings for loc in f.lines)
    assert not sc.lint(v * 2.5 + v.shape[0]) and not sc.lint(sc.vector("w") * v * np.sqrt(2))


def test_lint_needs_types():
    with pytest.raises(sc.SymcError, match="not known before a call"):
        sc.lint(sc.Variable("A"))
