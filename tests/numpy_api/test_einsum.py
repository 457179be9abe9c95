"""einsum of many operands: the fewest multiplications, lowered to matrix products."""

import itertools

import numpy as np
import pytest

import symc as sc
from symc.ir.dim import product
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.size_values import evaluate, names
from symc.numpy_api.contraction_path import EXACT, contraction_path, volume

RNG = np.random.default_rng(0)


def cost(path, operands, output, sizes):
    """Multiplications of a path, labels that nothing else has summed first."""
    work, total = list(operands), 0
    for i, j in path:
        others = [x for k, x in enumerate(work) if k not in (i, j)]
        rest = output
        for x in others:
            rest |= x
        a, b = work[i] & (rest | work[j]), work[j] & (rest | work[i])
        total += volume(a | b, sizes)
        work = [*others, (a | b) & rest]
    assert len(work) == 1
    return total


def every_path(n):
    if n == 1:
        yield []
        return
    for i, j in itertools.combinations(range(n), 2):
        for rest in every_path(n - 1):
            yield [(i, j), *rest]


def random_network(count, labels):
    sizes = {1 << k: int(RNG.choice([1, 2, 3, 10, 50])) for k in range(labels)}
    operands = [sum({1 << int(k) for k in RNG.integers(labels, size=RNG.integers(1, 4))}) for _ in range(count)]
    used = 0
    for x in operands:
        used |= x
    output = sum(1 << k for k in range(labels) if used >> k & 1 and RNG.integers(3) == 0)
    return operands, output, sizes


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_best_of_all_paths(count):
    for _ in range(5):
        network = random_network(count, 6)
        found = cost(contraction_path(*network), *network)
        assert found == min(cost(p, *network) for p in every_path(count))


def test_many_operands():
    for count in (EXACT, EXACT + 1, 12, 30):
        network = random_network(count, 15)
        path = contraction_path(*network)
        left_to_right = [(0, 1)] + [(0, k) for k in range(count - 2, 0, -1)]
        assert cost(path, *network) <= 1.01 * cost(left_to_right, *network)


def multiplications(f, **sizes):
    total = 0
    for v in f._compilation.stages["input"].values():
        if v.op is dot:
            free = free_axes(v.operands[1], v.attrs["contract"][1], v.attrs["batch"][1])
            n = product([*v.operands[0].shape, *[v.operands[1].shape[a] for a in free]])
            total += evaluate(n, {k: sizes[k] for k in names(n)})
    return total


@pytest.mark.parametrize("formula", [
    "ij,jk,kl->il", "ij,jk,kl,lm->im", "bij,bjk,bkl->bil", "ab,bc,cd,de,e->a", "ijk,jl,km,lm->i", "ij,kj,ki->",
    "i,j,k->ijk", "ab,ac,ad->bcd", "abc,cde,efa->bdf", "i,i,i", "ij,ij,jk->ik", "bhqd,bhkd,bhkv->bhqv", "ii,ij,jk->k",
    "abcd,cdef,efgh,ghij->abij",
])  # fmt: skip
def test_formulas(formula):
    inputs = formula.replace("->", ",").split(",")[: formula.count(",") + 1]
    size = dict(zip("abcdefghijklmnopqrstuvwxyz", itertools.cycle([4, 2, 5, 3, 6]), strict=False))
    args = [sc.input(f"x{k}", "float64", tuple(f"n_{c}" for c in labels)) for k, labels in enumerate(inputs)]
    f = sc.compile(sc.einsum(formula, *args), args)
    data = [RNG.normal(size=[size[c] for c in labels]) for labels in inputs]
    np.testing.assert_allclose(f(*data), np.einsum(formula, *data), rtol=1e-10, atol=1e-10)


def test_as_few_multiplications_as_the_best_path_of_numpy():
    shapes = {"a": 20, "b": 3, "c": 50, "d": 2, "e": 40, "f": 7}
    formula = "ab,bc,cd,de,ef->af"
    args = [sc.input(f"x{k}", "float64", tuple(shapes[c] for c in s)) for k, s in enumerate(formula[:-4].split(","))]
    f = sc.compile(sc.einsum(formula, *args), args)
    order = np.einsum_path(formula, *[np.empty(a.shape) for a in args], optimize="optimal")[1]
    said = float(next(line for line in order.splitlines() if "Optimized FLOP" in line).split(":")[1])
    assert 2 * multiplications(f) <= said * 1.01


def test_attention_is_two_batches_of_products():
    q, k, v = (sc.input(n, "float32", ("b", "h", "t", 16)) for n in "qkv")
    f = sc.compile(sc.einsum("bhqd,bhkd->bhqk", q, k), [q, k])
    assert f.calls == {"gemm": 1} and not f.kernels
    g = sc.compile(sc.einsum("bhqd,bhkd,bhkv->bhqv", q, k, v), [q, k, v])
    assert g.calls == {"gemm": 2} and not g.kernels
    data = [RNG.normal(size=(2, 3, 5, 16)).astype("float32") for _ in range(3)]
    np.testing.assert_allclose(g(*data), np.einsum("bhqd,bhkd,bhkv->bhqv", *data), rtol=1e-4, atol=1e-4)


def test_a_chain_of_unknown_sizes_is_ordered_in_a_call():
    a, b, c = (sc.input(n, "float64", s) for n, s in (("a", ("m", "k")), ("b", ("k", "n")), ("c", ("n", "p"))))
    f = sc.compile(sc.einsum("ij,jk,kl->il", a, b, c), [a, b, c])
    assert " cond " in f.dump("chains")
    data = [RNG.normal(size=s) for s in ((3, 40), (40, 2), (2, 50))]
    np.testing.assert_allclose(f(*data), np.einsum("ij,jk,kl->il", *data), rtol=1e-10)


def test_gradients():
    formula = "ij,jk,kl,l->i"
    args = [sc.input(f"x{k}", "float64", s) for k, s in enumerate(((3, 4), (4, 5), (5, 6), (6,)))]
    sc.verify_grad(lambda *xs: sc.sum(sc.tanh(sc.einsum(formula, *xs))), [RNG.normal(size=a.shape) * 0.4 for a in args])


@pytest.mark.parametrize("formula", ["ij,jk,kl->il", "i,ij,j->", "ij,jk,ki->", "ij,jk->ik"])
def test_half_precision_is_rounded_once(formula):
    """Products of the first two exceed its range, those of all do not."""
    operands = formula.partition("->")[0].split(",")
    arrays = [np.random.default_rng(k).uniform(100, 200, (12,) * len(o)).astype("f2") for k, o in enumerate(operands)]
    arrays[-1] = (arrays[-1] / np.float32(199999)).astype("f2")
    want = np.einsum(formula, *[a.astype("f8") for a in arrays]).astype("f2")
    inputs = [sc.input(f"x{k}", "float16", ("n",) * a.ndim) for k, a in enumerate(arrays)]
    got = sc.compile(sc.einsum(formula, *inputs), inputs)(*arrays)
    np.testing.assert_array_max_ulp(got, want, 1)
