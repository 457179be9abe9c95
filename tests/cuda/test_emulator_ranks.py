"""Emulated devices that work together."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from symc.errors import DTypeError
from symc.runtime.emulator import EmulationError, communicators
from tests.cuda.emulated import Bench, needs_compiler

pytestmark = needs_compiler
F = np.dtype(np.float32)


class Rank(Bench):
    def __init__(self, index, checked):
        super().__init__(index=index, checked=checked)
        self.mine = np.arange(6, dtype=F) + 10 * index


def ranks(n: int, checked: bool = True):
    benches = [Rank(k, checked) for k in range(n)]
    return list(zip(benches, communicators([b.device for b in benches]), strict=True))


def each(both, work) -> None:
    """Let each rank work in a thread of its own."""
    threads = [threading.Thread(target=work, args=pair) for pair in both]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("kind, want", [("add", 3 * np.arange(6) + 30), ("maximum", np.arange(6) + 20),
                                        ("minimum", np.arange(6))])
def test_all_reduce(checked, kind, want):
    both = ranks(3, checked)
    at = [(b.put(b.mine), b.room(24)) for b, _ in both]
    each(both, lambda b, c: c.all_reduce(*reversed(at[c.rank]), 6, F, kind, b.stream))
    for (b, c), (_, y) in zip(both, at, strict=True):
        assert (c.rank, c.size, b.device.counters.library_calls) == (b.device.index, 3, 1)
        np.testing.assert_array_equal(b.get(y, b.mine), want)


@pytest.mark.parametrize("checked", [True, False])
def test_many_rounds_in_place(checked):
    both = ranks(2, checked)
    at = [b.put(b.mine) for b, _ in both]
    for _ in range(4):
        each(both, lambda b, c: c.all_reduce(at[c.rank], at[c.rank], 6, F, "add", b.stream))
    for (b, _), x in zip(both, at, strict=True):
        np.testing.assert_array_equal(b.get(x, b.mine), 8 * (2 * np.arange(6) + 10))


@pytest.mark.parametrize("checked", [True, False])
def test_a_thread_for_each_rank(checked):
    both, found = ranks(4, checked), {}

    def work(b: Rank, c):
        x = b.put(b.mine)
        for _ in range(5):
            c.all_reduce(x, x, 6, F, "maximum", b.stream)
            b.device.fill(x, 0, 4, b.stream)
        found[c.rank] = b.get(x, b.mine)

    each(both, work)
    for k in range(4):
        np.testing.assert_array_equal(found[k], [0, *range(31, 36)])


def test_in_a_graph():
    both = ranks(2)
    at = [b.put(b.mine) for b, _ in both]
    graphs = []
    for (b, c), x in zip(both, at, strict=True):
        b.device.begin_capture(b.stream)
        c.all_reduce(x, x, 6, F, "add", b.stream)
        graphs.append(b.device.end_capture(b.stream))
    for _ in range(2):
        each(both, lambda b, c: b.device.run_graph(graphs[c.rank], b.stream))
    np.testing.assert_array_equal(both[1][0].get(at[1], both[1][0].mine), 2 * (2 * np.arange(6) + 10))


def test_ranks_ask_for_different_things():
    (a, c), (b, d) = ranks(2)
    x, y = a.put(a.mine), b.put(b.mine)
    words = r"rank 1 asks for all_reduce\(5 x float32, add\) where rank 0 asks for"
    c.all_reduce(x, x, 6, F, "add", a.stream)
    with pytest.raises(EmulationError, match=words):
        d.all_reduce(y, y, 5, F, "add", b.stream)


def test_one_thread_of_two_ranks():
    (a, c), (b, d) = ranks(2)
    x, y = a.put(a.mine), b.put(b.mine)
    c.all_reduce(x, x, 6, F, "add", a.stream)
    with pytest.raises(EmulationError, match="each rank has a thread of its own"):
        d.all_reduce(y, y, 6, F, "add", b.stream)


@pytest.mark.parametrize("checked", [True, False])
def test_a_rank_does_not_come(monkeypatch, checked):
    monkeypatch.setattr("symc.runtime.emulator.ranks.PATIENCE", 0.1)
    (a, c), _ = ranks(2, checked)
    x = a.put(a.mine)
    with pytest.raises(EmulationError, match="rank 0 waits for rank 1, which does not ask for"):
        c.all_reduce(x, x, 6, F, "add", a.stream)
        a.device.synchronize(a.stream)


def test_numbers_that_nobody_wrote():
    (a, c), (b, d) = ranks(2)
    x, y = a.put(a.mine), b.room(24)
    each([(a, (c, x)), (b, (d, y))], lambda b, of: of[0].all_reduce(of[1], of[1], 6, F, "add", b.stream))
    with pytest.raises(EmulationError, match=r"UNWRITTEN: .* on rank 1"):
        a.device.synchronize(a.stream)


def test_what_is_refused():
    ((a, c),) = ranks(1)
    x = a.put(a.mine)
    with pytest.raises(DTypeError):
        c.all_reduce(x, x, 24, np.dtype(bool), "add", a.stream)
    with pytest.raises(EmulationError, match="no reduction"):
        c.all_reduce(x, x, 6, F, "multiply", a.stream)
    with pytest.raises(EmulationError, match="overlaps"):
        c.all_reduce(x, x + 4, 5, F, "add", a.stream)
    with pytest.raises(EmulationError, match="BOUNDS"):
        c.all_reduce(x, x, 7, F, "add", a.stream)
