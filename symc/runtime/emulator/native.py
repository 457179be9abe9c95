"""The structures and functions of the emulator's runtime (native/state.h), as Python calls them.

Calls keep Python's lock: the runtime has one state for the whole process.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_char, c_int, c_uint32, c_uint64, c_void_p

from symc.runtime.emulator import build

NOWHERE, FREED, UNWRITTEN, WRITTEN = range(4)


class Span(ctypes.Structure):
    _fields_ = [("start", c_uint64), ("bytes", c_uint64), ("reads", c_int), ("writes", c_int),
                ("bytes_read", c_uint64), ("bytes_written", c_uint64)]


class Traffic(ctypes.Structure):
    _fields_ = [("loads", c_uint64 * 6), ("stores", c_uint64 * 6), ("bytes_read", c_uint64),
                ("bytes_written", c_uint64), ("atomics", c_uint64), ("sectors", c_uint64), ("sector_bytes", c_uint64),
                ("shared_loads", c_uint64), ("shared_stores", c_uint64), ("bank_conflicts", c_uint64)]


class Failure(ctypes.Structure):
    _fields_ = [("kind", c_char * 16), ("text", c_char * 480), ("code", c_uint64), ("other_code", c_uint64),
                ("line", c_int), ("other_line", c_int), ("block", c_uint32), ("thread", c_int)]


class Launch(ctypes.Structure):
    _fields_ = [("machine", c_void_p), ("run", c_void_p), ("arguments", c_void_p), ("grid", c_uint32 * 3),
                ("threads", c_uint32), ("shared_bytes", c_uint32), ("checked", c_uint32), ("order", c_uint64),
                ("sample", c_uint64), ("region", c_void_p), ("spans", ctypes.POINTER(Span)), ("span_count", c_uint64),
                ("library", c_void_p * 4), ("traffic", ctypes.POINTER(Traffic)), ("failure", ctypes.POINTER(Failure))]


@functools.cache
def runtime() -> ctypes.PyDLL:
    """The runtime, compiled when it is first needed."""
    return load(build.runtime())


def load(path: str) -> ctypes.PyDLL:
    """A library of the runtime, with the types of its functions."""
    lib = ctypes.PyDLL(path)
    for name, result, arguments in (
            ("symc_reserve", c_uint64, [c_uint64]),
            ("symc_unreserve", None, [c_uint64, c_uint64]),
            ("symc_empty", None, [c_uint64, c_uint64]),
            ("symc_region_new", c_void_p, [c_uint64, c_uint64]),
            ("symc_region_delete", None, [c_void_p]),
            ("symc_region_mark", None, [c_void_p, c_uint64, c_uint64, c_int]),
            ("symc_region_unwritten", c_uint64, [c_void_p, c_uint64, c_uint64]),
            ("symc_region_copy", None, [c_void_p, c_uint64, c_uint64, c_uint64]),
            ("symc_launch", c_int, [ctypes.POINTER(Launch)])):
        f = getattr(lib, name)
        f.restype, f.argtypes = result, arguments
    return lib
