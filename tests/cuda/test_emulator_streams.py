"""What an emulated device says of memory and of order: streams, events, captures, lifetimes, products, traffic."""

from __future__ import annotations

import numpy as np
import pytest

from symc.runtime.cuda.device import Product, Signature
from symc.runtime.emulator import EmulatedDevice, EmulationError
from symc.runtime.emulator.race_check import History, Past
from tests.cuda.emulated import Bench, needs_compiler, run

pytestmark = needs_compiler

N = 64
TEXT = r"""
extern "C" __global__ void twice(float* y, const float* x) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
extern "C" __global__ void add(float* y, const float* x) { y[threadIdx.x] += x[threadIdx.x]; }
"""
X = np.arange(N, dtype=np.float32)


class Two(Bench):
    """A device with two streams, and three arrays: x is written, y and z are not."""

    def __init__(self, **options):
        super().__init__(**options)
        self.other = self.device.stream()
        self.kernels = self.device.load(TEXT, [Signature("twice", (8, 8)), Signature("add", (8, 8))])
        self.x, self.y, self.z = self.put(X), self.room(X.nbytes), self.room(X.nbytes)
        self.device.synchronize(self.stream)

    def twice(self, y, x, stream=None):
        self.launch(self.kernels["twice"], y, x, block=N, stream=stream, reads=[(x, X.nbytes)], writes=[(y, X.nbytes)])

    def add(self, y, x, stream=None):
        self.launch(self.kernels["add"], y, x, block=N, stream=stream, reads=[(x, X.nbytes), (y, X.nbytes)],
                    writes=[(y, X.nbytes)])

    def after(self, stream, other):
        event = self.device.event()
        self.device.record(event, other)
        self.device.wait(stream, event)


@pytest.fixture
def on():
    return Two()


def refused(kind: str, *words: str):
    return pytest.raises(EmulationError, match=f"{kind}: " + "".join(f"(?s:.*){w}" for w in words))


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_streams_in_order(seed):
    on = Two(seed=seed)
    for _ in range(5):
        on.twice(on.y, on.x)
        on.after(on.other, on.stream)
        on.twice(on.z, on.y, on.other)
        on.after(on.stream, on.other)
        on.add(on.y, on.z)
    np.testing.assert_array_equal(on.get(on.y, X), 6 * X)


def test_what_was_written_is_read_elsewhere(on):
    on.twice(on.y, on.x)
    with refused("ORDER", "twice on stream 2 reads memory that twice on stream 1 writes"):
        on.twice(on.z, on.y, on.other)


def test_what_is_read_is_written_elsewhere(on):
    on.twice(on.y, on.x)
    with refused("ORDER", "a fill on stream 2 writes memory that twice on stream 1 reads"):
        on.device.fill(on.x, 0, 4, on.other)


def test_an_event_from_before(on):
    event = on.device.event()
    on.device.record(event, on.stream)
    on.twice(on.y, on.x)
    on.device.wait(on.other, event)
    with refused("ORDER"):
        on.twice(on.z, on.y, on.other)


def test_the_host_orders_streams(on):
    on.twice(on.y, on.x)
    on.device.synchronize(on.stream)
    on.twice(on.z, on.y, on.other)
    on.device.synchronize(on.other)
    np.testing.assert_array_equal(on.get(on.z, X), 4 * X)


def test_waiting_for_one_stream_is_not_waiting_for_another(on):
    on.twice(on.y, on.x)
    on.device.synchronize(on.other)
    with refused("ORDER"):
        on.twice(on.z, on.y, on.other)


def test_both_read(on):
    on.twice(on.y, on.x)
    on.twice(on.z, on.x, on.other)
    on.device.synchronize(on.stream)
    np.testing.assert_array_equal(on.get(on.y, X), 2 * X)


def test_parts_of_memory_are_different(on):
    half = X.nbytes // 2
    on.device.fill(on.x, 0, half, on.stream)
    on.device.fill(on.x + half, 0, half, on.other)
    with refused("ORDER"):
        on.device.fill(on.x + half - 1, 0, 1, on.other)


