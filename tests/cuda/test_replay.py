"""Replays of graphs: arguments, results and states may be somewhere else in every call. On the emulated device, which
runs streams late and in any order, and on CuPy's device with fakes, where Python frames and calls of the driver are
counted."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import symc as sc
from symc.runtime.cuda import cupy_device, frame, replay
from symc.runtime.cuda.devices import context, devices_from
from symc.testing import emulated_cuda
from tests.cuda import fake_cupy
from tests.cuda.emulated import needs_compiler
from tests.cuda.fake_driver import faked, reason

pytestmark = needs_compiler
CALLS = 12


@pytest.fixture
def emulated() -> Iterator[None]:
    with emulated_cuda():
        yield


@pytest.fixture
def cupy() -> Iterator[None]:
    if reason():
        pytest.skip(reason())
    with faked(), devices_from(cupy_device.CupyDevice):
        yield


def data(k: int = 0, shape=(6, 16)) -> np.ndarray:
    return np.random.default_rng(k).normal(size=shape).astype("float32")


def network(device: str, layers: int = 2):
    """A training step with momentum, whose states are written in place."""
    x = sc.input("x", "float32", (6, 16))
    ws = [sc.shared(data(9 + k, (16, 16)) / 4, f"w{k}") for k in range(layers)]
    ms = [sc.shared(np.zeros((16, 16), "float32"), f"m{k}") for k in range(layers)]
    h = x
    for w in ws:
        h = sc.tanh(h @ w)
    loss = sc.mean((h - 0.5) ** 2)
    new = [0.9 * m + g for m, g in zip(ms, sc.grad(loss, ws), strict=True)]
    updates = {**dict(zip(ms, new, strict=True)), **{w: w - 0.1 * m for w, m in zip(ws, new, strict=True)}}
    return sc.compile([loss, h], [x], updates=updates, device=device, name="step"), ws


def graphs() -> int:
    return context("cuda").device.counters.graph_launches


@pytest.mark.parametrize("batch", [
    lambda kept: data(len(kept)),
    lambda kept: sc.device_array(data(len(kept))),
], ids=["host", "device"])
def test_batches_and_losses_that_are_kept_are_replayed(emulated, batch):
    step, ws = network("cuda")
    same, expected = network("cpu")
    kept, before = [], graphs()
    for k in range(CALLS):
        given = batch(kept)
        kept.append((given, *step(given)))
        _, h = same(data(k))
        np.testing.assert_allclose(kept[-1][2].numpy(), h, rtol=1e-4, atol=1e-6)
    assert graphs() - before >= CALLS - 6
    assert len({a.address for _, loss, h in kept for a in (loss, h)}) == 2 * CALLS, "results are arrays of their own"
    for w, e in zip(ws, expected, strict=True):
        np.testing.assert_allclose(w.get_value(), e.get_value(), rtol=1e-4, atol=1e-6)


def test_results_that_were_kept_do_not_change(emulated):
    step, _ = network("cuda")
    kept = [(step(sc.device_array(data(k))), k) for k in range(CALLS)]
    seen = [loss.item() for (loss, _), _ in kept]
    assert len(set(seen)) == CALLS
    step(data(99))
    assert [loss.item() for (loss, _), _ in kept] == seen


def test_states_that_are_set_are_replayed(emulated):
    step, ws = network("cuda")
    same, expected = network("cpu")
    before, held = graphs(), []
    for k in range(CALLS):
        held.append(ws[0].array)  # or its memory would be used again
        for states in (ws, expected):
            states[0].set_value(data(50 + k, (16, 16)) / 4)
        loss, _ = step(data(k))
        np.testing.assert_allclose(loss.item(), same(data(k))[0], rtol=1e-4)
        np.testing.assert_allclose(ws[0].get_value(), expected[0].get_value(), rtol=1e-4, atol=1e-6)
    assert graphs() - before >= CALLS - 6


def test_what_is_dear_to_copy_is_not_copied(emulated, monkeypatch):
    monkeypatch.setattr(replay, "COPIED", 0)
    step, _ = network("cuda")
    before = graphs()
    for k in range(CALLS):
        step(sc.device_array(data(k)))[0].item()
    assert graphs() - before <= 1 and not context("cuda").device.counters.d2d_bytes


def test_large_arguments_of_the_host_are_pinned(emulated, monkeypatch):
    """Calls follow one another without waiting, and each sees its own numbers."""
    x = sc.input("x", "float32", (64, 512))
    f = sc.compile(x.sum(), [x], device="cuda")
    pinned, device = [], context("cuda").device
    monkeypatch.setattr(device, "pinned", lambda n: pinned.append(n) or type(device).pinned(device, n))
    batch, syncs, kept = np.zeros((64, 512), "float32"), device.counters.syncs, []
    for k in range(7):
        batch[:] = k
        kept.append(f(batch))
    assert pinned == [batch.nbytes] * frame.PIECES and device.counters.syncs == syncs
    assert [r.item() for r in kept] == [k * batch.size for k in range(7)]


def host_cost(states: int) -> tuple[Counter[str], list[str]]:
    """Lines of Python that a replayed call runs, by function, and what it asks of the driver."""
    x, w = sc.input("x", "float32", (6, 16)), sc.shared(data(1, (16, 16)), "w")
    h = sc.tanh(x @ w)
    others = [sc.shared(data(k, (4,)), f"m{k}") for k in range(states)]
    step = sc.compile([sc.mean(h), h], [x], updates={m: 0.9 * m + h[0, 0] for m in others}, device="cuda")
    kept = [(batch := sc.device_array(data(k)), step(batch)) for k in range(CALLS)]
    given, lines, asked = sc.device_array(data(0)), Counter[str](), []
    fake_cupy._keep.update(dict.fromkeys(fake_cupy._keep, ()))  # what graphs do is not the host's

    def traced(frame, event, argument):
        if frame.f_code.co_filename == fake_cupy.__file__:
            asked.append(frame.f_code.co_name)
            return None
        if "emulator" in frame.f_code.co_filename:  # it stands for CuPy's memory
            return None
        lines[frame.f_code.co_qualname] += event == "line"
        return traced

    gc.collect()
    gc.disable()  # arrays of other tests are given back to the driver
    sys.settrace(traced)
    try:
        kept.append((given, step(given)))
    finally:
        sys.settrace(None)
        gc.enable()
    return lines, [a for a in asked if a not in ("getDevice", "<lambda>", "do", "action", "run")]


@pytest.mark.parametrize("loaded", [False, True], ids=["", "xarray"])
def test_states_cost_the_host_nothing(cupy, monkeypatch, loaded):
    if loaded:
        monkeypatch.setitem(sys.modules, "xarray", sys)  # who has it pays next to nothing in other calls
    else:
        monkeypatch.delitem(sys.modules, "xarray", raising=False)
    host_cost(4)  # what happens once in a process is not counted
    few, asked = host_cost(4)
    many, again = host_cost(78)
    assert many == few and many.total() < 200, f"none runs for each state: {many.total()} lines, {many}, {few}"
    assert asked == again and [a for a in asked if a in ("graphLaunch", "memcpyAsync", "launchKernel")] == [
        "memcpyAsync", "graphLaunch", "memcpyAsync", "memcpyAsync"], "a batch, the graph, two results that are kept"
