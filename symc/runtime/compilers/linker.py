"""Linker of object files: to images, for the ELF files of x86-64 that LLVM makes of our text."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from symc.runtime.compilers.image import Image

#: An ELF file of 64 bits, little-endian, for linking, of x86-64.
MAGIC, RELOCATABLE = b"\x7fELF\x02\x01", (1, 62)
PAGE = mmap.PAGESIZE
_SECTION, _SYMBOL, _RELOCATION, _WORD = map(struct.Struct, ("<IIQQQQIIQQ", "<IBBHQQ", "<QIIq", "<Q"))
#: Kinds and flags of sections, places of symbols.
_SYMBOLS, _RELOCATIONS, _BSS, _UNWIND = 2, 4, 8, 0x70000001
_WRITE, _ALLOCATED, _THREADS = 1, 2, 0x400
_UNDEFINED = 0
#: Kinds of relocations: an address, a distance (of how many bytes), a distance to a function, to where an address is.
_ADDRESS, _DISTANCE, _CALL, _TO_ADDRESS = 1, {2: 4, 4: 4, 9: 4, 24: 8, 41: 4, 42: 4}, 4, (9, 41, 42)
#: A jump to the address that is so far behind it.
_JUMP = struct.Struct("<2si2x")


class _Unknown(Exception):
    """An object file with something that only LLVM links."""


class _Symbol(NamedTuple):
    """A name, the number of its section, and where it is in there."""

    name: str
    section: int
    place: int


class _Relocation(NamedTuple):
    """A number to be filled in, of what kind, by a symbol and so many bytes more."""

    section: int
    place: int
    kind: int
    symbol: _Symbol
    plus: int


def linked(code: bytes, exports: Sequence[str]) -> Image | None:
    """The image of an object file, with the functions ``exports``; None for a file that LLVM has to load."""
    if code[: len(MAGIC)] != MAGIC or struct.unpack_from("<HH", code, 16) != RELOCATABLE:
        return None
    try:
        return _Linker(code).image(exports)
    except _Unknown:
        return None


class _Linker:
    """Puts what is fixed behind each other (sections, addresses that are filled in, jumps to these), and on other pages
    what is written."""

    def __init__(self, code: bytes):
        self.code, self.out = code, bytearray()
        (start,), (size, count) = _WORD.unpack_from(code, 40), struct.unpack_from("<HH", code, 58)
        self.sections = [_SECTION.unpack_from(code, start + k * size) for k in range(count)]
        self.at: dict[int, int] = {}  # of sections, by number
        self.addresses: dict[_Symbol, int] = {}  # where they are filled in
        self.jumps: dict[_Symbol, int] = {}
        self.own: list[int] = []
        self.slots: list[tuple[str, int]] = []

    def image(self, exports: Sequence[str]) -> Image:
        symbols = [s for section in self.sections if section[1] == _SYMBOLS for s in self._symbols(section)]
        relocations = [r for section in self.sections if section[1] == _RELOCATIONS
                       for r in self._relocations(section, symbols)]
        self._put(0)
        for r in relocations:
            if r.kind in _TO_ADDRESS or r.kind == _CALL and r.symbol.section == _UNDEFINED:
                self._reach(r.symbol, r.kind == _CALL)
        self._align(PAGE)
        fixed = len(self.out)
        self._put(_WRITE)
        for s, at in self.addresses.items():
            self._fill(at, s, 0)
        for r in relocations:
            self._relocate(r)
        known = {s.name: s for s in symbols}
        return Image(bytes(self.out), {n: self._place(known[n]) for n in exports}, self.slots, self.own, fixed)

    # -- what the file says

    def _symbols(self, section: Sequence[int]) -> Iterator[_Symbol]:
        offset, size, names = section[4:7]
        for name, _, _, where, place, _ in _SYMBOL.iter_unpack(self.code[offset : offset + size]):
            at = self.sections[names][4] + name
            yield _Symbol(self.code[at : self.code.index(b"\0", at)].decode(), where, place)

    def _relocations(self, section: Sequence[int], symbols: Sequence[_Symbol]) -> Iterator[_Relocation]:
        offset, size, of = section[4], section[5], section[7]
        if self._is_put(of):
            for place, kind, symbol, plus in _RELOCATION.iter_unpack(self.code[offset : offset + size]):
                yield _Relocation(of, place, kind, symbols[symbol], plus)

    def _is_put(self, k: int) -> bool:
        _, kind, flags, *_ = self.sections[k]
        return bool(flags & _ALLOCATED) and kind != _UNWIND

    # -- the image

    def _align(self, to: int) -> None:
        self.out += bytes(-len(self.out) % max(1, to))

    def _put(self, written: int) -> None:
        """The sections that are written, or those that are not."""
        for k, (_, kind, flags, _, offset, size, _, _, align, _) in enumerate(self.sections):
            if flags & _THREADS or align > PAGE:
                raise _Unknown
            if self._is_put(k) and flags & _WRITE == written:
                self._align(align)
                self.at[k] = len(self.out)
                self.out += bytes(size) if kind == _BSS else self.code[offset : offset + size]

    def _reach(self, s: _Symbol, jump: bool) -> None:
        """Make room for the address of a symbol, and for a jump there."""
        if s not in self.addresses:
            self._align(8)
            self.addresses[s] = len(self.out)
            self.out += bytes(8)
        if jump and s not in self.jumps:
            self.jumps[s] = at = len(self.out)
            self.out += _JUMP.pack(b"\xff\x25", self.addresses[s] - at - 6)

    def _place(self, s: _Symbol) -> int:
        if s.section not in self.at:
            raise _Unknown
        return self.at[s.section] + s.place

    def _fill(self, at: int, s: _Symbol, plus: int) -> None:
        """An address, which is known where the image is loaded."""
        if s.section != _UNDEFINED:
            _WORD.pack_into(self.out, at, self._place(s) + plus)
            self.own.append(at)
        elif plus:
            raise _Unknown
        else:
            self.slots.append((s.name, at))

    def _relocate(self, r: _Relocation) -> None:
        at = self.at[r.section] + r.place
        if r.kind == _ADDRESS:
            self._fill(at, r.symbol, r.plus)
            return
        if r.kind not in _DISTANCE:
            raise _Unknown
        to = self.addresses[r.symbol] if r.kind in _TO_ADDRESS else self.jumps[r.symbol] if (
            r.symbol in self.jumps and r.kind == _CALL) else self._place(r.symbol)
        size = _DISTANCE[r.kind]
        self.out[at : at + size] = (to + r.plus - at).to_bytes(size, "little", signed=True)
