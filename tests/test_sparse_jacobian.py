"""Sparse Jacobians and Hessians: no entry is missing from a pattern, colours are few, numbers are those of the dense
matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

import symc as sc
from symc.errors import GradientError, ShapeError
from symc.ir.op import Op
from symc.ir.types import DTYPES
from symc.ir.value import make
from symc.ir.attrs import Attrs
from symc.sparse.coloring import column_colors, star_colors
from symc.testing.fuzz import random_arrays, random_function
from symc.testing.fuzz.patterns import entries_lost, lost
from symc.tensors.convert import as_tensor
from symc.tools.debugging.sample import Sample
from tests.op_cases import apply, cases, observed, smooth_points
from tests.test_every_derivative import DIFFERENTIABLE, unknown

RNG = np.random.default_rng(0)
REAL = [op for op in DIFFERENTIABLE if smooth_points(op, DTYPES["f64"], np.random.default_rng(0))]


def small(op: Op):
    """A few operands of at most 16 elements an elementwise op, and samples of others."""
    for arrays, attrs in smooth_points(op, DTYPES["f64"], np.random.default_rng(3))[:12]:
        few = "elementwise" in op.traits and op.facts.kinds
        yield [a[:8] if few and a.ndim else a for a in arrays], attrs


def pattern_of(op: Op, arrays, attrs, known: bool):
    """The op on leaves; ``known``: integers are constants of the graph."""
    whole, leaves = apply(op, arrays, attrs)
    if known:
        operands = [as_tensor(a).value if a.dtype.kind in "iub" else x for a, x in zip(arrays, leaves, strict=True)]
        whole = make(op, operands, Attrs(attrs))
    return whole, leaves


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in REAL])
def test_no_entry_of_an_op_is_missing(op):
    for arrays, attrs in small(op):
        for known in (False, True):
            whole, leaves = pattern_of(op, arrays, attrs, known)
            wrt = [x for k, (x, a) in enumerate(zip(leaves, arrays, strict=True))
                   if a.dtype.kind == "f" and not unknown(op, k)]
            for y in observed(whole):
                for w in wrt if y.dtype.kind == "f" else []:
                    assert not lost(y, w, wrt, leaves, arrays), (attrs, known)


@pytest.mark.parametrize("batch", range(4))
def test_no_entry_of_a_random_program_is_missing(batch):
    for seed in range(50_000 + batch * 40, 50_000 + (batch + 1) * 40):
        f = random_function(seed, 14)
        assert not entries_lost(Sample(f, tuple(random_arrays(f, seed)))), f"seed {seed}\n{f}"
