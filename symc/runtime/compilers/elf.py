"""From an object file in ELF for x86-64 to an ``Image``: sections in a row, references between them solved.

It links what LLVM writes for kernels and native functions: position-independent code in the small code model,
constants, calls of functions by name. Anything else (writable data, threads' data, other processors) raises
Unsupported, and llvmlite loads the object file. The names and numbers are those of the System V ABI, AMD64 supplement,
section 4.4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from symc.codegen.cpu.text import Unsupported
from symc.ir.record import dataclass, field
from symc.runtime.image import Image

HEADER = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
X86_64 = 62
ALLOCATED, WRITABLE, SYMBOLS, RELOCATIONS, NO_BITS, UNWIND = 2, 1, 2, 4, 8, 0x70000001
ABSOLUTE_64, RELATIVE_32, CALL_32, TABLE_32, TABLE_32X, TABLE_32REX, RELATIVE_64 = 1, 2, 4, 9, 41, 42, 24
JUMP = b"\xff\x25"  # jmp *[rip + 32 bits]


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@dataclass
class _Linker:
    """Builds the code of an image. ``starts``: of the sections that are part of it; ``table``: of each function that is
    called, where its address will be; ``stubs``: where a jump to it is."""

    data: bytes
    sections: list[_Section]
    code: bytearray = field(default_factory=bytearray)
    starts: dict[int, int] = field(default_factory=dict)
    table: dict[str, int] = field(default_factory=dict)
    stubs: dict[str, int] = field(default_factory=dict)

    def place(self) -> None:
        """Lay out what is part of the program. How to unwind the stack is left out: nothing here throws."""
        for k, s in enumerate(self.sections):
            if not s.flags & ALLOCATED or s.kind == UNWIND or s.name == ".eh_frame":
                continue
            if s.flags & WRITABLE or s.kind == NO_BITS:
                if s.size:
                    raise Unsupported(f"the section {s.name}")
                continue
            self.starts[k] = self.append(self.data[s.offset : s.offset + s.size], s.align)

    def append(self, piece: bytes, align: int) -> int:
        self.code += bytes(-len(self.code) % max(1, align))
        self.code += piece
        return len(self.code) - len(piece)

    def address_of(self, name: str) -> int:
        """Where the address of a function outside will be."""
        if name not in self.table:
            self.table[name] = self.append(bytes(8), 8)
        return self.table[name]

    def stub(self, name: str) -> int:
        """A jump to a function outside."""
        if name not in self.stubs:
            table = self.address_of(name)
            at = self.append(JUMP + bytes(4), 2)
            struct.pack_into("<i", self.code, at + 2, table - (at + 6))
            self.stubs[name] = at
        return self.stubs[name]

    def relocate(self, at: int, kind: int, name: str, target: int | None, addend: int) -> None:
        """Solve one reference. ``target``: where the symbol is, None outside."""
        if kind in (TABLE_32, TABLE_32X, TABLE_32REX):
            if target is not None:
                raise Unsupported(f"the address of {name} in memory")
            target = self.address_of(name)
        elif kind in (RELATIVE_32, CALL_32):
            target = self.stub(name) if target is None else target
        else:
            raise Unsupported(f"the relocation {kind}")
        struct.pack_into("<i", self.code, at, target + addend - at)

    def symbols(self) -> list[tuple[str, int | None, bool]]:
        """The name of each symbol, where it is (None outside), and whether others may see it."""
        (section,) = [s for s in self.sections if s.kind == SYMBOLS]
        strings = self.sections[section.link].offset
        found: list[tuple[str, int | None, bool]] = []
        for name, info, _, where, value, _ in self.entries(section, "<IBBHQQ"):
            inside = where in self.starts
            if 0 < where < 0xFF00 and not inside and info & 15 not in (3, 4):
                raise Unsupported("a symbol of a section that is left out")
            found.append((_string(self.data, strings + name), self.starts[where] + value if inside else None,
                          bool(info >> 4)))
        return found

    def entries(self, section: _Section, layout: str) -> Iterator[tuple]:
        return struct.iter_unpack(layout, self.data[section.offset : section.offset + section.size])


def link(data: bytes) -> Image:
    """The image of an object file. Raises Unsupported."""
    if not data.startswith(HEADER) or struct.unpack_from("<H", data, 18)[0] != X86_64:
        raise Unsupported("object files that are not ELF for x86-64")
    linker = _Linker(data, _sections(data))
    linker.place()
    symbols = linker.symbols()
    for s in linker.sections:
        if s.kind != RELOCATIONS or s.info not in linker.starts:
            continue
        for offset, info, addend in linker.entries(s, "<QQq"):
            name, target, _ = symbols[info >> 32]
            linker.relocate(linker.starts[s.info] + offset, info & 0xFFFFFFFF, name, target, addend)
    exports = {name: at for name, at, visible in symbols if visible and at is not None}
    return Image(bytes(linker.code), exports, linker.table)


def _sections(data: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, start + k * size) for k in range(count)]
    strings = rows[names][4]
    return [_Section(_string(data, strings + r[0]), r[1], r[2], r[4], r[5], r[6], r[7], r[8]) for r in rows]


def _string(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
