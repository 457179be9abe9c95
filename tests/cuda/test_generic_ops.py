"""Every op that is a kernel, as CUDA C++ on the emulated device: the numbers of its reference. Generated from the
registry. The generic template writes all of them here, so that none is without a rendering.
"""

from __future__ import annotations

import numpy as np
import pytest

from symc.ir.function import Input, function
from symc.ir.op import Op
from symc.ir.ops.kernel import results_of
from symc.opt.engine.passes import optimize
from tests.codegen.test_cpu_kernels import ULPS, assert_close
from tests.cuda.emulated import needs_compiler
from tests.cuda.generic_cases import FastDevice, cases_of
from tests.cuda.template_cases import Case, run
from tests.ir.op_cases import ON_DEVICES, apply, cases, in_groups

pytestmark = needs_compiler
#: How many translation units there are, and how many samples of an op: test_device_ops.py takes more of them.
GROUPS, SAMPLES = 4, 2


def samples(op: Op, most: int = 3) -> list[tuple[list[np.ndarray], dict]]:
    """Samples of an op that differ in more than numbers, from the whole list."""
    found = {}
    for arrays, attrs in cases(op):
        key = (*((a.dtype.char, a.ndim, a.size > 0) for a in arrays), str(sorted(attrs.items())))
        found.setdefault(key, (arrays, attrs))
    every = list(found.values())
    return every[:: -(-len(every) // most)]


def kernels_of(op: Op, arrays: list[np.ndarray], attrs: dict, choice: str) -> list[Case]:
    """The kernels that an op becomes."""
    v, leaves = apply(op, arrays, attrs)
    f = function(op.name, [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)], results_of(v))
    with np.errstate(all="ignore"):
        return cases_of(optimize(f).function, arrays, choice=choice)


@pytest.mark.parametrize("ops", in_groups(ON_DEVICES, GROUPS))
def test_ops(ops):
    found: dict[str, tuple[str, Case]] = {}
    for op in ops:
        for k, (arrays, attrs) in enumerate(samples(op, SAMPLES)):
            for case in kernels_of(op, arrays, attrs, "wide" if k % 2 else ""):
                found.setdefault(case.source.text, (op.name, case))
    assert len(found) > 60
    run([case for _, case in found.values()], FastDevice())
    for name, case in found.values():
        for got, want in zip(case.got, case.want, strict=True):
            try:
                assert_close(got, want, 2 * ULPS.get(want.dtype.str[1:], 64))
            except AssertionError as e:
                raise AssertionError(f"{name}: {e}") from None