def test_what_was_asked_for_waits(on):
    out = X.copy()
    on.device.download(out, on.x, on.stream)
    assert np.isnan(out).all()
    on.device.synchronize(on.stream)
    np.testing.assert_array_equal(out, X)


def test_pinned_memory_is_read_late_and_other_memory_at_once(on):
    pinned = on.device.pinned(X.nbytes).view(np.float32)
    plain = X.copy()
    pinned[:] = X
    on.device.upload(on.y, plain, on.stream)
    on.device.upload(on.z, pinned, on.stream)
    plain[:] = pinned[:] = -1
    np.testing.assert_array_equal(on.get(on.y, X), X)
    np.testing.assert_array_equal(on.get(on.z, X), 0 * X - 1)


def test_pinned_memory_is_written_while_it_is_read(on):
    pinned = on.device.pinned(X.nbytes)
    on.device.upload(on.y, pinned, on.stream)
    with refused("ORDER", "a download on stream 2 writes memory that an upload on stream 1 reads"):
        on.device.download(pinned, on.x, on.other)


def test_many_works_without_waiting(on):
    for _ in range(3000):
        on.device.fill(on.y, 1, 4, on.stream)
    assert len(on.device.pending) < 2000


def test_time_between_events(on):
    start, end = on.device.event(), on.device.event()
    on.device.record(start, on.stream)
    on.twice(on.y, on.x)
    on.device.record(end, on.stream)
    with refused("ORDER", "before both have happened"):
        on.device.elapsed(start, end)
    on.device.synchronize(on.stream)
    assert on.device.elapsed(start, end) > 0


def test_history_of_ranges():
    """Any cuts of ranges: as if each byte were kept alone."""
    rng = np.random.default_rng(3)
    history, last = History(), {}
    for count in range(1, 400):
        lo = int(rng.integers(0, 60))
        n, writes, stream = int(rng.integers(0, 9)), bool(rng.integers(0, 2)), int(rng.integers(0, 3))
        clock = {s: max(0, count - 1 - int(rng.integers(0, 60))) for s in range(3)}
        met = [last.get(b, ((stream, 0), {})) for b in range(lo, lo + n)]
        before = [w for w, _ in met] + [reader for _, r in met if writes for reader in r.items()]
        wrong = any(s != stream and clock[s] < c for s, c in before)
        span = [(lo, n)]
        try:
            history.add(Past(stream, count, "w"), clock, () if writes else span, span if writes else ())
            assert not wrong
        except EmulationError:
            assert wrong
            history, last = History(), {}
            continue
        for b in range(lo, lo + n):
            w, r = last.get(b, ((stream, 0), {}))
            last[b] = ((stream, count), {}) if writes else (w, {**r, stream: count})


# --- captures ---------------------------------------------------------------------------------------------------------


def _captured(on: Two):
    on.device.begin_capture(on.stream)
    on.twice(on.y, on.x)
    on.after(on.other, on.stream)
    on.twice(on.z, on.x, on.other)
    on.after(on.stream, on.other)
    on.add(on.y, on.z)
    return on.device.end_capture(on.stream)


@pytest.mark.parametrize("checked", [True, False])
def test_a_graph_runs_again_and_again(checked):
    on = Two(checked=checked)
    before = on.device.counters.launches
    graph = _captured(on)
    assert graph.nodes == 3 and on.device.counters.launches == before
    for k in range(3):
        on.device.upload(on.x, X + k, on.stream)
        on.device.run_graph(graph, on.stream)
        np.testing.assert_array_equal(on.get(on.y, X), 4 * (X + k))
    assert on.device.counters.launches == before + 9 and on.device.counters.graph_launches == 3


def test_a_graph_is_ordered_with_what_is_beside_it(on):
    graph = _captured(on)
    on.device.fill(on.z, 0, 4, on.other)
    with refused("ORDER"):
        on.device.run_graph(graph, on.stream)


def test_streams_inside_of_a_graph_are_ordered(on):
    on.device.begin_capture(on.stream)
    on.after(on.other, on.stream)
    on.twice(on.y, on.x)
    on.add(on.y, on.x, on.other)
    on.after(on.stream, on.other)
    graph = on.device.end_capture(on.stream)
    with refused("ORDER"):
        on.device.run_graph(graph, on.stream)


