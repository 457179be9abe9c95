"""``sc.op`` beyond one elementwise result: attributes, several results, effects, batches, loops; ``sc.check_op``."""

from __future__ import annotations

import contextlib
import io
import math
import re

import numpy as np
import pytest

import symc as sc
from symc.ir.op import all_ops, lookup, unregister

MODES = ["reference", "default"]


@pytest.fixture(autouse=True)
def clean_registry():
    before = {o.name for o in all_ops()}
    yield
    for o in all_ops():
        if o.name not in before:
            unregister(o.name)


# --- attributes -------------------------------------------------------------------------------------------------------


def wave(**options):
    @sc.op(derivative=lambda x, *, k, a: a * k * sc.cos(k * x), **options)
    def wave(x, *, k, a=1.0):
        return (a * np.sin(k * x)).astype(x.dtype)

    return wave


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [
    {}, {"numba": lambda x, k, a: a * math.sin(k * x)}, {"expression": lambda x, *, k, a: a * sc.sin(k * x)},
], ids=["opaque", "numba", "expression"])  # fmt: skip
def test_attributes_reach_every_function(mode, options):
    w = wave(**options)
    x = sc.vector("x")
    f = sc.compile([w(x, k=2), w(x, k=3, a=0.5), sc.grad(w(x, k=3).sum(), x)], mode=mode)
    a = np.linspace(-1, 1, 4)
    for got, want in zip(f(a), [np.sin(2 * a), 0.5 * np.sin(3 * a), 3 * np.cos(3 * a)], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    assert sc.parse(f.dump("input")).body is sc.parse(str(sc.parse(f.dump("input")))).body
    sc.verify_grad(lambda t: w(t, k=2), [a])


def test_different_attributes_are_different_values():
    w, x = wave(), sc.vector("x")
    assert w(x, k=2).value is w(x, k=2, a=1.0).value and w(x, k=2).value is not w(x, k=3).value


def test_sizes_and_arrays_are_attributes():
    @sc.op(infer=lambda x, *, n, table: (x.dtype, (n,)))
    def resized(x, *, n, table):
        return np.resize(x * table[0], n)

    x = sc.vector("x", shape=("n",))
    f = sc.compile(resized(x, n=2 * x.shape[0], table=np.array([3.0, 4.0])))
    assert f([1, 2]).tolist() == [3, 6, 3, 6] and f([1]).tolist() == [3, 3]


@pytest.mark.parametrize(("call", "text"), [
    (lambda w, x: w(x), "wave: the attribute 'k' is missing"),
    (lambda w, x: w(x, k=1, z=2), "wave has no attribute 'z'"),
    (lambda w, x: w(x, k=x), "wave: the attribute 'k' is a symbolic value"),
    (lambda w, x: w(x, k="a"), "wave: the attribute 'k' must be a finite number for numba=, not 'a'"),
    (lambda w, x: w(x, k=math.inf), "wave: the attribute 'k' must be a finite number for numba="),
])  # fmt: skip
def test_mistakes_with_attributes(call, text):
    with pytest.raises(sc.InputError, match=text) as e:
        call(wave(numba=lambda x, k, a: x), sc.vector("x"))
    assert "test_custom_op_more.py" in str(e.value)


def test_numba_functions_take_the_attributes_too():
    with pytest.raises(sc.InputError, match="it takes 1 operands and 2 attributes, its numba= function 1"):
        wave(numba=lambda x: x)


# --- several results --------------------------------------------------------------------------------------------------


def parts(**options):
    given = options or {"vjp": lambda g, x: g[0] * 2 * x + g[1]}

    @sc.op(infer=lambda x: [(x.dtype, x.shape), (x.dtype, ()), ("int64", ())], **given)
    def parts(x):
        return x * x, x.sum(), np.int64(x.size)

    return parts


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [
    {}, {"jvp": lambda t, x: (2 * x * t[0], sc.sum(t[0]), None)},
    {"vjp": lambda g, x: (g[0] * 2 * x + g[1],), "jvp": lambda t, x: (2 * x * t[0], sc.sum(t[0]), None)},
], ids=["vjp", "jvp", "both"])  # fmt: skip
def test_several_results(mode, options):
    p, x = parts(**options), sc.vector("x")
    squares, total, count = p(x)
    f = sc.compile([squares, total, count, sc.grad(squares[0] * total, x)], mode=mode)
    got = f([2.0, 3.0])
    assert got[0].tolist() == [4, 9] and got[1] == 5 and got[2] == 2
    np.testing.assert_allclose(got[3], [2 * 2 * 5 + 4, 4])
    sc.verify_grad(lambda t: p(t)[:2], [np.arange(1.0, 4.0)])
    sc.verify_grad(lambda t: p(t)[1], [np.arange(1.0, 4.0)])


def test_the_number_of_results_is_checked():
    @sc.op(infer=lambda x: [(x.dtype, x.shape)] * 2)
    def one_of_two(x):
        return x

    with pytest.raises(sc.ShapeError, match="one_of_two: the function gives 1 results, infer 2"):
        sc.compile(one_of_two(sc.vector("x")), mode="reference")([1.0])


