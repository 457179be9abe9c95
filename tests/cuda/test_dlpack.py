"""Memory lent to and taken from NumPy, PyTorch and descriptions of CUDA arrays: as it lies, for as long as it must."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symc.errors import InputError
from symc.ir.dtypes import ARITHMETIC
from symc.ir.types import DTYPES
from symc.runtime.cuda import dlpack
from symc.runtime.cuda.dlpack import CPU, CUDA, MANAGED, PINNED, export, exported, imported, is_versioned

HOST, DEVICE = (CPU, 0), (CUDA, 0)
SHAPES = [(), (3,), (2, 3), (1, 5, 1), (0,), (3, 0, 2)]
#: The dtypes that NumPy lends: its own.
OWN = [n for n, d in DTYPES.items() if d in ARITHMETIC]
NAMES = {True: "dltensor_versioned", False: "dltensor"}


class Owner:
    """What memory belongs to."""

    def __init__(self, array: np.ndarray):
        self.array = array


class Lender:
    """An array that is lent as symc lends its own. ``asked``: how."""

    def __init__(self, array: np.ndarray, device=HOST, readonly: bool = False, plant=lambda managed: None):
        self.owner, self.device, self.readonly, self.plant = Owner(array), device, readonly, plant
        self.asked: dict = {}

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked = dict(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        a, versioned = self.owner.array, is_versioned(max_version)
        capsule = export(a.ctypes.data, a.shape, a.dtype, self.device, self.owner, versioned, self.readonly)
        self.plant(dlpack._struct(capsule, NAMES[versioned].encode()))
        return capsule


class Described:
    """An object with the other interface."""

    def __init__(self, **said):
        self.__cuda_array_interface__ = said


def cuda_array(**changes):
    return Described(**{**exported(1 << 40, (2, 3), np.dtype("f4"), 7), **changes})


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(DTYPES[dtype])


# --- round trips ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", OWN)
def test_numpy_takes_every_array_where_it_lies(dtype, shape, versioned):
    a = numbers(dtype, shape)
    lender = Lender(a)
    whole = lender.__dlpack__
    lender.__class__ = type("Old", (Lender,), {} if versioned else {"__dlpack__": lambda self, **more: whole()})
    b = np.from_dlpack(lender)
    assert b.dtype == a.dtype and b.shape == shape and np.array_equal(a, b)
    assert b.size == 0 or b.ctypes.data == a.ctypes.data
    assert is_versioned(lender.asked["max_version"]) == versioned


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", OWN)
def test_arrays_of_numpy_are_taken_where_they_lie(dtype, shape):
    a = numbers(dtype, shape)
    found = imported(a, None, HOST)
    assert (found.shape, found.dtype, found.readonly, found.device, found.stream) == (shape, a.dtype, False, HOST, None)
    assert found.dtype is DTYPES[dtype] and (a.size == 0 or found.address == a.ctypes.data)


@pytest.mark.parametrize("device", [(CUDA, 0), (CUDA, 3), (PINNED, 0), (MANAGED, 1), HOST])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_device_and_the_address_are_those_that_were_said(device, shape):
    lender = Lender(numbers("f32", shape), device)
    lender.owner.array = type("Elsewhere", (), dict(ctypes=type("C", (), dict(data=1 << 45)), shape=shape,
                                                    dtype=np.dtype("f4")))  # no host has memory there
    found = imported(lender, 5, device)
    assert (found.address, found.shape, found.device) == (1 << 45, shape, device)


def test_a_capsule_is_fresh_once():
    a = numbers("i32", (4,))
    for versioned, name in NAMES.items():
        capsule = export(a.ctypes.data, a.shape, a.dtype, HOST, a, versioned)
        assert f'"{name}"' in repr(capsule)
        twice = type("Twice", (Lender,), {"__dlpack__": lambda self, capsule=capsule, **more: capsule})(a)
        first = imported(twice, None, HOST)
        assert f'"used_{name}"' in repr(capsule) and first.address == a.ctypes.data
        with pytest.raises(InputError, match="not a fresh DLPack capsule"):
            imported(twice, None, HOST)


@given(st.lists(st.integers(0, 4), max_size=4), st.randoms(use_true_random=False), st.sampled_from(OWN))
def test_views_are_taken_exactly_if_they_are_contiguous(shape, random, dtype):
    a = numbers(dtype, tuple(shape))
    for _ in range(2):
        a = a.transpose(random.sample(range(a.ndim), a.ndim))
        a = a[(*(slice(random.randint(0, 2), None, random.choice([1, 1, 2, -1])) for _ in a.shape), ...)]
    if a.flags.c_contiguous:
        found = imported(a, None, HOST)
        assert found.shape == a.shape and (a.size == 0 or found.address == a.ctypes.data)
    else:
        with pytest.raises(InputError, match="is not contiguous"):
            imported(a, None, HOST)


def test_an_offset_is_part_of_the_address():
    def move(managed):
        managed.tensor.byte_offset = 24

    a = numbers("f64", (4,))
    assert imported(Lender(a, plant=move), None, HOST).address == a.ctypes.data + 24


# --- what may be written ----------------------------------------------------------------------------------------------


def test_read_only_goes_both_ways():
    a = numbers("f32", (3,))
    assert not np.from_dlpack(Lender(a, readonly=True)).flags.writeable
    assert np.from_dlpack(Lender(a)).flags.writeable
    assert imported(Lender(a, readonly=True), None, HOST).readonly and not imported(Lender(a), None, HOST).readonly
    a.flags.writeable = False
    assert imported(a, None, HOST).readonly


def test_what_must_not_be_written_is_lent_with_a_version_only():
    a = numbers("f32", (3,))
    with pytest.raises(BufferError, match=r"pass max_version=\(1, 0\)"):
        export(a.ctypes.data, a.shape, a.dtype, HOST, a, False, readonly=True)
    assert [is_versioned(v) for v in (None, (0, 8), (1, 0), (1, 2), (2, 0))] == [False, False, True, True, True]


# --- for how long -----------------------------------------------------------------------------------------------------


def lend(versioned: bool = True):
    """A capsule, and how to ask whether its owner is there."""
    owner = Owner(numbers("f32", (4,)))
    a = owner.array
    return export(a.ctypes.data, a.shape, a.dtype, HOST, owner, versioned), weakref.ref(owner)


@pytest.mark.parametrize("versioned", [True, False])
def test_the_owner_goes_with_a_capsule_that_nobody_takes(versioned):
    capsule, owner = lend(versioned)
    assert owner() is not None
    del capsule
    assert owner() is None


def test_a_capsule_may_go_while_an_exception_is_on_its_way():
    kept = []

    def capsule():
        found, owner = lend()
        kept.append(owner)
        return found

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            [capsule(), 1 / 0]
    gc.collect()
    assert [owner() for owner in kept] == [None] * 3


@pytest.mark.parametrize("take", [np.from_dlpack, lambda x: imported(x, None, HOST)], ids=["numpy", "symc"])
def test_the_owner_stays_until_the_consumer_is_done(take):
    lender = Lender(numbers("f32", (4,)))
    owner = weakref.ref(lender.owner)
    taken = take(lender)
    again = take(lender)
    del lender
    gc.collect()
    assert owner() is not None
    del taken
    assert owner() is not None
    del again
    assert owner() is None


def test_arrays_of_numpy_stay_while_they_are_used():
    a = np.arange(4.0)
    gone = weakref.ref(a)
    found = imported(a, None, HOST)
    del a
    assert gone() is not None
    owner = found.owner
    del found
    assert gone() is not None
    del owner
    assert gone() is None


def test_what_is_refused_is_given_back():
    lender = Lender(np.arange(4.0)[::2].copy(), plant=lambda managed: setattr(managed.tensor, "lanes", 4))
    owner = weakref.ref(lender.owner)
    with pytest.raises(InputError, match="symc has no dtype float64 x 4"):
        imported(lender, None, HOST)
    del lender
    gc.collect()
    assert owner() is None


def test_nothing_leaks_and_threads_may_share_an_array():
    lender = Lender(numbers("f32", (4, 5)))
    owner = weakref.ref(lender.owner)

    def work():
        for k in range(200):
            lender.__dlpack__(max_version=(1, 0) if k % 2 else None)
            assert np.from_dlpack(lender)[1, 1] == 6
            found = imported(lender, None, HOST)
            assert found.shape == (4, 5)

    def run():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        gc.collect()

    run()
    tracemalloc.start()
    try:
        run()
        before = tracemalloc.get_traced_memory()[0]
        run()
        assert tracemalloc.get_traced_memory()[0] - before < 16 * 2400  # the smallest leak is 64 bytes an array
    finally:
        tracemalloc.stop()
    references = sys.getrefcount(lender.owner)
    assert references == 2  # that of the lender, and the argument
    lender.owner = None
    assert owner() is None


def test_what_is_left_when_the_process_ends_does_no_harm():
    code = """
