"""The native interpreter of plans of this process, which ``executor_ir`` writes.

There are two, one of all instructions, and one of those that most small programs have (``STRAIGHT``): this takes half
the time to compile, 15 ms less of the first call on a machine that has neither.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from symc.ir.locks import new_lock
from symc.runtime.cache.machine_code import load_module
from symc.runtime.cpu.native.instructions import ALL, STRAIGHT

Run = Callable[[int], int]
_lock = new_lock()
_runs: dict[str, tuple[Run, Run, int]] = {}


def executor(straight: bool = False) -> tuple[Run, Run, int]:
    """``run(address of memory)`` and ``prepare(address of memory)``, which release the GIL (callbacks take it), and the
    address of ``pulse(address of memory)``, which kernels call. ``straight``: for code that is."""
    name = "straight executor" if straight and "executor" not in _runs else "executor"
    if name not in _runs:
        with _lock:
            if name not in _runs:
                found = load_module(name, lambda: _text(STRAIGHT if straight else ALL), 2)
                kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
                _runs[name] = kind(found("symc_run")), kind(found("symc_prepare")), found("symc_pulse")
    return _runs[name]


def _text(instructions: frozenset[int]) -> str:
    from symc.runtime.cpu.native.executor_ir import text

    return text(instructions)