# --- effects ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [*MODES, "debug"])
def test_an_op_with_an_effect_is_called_once_and_in_order(mode):
    seen = []

    @sc.op(effect=True)
    def watch(x, y, *, tag):
        seen.append((tag, x.tolist(), float(y)))

    x = sc.vector("x")
    first, second = watch(x, x.sum(), tag="a"), watch(x, x.sum(), tag="b")
    f = sc.compile([sc.grad(sc.exp(second).sum(), x), first * 0], [x], mode=mode)
    np.testing.assert_allclose(f([0.0, 1.0])[0], np.exp([0.0, 1.0]))
    assert seen == [("a", [0.0, 1.0], 1.0), ("b", [0.0, 1.0], 1.0)]


def test_an_effect_excludes_what_it_ignores():
    with pytest.raises(sc.InputError, match="effect= excludes infer=, derivatives"):
        sc.op(np.sin, name="sine", effect=True, derivative=lambda x: x)


# --- loops, branches, batches -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_opaque_ops_run_in_loops_and_branches(mode):
    @sc.op(infer=lambda x: (x.dtype, x.shape), vjp=lambda g, x: g * sc.cos(x))
    def opaque(x):
        if x.size == 0:
            raise ValueError("nothing to do")
        return np.sin(x)

    x, w = sc.matrix("x"), sc.scalar("w")
    last, rows = sc.scan(lambda c, r: (opaque(c + r), c), sc.zeros(2), x)
    chosen = sc.cond(w > 0, lambda v: opaque(v), lambda v: v * 2, x[0])
    f = sc.compile([last, rows, chosen], [x, w], mode=mode)
    a = np.arange(6.0).reshape(3, 2)
    c, want = np.zeros(2), []
    for r in a:
        want.append(c)
        c = np.sin(c + r)
    for sign, branch in ((1.0, np.sin(a[0])), (-1.0, a[0] * 2)):
        got = f(a, sign)
        np.testing.assert_allclose(got[0], c, rtol=1e-13)
        np.testing.assert_allclose(got[1], want, rtol=1e-13)
        np.testing.assert_allclose(got[2], branch, rtol=1e-13)


def test_an_op_in_the_other_branch_never_runs():
    @sc.op(infer=lambda x: (x.dtype, x.shape))
    def explode(x):
        raise ValueError("it ran")

    w = sc.scalar("w")
    f = sc.compile(sc.cond(w > 0, lambda v: explode(v), lambda v: v * 2, w))
    assert f(-1.0) == -2
    with pytest.raises(sc.ExecutionError, match="it ran"):
        f(1.0)


@pytest.mark.parametrize("mode", MODES)
def test_batches_run_one_entry_after_another(mode):
    shapes = []

    @sc.op(infer=lambda x, y: [(x.dtype, (x.shape[0], y.shape[0])), (x.dtype, ())])
    def outer(x, y):
        shapes.append(x.shape)
        return np.outer(x, y), np.float64(x @ x)

    x, y = sc.matrix("x"), sc.vector("y")
    f = sc.compile(sc.vmap(outer, (0, None))(x, y), [x, y], mode=mode)
    a, b = np.arange(6.0).reshape(3, 2), np.arange(4.0)
    shapes.clear()
    table, norms = f(a, b)
    np.testing.assert_array_equal(table, a[:, :, None] * b)
    np.testing.assert_array_equal(norms, np.sum(a * a, axis=1))
    assert shapes == [(2,)] * 3


def test_a_stated_rule_runs_all_entries_at_once():
    shapes = []

    @sc.op(infer=lambda x: (x.dtype, x.shape), batch=lambda flags, x: norm_rows(x))
    def unit(x):
        return x / np.linalg.norm(x)

    @sc.op(infer=lambda x: (x.dtype, x.shape))
    def norm_rows(x):
        shapes.append(x.shape)
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    f = sc.compile(sc.vmap(unit)(sc.matrix("x")), mode="reference")
    np.testing.assert_allclose(f([[3.0, 4.0], [6.0, 8.0]]), [[0.6, 0.8]] * 2)
    assert shapes == [(2, 2)]


# --- names ------------------------------------------------------------------------------------------------------------


def test_ops_of_two_modules_do_not_replace_one_another():
    namespace = {"__name__": "another_module", "sc": sc}
    exec("@sc.op\ndef op_of_two(x):\n    return x * 2\n", namespace)
    with pytest.raises(sc.InputError, match=r"(?s)module another_module has an op called 'op_of_two'.*sc.op\(name="):

        @sc.op
        def op_of_two(x):
            return x + x

    assert lookup("op_of_two").facts.custom.module == "another_module"
    assert sc.compile(sc.op(lambda x: x + x, name="own_doubled")(sc.vector("x")))([2.0]).tolist() == [4]


def test_cuda_source_is_kept():
    @sc.op(cuda="out = x * x;")
    def squared(x):
        return x * x

    assert lookup("squared").facts.custom.cuda == "out = x * x;"


# --- check_op ---------------------------------------------------------------------------------------------------------


