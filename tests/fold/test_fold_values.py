"""Values in the middle of a graph: flush, mark and rewind, and examples in lock step."""

import numpy as np
import pytest

import symc as sc
import symc.fold as fd
from tests.fold.fold_cases import SGD, C, H, Weights, lattice, library


def new_step(**options):
    blocks, w = library()
    return fd.compile(list(blocks.values()), **options), w


def plain(x):
    return np.stack([x.h, x.c]) if isinstance(x, fd.Value) else x


@pytest.mark.parametrize("seed", range(4))
def test_flushed_in_parts_is_the_same(seed):
    step, _ = new_step()
    with fd.record(step) as whole, fd.record(step) as parts:
        lattice(whole, np.random.default_rng(seed), 80)
        rng = np.random.default_rng(seed)
        added = parts.gru

        def flushing(h, x):
            node = added(h, x)
            parts.flush()
            return node

        parts.gru = flushing
        lattice(parts, rng, 80)
        total = whole.run(train=False)
        values = [plain(whole.value(v)) for v in range(len(whole))]
        for v, x in enumerate(values):
            np.testing.assert_allclose(plain(parts.value(v)), x, rtol=1e-12, atol=1e-13)
        assert parts.run(train=False) == total


def test_a_value_stays_when_memory_grows():
    step, w = new_step()
    with fd.record(step) as g:
        x = g.word(3)
        first = g.value(x)
        many = [g.word(k % 12) for k in range(5000)]
        y = g.add([x, *many])
        np.testing.assert_allclose(g.value(y), first + w("E").get_value()[np.arange(5000) % 12].sum(axis=0))
        np.testing.assert_array_equal(g.value(x), first)


def test_mark_and_rewind():
    step, _ = new_step(optimizer=SGD(0.0))
    with fd.record(step) as g, fd.record(step) as straight:
        a = g.word(1)
        place = g.mark()
        for k in range(5):
            b = g.gru(g.word(k), a)
            g.nll(b, 1)
            if k % 2:
                g.value(b)
            g.rewind(place)
        b = g.gru(a, g.word(2))
        g.nll(b, 0)
        c = straight.gru(straight.word(1), straight.word(2))
        straight.nll(c, 0)
        np.testing.assert_array_equal(g.value(b), straight.value(c))
        assert len(g) == len(straight) and g.run() == straight.run()


def greedy(g, words):
    """Shift or reduce, as the model itself says, until one vector is left."""
    stack, rest, actions = [], list(words), []
    while rest or len(stack) > 1:
        x = g.gru(stack[-1] if stack else g.half(), g.word(rest[0]) if rest else stack[-2])
        scores = yield x
        if rest and (len(stack) < 2 or scores[0] > 0):
            stack.append(g.word(rest.pop(0)))
            actions.append("shift")
        else:
            b, a = stack.pop(), stack.pop()
            stack.append(g.mix(g.pair(a, b)))
            actions.append("reduce")
    g.nll(stack[0], 1)
    both = yield [stack[0], g.half()]
    return actions, both


def test_lock_step_is_one_at_a_time():
    step, _ = new_step()
    rng = np.random.default_rng(0)
    sentences = [rng.integers(0, 12, rng.integers(1, 9)).tolist() for _ in range(30)]
    alone = fd.lockstep(step, greedy, sentences, group=1)
    for group in (4, 64):
        together = fd.lockstep(step, greedy, sentences, group=group)
        assert [a for a, _ in together] == [a for a, _ in alone]
        for (_, x), (_, y) in zip(together, alone):
            np.testing.assert_allclose(x, y, rtol=1e-12)
    assert fd.lockstep(step, greedy, []) == []


