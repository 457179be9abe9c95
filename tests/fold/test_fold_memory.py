"""Minibatches in bounded memory: in parts, with the results of the whole, or an error that says how much it takes."""

import numpy as np
import pytest

import symc as sc
import symc.fold as fd
from symc.errors import MemoryBudgetError


def compiled(limit, **options):
    rng = np.random.default_rng(0)
    state = fd.Struct("State", h=fd.f64[4], c=fd.f64[4])
    params = [sc.shared(rng.normal(size=s) * 0.4, n) for n, s in
              (("e", (9, 4)), ("w", (4, 16)), ("u", (4, 16)), ("b", (16,)), ("o", (4, 3)))]
    table, w, u, b, o = params

    @fd.block(out=fd.f64[3], s=state, key=fd.Key)
    def scores(s, key):
        return fd.lib.dropout(s.h, 0.3, key) @ o

    cell = fd.lib.lstm(state, fd.f64[4], w, u, b)
    words = fd.Map(fd.lib.embed(table)) >> fd.RNN(cell, fd.lib.constant(state)())
    marked = words >> fd.Map(scores >> fd.Metric("scores"))
    tags = fd.InputTransform(lambda s: [k % 3 for k in s])
    model = fd.AllOf(marked, tags) >> fd.ZipWith(fd.lib.cross_entropy(fd.f64[3]))
    return fd.compile(model, params, sc.optim.adam(0.1), mean=True, max_arena_bytes=limit, **options)


def sentences(seed=0, count=24):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 9, rng.integers(1, 20)).tolist() for _ in range(count)]


def test_a_minibatch_in_parts_is_as_the_whole():
    steps = [compiled(limit) for limit in (None, 60_000, 30_000)]
    data = [s.encode(sentences()) for s in steps]
    parts = [len(s._parts(d[:], True)) for s, d in zip(steps, data)]
    assert parts[0] == 1 < parts[1] < parts[2]
    for _ in range(3):  # other numbers are drawn in each step
        (loss, found), *others = [s.gradients(d) for s, d in zip(steps, data)]
        for other, more in others:
            np.testing.assert_allclose(other, loss, rtol=1e-12)
            for (p, g), (_, h) in zip(found.items(), more.items()):
                np.testing.assert_allclose(dense(h, p), dense(g, p), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose([s(d) for s, d in zip(steps, data)], loss, rtol=1e-12)
        whole = steps[0].metrics(data[0])["scores"]
        for s, d in zip(steps[1:], data[1:]):
            np.testing.assert_allclose(s.metrics(d)["scores"], whole, rtol=1e-9)
            np.testing.assert_allclose(s.loss(d), steps[0].loss(data[0]), rtol=1e-9)
            assert s.program.memory.nbytes <= s.program.memory.limit + 4_000  # a row where none is needed


def dense(gradient, p):
    if isinstance(gradient, fd.RowGradient):
        out = np.zeros(p.get_value().shape)
        out[gradient.rows] = gradient.values
        assert len(set(gradient.rows.tolist())) == len(gradient.rows)
        return out
    return gradient


def test_arrays_of_other_minibatches_do_not_count():
    step = compiled(60_000)
    for k in range(6):
        step(step.encode(sentences(k, 3 + 5 * k)))
        assert step.program.memory.nbytes <= 64_000


def test_an_example_alone_that_needs_more_is_an_error_with_the_bytes():
    step = compiled(2_000)
    with pytest.raises(MemoryBudgetError, match=r"needs \d+ bytes, max_arena_bytes is 2000") as e:
        step([[1, 2, 3] * 30])
    assert "test_fold_memory.py" in str(e.value)
    needed = int(str(e.value).split("needs ")[1].split()[0])
    assert compiled(needed)([[1, 2, 3] * 30]) > 0
    with pytest.raises(MemoryBudgetError):
        compiled(needed - 1)([[1, 2, 3] * 30])
