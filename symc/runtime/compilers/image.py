"""Images of machine code, linked when it is compiled (``linker``): bytes that run wherever they lie, once addresses are
filled in.

LLVM's linker would do the same at every load, but to import it takes longer than all else that a process does which
finds its code on disk. Object files that our linker does not know (of other systems, with other relocations) stay as
they are, and LLVM loads them.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symc.ir.record import dataclass

_WORD = struct.Struct("<Q")


@dataclass(frozen=True)
class Image:
    """``places``: of functions that others call. ``slots``: where the addresses of symbols go. ``own``: where numbers
    are that are places in the image itself. ``fixed``: bytes at its start that are not written after that."""

    code: bytes
    places: Mapping[str, int]
    slots: Sequence[tuple[str, int]]
    own: Sequence[int]
    fixed: int


@functools.cache
def _process() -> Any:
    return ctypes.CDLL(None)


def for_good(kept: Any) -> None:
    """Keeps what holds machine code, when Python has ended too: threads may still run it until the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


class Loaded:
    """Functions in memory: their addresses by name."""

    __slots__ = ("__weakref__", "places")

    def __init__(self, places: Mapping[str, int]):
        self.places = places


class Code(Loaded):
    """An image in memory, freed with its last owner: whoever runs it is one, until it has run. When Python ends it
    stays, as threads may still run it until the process ends.

    What it calls is in ``imports``, or in a library that the whole process sees. Raises LookupError for what is
    nowhere.
    """

    __slots__ = ("_memory",)

    def __init__(self, image: Image, imports: Mapping[str, int]):
        memory, start = _loaded(image, imports)
        super().__init__({name: start + place for name, place in image.places.items()})
        self._memory = memory
        for_good(memory)

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing,
                free: Callable[[Any], None] = ctypes.pythonapi.Py_DecRef, own: Any = ctypes.py_object) -> None:
        if not ending() and hasattr(self, "_memory"):
            free(own(self._memory))


def _loaded(image: Image, imports: Mapping[str, int]) -> tuple[mmap.mmap, int]:
    """The memory of an image, and where it starts."""
    memory = mmap.mmap(-1, len(image.code), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = image.code
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for at in image.own:
        _WORD.pack_into(memory, at, start + _WORD.unpack_from(memory, at)[0])
    for name, at in image.slots:
        _WORD.pack_into(memory, at, imports[name] if name in imports else _address(name))
    if _process().mprotect(ctypes.c_void_p(start), ctypes.c_size_t(image.fixed), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError("memory cannot be made executable")
    return memory, start


def _address(name: str) -> int:
    try:
        return ctypes.cast(getattr(_process(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise LookupError(f"machine code calls {name}, which is nowhere in this process") from None