import numpy as np
from symc.runtime.cuda.dlpack import export, imported
a = np.arange(4.0)
class Cycle: pass
c = Cycle(); c.me = c
c.fresh = export(a.ctypes.data, a.shape, a.dtype, (1, 0), a, True)
c.taken = imported(a, None, (1, 0))
left = [c, export(a.ctypes.data, a.shape, a.dtype, (2, 0), c, False)]
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


# --- how producers are asked ------------------------------------------------------------------------------------------


def test_a_producer_is_asked_for_its_memory_as_it_lies_and_told_our_stream():
    lender = Lender(numbers("f32", (2,)), DEVICE)
    imported(lender, 99, DEVICE)
    assert lender.asked == dict(stream=99, max_version=(1, 0), dl_device=DEVICE, copy=False)
    imported(lender, 0, DEVICE)
    assert lender.asked["stream"] == 1  # the default stream: DLPack forbids 0
    imported(lender, None, DEVICE)
    assert lender.asked["stream"] is None
    lender = Lender(numbers("f32", (2,)))
    imported(lender, 99, HOST)  # memory of the host has no streams
    assert lender.asked["stream"] is None


def test_a_producer_is_not_asked_what_it_does_not_know():
    a = numbers("f32", (2,))

    class Older(Lender):
        def __dlpack__(self, *, stream=None):
            return super().__dlpack__(stream=stream)

    class Oldest(Lender):
        def __dlpack__(self):
            return super().__dlpack__()

    class Versions(Lender):
        def __dlpack__(self, *, stream=None, max_version=None):
            return super().__dlpack__(stream=stream, max_version=max_version)

    older, versions = Older(a, DEVICE), Versions(a, DEVICE)
    assert imported(older, 3, DEVICE).shape == (2,) and older.asked["stream"] == 3
    assert imported(versions, 3, DEVICE).shape == (2,) and versions.asked["max_version"] == (1, 0)
    assert imported(Oldest(a), None, HOST).shape == (2,)
    with pytest.raises(InputError, match=r"cannot be lent: .*unexpected keyword argument 'stream'"):
        imported(Oldest(a, DEVICE), 3, DEVICE)  # who knows no streams does not say when the array is ready


