"""Sums over the steps of a loop, and cuts of graphs, alone."""

from __future__ import annotations

import numpy as np
import pytest

from symc.grad.accumulate import add_to, sum_over_steps
from symc.grad.mincut import Network
from symc.ir.op import lookup, splat
from symc.ir.ops.leaf import scalar
from symc.ir.reference import run_values
from symc.ir.traverse import dependent, postorder
from symc.ir.types import TensorType
from symc.ir.value import fresh_input

RNG = np.random.default_rng(7)


def summed(build, steps=4, known=True):
    """``sum_over_steps`` of what ``build`` makes of rows a and b and a fixed w; what it asks for; and whether it is
    the sum."""
    a, b, w = (fresh_input(TensorType("f64", s)) for s in ((2, 3), (2, 3), (3, 3)))
    i = fresh_input(TensorType("i64", (2,)))
    value = build(a, b, w, i)
    order = postorder([value])
    stacks = {x: fresh_input(TensorType(x.dtype, (steps, *x.shape))) for x in (a, b, i)}
    varying = dependent(order, stacks)
    sums = sum_over_steps([value], varying, steps, {x: s for x, s in stacks.items() if known or x is i})
    rows = {x: RNG.integers(0, 3, (steps, 2)) if x is i else RNG.normal(size=(steps, 2, 3)) for x in stacks}
    numbers = RNG.normal(size=(3, 3))
    each = [{**{x: r[t] for x, r in rows.items()}, w: numbers} for t in range(steps)]
    env = {stacks[x]: r for x, r in rows.items()} | {w: numbers}
    for x, leaf in sums.stacks.items():
        env[leaf] = np.stack([run_values([x], dict(e), {})[0] for e in each])
    for x, leaf in sums.added.items():
        env[leaf] = sum(run_values([x], dict(e), {})[0] for e in each)
    (got,) = run_values(sums.results, env, {})
    want = sum(run_values([value], dict(e), {})[0] for e in each)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    return sums


def outer(a, b):
    return lookup("dot")(a, b, contract=((0,), (0,)), batch=((), ()))


OUTSIDE = {
    "product": lambda a, b, w, i: outer(a, b),
    "linear in products": lambda a, b, w, i: -outer(a, b) * w + lookup("transpose")(outer(b, a), perm=(1, 0)) / w,
    "sums over axes": lambda a, b, w, i: lookup("sum")(a, axes=(0,)) - lookup("sum")(-b, axes=(0,)),
    "product with what is the same": lambda a, b, w, i: lookup("dot")(a, w, contract=((1,), (0,)), batch=((), ())),
    "what is the same in every step": lambda a, b, w, i: w * 2 + outer(a, b),
    "rows of a table": lambda a, b, w, i: lookup("scatter")(splat(0, w.type), a, i, axes=(0,), mode="add"),
    "batch axes": lambda a, b, w, i: lookup("dot")(a, b, contract=((1,), (1,)), batch=((0,), (0,))),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_sums_that_need_no_carry(name):
    assert not summed(OUTSIDE[name]).added


def test_sums_that_need_a_carry():
    assert [v.op.name for v in summed(lambda a, b, w, i: a * b).added] == ["mul"]
    # not the product but its sum is carried, because it is smaller; not the repeated sum, because it is larger
    small = summed(lambda a, b, w, i: lookup("broadcast")(lookup("sum")(a * b, axes=(0,)), axes=(1,), shape=(9, 3)))
    assert [v.shape for v in small.added] == [(3,)]


def test_rows_are_kept_only_for_small_products():
    def inner(a, b, w, i):
        a, b = (lookup("broadcast")(x, axes=(0, 1), shape=(2, 3, 100)) for x in (a, b))
        return lookup("dot")(a, b, contract=((0, 1, 2), (0, 1, 2)), batch=((), ()))

    assert [v.op.name for v in summed(inner).added] == ["dot"]


def test_windows_are_added_where_they_lie():
    zeros, update, start = splat(0.0, TensorType("f64", (9,))), fresh_input(TensorType("f64", (2,))), scalar(3, "i64")
    total = fresh_input(TensorType("f64", (9,)))
    v = add_to(total, lookup("dynamic_update_slice")(zeros, update, start))
    assert v.op.name == "dynamic_update_slice" and v.operands[0] is total
    (got,) = run_values([v], {total: np.ones(9), update: np.array([1.0, 2.0])}, {})
    np.testing.assert_array_equal(got, [1, 1, 1, 2, 3, 1, 1, 1, 1])


@pytest.mark.parametrize("seed", range(30))
def test_cuts_are_minimal(seed):
    """Against all sets of nodes of small random graphs."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    weights = [int(k) for k in rng.integers(1, 6, n)]
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.4]
    sources, sinks = ([k for k in range(n) if rng.random() < 0.4] for _ in range(2))
    network = Network(weights)
    for i, j in edges:
        network.edge(i, j)
    for k in sources:
        network.source(k)
    for k in sinks:
        network.sink(k)
    cut = network.cut()

    def passes(removed):
        reached = {k for k in sources if k not in removed}
        for i, j in edges:  # in topological order
            if i in reached and j not in removed:
                reached.add(j)
        return bool(reached & set(sinks))

    assert not passes(set(cut))
    best = min(sum(weights[k] for k in range(n) if m >> k & 1) for m in range(2**n)
               if not passes({k for k in range(n) if m >> k & 1}))  # fmt: skip
    assert sum(weights[k] for k in cut) == best
