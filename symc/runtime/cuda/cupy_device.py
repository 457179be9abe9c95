"""A GPU through CuPy: the only file that imports it. Memory is from CuPy's pool, streams and events are CuPy's.

Of CuPy this takes what concerns the device, and neither its arrays nor its compiler: kernels are compiled by NVRTC
without CuPy's flags and loaded as ``cupy.RawModule(path=cubin)``; they are launched through CuPy's driver interface,
since a ``RawKernel`` packs arguments again in each call, which takes longer than the launch; and cuBLAS has handles of
its own, because CuPy's wrapper refuses to be called while work is captured. Tests compare what is used with an
installed CuPy, and with the fake of it, on a machine without a GPU.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Sequence
from itertools import chain, starmap
from types import TracebackType
from typing import Any

import numpy as np

from symc.errors import DeviceError, InputError, InternalError, missing_package
from symc.ir.record import dataclass
from symc.runtime.cache.process_folder import process_folder
from symc.runtime.cuda import cublas, cusolver, nccl, nvrtc
from symc.runtime.cuda.device import Copied, Counters, Factorization, Product, Properties, Resources, Signature, Span

#: Versions of CuPy that have what is used.
OLDEST = 14
#: Bytes of shared memory that a block has without asking for more.
SHARED = 48 * 1024
_DLPACK_CUDA = 2
_HELP = "pip install 'symc[cuda]' on a machine with an NVIDIA GPU; device='cpu' works everywhere"


class CupyMemory:
    """Memory of CuPy's pool, to which it goes back when this object goes."""

    __slots__ = ("_owner", "address", "nbytes")

    def __init__(self, owner: Any, nbytes: int):
        self._owner, self.address, self.nbytes = owner, owner.ptr, nbytes


class CupyKernel:
    """A loaded entry. ``raw``: the ``cupy.RawKernel``; ``shared``: bytes of dynamic shared memory that it may be
    launched with."""

    __slots__ = ("handle", "name", "raw", "resources", "shared")

    def __init__(self, name: str, resources: Resources, raw: Any):
        self.name, self.resources, self.raw, self.handle = name, resources, raw, raw.kernel.ptr
        self.shared = SHARED - resources.shared


class CupyStream:
    """``blas``, ``solver``: cuBLAS and cuSOLVER on this stream, once they were needed."""

    __slots__ = ("blas", "handle", "solver", "stream")

    def __init__(self, stream: Any):
        self.stream, self.handle = stream, stream.ptr
        self.blas: cublas.Handle | None = None
        self.solver: cusolver.Handle | None = None


class CupyEvent:
    __slots__ = ("event", "handle")

    def __init__(self, event: Any):
        self.event, self.handle = event, event.ptr


@dataclass(eq=False)
class CupyGraph:
    """``done``: what one run of it adds to which counters; ``kernels``: kept loaded as long as the graph is."""

    graph: Any
    nodes: int
    done: tuple[tuple[str, int], ...]
    kernels: tuple[CupyKernel, ...]


class _Current:
    """Makes a device the current one of the thread meanwhile: what CuPy's functions act on."""

    __slots__ = ("_index", "_local", "_runtime")

    def __init__(self, runtime: Any, index: int):
        self._runtime, self._index = runtime, index
        self._local = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._runtime = _Parents(self._index)

    def __enter__(self) -> None:
        before = self._runtime.getDevice()
        stack = getattr(self._local, "before", None)
        if stack is None:  # a thread has no context until it says what device it wants
            stack = self._local.before = []
            self._runtime.setDevice(self._index)
        elif before != self._index:
            self._runtime.setDevice(self._index)
        stack.append(before)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        before = self._local.before.pop()
        if before != self._index:
            self._runtime.setDevice(before)


class _Parents:
    """Stand-in for the runtime in a process that was forked while its parent used the device."""

    def __init__(self, index: int):
        self._index = index

    def getDevice(self) -> int:
        raise DeviceError(f"cuda:{self._index} was in use when this process was forked: CUDA does not serve it",
                          help='start processes by multiprocessing.get_context("spawn")')


