"""The pass lower_batched: convolutions and exponentials as products, windows added as sums: the same as the ops."""

import numpy as np
import pytest

import symc as sc
from symc.ir.ops.conv import conv, conv_filter, conv_input
from symc.ir.ops.matrix_functions import expm
from symc.ir.ops.windows import add_windows
from symc.ir.reference import run_values
from symc.ir.traverse import every_value, postorder
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.opt.engine.pipelines import DEFAULT, ON_CUDA

pytestmark = pytest.mark.long


@pytest.mark.parametrize("op", [conv, conv_input, conv_filter, add_windows], ids=lambda op: op.name)
def test_it_says_what_the_op_says(op):
    for operands, attrs in op.samples():
        leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in operands]
        v = op(*leaves, **attrs)
        whole = op.facts.lower_batched(v)
        assert whole.type is v.type
        assert not any(x.regions or x.op is op for x in postorder([whole]))
        found, wanted = run_values([whole, v], dict(zip(leaves, operands)), {})
        np.testing.assert_array_equal(found, wanted)


def test_a_device_gets_products_and_no_loops():
    x, w = sc.input("x", "float32", ("n", 3, 8, 8)), sc.input("w", "float32", (4, 3, 3, 3))
    loss = sc.sum(sc.conv(x, w) ** 2)
    gradients = sc.grad(loss, [x, w])
    a, b = np.ones((2, 3, 8, 8), "float32"), np.ones((4, 3, 3, 3), "float32")
    found, wanted = (sc.compile(gradients, [x, w], pipeline=p) for p in (ON_CUDA, DEFAULT))
    names = [v.op.name for v in every_value(found._compilation.final.body)]
    assert "scan" not in names and sum(n in ("dot", "gemm") for n in names) == 3
    assert "scan" in [v.op.name for v in every_value(wanted._compilation.final.body)]
    for p, q in zip(found(a, b), wanted(a, b)):
        np.testing.assert_allclose(p, q, rtol=1e-5)


def test_the_pipeline_of_a_device():
    ours, theirs = ON_CUDA.split(","), DEFAULT.split(",")
    assert ours.pop() == "-ends_of_sorted"  # a device has no kernel for these
    assert [p for p in ours if p not in ("lower_batched", "native_products")] == [
        p for p in theirs if p not in ("fuse_matvec", "convolutions", "order_statistics")]
    first, second = (k for k, name in enumerate(ours) if name == "lower_batched")
    assert first < ours.index("decompose") < second


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_exponentials_of_matrices_are_products(dtype):
    rng = np.random.default_rng(0)
    turned = rng.normal(size=(4, 5, 5))
    turned = (turned - np.swapaxes(turned, 1, 2)) * np.array([1e-3, 1, 8, 30])[:, None, None]
    for a, ulps in ((turned, 8000), (rng.normal(size=(2, 3, 3)), 50), (np.zeros((2, 2)), 0), (np.ones((0, 0)), 0)):
        a = a.astype(dtype)
        leaf = fresh_input(TensorType(a.dtype, a.shape))
        (got,) = run_values([expm.facts.lower_batched(expm(leaf))], {leaf: a}, {}, check=True)
        scale = np.linalg.norm(expm.reference(a)) if a.size else 1
        np.testing.assert_allclose(got, expm.reference(a), rtol=0, atol=ulps * np.finfo(dtype).eps * scale)
