"""Times of the steps of a plan on a device: an event after each of them, in a run that is not captured.

The words and the log are those of ``symc.runtime.cpu.timing``; a tick is a nanosecond of the device's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from symc.runtime.cpu.native.instructions import Lap, Op, Word
from symc.runtime.cpu.timing import Clock, Laps
from symc.runtime.cuda.device import Event as DeviceEvent
from symc.runtime.cuda.frame import Frame

if TYPE_CHECKING:
    from symc.runtime.cpu.timing import Event, StepTime

#: The clock of devices: ticks of a nanosecond; what an event takes is not known.
CLOCK = Clock(1e-9, 0.0)


class TimedFrame(Frame):
    """A frame whose code has a LAP after every step."""

    laps: Laps
    run_with: Any  # of arrays: what a call of the program does with this frame

    def times(self, *calls: Sequence[Any], log: bool = False) -> list[StepTime]:
        """Times of the steps in runs with these arrays, all in all."""
        self._noted: list[tuple[int, int, DeviceEvent]] = []
        self.laps.reset(self.words, log)
        for arrays in calls:
            self.run_with(arrays)
            self._gather()
        return self.laps.times(self.words, CLOCK)

    def events(self) -> list[Event]:
        """Log of the last run of ``times``."""
        return self.laps.events(self.words, CLOCK)

    def call(self, used: Sequence[Any]) -> bool:
        self.run(used, None)
        return False

    def _rare(self, op: int, at: int) -> int:
        if op != Op.LAP:
            return super()._rare(op, at)
        event = self.device.event()
        self.device.record(event, self._streams[0])
        self._noted.append((self._code[at + 1], self._code[at + 2], event))
        return at + 3

    def _gather(self) -> None:
        """From events to numbers, when all of them have happened."""
        self.device.synchronize(self._streams[0])
        words, now, last = self.words, 0, None
        for slot, limit, event in self._noted:
            ticks = 0 if last is None else round(1e6 * self.device.elapsed(last, event))
            now, last = now + ticks, event
            words[slot + Lap.RUNS] += 1
            words[slot + Lap.TICKS] += ticks
            words[slot + Lap.LEAST] = min(words[slot + Lap.LEAST], ticks)
            if words[Word.LOGGED] < limit:
                self.laps.log(words[Word.LOGGED], slot, now)
                words[Word.LOGGED] += 1
        self._noted.clear()
