"""Programs that forms of other engines are tried with: a function, and arguments of several sizes."""

import itertools

import numpy as np

import symc as sc

RNG = np.random.default_rng(0)


def normal(*shape, dtype="float64"):
    return RNG.normal(size=shape).astype(dtype)


def mlp():
    """A training step; the states change."""
    x, y = sc.input("x", "float32", shape=("n", 4)), sc.input("y", "int64", shape=("n",))
    P = sc.Params(seed=0)
    h = sc.nn.dense(P.sub("hidden"), x, 8, activation="tanh")
    loss = sc.nn.cross_entropy(sc.nn.dense(P.sub("out"), h, 3), y)
    f = sc.compile({"loss": loss}, [x, y], updates=sc.optim.sgd(0.1).updates(loss, P), name="mlp", mode="reference")
    return f, [(normal(n, 4, dtype="float32"), RNG.integers(0, 3, n)) for n in (1, 6)]


def lstm():
    """A recurrent layer over time, and the gradient of what it gives by its weights."""
    x, w = sc.input("x", "float32", shape=("t", "b", 3)), sc.input("w", "float32", shape=(8, 20))

    def step(carry, row):
        h, c = carry
        i, f, g, o = sc.split(sc.concatenate([row, h], axis=1) @ w, 4, axis=1)
        c = sc.nn.sigmoid(f) * c + sc.nn.sigmoid(i) * sc.tanh(g)
        h = sc.nn.sigmoid(o) * sc.tanh(c)
        return (h, c), h

    zeros = sc.zeros((x.shape[1], 5), "float32")
    (h, _), ys = sc.scan(step, (zeros, zeros), x)
    f = sc.compile([h, ys, sc.grad(sc.mean(ys**2), w)], [x, w], name="lstm", mode="reference")
    return f, [(normal(t, b, 3, dtype="float32"), normal(8, 20, dtype="float32")) for t, b in ((1, 2), (7, 1))]


def attention():
    """Softmax attention with a mask."""
    q, k, v = (sc.input(n, "float32", shape=("b", "s", 4)) for n in "qkv")
    s = sc.einsum("bid,bjd->bij", q, k) / 2
    i = sc.arange(q.shape[1])
    s = sc.where(i[:, None] >= i[None, :], s, -sc.inf)
    out = sc.einsum("bij,bjd->bid", sc.nn.softmax(s, axis=-1), v)
    f = sc.compile(out, [q, k, v], name="attention", mode="reference")
    return f, [tuple(normal(b, s, 4, dtype="float32") for _ in range(3)) for b, s in ((1, 1), (2, 5))]


def kalman():
    """A filter: in every step a system of equations is solved."""
    ys, a, c = (sc.input(n, "float64", shape=s) for n, s in (("ys", ("t", 2)), ("a", (3, 3)), ("c", (2, 3))))

    def step(state, y):
        m, p, total = state
        m, p = a @ m, a @ p @ a.T + 0.1 * sc.eye(3)
        s = c @ p @ c.T + sc.eye(2)
        gain = sc.linalg.solve(s, c @ p).T
        r = y - c @ m
        total = total - 0.5 * (r @ sc.linalg.solve(s, r) + sc.linalg.slogdet(s)[1])
        return (m + gain @ r, p - gain @ c @ p, total), m

    (m, p, total), ms = sc.scan(step, (sc.zeros(3), sc.eye(3), sc.asarray(0.0)), ys)
    f = sc.compile({"mean": m, "cov": p, "loglik": total, "path": ms}, [ys, a, c], name="kalman", mode="reference")
    return f, [(normal(t, 2), 0.5 * normal(3, 3), normal(2, 3)) for t in (1, 6)]


def density():
    """A model's log density and its gradient."""
    x, y, w, s = (sc.input(n, "float64", shape=sh) for n, sh in
                  (("x", ("n", 3)), ("y", ("n",)), ("w", (3,)), ("s", ())))
    logp = sc.sum(sc.stats.norm.logpdf(w)) + sc.stats.expon.logpdf(sc.exp(s)) + sc.sum(
        sc.stats.norm.logpdf(y, x @ w, sc.exp(s)) + sc.stats.logistic.logpdf(y) + sc.log1p(sc.exp(y)))
    f = sc.compile((logp, sc.grad(logp, [w, s])), [x, y, w, s], name="density", mode="reference")
    return f, [(normal(n, 3), normal(n), normal(3), normal()) for n in (1, 9)]


def cnn():
    """Convolutions, pooling, and gradients by the filters."""
    x, w = sc.input("x", "float32", shape=("n", 2, 9, 9)), sc.input("w", "float32", shape=(3, 2, 3, 3))
    h = sc.max_pool(sc.nn.relu(sc.conv(x, w, padding=1)), 2)
    loss = sc.mean(sc.avg_pool(h, 2) ** 2)
    f = sc.compile([h, loss, *sc.grad(loss, [w, x])], [x, w], name="cnn", mode="reference")
    return f, [(normal(n, 2, 9, 9, dtype="float32"), normal(3, 2, 3, 3, dtype="float32")) for n in (1, 3)]


def loops():
    """A loop whose end is data, branches, places of elements."""
    x, k = sc.input("x", "float64", shape=("n",)), sc.input("k", "int64", shape=())
    big = sc.while_loop(lambda s: s.sum() < 50, lambda s: s * 1.5, abs(x) + 0.1)
    z = sc.cond(x.sum() > 0, lambda v: sc.sin(v), lambda v: v - 1, x)
    u = sc.switch(k, [lambda v: v, lambda v: v * 2, lambda v: v[::-1]], x)
    order = sc.argsort(x)
    outs = [big, z, u, order, x[order][::2], x.at[order % 3].set(1.0), sc.cumsum(x), sc.cumprod(x), x.argmax()]
    f = sc.compile(outs, [x, k], name="loops", mode="reference")
    return f, [(normal(n), np.int64(j)) for n, j in ((1, 0), (4, 1), (7, 2))]


def movements():
    """Axes repeated at any place, sizes that a guard has made known, and tails that cancel."""
    x = sc.input("x", "float32", shape=("n", 3))
    outs = [sc.tile(x, (2, 1, 2)), sc.kron(x, x), sc.squeeze(x[:1], 0), sc.nn.gelu(4 * x), sc.special.erfc(3 * x)]
    for axes in itertools.combinations(range(4), 2):
        index = tuple(slice(None) if a in axes else None for a in range(4))
        shape = [x.shape[axes.index(a)] if a in axes else 2 for a in range(4)]
        outs.append(sc.reshape(sc.broadcast_to(x[index], shape), (-1,)))
    f = sc.compile(outs, [x], name="movements", mode="reference")
    return f, [(normal(n, 3, dtype="float32"),) for n in (1, 4)]


PROGRAMS = [mlp, lstm, attention, kalman, density, cnn, loops, movements]
