"""What a call takes of memory, as it is measured, against what ``f.memory`` says before: by programs of several kinds
and sizes. NumPy tells ``tracemalloc`` of every array."""

from __future__ import annotations

import re
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.runtime.cpu.executable import aligned

#: What a program's code, and Python's own objects for a call, may take.
CODE, OBJECTS = 120_000, 12_000


def mlp() -> tuple[Any, Callable[[int], list[np.ndarray]], str]:
    """A step of training two layers, whose parameters are states."""
    rng = np.random.default_rng(0)
    x, y = sc.input("x", "float32", ("n", 64)), sc.input("y", "int64", ("n",))
    sizes = [(64, 128), (128, 128), (128, 10)]
    w = [sc.shared(rng.normal(size=s).astype("float32") * 0.05, f"w{k}") for k, s in enumerate(sizes)]
    h = x
    for k, m in enumerate(w):
        h = sc.maximum(h @ m, 0) if k < 2 else h @ m
    logp = h - sc.logsumexp(h, axis=1, keepdims=True)
    cost = -logp[sc.arange(x.shape[0]), y].mean()
    updates = {m: m - 0.01 * g for m, g in zip(w, sc.grad(cost, w))}
    f = sc.compile(cost, [x, y], updates=updates)
    return f, lambda n: [rng.normal(size=(n, 64)).astype("float32"), rng.integers(0, 10, n)], "n"


def lstm() -> tuple[Any, Callable[[int], list[np.ndarray]], str]:
    """A recurrent net and its gradient."""
    rng, width, batch = np.random.default_rng(0), 32, 8
    x = sc.input("x", "float32", ("t", batch, width))
    u, w = [sc.input(name, "float32", (width, 4 * width)) for name in "uw"]

    def step(carry: Any, row: Any) -> Any:
        h, s = carry
        i, o, g, k = [(row @ u + h @ w)[:, j * width : (j + 1) * width] for j in range(4)]
        s = sc.sigmoid(k) * s + sc.sigmoid(i) * sc.tanh(g)
        h = sc.sigmoid(o) * sc.tanh(s)
        return (h, s), h

    zero = sc.zeros((batch, width), "float32")
    _, ys = sc.scan(step, (zero, zero), x)
    cost = (ys**2).mean()
    f = sc.compile([cost, *sc.grad(cost, [u, w])], [x, u, w])
    weights = [rng.normal(size=(width, 4 * width)).astype("float32") * 0.1 for _ in range(2)]
    return f, lambda n: [rng.normal(size=(n, batch, width)).astype("float32"), *weights], "t"


def chain() -> tuple[Any, Callable[[int], list[np.ndarray]], str]:
    """Steps that each need all of the one before."""
    x = sc.input("x", "float64", ("n",))
    y = x
    for _ in range(4):
        y = sc.cumsum(sc.tanh(y - y.mean()))
    return sc.compile([y, y.max() - y], [x]), lambda n: [np.linspace(-1, 1, n)], "n"


def sorting() -> tuple[Any, Callable[[int], list[np.ndarray]], str]:
    """Steps that NumPy computes."""
    x = sc.input("x", "float64", ("n",))
    return sc.compile(sc.sort(sc.sort(x) * sc.sin(x)), [x]), lambda n: [np.linspace(-1, 1, n)], "n"


PROGRAMS: dict[str, Callable[[], Any]] = {"mlp": mlp, "lstm": lstm, "chain": chain, "sorting": sorting}
CASES = [("mlp", 64), ("mlp", 1000), ("mlp", 5000), ("lstm", 20), ("lstm", 300), ("chain", 10**4), ("chain", 10**6),
         ("sorting", 10**4), ("sorting", 10**6)]