def test_what_a_producer_says_is_in_the_error():
    class Busy(Lender):
        def __dlpack__(self, **how):
            raise BufferError("it needs a gradient.")

    with pytest.raises(InputError) as e:
        imported(Busy(np.zeros(2)), None, HOST, name="x")
    assert str(e.value).splitlines()[0] == "this array cannot be lent: it needs a gradient"
    assert "x : " in str(e.value) and "Busy" in str(e.value)


# --- what is refused --------------------------------------------------------------------------------------------------


def planted(**fields):
    def plant(managed):
        for n, value in fields.items():
            setattr(managed if n in ("major", "flags") else managed.tensor, n, value)

    return Lender(numbers("f32", (2, 3)), plant=plant)


@pytest.mark.parametrize("obj, says", [
    (planted(code=4, bits=32), "symc has no dtype bfloat32"),
    (planted(code=2, bits=8), "symc has no dtype float8"),
    (planted(code=6, bits=1), "symc has no dtype bool1"),
    (planted(code=77, bits=32), "symc has no dtype kind 77 of32"),
    (planted(lanes=2), "symc has no dtype float32 x 2"),
    (planted(major=2), "a DLPack capsule of version 2.0 cannot be read"),
    (planted(flags=2), "the array was copied to be lent"),
    (planted(kind=2), "an array on cuda:0 cannot be used on the emulated device"),
    (np.arange(3, dtype=">i4"), "this array cannot be lent"),
    (np.arange(6.0)[::2], r"an array of shape \(3,\) with strides \(2,\) \(in elements\) is not contiguous"),
    (np.zeros((2, 3)).T, r"an array of shape \(3, 2\) with strides \(1, 3\)"),
    (Lender(np.zeros(2), DEVICE), "an array on cuda:0 cannot be used on the emulated device"),
    (Lender(np.zeros(2), (10, 1)), "an array on rocm:1 cannot"),
    (cuda_array(), "an array on cuda:0 cannot be used on the emulated device"),
    ([1, 2], "this is no array of a device"),
])  # fmt: skip
def test_what_cannot_be_used_as_it_lies_is_refused(obj, says):
    with pytest.raises(InputError, match=says) as e:
        imported(obj, None, HOST, name="x")
    assert e.value.values[0][0] == "x" and e.value.help


