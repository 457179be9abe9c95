"""Checked indices: one comparison an index, and no clamp of what was checked."""

import numpy as np
import pytest

import symc as sc

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
