"""Sums of bools and of integers of few bits: part by part in few bits, in which the greatest of them fit."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.chunks import PARTIAL_SUM

LENGTHS = (0, 1, 5, PARTIAL_SUM - 1, PARTIAL_SUM, PARTIAL_SUM + 1, 70 * PARTIAL_SUM + 3)
PARTS = {"bool": "u16(", "uint8": "u32(", "int8": "i32(", "uint16": "u32(", "int16": "i32("}


def partial(f, t: str) -> int:
    """The number of partial sums that begin with 0 of a type."""
    return f.source.count(f" = {t}0)\n")


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("backend", ["llvm", "numba"])
def test_the_greatest_fit(dtype, backend):
    x = sc.input("x", dtype, ("n",))
    f = sc.compile([sc.sum(x), sc.count_nonzero(x)], [x], backend=backend)
    assert partial(f, PARTS[dtype]) + partial(f, "u16(") * (dtype != "bool") >= 1
    ends = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for n in LENGTHS:
        for a in (*(np.full(n, end, dtype) for end in ends), np.resize(np.array([*ends, 1], dtype), n)):
            assert [int(v) for v in f(a)] == [a.sum(), np.count_nonzero(a)]


def test_rows_and_means():
    x = sc.input("x", "uint8", ("n", "m"))
    f = sc.compile([sc.sum(x, axis=1), sc.sum(x > 7, axis=1), sc.sum(x)], [x])
    for shape in ((3, 0), (0, 3), (4, 7), (2, 3 * PARTIAL_SUM + 1)):
        a = np.random.default_rng(0).integers(0, 256, shape).astype("uint8")
        for got, want in zip(f(a), (a.sum(1), (a > 7).sum(1), a.sum()), strict=True):
            np.testing.assert_array_equal(got, want)


def test_what_comes_of_many_bits_stays_there():
    x, i, w = sc.input("x", "float64", ("n",)), sc.input("i", "int32", ("n",)), sc.input("w", "bool", ("n",))
    for out, ins in ((sc.count_nonzero(x > 1), [x]), (sc.sum(i), [i]), (sc.sum(w & (x > 1)), [w, x]),
                     (sc.sum(w, dtype="float64"), [w])):
        f = sc.compile(out, ins)
        assert not any(partial(f, t) for t in PARTS.values())