@pytest.mark.parametrize("device, says", [
    ((CUDA, 1), "an array on cuda:1 cannot be used on cuda:0"),
    (HOST, "an array on the host cannot be used on cuda:0"),
    ((PINNED, 0), r"an array on the host \(pinned\) cannot be used on cuda:0"),
    ((99, 4), "an array on device 4 of kind 99 cannot be used on cuda:0"),
])  # fmt: skip
def test_arrays_of_other_devices_are_not_even_asked_for(device, says):
    lender = Lender(np.zeros(2), device)
    with pytest.raises(InputError, match=says) as e:
        imported(lender, 1, DEVICE)
    assert not lender.asked
    assert ("np.asarray" in e.value.help) == (device[0] in (CPU, PINNED))


def test_managed_memory_is_memory_of_every_device():
    assert imported(Lender(np.zeros(2), (MANAGED, 1)), 1, DEVICE).device == (MANAGED, 1)


# --- __cuda_array_interface__ -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", OWN)
def test_what_is_described_is_taken_where_it_lies(dtype, shape):
    said = exported(1 << 40, shape, DTYPES[dtype], 7, True)
    obj = Described(**said)
    found = imported(obj, 5, DEVICE)
    assert (found.shape, found.dtype, found.readonly, found.stream) == (shape, DTYPES[dtype], True, 7)
    assert found.address == (0 if 0 in shape else 1 << 40) and found.device == DEVICE
    gone = weakref.ref(obj)
    del obj
    assert gone() is not None
    del found
    assert gone() is None


def test_what_is_described_says_which_stream_to_wait_for():
    assert [exported(64, (1,), np.dtype("f4"), s)["stream"] for s in (0, None, 9)] == [1, None, 9]
    assert imported(cuda_array(stream=None), 5, DEVICE).stream is None
    assert imported(cuda_array(version=2, stream=9), 5, DEVICE).stream is None  # version 2 has no streams
    assert imported(Described(version=2, shape=(2,), typestr="<f4", data=(1 << 40, False)), 5, DEVICE).shape == (2,)


