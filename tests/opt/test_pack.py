"""Products that share an operand become one, in whole programs and in random ones."""

import numpy as np
import pytest

import symc as sc
from symc.errors import InternalError
from symc.ir.function import Function, Input
from symc.ir.ops.arithmetic import add, mul, sub
from symc.ir.ops.linalg import dot
from symc.ir.ops.math import exp, tanh
from symc.ir.ops.shape import slice_, transpose
from symc.ir.reference import evaluate_function
from symc.ir.traverse import close_over, postorder, resolve
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.opt import DEFAULT, optimize
from symc.opt.matmul import pack, pack_costs
from tests.opt.test_linear import counted

RNG = np.random.default_rng(0)
UNPACKED = DEFAULT.replace(",pack", "")


def arrays(args):
    return [RNG.normal(size=a.shape).astype(a.dtype) * 0.3 for a in args]


def agrees(outs, args, **tolerance):
    """The compiled program, the one without packing, and the reference give the same; the compiled program."""
    f = sc.compile(outs, args)
    data = arrays(args)
    got, want = f(*data), sc.compile(outs, args, mode="reference")(*data)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, **{"rtol": 2e-4, "atol": 2e-4, **tolerance})
    return f


def products_in_loops(f):
    """How many products there are in a step of each loop, and how many outside."""
    text, inside, out = f.dump(), [], 0
    depth = 0
    for line in text.splitlines():
        if " scan " in line:
            inside.append(0)
            depth = len(line) - len(line.lstrip())
        elif " = dot " in line or " = gemm " in line:
            if inside and len(line) - len(line.lstrip()) > max(depth, 2):
                inside[-1] += 1
            else:
                out += 1
    return inside, out


# --- recurrent networks as users write them ---------------------------------------------------------------------------


def lstm(steps=6, batch=32, size=24, hidden=16, dtype="float32"):
    """Eight products in a step, four gates with biases of their own."""
    x, r = sc.input("x", dtype, (steps, batch, size)), sc.input("r", dtype, (batch, hidden))
    w = [sc.input(f"w{g}", dtype, (size, hidden)) for g in "ifgo"]
    u = [sc.input(f"u{g}", dtype, (hidden, hidden)) for g in "ifgo"]
    b = [sc.input(f"b{g}", dtype, (hidden,)) for g in "ifgo"]

    def step(carry, row):
        h, c = carry
        z = [row @ w[k] + h @ u[k] + b[k] for k in range(4)]
        c = sc.sigmoid(z[1]) * c + sc.sigmoid(z[0]) * sc.tanh(z[2])
        h = sc.sigmoid(z[3]) * sc.tanh(c)
        return (h, c), None

    start = sc.zeros((batch, hidden), dtype)
    (h, _), _ = sc.scan(step, (start, start), x)
    return sc.sum(h * r), [x, r, *w, *u, *b], [*w, *u, *b]


def test_lstm_of_eight_products_is_one_product_a_step_and_one_outside():
    loss, args, _ = lstm()
    f = agrees((loss,), args)
    assert products_in_loops(f) == ([1], 1)
    assert f.calls == {"gemm": 2}
    step = f.dump("pack")
    assert step.count("= dot ") == 2  # before one of them is pushed out of the loop


def test_gradient_of_lstm_is_packed_too():
    loss, args, params = lstm()
    f = agrees((loss, *sc.grad(loss, params)), args)
    assert products_in_loops(f) == ([1, 1], 3)  # outside: of the rows, and the gradients of both kinds of weights
    assert sum(f.calls.values()) == 5
    dump = f.dump()
    assert dump.count("axis = 1} : f32[24, 64]") == 1  # each kind of weights is put side by side once,
    assert dump.count("axis = 1} : f32[16, 64]") == 1  # for the loop and its gradient


def gru(reset_after, steps=5, batch=32, size=24, hidden=16):
    x, r = sc.input("x", "float32", (steps, batch, size)), sc.input("r", "float32", (batch, hidden))
    w = [sc.input(f"w{g}", "float32", (size, hidden)) for g in "rzn"]
    u = [sc.input(f"u{g}", "float32", (hidden, hidden)) for g in "rzn"]

    def step(h, row):
        reset, z = sc.sigmoid(row @ w[0] + h @ u[0]), sc.sigmoid(row @ w[1] + h @ u[1])
        n = sc.tanh(row @ w[2] + (reset * (h @ u[2]) if reset_after else (reset * h) @ u[2]))
        return (1 - z) * n + z * h, None

    h, _ = sc.scan(step, sc.zeros((batch, hidden), "float32"), x)
    return sc.sum(h * r), [x, r, *w, *u], [*w, *u]


