"""Every op on a device, the way a user's function gets there: optimized, planned, written by whichever template serves,
compiled, lowered and run. On the emulated device, and with ``SYMC_DEVICE=cuda:0`` on a GPU instead."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import numpy as np
import pytest

import symc as sc
from symc.ir.op import Fold, Op, Running
from symc.ir.value import Value
from symc.testing import emulated_cuda
from tests.codegen.test_cpu_kernels import ULPS, assert_close
from tests.cuda.test_generic_ops import samples
from tests.ir.op_cases import ON_DEVICES, apply, evaluate, in_groups, observed

#: How many functions share the ops. Not here: what prints, raises, or is made by a pass for states; and eigenvalues in
#: an order of their own (test_device_linalg.py).
GROUPS = 10
OTHERS = {"print", "assert", "after", "tap", "again", "cached", "check_assumption", "check_index", "eig", "eigvals"}
OPS = [op for op in ON_DEVICES if op.name not in OTHERS]


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[None]:
    if os.environ.get("SYMC_DEVICE"):
        yield
        return
    if shutil.which("g++") is None:
        pytest.skip("the emulated device needs g++")
    with emulated_cuda(checked=False):
        yield


class Sample:
    """An op on free leaves, and what its reference gives."""

    def __init__(self, op: Op, arrays: list[np.ndarray], attrs: dict):
        self.op, self.arrays = op, arrays
        v, self.leaves = apply(op, arrays, attrs)
        self.outputs: list[Value] = observed(v)
        self.want = evaluate(self.outputs, self.leaves, arrays)


def compiled(found: list[Sample]):
    outputs = [sc.Tensor(o) for s in found for o in s.outputs]
    return sc.compile(outputs, [sc.Tensor(x) for s in found for x in s.leaves], device="cuda")


@pytest.mark.parametrize("ops", in_groups(OPS, GROUPS))
def test_ops(ops):
    found = [Sample(op, arrays, attrs) for op in ops for arrays, attrs in samples(op)]
    got = iter(compiled(found)(*[a for s in found for a in s.arrays]))
    for s in found:
        for want in s.want:
            try:
                assert_close(next(got).numpy(), want, 4 * ULPS.get(want.dtype.str[1:], 64))
            except AssertionError as e:
                raise AssertionError(f"{s.op.name}: {e}") from None


def test_what_combines_elements_does_so_in_long_lines():
    """Samples fit in one warp; what the threads of several found is combined too, from the identity of its kind on."""
    rng, found = np.random.default_rng(3), []
    for op in (op for op in ON_DEVICES if isinstance(op.lowering, Running | Fold)):
        a = rng.uniform(0.9, 1.1, (2, 1500)).astype("f4")
        attrs = [dict(axis=k, reverse=r) for k in (0, 1) for r in (False, True)]
        attrs = attrs if isinstance(op.lowering, Running) else [dict(axes=(k,)) for k in (0, 1)]
        for one in attrs:
            x = (a if 1 in (one.get("axis"), *one.get("axes", ())) else a.T.copy())
            x = x > 1.09 if op.facts.kinds == "b" else x
            found.append(Sample(op, [x] * (2 if op.name == "linrec" else 1), one))
    got = iter(compiled(found)(*[a for s in found for a in s.arrays]))
    for s in found:
        for want in s.want:
            assert_close(next(got).numpy(), want, 4096)
