"""Random programs over a batch: what ``vmap`` gives is what a loop over the entries gives, once and nested."""

from __future__ import annotations

import numpy as np
import pytest

from symc.grad import jvp, vmap
from symc.ir.reference import run_values
from symc.ir.traverse import inline
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.testing.fuzz import random_arrays, random_function

N, M = 3, 2
SIZES = {"n": 4}


def values_of(roots, leaves, arrays):
    with np.errstate(all="ignore"):
        return run_values(roots, dict(zip(leaves, arrays, strict=True)), SIZES, check=True)


def batched(roots, leaves, flags, size):
    """The roots over one more axis of the leaves that are flagged, and the leaves they are then made of."""
    wide = [fresh_input(TensorType(x.dtype, (size, *x.shape))) if f else x for x, f in zip(leaves, flags, strict=True)]
    picked = [k for k, f in enumerate(flags) if f]
    return vmap(roots, [leaves[k] for k in picked], [wide[k] for k in picked], size), wide


def program(seed):
    f = random_function(seed, 16)
    leaves = [fresh_input(t) for t in f.body.params]
    rng = np.random.default_rng(seed)
    flags = rng.random(len(leaves)) < 0.6
    flags[int(rng.integers(len(leaves)))] = True
    return f, inline(f.body, leaves), leaves, flags.tolist()


def assert_same(got, want, message):
    """Equal but for rounding, where the entries are finite: sums are taken in another order."""
    fine = np.isfinite(want)
    scale = np.abs(want[fine]).max(initial=1.0) if want.dtype.kind == "f" else 0
    np.testing.assert_allclose(got[fine], want[fine], rtol=1e-8, atol=1e-8 * scale, err_msg=message)


@pytest.mark.parametrize("batch", range(4))
def test_a_batch_is_its_entries(batch):
    for seed in range(30_000 + 50 * batch, 30_000 + 50 * (batch + 1)):
        f, roots, leaves, flags = program(seed)
        sets = [random_arrays(f, seed + 7 * k) for k in range(N)]
        arrays = [np.stack([s[k] for s in sets]) if b else sets[0][k] for k, b in enumerate(flags)]
        made, wide = batched(roots, leaves, flags, N)
        got = values_of(made, wide, arrays)
        for i in range(N):
            want = values_of(roots, leaves, [a[i] if b else a for a, b in zip(arrays, flags, strict=True)])
            for g, w in zip(got, want, strict=True):
                assert_same(g[i], w, f"seed {seed}, {flags}:\n{f}")


def test_a_batch_of_batches():
    for seed in range(31_000, 31_060):
        f, roots, leaves, flags = program(seed)
        sets = [[random_arrays(f, seed + 7 * (N * j + i)) for i in range(N)] for j in range(M)]
        arrays = [np.stack([np.stack([s[k] for s in row]) for row in sets]) if b else sets[0][0][k]
                  for k, b in enumerate(flags)]  # fmt: skip
        once, wide = batched(roots, leaves, flags, N)
        twice, wider = batched(once, wide, flags, M)
        got = values_of(twice, wider, arrays)
        for j in range(M):
            for i in range(N):
                want = values_of(roots, leaves, [a[j][i] if b else a for a, b in zip(arrays, flags, strict=True)])
                for g, w in zip(got, want, strict=True):
                    assert_same(g[j][i], w, f"seed {seed}, {flags}:\n{f}")


def test_the_derivative_of_a_batch_is_the_batch_of_derivatives():
    compared = 0
    for seed in range(32_000, 32_060):
        f, roots, leaves, flags = program(seed)
        roots = [r for r in roots if r.dtype.kind == "f"]
        arrays = random_arrays(f, seed)
        wide = [np.stack([a, a * 1.25, a * 0.5]) if b else a for a, b in zip(arrays, flags, strict=True)]
        moves = [fresh_input(x.type) for x in leaves]
        tangents = [t for t in jvp(roots, leaves, moves) if t is not None]
        first, over = batched(tangents, [*leaves, *moves], [*flags, *flags], N)
        outside, inputs = batched(roots, leaves, flags, N)
        directions = [fresh_input(x.type) for x in inputs]
        second = [t for t in jvp(outside, inputs, directions) if t is not None]
        if not tangents:
            continue
        along = [np.full(a.shape, 0.75) for a in wide]
        got = values_of(first, over, [*wide, *along])
        want = values_of(second, [*inputs, *directions], [*wide, *along])
        for g, w in zip(got, want, strict=True):
            assert_same(g, w, f"seed {seed}, {flags}:\n{f}")
            compared += 1
    assert compared > 40
