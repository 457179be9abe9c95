"""``dist.map``: results in blocks are those of the whole; what mixes is refused; what is read is read in the task."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import symc as sc
from symc.dist import mapping, sources
from symc.tensors.pytree import flatten

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(100, 7)), RNG.normal(size=100)
X, Y = da.from_array(A, chunks=(32, 3)), da.from_array(B, chunks=40)
ROWS = X.rechunk({1: -1})

#: Functions of a matrix and a vector with the same rows; NumPy's result where that is another function than itself.
FREE: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda x, y: sc.exp(x) * y[:, None],
    "several": lambda x, y: {"mean": sc.mean(x, axis=0), "top": (sc.max(x, axis=1), sc.min(y)), "n": x.shape[0]},
    "variance": lambda x, y: (sc.var(x), sc.std(x, axis=0), sc.var(x, axis=1)),
    "logsumexp": lambda x, y: sc.special.logsumexp(1000 * x, axis=0),
    "softmax": lambda x, y: sc.special.softmax(x, axis=0),
    "standard": lambda x, y: (x - x.mean(0)) / x.std(0),
    "places": lambda x, y: (sc.argmax(x, axis=0), sc.argmin(y)),
    "product": lambda x, y: sc.prod(x, axis=0),
    "truth": lambda x, y: (sc.any(y > 3), sc.all(x > -9, axis=0)),
    "histogram": lambda x, y: sc.zeros(10).at[sc.astype(sc.clip(y + 5, 0, 9), "int64")].add(1.0),
    "positions": lambda x, y: sc.arange(y.shape[0]) * y,
    "counted": lambda x, y: sc.ones(y.shape).sum() + sc.nanmean(x),
    "searched": lambda x, y: sc.searchsorted(sc.asarray([-1.0, 0, 1]), y),
    "norm": lambda x, y: sc.linalg.norm(y),
}
#: Those that take rows in blocks, and whole rows.
OF_ROWS: dict[str, Callable[[Any, Any], Any]] = {
    "gram": lambda x, y: x.T @ (x * y[:, None]),
    "covariance": lambda x, y: sc.cov(x.T),
    "loop": lambda x, y: sc.scan(lambda c, r: (c + sc.tanh(r), c * 2), sc.zeros(x.shape[:1]), xs=x.T)[1],
    "solve": lambda x, y: sc.linalg.solve(sc.eye(7) * 9 + x[:, :, None] * x[:, None, :], x[..., None])[..., 0],
    "fft": lambda x, y: sc.fft.fft(x, axis=1),
    "sort": lambda x, y: sc.sort(x, axis=1),
    "slope": lambda x, y: sc.grad(sc.mean(sc.log(1 + sc.exp(-y * (x @ sc.ones(7))))), x),
    "reshape": lambda x, y: sc.reshape(x, (*x.shape, 1)).sum(2),
    "padded": lambda x, y: (sc.pad(x, ((0, 0), (1, 2))), sc.pad(x, ((0, 0), (1, 1)), mode="edge")),
    "convolved": lambda x, y: sc.conv(x[:, None], sc.ones((1, 1, 3)), padding=1),
    "tiled": lambda x, y: (sc.tile(x, (1, 2)), sc.repeat(x, 2, axis=1)),
    "column": lambda x, y: (x.at[:, 0].set(0.0), x.at[:, 1:3].add(y[:, None]), sc.zeros(x.shape).at[..., -1].set(y)),
    "vmapped": lambda x, y: sc.vmap(lambda r, z: r.at[0].set(r.sum() + z))(x, y),
    "top": lambda x, y: sc.topk(x, 2),
    "chosen": lambda x, y: (sc.take_along_axis(x, sc.argmin(x, axis=1)[:, None], 1), x[sc.arange(x.shape[0]), 1]),
    "marked": lambda x, y: sc.zeros(x.shape).at[sc.arange(x.shape[0]), sc.argmax(x, axis=1)].set(y),
    "counted_rows": lambda x, y: sc.zeros(x.shape).at[sc.arange(x.shape[0])[:, None], sc.argsort(x, 1) // 2].add(1.0),
    "grouped": lambda x, y: sc.sort(x[:, :6].reshape((x.shape[0], 2, 3)), axis=2).sum(1) * y[:, None],
    "regrouped": lambda x, y: (x[:, :6].reshape((-1, 2, 3)).max(2), sc.tanh(x.reshape(-1)).sum()),
    "inverted": lambda x, y: sc.linalg.inv(x[:, :4].reshape((x.shape[0], 2, 2)) + 3 * sc.eye(2)),
}


@pytest.mark.parametrize("name", [*FREE, *OF_ROWS])
def test_odd_blocks_give_what_the_whole_gives(name: str) -> None:
    """Blocks without rows, of one row, a single one, of a whole that has one row, with a nan in it."""
    f = {**FREE, **OF_ROWS}[name]
    for rows, chunks in ((5, (0, 2, 0, 3)), (5, (1,) * 5), (1, (0, 1)), (1, (1,))):
        a, b = A[:rows].copy(), B[:rows].copy()
        a[0, 3] = np.nan if rows > 1 and name not in ("solve", "histogram") else a[0, 3]
        whole = sc.jit(f)(a, b)
        found = sc.dist.map(f, da.from_array(a, chunks=(chunks, 7)), da.from_array(b, chunks=(chunks,)))
        for got, want in zip(flatten(found)[0], flatten(whole)[0], strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got.compute(scheduler="sync"), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [*FREE, *OF_ROWS])
def test_blocks_give_what_the_whole_gives(name: str) -> None:
    f = sc.jit({**FREE, **OF_ROWS}[name], mode="reference")  # nothing is compiled
    got, nest = flatten(sc.dist.map(f, X if name in FREE else ROWS, Y))
    want, same = flatten(f(A, B))
    assert nest == same
    for g, w, found in zip(got, want, dask.compute(*got), strict=True):
        np.testing.assert_allclose(found, w, rtol=1e-9, err_msg=name)
        assert g.dtype == w.dtype == np.asarray(found).dtype and g.shape == w.shape
    assert name in ("several", "variance") or any(len(c) > 1 for g in got for c in g.chunks) or not got[0].ndim or \
        name in ("histogram", "gram", "covariance")


def test_formulas_are_stable_in_blocks_as_they_are_in_the_whole() -> None:
    f = sc.jit(lambda x: (sc.log(sc.sum(sc.exp(1000 * x), axis=0)), sc.var(x)))
    got = dask.compute(*sc.dist.map(f, ROWS))
    for g, w in zip(got, f(A), strict=True):
        np.testing.assert_allclose(g, w)
    assert np.isfinite(got[0]).all()


@pytest.mark.parametrize(("op", "f"), [
    ("cumsum", lambda x, y: sc.cumsum(y)), ("sort", lambda x, y: sc.sort(x, axis=0)), ("dot", lambda x, y: x @ x.T),
    ("slice", lambda x, y: y[::-1]), ("slice", lambda x, y: x[0]), ("random_bits", lambda x, y: y + sc.random.normal(
        sc.random.key(0), y.shape)), ("cumsum inside scan", lambda x, y: sc.scan(lambda c, r: (c + sc.cumsum(r)[-1], c),
                                                                              0.0, xs=x.T)[0]),
    ("scan", lambda x, y: sc.scan(lambda c, r: (c + r, c), 0.0, xs=y)[0]), ("gather", lambda x, y: x[[1, 2]]),
    ("reshape", lambda x, y: x.reshape((-1,))),
])  # fmt: skip
def test_what_mixes_is_refused_and_named(op: str, f: Any) -> None:
    f = sc.jit(f, mode="reference")
    with pytest.raises(sc.errors.InputError, match=f"cannot be computed in blocks of axis 0 of .*: {op} mixes") as e:
        sc.dist.map(f, ROWS, Y)
    assert "test_map.py" in str(e.value)
    for g, w in zip(flatten(sc.dist.map(f, A, B))[0], flatten(f(A, B))[0], strict=True):
        np.testing.assert_array_equal(g.compute(), w)  # whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("map")
    np.save(at / "a.npy", A)
    zarr.open_array(at / "a.zarr", mode="w", shape=A.shape, dtype=A.dtype, chunks=(10, 7))[:] = A
    group = zarr.open_group(at / "g.zarr", mode="w")
    group.create_array("q", shape=A.shape, dtype=A.dtype, chunks=(10, 7))[:] = A
    table = pa.table({"x": A[:, 0], "y": B, "i": pa.array([*range(99), None]), "s": ["a"] * 100})
    pq.write_table(table, at / "t.parquet", row_group_size=13)
    return at


@pytest.mark.parametrize("kind", ["a.npy", "a.zarr", "g.zarr/q", "array", "in a group", "memmap", "numpy"])
def test_what_lies_on_disk_is_read_in_the_task(folder: Path, kind: str) -> None:
    item = {"array": lambda: zarr.open_array(folder / "a.zarr"), "memmap": lambda: np.load(folder / "a.npy", "r"),
            "in a group": lambda: zarr.open_group(folder / "g.zarr")["q"], "numpy": lambda: A}.get(
                kind, lambda: folder / kind)()
    got = sc.dist.map(lambda x: (sc.exp(x).sum(1), x.var()), item, max_bytes="3kB")
    np.testing.assert_allclose(got[0].compute(), np.exp(A).sum(1))
    np.testing.assert_allclose(got[1].compute(), A.var())
    assert got[0].numblocks[0] > 1
    data = [t for t in dict(got[0].dask).values() if isinstance(t, np.ndarray)]
    assert bool(data) == (kind == "numpy")


def test_columns_of_parquet(folder: Path) -> None:
    f = lambda x, y: (x * y).sum()
    path = str(folder / "t.parquet")
    for args in ((path,), (path, path), (sc.dist.column(path, "x"), B)):
        found = sc.dist.map(f, *args, max_bytes=800)
        np.testing.assert_allclose(found.compute(), (A[:, 0] * B).sum())
    both = sc.dist.map(lambda m: m.mean(0), sc.dist.column(path, "x", "y"), max_bytes=800)
    np.testing.assert_allclose(both.compute(), [A[:, 0].mean(), B.mean()])
    with pytest.raises(sc.errors.InputError, match="'i' has 1 nulls"):
        sc.dist.map(lambda i: i.sum(), path).compute()
    with pytest.raises(sc.errors.InputError, match="has no column 'z'"):
        sc.dist.map(lambda z: z.sum(), path)
    with pytest.raises(sc.errors.InputError, match="column 's' is string, no numbers"):
        sc.dist.map(lambda s: s.sum(), path)


@pytest.mark.parametrize("name", ["a.npy", "t.parquet"])
def test_a_file_that_is_cut_or_changed_is_an_error_of_its_argument(folder: Path, tmp_path: Path, name: str) -> None:
    """It is refused, at once or in the task, or it is read: bytes of numbers are numbers."""
    data, rng = (folder / name).read_bytes(), np.random.default_rng(1)
    for k in range(30):
        cut = bytearray(data[: 0 if k == 0 else rng.integers(len(data))] if k % 2 == 0 else data)
        if cut:
            cut[rng.integers(min(len(cut), 120))] ^= 1 << rng.integers(8)
        (tmp_path / name).write_bytes(cut)
        try:
            sc.dist.map(lambda x: x.sum(), sc.dist.column(tmp_path / name, "x") if k % 4 < 2 and name[0] == "t" else
                        tmp_path / name)
        except sc.SymcError as e:
            assert name in str(e) or "x" in str(e)
    for empty in (tmp_path, tmp_path / "none.parquet"):
        with pytest.raises(sc.errors.InputError, match=r"there is no (Parquet )?file"):
            (tmp_path / name).unlink(missing_ok=True)
            sc.dist.column(empty, "x")


def test_tasks_fit(folder: Path) -> None:
    x = sc.input("x", "float64", shape=("n", "m"))
    f = sc.compile((sc.tanh(x).sum(0), sc.tanh(x)), [x], name="f")
    for most in (1000, 4000, 100_000):
        y = sc.dist.map(f, folder / "a.npy", max_bytes=most)[1]
        n, m = y.chunksize
        assert f.memory(n=n, m=m) <= most < (f.memory(n=2 * n, m=m) if n < 100 else np.inf)
    with pytest.raises(sc.errors.MemoryBudgetError, match="max_bytes is 10") as least:
        sc.dist.map(f, A, max_bytes=10)
    assert "a task has one element at least along n, m" in str(least.value)
    with pytest.raises(sc.errors.MemoryBudgetError, match="max_bytes is 1,000") as e:
        sc.dist.map(lambda x: sc.cumsum(x), B, max_bytes=1000)
    assert "cumsum mixes" in str(e.value) and "test_map.py" in str(e.value)


def test_lists_are_arrays_where_a_compiled_function_takes_one() -> None:
    x = sc.matrix("x")
    f = sc.compile(x.sum(0), [x])
    for found in (sc.dist.map(f, A.tolist()), sc.dist.map(f, x=[tuple(r) for r in A])):
        np.testing.assert_allclose(found.compute(), A.sum(0))
    nested = sc.dist.map(lambda pair: pair[0] + pair[1], [A, A])
    np.testing.assert_array_equal(nested.compute(), A + A)


def test_wrong_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    f = lambda x, y: (x * y[:, None]).sum()
    unknown = da.from_array(B, chunks=10)[da.from_array(B, chunks=10) > 0]
    for args, match in [((folder / "none.npy", B), "no file"), ((A,), "missing a required argument: 'y'"),
                        ((A, B[:30]), "must equal"), ((folder / "g.zarr", B), "is a zarr group"),
                        ((A, unknown), "unknown sizes"), ((A, str(folder / "..")), "is no .npy file")]:
        with pytest.raises(sc.SymcError, match=match):
            sc.dist.map(f, *args)
    with pytest.raises(sc.errors.InputError, match="has sizes that are data"):
        sc.dist.map(lambda x: x[x > 0], A)
    with pytest.raises(sc.errors.InputError, match="takes a function, not int"):
        sc.dist.map(3, A)  # type: ignore[arg-type]
    w = sc.shared(np.ones(7), "w")
    x = sc.matrix("x")
    with pytest.raises(sc.errors.InputError, match="f updates states"):
        sc.dist.map(sc.compile(x.sum(), [x], updates={w: w * 2}), A)
    monkeypatch.setattr(sources, "__name__", "x")
    with pytest.raises(sc.errors.InputError, match=r"needs nothing_at_all") as e:
        sources.needed("nothing_at_all.array", "dask", "dist.map")
    assert "pip install 'symc[dask]'" in str(e.value)


def test_states_and_names() -> None:
    x, w = sc.matrix("x"), sc.shared(np.arange(7.0), "w")
    f = sc.compile({"p": sc.tanh(x @ w), "m": sc.mean(x @ w)}, [x], name="lin")
    first, again = sc.dist.map(f, ROWS), sc.dist.map(f, x=ROWS)
    assert first["p"].name == again["p"].name
    w.set_value(w.get_value() * 2)
    other = sc.dist.map(f, ROWS)
    assert other["p"].name != first["p"].name
    np.testing.assert_array_equal(other["p"].compute(), f(A)["p"])
    assert np.isnan(sc.dist.map(f, ROWS[:0])["m"].compute())


def test_progress(client: Any) -> None:
    seen: list[tuple[int, int]] = []
    y = sc.dist.map(lambda x: sc.exp(x), X, progress=lambda k, n: seen.append((k, n)))
    assert seen[-1][0] == seen[-1][1] >= 12
    np.testing.assert_allclose(y.compute(), np.exp(A))
    with client.as_current():
        seen.clear()
        y = sc.dist.map(lambda x: sc.exp(x), X, progress=lambda k, n: seen.append((k, n)))
        assert seen == [(k + 1, 12) for k in range(12)]
        np.testing.assert_allclose(y.compute(), np.exp(A))


def test_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    mapping.bar(1, 2)
    mapping.bar(2, 2)
    assert capsys.readouterr().err.endswith("[########################################] 2/2\n")


def test_on_workers_with_the_same_bits(client: Any) -> None:
    f = lambda x, y: (sc.exp(x) * y[:, None], x.var(), x.T @ x)
    here = dask.compute(*sc.dist.map(f, ROWS, Y))
    with client.as_current():
        there = client.gather(client.compute(list(sc.dist.map(f, ROWS, Y))))
    assert [np.asarray(a).tobytes() for a in here] == [np.asarray(a).tobytes() for a in there]


def test_a_worker_has_a_function_once() -> None:
    y = sc.dist.map(lambda x: sc.exp(x) + 1, X)
    blocks = [t for t in dict(y.dask).values() if "Block" in repr(t)] or [y]
    sent = pickle.dumps(blocks[0])
    assert len(sent) < 10_000
    block = mapping.Block(sc.compile(sc.vector("x") * 2), "a token")
    one, two = pickle.loads(pickle.dumps(block)), pickle.loads(pickle.dumps(block))
    assert one is two and one(np.ones(2)).tolist() == [2.0, 2.0]


