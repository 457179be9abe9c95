"""Arrays that lie on a device: what functions compiled for it return, and take without a copy.

Nothing leaves a device by itself: ``numpy()`` (and ``item``, ``float(x)``) copy, and are counted by the device; NumPy
functions refuse. Other packages read the memory in place, by DLPack or ``__cuda_array_interface__``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.ir.dtypes import foreign, is_foreign
from symc.ir.types import DTYPE_NAMES
from symc.runtime.cuda import dlpack
from symc.runtime.cuda.devices import Context, context


class Elsewhere(ABC):
    """An array that is not on the host: its numbers are copied where that is asked for, and never unseen."""

    __slots__ = ()

    #: NumPy's operators and functions are not to take it apart.
    __array_ufunc__ = None

    shape: Any
    dtype: Any

    @abstractmethod
    def numpy(self) -> np.ndarray:
        """A copy on the host. It waits for what is being computed."""

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def item(self) -> Any:
        """The one number, as a Python number."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """The numbers, as nested lists."""
        return self.numpy().tolist()

    def __float__(self) -> float:
        return float(self._one())

    def __int__(self) -> int:
        return int(self._one())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"{self!r} is no whole number")
        return int(self._one())

    def __bool__(self) -> bool:
        return bool(self._one())

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if self.shape == () and how else str(self)

    def _one(self) -> Any:
        if self.size != 1:
            raise TypeError(f"{self!r} is not one number; .numpy() copies it to the host")
        return self.item()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(f"{self!r} is on a device, and NumPy would copy it unseen; x.numpy() copies it")


class DeviceArray(Elsewhere):
    """A contiguous array in row-major order. ``check`` is asked before its numbers are read: it raises what went wrong
    while they were computed."""

    __slots__ = ("__weakref__", "address", "check", "context", "dtype", "nbytes", "owner", "shape")

    def __init__(self, where: Context, address: int, shape: Sequence[int], dtype: np.dtype, owner: Any,
                 check: Callable[[], None] | None = None):
        self.context, self.address, self.shape, self.dtype = where, address, tuple(shape), dtype
        self.owner, self.check = owner, check
        self.nbytes = math.prod(self.shape) * dtype.itemsize

    # -- what it is

    @property
    def device(self) -> str:
        return self.context.name

    @property
    def readonly(self) -> bool:
        """True if it is of another package that does not want it written."""
        return isinstance(self.owner, Borrowed) and self.owner.readonly

    def __repr__(self) -> str:
        return f"DeviceArray({DTYPE_NAMES[self.dtype]}[{', '.join(map(str, self.shape))}], {self.device})"

    def reshape(self, *shape: Any) -> DeviceArray:
        """The same memory in another shape."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        found = np.broadcast_to(np.uint8(0), self.shape)  # NumPy's rules and errors, no memory
        new = np.lib.stride_tricks.as_strided(found, self.shape, (0,) * self.ndim).reshape(wanted).shape
        return DeviceArray(self.context, self.address, new, self.dtype, self.owner, self.check)

    def copy(self) -> DeviceArray:
        """A copy on the same device."""
        where = self.context
        with where.lock:
            memory = where.device.alloc(max(self.nbytes, 1))
            if self.nbytes:
                where.device.copy(memory.address, self.address, self.nbytes, where.stream)
        return DeviceArray(where, memory.address, self.shape, self.dtype, memory, self.check)

    # -- copies to the host

    def numpy(self) -> np.ndarray:
        """A copy on the host. It waits for what is being computed."""
        found = np.empty(self.shape, self.dtype)
        with self.context.lock:
            if found.nbytes:
                self.context.device.download(found, self.address, self.context.stream)
            self.context.device.synchronize(self.context.stream)
        if self.check is not None:
            self.check()
        return found

    def to_device(self, device: str, /, *, stream: Any = None) -> Any:
        """A NumPy array for "cpu", itself for its own device, a copy on another."""
        if device == "cpu":
            return self.numpy()
        where = context(device)
        return self if where is self.context else device_array(self.numpy(), where)

    def block_until_ready(self) -> DeviceArray:
        """Wait until it is computed."""
        self.context.synchronize()
        if self.check is not None:
            self.check()
        return self

    # -- other packages

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.context.device.dlpack_device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"{self!r} cannot be exported to device {tuple(dl_device)} without a copy; "
                              "x.numpy() copies it to the host")
        if copy:
            raise BufferError("DLPack: a copy was asked for; x.to_device(...) makes one")
        self._hand_over(stream)
        return dlpack.export(self.address, self.shape, self.dtype, self.__dlpack_device__(), self,
                             dlpack.is_versioned(max_version))

    def _hand_over(self, stream: Any) -> None:
        """Orders what the consumer's stream does next after what has been given to ours. -1: it does not care. None: it
        uses the default stream, or is on the host."""
        where = self.context
        if self.__dlpack_device__()[0] != CUDA:
            where.synchronize()
        elif stream != -1:
            with where.lock:
                _wait(where, Foreign(stream or DEFAULT_STREAM), where.stream)
        if self.check is not None:
            self.check()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.__dlpack_device__()[0] != CUDA:
            raise AttributeError("the memory of an emulated device is the host's")
        if is_foreign(self.dtype):
            raise AttributeError(f"the interface has no {self.dtype}; DLPack has: __dlpack__")
        return dlpack.exported(self.address, self.shape, self.dtype, self.context.stream.handle)


