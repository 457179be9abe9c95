"""Properties of random programs: text round trips, and every prefix of the pipeline means what the program means."""

import numpy as np
import pytest

from symc.ir.parse import parse
from symc.ir.reference import evaluate_function
from symc.ir.text import print_function
from symc.ir.verify import verify
from symc.opt import DEFAULT, optimize
from symc.testing.fuzz import random_arrays, random_function

BATCH = 100


def same(want, got, dtype):
    """Equal but for rounding, where the program itself is defined (a stable form may be finite where it is not)."""
    if want.dtype.kind != "f":
        return want.shape == got.shape and want.dtype == got.dtype
    fine = np.isfinite(want)
    scale = np.abs(want[fine]).max(initial=1.0)
    rtol = 1e-6 if dtype == "f64" else 2e-2
    return (
        want.shape == got.shape
        and want.dtype == got.dtype
        and np.allclose(got[fine], want[fine], rtol=rtol, atol=rtol * scale)
    )


@pytest.mark.parametrize("batch", range(10))
def test_text_reads_back_as_the_same_object(batch):
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        f = random_function(seed, 14)
        verify(f)
        assert parse(print_function(f)).body is f.body, f"seed {seed}"


@pytest.mark.parametrize("batch", range(4))
def test_every_prefix_of_the_pipeline_means_the_same(batch):
    for seed in range(10_000 + batch * BATCH, 10_000 + (batch + 1) * BATCH):
        f = random_function(seed, 20)
        arrays = random_arrays(f, seed)
        want = evaluate_function(f, arrays, check=True)
        for name, stage in optimize(f, DEFAULT, strict=True, verify=True).stages.items():
            got = evaluate_function(stage, arrays, check=True)
            assert all(same(a, b, "f64") for a, b in zip(want, got, strict=True)), (
                f"seed {seed} after {name}:\n{f}\n{stage}"
            )


def test_exact_rules_alone_give_the_same_bits():
    from symc.opt.rewrite import Rewriter
    from symc.opt.rule import all_rules
    from symc.testing.rules import same_bits

    exact = [r for r in all_rules() if r.exact]
    fired = 0
    for seed in range(20_000, 20_150):
        f = random_function(seed, 20)
        rewriter = Rewriter(exact, strict=True)
        g = f.with_results(rewriter.run(f.body.results))
        fired += rewriter.fired
        arrays = random_arrays(f, seed)
        assert all(
            same_bits(a, b) for a, b in zip(evaluate_function(f, arrays), evaluate_function(g, arrays), strict=True)
        ), f"seed {seed}"
    assert fired > 200


def test_optimizing_twice_changes_nothing_more():
    for seed in range(30_000, 30_100):
        f = optimize(random_function(seed, 20), "canonicalize").function
        assert optimize(f, "canonicalize").function.body is f.body, f"seed {seed}"


def test_random_programs_are_worth_testing():
    ops = set()
    for seed in range(200):
        ops |= {v.op.name for v in random_function(seed, 20).values()}
    assert len(ops) > 50 and {"dot", "sum", "logsumexp", "where", "broadcast", "transpose", "slice"} <= ops
