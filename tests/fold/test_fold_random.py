"""Random numbers in blocks: the same however nodes are batched, others in each step, none where nothing is trained."""

import numpy as np
import pytest

import symc as sc
import symc.fold as fd
from symc.errors import InputError
from symc.fold.schedule import SCHEDULES

EXAMPLES = [(1, (2, 3)), 4, ((1, 2), (3, 4)), (1, (2, 3)), ((0, (1, (2, (3, 4)))), 2)]


def model(rate=0.4):
    rng = np.random.default_rng(0)
    w, u = sc.shared(rng.normal(size=(5, 4)), "w"), sc.shared(rng.normal(size=(8, 4)) * 0.4, "u")

    @fd.block(out=fd.f64[4])
    def leaf(word: fd.Attr(fd.i32), key: fd.Key):
        return fd.lib.dropout(sc.tanh(w[word]), rate, key)

    @fd.block(out=fd.f64[4], left=fd.f64[4], key=fd.Key, right=fd.f64[4])
    def node(left, key, right):
        return fd.lib.dropout(sc.tanh(sc.concatenate([left, right]) @ u), rate, key)

    @fd.loss(x=fd.f64[4])
    def total(x):
        return sc.sum(x**2)

    tree = fd.Rec("tree")
    tree.define(fd.OneOf(lambda x: isinstance(x, int), {True: leaf, False: node(tree[0], tree[1])}))
    return tree >> total, [w, u], (leaf, node, total)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_batched_is_as_one_by_one(schedule):
    m, params, _ = model()
    step = fd.compile(m, params, schedule=schedule, seed=3)
    data = step.encode(EXAMPLES)
    loss, found = step.gradients(data)
    alone = [step.gradients(data[k]) for k in range(len(EXAMPLES))]
    np.testing.assert_allclose(sum(x for x, _ in alone), loss, rtol=1e-12)
    np.testing.assert_allclose(sum(g[params[1]] for _, g in alone), found[params[1]], rtol=1e-10)
    assert alone[0][0] != alone[3][0]  # equal trees, numbers of their own
    assert loss == step.gradients(data)[0] == fd.compile(m, params, schedule=schedule, seed=3).gradients(EXAMPLES)[0]
    assert loss != fd.compile(m, params, schedule=schedule, seed=4).gradients(EXAMPLES)[0]


def test_nothing_is_dropped_where_nothing_is_trained():
    (m, params, _), (plain, others, _) = model(), model(0.0)
    step = fd.compile(m, params)
    assert step.loss(EXAMPLES) == step.loss(EXAMPLES) == fd.compile(plain, others).loss(EXAMPLES)
    assert step.loss(EXAMPLES) != step.gradients(EXAMPLES)[0]


def test_each_step_has_numbers_of_its_own_and_can_be_gone_on_with():
    m, params, _ = model()
    step = fd.compile(m, params, optimizer=sc.optim.sgd(0.0))
    losses = [step(EXAMPLES) for _ in range(4)]
    assert len(set(losses)) == 4 and step.count == 4
    again = fd.compile(m, params, optimizer=sc.optim.sgd(0.0))
    again.count = 2
    assert [again(EXAMPLES), again(EXAMPLES)] == losses[2:]


def test_gradients_are_those_of_the_numbers_drawn():
    m, params, _ = model()
    step = fd.compile(m, params)
    _, found = step.gradients(EXAMPLES)
    u, d = params[1].get_value(), 1e-6 * np.random.default_rng(1).normal(size=(8, 4))
    ends = []
    for e in (d, -d):
        params[1].set_value(u + e)
        ends.append(step.gradients(EXAMPLES)[0])
    np.testing.assert_allclose(np.sum(found[params[1]] * d), (ends[0] - ends[1]) / 2, rtol=1e-6)


def test_half_is_dropped_and_the_rest_is_larger():
    one = sc.shared(np.ones(200, "float32"), "one")

    @fd.loss(key=fd.Key)
    def total(key):
        return sc.sum(fd.lib.dropout(one, 0.5, key))

    loss, found = fd.compile(total(), [one]).gradients([0] * 50)
    assert abs(loss / (50 * 200) - 1) < 0.03 and set(found[one] % 2) == {0.0}
    assert 0.4 < np.mean(found[one] / 2 / 50) < 0.6


def test_recorded_by_hand_in_pieces():
    _, params, (leaf, node, total) = model()
    step = fd.compile([leaf, node, total], params)

    def loss(flush):
        with fd.record(step) as g:
            for words in ((1, 2, 3), (4, 0, 1)):
                g.example()
                x = g.leaf(words[0])
                for w in words[1:]:
                    x = g.node(x, g.leaf(word=w))
                    if flush:
                        g.flush()
                g.total(x)
            return g.gradients()[0]

    assert loss(True) == loss(False)


def test_mistakes():
    with pytest.raises(InputError, match="several ports"):
        fd.block(lambda a, b: a, out=fd.f64, a=fd.Key, b=fd.Key)
    _, params, (leaf, node, total) = model()
    step = fd.compile([leaf, node, total], params)
    with fd.record(step) as g, pytest.raises(InputError, match="takes 1 arguments"):
        g.leaf(1, 2)
    with pytest.raises(InputError, match="from 0 up to below 1"):
        _ = model(1.0)[2][0].batched
