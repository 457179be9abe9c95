"""Programs about shapes and indices: what their plans do, and do not do.

Each program states its launches, library calls, copies and temporaries, at most. None fills an array with a number, and
none copies an array.
"""

import re

import numpy as np
import pytest

import symc as sc

pytestmark = pytest.mark.long

PROGRAMS = {}
rng = np.random.default_rng(0)


def program(launches, calls, temps):
    def add(f):
        PROGRAMS[f.__name__] = f, launches, calls, temps
        return f

    return add


def value(name, shape, dtype="float64"):
    return sc.input(name, dtype, shape=shape)


def normal(*shape):
    return rng.normal(size=shape)


@program(4, 0, 5)
def embedding_three_lookups():
    """Three gathers of one table: its gradient is one buffer."""
    e, a, b, c = value("e", (1000, 8)), *[value(k, ("n",), "int64") for k in "abc"]
    return (
        sc.grad(sc.sum(sc.tanh(e[a]) * e[b] + sc.exp(e[c])), e),
        [e, a, b, c],
        [normal(1000, 8), *[rng.integers(0, 1000, 5) for _ in range(3)]],
    )


@program(3, 0, 2)
def embedding_step():
    """A step of gradient descent on rows that were looked up changes those rows alone."""
    e, a = value("e", (1000, 8)), value("a", ("n",), "int64")
    return e - 0.1 * sc.grad(sc.sum(e[a] ** 2), e), [e, a], [normal(1000, 8), rng.integers(0, 1000, 5)]


@program(2, 0, 1)
def nested_slice_gradient():
    """The gradient of a slice of a slice is one padded number."""
    x = value("x", ("n",))
    return sc.grad(sc.exp(x[1:][-1]), x), [x], [normal(7)]


@program(2, 0, 2)
def differences():
    """Two overlapping slices: one pass over the gradient."""
    x = value("x", ("n",))
    return sc.grad(sc.sum((x[1:] - x[:-1]) ** 2), x), [x], [normal(7)]


@program(1, 0, 0)
def windows():
    """Overlapping windows are read where they are."""
    x = value("x", (64,))
    w = sc.stack([x[k : k + 60] for k in range(5)], axis=1)
    return sc.mean(w, axis=1), [x], [normal(64)]


@program(1, 2, 2)
def causal_attention():
    """The mask is an index; two products and one kernel."""
    q, k, v = [value(n, ("t", 16)) for n in "qkv"]
    t = q.shape[0]
    s = sc.where(sc.tril(sc.ones((t, t), "bool")), q @ k.T / 4.0, -np.inf)
    return (
        sc.special.softmax(s, axis=1) @ v,
        [q, k, v],
        [normal(6, 16) for _ in range(3)],
    )


@program(1, 0, 0)
def roll_flip_stack():
    """Nothing is moved."""
    x = value("x", (9,))
    return sc.stack([sc.roll(x, 2), sc.flip(x), x * 2]).sum(0), [x], [normal(9)]


@program(6, 0, 2)
def batchnorm():
    """Statistics along the first axis."""
    x, g, b = value("x", ("n", 16)), value("g", (16,)), value("b", (16,))
    m = x.mean(0)
    s = ((x - m) ** 2).mean(0)
    return (x - m) / sc.sqrt(s + 1e-5) * g + b, [x, g, b], [normal(6, 16), normal(16), normal(16)]


@program(1, 0, 0)
def tril_product():
    """The mask is an index."""
    a = value("a", (64, 64))
    x = value("x", (64,))
    return (sc.tril(a) * x).sum(1), [a, x], [normal(64, 64), normal(64)]


@program(2, 0, 1)
def one_hot_cross_entropy():
    """The one-hot matrix is an index."""
    x, y = value("x", ("n", 10)), value("y", ("n",), "int64")
    lp = x - sc.special.logsumexp(x, axis=1, keepdims=True)
    loss = -sc.mean(sc.sum(lp * (y[:, None] == sc.arange(10)), axis=1))
    return [loss, sc.grad(loss, x)], [x, y], [normal(6, 10), rng.integers(0, 10, 6)]


@program(4, 0, 3)
def picked_cross_entropy():
    """One element of each row."""
    x, y = value("x", ("n", 10)), value("y", ("n",), "int64")
    lp = x - sc.special.logsumexp(x, axis=1, keepdims=True)
    loss = -sc.mean(lp[sc.arange(x.shape[0]), y])
    return [loss, sc.grad(loss, x)], [x, y], [normal(6, 10), rng.integers(0, 10, 6)]


