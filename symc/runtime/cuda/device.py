"""Protocol of a device for the CUDA backend: the interface that a real and an emulated one have.

Addresses are plain integers. Everything that takes a stream is ordered on it and may return before it is done. Nothing
here knows of arrays, plans or kernels of symc: who launches says what is read and written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from symc.ir.record import dataclass

#: Memory starts at multiples of so many bytes.
ALIGN = 256
#: Arguments of a copy: target, source, bytes.
Copied = tuple[int, int, int]
#: A part of memory: where it starts, and how many bytes it has.
Span = tuple[int, int]


@dataclass
class Counters:
    """Counters of what a device has done since it was made. Bytes are those of transfers; ``syncs`` counts how often
    the host has waited; launches inside a graph count once for each time the graph runs."""

    launches: int = 0
    library_calls: int = 0
    graph_launches: int = 0
    h2d_bytes: int = 0
    d2h_bytes: int = 0
    d2d_bytes: int = 0
    allocations: int = 0
    syncs: int = 0


@dataclass(frozen=True)
class Properties:
    """Facts of a device. ``arch``: what code is compiled for ("sm_90"); bytes of shared memory: of one block that
    asks for them."""

    name: str
    arch: str
    multiprocessors: int
    shared_bytes: int
    l2_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Resources:
    """Resources of one kernel, from the compiler: registers a thread; bytes of local memory for what did not fit into
    registers (``spills``) and in all (``stack``); bytes of static shared memory a block."""

    registers: int
    spills: int
    stack: int
    shared: int


@dataclass(frozen=True)
class Signature:
    """Declaration of an entry: its name, and the width in bytes of each parameter, in order."""

    name: str
    widths: tuple[int, ...]


class Memory(Protocol):
    """Memory of a device; it is given back when the object goes. ``owner`` keeps it alive elsewhere."""

    address: int
    nbytes: int


class Kernel(Protocol):
    """A loaded entry. ``resources`` is None where nothing has compiled it for a device."""

    name: str
    resources: Resources | None


class Stream(Protocol):
    """A queue of work. ``handle``: what other libraries call it (a ``cudaStream_t``)."""

    handle: int


class Event(Protocol):
    """A point in a stream."""


class Graph(Protocol):
    """Work that was captured and can run again."""

    nodes: int


@dataclass(frozen=True)
class Product:
    """``c[i] = alpha * op(a[i]) @ op(b[i]) + beta * c[i]`` as cuBLAS has it (cublasGemmStridedBatchedEx): matrices are
    stored by columns; ``m``, ``n``: rows and columns of c, ``k``: of what is summed; ``lda`` ...: elements from one
    column to the next; ``stride_a`` ...: elements from one matrix of the batch to the next. What c holds is not read
    where beta is 0. ``compute``: how numbers are multiplied: "highest" (in the dtype of the operands, sums in f32 at
    least), "tf32", "bf16"; ``dtype``: of all three. ``conj_a``, ``conj_b``: what is transposed is conjugated, too.
    """

    trans_a: bool
    trans_b: bool
    m: int
    n: int
    k: int
    alpha: complex
    beta: complex
    lda: int
    ldb: int
    ldc: int
    stride_a: int
    stride_b: int
    stride_c: int
    batch: int
    dtype: np.dtype
    compute: str = "highest"
    conj_a: bool = False
    conj_b: bool = False


@dataclass(frozen=True)
class Factorization:
    """A factorization as cuSOLVER has it, of ``batch`` matrices of m rows and n columns, stored by columns, one after
    another. "eigh": ascending real eigenvalues of the hermitian matrix of which a triangle (``lower``) is given; the
    vectors come to where it is. "eig": of any complex square matrix. "svd": of m >= n; ``full``: all vectors of the
    longer side. What is in the matrices afterwards is not said else."""

    kind: str
    m: int
    n: int
    batch: int
    dtype: np.dtype
    vectors: bool
    lower: bool = True
    full: bool = False

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the values, and of vectors that have a place of their own."""
        m, n = self.m, self.n
        if not self.vectors or self.kind == "eigh":
            return ((n,),)
        return ((n,), (n, n)) if self.kind == "eig" else ((n,), (m, m if self.full else n), (n, n))

    @property
    def nbytes(self) -> tuple[int, ...]:
        """Bytes from one matrix to the next: of the matrices, values, vectors, and of the numbers that say whether it
        went well (ints; 0 if it did)."""
        size = self.dtype.itemsize
        values, *vectors = (math.prod(s) for s in self.shapes)
        real = self.dtype.kind == "c" and self.kind != "eig"
        return (self.m * self.n * size, values * size // (1 + real), *(x * size for x in vectors), 4)


class Device(Protocol):
    """A device that runs kernels. Everything may be called from one thread at a time."""

    name: str  # "cuda:0"
    index: int
    dlpack_device: tuple[int, int]  # what DLPack calls it: (2, 0), or (1, 0) where its memory is the host's
    checked: bool  # whether it looks at the memory that launches say they touch
    properties: Properties
    counters: Counters

    # -- memory

    def alloc(self, nbytes: int) -> Memory:
        """Fresh memory at a multiple of ALIGN (not cleared; at least one byte). Raises MemoryError."""

    def pinned(self, nbytes: int) -> np.ndarray:
        """Bytes of the host that the device can reach (an array of u8)."""

    def upload(self, target: int, source: np.ndarray, stream: Stream) -> None:
        """Copy a contiguous array of the host to the device. Memory that is not from ``pinned`` has been read when this
        returns, and such a copy cannot be captured."""

    def download(self, target: np.ndarray, source: int, stream: Stream) -> None:
        """Copy to a contiguous array of the host. It is there after the stream is synchronized."""

    def copy(self, target: int, source: int, nbytes: int, stream: Stream) -> None:
        """Copy inside the device."""

    def fill(self, target: int, byte: int, nbytes: int, stream: Stream) -> None:
        """Set all bytes."""

    # -- code

    def load(self, text: str, signatures: Sequence[Signature]) -> dict[str, Kernel]:
        """Compile (or find in the cache) a whole translation unit in CUDA C++ and load its entries, by name.

        Raises InternalError with the compiler's message where the text does not compile, or an entry has other
        parameters than its signature says.
        """

    def launch(self, kernel: Kernel, grid: tuple[int, int, int], block: int, shared: int, arguments: int,
               stream: Stream, reads: Sequence[Span] = (), writes: Sequence[Span] = ()) -> None:
        """Run a kernel. ``arguments``: the address of an array of addresses, one of each argument (``void **``), which
        are read before this returns. ``reads``, ``writes``: all memory that it may touch, for who checks that."""

    # -- libraries

    def product(self, p: Product, a: int, b: int, c: int, stream: Stream) -> None:
        """A product of matrices (cuBLAS, or what stands for it)."""

    def factorize(self, f: Factorization, addresses: Sequence[int], stream: Stream) -> None:
        """Eigenvalues or singular values (cuSOLVER, or what stands for it): matrices, values, vectors and ints are at
        these addresses. It cannot be captured: the host may wait."""

    # -- order

    def stream(self) -> Stream:
        """A new stream, which does not wait for the default one."""

    def event(self) -> Event: ...

    def record(self, event: Event, stream: Stream) -> None:
        """Let the event be after what the stream has been given so far."""

    def wait(self, stream: Stream, event: Event) -> None:
        """Orders what the stream is given from now on after the event."""

    def reach(self, event: Event) -> None:
        """Wait until an event has happened."""

    def synchronize(self, stream: Stream) -> None:
        """Wait until the stream has done everything. Errors of what it did are raised here."""

    def elapsed(self, start: Event, end: Event) -> float:
        """Milliseconds between two events that have happened (recorded by an event with a clock)."""

    # -- several devices

    def ranks(self, devices: Sequence[Any]) -> Sequence[Communicator]:
        """A rank for each of several devices of this kind, which may each be used by a thread of its own."""

    # -- graphs

    @property
    def capturing(self) -> bool:
        """True while work is captured."""
        ...

    def begin_capture(self, stream: Stream) -> None:
        """From here on, what this stream is given (and what waits for its events) is noted, not done. Allocating,
        synchronizing, and copying from memory that is not pinned are errors meanwhile."""

    def end_capture(self, stream: Stream) -> Graph:
        """The graph of what was noted, ready to run."""

    def run_graph(self, graph: Graph, stream: Stream, before: Sequence[Copied] = (), after: Sequence[Copied] = ()
                  ) -> None:
        """Run what was captured, between copies inside the device."""


class Communicator(Protocol):
    """A rank of several that work together. Addresses are of the rank's own device."""

    rank: int
    size: int

    def all_reduce(self, target: int, source: int, count: int, dtype: np.dtype, kind: str, stream: Stream) -> None:
        """``kind``: "add", "maximum", "minimum"; target may be source."""


def check_signature(kernel: str, declared: Sequence[int], found: Sequence[int]) -> str | None:
    """Says what is wrong with the parameters of an entry, if anything."""
    if tuple(declared) == tuple(found):
        return None
    return f"{kernel} takes parameters of {list(found)} bytes, and was declared with {list(declared)}"
