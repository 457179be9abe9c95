"""Products of every layout, dtype and size, on every device, real or emulated (see ``test_contract.py``)."""

from __future__ import annotations

import numpy as np
import pytest

from symc.ir.types import as_dtype
from symc.runtime.cuda.device import Product
from tests.cuda.contract import On, counted, device_of, kinds, now


@pytest.fixture(scope="module", params=kinds())
def device(request):
    with device_of(request.param) as made:
        yield made


@pytest.fixture
def on(device):
    made = On(device, {}, device.stream())
    yield made
    device.synchronize(made.stream)


def stored(matrix: np.ndarray, leading: int) -> np.ndarray:
    """Matrices stored by columns, ``leading`` elements from one to the next; what is between them is nan."""
    batch, rows, count = matrix.shape
    out = np.full((batch, count, leading), np.nan, matrix.dtype)
    out[:, :, :rows] = matrix.transpose(0, 2, 1)
    return out


def random(rng, dtype: str, *shape: int) -> np.ndarray:
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x, dtype)


def check_product(device, on, dtype="float32", trans=(False, False), sizes=(5, 3, 4), batch=1, alpha=1.0, beta=0.0,
                  more=0, one="", compute="highest", error=None, conj=(False, False)) -> None:
    """``more``: elements between columns; ``one``: which operand is one matrix for all; ``conj``: which ones are
    conjugated as they are transposed."""
    rng, (m, n, k) = np.random.default_rng(3), sizes
    a = random(rng, dtype, 1 if one == "a" else batch, m, k)
    b = random(rng, dtype, 1 if one == "b" else batch, k, n)
    c = random(rng, dtype, batch, m, n) if beta else np.full((batch, m, n), np.nan, dtype)
    placed = [x.transpose(0, 2, 1) if t else x for x, t in zip((a, b), trans, strict=True)]
    placed = [x.conj() if c else x for x, c in zip(placed, conj, strict=True)]
    arrays = [stored(x, x.shape[1] + more) for x in (*placed, c)]
    strides = [0 if len(x) == 1 else x[0].size for x in arrays]
    leading = [x.shape[2] for x in arrays]
    p = Product(*trans, m, n, k, alpha, beta, *leading, *strides, batch, as_dtype(dtype), compute, *conj)
    before = now(device)
    at = [on.put(x) for x in arrays]
    device.product(p, *at, on.stream)
    got = on.get(at[2], arrays[2])
    wide = np.complex128 if dtype[0] == "c" else np.float64
    want = alpha * (a.astype(wide) @ b.astype(wide)) + (beta * c.astype(wide) if beta else 0)
    limit = error or {"float16": 4e-3, "bfloat16": 3e-2, "float64": 1e-13, "complex128": 1e-13}.get(dtype, 1e-5)
    np.testing.assert_allclose(got[:, :, :m].transpose(0, 2, 1), want, rtol=0, atol=limit * max(1, k) ** 0.5 * 4)
    assert np.isnan(got[:, :, m:]).all(), "between the columns"
    assert counted(device, before)["library_calls"] == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "float16",
                                   "bfloat16"])
@pytest.mark.parametrize("trans", [(False, False), (False, True), (True, False), (True, True)])
def test_products(device, on, dtype, trans):
    check_product(device, on, dtype, trans)
    check_product(device, on, dtype, trans, (6, 7, 5), batch=3, alpha=2.0, beta=-0.5, more=2)


@pytest.mark.parametrize("one", ["a", "b"])
def test_products_with_one_matrix_for_all(device, on, one):
    check_product(device, on, batch=4, one=one, trans=(True, False))


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 5, 3), (5, 1, 3), (4, 4, 1), (65, 33, 130)])
def test_products_of_every_size(device, on, sizes):
    check_product(device, on, sizes=sizes)


def test_products_with_complex_factors(device, on):
    check_product(device, on, "complex64", alpha=1 + 2j, beta=0.5j)


@pytest.mark.parametrize("conj", [(True, False), (False, True), (True, True)])
def test_products_of_what_is_conjugated(device, on, conj):
    check_product(device, on, "complex128", conj, conj=conj)


@pytest.mark.parametrize("compute", ["tf32", "bf16"])
def test_faster_products(device, on, compute):
    check_product(device, on, sizes=(64, 32, 64), compute=compute, error=2e-2)


def test_a_product_in_a_graph(device, on):
    x = np.eye(4, dtype=np.float32) * 2
    a, c = on.put(x), on.put(np.ones((4, 4), np.float32))
    p = Product(False, False, 4, 4, 4, 1.0, 1.0, 4, 4, 4, 0, 0, 0, 1, np.dtype(np.float32))
    device.synchronize(on.stream)
    device.begin_capture(on.stream)
    device.product(p, a, a, c, on.stream)
    graph = device.end_capture(on.stream)
    before = now(device)
    for _ in range(2):
        device.run_graph(graph, on.stream)
    assert counted(device, before) == {"graph_launches": 2, "library_calls": 2}
    np.testing.assert_array_equal(on.get(c, x), 1 + 8 * np.eye(4))
