"""Zip files as symc writes them, read without ``zipfile``, whose import takes longer than loading a function does.

What is unusual in a file (comments, members beyond 4 GiB, damage) is left to ``zipfile``, which says what is wrong.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from typing import Any, BinaryIO, NamedTuple

from symc.errors import InputError

STORED, DEFLATED = 0, 8
_END, _ENTRY, _LOCAL = struct.Struct("<4s4H2LH"), struct.Struct("<4s4x2H4x3L4H6xL"), struct.Struct("<4s22x2H")


class Member(NamedTuple):
    """Entry of the directory, with names of ``zipfile.ZipInfo``."""

    filename: str
    header_offset: int
    flag_bits: int
    compress_type: int
    CRC: int
    compress_size: int
    file_size: int


class Zip:
    """Members of a zip file. Raises InputError for what is none, or is damaged."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self.size = file.seek(0, os.SEEK_END)
        plain = _directory(file, self.size)
        self.members: list[Any] = _by_zipfile(file) if plain is None else plain

    def read(self, member: Any) -> bytes:
        """A member, whole, its checksum looked at."""
        found = _data(self._file, member) if isinstance(member, Member) else None
        return _by_zipfile(self._file, member.filename) if found is None else found


def _directory(file: BinaryIO, size: int) -> list[Member] | None:
    """The members of a file with nothing unusual."""
    file.seek(max(0, size - _END.size))
    data = file.read(_END.size)
    if len(data) < _END.size:
        return None
    mark, disk, first, here, count, length, start, comment = _END.unpack(data)
    if mark != b"PK\5\6" or disk or first or comment or here != count or start + length + _END.size != size:
        return None
    file.seek(start)
    data, at, found = file.read(length), 0, []
    for _ in range(count):
        if at + _ENTRY.size > length:
            return None
        mark, *row, name, extra, comment, disk, offset = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size + name
        if mark != b"PK\1\2" or extra or comment or disk or row[0]:
            return None
        found.append(Member(data[at - name : at].decode("ascii", "replace"), offset, *row))
    return found if at == length else None


def _data(file: BinaryIO, m: Member) -> bytes | None:
    """The bytes of a member; None if they are not what the directory says."""
    file.seek(m.header_offset)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size or not head.startswith(b"PK\3\4"):
        return None
    _, name, extra = _LOCAL.unpack(head)
    if file.read(name) != m.filename.encode():
        return None
    file.seek(extra, os.SEEK_CUR)
    data = file.read(m.compress_size)
    if m.compress_type == DEFLATED:
        try:
            data = zlib.decompressobj(-15).decompress(data, m.file_size + 1)
        except zlib.error:
            return None
    return data if len(data) == m.file_size and zlib.crc32(data) == m.CRC else None


def _by_zipfile(file: BinaryIO, name: str = "") -> Any:
    """The file by ``zipfile``, or a member of it."""
    import zipfile

    try:
        opened = zipfile.ZipFile(file)
        return opened.read(name) if name else opened.infolist()
    except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError) as e:
        if isinstance(e, OSError) and e.errno != errno.EINVAL:  # which a place before the file is
            raise
        raise InputError(f"{type(e).__name__}: {e}") from None
