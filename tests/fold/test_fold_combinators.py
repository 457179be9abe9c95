"""Combinators say what the same Python says, with blocks in the place of its operations."""

import itertools

import numpy as np
import pytest

import symc as sc
import symc.fold as fd
from tests.fold.fold_cases import SGD, H, V, Weights, random_tree


@fd.block(out=fd.f64, x=fd.Attr(fd.f64))
def number(x):
    return x


@fd.block(out=fd.f64, a=fd.f64, b=fd.f64)
def add(a, b):
    return a + b


@fd.block(out=fd.f64, a=fd.f64, b=fd.f64)
def sub(a, b):
    return a - b


@fd.block(out=fd.f64, a=fd.f64, b=fd.f64)
def mul(a, b):
    return a * b


@fd.block(out=fd.f64, row=fd.Attr(fd.f64[4]))
def places(row):
    return sc.sum(row * sc.arange(4.0))


zero = number(0.0)
_steps = {}


def results(model, examples):
    """What the nodes that a model gives are, example by example."""
    step = _steps.setdefault(model, fd.compile(model >> fd.InputTransform(listed) >> fd.Map(fd.Metric("y"))))
    data = step.encode(examples)
    whole = step.metrics(data)["y"] if "y" in data.metrics else np.zeros(0)
    alone = [step.metrics(data[k])["y"] for k in range(len(data))] if "y" in data.metrics else []
    if alone:
        np.testing.assert_array_equal(np.concatenate(alone), whole)
    return whole.tolist()


def listed(x):
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, tuple | list):
        return [v for item in x for v in listed(item)]
    return [x]


def lists(seed=0, least=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(-5, 5, rng.integers(least, 9)).astype(float).tolist() for _ in range(12)]


def flat(nested):
    return [v for row in nested for v in row]


def test_map_fold_rnn_and_reduce():
    numbers = fd.Map(number)
    assert results(numbers, lists()) == flat(lists())
    assert results(numbers >> fd.Fold(sub, zero), lists()) == [-sum(x) for x in lists()]
    swapped = fd.InputTransform(lambda p: (p[1], p[0])) >> sub
    assert results(numbers >> fd.Fold(swapped, zero, reverse=True), [[5.0, 3.0, 1.0]]) == [5 - (3 - (1 - 0))]
    assert results(numbers >> fd.RNN(add, zero), lists()) == flat(np.cumsum(x).tolist() for x in lists())
    assert results(numbers >> fd.RNN(add, zero, reverse=True), [[1.0, 2.0, 3.0]]) == [6.0, 5.0, 3.0]
    assert results(numbers >> fd.Reduce(add, zero), lists()) == [sum(x) for x in lists()]
    assert results(numbers >> fd.Reduce(sub), [[8.0, 1.0, 2.0]]) == [(8 - 1) - 2]
    with pytest.raises(sc.errors.InputError, match=r"fd\.Reduce of an empty sequence"):
        results(numbers >> fd.Reduce(add), [[]])


def test_zip_zipwith_broadcast_and_ngrams():
    pairs = [(x, x[::-1]) for x in lists()]
    both = fd.AllOf(fd.GetItem(0) >> fd.Map(number), fd.GetItem(1) >> fd.Map(number))
    assert results(both >> fd.ZipWith(sub), pairs) == flat([a - b for a, b in zip(*p)] for p in pairs)
    assert results(both >> fd.Zip() >> fd.Map(mul), pairs) == flat([a * b for a, b in zip(*p)] for p in pairs)
    each = fd.AllOf(fd.Map(number), fd.Broadcast(fd.Length() >> number)) >> fd.ZipWith(mul)
    assert results(each, lists()) == flat([v * len(x) for v in x] for x in lists())
    grams = fd.Map(number) >> fd.NGrams(2) >> fd.Map(sub)
    assert results(grams, lists()) == flat([a - b for a, b in itertools.pairwise(x)] for x in lists())


def test_one_of_optional_record_and_items():
    kinds = fd.OneOf(type, {float: number, str: fd.InputTransform(float) >> number})
    assert results(kinds, [1.0, "2.5", 3.0]) == [1.0, 2.5, 3.0]
    assert results(fd.OneOf(lambda x: x < 0, [number, sub(zero, number)]), [1.0, -2.0]) == [1.0, 2.0]
    assert results(number >> fd.Metric("x") >> sub(zero, fd.InputTransform(lambda x: x)), [2.0]) == [-2.0]
    assert results(fd.Optional(number, zero), [4.0, None]) == [4.0, 0.0]
    record = fd.Record({"a": number, "b": fd.Map(number) >> fd.Fold(add, zero)})
    assert results(record >> sub, [{"a": 1.0, "b": [2.0, 3.0]}]) == [1.0 - 5.0]
    assert results(fd.Record([number, number]) >> sub, [(1.0, 2.0)]) == [-1.0]
    assert results(fd.Nth(-1) >> number, lists(least=1)) == [x[-1] for x in lists(least=1)]
    assert results(fd.Slice(1, None, 2) >> fd.Map(number), lists()) == flat(x[1::2] for x in lists())
    assert results(fd.OneHot(4, "float64") >> places, [3, 0, 2]) == [3.0, 0.0, 2.0]
    with pytest.raises(sc.errors.InputError, match=r"fd.OneHot\(4\) of 4"):
        results(fd.OneHot(4, "float64") >> places, [4])
    with pytest.raises(sc.errors.InputError, match="no case 2 of"):
        results(fd.OneOf(lambda x: x, [number]), [2])


