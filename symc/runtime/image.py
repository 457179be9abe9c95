"""Machine code that is ready to run: bytes that may lie anywhere, where their functions start, and what they call.

A process that finds an image on disk maps it and writes the addresses of the functions it calls, which takes a tenth of
a millisecond; no library that compiles is loaded. Images are made by ``symc.runtime.compilers.elf``.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable, Mapping

from symc.ir.record import dataclass

READ_AND_EXECUTE = 5


class Symbol(int):
    """The address of native code, and the name by which another process finds it."""

    name: str

    def __new__(cls, address: int, name: str) -> Symbol:
        self = super().__new__(cls, address)
        self.name = name
        return self


@dataclass(frozen=True)
class Image:
    """``exports``: where functions start; ``imports``: where the address of each function that is called is to be
    written, 8 bytes; both in bytes from the start."""

    code: bytes
    exports: Mapping[str, int]
    imports: Mapping[str, int]

    def encoded(self) -> bytes:
        """Two lines of names and places, then the code."""
        return b"\n".join([_line(self.exports), _line(self.imports), self.code])

    @classmethod
    def decoded(cls, data: bytes) -> Image:
        exports, imports, code = data.split(b"\n", 2)
        return cls(code, _names(exports), _names(imports))


def _line(names: Mapping[str, int]) -> bytes:
    return " ".join(f"{name} {place}" for name, place in names.items()).encode()


def _names(line: bytes) -> dict[str, int]:
    words = line.decode().split()
    return {name: int(place) for name, place in zip(words[::2], words[1::2], strict=True)}


_mapped: list[mmap.mmap] = []  # for as long as the process lives


def load(image: Image, find: Callable[[str], int]) -> dict[str, int]:
    """The addresses of its functions, in memory that can be read and run. ``find`` knows what it calls.

    Memory is first written, then made executable: it is never both.
    """
    code = bytearray(image.code)
    for name, place in image.imports.items():
        code[place : place + 8] = find(name).to_bytes(8, "little")
    pages = mmap.mmap(-1, len(code), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    pages[: len(code)] = bytes(code)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    if _c_library().mprotect(ctypes.c_void_p(start), ctypes.c_size_t(len(pages)), READ_AND_EXECUTE):
        raise OSError(ctypes.get_errno(), "memory cannot be made executable")
    _mapped.append(pages)
    return {name: start + place for name, place in image.exports.items()}


@functools.cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def in_process(name: str) -> int:
    """The address of a function of the C library, or of another library that the interpreter has loaded."""
    try:
        return ctypes.cast(_c_library()[name], ctypes.c_void_p).value or 0
    except AttributeError:
        raise LookupError(name) from None