@program(1, 0, 0)
def convolution_by_slices():
    """Shifted slices, one pass."""
    x, k = value("x", (64,)), value("k", (3,))
    loss = sum(x[j : 62 + j] * k[j] for j in range(3))
    return sc.sum(loss**2), [x, k], [normal(64), normal(3)]


@program(2, 0, 0)
def padding():
    """Padding with zeros and summing is summing."""
    x = value("x", ("n", 5))
    return sc.sum(sc.pad(x * 2, ((1, 2), (0, 0))), axis=0), [x], [normal(6, 5)]


@program(2, 0, 1)
def stencil():
    """The inner part is updated."""
    u = value("u", ("n", "m"))
    return (
        u.at[1:-1, 1:-1].add(0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])),
        [u],
        [normal(6, 5)],
    )


@program(3, 0, 2)
def gather_and_scatter():
    """What is read is computed, where it is read."""
    x, i = value("x", ("n",)), value("i", ("k",), "int64")
    return x.at[i].add(sc.exp(x)[i]), [x, i], [normal(6), rng.integers(0, 6, 4)]


@program(1, 0, 0)
def parts_of_rows():
    """Parts of one array."""
    x = value("x", (50, 12))
    return sc.tanh(x[:, :4]) * sc.exp(x[:, 4:8]) + x[:, 8:], [x], [normal(50, 12)]


@program(1, 0, 0)
def shape_of_a_product():
    """A shape takes no data."""
    x, w = value("x", ("n", 9)), value("w", (9, 4))
    return sc.ones((sc.exp(x @ w).shape[0],)), [x, w], [normal(6, 9), normal(9, 4)]


@program(1, 0, 0)
def full_and_ones():
    """Numbers are no arrays, also not in a product."""
    x, k = value("x", ("n", 9)), value("k", ())
    return (
        sc.full(x.shape, k) * x + sc.ones(x.shape) @ sc.ones((9, 9)) + sc.zeros(x.shape),
        [x, k],
        [normal(6, 9), np.array(2.0)],
    )


@program(1, 1, 0)
def transposes():
    """A transpose is a flag of the product, or an index."""
    a, b, c = value("a", (64, 32)), value("b", (64, 48)), value("c", (48, 32))
    return sc.exp((a.T @ b).T) * c, [a, b, c], [normal(*s) for s in ((64, 32), (64, 48), (48, 32))]


@program(4, 1, 5)
def first_row_of_a_network():
    """One row alone goes through the network. (Its greatest element, its sum and the reciprocal are numbers.)"""
    x, w = value("x", ("n", 64)), value("w", (64, 32))
    return sc.special.softmax(x @ w, axis=1)[0], [x, w], [normal(6, 64), normal(64, 32)]


@program(1, 0, 0)
def trace_of_product():
    """A trace of a product is a sum of products."""
    a, b = value("a", (64, 32)), value("b", (32, 64))
    return sc.trace(a @ b), [a, b], [normal(64, 32), normal(32, 64)]


@program(1, 0, 0)
def looked_up_noise():
    """One of many random numbers is one number."""
    i = value("i", ("k",), "int64")
    return sc.random.normal(sc.random.key(7), (100000,))[i[0]] * 2, [i], [rng.integers(0, 100000, 3)]


def steps(plan, kind):
    return re.findall(rf"<- {kind} .*", plan)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_plan_does(name):
    build, launches, calls, temps = PROGRAMS[name]
    outputs, inputs, arrays = build()
    f = sc.compile(outputs, inputs)
    plan = str(f.plan)
    found = (
        len(steps(plan, "launch")),
        len(re.findall(r"<- (?:call|gemm) ", plan)),
        len(re.findall(r"^ *alloc (?!.*\(result\))", plan, re.M)),
    )
    assert all(a <= b for a, b in zip(found, (launches, calls, temps), strict=True)), f"{found}\n{plan}"
    assert not steps(plan, "copy"), plan
    filled = [b for b in re.findall(r"(%b\d+) <- launch @\w+ *(?://.*)?$", plan, re.M) if f"alloc {b} " in plan]
    assert all(re.search(rf"alloc {b} .*\(result\)", plan) for b in filled), plan
    wanted = sc.compile(outputs, inputs, mode="reference")(*arrays)
    got = f(*arrays)
    pairs = zip(got, wanted, strict=True) if isinstance(outputs, list) else [(got, wanted)]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
