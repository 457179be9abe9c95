"""Target of a function, where it runs, who computes there and how, and what may cross: the options ``device=``,
``backend=``, ``split=``, ``transfers=``, ``precision=`` and ``denormals=`` of ``compile``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.errors import InputError, did_you_mean
from symc.ir.record import dataclass

#: What becomes of arrays of the host: copied when they are arguments ("explicit"), refused ("forbid"), and, results
#: too, copied ("auto").
TRANSFERS = ("explicit", "forbid", "auto")
#: How products of f32 are multiplied: as f32, or rounded to tf32 or bf16 first (sums are f32).
PRECISIONS = ("highest", "tf32", "bf16")
#: What becomes of numbers below the least normal one.
DENORMALS = ("keep", "flush")


@dataclass(frozen=True)
class Target:
    """``device``: "cpu", or "cuda:k". ``devices``: all of them, where they are several, and ``split``: the sizes of
    which each has a part. ``backend``: of the CPU, None for that of the device or mode. ``denormals``: of the CPU."""

    device: str = "cpu"
    transfers: str = "explicit"
    precision: str = "highest"
    devices: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    backend: str | None = None
    denormals: str = "keep"

    @property
    def flush(self) -> bool:
        """True if denormal numbers are zeros."""
        return self.denormals == "flush"

    @property
    def on_host(self) -> bool:
        return self.device == "cpu"

    @property
    def compiler(self) -> str:
        """The compiler of the kernels of the CPU."""
        return self.backend or "llvm"

    @property
    def ranks(self) -> int:
        """The number of devices that run the program."""
        return len(self.devices) or 1

    @property
    def asked(self) -> str | tuple[str, ...]:
        """The value of ``device=``."""
        return self.devices or self.device


HOST = Target()


def target_of(options: dict[str, Any]) -> Target:
    """The target that options say; on the CPU nothing is transferred. Raises InputError for what does not exist, and
    for what the CPU or a device would not do."""
    device, transfers = options.get("device", "cpu"), options.get("transfers", "explicit")
    precision, backend = options.get("precision", "highest"), options.get("backend")
    denormals = options.get("denormals", "keep")
    known = (("transfers", transfers, TRANSFERS), ("precision", precision, PRECISIONS),
             ("denormals", denormals, DENORMALS))
    for name, value, choices in known:
        if value not in choices:
            raise InputError(f"unknown {name} {value!r}", help=did_you_mean(str(value), choices))
    if device == "cpu" and precision != "highest":
        raise InputError(f"precision={precision!r} is for devices, and products on the CPU have the precision of f32",
                         help='leave it out, or say device="cuda"')
    if device == "cpu":
        return Target(backend=backend, denormals=denormals)
    if denormals != "keep":
        raise InputError(f"denormals={denormals!r} is for the CPU, device={device!r} was asked for",
                         help="leave it out: a GPU computes with denormal numbers as fast as with others")
    if backend is not None:
        raise InputError(f"backend={backend!r} computes on the CPU, device={device!r} was asked for",
                         help="leave backend= out: kernels of a device are CUDA C++")
    from symc.runtime.cuda.devices import parse

    if not isinstance(device, tuple | list):
        return Target(f"cuda:{parse(device)}", transfers, precision)
    names = _several(device)
    if len(names) == 1:
        return Target(names[0], transfers, precision)
    split = options.get("split", ())
    split = (split,) if isinstance(split, str) else tuple(map(str, split))
    if not split:
        raise InputError(f"device: {', '.join(names)} would all compute the same",
                         help='split="n" gives each a part of the arguments whose first axis has the size n')
    return Target(names[0], transfers, precision, names, split)


def _several(given: Sequence[Any]) -> tuple[str, ...]:
    """The names of several devices. Raises InputError where they cannot work together."""
    from symc.runtime.cuda.devices import parse

    numbers = [parse(name) for name in given]
    if not numbers:
        raise InputError("device: an empty list of devices")
    if None in numbers:
        raise InputError("device: the CPU and GPUs cannot share the work of a function",
                         help="the CPU takes several threads: device='cpu', threads=...")
    for k, number in enumerate(numbers):
        if number in numbers[:k]:
            raise InputError(f"device: cuda:{number} is listed twice", help="every rank has a device of its own")
    return tuple(f"cuda:{number}" for number in numbers)
