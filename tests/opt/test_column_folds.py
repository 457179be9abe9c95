"""Folds over the first axes beside row by row work: one kernel, one reading of each array."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symc as sc
from symc.ir.parse import parse
from symc.opt.fusion.column_folds import MOST, column_folds
from symc.opt.fusion.fuse import fuse
from symc.testing import assert_kernels
from tests.codegen.test_cpu_kernels import check_function

pytestmark = pytest.mark.long

NORM = """
func @norm(%x: f32[b, n, m], %g: f32[m], %dy: f32[b, n, m]) -> (f32[b, n, m], f32[m], f32[m], f32[b, n]) {
  %0 = sum %x {axes = (2,)} : f32[b, n]
  %1 = broadcast %0 {axes = (0, 1), shape = (b, n, m)} : f32[b, n, m]
  %2 = sub %x, %1 : f32[b, n, m]
  %3 = mul %2, %dy : f32[b, n, m]
  %4 = sum %3 {axes = (0, 1)} : f32[m]
  %5 = sum %dy {axes = (0, 1)} : f32[m]
  %6 = broadcast %g {axes = (2,), shape = (b, n, m)} : f32[b, n, m]
  %7 = mul %6, %2 : f32[b, n, m]
  return %7, %4, %5, %0
}
"""
KINDS = {"sum": "f64", "prod": "f64", "max": "f32", "min": "i32", "all": "bool", "any": "bool"}
EXTENTS = st.sampled_from([0, 1, 2, 7, 16, 17, 33])


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    r = np.random.default_rng(seed)
    return (r.integers(-4, 5, shape) / (1 if np.dtype(dtype).kind in "ib" else 4)).astype(dtype)


@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 1, 1), (0, 4, 3), (2, 0, 3), (2, 3, 0), (4, 2, 1030)])
def test_row_statistics_and_sums_down_columns_are_one_kernel(shape):
    x, dy = numbers("f4", shape), numbers("f4", shape, 1)
    assert check_function(NORM, [x, numbers("f4", shape[2:], 2), dy]) == 1


@pytest.mark.parametrize(("name", "dtype"), KINDS.items())
@given(shape=st.tuples(EXTENTS, EXTENTS), small=EXTENTS)
@settings(deadline=None, max_examples=4, derandomize=True)
def test_every_kind_beside_what_it_folds(name, dtype, shape, small):
    if 0 in shape and name in ("max", "min"):
        shape = (3, 4)
    text = f"""
func @kind(%x: {dtype}[n, m]) -> ({dtype}[n, m], {dtype}[m]) {{
  %0 = {'not' if dtype == 'bool' else 'neg'} %x : {dtype}[n, m]
  %1 = {name} %0 {{axes = (0,)}} : {dtype}[m]
  return %0, %1
}}
"""
    dtypes = {"f64": "f8", "f32": "f4", "i32": "i4", "bool": "?"}
    assert check_function(text, [numbers(dtypes[dtype], shape)]) == 1


def test_different_first_axes_share_a_kernel():
    text = """
func @two(%x: f64[a, 20, 30]) -> (f64[20, 30], f64[30]) {
  %0 = exp %x : f64[a, 20, 30]
  %1 = sum %0 {axes = (0,)} : f64[20, 30]
  %2 = sum %0 {axes = (0, 1)} : f64[30]
  return %1, %2
}
"""
    assert check_function(text, [numbers("f8", (5, 20, 30))], ulps=64) == 1


@pytest.mark.parametrize(("shape", "count"), [(f"n, {MOST}", 1), (f"n, {MOST + 1}", 2), ("n, 16", 1), ("n, 8", 2)])
def test_rows_of_results_that_are_too_long_or_too_short_have_a_kernel_of_their_own(shape, count):
    f = parse(f"""
func @f(%x: f32[{shape}]) -> (f32[{shape}], f32[{shape.split(', ')[1]}]) {{
  %0 = exp %x : f32[{shape}]
  %1 = sum %0 {{axes = (0,)}} : f32[{shape.split(', ')[1]}]
  return %0, %1
}}
""")
    assert sum(v.op.name == "fused" for v in fuse(f).values()) == count


def test_columns_alone_stay_columns():
    f = parse("""
func @f(%x: f32[n, m]) -> (f32[m], f32[m]) {
  %0 = mul %x, %x : f32[n, m]
  %1 = sum %x {axes = (0,)} : f32[m]
  %2 = sum %0 {axes = (0,)} : f32[m]
  return %1, %2
}
""")
    (kernel,) = [v for v in fuse(f).values() if v.op.name == "fused"]
    assert not column_folds(kernel.regions[0])


def test_what_reads_the_sum_is_another_kernel():
    f = parse("""
func @f(%x: f32[64, 64]) -> (f32[64, 64], f32[64, 64]) {
  %0 = exp %x : f32[64, 64]
  %1 = sum %0 {axes = (0,)} : f32[64]
  %2 = sum %0 {axes = (1,)} : f32[64]
  %3 = broadcast %1 {axes = (0,), shape = (64, 64)} : f32[64, 64]
  %4 = div %0, %3 : f32[64, 64]
  %5 = broadcast %2 {axes = (0,), shape = (64, 64)} : f32[64, 64]
  %6 = div %0, %5 : f32[64, 64]
  return %4, %6
}
""")
    assert check_function(f, [numbers("f4", (64, 64))]) == 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layer_norm_forward_and_backward_is_one_kernel(dtype):
    x, g, b, dy = (sc.input(n, dtype, shape=s) for n, s in
                   zip("xgbd", [("n", "m"), ("m",), ("m",), ("n", "m")], strict=True))
    d = x - sc.mean(x, axis=1, keepdims=True)
    y = d / sc.sqrt(sc.mean(d * d, axis=1, keepdims=True) + 1e-5) * g + b
    f = sc.compile([y, *sc.grad(sc.sum(y * dy), [x, g, b])], [x, g, b, dy])
    reference = sc.compile([y, *sc.grad(sc.sum(y * dy), [x, g, b])], [x, g, b, dy], mode="reference")
    assert_kernels(f, 1)
    for n, m in itertools.product((1, 5), (1, 40)):
        r = np.random.default_rng(n * m)
        arrays = [r.standard_normal(s).astype(dtype) for s in ((n, m), (m,), (m,), (2 * n, m))]
        arrays[3] = arrays[3][::2]  # not contiguous
        for got, want in zip(f(*arrays), reference(*arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4 if dtype == "float32" else 1e-10, atol=1e-5)
