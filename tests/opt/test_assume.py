"""``sc.assume``: what can be promised, what rules make of it, that it leaves nothing behind, and that it is checked."""

import numpy as np
import pytest

import symc as sc
from symc.errors import AssertError, DTypeError, InputError, ShapeError
from symc.ir.traverse import every_value
from symc.opt import all_rules
from symc.opt.engine.pipelines import FAST_COMPILE, STABLE, UNFUSED

x, y, A = sc.vector("x"), sc.vector("y"), sc.matrix("A")


def final(out, inputs, **options):
    return sc.compile(out, inputs, mode="reference", pipeline=UNFUSED, **options)


def ops(f):
    return {v.op.name for v in every_value(f._compilation.final.body) if v.operands} - {"broadcast", "get"}


def fired(f):
    return {r.rule for r in f._compilation.notes.provenance.firings}


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "error", "says"), [
    (lambda: sc.assume(x, positve=True), InputError, "did you mean 'positive'"),
    (lambda: sc.assume(x, lower=True), InputError, "it is called lower_triangular"),
    (lambda: sc.assume(x, spd=True), InputError, "it is called pd"),
    (lambda: sc.assume(x, positive=False), InputError, "promises nothing"),
    (lambda: sc.assume(x, positive=True, negative=True), InputError, "both positive and negative"),
    (lambda: sc.assume(x, nonnegative=True, negative=True), InputError, "both nonnegative and negative"),
    (lambda: sc.assume(A, pd=True, negative=True), InputError, "diagonal"),
    (lambda: sc.assume(x, between=3), InputError, "pair of numbers"),
    (lambda: sc.assume(x, between=(2, 1)), InputError, "no number is between 2 and 1"),
    (lambda: sc.assume(x, between=(np.nan, 1)), InputError, "nan is no end"),
    (lambda: sc.assume(x, between=(-2, -1), positive=True), InputError, "contradicts"),
    (lambda: sc.assume(x, symmetric=True), ShapeError, "two axes are needed"),
    (lambda: sc.assume(sc.scalar("s"), sorted=True), ShapeError, "along an axis"),
    (lambda: sc.assume(sc.input("R", shape=(2, 3)), pd=True), ShapeError, "square"),
    (lambda: sc.assume(sc.input("z", "complex128"), positive=True), DTypeError, "no meaning for complex128"),
    (lambda: sc.assume(x > 0, integer=True), DTypeError, "no meaning for bool"),
    (lambda: sc.assume(sc.exp(x), negative=True), InputError, "every element is at least 0"),
    (lambda: sc.assume(sc.tanh(x), between=(2, 3)), InputError, "between -1"),
    (lambda: sc.assume(abs(x) + 1, between=(-1, 0.5)), InputError, "at least 1"),
])  # fmt: skip
def test_mistakes_say_what_is_wrong(make, error, says):
    with pytest.raises(error) as e:
        make()
    assert says in str(e.value) and "test_assume.py" in str(e.value)


def test_what_has_a_meaning_is_accepted():
    R = sc.input("R", shape=(2, 3))
    sc.assume(R, lower_triangular=True, finite=True)
    sc.assume(A, symmetric=True, positive_semidefinite=True, nonnegative=True)
    sc.assume(sc.input("i", "int64", shape=(4,)), between=(0, 9), unique=True, sorted=True)
    sc.assume(sc.input("z", "complex128", shape=(2, 2)), unitary=True, finite=True, nonzero=True)
    assert sc.assume(x).value is x.value
    assert sc.assume([1.0, 2.0], positive=True).shape == (2,)


# --- what becomes of it -----------------------------------------------------------------------------------------------

