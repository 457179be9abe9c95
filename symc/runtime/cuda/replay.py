"""Replays of captured graphs, whatever the addresses of a call's arrays.

A graph runs on the addresses that it was captured with. An array that is at one of a few places in all calls is used
where it is: each combination of them has a graph. One that is somewhere else in every call (a batch from a loader, a
loss that is kept in a list, a state that was set) has a place of its own in the frame: before the graph runs, an
argument is copied there, and after it a result from there. That is done where it takes less time than the host would
need to launch what is in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from symc.ir.record import dataclass
from symc.runtime.cuda.lower import DeviceLowered

#: How many graphs a frame keeps, and after how many calls that each had other addresses it captures no more.
GRAPHS, HOPELESS = 8, 32
#: At how many places an array may be before it has one of its own.
PLACES = 3
#: A graph is worth it from so many actions on.
WORTH = 3
#: Bytes that a device copies while a host gives it one more action (estimated: 2.5 us at 3.4 TB/s, both ways).
COPIED = 4 << 20


@dataclass(frozen=True, eq=False)
class Turn:
    """A call that is replayed: ``key`` of its graph; arrays that are copied ``into`` the frame before, and ``back``."""

    key: tuple[Any, ...]
    into: tuple[int, ...]
    back: tuple[int, ...]


class Replays:
    """Decides for one frame, or the same frame of several ranks (then a place is a tuple of addresses). The ``rest``
    of what is given are states, and what was made of them."""

    def __init__(self, lowered: DeviceLowered):
        self._given, self._inputs = lowered.given, lowered.inputs
        inputs = lowered.inputs
        outputs = len(lowered.returned) - len(lowered.updates)
        self._stay = {k for k, _ in lowered.returned[:outputs] if k < inputs}  # their memory is a result's
        self._written = {k for k, _ in lowered.returned[outputs:] if k < inputs}
        self._worth = lowered.fixed and len(lowered.actions) >= WORTH
        self._copied = COPIED * len(lowered.actions)
        self._seen: list[set[Any]] = [set() for _ in range(inputs + len(lowered.fresh))]
        self._moving: set[int] = set()
        self._masked: list[int] = []
        self._rest: tuple[Any, ...] | None = None
        self._number, self._numbers, self._fresh = 0, dict[tuple[Any, ...], int](), count()
        self._turns: dict[tuple[Any, ...], Turn] = {}
        self._misses = 0

    def turn(self, places: list[Any], rest: tuple[Any, ...], nbytes: Callable[[], Sequence[int]]) -> Turn | None:
        """The way in which a call is replayed; None: it is not. ``places``: of arguments and results. The ``rest`` of
        the last call costs nothing. ``nbytes``: of arguments, rest and results."""
        if not self._worth or self._misses >= HOPELESS:
            return None
        if rest is not self._rest:
            self._rest, self._number = rest, self._number_of(rest)
        key = self._key(places)
        found = self._turns.get(key)
        if found is None:
            self._miss(key, [*places[: self._given], *rest, *places[self._given :]], nbytes())
        else:
            self._misses = 0
        return found

    def again(self, places: list[Any], rest: tuple[Any, ...] | None) -> Turn | None:
        """As ``turn``, for a call that is made otherwise where there is none."""
        return self._turns.get(self._key(places)) if rest is self._rest else None

    def _key(self, places: list[Any]) -> tuple[Any, ...]:
        if not self._masked:
            return (self._number, *places)
        masked = [self._number, *places]
        for k in self._masked:
            masked[k] = None
        return tuple(masked)

    def _number_of(self, rest: tuple[Any, ...]) -> int:
        key = tuple(None if k in self._moving else p for k, p in enumerate(rest, self._given))
        if len(self._numbers) > HOPELESS:
            self._numbers.clear()
        if key not in self._numbers:
            self._numbers[key] = next(self._fresh)
        return self._numbers[key]

    def _miss(self, key: tuple[Any, ...], places: Sequence[Any], nbytes: Sequence[int]) -> None:
        """A call like none before: the next one of its kind is replayed."""
        self._misses += 1
        before = len(self._moving)
        for k, (place, size) in enumerate(zip(places, nbytes, strict=True)):
            seen = self._seen[k]
            if len(seen) <= PLACES and k not in self._stay:
                seen.add(place)
            if len(seen) > PLACES and k not in self._moving and size <= self._copied:
                self._moving.add(k)
                self._copied -= size
        if len(self._moving) > before:
            states = self._inputs - self._given
            self._masked = [1 + (k if k < self._given else k - states) for k in self._moving
                            if not self._given <= k < self._inputs]
            self._turns, self._numbers, self._rest, self._misses = {}, {}, None, 0
            return
        if len(self._turns) >= GRAPHS:
            del self._turns[next(iter(self._turns))]
        moving = sorted(self._moving)
        self._turns[key] = Turn(key, tuple(k for k in moving if k < self._inputs),
                                tuple(k for k in moving if k >= self._inputs or k in self._written))
