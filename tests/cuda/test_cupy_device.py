"""The device of CuPy, without a GPU: that CuPy has what it uses, and what it asks CuPy for, told by a fake of it."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import threading

import numpy as np
import pytest

from symc.errors import InputError, InternalError
from symc.runtime.cuda import cupy_device, nvrtc
from symc.runtime.cuda.device import Counters, Signature

TWICE = """extern "C" __global__ __launch_bounds__(128) void twice(float *x, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) x[i] = 2.0f * x[i];
}"""


@pytest.fixture(scope="module")
def cupy():
    try:
        return importlib.import_module("cupy")
    except ImportError:
        pytest.skip("CuPy is not installed: pip install 'cupy-cuda13x>=14.2,<15'")


def find(top, path: str):
    for name in path.split(".")[1:]:
        top = getattr(top, name)
    return top


def arguments(found) -> list[str]:
    """The names of the arguments of a function of CuPy: of one compiled by Cython, from the first line of its
    documentation, which has types as well."""
    if inspect.isfunction(found):
        return list(inspect.signature(found).parameters)
    line = found.__doc__.strip().split("\n")[0]
    inside = re.search(r"\((.*)\)", line)[1]
    return [re.split(r"\s", x.split("=")[0].strip())[-1] for x in inside.split(",")
            if x.strip() not in ("", "*")]


def used() -> list[str]:
    """What the source says: ``self._runtime.x``, ``self._driver.x``, ``self._cuda.x``, and methods of those."""
    text = inspect.getsource(cupy_device)
    found = {f"cupy.cuda.{where}.{name}" for where, name in re.findall(
        r"(?:self\._|\b)(runtime|driver)\.(\w+)[(,]", text) if not name.isupper()}
    found |= {f"cupy.cuda.{name}" for name in re.findall(r"self\._cuda\.(\w+)\(", text)}
    found |= {f"cupy.{name}" for name in re.findall(r"self\.cupy\.(\w+)\(", text)}
    found |= {f"cupy.cuda.Stream.{name}" for name in re.findall(r"stream\.stream\.(\w+)\(", text)}
    found |= {f"cupy.cuda.graph.Graph.{name}" for name in re.findall(r"graph\.(\w+)\(stream", text)}
    found |= {f"cupy.RawModule.{name}" for name in re.findall(r"module\.(\w+)\(", text)}
    return sorted(name for name in found if not name.endswith((".Stream", ".Event")) and "memcpyD" not in name
                  and "memcpyH" not in name)


def test_everything_that_is_used_is_found():
    assert len(used()) == 21 and {"cupy.cuda.runtime.memcpyAsync", "cupy.cuda.Stream.begin_capture"} < {*used()}


@pytest.mark.parametrize("path", used())
def test_cupy_takes_what_its_fake_takes(cupy, path):
    """By their names, as CuPy's own documentation lists them."""
    from tests.cuda import fake_cupy

    importlib.import_module("cupy.cuda.graph")
    assert arguments(find(cupy, path)) == list(inspect.signature(find(fake_cupy, path)).parameters)


def test_what_is_not_a_function(cupy):
    runtime, driver = cupy.cuda.runtime, cupy.cuda.driver
    assert (runtime.memcpyHostToDevice, runtime.memcpyDeviceToHost, runtime.memcpyDeviceToDevice) == (1, 2, 3)
    assert hasattr(cupy.RawKernel, "max_dynamic_shared_size_bytes") and hasattr(cupy.RawKernel, "kernel")
    assert issubclass(runtime.CUDARuntimeError, RuntimeError) and issubclass(driver.CUDADriverError, RuntimeError)
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    assert arguments(cupy.cuda.Stream.__init__)[:3] == ["self", "null", "non_blocking"]
    assert hasattr(cupy.cuda.Stream, "__enter__")
    assert hasattr(importlib.import_module("cupy.cuda.graph").Graph, "graphExec")
    for attribute in (cupy.cuda.MemoryPointer.ptr, cupy.cuda.function.Function.ptr, cupy.cuda.PinnedMemoryPointer.ptr):
        assert attribute is not None


def test_without_a_gpu_the_error_says_so(cupy):
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        with pytest.raises(InputError, match=r"no NVIDIA GPU with a driver that CuPy 14.*works with") as caught:
            cupy_device.CupyDevice(0)
        assert "device='cpu' works everywhere" in str(caught.value)


# --- on a fake --------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake(monkeypatch):
    from tests.cuda import fake_cupy

    monkeypatch.setattr(fake_cupy, "state", fake_cupy.State())
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    return fake_cupy


@pytest.fixture
def device(fake):
    try:
        nvrtc.library(13)
    except InputError as e:
        pytest.skip(str(e))
    return cupy_device.CupyDevice(0)


def launch(device, kernel, at: int, n: int, stream, grid=(1, 1, 1), block=128, shared=0) -> None:
    cells = np.array([at, n], np.int64)
    pointers = cells.ctypes.data + 8 * np.arange(2)
    device.launch(kernel, grid, block, shared, pointers.ctypes.data, stream)


def uploaded(device, stream, x):
    memory = device.alloc(x.nbytes)
    device.upload(memory.address, x, stream)
    return memory