@pytest.mark.long
@pytest.mark.parametrize(("reset_after", "in_step"), [(True, 1), (False, 2)])
def test_gru(reset_after, in_step):
    loss, args, params = gru(reset_after)
    f = agrees((loss, *sc.grad(loss, params)), args)
    assert products_in_loops(f)[0][0] == in_step
    assert products_in_loops(sc.compile(loss, args)) == ([in_step], 1)


def test_both_directions_of_a_network_share_the_product_of_the_rows():
    x = sc.input("x", "float32", (6, 32, 24))
    w = [sc.input(f"w{k}", "float32", (24, 16)) for k in range(2)]
    u = [sc.input(f"u{k}", "float32", (16, 16)) for k in range(2)]
    start = sc.zeros((32, 16), "float32")
    ends = [sc.scan(lambda h, row, k=k: (sc.tanh(row @ w[k] + h @ u[k]), None), start, x, reverse=bool(k))[0]
            for k in range(2)]
    f = agrees((ends[0] + ends[1],), [x, *w, *u])
    assert products_in_loops(f) == ([1, 1], 1)


def test_a_loop_in_a_loop():
    x = sc.input("x", "float64", (3, 4, 5))
    w = [sc.input(f"w{k}", "float64", (5, 5)) for k in range(2)]

    def inner(h, _):
        return sc.tanh(h @ w[0]) * sc.sigmoid(h @ w[1]), None

    def outer(h, row):
        return sc.scan(inner, h + row, None, length=40)[0], None

    f = agrees((sc.scan(outer, sc.zeros((4, 5)), x)[0],), [x, *w])
    assert sum(products_in_loops(f)[0]) == 1


# --- attention --------------------------------------------------------------------------------------------------------


def attention(heads, batch=4, steps=64, width=96, size=8):
    x = sc.input("x", "float32", (batch, steps, width))
    w = [sc.input(f"w{g}", "float32", (width, heads * size)) for g in "qkv"]

    def split(y):
        return sc.transpose(y.reshape(batch, steps, heads, size), (0, 2, 1, 3))

    q, k, v = [split(x @ m) if heads > 1 else x @ m for m in w]
    scores = q @ sc.swapaxes(k, -1, -2) / np.float32(size**0.5)
    p = sc.exp(scores - sc.max(scores, axis=-1, keepdims=True))
    return (p / sc.sum(p, axis=-1, keepdims=True)) @ v, [x, *w]


@pytest.mark.parametrize("heads", [1, 3])
def test_projections_of_attention_are_one_product(heads):
    out, args = attention(heads)
    f = agrees((out,), args)
    assert f.calls == {"gemm": 3}


# --- what must not happen ---------------------------------------------------------------------------------------------


def test_two_groups_that_depend_on_each_other_make_no_circle():
    """a1 -> b2 and b1 -> a2: packing (a1, a2) and (b1, b2) both would be a circle."""
    x, y = (sc.input(n, "float64", (4096, 4)) for n in "xy")
    w = [sc.input(f"w{k}", "float64", (4, 4)) for k in range(2)]
    a1, b1 = x @ w[0], y @ w[0]
    small = [sc.tanh(sc.sum(z, axis=0)) for z in (a1, b1)]
    a2, b2 = x @ (w[1] * small[1]), y @ (w[1] * small[0])
    agrees((sc.sum(sc.tanh(a1) + sc.exp(a2) + sc.sin(b1) + sc.cos(b2)),), [x, y, *w], rtol=1e-9, atol=1e-9)


def test_a_circle_would_be_an_error(monkeypatch):
    v, x, a, b = (fresh_input(TensorType("f64", s)) for s in ((3,), (4096, 4), (4, 4), (4, 4)))
    assert resolve([exp(v)], {exp(v): tanh(exp(v))}, lambda old, new: None) is None
    p, q = (dot(x, w, contract=((1,), (0,)), batch=((), ())) for w in (a, b))
    monkeypatch.setattr(pack, "resolve", lambda roots, mapping, on_new: None)
    with pytest.raises(InternalError, match="circle"):
        optimize(close(exp(p), tanh(q), leaves=[x, a, b]), "pack", strict=True)


def test_equal_weights_are_put_side_by_side_once():
    x, a, b = (fresh_input(TensorType("f64", s)) for s in ((4096, 4), (4, 4), (4, 4)))
    p, q = dot(x, a, contract=((1,), (0,)), batch=((), ())), dot(x, b, contract=((1,), (0,)), batch=((), ()))
    again = dot(a, x, contract=((0,), (1,)), batch=((), ()))  # the transpose of p, of the same operands
    f = close(exp(p), tanh(q), tanh(p), exp(again), leaves=[x, a, b])
    out = optimize(f, "pack", strict=True, verify=True).function
    assert sum(v.op.name == "concat" for v in out.values()) == 1
    assert [v.shape[1] for v in out.values() if v.op is dot and v.shape[0] == 4096] == [8]


