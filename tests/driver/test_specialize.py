"""Variants of compiled functions for some sizes: the same results, chosen by the sizes of a call."""

import pickle

import numpy as np
import pytest

import symc as sc
from symc.driver.specialized import at_sizes
from symc.ir.parse import parse_module
from symc.tensors.pytree import flatten


def _inputs(dtype="float64"):
    return sc.input("x", dtype, shape=("n", 3)), sc.input("y", dtype, shape=("n",))


def _arrays(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(size=n)


def _programs(x, y):
    c, state = sc.scan(lambda h, r: (sc.tanh(h + r), h), sc.zeros(3), x)
    return {
        "sum": sc.sum(sc.exp(x), axis=0) / x.shape[0], "gradient": sc.grad(sc.mean((x @ sc.ones(3) - y) ** 2), x),
        "product": x @ x.T, "solution": sc.linalg.solve(x @ x.T + 9 * sc.eye(x.shape[0]), y), "loop": [c, state],
        "sizes": {"a": sc.arange(x.shape[0]) * y, "b": (x[1:] - x[:-1], x.reshape(-1))}, "sort": sc.sort(y),
    }  # fmt: skip


@pytest.mark.parametrize("name", _programs(*_inputs()))
def test_results_are_those_of_the_function_for_all_sizes(name):
    x, y = _inputs()
    out = _programs(x, y)[name]
    f, g = (sc.compile(out, {"x": x, "y": y}, specialize=s) for s in ({"n": [2, 5]}, None))
    for n in (2, 5, 3, 5, 2, 1, 4):
        for a, b in zip(flatten(f(*_arrays(n)))[0], flatten(g(*_arrays(n)))[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
            assert a.dtype == b.dtype and a.shape == b.shape
    assert [str(i.type) for i in f.variants["n = 5"].inputs] == ["f64[5, 3]", "f64[5]"]


def _served(f, *args, **kwargs):
    """Which functions ran in a call, by their plans' frames."""
    before = {title: part._call_path for title, part in f.parts}
    runs = []
    for title, calling in before.items():
        calling.call = (lambda t, call: lambda *a, **k: (runs.append(t), call(*a, **k))[1])(title, calling.call)
    try:
        f(*args, **kwargs)
    finally:
        for calling in before.values():
            del calling.call
    return runs


def test_each_size_is_served_by_its_own():
    x, y = _inputs()
    f = sc.compile(sc.sum(x) + sc.sum(y), [x, y], specialize={"n": [2, 5]}, mode="reference")
    assert [_served(f, *_arrays(n)) for n in (2, 5, 3)] == [["n = 2"], ["n = 5"], ["other sizes"]]
    assert _served(f, y=_arrays(5)[1], x=_arrays(5)[0].tolist()) == ["n = 5"]
    both = sc.compile({"a": sc.sum(x) + sc.sum(y)}, [{"x": x, "y": y}], specialize={"n": 5}, mode="reference")
    assert _served(both, dict(zip("xy", _arrays(5)))) == ["n = 5"]


def test_no_native_call_is_served_by_another():
    x, y = _inputs()
    f = sc.compile(sc.sum(x) + sc.sum(y), [x, y], specialize={"n": [2, 5]})
    for n in (2, 5, 3):
        f(*_arrays(n))  # from now on in native code
    assert type(f.__call__).__name__ == "builtin_function_or_method"
    for n in (2, 5, 3, 2, 4, 5):
        x0, y0 = _arrays(n, seed=n)
        np.testing.assert_allclose(f(x0, y0), x0.sum() + y0.sum())
    with pytest.raises(sc.ShapeError, match="a variant serves"):
        f.main(*_arrays(2))  # the function for other sizes has none of these


def test_states_updates_and_buffers():
    w = sc.shared(np.zeros(3), "w")
    x, y = _inputs()
    loss = sc.mean((x @ w - y) ** 2)
    f = sc.compile(loss, [x, y], updates={w: w - 0.1 * sc.grad(loss, w)}, specialize={"n": [2, 5]}, donate=(y,))
    v = np.zeros(3)
    for n in (2, 5, 3, 2, 5):
        a, b = _arrays(n, seed=n)
        np.testing.assert_allclose(f(a, b.copy()), np.mean((a @ v - b) ** 2))
        v = v - 0.1 * 2 / n * a.T @ (a @ v - b)
        np.testing.assert_allclose(w.get_value(), v)
    g = sc.compile(x.T @ y, [x, y], specialize={"n": [2, 5]})
    for n in (2, 5, 3, 2):
        a, b = _arrays(n)
        out = np.empty(3)
        assert g(a, b, out=out) is out
        np.testing.assert_allclose(out, a.T @ b)
    u = sc.shared(np.ones(3), "u")
    other = f.copy({w: u})
    other(*_arrays(5))
    assert not np.array_equal(u.get_value(), np.ones(3)) and list(other.variants) == ["n = 2", "n = 5"]


def test_a_size_of_a_state():
    w = sc.shared(np.arange(4.0), "w", shape=("m",))
    x = sc.input("x", "float64", shape=("n",))
    f = sc.compile(x.sum() * w, [x], specialize={"m": 4, "n": [2]}, mode="reference")
    assert _served(f, np.ones(2)) == ["m = 4, n = 2"] and _served(f, np.ones(3)) == ["other sizes"]


def test_several_sizes():
    x = sc.input("x", "float64", shape=("n", "m"))
    every = sc.compile(sc.sum(x, axis=0), [x], specialize={"n": [1, 2], "m": [3, 4]})
    assert list(every.variants) == ["n = 1, m = 3", "n = 1, m = 4", "n = 2, m = 3", "n = 2, m = 4"]
    some = sc.compile(sc.sum(x, axis=0), [x], specialize=[{"n": 1, "m": 3}, {"n": 2, "m": 4}])
    for n in (1, 2, 3):
        for m in (3, 4, 5):
            a = np.random.default_rng(0).normal(size=(n, m))
            for f in (every, some):
                for _ in range(2):
                    np.testing.assert_allclose(f(a), a.sum(0))


def test_what_is_shown():
    x, y = _inputs()
    f = sc.compile(sc.sum(x) / x.shape[0] + y, [x, y], specialize={"n": [4]})
    assert "// other sizes\nfunc @f(%x: f64[n, 3]" in str(f) and "// n = 4\nfunc @f(%x: f64[4, 3]" in str(f)
    assert "// n = 4\n[fold] size_is_known: size(value=4) -> 4" in f.explain()
    assert "variants for n = 4" in repr(f)
    assert f.memory(n=4) == f.variants["n = 4"].memory() and f.memory(n=5) == f.main.memory(n=5)
    assert f.memory(*_arrays(4)) == f.memory(n=4)
    assert len(f.kernels) == 2 * len(f.main.kernels)
    assert f.profile(*_arrays(4)).name == "f" and "x" in f.trace(*_arrays(4))
    assert len(parse_module(str(f))) == 2


def test_pickles_and_files(tmp_path):
    x, y = _inputs()
    w = sc.shared(np.ones(3), "w")
    f = sc.compile(x @ w + y, [x, y], updates={w: w + 1}, specialize={"n": [2, 5]}, max_bytes=("1MB", {"n": 100}))
    f.save(tmp_path / "f.symc")
    for g in (pickle.loads(pickle.dumps(f)), sc.load(tmp_path / "f.symc")):
        assert list(g.variants) == ["n = 2", "n = 5"]
        for k, n in enumerate((2, 5, 3)):
            a, b = _arrays(n)
            np.testing.assert_allclose(g(a, b), a @ np.full(3, 1.0 + k) + b)
        assert list(pickle.loads(pickle.dumps(g)).variants) == ["n = 2", "n = 5"]


def test_deferred_and_traced_functions():
    a, b = sc.Variable("a"), sc.Variable("b", dtype="float64", shape=("n",))
    f = sc.compile(a * b, specialize={"n": [3]})
    np.testing.assert_allclose(f(2.0, np.arange(3.0)), 2 * np.arange(3.0))
    np.testing.assert_allclose(f(np.float32(2.0), np.arange(4.0)), 2 * np.arange(4.0))
    assert all(list(g.variants) == ["n = 3"] for g in f.variants.values())


def test_sizes_that_are_data():
    x = sc.input("x", "float64", shape=("n",))
    f = sc.compile(sc.sum(x[x > 0]) / x.shape[0], [x], specialize={"n": [4]})
    for n in (4, 5, 4):
        v = np.arange(n) - 1.5
        np.testing.assert_allclose(f(v), v[v > 0].sum() / n)
    assert list(f.main.variants) == ["n = 4"]


@pytest.mark.parametrize("given, said", [
    ({"k": [3]}, "no size 'k'"), ({"N": [3]}, "did you mean 'n'"), ({"n": [0]}, "positive int, not 0"),
    ({"n": [-1]}, "positive int, not -1"), ({"n": [2.0]}, "positive int, not 2.0"), ({"n": [True]}, "not True"),
    ({"n": "32"}, "not '3'"), ({"n": range(1, 40)}, "39 variants"), (3, "must be a dict"), ([{}], "must be a dict"),
    ([{"n": 1}, {"m": 1}], "the same sizes"), ({3: [4]}, "by their names"),
])  # fmt: skip
def test_mistakes(given, said):
    x, y = _inputs()
    with pytest.raises(sc.InputError, match=said) as e:
        sc.compile(x.sum() + y.sum(), [x, y], specialize=given)
    assert "test_specialize.py" in str(e.value)


def test_a_size_with_which_no_call_succeeds():
    x = sc.input("x", "float64", shape=("n",))
    a = sc.compile(x.reshape(-1, 3).sum(axis=0), [x])
    with pytest.raises(sc.ShapeError):
        a(np.ones(4))
    with pytest.raises(sc.ShapeError, match="with n = 2 no call can succeed"):
        sc.compile(x[:5][4], [x], specialize={"n": [2]})


def test_lines_stay():
    x, _ = _inputs()
    f = sc.compile(sc.exp(x).sum(), [x])._built.function
    g = at_sizes(f, {"n": 7})
    assert {loc.line for v in g.values() for loc in g.locations(v)} == {
        loc.line for v in f.values() for loc in f.locations(v)}


def test_many_short_rows_of_a_first_call_have_a_variant():
    """The axes that are short in the first call are constants in one variant; other sizes are served as without it."""
    for make in (sc.jit, lambda fn: sc.compile(fn(sc.Variable("x"), sc.Variable("y")))):
        f = make(lambda x, y: sc.sqrt(sc.sum((x - y) ** 2, axis=-1)))
        rng = np.random.default_rng(0)
        for shape in ((300, 3), (20, 7), (300, 3), (5, 4), (300, 2)):
            x, y = rng.normal(size=(2, *shape))
            np.testing.assert_allclose(f(x, y), np.sqrt(((x - y) ** 2).sum(-1)), rtol=1e-13)
        (only,) = f.variants.values()
        (variant,) = only.variants.values()
        assert [i.type.shape[1] for i in variant.inputs] == [3, 3]


def test_other_sizes_are_compiled_when_they_come(cold):
    """A variant that nobody asked for does not make the first call compile everything twice."""
    f = sc.jit(lambda x, i: sc.exp(x - sc.max(x, axis=1, keepdims=True))[i])
    x, i = np.arange(600.0).reshape(200, 3) % 7, np.arange(5)
    f(x, i)
    (only,) = f.variants.values()
    (variant,) = only.variants.values()
    assert variant.compile_count > 0 and only.main.compile_count == 0
    with pytest.raises(IndexError):
        f(x, i + 200)
    assert only.main.compile_count == 0
    y = np.arange(120.0).reshape(30, 4) % 5
    np.testing.assert_allclose(f(y, i), np.exp(y - y.max(1, keepdims=True))[i], rtol=1e-13)
    assert only.main.compile_count > 0
    with pytest.raises(IndexError):
        f(y, i + 30)


@pytest.mark.parametrize("shape, short", [((200, 6, 6), True), ((200, 9), True), ((200, 11), False), ((20, 6), False)])
def test_rows_and_matrices_up_to_ten_have_a_variant(shape, short):
    f = sc.jit(lambda x: sc.sum(x * x, axis=-1))
    x = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(f(x), (x * x).sum(-1), rtol=1e-12)
    (only,) = f.variants.values()
    assert bool(getattr(only, "variants", {})) == short


@pytest.mark.parametrize("step, shapes, few", [
    (lambda w, v: w @ v, [(6, 6), (6,)], True),
    (lambda a, c: c + 0.1 * (sc.roll(c, 1) - a), [(12,), (12,)], True),
    (lambda a, c: 0.5 * (sc.roll(c, 1, 0) + a), [(5, 5), (5, 5)], True),
    (lambda a, c: sc.tanh(a + c), [(40,), (40,)], False),
])
def test_a_loop_on_few_numbers_of_a_first_call_is_one_kernel(step, shapes, few):
    """What a step hands on is few numbers: their sizes are constants in a variant, whose loop is one kernel."""
    f = sc.jit(lambda a, c: sc.fori_loop(0, 7, lambda i, c: step(a, c), c))
    rng = np.random.default_rng(0)
    for more in (0, 1, 0):
        a, c = (rng.uniform(0, 0.3, [n + more for n in shape]) for shape in shapes)
        x, y = sc.input("a", shape=a.shape), sc.input("c", shape=c.shape)
        known = sc.compile(sc.fori_loop(0, 7, lambda i, c, x=x: step(x, c), y), [x, y], mode="reference")
        np.testing.assert_allclose(f(a, c), known(a, c), rtol=1e-12)
    (only,) = f.variants.values()
    variants = getattr(only, "variants", {})
    assert [len(v.kernels) for v in variants.values()] == ([1] if few else [])


@pytest.mark.parametrize("options", [{"mode": "reference"}, {"backend": "numpy"}, {"specialize": {"n": [4]}}])
def test_options_and_few_rows_have_no_variant_of_their_own(options):
    x = sc.Variable("x", dtype="float64", shape=("n", None))
    f = sc.compile(x * sc.Variable("y"), **options)
    f(np.ones((300, 3)), 2.0)
    (only,) = f.variants.values()
    assert list(getattr(only, "variants", ())) == (["n = 4"] if "specialize" in options else [])
    f = sc.jit(lambda x: sc.sum(x, axis=-1))
    f(np.ones((20, 3)))
    assert not hasattr(next(iter(f.variants.values())), "variants")