def test_a_graph_outlives_its_memory(on):
    graph = _captured(on)
    on.blocks.pop(0)
    with refused("FREED", "given back"):
        on.device.run_graph(graph, on.stream)


def test_what_a_capture_forbids(on):
    plain, pinned = X.copy(), on.device.pinned(X.nbytes)
    on.device.begin_capture(on.stream)
    for forbidden in (lambda: on.device.alloc(4), lambda: on.device.pinned(4),
                      lambda: on.device.upload(on.x, plain, on.stream),
                      lambda: on.device.download(plain, on.x, on.stream),
                      lambda: on.device.synchronize(on.stream), lambda: on.device.synchronize(on.other),
                      lambda: on.device.begin_capture(on.other), lambda: on.device.end_capture(on.other)):
        with refused("CAPTURE"):
            forbidden()
    on.device.upload(on.x, pinned, on.stream)
    assert on.device.end_capture(on.stream).nodes == 1


def test_a_forked_stream_joins(on):
    on.device.begin_capture(on.stream)
    on.after(on.other, on.stream)
    on.twice(on.y, on.x, on.other)
    with refused("CAPTURE", "twice was captured on stream 2, which does not join"):
        on.device.end_capture(on.stream)
    on.twice(on.y, on.x, on.other)  # and nothing is captured any more
    on.device.synchronize(on.other)


def test_events_from_outside_of_a_capture(on):
    event = on.device.event()
    on.device.record(event, on.other)
    on.device.begin_capture(on.stream)
    with refused("CAPTURE", "from outside"):
        on.device.wait(on.stream, event)
    inside = on.device.event()
    on.device.record(inside, on.stream)
    on.device.end_capture(on.stream)
    with refused("CAPTURE", "has ended"):
        on.device.wait(on.other, inside)


# --- memory -----------------------------------------------------------------------------------------------------------


def test_memory_that_was_given_back(on):
    x = on.put(X)
    del on.blocks[-1]
    on.device.synchronize(on.stream)
    with refused("FREED"):
        on.twice(on.y, x)
    with refused("FREED"):
        on.device.copy(on.y, x, 4, on.stream)


def test_memory_is_given_back_after_what_was_asked_for(on):
    x = on.put(X)
    on.twice(on.y, x)
    del on.blocks[-1]
    np.testing.assert_array_equal(on.get(on.y, X), 2 * X)


def test_a_kernel_is_given_memory_that_is_gone(on):
    x = on.put(X)
    on.device.synchronize(on.stream)
    del on.blocks[-1]
    on.launch(on.kernels["twice"], on.y, x, block=N)
    with refused("FREED", "twice: thread 0 "):
        on.device.synchronize(on.stream)


@pytest.mark.parametrize("wrong", ["past", "gap", "before"])
def test_ranges_outside_of_memory(on, wrong):
    address = {"past": on.x + 4, "gap": on.x + X.nbytes + 64, "before": 4096}[wrong]
    with refused("BOUNDS"):
        on.device.upload(address, X, on.stream)
    with refused("BOUNDS"):
        on.device.fill(address, 0, X.nbytes, on.stream)


def test_memory_of_another_device(on):
    there = Two()
    on.launch(on.kernels["twice"], on.y, there.x, block=N)
    with refused("BOUNDS", "no memory of the device"):
        on.device.synchronize(on.stream)


def test_numbers_that_nobody_wrote(on):
    on.device.copy(on.z, on.y, X.nbytes, on.stream)
    on.device.download(X.copy(), on.z, on.stream)
    with refused("UNWRITTEN", "a download"):
        on.device.synchronize(on.stream)


def test_what_is_only_written_is_not_known_before(on):
    """Memory may hold an old array where a launch writes a new one."""
    on.device.fill(on.y, 0, X.nbytes, on.stream)
    x = X.nbytes
    on.launch(on.kernels["add"], on.y, on.x, block=N, reads=[(on.x, x)], writes=[(on.y, x)])
    with refused("UNWRITTEN", "add: thread 0"):
        on.device.synchronize(on.stream)


