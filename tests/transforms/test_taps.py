"""``sc.taps``: states of which a step sees several past values, against Python loops."""

import numpy as np
import pytest

import symc as sc

RNG = np.random.default_rng(0)
HISTORY, NOISE, WEIGHTS = RNG.normal(size=3), RNG.normal(size=9), np.array([0.6, -0.3])


def autoregressive(history: np.ndarray, noise: np.ndarray, weights: np.ndarray) -> list[float]:
    """AR(2), all values including the history."""
    out = list(history)
    for x in noise:
        out.append(weights[0] * out[-1] + weights[1] * out[-2] + x)
    return out


def program() -> tuple[list[sc.Tensor], sc.Tensor, sc.Tensor]:
    history, noise = sc.vector("history"), sc.vector("noise")
    weights = sc.vector("weights", shape=(2,))

    def step(past, x):
        before, last = past
        new = weights[0] * last + weights[1] * before + x
        return new, new

    final, ys = sc.scan(step, sc.taps(history, (-2, -1)), noise)
    return [history, noise, weights], final, ys


@pytest.mark.parametrize("mode", ["default", "reference", "debug"])
def test_autoregression(mode: str):
    inputs, final, ys = program()
    last, found = sc.compile([final, ys], inputs, mode=mode)(HISTORY, NOISE, WEIGHTS)
    expected = autoregressive(HISTORY, NOISE, WEIGHTS)
    np.testing.assert_allclose(found, expected[3:], rtol=1e-12)
    np.testing.assert_allclose(last, expected[-2:], rtol=1e-12)


def test_the_last_values_are_a_history_to_go_on_from():
    inputs, final, ys = program()
    f = sc.compile([final, ys], inputs)
    last, first = f(HISTORY, NOISE[:4], WEIGHTS)
    np.testing.assert_array_equal(np.append(first, f(last, NOISE[4:], WEIGHTS)[1]), f(HISTORY, NOISE, WEIGHTS)[1])
    np.testing.assert_array_equal(f(HISTORY, [], WEIGHTS)[0], HISTORY[-2:])


def test_gradient():
    inputs, final, ys = program()
    f = sc.compile(sc.grad(sc.sum(ys**2) + final[0], inputs), inputs)

    def cost(*arrays: np.ndarray) -> float:
        values = autoregressive(*arrays)
        return sum(v * v for v in values[3:]) + values[-2]

    point = [HISTORY, NOISE, WEIGHTS]
    for k, gradient in enumerate(f(*point)):
        for i in range(len(point[k])):
            step = np.zeros_like(point[k])
            step[i] = 1e-6
            up, down = ([*point[:k], point[k] + s * step, *point[k + 1 :]] for s in (1, -1))
            assert gradient[i] == pytest.approx((cost(*up) - cost(*down)) / 2e-6, rel=1e-6, abs=1e-7)


def test_fibonacci_is_one_kernel():
    fibonacci = sc.compile(sc.scan(lambda past, _: (past[0] + past[1],) * 2, sc.taps([0, 1], (-2, -1)), length=50)[1])
    found = fibonacci()
    assert found[:5].tolist() == [1, 2, 3, 5, 8] and found[-1] == 20365011074 and len(fibonacci.kernels) == 1


def test_several_states_rows_and_directions():
    """A nest with a plain carry, a state of rows, offsets with gaps and out of order; backwards."""
    a, xs = sc.matrix("a", shape=("k", 2)), sc.matrix("xs", shape=("t", 2))

    def step(state, x):
        first, third = state["a"]
        new = first - 0.5 * third + x
        return {"count": state["count"] + 1, "a": new}, new

    init = {"count": 0, "a": sc.taps(a, offsets=[-1, -3])}
    final, ys = sc.scan(step, init, xs, reverse=True)
    past, rows = RNG.normal(size=(4, 2)), RNG.normal(size=(5, 2))
    last, found = sc.compile([final, ys], [a, xs])(past, rows)
    values = list(past)
    for x in rows[::-1]:
        values.append(values[-1] - 0.5 * values[-3] + x)
    assert last["count"] == 5
    np.testing.assert_allclose(last["a"], values[-3:], rtol=1e-12)
    np.testing.assert_allclose(found[::-1], values[4:], rtol=1e-12)


def test_batches():
    def last(history: sc.Tensor) -> sc.Tensor:
        return sc.scan(lambda past, _: (past[0] * past[1], None), sc.taps(history, (-2, -1)), length=3)[0]

    h = sc.matrix("h", shape=("n", 2))
    found = sc.compile(sc.vmap(last)(h))([[1.0, 2.0], [3.0, 1.0]])
    np.testing.assert_array_equal(found, [[4.0, 8.0], [3.0, 9.0]])


def test_deferred():
    h = sc.Variable("h")
    f = sc.compile(sc.scan(lambda past, _: (past[0] + past[1], None), sc.taps(h, (-2, -1)), length=2)[0])
    assert f(h=np.array([1, 1])).tolist() == [2, 3] and f(h=np.array([0.5, 1])).tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: sc.taps([1.0], -1), sc.InputError, "offsets must be negative integers in a tuple, not -1"),
        (lambda: sc.taps([1.0], (-1, 0)), sc.InputError, "xs=(x[:-1], x[1:])"),
        (lambda: sc.taps([1.0], ()), sc.InputError, "offsets must be negative"),
        (lambda: sc.taps(1.0, (-1,)), sc.ShapeError, "the history is a scalar"),
        (lambda: sc.taps([1.0], (-2,)), sc.ShapeError, "has 1 rows, offset -2 needs 2"),
        (lambda: scan(lambda s: (s, None)), sc.InputError, "must return one new value for taps in the carry['h']"),
        (lambda: scan(lambda s: (s[0][None], None)), sc.ShapeError, "the history of the carry['h'] has other shapes"),
        (lambda: scan(lambda s: (s[0] * 0.5, None)), sc.DTypeError, "is int64, the new value float64"),
        (lambda: scan(lambda s: s[0]), sc.InputError, "step must return a pair"),
        (lambda: sc.while_loop(lambda c: True, lambda c: c, sc.taps([1.0], (-1,))), sc.InputError, "not an array"),
    ],
)
def test_mistakes(build, error, text: str):
    with pytest.raises(error) as found:
        build()
    assert text in str(found.value) and "test_taps.py" in str(found.value)


def scan(step):
    def inner(state, _):
        out = step(state["h"])
        return ({"h": out[0]}, out[1]) if isinstance(out, tuple) else out

    return sc.scan(inner, {"h": sc.taps([0, 1], (-2, -1))}, length=3)
