"""Passes that few programs need: for each a program as users write it, which is another one without the pass."""

from functools import partial

import pytest

import symc as sc
from symc.driver.build import build
from symc.ir.traverse import every_value
from symc.opt import DEFAULT, optimize
from symc.tensors.callsite import caller

T, N, M, H = 6, 4, 8, 16
X = (T, N, M)
GATE, STATE, BIAS = (M, H), (H, H), (H,)


def hebbian(x, y, w):
    """A weight that every step adds a product to."""
    return sc.scan(lambda w, rows: (w + 0.01 * rows[0].T @ rows[1], rows[0][0, 0]), w, (x, y))[0]


def logits(x, u, w, v):
    """What a step gives is a product of its state, which no step needs."""
    def step(h, row):
        h = sc.tanh(row @ u + h @ w)
        return h, h @ v

    return sc.scan(step, sc.zeros((N, H)), x)[1]


def run(x, u, w):
    return sc.scan(lambda h, row: (h := sc.tanh(row @ u + h @ w), h), sc.zeros((N, H)), x)[1]


def both_directions(x, u, w, p, q):
    return sc.concatenate([run(x, u, w), run(x[::-1], p, q)[::-1]], axis=2)


def spectrum(a):
    """The gradient of eigenvalues needs eigenvectors, and they come with them."""
    return sc.value_and_grad(lambda a: sc.sum(sc.sqrt(sc.linalg.eigvalsh(a @ a.T + sc.eye(8)))))(a)


def lstm(x, *weights):
    """Gates as they stand in textbooks, and their gradients."""
    def loss(*weights):
        def step(state, row):
            h, c = state
            i, f, o, g = (row @ u + h @ w + b for u, w, b in zip(*[weights[k::3] for k in range(3)], strict=True))
            c = sc.sigmoid(f) * c + sc.sigmoid(i) * sc.tanh(g)
            h = sc.sigmoid(o) * sc.tanh(c)
            return (h, c), h

        start = sc.zeros((N, H))
        return sc.sum(sc.scan(step, (start, start), x)[1] ** 2)

    return sc.grad(loss, argnums=tuple(range(12)))(*weights)


def inputs_first(x, i, f, o, w):
    """Products of all steps, of which every step takes rows."""
    def step(h, rows):
        a, b, c = rows
        h = sc.sigmoid(c + h @ w) * sc.tanh(a * h + b)
        return h, h

    return sc.scan(step, sc.zeros((N, H)), (x @ i, x @ f, x @ o))[1]


def named(f, *names):
    return sum(v.op.name in names for v in f.values())


def loops(f):
    return [v.regions[0] for v in f.values() if v.op.name == "scan"]


def products(f):
    """Calls of the library; those in loops are made in every step."""
    return named(f, "dot", "gemm") + T * sum(v.op.name in ("dot", "gemm") for body in loops(f) for v in body.values)


def results(f):
    """What loops carry and stack."""
    return sum(len(body.results) for body in loops(f))


def copies(f):
    """Results of kernels that only move what they read."""
    kernels = [v.regions[0] for v in every_value(f.body) if v.op.name == "fused"]
    return sum(any("movement" in r.op.traits and r.operands and not r.operands[0].operands and r.operands[0].shape
                   for r in k.results) for k in kernels)


NEEDED = {
    "accumulate": (hebbian, (X, (T, N, H), (M, H)), lambda f: named(f, "scan")),
    "pull_out": (logits, (X, GATE, STATE, (H, 5)), products),
    "reverse_loops": (both_directions, (X, GATE, STATE, GATE, STATE), copies),
    "share_factors": (spectrum, ((8, 8),), lambda f: named(f, "eigh", "eigvalsh")),
    "pack": (lstm, (X, *(GATE, STATE, BIAS) * 4), products),
}


def source(f, shapes):
    leaves = [sc.input(f"x{k}", "float64", shape=s) for k, s in enumerate(shapes)]
    return build(f(*leaves), leaves, None, None, (), "f", caller()).function


@pytest.mark.parametrize("name", NEEDED)
def test_more_is_done_without_the_pass(name):
    f, shapes, count = NEEDED[name]
    made = source(f, shapes)
    run = partial(optimize, made, strict=True)
    assert count(run(DEFAULT).function) < count(run(f"{DEFAULT},-{name}").function)


PARTS = {"joining": (lambda *_: [], lstm, NEEDED["pack"][1], products),
         "join_stacks": (lambda _, f: f, lstm, NEEDED["pack"][1], results),
         "join_rows": (lambda _, f: f, inputs_first, (X, GATE, GATE, GATE, STATE), lambda f: len(f.values()))}


@pytest.mark.parametrize("part", PARTS)
def test_more_is_done_without_a_part_of_pack(part, monkeypatch):
    from symc.opt.matmul import pack

    nothing, f, shapes, count = PARTS[part]
    made = source(f, shapes)
    least = count(optimize(made, DEFAULT, strict=True).function)
    monkeypatch.setattr(pack, part, nothing)
    assert least < count(optimize(made, DEFAULT, strict=True).function)
