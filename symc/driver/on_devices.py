"""Calls of functions that were compiled for several devices: every device is given its part of the arguments, and keeps
a copy of its own of the states.

Errors, names and shapes are those of any call (``call_path.py``, ``signature.py``); shapes are those of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symc.driver.call_path import CallPath
from symc.driver.signature import Signature
from symc.driver.splitting import part_sizes, split_of
from symc.errors import DeviceError, DTypeError, InputError, ShapeError, SymcError
from symc.ir.types import DTYPE_NAMES
from symc.runtime.cuda.arrays import is_on_device, overlap
from symc.runtime.cuda.ranks import HostParts, RankArrays, group, replicated


class RanksSignature(Signature):
    """Takes arrays of the host, and what functions on the same devices have returned."""

    def __init__(self, *interface: Any):
        super().__init__(*interface)
        target = interface[-1]
        self.where, self.transfers = group(target.devices), target.transfers
        self.split = split_of(self.inputs, target)

    def arrays(self, args: tuple, kwargs: Mapping[str, Any]) -> list[Any]:
        return self.any_arrays(args, kwargs)

    def _array(self, k: int, item: Any) -> Any:
        split = k in self.split.inputs
        if isinstance(item, RankArrays):
            self._check_lent(k, item, split)
            return item
        name = self.inputs[k].name
        if is_on_device(item):
            raise InputError(f"{self.function}: {name} is an array on one device, the function was compiled for "
                             f"{self.where.name}", values=[self._row(k)], help="x.numpy() copies it to the host")
        if self.transfers == "forbid":
            raise InputError(f"{self.function}: {name} is an array of the host, and transfers are forbidden",
                             values=[self._row(k)])
        array = super()._array(k, item)
        if split and array.ndim and array.shape[0] % len(self.where):
            n = len(self.where)
            raise ShapeError(f"{self.function}: {name}.shape[0] = {array.shape[0]} cannot be divided among {n} devices",
                             values=[self._row(k, array.shape)],
                             help=f"give {array.shape[0] // n * n} rows, or {-(-array.shape[0] // n) * n}")
        return HostParts(array, len(self.where), split and bool(array.ndim))

    def _check_lent(self, k: int, item: RankArrays, split: bool) -> None:
        declared, name = self.inputs[k].type.dtype, self.inputs[k].name
        if item.group is not self.where or item.split != split:
            want = "in parts" if split else "on each"
            raise InputError(f"{self.function}: {name} is {item!r}, and must be {want} of {self.where.name}",
                             values=[self._row(k)], help="x.numpy() copies it to the host")
        if item.dtype != declared:
            raise DTypeError(f"{self.function}: {name} is {DTYPE_NAMES[declared]}, but {DTYPE_NAMES[item.dtype]} was "
                             "given", values=[self._row(k)], help="arrays of devices are not converted")

    def _check(self, shapes: tuple[tuple[int, ...], ...]) -> dict[str, int]:
        """The sizes of one rank, for which everything that the function relies on must hold."""
        whole, source = self._agreed(shapes)
        sizes = part_sizes(whole, self.split, len(self.where))
        parts = tuple((s[0] // len(self.where), *s[1:]) if k in self.split.inputs else s for k, s in enumerate(shapes))
        for guard in self.guards:
            try:
                self._check_guard(guard, sizes, parts, source)
            except SymcError as e:
                e.help = "; ".join(filter(None, [e.help, f"these are the parts of one of {len(self.where)} devices"]))
                raise
        return sizes


class RanksCallPath(CallPath):
    """Call path of a function that was compiled for several devices."""

    def __init__(self, *call: Any):
        super().__init__(*call)
        target = self._compilation.settings.target
        self._where = group(target.devices)
        if target.transfers == "auto":
            fill = self._fill
            self._fill = lambda results: fill([r.numpy() for r in results])

    def _states(self) -> list[Any]:
        """The arrays of all states, of which each device has a copy from now on."""
        for cell in self._cells:
            if isinstance(cell.array, np.ndarray):
                cell.array = replicated(cell.array, self._where)
            elif not (isinstance(cell.array, RankArrays) and cell.array.group is self._where):
                raise DeviceError(f"{cell.name or 'a state'} is on {cell.array.device}, the function was compiled for "
                                  f"{self._where.name}", values=[(f"%{cell.name}", cell.type, cell.loc)],
                                  help="w.to_device('cpu') brings it back, and the next call to all of these")
        return [c.array for c in self._cells]

    def _keep_apart(self, arrays: list[Any]) -> None:
        """An argument that is the memory of a state is copied, as the state may be written in place."""
        first = len(arrays) - len(self._cells)
        for k, a in enumerate(arrays[:first]):
            if isinstance(a, RankArrays) and any(overlap(p, q) for s in arrays[first:] for p in a.parts
                                                 for q in s.parts):
                arrays[k] = a.copy()

    def _call_into(self, arrays: list[Any], out: Any) -> Any:
        raise InputError(f"{self.name}: out= has no meaning on several devices", help="results are arrays of them")
