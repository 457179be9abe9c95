"""Define-by-run: what is recorded has the values and gradients of the same code under ``sc.jit`` and ``sc.grad``."""

import copy
import gc
import pickle
import sys
import threading
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import symc as sc
import symc.dyn as dy
from symc.dyn import programs
from symc.errors import GradientError, InputError, ShapeError
from symc.ir.value import Value

RNG = np.random.default_rng(7)
X, W, B = RNG.standard_normal((5, 3)), RNG.standard_normal((3, 4)), RNG.standard_normal(4)


def clipped(x, w, b):
    h = x @ w + b
    return sc.sum(sc.clip(h, -0.5, 0.5) ** 2)


def updated(x, w, b):
    return sc.sum(x.at[1:3, 0].multiply(2.0) @ w)


def attention(x, w, b):
    q = x @ w
    s = sc.exp(q @ q.T / 2.0)
    return sc.sum((s / sc.sum(s, axis=1, keepdims=True)) @ q)


def recurrent(x, w, b):
    h = sc.zeros((4,))
    for k in range(5):
        h = sc.tanh(x[k] @ w + b * h)
    return sc.sum(h)


def factorized(x, w, b):
    q, r = sc.linalg.qr(x)
    return sc.sum(q @ r @ w)


PROGRAMS = [
    lambda x, w, b: sc.sum(x**2 + x),
    lambda x, w, b: sc.sum(x @ w + b),
    lambda x, w, b: sc.mean(sc.tanh(x @ w + b) ** 2),
    lambda x, w, b: sc.sum(sc.exp(x) * sc.sin(x)),
    lambda x, w, b: sc.sum(2.0 / (1.0 + sc.exp(-(x @ w)))),
    lambda x, w, b: sc.sum(x[1:, 0] * x[:-1, 1]),
    lambda x, w, b: sc.sum(x.T @ x),
    lambda x, w, b: sc.sum(abs(x) - x // 2.0 + x % 2.0),
    lambda x, w, b: sc.sum(sc.where(x > 0, x, 0.1 * x)),
    lambda x, w, b: sc.max(x @ w),
    lambda x, w, b: sc.sum(sc.sort(x, axis=0) * x),
    lambda x, w, b: sc.sum(sc.concatenate([x, 2 * x], axis=0) ** 2),
    lambda x, w, b: sc.sum(sc.stack([b, b**2]).sum(axis=0)),
    lambda x, w, b: sc.logsumexp(x @ w + b),
    lambda x, w, b: sc.sum(x.reshape((3, 5)) @ x),
    lambda x, w, b: sc.sum(x.mean(axis=0) * w.sum(axis=1)),
    lambda x, w, b: sc.sum(sc.cumsum(b) * b),
    lambda x, w, b: sc.prod(b),
    lambda x, w, b: sc.linalg.norm(x @ w),
    lambda x, w, b: sc.sum(sc.linalg.solve(w.T @ w + 5 * sc.eye(4), b)),
    lambda x, w, b: sc.linalg.slogdet(x.T @ x)[1],
    lambda x, w, b: sc.einsum("ij,jk,k->", x, w, b),
    lambda x, w, b: sc.sum(sc.maximum(x, 0.25) * sc.minimum(x, 0.5)),
    lambda x, w, b: sc.sum(sc.outer(b, b)),
    lambda x, w, b: sc.sum(x[np.array([0, 2, 2])] ** 3),
    lambda x, w, b: sc.sum(sc.take(x, np.array([1, 1, 0]), axis=1)),
    lambda x, w, b: sc.sum(-x + +x * ~np.array([True, False, True])),
    lambda x, w, b: sc.var(x, axis=0).sum(),
    lambda x, w, b: sc.sum(sc.broadcast_to(b, (2, 4)) * 3),
    lambda x, w, b: sc.sum(1 - x) * 2 - 3 / sc.sum(b),
    lambda x, w, b: sc.sum(2.0 ** (x / 4)),
    lambda x, w, b: sc.sum(np.exp(x) + np.multiply(x, 2)),
    lambda x, w, b: np.sum(np.concatenate([x, x], axis=1)),
    lambda x, w, b: sc.sum(x.astype("float32").astype("float64") * x),
    lambda x, w, b: sc.sum(sc.log1p(x**2) * sc.sqrt(x**2 + 1)),
    lambda x, w, b: sc.sum(sc.roll(x, 1, axis=0) * sc.flip(x, axis=1)),
    lambda x, w, b: sc.trace(x.T @ x) + sc.sum(sc.diag(b)),
    lambda x, w, b: sc.sum(sc.special.erf(x)) + sc.sum(sc.special.gammaln(x**2 + 1)),
    clipped, updated, attention, recurrent, factorized,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_recording_equals_the_static_function(number):
    program = PROGRAMS[number]
    inputs = [sc.input(n, "float64", shape=a.shape) for n, a in (("x", X), ("w", W), ("b", B))]
    out = program(*inputs)
    want, *grads = sc.compile([out, *sc.grad(out, inputs, disconnected="zero")], inputs)(X, W, B)
    for _ in range(3):  # by references, compiled, and compiled before
        xs = [dy.Var(a) for a in (X, W, B)]
        y = program(*xs)
        y.backward()
        np.testing.assert_allclose(y.data, want, rtol=1e-12, atol=1e-13)
        for v, g in zip(xs, grads, strict=True):
            np.testing.assert_allclose(np.zeros_like(v.data) if v.grad is None else v.grad, g, rtol=1e-9, atol=1e-12)


def test_the_first_program_of_everybody():
    x = dy.Var(np.array([5], "f4"))
    y = x**2 + x
    y.backward()
    assert y.data == 30 and x.grad == 11 and x.grad.dtype == np.float32


def test_gradients_add_up_until_they_are_cleared():
    x = dy.Var(3.0)
    for _ in range(2):
        (x * x).backward()
    assert x.grad == 12
    x.cleargrad()
    y = x * 2
    y.backward()
    y.backward()  # what was recorded is still there
    assert x.grad == 4


def test_only_leaves_and_who_asked_get_gradients():
    x = dy.Var(3.0)
    h, k = x * x, x + 1
    h.retain_grad()
    (h * k).backward()
    assert h.grad == 4 and k.grad is None and x.grad == 2 * 3 * 4 + 9


def test_hooks_see_and_change_gradients():
    x, seen = dy.Var(np.ones(3)), []
    x.add_hook(lambda g: seen.append(g.copy()))
    x.add_hook(lambda g: np.clip(g, -1, 1))
    sc.sum(x * 5).backward()
    assert seen[0].tolist() == [5] * 3 and x.grad.tolist() == [1] * 3


def test_nothing_goes_back_beyond_a_cut():
    w, h, grads = dy.Var(0.5), dy.Var(1.0), []
    for _ in range(3):
        h = sc.tanh(w * h)
        w.cleargrad()
        h.backward()
        grads.append(float(w.grad))
        before = float(h)
        h.unchain_backward()
        assert float(h) == before and not h.requires_grad
    assert grads[1] == pytest.approx((1 - np.tanh(0.5 * np.tanh(0.5)) ** 2) * np.tanh(0.5))


def test_no_backprop_mode_keeps_nothing():
    x = dy.Var(np.ones(4))
    with dy.no_backprop_mode():
        y = x * 2
        held = weakref.ref(y._node.parents[0])
        z = y + 1
        z.data
    assert not z.requires_grad and held() is x._node and not z._node.parents
    with pytest.raises(GradientError, match="needs a gradient"):
        z.backward()


def test_gradients_of_gradients():
    x = dy.Var(np.array([1.0, 2.0]))
    (g,) = dy.grad(sc.sum(x**3), [x], create_graph=True)
    sc.sum(g * g).backward()
    assert np.allclose(x.grad, 2 * 3 * x.data**2 * 6 * x.data)
    (plain,) = dy.grad(sc.sum(x**3), [x])
    assert not plain.requires_grad and np.allclose(plain.data, 3 * x.data**2)


def test_control_flow_on_values():
    def collatz(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    assert collatz(dy.Var(27)) == 111


def test_writing_to_a_leaf_does_not_change_what_was_recorded():
    x = dy.Var(np.ones(3))
    y, z = x * 2, sc.sum(x * x)
    x.data[:] = 10
    assert y.data.tolist() == [2] * 3
    z.backward()
    assert z.data == 3 and x.grad.tolist() == [2] * 3
    assert (x * 2).data.tolist() == [20] * 3


def test_an_array_that_is_held_outside_may_be_written_to_at_any_time():
    x = dy.Var(np.ones(3))
    held = x.data
    y = x * 2
    held[:] = 5
    assert y.data.tolist() == [2] * 3 and (x * 2).data.tolist() == [10] * 3
    sc.sum(x * x).backward()
    assert x.grad.tolist() == [10] * 3


def test_the_users_arrays_are_copied():
    a = np.ones(3)
    x = dy.Var(a)
    y = x + a
    a[:] = 7
    assert y.data.tolist() == [2] * 3


def test_results_cannot_be_written_to():
    y = dy.Var(np.ones(3)) * 2
    with pytest.raises(ValueError, match="read-only"):
        y.data[0] = 1


def test_a_step_in_place_as_people_write_it():
    w = dy.Var(np.ones(3))
    for _ in range(3):
        w.cleargrad()
        loss = sc.sum((w - 3) ** 2)
        loss.backward()
        w.data -= 0.25 * w.grad
    assert np.allclose(w.data, 3 - 2 * 0.5**3) and np.allclose(loss.data, 3 * (2 * 0.5**2) ** 2)


def test_one_program_for_all_sizes_and_numbers():
    def run(n, c):
        x = dy.Var(np.ones((n, 3)))
        sc.sum(sc.tanh(x * c) + 2).backward()
        return x.grad

    for k in range(3):
        run(2 + k, 0.5)
    before, compiled = programs.count(), programs._compiled
    made = []
    programs._compiled = lambda *a: made.append(a) or compiled(*a)
    try:
        for n in range(2, 40):
            c = 0.5 + n / 10
            assert np.allclose(run(n, c), c / np.cosh(c) ** 2)
    finally:
        programs._compiled = compiled
    assert programs.count() == before and len(made) == 1  # numbers have become arguments


def test_constants_are_told_apart():
    x = dy.Var(np.arange(6.0).reshape(2, 3))
    assert [(x ** k).data[1, 2] for k in (2, 3, 2.0, True)] == [25, 125, 25, 5]
    assert [sc.sum(x, axis=a).data.shape for a in (0, 1, None, (0, 1))] == [(3,), (2,), (), ()]
    assert (x - 1).data[0, 0] == -1 and (1 - x).data[0, 0] == 1
    assert sc.sum(x, axis=0, keepdims=True).data.shape == (1, 3)


def test_a_recording_that_came_once_keeps_no_graph():
    def values_after(first):
        for k in range(first, first + 8):
            x = y = dy.Var(np.ones(2))
            for _ in range(k):
                y = sc.sin(y)
            y.sum().backward()
            assert np.isfinite(x.grad).all()
        gc.collect()
        return sum(type(o) is Value for o in gc.get_objects())

    before = values_after(40)
    assert values_after(60) < before + 60


def test_programs_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(programs, "MOST", 4)
    programs._programs.clear()
    for k in range(10):
        assert (dy.Var(1.0) + k).data == 1 + k
    assert programs.count() == 4


def test_results_of_several_arrays():
    values, vectors = sc.linalg.eigh(dy.Var(np.diag([2.0, 1.0])))
    assert values.data.tolist() == [1, 2] and vectors.data.shape == (2, 2)
    pair = sc.linalg.eigh(dy.Var(np.eye(2)))
    assert np.allclose(pair[0].data, 1) and len(pair) == 2


def test_a_mistake_names_the_line():
    x = dy.Var(np.ones((2, 3)))
    y = x @ x  # the line
    with pytest.raises(ShapeError) as e:
        y.data
    assert "test_dyn.py" in str(e.value) and "x @ x  # the line" in str(e.value)
    with dy.eager(), pytest.raises(ShapeError):
        x @ x


@pytest.mark.parametrize(("mistake", "error", "text"), [
    (lambda x: (x * 2).backward(), GradientError, "give its gradient"),
    (lambda x: dy.Var(np.ones(2), requires_grad=False).backward(), GradientError, "requires_grad=True"),
    (lambda x: dy.Var(np.arange(3)).backward(), GradientError, "needs a gradient"),
    (lambda x: dy.grad(dy.Var([1, 2]), [x]), GradientError, "needs a gradient"),
    (lambda x: x + sc.vector("v"), InputError, "take its .data"),
    (lambda x: sc.compile(x * 2), InputError, "recorded"),
    (lambda x: dy.Var("text"), InputError, "dtype"),
    (lambda x: x.no_such_name, AttributeError, "no_such_name"),
    (lambda x: x.at[0].no_such_name, AttributeError, "no_such_name"),
    (lambda x: x.backward(np.ones(7)), ShapeError, "cotangent"),
])  # fmt: skip
def test_mistakes(mistake, error, text):
    with pytest.raises(error, match=text):
        mistake(dy.Var(np.ones(3)))


def test_the_gradient_of_an_array_is_given():
    x = dy.Var(np.arange(3.0))
    (x * x).backward(np.array([1.0, 10.0, 100.0]))
    assert x.grad.tolist() == [0, 20, 400]


def test_variables_travel():
    x = dy.Var(np.arange(3.0), name="x")
    (sc.sum(x * x)).backward()
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.data.tolist() == [0, 1, 2] and y.grad.tolist() == [0, 2, 4] and y.name == "x" and y.requires_grad


def calls_of_python(f):
    """Of which functions frames were made while ``f`` ran."""
    frames = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: frames.append(frame.f_code.co_name) if event == "call" else None)
    try:
        f()
    finally:
        sys.setprofile(before)
    return frames


def test_a_warm_program_runs_little_python():
    a = np.array([5.0])

    def step():
        x = dy.Var(a)
        y = x**2 + x
        y.backward()
        return y.data, x.grad

    def longer():
        x = dy.Var(a)
        y = x
        for _ in range(50):
            y = y * x + y
        y.backward()

    for _ in range(4):
        step()
        longer()
    frames = calls_of_python(step)
    assert len(frames) <= 13, frames  # a variable, two calls, the way back, its trace, its program, what was computed
    assert len(calls_of_python(longer)) <= 10 + 2 * 50  # and for a call one more


def test_what_somebody_holds_is_computed_with_the_rest():
    def run(hold):
        x = dy.Var(np.full(4, 0.5))
        kept = []
        y = x
        for k in range(6):
            y = sc.tanh(y) + sc.exp(y * x)
            if k in hold:
                kept.append(y)
        y.backward(np.ones(4))
        return [v._node.value is not None for v in kept], y._node.value is not None, x.grad

    for hold in ((), (2,), (0, 3, 4), (5,)):
        for _ in range(3):
            known, last, grad = run(hold)
            assert all(known) and last
            np.testing.assert_allclose(grad, run(range(6))[2])


def test_what_nobody_holds_is_freed():
    x = dy.Var(np.ones(3))
    y = sc.exp(x * 2)
    node = weakref.ref(y._node)
    del y
    gc.collect()
    assert node() is None


def test_a_long_chain_needs_no_stack():
    x = y = dy.Var(1.0)
    for _ in range(3000):
        y = y + x
    assert y.data == 3001


def test_threads_record_for_themselves():
    found = {}

    def work(k):
        for _ in range(20):
            x = dy.Var(np.full(3, float(k)))
            sc.sum(x**2).backward()
        found[k] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {k: [2.0 * k] * 3 for k in range(4)}


def test_python_asks_for_values():
    x = dy.Var(np.array([1.5]))
    assert (float(x[0] * 2), int(x[0]), complex(x[0]), len(x), x.shape, x.ndim, x.size, x.dtype) == (
        3.0, 1, 1.5, 1, (1,), 1, 1, np.float64)
    assert [float(v) for v in dy.Var([1.0, 2.0])] == [1, 2] and np.asarray(x + 1).tolist() == [2.5]
    assert (x + 1).item() == 2.5 and (x + 1).tolist() == [2.5] and repr(x) == "Var([1.5])" and bool(x > 1)
    assert list(range(5))[dy.Var(3)] == 3 and x.detach().data == 1.5 and not x.detach().requires_grad


def test_zeros_of_both_signs_and_nests_of_floats():
    class Pair(NamedTuple):
        low: float
        high: float

    x = dy.Var(np.array([1.0]))
    signs = [np.signbit((x * c).data)[0] for c in (0.0, 0.0, -0.0, 0.0, -0.0)]
    assert signs == [False, False, True, False, True]
    z = dy.Var(np.array([1j]))
    signs = [np.signbit(sc.full_like(z, c).data.imag)[0] for c in (complex(1, 0.0), complex(1, -0.0), complex(1, 0.0))]
    assert signs == [False, True, False]
    for low, high in ((0.5, 2.0), (0.25, 3.0), (0.75, 5.0)):
        got = x.record(lambda v, p: v * p.low + p.high, (x, Pair(low, high)), {})
        assert got.data == low + high


def test_a_function_that_reads_something_else_now():
    scale = [2.0]

    def scaled(v):
        return v * scale[0]

    x = dy.Var(np.arange(3.0))
    for c in (2.0, 2.0, 3.0, 4.0):
        scale[0] = c
        assert x.record(lambda f, v: f(v), (scaled, x), {}).data.tolist() == [0, c, 2 * c]


def test_results_share_no_memory():
    for _ in range(3):  # by references and compiled
        x, y = dy.Var(np.ones((2, 3))), dy.Var(np.ones((2, 3)))
        z = sc.sum(x + y)
        z.backward()
        assert not np.shares_memory(x.grad, y.grad)
        x.grad *= 2
        assert y.grad[0, 0] == 1
        for view in (x.T, x.reshape((3, 2)), +x, x[0], sc.broadcast_to(x, (4, 2, 3))):
            assert not np.shares_memory(view.data, x.data)
            (view * 1.0).backward(np.ones(view.shape))
        assert x.grad.flags.writeable


def test_names_of_others_and_the_shape_that_is_no_number():
    x = dy.Var(np.ones((2, 3)))
    with pytest.raises(sc.GradientError, match=r"backward of an array of shape \(2, 3\)"):
        (x * 2).backward()
    (g,) = dy.grad(sc.sum(x**3), x, create_graph=True)
    sc.sum(g).backward()
    assert x.grad.tolist() == [[6.0] * 3] * 2
    with dy.no_grad():
        assert not (x * 2).requires_grad


def test_backward_again_adds_with_or_without_retain_graph():
    x = dy.Var(np.array([1.0, 2.0]))
    y = (x * x).sum()
    for k, options in enumerate([{}, {"retain_graph": True}, {"retain_graph": False}], 1):
        y.backward(**options)
        np.testing.assert_array_equal(x.grad.data, [2.0 * k, 4.0 * k])
