"""Calls without Python between: a builtin for a compiled function.

The builtin serves calls with arrays and numbers of any sizes; it hands everything else to ``slow``, which is
Python. The native code is the same for all functions (``native.entry_ir``); here its data is written. Where the
interpreter or NumPy is not as that code expects, there are no entries, and ``slow`` serves all calls.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import of_handler
from symc.ir.locks import closed, new_lock
from symc.ir.record import dataclass
from symc.runtime.cache import object_cache, version
from symc.runtime.cache.machine_code import load_module
from symc.runtime.cpu.executable import NDARRAY
from symc.runtime.cpu.lowered import Lowered
from symc.runtime.cpu.native.block import (
    ARRAY,
    ITEM,
    MOST_ARGUMENTS,
    MOST_FRAMES,
    MOST_RESULTS,
    NUMBER,
    PYTHON,
    Block,
    Kind,
    Row,
)
from symc.runtime.cpu.native.instructions import Op, Word

__all__ = ["Entry", "States", "kept", "serves", "supported"]

#: Flags of arrays: contiguous and aligned.
WANTED = 0x1 | 0x100
#: Of those of states too: writeable.
STATE = 0x400
OUT = sys.intern("out")
#: What the words from ``Block.FALSE`` on point to.
_OBJECTS = (False, True, 1, sys.intern("array"), sys.intern("version"), sys.intern("watched"))
_FASTCALL_WITH_KEYWORDS = 0x80 | 0x2


class _Method(ctypes.Structure):
    """``PyMethodDef``"""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p))


@dataclass(frozen=True, eq=False)
class _Native:
    """Addresses that all entries of a process share."""

    method: _Method
    empty: int  # the addresses of PyArray_Empty, PyArray_CanCastArrayTo, PyArray_FromArray
    can_cast: int
    from_array: int

    def builtin(self, this: tuple) -> Callable[..., Any]:
        new = ctypes.pythonapi["PyCFunction_NewEx"]  # an object of its own: others may have given it other types
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        return new(ctypes.addressof(self.method), this, None)


_lock = new_lock()
_native: _Native | bool | None = False  # False: not tried


def supported() -> _Native | None:
    """The native code, if it works here."""
    global _native
    if _native is False:
        with _lock:
            if _native is False:
                _native = _load() if _possible() else None
    assert not isinstance(_native, bool)
    return _native


def kept() -> bool:
    """True where the native code need not be compiled first."""
    return _native is not False or object_cache.read_data(_note()) is not None


def _possible() -> bool:
    """CPython with its lock, 64 bits, objects of two words."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    return struct.calcsize("P") == 8 and object.__basicsize__ == 16 and sys.byteorder == "little"


def _as_expected() -> bool:
    """Arrays, tuples and numbers are laid out as the entry reads them."""
    item = object()
    pair = (item, item)
    if ctypes.c_int64.from_address(id(pair) + 8 * ITEM).value != id(item):
        return False
    samples: list[np.ndarray] = [np.zeros((3, 5)), np.zeros((2, 3, 4), np.float32)[:, 1:], np.zeros((), np.int8)]
    numbers = [(2.5, "f8"), *[(np.dtype(d).type(3), d) for d in ("f8", "f4", "i8", "i4", "i1", "u8", "?", "c16")]]
    return all(_is_laid_out(a) for a in [*samples, np.zeros(7)[::2]]) and all(
        ctypes.string_at(id(x) + 8 * NUMBER, np.dtype(d).itemsize) == np.array(x, d).tobytes() for x, d in numbers)


def _is_laid_out(a: np.ndarray) -> bool:
    def word(name: str, type_: Any = ctypes.c_int64) -> int:
        return type_.from_address(id(a) + 8 * ARRAY[name]).value

    if (word("type"), word("descr"), word("data")) != (id(np.ndarray), id(a.dtype), a.ctypes.data):
        return False
    if (word("nd", ctypes.c_int32), word("flags", ctypes.c_int32)) != (a.ndim, a.flags.num):
        return False
    shape = (ctypes.c_int64 * a.ndim).from_address(word("dims")) if a.ndim else ()
    return tuple(shape) == a.shape and (a.flags.num & WANTED == WANTED) == (a.flags.c_contiguous and a.flags.aligned)


def _load() -> _Native | None:
    """Compile, and see that it serves calls."""
    try:
        address = _built()
        native = _Native(_Method(b"__call__", address, _FASTCALL_WITH_KEYWORDS, None), *_of_numpy(184, 274, 109))
        return native if _serves(native) else None
    except Exception as e:  # whatever is not here or not as expected: there is another way
        if of_handler(e):
            raise
        return None


