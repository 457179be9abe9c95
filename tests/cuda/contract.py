"""What the tests of the contract of devices share: the devices, kernels to launch, and arrays on a device.

``SYMC_DEVICE=cuda:0`` adds a GPU to the devices.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from symc.codegen.cuda.prelude import END, PRELUDE
from symc.runtime.cuda.cupy_device import CupyDevice
from symc.runtime.cuda.device import Counters, Signature
from symc.runtime.emulator import EmulatedDevice
from tests.cuda import fake_driver
from tests.cuda.emulated import needs_compiler

REAL = os.environ.get("SYMC_DEVICE", "")

TEXT = PRELUDE + END + r"""
extern "C" __global__ __launch_bounds__(128) void add(const float *x, const float *y, float *z, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
extern "C" __global__ __launch_bounds__(128) void twice(float *x, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) x[i] = 2.0f * x[i];
}
extern "C" __global__ __launch_bounds__(32)
void widths(unsigned char a, short b, int c, long long d, float e, double f, double *out) {
  if (threadIdx.x == 0) { out[0] = a; out[1] = b; out[2] = c; out[3] = (double)d; out[4] = e; out[5] = f; }
}
extern "C" __global__ __launch_bounds__(64) void places(int *out) {
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * blockDim.x + threadIdx.x] = 100 * block + threadIdx.x;
}
extern "C" __global__ __launch_bounds__(64) void reversed(int *x) {
  SYMC_SHARED(int, kept);
  kept[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = kept[63 - threadIdx.x];
}
extern "C" __global__ __launch_bounds__(64) void spread(int *x, int distance) {
  SYMC_SHARED(int, kept);
  kept[distance * threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = kept[distance * (63 - threadIdx.x)] + 1;
}
"""
SIGNATURES = {
    "add": (8, 8, 8, 4), "twice": (8, 4), "widths": (1, 2, 4, 8, 4, 8, 8), "places": (8,), "reversed": (8,),
    "spread": (8, 4),
}  # fmt: skip


def kinds() -> list:
    """Emulated devices that check and that do not, CuPy's device on fakes of CuPy and the driver, and the GPU."""
    emulated = needs_compiler
    faked = pytest.mark.skipif(bool(fake_driver.reason()), reason=fake_driver.reason() or "-")
    found = [pytest.param("checked", marks=emulated), pytest.param("fast", marks=emulated),
             pytest.param("faked", marks=faked)]
    return [*found, REAL] if REAL else found


@contextmanager
def device_of(kind: str) -> Iterator[Any]:
    """A device of a kind."""
    if kind == "faked":
        with fake_driver.faked():
            yield CupyDevice(0)
    elif kind == REAL:
        yield CupyDevice(int(REAL.removeprefix("cuda:") or 0))
    else:
        yield EmulatedDevice(0, kind == "checked")


def load(device) -> dict:
    """The kernels of ``TEXT``."""
    return device.load(TEXT, [Signature(n, w) for n, w in SIGNATURES.items()])


class On:
    """Arrays on a device, and launches with them."""

    def __init__(self, device, kernels, stream):
        self.device, self.kernels, self.stream, self.memory = device, kernels, stream, {}

    def put(self, array) -> int:
        array = np.ascontiguousarray(array)
        memory = self.device.alloc(array.nbytes)
        self.memory[memory.address] = memory, array.nbytes
        if array.nbytes:
            self.device.upload(memory.address, array, self.stream)
        return memory.address

    def empty(self, nbytes: int) -> int:
        memory = self.device.alloc(nbytes)
        self.memory[memory.address] = memory, nbytes
        return memory.address

    def get(self, address: int, like) -> np.ndarray:
        out = np.empty_like(np.ascontiguousarray(like))
        self.device.download(out, address, self.stream)
        self.device.synchronize(self.stream)
        return out

    def launch(self, name: str, *arguments, grid=(1, 1, 1), block=128, shared=0, stream=None) -> None:
        """Addresses are ints, numbers are of NumPy."""
        cells = np.zeros((len(arguments), 8), np.uint8)
        spans = []
        for cell, x in zip(cells, arguments, strict=True):
            data = np.asarray(x, np.int64) if isinstance(x, int) else np.asarray(x)
            cell[: data.nbytes] = np.frombuffer(data.tobytes(), np.uint8)
            if isinstance(x, int):
                spans.append((x, self.memory[x][1]))
        at = cells.ctypes.data + 8 * np.arange(len(arguments), dtype=np.int64)
        self.device.launch(self.kernels[name], grid, block, shared, at.ctypes.data, stream or self.stream, spans, spans)
        cells[:] = 255  # they have been read
        at[:] = 0


def counted(device, before: Counters) -> dict[str, int]:
    """What the counters have risen by."""
    found = {k: getattr(device.counters, k) - v for k, v in vars(before).items()}
    return {k: v for k, v in found.items() if v}


def now(device) -> Counters:
    return Counters(**vars(device.counters))