def test_memory_that_a_launch_does_not_declare(on):
    on.launch(on.kernels["twice"], on.y, on.x, block=N, reads=[(on.x, X.nbytes - 4)], writes=[(on.y, X.nbytes)])
    with refused("BOUNDS", "thread 63"):
        on.device.synchronize(on.stream)


def test_memory_is_limited():
    device = EmulatedDevice(total_bytes=1 << 20)
    kept = device.alloc(1 << 19)
    with pytest.raises(MemoryError, match="do not fit"):
        device.alloc(1 << 20)
    del kept
    assert device.alloc(1 << 20).nbytes == 1 << 20


def test_memory_is_used_again():
    device = EmulatedDevice(total_bytes=1 << 20, checked=False)
    places = {device.alloc(1 << 18).address for _ in range(50)}
    assert len(places) == 1


# --- launches and texts -----------------------------------------------------------------------------------------------


def test_parameters_of_other_widths():
    device = EmulatedDevice()
    with refused("LAUNCH", r"twice takes parameters of \[8, 8\] bytes"):
        device.load(TEXT, [Signature("twice", (8, 4))])


def test_two_parameters_for_what_is_written():
    text = """extern "C" __global__ void __launch_bounds__(64) f(float *y, const float *QUALIFIER x, long long n) {
      y[threadIdx.x] = x[threadIdx.x] + n; }"""
    on = Bench()
    x = on.put(X)
    span = [(x, X.nbytes)]
    for qualifier in "", "__restrict__":
        kernel = on.kernel(text.replace("QUALIFIER", qualifier), "f", x, x, np.int64(1))
        if not qualifier:
            on.launch(kernel, x, x, np.int64(1), block=N, reads=span, writes=span)
            continue
        with refused("LAUNCH", r"f writes memory that parameters \[0, 1\] point to, and \[1\] are declared"):
            on.launch(kernel, x, x, np.int64(1), block=N, reads=span, writes=span)
    np.testing.assert_array_equal(on.get(x, X), X + 1)


def test_a_text_that_does_not_compile():
    with pytest.raises(Exception, match=r"kernel.cu:2.*no_such_function"):
        EmulatedDevice().load('extern "C" __global__ void f() {\nno_such_function(); }', [Signature("f", ())])


def test_an_error_names_both_lines():
    text = """extern "C" __global__ void f(int* y) {
      __shared__ int s[32];
      s[threadIdx.x] = 1;
      y[threadIdx.x] = s[31 - threadIdx.x];
    }"""
    with pytest.raises(EmulationError) as error:
        run(text, "f", [(np.zeros(32, np.int32), "w")], block=32, order=5)
    assert error.value.kernel == "f" and error.value.block == 0 and error.value.thread is not None
    assert "kernel.cu:4         y[threadIdx.x] = s[31 - threadIdx.x];" in str(error.value)


# --- products ---------------------------------------------------------------------------------------------------------


def _product(**changes) -> Product:
    base = dict(trans_a=False, trans_b=False, m=4, n=3, k=2, alpha=1.0, beta=0.0, lda=4, ldb=2, ldc=4, stride_a=0,
                stride_b=0, stride_c=0, batch=1, dtype=np.dtype(np.float32))
    return Product(**{**base, **changes})


def test_a_product_does_not_read_what_it_replaces(on):
    on.device.product(_product(), on.x, on.x + 64, on.y, on.stream)
    a, b = X[:8].reshape(2, 4).T, X[16:22].reshape(3, 2).T
    np.testing.assert_array_equal(on.get(on.y, X[:12]), (a @ b).T.ravel())
    on.device.product(_product(beta=1.0), on.x, on.x + 64, on.z, on.stream)
    with refused("UNWRITTEN", "operand c of a product"):
        on.device.synchronize(on.stream)


@pytest.mark.parametrize("changes, word", [
    ({"lda": 3}, "lda"), ({"ldb": 1}, "ldb"), ({"ldc": 3}, "ldc"), ({"trans_a": True, "lda": 1}, "lda"),
    ({"m": 0}, "size"),
    ({"batch": 2, "stride_a": 8, "stride_b": 6, "stride_c": 6}, "overlap"), ({"compute": "quick"}, "quick"),
])
def test_products_that_are_refused(on, changes, word):
    with refused("PRODUCT", word):
        on.device.product(_product(**changes), on.x, on.x + 64, on.y, on.stream)


