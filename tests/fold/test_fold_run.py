"""Batched is the same as one by one, for every block of the library, every schedule and random graphs; gradients are
those of finite differences."""

import numpy as np
import pytest

import symc as sc
import symc.fold as fd
from symc.fold.schedule import SCHEDULES
from tests.fold.fold_cases import SGD, H, Weights, lattice, library


def step_of(how="auto", **options):
    blocks, w = library()
    return fd.compile(list(blocks.values()), schedule=how, **options), w


def recorded(step, seed, examples=3, nodes=40):
    rng = np.random.default_rng(seed)
    with fd.record(step) as g:
        for _ in range(examples):
            g.example()
            lattice(g, rng, nodes)
    return g


def plain(x):
    """A value as arrays."""
    return np.stack([x.h, x.c]) if isinstance(x, fd.Value) else x


@pytest.mark.parametrize("how", SCHEDULES)
@pytest.mark.parametrize("seed", range(4))
def test_schedules_agree_with_one_node_at_a_time(how, seed):
    step, _ = step_of(how)
    g = recorded(step, seed)
    loss = g.run(train=False)
    batched = [plain(g.value(v)) for v in range(len(g))]
    alone = recorded(step, seed)
    total = 0.0
    places = alone._graph()[0].apos
    with fd.record(step) as one:  # the same, flushed after each node: batches of one
        for node, block in enumerate(alone._made):
            k = one._blocks.index(block)
            args = alone._args[alone._aptr[node] : alone._aptr[node + 1]]
            singles, rest = args[: len(block.ones)], args[len(block.ones) :]
            named = dict(zip([p.name for p in block.ones], singles))
            named |= {p.name: alone._attrs[k, p.name][places[node]] for p in block.attrs}
            if block.many:
                named[block.many.name] = rest
            one._added(block)(**named)
            one.flush()
            y = plain(one.value(node))
            np.testing.assert_allclose(batched[node], y, rtol=1e-12, atol=1e-13)
            total += float(y) if block.loss else 0
    assert loss == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("how", SCHEDULES)
def test_gradients_are_directional_differences(how):
    step, w = step_of(how, optimizer=SGD())
    g = recorded(step, 7)
    loss, found = g.gradients()
    assert {id(p) for p in found} == {id(p) for p in w.values()}  # found by who made them
    rng = np.random.default_rng(1)
    for p, grad in found.items():
        value, d, eps = p.get_value(), rng.standard_normal(p.get_value().shape), 1e-6
        p.set_value(value + eps * d)
        above = g.run(train=False)
        p.set_value(value - eps * d)
        below = g.run(train=False)
        p.set_value(value)
        got = np.sum(grad.values * d[grad.rows]) if isinstance(grad, fd.RowGradient) else np.sum(grad * d)
        assert got == pytest.approx((above - below) / (2 * eps), rel=1e-6, abs=1e-8), p.name
    assert loss == g.run(train=False)


def test_equal_input_and_schedule_give_equal_bits():
    for how in SCHEDULES:
        step, _ = step_of(how)
        g = recorded(step, 3)
        first, grads = g.gradients()
        other = recorded(step, 11, nodes=70)  # memory grows between
        other.gradients()
        again, same = g.gradients()
        assert first == again
        for p, x in grads.items():
            for a, b in zip(x, same[p]) if isinstance(x, fd.RowGradient) else [(x, same[p])]:
                assert a.tobytes() == b.tobytes()


def test_the_table_that_is_only_looked_up_gets_rows_each_once():
    step, _ = step_of()
    g = recorded(step, 5)
    _, found = g.gradients()
    (rows,) = [x for p, x in found.items() if p.name == "E"]
    used = g._attrs[[b.name for b in g._blocks].index("word"), "word"]
    assert sorted(rows.rows.tolist()) == sorted(set(used))
    assert rows.values.shape == (len(set(used)), H)


