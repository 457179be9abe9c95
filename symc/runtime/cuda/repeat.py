"""Calls that repeat the one before them: arrays of the same shapes, states where that one left them, a graph that is
there. What was found out for the last call is not asked again: a call costs the host what its arguments and results do,
however many states it has. Threads may make calls of other shapes meanwhile: all that is known of the last one is read
and written with the lock of the device.

It rests on claims: whoever moves or sets a state, asks for its version, or is about to use it in another way ends the
claims on it first (``Cell.disclaim``), and then waits for the calls that are under way by the lock of the device.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

from symc.ir.locks import closed
from symc.runtime.cuda.arrays import DeviceArray
from symc.runtime.cuda.devices import Context
from symc.runtime.cuda.frame import Frame


class Repeat:
    """Calls of one function. ``updated``: the states that it writes, all of them in place."""

    def __init__(self, where: Context, updated: Sequence[Any]):
        self._where, self._updated = where, updated
        self._calls = 0  # that the states have not counted
        self._frame: weakref.ref[Frame] | None = None
        self._states: Sequence[DeviceArray] = ()

    def begin(self, frame: Frame, given: Sequence[Any], states: Sequence[DeviceArray], cells: Sequence[Any]) -> None:
        """Serve calls with arguments like these from now on. All locks of the states, and then that of the device, have
        been held since before the last call."""
        lowered = frame.lowered
        returned = lowered.returned[: len(lowered.returned) - len(lowered.updates)]
        if any(k < lowered.inputs for k, _ in returned) or not all(a.nbytes for a in given):
            return
        self.end()
        for cell in cells:
            cell.claim(self)
        self._states, self._rest = states, frame.rest
        self._shapes = [a.shape for a in given]
        self._made = [(k, f.dtype.itemsize * math.prod(f.shape)) for k, f in enumerate(lowered.fresh)]
        self._returned = [(k - lowered.inputs, shape, lowered.fresh[k - lowered.inputs].dtype) for k, shape in returned]
        self._frame = weakref.ref(frame)

    def end(self) -> None:
        """Serve no call until it is begun again. What this returns to may change the states."""
        if self._frame is not None:
            with self._where.lock:
                self._frame, self._states = None, ()
                for cell in self._updated:
                    cell.version += self._calls
                self._calls = 0

    def __call__(self, arrays: Sequence[Any]) -> list[DeviceArray] | None:
        """The results of a call with these arguments; None if it is another one: nothing was done then."""
        if self._frame is None or closed.value:
            return None
        where = self._where
        with where.lock:
            frame = None if self._frame is None else self._frame()
            if frame is None or [a.shape for a in arrays] != self._shapes:
                return None
            placed = [a if type(a) is DeviceArray else frame.staged(k, a.nbytes) for k, a in enumerate(arrays)]
            made = [frame.fresh(k, nbytes) for k, nbytes in self._made]
            turn = frame.replays.again([a.address for a in (*placed, *made)], self._rest)
            if turn is None:
                return None
            for k, a in enumerate(arrays):
                if placed[k] is not a:
                    frame.upload(k, a)
            self._calls += 1
            frame.run([*placed, *self._states, *made], turn)
            return [DeviceArray(where, made[k].address, shape, dtype, made[k], frame.check)
                    for k, shape, dtype in self._returned]
