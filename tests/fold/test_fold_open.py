"""Blocks that are made for the types that come in; data encoded in processes; steps in the background."""

import numpy as np
import pytest

import symc as sc
import symc.fold as fd
from tests.fold.fold_cases import SGD

V = fd.f64[3]


@fd.block(out=V)
def row(x: fd.Attr(fd.f64), key: fd.Key):
    return fd.lib.dropout(x + sc.arange(3.0), 0.5, key)


@fd.block(out=fd.f64)
def first(xs: fd.f64[6]):
    return xs[0] + 10 * xs[3]


@fd.block(out=fd.f64, x=fd.Attr(fd.f64))
def number(x):
    return x


def metric(model, examples):
    return fd.compile(model >> fd.Metric("y")).metrics(examples)["y"].tolist()


def test_vectors_end_to_end():
    assert metric(fd.AllOf(row, fd.lib.constant(V, 2.0)) >> fd.Concat() >> first, [1.0, 2.0]) == [21.0, 22.0]
    assert metric(fd.Concat(fd.lib.constant(V, 2.0), row) >> first, [1.0, 2.0]) == [12.0, 22.0]


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min"])
def test_any_number_of_values_as_one(kind):
    rows = [[3.0, -1.0, 5.0], [2.0], [0.0, 4.0]]
    model = getattr(fd, kind.capitalize())
    assert metric(fd.Map(number) >> model(), rows) == [getattr(np, kind)(r) for r in rows]
    none = {"sum": 0.0, "mean": 0.0, "max": -np.inf, "min": np.inf}[kind]
    assert metric(fd.Map(number) >> model(fd.f64), [*rows, []])[-1] == none
    with pytest.raises(sc.InputError, match="takes arrays, one or more, not"):
        metric(fd.Map(number) >> model(), [[]])
    with pytest.raises(sc.InputError, match=r"1\.5 is no node, in example 0"):
        metric(fd.AllOf(number, fd.InputTransform(lambda x: 1.5)) >> model(), [2.0])


def test_a_step_that_has_trained_goes_on_with_types_that_are_new():
    w = sc.shared(np.ones(3), "w")

    @fd.block(out=V)
    def scaled(x: fd.Attr(fd.f64)):
        return w * x

    @fd.loss
    def square(x: fd.f64):
        return x**2

    def total(n):
        return fd.block(lambda x: sc.sum(x), out=fd.f64, x=fd.f64[3 * n])

    sums = {n: total(n) for n in (1, 2)}
    model = fd.Map(scaled) >> fd.Concat() >> fd.OneOf(lambda x: 0, [fd.Composition(
        lambda g, x: g._added(sums[g._types_of([x])[0].shape[0] // 3])(x), *sums.values())]) >> square
    step = fd.compile(model, params=[w], optimizer=sc.optim.momentum(0.01))
    short = step.encode([[1.0]])
    losses = [step(short), step(short)]
    long = step.encode([[1.0, 2.0]])
    losses += [step(long), step(short)]
    expected, v, p = [], 0.0, 1.0
    for n in (1, 1, 3, 1):
        expected.append((3 * n * p) ** 2)
        v = 0.9 * v + 2 * (3 * n * p) * n
        p -= 0.01 * v
    np.testing.assert_allclose(losses, expected, rtol=1e-12)


def test_optional_pairs_and_declarations_as_in_fold():
    assert metric(fd.Optional(number), [None, 2.0]) == [0.0, 2.0]
    with pytest.raises(sc.InputError, match="what type of value None stands for"):
        fd.Optional(lambda x: x)
    add = fd.block(lambda a, b: a + b, out=fd.f64, a=fd.f64, b=fd.f64)
    tree = fd.ForwardDeclaration()
    both = fd.Record([("a", fd.Nth(0) >> tree()), ("b", fd.Nth(1) >> tree())])
    both = fd.InputTransform(lambda t: {"a": t, "b": t}) >> both >> add
    tree.resolve_to(fd.OneOf(lambda t: type(t) is float, [(True, number), (False, both)]))
    assert metric(tree, [((1.0, 2.0), 3.0), 4.0]) == [6.0, 4.0]
    assert metric(fd.Slice(start=1) >> fd.Map(number) >> fd.Sum(), [[1.0, 2.0, 4.0]]) == [6.0]


def same(a, b):
    assert [x.name for x in a.blocks] == [x.name for x in b.blocks] and list(a.metrics) == list(b.metrics)
    for x, y in [*zip(vars(a.graph).values(), vars(b.graph).values()), (a.nptr, b.nptr), (a.mptr, b.mptr),
                 *[(a.metrics[k], b.metrics[k]) for k in a.metrics],
                 *[(a.attrs.arrays[k], b.attrs.arrays[k]) for k in a.attrs.arrays]]:
        np.testing.assert_array_equal(x, y)


def test_data_encoded_in_processes_is_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    model = fd.Map(row >> fd.Metric("r")) >> fd.Sum()
    examples = [rng.standard_normal(rng.integers(1, 5)).tolist() for _ in range(9)]
    whole = fd.compile(model).encode(examples)
    for n in (2, 4, 12):
        same(fd.compile(model).encode(examples, processes=n), whole)
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    same(fd.compile(model).encode(examples, processes=2), whole)
    monkeypatch.undo()
    step = fd.compile(model)
    assert len(step.encode([], processes=2)) == 0
    with pytest.raises(TypeError) as e:
        step.encode([[1.0]] * 12 + [None], processes=3)
    assert any("in example 12" in note for note in e.value.__notes__)
    with pytest.raises(sc.InputError, match="processes is a number from 1 on"):
        step.encode([], processes=0)


def test_steps_in_the_background_are_steps_in_order():
    w = sc.shared(np.ones(3), "w")

    @fd.loss
    def square(x: fd.Attr(fd.f64)):
        return sc.sum((w * x - 1) ** 2)

    def run(pushed):
        w.set_value(np.ones(3))
        step = fd.compile(square, params=[w], optimizer=sc.optim.momentum(0.01))
        data = step.encode(np.linspace(-1, 1, 40))
        batches = [data[k : k + 8] for k in range(0, 40, 8)]
        if not pushed:
            return [step(b) for b in batches], w.get_value(), step.loss(data)
        calls = [step.push(b) for b in batches]
        alone = step.loss(data)  # after all of them
        assert all(c.done() for c in calls)
        return [c.result() for c in calls], w.get_value(), alone

    for a, b in zip(run(False), run(True), strict=True):
        np.testing.assert_array_equal(a, b)
    step = fd.compile(square, params=[w], optimizer=SGD())
    with pytest.raises(sc.InputError, match="examples are a sequence"):
        step.push(3)


def test_functions_of_any_types_are_pushed():
    f = sc.jit(lambda x, y=1.0: x + y)
    assert f.push(np.ones(2)).result().tolist() == [2.0, 2.0]
    out = np.empty(2)
    f.push(np.ones(2), y=3, out=out).wait()
    assert out.tolist() == [4.0, 4.0]
    a, b = sc.Variable("a"), sc.Variable("b")
    g = sc.compile(a * b)
    first = g.push(a=np.ones(2), b=2.0)
    assert g.push(first, first).result().tolist() == [4.0, 4.0]
    assert g(np.ones(2), 3.0).tolist() == [3.0, 3.0]
