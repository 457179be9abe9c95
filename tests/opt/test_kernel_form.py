"""Kernels of equal layers are one kernel, whatever order their operands had."""

import numpy as np
import pytest

import symc as sc
from symc.driver.build import build
from symc.ir.function import Function
from symc.ir.reference import evaluate_function
from symc.ir.traverse import inline
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.opt import optimize
from symc.opt.fusion.kernel_form import kernel_form
from symc.tensors.callsite import caller


def layers(count: int) -> Function:
    """A network of equal layers, with its gradient."""
    rng = np.random.default_rng(0)
    x = sc.input("x", "float64", shape=("n", 3))
    weights = [sc.shared(rng.normal(size=(3, 3)), f"w{k}") for k in range(count)]
    h = x
    for w in weights:
        h = sc.softmax(h @ w, axis=1) * h + h
    loss = sc.sum(h * h)
    return build((loss, sc.grad(loss, weights)), [x], None, None, (), "f", caller()).function


def distinct_kernels(f: Function) -> int:
    return len({v.regions[0] for v in f.values() if v.op.name == "fused"})


def test_equal_layers_share_kernels():
    few, many = (optimize(layers(k)).function for k in (4, 12))
    assert distinct_kernels(many) == distinct_kernels(few) <= 8


@pytest.mark.long
def test_equal_steps_of_a_chain_share_kernels():
    """A chain too long for one kernel is cut layer by layer: more steps are more launches, hardly more kernels."""

    def chain(steps: int) -> Function:
        h = x = sc.input("x", "float64", shape=("n",))
        for _ in range(steps):
            h = sc.tanh(h * 1.01 + 0.5)
        return build(sc.grad(h.sum(), x), [x], None, None, (), "f", caller()).function

    f = optimize(chain(400)).function
    assert distinct_kernels(f) <= 18 < 40 < sum(v.op.name == "fused" for v in f.values())


def test_values_stay():
    f = layers(4)
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(5, 3)), *[rng.normal(size=(3, 3)) for _ in range(4)]]
    for a, b in zip(evaluate_function(optimize(f).function, arrays), evaluate_function(f, arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_operands_either_way_round_are_one_region():
    t = TensorType("f64", (4,))
    regions = set()
    for swap in (False, True):
        x, y = fresh_input(t), fresh_input(t)
        s = 1.0 - y
        product = s * x if swap else x * s
        reads = [x, y] if swap else [y, x]
        first, _, region = kernel_form(reads, [product])
        assert set(first) == {x, y} and inline(region, first)[0].type is t
        regions.add(region)
    assert len(regions) == 1
