"""Kernels over rows that are all the same, and over rows of no axes: what does not depend on the row is still written
into every one of them. Every combination of what is read, folded and returned."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc
from symc.codegen.cuda.generic import Generic
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import scalarize
from symc.codegen.kernel.source import kernel_source
from symc.ir.parse import parse
from symc.ir.reference import run_region
from symc.ir.types import concrete_shape
from symc.opt.fusion.fuse import fuse
from tests.codegen.test_cpu_kernels import check_function

SIZES = {"n": 3, "m": 4}
#: What is read: the axes of the space that it has, and its shape.
READS = {"a number": ((), ""), "a row": ((1,), "m"), "a column": ((0,), "n"), "a matrix": ((0, 1), "n, m")}
FOLDS = [(kind, axes) for kind in ("sum", "max", "argmax") for axes in ((), (0,), (1,), (0, 1))
         if kind != "argmax" or len(axes) == 1]
#: Results beside the fold.
BESIDE = ("y", "e", "q", "y, %q", "e, %q")


def text(read: str, kind: str, axes: tuple[int, ...], beside: str) -> str:
    own, shape = READS[read]
    left = tuple(a for a in range(2) if a not in axes)
    small = ", ".join("nm"[a] for a in left)
    dtype = "i64" if kind == "argmax" else "f64"
    types = ", ".join(["f64[n, m]"] * (1 + beside.count(",")))
    return f"""
func @rows(%x: f64[{shape}]) -> ({dtype}[{small}], {types}) {{
  %y = broadcast %x {{axes = {own}, shape = (n, m)}} : f64[n, m]
  %e = exp %y : f64[n, m]
  %s = {kind} %e {{axes = {axes}}} : {dtype}[{small}]
  %c = cast %s {{dtype = f64}} : f64[{small}]
  %b = broadcast %c {{axes = {left}, shape = (n, m)}} : f64[n, m]
  %q = sub %e, %b : f64[n, m]
  return %s, %{beside}
}}
"""


@pytest.mark.parametrize("read", READS)
def test_every_kernel_is_written_and_its_loops_mean_the_same(read: str) -> None:
    for (kind, axes), beside in itertools.product(FOLDS, BESIDE):
        for v in fuse(parse(text(read, kind, axes, beside))).values():
            if v.op.name != "fused":
                continue
            (region,) = v.regions
            loops = scalarize(collapse(region))
            kernel_source((region, ())), Generic((region, ()), loops).text("i32")
            if loops.starts:
                continue  # what is put into a result is more than the values of the loops
            arrays = [np.random.default_rng(0).normal(size=concrete_shape(p.shape, SIZES)) for p in region.params]
            arrays_of_loops = [a.reshape(concrete_shape(p.shape, SIZES))
                               for a, p in zip(arrays, loops.region.params, strict=True)]
            for got, want in zip(run_region(loops.region, arrays_of_loops, SIZES), run_region(region, arrays, SIZES),
                                 strict=True):
                np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-14)


@pytest.mark.parametrize(("read", "kind", "axes"), [("a row", "sum", (1,)), ("a number", "argmax", (1,)),
                                                    ("a matrix", "max", ()), ("a column", "max", (0,))])
def test_kernels_of_equal_rows(read: str, kind: str, axes: tuple[int, ...]) -> None:
    known = text(read, kind, axes, "e, %q").replace("n, m", "3, 40").replace("[m]", "[40]").replace("[n]", "[3]")
    shape = {"a number": (), "a row": (40,), "a column": (3,), "a matrix": (3, 40)}[read]
    check_function(known, [np.random.default_rng(0).normal(size=shape)], backends=("llvm",))


def test_no_python_runs_where_rows_are_equal() -> None:
    row = sc.input("row", shape=("m",))
    rows = sc.broadcast_to(sc.exp(row), (30, row.shape[0]))
    f = sc.compile([rows / sc.sum(rows, axis=1, keepdims=True), sc.argmax(rows, axis=1)], [row])
    assert len(f.kernels) == 2
    got = f(np.arange(4.0))
    e = np.exp(np.arange(4.0))
    np.testing.assert_allclose(got[0], np.tile(e / e.sum(), (30, 1)), rtol=1e-15)
    assert (got[1] == 3).all()


def test_numbers_that_move_nowhere() -> None:
    assert check_function("""
func @numbers(%x: f64[], %y: f64[2, 3]) -> (f64[], f64[2, 3], f64[2, 3]) {
  %0 = broadcast %x {axes = (), shape = ()} : f64[]
  %1 = transpose %0 {perm = ()} : f64[]
  %2 = add %1, %x : f64[]
  %3 = broadcast %2 {axes = (), shape = (2, 3)} : f64[2, 3]
  %4 = mul %3, %y : f64[2, 3]
  %5 = broadcast %0 {axes = (), shape = (2, 3)} : f64[2, 3]
  return %2, %4, %5
}
""", [np.array(2.0), np.ones((2, 3))], backends=("llvm",))
