"""Calls of functions that were compiled for a device: arguments from the host or the device, results on the device.

Errors, names and shapes are those of any call (``symc.driver.call_path``, ``symc.driver.signature``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from symc.driver.call_path import CallPath, check_buffer
from symc.driver.signature import Signature
from symc.errors import DeviceError, DTypeError, InputError, SymcError
from symc.ir.types import DTYPE_NAMES
from symc.runtime.cpu.commit import some_run, some_wait
from symc.runtime.cuda.arrays import DeviceArray, borrowed, device_array, is_on_device, overlap
from symc.runtime.cuda.devices import context
from symc.runtime.cuda.lowering import VECTOR
from symc.runtime.cuda.repeat import Repeat
from symc.tensors.pytree import match
from symc.tensors.state import Cell

_array, _address = attrgetter("array"), attrgetter("address")


class DeviceSignature(Signature):
    """Takes arrays of the device as they lie there, and arrays of the host if they may be copied."""

    def __init__(self, *interface: Any):
        super().__init__(*interface)
        target = interface[-1]
        self.where, self.transfers = context(target.device), target.transfers
        declared = all(isinstance(s, int) for i in self.inputs[self.count :] for s in i.type.shape)
        self._sized = self.count if declared else None  # how many arrays may have other sizes in another call

    def sizes(self, arrays: Sequence[Any]) -> dict[str, int]:
        found = self._sizes.get(tuple([a.shape for a in arrays[: self._sized]]))
        if found is None:
            found = super().sizes(arrays)
            self._sizes[tuple([a.shape for a in arrays[: self._sized]])] = found
        return found

    def arrays(self, args: tuple, kwargs: Mapping[str, Any]) -> list[Any]:
        if not kwargs and self.simple and not self.donated and len(args) == self.count:
            host = self.transfers != "forbid"
            for a, d in zip(args, self._dtypes):
                if type(a) is DeviceArray:
                    if a.dtype != d or a.context is not self.where:
                        break
                elif not (host and type(a) is np.ndarray and a.dtype is d and a.flags.carray):
                    break
            else:
                return list(args)
        return self.any_arrays(args, kwargs)

    def _array(self, k: int, item: Any) -> Any:
        if not is_on_device(item):
            if self.transfers == "forbid":
                raise InputError(f"{self.function}: {self.inputs[k].name} is an array of the host, and transfers are "
                                 "forbidden", values=[self._row(k)],
                                 help=f"sc.device_array(x, {self.where.name!r}) copies it, where that is wanted")
            return super()._array(k, item)
        declared = self.inputs[k].type.dtype
        try:
            array = borrowed(item, self.where)
            if array.dtype != declared:
                raise DTypeError(f"{self.function}: {self.inputs[k].name} is {DTYPE_NAMES[declared]}, but "
                                 f"{DTYPE_NAMES[array.dtype]} was given",
                                 help="arrays of a device are not converted; convert it before, or in the function")
            return array
        except SymcError as e:
            e.attach([self._row(k)], ())
            raise

    def _protect(self, arrays: list[Any]) -> list[Any]:
        """A donated array that is also another argument is copied: only its own slot may be overwritten. So is one that
        must not be written at all."""
        for k in self.donated:
            a = arrays[k]
            if isinstance(a, DeviceArray) and (
                    a.readonly or any(k != j and overlap(a, b) for j, b in enumerate(arrays))):
                arrays[k] = a.copy()
        return arrays


class DeviceCallPath(CallPath):
    """Call path of a function that was compiled for a device."""

    def __init__(self, *call: Any):
        super().__init__(*call)
        target = self._compilation.settings.target
        self._where = context(target.device)
        self._addresses: tuple[int, ...] | None = None  # of the states in the last call
        self._spans: list[tuple[int, int]] = []
        if target.transfers == "auto":
            fill = self._fill
            self._fill = lambda results: fill([r.numpy() for r in results])
        self._repeat: Repeat | None = None
        if self.prologue is None and len(set(self._cells)) == len(self._cells):
            self.repeat = self._repeat = Repeat(self._where, self._updated)

    def _run(self, arrays: Sequence[Any], out: Any = None, cells: Sequence[Cell] = ()) -> list[Any]:
        if self._repeat is None:
            return super()._run(arrays, out, cells)
        with self._where.lock:  # another thread's call is not taken for this one
            results = super()._run(arrays, out, cells)
            replayed = self.program.replayed  # type: ignore[attr-defined]
            if replayed is not None and not (self._calls_out or some_wait(self._cells) or some_run(self._cells)):
                n = self._signature.count
                self._repeat.begin(replayed, arrays[:n], arrays[n:], self._cells)
            return results

    def _states(self) -> list[Any]:
        """The arrays of all states, which from now on are on this device."""
        arrays = list(map(_array, self._cells))
        try:
            addresses = tuple(map(_address, arrays))
        except AttributeError:
            addresses = ()
        if addresses != self._addresses:
            for cell in self._cells:
                self._bring(cell)
            arrays = list(map(_array, self._cells))
            self._addresses = tuple(map(_address, arrays))
            self._spans = sorted((a.address, a.address + a.nbytes) for a in arrays)
        return arrays

    def _bring(self, cell: Cell) -> None:
        if not (isinstance(cell.array, DeviceArray) and cell.array.context is self._where):
            if not isinstance(cell.array, np.ndarray | DeviceArray):
                raise DeviceError(f"{cell.name or 'a state'} is on {cell.array.device}, the function was compiled "
                                  f"for {self._where.name}", values=[(f"%{cell.name}", cell.type, cell.loc)],
                                  help="w.to_device('cpu') brings it back, and the next call to this one")
            cell.array = device_array(cell.array, self._where)

    def _keep_apart(self, arrays: list[Any]) -> None:
        """An argument that is the memory of a state is copied, as the state may be written in place."""
        for k, a in enumerate(arrays[: len(arrays) - len(self._cells)]):
            if type(a) is DeviceArray:
                before = self._spans[: bisect_left(self._spans, (a.address + a.nbytes,))]
                if before and before[-1][1] > a.address:  # states do not overlap, so this one ends last
                    arrays[k] = a.copy()

    def _call_into(self, arrays: list[Any], out: Any) -> Any:
        """Write the outputs into the caller's buffers; by way of fresh arrays where one overlaps what is read, or
        starts where no vector may."""
        sizes = self._signature.sizes(arrays)
        nest, what = self._built.outputs, f"{self.name}: out"
        buffers = match(nest, out, what)
        for b, path, v in zip(buffers, nest.paths(what), self._built.function.outputs, strict=True):
            if not isinstance(b, DeviceArray) or b.context is not self._where:
                raise InputError(f"{path} must be an array on {self._where.name} to write into, not {b!r:.60}")
            check_buffer(path, b, v, sizes)
        direct = []
        for k, b in enumerate(buffers):
            others = [*arrays, *buffers[:k], *buffers[k + 1 :]]
            met = any(isinstance(a, DeviceArray) and overlap(a, b) for a in others)
            direct.append(None if met or b.address % VECTOR else b)
        results = self._run(arrays, direct, self._updated)
        with self._where.lock:
            for b, r in zip(buffers, results):
                if b.address != r.address and b.nbytes:
                    self._where.device.copy(b.address, r.address, b.nbytes, self._where.stream)
        return self._fill(buffers)
