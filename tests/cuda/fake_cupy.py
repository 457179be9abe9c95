"""Of CuPy what ``CupyDevice`` uses, on memory of the host: what a stream is given is done at once, or noted while it is
captured. It keeps CuPy's rules (what must be current, what is freed where) and CuPy's argument names.

Kernels are run by an emulated device, if there is one; else it knows one kernel, which doubles floats."""

from __future__ import annotations

import ctypes
import functools
import weakref
from types import SimpleNamespace

import numpy as np

from symc.runtime.cuda.device import Signature

__version__ = "14.2.0"


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class State:
    """``current``: the device; ``stream``: CuPy's current stream; ``captured``: what is noted, None if nothing is.
    ``emulated``: what runs kernels; ``texts``: of compiled code, what it was compiled from and its CUBIN."""

    def __init__(self):
        self.count, self.current, self.contexts = 1, 0, set()
        self.stream, self.captured, self.log = None, None, []
        self.kernels, self.attributes, self.broken = {}, {}, False
        self.emulated, self.texts = None, {}


state = State()
_keep: dict[int, object] = {}


def do(action) -> None:
    assert state.current in state.contexts, "no context"
    if state.captured is None:
        action()
    else:
        state.captured.append(action)


class Object:
    def __init__(self, ptr=None):
        self._bytes = ctypes.create_string_buffer(16)
        self.ptr = ptr or ctypes.addressof(self._bytes)


class Stream(Object):
    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        super().__init__()
        assert non_blocking, "work on a blocking stream waits for the default one"

    def __enter__(self):
        self._before, state.stream = state.stream, self

    def __exit__(self, *_):
        state.stream = self._before

    def begin_capture(self, mode=None):
        state.captured = []

    def end_capture(self):
        found, state.captured = state.captured, None
        return Graph(found)


class Event(Object):
    pass


class Graph:
    def __init__(self, actions):
        self.graphExec, self.uploaded = 1000 + len(_keep), False
        _keep[self.graphExec] = actions

    def upload(self, stream=None):
        self.uploaded = True


class Memory:
    def __init__(self, size):
        if size > 2**40:
            raise MemoryError(size)
        if state.emulated is not None:
            self._bytes = state.emulated.alloc(size)
            self.ptr = self._bytes.address
            return
        self._bytes = (ctypes.c_ubyte * (size + 256))()
        self.ptr = ctypes.addressof(self._bytes) + -ctypes.addressof(self._bytes) % 256


class RawKernel:
    def __init__(self, name, known):
        self.name, self.kernel = name, Object()
        state.kernels[self.kernel.ptr] = known
        weakref.finalize(self, state.kernels.pop, self.kernel.ptr, None).atexit = False

    def __setattr__(self, name, value):
        if name == "max_dynamic_shared_size_bytes":
            state.attributes[self.name] = value
        super().__setattr__(name, value)


class RawModule:
    def __init__(self, code=None, path=None, options=(), backend="nvrtc", translate_cucomplex=False,
                 enable_cooperative_groups=False, name_expressions=None, jitify=None):
        assert code is None, "its compiler flushes subnormal numbers"
        with open(path, "rb") as file:
            cubin = file.read()
        if state.emulated is not None:
            text, about = state.texts[cubin]
            self.kernels = state.emulated.load(text, [Signature(n, w) for n, w in about.parameters.items()])

    def get_function(self, name):
        return RawKernel(name, name if state.emulated is None else self.kernels[name])


def getDeviceCount():
    if not state.count:
        raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    return state.count


def getDevice():
    return state.current


def setDevice(device):
    state.current = device
    state.contexts.add(device)
    state.log.append(("setDevice", device))


def getDeviceProperties(device):
    return {"name": b"NVIDIA Fake", "major": 9, "minor": 0, "multiProcessorCount": 4, "l2CacheSize": 2**20,
            "sharedMemPerBlockOptin": 232448, "totalGlobalMem": 2**33}


def runtimeGetVersion():
    return 13020


def memcpyAsync(dst, src, size, kind, stream):
    do(lambda: ctypes.memmove(dst, src, size))


def memsetAsync(ptr, value, size, stream):
    do(lambda: ctypes.memset(ptr, value, size))


def eventRecord(event, stream):
    assert state.current in state.contexts


def streamWaitEvent(stream, event, flags=0):
    assert state.current in state.contexts


def streamSynchronize(stream):
    if state.broken:
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")


def eventSynchronize(event):
    streamSynchronize(event)


def graphLaunch(graphExec, stream):
    for action in _keep[graphExec]:
        action()


def launchKernel(f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes, stream,
                 kernel_params, extra):
    name = state.kernels[f]
    if state.captured is not None:
        state.captured.append(functools.partial(loaded, f, state.kernels))
    if state.emulated is not None:
        grid = grid_dim_x, grid_dim_y, grid_dim_z
        return emulate(name, grid, block_dim_x, shared_mem_bytes, kernel_params)
    if block_dim_x > 1024:
        raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
    assert shared_mem_bytes <= state.attributes.get(name, 48 * 1024), "more shared memory than was asked for"
    assert (block_dim_y, block_dim_z, extra) == (1, 1, 0)
    pointers = (ctypes.c_void_p * 2).from_address(kernel_params)
    address = ctypes.c_void_p.from_address(pointers[0]).value
    count = ctypes.c_int.from_address(pointers[1]).value
    assert name == "twice" and grid_dim_x * grid_dim_y * grid_dim_z * block_dim_x >= count

    def run():
        x = np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))
        x *= 2

    do(run)


def loaded(kernel, kernels):
    assert kernel in kernels, "a graph has a kernel that was unloaded"


def emulate(kernel, grid, block, shared, kernel_params):
    """Launch a kernel with what its arguments are now."""
    pointers = (ctypes.c_void_p * max(1, len(kernel.widths))).from_address(kernel_params)
    cells = np.zeros((max(1, len(kernel.widths)), 16), np.uint8)
    for k, width in enumerate(kernel.widths):
        cells[k, :width] = np.ctypeslib.as_array((ctypes.c_ubyte * width).from_address(pointers[k]))
    at = cells.ctypes.data + 16 * np.arange(len(cells), dtype=np.int64)

    def run():
        stream = state.emulated.stream()
        state.emulated.launch(kernel, grid, block, shared, at.ctypes.data, stream)
        state.emulated.synchronize(stream)
        assert cells is not None

    do(run)


def alloc(size):
    assert isinstance(state.stream, Stream), "memory is freed to whoever uses CuPy's own stream"
    return Memory(size)


def alloc_pinned_memory(size):
    class Pinned(ctypes.c_ubyte * size):
        @property
        def ptr(self):
            return ctypes.addressof(self)

    return Pinned()


def get_elapsed_time(start_event, end_event):
    return 0.5


runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError, memcpyHostToDevice=1, memcpyDeviceToHost=2, memcpyDeviceToDevice=3,
    **{f.__name__: f for f in (
        getDeviceCount, getDevice, setDevice, getDeviceProperties, runtimeGetVersion, memcpyAsync, memsetAsync,
        eventRecord, streamWaitEvent, streamSynchronize, eventSynchronize, graphLaunch)})  # fmt: skip
driver = SimpleNamespace(CUDADriverError=CUDADriverError, launchKernel=launchKernel)
cuda = SimpleNamespace(
    runtime=runtime, driver=driver, graph=SimpleNamespace(Graph=Graph),
    Stream=Stream, Event=Event, alloc=alloc, alloc_pinned_memory=alloc_pinned_memory, get_elapsed_time=get_elapsed_time)