def test_compositions_calls_and_also():
    dot = fd.Composition(lambda g, x: g.add(g.mul(g.number(x[0]), g.number(x[1])), g.number(x[2])), mul, add, number)
    assert results(dot, [(2.0, 3.0, 1.0)]) == [7.0]
    assert results(sub(fd.GetItem(1) >> number, b=fd.GetItem(0) >> number), [(1.0, 5.0)]) == [4.0]
    step = fd.compile((number >> fd.Metric("x")).also(mul(fd.self_, fd.self_) >> fd.Metric("square")))
    found = step.metrics([2.0, 3.0, 5.0])
    assert found["x"].tolist() == [2, 3, 5] and found["square"].tolist() == [4, 9, 25]


def calculator():
    """Expressions such as ``("+", 1, ("*", 2, 3))``, in the style of Fold's example."""
    term = fd.Rec("term")
    call = {op: block(term[1], term[2]) for op, block in (("+", add), ("-", sub), ("*", mul))}
    return term.define(fd.OneOf(lambda t: t[0] if isinstance(t, tuple) else "n", call | {"n": number}))


def expression(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return float(rng.integers(0, 5))
    return ("+", "-", "*")[rng.integers(3)], expression(rng, depth - 1), expression(rng, depth - 1)


def value(t):
    if not isinstance(t, tuple):
        return t
    a, b = value(t[1]), value(t[2])
    return {"+": a + b, "-": a - b, "*": a * b}[t[0]]


def test_a_calculator():
    rng = np.random.default_rng(0)
    terms = [expression(rng, 5) for _ in range(40)]
    assert results(calculator(), terms) == [value(t) for t in terms]


def test_a_deep_expression_does_not_need_a_deep_stack():
    t = 1.0
    for _ in range(10_000):
        t = ("+", t, 1.0)
    assert results(calculator(), [t]) == [10_001.0]


def test_declared_and_not_defined():
    with pytest.raises(sc.errors.InputError, match="term was used, but never defined"):
        fd.compile(fd.AllOf(fd.Rec("term"), number)).encode([1.0])


@pytest.fixture(scope="module")
def sentiment():
    """Trees of words with a class at every node."""
    w = Weights(3)
    state = fd.Struct("State", h=fd.f64[H], c=fd.f64[H])

    @fd.block(out=state, word=fd.Attr(fd.i32))
    def leaf(word):
        i, o, u = sc.split(w("E", V, H)[word] @ w("W", H, 3 * H), 3)
        c = sc.tanh(i) * u
        return dict(h=sc.tanh(o * c), c=c)

    node = fd.lib.tree_lstm(state, w("U", 2 * H, 3 * H), w("F", 2 * H, 2 * H), w("b", 5 * H))
    nll = fd.lib.cross_entropy(fd.f64[H], w("Wo", H, 3))
    tree = fd.Rec("tree")
    tree.define(fd.OneOf(lambda t: isinstance(t, tuple), {True: node(tree[0], tree[1]), False: leaf}).also(
        nll(fd.self_ >> fd.lib.field(state, "h"), lambda t: size(t) % 3)))
    return tree, w


def size(t):
    return size(t[0]) + size(t[1]) if isinstance(t, tuple) else 1


def test_a_tree_lstm_learns(sentiment):
    tree, w = sentiment
    rng = np.random.default_rng(0)
    step = fd.compile(tree, w.values(), SGD(0.5), mean=True)
    data = step.encode([random_tree(rng, int(rng.integers(1, 8))) for _ in range(40)])
    first = step.loss(data)
    for epoch in range(20):
        for batch in data.shuffled(10, seed=epoch):
            step(batch)
    assert step.loss(data) < 0.8 * first
    assert step.loss(data[:7]) == pytest.approx(np.mean([step.loss(data[k]) for k in range(7)]), rel=1e-12)


def test_nothing_is_compiled_for_new_shapes(sentiment):
    tree, w = sentiment
    rng = np.random.default_rng(1)
    step = fd.compile(tree, w.values(), SGD(0.0))
    data = step.encode([random_tree(rng, int(rng.integers(1, 12))) for _ in range(60)])
    step(data[:2])
    functions, kernels = [id(f) for f in step.functions], sc.runtime.cpu.kernels.compile_count()
    for _ in range(1000):
        step(data[rng.integers(0, 60, rng.integers(1, 9))])
    assert [id(f) for f in step.functions] == functions
    assert sc.runtime.cpu.kernels.compile_count() == kernels


def test_no_python_runs_for_a_node_or_a_batch(sentiment):
    import sys

    tree, w = sentiment
    rng = np.random.default_rng(1)
    step = fd.compile(tree, w.values(), SGD(0.0))
    deep = 0
    for _ in range(60):
        deep = (deep, 1)
    data = step.encode([random_tree(rng, 40), (0, 1), deep])
    for k in range(3):
        step(data[k])  # memory is as large as it will be

    def calls(batch):
        count = 0

        def note(frame, event, arg):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(note)
        try:
            step(batch)
        finally:
            sys.setprofile(None)
        return count

    shallow, wide, long = (min(calls(data[k]) for _ in range(3)) for k in range(3))
    assert shallow == wide == long > 0


def test_explain_tells_batches(sentiment):
    tree, w = sentiment
    step = fd.compile(tree, w.values(), schedule="strata")
    assert step.explain() == "nothing has run yet"
    step.loss([((1, 2), 3), 4])
    lines = step.explain().splitlines()
    assert lines[0] == "18 nodes in 5 batches, schedule 'strata'"
    assert "tree_lstm            2 instances in    2 batches of 1 to 1" in lines[2]
