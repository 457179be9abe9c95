"""Layers and recurrent networks against plain NumPy in float64, their gradients against differences."""

import math

import numpy as np
import pytest

import symc as sc

nn = sc.nn
rng = np.random.default_rng(1)


def params(seed=0):
    return sc.Params(seed, dtype="float64")


def run(fn, *arrays, **options):
    leaves = [sc.input(f"x{k}", str(a.dtype), a.shape) for k, a in enumerate(arrays)]
    return sc.compile(fn(*leaves), leaves, **options)(*arrays)


def shake(P):
    """Parameters that are nowhere 0 or 1."""
    for path, s in P.items():
        if path.split("/")[-1] in ("b", "c", "scale", "shift", "mean"):
            s.set_value(s.get_value() + rng.normal(size=s.value.shape) * 0.3)
    return {path: s.get_value() for path, s in P.items()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# --- activations ------------------------------------------------------------------------------------------------------

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid, "softplus": lambda x: np.log1p(np.exp(x)), "tanh": np.tanh,
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "log_softmax": lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)),
    "log_sigmoid": lambda x: np.log(sigmoid(x)), "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)),
    "gelu": lambda x: x * np.vectorize(math.erfc)(-x / 2**0.5) / 2,
    "silu": lambda x: x * sigmoid(x), "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1), "hard_tanh": lambda x: np.clip(x, -1, 1),
    "softsign": lambda x: x / (1 + np.abs(x)), "glu": lambda x: x[:, :3] * sigmoid(x[:, 3:]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(nn.activations.ACTIVATIONS))
def test_activation(name):
    x = rng.normal(size=(4, 6)) * 3
    f = getattr(nn, name)
    along = {"axis": -1} if "softmax" in name else {}
    np.testing.assert_allclose(run(lambda x: f(x, **along), x), ACTIVATIONS[name](x), rtol=1e-12, atol=1e-15)
    sc.verify_grad(lambda x: f(x, **along), [x * 0.1 if name.startswith("hard") else x])
    far = run(lambda x: [f(x, **along), sc.grad(sc.sum(f(x, **along)), x)], np.array([[-1e4, -50.0, 1e4, 50.0]]))
    assert all(np.isfinite(r).all() for r in far)


def test_gelu_by_tanh():
    x = np.linspace(-4, 4, 50)
    exact, near = run(lambda x: [nn.gelu(x), nn.gelu(x, approximate=True)], x)
    assert 0 < np.abs(exact - near).max() < 1e-3


# --- layers -----------------------------------------------------------------------------------------------------------


def test_dense_bilinear_and_embedding():
    P = params()
    x, y, k = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 4)), np.array([[0, 6], [1, 1]])

    def model(x, y, k):
        return [nn.dense(P.sub("a"), x, 7, "tanh"), nn.dense(P.sub("b"), x, 2, bias=False),
                nn.bilinear(P.sub("c"), x, y, 6), nn.embedding(P.sub("d"), k, 7, 2)]

    f = sc.compile(model(*(leaves := [sc.input("x", "float64", x.shape), sc.input("y", "float64", y.shape),
                                      sc.input("k", "int64", k.shape)])), leaves)
    w = shake(P)
    got = f(x, y, k)
    np.testing.assert_allclose(got[0], np.tanh(x @ w["a/w"] + w["a/b"]), rtol=1e-12)
    np.testing.assert_allclose(got[1], x @ w["b/w"], rtol=1e-12)
    np.testing.assert_allclose(got[2], np.einsum("abi,kij,abj->abk", x, w["c/w"], y) + w["c/b"], rtol=1e-12)
    np.testing.assert_array_equal(got[3], w["d/table"][k])
    assert list(w) == ["a/w", "a/b", "b/w", "c/w", "c/b", "d/table"] and P.kind(P["d/table"]) == "lookup"


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolution(rank):
    P = params()
    x = rng.normal(size=(2, 4, *[5] * rank))
    y = run(lambda x: [nn.convolution(P, x, 6, 3, padding="same", groups=2, activation="relu"),
                       getattr(nn, f"conv{rank}d")(x, P["w"], padding=1, groups=2)], x)
    assert P["w"].value.shape == (6, 2, *[3] * rank) and P["b"].value.shape == (6,)
    np.testing.assert_allclose(y[0], np.maximum(y[1], 0), rtol=1e-12)


def test_layers_share_their_weights_when_called_again():
    P = params()
    x = rng.normal(size=(2, 3))
    a, b = run(lambda x: [nn.dense(P.sub("l"), x, 4), nn.dense(P.sub("l"), x + 0, 4)], x)
    np.testing.assert_array_equal(a, b)
    assert len(P) == 2