POSITIVE = {"positive": True}
SIMPLER = {
    "abs(x)": (lambda p: abs(p), POSITIVE, set()),
    "abs(x), negative": (lambda p: abs(p), {"negative": True}, {"neg"}),
    "sqrt(x*x)": (lambda p: sc.sqrt(p * p), {"nonnegative": True}, set()),
    "sqrt(x**2)": (lambda p: sc.sqrt(p**2), POSITIVE, set()),
    "sign(x)": (lambda p: sc.sign(p) * p, POSITIVE, set()),
    "sign(x), negative": (lambda p: sc.sign(p) * p, {"negative": True}, {"neg"}),
    "relu(x)": (lambda p: sc.maximum(p, 0), POSITIVE, set()),
    "clip(x, 0, 1)": (lambda p: sc.clip(p, 0, 1), {"between": (0, 1)}, set()),
    "clip(x, 0, 1), below": (lambda p: sc.clip(p, 0, 1), {"nonnegative": True}, {"minimum"}),
    "where(x > 0, x, -x)": (lambda p: sc.where(p > 0, p, -p), POSITIVE, set()),
    "where(x < 0, 0, x)": (lambda p: sc.where(p < 0, 0, p), {"nonnegative": True}, set()),
    "where(isnan(x), 0, x)": (lambda p: sc.where(sc.isnan(p), 0, p), {"finite": True}, set()),
    "nan_to_num(x)": (lambda p: sc.where(sc.isfinite(p), p, 0), {"finite": True}, set()),
    "exp(log(x))": (lambda p: sc.exp(sc.log(p)), {"nonnegative": True}, set()),
    "exp(2*log(x))": (lambda p: sc.exp(2 * sc.log(p)), POSITIVE, {"mul"}),
    "sqrt(x)**2": (lambda p: sc.sqrt(p) ** 2, {"nonnegative": True}, set()),
    "x / sqrt(x)": (lambda p: p / sc.sqrt(p), {**POSITIVE, "finite": True}, {"sqrt"}),
    "log(prod(x))": (lambda p: sc.log(sc.prod(p)), POSITIVE, {"log", "sum"}),
    "log(x**y)": (lambda p: sc.log(p ** (p + 1)), {**POSITIVE, "finite": True}, {"log", "add", "mulz"}),
    "log(sqrt(x))": (lambda p: sc.log(sc.sqrt(p)), POSITIVE, {"log", "mul"}),
    "log(1/x)": (lambda p: sc.log(1 / p), POSITIVE, {"log", "neg"}),
    "floor(x)": (lambda p: sc.floor(p), {"integer": True}, set()),
    "round(x)": (lambda p: sc.round(p), {"integer": True}, set()),
    "x.astype(int).astype(float)": (lambda p: p.astype("int64").astype("float64"),
                                    {"integer": True, "between": (0, 1000)}, set()),
    "x % 1": (lambda p: p % 1, {"between": (0, 0.5)}, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", SIMPLER)
def test_simpler(name):
    make, promises, left = SIMPLER[name]
    numbers = np.array([0.25, 0.5, 0.125])
    if "integer" in promises:
        numbers = np.array([1.0, 3.0, 2.0])
    numbers = -numbers if "negative" in promises else numbers
    f = final(make(sc.assume(x, **promises)), [x])
    assert ops(f) == left
    want = sc.compile(make(x), [x], mode="reference", pipeline="")(numbers)
    assert np.allclose(f(numbers), want, rtol=1e-14, atol=1e-14)
    plain = final(make(x), [x])
    assert name in ("log(sqrt(x))", "log(1/x)", "exp(2*log(x))") or ops(plain) != left  # without the promise it stays


DERIVED = {
    "relu of exp": (lambda: sc.maximum(sc.exp(x), 0), {"exp"}),
    "abs of a square": (lambda: abs(x * x), {"mul"}),
    "sqrt of a sum of squares, clipped": (lambda: sc.maximum(sc.sum(x * x), 0), {"mul", "sum"}),
    "clip of sigmoid": (lambda: sc.clip(1 / (1 + sc.exp(-x)), 0, 1), {"sigmoid"}),
    "clip of tanh": (lambda: sc.clip(sc.tanh(x), -1, 1), {"tanh"}),
    "where of softplus": (lambda: sc.where(sc.log1p(sc.exp(x)) < 0, 0.0, x), set()),
    "abs of relu": (lambda: abs(sc.maximum(x, 0)), {"maximum"}),
    "floor of floor": (lambda: sc.floor(3 * sc.floor(x)), {"floor", "mul"}),
    "isnan of a count": (lambda: sc.where(sc.isnan(sc.arange(3.0)), x, 2 * x), {"mul"}),
    "sign of variance": (lambda: sc.maximum(sc.var(x), 0.0), None),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVED)
def test_facts_are_worked_out(name):
    make, left = DERIVED[name]
    f = final(make(), [x])
    names = ops(f)
    assert names == left if left is not None else not names & {"maximum", "where"}
    assert np.allclose(f(np.array([0.5, -1.25, 2.0])),
                       sc.compile(make(), [x], mode="reference", pipeline="")(np.array([0.5, -1.25, 2.0])))


def test_a_nan_that_came_in_stays():
    """exp(x) is nonnegative, and may be nan: what rules make of it keeps that."""
    nan = np.array([np.nan, 1.0])
    for make in (lambda: sc.maximum(sc.exp(x), 0), lambda: abs(sc.exp(x)), lambda: sc.exp(sc.log(abs(x))),
                 lambda: sc.sqrt(sc.exp(x)) ** 2, lambda: sc.log(sc.prod(abs(x)))):
        assert np.isnan(np.asarray(final(make(), [x])(nan)).flat[0])
    f = final(sc.where(sc.exp(x) >= 0, 1.0, 2.0), [x])
    assert f(nan).tolist() == [2.0, 1.0]


def test_probabilities_multiply_without_underflow():
    p, q = sc.assume(x, between=(0, 1)), sc.assume(y, between=(0, 1))
    f = final(sc.log(p * q), [x, y])
    tiny = np.array([1e-200])
    assert np.allclose(f(tiny, tiny), 2 * np.log(1e-200))
    g = final(sc.log(x * y), [x, y])
    assert np.isinf(g(tiny, tiny)).all()


def test_gradients_are_those_of_the_values():
    """The derivative of an assumption is that of the identity, also by the assumed value itself."""
    p = sc.assume(x, positive=True)
    for wrt in (x, p):
        f = final(sc.grad(sc.sum(sc.log(sc.prod(p)) + abs(p)), wrt), [x])
        numbers = np.array([0.5, 2.0, 3.0])
        assert np.allclose(f(numbers), 3 / numbers + 1)
    jvp = sc.jvp(sc.sin(p), x, x)
    assert np.allclose(final(jvp, [x])(np.array([0.5, 1.0, 2.0])), np.cos([0.5, 1.0, 2.0]) * [0.5, 1.0, 2.0])


def test_structure_of_a_promise_survives_vmap():
    def solve(a, b):
        return sc.linalg.solve(sc.assume(a, pd=True), b)

    S, b = sc.input("S", shape=("k", 3, 3)), sc.input("b", shape=("k", 3))
    f = final(sc.vmap(solve)(S, b), [S, b])
    assert "cholesky" in ops(f) and "lu_factor" not in ops(f)
    m = np.stack([np.eye(3) * k for k in (1.0, 2.0)])
    assert np.allclose(f(m, np.ones((2, 3))), [[1, 1, 1], [0.5, 0.5, 0.5]])


def test_patterns_look_through():
    """An assumption about a part does not hide what it is part of."""
    f = final(sc.log(1 + sc.assume(sc.exp(x), finite=True)), [x])
    assert ops(f) == {"softplus"}
    g = final(sc.log(sc.assume(sc.sum(sc.exp(A), 1), positive=True)), [A])
    assert np.isfinite(g(np.full((2, 3), 1000.0))).all()


@pytest.mark.parametrize("pipeline", [UNFUSED, FAST_COMPILE])
def test_nothing_is_left_of_it(pipeline):
    def step(c, row):
        return c + sc.assume(row, finite=True), sc.assume(c, between=(-9, 9))

    out = [sc.assume(x, finite=True), sc.sin(sc.assume(x, between=(-5, 5))) + sc.sin(x), sc.scan(step, 0.0, x)]
    f = sc.compile(out, [x], mode="reference", pipeline=pipeline)
    names = [v.op.name for v in every_value(f._compilation.final.body)]
    assert "assume" not in names
    assert names.count("sin") <= 1  # the value and the promise about it are one again


def test_an_assumption_costs_nothing_compiled():
    f = sc.compile(sc.sum(sc.assume(x, positive=True) * 2), [x])
    g = sc.compile(sc.sum(x * 2), [x])
    assert len(f._compilation.plan.steps) == len(g._compilation.plan.steps)
    assert f(np.array([1.0, 2.0])) == 6.0


# --- inside loops -----------------------------------------------------------------------------------------------------


def test_facts_of_rows_captures_and_carries():
    rate = sc.assume(sc.scalar("r"), positive=True)

    def step(c, row):
        new = c + abs(row) * abs(rate)  # a sum of what is nonnegative, from 0 on
        return new, sc.maximum(new, 0.0) + abs(row)

    out = sc.scan(step, 0.0, sc.assume(x, nonnegative=True))[1]
    f = sc.compile(out, mode="reference", pipeline=UNFUSED + ",-unroll")
    assert not ops(f) & {"abs", "maximum"}


def test_a_carry_whose_sign_changes_is_not_known():
    def step(c, row):
        return row - c, abs(c)

    f = final(sc.scan(step, 0.0, sc.assume(x, nonnegative=True))[1], [x])
    assert "abs" in ops(f)
    assert f(np.array([1.0, 0.0, 0.0])).tolist() == [0.0, 1.0, 1.0]


# --- checking ---------------------------------------------------------------------------------------------------------

BROKEN = {
    "positive": (lambda: sc.assume(x, positive=True), [1.0, 0.0, 2.0], "x[1] = 0.0"),
    "nonnegative": (lambda: sc.assume(x, nonnegative=True), [1.0, -1.0, -2.0], "x[1] = -1.0, and at 1 more place"),
    "negative": (lambda: sc.assume(x, negative=True), [-1.0, -1.0, 2.0], "x[2] = 2.0"),
    "nonpositive": (lambda: sc.assume(x, nonpositive=True), [-1.0, 0.5], "x[1] = 0.5"),
    "nonzero": (lambda: sc.assume(x, nonzero=True), [1.0, 0.0], "x[1] = 0.0"),
    "a whole number": (lambda: sc.assume(x, integer=True), [1.0, 1.5], "x[1] = 1.5"),
    "at most 3": (lambda: sc.assume(x, between=(0, 3)), [1.0, 4.0], "x[1] = 4.0"),
    "at least 2": (lambda: sc.assume(x, between=(2, 3)), [1.0, 2.0], "x[0] = 1.0"),
    "symmetric": (lambda: sc.assume(A, symmetric=True), [[1.0, 2.0], [2.5, 1.0]], "x[0, 1] = 2.0"),
    "pd": (lambda: sc.assume(A, pd=True), [[1.0, 2.0], [2.0, 1.0]], "the matrix x of shape [2, 2]"),
    "psd": (lambda: sc.assume(A, psd=True), [[1.0, 2.0], [2.0, 1.0]], "the matrix x"),
    "lower": (lambda: sc.assume(A, lower_triangular=True), [[1.0, 2.0], [2.0, 1.0]], "x[0, 1] = 2.0"),
    "upper": (lambda: sc.assume(A, upper_triangular=True), [[1.0, 2.0], [2.0, 1.0]], "x[1, 0] = 2.0"),
    "diagonal": (lambda: sc.assume(A, diagonal=True), [[1.0, 0.0], [2.0, 1.0]], "x[1, 0] = 2.0"),
    "unit": (lambda: sc.assume(A, unit_diagonal=True), [[1.0, 0.0], [2.0, 3.0]], "x[1, 1] = 3.0"),
    "orthogonal": (lambda: sc.assume(A, orthogonal=True), [[1.0, 1.0], [0.0, 1.0]], "x["),
    "permutation": (lambda: sc.assume(A, permutation=True), [[1.0, 0.0], [1.0, 0.0]], "the matrix x"),
    "unique": (lambda: sc.assume(x, unique=True), [3.0, 1.0, 3.0], "x[2] = 3.0"),
    "sorted": (lambda: sc.assume(x, sorted=True), [1.0, 3.0, 2.0], "x[2] = 2.0"),
}  # fmt: skip
KEPT = {"symmetric": [[1.0, 2.0], [2.0, 3.0]], "pd": [[2.0, 1.0], [1.0, 2.0]], "psd": [[1.0, 1.0], [1.0, 1.0]],
        "lower": [[1.0, 0.0], [2.0, 1.0]], "upper": [[1.0, 2.0], [0.0, 1.0]], "diagonal": [[1.0, 0.0], [0.0, 2.0]],
        "unit": [[1.0, 5.0], [2.0, 1.0]], "orthogonal": [[0.6, 0.8], [-0.8, 0.6]],
        "permutation": [[0.0, 1.0], [1.0, 0.0]], "unique": [3.0, 1.0], "sorted": [1.0, 1.0], "negative": [-1.0],
        "nonpositive": [0.0, -2.0], "at most 3": [3.0, 0.0], "at least 2": [2.0, 3.0]}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_nan_guard_checks_what_is_assumed(name):
    make, wrong, place = BROKEN[name]
    v = sc.sum(make())
    leaf = A if np.ndim(wrong) == 2 else x
    f = sc.compile(v, [leaf], mode="nan_guard")
    with pytest.raises(AssertError) as e:
        f(np.array(wrong))
    assert name in str(e.value) and place in str(e.value) and "test_assume.py" in str(e.value)
    right = np.array(KEPT.get(name, [1.0, 2.0]))
    assert np.isclose(f(right), right.sum())


def test_debug_mode_checks_and_the_default_does_not():
    out = sc.log(sc.assume(x, positive=True))
    debug = sc.compile(out, [x], mode="debug")
    assert debug(np.array([1.0])) == [0.0]
    with pytest.raises(AssertError, match="x is not positive"):
        debug(np.array([1.0, -2.0]))
    assert np.isnan(sc.compile(out, [x])(np.array([-2.0]))).all()


def test_it_is_checked_inside_loops():
    def step(c, row):
        return c + sc.assume(row, nonnegative=True), None

    f = sc.compile(sc.scan(step, 0.0, x)[0], [x], mode="nan_guard")
    assert f(np.array([1.0, 2.0])) == 3.0
    with pytest.raises(AssertError, match="not nonnegative"):
        f(np.array([1.0, -2.0]))


# --- the rules --------------------------------------------------------------------------------------------------------


def test_rules_that_change_gradients_run_after_differentiation():
    for r in all_rules():
        assert "after-gradients" not in r.tags or r.family not in STABLE
    assert not {"assumed", "structure", "factors"} & set(STABLE)


def test_why_not_names_the_missing_fact():
    g = final(sc.sign(x), [x])
    assert "of any sign" in g.why_not("sign_known")
