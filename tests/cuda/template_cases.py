"""Kernels of small programs, written by the templates and run on the emulated device, beside their references."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import symc as sc
from symc.codegen.cuda.source import CudaSource
from symc.codegen.cuda.templates import TEMPLATES
from symc.codegen.cuda.writer import Kernel
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import scalarize
from symc.codegen.plan.inplace import region_pairs
from symc.ir.dim import Size
from symc.ir.function import Function
from symc.ir.parse import parse
from symc.ir.reference import bind_sizes, run_region
from symc.ir.size_values import evaluate
from symc.ir.types import concrete_shape
from symc.ir.value import Region
from symc.opt import DEFAULT
from symc.opt.fusion.fuse import fuse
from symc.runtime.cuda.library import signatures, unit
from symc.runtime.emulator import EmulatedDevice

Template = Callable[[Kernel], object]

@dataclass
class Case:
    """A kernel with what it is given. ``choice``: which variant; ``want``: the reference's results; ``inplace``:
    whether results lie in the memory of operands where they may."""

    region: Region
    arrays: list[np.ndarray]
    sizes: dict[str, int]
    family: object
    choice: str = ""
    inplace: bool = False
    name: str = ""
    want: list[np.ndarray] = field(default_factory=list)
    got: list[np.ndarray] = field(default_factory=list)
    traffic: list = field(default_factory=list)
    failed: bool = False

    def number(self, s: Size) -> int:
        return evaluate(s, self.sizes)

    @property
    def source(self) -> CudaSource:
        return self.family.source(self.choice, self.name)  # type: ignore[attr-defined]


def cases_of(program: str | Function, arrays: Sequence[np.ndarray], template: Template,
             inplace: bool = False) -> list[Case]:
    """The kernels of a program that a template writes, each with what reaches it."""
    g = fuse(parse(program)) if isinstance(program, str) else program
    sizes = bind_sizes([i.type for i in g.inputs], [a.shape for a in arrays])
    env: dict = dict(zip(g.params, arrays, strict=True))
    found = []
    for v in g.values():
        if v in env or not v.operands and v.op.name == "param":
            continue
        operands = [env[o] for o in v.operands]
        if v.op.name != "fused":
            env[v] = v.op.reference(*operands, **v.attrs.concrete(sizes)) if v.op.name != "get" else (
                operands[0][v.attrs["index"]])
            continue
        (region,) = v.regions
        operands = [np.ascontiguousarray(o).reshape(np.shape(o)) for o in operands]
        want = run_region(region, operands, sizes)
        family = template(Kernel.of((region, ()), scalarize(collapse(region))))
        if family is not None:
            case = Case(region, operands, sizes, family, inplace=inplace, want=want)
            case.choice = family.choose(case.number)  # type: ignore[attr-defined]
            found.append(case)
        env[v] = want[0] if len(want) == 1 else tuple(want)
    return found


def run(cases: Sequence[Case], device: EmulatedDevice | None = None) -> None:
    """Run all of them, from one translation unit, in which each text is once."""
    device = device or EmulatedDevice()
    names: dict[str, str] = {}
    for case in cases:
        case.name = "kernel"
        case.name = names.setdefault(case.source.text, f"kernel{len(names)}")
    stream = device.stream()
    sources = [case.source for case in cases]
    distinct = {case.name: source for case, source in zip(cases, sources, strict=True)}.values()
    kernels = device.load(unit([*distinct]), [s for source in distinct for s in signatures(source)])
    for case, source in zip(cases, sources, strict=True):
        with device.measuring() as case.traffic:
            _launch(device, stream, kernels, case, source)


def _launch(device, stream, kernels, case: Case, source: CudaSource) -> None:
    def memory(nbytes: int):
        return device.alloc(max(1, nbytes))

    operands = [memory(a.nbytes) for a in case.arrays]
    for m, a in zip(operands, case.arrays, strict=True):
        device.upload(m.address, a, stream)
    case.got = [np.empty(concrete_shape(r.shape, case.sizes), r.dtype) for r in case.region.results]
    home = {r: operands[k] for k, r in reversed(region_pairs(case.region))} if case.inplace else {}
    results = [home.get(r) or memory(a.nbytes) for r, a in enumerate(case.got)]
    sizes = [case.number(s) for s in source.scratch]
    scratch = [memory(n) for n in sizes]
    failed = memory(4)
    device.upload(failed.address, np.zeros(1, np.int32), stream)
    reads = [(m.address, a.nbytes) for m, a in zip(operands, case.arrays, strict=True)]
    writes = [(m.address, a.nbytes) for m, a in zip(results, case.got, strict=True)]
    own = [(m.address, n) for m, n in zip(scratch, sizes, strict=True)]
    index = np.int64 if source.wide else np.int32
    for k, entry in enumerate(source.entries):
        known = [*own, *writes] if k else []  # the first one does not know what is there
        given = {"operand": operands, "result": results, "scratch": scratch, "failed": [failed]}
        cells = [np.array([case.number(a.size)], index) if a.kind == "size" else
                 np.array([given[a.kind][a.index].address], np.int64) for a in entry.arguments]
        pointers = (ctypes.c_void_p * len(cells))(*[c.ctypes.data for c in cells])
        grid = tuple(case.number(g) for g in entry.grid)
        if 0 not in grid:
            device.launch(kernels[entry.name], grid, entry.block, case.number(entry.shared),
                          ctypes.addressof(pointers), stream,
                          [*reads, *known, (failed.address, 4)], [*writes, *own, (failed.address, 4)])
    for m, a in zip(results, case.got, strict=True):
        device.download(a, m.address, stream)
    flag = np.zeros(1, np.int32)
    device.download(flag, failed.address, stream)
    device.synchronize(stream)
    case.failed = bool(flag[0])


def compare(cases: Sequence[Case], ulps: float = 8) -> None:
    """Results are those of the references, but for rounding of ``ulps`` units of the greatest number in a result."""
    for case in cases:
        for got, want in zip(case.got, case.want, strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            if got.dtype.kind not in "fc":
                np.testing.assert_array_equal(got, want)
                continue
            finite = abs(want[np.isfinite(want)])
            scale = float(finite.max()) if finite.size else 1.0
            eps = float(np.finfo(got.dtype).eps)
            wide = "c16" if got.dtype.kind == "c" else "f8"
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=ulps * eps, atol=ulps * eps * scale,
                                       err_msg=case.choice)


def fast(kernel: Kernel) -> object:
    """The first template that writes a kernel."""
    return next((f for f in (template(kernel) for template in TEMPLATES) if f is not None), None)


def of(outs, ins, *arrays: np.ndarray, **more) -> list[Case]:
    """The kernels of a compiled expression."""
    return cases_of(sc.compile(outs, ins, pipeline=DEFAULT)._compilation.final, arrays, fast, **more)
