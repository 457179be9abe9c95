"""Audit of the launches of a function for a device: what each moves, how many threads it has, and how long that takes.

Nothing is run. What a launch moves is read off its loops (``symc.codegen.cuda.traffic``), registers off the CUBIN where
NVRTC is installed; times are estimates against the limits of an H200: bytes over bandwidth, operations over
arithmetic, and for launches of few threads what those can have on their way at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from symc.codegen.cuda.generic import Generic
from symc.codegen.cuda.traffic import Traffic, traffic_of
from symc.errors import InputError
from symc.ir.dim import Size
from symc.ir.record import dataclass
from symc.ir.size_values import evaluate
from symc.runtime.cuda.actions import (
    Action,
    CollectiveAction,
    CopyAction,
    FactorizationAction,
    FillAction,
    LaunchAction,
    ProductAction,
    RecordAction,
    WaitAction,
)
from symc.runtime.cuda.device import Product, Resources
from symc.runtime.cuda.devices import Context
from symc.runtime.cuda.dry import Span, dry_device
from symc.runtime.cuda.frame import Frame
from symc.tools.profiling.tables import Column, duration, number, table

#: Bytes a second that copies reach on an H200; multiplications and additions a second of one lane's f32 units on all
#: multiprocessors; and of products, by how they are computed.
BANDWIDTH, ARITHMETIC = 4.3e12, 132 * 128 * 1.7e9
PRODUCTS = {"highest": 50e12, "tf32": 380e12, "bf16": 770e12, "float16": 770e12, "bfloat16": 770e12, "float64": 55e12}
#: Operations a second of a factorization by cuSOLVER (eigenvalues of 1,024 rows in 20 ms).
SOLVER = 5e11
#: Seconds of a launch in a graph; of a read from memory; of an operation that waits for the one before; bytes that a
#: thread has on their way at once.
LAUNCH, LATENCY, STEP, ON_THE_WAY = 1.5e-6, 0.8e-6, 2.5e-9, 32
#: Registers of a kernel of which nobody has said.
TYPICAL = 32
#: What a multiprocessor of a kind of GPU has: registers, bytes of shared memory, threads, blocks. Blocks are given
#: registers of a warp in units of 256, and shared memory with 1 KiB more.
LIMITS = {"sm_80": (65536, 164 * 1024, 2048, 32), "sm_90": (65536, 228 * 1024, 2048, 32),
          "sm_100": (65536, 228 * 1024, 2048, 32)}
MULTIPROCESSORS = 132


@dataclass(frozen=True)
class Launch:
    """One launch, copy or product of a plan, as often as it ``runs``; bytes and seconds are those of all runs.

    ``kind``: "kernel", "product", "copy", "fill" or "reduction". ``grid``, ``block``: blocks, and threads of one.
    ``minimal``: bytes that must be moved for the kernel of which this is a launch (0 but for its last one), and
    ``step`` the number of that kernel in the plan; ``template``: who wrote it.
    ``registers``, ``spills``: None where nothing compiled it; ``occupancy``: for each kind of GPU, which part of the
    threads that a multiprocessor can have it has. ``seconds``: estimated; ``least``: for the minimal bytes.
    """

    name: str
    kind: str
    step: int
    runs: int
    grid: tuple[int, int, int]
    block: int
    moved: int
    minimal: int
    shared: int
    registers: int | None
    spills: int | None
    occupancy: Mapping[str, float]
    seconds: float
    least: float
    lines: tuple[str, ...]
    template: str

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        return self.blocks * self.block


class Launches(list[Launch]):
    """Launches in the order of the plan; prints as a table."""

    @property
    def seconds(self) -> float:
        """Estimated time of all of them, one after the other."""
        return sum(x.seconds for x in self)

    @property
    def least(self) -> float:
        """The same where nothing is moved that need not be."""
        return sum(x.least for x in self)

    def __str__(self) -> str:
        return table([
            Column("launch", [x.name for x in self], left=True),
            Column("by", [x.template or x.kind for x in self], left=True),
            Column("runs", [str(x.runs) for x in self]),
            Column("blocks", [str(x.blocks) if x.block else "" for x in self]),
            Column("threads", [str(x.block) if x.block else "" for x in self]),
            Column("moved", [number(x.moved) for x in self]),
            Column("minimal", [number(x.minimal) for x in self]),
            Column("shared", [str(x.shared) for x in self]),
            Column("regs", ["" if x.registers is None else str(x.registers) for x in self]),
            Column("spills", ["" if x.spills is None else str(x.spills) for x in self]),
            Column("occupancy", [f"{100 * x.occupancy['sm_90']:.0f}%" if x.occupancy else "" for x in self]),
            Column("time", [duration(x.seconds) for x in self]),
            Column("least", [duration(x.least) for x in self]),
            Column("lines", [" ".join(x.lines) for x in self], left=True),
        ]) + f"\nin all {duration(self.seconds)}, at least {duration(self.least)}"

    __repr__ = __str__


def launches(program: Any, sizes: Mapping[str, int], registers: bool = True) -> Launches:
    """The launches of a loaded plan at some sizes. ``registers``: with what the compiler says of each."""
    lowered = program.lower(sizes)
    kernels, found = _Kernels(program, sizes, registers), Launches()
    for action, runs in zip(lowered.actions, _Counted(lowered).runs, strict=True):
        if runs and not isinstance(action, RecordAction | WaitAction):
            found.append(kernels.launch(action, runs) if isinstance(action, LaunchAction) else _other(action, runs))
    return found


def occupancy(registers: int, shared: int, block: int) -> dict[str, float]:
    """Parts of the threads of a multiprocessor, by kind of GPU."""
    warps = -(-block // 32)
    out = {}
    for arch, (all_registers, all_shared, threads, blocks) in LIMITS.items():
        by_registers = all_registers // max(1, warps * -(-max(registers, 1) * 32 // 256) * 256)
        fit = min(by_registers, all_shared // (shared + 1024), threads // (32 * warps), blocks)
        out[arch] = fit * warps * 32 / threads
    return out


class _Counted(Frame):
    """Counts how often each action runs: the plan's control is followed, and nothing is done. Loops whose end is data
    run once."""

    def __init__(self, lowered: Any):
        self.runs = [0] * len(lowered.actions)
        self._bound_so_far = 0
        self._asked: set[int] = set()
        super().__init__(lowered, Context(dry_device(0)), Span(0, lowered.arena), lambda array: Span(0, array.nbytes))
        self._interpret()

    def _bind(self, action: Action) -> Callable[[], None]:
        k, self._bound_so_far = self._bound_so_far, self._bound_so_far + 1

        def count() -> None:
            self.runs[k] += 1

        return count

    def _copy(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        """Copies of a loop's carries are not counted."""

    def _read(self, address: int, dtype: type) -> int:
        first = address not in self._asked
        self._asked.add(address)
        return int(first)