def test_user_lines_and_records_follow():
    loss, args, _ = lstm()
    f = sc.compile(loss, args)
    assert "[pack] pack: " in f.explain()
    assert "test_pack.py" in next(line for line in f.dump().splitlines() if "= dot " in line)


def test_the_order_of_parts_does_not_depend_on_the_order_of_use():
    """A loop and one that uses the weights the other way round put them side by side in one order."""
    x = sc.input("x", "float64", (4, 5))
    w = [sc.input(f"w{k}", "float64", (5, 5)) for k in range(2)]
    ends = [sc.scan(lambda h, _, o=o: (sc.tanh(h @ w[o]) + sc.exp(h @ w[1 - o]) * 0.1, None), x, None, length=n)[0]
            for o, n in ((0, 7), (1, 8))]
    f = sc.compile(ends, [x, *w])
    assert f.dump("hoist").count("concat") == 1


# --- random programs --------------------------------------------------------------------------------------------------


def close(*results, leaves):
    inputs = tuple(Input(f"x{k}", v.type, declared=v.type) for k, v in enumerate(leaves))
    return Function("f", inputs, close_over(leaves, list(results)))


def random_groups(seed):
    """Products of few matrices in both roles, transposed or not, of what other products give; sums of them; slices."""
    rng = np.random.default_rng(seed)
    leaves = [fresh_input(TensorType("f64", s)) for s in (*[(5, 5)] * 4, (2, 5, 5), (5,), (5,), (5, 10))]
    pool = leaves[:4]
    pool += [slice_(leaves[7], start=(0, 5 * k), size=(5, 5), step=(1, 1)) for k in range(2)]
    products = []
    for _ in range(rng.integers(6, 16)):
        a, b = (pool[rng.integers(len(pool))] for _ in range(2))
        kind = rng.integers(8)
        if kind == 0:
            v = leaves[5 + rng.integers(2)]
            p = dot(a, v, contract=((int(rng.integers(2)),), (0,)), batch=((), ()))
            products.append(p)
            continue
        if kind == 1:
            p = dot(leaves[4], a, contract=((2,), (int(rng.integers(2)),)), batch=((), ()))
            products.append(p)
            continue
        if kind == 2:
            p = dot(leaves[4], exp(leaves[4]), contract=((1,), (int(rng.integers(1, 3)),)),
                    batch=((0,), (0,)))
            products.append(p)
            continue
        a = transpose(a, perm=(1, 0)) if rng.integers(4) == 0 else a
        p = dot(a, b, contract=((int(rng.integers(2)),), (int(rng.integers(2)),)), batch=((), ()))
        products.append(p)
        f = (tanh, lambda x: mul(x, 0.5), lambda x: add(x, pool[0]), lambda x: x)[rng.integers(4)]
        pool.append(f(p))
        if rng.integers(3) == 0:
            pool.append((add, sub)[rng.integers(2)](pool[-1], pool[rng.integers(len(pool))]))
    return close(*products, *pool[6:], leaves=leaves)


@pytest.fixture
def eager(cold, monkeypatch):
    """Packing pays always."""
    monkeypatch.setattr(pack_costs, "CALL", 1e12)


@pytest.mark.parametrize("seed", range(60))
def test_random_groups(seed, eager):
    f = random_groups(seed)
    out = optimize(f, "pack", strict=True, verify=True)
    again = optimize(random_groups(seed), "pack").function
    assert str(again) == str(out.function)
    data = [RNG.normal(size=i.type.shape) * 0.4 for i in f.inputs]
    want, got = evaluate_function(f, data), evaluate_function(out.function, data)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-10)


def test_random_groups_are_packed(eager):
    fewer = 0
    for seed in range(60):
        f = random_groups(seed)
        before, after = [sum(v.op is dot for v in g.values()) for g in (f, optimize(f, "pack").function)]
        fewer += after < before
    assert fewer >= 15


@pytest.mark.long
def test_the_work_is_linear(eager):
    """Many layers on the same four weights: no group, and no list of users, is searched again and again."""
    x, *w = (fresh_input(TensorType("f64", (5, 5))) for _ in range(5))
    calls = []
    for n in (2, 100, 400):  # the first looks up what is looked up once
        h = x
        for _ in range(n):
            a, b, c, d = (dot(h, y, contract=((1,), (0,)), batch=((), ())) for y in w)
            h = tanh(add(add(a, exp(b)), mul(c, d)))
        made, out = counted(close(h, leaves=[x, *w]), "pack")
        assert sum(v.op is dot for v in postorder(out.body.results)) == n
        calls.append(made)
    assert calls[2] < 4.4 * calls[1]
