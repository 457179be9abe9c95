"""Calls that repeat the last one, and everything that may come between two of them: numbers are those of the same
program on the CPU, whoever else uses, moves, sets or asks for the states."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from functools import cached_property

import numpy as np
import pytest

import symc as sc
from symc.runtime.cpu.commit import snapshot
from symc.runtime.cuda import replay
from symc.testing import emulated_cuda
from tests.cuda.emulated import needs_compiler

pytestmark = needs_compiler
X, Y = sc.input("x", "float32", (8, 8)), sc.input("y", "float32", ("n",))


@pytest.fixture(autouse=True)
def _graphs_of_anything(monkeypatch):
    monkeypatch.setattr(replay, "WORTH", 1)


class Program:
    """A step that writes two states in place, and others that use them: reading, writing, with a prologue."""

    def __init__(self, device: str):
        self.device = device
        self.w, self.m = (sc.shared(np.full((8, 8), k, "float32"), n) for k, n in ((1, "w"), (0, "m")))
        h = sc.tanh(X @ self.w) + self.m
        self.step = self.compiled(sc.mean(h @ h), [X], {self.m: 0.5 * self.m + h, self.w: self.w - 0.25 * h})
        self.x = np.arange(64, dtype="float32").reshape(8, 8) / 64
        self.seen: list[float] = []

    def compiled(self, outputs, inputs, updates=None):
        return sc.compile(outputs, inputs, updates=updates or {}, device=self.device)

    @cached_property
    def other(self):
        return self.compiled([], [X], {self.w: self.w * 0.5 + X})

    @cached_property
    def swap(self):
        return self.compiled([], [], {self.w: self.m, self.m: self.w})

    @cached_property
    def kept(self):
        return self.compiled(sc.sum(sc.exp(self.w) * X), [X])

    @cached_property
    def wide(self):
        return self.compiled(sc.sum(Y + self.w[0, 0]), [Y])

    def run(self, f, *given) -> None:
        self.seen.append(float(np.asarray(f(*given).item() if self.device == "cuda" else f(*given))))


def refused(f) -> None:
    with pytest.raises(sc.errors.ShapeError):
        f(np.ones((9, 8), "float32"))


BETWEEN: dict[str, Callable[[Program], object]] = {
    "nothing": lambda p: None,
    "set": lambda p: p.w.set_value(np.full((8, 8), 3, "float32")),
    "moved": lambda p: p.w.to_device("cpu"),
    "written": lambda p: p.other(p.x),
    "swapped": lambda p: p.swap(),
    "pushed": lambda p: [p.step.push(p.x) for _ in range(3)],
    "prologue": lambda p: p.run(p.kept, p.x),
    "read": lambda p: p.seen.extend(p.m.get_value().ravel()),
    "other numbers": lambda p: p.run(p.step, p.x + 1),
    "another layout": lambda p: p.run(p.step, np.asfortranarray(p.x)),
    "another dtype": lambda p: p.run(p.step, np.eye(8, dtype="int8")),
    "by name": lambda p: p.run(lambda x: p.step(x=x), p.x),
    "another shape": lambda p: [p.run(p.wide, np.ones(n, "float32")) for n in (3, 3, 3, 3, 5, 3)],
    "refused": lambda p: refused(p.step),
    "saved": lambda p: p.seen.append(float(sum(a.sum() for a in snapshot(p.step._cells)))),
}


def repeats(p: Program) -> bool:
    return p.step._call_path.repeat._frame is not None


@pytest.mark.parametrize("between", BETWEEN)
def test_whatever_comes_between_two_calls(between):
    found = []
    with emulated_cuda():
        for device in ("cuda", "cpu"):
            p = Program(device)
            for k in range(9):
                p.run(p.step, p.x)
                if k == 5:
                    assert device == "cpu" or repeats(p), "the calls before were of the kind that is meant"
                    BETWEEN[between](p)
            p.seen += [*p.w.get_value().ravel(), *p.m.get_value().ravel()]
            found.append(p.seen)
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_states_count_calls():
    with emulated_cuda():
        p = Program("cuda")
        before = p.w.cell.counted()
        for _ in range(9):
            p.step(p.x)
        assert repeats(p) and p.w.cell.counted() == before + 9 and not repeats(p)


def test_nothing_is_kept_alive():
    """States and memory go with the last who has them, without the garbage collector."""
    with emulated_cuda():
        p = Program("cuda")
        for _ in range(6):
            p.step(p.x)
        held = [weakref.ref(x) for s in (p.w, p.m) for x in (s.cell, s.array)]
        assert repeats(p)
        gc.collect()
        gc.disable()
        try:
            del p
            assert not any(x() for x in held)
        finally:
            gc.enable()


def test_frames_go_when_sizes_take_their_memory():
    with emulated_cuda():
        x = sc.input("x", "float32", ("n",))
        f = sc.compile([sc.cumsum(sc.sort(x)), sc.sum(x), sc.max(x)], [x], device="cuda")
        for n in (64, 128, 1000):
            for _ in range(6):
                a = np.random.default_rng(n).normal(size=n).astype("float32")
                np.testing.assert_allclose(f(a)[0].numpy(), np.cumsum(np.sort(a)), rtol=1e-3, atol=1e-3)


def test_threads_share_a_state():
    """Calls of several threads, and sets: every call is before or after every other."""
    with emulated_cuda():
        p = Program("cuda")
        for _ in range(6):
            p.other(p.x * 0)  # w halves
        p.w.set_value(np.full((8, 8), 2.0**40, "float32"))

        def work() -> None:
            for _ in range(5):
                p.other(p.x * 0)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert p.w.get_value().tolist() == [[2.0**20] * 8] * 8
