"""Whole programs on the checked device: training steps give what they give on the CPU, in a counted number of launches,
with nothing but arguments crossing."""


import numpy as np
import pytest

import symc as sc
from symc.runtime.cuda.devices import context
from symc.runtime.emulator import EmulatedDevice
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler

pytestmark = needs_compiler
F32 = "float32"


@pytest.fixture(scope="module", autouse=True)
def device():
    with emulated_cuda():
        yield


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def weights(name: str, *shape: int) -> sc.SharedVariable:
    return sc.shared((rng(len(name)).standard_normal(shape) / np.sqrt(shape[0])).astype(F32), name)


def mlp():
    x, y = sc.input("x", F32, ("n", 20)), sc.input("y", "int64", ("n",))
    ws = [weights("w0", 20, 33), weights("w1_", 33, 5)]
    logits = sc.maximum(x @ ws[0], 0) @ ws[1]
    loss = sc.mean(sc.logsumexp(logits, axis=1) - sc.take_along_axis(logits, y[:, None], axis=1)[:, 0])
    return [x, y], loss, ws, (rng(1).standard_normal((13, 20)).astype(F32), rng(2).integers(0, 5, 13))


def transformer():
    n, d, heads = 10, 16, 2
    x = sc.input("x", F32, ("b", n, d))
    wq, wk, wv, wo = (weights(k, d, d) for k in ("q", "kk", "vvv", "oooo"))
    w1, w2 = weights("w1", d, 3 * d), weights("w2_", 3 * d, d)

    def norm(h):
        h = h - sc.mean(h, axis=-1, keepdims=True)
        return h / sc.sqrt(sc.mean(h * h, axis=-1, keepdims=True) + 1e-5)

    def split(h):
        return sc.transpose(sc.reshape(h, (-1, n, heads, d // heads)), (0, 2, 1, 3))

    h = norm(x)
    q, k, v = (split(h @ w) for w in (wq, wk, wv))
    scores = sc.softmax(q @ sc.transpose(k, (0, 1, 3, 2)) / np.sqrt(d // heads).astype(F32), axis=-1)
    h = x + sc.reshape(sc.transpose(scores @ v, (0, 2, 1, 3)), (-1, n, d)) @ wo
    h = h + sc.tanh(norm(h) @ w1) @ w2
    return [x], sc.mean(h * h), [wq, wk, wv, wo, w1, w2], (rng(3).standard_normal((3, n, d)).astype(F32),)


def lstm():
    hidden = 9
    letters = sc.input("letters", "int64", ("t", "n"))
    e, wo = weights("e", 7, hidden), weights("wooo", hidden, 7)
    wx, wh = weights("wx", hidden, 4 * hidden), weights("whh", hidden, 4 * hidden)
    zero = sc.zeros((letters.shape[1], hidden), F32)

    def step(state, now):
        h, c = state
        z = e[now] @ wx + h @ wh
        i, f, o = (sc.sigmoid(z[:, k * hidden : (k + 1) * hidden]) for k in (0, 1, 3))
        c = f * c + i * sc.tanh(z[:, 2 * hidden : 3 * hidden])
        h = o * sc.tanh(c)
        return (h, c), h

    _, hs = sc.scan(step, (zero, zero), letters[:-1])
    loss = -sc.mean(sc.take_along_axis(sc.log_softmax(hs @ wo, axis=2), letters[1:][:, :, None], axis=2))
    return [letters], loss, [e, wx, wh, wo], (rng(4).integers(0, 7, (6, 5)),)


def convolutions():
    x, y = sc.input("x", F32, ("n", 2, 9, 9)), sc.input("y", F32, ("n", 4))
    w, v = weights("w", 5, 2, 3, 3), weights("vv", 5, 4)
    h = sc.max_pool(sc.maximum(sc.conv(x, w), 0), (2, 2))
    loss = sc.mean((sc.mean(h, axis=(2, 3)) @ v - y) ** 2)
    return [x, y], loss, [w, v], (rng(5).standard_normal((4, 2, 9, 9)).astype(F32), np.ones((4, 4), F32))


@pytest.mark.parametrize("make, launches", [(mlp, 10), (transformer, 23), (lstm, 32), (convolutions, 12)],
                         ids=lambda x: getattr(x, "__name__", None))
def test_training_steps(make, launches):
    steps = {}
    for where in ("cpu", "cuda"):
        inputs, loss, parameters, arrays = make()
        steps[where] = sc.compile(loss, inputs, updates=sc.optim.adam(1e-2).updates(loss, parameters), device=where)
    losses = {where: [float(f(*arrays)) for _ in range(5)] for where, f in steps.items()}
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=2e-4)
    counters = context("cuda").device.counters
    before = vars(counters).copy()
    steps["cuda"](*arrays)
    done = {k: n - before[k] for k, n in vars(counters).items()}
    assert (done["d2h_bytes"], done["syncs"]) == (0, 0)
    assert done["h2d_bytes"] == sum(a.nbytes for a in arrays)
    assert done["graph_launches"] == 1 and done["launches"] <= launches, done


def test_random_numbers_are_those_of_the_cpu():
    seed = sc.input("seed", "int64", ())
    key = sc.random.key(seed)
    a, b, c = sc.random.split(key, 3)
    draws = (sc.random.uniform(a, (50,), dtype=F32), sc.random.integers(b, 0, 1000, (50,)),
             sc.random.bernoulli(c, 0.3, (50,)),
             *[fn(c, (50,), dtype=d) for fn in (sc.random.normal, sc.random.exponential, sc.random.gumbel)
               for d in (F32, "float64")])
    on_device, on_host = sc.compile(draws, [seed], device="cuda"), sc.compile(draws, [seed])
    for k in (0, 7):
        for x, y in zip(on_device(k), on_host(k)):
            np.testing.assert_array_equal(x.numpy(), y)


def test_a_sort_in_place():
    x, y = sc.input("x", "float64", (3, 4)), sc.input("y", "float64", (4, 2))
    f = sc.compile(sc.sort(x @ y, axis=1), [x, y], device="cuda")
    assert "in place" in f.plan
    a, b = rng(6).standard_normal((3, 4)), rng(7).standard_normal((4, 2))
    np.testing.assert_allclose(f(a, b).numpy(), np.sort(a @ b, axis=1), rtol=1e-12)


def test_a_sum_over_what_it_is_added_to():
    """Threads without a row of their own read the operand, in whose memory the sum is written: not before they have."""
    x, a = sc.input("x", "int64", ("n",)), sc.input("a", "float64", (3,))
    top = sc.max(sc.tanh(a))
    f = sc.compile(sc.exp(a) * (sc.sum(sc.sqrt(x + 1.5) + sc.cosh(top)) + top * 3), [x, a], device="cuda")
    given = np.array([2, 0, 1, 0]), rng(8).standard_normal(3)
    g = sc.compile(sc.exp(a) * (sc.sum(sc.sqrt(x + 1.5) + sc.cosh(top)) + top * 3), [x, a])
    np.testing.assert_allclose(f(*given).numpy(), g(*given), rtol=1e-12)


def test_pieces_without_elements():
    """A kernel reads the first element of each piece, and takes what it needs: also of one that has none."""
    x, y = sc.input("x", "int64", ("n",)), sc.input("y", "int64", ("m",))
    f = sc.compile(sc.concatenate([x[:1], y]) * 2, [x, y], device="cuda")
    for n, m in ((1, 0), (0, 2), (3, 1), (0, 0)):
        a, b = np.arange(n) + 5, np.arange(m)
        np.testing.assert_array_equal(f(a, b).numpy(), np.concatenate([a[:1], b]) * 2)


def test_a_search_without_an_answer():
    a = sc.vector("a")
    f = sc.compile(sc.vmap(lambda c: sc.custom_fixed_point(lambda x: c * x + 1, 0.5, max_steps=60))(a), device="cuda")
    np.testing.assert_allclose(f(np.array([0.1, 0.2])).numpy(), [1 / 0.9, 1 / 0.8], rtol=1e-9)
    with pytest.raises(sc.ConvergenceError, match="custom_fixed_point: no answer was found"):
        f(np.array([0.1, 1.5])).numpy()


def test_what_sizes_choose_is_compiled_as_one_unit(monkeypatch):
    """When a function is compiled, and again in the first call whose sizes choose other variants of its kernels."""
    units, load = [], EmulatedDevice.load
    monkeypatch.setattr(EmulatedDevice, "load", lambda self, text, signatures: (
        units.append(len(signatures)), load(self, text, signatures))[1])
    x = sc.input("x", F32, ("n", "m"))
    f = sc.compile([sc.softmax(x, axis=1), sc.sum(x * x, axis=0), sc.max(x), x.T + 1], [x], device="cuda")
    assert len(units) == 1
    a = rng().standard_normal((3, 5)).astype(F32)
    for _ in range(3):
        found = [y.numpy() for y in f(a)]
    assert len(units) == 2 and units[1] > 1
    for got, want in zip(found, [np.exp(a) / np.exp(a).sum(1, keepdims=True), (a * a).sum(0), a.max(), a.T + 1],
                         strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
