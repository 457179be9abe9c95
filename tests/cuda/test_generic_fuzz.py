"""Kernels of random programs on the emulated device: what the generic template writes, and whoever is asked first."""

from __future__ import annotations

import numpy as np
import pytest

import symc.testing.fuzz.campaign  # noqa: F401 - it knows the generators
from symc.codegen.cuda.generic import Generic
from symc.codegen.cuda.templates import family
from symc.ir.reference import bind_sizes
from symc.ir.traverse import every_value
from symc.ir.types import TensorType
from symc.opt.engine.passes import optimize
from symc.testing.fuzz.programs import GENERATORS
from tests.cuda.emulated import needs_compiler
from tests.cuda.generic_cases import FastDevice, cases_of
from tests.cuda.template_cases import Case, run
from tests.runtime.test_compiled_fuzz import agree

pytestmark = needs_compiler
PROGRAMS = 10


def precision(case: Case) -> float:
    """That of the least precise number in a kernel."""
    types = [v.type for v in every_value(case.region) if isinstance(v.type, TensorType)]
    return max([float(np.finfo(t.dtype).eps) for t in types if t.dtype.kind in "fc"], default=0.0)


def kernels(name: str) -> list[Case]:
    found: dict[str, Case] = {}
    for seed in range(PROGRAMS):
        program = GENERATORS[name](seed, "")
        f = optimize(program.function).function
        for arrays in (program.data[0], *program.edges[:1]):
            sizes = bind_sizes([i.type for i in f.inputs], [a.shape for a in arrays])
            with np.errstate(all="ignore"):
                for case in cases_of(f, arrays, sizes, "wide" if seed % 2 else ""):
                    found.setdefault(case.source.text, case)
    return list(found.values())


@pytest.mark.parametrize("name", ["straight", "mixed", "loops"])
def test_random_programs(name):
    cases = kernels(name)
    assert len(cases) > PROGRAMS
    run(cases, FastDevice())
    fast = []
    for case in cases:
        of = family((case.region, ()))
        if not isinstance(of, Generic):
            fast.append(Case(case.region, case.arrays, case.sizes, of, of.choose(case.number), want=case.want))
    assert len(fast) > PROGRAMS // 2
    run(fast)
    for case in (*cases, *fast):
        for got, want in zip(case.got, case.want, strict=True):
            with np.errstate(all="ignore"):
                assert agree(got, want, 1e4 * precision(case)), (case.family, case.choice, case.source.text)
