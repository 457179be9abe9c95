"""Where a function runs, and what may cross: the options ``device=``, ``transfers=`` and ``precision=`` of ``compile``.
"""

from __future__ import annotations

from typing import Any

from symc.errors import InputError, did_you_mean
from symc.ir.record import dataclass

#: What becomes of arrays of the host: copied when they are arguments ("explicit"), refused ("forbid"), and, results
#: too, copied ("auto").
TRANSFERS = ("explicit", "forbid", "auto")
#: How products of f32 are multiplied: as f32, or rounded to tf32 or bf16 first (sums are f32).
PRECISIONS = ("highest", "tf32", "bf16")


@dataclass(frozen=True)
class Target:
    """``device``: "cpu", or "cuda:k"."""

    device: str = "cpu"
    transfers: str = "explicit"
    precision: str = "highest"

    @property
    def on_host(self) -> bool:
        return self.device == "cpu"


HOST = Target()


def target_of(options: dict[str, Any]) -> Target:
    """The target that options say; on the CPU nothing is transferred, and products are as precise as they are written.
    Raises InputError for what does not exist."""
    device, transfers = options.get("device", "cpu"), options.get("transfers", "explicit")
    precision = options.get("precision", "highest")
    for name, value, known in (("transfers", transfers, TRANSFERS), ("precision", precision, PRECISIONS)):
        if value not in known:
            raise InputError(f"unknown {name} {value!r}", help=did_you_mean(str(value), known))
    if device == "cpu":
        return HOST
    from symc.runtime.cuda.devices import parse

    return Target(f"cuda:{parse(device)}", transfers, precision)


def check_target(target: Target, mode: str) -> None:
    """Raise for a device that is not there, and for a mode that runs on the host."""
    if target.on_host:
        return
    from symc.runtime.cuda.devices import context

    context(target.device)
    if mode not in ("default", "fast_compile"):
        raise InputError(f"mode={mode!r} runs on the CPU, device={target.device!r} was asked for",
                         help="mode='default' and 'fast_compile' run on a device")
