"""The kernels of a function with what reaches them, for the generic template and the emulated device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from symc.codegen.cpu.loops import is_loop_kernel
from symc.codegen.cuda.generic import Generic
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.names import is_kernel
from symc.codegen.kernel.scalarize import scalarize
from symc.ir.function import Function
from symc.ir.reference import run_region
from symc.ir.value import Region
from symc.runtime.emulator import EmulatedDevice
from tests.cuda.template_cases import Case


class FastDevice(EmulatedDevice):
    """One that checks nothing, and so counts no traffic."""

    def __init__(self) -> None:
        super().__init__(checked=False)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[list]:
        yield []


def kernels_of(f: Function, arrays: Sequence[np.ndarray],
               sizes: Mapping[str, int]) -> Iterator[tuple[Region, list[np.ndarray], list[np.ndarray]]]:
    """The kernels of an optimized function, with what reaches them and what their references give."""
    env = dict(zip(f.params, arrays, strict=True))
    for v in f.values():
        if v in env:
            continue
        operands = [env[o] for o in v.operands]
        if is_kernel(v):
            (region,) = v.regions
            operands = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in operands]
            want = run_region(region, operands, dict(sizes))
            yield region, operands, want
            env[v] = want[0] if len(want) == 1 else tuple(want)
        elif v.op.name == "constant":
            env[v] = v.attrs["value"].data
        elif v.op.name == "get":
            env[v] = operands[0][v.attrs["index"]]
        elif v.regions:  # a loop whose steps call a library
            break
        else:
            env[v] = v.op.reference(*operands, **v.attrs.concrete(sizes))


def cases_of(f: Function, arrays: Sequence[np.ndarray], sizes: Mapping[str, int] = {}, choice: str = "") -> list[Case]:
    """The kernels of an optimized function, written by the generic template. ``choice``: "wide" for indices of 64 bits
    whatever the sizes are."""
    return [case_of(region, operands, sizes, want, choice) for region, operands, want in kernels_of(f, arrays, sizes)]


def case_of(region: Region, operands: list[np.ndarray], sizes: Mapping[str, int], want: list[np.ndarray],
            choice: str = "") -> Case:
    """One kernel."""
    family = Generic((region, ()), None if is_loop_kernel(region) else scalarize(collapse(region)))
    case = Case(region, operands, dict(sizes), family, want=want)
    case.choice = choice or family.choose(case.number)
    return case
