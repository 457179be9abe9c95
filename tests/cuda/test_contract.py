"""What every device must do, real or emulated: memory, copies, launches, order, graphs, counters, errors; products are
in ``test_contract_products.py``.

On a machine with a GPU, ``SYMC_DEVICE=cuda:0`` runs the same tests on it too.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from symc.errors import InternalError
from symc.runtime.cuda.device import ALIGN, Signature
from tests.cuda.contract import On, counted, device_of, kinds, load, now


@pytest.fixture(scope="module", params=kinds())
def device(request):
    with device_of(request.param) as made:
        yield made


@pytest.fixture(scope="module")
def kernels(device):
    return load(device)


@pytest.fixture
def stream(device):
    return device.stream()


@pytest.fixture
def on(device, kernels, stream):
    made = On(device, kernels, stream)
    yield made
    device.synchronize(stream)


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