@pytest.mark.parametrize("axis", [1, -1])
def test_batch_norm(axis):
    P = params()
    x = rng.normal(size=(6, 3, 4)) * 2 + 1
    leaf = sc.input("x", "float64", ("n", 3, 4))
    out = nn.batch_norm(P, leaf, True, momentum=0.2, axis=axis)
    train = sc.compile(out, [leaf], updates=P.updates)
    test = sc.compile(nn.batch_norm(P, leaf, False, axis=axis), [leaf])
    over, view = ((0, 2), (1, 3, 1)) if axis == 1 else ((0, 1), (1, 1, 4))
    w = shake(P)
    n = x.size // w["mean"].size
    mean, var = x.mean(over), x.var(over)
    scaled = lambda m, v: ((x - m.reshape(view)) / np.sqrt(v.reshape(view) + 1e-5) * w["scale"].reshape(view)
                           + w["shift"].reshape(view))
    np.testing.assert_allclose(test(x), scaled(w["mean"], w["variance"]), rtol=1e-12)
    np.testing.assert_allclose(train(x), scaled(mean, var), rtol=1e-10)
    np.testing.assert_allclose(P["mean"].get_value(), 0.8 * w["mean"] + 0.2 * mean, rtol=1e-12)
    np.testing.assert_allclose(P["variance"].get_value(), 0.8 * w["variance"] + 0.2 * var * n / (n - 1), rtol=1e-12)
    np.testing.assert_allclose(test(x), scaled(P["mean"].get_value(), P["variance"].get_value()), rtol=1e-12)
    assert list(P.trained()) == ["scale", "shift"] and set(P.updates) == {P["mean"], P["variance"]}


def test_a_layer_of_running_statistics_that_is_called_twice_moves_twice():
    P = params()
    x = sc.input("x", "float64", ("n", 2))
    y = nn.batch_norm(P, x, True, momentum=0.5) + nn.batch_norm(P, 3 * x, True, momentum=0.5)
    f = sc.compile(y, [x], updates=P.updates)
    f(np.array([[1.0, 2], [3, 4]]))
    np.testing.assert_allclose(P["mean"].get_value(), [0.5 * 0.5 * 2 + 0.5 * 6, 0.5 * 0.5 * 3 + 0.5 * 9])


def test_running_statistics_of_one_example_are_numbers():
    P = params()
    x = sc.input("x", "float64", ("n", 2))
    sc.compile(nn.batch_norm(P, x, True), [x], updates=P.updates)(np.ones((1, 2)))
    assert np.isfinite(P["variance"].get_value()).all()


def test_layer_rms_and_group_norm():
    P = params()
    x = rng.normal(size=(3, 4, 6)) * 2 + 1
    leaf = sc.input("x", "float64", ("n", 4, 6))
    f = sc.compile([nn.layer_norm(P.sub("a"), leaf), nn.layer_norm(P.sub("b"), leaf, axes=2),
                    nn.rms_norm(P.sub("c"), leaf), nn.group_norm(P.sub("d"), leaf, 2),
                    nn.layer_norm(P.sub("e"), leaf, affine=False)], [leaf])
    w = shake(P)

    def normal(x, over, eps=1e-5):
        return (x - x.mean(over, keepdims=True)) / np.sqrt(x.var(over, keepdims=True) + eps)

    got = f(x)
    np.testing.assert_allclose(got[0], normal(x, -1) * w["a/scale"] + w["a/shift"], rtol=1e-10)
    np.testing.assert_allclose(got[1], normal(x, (1, 2)) * w["b/scale"] + w["b/shift"], rtol=1e-10)
    np.testing.assert_allclose(got[2], x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * w["c/scale"], rtol=1e-10)
    grouped = normal(x.reshape(3, 2, 2, 6), (2, 3)).reshape(x.shape)
    np.testing.assert_allclose(got[3], grouped * w["d/scale"][:, None] + w["d/shift"][:, None], rtol=1e-10)
    np.testing.assert_allclose(got[4], normal(x, -1), rtol=1e-10)
    sc.verify_grad(lambda x: nn.group_norm(P.sub("d"), nn.layer_norm(P.sub("a"), x), 2), [x], modes=("rev",))


