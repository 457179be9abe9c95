"""Whole programs of users: each function of `benchmarks/everyday` gives under symc what it gives under NumPy."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import symc as sc
from benchmarks.everyday import TOLERANCES, load_all
from benchmarks.kit import to_numpy

PROGRAMS = load_all()


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_symc_gives_what_numpy_gives(name):
    program = PROGRAMS[name]
    run = sc.jit(functools.partial(program.function, sc))
    arrays = program.arguments(program.small)
    wanted, got = to_numpy(program.function(np, *arrays)), to_numpy(run(*arrays))
    assert [(w.dtype, w.shape) for w in wanted] == [(g.dtype, g.shape) for g in got]
    for w, g in zip(wanted, got):
        np.testing.assert_allclose(g, w, rtol=TOLERANCES[program.dtype], atol=TOLERANCES[program.dtype])


def test_programs_are_of_many_kinds():
    kinds = {name.partition("-")[0] for name in PROGRAMS}
    assert len(PROGRAMS) >= 60 and len(kinds) >= 8
