"""Memory of a device lent to other libraries and taken from them, without a copy: by DLPack, or by
``__cuda_array_interface__``, which is asked where there is no DLPack. What cannot be taken as it lies is an error.

Lending is done by NumPy: an array over the address, which NumPy never looks at, makes a capsule; then the two fields
that are not of the host are set. So whatever frees it - the consumer's deleter, in any thread and at any time, or the
capsule that nobody took - is C code that takes the GIL where it must. A function of Python cannot do that well: a
capsule may go while an exception is on its way.

Which array is ready when is up to the caller: streams are only handed on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import Any

import numpy as np

from symc.errors import InputError, SymcError
from symc.ir.dtypes import RECORDS, is_foreign, lent, typestr
from symc.ir.record import dataclass
from symc.ir.types import DTYPE_NAMES, DTYPES

#: Kind of memory and number of the device, as DLPack has them.
Where = tuple[int, int]
#: Memory of the host (also that of the emulated device); of a CUDA device; of the host, pinned; of both.
CPU, CUDA, PINNED, MANAGED = 1, 2, 3, 13

_NAMES = {CPU: "the host", CUDA: "cuda:{}", PINNED: "the host (pinned)", MANAGED: "managed memory of cuda:{}",
          4: "opencl:{}", 7: "vulkan:{}", 8: "metal:{}", 10: "rocm:{}", 14: "oneapi:{}"}  # fmt: skip


@dataclass(frozen=True)
class Imported:
    """An array of somebody else, in C order. ``owner`` keeps its memory alive. ``stream``: whoever uses the array has
    to wait for this stream first (None: nothing is left to wait for)."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    owner: Any
    readonly: bool
    device: Where
    stream: int | None = None


def place_name(where: Where) -> str:
    """Name of a place: "cuda:0"."""
    return _NAMES.get(where[0], f"device {{}} of kind {where[0]}").format(where[1])


def refused(name: str, obj: Any, what: str, help: str, seen: str = "") -> InputError:
    """The error for an array that cannot be taken."""
    kind = type(obj)
    own = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return InputError(what, values=[(name, f"{seen} of {own}" if seen else own, None)], help=help)


def check_place(name: str, obj: Any, where: Where, wanted: Where) -> None:
    """Raise InputError for memory that is elsewhere than on the wanted device."""
    if where == wanted or (where[0] == wanted[0] == CPU) or (where[0] == MANAGED and wanted[0] == CUDA):
        return
    if wanted[0] == CPU:
        help = "an emulated device has its memory on the host: it takes no arrays of other devices"
    elif where[0] in (CPU, PINNED):
        help = "a NumPy array is copied to the device: np.asarray(x) makes one of an array of the host"
    else:
        help = f"symc never copies from device to device unasked: copy it to {place_name(wanted)} first"
    wants = "the emulated device" if wanted[0] == CPU else place_name(wanted)
    raise refused(name, obj, f"an array on {place_name(where)} cannot be used on {wants}", help)


def known_dtype(name: str, obj: Any, found: np.dtype | None, said: str) -> np.dtype:
    """The dtype of symc that is meant. ``said``: how the other library calls it."""
    dtype = DTYPES.get(DTYPE_NAMES.get(found, "")) if found is not None else None
    if dtype is None:
        raise refused(name, obj, f"symc has no dtype {said}", "cast it first; symc has: " + ", ".join(DTYPES), said)
    return dtype


def check_layout(name: str, obj: Any, shape: Sequence[int], strides: Sequence[int] | None, seen: str) -> None:
    """Raise InputError unless the elements lie in C order without gaps. Strides count elements; None is C order."""
    step = 1
    if strides is None or 0 in shape:
        return
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and stride != step:
            raise refused(name, obj, f"an array of shape {_tuple(shape)} with strides {_tuple(strides)} (in elements) "
                          "is not contiguous", "symc takes arrays in C order without gaps, and makes no hidden copies: "
                          "copy it first (x.contiguous(), cupy.ascontiguousarray(x), x.copy())", seen)
        step *= n


