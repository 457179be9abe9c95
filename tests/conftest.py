"""Tests have a cache of machine code of their own, which all workers of a run share, and do not depend on how busy the
machine is or on how the run was started."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

#: Threads of OpenBLAS sleep when they have nothing to do. Else they look for work for 2 ** 26 cycles after each product
#: of NumPy's, at the expense of the other workers.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

#: A folder that a run leaves for the next, which finds there all that this one compiled.
LEFT = os.environ.get("TESTS_CACHE_DIR")

if LEFT:
    os.environ["SYMC_CACHE_DIR"] = LEFT
elif "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["SYMC_CACHE_DIR"] = tempfile.mkdtemp(prefix="symc-tests-")
    atexit.register(shutil.rmtree, os.environ["SYMC_CACHE_DIR"], True)

# Many tests start processes, and every worker imports all tests: none compiles Python's modules again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

gc.disable()  # until all tests are collected, which stay: no search for garbage among them, then and later

settings.register_profile("symc", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("symc")
# What is drawn depends on the test, not on the numbers in whichever modules have been imported; to read those takes as
# long as importing all tests.
providers._get_local_constants = lambda: providers._local_constants


#: Where a process of tests writes where its threads are when it dies, or is ended after `faulthandler_timeout`.
DIED = "died-{}.txt"


@pytest.hookimpl(trylast=True)  # after pytest's own, which opens it
def pytest_configure(config: pytest.Config) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        fd = os.open(Path(os.environ["SYMC_CACHE_DIR"], DIED.format(worker)), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(fd, config.stash[fault_handler_stderr_fd_key])
        os.close(fd)


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: Any) -> None:
    """Show it with the failure, at the end: what goes to stderr stands thousands of lines before."""
    died = Path(os.environ["SYMC_CACHE_DIR"], DIED.format(report.node.gateway.id))
    text = died.read_text(errors="replace") if died.exists() else ""
    begin = max(text.rfind("Fatal Python error"), text.rfind("Timeout ("), 0)
    report.sections.append(("where its threads were", text[begin : begin + 3000]))


def check_unchanged(who: str) -> None:
    """Nobody leaves symc changed for others: in a process with rules of its own nothing is found on disk."""
    from symc.ir import extensions

    assert not extensions.changed(), f"{who} has changed {sorted(extensions._changed)}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """``-k NAME`` finds the tests that take many ops at once, too."""
    from symc.ir.op import Op

    for given in item.callspec.params.values() if hasattr(item, "callspec") else ():
        if isinstance(given, list):
            firsts = [x[0] if isinstance(x, tuple) and x else x for x in given]
            item.extra_keyword_matches.update(x.name for x in firsts if isinstance(x, Op))


def pytest_collection_finish() -> None:
    check_unchanged("importing tests")


@pytest.hookimpl(tryfirst=True)  # the loop of a worker is one of these too, and the first that is done is the last
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker sends what came of a test, once: all that pytest tells of one takes longer than most tests do."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.passed:
            report.keywords = {}
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)  # no fixture: setting one up takes as long as most of what this follows
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    found = yield
    check_unchanged("the test")
    return found


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function is compiled as the test says: none is found on disk, and none is left there."""
    from symc.driver import warm

    monkeypatch.setattr(warm, "KEPT", ())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "each_library" in metafunc.fixturenames:
        from symc.runtime.cpu.blas_library import of_numpy

        metafunc.parametrize("each_library", ["numpy", "scipy"] if of_numpy() else ["scipy"], indirect=True)


@pytest.fixture
def each_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A test runs with each library that multiplies and factorizes, one after the other."""
    from symc.runtime.cpu import blas_library

    monkeypatch.setenv(blas_library.VARIABLE, request.param)
    blas_library.library.cache_clear()
    yield request.param
    blas_library.library.cache_clear()


@pytest.fixture
def interrupt() -> Iterator[Callable[[float], None]]:
    """Sends Ctrl-C after some seconds. The handler is set, as a run in the background has none."""
    timers = []

    def after(seconds: float) -> None:
        timers.append(threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT]))
        timers[-1].start()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield after
    for t in timers:
        t.join()
    signal.signal(signal.SIGINT, before)
