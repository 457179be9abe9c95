"""An emulated CUDA device: kernels compiled by g++, checked while they run, and streams that check their order.

``EmulatedDevice`` (device.py) is what others use. docs/cuda-emulator.md says what it proves and what it cannot show.
"""

from __future__ import annotations

from symc.runtime.emulator.device import BACKWARD, FORWARD, EmulatedDevice
from symc.runtime.emulator.errors import EmulationError
from symc.runtime.emulator.ranks import communicators

__all__ = ["BACKWARD", "FORWARD", "EmulatedDevice", "EmulationError", "communicators"]
