"""What outlives what: memory that the device still reads, files that a forked process has in common with its parent,
calls of several threads, and signals between the parts of a call."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import symc as sc
from symc.errors import DeviceError, InputError
from symc.runtime.cache import process_folder
from symc.runtime.cuda import cupy_device, nvrtc, replay
from symc.runtime.cuda.arrays import DeviceArray
from symc.runtime.cuda.device import Resources, Signature
from symc.runtime.cuda.devices import context, devices_from
from symc.runtime.cuda.nvrtc import Cubin
from symc.testing import emulated_cuda
from symc.testing.interrupts import interrupted
from tests.cuda import fake_cupy
from tests.cuda.emulated import needs_compiler
from tests.cuda.fake_driver import faked, reason

X = sc.input("x", "float32", ("n",))
fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


@pytest.fixture
def gpu(monkeypatch):
    try:
        nvrtc.library(13)
    except InputError as e:
        pytest.skip(str(e))
    monkeypatch.setattr(fake_cupy, "state", fake_cupy.State())
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    fake_cupy.state.count = 2
    return cupy_device.CupyDevice


def in_child(work) -> int:
    """The status of a forked process that does something."""
    child = os.fork()
    if not child:
        status = 99
        try:
            status = work()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_pinned_memory_waits_for_the_device(monkeypatch):
    """Whoever gets it next writes into it at once."""
    if reason():
        pytest.skip(reason())
    with faked(), devices_from(cupy_device.CupyDevice):
        device, seen = context("cuda").device, []
        make = device.pinned
        monkeypatch.setattr(device, "pinned", lambda n: [seen.append(weakref.ref(a := make(n))), a][1])
        f = sc.compile(sc.sum(X), [X], device="cuda")
        result = f(np.ones(1 << 15, "float32"))
        result.check = None  # it has the memory
        del f
        gc.collect()
        assert seen and all(a() is not None for a in seen), "the device has not read it"
        context("cuda").synchronize()
        assert result.item() == 1 << 15 and not any(a() is not None for a in seen)


class Meanwhile:
    """A lock; something is done before it is taken (point 0), when it was given back (1), before it is taken for the
    second time (2), and so on: at one of these points."""

    def __init__(self, lock, point: int, work):
        self.lock, self.left, self.work, self.depth = lock, point, work, 0

    def now(self) -> None:
        if not self.depth:
            self.left -= 1
            if self.left == -1:
                self.work()

    def __enter__(self):
        self.now()
        self.lock.__enter__()
        self.depth += 1

    def __exit__(self, *error):
        self.depth -= 1
        self.lock.__exit__(*error)
        self.now()


@needs_compiler
@pytest.mark.parametrize("point", range(4))
def test_another_thread_calls_with_another_shape(monkeypatch, point):
    """What one call has found out about its shapes is not another's."""
    monkeypatch.setattr(replay, "WORTH", 1)
    with emulated_cuda():
        f = sc.compile(sc.sum(X * 2 + 1), [X], device="cuda")
        few, many = np.ones(5, "float32"), np.ones(9, "float32")
        for _ in range(6):
            f(many), f(few)
        for _ in range(3):
            for given in (few, many):
                other, where = many if given is few else few, context("cuda")
                lock = where.lock
                where.lock = Meanwhile(lock, point, lambda other=other: f(other))
                found = f(given)
                where.lock = lock
                assert [found.item(), f(given).item(), f(given).item()] == [3 * given.size] * 3


@needs_compiler
def test_results_go_where_no_vector_may_start(n=4096):
    with emulated_cuda():
        f = sc.compile([X * 2, X + 3], [X], device="cuda")
        for start in (0, 4, 8):
            rooms = [sc.device_array(np.zeros(n + 2, "float32")) for _ in range(2)]
            out = [DeviceArray(r.context, r.address + start, (n,), r.dtype, r.owner) for r in rooms]
            f(sc.device_array(np.ones(n, "float32")), out=out)
            assert out[0].numpy().tolist() == [2] * n and out[1].numpy().tolist() == [4] * n
            assert [r.numpy().sum() for r in rooms] == [2 * n, 4 * n], "nothing is written beside them"


def test_devices_load_at_once(gpu):
    """Two threads that load the same code write and read files of their own."""
    read = []
    module = fake_cupy.RawModule
    code = Cubin(b"the same", {"twice": Resources(1, 0, 0, 0)}, {"twice": (8, 4)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake_cupy, "RawModule", lambda path: [read.append(path), module(path=path)][1])
        for k in range(2):
            gpu(k)._loaded(code, [Signature("twice", (8, 4))])
    assert len(set(read)) == 2


@fork
def test_folders_stay_when_a_forked_process_ends():
    here = process_folder.process_folder("tests")
    parent = os.getpid()

    def child() -> int:
        process_folder._remove(here, parent)  # as at its exit
        return process_folder.process_folder("tests") == here

    assert in_child(child) == 0 and os.path.isdir(here)


@fork
def test_a_forked_process_is_told_that_it_has_no_gpu(gpu):
    with devices_from(gpu):
        device = context("cuda").device

        def child() -> int:
            try:
                device.alloc(8)
            except DeviceError as e:
                return 7 if "forked" in str(e) and "spawn" in e.help else 1
            return 2

        assert in_child(child) == 7
        assert device.alloc(8).nbytes == 8


def test_a_signal_leaves_no_half_of_a_replay(gpu):
    """Copies into the graph's places, the graph, and the copies back are one: functions of C, as CuPy's are, here
    functions of the C library that move bytes."""
    device = gpu(0)
    stream = device.stream()
    libc = ctypes.CDLL(None)
    state, staged = (ctypes.create_string_buffer(8) for _ in range(2))
    memcpy = libc.memcpy
    memcpy.argtypes, memcpy.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t], None

    fill = ctypes.CDLL(None).strcpy  # of two arguments: what is at the second goes where the first is
    fill.argtypes, fill.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    stream.handle = ctypes.addressof(new := ctypes.create_string_buffer(b"newnewn"))
    device._runtime = SimpleNamespace(memcpyAsync=memcpy, graphLaunch=fill, memcpyDeviceToDevice=0)
    graph = SimpleNamespace(graph=SimpleNamespace(graphExec=ctypes.addressof(staged)), done=())
    a, b = ctypes.addressof(state), ctypes.addressof(staged)
    ends, n = set(), 0
    while True:
        state.value = staged.value = b"oldoldo"
        stopped = interrupted(lambda: device.run_graph(graph, stream, [(b, a, 8)], [(a, b, 8)]), n)
        assert state.value == staged.value and state.value in (b"oldoldo", new.value), f"torn at point {n}"
        ends.add(state.value)
        n += 1
        if stopped is None:
            break
    assert len(ends) == 2 and n > 5