def test_what_is_missing_is_said(fake, monkeypatch):
    fake.state.count = 0
    with pytest.raises(InputError, match="no NVIDIA GPU"):
        cupy_device.CupyDevice(0)
    fake.state.count = 2
    with pytest.raises(InputError, match="there are 2 GPUs"):
        cupy_device.CupyDevice(2)
    monkeypatch.setattr(fake, "__version__", "13.4.0")
    with pytest.raises(InputError, match=r"CuPy 13\.4\.0 is older than 14"):
        cupy_device.CupyDevice(0)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(InputError, match="CuPy is not installed") as caught:
        cupy_device.CupyDevice(1)
    assert "pip install 'symc[cuda]'" in str(caught.value) and "'cuda:1'" in str(caught.value)


def test_facts(device):
    p = device.properties
    assert (p.name, p.arch, p.multiprocessors, p.shared_bytes) == ("NVIDIA Fake", "sm_90", 4, 232448)
    assert (device.name, device.dlpack_device) == ("cuda:0", (2, 0))


def test_a_kernel_runs_and_is_counted(device):
    stream = device.stream()
    x = np.arange(100, dtype=np.float32)
    memory = uploaded(device, stream, x)
    kernel = device.load(TWICE, [Signature("twice", (8, 4))])["twice"]
    launch(device, kernel, memory.address, 100, stream)
    out = np.empty_like(x)
    device.download(out, memory.address, stream)
    device.synchronize(stream)
    np.testing.assert_array_equal(out, 2 * x)
    assert device.counters == Counters(launches=1, h2d_bytes=400, d2h_bytes=400, allocations=1, syncs=1)
    assert 0 < kernel.resources.registers < 64


def test_a_graph_counts_what_it_does(device):
    stream = device.stream()
    memory = uploaded(device, stream, np.ones(10, np.float32))
    kernel = device.load(TWICE, [Signature("twice", (8, 4))])["twice"]
    device.begin_capture(stream)
    launch(device, kernel, memory.address, 10, stream)
    device.fill(memory.address, 0, 4, stream)
    with pytest.raises(InternalError, match="waiting for a stream cannot be part of a graph"):
        device.synchronize(stream)
    with pytest.raises(InternalError, match="not pinned"):
        device.upload(memory.address, np.ones(10, np.float32), stream)
    graph = device.end_capture(stream)
    assert graph.nodes == 2 and graph.graph.uploaded and device.counters.launches == 0
    device.run_graph(graph, stream)
    device.run_graph(graph, stream)
    out = np.empty(10, np.float32)
    device.download(out, memory.address, stream)
    np.testing.assert_array_equal(out, [0, *[4] * 9])
    assert (device.counters.launches, device.counters.graph_launches) == (2, 2)


def test_pinned_memory_is_known_by_its_views(device):
    stream, memory = device.stream(), device.alloc(40)
    staged = device.pinned(80).view(np.float32)
    staged[:] = np.arange(20)
    half = staged[10:]
    device.begin_capture(stream)
    device.upload(memory.address, half, stream)
    graph = device.end_capture(stream)
    device.run_graph(graph, stream)
    device.download(staged[:10], memory.address, stream)
    np.testing.assert_array_equal(staged[:10], np.arange(10, 20))
    del staged, half
    assert not device._pinned


def test_the_users_device_stays_current(fake):
    fake.state.count, fake.state.current = 2, 1
    fake.state.contexts.add(1)
    device = cupy_device.CupyDevice(0)
    fake.state.log.clear()
    device.alloc(10)
    assert fake.state.current == 1 and fake.state.log == [("setDevice", 0), ("setDevice", 1)]


def test_a_new_thread_has_a_context(device, fake):
    stream, fake.state.contexts = device.stream(), set()
    errors = []

    def work():
        try:
            device.fill(device.alloc(10).address, 0, 10, stream)
        except AssertionError as e:
            errors.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors


def test_much_shared_memory_is_asked_for_once(device, fake):
    stream, kernel = device.stream(), device.load(TWICE, [Signature("twice", (8, 4))])["twice"]
    memory = uploaded(device, stream, np.ones(10, np.float32))
    launch(device, kernel, memory.address, 10, stream, shared=48 * 1024)
    assert not fake.state.attributes
    launch(device, kernel, memory.address, 10, stream, shared=100_000)
    assert fake.state.attributes == {"twice": 100_000}
    with pytest.raises(InternalError, match="wants 300000 bytes of shared memory"):
        launch(device, kernel, memory.address, 10, stream, shared=300_000)
    with pytest.raises(InternalError, match="2048 threads"):
        launch(device, kernel, memory.address, 10, stream, block=2048)


def test_what_went_wrong_on_the_gpu_is_raised_where_it_is_waited_for(device, fake):
    stream = device.stream()
    fake.state.broken = True
    with pytest.raises(InternalError, match="work on cuda:0 failed: cudaErrorIllegalAddress"):
        device.synchronize(stream)


def test_memory_is_taken_on_the_first_stream(device):
    first, second = device.stream(), device.stream()
    assert first.stream is device._home and second.stream is not device._home
    with pytest.raises(MemoryError):
        device.alloc(2**50)