def test_an_empty_graph_and_one_node():
    step, _ = step_of(optimizer=SGD())
    with fd.record(step) as g:
        assert g.run() == 0.0
        x = g.half()
        assert g.run(train=False) == 0.0
        np.testing.assert_array_equal(g.value(x), np.full(H, 0.5))


@pytest.mark.parametrize("arity", range(21))
def test_every_arity(arity):
    step, w = step_of()
    with fd.record(step) as g:
        words = [g.word(k % 12) for k in range(arity)]
        rows = w("E").get_value()[[k % 12 for k in range(arity)]]
        q = g.half()
        total, mean, att = g.add(words), g.mean(words), g.attention(q, words)
        most = g.most(words) if arity else None
        np.testing.assert_allclose(g.value(total), rows.sum(axis=0), atol=1e-14)
        np.testing.assert_allclose(g.value(mean), rows.sum(axis=0) / max(arity, 1), atol=1e-14)
        p = np.exp(rows @ np.full(H, 0.5))
        found = (p / p.sum()) @ rows + 0.5 * arity if arity else np.zeros(H)
        np.testing.assert_allclose(g.value(att), found, atol=1e-13)
        if arity:
            np.testing.assert_array_equal(g.value(most), rows.max(axis=0))


def test_a_chain_of_10_000_nodes():
    step, _ = step_of("auto", optimizer=SGD(1e-3))
    with fd.record(step) as g:
        s, x = g.start(), g.word(3)
        for _ in range(10_000):
            s = g.lstm(s, x)
        g.nll(g.h(s), 1)
        first = g.run()
        assert np.isfinite(first) and g.run(train=False) < first


def test_blocks_in_single_precision_with_integers_in_a_struct():
    w = Weights(dtype="float32")
    both = fd.Struct("Both", n=fd.i64, x=fd.f32[3])

    @fd.block(out=both, k=fd.Attr(fd.i64))
    def made(k):
        return dict(n=k * 2, x=w("T", 4, 3)[k])

    @fd.block(out=both, a=both, b=both)
    def joined(a, b):
        return dict(n=a.n + b.n, x=a.x)  # x is handed on as it is

    @fd.loss(a=both)
    def size(a):
        return sc.sum(a.x * a.x) + w("z", 1)[0]

    step = fd.compile([made, joined, size], optimizer=SGD())
    with fd.record(step) as g:
        node = g.joined(g.made(1), g.joined(g.made(2), g.made(3)))
        g.size(node)
        table, z = w("T", 4, 3).get_value(), w("z", 1).get_value()
        assert g.run() == pytest.approx(float((table[1] ** 2).sum() + z[0]))
        assert g.value(node).n == 12
    table[1] *= 0.8
    np.testing.assert_allclose(w("T", 4, 3).get_value(), table, rtol=1e-6)


def test_what_has_no_native_code_runs_in_python():
    a = sc.shared(np.random.default_rng(0).standard_normal((3, 3)) * 0.3, "a")

    @fd.block(out=fd.f64[3], k=fd.Attr(fd.f64))
    def made(k):
        return sc.linalg.expm(a * k)[0]

    @fd.loss(x=fd.f64[3])
    def square(x):
        return sc.sum(x * x)

    step = fd.compile([made, square])
    with fd.record(step) as g:
        for k in range(5):
            g.square(g.made(0.1 * k))
        loss, found = g.gradients()
        x = sc.compile(sum(sc.sum(sc.linalg.expm(a * (0.1 * k))[0] ** 2) for k in range(5)))
        assert loss == pytest.approx(float(x()), rel=1e-12)
        expected = sc.compile(sc.grad(sum(sc.sum(sc.linalg.expm(a * (0.1 * k))[0] ** 2) for k in range(5)), a))()
        np.testing.assert_allclose(found[next(iter(found))], expected, rtol=1e-9)


