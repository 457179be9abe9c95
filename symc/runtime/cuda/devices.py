"""Devices by name: "cuda" and "cuda:1" are CuPy's, or emulated ones where that was asked for.

All work that symc gives a device goes through one stream of one ``Context``, so what one function writes another may
read without waiting.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from symc.errors import InputError
from symc.ir.locks import new_lock
from symc.runtime.cuda.device import Device, Kernel, Signature, Stream
from symc.runtime.cuda.dry import dry_device
from symc.settings import config

#: How many arrays of other packages, and how many bytes of them, are kept for work that may not be done yet.
MOST_HELD, HELD_BYTES = 64, 1 << 28

_lock = new_lock()
_contexts: dict[tuple[str, int], Context] = {}
_makers: list[Callable[[int], Device]] = []  # of those who asked for other devices, innermost last


class Context:
    """A device in use: its stream, and the kernels that were loaded to it. ``lock`` is held by whoever gives it work.
    """

    def __init__(self, device: Device):
        self.device = device
        self.lock = new_lock()
        self.stream: Stream = device.stream()
        self._loaded: dict[str, dict[str, Kernel]] = {}
        self._held: deque[tuple[Any, int]] = deque()
        self.groups: dict[tuple[Context, ...], Any] = {}  # that it is the first of, by the others

    @property
    def name(self) -> str:
        return self.device.name

    def kernels(self, text: str, signatures: list[Signature]) -> dict[str, Kernel]:
        """The entries of a translation unit, compiled and loaded once."""
        with self.lock:
            found = self._loaded.get(text)
            if found is None:
                found = self._loaded[text] = self.device.load(text, signatures)
            return found

    def text_of(self, kernel: Kernel) -> str:
        """The translation unit that a kernel is from."""
        return next(text for text, found in self._loaded.items() if kernel in found.values())

    def synchronize(self) -> None:
        """Wait for everything."""
        with self.lock:
            done = len(self._held)  # more may come while the host waits
            self.device.synchronize(self.stream)
            for _ in range(done):
                self._held.popleft()

    def hold(self, owner: Any, nbytes: int) -> None:
        """Keep what owns so many bytes until the work that the stream has been given so far is done."""
        self._held.append((owner, nbytes))

    def release(self) -> None:
        """Let go what is held, by waiting, if it has become much."""
        if len(self._held) >= MOST_HELD or sum(n for _, n in list(self._held)) > HELD_BYTES:
            self.synchronize()


def parse(name: str) -> int | None:
    """The number of a CUDA device, None for the CPU. Raises InputError for anything else."""
    if name == "cpu":
        return None
    found = re.fullmatch(r"cuda(?::(\d+))?", name) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"unknown device {name!r}", help="devices are 'cpu', 'cuda', 'cuda:1' (the second one)")
    return int(found[1] or 0)


def context(name: str) -> Context:
    """The context of a device. Raises InputError where there is none, and says what is missing."""
    index = parse(name)
    assert index is not None
    with _lock:
        kind, make = _maker()
        found = _contexts.get((kind, index))
        if found is None:
            found = _contexts[kind, index] = Context(make(index))
        return found


def is_real() -> bool:
    """True if "cuda" is a GPU's, and nothing that stands for one."""
    with _lock:
        return _maker()[0] == "cupy"


def _maker() -> tuple[str, Callable[[int], Device]]:
    if _makers:
        return f"asked {id(_makers[-1])}", _makers[-1]
    wanted = config.cuda
    if wanted == "dry":
        return wanted, dry_device
    return (wanted, lambda index: _emulated(index, wanted == "emulated")) if wanted else ("cupy", _cupy)


def _emulated(index: int, checked: bool) -> Device:
    from symc.runtime.emulator import EmulatedDevice

    return EmulatedDevice(index, checked)


def _cupy(index: int) -> Device:
    from symc.runtime.cuda.cupy_device import CupyDevice

    return CupyDevice(index)


@contextmanager
def devices_from(make: Callable[[int], Device]) -> Iterator[None]:
    """Let "cuda:k" mean ``make(k)``, made once, for what is compiled meanwhile."""
    with _lock:
        _makers.append(make)
    try:
        yield
    finally:
        with _lock:
            _makers.remove(make)
            for key in [k for k in _contexts if k[0] == f"asked {id(make)}"]:
                del _contexts[key]
