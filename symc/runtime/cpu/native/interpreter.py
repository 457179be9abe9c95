"""The native interpreter of plans of this process, which ``executor_ir`` writes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from symc.ir.locks import new_lock
from symc.runtime.cache.machine_code import load_module

Run = Callable[[int], int]
_lock = new_lock()
_runs: tuple[Run, Run, int] | None = None


def executor() -> tuple[Run, Run, int]:
    """``run(address of memory)`` and ``prepare(address of memory)``, which release the GIL (callbacks take it), and the
    address of ``pulse(address of memory)``, which kernels call."""
    global _runs
    if _runs is None:
        with _lock:
            if _runs is None:
                found = load_module("executor", _text, 2)
                kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
                _runs = kind(found("symc_run")), kind(found("symc_prepare")), found("symc_pulse")
    return _runs


def _text() -> str:
    from symc.runtime.cpu.native.executor_ir import text

    return text()