def test_fields_without_elements():
    empty = fd.Struct("Empty", x=fd.f32[0], y=fd.f32[2, 3])

    @fd.block(out=empty, k=fd.Attr(fd.f32[2, 3]))
    def made(k):
        return dict(x=sc.zeros(0, "float32"), y=k)

    @fd.block(out=empty, a=empty, b=fd.Many(empty))
    def joined(a, b):
        return dict(x=a.x, y=a.y + b.sum(b.y))

    step = fd.compile([made, joined])
    with fd.record(step) as g:
        leaves = [g.made(np.full((2, 3), k)) for k in range(4)]
        x = g.joined(leaves[0], leaves)
        y = g.value(g.joined(x, [x, x]))
        assert y.x.shape == (0,) and (y.y == 18).all()


def test_a_loss_may_be_an_argument_and_shares_its_type():
    w = sc.shared(np.array([2.0, 3.0]), "w")

    @fd.block(out=fd.f64, k=fd.Attr(fd.f64))
    def scaled(k):
        return w[0] * k

    @fd.loss(x=fd.f64)
    def square(x):
        return x * x

    @fd.loss(x=fd.f64)
    def cube(x):
        return w[1] * x * x * x

    step = fd.compile([scaled, square, cube])
    with fd.record(step) as g:
        x = g.scaled(1.5)
        y = g.square(x)  # 9, by x = 3
        g.cube(y)  # 3 * 729
        g.scaled(7.0)
        loss, found = g.gradients()
    assert loss == 9 + 3 * 729
    by_x = 2 * 3 + 3 * 3 * 81 * 2 * 3
    np.testing.assert_allclose(next(iter(found.values())), [by_x * 1.5, 729])


def test_a_table_that_is_read_otherwise_too_gets_a_dense_gradient():
    table = sc.shared(np.arange(12.0).reshape(4, 3), "table")
    word = fd.lib.embed(table, "word")

    @fd.loss(x=fd.f64[3])
    def against_all(x):
        return sc.sum(table @ x)

    step = fd.compile([word, against_all])
    with fd.record(step) as g:
        for k in (1, 3, 1):
            g.against_all(g.word(k))
        (grad,) = g.gradients()[1].values()
    t = table.get_value()
    expected = np.tile(2 * t[1] + t[3], (4, 1))
    expected[1] += 2 * t.sum(axis=0)
    expected[3] += t.sum(axis=0)
    np.testing.assert_allclose(grad, expected)


def test_a_minibatch_of_no_examples():
    table = sc.shared(np.ones((4, 3)), "table")
    model = fd.AllOf(fd.lib.embed(table), fd.Constant(1)) >> fd.lib.cross_entropy(fd.f64[3])
    step = fd.compile(model, optimizer=SGD(), mean=True)
    data = step.encode([1, 2])
    assert step(data[:0]) == 0 and (table.get_value() == 1).all()
    assert step([]) == 0 and step(data) > 0 and (table.get_value() != 1).any()


def test_what_is_not_trained_needs_no_gradients():
    rng = np.random.default_rng(0)
    table, w = sc.shared(rng.normal(size=(7, 9)), "table"), sc.shared(rng.normal(size=(9, 9)), "w")

    @fd.block(out=fd.f64[9])
    def read(k: fd.Attr(fd.i32)):
        return table[k]

    @fd.block(out=fd.Struct("S", h=fd.f64[9]), x=fd.f64[9])
    def first(x):
        return dict(h=sc.tanh(x @ w))

    @fd.loss(s=first.out)
    def total(s):
        return sc.sum(s.h ** 2)

    def step(params):
        return fd.compile(fd.Map(read >> first >> total), params)

    few, all_ = step([w]), step([table, w])
    (_, found), (_, every) = (s.gradients([[1, 2], [3, 3, 5]]) for s in (few, all_))
    np.testing.assert_array_equal(found[w], every[w])
    assert list(found) == [w] and len(every) == 2
    products = [sum(line.count("call dot") for f in s.functions if f.name.endswith("bwd")
                    for line in str(f.plan).splitlines()) for s in (few, all_)]
    assert products == [0, 1]