def test_strides_that_are_those_of_c_order_are_taken():
    assert imported(cuda_array(strides=(12, 4)), 5, DEVICE).shape == (2, 3)
    assert imported(cuda_array(shape=(2, 1), strides=(4, 999)), 5, DEVICE).shape == (2, 1)
    assert imported(cuda_array(shape=(0, 2), strides=(1, 1), data=(0, False)), 5, DEVICE).address == 0
    assert imported(cuda_array(shape=(0, 2), data=(None, False)), 5, DEVICE).address == 0


@pytest.mark.parametrize("changes, says", [
    (dict(strides=(4, 8)), r"shape \(2, 3\) with strides \(1, 2\) \(in elements\) is not contiguous"),
    (dict(strides=(-12, 4)), r"with strides \(-3, 1\)"),
    (dict(strides=(14, 4)), r"strides of \(14, 4\) bytes are not whole elements"),
    (dict(typestr=">f4"), "has its bytes in the other order"),
    (dict(typestr="|V8"), "symc has no dtype |V8"),
    (dict(typestr="<f3"), "symc has no dtype <f3"),
    (dict(typestr="<M8[ns]"), "symc has no dtype <M8"),
    (dict(mask=cuda_array()), "with a mask cannot be used"),
    (dict(stream=0), "with stream 0, which the interface forbids"),
    (dict(version=1), "with version 1 cannot be used"),
    (dict(data=None), "an unusable __cuda_array_interface__: TypeError"),
    (dict(shape="x"), "an unusable __cuda_array_interface__: ValueError"),
    (dict(strides=(4,)), "an unusable __cuda_array_interface__"),
])  # fmt: skip
def test_descriptions_that_cannot_be_used_are_refused(changes, says):
    with pytest.raises(InputError) as e:
        imported(cuda_array(**changes), 5, DEVICE, name="x")
    assert re.search(says.replace("|", r"\|"), str(e.value)) and e.value.values[0][0] == "x" and e.value.help


def test_the_device_of_an_address_is_asked_for_where_somebody_knows():
    assert imported(cuda_array(), 5, DEVICE, device_of=lambda address: int(address != 1 << 40)).device == DEVICE
    with pytest.raises(InputError, match="an array on cuda:1 cannot be used on cuda:0"):
        imported(cuda_array(), 5, DEVICE, device_of=lambda address: 1)


# --- PyTorch ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def test_pytorch_gives_and_takes(torch):
    for dtype, shape in ((d, s) for d in OWN for s in SHAPES):
        a = numbers(dtype, shape)
        t = torch.from_dlpack(Lender(a))
        assert tuple(t.shape) == shape and np.array_equal(t.numpy(), a)
        assert a.size == 0 or t.data_ptr() == a.ctypes.data
        found = imported(t, None, HOST)
        assert (found.shape, found.dtype) == (shape, a.dtype) and (a.size == 0 or found.address == t.data_ptr())


def test_memory_of_pytorch_lives_as_long_as_it_is_used(torch):
    lender = Lender(numbers("f32", (4,)))
    owner = weakref.ref(lender.owner)
    found = imported(torch.from_dlpack(lender)[1:], None, HOST)
    assert found.address == lender.owner.array.ctypes.data + 4
    del lender
    gc.collect()
    assert owner() is not None
    del found
    gc.collect()
    assert owner() is None


def test_what_pytorch_does_not_lend_is_refused(torch):
    with pytest.raises(InputError, match=r"this array cannot be lent: .*gradient"):
        imported(torch.zeros(2, requires_grad=True), None, HOST)
    with pytest.raises(InputError, match="symc has no dtype"):
        imported(torch.zeros(2, dtype=torch.float8_e4m3fn), None, HOST)
    with pytest.raises(InputError, match="is not contiguous"):
        imported(torch.zeros(2, 3).T, None, HOST)
    with pytest.raises(InputError, match="cannot be used on cuda:0"):
        imported(torch.zeros(2), 1, DEVICE)
