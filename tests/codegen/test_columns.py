"""Folds down columns: blocks of accumulators, several rows at a time; any extent, dtype and kind."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.columns import BLOCK, ROWS
from tests.codegen.test_cpu_kernels import check_function

EXTENTS = (0, 1, 3, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS, 5 * ROWS + 3)
KINDS = [("sum", "f64", "f8"), ("sum", "f32", "f4"), ("sum", "i8", "i1"), ("prod", "f64", "f8"), ("max", "f32", "f4"),
         ("min", "i64", "i8"), ("all", "bool", "?"), ("any", "bool", "?")]


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    r = np.random.default_rng(sum(shape))
    return (r.integers(-4, 5, shape) / (4 if np.dtype(dtype).kind == "f" else 1)).astype(dtype)


def text(name: str, dtype: str, shape: tuple, axis: int) -> str:
    inner = ", ".join(map(str, shape))
    rest = ", ".join(str(s) for k, s in enumerate(shape) if k != axis)
    return f"""
func @columns(%x: {dtype}[{inner}]) -> ({dtype}[{rest}], {dtype}[{rest}]) {{
  %0 = {name} %x {{axes = ({axis},)}} : {dtype}[{rest}]
  %1 = {'not' if dtype == 'bool' else 'neg'} %x : {dtype}[{inner}]
  %2 = {name} %1 {{axes = ({axis},)}} : {dtype}[{rest}]
  return %0, %2
}}
"""


def check(name: str, dtype: str, x: np.ndarray, sizes: tuple, axis: int, backends: tuple[str, ...]) -> None:
    assert check_function(text(name, dtype, sizes, axis), [x], backends=backends) == 1


@pytest.mark.parametrize(("name", "dtype", "stored"), KINDS)
def test_first_and_middle_axes_of_any_size(name, dtype, stored):
    """One kernel for all sizes, by both compilers, of which Numba takes every second kind."""
    backends = ("llvm", "numba")[: 1 + (KINDS.index((name, dtype, stored)) % 2 == 0)]
    for rows, columns, outer in itertools.product(EXTENTS, [1, 2, 17, 70], [0, 1, 2]):
        if not rows and name in ("max", "min"):
            continue
        x = numbers(stored, (outer, rows, columns))
        check(name, dtype, x, ("a", "b", "c"), 1, backends)
        if outer < 2:
            check(name, dtype, numbers(stored, (rows, columns)), ("b", "c"), 0, backends)


@pytest.mark.parametrize(("name", "dtype", "stored"), KINDS)
@pytest.mark.parametrize("rows, columns, outer", [(ROWS, 17, 2), (5 * ROWS + 3, 70, 1), (1, 2, 2), (0, 70, 2)])
def test_first_and_middle_axes_of_known_sizes(name, dtype, stored, rows, columns, outer):
    """A kernel each. Both compilers read one text, of which Numba takes those of one size, of the other kinds."""
    if not rows and name in ("max", "min"):
        rows = 2 * ROWS
    x = numbers(stored, (outer, rows, columns))
    backends = ("llvm", "numba")[: 1 + (columns == 17 and KINDS.index((name, dtype, stored)) % 2)]
    check(name, dtype, x, x.shape, 1, backends)
    check(name, dtype, x[0], x.shape[1:], 0, backends)


@pytest.mark.parametrize("columns", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5])
def test_blocks_of_columns(columns):
    assert check_function(text("sum", "f32", ("n", "m"), 0), [numbers("f4", (ROWS + 3, columns))]) == 1


def test_long_sums_round_less_than_one_row_after_another():
    x = np.full((40001, 16), 0.1, "f4")
    v = sc.input("x", "float32", shape=("n", 16))
    got = sc.compile(sc.sum(v, axis=0), [v])(x)
    one_by_one = np.add.accumulate(x[:, 0])[-1]
    assert abs(got[0] - 4000.1) < abs(one_by_one - 4000.1) / 4


def test_a_large_body_takes_one_row_at_a_time():
    v = sc.input("x", "float64", shape=("n", 32))
    f = sc.compile(sc.sum(sc.tanh(v * 2 + 1) * sc.exp(-v) + sc.cos(v) / (v * v + 3), axis=0), [v])
    x = numbers("f8", (ROWS + 5, 32))
    want = (np.tanh(x * 2 + 1) * np.exp(-x) + np.cos(x) / (x * x + 3)).sum(axis=0)
    np.testing.assert_allclose(f(x[::-1])[::1], want, rtol=1e-13)


def test_a_sum_over_no_axes_is_no_column():
    text_ = """
func @nothing(%x: f64[n, m]) -> (f64[n, m]) {
  %0 = sum %x {axes = ()} : f64[n, m]
  return %0
}
"""
    assert check_function(text_, [numbers("f8", (3, 5))]) == 1


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32"])
def test_few_columns_of_short_numbers_are_loops_of_their_own(dtype):
    def in_blocks(columns):
        x = sc.input("x", dtype, ("n", columns))
        return str(BLOCK) in sc.compile(sc.max(x, axis=0), [x]).source

    assert in_blocks("m") and in_blocks(16)
    assert in_blocks(9) == (dtype == "float32")


@pytest.mark.parametrize(("name", "dtype", "stored"), KINDS)
def test_folds_over_no_axes_are_no_columns(name, dtype, stored):
    for sizes in (("a",), (1,), ("a", "b")):
        inner = ", ".join(map(str, sizes))
        assert check_function(f"""
func @no_axes(%x: {dtype}[{inner}]) -> ({dtype}[{inner}], {dtype}[{inner}]) {{
  %0 = {name} %x {{axes = ()}} : {dtype}[{inner}]
  %1 = {'not' if dtype == 'bool' else 'neg'} %x : {dtype}[{inner}]
  return %0, %1
}}
""", [numbers(stored, tuple(s if isinstance(s, int) else 7 for s in sizes))]) == 1


def test_rows_that_are_combined_at_a_time():
    """As many as are worth it by what an element reads and takes; constants and indices are no work."""
    x, y, z = map(sc.matrix, "xyz")
    for e, rows in ((x * y, ROWS), (2 * x + 1, ROWS), (x * y * z, 2), (abs(x - y) * (x + 1) * y, 2),
                    (sum(sc.sin(k * x) * y for k in range(1, 7)), 1)):
        source = sc.compile(e.sum(0)).source
        assert f"& -{rows}" in source if rows > 1 else "& -" not in source