class _Kernels:
    """Records of launches of a plan. ``registers``: ask the compiler."""

    def __init__(self, program: Any, sizes: Mapping[str, int], registers: bool):
        self.program, self.sizes, self.registers = program, sizes, registers
        self._traffic: dict[Any, Traffic] = {}
        self._steps: dict[Any, int] = {}

    def _at(self, size: Size) -> int:
        return evaluate(size, self.sizes)

    def launch(self, a: LaunchAction, runs: int) -> Launch:
        """The record of a launch."""
        resources = self._resources(a.kernel) if self.registers else a.kernel.resources
        shared = a.shared + (resources.shared if resources else 0)
        part = occupancy(resources.registers if resources else TYPICAL, shared, a.block)
        step = self._steps.setdefault(a.of or a, len(self._steps))
        least_bytes = least_work = work = 0
        if a.of is None:
            moved = sum(n for _, n in dict.fromkeys((*a.reads, *a.writes)))
        else:
            traffic, source = self._of(a.of.loaded), a.of.source
            moved, reads = traffic.moved(source, a.entry, isinstance(a.of.loaded.family, Generic), self._at)
            work = traffic.operations(self._at) if reads or len(source.entries) == 1 else 0
            if a.entry == len(source.entries) - 1:
                least_bytes, least_work = traffic.minimal(self._at), traffic.operations(self._at)
        seconds = _seconds(moved, work, math.prod(a.grid) * a.block, part["sm_90"])
        least = LAUNCH * bool(least_bytes) + max(least_bytes / BANDWIDTH, least_work / ARITHMETIC)
        return Launch(a.kernel.name, "kernel", step, runs, a.grid, a.block, moved * runs, least_bytes * runs, shared,
                      resources.registers if resources else None, resources.spills if resources else None, part,
                      seconds * runs, least * runs, a.of.lines if a.of else (),
                      type(a.of.loaded.family).__name__ if a.of else "")

    def _of(self, loaded: Any) -> Traffic:
        if loaded.form not in self._traffic:
            self._traffic[loaded.form] = traffic_of(loaded.form[0], getattr(loaded.family, "unit", None))
        return self._traffic[loaded.form]

    def _resources(self, kernel: Any) -> Resources | None:
        """Resources of an entry: those known, or what NVRTC says."""
        if kernel.resources is not None:
            return kernel.resources
        from symc.runtime.cuda import nvrtc

        where = self.program.context
        try:
            return nvrtc.compile_cubin(where.text_of(kernel), where.device.properties.arch).resources[kernel.name]
        except InputError:  # there is no compiler
            return None


