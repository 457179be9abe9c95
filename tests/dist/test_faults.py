"""Workers of Dask that die: nothing is lost and nothing hangs."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

import symc as sc
from tests.dist import sweeping

A = np.random.default_rng(0).normal(size=(4000, 50))


@pytest.mark.long
def test_a_worker_that_is_killed_in_the_middle(client: Any, tmp_path: Path) -> None:
    """The results are there, with the same bits."""
    np.save(tmp_path / "a.npy", A)
    f = lambda x: (sc.tanh(x), x.var(0), x.T @ x)
    with client.as_current():
        want = dask.compute(*sc.dist.map(f, tmp_path / "a.npy", max_bytes="100kB"), scheduler="sync")
        marks = tmp_path / "marks"
        marks.mkdir()
        mapped = sc.dist.map(f, tmp_path / "a.npy", max_bytes="100kB")
        pids = client.run(os.getpid)
        futures = client.compute(list(mapped))
        done = threading.Event()

        def kill() -> None:
            while not done.is_set():
                if sum(map(len, client.has_what().values())) >= 10:  # results that go with their worker
                    os.kill(next(iter(pids.values())), signal.SIGKILL)
                    return
                time.sleep(0.002)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        try:
            found = [future.result(timeout=200) for future in futures]
        finally:
            done.set()
            killer.join(10)
        client.wait_for_workers(2, timeout=100)
        assert set(client.run(os.getpid).values()) != set(pids.values())
    for a, b in zip(found, want, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.long
def test_a_task_that_always_kills_its_worker_is_an_error(client: Any, tmp_path: Path) -> None:
    with pytest.raises(sc.errors.ExecutionError, match=r"failed at \{'a': 2\}: .*the worker died in every try"):
        sc.dist.sweep(sweeping.deadly_later, over={"a": [1, 2, 3]}, store=tmp_path, client=client)
    client.wait_for_workers(2, timeout=100)
    found = sc.dist.sweep(sweeping.slow, over={"a": [1, 3]}, client=client)
    assert [float(x) for x in found] == [2.0, 6.0]


def test_a_cluster_without_workers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import Client, LocalCluster

    from symc.dist import sweeps

    monkeypatch.setattr(sweeps, "ARRIVAL", 0.1)
    with (LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as cluster,
          Client(cluster, set_as_default=False) as nobody,
          pytest.raises(sc.errors.ExecutionError, match="has had no worker")):
        sc.dist.sweep(sweeping.squared, over={"a": [1, 2]}, client=nobody)


def test_a_function_of_another_format_is_a_clear_error() -> None:
    """A worker with another version of symc refuses what it cannot read."""
    from symc.driver import save

    x = sc.vector("x")
    f = sc.compile(x * 2, [x])
    before = save.FORMAT
    try:
        save.FORMAT = before + 1
        data = sc.dist.tasks.Block(f, "t").__reduce__()
    finally:
        save.FORMAT = before
    with pytest.raises(sc.errors.InputError, match="format"):
        data[0]("another", data[1][1])