def traced(call: Callable[[], Any]) -> int:
    """The most bytes that are allocated at once while something runs. What was there before does not count, nor that it
    is freed."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def given(f: Any, arrays: Sequence[np.ndarray]) -> int:
    """Bytes that are there before a call."""
    return sum(a.nbytes for a in arrays) + sum(w.get_value().nbytes for w in f.shared.values())


@pytest.mark.parametrize(("name", "n"), CASES)
def test_the_first_call_of_a_size_takes_what_was_said_and_later_ones_their_results(name: str, n: int) -> None:
    f, data, size = PROGRAMS[name]()
    for _ in range(3):
        f(*data(5))
    arrays = data(n)
    said = int(f.memory(**{size: n}))
    took = traced(lambda: f(*arrays)) + given(f, arrays)
    assert said <= took + 1000 and took <= 1.05 * said + CODE
    for _ in range(2):
        results = f(*arrays)
    results = results if isinstance(results, list) else [results]
    out = sum(r.nbytes for r in results)
    assert out <= traced(lambda: f(*arrays)) <= out + OBJECTS


def test_parameters_are_updated_in_place() -> None:
    f, data, _ = mlp()
    arrays = data(100)
    f(*arrays)
    cells = f._cells
    before = [c.array for c in cells]
    f(*arrays)
    f(*arrays)
    assert all(c.array is a for c, a in zip(cells, before, strict=True)) and len(before) == 3


def test_calls_of_many_sizes_share_one_arena() -> None:
    f, data, _ = mlp()
    sizes = [50, 400, 30, 399, 7, 120]
    arrays = {n: data(n) for n in sizes}
    f(*data(5))
    held = traced(lambda: [f(*arrays[n]) for n in sizes for _ in range(3)])
    assert held <= 1.05 * f.memory(n=400).arena + CODE
    assert len(f._program._free) == 1


def test_calls_of_hundreds_of_new_sizes_take_no_more_memory() -> None:
    """A hundred bytes for each of them would be seen. The sizes are small: their number counts."""
    f, data, _ = mlp()
    whole = data(600)
    for n in (600, 1):
        f(*(a[:n] for a in whole))

    def calls(first: int) -> None:
        for n in range(first, 600, 2):
            f(*(a[:n] for a in whole))

    calls(1)
    assert traced(lambda: calls(2)) < 30_000, "Python keeps some lists of its own"


def test_what_is_too_large_for_an_entry_keeps_the_one_arena() -> None:
    f, data, _ = lstm()
    arrays = data(300)
    f(*arrays)
    held = f.memory(t=300).arena
    assert held > 2**20 and traced(lambda: [f(*arrays) for _ in range(4)]) < held / 2


def test_what_an_entry_takes_over_is_not_there_twice() -> None:
    f, data, _ = chain()
    for _ in range(4):
        f(*data(1000))
    assert f._call_path._entry is not None and not f._program._free


def test_frames_of_a_chain_stay_right_when_its_arena_grows() -> None:
    x = sc.input("x", "float64", ("n",))
    y = sc.cumsum(sc.tanh(x - x.mean()))
    f = sc.compile([(y - y.mean()).sum(), y.max()], [x])
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=n) for n in (3, 50, 3, 1000, 50, 3, 999, 1000)]
    for a in arrays * 2:
        y_ = np.cumsum(np.tanh(a - a.mean()))
        np.testing.assert_allclose(f(a), [(y_ - y_.mean()).sum(), y_.max()], rtol=1e-9, atol=1e-9)


def test_as_many_arenas_as_calls_run_at_once() -> None:
    x = sc.input("x", "float64", ("n",))
    f = sc.compile(sc.linalg.expm(sc.cumsum(sc.sort(x) * 2)[:4].reshape(2, 2)).sum() + sc.sort(x) + 1, [x])
    a = np.linspace(-1, 1, 2000)
    want = f(a)
    wrong: list[int] = []

    def work(k: int) -> None:
        for j in range(30):
            got = f(a if j % 2 else a[: 500 * (k + 1)])
            if j % 2 and not np.array_equal(got, want):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and 1 <= len(f._compilation.program._free) <= 3


def huge(a: np.ndarray) -> bool | None:
    """Whether the kernel was asked for huge pages where an array lies; None where that cannot be read."""
    try:
        text = Path("/proc/self/smaps").read_text()
    except OSError:
        return None
    at = a.ctypes.data + a.nbytes // 2
    for head, body in re.findall(r"^([0-9a-f]+-[0-9a-f]+) .*\n((?:[A-Z]\w+:.*\n)+)", text, re.M):
        first, last = (int(x, 16) for x in head.split("-"))
        if first <= at < last:
            return " hg" in body
    return None


def test_large_arenas_and_results_lie_in_huge_pages_where_numpys_arrays_do() -> None:
    x = sc.input("x", "float64", ("n",))
    f = sc.compile(sc.cumsum(sc.exp(x)), [x])
    sample = np.empty(2**23, np.uint8)
    assert huge(f(np.ones(2**20))) == huge(sample) == huge(aligned(2**23))