def _seconds(nbytes: int, work: int, threads: int, occupied: float) -> float:
    """Estimated time of a launch of so many threads."""
    at_once = min(threads, int(MULTIPROCESSORS * 2048 * occupied))
    memory = nbytes / min(BANDWIDTH, at_once * ON_THE_WAY / LATENCY)
    arithmetic = work / min(ARITHMETIC, at_once / STEP)
    return LAUNCH + max(memory, arithmetic)


def _other(a: Action, runs: int) -> Launch:
    nothing = (0, 0, 0)
    if isinstance(a, ProductAction):
        p = a.product
        nbytes = p.batch * (p.m * p.k + p.k * p.n + p.m * p.n) * p.dtype.itemsize
        least = LAUNCH + max(nbytes / BANDWIDTH, 2 * p.batch * p.m * p.n * p.k / _rate(p))
        return Launch(f"{p.batch} x {p.m} x {p.n} x {p.k}", "product", -1, runs, nothing, 0, nbytes * runs,
                      nbytes * runs, 0, None, None, {}, least * runs, least * runs, (), "")
    if isinstance(a, FactorizationAction):
        f = a.factorization
        work, nbytes = f.batch * f.n**2 * f.m * (9 if f.kind == "eigh" else 25), runs * f.batch * sum(f.nbytes)
        seconds, least = (runs * (LAUNCH + work / rate) for rate in (SOLVER, PRODUCTS["highest"]))
        return Launch(f"{f.kind} {f.batch} x {f.m} x {f.n}", "solver", -1, runs, nothing, 0, nbytes, nbytes, 0, None,
                      None, {}, seconds, least, (), "")
    kind, nbytes = "copy", 0
    if isinstance(a, CopyAction):
        nbytes = 2 * a.nbytes
    elif isinstance(a, FillAction):
        kind, nbytes = "fill", a.nbytes
    elif isinstance(a, CollectiveAction):
        kind, nbytes = "reduction", 2 * a.count * a.dtype.itemsize
    seconds = LAUNCH + nbytes / BANDWIDTH
    return Launch(kind, kind, -1, runs, nothing, 0, nbytes * runs, 0, 0, None, None, {}, seconds * runs, 0.0, (), "")


def _rate(p: Product) -> float:
    name = p.dtype.name if p.dtype.name in PRODUCTS else p.compute
    return PRODUCTS.get(name, PRODUCTS["highest"])


__all__ = ["Launch", "Launches", "launches", "occupancy"]
