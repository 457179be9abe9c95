"""Errors of the emulated device when a program does what a device would not forgive."""

from __future__ import annotations

from typing import Any

from symc.errors import InternalError


class EmulationError(InternalError):
    """A kernel, or the order in which a device was asked for things, is wrong.

    ``kind``: RACE, BOUNDS, ALIGNMENT, UNWRITTEN, FREED, UNDEFINED, BARRIER, WARP, TRAP (of a kernel), LAUNCH, ORDER,
    CAPTURE, PRODUCT (of what a device was asked for). ``kernel``: its name; ``block`` and ``thread``: their numbers.
    """

    def __init__(self, kind: str, what: str, *, kernel: str | None = None, block: int | None = None,
                 thread: int | None = None, **details: Any):
        super().__init__(f"{kind}: {what}", **details)
        self.kind, self.kernel, self.block, self.thread = kind, kernel, block, thread
