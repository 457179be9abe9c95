"""Chains of products: the fewest multiplications, for sizes that are numbers and for sizes that are not."""

import itertools

import numpy as np
import pytest

import symc as sc
from symc.ir.dim import size_name
from symc.ir.function import Function, Input
from symc.ir.op import splat
from symc.ir.ops.arithmetic import div, mul, neg
from symc.ir.ops.linalg import dot
from symc.ir.ops.shape import broadcast
from symc.ir.reference import evaluate_function
from symc.ir.traverse import close_over
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.opt import optimize
from symc.opt.matmul.chain_factors import Factor
from symc.opt.matmul.chain_orders import best_orders, never_much_dearer, order_of

RNG = np.random.default_rng(0)


def matrix(*shape):
    return fresh_input(TensorType("f64", [size_name(s) if isinstance(s, str) else s for s in shape]))


def times(a, b, i=1, j=0):
    return dot(a, b, contract=((i,), (j,)), batch=((), ()))


def close(result, leaves):
    return Function("f", tuple(Input(f"x{k}", v.type, declared=v.type) for k, v in enumerate(leaves)),
                    close_over(leaves, [result]))


def trees(i, j):
    """Every order of multiplying factors i to j."""
    if j - i == 1:
        return [i]
    return [(a, b) for k in range(i + 1, j) for a in trees(i, k) for b in trees(k, j)]


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_the_best_order_of_numbers(n):
    for _ in range(5):
        dims = [int(d) for d in RNG.integers(1, 60, size=n + 1)]
        factors = [Factor(matrix(a, b), (0,), (1,)) for a, b in itertools.pairwise(dims)]
        (best,) = best_orders(factors)
        every = [order_of(t, factors).cost for t in trees(0, n)]
        assert best.cost == min(every) == order_of(best.tree, factors).cost


def test_long_chains():
    dims = [int(d) for d in RNG.integers(1, 60, size=41)]
    factors = [Factor(matrix(a, b), (0,), (1,)) for a, b in itertools.pairwise(dims)]
    left = 0
    for k in range(1, 40):
        left = (left, k)
    assert best_orders(factors)[0].cost <= order_of(left, factors).cost


def test_orders_that_are_never_best_are_dropped():
    m, k, n = map(size_name, "mkn")
    assert never_much_dearer(k * n + m * k, m * k * n + m * n)
    assert not never_much_dearer(m * k * n, k * n)
    factors = [*(Factor(matrix(*s), (0,), (1,)) for s in ("mk", "kn")), Factor(matrix("n"), (0,), ())]
    assert [o.tree for o in best_orders(factors)] == [(0, (1, 2))]


def random_chain(rng):
    """Matrices and vectors, transposed or not, nested at random, with signs and scalar factors between."""
    n = int(rng.integers(3, 7))
    dims = [int(d) for d in rng.choice([1, 2, 3, 5, 8, 13], size=n + 1)]
    leaves, items = [], []
    for k, (a, b) in enumerate(itertools.pairwise(dims)):
        flipped = bool(rng.integers(2))
        if k in (0, n - 1) and rng.integers(3) == 0:
            leaf = matrix(b if k == 0 else a)
            items.append((leaf, None, 0) if k == 0 else (leaf, 0, None))
        else:
            leaf = matrix(b, a) if flipped else matrix(a, b)
            items.append((leaf, 1, 0) if flipped else (leaf, 0, 1))
        leaves.append(leaf)
    scale = matrix()
    while len(items) > 1:
        k = int(rng.integers(len(items) - 1))
        (a, _, ac), (b, br, _) = items[k], items[k + 1]
        p = dot(a, b, contract=((ac,), (br,)), batch=((), ()))
        row, column = items[k][1] is not None, items[k + 1][2] is not None
        places = (0 if row else None, (1 if row else 0) if column else None)
        kind = rng.integers(5)
        if kind == 0:
            p = neg(p)
        elif kind == 1:
            p = mul(p, broadcast(scale, axes=(), shape=p.shape) if p.shape else scale)
        elif kind == 2:
            p = div(p, splat(2.0, p.type))
        elif kind == 3 and row and column:  # the other way round
            p = dot(b, a, contract=((br,), (ac,)), batch=((), ()))
            places = (1, 0)
        items[k : k + 2] = [(p, *places)]
    return items[0][0], [*leaves, scale]


@pytest.mark.parametrize("seed", range(80))
def test_random_chains(seed):
    rng = np.random.default_rng(seed)
    result, leaves = random_chain(rng)
    f = close(result, leaves)
    out = optimize(f, "chains", strict=True, verify=True).function
    data = [rng.normal(size=v.shape) for v in leaves]
    (want,), (got,) = evaluate_function(f, data), evaluate_function(out, data)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


def test_random_chains_change():
    changed = 0
    for seed in range(80):
        f = close(*random_chain(np.random.default_rng(seed)))
        changed += optimize(f, "chains").function.body is not f.body
    assert changed > 40


