"""Checked indices: one comparison an index, and no clamp of what was checked."""

import numpy as np
import pytest

import symc as sc
from symc.testing.bounds import at_the_end

PLACES = {
    "look-up": lambda x, i: x[i], "rows": lambda x, i: sc.reshape(x, (-1, 1))[i],
    "update": lambda x, i: x.at[i].set(1.0),
    "sum": lambda x, i: x.at[i].add(1.0), "counts": lambda x, i: sc.zeros_like(x).at[i].add(x[i]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_one_comparison(name, dtype):
    x, i = sc.input("x", shape=("n",)), sc.input("i", dtype, shape=("m",))
    f = sc.compile(PLACES[name](x, i), [x, i])
    (source,) = [k.source for k in f.kernels if "bad" in k.source]
    loop = source[source.index("u64(") :]
    assert loop.count("u64(") == 2 and loop.count("bad = bad |") == 1
    assert loop.count(" else n") == 0 and loop.count(" > 0 else 0") == 0
    array, places = np.arange(5.0), np.array([0, 4, 2, 2, 1, 0, 3, 4, 1], dtype)
    known = sc.compile(PLACES[name](x, i), [x, i], mode="reference")
    np.testing.assert_array_equal(f(array, places), known(array, places))
    bounds = np.iinfo(dtype)
    for wrong in {5, 100, bounds.max, *([] if dtype[0] == "u" else [-6, bounds.min])}:
        with pytest.raises(sc.IndexingError):
            f(array, np.array([0, wrong], dtype))
    with pytest.raises(sc.IndexingError):
        f(np.zeros(0), np.array([0], dtype))


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("columns", [1, 700])
def test_nothing_is_touched_of_an_empty_array(name, columns):
    """No place is within it, so the call raises before a kernel clamps one; here the process would end."""
    x, i = sc.input("x", shape=("n", columns)), sc.input("i", "int64", shape=("m",))
    f = sc.compile(PLACES[name](x, i), [x, i])
    empty = at_the_end(np.zeros((0, columns)))
    with pytest.raises(sc.IndexingError, match="within an axis of size 0"):
        f(empty, at_the_end(np.array([0, 3])), out=None if name in ("look-up", "rows") else at_the_end(empty))
    assert f(empty, np.zeros(0, np.int64)).size == 0


def test_what_counts_or_places_integers_says_so_too():
    """Their checks know of no array."""
    x, i = sc.vector("x"), sc.input("i", "int64", shape=("m",))
    n = x.shape[0]
    for made in (sc.bincount(i, length=n), sc.ravel_multi_index((i,), (n,)), sc.unravel_index(i, (n,))[0]):
        f = sc.compile(made, [x, i])
        with pytest.raises(sc.IndexingError, match="within an axis of size 0\n"):
            f(np.zeros(0), np.array([0, 0]))
        assert f(np.zeros(0), np.zeros(0, np.int64)).size == 0


CLIPS = {
    "clip": lambda i, n: sc.clip(i, 0, n - 1), "least of greatest": lambda i, n: sc.minimum(sc.maximum(0, i), n - 1),
    "greatest of least": lambda i, n: sc.maximum(sc.minimum(n - 1, i), 0),
}  # fmt: skip
NOT_ALL = {
    "one more": lambda i, n: sc.clip(i, 0, n), "negative ones": lambda i, n: sc.clip(i, -1, n - 1),
    "another size": lambda i, n: sc.clip(i, 0, i.shape[0] - 1), "no least": lambda i, n: sc.minimum(i, n - 1),
}  # fmt: skip


@pytest.mark.parametrize("clip", [*CLIPS, *NOT_ALL])
@pytest.mark.parametrize("name", PLACES)
def test_clipped_places_are_not_checked(name, clip):
    """Where there is something to index they are in bounds, and do not wrap around; else no kernel runs."""
    x, i = sc.input("x", shape=("n",)), sc.input("i", "int64", shape=("m",))
    clipped = (CLIPS | NOT_ALL)[clip]
    f = sc.compile(PLACES[name](x, clipped(i, x.shape[0])), [x, i])
    known = sc.compile(PLACES[name](x, clipped(i, x.shape[0])), [x, i], mode="reference")
    assert any("bad" in k.source or " < 0)" in k.source for k in f.kernels) == (clip in NOT_ALL)
    places = np.array([0, -1, -7, 3, 4, 2, 3])
    for n in (1, 4, 5, 9):
        array = np.arange(float(n))
        try:
            want = known(array, places)
        except sc.IndexingError:
            with pytest.raises(sc.IndexingError):
                f(array, places)
        else:
            np.testing.assert_array_equal(f(array, places), want)
    with pytest.raises(sc.IndexingError, match="within an axis of size 0"):
        f(np.zeros(0), places)
    assert f(np.zeros(0), np.zeros(0, np.int64)).size == 0
