"""The first and the last of sorted lines, which are found without sorting them."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc

#: Slices of a sorted line, and whether few elements of it are asked for.
SLICES = [(np.s_[:5], True), (np.s_[-3:], True), ((np.s_[::-1], np.s_[:4]), True), (np.s_[2:9:3], True),
          (np.s_[9:2:-2], True), (np.s_[-1], True), (np.s_[0], True), (np.s_[-2:-12:-3], True), (np.s_[:16], True),
          (np.s_[:40], False), (np.s_[3:-3], False), (np.s_[::2], False)]
N = 70


def lines(dtype: str, n: int) -> np.ndarray:
    """Many equals, zeros of both signs, infinities and nan."""
    rng = np.random.default_rng(n)
    x = rng.integers(0, 9, (6, n)).astype(dtype)
    if dtype[0] == "f":
        x = np.where(rng.random((6, n)) < 0.1, rng.choice([-0.0, np.nan, np.inf, -np.inf], (6, n)), x).astype(dtype)
        x[2:3] = np.nan
    return x


def sliced(found, at):
    for a in at if isinstance(at, tuple) else (at,):
        found = found[:, a]
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "b1"])
def test_ends_are_those_of_a_stable_sort(name, dtype):
    """Bit for bit, for lines of any length; and they are not sorted where few are asked for."""
    for n in (N, "n"):
        places = [at for at, _ in SLICES if n == N or at not in (0, -1)]
        given = [sc.input(f"x{k}", dtype, ("m", n)) for k in range(len(places))]  # each is sorted for one slice
        f = sc.compile([sliced(getattr(sc, name)(x, axis=1), at) for x, at in zip(given, places, strict=True)], given)
        for count in (N, *((0, 1, 3, 8, 33) if n == "n" else ())):
            a = lines(dtype, count)
            whole = getattr(np, name)(a, axis=1, kind="stable")
            wanted = [sliced(whole, at) for at in places]
            for got, want in zip(f(*[a] * len(given)), wanted, strict=True):
                assert got.dtype == want.dtype and got.tobytes() == np.ascontiguousarray(want).tobytes()


@pytest.mark.parametrize("at, few", SLICES)
def test_few_are_found_without_sorting(at, few):
    x = sc.input("x", "f8", ("m", N))
    for of in (sc.sort(x, axis=1), sc.argsort(x, axis=1), sc.argpartition(x, 7, 1), sc.partition(x, 7, 1)):
        assert ("top_places" in sc.compile(sliced(of, at)).dump()) is few


def test_a_line_that_is_read_whole_is_sorted_once():
    x = sc.input("x", "f8", ("m", N))
    order = sc.argsort(x, axis=1)
    text = sc.compile([order, order[:, :3]]).dump()
    assert "top_places" not in text and text.count("argsort") == 1
