"""GPUs that work together, by NCCL, called through ctypes. One communicator a GPU; its calls are ordered on a stream.

All ranks must make the same calls in the same order, each in a thread of its own: it may wait for the others.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from symc.errors import DTypeError, InternalError
from symc.runtime.cuda import libraries
from symc.runtime.cuda.device import Stream

#: Values of ncclDataType_t and ncclRedOp_t (nccl.h).
DATA = {"b": 0, "B": 1, "?": 1, "i": 2, "I": 3, "l": 4, "q": 4, "L": 5, "Q": 5, "e": 6, "f": 7, "d": 8}
KINDS = {"add": 0, "maximum": 2, "minimum": 3}


@functools.cache
def library(major: int | None = None) -> Any:
    """NCCL. Raises InputError where it is missing."""
    functions, _ = libraries.load(libraries.NCCL, major)
    functions.ncclGetErrorString.restype = ctypes.c_char_p
    pointer, count, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    functions.ncclCommInitAll.argtypes = [pointer, number, pointer]
    functions.ncclCommDestroy.argtypes = [pointer]
    functions.ncclAllReduce.argtypes = [pointer, pointer, count, number, number, pointer, pointer]
    return functions


class NcclCommunicator:
    """A rank, which any thread may call: inside ``here`` its device is the current one. ``stream`` in its calls is one
    of that device. ``count``: counts them."""

    def __init__(self, functions: Any, handle: int, rank: int, size: int):
        self.functions, self.handle, self.rank, self.size = functions, handle, rank, size
        self.here: AbstractContextManager[Any] = nullcontext()
        self.count: Callable[[str], Any] = len

    def all_reduce(self, target: int, source: int, count: int, dtype: np.dtype, kind: str, stream: Stream) -> None:
        if dtype.kind == "c" and kind != "add":
            raise DTypeError("the greatest and smallest of complex numbers are not defined")
        data, each = _data(dtype)
        with self.here:
            self._call("ncclAllReduce", source, target, count * each, data, KINDS[kind], self.handle, stream.handle)
        self.count("library_calls")

    def close(self) -> None:
        self._call("ncclCommDestroy", self.handle)

    def _call(self, name: str, *arguments: Any) -> None:
        check(self.functions, name, getattr(self.functions, name)(*arguments))


def _data(dtype: np.dtype) -> tuple[int, int]:
    """NCCL's name of a dtype, and the number of its numbers in one element: a complex number is two, added apart."""
    char = {"F": "f", "D": "d"}.get(dtype.char, dtype.char)
    if char not in DATA or char == "?":
        raise DTypeError(f"NCCL has no numbers of dtype {dtype}, so they cannot be reduced", help="cast them first")
    return DATA[char], 2 if dtype.kind == "c" else 1


def check(functions: Any, name: str, result: int) -> None:
    if result:
        raise InternalError(f"{name}: {functions.ncclGetErrorString(result).decode()}")


def communicators(devices: Sequence[int], major: int | None = None) -> list[NcclCommunicator]:
    """A rank for each of several GPUs of this process."""
    functions = library(major)
    handles = (ctypes.c_void_p * len(devices))()
    numbers = (ctypes.c_int * len(devices))(*devices)
    check(functions, "ncclCommInitAll", functions.ncclCommInitAll(handles, len(devices), numbers))
    return [NcclCommunicator(functions, h or 0, k, len(devices)) for k, h in enumerate(handles)]
