"""Loops and branches as users write them: every form, nests, dtypes, laziness, mistakes."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import pytest

import symc as sc
from symc.tensors.pytree import flatten

MODES = ["reference", "default"]
every_mode = pytest.mark.parametrize("mode", MODES)


def run(outputs, *args, mode="reference", inputs=None):
    return sc.compile(outputs, inputs, mode=mode)(*args)


# --- the examples of JAX's tutorial on control flow -------------------------------------------------------------------


@every_mode
def test_python_loops_and_choices_on_known_things_are_unrolled(mode):
    """``for i in range(3)``, ``if x.ndim``, ``while`` on Python numbers: nothing symbolic is asked."""
    x = sc.input("x", "float64", ())
    y = x
    for _ in range(3):
        y = 2 * y
    k = 0
    while k < 3:
        y, k = y + k, k + 1
    assert run(y, 3.0, mode=mode) == 27.0
    length = sc.input("v", "float64", (5,))
    total = sum((length[i] for i in range(length.shape[0])), sc.zeros(()))
    assert run(total, np.arange(5.0), mode=mode) == 10.0


def test_a_symbolic_condition_names_the_symbolic_forms():
    x = sc.input("x", "float64", ())
    with pytest.raises(sc.SymbolicValueError, match="cond"):
        if x < 3:
            pass
    with pytest.raises(sc.SymbolicValueError):
        while x < 3:
            x = x + 1


@every_mode
def test_cond(mode):
    x, flag = sc.input("x", "float64", ()), sc.input("flag", "bool", ())
    f = sc.compile(sc.cond(flag, lambda a: a + 1, lambda a: a - 1, x), [flag, x], mode=mode)
    assert f(True, 0.0) == 1 and f(False, 0.0) == -1
    piecewise = sc.compile(sc.cond(x < 3, lambda: 3.0 * x**2, lambda: -4 * x), [x], mode=mode)
    assert piecewise(2.0) == 12 and piecewise(4.0) == -16


@every_mode
def test_switch_and_where_and_piecewise(mode):
    x, k = sc.input("x", "float64", ()), sc.input("k", "int64", ())
    f = sc.compile(sc.switch(k, [lambda a: a, lambda a: a * 10, lambda a: a * 100], x), [k, x], mode=mode)
    assert [float(f(i, 2.0)) for i in (-5, 0, 1, 2, 9)] == [2, 2, 20, 200, 200]
    u = sc.input("u", "uint64", ())
    assert run(sc.switch(u, [lambda: 1, lambda: 2]), np.uint64(2**64 - 1), mode=mode) == 2
    v = sc.input("v", "float64", ("n",))
    got = run([sc.where(v > 0, v, 0.0), sc.piecewise(v, [v < 0, v >= 1], [-1.0, 1.0])], np.array([-2.0, 0.5, 3]),
              mode=mode)
    np.testing.assert_array_equal(got[0], [0, 0.5, 3])
    np.testing.assert_array_equal(got[1], [-1, 0, 1])


@every_mode
def test_while_loop_and_fori_loop(mode):
    start = sc.input("start", "int64", ())
    assert run(sc.while_loop(lambda x: x < 10, lambda x: x + 1, start), 0, mode=mode) == 10
    n = sc.input("n", "int64", ())
    f = sc.compile(sc.fori_loop(0, n, lambda i, x: x + i, start), [n, start], mode=mode)
    assert f(10, 0) == 45 and f(0, 7) == 7 and f(-3, 7) == 7
    assert run(sc.fori_loop(0, 10, lambda i, x: x + i, start), 0, mode=mode) == 45
    v = sc.vector("v")
    g = sc.compile(sc.fori_loop(1, v.shape[0] - 2, lambda i, x: x + i, start), [v, start], mode=mode)
    assert [g(np.zeros(k), 0) for k in (0, 2, 3, 6)] == [0, 0, 0, 6]


@every_mode
def test_lengths_that_turn_out_negative(mode):
    x = sc.vector("x")
    f = sc.compile(sc.scan(lambda c, _: (c + 1, c), 0, length=x.shape[0] - 1), [x], mode=mode)
    assert [int(f(np.zeros(n))[0]) for n in (1, 2, 4)] == [0, 1, 3]
    with pytest.raises(sc.ShapeError, match="- 1 = -1 must be at least 0; a length is negative") as e:
        f([])
    assert "length=x.shape[0] - 1" in str(e.value)


@every_mode
def test_scan_sums_prefixes(mode):
    xs = sc.input("xs", "float64", ("n",))
    f = sc.compile(sc.scan(lambda c, x: (c + x, c + x), 0.0, xs), [xs], mode=mode)
    for n in (0, 1, 6):
        total, prefixes = f(np.arange(float(n)))
        assert total == n * (n - 1) / 2
        np.testing.assert_array_equal(prefixes, np.cumsum(np.arange(float(n))))


@every_mode
def test_logical_operators_do_not_short_circuit_but_cond_does(mode):
    x = sc.input("x", "int64", ())
    f = sc.compile(sc.logical_and(x % 2 == 0, x > 0), [x], mode=mode)
    assert [bool(f(k)) for k in (24, -2, 3)] == [True, False, False]
    v = sc.input("v", "float64", ("n",))
    guarded = sc.compile(sc.cond(x > 0, lambda: v[x - 1], lambda: sc.zeros(())), [x, v], mode=mode)
    assert guarded(2, np.array([5.0, 6.0])) == 6 and guarded(0, np.zeros(0)) == 0
    with pytest.raises(sc.IndexingError):
        guarded(9, np.zeros(3))


def test_a_branch_that_is_not_taken_never_runs():
    calls = []

    @sc.op(name="control_test_boom", infer=lambda t: (t.dtype, t.shape))
    def boom(x):
        calls.append(1)
        raise ValueError("boom")

    x = sc.input("x", "float64", ("n",))
    for mode in MODES:
        f = sc.compile(sc.cond(x.sum() > 0, lambda: x * 2, lambda: boom(x) * 3), [x], mode=mode)
        np.testing.assert_array_equal(f(np.ones(3)), 2 * np.ones(3))
        assert not calls
        with pytest.raises(sc.SymcError, match="boom"):
            f(-np.ones(3))
        calls.clear()


def test_what_is_built_outside_a_branch_is_captured_and_what_is_inside_is_lazy():
    x = sc.input("x", "float64", ("n",))
    outside = sc.exp(x)
    text = sc.compile(sc.cond(x[0] > 0, lambda: outside + sc.sin(x), lambda: outside), [x]).dump("input")
    before, body = text.split("cond", 1)
    assert "exp" in before and "exp" not in body and "sin" in body and "sin" not in before


# --- nests, dtypes, several loops -------------------------------------------------------------------------------------


@dataclass
class State:
    a: object
    b: object


@every_mode
def test_nests_in_and_out(mode):
    x = {"u": sc.input("u", "float64", ("n",)), "v": sc.input("v", "float64", ("n", 2))}

    def step(s, row):
        s = State(s.a + row["u"], (s.b[0] + row["v"], s.b[1]))
        return s, [s.a, {"both": s.b[0] * 2}, None]

    last, (a, both, nothing) = sc.scan(step, State(0.0, (sc.zeros(2), 1)), x)
    assert nothing is None and isinstance(last, State)
    u, v = np.arange(3.0), np.arange(6.0).reshape(3, 2)
    out = run([last.a, last.b, a, both], u, v, mode=mode)
    np.testing.assert_array_equal(out[0], 3)
    np.testing.assert_array_equal(out[1][0], v.sum(0))
    np.testing.assert_array_equal(out[2], np.cumsum(u))
    np.testing.assert_array_equal(out[3]["both"], 2 * np.cumsum(v, 0))


def test_a_python_number_takes_the_dtype_of_the_carry():
    x = sc.input("x", "float32", ("n",))
    assert sc.scan(lambda c, r: (c + r, None), 0, x)[0].dtype == np.float32
    assert sc.scan(lambda c, r: (c + r, None), 0.0, x)[0].dtype == np.float32
    assert sc.scan(lambda c, r: (c + 1, None), 0, x)[0].dtype == np.int64
    assert sc.while_loop(lambda c: c < 3, lambda c: c * x.sum(), 1).dtype == np.float32


@every_mode
def test_map_folds_and_prefixes(mode):
    x = sc.input("x", "float64", ("n", 2))
    data = np.arange(8.0).reshape(4, 2)
    out = run([sc.map(lambda r: r.sum() * 2, x), sc.foldl(lambda c, r: 2 * c + r, sc.zeros(2), x),
               sc.foldr(lambda c, r: 2 * c + r, sc.zeros(2), x), sc.reduce(sc.maximum, x)], data, mode=mode)
    np.testing.assert_array_equal(out[0], data.sum(1) * 2)
    np.testing.assert_array_equal(out[1], sum(d * 2.0 ** (3 - k) for k, d in enumerate(data)))
    np.testing.assert_array_equal(out[2], sum(d * 2.0**k for k, d in enumerate(data)))
    np.testing.assert_array_equal(out[3], data[-1])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 13])
def test_associative_scan_is_a_scan(n, known):
    x = sc.input("x", "float64", (n if known else "n", 2, 2))
    data = np.random.default_rng(n).normal(size=(n, 2, 2))
    for reverse in (False, True):
        want, p = [], np.eye(2)
        for d in data[::-1] if reverse else data:
            p = p @ d
            want.append(p)
        got = run(sc.associative_scan(sc.matmul, x, reverse=reverse), data)
        want = np.array(want[::-1] if reverse else want).reshape(n, 2, 2)
        np.testing.assert_allclose(got, want)


@every_mode
def test_loops_in_loops_and_state(mode):
    w = sc.shared(np.zeros(3), "w")
    x = sc.input("x", "float64", ("n", 3))

    def row(c, r):
        inner = sc.scan(lambda s, e: (s * 0.5 + e, s), 0.0, r)[1]
        return c + inner + w, sc.cond(r.sum() > 3, lambda: inner.sum(), lambda: -1.0)

    final, ys = sc.scan(row, sc.zeros(3), x)
    f = sc.compile(ys, [x], updates={w: w + final}, mode=mode)
    data, state = np.arange(6.0).reshape(2, 3), np.zeros(3)
    for _ in range(2):
        got = f(data)
        c, want = np.zeros(3), []
        for r in data:
            s, inner = 0.0, []
            for e in r:
                inner.append(s)
                s = s * 0.5 + e
            c = c + inner + state
            want.append(sum(inner) if r.sum() > 3 else -1.0)
        np.testing.assert_allclose(got, want)
        state = state + c
        np.testing.assert_allclose(w.get_value(), state)


def test_jit_and_deferred_variables_take_loops():
    @sc.jit
    def power(x, n):
        return sc.fori_loop(0, n, lambda i, p: p * x, sc.ones_like(x))

    np.testing.assert_allclose(power(np.array([2.0, 3.0]), 5), [32, 243])
    a = sc.Variable("a")
    total = sc.foldl(lambda c, r: c + r * r, 0.0, a)
    f = sc.compile(total)
    assert f(a=np.arange(4.0)) == 14 and f(a=np.arange(3.0, dtype="f4")) == 5


def test_a_long_scan_and_a_long_chain():
    x = sc.input("x", "float64", ())
    last = sc.scan(lambda c, _: (c * 0.999 + x, None), 0.0, length=100_000)[0]
    np.testing.assert_allclose(run(last, 1.0, mode="default"), 1000, rtol=1e-9)
    y, depth = x, 3 * sys.getrecursionlimit()
    for _ in range(depth):
        y = sc.sin(y) + x
    want = 0.5
    for _ in range(depth):
        want = np.sin(want) + 0.5
    np.testing.assert_allclose(run(y, 0.5, mode="default"), want, rtol=1e-9)


def test_one_compile_serves_every_length():
    x = sc.input("x", "float64", ("t", 3))
    f = sc.compile(sc.scan(lambda c, r: (sc.tanh(c @ sc.ones((3, 3)) + r), c), sc.zeros(3), x), [x])
    f(np.ones((4, 3)))
    before = f.compile_count
    for t in (0, 1, 9, 100):
        assert f(np.ones((t, 3)))[1].shape == (t, 3)
    assert f.compile_count == before


def test_saved_loops_come_back(tmp_path):
    x = sc.input("x", "float64", ("n",))
    f = sc.compile([sc.scan(lambda c, r: (c + r, c), 0.0, x), sc.cond(x[0] > 0, lambda: x, lambda: -x)], [x])
    f.save(tmp_path / "f.symc")
    g = sc.load(tmp_path / "f.symc")
    data = np.array([-1.0, 2.0])
    for a, b in zip(flatten(f(data))[0], flatten(g(data))[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert g.dump() == f.dump() and "cond" in f.to_dot()


# --- mistakes ---------------------------------------------------------------------------------------------------------

X = sc.input("x", "float64", ("n", 3))
S = sc.input("s", "float64", ())

#: What calls a user's function, how it is called, and with how many arguments.
CALLBACKS = [
    (lambda f: sc.scan(f, 0.0, X), "scan: step is called with (carry, x)", 2),
    (lambda f: sc.scan(lambda c, x: (c, x), 0.0, X, until=f), "scan: until is called with (carry, y)", 2),
    (lambda f: sc.scan(f, sc.taps(sc.zeros((2, 3)), (-2, -1)), X), "scan: step is called with (carry, x)", 2),
    (lambda f: sc.while_loop(f, lambda c: c, (S, S)), "while_loop: cond is called with (carry)", 1),
    (lambda f: sc.while_loop(lambda c: True, f, (S, S)), "while_loop: body is called with (carry)", 1),
    (lambda f: sc.fori_loop(0, 3, f, S), "fori_loop: body is called with (i, carry)", 2),
    (lambda f: sc.fori_loop(0, sc.scalar("k", "int64"), f, S), "fori_loop: body is called with (i, carry)", 2),
    (lambda f: sc.cond(S > 0, f, lambda: S), "cond: true_fn is called with no arguments", 0),
    (lambda f: sc.cond(S > 0, lambda x: x, f, S), "cond: false_fn is called with (operand 0)", 1),
    (lambda f: sc.switch(0, [lambda x, y: x, f], S, S), "switch: branch 1 is called with (operand 0, operand 1)", 2),
    (lambda f: sc.map(f, X, X), "map: fn is called with (row 0, row 1)", 2),
    (lambda f: sc.foldl(f, S, X), "foldl: fn is called with (carry, x)", 2),
    (lambda f: sc.foldr(f, S, X), "foldr: fn is called with (carry, x)", 2),
    (lambda f: sc.reduce(f, X), "reduce: fn is called with (carry, x)", 2),
    (lambda f: sc.associative_scan(f, X), "associative_scan: fn is called with (left, right)", 2),
]
OF_ARGUMENTS = [lambda: S, lambda a: a, lambda a, b: a, lambda a, b, c: a]


@pytest.mark.parametrize("use, text, count", CALLBACKS)
def test_functions_of_other_arguments_are_refused_before_they_are_called(use, text, count):
    for takes, fn in enumerate(OF_ARGUMENTS):
        if takes == count:
            continue
        with pytest.raises(sc.InputError) as e:
            use(fn)
        assert text in str(e.value) and "test_control.py" in str(e.value)
        assert ("a tuple is one argument" in str(e.value)) == (takes > count > 0)


@pytest.mark.parametrize("mistake, error, text", [
    (lambda: sc.scan(lambda c, x: c, 0.0, X), sc.InputError, "must return a pair"),
    (lambda: sc.scan(3, 0.0, X), sc.InputError, "must be a function"),
    (lambda: sc.scan(lambda c, x: (c, x), 0.0), sc.InputError, "number of steps must be given"),
    (lambda: sc.scan(lambda c, x: (c, x), 0.0, S), sc.ShapeError, "is a scalar"),
    (lambda: sc.scan(lambda c, x: (c, x), 0.0, [sc.zeros(3), sc.zeros(4)]), sc.ShapeError, "has 4 rows"),
    (lambda: sc.scan(lambda c, x: (c, x), 0.0, sc.zeros(3), length=5), sc.ShapeError, "length is 5"),
    (lambda: sc.scan(lambda c, x: (c, x), 0.0, length=-1), sc.InputError, "-1"),
    (lambda: sc.scan(lambda c, x: (c, x), 0.0, length=S), sc.ShapeError, "must be an integer or a size"),
    (lambda: sc.scan(lambda c, x: (c + x, x), sc.zeros(3), sc.zeros((4, 2, 3))), sc.ShapeError, "becomes \\(2, 3\\)"),
    (lambda: sc.scan(lambda c, x: (c.astype("float32"), x), sc.zeros(3), X), sc.DTypeError, "becomes float32"),
    (lambda: sc.scan(lambda c, x: ((c, c), x), 0.0, X), sc.InputError, "carry"),
    (lambda: sc.scan(lambda c, x: (c, "y"), 0.0, X), sc.InputError, "y is not an array"),
    (lambda: sc.while_loop(lambda c: X > 0, lambda c: c, 0.0), sc.ShapeError, "one truth value"),
    (lambda: sc.while_loop(lambda c: c > 0, lambda c: X, 0.0), sc.ShapeError, "becomes \\(n, 3\\)"),
    (lambda: sc.cond(X > 0, lambda: 1.0, lambda: 2.0), sc.ShapeError, "one truth value"),
    (lambda: sc.cond(S > 0, lambda: X, lambda: S), sc.ShapeError, "false_fn"),
    (lambda: sc.cond(S > 0, lambda: (X, S), lambda: X), sc.InputError, "same structure"),
    (lambda: sc.switch(S, [lambda: X]), sc.DTypeError, "one integer"),
    (lambda: sc.switch(1, []), sc.InputError, "no branches"),
    (lambda: sc.fori_loop(0, S, lambda i, c: c, 0), sc.DTypeError, "must be integers"),
    (lambda: sc.reduce(sc.add, sc.zeros((0, 3))), sc.ShapeError, "no rows"),
    (lambda: sc.map(lambda x: x), sc.InputError, "nothing to map"),
])
def test_mistakes_name_the_line_and_what_to_do(mistake, error, text):
    with pytest.raises(error, match=text) as caught:
        mistake()
    assert "test_control.py" in str(caught.value)


def test_a_carry_that_escapes():
    kept = []
    sc.scan(lambda c, x: (kept.append(c) or c, None), sc.zeros(3), X)
    with pytest.raises(sc.InputError, match="used outside of the loop"):
        sc.compile(kept[0] * 2)


def test_an_error_in_a_body_names_the_line_of_the_body():
    @sc.op(name="control_test_fails", infer=lambda t: (t.dtype, t.shape))
    def fails(x):
        raise ValueError("no such thing")

    y = sc.scan(lambda c, x: (
        fails(c), None), sc.zeros(3), X)[0]  # the line that must be named
    for mode in MODES:
        with pytest.raises(sc.SymcError, match="no such thing") as caught:
            run(y, np.ones((2, 3)), mode=mode)
        assert "fails(c), None" in str(caught.value), str(caught.value)


def test_variables_of_unknown_type_are_operands_of_bodies():
    a, b = sc.Variable("a"), sc.Variable("b")
    f = sc.compile(sc.cond(a.sum() > 0, lambda x, y: x * y, lambda x, y: -x, a, b))
    np.testing.assert_array_equal(f(a=np.ones(2), b=3.0), [3, 3])
    g = sc.compile(sc.cond(a.sum() > 0, lambda: a * b, lambda: -a), [a, b])
    with pytest.raises(sc.InputError, match="is not an array: Deferred") as e:
        g(np.ones(2), 3.0)
    assert "known inside of a body only as a carry, a row or an operand" in str(e.value)
