"""Kernels of the emulated device: loaded from text, run with their checks, and what they say when one is wrong."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence

from symc.ir.record import dataclass
from symc.runtime.cuda.device import Kernel, Resources, Signature, Span, check_signature
from symc.runtime.emulator import build, native
from symc.runtime.emulator.errors import EmulationError

#: What CUDA asks of a launch, whatever the kernel.
MOST_THREADS, WARP, MOST_BLOCKS = 1024, 32, (2**31 - 1, 65535, 65535)
#: A kernel may be in the namespace of generated text.
_NAMES = "namespace symc {}\nusing namespace symc;\n"
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*(\d+)[^)]*\)\s*(?:void\s+)?(\w+)\s*\(")
#: An instruction of PTX, which is a function of native/ptx.h.
_PTX = re.compile(r'asm\("([\w.]+) %0((?:, %\d)+);" : "=\w"\((\w+)\) : ([^;]*)\);')
_PARAMETERS = re.compile(r"(\w+)\s*\(([^()]*__restrict__[^()]*)\)")


class EmulatedKernel:
    """A loaded entry. ``most_threads``: what its launch bounds allow; ``sole``: which parameters are declared
    ``__restrict__``."""

    resources: Resources | None = None

    def __init__(self, name: str, module: Module, widths: tuple[int, ...], most_threads: int, sole: tuple[int, ...]):
        self.name, self.module, self.widths, self.most_threads, self.sole = name, module, widths, most_threads, sole
        self.run = ctypes.cast(getattr(module.library, f"{name}__run"), ctypes.c_void_p).value


@dataclass(frozen=True)
class Location:
    """A line of the text of a kernel."""

    line: int
    text: str
    name: str = "kernel.cu"

    def __str__(self) -> str:
        return f"{self.name}:{self.line}"


class Module:
    """A translation unit."""

    def __init__(self, text: str, signatures: Sequence[Signature], checked: bool, fused: bool):
        self.lines = text.splitlines()
        entries = "".join(f"SYMC_ENTRY({s.name})\n" for s in signatures)
        text = _PTX.sub(_call, text)
        whole = f'#include "cuda.h"\n#line 1 "kernel.cu"\n{text}\n#line 1 "entries"\n{_NAMES}{entries}'
        self.checked = checked
        self.path = build.kernels(whole, checked, fused)
        self.library = ctypes.PyDLL(self.path)
        machine_of = self.library.symc_emulator_machine_of
        machine_of.restype = ctypes.c_void_p
        self.machine = machine_of()
        self.range = (ctypes.c_void_p * 4)()
        self.library.symc_emulator_range(self.range)

    @property
    def shared_bytes(self) -> int:
        """Static shared memory of all entries together."""
        return (self.range[3] or 0) - (self.range[2] or 0)

    def entries(self, text: str, signatures: Sequence[Signature]) -> dict[str, Kernel]:
        bounds = {name: int(number) for number, name in _BOUNDS.findall(text)}
        parameters = {name: tuple(k for k, p in enumerate(list_.split(",")) if "__restrict__" in p)
                      for name, list_ in _PARAMETERS.findall(text)}
        kernels: dict[str, Kernel] = {}
        for s in signatures:
            widths_of = getattr(self.library, f"{s.name}__widths")
            widths_of.restype = ctypes.POINTER(ctypes.c_int)
            found = widths_of()
            widths = tuple(found[i + 1] for i in range(found[0]))
            wrong = check_signature(s.name, s.widths, widths)
            if wrong is not None:
                raise EmulationError("LAUNCH", wrong, kernel=s.name)
            kernels[s.name] = EmulatedKernel(s.name, self, widths, bounds.get(s.name, MOST_THREADS),
                                             parameters.get(s.name, ()))
        return kernels

    def locations(self, codes: Sequence[int], lines: Sequence[int]) -> list[Location]:
        """The lines of the text that places in the library are of; ``lines``: of those whose place is not known."""
        known = [c for c in codes if c]
        rows = iter(build.lines_of(self.path, known) if known else [])
        found = []
        for code, line in zip(codes, lines):
            if code:
                line = next((n for file, n in next(rows) if file.endswith("kernel.cu")), 0)
            if line:
                found.append(Location(line, self.lines[line - 1].strip() if line <= len(self.lines) else ""))
        return found


def _call(ptx: re.Match[str]) -> str:
    """The call that stands for an instruction of PTX."""
    operands = re.findall(r"[(](.*?)[)]", ptx[4])
    return f"{ptx[3]} = ptx_{ptx[1].replace('.', '_')}({', '.join(operands)});"


class Arguments:
    """The arguments of one launch: copied, because who launches may change them at once."""

    def __init__(self, widths: Sequence[int], address: int):
        given = (ctypes.c_void_p * len(widths)).from_address(address) if widths else ()
        self.values = [ctypes.create_string_buffer(ctypes.string_at(p, w), -(-w // 16) * 16 + 16)
                       for p, w in zip(given, widths)]
        self.widths = tuple(widths)
        # A structure may ask for 16 bytes; where a buffer lies decides where in it the value lies.
        self.pointers = (ctypes.c_void_p * max(1, len(widths)))()
        for i, buffer in enumerate(self.values):
            start = ctypes.addressof(buffer)
            shift = -start % 16
            if shift:
                ctypes.memmove(start + shift, start, self.widths[i])
            self.pointers[i] = start + shift

    def pointing(self) -> dict[int, int]:
        """All arguments that may be addresses."""
        return {i: ctypes.c_uint64.from_address(self.pointers[i] or 0).value
                for i, w in enumerate(self.widths) if w == 8}


@dataclass(frozen=True)
class LaunchShape:
    """Launch shape of a kernel."""

    grid: tuple[int, int, int]
    block: int
    shared: int


def check_launch(kernel: EmulatedKernel, shape: LaunchShape, most_shared: int) -> None:
    """Raise where a device would refuse a launch."""
    def wrong(what: str) -> EmulationError:
        return EmulationError("LAUNCH", f"{kernel.name} is launched with {what}", kernel=kernel.name)

    if not 0 < shape.block <= MOST_THREADS or shape.block % WARP:
        raise wrong(f"{shape.block} threads a block: it must be a multiple of {WARP} up to {MOST_THREADS}")
    if shape.block > kernel.most_threads:
        raise wrong(f"{shape.block} threads a block, and its launch bounds allow {kernel.most_threads}")
    for axis, n, most in zip("xyz", shape.grid, MOST_BLOCKS):
        if not 0 < n <= most:
            raise wrong(f"{n} blocks along {axis}: there are 1 to {most}")
    if shape.shared < 0 or shape.shared + kernel.module.shared_bytes > most_shared:
        raise wrong(f"{shape.shared} bytes of dynamic and {kernel.module.shared_bytes} of static shared memory: the "
                    f"device has {most_shared} a block")


def check_aliases(kernel: EmulatedKernel, arguments: Arguments, reads: Sequence[Span], writes: Sequence[Span]) -> None:
    """Raise where memory is written to which two arguments point, and one claims to be the only one."""
    if not kernel.sole:
        return
    pointers = arguments.pointing()
    for start, nbytes in writes:
        inside = [k for k, address in pointers.items() if start <= address < start + nbytes]
        declared = sum(start <= s < start + nbytes for s, _ in (*reads, *writes))
        # An array without elements may lie where another one does; it is not declared.
        if 1 < len(inside) <= declared and any(k in kernel.sole for k in inside):
            raise EmulationError("LAUNCH", f"{kernel.name} writes memory that parameters {inside} point to, and "
                                           f"{[k for k in inside if k in kernel.sole]} are declared __restrict__",
                                 kernel=kernel.name)


def run(kernel: EmulatedKernel, shape: LaunchShape, arguments: Arguments, region: int | None, order: int, sample: int,
        spans: Sequence[tuple[Span, bool, bool]], traffic: native.Traffic | None) -> ctypes.Array:
    """Run a kernel now; the spans with what was moved. Raises EmulationError."""
    module = kernel.module
    failure = native.Failure()
    rows = (native.Span * max(1, len(spans)))()
    for row, ((start, nbytes), reads, writes) in zip(rows, spans):
        row.start, row.bytes, row.reads, row.writes = start, nbytes, reads, writes
    launch = native.Launch()
    launch.machine, launch.run = module.machine, kernel.run
    launch.arguments = ctypes.addressof(arguments.pointers)
    launch.grid[:] = shape.grid
    launch.threads, launch.shared_bytes, launch.order = shape.block, shape.shared, order
    launch.sample = sample
    launch.checked = module.checked
    launch.region = region
    launch.spans, launch.span_count = rows, len(spans)
    launch.library[:] = module.range[:]
    if traffic is not None:
        launch.traffic = ctypes.pointer(traffic)
    launch.failure = ctypes.pointer(failure)
    if native.runtime().symc_launch(launch):
        raise _error(kernel, shape, failure)
    return rows


def _error(kernel: EmulatedKernel, shape: LaunchShape, f: native.Failure) -> EmulationError:
    x, y, _ = shape.grid
    block = (f.block % x, f.block // x % y, f.block // x // y)
    where = kernel.module.locations((f.code, f.other_code), (f.line, f.other_line))
    return EmulationError(f.kind.decode(), f"{kernel.name}: thread {f.thread} of block {block} {f.text.decode()}",
                          kernel=kernel.name, block=f.block, thread=f.thread, where=where)


#: Widths of accesses in bytes, as counters have them; the last one is of all others.
WIDTHS = (1, 2, 4, 8, 16, 0)


@dataclass(frozen=True)
class LaunchTraffic:
    """One launch. ``loads``, ``stores``: how many accesses to device memory there were of each width in bytes (0: of
    another one); ``read``, ``written``: bytes of each range that was declared; ``efficiency``: bytes that instructions
    of warps needed, of those that the 32-byte sectors have that they asked for; ``bank_conflicts``: how many more
    turns shared memory took than instructions."""

    kernel: str
    shape: LaunchShape
    loads: dict[int, int]
    stores: dict[int, int]
    bytes_read: int
    bytes_written: int
    read: dict[Span, int]
    written: dict[Span, int]
    atomics: int
    efficiency: float
    shared_loads: int
    shared_stores: int
    bank_conflicts: int


def traffic_of(name: str, shape: LaunchShape, t: native.Traffic, rows: Sequence[native.Span]) -> LaunchTraffic:
    """Traffic that the runtime has counted."""
    return LaunchTraffic(
        name, shape, {w: n for w, n in zip(WIDTHS, t.loads) if n}, {w: n for w, n in zip(WIDTHS, t.stores) if n},
        t.bytes_read, t.bytes_written, {(r.start, r.bytes): r.bytes_read for r in rows if r.reads},
        {(r.start, r.bytes): r.bytes_written for r in rows if r.writes}, t.atomics,
        t.sector_bytes / (32 * t.sectors) if t.sectors else 1.0, t.shared_loads, t.shared_stores, t.bank_conflicts)
