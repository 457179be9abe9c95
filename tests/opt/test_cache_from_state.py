"""Values of unchanged states are kept between calls, and never a call too long."""

import pickle
import sys
import threading

import numpy as np
import pytest

import symc as sc

pytestmark = pytest.mark.long

RNG = np.random.default_rng(0)


def weights(count=3, shape=(6, 8)):
    return [sc.shared(RNG.normal(size=shape), f"w{k}") for k in range(count)]


def projections(w):
    """Products that are packed: the weights side by side are what is kept."""
    x = sc.input("x", "float64", ("n", 6))
    return sc.compile([sc.tanh(x @ m) for m in w], [x], name="project")


def expected(x, w):
    return [np.tanh(x @ m.get_value()) for m in w]


def computed(f):
    """How often what is kept was computed."""
    return f._call_path.prologue.times_computed


def check(f, w, rows=5):
    x = RNG.normal(size=(rows, 6))
    for got, want in zip(f(x), expected(x, w), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_weights_are_put_side_by_side_once():
    w = weights()
    f = projections(w)
    for rows in (5, 5, 1, 300):
        check(f, w, rows)
    assert computed(f) == 1
    assert f.calls == {"gemm": 1}
    assert "cached" in f.dump() and "plan @project_prologue" in f.plan
    assert "packed_concat" in f.source or "concat" in f.source
    assert f.profile(np.ones((2, 6))) is not None


def test_calls_run_no_python_while_the_weights_stay():
    w = weights()
    f = projections(w)
    x = RNG.normal(size=(5, 6))
    f(x)
    frames = []

    def entered(x):
        frames.clear()
        sys.setprofile(lambda frame, event, _: event == "call" and frames.append(frame.f_code.co_name))
        try:
            got = f(x)
        finally:
            sys.setprofile(None)
        return got, len(frames)

    for rows in (x, x[:2], x[:0]):
        got, count = entered(rows)
        assert count == 0
        np.testing.assert_allclose(got, expected(rows, w), rtol=1e-12, atol=1e-12)
    w[1].set_value(np.ones((6, 8)))
    check(f, w)  # in Python: computed again
    assert entered(x)[1] == 0 and computed(f) == 2
    w[0].get_value(borrow=True)[:] = 3  # nobody counts what is done to it from now on
    check(f, w)
    assert entered(x)[1] > 0


def test_set_value():
    w = weights()
    f = projections(w)
    for k in range(3):
        check(f, w)
        w[k].set_value(RNG.normal(size=(6, 8)))
        check(f, w)
    assert computed(f) == 4
    with pytest.raises(sc.ShapeError):
        w[0].set_value(np.ones((2, 2)))
    check(f, w)
    assert computed(f) == 4


def test_updates_by_another_function():
    w = weights()
    f = projections(w)
    step = sc.compile([], updates={w[1]: w[1] * 0.5, w[2]: w[2] - 1})
    for _ in range(3):
        check(f, w)
        step()
        check(f, w)
    assert computed(f) == 4


def test_a_call_that_fails_leaves_what_is_kept_right():
    w = weights()
    f = projections(w)
    i = sc.input("i", "int64", ())
    step = sc.compile(w[0][i, 0], [i], updates={w[0]: w[0] * 2})
    check(f, w)
    with pytest.raises(sc.IndexingError):
        step(100)
    check(f, w)
    step(1)
    check(f, w)


def test_borrowed_arrays_may_change_at_any_time():
    w = weights()
    f = projections(w)
    check(f, w)
    array = w[1].get_value(borrow=True)
    check(f, w)
    array[:] = 7
    check(f, w)
    own = RNG.normal(size=(6, 8))
    w[2].set_value(own, borrow=True)
    check(f, w)
    own[0] = 3
    check(f, w)


def test_save_load_pickle_and_copy(tmp_path):
    w = weights()
    f = projections(w)
    check(f, w)
    f.save(tmp_path / "f")
    for g in (sc.load(tmp_path / "f"), pickle.loads(pickle.dumps(f))):
        own = [g.shared[f"w{k}"] for k in range(3)]
        check(g, own)
        own[0].set_value(np.ones((6, 8)))
        check(g, own)
        check(f, w)
    other = weights(1)[0]
    g = f.copy(swap={w[0]: other})
    for _ in range(2):
        check(g, [other, *w[1:]])
        check(f, w)
    other.set_value(np.zeros((6, 8)))
    check(g, [other, *w[1:]])
    assert computed(f) == 1


def test_threads():
    w = [sc.shared(np.zeros((6, 8)), f"w{k}") for k in range(2)]
    f = projections(w)
    step = sc.compile([], updates={m: m + 1 for m in w})
    wrong = []

    def look():
        for _ in range(200):
            a, b = f(np.full((1, 6), 1e-4))
            if not np.array_equal(a, b) or not np.all(a == a[0, 0]):  # both weights are of the same moment
                wrong.append((a, b))

    threads = [threading.Thread(target=look) for _ in range(3)]
    threads.append(threading.Thread(target=lambda: [step() for _ in range(200)]))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    np.testing.assert_allclose(f(np.full((1, 6), 1e-4))[0], np.tanh(0.12), rtol=1e-12)


def test_training_keeps_nothing():
    w = weights(2)
    x = sc.input("x", "float64", (50, 6))
    loss = sc.sum(sc.tanh(x @ w[0]) * sc.tanh(x @ w[1]))
    f = sc.compile(loss, [x], updates={m: m - 0.1 * sc.grad(loss, m) for m in w})
    assert "cached" not in f.dump()


def test_sizes_of_states():
    w = [sc.shared(RNG.normal(size=(6, 8)), f"w{k}", shape=("m", 8)) for k in range(2)]
    x = sc.input("x", "float64", ("n", "m"))
    f = sc.compile([sc.tanh(x @ m) for m in w], [x], pipeline="pack,cache_from_state,fuse")
    for m in (6, 4, 9, 6):
        for s in w:
            s.set_value(RNG.normal(size=(m, 8)))
        data = RNG.normal(size=(3, m))
        for got, s in zip(f(data), w, strict=True):
            np.testing.assert_allclose(got, np.tanh(data @ s.get_value()), rtol=1e-12)


@pytest.mark.parametrize("mode", ["reference", "debug", "nan_guard", "fast_compile"])
def test_modes(mode):
    w = weights()
    x = sc.input("x", "float64", ("n", 6))
    f = sc.compile([sc.tanh(x @ m) for m in w], [x], mode=mode)
    check(f, w)
    w[0].set_value(np.ones((6, 8)))
    check(f, w)


def test_with_a_budget_nothing_is_kept():
    w = weights()
    x = sc.input("x", "float64", (4, 6))
    f = sc.compile([sc.tanh(x @ m) for m in w], [x], max_bytes="1MB")
    assert "cached" not in f.dump()
    check(f, w, 4)


def test_factors_and_solutions_of_states_are_kept():
    """Not only weights: whatever a library makes of states alone."""
    a = sc.shared(RNG.normal(size=(6, 6)) + 6 * np.eye(6), "a")
    x = sc.input("x", "float64", (6,))
    f = sc.compile(sc.linalg.inv(a) @ x + a @ (a @ sc.asarray(np.ones(6))), [x])
    assert "cached" in f.dump()
    for _ in range(2):
        data = RNG.normal(size=6)
        m = a.get_value()
        np.testing.assert_allclose(f(data), np.linalg.solve(m, data) + m @ m.sum(1), rtol=1e-10)
        a.set_value(m + np.eye(6))


def test_results_that_are_kept_are_not_handed_out():
    a = sc.shared(RNG.normal(size=(6, 6)), "a")
    f = sc.compile(a @ a, [])
    first = f()
    first[:] = 0
    np.testing.assert_allclose(f(), a.get_value() @ a.get_value(), rtol=1e-12)


def test_sizes_of_a_cached_value_come_from_any_unchanged_state():
    """By their names in the function: a size that must equal another one is called like it, or comes from a state
    that is not looked into."""
    w, u = (sc.shared(RNG.normal(size=(4, 6)), n, shape=(None, None)) for n in "wu")
    b, x = sc.shared(np.ones(3), "b", shape=(None,)), sc.input("x", "float64", (None, 4))
    loop = sc.scan(lambda h, r: (sc.tanh(h @ u + r)[:4], None), sc.zeros(4), x @ w)[0]
    right = sc.reshape(sc.arange(4.0 * b.shape[0]), (4, b.shape[0]))
    f = sc.compile([loop, x @ sc.linalg.solve(w @ w.T + sc.eye(4), right), b.sum()], [x])
    g = sc.compile([loop, x @ sc.linalg.solve(w @ w.T + sc.eye(4), right), b.sum()], [x], mode="reference")
    assert "cached" in f.dump()
    for size in (6, 5):
        w.set_value(RNG.normal(size=(4, size)))
        u.set_value(RNG.normal(size=(4, size)))
        for got, want in zip(f(np.eye(4)), g(np.eye(4)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)
