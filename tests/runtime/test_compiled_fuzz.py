"""Random programs give the same values natively as in the reference, planned with and without reuse."""

from __future__ import annotations

import numpy as np
import pytest

from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.planner import make_plan
from symc.ir.reference import bind_sizes, evaluate_function
from symc.ir.verify import verify
from symc.opt import UNFUSED, optimize
from symc.opt.facts.bounds import check_indices
from symc.opt.fusion.fuse import fuse
from symc.runtime.cpu.program import load
from symc.testing.fuzz import random_arrays, random_function

SEEDS = range(24)


def agree(got: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    """Equal up to rounding, relative to the largest finite number of the result."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind not in "fc":
        return bool(np.array_equal(got, want))
    finite = np.abs(want[np.isfinite(want)])
    scale = float(finite.max()) if finite.size else 1.0
    return bool(np.allclose(got, want, tolerance, tolerance * scale, equal_nan=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_native_results_are_the_references(seed: int) -> None:
    """Kernels against the references of the very function they were made from: no rule stands between."""
    f = random_function(seed, steps=14, dtype="f32" if seed % 4 == 0 else "f64")
    g = fuse(check_indices(f))
    verify(g)
    plans = [make_plan(g), make_plan(g, reuse=False)]
    programs = []
    for plan in plans:
        check_plan(plan)
        programs.append(load(plan))
    for n in (4, 1, 7):
        arrays = random_arrays(f, seed, n)
        kept = [a.copy() for a in arrays]
        want = evaluate_function(f, arrays)
        sizes = bind_sizes([i.type for i in f.inputs], [a.shape for a in arrays])
        first = [p.run(arrays, sizes) for p in programs]
        for results in first:
            for got, expected in zip(results, want, strict=True):
                assert agree(got, expected, 2e-4 if seed % 4 == 0 else 1e-9)
        for a, b in zip(*first, strict=True):  # where buffers lie must not matter at all
            assert a.tobytes() == b.tobytes()
        for a, k in zip(arrays, kept, strict=True):
            assert a.tobytes() == k.tobytes(), "an input was modified"


@pytest.mark.parametrize("seed", range(200))
def test_fusion_keeps_the_reference(seed: int) -> None:
    """What `fuse` gathers means what it meant, through the optimized function too."""
    f = random_function(seed, steps=20)
    g = optimize(f, UNFUSED).function
    h = fuse(g)
    verify(h)
    arrays = random_arrays(f, seed)
    for a, b in zip(evaluate_function(h, arrays), evaluate_function(g, arrays), strict=True):
        np.testing.assert_array_equal(a, b)
