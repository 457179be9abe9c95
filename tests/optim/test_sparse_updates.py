"""Tables of which a step reads some rows: what is updated, what that costs, and that "exact" is as if all were."""

import numpy as np
import pytest

import symc as sc

optim = sc.optim
ELEMENTWISE = [name for name, make in optim.OPTIMIZERS.items() if name != "eg"]


def make(name, sparse, rate=0.02, **more):
    if name == "cyclical_sgd":
        return optim.cyclical_sgd(0.01, 0.05, 7, sparse=sparse)
    return optim.OPTIMIZERS[name](rate, sparse=sparse, **more)


def model(opt, n=40, d=5, dtype="float64", wrap=lambda o: o, mode="default"):
    """A loss that reads a table twice, with rows in common, and a weight beside it."""
    P = sc.Params(0, dtype)
    table, w = P.lookup("table", n, d), P.weight("w", d, 0.5)
    ids, y = sc.input("ids", "int64", ("n", 2)), sc.input("y", dtype, ("n",))
    rows = sc.tanh(table[ids]) @ w
    loss = sc.nn.mse(rows[:, 0] * rows[:, 1] + table[ids[::-1, 0]].sum(axis=1), y)
    opt = wrap(opt)
    u = opt.updates(loss, P)
    return P, opt, sc.compile(u.loss, [ids, y], updates=u, mode=mode)


def train(P, opt, step, steps=40, n=40, seed=0):
    """Rows that are read now and then: some often, some after a long time, some never. -1 is the last one."""
    rng = np.random.default_rng(seed)
    losses = []
    for k in range(steps):
        ids = rng.integers(-1, n - 5 if k % 10 == 9 else 9, (4, 2))
        losses.append(float(step(ids, np.sin(ids[:, 0]))))
    return losses


def states(P, opt):
    return {**{p: s.get_value() for p, s in P.items()}, **{p: s.get_value() for p, s in opt.states.items()}}


def flush(P, opt):
    if updates := opt.flush(P):
        sc.compile([], updates=updates)()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_exact_is_dense(name):
    dense, exact = model(make(name, "dense"), mode="reference"), model(make(name, "exact"))
    np.testing.assert_allclose(train(*exact), train(*dense), rtol=1e-11)
    flush(*exact[:2])
    one, two = states(*exact[:2]), states(*dense[:2])
    for path in two:
        np.testing.assert_allclose(one[path], two[path], rtol=1e-10, atol=1e-14, err_msg=path)


@pytest.mark.parametrize("name, more", [("momentum", {}), ("adam", {}), ("adamw", {"decay": 0.1}), ("amsgrad", {})])
@pytest.mark.parametrize("rate", [lambda t: 0.03 / (1 + t / 10), 0.03], ids=["schedule", "number"])
def test_exact_with_long_gaps_and_schedules(name, more, rate):
    """Gaps longer than a mean remembers, so that the closed form after the loop plays its part."""
    quick = {"mu": 0.5} if name == "momentum" else {"b1": 0.3, "b2": 0.7}
    dense, exact = (model(make(name, how, rate, **quick, **more)) for how in ("dense", "exact"))
    ids, y = np.array([[0, 1], [2, 2], [2, 3]]), np.ones(3)
    for _, _, step in (dense, exact):
        for k in range(140):
            step(ids if k in (0, 1, 130) else ids + 20, y * (1 + k % 3))
    flush(*exact[:2])
    one, two = states(*exact[:2]), states(*dense[:2])
    for path in two:
        np.testing.assert_allclose(one[path], two[path], rtol=1e-9, atol=1e-13, err_msg=path)


def test_exact_in_float32():
    dense, exact = (model(make("adam", how), dtype="float32") for how in ("dense", "exact"))
    np.testing.assert_allclose(train(*exact), train(*dense), rtol=1e-3)


def test_exact_through_clipping():
    wrap = lambda o: optim.chain(optim.clip_by_global_norm(0.1), o)
    dense, exact = (model(make("adam", how), wrap=wrap) for how in ("dense", "exact"))
    np.testing.assert_allclose(train(*exact), train(*dense), rtol=1e-11)
    with pytest.raises(sc.InputError, match=r"sparse='exact' and sc.optim.weight_decay\(0.1\)"):
        model(make("adam", "exact"), wrap=lambda o: optim.chain(optim.weight_decay(0.1), o))


@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_lazy_is_dense_where_a_gradient_of_zero_does_nothing(name):
    dense, lazy = (model(make(name, how)) for how in ("dense", "lazy"))
    np.testing.assert_allclose(train(*lazy), train(*dense), rtol=1e-12)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_lazy_changes_the_rows_that_were_read(name):
    """And of these it makes one dense step with the sum of their gradients."""
    P, opt, step = model(make(name, "lazy"))
    ids, y = np.array([[1, 1], [7, 39], [-1, 2], [1, 7]]), np.arange(4.0)
    step(ids, y)
    before = states(P, opt)
    Q, reference, one_step = model(make(name, "dense"))
    for path, s in Q.items():
        s.set_value(before[path])
    for path, s in reference.states.items():
        s.set_value(before[path])
    step(ids, y)
    one_step(ids, y)
    after, want = states(P, opt), states(Q, reference)
    read = [1, 2, 7, 39]
    rest = np.setdiff1d(np.arange(40), read)
    for path in after:
        if path.startswith("table"):
            np.testing.assert_allclose(after[path][read], want[path][read], rtol=1e-12, atol=1e-15)
            np.testing.assert_array_equal(after[path][rest], before[path][rest])
            assert (after[path][read] != before[path][read]).any()
        else:
            np.testing.assert_allclose(after[path], want[path], rtol=1e-12)