def test_check_op_passes_what_is_right():
    w = wave(numba=lambda x, k, a: a * math.sin(k * x), samples=[(np.linspace(-1, 1, 3), {"k": 2})])
    sc.check_op(w)
    sc.check_op(w, (np.linspace(-1, 1, 3, dtype="f4"), {"k": 2.0, "a": 0.5}))
    sc.check_op("wave", (np.ones((2, 2)), {"k": 1}))
    sc.check_op(parts(), np.arange(3.0))


def wrong(fn, *samples, **options):
    with pytest.raises(sc.CheckError) as e:
        sc.check_op(sc.op(fn, name="wrong", **options), *samples)
    return str(e.value)


def writes(x):
    x[0] = 1
    return x


CALLS = iter(range(1000))
X = np.linspace(-1.0, 1.0, 3)


@pytest.mark.parametrize(("fn", "options", "texts"), [
    (lambda x: x, dict(infer=lambda x: (x.dtype, (3, 1))), [r"the function gives float64\[3\], not float64\[3, 1\]"]),
    (lambda x: x, dict(infer=lambda x: ("float32", x.shape)), [r"gives float64\[3\], not float32\[3\]"]),
    (writes, dict(infer=lambda x: (x.dtype, x.shape)), ["it writes into an operand"]),
    (lambda x: x + next(CALLS), {}, ["something else when it is called again"]),
    (lambda x: x * x.strides[0], {}, ["for arrays that are not contiguous"]),
    (lambda x: x[:3], dict(infer=lambda x: (x.dtype, x.shape if isinstance(x.shape[0], int) else (7,))),
     [r"by infer on symbolic sizes the result has shape \[7\], by the function \[3\]"]),
    (lambda x: x, dict(infer=lambda x: (x.dtype, (int(x.shape[0]),))), ["infer fails for symbolic sizes"]),
    (lambda x: x * x, dict(numba=lambda x: x), [r"numba= gives -1.0 at \[0\] where the function gives 1.0"]),
    (lambda x: x * x, dict(expression=lambda x: x), [r"expression= gives -1.0 at \[0\] where the function gives 1.0"]),
    (lambda x: x * x, dict(numba=lambda x: x.no), ["numba= cannot be compiled or run: .*Numba cannot compile"]),
    (lambda x: x * x, dict(derivative=lambda x: x),
     ["derivative: rev disagrees with finite differences: from the graph: .*; difference: "]),
    (lambda x: x * x, dict(derivative=lambda x: x.nothing()), ["its derivative raises AttributeError|derivative"]),
    (lambda x: np.cumsum(x, axis=0), {}, [r"entry \d of a batch gives"]),
    (lambda x: x * x, dict(numba=lambda x: x, derivative=lambda x: x), ["wrong has 2 problems", "numba=", "rev"]),
])  # fmt: skip
def test_check_op_says_what_is_wrong(fn, options, texts):
    text = wrong(fn, X, **options)
    for t in texts:
        assert re.search(t, text), text
    assert "test_custom_op_more.py" in text


def test_check_op_needs_an_op_and_samples():
    with pytest.raises(sc.InputError, match="check_op takes an op made by"):
        sc.check_op(np.sin, X)
    with pytest.raises(sc.InputError, match="there are no samples for wave"):
        sc.check_op(wave())
    with contextlib.redirect_stdout(io.StringIO()) as out:
        sc.check_op(sc.op(lambda x: print("called"), name="shout", effect=True), X)
    assert "called" in out.getvalue()


@pytest.mark.parametrize("mode", ["default", "reference"])
@pytest.mark.parametrize("outer", ["updates", "reads"])
@pytest.mark.parametrize("inner", ["call", "set_value", "reading call", "get_value"])
def test_an_op_changes_no_state_that_its_call_uses(inner, outer, mode):
    """What it would change is lost, or seen in part: an error. Reading gives what was there before the call."""
    w, on = sc.shared(np.zeros(3), "w"), [False]
    step, total = sc.compile(sc.sum(w), updates={w: w + 1}, mode=mode), sc.compile(sc.sum(w), mode=mode)
    for _ in range(3):  # from here on served by native code
        step(), total()
    w.set_value(np.full(3, 2.0))
    seen = []

    @sc.op(name=f"meddles_{mode}_{outer}_{inner.replace(' ', '_')}")
    def meddles(x):
        if on[0]:
            seen.append({"call": step, "set_value": lambda: w.set_value(np.ones(3)), "reading call": total,
                         "get_value": lambda: w.get_value().sum()}[inner]())
        return x + 0

    x = sc.vector("x")
    f = sc.compile(meddles(x) + w, updates={w: w * 10 + meddles(x)} if outer == "updates" else None, mode=mode)
    on[0] = True
    if inner in ("call", "set_value"):
        with pytest.raises(sc.SymcError, match="changes w while f runs, which uses it"):
            f(np.ones(3))
        assert w.get_value().tolist() == [2, 2, 2]
    else:
        assert f(np.ones(3)).tolist() == [3, 3, 3] and seen and set(map(float, seen)) == {6.0}
    on[0] = False
    f(np.ones(3))
    step()
    w.set_value(np.zeros(3))  # nothing stays noted