def test_dropout():
    P = params()
    x = sc.input("x", "float32", ("n", 3))
    y = nn.dropout(P, x, 0.25, True)
    f = sc.compile([y, sc.grad(sc.sum(y), x)], [x], updates=P.updates)
    ones = np.ones((40_000, 3), "float32")
    first, slope = f(ones)
    assert set(np.unique(first)) == {np.float32(0), np.float32(4 / 3)} and abs(first.mean() - 1) < 0.01
    np.testing.assert_array_equal(first, slope)
    assert not np.array_equal(first, f(ones)[0])
    assert nn.dropout(P, x, 0.25, False) is x and nn.dropout(P, x, 0.0, True) is x
    rows = sc.compile(nn.dropout(sc.random.key(0), x, 0.5, True, shape=(x.shape[0], 1)), [x])(ones)
    assert (rows == rows[:, :1]).all() and 0.45 < (rows == 0).mean() < 0.55


def test_attention():
    P = params()
    x, mask = rng.normal(size=(2, 5, 6)), rng.random((2, 1, 5, 5)) > 0.4
    mask[0, 0, 3] = False  # a query that sees nothing
    f = lambda x, **more: nn.multi_head_attention(P, x, heads=3, **more)
    leaf = sc.input("x", "float64", ("n", "t", 6))
    seen = sc.input("m", "bool", ("n", 1, "t", "t"))
    go = sc.compile([f(leaf), f(leaf, causal=True), f(leaf, mask=seen), f(leaf, mask=seen, causal=True)], [leaf, seen])
    w = shake(P)

    def by_hand(x, mask):
        q, k, v = ((x @ w[f"{n}/w"] + w[f"{n}/b"]).reshape(2, 5, 3, 2).swapaxes(1, 2)
                   for n in ("query", "key", "value"))
        p = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(2)) * mask
        p = p / np.maximum(p.sum(-1, keepdims=True), 1e-300)
        return (p @ v).swapaxes(1, 2).reshape(2, 5, 6) @ w["out/w"] + w["out/b"]

    causal = np.tri(5)
    for got, m in zip(go(x, mask), (1, causal, mask, mask * causal), strict=True):
        np.testing.assert_allclose(got, by_hand(x, np.broadcast_to(m, (2, 1, 5, 5))), rtol=1e-10)
    sc.verify_grad(lambda x: f(x, mask=mask, causal=True), [x], modes=("rev",))


# --- recurrent --------------------------------------------------------------------------------------------------------