# --- programs ---------------------------------------------------------------------------------------------------------


def test_a_call_chooses_the_order_for_its_sizes():
    a, b, c = (sc.input(n, "float64", s) for n, s in (("a", ("m", "k")), ("b", ("k", "n")), ("c", ("n", "p"))))
    f = sc.compile(a @ b @ c, [a, b, c])
    before = f.compile_count
    for m, k, n, p in ((3, 40, 5, 60), (60, 4, 50, 3), (1, 1, 1, 1), (7, 7, 7, 7), (0, 3, 4, 5)):
        x, y, z = RNG.normal(size=(m, k)), RNG.normal(size=(k, n)), RNG.normal(size=(n, p))
        np.testing.assert_allclose(f(x, y, z), x @ y @ z, rtol=1e-10, atol=1e-12)
    assert f.compile_count == before
    assert f.dump("chains").count("= dot ") == 4
    assert "test_chains.py" in next(line for line in f.dump("chains").splitlines() if "= dot " in line)


def test_five_factors_of_unknown_sizes():
    sizes = "abcdef"
    xs = [sc.input(f"x{k}", "float64", (sizes[k], sizes[k + 1])) for k in range(5)]
    product = xs[0]
    for x in xs[1:]:
        product = product @ x
    f = sc.compile(product, xs)
    assert 2 <= len(next(v for v in f._compilation.stages["chains"].values() if v.op.name == "cond").regions) <= 4
    for dims in ((2, 3, 4, 5, 6, 7), (9, 1, 9, 1, 9, 1), (1, 8, 2, 8, 2, 8), (6, 5, 4, 3, 2, 1)):
        data = [RNG.normal(size=s) for s in itertools.pairwise(dims)]
        np.testing.assert_allclose(f(*data), np.linalg.multi_dot(data), rtol=1e-10, atol=1e-12)


def test_gradients_of_chains():
    a, b = sc.input("a", "float64", ("m", "k")), sc.input("b", "float64", ("k", "n"))
    v = sc.input("v", "float64", ("n",))
    loss = sc.sum(sc.tanh((a @ b) @ v))
    f = sc.compile(sc.grad(loss, [a, b, v]), [a, b, v])
    products = [v for v in f._compilation.stages["chains"].values() if v.op is dot]
    assert not any(p.operands[0].ndim == p.operands[1].ndim == 2 for p in products)  # none is of two matrices
    data = [RNG.normal(size=s) * 0.3 for s in ((5, 6), (6, 7), (7,))]
    want = sc.compile(sc.grad(loss, [a, b, v]), [a, b, v], mode="reference")(*data)
    for g, w in zip(f(*data), want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12)


def test_a_matrix_that_is_used_elsewhere_is_made_once():
    a, b = sc.input("a", "float64", (30, 40)), sc.input("b", "float64", (40, 30))
    v, w = sc.input("v", "float64", (30,)), sc.input("w", "float64", (30,))
    p = a @ b
    f = sc.compile((p @ v, sc.tanh(p) @ w), [a, b, v, w])
    assert f.dump("chains").count("= dot ") == 3


@pytest.mark.parametrize(("rows", "products"), [(1000, 3), (2, 4)])
def test_a_matrix_of_two_chains_is_made_if_that_is_cheaper(rows, products):
    """`p = A @ B` for the rows of x and of y: once for many rows, never for few."""
    a, b = sc.input("a", "float64", (50, 60)), sc.input("b", "float64", (60, 50))
    x, y = (sc.input(n, "float64", (rows, 50)) for n in "xy")
    p = a @ b
    f = sc.compile((x @ p, y @ p), [a, b, x, y], pipeline="chains,fuse")
    assert f.dump("chains").count("= dot ") == products
    data = [RNG.normal(size=i.type.shape) for i in f.inputs]
    for got, rows_of in zip(f(*data), data[2:], strict=True):
        np.testing.assert_allclose(got, rows_of @ data[0] @ data[1], rtol=1e-9, atol=1e-9)


def test_a_product_that_is_the_same_in_every_step_is_computed_once():
    """Outside of the loop, although `B @ v` in every step would take fewer multiplications for one step."""
    a, b, v = sc.input("a", "float64", (30, 40)), sc.input("b", "float64", (40, 30)), sc.input("v", "float64", (30,))
    f = sc.compile(sc.scan(lambda h, _: (sc.tanh((a @ b) @ h), None), v, None, length=50)[0], [a, b, v])
    assert [line.strip().split(" : ")[0] for line in f.dump("chains").splitlines() if "= dot " in line] == [
        "%0 = dot %a, %b", "%0 = dot %p1, %p0"]


@pytest.mark.long
def test_a_thousand_factors():
    x = sc.input("x", "float64", (3, 3))
    y = x
    for _ in range(1000):
        y = y @ x
    f = close_over([x.value], [y.value])
    out = optimize(Function("f", (Input("x", x.value.type, declared=x.value.type),), f), "chains")
    assert out.report[0].seconds < 20