def test_lock_step_trains():
    w = Weights(1)
    vector = fd.f64[H]
    word, nll = fd.lib.embed(w("E", 12, H), "word"), fd.lib.cross_entropy(vector, w("W", H, C), name="nll")
    step = fd.compile([word, nll, fd.lib.total(vector, "sum", "add")], w.values(), SGD(0.5))
    losses = []

    def classify(g, words):
        x = g.add([g.word(k) for k in words])
        value = yield x
        assert value.shape == (H,)
        losses.append(g.nll(x, words[0] % C))

    data = [[k, k + 1, 3] for k in range(9)]
    before = w("W").get_value()
    first = step_loss(step, data)
    for _ in range(30):
        fd.lockstep(step, classify, data, group=3, train=True)
    assert not np.array_equal(before, w("W").get_value()) and step_loss(step, data) < 0.5 * first


def step_loss(step, data):
    with fd.record(step) as g:
        for words in data:
            g.nll(g.add([g.word(k) for k in words]), words[0] % C)
        return g.run(train=False)


def test_several_blocks_at_one_table_share_its_rows():
    w = Weights(2)
    first = fd.lib.embed(w("E", 6, H), "first")

    @fd.block(out=fd.f64[H], a=fd.Attr(fd.i32), b=fd.Attr(fd.i32))
    def both(a, b):
        return w("E", 6, H)[a] * w("E", 6, H)[b]

    @fd.loss(x=fd.f64[H])
    def square(x):
        return sc.sum(x * x)

    step = fd.compile([first, both, square])
    with fd.record(step) as g:
        for k in range(4):
            g.example()
            g.square(g.first(k))
            g.square(g.both(k, 1))
        e = w("E").get_value()
        expected = np.zeros_like(e)
        for k in range(4):
            expected[k] += 2 * e[k] + 2 * e[k] * e[1] ** 2
            expected[1] += 2 * e[1] * e[k] ** 2
        total = sum((e[k] ** 2).sum() + ((e[k] * e[1]) ** 2).sum() for k in range(4))
        assert g.run(train=False) == pytest.approx(total)
        (rows,) = g.gradients()[1].values()
    assert sorted(rows.rows) == [0, 1, 2, 3]
    found = np.zeros_like(e)
    found[rows.rows] = rows.values
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_one_step_serves_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    step, _ = new_step()

    def run(seed):
        with fd.record(step) as g:
            lattice(g, np.random.default_rng(seed), 60)
            return g.run(train=False), [plain(g.value(v)) for v in range(0, len(g), 7)]

    alone = [run(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, [*range(8), *range(8)]))
    for (loss, values), (other, same) in zip([*alone, *alone], together):
        assert loss == other
        for x, y in zip(values, same):
            np.testing.assert_array_equal(x, y)


def test_a_collection_says_what_is_trained():
    table, other = sc.shared(np.ones((4, 3)), "table"), sc.shared(np.ones(3), "other")

    class Collection:
        def values(self):
            return [table, other]

        def trained(self):
            return {"table": table}

    word = fd.lib.embed(table)

    @fd.loss(x=fd.f64[3])
    def size(x):
        return sc.sum(x * other)

    step = fd.compile(word >> size, Collection(), SGD(0.5))
    assert step([1]) == 3 and step([1]) == 1.5 and (other.get_value() == 1).all()


def test_a_run_that_fails_is_not_taken_for_the_one_before():
    """What was in memory is gone: values of a graph that ran before it are computed again."""
    w = Weights(3)
    vector = fd.f64[H]
    word = fd.lib.embed(w("E", 12, H), "word")

    @fd.block(out=vector, x=vector, k=fd.Attr(fd.i32))
    def times(x, k):
        return x * w("E", 12, H)[k]

    step = fd.compile([word, times])
    with fd.record(step) as g, fd.record(step) as bad:
        x = g.word(3)
        first = g.value(x)
        bad.times(bad.word(5), 99)
        for run in (bad.flush, bad.run):
            with pytest.raises(sc.IndexingError):
                run()
            np.testing.assert_array_equal(g.value(x), first)


def test_marks_that_are_gone_are_refused():
    step, _ = new_step()
    with fd.record(step) as g:
        early = g.mark()
        g.word(1)
        late = g.mark()
        g.rewind(early)
        with pytest.raises(sc.InputError, match="forgotten"):
            g.rewind(late)
