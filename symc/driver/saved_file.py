"""The gate for saved functions: what is looked at in a file before it is unpacked, and in its parts.

A file is a zip of five members at most, each once, none encrypted. What it unpacks to is bounded by its own size, so
that a small file is not a large array.
"""

from __future__ import annotations

import ast
import functools
import io
import json
import math
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from symc.driver.plain_zip import DEFLATED, STORED, Zip
from symc.errors import InputError
from symc.ir.dtypes import foreign, undescribed
from symc.ir.types import DTYPE_NAMES
from symc.runtime.cache.regular_file import open_quickly

MEMBERS = ("meta.json", "function.ir", "final.ir", "arrays.npz", "state.npz", "defaults.npz")
#: A file may unpack to so many bytes, and so many times its size.
FREE, RATIO = 64 << 20, 64
_MAGIC = b"\x93NUMPY"
_HEADER = (rb"\{'descr': ('[<>|=][a-zV][0-9]{1,2}'|\[\('\w+', '[<|]u[1-8]'\)\]), 'fortran_order': False, "
           rb"'shape': \(([0-9, ]*)\), \} *\n")
_ENCRYPTED = 1
#: What reading data that are not as they should be raises, whoever reads them.
JUNK = (ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError,
        RecursionError, TypeError, ValueError, struct.error, zlib.error)


class SavedFile:
    """The members of a file. Raises InputError, or one of ``JUNK``, for a file that is none of ours."""

    def __init__(self, file: BinaryIO, members: tuple[str, ...] = MEMBERS):
        self._zip = Zip(file)
        _check_members(self._zip.members, members)
        total = sum(i.file_size for i in self._zip.members)
        if total > FREE + RATIO * self._zip.size:
            raise InputError(f"it unpacks to {total:,} bytes, from {self._zip.size:,}")
        self.names = {i.filename: i for i in self._zip.members}

    def bytes(self, name: str) -> bytes:
        """A member, whole. Its checksum is looked at."""
        return self._zip.read(self.names[name])

    def text(self, name: str) -> str:
        return self.bytes(name).decode()

    @functools.cached_property
    def meta(self) -> dict[str, Any]:
        found = json.loads(self.text("meta.json"), parse_constant=_no_constant)
        if not isinstance(found, dict):
            raise InputError("meta.json holds no object")
        return found


def open_saved(path: Any) -> BinaryIO:
    """The file at a path. Raises InputError for what is none (a pipe, a device, a folder), without waiting for it."""
    try:
        handle = open_quickly(os.fspath(path))
    except ValueError as e:
        raise InputError(f"{path!r:.80} is no name of a file: {e}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{os.fspath(path)!r} is not a file", help="a folder, a pipe or a device is there")
    return open(handle, "rb")


def _check_members(infos: Sequence[Any], known: tuple[str, ...] | None = None) -> None:
    names = [i.filename for i in infos]
    for k, i in enumerate(infos):
        if i.filename in names[:k]:
            raise InputError(f"it has two members {i.filename!r}")
        if known is not None and i.filename not in known:
            raise InputError(f"it has a member {i.filename[:80]!r}, which is not expected")
        if i.flag_bits & _ENCRYPTED:
            raise InputError("it is encrypted")
        if i.compress_type not in (STORED, DEFLATED):
            raise InputError(f"its member {i.filename!r} is packed in a way that is not used")


def _no_constant(name: str) -> Any:
    raise InputError(f"meta.json holds {name}, which is no JSON")


# --- arrays -----------------------------------------------------------------------------------------------------------


class Arrays(Mapping[str, np.ndarray]):
    """The arrays of an npz, by name, in the byte order of this machine; each is read when it is asked for. They are
    stored as they are, so that they are no larger than the npz."""

    def __init__(self, data: bytes):
        self._zip = Zip(io.BytesIO(data))
        _check_members(self._zip.members)
        if any(i.compress_type != STORED for i in self._zip.members):
            raise InputError("its arrays are packed twice")
        self._names = {i.filename.removesuffix(".npy"): i for i in self._zip.members}

    def __getitem__(self, name: str) -> np.ndarray:
        return read_array(self._zip.read(self._names[name]), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def read_array(data: bytes, name: str) -> np.ndarray:
    """The array in the bytes of an ``.npy`` file: numbers in C order, of a dtype of symc, and nothing else."""
    width = {1: 2, 2: 4, 3: 4}.get(data[6] if len(data) > 10 and data.startswith(_MAGIC) else 0)
    if width is None:
        raise InputError(f"the array {name} is not in NumPy's format")
    start = 8 + width + int.from_bytes(data[8 : 8 + width], "little")
    header = re.fullmatch(_HEADER, data[8 + width : start])
    dtype = np.dtype(ast.literal_eval(header[1].decode())) if header else None
    found = None if dtype is None else undescribed(np.empty(0, dtype)).dtype
    if header is None or dtype is None or found is None or (
            foreign(found) is None and dtype.newbyteorder("=") not in DTYPE_NAMES):
        raise InputError(f"the array {name} is none of numbers")
    shape = tuple([int(n) for n in header[2].decode().replace(" ", "").split(",") if n])
    if len(data) - start != math.prod(shape) * dtype.itemsize:
        raise InputError(f"the array {name} of {dtype}{list(shape)} has {len(data) - start} bytes")
    return np.frombuffer(data, found, offset=start).reshape(shape).astype(found.newbyteorder("="))  # always a copy
