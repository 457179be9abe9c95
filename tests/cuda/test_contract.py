"""What every device must do, real or emulated: memory, copies, launches, order, graphs, products, counters, errors.

On a machine with a GPU, ``SYMC_DEVICE=cuda:0`` runs the same tests on it too.
"""

from __future__ import annotations

import itertools
import os
import shutil

import numpy as np
import pytest

from symc.codegen.cuda.prelude import END, PRELUDE
from symc.errors import InternalError
from symc.runtime.cuda.device import ALIGN, Counters, Product, Signature

REAL = os.environ.get("SYMC_DEVICE", "")

TEXT = PRELUDE + END + r"""
extern "C" __global__ __launch_bounds__(128) void add(const float *x, const float *y, float *z, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
extern "C" __global__ __launch_bounds__(128) void twice(float *x, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) x[i] = 2.0f * x[i];
}
extern "C" __global__ __launch_bounds__(32)
void widths(unsigned char a, short b, int c, long long d, float e, double f, double *out) {
  if (threadIdx.x == 0) { out[0] = a; out[1] = b; out[2] = c; out[3] = (double)d; out[4] = e; out[5] = f; }
}
extern "C" __global__ __launch_bounds__(64) void places(int *out) {
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * blockDim.x + threadIdx.x] = 100 * block + threadIdx.x;
}
extern "C" __global__ __launch_bounds__(64) void reversed(int *x) {
  SYMC_SHARED(int, kept);
  kept[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = kept[63 - threadIdx.x];
}
extern "C" __global__ __launch_bounds__(64) void spread(int *x, int distance) {
  SYMC_SHARED(int, kept);
  kept[distance * threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = kept[distance * (63 - threadIdx.x)] + 1;
}
"""
SIGNATURES = {
    "add": (8, 8, 8, 4), "twice": (8, 4), "widths": (1, 2, 4, 8, 4, 8, 8), "places": (8,), "reversed": (8,),
    "spread": (8, 4),
}  # fmt: skip


def _kinds() -> list:
    emulated = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulated device needs g++")
    found = [pytest.param("checked", marks=emulated), pytest.param("fast", marks=emulated)]
    return [*found, REAL] if REAL else found


@pytest.fixture(scope="module", params=_kinds())
def device(request):
    """A device, with ``kernels``: those of ``TEXT``."""
    if request.param == REAL:
        from symc.runtime.cuda.cupy_device import CupyDevice

        made = CupyDevice(int(REAL.removeprefix("cuda:") or 0))
    else:
        from symc.runtime.emulator import EmulatedDevice

        made = EmulatedDevice(0, request.param == "checked")
    return made


@pytest.fixture(scope="module")
def kernels(device):
    return device.load(TEXT, [Signature(n, w) for n, w in SIGNATURES.items()])


@pytest.fixture
def stream(device):
    return device.stream()


class On:
    """Arrays on a device, and launches with them."""

    def __init__(self, device, kernels, stream):
        self.device, self.kernels, self.stream, self.memory = device, kernels, stream, {}

    def put(self, array) -> int:
        array = np.ascontiguousarray(array)
        memory = self.device.alloc(array.nbytes)
        self.memory[memory.address] = memory, array.nbytes
        if array.nbytes:
            self.device.upload(memory.address, array, self.stream)
        return memory.address

    def empty(self, nbytes: int) -> int:
        memory = self.device.alloc(nbytes)
        self.memory[memory.address] = memory, nbytes
        return memory.address

    def get(self, address: int, like) -> np.ndarray:
        out = np.empty_like(np.ascontiguousarray(like))
        self.device.download(out, address, self.stream)
        self.device.synchronize(self.stream)
        return out

    def launch(self, name: str, *arguments, grid=(1, 1, 1), block=128, shared=0, stream=None) -> None:
        """Addresses are ints, numbers are of NumPy."""
        cells = np.zeros((len(arguments), 8), np.uint8)
        spans = []
        for cell, x in zip(cells, arguments, strict=True):
            data = np.asarray(x, np.int64) if isinstance(x, int) else np.asarray(x)
            cell[: data.nbytes] = np.frombuffer(data.tobytes(), np.uint8)
            if isinstance(x, int):
                spans.append((x, self.memory[x][1]))
        at = cells.ctypes.data + 8 * np.arange(len(arguments), dtype=np.int64)
        self.device.launch(self.kernels[name], grid, block, shared, at.ctypes.data, stream or self.stream, spans, spans)
        cells[:] = 255  # they have been read
        at[:] = 0


