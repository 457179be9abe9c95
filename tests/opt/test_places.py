"""Places that are computed: in the kernel that looks up by them, with NumPy's meaning and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symc as sc
from symc.errors import IndexingError

pytestmark = pytest.mark.long

N = 12
#: Places made of integers ``i`` for an axis of ``n``; not all are inside.
PLACES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "as they are": lambda xp, i, n: i,
    "moved": lambda xp, i, n: i + 1,
    "remainder": lambda xp, i, n: (3 * i + 1) % n,
    "clipped": lambda xp, i, n: xp.clip(i - 2, 0, n - 1),
    "clipped above": lambda xp, i, n: xp.minimum(i, n - 1),
    "negative": lambda xp, i, n: ~i,
    "of a condition": lambda xp, i, n: (i > 2).astype("int64"),
    "rounded": lambda xp, i, n: xp.floor(i * 0.5).astype("int32"),
    "chosen": lambda xp, i, n: xp.where(i > 3, i - 3, i),
    "quotient": lambda xp, i, n: i // 2,
    "bits": lambda xp, i, n: i ^ 1,
}
#: What is made of what is looked up.
USES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "alone": lambda xp, t, i: t[i],
    "in a formula": lambda xp, t, i: xp.exp(-t[i]) * 2 + t[i],
    "summed": lambda xp, t, i: xp.sum(t[i]),
    "along": lambda xp, t, i: xp.cumsum(t[i]),
    "twice": lambda xp, t, i: t[i] * t[xp.maximum(i - 1, 0)],
    "beside": lambda xp, t, i: t[i] + i,
    "taken": lambda xp, t, i: xp.take(t, i),
    "in turn": lambda xp, t, i: t[xp.argsort(t)[i]],
    "both axes": lambda xp, t, i: (t[:, None] * t[None, :])[i, i],
    "rows": lambda xp, t, i: (t[:, None] + xp.arange(6.0))[i] * 2,
    "columns": lambda xp, t, i: (t[None, :] + xp.arange(6.0)[:, None])[:, i],
    "columns where they lie": lambda xp, t, i: _table(xp, t)[:, i] * 2,
    "across": lambda xp, t, i: _table(xp, t)[i][:, i % 6 - 1] * 2,
    "mesh": lambda xp, t, i: _table(xp, t)[i[:, None], i[None, :] % 6],
    "mesh with none": lambda xp, t, i: _table(xp, t)[i[:, None], i[None, :0]],
    "of a row": lambda xp, t, i: _table(xp, t)[-1][i] + _table(xp, t)[0][i % 6],
    "of columns": lambda xp, t, i: _table(xp, t)[i][:, 2] - _table(xp, t)[i][:, 0],
    "of some columns": lambda xp, t, i: _table(xp, t)[i][:, 1:4] * 2,
    "of every other": lambda xp, t, i: t[::2][i] + t[::-1][i // 2],
}


def _table(xp: Any, t: Any) -> Any:
    """Six columns that lie in memory."""
    return xp.concatenate([t, t + 1, t - 1, t * 2, t * t, -t]).reshape(-1, 6)


#: Uses of more than one index: which of those that are wrong an error names is not said.
SEVERAL = {"both axes", "in turn", "rows", "columns", "twice", "across", "mesh", "of a row", "of every other"}


def outcome(f: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """What a call gives, or the first line of its error."""
    try:
        return f(*arrays)
    except (IndexError, IndexingError) as e:
        return str(e).split("\n")[0].partition(", of an array")[0]


@pytest.mark.parametrize("use", USES)
@settings(max_examples=8, deadline=None)
@given(st.sampled_from(sorted(PLACES)), st.data())
def test_places_mean_what_numpy_means(use: str, place: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["int64", "int32", "uint8", "int8"]))
    least = 0 if dtype == "uint8" else -N
    drawn = data.draw(st.lists(st.integers(least - 1 if least else 0, N + 1), max_size=9))
    i, t = np.array(drawn, dtype), np.linspace(-1, 1, data.draw(st.sampled_from([1, 2, N])))

    def program(xp: Any, t: Any, i: Any) -> Any:
        return USES[use](xp, t, PLACES[place](xp, i, t.shape[0]))

    want = outcome(lambda t, i: program(np, t, i), t, i)
    got = outcome(_compiled(place, use, dtype), t, i)
    if isinstance(want, str):
        assert isinstance(got, str) and got.startswith("index") and "is out of bounds for axis" in got, (got, want)
        assert got.split()[1] == want.split()[1] or use in SEVERAL
    else:
        assert not isinstance(got, str), got
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


_made: dict[tuple[str, str, str], Any] = {}


def _compiled(place: str, use: str, dtype: str) -> Any:
    if (place, use, dtype) not in _made:
        t, i = sc.vector("t"), sc.input("i", dtype, (None,))
        made = USES[use](sc, t, PLACES[place](sc, i, t.shape[0]))
        _made[place, use, dtype] = sc.compile(made, [t, i])
    return _made[place, use, dtype]


PROGRAMS: dict[str, tuple[int, Callable[[Any, Any, Any], Any]]] = {
    "table": (1, lambda t, x, i: t[(x * 10).astype("int64") % t.shape[0]]),
    "interpolation": (1, lambda t, x, i: _interpolated(t, x)),
    "wrapped": (1, lambda t, x, i: t[i] * x),
    "mean": (1, lambda t, x, i: sc.mean(t[i + 1] * x)),
    "resampled": (1, lambda t, x, i: t[sc.floor(sc.arange(50) * 0.5).astype("int64")]),
    "searched": (1, lambda t, x, i: t[sc.searchsorted(t, -x)]),
    "stencil": (1, lambda t, x, i: _neighbours(t)),
    "places too": (1, lambda t, x, i: (t[i % 3], i % 3)),
    "batch": (1, lambda t, x, i: sc.vmap(lambda x, i: t[(i + 1) % t.shape[0]] * x)(x, i)),
    "gradient": (1, lambda t, x, i: sc.grad(sc.sum(t[i % t.shape[0]] ** 2), t)),
    "steps": (1, lambda t, x, i: sc.fori_loop(0, 3, lambda k, x: x + t[(x * 9).astype("int64") % t.shape[0]], x)),
    "columns": (2, lambda t, x, i: t.reshape((-1, 6))[:, i % 6] * 2),
    "grid": (3, lambda t, x, i: t.reshape((-1, 6))[i % 5][:, i % 6] * x),
    "mesh": (3, lambda t, x, i: t.reshape((-1, 6))[i[:, None] % 5, i[None, :] % 6] * x),
    "checked grid": (2, lambda t, x, i: t.reshape((-1, 6))[i // 8][:, i // 7] * x),
    "cubics": (1, lambda t, x, i: _cubic(t.reshape((-1, 3)), x)),
    "rows": (1, lambda t, x, i: t.reshape((3, -1))[0][i // 2] + t.reshape((3, -1))[2][i // 3]),
    "ring in steps": (1, lambda t, x, i: _turned(x)),
    "a row a step": (1, lambda t, x, i: sc.scan(lambda h, k: (h * 0.5 + t.reshape((-1, 5))[k // 8 + 1],) * 2,
                                                sc.zeros(5), i)[0]),
}  # fmt: skip


def _interpolated(t: Any, x: Any) -> Any:
    low = sc.clip(sc.floor(x).astype("int64"), 0, t.shape[0] - 2)
    return t[low] * (1 + low - x) + t[low + 1] * (x - low)


def _neighbours(t: Any) -> Any:
    n = t.shape[0]
    k = sc.arange(n)
    return t[(k + 1) % n] - 2 * t + t[sc.maximum(k - 1, 0)]


def _cubic(c: Any, x: Any) -> Any:
    k = c[sc.floor(x * 3).astype("int64")]
    return (k[:, 2] * x + k[:, 1]) * x + k[:, 0]


def _turned(x: Any) -> Any:
    n = x.shape[0]
    k = sc.arange(n)
    return sc.fori_loop(0, 30, lambda _, u: 0.3 * u + u[(k + 1) % n] - u[(k - 2) % n], x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel_looks_up_by_what_it_computes(name: str) -> None:
    count, program = PROGRAMS[name]
    inputs = [sc.vector("t"), sc.vector("x"), sc.input("i", "int64", (None,))]
    made = program(*inputs)
    f = sc.compile(made, inputs)
    launches = str(f.plan).count(" launch ")
    assert launches <= count, f.plan
    r = np.random.default_rng(0)
    arrays = [np.sort(r.normal(size=30)), r.uniform(0, 2, 20), r.integers(-20, 20, 20)]
    want = sc.compile(made, inputs, mode="reference")(*arrays)
    for a, b in zip(_list(f(*arrays)), _list(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def _list(made: Any) -> list[Any]:
    return list(made) if isinstance(made, list | tuple) else [made]


@settings(max_examples=40, deadline=None)
@given(st.integers(-30, 30), st.sampled_from([1, -1]), st.integers(0, 7), st.booleans(), st.booleans())
def test_a_ring_is_what_numpy_reads(start: int, step: int, n: int, known: bool, ends: bool) -> None:
    """Also of lengths that a shift goes around more than once, and of none."""
    x = sc.vector("x", shape=(n if known else "n",))
    size = x.shape[0]
    k = step * sc.arange(size) + start + (size if ends else 0)
    f = _rings.setdefault((start, step, n if known else None, ends), sc.compile(x[k % size], [x]))
    data = np.arange(n) * 1.5
    want = data[(step * np.arange(n) + start) % n] if n else data
    np.testing.assert_array_equal(f(data), want)


_rings: dict[Any, Any] = {}


@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (2, 1), (1, 2)])
def test_neighbours_on_a_torus(shape: tuple[int, int]) -> None:
    def program(xp: Any, u: Any) -> Any:
        i, j = xp.arange(u.shape[0])[:, None], xp.arange(u.shape[1])[None, :]
        n, m = u.shape
        return xp.exp(u[(i - 1) % n, (j + 2) % m]) + u[i, (-j) % m] + u[(i + 1) % n, (i + j) % m]

    u = sc.matrix("u")
    data = np.random.default_rng(0).normal(size=shape)
    f = _rings.setdefault("torus", sc.compile(program(sc, u), [u]))
    np.testing.assert_allclose(f(data), program(np, data), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rows", [False, True])
def test_a_refused_call_leaves_states_as_they_were(rows: bool) -> None:
    width = (8,) if rows else ()
    table, i = sc.input("t", "float64", (None, *width)), sc.input("i", "int64", (None,))
    s, count = sc.shared(np.ones((4, *width)), name="s"), sc.shared(np.zeros(4), name="count")
    f = sc.compile(sc.sum(s), [table, i], updates={s: s * 2 + table[i + 1], count: count + 1})
    data = np.arange(np.prod((5, *width)), dtype=float).reshape(5, *width)
    with pytest.raises(IndexingError, match=r"index 5 is out of bounds for axis 0 of size 5(?s:.*)test_places.py"):
        f(data, np.array([0, 1, 4, 2]))
    assert np.all(s.get_value() == 1) and not count.get_value().any()
    f(data, np.array([0, 1, -2, 2]))
    np.testing.assert_array_equal(s.get_value(), 2 + data[np.array([1, 2, -1, 3])])
    assert count.get_value().all()


def test_a_state_stays_in_place_beside_places_that_may_fail() -> None:
    t, x = sc.vector("t"), sc.vector("x")
    s = sc.shared(np.zeros(100), name="s")
    f = sc.compile([], [t, x], updates={s: s + t[sc.floor(x).astype("int64")]})
    assert "update (%s = %s)" in str(f.plan)
    f = sc.compile([], [t, x], updates={s: s + t[sc.floor(x).astype("int64") % 7]})
    f(np.arange(7.0), np.full(100, 8.5))
    assert s.get_value()[0] == 1.0


def test_places_that_many_kernels_read_are_computed_once() -> None:
    """Dear ones are; each kernel would compute them anew."""
    x, t = sc.matrix("x"), sc.vector("t")
    i = sc.floor(sc.exp(sc.sin(x))).astype("int64") % t.shape[0]
    parts = [sc.sum(t[i], axis=0), sc.sort(t[i], axis=1), t[i] @ x.T]
    f = sc.compile(parts, [x, t])
    assert f.source.count("exp(") == 1
    r = np.random.default_rng(1)
    arrays = r.normal(size=(30, 40)), r.normal(size=9)
    for a, b in zip(f(*arrays), sc.compile(parts, [x, t], mode="reference")(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