def _built() -> int:
    """The address of the function."""
    python = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in PYTHON}
    # level 0 would take 25 ms less to compile, which is done once a machine, and 20 ns more in each call
    return load_module("entry", _text, 2, python)("symc_entry")


def _text() -> str:
    from symc.runtime.cpu.native.entry_ir import text

    return text()


def _of_numpy(*entries: int) -> list[int]:
    """Addresses of functions: entries of the table that every extension module is given."""
    try:
        from numpy._core import _multiarray_umath as core  # type: ignore[attr-defined]
    except ImportError:
        from numpy.core import _multiarray_umath as core  # type: ignore[attr-defined, no-redef]
    get = ctypes.pythonapi["PyCapsule_GetPointer"]
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = ctypes.cast(get(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    if table[2] != id(np.ndarray) or not all(table[k] for k in entries):
        raise RuntimeError("the table of NumPy's functions is another one")
    return [table[k] or 0 for k in entries]


def _serves(native: _Native) -> bool:
    """True if objects are as an entry reads them, and it serves calls as it should: tried once by this version,
    interpreter and NumPy, and noted on disk."""
    if object_cache.read_data(_note()) is None:
        if not (_as_expected() and _copies(native)):
            return False
        object_cache.write_data(_note(), b"")
    return True


def _note() -> str:
    return object_cache.key([version.of_compilers(), "entry", sys.version, np.__version__, np.__file__])


def _copies(native: _Native) -> bool:
    """True if an entry that copies an array does so."""
    from symc.runtime.cpu.executor import Code

    code = Code()
    first, dims = code.slots([0, 0]), code.slots([-1, -1])
    code.arguments += [int(Op.ARGUMENT), first, 2, dims, NDARRAY]
    code.emit(Op.OPEN, first + 1, 1, NDARRAY)
    code.emit(Op.COPY, first + 1, first, 48)
    executable = code.finish()
    d = np.dtype("float64")
    entry = Entry([(d, 2)], [(d, 1, dims, 2)], 1, None, first, ["a"], True, native)
    call = entry.builtin(lambda *args, **kwargs: (args, kwargs), None)
    entry.add(executable)
    for shape in ((2, 3), (3, 2)):
        a = np.arange(6.0).reshape(shape)
        copy = call(a)
        if type(copy) is not np.ndarray or copy.dtype is not d or copy.shape != shape or not np.array_equal(copy, a):
            return False
        if sys.getrefcount(copy) != sys.getrefcount(a) or not (copy.flags.owndata and copy.flags.carray):
            return False
        if not np.array_equal(call(np.asfortranarray(a)), a) or not np.array_equal(call(a.astype("i4")), a):
            return False
    other = np.zeros((2, 2), np.complex64)
    return call(other)[0][0] is other and call(x=1) == ((), {"x": 1}) and call() == ((), {})


@dataclass(frozen=True, eq=False)
class States:
    """Objects with ``array``, in the order of their arrays. Those in ``locked`` have ``lock``, ``version`` and
    ``watched``, too, and are locked in this order. ``updated``: some of these, each with the index of the new array
    among those that are made; -1 if the array is written in place. ``reads``: those that other arrays are computed of,
    of which the entry serves calls while they have the versions that it knows."""

    cells: Sequence[Any]
    locked: Sequence[Any]
    updated: Sequence[tuple[Any, int]]
    reads: Sequence[Any] = ()


def serves(lowered: Lowered) -> bool:
    """True if an entry can run this code, which must need no more than to be run."""
    found = lowered.made()
    return found is not None and len(found[0]) <= MOST_RESULTS and lowered.given <= MOST_ARGUMENTS


def _row(d: np.dtype, n: int, name: str | None) -> list[int]:
    """A ``Row``. A state has no name."""
    if d.kind in "iu" and d.isnative:
        info = np.iinfo(d)
        kind, low, high = Kind.INTEGER, int(info.min), min(int(info.max), 2**63 - 1)
    else:
        kind, low, high = {"d": Kind.DOUBLE, "f": Kind.SINGLE, "?": Kind.BOOL}.get(d.char, Kind.NONE), 0, 0
    row = {Row.DESCR: id(d), Row.ND: n, Row.FLAGS: WANTED if name is not None else WANTED | STATE,
           Row.SCALAR: id(d.type), Row.KIND: kind, Row.LOW: low, Row.HIGH: high,
           Row.NAME: 0 if name is None else id(name), Row.SIZE: d.itemsize}
    return [row[k] for k in Row if k != Row.WORDS]


class Entry:
    """Block of data that the builtin of a function reads. ``arguments`` (then states): dtype and rank of each; ``made``
    (results, then arrays of states): dtype, which array of the call it is, slot of its shape and rank of each;
    ``first``: the slot of the first array; ``names``: of the arguments (states have none); ``into``: the result may be
    written into ``out=``, several into a tuple."""

    def __init__(
        self,
        arguments: Sequence[tuple[np.dtype, int]],
        made: Sequence[tuple[np.dtype, int, int, int]],
        results: int,
        states: States | None,
        first: int,
        names: Sequence[str],
        into: bool,
        native: _Native,
    ):
        self._native = native
        count = 0 if states is None else len(states.cells)
        named: list[str | None] = [*map(sys.intern, names), *[None] * count]
        rows = [w for (d, n), name in zip(arguments, named, strict=True) for w in _row(d, n, name)]
        rows += [w for d, k, dims, n in made for w in (id(d), n, first + k, dims, d.itemsize)]
        dtypes = [*[d for d, _ in arguments], *[d for d, *_ in made]]
        self._kept: list[Any] = [states, named, dtypes, [d.type for d in dtypes]]
        if states is not None:
            methods = [m for c in states.locked for m in (c.lock.acquire, c.lock.release)]
            rows += [id(x) for x in (*methods, *states.cells)] + [w for c, k in states.updated for w in (id(c), k)]
            rows += [w for c in states.reads for w in (id(c), 0)]
            self._kept.append(methods)
        self._block = block = np.zeros(Block.ROWS + len(rows), np.int64)
        block[Block.ROWS :] = rows
        if states is not None:
            block[Block.LOCKS], block[Block.STATES] = len(states.locked), count
            block[Block.UPDATED], block[Block.READS] = len(states.updated), len(states.reads)
        block[Block.CLOSED] = ctypes.addressof(closed)
        block[Block.FALSE : Block.FALSE + len(_OBJECTS)] = [id(x) for x in _OBJECTS]
        block[Block.FIRST] = first
        block[Block.EMPTY] = native.empty
        block[Block.CAN_CAST], block[Block.FROM_ARRAY] = native.can_cast, native.from_array
        block[Block.FLOAT], block[Block.INT], block[Block.OUT] = id(float), id(int), id(OUT) if into else 0
        block[Block.TUPLES] = id(tuple)
        block[Block.ARRAY], block[Block.ARGS] = id(np.ndarray), len(arguments) - count
        block[Block.MADE], block[Block.RESULTS] = len(made), results
        self._frames: list[tuple[Any, Any]] = []
        self._versions: Sequence[int] | None = None

    def builtin(self, slow: Callable[..., Any], fill: Callable[[Any], Any] | None) -> Callable[..., Any]:
        """The builtin, once. ``fill`` makes a tuple of results what is returned; None if there is one result, which is
        returned alone. It keeps ``slow``; nothing here keeps it, as ``slow`` may know the entry."""
        block = self._block
        block[Block.SLOW], block[Block.TUPLE] = id(slow), fill is not None
        block[Block.FILL] = 0 if fill is None or fill is tuple else id(fill)
        return self._native.builtin((block, slow, fill, self))

    def know(self, versions: Sequence[int] | None) -> None:
        """Set the versions of ``reads`` that the arrays computed of them are of; None: of none that will be met. It
        is called with their locks held."""
        if versions is not self._versions:
            first = len(self._block) - 2 * int(self._block[Block.READS])
            self._block[first + 1 :: 2] = 0 if versions is None else [*map(id, versions)]
            self._versions = versions  # the objects, which the block points to

    def wants(self) -> bool:
        """True if another frame would be of use: all are in use."""
        return len(self._frames) < MOST_FRAMES and all(f.words[Word.BUSY] for f, _ in self._frames)

    def add(self, frame: Any) -> None:
        """Serve one call more at the same time. ``frame``: has an ``address``, ``functions`` and ``grow``."""
        at, grow = Block.FRAMES + 2 * len(self._frames), frame.grow
        self._frames.append((frame, grow))
        self._block[Block.RUN], self._block[Block.PREPARE] = frame.functions
        self._block[at + 1] = id(grow)
        self._block[at] = frame.address