#: DLPack's number of CUDA, and of its default stream (which CUDA itself calls so, too).
CUDA, DEFAULT_STREAM = 2, 1


class Foreign:
    """A stream of another package."""

    __slots__ = ("handle",)

    def __init__(self, handle: int):
        self.handle = handle


def _wait(where: Context, stream: Any, other: Any) -> None:
    """Orders what one stream is given from now on after what another one has been given."""
    event = where.device.event()
    where.device.record(event, other)
    where.device.wait(stream, event)


class Borrowed:
    """Owner of memory of another package, kept alive until nothing here refers to it any more, and then until the work
    is done that the device was given before that. The package may use the memory again at once."""

    __slots__ = ("context", "nbytes", "owner", "readonly")

    def __init__(self, where: Context, owner: Any, nbytes: int, readonly: bool):
        self.context, self.owner, self.nbytes, self.readonly = where, owner, nbytes, readonly

    def __del__(self) -> None:
        self.context.hold(self.owner, self.nbytes)


def device_array(value: Any, where: Context | str = "cuda") -> DeviceArray:
    """A copy of an array on a device, made on purpose (and counted)."""
    where = context(where) if isinstance(where, str) else where
    if isinstance(value, DeviceArray):
        return value if value.context is where else device_array(value.numpy(), where)
    array = np.ascontiguousarray(value)
    dtype = foreign(array.dtype) or array.dtype
    if dtype not in DTYPE_NAMES:
        raise InputError(f"an array of {array.dtype} cannot be put on a device")
    with where.lock:
        memory = where.device.alloc(array.nbytes)
        if array.nbytes:
            where.device.upload(memory.address, array, where.stream)
    return DeviceArray(where, memory.address, np.shape(value), dtype, memory)


def is_on_device(value: Any) -> bool:
    """True if a call may take it from a device: an array of ours, or of a package that lends its memory."""
    if isinstance(value, DeviceArray):
        return True
    if isinstance(value, np.ndarray | np.generic | float | int | list | tuple):
        return False
    if hasattr(value, "__cuda_array_interface__"):
        return True
    of = getattr(value, "__dlpack_device__", None)
    return of is not None and of()[0] != 1


def borrowed(value: Any, where: Context) -> DeviceArray:
    """An array of another package, or our own, as it lies on the device. Raises InputError for one on another device.
    """
    if isinstance(value, DeviceArray):
        if value.context is not where:
            raise InputError(f"an array on {value.device} was given, the function was compiled for {where.name}",
                             help=f"x.to_device({where.name!r}) copies it")
        return value
    where.release()
    with where.lock:
        found = dlpack.imported(value, where.stream.handle, where.device.dlpack_device)
        if found.stream is not None:
            _wait(where, where.stream, Foreign(found.stream))
    array = DeviceArray(where, found.address, found.shape, found.dtype, None)
    array.owner = Borrowed(where, found.owner, array.nbytes, found.readonly)
    return array


def overlap(a: Any, b: Any) -> bool:
    """True if two arrays share memory."""
    if not (isinstance(a, DeviceArray) and isinstance(b, DeviceArray) and a.context is b.context):
        return False
    return a.address < b.address + b.nbytes and b.address < a.address + a.nbytes
