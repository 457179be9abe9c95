"""Generated cells: loops over random words against the same loop in NumPy, whose derivatives are complex steps."""

import numpy as np
import pytest

import symc as sc
import symc.fold as fd
from symc.fold import script

ROWS, STEP = 6, 1e-30


class Cell:
    """A recurrent cell of parts of random widths, end to end: what is made of the last state, of a word alone (some
    used with the state, some only added), of rows of tables, and of several of these."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.arrays = []
        widths = [int(w) for w in self.rng.choice([1, 2, 5, 17], 3)]
        self.size = sum(widths)
        self.table = self.weights(ROWS, self.size)
        self.parts = [self.part(w, 2) for w in widths]

    def weights(self, *shape):
        self.arrays.append(self.rng.standard_normal(shape) * 0.5)
        return len(self.arrays) - 1

    def part(self, width, depth):
        """A function of (NumPy or symc, arrays, state, word, index): ``width`` numbers."""
        kind = self.rng.choice(["state", "word", "row", "port", *["mul", "add", "tanh"] * (depth > 0)])
        if kind in ("state", "word"):
            w = self.weights(self.size, width)
            return lambda m, p, h, x, k: (h if kind == "state" else x) @ p[w]
        if kind == "row":
            w = self.weights(ROWS, width)
            return lambda m, p, h, x, k: p[w][k]
        if kind == "port":
            return lambda m, p, h, x, k: (h * 1)[:width]
        a, b = self.part(width, depth - 1), self.part(width, depth - 1)
        if kind == "mul":
            return lambda *args: a(*args) * b(*args)
        return (lambda *args: a(*args) + b(*args)) if kind == "add" else lambda m, *args: m.tanh(a(m, *args))

    def step(self, m, p, h, x, k):
        return m.concatenate([part(m, p, h, x, k) for part in self.parts]) * 0.5 + h * 0.5

    def loss(self, m, p, h, x):
        """The loss of two cells, added up: what is also the cotangent of a port is that of rows of a table."""
        return m.sum(m.tanh(h) * x)


@pytest.mark.parametrize("seed", range(7))
def test_a_generated_cell_is_the_loop_that_it_stands_for(seed):
    cell = Cell(seed)
    states = [sc.shared(a, f"p{k}") for k, a in enumerate(cell.arrays)]
    vector = fd.f64[cell.size]
    word = fd.lib.embed(states[cell.table], "word")
    lifted = fd.Struct("Lifted", x=vector)
    lift = fd.block(lambda x: dict(x=x), out=lifted, x=vector)
    State = fd.Struct("State", h=vector)
    start = fd.block(lambda x: dict(h=x.x), out=State, x=lifted)
    body = fd.block(lambda s, x, k: dict(h=cell.step(sc, states, s.h, x.x, k)), out=State, s=State, x=lifted,
                    k=fd.Attr(fd.i32))
    end = fd.loss(lambda s, x: cell.loss(sc, states, s.h, x.x), s=State, x=lifted)
    for b, name in ((lift, "lift"), (start, "start"), (body, "body"), (end, "end")):
        b.name = name
    rng = np.random.default_rng(seed)
    directions = [rng.standard_normal(a.shape) for a in cell.arrays]
    moved = [a + 1j * STEP * d for a, d in zip(cell.arrays, directions)]
    train_first = seed % 2
    step = fd.compile([word, lift, start, body, end])
    for length in (3, 200):
        words = rng.integers(0, ROWS, length).tolist()
        h, total = moved[cell.table][words[0]], 0
        with fd.record(step) as g:
            last = g.start(g.lift(g.word(words[0])))
            for k in words:
                x, lift_ = moved[cell.table][k], g.lift(g.word(k))
                last, h = g.body(last, lift_, k), cell.step(np, moved, h, x, k)
            g.end(last, lift_)
            total += cell.loss(np, moved, h, x)
            for train in (train_first, 1 - train_first):
                if train:
                    loss, found = g.gradients()
                else:
                    loss = g.run(train=False)
                assert loss == pytest.approx(total.real, rel=1e-9)
            slope = 0.0
            for state, grad in found.items():
                d = directions[[s.cell for s in states].index(state.cell)]
                slope += (grad.values * d[grad.rows]).sum() if hasattr(grad, "rows") else (grad * d).sum()
            assert slope == pytest.approx(total.imag / STEP, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("fails_at", range(3))
def test_after_a_compilation_that_was_ended_all_is_compiled(monkeypatch, fails_at):
    """As by Ctrl-C: a script that was not finished does not run."""
    calls = []

    def ended(*args, **kwargs):
        calls.append(args)
        if len(calls) == fails_at + 1:
            raise KeyboardInterrupt
        return compile_function(*args, **kwargs)

    compile_function = script.compile_function
    monkeypatch.setattr(script, "compile_function", ended)
    word = fd.lib.embed(sc.shared(np.ones((4, 3)), "E"))

    @fd.loss(x=fd.f64[3])
    def square(x):
        return sc.sum(x * x)

    step = fd.compile([word, square])
    with fd.record(step) as g:
        g.square(g.embed(1))
        with pytest.raises(KeyboardInterrupt):
            g.gradients()
        loss, found = g.gradients()
    assert loss == 3 and [r.values.tolist() for r in found.values()] == [[[2.0, 2.0, 2.0]]]


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_values_of_complex_numbers_are_pairs_of_real_ones(dtype):
    real = "float64" if dtype == "complex128" else "float32"
    rng = np.random.default_rng(0)
    states = [sc.shared(rng.standard_normal((4, 3)).astype(real), name) for name in ("re", "im")]
    z, pair = fd.Array(dtype, (3,)), fd.Struct("Pair", re=fd.Array(real, (3,)), im=fd.Array(real, (3,)))
    word = fd.block(lambda k: (states[0][k] + 1j * states[1][k]).astype(dtype), out=z, k=fd.Attr(fd.i32))
    times = fd.block(lambda a, b: a * b + sc.conj(a), out=z, a=z, b=z)
    size = fd.loss(lambda a: sc.sum(sc.abs(a) ** 2), a=z)
    rows = fd.block(lambda k: (states[0][k], states[1][k]), out=pair, k=fd.Attr(fd.i32))
    products = fd.block(lambda a, b: (a.re * b.re - a.im * b.im + a.re, a.re * b.im + a.im * b.re - a.im), out=pair,
                        a=pair, b=pair)
    sizes = fd.loss(lambda a: sc.sum(a.re**2 + a.im**2), a=pair)
    found = []
    for blocks in ((word, times, size), (rows, products, sizes)):
        for block, name in zip(blocks, ("word", "times", "size"), strict=True):
            block.name = name
        step = fd.compile(list(blocks))
        with fd.record(step) as g:
            words = [g.word(k) for k in range(4)]
            for k in range(6):
                words.append(g.times(words[k], words[-1]))
                g.size(words[-1])
            loss, gradients = g.gradients()
        found.append([loss, *[s for _, r in sorted((v.cell.name, r) for v, r in gradients.items()) for s in r.values]])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9 if real == "float64" else 1e-3)
