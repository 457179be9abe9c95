"""Backends: where functions run, and what that decides. One record each; ``backend_of`` is the only choice among them.

To add one: a package under ``symc.runtime`` that loads plans (or functions), and a record here, in ``ON_HOST`` if
``backend=`` chooses it.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

from symc.driver.backend import Backend, Program, Settings
from symc.driver.modes import BY_NUMPY
from symc.driver.target import Target
from symc.errors import InputError, did_you_mean
from symc.runtime.cpu.native.float_state import FLUSH

if TYPE_CHECKING:
    from symc.driver.call_path import CallPath
    from symc.driver.signature import Signature
    from symc.ir.function import Function


# --- the CPU ----------------------------------------------------------------------------------------------------------


def _on_cpu(plan: Any, source: Function, settings: Settings) -> Program:
    from symc.runtime.cpu.program import load
    from symc.runtime.threads import threads_of

    target = settings.target
    return load(plan, threads_of(settings.threads), target.compiler, target.flush)


def _by_numpy(function: Any, source: Function, settings: Settings) -> Program:
    from symc.runtime.reference_program import ReferenceProgram

    return ReferenceProgram(function)


def _host_calls() -> tuple[type[Signature], type[CallPath]]:
    from symc.driver.call_path import CallPath
    from symc.driver.signature import Signature

    return Signature, CallPath


#: Kernels by LLVM or Numba, run by the native interpreter of plans.
CPU = Backend("cpu", _on_cpu, _host_calls, sections=True, on_disk=True, flushes=True)
#: The reference of every op, one after the other.
NUMPY = Backend("numpy", _by_numpy, _host_calls, (*CPU.modes, *BY_NUMPY), plans=False)

#: Those of the CPU, by the names that ``backend=`` has for what makes their kernels.
ON_HOST = {"llvm": CPU, "numba": CPU, "numpy": NUMPY}


# --- CUDA devices, real and emulated ----------------------------------------------------------------------------------


def _on_gpu(plan: Any, source: Function, settings: Settings) -> Program:
    from symc.runtime.cuda.devices import context
    from symc.runtime.cuda.program import CudaProgram

    return CudaProgram(plan, context(settings.target.device), settings.target.precision)


def _gpu_calls() -> tuple[type[Signature], type[CallPath]]:
    from symc.driver.on_device import DeviceCallPath, DeviceSignature

    return DeviceSignature, DeviceCallPath


def _on_gpus(plan: Any, source: Function, settings: Settings) -> Program:
    from symc.driver.splitting import split_of
    from symc.runtime.cuda.ranks import RanksProgram, group

    target = settings.target
    return RanksProgram(plan, group(target.devices), target.precision, split_of(source.inputs, target).dims)


def _gpus_calls() -> tuple[type[Signature], type[CallPath]]:
    from symc.driver.on_devices import RanksCallPath, RanksSignature

    return RanksSignature, RanksCallPath


def _serve(f: Function) -> Function:
    from symc.codegen.cuda.served import serve

    return serve(f)


_ON_CUDA: Any = {"pipeline": "ON_CUDA", "fast": "FAST_ON_CUDA", "streams": 4, "serve": _serve}
GPU = Backend("cuda", _on_gpu, _gpu_calls, ("default", "fast_compile"), **_ON_CUDA)
SEVERAL_GPUS = Backend("several cuda", _on_gpus, _gpus_calls, GPU.modes, **_ON_CUDA)


def backend_of(target: Target, mode: str) -> Backend:
    """The backend of a function that is compiled for a target in a mode. Raises InputError for a name of none."""
    if target.backend is not None and target.backend not in list(ON_HOST):
        raise InputError(f"unknown backend {target.backend!r}", help=did_you_mean(str(target.backend), ON_HOST))
    if not target.on_host:
        return SEVERAL_GPUS if target.devices else GPU
    return NUMPY if mode in BY_NUMPY else ON_HOST[target.compiler]


def by_name(name: str) -> Settings:
    """The settings of a function whose ``backend`` is called so."""
    return Settings(ON_HOST[name], target=Target(backend=name))


def check_target(target: Target, mode: str) -> None:
    """Raise for a device that is not there, and for what the backend of a target has not: this mode, denormals that are
    zeros."""
    backend = backend_of(target, mode)
    if not target.on_host:
        from symc.runtime.cuda.devices import context

        for name in target.devices or (target.device,):
            context(name)
        if mode not in backend.modes:
            raise InputError(f"mode={mode!r} runs on the CPU, device={target.asked!r} was asked for",
                             help="mode='default' and 'fast_compile' run on a device")
        return
    if target.flush and not backend.flushes:
        said = Settings(backend, mode, target=target).said
        raise InputError(f"denormals='flush': {said} keeps denormal numbers", help="mode='default' or 'fast_compile' "
                         f"with backend={' or '.join(repr(n) for n, b in ON_HOST.items() if b.flushes)}")
    if target.flush and not FLUSH:
        raise InputError(f"denormals='flush': {platform.machine()} is no processor that can be told so")
    if target.backend is not None and mode not in ON_HOST[target.backend].modes:
        runs = "runs every op by NumPy" if mode in BY_NUMPY else "is not everywhere"
        raise InputError(f"mode={mode!r} {runs}, backend={target.backend!r} was asked for",
                         help="mode='default', 'fast_compile' and 'debug' have kernels" if mode in BY_NUMPY else
                         f"the backend has: {', '.join(ON_HOST[target.backend].modes)}")
