"""Models and random graphs for the tests of ``symc.fold``."""

import functools

import numpy as np

import symc as sc
import symc.fold as fd

H, V, C = 5, 12, 3


class SGD:
    """The least that an optimizer is."""

    def __init__(self, rate=0.1):
        self.rate = rate

    def apply(self, grads, params):
        return {p: p.at[g.rows].add(-self.rate * g.values) if isinstance(g, fd.SparseRows) else p - self.rate * g
                for g, p in zip(grads, params, strict=True)}


class Weights:
    """States of random numbers, by name."""

    def __init__(self, seed=0, dtype="float64"):
        self.rng, self.dtype, self.made = np.random.default_rng(seed), dtype, {}

    def __call__(self, name, *shape, scale=0.4):
        if name not in self.made:
            value = (self.rng.standard_normal(shape) * scale).astype(self.dtype)
            self.made[name] = sc.shared(value, name)
        return self.made[name]

    def values(self):
        return list(self.made.values())


@functools.cache
def library(dtype="float64"):
    """Every block of the library, over one set of weights: names to blocks, and the weights."""
    w = Weights(dtype=dtype)
    vector = fd.Array(dtype, (H,))
    state = fd.Struct("State", h=vector, c=vector)
    e = w("E", V, H)
    blocks = [
        fd.lib.embed(e, "word"),
        fd.lib.constant(state, 0.0, "start"),
        fd.lib.constant(vector, 0.5, "half"),
        fd.lib.field(state, "h", "h"),
        fd.lib.lstm(state, vector, w("Wl", H, 4 * H), w("Ul", H, 4 * H), w("bl", 4 * H)),
        fd.lib.gru(vector, vector, w("Wg", H, 3 * H), w("Ug", H, 3 * H), w("bg", 3 * H)),
        fd.lib.tree_lstm(state, w("Ut", 2 * H, 3 * H), w("Ft", 2 * H, 2 * H), w("bt", 5 * H)),
        fd.lib.child_sum(state, vector, w("Wc", H, 4 * H), w("Uc", H, 4 * H), w("bc", 4 * H)),
        fd.lib.total(vector, "sum", "add"),
        fd.lib.total(vector, "mean", "mean"),
        fd.lib.total(vector, "max", "most"),
        fd.lib.concat(vector, vector, name="pair"),
        fd.lib.affine(w("Wa", 2 * H, H), w("ba", H), sc.tanh, "mix"),
        fd.lib.cross_entropy(vector, w("Wo", H, C), w("bo", C), "nll"),
        attend(vector),
    ]
    return {b.name: b for b in blocks}, w


def attend(vector):
    def attention(q, kids):
        return kids.sum(kids.softmax(sc.sum(q * kids.value)) * kids.value) + kids.count * q

    return fd.block(attention, out=vector, q=vector, kids=fd.Many(vector))


def lattice(g, rng, nodes):
    """A random graph over every block of the library. Later nodes take any earlier ones, some of them twice."""
    vectors, states, pairs = [g.word(int(rng.integers(V))), g.half()], [g.start()], []

    def v():
        return vectors[int(rng.integers(len(vectors)))]

    def s():
        return states[int(rng.integers(len(states)))]

    kinds = [
        lambda: vectors.append(g.word(int(rng.integers(V)))),
        lambda: vectors.append(g.h(s())),
        lambda: states.append(g.lstm(s(), v())),
        lambda: vectors.append(g.gru(v(), v())),
        lambda: states.append(g.tree_lstm(s(), s())),
        lambda: states.append(g.child_sum(v(), [s() for _ in range(rng.integers(0, 4))])),
        lambda: vectors.append(g.add([v() for _ in range(rng.integers(0, 21))])),
        lambda: vectors.append(g.mean([v() for _ in range(rng.integers(0, 4))])),
        lambda: vectors.append(g.most([v() for _ in range(rng.integers(1, 4))])),
        lambda: vectors.append(g.attention(v(), [v() for _ in range(rng.integers(0, 5))])),
        lambda: pairs.append(g.pair(v(), v())),
        lambda: pairs and vectors.append(g.mix(pairs[-1])),
        lambda: g.nll(v(), int(rng.integers(C))),
    ]
    for _ in range(nodes):
        kinds[int(rng.integers(len(kinds)))]()
    g.nll(vectors[-1], 1)
    g.nll(g.h(states[-1]), 0)


def random_tree(rng, leaves):
    """Nested pairs of words."""
    row = [int(rng.integers(V)) for _ in range(leaves)]
    while len(row) > 1:
        k = int(rng.integers(len(row) - 1))
        row[k : k + 2] = [(row[k], row[k + 1])]
    return row[0]