def test_a_product_into_its_operand(on):
    with refused("PRODUCT", "c overlaps b"):
        on.device.product(_product(), on.x, on.x + 64, on.x + 80, on.stream)


def test_products_are_ordered(on):
    on.twice(on.y, on.x)
    with refused("ORDER", "a product on stream 2 reads"):
        on.device.product(_product(), on.y, on.x, on.z, on.other)


@pytest.mark.parametrize("compute, error", [("highest", 0.0), ("tf32", 2.0**-11), ("bf16", 2.0**-8)])
def test_products_of_lower_precision(on, compute, error):
    ones = np.ones(8, np.float32)
    ones[:4] += np.float32(error) * np.float32(1.0 + 2.0**-4)  # just more than half of the last place
    a, b = on.put(ones), on.put(np.array([1, 0] * 3, np.float32))
    on.device.product(_product(compute=compute), a, b, on.y, on.stream)
    want = 1 + 2 * error
    np.testing.assert_array_equal(on.get(on.y, X[:12]), np.full(12, want, np.float32))


# --- traffic ----------------------------------------------------------------------------------------------------------

COPIES = r"""
extern "C" __global__ void wide(float4* y, const float4* x) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void apart(float* y, const float* x) { y[threadIdx.x] = x[8 * threadIdx.x]; }
extern "C" __global__ void banks(float* y, const float* x) {
  __shared__ float s[32 * 32];
  s[threadIdx.x * 32] = x[threadIdx.x];
  y[threadIdx.x] = s[threadIdx.x * 32];
}
"""


def _traffic(name: str, x: np.ndarray, y: np.ndarray):
    on = Bench()
    a, b = on.put(x), on.room(y.nbytes)
    kernel = on.kernel(COPIES, name, b, a, entries=["wide", "apart", "banks"])
    with on.device.measuring() as launches:
        on.launch(kernel, b, a, block=32, reads=[(a, x.nbytes)], writes=[(b, y.nbytes)])
    (found,) = launches
    assert found.kernel == name
    return found, (a, x.nbytes), (b, y.nbytes)


def test_traffic_of_wide_accesses():
    x = np.ones(128, np.float32)
    found, a, b = _traffic("wide", x, x)
    assert found.loads == {16: 32} and found.stores == {16: 32} and found.efficiency == 1.0
    assert found.read == {a: x.nbytes} and found.written == {b: x.nbytes}
    assert found.bytes_read == found.bytes_written == x.nbytes


def test_traffic_of_scattered_accesses():
    found, _, _ = _traffic("apart", np.ones(256, np.float32), np.ones(32, np.float32))
    assert found.loads == {4: 32} and found.efficiency == 256 / (32 * (32 + 4))


def test_bank_conflicts():
    found, _, _ = _traffic("banks", np.ones(32, np.float32), np.ones(32, np.float32))
    assert found.shared_loads == found.shared_stores == 32 and found.bank_conflicts == 62


# --- arrays that are too large to be filled ---------------------------------------------------------------------------

HUGE = r"""
extern "C" __global__ void add(float* y, const float* x, long long n) {
  const INDEX i = (INDEX)blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}
"""


@pytest.mark.parametrize("index, kind", [("long long", None), ("int", "UNDEFINED")])
def test_a_sample_of_the_blocks_of_a_huge_launch(index, kind):
    n = 3 * 2**30 + 5
    on = Bench(total_bytes=2**35)
    x, y = on.room(4 * n), on.room(4 * n)
    on.device.assume_written(x, 4 * n)
    kernel = on.kernel(HUGE.replace("INDEX", index), "add", y, x, np.int64(n))
    with on.device.sampling(7):
        on.launch(kernel, y, x, np.int64(n), grid=-(-n // 256), block=256, reads=[(x, 4 * n)], writes=[(y, 4 * n)])
        if kind is None:
            np.testing.assert_array_equal(on.get(y + 4 * (n - 5), np.empty(5, np.float32)), 1.0)
        else:
            with refused(kind):
                on.device.synchronize(on.stream)
    with refused("UNWRITTEN"):
        on.get(y + 4096, np.empty(5, np.float32))
