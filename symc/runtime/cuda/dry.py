"""Dry device: what a function would launch is planned for it, at any size, and nothing is compiled or run.

``SYMC_CUDA=dry``, or ``with sc.testing.dry_cuda():`` around what is compiled. ``f.launches(n=...)`` is answered; a call
is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from symc.errors import DeviceError
from symc.ir.record import dataclass
from symc.runtime.cuda.device import ALIGN, Counters, Device, Properties, Resources, Signature

#: What an H200 has.
PROPERTIES = Properties("dry device", "sm_90", 132, 232448, 60 * 2**20, 141 * 10**9)


@dataclass(eq=False)
class Span:
    """Memory that is nowhere."""

    address: int
    nbytes: int


@dataclass(eq=False)
class DryKernel:
    name: str
    resources: Resources | None = None


class DryDevice:
    """The part of a device that plans ask for. Whatever would have to run is an error."""

    checked = False
    capturing = False

    def __init__(self, index: int = 0):
        self.index, self.name, self.dlpack_device = index, f"cuda:{index}", (1, 0)
        self.properties, self.counters, self._end = PROPERTIES, Counters(), ALIGN

    def alloc(self, nbytes: int) -> Span:
        found = Span(self._end, nbytes)
        self._end += -(-max(nbytes, 1) // ALIGN) * ALIGN
        return found

    def load(self, text: str, signatures: Sequence[Signature]) -> Any:
        return {s.name: DryKernel(s.name) for s in signatures}

    def stream(self) -> Any:
        return SimpleNamespace(handle=0)

    event = stream

    def upload(self, target: int, source: np.ndarray, stream: Any) -> None:
        """Does nothing: constants are put in place before a call."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise DeviceError(f"a dry device runs nothing ({name})", help="f.launches(...) says what would run; "
                          "SYMC_CUDA=emulated runs it on the host")


def dry_device(index: int) -> Device:
    """A dry device, which stands where a device is wanted."""
    device: Any = DryDevice(index)
    return device
