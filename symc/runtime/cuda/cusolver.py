"""Eigenvalues and singular values by cuSOLVER, called through ctypes: its 64-bit interface, of any dtype.

A handle belongs to one stream. What a call works in is asked for each time, and kept, as the device may be using it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import InternalError
from symc.runtime.cuda import libraries
from symc.runtime.cuda.cublas import DATA
from symc.runtime.cuda.device import Factorization

#: Enum values of cusolverDn.h and cublas_api.h.
LOWER, UPPER = 0, 1
_STEP = {"eigh": "Xsyevd", "svd": "Xgesvd", "eig": "Xgeev"}


@functools.cache
def library(major: int | None = None) -> Any:
    """cuSOLVER, of a certain major version of CUDA or of the newest there is. Raises InputError where it is missing."""
    return libraries.load(libraries.CUSOLVER, major, ["libnvJitLink.so.*", "libcublasLt.so.*", "libcublas.so.*",
                                                       "libcusparse.so.*"])[0]


class Handle:
    """cuSOLVER on one stream. ``allocate``: gives memory of the device, as (address, what keeps it)."""

    def __init__(self, functions: Any, stream: int, allocate: Callable[[int], tuple[int, object]]):
        self.functions, self._allocate = functions, allocate
        self._handle, self._params = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cusolverDnCreate", ctypes.byref(self._handle))
        self._call("cusolverDnSetStream", self._handle, ctypes.c_void_p(stream))
        self._call("cusolverDnCreateParams", ctypes.byref(self._params))
        self._room: dict[bool, tuple[int, int, object]] = {}  # of the device, of the host: bytes, address, owner
        self._kept: list[object] = []

    def factorize(self, f: Factorization, addresses: tuple[int, ...]) -> None:
        """Give the stream the factorization of the matrices at the first address."""
        name = "cusolverDn" + _STEP[f.kind]
        if f.kind == "eigh" and f.batch > 1 and hasattr(self.functions, "cusolverDnXsyevBatched"):  # from CUDA 12.6
            *rest, info = addresses
            return self._run("cusolverDnXsyevBatched", f, (*rest,), info, (ctypes.c_int64(f.batch),))
        for k in range(f.batch):
            *rest, info = (a + k * n for a, n in zip(addresses, f.nbytes, strict=True))
            self._run(name, f, (*rest,), info, ())

    def _run(self, name: str, f: Factorization, places: tuple[int, ...], info: int, batch: tuple[Any, ...]) -> None:
        given = (self._handle, self._params, *_arguments(f, places))
        sizes = ctypes.c_size_t(), ctypes.c_size_t()
        self._call(name + "_bufferSize", *given, *map(ctypes.byref, sizes), *batch)
        room: list[Any] = []
        for size, device in zip(sizes, (True, False), strict=True):
            room += [ctypes.c_void_p(self._memory(size.value, device)), size]
        self._call(name, *given, *room, ctypes.c_void_p(info), *batch)

    def _memory(self, nbytes: int, device: bool) -> int:
        held, address, _ = self._room.get(device, (0, 0, None))
        if nbytes > held:
            if device:
                address, owner = self._allocate(nbytes)
            else:
                owner = np.empty(nbytes, np.uint8)
                address = owner.ctypes.data
            self._room[device] = nbytes, address, owner
            self._kept.append(owner)
        return address

    def __del__(self) -> None:
        if self._handle:
            self.functions.cusolverDnDestroy(self._handle)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.functions, name)(*arguments)
        if status:
            raise InternalError(f"{name}: status {status} of cuSOLVER")


def _arguments(f: Factorization, places: tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments between the parameters and the memory that is worked in: of the call, and of the question how much
    memory that is."""
    kind, real = ctypes.c_int(DATA[f.dtype.char]), ctypes.c_int(DATA[f.dtype.char.lower()])
    a, values, *vectors = map(ctypes.c_void_p, places)
    m, n = ctypes.c_int64(f.m), ctypes.c_int64(f.n)
    if f.kind == "eigh":
        return (ctypes.c_int(f.vectors), ctypes.c_int(LOWER if f.lower else UPPER), n, kind, a, n, real, values, kind)
    if f.kind == "eig":
        right = vectors[0] if f.vectors else None
        return (ctypes.c_int(0), ctypes.c_int(f.vectors), n, kind, a, n, kind, values, kind, None, n, kind, right, n,
                kind)
    how = ctypes.c_byte(ord("N" if not f.vectors else "A" if f.full else "S"))
    u, vt = vectors if f.vectors else (None, None)
    return how, how, m, n, kind, a, m, real, values, kind, u, m, kind, vt, n, kind
