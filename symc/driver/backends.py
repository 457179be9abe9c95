"""Backends: where functions run, and what that decides. One record each; ``backend_of`` is the only choice among them.

To add one: a package under ``symc.runtime`` that loads plans (or functions), and a record here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from symc.driver.modes import BY_NUMPY
from symc.driver.target import Target
from symc.ir.record import dataclass

if TYPE_CHECKING:
    from symc.driver.calling import Calling
    from symc.driver.settings import Settings
    from symc.driver.signature import Signature
    from symc.ir.function import Function
    from symc.ir.plan import Plan


class Runner(Protocol):
    """What runs the calls of a function."""

    def run(self, arrays: Sequence[Any], sizes: Any, out: Any = None, cells: Sequence[Any] = ()) -> list[Any]:
        """Outputs, then the arrays of updated states, which ``cells`` have from the same moment on."""


class Program(Runner, Protocol):
    """What a plan, or a function, was loaded to."""

    @property
    def source(self) -> str:
        """The text of what runs."""

    @property
    def kernels(self) -> Any:
        """One ``KernelRecord`` a kernel."""

    def timer(self, sizes: Any) -> Any:
        """A ``symc.runtime.cpu.timing.Timer`` of its steps."""


@dataclass(frozen=True)
class Backend:
    """``load(planned, source, settings)``: the program of a plan (if there are ``plans``, else of a function) of what
    was written as ``source``. ``calls()``: the classes that accept arguments and make calls. ``modes``: those it has.
    ``pipeline``: of the mode "default", by its name in ``symc.opt.engine.pipelines``. ``streams``: how many a plan may
    use (in
    a CUDA graph they are branches, which cost the host nothing). ``on_disk``: code is kept for other processes."""

    name: str
    load: Callable[[Plan | Function, Function, Settings], Program]
    calls: Callable[[], tuple[type[Signature], type[Calling]]]
    modes: tuple[str, ...] = ("default", "fast_compile", "debug")
    plans: bool = True
    pipeline: str = "DEFAULT"
    streams: int = 1
    on_disk: bool = False


def backend_of(target: Target, mode: str) -> Backend:
    """Where a function runs that is compiled for a target in a mode."""
    if not target.on_host:
        return SEVERAL_GPUS if target.devices else GPU
    return NUMPY if mode in BY_NUMPY or target.backend == "numpy" else CPU


# --- the CPU ----------------------------------------------------------------------------------------------------------


def _on_cpu(plan: Any, source: Function, settings: Settings) -> Program:
    from symc.runtime.cpu.program import load
    from symc.runtime.threads import threads_of

    return load(plan, threads_of(settings.threads), settings.target.compiler)


def _by_numpy(function: Any, source: Function, settings: Settings) -> Program:
    from symc.runtime.reference_program import ReferenceProgram

    return ReferenceProgram(function)


def _host_calls() -> tuple[type[Signature], type[Calling]]:
    from symc.driver.calling import Calling
    from symc.driver.signature import Signature

    return Signature, Calling


#: Kernels by LLVM or Numba, run by the native interpreter of plans.
CPU = Backend("cpu", _on_cpu, _host_calls, on_disk=True)
#: The reference of every op, one after the other.
NUMPY = Backend("numpy", _by_numpy, _host_calls, (*CPU.modes, *BY_NUMPY), plans=False)


# --- CUDA devices, real and emulated ----------------------------------------------------------------------------------


def _on_gpu(plan: Any, source: Function, settings: Settings) -> Program:
    from symc.runtime.cuda.devices import context
    from symc.runtime.cuda.program import CudaProgram

    return CudaProgram(plan, context(settings.target.device), settings.target.precision)


def _gpu_calls() -> tuple[type[Signature], type[Calling]]:
    from symc.driver.on_device import DeviceCalling, DeviceSignature

    return DeviceSignature, DeviceCalling


def _on_gpus(plan: Any, source: Function, settings: Settings) -> Program:
    from symc.driver.splitting import split_of
    from symc.runtime.cuda.ranks import RanksProgram, group

    target = settings.target
    return RanksProgram(plan, group(target.devices), target.precision, split_of(source.inputs, target).dims)


def _gpus_calls() -> tuple[type[Signature], type[Calling]]:
    from symc.driver.on_devices import RanksCalling, RanksSignature

    return RanksSignature, RanksCalling


GPU = Backend("cuda", _on_gpu, _gpu_calls, ("default", "fast_compile"), pipeline="ON_CUDA", streams=4)
SEVERAL_GPUS = Backend("several cuda", _on_gpus, _gpus_calls, GPU.modes, pipeline="ON_CUDA", streams=GPU.streams)
