"""Sorting on a device: as NumPy sorts, whatever the length, the axis and the dtype."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.codegen.cuda.indices import NARROW
from symc.codegen.cuda.sorting import TILE, sort_form, sorting
from symc.ir.ops.sort import argsort, sort
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler
from tests.cuda.template_cases import Case, run

pytestmark = needs_compiler
SHAPES = [("f4", (4 * TILE + 5,), 0), ("f8", (2, TILE + 900), 1), ("f2", (TILE + 200, 3), 0), ("i4", (2, 40, 5), 1),
          ("u1", (2 * TILE,), 0), ("?", (30,), 0), ("f4", (0, 3), 0), ("f4", (2, 0), 1), ("i8", (TILE, 2), 0)]


def numbers(dtype, shape):
    rng = np.random.default_rng(3)
    x = (rng.normal(size=shape) * 50).round()
    if dtype in ("u1", "?"):
        return abs(x).astype(dtype)
    x = x.astype(dtype)
    if x.dtype.kind == "f" and x.size:
        flat = x.reshape(-1)
        flat[::17], flat[3::23], flat[5::29], flat[6::31] = np.nan, -0.0, np.inf, -np.inf
    return x


def family_of(op, x, axis):
    form = sort_form(op(fresh_input(TensorType(x.dtype, x.shape)), axis=axis))
    return form[0], sorting(form, None)


@pytest.mark.parametrize("op", [sort, argsort], ids=lambda op: op.name)
def test_sorts_are_numpys(op):
    cases = []
    for k, (dtype, shape, axis) in enumerate(SHAPES):
        x = numbers(dtype, shape)
        region, of = family_of(op, x, axis)
        case = Case(region, [x], {}, of, want=[op.reference(x, axis=axis)])
        case.choice = of.choose(case.number) + "_wide" * (k % 2)
        cases.append(case)
    assert {c.choice.split("_")[0] for c in cases} == {"0", "1", "3"}
    run(cases)
    for case in cases:
        np.testing.assert_array_equal(case.got[0], case.want[0], err_msg=f"{case.arrays[0].shape} {case.choice}")


def test_long_lines_have_wide_indices():
    of = family_of(argsort, np.zeros((3, 4), "f4"), 1)[1]
    assert of.choose(lambda n: n) == "0_doublings"
    assert of.choose(lambda n: NARROW).endswith("_wide")


def test_a_function_sorts_on_the_device():
    x = sc.input("x", "float32", ("n", "m"))
    with emulated_cuda():
        f = sc.compile([sc.sort(x, axis=0), sc.argsort(x * 2, axis=1)], [x], device="cuda")
        for shape in ((300, 20), (20, 300), (5, 2)):
            a = numbers("f4", shape)
            for got, want in zip(f(a), (np.sort(a, 0), np.argsort(a * 2, 1, kind="stable")), strict=True):
                np.testing.assert_array_equal(got.numpy(), want)
