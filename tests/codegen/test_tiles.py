"""Tiles: every order of axes, sizes around those of a tile, one operand turned or several; by both compilers, in C and
by threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.tiles import PIECE, ROWS

EXTENTS = [(0, 4), (1, 1), (3, 5), (ROWS - 1, PIECE), (ROWS, PIECE + 1), (ROWS + 1, PIECE - 1),
           (2 * ROWS + 3, 2 * PIECE + 5)]


def tiled(f) -> bool:
    return f", {PIECE})" in f.source


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("axes", [p for n in (2, 3, 4) for p in itertools.permutations(range(n))], ids=str)
def test_every_order_of_axes(axes):
    x = sc.input("x", "float64", tuple("abcd"[: len(axes)]))
    y = sc.input("y", "float64", tuple("abcd"[k] for k in axes))
    f = sc.compile(x.transpose(axes) * 2 + y, [x, y])
    assert tiled(f) == (axes[-1] != len(axes) - 1)
    for shape in ((2, 3, 4, 5), (ROWS + 1, 3, 2, PIECE + 1), (1, PIECE + 3, ROWS + 2, 2)):
        a = numbers(shape[: len(axes)], "float64")
        b = numbers(a.transpose(axes).shape, "float64")
        np.testing.assert_array_equal(f(a, b), a.transpose(axes) * 2 + b)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "int32", "bool", "complex128"])
@pytest.mark.parametrize("backend", ["llvm", "numba"])
def test_sizes_around_a_tile(dtype, backend):
    if backend == "numba" and dtype not in ("float64", "int8"):
        dtype = "float32"
    x = sc.input("x", dtype, ("n", "m"))
    y = ~x.T if dtype == "bool" else x.T + x.T[::-1] if dtype != "int8" else x.T + 1
    f = sc.compile(y, [x], backend=backend)
    assert tiled(f)
    for n, m in [*EXTENTS, *(e[::-1] for e in EXTENTS)]:
        a = numbers((n, m), dtype)
        expected = ~a.T if dtype == "bool" else a.T + a.T[::-1] if dtype != "int8" else a.T + np.int8(1)
        np.testing.assert_array_equal(f(a), expected)


def test_threads_take_rows():
    x = sc.input("x", "float64", ("n", "m"))
    f = sc.compile(sc.exp(x.T), [x], threads=2)
    a = np.random.default_rng(0).normal(size=(700, 1000))
    np.testing.assert_array_equal(f(a), sc.compile(sc.exp(x.T), [x], threads=1)(a))


def test_what_is_not_tiled():
    """Rows that are certainly short, few rows, folds, and operands that lie the same way."""
    x = sc.input("x", "float64", ("n", "m"))
    assert not tiled(sc.compile(x[:, ::-1] * 2 + x, [x]))
    assert not tiled(sc.compile(sc.sum(x.T * 2, axis=1), [x]))
    short = sc.input("x", "float64", (PIECE, "m"))
    assert not tiled(sc.compile(short.T + 1, [short]))
    few = sc.input("x", "float64", ("n", 3))
    assert not tiled(sc.compile(few.T + 1, [few]))


@pytest.mark.parametrize("axes, shape", [((2, 0, 1), "nm3"), ((1, 0), "n2"), ((0, 3, 1, 2), "knm4")])
@pytest.mark.parametrize("source", ["uint8", "float32", "float64"])
def test_a_few_rows_are_written_together(axes, shape, source):
    """Planes of colours: the loop over them goes inside, whatever is computed, by one thread or two."""
    x = sc.input("x", source, tuple(int(s) if s.isdigit() else s for s in shape))
    scale = np.arange(1.0, 2 + int(shape[-1]))[: int(shape[-1])].astype("float32")
    y = (x.astype("float32") / np.float32(255) - scale).transpose(axes)
    fs = [sc.compile(y, [x], threads=t) for t in (1, 2)]
    assert not tiled(fs[0]) and f"in range({shape[-1]}):" in fs[0].source.splitlines()[len(shape)]
    for n in (0, 1, 7, 33, 300):
        a = numbers(tuple(int(s) if s.isdigit() else n if s == "n" else 5 for s in shape), source)
        want = (a.astype("float32") / np.float32(255) - scale).transpose(axes)
        for f in fs:
            np.testing.assert_array_equal(f(a), want)


def test_a_checked_index_in_a_tile():
    """An index out of bounds is found in whatever tile it is."""
    x, k = sc.input("x", "float64", ("n", "m")), sc.input("k", "int64", ("n",))
    f = sc.compile(x.T[:, k] * 2, [x, k])
    a, places = np.arange(200.0 * 70).reshape(200, 70), np.arange(200)[::-1].copy()
    np.testing.assert_array_equal(f(a, places), a.T[:, places] * 2)
    places[150] = 200
    with pytest.raises(IndexError, match="200"):
        f(a, places)