def array_text(dtype: np.dtype, shape: Sequence[int]) -> str:
    """Type of an array, as types are written."""
    return f"{DTYPE_NAMES[dtype]}[{', '.join(map(str, shape))}]"


def _tuple(numbers: Sequence[int]) -> str:
    return str(tuple(numbers))


# --- DLPack -----------------------------------------------------------------------------------------------------------

#: The newest version that is asked for and understood: minor versions only add.
VERSION = (1, 0)
READ_ONLY, COPIED = 1, 2  # flags of DLPack 1
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_SAID = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 5: "complex", 6: "bool"}

# --- the structures of dlpack.h ---------------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    _fields_ = (("data", c_void_p), ("kind", c_int32), ("number", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64))


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _Tensor))


#: By the name of a fresh capsule: what it has, and its name after it was taken. The names must outlive all capsules.
_FORMS: dict[bytes, tuple[type[_Managed] | type[_Versioned], ctypes.c_char_p]] = {
    b"dltensor_versioned": (_Versioned, ctypes.c_char_p(b"used_dltensor_versioned")),
    b"dltensor": (_Managed, ctypes.c_char_p(b"used_dltensor")),
}
_deleter = ctypes.CFUNCTYPE(None, c_void_p)


def _api(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_is_valid = _api("PyCapsule_IsValid", ctypes.c_int, py_object, ctypes.c_char_p)
_pointer = _api("PyCapsule_GetPointer", c_void_p, py_object, ctypes.c_char_p)
_rename = _api("PyCapsule_SetName", ctypes.c_int, py_object, c_void_p)


def _form(capsule: Any) -> bytes | None:
    """The name of a capsule that nobody has taken yet, None for anything else."""
    return next((n for n in _FORMS if _is_valid(capsule, n)), None)


def _struct(capsule: Any, name: bytes) -> Any:
    return _FORMS[name][0].from_address(_pointer(capsule, name))


# --- lending ----------------------------------------------------------------------------------------------------------


class _Lent:
    """Memory as NumPy's array interface, and what keeps it alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype, owner: Any, readonly: bool):
        self.owner = owner
        self.__array_interface__ = dict(version=3, shape=shape, typestr=typestr(dtype), data=(address, readonly),
                                        strides=None)


def is_versioned(max_version: tuple[int, int] | None) -> bool:
    """True if a consumer that understands this version takes capsules of DLPack 1."""
    return max_version is not None and max_version[0] >= 1


def export(address: int, shape: Sequence[int], dtype: np.dtype, device: Where, owner: Any, versioned: bool,
           readonly: bool = False) -> Any:
    """A capsule for ``__dlpack__``: an array in C order on a device. ``owner`` lives until the consumer is done with
    it, or until the capsule goes if nobody takes it.

    Raises BufferError, as the protocol wants, for what a capsule without a version cannot say, or none can.
    """
    number = _code(dtype)
    if number is None:
        raise BufferError(f"DLPack has no {dtype}: cast the array first")
    if readonly and not versioned:
        raise BufferError("this array must not be written, which only DLPack 1 can say: pass max_version=(1, 0)")
    array = np.asarray(_Lent(address, tuple(shape), dtype, owner, readonly))
    try:
        capsule = array.__dlpack__(max_version=VERSION if versioned else None)
    except TypeError:  # NumPy 2.0 has no versions; who asks for one takes what is older, too
        capsule = array.__dlpack__()
    name = _form(capsule)
    assert name is not None
    tensor = _struct(capsule, name).tensor
    tensor.data, tensor.kind, tensor.number = address or None, *device
    tensor.code = number
    return capsule


# --- taking -----------------------------------------------------------------------------------------------------------


class _Taken:
    """Content that was taken out of a capsule; it is given back when this goes."""

    __slots__ = ("_address", "_give_back")

    def __init__(self, capsule: Any, name: bytes):
        managed = _struct(capsule, name)
        self._address = ctypes.addressof(managed)
        self._give_back = _deleter(managed.deleter) if managed.deleter else None
        _rename(capsule, _FORMS[name][1])

    def __del__(self) -> None:
        if self._give_back is not None:
            self._give_back(self._address)


def imported(obj: Any, stream_handle: int | None, device: Where, name: str = "array",
             device_of: Callable[[int], int] | None = None) -> Imported:
    """The array of another library, where it lies. Raises InputError for what is elsewhere than on ``device``, not
    contiguous, or of a dtype that symc does not have.

    ``stream_handle``: the stream that will use it; a producer with ``__dlpack__`` makes it wait for the array. None:
    there are no streams. ``name``: of the argument, for messages. ``device_of``: which device an address belongs to.
    """
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        return _from_dlpack(obj, stream_handle, device, name)
    said = getattr(obj, "__cuda_array_interface__", None)
    if said is None:
        raise refused(name, obj, "this is no array of a device",
                      "give a NumPy array, or an array with __dlpack__ or __cuda_array_interface__")
    return described(obj, said, device, name, device_of)


def on_host(obj: Any, name: str = "array") -> np.ndarray:
    """The array of another library on the host, where it lies, of a dtype that NumPy's DLPack does not know too."""
    found = imported(obj, None, (CPU, 0), name)
    return lent(_Lent(found.address, found.shape, found.dtype, found, found.readonly), found.dtype)


def _from_dlpack(obj: Any, stream: int | None, wanted: Where, name: str) -> Imported:
    try:
        own = obj.__dlpack_device__()
        where = (int(own[0]), int(own[1]))
    except Exception as e:
        raise _cannot(name, obj, e) from e
    check_place(name, obj, where, wanted)
    capsule = _ask(name, obj, own, None if where[0] == CPU else stream)
    form = _form(capsule)
    if form is None:
        raise refused(name, obj, f"__dlpack__ gave {type(capsule).__name__}, not a fresh DLPack capsule",
                      "the library that made the array does not follow the protocol")
    managed, taken = _struct(capsule, form), _Taken(capsule, form)
    flags = 0
    if isinstance(managed, _Versioned):
        if managed.major != VERSION[0]:
            raise refused(name, obj, f"a DLPack capsule of version {managed.major}.{managed.minor} cannot be read",
                          f"symc reads version {VERSION[0]} and the one before")
        flags = managed.flags
    if flags & COPIED:
        raise refused(name, obj, "the array was copied to be lent", "symc makes no hidden copies: copy it yourself")
    return _read(obj, managed.tensor, taken, bool(flags & READ_ONLY), wanted, name)


def _ask(name: str, obj: Any, own: Any, stream: int | None) -> Any:
    """The capsule of an object. What a producer does not know, it is not asked; stream 0 is called 1 in DLPack."""
    order = {} if stream is None else {"stream": stream or 1}
    refusal: Exception | None = None
    for more in ({"max_version": VERSION, "dl_device": own, "copy": False}, {"max_version": VERSION}, {}):
        try:
            return obj.__dlpack__(**order, **more)
        except TypeError as e:
            refusal = e
        except Exception as e:
            raise _cannot(name, obj, e) from e
    assert refusal is not None
    raise _cannot(name, obj, refusal) from refusal


def _cannot(name: str, obj: Any, e: Exception) -> InputError:
    return refused(name, obj, f"this array cannot be lent: {str(e).rstrip('.') or type(e).__name__}",
                   "__dlpack__ of the array says so; a copy of it can usually be lent")


def _read(obj: Any, t: _Tensor, taken: _Taken, readonly: bool, wanted: Where, name: str) -> Imported:
    where = (t.kind, t.number)
    check_place(name, obj, where, wanted)
    said = f"{_SAID.get(t.code, f'kind {t.code} of')}{t.bits}" + (f" x {t.lanes}" if t.lanes != 1 else "")
    dtype = known_dtype(name, obj, _dtype(t), said)
    shape = tuple(t.shape[: t.ndim]) if t.ndim else ()
    strides = t.strides[: t.ndim] if t.ndim and t.strides else None
    check_layout(name, obj, shape, strides, array_text(dtype, shape))
    return Imported((t.data or 0) + t.byte_offset, shape, dtype, taken, readonly, where)


def _dtype(t: _Tensor) -> np.dtype | None:
    """The dtype, None if symc has none. Eight bits are one bool; vectors of several numbers are no numbers."""
    said = t.code, t.bits, t.lanes
    return next((d for d in DTYPE_NAMES if (_code(d), 8 * d.itemsize, 1) == said), None)


def _code(dtype: np.dtype) -> int | None:
    """DLPack's code of a dtype, None if it has none."""
    return RECORDS[dtype].dlpack if is_foreign(dtype) else _CODES[dtype.kind]


# --- __cuda_array_interface__ -----------------------------------------------------------------------------------------


def exported(address: int, shape: Sequence[int], dtype: np.dtype, stream: int | None,
             readonly: bool = False) -> dict[str, Any]:
    """The dict of version 3 for an array in C order. ``stream``: the consumer waits for it."""
    empty = 0 in shape
    return dict(version=3, shape=tuple(shape), typestr=dtype.str, data=(0 if empty else address, readonly),
                strides=None, stream=stream or (1 if stream == 0 else None))


def described(obj: Any, said: Mapping[str, Any], wanted: Where, name: str = "array",
              device_of: Callable[[int], int] | None = None) -> Imported:
    """The array that an object describes by ``__cuda_array_interface__``.

    ``device_of``: the number of the device that an address belongs to, which the interface does not say.
    """
    try:
        version, shape, typestr = said["version"], tuple(map(int, said["shape"])), str(said["typestr"])
        address, readonly = int(said["data"][0] or 0), bool(said["data"][1])
        strides = None if said.get("strides") is None else tuple(map(int, said["strides"]))
        if strides is not None and len(strides) != len(shape):
            raise ValueError(f"{len(strides)} strides for {len(shape)} axes")
        stream = said.get("stream") if version >= 3 else None
        masked = said.get("mask") is not None
    except (KeyError, TypeError, ValueError, IndexError) as e:
        raise _bad(name, obj, f"an unusable __cuda_array_interface__: {type(e).__name__}: {e}") from e
    if version < 2 or masked or stream == 0:
        wrong = "a mask" if masked else "stream 0, which the interface forbids" if stream == 0 else f"version {version}"
        raise _bad(name, obj, f"a __cuda_array_interface__ with {wrong} cannot be used")
    dtype = _described_dtype(name, obj, typestr)
    empty = 0 in shape
    there = wanted[1] if device_of is None or empty else device_of(address)
    check_place(name, obj, (CUDA, there), wanted)
    seen = array_text(dtype, shape)
    if strides is not None and not empty:
        if any(s % dtype.itemsize for n, s in zip(shape, strides, strict=True) if n != 1):
            raise refused(name, obj, f"strides of {_tuple(strides)} bytes are not whole elements of {dtype}",
                          "copy it first", seen)
        check_layout(name, obj, shape, [s // dtype.itemsize for s in strides], seen)
    return Imported(address, shape, dtype, (obj, said), readonly, (CUDA, there), stream)


def _described_dtype(name: str, obj: Any, typestr: str) -> np.dtype:
    try:
        dtype: np.dtype | None = np.dtype(typestr)
    except TypeError:
        dtype = None
    if dtype is not None and not dtype.isnative and dtype.newbyteorder("=") in DTYPE_NAMES:
        raise refused(name, obj, f"an array of {typestr!r} has its bytes in the other order", "cast it first", typestr)
    return known_dtype(name, obj, dtype, typestr)


def _bad(name: str, obj: Any, what: str) -> SymcError:
    return refused(name, obj, what, "give an array with __dlpack__, or with version 2 or 3 of the interface, unmasked")
