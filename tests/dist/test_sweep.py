"""``dist.sweep``: one file a point, and whatever dies, the finished points stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.dist.children import Child
from tests.dist import sweeping

ROOT = Path(__file__).resolve().parents[2]
GRID = {"a": [1.0, 2.0, 3.0], "b": range(2)}


def test_points_in_order_here_in_processes_and_on_dask(client: Any, tmp_path: Path) -> None:
    want = [a * a + b for a in GRID["a"] for b in GRID["b"]]
    for k, how in enumerate([{}, {"processes": 2}, {"client": client}]):
        found = sc.dist.sweep(sweeping.squared, over=GRID, store=tmp_path / str(k), **how)
        assert [float(r["sum"]) for r in found] == want and found.computed == 6
        assert [(k["a"], k["b"]) for k in found.keys][:3] == [(1.0, 0), (1.0, 1), (2.0, 0)]
        assert any(r["pid"] == os.getpid() for r in found) == (not how)
        assert found[{"a": 2.0, "b": 1}]["sum"] == 5 and len(found.where(a=2.0)) == 2
        assert len(list((tmp_path / str(k)).iterdir())) == 6


def test_a_rerun_computes_what_is_missing_or_damaged(tmp_path: Path) -> None:
    first = sc.dist.sweep(sweeping.squared, over=GRID, store=tmp_path)
    files = sorted(tmp_path.iterdir())
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:100])
    data = bytearray(files[2].read_bytes())
    data[len(data) // 2] ^= 1
    files[2].write_bytes(data)
    more = [*first.keys, {"a": np.float64(9.0), "b": np.int32(0)}]
    again = sc.dist.sweep(sweeping.squared, over=more, store=tmp_path)
    assert again.computed in (3, 4) and [float(r["sum"]) for r in again[:6]] == [float(r["sum"]) for r in first]
    last = sc.dist.sweep(sweeping.squared, over=again.keys, store=tmp_path)
    assert last.computed == 0
    with pytest.raises(sc.errors.InputError, match="is of another function"):
        sc.dist.sweep(sweeping.deadly, over={"a": [1.0]}, store=tmp_path) if sc.dist.sweep(
            sweeping.squared, over={"a": [1.0]}, store=tmp_path) else None


def test_compiled_functions_and_their_states(tmp_path: Path) -> None:
    a, w = sc.scalar("a"), sc.shared(2.0, "w")
    f = sc.compile((a * w, sc.exp(a) + sc.zeros(2)), [a], name="f")
    for how in ({}, {"processes": 1}):
        found = sc.dist.sweep(f, over={"a": [1.0, 2.0]}, store=tmp_path / "s", **how)
        assert [float(r[0]) for r in found] == [2.0, 4.0] and found[1][1].shape == (2,)
    w.set_value(3.0)
    with pytest.raises(sc.errors.InputError, match="another function"):
        sc.dist.sweep(f, over={"a": [1.0, 2.0]}, store=tmp_path / "s")
    jitted = sc.jit(lambda a: a + 1)
    assert [float(x) for x in sc.dist.sweep(jitted, over={"a": [1.0, 2.0]})] == [2.0, 3.0]


@pytest.mark.parametrize("how", [{}, {"processes": 2}, {"client": True}])
def test_errors_name_the_point_and_the_others_are_done(how: dict[str, Any], client: Any, tmp_path: Path) -> None:
    how = {"client": client} if "client" in how else how
    with pytest.raises(sc.errors.ExecutionError, match=r"squared failed at \{'a': 13\}: ValueError: 13 is") as e:
        sc.dist.sweep(sweeping.squared, over={"a": [1, 13, 2]}, store=tmp_path, **how)
    assert len(list(tmp_path.iterdir())) == 2 and "test_sweep.py" in str(e.value) and "2 points of 3" in str(e.value)


def test_wrong_points() -> None:
    for over, match in [({"c": [1]}, "cannot be called at {'c': 1}"), ({"a": 1.0}, "values of 'a' are 1.0"),
                        ([1], "a point is a dict"), ({"a": [object()]}, "in a point is no number"),
                        ({"b": [1]}, "missing a required argument: 'a'")]:
        with pytest.raises(sc.errors.InputError, match=match):
            sc.dist.sweep(sweeping.squared, over=over)
    with pytest.raises(sc.errors.InputError, match="cannot be a folder"):
        sc.dist.sweep(sweeping.squared, over={"a": [1]}, store=__file__)
    with pytest.raises(sc.errors.ExecutionError, match="no array of numbers: str 'x'"):
        sc.dist.sweep(lambda a: "x", over={"a": [1]})
    with pytest.raises(sc.errors.InputError, match="cannot be sent to another process"):
        sc.dist.sweep(lambda a, lock=__import__("threading").Lock(): a, over={"a": [1]}, processes=1)


def test_a_point_that_ends_its_process_is_an_error_after_three_tries(tmp_path: Path) -> None:
    with pytest.raises(sc.errors.ExecutionError, match=r"failed at \{'a': 2\}: .*its process died in 3 tries"):
        sc.dist.sweep(sweeping.deadly, over={"a": [1, 2, 3]}, store=tmp_path, processes=1)
    assert len(list(tmp_path.iterdir())) == 2
    over = [{"a": k, "mark": str(tmp_path / "mark")} for k in range(3)]
    assert [float(x) for x in sc.dist.sweep(sweeping.dies_once, over=over, processes=1)] == [0, 1, 2]


def test_the_driver_dies(tmp_path: Path) -> None:
    """Every file that is there is whole, and a rerun computes the rest alone."""
    store = tmp_path / "runs"
    driver = subprocess.Popen([sys.executable, "-m", "tests.dist.sweeping", str(store)], cwd=ROOT)
    end = time.monotonic() + 300
    while time.monotonic() < end and not (store.exists() and len(list(store.glob("*.npz"))) >= 5):
        time.sleep(0.01)
    driver.kill()
    assert driver.wait() == -9
    there = len(list(store.glob("*.npz")))
    assert 5 <= there < 40
    found = sc.dist.sweep(sweeping.slow, over={"a": range(40)}, store=store)
    assert found.computed == 40 - there and [float(x) for x in found] == [2.0 * k for k in range(40)]


def test_a_child_has_its_share_and_ends_with_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    from symc.dist import children
    from symc.runtime import threads

    monkeypatch.delenv(threads.VARIABLE, raising=False)
    monkeypatch.delenv(threads.SHARE, raising=False)
    monkeypatch.setattr(children, "processors", lambda: 8)
    child = Child(children.share(4))
    child.send(os.getenv, threads.SHARE)
    assert child.result() == "2"
    assert child.end() == 0
    with pytest.raises(sc.errors.InputError, match="no file"):
        raise children.pickle.loads(children._failure(sc.errors.InputError("no file")))[1]