class CupyDevice:
    """One GPU. Raises InputError, which says what is missing, where there is none."""

    checked = False

    def __init__(self, index: int):
        self.cupy = _cupy(index)
        self.name, self.index, self.dlpack_device = f"cuda:{index}", index, (_DLPACK_CUDA, index)
        self._cuda = self.cupy.cuda
        self._runtime, self._driver = self._cuda.runtime, self._cuda.driver
        self._major = self._runtime.runtimeGetVersion() // 1000
        nvrtc.library(self._major)  # says early if there is no compiler
        self._here = _Current(self._runtime, index)
        self.properties = self._properties()
        self.counters = Counters()
        self._captured: tuple[Counters, list[CupyKernel]] | None = None
        self._nodes = 0  # of what is captured
        self._pinned: dict[int, int] = {}
        with self._here:
            self._home = self._cuda.Stream(non_blocking=True)
        self._unused_home = True

    def _properties(self) -> Properties:
        found = self._runtime.getDeviceProperties(self.index)
        name = found["name"]
        return Properties(name.decode() if isinstance(name, bytes) else name, f"sm_{found['major']}{found['minor']}",
                          found["multiProcessorCount"], found["sharedMemPerBlockOptin"], found["l2CacheSize"],
                          found["totalGlobalMem"])

    def _count(self, name: str, amount: int = 1) -> None:
        """Count what is done now, or note it with what is captured."""
        to = self.counters
        if self._captured is not None:
            to = self._captured[0]
            self._nodes += 1
        setattr(to, name, getattr(to, name) + amount)

    def _refuse(self, what: str) -> None:
        """Raise while work is captured."""
        if self._captured is not None:
            raise InternalError(f"{what} cannot be part of a graph")

    # -- memory

    def alloc(self, nbytes: int) -> CupyMemory:
        self._refuse("allocating memory")
        self.counters.allocations += 1
        return CupyMemory(self._allocate(max(nbytes, 1)), nbytes)

    def _allocate(self, nbytes: int) -> Any:
        """Memory that CuPy gives to nobody who would not wait for our work: a pool hands on what was freed to work of
        the same stream, so all of it is taken for one stream, and work on other streams joins that."""
        with self._here, self._home:
            return self._cuda.alloc(nbytes)

    def pinned(self, nbytes: int) -> np.ndarray:
        self._refuse("allocating memory")
        with self._here:
            memory = self._cuda.alloc_pinned_memory(max(nbytes, 1))
        self.counters.allocations += 1
        array = np.frombuffer(memory, np.uint8, nbytes)
        self._pinned[memory.ptr] = nbytes
        weakref.finalize(array, self._pinned.pop, memory.ptr, None)
        return array

    def upload(self, target: int, source: np.ndarray, stream: Any) -> None:
        self._check_host(source)
        address = source.__array_interface__["data"][0]
        self._move(target, address, source.nbytes, self._runtime.memcpyHostToDevice, stream, "h2d_bytes")

    def download(self, target: np.ndarray, source: int, stream: Any) -> None:
        self._check_host(target)
        to, n = target.ctypes.data, target.nbytes
        self._move(to, source, n, self._runtime.memcpyDeviceToHost, stream, "d2h_bytes")

    def _move(self, target: int, source: int, nbytes: int, kind: int, stream: Any, counter: str) -> None:
        with self._here:
            self._runtime.memcpyAsync(target, source, nbytes, kind, stream.handle)
        self._count(counter, nbytes)

    def _check_host(self, array: np.ndarray) -> None:
        if not array.flags.c_contiguous:
            raise InternalError("what is copied to or from a device must be contiguous")
        if self._captured is not None:
            start, end = array.ctypes.data, array.ctypes.data + array.nbytes
            if not any(p <= start and end <= p + n for p, n in self._pinned.items()):
                raise InternalError("a copy of memory of the host that is not pinned cannot be part of a graph")

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        self._move(target, source, nbytes, self._runtime.memcpyDeviceToDevice, stream, "d2d_bytes")

    def fill(self, target: int, byte: int, nbytes: int, stream: Any) -> None:
        with self._here:
            self._runtime.memsetAsync(target, byte, nbytes, stream.handle)
        self._nodes += self._captured is not None

    # -- code

    def load(self, text: str, signatures: Sequence[Signature]) -> dict[str, Any]:
        cubin = nvrtc.compile_cubin(text, self.properties.arch, self._major)
        cubin.check(signatures)
        return self._loaded(cubin, signatures)

    def _loaded(self, cubin: nvrtc.Cubin, signatures: Sequence[Signature]) -> dict[str, Any]:
        name = f"{hashlib.blake2b(cubin.data, digest_size=16).hexdigest()}.{self.index}.cubin"  # devices load at once
        path = os.path.join(process_folder("cubins"), name)  # which CuPy reads from files
        with open(path, "wb") as file:
            file.write(cubin.data)
        with self._here:
            module = self.cupy.RawModule(path=path)
            return {s.name: CupyKernel(s.name, cubin.resources[s.name], module.get_function(s.name))
                    for s in signatures}

    def launch(self, kernel: Any, grid: tuple[int, int, int], block: int, shared: int, arguments: int,
               stream: Any, reads: Sequence[Span] = (), writes: Sequence[Span] = ()) -> None:
        with self._here:
            if shared > kernel.shared:
                self._allow(kernel, shared)
            try:
                self._driver.launchKernel(kernel.handle, *grid, block, 1, 1, shared, stream.handle, arguments, 0)
            except self._driver.CUDADriverError as e:
                raise InternalError(f"{kernel.name} cannot run as {grid} blocks of {block} threads with {shared} bytes "
                                    f"of shared memory each: {e}") from e
        self._count("launches")
        if self._captured is not None:
            self._captured[1].append(kernel)

    def _allow(self, kernel: CupyKernel, shared: int) -> None:
        """Let a kernel have more shared memory than a block has unasked."""
        if shared + kernel.resources.shared > self.properties.shared_bytes:
            raise InternalError(f"{kernel.name} wants {shared} bytes of shared memory a block, and "
                                f"{self.properties.name} has {self.properties.shared_bytes}")
        kernel.raw.max_dynamic_shared_size_bytes = shared
        kernel.shared = shared

    # -- libraries

    def product(self, p: Product, a: int, b: int, c: int, stream: Any) -> None:
        with self._here:
            if stream.blas is None:
                memory = self._allocate(cublas.WORKSPACE)
                stream.blas = cublas.Handle(cublas.library(self._major), stream.handle, memory.ptr, memory)
            stream.blas.product(p, a, b, c)
        self._count("library_calls")

    def factorize(self, f: Factorization, addresses: Sequence[int], stream: Any) -> None:
        self._refuse("a factorization by cuSOLVER")
        with self._here:
            if stream.solver is None:
                stream.solver = cusolver.Handle(cusolver.library(self._major), stream.handle, self._kept)
            stream.solver.factorize(f, tuple(addresses))
        self._count("library_calls")

    def _kept(self, nbytes: int) -> tuple[int, object]:
        memory = self._allocate(nbytes)
        return memory.ptr, memory

    # -- order

    def stream(self) -> CupyStream:
        """A new stream; the first one is that whose work memory is freed after."""
        if self._unused_home:
            self._unused_home = False
            return CupyStream(self._home)
        with self._here:
            return CupyStream(self._cuda.Stream(non_blocking=True))

    def event(self) -> CupyEvent:
        with self._here:
            return CupyEvent(self._cuda.Event())

    def record(self, event: Any, stream: Any) -> None:
        with self._here:
            self._runtime.eventRecord(event.handle, stream.handle)

    def wait(self, stream: Any, event: Any) -> None:
        with self._here:
            self._runtime.streamWaitEvent(stream.handle, event.handle)

    def reach(self, event: Any) -> None:
        self._wait_for(self._runtime.eventSynchronize, event)

    def synchronize(self, stream: Any) -> None:
        self.counters.syncs += 1
        self._wait_for(self._runtime.streamSynchronize, stream)

    def _wait_for(self, wait: Any, what: Any) -> None:
        self._refuse("waiting for a stream")
        try:
            with self._here:
                wait(what.handle)
        except self._runtime.CUDARuntimeError as e:
            raise InternalError(f"work on {self.name} failed: {e}") from e

    def elapsed(self, start: Any, end: Any) -> float:
        with self._here:
            return float(self._cuda.get_elapsed_time(start.event, end.event))

    # -- several devices

    def ranks(self, devices: Sequence[CupyDevice]) -> list[nccl.NcclCommunicator]:
        found = nccl.communicators([d.index for d in devices], self._major)
        for rank, d in zip(found, devices, strict=True):
            rank.here, rank.count = d._here, d._count
        return found

    # -- graphs

    @property
    def capturing(self) -> bool:
        """True while work is captured."""
        return self._captured is not None

    def begin_capture(self, stream: Any) -> None:
        self._refuse("a graph")
        self._nodes = 0
        with self._here:
            self._captured = Counters(), []
            stream.stream.begin_capture()

    def end_capture(self, stream: Any) -> CupyGraph:
        if self._captured is None:
            raise InternalError("nothing is captured")
        (done, kernels), self._captured = self._captured, None
        with self._here:
            graph = stream.stream.end_capture()
            graph.upload(stream.stream)  # or its first run would wait for that
        counted = tuple((name, n) for name, n in vars(done).items() if n)
        return CupyGraph(graph, self._nodes, counted, tuple(dict.fromkeys(kernels)))

    def run_graph(self, graph: Any, stream: Any, before: Sequence[Copied] = (), after: Sequence[Copied] = ()) -> None:
        runtime, counters, how = self._runtime, self.counters, (self._runtime.memcpyDeviceToDevice, stream.handle)
        into, back = [(*c, *how) for c in before], [(*c, *how) for c in after]
        with self._here:  # one call of C: no signal leaves a state between old and new
            any(chain(starmap(runtime.memcpyAsync, into), map(runtime.graphLaunch, (graph.graph.graphExec,), how[1:]),
                      starmap(runtime.memcpyAsync, back)))
        counters.d2d_bytes += sum(c[2] for c in (*before, *after))
        counters.graph_launches += 1
        for name, n in graph.done:
            setattr(counters, name, getattr(counters, name) + n)


def _cupy(index: int) -> Any:
    """CuPy, if it is there, and the GPU."""
    what = f"device 'cuda:{index}' cannot be used"
    try:
        import cupy
    except ImportError as e:
        missing = "CuPy is not installed" if (e.name or "").split(".")[0] == "cupy" else f"CuPy cannot be loaded ({e})"
        error = missing_package(e, f"{what}: {missing}")
        error.help = _HELP
        raise error from None
    if int(cupy.__version__.split(".")[0]) < OLDEST:
        raise InputError(f"{what}: CuPy {cupy.__version__} is older than {OLDEST}", help="pip install 'symc[cuda]'")
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as e:
        raise InputError(f"{what}: there is no NVIDIA GPU with a driver that CuPy {cupy.__version__} works with ({e})",
                         help=_HELP) from None
    if index >= count:
        raise InputError(f"{what}: there are {count} GPUs, numbered from 0")
    return cupy