def cell(kind, x, state, w, u, b, c_=0):
    n = len(u)
    cut = lambda z: [z[..., k * n : (k + 1) * n] for k in range(z.shape[-1] // n)]
    h = state[0]
    if kind == "rnn":
        return (np.tanh(x @ w + h @ u + b),)
    if kind == "lstm":
        i, f, g, o = cut(x @ w + h @ u + b)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "coupled":
        f, g, o = cut(x @ w + h @ u + b)
        c = sigmoid(f) * state[1] + (1 - sigmoid(f)) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (r, z, n), (hr, hz, hn) = cut(x @ w + b), cut(h @ u)
    z = sigmoid(z + hz)
    return ((1 - z) * np.tanh(n + sigmoid(r + hr) * (hn + c_)) + z * h,)


def sweep(kind, xs, w, prefix, reverse=False, lengths=None):
    """One layer in one direction, sequence by sequence."""
    u = w[prefix + "u"]
    out = np.zeros((*xs.shape[:2], len(u)))
    for k in range(xs.shape[1]):
        state = (np.zeros(len(u)),) * (2 if kind in ("lstm", "coupled") else 1)
        steps = range(xs.shape[0] if lengths is None else lengths[k])
        for t in reversed(steps) if reverse else steps:
            state = cell(kind, xs[t, k], state, w[prefix + "w"], u, w[prefix + "b"], w.get(prefix + "c", 0))
            out[t, k] = state[0]
    return out


def build(kind, P, **more):
    if kind == "coupled":
        return nn.lstm(P, 3, 4, variant="coupled", **more)
    return getattr(nn, kind)(P, 3, 4, **more)


@pytest.mark.parametrize("kind", ["rnn", "lstm", "coupled", "gru"])
def test_recurrent(kind):
    P = params()
    xs, lengths = rng.normal(size=(5, 2, 3)), np.array([2, 5])
    one, two = build(kind, P.sub("one"), layers=2), build(kind, P.sub("two"), layers=2, bidirectional=True)
    leaf, long = sc.input("x", "float64", ("t", "n", 3)), sc.input("l", "int64", ("n",))
    s, steps = one.initial_state(2), []
    for t in range(5):
        s = s.add_input(leaf[t])
        steps.append(s.output)
    ys, ends = one.run(leaf)
    f = sc.compile([ys, two.transduce(leaf), two.transduce(leaf, long), sc.stack(steps), one.transduce(leaf, long),
                    one.initial_state(states=ends).add_input(leaf[0]).output, one.run(leaf[:1], states=ends)[0][0],
                    one.run(leaf, long)[1][-1][0]], [leaf, long], mode="default" if kind == "lstm" else "reference")
    w = shake(P)
    got = f(xs, lengths)
    for y, size in ((got[0], None), (got[4], lengths)):
        want = sweep(kind, sweep(kind, xs, w, "one/layer0/", lengths=size), w, "one/layer1/", lengths=size)
        np.testing.assert_allclose(y, want, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(got[3], got[0], rtol=1e-10)
    np.testing.assert_allclose(got[5], got[6], rtol=1e-10)
    np.testing.assert_allclose(got[7], [got[4][1, 0], got[4][4, 1]], rtol=1e-12)
    for y, size in ((got[1], None), (got[2], lengths)):
        x = xs
        for k in range(2):
            x = np.concatenate([sweep(kind, x, w, f"two/layer{k}/{way}/", way == "backward", size)
                                for way in ("forward", "backward")], axis=-1)
        np.testing.assert_allclose(y, x, rtol=1e-10, atol=1e-14)
    assert one.size == 4 and two.size == 8
    small = build(kind, params().sub("small"), bidirectional=True)
    sc.verify_grad(lambda x: small.transduce(x, np.array([1, 2])), [xs[:2]], modes=("rev",))


def test_the_gates_of_an_lstm_begin_as_they_should():
    P = params()
    nn.lstm(P, 3, 4)
    np.testing.assert_array_equal(P["layer0/b"].get_value(), np.repeat([0.0, 1, 0, 0], 4))
    u = P["layer0/u"].get_value()
    for k in range(4):
        np.testing.assert_allclose(u[:, 4 * k : 4 * k + 4] @ u[:, 4 * k : 4 * k + 4].T, np.eye(4), atol=1e-12)
    assert nn.lstm(P, 3, 4).layers[0].w is P["layer0/w"]


def test_a_sequence_is_one_loop_with_one_product_a_step():
    P = params()
    net = nn.lstm(P, 3, 4)
    x = sc.input("x", "float64", ("t", "n", 3))
    f = sc.compile(net.transduce(x), [x])
    loop = f.dump().split("scan")[1]
    assert f.dump().count("scan") == 1 and loop.count("= dot") + loop.count("= gemm") == 1


def test_verify_grad_differentiates_by_states():
    w, v = sc.shared(np.array([2.0, 3.0]), "w"), sc.shared(np.float32([2, 3]), "v")
    sc.verify_grad(lambda x: x * w * v, [np.ones(2)])
    with pytest.raises(sc.GradientError):
        sc.verify_grad(lambda x: x * sc.grad_scale(w, 2.0), [np.ones(2)])


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make, error, message", [
    (lambda x: nn.dense(x, x, 3), sc.InputError, "the first argument is a collection"),
    (lambda x: nn.dense(params(), sc.vector("v"), 3), sc.ShapeError, "must have a size that is known"),
    (lambda x: nn.dense(params(), x, 3, "rellu"), sc.InputError, "did you mean 'relu'"),
    (lambda x: nn.convolution(params(), x, 3, 3), sc.ShapeError, "x has 2 axes"),
    (lambda x: nn.group_norm(params(), x, 4), sc.ShapeError, "6 channels cannot be taken in 4 groups"),
    (lambda x: nn.multi_head_attention(params(), x, heads=4), sc.ShapeError, "6 cannot be taken in 4 heads"),
    (lambda x: nn.dropout(params(), x, 1.0, True), sc.InputError, "the rate is 1.0"),
    (lambda x: nn.lstm(params(), 3, 4, variant="peephole"), sc.InputError, "vanilla"),
    (lambda x: nn.lstm(params(), 3, 0), sc.ShapeError, "hidden is 0"),
    (lambda x: nn.gru(params(), 3, 4).transduce(x), sc.ShapeError, r"x is not \[time, ..., 3\]"),
    (lambda x: nn.gru(params(), 3, 4, bidirectional=True).initial_state(), sc.InputError, "sees the whole sequence"),
])  # fmt: skip
def test_mistakes(make, error, message):
    x = sc.input("x", "float64", ("n", 6))
    with pytest.raises(error, match=message) as caught:
        make(x)
    assert "test_nn.py:" in str(caught.value)
