"""Backends: where functions run, and what that decides. One record each; ``backend_of`` is the only choice among them.

To add one: a package under ``symc.runtime`` that loads plans (or functions), and a record here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from symc.ir.record import dataclass
from symc.modes import BY_NUMPY
from symc.target import Target

if TYPE_CHECKING:
    from symc.calling import Calling
    from symc.ir.function import Function
    from symc.ir.plan import Plan
    from symc.signature import Signature


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
        """A ``symc.runtime.timing.Timer`` of its steps."""


@dataclass(frozen=True)
class Backend:
    """``load(source, function, plan, target, threads)``: a program; ``function`` is what became of ``source``, and
    there is a plan if ``plans``. ``signature(target, source, *interface)`` accepts the arguments of calls,
    ``calling(target, ...)`` makes the calls. ``modes``: those it has. ``pipeline``: of the mode "default", by its name
    in ``symc.opt.pipelines``. ``streams``: how many a plan may use (in a CUDA graph they are branches, which cost the
    host nothing). ``on_disk``: what is lowered is kept for other processes."""

    name: str
    load: Callable[[Function, Function, Plan | None, Target, int | None], Program]
    signature: Callable[..., Signature]
    calling: Callable[..., Calling]
    modes: tuple[str, ...]
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


def _on_cpu(source: Function, function: Function, plan: Plan | None, target: Target, threads: int | None) -> Program:
    from symc.runtime.program import load
    from symc.runtime.threads import threads_of

    assert plan is not None
    return load(plan, threads_of(threads), target.compiler)


def _by_numpy(source: Function, function: Function, plan: Plan | None, target: Target, threads: int | None) -> Program:
    from symc.runtime.reference_program import ReferenceProgram

    return ReferenceProgram(function)


def _host_signature(target: Target, source: Function, *interface: Any) -> Signature:
    from symc.signature import Signature

    return Signature(*interface)


def _host_calling(target: Target, *call: Any) -> Calling:
    from symc.calling import Calling

    return Calling(*call)


#: Kernels by LLVM or Numba, run by the native interpreter of plans.
CPU = Backend("cpu", _on_cpu, _host_signature, _host_calling, ("default", "fast_compile", "debug"), on_disk=True)
#: The reference of every op, one after the other.
NUMPY = Backend("numpy", _by_numpy, _host_signature, _host_calling, ("default", "fast_compile", "debug", *BY_NUMPY),
                plans=False)


# --- CUDA devices, real and emulated ----------------------------------------------------------------------------------


def _on_gpu(source: Function, function: Function, plan: Plan | None, target: Target, threads: int | None) -> Program:
    from symc.runtime.cuda.devices import context
    from symc.runtime.cuda.program import CudaProgram

    assert plan is not None
    return CudaProgram(plan, context(target.device), target.precision)


def _device_signature(target: Target, source: Function, *interface: Any) -> Signature:
    from symc.on_device import DeviceSignature

    return DeviceSignature(target, *interface)


def _device_calling(target: Target, *call: Any) -> Calling:
    from symc.on_device import DeviceCalling

    return DeviceCalling(target, *call)


def _on_gpus(source: Function, function: Function, plan: Plan | None, target: Target, threads: int | None) -> Program:
    from symc.runtime.cuda.ranks import RanksProgram, group
    from symc.splitting import split_of

    assert plan is not None
    return RanksProgram(plan, group(target.devices), target.precision, split_of(source, target).dims)


def _ranks_signature(target: Target, source: Function, *interface: Any) -> Signature:
    from symc.on_devices import RanksSignature

    return RanksSignature(target, source, *interface)


def _ranks_calling(target: Target, *call: Any) -> Calling:
    from symc.on_devices import RanksCalling

    return RanksCalling(target, *call)


GPU = Backend("cuda", _on_gpu, _device_signature, _device_calling, ("default", "fast_compile"), pipeline="ON_CUDA",
              streams=4)
SEVERAL_GPUS = Backend("several cuda", _on_gpus, _ranks_signature, _ranks_calling, GPU.modes, pipeline="ON_CUDA",
                       streams=GPU.streams)
