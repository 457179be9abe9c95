"""Arrays of other packages as arguments, and arrays of a device given to others: who waits for whom, and how long
memory is kept. Streams and events of a GPU are noted here; the rest is real."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import symc as sc
from symc.errors import InputError
from symc.runtime.cuda import devices
from symc.runtime.cuda.arrays import DeviceArray, borrowed
from symc.runtime.cuda.devices import Context, context
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler
from tests.cuda.test_dlpack import Described, Lender, exported


class Noting:
    """A CUDA device of which only the order is there."""

    name, dlpack_device = "cuda:0", (2, 0)

    def __init__(self):
        self.noted: list[tuple] = []

    def stream(self):
        return SimpleNamespace(handle=77)

    def event(self):
        return SimpleNamespace()

    def record(self, event, stream):
        self.noted.append(("after", stream.handle))

    def wait(self, stream, event):
        self.noted.append(("waits", stream.handle))

    def synchronize(self, stream):
        self.noted.append(("sync", stream.handle))


@pytest.fixture
def gpu():
    return Context(Noting())


def device_array(where: Context, check=None) -> DeviceArray:
    return DeviceArray(where, 1 << 40, (2, 3), np.dtype("f4"), None, check)


# --- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream, theirs", [(None, 1), (1, 1), (2, 2), (99, 99)])
def test_a_consumer_s_stream_waits_for_ours_and_the_host_does_not(gpu, stream, theirs):
    device_array(gpu).__dlpack__(stream=stream, max_version=(1, 0))
    assert gpu.device.noted == [("after", 77), ("waits", theirs)]


def test_who_does_not_care_does_not_wait(gpu):
    device_array(gpu).__dlpack__(stream=-1)
    assert gpu.device.noted == []


def test_what_went_wrong_is_raised_before_anybody_gets_it(gpu):
    def check():
        raise IndexError("there is no row 9")

    with pytest.raises(IndexError, match="there is no row 9"):
        device_array(gpu, check).__dlpack__()


def test_our_stream_waits_for_that_of_a_description(gpu):
    found = borrowed(Described(**exported(1 << 40, (2, 3), np.dtype("f4"), 9)), gpu)
    assert gpu.device.noted == [("after", 9), ("waits", 77)] and found.address == 1 << 40
    borrowed(Described(**exported(1 << 40, (2, 3), np.dtype("f4"), None)), gpu)
    assert len(gpu.device.noted) == 2


def test_a_producer_is_told_our_stream(gpu):
    lender = Lender(np.zeros((2, 3), "f4"), (2, 0))
    borrowed(lender, gpu)
    assert lender.asked["stream"] == 77 and gpu.device.noted == []


# --- for how long -----------------------------------------------------------------------------------------------------


def test_memory_is_kept_until_the_work_is_done_that_may_read_it(gpu):
    lender = Lender(np.zeros((2, 3), "f4"), (2, 0))
    owner = weakref.ref(lender.owner)
    array = borrowed(lender, gpu)
    view = array.reshape(6)
    del lender, array
    gpu.synchronize()
    assert owner() is not None  # somebody has it
    del view
    gc.collect()
    assert owner() is not None  # the device may be at it
    gpu.synchronize()
    gc.collect()
    assert owner() is None


@pytest.mark.parametrize("shape, most", [((2, 3), devices.MOST_HELD), ((1 << 23,), 8)])
def test_what_is_kept_stays_little(gpu, shape, most):
    owners = []
    for _ in range(4 * most):
        lender = Lender(np.broadcast_to(np.float32(0), shape), (2, 0))
        owners.append(weakref.ref(lender.owner))
        borrowed(lender, gpu)
        del lender
        assert sum(o() is not None for o in owners) <= most + 1
    assert 1 < gpu.device.noted.count(("sync", 77)) <= 4


# --- on the emulated device -------------------------------------------------------------------------------------------


@needs_compiler
def test_arrays_of_others_are_read_where_they_lie_and_written_only_if_they_may_be():
    with emulated_cuda():
        a, where = np.from_dlpack(sc.device_array(np.arange(6, dtype="f4"))), context("cuda")
        readable, writable = (borrowed(Lender(a, readonly=r), where) for r in (True, False))
        assert readable.address == writable.address == a.ctypes.data
        assert (readable.readonly, writable.readonly, sc.device_array(a).readonly) == (True, False, False)
        x = sc.input("x", "float32", ("n",))
        y = sc.sort(x * 2)
        f = sc.compile([y, sc.sort(y)[::-1] * 3], [x], donate=[x], device="cuda")
        for given in (readable, writable):
            assert np.array_equal(f(given)[1].numpy(), 6 * np.arange(6, dtype="f4")[::-1])
            if given is readable:
                assert np.array_equal(a, np.arange(6))


@needs_compiler
def test_numpy_reads_the_memory_of_an_emulated_device():
    with emulated_cuda():
        x = sc.input("x", "float32", ("n",))
        y = sc.compile(x + 1, [x], device="cuda")(np.arange(4, dtype="f4"))
        z = np.from_dlpack(y)
        assert z.ctypes.data == y.address and np.array_equal(z, [1, 2, 3, 4])
        with pytest.raises(AttributeError, match="is the host's"):
            _ = y.__cuda_array_interface__
        with pytest.raises(InputError, match="an array on cuda:0 cannot be used on the emulated device"):
            borrowed(Lender(np.zeros(2, "f4"), (2, 0)), context("cuda"))
