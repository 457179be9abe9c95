"""Optimizing takes time in proportion to the graph: rule attempts per value, and calls per value of every pass."""

from collections import Counter
from cProfile import Profile

import pytest

import symc as sc
from symc.driver.build import build
from symc.ir.traverse import every_value
from symc.opt import DEFAULT, all_passes, optimize
from symc.tensors.callsite import caller

pytestmark = pytest.mark.long

#: Rules that a pass may try on a value on average, and how much more it may be in a graph four times as large.
ATTEMPTS, MORE = 14, 1.35
#: The same of Python calls, which also counts what passes do that are no rules.
MORE_CALLS = 1.6


def chain(n):
    x = sc.vector("x")
    h = x
    for _ in range(n):
        h = sc.tanh(h * 1.01 + 0.5)
    return _with_gradient(sc.sum(h), x)


def wide_sum(n):
    x = sc.vector("x")
    total = sc.exp(x)
    for k in range(n):
        total = total + sc.exp(x * float(k + 2))
    return _with_gradient(sc.sum(total), x)


def wheres(n):
    x = sc.vector("x")
    h = x
    for k in range(n):
        h = sc.where(x > float(k), h, x * float(k + 2))
    return _with_gradient(sc.sum(h), x)


def concats(n):
    x = sc.vector("x")
    h = x
    for k in range(n):
        h = sc.concatenate([h, x * float(k + 2)])
    return [h]


def many_parts(n):
    x = sc.vector("x")
    return [sc.concatenate([sc.exp(x * float(k + 2)) for k in range(n)])]


def reductions_of_one(n):
    x = sc.matrix("x")
    return [sc.sum(sc.exp(x * float(k + 2)), axis=0) for k in range(n)]


def many_outputs(n):
    x = sc.vector("x")
    return [sc.tanh(x + float(k)) for k in range(n)]


def elements(n):
    x = sc.input("x", "f64", shape=(n + 1,))
    h = x[0]
    for k in range(n):
        h = h * x[k + 1] + 1.0
    return _with_gradient(h, x)


def product_chain(n):
    x = sc.vector("x")
    h = x
    for k in range(n):
        h = h * sc.tanh(x + float(k))
    return _with_gradient(sc.sum(h), x)


def layers(n):
    weights = [sc.input(f"w{k}", "f64", shape=(8, 8)) for k in range(n)]
    h = sc.input("h", "f64", shape=("b", 8))
    for w in weights:
        h = sc.tanh(h @ w)
    loss = sc.sum(h)
    return [loss, *sc.grad(loss, weights)]


def loops(n):
    x = sc.input("x", "f64", shape=("t", 3))
    h = sc.zeros(3)
    for k in range(n):
        h, _ = sc.scan(lambda h, row, k=k: (sc.tanh(h + row * float(k + 1)), None), h, x)
    return _with_gradient(sc.sum(h), x)


def large_body(n):
    x, h0 = sc.input("x", "f64", shape=("t", "m")), sc.input("h0", "f64", shape=("m",))

    def step(h, row):
        for k in range(n):
            h = sc.tanh(h * float(k + 2) + row)
        return h, None

    return _with_gradient(sc.sum(sc.scan(step, h0, x)[0]), x)


def choices(n):
    x = sc.vector("x")
    h = x
    for k in range(n):
        h = sc.cond(sc.sum(h) > float(k), lambda h=h: h + 1.0, lambda h=h, k=k: sc.sin(h) * float(k + 2))
    return [h]


def _with_gradient(loss, x):
    return [loss, sc.grad(loss, x)]


GRAPHS = {
    chain: 25, wide_sum: 15, wheres: 15, concats: 20, many_parts: 30, reductions_of_one: 20, many_outputs: 30,
    elements: 15, product_chain: 15, layers: 6, loops: 3, large_body: 5,
    choices: 10,
}  # fmt: skip


def as_function(outputs):
    return build(outputs, None, None, None, (), "f", caller()).function


def size(f):
    return len(every_value(f.body))


def counted(f, name):
    """The Python calls that a pass makes, and the function that it makes."""
    with Profile(builtins=False) as calls:
        out = optimize(f, name).function
    return sum(entry.callcount for entry in calls.getstats()), out


def calls_of(f):
    """The Python calls that every pass makes, in a pipeline of all of them."""
    counts = Counter()
    for name in DEFAULT.split(","):
        calls, f = counted(f, name)
        counts[name] += calls
    return counts


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.__name__)
def test_no_pass_is_superlinear(graph):
    n = GRAPHS[graph]
    small, large = (as_function(graph(k)) for k in (n, 4 * n))
    calls_of(as_function(graph(2)))  # what is looked up once
    few, many = calls_of(small), calls_of(large)
    times = size(large) / size(small)
    for name, calls in many.items():
        least = 12 * size(small)  # a pass that had nothing to do in the small graph
        assert calls <= MORE_CALLS * times * max(few[name], least) + 2000, (
            f"{name} makes {few[name]} calls for {size(small)} values and {calls} for {size(large)}"
        )


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.__name__)
def test_rule_attempts_per_value_are_bounded(graph):
    per_value = []
    for n in (GRAPHS[graph], 4 * GRAPHS[graph]):
        out = optimize(as_function(graph(n)))
        before = list(out.stages.values())
        rows = [(s.name, s.attempts / size(f)) for s, f in zip(out.report, before, strict=False)]
        assert all(a <= ATTEMPTS for _, a in rows), rows
        per_value.append(sum(a for _, a in rows))
    assert per_value[1] <= MORE * per_value[0] + 1, per_value


def test_long_chains_cost_what_short_ones_do_per_value():
    """100 to 1,600 steps, with the gradient."""
    rates = []
    for n in (100, 1600):
        out = optimize(as_function(chain(n)))
        rates.append(sum(s.attempts for s in out.report) / size(out.stages["input"]))
    assert max(rates) <= 1.1 * min(rates), rates


def test_what_has_many_operands_is_not_made_again_and_again():
    """The operands of what rules make, and of the operands of that: a gradient is put together of that of elements."""
    made = []
    for n in (50, 200):
        x = sc.vector("x")
        out = optimize(as_function([sc.grad(sum(x[k] * x[k + 1] for k in range(n)), x)]))
        made.append(sum(len(v.operands) for f in out.provenance.firings for v in (f.new, *f.new.operands)))
    assert made[1] <= 6 * made[0], made


def test_a_quadratic_pass_is_found():
    from symc.opt import graph_pass, unregister_pass

    @graph_pass("quadratic")
    def quadratic(f):
        """Looks at all values for each value."""
        for _ in f.values():
            size(f)
        return f

    try:
        counts = []
        for n in (2, 40, 160):  # the first looks up what is looked up once
            counts.append(counted(as_function(many_outputs(n)), "quadratic")[0])
        assert counts[2] > 4 * MORE_CALLS * counts[1]
    finally:
        unregister_pass("quadratic")
    assert "quadratic" not in {p.name for p in all_passes()}
