"""One small cluster for all tests of a process: two workers of one thread each, which are processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def client() -> Iterator[Any]:
    settings = {"distributed.comm.timeouts.connect": "120s", "distributed.scheduler.allowed-failures": 2,
                "distributed.worker.multiprocessing-method": "forkserver"}  # a worker that died is soon there again
    with dask.config.set(settings), LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit="1GB", host="127.0.0.1", dashboard_address=None,
    ) as cluster, Client(cluster, set_as_default=False) as found:
        yield found


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    """Graphs without a client are computed here, one task after another."""
    with dask.config.set(scheduler="sync"):
        yield
