"""Every op that is a kernel, as CUDA C++ on the emulated device: the numbers of its reference. Generated from the
registry. The generic template writes all of them here, so that none is without a rendering.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

import numpy as np
import pytest

from symc.codegen.collapse import collapse
from symc.codegen.cpu.loops import is_loop_kernel
from symc.codegen.cuda.generic import generic
from symc.codegen.kernel_source import Form
from symc.codegen.names import is_kernel
from symc.codegen.scalarize import scalarize
from symc.ir.function import Input, function
from symc.ir.op import Op
from symc.ir.ops.kernel import results_of
from symc.ir.reference import run_region
from symc.opt.passes import optimize
from symc.runtime.emulator import EmulatedDevice
from tests.cuda.template_cases import Case, run
from tests.op_cases import SAMPLED, apply, cases
from tests.test_cpu_kernels import ULPS, assert_close

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulated device needs g++")
#: How many translation units there are, and how many samples of an op.
GROUPS, SAMPLES = 6, 4


class FastDevice(EmulatedDevice):
    """One that checks nothing, and so counts no traffic."""

    def __init__(self) -> None:
        super().__init__(checked=False)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[list]:
        yield []


def samples(op: Op) -> list[tuple[list[np.ndarray], dict]]:
    """Samples of an op that differ in more than numbers, from the whole list."""
    found = {}
    for arrays, attrs in cases(op):
        key = (*((a.dtype.char, a.ndim, a.size > 0) for a in arrays), str(sorted(attrs.items())))
        found.setdefault(key, (arrays, attrs))
    every = list(found.values())
    return every[:: -(-len(every) // SAMPLES)]


def kernels_of(op: Op, arrays: list[np.ndarray], attrs: dict) -> Iterator[tuple[Form, list[np.ndarray], list]]:
    """The kernels that an op becomes, with what reaches them and what they give."""
    v, leaves = apply(op, arrays, attrs)
    f = optimize(function(op.name, [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)], results_of(v))).function
    env = dict(zip(f.params, arrays, strict=True))
    for u in f.values():
        if u in env:
            continue
        operands = [env[o] for o in u.operands]
        if is_kernel(u):
            operands = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in operands]
            want = run_region(u.regions[0], operands, {})
            yield (u.regions[0], ()), operands, want
            env[u] = want[0] if len(want) == 1 else tuple(want)
        elif u.op.name == "constant":
            env[u] = u.attrs["value"].data
        elif u.op.name == "get":
            env[u] = operands[0][u.attrs["index"]]
        elif u.regions:  # a loop whose steps call a library
            return
        else:
            env[u] = u.op.reference(*operands, **u.attrs)


@pytest.mark.parametrize("group", range(GROUPS))
def test_ops(group):
    found: dict[str, tuple[str, Case]] = {}
    for op in SAMPLED[group::GROUPS]:
        for arrays, attrs in samples(op):
            with np.errstate(all="ignore"):
                kernels = list(kernels_of(op, arrays, attrs))
            for form, operands, want in kernels:
                family = generic(form, None if is_loop_kernel(form[0]) else scalarize(collapse(form[0])))
                case = Case(form[0], operands, {}, family, want=want)
                case.choice = "wide" if len(found) % 2 else family.choose(case.number)
                found.setdefault(family.source(case.choice, "kernel").text, (op.name, case))
    assert len(found) > 60
    run([case for _, case in found.values()], FastDevice())
    for name, case in found.values():
        for got, want in zip(case.got, case.want, strict=True):
            try:
                assert_close(got, want, 2 * ULPS.get(want.dtype.str[1:], 64))
            except AssertionError as e:
                raise AssertionError(f"{name}: {e}") from None
