"""States that several new values depend on are written where they lie."""

import numpy as np
import pytest

import symc as sc

#: All but "eg", which divides what it makes by the sum of all of it.
OPTIMIZERS = ["sgd", "cyclical_sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam", "adamw",
              "amsgrad"]


def addresses(states):
    return [s.array.ctypes.data for s in states]


@pytest.mark.long
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_of_an_optimizer_makes_no_arrays_for_its_states(name):
    P = sc.Params(seed=0)
    x, y = sc.input("x", "float32", ("n", 8)), sc.input("y", "int64", ("n",))
    h = sc.relu(sc.nn.dense(P.sub("h"), x, 16))
    loss = sc.nn.cross_entropy(sc.nn.dense(P.sub("o"), h, 4), y)
    opt = getattr(sc.optim, name)(0.01) if name != "cyclical_sgd" else sc.optim.cyclical_sgd(0.01, 0.1, 10)
    step = sc.compile(loss, [x, y], updates=opt.updates(loss, P))
    states = [s for s in [*P.values(), *opt.states.values()] if s.ndim]
    rng = np.random.default_rng(0)
    before = addresses(states)
    for n in (4, 7, 4):
        step(rng.random((n, 8), "f4"), rng.integers(0, 4, n))
    assert addresses(states) == before and len(before) >= 4


def programs(seed):
    """New values of some states, each made of all of them elementwise, and what the loop of NumPy makes of them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    shape = [(5,), (3, 4), ()][rng.integers(3)]
    states = [sc.shared(rng.random(shape), f"s{k}") for k in range(n)]
    g, c = sc.input("g", "float64", shape), sc.scalar("c")
    values = [*states, g, g * c]
    for _ in range(n + 2):
        a, b = (values[i] for i in rng.integers(0, len(values), 2))
        values.append([sc.tanh(a) + b, a * b, a - 0.5 * b, sc.where(a > b, a, b + 1)][rng.integers(4)])
    new = {s: values[-1 - k] + values[rng.integers(0, len(values))] for k, s in enumerate(states)}
    more = values[-1] * 2 if rng.random() < 0.5 else ()
    return states, sc.compile(more, [g, c], updates=new, mode="default"), sc.compile(more, [g, c], updates=new,
                                                                                     mode="reference"), shape


@pytest.mark.parametrize("seed", range(25))
def test_all_is_read_before_anything_is_written(seed):
    states, f, reference, shape = programs(seed)
    rng = np.random.default_rng(seed)
    first = [s.get_value() for s in states]
    calls = [(rng.random(shape), rng.random()) for _ in range(3)]
    found = [f(*c) for c in calls]
    ends = [s.get_value() for s in states]
    for s, a in zip(states, first, strict=True):
        s.set_value(a)
    expected = [reference(*c) for c in calls]
    for a, b in zip([*ends, *found], [*[s.get_value() for s in states], *expected], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_two_states_that_change_places():
    a, b = sc.shared(np.arange(1000.0), "a"), sc.shared(np.arange(1000.0) * 2, "b")
    f = sc.compile([], updates={a: b * 1.5 + 0 * a, b: a * 2.5 + 0 * b})
    f()
    f()
    np.testing.assert_allclose(a.get_value(), np.arange(1000.0) * 1.5 * 2.5)
    np.testing.assert_allclose(b.get_value(), np.arange(1000.0) * 2 * 2.5 * 1.5)
    assert "alloc" not in f.plan
