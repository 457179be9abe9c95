"""Tests have a cache of machine code of their own, which all workers of a run share."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["SYMC_CACHE_DIR"] = tempfile.mkdtemp(prefix="symc-tests-")
    atexit.register(shutil.rmtree, os.environ["SYMC_CACHE_DIR"], True)


def pytest_configure() -> None:
    """Every test compiles what it says: nothing is taken from what another test compiled, or from what it broke."""
    from symc import warm

    warm.KEPT = ()