@pytest.fixture
def on(device, kernels, stream):
    made = On(device, kernels, stream)
    yield made
    device.synchronize(stream)


def counted(device, before: Counters) -> dict[str, int]:
    """What the counters have risen by."""
    found = {k: getattr(device.counters, k) - v for k, v in vars(before).items()}
    return {k: v for k, v in found.items() if v}


def now(device) -> Counters:
    return Counters(**vars(device.counters))


# --- facts and memory -------------------------------------------------------------------------------------------------


def test_facts(device):
    p = device.properties
    assert device.name == f"cuda:{device.index}" and p.arch.startswith("sm_")
    assert p.multiprocessors >= 1 and p.shared_bytes >= 48 * 1024 and p.total_bytes > 2**20 and p.l2_bytes > 0
    assert device.dlpack_device[0] in (1, 2)


def test_memory_is_aligned_and_apart(device):
    found = [device.alloc(n) for n in (1, 0, 3, 1000, 256, 257)]
    starts = sorted((m.address, m.nbytes) for m in found)
    assert all(a % ALIGN == 0 and a for a, _ in starts)
    assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(starts))


def test_memory_there_is_not(device):
    with pytest.raises(MemoryError):
        device.alloc(2**60)


@pytest.mark.parametrize("n", [1, 7, 256, 100_003])
def test_copies(device, on, n):
    x = np.random.default_rng(n).integers(0, 256, n, np.uint8)
    before = now(device)
    here, there = on.put(x), on.empty(n)
    device.copy(there, here, n, on.stream)
    np.testing.assert_array_equal(on.get(there, x), x)
    assert counted(device, before) == {"h2d_bytes": n, "d2d_bytes": n, "d2h_bytes": n, "allocations": 2, "syncs": 1}


def test_part_of_memory(device, on):
    x = np.arange(100, dtype=np.float32)
    at = on.put(x)
    device.upload(at + 40, np.full(5, -1, np.float32), on.stream)
    device.fill(at + 80, 0, 12, on.stream)
    device.copy(at + 200, at, 40, on.stream)
    want = x.copy()
    want[10:15], want[20:23], want[50:60] = -1, 0, x[:10]
    np.testing.assert_array_equal(on.get(at, x), want)
    np.testing.assert_array_equal(on.get(at + 40, want[10:20]), want[10:20])


def test_memory_of_the_host_has_been_read(device, on):
    x = np.arange(1000.0)
    at = on.put(x)
    want = x.copy()
    x[:] = 0
    np.testing.assert_array_equal(on.get(at, want), want)


def test_pinned_memory(device, on):
    staged = device.pinned(400)
    assert staged.dtype == np.uint8 and staged.shape == (400,)
    x = staged.view(np.float32)
    x[:] = np.arange(100)
    at = on.empty(400)
    device.upload(at, x, on.stream)
    device.synchronize(on.stream)
    x[:] = 0
    device.download(x, at, on.stream)
    device.synchronize(on.stream)
    np.testing.assert_array_equal(x, np.arange(100))


def test_fill(device, on):
    at = on.empty(1000)
    device.fill(at, 0xFF, 1000, on.stream)
    assert np.isnan(on.get(at, np.zeros(250, np.float32))).all()


# --- launches ---------------------------------------------------------------------------------------------------------


def test_a_launch(device, on):
    x, y = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
    before = now(device)
    a, b, c = on.put(x), on.put(y), on.empty(4000)
    on.launch("add", a, b, c, np.int32(1000), grid=(8, 1, 1))
    np.testing.assert_array_equal(on.get(c, x), x + y)
    assert counted(device, before)["launches"] == 1