def table_buffers(f, bytes_):
    """Buffers of at least so many bytes besides the states."""
    return [str(row) for row in str(f.memory(n=8)).splitlines()[1:]
            if " state " not in row and int(row.split()[2].replace(",", "")) >= bytes_]


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("sparse", ["lazy", "exact"])
def test_memory_is_that_of_the_rows(name, sparse):
    n, d = 50_000, 16
    _, _, step = model(make(name, sparse), n=n, d=d, dtype="float32")
    assert not table_buffers(step, 8 * n)
    states = sum(int(row.split()[2].replace(",", "")) for row in str(step.memory(n=8)).splitlines() if " state " in row)
    assert step.memory(n=8) - states < 50_000
    step(np.arange(16).reshape(8, 2), np.ones(8))


def test_dense_memory_is_that_of_the_table():
    _, _, step = model(make("sgd", "dense"), n=50_000, d=16, dtype="float32")
    assert table_buffers(step, 4 * 50_000 * 16)  # and so the test above can fail


def test_no_rows_at_all():
    for sparse in ("lazy", "exact"):
        P, opt, _ = model(make("adam", sparse))
        ids = sc.input("ids", "int64", ("n",))
        u = opt.updates(sc.sum(P["table"][ids] ** 2) + sc.sum(P["w"] ** 2), P)
        before = P["table"].get_value()
        sc.compile(u.loss, [ids], updates=u)(np.zeros(0, "int64"))
        np.testing.assert_array_equal(P["table"].get_value(), before)


def test_a_row_out_of_the_table_is_an_error_and_changes_nothing():
    P, opt, step = model(make("adam", "lazy"))
    before = states(P, opt)
    with pytest.raises(sc.IndexingError):
        step(np.array([[0, 40]]), np.ones(1))
    for path, a in states(P, opt).items():
        np.testing.assert_array_equal(a, before[path])


@pytest.mark.parametrize("use", [
    lambda E, ids: E[ids] @ E.T, lambda E, ids: sc.sum(E) + E[ids], lambda E, ids: E[:3] + E[ids][:3],
    lambda E, ids: sc.scan(lambda c, i: (c + E[i], None), sc.zeros(5), ids)[0],
])  # fmt: skip
def test_a_table_that_is_read_otherwise_is_updated_as_a_whole(use):
    P = sc.Params(0, "float64")
    E, ids = P.lookup("E", 40, 5), sc.input("ids", "int64", (3,))
    loss = sc.sum(sc.tanh(use(E, ids)))
    sparse, dense = (optim.sgd(0.1, sparse=how).updates(loss, P)[E] for how in ("exact", "dense"))
    a, b = sc.compile([sparse, dense], [ids])([3, 3, 5])
    np.testing.assert_array_equal(a, b)


def test_rows_given_by_hand():
    P = sc.Params(0, "float64")
    E = P.lookup("E", 10, 3)
    rows = sc.input("rows", "int64", ("n", 2))
    values = sc.input("values", "float64", ("n", 2, 3))
    for name in ELEMENTWISE:
        start = E.get_value()
        index, given = np.array([[1, 1], [-1, 4]]), np.random.default_rng(0).normal(size=(2, 2, 3))
        sparse = make(name, "lazy").apply([optim.SparseRows(rows, values)], [E])
        whole = sc.zeros((10, 3)).at[rows].add(values)
        dense = make(name, "dense").apply([whole], [E])
        a, b = sc.compile([sparse[E], dense[E]], [rows, values])(index, given)
        np.testing.assert_allclose(a[[1, 4, 9]], b[[1, 4, 9]], rtol=1e-12, err_msg=name)
        np.testing.assert_array_equal(a[[0, 2, 3]], start[[0, 2, 3]])


def test_rows_given_by_hand_exactly():
    """``read`` gives rows as they would be; ``apply`` goes on from them."""
    P, Q = sc.Params(0, "float64"), sc.Params(0, "float64")
    E, D = P.lookup("E", 10, 3), Q.lookup("E", 10, 3)
    rows = sc.input("rows", "int64", ("n",))
    opt, dense = make("adam", "exact"), make("adam", "dense")
    now = opt.read(E, rows)
    loss = sc.sum(sc.tanh(now) ** 2)
    f = sc.compile([loss, now], [rows], updates=opt.apply([optim.SparseRows(rows, sc.grad(loss, now))], [E]))
    wanted = sc.sum(sc.tanh(D[rows]) ** 2)
    g = sc.compile([wanted, D[rows]], [rows], updates=dense.updates(wanted, Q))
    for index in ([1, 2], [1, 3], [3, 4], [2, 2, 1], [4]):
        for a, b in zip(f(index), g(index), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_global_norm_counts_sums_of_equal_rows_once():
    rows = optim.SparseRows([3, 1, 3], np.array([[1.0, 2], [3, 4], [5, 6]])).summed(5)
    norm = sc.compile(optim.global_norm([rows, sc.asarray([2.0])]))()
    np.testing.assert_allclose(norm, np.sqrt(6**2 + 8**2 + 3**2 + 4**2 + 2**2))
