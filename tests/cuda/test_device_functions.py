"""Functions compiled for a device: what goes in and comes out, what stays there, what is counted. On the emulated
device; which numbers kernels compute is asked elsewhere."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

import symc as sc
from symc.ir.op import all_ops, unregister
from symc.runtime.cuda.devices import context
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler

pytestmark = needs_compiler


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[None]:
    with emulated_cuda():
        yield


@pytest.fixture(autouse=True)
def own_ops():
    """Ops that a test makes are gone after it: other tests go through all there are."""
    before = {o.name for o in all_ops()}
    yield
    for name in {o.name for o in all_ops()} - before:
        unregister(name)


@pytest.fixture
def counted():
    """What the device has done since the test began, by name."""
    before = dict(vars(context("cuda").device.counters))

    def since() -> dict[str, int]:
        return {k: n - before[k] for k, n in vars(context("cuda").device.counters).items()}

    return since


def rows(n: int = 12, m: int = 8) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, m)).astype("float32")


@pytest.fixture(scope="module")
def scaled():
    x = sc.input("x", "float32", ("n", 8))
    return sc.compile(2 * x + 1, [x], device="cuda", name="scaled")


def test_results_stay_on_the_device(scaled):
    x = rows()
    y = scaled(x)
    assert isinstance(y, sc.DeviceArray) and y.device == "cuda:0"
    assert (y.shape, y.dtype, y.ndim, y.size, y.nbytes, len(y)) == ((12, 8), np.float32, 2, 96, 384, 12)
    np.testing.assert_array_equal(y.numpy(), 2 * x + 1)
    np.testing.assert_array_equal(scaled(y).numpy(), 2 * (2 * x + 1) + 1)


def test_numpy_does_not_read_a_device_unseen(scaled):
    y = scaled(rows())
    with pytest.raises(TypeError, match=r"x\.numpy\(\) copies it"):
        np.asarray(y)
    with pytest.raises(TypeError):
        y + np.ones((12, 8), "float32")


def test_only_what_was_asked_for_crosses(scaled, counted):
    x = rows()
    y = scaled(x)
    assert (counted()["h2d_bytes"], counted()["d2h_bytes"]) == (x.nbytes, 0)
    for _ in range(5):
        y = scaled(y)
    found = counted()
    assert (found["h2d_bytes"], found["d2h_bytes"], found["d2d_bytes"], found["syncs"]) == (x.nbytes, 0, 0, 0)
    assert found["launches"] == 6
    y.numpy()
    assert counted()["d2h_bytes"] == y.nbytes


def test_another_shape_compiles_nothing(scaled):
    scaled(rows(12))
    texts = scaled.source
    np.testing.assert_array_equal(scaled(rows(33)).numpy(), 2 * rows(33) + 1)
    assert scaled.source == texts and scaled.compile_count == 0


def test_a_training_step_is_one_graph(counted):
    x, w = sc.input("x", "float32", ("n", 8)), sc.shared(rows(8, 4), "w")
    loss = sc.mean(sc.tanh(x @ w) ** 2)
    step = sc.compile(loss, [x], updates={w: w - 0.1 * sc.grad(loss, w)}, device="cuda", name="step")
    reference = sc.shared(rows(8, 4), "w")
    loss = sc.mean(sc.tanh(x @ reference) ** 2)
    on_host = sc.compile(loss, [x], updates={reference: reference - 0.1 * sc.grad(loss, reference)})
    on_device = sc.device_array(rows())
    start = counted()["h2d_bytes"]
    for _ in range(6):
        np.testing.assert_allclose(float(step(on_device)), on_host(rows()), rtol=1e-5)
    found = counted()
    assert found["h2d_bytes"] - start == w.get_value().nbytes, "the state goes there once"
    assert found["d2h_bytes"] == 6 * 4, "six losses"
    assert found["graph_launches"] >= 3
    np.testing.assert_allclose(w.get_value(), reference.get_value(), rtol=1e-5)


def test_states_live_where_they_are_used():
    x, w = sc.input("x", "float32", (3,)), sc.shared(np.ones(3, "float32"), "w")
    there = sc.compile(x * w, [x], updates={w: w + x}, device="cuda", name="there")
    here = sc.compile(w + 1, name="here")
    there(np.ones(3, "float32"))
    assert isinstance(w.array, sc.DeviceArray)
    with pytest.raises(sc.DeviceError, match="w is on cuda:0, the function was compiled for cpu") as e:
        here()
    assert "to_device('cpu')" in str(e.value)
    np.testing.assert_array_equal(w.get_value(), [2, 2, 2])
    w.to_device("cpu")
    np.testing.assert_array_equal(here(), [3, 3, 3])
    w.set_value(np.zeros(3, "float32"))
    np.testing.assert_array_equal(there(np.ones(3, "float32")).numpy(), [0, 0, 0])


def test_a_state_that_was_read_natively_before():
    """The call without Python notices that the state went away."""
    x, w = sc.input("x", "float32", (3,)), sc.shared(np.ones(3, "float32"), "w")
    here = sc.compile(w + x, [x])
    for _ in range(4):
        here(np.ones(3, "float32"))
    w.to_device("cuda")
    with pytest.raises(sc.DeviceError):
        here(np.ones(3, "float32"))


@pytest.mark.parametrize("wrong, error, said", [
    (lambda: np.ones((2, 7), "float32"), sc.ShapeError, "8"),
    (lambda: sc.device_array(np.ones((2, 7), "float32")), sc.ShapeError, "8"),
    (lambda: sc.device_array(np.ones((2, 8))), sc.DTypeError, "f64 was given"),
    (lambda: sc.device_array(np.ones((2, 8), "float32"), "cuda:1"), sc.InputError, "cuda:1"),
    (lambda: "seven", sc.InputError, "seven"),
])  # fmt: skip
def test_wrong_arguments(scaled, wrong, error, said):
    with pytest.raises(error, match=said):
        scaled(wrong())


def test_transfers_may_be_forbidden_or_done_unasked():
    x = sc.input("x", "float32", ("n",))
    f = sc.compile(x + 1, [x], device="cuda", transfers="forbid", name="f")
    with pytest.raises(sc.InputError, match="x is an array of the host, and transfers are forbidden"):
        f(np.ones(3, "float32"))
    np.testing.assert_array_equal(f(sc.device_array(np.ones(3, "float32"))).numpy(), [2, 2, 2])
    g = sc.compile((x + 1, x.sum()), [x], device="cuda", transfers="auto")
    a, b = g(np.ones(3, "float32"))
    assert isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and b == 3


def test_what_a_device_cannot_do_is_said_when_compiling():
    x = sc.matrix("x")

    @sc.op(infer=lambda x: (x.dtype, x.shape))
    def backwards(x):
        return x[::-1].copy()

    y = backwards(x + 1)
    with pytest.raises(sc.DeviceError, match="backwards cannot run on cuda:0") as e:
        sc.compile(y, device="cuda")
    assert "y = backwards(x + 1)" in str(e.value)


def test_out_is_written_into(scaled):
    x, out = sc.device_array(rows()), sc.device_array(np.zeros((12, 8), "float32"))
    assert scaled(x, out=out) is out
    np.testing.assert_array_equal(out.numpy(), 2 * rows() + 1)
    scaled(x, out=x)
    np.testing.assert_array_equal(x.numpy(), 2 * rows() + 1)
    with pytest.raises(sc.InputError, match="must be an array on cuda:0"):
        scaled(x, out=np.zeros((12, 8), "float32"))
    with pytest.raises(sc.ShapeError):
        scaled(x, out=sc.device_array(np.zeros((3, 8), "float32")))


def test_a_donated_array_is_written_over(counted):
    x = sc.input("x", "float32", ("n",))
    f = sc.compile(sc.cumsum(x * 2), [x], donate=(x,), device="cuda")
    a = sc.device_array(np.ones(5, "float32"))
    np.testing.assert_array_equal(f(a).numpy(), [2, 4, 6, 8, 10])


def test_an_index_out_of_bounds_is_reported_when_the_result_is_read():
    x, i = sc.input("x", "float32", ("n",)), sc.input("i", "int64", ("k",))
    f = sc.compile(x[i] * 2, [x, i], device="cuda")
    y = f(np.arange(4, dtype="float32"), np.array([0, 3]))
    np.testing.assert_array_equal(y.numpy(), [0, 6])
    bad = f(np.arange(4, dtype="float32"), np.array([0, 4]))
    with pytest.raises(IndexError, match="out of bounds") as e:
        bad.numpy()
    assert "x[i]" in str(e.value)
    np.testing.assert_array_equal(f(np.arange(4, dtype="float32"), np.array([1])).numpy(), [2])


def test_loops_and_branches():
    x = sc.input("x", "float32", (5, 3))
    _, ys = sc.scan(lambda c, row: ((c := c @ (2 * sc.eye(3, dtype="float32")) + row), c),
                    sc.zeros(3, "float32"), x)
    f = sc.compile(ys, [x], device="cuda")
    g = sc.compile(ys, [x])
    np.testing.assert_allclose(f(rows(5, 3)).numpy(), g(rows(5, 3)), rtol=1e-6)
    n = sc.input("n", "int64", ())
    big = sc.cond(n > 2, lambda: sc.sum(x @ x.T), lambda: -sc.sum(x @ x.T))
    f, g = sc.compile(big, [x, n], device="cuda"), sc.compile(big, [x, n])
    for k in (1, 3):
        np.testing.assert_allclose(f(rows(5, 3), k).numpy(), g(rows(5, 3), k), rtol=1e-5)


def test_products_of_other_kinds():
    a, b = sc.input("a", "int64", (4, 5)), sc.input("b", "int64", (5, 3))
    f = sc.compile(a @ b, device="cuda")
    x, y = np.arange(20).reshape(4, 5), np.arange(15).reshape(5, 3)
    np.testing.assert_array_equal(f(x, y).numpy(), x @ y)


def test_a_users_kernels():
    @sc.op(cuda="out = x * x + shift;")
    def squared_and_more(x, *, shift=1.0):
        return x * x + shift

    @sc.op(infer=lambda x: (x.dtype, (x.shape[1], x.shape[0])), cuda=sc.CudaKernel(
        'extern "C" __global__ void turn(const float *x, float *o, long long n, long long m) {'
        "  long long i = blockIdx.x * 32LL + threadIdx.x; if (i < n * m) o[i % m * n + i / m] = x[i]; }",
        "turn", grid=lambda x, o: -(-x.shape[0] * x.shape[1] // 32), block=32, numbers=lambda x, o: x.shape))
    def turned_round(x):
        return np.ascontiguousarray(x.T)

    x = sc.input("x", "float32", ("n", "m"))
    f = sc.compile(turned_round(squared_and_more(x, shift=2.0)) + 1, [x], device="cuda")
    np.testing.assert_allclose(f(rows()).numpy(), (rows() ** 2 + 2).T + 1, rtol=1e-6)


SLOPE = 0.25


def test_a_users_functions_of_one_element_join_kernels():
    @sc.op(numba=lambda x: x if x > 0 else SLOPE * math.expm1(x))
    def bent(x):
        return np.where(x > 0, x, SLOPE * np.expm1(x))

    @sc.op(numba=lambda x, limit: min(x, limit), cuda="out = x < limit ? x : limit;")
    def capped(x, *, limit=1.0):
        return np.minimum(x, limit)

    x = sc.input("x", "float64", ("n",))
    f = sc.compile(capped(bent(x) * 2, limit=1.5) + 1, [x], device="cuda")
    given = np.linspace(-2, 2, 33)
    np.testing.assert_allclose(f(given).numpy(), sc.compile(capped(bent(x) * 2, limit=1.5) + 1, [x])(given), rtol=1e-14)
    assert len(f.kernels) == 1 and "out = x < limit" not in f.source, "the text of the function is none of the kernel's"


def test_a_users_function_that_cannot_be_translated():
    def helper(x):
        return x

    @sc.op(numba=lambda x: helper(x))
    def strange(x):
        return x

    with pytest.raises(sc.DeviceError, match="function helper") as e:
        sc.compile(strange(sc.vector("x")) + 1, device="cuda")
    assert 'cuda="out = ..."' in str(e.value)


def test_functions_can_be_saved_profiled_and_asked(scaled, tmp_path):
    scaled.save(tmp_path / "f.symc")
    loaded = sc.load(tmp_path / "f.symc")
    np.testing.assert_array_equal(loaded(rows()).numpy(), 2 * rows() + 1)
    profile = scaled.profile(rows(), repeat=1)
    assert len(profile) == 1 and profile[0].runs >= 1 and "limits" in str(profile)
    (kernel,) = scaled.kernels
    assert "__global__" in kernel.source and kernel.launches == 1 and "test_device_functions" in kernel.lines[0]
    assert scaled.accuracy() is not None


def test_modes_of_the_host_are_refused():
    x = sc.vector("x")
    for mode in ("reference", "debug", "nan_guard"):
        with pytest.raises(sc.InputError, match=f"mode='{mode}' runs on the CPU"):
            sc.compile(x + 1, mode=mode, device="cuda")
    with pytest.raises(sc.InputError, match="unknown device 'tpu'"):
        sc.compile(x + 1, device="tpu")
    with pytest.raises(sc.InputError, match="unknown precision"):
        sc.compile(x + 1, device="cuda", precision="half")
    with pytest.raises(sc.InputError, match="precision='bf16' is for devices"):
        sc.compile(x + 1, precision="bf16")


def test_precision_is_asked_of_products():
    x = sc.input("x", "float32", (8, 8))
    products = []
    device = context("cuda").device
    own = device.product
    try:
        device.product = lambda p, *rest: (products.append(p.compute), own(p, *rest))[1]
        for precision in ("highest", "tf32", "bf16"):
            sc.compile(x @ x, [x], device="cuda", precision=precision)(rows(8, 8)).numpy()
    finally:
        device.product = own
    assert products == ["highest", "tf32", "bf16"]


def test_deferred_and_traced_functions():
    a = sc.Variable("A")
    f = sc.compile(a * 2, device="cuda")
    np.testing.assert_array_equal(f(np.ones(3)).numpy(), [2, 2, 2])
    g = sc.jit(lambda x: x + 1, device="cuda")
    np.testing.assert_array_equal(g(np.ones(3)).numpy(), [2, 2, 2])
