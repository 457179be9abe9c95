"""Updates of one element, computed from elements of the same array: one kernel, and the numbers of a loop in Python."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc

R = np.random.default_rng(0)
STEPS = {
    "behind": lambda xp, t, y, e: 0.5 * y[t - 1] - 0.2 * y[t - 2] + e[t],
    "itself": lambda xp, t, y, e: y[t] * 2 + e[t],
    "from the end": lambda xp, t, y, e: y[-1] + y[-t] * e[t],
    "at data": lambda xp, t, y, e: y[(t * 7) % 5] + xp.tanh(y[t - 1]),
    "all of it": lambda xp, t, y, e: xp.sum(y) * 0.1 + y[t - 1],
    "a part": lambda xp, t, y, e: xp.max(y[:3]) - y[t - 2] * e[t],
}


def in_python(step, e, where):
    y, seen = np.linspace(0, 1, e.size), []
    for t in range(2, e.size - 1):
        y = y.copy()
        seen.append(y[t - 1])
        y[where(t)] = step(np, t, y, e)
    return y, np.array(seen)


@pytest.mark.parametrize("where", [lambda t: t, lambda t: t + 1, lambda t: t - 2])
@pytest.mark.parametrize("name", sorted(STEPS))
def test_recurrences(name, where):
    """Also where an element that was read is a result besides."""
    step, e = STEPS[name], R.normal(size=9)

    def program(e):
        def body(y, t):
            return y.at[where(t)].set(step(sc, t, y, e)), y[t - 1]

        return sc.scan(body, sc.linspace(0, 1, e.size), sc.arange(2, e.size - 1))

    for got, want in zip(sc.jit(program)(e), in_python(step, e, where), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_a_step_is_one_kernel():
    def program(e):
        return sc.fori_loop(0, e.size - 2, lambda t, y: y.at[t + 2].set(STEPS["behind"](sc, t + 2, y, e)), e * 0)

    f = sc.jit(program)
    f(R.normal(size=20))
    (compiled,) = f.variants.values()
    kernels = compiled.source.split("def ")
    assert sum("o0[" in k and "tanh" not in k and " = o0[" in k for k in kernels) == 1
    assert len(kernels) - 1 == 3  # what e * 0 is, counts, and the step


@pytest.mark.parametrize("kind", ["set", "add"])
def test_what_is_given_stays(kind):
    """An argument is copied; a state is written over, but not by a call that fails."""
    x, i, j = sc.vector("x"), sc.scalar("i", "int64"), sc.scalar("j", "int64")
    f = sc.compile([getattr(x.at[i], kind)(x[j] * 2 + x[0]), x[j]], [x, i, j])
    data = np.arange(1.0, 6)
    for a in range(-5, 5):
        for b in range(-5, 5):
            want = data.copy()
            want[a] = 2 * data[b] + data[0] + (data[a] if kind == "add" else 0)
            got, read = f(data, a, b)
            np.testing.assert_array_equal(got, want)
            assert read == data[b] and data.tolist() == [1, 2, 3, 4, 5]
    state = sc.shared(data.copy(), "s")
    step = sc.compile(state[j], [i, j], updates={state: getattr(state.at[i], kind)(state[j] + 1)})
    assert step(1, 3) == 4 and np.asarray(state.get_value()).tolist() == [1, 5 + 2 * (kind == "add"), 3, 4, 5]
    known = np.array(state.get_value())
    for bad in ((9, 0), (0, 9)):
        with pytest.raises(IndexError):
            step(*bad)
        assert np.asarray(state.get_value()).tolist() == known.tolist()


def test_gradients():
    def program(e):
        return sc.sum(sc.fori_loop(0, e.size - 2,
                                   lambda t, y: y.at[t + 2].set(sc.tanh(y[t + 1] * e[t]) + e[t + 2]), e * 1) ** 2)

    e = R.normal(size=7)
    g = sc.value_and_grad(program)(e)[1]
    f = sc.jit(program)
    for k in range(e.size):
        d = np.zeros(e.size)
        d[k] = 1e-6
        assert abs((f(e + d) - f(e - d)) / 2e-6 - g[k]) < 1e-6
