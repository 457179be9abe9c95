"""Memory that one library lends another: what is known of it, what symc takes, and ``__cuda_array_interface__``.

Nothing here reads or copies memory: an array that symc cannot take as it lies is an error. ``dlpack`` is the other way
to lend memory, and the one that is preferred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError, SymcError
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
    dtype = _dtype(name, obj, typestr)
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


def _dtype(name: str, obj: Any, typestr: str) -> np.dtype:
    try:
        dtype: np.dtype | None = np.dtype(typestr)
    except TypeError:
        dtype = None
    if dtype is not None and not dtype.isnative and dtype.newbyteorder("=") in DTYPE_NAMES:
        raise refused(name, obj, f"an array of {typestr!r} has its bytes in the other order", "cast it first", typestr)
    return known_dtype(name, obj, dtype, typestr)


def _bad(name: str, obj: Any, what: str) -> SymcError:
    return refused(name, obj, what, "give an array with __dlpack__, or with version 2 or 3 of the interface, unmasked")