def test_arguments_of_every_width(on):
    at = on.empty(48)
    given = np.uint8(200), np.int16(-30000), np.int32(-(2**31)), np.int64(2**40), np.float32(0.5), np.float64(1e300)
    on.launch("widths", *given, at, block=32)
    np.testing.assert_array_equal(on.get(at, np.zeros(6)), [float(x) for x in given])


def test_grids_of_three_axes(on):
    n = 3 * 2 * 2
    at = on.empty(64 * n * 4)
    on.launch("places", at, grid=(3, 2, 2), block=64)
    want = 100 * np.arange(n)[:, None] + np.arange(64)
    np.testing.assert_array_equal(on.get(at, want.astype(np.int32)), want)


def test_shared_memory_of_a_launch(on):
    x = np.arange(64, dtype=np.int32)
    at = on.put(x)
    on.launch("reversed", at, block=64, shared=256)
    np.testing.assert_array_equal(on.get(at, x), x[::-1])


def test_as_much_shared_memory_as_a_block_may_have(device, on):
    x = np.arange(64, dtype=np.int32)
    at, most = on.put(x), device.properties.shared_bytes
    for _ in range(2):
        on.launch("spread", at, np.int32(most // 256), block=64, shared=most)
    np.testing.assert_array_equal(on.get(at, x), x + 2)
    with pytest.raises(InternalError):
        on.launch("spread", at, np.int32(1), block=64, shared=most + 1024)


def test_what_does_not_compile(device):
    with pytest.raises(InternalError, match="nowhere"):
        device.load('extern "C" __global__ void broken(float *x) { x[0] = nowhere; }', [Signature("broken", (8,))])


def test_parameters_must_be_as_declared(device):
    text = 'extern "C" __global__ __launch_bounds__(32) void one(float *x, int n) { if (n) x[0] = 1.0f; }'
    with pytest.raises(InternalError, match="parameters"):
        device.load(text, [Signature("one", (8, 8))])
    with pytest.raises(InternalError, match="two"):
        device.load(text, [Signature("two", (8, 4))])
    assert set(device.load(text, [Signature("one", (8, 4))])) == {"one"}


# --- order ------------------------------------------------------------------------------------------------------------


def test_a_stream_keeps_its_order(device, on):
    x = np.ones(300, np.float32)
    at, other = on.put(x), on.empty(1200)
    for _ in range(5):
        on.launch("twice", at, np.int32(300), grid=(3, 1, 1))
    device.copy(other, at, 1200, on.stream)
    on.launch("twice", at, np.int32(300), grid=(3, 1, 1))
    assert on.get(other, x).max() == 32 and on.get(at, x).min() == 64


def test_streams_wait_for_events(device, on):
    x = np.ones(100_000, np.float32)
    at, copied = on.put(x), on.empty(x.nbytes)
    second, ready, done = device.stream(), device.event(), device.event()
    on.launch("twice", at, np.int32(x.size), grid=(782, 1, 1))
    device.record(ready, on.stream)
    device.wait(second, ready)
    device.copy(copied, at, x.nbytes, second)
    device.record(done, second)
    device.wait(on.stream, done)
    on.launch("twice", at, np.int32(x.size), grid=(782, 1, 1))
    assert (on.get(copied, x) == 2).all() and (on.get(at, x) == 4).all()


def test_time_between_events(device, on):
    start, end = device.event(), device.event()
    at = on.put(np.ones(1000, np.float32))
    device.record(start, on.stream)
    on.launch("twice", at, np.int32(1000), grid=(8, 1, 1))
    device.record(end, on.stream)
    device.synchronize(on.stream)
    assert 0 <= device.elapsed(start, end) < 60_000


# --- graphs -----------------------------------------------------------------------------------------------------------


def test_a_graph_runs_again(device, on):
    x = np.ones(300, np.float32)
    at, copied = on.put(x), on.put(np.zeros_like(x))
    device.synchronize(on.stream)
    before = now(device)
    device.begin_capture(on.stream)
    on.launch("twice", at, np.int32(300), grid=(3, 1, 1))
    device.copy(copied, at, 1200, on.stream)
    on.launch("twice", at, np.int32(300), grid=(3, 1, 1))
    device.fill(at + 1196, 0, 4, on.stream)
    graph = device.end_capture(on.stream)
    assert graph.nodes == 4 and counted(device, before) == {}
    np.testing.assert_array_equal(on.get(at, x), x)
    before = now(device)
    for _ in range(3):
        device.run_graph(graph, on.stream)
    assert counted(device, before) == {"graph_launches": 3, "launches": 6, "d2d_bytes": 3600}
    want = np.full(300, 64, np.float32)
    want[-1] = 0
    np.testing.assert_array_equal(on.get(at, x), want)
    assert on.get(copied, x)[0] == 32


def test_a_graph_of_two_streams(device, on):
    x = np.ones(300, np.float32)
    a, b = on.put(x), on.put(x)
    c = on.put(np.zeros_like(x))
    second, forked, joined = device.stream(), device.event(), device.event()
    device.begin_capture(on.stream)
    device.record(forked, on.stream)
    device.wait(second, forked)
    on.launch("twice", a, np.int32(300), grid=(3, 1, 1))
    on.launch("twice", b, np.int32(300), grid=(3, 1, 1), stream=second)
    device.record(joined, second)
    device.wait(on.stream, joined)
    on.launch("add", a, b, c, np.int32(300), grid=(3, 1, 1))
    graph = device.end_capture(on.stream)
    for _ in range(2):
        device.run_graph(graph, on.stream)
    assert (on.get(c, x) == 8).all()


def test_transfers_in_a_graph_are_of_pinned_memory(device, on):
    staged = device.pinned(800).view(np.float32)
    x, y = staged[:100], staged[100:]
    at = on.put(np.zeros(100, np.float32))
    device.synchronize(on.stream)
    device.begin_capture(on.stream)
    device.upload(at, x, on.stream)
    on.launch("twice", at, np.int32(100))
    device.download(y, at, on.stream)
    graph = device.end_capture(on.stream)
    for k in (1, 5):
        x[:] = k
        device.run_graph(graph, on.stream)
        device.synchronize(on.stream)
        assert (y == 2 * k).all()


@pytest.mark.parametrize("what", ["alloc", "pinned", "synchronize", "upload", "download"])
def test_what_cannot_be_captured(device, on, what):
    at = on.put(np.zeros(100, np.float32))
    device.synchronize(on.stream)
    attempts = {
        "alloc": lambda: device.alloc(10),
        "pinned": lambda: device.pinned(10),
        "synchronize": lambda: device.synchronize(on.stream),
        "upload": lambda: device.upload(at, np.zeros(100, np.float32), on.stream),
        "download": lambda: device.download(np.zeros(100, np.float32), at, on.stream),
    }
    device.begin_capture(on.stream)
    try:
        with pytest.raises(InternalError):
            attempts[what]()
    finally:
        device.end_capture(on.stream)


# --- products ---------------------------------------------------------------------------------------------------------


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
    p = Product(*trans, m, n, k, alpha, beta, *leading, *strides, batch, np.dtype(dtype), compute, *conj)
    before = now(device)
    at = [on.put(x) for x in arrays]
    device.product(p, *at, on.stream)
    got = on.get(at[2], arrays[2])
    wide = np.complex128 if dtype[0] == "c" else np.float64
    want = alpha * (a.astype(wide) @ b.astype(wide)) + (beta * c.astype(wide) if beta else 0)
    limit = error or {"float16": 4e-3, "float64": 1e-13, "complex128": 1e-13}.get(dtype, 1e-5)
    np.testing.assert_allclose(got[:, :, :m].transpose(0, 2, 1), want, rtol=0, atol=limit * max(1, k) ** 0.5 * 4)
    assert np.isnan(got[:, :, m:]).all(), "between the columns"
    assert counted(device, before)["library_calls"] == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "float16"])
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
